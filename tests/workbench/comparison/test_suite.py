"""The comparison of solvers on a suite: instances, worker processes, verdicts, summaries, Ctrl-C."""

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


def test_instances_are_named_once_and_cover_every_model() -> None:
    names = [instance.name for instance in select_instances("default")]
    assert len(set(names)) == len(names)
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
    assert {instance.name for instance in select_instances("small")} < set(names)
    assert [instance.name for instance in select_instances("default", "mvu-*, noise-lp-n8")] == [
        "noise-lp-n8",
        "mvu-m4",
        "mvu-m16",
    ]


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


def test_wrong_optima_infeasible_points_and_failures_are_not_solved() -> None:
    rows = add_verdicts(
        [
            _make_row(solver="right"),
            # Its lower bound is above the optimum, so it is false.
            _make_row(solver="wrong", objective=1.1, bound=1.1),
            # Its point is infeasible.
            _make_row(solver="rough", objective=0.9, bound=0.9, residual=1e-3),
            _make_row(solver="late", status="time_limit", objective=1.2, bound=0.5),
            {
                "instance": "a",
                "kind": "LP",
                "solver": "gone",
                "status": "crashed",
                "failure": "...",
            },
        ]
    )
    rows_by_solver = {row["solver"]: row for row in rows}
    assert {row["best_objective"] for row in rows} == {1.0}
    assert {row["best_bound"] for row in rows} == {1.0}
    assert [name for name, row in rows_by_solver.items() if row["solved"]] == ["right"]
    assert [name for name, row in rows_by_solver.items() if row["contradicted"]] == ["wrong"]
    assert rows_by_solver["late"]["gap_to_best"] == pytest.approx(0.2 / 1.2)
    assert rows_by_solver["late"]["gap"] == pytest.approx(0.7 / 1.2)
    assert rows_by_solver["gone"]["gap_to_best"] is None


def test_a_slightly_infeasible_point_does_not_contradict_a_bound() -> None:
    """The numbers are from a run with 1,001 masses. One objective is 0.013 % below the optimum."""
    right = _make_row(solver="right", objective=3747.97728, bound=3747.97728)
    rough = _make_row(solver="rough", objective=3747.48985, bound=3745.52349, residual=3.5e-6)
    first, second = add_verdicts([right, rough])
    assert first["solved"] is True
    assert first["contradicted"] is False
    assert first["best_objective"] == 3747.97728
    assert second["solved"] is False
    assert second["best_bound"] == 3747.97728


def test_shifted_means_and_performance_profiles_by_hand() -> None:
    rows = []
    for name, fast, slow in (("a", 0.01, 0.02), ("b", 0.04, 0.01), ("c", 0.03, None)):
        rows.append(_make_row(instance=name, solver="fast", seconds=fast))
        rows.append(
            _make_row(
                instance=name,
                solver="slow",
                seconds=slow or 9.0,
                status="optimal" if slow else "time_limit",
            )
        )
    table = Result("runs", add_verdicts(rows), columns=COLUMNS).to_frame()
    assert list(table.columns) == list(COLUMNS)
    summary = summarise_runs(table, 10.0).set_index("solver")
    assert summary["solved"].to_dict() == {"fast": 3, "slow": 2}
    expected = (0.02 * 0.05 * 0.04) ** (1 / 3) - SHIFT_SECONDS
    assert summary["shifted_mean_seconds"]["fast"] == pytest.approx(expected)
    assert summary["shifted_mean_seconds"]["slow"] == pytest.approx(
        (0.03 * 0.02 * 10.01) ** (1 / 3) - SHIFT_SECONDS
    )
    curves = compute_profile(table)
    assert curves["fast"][0] == pytest.approx([1, 1, 4])
    assert curves["slow"][0] == pytest.approx([1, 2])  # A failed run counts as infinitely slow.
    assert curves["slow"][1] == pytest.approx([1 / 3, 2 / 3])
    assert compute_shifted_mean([0.5, 0.5]) == pytest.approx(0.5)


def test_the_recommended_solver_has_certified_answers_and_then_the_best_runtime() -> None:
    def recommend(*solvers: dict[str, Any]) -> str:
        """Return the sentence for runs that differ from `_make_row` in these columns."""
        table = Result(
            "runs", add_verdicts([_make_row(**changes) for changes in solvers]), columns=COLUMNS
        ).to_frame()
        (sentence,) = recommend_by_kind(summarise_runs(table, 10.0))
        return sentence

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
    def runner(*_: Any, **__: Any) -> dict[str, Any]:
        raise AssertionError("must not be run")

    monkeypatch.setattr("workbench.comparison.run.run_one", runner)
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


def test_a_worker_that_dies_or_hangs_is_a_row(monkeypatch: pytest.MonkeyPatch) -> None:
    import workbench.comparison.run as module

    (instance,) = select_instances("small", "mvu-m4")
    run = run_suite(instances=[instance], solvers=["highs"], time_limit=300.0)
    assert run.rows[0]["status"] == "optimal"
    assert run.rows[0]["certified"]
    assert not run.is_interrupted

    def run_with_worker(script: str, seconds: float = 300.0) -> list[dict[str, Any]]:
        """Run the instance with a worker that executes a Python script instead of solving."""
        real = module.subprocess.Popen

        def popen(command: list[str], **more: Any) -> Any:
            return real([command[0], "-c", script], **more)

        with monkeypatch.context() as patch:
            patch.setattr(module.subprocess, "Popen", popen)
            patch.setattr(module, "GRACE_SECONDS", seconds)
            return list(run_suite(instances=[instance], solvers=["highs"], time_limit=seconds))

    (row,) = run_with_worker("import os, signal; os.kill(os.getpid(), signal.SIGKILL)")
    assert row["status"] == "crashed"
    assert "SIGKILL" in row["failure"]
    (row,) = run_with_worker("raise SystemExit('out of memory')")
    assert row["status"] == "crashed"
    assert "out of memory" in row["failure"]
    (row,) = run_with_worker("import time; time.sleep(3600)", seconds=0.5)
    assert row["status"] == "killed"
    assert row["wall"] < 3600
    assert not add_verdicts([row])[0]["solved"]


def test_a_row_reports_quartiles_threads_tolerance_and_memory(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    option_calls: list[dict[str, Any]] = []

    def runner(task: Program, solver: str, options: dict[str, Any], **more: Any) -> dict[str, Any]:
        option_calls.append(options)
        return run_one(task, solver, options, **more)

    monkeypatch.setattr("workbench.comparison.run.run_one", runner)
    given = {"repeats": 3, "threads": 2, "tolerance": 1e-8}
    (row,) = wb.compare("small", "highs", instances="noise-lp-n8", **given)
    assert (row["repeats"], row["threads"], row["tolerance"], len(option_calls)) == (3, 2, 1e-8, 3)
    assert option_calls[0]["dual_feasibility_tolerance"] == 1e-8
    assert 0 < row["seconds_low"] <= row["seconds"] <= row["seconds_high"] < 20
    assert 20 < row["peak_mb"] < 150  # The memory of the worker only.
    (row,) = wb.compare("small", "cvxpy:scs", instances="noise-lp-n8", tolerance=1e-8)
    assert "integrality_tolerance" in row["left_out"]
    for bad_option in ({"repeats": 0}, {"threads": "two"}, {"tolerance": 1.0}):
        with pytest.raises(wb.InvalidRequest, match=next(iter(bad_option))):
            wb.compare("small", "highs", **bad_option)


def test_ctrl_c_keeps_the_finished_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[str] = []

    def runner(task: Program, solver: str, limit: float, **more: Any) -> dict[str, Any]:
        calls.append(solver)
        if len(calls) == 2:
            os.kill(os.getpid(), signal.SIGINT)
        return (
            run_one(task, solver, limit, **more)
            if len(calls) == 1
            else {"status": "error", "failure": "x"}
        )

    monkeypatch.setattr("workbench.comparison.run.run_one", runner)
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


def test_unknown_and_missing_solvers_are_refused() -> None:
    assert "highs" in list_installed_solvers()
    with pytest.raises(SolverUnavailable):
        compare_programs("default", ["nobody"])
    with pytest.raises(InvalidRequest):
        compare_programs("default", [])
    assert SUITES["default"][0] == 1


def test_a_solver_that_is_not_installed_is_reported_and_not_ranked(monkeypatch):
    real_is_installed = Backend.is_installed
    monkeypatch.setattr(
        Backend,
        "is_installed",
        lambda self: self.label != "ortools:glop" and real_is_installed(self),
    )
    result = wb.compare("small", "highs,ortools:glop", instances="noise-lp-n8", time_limit=20.0)
    (highs, glop) = result
    assert highs["solved"]
    assert glop["status"] == "not applicable"
    assert glop.get("seconds") is None
    assert any("ortools:glop is not installed" in sentence for sentence in result.sentences)
    assert summarise_runs(result.to_frame(), 20.0)["solver"].tolist() == ["highs"]
    with pytest.raises(wb.InvalidRequest, match="installed"):
        wb.compare("small", "ortools:glop", instances="noise-lp-n8", time_limit=20.0)


def test_a_scatter_plot_has_a_column_of_panels_for_each_solver() -> None:
    """One solver has no residuals, and one answers with a false status."""
    runs = []
    for solver, seconds, gap in (("highs", 1.0, 1e-9), ("scs", 3.0, 0.5), ("glop", 2.0, None)):
        run = (solver, "unbounded", True, seconds, 1e-8, gap, gap)
        runs += [("a", *run), ("b", *run)]
    columns = "instance solver status solved seconds residual gap_to_best certified_gap"
    figure = draw_scatter(pd.DataFrame(runs, columns=columns.split()))
    assert len(figure.axes) == 9
    assert [axis.get_title() for axis in figure.axes[:3]] == ["highs", "scs", "glop"]
    own_points = [len(axis.lines[1].get_xdata()) for axis in figure.axes]
    assert own_points == [0, 2, 2, 2, 2, 0, 2, 2, 0]
    texts = [[text.get_text() for text in axis.texts] for axis in figure.axes[3:6]]
    assert texts == [[], ["“unbounded”"] * 2, []]
    assert figure.axes[1].get_xlim() == figure.axes[0].get_xlim()
