"""Tests that random command lines, calls and files end in an answer or in one clear sentence."""

from __future__ import annotations

import pytest

from tests.fuzz import fuzz_requests


@pytest.mark.parametrize(("kind", "count"), [("command", 300), ("call", 500), ("file", 300)])
def test_every_case_ends_in_an_answer_or_one_sentence(kind: str, count: int):
    report = fuzz_requests.run_cases(kind, count, seed=20)
    assert sum(report.counts.values()) == count
    assert len(report.counts) > 1  # Some cases are valid requests, and some are wrong.
