"""A thousand wrong command lines, calls and files: an answer, or one sentence."""

from __future__ import annotations

import pytest

from tests.fuzz import fuzz_requests


@pytest.mark.parametrize(("kind", "count"), [("command", 300), ("call", 500), ("file", 300)])
def test_every_case_is_an_answer_or_one_sentence(kind: str, count: int):
    ends, _ = fuzz_requests.run(kind, count, 20)
    assert sum(ends.values()) == count
    assert len(ends) > 1  # good and wrong ones
