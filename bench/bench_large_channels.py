"""Large channels output by output, beside HiGHS (interior point, simplex), PDLP and libqif, and how time grows with k.

Every side answers one request three times in this process (a small one first, so that nothing is imported in that
time); the least CPU seconds, "ratio" over those of the blocks in the same run. Blocks are certified, the others are
not; "off" is a side's loss relative to theirs (PDLP ends at its own tolerance). "growth" is the exponent of k between a
size and the last one of its form. The others are asked up to a size, each under a limit of time; a side that fails or
stops is a row that says so. libqif, which states pure and metric privacy alone and has no limit of time, joins where it
is installed (PyPI: qif), up to a smaller size. Rows are stored as they come.
"""

from __future__ import annotations

import importlib
import importlib.util
import math
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np
import pandas as pd

import workbench as wb
from bench import in_turns
from workbench.pipeline.registry import get_family
from workbench.solvers.backend import Options

TITLE = "Large channels: output by output, and what else answers them (CPU seconds)"
SIZES = {"line": (50, 100, 200, 400), "line, delta": (100, 200, 400), "all pairs": (50, 100, 200, 400, 1000),
         "grid": (36, 64, 144, 256)}  # fmt: skip
OURS = "blocks, certified"
_FIRST = {
    "grid": 9,
    "all pairs": 200,
}  # inputs of a form's first request, 8 of others; 200 have their proof compiled
_LARGEST_QIF = 50  # inputs: 64 places take libqif 44 CPU s
_COMPARED = 100  # inputs up to which the others are asked
_LIMIT = 60.0  # seconds of each of them
_WORDS = 100  # characters that are told of a failure
SIDES: dict[str, dict[str, Any]] = {
    "HiGHS, interior point": {"options": Options(algorithm="interior-point", time_limit=_LIMIT)},
    "HiGHS, simplex": {"options": Options(algorithm="simplex", time_limit=_LIMIT)},
    "PDLP": {"solver": "ortools:pdlp", "time_limit": _LIMIT},
}
COLUMNS = ("form", "k", "side", "cpu_s", "ratio", "loss", "gap", "off", "growth", "failure")


def question_of(form: str, k: int) -> tuple[wb.FiniteQuery, dict[str, Any]]:
    """The question of a size and its options."""
    if form == "grid":
        side = math.isqrt(k)
        places = [(i, j) for i in range(side) for j in range(side)]
        prior = np.random.default_rng(1).integers(1, 20, k).tolist()
        question = wb.FiniteQuery(places, neighbours="within 1 L1", prior=prior)
        return question, {"loss": "euclidean", "epsilon": "0.7", "notion": "pure"}
    if form == "all pairs":
        return wb.FiniteQuery(range(k), neighbours="all"), {"epsilon": 1, "notion": "pure"}
    budget = {"delta": "1e-5"} if form == "line, delta" else {"notion": "pure"}
    return wb.FiniteQuery(range(k), max_shift=1), {"loss": "absolute", "epsilon": 1, **budget}


def by_qif(question: wb.FiniteQuery, options: dict[str, Any]) -> float:
    """The loss of libqif's channel; pure privacy of neighbours one apart is metric privacy in steps."""
    qif = importlib.import_module("qif")
    request: Any = get_family("channel").make_request(question, **options)
    losses, inputs = (
        request.losses.floats,
        np.array([np.atleast_1d(np.array(x, dtype=float)) for x in question.inputs]),
    )
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


def run() -> Iterator[pd.DataFrame]:
    """One row for each form, size and side; the table as it grows."""
    rows: list[dict[str, Any]] = []
    for form, sizes in SIZES.items():
        last: tuple[int, float] | None = None
        for side, call in sides_of(form, _FIRST.get(form, 8)).items():
            assert call() is not None, side
        for k in sizes:
            seconds, answers = in_turns(sides_of(form, k), warm=False)
            growth = (
                None if last is None else math.log(seconds[OURS] / last[1]) / math.log(k / last[0])
            )
            last = k, seconds[OURS]
            for side, answer in answers.items():
                known = {
                    "form": form,
                    "k": k,
                    "side": side,
                    "cpu_s": seconds[side],
                    "ratio": seconds[side] / last[1],
                }
                rows.append(
                    {
                        **known,
                        **_shown(answer, answers[OURS]),
                        "growth": growth if side == OURS else None,
                    }
                )
            yield pd.DataFrame(rows, columns=[*COLUMNS])


def sides_of(form: str, k: int) -> dict[str, Callable[[], Any]]:
    """What answers a question of a size."""
    question, options = question_of(form, k)
    calls: dict[str, Callable[[], Any]] = {
        OURS: partial(wb.design, question, **options, method="block")
    }
    if k <= _COMPARED:
        for side, more in SIDES.items():
            calls[side] = partial(
                wb.design, question, **options, method="program", certify=False, **more
            )
        if (
            k <= _LARGEST_QIF
            and "delta" not in form
            and importlib.util.find_spec("qif") is not None
        ):
            calls["libqif"] = partial(by_qif, question, options)
    return {side: partial(_answer, call) for side, call in calls.items()}


def _answer(call: Callable[[], Any]) -> Any:
    try:
        return call()
    except wb.InvalidRequest:
        raise
    except Exception as error:  # of a solver: the row says what happened
        return error


def _shown(answer: Any, ours: wb.Design) -> dict[str, Any]:
    if answer is ours:
        return {
            "loss": ours.objective,
            "gap": (ours.objective - (ours.bound or 0.0)) / ours.objective,
        }
    if isinstance(answer, Exception):
        loss = getattr(answer, "incumbent", None)
        failure = " ".join(str(answer).split())[:_WORDS]
    else:
        loss, failure = getattr(answer, "objective", answer), None
    return {
        "loss": loss,
        "off": None if loss is None else float(loss) / ours.objective - 1,
        "failure": failure,
    }
