"""Outputs shared by processes and by the workers of a cluster: the same answers, also where a worker is killed."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import workbench as wb
from models.block_interior import Interior
from models.block_parts import Blocks, Lost, Setup, Team
from workbench.families.channel import block_teams, blocks

QUESTION = wb.FiniteQuery("0..29", max_shift=1)
GIVEN: dict[str, Any] = {"loss": "absolute", "epsilon": 1, "delta": "0.01"}


def certificate(path: Path, **options: Any) -> str:
    """The file of a design."""
    wb.design(QUESTION, **GIVEN, method="block", **options).save(path)
    return path.read_text()


def killing(monkeypatch: pytest.MonkeyPatch, pid: Callable[[Any], int]) -> list[int]:
    """Kill the worker of the second part in the third iteration; what was killed."""
    killed: list[int] = []
    begin, calls = block_teams.Spread.each, [0]

    def each(team: Any, name: str, arguments: Any) -> list[Any]:
        calls[0] += name == "system"
        if calls[0] == 3 and not killed:
            killed.append(pid(team))
            os.kill(killed[0], signal.SIGKILL)
        answers: list[Any] = begin(team, name, arguments)
        return answers

    monkeypatch.setattr(block_teams.Spread, "each", each)
    return killed


@pytest.mark.parametrize(
    ("question", "options"),
    [
        (QUESTION, GIVEN),
        (wb.FiniteQuery("0..19", neighbours="all", prior="worst"), {"epsilon": 1, "notion": "pure"}),
        (wb.FiniteQuery("0..19", max_shift=2), {"epsilon": 1, "notion": "pure"}),
    ],
    ids=["delta", "worst of all pairs", "graph"],
)
def test_parts_answer_as_the_whole(question: wb.FiniteQuery, options: dict[str, Any]) -> None:
    class Split(Team):
        """Three parts in this process, of which every fifth call loses all."""

        count, calls = 3, 0

        def restart(self, setup: Setup) -> None:
            ends = [setup.costs.shape[1] * at // 3 for at in range(4)]
            self.parts = [setup.part(slice(*ends[at : at + 2])) for at in range(3)]
            self.setup = setup

        def each(self, name: str, arguments: Any) -> list[Any]:
            self.calls += 1
            if self.calls % 50 == 49:
                self.restart(self.setup)
                raise Lost
            return [getattr(part, name)(*given) for part, given in zip(self.parts, arguments, strict=True)]

    request = wb.design(question, method="block", **options).request
    whole = blocks.solved(request)
    stated: list[Blocks] = []

    def kept(blocks_: Blocks, report: Any, team: Any) -> Interior:
        stated.append(blocks_)
        return Interior(blocks_, report, Split())

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(blocks, "Interior", kept)
        parts = blocks.solved(request)
    assert stated
    assert parts.solution.objective == pytest.approx(whole.solution.objective, rel=1e-9)
    assert float(parts.bound) == pytest.approx(float(whole.bound), rel=1e-9)
    np.testing.assert_allclose(parts.masses, whole.masses, atol=1e-4)


def test_a_killed_process_costs_an_iteration_and_no_digit(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    quiet = certificate(tmp_path / "quiet.json", jobs=2)
    with monkeypatch.context() as patch:
        killed = killing(patch, lambda team: int(team._workers[1]._process.pid))
        assert certificate(tmp_path / "killed.json", jobs=2) == quiet
    assert len(killed) == 1
    assert wb.check(tmp_path / "killed.json").holds


def test_processes_that_always_die_are_one_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(block_teams, "_DEATHS", 2)
    begin = block_teams.Spread.each

    def each(team: Any, name: str, arguments: Any) -> list[Any]:
        os.kill(team._workers[0]._process.pid, signal.SIGKILL)
        answers: list[Any] = begin(team, name, arguments)
        return answers

    monkeypatch.setattr(block_teams.Spread, "each", each)
    with pytest.raises(wb.WorkbenchError, match="processes that held outputs died"):
        wb.design(QUESTION, **GIVEN, jobs=2)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"epsilon": 1, "jobs": 2, "method": "program"}, "left out for method program"),
        ({"notion": "zcdp", "rho": 1, "jobs": 2}, "one bound on ratios"),
        ({"epsilon": 1, "jobs": 0}, "jobs must be an integer in 1..1024"),
    ],
)
def test_what_cannot_be_shared_is_refused(options: dict[str, Any], words: str) -> None:
    with pytest.raises(wb.InvalidRequest, match=words):
        wb.design(QUESTION, **options)


@pytest.fixture(scope="module")
def cluster() -> Iterator[Any]:
    distributed = pytest.importorskip("distributed")
    with distributed.LocalCluster(
        n_workers=2, threads_per_worker=1, processes=True, dashboard_address=":0", silence_logs=50
    ) as made:
        yield made


def test_a_killed_worker_of_a_cluster_gives_the_same_certificate(
    cluster: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    address = cluster.scheduler_address
    quiet = certificate(tmp_path / "quiet.json", cluster=address)
    with monkeypatch.context() as patch:
        killed = killing(patch, lambda team: int(list(cluster.workers.values())[1].pid))
        assert certificate(tmp_path / "killed.json", cluster=address) == quiet
    assert len(killed) == 1


def test_a_cluster_that_is_not_there_is_one_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("distributed")
    monkeypatch.setattr(block_teams, "_PATIENCE", 0.5)
    with pytest.raises(wb.WorkbenchError, match="cannot be reached") as error:
        wb.design(QUESTION, **GIVEN, cluster="tcp://127.0.0.1:9")
    assert "\n" not in str(error.value)
