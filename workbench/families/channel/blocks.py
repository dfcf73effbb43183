"""A channel request by `workbench.models.channel.block_interior`: its answer as a solution, with an exact bound."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import NamedTuple

import numpy as np
import scipy.sparse as sp

from workbench.exact.objects import Pair, Progress
from workbench.families.channel.block_work import NAME
from workbench.families.channel.proof import bound_least_loss
from workbench.families.channel.repair import Edges
from workbench.families.channel.request import ChannelRequest
from workbench.io.result import limit_message_rate
from workbench.models.channel.block_interior import BlockInteriorPoint, BlockPoint
from workbench.models.channel.block_parts import BlockProblem
from workbench.notions import HockeyStick
from workbench.solvers.arrays import Flags, Positions, Vector
from workbench.solvers.program import Block, Data, Program
from workbench.solvers.search import Deadline
from workbench.solvers.solution import PointStatus, Solution, Termination

_STOPPING_GAP = 1e-10  # relative, that ends it
_GRID_GAP = 1e-5  # as _GAP, under hockey sticks on a grid
_OPTIMAL_GAP = 1e-7  # relative, of what counts as an optimum
_PROGRESS_PERIOD_SECONDS = 2.0  # seconds between two lines of progress


class BlockOutcome(NamedTuple):
    """What the method reached: the point as a solution, and an exact bound."""

    masses: Vector
    solution: Solution
    bound: Fraction


def solve_by_blocks(request: ChannelRequest, support: Flags | None = None) -> BlockOutcome:
    """The answer of the method, with its exact bound. support: masses that are stated, None for all."""
    edges, delta = request.edges, request.bounds.delta
    ends, ratios = _split_edges(edges)
    scaled, extra = request.scaled_losses, request.extra_rows
    blocks = BlockProblem(
        scaled.table.floats, request.prior_weights, *ends, ratios, float(delta), support
    )
    if extra is not None:
        blocks = replace(
            blocks, extra_rows=extra.A, extra_limits=extra.limits, is_equation=extra.is_equation
        )
    gap = _STOPPING_GAP if request.how.options.gap is None else float(request.how.options.gap)
    return _make_outcome(request, _find_block_point(request, blocks, gap), edges, delta)


def has_hockey_stick_grid(request: ChannelRequest) -> bool:
    """Whether hockey sticks on a grid nearly amount to its claim, between neighbours in both orders."""
    known = (
        request.has_several_bounds
        and request.how.solver == "highs"
        and not request.question.directed
    )
    return known and bool(
        request.audited_claim.notion.hockey_stick_grid(request.audited_claim.values)
    )


def list_hockey_sticks(request: ChannelRequest) -> list[tuple[Pair, HockeyStick, HockeyStick]]:
    """Every ordered pair with each of its hockey sticks, implied and tighter."""
    claim, ordered = request.audited_claim, request.question.ordered_pairs
    return [
        (pair, *each)
        for pair in ordered
        for each in claim.notion.hockey_stick_grid(claim.values_at(pair))
    ]


def solve_on_hockey_stick_grid(request: ChannelRequest) -> BlockOutcome:
    """Solve under hockey sticks that together are enough for the claim (`Notion.hockey_stick_grid`). The bound is that of the
    multipliers under the sticks that the claim implies."""
    sticks = list_hockey_sticks(request)
    edges = Edges([pair for pair, *_ in sticks], [implied.epsilon for _, implied, _ in sticks])
    enough = np.array([float(tighter.delta) for *_, tighter in sticks])
    ends, ratios = _split_edges(edges)
    point = _find_block_point(
        request,
        BlockProblem(
            request.scaled_losses.table.floats, request.prior_weights, *ends, ratios, enough
        ),
        _GRID_GAP,
    )
    return _make_outcome(request, point, edges, [implied.delta for _, implied, _ in sticks])


def _split_edges(edges: Edges) -> tuple[tuple[Positions | None, Positions | None], Vector]:
    """((first, second), ratios) of `Blocks`."""
    ratios = np.exp([float(epsilon) for epsilon in edges.epsilons])
    if edges.pairs is None:
        return (None, None), ratios[:1]
    first, second = np.array(edges.pairs, dtype=int).T
    return (first, second), ratios


def _find_block_point(request: ChannelRequest, blocks: BlockProblem, gap: float) -> BlockPoint:
    limit = request.how.options.time_limit
    report = (
        None if request.how.progress is None else _make_progress_reporter(request.how.progress, gap)
    )
    scaled, deadline = request.scaled_losses, Deadline(None if limit is None else float(limit))
    return BlockInteriorPoint(blocks, report).solve(
        gap, deadline, float(scaled.scale_loss(scaled.scale.floor))
    )


def _make_outcome(
    request: ChannelRequest, point: BlockPoint, edges: Edges, delta: Fraction | Sequence[Fraction]
) -> BlockOutcome:
    scaled, prior = request.scaled_losses, request.question.prior
    bound = bound_least_loss(
        scaled.table, prior, edges, delta, _name_multipliers(request, point), request.extra_rows
    )
    bound = max(scaled.unscale_loss(bound), scaled.scale.floor)
    return BlockOutcome(point.masses, _make_solution(request, point, bound), bound)


def _make_progress_reporter(progress: Progress, goal: float) -> Callable[[int, float, float], None]:
    """Iteration, gap, and the seconds left if the gap goes on falling from 1 as it did; a line now and then."""
    clock, say = Deadline(), limit_message_rate(progress, _PROGRESS_PERIOD_SECONDS)

    def told(iteration: int, objective: float, bound: float) -> None:
        gap = (objective - bound) / max(abs(objective), abs(bound), 1e-300)
        if goal < gap < 1:
            left = clock.elapsed_seconds * math.log(gap / goal) / -math.log(gap)
            say(
                f"iteration {iteration}: loss {objective:.9g}, gap {gap:.2g}, about {left:.0f} s left"
            )

    return told


def _name_multipliers(request: ChannelRequest, point: BlockPoint) -> dict[str, Vector]:
    """As `least_loss_bound` takes them."""
    k, named = request.question.k, {"extra": point.extra_multipliers}
    if point.weights is not None:
        named["losses"] = point.weights[:k]
    if request.pairs is not None:
        return named | {"ratio": point.multipliers}
    return named | {"least": point.multipliers[:k], "most": point.multipliers[k:]}


def _make_solution(request: ChannelRequest, point: BlockPoint, bound: Fraction) -> Solution:
    """The point as that of a program, of which only the sums are stated here: of masses, columns first, then of the
    largest loss where the worst input counts."""
    from workbench import __version__

    k, m = request.question.k, request.question.m
    worst = request.prior_weights is None
    size = k * m + worst
    cells = np.arange(k * m)
    sums = sp.csc_array((np.ones(k * m), (cells % k, cells)), shape=(k, size))
    costs = np.zeros(size)
    x = np.concatenate([point.masses.ravel(order="F"), [point.objective] * worst])
    scaled = request.scaled_losses
    if request.prior_weights is None:
        costs[-1] = scaled.unit
    else:
        costs[: k * m] = scaled.unit * (scaled.table.floats * request.prior_weights[:, None]).ravel(
            order="F"
        )
    upper = np.ones(size)
    upper[k * m :] = np.inf
    data = Data(
        costs, 0.0, sums, np.ones(k), np.ones(k), np.zeros(size), upper, np.zeros(size, dtype=bool)
    )
    name = f"channel from {k} labels to {m} outputs, output by output"
    program = Program(name, data, variables=(Block("M", 0, (k, m)),), shift=float(scaled.shift))
    ended = {
        "optimal": Termination.OPTIMAL,
        "time limit": Termination.TIME_LIMIT,
        "interrupted": Termination.INTERRUPTED,
    }
    feasible = math.isfinite(point.objective)  # else sums still miss what they are to be
    reached = point.objective * scaled.unit + float(scaled.shift)
    if feasible and scaled.scale.settles(reached, bound, _OPTIMAL_GAP):  # whatever it ended for
        ended[point.stop_reason] = Termination.OPTIMAL
    return Solution(
        program,
        np.empty(0),
        ended.get(point.stop_reason, Termination.NUMERICAL),
        PointStatus.FEASIBLE if feasible else PointStatus.INFEASIBLE,
        x=x,
        native_bound=float(bound - scaled.shift),
        iterations=point.iterations,
        seconds=point.seconds,
        solver=NAME,
        version=__version__,
        options={"gap": _STOPPING_GAP},
        raw_status=point.stop_reason,
    )
