"""The tables, which declared/optm.toml states row by row, and how far each published mechanism is above the limit."""

from __future__ import annotations

import itertools
import math
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pandas as pd

from workbench.data.intervals import read_bins
from workbench.exact.numbers import ONE, read_number
from workbench.exact.objects import Record
from workbench.families.quantizer.product import solve_product_optimum
from workbench.families.quantizer.search import find_largest_q_rqm
from workbench.io.result import Row
from workbench.mechanisms.baselines.two_bin import equal_bins, erm, rqm
from workbench.mechanisms.piecewise_affine import Quantizer
from workbench.papers.artifact import Comparison, read_declaration
from workbench.papers.optm.authors import authors_optm_gaussian
from workbench.papers.optm.common import (
    EPSILONS,
    TABLES,
    authors_optm_at,
    certified,
    designed,
    law_question,
    limit,
    mvu_at,
    parameters,
    printed_at,
    published,
)
from workbench.privacy.audit import audit_extremes
from workbench.questions.density import Density, normal_density, uniform_density

MOST = 16  # outputs of the optimised quantizers beside the limit


def gaussian(sigma: float) -> Density:
    """The inputs of Table 2: N(0.5, σ²) clipped to [-1, 1]."""
    return normal_density(parameters()["table2"]["mu"], sigma)


def authors_at(sigma: float) -> Quantizer:
    """OPTM of Table 2 as the authors' public program computes it, before any repair."""
    return authors_optm_gaussian(parameters()["table2"]["mu"], sigma, ONE)


def _made(by: str, epsilon: str, sigma: float | None) -> Quantizer:
    """The mechanism of a row, for uniform inputs or those of Table 2."""
    table, density = (TABLES[epsilon], None) if sigma is None else ("table6", gaussian(sigma))
    bins = parameters()[table]["OPTM"]["bins"]
    quantizer: Quantizer | None
    match by:
        case "authors":
            quantizer = authors_optm_at(epsilon) if sigma is None else authors_at(sigma)
        case "RQM without q":
            quantizer = no_rqm(epsilon)
        case "ERM beyond ±1":
            quantizer = no_erm(epsilon)[1]
        case "product":
            best = solve_product_optimum(
                read_bins(bins), law_question(epsilon, density), nodes=400 if sigma is None else 200
            )
            assert best
            quantizer = best.quantizer
        case "exact":
            quantizer = designed(bins, epsilon, density, knots=41)
        case "optimised":
            quantizer = designed(4, epsilon, density)
        case _:
            quantizer = printed_at(by, table, epsilon, density)
    assert quantizer
    return certified(quantizer, epsilon)


def _measured(quantizer: Quantizer, density: Density | None = None) -> Record:
    """The columns of the errors and of the exact audit."""
    density = density or uniform_density()
    errors = {
        "mae (51 points)": quantizer.mae_51,
        "mae": quantizer.mae(density),
        "mse": quantizer.mse(density),
    }
    return errors | {
        "exact epsilon": audit_extremes(quantizer, 0).pure_epsilon,
        "bias": float(quantizer.bias),
    }


def compared(mechanism: str, epsilon: float = 1, sigma: float | None = None) -> list[Row]:
    """A row of Table 1, inputs uniform, or of Table 2: what is printed, the exact errors, the audit, the limit.

    declared/optm.toml states how each mechanism is made and the line that prints it; outputs of a search are shown to
    the digits it converges to.
    """
    stated, budget = read_declaration("optm")["mechanisms"][mechanism], f"{epsilon:g}"
    quantizer = _made(stated["by"], budget, sigma)
    row = _measured(quantizer, None if sigma is None else gaussian(sigma))
    form = ".3g" if stated["by"] == "optimised" else "g"
    row["outputs"] = " ".join(f"{b:{form}}" for b in quantizer.outputs)
    row["certified"] = audit_extremes(quantizer, 0).meets("pure", budget) and not row["bias"]
    if sigma is None:
        top, printed, at = limit(budget), parameters()["table1"], EPSILONS.index(budget)
        row |= {"limit, proven": top.lower, "limit, reached": top.upper}
    else:
        printed = parameters()["table2"]
        at = printed["sigma"].index(sigma)
        row["standard error of 1000 inputs"] = standard_error(quantizer, gaussian(sigma))
    if "printed" in stated:
        row["printed"] = printed[stated["printed"]][at]
    return [row]


def as_printed(mechanism: str, table: str, sigma: float | None = None) -> list[Row]:
    """A row of Tables 3-9: the parameters as printed, with the exact ε, bias and errors for uniform inputs.

    sigma: of the inputs of Table 2 that OPTM's selections are made for, where they are not uniform.
    """
    given = parameters()[table]
    epsilon = given.get("epsilon", "1")
    quantizer = printed_at(mechanism, table, epsilon, None if sigma is None else gaussian(sigma))
    assert quantizer
    return [{**given[mechanism], "asked epsilon": float(epsilon), **_measured(quantizer)}]


def error_curve(mechanism: str, epsilon: str) -> pd.DataFrame:
    """The expected error of a mechanism of Table 1 against x, with both limits where its law jumps."""
    quantizer = _made(read_declaration("optm")["mechanisms"][mechanism]["by"], epsilon, None)
    inside = quantizer.outputs[np.abs(quantizer.outputs) < 1]
    x = np.unique(np.concatenate([np.linspace(-1, 1, 401), inside, np.nextafter(inside, -1)]))
    return pd.DataFrame({"x": x, "error": quantizer.error_at(x)})


def _spread(name: str, epsilon: str) -> tuple[list[Quantizer], str]:
    """The mechanism over what the printed parameters leave open, and what that is."""
    given = parameters()[TABLES[epsilon]][name]
    bins, signs = read_bins(given["bins"]), (-1, 1)
    if name == "MVU":
        alphabets = [
            [-bins[3] - far, -bins[2] - near, bins[2] + near, bins[3] + far]
            for near, far in itertools.product((Fraction(-1, 200), Fraction(1, 200)), repeat=2)
        ]
        return [
            mvu_at(",".join(map(str, alphabet)), epsilon) for alphabet in alphabets
        ], "alphabet printed to 0.01"
    if name == "RQM":
        q = read_number(given["q"], "q")
        moved = [
            rqm(equal_bins(4, bins[-1] + Fraction(a, 200)), q + Fraction(b, 2000))
            for a, b in itertools.product(signs, repeat=2)
        ]
        return moved, "outer bin printed to 0.01, q to 0.001, bins equally spaced"
    gamma = read_number(given["gamma"], "gamma")
    return [erm(bins, gamma + Fraction(a, 2000)) for a in signs], "gamma printed to 0.001"


def _compared(name: str, epsilon: str, cell: float, ours: float) -> Comparison:
    """A cell of Table 1 beside our value, as far as the printed parameters determine it."""
    half, what = 0.0005, f"MAE of {name}, ε = {epsilon}"
    if abs(ours - cell) <= half or name == "OPTM":
        return Comparison(what, "Table 1", cell, ours, half)
    mechanisms, why = _spread(name, epsilon)
    values = [ours, *(quantizer.mae_51 for quantizer in mechanisms)]
    low, high = min(values), max(values)
    remark = f"{why}: that alone moves the value between {low:.4f} and {high:.4f}"
    return Comparison(
        what, "Table 1", cell, ours, half + max(ours - low, high - ours), remark=remark
    )


def table1(table: pd.DataFrame) -> Record:
    """The 12 printed cells of Table 1 beside ours."""
    cells = pd.to_numeric(table["printed"], errors="coerce")
    comparisons = []
    for row in table.assign(printed=cells).dropna(subset="printed").to_dict("records"):
        name, _, remark = row["mechanism"].partition(", ")
        named = _compared(name, f"{row['epsilon']:g}", row["printed"], row["mae (51 points)"])
        comparisons.append(replace(named, what=f"{named.what}, {remark}" if remark else named.what))
    return {"comparisons": comparisons}


def table2(table: pd.DataFrame) -> Record:
    """Table 2: inputs N(0.5, σ²) clipped to [-1, 1]."""
    comparisons = []
    for row in table.dropna(subset="printed").to_dict("records"):
        name, cell, mae, error = (
            row["mechanism"],
            row["printed"],
            row["mae"],
            row["standard error of 1000 inputs"],
        )
        remark = f"{(cell - mae) / error:+.1f} standard errors of 1000 inputs, {error:.4f}"
        remark += (
            "; see the errata"
            if name == "MVU"
            else f"; bins {row['outputs']}"
            if "OPTM" in name
            else ""
        )
        named, tolerance = f"MAE of {name}, σ = {row['sigma']:g}", 0.0005 + 3 * error
        comparisons.append(
            Comparison(
                named, "Table 2", cell, mae, tolerance, expected=name != "MVU", remark=remark
            )
        )
    return {"comparisons": comparisons}


def standard_error(quantizer: Quantizer, density: Density) -> float:
    """Of the average of E|M(x) - x| over 1000 independent inputs x: outputs are averaged exactly, not drawn."""
    x, weights = density.quadrature([*map(float, quantizer.end_inputs), *quantizer.outputs])
    errors = quantizer.error_at(x)
    return math.sqrt(max(0.0, float(weights @ (errors - float(weights @ errors)) ** 2)) / 1000)


def no_rqm(epsilon: str) -> Quantizer | None:
    """The best RQM with 4 bins at an ε where the paper has none, on a grid of outer bins; q to four digits."""
    reach = 1 / math.tanh(float(epsilon) / 2)
    outer = (
        Fraction(round(reach * factor * 10**6), 10**6)
        for factor in (1.0001, 1.001, 1.01, 1.03, 1.1, 1.3)
    )
    largest = (find_largest_q_rqm(equal_bins(4, b), epsilon, digits=4) for b in outer)
    return min((q for q in largest if q), key=lambda q: q.mae_51, default=None)


def no_erm(epsilon: str) -> tuple[int, Quantizer]:
    """(how many ERMs of a grid with inner bins in (0, 1) are ε-private, the best ERM with inner bins beyond ±1).

    The grid: outer 4.1 .. 16, inner 0.05 .. 0.99, γ 0 .. 1. Beyond ±1 inner bins near the least reach with a large γ
    are two-point randomized response in all but name.
    """

    def private(quantizer: Quantizer) -> bool:
        return audit_extremes(quantizer, 0).meets("pure", epsilon)

    inner = (0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.99)
    grid = itertools.product(np.linspace(4.1, 16, 18), inner, (0.0, 0.01, 0.03, 0.1, 0.3, 1.0))
    count = sum(
        private(erm([str(round(b, 3)) for b in (-far, -near, near, far)], str(g)))
        for far, near, g in grid
    )
    reach = 1 / math.tanh(float(epsilon) / 2)
    outer = [
        Fraction(round(reach * factor * 10**4), 10**4)
        for factor in (0.9, 0.95, 0.98, 1.0, 1.0002, 1.01)
    ]
    beyond = (
        erm([-Fraction(3, 2) * b, -b, b, Fraction(3, 2) * b], gamma)
        for b, gamma in itertools.product(outer, (0, 1, 5, 15, 40))
    )
    return count, min(filter(private, beyond), key=lambda q: q.mae_51)


def above(epsilon: str) -> list[Row]:
    """How far each published mechanism is above the limit at one ε."""
    best = {f"exact quantizer, {m} optimised bins": designed(m, epsilon) for m in (4, MOST)}
    rows = []
    for name, quantizer in (published(epsilon) | best).items():
        mae = quantizer.mae()
        row = {
            "epsilon": epsilon,
            "mechanism": name,
            "mae": mae,
            "largest output": float(quantizer.outputs[-1]),
        }
        for what, above_what, capped in (
            ("any outputs", "it", False),
            ("twice the least reach", "that", True),
        ):
            bounds = limit(epsilon, capped=capped)
            row[f"limit, {what} (proven, reached)"] = f"{bounds.lower:.4f} .. {bounds.upper:.4f}"
            row[f"above {above_what}, %"] = 100 * (mae / bounds.upper - 1)
        rows.append(row)
    return rows
