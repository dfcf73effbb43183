"""What the randomizers do to the labels themselves: Fig. 2, Tables 1 and 2, and the curves of Figs 3(a), 4, 6(a).

RR-on-Bins is held to the paper's rule: of the budget ε, ε₁ = sqrt(k/n) goes to the prior (Theorem 7), the bins have
ε - ε₁. What the noisy prior itself costs at these n is below the printed digits (the artifact "splits" shows it).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from functools import partial
from itertools import chain
from typing import Any

import numpy as np
import pandas as pd

from models.losses import loss_named
from workbench.families.integer_laws import clamped_rows
from workbench.families.labels.problem import best_bins
from workbench.mechanisms.label_randomizers.label_noise import LabelNoise
from workbench.mechanisms.label_randomizers.label_randomizer import split_budget
from workbench.mechanisms.label_randomizers.labels import Labels
from workbench.mechanisms.label_randomizers.randomized_response import RandomizedResponse, with_prior
from workbench.papers.artifact import Artifact, Comparison, artifact, printed
from workbench.papers.label_dp.data import DataSet, census, criteo
from workbench.papers.label_dp.lattice import lattice_law

__all__ = [
    "SQUARED",
    "bins_at",
    "continuous",
    "fig2",
    "lattice",
    "numbers",
    "table1",
    "table2",
]

SQUARED = loss_named("squared")
_STANDIN_MISSES = (0, 1)  # bins of Fig. 2 that the stand-in, fitted to Table 1 alone, is known to have elsewhere
_NO_NOISE = "at ε = ∞, where nothing is randomized,"
_CELL = 20  # euro, of the density plots


def numbers() -> dict[str, Any]:
    """The printed numbers of this paper."""
    return printed("label_dp")


def _apart(data: DataSet) -> str:
    return "" if data.real else "beside those of a stand-in fitted to them"


def bins_at(data: DataSet, epsilon: float) -> float:
    """MSE of RR-on-Bins at ε - ε₁, the prior known up to its loss ε₁."""
    _, second = split_budget(epsilon, data.labels.k, data.records)
    return best_bins(data.labels, second).loss(SQUARED)


def continuous(labels: Labels, kind: str, epsilon: float, *, clip: bool = True) -> float:
    """MSE of continuous noise with the label range as sensitivity, a closed form."""
    return LabelNoise(kind, labels.values[0], labels.values[-1], epsilon, clip=clip).loss(labels)


def lattice(labels: Labels, kind: str, epsilon: float) -> float:
    """MSE of clipped integer noise, a finite sum."""
    outputs = np.arange(labels.values[0], labels.values[-1] + 1)
    if kind == "exponential":
        apart = np.abs(outputs[None, :] - outputs[:, None])
        rows = np.exp(-epsilon / (2 * (outputs.size - 1))) ** apart
        rows = rows / rows.sum(axis=1, keepdims=True)
    else:
        rows = np.array([*clamped_rows(lattice_law(kind, outputs.size - 1, epsilon), outputs.size)])
    losses = (rows * SQUARED.matrix(outputs, outputs)).sum(axis=1)
    return float(labels.prior @ losses[np.searchsorted(outputs, labels.values)])


def fig2(full: bool) -> Artifact:
    """Where labels go: RR-on-Bins beside Laplace, ε = 3."""
    claims, data = numbers()["fig2"], criteo()
    labels, epsilon = data.labels, float(claims["epsilon"])
    _, second = split_budget(epsilon, labels.k, data.records)
    response = best_bins(labels, second)
    noise = LabelNoise("laplace", labels.values[0], labels.values[-1], epsilon)
    edges = np.append(np.arange(0, labels.values[-1], _CELL), labels.values[-1] + 1)
    group = np.searchsorted(edges, labels.values, side="right") - 1
    rows = []
    for panel, table in (
        ("RR-on-Bins", _cells(response.matrix, response.outputs, edges)),
        ("Laplace", np.array([_spread(noise, y, edges) for y in labels.values])),
    ):
        joint = np.zeros((edges.size - 1, edges.size - 1))
        np.add.at(joint, group, labels.prior[:, None] * table)
        rows += [(panel, edges[i], edges[j], joint[i, j]) for i in range(edges.size - 1) for j in range(edges.size - 1)]
    frame = pd.DataFrame(rows, columns=["mechanism", "label_from", "output_from", "probability"])
    table1_ = numbers()["table1"]
    at = table1_["epsilon"].index(epsilon)
    mse = response.loss(SQUARED), noise.loss(labels)
    bins = pd.DataFrame({"output": response.outputs, "mechanism": "RR-on-Bins"})
    return artifact(
        "label_dp",
        "fig2",
        frame,
        [
            *(
                Comparison(
                    f'bin {j + 1} of {len(claims["bins"])} ("around" in print)',
                    claims["place"],
                    value,
                    float(response.outputs[j]),
                    5.0,
                    explained=False,
                    expected=data.real or j not in _STANDIN_MISSES,
                    remark=f'{data.words}: a bin printed as "around {value:g}" is compared within 5',
                    apart=_apart(data),
                )
                for j, value in enumerate(claims["bins"])
                if response.outputs.size == len(claims["bins"])
            ),
            Comparison(
                "number of bins",
                claims["place"],
                len(claims["bins"]),
                response.outputs.size,
                0.5,
                remark="stand-in",
                apart=_apart(data),
            ),
            Comparison(
                "MSE, RR-on-Bins",
                table1_["place"],
                table1_["bins"][at],
                mse[0],
                3 * table1_["bins_std"][at],
                remark="stand-in, within 3 printed standard deviations",
                apart=_apart(data),
            ),
            Comparison(
                "MSE, Laplace",
                table1_["place"],
                table1_["laplace"][at],
                mse[1],
                3 * table1_["laplace_std"][at],
                remark="stand-in, within 3 printed standard deviations",
                apart=_apart(data),
            ),
        ],
        further={"bins": bins},
        CELL=_CELL,
        words=data.words,
        bins=mse[0],
        laplace=mse[1],
        most=frame["probability"].max(),
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
    from workbench.papers.label_dp.learning import diabetes_errors

    claims, data = numbers()["table1"], criteo()
    ours = {"laplace": partial(continuous, data.labels, "laplace"), "bins": partial(bins_at, data)}
    tolerances = {key: 3 * np.array(claims[f"{key}_std"]) for key in ours}
    remark = "stand-in, within 3 printed standard deviations"
    rows, comparisons = _rows(claims, data, ours, diabetes_errors(full), tolerances, remark)
    columns = [
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
    return artifact("label_dp", "table1", pd.DataFrame(rows, columns=columns), comparisons, words=data.words)


def _rows(
    claims: Any,
    data: DataSet,
    ours: Mapping[str, Callable[[float], float]],
    tests: pd.DataFrame,
    tolerances: Mapping[str, Any],
    remark: str,
) -> tuple[list[list[Any]], list[Comparison]]:
    """Printed and ours in turn at every ε, the mechanisms' own error before the test errors; and comparisons.

    ours: mechanism -> its error at an ε; tests: the test errors, the row "none" trained on true labels. The last row
    is ε = ∞, where every mechanism publishes the label itself.
    """
    place, none, values = claims["place"], claims["no_noise"], np.asarray(data.labels.values)
    rows: list[list[Any]] = []
    comparisons: list[Comparison] = []
    for at, epsilon in enumerate(claims["epsilon"]):
        test = tests[tests["epsilon"] == epsilon].set_index("mechanism")["mse"]
        losses = {key: loss(epsilon) for key, loss in ours.items()}
        pairs = [(claims[key][at], losses[key]) for key in ours]
        pairs += [(claims[f"{key}_test"][at], test.get(_WORDS[key])) for key in ours]
        rows.append([epsilon, *chain(*pairs)])
        comparisons += [
            Comparison(
                f"MSE of {_WORDS[key]}, ε = {epsilon:g}",
                place,
                claims[key][at],
                loss,
                float(tolerances[key][at]),
                remark=remark,
                apart=_apart(data),
            )
            for key, loss in losses.items()
        ]
    same = float(data.labels.prior @ SQUARED(values, values))
    trained = float(tests.loc[tests["mechanism"] == "none", "mse"].iloc[0])
    last = [(none[key], same) for key in ours] + [(none[f"{key}_test"], trained) for key in ours]
    return [*rows, [math.inf, *chain(*last)]], comparisons + [
        Comparison(
            f"MSE of {_WORDS[key]}, ε = ∞",
            none["place"],
            none[key],
            same,
            0.005,
            remark="every label published as it is",
            apart=_NO_NOISE,
        )
        for key in ours
    ]


def table2(full: bool) -> Artifact:
    """Census: RR-on-Bins against RRWithPrior, the optimum for classification."""
    from workbench.papers.label_dp.learning import census_errors

    claims, data = numbers()["table2"], census()

    def chosen(epsilon: float) -> RandomizedResponse:
        return with_prior(data.labels, split_budget(epsilon, data.labels.k, data.records)[1])

    def loss(epsilon: float) -> float:
        return chosen(epsilon).loss(SQUARED)

    ours: dict[str, Callable[[float], float]] = {"with_prior": loss, "bins": partial(bins_at, data)}
    tolerances = dict.fromkeys(ours, np.full(len(claims["epsilon"]), 0.1))
    rows, comparisons = _rows(claims, data, ours, census_errors(full), tolerances, "stand-in, tolerance 0.1")
    columns = [
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
    table = pd.DataFrame(rows, columns=columns)
    table.insert(3, "labels_kept", [*(chosen(e).outputs.size for e in claims["epsilon"]), data.labels.k])
    return artifact("label_dp", "table2", table, comparisons, words=data.words)
