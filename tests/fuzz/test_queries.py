"""A sample of the random queries of `fuzz_queries`."""

from __future__ import annotations

import pytest

from tests.fuzz.queries import generated, problems

SAMPLE = [*enumerate(generated(60))][::3]


@pytest.mark.parametrize(("number", "query"), SAMPLE, ids=[str(number) for number, _ in SAMPLE])
def test_the_first_row_is_the_best_and_every_class_is_there(number: int, query: dict):
    wrong, _ = problems(query, alone=number % 12 == 0)
    assert not wrong
