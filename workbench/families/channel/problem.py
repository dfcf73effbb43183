"""One channel request as a problem: its programs, its repair in integers, its bound, its oracle.

origin                             where the masses come from
"exact repair, output by output"   the interior point of `workbench.models.channel.block_interior`
"exact repair"                     the linear program of `workbench.models.channel.program`
"repair"                           several convex bounds, by tangents as they are needed
"geometric, post-processed"        the closed form along a line, where the program would be large or is not needed
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from fractions import Fraction
from functools import cached_property, partial
from operator import methodcaller, mul
from typing import Any, NoReturn

import numpy as np

from workbench.data.points import format_point
from workbench.errors import Infeasible, InvalidRequest, NotCertified, NotProven, WorkbenchError
from workbench.exact.distribution import Distribution
from workbench.exact.objects import Values
from workbench.families.channel import blocks
from workbench.families.channel.interior_bound import has_smooth_bounds, solve_by_interior_point
from workbench.families.channel.proof import (
    bound_gain_of_delta,
    bound_least_delta,
    bound_least_loss,
    bound_loss_on_line,
    judge_by_closed_form,
    make_channel_certificate,
)
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
from workbench.models.channel.program import ChannelModel
from workbench.models.oracles.finite_channel import post_process_geometric
from workbench.pipeline.convex_notion import (
    DEFAULT_TANGENT_SECONDS,
    find_implied_pure_epsilon,
    solve_by_tangents,
)
from workbench.pipeline.design import Design, OracleVerdict
from workbench.pipeline.infeasible import (
    EXPLANATION_SECONDS,
    Ask,
    explain_conflict,
    explain_sufficient_budgets,
    find_wish_rows,
    raise_no_point,
)
from workbench.pipeline.loss_scale import LossScale
from workbench.pipeline.loss_tables import Integers
from workbench.pipeline.outcome import translate_error
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
from workbench.solvers.arrays import Vector
from workbench.solvers.backend import Options
from workbench.solvers.errors import SolverError
from workbench.solvers.search import Deadline
from workbench.solvers.solution import PointStatus, Solution, Termination

_SLOW_SIMPLEX_COMPARISONS = 8_000  # Compared masses from which the simplex takes minutes where the interior point takes seconds.
_LARGE_PROVEN_GAP = 1e-8  # Relative gap of an interior point that is accepted for so many masses.
MIN_INTERIOR_COMPARISONS = (
    2_000  # compared masses from which interior point with crossover is faster than simplex
)
_MIN_CERTIFIED_LINE_MASSES, _MIN_LINE_MASSES = (
    2_000,
    40_000,
)  # masses of a line, certified or not, from which the closed form comes first
_PROVEN_GAP = (
    5e-10  # relative gap, by the exact bound, above which the other algorithm is asked as well
)
_BLOCK_PROVEN_GAP, _MAX_PROGRAM_COMPARISONS = (
    1e-8,
    100_000,
)  # relative gap, and masses, from and up to which a program follows the blocks
_MAX_HOCKEY_STICKS = 10_000  # Above this many hockey sticks their matrix (their number squared) takes too much memory.
_MAX_GAUSSIAN_COMPARISONS = (
    50_000  # Above this many compared masses Gaussian noise is not tried, whose audit takes long.
)
_GAUSSIAN_WIDENING = 1e-9  # Share by which Gaussian noise is widened, so that its rounded masses are within the budget.
_MIN_SIMPLE_SECONDS = 2.0  # A simple candidate has at least so much time, whatever the time limit.
_UNIFORM_SHARE = 2.0**-40  # Share of Gaussian noise that is uniform, as far masses underflow.
_DELTA_MARGIN = Fraction(
    1, 1 << 28
)  # of δ, where binaries bound a mass: what rounding moves cannot be mixed away there
_REDUCED_DUAL_TOLERANCE = (
    1e-8  # With that of HiGHS, 1e-7, the multipliers of a reduced program often prove too little.
)
_MAX_DELTA_EXCESS = 1e-12  # Masses whose hockey sticks exceed δ by at most this are private after the repair at no cost.
_FINAL_TERMINATIONS = (Termination.INTERRUPTED, Termination.TIME_LIMIT, Termination.INFEASIBLE)
_GEOMETRIC_ROUTE = "geometric noise, post-processed"
_OPEN_ORIGIN = "the cheapest output of every answer"
ONE_OUTPUT_NAME = "one output for all neighbours"
_MIN_LOSS_FACTOR, _MAX_LOSS_EXPONENT = (
    16.0,
    40,
)  # Costs are raised at least so many times, and at most 2^40 times, for a small optimum.
DIRECTED_NOTE = (
    "Directed neighbours protect one side of each pair only: the larger answer, or the first of a listed pair, against "
    "the other. Leave out directed for the symmetric relation."
)


def _make_route(name: str, applies: str, answer: str) -> Route:
    """Return a route of two methods of `ChannelProblem`, by name, which a subclass may have of its own."""
    return Route(
        name, methodcaller(applies), lambda problem, programs, start: getattr(problem, answer)()
    )


ONE_OUTPUT_ROUTE = _make_route(ONE_OUTPUT_NAME, "why_not_one_output", "answer_by_one_output")


class ChannelProblem(Problem):
    """The problem of a request."""

    ACCEPTED_GAP = 1e-3
    accepted_gap = 0.0  # Relative gap of a program from which no other algorithm is asked.
    routes: Sequence[Route] = (
        ONE_OUTPUT_ROUTE,
        _make_route("outputs without privacy", "why_not_open", "answer_without_privacy"),
        _make_route(_GEOMETRIC_ROUTE, "why_not_geometric", "answer_by_geometric"),
        _make_route("blocks", "why_not_blocks", "answer_by_blocks"),
        Route(
            "program",
            require_one_bound,
            lambda problem, programs, start: problem.answer_by_program(programs, start),
        ),
        Route(
            "tangents",
            require_several_bounds,
            lambda problem, programs, start: problem.answer_by_tangents(),
        ),
        _make_route("hockey sticks on a grid", "why_not_sticks", "answer_by_sticks"),
        _make_route("interior method", "why_not_smooth", "answer_by_interior"),
    )

    request: ChannelRequest

    # Answers.

    def why_not_plain(self) -> Reason:
        """Return why a closed form does not apply: it knows no constraints, and minimises the loss."""
        request = self.request
        if request.aim.minimise != "loss":
            return f"{request.aim.minimise} is minimised"
        return "there are extra constraints" if request.has_extra_constraints else None

    def why_not_one_output(self) -> Reason:
        """Return why one output for every part of the relation loses something."""
        if (reason := self.why_not_plain()) is not None:
            return reason
        return (
            None
            if self.request.scaled_losses.is_constant_optimal
            else "no one output is the cheapest for all neighbours"
        )

    def why_not_open(self) -> Reason:
        """Return why the cheapest output of every answer may not be published."""
        request = self.request
        if (reason := self.why_not_plain()) is not None:
            return reason
        if request.claim.delta != 1:
            return "delta is not 1"
        if request.losses.forbidden is not None:
            return "there are forbidden outputs"
        return None if request.aim.runs == 1 else "the mechanism runs many times"

    def why_not_geometric(self) -> Reason:
        """Return why geometric noise comes after the program, or not at all."""
        request = self.request
        if (reason := request.why_not_post_processing) is not None:
            return reason
        size = request.losses.values.size
        least = _MIN_CERTIFIED_LINE_MASSES if request.wants_certificate else _MIN_LINE_MASSES
        return None if size > least else f"the program of {size} masses is small"

    def why_not_interior(self) -> Reason:
        """Return why methods that follow tangents do not apply."""
        if (reason := require_several_bounds(self)) is not None:
            return reason
        if self.request.has_extra_constraints or self.request.losses.forbidden is not None:
            return "there are extra constraints or forbidden outputs"
        return "no time is left" if self._convex_deadline.has_passed else None

    def why_not_sticks(self) -> Reason:
        """Return why hockey sticks on a grid do not apply."""
        if (reason := self.why_not_interior()) is not None:
            return reason
        if not blocks.has_hockey_stick_grid(self.request):
            return (
                "no hockey sticks on a grid nearly amount to the claim, or a solver was asked for"
            )
        count = len(blocks.list_hockey_sticks(self.request))
        return (
            None if count <= _MAX_HOCKEY_STICKS else f"{count} hockey sticks take too much memory"
        )

    def why_not_smooth(self) -> Reason:
        """Return why the interior method does not apply."""
        if (reason := self.why_not_interior()) is not None:
            return reason
        if blocks.has_hockey_stick_grid(self.request):
            return "hockey sticks on a grid apply"
        return (
            None
            if has_smooth_bounds(self.request)
            else "bounds are not smooth, or a solver was asked for"
        )

    def why_not_blocks(self) -> Reason:
        """Return why the program is not answered output by output. Raises InvalidRequest where that was asked for."""
        return require_one_bound(self) or self.request.why_not_blocks

    def answer_by_geometric(self) -> Answer | Doubt:
        """Return post-processed geometric noise; a doubt where it is not proven and the program can be stated."""
        request = self.request
        assert request.prior_weights is not None
        assert request.question.prior is not None
        scaled = request.scaled_losses
        geometric = post_process_geometric(
            scaled.table.floats, request.prior_weights, float(request.claim.epsilon)
        )
        K = round_to_integers(geometric.channel)
        bound = bound_loss_on_line(
            scaled.table, request.question.prior, request.claim.epsilon, geometric.label_shares
        )
        proven = geometric.value - float(bound) <= _PROVEN_GAP * geometric.value
        if not proven and request.comparison_count <= request.MAX_COMPARISONS:
            return Doubt("it is not proven optimal for this loss")
        return Answer(
            request.channel(_make_channel_from_integers(K)),
            scaled.unscale_loss(bound),
            None,
            _GEOMETRIC_ROUTE,
            (K, None),
        )

    def answer_without_privacy(self) -> Answer:
        """Return the cheapest output for every answer, which is private at δ = 1."""
        request, q = self.request, self.request.question
        K = np.zeros((q.k, q.m), dtype=object)
        K[
            np.arange(q.k), [min(range(q.m), key=row.__getitem__) for row in request.losses.values]
        ] = 1
        return Answer(
            request.channel(_make_channel_from_integers(K)),
            compute_integer_loss(K, request.losses, q.prior),
            None,
            _OPEN_ORIGIN,
            (K, None),
        )

    def answer_by_one_output(self) -> Answer | Doubt:
        """Return the channel that ignores its input, with the loss without privacy as its bound; a doubt where its loss
        is larger."""
        request, scaled = self.request, self.request.scaled_losses
        K = np.zeros((request.question.k, request.question.m), dtype=object)
        K[np.arange(len(K)), scaled.constant_outputs] = 1
        if compute_integer_loss(K, request.losses, request.question.prior) != scaled.scale.floor:
            return Doubt("its loss is larger than that without privacy")
        return Answer(
            request.channel(_make_channel_from_integers(K)),
            scaled.scale.floor,
            None,
            ONE_OUTPUT_NAME,
            (K, None),
        )

    def without_delta(self) -> Problem | None:
        """See `Problem.without_delta`."""
        request = self.reported_request
        if (
            request.has_several_bounds
            or self.request.is_per_distance
            or request.aim.minimise != "loss"
            or request.aim.runs > 1
        ):
            return None
        return type(self)(request.with_values(delta=Fraction(0), options=self._simple_options))

    @property
    def _simple_options(self) -> Options:
        """The solver's options for a simple candidate, which has a little time where the request has none left."""
        options = self.request.how.options
        return replace(
            options, time_limit=options.time_limit and max(options.time_limit, _MIN_SIMPLE_SECONDS)
        )

    def bound_at_delta(self, bound: Fraction | float) -> Fraction | None:
        """See `Problem.bound_at_delta`, and `gain_of_delta`."""
        request, losses = self.request, self.request.losses
        if (
            request.has_extra_constraints
            or request.question.directed
            or losses.forbidden is not None
        ):
            return None
        gain = bound_gain_of_delta(
            request.claim.epsilon, Fraction(request.claim.delta or 0), request.question.k
        )
        spread = Fraction(
            int(losses.values.max() - losses.values.min()), losses.unit
        )  # They may be negative.
        return Fraction(bound) - gain * spread

    def find_simpler_candidates(self) -> Iterator[Answer]:
        """Under a notion of several bounds: the best channel at about the largest pure ε that implies the claim, and
        Gaussian noise published as the nearest output."""
        request = self.request
        if (
            not request.has_several_bounds
            or request.has_extra_constraints
            or request.losses.forbidden is not None
        ):
            return
        gaussian = self._compute_gaussian_masses()
        if gaussian is not None:
            words = (
                "It is Gaussian noise published as the nearest output, which is within the budget.",
            )
            yield Answer(
                request.channel(gaussian),
                None,
                None,
                "Gaussian noise",
                notes=words,
                route="Gaussian noise",
            )
        try:
            epsilon = Fraction(find_implied_pure_epsilon(request.audited_claim)).limit_denominator(
                10**9
            )
            claim = Claim("pure", epsilon)
            problem = ChannelProblem(
                request.with_values(claim=claim, runs=1, options=self._simple_options)
            )
            answer = answer_by_routes(problem, problem.routes, Programs(request.how.solver), "cold")
            mechanism, _, _ = problem.repair(answer)
        except (InvalidRequest, Infeasible, NotCertified, NotProven):
            return
        words = (
            f"It is the best channel at pure epsilon = {float(epsilon):.6g}, which implies the budget.",
        )
        yield Answer(
            request.channel(mechanism.rows), None, None, "pure", notes=words, route="pure epsilon"
        )

    def _compute_gaussian_masses(self) -> Vector | None:
        """The masses of Gaussian noise within the budget, published as the nearest output, in floats; None where
        answers and outputs are no numbers, or the notion states no Gaussian. Shape (k, m)."""
        q, claim = self.request.question, self.request.audited_claim
        mu, variance = (
            claim.notion.gaussian_mu(claim.values),
            claim.notion.gaussian_variance(claim.values),
        )
        spread = 1 / float(mu) if mu else math.sqrt(float(variance)) if variance else None
        if (
            spread is None
            or q.numbers is None
            or len(q.ordered_pairs) * q.m > _MAX_GAUSSIAN_COMPARISONS
        ):
            return None
        inputs, outputs = (np.array([*map(float, points)]) for points in q.numbers)
        reach = max((abs(inputs[i] - inputs[j]) for i, j in q.ordered_pairs), default=0.0)
        if not reach:
            return None
        from scipy.special import ndtr  # slow to import

        order = np.argsort(outputs)
        middles = (outputs[order][1:] + outputs[order][:-1]) / 2
        ends = (np.r_[-np.inf, middles, np.inf] - inputs[:, None]) / (
            reach * spread * (1 + _GAUSSIAN_WIDENING)
        )
        low, high = ends[:, :-1], ends[:, 1:]
        masses = np.empty((inputs.size, outputs.size))
        # Both tails are differences of small numbers, so that far masses keep their digits.
        masses[:, order] = np.where(low > 0, ndtr(-low) - ndtr(-high), ndtr(high) - ndtr(low))
        return masses * (1 - _UNIFORM_SHARE) + _UNIFORM_SHARE / outputs.size

    def find_constant(self, loss_limit: float) -> Answer | None:
        """The output that costs least for all inputs; none where there are constraints, which it may miss."""
        request, q = self.request, self.request.question
        if (
            request.has_extra_constraints
            or request.aim.minimise != "loss"
            or request.losses.forbidden is not None
        ):
            return None
        output = find_best_constant_output(request.losses, q.prior)
        column = request.losses.floats[:, output]
        least = column.max() if request.prior_weights is None else column @ request.prior_weights
        if float(least) >= loss_limit:
            return None
        K = np.zeros((q.k, q.m), dtype=object)
        K[:, output] = 1
        words = (f"It publishes {format_point(q.outputs[output])} whatever the answer is.",)
        least = [
            Fraction(int(value), request.losses.unit) for value in request.losses.values.min(axis=1)
        ]
        bound = max(least) if q.prior is None else sum(map(mul, q.prior, least), Fraction(0))
        return Answer(
            request.channel(_make_channel_from_integers(K)),
            bound,
            None,
            "constant",
            (K, None),
            notes=words,
            route="constant",
        )

    @cached_property
    def _convex_deadline(self) -> Deadline:
        """The time of all methods for several bounds."""
        limit = self.request.how.options.time_limit
        return Deadline(2 * DEFAULT_TANGENT_SECONDS if limit is None else limit)

    def answer_by_tangents(self) -> Answer | Doubt:
        """Answer by linear programs with tangents; a doubt where another method may prove more."""
        request = self.request
        request.check_convex_size()
        _ = self._convex_deadline
        model = request.model()
        ordered = request.question.ordered_pairs
        is_plain = not request.has_extra_constraints and request.losses.forbidden is None
        try:
            solution, least = solve_by_tangents(
                request, ordered[0], model.program, model.build_comparisons(ordered)
            )
        except NotProven as error:
            if error.interrupted or not is_plain:
                raise
            return Doubt("its programs ended without a proof", error=error)
        answer = Answer(request.channel(np.maximum(solution["M"], 0.0)), least, solution)
        near = least is not None and self.loss_scale.proves(
            solution.objective or 0.0, least, self.ACCEPTED_GAP
        )
        return answer if near or not is_plain else Doubt("its bound is not near its loss", answer)

    def answer_by_sticks(self) -> Answer:
        """Answer under hockey sticks on a grid, by an interior point."""
        request = self._limit_time()
        masses, solution, bound = blocks.solve_on_hockey_stick_grid(request)
        return Answer(request.channel(masses), bound, solution)

    def answer_by_interior(self) -> Doubt:
        """Bound the loss by the multipliers of an interior point under smooth bounds."""
        request = self._limit_time()
        reached = solve_by_interior_point(request)
        if reached is None:
            return Doubt("even laws are not within the bounds")
        masses, bound = reached
        return Doubt("its bound counts, not its point", Answer(request.channel(masses), bound))

    def _limit_time(self) -> ChannelRequest:
        limited = replace(
            self.request.how.options, time_limit=self._convex_deadline.remaining_seconds
        )
        return self.request.with_values(options=limited)

    def answer_by_blocks(self) -> Answer | Doubt:
        """Answer output by output, first without the masses that δ makes needless; a doubt where that proves less than
        a program may, which is small enough to be stated."""
        request, best = self.request, None
        if request.claim.delta:
            request.check_size()
        for support in {id(each): each for each in (request.stated_masses, None)}.values():
            masses, solution, bound = blocks.solve_by_blocks(request, support)
            value = solution.objective or 0.0
            if best is not None and best[1].bound is not None:
                bound = max(bound, best[2])
            best, open_ = (
                (masses, solution, bound),
                not self.loss_scale.proves(value, bound, _BLOCK_PROVEN_GAP),
            )
            if not open_ or solution.termination in _FINAL_TERMINATIONS:
                break
        if (
            request.has_extra_constraints
            and solution.point is PointStatus.INFEASIBLE
            and solution.termination not in _FINAL_TERMINATIONS
        ):
            return Doubt("the program says which constraints conflict")
        if (
            open_
            and request.how.method == "auto"
            and solution.termination not in _FINAL_TERMINATIONS
            and request.comparison_count <= _MAX_PROGRAM_COMPARISONS
        ):
            return Doubt("the program may prove more")
        law = round_to_integers(masses), None
        return Answer(
            request.channel(masses), bound, solution, "exact repair, output by output", law, value
        )

    def answer_by_program(self, programs: Programs | None, start: str) -> Answer:
        """Answer by the linear program, or the one with binaries. Raises as `Problem`'s routes."""
        request = self.request
        if request.claim.delta:
            request.check_size()
        assert programs is not None
        model, solution, bound = self._solve_until_proven(programs, start)
        if solution.x is None:
            raise_no_channel(request, solution, model, partial(self._solve_at, programs))
        free = _read_binary_pattern(model, solution) if request.bounds.bounds_mass else None
        law = round_to_integers(solution["M"]), free
        raw = request.channel(np.maximum(solution["M"], 0.0))
        return Answer(raw, bound, solution, "exact repair", law, solution.objective or 0.0)

    def _solve_until_proven(
        self, programs: Programs, start: str
    ) -> tuple[ChannelModel, Solution, Fraction | None]:
        """The model, the best answer and the best bound of as many algorithms as it takes to close the gap: at last
        with larger costs, where the optimum is far below the width of the losses."""
        request = self.request
        large = (
            request.comparison_count >= MIN_INTERIOR_COMPARISONS and not request.bounds.bounds_mass
        )
        given = (
            request.how.options.algorithm is not None
            or programs.backend.name != "highs"
            or request.bounds.bounds_mass
        )
        names = (
            [None]
            if given
            else ["interior-point", "simplex"]
            if large
            else ["simplex", "interior-point"]
        )
        order = [(name, False, False) for name in names]
        if request.stated_masses is not None or request.binding_comparisons is not None:
            order.insert(0, (names[0], True, False))
        if request.aim.minimise == "loss" and not request.bounds.bounds_mass:
            order.append((None if given else "simplex", False, True))
        best = None
        for algorithm, reduced, dearer in order:
            cost = 1.0
            if dearer and best is not None and best[1].x is not None:
                cost = self._choose_loss_factor(best[1])
                if cost < _MIN_LOSS_FACTOR:
                    break
            model, solution = self._solve_program(
                programs, start, algorithm, reduced=reduced, loss_factor=cost
            )
            is_last = solution.termination in _FINAL_TERMINATIONS
            if (
                model.stated_comparisons is not None
                and not is_last
                and not self._is_private(solution)
            ):
                continue  # The program with all comparisons has another optimum.
            bound = self.compute_lower_bound(model, solution)
            if best is not None:
                bound = max(
                    (known for known in (bound, best[2]) if known is not None), default=None
                )
                if solution.x is None or (
                    best[1].x is not None and (best[1].objective or 0) < (solution.objective or 0)
                ):
                    solution = best[1]
            best = model, solution, bound
            value = solution.objective
            gap = (
                _PROVEN_GAP
                if request.comparison_count < _SLOW_SIMPLEX_COMPARISONS
                else _LARGE_PROVEN_GAP
            )
            gap = max(gap, self.accepted_gap)
            if is_last or (
                value is not None
                and bound is not None
                and self.loss_scale.proves(value, bound, gap)
            ):
                break
        assert best is not None
        return best

    def _is_private(self, solution: Solution) -> bool:
        """Whether the masses of a solution are within the hockey sticks of all neighbours, nearly."""
        if solution.x is None:
            return False
        edges = self.request.edges
        first, second = np.array(edges.pairs, dtype=int).T
        ratios = np.exp([float(epsilon) for epsilon in edges.epsilons])[:, None]
        masses = solution["M"]
        excess = np.maximum(masses[first] - ratios * masses[second], 0.0).sum(axis=1)
        return bool(excess.max() <= float(self.request.bounds.delta) + _MAX_DELTA_EXCESS)

    def _choose_loss_factor(self, solution: Solution) -> float:
        """How many times larger costs may be, for an optimum about as large as the scale: a power of two."""
        assert solution.x is not None
        above = float(solution.data.c @ solution.x) / self.request.scaled_losses.unit
        return (
            2.0 ** min(max(round(-math.log2(above)), 0), _MAX_LOSS_EXPONENT)
            if above > 0
            else 2.0**_MAX_LOSS_EXPONENT
        )

    def _solve_program(
        self,
        programs: Programs,
        start: str,
        algorithm: str | None,
        *,
        reduced: bool,
        loss_factor: float,
    ) -> tuple[ChannelModel, Solution]:
        """Solve the program by one algorithm.

        Args:
            programs: the open programs.
            start: how the solver starts.
            algorithm: where the request names none.
            reduced: whether masses that δ makes needless, and comparisons that do not bind, are left out.
            cost: of the program (`workbench.solvers.program`).

        Returns:
            The model and what the solver says, a point or none.
        """
        request, live = self.request, programs.live_sessions
        bounds, (groups, epsilons) = request.bounds, request.group_epsilons()
        support = request.stated_masses if reduced else None
        binding = request.binding_comparisons if reduced else None
        shape = (
            bool(bounds.delta),
            request.aim.minimise,
            groups,
            None if support is None else support.tobytes(),
            None if binding is None else binding.tobytes(),
        )
        key = (shape, algorithm, loss_factor)
        try:
            if key not in live:
                model = next(
                    (compiled for (same, *_), (compiled, _) in live.items() if same == shape), None
                )
                is_highs = programs.backend.name == "highs"
                model, options = model or request.model(support, binding), request.how.options
                if algorithm is not None:
                    options = replace(options, algorithm=algorithm)
                if bounds.bounds_mass and request.wants_certificate:
                    options = programs.tighten_tolerances(options)
                if algorithm == "simplex" and options.feasibility_tolerance is None:
                    options = replace(
                        options, feasibility_tolerance=1e-9, dual_feasibility_tolerance=1e-9
                    )
                elif (
                    binding is not None and is_highs and options.dual_feasibility_tolerance is None
                ):
                    options = replace(options, dual_feasibility_tolerance=_REDUCED_DUAL_TOLERANCE)
                program = model.program
                live[key] = (
                    model,
                    programs.backend.open(
                        replace(program, cost=loss_factor * program.cost), options
                    ),
                )
            model, session = live[key]
            delta = bounds.delta * (1 - _DELTA_MARGIN) if bounds.bounds_mass else bounds.delta
            most = (
                0.0
                if request.aim.max_loss is None
                else float(request.scaled_losses.scale_loss(request.aim.max_loss))
            )
            values = model.values([float(e) for e in epsilons], float(delta), most)
            return model, session.solve(values, start=start)
        except (ValueError, SolverError) as error:
            raise translate_error(error) from None

    def _solve_at(self, programs: Programs, point: Values) -> Solution:
        """What the solver says to the request at other values."""
        moved = ChannelProblem(self.request.with_values(check="none", **point))
        return moved._solve_program(programs, "cold", None, reduced=False, loss_factor=1.0)[1]

    def compute_lower_bound(self, model: ChannelModel, solution: Solution) -> Fraction | None:
        """Exact from the multipliers, whatever they are worth; the solver's own (recomputed) where binaries or extra
        constraints have a part in it."""
        request = self.request
        if (
            request.aim.constraints
            or request.aim.user_constraints
            or request.bounds.bounds_mass
            or solution.row_dual is None
        ):
            return None if solution.bound is None else Fraction(solution.bound)
        multipliers, prior, scaled = (
            model.multipliers(solution.row_dual),
            request.question.prior,
            request.scaled_losses,
        )
        if request.aim.minimise == "delta":
            assert request.aim.max_loss is not None
            most = scaled.scale_loss(request.aim.max_loss)
            return bound_least_delta(scaled.table, prior, request.edges, most, multipliers)
        return scaled.unscale_loss(
            bound_least_loss(scaled.table, prior, request.edges, request.bounds.delta, multipliers)
        )

    def _is_settled(self, loss: Fraction | float, bound: Fraction | float) -> bool:
        """Whether a bound proves a loss optimal. With pure ratios and a prior the optimum is above the floor, unless a
        constant is best."""
        request, proves = self.request, self.loss_scale.proves
        above = (
            request.question.prior is not None
            and not request.bounds.delta
            and request.aim.minimise == "loss"
        )
        return (
            proves(loss, bound)
            if above and not request.scaled_losses.is_constant_optimal
            else self.loss_scale.settles(loss, bound)
        )

    # Designs.

    def repair(self, answer: Answer) -> Repaired:
        """Ratios and hockey sticks in integers; what several bounds ask for by mixing. Raises Infeasible,
        NotCertified."""
        request, channel = self.request, answer.mechanism
        prior, losses = request.question.prior, request.losses
        if not request.has_several_bounds:
            K, free = answer.law
            if request.aim.max_loss is not None:
                K = mix_within_max_loss(K, losses, prior, request.aim.max_loss)
            else:
                K = repair_integer_rows(
                    K,
                    request.edges,
                    request.bounds.delta,
                    find_best_constant_output(losses, prior),
                    free,
                )
            channel = request.channel(_make_channel_from_integers(K))
        certificate, words = make_channel_certificate(
            request, channel, answer.solution, answer.origin
        )
        reached = certificate.delta or Fraction(0)
        if (
            request.aim.minimise == "delta"
            and request.claim.delta is not None
            and reached > request.claim.delta
        ):
            raise Infeasible(
                f"Loss {losses.name} at most {float(request.aim.max_loss or 0):g} needs delta >= "
                f"{float(answer.bound or 0):.9g} at this epsilon. Got delta = {float(request.claim.delta):g}."
            )
        return certificate.mechanism, certificate, words

    def compute_loss(self, mechanism: Channel) -> Fraction:
        """The expected loss, or the largest one, exactly."""
        return compute_channel_loss(mechanism, self.request.losses, self.request.question.prior)

    @property
    def loss_scale(self) -> LossScale:
        """That of the losses, None of a δ that is minimised."""
        return (
            self.request.scaled_losses.scale if self.request.aim.minimise == "loss" else LossScale()
        )

    def judge_by_formula(self, answer: Answer) -> OracleVerdict:
        """What is known in closed form about the least loss."""
        if self.request.has_several_bounds:
            return super().judge_by_formula(answer)
        claimed = (
            float(self.compute_loss(answer.mechanism))
            if answer.claimed_objective is None
            else answer.claimed_objective
        )
        return judge_by_closed_form(self.request, claimed)

    def list_notes(self) -> list[str]:
        """Whether the neighbour relation falls into parts."""
        request, q = self.request, self.request.question
        parts = len(q.components)
        words = [describe_separation(parts)] if parts > 1 else []
        words += [DIRECTED_NOTE] if q.directed else []
        if (
            q.is_planar
            and request.is_per_distance
            and len(request.pairs or ()) < len(q.neighbour_pairs)
        ):
            words.append(
                f"Proven for {len(request.pairs or ())} of {len(q.neighbour_pairs)} pairs; the others follow, as a place lies "
                f"exactly between them and {q.norm} distances add up."
            )
        return words

    def require_proof(self, design: Design) -> Design:
        """The design, where the solver and the bound say that it is optimal. Raises NotProven, with the design."""
        if (
            design.solution is None and design.route == ONE_OUTPUT_NAME
        ):  # which costs no more than there is without privacy
            return design
        if self.request.has_several_bounds:
            return super().require_proof(design)
        solution, bound, loss = design.solution, design.details["bound"], design.objective
        exact = (
            design.details["loss"]
            if self.request.aim.minimise == "loss" and design.certificate
            else loss
        )
        if solution is None:
            if self.loss_scale.proves(exact, bound, _PROVEN_GAP):
                return design
            raise NotProven(
                f"Post-processed geometric noise costs {loss:.9g}, and no less than {float(bound):.9g} is "
                f"proven for this loss; the program of {self.request.losses.values.size} masses would be too large.",
                design=design,
            )
        proven = solution.termination in (Termination.OPTIMAL, Termination.GAP_LIMIT)
        if proven and (bound is None or self._is_settled(exact, bound)):
            return design
        why = (
            "says optimal, but its bound does not prove it"
            if proven
            else (f"stopped with {solution.raw_status!r} before proving an optimum")
        )
        raise NotProven(
            f"{solution.solver} {why}: incumbent {loss:.9g}, bound {design.bound_text}.",
            design=design,
            interrupted=solution.termination is Termination.INTERRUPTED,
        )


def _make_channel_from_integers(K: Integers) -> Channel:
    return Channel(tuple(map(Distribution.from_integers, K.tolist())))


def _read_binary_pattern(model: ChannelModel, solution: Solution) -> Any:
    """Where the binaries allow the ratio to be broken. Shape (ordered pairs, m), pairs first, then reversed."""
    blocks = [
        solution[block.name] > 0.5
        for block in solution.program.variables
        if block.name.startswith("b_")
    ]
    return np.concatenate(blocks)


def raise_no_channel(
    request: ChannelRequest, solution: Solution, model: ChannelModel, ask: Ask
) -> NoReturn:
    """Raise what an answer without a point means: Infeasible or NotProven. ask: what a solver says to other ones."""
    what = (
        "channel meets the constraints on these outputs" if request.has_extra_constraints else None
    )
    if request.aim.max_loss is not None:
        what = f"channel meets max_loss {float(request.aim.max_loss):g}"
    raise_no_point(
        solution,
        what,
        "a channel that ignores its input is private",
        lambda: _explain_conflict(request, model, ask),
    )


def _explain_conflict(request: ChannelRequest, model: ChannelModel, ask: Ask) -> str:
    """Sentences that follow "No channel meets ..."; empty where nothing could be found in time."""
    if request.bounds.bounds_mass:
        return ""
    solver, options = (
        request.how.solver,
        replace(
            request.how.options, time_limit=request.how.options.time_limit or EXPLANATION_SECONDS
        ),
    )
    epsilon, delta, program = (
        float(request.claim.epsilon),
        float(request.bounds.delta),
        model.program,
    )
    limit, free = float(request.aim.max_loss or 0), request.aim.minimise == "delta"
    levels = [float(level) for level in request.group_epsilons()[1]]
    privacy = f"{request.claim.notion.name} at epsilon = {epsilon:g}" + (
        f" and delta = {delta:g}" if delta and not free else ""
    )
    # the first block says that rows are distributions; constraints by name and the user's own are called by their label
    wishes = {
        block.name: block.name if block.is_user_constraint else privacy
        for block in program.rows[1:]
    }
    if free:
        wishes["losses"] = f"a loss of at most {limit:g}"
    try:
        most = (
            0.0
            if request.aim.max_loss is None
            else float(request.scaled_losses.scale_loss(request.aim.max_loss))
        )
        data = program.data(model.values(levels, delta, most))
        named = find_wish_rows(program, wishes)
        _, words = explain_conflict(
            data, named, solver, options, program.scale, " on these outputs"
        )
        return words + explain_sufficient_budgets(
            request, ask, float(request.losses.floats.max()), request.MAX_EPSILON
        )
    except (SolverError, WorkbenchError):  # a solver that gives up explains nothing
        return ""
