"""Every backend on the same programs: the reports of results/solver_comparison (the suite) and results/program_library
(the library of programs from the files alone, cold and hot)."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from functools import lru_cache, partial
from pathlib import Path

import pandas as pd

from workbench.comparison.compare import compare_programs
from workbench.comparison.library import export_library
from workbench.comparison.report import COLUMNS, draw_profile, draw_scatter, summarise_runs
from workbench.comparison.run import list_installed_solvers, run_suite
from workbench.io.result import Result
from workbench.papers.artifact import Artifact, Paper, make_artifact, read_declaration
from workbench.pipeline.programs import SUITES, select_instances

TIME_LIMITS = {"suite": 20.0, "library": 10.0}  # seconds of a run
_MOST = 2000  # non-zeros of a program of the library, without --full
_STATED = read_declaration("solver_comparison")


def make_comparison_artifacts(
    table: pd.DataFrame, suite: str, time_limit: float
) -> dict[str, Artifact]:
    """The report of the table of runs: solvers, profile, scatter."""
    named = f"Suite {suite}, version {SUITES[suite][0]}" if suite in SUITES else suite
    what = f"{named}: {table['instance'].nunique()} instances, {len(table)} runs"
    wrong = int(table["contradicted"].eq(True).sum())
    dispute = (
        f" {wrong} bounds are contradicted by another solver's feasible answer." if wrong else ""
    )
    stated, solvers = partial(make_artifact, "solver_comparison"), summarise_runs(table, time_limit)
    return {
        "summary": stated("summary", solvers, what=what, time_limit=time_limit, dispute=dispute),
        "performance_profile": stated("performance_profile", table, draw=draw_profile, what=what),
        "scatter": stated(
            "scatter", table[_STATED["scatter"]["columns"]], draw=draw_scatter, what=what
        ),
    }


def _make_comparison_paper(
    about: str, compare: Callable[[bool], tuple[Result, str, float]]
) -> Paper:
    """The report as a paper. compare: whether all -> (runs, the suite's name or what it is, seconds of a run)."""

    @lru_cache
    def report(full: bool) -> dict[str, Artifact]:
        run, suite, time_limit = compare(full)
        if run.is_interrupted:
            raise KeyboardInterrupt
        frame = run.to_frame()
        return make_comparison_artifacts(
            frame[[*COLUMNS, *(frame.columns.intersection(["hot_seconds"]))]], suite, time_limit
        )

    names = ("summary", "performance_profile", "scatter")
    return Paper(
        **_STATED[about], artifacts={name: lambda full, of=name: report(full)[of] for name in names}
    )


def _run_default_suite(full: bool) -> tuple[Result, str, float]:
    suite, limit = "default" if full else "small", TIME_LIMITS["suite"]
    return (
        run_suite(select_instances(suite), list_installed_solvers(), time_limit=limit),
        suite,
        limit,
    )


def _run_program_library(full: bool) -> tuple[Result, str, float]:
    limit = TIME_LIMITS["library"]
    with tempfile.TemporaryDirectory(prefix="workbench-library-") as name:
        folder = Path(name) / "library"
        export_library(folder, most=None if full else _MOST)
        run = compare_programs(folder, time_limit=limit)
    return run, "The library of programs" + ("" if full else f", up to {_MOST} non-zeros"), limit


PAPER = _make_comparison_paper("paper", _run_default_suite)
LIBRARY = _make_comparison_paper("library", _run_program_library)
