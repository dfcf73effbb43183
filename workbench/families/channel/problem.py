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

from workbench.data.points import shown
from workbench.errors import Infeasible, InvalidRequest, NotCertified, NotProven, WorkbenchError
from workbench.exact.distribution import Distribution
from workbench.exact.objects import Values
from workbench.families.channel import blocks
from workbench.families.channel.interior_bound import by_interior, solved_by_interior
from workbench.families.channel.proof import (
    exact_certificate,
    gain_of_delta,
    least_delta_bound,
    least_loss_bound,
    line_bound,
    verdict,
)
from workbench.families.channel.repair import (
    channel_loss,
    cheapest,
    loss_of,
    repaired,
    to_integers,
    within_budget,
)
from workbench.families.channel.request import ChannelRequest
from workbench.mechanisms.channel import Channel
from workbench.models.channel.program import ChannelModel
from workbench.models.oracles.finite_channel import post_processed
from workbench.pipeline.convex_notion import PATIENCE, pure_within, solve_by_tangents
from workbench.pipeline.design import Design, OracleVerdict
from workbench.pipeline.infeasible import (
    SECONDS,
    Ask,
    conflict_words,
    no_point,
    rows_named,
    what_would_do,
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
    only_one_bound,
    only_several_bounds,
)
from workbench.privacy.claim import Claim
from workbench.questions.neighbour_parts import separation_words
from workbench.solvers.arrays import Vector
from workbench.solvers.backend import Options
from workbench.solvers.errors import SolverError
from workbench.solvers.search import Deadline
from workbench.solvers.solution import PointStatus, Solution, Termination

_SLOW_SIMPLEX = 8_000  # Compared masses from which the simplex takes minutes where the interior point takes seconds.
_PROVEN_LARGE = 1e-8  # Relative gap of an interior point that is accepted for so many masses.
LARGE = 2_000  # compared masses from which interior point with crossover is faster than simplex
_DIRECT, _STATED = (
    2_000,
    40_000,
)  # masses of a line, certified or not, from which the closed form comes first
_PROVEN = (
    5e-10  # relative gap, by the exact bound, above which the other algorithm is asked as well
)
_CLOSE, _STATABLE = (
    1e-8,
    100_000,
)  # relative gap, and masses, from and up to which a program follows the blocks
_MOST_STICKS = 10_000  # Above this many hockey sticks their matrix (their number squared) takes too much memory.
_GAUSSIAN_MASSES = (
    50_000  # Above this many compared masses Gaussian noise is not tried, whose audit takes long.
)
_WIDER = 1e-9  # Share by which Gaussian noise is widened, so that its rounded masses are within the budget.
_SIMPLE_SECONDS = 2.0  # A simple candidate has at least so much time, whatever the time limit.
_EVEN = 2.0**-40  # Share of Gaussian noise that is uniform, as far masses underflow.
_LOST = Fraction(
    1, 1 << 28
)  # of δ, where binaries bound a mass: what rounding moves cannot be mixed away there
_DUAL_TOLERANCE = (
    1e-8  # With that of HiGHS, 1e-7, the multipliers of a reduced program often prove too little.
)
_EXCESS = 1e-12  # Masses whose hockey sticks exceed δ by at most this are private after the repair at no cost.
_LAST = (Termination.INTERRUPTED, Termination.TIME_LIMIT, Termination.INFEASIBLE)
_LINE = "geometric noise, post-processed"
_OPEN = "the cheapest output of every answer"
CONSTANT = "one output for all neighbours"
_DEARER, _DEAREST = (
    16.0,
    40,
)  # Costs are raised at least so many times, and at most 2^40 times, for a small optimum.
ONE_WAY = (
    "Directed neighbours protect one side of each pair only: the larger answer, or the first of a listed pair, against "
    "the other. Leave out directed for the symmetric relation."
)


def _route(name: str, applies: str, answer: str) -> Route:
    """Return a route of two methods of `ChannelProblem`, by name, which a subclass may have of its own."""
    return Route(
        name, methodcaller(applies), lambda problem, programs, start: getattr(problem, answer)()
    )


ONE_OUTPUT = _route(CONSTANT, "why_not_one_output", "answer_by_one_output")


class ChannelProblem(Problem):
    """The problem of a request."""

    ENOUGH = 1e-3
    accepted_gap = 0.0  # Relative gap of a program from which no other algorithm is asked.
    routes: Sequence[Route] = (
        ONE_OUTPUT,
        _route("outputs without privacy", "why_not_open", "answer_without_privacy"),
        _route(_LINE, "why_not_geometric", "answer_by_geometric"),
        _route("blocks", "why_not_blocks", "answer_by_blocks"),
        Route(
            "program",
            only_one_bound,
            lambda problem, programs, start: problem.answer_by_program(programs, start),
        ),
        Route(
            "tangents",
            only_several_bounds,
            lambda problem, programs, start: problem.answer_by_tangents(),
        ),
        _route("hockey sticks on a grid", "why_not_sticks", "answer_by_sticks"),
        _route("interior method", "why_not_smooth", "answer_by_interior"),
    )

    request: ChannelRequest

    # Answers.

    def why_not_plain(self) -> Reason:
        """Return why a closed form does not apply: it knows no constraints, and minimises the loss."""
        request = self.request
        if request.aim.minimise != "loss":
            return f"{request.aim.minimise} is minimised"
        return "there are extra constraints" if request.extended else None

    def why_not_one_output(self) -> Reason:
        """Return why one output for every part of the relation loses something."""
        if (reason := self.why_not_plain()) is not None:
            return reason
        return (
            None
            if self.request.scaled.constant_is_best
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
        least = _DIRECT if request.certified else _STATED
        return None if size > least else f"the program of {size} masses is small"

    def why_not_interior(self) -> Reason:
        """Return why methods that follow tangents do not apply."""
        if (reason := only_several_bounds(self)) is not None:
            return reason
        if self.request.extended or self.request.losses.forbidden is not None:
            return "there are extra constraints or forbidden outputs"
        return "no time is left" if self._deadline_of_cuts.passed else None

    def why_not_sticks(self) -> Reason:
        """Return why hockey sticks on a grid do not apply."""
        if (reason := self.why_not_interior()) is not None:
            return reason
        if not blocks.by_sticks(self.request):
            return (
                "no hockey sticks on a grid nearly amount to the claim, or a solver was asked for"
            )
        count = len(blocks.sticks_of(self.request))
        return None if count <= _MOST_STICKS else f"{count} hockey sticks take too much memory"

    def why_not_smooth(self) -> Reason:
        """Return why the interior method does not apply."""
        if (reason := self.why_not_interior()) is not None:
            return reason
        if blocks.by_sticks(self.request):
            return "hockey sticks on a grid apply"
        return (
            None
            if by_interior(self.request)
            else "bounds are not smooth, or a solver was asked for"
        )

    def why_not_blocks(self) -> Reason:
        """Return why the program is not answered output by output. Raises InvalidRequest where that was asked for."""
        return only_one_bound(self) or self.request.why_not_blocks

    def answer_by_geometric(self) -> Answer | Doubt:
        """Return post-processed geometric noise; a doubt where it is not proven and the program can be stated."""
        request = self.request
        assert request.weights is not None
        assert request.question.prior is not None
        scaled = request.scaled
        geometric = post_processed(
            scaled.table.floats, request.weights, float(request.claim.epsilon)
        )
        K = to_integers(geometric.channel)
        bound = line_bound(
            scaled.table, request.question.prior, request.claim.epsilon, geometric.share
        )
        proven = geometric.value - float(bound) <= _PROVEN * geometric.value
        if not proven and request.compared <= request.MOST:
            return Doubt("it is not proven optimal for this loss")
        return Answer(request.channel(_rows(K)), scaled.loss(bound), None, _LINE, (K, None))

    def answer_without_privacy(self) -> Answer:
        """Return the cheapest output for every answer, which is private at δ = 1."""
        request, q = self.request, self.request.question
        K = np.zeros((q.k, q.m), dtype=object)
        K[
            np.arange(q.k), [min(range(q.m), key=row.__getitem__) for row in request.losses.values]
        ] = 1
        return Answer(
            request.channel(_rows(K)), loss_of(K, request.losses, q.prior), None, _OPEN, (K, None)
        )

    def answer_by_one_output(self) -> Answer | Doubt:
        """Return the channel that ignores its input, with the loss without privacy as its bound; a doubt where its loss
        is larger."""
        request, scaled = self.request, self.request.scaled
        K = np.zeros((request.question.k, request.question.m), dtype=object)
        K[np.arange(len(K)), scaled.constant] = 1
        if loss_of(K, request.losses, request.question.prior) != scaled.scale.floor:
            return Doubt("its loss is larger than that without privacy")
        return Answer(request.channel(_rows(K)), scaled.scale.floor, None, CONSTANT, (K, None))

    def without_delta(self) -> Problem | None:
        """See `Problem.without_delta`."""
        request = self.outer
        if (
            request.cut
            or self.request.per_distance
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
            options, time_limit=options.time_limit and max(options.time_limit, _SIMPLE_SECONDS)
        )

    def bound_at_delta(self, bound: Fraction | float) -> Fraction | None:
        """See `Problem.bound_at_delta`, and `gain_of_delta`."""
        request, losses = self.request, self.request.losses
        if request.extended or request.question.directed or losses.forbidden is not None:
            return None
        gain = gain_of_delta(
            request.claim.epsilon, Fraction(request.claim.delta or 0), request.question.k
        )
        spread = Fraction(
            int(losses.values.max() - losses.values.min()), losses.unit
        )  # They may be negative.
        return Fraction(bound) - gain * spread

    def stronger(self) -> Iterator[Answer]:
        """Under a notion of several bounds: the best channel at about the largest pure ε that implies the claim, and
        Gaussian noise published as the nearest output."""
        request = self.request
        if not request.cut or request.extended or request.losses.forbidden is not None:
            return
        gaussian = self._gaussian()
        if gaussian is not None:
            words = (
                "It is Gaussian noise published as the nearest output, which is within the budget.",
            )
            yield Answer(
                request.channel(gaussian),
                None,
                None,
                "Gaussian noise",
                words=words,
                route="Gaussian noise",
            )
        try:
            epsilon = Fraction(pure_within(request.audited_claim)).limit_denominator(10**9)
            claim = Claim("pure", epsilon)
            problem = ChannelProblem(
                request.with_values(claim=claim, runs=1, options=self._simple_options)
            )
            answer = answer_by_routes(problem, problem.routes, Programs(request.how.solver), "cold")
            mechanism, _, _ = problem.repaired(answer)
        except (InvalidRequest, Infeasible, NotCertified, NotProven):
            return
        words = (
            f"It is the best channel at pure epsilon = {float(epsilon):.6g}, which implies the budget.",
        )
        yield Answer(
            request.channel(mechanism.rows), None, None, "pure", words=words, route="pure epsilon"
        )

    def _gaussian(self) -> Vector | None:
        """The masses of Gaussian noise within the budget, published as the nearest output, in floats; None where
        answers and outputs are no numbers, or the notion states no Gaussian. Shape (k, m)."""
        q, claim = self.request.question, self.request.audited_claim
        mu, variance = (
            claim.notion.gaussian_mu(claim.values),
            claim.notion.gaussian_variance(claim.values),
        )
        spread = 1 / float(mu) if mu else math.sqrt(float(variance)) if variance else None
        if spread is None or q.numbers is None or len(q.ordered) * q.m > _GAUSSIAN_MASSES:
            return None
        inputs, outputs = (np.array([*map(float, points)]) for points in q.numbers)
        reach = max((abs(inputs[i] - inputs[j]) for i, j in q.ordered), default=0.0)
        if not reach:
            return None
        from scipy.special import ndtr  # slow to import

        order = np.argsort(outputs)
        middles = (outputs[order][1:] + outputs[order][:-1]) / 2
        ends = (np.r_[-np.inf, middles, np.inf] - inputs[:, None]) / (reach * spread * (1 + _WIDER))
        low, high = ends[:, :-1], ends[:, 1:]
        masses = np.empty((inputs.size, outputs.size))
        # Both tails are differences of small numbers, so that far masses keep their digits.
        masses[:, order] = np.where(low > 0, ndtr(-low) - ndtr(-high), ndtr(high) - ndtr(low))
        return masses * (1 - _EVEN) + _EVEN / outputs.size

    def constant(self, below: float) -> Answer | None:
        """The output that costs least for all inputs; none where there are constraints, which it may miss."""
        request, q = self.request, self.request.question
        if (
            request.extended
            or request.aim.minimise != "loss"
            or request.losses.forbidden is not None
        ):
            return None
        output = cheapest(request.losses, q.prior)
        column = request.losses.floats[:, output]
        least = column.max() if request.weights is None else column @ request.weights
        if float(least) >= below:
            return None
        K = np.zeros((q.k, q.m), dtype=object)
        K[:, output] = 1
        words = (f"It publishes {shown(q.outputs[output])} whatever the answer is.",)
        least = [
            Fraction(int(value), request.losses.unit) for value in request.losses.values.min(axis=1)
        ]
        bound = max(least) if q.prior is None else sum(map(mul, q.prior, least), Fraction(0))
        return Answer(
            request.channel(_rows(K)),
            bound,
            None,
            "constant",
            (K, None),
            words=words,
            route="constant",
        )

    @cached_property
    def _deadline_of_cuts(self) -> Deadline:
        """The time of all methods for several bounds."""
        limit = self.request.how.options.time_limit
        return Deadline(2 * PATIENCE if limit is None else limit)

    def answer_by_tangents(self) -> Answer | Doubt:
        """Answer by linear programs with tangents; a doubt where another method may prove more."""
        request = self.request
        request.check_cut_size()
        _ = self._deadline_of_cuts
        model = request.model()
        ordered = request.question.ordered
        is_plain = not request.extended and request.losses.forbidden is None
        try:
            solution, least = solve_by_tangents(
                request, ordered[0], model.program, model.compared(ordered)
            )
        except NotProven as error:
            if error.interrupted or not is_plain:
                raise
            return Doubt("its programs ended without a proof", error=error)
        answer = Answer(request.channel(np.maximum(solution["M"], 0.0)), least, solution)
        near = least is not None and self.loss_scale.proves(
            solution.objective or 0.0, least, self.ENOUGH
        )
        return answer if near or not is_plain else Doubt("its bound is not near its loss", answer)

    def answer_by_sticks(self) -> Answer:
        """Answer under hockey sticks on a grid, by an interior point."""
        request = self._request_for_time_left()
        masses, solution, bound = blocks.solved_by_sticks(request)
        return Answer(request.channel(masses), bound, solution)

    def answer_by_interior(self) -> Doubt:
        """Bound the loss by the multipliers of an interior point under smooth bounds."""
        request = self._request_for_time_left()
        reached = solved_by_interior(request)
        if reached is None:
            return Doubt("even laws are not within the bounds")
        masses, bound = reached
        return Doubt("its bound counts, not its point", Answer(request.channel(masses), bound))

    def _request_for_time_left(self) -> ChannelRequest:
        limited = replace(self.request.how.options, time_limit=self._deadline_of_cuts.left)
        return self.request.with_values(options=limited)

    def answer_by_blocks(self) -> Answer | Doubt:
        """Answer output by output, first without the masses that δ makes needless; a doubt where that proves less than
        a program may, which is small enough to be stated."""
        request, best = self.request, None
        if request.claim.delta:
            request.check_size()
        for support in {id(each): each for each in (request.support, None)}.values():
            masses, solution, bound = blocks.solved(request, support)
            value = solution.objective or 0.0
            if best is not None and best[1].bound is not None:
                bound = max(bound, best[2])
            best, open_ = (
                (masses, solution, bound),
                not self.loss_scale.proves(value, bound, _CLOSE),
            )
            if not open_ or solution.termination in _LAST:
                break
        if (
            request.extended
            and solution.point is PointStatus.INFEASIBLE
            and solution.termination not in _LAST
        ):
            return Doubt("the program says which constraints conflict")
        if (
            open_
            and request.how.method == "auto"
            and solution.termination not in _LAST
            and request.compared <= _STATABLE
        ):
            return Doubt("the program may prove more")
        law = to_integers(masses), None
        return Answer(
            request.channel(masses), bound, solution, "exact repair, output by output", law, value
        )

    def answer_by_program(self, programs: Programs | None, start: str) -> Answer:
        """Answer by the linear program, or the one with binaries. Raises as `Problem`'s routes."""
        request = self.request
        if request.claim.delta:
            request.check_size()
        assert programs is not None
        model, solution, bound = self._best(programs, start)
        if solution.x is None:
            refuse(request, solution, model, partial(self._elsewhere, programs))
        free = _pattern(model, solution) if request.bounds.mass else None
        law = to_integers(solution["M"]), free
        raw = request.channel(np.maximum(solution["M"], 0.0))
        return Answer(raw, bound, solution, "exact repair", law, solution.objective or 0.0)

    def _best(
        self, programs: Programs, start: str
    ) -> tuple[ChannelModel, Solution, Fraction | None]:
        """The model, the best answer and the best bound of as many algorithms as it takes to close the gap: at last
        with larger costs, where the optimum is far below the width of the losses."""
        request = self.request
        large = request.compared >= LARGE and not request.bounds.mass
        given = (
            request.how.options.algorithm is not None
            or programs.backend.name != "highs"
            or request.bounds.mass
        )
        names = (
            [None]
            if given
            else ["interior-point", "simplex"]
            if large
            else ["simplex", "interior-point"]
        )
        order = [(name, False, False) for name in names]
        if request.support is not None or request.binding is not None:
            order.insert(0, (names[0], True, False))
        if request.aim.minimise == "loss" and not request.bounds.mass:
            order.append((None if given else "simplex", False, True))
        best = None
        for algorithm, reduced, dearer in order:
            cost = 1.0
            if dearer and best is not None and best[1].x is not None:
                cost = self._dearer(best[1])
                if cost < _DEARER:
                    break
            model, solution = self._solved(programs, start, algorithm, reduced=reduced, cost=cost)
            is_last = solution.termination in _LAST
            if model.binding is not None and not is_last and not self._is_private(solution):
                continue  # The program with all comparisons has another optimum.
            bound = self.lower_bound(model, solution)
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
            gap = _PROVEN if request.compared < _SLOW_SIMPLEX else _PROVEN_LARGE
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
        return bool(excess.max() <= float(self.request.bounds.delta) + _EXCESS)

    def _dearer(self, solution: Solution) -> float:
        """How many times larger costs may be, for an optimum about as large as the scale: a power of two."""
        assert solution.x is not None
        above = float(solution.data.c @ solution.x) / self.request.scaled.unit
        return (
            2.0 ** min(max(round(-math.log2(above)), 0), _DEAREST) if above > 0 else 2.0**_DEAREST
        )

    def _solved(
        self, programs: Programs, start: str, algorithm: str | None, *, reduced: bool, cost: float
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
        request, live = self.request, programs.live
        bounds, (groups, epsilons) = request.bounds, request.levels()
        support = request.support if reduced else None
        binding = request.binding if reduced else None
        shape = (
            bool(bounds.delta),
            request.aim.minimise,
            groups,
            None if support is None else support.tobytes(),
            None if binding is None else binding.tobytes(),
        )
        key = (shape, algorithm, cost)
        try:
            if key not in live:
                model = next(
                    (compiled for (same, *_), (compiled, _) in live.items() if same == shape), None
                )
                is_highs = programs.backend.name == "highs"
                model, options = model or request.model(support, binding), request.how.options
                if algorithm is not None:
                    options = replace(options, algorithm=algorithm)
                if bounds.mass and request.certified:
                    options = programs.exacting(options)
                if algorithm == "simplex" and options.feasibility_tolerance is None:
                    options = replace(
                        options, feasibility_tolerance=1e-9, dual_feasibility_tolerance=1e-9
                    )
                elif (
                    binding is not None and is_highs and options.dual_feasibility_tolerance is None
                ):
                    options = replace(options, dual_feasibility_tolerance=_DUAL_TOLERANCE)
                program = model.program
                live[key] = (
                    model,
                    programs.backend.open(replace(program, cost=cost * program.cost), options),
                )
            model, session = live[key]
            delta = bounds.delta * (1 - _LOST) if bounds.mass else bounds.delta
            most = (
                0.0
                if request.aim.max_loss is None
                else float(request.scaled.at_unit(request.aim.max_loss))
            )
            values = model.values([float(e) for e in epsilons], float(delta), most)
            return model, session.solve(values, start=start)
        except (ValueError, SolverError) as error:
            raise translate_error(error) from None

    def _elsewhere(self, programs: Programs, point: Values) -> Solution:
        """What the solver says to the request at other values."""
        moved = ChannelProblem(self.request.with_values(check="none", **point))
        return moved._solved(programs, "cold", None, reduced=False, cost=1.0)[1]

    def lower_bound(self, model: ChannelModel, solution: Solution) -> Fraction | None:
        """Exact from the multipliers, whatever they are worth; the solver's own (recomputed) where binaries or extra
        constraints have a part in it."""
        request = self.request
        if (
            request.aim.constraints
            or request.aim.more
            or request.bounds.mass
            or solution.row_dual is None
        ):
            return None if solution.bound is None else Fraction(solution.bound)
        multipliers, prior, scaled = (
            model.multipliers(solution.row_dual),
            request.question.prior,
            request.scaled,
        )
        if request.aim.minimise == "delta":
            assert request.aim.max_loss is not None
            most = scaled.at_unit(request.aim.max_loss)
            return least_delta_bound(scaled.table, prior, request.edges, most, multipliers)
        return scaled.loss(
            least_loss_bound(scaled.table, prior, request.edges, request.bounds.delta, multipliers)
        )

    def _settles(self, loss: Fraction | float, bound: Fraction | float) -> bool:
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
            if above and not request.scaled.constant_is_best
            else self.loss_scale.settles(loss, bound)
        )

    # Designs.

    def repaired(self, answer: Answer) -> Repaired:
        """Ratios and hockey sticks in integers; what several bounds ask for by mixing. Raises Infeasible,
        NotCertified."""
        request, channel = self.request, answer.mechanism
        prior, losses = request.question.prior, request.losses
        if not request.cut:
            K, free = answer.law
            if request.aim.max_loss is not None:
                K = within_budget(K, losses, prior, request.aim.max_loss)
            else:
                K = repaired(K, request.edges, request.bounds.delta, cheapest(losses, prior), free)
            channel = request.channel(_rows(K))
        certificate, words = exact_certificate(request, channel, answer.solution, answer.origin)
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

    def loss(self, mechanism: Channel) -> Fraction:
        """The expected loss, or the largest one, exactly."""
        return channel_loss(mechanism, self.request.losses, self.request.question.prior)

    @property
    def loss_scale(self) -> LossScale:
        """That of the losses, None of a δ that is minimised."""
        return self.request.scaled.scale if self.request.aim.minimise == "loss" else LossScale()

    def oracle(self, answer: Answer) -> OracleVerdict:
        """What is known in closed form about the least loss."""
        if self.request.cut:
            return super().oracle(answer)
        claimed = float(self.loss(answer.mechanism)) if answer.claimed is None else answer.claimed
        return verdict(self.request, claimed)

    def words(self) -> list[str]:
        """Whether the neighbour relation falls into parts."""
        request, q = self.request, self.request.question
        parts = len(q.components)
        words = [separation_words(parts)] if parts > 1 else []
        words += [ONE_WAY] if q.directed else []
        if q.planar and request.per_distance and len(request.pairs or ()) < len(q.listed):
            words.append(
                f"Proven for {len(request.pairs or ())} of {len(q.listed)} pairs; the others follow, as a place lies "
                f"exactly between them and {q.norm} distances add up."
            )
        return words

    def proven(self, reached: Design) -> Design:
        """The design, where the solver and the bound say that it is optimal. Raises NotProven, with the design."""
        if (
            reached.solution is None and reached.route == CONSTANT
        ):  # which costs no more than there is without privacy
            return reached
        if self.request.cut:
            return super().proven(reached)
        solution, bound, loss = reached.solution, reached.details["bound"], reached.objective
        exact = (
            reached.details["loss"]
            if self.request.aim.minimise == "loss" and reached.certificate
            else loss
        )
        if solution is None:
            if self.loss_scale.proves(exact, bound, _PROVEN):
                return reached
            raise NotProven(
                f"Post-processed geometric noise costs {loss:.9g}, and no less than {float(bound):.9g} is "
                f"proven for this loss; the program of {self.request.losses.values.size} masses would be too large.",
                design=reached,
            )
        proven = solution.termination in (Termination.OPTIMAL, Termination.GAP_LIMIT)
        if proven and (bound is None or self._settles(exact, bound)):
            return reached
        why = (
            "says optimal, but its bound does not prove it"
            if proven
            else (f"stopped with {solution.raw_status!r} before proving an optimum")
        )
        raise NotProven(
            f"{solution.solver} {why}: incumbent {loss:.9g}, bound {reached.bound_words}.",
            design=reached,
            interrupted=solution.termination is Termination.INTERRUPTED,
        )


def _rows(K: Integers) -> Channel:
    return Channel(tuple(map(Distribution.from_integers, K.tolist())))


def _pattern(model: ChannelModel, solution: Solution) -> Any:
    """Where the binaries allow the ratio to be broken. Shape (ordered pairs, m), pairs first, then reversed."""
    blocks = [
        solution[block.name] > 0.5
        for block in solution.program.variables
        if block.name.startswith("b_")
    ]
    return np.concatenate(blocks)


def refuse(request: ChannelRequest, solution: Solution, model: ChannelModel, ask: Ask) -> NoReturn:
    """Raise what an answer without a point means: Infeasible or NotProven. ask: what a solver says to other ones."""
    what = "channel meets the constraints on these outputs" if request.extended else None
    if request.aim.max_loss is not None:
        what = f"channel meets max_loss {float(request.aim.max_loss):g}"
    no_point(
        solution,
        what,
        "a channel that ignores its input is private",
        lambda: _explanation(request, model, ask),
    )


def _explanation(request: ChannelRequest, model: ChannelModel, ask: Ask) -> str:
    """Sentences that follow "No channel meets ..."; empty where nothing could be found in time."""
    if request.bounds.mass:
        return ""
    solver, options = (
        request.how.solver,
        replace(request.how.options, time_limit=request.how.options.time_limit or SECONDS),
    )
    epsilon, delta, program = (
        float(request.claim.epsilon),
        float(request.bounds.delta),
        model.program,
    )
    limit, free = float(request.aim.max_loss or 0), request.aim.minimise == "delta"
    levels = [float(level) for level in request.levels()[1]]
    privacy = f"{request.claim.notion.name} at epsilon = {epsilon:g}" + (
        f" and delta = {delta:g}" if delta and not free else ""
    )
    # the first block says that rows are distributions; constraints by name and the user's own are called by their label
    wishes = {block.name: block.name if block.wished else privacy for block in program.rows[1:]}
    if free:
        wishes["losses"] = f"a loss of at most {limit:g}"
    try:
        most = (
            0.0
            if request.aim.max_loss is None
            else float(request.scaled.at_unit(request.aim.max_loss))
        )
        data = program.data(model.values(levels, delta, most))
        named = rows_named(program, wishes)
        _, words = conflict_words(data, named, solver, options, program.scale, " on these outputs")
        return words + what_would_do(
            request, ask, float(request.losses.floats.max()), request.LARGEST
        )
    except (SolverError, WorkbenchError):  # a solver that gives up explains nothing
        return ""
