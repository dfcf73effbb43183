"""Test `RangeMechanism`: channels for real answers in a range, with one row for each cell or end.

A range is divided into cells. If `at_ends` is False, an answer has the row of its cell. If it is
True, each end of a cell has a row, and an answer is rounded at random to an end of its cell.
"""

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
from tests.tools.test_check_certificate import decide
from workbench.cli import main
from workbench.data.csv_column import CsvColumn
from workbench.exact.distribution import Distribution
from workbench.families.channel.family import FAMILY
from workbench.mechanisms.range_mechanism import RangeMechanism
from workbench.privacy.certificate_file import certificate_from_dict
from workbench.privacy.column_release import ColumnRows, column_mechanism_of_design
from workbench.privacy.expected_error import compute_expected_error

UNEVEN_ENDS = [Fraction(x) for x in ("0", "1/3", "1", "5/4", "3")]


def make_mechanism(
    ends: list[Fraction],
    sensitivity: int | str,
    *,
    at_ends: bool,
    pairs: tuple[tuple[int, int], ...] | None,
) -> RangeMechanism:
    """Make a mechanism whose row i publishes output i twice as often as every other output.

    Args:
        ends: the ends of the cells, increasing.
        sensitivity: the largest difference of neighbouring answers.
        at_ends: whether each end has a row, not each cell.
        pairs: the pairs of rows that are compared. None: all pairs.
    """
    count = len(ends) if at_ends else len(ends) - 1
    rows = tuple(Distribution([1 + (i == j) for j in range(count)]) for i in range(count))
    points = tuple(ends if at_ends else [(a + b) / 2 for a, b in pairwise(ends)])
    return RangeMechanism(
        rows, pairs, (points, points), tuple(ends), Fraction(sensitivity), at_ends
    )


def find_row(x: Fraction, u: Fraction, ends: list[Fraction], *, at_ends: bool) -> int:
    """Find the row of an answer x by the definition; u in [0, 1) is the draw of the rounding."""
    cell = max(i for i, end in enumerate(ends[:-1]) if end <= x)
    share = (x - ends[cell]) / (ends[cell + 1] - ends[cell])
    if at_ends and u < share:
        return cell + 1
    return cell


def run(capsys: pytest.CaptureFixture[str], line: str) -> tuple[int, str, str]:
    """Run a command line in this process.

    Returns:
        The exit code, standard output and standard error.
    """
    with pytest.raises(SystemExit) as stop:
        main(line.split())
    out, err = capsys.readouterr()
    return stop.value.code or 0, out, " ".join(err.split())


@pytest.mark.parametrize("at_ends", [False, True])
@pytest.mark.parametrize("sensitivity", ["1/4", "2/3", "1", "2"])
@pytest.mark.parametrize(
    "ends", [UNEVEN_ENDS, [Fraction(i, 3) for i in range(7)]], ids=["uneven", "even"]
)
def test_the_rows_of_answers_within_the_sensitivity_are_neighbours(
    ends: list[Fraction], sensitivity: str, at_ends: bool
):
    """The reference is `find_related_rows`. Leaving out one pair is an error."""
    related_rows = find_related_rows(ends, Fraction(sensitivity), at_ends=at_ends)
    mechanism = make_mechanism(ends, sensitivity, at_ends=at_ends, pairs=None)
    assert {*mechanism._related_rows()} == related_rows
    row_count = len(ends) if at_ends else len(ends) - 1
    pairs = tuple(sorted(related_rows | {(b, a) for a, b in related_rows}))
    mechanism = make_mechanism(ends, sensitivity, at_ends=at_ends, pairs=pairs)
    is_complete = related_rows == {*combinations(range(row_count), 2)}
    assert mechanism.neighbours == (None if is_complete else pairs)
    for missing_pair in (pairs[0], pairs[-1]):
        fewer_pairs = tuple(pair for pair in pairs if pair != missing_pair)
        with pytest.raises(
            wb.InvalidRequest, match="pairs must be all rows of answers within the sensitivity"
        ):
            make_mechanism(ends, sensitivity, at_ends=at_ends, pairs=fewer_pairs)


def find_related_rows(
    ends: list[Fraction], sensitivity: Fraction, *, at_ends: bool
) -> set[tuple[int, int]]:
    """Find the pairs of rows (a, b), a < b, of any two answers within the sensitivity.

    The answers are on a fine grid and beside the ends. Two answers that are rounded at random use
    the same draw.
    """
    tiny = Fraction(1, 10**6)
    answers = {end + offset for end in ends for offset in (-tiny, 0, tiny)}
    answers |= {Fraction(i, 24) for i in range(72)}
    answers |= {x + sensitivity for x in answers}
    answers = {x for x in answers if ends[0] <= x <= ends[-1]}
    draws = [Fraction(0)]
    if at_ends:
        draws = [*(Fraction(k, 13) for k in range(13)), tiny * 2, 1 - tiny * 2]
    rows_by_answer = {x: [find_row(x, u, ends, at_ends=at_ends) for u in draws] for x in answers}
    related_rows = set()
    for x, y in combinations(answers, 2):
        if abs(x - y) <= sensitivity:
            pairs = zip(rows_by_answer[x], rows_by_answer[y], strict=True)
            related_rows |= {(min(a, b), max(a, b)) for a, b in pairs if a != b}
    return related_rows


@pytest.mark.parametrize("at_ends", [False, True])
def test_draws_follow_the_law_of_every_answer(at_ends: bool):
    mechanism = make_mechanism(UNEVEN_ENDS, 3, at_ends=at_ends, pairs=None)
    answers = [Fraction(1, 3), Fraction(2, 3), Fraction(1.1), Fraction(99, 100), Fraction(3)]
    for seed, x in enumerate(answers):
        draws = mechanism.publish([x] * 20_000, insecure_seed=seed)
        positions = np.searchsorted(mechanism.outputs, draws)
        counts = np.bincount(positions, minlength=mechanism.outputs.size)
        expected = 20_000 * mechanism.law(x).floats
        # A chi-square value of 4 degrees exceeds 30 with probability 5e-6.
        assert float(((counts - expected) ** 2 / expected).sum()) < 30


def test_between_two_ends_the_law_is_a_mixture_of_their_rows():
    mechanism = make_mechanism(UNEVEN_ENDS, 3, at_ends=True, pairs=None)
    left_row, right_row = mechanism.rows[2:4]  # The rows of 1 and 5/4, with 9/8 in the middle.
    mixture = [(p + q) / 2 for p, q in zip(left_row, right_row, strict=True)]
    assert [*mechanism.law("9/8")] == mixture


@pytest.mark.parametrize("answers", [[np.nan], [np.inf], [[1.0]]])
def test_invalid_answers_are_refused(answers: list[Any]):
    mechanism = make_mechanism(UNEVEN_ENDS, 3, at_ends=True, pairs=None)
    with pytest.raises(wb.InvalidRequest, match="answers must be"):
        mechanism.publish(answers)


def make_identity_mechanism(*, at_ends: bool) -> RangeMechanism:
    """Make a mechanism on the uneven cells that publishes the number of its row."""
    count = len(UNEVEN_ENDS) if at_ends else len(UNEVEN_ENDS) - 1
    rows = tuple(Distribution([int(i == j) for j in range(count)]) for i in range(count))
    numbers = tuple(map(Fraction, range(count)))
    points = tuple(UNEVEN_ENDS) if at_ends else numbers
    return RangeMechanism(rows, None, (points, numbers), tuple(UNEVEN_ENDS), Fraction(1), at_ends)


def test_answers_beside_an_end_are_in_the_correct_cells():
    """Answers outside the range 0..3 are clamped."""
    mechanism = make_identity_mechanism(at_ends=False)
    tiny = Fraction(1, 10**40)
    third = Fraction(1, 3)
    cells_by_answer = {
        third - tiny: 0,
        third: 1,
        1 - tiny: 1,
        Fraction(1): 2,
        3 - tiny: 3,
        Fraction(3): 3,
        Fraction(-9): 0,
        Fraction(9): 3,
    }
    assert mechanism.publish([*cells_by_answer]).tolist() == [*cells_by_answer.values()]
    # The double nearest to 1/3 is below 1/3.
    assert mechanism.publish([1 / 3, 1.0, np.nextafter(1.0, 0)]).tolist() == [0, 2, 1]


def test_an_answer_at_an_end_has_the_row_of_that_end():
    mechanism = make_identity_mechanism(at_ends=True)
    answers = [*UNEVEN_ENDS, Fraction(-9), Fraction(9)]
    assert mechanism.publish(answers).tolist() == [0, 1, 2, 3, 4, 0, 4]
    assert {*mechanism.publish([Fraction(9, 8)] * 200).tolist()} == {2, 3}


DESIGN_OPTIONS: list[dict[str, Any]] = [
    {"cells": 6},
    {"sensitivity": 3},
    {"prior": "worst", "cells": 6},
    {"sensitivity": 3, "prior": "worst", "cells": 8},
]


def save_design(options: dict[str, Any], path: Path) -> wb.Design:
    """Design a channel for real answers in -1/3..5, and save its certificate. Return the design."""
    design = FAMILY.design_request(
        FAMILY.make_request_from_options(range="-1/3..5", epsilon=1, loss="absolute", **options)
    )
    design.save(path)
    return design


def require_refused(data: dict[str, Any], message: str | None = None) -> None:
    """Require that neither the workbench nor the independent checker accepts a certificate."""
    assert decide(data) == "unreadable"
    with pytest.raises((wb.CorruptFile, wb.InvalidRequest), match=message):
        certificate_from_dict(data)


@pytest.mark.parametrize("options", DESIGN_OPTIONS)
def test_a_saved_design_has_its_expected_loss_on_real_answers(
    options: dict[str, Any], tmp_path: Path
):
    """With the prior worst, the rows belong to ends."""
    has_worst_prior = "prior" in options
    design = save_design(options, tmp_path / "f.json")
    mechanism = wb.load(tmp_path / "f.json")
    assert mechanism == design.mechanism
    assert (mechanism.ends[0], mechanism.ends[-1]) == (Fraction(-1, 3), 5)
    assert mechanism.at_ends == has_worst_prior
    error = compute_expected_error(mechanism)
    loss = error.worst_error if has_worst_prior else error.mean_error
    assert float(loss) == pytest.approx(design.objective, rel=1e-12)


@pytest.mark.parametrize("options", DESIGN_OPTIONS)
def test_a_changed_file_of_a_design_is_refused(options: dict[str, Any], tmp_path: Path):
    save_design(options, tmp_path / "f.json")
    data = json.loads((tmp_path / "f.json").read_text())
    assert decide(data) == "proven"
    record = data["mechanism"]
    for name, wrong_value in (
        ("ends", record["ends"][1:]),
        ("at_ends", "prior" not in options),
        ("sensitivity", "0"),
        ("outputs", record["outputs"][1:]),
        ("at_ends", 1),
    ):
        require_refused({**data, "mechanism": {**record, name: wrong_value}})


@pytest.mark.parametrize("options", [DESIGN_OPTIONS[1], DESIGN_OPTIONS[3]])
def test_a_file_of_a_small_sensitivity_does_not_prove_a_larger_one(
    options: dict[str, Any], tmp_path: Path
):
    save_design(options, tmp_path / "f.json")
    assert wb.check(tmp_path / "f.json").mechanism.column_cautions
    data = json.loads((tmp_path / "f.json").read_text())
    changed_record = {**data["mechanism"], "sensitivity": "5"}
    require_refused({**data, "mechanism": changed_record}, message="all rows of answers")


# Claims for which a mechanism with rows at ends has no certificate: notion, ε, δ and the reason.
REFUSED_CLAIMS: list[tuple[str, Any, Any, str]] = [
    ("pdp", 1, Fraction(1, 10), "one that rounding preserves"),
    ("metric", 1, 0, "without distances"),
    ("pure", {(0, 1): 1}, 0, "epsilon must be one number"),
]


@pytest.mark.parametrize(("notion", "epsilon", "delta", "message"), REFUSED_CLAIMS)
def test_notions_that_mixing_does_not_preserve_are_refused(
    notion: str, epsilon: Any, delta: Any, message: str
):
    """An answer between two ends has a mixture of their rows."""
    mechanism = make_mechanism(UNEVEN_ENDS, 3, at_ends=True, pairs=None)
    with pytest.raises(wb.InvalidRequest, match=message):
        wb.Certificate(mechanism, notion, epsilon, delta)


def test_dp_and_pdp_without_delta_are_preserved_by_mixing():
    mechanism = make_mechanism(UNEVEN_ENDS, 3, at_ends=True, pairs=None)
    wb.Certificate(mechanism, "dp", 1, Fraction(1, 10))
    wb.Certificate(mechanism, "pdp", 1)


@pytest.mark.parametrize("notion", ["pdp", "metric"])
def test_the_checker_refuses_notions_that_mixing_does_not_preserve(notion: str, tmp_path: Path):
    mechanism = make_mechanism(UNEVEN_ENDS, 3, at_ends=True, pairs=None)
    wb.Certificate(mechanism, "dp", 1, Fraction(1, 10)).save(tmp_path / "f.json")
    data = json.loads((tmp_path / "f.json").read_text())
    assert decide(data) == "proven"
    assert decide({**data, "claim": {**data["claim"], "notion": notion}}) == "unreadable"


@pytest.fixture
def column_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Enter a folder with the file d.csv, whose column x has two values outside 0..10."""
    monkeypatch.chdir(tmp_path)
    Path("d.csv").write_text("who,x\nann,0.1\nbob,-3\ncyd,9.99\ndan,10.5\n")
    return tmp_path


PUBLISH_COLUMN = "privatise channel d.csv --column x --id who"
DESIGN_FOR_RANGE = "design channel --range 0..10 --epsilon 2 --loss absolute"


def run_successfully(capsys: pytest.CaptureFixture[str], line: str) -> str:
    """Run a command line that must succeed. Return its standard output."""
    code, out, err = run(capsys, line)
    assert code == 0, err
    return out


@pytest.mark.usefixtures("column_folder")
def test_a_column_is_published_by_the_optimal_channel_of_a_range(capsys):
    line = f"{PUBLISH_COLUMN} --out o.csv --range 0..10 --epsilon 2 --loss absolute --clip --json"
    report = json.loads(run_successfully(capsys, line))
    assert report["clipped_rows"] == 2
    assert report["budget"]["epsilon"] == 2.0
    assert report["claim"]["notion"] == "pure"
    run_successfully(capsys, f"{DESIGN_FOR_RANGE} --save f.json")
    outputs = {*wb.load("f.json").outputs.tolist()}
    with Path("o.csv").open(newline="") as file:
        rows = [*csv.DictReader(file)]
    assert [row["who"] for row in rows] == ["ann", "bob", "cyd", "dan"]
    assert {float(row["x"]) for row in rows} <= outputs
    # The number of clipped rows depends on the data, so it is not published.
    assert "clipped_rows" not in json.loads(Path("o.csv.json").read_text())


@pytest.mark.usefixtures("column_folder")
def test_a_column_is_published_by_a_saved_channel_of_a_range(capsys):
    run_successfully(capsys, f"{DESIGN_FOR_RANGE} --save f.json")
    line = "privatise channel d.csv --column x --mechanism f.json --clip --out p.csv"
    assert "2 of 4 rows" in run_successfully(capsys, line)


@pytest.mark.usefixtures("column_folder")
@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            "--mechanism f.json",
            "line 3 of d.csv, column x, must be in [0, 10]. Got another text (2 such rows",
        ),
        ("--range 0..10", "range and epsilon. Got no epsilon"),
        ("--mechanism f.json --epsilon 1", "epsilon must be left out with a mechanism"),
        ("--mechanism d.csv", "is not a finite number"),
        ("--range 0..10 --epsilon 1 --loss huber:1", "loss of a range must be"),
    ],
)
def test_wrong_options_publish_no_column(capsys, options: str, message: str):
    run_successfully(capsys, f"{DESIGN_FOR_RANGE} --save f.json")
    code, _, err = run(capsys, f"{PUBLISH_COLUMN} --out q.csv {options}")
    assert code != 0
    assert message in err
    assert not Path("q.csv").exists()


@pytest.mark.usefixtures("column_folder")
def test_clip_is_refused_with_a_channel_of_listed_answers(capsys):
    run_successfully(
        capsys, "design channel --answers 0..3 --max-shift 1 --epsilon 1 --save c.json"
    )
    _, _, err = run(capsys, f"{PUBLISH_COLUMN} --out o.csv --mechanism c.json --clip")
    assert "clip must be left out with a channel between listed values" in err


@pytest.mark.usefixtures("column_folder")
def test_noise_in_place_of_a_channel_is_refused(capsys):
    run_successfully(capsys, "design modulo --n 8 --max-shift 1 --epsilon 1 --save n.json")
    _, _, err = run(capsys, f"{PUBLISH_COLUMN} --out o.csv --mechanism n.json")
    assert "mechanism must be a channel of a range or of listed answers" in err


def test_decimals_beside_an_end_are_read_exactly(tmp_path: Path):
    """As doubles, 4 - 2e-16 and 1 - 2e-16 would be 4 cells apart instead of 3."""
    (tmp_path / "d.csv").write_text("x\n3.9999999999999998\n0.9999999999999998\n4\n1\n")
    ends = [Fraction(i) for i in range(6)]
    pairs = tuple((i, j) for i in range(5) for j in range(5) if 0 < abs(i - j) <= 3)
    mechanism = make_mechanism(ends, 3, at_ends=False, pairs=pairs)
    subject = column_mechanism_of_design(wb.Certificate(mechanism, "pure", 1))
    assert any("at most 3 apart" in words for words in subject.notes)
    values = ColumnRows.read(CsvColumn.read(tmp_path / "d.csv"), subject).values
    # Every row has one output.
    rows = [Distribution([int(i == j) for j in range(5)]) for i in range(5)]
    assert [*np.floor(subject.mechanism.with_rows(rows).publish(values))] == [3, 0, 4, 1]


def test_a_decimal_with_too_many_digits_is_refused(tmp_path: Path):
    mechanism = make_mechanism([Fraction(i) for i in range(6)], 5, at_ends=False, pairs=None)
    subject = column_mechanism_of_design(wb.Certificate(mechanism, "pure", 1))
    (tmp_path / "d.csv").write_text("x\n1e-6000\n")
    with pytest.raises(wb.InvalidRequest, match="a decimal within 5000 digits"):
        ColumnRows.read(CsvColumn.read(tmp_path / "d.csv"), subject)
