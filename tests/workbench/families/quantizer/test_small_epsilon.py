"""Test OPTM and the product optimum at small ε in rational arithmetic."""

from __future__ import annotations

from fractions import Fraction

import pytest

import workbench as wb
from workbench.families.quantizer.laws import LawQuestion
from workbench.families.quantizer.optm import solve_optm_with_thinner_slices
from workbench.mechanisms.piecewise_affine import Quantizer
from workbench.models.quantizer.program import smallest_reach


def is_unbiased_and_private(quantizer: Quantizer, epsilon: Fraction) -> bool:
    """Return whether a quantizer is unbiased and ε-private, by the definitions in rationals.

    e^ε is bounded from below by the first terms of its series.
    """
    odds = term = Fraction(1)
    for k in range(1, 20):
        term = term * epsilon / k
        odds += term
    laws = [[law[i] for i in range(quantizer.m)] for law in quantizer.ends]
    means = [sum(b * p for b, p in zip(quantizer.bins, law, strict=True)) for law in laws]
    return (
        all(sum(law) == 1 and min(law) >= 0 for law in laws)
        and means == list(quantizer.end_inputs)
        and all(max(column) <= odds * min(column) for column in zip(*laws, strict=True))
    )


@pytest.mark.parametrize("method", ["optm", "product"])
def test_three_outputs_at_a_small_epsilon_are_private_and_no_worse_than_two(method: str):
    design = wb.design(wb.Quantization(levels=3), epsilon="0.01", method=method)
    assert is_unbiased_and_private(design.mechanism, Fraction(1, 100))
    # Randomized response at the least reach r has the error r - 1/(3 r).
    least = smallest_reach(0.01)
    assert design.mechanism.mae() <= (least - 1 / (3 * least)) * (1 + 1e-9)


@pytest.mark.parametrize("method", ["optm", "product"])
@pytest.mark.parametrize("epsilon", ["0.01", "0.001"])
def test_optm_designs_four_outputs_at_a_small_epsilon(method: str, epsilon: str):
    design = wb.design(wb.Quantization(levels=4), epsilon=epsilon, method=method)
    assert design.private
    assert is_unbiased_and_private(design.mechanism, Fraction(epsilon))
    # Randomized response at the least reach r has the error r - 1/(3 r).
    least = smallest_reach(float(epsilon))
    assert design.mechanism.mae() < (least - 1 / (3 * least)) * (1 + 1e-9)


@pytest.mark.parametrize(
    "bins", ["-201,-1,1,201", "-200.1,-0.5,0,0.5,200.1", "-201,-50,-0.9,-0.2,0.2,0.9,50,201"]
)
def test_outputs_within_reach_always_have_a_law(bins: str):
    outputs = [Fraction(b) for b in bins.split(",")]
    answer = solve_optm_with_thinner_slices(outputs, LawQuestion(Fraction(1, 100)))
    assert answer is not None
    reach = float(outputs[-1])
    # This is randomized response with two outputs.
    assert answer.quantizer.mae() <= (reach - 1 / (3 * reach)) * (1 + 1e-9)
    assert is_unbiased_and_private(answer.quantizer, Fraction(1, 100) + Fraction(1, 10**9))


def test_relative_slices_have_solutions_where_no_width_has():
    bins = [Fraction(b) for b in ("-2.17", "-0.4", "0.4", "2.17")]  # The least reach is 2.16395.
    answer = solve_optm_with_thinner_slices(bins, LawQuestion(Fraction(1)))
    assert answer is not None
    assert is_unbiased_and_private(answer.quantizer, 1 + Fraction(1, 10**9))


@pytest.mark.parametrize(
    ("bins", "epsilon"),
    [
        # The least reach coth(ε/2) is just below the last output: 1.4999987, 1.999988, 1.0499986.
        ("-1.5,-0.5,0.5,1.5", "1.60944"),
        ("-1.5,-0.5,0.3,0.5,1.5", "1.60944"),
        ("-2,-0.5,0.5,2", "1.09862"),
        ("-1.05,-0.5,0.5,1.05", "3.7136"),
    ],
)
def test_relative_slices_above_epsilon_ln_3_stay_in_the_domain_of_rqm(bins: str, epsilon: str):
    outputs = [Fraction(b) for b in bins.split(",")]
    answer = solve_optm_with_thinner_slices(outputs, LawQuestion(Fraction(epsilon)))
    assert answer is not None
    assert is_unbiased_and_private(answer.quantizer, Fraction(epsilon) + Fraction(1, 10**9))
