"""Table 1, the parameter tables 3-9, and how far each published mechanism is above the limit."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pandas as pd

from workbench.exact.numbers import exact
from workbench.families.quantizer.product import product_optimum
from workbench.mechanisms.baselines.two_bin import equal_bins, erm, rqm
from workbench.mechanisms.density import Density, normal
from workbench.mechanisms.piecewise_affine import Quantizer
from workbench.mechanisms.quantization import read_bins
from workbench.papers.artifact import Artifact, Comparison, InParts, artifact
from workbench.papers.optm.common import (
    DIGITS,
    EPSILONS,
    NAMES,
    authors_optm_at,
    best_exact,
    certified,
    exact_at,
    is_certified,
    largest_q,
    law_question,
    limit,
    mvu_at,
    optm_at,
    parameters,
    parameters_at,
    privacy_of,
    published,
    shown_outputs,
)
from workbench.privacy.audit import audit_extremes

__all__ = ["MOST", "above", "no_erm", "no_rqm", "parameter_table", "table1"]


MOST = 16  # outputs of the optimised quantizers beside the limit


def _row(name: str, epsilon: str, quantizer: Quantizer, printed: Any = None) -> dict[str, Any]:
    quantizer, top = certified(quantizer, epsilon), limit(epsilon)
    errors = {"mae (51 points)": quantizer.mae_51, "mae": quantizer.mae(), "mse": quantizer.mse()}
    what = {
        "mechanism": name,
        "epsilon": float(epsilon),
        "outputs": shown_outputs(name, quantizer),
        "printed": printed,
    }
    proof = {"certified": is_certified(quantizer, epsilon), "limit, proven": top.lower, "limit, reached": top.upper}
    return what | errors | privacy_of(quantizer) | proof


def _spread(name: str, epsilon: str) -> tuple[list[Quantizer], str]:
    """The mechanism over what the printed parameters leave open, and what that is."""
    given = parameters_at(epsilon)[name]
    bins, signs = read_bins(given["bins"]), (-1, 1)
    if name == "MVU":
        alphabets = [
            [-bins[3] - far, -bins[2] - near, bins[2] + near, bins[3] + far]
            for near, far in itertools.product((Fraction(-1, 200), Fraction(1, 200)), repeat=2)
        ]
        return [mvu_at(",".join(map(str, alphabet)), epsilon) for alphabet in alphabets], "alphabet printed to 0.01"
    if name == "RQM":
        q = exact(given["q"], "q")
        moved = [
            rqm(equal_bins(4, bins[-1] + Fraction(a, 200)), q + Fraction(b, 2000))
            for a, b in itertools.product(signs, repeat=2)
        ]
        return moved, "outer bin printed to 0.01, q to 0.001, bins equally spaced"
    gamma = exact(given["gamma"], "gamma")
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
    return Comparison(what, "Table 1", cell, ours, half + max(ours - low, high - ours), remark=remark)


def table1(full: bool) -> Artifact:
    """Table 1, all 12 cells, with the exact quantizer, the product optimum and the limit beside them."""
    printed, rows, comparisons = parameters()["table1"], [], []
    missing = {"RQM": "only next to q = 0", "ERM": "only with inner bins beyond ±1"}
    for at, epsilon in enumerate(EPSILONS):
        mechanisms, authors = published(epsilon), authors_optm_at(epsilon)
        for name in NAMES:
            cell = printed[name][at]
            if name not in mechanisms:
                note = no_rqm(epsilon) if name == "RQM" else no_erm(epsilon)[1]
                if note is not None:
                    rows.append(_row(f"{name} ({missing[name]})", epsilon, note, "N/A"))
            elif name == "OPTM":
                rows.append(_row("OPTM, as in the authors' code", epsilon, authors, cell))
                rows.append(_row("OPTM, Theorem 5 with all pairs", epsilon, mechanisms[name]))
                named = _compared("OPTM", epsilon, cell, authors.mae_51)
                comparisons.append(replace(named, what=f"{named.what}, as in the authors' code"))
            else:
                rows.append(_row(name, epsilon, mechanisms[name], cell))
                comparisons.append(_compared(name, epsilon, cell, mechanisms[name].mae_51))
        bins = parameters_at(epsilon)["OPTM"]["bins"]
        best = product_optimum(read_bins(bins), law_question(epsilon))
        if best is not None:
            rows.append(_row("product optimum, OPTM's bins", epsilon, best.quantizer))
        rows.append(_row("exact quantizer, OPTM's bins", epsilon, exact_at(bins, epsilon)))
        rows.append(_row("exact quantizer, 4 optimised bins", epsilon, best_exact(4, epsilon)))
    return artifact("optm", "table1", pd.DataFrame(rows), comparisons, digits=DIGITS)


def no_rqm(epsilon: str) -> Quantizer | None:
    """The best RQM with 4 bins at an ε where the paper has none, on a grid of outer bins; q to four digits."""
    reach = 1 / math.tanh(float(epsilon) / 2)
    outer = (Fraction(round(reach * factor * 10**6), 10**6) for factor in (1.0001, 1.001, 1.01, 1.03, 1.1, 1.3))
    largest = (largest_q(equal_bins(4, b), epsilon, digits=4) for b in outer)
    return min((q for q in largest if q is not None), key=lambda q: q.mae_51, default=None)


def no_erm(epsilon: str) -> tuple[int, Quantizer]:
    """(how many ERMs of a grid with inner bins in (0, 1) are ε-private, the best ERM with inner bins beyond ±1).

    The grid: outer 4.1 .. 16, inner 0.05 .. 0.99, γ 0 .. 1. Beyond ±1 inner bins near the least reach with a large γ
    are two-point randomized response in all but name.
    """

    def private(quantizer: Quantizer) -> bool:
        return audit_extremes(quantizer, 0).meets("pure", epsilon)

    inner = (0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.99)
    grid = itertools.product(np.linspace(4.1, 16, 18), inner, (0.0, 0.01, 0.03, 0.1, 0.3, 1.0))
    count = sum(private(erm([str(round(b, 3)) for b in (-far, -near, near, far)], str(g))) for far, near, g in grid)
    reach = 1 / math.tanh(float(epsilon) / 2)
    outer = [Fraction(round(reach * factor * 10**4), 10**4) for factor in (0.9, 0.95, 0.98, 1.0, 1.0002, 1.01)]
    beyond = (
        erm([-Fraction(3, 2) * b, -b, b, Fraction(3, 2) * b], gamma)
        for b, gamma in itertools.product(outer, (0, 1, 5, 15, 40))
    )
    return count, min(filter(private, beyond), key=lambda q: q.mae_51)


def _given(name: str, given: dict[str, str], epsilon: str, density: Density | None) -> Quantizer:
    """A mechanism at printed parameters; RQM whose q is not printed with the largest."""
    bins = given["bins"]
    if name == "OPTM":
        return optm_at(bins, epsilon, density)
    if name == "MVU":
        return mvu_at(bins, epsilon)
    quantizer = erm(bins, given["gamma"]) if name == "ERM" else rqm(bins, given["q"]) if "q" in given else None
    quantizer = quantizer or largest_q(bins, epsilon)
    assert quantizer is not None
    return quantizer


def parameter_table(number: int) -> Any:
    """Tables 3-9: the parameters as printed, with the exact ε, bias and errors they give."""

    def compute(full: bool) -> Artifact:
        table, rows = parameters()[f"table{number}"], []
        epsilon = table.get("epsilon", "1")
        for name in NAMES:
            if name in table:
                given = table[name]
                quantizer = _given(name, given, epsilon, normal(0.5, 0.2) if number == 6 else None)
                what = {"mechanism": name, "bins": given["bins"], "q": given.get("q"), "gamma": given.get("gamma")}
                errors = {"mae (51 points)": quantizer.mae_51, "mae": quantizer.mae(), "mse": quantizer.mse()}
                rows.append(what | {"asked epsilon": float(epsilon)} | privacy_of(quantizer) | errors)
        return artifact("optm", f"table{number}", pd.DataFrame(rows), digits=DIGITS)

    return compute


def _above(epsilon: str, full: bool) -> list[dict[str, Any]]:
    """The rows of one ε."""
    best = {f"exact quantizer, {m} optimised bins": best_exact(m, epsilon) for m in (4, MOST)}
    rows = []
    for name, quantizer in (published(epsilon) | best).items():
        mae = quantizer.mae()
        row: dict[str, Any] = {"epsilon": float(epsilon), "mechanism": name, "mae": mae}
        row["largest output"] = float(quantizer.outputs[-1])
        for what, above_what, capped in (("any outputs", "it", False), ("twice the least reach", "that", True)):
            bounds = limit(epsilon, capped=capped)
            row[f"limit, {what} (proven, reached)"] = f"{bounds.lower:.4f} .. {bounds.upper:.4f}"
            row[f"above {above_what}, %"] = 100 * (mae / bounds.upper - 1)
        rows.append(row)
    return rows


def _all_above(parts: Sequence[list[dict[str, Any]]], full: bool) -> Artifact:
    """How far each published mechanism is above the limit."""
    table = pd.DataFrame([row for part in parts for row in part])
    return artifact(
        "optm", "above", table, digits={"mae": 7, "largest output": 3, "above it, %": 4, "above that, %": 4}
    )


above = InParts(EPSILONS, _above, _all_above)
