"""Composition from exact dominating pairs, with proven bounds on either side.

A pair (P*, Q*) dominates a mechanism when, for every E >= 0, sup over neighbours of Σ max(0, P - E Q) is at most
Σ max(0, P* - E Q*); then k adaptive runs are dominated by the k-fold product of the pair, and runs of several
mechanisms by the product of their pairs (Zhu, Dong and Wang, 2022). The supremum is a convex, piecewise affine function
h(E) of the pairs' lines A - B E. Its vertices (E_j, h(E_j)) and slope changes Q*_j give the pair that attains it
exactly, in rationals:

    outcome j      Q*_j = slope change at E_j,  P*_j = E_j Q*_j       and one outcome with Q* = 0, P* = h(∞)

The product is convolved in integers (`loss_law`); nothing is a float before the answer is rounded to its side.
"""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from fractions import Fraction
from itertools import pairwise
from pathlib import Path
from typing import Any, TypeAlias

from workbench.errors import InvalidRequest
from workbench.exact.numbers import ExpNumber, Real, ln_up, positive, probability, round_down, round_up, sign_exp
from workbench.io.files import write_whole
from workbench.io.shown import Shown
from workbench.mechanisms.mechanism import as_mechanism
from workbench.privacy.loss_law import LossLaw

__all__ = ["Composition", "DominatingPair", "compose", "composed_delta", "dominating_pair"]


@dataclass(frozen=True)
class DominatingPair:
    """Two laws on the same outcomes, exact; they attain the mechanism's worst hockey stick at every ε at once."""

    p: tuple[Fraction, ...]
    q: tuple[Fraction, ...]

    def hockey_stick(self, e: Fraction) -> Fraction:
        """Σ max(0, P* - E Q*) at a rational E >= 0, exact."""
        return sum((max(Fraction(0), a - e * b) for a, b in zip(self.p, self.q, strict=True)), Fraction(0))

    @property
    def by_ratio(self) -> list[tuple[Fraction, Fraction]]:
        """The masses (P*, Q*) of every outcome, the largest ratio first."""
        return sorted(zip(self.p, self.q, strict=True), key=_ratio, reverse=True)

    def delta(self, epsilon: Fraction) -> ExpNumber:
        """δ at ε >= 0, exact."""
        broken = [(a, b) for a, b in zip(self.p, self.q, strict=True) if sign_exp(a, b, epsilon) > 0]
        return ExpNumber.of(sum((a for a, _ in broken), Fraction(0)), sum((b for _, b in broken), Fraction(0)), epsilon)

    def least(self, delta: Fraction) -> Fraction | None:
        """The least E >= 1 with Σ max(0, P* - E Q*) <= δ, exact; None: there is none."""
        above = below = Fraction(0)
        for a, b in [*self.by_ratio, (Fraction(0), Fraction(1))]:
            end = max(Fraction(1), a / b) if b else None  # above - E below from the last ratio down to this one
            if end is not None and above - below * end > delta:
                return (above - delta) / below if below else None
            above, below = above + a, below + b
        return Fraction(1)

    @property
    def largest(self) -> Fraction | None:
        """The largest ratio P*/Q*; None: unbounded."""
        ratios = [None if not b else a / b for a, b in zip(self.p, self.q, strict=True) if a]
        return None if None in ratios else max(ratio for ratio in ratios if ratio is not None)

    @property
    def widest(self) -> float:
        """The largest |ln P*/Q*| that is finite, about."""
        ratios = [a / b for a, b in zip(self.p, self.q, strict=True) if a and b]
        return max(ln_up(max(ratios)), ln_up(1 / min(ratios))) if ratios else 0.0


def dominating_pair(mechanism: Any) -> DominatingPair:
    """The exact dominating pair of a mechanism with its neighbour relation. Raises InvalidRequest."""
    lines = {(Fraction(0), Fraction(0)), (Fraction(1), Fraction(1))}
    seen = set()
    for pair in as_mechanism(mechanism).comparisons():
        if (pair.p, pair.q) in seen:
            continue
        seen.add((pair.p, pair.q))
        order = sorted(
            ((k, l) for k, l in zip(pair.p.integers, pair.q.integers, strict=True) if k or l),
            key=_ratio,
            reverse=True,
        )
        of_p, of_q = 0, 0
        for k, l in order:
            of_p, of_q = of_p + k, of_q + l
            lines.add((Fraction(of_p, pair.p.total), Fraction(of_q, pair.q.total)))
    hull = _upper(lines)
    p, q = [hull[-1][0]], [Fraction(0)]  # beyond the last vertex h is constant: mass that Q cannot produce
    for (high, b), (low, d) in pairwise(hull):
        q.append(b - d)
        p.append(high - low)  # E_j (b - d), for the vertex E_j = (high - low)/(b - d)
    p.append(Fraction(0))
    q.append(1 - sum(q, Fraction(0)))  # mass that P cannot produce
    keep = [i for i in range(len(p)) if p[i] or q[i]]
    return DominatingPair(tuple(p[i] for i in keep), tuple(q[i] for i in keep))


def _ratio(pair: tuple[int, int] | tuple[Fraction, Fraction]) -> tuple[int, Fraction]:
    k, l = pair
    return (1, Fraction(0)) if not l else (0, Fraction(k) / l)


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
    """Privacy of `times` runs (of each mechanism, where there are several): epsilon bounds what they cost at `delta`
    from above, epsilon_low from below (or delta, delta_low at epsilon, when that was given). All four are proven."""

    times: int | tuple[int, ...]
    epsilon: float
    epsilon_low: float
    delta: float
    delta_low: float

    def facts(self) -> list[tuple[str, str]]:
        """The interval."""
        runs = self.times if isinstance(self.times, tuple) else (self.times,)
        return [("runs", " + ".join(map(str, runs))), ("epsilon", f"{self.epsilon_low:.9g} to {self.epsilon:.9g}"),
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
    mechanism: Any,
    times: int | Sequence[int] = 1,
    *,
    delta: Real | None = None,
    epsilon: Real | None = None,
    interval: float = 1e-4,
) -> Composition:
    """What many runs cost together: ε at a given δ, or δ at a given ε.

    mechanism: one, or a list of several, each with its own neighbours (the person who is protected changes every one of
    them by a pair of its neighbours); times: how often each runs, >= 1; interval: the finest grid of losses; it is made
    coarser where the grid would have more than some 10^5 points, which the bounds then show. Raises InvalidRequest.
    """
    several = isinstance(mechanism, (list, tuple))
    subjects = list(mechanism) if several else [mechanism]
    counts: list[Any] = list(times) if isinstance(times, (list, tuple)) else [times] * len(subjects)
    if not subjects or len(counts) != len(subjects):
        InvalidRequest.must("times", "one count for each mechanism", times)
    for count in counts:
        if isinstance(count, bool) or not isinstance(count, int) or not 1 <= count <= 1_000_000:
            InvalidRequest.must("times", "an integer in 1..1000000", count)
    if (delta is None) == (epsilon is None):
        raise InvalidRequest("compose must be given exactly one of delta and epsilon.")
    if not isinstance(interval, (int, float)) or not 1e-7 <= interval <= 1:
        InvalidRequest.must("interval", "a number in [1e-7, 1]", interval)
    given = None if delta is None else probability(delta, "delta")
    at = None if epsilon is None else positive(epsilon, "epsilon", or_zero=True)
    runs = [(dominating_pair(subject), count) for subject, count in zip(subjects, counts, strict=True)]
    shown = tuple(counts) if several else counts[0]
    if given is not None:
        high, low = _epsilons(runs, given, Fraction(interval))
        return Composition(shown, high, low, float(given), float(given))
    assert at is not None
    deltas = _deltas(runs, at, Fraction(interval))
    return Composition(shown, round_up(at), round_down(at), round_up(deltas[0]), round_down(deltas[1]))


def composed_delta(
    mechanism: Any, times: int, epsilon: Fraction, wanted: Fraction | None = None, *, points: int = 1 << 18
) -> Fraction:
    """A proven upper bound of δ at ε > 0 after as many runs, of a finer grid than `compose` takes.

    Of two grids: losses of ε/T are no higher on one that has ε/T on it, and the largest loss on one that has that. The
    lower bound counts, and the first one that is at most `wanted`. points: of a grid, about.
    """
    pair = dominating_pair(mechanism)
    step, delta = _step([(pair, times)], Fraction(1, 10**6), points), Fraction(1)
    share = epsilon / times
    for grid in dict.fromkeys((step if share < step else share / math.ceil(share / step), step)):
        delta = min(delta, LossLaw.of(pair.p, pair.q, grid, upper=True).power(times).delta(epsilon))
        if wanted is not None and delta <= wanted:
            break
    return delta


Runs: TypeAlias = "list[tuple[DominatingPair, int]]"
_FINE, _COARSE = 1 << 18, 1 << 17  # points of the grids of the lower and the upper bound
_FEW = 40  # runs up to which moving losses down is tighter than cutting them in two


def _epsilons(runs: Runs, delta: Fraction, interval: Fraction) -> tuple[float, float]:
    """Bounds of the least ε at δ from above and below."""
    if len(runs) == 1 and runs[0][1] == 1:
        least = runs[0][0].least(delta)
        return (math.inf, math.inf) if least is None else (ln_up(least), max(0.0, -ln_up(1 / least)))
    pure = [(pair.largest, count) for pair, count in runs]
    ratios = [(ratio, count) for ratio, count in pure if ratio is not None]
    unbounded = len(ratios) < len(pure)
    whole = sum((Fraction(ln_up(ratio)) * count for ratio, count in ratios), Fraction(0))
    if delta == 1 or (not whole and not unbounded):
        return 0.0, 0.0
    if not delta:  # the largest losses add up
        below = sum((Fraction(-ln_up(1 / ratio)) * count for ratio, count in ratios), Fraction(0))
        return (math.inf, math.inf) if unbounded else (round_up(whole), max(0.0, round_down(below)))
    high, low = _laws(runs, interval, 96 + delta.denominator.bit_length())
    above, least = high.epsilon(delta), low.epsilon(delta)
    if above is not None and not unbounded:
        above = min(above, whole)
    return math.inf if above is None else round_up(above), math.inf if least is None else round_down(least)


def _deltas(runs: Runs, epsilon: Fraction, interval: Fraction) -> tuple[Fraction, Fraction]:
    """Bounds of δ at ε from above and below."""
    if len(runs) == 1 and runs[0][1] == 1:
        low, high = runs[0][0].delta(epsilon).sharp()
        return high, low
    above, below = _laws(runs, interval, 160)
    return above.delta(epsilon), below.delta(epsilon)


def _laws(runs: Runs, interval: Fraction, bits: int) -> tuple[LossLaw, LossLaw]:
    """The losses of all runs, from above and below."""
    count = sum(times for _, times in runs)
    composed = []
    for upper, points in ((True, _COARSE), (False, _FINE)):
        step = _step(runs, interval, points)
        law: LossLaw | None = None
        for pair, times in runs:
            single = LossLaw.of(pair.p, pair.q, step, upper=upper, floor=not upper and count <= _FEW, bits=bits)
            law = single.power(times) if law is None else law * single.power(times)
        assert law is not None
        composed.append(law)
    return composed[0], composed[1]


def _step(runs: Runs, interval: Fraction, points: int) -> Fraction:
    """A step that puts the largest loss just above a point of the grid, coarse enough for so many points.

    The losses of k runs within ±R spread over ±k R, and over no more than ±8.4 R √k but for 1e-15 (Hoeffding).
    """
    spans = [(pair.widest, times) for pair, times in runs]
    width = 2 * min(sum(r * t for r, t in spans), 8.4 * math.sqrt(sum(r * r * t for r, t in spans)))
    step = max(float(interval), width / points)
    largest = max(r for r, _ in spans)
    if not largest:
        return Fraction(1)
    return Fraction(largest) * (1 - Fraction(1, 2**50)) / max(1, math.ceil(largest / step))
