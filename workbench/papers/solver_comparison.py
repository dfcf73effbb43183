"""Compare the installed solvers on the same programs.

results/solver_comparison has the comparison on a suite, a fixed list of programs with a version.
results/program_library has the comparison on the library, the programs that `workbench programs
export` writes. They are read from files and solved from scratch (cold) and from the previous basis
(hot).
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from dataclasses import dataclass
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

# A solver is stopped after this many seconds on a program of the suite or of the library.
TIME_LIMITS = {"suite": 20.0, "library": 10.0}
_MAX_NONZEROS = 2000  # Without --full, larger programs of the library are omitted.
_DECLARATION = read_declaration("solver_comparison")
_ARTIFACT_NAMES = ("summary", "performance_profile", "scatter")


@dataclass(frozen=True)
class _ComparisonRun:
    """The runs of all solvers on the same programs.

    Attributes:
        result: One row for each run of a solver on a program.
        programs: The name of the suite, or a description of the programs.
        time_limit: The time limit of each run in seconds.
    """

    result: Result
    programs: str
    time_limit: float


def make_comparison_artifacts(
    table: pd.DataFrame, programs: str, time_limit: float
) -> dict[str, Artifact]:
    """Return the artifacts of a comparison: summary, performance profile, scatter plots.

    Args:
        table: One row for each run of a solver, with the columns `COLUMNS` of
            `workbench.comparison.report`.
        programs: The name of the suite, or a description of the programs.
        time_limit: The time limit of a run in seconds.

    Returns:
        Name of an artifact, as in `_ARTIFACT_NAMES` -> artifact.
    """
    title = programs
    if programs in SUITES:
        version, *_ = SUITES[programs]
        title = f"Suite {programs}, version {version}"
    description = f"{title}: {table['instance'].nunique()} instances, {len(table)} runs"
    contradicted_count = int(table["contradicted"].eq(True).sum())
    dispute = ""
    if contradicted_count:
        dispute = (
            f" {contradicted_count} bounds are contradicted by another solver's feasible answer."
        )
    make = partial(make_artifact, "solver_comparison")
    summary = summarise_runs(table, time_limit)
    scatter = table[_DECLARATION["scatter"]["columns"]]
    return {
        "summary": make(
            "summary", summary, what=description, time_limit=time_limit, dispute=dispute
        ),
        "performance_profile": make(
            "performance_profile", table, draw=draw_profile, what=description
        ),
        "scatter": make("scatter", scatter, draw=draw_scatter, what=description),
    }


def _make_comparison_paper(declaration: str, compare: Callable[[bool], _ComparisonRun]) -> Paper:
    """Return a comparison as a paper whose artifacts share the runs of `compare(full)`.

    declaration: the table of declared/solver_comparison.toml with the fields of the paper.
    """

    @lru_cache
    def make_artifacts(full: bool) -> dict[str, Artifact]:
        """Run the comparison once for each `full`, and make all its artifacts."""
        run = compare(full)
        if run.result.is_interrupted:
            raise KeyboardInterrupt
        table = run.result.to_frame()
        columns = [*COLUMNS, *table.columns.intersection(["hot_seconds"])]
        return make_comparison_artifacts(table[columns], run.programs, run.time_limit)

    def select_artifact(name: str, full: bool) -> Artifact:
        """Return one of the artifacts, which share one comparison."""
        return make_artifacts(full)[name]

    artifacts = {name: partial(select_artifact, name) for name in _ARTIFACT_NAMES}
    return Paper(**_DECLARATION[declaration], artifacts=artifacts)


def _run_suite(full: bool) -> _ComparisonRun:
    """Run all solvers on the suite "default" (with --full), or on the suite "small"."""
    suite = "default" if full else "small"
    time_limit = TIME_LIMITS["suite"]
    instances = select_instances(suite)
    result = run_suite(instances, list_installed_solvers(), time_limit=time_limit)
    return _ComparisonRun(result, suite, time_limit)


def _run_program_library(full: bool) -> _ComparisonRun:
    """Run all solvers on the library of programs, without --full on the smaller ones only."""
    time_limit = TIME_LIMITS["library"]
    with tempfile.TemporaryDirectory(prefix="workbench-library-") as name:
        folder = Path(name) / "library"
        export_library(folder, most=None if full else _MAX_NONZEROS)
        result = compare_programs(folder, time_limit=time_limit)
    description = "The library of programs"
    if not full:
        description += f", up to {_MAX_NONZEROS} non-zeros"
    return _ComparisonRun(result, description, time_limit)


PAPER = _make_comparison_paper("paper", _run_suite)
LIBRARY = _make_comparison_paper("library", _run_program_library)
