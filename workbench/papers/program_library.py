"""Every backend on the library of programs, from the files alone, cold and hot: results/program_library."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from functools import lru_cache
from pathlib import Path

from workbench.comparison.compare import compare_programs
from workbench.comparison.library import export
from workbench.papers.artifact import Artifact, Paper
from workbench.papers.solver_comparison import TITLES, artifacts

__all__ = ["PAPER"]

TIME_LIMIT = 10.0
_MOST = 2000  # non-zeros without --full


@lru_cache
def _report(full: bool) -> dict[str, Artifact]:
    with tempfile.TemporaryDirectory(prefix="workbench-library-") as name:
        folder = Path(name) / "library"
        export(folder, most=None if full else _MOST)
        run = compare_programs(folder, time_limit=TIME_LIMIT)
    if run.interrupted:
        raise KeyboardInterrupt
    what = "The library of programs" + ("" if full else f", up to {_MOST} non-zeros")
    return {artifact.name: artifact for artifact in artifacts(run, what, TIME_LIMIT)}


def _artifact(name: str) -> Callable[[bool], Artifact]:
    return lambda full: _report(full)[name]


PAPER = Paper(
    name="program_library",
    title="The library of programs: ranking",
    citation="Every backend on the MPS files of `workbench programs export`: `workbench compare --programs FOLDER`.",
    artifacts={name: _artifact(name) for name in TITLES},
    on_demand=True,
    remarks=(
        "Seconds are of the cold solve. Linear programs are solved once more hot, with every cost moved by up to 1 %: "
        "their_cold_seconds and their_hot_seconds are shifted means over the programs that were (hot_instances).",
    ),
)
