"""Formulas: processor seconds of one thread for the whole formula, and for proving its file again without a solver.

"limit" is what a formula of that size may take.
"""

from __future__ import annotations

import tempfile
from functools import partial
from pathlib import Path
from typing import Any

import pandas as pd

import workbench as wb
from bench import seconds_of

TITLE = "optima as formulas in e^epsilon and delta"
CASES: tuple[tuple[str, Any, dict[str, Any], float | None], ...] = (
    ("channel 0..3, pure", wb.FiniteQuery("0..3", max_shift=1), {"loss": "absolute"}, 0.1),
    (
        "channel 0..5, dp, δ free",
        wb.FiniteQuery("0..5", max_shift=1),
        {"loss": "absolute", "delta": "0..1"},
        None,
    ),
    (
        "channel 0..7, dp, δ free",
        wb.FiniteQuery("0..7", max_shift=1),
        {"loss": "absolute", "delta": "0..1"},
        5.0,
    ),
    (
        "modulo n = 12, two shifts",
        wb.ModuloNoise(n=12, max_shift=2),
        {"loss": "circular-squared"},
        0.1,
    ),
    (
        "modulo n = 20, two shifts",
        wb.ModuloNoise(n=20, max_shift=2),
        {"loss": "circular-squared"},
        1.0,
    ),
    (
        "modulo n = 40, six shifts",
        wb.ModuloNoise(n=40, max_shift=6),
        {"loss": "circular-squared"},
        3.0,
    ),
    ("quantizer, 4 outputs, 9 knots", wb.Quantization("-2,-0.5,0.5,2"), {"knots": 9}, None),
)


def run() -> pd.DataFrame:
    """One row a formula."""
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        for name, question, options, limit in CASES:
            seconds, formula = seconds_of(partial(wb.formula, question, **options))
            (path,) = formula.save(Path(folder) / "formula.json")
            checked, _ = seconds_of(partial(wb.check, path))
            rows.append(
                {
                    "formula": name,
                    "pieces": len(formula.pieces),
                    "seconds": seconds,
                    "limit": limit,
                    "check_seconds": checked,
                    "kilobytes": path.stat().st_size / 1000,
                }
            )
    return pd.DataFrame(rows)
