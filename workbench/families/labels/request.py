"""What a request for a label randomizer may say, in exact numbers, checked before anything is built."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any, ClassVar

from workbench.errors import InvalidRequest, must
from workbench.exact.numbers import ZERO
from workbench.exact.objects import Pair, Strings
from workbench.families.channel.request import ChannelAim, ChannelRequest
from workbench.io.files import format_fraction
from workbench.models.losses import Loss, parse_loss
from workbench.pipeline.loss_tables import LossTable, make_loss_table, make_signed_table
from workbench.pipeline.outcome import translate_errors
from workbench.pipeline.request import Aim, How, Request
from workbench.pipeline.stated import FormulaProgram, simplify_shares
from workbench.privacy.claim import Claim
from workbench.questions.finite_query import FiniteQuery
from workbench.questions.labels import Labels

Pairs = Sequence[Pair]

MAX_LABEL_EPSILON, _MAX_UNBIASED_EPSILON = 30, 12  # ε
_MAX_PROGRAM_MASSES = 2_000_000  # cells of a program that memory and patience hold

# What a certificate may take, its repair included: each is a minute or two.
MAX_CERTIFIED_MASSES = 2_000_000  # of a channel whose rows are all compared for pure ε, which is decided output by output
MAX_CERTIFIED_ROWS = 1_500  # whose pairs are listed one by one
_MAX_PAIR_WORK = (
    10_000_000  # ordered pairs times (outputs + _PAIR), where every pair is compared on its own
)
_OUTPUTS_PER_PAIR = 200  # outputs that one more pair counts as


def check_certificate_size(
    k: int, m: int, pairs: Pairs | None, masses: int = MAX_CERTIFIED_MASSES
) -> None:
    """Raise InvalidRequest when a channel of k labels and m outputs is too large, or too small, to be certified.

    pairs: those that are compared one by one; None for pure ε over all, which is decided output by output.
    """
    if k == 1:
        must("labels", "at least two for a neighbour relation", 1)
    if pairs is None:
        if k > (most := min(MAX_CERTIFIED_ROWS, masses // m)):
            must("labels", f"at most {most} for a certificate of {m} outputs", k)
    elif len(pairs) > (most := _MAX_PAIR_WORK // (2 * (m + _OUTPUTS_PER_PAIR))):
        got = f"{len(pairs)} ({k} labels)"
        must("pairs of neighbours", f"at most {most} for a certificate of {m} outputs", got)


@dataclass(frozen=True, kw_only=True, eq=False)
class LabelAim(Aim):
    """What is asked of a randomizer of labels.

    Attributes:
        loss: a name or Loss; of method lp also a matrix (labels, outputs), or a function of an output and a label.
        outputs: the increasing values that method lp may publish. Default: the labels.
        neighbours: of method lp "all" pairs, "consecutive" ones, or pairs of label positions.
        constraints: of method lp names of `workbench.models.channel.program.CONSTRAINTS`.
    """

    loss: Any = "squared"
    outputs: tuple[float, ...] | None = None
    neighbours: Any = "all"
    constraints: Strings = ()


@dataclass(frozen=True, kw_only=True, eq=False)
class LabelHow(How):
    """How a randomizer of labels is found.

    Attributes:
        method: "bins", "lp" or "unbiased".
        may_use_bins: whether the user left the method open, so that bins at delta = 0 may answer a request with a δ.
    """

    method: str = "bins"
    may_use_bins: bool = False


@dataclass(frozen=True, kw_only=True, eq=False)
class LabelRequest(Request):
    """The least-loss private label randomizer. With notion "metric" the ε of the claim is per unit of |y - y'|."""

    AIM = LabelAim
    HOW = LabelHow

    question: Labels
    aim: LabelAim
    how: LabelHow

    @property
    def named_loss(self) -> Loss:
        """The loss as a function, where it is no table. Raises ValueError."""
        return parse_loss(self.aim.loss)

    @property
    def heading(self) -> str:
        """See `Request.heading`."""
        return f"Randomizer of {self.question}, method {self.how.method}"

    @property
    def loss_name(self) -> str:
        """In words."""
        return (
            self.named_loss.name
            if isinstance(self.aim.loss, (str, Loss))
            else self.channel.losses.name
        )

    @cached_property
    def audited_claim(self) -> Claim:
        """See `Request.audited_claim`; with a budget for every pair where ε is per unit of distance."""
        return self.channel.audited_claim if self.how.method == "lp" else super().audited_claim

    @property
    def pairs(self) -> Pairs | None:
        """Unordered neighbouring positions; None for all."""
        return self.channel.pairs if self.how.method == "lp" else None

    @cached_property
    def channel(self) -> ChannelRequest:
        """The request of lp, on the exact values of labels, outputs and prior. Raises InvalidRequest."""
        labels, prior = (
            [*map(Fraction, array.tolist())]
            for array in (self.question.values, self.question.prior)
        )
        outputs = labels if self.aim.outputs is None else [*map(Fraction, self.aim.outputs)]
        neighbours = self.aim.neighbours
        if not isinstance(neighbours, str):
            k = len(labels)
            wrong = [
                pair
                for pair in neighbours
                if pair[0] == pair[1] or not all(0 <= at < k for at in pair)
            ]
            if wrong or not neighbours:
                got = wrong[0] if wrong else "none"
                must("neighbours", f"pairs of different positions in 0..{k - 1}", got)
            neighbours = [[labels[i], labels[j]] for i, j in neighbours]
        question = FiniteQuery(labels, outputs, neighbours=neighbours, prior=prior)
        aim, how = self.aim, self.how
        return _LabelChannelRequest(
            question=question,
            claim=self.claim,
            aim=ChannelAim(
                losses=self._tabulate_losses(question),
                minimise=aim.minimise,
                max_loss=aim.max_loss,
                runs=aim.runs,
                constraints=aim.constraints,
            ),
            how=How(solver=how.solver, options=how.options, check=how.check),
        )

    def _tabulate_losses(self, question: FiniteQuery) -> LossTable:
        if isinstance(self.aim.loss, (str, Loss)):
            return make_signed_table(question, self.named_loss)
        return make_loss_table(question, self.aim.loss)

    def formula_program(self) -> FormulaProgram:
        """The program of lp in polynomials of e^ε. Raises InvalidRequest."""
        if self.how.method != "lp":
            raise InvalidRequest(
                f"A formula needs method lp, a channel onto given outputs. Got {self.how.method}."
            )
        given = self.channel.question
        prior = simplify_shares(given.prior or ())
        pairs = (
            "all"
            if given.pairs is None
            else [[given.inputs[i], given.inputs[j]] for i, j in given.pairs]
        )
        question = FiniteQuery(given.inputs, given.outputs, neighbours=pairs, prior=prior)
        return self.channel.with_values(
            question=question, losses=self._tabulate_losses(question)
        ).formula_program()

    def __post_init__(self) -> None:
        measure = self.claim.notion
        if not self.has_several_bounds:
            self.check_aim()
        if self.claim.epsilon is not None and self.claim.epsilon > MAX_LABEL_EPSILON:
            most = f"at most {MAX_LABEL_EPSILON} (e^epsilon is a coefficient of the program)"
            must("epsilon", most, format_fraction(self.claim.epsilon))
        self.check_runs()
        if self.how.method == "lp":
            k, m = (
                self.question.k,
                self.question.k if self.aim.outputs is None else len(self.aim.outputs),
            )
            if m * k > _MAX_PROGRAM_MASSES:
                must(
                    "the channel",
                    f"of at most {_MAX_PROGRAM_MASSES} masses",
                    f"{k} labels and {m} outputs",
                )
            if self.wants_certificate or k == 1:
                check_certificate_size(k, m, None if k == 1 else self.pairs)
            _ = self.channel  # checked when it is made
            return
        if not isinstance(self.aim.loss, (str, Loss)):
            must("loss", f"a name where method is {self.how.method}", "a matrix or function")
        with translate_errors():
            self.named_loss(1.0, self.question.values[:1])
        if self.how.method == "bins" and self.how.solver != "highs":
            must(
                "solver",
                "left out with method bins, which runs none (method lp runs one)",
                self.how.solver,
            )
        more = self.aim.outputs is not None or self.aim.neighbours != "all" or self.aim.constraints
        if more or not measure.is_decided_by_ratio({"delta": self.claim.delta}):
            wanted = "lp for other outputs, neighbours, notions and constraints"
            must("method", wanted, repr(self.how.method))
        if self.how.method == "unbiased":
            self._check_unbiased()

    def _check_unbiased(self) -> None:
        if self.named_loss.kind != "squared":
            must("loss", "squared for the unbiased randomizer", repr(self.named_loss.name))
        if self.claim.epsilon is not None and self.claim.epsilon > _MAX_UNBIASED_EPSILON:
            most = f"at most {_MAX_UNBIASED_EPSILON} for the unbiased randomizer (its program mixes 1 and e^ε)"
            must("epsilon", most, format_fraction(self.claim.epsilon))
        if self.question.k < 2:
            must("labels", "at least two for the unbiased randomizer", self.question.k)


class _LabelChannelRequest(ChannelRequest):
    """Labels have wider limits of their own."""

    MAX_EPSILON = MAX_LABEL_EPSILON
    MIN_EPSILON = ZERO
    MAX_COMPARISONS = 2 * _MAX_PROGRAM_MASSES
    CERTIFICATE_RECORD: ClassVar[Mapping[str, str]] = {"method": "lp"}
