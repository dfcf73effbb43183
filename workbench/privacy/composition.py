"""Bound the ε and δ of many runs of one or several mechanisms, from above and from below.

A pair of laws (P*, Q*) dominates a mechanism if its hockey stick Σ max(0, P* - E Q*) is at least
that of every two neighbours, for every ratio E >= 0 (E stands for e^ε). If a pair dominates each of
k adaptive runs, its k-fold product dominates them all. Runs of several mechanisms are dominated by
the product of their pairs (Zhu, Dong and Wang, 2022; `workbench.privacy.dominating_pair`).

The privacy loss ln P/Q of a product of pairs is the sum of their privacy losses. Its law is a
convolution, which `loss_law` computes in integers on a grid of privacy losses. The only floats are
final results, which are rounded to the safe side. The product gives only an upper bound: at each
ratio E another pair of neighbours may be the worst, and the dominating pair takes the worst at
every E. Lower bounds come from actual neighbours: one comparison of each mechanism, the same in all
runs.
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
from workbench.privacy.loss_law import PrivacyLossLaw

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Runs: TypeAlias = "list[tuple[Laws, int]]"  # Pairs of laws, each with its number of runs.


@dataclass(frozen=True)
class _CompositionSettings:
    """Sizes of the grids of privacy losses, and other limits of this module."""

    max_runs: int = 10**6
    """A file with more runs, or with a larger ε or step, is refused."""
    max_step_bits: int = 256
    """A file whose step has a denominator of more bits is refused."""
    max_digits: int = 1300
    """A convolution with numbers of more digits is refused in the check of a certificate."""
    proof_points: int = 1 << 12
    """Points of the grids on which designs and certificates are proven."""
    fine_proof_points: tuple[int, ...] = (1 << 15, 1 << 14)
    """Points of finer proof grids for many runs. The first one that can be checked is used."""
    lower_points: int = 1 << 18
    """Points of the grid of a lower bound."""
    upper_points: int = 1 << 17
    """Points of the grid of an upper bound."""
    few_runs: int = 40
    """Up to this number of runs, lower bounds move privacy losses down to the grid. This is tighter
    than cutting atoms in two (`loss_law`)."""
    few_comparisons: int = 32
    """Up to this number of comparisons, all of a mechanism are tried for a lower bound."""
    rough_points: int = 1 << 10
    """Points of the grids on which comparisons are tried, and of plots."""
    plotted_points: int = 60
    """Number of values of ε in a plot."""
    max_plotted_epsilon: float = 100.0
    """A plot ends at 1.5 times this ε, even if the bound on ε is larger."""


_SETTINGS = _CompositionSettings()
_FORM = RecordForm("The composed claim", runs=INTEGER, epsilon=RATIO, delta=RATIO, step=RATIO)
# Comparisons are ranked by Σ P (P/Q)^λ at these orders λ, divided by the largest privacy loss.
_SCALED_ORDERS = np.geomspace(1e-3, 1e4, 48)


@dataclass(frozen=True)
class Composition(Shown):
    """Proven bounds on the privacy of many runs of one or several mechanisms.

    Attributes:
        times: Number of runs, or one number for each mechanism.
        epsilon: Upper bound on ε at `delta`. It holds for adaptive runs on any neighbours.
        epsilon_low: Lower bound on ε, reached by neighbours that are the same in every run.
        delta: Upper bound on δ at `epsilon`, or the given δ.
        delta_low: Lower bound on δ, or the given δ.
        is_one_sided: Whether the neighbours of some mechanism were compared in one order only.
        runs: Dominating pair of each mechanism, with its number of runs.
    """

    times: int | tuple[int, ...]
    epsilon: float
    epsilon_low: float
    delta: float
    delta_low: float
    is_one_sided: bool = False
    runs: Runs = field(default_factory=list, repr=False, compare=False)

    def facts(self) -> Facts:
        """Return the bounds as rows (label, text) of a report."""
        counts = self.times if isinstance(self.times, tuple) else (self.times,)
        return [
            ("runs", " + ".join(map(str, counts))),
            ("epsilon", f"{self.epsilon_low:.9g} to {self.epsilon:.9g}"),
            ("delta", f"{self.delta_low:.9g} to {self.delta:.9g}"),
            *([ONE_SIDED_NOTE] if self.is_one_sided else []),
        ]

    def figure(self) -> Figure:
        """Draw an upper bound on δ(ε) of all runs, and the two computed bounds.

        The curve is computed on a rough grid of privacy losses.
        """
        step = _choose_grid_step(self.runs, ZERO, _SETTINGS.rough_points)
        law = _compose_privacy_losses(self.runs, step, is_upper=True)
        # If ε is 0, the plot ends at 1.
        last_epsilon = 1.5 * min(self.epsilon, _SETTINGS.max_plotted_epsilon) or 1.0
        epsilons = np.linspace(0, last_epsilon, _SETTINGS.plotted_points)
        deltas = [float(law.delta(Fraction(epsilon))) for epsilon in epsilons]
        curve = make_series("upper bound for all runs", "line", colour=0, x=epsilons, y=deltas)
        bounds = make_series(
            "requested: lower bound, upper bound",
            "filled",
            colour=1,
            x=[self.epsilon_low, self.epsilon],
            y=[self.delta_low, self.delta],
        )
        title = "Privacy of all runs: δ as a function of ε"
        return draw_chart(make_line_figure(title, "ε", "δ(ε)", [curve, bounds]))

    def save(self, path: str | Path) -> None:
        """Write the bounds as a JSON file.

        Args:
            path: Path of the file.
        """
        record = {
            "times": self.times,
            "epsilon": self.epsilon,
            "epsilon_low": self.epsilon_low,
            "delta": self.delta,
            "delta_low": self.delta_low,
            "one_sided": self.is_one_sided,
        }
        write_json(path, record)


@dataclass(frozen=True)
class CompositionSeries(Shown):
    """Bounds for several numbers of runs of one mechanism, at the same δ or ε.

    Attributes:
        compositions: The bounds for each number of runs.
    """

    compositions: tuple[Composition, ...]

    def facts(self) -> Facts:
        """Return one row (label, text) for each number of runs."""
        return [
            (f"{item.times} runs", f"epsilon {item.epsilon:.9g}, delta {item.delta:.9g}")
            for item in self.compositions
        ]

    def figure(self) -> Figure:
        """Draw the bounds on ε against the number of runs, or those on δ if ε was given."""
        has_epsilon_bounds = len({item.delta for item in self.compositions}) == 1
        name = "epsilon" if has_epsilon_bounds else "delta"
        symbol = "ε" if has_epsilon_bounds else "δ"
        finite = [item for item in self.compositions if math.isfinite(getattr(item, name))]
        infinite_counts = [str(item.times) for item in self.compositions if item not in finite]
        if not finite:
            raise InvalidRequest("No number of runs has a finite epsilon at this delta to draw.")
        run_counts = [item.times for item in finite]
        high = [getattr(item, name) for item in finite]
        # A segment joins the lower and the upper bound of each number of runs.
        segment_runs = [item.times for item in finite for _ in range(2)]
        ends: list[float] = []
        for item in finite:
            ends += [getattr(item, f"{name}_low"), getattr(item, name)]
        series = [
            make_series("from the lower to the upper bound", "segments", 1, segment_runs, ends),
            make_series("upper bound (safe)", "filled", 0, run_counts, high),
        ]
        note = ""
        if infinite_counts:
            note = f"No finite {symbol} at {', '.join(infinite_counts)} runs."
        first = self.compositions[0]
        budget = f"δ = {first.delta:.6g}" if has_epsilon_bounds else f"ε = {first.epsilon:.6g}"
        title = f"Privacy of all runs at {budget}"
        return draw_chart(make_line_figure(title, "number of runs", symbol, series, note=note))


def compose(
    mechanism: Any,
    times: int | str | Sequence[int] = 1,
    *,
    delta: Real | None = None,
    epsilon: Real | None = None,
    interval: float = 1e-4,
) -> Composition:
    """Bound the privacy of many runs: ε at a given δ, or δ at a given ε.

    Args:
        mechanism: A mechanism, or a list of mechanisms, each with its neighbours. The protected
            person changes the input of every one of them to a neighbour.
        times: Number of runs >= 1, one for each mechanism, or a text such as "10,40".
        delta: δ at which ε is bounded. At most one of `delta` and `epsilon` may be given. Default
            without both: 0, for mechanisms with a pure ε.
        epsilon: ε at which δ is bounded.
        interval: Distance between two points of the grid of privacy losses, in [1e-7, 1]. A grid of
            more than about 10^5 points is made coarser, which widens the bounds.

    Returns:
        The bounds. The given one of ε and δ is both its own lower and its own upper bound.

    Raises:
        InvalidRequest: An argument is wrong, or both of `delta` and `epsilon` are left out although
            no ε holds at δ = 0.
    """
    has_several = isinstance(mechanism, (list, tuple))
    mechanisms = [as_mechanism(item) for item in (mechanism if has_several else [mechanism])]
    counts = _read_run_counts(times, len(mechanisms))
    if delta is not None and epsilon is not None:
        raise InvalidRequest("compose must be given at most one of delta and epsilon.")
    has_default_delta = delta is None and epsilon is None
    if has_default_delta:
        delta = 0
    if not isinstance(interval, (int, float)) or not 1e-7 <= interval <= 1:
        must("interval", "a number in [1e-7, 1]", interval)
    if delta is None:
        fixed_parameter = read_positive(epsilon, "epsilon", or_zero=True)
    else:
        fixed_parameter = read_probability(delta, "delta")
    runs = []
    for single_mechanism, count in zip(mechanisms, counts, strict=True):
        runs.append((compute_dominating_pair(single_mechanism), count))
    stated_times = tuple(counts) if has_several else counts[0]
    step = Fraction(interval)
    is_one_sided = any(single_mechanism.is_one_sided for single_mechanism in mechanisms)
    if delta is not None:
        lower_epsilon, upper_epsilon = _bound_epsilon(mechanisms, runs, fixed_parameter, step)
        if has_default_delta and math.isinf(upper_epsilon):
            raise InvalidRequest(
                "compose must be given delta or epsilon, because no epsilon holds at delta = 0. "
                "For example: delta = 1e-6."
            )
        return Composition(
            stated_times,
            epsilon=upper_epsilon,
            epsilon_low=lower_epsilon,
            delta=float(fixed_parameter),
            delta_low=float(fixed_parameter),
            is_one_sided=is_one_sided,
            runs=runs,
        )
    lower_delta, upper_delta = _bound_delta(mechanisms, runs, fixed_parameter, step)
    return Composition(
        stated_times,
        epsilon=round_up(fixed_parameter),
        epsilon_low=round_down(fixed_parameter),
        delta=round_up(upper_delta),
        delta_low=round_down(lower_delta),
        is_one_sided=is_one_sided,
        runs=runs,
    )


def _read_run_counts(times: Any, mechanism_count: int) -> list[int]:
    """Read the number of runs of each mechanism. Raises InvalidRequest."""
    if isinstance(times, str):
        parts = read_integers(times, "times")
        times = parts
        if len(parts) == 1:
            times = parts[0]
    if isinstance(times, (list, tuple)):
        counts: list[Any] = list(times)
    else:
        counts = [times] * mechanism_count
    if not mechanism_count or len(counts) != mechanism_count:
        must("times", "one count, or one for each mechanism", times)
    return [read_integer(count, "times", 1, _SETTINGS.max_runs) for count in counts]


def bound_composed_delta(
    mechanism: Any, times: int, epsilon: Fraction, target_delta: Fraction | None = None
) -> Fraction:
    """Prove an upper bound on δ at ε after many runs, on the grids of certificates.

    `compose` returns an upper bound that is at most as large.

    Args:
        mechanism: Mechanism with exact masses and a neighbour relation.
        times: Number of runs.
        epsilon: ε of all runs together.
        target_delta: The search ends at the first bound that is at most this. None for the
            smallest bound of all grids.
    """
    pair = compute_dominating_pair(mechanism)
    steps = _list_proof_steps(pair, times, epsilon, target_delta)
    bound, _ = _bound_delta_above([(pair, times)], epsilon, steps, target_delta)
    return bound


@dataclass(frozen=True)
class ComposedClaim:
    """The claim that many adaptive runs of a mechanism together are (ε, δ)-private.

    The claim is decided in two steps. If every run is ε/runs-private, the claim is true. For δ = 0
    this is also necessary. Otherwise the composed dominating pair may prove the claim on a grid of
    privacy losses, or fixed neighbours may refute it on a grid with an eighth of the step.

    Attributes:
        runs: Number of runs.
        epsilon: ε of all runs together.
        delta: δ of all runs together.
        step: Step of the grid of privacy losses on which the claim is proven. No choice of the step
            can make a false claim pass.
    """

    runs: int
    epsilon: Fraction
    delta: Fraction
    step: Fraction

    @classmethod
    def for_mechanism(
        cls, mechanism: Any, runs: int, epsilon: Fraction, delta: Fraction
    ) -> ComposedClaim:
        """Build the claim with the step of a grid that proves it, if one of the tried grids does.

        Args:
            mechanism: Mechanism with exact masses and a neighbour relation.
            runs: Number of runs.
            epsilon: ε of all runs together.
            delta: δ of all runs together.
        """
        pair = compute_dominating_pair(mechanism)
        violating_mass, _ = pair.violation_masses(epsilon / runs)
        if not violating_mass:
            # `check` needs no grid then, but a claim must have a step > 0.
            return cls(runs, epsilon, delta, epsilon / runs or ONE)
        steps = _list_proof_steps(pair, runs, epsilon, delta)
        _, step = _bound_delta_above([(pair, runs)], epsilon, steps, delta)
        return cls(runs, epsilon, delta, step)

    def check(self, mechanism: Any) -> None:
        """Prove the claim for a mechanism.

        Args:
            mechanism: Mechanism with exact masses and a neighbour relation.

        Raises:
            NotCertified: The claim is false.
            NotProven: The claim is not decided on its grid, or deciding it takes too long.
        """
        pair = compute_dominating_pair(mechanism)
        violating_mass, _ = pair.violation_masses(self.epsilon / self.runs)
        if not violating_mass:
            return  # No ratio of one run exceeds e^(ε/runs).
        if not self.delta:
            raise NotCertified(
                f"It is false that {self.description}: the largest losses add up to more."
            )
        self._check_work(pair)
        bits = _count_mass_bits(self.delta)
        law = _compose_privacy_losses([(pair, self.runs)], self.step, is_upper=True, bits=bits)
        if law.delta(self.epsilon) <= self.delta:
            return
        runs = _find_worst_neighbours(
            subjects=[mechanism], runs=[(pair, self.runs)], epsilon=self.epsilon
        )
        lower_law = _compose_privacy_losses(runs, self.step / 8, is_upper=False, bits=bits)
        lower_bound = lower_law.delta(self.epsilon)
        if lower_bound > self.delta:
            raise NotCertified(
                f"It is false that {self.description}: "
                f"delta is at least {round_down(lower_bound):.6g}."
            )
        raise NotProven(f"Its grid of losses does not decide whether {self.description}.")

    def _check_work(self, pair: Laws) -> None:
        """Raise NotProven for a convolution beyond the limit of `workbench.privacy.audit_work`.

        The units for R runs of a pair with A atoms at (ε, δ), on a grid on which the finite losses
        span m points, are

            A (500 + 10 d) + 7 M (20 + 3 d), with
            d = 30 + the digits of R and of ⌊1/δ⌋ + ⌊ε/2⌋ (at most 1300),
            M = m min(R, 4 ⌊√(R d)⌋ + 4)
        """
        points = math.ceil(sum(_max_finite_privacy_losses(pair)) / self.step) + 1
        # The units are counted as for many runs in `workbench.privacy.audit_work`.
        digits = 30 + len(str(self.runs)) + math.floor(self.epsilon / 2)
        if self.delta * 10**_SETTINGS.max_digits > 1:
            digits += len(str(math.floor(1 / self.delta)))
        else:
            digits += _SETTINGS.max_digits
        longest = points * min(self.runs, 4 * math.isqrt(self.runs * digits) + 4)
        units = len(pair.p) * (500 + 10 * digits) + 7 * longest * (20 + 3 * digits)
        if digits > _SETTINGS.max_digits or units > MAX_WORK_UNITS:
            raise NotProven(
                f"{units} units of work for {self.runs} runs are refused as too large; "
                f"{MAX_WORK_UNITS} are allowed."
            )

    @property
    def description(self) -> str:
        """Return the claim as a clause without a full stop."""
        budget = f"epsilon = {format_rational(self.epsilon)}, delta = {format_rational(self.delta)}"
        return f"{self.runs} adaptive runs together are private at {budget}"

    def to_dict(self) -> Record:
        """Return runs, epsilon, delta and step as data for JSON, exact numbers as texts."""
        return _FORM.write(self)

    @classmethod
    def read(cls, data: Any) -> ComposedClaim:
        """Read the data that `to_dict` returned.

        Args:
            data: Data of a JSON file.

        Raises:
            CorruptFile: The data are no claim, or a number is out of range.
        """
        claim = cls(**_FORM.read(data))
        largest = _SETTINGS.max_runs
        has_runs = 1 <= claim.runs <= largest
        if not has_runs or not 0 <= claim.epsilon <= largest or not 0 <= claim.delta <= 1:
            raise_corrupt_entry(
                "The composed claim",
                f"of runs in 1..{largest}, epsilon in [0, {largest}] and delta in [0, 1]",
            )
        max_bits = _SETTINGS.max_step_bits
        if not 0 < claim.step <= largest or claim.step.denominator.bit_length() > max_bits:
            raise_corrupt_entry(
                "step", f"a number in (0, {largest}] with a denominator of at most {max_bits} bits"
            )
        return claim


def _count_mass_bits(delta: Fraction | None) -> int:
    """Return the number of bits of masses that suffice to prove δ."""
    # The unit of masses is about 2^-160 of δ.
    return 160 + (math.floor(1 / delta).bit_length() if delta else 0)


def _max_finite_privacy_losses(pair: Laws) -> tuple[float, float]:
    """Return the largest finite ln P*/Q* and ln Q*/P*, rounded up. 0: there is none."""
    ratios = [ratio for ratio, *_ in pair.steps if ratio]
    if not ratios:
        return 0.0, 0.0
    # The steps are in the order of falling ratios P*/Q*.
    return log_upper_bound(ratios[0]), log_upper_bound(1 / ratios[-1])


def _minimise_ratio(pair: Laws, delta: Fraction) -> Fraction | None:
    """Return the smallest E >= 1 with Σ max(0, P* - E Q*) <= δ, exact. None: there is none."""
    mass_p = ZERO
    mass_q = ZERO
    # The steps are in the order of falling ratios P*/Q*. The ratio None stands for infinity.
    for ratio, next_p, next_q in pair.steps:
        # From the last ratio down to this one the hockey stick is mass_p - E mass_q.
        if ratio is not None and mass_p - mass_q * max(ONE, ratio) > delta:
            if mass_q:
                return (mass_p - delta) / mass_q
            return None
        mass_p = next_p
        mass_q = next_q
    return ONE


def _bound_epsilon(
    subjects: list[Any], runs: Runs, delta: Fraction, interval: Fraction
) -> tuple[float, float]:
    """Return a lower and an upper bound on the smallest ε at δ, infinity if there is none.

    Args:
        subjects: The mechanisms.
        runs: Dominating pair and number of runs of each mechanism.
        delta: δ in [0, 1].
        interval: Smallest step of the grids.
    """
    if len(runs) == 1 and runs[0][1] == 1:  # One run is computed exactly.
        least_ratio = _minimise_ratio(runs[0][0], delta)
        if least_ratio is None:
            return math.inf, math.inf
        # ln r = -ln(1/r), so an upper bound at 1/r gives a lower bound at r.
        return max(0.0, -log_upper_bound(1 / least_ratio)), log_upper_bound(least_ratio)
    pure_lower: Fraction | None = None
    pure_upper: Fraction | None = None
    pure_bounds = _bound_largest_loss(runs)
    if pure_bounds is not None:
        pure_lower, pure_upper = pure_bounds
    if delta == 1 or pure_upper == 0:
        return 0.0, 0.0
    if not delta:
        if pure_lower is None or pure_upper is None:
            return math.inf, math.inf
        return max(0.0, round_down(pure_lower)), round_up(pure_upper)
    # The unit of masses is at most 2^-96 of δ.
    bits = 96 + delta.denominator.bit_length()
    upper_bounds = [pure_upper]
    for step in _list_upper_steps(runs, interval):
        law = _compose_privacy_losses(runs, step, is_upper=True, bits=bits)
        upper_bounds.append(law.epsilon(delta))
    worst_runs = _find_worst_neighbours(subjects, runs, delta=delta)
    lower_step = _choose_grid_step(worst_runs, interval, _SETTINGS.lower_points)
    lower_law = _compose_privacy_losses(worst_runs, lower_step, is_upper=False, bits=bits)
    low = lower_law.epsilon(delta)
    high = min((bound for bound in upper_bounds if bound is not None), default=None)
    upper_bound = math.inf if high is None else round_up(high)
    lower_bound = math.inf if low is None else round_down(low)
    return lower_bound, upper_bound


def _list_upper_steps(runs: Runs, interval: Fraction) -> list[Fraction]:
    """List the steps of the grids on which an upper bound on ε is computed, each once.

    A grid contains the privacy loss of the outcome with the largest mass (`_list_grid_steps`).
    """
    candidates = []
    for pair, _ in runs:
        for a, b in zip(pair.p, pair.q, strict=True):
            if b:
                candidates.append((a, a / b))
    _, heavy_ratio = max(candidates)
    anchor = ZERO
    if heavy_ratio:
        anchor = abs(Fraction(log_upper_bound(heavy_ratio)))
    proof_steps = _list_grid_steps(runs, anchor, _SETTINGS.proof_points)
    fine_steps = _list_grid_steps(runs, anchor, _SETTINGS.upper_points, interval)
    return list(dict.fromkeys(proof_steps + fine_steps))


def _bound_largest_loss(runs: Runs) -> Interval | None:
    """Return a lower and an upper bound on the largest privacy loss of all runs together.

    It is the sum of the largest privacy losses of the runs. None: it is infinite.
    """
    ratios = []
    for pair, times in runs:
        ratio, _ = pair.max_ratio
        if not ratio:
            return None
        ratios.append((ratio, times))
    # ln r = -ln(1/r), so an upper bound at 1/r gives a lower bound at r.
    upper = sum(Fraction(log_upper_bound(ratio)) * times for ratio, times in ratios)
    lower = -sum(Fraction(log_upper_bound(1 / ratio)) * times for ratio, times in ratios)
    return Fraction(lower), Fraction(upper)


def _bound_delta(
    subjects: list[Any], runs: Runs, epsilon: Fraction, interval: Fraction
) -> Interval:
    """Return a lower and an upper bound on δ at ε for the runs of all subjects together.

    `runs` has the dominating pair and the number of runs of each subject. `interval` is the
    smallest step of the grids of privacy losses.
    """
    if len(runs) == 1 and runs[0][1] == 1:  # One run is computed exactly.
        pair, _ = runs[0]
        exact_delta = ExpNumber.from_terms(*pair.violation_masses(epsilon), epsilon)
        low, high = exact_delta.tight_enclosure()
        return low, high
    epsilon_share = epsilon / sum(times for _, times in runs)
    proof_steps = _list_grid_steps(runs, epsilon_share, _SETTINGS.proof_points)
    fine_steps = _list_grid_steps(runs, epsilon_share, _SETTINGS.upper_points, interval)
    worst_runs = _find_worst_neighbours(subjects, runs, epsilon=epsilon)
    upper_bound, _ = _bound_delta_above(runs, epsilon, proof_steps + fine_steps)
    lower_step = _choose_grid_step(worst_runs, interval, _SETTINGS.lower_points)
    lower_law = _compose_privacy_losses(worst_runs, lower_step, is_upper=False)
    return lower_law.delta(epsilon), upper_bound


def _bound_delta_above(
    runs: Runs, epsilon: Fraction, steps: Iterable[Fraction], target_delta: Fraction | None = None
) -> tuple[Fraction, Fraction]:
    """Return the smallest upper bound on δ at ε on grids with these steps, and its step.

    The search ends at the first bound that is at most `target_delta`.
    """
    # No bound on δ exceeds 1, so the bound of the first grid replaces this one.
    best = Fraction(2), ONE
    bits = _count_mass_bits(target_delta)
    for step in dict.fromkeys(steps):
        law = _compose_privacy_losses(runs, step, is_upper=True, bits=bits)
        best = min(best, (law.delta(epsilon), step))
        if target_delta is not None and best[0] <= target_delta:
            break
    return best


def _compose_privacy_losses(
    runs: Runs, step: Fraction, *, is_upper: bool, bits: int = 160
) -> PrivacyLossLaw:
    """Return the law of the privacy loss of all runs, rounded to one side.

    Args:
        runs: Pair of laws and number of runs of each mechanism.
        step: Step of the grid of privacy losses.
        is_upper: Whether the law gives upper bounds on ε and δ. Otherwise it gives lower bounds.
        bits: Masses are multiples of 2^-bits.
    """
    run_count = sum(times for _, times in runs)
    moves_down = not is_upper and run_count <= _SETTINGS.few_runs
    laws = []
    for pair, times in runs:
        law = PrivacyLossLaw.from_laws(
            pair.p, pair.q, step, is_upper=is_upper, moves_down=moves_down, bits=bits
        )
        laws.append(law.power(times))
    return reduce(mul, laws)


def _list_grid_steps(
    runs: Runs, anchor: Fraction, points: int, interval: Fraction = ZERO
) -> list[Fraction]:
    """List the steps of one or two grids with about a given number of points.

    Privacy losses on a grid are not rounded. The first grid therefore contains the anchor, a
    privacy loss that many runs have, or ε divided by the number of runs. The last grid is that of
    `_choose_grid_step`.
    """
    step = _choose_grid_step(runs, interval, points)
    # A smaller anchor would make the grid more than 16 times as fine.
    if anchor > step / 16:
        return [anchor / math.ceil(anchor / step), step]
    return [step]


def _list_proof_steps(
    pair: Laws, times: int, epsilon: Fraction, delta: Fraction | None
) -> list[Fraction]:
    """List the steps of the grids on which `times` runs of a pair are proven (ε, δ)-private.

    For many runs the last step is that of a finer grid that can still be checked.
    """
    runs = [(pair, times)]
    anchor = epsilon / times
    steps = _list_grid_steps(runs, anchor, _SETTINGS.proof_points)
    if delta is None or times <= _SETTINGS.few_runs:
        return steps
    for points in _SETTINGS.fine_proof_points:
        for step in _list_grid_steps(runs, anchor, points):
            with suppress(NotProven):
                ComposedClaim(times, epsilon, delta, step)._check_work(pair)
                return [*steps, step]
    return steps


def _choose_grid_step(runs: Runs, interval: Fraction, points: int) -> Fraction:
    """Choose a step that puts the largest privacy loss just above a point of the grid.

    The grid has at most about the given number of points.

    Args:
        runs: Pair of laws and number of runs of each mechanism.
        interval: Smallest step. 0 for no limit.
        points: Number of points.
    """
    radii = [(max(_max_finite_privacy_losses(pair)), times) for pair, times in runs]
    full_width = sum(radius * times for radius, times in radii)
    # Hoeffding: the sum of k privacy losses within ±R deviates from its mean by more than 8.4 R √k
    # with probability below 1e-15.
    likely_width = 8.4 * math.sqrt(sum(radius * radius * times for radius, times in radii))
    step = max(float(interval), 2 * min(full_width, likely_width) / points)
    max_radius = max(radius for radius, _ in radii)
    if not max_radius:
        return ONE
    # The float may be rounded up, and the grid point must not exceed the exact privacy loss.
    lowered_radius = Fraction(max_radius) * (1 - Fraction(1, 2**50))
    return lowered_radius / max(1, math.ceil(max_radius / step))


def _find_worst_neighbours(
    subjects: Sequence[Any],
    runs: Runs,
    *,
    epsilon: Fraction | None = None,
    delta: Fraction | None = None,
) -> Runs:
    """Find about the worst fixed neighbours: one comparison of each mechanism.

    Any comparisons give a valid lower bound, so this search need not be exact:

    1. Candidates. If a mechanism has few comparisons, all are candidates. Otherwise a candidate has
       the largest Σ P (P/Q)^λ at some λ, or the largest mass with an infinite privacy loss.
    2. Start. The Chernoff bound of all runs is smallest at some λ. Every mechanism starts with the
       candidate of this λ.
    3. Improvement. One mechanism after the other tries all its candidates on a rough grid.

    Args:
        subjects: The mechanisms.
        runs: Dominating pair and number of runs of each mechanism.
        epsilon: ε at which δ is maximised. Exactly one of `epsilon` and `delta` must be given.
        delta: δ at which ε is maximised.
    """
    orders = _SCALED_ORDERS / (
        max(max(_max_finite_privacy_losses(pair)) for pair, _ in runs) or 1.0
    )
    total_moments = np.zeros(orders.size)
    candidates_by_run = []
    best_by_run = []
    for subject, (_, times) in zip(subjects, runs, strict=True):
        pairs = list_compared_laws(subject)
        moments = np.array([_log_moments(pair, orders) for pair in pairs])
        # The last column is the mass with an infinite privacy loss, which belongs to no order.
        total_moments += times * moments.max(axis=0)[:-1]
        best_at_orders = moments.argmax(axis=0).tolist()
        has_few = len(pairs) <= _SETTINGS.few_comparisons
        indices = range(len(pairs)) if has_few else sorted({*best_at_orders})
        candidates_by_run.append({index: pairs[index] for index in indices})
        best_by_run.append(best_at_orders)
    if epsilon is not None:
        bounds = total_moments - orders * float(epsilon)
    else:
        bounds = (total_moments - math.log(delta or 1)) / orders
    best_order = bounds.argmin()
    worst_runs = []
    for candidates, best_at_orders, (_, times) in zip(
        candidates_by_run, best_by_run, runs, strict=True
    ):
        worst_runs.append((candidates[best_at_orders[best_order]], times))

    def compute_bound(position: int, pair: Laws) -> Fraction | float:
        """Return δ at ε or ε at δ if the comparison at a position is replaced."""
        changed_run = (pair, worst_runs[position][1])
        changed_runs = [*worst_runs[:position], changed_run, *worst_runs[position + 1 :]]
        step = _choose_grid_step(changed_runs, ZERO, _SETTINGS.rough_points)
        law = _compose_privacy_losses(changed_runs, step, is_upper=True)
        bound = law.delta(epsilon) if epsilon is not None else law.epsilon(delta or ONE)
        if bound is None:
            return math.inf
        return bound

    for position, candidates in enumerate(candidates_by_run):
        if len(candidates) > 1:
            bounds_by_index = {
                index: compute_bound(position, pair) for index, pair in candidates.items()
            }
            worst_index = max(bounds_by_index, key=lambda index: bounds_by_index[index])
            worst_runs[position] = (candidates[worst_index], worst_runs[position][1])
    return worst_runs


def _log_moments(pair: Laws, orders: Vector) -> Vector:
    """Return ln Σ P (P/Q)^λ over Q > 0 for each order λ, and then the mass of P where Q = 0.

    The values are floats. Shape (orders + 1,).
    """
    privacy_losses = pair.log2_ratios * math.log(2)
    masses = pair.p.floats
    is_finite = np.isfinite(privacy_losses)
    with np.errstate(divide="ignore"):
        terms = privacy_losses[is_finite, None] * orders + np.log(masses[is_finite, None])
    moments = np.logaddexp.reduce(terms, axis=0, initial=-np.inf)
    infinite_mass = masses[privacy_losses == np.inf].sum()
    return np.append(np.broadcast_to(moments, orders.shape), infinite_mass)
