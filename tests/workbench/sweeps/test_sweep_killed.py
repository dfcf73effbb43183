"""Test that a sweep loses nothing if its process group is killed at 25 random moments.

A killed sweep is started again with the same ledger until it ends. Then a new sweep begins with a
new ledger. An undisturbed sweep shows the expected rows.
"""

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
POINT_COUNT = 3 * 2 * 2 * 2 * 7  # The product of the lengths of the lists above.
WORKING_SHARE = 0.75  # This share of the kills happens after the first new row.

# The imports take as long as the sweep, so a server forks processes that have imported.
server = multiprocessing.get_context("forkserver")
server.set_forkserver_preload(
    ["workbench.cli", "workbench.sweeps.run", "workbench.families.modulo.sweep"]
)


def run_sweep_command(spec: Path, ledger: Path, jobs: int) -> None:
    """Run `workbench sweep` in its own process group."""
    os.setsid()
    with ledger.with_suffix(".log").open("w") as log:
        os.dup2(log.fileno(), 1)
        os.dup2(log.fileno(), 2)
    try:
        main(["sweep", str(spec), "--ledger", str(ledger), "--jobs", str(jobs)])
    except SystemExit as stop:
        os._exit(int(stop.code or 0))  # multiprocessing would wait for the idle workers.


def start_sweep(spec: Path, ledger: Path, jobs: int) -> BaseProcess:
    """Start a sweep in a new process with its own process group."""
    process = server.Process(target=run_sweep_command, args=(spec, ledger, jobs))
    process.start()
    return process


def remove_semaphores(process: BaseProcess) -> None:
    """Remove the semaphores of a killed process. Its tracker may remove them at the same time."""
    for semaphore in Path("/dev/shm").glob(f"sem.loky-{process.pid}-*"):
        semaphore.unlink(missing_ok=True)


def read_committed_rows(ledger: Path) -> dict[str, LedgerRow]:
    """Return all rows, after checking their seals and the file."""
    if not ledger.exists() or not ledger.stat().st_size:
        return {}
    with Ledger(ledger) as book:
        rows = list(book.rows())
    with closing(sqlite3.connect(ledger)) as connection:
        assert connection.execute("pragma integrity_check").fetchall() == [("ok",)]
    assert len({row.key for row in rows}) == len(rows)
    return {row.key: row for row in rows}


def wait_for_growth(ledger: Path, before: int, process: BaseProcess) -> None:
    """Wait for the first new commit or the end of the process."""
    while process.is_alive():
        try:
            with Ledger(ledger, create=False, patience=0.05) as book:
                if len(book) > before:
                    return
        except WorkbenchError:
            pass  # The ledger does not exist yet.
        time.sleep(0.02)


def export(ledger: Path, target: Path) -> bytes:
    """Export a ledger to a CSV file, and return its bytes."""
    with pytest.raises(SystemExit) as stop:
        main(["results", "export", str(target), "--ledger", str(ledger)])
    assert not stop.value.code
    return target.read_bytes()


def test_25_kills_lose_nothing(tmp_path: Path):
    spec = tmp_path / "spec.toml"
    undisturbed_ledger = tmp_path / "whole.sqlite"
    spec.write_text(SPEC)
    start_time = time.monotonic()
    undisturbed = start_sweep(spec, undisturbed_ledger, jobs=2)
    wait_for_growth(undisturbed_ledger, before=0, process=undisturbed)
    seconds_to_first_row = time.monotonic() - start_time
    undisturbed.join(300)
    remove_semaphores(undisturbed)
    assert undisturbed.exitcode == 0
    seconds_of_sweep = time.monotonic() - start_time
    expected = export(undisturbed_ledger, tmp_path / "whole.csv")
    keys = set(read_spec(spec).keys)
    assert set(read_committed_rows(undisturbed_ledger)) == keys
    assert len(keys) == POINT_COUNT
    assert expected.count(b"\n") == POINT_COUNT + 1  # The first line has the names of the columns.

    generator = random.Random(25)
    kills = 0
    finished_sweeps = 0
    partial_states = 0  # Ledgers with some, but not all rows after a process has ended.
    ledger = tmp_path / "round0.sqlite"
    known_rows: dict[str, LedgerRow] = {}
    # After the last kill, the sweep that it stopped is finished.
    while kills < KILLS or known_rows:
        process = start_sweep(spec, ledger, generator.choice((1, 1, 1, 2)))
        if kills < KILLS:
            if generator.random() < WORKING_SHARE:  # Kill it while it works.
                wait_for_growth(ledger, len(known_rows), process)
                moment = generator.uniform(0, min(seconds_of_sweep - seconds_to_first_row, 1.2))
            else:  # Kill it at any time.
                moment = generator.uniform(0, min(seconds_of_sweep, 2.0))
            process.join(moment)
            if process.is_alive():
                try:
                    os.killpg(process.pid, signal.SIGKILL)
                except ProcessLookupError:  # It was killed before it had a group and workers.
                    process.kill()
                kills += 1
        process.join(300)
        remove_semaphores(process)
        rows = read_committed_rows(ledger)
        assert known_rows.items() <= rows.items()  # Committed rows still exist unchanged.
        if 0 < len(rows) < len(keys):
            partial_states += 1
        known_rows = rows
        if process.exitcode == 0:
            assert export(ledger, tmp_path / f"round{finished_sweeps}.csv") == expected
            finished_sweeps += 1
            ledger = tmp_path / f"round{finished_sweeps}.sqlite"
            known_rows = {}
        else:
            assert process.exitcode == -signal.SIGKILL, ledger.with_suffix(".log").read_text()
    assert kills == KILLS
    assert finished_sweeps >= 1
    assert partial_states >= 5  # Not all moments were before or after the work.
