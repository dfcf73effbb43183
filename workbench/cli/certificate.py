"""`workbench audit`, `check`, `sample` and `compose`: what can be done with a mechanism file alone."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.text import Text

from workbench.cli.console import Report, emit_json, make_facts_grid, make_table
from workbench.cli.output_paths import Outputs, check_outputs, write_output
from workbench.data.parameter_grid import read_integers
from workbench.errors import CorruptFile, NotCertified, must
from workbench.exact.numbers import read_positive, to_jsonable
from workbench.exact.objects import Record
from workbench.exact.time_limit import OutOfTime, limit_cpu_time

if TYPE_CHECKING:
    from workbench.mechanisms.mechanism import Mechanism
    from workbench.privacy.loading import FileContents


_CHECK_SECONDS = 9  # After so much CPU time `check` leaves a file undecided.
_NOTED = 40  # recorded entries shown
_SAFE = (
    "Proven. Safe: for adaptive runs, over all neighbours of the mechanism, which may be others in every run. At "
    "least: for neighbours that stay the same."
)
_SEVERAL = " Of several, somebody is protected who changes each input by a pair of its mechanism's neighbours."
_ONE_SIDED = (
    " Neighbours are one-sided: real ones go both ways, and the other way was not compared."
)


def audit(
    file: Path,
    *,
    epsilon: str | None,
    given: list[str] | None,
    loss: str | None,
    data: str | None,
    risk: bool,
    prior: str,
    **more: Any,
) -> Report:
    """The exact privacy of any mechanism: pure ε, PDP and DP δ at a budget, the worst neighbours; its loss and risk."""
    from workbench.mechanisms.baselines.named_quantizers import QUANTIZER_PARAMETERS

    outputs = Outputs({"mechanism": file}, more)
    certificate, published = None, Record()
    if str(file) in QUANTIZER_PARAMETERS and not file.exists():
        mechanism, published = _published(str(file), given or [])
    else:
        if given:
            must("with", f"given for {', '.join(QUANTIZER_PARAMETERS)} alone", given[0])
        contents, mechanism = _open(file, **more)
        certificate = contents.certificate
    from workbench.privacy.audit import audit

    budget = None if epsilon is None else read_positive(epsilon, "epsilon", or_zero=True)
    privacy = audit(certificate or mechanism, budget, loss=loss, data=data)
    claim = certificate.claim if certificate else None
    values = {
        "file": file.name,
        **privacy.to_dict(),
        **published,
        "certified": claim and claim.notion.name,
    }
    rows = privacy.facts() + [
        (name.replace("_", " "), repr(value)) for name, value in published.items()
    ]
    if risk:
        from workbench.privacy.risk import risk as measure_risk

        learnt = measure_risk(mechanism, prior)
        values |= learnt.to_dict()
        rows += learnt.facts()[1:]
        outputs.write(learnt, claim=claim)
    else:
        outputs.write(privacy)
    if certificate:
        rows.append(("certificate", certificate.sentences[1]))
    if html := outputs["html file"]:
        from workbench.explorer.page import build_audit_page, write_page

        write_page(html, build_audit_page(mechanism, rows, claim if epsilon is None else None))
    return Report(
        {name: to_jsonable(value) for name, value in values.items()}, [make_facts_grid(rows)]
    )


def _published(name: str, given: Sequence[str]) -> tuple[Any, Record]:
    """A published quantizer by its name and NAME=VALUE parameters, and what was published about it."""
    from workbench.mechanisms.baselines.named_quantizers import (
        build_named_quantizer,
        published_bounds,
    )

    parameters = {}
    for text in given:
        parameter, equals, value = text.partition("=")
        if not equals:
            must("with", "NAME=VALUE", text)
        parameters[parameter.strip()] = (
            int(value) if parameter == "levels" and value.isdecimal() else value.strip()
        )
    mechanism = build_named_quantizer(name, **parameters)
    printed = {
        f"published_{key}": value
        for key, value in published_bounds(name, mechanism, parameters).items()
    }
    return mechanism, {"mae_51": mechanism.mae_51, **printed}


def check(file: Path | None, *, write_checker: Path | None, kind: str | None) -> Report:
    """Prove a certificate again, from its file alone, and say what is proven; exit code 0 for proven, 1 for
    false, 2 for undecided or unreadable."""
    if write_checker is not None:
        return _write_checker(file, write_checker, kind)
    if kind is not None:
        must("kind", "given with --write-checker", kind)
    if file is None:
        must("FILE", "given", "none")
    return _check(file)


def _write_checker(file: Path | None, target: Path, kind: str | None) -> Report:
    """Write the independent checker of certificates or of formulas. file: a file that it is to fit."""
    from workbench.io.files import parse_json, read_text
    from workbench.io.records import FORMULA_FORMAT
    from workbench.privacy.certificate_file import read_checker_source

    if kind not in (None, "certificate", "formula"):
        must("kind", "certificate or formula", kind)
    if file is not None:
        data = parse_json(read_text(file))
        fitting = (
            "formula"
            if isinstance(data, dict) and data.get("format") == FORMULA_FORMAT
            else "certificate"
        )
        if kind not in (None, fitting):
            must("kind", f"{fitting}, as {file.name} is a file of that kind", kind)
        kind = fitting
    kind = kind or "certificate"
    check_outputs({"file": file}, {"checker": target})
    write_output(target, read_checker_source(kind))
    words = f"Wrote {_plain(target.name)}, the checker of a {kind}: any Python since 3.8 runs it, without packages."
    return Report({"checker": str(target), "kind": kind}, [words])


def _check(file: Path) -> Report:
    """Prove a file again within a limit of CPU time."""
    from workbench.notions.notion import limit_work
    from workbench.privacy.audit_work import MAX_WORK_UNITS
    from workbench.privacy.certificate import Certificate
    from workbench.privacy.certificate_file import check as prove

    try:
        with limit_cpu_time(_CHECK_SECONDS), limit_work(MAX_WORK_UNITS):
            proven = prove(file)
            words = proven.sentences if isinstance(proven, Certificate) else proven.words
    except (
        CorruptFile
    ) as error:  # 1 for a file that is false, 2 for one that cannot be read or decided
        error.exit_code = 1 if isinstance(error.__cause__, NotCertified) else 2
        raise
    except OutOfTime:
        sentence = (
            f"{_plain(file.name)} cannot be decided within {_CHECK_SECONDS} seconds of CPU time."
        )
        raise CorruptFile(f"{sentence} workbench.check in Python has no limit.") from None
    except (ArithmeticError, MemoryError, RecursionError) as error:
        raise CorruptFile(
            f"{_plain(file.name)} cannot be decided: {type(error).__name__}."
        ) from None
    record = getattr(proven, "record", {})

    def shown() -> Iterator[Any]:
        yield Text(f"Proven from {_plain(file.name)} alone, in exact arithmetic:", style="bold")
        yield from (f"  {sentence}" for sentence in words)
        if record:
            yield "Recorded, not proven:"
            yield make_facts_grid(
                [(f"  {_plain(key)}", _plain(value)) for key, value in record.items()][:_NOTED]
            )

    values = {"file": file.name, "proven": True, "words": list(words)}
    if not isinstance(proven, Certificate):  # the file of a formula
        return Report(values | proven.to_dict(), shown())
    composed = {"composed": proven.composed.to_dict()} if proven.composed else {}
    return Report(
        {**values, "claim": proven.claim.to_dict(), **composed, "not_proven": dict(record)}, shown()
    )


def sample(
    file: Path, *, count: int, answer: str | None, insecure_seed: int | None, json: bool
) -> None:
    """Draw from a mechanism, exactly distributed, with randomness of the operating system; one draw a line."""
    if not 0 <= count <= 100_000_000:
        must("count", "an integer in 0..100000000", count)
    if json and count > 1_000_000:
        must("count", "at most 1000000 with --json", count)
    from workbench.data.csv_column import list_with_integers
    from workbench.mechanisms.mechanism import sample as draw
    from workbench.privacy.loading import read_mechanism_file

    contents = read_mechanism_file(file)
    subject = contents.certificate or contents.mechanism
    point: Any = answer
    mechanism = contents.mechanism
    inputs = getattr(mechanism, "column_inputs", None)
    is_spelled = (  # The mechanism reads the text itself, exactly.
        getattr(mechanism, "axis_labels", None) is not None
        or getattr(mechanism, "segments", ()) != ()
        or (inputs is not None and not inputs.is_whole)
    )
    if answer is not None and not is_spelled:
        parts = read_integers(answer, "answer")
        point = parts[0] if len(parts) == 1 else tuple(parts)
    values = draw(subject, count, answer=point, insecure_seed=insecure_seed)
    if json:
        emit_json(
            {
                "file": file.name,
                "secure": insecure_seed is None,
                "draws": list_with_integers(values),
            }
        )
        return
    for start in range(0, count, 65536):
        part = list_with_integers(values[start : start + 65536])
        lines = (",".join(map(str, row)) if isinstance(row, list) else str(row) for row in part)
        sys.stdout.write("".join(f"{line}\n" for line in lines))


def compose(
    file: list[Path],
    *,
    times: str,
    delta: str | None,
    epsilon: str | None,
    interval: float,
    **relation: Any,
) -> Report:
    """What many runs of one mechanism or several cost together, between proven bounds."""
    mechanisms = [_open(path, **relation)[1] for path in file]
    from workbench.privacy.composition import compose as run

    several = len(file) > 1
    names = [path.name for path in file]
    subject, named = (mechanisms, names) if several else (mechanisms[0], names[0])
    composed = run(subject, times, delta=delta, epsilon=epsilon, interval=interval)
    limits = {
        name: getattr(composed, name) for name in ("epsilon", "epsilon_low", "delta", "delta_low")
    }
    heads = ["runs", "ε (safe)", "ε (at least)", "δ (safe)", "δ (at least)"]
    counts = composed.times if isinstance(composed.times, tuple) else [composed.times]
    cells = [" + ".join(map(str, counts)), *limits.values()]
    caption = _SAFE + _SEVERAL * several + _ONE_SIDED * composed.is_one_sided
    shown = make_table("Composition", heads, [cells], caption=caption)
    values = {name: to_jsonable(value) for name, value in limits.items()} | {
        "one_sided": composed.is_one_sided
    }
    return Report({"file": named, "times": to_jsonable(composed.times), **values}, [shown])


def _open(
    file: Path,
    sizes: str | None,
    shifts: str | None,
    max_shift: int | None,
    pairs: str | None,
    directed: bool = False,
) -> tuple[FileContents, Mechanism]:
    """A file with its neighbour relation."""
    from workbench.privacy.loading import read_mechanism_file

    orders = None if sizes is None else read_integers(sizes.lower().replace("x", ","), "sizes")
    moves: list[Any] | None = None
    if shifts is not None and orders is not None and len(orders) > 1:
        moves = [tuple(read_integers(part, "shifts")) for part in shifts.split(";") if part.strip()]
    elif shifts is not None:
        moves = list(read_integers(shifts.replace(";", ","), "shifts"))
    rows = (
        None
        if pairs is None
        else [read_integers(part.replace("-", ","), "pairs") for part in pairs.split(",")]
    )
    contents = read_mechanism_file(file)
    return contents, contents.with_neighbours(
        sizes=orders, shifts=moves, max_shift=max_shift, directed=directed, pairs=rows
    )


def _plain(value: object) -> str:
    """Anything a file says as at most 200 printable characters."""
    return "".join(c if c.isprintable() else "?" for c in str(value)[:200])
