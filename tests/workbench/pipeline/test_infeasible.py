"""Test that errors of infeasible requests state the conflict and the smallest feasible budgets."""

from __future__ import annotations

import math
import re
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

import workbench as wb
from workbench.pipeline.infeasible import LeastFeasible, find_least_feasible
from workbench.solvers.backend import Options
from workbench.solvers.conflict import find_conflict
from workbench.solvers.data import Data

QUESTION = wb.ModuloNoise(n=8, max_shift=3)


def design_and_read_error(**request) -> str:
    """Return the error of an infeasible design for `QUESTION`."""
    with pytest.raises(wb.Infeasible) as caught:
        wb.design(QUESTION, **request)
    return str(caught.value)


def read_smallest_feasible(text: str, name: str) -> float:
    """Return the number that an error states as the smallest feasible value of a budget."""
    match = re.search(rf"The smallest feasible {name} is ([0-9.]+[0-9])\.", text)
    assert match is not None, text
    return float(match.group(1))


def make_program(*rows: tuple[list[float], float]) -> Data:
    """Make a program of the rows a x <= b for x in [0, 1]². Each argument is (a, b)."""
    A = np.array([a for a, _ in rows])
    upper = np.array([b for _, b in rows])
    box = np.zeros(2), np.ones(2), np.zeros(2, dtype=bool)
    return Data(np.ones(2), 0.0, sp.csc_array(A), np.full(len(rows), -np.inf), upper, *box)


@pytest.mark.parametrize("solver", ["highs", "ortools:glop"])
def test_a_conflict_is_an_irreducible_set_of_groups_of_rows(solver: str) -> None:
    data = make_program(
        ([-1.0, 0.0], -0.8), ([0.0, -1.0], -0.8), ([1.0, 1.0], 1.0), ([1.0, -1.0], 0.9)
    )
    groups = {
        name: np.array([k])
        for k, name in enumerate(("x large", "y large", "sum small", "difference small"))
    }
    assert find_conflict(data, groups, solver) == ["x large", "y large", "sum small"]
    assert find_conflict(data, {"both": np.array([0, 1]), "sum small": np.array([2])}, solver) == [
        "both",
        "sum small",
    ]
    assert find_conflict(
        data, {name: groups[name] for name in ("x large", "difference small")}, solver
    ) == ["x large"]


def test_no_conflict_is_reported_if_rows_are_feasible_together() -> None:
    data = make_program(([-1.0, 0.0], -0.8), ([1.0, 1.0], 1.0))
    groups = {"x large": np.array([0]), "sum small": np.array([1])}
    assert find_conflict(data, groups) is None


def test_no_conflict_is_reported_without_time() -> None:
    data = make_program(([-1.0, 0.0], -2.0))
    assert find_conflict(data, {"x": np.array([0])}, "highs", Options(), seconds=0.0) is None


def test_the_smallest_feasible_value_is_found_excluded_or_undecided() -> None:
    from_one = find_least_feasible(is_feasible=lambda x: x >= math.pi, start=1.0, limit=20.0)
    assert from_one.value is not None
    assert math.pi <= from_one.value <= math.pi * (1 + 1e-5)
    assert find_least_feasible(is_feasible=lambda x: False, start=1.0, limit=20.0) == LeastFeasible(
        is_excluded=True
    )
    from_zero = find_least_feasible(is_feasible=lambda x: x >= 0.3, start=0.0, limit=1.0)
    assert from_zero.value == pytest.approx(0.3, rel=1e-5)
    assert find_least_feasible(is_feasible=lambda x: None, start=1.0, limit=20.0) == LeastFeasible()


def test_an_error_names_the_constraint_and_the_budget_that_exclude_each_other() -> None:
    text = design_and_read_error(
        notion="pdp", epsilon="1.5", constraints=lambda f: [f[0] >= 0.9, f[1] >= 0]
    )
    assert "these constraints are jointly infeasible" in text.lower()
    assert "makes the request feasible: pdp at epsilon = 1.5" in text.lower()
    assert "0.9 <= f[0]" in text
    assert "0.0 <= f[1]" not in text
    # Beside f(0) = 0.9, six neighbours have e^-ε of it and two elements e^-2ε: 6x + 2x² = 1/9.
    x = (-6 + math.sqrt(36 + 8 / 9)) / 4
    assert read_smallest_feasible(text, "epsilon") == pytest.approx(-math.log(x), rel=1e-5)
    assert read_smallest_feasible(text, "delta") == pytest.approx(0.9, abs=1e-6)
    epsilon = read_smallest_feasible(text, "epsilon")
    design = wb.design(QUESTION, epsilon=epsilon, constraints=lambda f: [f[0] >= 0.9])
    assert design.certificate is not None


def test_an_error_says_that_no_budget_helps_if_constraints_exclude_each_other() -> None:
    text = design_and_read_error(
        epsilon=1, notion="dp", constraints=lambda f: [f[0] >= 0.9, f[1] >= 0.5, f[2] <= 0.5]
    )
    assert "0.9 <= f[0]; 0.5 <= f[1]." in text
    assert "No epsilon up to 20 is feasible." in text
    assert "No delta is feasible." in text


def test_an_error_names_a_named_constraint_and_states_the_smallest_loss() -> None:
    text = design_and_read_error(
        epsilon=1, minimise="delta", max_loss="0.1", notion="dp", equal="1=0", zero_mean=True
    )
    assert "equal masses 1=0; error-rate <= 0.1." in text
    # f(0) = f(1) = 4 f(-4) has mean zero, and the answer is true with probability 4/9.
    assert read_smallest_feasible(text, "max_loss") == pytest.approx(5 / 9, abs=1e-6)


@pytest.mark.parametrize("notion", ["pdp", "dp"])
def test_an_error_about_a_loss_limit_states_the_smallest_loss_and_epsilon(notion: str) -> None:
    text = design_and_read_error(
        epsilon="1.5", minimise="delta", max_loss="0.4425", delta="0.1", notion=notion
    )
    assert "with delta <= 0.1" in text
    assert "error-rate <= 0.4425" in text
    enough = wb.design(QUESTION, epsilon="1.5", delta="0.1", notion=notion)
    assert read_smallest_feasible(text, "max_loss") == pytest.approx(enough.objective, abs=1e-6)
    epsilon = read_smallest_feasible(text, "epsilon")
    assert (
        wb.design(QUESTION, epsilon=epsilon, delta="0.1", notion=notion).objective <= 0.4425 + 1e-6
    )
    lower = wb.design(QUESTION, epsilon=epsilon * 0.999, delta="0.1", notion=notion)
    assert lower.objective > 0.4425


def test_an_error_about_several_budgets_states_one_factor_for_all() -> None:
    text = design_and_read_error(
        epsilon={1: 1, 2: "1.5", 3: 2}, constraints=lambda f: [f[0] >= 0.9]
    )
    assert "dp at epsilon = 2 for answers that differ by ±3" in text
    factor = read_smallest_feasible(text, "factor for every epsilon")
    larger = {1: 1.0 * factor, 2: 1.5 * factor, 3: 2.0 * factor}
    design = wb.design(QUESTION, epsilon=larger, constraints=lambda f: [f[0] >= 0.9], certify=False)
    assert design.objective < 0.1001


@pytest.mark.parametrize(("reach", "ratio"), [(1, 6), (2, 11)])
def test_an_error_about_an_unbiased_channel_states_a_feasible_epsilon(
    reach: int, ratio: int
) -> None:
    labels = wb.Labels.uniform(0, 5)
    outputs = [-reach, *range(6), 5 + reach]
    with pytest.raises(wb.Infeasible) as caught:
        wb.design(
            labels, epsilon=1, method="lp", constraints=["unbiased", "symmetric"], outputs=outputs
        )
    text = str(caught.value)
    assert "unbiased; pure at epsilon = 1." in text
    if reach == 1:
        # Two outputs ±B for labels ±c need e^ε >= (B + c)/(B - c) = (3.5 + 2.5)/1.
        assert read_smallest_feasible(text, "epsilon") == pytest.approx(math.log(6), rel=1e-5)
    else:
        assert read_smallest_feasible(text, "epsilon") <= math.log(ratio)


def test_an_error_says_that_no_epsilon_is_feasible_if_the_outputs_do_not_reach_beyond_labels():
    labels = wb.Labels.uniform(0, 5)
    with pytest.raises(wb.Infeasible, match="No epsilon up to 30 is feasible"):
        wb.design(labels, epsilon=1, method="lp", constraints=["unbiased"])


def test_an_error_about_a_channel_states_feasible_epsilon_and_delta() -> None:
    labels = wb.Labels.uniform(0, 3)
    request = {
        "epsilon": "0.5",
        "method": "lp",
        "constraints": ["unbiased"],
        "outputs": [-1, 0, 1, 2, 3, 4],
        "notion": "dp",
    }
    with pytest.raises(wb.Infeasible) as caught:
        wb.design(labels, delta="0.01", **request)
    text = str(caught.value)
    assert "unbiased; dp at epsilon = 0.5 and delta = 0.01." in text
    assert (
        wb.design(
            labels, delta=read_smallest_feasible(text, "delta"), certify=False, **request
        ).objective
        > 0
    )
    assert wb.design(
        labels,
        **{
            **request,
            "delta": "0.01",
            "epsilon": read_smallest_feasible(text, "epsilon"),
            "certify": False,
        },
    )


@pytest.mark.parametrize(
    ("question", "limit"),
    [(wb.FiniteQuery("0..3", max_shift=1), 0.05), (wb.IntegerNoise(1), 0.4)],
    ids=str,
)
def test_an_error_about_delta_states_feasible_budgets(question: Any, limit: float):
    """The stated ε and loss are feasible with the given δ, and 2e-5 less ε is not."""
    with pytest.raises(wb.Infeasible) as refused:
        wb.design(
            question, epsilon=1, minimise="delta", max_loss=limit, delta="1e-3", loss="squared"
        )
    pattern = r"The smallest feasible (epsilon|loss) is ([0-9.]*[0-9])"
    stated = dict(re.findall(pattern, str(refused.value)))
    at_stated = wb.design(question, epsilon=stated["epsilon"], delta="1e-3", loss="squared")
    assert at_stated.objective <= limit
    smaller = float(stated["epsilon"]) * (1 - 2e-5)
    assert wb.design(question, epsilon=smaller, delta="1e-3", loss="squared").bound > limit
    at_given = wb.design(question, epsilon=1, delta="1e-3", loss="squared")
    assert at_given.objective <= float(stated["loss"])


def test_the_optimum_of_noise_without_a_positive_bound_is_an_interval():
    design = wb.design(wb.RealNoise(1), epsilon=20, delta=".01", loss="squared")
    assert design.bound == 0 < design.objective < 1e-4
    assert any("optimum lies between 0" in sentence for sentence in design.words)


@pytest.mark.parametrize(
    "question",
    [wb.IntegerNoise(1), wb.FiniteQuery("0..3", max_shift=1), wb.ModuloNoise(n=4, max_shift=1)],
    ids=["noise", "channel", "modulo"],
)
def test_an_error_about_epsilon_states_feasible_budgets(question: Any) -> None:
    """At each stated budget the loss is within its limit. At a slightly smaller one it is not."""
    with pytest.raises(wb.Infeasible, match="at this limit the minimal loss is") as caught:
        wb.design(
            question,
            loss="squared",
            max_loss="0.1",
            minimise="epsilon",
            epsilon="0.5",
            delta="0.01",
        )
    epsilon = read_smallest_feasible(str(caught.value), "epsilon")
    delta = read_smallest_feasible(str(caught.value), "delta")
    for name, stated, other_budget in (
        ("epsilon", epsilon, {"delta": "0.01"}),
        ("delta", delta, {"epsilon": "0.5"}),
    ):
        losses = []
        for factor in (1 + 1e-5, 1 - 1e-4):
            budget = {name: stated * factor, **other_budget}
            losses.append(wb.design(question, loss="squared", **budget).objective)
        assert losses[0] <= 0.1 < losses[1]


def test_an_error_states_no_epsilon_beyond_the_search() -> None:
    with pytest.raises(wb.Infeasible, match=r"at this limit the minimal loss is [0-9.]+\.$"):
        wb.design(
            wb.FiniteQuery("0..2", neighbours="all"),
            minimise="epsilon",
            epsilon="0.1",
            max_loss="1e-9",
            loss="squared",
            notion="pure",
        )
