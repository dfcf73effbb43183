"""The trade-off of label randomizers: least expected loss against ε, and against δ where the notion has one.

curve       what a row is
point       a designed randomizer: bins (optimal over all real outputs), the channel LP on the labels themselves
            (pure, or DP where δ > 0), the unbiased randomizer
baseline    clipped Laplace and staircase noise, the exponential mechanism, RRWithPrior, k-ary randomized response;
            exact expectations, pure ε by construction
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from fractions import Fraction
from functools import partial
from typing import TYPE_CHECKING, Any

from models.losses import Loss
from workbench.errors import InvalidRequest
from workbench.families.frontier_plan import Plan, Plots, Row, Task, baseline_task, design_task
from workbench.families.frontier_plots import Series, budget_plots
from workbench.families.labels.frontier_options import points
from workbench.mechanisms.label_randomizers.label_noise import LabelNoise
from workbench.mechanisms.label_randomizers.labels import Labels
from workbench.mechanisms.label_randomizers.randomized_response import RandomizedResponse, k_ary, with_prior

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["baseline_loss", "plan", "rivals"]

SERIES = {
    "bins": Series("RR-on-Bins", 0), "printed": Series("RR-on-Bins, printed algorithm", 5),
    "lp": Series("channel LP on the labels", 2), "unbiased": Series("unbiased randomizer", 1),
    "laplace": Series("clipped Laplace", 7, ":"), "staircase": Series("clipped staircase", 4, "--"),
    "exponential": Series("exponential mechanism", 3, "-."), "RRWithPrior": Series("RRWithPrior", 6, "--"),
    "k-ary RR": Series("k-ary randomized response", 5, ":"),
}  # fmt: skip
_NOISES = ("laplace", "staircase", "exponential")


def plan(question: Any, values: Mapping[str, Any]) -> Plan:
    """The plan of a label frontier. Raises InvalidRequest."""
    if any(values["delta"]) and "lp" not in values["method"]:
        InvalidRequest.must("method", "lp among others where delta > 0", repr(",".join(values["method"])))
    tasks: list[Task] = [design_task(row, request, request.method) for row, request in points(question, values)]
    labels, loss = question or values["labels"], values["loss"]
    if values["baselines"]:
        plain = list(points(question, {**values, "method": ("lp",), "delta": [Fraction(0)]}))
        named = plain[0][1].named_loss
        tasks += [
            baseline_task(name, row, partial(baseline_row, labels, name, request.epsilon, named))
            for name in rivals(labels, named)
            for row, request in plain
        ]
    title = f"{labels!r}, {loss} loss"
    return Plan(title, tasks, lambda table: _draw(table, title, loss))


def baseline_row(labels: Labels, name: str, epsilon: Fraction, loss: Loss) -> Row:
    """The exact expected loss of a baseline. Raises InvalidRequest."""
    error = baseline_loss(labels, name, epsilon, loss)
    return {"objective": error, "pure_epsilon": float(epsilon), "status": "closed form"}


def rivals(labels: Labels, loss: Loss) -> list[str]:
    """The baselines whose exact loss is known for this loss."""
    noises = _NOISES if loss.kind in ("squared", "absolute") and labels.k > 1 else ()
    return [*noises, *(("RRWithPrior", "k-ary RR") if labels.k > 1 else ())]


def baseline_loss(labels: Labels, name: str, epsilon: Fraction, loss: Loss) -> float:
    """The exact expected loss of a baseline. Raises InvalidRequest."""
    if name in _NOISES:
        low, high = float(labels.values[0]), float(labels.values[-1])
        return LabelNoise(name, low, high, epsilon, loss=loss.kind).loss(labels, loss.kind)
    build: Callable[[Labels, Fraction], RandomizedResponse] = with_prior if name == "RRWithPrior" else k_ary
    return float(build(labels, epsilon).loss(loss))


def _draw(table: pd.DataFrame, title: str, loss: str) -> Plots:
    several = table[table["mechanism"] == "lp"]
    return budget_plots(table, several, several, SERIES, title, f"expected {loss} loss")
