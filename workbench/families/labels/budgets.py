"""Labels 0..20 in the budget table, every two of them neighbours."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from fractions import Fraction
from typing import Any

from models.losses import loss_named
from workbench.families.api import design
from workbench.families.frontier_plan import Row, budget_row, design_row
from workbench.families.labels.frontier import baseline_loss, rivals
from workbench.mechanisms.label_randomizers.labels import Labels

__all__ = ["label_rows"]

_LABELS = (0, 20)


def label_rows(
    values: Mapping[str, Any], epsilon: Fraction, delta: Fraction, bits: Sequence[Fraction]
) -> Iterable[Row]:
    """Label randomizers at one (ε, δ); what is pure also meets every δ."""
    labels, loss = Labels.uniform(*_LABELS), loss_named("squared")
    wanted = [("bins", "RR-on-Bins"), ("unbiased", "unbiased randomizer")] + ([("lp", "channel LP")] if delta else [])
    for method, name in wanted:
        group = "unbiased" if method == "unbiased" else "(ε, δ)-DP"

        def make(method: str = method) -> Any:
            notion, allowed = ("dp", delta) if method == "lp" else ("pure", Fraction(0))
            return design(labels, epsilon=epsilon, method=method, notion=notion, delta=allowed)

        note = {"bins": "optimal over all outputs for δ = 0", "lp": "the optimum with labels as outputs"}.get(
            method, ""
        )
        known = budget_row("labels", f"{group}, squared loss", name, epsilon, delta, None, loss="squared", note=note)
        row = design_row(make, **known)
        if delta:
            row["bound"] = None  # what is proven holds for δ = 0, or for outputs among the labels
        used = row.get("outputs_used")
        yield row if used is None else row | {"needs_bits": math.log2(used)}
    sizes = {"laplace": None, "staircase": None, "exponential": None}
    names = {"laplace": "clipped Laplace", "staircase": "clipped staircase", "exponential": "exponential mechanism"}
    for name in rivals(labels, loss):
        error = baseline_loss(labels, name, epsilon, loss)
        needs = sizes[name] if name in sizes else math.log2(labels.k)
        yield budget_row(
            "labels",
            "(ε, δ)-DP, squared loss",
            names.get(name, name),
            epsilon,
            delta,
            needs,
            loss="squared",
            objective=error,
        )
