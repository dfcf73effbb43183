"""Test that the requested solver answers or the request is refused, in every family and method.

No other solver may be called in its place, and a solve that ends early must not pass for an answer.
"""

from __future__ import annotations

import re
from dataclasses import replace
from fractions import Fraction

import pytest

import workbench as wb
from workbench.comparison.library import export_library
from workbench.families.quantizer.laws import LawQuestion, solve_exact_quantizer
from workbench.pipeline.registry import list_families
from workbench.solvers.backend import Options, Session, get_backend, list_backend_names
from workbench.solvers.contract import Backend
from workbench.solvers.search import Deadline
from workbench.solvers.solution import Termination
from workbench.sweeps.ledger import Ledger

# Requests of every family that solvers answer. The methods are those of the family's option.
REQUESTS = {
    "channel": [
        (wb.FiniteQuery("0..3", max_shift=1), {"epsilon": 1}),
        (wb.FiniteQuery("0..3", max_shift=1, outputs="free"), {"epsilon": 1}),
        (wb.FiniteQuery("0..3", max_shift=1), {"notion": "zcdp", "rho": "0.1"}),
        (wb.FiniteQuery("0..3", max_shift=1), {"epsilon": 1, "delta": "0.01", "runs": 2}),
    ],
    "labels": [
        (wb.Labels.uniform(0, 3), {"epsilon": 1}),
        (wb.Labels.uniform(0, 3), {"epsilon": 1, "delta": "0.01"}),
        (wb.Labels.uniform(0, 3), {"notion": "gdp", "mu": 1}),
    ],
    "modulo": [
        (wb.ModuloNoise(n=5, max_shift=1), {"epsilon": 1, "delta": "0.05", "notion": "dp"}),
        (wb.ModuloNoise(n=5, max_shift=1), {"epsilon": 1, "delta": "0.05", "notion": "pdp"}),
        (wb.ModuloNoise(n=5, max_shift=1), {"notion": "renyi", "epsilon": 1, "alpha": 2}),
    ],
    "noise": [
        (wb.IntegerNoise(1), {"epsilon": 1, "delta": "0.01"}),
        (wb.IntegerNoise(1), {"epsilon": 1}),
        (wb.IntegerNoise(1, clamp=(0, 3)), {"epsilon": 1, "loss": "worst-squared"}),
    ],
    "quantizer": [
        (wb.Quantization("-3,-0.5,0.5,3"), {"epsilon": Fraction(1)}),
        (wb.Quantization(levels=2), {"epsilon": Fraction(1)}),
    ],
}
# The first solver returns dual values, and the second does not.
SOLVERS = ("ortools:glop", "ortools:gscip")


def list_methods(family) -> list[str | None]:
    """Return the methods of a family, [None] if it has no such option.

    They are read from the error message for an unknown method.
    """
    option = next((option for option in family.options if option.name == "method"), None)
    if option is None:
        return [None]
    with pytest.raises(wb.InvalidRequest) as refused:
        option.read_value("no such method")
    return re.search("one of (.*?)[.] Got", str(refused.value))[1].split(", ")


def list_cases() -> list:
    """Return every request with every method of its family, as (question, options)."""
    cases = []
    for family in list_families():
        if all(option.name != "solver" for option in family.options):
            continue
        for method in list_methods(family):
            for position, (question, options) in enumerate(REQUESTS[family.name]):
                if method is not None:
                    options = {**options, "method": method}
                test_id = f"{family.name}-{method}-{position}"
                cases.append(pytest.param(question, options, id=test_id))
    return cases


@pytest.fixture
def sessions(monkeypatch):
    """Return a list that grows by (solver, time limit) for every session that is opened."""
    opened_sessions = []
    original_open = Backend._open

    def open_and_record(self, program, options):
        """Open a session as usual, and record its solver and its time limit."""
        opened_sessions.append((self.label, options.time_limit))
        return original_open(self, program, options)

    monkeypatch.setattr(Backend, "_open", open_and_record)
    return opened_sessions


@pytest.mark.parametrize(("question", "options"), list_cases())
@pytest.mark.parametrize("solver", SOLVERS)
def test_the_requested_solver_answers_or_the_request_is_refused(
    question, options, solver, sessions
):
    try:
        design = wb.design(question, **options, solver=solver, time_limit=40, certify=False)
    except wb.WorkbenchError:
        design = None
    assert {label for label, _ in sessions} <= {solver}
    if design is None:
        return
    assert (design.solver == solver) == bool(sessions)
    if design.solution is not None:
        assert design.solution.solver == solver
    if not sessions:
        note = next(sentence for sentence in design.words if "No solver was called" in sentence)
        assert solver in note
    # Every session has the time limit of the request, or less.
    assert all(limit is not None and 0 < limit <= 40 for _, limit in sessions)


@pytest.mark.parametrize(("question", "options"), list_cases())
def test_a_solver_of_integer_programs_is_refused_for_linear_ones(question, options, sessions):
    try:
        design = wb.design(question, **options, solver="ortools:cp-sat", certify=False)
    except (wb.SolverUnavailable, wb.InvalidRequest):
        assert not sessions
        return
    assert design.solver is None
    assert not sessions


@pytest.mark.parametrize(
    ("question", "method"),
    [
        (wb.Labels.uniform(0, 3), "bins"),
        (wb.Labels.uniform(0, 3), "auto"),
        (wb.FiniteQuery("0..3", max_shift=1), "block"),
    ],
)
def test_methods_without_a_solver_refuse_a_requested_solver(question, method):
    with pytest.raises(wb.InvalidRequest, match="which uses no solver"):
        wb.design(question, epsilon=1, method=method, solver="ortools:glop")


def test_a_comparison_has_no_result_of_a_solver_that_did_not_answer():
    result = wb.compare(
        wb.Quantization("-3,-0.5,0.5,3"),
        "highs,ortools:cp-sat,ortools:glop",
        epsilon=1,
        method="optm",
    )
    highs, cp_sat, glop = result
    assert cp_sat["status"] == "unavailable"
    assert cp_sat["objective"] is None
    # Value of the current program, pinned.
    assert highs["objective"] == pytest.approx(2.26729956, abs=1e-6)
    assert glop["objective"] == pytest.approx(highs["objective"], abs=2e-7)
    assert [row["solver"] for row in result] == ["highs", "ortools:cp-sat", "ortools:glop"]


@pytest.mark.parametrize(
    ("question", "options"),
    [
        (wb.Labels.uniform(0, 3), {"method": "bins"}),
        (wb.IntegerNoise(1), {}),
        (wb.FiniteQuery("0..3", max_shift=1), {"method": "block"}),
    ],
)
def test_a_comparison_of_solvers_that_are_not_used_is_refused(question, options):
    with pytest.raises(wb.InvalidRequest, match="was not used"):
        wb.compare(question, "highs,ortools:glop", epsilon=1, **options)


def test_a_comparison_supports_requests_for_many_runs():
    rows = wb.compare(
        wb.ModuloNoise(n=6, max_shift=2), "highs,ortools:glop", epsilon=1, delta=0, runs=2
    )
    for row in rows:
        assert row["status"] == "found"
        # Value of the current program, pinned.
        assert row["objective"] == pytest.approx(0.759724059, abs=1e-8)
        assert row["bound"] == pytest.approx(row["objective"], abs=1e-8)
        assert row["certified"] is True
    assert "proves the optimum, and its mechanism is certified" in rows.sentences[0]


@pytest.mark.parametrize("method", ["optm", "product", "mvu"])
def test_a_time_limit_ends_the_search_of_a_quantizer(method):
    with pytest.raises(wb.NotProven):
        # No other test has this budget, so no answer of it is stored.
        wb.design(wb.Quantization(levels=4), epsilon="1.0625", method=method, time_limit="1e-9")


def test_every_solver_of_linear_programs_finds_the_same_optm():
    losses = {}
    for label in list_backend_names():
        solver = get_backend(label)
        is_slow = label == "ortools:pdlp"
        if solver.is_installed() and solver.capabilities().lp and not is_slow:
            design = wb.design(
                wb.Quantization("-3,-0.5,0.5,3"), epsilon=1, method="optm", solver=label
            )
            assert design.solution.solver == label
            losses[label] = design.objective
    assert len(losses) >= 5
    assert max(losses.values()) - min(losses.values()) < 2e-7


@pytest.mark.parametrize(("question", "options"), list_cases())
@pytest.mark.parametrize("finished_solves", [0, 2])
def test_an_interrupted_solve_is_never_an_answer(question, options, finished_solves, monkeypatch):
    """All solves after the first ones return their point with the status of Ctrl-C."""
    original_solve = Session.solve
    solutions = []

    def solve_or_interrupt(self, *args, **kwargs):
        """Solve, and change the status of the solution after `finished_solves` solves."""
        solution = original_solve(self, *args, **kwargs)
        solutions.append(solution)
        if len(solutions) <= finished_solves:
            return solution
        return replace(solution, termination=Termination.INTERRUPTED)

    monkeypatch.setattr(Session, "solve", solve_or_interrupt)
    is_interrupted = False
    is_answered = False
    try:
        wb.design(question, **options, solver="ortools:glop", certify=False)
        is_answered = True
    except KeyboardInterrupt:
        is_interrupted = True
    except wb.WorkbenchError as error:
        is_interrupted = getattr(error, "interrupted", False)
    assert is_interrupted == (len(solutions) > finished_solves)
    assert not (is_interrupted and is_answered)


def end_every_solve(monkeypatch, termination: Termination) -> None:
    """Make every solve return its solution with another termination."""
    original_solve = Session.solve

    def solve(*args, **options):
        """Solve as usual, and replace the termination of the solution."""
        return replace(original_solve(*args, **options), termination=termination)

    monkeypatch.setattr(Session, "solve", solve)


def test_no_program_is_exported_after_an_interrupted_solve(tmp_path, monkeypatch):
    end_every_solve(monkeypatch, Termination.INTERRUPTED)
    with pytest.raises(KeyboardInterrupt):
        export_library(tmp_path / "programs", "noise-milp-circular-n9")
    assert not [*(tmp_path / "programs").iterdir()]


@pytest.mark.parametrize("check", ["audit", "certify"])
@pytest.mark.parametrize(
    "grid",
    [
        {"model": "modulo", "n": 5, "max_shift": 1, "epsilon": 1, "delta": "0.05", "notion": "pdp"},
        {"model": "quantizer", "bins": "-3,-0.5,0.5,3", "epsilon": 1},
        {"model": "quantizer", "bins": "-3,-0.5,0.5,3", "epsilon": 1, "method": "optm"},
        {"model": "channel", "answers": "0..3", "max_shift": 1, "epsilon": 1},
        {"model": "labels", "labels": "0..3", "epsilon": 1, "method": "lp"},
    ],
)
def test_no_row_of_a_sweep_is_stored_after_an_interrupted_solve(grid, check, tmp_path, monkeypatch):
    end_every_solve(monkeypatch, Termination.INTERRUPTED)
    with Ledger(tmp_path / "ledger.sqlite") as ledger:
        with pytest.raises(KeyboardInterrupt):
            wb.sweep({"grid": {**grid, "check": check}}, ledger, jobs=1)
        assert not len(ledger)


def test_an_exported_program_whose_solve_stopped_early_states_this(tmp_path, monkeypatch):
    end_every_solve(monkeypatch, Termination.TIME_LIMIT)
    (row,) = export_library(tmp_path, "noise-milp-circular-n9")
    # Value of the current program, pinned.
    assert row["value"] == pytest.approx(3.449094, abs=1e-6)
    assert "stopped early" in row["proof"]


@pytest.mark.parametrize(
    "options",
    [
        {"threads": 2, "presolve": False},
        {"options": {"threads": 2, "presolve": False}},
        {"options": Options(threads=2, presolve=False)},
        {"options": Options(presolve=False), "threads": 2},
    ],
)
def test_options_of_the_solver_are_given_by_name_or_together(options):
    query = wb.FiniteQuery("0..3", max_shift=1)
    design = wb.design(query, epsilon=1, method="program", time_limit=9, **options)
    assert design.request.how.options == Options(threads=2, presolve=False, time_limit=9.0)
    assert design.solution.threads == 2
    design_by_name = wb.design(
        "channel", answers="0..3", max_shift=1, epsilon=1, method="program", time_limit=9, **options
    )
    assert design_by_name.request.how.options == design.request.how.options


@pytest.mark.parametrize(
    ("options", "refused_name"),
    [
        ({"options": {"thread": 2}}, "thread"),
        ({"thread": 2}, "thread"),
        ({"threads": "two"}, "threads"),
        ({"threads": True}, "threads"),
        ({"options": {"gap": -1}}, "gap"),
        ({"options": {"presolve": 1}}, "presolve"),
        ({"options": {"algorithm": "barrier"}}, "algorithm"),
        ({"options": {"time_limit": 5}, "time_limit": 6}, "time_limit"),
        ({"options": {"seed": 5}, "seed": 6}, "seed"),
        ({"options": 7}, "options"),
        ({"solver": "ortools:glop", "integrality_tolerance": 1e-6}, "integrality_tolerance"),
    ],
)
def test_wrong_options_of_the_solver_are_refused_by_name(options, refused_name):
    with pytest.raises(wb.InvalidRequest, match=refused_name):
        wb.design(wb.FiniteQuery("0..3", max_shift=1), epsilon=1, **options)


def test_given_outputs_are_solved_even_after_the_deadline():
    question = LawQuestion(Fraction(1), deadline=Deadline(2.0))
    question.deadline._begin -= 100  # The deadline has passed 98 seconds ago.
    outputs = tuple(map(Fraction, ("-3", "-1/2", "1/2", "3")))
    answer = solve_exact_quantizer(outputs, question)
    # Value of the current program, pinned.
    assert answer.objective == pytest.approx(1.798681, abs=1e-6)
