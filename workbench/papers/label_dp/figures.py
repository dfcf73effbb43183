"""What printed numbers stand beside: Fig. 2, Tables 1 and 2, and the example of Fig. 5."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np
import pandas as pd

from workbench.families.labels.problem import best_bins
from workbench.mechanisms.label_randomizers.label_noise import LabelNoise
from workbench.mechanisms.label_randomizers.label_randomizer import split_budget
from workbench.mechanisms.label_randomizers.randomized_response import RandomizedResponse, with_prior
from workbench.papers.artifact import Artifact, Comparison, artifact, printed
from workbench.papers.label_dp.curves import SQUARED, bins_at
from workbench.papers.label_dp.data import DataSet, census, criteo
from workbench.papers.label_dp.learning import ERRORS

_STANDIN_MISSES = (0, 1)  # bins of Fig. 2 that the stand-in, fitted to Table 1 alone, is known to have elsewhere
_NO_NOISE = "at ε = ∞, where nothing is randomized,"
_CELL = 20  # euro, of the density plots


def _apart(data: DataSet) -> str:
    return "" if data.real else "beside those of a stand-in fitted to them"


def fig2(full: bool) -> Artifact:
    """Where labels go: RR-on-Bins beside Laplace, ε = 3."""
    claims, data, table = printed("label_dp")["fig2"], criteo(), printed("label_dp")["table1"]
    labels, epsilon = data.labels, float(claims["epsilon"])
    response = best_bins(labels, split_budget(epsilon, labels.k, data.records)[1])
    noise = LabelNoise("laplace", labels.values[0], labels.values[-1], epsilon)
    edges = np.append(np.arange(0, labels.values[-1], _CELL), labels.values[-1] + 1)
    group = np.searchsorted(edges, labels.values, side="right") - 1
    label_from, output_from = (edges[place].ravel() for place in np.indices((edges.size - 1, edges.size - 1)))
    parts = []
    for mechanism, cells in (
        ("RR-on-Bins", _cells(response.matrix, response.outputs, edges)),
        ("Laplace", np.array([_spread(noise, y, edges) for y in labels.values])),
    ):
        joint = np.zeros((edges.size - 1, edges.size - 1))
        np.add.at(joint, group, labels.prior[:, None] * cells)
        parts.append(
            pd.DataFrame(
                {
                    "mechanism": mechanism,
                    "label_from": label_from,
                    "output_from": output_from,
                    "probability": joint.ravel(),
                }
            )
        )
    frame, at = pd.concat(parts, ignore_index=True), table["epsilon"].index(epsilon)
    mse = {"bins": response.loss(SQUARED), "laplace": noise.loss(labels)}
    beside = partial(Comparison, apart=_apart(data))
    values, place, close = claims["bins"], claims["place"], "stand-in, within 3 printed standard deviations"
    comparisons = [
        beside(
            f'bin {j + 1} of {len(values)} ("around" in print)',
            place,
            value,
            float(response.outputs[j]),
            5.0,
            expected=data.real or j not in _STANDIN_MISSES,
            remark=f'{data.words}: a bin printed as "around {value:g}" is compared within 5',
            explained=False,
        )
        for j, value in enumerate(values)
        if response.outputs.size == len(values)
    ]
    comparisons.append(beside("number of bins", place, len(values), response.outputs.size, 0.5, remark="stand-in"))
    comparisons += [
        beside(f"MSE, {_WORDS[key]}", table["place"], table[key][at], ours, 3 * table[f"{key}_std"][at], remark=close)
        for key, ours in mse.items()
    ]
    bins = pd.DataFrame({"output": response.outputs, "mechanism": "RR-on-Bins"})
    return artifact(
        "label_dp",
        "fig2",
        frame,
        comparisons,
        further={"bins": bins},
        CELL=_CELL,
        words=data.words,
        most=frame["probability"].max(),
        bins=mse["bins"],
        laplace=mse["laplace"],
    )


def _cells(matrix: Any, outputs: Any, edges: Any) -> Any:
    """Pr[output in cell | y] of a finite channel. Shape (k, cells)."""
    table = np.zeros((matrix.shape[0], edges.size - 1))
    np.add.at(table.T, np.searchsorted(edges, outputs, side="right") - 1, matrix.T)
    return table


def _spread(noise: LabelNoise, label: float, edges: Any) -> Any:
    """The same of continuous noise."""
    below = noise.cdf(label, edges)
    below[0] = 0.0
    return np.diff(below)


_WORDS = {"laplace": "Laplace", "bins": "RR-on-Bins", "with_prior": "RRWithPrior"}


def table1(full: bool) -> Artifact:
    """Criteo: the Mechanism block recomputed, the Generalization block on another data set."""
    claims, data = printed("label_dp")["table1"], criteo()
    low, high = data.labels.values[0], data.labels.values[-1]
    ours: dict[str, Callable[[float], float]] = {
        "laplace": lambda e: LabelNoise("laplace", low, high, e).loss(data.labels),
        "bins": partial(bins_at, data),
    }
    tolerances = {key: 3 * np.array(claims[f"{key}_std"]) for key in ours}
    remark = "stand-in, within 3 printed standard deviations"
    columns, comparisons = _columns(claims, data, ours, ERRORS["diabetes"](full), tolerances, remark)
    names = [
        "epsilon",
        "laplace_printed",
        "laplace_ours",
        "bins_printed",
        "bins_ours",
        "test_laplace_printed_criteo",
        "test_laplace_ours_diabetes",
        "test_bins_printed_criteo",
        "test_bins_ours_diabetes",
    ]
    return artifact(
        "label_dp", "table1", pd.DataFrame(dict(zip(names, columns, strict=True))), comparisons, words=data.words
    )


def _columns(
    claims: Any,
    data: DataSet,
    ours: Mapping[str, Callable[[float], float]],
    tests: pd.DataFrame,
    tolerances: Mapping[str, Any],
    remark: str,
) -> tuple[list[list[float]], list[Comparison]]:
    """The columns: ε, then printed and ours in turn, the mechanisms' own error before the test errors; and comparisons.

    ours: mechanism -> its error at an ε; tests: the test errors, the row "none" trained on true labels. The last row
    is ε = ∞, where every mechanism publishes the label itself.
    """
    none, values, epsilons = claims["no_noise"], np.asarray(data.labels.values), claims["epsilon"]
    errors = tests.set_index(["mechanism", "epsilon"])["mse"]
    same, trained = float(data.labels.prior @ SQUARED(values, values)), float(errors["none"].iloc[0])
    losses = {key: [loss(epsilon) for epsilon in epsilons] for key, loss in ours.items()}
    columns = [[*epsilons, math.inf]]
    for key in ours:
        columns += [[*claims[key], none[key]], [*losses[key], same]]
    for key in (f"{key}_test" for key in ours):
        test = [errors.get((_WORDS[key.removesuffix("_test")], epsilon)) for epsilon in epsilons]
        columns += [[*claims[key], none[key]], [*test, trained]]
    beside = partial(Comparison, remark=remark, apart=_apart(data))
    comparisons = [
        beside(
            f"MSE of {_WORDS[key]}, ε = {epsilon:g}",
            claims["place"],
            claims[key][at],
            losses[key][at],
            float(tolerances[key][at]),
        )
        for at, epsilon in enumerate(epsilons)
        for key in ours
    ]
    published = partial(Comparison, remark="every label published as it is", apart=_NO_NOISE)
    comparisons += [published(f"MSE of {_WORDS[key]}, ε = ∞", none["place"], none[key], same, 0.005) for key in ours]
    return columns, comparisons


def table2(full: bool) -> Artifact:
    """Census: RR-on-Bins against RRWithPrior, the optimum for classification."""
    claims, data = printed("label_dp")["table2"], census()

    def chosen(epsilon: float) -> RandomizedResponse:
        return with_prior(data.labels, split_budget(epsilon, data.labels.k, data.records)[1])

    def loss(epsilon: float) -> float:
        return chosen(epsilon).loss(SQUARED)

    ours: dict[str, Callable[[float], float]] = {"with_prior": loss, "bins": partial(bins_at, data)}
    tolerances = dict.fromkeys(ours, np.full(len(claims["epsilon"]), 0.1))
    columns, comparisons = _columns(claims, data, ours, ERRORS["census"](full), tolerances, "stand-in, tolerance 0.1")
    names = [
        "epsilon",
        "with_prior_printed",
        "with_prior_ours",
        "bins_printed",
        "bins_ours",
        "test_with_prior_printed",
        "test_with_prior_ours_synthetic",
        "test_bins_printed",
        "test_bins_ours_synthetic",
    ]
    table = pd.DataFrame(dict(zip(names, columns, strict=True)))
    table.insert(3, "labels_kept", [*(chosen(e).outputs.size for e in claims["epsilon"]), data.labels.k])
    return artifact("label_dp", "table2", table, comparisons, words=data.words)


def signature(matrix: Sequence[Sequence[Fraction]], exp_epsilon: Fraction) -> list[str] | None:
    """Definition 9 for every row of M (0, U, L or S); None when M breaks a constraint of (2)."""
    if any(sum(row) != 1 for row in matrix):
        return None
    columns = list(zip(*matrix, strict=True))
    if any(max(column) > exp_epsilon * min(column) for column in columns):
        return None

    def sign(value: Fraction, column: Sequence[Fraction]) -> str:
        if value == 0:
            return "0"
        if value == max(column) == exp_epsilon * min(column):
            return "U"
        return "L" if value == min(column) == max(column) / exp_epsilon else "S"

    return ["".join(sign(value, column) for value, column in zip(row, columns, strict=True)) for row in matrix]


def fig5(full: bool) -> Artifact:
    """The example of a signature matrix, recomputed from its M."""
    claims = printed("label_dp")["fig5"]
    matrix = [[Fraction(0) if d == 0 else Fraction(1, d) for d in row] for row in claims["denominators"]]
    right = signature(matrix, Fraction(2))
    signatures = right or [""] * len(matrix)
    table = pd.DataFrame(matrix, columns=[f"M to {output}" for output in claims["outputs"]]).map(str)
    table.insert(0, "label", claims["labels"])
    table["signature"], table["signature_printed"] = (
        [" ".join(row) for row in rows] for rows in (signatures, claims["signature"])
    )
    agree = sum(map(operator.eq, "".join(signatures), "".join(claims["signature"]))) if right else 0
    place = claims["place"]
    comparisons = [
        Comparison("signature entries that agree, of 20", place, 20, agree, 0.5),
        Comparison(
            "e^ε",
            place,
            claims["exp_epsilon"],
            2.0 if right else 0.5,
            1e-9,
            expected=False,
            remark="e^ε = 1/2 is a slip for 2",
        ),
    ]
    return artifact("label_dp", "fig5", table, comparisons)
