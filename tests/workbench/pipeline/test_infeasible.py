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


def said(**request) -> str:
    with pytest.raises(wb.Infeasible) as caught:
        wb.design(QUESTION, **request)
    return str(caught.value)


def value(text: str, name: str) -> float:
    found = re.search(rf"The smallest feasible {name} is ([0-9.]+[0-9])\.", text)
    assert found is not None, text
    return float(found.group(1))


def _rows(*rows: tuple[list[float], float]) -> Data:
    """Rows a x <= b over x in [0, 1]²."""
    A = np.array([a for a, _ in rows])
    upper = np.array([b for _, b in rows])
    box = np.zeros(2), np.ones(2), np.zeros(2, dtype=bool)
    return Data(np.ones(2), 0.0, sp.csc_array(A), np.full(len(rows), -np.inf), upper, *box)


@pytest.mark.parametrize("solver", ["highs", "ortools:glop"])
def test_the_filter_finds_an_irreducible_set(solver: str) -> None:
    data = _rows(([-1.0, 0.0], -0.8), ([0.0, -1.0], -0.8), ([1.0, 1.0], 1.0), ([1.0, -1.0], 0.9))
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


def test_no_conflict_is_reported_without_one_or_without_time() -> None:
    data = _rows(([-1.0, 0.0], -0.8), ([1.0, 1.0], 1.0))
    groups = {"x large": np.array([0]), "sum small": np.array([1])}
    assert find_conflict(data, groups) is None
    assert (
        find_conflict(
            _rows(([-1.0, 0.0], -2.0)), {"x": np.array([0])}, "highs", Options(), seconds=0.0
        )
        is None
    )


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


def test_a_constraint_of_the_user_against_privacy() -> None:
    text = said(notion="pdp", epsilon="1.5", constraints=lambda f: [f[0] >= 0.9, f[1] >= 0])
    assert "jointly infeasible" in text
    assert "pdp at epsilon = 1.5" in text.lower()
    assert "0.9 <= f[0]" in text
    assert "0.0 <= f[1]" not in text
    # f(0) = 0.9 leaves six neighbours e^-ε times as much and two elements e^-2ε times: 2x² + 6x = 1/9
    x = (-6 + math.sqrt(36 + 8 / 9)) / 4
    assert value(text, "epsilon") == pytest.approx(-math.log(x), rel=1e-5)
    assert value(text, "delta") == pytest.approx(0.9, abs=1e-6)
    epsilon = value(text, "epsilon")
    assert (
        wb.design(QUESTION, epsilon=epsilon, constraints=lambda f: [f[0] >= 0.9]).certificate
        is not None
    )


def test_constraints_against_each_other() -> None:
    text = said(
        epsilon=1, notion="dp", constraints=lambda f: [f[0] >= 0.9, f[1] >= 0.5, f[2] <= 0.5]
    )
    assert "0.9 <= f[0]; 0.5 <= f[1]." in text
    assert "No epsilon up to 20 is feasible." in text
    assert "No delta is feasible." in text


def test_named_constraints_and_a_budget() -> None:
    text = said(
        epsilon=1, minimise="delta", max_loss="0.1", notion="dp", equal="1=0", zero_mean=True
    )
    assert "equal masses 1=0; error-rate <= 0.1." in text
    # f(0) = f(1) = 4 f(-4) has mean zero and is right with probability 4/9
    assert value(text, "max_loss") == pytest.approx(5 / 9, abs=1e-6)


@pytest.mark.parametrize("notion", ["pdp", "dp"])
def test_a_limit_of_delta(notion: str) -> None:
    text = said(epsilon="1.5", minimise="delta", max_loss="0.4425", delta="0.1", notion=notion)
    assert "with delta <= 0.1" in text
    assert "error-rate <= 0.4425" in text
    enough = wb.design(QUESTION, epsilon="1.5", delta="0.1", notion=notion)
    assert value(text, "max_loss") == pytest.approx(enough.objective, abs=1e-6)
    epsilon = value(text, "epsilon")
    assert (
        wb.design(QUESTION, epsilon=epsilon, delta="0.1", notion=notion).objective <= 0.4425 + 1e-6
    )
    lower = wb.design(QUESTION, epsilon=epsilon * 0.999, delta="0.1", notion=notion)
    assert lower.objective > 0.4425


def test_a_budget_for_every_difference() -> None:
    text = said(epsilon={1: 1, 2: "1.5", 3: 2}, constraints=lambda f: [f[0] >= 0.9])
    assert "dp at epsilon = 2 for answers that differ by ±3" in text
    factor = value(text, "factor for every epsilon")
    larger = {k: e * factor for k, e in {1: 1.0, 2: 1.5, 3: 2.0}.items()}
    assert (
        wb.design(
            QUESTION, epsilon=larger, constraints=lambda f: [f[0] >= 0.9], certify=False
        ).objective
        < 0.1001
    )


@pytest.mark.parametrize(("reach", "ratio"), [(1, 6), (2, 11)])
def test_channels(reach: int, ratio: int) -> None:
    labels = wb.Labels.uniform(0, 5)
    outputs = [-reach, *range(6), 5 + reach]
    with pytest.raises(wb.Infeasible) as caught:
        wb.design(
            labels, epsilon=1, method="lp", constraints=["unbiased", "symmetric"], outputs=outputs
        )
    text = str(caught.value)
    assert "unbiased; pure at epsilon = 1." in text
    if reach == 1:  # two outputs ±B for labels ±c need e^ε >= (B + c)/(B - c) = (3.5 + 2.5)/1
        assert value(text, "epsilon") == pytest.approx(math.log(6), rel=1e-5)
    else:
        assert value(text, "epsilon") <= math.log(ratio)
    with pytest.raises(wb.Infeasible, match="No epsilon up to 30 is feasible"):
        wb.design(labels, epsilon=1, method="lp", constraints=["unbiased"])


def test_channels_with_delta() -> None:
    labels, outputs = wb.Labels.uniform(0, 3), [-1, 0, 1, 2, 3, 4]
    request = {
        "epsilon": "0.5",
        "method": "lp",
        "constraints": ["unbiased"],
        "outputs": outputs,
        "notion": "dp",
    }
    with pytest.raises(wb.Infeasible) as caught:
        wb.design(labels, delta="0.01", **request)
    text = str(caught.value)
    assert "unbiased; dp at epsilon = 0.5 and delta = 0.01." in text
    assert wb.design(labels, delta=value(text, "delta"), certify=False, **request).objective > 0
    assert wb.design(
        labels, **{**request, "delta": "0.01", "epsilon": value(text, "epsilon"), "certify": False}
    )


@pytest.mark.parametrize(
    ("question", "limit"),
    [(wb.FiniteQuery("0..3", max_shift=1), 0.05), (wb.IntegerNoise(1), 0.4)],
    ids=str,
)
def test_an_error_about_delta_states_feasible_budgets(question: Any, limit: float):
    """The least ε and the least loss with δ as it was given; each does, and 2e-5 less of it does not."""
    with pytest.raises(wb.Infeasible) as refused:
        wb.design(
            question, epsilon=1, minimise="delta", max_loss=limit, delta="1e-3", loss="squared"
        )
    said = dict(
        re.findall(r"The smallest feasible (epsilon|loss) is ([0-9.]*[0-9])", str(refused.value))
    )
    enough = wb.design(question, epsilon=said["epsilon"], delta="1e-3", loss="squared")
    assert enough.objective <= limit
    assert (
        wb.design(
            question, epsilon=float(said["epsilon"]) * (1 - 2e-5), delta="1e-3", loss="squared"
        ).bound
        > limit
    )
    assert wb.design(question, epsilon=1, delta="1e-3", loss="squared").objective <= float(
        said["loss"]
    )


def test_noise_whose_bound_stays_zero_is_an_interval():
    design = wb.design(wb.RealNoise(1), epsilon=20, delta=".01", loss="squared")
    assert design.bound == 0 < design.objective < 1e-4
    assert any("optimum lies between 0" in sentence for sentence in design.words)


@pytest.mark.parametrize(
    "question",
    [wb.IntegerNoise(1), wb.FiniteQuery("0..3", max_shift=1), wb.ModuloNoise(n=4, max_shift=1)],
    ids=["noise", "channel", "modulo"],
)
def test_an_error_about_epsilon_states_feasible_budgets(question: Any) -> None:
    """Each told budget meets the loss, a little less of it does not."""
    most = {"loss": "squared", "max_loss": "0.1"}
    with pytest.raises(wb.Infeasible, match="at this limit the minimal loss is") as caught:
        wb.design(question, **most, minimise="epsilon", epsilon="0.5", delta="0.01")
    epsilon, delta = value(str(caught.value), "epsilon"), value(str(caught.value), "delta")
    for told, given in ((epsilon, {"delta": "0.01"}), (delta, {"epsilon": "0.5"})):
        name = "epsilon" if told == epsilon else "delta"
        losses = [
            wb.design(question, loss="squared", **given, **{name: told * (1 + step)}).objective
            for step in (1e-5, -1e-4)
        ]
        assert losses[0] <= 0.1 < losses[1]


def test_values_beyond_the_search_are_not_stated() -> None:
    with pytest.raises(wb.Infeasible, match=r"at this limit the minimal loss is [0-9.]+\.$"):
        wb.design(wb.FiniteQuery("0..2", neighbours="all"), minimise="epsilon", epsilon="0.1", max_loss="1e-9",
                  loss="squared", notion="pure")  # fmt: skip
