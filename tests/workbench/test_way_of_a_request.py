"""Test that a design runs few functions of few files, and that it reads epsilon only once."""

from __future__ import annotations

import sys
from pathlib import Path
from types import FrameType
from typing import Any

import workbench as wb

ROOT = str(Path(__file__).parents[2])
SOURCE_FOLDER = f"{ROOT}/workbench/"
EPSILON = 1.2345  # A value that no other argument has.


def make_design() -> Any:
    """Design a channel at ε = `EPSILON`."""
    return wb.design(wb.FiniteQuery("0..10", max_shift=1), loss="absolute", epsilon=EPSILON)


def test_a_design_passes_few_files_and_reads_epsilon_once() -> None:
    # File and name of each called function, and whether an argument is the unread value of epsilon.
    calls: list[tuple[str, str, bool]] = []

    def record_call(frame: FrameType, event: str, _: Any) -> None:
        """Record a call of a function of the workbench."""
        code = frame.f_code
        if (
            event != "call"
            or not code.co_filename.startswith(SOURCE_FOLDER)
            or code.co_name.startswith("<")
        ):
            return
        arguments = [
            frame.f_locals.get(name)
            for name in code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
        ]
        has_epsilon = any(
            type(value) in (float, str) and value in (EPSILON, str(EPSILON)) for value in arguments
        )
        calls.append((code.co_filename.removeprefix(ROOT), code.co_qualname, has_epsilon))

    make_design()  # Imports and caches are not part of the path.
    sys.setprofile(record_call)
    try:
        make_design()
    finally:
        sys.setprofile(None)
    functions = {(file, name) for file, name, _ in calls}
    assert len({file for file, _ in functions}) <= 50
    # About 25 of these functions are operators of the language in which a model is written.
    assert len(functions) <= 360
    readers = [
        (file, name)
        for file, name, has_epsilon in calls
        if has_epsilon and not file.startswith(("/workbench/models/", "/workbench/solvers/"))
    ]
    # Each of these functions calls the next one.
    expected_names = [
        "Option.read_value",
        "read_positive",
        "read_number_where",
        "read_number",
        "parse_rational",
        "_parse_decimal",
    ]
    assert [name for _, name in readers] == expected_names
