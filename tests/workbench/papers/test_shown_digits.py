"""Test that written and drawn numbers have only the digits that are the same on all machines."""

from __future__ import annotations

import json
import math
from pathlib import Path

import pandas as pd
import pytest

from workbench.papers.artifact import Artifact, Comparison, round_to_digits
from workbench.papers.gallery import summarise_agreement


@pytest.mark.parametrize("value", [0.1234567885, 2.5e-5, 1 / 3, -98765.43215, 1e300])
def test_rounding_errors_do_not_show(value: float):
    near = [value * (1 + k * 2**-52) for k in (-3, 0, 3)]
    assert len({round_to_digits(v) for v in near}) == 1
    assert round_to_digits(value) == pytest.approx(value, rel=1e-8)


def test_noise_around_zero_and_infinities():
    assert round_to_digits(-1.1e-16) == 0
    assert math.copysign(1, round_to_digits(-1.1e-16)) == 1
    assert round_to_digits(math.inf) == math.inf
    assert math.isnan(round_to_digits(math.nan))


def test_what_was_measured_keeps_its_small_numbers():
    table = pd.DataFrame({"residual": [3e-16, 0.0, 1.23456789012e-13]})
    assert Artifact("t", "t", table, None, "", measured=True).rounded_table()[
        "residual"
    ].tolist() == [
        3e-16,
        0,
        1.23456789e-13,
    ]
    assert Artifact("t", "t", table, None, "").rounded_table()["residual"].tolist() == [0, 0, 0]


def write_artifact(artifact: Artifact, folder: Path):
    folder.mkdir(exist_ok=True)
    for name, content in artifact.build_files().items():
        (folder / name).write_bytes(content)


def test_numbers_that_say_little_are_counted_apart(tmp_path: Path):
    claims = [Comparison("x", "Table 1", 1, 1, 0.1), Comparison("y", "Table 1", 1, 1, 0.1, apart="beside a stand-in"),
              Comparison("z", "Table 1", 1, 2, 0.1, expected=False)]  # fmt: skip
    write_artifact(Artifact("t", "t", pd.DataFrame({"n": [1]}), None, "", claims), tmp_path)
    records = json.loads((tmp_path / "t.json").read_text())["comparisons"]
    assert summarise_agreement(records) == (
        "1 of 2 printed numbers agree, 1 differ because of an erratum; 1 of 1 printed numbers beside a stand-in agree"
    )


def test_two_machines_write_the_same_bytes(tmp_path: Path):
    for name, error in (("one", 0.0), ("two", 3e-13)):
        table = pd.DataFrame(
            {"exact": [1 / 3 + error, error], "searched": [2.34567 + 1e5 * error, 1.0], "n": [1, 2]}
        )
        claims = [Comparison("x", "Table 1", 0.3, 1 / 3 + error, 0.05)]
        artifact = Artifact("t", "t", table, None, "", claims, digits={"searched": 5})
        write_artifact(artifact, tmp_path / name)
        shown = artifact.rounded_table()
    for file in ("t.csv", "t.json"):
        assert (tmp_path / "one" / file).read_bytes() == (tmp_path / "two" / file).read_bytes()
    assert shown["searched"].iloc[0] == 2.3457
