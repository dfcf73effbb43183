"""Test the commands `privatise noise`, `quantizer` and `labels`.

Each command publishes one column of a CSV file by a mechanism, row by row. It writes the output
o.csv and the report o.csv.json, which is published too. What it prints, and the object of --json,
is for the user only: it may depend on the private data. With --ledger the budgets of all releases
are added up.
"""

from __future__ import annotations

import csv
import json
import stat
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import workbench as wb
from workbench.cli import main, privatise
from workbench.mechanisms.additive import AdditiveNoise
from workbench.mechanisms.piecewise_affine import PiecewiseAffine
from workbench.privacy.expected_error import compute_expected_error
from workbench.privacy.privacy_budget import PrivacyBudget, add_budgets
from workbench.privacy.release_ledger import LedgerTerms, ReleaseLedger

# The noise of noise.json costs (1.5, 0.01) a row.
AGE_COMMAND = "noise p.csv --column age --mechanism noise.json"
# Six rows of three people.
PEOPLE = "who,age,change\nann,1,0.25\nbob,4,-1\nann,0,0.75\ncyd,4,1\nann,2,0\nbob,3,-0.5\n"


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with certificates and mechanisms, by the names in the commands."""
    folder = tmp_path_factory.mktemp("certificates")
    noise = AdditiveNoise(wb.ModuloNoise(n=4, max_shift=4), [4, 1, 1, 1, 1])
    wb.Certificate(noise, "dp", "3/2", "1/100").save(folder / "noise.json")
    noise.save(folder / "raw.json")
    wb.Certificate(
        AdditiveNoise(wb.ModuloNoise(n=4, shifts=[1], directed=True), [2, 1, 1, 1, 1]), "pure", 1
    ).save(folder / "step.json")
    quantizer = PiecewiseAffine.from_laws([-1, 1], [-2, 2], [[3, 1], [1, 3]])
    wb.Certificate(quantizer, "pure", "11/10").save(folder / "quantizer.json")
    quantizer.save(folder / "raw-quantizer.json")
    pair = AdditiveNoise(wb.ModuloNoise(sizes=[2, 2], shifts=[(0, 1)]), [2, 1, 1, 1])
    wb.Certificate(pair, "pure", 1).save(folder / "vector.json")
    wb.Certificate(noise, "zcdp", parameters={"rho": 1}).save(folder / "zcdp.json")
    return folder


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Change to a folder with the file p.csv of PEOPLE, and return its path."""
    monkeypatch.chdir(tmp_path)
    Path("p.csv").write_text(PEOPLE)
    return tmp_path


def run(
    capsys: pytest.CaptureFixture[str], command: str, certificates: Path
) -> tuple[int, str, str]:
    """Run `workbench privatise`. Names such as noise.json stand for files of `certificates`.

    Returns the exit code, the text on stdout with single spaces, and the text on stderr.
    """
    arguments = ["privatise"]
    for word in command.split():
        is_certificate = word.endswith(".json") and "/" not in word
        arguments.append(str(certificates / word) if is_certificate else word)
    with pytest.raises(SystemExit) as stop:
        main(arguments)
    out, err = capsys.readouterr()
    return stop.value.code or 0, " ".join(out.split()), err


def read_csv(path: str) -> list[list[str]]:
    """Return the rows of a CSV file, with the header."""
    with Path(path).open(newline="") as file:
        return list(csv.reader(file))


def read_report() -> dict[str, Any]:
    """Return the published report beside o.csv."""
    return json.loads(Path("o.csv.json").read_text())


@pytest.fixture
def noisy_ages(folder: Path, certificates: Path, capsys) -> dict[str, Any]:
    """Publish the ages into o.csv with copies of the other columns. Return the JSON object."""
    code, out, _ = run(capsys, f"{AGE_COMMAND} --copy --out o.csv --json", certificates)
    assert code == 0
    return json.loads(out)


def test_privatise_noise_changes_the_private_column_only(noisy_ages: dict[str, Any]):
    rows, published_rows = read_csv("p.csv"), read_csv("o.csv")
    other_columns = [[who, change] for who, _, change in rows]
    assert [[who, change] for who, _, change in published_rows] == other_columns
    assert {age for _, age, _ in published_rows[1:]} <= set("01234")


def test_only_the_owner_can_read_an_output_with_copied_columns(noisy_ages: dict[str, Any]):
    assert stat.S_IMODE(Path("o.csv").stat().st_mode) == 0o600


def test_the_published_report_has_no_number_that_depends_on_the_data(noisy_ages: dict[str, Any]):
    private_values = {"file": "o.csv", "clipped_rows": 0, "rows_of_one_person": None}
    assert noisy_ages == read_report() | private_values


def test_the_report_states_the_claim_and_the_budget(noisy_ages: dict[str, Any]):
    assert noisy_ages["claim"] == {"notion": "dp", "epsilon": "1.5", "delta": "0.01"}
    assert noisy_ages["budget"] == {"epsilon": 1.5, "delta": 0.01, "per_distance": False}


def test_the_report_of_noise_has_the_expected_errors(noisy_ages: dict[str, Any]):
    """The noise is 0 with probability 1/2, and each of 1..4 modulo 5 with probability 1/8.

    An answer x has the mean absolute error Σ |y - x| / 8. It is (1 + 2 + 3 + 4) / 8 at the ends.
    """
    assert noisy_ages["expected_error"] == pytest.approx(
        {
            "probability of a wrong answer": 0.5,
            "mean distance modulo n + 1": 0.75,
            "mean absolute error of answers spread evenly": 1,
            "largest mean absolute error of any answer": 1.25,
            "largest shift of the mean of any answer": 1.25,
        }
    )


@pytest.mark.parametrize(
    "words", ["k times as large", "Another release", "other columns are copied"]
)
def test_the_report_warns_of_more_rows_more_releases_and_copies(
    noisy_ages: dict[str, Any], words: str
):
    assert any(words in sentence for sentence in noisy_ages["words"])


def test_privatise_quantizer_publishes_outputs_and_a_report(
    folder: Path, certificates: Path, capsys
):
    command = "quantizer p.csv --column change --mechanism quantizer.json --copy --out o.csv"
    code, out, _ = run(capsys, command, certificates)
    assert code == 0
    assert {row[2] for row in read_csv("o.csv")[1:]} <= {"2", "-2"}
    report = read_report()
    # The error at x is E|M(x) - x| = 2 - x²/2. It is 2 at x = 0, and 2 - 1/6 on average.
    errors = report["expected_error"]
    largest_error = errors["largest mean absolute error of any input"]
    mean_error = errors["mean absolute error of inputs spread evenly"]
    assert (largest_error, mean_error) == pytest.approx((2, 11 / 6), rel=1e-12)
    assert report["budget"]["epsilon"] == 1.1
    assert "epsilon = 1.1" in out


def test_published_noise_has_the_masses_of_the_mechanism():
    noise = AdditiveNoise(wb.ModuloNoise(n=4, max_shift=4), [4, 1, 1, 1, 1])
    answers = np.repeat(np.arange(5), 20_000)
    noise_values = (noise.publish(answers, insecure_seed=1) - answers) % 5
    for answer in range(5):
        counts = np.bincount(noise_values[answers == answer], minlength=5)
        expected = 20_000 * np.array([4, 1, 1, 1, 1]) / 8
        chi_square = float(((counts - expected) ** 2 / expected).sum())
        assert chi_square < 25  # With 4 degrees of freedom, 25 is exceeded with probability 5e-5.
    assert not np.array_equal(noise.publish(answers), noise.publish(answers))


@pytest.mark.parametrize("answers", [[0.0], [5], [-1], [[1]]])
def test_answers_that_are_no_list_of_integers_in_the_range_are_not_published(answers: list[Any]):
    noise = AdditiveNoise(wb.ModuloNoise(n=4, max_shift=4), [4, 1, 1, 1, 1])
    with pytest.raises(wb.InvalidRequest, match="answers must be"):
        noise.publish(np.array(answers))


def test_noise_of_vectors_is_not_published():
    vector = AdditiveNoise(wb.ModuloNoise(sizes=(2, 2), shifts=[(0, 1)]), [1, 1, 1, 1])
    with pytest.raises(wb.InvalidRequest, match="mechanism must be"):
        vector.publish(np.zeros(3, dtype=int))


def test_rows_of_one_person_add_up(folder: Path, certificates: Path, capsys):
    """Ann has three rows, more than the others."""
    command = f"{AGE_COMMAND} --out o.csv --person who --json"
    code, out, _ = run(capsys, command, certificates)
    assert code == 0
    report = json.loads(out)
    assert report["rows_of_one_person"] == 3
    assert report["budget_of_a_row"]["epsilon"] == 1.5
    assert report["budget"]["epsilon"] == 4.5
    # δ is a float, rounded up.
    assert 0 <= Fraction(report["budget"]["delta"]) / Fraction(3, 100) - 1 < Fraction(1, 10**15)
    assert any("together epsilon = 4.5, delta = 0.03" in sentence for sentence in report["words"])


def test_the_published_report_does_not_tell_how_many_rows_a_person_has(
    folder: Path, certificates: Path, capsys
):
    run(capsys, f"{AGE_COMMAND} --out o.csv --person who", certificates)
    assert {"rows_of_one_person", "budget"}.isdisjoint(read_report())
    text = Path("o.csv.json").read_text()
    assert "4.5" not in text
    assert "3 rows" not in text
    assert "k times as large." in text


@pytest.mark.parametrize(
    ("names", "row_count"),
    [
        (["7", "07", "7.0", "+7", " 7 "], 5),
        (["Ann", "ANN", "ann\u00a0", "a\u200bnn", "bob"], 4),
        (["\u00e9", "e\u0301", "E\u0301", "e"], 3),
        (["1", "2", "10", "1a"], 1),
    ],
)
def test_spellings_of_one_person_are_one_person(
    folder: Path, certificates: Path, capsys, names: list[str], row_count: int
):
    Path("q.csv").write_text("who,age\n" + "".join(f"{name},1\n" for name in names))
    command = AGE_COMMAND.replace("p.csv", "q.csv") + " --out o.csv --person who --json"
    _, out, _ = run(capsys, command, certificates)
    assert json.loads(out)["rows_of_one_person"] == row_count


def test_labels_read_from_the_column_have_no_budget_between_two_values(
    folder: Path, certificates: Path, capsys
):
    command = "labels p.csv --column age --epsilon 9 --ledger account --total inf --out o.csv"
    for label_options, epsilon in (("", "inf"), (" --labels 0..4 --overwrite", 9)):
        code, _, _ = run(capsys, command + label_options, certificates)
        assert code == 0
        report = read_report()
        assert report["budget_of_a_row"]["epsilon"] == 9
        assert report["budget_between_any_two_values"]["epsilon"] == epsilon
    charges = [release.charge.epsilon for release in ReleaseLedger.open("account").releases]
    assert charges == [None, 9]


LEDGER_OPTIONS = "--ledger account --total inf --person who"
# Ann's three rows cost (4.5, 0.03) by noise.json, (3, 0) by step.json and (3.3, 0) by
# quantizer.json.
RELEASES = {
    "o.csv": f"noise p.csv --column age --mechanism noise.json {LEDGER_OPTIONS}",
    "o2.csv": f"noise p.csv --column age --mechanism noise.json {LEDGER_OPTIONS}",
    "o3.csv": f"noise renamed.csv --column years --mechanism step.json {LEDGER_OPTIONS}",
    "o4.csv": f"quantizer p.csv --column change --mechanism quantizer.json {LEDGER_OPTIONS}",
}


def publish_releases(capsys, certificates: Path, count: int) -> str:
    """Publish the first releases of RELEASES, and return what the last command printed.

    The file renamed.csv has the same numbers in columns of other names.
    """
    Path("renamed.csv").write_text(PEOPLE.replace("age", "years"))
    out = ""
    for name, command in [*RELEASES.items()][:count]:
        code, out, _ = run(capsys, f"{command} --out {name}", certificates)
        assert code == 0
    return out


def test_a_second_release_of_a_column_adds_up(folder: Path, certificates: Path, capsys):
    publish_releases(capsys, certificates, count=1)
    _, out, _ = run(capsys, f"{RELEASES['o2.csv']} --out o2.csv --json", certificates)
    report = json.loads(out)
    assert report["releases_of_this_column"] == 2
    total = report["budget_of_all_releases_of_this_column"]
    assert (total["epsilon"], total["delta"]) == (9.0, pytest.approx(0.06, rel=1e-15))


def test_the_published_report_does_not_mention_other_releases(
    folder: Path, certificates: Path, capsys
):
    publish_releases(capsys, certificates, count=2)
    for path in (Path("o.csv.json"), Path("o2.csv.json")):
        published = json.loads(path.read_text())
        assert not [key for key in published if "releases" in key]
        assert not [sentence for sentence in published["words"] if "release" in sentence]


def test_a_column_under_another_name_is_recognised(folder: Path, certificates: Path, capsys):
    out = publish_releases(capsys, certificates, count=3)
    assert "release 3 of this column" in out
    assert "epsilon = 12, delta = 0.06" in out


def test_releases_of_other_columns_add_up_too(folder: Path, certificates: Path, capsys):
    out = publish_releases(capsys, certificates, count=4)
    assert "release 4 of these data" in out
    assert "epsilon = 15.3, delta = 0.06" in out
    releases = ReleaseLedger.open("account").releases
    assert [release.output for release in releases] == [*RELEASES]


def test_a_ledger_contains_no_private_value(folder: Path, certificates: Path, capsys):
    """Its digests of columns depend on a key of the ledger."""
    publish_releases(capsys, certificates, count=1)
    assert stat.S_IMODE(Path("account").stat().st_mode) == 0o600
    for row in PEOPLE.split():
        assert row.encode() not in Path("account").read_bytes()
    account = ReleaseLedger.open("account")
    assert ReleaseLedger.open("new", LedgerTerms()).digest(np.ones(3)) != account.digest(np.ones(3))


def test_a_ledger_of_people_refuses_a_release_of_rows(folder: Path, certificates: Path, capsys):
    publish_releases(capsys, certificates, count=1)
    command = RELEASES["o2.csv"].replace("--person who", "")
    code, _, err = run(capsys, f"{command} --out o5.csv", certificates)
    assert code == 2
    assert "person must be 'who', as account says" in err
    assert not Path("o5.csv").exists()


LABELS_COMMAND = "labels p.csv --column age --epsilon 9 --labels 0..4"


def test_labels_of_one_person_add_up(folder: Path, certificates: Path, capsys):
    command = f"{LABELS_COMMAND} {LEDGER_OPTIONS} --out o.csv --json"
    _, out, _ = run(capsys, command, certificates)
    report = json.loads(out)
    assert report["rows_of_one_person"] == 3
    assert report["budget_of_a_row"]["epsilon"] == 9
    assert report["budget"]["epsilon"] == 27
    assert any("together epsilon = 27" in sentence for sentence in report["words"])
    assert not {"rows_of_one_person", "budget"} & read_report().keys()


def test_releases_of_labels_add_up(folder: Path, certificates: Path, capsys):
    command = f"{LABELS_COMMAND} {LEDGER_OPTIONS} --out"
    run(capsys, f"{command} o.csv", certificates)
    code, out, _ = run(capsys, f"{command} o2.csv", certificates)
    assert code == 0
    assert "release 2 of this column" in out
    assert "add up to epsilon = 54" in out


def test_a_release_of_labels_without_a_ledger_names_the_ledger(
    folder: Path, certificates: Path, capsys
):
    code, out, _ = run(capsys, f"{LABELS_COMMAND} --out o.csv", certificates)
    assert code == 0
    assert "k times as large" in out
    assert "--ledger keeps the sum" in out


def test_budgets_without_epsilon_are_reported_but_not_added(
    folder: Path, certificates: Path, capsys
):
    command = f"noise p.csv --column age --mechanism zcdp.json {LEDGER_OPTIONS} --out"
    _, out, _ = run(capsys, f"{command} o.csv --json", certificates)
    report = json.loads(out)
    assert (report["budget"], report["claim"]) == (None, {"notion": "zcdp", "rho": "1"})
    assert any("3 rows, whose privacy losses add up" in sentence for sentence in report["words"])
    code, out, _ = run(capsys, f"{command} o2.csv", certificates)
    assert code == 0
    assert "release 2 of this column" in out
    assert "do add up" in out


def test_the_report_warns_of_values_that_are_protected_less(
    folder: Path, certificates: Path, capsys
):
    command = "noise p.csv --column age --mechanism step.json --out o.csv"
    code, _, _ = run(capsys, command, certificates)
    assert code == 0
    words = " ".join(read_report()["words"])
    assert "one side" in words
    assert "further apart are protected less" in words


# Commands with a mechanism without certificate, and the exact ε of the mechanism.
RAW_COMMANDS = [
    ("noise p.csv --column age --mechanism raw.json --out o.csv", np.log(4)),
    ("quantizer p.csv --column change --mechanism raw-quantizer.json --out o.csv", np.log(3)),
]


@pytest.mark.parametrize(("command", "exact_epsilon"), RAW_COMMANDS)
def test_a_mechanism_without_certificate_needs_the_option_raw(
    folder: Path, certificates: Path, capsys, command: str, exact_epsilon: float
):
    code, _, err = run(capsys, command, certificates)
    assert code == 2
    assert "must be a certificate (or use --raw)" in err
    assert not Path("o.csv").exists()


@pytest.mark.parametrize(("command", "exact_epsilon"), RAW_COMMANDS)
def test_the_budget_of_a_mechanism_without_certificate_is_its_exact_epsilon(
    folder: Path, certificates: Path, capsys, command: str, exact_epsilon: float
):
    code, _, _ = run(capsys, f"{command} --raw", certificates)
    assert code == 0
    report = read_report()
    assert (report["certified"], report["claim"]) == (False, None)
    assert exact_epsilon <= report["pure_epsilon"] <= exact_epsilon * (1 + 1e-12)
    assert report["budget"]["epsilon"] == report["pure_epsilon"]
    assert any("no certificate" in sentence for sentence in report["words"])


@pytest.mark.parametrize(
    ("command", "message"),
    [
        (
            "noise p.csv --column change --mechanism noise.json",
            "line 2 of p.csv, column change, must be an integer in 0..4. Got another text",
        ),
        (
            "noise big.csv --column 1 --mechanism noise.json",
            "line 2 of big.csv, column 1, must be an integer in 0..4. Got another text (2",
        ),
        (
            "quantizer big.csv --column 1 --mechanism quantizer.json",
            "line 2 of big.csv, column 1, must be in [-1, 1]. Got another text",
        ),
        (
            "noise odd.csv --column a --mechanism noise.json",
            "line 3 of odd.csv, column a, must be a finite number. Got another text",
        ),
        (
            "noise wide.csv --column a --mechanism noise.json",
            "line 2 of wide.csv, column a, must be a finite number. Got another text",
        ),
        (
            "noise nan.csv --column a --mechanism noise.json --clip",
            "line 2 of nan.csv, column a, must be a finite number",
        ),
        (
            "noise p.csv --column age --mechanism quantizer.json",
            "mechanism must be additive noise on the answers 0..n",
        ),
        (
            "noise p.csv --column age --mechanism vector.json",
            "mechanism must be additive noise on the answers 0..n",
        ),
        (
            "quantizer p.csv --column change --mechanism noise.json",
            "mechanism must be a mechanism on real inputs",
        ),
        (
            "noise p.csv --column age --mechanism noise.json --person age",
            "person must be another column",
        ),
        (
            "noise p.csv --column age --mechanism noise.json --person no",
            "person must be a column of p.csv",
        ),
        (
            "noise gap.csv --column a --mechanism noise.json --person b",
            "line 3 of gap.csv must say whose row it is",
        ),
        (
            "noise na.csv --column a --mechanism noise.json --person b",
            "line 3 of na.csv must say whose row it is",
        ),
        (
            "noise p.csv --column age --mechanism noise.json --insecure-seed -1",
            "insecure_seed must be",
        ),
        (
            "noise two.csv --column b --mechanism noise.json",
            "column must be one of 2 and 3, by number: two.csv has 2",
        ),
        (
            "noise two.csv --column a --mechanism noise.json --person b",
            "two.csv has 2 columns b. Got b.",
        ),
        (
            "noise long.csv --column a --mechanism noise.json --multiline",
            "line 5 of long.csv, column a, must be a finite number",
        ),
        (f"{AGE_COMMAND} --ledger p.csv", "ledger must be another file than the input"),
        (f"{AGE_COMMAND} --ledger o.csv", "ledger must be another file than the output"),
        (
            "noise p.csv --column age --mechanism noise.json --ledger odd.csv",
            "odd.csv, which is of another kind",
        ),
        (
            "noise p.csv --column age --mechanism ./o.csv",
            "output must be another file than the mechanism",
        ),
        (
            "noise ./o.csv.json --column age --mechanism noise.json",
            "report beside the output must be another file",
        ),
        ("noise p.csv --column age --mechanism missing.json", "must be an existing file"),
    ],
)
def test_a_refused_command_writes_nothing(
    folder: Path, certificates: Path, capsys, command: str, message: str
):
    Path("big.csv").write_text("0\n7\n9\n")
    Path("odd.csv").write_text("a\n1\n1_0\n")
    Path("wide.csv").write_text("a\n１\n", encoding="utf-8")
    Path("nan.csv").write_text("a\nnan\n")
    Path("gap.csv").write_text("a,b\n1,x\n2,\n")
    Path("na.csv").write_text("a,b\n1,x\n2,NA\n")
    Path("two.csv").write_text("a,b,b\n1,2,3\n")
    Path("long.csv").write_text('b,a\n"one\ntwo\r\nthree",1\n2,x\n\n')
    if "./o.csv" in command:
        Path("o.csv").write_text("x")
        Path("o.csv.json").write_text("age\n1\n")
    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    code, out, err = run(capsys, f"{command} --out o.csv", certificates)
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert message in err
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == before


def test_empty_lines_at_the_end_are_no_rows(folder: Path, certificates: Path, capsys):
    Path("end.csv").write_text("age\n1\n2\n\n \n\n")
    code, out, _ = run(
        capsys, "noise end.csv --column age --mechanism noise.json --out o.csv --json", certificates
    )
    assert code == 0
    assert json.loads(out)["rows"] == 2
    assert len(read_csv("o.csv")) == 3  # The header and two rows.


def test_clipped_rows_are_only_counted_for_the_user(folder: Path, certificates: Path, capsys):
    Path("big.csv").write_text("0\n7\n-9\n")
    command = "--column 1 --clip --json --overwrite --out o.csv --mechanism"
    for kind, name in (("noise", "noise.json"), ("quantizer", "quantizer.json")):
        code, out, _ = run(capsys, f"{kind} big.csv {command} {name}", certificates)
        assert (code, json.loads(out)["clipped_rows"]) == (0, 2)
        report = read_report()
        assert "clipped_rows" not in report  # The number depends on the private data.
        assert any("were first moved to the nearest" in sentence for sentence in report["words"])


@pytest.mark.parametrize("earlier_count", [0, 1])
def test_a_release_that_cannot_be_written_is_not_in_the_ledger(
    folder: Path, certificates: Path, capsys, monkeypatch, earlier_count: int
):
    command = f"{AGE_COMMAND} --ledger account --total inf --out"
    if earlier_count:
        run(capsys, f"{command} o.csv", certificates)
        earlier_releases = ReleaseLedger.open("account").releases
    else:
        earlier_releases = ()

    def refuse_to_write(path: Path, content: bytes, *, private: bool = False) -> None:
        """Check that the release is already in the ledger, and fail to write."""
        assert len(ReleaseLedger.open("account").releases) == earlier_count + 1
        wb.InvalidRequest.must("output", "a writable file", path.name)

    monkeypatch.setattr(privatise, "write_output", refuse_to_write)
    code, _, _ = run(capsys, f"{command} o2.csv", certificates)
    assert code == 2
    assert ReleaseLedger.open("account").releases == earlier_releases


def test_a_seed_repeats_the_output_and_the_report_calls_it_insecure(
    folder: Path, certificates: Path, capsys
):
    command = "noise p.csv --column age --mechanism noise.json --insecure-seed 3 --out"
    for name in ("a.csv", "b.csv"):
        assert run(capsys, f"{command} {name}", certificates)[0] == 0
    assert Path("a.csv").read_bytes() == Path("b.csv").read_bytes()
    assert "must not be released" in Path("a.csv.json").read_text()


def test_a_sum_with_an_unbounded_budget_is_unbounded():
    half = PrivacyBudget(Fraction(1, 2), Fraction(2, 5))
    unbounded = PrivacyBudget(None)
    assert add_budgets([half, half], 2) == PrivacyBudget(Fraction(2), Fraction(1))
    assert add_budgets([half, unbounded]).epsilon is None
    assert str(add_budgets([unbounded])) == "epsilon = unbounded"


def test_the_largest_error_may_be_between_two_knots():
    generator = np.random.default_rng(5)
    for _ in range(20):
        knots = np.sort(
            np.concatenate([[-1, 1], generator.uniform(-1, 1, size=generator.integers(0, 4))])
        )
        outputs = np.sort(generator.uniform(-2, 2, size=generator.integers(2, 6)))
        # A law of the outputs at the left and the right end of every piece.
        ends = generator.dirichlet(np.ones(outputs.size), 2 * knots.size - 2)
        mechanism = PiecewiseAffine.from_laws(knots.tolist(), outputs.tolist(), ends)
        worst_error = compute_expected_error(mechanism).worst_error
        x = np.linspace(-1, 1, 20_001)
        largest_seen = float(mechanism.error_at(x).max())
        assert largest_seen <= worst_error + 1e-12
        assert worst_error <= largest_seen + 1e-3


@pytest.mark.parametrize("weights", [[4, 1, 1, 1, 1], [1, 5, 0, 2, 9], [7, 2, 1, 0, 0, 1, 2]])
def test_errors_of_noise_modulo_n_are_those_of_the_published_numbers(weights: list[int]):
    """An answer 0 that is published as n has the error n, although its circular distance is 1."""
    order = len(weights)
    noise = AdditiveNoise(wb.ModuloNoise(n=order - 1, max_shift=1), weights)
    differences = [[(x + eta) % order - x for eta in range(order)] for x in range(order)]
    errors = np.abs(differences) @ noise.pmf
    shifts = np.array(differences) @ noise.pmf
    errors_by_name = noise.published_error()
    expected = {
        "mean absolute error of answers spread evenly": errors.mean(),
        "largest mean absolute error of any answer": errors.max(),
        "largest shift of the mean of any answer": np.abs(shifts).max(),
    }
    assert {name: errors_by_name[name] for name in expected} == pytest.approx(expected)
    assert float(compute_expected_error(noise).mean_error) == pytest.approx(errors.mean())
