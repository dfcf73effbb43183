"""Solve a channel request by the block method, and prove a lower bound on the loss.

The block method is the interior-point method of `workbench.models.channel.block_interior`; a block
is the column of one output. Its result is returned as a `Solution`, as if a solver had returned it.
The lower bound is recomputed in integers from the multipliers of the method
(`workbench.families.channel.proof`).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import NamedTuple

import numpy as np
import scipy.sparse as sp

from workbench.exact.objects import Pair, Progress
from workbench.families.channel.block_work import BLOCK_METHOD
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

# The method stops at this gap between loss and bound, relative to the larger of the two, unless the
# request gives another one.
_STOPPING_GAP = 1e-10
# The method stops at this relative gap if a grid of hockey sticks approximates the claim.
_GRID_GAP = 1e-5
# A point within this relative gap of the exact bound is called optimal, whatever stopped the
# method.
_OPTIMAL_GAP = 1e-7
# A gap is relative to at least this, so that nothing is divided by 0.
_MIN_GAP_SCALE = 1e-300
# Two progress messages are at least this far apart.
_PROGRESS_PERIOD_SECONDS = 2.0

_TERMINATIONS = {
    "optimal": Termination.OPTIMAL,
    "time limit": Termination.TIME_LIMIT,
    "interrupted": Termination.INTERRUPTED,
}


class BlockOutcome(NamedTuple):
    """The result of the block method.

    Attributes:
        masses: channel, shape (k, m), for k inputs and m outputs.
        solution: the same point as a solution of the linear program.
        bound: exact lower bound on the loss of every private channel, in the units of the request.
    """

    masses: Vector
    solution: Solution
    bound: Fraction


def solve_by_blocks(request: ChannelRequest, support: Flags | None = None) -> BlockOutcome:
    """Solve a request whose notion bounds one ratio.

    Args:
        request: a request that is solved by blocks.
        support: masses that may be positive, shape (k, m). Default: all.

    Returns:
        The channel and its exact bound. The bound holds for all channels, whatever the support.
    """
    edges = request.edges
    delta = request.bounds.delta
    extra = request.extra_rows
    (first, second), ratios = _split_edges(edges)
    losses = request.scaled_losses.table.floats
    blocks = BlockProblem(
        losses, request.prior_weights, first, second, ratios, delta=float(delta), is_stated=support
    )
    if extra is not None:
        blocks = replace(
            blocks, extra_rows=extra.A, extra_limits=extra.limits, is_equation=extra.is_equation
        )
    gap = _STOPPING_GAP
    if request.how.options.gap is not None:
        gap = float(request.how.options.gap)
    point = _find_block_point(request, blocks, gap)
    return _make_outcome(request, point, edges, delta, gap)


def has_hockey_stick_grid(request: ChannelRequest) -> bool:
    """Return whether a grid of hockey sticks approximates the claim of a request.

    Args:
        request: a request for a channel.
    """
    if not request.has_several_bounds:
        return False
    # highs is the default. Blocks use no solver, so a request of another solver is not for them.
    if request.how.solver != "highs":
        return False
    if request.question.directed:
        return False
    claim = request.audited_claim
    return bool(claim.notion.hockey_stick_grid(claim.values))


def list_hockey_sticks(request: ChannelRequest) -> list[tuple[Pair, HockeyStick, HockeyStick]]:
    """List the hockey sticks of the grid for every ordered pair of neighbours.

    Args:
        request: a request that has a grid of hockey sticks.

    Returns:
        (pair, implied, sufficient) for each hockey stick. The claim implies the hockey stick
        `implied`. The hockey stick `sufficient` has the same ε and a smaller δ, and all sufficient
        ones together imply the claim.
    """
    claim = request.audited_claim
    sticks = []
    for pair in request.question.ordered_pairs:
        for implied_stick, sufficient_stick in claim.notion.hockey_stick_grid(
            claim.values_at(pair)
        ):
            sticks.append((pair, implied_stick, sufficient_stick))
    return sticks


def solve_on_hockey_stick_grid(request: ChannelRequest) -> BlockOutcome:
    """Solve under hockey sticks that together imply the claim (`Notion.hockey_stick_grid`).

    The bound uses the same multipliers under the hockey sticks that the claim implies, so it holds
    for the claim.

    Args:
        request: a request that has a grid of hockey sticks.

    Returns:
        The channel and its exact bound under the claim.
    """
    sticks = list_hockey_sticks(request)
    pairs = [pair for pair, _, _ in sticks]
    edges = Edges(pairs, [stick.epsilon for _, stick, _ in sticks])
    sufficient_deltas = np.array([float(stick.delta) for _, _, stick in sticks])
    implied_deltas = [stick.delta for _, stick, _ in sticks]
    (first, second), ratios = _split_edges(edges)
    losses = request.scaled_losses.table.floats
    blocks = BlockProblem(
        losses, request.prior_weights, first, second, ratios, delta=sufficient_deltas
    )
    point = _find_block_point(request, blocks, _GRID_GAP)
    return _make_outcome(request, point, edges, implied_deltas, _GRID_GAP)


def _split_edges(edges: Edges) -> tuple[tuple[Positions | None, Positions | None], Vector]:
    """Return ((first, second), ratios) as `BlockProblem` takes them.

    `first` and `second` are the positions of the inputs of every pair, and `ratios` are e^ε. If all
    inputs are neighbours, `first` and `second` are None, and all pairs share the first ratio.
    """
    ratios = np.exp([float(epsilon) for epsilon in edges.epsilons])
    if edges.pairs is None:
        return (None, None), ratios[:1]
    first, second = np.array(edges.pairs, dtype=int).T
    return (first, second), ratios


def _find_block_point(request: ChannelRequest, blocks: BlockProblem, gap: float) -> BlockPoint:
    """Run the interior-point method within the time limit of the request."""
    limit = request.how.options.time_limit
    deadline = Deadline(None if limit is None else float(limit))
    report = None
    if request.how.progress is not None:
        report = _make_progress_reporter(request.how.progress, gap)
    # The method computes with the losses (loss - shift) / unit.
    scaled_losses = request.scaled_losses
    floor = float(scaled_losses.scale_loss(scaled_losses.scale.floor))
    return BlockInteriorPoint(blocks, report).solve(gap, deadline, floor)


def _make_outcome(
    request: ChannelRequest,
    point: BlockPoint,
    edges: Edges,
    delta: Fraction | Sequence[Fraction],
    gap: float,
) -> BlockOutcome:
    """Return the point, which the method found with this gap, and its exact bound under the δ of
    every edge.
    """
    scaled_losses = request.scaled_losses
    multipliers = _name_multipliers(request, point)
    bound = bound_least_loss(
        scaled_losses.table,
        request.question.prior,
        edges,
        delta,
        multipliers,
        request.extra_rows,
    )
    bound = max(scaled_losses.unscale_loss(bound), scaled_losses.scale.floor)
    return BlockOutcome(point.masses, _make_solution(request, point, bound, gap), bound)


def _make_progress_reporter(
    progress: Progress, target_gap: float
) -> Callable[[int, float, float], None]:
    """Return a function that reports iteration, loss, gap and the estimated time that is left.

    The estimate assumes that the logarithm of the gap decreases linearly, from a gap of 1 at the
    start.
    """
    clock = Deadline()
    send_message = limit_message_rate(progress, _PROGRESS_PERIOD_SECONDS)

    def report(iteration: int, objective: float, bound: float) -> None:
        """Send the message of one iteration, unless the last message is too recent."""
        gap = (objective - bound) / max(abs(objective), abs(bound), _MIN_GAP_SCALE)
        if target_gap < gap < 1:
            seconds_left = clock.elapsed_seconds * math.log(gap / target_gap) / -math.log(gap)
            send_message(
                f"iteration {iteration}: loss {objective:.9g}, gap {gap:.2g}, "
                f"about {seconds_left:.0f} s left"
            )

    return report


def _name_multipliers(request: ChannelRequest, point: BlockPoint) -> dict[str, Vector]:
    """Return the multipliers of a point by the names that `bound_least_loss` expects.

    "extra" belongs to user-defined rows, "losses" to the worst-case loss, "ratio" to listed pairs.
    If all inputs are neighbours, "least" and "most" belong to the rows t_o <= M[y, o] and
    M[y, o] <= e^ε t_o, where t_o is a variable for each output.
    """
    k = request.question.k
    multipliers = {"extra": point.extra_multipliers}
    if point.weights is not None:
        multipliers["losses"] = point.weights[:k]
    if request.pairs is not None:
        return multipliers | {"ratio": point.multipliers}
    return multipliers | {"least": point.multipliers[:k], "most": point.multipliers[k:]}


def _make_solution(
    request: ChannelRequest, point: BlockPoint, bound: Fraction, gap: float
) -> Solution:
    """Return a point as the solution of a program that states only that the rows of the channel
    have the sum 1.

    Its variables are the masses M[y, o], output by output. For the worst-case loss one more
    variable is the largest loss.
    """
    from workbench import __version__

    k = request.question.k
    m = request.question.m
    weights = request.prior_weights
    has_loss_variable = weights is None
    size = k * m + int(has_loss_variable)
    # The mass of input y and output o has the position y + k o, so its row is its position mod k.
    cells = np.arange(k * m)
    row_sums = sp.csc_array((np.ones(k * m), (cells % k, cells)), shape=(k, size))
    x = point.masses.ravel(order="F")
    objective_row = np.zeros(size)
    scaled_losses = request.scaled_losses
    if weights is None:
        x = np.concatenate([x, [point.objective]])
        objective_row[-1] = scaled_losses.unit
    else:
        weighted_losses = scaled_losses.table.floats * weights[:, None]
        objective_row[: k * m] = scaled_losses.unit * weighted_losses.ravel(order="F")
    upper = np.ones(size)
    upper[k * m :] = np.inf
    is_integer = np.zeros(size, dtype=bool)
    data = Data(
        objective_row,
        offset=0.0,
        A=row_sums,
        row_lower=np.ones(k),
        row_upper=np.ones(k),
        lower=np.zeros(size),
        upper=upper,
        integrality=is_integer,
    )
    name = f"channel from {k} labels to {m} outputs, output by output"
    shift = float(scaled_losses.shift)
    program = Program(name, data, variables=(Block("M", 0, (k, m)),), shift=shift)
    # The objective is infinite as long as the row sums are not 1.
    is_feasible = math.isfinite(point.objective)
    loss = point.objective * scaled_losses.unit + shift
    termination = _TERMINATIONS.get(point.stop_reason, Termination.NUMERICAL)
    if is_feasible and scaled_losses.scale.settles(loss, bound, _OPTIMAL_GAP):
        termination = Termination.OPTIMAL
    return Solution(
        program,
        np.empty(0),
        termination,
        PointStatus.FEASIBLE if is_feasible else PointStatus.INFEASIBLE,
        x=x,
        native_bound=float(bound - scaled_losses.shift),
        iterations=point.iterations,
        seconds=point.seconds,
        solver=BLOCK_METHOD,
        version=__version__,
        options={"gap": gap},
        raw_status=point.stop_reason,
    )
