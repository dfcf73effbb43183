"""Programs that leave out comparisons of masses: the same optimum, with less to solve, and never a wrong one."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import workbench as wb
from workbench.families.channel.family import FAMILY
from workbench.models.channel.program import ChannelModel
from workbench.solvers.program import Program


@pytest.fixture
def programs(monkeypatch: pytest.MonkeyPatch) -> list[Program]:
    """Collect every program of a channel that is opened."""
    opened: list[Program] = []
    state = ChannelModel.program.func

    def record(model: ChannelModel) -> Program:
        opened.append(state(model))
        return opened[-1]

    monkeypatch.setattr(ChannelModel, "program", property(record))
    return opened


def rows_of(program: Program) -> int:
    return sum(block.size for block in program.rows if block.name.startswith("ratio_"))


def ask(prior: Any = "uniform", **options: Any) -> Any:
    question = wb.FiniteQuery("0..29", max_shift=1, prior=prior)
    return FAMILY.make_request(question, **{"epsilon": 1, "delta": "1e-5", **options})


def all_stated(request: Any) -> Any:
    """The request with every comparison stated."""
    vars(request)["binding_comparisons"] = None
    return request


@pytest.mark.parametrize("prior", ["uniform", "worst", [1 + 7919 * i % 13 for i in range(30)]])
@pytest.mark.parametrize("loss", ["squared", "absolute"])
def test_fewer_comparisons_have_the_same_optimum(
    prior: Any, loss: str, programs: list[Program]
) -> None:
    design = FAMILY.design_request(ask(prior, loss=loss))
    assert rows_of(programs[-1]) < 0.6 * design.request.comparison_count
    every = FAMILY.design_request(all_stated(ask(prior, loss=loss)))
    assert rows_of(programs[-1]) == design.request.comparison_count
    assert design.objective == pytest.approx(every.objective, rel=1e-9)
    assert design.bound == pytest.approx(every.bound, rel=1e-9)


def test_comparisons_that_bind_after_all_are_stated(programs: list[Program]) -> None:
    request = ask()
    binding = np.zeros_like(request.binding_comparisons)
    vars(request)["binding_comparisons"] = binding
    design = FAMILY.design_request(request)
    assert {rows_of(program) for program in programs} == {0, request.comparison_count}
    every = FAMILY.design_request(all_stated(ask()))
    assert design.objective == pytest.approx(every.objective, rel=1e-9)
    assert design.objective - float(design.bound) <= 1e-8


@pytest.mark.parametrize(
    "options",
    [
        {"epsilon": "0.05"},  # Optimal outputs are far from the inputs for which they are made.
        {"delta": 0},
        {"loss": "error-rate"},  # Equal losses of most inputs say nothing.
        {"loss": np.random.default_rng(0).random((30, 30))},
        {"constraints": ["symmetric"]},
    ],
)
def test_every_comparison_is_stated_where_the_guess_would_fail(options: dict[str, Any]) -> None:
    assert ask(**options).binding_comparisons is None


def test_every_comparison_of_directed_neighbours_is_stated() -> None:
    question = wb.FiniteQuery("0..29", max_shift=1, directed=True)
    assert FAMILY.make_request(question, epsilon=1, delta="1e-5").binding_comparisons is None
