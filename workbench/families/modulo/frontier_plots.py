"""The plots of a noise frontier, each from its table alone, so that an interrupted run is drawn as far as it went.

Lines are closed forms and exact pieces, hollow markers solver runs, bands the proven interval [bound, objective] where
it is not closed. Under PDP the least error jumps with ε and δ, and the least δ with ε: between two computed budgets the
line keeps the value of the smaller one, which holds at both.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from workbench.families.frontier_plan import LEAST_EPSILON
from workbench.families.frontier_plots import Exact, Line, Quantity, Series, all_series, by_panel, drawstyle, each
from workbench.families.modulo.delta_frontier import first_delta
from workbench.families.notion_points import notion_plots
from workbench.families.requirements import ratio_notions
from workbench.io.result import Plots
from workbench.privacy.notions import notion as named

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure


SERIES = {
    "optimal": Series("optimal modulo noise", 0), "geometric": Series("clamped geometric", 1, "--"),
    "gaussian": Series("clamped discrete Gaussian", 2, "-."), "exponential": Series("exponential mechanism", 3, ":"),
    "data-independent": Series("data-independent", 4, (0, (5, 1, 1, 1))),
}  # fmt: skip
_PANEL = Quantity("panel", "{}")
_EPSILON = Quantity("epsilon", "ε")


def draw(table: pd.DataFrame, title: str, loss: str) -> Plots:
    """Every plot by name; it is drawn when called, None where the rows do not allow it."""
    loss = {"squared": "squared error"}.get(loss, loss.replace("-", " "))
    least = table["mechanism"].eq(LEAST_EPSILON)
    others = ~table["notion"].isin([*ratio_notions()]) | (table["runs"].gt(1) if "runs" in table else False)
    rows = table[~least & ~others & table["objective"].notna()]
    rows = rows.assign(panel=[named(name).title for name in rows["notion"]])
    rows = rows.assign(bound=rows["bound"].astype(float).fillna(0.0))  # without any bound an interval reaches down to 0
    points, pieces, levels, rivals = (rows[rows["curve"] == name] for name in ("point", "piece", "level", "baseline"))
    remark = " (they protect both sides of a pair)" if "directed differences" in title else ""
    beside = f"Optimal noise beside published mechanisms at the same budget{remark}\n{title}"
    error = Quantity("objective", f"least {loss}")
    return {
        "error_epsilon": partial(_error_epsilon, points, error, f"Least {loss} against ε\n{title}"),
        "error_delta": partial(_error_delta, points, pieces, error, f"Least {loss} against δ\n{title}"),
        "level_curves": partial(_level_curves, levels, pieces, loss, f"Least δ against ε at fixed {loss}\n{title}"),
        "baselines": partial(
            by_panel,
            _ratios(rows[rows["curve"].isin(("point", "baseline"))]) if len(rivals) else rivals,
            _PANEL,
            _EPSILON,
            Quantity("ratio", f"{loss} / least {loss}", True),
            all_series(SERIES, rivals),
            beside,
        ),
        **notion_plots(table, SERIES, title, loss),
    }


def _ratios(rows: pd.DataFrame) -> pd.DataFrame:
    """How many times the least loss at the same budget each costs, in panels that name notion and δ; those whose ratios
    are the same to 2 % are one."""
    least = rows[rows["curve"].eq("point")].groupby(["panel", "delta", "epsilon"])["objective"].min().rename("least")
    rows = rows.join(least, on=["panel", "delta", "epsilon"])
    rows = rows[rows["least"].gt(0)].assign(ratio=lambda own: own["objective"] / own["least"])
    apart: list[tuple[Any, list[Any], pd.DataFrame]] = []
    for (panel, delta), part in rows.groupby(["panel", "delta"], sort=False):
        ratios = part.pivot_table(index="epsilon", columns="mechanism", values="ratio")
        alike = [own for name, own, other in apart if name == panel and _close(other, ratios)]
        if alike:
            alike[0].append(delta)
        else:
            apart.append((panel, [delta], ratios))
    words = {(panel, own[0]): f"{panel}, δ = {', '.join(f'{d:g}' for d in own)}" for panel, own, _ in apart}
    known: list[Any] = [words.get(place) for place in zip(rows["panel"], rows["delta"], strict=True)]
    return rows.assign(panel=known, notion=None).dropna(subset=["panel"])


def _close(first: pd.DataFrame, second: pd.DataFrame) -> bool:
    return first.shape == second.shape and np.allclose(first, second, rtol=0.02, equal_nan=True)


def _dash(words: pd.Series[Any]) -> str:
    """Of a line whose rows all say that it is an optimum, or not."""
    return "-" if words.isin(("optimal", "optimum")).all() else "--"


def _error_epsilon(points: pd.DataFrame, error: Quantity, title: str) -> Figure | None:
    known = points[points["oracle_value"].notna()].sort_values("epsilon")
    lines = [
        Line(panel, delta, law["epsilon"], law["oracle_value"], _dash(law["oracle_kind"]), drawstyle(law))
        for (panel, delta), law in known.groupby(["panel", "delta"])
    ]
    exact = Exact(lines, "closed form", "upper bound, partly")
    deltas = each(points["delta"], "δ = {:g}", nested=True)
    return by_panel(points, _PANEL, _EPSILON, error, deltas, title, by="delta", exact=exact)


def _error_delta(points: pd.DataFrame, pieces: pd.DataFrame, error: Quantity, title: str) -> Figure | None:
    shown = points[points["notion"].map(lambda notion: named(notion).has_delta).astype(bool)]
    reach = min(1.0, max(0.3, 1.5 * float(points["delta"].max())))
    lines = [
        Line(
            piece["panel"],
            piece["epsilon"],
            [piece["delta"], piece["delta_high"]],
            [piece["objective"], piece["objective_high"]],
            "-" if piece["status"] == "optimal" else "--",
            marker="|",
        )
        for _, piece in pieces.iterrows()
    ]
    traced = points[points["epsilon"].isin(pieces["epsilon"])]
    epsilons = each((traced if len(traced) else points)["epsilon"], "ε = {:.4g}", 5)
    exact = Exact(lines, "exact frontier with its breakpoints", "not proven in time")
    delta = Quantity("delta", "δ", most=reach)
    return by_panel(shown, _PANEL, delta, error, epsilons, title, by="epsilon", exact=exact)


def _level_curves(levels: pd.DataFrame, pieces: pd.DataFrame, loss: str, title: str) -> Figure | None:
    lines, errors = [], each(levels["max_loss"] if len(levels) else (), loss + " = {:g}")
    inverted = pieces if pieces["epsilon"].nunique() >= levels["epsilon"].nunique() else pieces[:0]
    for panel, traced in inverted.groupby("panel"):
        dash, joined = _dash(traced["status"]), drawstyle(traced)
        parts = [part.sort_values("delta") for _, part in traced.groupby("epsilon")]
        for error in errors:
            least = [_first_delta(part, error) for part in parts]
            lines.append(Line(panel, error, sorted({*traced["epsilon"]}), least, dash, joined))
    exact = Exact(lines, "exact frontier, inverted", "not all of it proven in time")
    points, delta = levels.assign(curve="point"), Quantity("objective", "least δ")
    return by_panel(points, _PANEL, _EPSILON, delta, errors, title, by="max_loss", exact=exact)


def _first_delta(pieces: pd.DataFrame, most: float) -> float:
    """The least δ whose exact frontier is within a loss; NaN where none is."""
    deltas, losses = (pieces[[x, f"{x}_high"]].astype(float).to_numpy().tolist() for x in ("delta", "objective"))
    least = first_delta(deltas, losses, most)
    return float("nan") if least is None else least
