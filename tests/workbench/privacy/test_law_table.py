"""Test that the table of a mechanism is complete and exact, and is read back as this mechanism."""

from __future__ import annotations

import csv
import io
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

import workbench as wb
from workbench.exact.integer_law import IntegerLaw
from workbench.privacy.law_table import build_law_table
from workbench.privacy.loading import read_mechanism_file

QUESTIONS = {
    "integers": ("noise", {"sensitivity": 2, "epsilon": 1}),
    "clamped": ("noise", {"sensitivity": 1, "clamp": "0..20", "epsilon": 0.5, "delta": 1e-3}),
    "reals": ("noise", {"on": "reals", "sensitivity": "1/3", "epsilon": 1}),
    "reals, an atom": (
        "noise",
        {"on": "reals", "sensitivity": 1, "epsilon": 1, "delta": 0.2, "clamp": "0..9"},
    ),
    "modulo": ("modulo", {"n": 8, "shifts": "1,3", "directed": True, "epsilon": 1}),
    "a group": ("modulo", {"sizes": "3x4", "shifts": "0,1;1,0", "epsilon": 1}),
    "channel": ("channel", {"answers": "0..6", "max_shift": 1, "epsilon": 1}),
    "texts": (
        "channel",
        {"answers": "a;b,no", "neighbours": "all", "loss": "error-rate", "epsilon": 1},
    ),
    "range": ("channel", {"range": "0..10", "sensitivity": 2, "epsilon": 1, "cells": 8}),
    "quantizer": ("quantizer", {"bins": "-3,-0.5,0.5,3", "epsilon": 1}),
    "labels": ("labels", {"labels": "0..5", "epsilon": 1}),
}


def written(path: Path, table: tuple[list[str], list[list[str]]]) -> Path:
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows([table[0], *table[1]])
    path.write_text(text.getvalue())
    return path


@pytest.mark.parametrize("question", QUESTIONS)
def test_a_table_is_the_whole_mechanism(tmp_path: Path, question: str) -> None:
    family, options = QUESTIONS[question]
    design = wb.design(family, **options)
    table = build_law_table(design.mechanism)
    assert table is not None
    heads, rows = table
    for line in [[row[1] for row in rows]] if len(heads) == 2 else [row[1:] for row in rows]:
        assert sum(map(Fraction, line)) == 1  # nothing is left out, nothing is rounded
    found = read_mechanism_file(written(tmp_path / "law.csv", table)).with_neighbours()
    epsilon = design.request.claim.epsilon
    own, theirs = wb.audit(design.mechanism, epsilon), wb.audit(found, epsilon)
    assert theirs.pure_ratio == own.pure_ratio
    assert theirs.dp_delta == own.dp_delta
    assert theirs.holds(design.claim)
    if question != "labels":  # whose mechanism is a rule, and its table the channel of that rule
        assert found == design.mechanism


@pytest.mark.parametrize(
    ("old", "new", "reason"),
    [
        ("1,", "2,", "one row. Got two"),
        ("above", "below", "one row. Got two"),
        ("times 0.367", "times 0.467", "tail below must have the probability"),
        ("sensitivity 1", "sensitivity 0", "sensitivity"),
    ],
)
def test_a_table_that_is_changed_is_refused(
    tmp_path: Path, old: str, new: str, reason: str
) -> None:
    table = build_law_table(wb.design("noise", sensitivity=1, epsilon=1).mechanism)
    assert table is not None
    file = written(tmp_path / "law.csv", table)
    text = file.read_text()
    at = text.rindex(old) if old == "above" else text.index(f"\n{old}") if old == "1," else 0
    file.write_text(text[:at] + text[at:].replace(old, new).replace("2,", "0,", old == "1,"))
    with pytest.raises(wb.CorruptFile, match=reason):
        read_mechanism_file(file)


def test_a_table_with_a_missing_row_is_refused(tmp_path: Path) -> None:
    table = build_law_table(wb.design("channel", answers="0..6", max_shift=1, epsilon=1).mechanism)
    assert table is not None
    file = written(
        tmp_path / "law.csv", (table[0], [["#0", *table[1][0][1:]], *table[1][1:]])
    )  # as a comment
    with pytest.raises(wb.CorruptFile, match="7 rows"):
        read_mechanism_file(file)


@pytest.mark.parametrize(
    "text", ["noise,probability\n", "", "value;probability\n", "noise η\tprobability\n"]
)
@pytest.mark.parametrize("values", [[-1, 0, 1], [18, 19, 20], [1, 0, -1]])
def test_pairs_are_noise_on_the_integers(tmp_path: Path, text: str, values: list[int]) -> None:
    mark = next((mark for mark in ";\t" if mark in text), ",")
    file = tmp_path / "pmf.csv"
    file.write_text(
        text
        + "".join(
            f"{v}{mark}{mass}\n" for v, mass in zip(values, ("0.2", "0.6", "0.2"), strict=True)
        )
    )
    assert wb.load(file) == IntegerLaw(min(values), [1, 3, 1])
    with pytest.raises(wb.InvalidRequest, match="which answers are neighbours"):
        read_mechanism_file(file).with_neighbours()
    found = wb.audit(read_mechanism_file(file).with_neighbours(max_shift=1), 3)
    assert found.pure_ratio is None  # the ends have no neighbour's probability
    assert found.dp_delta.upper == pytest.approx(0.2)
    drawn = wb.sample(wb.load(file), 50, insecure_seed=1)
    assert {*drawn.tolist()} == {*values}


def test_pairs_of_json_and_modulo_a_size(tmp_path: Path) -> None:
    (tmp_path / "pmf.json").write_text("[[0, 0.5], [1, 0.25], [2, 0.25]]")
    found = read_mechanism_file(tmp_path / "pmf.json").with_neighbours(sizes=[3], max_shift=1)
    assert found == wb.AdditiveNoise(wb.ModuloNoise(n=2, max_shift=1), [2, 1, 1])
    with pytest.raises(wb.InvalidRequest, match="values 0"):
        read_mechanism_file(tmp_path / "pmf.json").with_neighbours(sizes=[2], max_shift=1)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("noise,probability\n-18,0.5\n18,0.4\n", "add up to 0.9, not 1"),
        ("-18,0.5\n18,0.4\n", "add up to 0.9, not 1"),
        ("noise,probability\n0.5,0.5\n1.5,0.5\n", "integer"),
        ("noise,probability\n1,0.5\n1,0.5\n", "one row"),
        ("noise,probability\n1,1.5\n2,-0.5\n", "negative"),
        ("a,0.6,0.4\nb,0.4,0.6\nc,0.5,0.5\n", "could be the law of the input 'a'"),
        ('noise,probability\n"1,0.5\n2,0.5\n', "Line 2"),
    ],
)
def test_invalid_pairs_are_errors(tmp_path: Path, text: str, reason: str) -> None:
    (tmp_path / "a.csv").write_text(text)
    with pytest.raises(wb.CorruptFile, match=reason):
        wb.load(tmp_path / "a.csv")


@pytest.mark.parametrize("heads", ["answer,x,y", "answer,0,1", '"which, answer",10,20'])
@pytest.mark.parametrize("labels", [["0", "1", "2"], ["7", "8", "9"]])
def test_names_of_rows_are_not_read_as_probabilities(
    tmp_path: Path, heads: str, labels: list[Any]
) -> None:
    (tmp_path / "a.csv").write_text(
        f"{heads}\n{labels[0]},0.6,0.4\n{labels[1]},0.4,0.6\n{labels[2]},0.5,0.5\n"
    )
    found = wb.load(tmp_path / "a.csv")
    assert [row[0] for row in found.rows] == [Fraction(3, 5), Fraction(2, 5), Fraction(1, 2)]
