"""Test that requests of all families have the same four parts, and how they read a budget.

The parts are the question, the claim (notion and budget), the aim (what is minimised) and how
(method, solver, limits). `workbench.pipeline.request` defines them.
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
# A valid value for each parameter of a budget.
BUDGET_VALUES: dict[str, Any] = {
    "epsilon": Fraction(1),
    "delta": Fraction(1, 100),
    "alpha": Fraction(2),
    "rho": Fraction(1, 10),
    "mu": Fraction(1),
    "curve": "0.5:0.1,1:0.01",
    "tradeoff": "0:1,0.1:0.6,0.4:0.2,1:0",
}


def make_channel_request(**options: Any) -> Request:
    """Make a request for a channel of QUESTION with these options."""
    return get_family("channel").make_request(QUESTION, **options)


def test_a_request_has_four_parts_and_a_family() -> None:
    assert list_field_names(Request) == ["question", "claim", "aim", "how", "family"]


def list_field_names(request: Any) -> list[str]:
    """Return the names of the fields of a dataclass or of an instance of one."""
    return [field.name for field in fields(request)]


@pytest.mark.parametrize("family", list_builtin_families(), ids=lambda family: family.name)
def test_requests_of_families_have_no_other_fields(family: Family) -> None:
    # An example such as "workbench design modulo --n 8", without flags, whose options have values.
    examples = [command.split()[2:] for command in family.design_examples]
    arguments = next(arguments for arguments in examples if len(arguments) % 2 == 0)
    options = {
        option.removeprefix("--").replace("-", "_"): value
        for option, value in zip(arguments[::2], arguments[1::2], strict=True)
    }
    request = family.make_request_from_options(**options)
    assert list_field_names(request) == list_field_names(Request)


def make_budget(name: str) -> dict[str, Any]:
    """Return the options of a valid claim of a notion."""
    notion = get_notion(name)
    parameters = [
        parameter for parameter in notion.parameters if parameter != "delta" or notion.has_delta
    ]
    return {"notion": name} | {parameter: BUDGET_VALUES[parameter] for parameter in parameters}


@pytest.mark.parametrize("name", BUILT_IN_NOTIONS)
def test_a_claim_takes_the_parameters_of_its_notion_from_the_options(name: str) -> None:
    other_options = {"loss": "squared"}
    options = make_budget(name) | other_options
    claim = read_claim(options)
    assert options == other_options
    assert claim.notion.name == name
    assert set(claim.values) == set(get_notion(name).parameters)


@pytest.mark.parametrize("name", BUILT_IN_NOTIONS)
def test_a_parameter_of_another_notion_is_refused(name: str) -> None:
    for parameter in set(BUDGET_OPTIONS) - set(get_notion(name).parameters):
        options = make_budget(name) | {parameter: BUDGET_VALUES[parameter]}
        with pytest.raises(
            wb.InvalidRequest, match=f"{parameter} must be left out when notion is {name}"
        ):
            read_claim(options)


def test_a_budget_that_is_missing_is_named() -> None:
    with pytest.raises(wb.InvalidRequest, match="epsilon must be given"):
        read_claim({"notion": "dp"})
    with pytest.raises(wb.InvalidRequest, match="rho must be given for the notion zcdp"):
        read_claim({"notion": "zcdp"})


def test_a_minimised_delta_has_its_option_as_limit_or_none() -> None:
    aim = {"minimise": "delta", "max_loss": "0.4"}
    assert make_channel_request(epsilon=1, **aim).claim.delta is None
    assert make_channel_request(epsilon=1, **aim).audited_claim.delta == 0
    assert make_channel_request(epsilon=1, delta="0.1", **aim).claim.delta == Fraction(1, 10)


def test_a_minimised_epsilon_of_a_channel_has_the_limit_20() -> None:
    assert make_channel_request(minimise="epsilon", max_loss="0.4").claim.epsilon == 20


@pytest.fixture
def request_with_delta() -> Request:
    """Return a request at ε = 1 and δ = 1/100."""
    return make_channel_request(epsilon=1, delta="0.01")


def test_values_of_a_request_are_changed_by_their_names(request_with_delta: Request) -> None:
    changed = request_with_delta.with_values(
        epsilon=Fraction(2), solver="cvxpy:clarabel", unit=None, check="audit"
    )
    assert (changed.claim.epsilon, changed.claim.delta) == (2, Fraction(1, 100))
    assert (changed.how.solver, changed.how.check) == ("cvxpy:clarabel", "audit")
    assert not changed.wants_certificate


def test_changed_values_leave_the_request_unchanged(request_with_delta: Request) -> None:
    request_with_delta.with_values(epsilon=Fraction(2), check="audit")
    assert request_with_delta.claim.epsilon == 1
    assert request_with_delta.how.check == "certify"


def test_a_value_of_a_point_that_is_none_is_not_changed(request_with_delta: Request) -> None:
    request = request_with_delta.at_point({"epsilon": None, "delta": Fraction(0)})
    assert request.claim.values == {"epsilon": 1, "delta": 0}


def test_changed_values_are_checked_again(request_with_delta: Request) -> None:
    with pytest.raises(wb.InvalidRequest, match="max_loss must be given"):
        request_with_delta.with_values(minimise="epsilon")
    with pytest.raises(wb.InvalidRequest, match="rho must be left out when notion is dp"):
        request_with_delta.with_values(rho=Fraction(1))
    pure_request = make_channel_request(epsilon=1, notion="pure")
    with pytest.raises(wb.InvalidRequest, match="delta must be 0 when notion is pure"):
        pure_request.with_values(delta=Fraction(1, 10))


def test_a_name_that_is_no_value_of_a_request_is_refused(request_with_delta: Request) -> None:
    with pytest.raises(TypeError):
        request_with_delta.with_values(colour="red")


def test_a_request_is_pickled() -> None:
    request = make_channel_request(
        epsilon=1,
        minimise="delta",
        max_loss="0.4",
        loss=lambda output, answer: abs(output - answer),
    )
    loaded = pickle.loads(pickle.dumps(request))
    assert loaded.claim.values == {"epsilon": 1, "delta": None}
    assert loaded.family is request.family
    assert loaded.aim.loss[0][:2] == (0, 1)
