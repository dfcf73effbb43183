"""Test the outputs (the alphabet) that MVU chooses: known optima, certificates and lower bounds.

A lower bound on the error is proven for every alphabet. Inputs are equally spaced in [-1, 1].
"""

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

# ε and a squared error that the search must reach. At 0.5 and 1.5 other programs found it (SciPy's
# trust-constr in results/bench/quantizer.csv). At 10 and 30 the inputs as outputs attain it.
KNOWN_ERRORS = [("0.5", 15.98813), ("1.5", 1.619785), ("10", 2.28e-4), ("30", 6.7e-5)]


def test_two_outputs_for_two_inputs_are_randomized_response():
    """The outputs are ±B. The smallest private B is coth(ε/2), and the squared error is B² - 1."""
    design = wb.design(wb.Quantization(levels=2), epsilon="1", method="mvu", inputs=2)
    output = 1 / np.tanh(0.5)
    assert design.mechanism.outputs.tolist() == pytest.approx([-output, output], rel=1e-4)
    assert design.objective == pytest.approx(output**2 - 1, rel=1e-5)
    assert 0 < design.bound <= design.objective
    assert design.certificate is not None


@pytest.mark.parametrize(("epsilon", "known_error"), KNOWN_ERRORS)
def test_search_reaches_known_errors_and_certifies_its_outputs(epsilon: str, known_error: float):
    design = wb.design(wb.Quantization(levels=4), epsilon=epsilon, method="mvu", inputs=4)
    assert design.objective <= known_error
    assert design.private
    assert design.certificate is not None
    assert design.certificate.bias.worst == 0
    assert 0 < design.bound <= design.objective
    points = np.linspace(-1, 1, 4)
    laws = design.mechanism.probabilities(points)
    error = (laws * (design.mechanism.outputs[None, :] - points[:, None]) ** 2).sum() / 4
    # At ε = 30 the repair changes the error by a thousandth.
    assert error == pytest.approx(design.objective, rel=1e-3)


def test_lower_bound_is_below_the_errors_of_random_alphabets():
    points = np.linspace(-1, 1, 5)
    rng = np.random.default_rng(3)
    for epsilon, loss in ((0.7, "squared"), (3.0, "absolute"), (6.0, "squared"), (9.0, "0.4")):
        problem = make_grid_problem(points, outputs=6, loss=loss)
        bound = compute_alphabet_bound(points, LawQuestion(Fraction(epsilon), loss=loss))
        assert bound > 0
        for start in make_start_alphabets(m=6, epsilon=epsilon, inputs=5, starts=4):
            # Alphabets are symmetric. The outputs of their positive half grow by up to 20 %.
            positive_outputs = np.sort(np.abs(start[3:] * (1 + 0.2 * rng.random(3))))
            alphabet = np.concatenate([-positive_outputs[::-1], positive_outputs])
            answer = problem.find_optimum(epsilon, alphabet)
            if answer is not None:
                assert bound <= answer.value
        problem.close()


def test_four_outputs_at_epsilon_10_are_within_60_percent_of_the_variance_bound():
    """The bound is that of Hammersley, Chapman and Robbins.

    At an input whose farthest other input is d away, the variance is at least d² e^ε/(e^ε - 1)².
    d is 2 at the inputs ±1, and 4/3 at ±1/3.
    """
    design = solve_mvu(LawQuestion(Fraction(10), uniform_density(), "squared"), 4)
    mean_square_distance = (2**2 + (4 / 3) ** 2) / 2
    variance_bound = mean_square_distance * np.exp(10) / np.expm1(10) ** 2
    assert design.bound is not None
    assert design.bound == pytest.approx(variance_bound, rel=1e-6)
    assert design.objective < 1.6 * design.bound
