"""Measure CPU time and gap of designs whose programs are solved several times.

Notions such as zCDP are approximated by tangents, which are added until the design is private. The
designs are channels on 0..n with neighbours ±1, noise modulo n + 1 and noise on the integers. The
loss is the squared error unless the row names another. A time is the fastest of three turns, after
one turn that is not measured.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import pandas as pd

import workbench as wb
from bench import time_best_turn

TITLE = "designs under Rényi DP, zCDP and Gaussian DP, and with many differences"


def _channel_call(n: int, **budget: Any) -> Callable[[], wb.Design]:
    """Return the function that designs a channel on 0..n with neighbours ±1."""
    return partial(wb.design, wb.FiniteQuery(f"0..{n}", max_shift=1), loss="squared", **budget)


CASES: dict[str, Callable[[], wb.Design]] = {
    "channel 0..10, zCDP, rho = 0.1": _channel_call(10, notion="zcdp", rho="0.1"),
    "channel 0..20, zCDP, rho = 0.1": _channel_call(20, notion="zcdp", rho="0.1"),
    "channel 0..10, Renyi, alpha = 2, epsilon = 0.5": _channel_call(
        10, notion="renyi", alpha=2, epsilon="0.5"
    ),
    "channel 0..10, GDP, mu = 1": _channel_call(10, notion="gdp", mu=1),
    "channel 0..3, worst case, Renyi, alpha = 4, epsilon = 1": partial(
        wb.design,
        wb.FiniteQuery("0..3", max_shift=1, prior="worst"),
        loss="squared",
        notion="renyi",
        alpha=4,
        epsilon=1,
    ),
    "modulo 41, error rate, zCDP, rho = 0.001": partial(
        wb.design, wb.ModuloNoise(n=40, shifts=[1]), loss="error-rate", notion="zcdp", rho="0.001"
    ),
    "integers, GDP, mu = 1": partial(
        wb.design, wb.IntegerNoise(), loss="squared", notion="gdp", mu=1
    ),
    "integers, 16 runs, epsilon = 1, delta = 1e-5": partial(
        wb.design, wb.IntegerNoise(), loss="squared", epsilon=1, delta="1e-5", runs=16
    ),
    "integers to 32, dp, epsilon = 1, delta = 1e-5": partial(
        wb.design, wb.IntegerNoise(32), loss="squared", epsilon=1, delta="1e-5"
    ),
}


def run_notions_benchmark() -> pd.DataFrame:
    """Return one row for each case."""
    seconds, designs = time_best_turn(CASES)
    return pd.DataFrame(
        {
            "case": case,
            "cpu_seconds": seconds[case],
            "loss": design.objective,
            "gap": _relative_design_gap(design),
        }
        for case, design in designs.items()
    )


def _relative_design_gap(design: wb.Design) -> float:
    """Return the gap between loss and bound, relative to the loss."""
    assert design.bound is not None
    return (design.objective - design.bound) / design.objective
