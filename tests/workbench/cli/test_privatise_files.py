"""Input and output files of `privatise`: no private cell is published unchanged.

Bad files are refused, only the requested columns are written, and reports state the budgets.
"""

from __future__ import annotations

import csv
import json
import re
import shlex
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

import workbench as wb
from workbench.cli import main
from workbench.exact.integer_law import IntegerLaw
from workbench.mechanisms.additive import AdditiveNoise
from workbench.mechanisms.piecewise_affine import PiecewiseAffine
from workbench.mechanisms.real_noise import AdditiveRealNoise
from workbench.privacy.release_ledger import ReleaseLedger
from workbench.questions.unbounded_noise import RealNoise

PLACES = "x,y\n0.5,0.5\n9000.5,0.5\n0.5,9000.5\n"
DESIGN_NEAR = (
    "design channel --places near.csv --neighbours 'within 1 L1' --loss euclidean --notion pure "
    "--epsilon 1 --save near.json"
)
DESIGN_CITY = (
    "design channel --places city.csv --neighbours 'all L2' --loss euclidean --notion metric "
    "--epsilon 0.0001 --save city.json"
)
# One command for each kind of mechanism. {} stands for the input file.
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
    real = AdditiveRealNoise(
        RealNoise(10_000),
        1,
        IntegerLaw(first=-1, weights=[1, 2, 1], period=1, ratio=Fraction(1, 2)),
    )
    wb.Certificate(real, "pure", 1).save(folder / "real.json")
    fine = AdditiveRealNoise(
        RealNoise("0.0385"),
        1,
        IntegerLaw(first=-1, weights=[1, 2, 1], period=1, ratio=Fraction(1, 2)),
    )
    wb.Certificate(fine, "pure", 1).save(folder / "fine.json")
    wb.Certificate(
        PiecewiseAffine.from_laws([0, 10_000], [-2, 12_000], [[3, 1], [1, 3]]), "pure", 2
    ).save(folder / "quantizer.json")
    # Masses of noise modulo 9. Each step away from 0 halves the mass.
    law = [16, 8, 4, 2, 1, 1, 2, 4, 8]
    wb.Certificate(AdditiveNoise(wb.ModuloNoise(n=8, max_shift=1), law), "pure", 1).save(
        folder / "children.json"
    )
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


@pytest.mark.parametrize("kind", COMMANDS)
def test_every_private_cell_is_noised_or_the_file_is_refused(folder: Path, capsys, kind: str):
    command = COMMANDS[kind].format("p.csv") + " --copy --out o.csv"
    command += {"noise": " --clip 0..10000", "places": " --clip"}.get(kind, "")
    for text in BAD_FILES.values():
        Path("p.csv").write_text(text, newline="")
        code, out, _ = run(capsys, command)
        assert code == 2, text
        assert out == "", text
        assert not Path("o.csv").exists(), text
    Path("p.csv").write_text(
        '\ufeffpay,y,note\r\n7001,1,ok\r\n7002,1,"a, b"\r\n7003,1,c\r\n', newline=""
    )
    assert run(capsys, command)[0] == 0
    published = read_published()
    assert [row[2] for row in published] == ["note", "ok", "a, b", "c"]
    assert not re.search(r"700[123]\b", ",".join(row[0] for row in published))


def test_line_breaks_inside_cells_need_multiline_and_are_counted(folder: Path, capsys):
    Path("p.csv").write_text('pay,note\n7001,"a\nb"\n7002,c\n')
    command = "quantizer p.csv --column pay --mechanism quantizer.json --copy --out o.csv"
    assert "--multiline" in run(capsys, command)[2]
    code, out, _ = run(capsys, f"{command} --multiline")
    assert code == 0
    assert "1 cells have line breaks" in out
    assert [row[1] for row in read_published()] == ["note", "a\nb", "c"]


@pytest.mark.parametrize("name", ["2020", "1e3", "2nd visit", "(count)", "#visits", "NaN", "x,5"])
def test_a_header_is_never_published_as_a_row(folder: Path, capsys, name: str):
    with Path("p.csv").open("w", newline="") as file:
        csv.writer(file).writerows([["who", name], ["a", 1], ["b", 2], ["c", 3]])
    for kind in (
        "noise p.csv --mechanism children.json --local-neighbours",
        "labels p.csv --epsilon 9 --labels 0..3",
        "quantizer p.csv --mechanism quantizer.json",
    ):
        arguments = ["privatise", *kind.split(), "--column", name, "--out", "o.csv", "--overwrite"]
        assert run(capsys, arguments)[0] == 0
        assert [*map(len, read_published())] == [1] * 4
        assert read_published()[0] == [name]
        assert json.loads(Path("o.csv.json").read_text())["rows"] == 3


def test_a_first_row_of_numbers_needs_header_or_no_header(folder: Path, capsys):
    Path("p.csv").write_text("2020,2021\n5,7\n8,9\n")
    command = "quantizer p.csv --mechanism quantizer.json --out o.csv --overwrite --column"
    code, _, err = run(capsys, f"{command} 2020")
    assert code == 2
    assert "--header or --no-header" in err
    assert run(capsys, f"{command} 2020 --header")[0] == 0
    assert (len(read_published()), read_published()[0]) == (3, ["2020"])
    code, out, _ = run(capsys, f"{command} 1")
    assert code == 0
    assert len(read_published()) == 3
    assert "was read as data" in out
    assert read_published()[0] != ["2020"]
    assert run(capsys, f"{command} 2020 --no-header")[0] == 2


def test_only_the_requested_columns_are_written(folder: Path, capsys):
    Path("p.csv").write_text("who,pay,diagnosis\na,7001,flu\nb,7002,cold\n")
    command = "quantizer p.csv --column pay --mechanism quantizer.json --overwrite --out o.csv"
    for options, kept in (
        ("", []),
        (" --person who", []),
        (" --id who", ["a", "b"]),
        (" --id 1", ["a", "b"]),
    ):
        assert run(capsys, command + options)[0] == 0
        assert [row[:-1] for row in read_published()[1:]] == (
            [[person] for person in kept] or [[], []]
        )
        assert "flu" not in Path("o.csv").read_text() + Path("o.csv.json").read_text()
    assert run(capsys, f"{command} --copy")[0] == 0
    assert [[row[0], row[2]] for row in read_published()] == [
        ["who", "diagnosis"],
        ["a", "flu"],
        ["b", "cold"],
    ]
    assert "another column than the private one" in run(capsys, f"{command} --id pay")[2]


def test_an_output_is_only_replaced_with_overwrite(folder: Path, capsys):
    Path("p.csv").write_text("pay\n7001\n7002\n")
    command = "quantizer p.csv --column pay --mechanism quantizer.json --out"
    for kept in ("o.csv", "r.csv.json"):
        Path(kept).write_text("mine")
        code, _, err = run(capsys, f"{command} {kept.removesuffix('.json')}")
        assert code == 2
        assert kept in err
        assert "--overwrite" in err
        assert Path(kept).read_text() == "mine"
    assert run(capsys, f"{command} o.csv --overwrite")[0] == 0
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
        assert run(capsys, arguments)[0] == 0
        assert read_published()[0] == ["x,5", "y"]
        assert {cell for row in read_published()[1:] for cell in row} <= {"0.5", "9000.5"}


def test_coordinates_far_from_all_places_are_refused_or_clipped(folder: Path, capsys):
    Path("far.csv").write_text("x,y\n1e308,-1e308\n8000,5\n-1e308,1e308\n")
    command = "places far.csv --columns x,y --mechanism city.json --out f.csv"
    code, _, err = run(capsys, command)
    assert code == 2
    assert "line 2 of far.csv" in err
    assert "2 such rows; --clip" in err
    assert run(capsys, f"{command} --clip --json")[0] == 0


def test_places_with_huge_coordinates_are_refused(folder: Path, capsys):
    Path("city.csv").write_text("x,y\n1e308,-1e308\n-1e308,1e308\n")
    command = "design channel --places city.csv --neighbours 'all L2' --loss euclidean --epsilon 1"
    code, _, err = run(capsys, shlex.split(command))
    assert code == 2
    assert "places must be of coordinates" in err


def test_the_report_states_the_budget_between_any_two_values(folder: Path, capsys):
    Path("p.csv").write_text("age\n18\n95\n31\n")
    command = "noise p.csv --column age --mechanism fine.json --out o.csv"
    code, _, err = run(capsys, command)
    assert code == 2
    assert "--local-neighbours" in err
    assert "unbounded" in err
    code, _, err = run(capsys, f"{command} --clip 18..95")
    assert code == 2
    assert "epsilon = 1386.3" in err
    assert "between any two of 18..95" in err
    assert not Path("o.csv").exists()
    code, out, _ = run(capsys, f"{command} --clip 18..95 --local-neighbours")
    assert code == 0
    assert "epsilon = 1 between neighbours; epsilon = 1386.3" in out
    report = json.loads(Path("o.csv.json").read_text())
    assert report["budget_of_a_row"]["epsilon"] == 1
    # The distance 77 is 2000 sensitivities, and the density halves over each of them.
    assert report["budget_between_any_two_values"]["epsilon"] == pytest.approx(
        2000 * np.log(2), rel=1e-5
    )
    assert report["domain"] == "18..95"
    assert report["local_neighbours"] is True
    assert any("100 of 100 cases" in words for words in report["words"])
    local_command = f"{command} --local-neighbours --overwrite --ledger account --total inf"
    code, _, err = run(capsys, local_command)
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
    Path("account").unlink()
    code, out, _ = run(capsys, f"{command} --total 9 --total-delta 1e-6 --accounting zcdp")
    assert code == 0
    assert "epsilon = 0.693148 between any two of 0..2" in out
    report = json.loads(Path("o.csv.json").read_text())
    assert report["budget_between_any_two_values"]["epsilon"] == pytest.approx(np.log(2), rel=1e-5)
    (release,) = ReleaseLedger.open("account").releases
    assert (release.neighbours, release.charge, release.rho) == (None, None, 1)


def test_the_largest_epsilon_of_noise_modulo_9_is_between_answers_four_apart(folder: Path, capsys):
    Path("p.csv").write_text("children\n0\n8\n4\n")
    command = "noise p.csv --column children --mechanism children.json --out o.csv"
    code, _, err = run(capsys, command)
    largest = float(np.log(16))  # The masses of 0 and 4 are 16 and 1.
    assert code == 2
    assert "--local-neighbours" in err
    assert run(capsys, f"{command} --local-neighbours")[0] == 0
    report = json.loads(Path("o.csv.json").read_text())
    assert report["budget_between_any_two_values"]["epsilon"] == pytest.approx(largest, rel=1e-5)
    assert run(capsys, f"{command} --clip 3..4 --overwrite")[0] == 0  # 3 and 4 are neighbours.
    report = json.loads(Path("o.csv.json").read_text())
    assert report["budget_between_any_two_values"]["epsilon"] == 1


def test_places_that_are_no_neighbours_are_protected_less(folder: Path, capsys):
    Path("p.csv").write_text("x,y\n0,0\n2,0.2\n")
    command = "places p.csv --columns x,y --mechanism near.json --out o.csv"
    assert "epsilon = 2 between any two" in run(capsys, command)[2]
    code, out, _ = run(capsys, f"{command} --local-neighbours")
    assert code == 0
    assert "epsilon = 1 between neighbours; epsilon = 2 between any two" in out
    # In city.json all pairs are neighbours, with an ε per unit of distance.
    assert run(capsys, "places p.csv --columns x,y --mechanism city.json --out m.csv")[0] == 0


def test_the_range_that_an_error_suggests_for_clip_is_accepted(folder: Path, capsys):
    Path("p.csv").write_text("pay\n1e301\n7\n")
    command = "noise p.csv --column pay --mechanism real.json --out o.csv"
    assert "--clip LOW..HIGH moves them" in run(capsys, command)[2]
    assert "such as --clip 0..100" in run(capsys, f"{command} --clip")[2]
    code, out, _ = run(capsys, f"{command} --clip -5..5")
    assert code == 0
    assert "2 of 2 rows" in out
    assert "any two of -5..5" in out
    for bad_value in ("5..-5", "0..1e301"):
        assert run(capsys, f"{command} --clip {bad_value} --overwrite")[0] == 2
    assert (
        run(
            capsys,
            "quantizer p.csv --column pay --mechanism quantizer.json --clip 0..20000 --out q.csv",
        )[0]
        == 2
    )


def test_real_noise_is_added_to_the_exact_decimal_of_the_file(folder: Path, capsys):
    """Two integers with the same nearest double are rounded differently to a grid of width 32."""
    noise = wb.Certificate(
        AdditiveRealNoise(
            RealNoise(sensitivity=1, grid=32),
            1,
            IntegerLaw(first=-1, weights=[1, 2, 1], period=1, ratio=Fraction(1, 2)),
        ),
        "pure",
        1,
    )
    noise.save("exact.json")
    shares_above = {}
    for number in (100000000000000015, 100000000000000017):
        Path("p.csv").write_text("t\n" + f"{number}\n" * 4000)
        command = "noise p.csv --column t --mechanism exact.json --local-neighbours --overwrite --out o.csv"
        assert run(capsys, f"{command} --insecure-seed 7")[0] == 0
        values = np.array([float(row[0]) for row in read_published()[1:]])
        shares_above[number] = (values > 1e17).mean()
    assert shares_above[100000000000000015] < 0.45 < 0.55 < shares_above[100000000000000017]


def test_a_mechanism_designed_by_privatise_has_a_time_limit(folder: Path, capsys, monkeypatch):
    from workbench.pipeline.registry import get_family

    limits = []

    def record_limit_and_stop(request):
        limits.append(request.how.options.time_limit)
        raise wb.NotProven("The time limit ended it.")

    Path("p.csv").write_text("pay\n7\n")
    for kind, options in (("channel", ""), ("quantizer", "--levels 2")):
        monkeypatch.setattr(
            type(get_family(kind)),
            "design_request",
            lambda self, request: record_limit_and_stop(request),
        )
        command = f"{kind} p.csv --column pay --range 0..9 --epsilon 1 {options} --out o.csv"
        assert run(capsys, command)[0] == run(capsys, f"{command} --time-limit 2.5")[0] == 2
    assert limits == [60, 2.5] * 2


def test_a_float_that_is_nearly_a_label_is_read_as_this_label(folder: Path, capsys):
    values = ["0.30000000000000004", "0.7999999999999999", "0.1"]
    for options in ("", " --snap"):
        Path("p.csv").write_text("\n".join(["x", *values * 20]))
        command = "labels p.csv --column x --labels 0..1:0.1 --epsilon 30 --insecure-seed 1 --overwrite --out o.csv"
        assert run(capsys, command + options)[0] == 0
        published = [float(row[0]) for row in read_published()[1:]]
        # An output is the mean of a bin, so it differs a little from the label.
        assert published == pytest.approx([0.3, 0.8, 0.1] * 20, abs=0.04)
    Path("p.csv").write_text("x\n0.3000001\n")
    assert "must be one of the 11 labels" in run(capsys, command)[2]


def test_a_ledger_with_a_limit_reports_the_remaining_budget(folder: Path, capsys):
    Path("p.csv").write_text("pay\n7001\n7002\n")
    command = "quantizer p.csv --column pay --mechanism quantizer.json --ledger account"
    for bad_terms, name in (
        ("", "total"),
        ("--total 0", "total"),
        ("--total x", "total"),
        ("--total 4 --total-delta 1", "total_delta"),
        ("--total-delta 0.1", "total_delta"),
        ("--total 4 --accounting zcdp", "total_delta"),
        ("--total 4 --accounting exact", "accounting"),
    ):
        code, _, err = run(capsys, f"{command} {bad_terms} --out o.csv")
        assert code == 2
        assert f"InvalidRequest: {name} must be" in err
        assert not Path("account").exists()
    code, out, _ = run(capsys, f"{command} --total 5 --total-delta 1e-6 --out o.csv")
    assert code == 0
    assert "account has epsilon = 3, delta = 1e-06 left" in out
    assert run(capsys, f"{command} --out p2.csv")[0] == 0
    code, _, err = run(capsys, f"{command} --out p3.csv")
    assert code == 2
    assert "epsilon = 2 left. Got account, which has epsilon = 1, delta = 1e-06 left" in err
    assert not Path("p3.csv").exists()
    assert len(ReleaseLedger.open("account").releases) == 2
    code, _, err = run(capsys, f"{command} --total 50 --out p3.csv")
    assert code == 2
    assert "total must be left out, as account has epsilon = 5" in err
    code, _, err = run(capsys, f"{command} --accounting zcdp --out p3.csv")
    assert "accounting must be left out, as account has basic" in err
