"""Test that requests of all families have the same four parts, and how they read a budget.

The parts are question, claim, aim and how (`workbench.pipeline.request`).
"""

from __future__ import annotations

import pickle
from dataclasses import fields
from fractions import Fraction
from typing import Any

import pytest

import workbench as wb
from workbench.notions import BUILT_IN_NOTIONS, get_notion
from workbench.pipeline.family import Family
from workbench.pipeline.registry import get_family, list_builtin_families
from workbench.pipeline.request import BUDGET_OPTIONS, Request, read_claim

QUESTION = wb.FiniteQuery("0..3", max_shift=1)
BUDGET_VALUES: dict[str, Any] = {
    "epsilon": Fraction(1),
    "delta": Fraction(1, 100),
    "alpha": Fraction(2),
    "rho": Fraction(1, 10),
    "mu": Fraction(1),
    "curve": "0.5:0.1,1:0.01",
    "tradeoff": "0:1,0.1:0.6,0.4:0.2,1:0",
}


def channel_request(**options: Any) -> Request:
    return get_family("channel").make_request(QUESTION, **options)


def test_a_request_has_four_parts_and_a_family() -> None:
    assert [each.name for each in fields(Request)] == ["question", "claim", "aim", "how", "family"]


@pytest.mark.parametrize("kind", list_builtin_families(), ids=lambda kind: kind.name)
def test_requests_of_families_have_no_other_fields(kind: Family) -> None:
    commands = [command.split()[2:] for command in kind.design_examples]
    design = next(words for words in commands if len(words) % 2 == 0)  # No flags.
    given = {
        name.removeprefix("--").replace("-", "_"): value
        for name, value in zip(design[::2], design[1::2], strict=True)
    }
    assert [each.name for each in fields(kind.make_request_from_options(**given))] == [
        each.name for each in fields(Request)
    ]


@pytest.mark.parametrize("name", BUILT_IN_NOTIONS)
def test_a_claim_takes_the_parameters_of_its_notion_alone(name: str) -> None:
    own = get_notion(name).parameters
    has_delta = get_notion(name).has_delta
    values = {
        "notion": name,
        **{budget: BUDGET_VALUES[budget] for budget in own if budget != "delta" or has_delta},
    }
    rest = {"loss": "squared"}
    given = {**values, **rest}
    claim = read_claim(given)
    assert given == rest
    assert (claim.notion.name, {*claim.values}) == (name, {*own})
    for budget in {*BUDGET_OPTIONS} - {*own}:
        with pytest.raises(
            wb.InvalidRequest, match=f"{budget} must be left out when notion is {name}"
        ):
            read_claim({**values, budget: BUDGET_VALUES[budget]})


def test_a_budget_that_is_missing_is_named() -> None:
    with pytest.raises(wb.InvalidRequest, match="epsilon must be given"):
        read_claim({"notion": "dp"})
    with pytest.raises(wb.InvalidRequest, match="rho must be given for the notion zcdp"):
        read_claim({"notion": "zcdp"})


def test_what_is_minimised_has_a_limit_or_none() -> None:
    aim = {"minimise": "delta", "max_loss": "0.4"}
    assert channel_request(epsilon=1, **aim).claim.delta is None
    assert channel_request(epsilon=1, **aim).audited_claim.delta == 0
    assert channel_request(epsilon=1, delta="0.1", **aim).claim.delta == Fraction(1, 10)
    assert channel_request(minimise="epsilon", max_loss="0.4").claim.epsilon == 20


def test_values_are_changed_by_their_names_and_checked_again() -> None:
    request = channel_request(epsilon=1, delta="0.01")
    changed = request.with_values(
        epsilon=Fraction(2), solver="cvxpy:clarabel", unit=None, check="audit"
    )
    assert (changed.claim.epsilon, changed.claim.delta) == (2, Fraction(1, 100))
    assert (changed.how.solver, changed.how.check, changed.wants_certificate) == (
        "cvxpy:clarabel",
        "audit",
        False,
    )
    assert (request.claim.epsilon, request.how.check) == (1, "certify")
    assert request.at_point({"epsilon": None, "delta": Fraction(0)}).claim.values == {
        "epsilon": 1,
        "delta": 0,
    }
    with pytest.raises(wb.InvalidRequest, match="max_loss must be given"):
        request.with_values(minimise="epsilon")
    with pytest.raises(wb.InvalidRequest, match="delta must be 0 when notion is pure"):
        channel_request(epsilon=1, notion="pure").with_values(delta=Fraction(1, 10))
    with pytest.raises(wb.InvalidRequest, match="rho must be left out when notion is dp"):
        request.with_values(rho=Fraction(1))
    with pytest.raises(TypeError):
        request.with_values(colour="red")


def test_a_request_is_pickled() -> None:
    request = channel_request(
        epsilon=1,
        minimise="delta",
        max_loss="0.4",
        loss=lambda output, answer: abs(output - answer),
    )
    loaded = pickle.loads(pickle.dumps(request))
    assert loaded.claim.values == {"epsilon": 1, "delta": None}
    assert loaded.family is request.family
    assert loaded.aim.loss[0][:2] == (0, 1)
