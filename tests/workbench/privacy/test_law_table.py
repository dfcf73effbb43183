"""Test that the table of a mechanism is complete and exact, and is read back as this mechanism."""

from __future__ import annotations

import csv
import functools
import io
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

import workbench as wb
from workbench.exact.integer_law import IntegerLaw
from workbench.privacy.law_table import build_law_table
from workbench.privacy.loading import read_mechanism_file

# A name for each form of a table -> family and options of a design with such a table.
QUESTIONS = {
    "integers": ("noise", {"sensitivity": 2, "epsilon": 1}),
    "clamped": ("noise", {"sensitivity": 1, "clamp": "0..20", "epsilon": 0.5, "delta": 1e-3}),
    "reals": ("noise", {"on": "reals", "sensitivity": "1/3", "epsilon": 1}),
    "reals, an atom": (
        "noise",
        {
            "on": "reals",
            "sensitivity": 1,
            "epsilon": 1,
            "delta": 0.2,
            "clamp": "0..9",
            "steps": 2,
        },
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


def build_table(mechanism: Any) -> tuple[list[str], list[list[str]]]:
    """Return the heads and the rows of the table of a mechanism that has one."""
    table = build_law_table(mechanism)
    assert table is not None
    return table


@functools.cache
def make_design(question: str) -> wb.Design:
    """Solve a design of QUESTIONS once for all tests of this file."""
    family, options = QUESTIONS[question]
    return wb.design(family, **options)


def write_table(path: Path, heads: list[str], rows: list[list[str]]) -> Path:
    """Write a table as a CSV file, and return the path."""
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows([heads, *rows])
    path.write_text(text.getvalue())
    return path


@pytest.mark.parametrize("question", QUESTIONS)
def test_the_probabilities_of_every_law_add_up_to_exactly_1(question: str) -> None:
    heads, rows = build_table(make_design(question).mechanism)
    if len(heads) == 2:
        laws = [[mass for _, mass in rows]]  # A table of noise has one law, in a column.
    else:
        laws = [masses for _, *masses in rows]
    for law in laws:
        assert sum(map(Fraction, law)) == 1


@pytest.mark.parametrize("question", QUESTIONS)
def test_a_table_is_read_back_as_the_same_mechanism(tmp_path: Path, question: str) -> None:
    design = make_design(question)
    file = write_table(tmp_path / "law.csv", *build_table(design.mechanism))
    read_back = read_mechanism_file(file).with_neighbours()
    # The mechanism of a design for labels is a rule. Its table is the channel of this rule.
    if question != "labels":
        assert read_back == design.mechanism
    epsilon = design.request.claim.epsilon
    expected_audit = wb.audit(design.mechanism, epsilon)
    audit = wb.audit(read_back, epsilon)
    assert audit.pure_ratio == expected_audit.pure_ratio
    assert audit.dp_delta == expected_audit.dp_delta
    assert audit.holds(design.claim)


def give_noise_0_two_rows(text: str) -> str:
    """Rename the row of the noise value 1 to 0."""
    return text.replace("\n1,", "\n0,")


def give_the_lower_tail_two_rows(text: str) -> str:
    """Rename the row of the upper tail to the lower one."""
    return text.replace("above", "below")


def change_the_ratio_of_both_tails(text: str) -> str:
    """Replace the ratio e^-1 = 0.3678... of consecutive tail masses by 0.4678..."""
    return text.replace("times 0.367", "times 0.467")


def change_the_sensitivity_to_0(text: str) -> str:
    """Replace the sensitivity in the head of the first column."""
    return text.replace("sensitivity 1", "sensitivity 0")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (give_noise_0_two_rows, "one row. Got two"),
        (give_the_lower_tail_two_rows, "one row. Got two"),
        (change_the_ratio_of_both_tails, "tail below must have the probability"),
        (change_the_sensitivity_to_0, "sensitivity"),
    ],
)
def test_a_table_that_was_changed_is_refused(
    tmp_path: Path, change: Callable[[str], str], message: str
) -> None:
    design = wb.design("noise", sensitivity=1, epsilon=1)
    file = write_table(tmp_path / "law.csv", *build_table(design.mechanism))
    text = file.read_text()
    changed_text = change(text)
    assert changed_text != text
    file.write_text(changed_text)
    with pytest.raises(wb.CorruptFile, match=message):
        read_mechanism_file(file)


def test_a_table_without_one_of_its_rows_is_refused(tmp_path: Path) -> None:
    """The row of the answer 0 begins with "#", so it is read as a comment."""
    design = wb.design("channel", answers="0..6", max_shift=1, epsilon=1)
    heads, rows = build_table(design.mechanism)
    rows[0][0] = "#0"
    file = write_table(tmp_path / "law.csv", heads, rows)
    with pytest.raises(wb.CorruptFile, match="7 rows"):
        read_mechanism_file(file)


# Files of pairs: a noise value and its probability in each row, without a head of the workbench.


@pytest.mark.parametrize(
    ("heads", "separator"),
    [
        ("noise,probability\n", ","),
        ("", ","),
        ("value;probability\n", ";"),
        ("noise η\tprobability\n", "\t"),
    ],
)
@pytest.mark.parametrize("noise_values", [[-1, 0, 1], [18, 19, 20], [1, 0, -1]])
def test_pairs_are_read_as_noise_on_the_integers(
    tmp_path: Path, heads: str, separator: str, noise_values: list[int]
) -> None:
    masses = ("0.2", "0.6", "0.2")
    lines = [
        f"{value}{separator}{mass}\n" for value, mass in zip(noise_values, masses, strict=True)
    ]
    file = tmp_path / "pmf.csv"
    file.write_text(heads + "".join(lines))
    assert wb.load(file) == IntegerLaw(min(noise_values), [1, 3, 1])


@pytest.fixture(name="pair_file")
def write_pair_file(tmp_path: Path) -> Path:
    """Write the pairs of noise with the masses 0.2, 0.6, 0.2 at -1, 0, 1."""
    file = tmp_path / "pmf.csv"
    file.write_text("noise,probability\n-1,0.2\n0,0.6\n1,0.2\n")
    return file


def test_pairs_are_audited_with_stated_neighbours_only(pair_file: Path) -> None:
    with pytest.raises(wb.InvalidRequest, match="which answers are neighbours"):
        read_mechanism_file(pair_file).with_neighbours()
    audit = wb.audit(read_mechanism_file(pair_file).with_neighbours(max_shift=1), 3)
    # The noise -1 gives an output that the upper neighbour never has, with probability 0.2.
    assert audit.pure_ratio is None
    assert audit.dp_delta.upper == pytest.approx(0.2)


def test_draws_from_pairs_have_the_listed_values(pair_file: Path) -> None:
    draws = wb.sample(wb.load(pair_file), 50, insecure_seed=1)
    assert {*draws.tolist()} == {-1, 0, 1}


def test_pairs_of_a_json_file_are_noise_modulo_a_stated_size(tmp_path: Path) -> None:
    file = tmp_path / "pmf.json"
    file.write_text("[[0, 0.5], [1, 0.25], [2, 0.25]]")
    mechanism = read_mechanism_file(file).with_neighbours(sizes=[3], max_shift=1)
    assert mechanism == wb.AdditiveNoise(wb.ModuloNoise(n=2, max_shift=1), [2, 1, 1])
    # Modulo 2 the noise value 2 does not exist.
    with pytest.raises(wb.InvalidRequest, match="values 0"):
        read_mechanism_file(file).with_neighbours(sizes=[2], max_shift=1)


@pytest.mark.parametrize(
    ("text", "message"),
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
def test_a_file_of_invalid_pairs_is_refused(tmp_path: Path, text: str, message: str) -> None:
    file = tmp_path / "pmf.csv"
    file.write_text(text)
    with pytest.raises(wb.CorruptFile, match=message):
        wb.load(file)


@pytest.mark.parametrize("heads", ["answer,x,y", "answer,0,1", '"which, answer",10,20'])
@pytest.mark.parametrize("row_names", [("0", "1", "2"), ("7", "8", "9")])
def test_names_of_rows_are_not_read_as_probabilities(
    tmp_path: Path, heads: str, row_names: tuple[str, str, str]
) -> None:
    first, second, third = row_names
    file = tmp_path / "channel.csv"
    file.write_text(f"{heads}\n{first},0.6,0.4\n{second},0.4,0.6\n{third},0.5,0.5\n")
    channel = wb.load(file)
    assert [row[0] for row in channel.rows] == [Fraction(3, 5), Fraction(2, 5), Fraction(1, 2)]
