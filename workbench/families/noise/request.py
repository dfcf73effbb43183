"""What is asked of noise on the integers or the reals, and the loss of noise in exact numbers."""

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

MAX_MINIMISED_EPSILON, MAX_MINIMISED_DELTA = 20, Fraction(999, 1000)  # where they are minimised
MIN_EPSILON, MAX_EPSILON = (
    Fraction(1, 10**9),
    700,
)  # ε but for 0: e^ε is a number of floating point, as are variances
MAX_RUNS_SENSITIVITY = (
    32  # sensitivity of noise for many runs, whose composition is proven at every shift
)
MIN_DELTA = Fraction(1, 10**12)
MAX_HUBER_BEND = 2_000  # of a huber loss of noise that is not clamped
NAMED_LOSSES = (
    "absolute",
    "squared",
    "error-rate",
    "pinball",
    "huber",
)  # the last two with a parameter


@dataclass(frozen=True)
class AnswerLoss:
    """What publishing o for the answer q costs of clamped noise: values[q][o] >= 0, by position in low..high.

    counted: the positions q that are answers, of which alone the worst is taken; None: all.
    """

    name: str
    values: tuple[Rationals, ...]
    counted_positions: Ints | None = None


def tabulate_difference_losses(name: str, unit: Fraction, span: int) -> dict[int, Fraction]:
    """Map every step in -span..span to a named loss of published minus true answer, in exact numbers.

    Args:
        name: absolute, squared, error-rate, pinball:τ or huber:h.
        unit: what a step is worth.
        span: the largest number of steps.

    Raises:
        ValueError: there is no such loss for noise.
    """
    loss = parse_loss(name)
    if loss.kind not in NAMED_LOSSES:
        raise ValueError(f"loss must be one of {', '.join(NAMED_LOSSES)} for noise. Got {name!r}.")
    parameter = ONE if loss.parameter is None else Fraction(str(loss.parameter))
    of_integers, scale, whole = build_integer_loss(loss.kind, parameter, [unit])
    steps = range(-span, span + 1)
    scaled = np.array([int(unit * scale) * step for step in steps], dtype=object)
    return {
        step: Fraction(int(value), whole)
        for step, value in zip(steps, of_integers(scaled), strict=True)
    }


@dataclass(frozen=True, kw_only=True, eq=False)
class NoiseAim(Aim):
    """What is asked of noise.

    Attributes:
        loss: absolute, squared, pinball:τ or huber:h (clamped also error-rate: losses of the published answer); or the
            losses of |η| = 0, 1, ... (clamped: of published minus true answer), the last one beyond; or those of every
            answer published for every other.
        unit: what a step of clamped answers is worth to a named loss.
        prior: the probabilities of clamped answers, or "worst": the largest mean loss of any answer. Default: uniform.
    """

    loss: str | Rationals | AnswerLoss = "squared"
    unit: Fraction = ONE
    prior: Rationals | str | None = None


@dataclass(frozen=True, kw_only=True, eq=False)
class NoiseHow(How):
    """How noise is found.

    Attributes:
        gap: the relative gap between loss and bound at which the search may stop.
        steps: the number of cells of a sensitivity, on the reals. Default: cells are refined.
    """

    gap: Fraction | None = None
    steps: int | None = None


@dataclass(frozen=True, kw_only=True, eq=False)
class NoiseRequest(Request):
    """The least mean loss of noise that is private whatever the answers are, or the least δ or ε within max_loss."""

    AIM = NoiseAim
    HOW = NoiseHow

    question: UnboundedNoise
    aim: NoiseAim
    how: NoiseHow

    def __post_init__(self) -> None:
        self._check_notion()
        self._check_loss()
        if self.claim.delta and not get_backend(self.how.solver).capabilities().duals:
            must(
                "solver",
                "one that gives dual values, from which the bound is computed",
                self.how.solver,
            )
        if self.aim.runs > 1:
            self._check_runs()
        if self.how.steps is not None and not self.is_on_reals:
            raise InvalidRequest("steps must be left out for noise on the integers.")

    def _check_notion(self) -> None:
        """That the budget is one of the notion."""
        if (
            self.aim.max_loss is not None
            and self.aim.max_loss <= 0
            and isinstance(self.aim.loss, str)
        ):
            must("max_loss", f"> 0 for the {self.aim.loss} loss", to_json_value(self.aim.max_loss))
        if self.aim.minimise != "loss" and (self.has_several_bounds or self.aim.runs > 1):
            must(
                "minimise",
                "loss but for one run under the notions dp and pure",
                repr(self.aim.minimise),
            )
        self.check_aim()
        for stick in self.claim.list_ratio_bounds(()):
            if stick.epsilon and (stick.delta or not self.has_several_bounds):
                check_epsilon_range(stick.epsilon, MIN_EPSILON, MAX_EPSILON)

    def _check_loss(self) -> None:
        """That the loss and the prior are of the question."""
        if self.is_on_reals and self.question.clamp is not None and self.aim.minimise != "loss":
            raise InvalidRequest(
                "clamp must be left out where epsilon or delta of noise on the reals is minimised."
            )
        clamp, clamped = self.clamp, self.question.clamp
        if self.is_on_reals and self.aim.loss not in ("absolute", "squared"):
            words = "absolute or squared for noise on the reals; others are designed in steps, on the integers, with the "
            must(
                "loss",
                f"{words}sensitivity counted in them",
                self.aim.loss if isinstance(self.aim.loss, str) else "a list",
            )
        if self.aim.unit != 1 and (clamp is None or not isinstance(self.aim.loss, str)):
            raise InvalidRequest("unit must be left out but for a named loss of clamped answers.")
        if isinstance(self.aim.loss, AnswerLoss) and (
            clamp is None or len(self.aim.loss.values) != clamp[1] - clamp[0] + 1
        ):
            must("loss", "of answers that are clamped", "others")
        if self.aim.loss == "error-rate" and clamp is None:
            must(
                "loss",
                "absolute or squared, or a list of losses, for noise that is not clamped",
                "error-rate",
            )
        if self.aim.prior is not None and clamped is None:
            got = "'worst'" if self.is_worst_case else f"{len(self.aim.prior)} weights"
            must("prior", "left out for noise that is not clamped", got)
        if self.is_worst_case and self.has_several_bounds and self.has_infinite_support:
            must(
                "prior",
                f"uniform or probabilities when notion is {self.claim.notion.name}",
                "'worst'",
            )
        if self.aim.prior is not None and not self.is_worst_case:
            answers = len(self.aim.prior) if clamp is None else clamp[1] - clamp[0] + 1
            if len(self.aim.prior) != answers:
                must(
                    "prior", f"{answers} weights, one for each clamped answer", len(self.aim.prior)
                )
            if not any(self.aim.prior):
                must("prior", "weights >= 0, not all 0", 0)
        assert self.is_on_reals or self.line_losses

    def check_max_loss(self) -> None:
        """Every loss > 0 asks for some budget."""

    @property
    def is_on_reals(self) -> bool:
        """Whether noise is real."""
        return isinstance(self.question, RealNoise)

    @property
    def clamp(self) -> tuple[int, int] | None:
        """The answers into which the sum is clamped."""
        return self.question.clamp if isinstance(self.question, IntegerNoise) else None

    @cached_property
    def has_infinite_support(self) -> bool:
        """Whether noise has to go on for ever: unless the budget is hockey sticks alone, each of δ > 0."""
        sticks = self.claim.list_ratio_bounds(())
        return not sticks or not all(stick.delta for stick in sticks)

    def _check_runs(self) -> None:
        question = self.question
        if not isinstance(question, IntegerNoise) or question.clamp is not None:
            must("runs", "1 but for noise on all integers", self.aim.runs)
        if question.sensitivity > MAX_RUNS_SENSITIVITY:
            must(
                "sensitivity",
                f"at most {MAX_RUNS_SENSITIVITY} for more than 1 run",
                question.sensitivity,
            )
        if not self.claim.delta or self.aim.loss not in ("absolute", "squared"):
            must(
                "runs",
                "1 where delta is 0, or the loss neither absolute nor squared",
                self.aim.runs,
            )
        if (
            not MIN_DELTA <= self.claim.delta <= Fraction(1, 2)
            or self.claim.epsilon > 10 * self.aim.runs
        ):
            within = f"1 unless delta is between {float(MIN_DELTA):g} and 0.5 and epsilon at most 10 for each run"
            must("runs", f"{within} (the search is in floating point)", self.aim.runs)
        if self.how.gap is not None:
            raise InvalidRequest(
                "gap must be left out for more than 1 run: the search ends where it finds no better."
            )

    @property
    def target_gap(self) -> float:
        """The relative gap between loss and bound that is asked for."""
        if self.how.gap is not None:
            return float(self.how.gap)
        if not self.is_on_reals:
            return 1e-5 if self.has_several_bounds and self.has_infinite_support else 1e-8
        return 2e-4 if self.claim.epsilon is None or self.claim.epsilon <= 2 else 2e-3

    @property
    def is_worst_case(self) -> bool:
        """Whether the loss is that of the worst of the clamped answers."""
        return isinstance(self.aim.prior, str)

    @property
    def loss_function(self) -> Callable[[int, int], Fraction]:
        """Of answer q and published answer o, by position, of clamped noise; its own losses are of |o - q|."""
        losses = self.aim.loss
        if isinstance(losses, AnswerLoss):
            table = losses.values
            return lambda q, o: table[q][o]
        if isinstance(losses, str):
            span = 0 if self.clamp is None else self.clamp[1] - self.clamp[0]
            known = tabulate_difference_losses(losses, self.aim.unit, span)
            return lambda q, o: known[o - q]
        return lambda q, o: losses[min(abs(o - q), len(losses) - 1)]

    @property
    def counted_positions(self) -> Sequence[int]:
        """The positions of clamped answers of which the worst is taken."""
        assert self.clamp is not None
        given = self.aim.loss.counted_positions if isinstance(self.aim.loss, AnswerLoss) else None
        return range(self.clamp[1] - self.clamp[0] + 1) if given is None else given

    @cached_property
    def line_losses(self) -> tuple[LineLoss, ...]:
        """The losses of noise, of which the largest mean counts: one, but for the worst answer, where there is one for
        each answer, or for each and its mirror image where the noise may be symmetric. None on the reals."""
        if self.is_on_reals:
            return ()
        with translate_errors():
            if self.clamp is None:
                return (self._unclamped(),)
            answers, at, alike = (
                self.clamp[1] - self.clamp[0] + 1,
                self.loss_function,
                not isinstance(self.aim.loss, AnswerLoss),
            )
            if not isinstance(self.aim.prior, str):
                return (
                    LineLoss.of_clamped_answers(
                        self.loss_name, answers, at, self.aim.prior, depends_on_difference=alike
                    ),
                )
            n = answers - 1
            each = [
                tuple(at(q, min(n, max(0, q + eta))) for eta in range(-n, n + 1))
                for q in self.counted_positions
            ]
            half = (len(each) + 1) // 2
            if all(each[k] == each[-1 - k][::-1] for k in range(half)):
                pairs = zip(each[:half], each[::-1], strict=False)
                each = [
                    tuple((a + b) / 2 for a, b in zip(first, last, strict=True))
                    for first, last in pairs
                ]
            return tuple(LineLoss(self.loss_name, 0, table, may_fall=True) for table in each)

    @cached_property
    def scale(self) -> LossScale:
        """That of the losses: the floor is what the best single noise value costs, the width what a noise of one
        sensitivity costs more, or, where that is nothing, the dearest one."""
        if self.is_on_reals:
            return LossScale(ZERO, float(self.question.sensitivity) ** POWERS[self.loss_name])
        d, floors, widths = self.question.sensitivity, list[Fraction](), list[Fraction]()
        for each in self.line_losses:
            near = each.table or (ZERO,)
            floors.append(min(near))
            widths.append(max(each.value_at(d), each.value_at(-d)))
        floor = max(floors)
        dearest = max((max(each.table) for each in self.line_losses if each.table), default=ZERO)
        width = next((top - floor for top in (max(widths), dearest) if top > floor), ZERO)
        return LossScale(floor, float(width))

    def _unclamped(self) -> LineLoss:
        """Of noise that is not clamped."""
        losses = self.aim.loss
        if not isinstance(losses, str):
            assert isinstance(losses, tuple)
            return LineLoss.from_values(losses)
        if losses in POWERS:
            return LineLoss.from_name(losses)
        bend = math.ceil(parse_loss(losses).parameter or 0) if losses.startswith("huber") else 0
        if bend > MAX_HUBER_BEND:
            must(
                "loss",
                f"huber:h with h at most {MAX_HUBER_BEND} for noise that is not clamped",
                losses,
            )
        return LineLoss.with_straight_tails(
            losses, tabulate_difference_losses(losses, ONE, bend + 1).__getitem__, bend
        )

    @property
    def loss_name(self) -> str:
        """In tables and certificates."""
        if isinstance(self.aim.loss, AnswerLoss):
            return self.aim.loss.name
        return self.aim.loss if isinstance(self.aim.loss, str) else "own"
