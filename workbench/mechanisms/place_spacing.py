"""Compare how far a channel of places moves a place with how far the places are apart.

A place moves by the Euclidean distance to its output. The mean move averages this over places and
outputs, with all places equally likely. The spacing is the median distance of a place to its
nearest other place. A position in a square cell of width S is on average C S from the middle of the
cell,

    C = (√2 + ln(1 + √2)) / 6 = 0.3826

so if the mean move is smaller, moving the positions to their places costs more than the noise.
"""

from __future__ import annotations

import math

import numpy as np

from workbench.exact.arrays import Vector

_CELL_SHARE = (math.sqrt(2) + math.asinh(1)) / 6  # C of the module header.


def compute_mean_moves(matrix: Vector, places: Vector, outputs: Vector) -> Vector:
    """Compute the mean distance between every place and its output. Shape (k,).

    Args:
        matrix: Probability of every output for every place, shape (k, m).
        places: Coordinates of the places, shape (k, 2).
        outputs: Coordinates of the outputs, shape (m, 2).
    """
    differences = places[:, None, :] - outputs[None, :, :]
    distances = np.hypot(*differences.transpose(2, 0, 1))
    return np.asarray((matrix * distances).sum(axis=1))


def compute_spacing(places: Vector) -> float:
    """Compute the median distance of a place to its nearest other place.

    Args:
        places: Coordinates of at least two places, shape (k, 2).
    """
    nearest = []
    for number, place in enumerate(places):
        other_places = np.delete(places, number, axis=0)
        nearest.append(float(np.hypot(*(other_places - place).T).min()))
    return float(np.median(nearest))


def describe_spacing(matrix: Vector, places: Vector, outputs: Vector, unit: str = "") -> str | None:
    """Return a warning if the places are much finer or coarser than the noise of a channel.

    Args:
        matrix: Probability of every output for every place, shape (k, m).
        places: Coordinates of at least two places, shape (k, 2).
        outputs: Coordinates of the outputs, shape (m, 2).
        unit: Unit of the coordinates. Empty if it is not known.
    """
    move = float(compute_mean_moves(matrix, places, outputs).mean())
    spacing = compute_spacing(places)
    suffix = f" {unit}" if unit else ""
    if move > spacing:
        return (
            f"A published place is on average {move:.4g}{suffix} from the true place, which is "
            f"more than the spacing of the places, {spacing:.4g}{suffix}. A single published place "
            "says little about its own cell. A larger epsilon moves places less."
        )
    if move < _CELL_SHARE * spacing:
        return (
            f"The places are too coarse for this budget. A published place is on average "
            f"{move:.4g}{suffix} from the true place. But moving a position to its nearest place "
            f"moves it by about {_CELL_SHARE * spacing:.4g}{suffix}, as the spacing is "
            f"{spacing:.4g}{suffix}. Places that are closer together give a smaller error."
        )
    return None
