"""Test the ε of vectors whose coordinates are quantized separately, against their joint laws."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
import pytest

import workbench as wb
from workbench.errors import InvalidRequest

QUESTION = wb.Quantization("-3,-0.5,0.5,3")
SQUARED = {"epsilon": 1, "metric": "squared", "method": "mvu", "inputs": 5}


def compute_joint_epsilon(design: wb.Design, x: np.ndarray, y: np.ndarray) -> float:
    """Compute the largest ln ratio of the joint laws of all coordinates at two vectors."""
    joint_laws = []
    for vector in (x, y):
        law = np.ones(1)
        for coordinate in vector:
            law = np.outer(law, design.mechanism.probabilities([coordinate])[0]).ravel()
        joint_laws.append(law)
    return float(np.log(joint_laws[0] / joint_laws[1]).max())


@pytest.mark.parametrize("diameter", [0.5, 1.0, 2.0])
def test_vectors_of_knots_have_the_squared_diameter_as_factor(diameter: float) -> None:
    design = wb.design(QUESTION, **SQUARED, dimension=2, diameter=diameter)
    stated = design.to_dict()["vector_epsilon_of_knots"]
    assert stated == diameter**2
    knots = [float(knot) for knot in design.mechanism.knots]
    worst = 0.0
    for a, b in itertools.product(itertools.product(knots, repeat=2), repeat=2):
        if math.dist(a, b) <= diameter:
            worst = max(worst, compute_joint_epsilon(design, np.array(a), np.array(b)))
    assert worst <= stated + 1e-9
    # Neighbouring knots use the budget of their distance .5.
    assert worst >= 0.25 - 1e-6


def test_other_vectors_need_more_than_the_squared_diameter() -> None:
    """Sec. 5 of Cai et al. 2024 states ε B² for every vector; dithered inputs exceed it."""
    design = wb.design(QUESTION, **SQUARED, dimension=4, diameter="0.2")
    report = design.to_dict()
    x = np.zeros(4)
    y = np.full(4, 0.1)
    worst = max(compute_joint_epsilon(design, x, y), compute_joint_epsilon(design, y, x))
    assert math.dist(x, y) <= 0.2
    assert worst > report["vector_epsilon_of_knots"]
    assert worst <= report["vector_epsilon"]
    assert report["vector_epsilon"] == pytest.approx((0.2 + 2 * 0.5 * 2) ** 2)


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({}, 3.0),
        ({"metric": "absolute", "method": "exact"}, math.sqrt(3) * 0.4),
        ({"metric": "absolute", "method": "exact", "diameter": 50}, 3 * 2),
    ],
)
def test_random_vectors_are_within_the_stated_budget(
    options: dict[str, Any], expected: float
) -> None:
    request = {"epsilon": 1, "dimension": 3, "diameter": "0.4", **options}
    design = wb.design(QUESTION, **request)
    assert design.to_dict()["vector_epsilon"] == pytest.approx(expected)
    generator = np.random.default_rng(5)
    distance = float(request["diameter"])
    for _ in range(50):
        x = generator.uniform(low=-1, high=1, size=3)
        direction = generator.normal(size=3)
        direction /= np.linalg.norm(direction)
        y = np.clip(x + distance * direction, -1, 1)
        assert compute_joint_epsilon(design, x, y) <= expected + 1e-9


def test_a_report_has_the_row_of_vectors_on_request_only() -> None:
    with_vectors = wb.design(QUESTION, epsilon=1, dimension=10, diameter=2)
    assert "epsilon 10 for 10 coordinates and distance at most 2" in str(with_vectors)
    assert "vector_epsilon" not in wb.design(QUESTION, epsilon=1).to_dict()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"dimension": 3}, "diameter must be given with dimension"),
        ({"diameter": 3}, "dimension must be given with diameter"),
        ({"dimension": 0, "diameter": 1}, "dimension must be"),
        ({"dimension": 3, "diameter": -1}, "diameter must be"),
    ],
)
def test_incomplete_vectors_are_an_error(options: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidRequest, match=message):
        wb.design(QUESTION, epsilon=1, **options)
