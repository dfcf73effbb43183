"""What is asked of noise on the integers or the reals, and the cost of noise in exact numbers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import TYPE_CHECKING

from solvers.backend import Options, backend
from workbench.errors import InvalidRequest
from workbench.families.base import Request
from workbench.families.outcome import translated_errors
from workbench.mechanisms.integer_noise import IntegerNoise, UnboundedNoise
from workbench.mechanisms.real_noise import RealNoise

if TYPE_CHECKING:
    from models.integer_noise import LineCost

__all__ = ["NAMED", "AdditiveRequest"]

NAMED = ("absolute", "squared", "zero-one")
_LOSS: dict[str, Callable[[int], int]] = {
    "absolute": abs, "squared": lambda r: r * r, "zero-one": lambda r: int(r != 0),
}  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class AdditiveRequest(Request):
    """The least mean cost of noise that is (ε, δ)-private whatever the answers are.

    cost: absolute, squared (clamped also zero-one: losses of the published answer), or the costs of |η| = 0, 1, 2, ...,
    the last one beyond; prior: of clamped answers, uniform by default; gap: relative, between cost and bound; steps: of
    a sensitivity, of the reals; found by refining where None; runs: that the budget is for in all.
    """

    question: UnboundedNoise
    epsilon: Fraction
    delta: Fraction
    notion: str = "dp"
    cost: str | tuple[Fraction, ...] = "squared"
    prior: tuple[Fraction, ...] | None = None
    gap: Fraction | None = None
    steps: int | None = None
    runs: int = 1
    solver: str = "highs"
    options: Options = Options()  # noqa: RUF009  (frozen)

    def __post_init__(self) -> None:
        question, reals = self.question, isinstance(self.question, RealNoise)
        clamp = question.clamp if isinstance(question, IntegerNoise) else None
        if self.notion == "pure" and self.delta:
            InvalidRequest.must("delta", "0 for the notion pure", float(self.delta))
        own = not isinstance(self.cost, str)
        if own and (reals or clamp is not None):
            raise InvalidRequest("cost must be a name for noise on the reals and clamped noise. Got a list.")
        if self.cost == "zero-one" and clamp is None:
            InvalidRequest.must(
                "cost", "absolute or squared, or a list of costs, for noise that is not clamped", "zero-one"
            )
        if self.prior is not None:
            answers = 0 if clamp is None else clamp[1] - clamp[0] + 1
            if clamp is None or len(self.prior) != answers or not any(self.prior):
                InvalidRequest.must("prior", f"{answers} probabilities, one for each clamped answer", len(self.prior))
        if self.delta and not backend(self.solver).capabilities().duals:
            InvalidRequest.must("solver", "one that gives dual values, from which the bound is computed", self.solver)
        if self.runs > 1:
            self._check_runs()
        if self.steps is not None and not reals:
            raise InvalidRequest("steps must be left out for noise on the integers.")
        if not self.delta and not (reals or self.line_cost.even):
            raise InvalidRequest("delta must be > 0 where the cost of noise is not the same at η and -η.")
        if not self.delta and own:
            raise InvalidRequest("delta must be > 0 for costs given as a list, which end somewhere.")

    def _check_runs(self) -> None:
        question = self.question
        if not isinstance(question, IntegerNoise) or question.clamp is not None or question.sensitivity != 1:
            InvalidRequest.must("runs", "1 but for noise on all integers of sensitivity 1", self.runs)
        if not self.delta or self.notion != "dp" or self.cost not in ("absolute", "squared"):
            InvalidRequest.must("runs", "1 where delta is 0, or the cost neither absolute nor squared", self.runs)
        if self.gap is not None:
            raise InvalidRequest("gap must be left out for more than 1 run: the search ends where it finds no better.")

    @property
    def target(self) -> float:
        """The relative gap between cost and bound that is asked for."""
        if self.gap is not None:
            return float(self.gap)
        if isinstance(self.question, IntegerNoise):
            return 1e-8
        return 2e-4 if self.epsilon <= 2 else 2e-3

    @cached_property
    def line_cost(self) -> LineCost:
        """The cost of noise on the integers, as a model takes it."""
        from models.integer_noise import LineCost

        with translated_errors():
            if not isinstance(self.cost, str):
                return LineCost.own(self.cost)
            clamp = self.question.clamp if isinstance(self.question, IntegerNoise) else None
            if clamp is None:
                return LineCost.named(self.cost)
            loss = _LOSS[self.cost]
            return LineCost.clamped(self.cost, clamp[1] - clamp[0] + 1, lambda r: Fraction(loss(r)), self.prior)

    @property
    def cost_name(self) -> str:
        """In tables and certificates."""
        return self.cost if isinstance(self.cost, str) else "own"
