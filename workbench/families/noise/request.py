"""Describe and check a request for noise, with its losses in exact numbers.

A field of a request is added in `NoiseAim` (what is minimised) or `NoiseHow` (how it is solved);
the option that sets it is added to `workbench.families.noise.family`. η is the noise, q the true
answer, o the published answer, and D the sensitivity.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

import numpy as np

from workbench.errors import InvalidRequest, must
from workbench.exact.numbers import ONE, ZERO, Rationals
from workbench.models.losses import parse_loss
from workbench.models.noise.losses import LineLoss
from workbench.models.oracles.line_noise import POWERS
from workbench.pipeline.loss_scale import LossScale
from workbench.pipeline.option import check_epsilon_range, to_json_value
from workbench.pipeline.outcome import translate_errors
from workbench.pipeline.request import Aim, How, Request
from workbench.privacy.objective import build_integer_loss
from workbench.questions.unbounded_noise import IntegerNoise, RealNoise, UnboundedNoise
from workbench.solvers.arrays import Ints
from workbench.solvers.backend import get_backend

MAX_MINIMISED_EPSILON = 20  # A minimised ε is at most this.
MAX_MINIMISED_DELTA = Fraction(999, 1000)  # A minimised δ is at most this.
MIN_EPSILON = Fraction(1, 10**9)  # ε is 0 or at least this, so that variances are finite doubles.
MAX_EPSILON = 700  # Up to this ε, e^ε is a finite double.
MIN_DELTA = Fraction(1, 10**12)  # A minimised δ, and the δ of many runs, is at least this.
MAX_RUNS_SENSITIVITY = 32  # The composition of many runs is proven at every shift up to this.
MAX_HUBER_BEND = 2_000  # huber:h with a larger h is refused for noise that is not clamped.
# The search ends at these relative gaps between loss and bound, unless the request has a gap.
_INTEGER_GAP = 1e-8
# Notions without (ε, δ) bounds, such as zCDP, are only solved to about 1e-9.
_SMOOTH_INTEGER_GAP = 1e-5
_REAL_GAP = 2e-4
_LARGE_EPSILON_REAL_GAP = 2e-3  # Above _MAX_REAL_GAP_EPSILON, so that grids stay small.
_MAX_REAL_GAP_EPSILON = 2
_MAX_EPSILON_PER_RUN = 10  # Noise of several runs is not searched for a larger ε of one run.
_MAX_RUNS_DELTA = Fraction(1, 2)  # The same for a larger δ of all runs.
# Names of the losses for noise. pinball and huber have a parameter.
NAMED_LOSSES = ("absolute", "squared", "error-rate", "pinball", "huber")


@dataclass(frozen=True)
class AnswerLoss:
    """The loss of clamped noise for every pair of a true and a published answer.

    The answers are clamped to low..high; a position is a number of steps from low.

    Attributes:
        name: the name of the loss in tables and certificates.
        values: values[q][o] >= 0 is the loss of publishing the answer at position o if the true
            answer is at position q.
        counted_positions: the positions q of true answers that count for the worst answer. None:
            all positions.
    """

    name: str
    values: tuple[Rationals, ...]
    counted_positions: Ints | None = None


def tabulate_difference_losses(name: str, unit: Fraction, span: int) -> dict[int, Fraction]:
    """Map every step in -span..span to a named loss of published minus true answer.

    Args:
        name: absolute, squared, error-rate, pinball:τ or huber:h.
        unit: the difference of two consecutive answers, in the units of the loss.
        span: the largest number of steps of the table.

    Returns:
        step -> exact loss.

    Raises:
        ValueError: there is no such loss for noise.
    """
    loss = parse_loss(name)
    if loss.kind not in NAMED_LOSSES:
        raise ValueError(f"loss must be one of {', '.join(NAMED_LOSSES)} for noise. Got {name!r}.")
    parameter = ONE if loss.parameter is None else Fraction(str(loss.parameter))
    loss_of_integers, scale, denominator = build_integer_loss(loss.kind, parameter, numbers=[unit])
    steps = range(-span, span + 1)
    scaled_steps = np.array([int(unit * scale) * step for step in steps], dtype=object)
    values = loss_of_integers(scaled_steps)
    return {
        step: Fraction(int(value), denominator) for step, value in zip(steps, values, strict=True)
    }


@dataclass(frozen=True, kw_only=True, eq=False)
class NoiseAim(Aim):
    """The loss that a request for noise minimises, with its unit and prior.

    Attributes:
        loss: the loss, in one of three forms. A name: absolute, squared, pinball:τ or huber:h (for
            clamped noise also error-rate). A tuple: the losses of |η| = 0, 1, ... (clamped: of the
            distance between published and true answer); the last one holds for all larger
            values. An `AnswerLoss`: the losses of every published answer for every true answer.
        unit: the difference of two consecutive clamped answers in the units of a named loss.
        prior: the probabilities of the clamped answers (on the reals: of equal parts of the
            range); "worst" for the largest expected loss of any answer; None for uniform.
    """

    loss: str | Rationals | AnswerLoss = "squared"
    unit: Fraction = ONE
    prior: Rationals | str | None = None


@dataclass(frozen=True, kw_only=True, eq=False)
class NoiseHow(How):
    """The method, solver and limits with which a request for noise is solved.

    Attributes:
        gap: the relative gap between loss and lower bound at which the search may stop. None:
            `NoiseRequest.target_gap` chooses it.
        steps: on the reals, the number of grid cells in an interval as long as the sensitivity.
            None: the grid is refined until loss and bound agree.
    """

    gap: Fraction | None = None
    steps: int | None = None


@dataclass(frozen=True, kw_only=True, eq=False)
class NoiseRequest(Request):
    """A request for the noise of least expected loss, or for the least δ or ε within max_loss.

    The noise has the same law for every answer, and it is private before it is clamped. Its
    privacy therefore does not depend on the range of the answers.

    Attributes:
        question: noise on the integers or the reals, with its sensitivity and clamp.
        aim: the loss, its prior, and what is minimised.
        how: method, solver and limits.
    """

    AIM = NoiseAim
    HOW = NoiseHow

    question: UnboundedNoise
    aim: NoiseAim
    how: NoiseHow

    # Checks.

    def __post_init__(self) -> None:
        self._check_notion()
        self._check_loss()
        if self.claim.delta and not get_backend(self.how.solver).capabilities().duals:
            rule = "one that gives dual values, from which the bound is computed"
            must("solver", rule, self.how.solver)
        if self.aim.runs > 1:
            self._check_runs()
        if self.how.steps is not None and not self.is_on_reals:
            raise InvalidRequest("steps must be left out for noise on the integers.")

    def _check_notion(self) -> None:
        """Check the budget of the notion and what is minimised. Raises InvalidRequest."""
        max_loss = self.aim.max_loss
        if max_loss is not None and max_loss <= 0 and isinstance(self.aim.loss, str):
            must("max_loss", f"> 0 for the {self.aim.loss} loss", to_json_value(max_loss))
        if self.aim.minimise != "loss" and (self.has_several_bounds or self.aim.runs > 1):
            rule = "loss, except for one run under the notions dp and pure"
            must("minimise", rule, repr(self.aim.minimise))
        self.check_aim()
        for stick in self.claim.list_ratio_bounds(()):
            if stick.epsilon and (stick.delta or not self.has_several_bounds):
                check_epsilon_range(stick.epsilon, MIN_EPSILON, MAX_EPSILON)

    def _check_loss(self) -> None:
        """Check that loss, unit and prior fit the question. Raises InvalidRequest."""
        loss = self.aim.loss
        clamp = self.clamp
        if self.is_on_reals:
            self._check_loss_on_reals()
        if self.aim.unit != 1 and (clamp is None or not isinstance(loss, str)):
            raise InvalidRequest(
                "unit must be left out, except for a named loss of clamped answers."
            )
        if isinstance(loss, AnswerLoss) and len(loss.values) != self.answer_count:
            must("loss", "of answers that are clamped", "others")
        if loss == "error-rate" and clamp is None:
            rule = "absolute or squared, or a list of losses, for noise that is not clamped"
            must("loss", rule, "error-rate")
        self._check_prior()
        assert self.is_on_reals or self.line_losses  # Computing the losses checks them.

    def _check_loss_on_reals(self) -> None:
        """Check the loss, and what is minimised, of noise on the reals. Raises InvalidRequest."""
        loss = self.aim.loss
        if self.question.clamp is not None and self.aim.minimise != "loss":
            raise InvalidRequest(
                "clamp must be left out if epsilon or delta of noise on the reals is minimised."
            )
        if loss not in ("absolute", "squared"):
            must(
                "loss",
                "absolute or squared for noise on the reals. For other losses, use noise on the "
                "integers and count the sensitivity in steps",
                loss if isinstance(loss, str) else "a list",
            )

    def _check_prior(self) -> None:
        """Check that the prior fits the clamped answers. Raises InvalidRequest."""
        prior = self.aim.prior
        if prior is not None and self.question.clamp is None:
            prior_text = "'worst'" if isinstance(prior, str) else f"{len(prior)} weights"
            must("prior", "left out for noise that is not clamped", prior_text)
        if self.is_worst_case and self.has_several_bounds and self.has_infinite_support:
            notion = self.claim.notion.name
            must("prior", f"uniform or probabilities when notion is {notion}", "'worst'")
        if prior is None or isinstance(prior, str):
            return
        if self.clamp is not None and len(prior) != self.answer_count:
            must("prior", f"{self.answer_count} weights, one for each clamped answer", len(prior))
        if not any(prior):
            must("prior", "weights >= 0, not all 0", 0)

    def check_max_loss(self) -> None:
        """Accept every max_loss: each one > 0 needs some budget."""

    def _check_runs(self) -> None:
        """Check that the noise of several runs can be searched. Raises InvalidRequest."""
        question = self.question
        delta = self.claim.delta
        runs = self.aim.runs
        if not isinstance(question, IntegerNoise) or question.clamp is not None:
            must("runs", "1, except for noise on all integers", runs)
        if question.sensitivity > MAX_RUNS_SENSITIVITY:
            rule = f"at most {MAX_RUNS_SENSITIVITY} for more than 1 run"
            must("sensitivity", rule, question.sensitivity)
        if not delta or self.aim.loss not in ("absolute", "squared"):
            rule = "1 if delta is 0, or if the loss is neither absolute nor squared"
            must("runs", rule, runs)
        has_searchable_delta = MIN_DELTA <= delta <= _MAX_RUNS_DELTA
        if not has_searchable_delta or self.claim.epsilon > _MAX_EPSILON_PER_RUN * runs:
            rule = (
                f"1 unless delta is between {float(MIN_DELTA):g} and {float(_MAX_RUNS_DELTA):g} "
                f"and epsilon at most {_MAX_EPSILON_PER_RUN} for each run (the search is in "
                "floating point)"
            )
            must("runs", rule, runs)
        if self.how.gap is not None:
            raise InvalidRequest(
                "gap must be left out for more than 1 run: no bound is proven for several runs."
            )

    # Properties of the question and the claim.

    @property
    def is_on_reals(self) -> bool:
        """Check whether the noise is on the reals, not on the integers."""
        return isinstance(self.question, RealNoise)

    @property
    def clamp(self) -> tuple[int, int] | None:
        """Return the integers (low, high) to which the sum is clamped; None on the reals."""
        return self.question.clamp if isinstance(self.question, IntegerNoise) else None

    @cached_property
    def has_infinite_support(self) -> bool:
        """Check whether the noise needs infinite tails.

        It may end at a finite value only if the budget consists of bounds (ε, δ) with δ > 0.
        """
        sticks = self.claim.list_ratio_bounds(())
        return not sticks or not all(stick.delta for stick in sticks)

    @property
    def is_worst_case(self) -> bool:
        """Check whether the objective is the largest expected loss of any clamped answer."""
        return isinstance(self.aim.prior, str)

    @property
    def target_gap(self) -> float:
        """Return the relative gap between loss and bound at which the search ends."""
        if self.how.gap is not None:
            return float(self.how.gap)
        if not self.is_on_reals:
            is_smooth = self.has_several_bounds and self.has_infinite_support
            return _SMOOTH_INTEGER_GAP if is_smooth else _INTEGER_GAP
        epsilon = self.claim.epsilon
        if epsilon is None or epsilon <= _MAX_REAL_GAP_EPSILON:
            return _REAL_GAP
        return _LARGE_EPSILON_REAL_GAP

    # Losses.

    @property
    def loss_name(self) -> str:
        """Return the name of the loss in tables and certificates; "own" for a list of losses."""
        if isinstance(self.aim.loss, AnswerLoss):
            return self.aim.loss.name
        return self.aim.loss if isinstance(self.aim.loss, str) else "own"

    @property
    def loss_function(self) -> Callable[[int, int], Fraction]:
        """Return the loss of clamped noise as a function of true and published answer (q, o).

        Both are positions in low..high. If the loss is a list, its entry |o - q| is returned, or
        its last entry if |o - q| is larger.
        """
        losses = self.aim.loss
        if isinstance(losses, AnswerLoss):
            table = losses.values
            return lambda q, o: table[q][o]
        if isinstance(losses, str):
            span = max(0, self.answer_count - 1)
            loss_by_step = tabulate_difference_losses(losses, self.aim.unit, span)
            return lambda q, o: loss_by_step[o - q]
        return lambda q, o: losses[min(abs(o - q), len(losses) - 1)]

    @property
    def answer_count(self) -> int:
        """Return the number of clamped answers, 0 if the noise is not clamped."""
        if self.clamp is None:
            return 0
        low, high = self.clamp
        return high - low + 1

    @property
    def counted_positions(self) -> Sequence[int]:
        """Return the positions of the clamped answers that count for the worst answer."""
        assert self.clamp is not None
        if isinstance(self.aim.loss, AnswerLoss) and self.aim.loss.counted_positions is not None:
            return self.aim.loss.counted_positions
        return range(self.answer_count)

    @cached_property
    def line_losses(self) -> tuple[LineLoss, ...]:
        """Return the losses as functions of the noise value η. The largest of their means counts.

        With a prior there is one function, the mean over the prior. For the worst answer there is
        one for each answer, or one for each answer and its mirror image if symmetric noise is
        optimal. On the reals the tuple is empty.
        """
        if self.is_on_reals:
            return ()
        with translate_errors():
            if self.clamp is None:
                return (self._make_unclamped_loss(),)
            answer_count = self.answer_count
            if not isinstance(self.aim.prior, str):
                mean_loss = LineLoss.of_clamped_answers(
                    self.loss_name,
                    answer_count,
                    self.loss_function,
                    self.aim.prior,
                    depends_on_difference=not isinstance(self.aim.loss, AnswerLoss),
                )
                return (mean_loss,)
            tables = _merge_mirror_images(self._tabulate_answer_losses(answer_count - 1))
            return tuple(
                LineLoss(self.loss_name, power=0, table=table, may_fall=True) for table in tables
            )

    def _tabulate_answer_losses(self, n: int) -> list[Rationals]:
        """Tabulate the loss of every counted answer for η in -n..n.

        n + 1 is the number of clamped answers. Shape (counted answers, 2 n + 1).
        """
        loss = self.loss_function
        tables = []
        for q in self.counted_positions:
            outputs = [min(n, max(0, q + eta)) for eta in range(-n, n + 1)]
            tables.append(tuple(loss(q, o) for o in outputs))
        return tables

    @cached_property
    def loss_scale(self) -> LossScale:
        """Return the scale on which losses and gaps are compared.

        Its floor is the loss of the best single noise value. Its width is the loss of the noise
        value ±D above that floor; if this is 0, the largest loss of any noise value above it. On
        the reals the floor is 0 and the width is D, or D² for the squared loss.
        """
        if self.is_on_reals:
            return LossScale(ZERO, float(self.question.sensitivity) ** POWERS[self.loss_name])
        d = self.question.sensitivity
        floor = max(min(loss.table or (ZERO,)) for loss in self.line_losses)
        loss_at_sensitivity = max(
            max(loss.value_at(d), loss.value_at(-d)) for loss in self.line_losses
        )
        tables = [loss.table for loss in self.line_losses if loss.table]
        largest_loss = max(map(max, tables), default=ZERO)
        width = loss_at_sensitivity - floor
        if width <= 0:
            width = max(ZERO, largest_loss - floor)
        return LossScale(floor, float(width))

    def _make_unclamped_loss(self) -> LineLoss:
        """Make the loss of noise that is not clamped. Raises InvalidRequest for a huge bend h."""
        losses = self.aim.loss
        if not isinstance(losses, str):
            assert isinstance(losses, tuple)
            return LineLoss.from_values(losses)
        if losses in POWERS:
            return LineLoss.from_name(losses)
        bend = 0
        if losses.startswith("huber"):
            bend = math.ceil(parse_loss(losses).parameter or 0)
        if bend > MAX_HUBER_BEND:
            rule = f"huber:h with h at most {MAX_HUBER_BEND} for noise that is not clamped"
            must("loss", rule, losses)
        # The tails have the slope between the bend and the next step.
        loss_by_step = tabulate_difference_losses(losses, ONE, span=bend + 1)
        return LineLoss.with_straight_tails(losses, loss_by_step.__getitem__, bend)


def _merge_mirror_images(tables: list[Rationals]) -> list[Rationals]:
    """Average the loss tables of every two mirrored answers.

    This is done if the table of the k-th answer is always the reversed table of the k-th answer
    from the end. Then some optimal noise is symmetric. Under symmetric noise both answers have
    the same mean loss, so half of the tables are enough. Other tables are returned as they are.
    """
    half_count = (len(tables) + 1) // 2
    if not all(tables[k] == tables[-1 - k][::-1] for k in range(half_count)):
        return tables
    merged_tables = []
    for first, last in zip(tables[:half_count], tables[::-1], strict=False):
        merged_tables.append(tuple((a + b) / 2 for a, b in zip(first, last, strict=True)))
    return merged_tables
