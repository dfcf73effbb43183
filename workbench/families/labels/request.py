"""What a request for a label randomizer may say, in exact numbers, checked before anything is built."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from models.losses import Loss, OwnLoss, loss_named
from solvers.backend import Options
from workbench.errors import InvalidRequest
from workbench.exact.numbers import nearest_float
from workbench.families.base import Request
from workbench.families.channel.losses import called
from workbench.families.composed import check_runs
from workbench.families.labels.relation import Neighbours, Pairs, budgets_of, groups_of, pairs_of
from workbench.families.outcome import translated_errors
from workbench.io.files import spelled
from workbench.mechanisms.label_randomizers.labels import Labels
from workbench.mechanisms.points import number_table
from workbench.privacy.claim import Claim
from workbench.privacy.notions import Notion
from workbench.privacy.notions import notion as named

__all__ = ["LARGEST", "LabelRequest", "own_loss"]

_PRINTED = 4000  # labels up to which the O(k³) algorithm is run
LARGEST, _LARGEST_UNBIASED = 30, 12  # ε
_CONIC = "cvxpy:clarabel"  # what answers for the unbiased randomizer where the solver is left at its default


@dataclass(frozen=True, kw_only=True, eq=False)
class LabelRequest(Request):
    """The least-loss private label randomizer.

    epsilon: in (0, 30]; with notion "metric" per unit of |y - y'|. method: "bins", "printed", "lp" or "unbiased"; what
    follows is for "lp" only. outputs: increasing published values, the labels where None. neighbours: "all" pairs,
    "consecutive" ones, or pairs of label positions. notion: "pure", "dp" with delta, or "metric". constraints: names of
    `models.channel.CONSTRAINTS`. runs: that the budget is for in all, with notion "dp".
    """

    minimise: ClassVar[str] = "error"

    question: Labels
    epsilon: Fraction
    loss: Loss | str = "squared"
    method: str = "bins"
    outputs: tuple[float, ...] | None = None
    neighbours: Neighbours = "all"
    notion: str = "pure"
    delta: Fraction = Fraction(0)
    constraints: tuple[str, ...] = ()
    solver: str = "highs"
    options: Options = field(default_factory=Options)
    progress: Callable[[str], None] | None = None
    runs: int = 1

    @property
    def named_loss(self) -> Loss:
        """The loss as a function."""
        return self.loss if isinstance(self.loss, Loss) else loss_named(self.loss)

    @property
    def measure(self) -> Notion:
        """The notion itself."""
        return named(self.notion)

    @cached_property
    def pairs(self) -> Pairs | None:
        """Unordered neighbouring positions; None for all."""
        return pairs_of(self.neighbours, self.notion, self.question.k)

    @cached_property
    def claim(self) -> Claim:
        """What a mechanism is audited for: by distance, a budget for every pair."""
        epsilon: Fraction | Mapping[tuple[int, int], Fraction] = self.epsilon
        if self.measure.per_distance:
            epsilon = budgets_of(self.question, self.epsilon)
        return Claim(self.notion, epsilon, self.delta)

    def __post_init__(self) -> None:
        self.__dict__.pop("claim", None)  # of the request that this one was copied from
        object.__setattr__(self, "constraints", tuple(dict.fromkeys(self.constraints)))
        with translated_errors():
            if not isinstance(self.loss, OwnLoss):
                self.named_loss(1.0, self.question.values[:1])
        if self.epsilon > LARGEST:
            InvalidRequest.must(
                "epsilon", f"at most {LARGEST} (e^epsilon is a coefficient of the program)", spelled(self.epsilon)
            )
        if self.delta and not self.measure.has_delta:
            InvalidRequest.must("delta", f"0 when notion is {self.notion}", spelled(self.delta))
        if self.runs > 1:
            check_runs(self)
        plain = (
            self.outputs is None and self.neighbours == "all" and not self.constraints and self.measure.ratio_decides
        )
        if self.method != "lp" and not plain:
            InvalidRequest.must("method", "lp for other outputs, neighbours, notions and constraints",
                                repr(self.method))  # fmt: skip
        if self.method == "printed" and self.question.k > _PRINTED:
            InvalidRequest.must("method", f"bins for more than {_PRINTED} labels (printed takes O(k³))", "'printed'")
        if self.method == "unbiased":
            self._check_unbiased()
        pairs = self.pairs
        if self.measure.per_distance:
            largest = max(groups_of(self.question, pairs, self.notion, self.epsilon)[1], default=0.0)
            if largest > LARGEST:
                InvalidRequest.must("epsilon", f"at most {LARGEST} for every pair of neighbours", largest)

    def _check_unbiased(self) -> None:
        if self.named_loss.kind != "squared":
            InvalidRequest.must("loss", "squared for the unbiased randomizer", repr(self.named_loss.name))
        if self.epsilon > _LARGEST_UNBIASED:
            most = f"at most {_LARGEST_UNBIASED} for the unbiased randomizer (its program mixes 1 and e^ε)"
            InvalidRequest.must("epsilon", most, spelled(self.epsilon))
        if self.question.k < 2:
            InvalidRequest.must("labels", "at least two for the unbiased randomizer", self.question.k)
        if self.solver == "highs":  # the default of every method; it knows no cones
            object.__setattr__(self, "solver", _CONIC)


def own_loss(given: Any, question: Labels, values: Mapping[str, Any]) -> Loss | str:
    """A matrix (labels, outputs) or a function (output, label) as a loss; what is a loss already as it is.

    Raises InvalidRequest.
    """
    if isinstance(given, (str, Loss)):
        return given
    if values["method"] != "lp":
        InvalidRequest.must("loss", f"a name where method is {values['method']}", "a matrix or function")
    outputs = question.values if values["outputs"] is None else np.array(values["outputs"])
    if callable(given):
        each = [[called(given, "an output and a label", Fraction(o), Fraction(y)) for o in outputs.tolist()]
                for y in question.values.tolist()]  # fmt: skip
    else:
        each = number_table(given, "loss", (question.k, outputs.size))
    table = np.array([[nearest_float(value) for value in row] for row in each])
    if not (table <= 1e300).all():
        InvalidRequest.must("every entry of loss", "a finite number >= 0", table.max())
    return OwnLoss("own", None, outputs, question.values, table)
