"""The question of a channel for real answers in a range: they are rounded to the middles of equal cells.

Neighbours differ by S at most: of cells of width h, those of neighbours lie ⌈S/h⌉ apart at most. All cells are
neighbours where S is the whole range, the default.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

from workbench.errors import InvalidRequest
from workbench.exact.numbers import positive
from workbench.exact.objects import Record
from workbench.exact.plain import whole_number
from workbench.io.files import spelled
from workbench.mechanisms.finite_query import FREE, FiniteQuery
from workbench.mechanisms.points import Point
from workbench.mechanisms.quantization import read_range, spelled_range

_CELLS = 8  # until a design chooses
MOST_CELLS = 512


class RangeQuery(FiniteQuery):
    """A query with real answers in a range, uniform on it.

    range: "LOW..HIGH", or two numbers; sensitivity: how far neighbouring answers differ at most, all of the range by
    default; cells: how many, chosen by the design unless given. Raises InvalidRequest.
    """

    low: Fraction
    high: Fraction
    sensitivity: Fraction
    cells: int
    given: bool

    def __init__(self, range: Any, *, sensitivity: Any = None, cells: int | None = None) -> None:
        low, high = read_range(range)
        reach = high - low if sensitivity is None else positive(sensitivity, "sensitivity")
        if reach > high - low:
            InvalidRequest.must("sensitivity", "at most the width of the range", float(reach))
        count = _CELLS if cells is None else whole_number(cells, "cells", 2, MOST_CELLS)
        self.__dict__.update(low=low, high=high, sensitivity=reach, cells=count, given=cells is not None)
        self.__dict__.update(self.finite(self.far).__dict__)

    @property
    def width(self) -> Fraction:
        """h."""
        return (self.high - self.low) / self.cells

    @property
    def local(self) -> bool:
        """Whether every two answers are neighbours."""
        return self.sensitivity == self.high - self.low

    @property
    def near(self) -> int:
        """Cells that neighbours are apart at least where they are farthest: those of a bound."""
        return self.cells - 1 if self.local else math.floor(self.sensitivity / self.width)

    @property
    def far(self) -> int:
        """Cells that neighbours are apart at most."""
        return self.cells - 1 if self.local else min(self.cells - 1, math.ceil(self.sensitivity / self.width))

    def finite(self, apart: int) -> FiniteQuery:
        """The question of the cells' middles, where cells so far apart are neighbours, with real outputs."""
        middles = [self.low + self.width * (2 * i + 1) / 2 for i in range(self.cells)]
        everyone = apart >= self.cells - 1
        relation: Record = {"neighbours": "all"} if everyone else {"max_shift": apart * self.width}
        return FiniteQuery(middles, FREE, **relation)

    def of(self, cells: int) -> RangeQuery:
        """The same range in so many cells."""
        return RangeQuery((self.low, self.high), sensitivity=self.sensitivity, cells=cells)

    def placed(self, outputs: tuple[Point, ...]) -> RangeQuery:
        """The same question with these outputs."""
        other = object.__new__(RangeQuery)
        other.__dict__.update({**self.__dict__, "outputs": outputs})
        other.__dict__.pop("numbers", None)  # of other outputs
        return other

    @property
    def rounded(self) -> str:
        """The middles, as `FiniteQuery` reads them."""
        return f"{spelled_range((self.low + self.width / 2, self.high - self.width / 2))}:{spelled(self.width)}"

    def to_dict(self) -> Record:
        """JSON-ready."""
        range_ = {"range": spelled_range((self.low, self.high)), "sensitivity": spelled(self.sensitivity)}
        return super().to_dict() | range_ | ({"cells": self.cells} if self.given else {})

    def __repr__(self) -> str:
        apart = "every two neighbours" if self.local else f"neighbours at most {float(self.sensitivity):g} apart"
        return f"RangeQuery({spelled_range((self.low, self.high))}, {apart})"
