"""Test the same tasks on a Dask cluster of processes, also with killed workers."""

from __future__ import annotations

import gc
import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import workbench as wb
from workbench.cli import main
from workbench.errors import WorkbenchError
from workbench.sweeps import workers as sweep_workers
from workbench.sweeps.export import flatten_ledger
from workbench.sweeps.ledger import Ledger
from workbench.sweeps.specification import read_spec
from workbench.sweeps.workers import Task, run_on_cluster

distributed = pytest.importorskip("distributed")
dask = pytest.importorskip("dask")

# Tests of real clusters belong to `make test-all`. test_cluster_client.py has fast ones.
pytestmark = pytest.mark.slow

GRID = {
    "model": "modulo",
    "n": 6,
    "max_shift": [1, 2, 3],
    "notion": "dp",
    "delta": [0, 0.1],
    "epsilon": "0.5:1.5:5",
}


HANG = 300.0  # Only a hang takes so many seconds, even on a busy machine.


@pytest.fixture(scope="module")
def shared_cluster() -> Iterator[Any]:
    """Yield a Dask cluster that the tests of this file share."""
    slow = {f"distributed.comm.timeouts.{name}": f"{HANG:g}s" for name in ("connect", "tcp")}
    with (
        dask.config.set(slow),
        distributed.LocalCluster(
            n_workers=2,
            threads_per_worker=1,
            processes=True,
            dashboard_address=":0",
            silence_logs=50,
        ) as made,
    ):
        yield made


@pytest.fixture
def cluster(shared_cluster: Any, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Return the cluster with long time limits, because the machine may be busy."""
    for name in ("CONNECT_SECONDS", "NO_WORKER_SECONDS", "REPLY_SECONDS"):
        monkeypatch.setattr(sweep_workers, name, HANG)
    return shared_cluster


def read_rows(path: Path) -> list[dict[str, Any]]:
    """Return the flat rows of a ledger file."""
    with Ledger(path, create=False) as book:
        return flatten_ledger(book)


def test_the_cluster_gives_the_rows_that_one_process_gives(tmp_path: Path, cluster: Any):
    wb.sweep({"grid": GRID}, tmp_path / "alone.sqlite", jobs=1)
    outcome = wb.sweep(
        {"grid": GRID}, tmp_path / "cluster.sqlite", cluster=cluster.scheduler_address
    )
    assert (outcome.points, outcome.solved, outcome.given_up) == (30, 30, 0)
    assert read_rows(tmp_path / "alone.sqlite") == read_rows(tmp_path / "cluster.sqlite")


def test_a_killed_worker_costs_a_retry_and_the_run_ends(tmp_path: Path, cluster: Any):
    grid = {**GRID, "n": 8, "notion": ["dp", "pdp"], "epsilon": "0.5:1.5:20"}
    wb.sweep({"grid": grid}, tmp_path / "alone.sqlite", jobs=2)
    killed_pids: list[int] = []

    def kill_after_every_40_points(outcome: Any) -> None:
        """Kill the first worker after 40 solved points, and the second after 80."""
        if len(killed_pids) < 2 and outcome.solved >= 40 * (len(killed_pids) + 1):
            # Another worker is killed, because the first one may not have been replaced yet.
            worker = list(cluster.workers.values())[len(killed_pids)]
            os.kill(worker.pid, signal.SIGKILL)
            killed_pids.append(worker.pid)

    outcome = wb.sweep(
        {"grid": grid},
        tmp_path / "b.sqlite",
        cluster=cluster.scheduler_address,
        progress=kill_after_every_40_points,
    )
    assert len(killed_pids) == 2
    assert (outcome.points, outcome.solved, outcome.given_up) == (240, 240, 0)
    assert read_rows(tmp_path / "alone.sqlite") == read_rows(tmp_path / "b.sqlite")


class _Deadly:
    """A task that kills every process that runs it."""

    @property
    def backend(self) -> None:
        """Kill the process that asks for the backend of the task."""
        os.kill(os.getpid(), signal.SIGKILL)


def test_a_task_that_kills_every_worker_is_given_up_and_the_others_are_done(
    cluster: Any, monkeypatch: pytest.MonkeyPatch
):
    tasks: list[Any] = [
        Task(c.model, c.fixed, c.points, c.recheck, c.backend, c.versions)
        for c in read_spec({"grid": GRID}).chunks
    ]
    deadly_index = len(tasks)
    # Workers cannot import this module, so its class must be pickled with its code.
    monkeypatch.setattr(
        sys.modules["cloudpickle.cloudpickle"], "_PICKLE_BY_VALUE_MODULES", {__name__}
    )
    answers_by_index = dict(run_on_cluster([*tasks, _Deadly()], cluster.scheduler_address))
    given_up = {index for index, answers in answers_by_index.items() if answers is None}
    assert given_up == {deadly_index}
    assert set(answers_by_index) == set(range(deadly_index + 1))


def test_the_command_line_runs_on_a_cluster(
    tmp_path: Path, cluster: Any, capsys: pytest.CaptureFixture[str]
):
    spec = tmp_path / "spec.toml"
    spec.write_text('[[grid]]\nmodel = "modulo"\nn = 5\nmax_shift = 1\nepsilon = [0.5, 1]\n')
    with pytest.raises(SystemExit) as stop:
        main(
            [
                "sweep",
                str(spec),
                "--ledger",
                str(tmp_path / "a.sqlite"),
                "--cluster",
                cluster.scheduler_address,
                "--json",
            ]
        )
    assert not stop.value.code
    assert json.loads(capsys.readouterr().out)["solved"] == 2


def test_a_cluster_that_cannot_be_reached_is_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(sweep_workers, "CONNECT_SECONDS", 2.0)
    for address in ("tcp://127.0.0.1:9", "nonsense://x", "tcp://"):
        with pytest.raises(WorkbenchError, match="cannot be reached"):
            wb.sweep({"grid": GRID}, tmp_path / "a.sqlite", cluster=address)
        # A client that is finalized while another one starts would make both wait forever.
        clients = [item for item in gc.get_objects() if type(item) is distributed.Client]
        assert not clients
    assert read_rows(tmp_path / "a.sqlite") == []


def test_a_cluster_without_workers_ends_the_wait(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(sweep_workers, "NO_WORKER_SECONDS", 3.0)
    with (
        distributed.LocalCluster(
            n_workers=0, processes=True, dashboard_address=":0", silence_logs=50
        ) as empty,
        pytest.raises(WorkbenchError, match="no worker"),
    ):
        wb.sweep({"grid": GRID}, tmp_path / "a.sqlite", cluster=empty.scheduler_address)


@pytest.fixture
def scheduler() -> Iterator[tuple[str, subprocess.Popen[bytes]]]:
    """Yield the address of a scheduler and the process of its worker."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    address = f"tcp://127.0.0.1:{port}"
    scheduler_command = [
        sys.executable,
        "-m",
        "distributed.cli.dask_scheduler",
        "--host",
        "127.0.0.1",
        "--port",
        str(port),
    ]
    worker_command = [
        sys.executable,
        "-m",
        "distributed.cli.dask_worker",
        address,
        "--nthreads",
        "1",
        "--no-nanny",
    ]
    processes = [
        subprocess.Popen(
            [*command, "--no-dashboard"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        for command in (scheduler_command, worker_command)
    ]
    try:
        with distributed.Client(address, timeout=HANG, set_as_default=False) as client:
            client.wait_for_workers(1, timeout=HANG)
        yield address, processes[0]
    finally:
        for process in processes:
            process.kill()
            process.wait()


# After SIGKILL the process has ended. After SIGSTOP it is as if its machine could not be reached.
@pytest.mark.parametrize("sent_signal", [signal.SIGKILL, signal.SIGSTOP])
def test_a_scheduler_that_dies_ends_the_run_in_one_sentence_and_it_resumes(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    scheduler: Any,
    sent_signal: signal.Signals,
    capfd: Any,
):
    monkeypatch.setattr(sweep_workers, "CONNECT_SECONDS", HANG)
    address, process = scheduler
    end_times: list[float] = []
    spec = {"grid": {**GRID, "epsilon": "0.5:1.5:100"}}

    def end_scheduler_once(outcome: Any) -> None:
        """Send the signal to the scheduler when the first points are solved."""
        if outcome.solved and not end_times:
            process.send_signal(sent_signal)
            end_times.append(time.monotonic())
            # Only after the start, because a busy scheduler may be slow.
            monkeypatch.setattr(sweep_workers, "REPLY_SECONDS", 3.0)

    with pytest.raises(
        WorkbenchError,
        match=r"was lost. The rows that it had sent are kept. Run the same command",
    ):
        wb.sweep(spec, tmp_path / "a.sqlite", cluster=address, progress=end_scheduler_once)
    assert time.monotonic() - end_times[0] < HANG
    assert capfd.readouterr().err == ""
    kept_rows = read_rows(tmp_path / "a.sqlite")
    assert 0 < len(kept_rows) < 600
    outcome = wb.sweep(spec, tmp_path / "a.sqlite", jobs=1)
    assert (outcome.known, outcome.left) == (len(kept_rows), 0)


def test_a_cluster_that_goes_away_ends_the_run(tmp_path: Path):
    lost = distributed.LocalCluster(
        n_workers=1, threads_per_worker=1, processes=True, dashboard_address=":0", silence_logs=50
    )
    begun = threading.Event()

    def end() -> None:
        begun.wait(HANG)
        lost.close()

    killer = threading.Thread(target=end)
    killer.start()
    grid = {**GRID, "epsilon": "0.5:1.5:600"}
    with pytest.raises(WorkbenchError, match=r"lost|no worker"):
        wb.sweep(
            {"grid": grid},
            tmp_path / "a.sqlite",
            cluster=lost.scheduler_address,
            progress=lambda outcome: begun.set() if outcome.solved else None,
        )
    killer.join()
    assert read_rows(tmp_path / "a.sqlite")
