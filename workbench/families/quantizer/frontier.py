"""The trade-off of quantizers: exact error of unbiased ε-private quantizers against ε and the number of outputs.

curve       what a row is
point       a designed quantizer, certified; `levels` outputs, `objective` its exact error in the asked cost. `bound`
            holds for every choice of outputs within the reach (exact; see `design_quantizer`)
baseline    RQM (best of a grid of outer outputs, largest q) and PBM (its largest θ) with so many outputs; Laplace with
            a real number as output
limit       [bound, objective] holds the least MAE with any outputs whatever (uniform inputs)
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from functools import partial
from typing import TYPE_CHECKING, Any

from workbench.errors import InvalidRequest, WorkbenchError
from workbench.exact.numbers import round_up
from workbench.families.api import design
from workbench.families.frontier_plan import Plan, Plots, Row, Task, design_row, failed_row
from workbench.families.frontier_plots import Quantity, Series, all_series, by_panel, heat
from workbench.families.outcome import translated_errors
from workbench.families.quantizer.family import METHODS
from workbench.families.quantizer.limit import mae_limit
from workbench.families.quantizer.published import best_rqm
from workbench.mechanisms.baselines.poisson_binomial import PoissonBinomial, poisson_binomial
from workbench.mechanisms.piecewise_affine import Quantizer
from workbench.mechanisms.quantization import Quantization
from workbench.mechanisms.quantization_error import error_function
from workbench.privacy.quantizer import audit_quantizer

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["plan"]

SERIES = {
    "exact": Series("exact quantizer, outputs within 2x the least reach", 0),
    "product": Series("product optimum", 5), "optm": Series("OPTM", 1), "mvu": Series("MVU", 2),
    "rqm": Series("RQM", 3, "--"), "pbm": Series("PBM", 4, "--"), "laplace": Series("Laplace, any real output", 7, ":"),
}  # fmt: skip
_RQM = 8  # outputs up to which RQM's parameters are searched


def plan(
    levels: Sequence[int],
    epsilons: Sequence[Fraction],
    *,
    methods: Sequence[str] = ("exact",),
    cost: Any = "mae",
    density: str = "uniform",
    starts: int = 2,
    baselines: bool = True,
    solver: str = "highs",
) -> Plan:
    """The plan of a quantizer frontier on inputs in [-1, 1]. Raises InvalidRequest."""
    error_function(cost)
    for epsilon in epsilons:
        if not 0 < epsilon <= 30:
            InvalidRequest.must("epsilon", "in (0, 30]", f"{round_up(epsilon):g}")
    for method in methods:
        if method not in METHODS:
            InvalidRequest.must("method", f"one of {', '.join(METHODS)}", repr(method))
        if (method == "optm" and cost != "mae") or (method == "mvu" and cost not in ("mae", "mse")):
            InvalidRequest.must("cost", f"one that {method} can minimise", repr(cost))
    questions = {m: Quantization(levels=m, density=density) for m in levels}
    with translated_errors():
        from solvers.backend import backend

        backend(solver)
    tasks: list[Task] = [
        _point(questions[m], method, epsilon, cost, starts, solver)
        for method in methods for m in levels for epsilon in epsilons
    ]  # fmt: skip
    if cost == "mae" and density == "uniform":
        tasks += [_limit(epsilon) for epsilon in epsilons]
    if baselines:
        tasks += [
            _baseline(questions[m], name, epsilon, cost) for name in ("rqm", "pbm") for m in levels
            for epsilon in epsilons if name == "pbm" or m <= _RQM
        ]  # fmt: skip
        tasks += [_laplace(epsilon, cost) for epsilon in epsilons]
    title = f"Unbiased quantizers of x in [-1, 1], {density} inputs"
    return Plan(title, tasks, lambda table: _draw(table, title, str(cost)))


def _known(curve: str, mechanism: str, epsilon: Fraction, cost: Any, **more: Any) -> Row:
    return {"curve": curve, "mechanism": mechanism, "notion": "pure", "cost": str(cost), "epsilon": float(epsilon),
            "delta": 0.0, **more}  # fmt: skip


def _point(question: Quantization, method: str, epsilon: Fraction, cost: Any, starts: int, solver: str) -> Task:
    def compute() -> list[Row]:
        designs: list[Any] = []

        def solve() -> Any:
            designs.append(design(question, epsilon=epsilon, method=method, cost=cost, starts=starts, solver=solver))
            return designs[0]

        row = design_row(solve, **_known("point", method, epsilon, cost, levels=question.levels))
        row.pop("bins_used", None)
        if designs:  # the error of the mechanism itself, whatever its method minimised
            quantizer = designs[0].mechanism
            row |= {"objective": quantizer.expected(cost, question.density), "reach": float(quantizer.outputs[-1])}
            row["bound"] = row["bound"] if method == "exact" else None
        return [row]

    return compute


def _limit(epsilon: Fraction) -> Task:
    def compute() -> list[Row]:
        known = _known("limit", "any outputs", epsilon, "mae")
        try:
            with translated_errors():
                limit = mae_limit(float(epsilon))
        except WorkbenchError as error:
            return [failed_row(error, **known)]
        return [known | {"objective": limit.upper, "bound": limit.lower, "status": "bounds"}]

    return compute


def _baseline(question: Quantization, name: str, epsilon: Fraction, cost: Any) -> Task:
    def compute() -> list[Row]:
        m, density = question.levels, question.density
        known = _known("baseline", name, epsilon, cost, levels=m)
        mechanism: Quantizer | PoissonBinomial | None
        mechanism = best_rqm(m, epsilon, cost, density) if name == "rqm" else poisson_binomial(m, epsilon=epsilon)
        if mechanism is None:
            return [known | {"status": "infeasible", "error": "no parameter of the search meets the budget"}]
        private = audit_quantizer(mechanism).epsilon if isinstance(mechanism, Quantizer) else mechanism.epsilon
        a, b = error_function(cost)
        error = a * mechanism.mae(density) + b * mechanism.mse(density)
        return [
            known | {
                "objective": error, "pure_epsilon": private, "mae": mechanism.mae(density),
                "mse": mechanism.mse(density), "reach": float(mechanism.outputs[-1]),
                "status": "searched" if name == "rqm" else "closed form",
            }
        ]  # fmt: skip

    return compute


def _laplace(epsilon: Fraction, cost: Any) -> Task:
    """Laplace noise of scale b = 2/ε: MAE b, mean squared error 2b²."""

    def compute() -> list[Row]:
        scale = 2 / float(epsilon)
        a, b = error_function(cost)
        errors = {"objective": a * scale + b * 2 * scale**2, "mae": scale, "mse": 2 * scale**2}
        known = _known("baseline", "laplace", epsilon, cost)
        return [known | errors | {"pure_epsilon": float(epsilon), "status": "closed form"}]

    return compute


def _draw(table: pd.DataFrame, title: str, cost: str) -> Plots:
    error = {"mae": "mean absolute error", "mse": "mean squared error"}.get(cost, f"error {cost}")
    series, epsilon, logged = all_series(SERIES, table), Quantity("epsilon", "ε"), Quantity("objective", error, True)
    return {
        "error_epsilon": partial(
            by_panel,
            table, Quantity("levels", "{:g} outputs"), epsilon, logged, series, f"{title}: error against ε",
        ),
        "error_levels": partial(
            by_panel,
            table, Quantity("epsilon", "ε = {:.3g}"), Quantity("levels", "number of outputs"), logged, series,
            f"{title}: error against outputs",
        ),
        "heat_map": partial(
            heat,
            table[(table["curve"] == "point") & (table["mechanism"] == "exact")], epsilon,
            Quantity("levels", "outputs (one row each)"), Quantity("objective", error), f"{title}: exact quantizer",
        ),
    }  # fmt: skip
