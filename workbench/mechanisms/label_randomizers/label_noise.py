"""Compute the expected losses of real noise on labels: Laplace, staircase, exponential mechanism.

Definitions and appendices are those of Ghazi et al., Regression with Label Differential Privacy;
the staircase is from Geng and Viswanath 2014. A label y in [low, high] is published as o = y +
noise. With D = high - low (the sensitivity), u = y - low, v = high - y, b = D/ε and S(x) = Pr[noise
> x] for x >= 0:

    Laplace (Def. 23)        S(x) = e^{-x/b} / 2
    staircase (Def. 25)      density a on [0, γD), a e^{-ε} on [γD, D), then e^{-ε} times the
                             last period;
                             a = (1 - e^{-ε}) / (2 D (γ + e^{-ε} (1 - γ)))
    exponential (App. F)     Lap(2D/ε) conditioned on the output being in [low, high] (rejection);
                             ε-DP because the normaliser changes by at most e^{ε/2} too

Clipping the output to [low, high] is post-processing, and the loss of a label is then a sum of two
tail integrals,

    E (o-y)² = h2(u) + h2(v),  h2(t) = ∫_0^t 2x S(x) dx
    E |o-y|  = h1(u) + h1(v),  h1(t) = ∫_0^t S(x) dx

For Laplace: MSE(y) = 2b² - e^{-u/b} b(b+u) - e^{-v/b} b(b+v). As u, v <= D, only the first stairs
count when clipping. γ is the minimiser of the unclipped loss in question, a closed form of Geng and
Viswanath:

    absolute  γ = 1 / (1 + e^{ε/2}),  E|x| = D e^{ε/2} / (e^ε - 1)
    squared   γ = -c/(1-c) + (c - 2c² + 2c⁴ - c⁵)^{1/3} / (2^{1/3} (1-c)²),  c = e^{-ε}

These mechanisms are continuous: their guarantee is that of real arithmetic, floats are not audited.
Clamped `AdditiveIntegerNoise` has the integer versions, whose laws are exact.
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

_NODE = 1 / math.sqrt(3)  # The Gauss-Legendre nodes of order 2 on [-1, 1] are ±_NODE.
NOISE_KINDS = ("laplace", "staircase", "exponential")


@dataclass(frozen=True, init=False)
class LabelNoise:
    """Continuous noise on labels in [low, high], with its expected losses.

    Args:
        kind: The kind of noise, one of NOISE_KINDS.
        low: The smallest label.
        high: The largest label.
        epsilon: The budget ε > 0.
        clip: Whether outputs are clipped to [low, high] ("exponential" is inside anyway).
        loss: The loss for which γ of the staircase is optimal, "squared" or "absolute".
        gamma: γ of the staircase, None elsewhere. Default: the optimal one.

    Raises:
        InvalidRequest: If kind or loss is unknown, if the labels or epsilon are outside their
            range, or if gamma is outside (0, 1) or given for another kind than the staircase.
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
            if gamma is None:
                gamma = best_gamma(budget, loss)
            if not 0 < gamma < 1:
                must("gamma", "a number in (0, 1)", gamma)
        elif gamma is not None:
            raise InvalidRequest(f"gamma must be left out for the {kind} mechanism. Got {gamma}.")
        # The class is frozen, so its attributes are set in `__dict__`.
        self.__dict__.update(
            kind=kind, low=float(low), high=float(high), epsilon=budget, clip=clip, gamma=gamma
        )

    @property
    def width(self) -> float:
        """Return D = high - low."""
        return self.high - self.low

    @property
    def scale(self) -> float:
        """Return b: D/ε, or 2D/ε for the exponential mechanism."""
        scale = self.width / self.epsilon
        if self.kind == "exponential":
            return 2 * scale
        return scale

    @property
    def _stairs(self) -> tuple[float, float, float]:
        """Return (a, c, γD): the densities of the two stairs are a and a c."""
        c = math.exp(-self.epsilon)
        gamma = float(self.gamma or 0)
        return (
            -math.expm1(-self.epsilon) / (2 * self.width * (gamma + c * (1 - gamma))),
            c,
            gamma * self.width,
        )

    def tail(self, x: ArrayLike) -> Vector:
        """Compute S(x) = Pr[noise > x] of the noise before clipping or conditioning.

        Args:
            x: Numbers >= 0, any shape.

        Returns:
            The probabilities, in the shape of x.
        """
        distance = np.asarray(x, dtype=float)
        if self.kind != "staircase":
            return np.exp(-distance / self.scale) / 2
        a, c, step = self._stairs
        period, remainder = np.divmod(distance, self.width)
        lower_stair_mass = c * (0.5 + a * (self.width - np.maximum(remainder, step)))
        return c**period * (lower_stair_mass + a * np.maximum(step - remainder, 0))

    def cdf(self, label: float, x: ArrayLike) -> Vector:
        """Compute Pr[output <= x] for one label. Shape of x.

        Args:
            label: A number in [low, high].
            x: Real numbers, any shape.
        """
        distance = np.asarray(x, dtype=float) - label
        probability = np.where(
            distance >= 0,
            1 - self.tail(np.maximum(distance, 0)),
            self.tail(np.maximum(-distance, 0)),
        )
        if self.kind == "exponential":
            low_tail = self.tail(label - self.low)
            high_mass = 1 - self.tail(self.high - label)
            probability = (probability - low_tail) / (high_mass - low_tail)
        if self.clip or self.kind == "exponential":
            probability = np.where(
                distance + label < self.low,
                0.0,
                np.where(distance + label >= self.high, 1.0, probability),
            )
        return probability

    def losses(self, labels: ArrayLike, loss: str = "squared") -> Vector:
        """Compute E ℓ(o, y) for each label in closed form. Shape (n,).

        Args:
            labels: Labels y in [low, high], shape (n,).
            loss: The loss, "squared" or "absolute".

        Raises:
            InvalidRequest: If loss is neither squared nor absolute, or a label is outside [low,
                high].
        """
        _check_loss(loss)
        y = np.asarray(labels, dtype=float)
        outside_labels = y[(y < self.low) | (y > self.high)]
        if outside_labels.size:
            must("labels", f"in [{self.low:g}, {self.high:g}]", outside_labels[0])
        power = 2 if loss == "squared" else 1
        u = y - self.low
        v = self.high - y
        b = self.scale
        if self.kind == "exponential":
            # Twice the probability that Laplace noise leaves the output in [low, high].
            mass = -np.expm1(-u / b) - np.expm1(-v / b)
            # ∫_0^t x^p e^(-x/b) dx / b is p! b^p gammainc(p + 1, t/b), and p! = p for p = 1, 2.
            return np.asarray(
                (gammainc(power + 1, u / b) + gammainc(power + 1, v / b)) * power * b**power / mass
            )
        if not self.clip:
            return np.full(y.shape, 2 * self._integral_to_infinity(power))
        return self._integral(u, power) + self._integral(v, power)

    def loss(self, labels: Labels, loss: str = "squared") -> float:
        """Compute E ℓ(o, y) under the labels' prior.

        Args:
            labels: The labels with their prior.
            loss: The loss, "squared" or "absolute".

        Raises:
            InvalidRequest: If loss is neither squared nor absolute, or a label is outside [low,
                high].
        """
        return float(labels.prior @ self.losses(labels.values, loss))

    def _integral(self, t: Vector, power: int) -> Vector:
        """Compute h2(t) (power 2) or h1(t) (power 1) for 0 <= t <= D, in the shape of t."""
        if self.kind == "laplace":
            # The integrals are h1 = b/2 (1 - e^{-t/b}) and h2 = b² (1 - (1 + t/b) e^{-t/b}).
            return np.asarray(power / 2 * self.scale**power * gammainc(power, t / self.scale))
        _, _, step = self._stairs
        integral = np.zeros(t.shape)
        # S is affine on each stair, so two Gauss-Legendre nodes are exact.
        for low, high in ((0.0, step), (step, self.width)):
            half_width = (np.clip(t, low, high) - low) / 2
            for x in (low + half_width * (1 - _NODE), low + half_width * (1 + _NODE)):
                integral += half_width * power * x ** (power - 1) * self.tail(x)
        return integral

    def _integral_to_infinity(self, power: int) -> float:
        """Compute the integral for t = ∞, which is half of E|noise|^power.

        For the staircase it is a geometric series over periods, because S(x + D) = e^{-ε} S(x).
        """
        if self.kind == "laplace":
            return power / 2 * self.scale**power
        first, second = (float(self._integral(np.array(self.width), k)) for k in (1, 2))
        c = math.exp(-self.epsilon)
        fall = -math.expm1(-self.epsilon)
        if power == 1:
            return first / fall
        return second / fall + 2 * self.width * first * c / fall**2

    def insecure_sample(self, values: ArrayLike, rng: np.random.Generator) -> Vector:
        """Draw a noisy copy of labels in floating point, for experiments only. Shape of values.

        Rounded noise has no proven privacy. Use a clamped `AdditiveIntegerNoise` to publish labels.

        Args:
            values: The labels, any shape.
            rng: A NumPy generator.
        """
        y = np.asarray(values, dtype=float)
        if self.kind == "exponential":
            outputs = np.full(y.shape, np.nan)
            open_positions = np.arange(y.size)
            while open_positions.size:
                noise = rng.laplace(scale=self.scale, size=open_positions.size)
                proposals = y[open_positions] + noise
                outputs[open_positions] = proposals
                is_rejected = (proposals < self.low) | (proposals > self.high)
                open_positions = open_positions[is_rejected]
            return outputs
        noisy_labels = y + self._noise(y.size, rng)
        if self.clip:
            return np.clip(noisy_labels, self.low, self.high)
        return noisy_labels

    def _noise(self, count: int, rng: np.random.Generator) -> Vector:
        """Draw noise values in floating point, shape (count,)."""
        if self.kind == "laplace":
            return rng.laplace(scale=self.scale, size=count)
        # Algorithm 1 of Geng and Viswanath draws a sign, a period, a stair and a place on the
        # stair.
        c = math.exp(-self.epsilon)
        gamma = float(self.gamma or 0)
        sign = rng.integers(0, 2, count) * 2 - 1
        period = rng.geometric(-math.expm1(-self.epsilon), count) - 1
        is_on_first_stair = rng.random(count) * (gamma + (1 - gamma) * c) < gamma
        place = rng.random(count)
        share = np.where(is_on_first_stair, gamma * place, gamma + (1 - gamma) * place)
        return np.asarray(sign * self.width * (period + share), float)


def _check_loss(loss: str) -> None:
    """Raise InvalidRequest unless the loss is squared or absolute."""
    if loss not in ("squared", "absolute"):
        must("loss", "squared or absolute for continuous noise", repr(loss))
