"""Fig. 4a and 4b: coordinate-wise quantization of vectors, Euclidean error."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from models.quantizer import smallest_epsilon
from workbench.families.quantizer.limit import unlimited
from workbench.families.quantizer.output_search import optimised_bins
from workbench.mechanisms.density import Density, from_function, uniform
from workbench.mechanisms.piecewise_affine import Quantizer
from workbench.papers.artifact import Artifact, artifact
from workbench.papers.optm.common import certified, law_question, published, simulated

_EPSILONS = ("0.75", "1", "1.25", "1.5", "1.75", "2")
_COUNT = 10_000


def ball_coordinate(dimension: int = 100) -> Density:
    """One coordinate of a vector uniform in the unit ball, d even: f(t) ∝ (1 - t²)^((d-1)/2), ∫ f = 1.

    Products and a root alone, which every machine rounds alike: f is what a search for outputs sees.
    """
    half = dimension // 2
    scale: float = 4**half * math.factorial(half) ** 2 / math.factorial(dimension) / math.pi

    def shape(t: NDArray[np.float64]) -> NDArray[np.float64]:
        base = np.maximum(0.0, 1 - t * t)
        density: NDArray[np.float64] = scale * np.sqrt(base)
        for _ in range(half - 1):
            density = density * base
        return density

    return from_function(shape, breaks=np.linspace(-1, 1, 41)[1:-1].tolist(), symmetric=True)


def _mechanisms(epsilon: str, inputs: str) -> dict[str, Quantizer]:
    density = uniform() if inputs == "cube" else ball_coordinate()
    best = optimised_bins(4, law_question(epsilon, density, "squared"), starts=1)
    assert best is not None
    return published(epsilon, "table7") | {"exact quantizer": certified(best.quantizer, epsilon)}


def cube(count: int, rng: np.random.Generator, dimension: int = 10) -> NDArray[np.float64]:
    """Vectors uniform in [-1, 1]^dimension. Shape (count, dimension)."""
    return rng.uniform(-1, 1, (count, dimension))


def ball(count: int, rng: np.random.Generator, dimension: int = 100) -> NDArray[np.float64]:
    """Vectors uniform in the unit ball: a Gaussian direction, radius U^(1/dimension). Shape (count, dimension)."""
    direction = rng.normal(size=(count, dimension))
    direction /= np.linalg.norm(direction, axis=1, keepdims=True)
    return direction * rng.random((count, 1)) ** (1 / dimension)


def _least(epsilon: str, vectors: NDArray[np.float64]) -> float:
    """What no unbiased ε-private quantizer's root mean squared Euclidean error on these vectors is below.

    sqrt(d V): V bounds a coordinate's mean squared error. |x| is cut into 20 equal groups, mirrored; averaging a
    mechanism over a group gives a private law that is unbiased at the group's mean, and as E M² does not change its
    squared error there exceeds the group's mean one by the variance of x in the group.
    """
    size = np.sort(np.abs(vectors), axis=None)
    groups = size[: size.size // 20 * 20].reshape(20, -1)
    means = np.round(groups.mean(axis=1), 9)  # the same points on every machine
    points = np.concatenate([[-1.0], -means[::-1], means, [1.0]])
    share = np.concatenate([[0.0], np.full(40, 1 / 40), [0.0]])
    lower = unlimited(points, float(epsilon), "squared", share=share).lower - groups.var(axis=1).mean()
    return float(np.sqrt(vectors.shape[1] * max(0.0, lower)))


def _figure(name: str, inputs: str) -> Artifact:
    rows = []
    for epsilon in _EPSILONS:
        rng = np.random.default_rng(4)
        vectors = cube(_COUNT, rng) if inputs == "cube" else ball(_COUNT, rng)
        for mechanism, quantizer in _mechanisms(epsilon, inputs).items():
            out = simulated(quantizer, vectors, rng)
            errors = np.linalg.norm(out - vectors, axis=1)
            rows.append(
                {
                    "epsilon": float(epsilon),
                    "mechanism": mechanism,
                    "mean error": errors.mean(),
                    "standard deviation": errors.std(ddof=1),
                    "standard error": errors.std(ddof=1) / np.sqrt(_COUNT),
                    "root mean squared error": float(np.sqrt((errors**2).mean())),
                }
            )
        rows.append(
            {
                "epsilon": float(epsilon),
                "mechanism": "least root mean squared error",
                "root mean squared error": _least(epsilon, vectors),
            }
        )

    return artifact("optm", name, pd.DataFrame(rows), count=_COUNT, least=smallest_epsilon(-3.0, 3.0))


def fig4a(full: bool) -> Artifact:
    """10-dimensional vectors uniform in the cube."""
    return _figure("fig4a", "cube")


def fig4b(full: bool) -> Artifact:
    """100-dimensional vectors uniform in the unit ball."""
    return _figure("fig4b", "ball")


def metric_floor(points: int, reach: float, c: Fraction = Fraction(1)) -> float:
    """The least ε of squared-distance metric privacy on a grid of so many points with outputs in [-reach, reach].

    Neighbouring points are h = 2c/(n-1) apart, so laws at ±c differ by e^{ε h² (n-1)} at most; unbiased laws need
    ln((B+c)/(B-c)): ε >= (n-1) ln((B+c)/(B-c)) / (4 c²). It grows without limit with the grid.
    """
    half = float(c)
    return (points - 1) * smallest_epsilon(-reach, reach, half) / (4 * half * half)
