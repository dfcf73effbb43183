"""What a request for a channel may say, in exact numbers, checked before anything is built."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cached_property
from operator import mul
from typing import Any, ClassVar

import numpy as np
from scipy.sparse import csr_array

from workbench.errors import InvalidRequest, must
from workbench.exact.numbers import ZERO
from workbench.exact.objects import Pair, Record, Strings
from workbench.families.channel.block_work import (
    MIN_BLOCK_COMPARISONS,
    NAME,
    BlocksSize,
    explain_memory_shortfall,
    is_faster_by_blocks,
)
from workbench.families.channel.extra_rows import ExtraRows, build_extra_program
from workbench.families.channel.output_cells import CONVEX_LOSSES, LINEAR_LOSSES, TANGENT_LOSS_NAME
from workbench.families.channel.repair import Edges, compute_integer_loss, find_best_constant_output
from workbench.io.files import format_fraction
from workbench.mechanisms.channel import Channel
from workbench.models.channel.program import ChannelModel, Pairs, UserRows
from workbench.models.modulo.program import MASS_SCALE
from workbench.pipeline.loss_scale import LossScale
from workbench.pipeline.loss_tables import LossInput, LossTable, make_picklable
from workbench.pipeline.option import check_epsilon_range
from workbench.pipeline.problem import ProgramTooLarge
from workbench.pipeline.request import Aim, Request
from workbench.pipeline.requirements import (
    MASS_ABOVE_RATIO,
    RatioBounds,
    get_ratio_kind,
    make_ratio_bounds,
)
from workbench.pipeline.stated import (
    FormulaProgram,
    check_formula_request,
    check_size,
    locate_rationals,
    make_formula_program,
)
from workbench.privacy.claim import Claim
from workbench.questions.finite_query import FiniteQuery
from workbench.questions.range_query import RangeQuery
from workbench.solvers.arrays import Flags, Ints
from workbench.solvers.program import Program

MAX_EPSILON, MIN_EPSILON = 20, Fraction(1, 10**9)  # ε: e^ε is a coefficient of the program
MAX_COMPARISONS, _MAX_CONVEX_COMPARISONS = (
    1_000_000,
    25_000,
)  # masses that a program compares, that of several bounds; a minute or two
MAX_MASSES = 1_100_000  # of a channel that needs no program
MAX_BINARIES = 4_000
_MAX_AUDITED_COMPARISONS = (
    500_000  # Compared masses up to which a simpler channel is audited under several bounds.
)
_MIN_TRUNCATED_MASSES = 5_000  # masses from which those that δ makes needless are left out at first
_MIN_REDUCED_COMPARISONS = 1_500  # Below this many compared masses all comparisons are stated.
_MAX_BINDING_SHARE = 0.75  # From this share of comparisons that may bind on all are stated.
_MIN_BLOCK_EPSILON = 1e-7  # ε up to which floats do not tell ratios from 1


@dataclass(frozen=True, eq=False)
class ScaledLosses:
    """The losses of a channel in the scale of its request (`workbench.pipeline.loss_scale`).

        loss of a channel = unit * (loss at `table`) + shift

    Attributes:
        table: the losses in that scale.
        unit: see above.
        shift: what no channel can avoid: every input's least loss under a prior, the least of all
            where the worst input counts.
        scale: that of the losses as they were given.
        constant: (k,), the output of every input in the best channel that ignores its input: one
            for every connected part of the neighbour relation.
        constant_is_best: whether that channel costs no more than there is without privacy.
    """

    table: LossTable
    unit: float
    shift: Fraction
    scale: LossScale
    constant_outputs: Any
    is_constant_optimal: bool

    @classmethod
    def from_table(cls, losses: LossTable, question: FiniteQuery) -> ScaledLosses:
        """The losses of a question in their scale."""
        prior, least = question.prior, losses.values.min(axis=1)
        if prior is None:
            subtracted = np.full(least.shape, least.min(), dtype=object)
            shift, floor = (
                Fraction(int(least.min()), losses.unit),
                Fraction(int(least.max()), losses.unit),
            )
        else:
            subtracted = least
            shift = floor = sum(map(mul, prior, least.tolist()), ZERO) / losses.unit
        reduced = losses.subtract_from_rows(subtracted)
        width, constant = _find_constant_channel(reduced.floats, question)
        if prior is None:
            width -= float(floor - shift)
        constant_is_best = width <= 0
        if (
            constant_is_best
        ):  # which constraints may not allow: then the largest loss is all that is known
            weights = 1.0 if prior is None else np.array([[float(p)] for p in prior])
            finite = np.where(np.isfinite(reduced.floats), reduced.floats, 0.0)
            width = float((weights * finite).max()) or 1.0
        scale = LossScale(floor, width)
        return cls(
            reduced.scale_to_unit(scale.unit), scale.unit, shift, scale, constant, constant_is_best
        )

    def scale_loss(self, loss: Fraction) -> Fraction:
        """A loss as one at the table."""
        return (loss - self.shift) / Fraction(self.unit)

    def unscale_loss(self, at_unit: Fraction) -> Fraction:
        """A loss, or a bound, at the table as one of the losses that were given."""
        return at_unit * Fraction(self.unit) + self.shift


def _find_constant_channel(losses: Any, question: FiniteQuery) -> tuple[float, Any]:
    """(the loss, and the output of every input, of the best channel that has one output for every part of the
    relation)."""
    prior = question.prior
    weights = np.ones(question.k) if prior is None else np.array([float(p) for p in prior])
    forbidden = np.isinf(losses)
    if forbidden.any():
        largest = np.finfo(float).max / (2 * question.k)
        losses = np.where(forbidden, largest, losses)
    total, chosen = 0.0, np.zeros(question.k, dtype=int)
    for part in [slice(None)] if question.pairs is None else question.components:
        each = losses[part].max(axis=0) if prior is None else weights[part] @ losses[part]
        chosen[part] = int(each.argmin())
        total = max(total, float(each.min())) if prior is None else total + float(each.min())
    if forbidden.any() and total >= largest * weights.min(initial=1.0, where=weights > 0):
        total = float((weights[:, None] * np.where(forbidden, 0.0, losses)).max())
    return total, chosen


class ChannelTooLarge(ProgramTooLarge):
    """A program of a channel that is too large."""


@dataclass(frozen=True, kw_only=True, eq=False)
class ChannelAim(Aim):
    """What is asked of a channel.

    Attributes:
        loss: a name, a matrix (k, m), or a function (output, answer) -> number.
        losses: the table of the loss.
        constraints: names of `workbench.models.channel.program.CONSTRAINTS`.
        more: a function of the CVXPY variable that returns further constraints.
        unit: the unit of coordinates.
    """

    losses: LossTable = field(repr=False)
    loss: LossInput = "squared"
    constraints: Strings = ()
    user_constraints: UserRows | None = None
    unit: str | None = None

    def __getstate__(self) -> Record:
        """What is pickled: the matrix of a loss that is a function."""
        return {**self.__dict__, "loss": make_picklable(self.loss, self.losses)}


@dataclass(frozen=True, kw_only=True, eq=False)
class ChannelRequest(Request):
    """The least-loss channel within the budget of a notion, or the least δ or ε within max_loss.

    With notion "metric" the ε of the claim is per unit of distance.
    """

    AIM = ChannelAim

    question: FiniteQuery
    aim: ChannelAim

    MAX_EPSILON: ClassVar[int] = MAX_EPSILON
    MIN_EPSILON: ClassVar[Fraction] = MIN_EPSILON
    MAX_COMPARISONS: ClassVar[int] = MAX_COMPARISONS
    CERTIFICATE_RECORD: ClassVar[
        Mapping[str, str]
    ] = {}  # what a certificate says of where it is from

    def __post_init__(self) -> None:
        self._check_constraints()
        if self.question.directed and self.is_per_distance:
            must(
                "directed", "left out with budgets per distance, which is the same both ways", True
            )
        if self.question.has_free_outputs:
            self._check_free_outputs()
        if self.has_several_bounds:
            self._check_several_bounds()
            return
        self._check_ratio_aim()
        epsilons = self.bounds.epsilons.values()
        for epsilon in (max(epsilons), min(epsilons)):
            check_epsilon_range(
                epsilon, self.MIN_EPSILON, self.MAX_EPSILON, " for every pair of neighbours"
            )
        if not self._answered_without_delta:
            self.check_size()
        self.check_runs()

    def _check_free_outputs(self) -> None:
        """Refuse what the proof over all real outputs does not cover."""
        named, free = self.losses.named_loss, "'free'"
        numbers = self.question.numbers
        if numbers is None:
            must("outputs", "a list where answers are no numbers", free)
        if self.has_several_bounds and not isinstance(self.question, RangeQuery):
            low, high = min(numbers[0]), max(numbers[0])
            step = (high - low) / (2 * len(numbers[0]) - 2)
            example = f"{format_fraction(low)}..{format_fraction(high)}:{format_fraction(step)}"
            raise InvalidRequest(
                f"outputs must be a list where notion is {self.claim.notion.name}. Got {free}. "
                f"List them, for example --outputs {example}."
            )
        if (
            not self.has_linear_loss
            and (named is None or named.kind not in CONVEX_LOSSES)
            and self.losses.name != TANGENT_LOSS_NAME
        ):
            words = f"a list where the loss is no table and none of {', '.join(CONVEX_LOSSES)}"
            must("outputs", words, f"{free} with {self.losses.name}")
        if self.has_extra_constraints:
            must("outputs", "a list where there are extra constraints", free)
        if self.claim.delta and get_ratio_kind(self.claim.notion) == MASS_ABOVE_RATIO:
            must("outputs", "a list where notion is pdp with delta > 0", free)

    @property
    def has_linear_loss(self) -> bool:
        """Whether its loss is linear between the outputs, or taken so, as a table of one's own is."""
        return isinstance(self.aim.loss, tuple) or (
            self.losses.named_loss is not None and self.losses.named_loss.kind in LINEAR_LOSSES
        )

    def with_outputs(self, outputs: Sequence[Fraction], losses: LossTable) -> ChannelRequest:
        """The same request on these outputs, at these losses. Raises ChannelTooLarge."""
        return self.with_values(question=self.question.with_outputs(tuple(outputs)), losses=losses)

    def _check_several_bounds(self) -> None:
        self.check_aim()
        _ = self.why_not_blocks
        if self.question.distances is not None:
            must(
                "neighbours",
                f"without distances when notion is {self.claim.notion.name}",
                "distances",
            )
        size = len(self.question.ordered_pairs) * self.question.m
        if size > _MAX_AUDITED_COMPARISONS or (
            size > _MAX_CONVEX_COMPARISONS
            and (self.has_extra_constraints or isinstance(self.question, RangeQuery))
        ):
            raise ChannelTooLarge(
                f"The program must be of at most {_MAX_CONVEX_COMPARISONS} compared masses. Got {size}."
            )

    def check_convex_size(self) -> None:
        """Refuse a program of several bounds that takes too long. Raises ChannelTooLarge."""
        size = len(self.question.ordered_pairs) * self.question.m
        if size > _MAX_CONVEX_COMPARISONS:
            raise ChannelTooLarge(
                f"The program must have at most {_MAX_CONVEX_COMPARISONS} compared masses. Got {size}."
            )

    def _check_ratio_aim(self) -> None:
        self.check_aim()
        if self.aim.minimise == "delta" and get_ratio_kind(self.claim.notion) == MASS_ABOVE_RATIO:
            must("notion", "dp where delta is minimised", repr(self.claim.notion.name))
        if self.aim.max_loss is not None and self.aim.max_loss < 0:
            must("max_loss", "a number >= 0", format_fraction(self.aim.max_loss))

    def check_max_loss(self) -> None:
        """Refuse a largest loss that needs no ε at all. Raises InvalidRequest."""
        if isinstance(self.question, RangeQuery):
            constant = self.question.best_constant(self.losses.name)[1]
        else:
            rows = np.zeros((self.question.k, self.question.m), dtype=object)
            rows[:, find_best_constant_output(self.losses, self.question.prior)] = 1
            constant = compute_integer_loss(rows, self.losses, self.question.prior)
        if self.aim.max_loss is not None and constant <= self.aim.max_loss:
            need = f"less than {float(constant):.9g}, what one output for every input costs (any epsilon is enough)"
            must("max_loss", need, f"{float(self.aim.max_loss):g}")

    def _check_constraints(self) -> None:
        numbers = self.question.numbers
        ordered = numbers is not None and all(sorted(values) == [*values] for values in numbers)
        for name in self.aim.constraints:
            if name != "symmetric" and not ordered:
                must(
                    "constraints",
                    "left out for inputs or outputs that are no increasing numbers",
                    name,
                )

    @cached_property
    def _answered_without_delta(self) -> bool:
        """Whether its own program is too large, but not the one at δ = 0, whose optimum is private at δ as well."""
        if not self.claim.delta or self.is_per_distance or self.aim.minimise != "loss":
            return False
        try:
            self.check_size()
        except ChannelTooLarge:
            with suppress(InvalidRequest):
                self.with_values(delta=ZERO)
                return True
        return False

    def check_size(self) -> None:
        """Refuse what is too large before anything is stated, with the size that would fit; of a range when its cells
        are."""
        q = self.question
        if isinstance(q, RangeQuery):
            return
        masses = q.k * q.m
        if self.can_post_process:
            self._check_program_size("channel", "masses", masses, MAX_MASSES, masses)
        elif self.is_solved_by_blocks:
            if (reason := explain_memory_shortfall(self.blocks_size)) is not None:
                raise ChannelTooLarge(reason)
        else:
            self._check_program_size(
                "program", "compared masses", self.comparison_count, self.MAX_COMPARISONS, masses
            )
        if self.bounds.bounds_mass:
            self._check_program_size(
                "program",
                "binaries, one for each ordered pair and output",
                self.comparison_count,
                MAX_BINARIES,
                masses,
            )

    def _check_program_size(self, what: str, unit: str, size: int, most: int, masses: int) -> None:
        if size <= most:
            return
        q = self.question
        if q.inputs == q.outputs:  # neighbours per input stay, unless all are
            power = 3 if q.pairs is None and size > masses * 2 else 2
            fit = f"{int(q.k * (most / size) ** (1 / power))} inputs, which are the outputs,"
        else:
            fit = f"{int(q.k * most / size)} inputs with {q.m} outputs"
        pairs = "" if self.pairs is None else f", {len(self.pairs)} pairs"
        raise ChannelTooLarge(
            f"The {what} must have at most {most} {unit}; {fit} would fit. Got {size} ({q.k} inputs, {q.m} outputs"
            f"{pairs})."
        )

    @property
    def heading(self) -> str:
        """See `Request.heading`."""
        return f"Channel of {self.question}"

    @property
    def losses(self) -> LossTable:
        """The table of the loss."""
        return self.aim.losses

    @property
    def loss_name(self) -> str:
        """The name of the loss."""
        return self.losses.name

    @cached_property
    def scaled_losses(self) -> ScaledLosses:
        """The losses in the scale in which programs are solved and gaps are judged."""
        return ScaledLosses.from_table(self.losses, self.question)

    @property
    def is_per_distance(self) -> bool:
        """Whether ε is per unit of distance."""
        return self.claim.notion.is_per_distance

    @property
    def pairs(self) -> Pairs | None:
        """Neighbours, unordered unless directed; None for all in the compact form, which has one ratio and no δ."""
        if self.has_several_bounds:
            return self.question.neighbour_pairs
        if self.is_per_distance:
            return self.question.metric_pairs()[0]
        compact = self.question.pairs is None and not self.bounds.delta
        return None if compact else self.question.neighbour_pairs

    @property
    def comparison_count(self) -> int:
        """How many masses the program compares: two for every input, or pair, and every output."""
        return self.question.m * 2 * (self.question.k if self.pairs is None else len(self.pairs))

    @cached_property
    def stated_masses(self) -> Flags | None:
        """The masses (k, m) worth stating where δ > 0 cuts long tails off: outputs that are the cheapest of an input
        so near that e^(-ε hops) is not far below δ. A guess that decides speed only; None where it saves little."""
        delta, q = float(self.bounds.delta), self.question
        if (
            not delta
            or self.bounds.bounds_mass
            or self.aim.minimise != "loss"
            or q.k * q.m < _MIN_TRUNCATED_MASSES
            or self.has_extra_constraints
        ):
            return None
        from scipy.sparse.csgraph import dijkstra  # slow to import

        pairs, epsilon = np.array(self.pairs), float(min(self.bounds.epsilons.values()))
        graph = csr_array((np.ones(len(pairs)), (pairs[:, 0], pairs[:, 1])), shape=(q.k, q.k))
        reach = 1.25 * (math.log(1 / delta) + 4) / epsilon
        near = dijkstra(graph, directed=False, unweighted=True, limit=reach) <= reach
        stated = np.zeros((q.k, q.m), dtype=bool)
        for y, o in enumerate(self.losses.floats.argmin(axis=1).tolist()):
            stated[:, o] |= near[:, y]
        return stated if stated.sum() < q.k * q.m // 2 else None

    @cached_property
    def binding_comparisons(self) -> Flags | None:
        """Comparisons of masses that may bind at an optimum with δ > 0, of `edges` with every output.

        An input to which an output is cheaper has the larger mass there, so that only its comparison with the
        other one may bind. The inputs to which the output is cheapest are compared both ways. There are more of
        them for a small ε, where optimal outputs are far from the inputs for which they are made. This is a guess
        that decides speed only.

        Returns:
            Flags of shape (ordered pairs, m); None where fewer comparisons save little.
        """
        bounds = self.bounds
        if (
            not bounds.delta
            or bounds.bounds_mass
            or self.aim.minimise != "loss"
            or self.has_extra_constraints
        ):
            return None
        if self.question.directed or self.comparison_count < _MIN_REDUCED_COMPARISONS:
            return None
        if self.losses.named_loss is None and self.losses.name != TANGENT_LOSS_NAME:
            return None
        table = self.losses.floats
        first, second = np.array(self.edges.pairs, dtype=int).T
        nearest = 1 + math.ceil(1 / math.expm1(float(min(bounds.epsilons.values()))))
        near = table <= np.sort(table, axis=0)[min(nearest, len(table)) - 1]
        binding = (table[first] <= table[second]) | near[first] | near[second]
        return binding if binding.mean() < _MAX_BINDING_SHARE else None

    @property
    def has_extra_constraints(self) -> bool:
        """Whether there are extra constraints."""
        return bool(self.aim.constraints) or self.aim.user_constraints is not None

    @cached_property
    def extra_program(self) -> Program | None:
        """See `extra_rows.extra_program`."""
        return build_extra_program(self.model())

    @cached_property
    def extra_rows(self) -> ExtraRows | None:
        """The rows of extra constraints, None where there are none, or others."""
        if not self.has_extra_constraints or self.extra_program is None:
            return None
        return ExtraRows.from_program(self.extra_program, self.question.k)

    @property
    def is_solved_by_blocks(self) -> bool:
        """Whether it is answered output by output. Raises InvalidRequest where that was asked for and cannot be."""
        return self.why_not_blocks is None

    @cached_property
    def why_not_blocks(self) -> str | None:
        """Why it is not answered output by output; None where it is.

        Raises:
            InvalidRequest: that was asked for and cannot be.
        """
        if self.how.method == NAME:
            if self.how.solver != "highs":
                must("solver", f"left out with method {NAME}, which runs none", self.how.solver)
            if self._block_requirement is not None:
                wanted = f"one that method {NAME} takes: {self._block_requirement} (method program takes others)"
                must("the request", wanted, self.budget_text)
            return None
        if self.has_several_bounds:
            return f"it takes {self._block_requirement}"
        if self.how.method != "auto":
            return f"method {self.how.method} was asked for"
        if self.how.solver != "highs" or self.how.options.algorithm is not None:
            return "a solver or its algorithm was asked for"
        if self.comparison_count < MIN_BLOCK_COMPARISONS or not is_faster_by_blocks(
            self.blocks_size, self.comparison_count
        ):
            return f"the program of {self.comparison_count} compared masses takes less time"
        return None if self._block_requirement is None else f"it takes {self._block_requirement}"

    @property
    def blocks_size(self) -> BlocksSize:
        """Of the blocks."""
        q, support = self.question, self.stated_masses
        width = (
            None
            if not self.bounds.delta
            else q.k
            if support is None
            else int(support.sum(axis=0).max())
        )
        extra = 0 if self.extra_rows is None else self.extra_rows.limits.size
        return BlocksSize(q.k, q.m, self.pairs, width, extra)

    @property
    def _block_requirement(self) -> str | None:
        """What a request must be that outputs do not tie; None where it is."""
        if self.has_several_bounds:
            return f"a notion of one bound on ratios, not {self.claim.notion.name}"
        if self.aim.minimise == "delta":
            return "a given delta, not the least"
        if self.bounds.bounds_mass:
            return f"delta = 0 for {self.claim.notion.name}, whose delta has binaries"
        if self.question.has_free_outputs or self.aim.runs > 1:
            return "outputs that are listed, and one run"
        if (
            self.question.directed and not self.bounds.delta
        ):  # only ratios both ways keep masses >= 0
            return "neighbours in both orders where delta = 0"
        if self.has_extra_constraints and (
            self.extra_rows is None or self.extra_rows.has_mixed_rows(self.question.m)
        ):
            return "constraints that are linear in the masses of one input, or of one output"
        if not np.isfinite(self.losses.floats).all():
            return "losses that are finite"
        return (
            f"epsilon >= {_MIN_BLOCK_EPSILON:g}"
            if min(map(float, self.bounds.epsilons.values())) < _MIN_BLOCK_EPSILON
            else None
        )

    @property
    def can_post_process(self) -> bool:
        """Whether geometric noise followed by the best post-processing is the first candidate."""
        return self.why_not_post_processing is None

    @property
    def why_not_post_processing(self) -> str | None:
        """Why geometric noise followed by the best post-processing is no candidate, which is one for pure ratios along
        a line, under a prior; None where it is."""
        if self.has_several_bounds:
            return f"{self.claim.notion.name} states several bounds"
        if self.how.method != "auto":
            return f"method {self.how.method} was asked for"
        if self.aim.minimise != "loss":
            return f"{self.aim.minimise} is minimised"
        if self.bounds.delta:
            return f"delta is {float(self.bounds.delta):g}, not 0"
        if self.is_per_distance or not self.question.is_line:
            return "neighbours are not the next answers along a line"
        if self.question.prior is None:
            return "the loss is that of the worst answer"
        return "there are extra constraints" if self.has_extra_constraints else None

    @cached_property
    def bounds(self) -> RatioBounds:
        """What the notion requires of every ordered pair; δ = 1 where it is minimised."""
        delta = self.claim.delta if self.aim.minimise != "delta" else None
        if not self.is_per_distance:
            return make_ratio_bounds(self.claim.notion, {(): self.claim.epsilon}, delta)
        return make_ratio_bounds(self.claim.notion, self._compute_metric_budgets(), delta)

    def _compute_metric_budgets(self) -> dict[Pair, Fraction]:
        pairs, distances = self.question.metric_pairs()
        return {
            pair: self.claim.epsilon * distance
            for pair, distance in zip(pairs, distances, strict=True)
        }

    @property
    def edges(self) -> Edges:
        """Every ordered pair of neighbours with its ε, in the order of the program."""
        return Edges.from_groups(self.pairs, *self.group_epsilons(), self.question.directed)

    def group_epsilons(self) -> tuple[Ints, list[Fraction]]:
        """(the group of every pair, the ε of every group)."""
        groups, epsilons = self.bounds.epsilon_levels
        return groups if self.is_per_distance else (0,) * len(self.pairs or ()), epsilons

    @cached_property
    def audited_claim(self) -> Claim:
        """See `Request.audited_claim`; with a budget for every pair where ε is per unit of distance."""
        claim = super().audited_claim
        return (
            claim.with_values(epsilon=self._compute_metric_budgets())
            if self.is_per_distance
            else claim
        )

    def channel(self, rows: Any) -> Channel:
        """Rows as a mechanism under the neighbour relation."""
        pairs = self.question.metric_pairs()[0] if self.is_per_distance else self.question.pairs
        channel = Channel.from_pairs(rows, pairs, directed=self.question.directed)
        return replace(channel, axis_labels=(self.question.inputs, self.question.outputs))

    @cached_property
    def prior_weights(self) -> np.ndarray[Any, np.dtype[np.float64]] | None:
        """The prior in floats; None in the worst case."""
        prior = self.question.prior
        return None if prior is None else np.array([float(p) for p in prior])

    def model(
        self, support: Flags | None = None, binding: Flags | None = None, *, in_scale: bool = True
    ) -> ChannelModel:
        """State the linear program, in units of 2^-20 of probability.

        Args:
            support: masses (k, m) that are stated; None for all.
            binding: comparisons (ordered pairs, m) that are stated; None for all.
            in_scale: whether losses are stated in their scale (`scaled`), or only in its unit.

        Returns:
            The model, without pairs where the notion states several bounds.

        Raises:
            ValueError: the model cannot be stated.
        """
        q, scaled, least = self.question, self.scaled_losses, self.aim.minimise == "delta"
        table = scaled.table if in_scale else self.losses.scale_to_unit(scaled.unit)
        inputs, outputs = q.coordinates
        stated = ChannelModel(
            inputs,
            outputs,
            self.prior_weights,
            table.floats,
            self.pairs,
            is_directed=q.directed,
            constraints=self.aim.constraints,
            user_rows=self.aim.user_constraints,
            scale=MASS_SCALE,
            unit=scaled.unit,
            shift=float(scaled.shift) if in_scale else 0.0,
        )
        if self.has_several_bounds:
            return replace(stated, pairs=())
        return replace(
            stated,
            groups=self.group_epsilons()[0],
            has_delta=bool(self.bounds.delta) or least,
            requires=self.bounds.kind,
            minimise="delta" if least else "loss",
            support=support,
            stated_comparisons=binding,
        )

    def formula_program(self) -> FormulaProgram:
        """The program in polynomials of e^ε. Raises InvalidRequest."""
        check_formula_request(self)
        if self.question.has_free_outputs or isinstance(self.question, RangeQuery):
            raise InvalidRequest(
                "A formula needs listed outputs: a search over real ones, or cells, is no linear program."
            )
        check_size(self.question.k * self.question.m)
        q, losses, model = self.question, self.losses, self.model(in_scale=False)
        program, unit = model.program, Fraction(self.scaled_losses.unit)
        first = program.block("M").start
        table = [
            [Fraction(int(value), losses.unit) for value in row] for row in losses.values.tolist()
        ]
        in_rows = [[value / unit for value in row] for row in table]
        if q.prior is None and model.has_changed_losses:
            must(
                "loss",
                "of entries whose sizes a solver can tell apart, for a formula of the worst input",
                losses.name,
            )
        known = {float(v): v for row in (*in_rows, *(q.numbers or ())) for v in row}
        known |= {-value: -number for value, number in known.items()}
        data = program.template
        sections = {
            "A": data.A.data,
            "row_lower": data.row_lower,
            "row_upper": data.row_upper,
            "upper": data.upper,
        }
        exact = {
            name: locate_rationals(values.tolist(), known) for name, values in sections.items()
        }
        if q.prior is not None:
            exact["c"] = {
                first + i + j * q.k: q.prior[i] * value
                for i, row in enumerate(table)
                for j, value in enumerate(row)
            }
        names = {
            f"P({output}|{label})": (first + i + j * q.k,)
            for i, label in enumerate(q.inputs)
            for j, output in enumerate(q.outputs)
        }
        title = f"best channel, {losses.name} loss{', directed neighbours' if q.directed else ''}"
        return make_formula_program(program, self.bounds.epsilon_levels[1], names, title, exact)
