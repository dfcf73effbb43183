"""How much work `recommend` does beside its programs, counted and not timed.

A move is a call from a function in one file of the workbench to a function in another. Most moves are one function
called for every item of a law, where one call for the whole law would do.
"""

from __future__ import annotations

import sys
from dataclasses import fields
from pathlib import Path
from types import FrameType
from typing import Any, NamedTuple

import numpy as np
import pytest

import workbench as wb
from workbench.pipeline.request import Request

ROOT = str(Path(wb.__file__).resolve().parents[1])
MOST_MOVES = (
    9_300  # For 41 answers; one more call for each comparison of the audits adds 500 moves.
)


class Work(NamedTuple):
    """What a profile of one recommendation counted."""

    moves: int
    requests: list[Request]


@pytest.fixture(scope="module")
def work() -> Work:
    """Profile a second recommendation, after a first one has imported what both need."""
    wb.recommend(wb.FiniteQuery("0..5", max_shift=1), epsilon=1, delta=1e-5)
    folders = tuple(f"{ROOT}/{name}/" for name in ("workbench", "models", "solvers"))
    moves = 0
    requests = []

    def count(frame: FrameType, event: str, argument: Any) -> None:
        nonlocal moves
        here = frame.f_code.co_filename
        if event != "call" or not here.startswith(folders):
            return
        before = "" if frame.f_back is None else frame.f_back.f_code.co_filename
        moves += before.startswith(folders) and before != here
        subject = frame.f_locals.get("self")
        if frame.f_code.co_name == "__post_init__" and isinstance(subject, Request):
            requests.append(subject)

    question = wb.FiniteQuery("0..40", max_shift=1)
    sys.setprofile(count)
    try:
        wb.recommend(question, epsilon=1, delta=1e-5, time_limit=600)
    finally:
        sys.setprofile(None)
    return Work(moves, requests)


def test_laws_are_worked_through_as_wholes(work: Work):
    assert 1_000 < work.moves <= MOST_MOVES


def _asks_the_same(first: Request, second: Request) -> bool:
    """Whether two requests have equal families, questions, claims and aims."""
    if (first.family.name, first.question, first.claim) != (
        second.family.name,
        second.question,
        second.claim,
    ):
        return False
    names = [each.name for each in fields(first.aim)]
    aims = [
        {name: getattr(request.aim, name, None) for name in names} for request in (first, second)
    ]
    tables = [aim.pop("losses", None) for aim in aims]
    same_losses = tables[0] is tables[1] or np.array_equal(tables[0].floats, tables[1].floats)
    return same_losses and aims[0] == aims[1]


def test_no_request_is_built_twice(work: Work):
    assert {request.family.name for request in work.requests} == {"modulo", "noise", "channel"}
    for position, request in enumerate(work.requests):
        for earlier in work.requests[:position]:
            assert not _asks_the_same(earlier, request)
