"""Test that the certificate of every release is refused if a shift is left out or made smaller."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import workbench as wb
from workbench.errors import WorkbenchError

ROOT = Path(__file__).parents[3]
CHECKER = ROOT / "tools" / "check_certificate.py"
# The JSON object of a certificate, or of its mechanism.
Record = dict[str, Any]
# Three rows of a person count, so the histogram has several partitions.
PERSON = {"person": "patient", "rows_per_person": 3}


def drop_shift(mechanism: Record) -> None:
    """Take one shift vector away: the last one that is not the only one of its norm."""
    del mechanism["shifts"][len(mechanism["shifts"]) // 2]


def shrink_shift(mechanism: Record) -> None:
    """Make the largest shift vector smaller by one row or step."""
    mechanism["shifts"][-1][0] -= 1


def count_larger_shift(mechanism: Record) -> None:
    """State a larger shift, so the noise was designed for a shift that is less by one."""
    mechanism["sensitivity"] += 1


def count_more_cells(mechanism: Record) -> None:
    """State one more cell in a sensitivity, so the cells were designed for a smaller shift."""
    mechanism["steps"] += 1


# A statistic, its options, and a function that changes its certificate.
CASES = [
    ("count", PERSON, count_larger_shift),
    ("sum", PERSON | {"column": "age", "range": "18..95"}, count_more_cells),
    ("mean", {"column": "age", "range": "18..95", "rows": 9}, count_more_cells),
    ("mean", {"column": "age", "range": "0..10"}, drop_shift),
    ("mean", {"column": "age", "range": "0..10"}, shrink_shift),
    ("histogram", PERSON | {"column": "region", "values": "north,south"}, drop_shift),
    ("histogram", PERSON | {"column": "region", "values": "north,south"}, shrink_shift),
]


def run_independent_checker(path: Path) -> int:
    """Return the exit code of the checker that shares no code with the workbench."""
    command = [sys.executable, str(CHECKER), str(path)]
    return subprocess.run(command, check=False, capture_output=True).returncode


def is_refused(path: Path) -> bool:
    """Return whether `workbench check` refuses a certificate."""
    try:
        return not wb.check(path).holds()
    except WorkbenchError:
        return True


@pytest.mark.parametrize(("kind", "options", "tamper"), CASES)
def test_both_checkers_refuse_a_certificate_with_a_smaller_relation(
    kind: str, options: Record, tamper: Callable[[Record], None], tmp_path: Path
) -> None:
    release = getattr(wb.publish, kind)("no.csv", epsilon=1, dry_run=True, **options)
    path = tmp_path / "release.json"
    release.save(path)
    assert not is_refused(path)
    record = json.loads(path.read_text())
    tamper(record["mechanism"])
    path.write_text(json.dumps(record))
    assert is_refused(path)
    assert run_independent_checker(path) != 0


def test_both_checkers_refuse_a_certificate_of_a_plan_without_a_partition(tmp_path: Path) -> None:
    statistic = {"kind": "histogram", "column": "region", "values": ["north", "south"], "weight": 1}
    plan = PERSON | {"statistic": [{"kind": "count", "weight": 1}, statistic]}
    release = wb.publish.plan(plan, "no.csv", epsilon=1, dry_run=True)
    paths = release.save(tmp_path / "plan.json")
    assert [is_refused(path) for path in paths] == [False, False]
    record = json.loads(paths[1].read_text())
    drop_shift(record["mechanism"])
    paths[1].write_text(json.dumps(record))
    assert is_refused(paths[1])
    assert run_independent_checker(paths[1]) != 0
