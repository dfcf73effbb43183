"""Test the questions of noise modulo n + 1: their shifts, differences and budgets.

The differences are all shifts between neighbouring answers: the given shifts, and their negatives
unless the neighbours are directed.
"""

from __future__ import annotations

import json
import math
import pickle
from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from workbench.errors import InvalidRequest
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
RELATION = "Give either max_shift or shifts. Got {}."
NORM = (
    'max_shift must be a whole radius >= 1 and a norm for a vector query, "1 L1" or "1 Linf". Got '
)


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
        ({"n": 8}, RELATION.format("none")),
        ({"n": 8, "shifts": [1], "max_shift": 1}, RELATION.format("both")),
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
        ({"sizes": (5, 5), "max_shift": 1}, NORM + "1."),
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
        ({"sizes": "5x5", "max_shift": "1 L2"}, NORM + "'1 L2'."),
        ({"sizes": "5x5", "max_shift": "1.5 L1"}, NORM + "'1.5 L1'."),
        ({"sizes": "5x5", "max_shift": "0 L1"}, NORM + "'0 L1'."),
        (
            {"n": 8, "max_shift": "1 L1"},
            "max_shift must be a whole number for one coordinate; a norm is for several (sizes). "
            "Got '1 L1'.",
        ),
        (
            {"sizes": "5x5", "max_shift": "1 L1", "directed": True},
            "directed must be left out where max_shift is a norm, because a norm gives both orders "
            "of each pair. Give the directed differences by shifts.",
        ),
        (
            {"sizes": "101x101x101x101", "max_shift": "50 Linf"},
            "sizes must be orders with a product in 2..50000000. Got (101, 101, 101, 101).",
        ),
        (
            {"sizes": "201x201x201", "max_shift": "100 Linf"},
            "max_shift must describe at most 1000000 shifts. Got more for '100 Linf'. Choose a "
            "smaller radius.",
        ),
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


@pytest.mark.parametrize("sizes", [(5, 5), (4, 6), (2, 3, 4), (3, 2)])
@pytest.mark.parametrize("norm", ["L1", "Linf"])
@pytest.mark.parametrize("radius", [1, 2, 3])
def test_a_norm_gives_all_differences_within_it(
    sizes: tuple[int, ...], norm: str, radius: int
) -> None:
    question = ModuloNoise(sizes=sizes, max_shift=f"{radius} {norm}")
    expected = set()
    for shift in product(*map(range, sizes)):
        distances = [min(part, size - part) for part, size in zip(shift, sizes, strict=True)]
        length = sum(distances) if norm == "L1" else max(distances)
        if 0 < length <= radius:
            expected.add(shift)
    assert {*question.differences} == expected


def test_a_norm_names_one_shift_of_each_pair() -> None:
    assert ModuloNoise(sizes="5x5", max_shift="1 Linf").shifts == ((0, 1), (1, 0), (1, 1), (1, 4))
