"""Channels for counts: solved, repaired, bounded and certified, beside the plain CVXPY statement of the same program.

The plain statement has a variable for every mass and every excess and goes to HiGHS with its defaults: what one writes
without this workbench. "off" is how far its answer is from the certified optimum, "private" whether its channel keeps
the budget exactly. libqif's min_loss_given_d (pure, uniform prior) joins where it is installed; a side that fails, or
takes longer than allowed, is a row that says so.
"""

from __future__ import annotations

import importlib
import importlib.util
import math
from collections.abc import Callable
from functools import partial
from typing import Any

import cvxpy as cp
import numpy as np
import pandas as pd

import workbench as wb
from bench import beside, turns_of
from workbench.mechanisms.channel import pairs_within

TITLE = "channels for counts 0..n, neighbours ±1, squared error"
CASES = (
    (20, "1", "0"),
    (20, "1", "1e-5"),
    (50, "1", "0"),
    (100, "1", "0"),
    (100, "1", "1e-5"),
    (400, "1", "0"),
)
_LARGEST_PLAIN, _LARGEST_QIF = 100, 50  # n
_SECONDS = 120.0
OURS = "workbench, certified"


def plain(n: int, epsilon: str, delta: str) -> tuple[float, Any]:
    """The program as one writes it: its value and its channel."""
    at = np.arange(n + 1)
    M = cp.Variable((n + 1, n + 1), nonneg=True)
    rows: list[Any] = [cp.sum(M, axis=1) == 1]
    e = math.exp(float(epsilon))
    for upper, lower in ((M[:-1], M[1:]), (M[1:], M[:-1])):
        if float(delta):
            rows.append(cp.sum(cp.pos(upper - e * lower), axis=1) <= float(delta))
        else:
            rows.append(upper <= e * lower)
    loss = cp.sum(cp.multiply((at[:, None] - at) ** 2.0, M)) / (n + 1)
    problem = cp.Problem(cp.Minimize(loss), rows)
    problem.solve(solver=cp.HIGHS, time_limit=_SECONDS)
    return float(problem.value), M.value


def by_qif(n: int, epsilon: str, delta: str) -> tuple[float, Any]:
    """libqif's answer, for δ = 0."""
    qif = importlib.import_module("qif")

    prior = qif.probab.uniform(n + 1)
    channel = qif.mechanism.d_privacy.min_loss_given_d(
        prior,
        n + 1,
        lambda i, j: float(epsilon) * abs(int(i) - int(j)),
        lambda i, j: float(int(i) - int(j)) ** 2,
    )
    at = np.arange(n + 1)
    return float(((at[:, None] - at) ** 2.0 * channel).sum() / (n + 1)), np.asarray(channel)


def run() -> pd.DataFrame:
    """One row per case and side; ratio: CPU seconds of the side over ours, of turns of the same run."""
    rows = []
    for case in CASES:
        n, epsilon, delta = case
        sides: dict[str, Callable[..., Any]] = {OURS: certified}
        if n <= _LARGEST_PLAIN:
            sides["plain CVXPY, HiGHS"] = plain
        if n <= _LARGEST_QIF and importlib.util.find_spec("qif") is not None and not float(delta):
            sides["libqif"] = by_qif
        calls = {side: partial(_answer, solve, case) for side, solve in sides.items()}
        times, answers = turns_of(calls)
        ratios = beside(times, OURS) | {OURS: 1.0}
        design = answers[OURS]
        for side, answer in answers.items():
            known = {
                "n": n,
                "epsilon": epsilon,
                "delta": delta,
                "side": side,
                "seconds": min(times[side]),
            }
            rows.append(known | {"ratio": ratios[side]} | _shown(answer, design))
    return pd.DataFrame(rows)


def certified(n: int, epsilon: str, delta: str) -> wb.Design:
    """Ours."""
    design: wb.Design = wb.design(
        "channel", answers=f"0..{n}", max_shift=1, epsilon=epsilon, delta=delta
    )
    return design


def _answer(solve: Callable[..., Any], case: tuple[int, str, str]) -> Any:
    try:
        return solve(*case)
    except Exception as error:  # of a solver that is not ours: the row says what happened
        return error


def _shown(answer: Any, design: wb.Design) -> dict[str, Any]:
    if isinstance(answer, Exception):
        return {"private": f"{type(answer).__name__}: {answer}"[:60]}
    if isinstance(answer, wb.Design):
        gap = (answer.objective - (answer.bound or 0.0)) / answer.objective
        return {"loss": answer.objective, "off": gap, "private": "certified"}
    value, channel = answer
    audited = wb.audit(
        wb.Channel.from_pairs(np.maximum(channel, 0), pairs_within(len(channel) - 1, 1)),
        design.claim.epsilon,
    )
    private = "yes" if audited.holds(design.claim) else "no"
    return {"loss": value, "off": value / design.objective - 1, "private": private}
