"""The solver that is named is the solver that answers, in every family and every method, or the request is refused."""

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

# of every family, requests that solvers answer; methods come from the family's own option
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
SOLVERS = ("ortools:glop", "ortools:gscip")  # one with dual values, one without


def methods_of(kind) -> list[str | None]:
    """The methods that the family's option admits, from its own refusal of a word that none is."""
    option = next((option for option in kind.options if option.name == "method"), None)
    if option is None:
        return [None]
    with pytest.raises(wb.InvalidRequest) as refused:
        option.read_value("no such method")
    return re.search("one of (.*?)[.] Got", str(refused.value))[1].split(", ")


def cases() -> list:
    found = []
    for kind in list_families():
        if all(option.name != "solver" for option in kind.options):
            continue
        for method in methods_of(kind):
            for at, (question, given) in enumerate(REQUESTS[kind.name]):
                more = {} if method is None else {"method": method}
                found.append(
                    pytest.param(question, {**given, **more}, id=f"{kind.name}-{method}-{at}")
                )
    return found


@pytest.fixture
def opened(monkeypatch):
    """(label, time limit) of every session that is opened."""
    sessions, whole = [], Backend._open

    def spy(self, program, options):
        sessions.append((self.label, options.time_limit))
        return whole(self, program, options)

    monkeypatch.setattr(Backend, "_open", spy)
    return sessions


@pytest.mark.parametrize(("question", "given"), cases())
@pytest.mark.parametrize("solver", SOLVERS)
def test_the_solver_that_is_named_answers_or_the_request_is_refused(
    question, given, solver, opened
):
    try:
        design = wb.design(question, **given, solver=solver, time_limit=40, certify=False)
    except wb.WorkbenchError:
        design = None
    assert {label for label, _ in opened} <= {solver}
    if design is None:
        return
    assert (design.solver == solver) == bool(opened)
    if design.solution is not None:
        assert design.solution.solver == solver
    if not opened:
        assert any(
            "No solver was called" in sentence and solver in sentence for sentence in design.words
        )
    assert all(limit is not None and 0 < limit <= 40 for _, limit in opened), (
        "the time limit did not arrive"
    )


@pytest.mark.parametrize(("question", "given"), cases())
def test_a_solver_of_integer_programs_is_refused_for_linear_ones(question, given, opened):
    try:
        design = wb.design(question, **given, solver="ortools:cp-sat", certify=False)
    except (wb.SolverUnavailable, wb.InvalidRequest):
        assert not opened
        return
    assert design.solver is None
    assert not opened


def test_methods_without_a_solver_refuse_one():
    labels, query = wb.Labels.uniform(0, 3), wb.FiniteQuery("0..3", max_shift=1)
    for question, method in ((labels, "bins"), (labels, "auto"), (query, "block")):
        with pytest.raises(wb.InvalidRequest, match="which uses no solver"):
            wb.design(question, epsilon=1, method=method, solver="ortools:glop")


def test_comparisons_show_no_row_under_the_name_of_a_solver_that_did_not_answer():
    optm = wb.compare(
        wb.Quantization("-3,-0.5,0.5,3"),
        "highs,ortools:cp-sat,ortools:glop",
        epsilon=1,
        method="optm",
    )
    highs, cp_sat, glop = optm
    assert cp_sat["status"] == "unavailable"
    assert cp_sat["objective"] is None
    assert highs["objective"] == pytest.approx(2.26729956, abs=1e-6)
    assert glop["objective"] == pytest.approx(highs["objective"], abs=2e-7)
    assert [row["solver"] for row in optm] == ["highs", "ortools:cp-sat", "ortools:glop"]
    for question, given in (
        (wb.Labels.uniform(0, 3), {"method": "bins"}),
        (wb.IntegerNoise(1), {}),
        (wb.FiniteQuery("0..3", max_shift=1), {"method": "block"}),
    ):
        with pytest.raises(wb.InvalidRequest, match="was not used"):
            wb.compare(question, "highs,ortools:glop", epsilon=1, **given)


def test_a_request_for_many_runs_is_compared_as_it_is_certified():
    rows = wb.compare(
        wb.ModuloNoise(n=6, max_shift=2), "highs,ortools:glop", epsilon=1, delta=0, runs=2
    )
    for row in rows:
        assert row["status"] == "found"
        assert row["objective"] == pytest.approx(0.759724059, abs=1e-8)
        assert row["bound"] == pytest.approx(row["objective"], abs=1e-8)
        assert row["certified"] is True
    assert "proves the optimum, and its mechanism is certified" in rows.sentences[0]


@pytest.mark.parametrize("method", ["optm", "product", "mvu"])
def test_a_time_limit_ends_the_search_of_a_quantizer(method):
    with pytest.raises(wb.NotProven):
        wb.design(wb.Quantization(levels=4), epsilon=1, method=method, time_limit="1e-9")


def test_every_solver_of_linear_programs_finds_the_same_optm():
    found = {}
    for label in list_backend_names():
        solver = get_backend(label)
        if (
            solver.is_installed() and solver.capabilities().lp and label != "ortools:pdlp"
        ):  # it takes seconds
            design = wb.design(
                wb.Quantization("-3,-0.5,0.5,3"), epsilon=1, method="optm", solver=label
            )
            assert design.solution.solver == label
            found[label] = design.objective
    assert len(found) >= 5
    assert max(found.values()) - min(found.values()) < 2e-7


@pytest.mark.parametrize(("question", "given"), cases())
@pytest.mark.parametrize("after", [0, 2])
def test_an_interrupted_solve_is_never_an_answer(question, given, after, monkeypatch):
    """From the solve after so many on, every solve ends by Ctrl-C, with the point that it would have had."""
    whole, count = Session.solve, []

    def ended(self, *args, **kwargs):
        solution = whole(self, *args, **kwargs)
        count.append(solution)
        return (
            solution
            if len(count) <= after
            else replace(solution, termination=Termination.INTERRUPTED)
        )

    monkeypatch.setattr(Session, "solve", ended)
    interrupted, answered = False, False
    try:
        wb.design(question, **given, solver="ortools:glop", certify=False)
        answered = True
    except KeyboardInterrupt:
        interrupted = True
    except wb.WorkbenchError as error:
        interrupted = getattr(error, "interrupted", False)
    assert interrupted == (len(count) > after), "Ctrl-C was swallowed"
    assert not (interrupted and answered)


def test_nothing_is_stored_of_an_interrupted_solve(tmp_path, monkeypatch):
    whole = Session.solve
    monkeypatch.setattr(
        Session,
        "solve",
        lambda *args, **kw: replace(whole(*args, **kw), termination=Termination.INTERRUPTED),
    )
    with pytest.raises(KeyboardInterrupt):
        export_library(tmp_path / "programs", "noise-milp-circular-n9")
    assert not [*(tmp_path / "programs").iterdir()]
    for grid in (
        {"model": "modulo", "n": 5, "max_shift": 1, "epsilon": 1, "delta": "0.05", "notion": "pdp"},
        {"model": "quantizer", "bins": "-3,-0.5,0.5,3", "epsilon": 1},
        {"model": "quantizer", "bins": "-3,-0.5,0.5,3", "epsilon": 1, "method": "optm"},
        {"model": "channel", "answers": "0..3", "max_shift": 1, "epsilon": 1},
        {"model": "labels", "labels": "0..3", "epsilon": 1, "method": "lp"},
    ):
        for check in ("audit", "certify"):
            with Ledger(tmp_path / "ledger.sqlite") as book:
                with pytest.raises(KeyboardInterrupt):
                    wb.sweep({"grid": {**grid, "check": check}}, book, jobs=1)
                assert not len(book)


def test_a_program_whose_solve_stops_early_says_so(tmp_path, monkeypatch):
    whole = Session.solve
    monkeypatch.setattr(
        Session,
        "solve",
        lambda *args, **kw: replace(whole(*args, **kw), termination=Termination.TIME_LIMIT),
    )
    (row,) = export_library(tmp_path, "noise-milp-circular-n9")
    assert row["value"] == pytest.approx(3.449094, abs=1e-6)
    assert "stopped early" in row["proof"]


@pytest.mark.parametrize(
    "given",
    [
        {"threads": 2, "presolve": False},
        {"options": {"threads": 2, "presolve": False}},
        {"options": Options(threads=2, presolve=False)},
        {"options": Options(presolve=False), "threads": 2},
    ],
)
def test_options_of_the_solver_are_given_by_name_or_together(given):
    query = wb.FiniteQuery("0..3", max_shift=1)
    design = wb.design(query, epsilon=1, method="program", time_limit=9, **given)
    assert design.request.how.options == Options(threads=2, presolve=False, time_limit=9.0)
    assert design.solution.threads == 2
    spelled = wb.design(
        "channel", answers="0..3", max_shift=1, epsilon=1, method="program", time_limit=9, **given
    )
    assert spelled.request.how.options == design.request.how.options


@pytest.mark.parametrize(
    ("given", "named"),
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
def test_wrong_options_of_the_solver_are_refused_by_name(given, named):
    with pytest.raises(wb.InvalidRequest, match=named):
        wb.design(wb.FiniteQuery("0..3", max_shift=1), epsilon=1, **given)


def test_a_search_over_outputs_that_ran_out_of_time_keeps_its_outputs():
    spent = LawQuestion(Fraction(1), deadline=Deadline(2.0))
    spent.deadline._begin -= 100  # as if the search had taken so long
    answer = solve_exact_quantizer(tuple(map(Fraction, ("-3", "-1/2", "1/2", "3"))), spent)
    assert answer.objective == pytest.approx(1.798681, abs=1e-6)
