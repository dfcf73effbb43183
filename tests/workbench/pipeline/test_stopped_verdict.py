"""Test verdicts on the objective of a stopped solve beside a known formula with the value 1.

The value is the optimum, or a proven upper or lower bound on it (`kind`). A stopped solve is not
optimal, so an objective above an optimum or an upper bound is not decided. It disagrees if the
proven bound of the solve is above the value as well. An objective below an optimum or a lower bound
disagrees, as no private mechanism has a smaller loss.
"""

from __future__ import annotations

import pytest

from workbench.pipeline.design import OracleVerdict

# The text of a verdict by its value of `agrees`.
TEXTS = {True: "agrees", False: "DISAGREES", None: "not decided, because the search stopped"}


@pytest.mark.parametrize(
    ("objective", "kind", "bound", "agrees"),
    [
        (1.2, "optimum", 0.9, None),
        (1.2, "optimum", None, None),
        (1.2, "optimum", 1.1, False),
        (0.8, "optimum", 0.7, False),
        (1.0, "optimum", 0.9, True),
        (1.2, "upper bound", 0.9, None),
        (1.2, "upper bound", None, None),
        (1.2, "upper bound", 1.1, False),
        (0.8, "upper bound", 0.7, True),
        (0.8, "lower bound", 0.7, False),
        (1.2, "lower bound", 0.7, True),
    ],
)
def test_a_stopped_solve_disagrees_only_if_this_is_proven(objective, kind, bound, agrees):
    verdict = OracleVerdict.judge(objective, name="formula", value=1.0, kind=kind, proof="Proof.")
    stopped_verdict = verdict.for_stopped_search(bound)
    assert stopped_verdict.agrees is agrees
    assert f", {TEXTS[agrees]}. Proof." in str(stopped_verdict)


def test_a_verdict_without_a_formula_or_an_objective_stays_undecided():
    without_formula = OracleVerdict.without_formula("no closed form is known.")
    assert without_formula.for_stopped_search(1.0) == without_formula
    without_objective = OracleVerdict.judge(None, "formula", 1.0, "optimum", "Proof.")
    assert "no verdict" in str(without_objective)
