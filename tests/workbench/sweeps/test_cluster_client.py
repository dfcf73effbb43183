"""Test what a sweep does with the answers and the failures of a cluster, without a cluster.

A stub stands for the package distributed: its client solves the tasks in this process, and no clock
is read. test_sweep_cluster.py asks the same of real schedulers and workers.
"""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

import workbench as wb
from workbench.errors import WorkbenchError
from workbench.sweeps import workers as sweep_workers
from workbench.sweeps.export import flatten_ledger
from workbench.sweeps.ledger import Ledger
from workbench.sweeps.workers import run_on_cluster

ADDRESS = "tcp://cluster:8786"
# Eight points on four paths.
GRID = {"model": "modulo", "n": 4, "max_shift": [1, 2], "delta": [0, 0.1], "epsilon": "0.5:1:2"}


class KilledWorkerStub(Exception):
    """The scheduler gave a task up, because its workers died."""


class FutureStub:
    """A task that has ended, waits for a worker, or was cancelled with its scheduler.

    Its methods are those of `distributed.Future` that a sweep calls.
    """

    def __init__(self, key: str, outcome: Any, *, is_cancelled: bool, is_waiting: bool) -> None:
        """Make a future. outcome: the answer of the task, or the exception that `result` raises."""
        self.key = key
        self._outcome = outcome
        self._is_cancelled = is_cancelled
        self._is_waiting = is_waiting

    def cancelled(self) -> bool:
        """Return whether the scheduler has cancelled the task."""
        return self._is_cancelled

    def done(self) -> bool:
        """Return whether the task has ended."""
        return not (self._is_cancelled or self._is_waiting)

    def result(self, timeout: float) -> Any:
        """Return the answer of the task, or raise its error."""
        if isinstance(self._outcome, Exception):
            raise self._outcome
        return self._outcome

    def release(self) -> None:
        """Forget nothing: the stub keeps no results."""


class ClusterStub:
    """A cluster whose tasks end at once.

    Attributes:
        batches: the lists of tasks that were submitted.
        worker_count: the number of workers that the scheduler reports.
        is_lost: whether the scheduler cancels every task.
        kills: whether a task kills the workers that have it.
    """

    def __init__(self) -> None:
        self.batches: list[Sequence[Any]] = []
        self.worker_count = 1
        self.is_lost = False
        self.kills: Callable[[Any], bool] = lambda task: False

    def make_client(self, address: str, timeout: float, set_as_default: bool) -> Any:
        """Return a client; the argument names are those of distributed."""
        return SimpleNamespace(
            map=self._run,
            as_current=contextlib.nullcontext,
            sync=lambda function, callback_timeout: function(),
            scheduler=SimpleNamespace(
                identity=lambda: {"workers": dict.fromkeys(range(self.worker_count))}
            ),
            close=lambda timeout: None,
        )

    def _run(self, function: Any, tasks: Sequence[Any], pure: bool, key: str) -> list[FutureStub]:
        """Solve the tasks in this process, and return a future for each, as `Client.map` does."""
        self.batches.append(tasks)
        is_waiting = not self.worker_count
        futures = []
        for number, task in enumerate(tasks):
            outcome: Any = None
            # A batch ends as a whole: whoever shares it with a killer is killed as well.
            if any(map(self.kills, tasks)):
                outcome = KilledWorkerStub()
            elif not is_waiting and not self.is_lost:
                outcome = function(task)
            futures.append(
                FutureStub(
                    f"{key}-{number}", outcome, is_cancelled=self.is_lost, is_waiting=is_waiting
                )
            )
        return futures


@pytest.fixture
def cluster(monkeypatch: pytest.MonkeyPatch) -> ClusterStub:
    """Replace the package distributed by a stub, and return its cluster."""
    stub = ClusterStub()
    package: Any = ModuleType("distributed")
    package.Client = stub.make_client
    package.KilledWorker = KilledWorkerStub
    package.wait = lambda futures, timeout, return_when: None
    comm: Any = ModuleType("distributed.comm")
    comm.CommClosedError = type("CommClosedError", (OSError,), {})
    monkeypatch.setitem(sys.modules, "distributed", package)
    monkeypatch.setitem(sys.modules, "distributed.comm", comm)
    for module in ("workbench.sweeps.workers", "workbench.sweeps.run"):
        monkeypatch.setattr(f"{module}.require_extra", lambda extra, subject: None)
    return stub


def read_rows(path: Path) -> list[dict[str, Any]]:
    """Return the flat rows of a ledger file."""
    with Ledger(path, create=False) as ledger:
        return flatten_ledger(ledger)


def test_the_answers_of_a_cluster_are_the_rows_of_one_process(
    tmp_path: Path, cluster: ClusterStub
) -> None:
    wb.sweep({"grid": GRID}, tmp_path / "alone.sqlite", jobs=1)
    outcome = wb.sweep({"grid": GRID}, tmp_path / "cluster.sqlite", cluster=ADDRESS)
    assert (outcome.points, outcome.solved, outcome.given_up) == (8, 8, 0)
    assert read_rows(tmp_path / "cluster.sqlite") == read_rows(tmp_path / "alone.sqlite")


def test_a_task_that_kills_its_workers_is_tried_alone_and_given_up_and_the_others_are_done(
    cluster: ClusterStub, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sweep_workers, "solve_task", lambda task: f"answer of {task}")
    cluster.kills = lambda task: task == "b"
    tasks: Any = ["a", "b", "c"]  # The stub of `solve_task` takes any task.
    answers_by_index = dict(run_on_cluster(tasks, ADDRESS))
    assert answers_by_index == {0: "answer of a", 1: None, 2: "answer of c"}
    # All three were tried together, and then each of them alone.
    assert sorted(map(len, cluster.batches)) == [1, 1, 1, 3]


def test_a_cluster_without_workers_ends_the_sweep(tmp_path: Path, cluster: ClusterStub) -> None:
    cluster.worker_count = 0
    with pytest.raises(WorkbenchError, match="has had no worker for 60 s"):
        wb.sweep({"grid": GRID}, tmp_path / "a.sqlite", cluster=ADDRESS)


def test_a_lost_cluster_ends_the_sweep_in_one_sentence(
    tmp_path: Path, cluster: ClusterStub
) -> None:
    cluster.is_lost = True
    with pytest.raises(WorkbenchError, match=r"was lost\. The rows that it had sent are kept"):
        wb.sweep({"grid": GRID}, tmp_path / "a.sqlite", cluster=ADDRESS)


def test_a_cluster_that_cannot_be_reached_is_named(
    tmp_path: Path, cluster: ClusterStub, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(address: str, timeout: float, set_as_default: bool) -> Any:
        """Fail as a client of distributed whose scheduler does not answer."""
        raise OSError("no route\nto host")

    monkeypatch.setattr(sys.modules["distributed"], "Client", refuse)
    with pytest.raises(WorkbenchError, match=f"{ADDRESS} cannot be reached: no route to host"):
        wb.sweep({"grid": GRID}, tmp_path / "a.sqlite", cluster=ADDRESS)
