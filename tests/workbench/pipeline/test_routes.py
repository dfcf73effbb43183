"""Test for every route of every family one request that it answers, and one that it refuses.

A route is a way to answer a request (`workbench.pipeline.routes`). A family has one or several
problem classes, and each class lists its routes in the order in which they are tried. A route that
returns a *doubt* leaves the answer to the next route, or adds a bound to it. A new route needs an
entry in ANSWERED and one in REFUSED.
"""

from __future__ import annotations

from typing import Any

import pytest

import workbench as wb
from workbench.errors import InvalidRequest, NotProven
from workbench.families.channel.free_outputs import FreeOutputsProblem
from workbench.families.channel.problem import ChannelProblem
from workbench.families.labels.problem import BinsProblem, ChannelOfLabels, WithPriorProblem
from workbench.families.labels.unbiased import UnbiasedProblem
from workbench.families.modulo.problem import ModuloProblem
from workbench.families.noise.problem import NoiseProblem
from workbench.families.noise.runs import RunsProblem
from workbench.families.quantizer.problem import QuantizerProblem
from workbench.pipeline.problem import Problem
from workbench.pipeline.registry import find_family
from workbench.pipeline.routes import Answer, Doubt, Route, answer_by_routes, list_refusals
from workbench.questions.range_query import RangeQuery

PROBLEM_CLASSES = (
    ModuloProblem,
    NoiseProblem,
    RunsProblem,
    ChannelProblem,
    FreeOutputsProblem,
    QuantizerProblem,
    BinsProblem,
    WithPriorProblem,
    ChannelOfLabels,
    UnbiasedProblem,
)
# Questions and options of the requests below.
COUNT = wb.FiniteQuery("0..3", max_shift=1)
FREE = wb.FiniteQuery("0..3", max_shift=1, outputs="free")
SURE = wb.FiniteQuery("0..3", max_shift=1, prior=[1, 0, 0, 0])
FREE_AND_SURE = wb.FiniteQuery("0..3", "free", max_shift=1, prior=[1, 0, 0, 0])
SMALL = wb.FiniteQuery("0..2", max_shift=1)
LONG = wb.FiniteQuery("0..50", max_shift=1)
ZCDP = {"notion": "zcdp", "rho": "0.1"}
GDP = {"notion": "gdp", "mu": 1}
RENYI = {"notion": "renyi", "alpha": 2, "epsilon": "0.8"}
MANY_OUTPUTS = wb.FiniteQuery("0..3", "0..3:0.008", max_shift=1)  # 1504 masses
RESIDUES = wb.ModuloNoise(n=5, max_shift=1)
PDP = {"epsilon": 1, "delta": "0.05", "notion": "pdp"}
LABELS = wb.Labels.uniform(0, 3)
LISTED = wb.Quantization("-3,-0.5,0.5,3")
WIDE = wb.Quantization("-2,-0.9,0.9,2")
# A problem class, the name of one of its routes, and the question and the options of a request.
Case = tuple[type[Problem], str, Any, dict[str, Any]]

# Requests that the route answers.
ANSWERED: list[Case] = [
    (ModuloProblem, "tangents", RESIDUES, ZCDP),
    (ModuloProblem, "fast search", RESIDUES, PDP),
    (ModuloProblem, "program", RESIDUES, {**PDP, "method": "literal"}),
    (NoiseProblem, "staircase", wb.IntegerNoise(1), {"epsilon": 1}),
    (
        NoiseProblem,
        "programs at delta = 0",
        wb.IntegerNoise(1, clamp=(0, 3)),
        {"epsilon": 1, "prior": "worst"},
    ),
    (NoiseProblem, "programs from both sides", wb.IntegerNoise(1), {"epsilon": 1, "delta": "0.01"}),
    (
        RunsProblem,
        "composed noise",
        wb.IntegerNoise(1),
        {"epsilon": 1, "delta": "0.001", "runs": 4},
    ),
    (ChannelProblem, "one output for all neighbours", SURE, {"epsilon": 1}),
    (ChannelProblem, "geometric noise, post-processed", LONG, {"epsilon": 1, "loss": "squared"}),
    (ChannelProblem, "outputs without privacy", COUNT, {"epsilon": 1, "delta": 1}),
    (ChannelProblem, "interior method", MANY_OUTPUTS, RENYI),
    (ChannelProblem, "tangents", COUNT, ZCDP),
    (ChannelProblem, "blocks", COUNT, {"epsilon": 1, "method": "block"}),
    (ChannelProblem, "program", COUNT, {"epsilon": 1}),
    (
        FreeOutputsProblem,
        "one output for all neighbours",
        FREE_AND_SURE,
        {"epsilon": 1},
    ),
    (FreeOutputsProblem, "linear loss", FREE, {"epsilon": 1, "loss": "absolute"}),
    (FreeOutputsProblem, "search over outputs", FREE, {"epsilon": 1}),
    (QuantizerProblem, "exact program", LISTED, {"epsilon": 1}),
    (QuantizerProblem, "search over outputs", wb.Quantization(levels=2), {"epsilon": 1}),
    (QuantizerProblem, "optm", LISTED, {"epsilon": 1, "method": "optm"}),
    (QuantizerProblem, "optm-theorem6", WIDE, {"epsilon": 3, "method": "optm-theorem6"}),
    (QuantizerProblem, "optm-authors", LISTED, {"epsilon": 1, "method": "optm-authors"}),
    (QuantizerProblem, "rqm", LISTED, {"epsilon": 1, "method": "rqm"}),
    (QuantizerProblem, "erm", LISTED, {"epsilon": 4, "method": "erm"}),
    (QuantizerProblem, "product", LISTED, {"epsilon": 1, "method": "product"}),
    (QuantizerProblem, "mvu", LISTED, {"epsilon": 1, "method": "mvu"}),
    (BinsProblem, "bins", LABELS, {"epsilon": 1}),
    (WithPriorProblem, "rr-with-prior", LABELS, {"epsilon": 1, "method": "rr-with-prior"}),
    (ChannelOfLabels, "program", LABELS, {"epsilon": 1, "method": "lp"}),
    (UnbiasedProblem, "cones", LABELS, {"epsilon": 1, "method": "unbiased"}),
]

# Requests that the route is not for. The last entry is the reason.
REFUSED: list[tuple[type[Problem], str, Any, dict[str, Any], str]] = [
    (ModuloProblem, "tangents", RESIDUES, PDP, "pdp states one bound on ratios"),
    (ModuloProblem, "fast search", RESIDUES, {**PDP, "method": "literal"}, "the requested method is literal"),
    (ModuloProblem, "fast search", RESIDUES, {"epsilon": 1}, "it searches the patterns of pdp with delta > 0"),
    (ModuloProblem, "program", RESIDUES, ZCDP, "zcdp states several bounds"),
    (NoiseProblem, "staircase", wb.IntegerNoise(1), {"epsilon": 1, "delta": "0.01"}, "delta is 0.01, not 0"),
    (NoiseProblem, "staircase", wb.IntegerNoise(1), ZCDP, "zcdp states several bounds"),
    (NoiseProblem, "programs at delta = 0", wb.RealNoise(1), {"epsilon": 1}, "the noise is on the reals"),
    (ChannelProblem, "one output for all neighbours", COUNT, {"epsilon": 1},
     "no one output is optimal for all neighbours"),
    (ChannelProblem, "outputs without privacy", COUNT, {"epsilon": 1}, "delta is not 1"),
    (ChannelProblem, "geometric noise, post-processed", COUNT, {"epsilon": 1}, "the program of 16 masses is small"),
    (ChannelProblem, "geometric noise, post-processed", LONG, {"epsilon": 1, "method": "program"},
     "method program was requested"),
    (ChannelProblem, "tangents", COUNT, {"epsilon": 1}, "dp states one bound on ratios"),
    (ChannelProblem, "hockey sticks on a grid", COUNT, ZCDP,
     "no grid of hockey sticks approximates the claim, or a solver was requested"),
    (ChannelProblem, "interior method", COUNT, ZCDP, "tangents are more precise for 16 masses"),
    (ChannelProblem, "interior bound", COUNT, GDP, "hockey sticks on a grid apply"),
    (ChannelProblem, "blocks", COUNT, {"epsilon": 1}, "the program of 24 compared masses is faster"),
    (ChannelProblem, "blocks", COUNT, {"epsilon": 1, "method": "program"}, "method program was requested"),
    (ChannelProblem, "program", COUNT, ZCDP, "zcdp states several bounds"),
    (FreeOutputsProblem, "linear loss", FREE, {"epsilon": 1}, "the loss is not linear between outputs"),
    (QuantizerProblem, "exact program", wb.Quantization(levels=2), {"epsilon": 1}, "outputs are not given"),
    (QuantizerProblem, "search over outputs", LISTED, {"epsilon": 1}, "levels are not given"),
    (QuantizerProblem, "mvu", LISTED, {"epsilon": 1}, "the requested method is exact"),
    (QuantizerProblem, "optm", LISTED, {"epsilon": 1}, "the requested method is exact"),
    (QuantizerProblem, "optm-theorem6", LISTED, {"epsilon": 1}, "the requested method is exact"),
    (QuantizerProblem, "optm-authors", LISTED, {"epsilon": 1}, "the requested method is exact"),
    (QuantizerProblem, "rqm", LISTED, {"epsilon": 1}, "the requested method is exact"),
    (QuantizerProblem, "erm", LISTED, {"epsilon": 1}, "the requested method is exact"),
    (QuantizerProblem, "product", LISTED, {"epsilon": 1}, "the requested method is exact"),
]  # fmt: skip
# These routes apply to every request of their problem.
ALWAYS = {
    "programs from both sides",
    "composed noise",
    "search over outputs",
    "bins",
    "rr-with-prior",
    "cones",
}
# These routes run only if an earlier route returned a doubt.
LATER = {"hockey sticks on a grid", "interior bound"}


def format_test_id(case: tuple[Any, ...]) -> str:
    """Return the problem class, the route and the names of the options of a case."""
    problem_class, route_name, _, options, *_ = case
    return "-".join((problem_class.__name__, route_name, *options))


def make_problem(problem_class: type[Problem], question: Any, options: dict[str, Any]) -> Problem:
    """Return the problem of a request."""
    return problem_class(find_family(question).make_request(question, **options))


@pytest.mark.parametrize("case", ANSWERED, ids=format_test_id)
def test_a_report_names_the_route_that_answered(case: Case) -> None:
    problem_class, route_name, question, options = case
    problem = make_problem(problem_class, question, options)
    assert route_name not in list_refusals(problem)
    design = wb.design(question, **options)
    assert design.route == route_name
    assert ("computed by", route_name) in design.facts()
    assert design.to_dict()["route"] == route_name


@pytest.mark.parametrize("case", REFUSED, ids=format_test_id)
def test_a_route_that_does_not_apply_states_its_reason(case: tuple[Any, ...]) -> None:
    problem_class, route_name, question, options, reason = case
    refusals = list_refusals(make_problem(problem_class, question, options))
    assert refusals[route_name] == reason
    assert wb.design(question, **options).route != route_name


def test_every_route_of_every_family_is_in_the_lists() -> None:
    answered = {(problem_class, route_name) for problem_class, route_name, *_ in ANSWERED}
    refused = {(problem_class, route_name) for problem_class, route_name, *_ in REFUSED}
    for problem_class in PROBLEM_CLASSES:
        if problem_class is ChannelOfLabels:
            continue  # The next test compares its routes.
        for route in problem_class.routes:
            assert (problem_class, route.name) in answered or route.name in LATER
            never_refuses = route.name in ALWAYS or route.name.startswith("one output")
            assert (problem_class, route.name) in refused or never_refuses


def test_the_routes_of_channels_of_labels_are_those_of_channels() -> None:
    names = [route.name for route in ChannelOfLabels.routes]
    assert names == [route.name for route in ChannelProblem.routes]


# Routes after a route that returned a doubt.


@pytest.mark.parametrize(
    ("options", "route_name", "has_doubt"),
    [(GDP, "hockey sticks on a grid", False), (ZCDP, "interior bound", True)],
)
def test_the_methods_after_tangents_bound_the_loss(
    options: dict[str, Any], route_name: str, has_doubt: bool
) -> None:
    problem = make_problem(ChannelProblem, SMALL, options)
    assert route_name not in list_refusals(problem)
    route = next(route for route in problem.routes if route.name == route_name)
    outcome = route.answer(problem, programs=None, start="cold")
    assert isinstance(outcome, Doubt) == has_doubt
    answer = outcome.answer if isinstance(outcome, Doubt) else outcome
    loss = wb.design(SMALL, **options).objective
    assert loss * (1 - 1e-3) <= float(answer.bound) <= loss * (1 + 1e-9)


def make_route(name: str, outcome: Any, reason: str | None = None) -> Route:
    """Return a route with a fixed outcome, and a fixed reason why it does not apply."""
    return Route(
        name, applies=lambda problem: reason, answer=lambda problem, programs, start: outcome
    )


def answer_by_fixed_routes(*routes: Route) -> Answer:
    """Return the answer of routes whose outcomes do not depend on the problem."""
    return answer_by_routes(problem=None, routes=routes, programs=None, start="cold")


def test_the_first_route_that_applies_answers() -> None:
    answer = answer_by_fixed_routes(
        make_route("first", Answer("a", bound=1), reason="it is for others"),
        make_route("second", Answer("b", bound=2)),
        make_route("third", Answer("c", bound=3)),
    )
    assert (answer.mechanism, answer.bound, answer.route) == ("b", 2, "second")


def test_a_mechanism_that_is_found_is_kept_with_the_larger_bound() -> None:
    answer = answer_by_fixed_routes(
        make_route("first", Doubt("its bound is not near", Answer("a", bound=1))),
        make_route("second", Answer("b", bound=2)),
        make_route("third", Doubt("only a bound", Answer("c", bound=1.5))),
    )
    assert (answer.mechanism, answer.bound, answer.route) == ("a", 2, "first")


def test_a_mechanism_with_a_doubt_is_the_answer_if_no_other_route_applies() -> None:
    doubt = Doubt("its bound is not near", Answer("a", bound=1))
    answer = answer_by_fixed_routes(make_route("first", doubt))
    assert (answer.mechanism, answer.bound) == ("a", 1)


def test_a_doubt_without_a_mechanism_leaves_the_answer_to_the_next_route() -> None:
    doubt = Doubt("stopped", error=NotProven("The first one stopped."))
    answer = answer_by_fixed_routes(
        make_route("first", doubt), make_route("second", Answer("b", bound=2))
    )
    assert (answer.mechanism, answer.route) == ("b", "second")


def test_the_error_of_a_doubt_is_raised_if_later_routes_only_have_a_bound() -> None:
    doubt = Doubt("stopped", error=NotProven("The first one stopped."))
    bound_only = Doubt("only a bound", Answer("b", bound=2))
    with pytest.raises(NotProven, match="The first one stopped"):
        answer_by_fixed_routes(make_route("first", doubt), make_route("second", bound_only))


def test_an_error_lists_the_reasons_if_no_route_answers() -> None:
    with pytest.raises(NotProven, match="first: it is for others; second: it proves nothing"):
        answer_by_fixed_routes(
            make_route("first", outcome=None, reason="it is for others"),
            make_route("second", Doubt("it proves nothing")),
        )


@pytest.mark.parametrize(
    ("question", "options", "message"),
    [
        (
            COUNT,
            {**ZCDP, "method": "block"},
            "block needs a notion of one bound on ratios, not zcdp",
        ),
        (
            COUNT,
            {"epsilon": 1, "method": "block", "solver": "scip"},
            "left out with --method block, which uses no solver",
        ),
        (RESIDUES, {**ZCDP, "method": "literal"}, "method must be left out when notion is zcdp"),
        (
            LISTED,
            {"epsilon": 1, "method": "optm", "loss": "squared"},
            "loss must be absolute with method optm",
        ),
    ],
)
def test_a_requested_method_that_does_not_apply_is_an_error_with_the_reason(
    question: Any, options: dict[str, Any], message: str
) -> None:
    with pytest.raises(InvalidRequest, match=message):
        wb.design(question, **options)


@pytest.mark.parametrize(
    ("question", "options", "route_name"),
    [
        (COUNT, {"epsilon": 1, "delta": "0.01", "runs": 2}, "program for one run, composed"),
        (wb.RealNoise(1, clamp=(0, 10)), {"epsilon": 1}, "staircase, then clamped"),
        (RangeQuery("0..10", prior="uniform"), {"epsilon": 1}, "bins"),
        (RangeQuery("0..10", sensitivity=5), {"epsilon": 1}, "grid of points, blocks"),
        (wb.FiniteQuery("0..4", max_shift=1), {**PDP, "delta": "1e-14"}, "program at delta = 0"),
        (wb.Labels.uniform(0, 7), {"epsilon": 1, "delta": "1e-5"}, "bins at delta = 0"),
    ],
)
def test_a_search_over_designs_names_the_route_of_the_selected_design(
    question: Any, options: dict[str, Any], route_name: str
) -> None:
    assert wb.design(question, **options).route == route_name
