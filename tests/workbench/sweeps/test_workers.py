"""Test that workers import nothing from the current folder and end with their parent.

They print no error of a pool that Ctrl-C ended.
"""

from __future__ import annotations

import os
import shlex
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from workbench.comparison import run as comparison
from workbench.pipeline.programs import select_instances
from workbench.sweeps.workers import _hide_errors_of_killed_pools

needs_proc = pytest.mark.skipif(
    not Path("/proc/self/stat").exists(), reason="This system has no /proc."
)

# A sweep with {} values of ε.
SPEC = '[[grid]]\nmodel = "modulo"\nn = 6\nmax_shift = [1, 2]\ndelta = [0, 0.1]\nepsilon = "0.5:2:{}"\n'


def find_parent(pid: int) -> int:
    """Return the parent of a process, or 0 if the process has ended."""
    try:
        state, parent = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[:2]
    except OSError:
        return 0
    return 0 if state == "Z" else int(parent)


def list_children(pid: int) -> list[int]:
    """Return the running children of a process."""
    pids = [int(path.name) for path in Path("/proc").iterdir() if path.name.isdecimal()]
    return [child for child in pids if find_parent(child) == pid]


def wait_until(seconds: float, condition: Callable[[], bool]) -> bool:
    """Wait until a condition holds, at most for some seconds. Return whether it holds."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if condition():
            return True
        time.sleep(0.05)
    return condition()


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
    sweep = "-m workbench sweep spec.toml --ledger l.sqlite --jobs 2"
    command = [sys.executable, *options, *shlex.split(sweep)]
    completed = subprocess.run(command, capture_output=True, text=True, check=False)
    assert not [*trap.glob("*.ran")]
    assert completed.returncode == 0, completed.stderr
    assert "left 0" in " ".join(completed.stdout.split())


def test_a_solver_comparison_runs_no_module_of_the_current_folder(trap: Path):
    instance = select_instances("small")[0]
    row = comparison.run_one(instance.program_at_values(), "highs", {"time_limit": 300.0})
    assert row["status"] == "optimal", row
    assert not [*trap.glob("*.ran")]


@needs_proc
def test_the_workers_of_a_killed_sweep_end(tmp_path: Path):
    (tmp_path / "spec.toml").write_text(SPEC.format(20_000))
    ledger = tmp_path / "l.sqlite"
    sweep = f"-m workbench sweep spec.toml --ledger {ledger} --jobs 2"
    command = [sys.executable, *shlex.split(sweep)]
    parent = subprocess.Popen(
        command, cwd=tmp_path, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    try:
        # Two children track resources for multiprocessing and loky. The third one is a worker.
        assert wait_until(
            seconds=300,
            condition=lambda: (
                ledger.with_name("l.sqlite-wal").exists() and len(list_children(parent.pid)) >= 3
            ),
        )
        children = list_children(parent.pid)
    finally:
        parent.kill()
        parent.wait()
    have_ended = wait_until(seconds=300, condition=lambda: not any(map(find_parent, children)))
    assert have_ended, [pid for pid in children if find_parent(pid)]


# A process that ends with its parent. Argument 1 is the expected parent, 0 for the present one.
# Argument 2 is "kernel" (the kernel kills the process) or "no kernel" (a thread of it polls).
CHILD = """
import os, sys, time
from workbench.io import processes
if sys.argv[2] == "no kernel":
    processes.sys = type("elsewhere", (), {"platform": "elsewhere"})
processes.end_with_parent(int(sys.argv[1]) or os.getppid())
print("ready", flush=True)
time.sleep(600)
"""
# A process that starts CHILD, which is argument 1, and prints its number.
PARENT = """
import subprocess, sys
child = subprocess.Popen([sys.executable, "-c", sys.argv[1], "0", sys.argv[2]])
print(child.pid, flush=True)
child.wait()
"""


@needs_proc
@pytest.mark.parametrize("mechanism", ["kernel", "no kernel"])
def test_a_process_ends_with_its_parent(mechanism: str):
    with subprocess.Popen(
        [sys.executable, "-c", PARENT, CHILD, mechanism], stdout=subprocess.PIPE, text=True
    ) as parent:
        assert parent.stdout is not None
        # The number of the child and its word "ready" come in any order.
        lines = {parent.stdout.readline().strip(), parent.stdout.readline().strip()}
        assert "ready" in lines
        (child_text,) = lines - {"ready"}
        child = int(child_text)
        assert find_parent(child) == parent.pid
        parent.kill()
    assert wait_until(seconds=300, condition=lambda: not find_parent(child))


def test_a_process_whose_parent_has_already_ended_ends_at_once():
    completed = subprocess.run(
        [sys.executable, "-c", CHILD, str(os.getpid() + 1), "kernel"], check=False, timeout=300
    )
    # 1 if the thread that polls ends the process, -SIGKILL if the kernel does.
    assert completed.returncode in (1, -signal.SIGKILL)


@pytest.mark.parametrize(
    ("thread_name", "error", "is_shown"),
    [
        ("ExecutorManagerThread", KeyError("task"), False),
        ("ExecutorManagerThread", ValueError("task"), False),
        ("ExecutorManagerThread", RuntimeError("task"), True),
        ("another thread", KeyError("task"), True),
    ],
)
def test_only_failed_lookups_in_the_thread_of_a_pool_are_hidden(
    thread_name: str, error: Exception, is_shown: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    shown_errors: list[BaseException | None] = []
    monkeypatch.setattr(
        threading, "excepthook", lambda arguments: shown_errors.append(arguments.exc_value)
    )

    def fail() -> None:
        """End the thread with the error."""
        raise error

    thread = threading.Thread(target=fail, name=thread_name)
    with _hide_errors_of_killed_pools():
        thread.start()
        thread.join()
    assert shown_errors == ([error] if is_shown else [])
