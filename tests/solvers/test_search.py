"""Tests of the building blocks of searches: bisection, chords, open nodes and deadlines."""

from __future__ import annotations

import math
from fractions import Fraction

import pytest

from workbench.solvers.search import Chords, Deadline, OpenNodes, bisect, bisect_integers


def has_square_of_at_least_two(x):
    """Return whether x² >= 2, which changes at √2."""
    return x * x >= 2


def test_bisection_of_floats_ends_at_neighbouring_floats():
    low, high = bisect(has_square_of_at_least_two, low=0.0, high=2.0)
    assert low * low < 2 <= high * high
    assert math.nextafter(low, 2) == high


def test_bisection_of_rationals_ends_at_the_tolerance():
    tolerance = Fraction(1, 1000)
    low, high = bisect(has_square_of_at_least_two, Fraction(0), Fraction(2), tolerance=tolerance)
    assert 0 < high - low <= tolerance
    assert low * low < 2 <= high * high


@pytest.mark.parametrize("guess", [None, -1, 3, 4, 9, 20])
@pytest.mark.parametrize("last", [-1, 0, 4, 9])
def test_bisection_of_integers_ends_at_neighbours(last: int, guess: int | None) -> None:
    asked = []

    def is_above(k: int) -> bool:
        """Return whether k is above `last`, and record that it was asked."""
        asked.append(k)
        return k > last

    assert bisect_integers(is_above, -1, 10, guess) == (last, last + 1)
    assert -1 not in asked
    assert 10 not in asked
    if guess == last:
        assert len(asked) <= 2


def test_bisection_may_use_the_geometric_mean():
    def compute_geometric_mean(low, high):
        """Return the point that halves the interval on a logarithmic scale."""
        return math.sqrt(low * high)

    interval = bisect(
        is_above=lambda x: x >= 100,
        low=1.0,
        high=1e6,
        max_steps=1,
        choose_point=compute_geometric_mean,
    )
    assert interval == (1.0, 1e3)


def test_bisection_ends_at_an_undecided_point():
    def is_positive_or_undecided(x):
        """Return whether x > 0, or None (undecided) for x < 1."""
        return None if x < 1 else x > 0

    # The points are 2, 1 and 0.5. The last one is undecided.
    assert bisect(is_positive_or_undecided, low=0.0, high=4.0) == (0.0, 1.0)


def test_chords_find_the_root_of_a_curved_function_in_few_steps():
    """The function 50 - e^x is so curved that plain chords never move the upper end."""
    chords = Chords(margin=1e-3)

    def is_above_root(x: float) -> bool:
        """Store the value at x, and return whether it is not positive."""
        chords.values[x] = 50 - math.exp(x)
        return chords.values[x] <= 0

    assert not is_above_root(0.0)
    assert is_above_root(8.0)
    low, high = bisect(
        is_above_root, low=0.0, high=8.0, max_steps=25, choose_point=chords.choose_point
    )
    root = math.log(50)
    assert low <= root <= high
    assert min(root - low, high - root) < 1e-9
    assert len(chords.values) <= 27


def test_chords_without_values_use_the_default_share():
    chords = Chords(margin=1e-3)
    assert chords.choose_point(0.0, 8.0) == 4.0
    assert chords.choose_point(Fraction(0), Fraction(8), default_share=0.25) == 2.0


def test_open_nodes_are_sorted_by_bound_and_then_by_time():
    nodes: OpenNodes[str] = OpenNodes()
    nodes.put(2.0, "b")
    nodes.put(1.0, "a")
    nodes.put(2.0, "c")
    assert (nodes.lower_bound, nodes.first_node, len(nodes)) == (1.0, "a", 3)
    order = []
    while nodes:
        order.append(nodes.first_node)
        nodes.pop()
    assert order == ["a", "b", "c"]


def test_the_bound_without_open_nodes_is_infinite():
    assert OpenNodes().lower_bound == math.inf


def test_a_deadline_without_a_limit_never_passes():
    deadline = Deadline()
    assert deadline.remaining_seconds is None
    assert deadline.solver_time_limit is None
    assert not deadline.has_passed
    assert deadline.rescale(0.5).seconds is None


def test_a_solver_gets_a_moment_after_the_deadline():
    deadline = Deadline(-1.0)
    assert deadline.has_passed
    assert deadline.solver_time_limit == pytest.approx(1e-3)


def test_a_deadline_can_be_rescaled():
    assert Deadline(10.0).rescale(0.5).seconds == 5.0


def test_a_deadline_can_count_cpu_time():
    assert Deadline(cpu=True).elapsed_seconds >= 0
