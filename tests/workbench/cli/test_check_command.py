"""Test `workbench check`: exit codes, its limit of CPU time, and the checkers that it writes.

The exit code is 0 for a proven file, 1 for a false one and 2 for one that cannot be read or
decided.
"""

from __future__ import annotations

import json
import math
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import workbench as wb
from workbench.cli import certificate, main
from workbench.exact.time_limit import OutOfTime, limit_cpu_time
from workbench.privacy import certificate_file

ROOT = Path(__file__).resolve().parents[3]


def run_and_get_exit_code(*arguments: object) -> int:
    """Run a command and return its exit code."""
    with pytest.raises(SystemExit) as stopped:
        main([str(argument) for argument in arguments])
    code = stopped.value.code
    assert isinstance(code, int)
    return code


@pytest.fixture
def saved_files(tmp_path: Path) -> dict[str, Path]:
    """Save a certificate and a formula, and return their paths by kind."""
    question = wb.ModuloNoise(n=3, max_shift=1)
    paths = {"certificate": tmp_path / "noise.json", "formula": tmp_path / "formula.json"}
    wb.design(question, epsilon=1).save(paths["certificate"])
    wb.formula(question).save(paths["formula"])
    return paths


@pytest.mark.parametrize("kind", ["certificate", "formula"])
def test_a_written_checker_proves_the_file_without_packages(
    kind: str, saved_files: dict[str, Path], tmp_path: Path
) -> None:
    checker = tmp_path / "checker.py"
    assert run_and_get_exit_code("check", saved_files[kind], "--write-checker", checker) == 0
    assert checker.read_bytes() == (ROOT / "tools" / f"check_{kind}.py").read_bytes()
    # -I and -S hide all installed packages.
    run = subprocess.run(
        [sys.executable, "-I", "-S", str(checker), str(saved_files[kind])],
        capture_output=True,
        text=True,
        check=False,
        timeout=600,
    )
    assert run.returncode == 0
    assert "proven" in run.stdout


@pytest.mark.parametrize("kind", ["certificate", "formula"])
def test_a_checker_is_written_for_a_kind_without_a_file(kind: str, tmp_path: Path, capsys) -> None:
    checker = tmp_path / "checker.py"
    assert run_and_get_exit_code("check", "--kind", kind, "--write-checker", checker, "--json") == 0
    printed = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert printed == {"checker": str(checker), "kind": kind}
    assert checker.read_bytes() == (ROOT / "tools" / f"check_{kind}.py").read_bytes()


def test_the_checker_of_certificates_is_written_by_default(tmp_path: Path) -> None:
    assert run_and_get_exit_code("check", "--write-checker", tmp_path / "c.py") == 0
    assert (tmp_path / "c.py").read_bytes() == certificate_file.read_checker_source("certificate")


def test_a_refused_request_for_a_checker_writes_nothing(
    saved_files: dict[str, Path], tmp_path: Path
) -> None:
    contents = {path: path.read_bytes() for path in saved_files.values()}
    target = tmp_path / "c.py"
    for arguments in (
        ["check"],
        ["check", "--kind", "formula"],
        ["check", "--kind", "other", "--write-checker", target],
        ["check", saved_files["formula"], "--kind", "certificate", "--write-checker", target],
        ["check", saved_files["formula"], "--write-checker", saved_files["formula"]],
        ["check", saved_files["formula"], "--write-checker", tmp_path],
        ["check", tmp_path / "none.json", "--write-checker", target],
        ["check", "--write-checker", tmp_path / "none" / "c.py"],
    ):
        assert run_and_get_exit_code(*arguments) == 2
    assert not target.exists()
    assert contents == {path: path.read_bytes() for path in saved_files.values()}


@pytest.mark.parametrize(
    "error", [OutOfTime, MemoryError, RecursionError, OverflowError, ZeroDivisionError]
)
def test_an_error_inside_a_proof_leaves_the_file_undecided(
    error: type[Exception], tmp_path: Path, monkeypatch, capsys
) -> None:
    def fail_to_check(path: object) -> Any:
        """Raise the error in place of the proof."""
        raise error

    monkeypatch.setattr(certificate_file, "check", fail_to_check)
    assert run_and_get_exit_code("check", tmp_path / "c.json") == 2
    assert "cannot be decided" in capsys.readouterr().err


def test_a_proof_without_end_is_stopped(tmp_path: Path, monkeypatch, capsys) -> None:
    def check_forever(path: object) -> Any:
        """Compute without end."""
        while True:
            pass

    monkeypatch.setattr(certificate_file, "check", check_forever)
    monkeypatch.setattr(certificate, "_CHECK_SECONDS", 0.05)
    assert run_and_get_exit_code("check", tmp_path / "c.json") == 2
    assert "0.05 seconds" in capsys.readouterr().err


def test_a_limit_of_cpu_time_does_not_apply_after_its_block() -> None:
    with limit_cpu_time(0.05):
        pass
    # This sum takes longer than the limit, about 0.2 s.
    assert sum(k * k for k in range(1_000_000)) > 0


@pytest.mark.parametrize(
    "path", ["/proc/kmsg", "/dev/zero", "/dev/null", "/proc/self/mem", "/proc/self/pagemap", "."]
)
@pytest.mark.parametrize("command", ["check", "audit", "sample", "compose --times 2 --delta 0.1"])
def test_devices_folders_and_files_of_the_kernel_are_refused(
    command: str, path: str, capsys
) -> None:
    name, *options = command.split()
    assert run_and_get_exit_code(name, path, *options) == 2
    assert "Bug" not in capsys.readouterr().err


def test_a_ledger_whose_reader_would_wait_is_refused(monkeypatch, tmp_path: Path) -> None:
    """SQLite would wait forever for a file such as /proc/kmsg."""
    path = tmp_path / "ledger.sqlite"
    path.write_bytes(b"")

    def refuse_to_wait(handle: int, count: int) -> bytes:
        """Raise the error of a file without content that was opened not to wait."""
        raise BlockingIOError

    monkeypatch.setattr("workbench.io.files.os.read", refuse_to_wait)
    for create in (True, False):
        with pytest.raises(wb.InvalidRequest, match="without waiting"):
            wb.Ledger(path, create=create)


def test_a_certificate_whose_reader_would_wait_is_refused(tmp_path: Path, monkeypatch) -> None:
    path = tmp_path / "c.json"
    path.write_text("{}")
    real_fdopen = os.fdopen

    class WaitingFile:
        """A file such as /proc/kmsg, which has no content yet: `read` returns None."""

        def __init__(self, handle: int, mode: str) -> None:
            self.file = real_fdopen(handle, mode)

        def __enter__(self) -> WaitingFile:
            return self

        def __exit__(self, *_: object) -> None:
            self.file.close()

        def read(self, count: int) -> None:
            return None

    monkeypatch.setattr("workbench.io.files.os.fdopen", WaitingFile)
    with pytest.raises(wb.InvalidRequest, match="without waiting"):
        wb.check(path)


def test_check_states_the_guarantee_in_plain_words(
    saved_files: dict[str, Path], capsys: pytest.CaptureFixture[str]
) -> None:
    assert run_and_get_exit_code("check", saved_files["certificate"], "--json") == 0
    guarantee = json.loads(capsys.readouterr().out)["guarantee"]
    certificate = wb.check(saved_files["certificate"])
    # A guess which of two answers was given is right with the probability (1 + δ at ε = 0) / 2.
    delta_at_0 = wb.audit(certificate, epsilon=0).dp_delta.upper
    assert f"in at most {math.ceil(50 * (1 + delta_at_0))} of" in guarantee["sentences"][1]
    assert "two given answers that differ by 1 modulo 4." in guarantee["sentences"][0]
    assert run_and_get_exit_code("audit", saved_files["certificate"], "--risk", "--json") == 0
    assert json.loads(capsys.readouterr().out)["guarantee"] == guarantee
