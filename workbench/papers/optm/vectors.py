"""Fig. 4a and 4b: coordinate-wise quantization of vectors, Euclidean error."""

from __future__ import annotations

import math
from fractions import Fraction
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from models.quantizer import smallest_epsilon
from workbench.families.quantizer.limit import unlimited
from workbench.families.quantizer.mvu import mvu
from workbench.families.quantizer.output_search import optimised_bins
from workbench.io.figures import COLOURS, MARKERS, panels
from workbench.mechanisms.density import Density, from_function, uniform
from workbench.mechanisms.piecewise_affine import Quantizer
from workbench.papers.artifact import Artifact
from workbench.papers.optm.common import STYLE, certified, largest_q, law_question, optm_at, parameters
from workbench.papers.optm.simulation import simulated

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["ball", "cube", "fig4a", "fig4b"]

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


@lru_cache
def _published(epsilon: str) -> dict[str, Quantizer]:
    """Of both figures: they do not depend on the inputs."""
    table = parameters()["table7"]
    quantizers = {
        "OPTM": optm_at(table["OPTM"]["bins"], epsilon),
        "MVU": certified(mvu(epsilon, levels=4, bound=False).quantizer, epsilon),
    }
    largest = largest_q(table["RQM"]["bins"], epsilon)
    return quantizers | ({} if largest is None else {"RQM": largest})


def _mechanisms(epsilon: str, inputs: str) -> dict[str, Quantizer]:
    density = uniform() if inputs == "cube" else ball_coordinate()
    best = optimised_bins(4, law_question(epsilon, density, "mse"), starts=1)
    assert best is not None
    return _published(epsilon) | {"exact quantizer": certified(best.quantizer, epsilon)}


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
    lower = unlimited(points, float(epsilon), "mse", share=share).lower - groups.var(axis=1).mean()
    return float(np.sqrt(vectors.shape[1] * max(0.0, lower)))


def _figure(name: str, title: str, inputs: str, caption: str) -> Artifact:
    rows = []
    for epsilon in _EPSILONS:
        rng = np.random.default_rng(4)
        vectors = cube(_COUNT, rng) if inputs == "cube" else ball(_COUNT, rng)
        for mechanism, quantizer in _mechanisms(epsilon, inputs).items():
            out = simulated(quantizer, vectors, rng)
            errors = np.linalg.norm(out - vectors, axis=1)
            rows.append(
                {
                    "epsilon": float(epsilon), "mechanism": mechanism, "mean error": errors.mean(),
                    "standard deviation": errors.std(ddof=1), "standard error": errors.std(ddof=1) / np.sqrt(_COUNT),
                    "root mean squared error": float(np.sqrt((errors**2).mean())),
                }
            )  # fmt: skip
        rows.append({"epsilon": float(epsilon), "mechanism": "least root mean squared error",
                     "root mean squared error": _least(epsilon, vectors)})  # fmt: skip

    def draw(table: pd.DataFrame) -> Figure:
        figure, (axis,) = panels(width=6.6, height=4.2)
        names = [str(n) for n in table["mechanism"].unique() if n != "least root mean squared error"]
        for k, mechanism in enumerate(names):
            part = table[table["mechanism"] == mechanism]
            shift = (k - (len(names) - 1) / 2) * 0.012
            axis.errorbar(part["epsilon"] + shift, part["mean error"], yerr=part["standard deviation"], capsize=2.5,
                          color=COLOURS[STYLE[mechanism][0]], marker=MARKERS[k], markersize=4, linewidth=1.3,
                          elinewidth=0.8, label=mechanism)  # fmt: skip
        part = table[table["mechanism"] == "least root mean squared error"]
        axis.plot(part["epsilon"], part["root mean squared error"], color="black", linestyle=(0, (5, 2)), linewidth=1.2,
                  label="limit of the root mean squared error")  # fmt: skip
        axis.set_xlabel("ε per coordinate")
        axis.set_ylabel("Euclidean error (mean ± standard deviation)")
        axis.set_ylim(bottom=0)
        axis.legend(frameon=False, fontsize=8)
        return figure

    least = smallest_epsilon(-3.0, 3.0)
    common = (
        f" {_COUNT} vectors, each coordinate quantized by itself with ε for a coordinate (bins of Table 7; the paper "
        f"does not print its values of ε, and outputs in [-3, 3] need ε >= {least:.3f}). OPTM re-optimised at every ε, "
        "RQM with the largest private q, MVU with its alphabet optimised (4 outputs, 4 input points), the exact "
        "quantizer with 4 bins optimised for the squared error of a coordinate (the error measured). A coordinate's "
        "exact ε holds for every real input; a vector's is the sum over its coordinates. Dashed: the root mean squared "
        "error below which no unbiased ε-private quantizer of the coordinates is, whatever its outputs (the mean error "
        "of a mechanism may be slightly below its root mean squared error)."
    )
    return Artifact(name, title, pd.DataFrame(rows), draw, caption + common,
                    digits={"mean error": 6, "standard deviation": 5, "standard error": 4,
                            "root mean squared error": 5})  # fmt: skip


def fig4a(full: bool) -> Artifact:
    """10-dimensional vectors uniform in the cube."""
    caption = "Vectors uniform in [-1, 1]^10 (the paper's 'bounded L1 norm')."
    return _figure("fig4a", "Fig. 4a: error of vectors in [-1, 1]^10", "cube", caption)


def fig4b(full: bool) -> Artifact:
    """100-dimensional vectors uniform in the unit ball."""
    caption = "Vectors uniform in the 100-dimensional unit ball; their coordinates are small (standard deviation 0.1)."
    return _figure("fig4b", "Fig. 4b: error of vectors in the unit ball", "ball", caption)


def metric_floor(points: int, reach: float, c: Fraction = Fraction(1)) -> float:
    """The least ε of squared-distance metric privacy on a grid of so many points with outputs in [-reach, reach].

    Neighbouring points are h = 2c/(n-1) apart, so laws at ±c differ by e^{ε h² (n-1)} at most; unbiased laws need
    ln((B+c)/(B-c)): ε >= (n-1) ln((B+c)/(B-c)) / (4 c²). It grows without limit with the grid.
    """
    half = float(c)
    return (points - 1) * smallest_epsilon(-reach, reach, half) / (4 * half * half)
