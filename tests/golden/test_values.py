"""What some 350 commands answer agrees with what was recorded: to 1e-12 where this processor rounds
as that one did.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from .values import arithmetic, folder_of_inputs, observed, recorded, recorded_arithmetic

LINES = recorded()
SAME, SOLVER, SEARCH = (
    1e-12,
    1e-8,
    1e-4,
)  # relative; the last two on a processor that rounds in another way
UNASKED = (
    "pure_epsilon",
    "pdp_delta",
    "metric_epsilon",
)  # an optimum that is not the only one decides these by rounding


# An interior method stops at a law that depends on the last bits of the processor. The loss is the
# same; the budget that the law spends, and the composition of it, differ by 1e-6.
SMOOTH_NOTIONS = ("zcdp", "renyi", "gdp")
SPENT_BUDGETS = ("exact.epsilon", "delta_low", "epsilon_low")
# A row of a table may show a published mechanism, whose parameter is bisected in floats.
OF_ROWS = "rows."


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A folder with the files that audits, checks and compositions read."""
    with folder_of_inputs(tmp_path_factory.mktemp("values")) as where:
        for line in LINES:
            if " --save " in line["command"]:
                observed(line["command"])
        yield where


@pytest.mark.parametrize("line", LINES, ids=[line["command"] for line in LINES])
def test_a_command_answers_what_was_recorded(line: dict[str, Any], folder: Path):
    today = observed(line["command"])
    assert (today["exit"], today.get("failure")) == (line["exit"], line.get("failure"))
    searched = "--levels" in line["command"] or "reals" in line["command"]
    alike = arithmetic() == recorded_arithmetic()
    tolerance = SAME if alike else SEARCH if searched else SOLVER
    is_smooth = any(notion in line["command"] for notion in SMOOTH_NOTIONS)
    different = [
        f"{name}: recorded {old!r}, today {today['values'].get(name)!r}"
        for name, old in line.get("values", {}).items()
        if (alike or not name.endswith(UNASKED))
        and not _same(
            old,
            today["values"].get(name, "missing"),
            SEARCH
            if is_smooth and name in SPENT_BUDGETS
            else max(tolerance, SOLVER)
            if name.startswith(OF_ROWS)
            else tolerance,
        )
    ]
    assert not different, "\n".join(different)


def _same(old: Any, new: Any, tolerance: float) -> bool:
    if (
        isinstance(old, bool)
        or not isinstance(old, (int, float))
        or not isinstance(new, (int, float))
    ):
        return bool(old == new)
    return math.isclose(old, new, rel_tol=tolerance, abs_tol=tolerance)
