"""Test the command `privatise channel` for names and scores: outputs, totals, budgets and errors.

The totals of --totals are unbiased estimates of how often each name is in the private column.
"""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import workbench as wb
from workbench.cli import main

NAMES = ["north", "south", "coast"]
COUNTS = [500, 300, 200]
COMMAND = "channel p.csv --column region --out o.csv"


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with certificates of channels."""
    folder = tmp_path_factory.mktemp("certificates")
    names = wb.FiniteQuery(NAMES, neighbours="all")
    wb.design(names, loss="error-rate", epsilon=1).save(folder / "names.json")
    scores = wb.FiniteQuery("1..5", neighbours="all")
    wb.design(scores, loss="error-rate", epsilon=2).save(folder / "scores.json")
    path = wb.FiniteQuery(NAMES, neighbours="consecutive")
    wb.design(path, loss="error-rate", epsilon=1).save(folder / "local.json")
    constant = wb.Channel.from_rows([[1, 1], [1, 1]])
    constant = wb.Channel(constant.rows, axis_labels=(("north", "south"), ("north", "south")))
    record = {"inputs": ["north", "south"], "outputs": ["north", "south"]}
    wb.Certificate(constant, "pure", 1, record=record).save(folder / "constant.json")
    return folder


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Change to a folder with the file p.csv of NAMES, COUNTS times each."""
    monkeypatch.chdir(tmp_path)
    write_table([name for name, count in zip(NAMES, COUNTS, strict=True) for _ in range(count)])
    return tmp_path


def write_table(cells: list[str]) -> None:
    """Write p.csv with the column region."""
    Path("p.csv").write_text("\n".join(["who,region", *(f"p,{cell}" for cell in cells), ""]))


def privatise(capsys: Any, certificate: Path, options: str = "") -> tuple[int, str, str]:
    """Run the command. Return the exit code, and the texts on stdout and stderr in one line."""
    with pytest.raises(SystemExit) as stop:
        main(["privatise", *COMMAND.split(), "--mechanism", str(certificate), *options.split()])
    out, err = capsys.readouterr()
    return int(stop.value.code or 0), " ".join(out.split()), " ".join(err.split())


TOTALS_OPTIONS = "--totals t.csv --insecure-seed 7 --json"


def read_totals() -> list[dict[str, str]]:
    """Return the rows of t.csv: a name, its total and the standard error of the total."""
    with Path("t.csv").open(newline="") as file:
        return [*csv.DictReader(file)]


def test_names_are_published_with_totals(folder: Path, certificates: Path, capsys: Any) -> None:
    code, out, _ = privatise(capsys, certificates / "names.json", TOTALS_OPTIONS)
    assert code == 0
    assert {*Path("o.csv").read_text().split()[1:]} == {*NAMES}
    assert [row["value"] for row in read_totals()] == NAMES
    assert json.loads(out)["budget_between_any_two_values"]["epsilon"] == 1


def test_totals_are_unbiased_estimates(folder: Path, certificates: Path, capsys: Any) -> None:
    """With p = e/(e + 2) and q = 1/(e + 2), the total of a name is (N - n q)/(p - q).

    N is the number of published values that are this name, and n the number of all values.
    """
    privatise(capsys, certificates / "names.json", TOTALS_OPTIONS)
    published = Path("o.csv").read_text().split()[1:]
    report = json.loads(Path("o.csv.json").read_text())
    p, q = np.e / (np.e + 2), 1 / (np.e + 2)
    for row, entry in zip(read_totals(), report["totals"], strict=True):
        expected = (published.count(row["value"]) - len(published) * q) / (p - q)
        assert float(row["total"]) == pytest.approx(expected)
        assert entry["total"] == pytest.approx(expected)


def test_totals_are_within_four_standard_errors(
    folder: Path, certificates: Path, capsys: Any
) -> None:
    """They are exceeded with probability 6e-5. The seed is fixed."""
    privatise(capsys, certificates / "names.json", TOTALS_OPTIONS)
    for row, count in zip(read_totals(), COUNTS, strict=True):
        assert abs(float(row["total"]) - count) < 4 * float(row["standard_error"])


def test_scores_are_read_as_numbers(folder: Path, certificates: Path, capsys: Any) -> None:
    write_table(["1", "2.0", " 5", "3", "4"] * 20)
    code, *_ = privatise(capsys, certificates / "scores.json")
    assert code == 0
    published = Path("o.csv").read_text().split()[1:]
    assert {*published} <= {"1", "2", "3", "4", "5"}
    errors = json.loads(Path("o.csv.json").read_text())["expected_error"]
    # Randomized response among 5 values at ε = 2 is wrong with probability 4/(e² + 4).
    assert [*errors.values()] == pytest.approx([4 / (np.exp(2) + 4)] * 2, abs=1e-9)


def test_an_error_does_not_quote_a_cell(folder: Path, certificates: Path, capsys: Any) -> None:
    write_table(["north", "hidden", "hidden"])
    code, out, err = privatise(capsys, certificates / "names.json")
    assert code == 2
    assert "line 3 of p.csv must be one of the 3 inputs of the mechanism" in err
    assert "hidden" not in out + err
    assert "2 such" not in err
    assert not Path("o.csv").exists()


@pytest.mark.parametrize("column", ["2", "north"])
def test_a_first_row_that_may_be_data_is_refused(
    folder: Path, certificates: Path, capsys: Any, column: str
) -> None:
    Path("p.csv").write_text("p,north\nq,south\n")
    command = f"privatise channel p.csv --column {column} --out o.csv --mechanism"
    with pytest.raises(SystemExit) as stop:
        main([*command.split(), str(certificates / "names.json")])
    assert stop.value.code == 2
    assert "--header or --no-header" in " ".join(capsys.readouterr().err.split())
    assert not Path("o.csv").exists()


def test_spellings_of_a_name_are_those_of_a_histogram(
    folder: Path, certificates: Path, capsys: Any
) -> None:
    """`publish histogram` and `privatise channel` take the same cells for a listed name."""
    cells = ["South ", " NORTH", "\uff53outh", "Coast\u00a0", "north"]
    write_table(cells)
    assert privatise(capsys, certificates / "names.json", "--insecure-seed 1")[0] == 0
    values = ["north", "south", "coast"]
    wb.publish.histogram("p.csv", "region", values=values, epsilon=1)
    for cell in ["sou th", "s\u00f6uth", "north.", "\u200bsouth"]:
        write_table([cell, "north"])
        Path("o.csv").unlink(missing_ok=True)
        assert privatise(capsys, certificates / "names.json")[0] == 2
        with pytest.raises(wb.InvalidRequest):
            wb.publish.histogram("p.csv", "region", values=values, epsilon=1)


def test_a_header_in_another_case_may_be_data(
    folder: Path, certificates: Path, capsys: Any
) -> None:
    Path("p.csv").write_text("who,NORTH\np,south\n")
    command = "privatise channel p.csv --column NORTH --out o.csv --mechanism"
    with pytest.raises(SystemExit) as stop:
        main([*command.split(), str(certificates / "names.json")])
    assert stop.value.code == 2
    assert "--header or --no-header" in " ".join(capsys.readouterr().err.split())


def test_inputs_that_differ_in_case_alone_are_refused(folder: Path, capsys: Any) -> None:
    channel = wb.Channel.from_rows([[2, 1], [1, 2]])
    names = ("north", "North")
    channel = wb.Channel(channel.rows, axis_labels=(names, names))
    record = {"inputs": [*names], "outputs": [*names]}
    wb.Certificate(channel, "pure", 1, record=record).save(folder / "cases.json")
    code, _, err = privatise(capsys, folder / "cases.json")
    assert code == 2
    assert "differ in more than case and blanks" in err


def test_a_local_channel_needs_its_option(folder: Path, certificates: Path, capsys: Any) -> None:
    code, *_ = privatise(capsys, certificates / "local.json")
    assert code == 2
    code, *_ = privatise(capsys, certificates / "local.json", "--local-neighbours")
    assert code == 0


def test_laws_that_are_equal_have_no_totals(folder: Path, certificates: Path, capsys: Any) -> None:
    write_table(["north", "south"])
    code, _, err = privatise(capsys, certificates / "constant.json", "--totals t.csv")
    assert code == 2
    assert "linearly dependent" in err
    code, *_ = privatise(capsys, certificates / "constant.json")
    assert code == 0
    assert json.loads(Path("o.csv.json").read_text())["totals"] is None


def test_options_of_a_range_are_refused(folder: Path, certificates: Path, capsys: Any) -> None:
    code, _, err = privatise(capsys, certificates / "names.json", "--clip")
    assert code == 2
    assert "clip must be left out" in err


def test_a_notion_without_epsilon_has_the_exact_epsilon_between_any_two_names(
    folder: Path, capsys: Any
) -> None:
    names = wb.FiniteQuery(NAMES, neighbours="all")
    design = wb.design(names, loss="error-rate", notion="zcdp", rho="0.5")
    design.save(folder / "zcdp.json")
    code, *_ = privatise(capsys, folder / "zcdp.json")
    assert code == 0
    report = json.loads(Path("o.csv.json").read_text())
    epsilon = report["budget_between_any_two_values"]["epsilon"]
    exact_epsilon = wb.audit(design.mechanism).pure_epsilon
    assert exact_epsilon <= epsilon < exact_epsilon * (1 + 1e-5)
    assert report["budget_of_a_row"] is None


@pytest.mark.parametrize(
    "cell", ["north", " North ", "NORTH", "\uff4eorth", "nord", "3", "03", "3.0"]
)
@pytest.mark.parametrize("file", ["names.json", "scores.json"])
def test_sample_accepts_the_spellings_that_privatise_accepts(
    folder: Path, certificates: Path, capsys: Any, file: str, cell: str
) -> None:
    write_table([cell, cell])
    privatise_code, *_ = privatise(capsys, certificates / file, "--header")
    with pytest.raises(SystemExit) as stop:
        main(["sample", str(certificates / file), "--answer", cell])
    assert stop.value.code == privatise_code


def test_sample_tells_names_apart_that_differ_in_case_alone(tmp_path: Path, capsys: Any) -> None:
    # The output is the input, except with a probability of e^-20.
    names = wb.FiniteQuery(["a", "A"], neighbours="all")
    wb.design(names, loss="error-rate", epsilon=20).save(tmp_path / "case.json")
    for answer, output in (("a", "a"), ("A", "A"), (" A", "A")):
        with pytest.raises(SystemExit) as stop:
            main(["sample", str(tmp_path / "case.json"), "--answer", answer])
        assert stop.value.code in (None, 0)
        assert capsys.readouterr().out == f"{output}\n"
