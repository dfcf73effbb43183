"""audit, check, sample and compose as a user meets them."""

from __future__ import annotations

import json
import os
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


def run(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    with pytest.raises(SystemExit) as stop:
        main(list(arguments))
    captured = capsys.readouterr()
    return int(stop.value.code or 0), captured.out, captured.err


@pytest.fixture
def folder(tmp_path: Path, monkeypatch) -> Path:
    monkeypatch.chdir(tmp_path)
    d = wb.design(wb.ModuloNoise(n=8, max_shift=3), epsilon=1.5, delta="0.1", notion="pdp")
    wb.save(d.certificate, "noise.json")
    third = [[2, 1], [1, 2]]
    wb.save(
        wb.certify(
            wb.PiecewiseAffine.from_laws([-1, 1], [-3, 3], third), epsilon="0.7", unbiased=True
        ),
        "quantizer.json",
    )
    (tmp_path / "pmf.csv").write_text("0.5,0.25,0.25\n")
    (tmp_path / "matrix.csv").write_text("0.75,0.25\n0.25,0.75\n")
    return tmp_path


def test_audit(capsys, folder):
    code, out, _ = run(capsys, "audit", "noise.json", "--json")
    made = json.loads(out)
    assert code == 0
    assert made["epsilon"] == 1.5
    assert made["pdp_delta"] <= 0.1
    assert made["pure_epsilon"] == "inf"
    assert made["certified"] == "pdp"
    code, out, _ = run(
        capsys, "audit", "noise.json", "--epsilon", "0.5", "--plot", "p.svg", "--json"
    )
    assert json.loads(out)["pdp_delta"] > 0.1
    assert b"<svg" in (folder / "p.svg").read_bytes()
    code, out, _ = run(capsys, "audit", "pmf.csv", "--max-shift", "1", "--epsilon", "1")
    assert code == 0
    assert "exact DP delta" in out
    code, out, _ = run(capsys, "audit", "matrix.csv", "--pairs", "0-1", "--epsilon", "0", "--json")
    assert json.loads(out)["dp_delta"] == 0.5
    code, out, _ = run(capsys, "audit", "quantizer.json")
    assert code == 0
    assert "largest bias" in out
    code, out, _ = run(capsys, "audit", "pmf.csv", "--max-shift", "1", "--directed")
    assert "one-sided" in out


def test_verify_says_what_it_proved(capsys, folder):
    code, out, _ = run(capsys, "check", "noise.json")
    assert code == 0
    assert "Proven from noise.json alone" in out
    assert "not proven" in out
    code, out, _ = run(capsys, "check", "quantizer.json", "--json")
    made = json.loads(out)
    assert made["proven"] is True
    assert any("unbiased" in sentence for sentence in made["words"])


def test_a_forged_certificate_fails_in_one_line(capsys, folder):
    text = (folder / "noise.json").read_text()
    (folder / "noise.json").write_text(text.replace('"epsilon": "1.5"', '"epsilon": "1.4"'))
    for command in (["check"], ["audit"], ["sample"], ["compose", "--delta", "1e-6"]):
        code, out, err = run(capsys, command[0], "noise.json", *command[1:])
        assert code == (1 if command[0] == "check" else 2)
        assert out == ""
        assert err.startswith("CorruptFile: noise.json: The certificate does not prove its claim.")
        assert err.count("\n") == 1


def test_exit_codes_of_verify_certificate(capsys, folder):
    """0 proven, 1 false, 2 undecided or unreadable: what a script needs to know."""
    text = (folder / "noise.json").read_text()
    undecided = {"notion": "zcdp", "rho": "1e-40"}
    for changed, expected in (
        (text, 0),
        (text.replace('"delta": "0.1"', '"delta": "0.01"'), 1),
        (text.replace('"error-rate"', '"squared"', 1), 2),
        (text[:-9], 2),
        (
            json.dumps(
                json.loads(text)
                | {
                    "claim": undecided,
                    "objective": None,
                    "mechanism": {
                        "kind": "channel",
                        "pairs": [[0, 1]],
                        "rows": [
                            {"total": hex(2**81 + k), "weights": [hex(2**80), hex(2**80 + k)]}
                            for k in (1, 3)
                        ],
                    },
                }
            ),
            2,
        ),
    ):
        (folder / "noise.json").write_text(changed)
        code, out, err = run(capsys, "check", "noise.json", "--json")
        assert code == expected, err
        assert json.loads(out).get("proven", False) is (expected == 0)


def test_hostile_words_in_a_record_are_only_shown(capsys, folder):
    data = json.loads((folder / "noise.json").read_text())
    data["record"] = {"[/bold]": "[red]\u001b[31m", "x" * 500: ["[/]"] * 100}
    (folder / "noise.json").write_text(json.dumps(data))
    code, out, err = run(capsys, "check", "noise.json")
    assert code == 0, err
    assert "\u001b" not in out


def test_real_noise_is_sampled_at_real_numbers(capsys, folder):
    # no noise but the atom, on a grid of 1/4
    noise = AdditiveRealNoise(RealNoise(1, "1/4"), 1, IntegerLaw(0, [1]), Fraction(10**40))
    noise.save("real.json")
    wb.save(
        NearestOutputs((Fraction(0), Fraction(9)), (Fraction(1), Fraction(8)), 1, Fraction(10**30)),
        "bins.json",
    )
    for file, answer, drawn in (
        ("real.json", "58.1075", "58"),
        ("real.json", "-3.7", "-3.75"),
        ("real.json", "1/3", "0.25"),
        ("real.json", "9007199254740993", "9007199254740992"),
        ("bins.json", "6.25", "8"),
    ):
        code, out, _ = run(capsys, "sample", file, "--answer", answer, "--insecure-seed", "1")
        assert (code, out.split()) == (0, [drawn])
    assert run(capsys, "sample", "real.json", "--answer", "many")[0] == 2


def test_sample(capsys, folder):
    code, out, _ = run(capsys, "sample", "noise.json", "--count", "20", "--answer", "3")
    assert code == 0
    assert len(out.splitlines()) == 20
    assert all(0 <= int(line) <= 8 for line in out.splitlines())
    one = run(capsys, "sample", "noise.json", "--count", "50", "--insecure-seed", "4", "--json")[1]
    two = run(capsys, "sample", "noise.json", "--count", "50", "--insecure-seed", "4", "--json")[1]
    assert one == two
    assert json.loads(one)["secure"] is False
    code, out, _ = run(capsys, "sample", "matrix.csv", "--answer", "1", "--json")
    assert json.loads(out)["draws"][0] in (0, 1)
    assert run(capsys, "sample", "pmf.csv", "--count", "0")[1] == ""
    code, out, _ = run(capsys, "sample", "quantizer.json", "--count", "9", "--answer", "-0.25")
    assert code == 0
    assert {float(line) for line in out.splitlines()} <= {-3.0, 3.0}


def test_compose(capsys, folder):
    code, out, _ = run(capsys, "compose", "matrix.csv", "--times", "10", "--epsilon", "3", "--json")
    made = json.loads(out)
    assert code == 0
    assert 0 < made["delta_low"] <= made["delta"] < 0.9
    code, out, _ = run(capsys, "compose", "matrix.csv", "--times", "5", "--delta", "1e-6")
    assert code == 0
    assert "safe" in out
    code, out, _ = run(
        capsys,
        "compose",
        "matrix.csv",
        "quantizer.json",
        "--times",
        "5,2",
        "--delta",
        "1e-6",
        "--json",
    )
    both = json.loads(out)
    assert (code, both["file"], both["times"]) == (0, ["matrix.csv", "quantizer.json"], [5, 2])
    _, out, _ = run(capsys, "compose", "matrix.csv", "--times", "5", "--delta", "1e-6", "--json")
    assert both["epsilon"] > json.loads(out)["epsilon"]
    code, _, err = run(
        capsys, "compose", "matrix.csv", "quantizer.json", "--times", "5,2,1", "--delta", "1e-6"
    )
    assert (
        code,
        err.startswith("InvalidRequest: times must be one count, or one for each mechanism"),
    ) == (
        2,
        True,
    )


@pytest.mark.parametrize(
    "arguments",
    [
        ["audit", "missing.json"],
        ["audit", "."],
        ["audit", "pmf.csv"],
        ["audit", "pmf.csv", "--max-shift", "3"],
        ["audit", "pmf.csv", "--shifts", "a"],
        ["audit", "noise.json", "--epsilon", "-1"],
        ["audit", "noise.json", "--epsilon", "nan"],
        ["audit", "noise.json", "--max-shift", "2"],
        ["audit", "noise.json", "--plot", "p.bmp"],
        ["audit", "noise.json", "--plot", "no/such/p.png"],
        ["audit", "matrix.csv", "--pairs", "0-5"],
        ["audit", "matrix.csv", "--pairs", "x"],
        ["check", "pmf.csv"],
        ["check", "missing.json"],
        ["sample", "noise.json", "--count", "-1"],
        ["sample", "noise.json", "--count", "x"],
        ["sample", "noise.json", "--answer", "9"],
        ["sample", "matrix.csv"],
        ["sample", "quantizer.json"],
        ["sample", "noise.json", "--insecure-seed", "-1"],
        ["compose", "noise.json"],
        ["compose", "noise.json", "--times", "0", "--delta", "1e-6"],
        ["compose", "noise.json", "--delta", "2"],
        ["compose", "noise.json", "--delta", "x"],
        ["compose", "noise.json", "--delta", "1e-6", "--epsilon", "1"],
        ["compose", "noise.json", "--delta", "1e-6", "--interval", "0"],
    ],
)
def test_bad_input_is_one_line_and_exit_2(capsys, folder, arguments):
    before = sorted(path.name for path in folder.iterdir())
    code, out, err = run(capsys, *arguments, "--json")
    assert code == 2, err
    assert set(json.loads(out)) == {"error", "message"}
    assert err.count("\n") == 1
    assert "Traceback" not in err
    assert sorted(path.name for path in folder.iterdir()) == before


def test_help_has_examples(capsys):
    for command in ("audit", "check", "sample", "compose"):
        code, out, _ = run(capsys, command, "--help")
        assert code == 0
        assert f"workbench {command}" in out.replace("\n", " ")
        assert "--json" in out


# Somebody else's training code.

STRANGE = {"models": "raise RuntimeError('not yours')", "solvers": "def solve(): return 42"}


def stranger(folder: Path, code: str) -> subprocess.CompletedProcess[str]:
    for name, body in STRANGE.items():
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
    done = stranger(folder, code)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == ["True 5", "True True", "[]"]


def test_the_commands_beside_foreign_packages(folder):
    code = """
from workbench.cli import main

for command in ("audit", "check", "sample"):
    try:
        main([command, "noise.json"])
    except SystemExit as stop:
        assert not stop.code, command
    print("That was it.", flush=True)
"""
    done = stranger(folder, code)
    assert done.returncode == 0, done.stderr
    audit, verified, sample, rest = done.stdout.split("That was it.\n")
    assert audit
    assert verified
    assert sample
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
    assert stranger(folder, code).stdout == "[]\n"


def test_one_line_whatever_a_file_or_its_name_says(folder):
    """In a process of its own, whose streams are the real ones."""
    data = json.loads((folder / "noise.json").read_text())
    data["claim"]["notion"] = "x\nProven \x1b[31m"
    (folder / "forged.json").write_text(json.dumps(data))
    strange = b"n\xff.json"
    command = [sys.executable, "-m", "workbench", "check"]
    for name, kind in ((b"forged.json", "CorruptFile"), (strange, "InvalidRequest")):
        for more in ([], ["--json"]):
            done = subprocess.run(
                [*command, name, *more], cwd=folder, capture_output=True, check=False
            )
            assert done.returncode == 2
            assert done.stderr.startswith(kind.encode())
            assert done.stderr.count(b"\n") == 1
            assert b"\x1b" not in done.stderr
            if more:
                assert json.loads(done.stdout)["error"] == kind
    (folder / "noise.json").rename(Path(os.fsdecode(bytes(folder) + b"/" + strange)))
    for encoding in ("utf-8", "ascii"):
        done = subprocess.run(
            [*command, strange],
            cwd=folder,
            capture_output=True,
            check=False,
            env={**os.environ, "PYTHONIOENCODING": encoding},
        )
        assert done.returncode == 0, done.stderr
        assert b"Proven from n" in done.stdout
