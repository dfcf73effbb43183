"""Optimised outputs: slopes, asymmetric optima, more outputs never worse, the same on every machine, bounds."""

from __future__ import annotations

import itertools
import os
import subprocess
import sys
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

from models.quantizer import odds_of, smallest_reach, usual_reach
from workbench.families.quantizer.laws import LawQuestion, OutputKnots, exact_quantizer
from workbench.families.quantizer.limit import output_bound
from workbench.families.quantizer.mvu import mvu
from workbench.families.quantizer.output_search import optimised_bins
from workbench.families.quantizer.search import best_rqm, searched_bins
from workbench.mechanisms.density import Density, normal, uniform
from workbench.privacy.audit import audit_extremes

ONE = Fraction(1)
LAW = LawQuestion(ONE)
OUTPUTS = {0.5: (-6.1, -0.43, 0.27, 5.2), 2.0: (-1.5, -0.22, 0.78, 2.6), 7.0: (-1.01, -0.31, 0.36, 1.003)}


@pytest.mark.parametrize("epsilon", OUTPUTS)
@pytest.mark.parametrize(("density", "loss"), [(uniform(), "absolute"), (normal(0.3, 0.4), "0.5")])
def test_the_slope_of_moving_knots_is_a_difference_quotient(epsilon: float, density, loss: str):
    problem = OutputKnots(np.linspace(-1, 1, 11), 4, replace(LAW, density=density, loss=loss), symmetric=False)
    outputs = np.array(OUTPUTS[epsilon])
    found = problem.answer(epsilon, outputs)
    assert found is not None
    for i in range(4):
        step = np.eye(4)[i] * 1e-6
        sides = [problem.answer(epsilon, outputs + sign * step).value for sign in (1, -1)]
        assert found.slope[i] == pytest.approx((sides[0] - sides[1]) / 2e-6, abs=2e-5)
    knots = tuple(Fraction(b) for b in outputs.tolist())
    same = exact_quantizer(knots, LawQuestion(Fraction(epsilon), density, loss), knots=11)
    assert same is not None
    assert found.value == pytest.approx(same.objective, rel=1e-9)


def test_the_slope_of_symmetric_outputs():
    problem = OutputKnots(np.linspace(-1, 1, 11), 6, LAW, symmetric=True)
    half = np.array([0.21, 0.9, 2.9])

    def value(z):
        return problem.answer(1.0, np.concatenate([-z[::-1], z]))

    slope = value(half).slope
    for i in range(3):
        step = np.eye(3)[i] * 1e-6
        quotient = (value(half + step).value - value(half - step).value) / 2e-6
        assert slope[3 + i] - slope[2 - i] == pytest.approx(quotient, abs=2e-5)


# the best known for four outputs, 41 knots, uniform inputs; symmetric outputs reach .700295 at ε = 2
@pytest.mark.parametrize(("epsilon", "best"), [("1", 1.657851), ("2", 0.694815), ("10", 0.222386)])
def test_the_best_known_outputs_are_found(epsilon: str, best: float):
    found = optimised_bins(4, LawQuestion(Fraction(epsilon)), starts=1)
    assert found is not None
    assert found.objective <= best
    assert abs(found.quantizer.outputs).max() <= usual_reach(float(epsilon)) + 1e-6
    assert sum(found.quantizer.bins) >= 0  # of two mirror images always the same one
    assert audit_extremes(found.quantizer, 0).pure_epsilon == pytest.approx(float(epsilon), abs=1e-6)


@pytest.mark.parametrize(("epsilon", "density"), [("0.5", uniform()), ("2", normal(0.5, 0.3))])
def test_more_outputs_are_never_worse(epsilon: str, density):
    reached = []
    for m in (2, 3, 4, 5):
        found = optimised_bins(m, LawQuestion(Fraction(epsilon), density), starts=1, knots=11)
        assert found is not None
        assert found.quantizer.m <= m
        reached.append(found.objective)
        bound = output_bound(m, LawQuestion(Fraction(epsilon), density), usual_reach(float(epsilon)))
        assert bound is not None
        assert bound <= found.objective
    assert all(b <= a for a, b in itertools.pairwise(reached))


@pytest.mark.parametrize(("epsilon", "m"), [("1.5", 3), ("3", 4)])
def test_optimised_outputs_are_never_worse_than_published_ones(epsilon: str, m: int):
    found = optimised_bins(m, LawQuestion(Fraction(epsilon)), starts=1, knots=11)
    rqm = best_rqm(m, epsilon)
    assert found is not None
    assert rqm is not None
    assert found.objective <= rqm.mae()
    bins = searched_bins(m, LawQuestion(Fraction(epsilon)), every=5)
    optm = exact_quantizer(bins, LawQuestion(Fraction(epsilon)), knots=11)
    assert optm is not None
    assert found.objective <= optm.objective


@pytest.mark.parametrize(
    ("epsilon", "m", "loss"),
    [("7", 4, "absolute"), ("4", 3, "absolute"), ("10", 3, "absolute"), ("20", 3, "absolute"), (".1", 3, "squared")],
)
def test_optimised_outputs_are_never_worse_than_mvu(epsilon: str, m: int, loss: str):
    """At large ε MVU's law bends at its inputs, ±1/3 for four: those are knots as well. At small ε two outputs of its
    squared error's best are near each other."""
    found = optimised_bins(m, LawQuestion(Fraction(epsilon), uniform(), loss=loss), starts=1, knots=11)
    assert found is not None
    theirs = mvu(LawQuestion(Fraction(epsilon), uniform(), "squared"), m, reach=usual_reach(float(epsilon))).quantizer
    assert found.objective <= (theirs.mae() if loss == "absolute" else theirs.mse()) * (1 + 1e-9)
    assert audit_extremes(found.quantizer, 0).pure_epsilon == pytest.approx(float(epsilon), abs=1e-6)


def test_the_same_outputs_without_the_processor_s_vector_units():
    program = (
        "from fractions import Fraction as F; from workbench.mechanisms.density import normal;"
        "from workbench.families.quantizer.laws import LawQuestion as Q;"
        "from workbench.families.quantizer.output_search import optimised_bins as o;"
        "print(o(4, Q(F(2), normal(0, .5)), starts=1, knots=11).quantizer.bins)"
    )
    less = {"NPY_DISABLE_CPU_FEATURES": "AVX2 FMA3 AVX512F AVX512CD AVX512_SKX", "OPENBLAS_CORETYPE": "Nehalem"}
    plain = {k: v for k, v in os.environ.items() if not k.startswith(("NPY_", "OPENBLAS_"))}
    said = [
        subprocess.run([sys.executable, "-W", "ignore", "-c", program], env=env, capture_output=True, check=True).stdout
        for env in (plain, plain | less)
    ]
    assert said[0] == said[1]
    assert b"Fraction" in said[0]


@pytest.mark.parametrize("loss", ["absolute", "squared"])
def test_the_bound_is_below_every_quantizer(loss: str):
    rng = np.random.default_rng(0)
    density = Density("steps", 1.0, lambda x: np.select([x < -0.25, x < 0.5], [0.8 / 3, 2.8 / 3], 0.2), (-0.25, 0.5))
    for epsilon in (0.3, 6.0):
        reach, least = usual_reach(epsilon), smallest_reach(epsilon)
        bounds = [output_bound(3, LawQuestion(Fraction(epsilon), law, loss), reach) for law in (uniform(), density)]
        for _ in range(3):
            ends = least + (reach - least) * rng.random(2)
            outputs = tuple(Fraction(b) for b in (-ends[0], rng.uniform(-1, 1), ends[1]))
            for law, bound in zip((uniform(), density), bounds, strict=True):
                found = exact_quantizer(outputs, LawQuestion(Fraction(epsilon), law, loss), knots=21)
                assert found is not None
                assert bound is not None
                assert 0 < bound <= found.objective


def test_the_bound_by_two_inputs():
    # half the inputs at -1/2, half at 1/2: 2 E|X - median|/(1 + e^ε) = 1/(1 + e^ε)
    bound = output_bound(
        4, LawQuestion(Fraction(25), Density("samples", 1.0, np.zeros_like, (), ((-0.5, 0.5), (0.5, 0.5))))
    )
    assert bound == pytest.approx(1 / (2 + odds_of(25.0)), rel=1e-6)
