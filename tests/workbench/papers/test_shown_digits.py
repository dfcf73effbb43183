"""Test that written and drawn numbers have only the digits that are the same on all machines."""

from __future__ import annotations

import functools
import json
import math
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from workbench.papers.artifact import Artifact, Comparison, round_to_digits
from workbench.papers.gallery import summarise_agreement


@pytest.mark.parametrize("value", [0.1234567885, 2.5e-5, 1 / 3, -98765.43215, 1e300])
def test_numbers_that_differ_by_rounding_errors_are_rounded_alike(value: float):
    neighbours = [value * (1 + k * 2**-52) for k in (-3, 0, 3)]
    assert len({round_to_digits(neighbour) for neighbour in neighbours}) == 1
    assert round_to_digits(value) == pytest.approx(value, rel=1e-8)


def test_numbers_that_are_zero_up_to_rounding_become_positive_zero():
    assert round_to_digits(-1.1e-16) == 0
    assert math.copysign(1, round_to_digits(-1.1e-16)) == 1


def test_infinities_and_nan_are_kept():
    assert round_to_digits(math.inf) == math.inf
    assert math.isnan(round_to_digits(math.nan))


def make_artifact(table: pd.DataFrame, **fields: Any) -> Artifact:
    """Return an artifact named t, without a figure."""
    return Artifact(name="t", title="t", table=table, draw=None, caption="", **fields)


def test_only_measured_tables_keep_small_numbers():
    table = pd.DataFrame({"residual": [3e-16, 0.0, 1.23456789012e-13]})
    measured = make_artifact(table, measured=True).rounded_table()["residual"]
    assert measured.tolist() == [3e-16, 0, 1.23456789e-13]
    computed = make_artifact(table).rounded_table()["residual"]
    assert computed.tolist() == [0, 0, 0]


def write_artifact(artifact: Artifact, folder: Path):
    """Write the files of an artifact into a folder."""
    folder.mkdir(exist_ok=True)
    for name, content in artifact.build_files().items():
        (folder / name).write_bytes(content)


def test_numbers_whose_agreement_is_no_evidence_are_counted_separately(tmp_path: Path):
    compare = functools.partial(Comparison, place="Table 1", printed=1, tolerance=0.1)
    comparisons = [
        compare("x", ours=1),
        compare("y", ours=1, apart="beside a stand-in"),
        compare("z", ours=2, expected=False),
    ]
    artifact = make_artifact(pd.DataFrame({"n": [1]}), comparisons=comparisons)
    write_artifact(artifact, tmp_path)
    records = json.loads((tmp_path / "t.json").read_text())["comparisons"]
    beside_numbers, beside_stand_in = summarise_agreement(records).split("; ")
    assert beside_numbers.startswith("1 of 2 ")
    assert "1 differ because of an erratum" in beside_numbers
    assert beside_stand_in.startswith("1 of 1 ")
    assert "stand-in" in beside_stand_in


def make_artifact_with_error(error: float) -> Artifact:
    """Return an artifact whose numbers have a rounding error, larger in the column of a search."""
    searched_number = 2.34567 + 1e5 * error
    columns = {"exact": [1 / 3 + error, error], "searched": [searched_number, 1.0], "n": [1, 2]}
    comparison = Comparison("x", "Table 1", printed=0.3, ours=1 / 3 + error, tolerance=0.05)
    return make_artifact(pd.DataFrame(columns), comparisons=[comparison], digits={"searched": 5})


def test_files_do_not_depend_on_rounding_errors(tmp_path: Path):
    write_artifact(make_artifact_with_error(0.0), tmp_path / "one")
    artifact = make_artifact_with_error(3e-13)
    write_artifact(artifact, tmp_path / "two")
    for file in ("t.csv", "t.json"):
        assert (tmp_path / "one" / file).read_bytes() == (tmp_path / "two" / file).read_bytes()
    assert artifact.rounded_table()["searched"].iloc[0] == 2.3457
