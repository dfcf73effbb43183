"""Test that a design runs few functions of few files, and that it reads epsilon only once."""

from __future__ import annotations

import sys
from pathlib import Path
from types import FrameType
from typing import Any, NamedTuple

import workbench as wb

ROOT = str(Path(__file__).parents[2])
SOURCE_FOLDER = f"{ROOT}/workbench/"
# A value that no other argument has.
EPSILON = 1.2345


class Call(NamedTuple):
    """A call of a function of the workbench.

    Attributes:
        file: its file, such as "/workbench/pipeline/solve.py".
        function: its name, such as "Option.read_value".
        has_epsilon: whether an argument is EPSILON as the caller wrote it, a float or a text.
    """

    file: str
    function: str
    has_epsilon: bool


def make_design() -> Any:
    """Design a channel at ε = `EPSILON`."""
    return wb.design(wb.FiniteQuery("0..10", max_shift=1), loss="absolute", epsilon=EPSILON)


def test_a_design_passes_few_files_and_reads_epsilon_once() -> None:
    calls: list[Call] = []

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
        calls.append(Call(code.co_filename.removeprefix(ROOT), code.co_qualname, has_epsilon))

    make_design()  # Imports and caches are not part of the path.
    sys.setprofile(record_call)
    try:
        make_design()
    finally:
        sys.setprofile(None)
    functions = {(call.file, call.function) for call in calls}
    # 51 today. A file more is no fault; a detour through another folder adds many.
    assert len({call.file for call in calls}) <= 55
    # 362 today. About 25 of these functions are operators of the language in which a model is written.
    assert len(functions) <= 400
    # Models and solvers get the value that was read, as the same float.
    calculating_folders = ("/workbench/models/", "/workbench/solvers/")
    readers = [
        call.function
        for call in calls
        if call.has_epsilon and not call.file.startswith(calculating_folders)
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
    assert readers == expected_names
