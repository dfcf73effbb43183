"""Summarise the runs of a suite in a table of solvers, a performance profile and scatter plots.

    shifted geometric mean  exp(mean ln(t + 10 ms)) - 10 ms over all instances of a kind. A failure
                            counts as the time limit.
    performance profile     Dolan and Moré 2002: share of instances that a solver solves within τ
                            times the seconds of the fastest solver. A failure is infinitely slow.

"Solved" means optimal, feasible and within 1e-6 of the best bound of all solvers
(`workbench.comparison.run.add_verdicts`). A solver is recommended if it solves and certifies most
instances. Equal solvers are compared by these criteria, in this order:

1. the gap of the certified loss, rounded down to a power of ten that is at least EXACT_GAP,
2. the seconds plus 10 ms; times up to twice the smallest one are equal,
3. the position in the list of `workbench doctor`.

To add a column of the runs, add its name to COLUMNS, and its value in `run` or `worker`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from workbench.exact.objects import FloatPair, Record, Values
from workbench.io.drawing import Drawing, draw_declared_figure, read_toml_resource
from workbench.io.figures import COLOURS, DASHES, MARKERS, PAGE_INCHES
from workbench.io.result import table_records
from workbench.solvers.backend import list_backend_names

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from workbench.io.result import Plots, Row


FIGURES = read_toml_resource("workbench.comparison", "figures.toml")
# Residuals and gaps of at most this are rounding errors.
EXACT_GAP = 1e-9
# These seconds are added to every time before a geometric mean, so that short times count less.
SHIFT_SECONDS = 0.01
# Shifted seconds whose ratio is at most this count as equal.
_EQUAL_SECONDS_RATIO = 2.0
# In profiles and plots, shorter times are replaced by this, in seconds.
MIN_SECONDS = 1e-3
# Smaller residuals and gaps are drawn at this value, because a logarithmic axis has no 0.
_MIN_DRAWN_VALUE = 1e-17
_MIN_FALSE_GAP = 1e-2  # An answer with a larger gap is false, and its status is shown beside it.
_SCATTER_MARGIN = 0.05  # Share of the height and width of a panel that its points leave free.

# Columns of the runs.
COLUMNS = (
    # The program: its kind is "LP" or "MILP", and it has this many rows and columns.
    "instance",
    "model",
    "kind",
    "rows",
    "columns",
    # The run: its status is the termination, or what stopped it (`run_one`). `add_verdicts` decides
    # whether it is solved.
    "solver",
    "version",
    "status",
    "solved",
    # The median of the seconds over the repeats, and their quartiles.
    "seconds",
    "seconds_low",
    "seconds_high",
    "repeats",
    # The options of the solver, and the largest memory of the process in megabytes.
    "threads",
    "tolerance",
    "peak_mb",
    # The answer as returned, its gap and the best of all solvers (`add_verdicts`). The residual
    # is the largest violation of a row or bound.
    "objective",
    "bound",
    "gap",
    "best_objective",
    "best_bound",
    "gap_to_best",
    "contradicted",
    "residual",
    # The exact verdict on the answer as a mechanism (`pipeline.programs.Judged`).
    "claimed_epsilon",
    "exact_epsilon",
    "claimed_delta",
    "exact_delta",
    "private",
    "certified",
    "certified_objective",
    "certified_gap",
    # The work of the solver.
    "iterations",
    "nodes",
    # Texts: options that the solver does not support, why the answer is no mechanism, the error.
    "left_out",
    "judgement",
    "failure",
)


def compute_shifted_mean(seconds: Any) -> float:
    """Return the shifted geometric mean of times, in seconds (see the module).

    Args:
        seconds: times in seconds, >= 0, at least one.
    """
    shifted_seconds = np.asarray(seconds, dtype=float) + SHIFT_SECONDS
    return float(np.exp(np.log(shifted_seconds).mean()) - SHIFT_SECONDS)


def summarise_runs(table: pd.DataFrame, time_limit: float) -> pd.DataFrame:
    """Return one row per kind of program and solver: how much it solves, how fast and how well.

    Args:
        table: rows of `workbench.comparison.run.run_suite`.
        time_limit: seconds that count for a failure.

    Returns:
        A table with the columns kind, solver, instances, solved, shifted_mean_seconds, ratio (of
        the means plus SHIFT_SECONDS, to the fastest solver), most_peak_mb, worst_residual,
        worst_gap_to_best, answers (audited mechanisms), private_as_returned, certified,
        worst_certified_gap and not_solved (a text).
        If hot solves were measured, also hot_instances and their mean cold and hot seconds.
        Programs of one kind are together, the fastest solver first.
    """
    ran = table[table["status"] != "not applicable"]
    rows = [
        {"kind": kind, "solver": solver, **_summarise_solver(part, time_limit)}
        for (kind, solver), part in ran.groupby(["kind", "solver"], sort=False)
    ]
    summary = pd.DataFrame(rows)
    fastest = summary.groupby("kind")["shifted_mean_seconds"].transform("min")
    ratio = (summary["shifted_mean_seconds"] + SHIFT_SECONDS) / (fastest + SHIFT_SECONDS)
    summary.insert(5, "ratio", ratio)
    ordered_summary = summary.sort_values(["kind", "shifted_mean_seconds"], kind="stable")
    return ordered_summary.reset_index(drop=True)


def _summarise_solver(part: pd.DataFrame, time_limit: float) -> Row:
    """Return the columns of one solver on one kind of program."""
    times = np.where(part["solved"], part["seconds"].astype(float), time_limit)
    audited_rows = part["private"].dropna()
    points = part[part["residual"].notna()]
    return {
        "instances": len(part),
        "solved": int(part["solved"].sum()),
        "shifted_mean_seconds": compute_shifted_mean(np.minimum(times, time_limit)),
        "most_peak_mb": part["peak_mb"].max(),
        **_summarise_hot_solves(part),
        "worst_residual": points["residual"].max(),
        "worst_gap_to_best": points["gap_to_best"].max(),
        "answers": len(audited_rows),
        "private_as_returned": int(audited_rows.eq(True).sum()),
        "certified": int(part["certified"].eq(True).sum()),
        "worst_certified_gap": part["certified_gap"].astype(float).max(),
        "not_solved": _describe_failures(part),
    }


def _describe_failures(part: pd.DataFrame) -> str:
    """Count the instances that are not solved, by status."""
    statuses = part.loc[~part["solved"].astype(bool), "status"]
    # A solver may claim an optimum that the recomputed residuals or the other bounds do not allow.
    labels = statuses.replace("optimal", "claimed optimal only")
    return ", ".join(f"{count} {status}" for status, count in labels.value_counts().items())


def choose_preferred(rows: Sequence[Row], gap: str, seconds: str) -> Row:
    """Choose a solver by the three criteria of the module header.

    Args:
        rows: one row per solver, at least one.
        gap: name of the column with the gap.
        seconds: name of the column with the seconds.

    Returns:
        The row of the chosen solver.
    """
    powers = [_compute_gap_power(row[gap]) for row in rows]
    best_power = min(powers)
    accurate_rows = [row for row, power in zip(rows, powers, strict=True) if power == best_power]
    times = [_shift_seconds(row.get(seconds)) for row in accurate_rows]
    time_limit = _EQUAL_SECONDS_RATIO * min(times)
    fast_rows = [row for row, time in zip(accurate_rows, times, strict=True) if time <= time_limit]
    return min(fast_rows, key=_get_position)


def _compute_gap_power(gap: float | None) -> float:
    """Return the exponent of the power of ten at or below a gap. It is inf for an unknown gap."""
    if gap is None or not gap >= 0:
        return math.inf
    return math.floor(math.log10(max(gap, EXACT_GAP)))


def _shift_seconds(seconds: float | None) -> float:
    """Return seconds plus SHIFT_SECONDS. Unknown seconds are infinite."""
    if seconds is None:
        return math.inf
    return seconds + SHIFT_SECONDS


def _get_position(row: Row) -> int:
    """Return the position of a row's solver in the list of `workbench doctor`."""
    backends = list_backend_names()
    if row["solver"] in backends:
        return backends.index(row["solver"])
    return len(backends)


def _summarise_hot_solves(part: pd.DataFrame) -> dict[str, float]:
    """Return shifted means of the cold and the hot solve over the instances that have both."""
    if "hot_seconds" not in part:
        return {}
    solved_twice = part[part["hot_seconds"].notna() & part["solved"].astype(bool)]
    cold = float("nan")
    hot = float("nan")
    if not solved_twice.empty:
        cold = compute_shifted_mean(solved_twice["seconds"].astype(float))
        hot = compute_shifted_mean(solved_twice["hot_seconds"].astype(float))
    return {
        "hot_instances": len(solved_twice),
        "their_cold_seconds": cold,
        "their_hot_seconds": hot,
    }


def compute_profile(table: pd.DataFrame) -> dict[str, tuple[np.ndarray, np.ndarray]]:
    """Compute the performance profile of every solver for one kind of program.

    Instances that no solver solves count in the shares. Times below MIN_SECONDS count as equal.

    Args:
        table: rows of the runs of one kind.

    Returns:
        Solver -> (increasing ratios of its seconds to those of the fastest solver, share of the
        instances that it solves within each ratio).
    """
    seconds = table["seconds"].astype(float).clip(lower=MIN_SECONDS)
    times = table.assign(time=np.where(table["solved"], seconds, np.inf))
    grid = times.pivot_table(
        index="instance", columns="solver", values="time", aggfunc="first", dropna=False
    )
    grid = grid.fillna(np.inf)
    curves = {}
    for solver, ratios in grid.div(grid.min(axis="columns"), axis="index").items():
        finite_ratios = np.sort(ratios[np.isfinite(ratios)].to_numpy())
        shares = np.arange(1, finite_ratios.size + 1) / len(grid)
        curves[str(solver)] = finite_ratios, shares
    return curves


def draw_profile(table: pd.DataFrame) -> Figure:
    """Draw the performance profiles of LPs and MILPs.

    Args:
        table: rows of `workbench.comparison.run.run_suite`.
    """
    ran = table[table["status"] != "not applicable"]
    parts = [
        frame
        for kind, part in ran.groupby("kind")
        for frame in _make_profile_steps(str(kind), part)
    ]
    drawing = Drawing(FIGURES["profile"], styles=_assign_styles(ran))
    return draw_declared_figure(drawing, pd.concat(parts))


def _make_profile_steps(kind: str, runs: pd.DataFrame) -> list[pd.DataFrame]:
    """Return the points of the profile of every solver, from ratio 1 to a common last ratio."""
    curves = compute_profile(runs)
    largest_ratios = [float(ratios[-1]) for ratios, _ in curves.values() if ratios.size]
    last_ratio = max([2.0, *largest_ratios]) * 1.2
    columns = {"kind": kind, "instances": runs["instance"].nunique()}
    frames = []
    for solver, (ratios, shares) in curves.items():
        steps = {
            "solver": solver,
            "ratio": [1.0, *ratios, last_ratio],
            "share": [0.0, *shares, max(shares, default=0.0)],
        }
        frames.append(pd.DataFrame({**columns, **steps}))
    return frames


def _assign_styles(table: pd.DataFrame) -> Values:
    """Return a style for every solver, the same in every figure."""
    styles = {}
    for position, solver in enumerate(dict.fromkeys(table["solver"])):
        # When all colours are used, the markers start one later, so that no pair is repeated.
        marker = position + position // len(COLOURS)
        styles[solver] = {
            "colour": position % len(COLOURS),
            "marker": MARKERS[marker % len(MARKERS)],
            "linestyle": DASHES[position % len(DASHES)],
            "label": solver,
        }
    return {"solver": styles}


def draw_scatter(table: pd.DataFrame) -> Figure:
    """Draw three rows of scatter plots, with one panel for each solver.

    The rows show the seconds of each solver against those of HiGHS, the gap against the residual,
    and the gap of certified losses against the gap of returned losses. Grey points are those of the
    other solvers. Without HiGHS among the solvers, the first solver replaces it.

    Args:
        table: rows of `workbench.comparison.run.run_suite`.
    """
    ran = table[table["status"] != "not applicable"]
    reference = str(ran["solver"].iloc[0])
    if (ran["solver"] == "highs").any():
        reference = "highs"
    points = _make_scatter_points(ran, reference)
    declaration = FIGURES["scatter"]
    # The order is that of the runs. Solvers without points have no panels, unless all have none.
    has_points = ran["solver"].isin(points["solver"])
    solvers = [*dict.fromkeys(ran["solver"][has_points | (not has_points.any())])]
    panels = []
    for kind, labels in declaration["kinds"].items():
        rows = points[points["panel"] == kind]
        texts = {name: label.format(reference=reference) for name, label in labels.items()}
        for position, solver in enumerate(solvers):
            panel = _declare_scatter_panel(kind, solver, rows, is_first=position == 0)
            if position == 0:
                panel["set"]["ylabel"] = texts["ylabel"]
            if position == len(solvers) // 2:
                panel["set"]["xlabel"] = texts["xlabel"]
            if kind == next(iter(declaration["kinds"])):
                panel["title"] = solver.replace(":", ":\n")
            panels.append(panel)
    figure = {
        "columns": len(solvers),
        "width": PAGE_INCHES,
        "height": declaration["height"],
        "panels": panels,
    }
    return draw_declared_figure(Drawing(figure), points)


def _declare_scatter_panel(kind: str, solver: str, rows: pd.DataFrame, *, is_first: bool) -> Record:
    """Declare the panel of a solver in one row of the scatter plots.

    Args:
        kind: row of the figure: "seconds", "answers" or "certified".
        solver: name of the solver, whose points are coloured.
        rows: points of all solvers in this row of the figure, with the columns x, y and solver.
        is_first: whether the panel is the first one of its row.
    """
    is_own = rows["solver"] == solver
    dots: Record = {"x": "x", "y": "y", "marker": "o", "linestyle": "none", "markersize": 2}
    series: list[Record] = [
        {**dots, "rows": rows[~is_own], "colour": "#cccccc", "markersize": 1.2},
        {**dots, "rows": rows[is_own], "colour": 0, "alpha": 0.8},
    ]
    properties: Record = {}
    for name in ("x", "y"):
        low, high = _find_decades(rows[name])
        margin = (high / low) ** _SCATTER_MARGIN
        properties[f"{name}scale"] = "log"
        properties[f"{name}lim"] = (low / margin, high * margin)
        properties[f"{name}ticks"] = [low, high]
    # Panels of a row have the same axes, so only the first one shows the numbers of y.
    if not is_first:
        properties["yticklabels"] = []
    if kind == "answers":
        is_false = is_own & (rows["y"] > _MIN_FALSE_GAP)
        # The text may reach into the next panel, which is no reason to move the panels apart.
        text = {"kind": "text", "text": "“{status}”", "in_layout": False, "fontsize": 6}
        series.append({**text, "rows": rows[is_false], "x": "x", "y": "y", "offset": [3, 3]})
    else:
        numbers = rows[["x", "y"]].to_numpy(float)
        low = numbers.min(initial=1.0)
        high = numbers.max(initial=1.0)
        ends = pd.DataFrame({"x": [low, high], "y": [low, high]})
        series.append({"rows": ends, "x": "x", "y": "y", "colour": "#999999", "linewidth": 0.8})
    return {"series": series, "set": properties}


def _find_decades(values: pd.Series[float]) -> FloatPair:
    """Return the powers of ten around some values."""
    if values.empty:
        return 1.0, 10.0
    low = math.floor(math.log10(values.min()))
    high = math.ceil(math.log10(values.max()))
    return 10.0**low, 10.0 ** max(high, low + 1)


def _make_scatter_points(ran: pd.DataFrame, reference: str) -> pd.DataFrame:
    """Return the points of the three rows of the figure. The column "panel" names the row."""
    seconds = ran["seconds"].astype(float).clip(lower=MIN_SECONDS)
    is_reference = ran["solver"] == reference
    reference_seconds = seconds.set_axis(ran["instance"])[is_reference.to_numpy()]
    is_compared = ran["solved"].astype(bool) & ~is_reference
    pairs = {
        "seconds": (ran["instance"].map(reference_seconds).where(is_compared), seconds),
        "answers": (ran["residual"], ran["gap_to_best"]),
        "certified": (ran["gap_to_best"], ran["certified_gap"]),
    }
    columns = ran[["solver", "status"]]
    panels = [
        columns.assign(panel=panel, x=x.astype(float), y=y.astype(float)).dropna()
        for panel, (x, y) in pairs.items()
    ]
    points = pd.concat(panels)
    points[["x", "y"]] = points[["x", "y"]].clip(lower=_MIN_DRAWN_VALUE)
    return points


def make_suite_plots(table: pd.DataFrame) -> Plots:
    """Return the plots of a table of runs.

    Args:
        table: rows of `workbench.comparison.run.run_suite`.
    """
    if (table["status"] == "not applicable").all():
        return {}
    return {
        "performance_profile": partial(draw_profile, table),
        "scatter": partial(draw_scatter, table),
    }


def recommend_by_kind(table: pd.DataFrame) -> tuple[str, ...]:
    """Write one sentence for each kind of program that recommends a solver.

    Args:
        table: table of `summarise_runs`.
    """
    return tuple(
        _recommend_for_kind(str(kind), part) for kind, part in table.groupby("kind", sort=False)
    )


def _recommend_for_kind(kind: str, part: pd.DataFrame) -> str:
    """Write the sentence that recommends a solver for one kind of program."""
    counts = list(zip(part["solved"], part["certified"], strict=True))
    best_counts = max(counts)
    _, best_certified_count = best_counts
    records = table_records(part)
    equals = [row for row in records if (row["solved"], row["certified"]) == best_counts]
    gap = "worst_certified_gap" if best_certified_count else "worst_gap_to_best"
    best = choose_preferred(equals, gap, "shifted_mean_seconds")
    if not best["solved"]:
        return f"For {kind}s no solver can be recommended: none solved any of them."
    privacy = ""
    if best["answers"]:
        privacy = (
            f"{best['certified']} of its {best['answers']} answers are certified "
            f"({best['private_as_returned']} private as returned), "
        )
    return (
        f"For {kind}s use {best['solver']}: it solved {best['solved']} of {best['instances']}, "
        f"{privacy}at {best['ratio']:.3g} times the seconds of the fastest."
    )
