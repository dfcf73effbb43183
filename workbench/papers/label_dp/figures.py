"""What printed numbers stand beside: Fig. 2, Tables 1 and 2, and the example of Fig. 5."""

from __future__ import annotations

import math
import operator
from collections.abc import Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from functools import partial

import numpy as np
import pandas as pd

from workbench.exact.objects import Record
from workbench.papers.artifact import Artifact, Comparison, make_artifact, read_printed_numbers
from workbench.papers.label_dp.curves import SQUARED, make_response
from workbench.papers.label_dp.data import DataSet, census, criteo
from workbench.papers.label_dp.learning import continuous_noise

_STANDIN_MISSES = (
    0,
    1,
)  # bins of Fig. 2 that the stand-in, fitted to Table 1 alone, is known to have elsewhere
_NO_NOISE = "at ε = ∞, where nothing is randomized,"
_CELL = 20  # euro, of the density plots


def _apart(data: DataSet) -> str:
    return "" if data.real else "beside those of a stand-in fitted to them"


def fig2(full: bool) -> Artifact:
    """Where labels go: RR-on-Bins beside Laplace, ε = 3."""
    claims, data, table = (
        read_printed_numbers("label_dp")["fig2"],
        criteo(),
        read_printed_numbers("label_dp")["table1"],
    )
    labels, epsilon = data.labels, float(claims["epsilon"])
    bins, noise = (
        make_response(data, "RR-on-Bins", epsilon),
        continuous_noise("Laplace", labels.values, epsilon),
    )
    edges = np.append(np.arange(0, labels.values[-1], _CELL), labels.values[-1] + 1)
    above = np.array([noise.cdf(y, edges) for y in labels.values])
    above[:, 0] = 0.0
    below = {
        "RR-on-Bins": bins.matrix @ (bins.outputs[:, None] < edges),
        "Laplace": above,
    }  # Pr[o < edge | y]
    cell = (
        np.searchsorted(edges, labels.values, side="right") - 1
        == np.arange(edges.size - 1)[:, None]
    )
    label_from, output_from = (
        edges[place].ravel() for place in np.indices((edges.size - 1, edges.size - 1))
    )
    places = pd.DataFrame({"label_from": label_from, "output_from": output_from})
    frame = pd.concat(
        [
            places.assign(
                mechanism=name,
                probability=(cell @ (labels.prior[:, None] * np.diff(law, axis=1))).ravel(),
            )
            for name, law in below.items()
        ],
        ignore_index=True,
    )[["mechanism", "label_from", "output_from", "probability"]]
    at, mse = (
        table["epsilon"].index(epsilon),
        {"bins": bins.loss(SQUARED), "laplace": noise.loss(labels)},
    )
    beside = partial(Comparison, apart=_apart(data))
    values, place, close = (
        claims["bins"],
        claims["place"],
        "stand-in, within 3 printed standard deviations",
    )
    comparisons = [
        beside(
            f'bin {j + 1} of {len(values)} ("around" in print)',
            place,
            value,
            float(bins.outputs[j]),
            5.0,
            expected=data.real or j not in _STANDIN_MISSES,
            remark=f'{data.words["words"]}: a bin printed as "around {value:g}" is compared within 5',
            explained=False,
        )
        for j, value in enumerate(values)
        if bins.outputs.size == len(values)
    ]
    comparisons.append(
        beside("number of bins", place, len(values), bins.outputs.size, 0.5, remark="stand-in")
    )
    comparisons += [
        beside(
            f"MSE, {_WORDS[key]}",
            table["place"],
            table[key][at],
            ours,
            3 * table[f"{key}_std"][at],
            remark=close,
        )
        for key, ours in mse.items()
    ]
    drawn = {"bins": pd.DataFrame({"output": bins.outputs, "mechanism": "RR-on-Bins"})}
    words = data.words | mse | {"CELL": _CELL, "most": frame["probability"].max()}
    return make_artifact("label_dp", "fig2", frame, comparisons, further=drawn, **words)


_WORDS = {"laplace": "Laplace", "bins": "RR-on-Bins", "with_prior": "RRWithPrior"}


def _block(
    table: pd.DataFrame,
    number: int,
    data: DataSet,
    tolerances: Mapping[str, Sequence[float]],
    remark: str,
) -> list[Comparison]:
    """The Mechanism block of a table, and its last row, ε = ∞, where every mechanism publishes the label itself.

    tolerances: of the other rows, by the key of a mechanism.
    """
    beside = partial(Comparison, remark=remark, apart=_apart(data))
    published = partial(Comparison, remark="every label published as it is", apart=_NO_NOISE)
    return [
        published(f"MSE of {_WORDS[key]}, ε = ∞", f"Table {number}, row ∞", theirs, ours, 0.005)
        if row["epsilon"] == math.inf
        else beside(
            f"MSE of {_WORDS[key]}, ε = {row['epsilon']:g}",
            f"Table {number}, MSE (Mechanism)",
            theirs,
            ours,
            tolerances[key][at],
        )
        for at, row in enumerate(table.to_dict("records"))
        for key in tolerances
        for theirs, ours in [(row[f"{key}_printed"], row[f"{key}_ours"])]
    ]


def table1(table: pd.DataFrame) -> Record:
    """Criteo: the Mechanism block recomputed, the Generalization block on another data set."""
    claims, data = read_printed_numbers("label_dp")["table1"], criteo()
    tolerances = {key: (3 * np.array(claims[f"{key}_std"])).tolist() for key in ("laplace", "bins")}
    compared = _block(table, 1, data, tolerances, "stand-in, within 3 printed standard deviations")
    return {"comparisons": compared, **data.words}


def table2(table: pd.DataFrame) -> Record:
    """Census: RR-on-Bins against RRWithPrior, the optimum for classification."""
    data, tolerances = census(), dict.fromkeys(("with_prior", "bins"), [0.1] * (len(table) - 1))
    return {
        "comparisons": _block(table, 2, data, tolerances, "stand-in, tolerance 0.1"),
        **data.words,
    }


def example() -> list[list[Fraction]]:
    """The M of Fig. 5."""
    return [
        [Fraction(0) if d == 0 else Fraction(1, d) for d in row]
        for row in read_printed_numbers("label_dp")["fig5"]["denominators"]
    ]


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

    return [
        "".join(sign(value, column) for value, column in zip(row, columns, strict=True))
        for row in matrix
    ]


def fig5(full: bool) -> Artifact:
    """The example of a signature matrix, recomputed from its M."""
    claims = read_printed_numbers("label_dp")["fig5"]
    matrix = example()
    right = signature(matrix, Fraction(2))
    signatures = right or [""] * len(matrix)
    table = pd.DataFrame(matrix, columns=[f"M to {output}" for output in claims["outputs"]]).map(
        str
    )
    table.insert(0, "label", claims["labels"])
    table["signature"], table["signature_printed"] = (
        [" ".join(row) for row in rows] for rows in (signatures, claims["signature"])
    )
    agree = sum(map(operator.eq, "".join(signatures), "".join(claims["signature"]))) if right else 0
    beside = partial(Comparison, place=claims["place"])
    slip = beside(
        "e^ε",
        printed=claims["exp_epsilon"],
        ours=2.0 if right else 0.5,
        tolerance=1e-9,
        remark="e^ε = 1/2 is a slip for 2",
    )
    compared = [
        beside("signature entries that agree, of 20", printed=20, ours=agree, tolerance=0.5),
        replace(slip, expected=False),
    ]
    return make_artifact("label_dp", "fig5", table, compared)
