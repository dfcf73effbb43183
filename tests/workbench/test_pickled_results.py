"""Test that every public result can be pickled, and that the copy has the same report.

The tests after `test_recommend_gives_...` are about arguments: `recommend` accepts a question
object, and unused options are refused.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import workbench as wb
from workbench.errors import InvalidRequest, WorkbenchError
from workbench.privacy.expected_error import compute_expected_error
from workbench.questions.range_query import RangeQuery

QUESTION = wb.FiniteQuery("0..3", max_shift=1)


# A function that pickle refuses.
fourth_power = lambda output, answer: (output - answer) ** 4  # noqa: E731


def always_zero(epsilon: float, delta: float) -> dict[int, int]:
    """Return the law of noise that is always 0, which is not private."""
    return {0: 1}


# Functions that make a result of every kind.
RESULTS: dict[str, Callable[[], Any]] = {
    "recommend": lambda: wb.recommend(QUESTION, epsilon=1),
    "recommend with user law": lambda: wb.recommend(
        QUESTION, epsilon=1, baseline=lambda epsilon, delta: {0: 1}
    ),
    "recommend with user loss": lambda: wb.recommend(QUESTION, epsilon=1, loss=fourth_power),
    "recommend of a range": lambda: wb.recommend(range="0..10", epsilon=1, only="staircase (pure)"),
    "recommend of places": lambda: wb.recommend(
        wb.FiniteQuery([(0, 0), (0, 1), (1, 0)], neighbours="all"),
        epsilon=1,
        loss="euclidean",
        notion="metric",
    ),
    "compare": lambda: wb.compare(QUESTION, epsilon=1, loss="squared", solvers="highs"),
    "formula": lambda: wb.formula(QUESTION, loss="absolute"),
    "formula in delta": lambda: wb.formula(QUESTION, loss="absolute", delta="0..0.2"),
    "formulas": lambda: wb.formula("modulo", n="3..5", max_shift=1, loss="error-rate"),
    "frontier": lambda: wb.frontier(QUESTION, epsilon="0.5,1", loss="squared"),
    "design of a channel": lambda: wb.design(QUESTION, epsilon=1, loss="squared"),
    "design of user loss": lambda: wb.design(
        QUESTION, epsilon=1, loss=lambda output, answer: abs(output - answer)
    ),
    "design of a range": lambda: wb.design("channel", range="0..10", epsilon=1),
    "design of integers": lambda: wb.design(wb.IntegerNoise(1), epsilon=1, loss="squared"),
    "design of reals": lambda: wb.design(wb.RealNoise(1), epsilon=1, loss="squared"),
    "design modulo": lambda: wb.design(
        wb.ModuloNoise(n=4, max_shift=1), epsilon=1, loss="squared", notion="dp"
    ),
    "design of labels": lambda: wb.design(wb.Labels(range(4)), epsilon=1, loss="squared"),
    "design of a quantizer": lambda: wb.design(wb.Quantization(levels=2), epsilon=1),
    "design of bits": lambda: wb.design("laplace", epsilon=1, bits=8),
    "audit": lambda: wb.audit(wb.design(QUESTION, epsilon=1, loss="squared").mechanism, epsilon=1),
    "certificate": lambda: wb.design(QUESTION, epsilon=1, loss="squared").certificate,
    "error": lambda: compute_expected_error(
        wb.design(QUESTION, epsilon=1, loss="squared").mechanism, "squared"
    ),
    "prices": lambda: wb.design(QUESTION, epsilon=1, loss="squared").shadow_prices,
    "composition": lambda: wb.compose(
        wb.design(QUESTION, epsilon=1, loss="squared").mechanism, 2, epsilon=1
    ),
    "risk": lambda: wb.risk(wb.design(QUESTION, epsilon=1, loss="squared").mechanism),
    "profile": lambda: wb.profile(wb.design(QUESTION, epsilon=1, loss="squared").mechanism),
}


@pytest.mark.parametrize("name", RESULTS)
def test_a_result_survives_pickling(name: str):
    result = RESULTS[name]()
    copy = pickle.loads(pickle.dumps(result))
    assert type(copy) is type(result)
    assert str(copy) == str(result)
    for attribute in ("rows", "objective", "pieces", "sentences"):
        assert str(getattr(copy, attribute, None)) == str(getattr(result, attribute, None))


def test_an_unpickled_recommendation_makes_its_designs():
    table = pickle.loads(pickle.dumps(wb.recommend(QUESTION, epsilon=1, baseline=always_zero)))
    assert table.best.certificate is not None
    for name in ("exponential", "randomized response", "modulo noise", "integer noise, clamped"):
        assert table.design(name).certificate is not None


def test_an_unpickled_comparison_has_its_plots():
    comparison = pickle.loads(pickle.dumps(RESULTS["compare"]()))
    assert comparison.plots == ["seconds"]


def test_an_unpickled_formula_is_evaluated_and_saved_like_the_original(tmp_path: Any):
    formula = RESULTS["formula"]()
    copy = pickle.loads(pickle.dumps(formula))
    assert copy(1) == formula(1)
    copy.save(tmp_path / "f.json")
    formula.save(tmp_path / "g.json")
    assert (tmp_path / "f.json").read_text() == (tmp_path / "g.json").read_text()


def test_an_unpickled_design_has_the_losses_of_a_loss_function():
    design = pickle.loads(pickle.dumps(RESULTS["design of user loss"]()))
    losses_at_answer_0 = design.request.aim.loss[0]
    assert losses_at_answer_0 == tuple(Fraction(output) for output in range(4))


def test_an_unpickled_formula_still_refuses_to_be_saved_if_no_file_can_hold_it(tmp_path: Any):
    formula = wb.formula(QUESTION, loss=np.subtract.outer(np.arange(4), np.arange(4)) ** 2)
    copy = pickle.loads(pickle.dumps(formula))
    assert copy(1) == formula(1)
    patterns = wb.formula(
        "modulo", n=4, max_shift=1, loss="error-rate", notion="pdp", epsilon=1, delta="0..0.1"
    )
    for original_or_copy in (patterns, pickle.loads(pickle.dumps(patterns))):
        with pytest.raises(WorkbenchError):
            original_or_copy.save(tmp_path / "f.json")


@pytest.mark.parametrize(
    ("question", "options", "loss"),
    [
        (wb.FiniteQuery("0..3", max_shift=1), {"answers": "0..3", "max_shift": 1}, "squared"),
        (
            wb.FiniteQuery("0..3", max_shift=1, prior=[1, 2, 3, 4]),
            {"answers": "0..3", "max_shift": 1, "prior": "1,2,3,4"},
            "squared",
        ),
        (
            wb.FiniteQuery("0..3", outputs="0..1", neighbours="all", prior="worst"),
            {"answers": "0..3", "outputs": "0..1", "neighbours": "all", "prior": "worst"},
            "squared",
        ),
        (
            wb.FiniteQuery("a,b,c", neighbours="all"),
            {"answers": "a,b,c", "neighbours": "all"},
            "error-rate",  # Texts have no other loss by name.
        ),
        (
            wb.FiniteQuery("0..3", max_shift=1, directed=True),
            {"answers": "0..3", "max_shift": 1, "directed": True},
            "squared",
        ),
    ],
)
def test_recommend_gives_the_same_table_for_a_question_and_its_options(
    question: Any, options: dict[str, Any], loss: str
):
    by_question = wb.recommend(question, epsilon=1, loss=loss)
    by_options = wb.recommend(**options, epsilon=1, loss=loss)
    for column in ("class", "objective", "bound"):
        assert [row[column] for row in by_question] == [row[column] for row in by_options]
    assert by_question.title == by_options.title
    assert by_question.chosen == by_options.chosen


def test_recommend_gives_the_same_row_for_a_range_query_and_its_options():
    name = "staircase (pure)"
    (row_of_question,) = wb.recommend(RangeQuery("0..10", sensitivity=2), epsilon=1, only=name)
    (row_of_options,) = wb.recommend(range="0..10", sensitivity=2, epsilon=1, only=name)
    assert row_of_question["objective"] == row_of_options["objective"]


@pytest.mark.parametrize(
    "wrong", ["0..3", 5, wb.ModuloNoise(n=4, max_shift=1), wb.RealNoise(1), [0, 1]]
)
def test_recommend_refuses_other_types_of_questions(wrong: Any):
    with pytest.raises(InvalidRequest, match="must be a FiniteQuery"):
        wb.recommend(wrong, epsilon=1)


def test_recommend_refuses_a_question_and_its_options_together():
    with pytest.raises(InvalidRequest, match="given once"):
        wb.recommend(QUESTION, answers="0..3", epsilon=1)


@pytest.mark.parametrize("unused", [{"solver": "highs"}, {"method": "block"}, {"certify": False}])
def test_a_formula_refuses_options_of_solvers(unused: dict[str, Any]):
    with pytest.raises(InvalidRequest, match="without a solver"):
        wb.formula(QUESTION, loss="absolute", **unused)


@pytest.mark.parametrize("function", [wb.design, wb.recommend])
def test_a_unit_without_coordinates_is_refused(function: Any):
    with pytest.raises(InvalidRequest, match="unit must be left out"):
        function(QUESTION, epsilon=1, unit="km")
