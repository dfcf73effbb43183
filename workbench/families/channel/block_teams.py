"""Parts of `models.block_interior` in processes: of this machine (`--jobs`), or on the workers of a Dask scheduler.

Each holds an equal share of the outputs and answers with what is summed over them; after a step it hands over where it
is. One that dies is started again, and all are put back to their last points: that costs an iteration, and the numbers
are those they would have been. Nothing is shared but these messages: a cluster needs no common file system.
"""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import time
import uuid
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from concurrent.futures import CancelledError
from typing import Any

from models.block_parts import Lost, Part, Setup, Team
from solvers.search import Deadline
from workbench.errors import WorkbenchError
from workbench.io.processes import ONE_THREAD, SAFE, begin_worker, dask_client, safe_start

_DEATHS = 10  # of processes, until a solve is given up
_PATIENCE, _TICK, _CLOSING = 10.0, 0.5, 2.0  # seconds: for a scheduler or a worker, between two looks, to say goodbye
_LARGE = ("part", "restore", "masses", "multipliers")  # calls that are given arrays of all outputs of a part


class Dead(Exception):
    """A worker died with what it held."""


class Worker(ABC):
    """One process that holds a part."""

    @abstractmethod
    def begin(self, name: str, arguments: tuple[Any, ...]) -> None:
        """Start a call of the part's method; "part": make the part of a setup and its outputs. Raises Dead."""

    @abstractmethod
    def end(self) -> Any:
        """What the last call answered. Raises Dead."""

    @abstractmethod
    def close(self) -> None:
        """Let it go."""


class Spread(Team, ABC):
    """A team of workers."""

    def __init__(self, count: int) -> None:
        self.count = count
        self._deaths, self._workers = 0, [self.started(number) for number in range(count)]

    @abstractmethod
    def started(self, number: int) -> Worker:
        """A new worker. Raises WorkbenchError."""

    def restart(self, setup: Setup) -> None:
        """See `Team`."""
        size = setup.costs.shape[1]
        ends = [size * at // self.count for at in range(self.count + 1)]
        self._made = [(setup, slice(*ends[at : at + 2])) for at in range(self.count)]
        self.each("part", self._made)

    def each(self, name: str, arguments: Sequence[tuple[Any, ...]]) -> list[Any]:
        """See `Team`. Raises WorkbenchError where workers die again and again."""
        dead: set[int] = set()
        answers = []
        for number, (worker, given) in enumerate(zip(self._workers, arguments, strict=True)):
            with self._noted(dead, number):
                worker.begin(name, given)
        for number, worker in enumerate(self._workers):
            with self._noted(dead, number):
                answers.append(None if number in dead else worker.end())
        if not dead:
            return answers
        self._deaths += len(dead)
        if self._deaths > _DEATHS:
            raise WorkbenchError(f"{self._deaths} processes that held outputs died; had they too little memory?")
        for number in dead:
            self._workers[number].close()
            self._workers[number] = self.started(number)
            with contextlib.suppress(Dead):  # the next call notices
                self._workers[number].begin("part", self._made[number])
                self._workers[number].end()
        raise Lost

    @contextlib.contextmanager
    def _noted(self, dead: set[int], number: int) -> Iterator[None]:
        try:
            yield
        except Dead:
            dead.add(number)

    def close(self) -> None:
        """Let all workers go."""
        for worker in self._workers:
            worker.close()


class _Process(Worker):
    """A process of this machine, with one thread. Answers are numbered: Ctrl-C may leave one that nobody reads."""

    def __init__(self) -> None:
        from joblib.externals.loky.backend.process import LokyProcess  # runs no script of the user's a second time

        self._pipe, theirs = multiprocessing.Pipe()
        self._process = LokyProcess(target=_serve, args=(theirs, os.getpid()), daemon=True, env=ONE_THREAD | SAFE)
        with safe_start():
            self._process.start()
        theirs.close()
        self._number = 0

    def begin(self, name: str, arguments: tuple[Any, ...]) -> None:
        self._number += 1
        try:
            self._pipe.send((self._number, name, arguments))
        except OSError:
            raise Dead from None

    def end(self) -> Any:
        try:
            while (answer := self._pipe.recv())[0] != self._number:
                pass
        except (EOFError, OSError):
            raise Dead from None
        if answer[2] is not None:
            raise answer[2]
        return answer[1]

    def close(self) -> None:
        self._process.terminate()
        self._process.join()
        self._pipe.close()


class _Holder:
    """What a worker has: its part."""

    def call(self, name: str, arguments: tuple[Any, ...]) -> Any:
        """Of the part, or make it."""
        if name == "part":
            setup, outputs = arguments
            self._part: Part = setup.part(outputs)
            return None
        return getattr(self._part, name)(*arguments)


def _serve(pipe: Any, parent: int) -> None:
    """What a process of this machine does."""
    begin_worker(parent)
    holder = _Holder()
    with contextlib.suppress(EOFError, OSError):
        while True:
            number, name, arguments = pipe.recv()
            answer, error = None, None
            try:
                answer = holder.call(name, arguments)
            except Exception as failure:  # the method's own, such as LinAlgError
                error = failure
            pipe.send((number, answer, error))


class Processes(Spread):
    """Processes of this machine."""

    def started(self, number: int) -> Worker:
        """See `Spread`."""
        return _Process()


_HELD: dict[tuple[str, int], _Holder] = {}  # of a worker of a cluster: what it holds, by team and number


def _call(key: tuple[str, int], name: str, arguments: tuple[Any, ...]) -> Any:
    """On a worker of a cluster. Raises LookupError where it is another one than that which had the part."""
    if name == "part":
        _HELD[key] = _Holder()
    return _HELD[key].call(name, arguments)


class _Remote(Worker):
    """A worker of a cluster."""

    def __init__(self, client: Any, address: str, key: tuple[str, int]) -> None:
        self._client, self._address, self._key = client, address, key
        self._future: Any = None

    def _submitted(self, call: Any, *arguments: Any) -> Any:
        return self._client.submit(call, self._key, *arguments, workers=[self._address], allow_other_workers=False,
                                   pure=False)  # fmt: skip

    def begin(self, name: str, arguments: tuple[Any, ...]) -> None:
        if name in _LARGE and self._address in alive(self._client):
            arguments = self._client.scatter(arguments, workers=[self._address], hash=False)
        self._future = self._submitted(_call, name, arguments)

    def end(self) -> Any:
        from distributed import KilledWorker

        while True:
            try:
                return self._future.result(timeout=_TICK)
            except TimeoutError:
                if self._address not in alive(self._client):
                    raise Dead from None
            except (LookupError, CancelledError, KilledWorker, OSError):
                raise Dead from None

    def close(self) -> None:
        if self._address in alive(self._client):
            self._submitted(_HELD.pop, None)
        self._future = None


def alive(client: Any) -> list[str]:
    """The addresses of the workers that a scheduler has now."""
    return sorted(client.sync(client.scheduler.identity)["workers"])


class Cluster(Spread):
    """All workers of a Dask scheduler, such as tcp://host:8786, that are there at the start."""

    def __init__(self, address: str) -> None:
        self._address, self._name = address, uuid.uuid4().hex
        self._client = dask_client(address, _PATIENCE, "A design on a cluster")
        super().__init__(max(1, len(alive(self._client))))

    def started(self, number: int) -> Worker:
        """See `Spread`."""
        deadline = Deadline(_PATIENCE)
        while not deadline.passed:
            if there := alive(self._client):
                return _Remote(self._client, there[number % len(there)], (self._name, number))
            time.sleep(_TICK)
        raise WorkbenchError(f"The cluster at {self._address} has had no worker for {_PATIENCE:g} s.")

    def close(self) -> None:
        """See `Spread`."""
        super().close()
        with contextlib.suppress(TimeoutError, OSError):
            self._client.close(timeout=_CLOSING)


def team_of(jobs: int, cluster: str | None) -> Spread | None:
    """Where a request's outputs are held; None for this process."""
    if cluster is not None:
        return Cluster(cluster)
    return Processes(jobs) if jobs > 1 else None
