"""Costs of one's own: a function, an array or a file says what a name says, and what is none is refused."""

from __future__ import annotations

import pickle
from pathlib import Path

import numpy as np
import pytest

import workbench as wb
from models.noise import OwnCosts, cost_vector
from tests.tools.test_check_certificate import verdicts
from workbench.sweeps.specification import read_spec

NOISE = wb.ModuloNoise(n=8, max_shift=2)


@pytest.mark.parametrize(("notion", "delta"), [("dp", "0.05"), ("pdp", "0.05"), ("pure", 0)])
def test_noise_under_a_function_an_array_and_a_file(notion, delta, tmp_path: Path):
    file = tmp_path / "cost.csv"
    file.write_text("\n".join(str(eta * (9 - eta)) for eta in range(9)))
    request = {"epsilon": 1, "delta": delta, "notion": notion}
    named = wb.design(NOISE, cost="squared", **request)
    for cost in (lambda eta: eta * (9 - eta), cost_vector("squared", (9,)), file, str(file)):
        made = wb.design(NOISE, cost=cost, **request)
        assert made.objective == named.objective
        assert made.request.cost.startswith("own-")
    made.save(tmp_path / "own.json")
    assert verdicts(tmp_path / "own.json") == ("proven", "proven")
    assert f"named '{made.request.cost}'" in str(wb.verify_certificate(tmp_path / "own.json"))


def test_vectors_and_other_costs_have_other_names():
    vector = wb.ModuloNoise(sizes=(3, 3), shifts=[(0, 1), (1, 0)])
    made = wb.design(vector, epsilon=1, cost=lambda eta: min(eta[0], 3 - eta[0]) + min(eta[1], 3 - eta[1]))
    assert made.request.costs.tolist() == [0, 1, 1, 1, 2, 2, 1, 2, 2]
    one, other = (wb.design(NOISE, epsilon=1, cost=[0] + [c] * 8).request.cost for c in (1, 2))
    assert one != other
    copied = pickle.loads(pickle.dumps(one))
    assert isinstance(copied, OwnCosts)
    assert copied.values.tolist() == one.values.tolist()


@pytest.mark.parametrize(
    ("cost", "sentence"),
    [
        ([1, 2], "cost must be 9 numbers, one for every noise value. Got 2."),
        ([np.inf] * 9, "every cost must be a finite number >= 0"),
        ([-1] * 9, "every cost must be a finite number >= 0"),
        ([[1] * 9], "every cost must be a finite number >= 0"),
        (lambda eta: -1, r"cost\(0\) must be a finite number >= 0. Got -1."),
        (lambda eta: "x", r"cost\(0\) must be a finite number >= 0. Got x."),
        (lambda eta: 1 / eta, "cost must be a function of the noise value. Got ZeroDivisionError"),
        (7, "cost must be a name, a function of the noise value, or costs"),
        ("near", "cost must be one of error-rate, .* or a CSV file of costs. Got 'near'."),
    ],
)
def test_what_is_no_cost_is_one_sentence(cost, sentence: str):
    with pytest.raises(wb.InvalidRequest, match=sentence):
        wb.design(NOISE, epsilon=1, cost=cost)


def test_a_function_cannot_be_filed_by_a_sweep():
    with pytest.raises(wb.InvalidRequest, match="a value that is filed must be a name, numbers"):
        read_spec({"grid": {"model": "noise", "n": 3, "max_shift": 1, "epsilon": 1, "cost": len}})


def test_labels_under_a_function_a_matrix_and_a_file(tmp_path: Path):
    labels, table = wb.Labels([0, 1, 3], [1, 2, 1]), [[abs(o - y) for o in (0, 1, 3)] for y in (0, 1, 3)]
    file = tmp_path / "loss.csv"
    file.write_text("\n".join(",".join(map(str, row)) for row in table))
    named = wb.design(labels, epsilon=1, loss="absolute", method="lp")
    for loss in (lambda o, y: abs(o - y), table, file):
        made = wb.design(labels, epsilon=1, loss=loss, method="lp")
        assert made.objective == pytest.approx(named.objective, rel=1e-12)
        assert made.to_dict()["loss"] == "own"
        assert made.certificate is not None
    wide = wb.design(labels, epsilon=1, loss=[[0, 1], [1, 0], [1, 0]], outputs=[0, 5], method="lp")
    assert wide.private
    for loss, sentence in (
        (table[:2], "loss must be a matrix of 3 rows and 3 columns"),
        (lambda o, y: -1, r"loss\(0, 0\) must be a finite number >= 0"),
        (lambda o, y: 1 / 0, "loss must be a function of an output and a label"),
    ):
        with pytest.raises(wb.InvalidRequest, match=sentence):
            wb.design(labels, epsilon=1, loss=loss, method="lp")
    with pytest.raises(wb.InvalidRequest, match="loss must be a name where method is bins"):
        wb.design(labels, epsilon=1, loss=table)


@pytest.mark.parametrize(
    ("notion", "budget"),
    [("curve", {"curve": "0.5:0.1,1:0.01"}), ("renyi", {"alpha": 3, "epsilon": "0.5"}), ("zcdp", {"rho": "0.1"}),
     ("gdp", {"mu": 1})],
)  # fmt: skip
def test_every_notion_takes_own_costs(notion, budget):
    question, costs = wb.ModuloNoise(n=6, max_shift=1), [min(eta, 7 - eta) ** 2 for eta in range(7)]
    named = wb.design(question, notion=notion, cost="circular-squared", **budget)
    for own in (costs, lambda eta: costs[eta]):
        made = wb.design(question, notion=notion, cost=own, **budget)
        assert made.objective == pytest.approx(named.objective, rel=1e-9)
        assert made.certificate.objective.costs == tuple(costs)
    with pytest.raises(wb.InvalidRequest, match="7 numbers"):
        wb.design(question, notion=notion, cost=costs[:3], **budget)
