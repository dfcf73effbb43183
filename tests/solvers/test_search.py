"""The kit of searches."""

from __future__ import annotations

import math
from fractions import Fraction

import pytest

from workbench.solvers.search import Chords, Deadline, OpenNodes, bisect


def test_bisection_ends_at_neighbouring_floats_or_at_the_tolerance():
    low, high = bisect(lambda x: x * x >= 2, 0.0, 2.0)
    assert low * low < 2 <= high * high
    assert math.nextafter(low, 2) == high
    low, high = bisect(lambda x: x * x >= 2, Fraction(0), Fraction(2), tolerance=Fraction(1, 1000))
    assert 0 < high - low <= Fraction(1, 1000)
    assert low * low < 2 <= high * high
    assert bisect(
        lambda x: x >= 100, 1.0, 1e6, max_steps=1, choose_point=lambda a, b: math.sqrt(a * b)
    ) == (
        1.0,
        1e3,
    )

    assert bisect(lambda x: None if x < 1 else x > 0, 0.0, 4.0) == (0.0, 1.0)  # at 0.5 undecided


def test_chords_ask_few_values_where_one_end_stays_and_start_where_they_are_told():
    chords, root = Chords(1e-3), math.log(50)

    def below(x: float) -> bool:
        chords.values[x] = 50 - math.exp(x)
        return chords.values[x] <= 0

    assert chords.choose_point(0.0, 8.0) == 4.0
    assert chords.choose_point(Fraction(0), Fraction(8), 0.25) == 2.0
    assert not below(0.0)
    assert below(8.0)
    low, high = bisect(below, 0.0, 8.0, max_steps=25, choose_point=chords.choose_point)
    assert low <= root <= high
    assert min(root - low, high - root) < 1e-9
    assert len(chords.values) <= 27


def test_open_nodes_come_by_their_bound_and_then_in_their_order():
    nodes: OpenNodes[str] = OpenNodes()
    for bound, name in ((2.0, "b"), (1.0, "a"), (2.0, "c")):
        nodes.put(bound, name)
    assert (nodes.lower_bound, nodes.first_node, len(nodes)) == (1.0, "a", 3)
    order = []
    while nodes:
        order.append(nodes.first_node)
        nodes.pop()
    assert order == ["a", "b", "c"]
    assert nodes.lower_bound == math.inf


def test_deadlines():
    none, late = Deadline(), Deadline(-1.0)
    assert none.remaining_seconds is None
    assert none.solver_time_limit is None
    assert not none.has_passed
    assert late.has_passed
    assert late.solver_time_limit == pytest.approx(1e-3)
    assert Deadline(10.0).rescale(0.5).seconds == 5.0
    assert none.rescale(0.5).seconds is None
    assert Deadline(cpu=True).elapsed_seconds >= 0
