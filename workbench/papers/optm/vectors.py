"""Fig. 4a and 4b: coordinate-wise quantization of vectors, Euclidean error."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd

from workbench.exact.objects import Record
from workbench.families.quantizer.laws import add_end_points
from workbench.families.quantizer.limit import solve_unlimited_outputs
from workbench.models.quantizer.program import smallest_epsilon
from workbench.papers.optm.common import designed, published, simulated
from workbench.questions.density import Density, density_from_function, uniform_density
from workbench.solvers.arrays import Vector

_COUNT, _CUBE, _BALL = 10_000, 10, 100  # vectors, and their dimensions


def ball_coordinate() -> Density:
    """One coordinate of a vector uniform in the unit ball, d = _BALL, even: f(t) ∝ (1 - t²)^((d-1)/2), ∫ f = 1.

    Products and a root alone, which every machine rounds alike: f is what a search for outputs sees.
    """
    half = _BALL // 2
    scale = 4**half * math.factorial(half) ** 2 / math.factorial(_BALL) / math.pi

    def shape(t: Vector) -> Vector:
        base = np.maximum(0.0, 1 - t * t)
        density: Vector = scale * np.sqrt(base)
        for _ in range(half - 1):
            density = density * base
        return density

    return density_from_function(
        shape, breaks=np.linspace(-1, 1, 41)[1:-1].tolist(), is_symmetric=True
    )


def ball(count: int, rng: np.random.Generator) -> Vector:
    """Vectors uniform in the unit ball: a Gaussian direction, radius U^(1/_BALL). Shape (count, _BALL)."""
    direction = rng.normal(size=(count, _BALL))
    direction /= np.linalg.norm(direction, axis=1, keepdims=True)
    return direction * rng.random((count, 1)) ** (1 / _BALL)


def _least(epsilon: str, vectors: Vector) -> float:
    """What no unbiased ε-private quantizer's root mean squared Euclidean error on these vectors is below.

    sqrt(d V): V bounds a coordinate's mean squared error. |x| is cut into 20 equal groups, mirrored; averaging a
    mechanism over a group gives a private law that is unbiased at the group's mean, and as E M² does not change its
    squared error there exceeds the group's mean one by the variance of x in the group.
    """
    size = np.sort(np.abs(vectors), axis=None)
    groups = size[: size.size // 20 * 20].reshape(20, -1)
    means = np.round(groups.mean(axis=1), 9)  # the same points on every machine
    points, share = add_end_points(np.concatenate([-means[::-1], means]))
    lower = (
        solve_unlimited_outputs(points, float(epsilon), "squared", weights=share).lower
        - groups.var(axis=1).mean()
    )
    return float(np.sqrt(vectors.shape[1] * max(0.0, lower)))


def vectors(inputs: str, epsilon: float) -> pd.DataFrame:
    """The errors of every mechanism on the vectors of a figure, and the least root mean squared error."""
    rng, budget = np.random.default_rng(4), f"{epsilon:g}"
    drawn, density = rng.uniform(-1, 1, (_COUNT, _CUBE)), uniform_density()
    if inputs == "ball":
        drawn, density = ball(_COUNT, rng), ball_coordinate()
    best = designed(4, budget, density, loss="squared", starts=1)
    rows = []
    for mechanism, quantizer in (published(budget, "table7") | {"exact quantizer": best}).items():
        errors = np.linalg.norm(simulated(quantizer, drawn, rng) - drawn, axis=1)
        deviation, mean_square = errors.std(ddof=1), float((errors**2).mean())
        rows.append(
            [mechanism, errors.mean(), deviation, deviation / np.sqrt(_COUNT), mean_square**0.5]
        )
    rows.append(["least root mean squared error", None, None, None, _least(budget, drawn)])
    return pd.DataFrame(
        rows,
        columns=[
            "mechanism",
            "mean error",
            "standard deviation",
            "standard error",
            "root mean squared error",
        ],
    )


def words(table: pd.DataFrame) -> Record:
    """Of the captions of Fig. 4a and 4b."""
    return {"count": _COUNT, "least": smallest_epsilon(-3.0, 3.0)}


def metric_floor(points: int, reach: float) -> float:
    """The least ε of squared-distance metric privacy on a grid of so many points with outputs in [-reach, reach].

    Neighbouring points of [-1, 1] are h = 2/(n-1) apart, so laws at ±1 differ by e^{ε h² (n-1)} at most; unbiased laws
    need ln((B+1)/(B-1)): ε >= (n-1) ln((B+1)/(B-1)) / 4. It grows without limit with the grid.
    """
    return (points - 1) * smallest_epsilon(-reach, reach) / 4
