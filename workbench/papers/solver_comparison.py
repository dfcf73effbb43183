"""Every backend on the same programs, as the report of results/solver_comparison."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache

import pandas as pd

from workbench.comparison.report import COLUMNS, draw_profile, draw_scatter, summary
from workbench.comparison.run import installed, run_suite
from workbench.families.programs import SUITES, chosen
from workbench.io.result import Result
from workbench.papers.artifact import Artifact, Paper

__all__ = ["PAPER", "TITLES", "artifacts", "comparison_paper"]

TIME_LIMIT = 20.0
TITLES = ("summary", "performance_profile", "scatter")


def artifacts(run: Result, suite: str, time_limit: float) -> list[Artifact]:
    """The report of a run: runs, solvers, profile, scatter."""
    frame = run.to_frame()
    table = frame[[*COLUMNS, *(["hot_seconds"] if "hot_seconds" in frame else [])]]
    named = f"Suite {suite}, version {SUITES[suite][0]}" if suite in SUITES else suite
    what = f"{named}: {table['instance'].nunique()} instances, {len(table)} runs, "
    how = f"one process per run, cold, one thread, {time_limit:g} s. "
    if run.interrupted:
        what = f"Interrupted: {run.finished} of {run.total} runs. {what}"
    wrong = int(table["contradicted"].eq(True).sum())
    dispute = f" {wrong} bounds are contradicted by another solver's feasible answer." if wrong else ""
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
            "summary",
            "Solvers on the suite",
            summary(table, time_limit),
            None,
            what + how + rules + means + dispute,
            measured=True,
        ),
        Artifact(
            "performance_profile",
            "Performance profile (Dolan and Moré)",
            table,
            draw_profile,
            what + "For every solver the share of instances it solves within τ times the fastest solver's seconds; "
            "what it fails on it never reaches. Solvers that cannot state MILPs are left out there. Times below 1 ms "
            "are not told apart.",
            measured=True,
        ),
        Artifact(
            "scatter",
            "Times, answers and certificates",
            _scattered(table),
            draw_scatter,
            what + "Left: seconds against HiGHS on what both solve. Middle: residual and gap of every answer. Right: "
            "the gap of the repaired, certified mechanism against that of the answer as returned.",
            measured=True,
        ),
    ]


def _scattered(table: pd.DataFrame) -> pd.DataFrame:
    columns = [
        "instance",
        "solver",
        "status",
        "solved",
        "seconds",
        "residual",
        "gap_to_best",
        "best_bound",
        "certified_objective",
        "certified_gap",
    ]
    return table[columns]


def comparison_paper(
    name: str,
    title: str,
    citation: str,
    compare: Callable[[bool], tuple[Result, str, float]],
    remarks: tuple[str, ...] = (),
) -> Paper:
    """The report as a paper. compare: whether all -> (runs, the suite's name or what it is, seconds of a run)."""

    @lru_cache
    def report(full: bool) -> dict[str, Artifact]:
        run, suite, time_limit = compare(full)
        if run.interrupted:
            raise KeyboardInterrupt
        return {artifact.name: artifact for artifact in artifacts(run, suite, time_limit)}

    drawn = {name: lambda full, name=name: report(full)[name] for name in TITLES}
    return Paper(name=name, title=title, citation=citation, artifacts=drawn, on_demand=True, remarks=remarks)


def _compare(full: bool) -> tuple[Result, str, float]:
    suite = "default" if full else "small"
    return run_suite(chosen(suite), installed(), time_limit=TIME_LIMIT), suite, TIME_LIMIT


PAPER = comparison_paper(
    "solver_comparison",
    "Solver comparison",
    "Every backend on the same programs: `workbench compare --suite default`.",
    _compare,
)
