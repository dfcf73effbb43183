"""`workbench check`: exit codes, its limit of time, and the checkers that it writes."""

from __future__ import annotations

import json
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


def exit_code(*arguments: object) -> int:
    """Run a command and return its exit code."""
    with pytest.raises(SystemExit) as stopped:
        main([str(argument) for argument in arguments])
    code = stopped.value.code
    assert isinstance(code, int)
    return code


@pytest.fixture
def saved(tmp_path: Path) -> dict[str, Path]:
    """A certificate and a formula."""
    question = wb.ModuloNoise(n=3, max_shift=1)
    paths = {"certificate": tmp_path / "noise.json", "formula": tmp_path / "formula.json"}
    wb.design(question, epsilon=1).save(paths["certificate"])
    wb.formula(question).save(paths["formula"])
    return paths


@pytest.mark.parametrize("kind", ["certificate", "formula"])
def test_the_checker_of_a_file_is_written(
    kind: str, saved: dict[str, Path], tmp_path: Path, capsys
) -> None:
    """By the file, and by the kind alone; it is the one of the repository, and proves the file."""
    first, second = tmp_path / "first.py", tmp_path / "second.py"
    assert exit_code("check", saved[kind], "--write-checker", first) == 0
    assert exit_code("check", "--kind", kind, "--write-checker", second, "--json") == 0
    assert json.loads(capsys.readouterr().out.splitlines()[-1]) == {
        "checker": str(second),
        "kind": kind,
    }
    source = (ROOT / "tools" / f"check_{kind}.py").read_bytes()
    assert first.read_bytes() == second.read_bytes() == source
    done = subprocess.run(
        [sys.executable, "-I", "-S", str(first), str(saved[kind])],
        capture_output=True,
        text=True,
        check=False,
        timeout=600,
    )
    assert done.returncode == 0
    assert "proven" in done.stdout


def test_certificates_are_the_default_kind(tmp_path: Path) -> None:
    assert exit_code("check", "--write-checker", tmp_path / "c.py") == 0
    assert (tmp_path / "c.py").read_bytes() == certificate_file.read_checker_source("certificate")


def test_requests_for_a_checker_that_make_no_sense(saved: dict[str, Path], tmp_path: Path) -> None:
    before = {path: path.read_bytes() for path in saved.values()}
    target = tmp_path / "c.py"
    for arguments in (
        ["check"],
        ["check", "--kind", "formula"],
        ["check", "--kind", "other", "--write-checker", target],
        ["check", saved["formula"], "--kind", "certificate", "--write-checker", target],
        ["check", saved["formula"], "--write-checker", saved["formula"]],
        ["check", saved["formula"], "--write-checker", tmp_path],
        ["check", tmp_path / "none.json", "--write-checker", target],
        ["check", "--write-checker", tmp_path / "none" / "c.py"],
    ):
        assert exit_code(*arguments) == 2
    assert not target.exists()
    assert before == {path: path.read_bytes() for path in saved.values()}


@pytest.mark.parametrize(
    "error", [OutOfTime, MemoryError, RecursionError, OverflowError, ZeroDivisionError]
)
def test_what_cannot_be_decided_is_not_false(
    error: type[Exception], tmp_path: Path, monkeypatch, capsys
) -> None:
    def failing(path: object) -> Any:
        raise error

    monkeypatch.setattr(certificate_file, "check", failing)
    assert exit_code("check", tmp_path / "c.json") == 2
    assert "cannot be decided" in capsys.readouterr().err


def test_a_proof_without_end_is_stopped(tmp_path: Path, monkeypatch, capsys) -> None:
    def endless(path: object) -> Any:
        while True:
            pass

    monkeypatch.setattr(certificate_file, "check", endless)
    monkeypatch.setattr(certificate, "_CHECK_SECONDS", 0.05)
    assert exit_code("check", tmp_path / "c.json") == 2
    assert "0.05 seconds" in capsys.readouterr().err


def test_a_limit_of_time_ends_with_its_block() -> None:
    with limit_cpu_time(0.05):
        pass
    assert sum(k * k for k in range(1_000_000)) > 0  # a fifth of a second, after the block


@pytest.mark.parametrize(
    "place", ["/proc/kmsg", "/dev/zero", "/dev/null", "/proc/self/mem", "/proc/self/pagemap", "."]
)
@pytest.mark.parametrize("command", ["check", "audit", "sample", "compose --times 2 --delta 0.1"])
def test_files_of_the_kernel_are_refused(command: str, place: str, capsys) -> None:
    name, *options = command.split()
    assert exit_code(name, place, *options) == 2
    assert "Bug" not in capsys.readouterr().err


def test_a_ledger_is_no_file_of_the_kernel_that_makes_its_reader_wait(
    monkeypatch, tmp_path: Path
) -> None:
    """/proc/kmsg, where it may be read, hung SQLite."""
    path = tmp_path / "ledger.sqlite"
    path.write_bytes(b"")

    def waits(handle: int, count: int) -> bytes:
        raise BlockingIOError

    monkeypatch.setattr("workbench.io.files.os.read", waits)
    for create in (True, False):
        with pytest.raises(wb.InvalidRequest, match="without waiting"):
            wb.Ledger(path, create=create)


def test_a_file_that_makes_its_reader_wait_is_refused(tmp_path: Path, monkeypatch) -> None:
    """Such as /proc/kmsg: a regular file, whose read returns nothing yet."""
    path = tmp_path / "c.json"
    path.write_text("{}")
    real = certificate_file.read_text.__globals__["os"].fdopen

    class Waiting:
        def __init__(self, handle: int, mode: str) -> None:
            self.file = real(handle, mode)

        def __enter__(self) -> Waiting:
            return self

        def __exit__(self, *_: object) -> None:
            self.file.close()

        def read(self, count: int) -> None:
            return None

    monkeypatch.setattr("workbench.io.files.os.fdopen", Waiting)
    with pytest.raises(wb.InvalidRequest, match="without waiting"):
        wb.check(path)
