"""Test the comparison of the move of a channel with the spacing of its places."""

from __future__ import annotations

import numpy as np
import pytest

from workbench.mechanisms.place_spacing import (
    _CELL_SHARE,
    compute_mean_moves,
    compute_spacing,
    describe_spacing,
)

GRID = np.array([(100.0 * i, 100.0 * j) for i in range(3) for j in range(3)])


def make_response(right: float) -> np.ndarray:
    """Return randomized response on the grid, which keeps a place with a probability."""
    others = (1 - right) / (len(GRID) - 1)
    return np.full((9, 9), others) + (right - others) * np.eye(9)


def test_the_mean_move_of_two_places_is_that_by_hand() -> None:
    places = np.array([(0.0, 0.0), (3.0, 4.0)])
    moves = compute_mean_moves(np.array([[0.8, 0.2], [0.5, 0.5]]), places, places)
    assert moves == pytest.approx([1.0, 2.5])


def test_the_spacing_is_the_median_of_nearest_distances() -> None:
    assert compute_spacing(GRID) == 100
    assert compute_spacing(np.array([(0.0, 0), (1, 0), (3, 0), (10, 0)])) == pytest.approx(1.5)


def test_a_position_in_a_cell_is_as_far_from_its_middle_as_a_grid_of_points() -> None:
    """The mean distance of 10^6 points of the unit square from its middle is .38260."""
    x = (np.arange(1000) + 0.5) / 1000 - 0.5
    assert np.hypot(*np.meshgrid(x, x)).mean() == pytest.approx(_CELL_SHARE, abs=1e-5)


def test_a_move_above_the_spacing_is_a_warning() -> None:
    warning = describe_spacing(make_response(0.1), GRID, GRID, "m")
    assert warning is not None
    assert "more than the spacing of the places, 100 m" in warning


def test_places_that_are_hardly_moved_are_too_coarse() -> None:
    warning = describe_spacing(make_response(0.95), GRID, GRID)
    assert warning is not None
    assert "too coarse for this budget" in warning


def test_a_move_between_both_limits_needs_no_warning() -> None:
    """The mean distance of two different places is 182.9, so at .6 the mean move is 73.2."""
    assert describe_spacing(make_response(0.6), GRID, GRID) is None
