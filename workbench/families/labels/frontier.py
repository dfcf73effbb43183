"""The trade-off of label randomizers: least expected loss against ε, and against δ where the notion has one.

curve       what a row is
point       a designed randomizer: bins (optimal over all real outputs), the channel LP on the labels themselves
            (pure, or DP where δ > 0), the unbiased randomizer
baseline    clipped Laplace and staircase noise, the exponential mechanism, RRWithPrior, k-ary randomized response;
            exact expectations, pure ε by construction

Beside it labels 0..20 in the budget table, every two of them neighbours.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from fractions import Fraction
from functools import partial
from typing import TYPE_CHECKING, Any

from workbench.errors import InvalidRequest
from workbench.exact.objects import Values
from workbench.families.api import design
from workbench.families.frontier_plan import Plan, Plots, Row, Task, budget_row, design_row, design_task
from workbench.families.frontier_plots import Series, budget_plots
from workbench.families.labels.family import FAMILY, points
from workbench.families.labels.published import NOISES
from workbench.families.published import costs, published
from workbench.mechanisms.label_randomizers.labels import Labels

if TYPE_CHECKING:
    import pandas as pd


SERIES = {
    "bins": Series("RR-on-Bins", 0), "printed": Series("RR-on-Bins, printed algorithm", 5),
    "lp": Series("channel LP on the labels", 2), "unbiased": Series("unbiased randomizer", 1),
    "laplace": Series("clipped Laplace", 7, ":"), "staircase": Series("clipped staircase", 4, "--"),
    "exponential": Series("exponential mechanism", 3, "-."), "RRWithPrior": Series("RRWithPrior", 6, "--"),
    "k-ary RR": Series("k-ary randomized response", 5, ":"),
}  # fmt: skip


def plan(question: Any, values: Values) -> Plan:
    """The plan of a label frontier. Raises InvalidRequest."""
    if any(values["delta"]) and "lp" not in values["method"]:
        InvalidRequest.must("method", "lp among others where delta > 0", repr(",".join(values["method"])))
    tasks: list[Task] = [design_task(row, request, request.method) for row, request in points(question, values)]
    labels, loss = question or values["labels"], values["loss"]
    title = f"Randomizers of {labels}, {loss} loss"
    return Plan(title, tasks, lambda table: _draw(table, title, loss))


def _draw(table: pd.DataFrame, title: str, loss: str) -> Plots:
    several = table[table["mechanism"] == "lp"]
    return budget_plots(table, several, several, SERIES, title, f"expected {loss} loss")


_LABELS = (0, 20)


def label_rows(values: Values, epsilon: Fraction, delta: Fraction, bits: Sequence[Fraction]) -> Iterable[Row]:
    """Label randomizers at one (ε, δ); what is pure also meets every δ."""
    labels = Labels.uniform(*_LABELS)
    for method, name, note in (
        ("bins", "RR-on-Bins", "optimal over all outputs for δ = 0"),
        ("unbiased", "unbiased randomizer", ""),
        ("lp", "channel LP", "the optimum with labels as outputs"),
    ):
        if method == "lp" and not delta:
            continue
        notion, allowed = ("dp", delta) if method == "lp" else ("pure", Fraction(0))
        group = f"{'unbiased' if method == 'unbiased' else '(ε, δ)-DP'}, squared loss"
        known = budget_row("labels", group, name, epsilon, delta, None, loss="squared", note=note)
        make = partial(design, labels, epsilon=epsilon, method=method, notion=notion, delta=allowed)
        row = design_row(make, **known)
        if delta:
            row["bound"] = None  # what is proven holds for δ = 0, or for outputs among the labels
        used = row.get("outputs_used")
        yield row if used is None else row | {"needs_bits": math.log2(used)}
    request = FAMILY.request(labels, epsilon=epsilon, loss="squared")
    for name, cost in costs(published(FAMILY), request).items():
        error = {"loss": "squared", "objective": cost.objective}
        needs = None if name in NOISES else math.log2(labels.k)
        yield budget_row("labels", "(ε, δ)-DP, squared loss", NOISES.get(name, name), epsilon, delta, needs, **error)
