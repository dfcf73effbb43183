"""Compare certified channels for counts with the plain CVXPY statement of the same program.

A user without the workbench would write the plain statement: it has a variable for every mass and
every excess, and HiGHS solves it with its defaults. libqif's function min_loss_given_d (pure
privacy, uniform prior) is included if it is installed. The table has a row for each case and side:

    side      workbench, plain CVXPY or libqif
    private   "certified", whether the channel is exactly private at the budget (yes, no), or the
              error with which the side failed or stopped
    off       workbench: relative gap between its loss and its proven bound
              others: relative difference of the loss from the loss of the workbench
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
from bench import median_ratios, time_turns
from workbench.mechanisms.channel import pairs_within

TITLE = "channels for counts 0..n, neighbours ±1, squared error"
Case = tuple[int, str, str]  # n, epsilon and delta.
CASES: tuple[Case, ...] = (
    (20, "1", "0"),
    (20, "1", "1e-5"),
    (50, "1", "0"),
    (100, "1", "0"),
    (100, "1", "1e-5"),
    (400, "1", "0"),
)
_MAX_PLAIN_SIZE = 100  # The plain statement is solved up to this n.
_MAX_QIF_SIZE = 50  # libqif is run up to this n.
_TIME_LIMIT_SECONDS = 120.0  # Time limit of the plain statement.
WORKBENCH_SIDE = "workbench, certified"


def solve_plain_statement(n: int, epsilon: str, delta: str) -> tuple[float, Any]:
    """Solve the program as one writes it in CVXPY.

    Args:
        n: the largest answer.
        epsilon: budget.
        delta: budget.

    Returns:
        The loss and the channel (n + 1, n + 1).
    """
    answers = np.arange(n + 1)
    M = cp.Variable((n + 1, n + 1), nonneg=True)
    rows: list[Any] = [cp.sum(M, axis=1) == 1]
    exp_epsilon = math.exp(float(epsilon))
    for upper, lower in ((M[:-1], M[1:]), (M[1:], M[:-1])):
        if float(delta):
            excess = cp.sum(cp.pos(upper - exp_epsilon * lower), axis=1)
            rows.append(excess <= float(delta))
        else:
            rows.append(upper <= exp_epsilon * lower)
    loss = cp.sum(cp.multiply((answers[:, None] - answers) ** 2.0, M)) / (n + 1)
    problem = cp.Problem(cp.Minimize(loss), rows)
    problem.solve(solver=cp.HIGHS, time_limit=_TIME_LIMIT_SECONDS)
    return float(problem.value), M.value


def solve_count_by_qif(n: int, epsilon: str, delta: str) -> tuple[float, Any]:
    """Solve the program with libqif, for δ = 0. Arguments: see `solve_plain_statement`."""
    qif = importlib.import_module("qif")

    prior = qif.probab.uniform(n + 1)
    channel = qif.mechanism.d_privacy.min_loss_given_d(
        prior,
        n + 1,
        lambda i, j: float(epsilon) * abs(int(i) - int(j)),
        lambda i, j: float(int(i) - int(j)) ** 2,
    )
    answers = np.arange(n + 1)
    loss = ((answers[:, None] - answers) ** 2.0 * channel).sum() / (n + 1)
    return float(loss), np.asarray(channel)


def run_channel_benchmark() -> pd.DataFrame:
    """Return one row for each case and side, as the module header describes.

    The column "ratio" is the CPU time of the side divided by the CPU time of the workbench.
    """
    rows = []
    for case in CASES:
        n, epsilon, delta = case
        sides: dict[str, Callable[..., Any]] = {WORKBENCH_SIDE: design_channel}
        if n <= _MAX_PLAIN_SIZE:
            sides["plain CVXPY, HiGHS"] = solve_plain_statement
        has_qif = importlib.util.find_spec("qif") is not None
        if has_qif and n <= _MAX_QIF_SIZE and not float(delta):
            sides["libqif"] = solve_count_by_qif
        calls = {side: partial(_catch_error, solve, case) for side, solve in sides.items()}
        times, results = time_turns(calls)
        ratios = median_ratios(times, WORKBENCH_SIDE) | {WORKBENCH_SIDE: 1.0}
        design = results[WORKBENCH_SIDE]
        for side, result in results.items():
            row = {
                "n": n,
                "epsilon": epsilon,
                "delta": delta,
                "side": side,
                "seconds": min(times[side]),
                "ratio": ratios[side],
            }
            rows.append(row | _describe_result(result, design))
    return pd.DataFrame(rows)


def design_channel(n: int, epsilon: str, delta: str) -> wb.Design:
    """Design the certified channel. Arguments: see `solve_plain_statement`."""
    design: wb.Design = wb.design(
        "channel", answers=f"0..{n}", max_shift=1, epsilon=epsilon, delta=delta
    )
    return design


def _catch_error(solve: Callable[..., Any], case: Case) -> Any:
    """Return the result of a solver, or the exception that it raised."""
    try:
        return solve(*case)
    except Exception as error:
        return error


def _describe_result(result: Any, design: wb.Design) -> dict[str, Any]:
    """Return the columns of a row that describe a result.

    Args:
        result: a design of the workbench, the pair (loss, channel) of another side, or the
            exception with which a side failed.
        design: the design of the workbench, with which the others are compared.
    """
    if isinstance(result, Exception):
        return {"private": f"{type(result).__name__}: {result}"[:60]}
    if isinstance(result, wb.Design):
        gap = (result.objective - (result.bound or 0.0)) / result.objective
        return {"loss": result.objective, "off": gap, "private": "certified"}
    loss, masses = result
    channel = wb.Channel.from_pairs(np.maximum(masses, 0), pairs_within(len(masses) - 1, 1))
    audit = wb.audit(channel, design.claim.epsilon)
    is_private = audit.holds(design.claim)
    return {
        "loss": loss,
        "off": loss / design.objective - 1,
        "private": "yes" if is_private else "no",
    }
