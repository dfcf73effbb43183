"""The parameter of a baseline that meets a given error: how Figs 5-8 put mechanisms on equal footing.

    error rate or MSE of the family at parameter x, answers uniform on 0..n  =  the target      (Brent's method on x)

Each error grows with the parameter, from none at all to a limit no parameter reaches; a target beyond is refused.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from workbench.errors import InvalidRequest
from workbench.exact.numbers import Real, positive
from workbench.mechanisms.baselines.count_queries import clamped_gaussian, clamped_geometric, exponential_mechanism
from workbench.mechanisms.channel import Channel

__all__ = ["FAMILIES", "Family", "fit", "fitted"]

Table: TypeAlias = NDArray[np.float64]


def _clamped(n: int, tails: Table) -> Table:
    """Pr[k|q] of clamped symmetric noise from Pr[η >= m], m = 1..n+1, no small one as a difference from 1. Shape
    (n+1, n+1)."""
    law = np.concatenate([[1 - 2 * tails[0]], tails[:-1] - tails[1:]])  # of |η| = 0..n, one sign
    answers = np.arange(n + 1)
    table = law[np.abs(answers[None, :] - answers[:, None])]
    table[0, 0] = table[n, n] = 1 - tails[0]
    table[1:, 0], table[:-1, n] = tails[:-1], tails[n - 1 :: -1]
    return np.asarray(table)


def _geometric(n: int, alpha: float) -> Table:
    return _clamped(n, np.power(alpha, np.arange(1.0, n + 2)) / (1 + alpha))


def _gaussian(n: int, log_variance: float) -> Table:
    variance = math.exp(log_variance)
    terms = np.exp(-(np.arange(n + 2 + int(40 * math.sqrt(variance))) ** 2.0) / (2 * variance))
    tails = np.cumsum(terms[::-1])[::-1]
    return _clamped(n, tails[1 : n + 2] / (2 * tails[1] + 1))


def _exponential(n: int, scale: float) -> Table:
    answers = np.arange(n + 1)
    weights = np.exp(-np.abs(answers[None, :] - answers[:, None]) / scale)
    return np.asarray(weights / weights.sum(axis=1, keepdims=True))


class Family(NamedTuple):
    """A one-parameter baseline. table: Pr[k|q] in floats at a coordinate in span; parameter: that coordinate's
    parameter; build: (n, parameter) -> the exact channel.
    """

    table: Callable[[int, float], Table]
    span: tuple[float, float]
    parameter: Callable[[float], float]
    build: Callable[[int, float], Channel]


FAMILIES = {
    "geometric": Family(_geometric, (0.0, 1 - 1e-6), float, clamped_geometric),
    "gaussian": Family(_gaussian, (math.log(1e-3), math.log(1e8)), math.exp, clamped_gaussian),
    "exponential": Family(_exponential, (1e-3, 1e6), float, exponential_mechanism),
}


def fitted(family: str, n: int, *, mse: Real | None = None, error_rate: Real | None = None) -> Channel:
    """The exact baseline channel on answers 0..n with this MSE or error rate; arguments and errors as `fit`."""
    parameter = fit(family, n, mse=mse, error_rate=error_rate)
    return FAMILIES[family].build(n, parameter)


def fit(family: str, n: int, *, mse: Real | None = None, error_rate: Real | None = None) -> float:
    """The parameter at which a baseline on answers 0..n has this MSE or this error rate, to about 1e-14.

    family: "geometric" (the parameter is α), "gaussian" (σ²) or "exponential" (β'); give one of mse and error_rate.
    Raises InvalidRequest, also for an error the family cannot have.
    """
    if family not in FAMILIES:
        InvalidRequest.must("family", f"one of {', '.join(FAMILIES)}", family)
    if (mse is None) == (error_rate is None):
        raise InvalidRequest("A target must be given by exactly one of mse and error_rate.")
    if not isinstance(n, int) or isinstance(n, bool) or n < 1:
        InvalidRequest.must("n", "an integer >= 1", n)
    from scipy.optimize import brentq

    table, (low, high), parameter, _ = FAMILIES[family]
    gap = np.arange(n + 1)[None, :] - np.arange(n + 1)[:, None]
    loss = gap**2 if mse is not None else gap != 0
    name, wanted = ("mse", mse) if mse is not None else ("error_rate", error_rate)
    target = float(positive(wanted, name))

    def miss(x: float) -> float:
        return float((table(n, x) * loss).sum() / (n + 1)) - target

    if miss(low) > 0 or miss(high) < 0:
        least, most = miss(low) + target, miss(high) + target
        InvalidRequest.must(name, f"in {least:.3g}..{most:.6g} for the {family} baseline with n={n}", wanted)
    return parameter(float(brentq(miss, low, high, xtol=1e-15, rtol=1e-14, maxiter=500)))
