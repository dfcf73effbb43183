"""Every backend on the same programs: the reports of results/solver_comparison (the suite) and results/program_library
(the library of programs from the files alone, cold and hot)."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from functools import lru_cache, partial
from pathlib import Path

from workbench.comparison.compare import compare_programs
from workbench.comparison.library import export
from workbench.comparison.report import COLUMNS, draw_profile, draw_scatter, summary
from workbench.comparison.run import installed, run_suite
from workbench.families.programs import SUITES, chosen
from workbench.io.result import Result
from workbench.papers.artifact import Artifact, Paper, artifact, declared

TIME_LIMITS = {"suite": 20.0, "library": 10.0}  # seconds of a run
_MOST = 2000  # non-zeros of a program of the library, without --full
_STATED = declared("solver_comparison")
TITLES = ("summary", "performance_profile", "scatter")


def artifacts(run: Result, suite: str, time_limit: float) -> list[Artifact]:
    """The report of a run: runs, solvers, profile, scatter."""
    frame = run.to_frame()
    table = frame[[*COLUMNS, *(["hot_seconds"] if "hot_seconds" in frame else [])]]
    named = f"Suite {suite}, version {SUITES[suite][0]}" if suite in SUITES else suite
    what = f"{named}: {table['instance'].nunique()} instances, {len(table)} runs, "
    if table["repeats"].max() > 1:
        what += f"seconds are medians of {table['repeats'].max():.0f} runs, "
    if run.interrupted:
        what = f"Interrupted: {run.finished} of {run.total} runs. {what}"
    wrong = int(table["contradicted"].eq(True).sum())
    dispute = f" {wrong} bounds are contradicted by another solver's feasible answer." if wrong else ""
    stated, runs = partial(artifact, "solver_comparison"), f"{what.removesuffix(', ')}. "
    return [
        stated("summary", summary(table, time_limit), what=what, time_limit=time_limit, dispute=dispute),
        stated("performance_profile", table, draw=draw_profile, what=runs),
        stated("scatter", table[_STATED["scatter"]["columns"]], draw=draw_scatter, what=runs),
    ]


def _paper(about: str, compare: Callable[[bool], tuple[Result, str, float]]) -> Paper:
    """The report as a paper. compare: whether all -> (runs, the suite's name or what it is, seconds of a run)."""

    @lru_cache
    def report(full: bool) -> dict[str, Artifact]:
        run, suite, time_limit = compare(full)
        if run.interrupted:
            raise KeyboardInterrupt
        return {artifact.name: artifact for artifact in artifacts(run, suite, time_limit)}

    def drawn(name: str, full: bool) -> Artifact:
        return report(full)[name]

    return Paper(**_STATED[about], artifacts={name: partial(drawn, name) for name in TITLES})


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


PAPER = _paper("paper", _suite)
LIBRARY = _paper("library", _library)
