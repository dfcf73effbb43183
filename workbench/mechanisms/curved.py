"""Baselines whose law is not affine between bins: the Poisson binomial mechanism, and biased quantization.

    Poisson binomial (Chen et al. 2022), one client, pure ε:
        Z ~ Binomial(n, 1/2 + θ x/c),  published as B_Z = c (2 Z/n - 1)/(2 θ),  m = n + 1 outputs, unbiased;
        ε = n ln((1 + 2θ)/(1 - 2θ)), reached by the two outermost outputs at x = ±c

    biased quantization (Cai et al. 2024, Section 5): bins l <= j < r are drawn as in the two-bin family, then
        Pr[B_l] : Pr[B_r] = exp(-β (x - B_l)) : exp(-β (B_r - x)),
        the exponential mechanism with score minus the distance. Between bins every p(x, i) is a sum of logistic
        functions falling (i <= j) or rising (i > j) in x, so its extremes are one-sided limits at bins and ±c.

Errors are integrated by 24-point Gauss-Legendre rules on short intervals (12 digits and more), ε is exact: a rational
power for the first, enclosed by ball arithmetic and rounded up for the second.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from workbench.errors import InvalidRequest
from workbench.mechanisms.density import Density, uniform
from workbench.mechanisms.masses import Masses
from workbench.mechanisms.quantizer import error_function, grid_51, read_bins, read_inputs
from workbench.numbers import Real, exact, ln_up, positive, round_up

__all__ = ["Biased", "Curved", "PoissonBinomial", "poisson_binomial"]

Vector = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Curved:
    """What both have: bins (exact, increasing), c, and a law to write. Build `PoissonBinomial` or `Biased`."""

    bins: tuple[Fraction, ...]
    c: Fraction

    name = "curved"

    @property
    def m(self) -> int:
        """The number of bins."""
        return len(self.bins)

    @cached_property
    def outputs(self) -> Vector:
        """The bins as floats. Shape (m,)."""
        return np.array([float(b) for b in self.bins])

    def _law(self, x: Vector) -> Vector:
        raise NotImplementedError

    @property
    def epsilon(self) -> float:
        """The exact ε of pure privacy, rounded up."""
        raise NotImplementedError

    def law(self, x: ArrayLike, *, clip: bool = False) -> Vector:
        """p(x, i). Shape x.shape + (m,). Raises InvalidRequest for x outside [-c, c] unless clip."""
        values = read_inputs(x, float(self.c), clip=clip)
        return self._law(values.ravel()).reshape((*values.shape, self.m))

    def sample(self, x: ArrayLike, rng: np.random.Generator | int | None = None, *, clip: bool = False) -> Any:
        """Publish every coordinate of x: a float for a scalar, else an array. Raises InvalidRequest."""
        values = read_inputs(x, float(self.c), clip=clip)
        sums = np.cumsum(self.law(values), axis=-1)[..., :-1]
        index = (np.random.default_rng(rng).random(values.shape)[..., None] >= sums).sum(axis=-1)
        found = self.outputs[index]
        return float(found) if found.ndim == 0 else found

    def error_at(self, x: ArrayLike, cost: Any = "mae") -> Vector:
        """The expected error at given inputs. Shape of x."""
        a, b = error_function(cost)
        values = np.asarray(x, dtype=float)
        gap = np.abs(self.outputs - values[..., None])
        return np.asarray((self.law(values) * (a * gap + b * gap**2)).sum(axis=-1))

    def expected(self, cost: Any = "mae", density: Density | None = None) -> float:
        """E error under a density (uniform by default)."""
        law = density or uniform(float(self.c))
        fine = law.shape is None
        half = float(self.c)
        if fine:  # the law is curved: three nodes would not do
            law = Density("uniform", half, lambda x: np.full(x.shape, 0.5 / half), (), (), True)
        x, w = law.grid(np.concatenate([self.outputs, np.linspace(-half, half, 17)]))
        return math.fsum(w * self.error_at(np.clip(x, -half, half), cost))

    def mae(self, density: Density | None = None) -> float:
        """E|M(X) - X|."""
        return self.expected("mae", density)

    def mse(self, density: Density | None = None) -> float:
        """E(M(X) - X)²."""
        return self.expected("mse", density)

    @property
    def mae_51(self) -> float:
        """The mean error over the 51 points of the paper's convention."""
        return float(self.error_at(grid_51(float(self.c))).mean())

    @property
    def bias(self) -> float:
        """max_x |E M(x) - x|, over 4001 points and both sides of every bin."""
        half = float(self.c)
        near = np.clip(np.concatenate([self.outputs - 1e-12, self.outputs]), -half, half)
        x = np.concatenate([np.linspace(-half, half, 4001), near])
        return float(np.abs(self.law(x) @ self.outputs - x).max())


@dataclass(frozen=True, eq=False)
class PoissonBinomial(Curved):
    """theta: in (0, 1/2); bins as above. Build it with `poisson_binomial`."""

    theta: Fraction

    name = "PBM"

    def _law(self, x: Vector) -> Vector:
        n = self.m - 1
        p = 0.5 + float(self.theta) * x[:, None] / float(self.c)
        k = np.arange(n + 1)
        ways = np.array([math.comb(n, i) for i in range(n + 1)], dtype=float)
        return np.asarray(ways * p**k * (1 - p) ** (n - k))

    @property
    def ratio(self) -> Fraction:
        """e^ε = ((1 + 2θ)/(1 - 2θ))^n, exact."""
        return Fraction((1 + 2 * self.theta) / (1 - 2 * self.theta)) ** (self.m - 1)

    @property
    def epsilon(self) -> float:
        """n ln((1 + 2θ)/(1 - 2θ)), rounded up."""
        return ln_up(self.ratio)


def poisson_binomial(m: int, *, theta: Real | None = None, epsilon: Real | None = None, c: Real = 1) -> PoissonBinomial:
    """PBM with m outputs and a given θ in (0, 1/2), or the largest ε-private one, ½ tanh(ε/(2(m-1))), rounded down.

    Raises InvalidRequest.
    """
    if not isinstance(m, int) or isinstance(m, bool) or m < 2:
        InvalidRequest.must("m", "an integer >= 2", m)
    if (theta is None) == (epsilon is None):
        raise InvalidRequest("theta or epsilon must be given, and not both.")
    half = positive(c, "c")
    if theta is not None:
        value = exact(theta, "theta", "a number in (0, 1/2)")
    else:
        value = Fraction(math.tanh(float(positive(epsilon, "epsilon")) / (2 * (m - 1))) / 2 * (1 - 2.0**-50))
    if not 0 < value < Fraction(1, 2):
        InvalidRequest.must("theta", "a number in (0, 1/2)", theta)
    bins = tuple(half * (Fraction(2 * i, m - 1) - 1) / (2 * value) for i in range(m))
    return PoissonBinomial(bins, half, value)


@dataclass(frozen=True, eq=False)
class Biased(Curved):
    """selection, right: as `two_bin`, j-th over bins 1..j (right ones counted from the right); beta: >= 0, exact."""

    selection: tuple[Masses, ...]
    beta: Fraction

    name = "biased"

    @classmethod
    def of(cls, bins: Any, selection: Sequence[Any], beta: Real, *, c: Real = 1) -> Biased:
        """The biased variant of a symmetric two-bin mechanism. Raises InvalidRequest."""
        half = positive(c, "c")
        rows = [
            row if isinstance(row, Masses)
            else Masses.from_floats(row, "selection") if any(isinstance(v, float) for v in row)
            else Masses(row, "selection")
            for row in selection
        ]  # fmt: skip
        outputs = read_bins(bins, half)
        if [len(row) for row in rows] != list(range(1, len(outputs))):
            InvalidRequest.must("selection", "distributions over 1, 2, .., m - 1 bins", [len(row) for row in rows])
        return cls(outputs, half, tuple(rows), positive(beta, "beta", or_zero=True))

    def _law(self, x: Vector) -> Vector:
        p = np.zeros((x.size, self.m))
        place = np.clip(np.searchsorted(self.outputs, x, side="right"), 1, self.m - 1)
        for j in np.unique(place):
            here = place == j
            left, right = self.selection[j - 1].floats, self.selection[self.m - j - 1].floats
            for l in range(j):
                for r in range(j, self.m):
                    score = float(self.beta) * (2 * x[here] - self.outputs[l] - self.outputs[r])
                    share = 1 / (1 + np.exp(np.clip(score, -700, 700)))
                    both = left[l] * right[self.m - 1 - r]
                    p[here, l] += both * share
                    p[here, r] += both * (1 - share)
        return p

    @cached_property
    def epsilon(self) -> float:
        """The exact ε, from enclosures of all end laws, rounded up; inf when a bin is never drawn somewhere."""
        from flint import arb, ctx

        from workbench.numbers import _ends

        inside = [b for b in self.bins if -self.c < b < self.c]
        cuts = [-self.c, *inside, self.c]
        high: list[Any] = [None] * self.m
        low: list[Any] = [None] * self.m
        with ctx.workprec(160):
            for a, b in itertools.pairwise(cuts):
                j = max(i for i in range(self.m) if self.bins[i] <= a) + 1
                for x in (a, b):
                    law = self._balls(j, x, arb)
                    for i, value in enumerate(law):
                        bottom, top = _ends(value)
                        high[i] = top if high[i] is None else max(high[i], top)
                        low[i] = bottom if low[i] is None else min(low[i], bottom)
        drawn = [(l, h) for l, h in zip(low, high, strict=True) if h > 0]
        if any(l <= 0 for l, _ in drawn):
            return math.inf
        return max(ln_up(Fraction(round_up(h / l))) for l, h in drawn)

    def _balls(self, j: int, x: Fraction, arb: Any) -> list[Any]:
        """Enclosures of p(x, .) when j bins count as lying left of x."""
        from flint import fmpq

        p = [arb(0)] * self.m
        left, right = self.selection[j - 1], self.selection[self.m - j - 1]
        for l in range(j):
            for r in range(j, self.m):
                score = self.beta * (2 * x - self.bins[l] - self.bins[r])
                share = 1 / (1 + arb(fmpq(score.numerator, score.denominator)).exp())
                both = left[l] * right[self.m - 1 - r]
                weight = arb(fmpq(both.numerator, both.denominator))
                p[l] += weight * share
                p[r] += weight * (1 - share)
        return p
