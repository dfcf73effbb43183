"""The best channel for real answers in a range, by a finite one on equal cells: both bounds, exactly.

Cells of width h = R/n; x is rounded to the middle m_i of its cell, which a channel M with free outputs takes.

    cost      Σ_i p_i Σ_o M(i, o) c(o - m_i),  c(r) = mean of ℓ(r + u) over |u| <= h/2:  r² + h²/12;
              |r| beyond half a cell, else h/4 + r²/h; p uniform on each cell, 1/n by default
    bound     for every offset t the answers low + t + i h, i < n, are a finite question, the same for all t but for a
              shift, so that the mean loss of a channel of the range, being the mean over t, is at least the least loss
              of that question with real outputs

Where the worst answer counts, it is at an end of a cell, as the loss is convex: so the cost is the largest one there,
and the bound that of the ends of cells.

Neighbours differ by S at most: their cells by ⌈S/h⌉, which M protects, while the bound may use ⌊S/h⌋ only; where all
answers are neighbours so are all cells. So cost and bound are at most h²/12 (squared) or h/4 (absolute) apart where h
divides S, or S is the whole range.
"""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction

from solvers.search import Deadline
from workbench.errors import InvalidRequest, NotProven
from workbench.exact.distribution import Distribution
from workbench.families.base import Session, Values
from workbench.families.channel.losses import loss_table
from workbench.families.channel.request import ChannelRequest, ChannelTooLarge
from workbench.families.design import Design, OracleVerdict
from workbench.mechanisms.finite_query import FiniteQuery
from workbench.mechanisms.range_query import RangeQuery, cell_loss

_CELLS = (8, 16, 32, 64, 128)  # at first; refined until cost and bound are within
_MORE = (12, 24, 48, 96)  # where they are not: the loss does not fall with every refinement
_BY_TANGENTS = (4, 8)  # cells under a notion of several bounds
_CLOSE = 0.01  # of each other, relative
_MASSES = 33_000  # compared on the cells' own middles; with δ half


class RangeSession(Session):
    """The session of a request for a range."""

    def design(self, point: Values | None = None, *, start: str = "hot") -> Design:
        """The best channel on the finest cells that are tried, with the best bound on all channels of the range."""
        request = self.request if point is None else self.request.at(point)
        assert isinstance(request, ChannelRequest)
        deadline, question = Deadline(request.options.time_limit), _range(request)
        best: tuple[Fraction, RangeQuery, Design] | None = None
        bound = 0.0
        for count in [question.cells] if question.given else _counts(request):
            cells = question.of(count)
            if best is not None and (deadline.passed or not _few(request, cells)):
                break
            try:
                design = _solved(request, cells.finite(cells.far), deadline)
                lower = cells.below()
                same = lower is not None and (lower.inputs, lower.pairs) == (cells.inputs, cells.pairs)
                below = design if same else None if lower is None else _solved(request, lower, deadline)
            except (ChannelTooLarge, InvalidRequest, NotProven) as error:
                if best is None or getattr(error, "interrupted", False):
                    raise
                break
            cost = _cost(design, cells)
            bound = max(bound, 0.0 if below is None else below.bound or 0.0)
            if best is None or cost < best[0]:
                best = cost, cells, design
            if request.progress is not None:
                request.progress(f"{count} cells: loss {float(best[0]):.9g}, bound {bound:.9g}")
            if best[0] - Fraction(bound) <= Fraction(_CLOSE) * best[0]:
                break
        assert best is not None
        design = _of_range(request, *best, bound)
        if deadline.passed and design.objective - bound > _CLOSE * design.objective:
            words = f"The search stopped at its time limit: incumbent {design.objective:.9g}, bound {bound:.9g}."
            raise NotProven(words, incumbent=design.objective, bound=bound, design=design)
        return design


def _range(request: ChannelRequest) -> RangeQuery:
    assert isinstance(request.question, RangeQuery)
    return request.question


def _few(request: ChannelRequest, cells: RangeQuery) -> bool:
    """Whether the program is one of moments."""
    pairs = cells.cells if cells.local and not request.delta else cells.cells * cells.far
    return 2 * pairs * cells.cells <= (_MASSES // 2 if request.delta else _MASSES)


def _counts(request: ChannelRequest) -> list[int]:
    """How many cells are tried: such that the sensitivity is so many cells, where that is possible."""
    question = _range(request)
    whole = math.lcm(((question.high - question.low) / question.sensitivity).numerator, question.parts)
    counts = _BY_TANGENTS if request.cut else (*_CELLS, *_MORE)
    dividing = list(dict.fromkeys(whole * -(-count // whole) for count in counts))
    if request.cut:
        return dividing
    return [n for n in dividing if n <= 2 * _CELLS[-1] and _few(request, question.of(n))] or [*_CELLS]


def _solved(request: ChannelRequest, question: FiniteQuery, deadline: Deadline) -> Design:
    """The best channel of a finite question; proven or not. Raises WorkbenchError."""
    left = deadline.left
    options = request.options if left is None else replace(request.options, time_limit=max(0.2, left))
    inner = replace(request, question=question, losses=loss_table(question, request.loss), options=options)
    try:
        return inner.family.designed(inner)
    except NotProven as error:
        if error.design is None or error.interrupted:
            raise
        unproven: Design = error.design
        return unproven


def _of_range(request: ChannelRequest, cost: Fraction, cells: RangeQuery, design: Design, bound: float) -> Design:
    """The design of the finite question as one of the range."""
    gap = float(cost - Fraction(bound)) / float(cost)
    proven = "within 1 % of any channel" if gap <= _CLOSE else f"not proven within 1 % of any channel ({gap:.2g})"
    words = f"It takes answers rounded to {cells.rounded}, which the loss charges; {proven} of the range"
    words += f" at {design.request.budget_words}."
    chosen = replace(design.request, question=cells.placed(design.question.outputs), options=request.options)
    none = OracleVerdict.none("no closed form is known for a range.")
    return replace(design, request=chosen, objective=float(cost), bound=bound, oracle=none, solution=None,
                   words=(words,), details={**design.details, "loss": cost, "rounded": cells.rounded})  # fmt: skip


def _cost(design: Design, cells: RangeQuery) -> Fraction:
    """What the channel costs, the rounding charged, exactly."""
    h, loss = cells.width, str(design.request.loss)

    def mean(row: Distribution, at: Fraction, width: Fraction) -> Fraction:
        return row.mean([cell_loss(loss, o - at, width) for o in design.question.outputs])

    rows = [(row, cells.low + h * (2 * i + 1) / 2) for i, row in enumerate(design.mechanism.rows)]
    if cells.prior is None:
        return max(mean(row, m + side * h / 2, Fraction(0)) for row, m in rows for side in (-1, 1))
    return sum((p * mean(row, m, h) for p, (row, m) in zip(cells.prior, rows, strict=True)), Fraction(0))
