"""Every backend on the same programs: the reports of results/solver_comparison (the suite) and results/program_library
(the library of programs from the files alone, cold and hot)."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from functools import lru_cache
from pathlib import Path

import pandas as pd

from workbench.comparison.compare import compare_programs
from workbench.comparison.library import export
from workbench.comparison.report import COLUMNS, draw_profile, draw_scatter, summary
from workbench.comparison.run import installed, run_suite
from workbench.families.programs import SUITES, chosen
from workbench.io.result import Result
from workbench.papers.artifact import Artifact, Paper

TIME_LIMITS = {"suite": 20.0, "library": 10.0}  # seconds of a run
_MOST = 2000  # non-zeros of a program of the library, without --full
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


def _paper(
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


def _suite(full: bool) -> tuple[Result, str, float]:
    suite, limit = "default" if full else "small", TIME_LIMITS["suite"]
    return run_suite(chosen(suite), installed(), time_limit=limit), suite, limit


def _library(full: bool) -> tuple[Result, str, float]:
    limit = TIME_LIMITS["library"]
    with tempfile.TemporaryDirectory(prefix="workbench-library-") as name:
        folder = Path(name) / "library"
        export(folder, most=None if full else _MOST)
        run = compare_programs(folder, time_limit=limit)
    return run, "The library of programs" + ("" if full else f", up to {_MOST} non-zeros"), limit


PAPER = _paper(
    "solver_comparison",
    "Solver comparison",
    "Every backend on the same programs: `workbench compare --suite default`.",
    _suite,
)
LIBRARY = _paper(
    "program_library",
    "The library of programs: ranking",
    "Every backend on the MPS files of `workbench programs export`: `workbench compare --programs FOLDER`.",
    _library,
    (
        "Seconds are of the cold solve. Linear programs are solved once more hot, with every loss moved by up to 1 %: "
        "their_cold_seconds and their_hot_seconds are shifted means over the programs that were (hot_instances).",
    ),
)
