"""Tests of recommendations for every third of the random queries of `fuzz_queries`."""

from __future__ import annotations

import pytest

from tests.fuzz.queries import draw_queries, inspect_recommendation

SAMPLE = [*enumerate(draw_queries(60))][::3]


@pytest.mark.parametrize(("number", "query"), SAMPLE, ids=[str(number) for number, _ in SAMPLE])
def test_a_recommendation_passes_all_checks(number: int, query: dict):
    # Every class is also designed alone for every fourth query, because this takes long.
    design_alone = number % 12 == 0
    assert not inspect_recommendation(query, design_alone=design_alone).problems
