"""List the grids of cells that a search over a range tries, and estimate the runtime of each.

A grid cuts the range of real answers into cells of equal width (`range` has the method).
"""

from __future__ import annotations

import math
from fractions import Fraction

from workbench.exact.numbers import Rationals
from workbench.families.channel.block_work import (
    BLOCK_METHOD,
    BlocksSize,
    estimate_block_seconds,
    estimate_program_seconds,
    explain_memory_shortfall,
)
from workbench.families.channel.request import ChannelRequest
from workbench.questions.range_query import MAX_CELLS, RangeQuery

# The first grid has at least this many cells.
MIN_CELLS = 8
# The first grid under a notion of several bounds has at least this many cells.
_MIN_CURVED_CELLS = 4
# If the sensitivity is a whole number of cells only from more cells on, coarser grids come first.
_MAX_COARSE_CELLS = 32
# A grid is solved as a program, not by blocks, below this ε.
_MIN_BLOCK_EPSILON = Fraction(1, 10**6)


def list_cell_counts(request: ChannelRequest) -> list[int]:
    """List the numbers of cells to try, in order.

    Each number is a multiple of the number of parts of the prior, and makes the sensitivity a whole
    number of cells. If this needs more than 32 cells, coarser grids of up to 32 cells come first.
    They, and all grids if it needs more cells than are allowed, ignore the sensitivity.

    For example, the result is [8, 12, 16, 24, 32, 48, ...] for a range of the length 10 with the
    sensitivity 5 and one part.

    Args:
        request: request for a range.
    """
    question = request.question
    assert isinstance(question, RangeQuery)
    if question.has_user_cells:
        return [question.cells]
    parts = question.part_count
    min_cells = MIN_CELLS
    if request.has_several_bounds:
        min_cells = _MIN_CURVED_CELLS
    sensitivities = (question.high - question.low) / question.sensitivity
    step = math.lcm(sensitivities.numerator, parts)
    counts = _list_multiples(step, min_cells, MAX_CELLS)
    if step <= _MAX_COARSE_CELLS:
        return counts
    max_coarse_cells = _MAX_COARSE_CELLS if counts else MAX_CELLS
    return _list_multiples(parts, min_cells, max_coarse_cells) + counts


def _list_multiples(step: int, min_value: int, max_value: int) -> list[int]:
    """List step, 2 step, 3 step, 4 step, 6 step, 8 step, 12 step, ... between two numbers.

    The factors are the powers of two and three times the powers of two.
    """
    powers = [1 << i for i in range(MAX_CELLS.bit_length())]
    factors = sorted(powers + [3 * power for power in powers])
    return [step * factor for factor in factors if min_value <= step * factor <= max_value]


def uses_blocks(request: ChannelRequest) -> bool:
    """Return whether grids are solved by blocks, because no solver and no other method was
    requested.

    Args:
        request: request for a range.
    """
    options = request.how.options
    is_automatic = request.how.method == "auto" and request.how.solver == "highs"
    if not is_automatic or options.algorithm is not None:
        return False
    return not request.has_several_bounds and request.claim.epsilon >= _MIN_BLOCK_EPSILON


def is_quick(
    request: ChannelRequest, cells: RangeQuery, outputs: Rationals, max_seconds: float
) -> bool:
    """Return whether the program of a grid is estimated to be fast enough, and to fit into memory.

    Args:
        request: request for a range.
        cells: the range with the cells of the grid.
        outputs: listed outputs of the grid.
        max_seconds: seconds that the program may take.
    """
    question = cells.finite_query(cells.max_point_distance, outputs)
    # Without δ, a range of which all answers are neighbours has no comparison for every pair.
    is_compact = (
        question.pairs is None and not request.claim.delta and not request.has_several_bounds
    )
    if request.how.method == BLOCK_METHOD or uses_blocks(request):
        size = BlocksSize(question.k, question.m, pairs=None)
        if not is_compact:
            size = size._replace(pairs=question.neighbour_pairs)
        if request.claim.delta:
            size = size._replace(inputs_per_output=question.k)
        return (
            estimate_block_seconds(size) <= max_seconds and explain_memory_shortfall(size) is None
        )
    pair_count = question.k if is_compact else len(question.neighbour_pairs)
    return estimate_program_seconds(2 * pair_count * question.m) <= max_seconds
