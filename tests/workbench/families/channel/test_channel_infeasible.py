"""Test that an infeasible channel request names the conflicting constraints and feasible values."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

import pytest

import workbench as wb
from workbench.solvers.errors import SolverError
from workbench.solvers.growing import GrowingProgram
from workbench.solvers.session import Session
from workbench.solvers.solution import DualValues, Termination

UNBIASED = {"answers": "0..4", "neighbours": "all", "constraints": ("unbiased",)}


def explain_infeasible(**options: object) -> str:
    """Return the message of the error for an infeasible request for a channel."""
    with pytest.raises(wb.Infeasible) as caught:
        wb.design("channel", **options)
    return str(caught.value)


def test_a_request_that_no_epsilon_makes_feasible_says_so():
    """An unbiased channel onto 0..4 publishes 0 for 0 and 4 for 4, which is not private."""
    message = explain_infeasible(**UNBIASED, epsilon="0.1")
    assert "unbiased" in message
    assert "pure at epsilon = 0.1" in message or "dp at epsilon = 0.1" in message
    assert "smallest feasible epsilon" not in message
    assert "No epsilon up to 20 is feasible" in message


def test_the_smallest_feasible_epsilon_is_stated():
    request = {**UNBIASED, "outputs": tuple(range(-3, 8))}
    message = explain_infeasible(**request, epsilon="0.1")
    match = re.search(r"smallest feasible epsilon is (\d+\.\d+)", message)
    assert match is not None
    smallest_epsilon = float(match[1])
    above = wb.design("channel", **request, epsilon=smallest_epsilon * 1.0001, certify=False)
    assert above.status == "optimal"
    with pytest.raises(wb.Infeasible):
        wb.design("channel", **request, epsilon=smallest_epsilon * 0.999)


@pytest.mark.parametrize("delta", [0, "0.01"])
@pytest.mark.parametrize("neighbours", [{"neighbours": "all"}, {"max_shift": 1}])
def test_user_defined_constraints_are_named_by_their_text_or_label(
    delta: object, neighbours: dict[str, object]
) -> None:
    message = explain_infeasible(
        answers="0..2",
        epsilon="0.1",
        delta=delta,
        **neighbours,
        constraints=lambda M: [M[0, 0] >= 0.9, (M[2, 0] <= 0.1).set_label("zero is rare")],
    )
    assert "These constraints are jointly infeasible" in message
    assert "0.9 <= M[0, 0]" in message
    assert "zero is rare" in message
    assert "dp at epsilon = 0.1" in message


def test_constraints_that_conflict_without_privacy_are_named_without_the_budget() -> None:
    message = explain_infeasible(
        answers="0..2",
        epsilon=20,
        neighbours="all",
        constraints=lambda M: [M[0, 0] >= 0.9, M[0, 1] >= 0.5],
    )
    assert "0.9 <= M[0, 0]; 0.5 <= M[0, 1]" in message
    assert "dp at epsilon" not in message


@pytest.fixture
def solver_that_reports_infeasible(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make every solver report "infeasible" without a point and without multipliers."""
    solve = Session.solve

    def report_infeasible(self: Session, *arguments: Any, **options: Any) -> Any:
        """Solve the program, and return the answer of a solver that calls it infeasible."""
        return replace(
            solve(self, *arguments, **options),
            termination=Termination.INFEASIBLE,
            raw_status="Infeasible",
            x=None,
            dual_values=DualValues(),
        )

    def fail(self: GrowingProgram, *arguments: Any) -> Any:
        """Raise the error of a program with growing rows that a solver calls infeasible."""
        raise SolverError("highs ended a growing program with 'Infeasible'.")

    monkeypatch.setattr(Session, "solve", report_infeasible)
    monkeypatch.setattr(GrowingProgram, "solve", fail)


@pytest.mark.usefixtures("solver_that_reports_infeasible")
def test_a_request_without_constraints_is_never_called_infeasible() -> None:
    """A channel that ignores its input satisfies it, whatever a solver reports."""
    with pytest.raises(wb.NotProven, match="says 'Infeasible' to a feasible request"):
        wb.design("channel", answers="0..4", max_shift=1, epsilon=10, delta="1e-5", certify=False)


@pytest.mark.usefixtures("solver_that_reports_infeasible")
def test_a_request_that_multipliers_prove_infeasible_is_called_infeasible() -> None:
    with pytest.raises(wb.Infeasible, match="No channel meets the constraints"):
        wb.design(
            "channel",
            answers="0..4",
            max_shift=1,
            epsilon=10,
            constraints=("unbiased",),
            certify=False,
        )


@pytest.mark.usefixtures("solver_that_reports_infeasible")
@pytest.mark.parametrize(
    ("question", "options"),
    [
        (
            "channel",
            {"answers": "0..4", "max_shift": 1, "epsilon": 10, "constraints": ("symmetric",)},
        ),
        (
            "channel",
            {
                "answers": "0..4",
                "max_shift": 1,
                "notion": "gdp",
                "mu": 1,
                "constraints": ("symmetric",),
            },
        ),
        (wb.Labels([0, 1, 2]), {"epsilon": 1, "method": "lp", "constraints": ["symmetric"]}),
        (wb.Labels([0, 1, 2]), {"notion": "renyi", "alpha": 2, "epsilon": 1, "method": "lp"}),
        (wb.ModuloNoise(n=4, max_shift=1), {"epsilon": 1, "constraints": lambda f: [f[0] >= 0.1]}),
    ],
)
def test_a_constrained_request_is_not_called_infeasible_without_a_proof(
    question: Any, options: dict[str, Any]
) -> None:
    with pytest.raises(wb.NotProven, match=r"no multipliers prove it|returned no point"):
        wb.design(question, **options)


@pytest.mark.usefixtures("solver_that_reports_infeasible")
def test_a_label_request_without_constraints_is_never_called_infeasible() -> None:
    with pytest.raises(wb.NotProven, match="to a feasible request"):
        wb.design(wb.Labels([0, 1, 2]), epsilon=1, method="lp")
    with pytest.raises(wb.NotProven, match="to a feasible request"):
        wb.design(wb.Labels([0, 1, 2]), epsilon=1, method="unbiased")


def test_infeasibility_is_proven_for_a_solver_without_multipliers() -> None:
    """GLOP returns no multipliers, so HiGHS is called for the proof."""
    with pytest.raises(wb.Infeasible, match="ortools:glop says"):
        wb.design(
            "channel",
            answers="0..4",
            max_shift=1,
            epsilon=1,
            constraints=("unbiased",),
            solver="ortools:glop",
        )
