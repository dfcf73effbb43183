"""Answer a channel request: try the methods that apply, repair the channel, and state its loss and
bound.

A *route* is one method, with a function that says why it does not apply. A route returns an
`Answer`, or a `Doubt` if another route may do better (`workbench.pipeline.routes`). For example,
the route "blocks" does not apply to a small request ("the program of 180 compared masses is
faster"), so the next route, "program", answers it.

Masses are the probabilities M[y, o] of output o for input y. `Answer.law` is (K, is_exempt): the
masses as integers, and where a ratio may be violated (None: nowhere).

To add a route: a method `why_not_...` that returns the reason (None: it applies), a method
`answer_by_...`, an entry of `ChannelProblem.routes`, and a line of this table if the answer has an
origin of its own.

origin                             source of the masses
"exact repair, output by output"   the interior point of `workbench.models.channel.block_interior`
"exact repair"                     the linear program of `workbench.models.channel.program`
"repair"                           several convex bounds, by tangents or by an interior point
"geometric, post-processed"        the known formula along a line
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from fractions import Fraction
from functools import cached_property
from operator import methodcaller, mul
from typing import Any

import numpy as np

from workbench.data.points import format_point
from workbench.errors import Infeasible, InvalidRequest, NotCertified, NotProven
from workbench.exact.distribution import Distribution
from workbench.families.channel import blocks
from workbench.families.channel.certify import make_channel_certificate
from workbench.families.channel.closed_form import judge_by_closed_form
from workbench.families.channel.conflict import raise_no_channel
from workbench.families.channel.gaussian_masses import compute_gaussian_masses
from workbench.families.channel.interior_bound import has_smooth_bounds, solve_by_interior_point
from workbench.families.channel.program_solver import FINAL_TERMINATIONS, ChannelProgramSolver
from workbench.families.channel.proof import bound_gain_of_delta, bound_loss_on_line
from workbench.families.channel.repair import (
    compute_channel_loss,
    compute_integer_loss,
    find_best_constant_output,
    mix_within_max_loss,
    repair_integer_rows,
    round_to_integers,
)
from workbench.families.channel.request import ChannelRequest
from workbench.mechanisms.channel import Channel
from workbench.models.convex.interior import MAX_INTERIOR_COLUMNS
from workbench.models.oracles.finite_channel import post_process_geometric
from workbench.pipeline.convex_notion import (
    DEFAULT_TANGENT_SECONDS,
    find_implied_pure_epsilon,
    solve_by_tangents,
)
from workbench.pipeline.design import Design, OracleVerdict
from workbench.pipeline.loss_scale import LossScale
from workbench.pipeline.loss_tables import Integers
from workbench.pipeline.problem import Problem, Repaired
from workbench.pipeline.routes import (
    Answer,
    Doubt,
    Programs,
    Reason,
    Route,
    answer_by_routes,
    require_one_bound,
    require_several_bounds,
)
from workbench.privacy.claim import Claim
from workbench.questions.neighbour_parts import describe_separation
from workbench.solvers.arrays import Flags
from workbench.solvers.backend import Options
from workbench.solvers.search import Deadline
from workbench.solvers.solution import PointStatus, Solution, Termination

# The known formula on a line is tried before the program above this many masses. The first limit
# holds for certified designs, the second one for others.
_MIN_CERTIFIED_LINE_MASSES = 2_000
_MIN_LINE_MASSES = 40_000
# The known formula is the answer if its bound is within this relative gap.
_FORMULA_GAP = 5e-10
# If blocks leave a larger relative gap than this, the program is solved too.
_BLOCK_PROVEN_GAP = 1e-8
# The program is solved after the blocks only if it compares at most this many masses.
_MAX_PROGRAM_COMPARISONS = 100_000
# The matrix of more hockey sticks (their number squared) takes too much memory.
_MAX_HOCKEY_STICKS = 10_000
# A simple candidate has at least this many seconds, whatever the time limit.
_MIN_SIMPLE_SECONDS = 2.0
# A pure ε that implies a budget of several bounds is rounded to this denominator.
_MAX_EPSILON_DENOMINATOR = 10**9

# Names of routes, and the origin of the channel without privacy, as certificates state them.
ONE_OUTPUT_NAME = "one output for all neighbours"
_GEOMETRIC_ROUTE = "geometric noise, post-processed"
_NO_PRIVACY_ORIGIN = "the best output of every answer"
DIRECTED_NOTE = (
    "Directed neighbours protect one order of each pair only: the larger answer, or the first of a "
    "listed pair, against the other. Leave out directed to protect both orders."
)


def _make_route(name: str, applies: str, answer: str) -> Route:
    """Make a route of two methods of `ChannelProblem`, which subclasses may override.

    applies: name of the method that returns why the route does not apply; answer: name of the
    method that answers.
    """
    return Route(
        name, methodcaller(applies), lambda problem, programs, start: getattr(problem, answer)()
    )


ONE_OUTPUT_ROUTE = _make_route(ONE_OUTPUT_NAME, "why_not_one_output", "answer_by_one_output")


class ChannelProblem(Problem):
    """The problem of a request for a channel.

    Attributes:
        request: the request.
        routes: the methods, in the order in which they are tried.
        ACCEPTED_GAP: a design under several bounds is proven if loss and bound differ by at most
            this share of the loss.
        accepted_gap: relative gap of a program at which no other algorithm is tried.
    """

    ACCEPTED_GAP = 1e-3
    accepted_gap = 0.0
    routes: Sequence[Route] = (
        ONE_OUTPUT_ROUTE,
        _make_route("outputs without privacy", "why_not_without_privacy", "answer_without_privacy"),
        _make_route(_GEOMETRIC_ROUTE, "why_not_geometric", "answer_by_geometric"),
        _make_route("blocks", "why_not_blocks", "answer_by_blocks"),
        Route(
            "program",
            require_one_bound,
            lambda problem, programs, start: problem.answer_by_program(programs, start),
        ),
        _make_route("interior method", "why_not_large_smooth", "answer_by_interior"),
        Route(
            "tangents",
            require_several_bounds,
            lambda problem, programs, start: problem.answer_by_tangents(),
        ),
        _make_route("hockey sticks on a grid", "why_not_sticks", "answer_by_sticks"),
        _make_route("interior bound", "why_not_interior_bound", "bound_by_interior"),
    )

    request: ChannelRequest

    # Conditions of the routes.

    def why_not_plain(self) -> Reason:
        """Return why no closed form applies: closed forms minimise the loss without constraints."""
        request = self.request
        if request.aim.minimise != "loss":
            return f"{request.aim.minimise} is minimised"
        return "there are extra constraints" if request.has_extra_constraints else None

    def why_not_one_output(self) -> Reason:
        """Return why a channel with one output for every part of the neighbour relation is not
        optimal.
        """
        reason = self.why_not_plain()
        if reason is None and not self.request.scaled_losses.is_constant_optimal:
            reason = "no one output is optimal for all neighbours"
        return reason

    def why_not_without_privacy(self) -> Reason:
        """Return why the best output of every answer may not be published."""
        request = self.request
        reason = self.why_not_plain()
        if reason is not None:
            return reason
        if request.claim.delta != 1:
            return "delta is not 1"
        if request.losses.forbidden is not None:
            return "there are forbidden outputs"
        return None if request.aim.runs == 1 else "the mechanism runs many times"

    def why_not_geometric(self) -> Reason:
        """Return why geometric noise is tried after the program, or not at all."""
        request = self.request
        reason = request.why_not_post_processing
        if reason is not None:
            return reason
        size = request.losses.values.size
        limit = _MIN_CERTIFIED_LINE_MASSES if request.wants_certificate else _MIN_LINE_MASSES
        return None if size > limit else f"the program of {size} masses is small"

    def why_not_interior(self) -> Reason:
        """Return why the methods that follow the tangents do not apply."""
        reason = require_several_bounds(self)
        if reason is not None:
            return reason
        if self.request.has_extra_constraints or self.request.losses.forbidden is not None:
            return "there are extra constraints or forbidden outputs"
        return "no time is left" if self._convex_deadline.has_passed else None

    def why_not_sticks(self) -> Reason:
        """Return why a grid of hockey sticks does not apply."""
        reason = self.why_not_interior()
        if reason is not None:
            return reason
        if not blocks.has_hockey_stick_grid(self.request):
            return "no grid of hockey sticks approximates the claim, or a solver was requested"
        count = len(blocks.list_hockey_sticks(self.request))
        return (
            None if count <= _MAX_HOCKEY_STICKS else f"{count} hockey sticks take too much memory"
        )

    def why_not_large_smooth(self) -> Reason:
        """Return why the interior-point method for smooth bounds is not the first method."""
        size = self.request.losses.values.size
        if size <= MAX_INTERIOR_COLUMNS and self.request.has_several_bounds:
            return f"tangents are more precise for {size} masses"
        return self.why_not_smooth()

    def why_not_smooth(self) -> Reason:
        """Return why the interior-point method for smooth bounds does not apply."""
        reason = self.why_not_interior()
        if reason is not None:
            return reason
        if blocks.has_hockey_stick_grid(self.request):
            return "hockey sticks on a grid apply"
        if has_smooth_bounds(self.request):
            return None
        return "bounds are not smooth, or a solver was requested"

    def why_not_interior_bound(self) -> Reason:
        """Return why the interior-point method does not bound the loss after other methods."""
        reason = self.why_not_smooth()
        if reason is None and self.request.losses.values.size > MAX_INTERIOR_COLUMNS:
            return "the interior-point method was the first method"
        return reason

    def why_not_blocks(self) -> Reason:
        """Return why the block method does not answer.

        Raises InvalidRequest if the user chose it.
        """
        return require_one_bound(self) or self.request.why_not_blocks

    # Answers.

    def answer_by_geometric(self) -> Answer | Doubt:
        """Return post-processed geometric noise.

        A doubt if it is not proven and the program can be stated.
        """
        request = self.request
        prior = request.question.prior
        assert request.prior_weights is not None
        assert prior is not None
        scaled_losses = request.scaled_losses
        table = scaled_losses.table
        epsilon = request.claim.epsilon
        geometric = post_process_geometric(table.floats, request.prior_weights, float(epsilon))
        K = round_to_integers(geometric.channel)
        bound = bound_loss_on_line(table, prior, epsilon, geometric.row_duals)
        is_proven = geometric.value - float(bound) <= _FORMULA_GAP * geometric.value
        if not is_proven and request.comparison_count <= request.MAX_COMPARISONS:
            return Doubt("it is not proven optimal for this loss")
        return self._answer_in_integers(K, scaled_losses.unscale_loss(bound), _GEOMETRIC_ROUTE)

    def answer_without_privacy(self) -> Answer:
        """Return the channel with the best output for every input, which is private at δ = 1."""
        request = self.request
        question = request.question
        best_outputs = [
            min(range(question.m), key=row.__getitem__) for row in request.losses.values
        ]
        K = np.zeros((question.k, question.m), dtype=object)
        K[np.arange(question.k), best_outputs] = 1
        loss = compute_integer_loss(K, request.losses, question.prior)
        return self._answer_in_integers(K, loss, _NO_PRIVACY_ORIGIN)

    def answer_by_one_output(self) -> Answer | Doubt:
        """Return a channel that ignores its input. Its bound is the loss without privacy.

        A doubt if its loss is larger than the bound.
        """
        request = self.request
        scaled_losses = request.scaled_losses
        floor = scaled_losses.scale.floor
        K = np.zeros((request.question.k, request.question.m), dtype=object)
        K[np.arange(len(K)), scaled_losses.constant_outputs] = 1
        if compute_integer_loss(K, request.losses, request.question.prior) != floor:
            return Doubt("its loss is larger than that without privacy")
        return self._answer_in_integers(K, floor, ONE_OUTPUT_NAME)

    def _answer_in_integers(self, K: Integers, bound: Fraction, origin: str) -> Answer:
        """Return a channel in integers as an answer without a solver."""
        channel = self.request.make_channel(_make_channel_from_integers(K))
        return Answer(channel, bound, solution=None, origin=origin, law=(K, None))

    def answer_by_blocks(self) -> Answer | Doubt:
        """Solve by blocks, at first without the masses that δ makes unnecessary.

        A doubt if the program may prove more and is small enough.
        """
        request = self.request
        if request.claim.delta:
            request.check_size()
        supports: list[Flags | None] = [None]
        if request.stated_masses is not None:
            supports = [request.stated_masses, None]
        known_bound: Fraction | None = None
        for support in supports:
            masses, solution, bound = blocks.solve_by_blocks(request, support)
            if known_bound is not None:
                bound = max(bound, known_bound)
            known_bound = bound if solution.bound is not None else None
            loss = solution.objective or 0.0
            is_open = not self.loss_scale.proves(loss, bound, _BLOCK_PROVEN_GAP)
            is_final = solution.termination in FINAL_TERMINATIONS
            if not is_open or is_final:
                break
        is_infeasible = solution.point is PointStatus.INFEASIBLE
        if request.has_extra_constraints and is_infeasible and not is_final:
            return Doubt("the program says which constraints conflict")
        can_solve_program = (
            request.how.method == "auto" and request.comparison_count <= _MAX_PROGRAM_COMPARISONS
        )
        if is_open and can_solve_program and not is_final:
            return Doubt("the program may prove more")
        integers = round_to_integers(masses)
        origin = "exact repair, output by output"
        return Answer(
            request.make_channel(masses),
            bound,
            solution,
            origin=origin,
            law=(integers, None),
            claimed_objective=loss,
        )

    def answer_by_program(self, programs: Programs | None, start: str) -> Answer:
        """Solve the linear program, or the program with binaries.

        Args:
            programs: compiled programs of the session.
            start: "hot" or "cold": how the solver starts.

        Raises:
            Infeasible: no channel satisfies the constraints.
            NotProven: the solver was stopped without a channel.
        """
        request = self.request
        if request.claim.delta:
            request.check_size()
        assert programs is not None
        solver = ChannelProgramSolver(request, self.loss_scale, programs, self.accepted_gap)
        model, solution, bound = solver.solve_until_proven(start)
        if solution.x is None:
            raise_no_channel(request, solution, model, solver.solve_at)
        is_exempt = _read_binary_pattern(solution) if request.bounds.bounds_mass else None
        law = round_to_integers(solution["M"]), is_exempt
        channel = request.make_channel(np.maximum(solution["M"], 0.0))
        return Answer(
            channel,
            bound,
            solution,
            origin="exact repair",
            law=law,
            claimed_objective=solution.objective or 0.0,
        )

    @cached_property
    def _convex_deadline(self) -> Deadline:
        """Return the deadline of all methods for several bounds."""
        limit = self.request.how.options.time_limit
        if limit is None:
            # The tangents use at most half of it, so the methods after them get as long.
            limit = 2 * DEFAULT_TANGENT_SECONDS
        return Deadline(limit)

    def answer_by_tangents(self) -> Answer | Doubt:
        """Solve linear programs with tangents. Return a doubt if another method may prove more."""
        request = self.request
        request.check_convex_size()
        deadline = self._convex_deadline  # The clock starts here, if no method ran before.
        limited_request = request
        if request.how.options.time_limit is not None and not deadline.has_passed:
            limited_request = self._limit_time()
        model = request.model()
        ordered_pairs = request.question.ordered_pairs
        first_pair, *_ = ordered_pairs  # All pairs have the same bounds.
        comparisons = model.build_comparisons(ordered_pairs)
        # Only plain requests can be answered by the methods that follow.
        is_plain = not request.has_extra_constraints and request.losses.forbidden is None
        try:
            solution, bound = solve_by_tangents(
                limited_request, first_pair, model.program, comparisons
            )
        except NotProven as error:
            if error.interrupted or not is_plain:
                raise
            return Doubt("its programs ended without a proof", error=error)
        answer = Answer(request.make_channel(np.maximum(solution["M"], 0.0)), bound, solution)
        if not is_plain:
            return answer
        objective = solution.objective or 0.0
        if bound is not None and self.loss_scale.proves(objective, bound, self.ACCEPTED_GAP):
            return answer
        return Doubt("its bound is not near its loss", answer)

    def answer_by_sticks(self) -> Answer:
        """Solve under a grid of hockey sticks, by blocks."""
        request = self._limit_time()
        masses, solution, bound = blocks.solve_on_hockey_stick_grid(request)
        return Answer(request.make_channel(masses), bound, solution)

    def answer_by_interior(self) -> Answer | Doubt:
        """Solve by an interior-point method for smooth bounds. Its multipliers prove the bound.

        A doubt if the bound is not near the loss, because tangents may then prove more.
        """
        self.request.check_convex_size()
        outcome = self.bound_by_interior()
        answer = outcome.answer
        if answer is None:
            return outcome
        assert answer.bound is not None
        loss = self.compute_loss(answer.mechanism)
        if self.loss_scale.proves(loss, answer.bound, self.ACCEPTED_GAP):
            return answer
        return Doubt("its bound is not near its loss", answer)

    def bound_by_interior(self) -> Doubt:
        """Bound the loss by the multipliers of the interior-point method, after another method."""
        request = self._limit_time()
        result = solve_by_interior_point(request)
        if result is None:
            return Doubt("even uniform rows violate the bounds")
        masses, bound = result
        return Doubt("only its bound is used", Answer(request.make_channel(masses), bound))

    def _limit_time(self) -> ChannelRequest:
        """Return the request with the time that is left of all methods for several bounds."""
        seconds = self._convex_deadline.remaining_seconds
        return self.request.with_values(
            options=replace(self.request.how.options, time_limit=seconds)
        )

    # Simpler candidates.

    def without_delta(self) -> Problem | None:
        """Return the problem at δ = 0, whose optimum is private at δ as well.

        None for a notion of several bounds or per distance, if δ or ε is minimised, or for several
        runs.
        """
        request = self.reported_request
        if request.has_several_bounds or self.request.is_per_distance:
            return None
        if request.aim.minimise != "loss" or request.aim.runs > 1:
            return None
        return type(self)(request.with_values(delta=Fraction(0), options=self._simple_options))

    @property
    def _simple_options(self) -> Options:
        """Return the solver's options for a simple candidate, which always has a little time."""
        options = self.request.how.options
        if not options.time_limit:
            return options
        return replace(options, time_limit=max(options.time_limit, _MIN_SIMPLE_SECONDS))

    def bound_at_delta(self, bound: Fraction | float) -> Fraction | None:
        """Return a lower bound at δ, made from one at δ = 0 by `bound_gain_of_delta`.

        None with extra constraints, directed neighbours or forbidden outputs, for which the gain of
        δ is not proven.

        Args:
            bound: lower bound on the loss at δ = 0.
        """
        request = self.request
        losses = request.losses
        if request.has_extra_constraints or request.question.directed:
            return None
        if losses.forbidden is not None:
            return None
        delta = Fraction(request.claim.delta or 0)
        gain = bound_gain_of_delta(request.claim.epsilon, delta, request.question.k)
        # Losses may be negative.
        loss_spread = Fraction(int(losses.values.max() - losses.values.min()), losses.unit)
        return Fraction(bound) - gain * loss_spread

    def find_simpler_candidates(self) -> Iterator[Answer]:
        """Yield simpler channels under a notion of several bounds.

        They are Gaussian noise published as the nearest output, and the optimal channel at about
        the largest pure ε that implies the claim.
        """
        request = self.request
        if not request.has_several_bounds or request.has_extra_constraints:
            return
        if request.losses.forbidden is not None:
            return
        gaussian = compute_gaussian_masses(request)
        if gaussian is not None:
            note = (
                "It is Gaussian noise published as the nearest output, which is within the budget."
            )
            yield Answer(
                request.make_channel(gaussian),
                bound=None,
                origin="Gaussian noise",
                notes=(note,),
                route="Gaussian noise",
            )
        try:
            implied_epsilon = Fraction(find_implied_pure_epsilon(request.audited_claim))
            epsilon = implied_epsilon.limit_denominator(_MAX_EPSILON_DENOMINATOR)
            pure_request = request.with_values(
                claim=Claim("pure", epsilon), runs=1, options=self._simple_options
            )
            problem = ChannelProblem(pure_request)
            programs = Programs(request.how.solver)
            answer = answer_by_routes(problem, problem.routes, programs, "cold")
            mechanism, _, _ = problem.repair(answer)
        except (InvalidRequest, Infeasible, NotCertified, NotProven):
            return
        note = (
            f"It is the optimal channel at pure epsilon = {float(epsilon):.6g}, which implies the "
            "budget."
        )
        yield Answer(
            request.make_channel(mechanism.rows),
            bound=None,
            origin="pure",
            notes=(note,),
            route="pure epsilon",
        )

    def find_constant(self, loss_limit: float) -> Answer | None:
        """Return the channel that publishes the output of smallest loss for all inputs.

        None if its loss is not smaller than the limit, if δ or ε is minimised, or with extra
        constraints or forbidden outputs, which it may violate.

        Args:
            loss_limit: the output is returned only if its loss is smaller than this.
        """
        request = self.request
        question = request.question
        losses = request.losses
        if request.has_extra_constraints or request.aim.minimise != "loss":
            return None
        if losses.forbidden is not None:
            return None
        output = find_best_constant_output(losses, question.prior)
        column = losses.floats[:, output]
        weights = request.prior_weights
        loss = column.max() if weights is None else column @ weights
        if float(loss) >= loss_limit:
            return None
        K = np.zeros((question.k, question.m), dtype=object)
        K[:, output] = 1
        row_minima = [Fraction(int(value), losses.unit) for value in losses.values.min(axis=1)]
        if question.prior is None:
            bound = max(row_minima)
        else:
            bound = sum(map(mul, question.prior, row_minima), Fraction(0))
        note = f"It publishes {format_point(question.outputs[output])} whatever the answer is."
        answer = self._answer_in_integers(K, bound, "constant")
        return replace(answer, notes=(note,), route="constant")

    # Designs.

    def _is_settled(self, loss: Fraction | float, bound: Fraction | float) -> bool:
        """Return whether a bound proves a loss optimal.

        With pure ratios and a prior the optimum exceeds the loss without privacy, unless a constant
        output is optimal. A relative gap then decides (`LossScale.proves`). Otherwise the optimum
        may be 0 in the scale, and a small absolute gap is accepted too (`LossScale.settles`).
        """
        request = self.request
        exceeds_floor = (
            request.question.prior is not None
            and not request.bounds.delta
            and request.aim.minimise == "loss"
            and not request.scaled_losses.is_constant_optimal
        )
        if exceeds_floor:
            return self.loss_scale.proves(loss, bound)
        return self.loss_scale.settles(loss, bound)

    def repair(self, answer: Answer) -> Repaired:
        """Make an answer exactly private and certify it.

        Under a notion of one bound, ratios and hockey sticks are repaired in integers. Under
        several bounds the channel is mixed with a strictly private one.

        Args:
            answer: answer of a route.

        Raises:
            Infeasible: the smallest δ is above its limit.
            NotCertified: the repaired channel is not private.
        """
        request = self.request
        prior = request.question.prior
        losses = request.losses
        channel = answer.mechanism
        if not request.has_several_bounds:
            K, is_exempt = answer.law
            if request.aim.max_loss is not None:
                K = mix_within_max_loss(K, losses, prior, request.aim.max_loss)
            else:
                output = find_best_constant_output(losses, prior)
                K = repair_integer_rows(K, request.edges, request.bounds.delta, output, is_exempt)
            channel = request.make_channel(_make_channel_from_integers(K))
        certificate, notes = make_channel_certificate(
            request, channel, answer.solution, answer.origin
        )
        delta = certificate.delta or Fraction(0)
        limit = request.claim.delta
        if request.aim.minimise == "delta" and limit is not None and delta > limit:
            raise Infeasible(
                f"Loss {losses.name} at most {float(request.aim.max_loss or 0):g} needs delta >= "
                f"{float(answer.bound or 0):.9g} at this epsilon. Got delta = {float(limit):g}."
            )
        return certificate.mechanism, certificate, notes

    def compute_loss(self, mechanism: Channel) -> Fraction:
        """Compute the exact expected loss, or the exact worst-case loss.

        Args:
            mechanism: channel with the inputs and outputs of the request.
        """
        return compute_channel_loss(mechanism, self.request.losses, self.request.question.prior)

    @property
    def loss_scale(self) -> LossScale:
        """Return the scale of the losses, or an absolute scale if δ or ε is minimised."""
        if self.request.aim.minimise != "loss":
            return LossScale()
        return self.request.scaled_losses.scale

    def judge_by_formula(self, answer: Answer) -> OracleVerdict:
        """Compare the loss of an answer with a known formula.

        Args:
            answer: answer of a route.
        """
        if self.request.has_several_bounds:
            return super().judge_by_formula(answer)
        objective = answer.claimed_objective
        if objective is None:
            objective = float(self.compute_loss(answer.mechanism))
        return judge_by_closed_form(self.request, objective)

    def list_notes(self) -> list[str]:
        """List notes on the neighbour relation: separate parts, directed pairs, implied pairs."""
        request = self.request
        question = request.question
        notes = []
        part_count = len(question.components)
        if part_count > 1:
            notes.append(describe_separation(part_count))
        if question.directed:
            notes.append(DIRECTED_NOTE)
        proven_count = len(request.pairs or ())
        pair_count = len(question.neighbour_pairs)
        if question.is_planar and request.is_per_distance and proven_count < pair_count:
            notes.append(
                f"The certificate proves {proven_count} of {pair_count} pairs. They imply the "
                "others, because another place lies exactly between the places of each other pair "
                f"and {question.norm} distances add up."
            )
        return notes

    def require_proof(self, design: Design) -> Design:
        """Return a design if the solver and the bound prove it optimal.

        Args:
            design: certified design of the request.

        Raises:
            NotProven: it is not proven optimal. The error carries the design.
        """
        if design.solution is None and design.route == ONE_OUTPUT_NAME:
            # Its loss is the loss without privacy, so no channel is better.
            return design
        if self.request.has_several_bounds:
            return super().require_proof(design)
        solution = design.solution
        bound = design.details["bound"]
        exact_loss = design.objective
        if self.request.aim.minimise == "loss" and design.certificate:
            exact_loss = design.details["loss"]
        if solution is None:
            if self.loss_scale.proves(exact_loss, bound, _FORMULA_GAP):
                return design
            raise NotProven(
                f"Post-processed geometric noise has the expected loss {design.objective:.9g}. The "
                f"proven lower bound for this loss is {float(bound):.9g}, and the program of "
                f"{self.request.losses.values.size} masses would be too large.",
                design=design,
            )
        claims_optimum = solution.termination in (Termination.OPTIMAL, Termination.GAP_LIMIT)
        if claims_optimum and (bound is None or self._is_settled(exact_loss, bound)):
            return design
        if claims_optimum:
            reason = "says optimal, but its bound does not prove it"
        else:
            reason = f"stopped with {solution.raw_status!r} before proving an optimum"
        raise NotProven(
            f"{solution.solver} {reason}: incumbent {design.objective:.9g}, "
            f"lower bound {design.bound_text}.",
            design=design,
            interrupted=solution.termination is Termination.INTERRUPTED,
        )


def _make_channel_from_integers(K: Integers) -> Channel:
    """Return a channel whose rows are integers, each divided by its sum."""
    return Channel(tuple(map(Distribution.from_integers, K.tolist())))


def _read_binary_pattern(solution: Solution) -> Any:
    """Return where the binaries allow a violated ratio, flags of shape (ordered pairs, m).

    All pairs come first in their listed order, and then all of them reversed.
    """
    names = [block.name for block in solution.program.variables if block.name.startswith("b_")]
    return np.concatenate([solution[name] > 0.5 for name in names])
