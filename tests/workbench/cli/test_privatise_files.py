"""Test the input and output files of `privatise`: no private cell is published unchanged.

Bad files are refused, only the requested columns are written, and reports state the budgets. A
mechanism may be private between neighbours only, for example between numbers at most 1 apart.
Between any two values its ε may be much larger, so it needs the option --local-neighbours.
"""

from __future__ import annotations

import csv
import json
import re
import shlex
from fractions import Fraction
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import workbench as wb
from workbench.cli import main
from workbench.exact.integer_law import IntegerLaw
from workbench.mechanisms.additive import AdditiveNoise
from workbench.mechanisms.piecewise_affine import PiecewiseAffine
from workbench.mechanisms.real_noise import AdditiveRealNoise
from workbench.pipeline.registry import get_family
from workbench.privacy.release_ledger import ReleaseLedger
from workbench.questions.unbounded_noise import RealNoise

# Three places far from each other.
PLACES = "x,y\n0.5,0.5\n9000.5,0.5\n0.5,9000.5\n"
DESIGN_NEAR = (
    "design channel --places near.csv --neighbours 'within 1 L1' --loss euclidean --notion pure "
    "--epsilon 1 --save near.json"
)
DESIGN_CITY = (
    "design channel --places city.csv --neighbours 'all L2' --loss euclidean --notion metric "
    "--epsilon 0.0001 --save city.json"
)
# One command for each kind of mechanism. {} stands for the input file. The certificates are made by
# the fixture `files`.
COMMANDS = {
    "noise": "noise {} --column pay --mechanism real.json",
    "quantizer": "quantizer {} --column pay --mechanism quantizer.json",
    "labels": "labels {} --column pay --epsilon 9 --labels 0..10000:2500 --snap",
    "places": "places {} --columns pay,y --mechanism city.json",
}
# Files that must be refused. 7001, 7002, ... are private numbers.
BAD_FILES = {
    "stray quote": 'pay,y,note\n7001,1,ok\n7002,1,"said hi\n7003,1,fine\n7004,1,fine\n',
    "two stray quotes": 'pay,y,note\n7001,1,ok\n7002,1,"said hi\n7003,1,fine\n7004,1,fine"\n',
    "quote in the header": 'pay,y,"note\n7001,1,ok\n7002,1,a"\n7003,1,fine\n',
    "zero byte": "pay,y,note\n7001,1,ok\n7002,1,\0\n",
    "carriage return": "pay,y,note\n7001,1,ok\r7002,1,b\n7003,1,c\n",
    "short row": "pay,y,note\n7001,1,ok\n7002,1\n",
    "long row": "pay,y,note\n7001,1,ok\n7002,1,a,b\n",
    "blank line": "pay,y,note\n7001,1,ok\n\n7002,1,a\n",
    "comment": "pay,y,note\n7001,1,ok\n#7002,1,a\n",
    "missing": "pay,y,note\n7001,1,ok\n,1,a\n",
    "two names alike": "pay,y,pay\n7001,1,7002\n",
}


def run(capsys: pytest.CaptureFixture[str], command: str | list[str]) -> tuple[int, str, str]:
    """Run `workbench privatise` with a text, or any command with a list of arguments.

    Returns the exit code, and the texts on stdout and stderr with single spaces.
    """
    with pytest.raises(SystemExit) as stop:
        main(command if isinstance(command, list) else ["privatise", *command.split()])
    out, err = capsys.readouterr()
    return int(stop.value.code or 0), " ".join(out.split()), " ".join(err.split())


def read_report() -> dict[str, Any]:
    """Return the published report beside o.csv."""
    return json.loads(Path("o.csv.json").read_text())


def make_halving_noise(question: RealNoise) -> AdditiveRealNoise:
    """Return noise on the reals whose density halves over each sensitivity. It has ε = ln 2 < 1."""
    law = IntegerLaw(first=-1, weights=[1, 2, 1], period=1, ratio=Fraction(1, 2))
    return AdditiveRealNoise(question, 1, law)


def read_published(name: str = "o.csv") -> list[list[str]]:
    """Return the rows of a published file, with the header."""
    with Path(name).open(newline="") as file:
        return list(csv.reader(file))


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with the certificates that the commands use."""
    folder = tmp_path_factory.mktemp("files")
    (folder / "city.csv").write_text(PLACES)
    (folder / "near.csv").write_text("x,y\n0,0\n1,0\n2,0\n")
    # Noise modulo 9. Each step away from 0 halves the mass.
    masses = [16, 8, 4, 2, 1, 1, 2, 4, 8]
    certificates = {
        "real.json": wb.Certificate(make_halving_noise(RealNoise(10_000)), "pure", 1),
        "fine.json": wb.Certificate(make_halving_noise(RealNoise("0.0385")), "pure", 1),
        "quantizer.json": wb.Certificate(
            PiecewiseAffine.from_laws([0, 10_000], [-2, 12_000], [[3, 1], [1, 3]]), "pure", 2
        ),
        "children.json": wb.Certificate(
            AdditiveNoise(wb.ModuloNoise(n=8, max_shift=1), masses), "pure", 1
        ),
    }
    for name, certificate in certificates.items():
        certificate.save(folder / name)
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        for command in (DESIGN_CITY, DESIGN_NEAR):
            with pytest.raises(SystemExit) as stop:
                main(shlex.split(command))
            assert not stop.value.code
    return folder


@pytest.fixture
def folder(files: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Change to a new folder with copies of the certificates, and return its path."""
    monkeypatch.chdir(tmp_path)
    for path in files.glob("*.json"):
        (tmp_path / path.name).write_bytes(path.read_bytes())
    return tmp_path


def make_copying_command(kind: str) -> str:
    """Return the command of a kind of mechanism for p.csv that copies the other columns."""
    clip_options = {"noise": "--clip 0..10000", "places": "--clip"}
    return f"{COMMANDS[kind].format('p.csv')} --copy --out o.csv {clip_options.get(kind, '')}"


@pytest.mark.parametrize("kind", COMMANDS)
@pytest.mark.parametrize("text", BAD_FILES.values(), ids=BAD_FILES)
def test_a_file_with_an_unclear_row_is_refused(folder: Path, capsys, text: str, kind: str):
    Path("p.csv").write_text(text, newline="")
    code, out, _ = run(capsys, make_copying_command(kind))
    assert (code, out) == (2, "")
    assert not Path("o.csv").exists()


@pytest.mark.parametrize("kind", COMMANDS)
def test_every_private_cell_is_noised(folder: Path, capsys, kind: str):
    """The file begins with a byte order mark, and has Windows line ends and a quoted comma."""
    Path("p.csv").write_text(
        '\ufeffpay,y,note\r\n7001,1,ok\r\n7002,1,"a, b"\r\n7003,1,c\r\n', newline=""
    )
    code, _, _ = run(capsys, make_copying_command(kind))
    assert code == 0
    published = read_published()
    assert [row[2] for row in published] == ["note", "ok", "a, b", "c"]
    assert not re.search(r"700[123]\b", ",".join(row[0] for row in published))


def test_line_breaks_inside_cells_need_multiline_and_are_counted(folder: Path, capsys):
    Path("p.csv").write_text('pay,note\n7001,"a\nb"\n7002,c\n')
    command = "quantizer p.csv --column pay --mechanism quantizer.json --copy --out o.csv"
    _, _, err = run(capsys, command)
    assert "--multiline" in err
    code, out, _ = run(capsys, f"{command} --multiline")
    assert code == 0
    assert "1 cells have line breaks" in out
    assert [row[1] for row in read_published()] == ["note", "a\nb", "c"]


@pytest.mark.parametrize("name", ["2020", "1e3", "2nd visit", "(count)", "#visits", "NaN", "x,5"])
@pytest.mark.parametrize(
    "command",
    [
        "noise p.csv --mechanism children.json --local-neighbours",
        "labels p.csv --epsilon 9 --labels 0..3",
        "quantizer p.csv --mechanism quantizer.json",
    ],
)
def test_a_header_is_never_published_as_a_row(folder: Path, capsys, command: str, name: str):
    with Path("p.csv").open("w", newline="") as file:
        csv.writer(file).writerows([["who", name], ["a", 1], ["b", 2], ["c", 3]])
    # The name of the column may contain a space, so the arguments are a list.
    code, _, _ = run(capsys, ["privatise", *command.split(), "--column", name, "--out", "o.csv"])
    assert code == 0
    header, *rows = read_published()
    assert header == [name]
    assert [len(row) for row in rows] == [1, 1, 1]
    assert read_report()["rows"] == 3


# A file whose first row may be the header or data.
YEARS = "2020,2021\n5,7\n8,9\n"
YEARS_COMMAND = "quantizer p.csv --mechanism quantizer.json --out o.csv --column"


def test_a_column_named_by_a_number_needs_header_or_no_header(folder: Path, capsys):
    Path("p.csv").write_text(YEARS)
    code, _, err = run(capsys, f"{YEARS_COMMAND} 2020")
    assert code == 2
    assert "--header or --no-header" in err


def test_with_header_a_first_row_of_numbers_is_the_header(folder: Path, capsys):
    Path("p.csv").write_text(YEARS)
    code, _, _ = run(capsys, f"{YEARS_COMMAND} 2020 --header")
    assert code == 0
    header, *rows = read_published()
    assert header == ["2020"]
    assert len(rows) == 2


def test_a_first_row_of_numbers_is_data_if_the_column_is_a_position(folder: Path, capsys):
    Path("p.csv").write_text(YEARS)
    code, out, _ = run(capsys, f"{YEARS_COMMAND} 1")
    assert code == 0
    assert "was read as data" in out
    rows = read_published()
    assert len(rows) == 3
    assert rows[0] != ["2020"]


def test_without_header_no_column_has_a_name(folder: Path, capsys):
    Path("p.csv").write_text(YEARS)
    code, _, _ = run(capsys, f"{YEARS_COMMAND} 2020 --no-header")
    assert code == 2


DIAGNOSES = "who,pay,diagnosis\na,7001,flu\nb,7002,cold\n"
PAY_COMMAND = "quantizer p.csv --column pay --mechanism quantizer.json --out o.csv"


@pytest.mark.parametrize(
    ("options", "copied_cells"),
    [
        ("", [[], []]),
        ("--person who", [[], []]),
        ("--id who", [["a"], ["b"]]),
        ("--id 1", [["a"], ["b"]]),
    ],
)
def test_only_the_requested_columns_are_written(
    folder: Path, capsys, options: str, copied_cells: list[list[str]]
):
    Path("p.csv").write_text(DIAGNOSES)
    code, _, _ = run(capsys, f"{PAY_COMMAND} {options}")
    assert code == 0
    assert [row[:-1] for row in read_published()[1:]] == copied_cells
    assert "flu" not in Path("o.csv").read_text() + Path("o.csv.json").read_text()


def test_with_copy_all_other_columns_are_written(folder: Path, capsys):
    Path("p.csv").write_text(DIAGNOSES)
    code, _, _ = run(capsys, f"{PAY_COMMAND} --copy")
    assert code == 0
    other_columns = [[who, diagnosis] for who, _, diagnosis in read_published()]
    assert other_columns == [["who", "diagnosis"], ["a", "flu"], ["b", "cold"]]


def test_the_private_column_is_not_copied(folder: Path, capsys):
    Path("p.csv").write_text(DIAGNOSES)
    _, _, err = run(capsys, f"{PAY_COMMAND} --id pay")
    assert "another column than the private one" in err


def test_an_output_is_only_replaced_with_overwrite(folder: Path, capsys):
    Path("p.csv").write_text("pay\n7001\n7002\n")
    command = "quantizer p.csv --column pay --mechanism quantizer.json --out"
    # The output o.csv exists, and so does the report of the output r.csv.
    for output, existing_file in (("o.csv", "o.csv"), ("r.csv", "r.csv.json")):
        Path(existing_file).write_text("mine")
        code, _, err = run(capsys, f"{command} {output}")
        assert code == 2
        assert existing_file in err
        assert "--overwrite" in err
        assert Path(existing_file).read_text() == "mine"
    code, _, _ = run(capsys, f"{command} o.csv --overwrite")
    assert code == 0
    assert len(read_published()) == 3


def test_the_two_columns_of_places_must_differ(folder: Path, capsys):
    Path("p.csv").write_text("x,y\n1,2\n3,4\n")
    for columns in ("x,1", "1,x", "2,y", "1,01", "x,x"):
        code, _, err = run(
            capsys, f"places p.csv --columns {columns} --mechanism city.json --out o.csv"
        )
        assert code == 2
        assert "two different columns" in err or "column must be" in err
        assert not Path("o.csv").exists()


def test_column_names_of_places_may_contain_commas(folder: Path, capsys):
    Path("p.csv").write_text('"x,5",y\n100,20\n8000,5\n')
    for columns in ("x,5,y", '"x,5",y', "1,2"):
        arguments = ["privatise", "places", "p.csv", "--columns", columns]
        arguments += ["--mechanism", "city.json", "--overwrite", "--out", "o.csv"]
        code, _, _ = run(capsys, arguments)
        assert code == 0
        header, *rows = read_published()
        assert header == ["x,5", "y"]
        assert set(chain.from_iterable(rows)) <= {"0.5", "9000.5"}


def test_coordinates_far_from_all_places_are_refused_or_clipped(folder: Path, capsys):
    Path("far.csv").write_text("x,y\n1e308,-1e308\n8000,5\n-1e308,1e308\n")
    command = "places far.csv --columns x,y --mechanism city.json --out f.csv"
    code, _, err = run(capsys, command)
    assert code == 2
    assert "line 2 of far.csv" in err
    assert "2 such rows; --clip" in err
    code, _, _ = run(capsys, f"{command} --clip --json")
    assert code == 0


def test_places_with_huge_coordinates_are_refused(folder: Path, capsys):
    Path("city.csv").write_text("x,y\n1e308,-1e308\n-1e308,1e308\n")
    command = "design channel --places city.csv --neighbours 'all L2' --loss euclidean --epsilon 1"
    code, _, err = run(capsys, shlex.split(command))
    assert code == 2
    assert "places must be of coordinates" in err


# Noise with ε = 1 between ages at most 0.0385 apart.
FINE_COMMAND = "noise p.csv --column age --mechanism fine.json --out o.csv"


@pytest.fixture
def ages(folder: Path) -> None:
    """Write a file of ages in the new folder."""
    Path("p.csv").write_text("age\n18\n95\n31\n")


def test_noise_without_a_range_has_no_budget_between_any_two_values(ages: None, capsys):
    code, _, err = run(capsys, FINE_COMMAND)
    assert code == 2
    assert "--local-neighbours" in err
    assert "unbounded" in err


def test_a_larger_budget_between_any_two_values_needs_local_neighbours(ages: None, capsys):
    code, _, err = run(capsys, f"{FINE_COMMAND} --clip 18..95")
    assert code == 2
    assert "epsilon = 1386.3" in err  # 2000 ln 2
    assert "between any two of 18..95" in err
    assert not Path("o.csv").exists()


def test_the_report_states_the_budget_between_any_two_values(ages: None, capsys):
    code, out, _ = run(capsys, f"{FINE_COMMAND} --clip 18..95 --local-neighbours")
    assert code == 0
    assert "epsilon = 1 between neighbours; epsilon = 1386.3" in out
    report = read_report()
    assert report["budget_of_a_row"]["epsilon"] == 1
    # The distance 77 is 2000 sensitivities, and the density halves over each of them.
    epsilon = report["budget_between_any_two_values"]["epsilon"]
    assert epsilon == pytest.approx(2000 * np.log(2), rel=1e-5)
    assert (report["domain"], report["local_neighbours"]) == ("18..95", True)
    assert any("100 of 100 cases" in sentence for sentence in report["words"])


def test_a_ledger_refuses_a_mechanism_that_is_private_between_neighbours_only(ages: None, capsys):
    code, _, err = run(capsys, f"{FINE_COMMAND} --local-neighbours --ledger account --total inf")
    assert code == 2
    assert "ledger must be left out for a mechanism that is only private between neighb" in err
    assert not Path("account").exists()


def test_a_zcdp_mechanism_has_an_epsilon_between_any_two_values(folder: Path, capsys):
    noise = AdditiveNoise(wb.ModuloNoise(n=2, max_shift=1), [4, 2, 2])
    wb.Certificate(noise, "zcdp", parameters={"rho": 1}).save("zcdp.json")
    Path("p.csv").write_text("children\n0\n2\n1\n")
    command = "noise p.csv --column children --mechanism zcdp.json --out o.csv --ledger account"
    code, _, err = run(capsys, f"{command} --total 9")
    assert code == 2
    assert "one with a budget (epsilon, delta), as account adds these up. Got zcdp, rho = 1" in err
    assert not Path("account").exists()
    code, out, _ = run(capsys, f"{command} --total 9 --total-delta 1e-6 --accounting zcdp")
    assert code == 0
    assert "epsilon = 0.693148 between any two of 0..2" in out
    epsilon = read_report()["budget_between_any_two_values"]["epsilon"]
    assert epsilon == pytest.approx(np.log(2), rel=1e-5)  # The masses are 4, 2 and 2.
    (release,) = ReleaseLedger.open("account").releases
    assert (release.neighbours, release.charge, release.rho) == (None, None, 1)


def test_the_largest_epsilon_of_noise_modulo_9_is_between_answers_four_apart(folder: Path, capsys):
    Path("p.csv").write_text("children\n0\n8\n4\n")
    command = "noise p.csv --column children --mechanism children.json --out o.csv"
    code, _, err = run(capsys, command)
    assert code == 2
    assert "--local-neighbours" in err
    code, _, _ = run(capsys, f"{command} --local-neighbours")
    assert code == 0
    epsilon = read_report()["budget_between_any_two_values"]["epsilon"]
    assert epsilon == pytest.approx(np.log(16), rel=1e-5)  # The masses of 0 and 4 are 16 and 1.


def test_noise_modulo_9_that_is_clipped_to_two_neighbours_has_the_budget_of_neighbours(
    folder: Path, capsys
):
    Path("p.csv").write_text("children\n0\n8\n4\n")
    command = "noise p.csv --column children --mechanism children.json --out o.csv"
    code, _, _ = run(capsys, f"{command} --clip 3..4")
    assert code == 0
    assert read_report()["budget_between_any_two_values"]["epsilon"] == 1


def test_places_that_are_no_neighbours_are_protected_less(folder: Path, capsys):
    Path("p.csv").write_text("x,y\n0,0\n2,0.2\n")
    command = "places p.csv --columns x,y --mechanism near.json --out o.csv"
    _, _, err = run(capsys, command)
    assert "epsilon = 2 between any two" in err
    code, out, _ = run(capsys, f"{command} --local-neighbours")
    assert code == 0
    assert "epsilon = 1 between neighbours; epsilon = 2 between any two" in out


def test_places_with_an_epsilon_per_unit_of_distance_need_no_local_neighbours(folder: Path, capsys):
    """In city.json all pairs of places are neighbours."""
    Path("p.csv").write_text("x,y\n0,0\n2,0.2\n")
    code, _, _ = run(capsys, "places p.csv --columns x,y --mechanism city.json --out m.csv")
    assert code == 0


REAL_COMMAND = "noise p.csv --column pay --mechanism real.json --out o.csv"


def test_errors_about_large_numbers_suggest_a_range_for_clip(folder: Path, capsys):
    Path("p.csv").write_text("pay\n1e301\n7\n")
    _, _, err = run(capsys, REAL_COMMAND)
    assert "--clip LOW..HIGH moves them" in err
    _, _, err = run(capsys, f"{REAL_COMMAND} --clip")
    assert "such as --clip 0..100" in err


def test_a_range_for_clip_moves_the_numbers_outside(folder: Path, capsys):
    Path("p.csv").write_text("pay\n1e301\n7\n")
    code, out, _ = run(capsys, f"{REAL_COMMAND} --clip -5..5")
    assert code == 0
    assert "2 of 2 rows" in out
    assert "any two of -5..5" in out


@pytest.mark.parametrize(
    "command",
    [
        f"{REAL_COMMAND} --clip 5..-5",
        f"{REAL_COMMAND} --clip 0..1e301",
        # The inputs of this quantizer are in 0..10000.
        "quantizer p.csv --column pay --mechanism quantizer.json --clip 0..20000 --out q.csv",
    ],
)
def test_a_bad_range_for_clip_is_refused(folder: Path, capsys, command: str):
    Path("p.csv").write_text("pay\n1e301\n7\n")
    code, _, _ = run(capsys, command)
    assert code == 2


def test_real_noise_is_added_to_the_exact_decimal_of_the_file(folder: Path, capsys):
    """Two integers with the same nearest double are rounded differently to a grid of width 32."""
    noise = make_halving_noise(RealNoise(sensitivity=1, grid=32))
    wb.Certificate(noise, "pure", 1).save("exact.json")
    shares_above = {}
    for number in (100000000000000015, 100000000000000017):
        Path("p.csv").write_text("t\n" + f"{number}\n" * 4000)
        code, _, _ = run(
            capsys,
            "noise p.csv --column t --mechanism exact.json --local-neighbours --insecure-seed 7 "
            "--overwrite --out o.csv",
        )
        assert code == 0
        values = np.array([float(row[0]) for row in read_published()[1:]])
        shares_above[number] = (values > 1e17).mean()
    assert shares_above[100000000000000015] < 0.45 < 0.55 < shares_above[100000000000000017]


@pytest.mark.parametrize(("family", "options"), [("channel", ""), ("quantizer", "--levels 2")])
def test_a_mechanism_designed_by_privatise_has_a_time_limit(
    folder: Path, capsys, monkeypatch, family: str, options: str
):
    """The time limit is 60 s by default."""
    limits = []

    def record_limit_and_stop(self, request):
        """Record the time limit, and raise the error of a reached limit."""
        limits.append(request.how.options.time_limit)
        raise wb.NotProven("The time limit ended it.")

    Path("p.csv").write_text("pay\n7\n")
    monkeypatch.setattr(type(get_family(family)), "design_request", record_limit_and_stop)
    command = f"{family} p.csv --column pay --range 0..9 --epsilon 1 {options} --out o.csv"
    for time_option in ("", "--time-limit 2.5"):
        code, _, _ = run(capsys, f"{command} {time_option}")
        assert code == 2
    assert limits == [60, 2.5]


LABELS_COMMAND = (
    "labels p.csv --column x --labels 0..1:0.1 --epsilon 30 --insecure-seed 1 --out o.csv"
)


@pytest.mark.parametrize("snap", ["", "--snap"])
def test_a_float_that_is_nearly_a_label_is_read_as_this_label(folder: Path, capsys, snap: str):
    values = ["0.30000000000000004", "0.7999999999999999", "0.1"]
    Path("p.csv").write_text("\n".join(["x", *values * 20]))
    code, _, _ = run(capsys, f"{LABELS_COMMAND} {snap}")
    assert code == 0
    published = [float(cell) for (cell,) in read_published()[1:]]
    # An output is the mean of a bin, so it differs a little from the label.
    assert published == pytest.approx([0.3, 0.8, 0.1] * 20, abs=0.04)


def test_a_number_between_labels_is_refused(folder: Path, capsys):
    Path("p.csv").write_text("x\n0.3000001\n")
    _, _, err = run(capsys, LABELS_COMMAND)
    assert "must be one of the 11 labels" in err


# Each release of the quantizer costs ε = 2.
LEDGER_COMMAND = "quantizer p.csv --column pay --mechanism quantizer.json --ledger account"


@pytest.fixture
def pay(folder: Path) -> None:
    """Write a file of two numbers in the new folder."""
    Path("p.csv").write_text("pay\n7001\n7002\n")


@pytest.mark.parametrize(
    ("bad_terms", "name"),
    [
        ("", "total"),
        ("--total 0", "total"),
        ("--total x", "total"),
        ("--total 4 --total-delta 1", "total_delta"),
        ("--total-delta 0.1", "total_delta"),
        ("--total 4 --accounting zcdp", "total_delta"),
        ("--total 4 --accounting exact", "accounting"),
    ],
)
def test_a_ledger_with_bad_terms_is_not_made(pay: None, capsys, bad_terms: str, name: str):
    code, _, err = run(capsys, f"{LEDGER_COMMAND} {bad_terms} --out o.csv")
    assert code == 2
    assert f"InvalidRequest: {name} must be" in err
    assert not Path("account").exists()


TERMS = "--total 5 --total-delta 1e-6"


def test_a_ledger_with_a_limit_reports_the_remaining_budget(pay: None, capsys):
    code, out, _ = run(capsys, f"{LEDGER_COMMAND} {TERMS} --out o.csv")
    assert code == 0
    assert "account has epsilon = 3, delta = 1e-06 left" in out


def test_a_release_beyond_the_remaining_budget_is_refused(pay: None, capsys):
    run(capsys, f"{LEDGER_COMMAND} {TERMS} --out o.csv")
    run(capsys, f"{LEDGER_COMMAND} --out o2.csv")
    code, _, err = run(capsys, f"{LEDGER_COMMAND} --out o3.csv")
    assert code == 2
    assert "epsilon = 2 left. Got account, which has epsilon = 1, delta = 1e-06 left" in err
    assert not Path("o3.csv").exists()
    assert len(ReleaseLedger.open("account").releases) == 2


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ("--total 50", "total must be left out, as account has epsilon = 5"),
        ("--accounting zcdp", "accounting must be left out, as account has basic"),
    ],
)
def test_the_terms_of_a_ledger_cannot_be_changed(pay: None, capsys, options: str, message: str):
    run(capsys, f"{LEDGER_COMMAND} {TERMS} --out o.csv")
    code, _, err = run(capsys, f"{LEDGER_COMMAND} {options} --out o2.csv")
    assert code == 2
    assert message in err
