"""The trade-off curves of `workbench frontier`, at a moderate size: not a paper's, but made of all of them.

One run per kind of frontier is shared by its artifacts; seconds are left out, so that a table is the same every time.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import TYPE_CHECKING

import pandas as pd

from workbench.errors import WorkbenchError
from workbench.frontiers.budget_table import budget_table
from workbench.frontiers.run import frontier
from workbench.io.result import Result
from workbench.mechanisms.label_randomizers.labels import Labels
from workbench.mechanisms.modulo import ModuloNoise
from workbench.papers.artifact import DIGITS, Artifact, Paper, rounded

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["PAPER"]


_EXPECTED = ("infeasible", "unreachable")  # what no parameter or no code meets is an answer


def _noise(full: bool) -> Result:
    epsilon = "0.1:4:40" if full else "0.4:4:10"
    question = ModuloNoise(n=8, max_shift=3)
    return frontier(question, epsilon=epsilon, delta="0,1e-6,0.01,0.1", notion="pdp,dp", whole=True)


def _quantizer(full: bool) -> Result:
    method = "exact,mvu,optm" if full else "exact"
    epsilon = "0.5:3:11" if full else "0.5,1,2"
    return frontier("quantizer", levels="2,4,8", epsilon=epsilon, method=method, starts=4 if full else 1)


def _labels(full: bool) -> Result:
    epsilon = "0.1:8:20:log" if full else "0.5:8:6:log"
    return frontier(Labels.uniform(0, 10), epsilon=epsilon, delta="0,0.01,0.1", method="bins,lp,unbiased")


def _laplace(full: bool) -> Result:
    return frontier("laplace", epsilon="0.2:4:20" if full else "0.25:4:6:log", bits="3,4,5,8")


def _additive(full: bool) -> Result:
    return frontier("noise", epsilon=4, delta="1e-5", runs="1,2,4,8,16,32,64" if full else "1,4,16")


_FRONTIERS: dict[str, Callable[[bool], Result]] = {
    "modulo": _noise,
    "quantizer": _quantizer,
    "labels": _labels,
    "laplace": _laplace,
    "noise": _additive,
}


# significant digits that a solver's or a search's tolerance leaves certain; of the others, the usual number
_CONVERGED = {"noise": 5, "labels": 5, "quantizer": 5, "dp_delta": 6}  # of a kind of frontier, or of a column


@lru_cache
def _computed(kind: str, full: bool) -> tuple[Result, pd.DataFrame]:
    """A frontier and its table. Raises WorkbenchError when a request failed."""
    result = _FRONTIERS[kind](full)
    if result.interrupted:
        raise KeyboardInterrupt
    table = result.to_frame()
    failed = table[table["objective"].isna() & table["failure"].notna() & ~table["status"].isin(_EXPECTED)]
    if len(failed):
        raise WorkbenchError(f"The {kind} frontier has a row that failed: {failed['failure'].iloc[0]}")
    table = table.drop(columns=["seconds"])
    if kind == "noise":  # what one run of a search's noise is private to hangs on masses that cost next to nothing
        table = table.drop(columns=["pdp_delta", "dp_delta", "pure_epsilon"])
    if kind == "labels":  # how many outputs an LP's optimum uses is not determined where several laws are optimal
        table.loc[table["mechanism"] == "unbiased", "outputs_used"] = None
    for column in table.columns.difference(["epsilon", "delta"]):
        digits = min(_CONVERGED.get(name, DIGITS) for name in (kind, str(column)))
        table[column] = [rounded(v, digits) if isinstance(v, float) else v for v in table[column]]
    return result, table


def _artifact(
    name: str, kind: str, plot: str, curves: tuple[str, ...], title: str, caption: str
) -> Callable[[bool], Artifact]:
    def compute(full: bool) -> Artifact:
        result, rows = _computed(kind, full)
        table = rows[rows["curve"].isin(curves)].dropna(axis="columns", how="all").reset_index(drop=True)

        def draw(_: pd.DataFrame) -> Figure:
            figure = result.draw(rows)[plot]()
            assert figure is not None  # the rows are complete
            return figure

        verdicts = table["oracle_agrees"].dropna() if "oracle_agrees" in table else pd.Series(dtype=bool)
        words = (
            f" Closed forms agree with {int(verdicts.sum())} of {len(verdicts)} solver runs." if len(verdicts) else ""
        )
        return Artifact(name, title, table, draw, caption + words)

    return compute


_QUERY = "Queries with answers 0..8 whose neighbouring answers differ by at most 3 (symmetric). "


def _budgets(full: bool) -> Artifact:
    result = budget_table("0.5,1,2" if full else "1", "0,0.01", "2,4,6" if full else "2,6")
    if result.interrupted:
        raise KeyboardInterrupt
    table = result.to_frame()
    best = table[table["best"]].drop(columns=["best", "fits", "failure", "gap"])
    caption = (
        "The least error of every comparable group at a budget, among the mechanisms that fit its bits; ties are all "
        "listed. bound: no mechanism of the group errs less, where one is proven. Only rows of one group may be "
        "compared. All candidates: `workbench frontier table`. The optimum over all channels shows what modulo noise "
        "pays for protecting answers that wrap around: for counts with neighbours ±1 the clamped geometric law is as "
        "good as any channel."
    )
    return Artifact(
        "budgets",
        "Which mechanism for which budget",
        best.reset_index(drop=True),
        None,
        caption,
        digits={"objective": 6, "bound": 6},
    )


PAPER = Paper(
    name="frontier",
    title="Trade-offs between privacy and error",
    citation="Computed by `workbench frontier`; no paper's figures, but the models, laws and baselines of all of them.",
    artifacts={
        "noise_error_epsilon": _artifact(
            "noise_error_epsilon",
            "modulo",
            "error_epsilon",
            ("point",),
            "Optimal noise: error against ε",
            _QUERY + "Every marker is a certified design. At small δ the PDP optimum is that of δ = 0.",
        ),
        "noise_error_delta": _artifact(
            "noise_error_delta",
            "modulo",
            "error_delta",
            ("point", "piece"),
            "Optimal noise: error against δ",
            _QUERY + "Lines: the exact optimal value function, PDP by proven pieces (their ends marked), DP by the law "
            "(1 - δ)ρ₀. Under PDP an error moves only where δ pays for a whole set of violations.",
        ),
        "noise_level_curves": _artifact(
            "noise_level_curves",
            "modulo",
            "level_curves",
            ("level",),
            "Optimal noise: least δ at a fixed error rate",
            _QUERY + "Markers: minimum-δ programs (15), certified; lines: the exact frontier inverted at 40 ε and "
            "more. Under PDP the least δ jumps, and keeps its last value until the next of these ε; under DP it is "
            "continuous, and they are joined by straight lines.",
        ),
        "noise_heat_map": _artifact(
            "noise_heat_map",
            "modulo",
            "heat_map",
            ("point",),
            "Optimal noise: error over ε and δ",
            _QUERY + "One row of cells for every δ.",
        ),
        "noise_baselines": _artifact(
            "noise_baselines",
            "modulo",
            "baselines",
            ("point", "baseline"),
            "Optimal noise beside the papers' baselines at the same budget",
            _QUERY + "Each baseline has the smallest parameter that meets (ε, δ) by the exact audit, found by a scan. "
            "Baselines protect answers within 3 of each other, modulo noise also those that wrap around.",
        ),
        "quantizer": _artifact(
            "quantizer",
            "quantizer",
            "error_levels",
            ("point", "baseline", "limit"),
            "Unbiased quantizers: error against the number of outputs",
            "Mean absolute error, uniform inputs on [-1, 1]. Exact quantizer with searched outputs (best found, no "
            "optimum over outputs is claimed), certified; RQM at the best parameters of a grid, PBM at its largest "
            "private θ.",
        ),
        "labels": _artifact(
            "labels",
            "labels",
            "error_epsilon",
            ("point", "baseline"),
            "Label randomizers: loss against ε",
            "Labels 0..10, uniform prior, squared loss, exact expectations. RR-on-Bins is optimal over all outputs; "
            "the unbiased randomizer answers another question and is drawn for its price.",
        ),
        "laplace": _artifact(
            "laplace",
            "laplace",
            "decoder_epsilon",
            ("point", "level"),
            "Dyadic quantized Laplace: privacy against the decoder within a bit budget",
            "x uniform on [-1, 1], signed Elias gamma. The database always has ε; the decoder ℓε with the smallest ℓ "
            "whose exact mean length fits. Missing points: no ℓ fits.",
        ),
        "runs": _artifact(
            "runs",
            "noise",
            "loss_runs",
            ("point", "limit", "baseline"),
            "Noise on the integers for many runs under one budget: the loss of one run",
            "Sensitivity 1, squared loss, ε = 4 and δ = 1e-5 for all runs together. Ours: the best found, its "
            "composition proven by convolution in integers; for one run the optimum. The bound holds for all symmetric "
            "noise. "
            "Geometric and discrete Gaussian noise have the least loss at which the same budget is met.",
        ),
        "budgets": _budgets,
    },
    seconds={"budgets": 46, "quantizer": 27, "noise_error_epsilon": 13, "runs": 13, "laplace": 6, "labels": 3},
    together=[("noise_error_epsilon", "noise_error_delta", "noise_level_curves", "noise_heat_map", "noise_baselines")],
)
