"""Tests of the measure of names, comments and docstrings, and of the goals of the project."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PROGRAM = ROOT / "tools" / "legibility.py"
_spec = importlib.util.spec_from_file_location("legibility", PROGRAM)
assert _spec is not None
assert _spec.loader is not None
legibility = importlib.util.module_from_spec(_spec)
sys.modules["legibility"] = legibility
_spec.loader.exec_module(legibility)

# A source with the names and texts that the measure counts as bad.
DIALECT = '''"""What is read."""
_MOST, _NEAR = 3, 1e-9  # of a half


def least(given, at=None):
    """Of the prior."""
    low, high = given[0], given[1]
    told = low if at is None else high
    return told


def joined(parts):
    # else sums still miss what they are to be
    return [part for part in parts]
'''

# The same in plain words.
PLAIN = '''"""Read priors."""
# Bins are not computed above this epsilon.
_MAX_BINNING_EPSILON = 3


def minimise_epsilon(request, start=None):
    """Return the smallest epsilon that meets the limit.

    Args:
        request: the request with its limit.
        start: epsilon at which the search begins, None for the middle.
    """
    epsilon = request.epsilon
    if start is not None:
        epsilon = start
    return epsilon
'''


def _counts(text: str):
    """Return the counts of a source text: name of the count -> number."""
    return legibility.FileMeasure(Path("example.py"), text).counts


def test_the_programs_of_this_project_meet_the_goals() -> None:
    measures = legibility.measure_folders(ROOT)
    assert len(measures) > 400
    assert not legibility.missed_goals(legibility.total_counts(measures))


@pytest.mark.parametrize(
    ("count", "expected"),
    [
        ("functions bare", 2),  # least, joined
        ("parameters bare", 2),  # given, at
        ("locals bare", 1),  # told
        ("private constants bare", 2),  # _MOST, _NEAR
        ("constants in tuples", 2),  # _MOST, _NEAR
        ("comments fragment", 2),  # "of a half", "else sums ..."
        ("docs fragment", 1),  # "Of the prior."; the docstring of the module is not counted.
        ("docs verb", 0),
        ("public parameters described", 0),
        # Assignments of several values: _MOST, _NEAR = ... and low, high = ...
        ("multi", 2),
        # Conditional expressions: told = low if ...
        ("ifexp", 1),
    ],
)
def test_each_kind_of_unclear_text_is_counted(count: str, expected: int) -> None:
    assert _counts(DIALECT)[count] == expected


def test_plain_code_meets_every_goal() -> None:
    assert not legibility.missed_goals(_counts(PLAIN))


def test_the_names_of_missed_goals_are_given() -> None:
    sentences = legibility.missed_goals(_counts(DIALECT))
    missed = {sentence.partition(" ")[0] for sentence in sentences}
    # One short file has no shared names, no wide lines and few tokens in a line.
    assert missed == {*legibility.COLUMNS} - {"same%", "wide%", "tok/l"}


def test_wide_lines_and_shared_names_are_counted(tmp_path: Path) -> None:
    for name in ("first", "second", "third"):
        text = f'def run_task():\n    """Run {name}."""\n'
        (tmp_path / f"{name}.py").write_text(text + "# x" + "-" * 100 + "\n", "utf-8")
    counts = legibility.total_counts(legibility.measure_folders(tmp_path, (".",)))
    assert counts["functions of shared names"] == 3
    assert counts["wide lines"] == 3


def test_the_command_fails_if_a_goal_is_missed(tmp_path: Path) -> None:
    (tmp_path / "example.py").write_text(DIALECT, "utf-8")
    command = [sys.executable, str(PROGRAM), str(tmp_path), ".", "--goals"]
    process = subprocess.run(command, capture_output=True, text=True, check=False)
    assert process.returncode == 1
    assert "fn% is 100.00. It must be below 3." in process.stderr
