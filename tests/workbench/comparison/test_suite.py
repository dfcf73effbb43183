"""Comparing solvers: instances, one process per run, what is made of the rows, what is kept on Ctrl-C."""

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
def test_judges_certify_an_optimum_at_its_own_loss(name: str) -> None:
    (instance,) = select_instances("default", name)
    program, values = instance.build()
    found = solve(program, values, options=Options(time_limit=60.0))
    assert found.is_optimal
    assert found.x is not None
    assert found.objective is not None
    judged = instance.judge(found.x, found.objective)
    assert judged.certified
    if judged.certified_objective is not None:
        assert judged.certified_objective == pytest.approx(found.objective, abs=1e-6)
    if judged.private:
        assert judged.exact_delta is None or judged.exact_delta <= judged.claimed_delta + 1e-15


def test_a_point_that_is_not_private_is_found_out() -> None:
    (instance,) = select_instances("default", "noise-lp-n8")
    program, _ = instance.build()
    x = np.zeros(program.shape[1])
    x[program.block("f").start] = 1.0  # no noise at all
    judged = instance.judge(x, 0.0)
    assert not judged.private
    assert math.isinf(judged.exact_epsilon)
    assert judged.exact_delta == 1.0


def _fake(**more: Any) -> dict[str, Any]:
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
        **more,
    }


def test_rows_are_judged_together() -> None:
    rows = add_verdicts(
        [
            _fake(solver="right"),
            _fake(
                solver="wrong", objective=1.1, bound=1.1
            ),  # says optimal above the optimum: a false bound
            _fake(
                solver="rough", objective=0.9, bound=0.9, residual=1e-3
            ),  # below it, but infeasible
            _fake(solver="late", status="time_limit", objective=1.2, bound=0.5),
            {
                "instance": "a",
                "kind": "LP",
                "solver": "gone",
                "status": "crashed",
                "failure": "...",
            },
        ]
    )
    by = {row["solver"]: row for row in rows}
    assert {row["best_objective"] for row in rows} == {1.0}
    assert {row["best_bound"] for row in rows} == {1.0}
    assert [name for name, row in by.items() if row["solved"]] == ["right"]
    assert [name for name, row in by.items() if row["contradicted"]] == ["wrong"]
    assert by["late"]["gap_to_best"] == pytest.approx(0.2 / 1.2)
    assert by["late"]["gap"] == pytest.approx(0.7 / 1.2)
    assert by["gone"]["gap_to_best"] is None


def test_a_rough_point_of_a_large_objective_contradicts_no_bound() -> None:
    """Residuals of 3.5e-6 beside an objective of 3748: .013 % below the optimum, on 1,001 masses of squared noise."""
    right = _fake(solver="right", objective=3747.97728, bound=3747.97728)
    rough = _fake(solver="rough", objective=3747.48985, bound=3745.52349, residual=3.5e-6)
    first, second = add_verdicts([right, rough])
    assert first["solved"] is True
    assert first["contradicted"] is False
    assert first["best_objective"] == 3747.97728
    assert second["solved"] is False
    assert second["best_bound"] == 3747.97728


def test_summary_and_profile() -> None:
    rows = []
    for name, fast, slow in (("a", 0.01, 0.02), ("b", 0.04, 0.01), ("c", 0.03, None)):
        rows.append(_fake(instance=name, solver="fast", seconds=fast))
        rows.append(
            _fake(
                instance=name,
                solver="slow",
                seconds=slow or 9.0,
                status="optimal" if slow else "time_limit",
            )
        )
    table = Result("runs", add_verdicts(rows), columns=COLUMNS).to_frame()
    assert list(table.columns) == list(COLUMNS)
    found = summarise_runs(table, 10.0).set_index("solver")
    assert found["solved"].to_dict() == {"fast": 3, "slow": 2}
    expected = (0.02 * 0.05 * 0.04) ** (1 / 3) - SHIFT_SECONDS
    assert found["shifted_mean_seconds"]["fast"] == pytest.approx(expected)
    assert found["shifted_mean_seconds"]["slow"] == pytest.approx(
        (0.03 * 0.02 * 10.01) ** (1 / 3) - SHIFT_SECONDS
    )
    curves = compute_profile(table)
    assert curves["fast"][0] == pytest.approx([1, 1, 4])
    assert curves["slow"][0] == pytest.approx([1, 2])  # the failure is infinitely slow
    assert curves["slow"][1] == pytest.approx([1 / 3, 2 / 3])
    assert compute_shifted_mean([0.5, 0.5]) == pytest.approx(0.5)


def test_which_solver_to_use_rests_on_what_is_certified() -> None:
    def said(*solvers: dict[str, Any]) -> str:
        table = Result(
            "runs", add_verdicts([_fake(**given) for given in solvers]), columns=COLUMNS
        ).to_frame()
        (sentence,) = recommend_by_kind(summarise_runs(table, 10.0))
        return sentence

    proven = {"private": False, "certified": True, "certified_objective": 1 + 4e-13}
    rough = proven | {"private": True, "certified_objective": 1 + 2e-8}
    for seconds in (0.004, 0.006):
        highs, gurobi = (
            {"solver": "highs", "seconds": 0.005},
            {"solver": "gurobi", "seconds": seconds},
        )
        assert said(gurobi | proven, highs | proven).startswith(
            "For LPs use highs: it solved 1 of 1, 1 of its 1 answers"
        )
        assert said(gurobi | proven, highs | rough).startswith("For LPs use gurobi")
        assert said(gurobi | rough, highs | proven).startswith("For LPs use highs")
    assert said({"solver": "highs", "seconds": 1.0} | proven, gurobi | proven).startswith(
        "For LPs use gurobi"
    )
    assert (
        said({"solver": "highs"})
        == "For LPs use highs: it solved 1 of 1, at 1 times the seconds of the fastest."
    )


def test_a_solver_that_cannot_state_it_is_not_run(monkeypatch: pytest.MonkeyPatch) -> None:
    def runner(*_: Any, **__: Any) -> dict[str, Any]:
        raise AssertionError("must not be run")

    monkeypatch.setattr("workbench.comparison.run.run_one", runner)
    run = run_suite(select_instances("small", "noise-milp-n8"), ["ortools:glop"])
    assert [row["status"] for row in run.rows] == ["not applicable"]


def test_a_worker_gets_the_program_itself() -> None:
    """What crosses to the process is the program at its numbers; what a solver prints is no answer."""
    (instance,) = select_instances("small", "mvu-m4")
    program, values = instance.build()
    again = pickle.loads(pickle.dumps(instance.program_at_values()))
    assert (again.name, again.sense, again.scale, again.shape) == (
        program.name,
        program.sense,
        program.scale,
        program.shape,
    )
    one, two = program.data(values), again.data()
    for name in ("c", "row_lower", "row_upper", "lower", "upper", "integrality"):
        assert (getattr(one, name) == getattr(two, name)).all()
    assert one.offset == two.offset
    assert (one.A != two.A).nnz == 0


def test_a_process_per_run_and_its_death_is_a_row(monkeypatch: pytest.MonkeyPatch) -> None:
    import workbench.comparison.run as module

    (instance,) = select_instances("small", "mvu-m4")
    run = run_suite([instance], ["highs"], time_limit=300.0)
    assert run.rows[0]["status"] == "optimal"
    assert run.rows[0]["certified"]
    assert not run.is_interrupted

    def doomed(script: str) -> list[dict[str, Any]]:
        real = module.subprocess.Popen

        def popen(command: list[str], **more: Any) -> Any:
            return real([command[0], "-c", script], **more)

        with monkeypatch.context() as patch:
            patch.setattr(module.subprocess, "Popen", popen)
            patch.setattr(module, "GRACE_SECONDS", 0.5)
            return list(run_suite([instance], ["highs"], time_limit=0.5))

    (row,) = doomed("import os, signal; os.kill(os.getpid(), signal.SIGKILL)")
    assert row["status"] == "crashed"
    assert "SIGKILL" in row["failure"]
    (row,) = doomed("raise SystemExit('out of memory')")
    assert row["status"] == "crashed"
    assert "out of memory" in row["failure"]
    (row,) = doomed("import time; time.sleep(3600)")
    assert row["status"] == "killed"
    assert row["wall"] < 3600
    assert not add_verdicts([row])[0]["solved"]


def test_repeats_give_quartiles_beside_threads_tolerance_and_memory(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked: list[dict[str, Any]] = []

    def runner(task: Program, solver: str, options: dict[str, Any], **more: Any) -> dict[str, Any]:
        asked.append(options)
        return run_one(task, solver, options, **more)

    monkeypatch.setattr("workbench.comparison.run.run_one", runner)
    given = {"repeats": 3, "threads": 2, "tolerance": 1e-8}
    (row,) = wb.compare("small", "highs", instances="noise-lp-n8", **given)
    assert (row["repeats"], row["threads"], row["tolerance"], len(asked)) == (3, 2, 1e-8, 3)
    assert asked[0]["dual_feasibility_tolerance"] == 1e-8
    assert 0 < row["seconds_low"] <= row["seconds"] <= row["seconds_high"] < 20
    assert 20 < row["peak_mb"] < 150  # of the worker alone: this process holds more
    (row,) = wb.compare("small", "cvxpy:scs", instances="noise-lp-n8", tolerance=1e-8)
    assert "integrality_tolerance" in row["left_out"]
    for wrong in ({"repeats": 0}, {"threads": "two"}, {"tolerance": 1.0}):
        with pytest.raises(wb.InvalidRequest, match=next(iter(wrong))):
            wb.compare("small", "highs", **wrong)


def test_interrupt_keeps_finished_runs(monkeypatch: pytest.MonkeyPatch) -> None:
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
    monkeypatch.setattr(
        "workbench.cli.console.out.width", 120
    )  # no cell is folded, whatever COLUMNS says
    monkeypatch.setattr(
        "workbench.comparison.run.run_one",
        lambda *_, **__: {"status": "licence", "failure": "too large"},
    )
    arguments = ["compare", "--suite", "small", "--solvers", "gurobi", "--instances", "mvu-m4"]
    with pytest.raises(SystemExit) as end:
        main([*arguments, "--out", str(tmp_path)])
    assert end.value.code == 0
    said = capsys.readouterr().out
    assert "0 of 1" in said
    assert "1 licence" in said
    assert "nan" not in said.lower()
    assert (tmp_path / "scatter.png").exists()


def test_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = [
        "compare",
        "--suite",
        "small",
        "--solvers",
        "highs,ortools:glop",
        "--instances",
        "mvu-*,noise-milp-*",
    ]
    with pytest.raises(SystemExit) as end:
        main([*arguments, "--out", str(tmp_path), "--json"])
    assert end.value.code == 0
    found = json.loads(capsys.readouterr().out)
    assert [(row["instance"], row["solver"], row["status"]) for row in found["runs"]] == [
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


def test_reproduction_leaves_it_out_unless_asked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import workbench.papers.reproduce as module

    monkeypatch.setattr(
        module, "PAPERS", {"solver_comparison": "workbench.papers.solver_comparison"}
    )
    lines: list[str] = []
    module.reproduce(None, None, tmp_path, progress=lambda done, total, line: lines.append(line))
    assert lines == []  # minutes, and times of a machine: only by name or with full


def test_installed_solvers() -> None:
    assert "highs" in list_installed_solvers()
    with pytest.raises(SolverUnavailable):
        compare_programs("default", ["nobody"])
    with pytest.raises(InvalidRequest):
        compare_programs("default", [])
    assert SUITES["default"][0] == 1


def test_a_solver_that_is_not_installed_is_said_and_not_ranked(monkeypatch):
    whole = Backend.is_installed
    monkeypatch.setattr(
        Backend, "is_installed", lambda self: self.label != "ortools:glop" and whole(self)
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
