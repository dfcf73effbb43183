"""What `workbench privatise` reads, writes and promises: no private cell leaves it as it was."""

from __future__ import annotations

import csv
import json
import re
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
NEAR = ["design", "channel", "--places", "near.csv", "--neighbours", "within 1 L1", "--loss", "euclidean", "--notion",
        "pure", "--epsilon", "1", "--save", "near.json"]  # fmt: skip
CITY = ["design", "channel", "--places", "city.csv", "--neighbours", "all L2", "--loss", "euclidean", "--notion",
        "metric", "--epsilon", "0.0001", "--save", "city.json"]  # fmt: skip
COMMANDS = {
    "noise": "noise {} --column pay --mechanism real.json",
    "quantizer": "quantizer {} --column pay --mechanism quantizer.json",
    "labels": "labels {} --column pay --epsilon 9 --labels 0..10000:2500 --snap",
    "places": "places {} --columns pay,y --mechanism city.json",
}
HOSTILE = {
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


def run(capsys: pytest.CaptureFixture[str], line: str | list[str]) -> tuple[int, str, str]:
    with pytest.raises(SystemExit) as stop:
        main(line if isinstance(line, list) else ["privatise", *line.split()])
    out, err = capsys.readouterr()
    return int(stop.value.code or 0), " ".join(out.split()), " ".join(err.split())


def cells(name: str = "o.csv") -> list[list[str]]:
    with Path(name).open(newline="") as file:
        return list(csv.reader(file))


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("files")
    (folder / "city.csv").write_text(PLACES)
    (folder / "near.csv").write_text("x,y\n0,0\n1,0\n2,0\n")
    real = AdditiveRealNoise(RealNoise(10_000), 1, IntegerLaw(-1, [1, 2, 1], 1, Fraction(1, 2)))
    wb.Certificate(real, "pure", 1).save(folder / "real.json")
    fine = AdditiveRealNoise(RealNoise("0.0385"), 1, IntegerLaw(-1, [1, 2, 1], 1, Fraction(1, 2)))
    wb.Certificate(fine, "pure", 1).save(folder / "fine.json")
    wb.Certificate(
        PiecewiseAffine.from_laws([0, 10_000], [-2, 12_000], [[3, 1], [1, 3]]), "pure", 2
    ).save(folder / "quantizer.json")
    law = [16, 8, 4, 2, 1, 1, 2, 4, 8]  # around the circle of 9 answers
    wb.Certificate(AdditiveNoise(wb.ModuloNoise(n=8, max_shift=1), law), "pure", 1).save(
        folder / "children.json"
    )
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        for line in (CITY, NEAR):
            with pytest.raises(SystemExit) as stop:
                main(line)
            assert not stop.value.code
    return folder


@pytest.fixture
def folder(files: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    for path in files.glob("*.json"):
        (tmp_path / path.name).write_bytes(path.read_bytes())
    return tmp_path


@pytest.mark.parametrize("kind", COMMANDS)
def test_every_private_cell_is_noised_or_the_file_is_refused(folder: Path, capsys, kind: str):
    line = COMMANDS[kind].format("p.csv") + " --copy --out o.csv"
    line += " --clip 0..10000" if kind == "noise" else " --clip" if kind == "places" else ""
    for text in HOSTILE.values():
        Path("p.csv").write_text(text, newline="")
        code, out, _ = run(capsys, line)
        assert (code, out, Path("o.csv").exists()) == (2, "", False), text
    Path("p.csv").write_text(
        '\ufeffpay,y,note\r\n7001,1,ok\r\n7002,1,"a, b"\r\n7003,1,c\r\n', newline=""
    )
    assert run(capsys, line)[0] == 0
    published = cells()
    assert [row[2] for row in published] == ["note", "ok", "a, b", "c"]
    assert not re.search(r"700[123]\b", ",".join(row[0] for row in published))


def test_line_breaks_inside_cells_are_asked_for_and_counted(folder: Path, capsys):
    Path("p.csv").write_text('pay,note\n7001,"a\nb"\n7002,c\n')
    line = "quantizer p.csv --column pay --mechanism quantizer.json --copy --out o.csv"
    assert "--multiline" in run(capsys, line)[2]
    code, out, _ = run(capsys, f"{line} --multiline")
    assert code == 0
    assert "1 cells have line breaks" in out
    assert [row[1] for row in cells()] == ["note", "a\nb", "c"]


@pytest.mark.parametrize("name", ["2020", "1e3", "2nd visit", "(count)", "#visits", "NaN", "x,5"])
def test_a_header_is_never_a_person(folder: Path, capsys, name: str):
    with Path("p.csv").open("w", newline="") as file:
        csv.writer(file).writerows([["who", name], ["a", 1], ["b", 2], ["c", 3]])
    for kind in ("noise p.csv --mechanism children.json --local-neighbours", "labels p.csv --epsilon 9 --labels 0..3",
                 "quantizer p.csv --mechanism quantizer.json"):  # fmt: skip
        words = ["privatise", *kind.split(), "--column", name, "--out", "o.csv", "--overwrite"]
        assert run(capsys, words)[0] == 0
        assert [*map(len, cells())] == [1] * 4
        assert cells()[0] == [name]
        assert json.loads(Path("o.csv.json").read_text())["rows"] == 3


def test_a_first_row_of_numbers_is_said_to_be_a_header_or_not(folder: Path, capsys):
    Path("p.csv").write_text("2020,2021\n5,7\n8,9\n")
    line = "quantizer p.csv --mechanism quantizer.json --out o.csv --overwrite --column"
    code, _, err = run(capsys, f"{line} 2020")
    assert code == 2
    assert "--header or --no-header" in err
    assert run(capsys, f"{line} 2020 --header")[0] == 0
    assert (len(cells()), cells()[0]) == (3, ["2020"])
    code, out, _ = run(capsys, f"{line} 1")
    assert code == 0
    assert len(cells()) == 3
    assert "was read as data" in out
    assert cells()[0] != ["2020"]
    assert run(capsys, f"{line} 2020 --no-header")[0] == 2


def test_only_what_is_asked_for_is_written(folder: Path, capsys):
    Path("p.csv").write_text("who,pay,diagnosis\na,7001,flu\nb,7002,cold\n")
    line = "quantizer p.csv --column pay --mechanism quantizer.json --overwrite --out o.csv"
    for more, kept in (
        ("", []),
        (" --person who", []),
        (" --id who", ["a", "b"]),
        (" --id 1", ["a", "b"]),
    ):
        assert run(capsys, line + more)[0] == 0
        assert [row[:-1] for row in cells()[1:]] == ([[each] for each in kept] or [[], []])
        assert "flu" not in Path("o.csv").read_text() + Path("o.csv.json").read_text()
    assert run(capsys, f"{line} --copy")[0] == 0
    assert [[row[0], row[2]] for row in cells()] == [
        ["who", "diagnosis"],
        ["a", "flu"],
        ["b", "cold"],
    ]
    assert "another column than the private one" in run(capsys, f"{line} --id pay")[2]


def test_an_output_is_replaced_only_when_asked(folder: Path, capsys):
    Path("p.csv").write_text("pay\n7001\n7002\n")
    line = "quantizer p.csv --column pay --mechanism quantizer.json --out"
    for kept in ("o.csv", "r.csv.json"):
        Path(kept).write_text("mine")
        code, _, err = run(capsys, f"{line} {kept.removesuffix('.json')}")
        assert code == 2
        assert kept in err
        assert "--overwrite" in err
        assert Path(kept).read_text() == "mine"
    assert run(capsys, f"{line} o.csv --overwrite")[0] == 0
    assert len(cells()) == 3


def test_no_column_is_published_twice_or_left_raw(folder: Path, capsys):
    Path("p.csv").write_text("x,y\n1,2\n3,4\n")
    for columns in ("x,1", "1,x", "2,y", "1,01", "x,x"):
        code, _, err = run(
            capsys, f"places p.csv --columns {columns} --mechanism city.json --out o.csv"
        )
        assert code == 2
        assert ("two different columns" in err or "column must be" in err) is True
        assert not Path("o.csv").exists()


def test_names_with_commas_and_huge_coordinates(folder: Path, capsys):
    Path("p.csv").write_text('"x,5",y\n100,20\n8000,5\n')
    for columns in ("x,5,y", '"x,5",y', "1,2"):
        words = [
            "privatise",
            "places",
            "p.csv",
            "--columns",
            columns,
            "--mechanism",
            "city.json",
            "--overwrite",
        ]
        assert run(capsys, [*words, "--out", "o.csv"])[0] == 0
        assert cells()[0] == ["x,5", "y"]
        assert {cell for row in cells()[1:] for cell in row} <= {"0.5", "9000.5"}
    Path("far.csv").write_text("x,y\n1e308,-1e308\n8000,5\n-1e308,1e308\n")
    line = "places far.csv --columns x,y --mechanism city.json --out f.csv"
    code, _, err = run(capsys, line)
    assert code == 2
    assert "line 2 of far.csv" in err
    assert "2 such rows; --clip" in err
    assert run(capsys, f"{line} --clip --json")[0] == 0
    Path("city.csv").write_text("x,y\n1e308,-1e308\n-1e308,1e308\n")
    code, _, err = run(capsys, ["design", "channel", "--places", "city.csv", "--neighbours", "all L2", "--loss",
                                "euclidean", "--epsilon", "1"])  # fmt: skip
    assert code == 2
    assert "places must be of coordinates" in err


def test_the_budget_between_any_two_values_is_said(folder: Path, capsys):
    Path("p.csv").write_text("age\n18\n95\n31\n")
    line = "noise p.csv --column age --mechanism fine.json --out o.csv"
    code, _, err = run(capsys, line)
    assert code == 2
    assert "--local-neighbours" in err
    assert "unbounded" in err
    code, _, err = run(capsys, f"{line} --clip 18..95")
    assert code == 2
    assert "epsilon = 1386.3" in err
    assert "between any two of 18..95" in err
    assert not Path("o.csv").exists()
    code, out, _ = run(capsys, f"{line} --clip 18..95 --local-neighbours")
    assert code == 0
    assert "epsilon = 1 between neighbours; epsilon = 1386.3" in out
    report = json.loads(Path("o.csv.json").read_text())
    assert report["budget_of_a_row"]["epsilon"] == 1
    # 77 is 2000 sensitivities, over each of which the density halves
    assert report["budget_between_any_two_values"]["epsilon"] == pytest.approx(
        2000 * np.log(2), rel=1e-5
    )
    assert report["domain"] == "18..95"
    assert report["local_neighbours"] is True
    assert any("100 of 100 cases" in words for words in report["words"])
    assert run(capsys, f"{line} --local-neighbours --overwrite --ledger account")[0] == 0
    (booked,) = ReleaseLedger.open("account").releases
    assert (booked.neighbours.epsilon, booked.charge.epsilon) == (1, None)


def test_a_notion_without_epsilon_still_has_one_between_any_two_values(folder: Path, capsys):
    noise = AdditiveNoise(wb.ModuloNoise(n=2, max_shift=1), [4, 2, 2])
    wb.Certificate(noise, "zcdp", parameters={"rho": 1}).save("zcdp.json")
    Path("p.csv").write_text("children\n0\n2\n1\n")
    code, out, _ = run(
        capsys, "noise p.csv --column children --mechanism zcdp.json --out o.csv --ledger account"
    )
    assert code == 0
    assert "epsilon = 0.693148 between any two of 0..2" in out
    report = json.loads(Path("o.csv.json").read_text())
    assert report["budget_between_any_two_values"]["epsilon"] == pytest.approx(np.log(2), rel=1e-5)
    (booked,) = ReleaseLedger.open("account").releases
    assert (booked.neighbours, booked.charge, booked.rho) == (None, None, 1)


def test_children_apart_by_eight_are_protected_at_four(folder: Path, capsys):
    Path("p.csv").write_text("children\n0\n8\n4\n")
    line = "noise p.csv --column children --mechanism children.json --out o.csv"
    code, _, err = run(capsys, line)
    largest = float(np.log(16))  # of the law around the circle, between answers four apart
    assert code == 2
    assert "--local-neighbours" in err
    assert run(capsys, f"{line} --local-neighbours")[0] == 0
    report = json.loads(Path("o.csv.json").read_text())
    assert report["budget_between_any_two_values"]["epsilon"] == pytest.approx(largest, rel=1e-5)
    assert run(capsys, f"{line} --clip 3..4 --overwrite")[0] == 0  # between neighbours alone
    assert (
        json.loads(Path("o.csv.json").read_text())["budget_between_any_two_values"]["epsilon"] == 1
    )


def test_places_that_are_no_neighbours_are_protected_less(folder: Path, capsys):
    Path("p.csv").write_text("x,y\n0,0\n2,0.2\n")
    line = "places p.csv --columns x,y --mechanism near.json --out o.csv"
    assert "epsilon = 2 between any two" in run(capsys, line)[2]
    code, out, _ = run(capsys, f"{line} --local-neighbours")
    assert code == 0
    assert "epsilon = 1 between neighbours; epsilon = 2 between any two" in out
    assert (
        run(capsys, "places p.csv --columns x,y --mechanism city.json --out m.csv")[0] == 0
    )  # by distance, all pairs


def test_the_clip_that_is_suggested_is_taken(folder: Path, capsys):
    Path("p.csv").write_text("pay\n1e301\n7\n")
    line = "noise p.csv --column pay --mechanism real.json --out o.csv"
    assert "--clip LOW..HIGH moves them" in run(capsys, line)[2]
    assert "such as --clip 0..100" in run(capsys, f"{line} --clip")[2]
    code, out, _ = run(capsys, f"{line} --clip -5..5")
    assert code == 0
    assert "2 of 2 rows" in out
    assert "any two of -5..5" in out
    for wrong in ("5..-5", "0..1e301"):
        assert run(capsys, f"{line} --clip {wrong} --overwrite")[0] == 2
    assert (
        run(
            capsys,
            "quantizer p.csv --column pay --mechanism quantizer.json --clip 0..20000 --out q.csv",
        )[0]
        == 2
    )


def test_real_noise_is_added_to_the_decimal_of_the_file(folder: Path, capsys):
    """Two numbers that are one double: a grid of 32 rounds the one down as often as the other up."""
    noise = wb.Certificate(
        AdditiveRealNoise(RealNoise(1, 32), 1, IntegerLaw(-1, [1, 2, 1], 1, Fraction(1, 2))),
        "pure",
        1,
    )
    noise.save("exact.json")
    counts = {}
    for number in (100000000000000015, 100000000000000017):  # one double
        Path("p.csv").write_text("t\n" + f"{number}\n" * 4000)
        line = "noise p.csv --column t --mechanism exact.json --local-neighbours --overwrite --out o.csv"
        assert run(capsys, f"{line} --insecure-seed 7")[0] == 0
        values = np.array([float(row[0]) for row in cells()[1:]])
        counts[number] = (values > 1e17).mean()
    assert counts[100000000000000015] < 0.45 < 0.55 < counts[100000000000000017]


def test_a_design_on_the_spot_has_a_time_limit(folder: Path, capsys, monkeypatch):
    from workbench.pipeline.registry import get_family

    limits = []

    def designed(request):
        limits.append(request.how.options.time_limit)
        raise wb.NotProven("The time limit ended it.")

    Path("p.csv").write_text("pay\n7\n")
    for kind, more in (("channel", ""), ("quantizer", "--levels 2")):
        monkeypatch.setattr(
            type(get_family(kind)), "design_request", lambda self, request: designed(request)
        )
        line = f"{kind} p.csv --column pay --range 0..9 --epsilon 1 {more} --out o.csv"
        assert run(capsys, line)[0] == run(capsys, f"{line} --time-limit 2.5")[0] == 2
    assert limits == [60, 2.5] * 2


def test_computed_floats_are_the_labels_they_are_near(folder: Path, capsys):
    values = ["0.30000000000000004", "0.7999999999999999", "0.1"]
    for more in ("", " --snap"):
        Path("p.csv").write_text("\n".join(["x", *values * 20]))
        line = "labels p.csv --column x --labels 0..1:0.1 --epsilon 30 --insecure-seed 1 --overwrite --out o.csv"
        assert run(capsys, line + more)[0] == 0
        published = [float(row[0]) for row in cells()[1:]]
        assert published == pytest.approx(
            [0.3, 0.8, 0.1] * 20, abs=0.04
        )  # outputs are bins' values
    Path("p.csv").write_text("x\n0.3000001\n")
    assert "must be one of the 11 labels" in run(capsys, line)[2]


def test_a_ledger_with_a_limit_says_what_is_left(folder: Path, capsys):
    Path("p.csv").write_text("pay\n7001\n7002\n")
    line = "quantizer p.csv --column pay --mechanism quantizer.json --ledger account"
    for wrong in ("0", "x", "4,2", "-1"):
        code, _, err = run(capsys, f"{line} --ledger-limit {wrong} --out o.csv")
        assert code == 2
        assert "ledger_limit" in err
        assert not Path("account").exists()
    code, out, _ = run(capsys, f"{line} --ledger-limit 5,1e-6 --out o.csv")
    assert code == 0
    assert "account has epsilon = 3, delta = 1e-06 left" in out
    assert run(capsys, f"{line} --out p2.csv")[0] == 0
    code, _, err = run(capsys, f"{line} --out p3.csv")
    assert code == 2
    assert "epsilon = 2 left. Got account, which has epsilon = 1, delta = 1e-06 left" in err
    assert not Path("p3.csv").exists()
    assert len(ReleaseLedger.open("account").releases) == 2
    code, _, err = run(capsys, f"{line} --ledger-limit 50 --out p3.csv")
    assert code == 2
    assert "left out, as account has epsilon = 5" in err
