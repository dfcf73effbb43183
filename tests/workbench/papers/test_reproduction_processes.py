"""Test that several processes write the same files, rows and errors as one, also if stopped.

`wb.reproduce` computes the artifacts of papers, their figures and tables. A step is a group of
artifacts that one process computes. Most tests use `make_test_paper`, a paper of five artifacts that
take no time, and run its steps in this process.
"""

from __future__ import annotations

import dataclasses
import os
import pickle
import re
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
from workbench.io.result import Result
from workbench.papers import PAPERS, gallery, load_paper, reproduce, steps
from workbench.papers.artifact import Artifact, Comparison, Paper
from workbench.papers.steps import plan_steps


def read_files(folder: Path) -> dict[str, bytes]:
    """Return the contents of all files of a folder by their relative paths."""
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file()
    }


@dataclasses.dataclass(frozen=True)
class Reproduction:
    """A run of `wb.reproduce` with four artifacts of three papers.

    Attributes:
        folder: The folder with its files.
        result: Its result.
        lines: The lines of its progress.
    """

    folder: Path
    result: Result
    lines: Sequence[str]


def reproduce_artifacts(folder: Path, *, jobs: int) -> Reproduction:
    """Reproduce four artifacts of three papers on this number of processes."""
    lines: list[str] = []
    result = wb.reproduce(
        ["modulo-noise", "dql", "optm"],
        ["fig1", "theorem8", "table3", "table4"],
        folder,
        jobs=jobs,
        progress=lambda done, total, line: lines.append(line),
    )
    return Reproduction(folder, result, lines)


@pytest.fixture(scope="module")
def on_one_process(tmp_path_factory: pytest.TempPathFactory) -> Reproduction:
    """Return a run on one process."""
    pytest.importorskip("sklearn")
    return reproduce_artifacts(tmp_path_factory.mktemp("one"), jobs=1)


@pytest.fixture(scope="module")
def on_two_processes(tmp_path_factory: pytest.TempPathFactory) -> Reproduction:
    """Return a run on two processes."""
    pytest.importorskip("sklearn")
    return reproduce_artifacts(tmp_path_factory.mktemp("two"), jobs=2)


def test_two_processes_return_the_rows_of_one(
    on_one_process: Reproduction, on_two_processes: Reproduction
) -> None:
    result = on_two_processes.result
    assert result.rows == on_one_process.result.rows
    assert len(result.rows) > 4
    assert (result.finished, result.total, result.is_interrupted) == (4, 4, False)


def test_two_processes_write_the_bytes_of_one(
    on_one_process: Reproduction, on_two_processes: Reproduction
) -> None:
    files = read_files(on_one_process.folder)
    assert len(files) > 10
    assert read_files(on_two_processes.folder) == files


def test_a_reproduction_writes_files_in_seven_formats(on_two_processes: Reproduction) -> None:
    endings = {name.rpartition(".")[2] for name in read_files(on_two_processes.folder)}
    assert endings == {"csv", "json", "md", "html", "png", "svg", "pdf"}


def test_the_progress_of_two_processes_counts_finished_artifacts(
    on_two_processes: Reproduction,
) -> None:
    first_line, *more_lines = on_two_processes.lines
    assert first_line.startswith("On 2 processes")
    counts = [line.partition(" ")[0] for line in more_lines if "done in" in line]
    assert counts == ["[1/4]", "[2/4]", "[3/4]", "[4/4]"]


def test_a_table_for_latex_is_written_on_request(tmp_path: Path) -> None:
    wb.reproduce("optm", "table3", tmp_path, jobs=1, formats=["tex"])
    assert {file.name for file in (tmp_path / "optm").iterdir()} == {
        "table3.csv",
        "table3.json",
        "table3.tex",
    }
    assert (tmp_path / "optm" / "table3.tex").read_text("utf-8").count(r"\midrule") == 1


def test_an_unknown_format_is_refused(tmp_path: Path) -> None:
    with pytest.raises(
        wb.InvalidRequest,
        match=r"format must be one of csv, tex, png, svg, pdf, column, page\. Got 'docx'",
    ):
        wb.reproduce("optm", "table3", tmp_path, formats=["docx"])


def make_artifact_function(name: str, computed_names: list[str]) -> Callable[[bool], Artifact]:
    """Return a function that adds its name to a list and makes an artifact with one comparison."""

    def make(full: bool) -> Artifact:
        """Make the artifact, and note its name. `full` has no effect."""
        computed_names.append(name)
        comparison = Comparison(name, "Table 1", printed=1.0, ours=1.25, tolerance=0.5)
        return Artifact(name, name, pd.DataFrame({"x": [1]}), None, "", [comparison])

    return make


def make_test_paper(computed_names: list[str]) -> Paper:
    """Return a paper with the name dql. Its artifacts add their names to a list.

    "first" and "second" are computed together, and "clock" measures time.
    """
    names = ("short", "first", "second", "clock", "long")
    return Paper(
        name="dql",
        title="t",
        citation="c",
        artifacts={name: make_artifact_function(name, computed_names) for name in names},
        errata=lambda: (),
        computed_together=[("first", "second")],
        expected_seconds={"long": 9, "second": 4},
        timed_alone=("clock",),
    )


def test_artifacts_that_share_a_computation_are_one_step_and_clocks_run_alone() -> None:
    paper = make_test_paper([])
    expected_seconds, lone_steps = plan_steps(
        [(paper, name) for name in (*paper.artifacts, "errata")]
    )
    assert {step.names: seconds for step, seconds in expected_seconds.items()} == {
        ("short",): 1,
        ("first", "second"): 5,
        ("long",): 9,
        ("errata",): 1,
    }
    assert [step.names for step in lone_steps] == [("clock",)]


@pytest.mark.parametrize("name", list(PAPERS))
def test_the_plan_of_a_paper_only_names_its_artifacts(name: str) -> None:
    paper = load_paper(name)
    planned_names = {*paper.expected_seconds, *paper.timed_alone, *paper.resumable}
    planned_names.update(*paper.computed_together)
    assert planned_names <= {*paper.artifacts, "errata"}
    assert {*paper.resumable} <= {*paper.only_full}


@pytest.mark.parametrize("name", list(PAPERS))
def test_every_artifact_is_in_one_step(name: str) -> None:
    paper = load_paper(name)
    names = [*paper.artifacts, "errata"]
    expected_seconds, lone_steps = plan_steps([(paper, artifact) for artifact in names])
    names_in_steps = [name for step in (*expected_seconds, *lone_steps) for name in step.names]
    assert sorted(names_in_steps) == sorted(names)


def run_backwards(
    tasks: Sequence[Any], jobs: int, work: Callable[[Any], Any], *, tasks_per_process: int
) -> Iterator[tuple[int, Any]]:
    """Run tasks like `run_on_processes`, but in this process and the last one first."""
    for index in reversed(range(len(tasks))):
        yield index, work(tasks[index])


@pytest.fixture
def use_paper(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Return a function that replaces all papers by one, and the processes by a function."""

    def replace_papers(paper: Paper, run: Any = run_backwards) -> None:
        """Let every name load this paper, and let `run` replace `run_on_processes`."""
        for module in (reproduce, steps, gallery):
            monkeypatch.setattr(module, "load_paper", lambda name: paper)
        monkeypatch.setattr("workbench.sweeps.workers.run_on_processes", run)

    return replace_papers


def test_rows_are_in_the_order_of_the_paper_whatever_ends_first(
    use_paper: Any, tmp_path: Path
) -> None:
    computed_names: list[str] = []
    use_paper(make_test_paper(computed_names))
    result = wb.reproduce("dql", results=tmp_path, jobs=2)
    assert [row["artifact"] for row in result] == ["short", "first", "second", "clock", "long"]
    assert computed_names == ["short", "first", "second", "long", "clock"]
    assert (tmp_path / "dql/errata.json").exists()
    assert "### clock" in (tmp_path / "README.md").read_text()


def test_only_errata_checks_the_errata_and_makes_no_artifact(
    use_paper: Any, tmp_path: Path
) -> None:
    computed_names: list[str] = []
    use_paper(make_test_paper(computed_names))
    result = wb.reproduce("dql", "errata", tmp_path, jobs=1)
    assert computed_names == []
    assert result.sentences == ("dql: 0 of 0 errata are shown by their checks.",)
    assert [path.name for path in (tmp_path / "dql").iterdir()] == ["errata.json"]


def test_errata_of_a_paper_without_errata_are_refused(tmp_path: Path) -> None:
    with pytest.raises(wb.InvalidRequest, match="only must be one of"):
        wb.reproduce("formulas", "errata", tmp_path)


def test_an_artifact_that_reads_results_is_planned_last() -> None:
    paper = dataclasses.replace(make_test_paper([]), reads_results=("short",))
    _, lone_steps = plan_steps([(paper, name) for name in paper.artifacts])
    assert [step.names for step in lone_steps] == [("clock",), ("short",)]


def test_an_artifact_that_reads_results_gets_their_folder_after_the_others(
    use_paper: Any, tmp_path: Path
) -> None:
    computed_names: list[str] = []
    folders: list[Path] = []
    paper = make_test_paper(computed_names)

    def make_reader(full: bool, results: Path, papers: Sequence[Paper]) -> Artifact:
        """Make the artifact "reader", and note the folder that it gets."""
        # The files of the other artifacts exist already.
        assert (results / "dql/long.csv").exists()
        folders.append(results)
        return make_artifact_function("reader", computed_names)(full)

    artifacts = {"reader": make_reader, **paper.artifacts}
    use_paper(dataclasses.replace(paper, artifacts=artifacts, reads_results=("reader",)))
    wb.reproduce("dql", results=tmp_path, jobs=2)
    assert folders == [tmp_path]
    assert "reader" in computed_names[4:]


def test_two_runs_write_the_same_bytes_and_the_readme_links_to_their_files(
    use_paper: Any, tmp_path: Path
) -> None:
    use_paper(make_test_paper([]))
    folders = tmp_path / "one", tmp_path / "two"
    for folder in folders:
        wb.reproduce("dql", results=folder, jobs=2)
    files = sorted(path.relative_to(folders[0]) for path in folders[0].rglob("*.*"))
    assert Path("dql/first.csv") in files
    for file in files:
        assert (folders[0] / file).read_bytes() == (folders[1] / file).read_bytes(), file
    text = (folders[0] / "README.md").read_text("utf-8")
    links = re.findall(r"\]\((?!http)([^)]+)\)", text)
    assert "dql/first.csv" in links
    for link in links:
        assert (folders[0] / link).is_file(), link


def test_an_error_keeps_the_artifacts_that_ended_before(use_paper: Any, tmp_path: Path) -> None:
    def fail(full: bool) -> Artifact:
        """Fail in place of making an artifact."""
        raise WorkbenchError("No.")

    paper = make_test_paper([])
    paper.artifacts["first"] = fail  # type: ignore[index]
    use_paper(paper)
    with pytest.raises(WorkbenchError, match=r"^No\.$"):
        wb.reproduce("dql", results=tmp_path, jobs=2)
    assert "### short" in (tmp_path / "README.md").read_text()
    assert not (tmp_path / "dql/long.csv").exists()


def test_a_step_that_kills_its_processes_is_named(use_paper: Any, tmp_path: Path) -> None:
    def run_and_die(tasks: Any, jobs: int, work: Any, *, tasks_per_process: int) -> Any:
        """Run tasks like `run_on_processes` whose processes die in the second task."""
        # The result None means that the processes of this task died.
        yield 1, None

    use_paper(make_test_paper([]), run_and_die)
    with pytest.raises(WorkbenchError, match="that computed dql first, second died repeatedly"):
        wb.reproduce("dql", results=tmp_path, jobs=2)


@pytest.mark.parametrize("jobs", [0, True, 1.5, 2000])
def test_jobs_must_be_an_integer_from_1_to_1024(jobs: Any, tmp_path: Path) -> None:
    with pytest.raises(wb.InvalidRequest, match=r"^jobs must be an integer in 1\.\.1024\. Got"):
        wb.reproduce("dql", "theorem8", tmp_path, jobs=jobs)


def run_until_ctrl_c(folder: Path, temporary_folder: Path) -> int:
    """Reproduce table9 and fig4b of optm on two processes, and press Ctrl-C after table9.

    Args:
        folder: The folder of the results.
        temporary_folder: The folder for temporary files of the command.

    Returns:
        The identifier of the process group of the command, which ended with the exit code 2.
    """
    options = "reproduce --paper optm --only table9 --only fig4b --jobs 2 --out"
    call = [sys.executable, "-m", "workbench", *options.split(), str(folder)]
    environment = os.environ | {"TMPDIR": str(temporary_folder)}
    with subprocess.Popen(
        call, stderr=subprocess.PIPE, text=True, start_new_session=True, env=environment
    ) as command:
        assert command.stderr is not None
        line = ""
        for line in command.stderr:
            if "table9 done in" in line:
                break
        assert "table9 done in" in line
        os.killpg(command.pid, signal.SIGINT)
        # The command would wait if nobody read its messages.
        command.stderr.read()
        assert command.wait(300) == 2
    return command.pid


def test_ctrl_c_ends_the_workers_and_keeps_finished_artifacts(tmp_path: Path) -> None:
    results = tmp_path / "results"
    group = run_until_ctrl_c(results, tmp_path)
    assert {path.name for path in (results / "optm").iterdir()} == {"table9.csv", "table9.json"}
    assert "Table 9" in (results / "README.md").read_text()
    assert not list(tmp_path.glob("workbench-reproduce-*"))
    assert wait_for_group(group)


def wait_for_group(group: int) -> bool:
    """Return whether all processes of a group end within five minutes.

    Semaphore trackers end a little later than their parent.
    """
    for _ in range(3000):
        try:
            os.killpg(group, 0)
        except ProcessLookupError:
            return True
        time.sleep(0.1)
    return False


def test_errors_of_workers_keep_their_numbers() -> None:
    error = pickle.loads(pickle.dumps(NotProven("Not proven.", incumbent=2.0, bound=1.0)))
    assert (str(error), error.incumbent, error.bound) == ("Not proven.", 2.0, 1.0)
