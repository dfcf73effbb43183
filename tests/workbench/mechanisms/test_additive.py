"""Test `ModuloNoise` (answers and neighbours) and `AdditiveNoise` (the noise): exactness and files."""

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
    """Draw a question with one to three entries, each with at most 5 values."""
    sizes = draw(
        st.lists(st.integers(1, 5), min_size=1, max_size=3).filter(lambda s: math.prod(s) > 1)
    )
    points = [p for p in product(*map(range, sizes)) if any(p)]
    shifts = draw(st.lists(st.sampled_from(points), min_size=1, max_size=4))
    return ModuloNoise(sizes=sizes, shifts=shifts, directed=draw(st.booleans()))


def test_symmetric_differences_are_the_shifts_and_their_negatives() -> None:
    question = ModuloNoise(n=8, max_shift=3)
    assert (question.sizes, question.order, question.directed) == ((9,), 9, False)
    assert question.shifts == ((1,), (2,), (3,))
    assert question.differences == ((1,), (2,), (3,), (6,), (7,), (8,))
    assert ModuloNoise(n=1, max_shift=1).differences == ((1,),)


def test_directed_differences_are_the_sorted_shifts() -> None:
    question = ModuloNoise(n=8, shifts=[3, 1, 2], directed=True)
    assert question.differences == ((1,), (2,), (3,))


def test_shifts_are_reduced_modulo_the_order_and_read_from_arrays_and_tuples() -> None:
    question = ModuloNoise(n=8, max_shift=3)
    assert ModuloNoise(n=8, shifts=[-1, 8, 8]).shifts == ((8,),)
    assert ModuloNoise(n=8, shifts=np.array([1, 2, 3])) == question
    assert ModuloNoise(sizes=(9,), shifts=[(1,), 2, (3,)]) == question


def test_a_vector_question_has_tuples_as_differences() -> None:
    question = ModuloNoise(sizes=(5, 4), shifts=[(0, 1), (2, 2), (-2, 2)])
    assert question.shifts == ((0, 1), (2, 2), (3, 2))
    assert question.differences == ((0, 1), (0, 3), (2, 2), (3, 2))


def test_questions_with_equal_fields_are_equal() -> None:
    by_shifts = ModuloNoise(n=8, shifts=[1, 2])
    by_max_shift = ModuloNoise(sizes=[9], max_shift=2)
    assert by_shifts == by_max_shift
    assert hash(by_shifts) == hash(by_max_shift)
    assert by_shifts != ModuloNoise(n=8, shifts=[1, 2], directed=True)
    assert pickle.loads(pickle.dumps(by_shifts)) == by_shifts


def test_questions_cannot_be_changed() -> None:
    with pytest.raises(AttributeError):
        ModuloNoise(n=8, shifts=[1, 2]).sizes = (3,)  # type: ignore[misc]


@pytest.mark.parametrize(
    "question",
    [
        ModuloNoise(n=8, shifts=[1, 2]),
        ModuloNoise(n=8, shifts=[2], directed=True),
        ModuloNoise(sizes=(2, 3), shifts=[(1, 0)]),
    ],
    ids=repr,
)
def test_the_repr_of_a_question_makes_the_question(question: ModuloNoise) -> None:
    assert eval(repr(question)) == question


def test_the_repr_of_consecutive_shifts_is_short() -> None:
    assert repr(ModuloNoise(n=8, shifts=[1, 2])) == "ModuloNoise(n=8, max_shift=2)"


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
def test_invalid_questions_are_refused(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidRequest) as error:
        ModuloNoise(**arguments)
    assert str(error.value) == message


@given(questions())
@settings(max_examples=60)
def test_shifted_positions_add_in_the_group(question: ModuloNoise) -> None:
    points = list(product(*map(range, question.sizes)))
    for shift in question.differences:
        positions = question.shifted_positions(shift)
        assert sorted(positions) == list(range(question.order))
        for point, position in zip(points, positions, strict=True):
            entries = zip(point, shift, question.sizes, strict=True)
            shifted_point = tuple((a + b) % size for a, b, size in entries)
            assert points[position] == shifted_point == question.element_at(int(position))


@given(questions())
@settings(max_examples=60)
def test_symmetric_differences_contain_their_negatives(question: ModuloNoise) -> None:
    differences = set(question.differences)
    assert set(question.shifts) <= differences
    if question.directed:
        assert question.differences == question.shifts
    else:
        assert {question.negate_shift(shift) for shift in differences} == differences


@given(questions())
@settings(max_examples=60)
def test_questions_are_read_back_from_json(question: ModuloNoise) -> None:
    assert ModuloNoise(**json.loads(json.dumps(question.to_dict()))) == question


# A budget is one ε for all differences, or one ε for each shift.

TWO_SHIFTS = ModuloNoise(n=8, shifts=[1, 2])  # Its differences are 1, 2, 7 and 8.


def test_one_epsilon_is_the_budget_of_every_difference() -> None:
    budgets = TWO_SHIFTS.budgets(0.1)
    assert budgets == dict.fromkeys([(1,), (2,), (7,), (8,)], Fraction(1, 10))


def test_the_budget_of_a_shift_is_also_that_of_its_negative() -> None:
    budgets = TWO_SHIFTS.budgets({1: "0.5", (2,): 1})
    half = Fraction(1, 2)
    assert budgets == {(1,): half, (2,): Fraction(1), (7,): Fraction(1), (8,): half}
    assert TWO_SHIFTS.budgets({-1: 0.5, 2: 1}) == budgets
    assert TWO_SHIFTS.budgets({1: 0.5, 8: 0.5, 2: 1}) == budgets


def test_directed_shifts_have_their_own_budgets() -> None:
    directed = ModuloNoise(n=8, shifts=[1, 8], directed=True)
    assert directed.budgets({1: 0.5, 8: 0.7}) == {(1,): Fraction(1, 2), (8,): Fraction(7, 10)}
    with pytest.raises(InvalidRequest, match="two different budgets"):
        ModuloNoise(n=8, shifts=[1, 8]).budgets({1: 0.5, 8: 0.7})


@pytest.mark.parametrize(
    ("budgets", "message"),
    [
        ({1: 0.5}, "epsilon has no budget for shift 2."),
        ({1: 0.5, 2: 1, 8: 0.7}, "epsilon has two different budgets for a shift and its negative."),
        ({1: 0.5, 2: 1, 8: 0.5, -1: 0.7}, "epsilon has two different budgets for shift 8."),
        ({1: 0.5, 2: 1, 3: 1}, "epsilon has a budget for 3, which is not one of the shifts."),
        ({1: 0.5, 2: 0}, "epsilon of shift 2 must be a finite number > 0. Got 0."),
        (0, "epsilon must be a finite number > 0. Got 0."),
        (math.nan, "epsilon must be a finite number > 0. Got nan."),
    ],
)
def test_invalid_budgets_are_refused(budgets: Any, message: str) -> None:
    with pytest.raises(InvalidRequest) as error:
        TWO_SHIFTS.budgets(budgets)
    assert str(error.value) == message


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
