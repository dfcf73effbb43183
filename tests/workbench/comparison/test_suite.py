"""Test the comparison of solvers on a suite: instances, workers, verdicts, summaries, Ctrl-C.

An instance is a program with its numbers. Each run of a solver on an instance is a row of the
result, made in a worker process. Verdicts compare the runs on one instance: `solved`, `contradicted`
(its bound is above a feasible value, so it is false), and the gap to the best known value.
"""

from __future__ import annotations

import json
import math
import os
import pickle
import signal
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import workbench as wb
import workbench.comparison.run as run_module
from workbench.cli import main
from workbench.comparison.compare import compare_programs
from workbench.comparison.report import (
    COLUMNS,
    SHIFT_SECONDS,
    compute_profile,
    compute_shifted_mean,
    draw_scatter,
    recommend_by_kind,
    summarise_runs,
)
from workbench.comparison.run import add_verdicts, list_installed_solvers, run_one, run_suite
from workbench.errors import InvalidRequest, SolverUnavailable
from workbench.io.result import Result
from workbench.pipeline.programs import SUITES, select_instances
from workbench.solvers.backend import Options, solve
from workbench.solvers.contract import Backend
from workbench.solvers.program import Program


def test_no_two_instances_of_a_suite_have_the_same_name() -> None:
    names = [instance.name for instance in select_instances("default")]
    assert len(set(names)) == len(names)
    assert {instance.name for instance in select_instances("small")} < set(names)


def test_the_default_suite_covers_every_model() -> None:
    models = {instance.model.split(",")[0] for instance in select_instances("default")}
    assert {
        "LP (14)",
        "DP-LP",
        "MILP (13)",
        "minimum δ by DP-LP",
        "minimum δ by MILP (15)",
        "exact quantizer LP",
        "MVU LP in P",
        "OPTM LP",
        "channel LP",
    } <= models


def test_patterns_select_instances_in_the_order_of_the_suite() -> None:
    instances = select_instances("default", "mvu-*, noise-lp-n8")
    assert [instance.name for instance in instances] == ["noise-lp-n8", "mvu-m4", "mvu-m16"]


@pytest.mark.parametrize(
    "name",
    [
        "noise-milp-n8",
        "noise-min-delta-dp-n16",
        "quantizer-m4",
        "mvu-m4",
        "optm-m4",
        "channel-unbiased-k6",
        "noise-lp-metric-n24",
        "quantizer-metric-m6",
    ],
)
def test_an_optimum_is_certified_with_the_loss_of_the_solver(name: str) -> None:
    (instance,) = select_instances("default", name)
    program, values = instance.build()
    solution = solve(program, values, options=Options(time_limit=60.0))
    assert solution.is_optimal
    assert solution.x is not None
    assert solution.objective is not None
    judgement = instance.judge(solution.x, solution.objective)
    assert judgement.certified
    if judgement.certified_objective is not None:
        assert judgement.certified_objective == pytest.approx(solution.objective, abs=1e-6)
    if judgement.private:
        assert (
            judgement.exact_delta is None
            or judgement.exact_delta <= judgement.claimed_delta + 1e-15
        )


def test_a_point_without_noise_is_not_private() -> None:
    (instance,) = select_instances("default", "noise-lp-n8")
    program, _ = instance.build()
    x = np.zeros(program.shape[1])
    x[program.block("f").start] = 1.0  # Noise 0 with probability 1.
    judgement = instance.judge(x, 0.0)
    assert not judgement.private
    assert math.isinf(judgement.exact_epsilon)
    assert judgement.exact_delta == 1.0


# Verdicts and summaries of made-up runs.


def _make_row(**changes: Any) -> dict[str, Any]:
    """Return the row of a run that solved the program "a" with optimum 1, with some changes."""
    return {
        "instance": "a",
        "model": "LP",
        "kind": "LP",
        "rows": 1,
        "columns": 1,
        "solver": "s",
        "status": "optimal",
        "objective": 1.0,
        "bound": 1.0,
        "residual": 0.0,
        "seconds": 0.01,
        **changes,
    }


@pytest.fixture
def judged_rows() -> dict[str, dict[str, Any]]:
    """Return one right run and four others on one instance with the optimum 1, by solver."""
    runs = [
        _make_row(solver="right"),
        # Its lower bound is above the optimum, so it is false.
        _make_row(solver="wrong", objective=1.1, bound=1.1),
        # Its point is infeasible.
        _make_row(solver="rough", objective=0.9, bound=0.9, residual=1e-3),
        _make_row(solver="late", status="time_limit", objective=1.2, bound=0.5),
        {"instance": "a", "kind": "LP", "solver": "gone", "status": "crashed", "failure": "..."},
    ]
    return {row["solver"]: row for row in add_verdicts(runs)}


def test_only_a_right_and_finished_run_is_solved(judged_rows: dict[str, dict[str, Any]]) -> None:
    assert [solver for solver, row in judged_rows.items() if row["solved"]] == ["right"]


def test_a_bound_above_a_feasible_value_is_contradicted(
    judged_rows: dict[str, dict[str, Any]],
) -> None:
    assert [solver for solver, row in judged_rows.items() if row["contradicted"]] == ["wrong"]


def test_the_best_values_ignore_wrong_bounds_and_infeasible_points(
    judged_rows: dict[str, dict[str, Any]],
) -> None:
    assert {row["best_objective"] for row in judged_rows.values()} == {1.0}
    assert {row["best_bound"] for row in judged_rows.values()} == {1.0}


def test_gaps_are_relative_to_the_objective_of_the_run(
    judged_rows: dict[str, dict[str, Any]],
) -> None:
    """The gap to the best value is (1.2 - 1)/1.2, and the gap to the own bound (1.2 - 0.5)/1.2."""
    assert judged_rows["late"]["gap_to_best"] == pytest.approx(0.2 / 1.2)
    assert judged_rows["late"]["gap"] == pytest.approx(0.7 / 1.2)
    assert judged_rows["gone"]["gap_to_best"] is None


def test_a_slightly_infeasible_point_does_not_contradict_a_bound() -> None:
    """The numbers are from a run with 1,001 masses. One objective is 0.013 % below the optimum."""
    right = _make_row(solver="right", objective=3747.97728, bound=3747.97728)
    rough = _make_row(solver="rough", objective=3747.48985, bound=3745.52349, residual=3.5e-6)
    judged_right, judged_rough = add_verdicts([right, rough])
    assert judged_right["solved"] is True
    assert judged_right["contradicted"] is False
    assert judged_right["best_objective"] == 3747.97728
    assert judged_rough["solved"] is False
    assert judged_rough["best_bound"] == 3747.97728


@pytest.fixture
def timed_table() -> pd.DataFrame:
    """Return the runs of two solvers on three instances. The slow one reaches a limit once.

    Runtimes in seconds:  instance  fast  slow
                          a         0.01  0.02
                          b         0.04  0.01
                          c         0.03  9.0, not solved
    """
    runs = [
        _make_row(instance="a", solver="fast", seconds=0.01),
        _make_row(instance="a", solver="slow", seconds=0.02),
        _make_row(instance="b", solver="fast", seconds=0.04),
        _make_row(instance="b", solver="slow", seconds=0.01),
        _make_row(instance="c", solver="fast", seconds=0.03),
        _make_row(instance="c", solver="slow", seconds=9.0, status="time_limit"),
    ]
    return Result("runs", add_verdicts(runs), columns=COLUMNS).to_frame()


def test_the_table_of_runs_has_the_documented_columns(timed_table: pd.DataFrame) -> None:
    assert list(timed_table.columns) == list(COLUMNS)


def test_a_summary_has_shifted_geometric_means(timed_table: pd.DataFrame) -> None:
    """The shifted mean of t_1..t_k is (Π (t_i + s))^(1/k) - s, here with s = 0.01 seconds.

    A run that is not solved counts with the time limit, here 10 seconds.
    """
    assert SHIFT_SECONDS == 0.01
    summary = summarise_runs(timed_table, 10.0).set_index("solver")
    assert summary["solved"].to_dict() == {"fast": 3, "slow": 2}
    means = summary["shifted_mean_seconds"]
    assert means["fast"] == pytest.approx((0.02 * 0.05 * 0.04) ** (1 / 3) - SHIFT_SECONDS)
    assert means["slow"] == pytest.approx((0.03 * 0.02 * 10.01) ** (1 / 3) - SHIFT_SECONDS)


def test_the_shifted_mean_of_equal_runtimes_is_their_value() -> None:
    assert compute_shifted_mean([0.5, 0.5]) == pytest.approx(0.5)


def test_a_performance_profile_has_the_ratios_to_the_fastest_solver(
    timed_table: pd.DataFrame,
) -> None:
    """A curve has the sorted ratios and the shares of instances within them.

    A run that is not solved is infinitely slow.
    """
    curves = compute_profile(timed_table)
    assert curves["fast"][0] == pytest.approx([1, 1, 4])
    slow_ratios, slow_shares = curves["slow"]
    assert slow_ratios == pytest.approx([1, 2])
    assert slow_shares == pytest.approx([1 / 3, 2 / 3])


def test_the_recommended_solver_has_certified_answers_and_then_the_best_runtime() -> None:
    def recommend(*solvers: dict[str, Any]) -> str:
        """Return the sentence for runs that differ from `_make_row` in these columns."""
        rows = add_verdicts([_make_row(**changes) for changes in solvers])
        table = Result("runs", rows, columns=COLUMNS).to_frame()
        (sentence,) = recommend_by_kind(summarise_runs(table, 10.0))
        return sentence

    # The loss of the repaired mechanism is near the optimum 1 for a proven answer. It is farther
    # from it for a rough one.
    proven = {"private": False, "certified": True, "certified_objective": 1 + 4e-13}
    rough = proven | {"private": True, "certified_objective": 1 + 2e-8}
    for seconds in (0.004, 0.006):
        highs = {"solver": "highs", "seconds": 0.005}
        gurobi = {"solver": "gurobi", "seconds": seconds}
        assert recommend(gurobi | proven, highs | proven).startswith(
            "For LPs use highs: it solved 1 of 1, 1 of its 1 answers"
        )
        assert recommend(gurobi | proven, highs | rough).startswith("For LPs use gurobi")
        assert recommend(gurobi | rough, highs | proven).startswith("For LPs use highs")
    assert recommend({"solver": "highs", "seconds": 1.0} | proven, gurobi | proven).startswith(
        "For LPs use gurobi"
    )
    advice = recommend({"solver": "highs"})
    assert advice.startswith("For LPs use highs: it solved 1 of 1")
    assert "1 times the seconds" in advice


def test_a_solver_without_integers_is_not_run_on_a_mixed_integer_program(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def refuse_run(*_: Any, **__: Any) -> dict[str, Any]:
        raise AssertionError("must not be run")

    monkeypatch.setattr("workbench.comparison.run.run_one", refuse_run)
    run = run_suite(select_instances("small", "noise-milp-n8"), ["ortools:glop"])
    assert [row["status"] for row in run.rows] == ["not applicable"]


def test_a_program_is_unchanged_after_pickling() -> None:
    (instance,) = select_instances("small", "mvu-m4")
    program, values = instance.build()
    copy = pickle.loads(pickle.dumps(instance.program_at_values()))
    assert (copy.name, copy.sense, copy.scale, copy.shape) == (
        program.name,
        program.sense,
        program.scale,
        program.shape,
    )
    original_data = program.data(values)
    copied_data = copy.data()
    for name in ("c", "row_lower", "row_upper", "lower", "upper", "integrality"):
        assert (getattr(original_data, name) == getattr(copied_data, name)).all()
    assert original_data.offset == copied_data.offset
    assert (original_data.A != copied_data.A).nnz == 0


# Worker processes. A run whose worker does not answer is a row, too.


def run_with_script(
    monkeypatch: pytest.MonkeyPatch, script: str, *, seconds: float = 300.0
) -> dict[str, Any]:
    """Run a small instance with a worker that executes a Python script instead of solving.

    Args:
        monkeypatch: The fixture of pytest.
        script: The source code that the worker runs.
        seconds: The time limit, and the time after it until the worker is killed.

    Returns:
        The row of the run.
    """
    original_popen = run_module.subprocess.Popen

    def start_script(command: list[str], **options: Any) -> Any:
        """Start the interpreter of a command with the script."""
        return original_popen([command[0], "-c", script], **options)

    with monkeypatch.context() as patch:
        patch.setattr(run_module.subprocess, "Popen", start_script)
        patch.setattr(run_module, "GRACE_SECONDS", seconds)
        instances = select_instances("small", "mvu-m4")
        (row,) = run_suite(instances=instances, solvers=["highs"], time_limit=seconds)
    return row


def test_a_worker_that_answers_is_certified() -> None:
    run = run_suite(
        instances=select_instances("small", "mvu-m4"), solvers=["highs"], time_limit=300.0
    )
    assert run.rows[0]["status"] == "optimal"
    assert run.rows[0]["certified"]
    assert not run.is_interrupted


def test_a_worker_that_is_killed_by_a_signal_is_a_row(monkeypatch: pytest.MonkeyPatch) -> None:
    row = run_with_script(monkeypatch, "import os, signal; os.kill(os.getpid(), signal.SIGKILL)")
    assert row["status"] == "crashed"
    assert "SIGKILL" in row["failure"]


def test_a_worker_that_exits_is_a_row_with_its_last_words(monkeypatch: pytest.MonkeyPatch) -> None:
    row = run_with_script(monkeypatch, "raise SystemExit('out of memory')")
    assert row["status"] == "crashed"
    assert "out of memory" in row["failure"]


def test_a_worker_that_hangs_is_killed_and_has_not_solved(monkeypatch: pytest.MonkeyPatch) -> None:
    row = run_with_script(monkeypatch, "import time; time.sleep(3600)", seconds=0.5)
    assert row["status"] == "killed"
    assert row["wall"] < 3600
    (judged_row,) = add_verdicts([row])
    assert not judged_row["solved"]


def test_a_row_reports_quartiles_threads_tolerance_and_memory(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    option_calls: list[dict[str, Any]] = []

    def record_options(
        task: Program, solver: str, options: dict[str, Any], **more: Any
    ) -> dict[str, Any]:
        """Run a task, and add its options to `option_calls`."""
        option_calls.append(options)
        return run_one(task, solver, options, **more)

    monkeypatch.setattr("workbench.comparison.run.run_one", record_options)
    (row,) = wb.compare(
        "small", "highs", instances="noise-lp-n8", repeats=3, threads=2, tolerance=1e-8
    )
    assert (row["repeats"], row["threads"], row["tolerance"]) == (3, 2, 1e-8)
    assert len(option_calls) == 3
    assert option_calls[0]["dual_feasibility_tolerance"] == 1e-8
    assert 0 < row["seconds_low"] <= row["seconds"] <= row["seconds_high"]
    # Megabytes of the worker only. This process uses more.
    assert 20 < row["peak_mb"] < 150


def test_a_row_names_the_options_that_its_solver_does_not_have() -> None:
    (row,) = wb.compare("small", "cvxpy:scs", instances="noise-lp-n8", tolerance=1e-8)
    assert "integrality_tolerance" in row["left_out"]


@pytest.mark.parametrize(
    ("option", "value"), [("repeats", 0), ("threads", "two"), ("tolerance", 1.0)]
)
def test_a_bad_option_of_a_comparison_is_refused(option: str, value: Any) -> None:
    with pytest.raises(wb.InvalidRequest, match=option):
        wb.compare("small", "highs", **{option: value})


def test_ctrl_c_keeps_the_finished_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[str] = []

    def interrupt_second_run(
        task: Program, solver: str, options: dict[str, Any], **more: Any
    ) -> dict[str, Any]:
        """Run the first task. During the second one, send Ctrl-C to this process."""
        calls.append(solver)
        if len(calls) == 1:
            return run_one(task, solver, options, **more)
        os.kill(os.getpid(), signal.SIGINT)
        return {"status": "error", "failure": "x"}

    monkeypatch.setattr("workbench.comparison.run.run_one", interrupt_second_run)
    run = run_suite(select_instances("small", "mvu-m4"), ["highs", "gurobi", "scip"])
    assert run.is_interrupted
    assert [row["solver"] for row in run.rows] == ["highs"]
    assert summarise_runs(run.to_frame(), 1.0)["solved"].tolist() == [1]


def test_a_report_without_any_answer(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    # No cell of the table is folded at this width.
    monkeypatch.setattr("workbench.cli.console.out.width", 120)
    monkeypatch.setattr(
        "workbench.comparison.run.run_one",
        lambda *_, **__: {"status": "licence", "failure": "too large"},
    )
    arguments = ["compare", "--suite", "small", "--solvers", "gurobi", "--instances", "mvu-m4"]
    with pytest.raises(SystemExit) as end:
        main([*arguments, "--out", str(tmp_path)])
    assert end.value.code == 0
    report = capsys.readouterr().out
    assert "0 of 1" in report
    assert "1 licence" in report
    assert "nan" not in report.lower()
    assert (tmp_path / "scatter.png").exists()


def test_the_command_compare_writes_runs_summary_and_plots(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    command = "compare --suite small --solvers highs,ortools:glop --instances mvu-*,noise-milp-*"
    with pytest.raises(SystemExit) as end:
        main([*command.split(), "--out", str(tmp_path), "--json"])
    assert end.value.code == 0
    result = json.loads(capsys.readouterr().out)
    assert [(row["instance"], row["solver"], row["status"]) for row in result["runs"]] == [
        ("noise-milp-n8", "highs", "optimal"),
        ("noise-milp-n8", "ortools:glop", "not applicable"),
        ("mvu-m4", "highs", "optimal"),
        ("mvu-m4", "ortools:glop", "optimal"),
    ]
    assert {path.name for path in tmp_path.iterdir()} >= {
        "summary.csv",
        "performance_profile.png",
        "scatter.svg",
    }
    assert pd.read_csv(tmp_path / "runs.csv")["solver"].tolist() == ["highs", "ortools:glop"] * 2


@pytest.mark.parametrize(
    "arguments",
    [
        ["--suite", "x"],
        ["--suite", "small", "--solvers", "x"],
        ["--suite", "small", "--instances", "x"],
        ["--json"],
        ["--suite", "small", "--solvers", "ortools:glop", "--instances", "noise-milp-n8"],
        ["--suite", "small", "--time-limit", "0"],
        ["--suite", "small", "--solvers", ","],
        ["--suite", "small", "modulo", "--n", "8", "--max-shift", "3", "--epsilon", "1"],
    ],
)
def test_bad_input_is_refused_in_one_line(
    arguments: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as end:
        main(["compare", *arguments])
    assert end.value.code == 2
    assert len(capsys.readouterr().err.strip().splitlines()) == 1


def test_reproduce_skips_the_comparison_of_solvers_without_full(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import workbench.papers.reproduce as module

    monkeypatch.setattr(
        module, "PAPERS", {"solver_comparison": "workbench.papers.solver_comparison"}
    )
    lines: list[str] = []
    module.reproduce(None, None, tmp_path, progress=lambda done, total, line: lines.append(line))
    # It takes minutes, and its runtimes depend on the machine.
    assert lines == []


def test_the_default_suite_has_the_version_1() -> None:
    version, _ = SUITES["default"]
    assert version == 1


def test_the_solver_highs_is_always_installed() -> None:
    assert "highs" in list_installed_solvers()


def test_an_unknown_solver_is_refused() -> None:
    with pytest.raises(SolverUnavailable):
        compare_programs("default", ["nobody"])


def test_a_comparison_without_solvers_is_refused() -> None:
    with pytest.raises(InvalidRequest):
        compare_programs("default", [])


def test_a_solver_that_is_not_installed_is_reported_and_not_ranked(monkeypatch):
    real_is_installed = Backend.is_installed
    monkeypatch.setattr(
        Backend,
        "is_installed",
        lambda self: self.label != "ortools:glop" and real_is_installed(self),
    )
    result = wb.compare("small", "highs,ortools:glop", instances="noise-lp-n8", time_limit=300)
    highs, glop = result
    assert highs["solved"]
    assert glop["status"] == "not applicable"
    assert glop.get("seconds") is None
    assert any("ortools:glop is not installed" in sentence for sentence in result.sentences)
    assert summarise_runs(result.to_frame(), 20.0)["solver"].tolist() == ["highs"]
    with pytest.raises(wb.InvalidRequest, match="installed"):
        wb.compare("small", "ortools:glop", instances="noise-lp-n8", time_limit=300)


def test_a_scatter_plot_has_a_column_of_panels_for_each_solver() -> None:
    """One solver has no gaps, and one has a large gap, so its status "unbounded" is false."""
    runs = []
    for solver, seconds, gap in (("highs", 1.0, 1e-9), ("scs", 3.0, 0.5), ("glop", 2.0, None)):
        for instance in ("a", "b"):
            run = {
                "instance": instance,
                "solver": solver,
                "status": "unbounded",
                "solved": True,
                "seconds": seconds,
                "residual": 1e-8,
                "gap_to_best": gap,
                "certified_gap": gap,
            }
            runs.append(run)
    figure = draw_scatter(pd.DataFrame(runs))
    # Three rows of panels, with a column for each solver.
    assert len(figure.axes) == 9
    assert [axis.get_title() for axis in figure.axes[:3]] == ["highs", "scs", "glop"]
    # The second line of a panel has the runs of its solver. HiGHS is not compared with itself.
    point_counts = [len(axis.lines[1].get_xdata()) for axis in figure.axes]
    assert point_counts == [0, 2, 2, 2, 2, 0, 2, 2, 0]
    texts_of_second_row = [[text.get_text() for text in axis.texts] for axis in figure.axes[3:6]]
    assert texts_of_second_row == [[], ["“unbounded”"] * 2, []]
    assert figure.axes[1].get_xlim() == figure.axes[0].get_xlim()
