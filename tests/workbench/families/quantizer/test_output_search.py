"""Test the search for outputs: slopes, asymmetric optima, reproducibility and bounds."""

from __future__ import annotations

import itertools
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


def least_masses(outputs: np.ndarray, epsilon: float, share: float) -> np.ndarray:
    """Return least masses of the outputs (m,), at which the error is a smooth function.

    They are the least masses of the laws of the linear program, mixed with equal masses.

    Args:
        outputs: the outputs in increasing order. Shape (m,).
        epsilon: the budget ε.
        share: the share of the equal masses in the mixture.
    """
    answer = make_exact_problem(
        np.linspace(-1, 1, 41), outputs.size, LAW, symmetric=False
    ).find_optimum(epsilon, outputs)
    return (1 - share) * answer.laws.min(axis=0) + share * 2 / (
        2 + compute_odds(epsilon)
    ) / outputs.size


@pytest.mark.parametrize("epsilon", OUTPUTS)
@pytest.mark.parametrize(
    ("density", "loss"),
    [(uniform_density(), "absolute"), (normal_density(mu=0.3, sigma=0.4), "0.5")],
)
def test_window_slopes_equal_difference_quotients(epsilon: float, density, loss: str):
    question = replace(LAW, epsilon=Fraction(epsilon), density=density, loss=loss)
    outputs = np.array(OUTPUTS[epsilon])
    low = least_masses(outputs, epsilon, share=0.1)
    found, ratio = compute_window_objective(question, outputs, low), 1 + compute_odds(epsilon)
    mean, rises = compute_farthest_mean(ratio, outputs, low)
    assert mean == pytest.approx(0, abs=0.2)
    for direction, slope, rise in zip(np.eye(8).reshape(8, 2, 4), found.slopes, rises, strict=True):
        step = 1e-6 * low.min() * direction
        sides = [(outputs + sign * step[0], low + sign * step[1]) for sign in (1, -1)]
        errors = [compute_window_objective(question, *side).value for side in sides]
        means = [compute_farthest_mean(ratio, *side)[0] for side in sides]
        assert slope == pytest.approx(
            (errors[0] - errors[1]) / (2 * step.max()), rel=1e-3, abs=1e-3
        )
        assert rise == pytest.approx((means[0] - means[1]) / (2 * step.max()), rel=1e-4, abs=1e-4)


@pytest.mark.parametrize("epsilon", OUTPUTS)
def test_window_laws_equal_the_program_with_bends_as_knots(epsilon: float):
    """At the program's least masses the window has the error of the program with bends as knots."""
    question = replace(LAW, epsilon=Fraction(epsilon))
    outputs = np.array(OUTPUTS[epsilon])
    knots, errors = np.linspace(-1, 1, 41), []
    for _ in range(12):
        answer = make_exact_problem(
            knots, outputs=4, question=question, symmetric=False
        ).find_optimum(epsilon, outputs)
        window = compute_window_objective(question, outputs, answer.laws.min(axis=0))
        assert window.value <= answer.value * (1 + 1e-9)
        errors.append(answer.value)
        knots = np.unique(np.concatenate([knots, np.clip(window.bends, -1, 1)]))
    assert window.value == pytest.approx(errors[-1], rel=1e-6)
    assert errors[-1] < errors[0]


# The best known errors of four outputs for uniform inputs. Symmetric outputs have 0.700259 at
# ε = 2.
@pytest.mark.parametrize(("epsilon", "best"), [("1", 1.657626), ("2", 0.694530), ("10", 0.222384)])
def test_search_finds_known_outputs(epsilon: str, best: float):
    found = optimise_bins(4, LawQuestion(Fraction(epsilon)), starts=1)
    assert found is not None
    assert found.objective <= best
    assert abs(found.quantizer.outputs).max() <= default_reach(float(epsilon)) + 1e-6
    assert sum(found.quantizer.bins) >= 0  # Of two mirror images the same one is always returned.
    assert audit_extremes(found.quantizer, 0).pure_epsilon == pytest.approx(
        float(epsilon), abs=1e-6
    )


def test_a_third_output_reduces_the_error_of_randomized_response():
    """Two outputs ±B at the smallest private B = coth(ε/2) have the error B - 1/(3 B)."""
    two, three = (optimise_bins(m, LAW, starts=1, knots=5) for m in (2, 3))
    assert two is not None
    assert three is not None
    output = 1 / np.tanh(0.5)
    assert two.objective == pytest.approx(output - 1 / (3 * output), rel=1e-6)
    assert three.objective < two.objective
    assert audit_extremes(three.quantizer, 0).pure_epsilon == pytest.approx(1, abs=1e-9)
    bound = compute_output_bound(3, LAW, default_reach(1.0))
    assert bound is not None
    assert bound <= three.objective


@pytest.mark.parametrize(
    ("epsilon", "density"), [("0.5", uniform_density()), ("2", normal_density(mu=0.5, sigma=0.3))]
)
def test_more_outputs_are_never_worse(epsilon: str, density):
    reached = []
    for m in (2, 3, 4, 5):
        found = optimise_bins(m, LawQuestion(Fraction(epsilon), density), starts=1, knots=11)
        assert found is not None
        assert found.quantizer.m <= m
        reached.append(found.objective)
        bound = compute_output_bound(
            m, LawQuestion(Fraction(epsilon), density), default_reach(float(epsilon))
        )
        assert bound is not None
        assert bound <= found.objective
    assert all(b <= a for a, b in itertools.pairwise(reached))


@pytest.mark.parametrize(("epsilon", "m"), [("1.5", 3), ("3", 4)])
def test_optimised_outputs_are_never_worse_than_published_ones(epsilon: str, m: int):
    found = optimise_bins(m, LawQuestion(Fraction(epsilon)), starts=1, knots=11)
    rqm = find_best_rqm(m, epsilon)
    assert found is not None
    assert rqm is not None
    assert found.objective <= rqm.mae()
    bins = search_bins(m, LawQuestion(Fraction(epsilon)), stride=5)
    optm = solve_exact_quantizer(bins, LawQuestion(Fraction(epsilon)), knots=11)
    assert optm is not None
    assert found.objective <= optm.objective


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
    found = optimise_bins(
        m, LawQuestion(Fraction(epsilon), uniform_density(), loss=loss), starts=1, knots=11
    )
    assert found is not None
    theirs = solve_mvu(
        LawQuestion(Fraction(epsilon), uniform_density(), "squared"),
        m,
        reach=default_reach(float(epsilon)),
    ).quantizer
    # The outputs have five decimals.
    assert found.objective <= (theirs.mae() if loss == "absolute" else theirs.mse()) * (1 + 1e-8)
    assert audit_extremes(found.quantizer, 0).pure_epsilon == pytest.approx(
        float(epsilon), abs=1e-6
    )


def test_outputs_are_the_same_without_vector_instructions():
    """They agree to two units of the fifth decimal, as SLSQP depends on the machine."""
    program = (
        "from fractions import Fraction as F;"
        " from workbench.questions.density import normal_density;"
        "from workbench.families.quantizer.laws import LawQuestion as Q;"
        "from workbench.families.quantizer.output_search import optimise_bins as o;"
        "found = o(4, Q(F(2), normal_density(0, .5)), starts=1, knots=11);"
        "print(*map(float, found.quantizer.bins))"
    )
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
        command = [sys.executable, "-W", "ignore", "-c", program]
        process = subprocess.run(command, env=environment, capture_output=True, check=True)
        return [*map(float, process.stdout.split())]

    outputs = find_outputs(usual_environment)
    assert len(outputs) == 4
    assert find_outputs(usual_environment | old_machine) == pytest.approx(outputs, abs=2e-5)


@pytest.mark.parametrize("loss", ["absolute", "squared"])
def test_bound_is_below_every_quantizer(loss: str):
    rng = np.random.default_rng(0)
    density = Density(
        "steps",
        c=1.0,
        shape=lambda x: np.select([x < -0.25, x < 0.5], [0.8 / 3, 2.8 / 3], 0.2),
        breaks=(-0.25, 0.5),
    )
    for epsilon in (0.3, 6.0):
        reach, least = default_reach(epsilon), smallest_reach(epsilon)
        bounds = [
            compute_output_bound(3, LawQuestion(Fraction(epsilon), law, loss), reach)
            for law in (uniform_density(), density)
        ]
        for _ in range(3):
            ends = least + (reach - least) * rng.random(2)
            outputs = tuple(Fraction(b) for b in (-ends[0], rng.uniform(-1, 1), ends[1]))
            for law, bound in zip((uniform_density(), density), bounds, strict=True):
                found = solve_exact_quantizer(
                    outputs, LawQuestion(Fraction(epsilon), law, loss), knots=21
                )
                assert found is not None
                assert bound is not None
                assert 0 < bound <= found.objective


def test_bound_by_two_inputs_is_below_the_error():
    # Half the inputs are -1/2, half 1/2, so 2 E|X - median|/(1 + e^ε) = 1/(1 + e^ε).
    bound = compute_output_bound(
        4,
        LawQuestion(
            Fraction(25),
            Density(
                "samples", c=1.0, shape=np.zeros_like, breaks=(), atoms=((-0.5, 0.5), (0.5, 0.5))
            ),
        ),
    )
    assert bound == pytest.approx(1 / (2 + compute_odds(25.0)), rel=1e-6)


def test_search_out_of_time_returns_its_outputs():
    spent = LawQuestion(Fraction(1), deadline=Deadline(1.0))
    spent.deadline._begin -= 100  # The clock says that the time is over.
    found = optimise_bins(40, spent)
    assert len(found.quantizer.bins) == 2
    assert any("ran out of time: 2 outputs of 40" in sentence for sentence in found.notes)
    # Interrupted searches are not cached.
    whole = optimise_bins(3, LawQuestion(Fraction(1)), knots=11)
    assert (len(whole.quantizer.bins), whole.notes) == (3, ())
    # Cached results need no time.
    again = optimise_bins(3, replace(spent, options=LAW.options), knots=11)
    assert len(again.quantizer.bins) == 3
