"""What a request for a label randomizer may say, in exact numbers, checked before anything is built."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cached_property
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from models.losses import Loss, OwnLoss, loss_named
from solvers.backend import Options
from workbench.errors import InvalidRequest
from workbench.exact.numbers import nearest_float
from workbench.families.base import Request
from workbench.families.channel.losses import called, signed_table
from workbench.families.channel.request import ChannelRequest
from workbench.families.composed import check_runs
from workbench.families.convex_notion import PARAMETERS
from workbench.families.labels.relation import Neighbours, Pairs, check_size, pairs_of
from workbench.families.outcome import translated_errors
from workbench.families.requirements import ratio_notions
from workbench.io.files import spelled
from workbench.mechanisms.finite_query import FiniteQuery
from workbench.mechanisms.label_randomizers.labels import Labels
from workbench.mechanisms.points import number_table
from workbench.privacy.claim import Claim
from workbench.privacy.notions import Notion
from workbench.privacy.notions import notion as named

__all__ = ["LARGEST", "LabelRequest", "own_loss"]

_PRINTED = 4000  # labels up to which the O(k³) algorithm is run
LARGEST, _LARGEST_UNBIASED = 30, 12  # ε
_MOST = 2_000_000  # cells of a program that memory and patience hold


@dataclass(frozen=True, kw_only=True, eq=False)
class LabelRequest(Request):
    """The least-loss private label randomizer.

    epsilon: in (0, 30]; with notion "metric" per unit of |y - y'|. method: "bins", "printed", "lp" or "unbiased"; what
    follows is for "lp" only. outputs: increasing published values, the labels where None. neighbours: "all" pairs,
    "consecutive" ones, or pairs of label positions. notion: "pure", "dp" with delta, or "metric". constraints: names of
    `models.channel.CONSTRAINTS`. runs: that the budget is for in all, with notion "dp".
    """

    minimise: ClassVar[str] = "loss"

    question: Labels
    epsilon: Fraction | None = None
    alpha: Fraction | None = None
    rho: Fraction | None = None
    mu: Fraction | None = None
    curve: Any = None
    tradeoff: Any = None
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
        return self.channel.claim if self.method == "lp" else Claim(self.notion, self.epsilon, self.delta)

    @property
    def grid(self) -> NDArray[np.float64]:
        """The outputs of lp. Shape (m,)."""
        return self.question.values if self.outputs is None else np.array(self.outputs)

    @cached_property
    def channel(self) -> ChannelRequest:
        """The request of lp, on the exact values of labels, outputs and prior. Raises InvalidRequest."""
        labels, prior = ([*map(Fraction, array.tolist())] for array in (self.question.values, self.question.prior))
        neighbours: Any = self.neighbours
        if not isinstance(neighbours, str):
            neighbours = [[labels[i], labels[j]] for i, j in self.pairs or ()]
        question = FiniteQuery(labels, [*map(Fraction, self.grid.tolist())], neighbours=neighbours, prior=prior)
        same = ("notion", "epsilon", "delta", "constraints", "runs", "solver", "options", "check", *PARAMETERS[1:])
        table = signed_table(question, self.named_loss)
        return _ChannelOfLabels(question=question, losses=table, **{name: getattr(self, name) for name in same})

    def at(self, point: Mapping[str, Any]) -> Self:
        """The same request at other values of hot options. Raises InvalidRequest."""
        return replace(self, **{name: value for name, value in point.items() if value is not None})

    def __post_init__(self) -> None:
        with translated_errors():
            if not isinstance(self.loss, OwnLoss):
                self.named_loss(1.0, self.question.values[:1])
        if self.epsilon is None and "epsilon" in self.measure.parameters:
            raise InvalidRequest("epsilon must be given. Got none.")
        if self.epsilon is not None and self.epsilon > LARGEST:
            InvalidRequest.must(
                "epsilon", f"at most {LARGEST} (e^epsilon is a coefficient of the program)", spelled(self.epsilon)
            )
        if self.delta and not self.measure.has_delta and self.notion in ratio_notions():
            InvalidRequest.must("delta", f"0 when notion is {self.notion}", spelled(self.delta))
        if self.runs > 1:
            check_runs(self)
        plain = (
            self.outputs is None and self.neighbours == "all" and not self.constraints and self.measure.ratio_decides
        )
        if self.method != "lp" and not plain:
            InvalidRequest.must(
                "method", "lp for other outputs, neighbours, notions and constraints", repr(self.method)
            )
        if self.method == "printed" and self.question.k > _PRINTED:
            InvalidRequest.must("method", f"bins for more than {_PRINTED} labels (printed takes O(k³))", "'printed'")
        if self.method == "unbiased":
            self._check_unbiased()
        if self.method == "lp":
            self._check_size()
            _ = self.channel  # checked when it is made

    def _check_size(self) -> None:
        k, m, listed = self.question.k, self.grid.size, len(self.pairs or ())
        if m * max(k, listed) > _MOST:
            sizes = f"{k} labels, {m} outputs and {listed} listed pairs"
            InvalidRequest.must("the channel", f"of at most {_MOST} masses or compared pairs of them", sizes)
        if self.certified or k == 1:
            check_size(k, m, self.pairs)

    def _check_unbiased(self) -> None:
        if self.named_loss.kind != "squared":
            InvalidRequest.must("loss", "squared for the unbiased randomizer", repr(self.named_loss.name))
        if self.epsilon is not None and self.epsilon > _LARGEST_UNBIASED:
            most = f"at most {_LARGEST_UNBIASED} for the unbiased randomizer (its program mixes 1 and e^ε)"
            InvalidRequest.must("epsilon", most, spelled(self.epsilon))
        if self.question.k < 2:
            InvalidRequest.must("labels", "at least two for the unbiased randomizer", self.question.k)


class _ChannelOfLabels(ChannelRequest):
    """Labels have wider limits of their own."""

    LARGEST: ClassVar[int] = LARGEST
    LEAST: ClassVar[Fraction] = Fraction(0)
    MOST: ClassVar[int] = 2 * _MOST
    RECORD: ClassVar[Mapping[str, str]] = {"method": "lp"}


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
        each = [
            [called(given, "an output and a label", Fraction(o), Fraction(y)) for o in outputs.tolist()]
            for y in question.values.tolist()
        ]
    else:
        each = number_table(given, "loss", (question.k, outputs.size))
    table = np.array([[nearest_float(value) for value in row] for row in each])
    if not (table <= 1e300).all():
        InvalidRequest.must("every entry of loss", "a finite number >= 0", table.max())
    return OwnLoss("own", None, outputs, question.values, table)
