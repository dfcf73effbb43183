"""Test that no certificate of rounded real noise claims a notion that rounding does not preserve."""

from __future__ import annotations

import json
import subprocess
import sys
from fractions import Fraction
from pathlib import Path

import pytest

import workbench as wb
from workbench.exact.integer_law import IntegerLaw

CHECKER = Path(__file__).parents[3] / "tools" / "check_certificate.py"


def make_noise() -> wb.AdditiveRealNoise:
    """Make noise on seven cells of width 1/2, which is rounded to integers when it is published."""
    weights = [1, 3, 3, 8, 3, 3, 1]
    question = wb.RealNoise(sensitivity=1, grid=1)
    return wb.AdditiveRealNoise(question, steps=2, cells=IntegerLaw(first=-3, weights=weights))


def run_checker(path: Path) -> int:
    """Return the exit code of the independent checker."""
    command = [sys.executable, CHECKER, path]
    return subprocess.run(command, capture_output=True, check=False).returncode


def test_pdp_with_a_delta_is_refused_by_certify():
    with pytest.raises(wb.InvalidRequest, match="rounding preserves"):
        wb.certify(make_noise(), "pdp", epsilon=1, delta="0.9")


def test_a_file_that_claims_pdp_with_a_delta_is_refused_by_both_checkers(tmp_path: Path):
    wb.certify(make_noise(), "dp", epsilon=1, delta="0.9").save(tmp_path / "dp.json")
    assert run_checker(tmp_path / "dp.json") == 0
    record = json.loads((tmp_path / "dp.json").read_text())
    record["claim"]["notion"] = "pdp"
    (tmp_path / "pdp.json").write_text(json.dumps(record))
    assert run_checker(tmp_path / "pdp.json") == 2  # Such noise cannot have this claim.
    with pytest.raises(wb.WorkbenchError):
        wb.check(tmp_path / "pdp.json")


def measure_pdp_delta(p: list[Fraction], q: list[Fraction]) -> Fraction:
    """Return the mass of p where p > e q. Here e is 2.72, which decides alike."""
    masses = [a for a, b in zip(p, q, strict=True) if a > Fraction(272, 100) * b]
    return sum(masses, Fraction(0))


def round_law(weights: list[Fraction], offset: int) -> list[Fraction]:
    """Return the law of the nearest integer of offset/4 plus the noise, on -5..5.

    Cell k consists of the two quarters that begin at (2k - 1)/4 and 2k/4.
    """
    masses = dict.fromkeys(range(-5, 6), Fraction(0))
    for k, weight in zip(range(-6, 7), weights, strict=True):
        for quarter in (2 * k - 1 + offset, 2 * k + offset):
            masses[(quarter + 2) // 4] += weight / 2
    return [masses[k] for k in sorted(masses)]


def test_rounding_raises_the_pdp_delta():
    """By hand, the PDP δ at ε = 1 is 7/22 before rounding to integers, and 15/22 after it."""
    law = make_noise().cells
    weights = [law.weight(k) / law.total for k in range(-6, 7)]
    exact_deltas = []
    for shift in (-2, -1, 1, 2):  # In cells of width 1/2.
        p = weights[max(0, -shift) : 13 - max(0, shift)]
        q = weights[max(0, shift) : 13 - max(0, -shift)]
        exact_deltas.append(measure_pdp_delta(p, q))
    rounded_deltas = []
    for offset in range(4):
        for shift in (-4, -3, -2, -1, 1, 2, 3, 4):  # In quarters.
            p = round_law(weights, offset)
            q = round_law(weights, offset + shift)
            rounded_deltas.append(measure_pdp_delta(p, q))
    assert max(exact_deltas) == Fraction(7, 22)
    assert max(rounded_deltas) == Fraction(15, 22)
