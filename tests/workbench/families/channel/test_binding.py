"""Test that a channel program that omits comparisons of masses has the optimum of the full program.

A comparison is a row M[i, o] <= e^ε M[j, o] + slack of the linear program. The request guesses
which comparisons can hold with equality (`binding_comparisons`). Only these are stated at first.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import workbench as wb
from workbench.families.channel.family import FAMILY
from workbench.models.channel.program import ChannelModel
from workbench.solvers.program import Program


@pytest.fixture
def built_programs(monkeypatch: pytest.MonkeyPatch) -> list[Program]:
    """Collect every program of a channel that is built during the test."""
    programs: list[Program] = []
    build = ChannelModel.program.func

    def build_and_record(model: ChannelModel) -> Program:
        """Build the program of a model, and add it to `programs`."""
        programs.append(build(model))
        return programs[-1]

    monkeypatch.setattr(ChannelModel, "program", property(build_and_record))
    return programs


def count_comparisons(program: Program) -> int:
    """Count the comparisons that a program states."""
    return sum(block.size for block in program.rows if block.name.startswith("ratio_"))


def make_request(prior: Any = "uniform", **options: Any) -> Any:
    """Make a request for answers 0..29, with ε = 1 and δ = 1e-5 unless options change them."""
    question = wb.FiniteQuery("0..29", max_shift=1, prior=prior)
    return FAMILY.make_request(question, **{"epsilon": 1, "delta": "1e-5", **options})


def state_all_comparisons(request: Any) -> Any:
    """Return the request, changed such that its program states every comparison."""
    vars(request)["binding_comparisons"] = None
    return request


@pytest.mark.parametrize("prior", ["uniform", "worst", [1 + 7919 * i % 13 for i in range(30)]])
@pytest.mark.parametrize("loss", ["squared", "absolute"])
def test_fewer_comparisons_have_the_same_optimum(
    prior: Any, loss: str, built_programs: list[Program]
) -> None:
    reduced = FAMILY.design_request(make_request(prior, loss=loss))
    assert count_comparisons(built_programs[-1]) < 0.6 * reduced.request.comparison_count
    full = FAMILY.design_request(state_all_comparisons(make_request(prior, loss=loss)))
    assert count_comparisons(built_programs[-1]) == reduced.request.comparison_count
    assert reduced.objective == pytest.approx(full.objective, rel=1e-9)
    assert reduced.bound == pytest.approx(full.bound, rel=1e-9)


def test_all_comparisons_are_stated_after_a_wrong_guess(built_programs: list[Program]) -> None:
    request = make_request()
    vars(request)["binding_comparisons"] = np.zeros_like(request.binding_comparisons)
    design = FAMILY.design_request(request)
    stated_counts = {count_comparisons(program) for program in built_programs}
    assert stated_counts == {0, request.comparison_count}
    full = FAMILY.design_request(state_all_comparisons(make_request()))
    assert design.objective == pytest.approx(full.objective, rel=1e-9)
    assert design.objective - float(design.bound) <= 1e-8


@pytest.mark.parametrize(
    "options",
    [
        {"epsilon": "0.05"},  # Optimal outputs are far from the inputs for which they are made.
        {"delta": 0},
        {"loss": "error-rate"},  # Most losses are equal, so their order gives no guess.
        {"loss": np.random.default_rng(0).random((30, 30))},
        {"constraints": ["symmetric"]},
    ],
)
def test_nothing_is_guessed_if_the_guess_would_be_unreliable(options: dict[str, Any]) -> None:
    assert make_request(**options).binding_comparisons is None


def test_nothing_is_guessed_for_directed_neighbours() -> None:
    question = wb.FiniteQuery("0..29", max_shift=1, directed=True)
    assert FAMILY.make_request(question, epsilon=1, delta="1e-5").binding_comparisons is None
