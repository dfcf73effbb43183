"""State a request for a channel in exact numbers, check it, and choose the method that answers it.

A request is checked when it is made, before any program is built, so errors appear at once. It
also builds the model of the linear program, and says why a method does not apply.

Vocabulary: a channel has k inputs and m outputs. A *mass* is the probability M[y, o] of output o
for input y. A *comparison* is a row of the program that bounds one mass, the *compared mass*, by
e^ε times the mass of a neighbour. A notion *of one bound* (dp, pure, pdp, metric) bounds one ratio
for each pair of neighbours. A notion *of several bounds* (curve, tradeoff, renyi, zcdp, gdp) has
more bounds for each pair. The *block method* is an interior-point method that solves one output
after the other (`blocks`).

Where to change: a limit on sizes is a constant below. A further option needs a field of
`ChannelAim`, the Option in `family`, and a check in `ChannelRequest.__post_init__` if it cannot be
combined with others.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from scipy.sparse import csr_array

from workbench.errors import InvalidRequest, must
from workbench.exact.numbers import ZERO
from workbench.exact.objects import Pair, Record, Strings
from workbench.families.channel.block_work import (
    BLOCK_METHOD,
    MIN_BLOCK_COMPARISONS,
    BlocksSize,
    explain_memory_shortfall,
    is_faster_by_blocks,
)
from workbench.families.channel.extra_rows import ExtraRows, build_extra_program
from workbench.families.channel.output_cells import CONVEX_LOSSES, LINEAR_LOSSES, TANGENT_LOSS_NAME
from workbench.families.channel.repair import Edges, compute_integer_loss, find_best_constant_output
from workbench.families.channel.scaled_losses import ScaledLosses
from workbench.io.files import format_fraction
from workbench.mechanisms.channel import Channel
from workbench.models.channel.program import ChannelModel, Pairs, UserRows
from workbench.models.modulo.program import MASS_SCALE
from workbench.pipeline.formula_program import (
    FormulaProgram,
    check_formula_request,
    check_size,
    locate_rationals,
    make_formula_program,
)
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
from workbench.privacy.claim import Claim
from workbench.questions.finite_query import FiniteQuery
from workbench.questions.range_query import RangeQuery
from workbench.solvers.arrays import Flags, Ints
from workbench.solvers.program import Program

# ε must lie between these two, because solvers cannot use much larger coefficients e^ε, and
# cannot distinguish smaller ones from 1.
MAX_EPSILON = 20
MIN_EPSILON = Fraction(1, 10**9)
# A program that compares more masses is refused. The largest takes a minute or two.
MAX_COMPARISONS = 1_000_000
# The same limit under a notion of several bounds.
_MAX_CONVEX_COMPARISONS = 25_000
# A channel that needs no program is refused if it has more masses.
MAX_MASSES = 1_100_000
# A mixed-integer program (for pdp with δ > 0) with more binaries is refused.
MAX_BINARIES = 4_000
# Under several bounds, a simple channel is audited if it has at most this many compared masses.
_MAX_AUDITED_COMPARISONS = 500_000
# From this many masses on, the first program omits the masses that δ makes unnecessary.
_MIN_TRUNCATED_MASSES = 5_000
# Below this many compared masses, the first program states all comparisons.
_MIN_REDUCED_COMPARISONS = 1_500
# If at least this share of the comparisons may hold with equality, the program states all.
_MAX_BINDING_SHARE = 0.75
# Floats do not distinguish ratios from 1 below this ε, so blocks do not apply.
_MIN_BLOCK_EPSILON = 1e-7
# The condition on extra constraints in errors about the block method.
_LINEAR_CONSTRAINTS = "constraints that are linear in the masses of one input, or of one output"


class ChannelTooLarge(ProgramTooLarge):
    """Raised if the program, or the channel, of a request is too large."""


@dataclass(frozen=True, kw_only=True, eq=False)
class ChannelAim(Aim):
    """The aim of a request for a channel.

    Attributes:
        loss: the loss as it was requested: a name, a matrix (k, m), or a function
            (output, answer) -> number.
        losses: table of the loss for every input and output, shape (k, m).
        constraints: names of `workbench.models.channel.program.CONSTRAINTS`.
        user_constraints: a function of the CVXPY variable M that returns further constraints.
            Default: none.
        unit: unit of the coordinates of places: "m", "km" or "mi". Default: none.
    """

    losses: LossTable = field(repr=False)
    loss: LossInput = "squared"
    constraints: Strings = ()
    user_constraints: UserRows | None = None
    unit: str | None = None

    def __getstate__(self) -> Record:
        """Return the fields to pickle: the matrix replaces a loss that is a function."""
        return {**self.__dict__, "loss": make_picklable(self.loss, self.losses)}


@dataclass(frozen=True, kw_only=True, eq=False)
class ChannelRequest(Request):
    """A request for the channel of smallest loss within a budget.

    It may also ask for the smallest δ, or the smallest ε, of a channel whose loss is at most
    `aim.max_loss`. With notion "metric" the ε of the claim is per unit of distance.

    Attributes:
        question: inputs, outputs, neighbours and prior.
        aim: the loss, the constraints, and the quantity that is minimised.
        MAX_EPSILON: largest ε accepted.
        MIN_EPSILON: smallest ε accepted.
        MAX_COMPARISONS: largest number of masses that a program may compare.
        CERTIFICATE_RECORD: fields of a certificate's record that name the origin of the request.
    """

    AIM = ChannelAim

    question: FiniteQuery
    aim: ChannelAim

    MAX_EPSILON: ClassVar[int] = MAX_EPSILON
    MIN_EPSILON: ClassVar[Fraction] = MIN_EPSILON
    MAX_COMPARISONS: ClassVar[int] = MAX_COMPARISONS
    CERTIFICATE_RECORD: ClassVar[Mapping[str, str]] = {}

    # Checks.

    def __post_init__(self) -> None:
        self._check_constraints()
        if self.question.directed and self.is_per_distance:
            must("directed", "left out if epsilon is per unit of distance", got=True)
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
        if not self._is_answered_without_delta:
            self.check_size()
        self.check_runs()

    def _check_free_outputs(self) -> None:
        """Refuse free outputs where no bound over all real outputs is proven."""
        named_loss = self.losses.named_loss
        free_text = "'free'"
        numbers = self.question.numbers
        notion_name = self.claim.notion.name
        if numbers is None:
            must("outputs", "a list if answers are not numbers", free_text)
        if self.has_several_bounds and not isinstance(self.question, RangeQuery):
            answers, *_ = numbers
            low = min(answers)
            high = max(answers)
            # The example lists the answers and the middles between them.
            step = (high - low) / (2 * len(answers) - 2)
            example = f"{format_fraction(low)}..{format_fraction(high)}:{format_fraction(step)}"
            raise InvalidRequest(
                f"outputs must be a list if notion is {notion_name}. Got {free_text}. "
                f"List them, for example --outputs {example}."
            )
        has_convex_loss = named_loss is not None and named_loss.kind in CONVEX_LOSSES
        has_proven_loss = (
            self.has_linear_loss or has_convex_loss or self.losses.name == TANGENT_LOSS_NAME
        )
        if not has_proven_loss:
            rule = f"a list unless the loss is a table or one of {', '.join(CONVEX_LOSSES)}"
            must("outputs", rule, f"{free_text} with {self.losses.name}")
        if self.has_extra_constraints:
            must("outputs", "a list if there are extra constraints", free_text)
        if self.claim.delta and get_ratio_kind(self.claim.notion) == MASS_ABOVE_RATIO:
            must("outputs", "a list if notion is pdp with delta > 0", free_text)

    def _check_several_bounds(self) -> None:
        """Check a request under a notion of several bounds.

        Raises InvalidRequest, ChannelTooLarge.
        """
        self.check_aim()
        # Reading the property raises an error if the user chose the block method.
        _ = self.why_not_blocks
        if self.question.distances is not None:
            rule = f"without distances if notion is {self.claim.notion.name}"
            must("neighbours", rule, "distances")
        # Smaller requests may be answered by a simple channel, without a program.
        size = len(self.question.ordered_pairs) * self.question.m
        needs_program = self.has_extra_constraints or isinstance(self.question, RangeQuery)
        if size > _MAX_AUDITED_COMPARISONS or needs_program:
            self.check_convex_size()

    def check_convex_size(self) -> None:
        """Refuse a program of several bounds that takes too long. Raises ChannelTooLarge."""
        size = len(self.question.ordered_pairs) * self.question.m
        if size > _MAX_CONVEX_COMPARISONS:
            raise ChannelTooLarge(
                f"The program must have at most {_MAX_CONVEX_COMPARISONS} compared masses. "
                f"Got {size}."
            )

    def _check_ratio_aim(self) -> None:
        """Check the aim of a request under a notion of one bound. Raises InvalidRequest."""
        self.check_aim()
        if self.aim.minimise == "delta" and get_ratio_kind(self.claim.notion) == MASS_ABOVE_RATIO:
            must("notion", "dp if delta is minimised", repr(self.claim.notion.name))
        if self.aim.max_loss is not None and self.aim.max_loss < 0:
            must("max_loss", "a number >= 0", format_fraction(self.aim.max_loss))

    def check_max_loss(self) -> None:
        """Refuse a max_loss that a constant output reaches at every ε. Raises InvalidRequest."""
        question = self.question
        if isinstance(question, RangeQuery):
            _, constant_loss = question.best_constant(self.losses.name)
        else:
            rows = np.zeros((question.k, question.m), dtype=object)
            rows[:, find_best_constant_output(self.losses, question.prior)] = 1
            constant_loss = compute_integer_loss(rows, self.losses, question.prior)
        if self.aim.max_loss is not None and constant_loss <= self.aim.max_loss:
            rule = (
                f"less than {float(constant_loss):.9g}, the loss of one output for every input "
                "(any epsilon is enough)"
            )
            must("max_loss", rule, f"{float(self.aim.max_loss):g}")

    def _check_constraints(self) -> None:
        """Refuse named constraints that need increasing inputs and outputs.

        Raises InvalidRequest.
        """
        numbers = self.question.numbers
        is_ordered = numbers is not None and all(sorted(values) == [*values] for values in numbers)
        for name in self.aim.constraints:
            if name != "symmetric" and not is_ordered:
                rule = "left out unless inputs and outputs are increasing numbers"
                must("constraints", rule, name)

    @cached_property
    def _is_answered_without_delta(self) -> bool:
        """Return whether the program at δ > 0 is too large, and the one at δ = 0 is not.

        The optimum at δ = 0 then answers the request, because it is private at δ as well.
        """
        if not self.claim.delta or self.is_per_distance or self.aim.minimise != "loss":
            return False
        try:
            self.check_size()
        except ChannelTooLarge:
            # Making the request at δ = 0 checks its size.
            with suppress(InvalidRequest):
                self.with_values(delta=ZERO)
                return True
        return False

    def check_size(self) -> None:
        """Refuse a request that is too large, before any program is stated.

        A range is checked when its cells are known.

        Raises:
            ChannelTooLarge: the message names the size that would fit.
        """
        question = self.question
        if isinstance(question, RangeQuery):
            return
        masses = question.k * question.m
        if self.can_post_process:
            self._check_program_size("channel", "masses", masses, MAX_MASSES)
        elif self.is_solved_by_blocks:
            shortfall = explain_memory_shortfall(self.blocks_size)
            if shortfall is not None:
                raise ChannelTooLarge(shortfall)
        else:
            self._check_program_size(
                "program", "compared masses", self.comparison_count, self.MAX_COMPARISONS
            )
        if self.bounds.bounds_mass:
            unit = "binaries, one for each ordered pair and output"
            self._check_program_size("program", unit, self.comparison_count, MAX_BINARIES)

    def _check_program_size(self, subject: str, unit: str, size: int, limit: int) -> None:
        """Refuse a size above a limit. Raises ChannelTooLarge.

        subject: "program" or "channel"; unit: the things that are counted.
        """
        if size <= limit:
            return
        question = self.question
        if question.inputs == question.outputs:
            # The size grows like k², because a smaller channel has as many neighbours per input. It
            # grows like k³ if all inputs are neighbours and every pair is compared.
            compares_all_pairs = question.pairs is None and size > 2 * question.k * question.m
            power = 3 if compares_all_pairs else 2
            fitting_inputs = int(question.k * (limit / size) ** (1 / power))
            fitting_size = f"{fitting_inputs} inputs, which are the outputs,"
        else:
            fitting_inputs = int(question.k * limit / size)
            fitting_size = f"{fitting_inputs} inputs with {question.m} outputs"
        pairs_text = "" if self.pairs is None else f", {len(self.pairs)} pairs"
        raise ChannelTooLarge(
            f"The {subject} must have at most {limit} {unit}; {fitting_size} would fit. "
            f"Got {size} ({question.k} inputs, {question.m} outputs{pairs_text})."
        )

    # The loss.

    @property
    def heading(self) -> str:
        """Return the heading of reports: see `Request.heading`."""
        return f"Channel of {self.question}"

    @property
    def losses(self) -> LossTable:
        """Return the table of the loss."""
        return self.aim.losses

    @property
    def loss_name(self) -> str:
        """Return the name of the loss."""
        return self.losses.name

    @property
    def has_linear_loss(self) -> bool:
        """Return whether the loss is linear between the outputs. A loss table is read so."""
        named_loss = self.losses.named_loss
        if isinstance(self.aim.loss, tuple):
            return True
        return named_loss is not None and named_loss.kind in LINEAR_LOSSES

    @cached_property
    def scaled_losses(self) -> ScaledLosses:
        """Return the losses in the scale in which programs are solved and gaps are judged."""
        return ScaledLosses.from_table(self.losses, self.question)

    def with_outputs(self, outputs: Sequence[Fraction], losses: LossTable) -> ChannelRequest:
        """Return the same request with other outputs.

        Args:
            outputs: outputs, m numbers.
            losses: table of the losses of these outputs, shape (k, m).

        Raises:
            ChannelTooLarge: there are too many outputs.
        """
        return self.with_values(question=self.question.with_outputs(tuple(outputs)), losses=losses)

    @cached_property
    def prior_weights(self) -> np.ndarray[Any, np.dtype[np.float64]] | None:
        """Return the prior in floats, shape (k,). None for the worst-case loss."""
        prior = self.question.prior
        return None if prior is None else np.array([float(p) for p in prior])

    # The neighbours.

    @property
    def is_per_distance(self) -> bool:
        """Return whether ε is per unit of distance."""
        return self.claim.notion.is_per_distance

    @property
    def pairs(self) -> Pairs | None:
        """Return the pairs of neighbours: positions of two inputs, unordered unless directed.

        None if all inputs are neighbours under one ratio without δ. The program then compares every
        input with a common bound instead of every pair.
        """
        if self.has_several_bounds:
            return self.question.neighbour_pairs
        if self.is_per_distance:
            pairs, _ = self.question.metric_pairs()
            return pairs
        if self.question.pairs is None and not self.bounds.delta:
            return None
        return self.question.neighbour_pairs

    @property
    def comparison_count(self) -> int:
        """Return the number of compared masses: two for every pair and output.

        Without listed pairs there are two for every input and output.
        """
        pair_count = self.question.k
        if self.pairs is not None:
            pair_count = len(self.pairs)
        return self.question.m * 2 * pair_count

    @cached_property
    def bounds(self) -> RatioBounds:
        """Return the bounds of the notion on ordered pairs: their ε, δ and kind.

        δ is 1 if it is minimised, so that it restricts nothing. Only for notions of one bound.
        """
        delta = None
        if self.aim.minimise != "delta":
            delta = self.claim.delta
        if not self.is_per_distance:
            # All pairs have the same ε, so one entry stands for all of them.
            return make_ratio_bounds(self.claim.notion, {(): self.claim.epsilon}, delta)
        return make_ratio_bounds(self.claim.notion, self._compute_metric_budgets(), delta)

    def _compute_metric_budgets(self) -> dict[Pair, Fraction]:
        """Return the ε of every pair, if ε is per unit of distance."""
        pairs, distances = self.question.metric_pairs()
        epsilon = self.claim.epsilon
        return {pair: epsilon * d for pair, d in zip(pairs, distances, strict=True)}

    @property
    def edges(self) -> Edges:
        """Return every ordered pair of neighbours with its ε, in the order of the program."""
        groups, epsilons = self.group_epsilons()
        return Edges.from_groups(self.pairs, groups, epsilons, self.question.directed)

    def group_epsilons(self) -> tuple[Ints, list[Fraction]]:
        """Return (groups, epsilons): for every pair the position of its ε in the list `epsilons`.

        For example, three pairs with ε = 1, 2, 1 have the groups (0, 1, 0) and the list [1, 2].
        """
        groups, epsilons = self.bounds.epsilon_levels
        if self.is_per_distance:
            return groups, epsilons
        return (0,) * len(self.pairs or ()), epsilons

    @cached_property
    def audited_claim(self) -> Claim:
        """Return the audited claim, with a budget for every pair if ε is per unit of distance."""
        claim = super().audited_claim
        if self.is_per_distance:
            return claim.with_values(epsilon=self._compute_metric_budgets())
        return claim

    def make_channel(self, rows: Any) -> Channel:
        """Make a channel under the neighbour relation of the request.

        Args:
            rows: masses of every input, k rows of m numbers.
        """
        pairs = self.question.pairs
        if self.is_per_distance:
            pairs, _ = self.question.metric_pairs()
        channel = Channel.from_pairs(rows, pairs, directed=self.question.directed)
        return replace(channel, axis_labels=(self.question.inputs, self.question.outputs))

    # The method.

    @property
    def has_extra_constraints(self) -> bool:
        """Return whether there are named or user-defined constraints."""
        return bool(self.aim.constraints) or self.aim.user_constraints is not None

    @cached_property
    def extra_program(self) -> Program | None:
        """Return the program that states the extra constraints only.

        None if they need other variables than the masses.
        """
        return build_extra_program(self.model())

    @cached_property
    def extra_rows(self) -> ExtraRows | None:
        """Return the extra constraints as rows of coefficients of the masses.

        None if there are none, or if they need other variables than the masses.
        """
        if not self.has_extra_constraints or self.extra_program is None:
            return None
        return ExtraRows.from_program(self.extra_program, self.question.k)

    @property
    def is_solved_by_blocks(self) -> bool:
        """Return whether the block method answers. Raises InvalidRequest like `why_not_blocks`."""
        return self.why_not_blocks is None

    @cached_property
    def why_not_blocks(self) -> str | None:
        """Return why the block method does not answer. None if it answers.

        Raises:
            InvalidRequest: the user chose the block method, and it cannot answer.
        """
        if self.how.method == BLOCK_METHOD:
            self._check_block_request()
            return None
        if self.has_several_bounds:
            return f"it needs {self._block_requirement}"
        if self.how.method != "auto":
            return f"method {self.how.method} was requested"
        if self.how.solver != "highs" or self.how.options.algorithm is not None:
            return "a solver or its algorithm was requested"
        count = self.comparison_count
        if count < MIN_BLOCK_COMPARISONS or not is_faster_by_blocks(self.blocks_size, count):
            return f"the program of {count} compared masses is faster"
        requirement = self._block_requirement
        return None if requirement is None else f"it needs {requirement}"

    def _check_block_request(self) -> None:
        """Check that the block method can answer a request that names it. Raises InvalidRequest."""
        if self.how.solver != "highs":
            rule = f"left out with --method {BLOCK_METHOD}, which uses no solver"
            must("solver", rule, self.how.solver)
        requirement = self._block_requirement
        if requirement == _LINEAR_CONSTRAINTS:
            constraint = "a user-defined one"
            if "symmetric" in self.aim.constraints:
                constraint = "symmetric"
            rule = f"linear in one row or one column of the channel with --method {BLOCK_METHOD}"
            must("constraint", rule, f"{constraint}. Use --method program")
        if requirement is not None:
            rule = f"program for {self.budget_text}, because {BLOCK_METHOD} needs {requirement}"
            must("method", rule, BLOCK_METHOD)

    @property
    def _has_mixed_constraints(self) -> bool:
        """Return whether a constraint combines several inputs with several outputs, or is not
        linear.
        """
        if not self.has_extra_constraints:
            return False
        return self.extra_rows is None or self.extra_rows.has_mixed_rows(self.question.m)

    @property
    def _block_requirement(self) -> str | None:
        """Return the property that the block method needs and the request lacks.

        None if the block method can answer.
        """
        if self.has_several_bounds:
            return f"a notion of one bound on ratios, not {self.claim.notion.name}"
        if self.aim.minimise == "delta":
            return "a given delta, because it cannot minimise delta"
        if self.bounds.bounds_mass:
            return f"delta = 0 for {self.claim.notion.name}, because its delta needs binaries"
        if self.question.has_free_outputs or self.aim.runs > 1:
            return "a list of outputs, and one run"
        if self.question.directed and not self.bounds.delta:
            # Only ratios in both directions keep the masses >= 0 if there is no δ.
            return "neighbours in both orders if delta = 0"
        if self._has_mixed_constraints:
            return _LINEAR_CONSTRAINTS
        if not np.isfinite(self.losses.floats).all():
            return "finite losses"
        if min(map(float, self.bounds.epsilons.values())) < _MIN_BLOCK_EPSILON:
            return f"epsilon >= {_MIN_BLOCK_EPSILON:g}"
        return None

    @property
    def blocks_size(self) -> BlocksSize:
        """Return the size of the blocks, for estimates of runtime and memory."""
        question = self.question
        support = self.stated_masses
        inputs_per_output = None
        if self.bounds.delta:
            inputs_per_output = question.k
            if support is not None:
                inputs_per_output = int(support.sum(axis=0).max())
        extra_count = 0
        if self.extra_rows is not None:
            extra_count = self.extra_rows.limits.size
        return BlocksSize(question.k, question.m, self.pairs, inputs_per_output, extra_count)

    @property
    def can_post_process(self) -> bool:
        """Return whether post-processed geometric noise is the first candidate."""
        return self.why_not_post_processing is None

    @property
    def why_not_post_processing(self) -> str | None:
        """Return why post-processed geometric noise is not a candidate. None if it is one.

        It is a candidate for pure ratios along a line, under a prior.
        """
        if self.has_several_bounds:
            return f"{self.claim.notion.name} has several bounds"
        if self.how.method != "auto":
            return f"method {self.how.method} was requested"
        if self.aim.minimise != "loss":
            return f"{self.aim.minimise} is minimised"
        if self.bounds.delta:
            return f"delta is {float(self.bounds.delta):g}, not 0"
        if self.is_per_distance or not self.question.is_line:
            return "neighbours are not consecutive answers on a line"
        if self.question.prior is None:
            return "the worst-case loss is minimised"
        return "there are extra constraints" if self.has_extra_constraints else None

    # The program.

    @cached_property
    def stated_masses(self) -> Flags | None:
        """Return the masses that the first program states if δ > 0 makes others unnecessary.

        The masses of an output are stated for the inputs near those whose best output it is. An
        input is near if e^(-ε hops) is not far below δ, where hops is the number of steps from
        neighbour to neighbour between the two inputs. This is a guess that affects the speed only.

        Returns:
            Flags of shape (k, m). None if it would save little.
        """
        delta = float(self.bounds.delta)
        question = self.question
        k = question.k
        m = question.m
        if not delta or self.bounds.bounds_mass or self.aim.minimise != "loss":
            return None
        if k * m < _MIN_TRUNCATED_MASSES or self.has_extra_constraints:
            return None
        from scipy.sparse.csgraph import dijkstra  # The import is slow.

        pairs = np.array(self.pairs)
        epsilon = float(min(self.bounds.epsilons.values()))
        graph = csr_array((np.ones(len(pairs)), (pairs[:, 0], pairs[:, 1])), shape=(k, k))
        # Farther masses are below δ e^-4. The factor 1.25 is a margin.
        max_hops = 1.25 * (math.log(1 / delta) + 4) / epsilon
        is_near = dijkstra(graph, directed=False, unweighted=True, limit=max_hops) <= max_hops
        is_stated = np.zeros((k, m), dtype=bool)
        for y, o in enumerate(self.losses.floats.argmin(axis=1).tolist()):
            is_stated[:, o] |= is_near[:, y]
        return is_stated if is_stated.sum() < k * m // 2 else None

    @cached_property
    def binding_comparisons(self) -> Flags | None:
        """Return the comparisons of masses that may hold with equality at an optimum with δ > 0.

        An output usually has its larger mass at the neighbour for which its loss is smaller. Only
        the comparison that bounds this mass can then hold with equality. The inputs nearest to an
        output are compared in both orders. Their number increases as ε decreases, because optimal
        outputs are then far from the inputs for which they are made. This is a guess that affects
        the speed only.

        Returns:
            Flags of shape (ordered pairs, m), in the order of `edges`. None if it would save
            little.
        """
        bounds = self.bounds
        if not bounds.delta or bounds.bounds_mass or self.aim.minimise != "loss":
            return None
        if self.has_extra_constraints or self.question.directed:
            return None
        if self.comparison_count < _MIN_REDUCED_COMPARISONS:
            return None
        if self.losses.named_loss is None and self.losses.name != TANGENT_LOSS_NAME:
            return None
        table = self.losses.floats
        first, second = np.array(self.edges.pairs, dtype=int).T
        # 1/(e^ε - 1) is the mean of one-sided geometric noise with the ratio e^-ε.
        nearest_count = 1 + math.ceil(1 / math.expm1(float(min(bounds.epsilons.values()))))
        nearest_count = min(nearest_count, len(table))
        is_near = table <= np.sort(table, axis=0)[nearest_count - 1]
        binding = (table[first] <= table[second]) | is_near[first] | is_near[second]
        return binding if binding.mean() < _MAX_BINDING_SHARE else None

    def model(
        self, support: Flags | None = None, binding: Flags | None = None, *, in_scale: bool = True
    ) -> ChannelModel:
        """Return the model of the linear program, in units of 2^-20 of probability.

        Args:
            support: masses that are stated, shape (k, m). Default: all.
            binding: comparisons that are stated, shape (ordered pairs, m). Default: all.
            in_scale: whether losses are stated in the scale of `scaled_losses`. Otherwise they are
                only divided by its unit, and nothing is subtracted.

        Returns:
            The model. It has no pairs under a notion of several bounds.

        Raises:
            ValueError: the model cannot be stated.
        """
        question = self.question
        scaled_losses = self.scaled_losses
        minimises_delta = self.aim.minimise == "delta"
        if in_scale:
            table = scaled_losses.table
            shift = float(scaled_losses.shift)
        else:
            table = self.losses.scale_to_unit(scaled_losses.unit)
            shift = 0.0
        inputs, outputs = question.coordinates
        model = ChannelModel(
            inputs,
            outputs,
            self.prior_weights,
            loss=table.floats,
            pairs=self.pairs,
            is_directed=question.directed,
            constraints=self.aim.constraints,
            user_rows=self.aim.user_constraints,
            scale=MASS_SCALE,
            unit=scaled_losses.unit,
            shift=shift,
        )
        if self.has_several_bounds:
            return replace(model, pairs=())
        groups, _ = self.group_epsilons()
        return replace(
            model,
            groups=groups,
            has_delta=bool(self.bounds.delta) or minimises_delta,
            requires=self.bounds.kind,
            minimise="delta" if minimises_delta else "loss",
            support=support,
            stated_comparisons=binding,
        )

    def formula_program(self) -> FormulaProgram:
        """Return the program with coefficients that are polynomials of e^ε, for `workbench
        formula`.

        Raises:
            InvalidRequest: the request has no such program.
        """
        check_formula_request(self)
        question = self.question
        if question.has_free_outputs or isinstance(question, RangeQuery):
            raise InvalidRequest(
                "outputs must be a list for a formula. A search over real outputs, or over cells, "
                "is not a linear program."
            )
        check_size(question.k * question.m)
        losses = self.losses
        model = self.model(in_scale=False)
        program = model.program
        unit = Fraction(self.scaled_losses.unit)
        first_column = program.block("M").start
        loss_rows = [_divide_row(row, losses.unit) for row in losses.values.tolist()]
        if question.prior is None and model.has_changed_losses:
            rule = "of sizes that a solver can distinguish, for a formula of the worst-case loss"
            must("loss", rule, losses.name)
        # The program has float coefficients. Each is replaced by the rational that it stands for.
        rationals = self._index_rationals([_divide_row(row, unit) for row in loss_rows])
        data = program.template
        sections = {
            "A": data.A.data,
            "row_lower": data.row_lower,
            "row_upper": data.row_upper,
            "upper": data.upper,
        }
        exact_coefficients = {}
        for section, floats in sections.items():
            exact_coefficients[section] = locate_rationals(floats.tolist(), rationals)
        objective = {}
        names = {}
        for i, label in enumerate(question.inputs):
            for j, output in enumerate(question.outputs):
                # The masses are stored output by output, so i runs faster than j.
                column = first_column + i + j * question.k
                if question.prior is not None:
                    objective[column] = question.prior[i] * loss_rows[i][j]
                names[f"P({output}|{label})"] = (column,)
        if question.prior is not None:
            exact_coefficients["c"] = objective
        # The checkers recompute this title, so it is part of the file format.
        title = f"best channel, {losses.name} loss"
        if question.directed:
            title += ", directed neighbours"
        _, epsilons = self.bounds.epsilon_levels
        return make_formula_program(
            program,
            epsilons,
            masses=names,
            title=title,
            exact=exact_coefficients,
        )

    def _index_rationals(self, loss_rows: list[list[Fraction]]) -> dict[float, Fraction]:
        """Return float -> exact value for every coefficient that the program may contain, and for
        its negative.
        """
        rationals: dict[float, Fraction] = {}
        for row in (*loss_rows, *(self.question.numbers or ())):
            for value in row:
                rationals[float(value)] = value
        return rationals | {-value: -number for value, number in rationals.items()}


def _divide_row(row: Sequence[Fraction], divisor: Fraction | int) -> list[Fraction]:
    """Return the exact values of a row divided by a number."""
    return [Fraction(value) / divisor for value in row]
