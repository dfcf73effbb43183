"""Represent distributions of the inputs of a quantizer on [-c, c], and integrate over them.

A mean over the inputs is computed as a weighted sum over nodes (`Density.quadrature`):
E g(X) = Σ w g(x). For example, the mean of |X| under the uniform law on [-1, 1] is 1/2:

    >>> x, w = uniform_density().quadrature([0.0])
    >>> round(float(w @ abs(x)), 12)
    0.5

Notation: f is the density of the input x, p(x, i) the probability of the i-th output (bin) B_i, and
e the loss. An expected error is ∫ f(x) Σ_i p(x, i) e(B_i - x) dx. Between knots and bins, p is
affine in x and e is a polynomial. For the uniform law the integrand is at most a cubic there, so
three Gauss-Legendre nodes are exact up to rounding. Smooth densities use 24 nodes on every
interval. Point masses are added without quadrature: a normal law that is clipped to [-c, c] has
two. Φ is the normal distribution function. The paper is Cai, Zhang and Khalili 2024.

    paper                                              code
    f_X(x), uniform on [-c, c]                         uniform_density()
    N(μ, σ²) clipped to [-c, c] (Table 2)              normal_density(mu, sigma): the masses
                                                       Φ beyond ±c lie at ±c
    ∫ f_X over [B_i, B_{i+1})  (Theorem 4)             Density.interval_masses(breaks)
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cache, cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from workbench.errors import must
from workbench.exact.arrays import Positions, Vector
from workbench.exact.numbers import read_number

_SMOOTH_NODES = 24  # Quadrature nodes on an interval on which a density is smooth.
_UNIFORM_NODES = 3  # With 3 nodes the integrals of the uniform law are exact.
_MIN_INTERVAL = 1e-15  # Shorter intervals between cuts are merged, in units of c.
# A narrower normal law, in units of c, is refused, because for the quadrature it is a point.
_MIN_DEVIATION = 1e-4
_MAX_SIZE = 1e6  # A larger mean or deviation is refused: the law sits at an end (in units of c).
_MAX_QUANTILE = 38.0  # A larger quantile z counts as this one, because e^(-z²/2) is no double.
_MAX_MASS_ERROR = 1e-6  # A density whose mass differs from 1 by more is refused.
_VALIDATION_CUTS = 65  # A density is validated at the nodes between this many equidistant points.
_SYMMETRY_POINTS = 33  # A symmetric density is compared with its mirror image at this many points.
_DEFAULT_BREAKS = 9  # A user-defined density is integrated on the intervals between 9 points.


def find_pieces(knots: Vector, x: Vector) -> Positions:
    """Return the index of the piece between two knots that contains each x, in the shape of x.

    A piece contains its left end. The last piece also contains its right end.

    Args:
        knots: Increasing, shape (pieces + 1,).
        x: Numbers between the first and the last knot.
    """
    return np.clip(np.searchsorted(knots, x, side="right") - 1, 0, knots.size - 2)


@dataclass(frozen=True)
class Density:
    """A distribution on [-c, c]: a density on the interior, plus atoms (points with a mass).

    Attributes:
        name: Text that users write for it ("uniform", "normal:0.5,0.1").
        c: Half the width of the domain. All other attributes are in units of c.
        shape: Density f(x), which maps an array of x in [-1, 1] to an array. None for the uniform
            law.
        breaks: Points inside (-1, 1) at which `shape` is not smooth.
        atoms: Pairs (x, mass). The integral of `shape` and the masses add up to 1.
        is_symmetric: Whether x and -x are equally likely.
    """

    name: str
    c: float
    shape: Callable[[Vector], Vector] | None = None
    breaks: tuple[float, ...] = ()
    atoms: tuple[tuple[float, float], ...] = ()
    is_symmetric: bool = False

    @cached_property
    def _fixed_cuts(self) -> Vector:
        """Return the breaks and both ends, between which every integral is divided."""
        return np.array([*self.breaks, -1.0, 1.0])

    def quadrature(self, cuts: ArrayLike) -> tuple[Vector, Vector]:
        """Return nodes x and weights w, so that the mean of g(X) is Σ w g(x).

        This is exact up to rounding if g is a polynomial between the cuts and the law is uniform,
        and accurate if both are smooth.

        Args:
            cuts: Points of [-c, c] at which g is not smooth, in any order. ±c are added.

        Returns:
            (nodes, weights), both of shape (n,). The atoms are the last nodes.
        """
        ends = np.concatenate([np.ravel(cuts) / self.c, self._fixed_cuts])
        ends = np.maximum(np.minimum(ends, 1.0), -1.0)
        ends.sort()
        is_kept = np.ones(ends.size, dtype=bool)
        is_kept[1:] = ends[1:] - ends[:-1] > _MIN_INTERVAL
        ends = ends[is_kept]
        node_count = _UNIFORM_NODES if self.shape is None else _SMOOTH_NODES
        points, weights = _legendre_rule(node_count)
        left = ends[:-1, None]
        right = ends[1:, None]
        half_width = (right - left) / 2
        middle = (right + left) / 2
        x = (middle + half_width * points).ravel()
        w = (half_width * weights).ravel()
        if self.shape is None:
            w = w / 2
        else:
            w = w * self.shape(x)
        if not self.atoms:
            return self.c * x, w
        atom_points, atom_masses = np.transpose(self.atoms)
        return self.c * np.concatenate([x, atom_points]), np.concatenate([w, atom_masses])

    def interval_masses(self, breaks: ArrayLike) -> Vector:
        """Return the probability of each interval [breaks_j, breaks_{j+1}).

        The last interval includes its right end.

        Args:
            breaks: Increasing points of [-c, c]. Shape (m,).

        Returns:
            Probabilities. Shape (m - 1,).
        """
        cuts = np.asarray(breaks, dtype=float)
        x, w = self.quadrature(cuts)
        piece = find_pieces(cuts, x)
        is_inside = (x >= cuts[0]) & (x <= cuts[-1])
        masses = np.bincount(piece[is_inside], weights=w[is_inside], minlength=cuts.size - 1)
        return np.asarray(masses, dtype=np.float64)

    def validate(self) -> Density:
        """Check the density, and return it.

        Raises:
            InvalidRequest: If it is negative, not finite or not of total mass 1.
        """
        _x, w = self.quadrature(np.linspace(-self.c, self.c, _VALIDATION_CUTS))
        if not np.isfinite(w).all() or (w < 0).any():
            must("density", "finite and >= 0 on [-c, c]", self.name)
        total = math.fsum(w)
        if abs(total - 1) > _MAX_MASS_ERROR:
            must("density", "of total mass 1 on [-c, c]", f"mass {total:.6g} for {self.name}")
        return self


@cache
def _legendre_rule(count: int) -> tuple[Vector, Vector]:
    """Return Gauss-Legendre nodes and weights on [-1, 1].

    They are correctly rounded, and therefore the same on every machine.
    """
    from flint import arb, ctx

    with ctx.workprec(200):
        points = np.empty(count)
        weights = np.empty(count)
        for k in range(count):
            # Flint numbers the roots from the right.
            point, weight = arb.legendre_p_root(count, count - 1 - k, weight=True)
            points[k] = float(point.mid())
            weights[k] = float(weight.mid())
    return points, weights


def uniform_density(c: float = 1.0) -> Density:
    """Return the uniform density on [-c, c].

    Args:
        c: Half the width of the inputs [-c, c], > 0.
    """
    return Density("uniform", float(c), is_symmetric=True)


def normal_density(mu: float, sigma: float, c: float = 1.0) -> Density:
    """Return the density of N(mu, sigma²) clipped to [-c, c]: the mass outside lies at ±c.

    Args:
        mu: The mean, at most 10^6 c in size; a larger one would lie at an end.
        sigma: The standard deviation, from 10^-4 c to 10^6 c; a smaller one would be a point to the
            quadrature.
        c: Half the width of the inputs [-c, c], > 0.

    Returns:
        The density.

    Raises:
        InvalidRequest: If the mean or the deviation is outside its range.
    """
    mean = float(read_number(mu, "mu"))
    deviation = float(read_number(sigma, "sigma"))
    if not c * _MIN_DEVIATION <= deviation <= c * _MAX_SIZE:
        must("sigma", f"a number in [{c * _MIN_DEVIATION:g}, {c * _MAX_SIZE:g}]", sigma)
    if not abs(mean) <= c * _MAX_SIZE:
        must("mu", f"a number in [{-c * _MAX_SIZE:g}, {c * _MAX_SIZE:g}]", mu)
    mean /= c
    deviation /= c

    def shape(x: Vector) -> Vector:
        """Return the normal density at x, in units of c."""
        z = np.minimum(np.abs(x - mean) / deviation, _MAX_QUANTILE)
        return np.exp(-(z**2) / 2) / (deviation * math.sqrt(2 * math.pi))

    left_mass = math.erfc((1 + mean) / deviation / math.sqrt(2)) / 2
    right_mass = math.erfc((1 - mean) / deviation / math.sqrt(2)) / 2
    # 24 nodes integrate a normal density to rounding on intervals of two standard deviations.
    point_count = max(3, math.ceil(1 / deviation) + 2)
    breaks = tuple(np.linspace(-1, 1, point_count)[1:-1].tolist())
    return Density(
        f"normal:{mu},{sigma}",
        float(c),
        shape,
        breaks,
        atoms=((-1.0, left_mass), (1.0, right_mass)),
        is_symmetric=mean == 0,
    )


def density_from_function(
    shape: Callable[[Vector], Vector], breaks: Sequence[float] = (), *, is_symmetric: bool = False
) -> Density:
    """Build a density on [-1, 1] from a function.

    Args:
        shape: Density f(x), which maps an array of x in [-1, 1] to an array. It must be smooth
            between the breaks.
        breaks: Points inside (-1, 1) at which the function is not smooth.
        is_symmetric: Whether f(x) = f(-x). This is only checked at 33 points.

    Returns:
        The density.

    Raises:
        InvalidRequest: If the function is no density.
    """
    default_breaks = np.linspace(-1, 1, _DEFAULT_BREAKS)[1:-1].tolist()
    cuts = tuple(sorted({*map(float, breaks), *default_breaks}))
    x = np.linspace(0.0, 1.0, _SYMMETRY_POINTS)
    if is_symmetric and not np.allclose(shape(x), shape(-x)):
        must("density", "symmetric, because is_symmetric is True", "one that is not")

    def float_shape(x: Vector) -> Vector:
        """Return the density at x as floats, shape of x."""
        return np.asarray(shape(x), dtype=float)

    return Density(
        "function", c=1.0, shape=float_shape, breaks=cuts, atoms=(), is_symmetric=is_symmetric
    ).validate()


def parse_density(text: Any, c: float = 1.0, middle: float = 0.0) -> Density:
    """Parse the density of x - middle on [-c, c].

    Args:
        text: "uniform", "normal:MU,SIGMA" with the mean and deviation of x, "parts:W,W,..." with
            the weights of equal parts (uniform on each), or a Density on [-c, c].
        c: Half the width of the domain, > 0.
        middle: The middle of the domain of x.

    Returns:
        The density.

    Raises:
        InvalidRequest: For any other text, and for a Density on another interval.
    """
    if isinstance(text, Density):
        if text.c != c:
            must("density", f"one on [-{c:g}, {c:g}]", f"one on [-{text.c:g}, {text.c:g}]")
        return text.validate()
    kind, _, arguments = str(text).partition(":")
    if kind == "uniform" and not arguments:
        return uniform_density(c)
    parts = [*map(str.strip, arguments.split(","))]
    if kind == "normal" and len(parts) == 2:
        mean = float(read_number(parts[0], "mu")) - middle
        deviation = float(read_number(parts[1], "sigma"))
        law = normal_density(mean, deviation, c).validate()
        if not middle:
            return law
        return replace(law, name=f"normal:{','.join(parts)}")
    if kind == "parts":
        return _parse_parts(str(text), parts, arguments, c)
    constraint = (
        'uniform, or normal:MU,SIGMA such as "normal:0.5,0.1", or parts:W,W,... such as "parts:1,3"'
    )
    return must("density", constraint, repr(text))


def _parse_parts(name: str, parts: Sequence[str], arguments: str, c: float) -> Density:
    """Build the density that is constant on equal parts.

    Args:
        name: The name of the density, such as "parts:1,3".
        parts: The weights of the parts, as texts.
        arguments: All weights as one text, for errors.
        c: Half the width of the domain, > 0.
    """
    weights = [read_number(part, "weights of parts") for part in parts]
    if min(weights) < 0 or not any(weights):
        must("weights of parts", "numbers >= 0, not all 0", arguments)
    masses = np.array([float(weight / sum(weights)) for weight in weights])
    heights = masses * len(weights) / 2
    breaks = np.linspace(-1, 1, len(weights) + 1)[1:-1]

    def shape(x: Vector) -> Vector:
        """Return the height of the part that contains each x."""
        return np.asarray(heights[np.searchsorted(breaks, x, side="right")])

    is_symmetric = weights == weights[::-1]
    return Density(name, c, shape, tuple(breaks.tolist()), is_symmetric=is_symmetric)
