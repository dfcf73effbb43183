"""The trade-off curves of `workbench frontier`, at a moderate size: not a paper's, but made of all of them.

One run per kind of frontier is shared by its artifacts; seconds are left out, so that a table is the same every time.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import TYPE_CHECKING

from workbench import rooms

# isort: split
import pandas as pd

from workbench import frontier_labels, frontier_laplace, frontier_noise, frontier_quantizer
from workbench.errors import WorkbenchError
from workbench.frontier import Plan, frame, run
from workbench.frontier_table import budget_table
from workbench.frontier_table import plan as table_plan
from workbench.grids import grid
from workbench.mechanisms.labels import Labels
from workbench.mechanisms.modulo import ModuloNoise
from workbench.papers.artifact import Artifact, Paper

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["PAPER"]

rooms.check()


def _noise(full: bool) -> Plan:
    epsilons = grid("0.1:4:40" if full else "0.4:4:10", "epsilon")
    deltas = grid("0,1e-6,0.01,0.1", "delta")
    return frontier_noise.plan(ModuloNoise(n=8, max_shift=3), epsilons, deltas, notions=("pdp", "dp"))


def _quantizer(full: bool) -> Plan:
    epsilons = grid("0.5:3:11" if full else "0.5,1,2", "epsilon")
    methods = ("exact", "mvu", "optm") if full else ("exact",)
    return frontier_quantizer.plan([2, 4, 8], epsilons, methods=methods, starts=4 if full else 1)


def _labels(full: bool) -> Plan:
    epsilons = grid("0.1:8:20:log" if full else "0.5:8:6:log", "epsilon")
    methods = ("bins", "lp", "unbiased")
    return frontier_labels.plan(Labels.uniform(0, 10), epsilons, grid("0,0.01,0.1", "delta"), methods=methods)


def _laplace(full: bool) -> Plan:
    return frontier_laplace.plan(grid("0.2:4:20" if full else "0.25:4:6:log", "epsilon"), grid("3,4,5,8", "bits"))


_PLANS: dict[str, Callable[[bool], Plan]] = {
    "noise": _noise, "quantizer": _quantizer, "labels": _labels, "laplace": _laplace,
}  # fmt: skip


@lru_cache
def _made(kind: str, full: bool) -> tuple[Plan, pd.DataFrame]:
    """A plan and its rows. Raises WorkbenchError when a request failed."""
    plan = _PLANS[kind](full)
    outcome = run(plan)
    if outcome.interrupted:
        raise KeyboardInterrupt
    table = frame(outcome.rows)
    failed = table[table["status"] == "failed"]
    if len(failed):
        raise WorkbenchError(f"The {kind} frontier has a row that failed: {failed['error'].iloc[0]}")
    return plan, table.drop(columns=["seconds"])


def _artifact(
    name: str, kind: str, plot: str, curves: tuple[str, ...], title: str, caption: str
) -> Callable[[bool], Artifact]:
    def compute(full: bool) -> Artifact:
        plan, rows = _made(kind, full)
        table = rows[rows["curve"].isin(curves)].dropna(axis="columns", how="all").reset_index(drop=True)

        def draw(_: pd.DataFrame) -> Figure:
            figure = plan.draw(rows)[plot]()
            assert figure is not None  # the rows are complete
            return figure

        judged = table["oracle_agrees"].dropna() if "oracle_agrees" in table else pd.Series(dtype=bool)
        words = f" Closed forms agree with {int(judged.sum())} of {len(judged)} solver runs." if len(judged) else ""
        return Artifact(name, title, table, draw, caption + words)

    return compute


_QUERY = "Queries with answers 0..8 whose neighbouring answers differ by at most 3 (symmetric). "


def _budgets(full: bool) -> Artifact:
    bits = grid("2,4,6" if full else "2,6", "bits")
    plan = table_plan(grid("0.5,1,2" if full else "1", "epsilon"), grid("0,0.01", "delta"), bits)
    outcome = run(plan)
    if outcome.interrupted:
        raise KeyboardInterrupt
    table = budget_table(outcome.rows, bits)
    best = table[table["best"]].drop(columns=["best", "fits", "error"])
    caption = (
        "The least error of every comparable group at a budget, among the mechanisms that fit its bits; ties are all "
        "listed. bound: no mechanism of the group errs less, where one is proven. Only rows of one group may be "
        "compared. All candidates: `workbench frontier table`. The optimum over all channels shows what modulo noise "
        "pays for protecting answers that wrap around: for counts with neighbours ±1 the clamped geometric law is as "
        "good as any channel."
    )
    return Artifact("budgets", "Which mechanism for which budget", best.reset_index(drop=True), None, caption)


PAPER = Paper(
    name="frontier",
    title="Trade-offs between privacy and error",
    citation="Computed by `workbench frontier`; no paper's figures, but the models, laws and baselines of all of them.",
    artifacts={
        "noise_error_epsilon": _artifact(
            "noise_error_epsilon", "noise", "error_epsilon", ("point",), "Optimal noise: error against ε",
            _QUERY + "Every marker is a certified design. At small δ the PDP optimum is that of δ = 0.",
        ),
        "noise_error_delta": _artifact(
            "noise_error_delta", "noise", "error_delta", ("point", "piece"), "Optimal noise: error against δ",
            _QUERY + "Lines: the exact optimal value function, PDP by proven pieces (their ends marked), DP by the law "
            "(1 - δ)ρ₀. Under PDP an error moves only where δ pays for a whole set of violations.",
        ),
        "noise_level_curves": _artifact(
            "noise_level_curves", "noise", "level_curves", ("level",), "Optimal noise: least δ at a fixed error rate",
            _QUERY + "Markers: minimum-δ programs (15), certified; lines: the exact frontier inverted at 40 ε "
            "and more, joined by straight lines.",
        ),
        "noise_heat_map": _artifact(
            "noise_heat_map", "noise", "heat_map", ("point",), "Optimal noise: error over ε and δ",
            _QUERY + "One row of cells for every δ.",
        ),
        "noise_baselines": _artifact(
            "noise_baselines", "noise", "baselines", ("point", "baseline"),
            "Optimal noise beside the papers' baselines at the same budget",
            _QUERY + "Each baseline has the smallest parameter that meets (ε, δ) by the exact audit, found by a scan. "
            "Baselines protect answers within 3 of each other, modulo noise also those that wrap around.",
        ),
        "quantizer": _artifact(
            "quantizer", "quantizer", "error_levels", ("point", "baseline", "limit"),
            "Unbiased quantizers: error against the number of outputs",
            "Mean absolute error, uniform inputs on [-1, 1]. Exact quantizer with searched outputs (best found, no "
            "optimum over outputs is claimed), certified; RQM at the best parameters of a grid, PBM at its largest "
            "private θ.",
        ),
        "labels": _artifact(
            "labels", "labels", "error_epsilon", ("point", "baseline"), "Label randomizers: loss against ε",
            "Labels 0..10, uniform prior, squared loss, exact expectations. RR-on-Bins is optimal over all outputs; "
            "the unbiased randomizer answers another question and is drawn for its price.",
        ),
        "laplace": _artifact(
            "laplace", "laplace", "decoder_epsilon", ("point", "level"),
            "Dyadic quantized Laplace: privacy against the decoder within a bit budget",
            "x uniform on [-1, 1], signed Elias gamma. The database always has ε; the decoder ℓε with the smallest ℓ "
            "whose exact mean length fits. Missing points: no ℓ fits.",
        ),
        "budgets": _budgets,
    },
)  # fmt: skip
