"""Differential Privacy via Distributionally Robust Optimization: its benchmark tables with proven intervals.

    letter                          here
    ε, δ, Δf = 1                    rows, columns
    O, midpoint of their bounds     [lower, loss]: no noise costs less; the certified mechanism's exact loss
    BUB                             truncated Laplace noise (`models.oracles.line_noise.truncated_laplace`)
    BLB                             Geng et al. 2020 (`geng_formula`, which is no lower bound everywhere)

    Table 4 = 100 (BUB - O) / max(O, 1)     Table 5 = 100 (O - BLB) / max(O, 1)    Table 1 = 4 + 5    Table 6: 1 for η²

table1 and table6 recompute a subset of the cells; table1_full and table6_full, with `full` only, all 100 of each loss.
Each cell of these is kept as it is done, so that an interrupted table goes on where it stopped. What a printed cell
implies, and what is proven of it, is worked out in `dro_verdicts`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import product
from typing import Any

import pandas as pd

from models.oracles.line_noise import geng_formula, truncated_laplace
from workbench.families.api import design
from workbench.mechanisms.real_noise import RealNoise
from workbench.papers.artifact import Artifact, Comparison, InParts, Paper, artifact, printed
from workbench.papers.dro_verdicts import verdict_of

__all__ = ["PAPER"]

_SUBSET = [
    (".05", ".05"),
    (".05", ".25"),
    (".2", ".1"),
    (".2", ".5"),
    (".5", ".2"),
    ("1", ".2"),
    ("1", ".25"),
    ("2", ".1"),
]
_SQUARED_GAP = 1e-3  # a bound for squared costs needs fine grids; twice that at ε = 5, where the largest leave more
_DIGITS = 5  # to which the mechanism of a search is the same on every machine


def cell(request: tuple[str, str, str], gap: float | None = None) -> dict[str, Any]:
    """One cell: (ε, δ, loss) -> the proven interval. gap: relative, the family's default without."""
    epsilon, delta, loss = request
    optimum = design(RealNoise(1), epsilon=epsilon, delta=delta, loss=loss, **({} if gap is None else {"gap": gap}))
    assert optimum.bound is not None
    return {
        "epsilon": float(epsilon), "delta": float(delta), "lower": optimum.bound, "loss": optimum.objective,
        "gap_percent": 100 * (optimum.objective - optimum.bound) / optimum.objective, "steps": optimum.mechanism.steps,
        "atom": float(optimum.mechanism.atom / optimum.mechanism.total),
    }  # fmt: skip


def _gap(epsilon: str, loss: str) -> float | None:
    """What a cell is computed to, None for the family's default."""
    return None if loss != "squared" else _SQUARED_GAP if float(epsilon) <= 2 else 2 * _SQUARED_GAP


def _cells(name: str, loss: str, places: Sequence[tuple[str, str]], *, kept: bool = False) -> InParts:
    """An artifact of cells, the same with `full`, each a part."""
    keys = [(e, d, loss, _gap(e, loss)) for e, d in places]
    return InParts(keys, lambda key, _: cell(key[:3], key[3]), lambda cells, _: _table(name, loss, cells), kept)


def _values(name: str) -> Iterator[tuple[tuple[float, float], float]]:
    claims = printed("dro")
    for epsilon, row in zip(claims["epsilon"], claims[name]["cells"], strict=True):
        for delta, value in zip(claims["delta"], row, strict=True):
            yield (float(epsilon), float(delta)), value


def _beside(frame: pd.DataFrame, name: str, ours: str, what: str) -> list[Comparison]:
    """Printed cells beside ours, each with what is proven of it."""
    claims = printed("dro")
    squared = name == "table4_squared"
    tables = {"table4": name} if squared else {key: key for key in ("table1", "table4", "table5")}
    known = {key: dict(_values(table)) for key, table in tables.items()}
    key, comparisons = "table4" if squared else name, []
    for row in frame.to_dict("records"):
        place, proven = (row["epsilon"], row["delta"]), (row["lower"], row["loss"])
        cells = {table: values[place] for table, values in known.items()}
        verdict = verdict_of(key, cells, row[ours], place, proven, claims["gap"], squared=squared)
        comparisons.append(
            Comparison(
                f"{what}, ε = {place[0]:g}, δ = {place[1]:g} (percent)",
                claims[name]["place"],
                cells[key],
                float(row[ours]),
                verdict.tolerance,
                expected=not verdict.reasons,
                remark=verdict.remark,
            )
        )
    return comparisons


def _table(name: str, loss: str, cells: Sequence[dict[str, Any]]) -> Artifact:
    """Benchmarks against the optimum: for |η| both bounds, for η² the upper one."""
    frame = pd.DataFrame(cells)
    places = list(zip(frame.epsilon, frame.delta, strict=True))
    frame["truncated_laplace"] = [truncated_laplace(e, d, 1, loss) for e, d in places]
    middle = (frame.lower + frame.loss) / 2
    unit = 100 / middle.clip(lower=1)
    if loss == "absolute":
        frame["geng_formula"] = [geng_formula(e, d, 1) for e, d in places]
    frame["upper_percent"] = (frame.truncated_laplace - middle) * unit
    if loss == "squared":
        comparisons = _beside(frame, "table4_squared", "upper_percent", "of truncated Laplace noise, squared")
    else:
        frame["lower_percent"] = (middle - frame.geng_formula) * unit
        frame["both_percent"] = frame.upper_percent + frame.lower_percent
        comparisons = [
            *_beside(frame, "table1", "both_percent", "suboptimality of the benchmarks"),
            *_beside(frame, "table4", "upper_percent", "of truncated Laplace noise"),
            *_beside(frame, "table5", "lower_percent", "of the lower bound"),
        ]
    return artifact("dro", name, frame, comparisons, digits=_digits(frame), **_words(frame))


def _digits(frame: pd.DataFrame) -> dict[str, int]:
    given = {"epsilon", "delta", "truncated_laplace", "geng_formula", "steps"}
    return {str(name): 2 if name == "gap_percent" else _DIGITS for name in frame.columns if name not in given}


def _words(frame: pd.DataFrame) -> dict[str, Any]:
    """Of the caption: how far the bounds are apart for small and for large ε."""
    small, large = (frame[rows].gap_percent.max() for rows in (frame.epsilon <= 2, frame.epsilon > 2))
    more = "" if large != large else f", {large:.2g} % at ε = 5"
    return {"count": len(frame), "small": small, "more": more}


_ALL = list(product(printed("dro")["epsilon"], printed("dro")["delta"]))

PAPER = Paper(
    name="dro",
    title="Differential Privacy via Distributionally Robust Optimization",
    citation="A. Selvi, H. Liu, W. Wiesemann, Operations Research",
    artifacts={
        "table1": _cells("table1", "absolute", _SUBSET),
        "table1_full": _cells("table1_full", "absolute", _ALL, kept=True),
        "table6": _cells("table6", "squared", _SUBSET),
        "table6_full": _cells("table6_full", "squared", _ALL, kept=True),
    },
    seconds={"table1": 48, "table6": 5, "table1_full": 600, "table6_full": 600},
    only_full=("table1_full", "table6_full"),
    remarks=(
        "Noise on the reals is bounded from both sides by programs on a grid; every cell's mechanism is certified for "
        "all real shifts.",
        "A cell of Table 4 implies their O, and with Table 5 their BLB: the three tables are consistent in every cell. "
        "In 13 cells BLB is not the closed form as stated but has one term fewer (12) or more (1).",
        "In the code they publish both bounds are costs of the same masses on cells of width β, for |η| β/2 apart: O "
        "is their mechanism's cost less β/4. Where O is below every private noise by more than half of the 1 % that "
        "they state, the printed value is that of a grid too coarse for 1 %: their program, stated and solved in our "
        "tests, gives the printed 2.58 (ε = .5, δ = .05, |η|) with β = 1/20 and 9.45 (ε = 1, δ = .1, η²) with β = "
        "1/10.",
    ),
)
