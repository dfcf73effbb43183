"""Composition from exact dominating pairs, with proven bounds on either side.

When a pair of laws dominates each of k adaptive runs, the k-fold product of it dominates them all, and runs of several
mechanisms the product of their pairs (Zhu, Dong and Wang, 2022; `workbench.privacy.dominating_pair`).

The product is convolved in integers (`loss_law`); nothing is a float before the answer is rounded to its side. What it
gives is an upper bound: no run need attain the pair, as different comparisons may attain h at different E. The lower
bounds are those of actual neighbours, one comparison of each mechanism in all of its runs.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from fractions import Fraction
from functools import reduce
from operator import mul
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from workbench.data.parameter_grid import read_integers
from workbench.data.plain import read_integer
from workbench.errors import InvalidRequest, NotCertified, NotProven, must
from workbench.exact.arrays import Vector
from workbench.exact.numbers import (
    ONE,
    ZERO,
    ExpNumber,
    Interval,
    Real,
    log_upper_bound,
    read_positive,
    read_probability,
    round_down,
    round_up,
)
from workbench.exact.objects import Record
from workbench.io.files import write_json
from workbench.io.plain_figures import draw_chart, make_line_figure, make_series
from workbench.io.records import INTEGER, RATIO, RecordForm, raise_corrupt_entry
from workbench.io.shown import Facts, Shown
from workbench.mechanisms.mechanism import ONE_SIDED_NOTE, as_mechanism
from workbench.notions.laws import Laws
from workbench.notions.notion import format_rational
from workbench.privacy.audit_work import MAX_WORK_UNITS
from workbench.privacy.dominating_pair import compute_dominating_pair, list_compared_laws
from workbench.privacy.loss_law import LossLaw

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Runs: TypeAlias = "list[tuple[Laws, int]]"
_DRAWN, _FAR = 60, 100.0  # values of ε in a picture, and the largest
_FORM = RecordForm("The composed claim", runs=INTEGER, epsilon=RATIO, delta=RATIO, step=RATIO)


@dataclass(frozen=True)
class Composition(Shown):
    """Privacy of `times` runs (of each mechanism, where there are several): epsilon bounds what they cost at `delta`
    from above, for adaptive runs on any neighbours, epsilon_low from below, for neighbours that are the same in every
    run (or delta, delta_low at epsilon, when that was given). All four are proven. one_sided: whether neighbours of
    some mechanism were compared in one order only."""

    times: int | tuple[int, ...]
    epsilon: float
    epsilon_low: float
    delta: float
    delta_low: float
    is_one_sided: bool = False
    runs: Runs = field(default_factory=list, repr=False, compare=False)

    def facts(self) -> Facts:
        """The interval."""
        runs = self.times if isinstance(self.times, tuple) else (self.times,)
        return [
            ("runs", " + ".join(map(str, runs))),
            ("epsilon", f"{self.epsilon_low:.9g} to {self.epsilon:.9g}"),
            ("delta", f"{self.delta_low:.9g} to {self.delta:.9g}"),
            *([ONE_SIDED_NOTE] if self.is_one_sided else []),
        ]

    def figure(self) -> Figure:
        """δ(ε) of all runs, proven from above on a rough grid of losses, and the interval that was asked for."""
        law = _compose_losses(self.runs, _choose_grid_step(self.runs, ZERO, _ROUGH), upper=True)
        at = np.linspace(0, 1.5 * min(self.epsilon, _FAR) or 1.0, _DRAWN)
        curve = make_series(
            "all runs, no more",
            "line",
            0,
            at,
            [float(law.delta(Fraction(epsilon))) for epsilon in at],
        )
        ends = [self.epsilon_low, self.epsilon], [self.delta_low, self.delta]
        drawn = [curve, make_series("asked: from below, from above", "filled", 1, *ends)]
        return draw_chart(
            make_line_figure("Privacy of all runs: the δ that holds at every ε", "ε", "δ(ε)", drawn)
        )

    def save(self, path: str | Path) -> None:
        """Write the numbers as JSON."""
        write_json(path, {name: value for name, value in vars(self).items() if name != "runs"})


def compose(
    mechanism: Any,
    times: int | str | Sequence[int] = 1,
    *,
    delta: Real | None = None,
    epsilon: Real | None = None,
    interval: float = 1e-4,
) -> Composition:
    """What many runs cost together: ε at a given δ, or δ at a given ε.

    mechanism: one, or a list of several, each with its own neighbours (the person who is protected changes every one of
    them by a pair of its neighbours); times: how often each runs, >= 1, or "10,40" as a text; interval: the finest grid
    of losses; it is made coarser where the grid would have more than some 10^5 points, which the bounds then show.
    Raises InvalidRequest.
    """
    several = isinstance(mechanism, (list, tuple))
    subjects = [as_mechanism(subject) for subject in (mechanism if several else [mechanism])]
    if isinstance(times, str):
        parts = read_integers(times, "times")
        times = parts[0] if len(parts) == 1 else parts
    counts: list[Any] = list(times) if isinstance(times, (list, tuple)) else [times] * len(subjects)
    if not subjects or len(counts) != len(subjects):
        must("times", "one count, or one for each mechanism", times)
    counts = [read_integer(count, "times", 1, _MAX_RUNS) for count in counts]
    if (delta is None) == (epsilon is None):
        raise InvalidRequest("compose must be given exactly one of delta and epsilon.")
    if not isinstance(interval, (int, float)) or not 1e-7 <= interval <= 1:
        must("interval", "a number in [1e-7, 1]", interval)
    at = (
        read_positive(epsilon, "epsilon", or_zero=True)
        if delta is None
        else read_probability(delta, "delta")
    )
    runs = [
        (compute_dominating_pair(subject), count)
        for subject, count in zip(subjects, counts, strict=True)
    ]
    shown, step = tuple(counts) if several else counts[0], Fraction(interval)
    one_sided = any(subject.is_one_sided for subject in subjects)
    if delta is not None:
        return Composition(
            shown, *_bound_epsilon(subjects, runs, at, step), float(at), float(at), one_sided, runs
        )
    high, low = _bound_delta(subjects, runs, at, step)
    return Composition(
        shown, round_up(at), round_down(at), round_up(high), round_down(low), one_sided, runs
    )


def bound_composed_delta(
    mechanism: Any, times: int, epsilon: Fraction, target_delta: Fraction | None = None
) -> Fraction:
    """A proven upper bound of δ at ε after as many runs, on the grids that certificates are proven on; `compose` gives
    no larger one. wanted: the first bound that is at most this will do."""
    runs = [(compute_dominating_pair(mechanism), times)]
    return _bound_delta_above(
        runs, epsilon, _list_proof_steps(runs[0][0], times, epsilon, target_delta), target_delta
    )[0]


@dataclass(frozen=True)
class ComposedClaim:
    """That `runs` adaptive runs of a mechanism are (epsilon, delta)-private together, which a certificate may state.

    step: of the grid of losses on which the composition is proven: a hint, which no choice of makes a false claim hold.

    Decided exactly where every run is ε/runs-private, which is all there is for δ = 0; else by the composed dominating
    pair from above, and that of fixed neighbours, on a grid of an eighth of the step, from below.
    """

    runs: int
    epsilon: Fraction
    delta: Fraction
    step: Fraction

    @classmethod
    def for_mechanism(
        cls, mechanism: Any, runs: int, epsilon: Fraction, delta: Fraction
    ) -> ComposedClaim:
        """The claim on a grid that proves it, where one of ours does."""
        pairs = [(compute_dominating_pair(mechanism), runs)]
        if not pairs[0][0].violation_masses(epsilon / runs)[0]:
            return cls(runs, epsilon, delta, epsilon / runs or ONE)
        return cls(
            runs,
            epsilon,
            delta,
            _bound_delta_above(
                pairs, epsilon, _list_proof_steps(pairs[0][0], runs, epsilon, delta), delta
            )[1],
        )

    def check(self, mechanism: Any) -> None:
        """Raises NotCertified where the claim is false, NotProven where it is not decided."""
        pair = compute_dominating_pair(mechanism)
        if not pair.violation_masses(self.epsilon / self.runs)[
            0
        ]:  # no ratio exceeds e^ε of one run
            return
        if not self.delta:
            raise NotCertified(
                f"The mechanism misses {self.description}: the largest losses add up to more."
            )
        self._check_work(pair)
        bits = _count_mass_bits(self.delta)
        if (
            _compose_losses([(pair, self.runs)], self.step, upper=True, bits=bits).delta(
                self.epsilon
            )
            <= self.delta
        ):
            return
        runs = _find_worst_neighbours([mechanism], [(pair, self.runs)], epsilon=self.epsilon)
        least = _compose_losses(runs, self.step / 8, upper=False, bits=bits).delta(self.epsilon)
        if least > self.delta:
            raise NotCertified(
                f"The mechanism misses {self.description}: delta is at least {round_down(least):.6g}."
            )
        raise NotProven(f"On its grid of losses it is not decided whether {self.description}.")

    def _check_work(self, pair: Laws) -> None:
        """Raises NotProven for a convolution beyond the limit, counted as in `workbench.privacy.audit_work`."""
        points = math.ceil(sum(_largest_finite_losses(pair)) / self.step) + 1
        digits = 30 + len(str(self.runs)) + math.floor(self.epsilon / 2)
        digits += len(str(math.floor(1 / self.delta))) if self.delta * 10**_DIGITS > 1 else _DIGITS
        longest = points * min(self.runs, 4 * math.isqrt(self.runs * digits) + 4)
        units = len(pair.p) * (500 + 10 * digits) + 7 * longest * (20 + 3 * digits)
        if digits > _DIGITS or units > MAX_WORK_UNITS:
            raise NotProven(
                f"{units} units of work for {self.runs} runs are refused as too large; {MAX_WORK_UNITS} are allowed."
            )

    @property
    def description(self) -> str:
        """The claim in words."""
        budget = f"epsilon = {format_rational(self.epsilon)}, delta = {format_rational(self.delta)}"
        return f"{self.runs} adaptive runs together are private at {budget}"

    def to_dict(self) -> Record:
        """JSON-ready."""
        return _FORM.write(self)

    @classmethod
    def read(cls, data: Any) -> ComposedClaim:
        """What `to_dict` wrote. Raises CorruptFile."""
        claim = cls(**_FORM.read(data))
        if (
            not 1 <= claim.runs <= _MAX_RUNS
            or not 0 <= claim.epsilon <= _MAX_RUNS
            or not 0 <= claim.delta <= 1
        ):
            raise_corrupt_entry(
                "The composed claim",
                f"of runs in 1..{_MAX_RUNS}, epsilon in [0, {_MAX_RUNS}] and delta in [0, 1]",
            )
        if not 0 < claim.step <= _MAX_RUNS or claim.step.denominator.bit_length() > _MAX_STEP_BITS:
            raise_corrupt_entry(
                "step",
                f"a number in (0, {_MAX_RUNS}] of a denominator of at most {_MAX_STEP_BITS} bits",
            )
        return claim


_MAX_RUNS, _MAX_STEP_BITS, _DIGITS = 10**6, 256, 1300  # the most in a file
_PROOF = 1 << 12  # points of the grids that designs and certificates are proven on
_FINE_PROOF = (
    1 << 15,
    1 << 14,
)  # Points of the grid of more than `_FEW` runs, the first that can be checked.
_FINE, _COARSE = 1 << 18, 1 << 17  # points of the grids of the lower and the upper bound
_FEW = 40  # runs up to which moving losses down is tighter than cutting them in two


def _count_mass_bits(delta: Fraction | None) -> int:
    """Of the masses, where δ is to be proven."""
    return 160 + (math.floor(1 / delta).bit_length() if delta else 0)


def _largest_finite_losses(pair: Laws) -> tuple[float, float]:
    """The largest finite loss ln P*/Q*, and the largest of the opposite sign, rounded up; 0 where there is none."""
    ratios = [ratio for ratio, *_ in pair.steps if ratio]
    return (log_upper_bound(ratios[0]), log_upper_bound(1 / ratios[-1])) if ratios else (0.0, 0.0)


def _minimise_ratio(pair: Laws, delta: Fraction) -> Fraction | None:
    """The least E >= 1 with Σ max(0, P* - E Q*) <= δ, exact; None: there is none."""
    above = below = ZERO
    for largest, a, b in pair.steps:
        # from the last ratio down to this one the hockey stick is above - E below
        end = None if largest is None else max(ONE, largest)
        if end is not None and above - below * end > delta:
            return (above - delta) / below if below else None
        above, below = a, b
    return ONE


def _bound_epsilon(
    subjects: list[Any], runs: Runs, delta: Fraction, interval: Fraction
) -> tuple[float, float]:
    """Bounds of the least ε at δ from above and below."""
    if len(runs) == 1 and runs[0][1] == 1:
        least = _minimise_ratio(runs[0][0], delta)
        return (
            (math.inf, math.inf)
            if least is None
            else (log_upper_bound(least), max(0.0, -log_upper_bound(1 / least)))
        )
    pure = _bound_largest_loss(runs)
    if delta == 1 or (pure is not None and not pure[0]):
        return 0.0, 0.0
    if not delta:
        return (
            (math.inf, math.inf)
            if pure is None
            else (round_up(pure[0]), max(0.0, round_down(pure[1])))
        )
    bits = 96 + delta.denominator.bit_length()
    heavy = max((a, a / b) for pair, _ in runs for a, b in zip(pair.p, pair.q, strict=True) if b)[1]
    anchor = abs(Fraction(log_upper_bound(heavy))) if heavy else ZERO
    steps = dict.fromkeys(
        _list_grid_steps(runs, anchor, _PROOF) + _list_grid_steps(runs, anchor, _COARSE, interval)
    )
    laws = (_compose_losses(runs, step, upper=True, bits=bits) for step in steps)
    above = [None if pure is None else pure[0], *(law.epsilon(delta) for law in laws)]
    fixed = _find_worst_neighbours(subjects, runs, delta=delta)
    low = _compose_losses(
        fixed, _choose_grid_step(fixed, interval, _FINE), upper=False, bits=bits
    ).epsilon(delta)
    high = min((bound for bound in above if bound is not None), default=None)
    return math.inf if high is None else round_up(high), math.inf if low is None else round_down(
        low
    )


def _bound_largest_loss(runs: Runs) -> Interval | None:
    """Bounds from above and below of the sum of the largest losses, each one of fixed neighbours; None: it is
    infinite."""
    ratios = [(ratio, times) for pair, times in runs if (ratio := pair.max_ratio[0])]
    if len(ratios) < len(runs):
        return None
    above, below = (
        sum(Fraction(log_upper_bound(r**side)) * times * side for r, times in ratios)
        for side in (1, -1)
    )
    return Fraction(above), Fraction(below)


def _bound_delta(
    subjects: list[Any], runs: Runs, epsilon: Fraction, interval: Fraction
) -> Interval:
    """Bounds of δ at ε from above and below."""
    if len(runs) == 1 and runs[0][1] == 1:
        low, high = ExpNumber.from_terms(
            *runs[0][0].violation_masses(epsilon), epsilon
        ).tight_enclosure()
        return high, low
    share = epsilon / sum(times for _, times in runs)
    grids = _list_grid_steps(runs, share, _PROOF) + _list_grid_steps(runs, share, _COARSE, interval)
    fixed = _find_worst_neighbours(subjects, runs, epsilon=epsilon)
    return _bound_delta_above(runs, epsilon, grids)[0], _compose_losses(
        fixed, _choose_grid_step(fixed, interval, _FINE), upper=False
    ).delta(epsilon)


def _bound_delta_above(
    runs: Runs, epsilon: Fraction, steps: Iterable[Fraction], wanted: Fraction | None = None
) -> Interval:
    """The least upper bound of δ at ε on grids of these steps, and its step; the first that is at most `wanted`."""
    best = Fraction(2), ONE
    for step in dict.fromkeys(steps):
        best = min(
            best,
            (
                _compose_losses(runs, step, upper=True, bits=_count_mass_bits(wanted)).delta(
                    epsilon
                ),
                step,
            ),
        )
        if wanted is not None and best[0] <= wanted:
            break
    return best


def _compose_losses(runs: Runs, step: Fraction, *, upper: bool, bits: int = 160) -> LossLaw:
    """The loss of all runs, from above or below."""
    floor = not upper and sum(times for _, times in runs) <= _FEW
    return reduce(
        mul,
        (
            LossLaw.from_laws(
                pair.p, pair.q, step, is_upper=upper, moves_down=floor, bits=bits
            ).power(times)
            for pair, times in runs
        ),
    )


def _list_grid_steps(
    runs: Runs, anchor: Fraction, points: int, interval: Fraction = ZERO
) -> list[Fraction]:
    """Two steps of grids of about so many points: one with a loss on it that many runs have, or that sums to ε, as
    losses on the grid stay as they are; and that of `_step`."""
    step = _choose_grid_step(runs, interval, points)
    return [anchor / math.ceil(anchor / step), step] if anchor > step / 16 else [step]


def _list_proof_steps(
    pair: Laws, times: int, epsilon: Fraction, delta: Fraction | None
) -> list[Fraction]:
    """Steps of the grids that designs and certificates are proven on; of many runs a finer one that can be checked."""
    runs, anchor = [(pair, times)], epsilon / times
    steps = _list_grid_steps(runs, anchor, _PROOF)
    if delta is None or times <= _FEW:
        return steps
    for points in _FINE_PROOF:
        for step in _list_grid_steps(runs, anchor, points):
            with suppress(NotProven):
                ComposedClaim(times, epsilon, delta, step)._check_work(pair)
                return [*steps, step]
    return steps


def _choose_grid_step(runs: Runs, interval: Fraction, points: int) -> Fraction:
    """A step that puts the largest loss just above a point of the grid, coarse enough for so many points.

    The losses of k runs within ±R spread over ±k R, and over no more than ±8.4 R √k but for 1e-15 (Hoeffding).
    """
    spans = [(max(_largest_finite_losses(pair)), times) for pair, times in runs]
    width = 2 * min(sum(r * t for r, t in spans), 8.4 * math.sqrt(sum(r * r * t for r, t in spans)))
    step = max(float(interval), width / points)
    largest = max(r for r, _ in spans)
    if not largest:
        return ONE
    return Fraction(largest) * (1 - Fraction(1, 2**50)) / max(1, math.ceil(largest / step))


_ORDERS = np.geomspace(1e-3, 1e4, 48)  # λ, over the largest loss
_ALL = 32  # comparisons up to which all of a mechanism's are tried
_ROUGH = 1 << 10  # points of the grids on which they are


def _find_worst_neighbours(
    subjects: Sequence[Any],
    runs: Runs,
    *,
    epsilon: Fraction | None = None,
    delta: Fraction | None = None,
) -> Runs:
    """About the costliest fixed neighbours, one comparison of each mechanism; any give a lower bound.

    Tried are the comparisons of largest Σ P (P/Q)^λ at some λ and of largest mass of infinite loss, or all of few, one
    mechanism after the other: by δ at ε, or ε at δ, on a rough grid. The others are at first those at the λ that bounds
    it best (Chernoff).
    """
    orders = _ORDERS / (max(max(_largest_finite_losses(pair)) for pair, _ in runs) or 1.0)
    total = np.zeros(orders.size)
    tried, at_orders = [], []
    for subject, (_, times) in zip(subjects, runs, strict=True):
        pairs = list_compared_laws(subject)
        moments = np.array([_log_moments(pair, orders) for pair in pairs])
        total += times * moments.max(axis=0)[:-1]
        best = moments.argmax(axis=0).tolist()
        listed = range(len(pairs)) if len(pairs) <= _ALL else sorted({*best})
        tried.append({k: pairs[k] for k in listed})
        at_orders.append(best)
    bounds = (
        total - orders * float(epsilon)
        if epsilon is not None
        else (total - math.log(delta or 1)) / orders
    )
    fixed = [
        (pairs[best[bounds.argmin()]], times)
        for pairs, best, (_, times) in zip(tried, at_orders, runs, strict=True)
    ]

    def reached(k: int, pair: Laws) -> Fraction | float:
        moved = [*fixed[:k], (pair, fixed[k][1]), *fixed[k + 1 :]]
        law = _compose_losses(moved, _choose_grid_step(moved, ZERO, _ROUGH), upper=True)
        bound = law.delta(epsilon) if epsilon is not None else law.epsilon(delta or ONE)
        return math.inf if bound is None else bound

    for k, others in enumerate(tried):
        if len(others) > 1:
            fixed[k] = (max(others.values(), key=lambda pair: reached(k, pair)), fixed[k][1])
    return fixed


def _log_moments(pair: Laws, orders: Vector) -> Vector:
    """ln Σ P (P/Q)^λ where Q > 0, at every λ, and then the mass of P where Q = 0, in floats."""
    losses, p = pair.losses * math.log(2), pair.p.floats
    both = np.isfinite(losses)
    with np.errstate(divide="ignore"):
        terms = losses[both, None] * orders + np.log(p[both, None])
    moments = np.logaddexp.reduce(terms, axis=0, initial=-np.inf)
    return np.append(np.broadcast_to(moments, orders.shape), p[losses == np.inf].sum())
