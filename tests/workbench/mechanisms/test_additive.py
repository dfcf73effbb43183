"""Test `AdditiveNoise`: its masses are exact, its files are read back, wrong input is refused."""

from __future__ import annotations

import json
import math
import pickle
import subprocess
import sys
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from workbench.errors import CorruptFile, InvalidRequest
from workbench.exact.distribution import Distribution
from workbench.mechanisms.additive import AdditiveNoise
from workbench.questions.modulo_noise import ModuloNoise

FLOATS = st.floats(0, 1e300, allow_nan=False) | st.sampled_from(
    [0.0, 5e-324, 2.2e-308, 1e-310, 1.0]
)


@given(st.lists(FLOATS, min_size=3, max_size=3).filter(lambda pmf: sum(pmf) > 0))
def test_floats_are_read_as_the_rationals_they_are(pmf: list[float]) -> None:
    noise = AdditiveNoise.from_pmf(ModuloNoise(n=2, max_shift=1), pmf)
    weights = [Fraction(mass) for mass in pmf]
    exact_masses = [weight / sum(weights) for weight in weights]
    assert noise.exact_pmf == exact_masses
    assert sum(noise.exact_pmf) == 1
    assert noise.pmf.tolist() == [float(mass) for mass in exact_masses]
    assert noise == AdditiveNoise(noise.question, weights)
    assert noise == AdditiveNoise.from_dict(json.loads(json.dumps(noise.to_dict())))


@given(st.lists(st.integers(0, 2**200), min_size=1, max_size=20).filter(any))
def test_weights_are_reduced_and_their_binary_logarithms_fit(weights: list[int]) -> None:
    masses = Distribution(weights)
    assert math.gcd(*masses.integers) == 1
    for weight, log in zip(masses.integers, masses.logs, strict=True):
        if weight == 0:
            assert log == -math.inf
        else:
            # log2(weight) is between the number of bits minus 1 and the number of bits.
            assert log == pytest.approx(weight.bit_length() - 0.5, abs=0.5 + 1e-12)


def test_equal_laws_are_equal_mechanisms() -> None:
    question = ModuloNoise(n=2, max_shift=1)
    noise = AdditiveNoise(question, [2, 1, 1])
    same_noise = AdditiveNoise(question, [Fraction(1, 2), Fraction(1, 4), Fraction(1, 4)])
    assert noise == same_noise == AdditiveNoise.from_pmf(question, [0.5, 0.25, 0.25])
    assert hash(noise) == hash(same_noise)
    assert pickle.loads(pickle.dumps(noise)) == noise
    assert noise != AdditiveNoise(question, [2, 1, 2])
    assert noise != AdditiveNoise(ModuloNoise(n=2, max_shift=2), [2, 1, 1])


def test_expected_losses_are_means_over_the_pmf() -> None:
    noise = AdditiveNoise(ModuloNoise(n=2, max_shift=1), [2, 1, 1])
    assert noise.error_rate == 0.5
    assert noise.expected_loss([0, 1, 4]) == 1.25


def test_the_pmf_cannot_be_changed() -> None:
    noise = AdditiveNoise(ModuloNoise(n=2, max_shift=1), [2, 1, 1])
    with pytest.raises(ValueError, match="read-only"):
        noise.pmf[0] = 1


def test_a_vector_pmf_is_row_major() -> None:
    question = ModuloNoise(sizes=(2, 3), shifts=[(0, 1)])
    grid = np.arange(1.0, 7.0).reshape(2, 3)
    assert AdditiveNoise.from_pmf(question, grid) == AdditiveNoise(question, [1, 2, 3, 4, 5, 6])
    uniform = AdditiveNoise(question, [1, 1, 1, 1, 1, 1])
    assert uniform.expected_loss(grid) == pytest.approx(3.5, abs=1e-15)
    with pytest.raises(InvalidRequest):
        AdditiveNoise.from_pmf(question, grid.T)


@pytest.mark.parametrize(
    ("pmf", "message"),
    [
        ([0.5, math.nan, 0.5], "pmf must be an array of finite numbers >= 0. Got nan."),
        ([0.5, math.inf, 0.5], "pmf must be an array of finite numbers >= 0. Got inf."),
        ([0.5, -1e-18, 0.5], "pmf must be an array of finite numbers >= 0. Got -1e-18."),
        ([0.5, 0.5], "pmf must be an array of 3 masses. Got shape (2,)."),
        ([0.0, 0.0, -0.0], "pmf must be not all zero. Got zeros only."),
    ],
)
def test_invalid_pmfs_are_refused(pmf: list[float], message: str) -> None:
    with pytest.raises(InvalidRequest) as error:
        AdditiveNoise.from_pmf(ModuloNoise(n=2, max_shift=1), pmf)
    assert str(error.value) == message


@pytest.mark.parametrize(
    "weights", [[1, 2], [1, 2, -1], [0, 0, 0], [1, 0.5, 1], [1, True, 1], [1, "2", 1], []]
)
def test_weights_must_be_exact_and_as_many_as_answers(weights: list[Any]) -> None:
    with pytest.raises(InvalidRequest, match=r"^weights must be .*\. Got .*\.$"):
        AdditiveNoise(ModuloNoise(n=2, max_shift=1), weights)


def test_losses_of_a_wrong_shape_or_value_are_refused() -> None:
    noise = AdditiveNoise(ModuloNoise(n=2, max_shift=1), [2, 1, 1])
    for loss in ([1, 2], [1, 2, math.nan]):
        with pytest.raises(InvalidRequest, match=r"^loss must be"):
            noise.expected_loss(loss)


def test_equal_marginals_are_drawn_as_one_series() -> None:
    question = ModuloNoise(sizes="2x2x2", max_shift="1 L1")
    # The noise is symmetric in the first two coordinates alone.
    noise = AdditiveNoise(question, [8, 1, 2, 1, 2, 1, 2, 1])
    names = [series["name"] for series in noise.drawing()["series"]]
    assert names == ["coordinates 1, 2", "coordinate 3"]


def test_broken_files_are_refused() -> None:
    noise = AdditiveNoise(ModuloNoise(n=2, max_shift=1), [2, 1, 1])
    content = noise.to_dict()
    for broken_content in (
        {**content, "more": 1},
        {**content, "weights": ["0x1", "0x1"]},
        {**content, "total": "0x5"},
        {**content, "sizes": [0]},
        None,
        [],
        {},
        {**content, "shifts": [[0]]},
        {**content, "directed": "no"},
        {**content, "sizes": "3"},
        {**content, "weights": None},
    ):
        with pytest.raises((CorruptFile, InvalidRequest)):
            AdditiveNoise.from_dict(broken_content)


def test_a_large_mechanism_with_subnormal_masses_is_stored_exactly() -> None:
    pmf = np.full(20_000, 1 / 20_000)
    pmf[7] = 5e-324  # The smallest double, which becomes the unit of the weights.
    pmf[8] = 0.0
    noise = AdditiveNoise.from_pmf(ModuloNoise(n=19_999, max_shift=2), pmf)
    assert noise.masses.integers[7] == 1
    assert noise.masses.integers[8] == 0
    assert Fraction(noise.masses.integers[0]) * Fraction(5e-324) == Fraction(1 / 20_000)


def test_loading_a_mechanism_needs_no_solver_and_no_model() -> None:
    """Mechanisms and privacy import no higher layer and no library that is slow to load."""
    code = (
        "import sys, workbench.privacy.audit, workbench.privacy.curve\n"
        "import workbench.mechanisms.baselines.count_queries\n"
        "names = ('models', 'solvers', 'cvxpy', 'scipy', 'flint', 'highspy')\n"
        "bad = [name for name in names if name in sys.modules]\n"
        "assert not bad, bad"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
