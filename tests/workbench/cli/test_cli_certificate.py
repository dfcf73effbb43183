"""Test the commands audit, check, sample and compose, called as a user calls them.

They read a file: a certificate, a PMF of noise modulo n + 1, or a matrix of a channel.
"""

from __future__ import annotations

import json
import math
import os
import shlex
import subprocess
import sys
from fractions import Fraction
from pathlib import Path

import pytest

import workbench as wb
from workbench.cli import main
from workbench.exact.integer_law import IntegerLaw
from workbench.mechanisms.nearest_outputs import NearestOutputs
from workbench.mechanisms.real_noise import AdditiveRealNoise
from workbench.questions.unbounded_noise import RealNoise


def run(capsys: pytest.CaptureFixture[str], command: str) -> tuple[int, str, str]:
    """Run a command line. Return its exit code and its texts on stdout and stderr."""
    with pytest.raises(SystemExit) as stop:
        main(shlex.split(command))
    captured = capsys.readouterr()
    return int(stop.value.code or 0), captured.out, captured.err


@pytest.fixture
def folder(tmp_path: Path, monkeypatch) -> Path:
    """Change to a folder with two certificates, a PMF and a matrix, and return its path."""
    monkeypatch.chdir(tmp_path)
    design = wb.design(wb.ModuloNoise(n=8, max_shift=3), epsilon=1.5, delta="0.1", notion="pdp")
    wb.save(design.certificate, "noise.json")
    # At the input -1 the outputs -3 and 3 have the masses 2/3 and 1/3, so e^ε is 2 < e^0.7.
    quantizer = wb.PiecewiseAffine.from_laws([-1, 1], [-3, 3], [[2, 1], [1, 2]])
    wb.save(wb.certify(quantizer, epsilon="0.7", unbiased=True), "quantizer.json")
    (tmp_path / "pmf.csv").write_text("0.5,0.25,0.25\n")
    (tmp_path / "matrix.csv").write_text("0.75,0.25\n0.25,0.75\n")
    return tmp_path


def test_audit_reports_the_privacy_of_a_certificate(capsys, folder):
    code, out, _ = run(capsys, "audit noise.json --json")
    audit = json.loads(out)
    assert code == 0
    assert audit["epsilon"] == 1.5
    assert audit["pdp_delta"] <= 0.1
    assert audit["pure_epsilon"] == "inf"
    assert audit["certified"] == "pdp"


def test_audit_at_a_smaller_epsilon_needs_a_larger_delta(capsys, folder):
    _, out, _ = run(capsys, "audit noise.json --epsilon 0.5 --plot p.svg --json")
    assert json.loads(out)["pdp_delta"] > 0.1
    assert b"<svg" in (folder / "p.svg").read_bytes()


def test_audit_computes_the_smallest_epsilon_at_a_delta(capsys, folder):
    """Matrix [[3/4, 1/4], [1/4, 3/4]]: δ(ε) = 3/4 - e^ε / 4, so δ = 1/4 needs ε = ln 2."""
    code, out, _ = run(capsys, "audit matrix.csv --delta 0.25 --json")
    assert code == 0
    assert json.loads(out)["epsilon_at_delta"] == pytest.approx(math.log(2), rel=1e-12)


def test_composition_without_a_budget_adds_pure_epsilons(capsys, folder):
    """The matrix has the pure ε ln 3."""
    code, out, _ = run(capsys, "compose matrix.csv --times 4 --json")
    assert code == 0
    assert json.loads(out)["epsilon"] == pytest.approx(4 * math.log(3), rel=1e-12)


def test_composition_without_a_pure_epsilon_asks_for_a_delta(capsys, folder):
    code, _, err = run(capsys, "compose noise.json --times 4")
    assert code == 2
    assert "because no epsilon holds at delta = 0" in err


def test_composition_of_several_numbers_of_runs_has_a_row_for_each(capsys, folder):
    code, out, _ = run(capsys, "compose matrix.csv --times 1,3 --delta 0 --plot runs.svg --json")
    assert code == 0
    rows = json.loads(out)["rows"]
    assert [row["times"] for row in rows] == [1, 3]
    assert rows[1]["epsilon"] == pytest.approx(3 * rows[0]["epsilon"], rel=1e-12)
    assert b"<svg" in (folder / "runs.svg").read_bytes()


@pytest.mark.parametrize("notion", ["dp", "pdp"])
def test_a_report_names_pdp_only_where_it_was_requested(capsys, notion):
    request = f"design modulo --n 4 --max-shift 1 --epsilon 1 --delta 0.01 --notion {notion}"
    _, out, _ = run(capsys, request)
    assert ("PDP delta" in out) == (notion == "pdp")


def test_audit_of_a_pmf_needs_its_neighbours(capsys, folder):
    code, out, _ = run(capsys, "audit pmf.csv --max-shift 1 --epsilon 1")
    assert code == 0
    assert "exact DP delta" in out
    _, out, _ = run(capsys, "audit pmf.csv --max-shift 1 --directed")
    assert "one-sided" in out


def test_audit_of_a_matrix_at_epsilon_0_is_the_total_variation(capsys, folder):
    _, out, _ = run(capsys, "audit matrix.csv --pairs 0-1 --epsilon 0 --json")
    assert json.loads(out)["dp_delta"] == 0.5


def test_audit_of_a_quantizer_reports_its_bias(capsys, folder):
    code, out, _ = run(capsys, "audit quantizer.json")
    assert code == 0
    assert "largest bias" in out


def test_check_reports_what_is_proven_and_what_is_not(capsys, folder):
    code, out, _ = run(capsys, "check noise.json")
    assert code == 0
    assert "Proven from noise.json alone" in out
    assert "not proven" in out
    _, out, _ = run(capsys, "check quantizer.json --json")
    report = json.loads(out)
    assert report["proven"] is True
    assert any("unbiased" in sentence for sentence in report["words"])


@pytest.mark.parametrize(
    ("command", "expected_code"),
    [
        ("check noise.json", 1),
        ("audit noise.json", 2),
        ("sample noise.json", 2),
        ("compose noise.json --delta 1e-6", 2),
    ],
)
def test_a_forged_certificate_fails_in_one_line(capsys, folder, command: str, expected_code: int):
    text = (folder / "noise.json").read_text()
    (folder / "noise.json").write_text(text.replace('"epsilon": "1.5"', '"epsilon": "1.4"'))
    code, out, err = run(capsys, command)
    assert code == expected_code
    assert out == ""
    assert err.startswith("CorruptFile: noise.json: The certificate does not prove its claim.")
    assert err.count("\n") == 1


def make_undecidable_certificate(text: str) -> str:
    """Return a certificate whose ρ is so close to the exact one that `check` cannot decide it."""
    rows = [{"total": hex(2**81 + k), "weights": [hex(2**80), hex(2**80 + k)]} for k in (1, 3)]
    changes = {
        "claim": {"notion": "zcdp", "rho": "1e-40"},
        "objective": None,
        "mechanism": {"kind": "channel", "pairs": [[0, 1]], "rows": rows},
    }
    return json.dumps(json.loads(text) | changes)


def test_check_exits_with_0_if_proven_1_if_false_and_2_if_undecided_or_unreadable(capsys, folder):
    text = (folder / "noise.json").read_text()
    expected_code_by_text = {
        text: 0,
        text.replace('"delta": "0.1"', '"delta": "0.01"'): 1,
        text.replace('"error-rate"', '"squared"', 1): 2,
        text[:-9]: 2,
        make_undecidable_certificate(text): 2,
    }
    for changed_text, expected_code in expected_code_by_text.items():
        (folder / "noise.json").write_text(changed_text)
        code, out, err = run(capsys, "check noise.json --json")
        assert code == expected_code, err
        assert json.loads(out).get("proven", False) is (expected_code == 0)


def test_control_characters_in_a_record_are_not_printed(capsys, folder):
    data = json.loads((folder / "noise.json").read_text())
    data["record"] = {"[/bold]": "[red]\u001b[31m", "x" * 500: ["[/]"] * 100}
    (folder / "noise.json").write_text(json.dumps(data))
    code, out, err = run(capsys, "check noise.json")
    assert code == 0, err
    assert "\u001b" not in out


@pytest.mark.parametrize(
    ("file", "answer", "expected_draw"),
    [
        ("real.json", "58.1075", "58"),
        ("real.json", "-3.7", "-3.75"),
        ("real.json", "1/3", "0.25"),
        ("real.json", "9007199254740993", "9007199254740992"),
        ("outputs.json", "6.25", "8"),
    ],
)
def test_sample_rounds_a_real_answer_to_the_grid_or_the_nearest_output(
    capsys, folder, file: str, answer: str, expected_draw: str
):
    # The noise is always 0, and the sum is rounded to multiples of 1/4.
    zero_law = IntegerLaw(first=0, weights=[1])
    noise = AdditiveRealNoise(RealNoise(1, "1/4"), 1, zero_law, Fraction(10**40))
    noise.save("real.json")
    # The outputs are 1 and 8, the answers 0..9, and ε is so large that the nearest output is drawn.
    answer_range = (Fraction(0), Fraction(9))
    outputs = (Fraction(1), Fraction(8))
    wb.save(NearestOutputs(answer_range, outputs, 1, Fraction(10**30)), "outputs.json")
    code, out, _ = run(capsys, f"sample {file} --answer={answer} --insecure-seed 1")
    assert code == 0
    assert out.split() == [expected_draw]


def test_sample_refuses_an_answer_that_is_no_number(capsys, folder):
    code, _, _ = run(capsys, "sample quantizer.json --answer many")
    assert code == 2


def test_sample_prints_one_draw_per_line(capsys, folder):
    code, out, _ = run(capsys, "sample noise.json --count 20 --answer 3")
    assert code == 0
    assert len(out.splitlines()) == 20
    assert all(0 <= int(line) <= 8 for line in out.splitlines())


def test_sample_prints_nothing_for_a_count_of_0(capsys, folder):
    _, out, _ = run(capsys, "sample pmf.csv --count 0")
    assert out == ""


def test_sample_with_a_seed_repeats_its_draws_and_reports_that_they_are_insecure(capsys, folder):
    command = "sample noise.json --count 50 --insecure-seed 4 --json"
    _, first_out, _ = run(capsys, command)
    _, second_out, _ = run(capsys, command)
    assert first_out == second_out
    assert json.loads(first_out)["secure"] is False


def test_sample_draws_outputs_of_channels_and_quantizers(capsys, folder):
    _, out, _ = run(capsys, "sample matrix.csv --answer 1 --json")
    assert json.loads(out)["draws"][0] in (0, 1)
    code, out, _ = run(capsys, "sample quantizer.json --count 9 --answer=-0.25")
    assert code == 0
    assert {float(line) for line in out.splitlines()} <= {-3.0, 3.0}


def test_compose_reports_bounds_on_delta_or_on_epsilon(capsys, folder):
    code, out, _ = run(capsys, "compose matrix.csv --times 10 --epsilon 3 --json")
    bounds = json.loads(out)
    assert code == 0
    assert 0 < bounds["delta_low"] <= bounds["delta"] < 0.9
    code, out, _ = run(capsys, "compose matrix.csv --times 5 --delta 1e-6")
    assert code == 0
    assert "safe" in out


def test_compose_of_two_mechanisms_needs_a_larger_epsilon_than_of_one(capsys, folder):
    code, out, _ = run(capsys, "compose matrix.csv quantizer.json --times 5,2 --delta 1e-6 --json")
    two_mechanisms = json.loads(out)
    assert code == 0
    assert two_mechanisms["file"] == ["matrix.csv", "quantizer.json"]
    assert two_mechanisms["times"] == [5, 2]
    _, out, _ = run(capsys, "compose matrix.csv --times 5 --delta 1e-6 --json")
    assert two_mechanisms["epsilon"] > json.loads(out)["epsilon"]


def test_neighbours_of_compose_are_those_of_the_files_that_state_none(capsys, folder):
    """The PMF 1/2, 1/4, 1/4 has the pure ε ln 2. The quantizer is a certificate."""
    wb.save(wb.certify(wb.load("quantizer.json"), epsilon="0.7"), "two.json")
    code, out, _ = run(capsys, "compose pmf.csv two.json --times 3,1 --max-shift 1 --json")
    bounds = json.loads(out)
    assert code == 0
    assert bounds["epsilon"] == pytest.approx(4 * math.log(2), rel=1e-9)


def test_compose_asks_for_the_neighbours_of_a_pmf(capsys, folder):
    code, _, err = run(capsys, "compose pmf.csv quantizer.json --times 3,1")
    assert code == 2
    assert "A PMF does not say which answers are neighbours" in err


def test_compose_refuses_neighbours_if_all_files_state_theirs(capsys, folder):
    code, _, err = run(capsys, "compose quantizer.json quantizer.json --times 3,1 --max-shift 1")
    assert code == 2
    assert "The file has its own neighbour relation" in err


def test_an_audit_of_dp_leaves_out_pdp(capsys, folder):
    noise = wb.design(wb.ModuloNoise(n=4, max_shift=1), epsilon=1, delta="0.1", notion="dp")
    wb.save(noise.certificate, "dp.json")
    _, out, _ = run(capsys, "audit dp.json")
    assert "PDP" not in out
    _, out, _ = run(capsys, "audit dp.json --json")
    assert "pdp_delta" in json.loads(out)


@pytest.mark.parametrize("file", ["noise.json", "pmf.csv --max-shift 1"])
def test_an_audit_of_pdp_or_of_no_notion_has_pdp(capsys, folder, file: str):
    _, out, _ = run(capsys, f"audit {file}")
    assert "exact PDP delta" in out


@pytest.mark.parametrize("name", ["geometric", "Discrete Laplace"])
def test_an_audit_of_geometric_noise_names_the_command_that_saves_it(capsys, folder, name: str):
    code, _, err = run(capsys, f"audit '{name}'")
    assert code == 2
    assert f"Got {name}, the geometric noise that `workbench design noise" in err


def test_an_audit_of_another_name_has_no_such_hint(capsys, folder):
    _, _, err = run(capsys, "audit uniform")
    assert "must be an existing file. Got uniform." in err


def test_compose_at_delta_1_needs_epsilon_0(capsys, tmp_path):
    (tmp_path / "pmf.csv").write_text("0.5\n0.25\n0.25\n0\n")
    for times in (1, 3):
        command = f"compose {tmp_path / 'pmf.csv'} --max-shift 1 --times {times} --delta 1 --json"
        code, out, err = run(capsys, command)
        assert (code, err) == (0, "")
        assert '"epsilon": 0.0' in out


def test_compose_refuses_an_empty_number_of_runs(capsys, folder):
    code, _, err = run(capsys, 'compose quantizer.json --times ""')
    assert code == 2
    assert err.startswith("InvalidRequest: times must be one or more numbers of runs")


def test_audit_of_noise_names_the_option_of_the_neighbours(capsys, folder):
    (folder / "line.csv").write_text("0,0.5\n1,0.3\n2,0.2\n")
    code, _, err = run(capsys, "audit line.csv --max-shift 0")
    assert code == 2
    assert err.startswith("InvalidRequest: max_shift must be an integer in 1..10000")


def test_compose_refuses_more_numbers_of_runs_than_files(capsys, folder):
    code, _, err = run(capsys, "compose matrix.csv quantizer.json --times 5,2,1 --delta 1e-6")
    assert code == 2
    assert err.startswith("InvalidRequest: times must be one count, or one for each mechanism")


@pytest.mark.parametrize(
    "command",
    [
        "audit missing.json",
        "audit .",
        "audit pmf.csv",
        "audit pmf.csv --max-shift 3",
        "audit pmf.csv --shifts a",
        "audit noise.json --epsilon -1",
        "audit noise.json --epsilon nan",
        "audit noise.json --max-shift 2",
        "audit noise.json --plot p.bmp",
        "audit noise.json --plot no/such/p.png",
        "audit matrix.csv --pairs 0-5",
        "audit matrix.csv --pairs x",
        "check pmf.csv",
        "check missing.json",
        "sample noise.json --count -1",
        "sample noise.json --count x",
        "sample noise.json --answer 9",
        "sample matrix.csv",
        "sample quantizer.json",
        "sample noise.json --insecure-seed -1",
        "compose noise.json",
        "compose noise.json --times 0 --delta 1e-6",
        "compose noise.json --delta 2",
        "compose noise.json --delta x",
        "compose noise.json --delta 1e-6 --epsilon 1",
        "compose noise.json --delta 1e-6 --interval 0",
    ],
)
def test_bad_input_prints_one_line_writes_no_file_and_exits_with_2(capsys, folder, command):
    names_before = sorted(path.name for path in folder.iterdir())
    code, out, err = run(capsys, f"{command} --json")
    assert code == 2, err
    assert set(json.loads(out)) == {"error", "message"}
    assert err.count("\n") == 1
    assert "Traceback" not in err
    assert sorted(path.name for path in folder.iterdir()) == names_before


@pytest.mark.parametrize("command", ["audit", "check", "sample", "compose"])
def test_help_has_examples_and_json(capsys, command: str):
    code, out, _ = run(capsys, f"{command} --help")
    assert code == 0
    assert f"workbench {command}" in out.replace("\n", " ")
    assert "--json" in out


# Programs of other people, which have packages named models and solvers.

FOREIGN_PACKAGES = {
    "models": "raise RuntimeError('not yours')",
    "solvers": "def solve(): return 42",
}


def run_beside_foreign_packages(folder: Path, code: str) -> subprocess.CompletedProcess[str]:
    """Run a Python program in a folder that contains other packages named models and solvers."""
    for name, body in FOREIGN_PACKAGES.items():
        (folder / name).mkdir(exist_ok=True)
        (folder / name / "__init__.py").write_text(body)
    return subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, cwd=folder, check=False
    )


def test_load_audit_and_sample_beside_foreign_packages(folder):
    code = """
import sys, workbench as wb
noise = wb.load("noise.json")
assert wb.check("noise.json").holds()
print(float(wb.audit(noise, "1.5").pdp_delta) <= 0.1, wb.sample(noise, 5, answer=3).size)
print(wb.certify(noise, "pdp", "1.5", "0.1").holds(), wb.profile(noise).delta(1) > 0)
heavy = ("cvxpy", "ortools", "gurobipy", "highspy", "scipy", "pandas", "matplotlib")
ours = ("workbench.models", "workbench.solvers", "models", "solvers")
print(sorted(name for name in sys.modules if name.startswith((*heavy, *ours))))
"""
    completed = run_beside_foreign_packages(folder, code)
    assert completed.returncode == 0, completed.stderr
    assert completed.stdout.splitlines() == ["True 5", "True True", "[]"]


def test_the_commands_beside_foreign_packages(folder):
    code = """
from workbench.cli import main

for command in ("audit", "check", "sample"):
    try:
        main([command, "noise.json"])
    except SystemExit as stop:
        assert not stop.code, command
    print("END OF COMMAND", flush=True)
"""
    completed = run_beside_foreign_packages(folder, code)
    assert completed.returncode == 0, completed.stderr
    audit_out, check_out, sample_out, rest = completed.stdout.split("END OF COMMAND\n")
    assert audit_out
    assert check_out
    assert sample_out
    assert not rest


def test_loading_auditing_and_sampling_import_nothing_slow(folder):
    code = """
import sys
import workbench as wb
wb.load; wb.audit; wb.sample
slow = ("scipy", "pandas", "matplotlib", "cvxpy", "highspy", "ortools", "numba")
ours = ("workbench.models", "workbench.solvers", "models", "solvers")
print(sorted(name for name in sys.modules if name.startswith((*slow, *ours))))
"""
    assert run_beside_foreign_packages(folder, code).stdout == "[]\n"


def run_check(folder: Path, *arguments: bytes | str, **variables: str):
    """Run `workbench check` in a new process, because the streams of the tests differ.

    variables: environment variables to set.
    """
    return subprocess.run(
        [sys.executable, "-m", "workbench", "check", *arguments],
        cwd=folder,
        capture_output=True,
        check=False,
        env={**os.environ, **variables},
    )


UNDECODABLE_NAME = b"n\xff.json"


@pytest.mark.parametrize("options", [[], ["--json"]], ids=["text", "json"])
@pytest.mark.parametrize(
    ("name", "error"), [(b"forged.json", "CorruptFile"), (UNDECODABLE_NAME, "InvalidRequest")]
)
def test_a_message_is_one_line_whatever_a_file_or_its_name_contains(
    folder, name: bytes, error: str, options: list[str]
):
    data = json.loads((folder / "noise.json").read_text())
    data["claim"]["notion"] = "x\nProven \x1b[31m"
    (folder / "forged.json").write_text(json.dumps(data))
    completed = run_check(folder, name, *options)
    assert completed.returncode == 2
    assert completed.stderr.startswith(error.encode())
    assert completed.stderr.count(b"\n") == 1
    assert b"\x1b" not in completed.stderr
    if options:
        assert json.loads(completed.stdout)["error"] == error


@pytest.mark.parametrize("encoding", ["utf-8", "ascii"])
def test_a_file_whose_name_is_no_text_is_checked(folder, encoding: str):
    path = Path(os.fsdecode(bytes(folder) + b"/" + UNDECODABLE_NAME))
    (folder / "noise.json").rename(path)
    completed = run_check(folder, UNDECODABLE_NAME, PYTHONIOENCODING=encoding)
    assert completed.returncode == 0, completed.stderr
    assert b"Proven from n" in completed.stdout


def test_a_prior_without_risk_is_refused(folder, capsys):
    code, _, err = run(capsys, "audit noise.json --prior 0.1")
    assert code == 2
    assert "prior must be left out without --risk. Got 0.1." in err
