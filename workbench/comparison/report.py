"""What the runs of a suite say: a table of solvers, a performance profile and scatter plots.

    shifted geometric mean      exp(mean ln(t + 10 ms)) - 10 ms over all instances of a kind; a failure counts as the
                                time limit
    performance profile         Dolan and Moré 2002: share of instances a solver solves within τ times the fastest
                                solver's seconds; a failure is infinitely slow

"Solved" is optimal, feasible and within 1e-6 of the best bound of all solvers (`run.verdict_rows`). Of solvers that
solve and certify as many, which to use is decided by the gap of what is certified, in powers of ten down to EXACT, then
by seconds that differ by more than a factor of 2 (shifted), and then by the order of `workbench doctor`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from solvers.backend import names
from workbench.io.figures import COLOURS, MARKERS, legend_below, panels
from workbench.io.result import records

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from workbench.io.result import Plots, Row

__all__ = [
    "COLUMNS",
    "EXACT",
    "SHIFT",
    "draw_profile",
    "draw_scatter",
    "plots",
    "preferred",
    "profile",
    "recommendations",
    "shifted_mean",
    "summary",
]

EXACT = 1e-9  # residuals and gaps up to here are rounding
SHIFT = 0.01  # seconds
_ALIKE = 2.0  # times the least seconds, shifted, which are not told apart from them
LEAST = 1e-3  # seconds below which times are not told apart

COLUMNS = (
    "instance",
    "model",
    "kind",
    "rows",
    "columns",
    "solver",
    "version",
    "status",
    "solved",
    "seconds",
    "objective",
    "bound",
    "gap",
    "best_objective",
    "best_bound",
    "gap_to_best",
    "contradicted",
    "residual",
    "claimed_epsilon",
    "exact_epsilon",
    "claimed_delta",
    "exact_delta",
    "private",
    "certified",
    "certified_objective",
    "certified_gap",
    "iterations",
    "nodes",
    "left_out",
    "judgement",
    "failure",
)


def shifted_mean(seconds: Any) -> float:
    """The geometric mean of times shifted by SHIFT."""
    times = np.asarray(seconds, dtype=float)
    return float(np.exp(np.log(times + SHIFT).mean()) - SHIFT)


def summary(table: pd.DataFrame, time_limit: float) -> pd.DataFrame:
    """One row per kind of program and solver: how many it solves, how fast, how well, how privately."""
    rows = []
    for (kind, solver), part in table[table["status"] != "not applicable"].groupby(["kind", "solver"], sort=False):
        times = np.where(part["solved"], part["seconds"].astype(float), time_limit)
        audited = part["private"].dropna()
        failed = part.loc[~part["solved"].astype(bool), "status"].value_counts()
        points = part[part["residual"].notna()]
        rows.append(
            {
                "kind": kind,
                "solver": solver,
                "instances": len(part),
                "solved": int(part["solved"].sum()),
                "shifted_mean_seconds": shifted_mean(np.minimum(times, time_limit)),
                **_hot(part),
                "worst_residual": points["residual"].max(),
                "worst_gap_to_best": points["gap_to_best"].max(),
                "answers": len(audited),
                "private_as_returned": int(audited.eq(True).sum()),
                "certified": int(part["certified"].eq(True).sum()),
                "worst_certified_gap": part["certified_gap"].astype(float).max(),
                "not_solved": ", ".join(
                    f"{count} {'optimal only by its own word' if status == 'optimal' else status}"
                    for status, count in failed.items()
                ),
            }
        )
    frame = pd.DataFrame(rows)
    fastest = frame.groupby("kind")["shifted_mean_seconds"].transform("min")
    frame.insert(5, "ratio", (frame["shifted_mean_seconds"] + SHIFT) / (fastest + SHIFT))
    return frame.sort_values(["kind", "shifted_mean_seconds"], kind="stable").reset_index(drop=True)


def preferred(rows: Sequence[Row], gap: str, seconds: str) -> Row:
    """What to use of rows of solvers that are worth as much otherwise; gap, seconds: columns. See the module."""

    def power(row: Row) -> float:
        return math.floor(math.log10(max(row[gap], EXACT))) if row[gap] is not None and row[gap] >= 0 else math.inf

    def time(row: Row) -> float:
        return row[seconds] + SHIFT if row.get(seconds) is not None else math.inf

    least = min(map(power, rows))
    close = [row for row in rows if power(row) == least]
    latest = _ALIKE * min(map(time, close))
    known = names()
    quick = [row for row in close if time(row) <= latest]
    return min(quick, key=lambda row: known.index(row["solver"]) if row["solver"] in known else len(known))


def _hot(part: pd.DataFrame) -> dict[str, float]:
    """Shifted means over the instances that were solved again hot: of the cold and of the hot solve."""
    if "hot_seconds" not in part:
        return {}
    both = part[part["hot_seconds"].notna() & part["solved"].astype(bool)]
    if both.empty:
        return {"hot_instances": 0, "their_cold_seconds": float("nan"), "their_hot_seconds": float("nan")}
    cold, hot = (shifted_mean(both[name].astype(float)) for name in ("seconds", "hot_seconds"))
    return {"hot_instances": len(both), "their_cold_seconds": cold, "their_hot_seconds": hot}


def profile(table: pd.DataFrame) -> dict[str, tuple[np.ndarray, np.ndarray]]:
    """solver -> (ratios to the fastest, increasing; share of the instances solved within them) of one kind.

    Instances that nobody solves count in the shares. Times below LEAST are not told apart.
    """
    times = table.assign(time=np.where(table["solved"], table["seconds"].astype(float).clip(lower=LEAST), np.inf))
    grid = times.pivot_table(index="instance", columns="solver", values="time", aggfunc="first", dropna=False)
    grid = grid.fillna(np.inf)
    fastest = grid.min(axis="columns").to_numpy()
    curves = {}
    for solver in grid.columns:
        with np.errstate(invalid="ignore"):
            ratios = np.sort(grid[solver].to_numpy() / fastest)
        reached = ratios[np.isfinite(ratios)]
        curves[str(solver)] = reached, np.arange(1, reached.size + 1) / len(grid)
    return curves


def draw_profile(table: pd.DataFrame) -> Figure:
    """The performance profiles of LPs and MILPs."""
    ran = table[table["status"] != "not applicable"]
    kinds = [kind for kind in ("LP", "MILP") if (ran["kind"] == kind).any()]
    looks = _looks(ran)
    figure, axes = panels(len(kinds), width=5.6, height=4.4)
    for axis, kind in zip(axes, kinds, strict=True):
        here = ran[ran["kind"] == kind]
        curves = profile(here)
        most = max([2.0, *(float(x[-1]) for x, _ in curves.values() if x.size)]) * 1.2
        for solver, (x, share) in curves.items():
            colour, _, dash = looks[solver]
            steps = np.concatenate([[1.0], x, [most]]), np.concatenate([[0.0], share, share[-1:] if x.size else [0.0]])
            axis.step(*steps, where="post", color=colour, linestyle=dash, linewidth=1.6, label=solver)
        axis.set_xscale("log")
        axis.set_xlim(1.0, most)
        axis.set_ylim(-0.02, 1.03)
        axis.set_xlabel("τ: times the fastest solver's seconds")
        axis.set_ylabel("share of instances solved within τ")
        axis.set_title(f"{kind}s, {here['instance'].nunique()} instances", fontsize=10)
    legend_below(figure, axes, columns=5)
    return figure


def _looks(table: pd.DataFrame) -> dict[str, tuple[str, str, str]]:
    """solver -> colour, marker, dash; the same in every figure."""
    dashes = ("-", "--")
    return {
        solver: (
            COLOURS[k % len(COLOURS)],
            MARKERS[(k + k // len(COLOURS)) % len(MARKERS)],
            dashes[k // len(COLOURS) % 2],
        )
        for k, solver in enumerate(dict.fromkeys(table["solver"]))
    }


def draw_scatter(table: pd.DataFrame) -> Figure:
    """Seconds against HiGHS's, gap against residual, and the gap of what can be certified."""
    ran = table[table["status"] != "not applicable"]
    reference = "highs" if (ran["solver"] == "highs").any() else str(ran["solver"].iloc[0])
    base = ran[ran["solver"] == reference].set_index("instance")["seconds"].astype(float).clip(lower=LEAST)
    figure, axes = panels(3, width=4.9, height=4.4)
    for solver, (colour, marker, _) in _looks(ran).items():
        here = ran[ran["solver"] == solver]
        style: dict[str, Any] = {
            "color": colour,
            "marker": marker,
            "linestyle": "none",
            "markersize": 5,
            "alpha": 0.8,
            "label": solver,
        }
        solved = here[here["solved"].astype(bool)]
        if solver != reference:
            x = base.reindex(solved["instance"])
            axes[0].plot(x, solved["seconds"].astype(float).clip(lower=LEAST).to_numpy(), **style)
        points = here[here["residual"].notna() & here["gap_to_best"].notna()]
        floor = 1e-17
        axes[1].plot(points["residual"].clip(lower=floor), points["gap_to_best"].clip(lower=floor), **style)
        proven = here[here["certified_gap"].notna()]
        axes[2].plot(proven["gap_to_best"].clip(lower=floor), proven["certified_gap"].clip(lower=floor), **style)
    _diagonal(axes[0])
    axes[0].set_xlabel(f"seconds of {reference}")
    axes[0].set_ylabel("seconds of another solver")
    axes[0].set_title("solved instances", fontsize=10)
    axes[1].set_xlabel("residual of the answer (1e-17: none)")
    axes[1].set_ylabel("gap to the best bound of all")
    axes[1].set_title("every answer", fontsize=10)
    _diagonal(axes[2])
    axes[2].set_xlabel("gap of the answer as returned")
    axes[2].set_ylabel("gap of the certified mechanism")
    axes[2].set_title("what certifying costs", fontsize=10)
    for axis in axes:
        if any(np.size(line.get_xdata()) for line in axis.get_lines()):
            axis.set_xscale("log")
            axis.set_yscale("log")
    legend_below(figure, axes, columns=5)
    return figure


def _diagonal(axis: Axes) -> None:
    lines = [line for line in axis.get_lines() if np.size(line.get_xdata())]
    parts = [np.asarray(part, dtype=float) for line in lines for part in line.get_data()]
    values = np.concatenate([*parts, np.ones(1 if not parts else 0)])
    axis.plot([values.min(), values.max()], [values.min(), values.max()], color="#999999", linewidth=0.8)


def plots(table: pd.DataFrame) -> Plots:
    """The plots of a table of runs."""
    if (table["status"] == "not applicable").all():
        return {}
    return {"performance_profile": partial(draw_profile, table), "scatter": partial(draw_scatter, table)}


def recommendations(table: pd.DataFrame) -> tuple[str, ...]:
    """A `summary` in one sentence for each kind of program: which solver to use, and why."""
    sentences = []
    for kind, part in table.groupby("kind", sort=False):
        most = max(zip(part["solved"], part["certified"], strict=True))
        equal = [row for row in records(part) if (row["solved"], row["certified"]) == most]
        gap = "worst_certified_gap" if most[1] else "worst_gap_to_best"
        best = preferred(equal, gap, "shifted_mean_seconds")
        if not best["solved"]:
            sentences.append(f"For {kind}s no solver can be recommended: none solved any of them.")
            continue
        privacy = f"{best['certified']} of its {best['answers']} answers are certified"
        privacy += f" ({best['private_as_returned']} private as returned), "
        sentences.append(
            f"For {kind}s use {best['solver']}: it solved {best['solved']} of {best['instances']}, "
            f"{privacy if best['answers'] else ''}at {best['ratio']:.3g} times the seconds of the fastest."
        )
    return tuple(sentences)
