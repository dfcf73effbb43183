"""Test that errors of infeasible requests state the conflict and the smallest feasible budgets.

A conflict is an irreducible set of constraints that no mechanism satisfies together. The error
lists it, and the smallest ε, δ or loss at which the request becomes feasible if all else stays the
same.
"""

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
    return Data(
        c=np.ones(2),
        offset=0.0,
        A=sp.csc_array(A),
        row_lower=np.full(len(rows), -np.inf),
        row_upper=upper,
        lower=np.zeros(2),
        upper=np.ones(2),
        integrality=np.zeros(2, dtype=bool),
    )


@pytest.mark.parametrize("solver", ["highs", "ortools:glop"])
@pytest.mark.parametrize(
    ("groups", "conflict"),
    [
        (
            {"x large": [0], "y large": [1], "sum small": [2], "difference small": [3]},
            ["x large", "y large", "sum small"],
        ),
        ({"both large": [0, 1], "sum small": [2]}, ["both large", "sum small"]),
    ],
)
def test_a_conflict_is_an_irreducible_set_of_groups_of_rows(
    groups: dict[str, list[int]], conflict: list[str], solver: str
) -> None:
    """The rows are x >= 0.8, y >= 0.8, x + y <= 1 and x - y <= 0.9."""
    data = make_program(
        ([-1.0, 0.0], -0.8), ([0.0, -1.0], -0.8), ([1.0, 1.0], 1.0), ([1.0, -1.0], 0.9)
    )
    row_groups = {name: np.array(rows) for name, rows in groups.items()}
    assert find_conflict(data, row_groups, solver) == conflict


@pytest.mark.parametrize("solver", ["highs", "ortools:glop"])
def test_rows_without_a_group_are_always_part_of_the_program(solver: str) -> None:
    """The rows y >= 0.8 and x + y <= 1 have no group, and exclude x >= 0.8."""
    data = make_program(
        ([-1.0, 0.0], -0.8), ([0.0, -1.0], -0.8), ([1.0, 1.0], 1.0), ([1.0, -1.0], 0.9)
    )
    groups = {"x large": np.array([0]), "difference small": np.array([3])}
    assert find_conflict(data, groups, solver) == ["x large"]


def test_no_conflict_is_reported_if_rows_are_feasible_together() -> None:
    data = make_program(([-1.0, 0.0], -0.8), ([1.0, 1.0], 1.0))
    groups = {"x large": np.array([0]), "sum small": np.array([1])}
    assert find_conflict(data, groups) is None


def test_no_conflict_is_reported_without_time() -> None:
    data = make_program(([-1.0, 0.0], -2.0))
    assert find_conflict(data, {"x": np.array([0])}, "highs", Options(), seconds=0.0) is None


@pytest.mark.parametrize(("smallest", "start", "limit"), [(math.pi, 1.0, 20.0), (0.3, 0.0, 1.0)])
def test_the_smallest_feasible_value_is_found_to_five_digits(
    smallest: float, start: float, limit: float
) -> None:
    search = find_least_feasible(is_feasible=lambda x: x >= smallest, start=start, limit=limit)
    assert search.value is not None
    assert smallest <= search.value <= smallest * (1 + 1e-5)


def test_the_search_for_the_smallest_feasible_value_may_exclude_all_values() -> None:
    search = find_least_feasible(is_feasible=lambda x: False, start=1.0, limit=20.0)
    assert search == LeastFeasible(is_excluded=True)


def test_the_search_for_the_smallest_feasible_value_may_be_undecided() -> None:
    """None means that the feasibility of a value could not be decided."""
    search = find_least_feasible(is_feasible=lambda x: None, start=1.0, limit=20.0)
    assert search == LeastFeasible()


CONSTRAINED_REQUEST = {"notion": "pdp", "epsilon": "1.5"}


def constrain_masses(f: Any) -> list[Any]:
    """Return two constraints on the masses f: the first excludes ε = 1.5, the second nothing."""
    return [f[0] >= 0.9, f[1] >= 0]


def test_an_error_names_the_constraint_and_the_budget_that_exclude_each_other() -> None:
    text = design_and_read_error(**CONSTRAINED_REQUEST, constraints=constrain_masses)
    assert "these constraints are jointly infeasible" in text.lower()
    assert "makes the request feasible: pdp at epsilon = 1.5" in text.lower()
    assert "0.9 <= f[0]" in text
    assert "0.0 <= f[1]" not in text


def test_an_error_about_a_constraint_states_the_smallest_feasible_budgets() -> None:
    text = design_and_read_error(**CONSTRAINED_REQUEST, constraints=constrain_masses)
    # Beside f(0) = 0.9, six neighbours have e^-ε of it and two elements e^-2ε: 6x + 2x² = 1/9.
    x = (-6 + math.sqrt(36 + 8 / 9)) / 4
    epsilon = read_smallest_feasible(text, "epsilon")
    assert epsilon == pytest.approx(-math.log(x), rel=1e-5)
    assert read_smallest_feasible(text, "delta") == pytest.approx(0.9, abs=1e-6)
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
    optimum = wb.design(QUESTION, epsilon="1.5", delta="0.1", notion=notion).objective
    assert read_smallest_feasible(text, "max_loss") == pytest.approx(optimum, abs=1e-6)
    epsilon = read_smallest_feasible(text, "epsilon")
    at_stated = wb.design(QUESTION, epsilon=epsilon, delta="0.1", notion=notion)
    assert at_stated.objective <= 0.4425 + 1e-6
    at_smaller = wb.design(QUESTION, epsilon=epsilon * 0.999, delta="0.1", notion=notion)
    assert at_smaller.objective > 0.4425


def test_an_error_about_several_budgets_states_one_factor_for_all() -> None:
    text = design_and_read_error(
        epsilon={1: 1, 2: "1.5", 3: 2}, constraints=lambda f: [f[0] >= 0.9]
    )
    assert "dp at epsilon = 2 for answers that differ by ±3" in text
    factor = read_smallest_feasible(text, "factor for every epsilon")
    budgets = {1: 1.0 * factor, 2: 1.5 * factor, 3: 2.0 * factor}
    design = wb.design(
        QUESTION, epsilon=budgets, constraints=lambda f: [f[0] >= 0.9], certify=False
    )
    assert design.objective < 0.1001  # The error rate 1 - f(0) is at most 0.1.


def read_smallest_unbiased_epsilon(reach: int) -> float:
    """Return the smallest ε that the error states for an unbiased channel of the labels 0..5.

    Its outputs are the labels, and one output beyond each end at the distance `reach`.
    """
    with pytest.raises(wb.Infeasible) as caught:
        wb.design(
            wb.Labels.uniform(0, 5),
            epsilon=1,
            method="lp",
            constraints=["unbiased", "symmetric"],
            outputs=[-reach, *range(6), 5 + reach],
        )
    text = str(caught.value)
    assert "unbiased; pure at epsilon = 1." in text
    return read_smallest_feasible(text, "epsilon")


@pytest.mark.parametrize(("reach", "ratio"), [(1, 6), (2, 3.5)])
def test_an_error_about_an_unbiased_channel_states_the_smallest_epsilon(
    reach: int, ratio: float
) -> None:
    """The labels ±c and outputs up to ±B need e^ε >= (B + c)/(B - c). c = 2.5, B = c + reach."""
    epsilon = read_smallest_unbiased_epsilon(reach)
    assert epsilon == pytest.approx(math.log(ratio), rel=1e-5)


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
    # These designs raise no error.
    larger_delta = {"delta": read_smallest_feasible(text, "delta")}
    wb.design(labels, certify=False, **request, **larger_delta)
    larger_epsilon = {"delta": "0.01", "epsilon": read_smallest_feasible(text, "epsilon")}
    wb.design(labels, certify=False, **{**request, **larger_epsilon})


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
