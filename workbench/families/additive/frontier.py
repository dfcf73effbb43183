"""The trade-off of noise on all integers or reals: its cost against ε, δ and the number of runs.

curve       what a row is
point       the certified design; its bound: no such noise (for many runs: symmetric noise) costs less
limit       that bound, as a curve of its own
baseline    known noise at the same budget, in floating point (`workbench.families.additive.beside`)
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, cast

from workbench.families.additive.beside import beside
from workbench.families.additive.request import AdditiveRequest
from workbench.families.base import Request
from workbench.families.frontier_plan import Plan, Plots, Row, Task, design_row
from workbench.families.frontier_plots import Series, all_series, lines
from workbench.mechanisms.real_noise import RealNoise

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

__all__ = ["plan"]

_OURS, _BOUND = "this design", "proven bound"
_AXES = {"runs": "runs under one budget", "epsilon": "ε", "delta": "δ"}
_SERIES = {
    _OURS: Series("ours, certified", 0),
    _BOUND: Series("proven lower bound", 6, ":"),
    "geometric": Series("geometric", 1, "--"),
    "discrete Gaussian": Series("discrete Gaussian", 2, "--"),
    "truncated geometric": Series("truncated geometric", 3, "--"),
    "staircase (pure)": Series("staircase (pure)", 4, "--"),
    "Laplace (pure)": Series("Laplace (pure)", 1, "--"),
    "Gaussian": Series("Gaussian", 2, "--"),
    "truncated Laplace": Series("truncated Laplace", 3, "--"),
}
_FIGURES = 4  # of one axis


def plan(question: Any, points: Sequence[tuple[Row, Request]], *, baselines: bool = True) -> Plan:
    """The plan of a frontier. points: (columns that name a point, its request)."""
    tasks: list[Task] = [partial(_rows, row, cast(AdditiveRequest, request), baselines) for row, request in points]
    clamp = getattr(question, "clamp", None)
    values = "reals" if isinstance(question, RealNoise) else "integers"
    ends = "" if clamp is None else f", clamped to {clamp[0]}..{clamp[1]}"
    title = f"Noise on all {values}{ends}, sensitivity {float(question.sensitivity):g}"
    return Plan(title, tasks, lambda table: _draw(table, title))


def _rows(known: Row, request: AdditiveRequest, baselines: bool) -> Iterable[Row]:
    row = design_row(lambda: request.family.open(request).design(), curve="point", mechanism=_OURS, **known)
    rows = [row]
    if row.get("bound") is not None:
        rows.append({**known, "curve": "limit", "mechanism": _BOUND, "objective": row["bound"], "bound": row["bound"]})
    if baselines:
        rows += [{**known, "curve": "baseline", "mechanism": name, "objective": cost} for name, cost in beside(request)]
    return rows


def _draw(table: pd.DataFrame, title: str) -> Plots:
    """The cost along every axis that has several values, one figure for each pair of the others' values."""
    plots: dict[str, Callable[[], Figure | None]] = {}
    if table.empty or "runs" not in table:
        return plots
    for axis, label in _AXES.items():
        others = [name for name in _AXES if name != axis]
        groups = [(values, rows) for values, rows in table.groupby(others) if rows[axis].nunique() > 1]
        for k, (values, rows) in enumerate(groups[:_FIGURES]):
            at = ", ".join(f"{_AXES[name].split()[0]} = {value:g}" for name, value in zip(others, values, strict=True))
            unit = f"{rows['cost'].iloc[0]} cost of one run"
            drawn = rows.groupby("mechanism")[axis].nunique()
            series = {name: look for name, look in all_series(_SERIES, rows).items() if drawn.get(name, 0) > 1}
            plots[f"cost_{axis}" + (f"_{k + 1}" if k else "")] = partial(
                lines, rows, axis, label, unit, "mechanism", series, f"{title}\n{at}", log_x=True
            )
    return plots
