"""Test the search for outputs: slopes, asymmetric optima, reproducibility and bounds."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

from workbench.families.quantizer.laws import LawQuestion, make_exact_problem, solve_exact_quantizer
from workbench.families.quantizer.limit import compute_output_bound
from workbench.families.quantizer.mvu import solve_mvu
from workbench.families.quantizer.output_search import optimise_bins
from workbench.families.quantizer.search import find_best_rqm, search_bins
from workbench.families.quantizer.window_laws import compute_farthest_mean, compute_window_objective
from workbench.models.quantizer.program import compute_odds, default_reach, smallest_reach
from workbench.privacy.audit import audit_extremes
from workbench.questions.density import Density, normal_density, uniform_density
from workbench.solvers.search import Deadline

LAW = LawQuestion(Fraction(1))
# ε -> four asymmetric outputs at which private unbiased laws exist.
OUTPUTS = {
    0.5: (-6.1, -0.43, 0.27, 5.2),
    2.0: (-1.5, -0.22, 0.78, 2.6),
    7.0: (-1.01, -0.31, 0.36, 1.003),
}


def compute_least_masses(outputs: np.ndarray, epsilon: float, share: float) -> np.ndarray:
    """Return least masses of the outputs, at which the error is a smooth function. Shape (m,).

    A least mass is the smallest probability of an output over all inputs. These are the least masses
    of the laws of the linear program, mixed with equal masses.

    Args:
        outputs: the outputs in increasing order. Shape (m,).
        epsilon: the budget ε.
        share: the share of the equal masses in the mixture.
    """
    problem = make_exact_problem(np.linspace(-1, 1, 41), outputs.size, LAW, symmetric=False)
    laws = problem.find_optimum(epsilon, outputs).laws
    equal_mass = 2 / (2 + compute_odds(epsilon)) / outputs.size
    return (1 - share) * laws.min(axis=0) + share * equal_mass


@pytest.mark.parametrize("epsilon", OUTPUTS)
@pytest.mark.parametrize(
    ("density", "loss"),
    [(uniform_density(), "absolute"), (normal_density(mu=0.3, sigma=0.4), "0.5")],
)
def test_window_slopes_equal_difference_quotients(epsilon: float, density, loss: str):
    """The slopes are in four outputs and four least masses, and the steps go to both sides."""
    question = replace(LAW, epsilon=Fraction(epsilon), density=density, loss=loss)
    outputs = np.array(OUTPUTS[epsilon])
    least_masses = compute_least_masses(outputs, epsilon, share=0.1)
    max_ratio = 1 + compute_odds(epsilon)
    error_slopes = compute_window_objective(question, outputs, least_masses).slopes
    mean, mean_slopes = compute_farthest_mean(max_ratio, outputs, least_masses)
    assert mean == pytest.approx(0, abs=0.2)
    step_size = 1e-6 * least_masses.min()
    directions = np.eye(8).reshape(8, 2, 4)
    for direction, error_slope, mean_slope in zip(
        directions, error_slopes, mean_slopes, strict=True
    ):
        output_step, mass_step = step_size * direction
        above = (outputs + output_step, least_masses + mass_step)
        below = (outputs - output_step, least_masses - mass_step)
        error_difference = (
            compute_window_objective(question, *above).value
            - compute_window_objective(question, *below).value
        )
        mean_difference = (
            compute_farthest_mean(max_ratio, *above)[0]
            - compute_farthest_mean(max_ratio, *below)[0]
        )
        width = 2 * step_size
        assert error_slope == pytest.approx(error_difference / width, rel=1e-3, abs=1e-3)
        assert mean_slope == pytest.approx(mean_difference / width, rel=1e-4, abs=1e-4)


@pytest.mark.parametrize("epsilon", OUTPUTS)
def test_window_laws_equal_the_program_with_bends_as_knots(epsilon: float):
    """At the program's least masses the window has the error of the program with bends as knots."""
    question = replace(LAW, epsilon=Fraction(epsilon))
    outputs = np.array(OUTPUTS[epsilon])
    knots = np.linspace(-1, 1, 41)
    errors = []
    for _ in range(12):
        problem = make_exact_problem(knots, outputs=4, question=question, symmetric=False)
        answer = problem.find_optimum(epsilon, outputs)
        window = compute_window_objective(question, outputs, answer.laws.min(axis=0))
        assert window.value <= answer.value * (1 + 1e-9)
        errors.append(answer.value)
        knots = np.unique(np.concatenate([knots, np.clip(window.bends, -1, 1)]))
    assert window.value == pytest.approx(errors[-1], rel=1e-6)
    assert errors[-1] < errors[0]


# The best known errors of four outputs for uniform inputs: values of the current program, pinned.
# Symmetric outputs have 0.700259 at ε = 2.
@pytest.mark.parametrize(
    ("epsilon", "best_error"), [("1", 1.657626), ("2", 0.694530), ("10", 0.222384)]
)
def test_search_finds_known_outputs(epsilon: str, best_error: float):
    optimum = optimise_bins(4, LawQuestion(Fraction(epsilon)), starts=1)
    assert optimum is not None
    assert optimum.objective <= best_error
    assert abs(optimum.quantizer.outputs).max() <= default_reach(float(epsilon)) + 1e-6
    # Of two mirror images the same one is always returned.
    assert sum(optimum.quantizer.bins) >= 0
    pure_epsilon = audit_extremes(optimum.quantizer, 0).pure_epsilon
    assert pure_epsilon == pytest.approx(float(epsilon), abs=1e-6)


def test_two_outputs_have_the_error_of_randomized_response():
    """Two outputs ±B at the smallest private B = coth(ε/2) have the error B - 1/(3 B)."""
    two_outputs = optimise_bins(2, LAW, starts=1, knots=5)
    assert two_outputs is not None
    largest_output = 1 / np.tanh(0.5)
    expected_error = largest_output - 1 / (3 * largest_output)
    assert two_outputs.objective == pytest.approx(expected_error, rel=1e-6)


def test_a_third_output_reduces_the_error_of_randomized_response():
    two_outputs = optimise_bins(2, LAW, starts=1, knots=5)
    three_outputs = optimise_bins(3, LAW, starts=1, knots=5)
    assert two_outputs is not None
    assert three_outputs is not None
    assert three_outputs.objective < two_outputs.objective


def test_three_outputs_use_the_whole_budget_and_are_above_their_bound():
    three_outputs = optimise_bins(3, LAW, starts=1, knots=5)
    assert three_outputs is not None
    pure_epsilon = audit_extremes(three_outputs.quantizer, 0).pure_epsilon
    assert pure_epsilon == pytest.approx(1, abs=1e-9)
    bound = compute_output_bound(3, LAW, default_reach(1.0))
    assert bound is not None
    assert bound <= three_outputs.objective


@pytest.mark.parametrize(
    ("epsilon", "density"), [("0.5", uniform_density()), ("2", normal_density(mu=0.5, sigma=0.3))]
)
def test_more_outputs_are_never_worse(epsilon: str, density):
    """The proven bound is below the error for each number of outputs m."""
    question = LawQuestion(Fraction(epsilon), density)
    errors = []
    for m in (2, 3, 4, 5):
        optimum = optimise_bins(m, question, starts=1, knots=11)
        assert optimum is not None
        assert optimum.quantizer.m <= m
        bound = compute_output_bound(m, question, default_reach(float(epsilon)))
        assert bound is not None
        assert bound <= optimum.objective
        errors.append(optimum.objective)
    assert errors == sorted(errors, reverse=True)


@pytest.mark.parametrize(("epsilon", "m"), [("1.5", 3), ("3", 4)])
def test_optimised_outputs_are_never_worse_than_published_ones(epsilon: str, m: int):
    question = LawQuestion(Fraction(epsilon))
    optimum = optimise_bins(m, question, starts=1, knots=11)
    assert optimum is not None
    rqm = find_best_rqm(m, epsilon)
    assert rqm is not None
    assert optimum.objective <= rqm.mae()
    # The bins of OPTM, with the exact law.
    optm_bins = search_bins(m, question, stride=5)
    on_optm_bins = solve_exact_quantizer(optm_bins, question, knots=11)
    assert on_optm_bins is not None
    assert optimum.objective <= on_optm_bins.objective


@pytest.mark.parametrize(
    ("epsilon", "m", "loss"),
    [
        ("7", 4, "absolute"),
        ("4", 3, "absolute"),
        ("10", 3, "absolute"),
        ("20", 3, "absolute"),
        (".1", 3, "squared"),
    ],
)
def test_optimised_outputs_are_never_worse_than_mvu(epsilon: str, m: int, loss: str):
    """MVU's law bends at ±1/3 at large ε, and has two outputs near each other at small ε."""
    question = LawQuestion(Fraction(epsilon), uniform_density(), loss=loss)
    optimum = optimise_bins(m, question, starts=1, knots=11)
    assert optimum is not None
    mvu_question = LawQuestion(Fraction(epsilon), uniform_density(), "squared")
    mvu = solve_mvu(mvu_question, m, reach=default_reach(float(epsilon))).quantizer
    mvu_error = mvu.mae() if loss == "absolute" else mvu.mse()
    # The outputs have five decimals.
    assert optimum.objective <= mvu_error * (1 + 1e-8)
    pure_epsilon = audit_extremes(optimum.quantizer, 0).pure_epsilon
    assert pure_epsilon == pytest.approx(float(epsilon), abs=1e-6)


def test_outputs_are_the_same_without_vector_instructions():
    """They agree to two units of the fifth decimal, as SLSQP depends on the machine."""
    program = """
from fractions import Fraction
from workbench.families.quantizer.laws import LawQuestion
from workbench.families.quantizer.output_search import optimise_bins
from workbench.questions.density import normal_density
question = LawQuestion(Fraction(2), normal_density(mu=0, sigma=0.5))
print(*map(float, optimise_bins(4, question, starts=1, knots=11).quantizer.bins))
"""
    usual_environment = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("NPY_", "OPENBLAS_"))
    }
    old_machine = {
        "NPY_DISABLE_CPU_FEATURES": "AVX2 FMA3 AVX512F AVX512CD AVX512_SKX",
        "OPENBLAS_CORETYPE": "Nehalem",
    }

    def find_outputs(environment: dict[str, str]) -> list[float]:
        """Run the program in another process with these variables. Return its four outputs."""
        command = [sys.executable, "-W", "ignore", "-c", program]
        process = subprocess.run(command, env=environment, capture_output=True, check=True)
        return [*map(float, process.stdout.split())]

    outputs = find_outputs(usual_environment)
    assert len(outputs) == 4
    assert find_outputs(usual_environment | old_machine) == pytest.approx(outputs, abs=2e-5)


@pytest.mark.parametrize("loss", ["absolute", "squared"])
def test_bound_is_below_every_quantizer(loss: str):
    """The quantizers have three random outputs, and the densities are uniform and of three steps."""
    generator = np.random.default_rng(0)
    step_density = Density(
        "steps",
        c=1.0,
        shape=lambda x: np.select([x < -0.25, x < 0.5], [0.8 / 3, 2.8 / 3], 0.2),
        breaks=(-0.25, 0.5),
    )
    for epsilon in (0.3, 6.0):
        least_reach = smallest_reach(epsilon)
        reach = default_reach(epsilon)
        questions = [
            LawQuestion(Fraction(epsilon), density, loss)
            for density in (uniform_density(), step_density)
        ]
        bounds = [compute_output_bound(3, question, reach) for question in questions]
        for _ in range(3):
            left_reach, right_reach = least_reach + (reach - least_reach) * generator.random(2)
            floats = (-left_reach, generator.uniform(low=-1, high=1), right_reach)
            outputs = tuple(Fraction(output) for output in floats)
            for question, bound in zip(questions, bounds, strict=True):
                quantizer = solve_exact_quantizer(outputs, question, knots=21)
                assert quantizer is not None
                assert bound is not None
                assert 0 < bound <= quantizer.objective


def test_bound_by_two_inputs_is_below_the_error():
    """Half the inputs are -1/2, half 1/2, so 2 E|X - median|/(1 + e^ε) = 1/(1 + e^ε)."""
    atoms = ((-0.5, 0.5), (0.5, 0.5))  # Each has an input and its mass.
    density = Density("samples", c=1.0, shape=np.zeros_like, breaks=(), atoms=atoms)
    bound = compute_output_bound(4, LawQuestion(Fraction(25), density))
    assert bound == pytest.approx(1 / (2 + compute_odds(25.0)), rel=1e-6)


def test_search_out_of_time_returns_its_outputs():
    late_question = LawQuestion(Fraction(1), deadline=Deadline(1.0))
    late_question.deadline._begin -= 100  # The clock says that the time is over.
    stopped = optimise_bins(40, late_question)
    assert len(stopped.quantizer.bins) == 2
    assert any("ran out of time: 2 outputs of 40" in sentence for sentence in stopped.notes)
    # Interrupted searches are not cached.
    finished = optimise_bins(3, LawQuestion(Fraction(1)), knots=11)
    assert (len(finished.quantizer.bins), finished.notes) == (3, ())
    # Cached results need no time.
    cached = optimise_bins(3, replace(late_question, options=LAW.options), knots=11)
    assert len(cached.quantizer.bins) == 3
