"""Additive noise on the integers for many runs: the least loss of one run under (ε, δ) of T runs in all.

Symmetric noise of sensitivity 1 by its losses, constant from K on, so that the tails are geometric:

    l_k = ln f(k)/f(k+1) > 0,  k = 0..K           ln P/Q of the outcome k >= 0 is l_k, of -k <= -1 it is -l_{k-1}
    minimise  Σ f(k) c(|k|)   subject to   δ_T = E (1 - e^{ε - L_1 - ... - L_T})+  <=  δ,  L_i i.i.d. losses under P

which is not convex in f. δ_T and its gradient come from one FFT pair: with A the law of T - 1 losses,

    W(x) = T E_A (1 - e^{ε - x - A})+          dδ_T = Σ W(L(y)) df(y) + Σ f(y) W'(L(y)) dL(y)

Each loss is cut in two on the grid (same masses in both laws), so that δ_T is an upper bound up to floating point.
Started from l_k = c (k + a)^p, which holds the geometric (p = 0) and the discrete Gaussian (p = 1, a = 1/2) noise, and
improved by SLSQP in small regions of trust. For few runs sums of losses may best sit on kinks of δ_T, where gradients
do not lead: losses of ε/T, which T times make ε, then one between, then of 3ε/T, so that δ pays for the end alone. What
is returned is feasible, and no worse than its start.

These are floats: the guarantee of what is built from them is proven elsewhere, in integers.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import fft
from scipy.optimize import brentq, minimize

from workbench.solvers.arrays import Pair, Vector
from workbench.solvers.search import bisect

_TAIL = 45.0  # e^-45 of mass is left out of sums over a tail
_POINTS, _SEARCHED = 1 << 17, 1 << 15  # of the grid of losses; while noise is sought
_FAR = 12.0  # beyond ε, sums of losses are too rare to matter
_STEEPEST = 500.0  # the largest loss that is tried; e^709 is the largest float
_MOST = 160  # losses that SLSQP, whose steps are cubic in them, is asked to improve
_WIDER = 1.2  # how far a solution may be stretched to be feasible
_FINEST = 0.02  # region of trust; smaller ones gain less than a millionth
_FEW = 8  # runs up to which losses of ε/T before a steep end may be best
_SPARED = 2e-3  # the share of δ left unspent there, which costs next to nothing


def noise_masses(losses: ArrayLike) -> Pair:
    """(f(k), l_k) for k = 0..M, the tail written out until it is negligible. losses: l_0..l_K > 0. Shape (M + 1,)."""
    given = np.asarray(losses, dtype=float)
    every = np.concatenate([given, np.full(math.ceil(_TAIL / given[-1]), given[-1])])
    density = np.exp(-np.concatenate([[0.0], np.cumsum(every[:-1])]))
    return density / (2 * density.sum() - 1), every


def _derivative(weights: Vector, values: Vector, count: int) -> tuple[float, Vector]:
    """Σ w v and its gradient in l_0..l_K, through the masses alone. weights: w_0 = f(0), w_k = 2 f(k). Shape (K+1,)."""
    mean = float(weights @ values)
    beyond = np.cumsum((weights * (values - mean))[::-1])[::-1]
    return mean, _fold(-np.append(beyond[1:], 0.0), count)


def _fold(gradient: Vector, count: int) -> Vector:
    """The derivative in the last loss is that in all losses of the tail."""
    return np.append(gradient[: count - 1], gradient[count - 1 :].sum())


def expected_loss(losses: Vector, loss: Callable[[Vector], Vector]) -> tuple[float, Vector]:
    """Σ f(k) c(|k|) and its gradient. loss: of the distances 0..M, vectorised."""
    density, _ = noise_masses(losses)
    weights = np.concatenate([density[:1], 2 * density[1:]])
    return _derivative(weights, loss(np.arange(density.size, dtype=float)), losses.size)


@dataclass(frozen=True)
class ComposedDelta:
    """δ_T as a function of the losses. reach: sums of losses within ±reach are told apart; points: of the grid."""

    runs: int
    epsilon: float
    reach: float
    points: int = _POINTS

    @property
    def step(self) -> float:
        """h of the grid of losses: ε/T is a multiple, where losses of ε/T add up to ε and no more."""
        least, share = 2 * self.reach / self.points, self.epsilon / self.runs
        return share / math.floor(share / least) if share >= least else least

    @cached_property
    def _stick(self) -> NDArray[np.complex128]:
        """The transform of (1 - e^{ε-x})+ on the circle of the grid."""
        index = np.arange(-self.points // 2, self.points // 2)
        height = np.maximum(0.0, -np.expm1(np.minimum(0.0, self.epsilon - index * self.step)))
        return np.conj(fft.rfft(np.roll(height, -self.points // 2)))

    @cached_property
    def _twice(self) -> NDArray[np.complex128]:
        """The same, with the frequencies that a real transform leaves out."""
        twice = np.full(self._stick.size, 2.0)
        twice[[0, -1]] = 1.0
        product: NDArray[np.complex128] = self._stick * twice
        return product

    def __call__(self, losses: Vector) -> float:
        """δ_T."""
        return self._composed(losses)[0]

    def gradient(self, losses: Vector) -> tuple[float, Vector]:
        """δ_T and its gradient in l_0..l_K."""
        total, (density, every, at, share, slope), spectrum = self._composed(losses)
        worth = self.runs * fft.irfft(np.conj(self._stick * spectrum), self.points)
        low, high = worth[at], worth[(at + 1) % self.points]
        value, rise = (1 - share) * low + share * high, slope * (high - low)
        size = every.size
        weights = np.concatenate([density[:1], 2 * density[1:]])
        means = np.concatenate([value[:1], (value[1:size] + value[size:]) / 2])
        through = density * rise[:size]
        through[:-1] -= density[1:] * rise[size:]
        return total, _derivative(weights, means, losses.size)[1] + _fold(through, losses.size)

    def _composed(self, losses: Vector) -> tuple[float, tuple[Any, ...], NDArray[np.complex128]]:
        density, every = noise_masses(losses)
        loss = np.concatenate([every, -every[:-1]])  # of the outcomes 0..M and -1..-M
        total, (at, share, slope), before = self.compose_pair(
            loss, np.concatenate([density, density[1:]])
        )
        return total, (density, every, at, share, slope), before

    def compose_pair(
        self, loss: Vector, mass: Vector
    ) -> tuple[float, tuple[Any, ...], NDArray[np.complex128]]:
        """δ_T of any two laws, by their losses ln P/Q and the masses P, shapes (n,); where these are on the grid, and
        the transform of all but one."""
        cell = np.floor(loss / self.step)
        gap = loss - cell * self.step
        unit = -math.expm1(-self.step)
        share, slope = (
            np.clip(-np.expm1(-gap) / unit, 0.0, 1.0),
            np.exp(-gap) / unit,
        )  # of the mass that goes up
        at = cell.astype(np.int64) % self.points
        law = np.bincount(at, mass * (1 - share), self.points) + np.bincount(
            (at + 1) % self.points, mass * share, self.points
        )
        transform = fft.rfft(law)
        before = transform ** (self.runs - 1)
        total = float((self._twice * before * transform).real.sum()) / self.points
        return total, (at, share, slope), before


def find_largest_factor(
    composed: Callable[[float], float], allowed: float, start: float = 1.0, widest: float = math.inf
) -> float:
    """The largest factor up to `widest` with δ_T <= δ. composed: δ_T of a factor, with which it grows."""

    @cache  # the search asks for its ends again
    def excess(factor: float) -> float:
        return math.log(max(composed(factor), 1e-300)) - math.log(allowed)

    low = high = start
    while excess(high) < 0:
        if high == widest:
            return high
        low, high = high, min(widest, 1.3 * high)
    while excess(low) > 0:
        low, high = low / 1.3, low
    root = float(brentq(excess, low, high, xtol=1e-10 * high))
    return next(
        f
        for f in (root * (1 - k * 1e-10) for k in (0, 1, 10, 10**3, 10**6, 10**8))
        if excess(f) <= 0
    )


def log_slope(composed: Callable[[float], float], factor: float = 1.0) -> float:
    """d ln δ_T / d ln factor."""
    high, low = (max(composed(factor * (1 + step)), 1e-300) for step in (5e-4, -5e-4))
    return math.log(high / low) / 1e-3


def _feasible(delta: ComposedDelta, allowed: float, losses: Vector) -> Vector:
    """The largest multiple of some losses (the least noise of its shape) with δ_T <= δ."""
    # sums beyond a narrow reach are not told apart; nearly every noise has a δ_T below an allowed one near 1
    most = delta.reach / delta.runs if delta.reach < delta.epsilon + _FAR else _STEEPEST
    widest = max(1.0, most / float(losses.max()))
    return losses * find_largest_factor(
        lambda factor: delta(factor * losses), allowed, widest=widest
    )


def optimise_losses(
    runs: int,
    epsilon: float,
    delta: float,
    loss: Callable[[Vector], Vector],
    *,
    max_rounds: int = 10,
    should_stop: Callable[[], bool] = lambda: False,
) -> Vector:
    """The losses of the best noise found for T = runs >= 2, ε > 0, 0 < δ < 1. Shape (K + 1,).

    loss: of the distances 0..M, vectorised, not decreasing; rounds: regions of trust at most; stop: asked before each
    round, whether the best so far will do. The noise is feasible for
    `ComposedDelta` and costs no more than the best geometric and the best discrete Gaussian noise. Of wide noise, with
    more than 160 losses, it is the best of the starts.
    """
    composed = ComposedDelta(runs, epsilon, epsilon + _FAR, _SEARCHED)
    best = min(
        (_start(composed, delta, power, offset) for power, offset in _shapes(runs)),
        key=lambda losses: expected_loss(losses, loss)[0],
    )
    value, trust = expected_loss(best, loss)[0], 0.3
    for _ in range(max_rounds if best.size <= _MOST else 0):
        if should_stop():
            break
        # all sums there are, where they are few: the finest grid
        reach = min(epsilon + _FAR, (1 + trust) * _WIDER * runs * float(best.max()))
        composed = ComposedDelta(runs, epsilon, reach, _SEARCHED)
        tried = _feasible(composed, delta, _improve(composed, delta, loss, best, trust))
        reached = expected_loss(tried, loss)[0]
        gain = 1 - reached / value
        if gain > 0:
            best, value = tried, reached
        if gain < 1e-5:
            trust /= 4
        if trust < _FINEST:
            break
    finest = ComposedDelta(runs, epsilon, min(epsilon + _FAR, _WIDER * runs * float(best.max())))
    best = _feasible(finest, delta, best)
    value = expected_loss(best, loss)[0]
    if runs <= _FEW and not should_stop():
        locked = _steep_end(runs, epsilon, delta * (1 - _SPARED))
        return locked if expected_loss(locked, loss)[0] < value else best
    return best


def _steep_end(runs: int, epsilon: float, allowed: float) -> Vector:
    """Losses of ε/T as long as δ_T asks for, then one between, and of 3ε/T from there on."""
    share = epsilon / runs
    composed = ComposedDelta(runs, epsilon, min(epsilon + _FAR, 3 * _WIDER * epsilon))

    def losses(end: float) -> Vector:
        at = np.arange(math.ceil(end) + 2.0) - end
        return np.asarray(share * np.clip(1 + 2 * at, 1.0, 3.0), dtype=float)

    longest = math.log(10 * runs / allowed) / share + 8.0
    return losses(
        bisect(lambda end: composed(losses(end)) <= allowed, 0.0, longest, tolerance=1e-7)[1]
    )


def _shapes(runs: int) -> list[tuple[float, float]]:
    """(p, a) of the starts: nearly geometric for few runs, nearly Gaussian for many."""
    few = [(0.0, 1.0), (0.01, 3.0), (0.02, 3.0), (0.03, 10.0), (0.1, 1.0), (0.2, 0.5)]
    return (
        [*few, (0.4, 0.5), (0.6, 0.5), (0.8, 0.5), (0.9, 0.5), (1.0, 0.5)]
        if runs < 64
        else [(0.8, 0.5), (1.0, 0.5)]
    )


def _start(composed: ComposedDelta, allowed: float, power: float, offset: float) -> Vector:
    """c (k + a)^p, feasible, with as many losses as leave less than δ/100 of mass in the tail."""
    size = 64
    while True:
        shape = (np.arange(size) + offset) ** power
        losses = _feasible(
            composed, allowed, shape * composed.epsilon / (composed.runs * shape[size // 4])
        )
        density = noise_masses(losses)[0]
        heavy = int((density * np.arange(density.size) > allowed / (100 * composed.runs)).sum()) + 2
        if heavy <= size:
            return (
                losses[: max(heavy, 8)]
                if not power
                else _feasible(composed, allowed, losses[: max(heavy, 8)])
            )
        size = 2 * size


def _improve(
    composed: ComposedDelta,
    allowed: float,
    loss: Callable[[Vector], Vector],
    losses: Vector,
    trust: float,
) -> Vector:
    """SLSQP on ln loss under ln δ_T <= ln δ, each loss within a factor 1 ± trust; variables scaled by f^(1/4)."""
    scale = np.maximum(noise_masses(losses)[0][: losses.size], 1e-12) ** -0.25

    def objective(point: Vector) -> tuple[float, Vector]:
        value, gradient = expected_loss(point * scale, loss)
        return math.log(value), gradient * scale / value

    def slack(point: Vector) -> float:
        return math.log(allowed) - math.log(max(composed(point * scale), 1e-300))

    def slack_gradient(point: Vector) -> Vector:
        value, gradient = composed.gradient(point * scale)
        return -gradient * scale / max(value, 1e-300)

    from threadpoolctl import threadpool_limits  # slow to import

    start = losses / scale
    with threadpool_limits(1, "blas"):  # of matrices so small that threads wait for each other
        optimum = minimize(
            objective,
            start,
            jac=True,
            method="SLSQP",
            constraints=[{"type": "ineq", "fun": slack, "jac": slack_gradient}],
            bounds=[((1 - trust) * x, (1 + trust) * x) for x in start],
            options={"maxiter": 80, "ftol": 1e-10},
        )
    return optimum.x * scale
