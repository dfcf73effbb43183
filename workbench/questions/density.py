"""How inputs are distributed on [-c, c], as nodes and weights that integrate what is integrated here.

An expected error is ∫ f(x) Σ_i p(x, i) e(B_i - x) dx with p affine and e polynomial between knots and bins. For the
uniform law the integrand is a cubic there, so three Gauss-Legendre nodes are exact up to rounding; smooth densities
take 24 nodes on every interval. Point masses (a normal clipped to [-c, c] has two) count as they are.

    paper                                              code
    f_X(x), uniform on [-c, c]                         uniform()
    N(μ, σ²) clipped to [-c, c] (Table 2)              normal(mu, sigma): masses Φ beyond ±c sit at ±c
    ∫ f_X over [B_i, B_{i+1})  (Theorem 4)             Density.masses(breaks)
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from workbench.errors import must
from workbench.exact.arrays import Positions, Vector
from workbench.exact.numbers import read_number

_NODES = 24  # on an interval where a density is smooth
_NARROWEST, _FARTHEST = 1e-4, 1e6  # standard deviations and means, in units of c


def find_pieces(knots: Vector, x: Vector) -> Positions:
    """The piece that each x is on; the last one takes its right end too. Shape of x."""
    return np.clip(np.searchsorted(knots, x, side="right") - 1, 0, knots.size - 2)


@dataclass(frozen=True)
class Density:
    """A distribution on [-c, c]: `shape` on the interior, plus atoms; another c stretches it.

    Attributes:
        name: as it is spelled ("uniform", "normal:0.5,0.1").
        c: half the width of its domain; all else is in units of it.
        shape: x -> f(x), vectorised; None for the uniform law, whose integrals need three nodes only.
        breaks: points inside (-1, 1) where `shape` is not smooth.
        atoms: (x, mass) pairs; the integral of `shape` and the masses add up to 1.
        symmetric: whether x and -x are equally likely.
    """

    name: str
    c: float
    shape: Callable[[Vector], Vector] | None = None
    breaks: tuple[float, ...] = ()
    atoms: tuple[tuple[float, float], ...] = ()
    is_symmetric: bool = False

    def quadrature(self, cuts: ArrayLike) -> tuple[Vector, Vector]:
        """Nodes and weights of E[g(X)] = Σ w g(x) for g polynomial (smooth) between the cuts.

        cuts: points of [-c, c], in any order; ±c are added. Shapes (nodes,), (nodes,); atoms are the last nodes.
        """
        ends = np.concatenate([np.ravel(cuts) / self.c, self.breaks, [-1.0, 1.0]]).clip(-1, 1)
        ends.sort()
        ends = ends[np.append(True, ends[1:] - ends[:-1] > 1e-15)]
        points, weights = _legendre(3 if self.shape is None else _NODES)
        left, right = ends[:-1, None], ends[1:, None]
        half, middle = (right - left) / 2, (right + left) / 2
        x, w = (middle + half * points).ravel(), (half * weights).ravel()
        w = w / 2 if self.shape is None else w * self.shape(x)
        at, mass = np.transpose(self.atoms) if self.atoms else np.empty((2, 0))
        return self.c * np.concatenate([x, at]), np.concatenate([w, mass])

    def interval_masses(self, breaks: ArrayLike) -> Vector:
        """Pr[breaks_j <= X < breaks_{j+1}] (the last interval takes its right end too). Shape (len(breaks) - 1,)."""
        cuts = np.asarray(breaks, dtype=float)
        x, w = self.quadrature(cuts)
        place = find_pieces(cuts, x)
        inside = (x >= cuts[0]) & (x <= cuts[-1])
        return np.asarray(
            np.bincount(place[inside], weights=w[inside], minlength=cuts.size - 1), dtype=np.float64
        )

    def validate(self) -> Density:
        """Itself, when it is a density. Raises InvalidRequest when it is negative, not finite or not of mass 1."""
        _x, w = self.quadrature(np.linspace(-self.c, self.c, 65))
        if not np.isfinite(w).all() or (w < 0).any():
            must("density", "finite and >= 0 on [-c, c]", self.name)
        total = math.fsum(w)
        if abs(total - 1) > 1e-6:
            must("density", "of total mass 1 on [-c, c]", f"mass {total:.6g} for {self.name}")
        return self


@cache
def _legendre(count: int) -> tuple[Vector, Vector]:
    """Gauss-Legendre nodes and weights on [-1, 1], correctly rounded: the same on every machine."""
    from flint import arb, ctx

    with ctx.workprec(200):
        pairs = [arb.legendre_p_root(count, k, weight=True) for k in reversed(range(count))]
        points, weights = (
            np.array([float(ball.mid()) for ball in balls]) for balls in zip(*pairs, strict=True)
        )
    return points, weights


def uniform_density(c: float = 1.0) -> Density:
    """Every x in [-c, c] equally likely."""
    return Density("uniform", float(c), is_symmetric=True)


def normal_density(mu: float, sigma: float, c: float = 1.0) -> Density:
    """N(mu, sigma²) clipped to [-c, c]: what falls outside sits at ±c.

    Raises InvalidRequest unless |mu| <= 10^6 c and 10^-4 c <= sigma <= 10^6 c: a narrower one is a point to the grid,
    a farther one sits at an end.
    """
    mean, deviation = float(read_number(mu, "mu")), float(read_number(sigma, "sigma"))
    if not c * _NARROWEST <= deviation <= c * _FARTHEST:
        must("sigma", f"a number in [{c * _NARROWEST:g}, {c * _FARTHEST:g}]", sigma)
    if not abs(mean) <= c * _FARTHEST:
        must("mu", f"a number in [{-c * _FARTHEST:g}, {c * _FARTHEST:g}]", mu)

    mean, deviation = mean / c, deviation / c

    def shape(x: Vector) -> Vector:
        z = np.minimum(np.abs(x - mean) / deviation, 38.0)  # e^(-38²/2) is the last double
        return np.exp(-(z**2) / 2) / (deviation * math.sqrt(2 * math.pi))

    atoms = tuple(
        (end, math.erfc((1 + side * mean) / deviation / math.sqrt(2)) / 2)
        for end, side in ((-1.0, 1), (1.0, -1))
    )
    # 24 nodes integrate a normal density to rounding on intervals of two standard deviations
    breaks = tuple(np.linspace(-1, 1, max(3, math.ceil(1 / deviation) + 2))[1:-1].tolist())
    return Density(f"normal:{mu},{sigma}", float(c), shape, breaks, atoms, is_symmetric=mean == 0)


def density_from_function(
    shape: Callable[[Vector], Vector], breaks: Sequence[float] = (), *, is_symmetric: bool = False
) -> Density:
    """Any vectorised density on [-1, 1], smooth between the breaks. Raises InvalidRequest when it is none.

    symmetric: f(x) = f(-x), taken on trust after a look at 33 points.
    """
    cuts = tuple(sorted({*map(float, breaks), *np.linspace(-1, 1, 9)[1:-1].tolist()}))
    x = np.linspace(0.0, 1.0, 33)
    if is_symmetric and not np.allclose(shape(x), shape(-x)):
        must("density", "symmetric, as it says", "one that is not")
    return Density(
        "function", 1.0, lambda x: np.asarray(shape(x), dtype=float), cuts, (), is_symmetric
    ).validate()


def parse_density(text: Any, c: float = 1.0, middle: float = 0.0) -> Density:
    """The density of x - middle that a request spells: "uniform", "normal:MU,SIGMA" of x, "parts:W,W,..." of weights of
    equal parts, uniform on each, or a Density on [-c, c].

    Raises InvalidRequest.
    """
    if isinstance(text, Density):
        if text.c != c:
            must("density", f"one on [-{c:g}, {c:g}]", f"one on [-{text.c:g}, {text.c:g}]")
        return text.validate()
    kind, _, rest = str(text).partition(":")
    if kind == "uniform" and not rest:
        return uniform_density(c)
    parts = [*map(str.strip, rest.split(","))]
    if kind == "normal" and len(parts) == 2:
        law = normal_density(
            float(read_number(parts[0], "mu")) - middle, float(read_number(parts[1], "sigma")), c
        ).validate()
        return replace(law, name=f"normal:{','.join(parts)}") if middle else law
    if kind == "parts":
        weights = [read_number(part, "weights of parts") for part in parts]
        if min(weights) < 0 or not any(weights):
            must("weights of parts", "numbers >= 0, not all 0", rest)
        heights = np.array([float(weight / sum(weights)) for weight in weights]) * len(weights) / 2
        breaks = np.linspace(-1, 1, len(weights) + 1)[1:-1]

        def shape(x: Vector) -> Vector:
            return np.asarray(heights[np.searchsorted(breaks, x, side="right")])

        return Density(
            str(text), c, shape, tuple(breaks.tolist()), is_symmetric=weights == weights[::-1]
        )
    wanted = (
        'uniform, or normal:MU,SIGMA such as "normal:0.5,0.1", or parts:W,W,... such as "parts:1,3"'
    )
    return must("density", wanted, repr(text))
