"""How far a request travels: files and functions that one design passes, and where its epsilon is
read.
"""

from __future__ import annotations

import sys
from pathlib import Path
from types import FrameType
from typing import Any

import workbench as wb

ROOT = str(Path(__file__).parents[2])
OURS = f"{ROOT}/workbench/"
EPSILON = 1.2345


def _designed() -> Any:
    return wb.design(wb.FiniteQuery("0..10", max_shift=1), loss="absolute", epsilon=EPSILON)


def test_a_design_passes_few_files_and_reads_epsilon_once() -> None:
    calls: list[tuple[str, str, bool]] = []

    def profile(frame: FrameType, event: str, _: Any) -> None:
        code = frame.f_code
        if event != "call" or not code.co_filename.startswith(OURS) or code.co_name.startswith("<"):
            return
        given = [
            frame.f_locals.get(name)
            for name in code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
        ]
        text = any(
            type(value) in (float, str) and value in (EPSILON, str(EPSILON)) for value in given
        )
        calls.append((code.co_filename.removeprefix(ROOT), code.co_qualname, text))

    _designed()  # Imports and caches are not part of the path.
    sys.setprofile(profile)
    try:
        _designed()
    finally:
        sys.setprofile(None)
    passed = {(file, name) for file, name, _ in calls}
    assert len({file for file, _ in passed}) <= 50
    # About 25 of these functions are operators in which a model is stated.
    assert len(passed) <= 360
    readers = [
        (file, name)
        for file, name, text in calls
        if text and not file.startswith(("/workbench/models/", "/workbench/solvers/"))
    ]
    chain = [
        "Option.read_value",
        "read_positive",
        "read_number_where",
        "read_number",
        "parse_rational",
        "_parse_decimal",
    ]  # Each of them calls the next one.
    assert [name for _, name in readers] == chain
