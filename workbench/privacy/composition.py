"""Composition by dp_accounting from an exact dominating pair (optional extra "accounting").

A pair (P*, Q*) dominates a mechanism when, for every E >= 0, sup over neighbours of Σ max(0, P - E Q) is at most
Σ max(0, P* - E Q*); then k adaptive runs are dominated by the k-fold product of the pair (Zhu, Dong and Wang, 2022).
The supremum is a convex, piecewise affine function h(E) of the pairs' lines A - B E. Its vertices (E_j, h(E_j)) and
slope changes Q*_j give the pair that attains it exactly, in rationals:

    outcome j      Q*_j = slope change at E_j,  P*_j = E_j Q*_j       and one outcome with Q* = 0, P* = h(∞)

Only then do floats enter, rounded to the safe side; 1e-12 of δ is given away on either side for the floating-point
sums and convolutions of dp_accounting, which it does not bound itself. It is always called with symmetric=False: h
ranges over both orders of every pair already, and its default (True) takes the second order on trust. (For one-sided
neighbours both orders of the pair are still composed: an upper bound.)
"""

from __future__ import annotations

import contextlib
import json
import math
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from fractions import Fraction
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from workbench.errors import InvalidRequest, WorkbenchError
from workbench.exact.numbers import Real, positive, probability, round_down
from workbench.io.extras import need
from workbench.io.files import write_whole
from workbench.io.shown import Shown
from workbench.mechanisms.mechanism import as_mechanism

__all__ = ["Composition", "DominatingPair", "compose", "dominating_pair", "loss_distribution"]


_FAR = 10**300  # an epsilon beyond it is no double
_FLOATS = 1e-12  # of δ
_POINTS = 5e7  # of a grid of losses: some 2 GB


@dataclass(frozen=True)
class DominatingPair:
    """Two laws on the same outcomes, exact; they attain the mechanism's worst hockey stick at every ε at once."""

    p: tuple[Fraction, ...]
    q: tuple[Fraction, ...]

    def hockey_stick(self, e: Fraction) -> Fraction:
        """Σ max(0, P* - E Q*) at a rational E >= 0, exact."""
        return sum((max(Fraction(0), a - e * b) for a, b in zip(self.p, self.q, strict=True)), Fraction(0))


def dominating_pair(mechanism: Any) -> DominatingPair:
    """The exact dominating pair of a mechanism with its neighbour relation. Raises InvalidRequest."""
    lines = {(Fraction(0), Fraction(0)), (Fraction(1), Fraction(1))}
    seen = set()
    for one in as_mechanism(mechanism).comparisons():
        if (one.p, one.q) in seen:
            continue
        seen.add((one.p, one.q))
        order = sorted(
            ((k, l) for k, l in zip(one.p.integers, one.q.integers, strict=True) if k or l), key=_ratio, reverse=True
        )
        of_p, of_q = 0, 0
        for k, l in order:
            of_p, of_q = of_p + k, of_q + l
            lines.add((Fraction(of_p, one.p.total), Fraction(of_q, one.q.total)))
    hull = _upper(lines)
    p, q = [hull[-1][0]], [Fraction(0)]  # beyond the last vertex h is constant: mass that Q cannot produce
    for (high, b), (low, d) in pairwise(hull):
        q.append(b - d)
        p.append(high - low)  # E_j (b - d), for the vertex E_j = (high - low)/(b - d)
    p.append(Fraction(0))
    q.append(1 - sum(q, Fraction(0)))  # mass that P cannot produce
    keep = [i for i in range(len(p)) if p[i] or q[i]]
    return DominatingPair(tuple(p[i] for i in keep), tuple(q[i] for i in keep))


def _ratio(pair: tuple[int, int]) -> tuple[int, Fraction]:
    k, l = pair
    return (1, Fraction(0)) if not l else (0, Fraction(k, l))


def _upper(lines: set[tuple[Fraction, Fraction]]) -> list[tuple[Fraction, Fraction]]:
    """The lines A - B E of the upper envelope on E >= 0, steepest (largest B) first."""
    best: dict[Fraction, Fraction] = {}
    for a, b in lines:
        best[b] = max(a, best.get(b, a))
    hull: list[tuple[Fraction, Fraction]] = []
    for b in sorted(best, reverse=True):
        a = best[b]
        while hull and hull[-1][0] <= a:  # already lower at E = 0, and falling faster
            hull.pop()
        while len(hull) > 1:
            (a1, b1), (a2, b2) = hull[-2], hull[-1]
            if (a1 - a) * (b1 - b2) <= (a1 - a2) * (b1 - b):  # the new line overtakes before the last one does
                hull.pop()
            else:
                break
        hull.append((a, b))
    return hull


@dataclass(frozen=True)
class Composition(Shown):
    """Privacy of `times` runs: epsilon bounds what they cost at `delta` from above, epsilon_low from below (or delta,
    delta_low at epsilon, when that was given)."""

    times: int
    epsilon: float
    epsilon_low: float
    delta: float
    delta_low: float

    def facts(self) -> list[tuple[str, str]]:
        """The interval."""
        return [("runs", str(self.times)), ("epsilon", f"{self.epsilon_low:.9g} to {self.epsilon:.9g}"),
                ("delta", f"{self.delta_low:.9g} to {self.delta:.9g}")]  # fmt: skip

    @property
    def drawable(self) -> bool:
        """No: it is an interval."""
        return False

    def figure(self) -> Any:
        """None. Raises InvalidRequest."""
        raise InvalidRequest("A composition is an interval: there is nothing to plot. Its mechanism has a profile.")

    def save(self, path: str | Path) -> None:
        """Write the numbers as JSON."""
        write_whole(path, (json.dumps(asdict(self), indent=1) + "\n").encode())


def compose(
    mechanism: Any, times: int, *, delta: Real | None = None, epsilon: Real | None = None, interval: float = 1e-4
) -> Composition:
    """What k runs of a mechanism cost: ε at a given δ, or δ at a given ε.

    times: k >= 1; interval: of dp_accounting's grid of losses (finer is tighter and slower).
    The upper values are pessimistic (safe), the low ones optimistic. Raises InvalidRequest, also for a grid of more
    than 5·10^7 losses; NotInstalled without the extra.
    """
    if isinstance(times, bool) or not isinstance(times, int) or not 1 <= times <= 1_000_000:
        InvalidRequest.must("times", "an integer in 1..1000000", times)
    if (delta is None) == (epsilon is None):
        raise InvalidRequest("compose must be given exactly one of delta and epsilon.")
    if not isinstance(interval, (int, float)) or not 1e-7 <= interval <= 1:
        InvalidRequest.must("interval", "a number in [1e-7, 1]", interval)
    need("accounting", "Composition")
    pair = dominating_pair(mechanism)
    least = _width(pair, times) / _POINTS
    if interval < least:
        InvalidRequest.must("interval", f"at least {least:.2g} for {times} runs of this mechanism", interval)
    allowed = None if delta is None else float(probability(delta, "delta"))
    budget = None if epsilon is None else positive(epsilon, "epsilon", or_zero=True)
    at = None if budget is None else float(min(budget, Fraction(_FAR)))
    disjoint = round_down(sum((p for p, q in zip(pair.p, pair.q, strict=True) if not q), Fraction(0)))
    if allowed == 1:
        return Composition(times, 0.0, 0.0, 1.0, 1.0)
    if disjoint >= 1 - _FLOATS:  # beyond dp_accounting: two neighbours have (all but) nothing in common
        if at is None:
            low_end = math.inf if allowed is not None and allowed < disjoint else 0.0
            return Composition(times, math.inf, low_end, allowed or 0.0, allowed or 0.0)
        return Composition(times, at, at, 1.0, disjoint)
    with _accounting():
        high, low = (loss_distribution(pair, pessimistic=side, interval=interval) for side in (True, False))
        if times > 1:
            high, low = high.self_compose(times), low.self_compose(times)
        if allowed is not None:
            ends = max(0.0, allowed - _FLOATS), min(1.0, allowed + _FLOATS)
            found = [float(side.get_epsilon_for_delta(end)) for side, end in zip((high, low), ends, strict=True)]
            return Composition(times, found[0], min(found), allowed, allowed)
        assert at is not None
        found = [float(side.get_delta_for_epsilon(at)) for side in (high, low)]
        return Composition(times, at, at, min(1.0, found[0] + _FLOATS), max(0.0, min(found) - _FLOATS))


@contextlib.contextmanager
def _accounting() -> Iterator[None]:
    """What dp_accounting raises for losses it cannot handle (a few, composed many times) in one sentence."""
    try:
        with np.errstate(over="ignore"):  # infinities are what it means there
            yield
    except (ArithmeticError, LookupError, ValueError) as error:
        if isinstance(error, WorkbenchError):
            raise
        raise WorkbenchError(
            f"dp_accounting cannot compose these losses ({type(error).__name__}: {error}); another interval may help."
        ) from None


def loss_distribution(pair: DominatingPair, *, pessimistic: bool = True, interval: float = 1e-4) -> Any:
    """dp_accounting's PrivacyLossDistribution of a dominating pair. Raises NotInstalled without the extra."""
    need("accounting", "Composition")
    from dp_accounting.pld import privacy_loss_distribution

    upper = {i: _log(v, up=pessimistic) for i, v in enumerate(pair.p) if v}
    lower = {i: _log(v, up=not pessimistic) for i, v in enumerate(pair.q) if v}
    return privacy_loss_distribution.from_two_probability_mass_functions(
        lower, upper, pessimistic_estimate=pessimistic, value_discretization_interval=interval, symmetric=False
    )


def _width(pair: DominatingPair, times: int) -> float:
    """How far the losses of several runs spread: their range, or ±8.4 R √k, beyond which lies 1e-15 (Hoeffding)."""
    finite = [(p, q) for p, q in zip(pair.p, pair.q, strict=True) if p and q]
    most = max((abs(_log(p, up=True) - _log(q, up=True)) for p, q in finite), default=0.0)
    return 0.0 if times == 1 else 2 * most * min(times, 8.4 * math.sqrt(times))


def _log(value: Fraction, *, up: bool) -> float:
    """ln of a probability as a float, rounded to one side by a few ulps; at most 0."""
    shift = value.denominator.bit_length() - value.numerator.bit_length()  # value = near 2^-shift
    near = round_down(value * Fraction(2) ** shift)
    middle = math.log(near) - shift * math.log(2)
    width = 4 * math.ulp(max(1.0, abs(middle)))
    return min(0.0, middle + width) if up else middle - width
