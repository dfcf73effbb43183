"""Test that several processes give the files, rows and errors of one, also if stopped."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

import workbench as wb
from workbench.errors import NotProven, WorkbenchError
from workbench.papers import PAPERS, gallery, load_paper, reproduce, steps
from workbench.papers.artifact import Artifact, Comparison, Paper
from workbench.papers.steps import plan_steps


def files(folder: Path) -> dict[str, bytes]:
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file()
    }


def test_two_processes_write_the_bytes_of_one(tmp_path: Path) -> None:
    pytest.importorskip("sklearn")
    lines: list[str] = []
    papers, names = ["modulo-noise", "dql", "optm"], ["fig1", "theorem8", "table3", "table4"]
    single = wb.reproduce(papers, names, tmp_path / "one", jobs=1)
    several = wb.reproduce(
        papers,
        names,
        tmp_path / "two",
        jobs=2,
        progress=lambda done, total, line: lines.append(line),
    )
    assert several.rows == single.rows
    assert len(single.rows) > 4
    assert (several.finished, several.total, several.is_interrupted) == (4, 4, False)
    written = files(tmp_path / "one")
    assert len(written) > 10
    assert files(tmp_path / "two") == written
    assert {name.rpartition(".")[2] for name in written} == {
        "csv",
        "json",
        "md",
        "html",
        "png",
        "svg",
        "pdf",
    }
    assert lines[0].startswith("On 2 processes")
    assert [line[:5] for line in lines if "done in" in line] == [f"[{k}/4]" for k in range(1, 5)]


def test_other_formats_are_written_besides(tmp_path: Path) -> None:
    wb.reproduce("optm", "table3", tmp_path, jobs=1, formats=["tex"])
    assert {file.name for file in (tmp_path / "optm").iterdir()} == {
        "table3.csv",
        "table3.json",
        "table3.tex",
    }
    assert (tmp_path / "optm" / "table3.tex").read_text("utf-8").count(r"\midrule") == 1
    with pytest.raises(
        wb.InvalidRequest,
        match=r"format must be one of csv, tex, png, svg, pdf, column, page\. Got 'docx'",
    ):
        wb.reproduce("optm", "table3", tmp_path, formats=["docx"])


def compute(name: str, tried: list[str]) -> Callable[[bool], Artifact]:
    def artifact(full: bool) -> Artifact:
        tried.append(name)
        compared = [Comparison(name, "Table 1", 1.0, 1.25, 0.5)]
        return Artifact(name, name, pd.DataFrame({"x": [1]}), None, "", compared)

    return artifact


def paper(tried: list[str], **more: Any) -> Paper:
    names = ("short", "first", "second", "clock", "long")
    artifacts = {name: compute(name, tried) for name in names}
    return Paper(
        "dql",
        "t",
        "c",
        artifacts,
        lambda: (),
        computed_together=[("first", "second")],
        expected_seconds={"long": 9, "second": 4},
        timed_alone=("clock",),
        **more,
    )


def test_what_measures_time_is_alone_and_what_shares_its_computation_together() -> None:
    chosen = paper([])
    weighed, alone = plan_steps([(chosen, name) for name in (*chosen.artifacts, "errata")])
    assert {step.names: seconds for step, seconds in weighed.items()} == {
        ("short",): 1,
        ("first", "second"): 5,
        ("long",): 9,
        ("errata",): 1,
    }
    assert [step.names for step in alone] == [("clock",)]


@pytest.mark.parametrize("name", list(PAPERS))
def test_what_papers_say_of_their_artifacts_is_of_these(name: str) -> None:
    known = load_paper(name)
    spoken_of = {
        *known.expected_seconds,
        *known.timed_alone,
        *known.resumable,
        *(one for group in known.computed_together for one in group),
    }
    assert spoken_of <= {*known.artifacts, "errata"}
    assert {*known.resumable} <= {*known.only_full}
    weighed, alone = plan_steps([(known, one) for one in (*known.artifacts, "errata")])
    taken = [name for step in (*weighed, *alone) for name in step.names]
    assert sorted(taken) == sorted([*known.artifacts, "errata"])


def backwards(
    tasks: Sequence[Any], jobs: int, work: Callable[[Any], Any], *, tasks_per_process: int
) -> Iterator[tuple[int, Any]]:
    """Run tasks like `run_on_processes`, but in this process and the last one first."""
    for at in reversed(range(len(tasks))):
        yield at, work(tasks[at])


@pytest.fixture
def here(monkeypatch: pytest.MonkeyPatch) -> Callable[[Paper], None]:
    def use(chosen: Paper, run: Any = backwards) -> None:
        for module in (reproduce, steps, gallery):
            monkeypatch.setattr(module, "load_paper", lambda name: chosen)
        monkeypatch.setattr("workbench.sweeps.workers.run_on_processes", run)

    return use


def test_rows_and_files_are_in_order_whatever_ends_first(here: Any, tmp_path: Path) -> None:
    tried: list[str] = []
    here(paper(tried))
    result = wb.reproduce("dql", results=tmp_path, jobs=2)
    assert [row["artifact"] for row in result] == ["short", "first", "second", "clock", "long"]
    assert tried == ["short", "first", "second", "long", "clock"]
    assert (tmp_path / "dql/errata.json").exists()
    assert "### clock" in (tmp_path / "README.md").read_text()


def test_an_error_keeps_what_ended_before(here: Any, tmp_path: Path) -> None:
    def fails(full: bool) -> Artifact:
        raise WorkbenchError("No.")

    chosen = paper([])
    chosen.artifacts["first"] = fails  # type: ignore[index]
    here(chosen)
    with pytest.raises(WorkbenchError, match=r"^No\.$"):
        wb.reproduce("dql", results=tmp_path, jobs=2)
    assert "### short" in (tmp_path / "README.md").read_text()
    assert not (tmp_path / "dql/long.csv").exists()


def test_a_task_that_kills_its_processes_is_named(here: Any, tmp_path: Path) -> None:
    here(paper([]), lambda tasks, jobs, work, *, tasks_per_process: (pair for pair in [(1, None)]))
    with pytest.raises(WorkbenchError, match="that computed dql first, second died repeatedly"):
        wb.reproduce("dql", results=tmp_path, jobs=2)


@pytest.mark.parametrize("jobs", [0, True, 1.5, 2000])
def test_jobs_are_a_number_of_processes(jobs: Any, tmp_path: Path) -> None:
    with pytest.raises(wb.InvalidRequest, match=r"^jobs must be an integer in 1\.\.1024\. Got"):
        wb.reproduce("dql", "theorem8", tmp_path, jobs=jobs)


def test_ctrl_c_ends_the_workers_and_keeps_what_is_finished(tmp_path: Path) -> None:
    """Stop a run in which table9 is finished and fig4b is not."""
    call = [
        sys.executable,
        "-m",
        "workbench",
        "reproduce",
        "--paper",
        "optm",
        "--only",
        "table9",
        "--only",
        "fig4b",
        "--jobs",
        "2",
        "--out",
        str(tmp_path / "results"),
    ]
    environment = os.environ | {"TMPDIR": str(tmp_path)}
    with subprocess.Popen(
        call, stderr=subprocess.PIPE, text=True, start_new_session=True, env=environment
    ) as running:
        assert running.stderr is not None
        line = ""
        for line in running.stderr:
            if "table9 done in" in line:
                break
        assert "table9 done in" in line
        os.killpg(running.pid, signal.SIGINT)
        running.stderr.read()
        assert running.wait(300) == 2
    assert {path.name for path in (tmp_path / "results/optm").iterdir()} == {
        "table9.csv",
        "table9.json",
    }
    assert "Table 9" in (tmp_path / "results/README.md").read_text()
    assert not list(tmp_path.glob("workbench-reproduce-*"))
    assert ends(running.pid)


def ends(group: int) -> bool:
    """Return whether all processes of a group end soon. Semaphore trackers end after their parent."""
    for _ in range(300):
        try:
            os.killpg(group, 0)
        except ProcessLookupError:
            return True
        time.sleep(0.1)
    return False


def test_errors_reach_the_parent_whole() -> None:
    import pickle

    error = pickle.loads(pickle.dumps(NotProven("Not proven.", incumbent=2.0, bound=1.0)))
    assert (str(error), error.incumbent, error.bound) == ("Not proven.", 2.0, 1.0)
