"""Channels of real answers in a range: neighbouring rows, draws, files, and commands."""

from __future__ import annotations

import csv
import json
from fractions import Fraction
from itertools import combinations, pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import workbench as wb
from tests.tools.test_check_certificate import verdict
from workbench.cli import main
from workbench.data.csv_column import CsvColumn
from workbench.exact.distribution import Distribution
from workbench.families.channel.family import FAMILY
from workbench.mechanisms.range_mechanism import RangeMechanism
from workbench.privacy.certificate_file import certificate_from_dict
from workbench.privacy.column_release import ColumnRows, column_mechanism_of_design
from workbench.privacy.expected_error import compute_expected_error

UNEVEN = [Fraction(x) for x in ("0", "1/3", "1", "5/4", "3")]


def made(ends, sensitivity, at_ends, pairs, outputs=None):
    count = len(ends) - (not at_ends)
    rows = tuple(Distribution([1 + (i == j) for j in range(count)]) for i in range(count))
    points = tuple(ends if at_ends else [(a + b) / 2 for a, b in pairwise(ends)])
    return RangeMechanism(
        rows, pairs, (points, tuple(outputs or points)), tuple(ends), Fraction(sensitivity), at_ends
    )


def row_of(x: Fraction, u: Fraction, ends: list[Fraction], *, at_ends: bool) -> int:
    cell = max(i for i, end in enumerate(ends[:-1]) if end <= x)
    return cell + (at_ends and u < (x - ends[cell]) / (ends[cell + 1] - ends[cell]))


def run(capsys: pytest.CaptureFixture[str], line: str) -> tuple[int, str, str]:
    with pytest.raises(SystemExit) as stop:
        main(line.split())
    out, err = capsys.readouterr()
    return stop.value.code or 0, out, " ".join(err.split())


@pytest.mark.parametrize("at_ends", [False, True])
@pytest.mark.parametrize("sensitivity", ["1/4", "2/3", "1", "2"])
@pytest.mark.parametrize(
    "ends", [UNEVEN, [Fraction(i, 3) for i in range(7)]], ids=["uneven", "even"]
)
def test_the_rows_of_answers_within_the_sensitivity_are_neighbours(
    ends, sensitivity: str, at_ends: bool
):
    """The reference are answers on a fine grid, and just below the ends, with a common draw."""
    reach, tiny, count = Fraction(sensitivity), Fraction(1, 10**6), len(ends) - (not at_ends)
    answers = sorted(
        {x + e for x in ends for e in (-tiny, 0, tiny)} | {Fraction(i, 24) for i in range(72)}
    )
    answers += [x + reach for x in answers]
    answers = [x for x in answers if ends[0] <= x <= ends[-1]]
    draws = (
        [Fraction(k, 13) for k in range(13)] + [tiny * 2, 1 - tiny * 2]
        if at_ends
        else [Fraction(0)]
    )
    at = [[row_of(x, u, ends, at_ends=at_ends) for u in draws] for x in answers]
    met = {
        (a, b) if a < b else (b, a)
        for i, j in combinations(range(len(answers)), 2)
        if abs(answers[i] - answers[j]) <= reach
        for a, b in zip(at[i], at[j], strict=True)
        if a != b
    }
    every = {(a, b) for a, b in combinations(range(count), 2)}
    assert {*made(ends, sensitivity, at_ends, None)._related_rows()} == met
    both = tuple(sorted(met | {(b, a) for a, b in met}))
    assert made(ends, sensitivity, at_ends, both).neighbours == (None if met == every else both)
    for lost in (both[0], both[-1]):
        with pytest.raises(
            wb.InvalidRequest, match="pairs must be all rows of answers within the sensitivity"
        ):
            made(ends, sensitivity, at_ends, tuple(pair for pair in both if pair != lost))


@pytest.mark.parametrize("at_ends", [False, True])
def test_draws_follow_the_law_of_every_answer(at_ends: bool):
    mechanism = made(UNEVEN, 3, at_ends, None)
    for k, x in enumerate(
        [Fraction(1, 3), Fraction(2, 3), Fraction(1.1), Fraction(99, 100), Fraction(3)]
    ):
        counts = np.bincount(
            np.searchsorted(mechanism.outputs, mechanism.publish([x] * 20_000, insecure_seed=k)),
            minlength=mechanism.outputs.size,
        )
        expected = 20_000 * mechanism.law(x).floats
        # A chi-square value of 4 degrees exceeds 30 with probability 5e-6.
        assert float(((counts - expected) ** 2 / expected).sum()) < 30
    # Between two ends the law is a mixture of their rows.
    if at_ends:
        a, b = mechanism.rows[2:4]
        assert [*mechanism.law("9/8")] == [(p + q) / 2 for p, q in zip(a, b, strict=True)]
    for wrong in ([np.nan], [np.inf], [[1.0]]):
        with pytest.raises(wb.InvalidRequest, match="answers must be"):
            mechanism.publish(wrong)


def test_answers_beside_an_end_are_in_the_correct_cells():
    """Answers nearly 1/3, and answers that are clamped. Every row has one output."""
    rows = tuple(Distribution([int(i == j) for j in range(4)]) for i in range(4))
    points = tuple(map(Fraction, range(5)))
    tiny = Fraction(1, 10**40)
    x = [
        Fraction(1, 3) - tiny,
        Fraction(1, 3),
        1 - tiny,
        Fraction(1),
        3 - tiny,
        *map(Fraction, (3, -9, 9)),
    ]
    cells = RangeMechanism(rows, None, (points[:4], points[:4]), tuple(UNEVEN), Fraction(1), False)
    assert cells.publish(x).tolist() == [0, 1, 1, 2, 3, 3, 0, 3]
    # The double nearest to 1/3 is below 1/3.
    assert cells.publish([1 / 3, 1.0, np.nextafter(1.0, 0)]).tolist() == [0, 2, 1]
    rows = tuple(Distribution([int(i == j) for j in range(5)]) for i in range(5))
    ends = RangeMechanism(rows, None, (tuple(UNEVEN), points), tuple(UNEVEN), Fraction(1), True)
    assert ends.publish([*UNEVEN, Fraction(-9), Fraction(9)]).tolist() == [0, 1, 2, 3, 4, 0, 4]
    assert {*ends.publish([Fraction(9, 8)] * 200).tolist()} == {2, 3}


ASKED: list[dict[str, Any]] = [
    {"cells": 6},
    {"sensitivity": 3},
    {"prior": "worst", "cells": 6},
    {"sensitivity": 3, "prior": "worst", "cells": 8},
]


@pytest.mark.parametrize(("options", "at_ends"), [(each, "prior" in each) for each in ASKED])
def test_a_design_saves_its_expected_loss_on_real_answers(options, at_ends: bool, tmp_path: Path):
    value = FAMILY.design_request(
        FAMILY.make_request_from_options(range="-1/3..5", epsilon=1, loss="absolute", **options)
    )
    value.save(tmp_path / "f.json")
    mechanism = wb.load(tmp_path / "f.json")
    assert mechanism == value.mechanism
    assert (mechanism.ends[0], mechanism.ends[-1], mechanism.at_ends) == (
        Fraction(-1, 3),
        5,
        at_ends,
    )
    error = compute_expected_error(mechanism)
    assert float(error.worst_error if "prior" in options else error.mean_error) == pytest.approx(
        value.objective, rel=1e-12
    )
    data = json.loads((tmp_path / "f.json").read_text())
    assert verdict(data) == "proven"
    record = data["mechanism"]
    if "sensitivity" in options:
        assert wb.check(tmp_path / "f.json").mechanism.column_cautions
        changed = {**data, "mechanism": {**record, "sensitivity": "5"}}
        assert verdict(changed) == "unreadable"
        with pytest.raises(wb.CorruptFile, match="all rows of answers"):
            certificate_from_dict(changed)
    for name, wrong in (
        ("ends", record["ends"][1:]),
        ("at_ends", not at_ends),
        ("sensitivity", "0"),
        ("outputs", record["outputs"][1:]),
        ("at_ends", 1),
    ):
        changed = {**data, "mechanism": {**record, name: wrong}}
        assert verdict(changed) == "unreadable", name
        with pytest.raises((wb.CorruptFile, wb.InvalidRequest)):
            certificate_from_dict(changed)


def test_notions_that_mixing_does_not_preserve_are_refused(tmp_path: Path):
    mechanism, delta = made(UNEVEN, 3, True, None), Fraction(1, 10)
    wb.Certificate(mechanism, "pdp", 1)
    wb.Certificate(mechanism, "dp", 1, delta)
    with pytest.raises(wb.InvalidRequest, match="one that rounding preserves"):
        wb.Certificate(mechanism, "pdp", 1, delta)
    with pytest.raises(wb.InvalidRequest, match="without distances"):
        wb.Certificate(mechanism, "metric", 1)
    with pytest.raises(wb.InvalidRequest, match="epsilon must be one number"):
        wb.Certificate(mechanism, "pure", {(0, 1): 1})
    wb.Certificate(mechanism, "dp", 1, delta).save(tmp_path / "f.json")
    data = json.loads((tmp_path / "f.json").read_text())
    assert verdict(data) == "proven"
    for notion in ("pdp", "metric"):
        assert verdict({**data, "claim": {**data["claim"], "notion": notion}}) == "unreadable"


def test_a_column_is_published_by_the_optimal_channel_of_a_range(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys
):
    monkeypatch.chdir(tmp_path)
    Path("d.csv").write_text("who,x\nann,0.1\nbob,-3\ncyd,9.99\ndan,10.5\n")
    line = "privatise channel d.csv --column x --id who --out o.csv"
    code, out, _ = run(capsys, f"{line} --range 0..10 --epsilon 2 --loss absolute --clip --json")
    report = json.loads(out)
    assert code == 0
    assert (report["clipped_rows"], report["budget"]["epsilon"], report["claim"]["notion"]) == (
        2,
        2.0,
        "pure",
    )
    assert (
        run(
            capsys, "design channel --range 0..10 --epsilon 2 --loss absolute --save f.json --json"
        )[0]
        == 0
    )
    mechanism = wb.load("f.json")
    with Path("o.csv").open(newline="") as file:
        rows = [*csv.DictReader(file)]
    assert [row["who"] for row in rows] == ["ann", "bob", "cyd", "dan"]
    assert {float(row["x"]) for row in rows} <= {*mechanism.outputs.tolist()}
    # The number of clipped rows depends on the data, so it is not published.
    assert "clipped_rows" not in json.loads(Path("o.csv.json").read_text())
    code, out, _ = run(
        capsys, "privatise channel d.csv --column x --mechanism f.json --clip --out p.csv"
    )
    assert code == 0
    assert "2 of 4 rows" in out
    outside = "line 3 of d.csv, column x, must be in [0, 10]. Got '-3' (2 such rows"
    for more, words in (
        ("--mechanism f.json", outside),
        ("--range 0..10", "range and epsilon. Got no epsilon"),
        ("--mechanism f.json --epsilon 1", "epsilon must be left out with a mechanism"),
        ("--mechanism d.csv", "is not a finite number"),
        ("--range 0..10 --epsilon 1 --loss huber:1", "loss of a range must be"),
    ):
        code, _, err = run(capsys, f"{line.replace('o.csv', 'q.csv')} {more}")
        assert code != 0
        assert words in err
        assert not Path("q.csv").exists()
    run(capsys, "design channel --answers 0..3 --max-shift 1 --epsilon 1 --save c.json")
    assert (
        "mechanism must be a channel of a range"
        in run(capsys, f"{line} --mechanism c.json --clip --overwrite")[2]
    )


def test_decimals_beside_an_end_are_read_exactly(tmp_path: Path):
    """As doubles, 4 - 2e-16 and 1 - 2e-16 would be 4 cells apart instead of 3."""
    (tmp_path / "d.csv").write_text("x\n3.9999999999999998\n0.9999999999999998\n4\n1\n")
    ends = [Fraction(i) for i in range(6)]
    pairs = tuple((i, j) for i in range(5) for j in range(5) if 0 < abs(i - j) <= 3)
    subject = column_mechanism_of_design(wb.Certificate(made(ends, 3, False, pairs), "pure", 1))
    assert any("at most 3 apart" in words for words in subject.notes)
    values = ColumnRows.read(CsvColumn.read(tmp_path / "d.csv"), subject).values
    # Every row has one output.
    rows = [Distribution([int(i == j) for j in range(5)]) for i in range(5)]
    assert [*np.floor(subject.mechanism.with_rows(rows).publish(values))] == [3, 0, 4, 1]
    (tmp_path / "d.csv").write_text("x\n1e-6000\n")
    with pytest.raises(wb.InvalidRequest, match="a decimal within 5000 digits"):
        ColumnRows.read(CsvColumn.read(tmp_path / "d.csv"), subject)
