"""An infeasible channel request names the conflicting constraints and feasible values."""

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


def why(**given: object) -> str:
    with pytest.raises(wb.Infeasible) as caught:
        wb.design("channel", answers="0..4", neighbours="all", **given)
    return str(caught.value)


def test_constraints_that_no_channel_meets_name_the_least_epsilon_that_does():
    said = why(epsilon="0.1", constraints=("unbiased",))
    assert "unbiased" in said
    assert "pure at epsilon = 0.1" in said or "dp at epsilon = 0.1" in said
    found = re.search(r"smallest feasible epsilon is (\d+\.\d+)", said)
    assert found is None  # unbiased on 0..4 publishes 0 for 0 and 4 for 4: no epsilon is enough
    assert "No epsilon up to 20 is feasible" in said


def test_outputs_that_leave_room_name_the_least_epsilon():
    outputs = tuple(range(-3, 8))
    said = why(epsilon="0.1", constraints=("unbiased",), outputs=outputs)
    least = float(re.search(r"smallest feasible epsilon is (\d+\.\d+)", said)[1])  # type: ignore[index]
    assert (
        wb.design(
            "channel",
            answers="0..4",
            neighbours="all",
            outputs=outputs,
            constraints=("unbiased",),
            epsilon=least * 1.0001,
            certify=False,
        ).status
        == "optimal"
    )
    with pytest.raises(wb.Infeasible):
        wb.design(
            "channel",
            answers="0..4",
            neighbours="all",
            outputs=outputs,
            constraints=("unbiased",),
            epsilon=least * 0.999,
        )


@pytest.mark.parametrize("delta", [0, "0.01"])
@pytest.mark.parametrize("neighbours", [{"neighbours": "all"}, {"max_shift": 1}])
def test_constraints_of_ones_own_are_named_by_their_text(
    delta: object, neighbours: dict[str, object]
) -> None:
    with pytest.raises(wb.Infeasible) as caught:
        wb.design(
            "channel",
            answers="0..2",
            epsilon="0.1",
            delta=delta,
            **neighbours,
            constraints=lambda M: [M[0, 0] >= 0.9, (M[2, 0] <= 0.1).set_label("zero is rare")],
        )
    assert "These constraints are jointly infeasible" in str(caught.value)
    assert "0.9 <= M[0, 0]" in str(caught.value)
    assert "zero is rare" in str(caught.value)
    assert "dp at epsilon = 0.1" in str(caught.value)


def test_constraints_of_ones_own_may_conflict_without_privacy() -> None:
    with pytest.raises(wb.Infeasible) as caught:
        wb.design(
            "channel",
            answers="0..2",
            epsilon=20,
            neighbours="all",
            constraints=lambda M: [M[0, 0] >= 0.9, M[0, 1] >= 0.5],
        )
    assert "0.9 <= M[0, 0]; 0.5 <= M[0, 1]" in str(caught.value)
    assert "dp at epsilon" not in str(caught.value)


@pytest.fixture
def a_solver_that_calls_everything_infeasible(monkeypatch: pytest.MonkeyPatch) -> None:
    solve = Session.solve

    def infeasible(self: Session, *given: Any, **more: Any) -> Any:
        found = solve(self, *given, **more)
        nothing = {"x": None, "dual_values": DualValues()}
        return replace(
            found, termination=Termination.INFEASIBLE, raw_status="Infeasible", **nothing
        )

    def none(self: GrowingProgram, *given: Any) -> Any:
        raise SolverError("highs ended a growing program with 'Infeasible'.")

    monkeypatch.setattr(Session, "solve", infeasible)
    monkeypatch.setattr(GrowingProgram, "solve", none)


@pytest.mark.usefixtures("a_solver_that_calls_everything_infeasible")
def test_a_feasible_askedis_never_called_infeasible() -> None:
    """A channel that ignores its input meets every request without constraints, whatever a solver says of e^10."""
    with pytest.raises(wb.NotProven, match="says 'Infeasible' to a feasible request"):
        wb.design("channel", answers="0..4", max_shift=1, epsilon=10, delta="1e-5", certify=False)
    with pytest.raises(wb.Infeasible, match="No channel meets the constraints"):
        wb.design(
            "channel",
            answers="0..4",
            max_shift=1,
            epsilon=10,
            constraints=("unbiased",),
            certify=False,
        )


@pytest.mark.usefixtures("a_solver_that_calls_everything_infeasible")
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
def test_what_multipliers_do_not_prove_is_not_called_infeasible(
    question: Any, options: dict[str, Any]
) -> None:
    with pytest.raises(wb.NotProven, match=r"no multipliers prove it|returned no point"):
        wb.design(question, **options)


@pytest.mark.usefixtures("a_solver_that_calls_everything_infeasible")
def test_a_label_request_without_constraints_is_never_called_infeasible() -> None:
    with pytest.raises(wb.NotProven, match="to a feasible request"):
        wb.design(wb.Labels([0, 1, 2]), epsilon=1, method="lp")
    with pytest.raises(wb.NotProven, match="to a feasible request"):
        wb.design(wb.Labels([0, 1, 2]), epsilon=1, method="unbiased")


def test_an_infeasible_request_is_proven_so_where_the_solver_gives_no_multipliers() -> None:
    """GLOP has none: those of HiGHS prove it."""
    with pytest.raises(wb.Infeasible, match="ortools:glop says"):
        wb.design(
            "channel",
            answers="0..4",
            max_shift=1,
            epsilon=1,
            constraints=("unbiased",),
            solver="ortools:glop",
        )
