"""Compare the objective of a stopped solve with a closed form, whose law has the value 1.

A stopped solve is not optimal, so an objective above the law decides nothing. It disagrees only if
the proven bound excludes the law, or if the objective is below the law.
"""

from __future__ import annotations

import pytest

from workbench.pipeline.design import OracleVerdict


@pytest.mark.parametrize(
    ("objective", "kind", "bound", "agrees"),
    [
        (1.2, "optimum", 0.9, None),
        (1.2, "optimum", None, None),
        (1.2, "optimum", 1.1, False),  # the bound excludes the law
        (0.8, "optimum", 0.7, False),  # no private mechanism has a smaller loss than the law
        (1.0, "optimum", 0.9, True),
        (1.2, "upper bound", 1.1, None),
        (0.8, "lower bound", 0.7, False),
        (1.2, "lower bound", 0.7, True),
    ],
)
def test_a_stopped_solve_disagrees_only_if_this_is_proven(objective, kind, bound, agrees):
    verdict = OracleVerdict.judge(objective, "law", 1.0, kind, "Proof.").for_stopped_search(bound)
    assert verdict.agrees is agrees
    assert ("not decided, because the search stopped" in str(verdict)) is (agrees is None)
    assert ("DISAGREES" in str(verdict)) is (agrees is False)


def test_a_verdict_without_a_law_or_an_objective_stays_undecided():
    none = OracleVerdict.without_formula("no closed form is known.")
    assert none.for_stopped_search(1.0) == none
    assert "no verdict" in str(OracleVerdict.judge(None, "law", 1.0, "optimum", "Proof."))
