"""What a run of the suite says: a table of runs, one of solvers, a performance profile and scatter plots.

    shifted geometric mean      exp(mean ln(t + 10 ms)) - 10 ms over all instances of a kind; a failure counts as the
                                time limit
    performance profile         Dolan and Moré 2002: share of instances a solver solves within τ times the fastest
                                solver's seconds; a failure is infinitely slow

"Solved" is optimal, feasible and within 1e-6 of the best bound of all solvers (`suite_run.judged_rows`).
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from workbench.papers.artifact import Artifact, Paper
from workbench.plots import COLOURS, MARKERS, legend_below, panels
from workbench.suite import SUITES, chosen
from workbench.suite_run import Run, installed, judged_rows, run_suite

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["COLUMNS", "PAPER", "SHIFT", "artifacts", "profile", "runs_table", "shifted_mean", "summary"]

SHIFT = 0.01  # seconds
LEAST = 1e-3  # seconds below which times are not told apart
TIME_LIMIT = 20.0

COLUMNS = (
    "instance", "model", "kind", "rows", "columns", "solver", "version", "status", "solved", "seconds", "objective",
    "bound", "gap", "best_objective", "best_bound", "gap_to_best", "contradicted", "residual", "claimed_epsilon",
    "exact_epsilon", "claimed_delta", "exact_delta", "private", "certified", "certified_objective", "iterations",
    "nodes", "left_out", "judgement", "error",
)  # fmt: skip


def runs_table(run: Run) -> pd.DataFrame:
    """One row per run, in COLUMNS."""
    return pd.DataFrame(judged_rows(run.rows)).reindex(columns=list(COLUMNS))


def shifted_mean(seconds: Any) -> float:
    """The geometric mean of times shifted by SHIFT."""
    times = np.asarray(seconds, dtype=float)
    return float(np.exp(np.log(times + SHIFT).mean()) - SHIFT)


def summary(table: pd.DataFrame, time_limit: float) -> pd.DataFrame:
    """One row per kind of program and solver: how many it solves, how fast, how well, how privately."""
    made = []
    for (kind, solver), part in table[table["status"] != "not applicable"].groupby(["kind", "solver"], sort=False):
        times = np.where(part["solved"], part["seconds"].astype(float), time_limit)
        judged = part["private"].dropna()
        failed = part.loc[~part["solved"].astype(bool), "status"].value_counts()
        points = part[part["residual"].notna()]
        made.append(
            {
                "kind": kind, "solver": solver, "instances": len(part), "solved": int(part["solved"].sum()),
                "shifted_mean_seconds": shifted_mean(np.minimum(times, time_limit)),
                "worst_residual": points["residual"].max(), "worst_gap_to_best": points["gap_to_best"].max(),
                "answers": len(judged), "private_as_returned": int(judged.eq(True).sum()),
                "certified": int(part["certified"].eq(True).sum()),
                "not_solved": ", ".join(
                    f"{count} {'optimal only by its own word' if status == 'optimal' else status}"
                    for status, count in failed.items()
                ),
            }
        )  # fmt: skip
    frame = pd.DataFrame(made)
    fastest = frame.groupby("kind")["shifted_mean_seconds"].transform("min")
    frame.insert(5, "ratio", (frame["shifted_mean_seconds"] + SHIFT) / (fastest + SHIFT))
    return frame.sort_values(["kind", "shifted_mean_seconds"], kind="stable").reset_index(drop=True)


def profile(table: pd.DataFrame) -> dict[str, tuple[np.ndarray, np.ndarray]]:
    """solver -> (ratios to the fastest, increasing; share of the instances solved within them) of one kind.

    Instances that nobody solves count in the shares. Times below LEAST are not told apart.
    """
    times = table.assign(time=np.where(table["solved"], table["seconds"].astype(float).clip(lower=LEAST), np.inf))
    grid = times.pivot_table(index="instance", columns="solver", values="time", aggfunc="first", dropna=False)
    grid = grid.fillna(np.inf)
    fastest = grid.min(axis="columns").to_numpy()
    made = {}
    for solver in grid.columns:
        with np.errstate(invalid="ignore"):
            ratios = np.sort(grid[solver].to_numpy() / fastest)
        reached = ratios[np.isfinite(ratios)]
        made[str(solver)] = reached, np.arange(1, reached.size + 1) / len(grid)
    return made


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
            "color": colour, "marker": marker, "linestyle": "none", "markersize": 5, "alpha": 0.8, "label": solver,
        }  # fmt: skip
        solved = here[here["solved"].astype(bool)]
        if solver != reference:
            x = base.reindex(solved["instance"])
            axes[0].plot(x, solved["seconds"].astype(float).clip(lower=LEAST).to_numpy(), **style)
        points = here[here["residual"].notna() & here["gap_to_best"].notna()]
        floor = 1e-17
        axes[1].plot(points["residual"].clip(lower=floor), points["gap_to_best"].clip(lower=floor), **style)
        proven = here[here["certified_objective"].notna() & here["best_bound"].notna()]
        gap = (proven["certified_objective"] - proven["best_bound"]).abs() / proven["best_bound"].abs().clip(lower=1)
        axes[2].plot(proven["gap_to_best"].clip(lower=floor), gap.clip(lower=floor), **style)
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
        if any(len(line.get_xdata()) for line in axis.get_lines()):  # type: ignore[arg-type]
            axis.set_xscale("log")
            axis.set_yscale("log")
    legend_below(figure, axes, columns=5)
    return figure


def _diagonal(axis: Axes) -> None:
    lines = [line for line in axis.get_lines() if len(line.get_xdata())]  # type: ignore[arg-type]
    parts = [np.asarray(part, dtype=float) for line in lines for part in line.get_data()]
    values = np.concatenate([*parts, np.ones(1 if not parts else 0)])
    axis.plot([values.min(), values.max()], [values.min(), values.max()], color="#999999", linewidth=0.8)


def artifacts(run: Run, suite: str, time_limit: float) -> list[Artifact]:
    """The report of a run: runs, solvers, profile, scatter."""
    table = runs_table(run)
    version, _ = SUITES[suite]
    what = f"Suite {suite}, version {version}: {table['instance'].nunique()} instances, {len(table)} runs, "
    how = f"one process per run, cold, one thread, {time_limit:g} s. "
    if run.interrupted:
        what = f"Interrupted: {len(run.rows)} of {run.total} runs. {what}"
    wrong = int(table["contradicted"].eq(True).sum())
    doubt = f" {wrong} bounds are contradicted by another solver's feasible answer." if wrong else ""
    rules = (
        "Solved: optimal, recomputed residuals and the gap to the best bound of all up to 1e-6. Seconds are of "
        "building, solving and reading, without loading the library; from one machine, to be compared with each other "
        "only. "
    )
    means = (
        "Shifted geometric means (10 ms), failures at the time limit; ratio: of shifted means, to the fastest. private "
        "as returned: answers that keep their claim in exact arithmetic without repair; certified: after repair. "
    )
    return [
        Artifact(
            "summary", "Solvers on the suite", summary(table, time_limit), None, what + how + rules + means + doubt
        ),
        Artifact(
            "performance_profile", "Performance profile (Dolan and Moré)", table, draw_profile,
            what + "For every solver the share of instances it solves within τ times the fastest solver's seconds; "
            "what it fails on it never reaches. Solvers that cannot state MILPs are left out there. Times below 1 ms "
            "are not told apart.",
        ),
        Artifact(
            "scatter", "Times, answers and certificates", _scattered(table), draw_scatter,
            what + "Left: seconds against HiGHS on what both solve. Middle: residual and gap of every answer. Right: "
            "the gap of the repaired, certified mechanism against that of the answer as returned.",
        ),
    ]  # fmt: skip


def _scattered(table: pd.DataFrame) -> pd.DataFrame:
    columns = ["instance", "solver", "status", "solved", "seconds", "residual", "gap_to_best", "best_bound",
               "certified_objective"]  # fmt: skip
    return table[columns]


@lru_cache
def _report(full: bool) -> dict[str, Artifact]:
    suite = "default" if full else "small"
    run = run_suite(chosen(suite), installed(), time_limit=TIME_LIMIT)
    if run.interrupted:
        raise KeyboardInterrupt
    return {artifact.name: artifact for artifact in artifacts(run, suite, TIME_LIMIT)}


def _one(name: str) -> Callable[[bool], Artifact]:
    return lambda full: _report(full)[name]


PAPER = Paper(
    name="solver_comparison",
    title="Solver comparison",
    citation="Every backend on the same programs: `workbench compare --suite default`.",
    artifacts={name: _one(name) for name in ("summary", "performance_profile", "scatter")},
    on_demand=True,
)
