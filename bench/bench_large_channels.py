"""Compare method "block" with HiGHS, PDLP and libqif on large channels.

A side is one way to solve a request: method "block", HiGHS, PDLP or libqif. Each side first solves
a small request, which loads its imports, and then the measured request three times, all in this
process. The columns of the table:

    form      a key of SIZES: the kind of question
    k         number of inputs
    side      name of the side; "blocks, certified" is method "block"
    cpu_s     CPU seconds, the fastest of three turns
    ratio     cpu_s divided by cpu_s of method "block" in the same run
    loss      expected loss of the channel
    gap       relative gap of the certified design. Only method "block" certifies its designs
    off       (loss of the side) / (loss of method "block") - 1. PDLP stops at its own tolerance
    growth    exponent p in (cpu_s of method "block") ∝ k^p, from this size and the previous one
    failure   why the side failed or stopped

The other sides run only up to a size, each with a time limit. libqif has only pure and metric
privacy and no time limit. It is included if it is installed (PyPI: qif), up to a smaller size.
"""

from __future__ import annotations

import importlib
import importlib.util
import itertools
import math
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np
import pandas as pd

import workbench as wb
from bench import time_best_turn
from workbench.pipeline.registry import get_family
from workbench.solvers.backend import Options

TITLE = 'Large channels: method "block" and other solvers (CPU seconds)'
# Form -> numbers k of inputs.
SIZES = {
    "line": (50, 100, 200, 400),
    "line, delta": (100, 200, 400),
    "all pairs": (50, 100, 200, 400, 1000),
    "grid": (36, 64, 144, 256),
}
WORKBENCH_SIDE = "blocks, certified"  # Name of the side method "block" in the table.
# Number of inputs of the first request of a form, which is not measured. "all pairs" needs 200,
# because the proof of channels of that size is compiled on its first use.
_FIRST_SIZES = {"grid": 9, "all pairs": 200}
_DEFAULT_FIRST_SIZE = 8
_MAX_QIF_SIZE = 50  # libqif runs up to this many inputs; 64 take it 44 CPU s.
_MAX_OTHER_SIZE = 100  # Other solvers run up to this many inputs.
_TIME_LIMIT_SECONDS = 60.0  # Time limit of other solvers.
_MAX_FAILURE_LENGTH = 100  # At most this many characters of an error are shown.
# Side -> options of `wb.design`.
SIDES: dict[str, dict[str, Any]] = {
    "HiGHS, interior point": {
        "options": Options(algorithm="interior-point", time_limit=_TIME_LIMIT_SECONDS)
    },
    "HiGHS, simplex": {"options": Options(algorithm="simplex", time_limit=_TIME_LIMIT_SECONDS)},
    "PDLP": {"solver": "ortools:pdlp", "time_limit": _TIME_LIMIT_SECONDS},
}
COLUMNS = ("form", "k", "side", "cpu_s", "ratio", "loss", "gap", "off", "growth", "failure")


def make_question(form: str, k: int) -> tuple[wb.FiniteQuery, dict[str, Any]]:
    """Return the question of a form and size, and the options of `wb.design`.

    Args:
        form: a key of SIZES.
        k: number of inputs.
    """
    if form == "grid":
        coordinates = range(math.isqrt(k))
        places = list(itertools.product(coordinates, coordinates))
        prior = np.random.default_rng(1).integers(1, 20, k).tolist()
        question = wb.FiniteQuery(places, neighbours="within 1 L1", prior=prior)
        return question, {"loss": "euclidean", "epsilon": "0.7", "notion": "pure"}
    if form == "all pairs":
        return wb.FiniteQuery(range(k), neighbours="all"), {"epsilon": 1, "notion": "pure"}
    budget = {"delta": "1e-5"} if form == "line, delta" else {"notion": "pure"}
    return wb.FiniteQuery(range(k), max_shift=1), {"loss": "absolute", "epsilon": 1, **budget}


def solve_question_by_qif(question: wb.FiniteQuery, options: dict[str, Any]) -> float:
    """Return the loss of libqif's channel.

    libqif needs metric privacy: the probabilities at two inputs differ by a factor of at most
    e^(ε d), where d is their distance. With d = the number of steps between neighbours, this is
    pure ε-DP.

    Args:
        question: the question that is designed for.
        options: options of the design.
    """
    qif = importlib.import_module("qif")
    request: Any = get_family("channel").make_request(question, **options)
    losses = request.losses.floats
    inputs = np.array([np.atleast_1d(np.array(x, dtype=float)) for x in question.inputs])
    # Neighbours of a line and of a grid have the L1 distance 1. With all pairs as neighbours, every
    # distance is one step.
    steps = np.abs(inputs[:, None, :] - inputs[None, :, :]).sum(axis=2)
    if question.pairs is None:
        steps = np.minimum(steps, 1)
    epsilon = float(request.claim.epsilon)
    prior = np.array([float(p) for p in question.prior or ()])
    channel = qif.mechanism.d_privacy.min_loss_given_d(
        prior,
        question.m,
        lambda i, j: epsilon * steps[int(i), int(j)],
        lambda i, j: losses[int(i), int(j)],
    )
    return float((prior[:, None] * np.asarray(channel) * losses).sum())


def run_large_channels_benchmark() -> Iterator[pd.DataFrame]:
    """Yield the growing table, with one row for each form, size and side."""
    rows: list[dict[str, Any]] = []
    for form, sizes in SIZES.items():
        for side, call in list_calls(form, _FIRST_SIZES.get(form, _DEFAULT_FIRST_SIZE)).items():
            assert call() is not None, side  # This loads the imports of the side.
        last_size: int | None = None
        last_seconds = math.nan
        for k in sizes:
            seconds, results = time_best_turn(list_calls(form, k), warm=False)
            block_seconds = seconds[WORKBENCH_SIDE]
            growth = None
            if last_size is not None:
                growth = math.log(block_seconds / last_seconds) / math.log(k / last_size)
            last_size = k
            last_seconds = block_seconds
            for side, result in results.items():
                row = {
                    "form": form,
                    "k": k,
                    "side": side,
                    "cpu_s": seconds[side],
                    "ratio": seconds[side] / block_seconds,
                    **_describe_side(result, results[WORKBENCH_SIDE]),
                    "growth": growth if side == WORKBENCH_SIDE else None,
                }
                rows.append(row)
            yield pd.DataFrame(rows, columns=[*COLUMNS])


def list_calls(form: str, k: int) -> dict[str, Callable[[], Any]]:
    """Return the timed function of every side for a question.

    Args:
        form: a key of SIZES.
        k: number of inputs.
    """
    question, options = make_question(form, k)
    calls: dict[str, Callable[[], Any]] = {
        WORKBENCH_SIDE: partial(wb.design, question, **options, method="block")
    }
    if k <= _MAX_OTHER_SIZE:
        for side, side_options in SIDES.items():
            calls[side] = partial(
                wb.design, question, **options, method="program", certify=False, **side_options
            )
    has_qif = importlib.util.find_spec("qif") is not None
    if has_qif and k <= _MAX_QIF_SIZE and "delta" not in form:
        calls["libqif"] = partial(solve_question_by_qif, question, options)
    return {side: partial(_catch_failure, call) for side, call in calls.items()}


def _catch_failure(call: Callable[[], Any]) -> Any:
    """Return the result of a call, or the exception of a solver that it raised."""
    try:
        return call()
    except wb.InvalidRequest:
        raise
    except Exception as error:
        return error


def _describe_side(result: Any, design: wb.Design) -> dict[str, Any]:
    """Return the columns of a row that describe a result.

    Args:
        result: a design; a loss (libqif); or the exception with which the side failed or stopped.
        design: the design of method "block", with which the others are compared.
    """
    if result is design:
        gap = (design.objective - (design.bound or 0.0)) / design.objective
        return {"loss": design.objective, "gap": gap}
    failure = None
    if isinstance(result, Exception):
        # At a time limit the exception has the smallest loss that was found.
        loss = getattr(result, "incumbent", None)
        failure = " ".join(str(result).split())[:_MAX_FAILURE_LENGTH]
    else:
        loss = getattr(result, "objective", result)
    difference = None if loss is None else float(loss) / design.objective - 1
    return {"loss": loss, "off": difference, "failure": failure}
