"""`workbench audit`, `check`, `sample` and `compose`: what can be done with a mechanism file alone."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from workbench.cli.console import Json, emit_json, facts, out, table
from workbench.cli.output_paths import html_file, output_file
from workbench.errors import CorruptFile, InvalidRequest, NotCertified
from workbench.exact.numbers import exact
from workbench.io.csv_column import whole_as_integers
from workbench.io.files import distinct_files
from workbench.io.parameter_grid import integers
from workbench.mechanisms.baselines.named_quantizers import MECHANISMS, bounds, built

if TYPE_CHECKING:
    from workbench.mechanisms.mechanism import Mechanism
    from workbench.privacy.loading import FileContents

__all__ = [
    "AUDIT_EXAMPLES",
    "CHECK_EXAMPLES",
    "COMPOSE_EXAMPLES",
    "SAMPLE_EXAMPLES",
    "audit",
    "check",
    "compose",
    "sample",
]

AUDIT_EXAMPLES = """Examples:

  workbench audit noise.json

  workbench audit noise.json --epsilon 0.5 --plot profile.png

  workbench audit noise.json --loss squared --data column.csv     (exact, on true inputs)

  workbench audit rqm --with bins=-2.7,-0.9,0.9,2.7 --with q=0.22 --loss absolute     (also erm, pbm, ...)

  workbench audit noise.json --risk --prior 0.01 --plot tradeoff.png    (what an attacker learns from one output)

  workbench audit pmf.csv --max-shift 2 --epsilon 1 --json       (a PMF: say which answers are neighbours)

  workbench audit matrix.csv --pairs 0-1,1-2 --epsilon 1         (a channel: all rows are neighbours by default)"""

CHECK_EXAMPLES = """Examples:

  workbench check noise.json

  workbench check noise.json --json"""

SAMPLE_EXAMPLES = """Examples:

  workbench sample noise.json --count 10

  workbench sample noise.json --count 1000 --answer 3 > answers.txt

  workbench sample labels.json --count 5 --answer 7     (a label in, published values out)

  workbench sample matrix.csv --count 5 --answer 0 --json"""

COMPOSE_EXAMPLES = """Examples:

  workbench compose noise.json --times 50 --delta 1e-6

  workbench compose noise.json labels.json --times 10,40 --delta 1e-6     (two mechanisms)

  workbench compose matrix.csv --times 10 --epsilon 3 --json"""

File = Annotated[Path, typer.Argument(help="A certificate, a mechanism, or a PMF or matrix as CSV or JSON.")]
Sizes = Annotated[str | None, typer.Option(help='Of a PMF on a vector query, "5x5".')]
Shifts = Annotated[str | None, typer.Option(help='Neighbours of a PMF: "1,2,3", for vectors "0,1;1,0".')]
MaxShift = Annotated[int | None, typer.Option(help="Neighbours: answers (rows) at most so far apart.")]
Pairs = Annotated[str | None, typer.Option(help='Neighbouring rows of a channel, "0-1,1-2"; all by default.')]
Directed = Annotated[bool, typer.Option("--directed", help="Only the given sign or order of every pair.")]


def audit(
    file: Annotated[
        Path, typer.Argument(help="A certificate, a mechanism, or a PMF or matrix as CSV or JSON; or rqm, erm, ...")
    ],
    epsilon: Annotated[
        str | None, typer.Option(help="Budget >= 0 at which δ is taken (a certificate's own by default, else 0).")
    ] = None,
    sizes: Sizes = None,
    shifts: Shifts = None,
    max_shift: MaxShift = None,
    pairs: Pairs = None,
    directed: Directed = False,
    given: Annotated[
        list[str] | None,
        typer.Option("--with", help="NAME=VALUE of a published quantizer: bins, q, gamma, levels, theta, epsilon, c."),
    ] = None,
    loss: Annotated[
        str | None,
        typer.Option(help="Also its expected loss: absolute, squared, error-rate, pinball:τ or huber:h."),
    ] = None,
    data: Annotated[
        str | None,
        typer.Option(
            help="For the loss: CSV file of one column of inputs; on real ones also uniform, normal:MU,SIGMA."
        ),
    ] = None,
    risk: Annotated[
        bool, typer.Option("--risk", help="Also what an attacker learns: trade-off curve, advantage, Rényi, ρ, μ.")
    ] = False,
    prior: Annotated[str, typer.Option(help="With --risk: the attacker's prior of one of two neighbours.")] = "1/2",
    plot: Annotated[
        Path | None,
        typer.Option(help="Draw the exact privacy profile, with --risk the trade-off curve (.png, .svg or .pdf)."),
    ] = None,
    html: Annotated[Path | None, typer.Option(help="Write a page that needs no network.")] = None,
    json: Json = False,
) -> None:
    """The exact privacy of any mechanism: pure ε, PDP and DP δ at a budget, the worst neighbours; its loss and risk."""
    if plot is not None:
        output_file(plot, "plot file", (".png", ".svg", ".pdf"))
        distinct_files({"mechanism": file}, {"plot file": plot})
    html_file(html, {"mechanism": file, "plot file": plot})
    certificate, published = None, dict[str, Any]()
    if str(file) in MECHANISMS and not file.exists():
        mechanism, published = _published(str(file), given or [])
    else:
        if given:
            InvalidRequest.must("with", f"given for {', '.join(MECHANISMS)} alone", given[0])
        contents, mechanism = _open(file, sizes, shifts, max_shift, pairs, directed)
        certificate = contents.certificate
    from workbench.exact.numbers import jsonable, positive
    from workbench.privacy.audit import audit

    budget = None if epsilon is None else positive(epsilon, "epsilon", or_zero=True)
    privacy = audit(certificate or mechanism, budget, loss=loss, data=data)
    claim = None if certificate is None else certificate.claim
    values = {"file": file.name, **privacy.to_dict(), **published, "certified": claim and claim.notion.name}
    rows = privacy.facts() + [(name.replace("_", " "), repr(value)) for name, value in published.items()]
    if risk:
        from workbench.privacy.risk import risk as measure_risk

        learnt = measure_risk(mechanism, prior)
        values |= learnt.to_dict()
        rows += learnt.facts()[1:]
        if plot is not None:
            learnt.plot(plot, claim=claim)
    elif plot is not None:
        from workbench.privacy.curve import plot_profile

        plot_profile(mechanism, plot, [privacy.epsilon] if privacy.epsilon else [])
    if certificate is not None:
        rows.append(("certificate", certificate.words[1]))
    if html is not None:
        from workbench.explorer.export import audit_page, write_page

        own = certificate is not None and epsilon is None and "delta" in certificate.claim.values
        delta = certificate.delta if own and certificate is not None else None
        write_page(html, audit_page(mechanism, rows, {"epsilon": privacy.epsilon or None, "delta": delta}))
    if json:
        emit_json({name: jsonable(value) for name, value in values.items()})
    else:
        out.print(facts(rows), highlight=False)


def _published(name: str, given: Sequence[str]) -> tuple[Any, dict[str, Any]]:
    """A published quantizer by its name and NAME=VALUE parameters, and what was published about it."""
    parameters = {}
    for text in given:
        parameter, equals, value = text.partition("=")
        if not equals:
            InvalidRequest.must("with", "NAME=VALUE", text)
        parameters[parameter.strip()] = int(value) if parameter == "levels" and value.isdigit() else value.strip()
    mechanism = built(name, **parameters)
    printed = {f"published_{key}": value for key, value in bounds(name, mechanism, parameters).items()}
    return mechanism, {"mae_51": mechanism.mae_51, **printed}


def check(file: Annotated[Path, typer.Argument(help="A certificate file.")], json: Json = False) -> None:
    """Prove a certificate again, from its file alone, and say what is proven; exit code 0 for proven, 1 for
    false, 2 for undecided or unreadable."""
    from workbench.privacy.audit_work import LIMIT
    from workbench.privacy.certificate_file import check as prove
    from workbench.privacy.notions.notion import limited

    try:
        with limited(LIMIT):
            proven = prove(file)
            words = proven.words
    except CorruptFile as error:
        error.exit_code = 1 if isinstance(error.__cause__, NotCertified) else 2
        raise
    if json:
        composed = {} if proven.composed is None else {"composed": proven.composed.to_dict()}
        emit_json(
            {
                "file": file.name,
                "proven": True,
                "claim": proven.claim.to_dict(),
                **composed,
                "words": list(words),
                "not_proven": dict(proven.record),
            }
        )
        return
    out.print(
        f"Proven from {_plain(file.name)} alone, in exact arithmetic:", style="bold", highlight=False, markup=False
    )
    for sentence in words:
        out.print(f"  {sentence}", highlight=False, markup=False)
    if proven.record:
        out.print("Recorded, not proven:", highlight=False)
        noted = [(f"  {_plain(key)}", _plain(value)) for key, value in proven.record.items()]
        out.print(facts(noted[:40]), highlight=False)


def sample(
    file: File,
    count: Annotated[int, typer.Option(help="How many draws.")] = 1,
    answer: Annotated[
        str | None,
        typer.Option(help='True answer: noise is added to it ("1,2" for vectors); a label, or a row of a channel; x.'),
    ] = None,
    insecure_seed: Annotated[int | None, typer.Option(help="Repeatable draws for experiments. NOT private.")] = None,
    json: Json = False,
) -> None:
    """Draw from a mechanism, exactly distributed, with randomness of the operating system; one draw a line."""
    if not 0 <= count <= 100_000_000:
        InvalidRequest.must("count", "an integer in 0..100000000", count)
    if json and count > 1_000_000:
        InvalidRequest.must("count", "at most 1000000 with --json", count)
    from workbench.privacy.loading import read
    from workbench.privacy.sampling import sample as draw

    contents = read(file)
    subject = contents.mechanism if contents.certificate is None else contents.certificate
    point: Any = answer
    labelled = getattr(contents.mechanism, "labelled", None) is not None
    if answer is not None and not labelled and not getattr(contents.mechanism, "segments", ()):
        parts = integers(answer, "answer")
        point = parts[0] if len(parts) == 1 else tuple(parts)
    values = draw(subject, count, answer=point, insecure_seed=insecure_seed)
    if json:
        emit_json({"file": file.name, "secure": insecure_seed is None, "draws": whole_as_integers(values)})
        return
    for start in range(0, count, 65536):
        part = whole_as_integers(values[start : start + 65536])
        lines = (",".join(map(str, row)) if isinstance(row, list) else str(row) for row in part)
        sys.stdout.write("".join(f"{line}\n" for line in lines))


def compose(
    file: Annotated[
        list[Path], typer.Argument(metavar="FILE...", help="Certificates, mechanisms, or PMFs or matrices (CSV, JSON).")
    ],
    times: Annotated[str, typer.Option(help='How often each runs, "50", or one count for each file, "10,40".')] = "1",
    delta: Annotated[str | None, typer.Option(help="Find ε at this δ.")] = None,
    epsilon: Annotated[str | None, typer.Option(help="Find δ at this ε.")] = None,
    interval: Annotated[float, typer.Option(help="Finest grid of privacy losses.")] = 1e-4,
    sizes: Sizes = None,
    shifts: Shifts = None,
    max_shift: MaxShift = None,
    pairs: Pairs = None,
    json: Json = False,
) -> None:
    """What many runs of one mechanism or several cost together, between proven bounds."""
    for name, given in (("delta", delta), ("epsilon", epsilon)):
        if given is not None:
            exact(given, name)
    counts = integers(times, "times")
    counts = counts * len(file) if len(counts) == 1 else counts
    if len(counts) != len(file):
        InvalidRequest.must("times", f"one count, or one for each of the {len(file)} files", times)
    mechanisms = [_open(path, sizes, shifts, max_shift, pairs, False)[1] for path in file]
    from workbench.privacy.composition import compose as run

    several = len(file) > 1
    given_runs = (mechanisms, list(counts)) if several else (mechanisms[0], counts[0])
    composed = run(*given_runs, delta=delta, epsilon=epsilon, interval=interval)
    report = {
        "file": [path.name for path in file] if several else file[0].name,
        "times": list(counts) if several else counts[0],
        "epsilon": _number(composed.epsilon),
        "epsilon_low": _number(composed.epsilon_low),
        "delta": composed.delta,
        "delta_low": composed.delta_low,
    }
    if json:
        emit_json(report)
        return
    heads = ["runs", "ε (safe)", "ε (at least)", "δ (safe)", "δ (at least)"]
    cells = [" + ".join(map(str, counts)), composed.epsilon, composed.epsilon_low, composed.delta, composed.delta_low]
    caption = (
        "Proven. Safe: for adaptive runs, over all neighbours of the mechanism, which may be others in every run. At "
        "least: for neighbours that stay the same."
    )
    if several:
        caption += " Of several, somebody is protected who changes each input by a pair of its mechanism's neighbours."
    out.print(table("Composition", heads, [cells], caption=caption))


def _open(
    file: Path, sizes: str | None, shifts: str | None, max_shift: int | None, pairs: str | None, directed: bool
) -> tuple[FileContents, Mechanism]:
    """A file with its neighbour relation."""
    from workbench.privacy.loading import read

    orders = None if sizes is None else integers(sizes.lower().replace("x", ","), "sizes")
    moves: list[Any] | None = None
    if shifts is not None:
        if orders is not None and len(orders) > 1:
            moves = [tuple(integers(part, "shifts")) for part in shifts.split(";") if part.strip()]
        else:
            moves = list(integers(shifts.replace(";", ","), "shifts"))
    rows = None if pairs is None else [integers(part.replace("-", ","), "pairs") for part in pairs.split(",")]
    contents = read(file)
    return contents, contents.related(sizes=orders, shifts=moves, max_shift=max_shift, directed=directed, pairs=rows)


def _plain(value: object) -> str:
    """Anything a file says as at most 200 printable characters."""
    return "".join(c if c.isprintable() else "?" for c in str(value)[:200])


def _number(value: float | None) -> float | str | None:
    return "inf" if value == float("inf") else value
