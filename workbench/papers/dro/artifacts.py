"""Differential Privacy via Distributionally Robust Optimization: its benchmark tables with proven intervals.

    letter                          here
    ε, δ, Δf = 1                    rows, columns
    O, midpoint of their bounds     [lower, loss]: no noise costs less; the certified mechanism's exact loss
    BUB                             truncated Laplace noise (`workbench.models.oracles.line_noise.truncated_laplace`)
    BLB                             Geng et al. 2020 (`geng_formula`, which is no lower bound everywhere)

    Table 4 = 100 (BUB - O) / max(O, 1)     Table 5 = 100 (O - BLB) / max(O, 1)    Table 1 = 4 + 5    Table 6: 1 for η²

Both tables have 100 cells and are recomputed with `full` only. Each cell is kept when it is done, so an interrupted
table continues where it stopped.

What a printed cell of Selvi, Liu and Wiesemann's tables implies, and what is proven of it.

    letter                       here
    T4, T5, T1 in percent        100 (BUB - O)/max(O, 1), 100 (O - BLB)/max(O, 1), 100 (BUB - BLB)/max(O, 1)
    BUB, BLB                     `workbench.models.oracles.line_noise.truncated_laplace`, `geng_formula`
    O                            the middle of their two bounds, said to be less than 1 % of max(O, 1) apart
    [L, U]                       our proven interval: no noise costs less than L, a certified mechanism costs U

BUB has a closed form, so a cell of Table 4, known to half a unit of its second decimal, gives an interval of O:

    O = BUB/(1 + T4/100) where that is >= 1, else BUB - T4/100            BLB = O - T5/100 max(O, 1)

and with Table 5 one of BLB. That tells how many terms their BLB has: the closed form sums a b^i until it reaches 1/2,
the code they publish (data_independent.cpp) while the sum stays up to 1/2, which is one term fewer; where the sum is
exactly 1/2, at δ = 1/2, rounding decides and there is one more.

In that code both bounds are costs of the same masses on cells of width β with an end at 0, one by the cells' middles,
one by their ends nearest to 0: they are β/2 apart, and O is the mechanism's cost less β/4.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from itertools import product
from typing import NamedTuple

import numpy as np
import pandas as pd

from workbench.exact.objects import Record
from workbench.io.result import Row
from workbench.models.oracles.line_noise import geng_formula, truncated_laplace
from workbench.papers.artifact import Comparison, build_declared_paper, read_printed_numbers
from workbench.pipeline.api import design
from workbench.questions.unbounded_noise import RealNoise

Interval = tuple[float, float]

_SQUARED_GAP = 1e-3  # a bound for squared costs needs fine grids; twice that at ε = 5, where the largest leave more
_HALF = 0.005  # of a unit of the last printed digit, in percent
_USUAL = "their O is the midpoint of bounds up to 1 % of max(O, 1) apart; ours is proven"
_TERMS = {
    1: "their lower bound is the closed form with one term fewer: its sum stays up to 1/2, as in the code they publish",
    -1: "their lower bound is the closed form with one term more, where its sum is exactly 1/2 and rounding decides",
}


def cell(request: tuple[str, str, str], gap: float | None = None) -> Record:
    """One cell: (ε, δ, loss) -> the proven interval. gap: relative, the family's default without."""
    epsilon, delta, loss = request
    optimum = design(
        RealNoise(1),
        epsilon=epsilon,
        delta=delta,
        loss=loss,
        **({} if gap is None else {"gap": gap}),
    )
    assert optimum.bound is not None
    return {
        "epsilon": float(epsilon),
        "delta": float(delta),
        "lower": optimum.bound,
        "loss": optimum.objective,
        "gap_percent": 100 * (optimum.objective - optimum.bound) / optimum.objective,
        "steps": optimum.mechanism.steps,
        "atom": float(optimum.mechanism.atom / optimum.mechanism.total),
    }


def _gap(epsilon: float, loss: str) -> float | None:
    return None if loss != "squared" else _SQUARED_GAP * (1 if epsilon <= 2 else 2)


# What a printed cell implies.


class Verdict(NamedTuple):
    """tolerance: in percent; reasons: what is proven of a cell that differs, empty where none is needed."""

    tolerance: float
    reasons: tuple[str, ...]

    @property
    def remark(self) -> str:
        """In words."""
        return "; ".join(self.reasons) if self.reasons else _USUAL


def implied_optimum(bub: float, t4: float) -> Interval:
    """The interval of O that a cell of Table 4 leaves."""

    def optimum(share: float) -> float:
        large = bub / (1 + share)
        return large if large >= 1 else bub - share

    return optimum((t4 + _HALF) / 100), optimum((t4 - _HALF) / 100)


def implied_bound(o: Interval, t5: float) -> Interval:
    """The interval of BLB that O and a cell of Table 5 leave."""
    return o[0] - (t5 + _HALF) / 100 * max(o[0], 1.0), o[1] - (t5 - _HALF) / 100 * max(o[1], 1.0)


def terms_fewer(place: tuple[float, float], t4: float, t5: float) -> int | None:
    """How many terms fewer than the closed form their BLB has at (ε, δ): 0, 1 or -1; None where none of these fits."""
    epsilon, delta = place
    low, high = implied_bound(
        implied_optimum(truncated_laplace(epsilon, delta, 1, "absolute"), t4), t5
    )
    return next(
        (fewer for fewer in (0, 1, -1) if low <= geng_formula(epsilon, delta, 1, fewer) <= high),
        None,
    )


def verdict_of(
    name: str,
    cells: Mapping[str, float],
    ours: float,
    place: tuple[float, float],
    proven: Interval,
    gap: float,
    *,
    squared: bool = False,
) -> Verdict:
    """What is proven of the cell of table `name`, beside which ours is `ours`, in percent.

    cells: the printed percentages of this (ε, δ) by table: "table4", and for |η| "table1" and "table5"; proven: (L, U);
    gap: of their bounds, percent; squared: of a table for η².
    """
    value = cells[name]
    tolerance = gap / 2 * (value / 100 if name == "table1" else 1) * 1.02 + 0.01
    if abs(value - ours) <= tolerance:
        return Verdict(tolerance, ())
    bub = truncated_laplace(*place, 1, "squared" if squared else "absolute")
    reasons = []
    if name != "table4" and (fewer := terms_fewer(place, cells["table4"], cells["table5"])):
        reasons.append(_TERMS[fewer])
    reasons += _outside(
        implied_optimum(bub, cells["table4"]), proven, "" if name == "table4" else "with Table 4 "
    )
    return Verdict(tolerance, tuple(reasons))


def _outside(implied: Interval, proven: Interval, by: str) -> list[str]:
    """One sentence where no O that is implied lies in what is proven."""
    (first, last), (least, loss) = implied, proven
    middle, unit = f"{by}it implies O in [{first:.5g}, {last:.5g}]", 100 / max(least, 1.0)
    if last < least:
        below = f"{unit * (least - last):.2f} % of max(O, 1) below {least:.5g}"
        return [f"{middle}, {below}, than which no private noise costs less"]
    if first > loss:
        above = f"{unit * (first - loss):.2f} % of max(O, 1) above the {loss:.5g}"
        return [f"{middle}, {above} of a certified mechanism"]
    return []


# The tables.


def _values(name: str) -> dict[tuple[float, float], float]:
    """The printed cells of a table by (ε, δ)."""
    claims = read_printed_numbers("dro")
    places = product(map(float, claims["epsilon"]), map(float, claims["delta"]))
    return dict(zip(places, np.ravel(claims[name]["cells"]).tolist(), strict=True))


def _beside(frame: pd.DataFrame, name: str, ours: str, what: str) -> list[Comparison]:
    """Printed cells beside ours, each with what is proven of it."""
    claims, squared = read_printed_numbers("dro"), name == "table4_squared"
    key = "table4" if squared else name
    known = (
        {"table4": _values(name)}
        if squared
        else {key: _values(key) for key in ("table1", "table4", "table5")}
    )
    comparisons = []
    for row in frame.to_dict("records"):
        place, proven = (row["epsilon"], row["delta"]), (row["lower"], row["loss"])
        cells = {table: values[place] for table, values in known.items()}
        verdict = verdict_of(key, cells, row[ours], place, proven, claims["gap"], squared=squared)
        where = f"{what}, ε = {place[0]:g}, δ = {place[1]:g} (percent)"
        compared = Comparison(
            where, claims[name]["place"], cells[key], row[ours], verdict.tolerance
        )
        comparisons.append(replace(compared, expected=not verdict.reasons, remark=verdict.remark))
    return comparisons


def cells(loss: str, epsilon: float, delta: float) -> list[Row]:
    """A cell: benchmarks against the optimum, for |η| both bounds, for η² the upper one."""
    row = cell((f"{epsilon:g}", f"{delta:g}", loss), _gap(epsilon, loss))
    middle, upper = (row["lower"] + row["loss"]) / 2, truncated_laplace(epsilon, delta, 1, loss)
    unit = 100 / max(middle, 1)
    row |= {"truncated_laplace": upper, "upper_percent": (upper - middle) * unit}
    if loss == "absolute":
        lower = geng_formula(epsilon, delta, 1)
        row |= {"geng_formula": lower, "lower_percent": (middle - lower) * unit}
        row["both_percent"] = row["upper_percent"] + row["lower_percent"]
    return [row]


def benchmarks(table: pd.DataFrame) -> Record:
    """The printed cells beside those of a table, and how wide its intervals are at large ε."""
    loss, large = (
        "absolute" if "geng_formula" in table else "squared",
        table[table.epsilon > 2].gap_percent.max(),
    )
    comparisons = [
        c for name, ours, what in _COMPARED[loss] for c in _beside(table, name, ours, what)
    ]
    return {
        "comparisons": comparisons,
        "more": "" if math.isnan(large) else f", {large:.2g} % at ε = 5",
    }


_COMPARED = {  # of each loss: a printed table, our column beside it, and what both are
    "absolute": (
        ("table1", "both_percent", "suboptimality of the benchmarks"),
        ("table4", "upper_percent", "of truncated Laplace noise"),
        ("table5", "lower_percent", "of the lower bound"),
    ),
    "squared": (("table4_squared", "upper_percent", "of truncated Laplace noise, squared"),),
}


# The numbers of errata, on which declared/dro.toml states the conditions.


def lower_bound(epsilon: float, delta: float) -> Record:
    """Where the closed form of the lower bound exceeds what truncated Laplace noise costs."""
    losses = {place: truncated_laplace(*place, 1, "absolute") for place in _values("table4")}
    return {
        "above": sum(geng_formula(*place, 1) > loss for place, loss in losses.items()),
        "cells": len(losses),
        "form": geng_formula(epsilon, delta, 1),
        "loss": losses[epsilon, delta],
    }


def terms() -> Record:
    """How many terms fewer than the closed form the printed lower bounds have."""
    shares = zip(_values("table4").items(), _values("table5").values(), strict=True)
    terms = [terms_fewer(place, t4, t5) for (place, t4), t5 in shares]
    return {
        "cells": len(terms),
        "as_stated": terms.count(0),
        "fewer": terms.count(1),
        "more": terms.count(-1),
    }


def grid(table: str, loss: str, epsilon: float, delta: float) -> Record:
    """The optimum that a printed cell implies, beside what no noise costs less than."""
    percent = _values(table)[epsilon, delta]
    low, high = implied_optimum(truncated_laplace(epsilon, delta, 1, loss), percent)
    proven = cell((str(epsilon), str(delta), loss), _gap(epsilon, loss))
    return {"percent": percent, "low": low, "high": high, "least": proven["lower"]}


PAPER = build_declared_paper("dro", globals())
