"""A sample of `fuzz_formulas`: formulas agree with designs and leave no ε out."""

from __future__ import annotations

import random
import sys
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).parent))
from formula_questions import FAMILIES, compared


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("family", FAMILIES)
def test_formulas_agree_with_designs(family: Any, seed: int) -> None:
    result = compared(family, random.Random(f"{family.__name__} sample {seed}"), points=2)
    assert result["pieces"] > 0
    assert result["difference"] <= 1e-9
