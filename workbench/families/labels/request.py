"""State a request for a label randomizer in exact numbers, and check it.

There are four methods:

bins            RR-on-Bins (randomized response on intervals of labels): any real outputs, pure ε,
                all labels are neighbours
unbiased        the mean output is the label: any real outputs, pure ε, all labels are neighbours
rr-with-prior   randomized response among the likeliest labels (Ghazi et al. 2021), pure ε, all
                labels are neighbours
lp              a channel with listed outputs, any notion and any neighbours (`channel_request`)

Where to change: a limit on sizes is a constant below. A further option needs a field of `LabelAim`
or `LabelHow`, the Option in `family`, and a check in `LabelRequest.__post_init__`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any, ClassVar

from workbench.errors import must
from workbench.exact.numbers import ZERO
from workbench.exact.objects import Pair, Strings
from workbench.families.channel.request import ChannelAim, ChannelRequest
from workbench.io.files import format_fraction
from workbench.models.losses import Loss, parse_loss
from workbench.pipeline.formula_program import FormulaProgram, simplify_shares
from workbench.pipeline.loss_tables import LossTable, make_loss_table, make_signed_table
from workbench.pipeline.outcome import translate_errors
from workbench.pipeline.request import Aim, How, Request
from workbench.privacy.claim import Claim
from workbench.questions.finite_query import FiniteQuery
from workbench.questions.labels import Labels

Pairs = Sequence[Pair]

# A larger ε is refused, because e^ε is a coefficient of the program.
MAX_LABEL_EPSILON = 30
# The same limit for the unbiased randomizer, whose program has coefficients of the sizes 1 and e^ε.
_MAX_UNBIASED_EPSILON = 12
# A program with more masses takes too much memory and time.
_MAX_PROGRAM_MASSES = 2_000_000

# The limits of certificates keep the repair and the certificate within a minute or two.

# A certificate of pure ε, which is decided output by output, has at most this many masses.
MAX_CERTIFIED_MASSES = 2_000_000
# A certificate that lists its pairs one by one has at most this many rows.
MAX_CERTIFIED_ROWS = 1_500
# A certificate is refused above this work: ordered pairs times (outputs + _OUTPUTS_PER_PAIR).
_MAX_PAIR_WORK = 10_000_000
# One more pair takes as much work as this many outputs.
_OUTPUTS_PER_PAIR = 200


def check_certificate_size(
    k: int, m: int, pairs: Pairs | None, masses: int = MAX_CERTIFIED_MASSES
) -> None:
    """Check that a channel can be certified.

    Args:
        k: number of labels.
        m: number of outputs.
        pairs: unordered pairs of neighbours that are compared one by one. None: pure ε over all
            pairs, which is decided output by output.
        masses: largest number k m of masses that is accepted if pairs is None.

    Raises:
        InvalidRequest: the channel is too large, or it has only one label.
    """
    if k == 1:
        must("labels", "at least two for a neighbour relation", 1)
    if pairs is None:
        max_labels = min(MAX_CERTIFIED_ROWS, masses // m)
        if k > max_labels:
            must("labels", f"at most {max_labels} for a certificate of {m} outputs", k)
        return
    max_pairs = _MAX_PAIR_WORK // (2 * (m + _OUTPUTS_PER_PAIR))
    if len(pairs) > max_pairs:
        rule = f"at most {max_pairs} for a certificate of {m} outputs"
        must("pairs of neighbours", rule, f"{len(pairs)} ({k} labels)")


@dataclass(frozen=True, kw_only=True, eq=False)
class LabelAim(Aim):
    """The aim of a request for a label randomizer.

    Attributes:
        loss: a name or Loss; for method lp also a matrix (labels, outputs), or a function of an
            output and a label.
        outputs: for method lp: increasing values that may be published. Default: the labels.
        neighbours: for method lp: "all", "consecutive", or pairs of label positions.
        constraints: for method lp: names of `workbench.models.channel.program.CONSTRAINTS`.
    """

    loss: Any = "squared"
    outputs: tuple[float, ...] | None = None
    neighbours: Any = "all"
    constraints: Strings = ()


@dataclass(frozen=True, kw_only=True, eq=False)
class LabelHow(How):
    """The method of a request for a label randomizer.

    Attributes:
        method: "bins", "lp", "unbiased" or "rr-with-prior".
        may_use_bins: whether the user left the method open. Then bins at δ = 0, which are private
            at every δ, may answer a request with δ > 0.
    """

    method: str = "bins"
    may_use_bins: bool = False


@dataclass(frozen=True, kw_only=True, eq=False)
class LabelRequest(Request):
    """A request for the private label randomizer of smallest loss.

    With notion "metric" the ε of the claim is per unit of |y - y'|.

    Attributes:
        question: labels with a prior.
        aim: loss, outputs, neighbours and constraints.
        how: method and solver.
    """

    AIM = LabelAim
    HOW = LabelHow

    question: Labels
    aim: LabelAim
    how: LabelHow

    @property
    def named_loss(self) -> Loss:
        """Return the loss as a function of outputs and labels. Raises ValueError for a table."""
        return parse_loss(self.aim.loss)

    @property
    def heading(self) -> str:
        """Return the heading of reports: see `Request.heading`."""
        return f"Randomizer of {self.question}, method {self.how.method}"

    @property
    def loss_name(self) -> str:
        """Return the name of the loss."""
        if isinstance(self.aim.loss, (str, Loss)):
            return self.named_loss.name
        return self.channel_request.losses.name

    @cached_property
    def audited_claim(self) -> Claim:
        """Return the audited claim, with a budget for every pair if ε is per unit of distance."""
        if self.how.method == "lp":
            return self.channel_request.audited_claim
        return super().audited_claim

    @property
    def pairs(self) -> Pairs | None:
        """Return the pairs of neighbouring positions, unordered. None: every two labels."""
        return self.channel_request.pairs if self.how.method == "lp" else None

    @cached_property
    def channel_request(self) -> ChannelRequest:
        """Return the request of method lp, on the exact values of labels, outputs and prior.

        Raises:
            InvalidRequest: the neighbours are not pairs of different positions.
        """
        labels = [*map(Fraction, self.question.values.tolist())]
        prior = [*map(Fraction, self.question.prior.tolist())]
        outputs = labels
        if self.aim.outputs is not None:
            outputs = [*map(Fraction, self.aim.outputs)]
        neighbours = self.aim.neighbours
        if not isinstance(neighbours, str):
            _check_positions(neighbours, len(labels))
            neighbours = [[labels[i], labels[j]] for i, j in neighbours]
        question = FiniteQuery(labels, outputs, neighbours=neighbours, prior=prior)
        aim = self.aim
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
            how=How(solver=self.how.solver, options=self.how.options, check=self.how.check),
        )

    def _tabulate_losses(self, question: FiniteQuery) -> LossTable:
        """Return the table of the loss for the labels and outputs of a question."""
        if isinstance(self.aim.loss, (str, Loss)):
            return make_signed_table(question, self.named_loss)
        return make_loss_table(question, self.aim.loss)

    def formula_program(self) -> FormulaProgram:
        """Return the program with coefficients that are polynomials of e^ε, for `workbench
        formula`.

        Raises:
            InvalidRequest: the request has no such program.
        """
        if self.how.method != "lp":
            must("method", "lp for a formula, a channel with listed outputs", self.how.method)
        question = self.channel_request.question
        neighbours: Any = "all"
        if question.pairs is not None:
            inputs = question.inputs
            neighbours = [[inputs[i], inputs[j]] for i, j in question.pairs]
        prior = simplify_shares(question.prior or ())
        question = FiniteQuery(
            question.inputs, question.outputs, neighbours=neighbours, prior=prior
        )
        losses = self._tabulate_losses(question)
        # The same request, with the prior in the simplest fractions.
        request = self.channel_request.with_values(question=question, losses=losses)
        return request.formula_program()

    # Checks.

    def __post_init__(self) -> None:
        if not self.has_several_bounds:
            self.check_aim()
        epsilon = self.claim.epsilon
        if epsilon is not None and epsilon > MAX_LABEL_EPSILON:
            rule = f"at most {MAX_LABEL_EPSILON} (e^epsilon is a coefficient of the program)"
            must("epsilon", rule, format_fraction(epsilon))
        self.check_runs()
        if self.how.method == "lp":
            self._check_program()
            return
        if not isinstance(self.aim.loss, (str, Loss)):
            must("loss", f"a name if method is {self.how.method}", "a matrix or function")
        # The loss of one output shows whether the loss applies to the labels.
        with translate_errors():
            self.named_loss(1.0, self.question.values[:1])
        if self.how.method != "unbiased" and self.how.solver != "highs":
            method = self.how.method
            rule = f"left out with method {method}, which uses no solver (method lp uses one)"
            must("solver", rule, self.how.solver)
        has_program_options = (
            self.aim.outputs is not None or self.aim.neighbours != "all" or self.aim.constraints
        )
        notion = self.claim.notion
        if has_program_options or not notion.is_decided_by_ratio({"delta": self.claim.delta}):
            rule = "lp for other outputs, neighbours, notions and constraints, and for a delta > 0"
            must("method", rule, repr(self.how.method))
        if self.how.method == "unbiased":
            self._check_unbiased()

    def _check_program(self) -> None:
        """Check a request of method lp. Raises InvalidRequest."""
        k = self.question.k
        m = k if self.aim.outputs is None else len(self.aim.outputs)
        if m * k > _MAX_PROGRAM_MASSES:
            size = f"{k} labels and {m} outputs"
            must("the channel", f"of at most {_MAX_PROGRAM_MASSES} masses", size)
        if k == 1:
            # One label has no neighbours, so this raises an error.
            check_certificate_size(k, m, pairs=None)
        if self.wants_certificate:
            check_certificate_size(k, m, self.pairs)
        _ = self.channel_request  # The channel request is checked when it is made.

    def _check_unbiased(self) -> None:
        """Check a request of method unbiased. Raises InvalidRequest."""
        if self.named_loss.kind != "squared":
            must("loss", "squared for the unbiased randomizer", repr(self.named_loss.name))
        epsilon = self.claim.epsilon
        if epsilon is not None and epsilon > _MAX_UNBIASED_EPSILON:
            rule = (
                f"at most {_MAX_UNBIASED_EPSILON} for the unbiased randomizer (its program mixes 1 "
                "and e^ε)"
            )
            must("epsilon", rule, format_fraction(epsilon))
        if self.question.k < 2:
            must("labels", "at least two for the unbiased randomizer", self.question.k)


def _check_positions(pairs: Pairs, k: int) -> None:
    """Check that pairs have different positions below k. Raises InvalidRequest."""
    rule = f"pairs of different positions in 0..{k - 1}"
    if not pairs:
        must("neighbours", rule, "none")
    for pair in pairs:
        first, second = pair
        if first == second or not all(0 <= position < k for position in pair):
            must("neighbours", rule, pair)


class _LabelChannelRequest(ChannelRequest):
    """The request for a channel of labels, with wider limits than those of other channels."""

    MAX_EPSILON = MAX_LABEL_EPSILON
    MIN_EPSILON = ZERO
    # If all labels are neighbours, every mass is compared twice.
    MAX_COMPARISONS = 2 * _MAX_PROGRAM_MASSES
    CERTIFICATE_RECORD: ClassVar[Mapping[str, str]] = {"method": "lp"}
