"""Table 2, inputs N(0.5, σ²) clipped to [-1, 1], and what is wrong in it and in Table 6."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pandas as pd

from workbench.families.quantizer.product import product_optimum
from workbench.mechanisms.baselines.two_bin import rqm
from workbench.mechanisms.density import Density, normal
from workbench.mechanisms.piecewise_affine import Quantizer
from workbench.mechanisms.quantization import read_bins
from workbench.papers.artifact import Artifact, Comparison, Erratum, artifact, erratum
from workbench.papers.optm.authors import authors_optm_gaussian
from workbench.papers.optm.common import (
    DIGITS,
    best_exact,
    certified,
    exact_at,
    is_certified,
    law_question,
    listed,
    mvu_at,
    optm_at,
    parameters,
    privacy_of,
    shown_outputs,
)

__all__ = ["standard_error", "table2", "table2_mvu", "table6_bins"]

_AUTHORS = "OPTM, as in the authors' code"


def _authors(sigma: float) -> Quantizer:
    return authors_optm_gaussian(parameters()["table2"]["mu"], sigma, Fraction(1))


def table2(full: bool) -> Artifact:
    """Table 2: inputs N(0.5, σ²) clipped to [-1, 1]."""
    printed, table = parameters()["table2"], parameters()["table6"]
    bins, rows, comparisons = table["OPTM"]["bins"], [], []
    for at, sigma in enumerate(printed["sigma"]):
        density = normal(printed["mu"], sigma)
        mechanisms = {
            _AUTHORS: _authors(sigma),
            "MVU": mvu_at(table["MVU"]["bins"], "1"),
            "RQM": rqm(table["RQM"]["bins"], table["RQM"]["q"]),
            "OPTM, Theorem 4, Table 6's bins": optm_at(bins, "1", density),
            "exact quantizer, Table 6's bins": exact_at(bins, "1", density),
            "exact quantizer, 4 optimised bins": best_exact(4, "1", density),
        }
        best = product_optimum(read_bins(bins), law_question("1", density), nodes=200)
        if best is not None:
            mechanisms["product optimum, Table 6's bins"] = best.quantizer
        for name, quantizer in mechanisms.items():
            quantizer = certified(quantizer, "1")
            cell = printed["OPTM"][at] if name == _AUTHORS else printed.get(name, {at: None})[at]
            mae, error, outputs = (
                quantizer.mae(density),
                standard_error(quantizer, density),
                shown_outputs(name, quantizer),
            )
            what = {"mechanism": name, "sigma": sigma, "outputs": outputs, "printed": cell}
            errors = {"mae": mae, "standard error of 1000 inputs": error, "mse": quantizer.mse(density)}
            rows.append(what | errors | privacy_of(quantizer) | {"certified": is_certified(quantizer, "1")})
            if cell is not None:
                remark = f"{(cell - mae) / error:+.1f} standard errors of 1000 inputs, {error:.4f}"
                remark += {"MVU": "; see the errata", _AUTHORS: f"; bins {outputs}"}.get(name, "")
                named, tolerance = f"MAE of {name}, σ = {sigma:g}", 0.0005 + 3 * error
                comparisons.append(
                    Comparison(named, "Table 2", cell, mae, tolerance, expected=name != "MVU", remark=remark)
                )
    return artifact("optm", "table2", pd.DataFrame(rows), comparisons, digits=DIGITS)


def standard_error(quantizer: Quantizer, density: Density, inputs: int = 1000) -> float:
    """Of the average of E|M(x) - x| over so many independent inputs x: outputs are averaged exactly, not drawn."""
    x, weights = density.grid([*map(float, quantizer.places), *quantizer.outputs])
    errors = quantizer.error_at(x)
    mean = float(weights @ errors)
    return math.sqrt(max(0.0, float(weights @ (errors - mean) ** 2)) / inputs)


def table6_bins() -> Erratum:
    """Table 6 has one line of bins for OPTM; the program chooses others at σ = 0.3."""
    printed, bins = parameters()["table2"], read_bins(parameters()["table6"]["OPTM"]["bins"])
    agree, same, shown = [], [], {}
    for sigma, cell in zip(printed["sigma"], printed["OPTM"], strict=True):
        quantizer, density = _authors(sigma), normal(printed["mu"], sigma)
        mae, error = quantizer.mae(density), standard_error(quantizer, density)
        agree.append(abs(mae - cell) <= 0.0005 + 3 * error)
        if np.array_equal(quantizer.outputs, [float(b) for b in bins]):
            same.append(sigma)
        shown = {"listed_2": listed(quantizer.outputs, "g"), "value": mae, "error": error, "OPTM": cell}
    return erratum("optm", "table6_bins", all(agree) and same == [0.1, 0.2], listed=listed(same, "g"), **shown)


def table2_mvu() -> Erratum:
    """Two of the printed MVU values exceed its error at the worst input."""
    table, printed = parameters()["table6"], parameters()["table2"]
    quantizer = mvu_at(table["MVU"]["bins"], "1")
    top = float(quantizer.error_at(np.linspace(-1, 1, 4001)).max())
    y = (quantizer.outputs + 1) / 2  # the alphabet of inputs in [0, 1]
    means, read, consistent = [], [], min(printed["MVU"][:2]) > top
    for sigma, cell in zip(printed["sigma"], printed["MVU"], strict=True):
        density = normal(printed["mu"], sigma)
        means.append(quantizer.mae(density))
        x, weights = density.grid(np.concatenate([[float(k) for k in quantizer.knots], y[np.abs(y) < 1]]))
        gaps = 2 * np.abs(x[:, None] - y)
        law = weights[:, None] * quantizer.probabilities(x)
        mean = float((law * gaps).sum())
        error = math.sqrt((float((law * gaps**2).sum()) - mean * mean) / 1000)
        read.append(f"{mean:.3f} ± {error:.3f}")
        consistent = consistent and abs(cell - mean) <= 3 * error
    words = {"MVU": listed(printed["MVU"], ".3f"), "listed": listed(means, ".3f")}
    return erratum("optm", "table2_mvu", consistent, **words, top=top, shown=", ".join(read))
