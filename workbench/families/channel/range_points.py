"""The worst answer of a range in which not all answers are neighbours: design and bound from points and listed outputs.

x_i = low + i h are the points, i = 0..n; o_j = low + j p, p = h/r, the outputs, r whole, so that points are outputs.

Design. The rows of the points, ⌈S/h⌉ h apart at most neighbours, are those of all answers by `RangeMechanism`, which
has the lemma; its largest loss is a maximum of parabolas, exact whatever the program was. The program has the loss at
the points and, for some t, at (1 - t) x_i + t x_i+1, where the law is (1 - t) M_i + t M_i+1: a sum over two rows.

Bound. No channel of the range, whatever it publishes, has a largest loss below

    V - p²/4 for the squared loss,  V for the absolute one,    V the least largest loss of channels from the points to
                                                               the outputs, ⌊S/h⌋ h apart at most neighbours.

Proof. The laws at the points are a private channel of theirs, and cost no more than the worst answer of all. What it
publishes is clamped to the range, which brings it no further from any answer, and o = (1 - s) o_j + s o_j+1 becomes
o_j+1 with probability s, else o_j. That is post-processing, under which (ε, δ) stays. The mean squared distance to a
point is then (o - x_i)² + s (1 - s) p², the mean absolute one |o - x_i|, as no point lies between two outputs. So there
is a channel to the outputs that costs at most p²/4, or nothing, more. ∎ V itself is bounded in integers, from
multipliers that are any (`lower_bound`).
"""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction
from typing import ClassVar

import numpy as np

from solvers.solution import Termination
from workbench.families.channel import blocks
from workbench.families.channel.block_work import NAME, BlocksSize, seconds, too_large
from workbench.families.channel.problem import ChannelProblem
from workbench.families.channel.range_channels import few
from workbench.families.channel.repair import to_integers
from workbench.families.channel.request import ChannelRequest
from workbench.families.design import Design, OracleVerdict
from workbench.families.problem import Answer, Problem, Programs
from workbench.mechanisms.range_query import RangeQuery

_GAP = 1e-5  # of a program
_FIRST, _MOST, _FEWEST = 4, 6, 96  # r at first, and at most; outputs, about, from which more are not free
_OFF = 0.002  # p²/4, as a share of the loss
_CLOSE = 0.01  # relative, of design and bound
_LONG = 100  # seconds of a program, about


class Points(ChannelProblem):
    """The least loss of the worst of the points."""

    SHARES: ClassVar[tuple[float, ...]] = ()

    def without_delta(self) -> Problem | None:
        """None: the session of a range knows what is good at δ = 0."""
        return None

    def constant(self, below: float) -> Answer | None:
        """None: the session of a range tries it."""
        return None

    def answered(self, programs: Programs | None, start: str) -> Answer:
        """By blocks; with a bound where no others count, which would make it one of no channels but these."""
        request = self.request
        numbers, losses = request.question.numbers, request.losses.named
        assert numbers is not None
        assert losses is not None
        x, o = (np.array([float(value - numbers[0][0]) for value in values]) for values in numbers)
        between = tuple((t, losses.matrix(o, (1 - t) * x[:-1] + t * x[1:])) for t in self.SHARES)
        masses, solution, bound = blocks.solved(request, None, between)
        raw, law, value = request.channel(masses), (to_integers(masses), None), solution.objective or 0.0
        return Answer(raw, None if between else bound, solution, "exact repair, output by output", law, value)

    def oracle(self, answer: Answer) -> OracleVerdict:
        """None: points are not all that counts."""
        return OracleVerdict.none("no closed form is known for a range.")

    def proven(self, reached: Design) -> Design:
        """What is proven is said of the range. Raises NotProven, with the design, after Ctrl-C."""
        interrupted = reached.solution is not None and reached.solution.termination is Termination.INTERRUPTED
        return super().proven(reached) if interrupted else reached


class BetweenPoints(Points):
    """That of the points and of some answers between them."""

    SHARES = (0.25, 0.5, 0.75)


def by_points(request: ChannelRequest) -> bool:
    """Whether a request for a range is one that this file is for, and blocks take."""
    q = request.question
    assert isinstance(q, RangeQuery)
    chosen = request.solver == "highs" and request.options.algorithm is None and request.method != "program"
    return chosen and q.weights is None and not (q.local or request.cut or request.bounds.mass or request.runs > 1)


def in_blocks(request: ChannelRequest) -> ChannelRequest:
    """The request by blocks."""
    gap = _GAP if request.options.gap is None else request.options.gap
    return replace(request, method=NAME, options=replace(request.options, gap=gap))


def fits(request: ChannelRequest, cells: RangeQuery) -> bool:
    """Whether a program is one of moments, or, by blocks, ends in a minute or two and fits into memory."""
    if not by_points(request):
        return few(request, cells)
    k, m, pairs = cells.cells + 1, _FIRST * cells.cells + 1, cells.finite(cells.far).listed
    size = BlocksSize(k, m, pairs, k if request.delta else None, (1 + len(BetweenPoints.SHARES)) * k)
    return seconds(size) <= _LONG and too_large(size) is None


def parts_of(cells: RangeQuery, squared: bool, cost: Fraction | None) -> int:
    """r, where a loss of `cost` is known."""
    if not squared:
        return 2
    wanted = _FIRST if cost is None else math.ceil(cells.width / math.sqrt(4 * _OFF * float(cost)))
    return max(min(wanted, _MOST), _FEWEST // cells.cells)


def coarse(count: int, cost: Fraction, cells: RangeQuery, bound: Fraction) -> bool:
    """Whether so many cells are fewer than twice those tried, and too few for a gap of O(h²)."""
    return count < 2 * cells.cells and float((cost - bound) / cost) * (cells.cells / count) ** 2 > _CLOSE
