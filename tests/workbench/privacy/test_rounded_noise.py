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


def noise() -> wb.AdditiveRealNoise:
    return wb.AdditiveRealNoise(
        wb.RealNoise(1, grid=1), 2, IntegerLaw(first=-3, weights=[1, 3, 3, 8, 3, 3, 1])
    )


def test_pdp_with_a_delta_is_refused_by_the_certificate_and_by_the_checker(tmp_path: Path):
    with pytest.raises(wb.InvalidRequest, match="rounding preserves"):
        wb.certify(noise(), "pdp", 1, "0.9")
    proven = wb.certify(noise(), "dp", 1, "0.9")
    proven.save(tmp_path / "dp.json")
    record = json.loads((tmp_path / "dp.json").read_text())
    assert check(tmp_path / "dp.json") == 0
    record["claim"]["notion"] = "pdp"
    (tmp_path / "pdp.json").write_text(json.dumps(record))
    assert check(tmp_path / "pdp.json") == 2  # no claim that such noise can have
    with pytest.raises(wb.WorkbenchError):
        wb.check(tmp_path / "pdp.json")


def check(path: Path) -> int:
    return subprocess.run(
        [sys.executable, CHECKER, path], capture_output=True, check=False
    ).returncode


def test_rounding_raises_the_pdp_delta():
    """By hand, over 22, on cells of width 1/2.

    7 is the PDP δ before rounding to integers, 15 after it.
    """
    law = noise().cells
    weights = [law.weight(k) / law.total for k in range(-6, 7)]

    def rounded(
        offset: int,
    ) -> list[Fraction]:  # answer offset/4: quarters of cells, four to a multiple of 1
        mass = dict.fromkeys(range(-5, 6), Fraction(0))
        for k, weight in zip(range(-6, 7), weights, strict=True):
            for half in (0, 1):  # a cell is two quarters, from (2k - 1)/4 on
                quarter = 2 * k - 1 + half + offset
                mass[(quarter + 2) // 4] += weight / 2
        return [mass[k] for k in sorted(mass)]

    def delta(p: list[Fraction], q: list[Fraction]) -> Fraction:
        return sum(
            (a for a, b in zip(p, q, strict=True) if a > Fraction(272, 100) * b), Fraction(0)
        )

    worst = max(delta(rounded(a), rounded(a + s)) for a in range(4) for s in range(-4, 5) if s)
    claimed = max(
        delta(weights[max(0, -s) : 13 - max(0, s)], weights[max(0, s) : 13 - max(0, -s)])
        for s in (-2, -1, 1, 2)
    )
    assert (claimed, worst) == (Fraction(7, 22), Fraction(15, 22))
