"""The trade-off of label randomizers: least expected loss against ε, and against δ where the notion has one.

curve       what a row is
point       a designed randomizer: bins (optimal over all real outputs), the channel LP on the labels themselves
            (pure, or DP where δ > 0), the unbiased randomizer
baseline    clipped Laplace and staircase noise, the exponential mechanism, RRWithPrior, k-ary randomized response;
            exact expectations, pure ε by construction
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction
from functools import partial
from typing import TYPE_CHECKING

from models.losses import Loss, loss_named
from solvers.backend import backend
from workbench.errors import InvalidRequest
from workbench.families.api import design
from workbench.families.frontier_plan import Plan, Plots, Row, Task, design_row
from workbench.families.frontier_plots import Quantity, Series, all_series, by_panel, few, heat, lines
from workbench.families.labels.family import METHODS
from workbench.families.outcome import translated_errors
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


def plan(
    labels: Labels,
    epsilons: Sequence[Fraction],
    deltas: Sequence[Fraction] = (Fraction(0),),
    *,
    loss: str = "squared",
    methods: Sequence[str] = ("bins", "lp"),
    baselines: bool = True,
    solver: str = "highs",
) -> Plan:
    """The plan of a label frontier. deltas > 0 concern the method lp alone. Raises InvalidRequest."""
    with translated_errors():
        named = loss_named(loss)
        named(1.0, labels.values[:1])
        backend(solver)
    for method in methods:
        if method not in METHODS:
            InvalidRequest.must("method", f"one of {', '.join(METHODS)}", repr(method))
    if "unbiased" in methods and named.kind != "squared":
        InvalidRequest.must("loss", "squared for the method unbiased", repr(loss))
    if any(deltas) and "lp" not in methods:
        InvalidRequest.must("method", "lp among others where delta > 0", repr(",".join(methods)))
    for epsilon in epsilons:
        if not 0 < epsilon <= 30:
            InvalidRequest.must("epsilon", "in (0, 30]", f"{float(epsilon):g}")
    for delta in deltas:
        if not 0 <= delta <= 1:
            InvalidRequest.must("delta", "in [0, 1]", f"{float(delta):g}")
    tasks: list[Task] = []
    for method in methods:
        for delta in deltas if method == "lp" else [Fraction(0)]:
            tasks += [_point(labels, method, epsilon, delta, loss, solver) for epsilon in epsilons]
    if baselines:
        tasks += [_baseline(labels, name, epsilon, named) for name in rivals(labels, named) for epsilon in epsilons]
    title = f"{labels!r}, {loss} loss"
    return Plan(title, tasks, lambda table: _draw(table, title, loss))


def _point(labels: Labels, method: str, epsilon: Fraction, delta: Fraction, loss: str, solver: str) -> Task:
    def compute() -> list[Row]:
        notion = "dp" if delta else "pure"
        known: Row = {"curve": "point", "mechanism": method, "notion": notion, "cost": loss,
                      "epsilon": float(epsilon), "delta": float(delta)}  # fmt: skip
        row = design_row(
            lambda: design(
                labels, epsilon=epsilon, loss=loss, method=method, notion=notion, delta=delta, solver=solver
            ),
            **known,
        )
        used = row.pop("outputs_used", None)
        return [row if used is None else row | {"outputs": used}]

    return compute


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


def _baseline(labels: Labels, name: str, epsilon: Fraction, loss: Loss) -> Task:
    def compute() -> list[Row]:
        known = {"curve": "baseline", "mechanism": name, "notion": "pure", "cost": loss.name,
                 "epsilon": float(epsilon), "delta": 0.0}  # fmt: skip
        error = baseline_loss(labels, name, epsilon, loss)
        return [known | {"objective": error, "pure_epsilon": float(epsilon), "status": "closed form"}]

    return compute


def _draw(table: pd.DataFrame, title: str, loss: str) -> Plots:
    pure = table[table["delta"].eq(0.0)]
    several = table[(table["mechanism"] == "lp")]
    series = {delta: Series(f"δ = {delta:g}", k) for k, delta in enumerate(few(several["delta"].tolist(), 6))}
    words, every = f"expected {loss} loss", all_series(SERIES, pure)
    epsilon, error, logged = Quantity("epsilon", "ε"), Quantity("objective", words), Quantity("objective", words, True)
    return {
        "error_epsilon": partial(lines, pure, epsilon, logged, "mechanism", every, f"{title}: pure"),
        "error_epsilon_delta": partial(
            lines, several if len(series) > 1 else several[:0], epsilon, logged, "delta", series,
            f"{title}: channel LP, loss against ε per δ",
        ),
        "error_delta": partial(
            by_panel, several, Quantity("epsilon", "ε = {:.3g}"), Quantity("delta", "δ"), error, SERIES,
            f"{title}: channel LP, loss against δ",
        ),
        "heat_map": partial(
            heat, several, epsilon, Quantity("delta", "δ (one row each)"), error, f"{title}: channel LP"
        ),
    }  # fmt: skip
