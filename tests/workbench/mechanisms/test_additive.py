"""The question and its additive noise: groups, neighbour relations, exact masses, files."""

from __future__ import annotations

import json
import math
import pickle
import subprocess
import sys
from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from workbench.errors import CorruptFile, InvalidRequest
from workbench.exact.distribution import Distribution
from workbench.mechanisms.additive import AdditiveNoise
from workbench.questions.modulo_noise import ModuloNoise


@st.composite
def questions(draw: st.DrawFn) -> ModuloNoise:
    sizes = draw(
        st.lists(st.integers(1, 5), min_size=1, max_size=3).filter(lambda s: math.prod(s) > 1)
    )
    points = [p for p in product(*map(range, sizes)) if any(p)]
    shifts = draw(st.lists(st.sampled_from(points), min_size=1, max_size=4))
    return ModuloNoise(sizes=sizes, shifts=shifts, directed=draw(st.booleans()))


def test_a_scalar_question_has_integer_answers_and_differences() -> None:
    q = ModuloNoise(n=8, max_shift=3)
    assert (q.sizes, q.order, q.directed) == ((9,), 9, False)
    assert q.shifts == ((1,), (2,), (3,))
    assert q.differences == ((1,), (2,), (3,), (6,), (7,), (8,))
    assert ModuloNoise(n=8, shifts=[3, 1, 2], directed=True).differences == ((1,), (2,), (3,))
    assert ModuloNoise(n=8, shifts=[-1, 8, 8]).shifts == ((8,),)
    assert ModuloNoise(n=8, shifts=np.array([1, 2, 3])) == q
    assert ModuloNoise(sizes=(9,), shifts=[(1,), 2, (3,)]) == q
    assert ModuloNoise(n=1, max_shift=1).differences == ((1,),)


def test_a_vector_question_has_tuples_as_answers_and_differences() -> None:
    q = ModuloNoise(sizes=(5, 4), shifts=[(0, 1), (2, 2), (-2, 2)])
    assert q.shifts == ((0, 1), (2, 2), (3, 2))
    assert q.differences == ((0, 1), (0, 3), (2, 2), (3, 2))


def test_questions_with_equal_fields_are_equal() -> None:
    a, b = ModuloNoise(n=8, shifts=[1, 2]), ModuloNoise(sizes=[9], max_shift=2)
    assert a == b
    assert hash(a) == hash(b)
    assert a != ModuloNoise(n=8, shifts=[1, 2], directed=True)
    assert pickle.loads(pickle.dumps(a)) == a
    with pytest.raises(AttributeError):
        a.sizes = (3,)  # type: ignore[misc]
    assert repr(a) == "ModuloNoise(n=8, max_shift=2)"
    for q in (
        a,
        ModuloNoise(n=8, shifts=[2], directed=True),
        ModuloNoise(sizes=(2, 3), shifts=[(1, 0)]),
    ):
        assert eval(repr(q)) == q


DOMAIN = "A query domain must be given by exactly one of n and sizes."
RELATION = "A neighbour relation must be given by exactly one of shifts and max_shift."
SCALAR = "max_shift is for scalar queries; give the shifts of a vector query one by one."


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"n": 0, "max_shift": 1}, "n must be an integer in 1..49999999. Got 0."),
        ({"n": -3, "max_shift": 1}, "n must be an integer in 1..49999999. Got -3."),
        ({"n": 2.5, "max_shift": 1}, "n must be an integer in 1..49999999. Got 2.5."),
        ({"n": True, "max_shift": 1}, "n must be an integer in 1..49999999. Got True."),
        ({"n": 10**9, "max_shift": 1}, "n must be an integer in 1..49999999. Got 1000000000."),
        ({"n": 8, "shifts": [0]}, "a shift must be an integer in 1..8 or its negative. Got 0."),
        ({"n": 8, "shifts": [9]}, "a shift must be an integer in 1..8 or its negative. Got 9."),
        (
            {"n": 8, "shifts": [1, -9]},
            "a shift must be an integer in 1..8 or its negative. Got -9.",
        ),
        ({"n": 8, "shifts": [1.0]}, "a shift must be an integer in 1..8 or its negative. Got 1.0."),
        (
            {"n": 8, "shifts": [True]},
            "a shift must be an integer in 1..8 or its negative. Got True.",
        ),
        (
            {"n": 8, "shifts": [(1, 2)]},
            "a shift must be an integer in 1..8 or its negative. Got (1, 2).",
        ),
        ({"n": 8, "shifts": []}, "shifts must be 1 to 1000000 different shifts. Got 0."),
        ({"n": 8, "shifts": "12"}, "shifts must be a list of shifts. Got '12'."),
        ({"n": 8, "shifts": 3}, "shifts must be a list of shifts. Got 3."),
        ({"n": 8, "max_shift": 0}, "max_shift must be an integer in 1..8. Got 0."),
        ({"n": 8, "max_shift": 9}, "max_shift must be an integer in 1..8. Got 9."),
        ({"n": 8, "max_shift": True}, "max_shift must be an integer in 1..8. Got True."),
        ({"n": 8}, RELATION),
        ({"n": 8, "shifts": [1], "max_shift": 1}, RELATION),
        ({"shifts": [1]}, DOMAIN),
        ({"n": 8, "sizes": (9,), "shifts": [1]}, DOMAIN),
        ({"n": 8, "shifts": [1], "directed": 1}, "directed must be True or False. Got 1."),
        (
            {"sizes": (5, 5), "shifts": [1]},
            "a shift must be 2 integers, each below its size in (5, 5), not all 0. Got 1.",
        ),
        (
            {"sizes": (5, 5), "shifts": [(0, 0)]},
            "a shift must be 2 integers, each below its size in (5, 5), not all 0. Got (0, 0).",
        ),
        (
            {"sizes": (5, 5), "shifts": [(0, 5)]},
            "a shift must be 2 integers, each below its size in (5, 5), not all 0. Got (0, 5).",
        ),
        (
            {"sizes": (5, 5), "shifts": [(0, 1, 0)]},
            "a shift must be 2 integers, each below its size in (5, 5), not all 0. Got (0, 1, 0).",
        ),
        ({"sizes": (5, 5), "max_shift": 1}, SCALAR),
        (
            {"sizes": (5, 0), "shifts": [(1, 0)]},
            "sizes must be a list of integers >= 1. Got (5, 0).",
        ),
        (
            {"sizes": (5, 2.0), "shifts": [(1, 0)]},
            "sizes must be a list of integers >= 1. Got (5, 2.0).",
        ),
        (
            {"sizes": (1, 1), "shifts": [(1, 0)]},
            "sizes must be orders with a product in 2..50000000. Got (1, 1).",
        ),
        (
            {"sizes": (10**8,), "shifts": [1]},
            "sizes must be orders with a product in 2..50000000. Got (100000000,).",
        ),
        ({"sizes": 9, "shifts": [1]}, "sizes must be a list of integers >= 1. Got 9."),
    ],
)
def test_bad_questions_are_refused_in_one_line(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidRequest) as caught:
        ModuloNoise(**arguments)
    assert str(caught.value) == message


@given(questions())
@settings(max_examples=60)
def test_shifted_positions_add_in_the_group(q: ModuloNoise) -> None:
    points = list(product(*map(range, q.sizes)))
    for shift in q.differences:
        moved = q.shifted_positions(shift)
        assert sorted(moved) == list(range(q.order))
        for position, point in enumerate(points):
            there = tuple((a + b) % s for a, b, s in zip(point, shift, q.sizes, strict=True))
            assert points[moved[position]] == there == q.element_at(int(moved[position]))


@given(questions())
@settings(max_examples=60)
def test_symmetric_differences_contain_their_negatives(q: ModuloNoise) -> None:
    assert set(q.shifts) <= set(q.differences)
    if not q.directed:
        assert {q.negate_shift(shift) for shift in q.differences} == set(q.differences)
    else:
        assert q.differences == q.shifts
    assert ModuloNoise(**json.loads(json.dumps(q.to_dict()))) == q


def test_budgets_are_read_by_difference_and_bad_ones_refused() -> None:
    q = ModuloNoise(n=8, shifts=[1, 2])
    assert q.budgets(0.1) == dict.fromkeys([(1,), (2,), (7,), (8,)], Fraction(1, 10))
    assert q.budgets({1: "0.5", (2,): 1}) == {
        (1,): Fraction(1, 2),
        (2,): Fraction(1),
        (7,): Fraction(1),
        (8,): Fraction(1, 2),
    }
    assert (
        q.budgets({-1: 0.5, 2: 1}) == q.budgets({1: 0.5, 2: 1}) == q.budgets({1: 0.5, 8: 0.5, 2: 1})
    )
    for bad, message in [
        ({1: 0.5}, "epsilon has no budget for shift 2."),
        ({1: 0.5, 2: 1, 8: 0.7}, "epsilon has two different budgets for a shift and its negative."),
        ({1: 0.5, 2: 1, 8: 0.5, -1: 0.7}, "epsilon has two different budgets for shift 8."),
        ({1: 0.5, 2: 1, 3: 1}, "epsilon has a budget for 3, which is not one of the shifts."),
        ({1: 0.5, 2: 0}, "epsilon of shift 2 must be a finite number > 0. Got 0."),
        (0, "epsilon must be a finite number > 0. Got 0."),
        (math.nan, "epsilon must be a finite number > 0. Got nan."),
    ]:
        with pytest.raises(InvalidRequest) as caught:
            q.budgets(bad)  # type: ignore[arg-type]
        assert str(caught.value) == message
    directed = ModuloNoise(n=8, shifts=[1, 8], directed=True)
    assert directed.budgets({1: 0.5, 8: 0.7}) == {(1,): Fraction(1, 2), (8,): Fraction(7, 10)}
    with pytest.raises(InvalidRequest, match="two different budgets"):
        ModuloNoise(n=8, shifts=[1, 8]).budgets({1: 0.5, 8: 0.7})


floats = st.floats(0, 1e300, allow_nan=False) | st.sampled_from(
    [0.0, 5e-324, 2.2e-308, 1e-310, 1.0]
)


@given(st.lists(floats, min_size=3, max_size=3).filter(lambda x: sum(x) > 0))
def test_floats_are_read_as_the_rationals_they_are(values: list[float]) -> None:
    noise = AdditiveNoise.from_pmf(ModuloNoise(n=2, max_shift=1), values)
    rationals = [Fraction(value) for value in values]
    truth = [value / sum(rationals) for value in rationals]
    assert noise.exact_pmf == truth
    assert sum(noise.exact_pmf) == 1
    assert noise.pmf.tolist() == [float(value) for value in truth]
    assert noise == AdditiveNoise(noise.question, rationals)
    assert noise == AdditiveNoise.from_dict(json.loads(json.dumps(noise.to_dict())))


@given(st.lists(st.integers(0, 2**200), min_size=1, max_size=20).filter(any))
def test_logarithms_are_those_of_the_integers(weights: list[int]) -> None:
    masses = Distribution(weights)
    assert math.gcd(*masses.integers) == 1
    for k, log in zip(masses.integers, masses.logs, strict=True):
        assert (
            (k == 0)
            if log == -math.inf
            else (log == pytest.approx(k.bit_length() - 0.5, abs=0.5 + 1e-12))
        )


def test_equal_laws_are_equal_mechanisms() -> None:
    q = ModuloNoise(n=2, max_shift=1)
    a, b = (
        AdditiveNoise(q, [2, 1, 1]),
        AdditiveNoise(q, [Fraction(1, 2), Fraction(1, 4), Fraction(1, 4)]),
    )
    assert a == b
    assert hash(a) == hash(b)
    assert a == AdditiveNoise.from_pmf(q, [0.5, 0.25, 0.25])
    assert a != AdditiveNoise(q, [2, 1, 2])
    assert a != AdditiveNoise(ModuloNoise(n=2, max_shift=2), [2, 1, 1])
    assert pickle.loads(pickle.dumps(a)) == a
    assert (a.error_rate, a.expected_loss([0, 1, 4])) == (0.5, 1.25)
    with pytest.raises(ValueError, match="read-only"):
        a.pmf[0] = 1


def test_a_vector_pmf_is_row_major() -> None:
    q = ModuloNoise(sizes=(2, 3), shifts=[(0, 1)])
    grid = np.arange(1.0, 7.0).reshape(2, 3)
    assert AdditiveNoise.from_pmf(q, grid) == AdditiveNoise(q, [1, 2, 3, 4, 5, 6])
    assert AdditiveNoise(q, [1, 1, 1, 1, 1, 1]).expected_loss(grid) == pytest.approx(3.5, abs=1e-15)
    with pytest.raises(InvalidRequest):
        AdditiveNoise.from_pmf(q, grid.T)


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
def test_bad_pmfs_are_refused(pmf: list[float], message: str) -> None:
    with pytest.raises(InvalidRequest) as caught:
        AdditiveNoise.from_pmf(ModuloNoise(n=2, max_shift=1), pmf)
    assert str(caught.value) == message


@pytest.mark.parametrize(
    "weights", [[1, 2], [1, 2, -1], [0, 0, 0], [1, 0.5, 1], [1, True, 1], [1, "2", 1], []]
)
def test_weights_are_exact_and_as_many_as_answers(weights: list[Any]) -> None:
    with pytest.raises(InvalidRequest, match=r"^weights must be .*\. Got .*\.$"):
        AdditiveNoise(ModuloNoise(n=2, max_shift=1), weights)


def test_losses_of_a_wrong_name_or_shape_are_refused() -> None:
    noise = AdditiveNoise(ModuloNoise(n=2, max_shift=1), [2, 1, 1])
    for loss in ([1, 2], [1, 2, math.nan]):
        with pytest.raises(InvalidRequest, match=r"^loss must be"):
            noise.expected_loss(loss)


def test_broken_files_are_refused() -> None:
    noise = AdditiveNoise(ModuloNoise(n=2, max_shift=1), [2, 1, 1])
    new = noise.to_dict()
    for bad in (
        {**new, "more": 1},
        {**new, "weights": ["0x1", "0x1"]},
        {**new, "total": "0x5"},
        {**new, "sizes": [0]},
        None,
        [],
        {},
        {**new, "shifts": [[0]]},
        {**new, "directed": "no"},
        {**new, "sizes": "3"},
        {**new, "weights": None},
    ):
        with pytest.raises((CorruptFile, InvalidRequest)):
            AdditiveNoise.from_dict(bad)


def test_a_large_mechanism_with_subnormal_masses_is_stored_exactly() -> None:
    pmf = np.full(20_000, 1 / 20_000)
    pmf[7], pmf[8] = 5e-324, 0.0
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
