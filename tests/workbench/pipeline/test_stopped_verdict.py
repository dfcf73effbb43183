"""What a closed form says of a solve that was stopped: nothing, unless it lies below what is proven."""

from __future__ import annotations

import pytest

from workbench.pipeline.design import OracleVerdict


@pytest.mark.parametrize(
    ("objective", "kind", "bound", "agrees"),
    [
        (1.2, "optimum", 0.9, None),
        (1.2, "optimum", None, None),
        (1.2, "optimum", 1.1, False),  # the bound excludes the law
        (0.8, "optimum", 0.7, False),  # nothing private costs less
        (1.0, "optimum", 0.9, True),
        (1.2, "upper bound", 1.1, None),
        (0.8, "lower bound", 0.7, False),
        (1.2, "lower bound", 0.7, True),
    ],
)
def test_a_stopped_solve_is_not_said_to_disagree(objective, kind, bound, agrees):
    verdict = OracleVerdict.judge(objective, "law", 1.0, kind, "Proof.").for_stopped_search(bound)
    assert verdict.agrees is agrees
    assert ("not decided, because the search stopped" in str(verdict)) is (agrees is None)
    assert ("DISAGREES" in str(verdict)) is (agrees is False)


def test_without_a_law_there_is_nothing_to_decide():
    none = OracleVerdict.without_formula("no closed form is known.")
    assert none.for_stopped_search(1.0) == none
    assert "no verdict" in str(OracleVerdict.judge(None, "law", 1.0, "optimum", "Proof."))
