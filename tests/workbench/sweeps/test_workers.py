"""Test that workers import nothing from the current folder and end with their parent."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from workbench.comparison import run as comparison
from workbench.pipeline.programs import select_instances

linux = pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="reads /proc")

SPEC = '[[grid]]\nmodel = "modulo"\nn = 6\nmax_shift = [1, 2]\ndelta = [0, 0.1]\nepsilon = "0.5:2:{}"\n'


def parent_of(pid: int) -> int:
    """Return the parent of a process, or 0 if the process has ended."""
    try:
        state, parent = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[:2]
    except OSError:
        return 0
    return 0 if state == "Z" else int(parent)


def children(pid: int) -> list[int]:
    return [
        int(p.name)
        for p in Path("/proc").iterdir()
        if p.name.isdecimal() and parent_of(int(p.name)) == pid
    ]


def within(seconds: float, condition: Callable[[], bool]) -> bool:
    end = time.monotonic() + seconds
    while not (fine := condition()) and time.monotonic() < end:
        time.sleep(0.05)
    return fine


@pytest.fixture
def trap(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Make a current folder whose modules report that they were imported."""
    monkeypatch.chdir(tmp_path)
    for name in ("numpy", "random", "joblib", "scipy", "highspy", "models", "solvers"):
        Path(f"{name}.py").write_text(
            f"open({str(tmp_path / name)!r} + '.ran', 'w')\nraise RuntimeError('{name}')\n"
        )
    Path("spec.toml").write_text(SPEC.format(3))
    return tmp_path


@pytest.mark.parametrize("options", [["-P"], []])  # The console script, and python -m.
def test_a_sweep_runs_no_module_of_the_current_folder(trap: Path, options: list[str]):
    command = [
        sys.executable,
        *options,
        "-m",
        "workbench",
        "sweep",
        "spec.toml",
        "--ledger",
        "l.sqlite",
        "--jobs",
        "2",
    ]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert not [*trap.glob("*.ran")]
    assert done.returncode == 0, done.stderr
    assert "left 0" in " ".join(done.stdout.split())


def test_the_worker_of_the_solver_comparison_neither(trap: Path):
    instance = select_instances("small")[0]
    row = comparison.run_one(instance.program_at_values(), "highs", {"time_limit": 20.0})
    assert row["status"] == "optimal", row
    assert not [*trap.glob("*.ran")]


@linux
def test_the_workers_of_a_killed_sweep_end(tmp_path: Path):
    (tmp_path / "spec.toml").write_text(SPEC.format(20_000))
    ledger = tmp_path / "l.sqlite"
    command = [
        sys.executable,
        "-m",
        "workbench",
        "sweep",
        "spec.toml",
        "--ledger",
        str(ledger),
        "--jobs",
        "2",
    ]
    parent = subprocess.Popen(
        command, cwd=tmp_path, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    try:
        assert within(
            300,
            lambda: ledger.with_name("l.sqlite-wal").exists() and len(children(parent.pid)) >= 3,
        )
        started = children(parent.pid)
    finally:
        parent.kill()
        parent.wait()
    assert within(60, lambda: not any(map(parent_of, started))), [
        pid for pid in started if parent_of(pid)
    ]


CHILD = """
import os, sys, time
from workbench.io import processes
if sys.argv[2] == "no kernel":
    processes.sys = type("elsewhere", (), {"platform": "elsewhere"})
processes.end_with_parent(int(sys.argv[1]) or os.getppid())
print("ready", flush=True)
time.sleep(600)
"""
PARENT = """
import subprocess, sys
child = subprocess.Popen([sys.executable, "-c", sys.argv[1], "0", sys.argv[2]])
print(child.pid, flush=True)
child.wait()
"""


@linux
@pytest.mark.parametrize("how", ["kernel", "no kernel"])
def test_a_process_ends_with_its_parent(how: str):
    with subprocess.Popen(
        [sys.executable, "-c", PARENT, CHILD, how], stdout=subprocess.PIPE, text=True
    ) as parent:
        assert parent.stdout is not None
        words = [parent.stdout.readline().strip(), parent.stdout.readline().strip()]
        child = int(next(word for word in words if word != "ready"))
        assert "ready" in words
        assert parent_of(child) == parent.pid
        parent.kill()
    assert within(60, lambda: not parent_of(child))


def test_a_process_whose_parent_died_before_it_looked_ends_at_once():
    done = subprocess.run(
        [sys.executable, "-c", CHILD, str(os.getpid() + 1), "kernel"], check=False, timeout=300
    )
    assert done.returncode in (1, -signal.SIGKILL)
