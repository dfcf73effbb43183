"""Recompute Figs. 4a and 4b of Cai et al. 2024: the Euclidean error of vectors.

Every coordinate of a vector is quantized separately, with the budget ε for each coordinate. d is
the dimension.
"""

from __future__ import annotations

import math

import numpy as np
import pandas as pd

from workbench.exact.objects import Record
from workbench.families.quantizer.laws import add_end_points
from workbench.families.quantizer.limit import solve_unlimited_outputs
from workbench.mechanisms.piecewise_affine import Quantizer
from workbench.models.quantizer.program import smallest_epsilon
from workbench.papers.optm.common import (
    design_quantizer,
    get_printed_numbers,
    list_published_mechanisms,
    simulate_quantizer,
)
from workbench.questions.density import Density, density_from_function, uniform_density
from workbench.solvers.arrays import Vector

_VECTOR_COUNT = 10_000  # Errors are averages over this many random vectors.
_CUBE_DIMENSION = 10  # The vectors of Fig. 4a are in the cube [-1, 1]^10.
_BALL_DIMENSION = 100  # The vectors of Fig. 4b are in the unit ball of dimension 100.
_SEED = 4  # The seed of the vectors and of the quantizers' randomness.
_DENSITY_BREAKS = 41  # The density of a coordinate is integrated between this many points.
_MEAN_DECIMALS = 9  # Means of groups are rounded, so that they are the same on every machine.
_QUANTIZER_OUTPUTS = 4  # The exact quantizer has as many outputs as MVU.
_QUANTIZER_STARTS = 1  # The search for its outputs starts at one point. The default is 4.
_GROUP_COUNT = 20  # The lower bound divides the coordinates into this many groups by size.


def make_ball_density() -> Density:
    """Return the density of a coordinate of a vector that is uniform in the unit ball.

    In the (even) dimension d it is f(t) ∝ (1 - t²)^((d-1)/2) with ∫ f = 1. It is computed with
    products and one root only, which every machine rounds alike. Otherwise the search for outputs,
    which uses it, could give other outputs on another machine.
    """
    half_dimension = _BALL_DIMENSION // 2
    scale = (
        4**half_dimension
        * math.factorial(half_dimension) ** 2
        / math.factorial(_BALL_DIMENSION)
        / math.pi
    )

    def evaluate(t: Vector) -> Vector:
        """Evaluate the density of one coordinate, scale · (1 - t²)^((d-1)/2), at t."""
        base = np.maximum(0.0, 1 - t * t)
        density: Vector = scale * np.sqrt(base)
        for _ in range(half_dimension - 1):
            density = density * base
        return density

    _, *breaks, _ = np.linspace(-1, 1, _DENSITY_BREAKS).tolist()
    return density_from_function(evaluate, breaks=breaks, is_symmetric=True)


def draw_ball_vectors(count: int, rng: np.random.Generator) -> Vector:
    """Draw vectors uniform in the unit ball: a Gaussian direction with the radius U^(1/d).

    Args:
        count: The number of vectors.
        rng: The source of randomness.

    Returns:
        The vectors. Shape (count, d).
    """
    directions = rng.normal(size=(count, _BALL_DIMENSION))
    directions /= np.linalg.norm(directions, axis=1, keepdims=True)
    return directions * rng.random((count, 1)) ** (1 / _BALL_DIMENSION)


def _bound_vector_error(epsilon: str, vectors: Vector) -> float:
    """Return a lower bound on the root mean squared error of unbiased ε-private quantizers.

    It is sqrt(d V) for the Euclidean error on these vectors, where V is a lower bound on the mean
    squared error of a coordinate. V is computed as follows.

    1. The sizes |x| of all coordinates x are divided into 20 groups of equal count. The groups are
       mirrored for x < 0.
    2. The average of a mechanism M over the inputs of a group is a private law that is unbiased at
       the mean of the group.
    3. For an unbiased M, E (M - x)² = E M² - x². The average keeps E M² but replaces x² by the
       squared mean. So its squared error at the mean exceeds the mean squared error of M in the
       group by the variance of x in the group.
    4. `solve_unlimited_outputs` bounds the mean squared error of private unbiased laws at the means
       from below. V is this bound minus the mean variance in the groups.
    """
    sizes = np.sort(np.abs(vectors), axis=None)
    groups = sizes[: sizes.size // _GROUP_COUNT * _GROUP_COUNT].reshape(_GROUP_COUNT, -1)
    means = np.round(groups.mean(axis=1), _MEAN_DECIMALS)
    points, weights = add_end_points(np.concatenate([-means[::-1], means]))
    bounds = solve_unlimited_outputs(points, float(epsilon), "squared", weights=weights)
    coordinate_bound = bounds.lower - groups.var(axis=1).mean()
    return float(np.sqrt(vectors.shape[1] * max(0.0, coordinate_bound)))


def design_squared_error_optm(epsilon: str, density: Density) -> Quantizer:
    """Design the best two-bin mechanism at Table 7's bins for the squared error of a coordinate.

    OPTM minimises a bound on the absolute error. MVU and the exact quantizer minimise the squared
    error, which is what the figures measure. This mechanism of OPTM's family does so too.

    Args:
        epsilon: The ε of a coordinate as text.
        density: The density of a coordinate.
    """
    bins = get_printed_numbers()["table7"]["OPTM"]["bins"]
    return design_quantizer(bins, epsilon, density, method="product", loss="squared")


def measure_vector_errors(inputs: str, epsilon: float) -> pd.DataFrame:
    """Return the errors of every mechanism on the vectors of a figure, and a lower bound.

    Args:
        inputs: "cube" (uniform in [-1, 1]^10) or "ball" (uniform in the unit ball, dimension 100).
        epsilon: The ε of a coordinate.

    Returns:
        One row for each mechanism: mechanism, "mean error", "standard deviation", "standard error"
        (of the mean), "root mean squared error". The last row has a lower bound on the last column.
    """
    rng = np.random.default_rng(_SEED)
    budget = f"{epsilon:g}"
    vectors = rng.uniform(-1, 1, (_VECTOR_COUNT, _CUBE_DIMENSION))
    density = uniform_density()
    if inputs == "ball":
        vectors = draw_ball_vectors(_VECTOR_COUNT, rng)
        density = make_ball_density()
    mechanisms = list_published_mechanisms(budget, "table7")
    mechanisms["exact quantizer"] = design_quantizer(
        _QUANTIZER_OUTPUTS, budget, density, loss="squared", starts=_QUANTIZER_STARTS
    )
    mechanisms["OPTM, squared error"] = design_squared_error_optm(budget, density)
    rows = []
    for name, quantizer in mechanisms.items():
        outputs = simulate_quantizer(quantizer, vectors, rng)
        errors = np.linalg.norm(outputs - vectors, axis=1)
        deviation = errors.std(ddof=1)
        row = {
            "mechanism": name,
            "mean error": errors.mean(),
            "standard deviation": deviation,
            "standard error": deviation / np.sqrt(_VECTOR_COUNT),
            "root mean squared error": float((errors**2).mean()) ** 0.5,
        }
        rows.append(row)
    bound = _bound_vector_error(budget, vectors)
    rows.append({"mechanism": "least root mean squared error", "root mean squared error": bound})
    return pd.DataFrame(rows)


def describe_vectors(table: pd.DataFrame) -> Record:
    """Return the template values of the captions of Figs. 4a and 4b.

    Args:
        table: The table of the figure.

    Returns:
        A mapping with three entries:

        count: the number of vectors.
        least: the smallest ε of a quantizer of [-1, 1] with outputs in [-3, 3].
        larger: sentences that say at how many ε the mean error of OPTM, and of OPTM for the
            squared error, is larger than that of MVU and of RQM.
    """
    errors = table.pivot_table("mean error", "epsilon", "mechanism")
    sentences = []
    for name in ("OPTM", "OPTM, squared error"):
        mvu_count = int((errors[name] > errors["MVU"]).sum())
        rqm_count = int((errors[name] > errors["RQM"]).sum())
        sentences.append(
            f"The mean error of {name} is larger than MVU's at {mvu_count or 'none'} of "
            f"{len(errors)} values of ε, and larger than RQM's at {rqm_count or 'none'}."
        )
    return {
        "count": _VECTOR_COUNT,
        "least": smallest_epsilon(-3.0, 3.0),
        "larger": " ".join(sentences),
    }


def compute_metric_floor(point_count: int, reach: float) -> float:
    """Return a lower bound on the ε of squared-distance metric privacy on a grid of n points.

    Under this notion the privacy loss of the inputs x and x' is at most ε (x - x')². Neighbouring
    points of [-1, 1] have the distance h = 2/(n-1), so laws at ±1 differ by at most
    e^{ε h² (n-1)}. Unbiased laws with outputs in [-B, B] need ln((B+1)/(B-1)). Therefore
    ε >= (n-1) ln((B+1)/(B-1)) / 4, which grows without limit with n.

    Args:
        point_count: The number n >= 2 of grid points.
        reach: The largest output B > 1.
    """
    return (point_count - 1) * smallest_epsilon(-reach, reach) / 4
