"""Measure the CPU time of `wb.formula`, and of `wb.check` on the saved formula.

`wb.formula` computes the optimum as a function of ε and δ. `wb.check` proves a saved formula again
without a solver. Times are CPU seconds of one thread. "limit" is the longest acceptable time of
`wb.formula` in seconds.
"""

from __future__ import annotations

import tempfile
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import pandas as pd

import workbench as wb
from bench import time_call

TITLE = "optima as formulas in e^epsilon and delta"


@dataclass(frozen=True)
class FormulaCase:
    """A formula to compute.

    Attributes:
        name: name of the row in the table.
        question: the question that is designed for.
        options: options of `wb.formula`.
        limit: longest acceptable seconds, or None.
    """

    name: str
    question: Any
    options: dict[str, Any]
    limit: float | None


_FREE_DELTA = {"loss": "absolute", "delta": "0..1"}
_CIRCULAR = {"loss": "circular-squared"}
CASES = (
    FormulaCase(
        "channel 0..3, pure", wb.FiniteQuery("0..3", max_shift=1), {"loss": "absolute"}, limit=0.1
    ),
    FormulaCase(
        "channel 0..5, dp, δ free", wb.FiniteQuery("0..5", max_shift=1), _FREE_DELTA, limit=None
    ),
    FormulaCase(
        "channel 0..7, dp, δ free", wb.FiniteQuery("0..7", max_shift=1), _FREE_DELTA, limit=5.0
    ),
    FormulaCase(
        "modulo n = 12, two shifts", wb.ModuloNoise(n=12, max_shift=2), _CIRCULAR, limit=0.1
    ),
    FormulaCase(
        "modulo n = 20, two shifts", wb.ModuloNoise(n=20, max_shift=2), _CIRCULAR, limit=1.0
    ),
    FormulaCase(
        "modulo n = 40, six shifts", wb.ModuloNoise(n=40, max_shift=6), _CIRCULAR, limit=3.0
    ),
    FormulaCase(
        "quantizer, 4 outputs, 9 knots", wb.Quantization("-2,-0.5,0.5,2"), {"knots": 9}, limit=None
    ),
)


def run_formula_benchmark() -> pd.DataFrame:
    """Return one row for each formula: its number of pieces, both times, and the file size."""
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        for case in CASES:
            seconds, formula = time_call(partial(wb.formula, case.question, **case.options))
            (path,) = formula.save(Path(folder) / "formula.json")
            check_seconds, _ = time_call(partial(wb.check, path))
            rows.append(
                {
                    "formula": case.name,
                    "pieces": len(formula.pieces),
                    "seconds": seconds,
                    "limit": case.limit,
                    "check_seconds": check_seconds,
                    "kilobytes": path.stat().st_size / 1000,
                }
            )
    return pd.DataFrame(rows)
