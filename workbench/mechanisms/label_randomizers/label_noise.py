"""Adding real noise to a label in [low, high]: Laplace, staircase and the exponential mechanism, with exact losses.

With D = high - low (the sensitivity), u = y - low, v = high - y, b = D/ε and S(x) = Pr[noise > x] for x >= 0:

    Laplace (Def. 23)        S(x) = e^{-x/b} / 2
    staircase (Def. 25)      density a on [0, γD), a e^{-ε} on [γD, D), then e^{-ε} times the last period;
                             a = (1 - e^{-ε}) / (2 D (γ + e^{-ε} (1 - γ)))
    exponential (App. F)     Lap(2D/ε) conditioned on the output being in [low, high] (rejection); ε-DP because the
                             normaliser changes by at most e^{ε/2} too

Clipping the output to [low, high] is post-processing, and the loss of a label is then a sum of two tail integrals,

    E (o-y)² = h2(u) + h2(v),  h2(t) = ∫_0^t 2x S(x) dx          E |o-y| = h1(u) + h1(v),  h1(t) = ∫_0^t S(x) dx

For Laplace: MSE(y) = 2b² - e^{-u/b} b(b+u) - e^{-v/b} b(b+v). As u, v <= D, only the first stairs count when clipping.
γ is the minimiser of the unclipped loss in question, a closed form of Geng and Viswanath:

    absolute  γ = 1 / (1 + e^{ε/2}),  E|x| = D e^{ε/2} / (e^ε - 1)
    squared   γ = -c/(1-c) + (c - 2c² + 2c⁴ - c⁵)^{1/3} / (2^{1/3} (1-c)²),  c = e^{-ε}

These mechanisms are continuous: their guarantee is that of real arithmetic, floats are not audited. Clamped
`AdditiveIntegerNoise` has the integer versions, whose laws are exact.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import gammainc

from workbench.errors import InvalidRequest, must
from workbench.exact.arrays import Vector
from workbench.exact.numbers import Real, read_positive
from workbench.mechanisms.real_noise import best_gamma
from workbench.questions.labels import Labels

_NODE = 1 / math.sqrt(3)
NOISE_KINDS = ("laplace", "staircase", "exponential")


@dataclass(frozen=True, init=False)
class LabelNoise:
    """Continuous noise on labels in [low, high].

    kind: one of NOISES; clip: whether outputs are clipped to [low, high] ("exponential" is inside anyway);
    gamma: of the staircase, None elsewhere. Raises InvalidRequest.
    """

    not_exact = (
        "Continuous label noise is private in real arithmetic only, which floats are not; "
        "AdditiveIntegerNoise, clamped to the labels, has the integer versions."
    )

    kind: str
    low: float
    high: float
    epsilon: float
    clip: bool
    gamma: float | None

    def __init__(
        self,
        kind: str,
        low: float,
        high: float,
        epsilon: Real,
        *,
        clip: bool = True,
        loss: str = "squared",
        gamma: float | None = None,
    ) -> None:
        InvalidRequest.check_choice(NOISE_KINDS, "kind", kind)
        if not -math.inf < low < high < math.inf:
            must("low, high", "finite numbers with low < high", f"{low}, {high}")
        _check_loss(loss)
        budget = float(read_positive(epsilon, "epsilon"))
        if kind == "staircase":
            gamma = best_gamma(budget, loss) if gamma is None else gamma
            if not 0 < gamma < 1:
                must("gamma", "a number in (0, 1)", gamma)
        elif gamma is not None:
            raise InvalidRequest(f"gamma must be left out for the {kind} mechanism. Got {gamma}.")
        self.__dict__.update(
            kind=kind, low=float(low), high=float(high), epsilon=budget, clip=clip, gamma=gamma
        )

    @property
    def width(self) -> float:
        """D = high - low."""
        return self.high - self.low

    @property
    def scale(self) -> float:
        """b: D/ε, or 2D/ε for the exponential mechanism."""
        return self.width / self.epsilon * (2 if self.kind == "exponential" else 1)

    @property
    def _stairs(self) -> tuple[float, float, float]:
        """(a, c, γD): the densities of the two stairs are a and a c."""
        c = math.exp(-self.epsilon)
        gamma = float(self.gamma or 0)
        return (
            -math.expm1(-self.epsilon) / (2 * self.width * (gamma + c * (1 - gamma))),
            c,
            gamma * self.width,
        )

    def tail(self, x: ArrayLike) -> Vector:
        """S(x) = Pr[noise > x] for x >= 0 (of the unconditioned noise). Shape of x."""
        at = np.asarray(x, dtype=float)
        if self.kind != "staircase":
            return np.exp(-at / self.scale) / 2
        a, c, step = self._stairs
        period, rest = np.divmod(at, self.width)
        low = c * (
            0.5 + a * (self.width - np.maximum(rest, step))
        )  # of the lower stair, and what comes after it
        return c**period * (low + a * np.maximum(step - rest, 0))

    def cdf(self, label: float, x: ArrayLike) -> Vector:
        """Pr[output <= x] for one label. Shape of x."""
        at = np.asarray(x, dtype=float) - label
        below = np.where(at >= 0, 1 - self.tail(np.maximum(at, 0)), self.tail(np.maximum(-at, 0)))
        if self.kind == "exponential":
            first = self.tail(label - self.low)
            last = 1 - self.tail(self.high - label)
            below = (below - first) / (last - first)
        if self.clip or self.kind == "exponential":
            below = np.where(
                at + label < self.low, 0.0, np.where(at + label >= self.high, 1.0, below)
            )
        return below

    def losses(self, labels: ArrayLike, loss: str = "squared") -> Vector:
        """E ℓ(o, y) for each label, exactly (closed form). loss: "squared" or "absolute". Raises InvalidRequest."""
        _check_loss(loss)
        y = np.asarray(labels, dtype=float)
        if (outside := y[(y < self.low) | (y > self.high)]).size:
            must("labels", f"in [{self.low:g}, {self.high:g}]", outside[0])
        power = 2 if loss == "squared" else 1
        u = y - self.low
        v = self.high - y
        b = self.scale
        if self.kind == "exponential":
            mass = -np.expm1(-u / b) - np.expm1(-v / b)
            return np.asarray(
                (gammainc(power + 1, u / b) + gammainc(power + 1, v / b)) * power * b**power / mass
            )
        if not self.clip:
            return np.full(y.shape, 2 * self._whole(power))
        return self._integral(u, power) + self._integral(v, power)

    def loss(self, labels: Labels, loss: str = "squared") -> float:
        """E ℓ(o, y) under the labels' prior."""
        return float(labels.prior @ self.losses(labels.values, loss))

    def _integral(self, t: Vector, power: int) -> Vector:
        """h2(t) or h1(t), 0 <= t <= D."""
        if self.kind == "laplace":
            # h1 = b/2 (1 - e^{-t/b}), h2 = b² (1 - (1 + t/b) e^{-t/b})
            return np.asarray(power / 2 * self.scale**power * gammainc(power, t / self.scale))
        step = self._stairs[2]
        integral = np.zeros(t.shape)
        for low, high in (
            (0.0, step),
            (step, self.width),
        ):  # S is affine: two Gauss-Legendre nodes are exact
            half = (np.clip(t, low, high) - low) / 2
            for x in (low + half * (1 - _NODE), low + half * (1 + _NODE)):
                integral += half * power * x ** (power - 1) * self.tail(x)
        return integral

    def _whole(self, power: int) -> float:
        """The same for t = ∞: half of E|x|^power. Of the staircase, S(x + D) = e^{-ε} S(x)."""
        if self.kind == "laplace":
            return power / 2 * self.scale**power
        first, second = (float(self._integral(np.array(self.width), k)) for k in (1, 2))
        c = math.exp(-self.epsilon)
        fall = -math.expm1(-self.epsilon)
        if power == 1:
            return first / fall
        return second / fall + 2 * self.width * first * c / fall**2

    def insecure_sample(self, values: ArrayLike, rng: np.random.Generator) -> Vector:
        """A noisy copy of labels from a floating-point generator: for experiments, it protects nothing.

        `AdditiveIntegerNoise`, clamped, publishes labels exactly.
        """
        y = np.asarray(values, dtype=float)
        if self.kind == "exponential":
            published = np.full(y.shape, np.nan)
            open_ = np.arange(y.size)
            while open_.size:
                published[open_] = y[open_] + rng.laplace(scale=self.scale, size=open_.size)
                open_ = open_[(published[open_] < self.low) | (published[open_] > self.high)]
            return published
        noisy = y + self._noise(y.size, rng)
        if self.clip:
            return np.clip(noisy, self.low, self.high)
        return noisy

    def _noise(self, count: int, rng: np.random.Generator) -> Vector:
        if self.kind == "laplace":
            return rng.laplace(scale=self.scale, size=count)
        # Geng and Viswanath, Algorithm 1: a sign, a period, which of its two stairs, where on it
        c = math.exp(-self.epsilon)
        gamma = float(self.gamma or 0)
        sign = rng.integers(0, 2, count) * 2 - 1
        period = rng.geometric(-math.expm1(-self.epsilon), count) - 1
        high = rng.random(count) * (gamma + (1 - gamma) * c) < gamma
        place = rng.random(count)
        return np.asarray(
            sign
            * self.width
            * (period + np.where(high, gamma * place, gamma + (1 - gamma) * place)),
            float,
        )


def _check_loss(loss: str) -> None:
    if loss not in ("squared", "absolute"):
        must("loss", "squared or absolute for continuous noise", repr(loss))
