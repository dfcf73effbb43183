"""Every backend on the library of programs, from the files alone, cold and hot: results/program_library."""

from __future__ import annotations

import tempfile
from pathlib import Path

from workbench.comparison.compare import compare_programs
from workbench.comparison.library import export
from workbench.io.result import Result
from workbench.papers.solver_comparison import comparison_paper

__all__ = ["PAPER"]

TIME_LIMIT = 10.0
_MOST = 2000  # non-zeros without --full


def _compare(full: bool) -> tuple[Result, str, float]:
    with tempfile.TemporaryDirectory(prefix="workbench-library-") as name:
        folder = Path(name) / "library"
        export(folder, most=None if full else _MOST)
        run = compare_programs(folder, time_limit=TIME_LIMIT)
    return run, "The library of programs" + ("" if full else f", up to {_MOST} non-zeros"), TIME_LIMIT


PAPER = comparison_paper(
    "program_library",
    "The library of programs: ranking",
    "Every backend on the MPS files of `workbench programs export`: `workbench compare --programs FOLDER`.",
    _compare,
    (
        "Seconds are of the cold solve. Linear programs are solved once more hot, with every loss moved by up to 1 %: "
        "their_cold_seconds and their_hot_seconds are shifted means over the programs that were (hot_instances).",
    ),
)
