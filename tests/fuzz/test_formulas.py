"""Tests that formulas of random questions agree with designs and have no gap in ε."""

from __future__ import annotations

import random
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))
from formula_questions import QUESTION_KINDS, compare_formula


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("kind", QUESTION_KINDS)
def test_a_formula_agrees_with_designs(kind: str, seed: int) -> None:
    rng = random.Random(f"{kind} sample {seed}")
    comparison = compare_formula(QUESTION_KINDS[kind], rng, point_count=2)
    assert comparison.piece_count > 0
    assert comparison.agrees
