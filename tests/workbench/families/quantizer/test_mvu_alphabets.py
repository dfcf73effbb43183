"""Test MVU's alphabets: asymmetric ones, large ε, certificates and bounds."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

import workbench as wb
from workbench.families.quantizer.laws import LawQuestion, make_grid_problem
from workbench.families.quantizer.limit import compute_alphabet_bound
from workbench.families.quantizer.mvu import solve_mvu
from workbench.families.quantizer.outputs import make_start_alphabets
from workbench.questions.density import uniform_density

# Upper limits: the best of other programs at ε = 0.5 and 1.5, and of the grid of inputs at 10
# and 30.
LEAST = [("0.5", 15.98813), ("1.5", 1.619785), ("10", 2.28e-4), ("30", 6.7e-5)]


def test_two_outputs_for_two_inputs_are_randomized_response():
    """The outputs are ±B. The smallest private B is coth(ε/2), and the squared error is B² - 1."""
    design = wb.design(wb.Quantization(levels=2), epsilon="1", method="mvu", inputs=2)
    output = 1 / np.tanh(0.5)
    assert design.mechanism.outputs.tolist() == pytest.approx([-output, output], rel=1e-4)
    assert design.objective == pytest.approx(output**2 - 1, rel=1e-5)
    assert 0 < design.bound <= design.objective
    assert design.certificate is not None


@pytest.mark.parametrize(("epsilon", "least"), LEAST)
def test_search_finds_and_certifies_known_alphabets(epsilon: str, least: float):
    design = wb.design(wb.Quantization(levels=4), epsilon=epsilon, method="mvu", inputs=4)
    assert design.objective <= least
    assert design.private
    assert design.certificate is not None
    assert design.certificate.bias.worst == 0
    assert 0 < design.bound <= design.objective
    points = np.linspace(-1, 1, 4)
    laws = design.mechanism.probabilities(points)
    error = (laws * (design.mechanism.outputs[None, :] - points[:, None]) ** 2).sum() / 4
    # At ε = 30 the repair changes it by a thousandth.
    assert error == pytest.approx(design.objective, rel=1e-3)


def test_bound_is_below_random_alphabets():
    points, rng = np.linspace(-1, 1, 5), np.random.default_rng(3)
    for epsilon, loss in ((0.7, "squared"), (3.0, "absolute"), (6.0, "squared"), (9.0, "0.4")):
        problem = make_grid_problem(points, outputs=6, loss=loss)
        bound = compute_alphabet_bound(points, LawQuestion(Fraction(epsilon), loss=loss))
        assert bound > 0
        for start in make_start_alphabets(m=6, epsilon=epsilon, inputs=5, starts=4):
            half = np.sort(np.abs(start[3:] * (1 + 0.2 * rng.random(3))))
            answer = problem.find_optimum(epsilon, np.concatenate([-half[::-1], half]))
            if answer is not None:
                assert bound <= answer.value
        problem.close()


def test_inputs_are_a_good_alphabet_at_large_budgets():
    design = solve_mvu(LawQuestion(Fraction(10), uniform_density(), "squared"), 4)
    assert design.bound is not None
    # The variance is at least 4 e^ε/(e^ε - 1)² (Hammersley, Chapman and Robbins).
    assert design.bound == pytest.approx(
        (4 + 16 / 9) / 2 * np.exp(10) / np.expm1(10) ** 2, rel=1e-6
    )
    assert design.objective < 1.6 * design.bound
