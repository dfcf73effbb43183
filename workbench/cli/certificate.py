"""The commands `audit`, `check` and `compose`, which need only a mechanism file."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.text import Text

from workbench.cli.console import Report, make_facts_grid, make_table
from workbench.cli.output_paths import Outputs, check_outputs, write_output
from workbench.data.parameter_grid import read_integers
from workbench.errors import CorruptFile, NotCertified, must
from workbench.exact.numbers import read_positive, to_jsonable
from workbench.exact.objects import Record
from workbench.exact.time_limit import OutOfTime, limit_cpu_time

if TYPE_CHECKING:
    from workbench.mechanisms.mechanism import Mechanism
    from workbench.privacy.composition import Composition
    from workbench.privacy.loading import FileContents


# `check` leaves a file undecided after this CPU time.
_CHECK_SECONDS = 9
_DEFAULT_PRIOR = "1/2"  # The default of --prior. Without --risk, no other prior is accepted.
# At most this many entries of a file that are recorded without proof are shown.
_MAX_SHOWN_ENTRIES = 40
# At most this many characters of a value in a file are shown.
_MAX_SHOWN_CHARACTERS = 200
_SAFE_CAPTION = (
    "Proven. Safe: an upper bound for adaptive runs, over all neighbours of the mechanism, which "
    "may differ from run to run. At least: a lower bound, for neighbours that stay the same."
)
_SEVERAL_CAPTION = (
    " With several mechanisms, a person is protected who changes the input of each mechanism to a "
    "neighbour."
)
_ONE_SIDED_CAPTION = (
    " Neighbours are one-sided: only one direction was compared, but a person may change the data "
    "in both."
)


def audit_file(
    file: Path,
    *,
    epsilon: str | None,
    delta: str | None,
    given: list[str] | None,
    loss: str | None,
    data: str | None,
    risk: bool,
    prior: str,
    **options: Any,
) -> Report:
    """Audit a mechanism exactly: its pure ε and its δ.

    With --loss, also its expected loss. With --risk, also what an attacker learns.

    Args:
        file: A mechanism file, or the name of a published quantizer.
        epsilon: ε at which δ is computed. None: the ε of the certificate, or 0.
        delta: δ at which the smallest ε is computed. None: it is not computed.
        given: Parameters NAME=VALUE of a published quantizer.
        loss: Name of the loss to report.
        data: Inputs for the loss.
        risk: Whether to report what an attacker learns.
        prior: Prior probability of one of two neighbours.
        options: Neighbours and output files.
    """
    from workbench.mechanisms.baselines.named_quantizers import QUANTIZER_PARAMETERS
    from workbench.privacy.public_audit import audit

    outputs = Outputs({"mechanism": file}, options)
    if prior != _DEFAULT_PRIOR and not risk:
        must("prior", "left out without --risk", prior)
    certificate = None
    published_values = Record()
    if str(file) in QUANTIZER_PARAMETERS and not file.exists():
        mechanism, published_values = _build_published(str(file), given or [])
    else:
        if given:
            must("with", f"given for {', '.join(QUANTIZER_PARAMETERS)} alone", given[0])
        if not file.exists():
            _refuse_integer_noise(str(file), QUANTIZER_PARAMETERS)
        contents, mechanism = _open_with_neighbours(file, **options)
        certificate = contents.certificate
    budget = None
    if epsilon is not None:
        budget = read_positive(epsilon, "epsilon", or_zero=True)
    privacy = audit(certificate or mechanism, budget, loss=loss, data=data)
    claim = certificate.claim if certificate else None
    values = {
        "file": file.name,
        **privacy.to_dict(),
        **published_values,
        "certified": claim and claim.notion.name,
    }
    rows = privacy.facts()
    if claim is not None and claim.notion.quantity != "pdp_delta":
        # A certificate of another notion makes no statement about PDP. --json has its δ.
        rows = [row for row in rows if row[0] != "exact PDP delta"]
    for name, value in published_values.items():
        text = repr(value)
        if name == "published_epsilon" and value < privacy.pure_epsilon:
            text += " (this printed bound does NOT hold here: the exact epsilon is larger)"
        rows.append((name.replace("_", " "), text))
    if delta is not None:
        from workbench.privacy.composition import compose

        one_run = compose(mechanism, delta=delta)
        values |= {"delta": one_run.delta, "epsilon_at_delta": one_run.epsilon}
        rows.append(
            (f"exact epsilon at delta {one_run.delta:.6g}", f"{one_run.epsilon!r} (rounded up)")
        )
    if risk:
        from workbench.privacy.risk import risk as measure_risk
        from workbench.publishing.mechanism_guarantee import describe_mechanism_guarantee

        measured_risk = measure_risk(mechanism, prior)
        values |= measured_risk.to_dict()
        # The first fact is the mechanism, which the audit has stated already.
        rows += measured_risk.facts()[1:]
        guarantee = describe_mechanism_guarantee(certificate or mechanism)
        if guarantee is not None:
            values["guarantee"] = guarantee.to_dict()
            rows += guarantee.facts()
        outputs.write(measured_risk, claim=claim)
    else:
        outputs.write(privacy)
    if certificate:
        # The first sentence names the mechanism, and the second one states the proven claim.
        rows.append(("certificate", certificate.sentences[1]))
    html = outputs["html file"]
    if html:
        from workbench.explorer.page import build_audit_page, write_page

        write_page(html, build_audit_page(mechanism, rows, claim if epsilon is None else None))
    json_values = {name: to_jsonable(value) for name, value in values.items()}
    return Report(json_values, [make_facts_grid(rows)])


def _refuse_integer_noise(name: str, audited_names: Iterable[str]) -> None:
    """Raise InvalidRequest for a name of geometric noise, which a command designs and saves.

    Args:
        name: A name that is no file.
        audited_names: Names of published mechanisms that can be audited.
    """
    from workbench.mechanisms.baselines.synonyms import SYNONYMS

    if SYNONYMS.get(name.lower(), name.lower()) == "geometric":
        command = "workbench design noise --sensitivity 1 --epsilon 1 --save noise.json"
        rule = f"a file, or one of {', '.join(audited_names)}"
        must("FILE", rule, f"{name}, the geometric noise that `{command}` saves")


def _build_published(name: str, texts: Sequence[str]) -> tuple[Any, Record]:
    """Build a published quantizer from texts NAME=VALUE. Return it with its published values."""
    from workbench.mechanisms.baselines.named_quantizers import (
        build_named_quantizer,
        published_bounds,
    )

    parameters: Record = {}
    for text in texts:
        name_text, equals, value_text = text.partition("=")
        if not equals:
            must("with", "NAME=VALUE", text)
        if name_text.strip() in parameters:
            must("with", "one value for each parameter", text)
        is_count = name_text == "levels" and value_text.isascii() and value_text.isdecimal()
        parameters[name_text.strip()] = int(value_text) if is_count else value_text.strip()
    mechanism = build_named_quantizer(name, **parameters)
    bounds = published_bounds(name, mechanism, parameters)
    return mechanism, {"mae_51": mechanism.mae_51, **bounds}


def check_file(file: Path | None, *, write_checker: Path | None, kind: str | None) -> Report:
    """Check the proof of a certificate or a formula, from the file alone.

    The exit code is 0 if it is proven, 1 if it is false, and 2 if it is undecided or unreadable.

    Args:
        file: A certificate or a formula.
        write_checker: File for an independent checker, which is written instead.
        kind: Kind of the checker.
    """
    if write_checker is not None:
        return _write_checker(file, write_checker, kind)
    if kind is not None:
        must("kind", "given with --write-checker", kind)
    if file is None:
        must("FILE", "given", "none")
    return _prove_file(file)


def _write_checker(file: Path | None, target: Path, kind: str | None) -> Report:
    """Write the independent checker of certificates or of formulas.

    Args:
        file: A file that the checker must check. None: `kind` decides.
        target: File for the source of the checker.
        kind: "certificate" or "formula". None: the kind of `file`, or "certificate" without a file.
    """
    from workbench.io.files import parse_json, read_text
    from workbench.io.records import FORMULA_FORMAT
    from workbench.privacy.certificate_file import read_checker_source

    if kind not in (None, "certificate", "formula"):
        must("kind", "certificate or formula", kind)
    if file is not None:
        data = parse_json(read_text(file))
        is_formula = isinstance(data, dict) and data.get("format") == FORMULA_FORMAT
        file_kind = "certificate"
        if is_formula:
            file_kind = "formula"
        if kind not in (None, file_kind):
            must("kind", f"{file_kind}, as {file.name} is a file of that kind", kind)
        kind = file_kind
    kind = kind or "certificate"
    check_outputs({"file": file}, {"checker": target})
    write_output(target, read_checker_source(kind))
    sentence = (
        f"Wrote {_to_printable(target.name)}, the checker of a {kind}. Any Python since 3.8 runs "
        "it, without packages."
    )
    return Report({"checker": str(target), "kind": kind}, [sentence])


def _prove_file(file: Path) -> Report:
    """Check the proof in a file within a limit of CPU time, and report its sentences.

    Raises CorruptFile with the exit code 1 if it is false, and 2 if it cannot be read or decided.
    """
    from workbench.notions.notion import limit_work
    from workbench.privacy.audit_work import MAX_WORK_UNITS
    from workbench.privacy.certificate import Certificate
    from workbench.privacy.certificate_file import check as prove
    from workbench.publishing.mechanism_guarantee import describe_mechanism_guarantee

    name = _to_printable(file.name)
    try:
        with limit_cpu_time(_CHECK_SECONDS), limit_work(MAX_WORK_UNITS):
            proven = prove(file)
            sentences = proven.sentences
    except CorruptFile as error:
        # The exit code is 1 for a false file, and 2 for one that cannot be read or decided.
        error.exit_code = 2
        if isinstance(error.__cause__, NotCertified):
            error.exit_code = 1
        raise
    except OutOfTime:
        raise CorruptFile(
            f"{name} cannot be decided within {_CHECK_SECONDS} seconds of CPU time. "
            "workbench.check in Python has no limit."
        ) from None
    except (ArithmeticError, MemoryError, RecursionError) as error:
        raise CorruptFile(f"{name} cannot be decided: {type(error).__name__}.") from None
    record = getattr(proven, "record", {})
    entries = [(f"  {_to_printable(key)}", _to_printable(value)) for key, value in record.items()]
    guarantee = None
    if isinstance(proven, Certificate):
        guarantee = describe_mechanism_guarantee(proven)

    def list_parts() -> Iterator[Any]:
        """Yield the lines of the report on a proven file."""
        yield Text(f"Proven from {name} alone, in exact arithmetic:", style="bold")
        yield from (f"  {sentence}" for sentence in sentences)
        if guarantee is not None:
            yield "In plain words:"
            yield from (f"  {sentence}" for sentence in guarantee.sentences)
            yield "Limits:"
            yield from (f"  {sentence}" for sentence in guarantee.limits)
        if entries:
            yield "Recorded, not proven:"
            yield make_facts_grid(entries[:_MAX_SHOWN_ENTRIES])

    values = {"file": file.name, "proven": True, "words": list(sentences)}
    if not isinstance(proven, Certificate):
        # This is the file of a formula.
        return Report(values | proven.to_dict(), list_parts())
    values["claim"] = proven.claim.to_dict()
    if guarantee is not None:
        values["guarantee"] = guarantee.to_dict()
    if proven.composed:
        values["composed"] = proven.composed.to_dict()
    values["not_proven"] = dict(record)
    return Report(values, list_parts())


def compose_files(
    file: list[Path],
    *,
    times: str,
    delta: str | None,
    epsilon: str | None,
    interval: float,
    **options: Any,
) -> Report:
    """Compute proven bounds on the privacy of many runs of one mechanism or several.

    Args:
        file: Mechanism files.
        times: Number of runs, or one number for each file. With one file and several numbers, every
            number is computed.
        delta: δ at which ε is computed.
        epsilon: ε at which δ is computed.
        interval: Step of the finest grid of privacy losses.
        options: Options of the neighbours, the plot file and its width.
    """
    from workbench.privacy.composition import CompositionSeries, compose

    outputs = Outputs({f"file {number}": path for number, path in enumerate(file, 1)}, options)
    mechanisms = _open_all(file, **options)
    is_single = len(file) == 1
    subject: Any = mechanisms[0] if is_single else mechanisms
    all_times: list[Any] = [times]
    if is_single:
        all_times = read_integers(times, "times")
        if not all_times:
            must("times", "one or more numbers of runs", repr(times))
    budget: Record = {"delta": delta, "epsilon": epsilon, "interval": interval}
    results = [compose(subject, run_count, **budget) for run_count in all_times]
    heads = ["runs", "ε (safe)", "ε (at least)", "δ (safe)", "δ (at least)"]
    rows = []
    for result in results:
        counts = result.times if isinstance(result.times, tuple) else [result.times]
        rows.append([" + ".join(map(str, counts)), *_list_limits(result).values()])
    caption = _SAFE_CAPTION
    if not is_single:
        caption += _SEVERAL_CAPTION
    if results[0].is_one_sided:
        caption += _ONE_SIDED_CAPTION
    records = [
        {
            "times": to_jsonable(result.times),
            **{name: to_jsonable(value) for name, value in _list_limits(result).items()},
        }
        for result in results
    ]
    values: Record = {"file": file[0].name if is_single else [path.name for path in file]}
    if len(records) == 1:
        values |= records[0]
    else:
        values["rows"] = records
    values["one_sided"] = results[0].is_one_sided
    outputs.write(results[0] if len(results) == 1 else CompositionSeries(tuple(results)))
    return Report(values, [make_table("Composition", heads, rows, caption=caption)])


def _list_limits(result: Composition) -> dict[str, float]:
    """Return the four bounds of a composition by name."""
    names = ("epsilon", "epsilon_low", "delta", "delta_low")
    return {name: getattr(result, name) for name in names}


def _open_with_neighbours(file: Path, **options: Any) -> tuple[FileContents, Mechanism]:
    """Read a mechanism file, and return its contents and the mechanism with its neighbours.

    The options are those of `_read_neighbour_options`.
    """
    from workbench.privacy.loading import read_mechanism_file

    neighbours = _read_neighbour_options(**options)
    contents = read_mechanism_file(file)
    return contents, contents.with_neighbours(**neighbours)


def _open_all(files: Sequence[Path], **options: Any) -> list[Mechanism]:
    """Read mechanism files, and return the mechanisms with their neighbours.

    The options are those of `_read_neighbour_options`. If only some of the files state their
    neighbours, as certificates do, the options are for the other files.
    """
    from workbench.privacy.loading import read_mechanism_file

    neighbours = _read_neighbour_options(**options)
    all_contents = [read_mechanism_file(file) for file in files]
    has_bare_file = any(not contents.has_neighbours for contents in all_contents)
    mechanisms = []
    for contents in all_contents:
        if contents.has_neighbours and has_bare_file:
            mechanisms.append(contents.with_neighbours())
        else:
            mechanisms.append(contents.with_neighbours(**neighbours))
    return mechanisms


def _read_neighbour_options(
    sizes: str | None,
    shifts: str | None,
    max_shift: str | None,
    pairs: str | None,
    directed: bool = False,
) -> Record:
    """Read --sizes, --shifts, --max-shift, --pairs and --directed for `with_neighbours`.

    They are texts such as "3x3", "0,1;1,0" and "0-1,1-2".
    """
    from workbench.data.groups import read_max_shift

    orders = None
    if sizes is not None:
        orders = read_integers(sizes.lower().replace("x", ","), "sizes")
    differences: list[Any] | None = None
    if shifts is not None and orders is not None and len(orders) > 1:
        vectors = [part for part in shifts.split(";") if part.strip()]
        differences = [tuple(read_integers(vector, "shifts")) for vector in vectors]
    elif shifts is not None:
        differences = list(read_integers(shifts.replace(";", ","), "shifts"))
    row_pairs = None
    if pairs is not None:
        texts = [part.replace("-", ",") for part in pairs.split(",")]
        row_pairs = [read_integers(text, "pairs") for text in texts]
    return {
        "sizes": orders,
        "shifts": differences,
        "max_shift": read_max_shift(max_shift),
        "directed": directed,
        "pairs": row_pairs,
    }


def _to_printable(value: object) -> str:
    """Return the text of a value, cut to _MAX_SHOWN_CHARACTERS, with "?" for unprintable ones."""
    text = str(value)[:_MAX_SHOWN_CHARACTERS]
    return "".join(c if c.isprintable() else "?" for c in text)
