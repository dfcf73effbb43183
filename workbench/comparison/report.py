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

from workbench.exact.objects import Values
from workbench.io.drawing import Drawing, draw_declared_figure, read_toml_resource
from workbench.io.figures import COLOURS, DASHES, MARKERS
from workbench.io.result import table_records
from workbench.solvers.backend import list_backend_names

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from workbench.io.result import Plots, Row


FIGURES = read_toml_resource("workbench.comparison", "figures.toml")
EXACT_GAP = 1e-9  # residuals and gaps up to here are rounding
SHIFT_SECONDS = 0.01  # seconds
_ALIKE_SECONDS_RATIO = 2.0  # times the least seconds, shifted, which are not told apart from them
MIN_SECONDS = 1e-3  # seconds below which times are not told apart
_MIN_DRAWN_VALUE = 1e-17  # residuals and gaps below which are drawn as this

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
    "seconds_low",
    "seconds_high",
    "repeats",
    "threads",
    "tolerance",
    "peak_mb",
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


def compute_shifted_mean(seconds: Any) -> float:
    """The geometric mean of times shifted by SHIFT."""
    return float(
        np.exp(np.log(np.asarray(seconds, dtype=float) + SHIFT_SECONDS).mean()) - SHIFT_SECONDS
    )


def summarise_runs(table: pd.DataFrame, time_limit: float) -> pd.DataFrame:
    """One row per kind of program and solver: how many it solves, how fast, how well, how privately."""
    rows = []
    for (kind, solver), part in table[table["status"] != "not applicable"].groupby(
        ["kind", "solver"], sort=False
    ):
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
                "shifted_mean_seconds": compute_shifted_mean(np.minimum(times, time_limit)),
                "most_peak_mb": part["peak_mb"].max(),
                **_summarise_hot_solves(part),
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
    frame.insert(
        5, "ratio", (frame["shifted_mean_seconds"] + SHIFT_SECONDS) / (fastest + SHIFT_SECONDS)
    )
    return frame.sort_values(["kind", "shifted_mean_seconds"], kind="stable").reset_index(drop=True)


def choose_preferred(rows: Sequence[Row], gap: str, seconds: str) -> Row:
    """What to use of rows of solvers that are worth as much otherwise; gap, seconds: columns. See the module."""

    def power(row: Row) -> float:
        return (
            math.floor(math.log10(max(row[gap], EXACT_GAP)))
            if row[gap] is not None and row[gap] >= 0
            else math.inf
        )

    def time(row: Row) -> float:
        return row[seconds] + SHIFT_SECONDS if row.get(seconds) is not None else math.inf

    least = min(map(power, rows))
    close = [row for row in rows if power(row) == least]
    latest = _ALIKE_SECONDS_RATIO * min(map(time, close))
    known = list_backend_names()
    quick = [row for row in close if time(row) <= latest]
    return min(
        quick, key=lambda row: known.index(row["solver"]) if row["solver"] in known else len(known)
    )


def _summarise_hot_solves(part: pd.DataFrame) -> dict[str, float]:
    """Shifted means over the instances that were solved again hot: of the cold and of the hot solve."""
    if "hot_seconds" not in part:
        return {}
    both = part[part["hot_seconds"].notna() & part["solved"].astype(bool)]
    if both.empty:
        return {
            "hot_instances": 0,
            "their_cold_seconds": float("nan"),
            "their_hot_seconds": float("nan"),
        }
    cold, hot = (
        compute_shifted_mean(both[name].astype(float)) for name in ("seconds", "hot_seconds")
    )
    return {"hot_instances": len(both), "their_cold_seconds": cold, "their_hot_seconds": hot}


def compute_profile(table: pd.DataFrame) -> dict[str, tuple[np.ndarray, np.ndarray]]:
    """solver -> (ratios to the fastest, increasing; share of the instances solved within them) of one kind.

    Instances that nobody solves count in the shares. Times below LEAST are not told apart.
    """
    times = table.assign(
        time=np.where(
            table["solved"], table["seconds"].astype(float).clip(lower=MIN_SECONDS), np.inf
        )
    )
    grid = times.pivot_table(
        index="instance", columns="solver", values="time", aggfunc="first", dropna=False
    )
    grid = grid.fillna(np.inf)
    curves = {}
    for solver, ratios in grid.div(grid.min(axis="columns"), axis="index").items():
        reached = np.sort(ratios[np.isfinite(ratios)].to_numpy())
        curves[str(solver)] = reached, np.arange(1, reached.size + 1) / len(grid)
    return curves


def draw_profile(table: pd.DataFrame) -> Figure:
    """The performance profiles of LPs and MILPs."""
    ran = table[table["status"] != "not applicable"]
    parts = []
    for kind, here in ran.groupby("kind"):
        curves = compute_profile(here)
        most = max([2.0, *(float(x[-1]) for x, _ in curves.values() if x.size)]) * 1.2
        named = {"kind": kind, "instances": here["instance"].nunique()}
        for solver, (x, share) in curves.items():
            steps = {
                "ratio": [1.0, *x, most],
                "share": [0.0, *share, *(share[-1:] if x.size else [0.0])],
            }
            parts.append(pd.DataFrame({**named, "solver": solver, **steps}))
    return draw_declared_figure(
        Drawing(FIGURES["profile"], styles=_assign_styles(ran)), pd.concat(parts)
    )


def _assign_styles(table: pd.DataFrame) -> Values:
    """The styles of solvers, the same in every figure."""
    count = len(COLOURS)
    return {
        "solver": {
            solver: {
                "colour": k % count,
                "marker": MARKERS[(k + k // count) % len(MARKERS)],
                "linestyle": DASHES[k % len(DASHES)],
                "label": solver,
            }
            for k, solver in enumerate(dict.fromkeys(table["solver"]))
        }
    }


def draw_scatter(table: pd.DataFrame) -> Figure:
    """Seconds against HiGHS's, gap against residual, and the gap of what can be certified."""
    ran = table[table["status"] != "not applicable"]
    reference = "highs" if (ran["solver"] == "highs").any() else str(ran["solver"].iloc[0])
    seconds = ran["seconds"].astype(float).clip(lower=MIN_SECONDS)
    base = seconds.set_axis(ran["instance"])[(ran["solver"] == reference).to_numpy()]
    solved = ran["solved"].astype(bool) & (ran["solver"] != reference)
    pairs = {
        "seconds": (ran["instance"].map(base).where(solved), seconds),
        "answers": (ran["residual"], ran["gap_to_best"]),
        "certified": (ran["gap_to_best"], ran["certified_gap"]),
    }
    points = pd.concat(
        ran[["solver", "status"]].assign(panel=panel, x=x.astype(float), y=y.astype(float)).dropna()
        for panel, (x, y) in pairs.items()
    )
    points[["x", "y"]] = points[["x", "y"]].clip(lower=_MIN_DRAWN_VALUE)
    extents = [
        points.groupby("panel")[["x", "y"]].agg(end).agg(end, axis=1) for end in ("min", "max")
    ]
    ends = pd.concat(extents).rename("x").reset_index()
    figure = draw_declared_figure(
        Drawing(FIGURES["scatter"], {}, _assign_styles(ran), {"ends": ends.assign(y=ends["x"])}),
        points,
    )
    figure.axes[0].set_xlabel(f"seconds of {reference}")
    return figure


def make_suite_plots(table: pd.DataFrame) -> Plots:
    """The plots of a table of runs."""
    if (table["status"] == "not applicable").all():
        return {}
    return {
        "performance_profile": partial(draw_profile, table),
        "scatter": partial(draw_scatter, table),
    }


def recommend_by_kind(table: pd.DataFrame) -> tuple[str, ...]:
    """A `summary` in one sentence for each kind of program: which solver to use, and why."""
    sentences = []
    for kind, part in table.groupby("kind", sort=False):
        most = max(zip(part["solved"], part["certified"], strict=True))
        equal = [row for row in table_records(part) if (row["solved"], row["certified"]) == most]
        best = choose_preferred(
            equal, "worst_certified_gap" if most[1] else "worst_gap_to_best", "shifted_mean_seconds"
        )
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
