"""Test sweeps: every point once, failures as rows, checked hot starts, dead workers, exports."""

from __future__ import annotations

import csv
import hashlib
import json
import os
import pickle
import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

import workbench as wb
from workbench.cli import main
from workbench.errors import InvalidRequest, WorkbenchError
from workbench.pipeline.family import Session
from workbench.pipeline.registry import list_family_names
from workbench.questions.modulo_noise import ModuloNoise
from workbench.sweeps import workers as sweep_workers
from workbench.sweeps.export import flatten_ledger
from workbench.sweeps.ledger import Ledger
from workbench.sweeps.specification import read_spec
from workbench.sweeps.workers import Task, run_on_processes, solve_task

EXAMPLES = Path(__file__).parents[3] / "examples" / "sweeps"
# A grid of 12 points: 2 values of δ and 6 of ε.
SMALL = {
    "model": "modulo",
    "n": 6,
    "max_shift": 2,
    "notion": "dp",
    "delta": [0, 0.1],
    "epsilon": "0.5:1.5:6",
}


def run(capsys: pytest.CaptureFixture[str], *arguments: object) -> tuple[int, str, str]:
    """Run a command. Return its exit code and its texts on stdout and stderr."""
    with pytest.raises(SystemExit) as stop:
        main([str(argument) for argument in arguments])
    captured = capsys.readouterr()
    return int(stop.value.code or 0), captured.out, captured.err


def read_rows(path: Path) -> list[dict[str, Any]]:
    """Return the flat rows of a ledger file."""
    with Ledger(path, create=False) as ledger:
        return flatten_ledger(ledger)


def test_every_model_of_the_registry_is_in_the_examples_and_they_run(capsys, tmp_path: Path):
    """All points have an answer that no check contradicts."""
    ledger = tmp_path / "ledger.sqlite"
    for file in sorted(EXAMPLES.glob("*.toml")):
        jobs = 2 if file.stem == "models" else 1
        code, out, _ = run(capsys, "sweep", file, "--ledger", ledger, "--jobs", jobs, "--json")
        summary = json.loads(out)
        assert code == 0
        assert summary["solved"] == summary["points"] > 20
        assert set(summary["statuses"]) <= {"optimal", "found"}
    rows = read_rows(ledger)
    assert {row["model"] for row in rows} == set(list_family_names())
    for row in rows:
        # None: the family has no formula to compare with.
        assert row["oracle_agrees"] in (True, None)
        # Laplace designs are computed by formulas, so nothing is audited.
        assert row["audited"] is (row["model"] != "laplace")
        if row["model"] == "laplace":
            assert row["private"] is None
        assert row["certified"] is True or row["check"] != "certify"


def test_a_row_agrees_with_the_design_of_its_request(tmp_path: Path):
    wb.sweep({"grid": {**SMALL, "check": "audit"}}, tmp_path / "a.sqlite", jobs=1)
    for row in read_rows(tmp_path / "a.sqlite"):
        design = wb.design(
            ModuloNoise(n=6, max_shift=2),
            epsilon=row["epsilon"],
            delta=row["delta"],
            notion="dp",
            certify=False,
        )
        assert row["objective"] == pytest.approx(design.objective, abs=1e-9)
        assert row["bound"] == pytest.approx(row["objective"], abs=1e-8)
        assert row["status"] == "optimal"
        assert row["audited"] is True
        assert row["oracle"] == design.oracle.name


def test_the_option_check_decides_the_status_and_the_bound_of_a_row(tmp_path: Path):
    for check, status in (("none", "claimed"), ("bound", "optimal")):
        wb.sweep({"grid": {**SMALL, "check": check}}, tmp_path / f"{check}.sqlite", jobs=1)
        rows = read_rows(tmp_path / f"{check}.sqlite")
        assert {(row["audited"], row["status"]) for row in rows} == {(False, status)}
        assert "private" not in rows[0]
        if check == "none":
            assert {row["bound"] for row in rows} == {None}
        else:
            assert all(row["bound"] == pytest.approx(row["objective"], abs=1e-8) for row in rows)
            assert all(row["residual"] < 1e-9 for row in rows)


def test_a_limit_on_the_minimal_delta_holds_for_every_check(tmp_path: Path):
    for check in ("none", "bound", "audit", "certify"):
        request = {
            "model": "modulo",
            "n": 4,
            "max_shift": 1,
            "notion": "dp",
            "minimise": "delta",
            "max_loss": "0.3",
        }
        wb.sweep(
            {"grid": {**request, "delta": ["0.01", 1], "epsilon": "0.5", "check": check}},
            tmp_path / check,
            jobs=1,
        )
        row_of_limit_1, row_of_limit_001 = sorted(
            read_rows(tmp_path / check), key=lambda row: -row["delta"]
        )
        # The minimal δ is a value of the current program, pinned.
        assert row_of_limit_1["objective"] == pytest.approx(0.54606071, abs=1e-6)
        assert row_of_limit_001["status"] == "infeasible"
        assert row_of_limit_001["objective"] is None
        assert "needs delta >= 0.546" in row_of_limit_001["failure"]


def test_a_wrong_optimum_of_a_solver_gets_the_status_not_proven(tmp_path: Path, monkeypatch):
    """The solver is changed so that its objective is 1 % too large, after every start."""
    from workbench.solvers.solution import Solution

    true_objective = Solution.objective.func  # type: ignore[attr-defined]
    monkeypatch.setattr(Solution, "objective", property(lambda self: true_objective(self) * 1.01))
    outcome = wb.sweep({"grid": {**SMALL, "check": "bound"}}, tmp_path / "a.sqlite", jobs=1)
    assert outcome.statuses == {"not_proven": 12}
    reasons = {row["failure"] for row in read_rows(tmp_path / "a.sqlite")}
    assert reasons == {"says optimal, but its bound does not prove it"}


@pytest.fixture
def ledger_with_other_rows(tmp_path: Path) -> Path:
    """Return a ledger with rows of another sweep (n = 3) and two rows of SMALL (ε = 0.5)."""
    path = tmp_path / "a.sqlite"
    wb.sweep({"grid": {**SMALL, "n": 3}}, path, jobs=1)
    wb.sweep({"grid": {**SMALL, "epsilon": 0.5}}, path, jobs=1)
    return path


def test_a_sweep_returns_the_known_and_new_rows_of_its_points_alone(ledger_with_other_rows: Path):
    result = wb.sweep({"name": "small", "grid": SMALL}, ledger_with_other_rows, jobs=1)
    assert isinstance(result, wb.Result)
    assert (len(result), result.points, result.known) == (12, 12, 2)
    assert result.to_dict()["solved"] == 10
    stored_rows = read_rows(ledger_with_other_rows)
    stored = {row["key"]: row["objective"] for row in stored_rows if row["sizes"] == "[7]"}
    assert {row["key"]: row["objective"] for row in result} == stored
    assert set(result.to_frame()["sizes"]) == {"[7]"}


def test_the_result_of_a_sweep_can_be_shown_pickled_and_saved(tmp_path: Path):
    result = wb.sweep({"name": "small", "grid": SMALL}, tmp_path / "a.sqlite", jobs=1)
    assert repr(result) == "Result('Sweep small', 12 rows)"
    assert "<svg" in result._repr_html_() or "<img" in result._repr_html_()
    assert pickle.loads(pickle.dumps(result)).to_frame().equals(result.to_frame())
    file_names = [file.name for file in result.save(tmp_path / "out")]
    assert file_names == ["sweep.csv", "objective.png", "objective.svg", "objective.pdf"]


def test_a_loss_that_may_jump_is_drawn_in_steps(tmp_path: Path):
    """Under PDP the loss may jump in ε if δ > 0. The last line of the plot explains the steps."""
    under_dp = wb.sweep({"grid": SMALL}, tmp_path / "a.sqlite", jobs=1)
    assert {line.get_drawstyle() for line in under_dp.plot().axes[0].lines} == {"default"}
    under_pdp = wb.sweep({"grid": {**SMALL, "notion": "pdp"}}, tmp_path / "a.sqlite", jobs=1)
    styles = [line.get_drawstyle() for line in under_pdp.plot().axes[0].lines]
    assert styles == ["default", "steps-post", "steps-post"]


def test_a_sweep_counts_its_points_while_it_runs(tmp_path: Path):
    solved_counts = []
    outcome = wb.sweep(
        {"grid": SMALL},
        tmp_path / "a.sqlite",
        jobs=1,
        progress=lambda counts: solved_counts.append(counts.solved),
    )
    assert (outcome.points, outcome.known, outcome.solved, outcome.left) == (12, 0, 12, 0)
    assert solved_counts[0] == 0
    assert solved_counts[-1] == 12


def test_known_points_are_not_solved_again(tmp_path: Path, monkeypatch):
    ledger = tmp_path / "a.sqlite"
    wb.sweep({"grid": SMALL}, ledger, jobs=1)
    monkeypatch.setattr(sweep_workers, "solve_task", None)  # Every solve fails from now on.
    same_sweep = wb.sweep({"grid": SMALL}, ledger, jobs=1)
    assert (same_sweep.known, same_sweep.solved) == (12, 0)
    monkeypatch.undo()
    wider_sweep = wb.sweep({"grid": {**SMALL, "epsilon": "0.5:1.7:7"}}, ledger, jobs=1)
    assert (wider_sweep.points, wider_sweep.known, wider_sweep.solved) == (14, 12, 2)


def test_the_number_of_processes_changes_no_row(tmp_path: Path):
    for jobs in (1, 2):
        wb.sweep({"grid": SMALL}, tmp_path / f"{jobs}.sqlite", jobs=jobs)
    assert read_rows(tmp_path / "1.sqlite") == read_rows(tmp_path / "2.sqlite")


@pytest.mark.parametrize("jobs", [1, 2])
def test_a_full_disk_ends_the_sweep_and_the_next_sweep_uses_the_committed_rows(
    tmp_path: Path, jobs: int
):
    """SQLite may add 6 pages to the file, which is too few for all 32 rows."""
    grid = {**SMALL, "max_shift": [1, 2], "notion": ["dp", "pdp"], "epsilon": "0.5:1.5:4"}
    with Ledger(tmp_path / "a.sqlite") as ledger:
        page_count = ledger._fetch_value("pragma page_count")
        ledger._db.execute(f"pragma max_page_count = {page_count + 6}")
        with pytest.raises(WorkbenchError, match="disk is full"):
            wb.sweep({"grid": grid}, ledger, jobs=jobs)
        stored_rows = list(ledger.rows())
    assert 0 < len(stored_rows) < 32
    outcome = wb.sweep({"grid": grid}, tmp_path / "a.sqlite", jobs=jobs)
    assert (outcome.known, outcome.left) == (len(stored_rows), 0)
    wb.sweep({"grid": grid}, tmp_path / "b.sqlite", jobs=1)
    assert read_rows(tmp_path / "a.sqlite") == read_rows(tmp_path / "b.sqlite")


def test_a_damaged_ledger_ends_the_sweep_with_a_message_of_one_line(tmp_path: Path, capsys):
    spec, ledger = tmp_path / "spec.toml", tmp_path / "a.sqlite"
    spec.write_text('[[grid]]\nmodel = "modulo"\nn = 6\nmax_shift = 2\nepsilon = "0.5:1.5:40"\n')
    assert run(capsys, "sweep", spec, "--ledger", ledger, "--jobs", 1)[0] == 0
    intact_bytes = ledger.read_bytes()
    ledger.write_bytes(intact_bytes[:4096] + b"\xa5" * (len(intact_bytes) - 4096))
    code, _, message = run(capsys, "sweep", spec, "--ledger", ledger, "--jobs", 1)
    assert code == 2
    assert message.count("\n") == 1
    assert "is damaged" in message


def test_two_sweeps_may_share_a_ledger(tmp_path: Path):
    spec = read_spec({"grid": {**SMALL, "delta": [0, 0.1, 0.2]}})
    ledger = tmp_path / "a.sqlite"
    other_sweeps: list[Any] = []

    def run_other_sweep_once(outcome: Any) -> None:
        """Run the same sweep before the first point of this one is solved."""
        if not outcome.solved and not other_sweeps:
            other_sweeps.append(None)  # The other sweep must not start a third one.
            other_sweeps[0] = wb.sweep(spec, ledger, jobs=1)

    outcome = wb.sweep(spec, ledger, jobs=1, progress=run_other_sweep_once)
    # Both sweeps solve all 18 points, and the ledger keeps one row of each.
    assert (outcome.solved, outcome.left) == (18, 0)
    assert other_sweeps[0].solved == 18
    assert len(read_rows(ledger)) == 18


FAILING_GRIDS = {
    # Both points need a larger δ.
    "delta is too small": {
        **SMALL,
        "minimise": "delta",
        "max_loss": [0.2, 0.7],
        "delta": 0.01,
        "epsilon": 0.5,
    },
    "the solver cannot solve integer programs": {
        **SMALL,
        "solver": "ortools:glop",
        "notion": "pdp",
        "delta": 0.1,
        "epsilon": 1,
        "method": "literal",
    },
    "the program is too large for the licence": {
        **SMALL,
        "solver": "gurobi",
        "n": 999,
        "max_shift": 3,
        "delta": 0,
        "epsilon": 1,
        "check": "none",
    },
    "no bin is outside the inputs": {"model": "quantizer", "bins": "-1,0,1", "epsilon": 1},
    "the bits are too few": {"model": "laplace", "bits": 1.01, "epsilon": 1},
}


def test_a_failed_solve_is_a_row_with_its_reason(tmp_path: Path):
    grids = list(FAILING_GRIDS.values())
    outcome = wb.sweep({"grid": grids}, tmp_path / "a.sqlite", jobs=1)
    assert outcome.solved == outcome.points == 6
    rows_by_status = {
        (row["model"], row["solver"], row["status"]): row
        for row in read_rows(tmp_path / "a.sqlite")
    }
    assert ("modulo", "ortools:glop", "unavailable") in rows_by_status
    assert ("modulo", "gurobi", "licence") in rows_by_status
    assert "delta >=" in rows_by_status["modulo", "highs", "infeasible"]["failure"]
    assert "beyond" in rows_by_status["quantizer", "highs", "infeasible"]["failure"]
    assert rows_by_status["laplace", None, "infeasible"]["failure"]
    for row in rows_by_status.values():
        assert row["objective"] is None
        assert row["audited"] is False


class _Session(Session):
    """A session that answers 1. Its hot answer at the third point is wrong by `error`.

    A hot solve begins with the answer of the point before, a cold solve does not. `solves` counts
    both. If a point has the entry `fails`, its hot solve is not proven.
    """

    def __init__(self, error: float) -> None:
        self.error = error
        self.solves = 0

    def design(self, point: Mapping[str, Any] | None = None, *, start: str = "hot") -> Any:
        """Fail: a sweep asks for rows alone."""
        raise NotImplementedError

    def row(self, point: Mapping[str, Any], *, start: str = "hot") -> dict[str, Any]:
        """Return the row of a point. The first point has no point before it, so it is cold."""
        self.solves += 1
        is_hot = start == "hot" and point["k"] > 0
        if point.get("fails") and is_hot:
            return {"status": "not_proven", "objective": None, "start": "hot"}
        return {
            "status": "optimal",
            "objective": 1.0 + self.error * (is_hot and point["k"] == 2),
            "start": "hot" if is_hot else "cold",
        }


def make_task(**parameters: Any) -> Task:
    """Return a task of five points for `_Session`. Points 0, 2 and 4 are checked by cold starts."""
    points = tuple({"k": k, **parameters} for k in range(5))
    return Task(
        "modulo",
        {},
        points,
        recheck=(0, 2, 4),
        backend=None,
        versions=sweep_workers.list_versions(None),
    )


@pytest.mark.parametrize(
    ("error", "solves", "start"), [(0.0, 7, "hot"), (1e-10, 7, "hot"), (1e-4, 11, "cold")]
)
def test_after_a_wrong_hot_start_the_whole_task_is_solved_cold(
    error: float, solves: int, start: str
):
    session = _Session(error)
    answers = [answer for answer, _ in sweep_workers._solve_points(session, make_task())]
    assert session.solves == solves
    assert [a["start"] for a in answers] == ["cold", start, start, start, start]
    if start == "hot":
        recheck = "a cold start agrees"
    else:
        recheck = "a hot start disagreed; the whole task was solved cold"
    assert answers[2]["recheck"] == recheck
    assert answers[2]["objective"] == pytest.approx(1.0, abs=1e-9)


def test_a_failure_after_a_hot_start_is_solved_again_cold():
    answers = [
        answer for answer, _ in sweep_workers._solve_points(_Session(0.0), make_task(fails=True))
    ]
    assert [a["status"] for a in answers] == ["optimal"] * 5
    assert {a["start"] for a in answers} == {"cold"}


def test_hot_starts_are_used_and_checked(tmp_path: Path):
    """No δ is 0, because δ = 0 has its own program, and a hot start needs the same program."""
    grid = {**SMALL, "check": "none", "epsilon": "0.5:1.5:60", "delta": [0.05, 0.1]}
    wb.sweep({"grid": grid}, tmp_path / "a.sqlite", jobs=1)
    rows = read_rows(tmp_path / "a.sqlite")
    assert sum(row["start"] == "hot" for row in rows) > 100
    # Three corners of the grid and one percent of the points are solved again.
    assert sum(row["recheck"] == "a cold start agrees" for row in rows) >= 3


class _Deadly:
    """A task that kills its process the first `times` times that it is run.

    A process unpickles the task before it runs it. The file at `count_path` has one character for
    each time.
    """

    def __init__(self, count_path: Path, times: int) -> None:
        self.count_path = count_path
        self.times = times

    def __reduce__(self):
        return _rebuild_or_die, (str(self.count_path), self.times)


def _rebuild_or_die(count_path: str, times: int) -> Task:
    """Unpickle the task, or kill the process if this is one of the first `times` calls."""
    with open(count_path, "a") as file:
        file.write("x")
    if len(Path(count_path).read_text()) <= times:
        os.kill(os.getpid(), signal.SIGKILL)
    return _make_real_task()


def _make_real_task() -> Task:
    """Return the first task of the sweep of SMALL."""
    spec = read_spec({"grid": {**SMALL, "check": "none"}})
    chunk = spec.chunks[0]
    return Task(
        chunk.model, chunk.fixed, chunk.points, chunk.recheck, chunk.backend, chunk.versions
    )


@pytest.mark.parametrize(("times", "is_given_up"), [(1, False), (3, False), (99, True)])
def test_the_tasks_of_a_dead_process_are_retried_up_to_a_limit(
    tmp_path: Path, times: int, is_given_up: bool
):
    tasks = [
        _make_real_task(),
        _make_real_task(),
        _Deadly(tmp_path / "count", times),
        *[_make_real_task() for _ in range(4)],
    ]
    results = list(run_on_processes(tasks, 2))  # type: ignore[arg-type]
    assert sorted(index for index, _ in results) == list(range(7))
    given_up_indices = {index for index, answers in results if answers is None}
    assert given_up_indices == ({2} if is_given_up else set())
    expected = [answer for _, answer, _ in solve_task(_make_real_task())]
    assert all(
        [answer for _, answer, _ in answers] == expected
        for _, answers in results
        if answers is not None
    )


def test_a_task_that_was_given_up_is_reported_and_can_be_run_again(
    tmp_path: Path, capsys, monkeypatch
):
    from workbench.sweeps import run as sweeping

    def give_up(chunks: Any, *_: Any) -> Any:
        """Yield None in place of the answers of the first task."""
        yield 0, None

    monkeypatch.setattr(sweeping, "_solve_chunks", give_up)
    spec = tmp_path / "spec.toml"
    spec.write_text('[[grid]]\nmodel = "modulo"\nn = 3\nmax_shift = 1\nepsilon = [0.5, 1]\n')
    code, out, _ = run(capsys, "sweep", spec, "--ledger", tmp_path / "a.sqlite", "--json")
    assert (code, json.loads(out)["given_up"], json.loads(out)["left"]) == (1, 2, 2)
    monkeypatch.undo()
    code, out, _ = run(
        capsys, "sweep", spec, "--ledger", tmp_path / "a.sqlite", "--json", "--jobs", 1
    )
    assert (code, json.loads(out)["solved"], json.loads(out)["left"]) == (0, 2, 0)


def test_a_worker_of_another_version_is_refused():
    with pytest.raises(WorkbenchError, match="other versions"):
        solve_task(
            Task(
                "modulo",
                {},
                points=(),
                recheck=(),
                backend="highs",
                versions={"workbench": "0.0.1", "highspy": "1"},
            )
        )


def test_ctrl_c_between_two_tasks_keeps_the_rows_of_the_first(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    spec, ledger = tmp_path / "spec.toml", tmp_path / "a.sqlite"
    spec.write_text('[[grid]]\nmodel = "modulo"\nn = [4, 5]\nmax_shift = 1\nepsilon = "0.5:1:2"\n')
    solve_points = sweep_workers._solve_points
    calls: list[Task] = []

    def interrupt_second_call(session: Any, task: Task) -> Any:
        """Solve the first task, and press Ctrl-C in the second."""
        calls.append(task)
        if len(calls) == 2:
            raise KeyboardInterrupt
        return solve_points(session, task)

    monkeypatch.setattr(sweep_workers, "_solve_points", interrupt_second_call)
    code, out, message = run(capsys, "sweep", spec, "--ledger", ledger, "--jobs", 1)
    assert (code, out) == (2, "")
    assert f"Interrupted; 2 of 4 rows are in {ledger}" in message
    assert len(read_rows(ledger)) == 2
    outcome = wb.sweep(spec, ledger, jobs=1)
    assert (outcome.known, outcome.solved, outcome.left) == (2, 2, 0)


# A sweep of two tasks that kills its own process as soon as the rows of the first are stored.
_KILLED_SWEEP = """
import os, signal, sys
import workbench as wb

def kill(counts):
    if counts.solved:
        os.kill(os.getpid(), signal.SIGKILL)

grid = {"model": "modulo", "n": [4, 5], "max_shift": 1, "epsilon": "0.5:1:2"}
wb.sweep({"grid": grid}, sys.argv[1], jobs=1, progress=kill)
"""


def test_a_killed_sweep_keeps_the_stored_rows_and_the_next_one_continues(tmp_path: Path):
    ledger = tmp_path / "a.sqlite"
    killed = subprocess.run([sys.executable, "-c", _KILLED_SWEEP, ledger], check=False)
    assert killed.returncode == -signal.SIGKILL
    grid = {"model": "modulo", "n": [4, 5], "max_shift": 1, "epsilon": "0.5:1:2"}
    outcome = wb.sweep({"grid": grid}, ledger, jobs=1)
    assert (outcome.known, outcome.solved, outcome.left) == (2, 2, 0)
    wb.sweep({"grid": grid}, tmp_path / "undisturbed.sqlite", jobs=1)
    assert read_rows(ledger) == read_rows(tmp_path / "undisturbed.sqlite")


@pytest.mark.parametrize("jobs", [1, 2])
def test_ctrl_c_keeps_the_solved_points(tmp_path: Path, jobs: int):
    spec, ledger = tmp_path / "spec.toml", tmp_path / "a.sqlite"
    spec.write_text(
        '[[grid]]\nmodel = "modulo"\nn = 8\nmax_shift = [1, 2, 3]\nnotion = ["dp", "pdp"]\nepsilon = "0.1:4:2000"\n'
    )
    command = f"-m workbench sweep {spec} --ledger {ledger} --jobs {jobs}".split()
    sweep = subprocess.Popen(
        [sys.executable, *command],
        stderr=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    deadline = time.monotonic() + 300
    while time.monotonic() < deadline and not _count(ledger):
        time.sleep(0.1)
    # A terminal sends the signal to the parent and to its workers.
    os.killpg(sweep.pid, signal.SIGINT)
    out, message = sweep.communicate(timeout=300)
    assert sweep.returncode == 2, message
    assert out == ""
    count = _count(ledger)
    assert message.splitlines()[-1].startswith(
        f"WorkbenchError: Interrupted; {count} of 12000 rows are in"
    )
    assert message.count("Traceback") == 0
    assert 0 < count < 12000


def _count(path: Path) -> int:
    """Return the number of rows of a ledger file, 0 if it does not exist."""
    try:
        with Ledger(path, create=False) as ledger:
            return len(ledger)
    except WorkbenchError:  # The ledger does not exist yet.
        return 0


EXPORTED_SPEC = """\
[[grid]]
model = "modulo"
n = 6
max_shift = 2
notion = ["pdp", "dp"]
delta = [0, 0.1]
epsilon = [0.5, 1]
"""


@pytest.fixture
def ledger_to_export(tmp_path: Path) -> Path:
    """Return a ledger with the 8 rows of `spec.toml` (EXPORTED_SPEC) and 2 rows of another sweep."""
    spec, ledger = tmp_path / "spec.toml", tmp_path / "a.sqlite"
    spec.write_text(EXPORTED_SPEC)
    wb.sweep(spec, ledger, jobs=1)
    wb.sweep({"grid": {**SMALL, "epsilon": 2}}, ledger, jobs=1)
    return ledger


def test_an_export_has_all_rows_and_no_runtimes(tmp_path: Path, capsys, ledger_to_export: Path):
    file = tmp_path / "all.csv"
    code, out, _ = run(capsys, "results", "export", file, "--ledger", ledger_to_export, "--json")
    assert code == 0
    assert (json.loads(out)["rows"], json.loads(out)["missing"]) == (10, 0)
    assert "seconds" not in file.read_text().splitlines()[0]


def export_spec_with_runtimes(capsys: Any, file: Path, ledger: Path) -> dict[str, Any]:
    """Export the rows of `spec.toml` beside the file, with runtimes. Return the command's JSON."""
    spec = file.parent / "spec.toml"
    code, out, _ = run(
        capsys,
        *("results", "export", file, "--ledger", ledger),
        *("--spec", spec, "--effort", "--json"),
    )
    assert code == 0
    return json.loads(out)


def test_csv_and_parquet_exports_of_a_specification_agree(
    tmp_path: Path, capsys, ledger_to_export: Path
):
    pyarrow = pytest.importorskip("pyarrow.parquet")
    for name in ("some.csv", "some.parquet"):
        counts = export_spec_with_runtimes(capsys, tmp_path / name, ledger_to_export)
        assert (counts["rows"], counts["missing"]) == (8, 0)
    with (tmp_path / "some.csv").open(newline="") as file:
        lines = list(csv.DictReader(file))
    table = pyarrow.read_table(tmp_path / "some.parquet")
    assert table.column_names == list(lines[0])
    for line, row in zip(lines, table.to_pylist(), strict=True):
        assert line["key"] == row["key"]
        for column in ("objective", "epsilon", "pure_epsilon"):
            assert float(line[column]) == row[column]
        assert line["private"] == str(row["private"]).lower()
        assert float(line["seconds"]) > 0


def test_an_export_states_its_origin(tmp_path: Path, capsys, ledger_to_export: Path):
    pyarrow = pytest.importorskip("pyarrow.parquet")
    for name in ("some.csv", "some.parquet"):
        export_spec_with_runtimes(capsys, tmp_path / name, ledger_to_export)
    origin = json.loads((tmp_path / "some.csv.json").read_text())
    assert origin["sha256"] == hashlib.sha256((tmp_path / "some.csv").read_bytes()).hexdigest()
    assert EXPORTED_SPEC in [entry["text"] for entry in origin["specifications"]]
    assert origin["versions"][0]["highspy"]
    # A Parquet file has its origin in its metadata.
    table = pyarrow.read_table(tmp_path / "some.parquet")
    assert json.loads(table.schema.metadata[b"dp-workbench"])["rows"] == 8


@pytest.fixture
def ledger_with_an_infeasible_row(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a ledger with 12 rows of SMALL and 2 of Laplace noise, of which 1 is infeasible."""
    # The console wraps no cell, whatever COLUMNS is.
    monkeypatch.setattr("workbench.cli.console.out.width", 120)
    ledger = tmp_path / "a.sqlite"
    laplace = {"model": "laplace", "bits": [1.01, 6], "epsilon": 1}
    wb.sweep({"grid": [SMALL, laplace]}, ledger, jobs=1)
    return ledger


def list_infeasible_rows(capsys: Any, ledger: Path) -> dict[str, Any]:
    """Return the JSON of `workbench results list --status infeasible`."""
    code, out, _ = run(
        capsys, "results", "list", "--ledger", ledger, "--status", "infeasible", "--json"
    )
    assert code == 0
    return json.loads(out)


def test_results_list_counts_the_rows_of_a_status(capsys, ledger_with_an_infeasible_row: Path):
    listed = list_infeasible_rows(capsys, ledger_with_an_infeasible_row)
    assert (listed["rows_in_ledger"], listed["matching"]) == (14, 1)


def test_results_list_shows_a_limited_number_of_rows(capsys, ledger_with_an_infeasible_row: Path):
    code, out, _ = run(
        capsys,
        *("results", "list", "--ledger", ledger_with_an_infeasible_row),
        *("--model", "modulo", "--limit", 3),
    )
    assert code == 0
    assert "3 of 12 matching rows, 14 in" in out.replace("\n", " ")
    # The column shows whether the noise is private, because a solver's own PMF need not be.
    assert "private" in out


def test_results_show_finds_a_row_by_the_beginning_of_its_key(
    capsys, ledger_with_an_infeasible_row: Path
):
    ledger = ledger_with_an_infeasible_row
    key = list_infeasible_rows(capsys, ledger)["rows"][0]["key"]
    code, out, _ = run(capsys, "results", "show", key[:9], "--ledger", ledger, "--json")
    assert code == 0
    shown = json.loads(out)
    assert shown["key"] == key
    assert shown["request"]["parameters"]["bits"] == "1.01"
    assert "mean length" in shown["answer"]["failure"]
    code, out, _ = run(capsys, "results", "show", key[:9], "--ledger", ledger)
    assert code == 0
    assert key in out
    assert "infeasible" in out


@pytest.mark.parametrize("unknown_key", ["zz", "", "0123456789"])
def test_results_show_refuses_an_unknown_key_in_one_line(
    capsys, ledger_with_an_infeasible_row: Path, unknown_key: str
):
    code, _, message = run(
        capsys, "results", "show", unknown_key, "--ledger", ledger_with_an_infeasible_row
    )
    assert (code, message.count("\n")) == (2, 1)


@pytest.mark.parametrize(
    ("arguments", "rule"),
    [
        (("sweep", "none.toml"), "specification must be an existing file"),
        (("sweep", "SPEC", "--jobs", "0"), "jobs must be an integer in 1..1024. Got 0"),
        (("sweep", "SPEC", "--jobs", "2", "--cluster", "tcp://x:1"), "jobs must be left out"),
        (("sweep", "SPEC", "--ledger", "/proc/none/ledger.sqlite"), "cannot be created"),
        (("results", "list"), "ledger must be an existing file"),
        (("results", "export", "table.txt"), "named .csv or .parquet"),
        (("results", "export", "none/table.csv"), "existing folder"),
    ],
)
def test_an_error_is_one_line_that_states_the_rule(
    tmp_path: Path, capsys, monkeypatch, arguments: tuple[str, ...], rule: str
):
    monkeypatch.chdir(tmp_path)
    paths = {"SPEC": str(EXAMPLES / "modulo.toml")}
    code, _, message = run(capsys, *(paths.get(text, text) for text in arguments))
    assert (code, message.count("\n")) == (2, 1)
    assert rule in message


def test_dry_run_counts_and_writes_nothing(tmp_path: Path, capsys):
    ledger = tmp_path / "a.sqlite"
    code, out, _ = run(
        capsys, "sweep", EXAMPLES / "modulo.toml", "--ledger", ledger, "--dry-run", "--json"
    )
    assert (code, json.loads(out)) == (0, {"name": "modulo", "points": 60, "tasks": 12, "known": 0})
    assert not ledger.exists()


def test_sweep_in_python_refuses_a_boolean_number_of_jobs(tmp_path: Path):
    with pytest.raises(InvalidRequest, match="jobs"):
        wb.sweep({"grid": SMALL}, tmp_path / "a.sqlite", jobs=True)
    assert wb.Ledger is Ledger
