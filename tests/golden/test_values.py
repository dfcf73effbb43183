"""Tests that about 350 commands return the recorded numbers of values.json.

Most numbers must agree to 1e-12 if this processor rounds like the processor of the recording. On
another processor, solvers stop at slightly different points, and the tolerance is larger. A few
numbers have a larger tolerance on every processor: see SENSITIVE_REQUESTS and TABLE_PREFIX.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from .values import (
    Recording,
    fingerprint_arithmetic,
    folder_of_inputs,
    read_recorded_fingerprint,
    read_recordings,
    run_command,
)

RECORDINGS = read_recordings()
# Largest relative and absolute differences.
SAME_PROCESSOR_TOLERANCE = 1e-12
SOLVER_TOLERANCE = 1e-8  # For answers of solvers on another processor.
SEARCH_TOLERANCE = 1e-4  # For answers of searches on another processor.

# An interior-point method returns a law that depends on the last bits of the processor under these
# notions. The loss is the same, but the budget that the law uses differs by about 1e-6.
SMOOTH_NOTIONS = ("zcdp", "renyi", "gdp")
USED_BUDGETS = ("exact.epsilon", "delta_low", "epsilon_low")

# 11 commands with one of these texts have returned other digits on a processor with the fingerprint
# of the recording. Their losses differed by up to 8e-9. The cause is not known.
SENSITIVE_REQUESTS = (*SMOOTH_NOTIONS, "curve", "noise --on integers --minimise epsilon")
SENSITIVE_TOLERANCE = 1e-7  # For answers to these requests on every processor.

# If several mechanisms are optimal, rounding decides which one is returned, and with it the numbers
# with these names. They are compared only where rounding is that of the recording.
UNSPECIFIED_NUMBERS = ("pure_epsilon", "pdp_delta", "metric_epsilon")

# Numbers in the rows of a table may belong to a published mechanism, whose parameter is found by a
# bisection in doubles.
TABLE_PREFIX = "rows."


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Enter a folder with the tables that commands read."""
    with folder_of_inputs(tmp_path_factory.mktemp("values")) as path:
        yield path


def save_files_for(command: str) -> None:
    """Run the recorded commands that save a file which a command reads, unless they already ran."""
    for recording in RECORDINGS:
        saved_name = recording.command.partition(" --save ")[2]
        is_read = saved_name and recording.command != command and saved_name in command
        if is_read and not Path(saved_name).exists():
            run_command(recording.command)


def is_sensitive(command: str) -> bool:
    """Return whether a command is one of SENSITIVE_REQUESTS."""
    return any(text in command for text in SENSITIVE_REQUESTS)


def choose_tolerance(command: str, name: str, *, is_same_processor: bool) -> float:
    """Return the largest difference of a number from the recorded one.

    Args:
        command: the command line.
        name: name of the number, such as "exact.epsilon".
        is_same_processor: whether this processor rounds like the processor of the recording.
    """
    is_smooth = any(notion in command for notion in SMOOTH_NOTIONS)
    if is_smooth and name in USED_BUDGETS:
        return SEARCH_TOLERANCE
    tolerance = SOLVER_TOLERANCE
    if is_same_processor:
        tolerance = SAME_PROCESSOR_TOLERANCE
    elif "--levels" in command or "reals" in command:
        tolerance = SEARCH_TOLERANCE
    if is_sensitive(command):
        tolerance = max(tolerance, SENSITIVE_TOLERANCE)
    if name.startswith(TABLE_PREFIX):
        return max(tolerance, SOLVER_TOLERANCE)
    return tolerance


def agrees(recorded: Any, current: Any, tolerance: float) -> bool:
    """Return whether two values are equal, or two numbers are equal within a tolerance."""
    are_numbers = isinstance(recorded, (int, float)) and isinstance(current, (int, float))
    if not are_numbers or isinstance(recorded, bool):
        return bool(recorded == current)
    return math.isclose(recorded, current, rel_tol=tolerance, abs_tol=tolerance)


@pytest.mark.parametrize("recording", RECORDINGS, ids=[each.command for each in RECORDINGS])
def test_a_command_returns_the_recorded_numbers(recording: Recording, folder: Path) -> None:
    save_files_for(recording.command)
    current = run_command(recording.command)
    assert current.exit == recording.exit
    assert current.failure == recording.failure
    is_same_processor = fingerprint_arithmetic() == read_recorded_fingerprint()
    has_same_rounding = is_same_processor and not is_sensitive(recording.command)
    differences = []
    for name, recorded_value in recording.values.items():
        if not has_same_rounding and name.endswith(UNSPECIFIED_NUMBERS):
            continue
        value = current.values.get(name, "missing")
        tolerance = choose_tolerance(recording.command, name, is_same_processor=is_same_processor)
        if not agrees(recorded_value, value, tolerance):
            differences.append(f"{name}: recorded {recorded_value!r}, now {value!r}")
    assert not differences, "\n".join(differences)
