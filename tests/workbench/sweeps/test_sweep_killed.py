"""Test that a sweep loses nothing if its process group is killed at 25 random moments."""

from __future__ import annotations

import multiprocessing
import os
import random
import signal
import sqlite3
import time
from contextlib import closing
from multiprocessing.process import BaseProcess
from pathlib import Path

import pytest

from workbench.cli import main
from workbench.errors import WorkbenchError
from workbench.sweeps.ledger import Ledger, LedgerRow
from workbench.sweeps.specification import read_spec

SPEC = """
[[grid]]
model = "modulo"
n = [6, 7, 8]
max_shift = [1, 2]
notion = ["dp", "pdp"]
loss = ["error-rate", "squared"]
delta = 0.02
epsilon = "0.5:2:7"
"""
KILLS = 25


# The imports take as long as the sweep, so a server forks processes that have imported.
server = multiprocessing.get_context("forkserver")
server.set_forkserver_preload(
    ["workbench.cli", "workbench.sweeps.run", "workbench.families.modulo.sweep"]
)


def command(spec: Path, ledger: Path, jobs: int) -> None:
    """Run `workbench sweep` in its own process group."""
    os.setsid()
    with ledger.with_suffix(".log").open("w") as log:
        os.dup2(log.fileno(), 1)
        os.dup2(log.fileno(), 2)
    try:
        main(["sweep", str(spec), "--ledger", str(ledger), "--jobs", str(jobs)])
    except SystemExit as stop:
        os._exit(int(stop.code or 0))  # multiprocessing would wait for the idle workers.


def start(spec: Path, ledger: Path, jobs: int) -> BaseProcess:
    running = server.Process(target=command, args=(spec, ledger, jobs))
    running.start()
    return running


def tidy(ended: BaseProcess) -> None:
    """Remove the semaphores of a killed process. Its tracker may remove them at the same time."""
    for semaphore in Path("/dev/shm").glob(f"sem.loky-{ended.pid}-*"):
        semaphore.unlink(missing_ok=True)


def committed(ledger: Path) -> dict[str, LedgerRow]:
    """Return all rows, after checking their seals and the file."""
    if not ledger.exists() or not ledger.stat().st_size:
        return {}
    with Ledger(ledger) as book:
        found = list(book.rows())
    with closing(sqlite3.connect(ledger)) as raw:
        assert raw.execute("pragma integrity_check").fetchall() == [("ok",)]
    assert len({row.key for row in found}) == len(found)
    return {row.key: row for row in found}


def grown(ledger: Path, before: int, running: BaseProcess) -> None:
    """Wait for the first new commit or the end of the process."""
    while running.is_alive():
        try:
            with Ledger(ledger, create=False, patience=0.05) as book:
                if len(book) > before:
                    return
        except WorkbenchError:
            pass  # The ledger does not exist yet.
        time.sleep(0.02)


def exported(ledger: Path, target: Path) -> bytes:
    with pytest.raises(SystemExit) as stop:
        main(["results", "export", str(target), "--ledger", str(ledger)])
    assert not stop.value.code
    return target.read_bytes()


def test_25_kills_lose_nothing(tmp_path: Path):
    spec, whole = tmp_path / "spec.toml", tmp_path / "whole.sqlite"
    spec.write_text(SPEC)
    begin = time.monotonic()
    undisturbed = start(spec, whole, 2)
    grown(whole, 0, undisturbed)
    first = time.monotonic() - begin
    undisturbed.join(300)
    tidy(undisturbed)
    assert undisturbed.exitcode == 0
    life = time.monotonic() - begin
    expected, keys = exported(whole, tmp_path / "whole.csv"), set(read_spec(spec).keys)
    assert set(committed(whole)) == keys
    assert expected.count(b"\n") == len(keys) + 1 == 169

    rng = random.Random(25)
    kills = rounds = in_between = 0
    ledger, have = tmp_path / "round0.sqlite", dict[str, LedgerRow]()
    while kills < KILLS or have:
        running = start(spec, ledger, rng.choice((1, 1, 1, 2)))
        if kills < KILLS:
            if rng.random() < 0.75:  # Kill it while it works.
                grown(ledger, len(have), running)
                moment = rng.uniform(0, min(life - first, 1.2))
            else:  # Kill it at any time.
                moment = rng.uniform(0, min(life, 2.0))
            running.join(moment)
            if running.is_alive():
                try:
                    os.killpg(running.pid, signal.SIGKILL)
                except ProcessLookupError:  # It was killed before it had a group and workers.
                    running.kill()
                kills += 1
        running.join(300)
        tidy(running)
        now = committed(ledger)
        assert have.items() <= now.items()  # Committed rows still exist unchanged.
        in_between += 0 < len(now) < len(keys)
        have = now
        if running.exitcode == 0:
            assert exported(ledger, tmp_path / f"round{rounds}.csv") == expected
            rounds += 1
            ledger, have = tmp_path / f"round{rounds}.sqlite", {}
        else:
            assert running.exitcode == -signal.SIGKILL, ledger.with_suffix(".log").read_text()
    assert kills == KILLS
    assert rounds >= 1
    assert in_between >= 5  # Not all moments were before or after the work.
