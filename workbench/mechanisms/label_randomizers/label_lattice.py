"""Adding integer noise to an integer label in low..high: discrete Laplace, discrete staircase, exponential; exact laws.

With D = high - low (the sensitivity) and c a rational just above e^{-ε} (so that the exact audit passes):

    laplace (Def. 22)      p(i) = (1-α)/(1+α) α^|i|,  α just above e^{-ε/D}
    staircase (Def. 24)    p(i) = a for |i| < r, a c for r <= |i| < D, times c every further D;
                           a = (1-c) / (2r + 2c(D-r) - (1-c)),  r in 1..D the best for the unclipped loss in question
    exponential (App. F)   Pr[o|y] ∝ β^|o-y| on low..high,  β just above e^{-ε/2D}

Clipping moves the mass beyond an end onto that end; the clipped law is finite and held exactly, row by row. The rows
of `laplace` and `exponential` have numbers of 64 D bits, so a whole channel is for label sets of at most 200.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from workbench.errors import InvalidRequest
from workbench.exact.distribution import Distribution
from workbench.exact.numbers import Real, exp_bounds, positive
from workbench.exact.plain import plain_numbers
from workbench.io.files import ratio, spelled
from workbench.io.records import refuse, take
from workbench.mechanisms.channel import Channel
from workbench.mechanisms.label_randomizers.label_mechanism import LabelMechanism, LossFunction
from workbench.mechanisms.label_randomizers.labels import Labels

__all__ = ["LATTICE_KINDS", "LatticeNoise", "best_stairs"]

Vector = NDArray[np.float64]

LATTICE_KINDS = ("laplace", "staircase", "exponential")
_BITS = 64
_MAX_ROWS = 200
_POWER = {"squared": 2, "absolute": 1}


@dataclass(frozen=True, init=False)
class LatticeNoise(LabelMechanism):
    """Integer noise on the labels low..high.

    kind: one of LATTICE_KINDS; ratio: the rational c, α or β; stairs: r of the staircase,
    None elsewhere. Raises InvalidRequest.
    """

    kind: str
    low: int
    high: int
    epsilon: Fraction
    ratio: Fraction
    stairs: int | None

    def __init__(
        self,
        kind: str,
        low: int,
        high: int,
        epsilon: Real,
        *,
        loss: str = "squared",
        stairs: int | None = None,
    ) -> None:
        if kind not in LATTICE_KINDS:
            InvalidRequest.must("kind", f"one of {', '.join(LATTICE_KINDS)}", repr(kind))
        whole = all(isinstance(end, (int, np.integer)) and not isinstance(end, bool) for end in (low, high))
        if not whole or not low < high:
            InvalidRequest.must("low, high", "integers with low < high", f"{low}, {high}")
        if loss not in _POWER:
            InvalidRequest.must("loss", "squared or absolute for integer noise", repr(loss))
        width, budget = int(high - low), positive(epsilon, "epsilon")
        step = {"laplace": budget / width, "staircase": budget, "exponential": budget / (2 * width)}[kind]
        ratio = Fraction(exp_bounds(-step, _BITS)[1], 1 << _BITS)
        if not 0 < ratio < 1:
            InvalidRequest.must("epsilon", "such that e^-epsilon is told from 0 and 1 in 64 bits", epsilon)
        if kind != "staircase" and stairs is not None:
            raise InvalidRequest(f"stairs must be left out for the {kind} mechanism. Got {stairs}.")
        if kind == "staircase":
            if width < 2:
                InvalidRequest.must("high - low", "at least 2 for the staircase", width)
            stairs = best_stairs(width, float(budget), loss) if stairs is None else stairs
            if not 1 <= stairs <= width:
                InvalidRequest.must("stairs", f"an integer in 1..{width}", stairs)
        for name, value in (
            ("kind", kind),
            ("low", int(low)),
            ("high", int(high)),
            ("epsilon", budget),
            ("ratio", ratio),
            ("stairs", stairs),
        ):
            object.__setattr__(self, name, value)

    @property
    def label_values(self) -> Vector:
        """The labels low..high."""
        return np.arange(self.low, self.high + 1, dtype=float)

    @cached_property
    def outputs(self) -> NDArray[np.int64]:
        """low..high. Shape (D+1,)."""
        return np.arange(self.low, self.high + 1)

    def row(self, position: int) -> Distribution:
        """The exact law of the output for the label at a position."""
        return self.law(self.low + position)

    @property
    def audit_rows(self) -> Channel:
        """The rows of all labels."""
        return self.channel

    def to_dict(self) -> dict[str, Any]:
        """JSON-ready, read back by `from_dict`."""
        return {
            "kind": "label-noise",
            "noise": self.kind,
            "low": self.low,
            "high": self.high,
            "epsilon": spelled(self.epsilon),
            "stairs": self.stairs,
        }

    @classmethod
    def from_dict(cls, data: Any) -> LatticeNoise:
        """The mechanism written by `to_dict`, which claims no privacy: audit it. Raises CorruptFile, InvalidRequest."""
        names = {"kind", "noise", "low", "high", "epsilon", "stairs"}
        entries = take(data, "The label noise", names)
        if type(entries["stairs"]) not in (int, type(None)):
            refuse("stairs", "an integer or null")
        epsilon = ratio(entries["epsilon"], "epsilon")
        return cls(entries["noise"], entries["low"], entries["high"], epsilon, stairs=entries["stairs"])

    @property
    def width(self) -> int:
        """D = high - low."""
        return self.high - self.low

    def law(self, x: Any) -> Distribution:
        """The exact law of the output low..high for one label. Raises InvalidRequest."""
        label = self.low + self.position(x)
        u, v = label - self.low, self.high - label
        if self.kind == "staircase":
            stairs = [self._stair(i) for i in range(-u, v + 1)]
            stairs[0], stairs[-1] = self._stairs_from(u), self._stairs_from(v)
            return Distribution(stairs)
        top, bottom = self.ratio.numerator, self.ratio.denominator
        reach = max(u, v)
        terms = [top**i * bottom ** (reach - i) for i in range(reach + 1)]  # α^i in units of one^-reach
        weights = [terms[abs(i)] for i in range(-u, v + 1)]
        if self.kind == "laplace":  # Σ_{i >= t} α^i = α^t / (1-α): everything times one - top
            weights = [weight * (bottom - top) for weight in weights]
            weights[0], weights[-1] = terms[u] * bottom, terms[v] * bottom
        return Distribution(weights)

    def _stair(self, i: int) -> Fraction:
        """p(i) in units of a, |i| < D."""
        return Fraction(1) if abs(i) < int(self.stairs or 1) else self.ratio

    def _stairs_from(self, t: int) -> Fraction:
        """Σ_{i >= t} p(i) in units of a, 0 <= t <= D."""
        r, c = int(self.stairs or 1), self.ratio
        whole = r + c * (self.width - r)  # one period
        before = min(t, r) + c * max(t - r, 0)
        return whole / (1 - c) - before

    @cached_property
    def channel(self) -> Channel:
        """The exact channel, at most 200 labels. Shape (D+1, D+1). Raises InvalidRequest."""
        if self.width >= _MAX_ROWS:
            InvalidRequest.must("high - low", f"below {_MAX_ROWS} for a whole exact channel", self.width)
        return Channel(tuple(self.law(label) for label in range(self.low, self.high + 1)))

    def tail(self, t: ArrayLike) -> Vector:
        """Pr[noise >= t] for integers t >= 0, unconditioned, in floats. Shape of t."""
        at, c = np.asarray(t, dtype=float), float(self.ratio)
        if self.kind != "staircase":
            return np.asarray(np.where(at == 0, 1.0, c**at) / (1 + c))
        r, width = int(self.stairs or 1), self.width
        a = (1 - c) / (2 * r + 2 * c * (width - r) - (1 - c))
        period, rest = np.divmod(at, width)
        left = np.maximum(r - rest, 0) + c * (width - np.maximum(rest, r))  # of this period, from rest on
        whole = r + c * (width - r)
        return np.asarray(a * c**period * (left + c / (1 - c) * whole))

    @property
    def matrix(self) -> Vector:
        """Pr[o|y] in floats. Shape (D+1, D+1)."""
        gap = np.arange(self.width + 1)[None, :] - np.arange(self.width + 1)[:, None]
        if self.kind == "exponential":
            weights = float(self.ratio) ** np.abs(gap)
            return np.asarray(weights / weights.sum(axis=1, keepdims=True))
        above = np.where(gap > 0, self.tail(np.maximum(gap, 0)), 1 - self.tail(np.maximum(1 - gap, 0)))
        above[:, 0] = 1.0  # Pr[output >= o]
        return np.asarray(above - np.append(above[:, 1:], np.zeros((self.width + 1, 1)), axis=1))

    def under(self, labels: Labels, loss: LossFunction) -> float:
        """E ℓ(o, y) under the prior of integer labels in low..high. Raises InvalidRequest."""
        return float(labels.prior @ self.losses(loss)[self.positions(labels.values)])

    def positions(self, values: ArrayLike) -> NDArray[np.intp]:
        """Where integer labels stand among low..high. Raises InvalidRequest."""
        y = plain_numbers(values, "labels").reshape(-1)
        if not np.isfinite(y).all() or (y != np.floor(y)).any() or ((y < self.low) | (y > self.high)).any():
            InvalidRequest.must("labels", f"integers in {self.low}..{self.high}", values)
        return y.astype(np.intp) - self.low


def best_stairs(width: int, epsilon: float, loss: str) -> int:
    """The r in 1..width that minimises the unclipped loss "squared" or "absolute" of the discrete staircase."""
    return int(np.argmin(_stair_moments(width, math.exp(-epsilon), _POWER[loss]))) + 1


def _stair_moments(width: int, c: float, power: int) -> Vector:
    """E|x|^power for r = 1..width: 2 a Σ_j c^j Σ_{0 <= i < D} (i + jD)^power (1 if i < r else c). Shape (width,)."""
    r = np.arange(1, width + 1)
    i = np.arange(width, dtype=float)
    s0, s1, s2 = 1 / (1 - c), c / (1 - c) ** 2, c * (1 + c) / (1 - c) ** 3  # Σ c^j, Σ j c^j, Σ j² c^j
    by_place = i * s0 + width * s1 if power == 1 else i * i * s0 + 2 * i * width * s1 + width**2 * s2
    reach = np.cumsum(by_place)
    a = (1 - c) / (2 * r + 2 * c * (width - r) - (1 - c))
    return np.asarray(2 * a * (reach + c * (reach[-1] - reach)))
