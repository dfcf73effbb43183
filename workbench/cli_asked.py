"""The options by which commands ask for noise, and what is made of their words."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from workbench.errors import InvalidRequest
from workbench.mechanisms.modulo import ModuloNoise

__all__ = ["asked_question", "asked_request", "integers", "output_file"]

N = Annotated[int | None, typer.Option("--n", help="Scalar query with answers 0..n.")]
Sizes = Annotated[str | None, typer.Option(help='Vector query: orders of its coordinates, "5x5".')]
Shifts = Annotated[
    str | None, typer.Option(help='How neighbouring answers differ: "1,2,3", for vectors "0,1;1,0".')
]  # fmt: skip
MaxShift = Annotated[int | None, typer.Option(help="All differences 1..MAX_SHIFT (instead of --shifts).")]
Directed = Annotated[bool, typer.Option("--directed", help="Only the given sign of the differences, as the paper.")]
Epsilon = Annotated[str, typer.Option(help='Privacy budget > 0; "1=0.5,2=1" gives each difference its own.')]
Delta = Annotated[str | None, typer.Option(help="In [0, 1]; 0 by default. With --minimise delta: an upper limit.")]
Notion = Annotated[str, typer.Option(help="pdp, dp or pure.")]
Cost = Annotated[
    str,
    typer.Option(help="error-rate, squared, eta-squared, circular-squared, prior-squared or worst-squared."),
]
Minimise = Annotated[str, typer.Option(help="error, or delta for a given --budget.")]
Budget = Annotated[str | None, typer.Option(help="Largest cost allowed, with --minimise delta.")]
Prior = Annotated[Path | None, typer.Option(help="CSV with N probabilities of the true answer (cost prior-squared).")]
ZeroMean = Annotated[bool, typer.Option("--zero-mean", help="Require noise of mean zero.")]
Equal = Annotated[str | None, typer.Option(help='Require equal masses: "1=8,2=7" (row-major noise values).')]
TimeLimit = Annotated[float | None, typer.Option(help="Seconds.")]
Gap = Annotated[float | None, typer.Option(help="Relative MILP gap at which the solver may stop.")]
Seed = Annotated[int | None, typer.Option(help="Of the solver.")]
Method = Annotated[str, typer.Option(help="fast, or literal: PDP with delta > 0 as the printed MILP.")]


def asked_question(
    n: int | None, sizes: str | None, shifts: str | None, max_shift: int | None, directed: bool
) -> ModuloNoise:
    """The question that the options of a noise command spell. Raises InvalidRequest."""
    orders = None if sizes is None else integers(sizes.lower().replace("x", ","), "sizes")
    given: list[Any] | None = None
    if shifts is not None:
        if orders is not None and len(orders) > 1:
            given = [tuple(integers(part, "shifts")) for part in shifts.split(";") if part.strip()]
        else:
            given = list(integers(shifts.replace(";", ","), "shifts"))
    return ModuloNoise(n=n, sizes=orders, shifts=given, max_shift=max_shift, directed=directed)


def output_file(path: Path, name: str, endings: tuple[str, ...] = ()) -> None:
    """Refuse a place that cannot be written before anything is computed."""
    if endings and path.suffix.lower() not in endings:
        InvalidRequest.must(name, f"named {', '.join(endings[:-1])} or {endings[-1]}", path.name)
    if not path.absolute().parent.is_dir():
        InvalidRequest.must("output folder", "an existing folder", path.parent)
    if path.is_dir():
        InvalidRequest.must(name, "a file", f"the folder {path.name}")


def integers(text: str, name: str) -> list[int]:
    """Integers separated by commas; none for an empty text."""
    try:
        return [int(part) for part in text.split(",")] if text.strip() else []
    except ValueError:
        InvalidRequest.must(name, "integers", repr(text))


def asked_request(
    question: ModuloNoise,
    epsilon: str,
    delta: str | None,
    notion: str,
    cost: str,
    minimise: str,
    budget: str | None,
    prior: Path | None,
    zero_mean: bool,
    equal: str | None,
) -> dict[str, Any]:
    """The request, as `workbench.design_noise.design` takes it."""
    return {
        "epsilon": _epsilon(question, epsilon),
        "delta": delta,
        "notion": notion,
        "cost": cost,
        "minimise": minimise,
        "budget": budget,
        "prior": None if prior is None else _prior(prior),
        "constraints": _constraints(question, zero_mean, equal),
    }


def _epsilon(question: ModuloNoise, text: str) -> Any:
    if "=" not in text:
        return text
    budgets: dict[Any, str] = {}
    for part in text.split("," if question.scalar else ";"):
        shift, _, value = part.partition("=")
        key = tuple(integers(shift, "epsilon's shift"))
        if key in budgets:
            raise InvalidRequest(f"epsilon must give each difference one budget. Got two for {shift.strip()}.")
        budgets[key] = value.strip()
    return budgets


def _prior(path: Path) -> list[float]:
    try:
        cells = path.read_text("utf-8").replace(",", "\n").split()
        return [float(cell) for cell in cells]
    except (OSError, UnicodeDecodeError, ValueError) as error:
        raise InvalidRequest(f"prior must be a readable file of probabilities. Got {path.name}: {error}.") from None


def _constraints(question: ModuloNoise, zero_mean: bool, equal: str | None) -> Any:
    if not zero_mean and equal is None:
        return None
    from workbench import rooms

    rooms.check()
    from models import noise

    makers = [noise.zero_mean(question.sizes)] if zero_mean else []
    if equal is not None:
        groups = [integers(group.replace("=", ","), "equal") for group in equal.split(",")]
        flat = [k for group in groups for k in group]
        if any(len(group) < 2 for group in groups) or not all(0 <= k < question.order for k in flat):
            InvalidRequest.must("equal", f"groups of noise values in 0..{question.order - 1} such as 1=8", repr(equal))
        makers.append(noise.equal_masses(groups))
    return lambda f: [row for make in makers for row in make(f)]
