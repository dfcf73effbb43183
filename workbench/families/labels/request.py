"""What a request for a label randomizer may say, in exact numbers, checked before anything is built."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from fractions import Fraction
from functools import cached_property
from typing import Any, ClassVar

from models.losses import Loss, loss_named
from workbench.errors import InvalidRequest, must
from workbench.exact.numbers import ZERO
from workbench.exact.objects import Pair, Progress, Words
from workbench.families.budget import BudgetRequest
from workbench.families.channel.request import ChannelRequest
from workbench.families.loss_tables import LossTable, loss_table, signed_table
from workbench.families.outcome import translated_errors
from workbench.families.stated import Stated, simplest
from workbench.io.files import spelled
from workbench.mechanisms.finite_query import FiniteQuery
from workbench.mechanisms.label_randomizers.labels import Labels
from workbench.privacy.claim import Claim
from workbench.privacy.notions import notion as notion_named

Pairs = Sequence[Pair]

LARGEST, _LARGEST_UNBIASED = 30, 12  # ε
_MOST = 2_000_000  # cells of a program that memory and patience hold

# What a certificate may take, its repair included: each is a minute or two.
MASSES = 2_000_000  # of a channel whose rows are all compared for pure ε, which is decided output by output
ROWS = 1_500  # whose pairs are listed one by one
_WORK = 10_000_000  # ordered pairs times (outputs + _PAIR), where every pair is compared on its own
_PAIR = 200  # outputs that one more pair counts as


def check_size(k: int, m: int, pairs: Pairs | None, masses: int = MASSES) -> None:
    """Raise InvalidRequest when a channel of k labels and m outputs is too large, or too small, to be certified.

    pairs: those that are compared one by one; None for pure ε over all, which is decided output by output.
    """
    if k == 1:
        must("labels", "at least two for a neighbour relation", 1)
    if pairs is None:
        if k > (most := min(ROWS, masses // m)):
            must("labels", f"at most {most} for a certificate of {m} outputs", k)
    elif len(pairs) > (most := _WORK // (2 * (m + _PAIR))):
        got = f"{len(pairs)} ({k} labels)"
        must("pairs of neighbours", f"at most {most} for a certificate of {m} outputs", got)


@dataclass(frozen=True, kw_only=True, eq=False)
class LabelRequest(BudgetRequest):
    """The least-loss private label randomizer.

    epsilon: in (0, 30]; with notion "metric" per unit of |y - y'|. method: "bins", "lp" or "unbiased"; what follows
    is for "lp" only. loss: a name or Loss; of lp also a matrix (labels, outputs), or a function of an output and a
    label. outputs: increasing published values, the labels where None. neighbours: "all" pairs, "consecutive"
    ones, or pairs of label positions. notion: "pure", "dp" with delta, "metric", or one of several bounds, with its own
    parameters. constraints: names of `models.channel.CONSTRAINTS`. runs: that the budget is for in all, with notion
    "dp". may_use_bins: whether the user left the method open, so that bins at delta = 0 may answer a request with one.
    """

    question: Labels
    epsilon: Fraction | None = None
    delta: Fraction = ZERO
    loss: Any = "squared"
    method: str = "bins"
    outputs: tuple[float, ...] | None = None
    neighbours: Any = "all"
    notion: str = "pure"
    constraints: Words = ()
    progress: Progress | None = None
    may_use_bins: bool = False

    @property
    def named_loss(self) -> Loss:
        """The loss as a function, where it is no table. Raises ValueError."""
        return loss_named(self.loss)

    @property
    def heading(self) -> str:
        """See `Request.heading`."""
        return f"Randomizer of {self.question}, method {self.method}"

    @property
    def loss_name(self) -> str:
        """In words."""
        return self.named_loss.name if isinstance(self.loss, (str, Loss)) else self.channel.losses.name

    @cached_property
    def claim(self) -> Claim:
        """What a mechanism is audited for: by distance, a budget for every pair."""
        return self.channel.claim if self.method == "lp" else Claim(self.notion, self.epsilon, self.delta)

    @property
    def pairs(self) -> Pairs | None:
        """Unordered neighbouring positions; None for all."""
        return self.channel.pairs if self.method == "lp" else None

    @cached_property
    def channel(self) -> ChannelRequest:
        """The request of lp, on the exact values of labels, outputs and prior. Raises InvalidRequest."""
        labels, prior = ([*map(Fraction, array.tolist())] for array in (self.question.values, self.question.prior))
        outputs = labels if self.outputs is None else [*map(Fraction, self.outputs)]
        neighbours = self.neighbours
        if not isinstance(neighbours, str):
            k = len(labels)
            wrong = [pair for pair in neighbours if pair[0] == pair[1] or not all(0 <= at < k for at in pair)]
            if wrong or not neighbours:
                got = wrong[0] if wrong else "none"
                must("neighbours", f"pairs of different positions in 0..{k - 1}", got)
            neighbours = [[labels[i], labels[j]] for i, j in neighbours]
        question = FiniteQuery(labels, outputs, neighbours=neighbours, prior=prior)
        same = {each.name for each in fields(BudgetRequest)} - {"question", "family"}
        given = {name: getattr(self, name) for name in (*same, "constraints")}
        return _ChannelOfLabels(question=question, losses=self._losses(question), **given)

    def _losses(self, question: FiniteQuery) -> LossTable:
        if isinstance(self.loss, (str, Loss)):
            return signed_table(question, self.named_loss)
        return loss_table(question, self.loss)

    def stated(self) -> Stated:
        """The program of lp in polynomials of e^ε. Raises InvalidRequest."""
        if self.method != "lp":
            raise InvalidRequest(f"A formula needs method lp, a channel onto given outputs. Got {self.method}.")
        given = self.channel.question
        prior = simplest(given.prior or ())
        pairs = "all" if given.pairs is None else [[given.inputs[i], given.inputs[j]] for i, j in given.pairs]
        question = FiniteQuery(given.inputs, given.outputs, neighbours=pairs, prior=prior)
        return replace(self.channel, question=question, losses=self._losses(question)).stated()

    def __post_init__(self) -> None:
        measure = notion_named(self.notion)
        if not self.cut:
            self.check_one_bound()
        if self.epsilon is not None and self.epsilon > LARGEST:
            most = f"at most {LARGEST} (e^epsilon is a coefficient of the program)"
            must("epsilon", most, spelled(self.epsilon))
        self.check_runs()
        if self.method == "lp":
            k, m = self.question.k, self.question.k if self.outputs is None else len(self.outputs)
            if m * k > _MOST:
                must("the channel", f"of at most {_MOST} masses", f"{k} labels and {m} outputs")
            if self.certified or k == 1:
                check_size(k, m, None if k == 1 else self.pairs)
            _ = self.channel  # checked when it is made
            return
        if not isinstance(self.loss, (str, Loss)):
            must("loss", f"a name where method is {self.method}", "a matrix or function")
        with translated_errors():
            self.named_loss(1.0, self.question.values[:1])
        if self.method == "bins" and self.solver != "highs":
            must("solver", "left out with method bins, which runs none (method lp runs one)", self.solver)
        more = self.outputs is not None or self.neighbours != "all" or self.constraints
        if more or not measure.ratio_decides({"delta": self.delta}):
            wanted = "lp for other outputs, neighbours, notions and constraints"
            must("method", wanted, repr(self.method))
        if self.method == "unbiased":
            self._check_unbiased()

    def _check_unbiased(self) -> None:
        if self.named_loss.kind != "squared":
            must("loss", "squared for the unbiased randomizer", repr(self.named_loss.name))
        if self.epsilon is not None and self.epsilon > _LARGEST_UNBIASED:
            most = f"at most {_LARGEST_UNBIASED} for the unbiased randomizer (its program mixes 1 and e^ε)"
            must("epsilon", most, spelled(self.epsilon))
        if self.question.k < 2:
            must("labels", "at least two for the unbiased randomizer", self.question.k)


class _ChannelOfLabels(ChannelRequest):
    """Labels have wider limits of their own."""

    LARGEST = LARGEST
    LEAST = ZERO
    MOST = 2 * _MOST
    RECORD: ClassVar[Mapping[str, str]] = {"method": "lp"}
