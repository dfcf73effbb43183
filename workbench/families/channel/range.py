"""The best channel for real answers uniform on a range, by a finite one on equal cells: both bounds, exactly.

Cells of width h = R/n; x is rounded to the middle m_i of its cell, which a channel M with free outputs takes.

    cost      Σ_i 1/n Σ_o M(i, o) c(o - m_i),  c(r) = mean of ℓ(r + u) over |u| <= h/2:  r² + h²/12;
              |r| beyond half a cell, else h/4 + r²/h
    bound     for every offset t the answers low + t + i h, i < n, are a finite question, the same for all t but for a
              shift, so that the mean loss of a channel of the range, being the mean over t, is at least the least loss
              of that question with real outputs

Neighbours differ by S at most: their cells by ⌈S/h⌉, which M protects, while the bound may use ⌊S/h⌋ only; where all
answers are neighbours so are all cells. So cost and bound are at most h²/12 (squared) or h/4 (absolute) apart where h
divides S, or S is the whole range.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from workbench.errors import InvalidRequest, NotProven
from workbench.families.channel.family import FAMILY
from workbench.families.channel.request import ChannelTooLarge
from workbench.families.design import Design
from workbench.families.recommendation import RealQuery, Value
from workbench.io.files import spelled
from workbench.mechanisms.channel import Channel
from workbench.mechanisms.finite_query import FREE, FiniteQuery

_CELLS = (8, 16, 32, 64, 128)  # at first; refined until cost and bound are within
_CLOSE = 0.01  # of each other, relative
_MASSES = 30_000  # compared on the cells' own middles; with δ a third


def on_range(query: RealQuery) -> Value:
    """Cost of the best channel on the finest cells that are tried, and the best bound on all channels of the range."""
    best: tuple[Fraction, _Cells, Design] | None = None
    bound = 0.0
    for count in _counts(query):
        cells = _Cells(query, count)
        if best is not None and not cells.few:
            break
        try:
            design = cells.design(cells.far)
            below = design if cells.near == cells.far else cells.design(cells.near) if cells.near else None
        except (ChannelTooLarge, InvalidRequest):
            if best is None:
                raise
            break
        cost = cells.cost(design.mechanism, design.question.outputs)
        bound = max(bound, 0.0 if below is None else below.bound or 0.0)
        if best is None or cost < best[0]:
            best = cost, cells, design
        if best[0] - Fraction(bound) <= Fraction(_CLOSE) * best[0]:
            break
    assert best is not None
    cost, cells, design = best
    gap = float(cost - Fraction(bound)) / float(cost)
    proven = "within 1 % of any channel" if gap <= _CLOSE else f"not proven within 1 % of any channel ({gap:.2g})"
    return Value(float(cost), bound, design.certificate is not None, f"{cells.words}; {proven}")


def _counts(query: RealQuery) -> list[int]:
    """How many cells are tried: such that the sensitivity is so many cells, where that is possible."""
    whole = (query.width / query.sensitivity).numerator
    dividing = sorted({whole * -(-count // whole) for count in _CELLS})
    return [count for count in dividing if count <= 2 * _CELLS[-1] and _Cells(query, count).few] or [*_CELLS]


@dataclass(frozen=True)
class _Cells:
    """So many cells of a range."""

    query: RealQuery
    count: int

    @property
    def width(self) -> Fraction:
        """h."""
        return self.query.width / self.count

    @property
    def near(self) -> int:
        """Cells that neighbours are apart at least where they are farthest: those of the bound."""
        return self.count - 1 if self.query.local else math.floor(self.query.sensitivity / self.width)

    @property
    def far(self) -> int:
        """Cells that neighbours are apart at most."""
        return self.count - 1 if self.query.local else math.ceil(self.query.sensitivity / self.width)

    @property
    def few(self) -> bool:
        """Whether the program is one of moments."""
        pairs = self.count if self.query.local and not self.query.delta else self.count * self.far
        return 2 * pairs * self.count <= (_MASSES // 3 if self.query.delta else _MASSES)

    @property
    def words(self) -> str:
        """Where the middles are."""
        first, last = self.query.low + self.width / 2, self.query.high - self.width / 2
        return f"on answers rounded to {spelled(first)}..{spelled(last)}:{spelled(self.width)}, which is charged"

    def design(self, apart: int) -> Design:
        """The best channel where cells so far apart are neighbours; proven or not. Raises WorkbenchError."""
        q = self.query
        middles = [q.low + self.width * (2 * i + 1) / 2 for i in range(self.count)]
        shift = apart * self.width
        everyone = apart >= self.count - 1
        relation: dict[str, Any] = {"neighbours": "all"} if everyone else {"max_shift": shift}
        try:
            return FAMILY.designed(FAMILY.request(FiniteQuery(middles, FREE, **relation), loss=q.loss, **q.budget))
        except NotProven as error:
            if error.design is None or error.interrupted:
                raise
            unproven: Design = error.design
            return unproven

    def cost(self, channel: Channel, outputs: Any) -> Fraction:
        """What the channel costs, the rounding charged, exactly."""
        h, total = self.width, Fraction(0)
        for i, row in enumerate(channel.rows):
            middle = self.query.low + h * (2 * i + 1) / 2
            each = [self._mean(o - middle) for o in outputs]
            total += row.mean(each)
        return total / self.count

    def _mean(self, r: Fraction) -> Fraction:
        """c."""
        h = self.width
        if self.query.loss == "squared":
            return r * r + h * h / 12
        return abs(r) if 2 * abs(r) >= h else h / 4 + r * r / h
