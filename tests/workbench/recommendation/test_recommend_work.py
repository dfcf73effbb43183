"""The work of `recommend` beside its programs is limited. It is counted and not timed.

A *move* is a call from a function in one file of the workbench to a function in another file. A
function that is called for every mass of a law makes many moves, where one call for the whole law
would be enough.
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
# The largest number of moves for 41 answers. One more call for each comparison of the audits adds
# 500 moves.
MAX_MOVES = 9_300
# The same for 7 answers. One more call for each mass of the laws adds more than 100 moves.
MAX_MOVES_OF_7_ANSWERS = 6_150


class Work(NamedTuple):
    """The work of one recommendation.

    Attributes:
        moves: number of moves.
        requests: all requests that were built.
    """

    moves: int
    requests: list[Request]


def count_work(largest_answer: int) -> Work:
    """Profile the recommendation for a count in 0..largest_answer."""
    folders = tuple(f"{ROOT}/{name}/" for name in ("workbench", "models", "solvers"))
    moves = 0
    requests = []

    def count(frame: FrameType, event: str, argument: Any) -> None:
        """Count a call, and keep the request if the call builds one."""
        nonlocal moves
        called_file = frame.f_code.co_filename
        if event != "call" or not called_file.startswith(folders):
            return
        calling_file = "" if frame.f_back is None else frame.f_back.f_code.co_filename
        moves += calling_file.startswith(folders) and calling_file != called_file
        subject = frame.f_locals.get("self")
        if frame.f_code.co_name == "__post_init__" and isinstance(subject, Request):
            requests.append(subject)

    question = wb.FiniteQuery(f"0..{largest_answer}", max_shift=1)
    sys.setprofile(count)
    try:
        wb.recommend(question, epsilon=1, delta=1e-5, time_limit=600)
    finally:
        sys.setprofile(None)
    return Work(moves, requests)


@pytest.fixture(scope="module")
def first_work() -> None:
    """Make a recommendation, so that later ones import nothing."""
    wb.recommend(wb.FiniteQuery("0..5", max_shift=1), epsilon=1, delta=1e-5)


@pytest.fixture(scope="module")
def small_work(first_work: None) -> Work:
    """Profile the recommendation for 7 answers."""
    return count_work(6)


@pytest.fixture(scope="module")
def work(first_work: None) -> Work:
    """Profile the recommendation for 41 answers."""
    return count_work(40)


def test_laws_of_7_answers_are_processed_as_a_whole(small_work: Work):
    assert 1_000 < small_work.moves <= MAX_MOVES_OF_7_ANSWERS


def test_laws_are_processed_as_a_whole(work: Work):
    assert 1_000 < work.moves <= MAX_MOVES


def _are_equal(first: Request, second: Request) -> bool:
    """Return whether two requests have equal families, questions, claims and aims."""
    if first.family.name != second.family.name or first.question != second.question:
        return False
    if first.claim != second.claim:
        return False
    for field in fields(first.aim):
        value = getattr(first.aim, field.name, None)
        other_value = getattr(second.aim, field.name, None)
        if field.name == "losses":
            if value is not other_value and not np.array_equal(value.floats, other_value.floats):
                return False
        elif value != other_value:
            return False
    return True


@pytest.mark.parametrize("fixture", ["small_work", "work"])
def test_no_request_is_built_twice(fixture: str, request: pytest.FixtureRequest):
    requests = request.getfixturevalue(fixture).requests
    assert {request.family.name for request in requests} == {"modulo", "noise", "channel"}
    for position, later in enumerate(requests):
        for earlier in requests[:position]:
            assert not _are_equal(earlier, later)
