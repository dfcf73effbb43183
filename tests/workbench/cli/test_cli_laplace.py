"""Test the commands `laplace encode`, `decode` and `keygen`, and `design laplace`.

`encode` adds Laplace noise to a column of numbers and writes it as a stream of few bits. `decode`
reads the noisy numbers from the stream with the same key file. The published numbers
are private at `database_epsilon` = ε. The decoder also has the key, so against the decoder they are
private at `decoder_epsilon` = ell · ε only.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import stats

from workbench.cli.commands import app
from workbench.errors import CorruptFile, InvalidRequest


def run(*arguments: object) -> None:
    """Run a command. Errors are raised as exceptions."""
    app([str(a) for a in arguments], standalone_mode=False)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Change to a folder with a key and a CSV file of three numbers, and return its path."""
    monkeypatch.chdir(tmp_path)
    Path("shared.key").write_bytes(bytes(range(32)))
    Path("in.csv").write_text("x\n0.25\n-1.5\n7\n", encoding="utf-8")
    return tmp_path


ENCODE = ("laplace", "encode", "--epsilon", "1", "--ell", "2", "--seed-file", "shared.key")
DECODE = ("laplace", "decode", "--epsilon", "1", "--ell", "2", "--seed-file", "shared.key")


def test_a_second_process_decodes_with_the_key_file_alone(folder: Path) -> None:
    x = np.random.default_rng(1).uniform(low=-5, high=5, size=100_000)
    (folder / "in.csv").write_text(
        "value\n" + "\n".join(map(repr, x.tolist())) + "\n", encoding="utf-8"
    )
    command = [sys.executable, "-c", "from workbench.cli import main; main()"]
    encoded = subprocess.run(
        [*command, *ENCODE, "in.csv", "OUT.bits"], capture_output=True, text=True, check=True
    )
    assert "bits_per_scalar" in encoded.stdout
    decoder_folder = folder / "decoder"
    decoder_folder.mkdir()
    for name in ("shared.key", "OUT.bits"):
        (folder / name).rename(decoder_folder / name)
    (folder / "in.csv").unlink()
    decoded = subprocess.run(
        [*command, *DECODE, "OUT.bits"],
        cwd=decoder_folder,
        capture_output=True,
        text=True,
        check=True,
    )
    header, *rows = decoded.stdout.splitlines()
    noise = np.array([float(row) for row in rows]) - x
    assert header == "x_hat"
    assert stats.kstest(noise, "laplace").pvalue > 1e-4


@pytest.mark.parametrize("code", ["gamma", "delta"])
def test_the_json_of_encode_is_one_object_in_one_line(
    folder: Path, capsys: pytest.CaptureFixture[str], code: str
) -> None:
    run(*ENCODE, "--code", code, "in.csv", "OUT.bits", "--json")
    output = capsys.readouterr().out
    report = json.loads(output)
    assert output.count("\n") == 1
    assert (report["count"], report["code"]) == (3, code)
    assert report["decoder_epsilon"] == 2.0  # ell times ε.
    assert report["database_epsilon"] == 1.0
    assert report["bytes"] == (folder / "OUT.bits").stat().st_size


@pytest.mark.parametrize("code", ["gamma", "delta"])
def test_decode_gives_the_same_numbers_as_json_and_as_a_file(
    folder: Path, capsys: pytest.CaptureFixture[str], code: str
) -> None:
    run(*ENCODE, "--code", code, "in.csv", "OUT.bits")
    capsys.readouterr()
    run(*DECODE, "OUT.bits", "--json")
    noisy_numbers = json.loads(capsys.readouterr().out)["x_hat"]
    assert len(noisy_numbers) == 3
    run(*DECODE, "OUT.bits", "noisy.csv", "--json")
    assert "x_hat" not in json.loads(capsys.readouterr().out)
    header, *lines = (folder / "noisy.csv").read_text().splitlines()
    assert header == "x_hat"
    assert [float(line) for line in lines] == noisy_numbers


def test_decode_reports_the_privacy_of_the_numbers(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run(*ENCODE, "in.csv", "OUT.bits")
    capsys.readouterr()
    run(*DECODE, "OUT.bits", "noisy.csv")
    assert "database_epsilon" in capsys.readouterr().out


def run_design(capsys: pytest.CaptureFixture[str], *arguments: str) -> dict[str, Any]:
    """Run `design laplace` with --json, and return its object."""
    run("design", "laplace", *arguments, "--json")
    output = capsys.readouterr().out
    assert output.count("\n") == 1
    return json.loads(output)


def test_a_design_has_the_smallest_ell_within_the_bits(capsys: pytest.CaptureFixture[str]) -> None:
    design = run_design(capsys, "--epsilon", "1", "--bits", "5")
    # Values of the current program, pinned. `test_dyadic_bits.py` checks that ell is the smallest.
    assert design["ell"] == pytest.approx(1.73297685, abs=5e-9)
    assert design["delta0"] == pytest.approx(1.014617989, abs=5e-9)
    assert design["mean_bits"] == pytest.approx(5, abs=1e-9)
    assert design["reachable"] is True


def test_a_design_reports_its_privacy_and_its_error(capsys: pytest.CaptureFixture[str]) -> None:
    design = run_design(capsys, "--epsilon", "1", "--bits", "5")
    assert design["decoder_epsilon"] == design["ell"]  # ell times ε = 1.
    assert design["database_epsilon"] == 1.0
    assert design["mse"] == 2.0  # The variance of Laplace noise is 2/ε².


def test_a_design_with_too_few_bits_reports_how_many_it_needs(
    capsys: pytest.CaptureFixture[str],
) -> None:
    design = run_design(capsys, "--epsilon", "11", "--bits", "5")
    assert design["reachable"] is False
    assert design["ell"] is design["decoder_epsilon"] is design["mse"] is None
    assert design["least_bits"] > 5


def test_a_design_with_too_few_bits_warns(capsys: pytest.CaptureFixture[str]) -> None:
    run("design", "laplace", "--epsilon", "11", "--bits", "5")
    assert "Not reachable" in capsys.readouterr().err


def test_a_design_names_the_law_of_its_data(capsys: pytest.CaptureFixture[str]) -> None:
    law_options = ("--code", "delta", "--low", "0", "--high", "100")
    run("design", "laplace", "--epsilon", "0.1", "--bits", "8", *law_options)
    assert "x ~ Unif(0, 100)" in capsys.readouterr().out
    run("design", "laplace", "--epsilon", "10.4", "--bits", "5", "--point", "0.5")
    assert "x = 0.5" in capsys.readouterr().err


def test_why_a_design_has_no_file_is_said(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(InvalidRequest, match="proven by its construction"):
        run("design", "laplace", "--epsilon", "1", "--bits", "5", "--save", "laplace.json")
    run("design", "laplace", "--epsilon", "11", "--bits", "5", "--save", "laplace.json")
    assert "Not reachable" in capsys.readouterr().err
    assert not (folder / "laplace.json").exists()


def test_a_useless_decoder_guarantee_is_said(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run("design", "laplace", "--epsilon", "10.4", "--bits", "5")
    assert "the decoder learns nearly everything" in capsys.readouterr().out


def test_keygen_never_overwrites(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run("laplace", "keygen", "new.key", "--json")
    assert json.loads(capsys.readouterr().out) == {"file": "new.key", "bytes": 32}
    key = (folder / "new.key").read_bytes()
    assert len(set(key)) > 16  # Of 32 random bytes, nearly all are different.
    assert os.name != "posix" or (folder / "new.key").stat().st_mode & 0o777 == 0o600
    with pytest.raises(InvalidRequest, match="key file must be a new file"):
        run("laplace", "keygen", "new.key")
    assert (folder / "new.key").read_bytes() == key
    run("laplace", "keygen", "newer.key")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "x\n1\nnan\n2\n",
            r"line 3 of in\.csv, column x, must be a finite number, at most .* Got another text\.",
        ),
        ("x\n1\n2\n-inf\n", r"line 4 of in\.csv, column x, must be a finite number"),
        ("1\n\n2\n", r"line 2 of in\.csv must be 1 cells wide\. Got 0 cells\."),
        ("x\n1\n1_0\n", r"line 3 .* Got another text"),
        ("$1\n2\n", r"line 1 .* Got another text"),
        ("nan\n1\nnan\n", r"line 1 .* Got another text \(2 such rows\)"),
        ("x\n1\n1e9\n", r"line 3 .* at most 1\.67772e\+07 in size\. Got another text"),
        ("x\n", "only a header"),
        ("", "which is empty"),
        ("a,b\n1,2\n", r"column must be given for in\.csv, which has 2 columns"),
    ],
)
def test_bad_data_are_named_by_row_and_nothing_is_written(
    folder: Path, text: str, message: str
) -> None:
    (folder / "in.csv").write_text(text, encoding="utf-8")
    before = sorted(p.name for p in folder.iterdir())
    with pytest.raises(InvalidRequest, match=message):
        run(*ENCODE, "in.csv", "OUT.bits")
    assert sorted(p.name for p in folder.iterdir()) == before


@pytest.mark.parametrize(("column", "expected"), [("b", 1000.0), ("2", 1000.0), (" a ", 0.0)])
def test_a_column_is_chosen_by_its_name_or_number(
    folder: Path, capsys: pytest.CaptureFixture[str], column: str, expected: float
) -> None:
    (folder / "in.csv").write_text("\ufeffa,b\n0,1000\n0,1000\n", encoding="utf-8")
    run(*ENCODE, "--column", column, "in.csv", "OUT.bits")
    run(*DECODE, "OUT.bits", "--json")
    noisy_numbers = json.loads(capsys.readouterr().out.splitlines()[-1])["x_hat"]
    assert np.abs(np.array(noisy_numbers) - expected).max() < 100


@pytest.mark.parametrize("column", ["c", "3", "0"])
def test_an_unknown_column_is_refused(folder: Path, column: str) -> None:
    (folder / "in.csv").write_text("a,b\n0,1000\n", encoding="utf-8")
    message = r"column must be a column of in\.csv: 1 to 2, or one of the names in its first row"
    with pytest.raises(InvalidRequest, match=message):
        run(*ENCODE, "--column", column, "in.csv", "OUT.bits")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"--epsilon": "0"}, r"epsilon must be a finite number > 0\. Got 0\."),
        ({"--epsilon": "nan"}, r"epsilon must be a finite number > 0\. Got nan\."),
        ({"--epsilon": "x"}, r"epsilon must be a finite number > 0\. Got x\."),
        ({"--ell": "1"}, r"ell must be a finite number > 1, at most 2\^500\. Got 1\.0\."),
        (
            {"--seed-file": "none.key"},
            r"seed-file must be an existing file\. Got none\.key\.",
        ),
        ({"--seed-file": "short.key"}, r"seed-file must be .* Got short\.key with 5 bytes\."),
        (
            {"--seed-file": "zeros.key"},
            r"seed-file must be .* Got zeros\.key, whose bytes take 1 values\.",
        ),
        ({"--code": "zip"}, r"code must be gamma or delta\. Got 'zip'\."),
        ({"--reach": "-1"}, r"reach must be a finite number > 0\. Got -1\."),
    ],
)
def test_a_bad_option_of_encode_is_refused(
    folder: Path, change: dict[str, str], message: str
) -> None:
    (folder / "short.key").write_bytes(b"12345")
    (folder / "zeros.key").write_bytes(bytes(32))
    options = {"--epsilon": "1", "--ell": "2", "--seed-file": "shared.key", **change}
    arguments = list(chain.from_iterable(options.items()))
    with pytest.raises(InvalidRequest, match=message):
        run("laplace", "encode", *arguments, "in.csv", "OUT.bits")
    assert not (folder / "OUT.bits").exists()


def test_another_key_or_epsilon_than_that_of_the_stream_is_refused(folder: Path) -> None:
    run(*ENCODE, "in.csv", "OUT.bits")
    (folder / "other.key").write_bytes(bytes(range(1, 33)))
    decode = ("laplace", "decode", "OUT.bits", "noisy.csv", "--seed-file")
    with pytest.raises(InvalidRequest, match="key must be the one the stream was encoded with"):
        run(*decode, "other.key")
    message = r"epsilon must be the 1\.0 the stream was encoded with\. Got 2\.0"
    with pytest.raises(InvalidRequest, match=message):
        run(*decode, "shared.key", "--epsilon", "2")
    assert not (folder / "noisy.csv").exists()


def test_a_damaged_stream_is_refused(folder: Path) -> None:
    run(*ENCODE, "in.csv", "OUT.bits")
    (folder / "OUT.bits").write_bytes((folder / "OUT.bits").read_bytes()[:-2])
    with pytest.raises(CorruptFile, match="damaged or cut short"):
        run(*DECODE, "OUT.bits", "noisy.csv")
    assert not (folder / "noisy.csv").exists()


def test_a_file_that_is_no_stream_is_refused(folder: Path) -> None:
    with pytest.raises(CorruptFile, match="not a DQL stream"):
        run(*DECODE, "in.csv", "noisy.csv")
    with pytest.raises(InvalidRequest, match=r"stream must be an existing file\. Got none\."):
        run(*DECODE, "none", "noisy.csv")
    if Path("/dev/zero").exists():  # A file without end.
        with pytest.raises(InvalidRequest, match="stream must be a regular file"):
            run(*DECODE, "/dev/zero", "noisy.csv")
    assert not (folder / "noisy.csv").exists()


def test_a_stream_beyond_the_size_limit_is_refused(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run(*ENCODE, "in.csv", "OUT.bits")
    monkeypatch.setattr("workbench.mechanisms.dyadic_laplace.stream._MAX_FILE_BYTES", 100)
    with pytest.raises(CorruptFile, match="larger than 100 bytes"):
        run(*DECODE, "OUT.bits", "noisy.csv")
    assert not (folder / "noisy.csv").exists()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--low", "nan"], "low must be a finite number. Got nan."),
        (
            ["--low", "1", "--high", "1"],
            "low and high must be finite numbers with low < high. Got 1 and 1.",
        ),
        (["--high", "-2"], "low and high must be finite numbers with low < high. Got -1 and -2."),
        (["--point", "inf"], "point must be a finite number. Got inf."),
        (["--point", "0.5", "--low", "0"], "point must be given without low and high."),
        (
            ["--low", "-1e300", "--high", "1e300"],
            "epsilon times the largest |x| must be at most 2^60. Got 1e+300.",
        ),
    ],
)
def test_bad_data_laws_are_named_by_their_options(options: list[str], message: str) -> None:
    with pytest.raises(InvalidRequest) as caught:
        run("design", "laplace", "--epsilon", "1", "--bits", "5", *options)
    assert str(caught.value) == message


def test_epsilons_are_rounded_up_and_shown_in_full(
    capsys: pytest.CaptureFixture[str], folder: Path
) -> None:
    run("design", "laplace", "--epsilon", "1", "--bits", "5")
    words = capsys.readouterr().out.split()
    assert words[words.index("ell") + 1] == "1.73297685"
    assert float(words[words.index("decoder_epsilon") + 1]) >= 1.732976854669
    run(*ENCODE, "in.csv", "OUT.bits")
    words = capsys.readouterr().out.split()
    # The noise in floats has a slightly larger ε. Value of the current program, pinned.
    assert 1 + 4.5e-12 < float(words[words.index("database_epsilon_as_run") + 1]) < 1 + 4.7e-12
    assert words[words.index("database_epsilon") + 1] == "1.0"


def test_an_ell_that_cannot_be_encoded_says_so(capsys: pytest.CaptureFixture[str]) -> None:
    run("design", "laplace", "--epsilon", "1", "--bits", "200")
    assert "so close to 1" in capsys.readouterr().out
    run("design", "laplace", "--epsilon", "1", "--bits", "20")
    assert capsys.readouterr().err == ""


def test_an_exact_file_has_a_certificate_and_is_decoded_as_usual(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run(*ENCODE, "--certificate", "law.json", "in.csv", "OUT.bits")
    assert "The certificate proves decoder_epsilon" in capsys.readouterr().out
    run("check", "law.json")
    assert "metric at epsilon = 2.0 per unit of |x - x'|" in capsys.readouterr().out
    run(*DECODE, "OUT.bits", "noisy.csv")
    assert len((folder / "noisy.csv").read_text().split()) == 4


def test_a_certificate_is_no_file_that_the_command_reads_or_writes(folder: Path) -> None:
    with pytest.raises(InvalidRequest, match="certificate"):
        run(*ENCODE, "--certificate", "OUT.bits", "in.csv", "OUT.bits")
    assert not (folder / "OUT.bits").exists()


@pytest.mark.parametrize(
    ("input_name", "output_name", "message"),
    [
        ("in.csv", "no/OUT.bits", r"output folder must be an existing folder\. Got no\."),
        ("in.csv", "dir", "output must be a file"),
        ("dir", "OUT.bits", r"input must be a regular file\. Got dir: a folder"),
    ],
)
def test_a_folder_in_place_of_a_file_is_refused(
    folder: Path, input_name: str, output_name: str, message: str
) -> None:
    (folder / "dir").mkdir()
    with pytest.raises(InvalidRequest, match=message):
        run(*ENCODE, input_name, output_name)


@pytest.mark.parametrize(
    "command", [("laplace", "encode"), ("laplace", "decode"), ("laplace", "keygen"), ("design",)]
)
def test_every_command_shows_examples(
    command: tuple[str, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    run(*command, "--help")
    assert "Examples:" in capsys.readouterr().out


def test_importing_the_commands_is_cheap() -> None:
    heavy = "('scipy', 'pandas', 'cryptography', 'numpy')"
    script = f"import sys, workbench.cli.laplace; print([m for m in {heavy} if m in sys.modules])"
    completed = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    assert completed.stdout == "[]\n"


@pytest.mark.parametrize("name", ["channel", "labels", "laplace", "modulo", "noise", "quantizer"])
def test_every_family_answers_the_question_for_prices(
    name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    options = {
        "channel": "--answers 0..2 --max-shift 1 --epsilon 1",
        "labels": "--labels 0..3 --epsilon 1",
        "laplace": "--epsilon 0.1 --bits 8",
        "modulo": "--n 4 --max-shift 1 --epsilon 1 --delta 0",
        "noise": "--on reals --sensitivity 1 --epsilon 1",
        "quantizer": "--bins=-3,3 --epsilon 1",
    }[name]
    run("design", name, *options.split(), "--prices", "--json")
    prices = json.loads(capsys.readouterr().out)["shadow_prices"]
    assert (prices["comparisons"] == 0) == (name == "laplace")
