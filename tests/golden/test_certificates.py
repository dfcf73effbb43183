"""Files that were saved once stay proven, by the workbench and by the checkers that share no code
with it.

A file is never changed or removed here; a new kind of file is added.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

import workbench as wb
from workbench.privacy.certificate_file import CERTIFIABLE_KINDS, UNCERTIFIABLE_KINDS

ROOT = Path(__file__).resolve().parents[2]
FILES = sorted((ROOT / "tests" / "golden" / "certificates").glob("*.json"))


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_a_saved_file_stays_proven(path: Path) -> None:
    proof = wb.check(path)
    assert proof.sentences


def test_the_independent_checkers_prove_all_of_them() -> None:
    for tool, formulas in (("check_formula.py", True), ("check_certificate.py", False)):
        files = [str(path) for path in FILES if path.stem.startswith("formula") == formulas]
        done = subprocess.run(
            [sys.executable, "-I", "-S", str(ROOT / "tools" / tool), *files],
            capture_output=True,
            text=True,
            check=False,
            timeout=600,
        )
        assert (done.returncode, done.stdout.count(": proven: ")) == (0, len(files)), done.stdout


def test_there_is_a_file_of_every_kind() -> None:
    data = [json.loads(path.read_text()) for path in FILES]
    assert {each["mechanism"]["kind"] for each in data if "mechanism" in each} == {
        *CERTIFIABLE_KINDS
    } - {*UNCERTIFIABLE_KINDS}
    notions = {each["claim"]["notion"] for each in data if "claim" in each}
    assert notions == {"pure", "dp", "pdp", "metric", "curve", "tradeoff", "renyi", "zcdp", "gdp"}
    families = {each["question"]["family"] for each in data if "question" in each}
    assert families == {"modulo", "channel", "labels", "quantizer"}
