"""Tests that every version of the workbench verifies the certificates of all earlier versions.

The folder `certificates` has certificates and formulas that earlier versions saved. A file is never
changed or removed. A new kind of file is added. The independent checkers in `tools/`, which share
no code with the workbench, must verify the files as well.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import workbench as wb
from workbench.privacy.certificate_file import CERTIFIABLE_KINDS, UNCERTIFIABLE_KINDS

ROOT = Path(__file__).resolve().parents[2]
FILES = sorted((ROOT / "tests" / "golden" / "certificates").glob("*.json"))


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_the_workbench_verifies_a_saved_file(path: Path) -> None:
    proof = wb.check(path)
    assert proof.sentences


@pytest.mark.parametrize(
    ("tool", "has_formulas"), [("check_formula.py", True), ("check_certificate.py", False)]
)
def test_an_independent_checker_verifies_all_saved_files(tool: str, has_formulas: bool) -> None:
    files = [str(path) for path in FILES if path.stem.startswith("formula") == has_formulas]
    process = subprocess.run(
        [sys.executable, "-I", "-S", str(ROOT / "tools" / tool), *files],
        capture_output=True,
        text=True,
        check=False,
        timeout=600,
    )
    assert process.returncode == 0, process.stdout
    assert process.stdout.count(": proven: ") == len(files), process.stdout


def read_certificates() -> list[Any]:
    """Return the JSON objects of the certificates, which have a mechanism and a claim."""
    files = [json.loads(path.read_text()) for path in FILES]
    return [file for file in files if "mechanism" in file]


def test_every_kind_of_mechanism_has_a_saved_file() -> None:
    kinds = {certificate["mechanism"]["kind"] for certificate in read_certificates()}
    assert kinds == {*CERTIFIABLE_KINDS} - {*UNCERTIFIABLE_KINDS}


def test_every_notion_has_a_saved_file() -> None:
    notions = {certificate["claim"]["notion"] for certificate in read_certificates()}
    assert notions == {"pure", "dp", "pdp", "metric", "curve", "tradeoff", "renyi", "zcdp", "gdp"}


def test_every_family_with_formulas_has_a_saved_formula() -> None:
    files = [json.loads(path.read_text()) for path in FILES]
    families = {file["question"]["family"] for file in files if "question" in file}
    assert families == {"modulo", "channel", "labels", "quantizer"}
