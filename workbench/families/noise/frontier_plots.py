"""The plots of a noise frontier, each from its table alone, so that an interrupted run is drawn as far as it went.

Lines are closed forms and exact pieces, hollow markers solver runs, bands the proven interval [bound, objective] where
it is not closed.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from workbench.families.notion_points import LEAST_EPSILON, notion_plots
from workbench.io.figures import COLOURS, MARKERS, SOLVER, legend_below, panels
from workbench.privacy.notions import notion as named

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["draw"]

OPEN = 1e-6  # a gap from here on is drawn as a band
_BASELINES = {
    "geometric": "clamped geometric", "gaussian": "clamped discrete Gaussian", "exponential": "exponential mechanism",
    "data-independent": "data-independent",
}  # fmt: skip


def draw(table: pd.DataFrame, title: str, cost: str) -> dict[str, Callable[[], Figure | None]]:
    """Every plot by name; it is drawn when called, None where the rows do not allow it."""
    cost = {"squared": "squared error"}.get(cost, cost.replace("-", " "))
    plots: dict[str, Callable[[pd.DataFrame, str, str], Figure | None]] = {
        "error_epsilon": _error_epsilon, "error_delta": _error_delta, "level_curves": _level_curves,
        "heat_map": _heat_map, "baselines": _baselines,
    }  # fmt: skip
    least = table["mechanism"].eq(LEAST_EPSILON)
    drawings = {name: partial(plot, table[~least], title, cost) for name, plot in plots.items()}
    return {**drawings, "epsilon_budget": notion_plots(table[least], {}, title, cost)["epsilon_budget"]}


def _points(table: pd.DataFrame, curve: str = "point") -> pd.DataFrame:
    return table[(table["curve"] == curve) & table["objective"].notna()]


def _notions(table: pd.DataFrame) -> list[str]:
    return list(dict.fromkeys(table["notion"]))


def _few(values: Sequence[float], most: int = 5) -> list[float]:
    """At most so many of the values, spread over their order."""
    ordered = sorted(set(values))
    return [
        ordered[k] for k in np.unique(np.linspace(0, len(ordered) - 1, min(most, len(ordered))).round().astype(int))
    ]


def _open_band(axis: Axes, x: str, here: pd.DataFrame, colour: str) -> None:
    """The proven interval of points whose gap is not closed; without any bound, down to 0."""
    low = here["bound"].astype(float).fillna(0.0)
    if (here["objective"] - low > OPEN * here["objective"].abs().clip(lower=1)).any():
        axis.fill_between(
            here[x].astype(float), low, here["objective"].astype(float), color=colour, alpha=0.25, linewidth=0
        )


def _entries(axis: Axes, *, law: bool = True, solver: str | None = None) -> None:
    """Legend entries for what lines and markers mean."""
    if law:
        axis.plot([], [], color="black", label="line: closed form")
    if solver:
        axis.plot([], [], color="black", marker="o", label=f"marker: {solver}", **SOLVER)


def _band_entry(axis: Axes, points: pd.DataFrame) -> None:
    """A legend entry for bands, where there are any."""
    gap = points["objective"].astype(float) - points["bound"].astype(float).fillna(0.0)
    if (gap > OPEN * points["objective"].abs().clip(lower=1)).any():
        axis.fill_between([], [], [], color="black", alpha=0.25, linewidth=0, label="band: [bound, objective]")


def _frame(axis: Axes, points: pd.DataFrame) -> None:
    """From 0 up, unless that would press the curves against the top."""
    low, high = float(points["objective"].min()), float(points["objective"].max())
    axis.set_ylim(0.0 if low < 0.6 * high else low - 0.35 * (high - low), high + 0.06 * (high - min(low, 0.6 * high)))


def _error_epsilon(table: pd.DataFrame, title: str, cost: str) -> Figure | None:
    points = _points(table)
    if points["epsilon"].nunique() < 2:
        return None
    notions = _notions(points)
    figure, axes = panels(len(notions), width=5.4, height=4.4)
    every = max(1, points["epsilon"].nunique() // 14)
    for axis, notion in zip(axes, notions, strict=True):
        shown = _few(points["delta"].tolist(), 6)
        for k, delta in enumerate(shown):
            width = 1.2 * (len(shown) - k)  # curves that coincide show as one inside the other
            here = points[(points["notion"] == notion) & (points["delta"] == delta)].sort_values("epsilon")
            if here.empty:
                continue
            colour = COLOURS[k % len(COLOURS)]
            proven = here[here["oracle_value"].notna()]
            if len(proven):
                unsure = (proven["oracle_kind"] != "optimum").any()
                axis.plot(proven["epsilon"], proven["oracle_value"], color=colour, linestyle="--" if unsure else "-",
                          linewidth=width, label=f"δ = {delta:g}")  # fmt: skip
            else:
                axis.plot(here["epsilon"], here["objective"], color=colour, linewidth=width, label=f"δ = {delta:g}")
            _open_band(axis, "epsilon", here, colour)
            axis.plot(here["epsilon"], here["objective"], color=colour, marker=MARKERS[k % len(MARKERS)],
                      markevery=(k * every // 4, every), **SOLVER)  # fmt: skip
        axis.set_title(named(notion).title, fontsize=10)
        axis.set_xlabel("ε")
        axis.set_ylabel(f"least {cost}")
        _frame(axis, points)
    _band_entry(axes[0], points)
    dashes = (points["oracle_kind"] == "upper bound").any()
    lines = bool(points["oracle_value"].notna().any())
    _entries(axes[0], law=lines, solver="solver, certified" if points["certified"].eq(True).all() else "solver")
    if dashes:
        axes[0].plot([], [], color="black", linestyle="--", label="dashed: upper bound, partly")
    figure.suptitle(f"Least {cost} against ε\n{title}", fontsize=10)
    legend_below(figure, axes, columns=4)
    return figure


def _error_delta(table: pd.DataFrame, title: str, cost: str) -> Figure | None:
    points, pieces = _points(table), _points(table, "piece")
    notions = [notion for notion in _notions(points) if named(notion).has_delta]
    if not notions or (pieces.empty and points["delta"].nunique() < 2):
        return None
    traced = points[points["epsilon"].isin(pieces["epsilon"])]
    chosen = _few((traced if len(traced) else points)["epsilon"].tolist())
    reach = min(1.0, max(0.3, 1.5 * float(points["delta"].max())))
    figure, axes = panels(len(notions), width=5.4, height=4.4)
    for axis, notion in zip(axes, notions, strict=True):
        for k, epsilon in enumerate(chosen):
            colour, label = COLOURS[k % len(COLOURS)], f"ε = {epsilon:.4g}"
            here = pieces[(pieces["notion"] == notion) & (pieces["epsilon"] == epsilon)].sort_values("delta")
            dots = points[(points["notion"] == notion) & (points["epsilon"] == epsilon)].sort_values("delta")
            for _, piece in here.iterrows():
                axis.plot(
                    [piece["delta"], piece["delta_high"]], [piece["objective"], piece["objective_high"]], color=colour,
                    linestyle="-" if piece["status"] == "optimal" else "--", label=label,
                )  # fmt: skip
            inner = here[(here["delta"] > 0) & (here["delta"] < reach)]
            axis.plot(inner["delta"], inner["objective"], color=colour, marker="|", markersize=9, linestyle="none")
            if here.empty:
                axis.plot(dots["delta"], dots["objective"], color=colour, linewidth=0.8, label=label)
            _open_band(axis, "delta", dots, colour)
            axis.plot(dots["delta"], dots["objective"], color=colour, marker=MARKERS[k % len(MARKERS)], **SOLVER)
        axis.set_title(named(notion).title, fontsize=10)
        axis.set_xlabel("δ")
        axis.set_ylabel(f"least {cost}")
        axis.set_xlim(-0.01 * reach, reach)
        _frame(axis, points)
    if len(pieces):
        axes[0].plot([], [], color="black", label="line: exact frontier")
        axes[0].plot([], [], color="black", marker="|", markersize=9, linestyle="none", label="its breakpoints")
        if (pieces["status"] != "optimal").any():
            axes[0].plot([], [], color="black", linestyle="--", label="dashed: not proven in time")
    _entries(axes[0], law=False, solver="solver")
    _band_entry(axes[0], points)
    figure.suptitle(f"Least {cost} against δ\n{title}", fontsize=10)
    legend_below(figure, axes, columns=4)
    return figure


def _inverse(pieces: pd.DataFrame, budget: float) -> float:
    """The least δ whose exact frontier is within the budget."""
    for _, piece in pieces.sort_values("delta").iterrows():
        a, b = float(piece["delta"]), float(piece["delta_high"])
        va, vb = float(piece["objective"]), float(piece["objective_high"])
        if va <= budget:
            return a
        if vb <= budget:
            return a + (b - a) * (va - budget) / (va - vb)
    return float("nan")


def _level_curves(table: pd.DataFrame, title: str, cost: str) -> Figure | None:
    levels, pieces = _points(table, "level"), _points(table, "piece")
    if levels["epsilon"].nunique() < 2:
        return None
    notions = _notions(levels)
    figure, axes = panels(len(notions), width=5.4, height=4.4)
    every = max(1, levels["epsilon"].nunique() // 14)
    for axis, notion in zip(axes, notions, strict=True):
        exact = pieces[pieces["notion"] == notion]
        for k, budget in enumerate(_few(levels["budget"].tolist(), 6)):
            here = levels[(levels["notion"] == notion) & (levels["budget"] == budget)].sort_values("epsilon")
            colour, label = COLOURS[k % len(COLOURS)], f"{cost} = {budget:g}"
            if exact["epsilon"].nunique() >= here["epsilon"].nunique():
                line = [(float(str(e)), _inverse(part, budget)) for e, part in exact.groupby("epsilon")]
                whole = exact["status"].eq("optimal").all()
                axis.plot(*zip(*line, strict=True), color=colour, linestyle="-" if whole else "--", label=label)
            else:
                axis.plot(here["epsilon"], here["objective"], color=colour, linewidth=0.8, label=label)
            _open_band(axis, "epsilon", here, colour)
            axis.plot(here["epsilon"], here["objective"], color=colour, marker=MARKERS[k % len(MARKERS)],
                      markevery=(k * every // 4, every), **SOLVER)  # fmt: skip
        axis.set_title(named(notion).title, fontsize=10)
        axis.set_xlabel("ε")
        axis.set_ylabel("least δ")
        axis.set_ylim(bottom=0)
    if len(pieces):
        axes[0].plot([], [], color="black", label="line: exact frontier, inverted")
        if not pieces["status"].eq("optimal").all():
            axes[0].plot([], [], color="black", linestyle="--", label="dashed: not all of it proven in time")
    _entries(axes[0], law=False, solver="minimum-δ solver run")
    figure.suptitle(f"Least δ against ε at fixed {cost}\n{title}", fontsize=10)
    legend_below(figure, axes, columns=3)
    return figure


def _heat_map(table: pd.DataFrame, title: str, cost: str) -> Figure | None:
    points = _points(table)
    if points["epsilon"].nunique() < 2 or points["delta"].nunique() < 2:
        return None
    notions = _notions(points)
    rows = points["delta"].nunique()
    figure, axes = panels(len(notions), width=5.4, height=min(6.0, 1.6 + 0.45 * rows))
    low, high = float(points["objective"].min()), float(points["objective"].max())
    image = None
    for axis, notion in zip(axes, notions, strict=True):
        grid = points[points["notion"] == notion].pivot_table(index="delta", columns="epsilon", values="objective")
        x = np.asarray(grid.columns, dtype=float)
        middle = (x[1:] + x[:-1]) / 2
        edges = np.concatenate([[x[0]], middle, [x[-1]]])
        image = axis.pcolormesh(
            edges, np.arange(len(grid) + 1) - 0.5, grid.to_numpy(), cmap="viridis", vmin=low, vmax=high
        )
        axis.grid(False)
        step = max(1, len(grid) // 12)
        axis.set_yticks(range(0, len(grid), step), [f"{float(d):.4g}" for d in grid.index][::step])
        axis.set_title(named(notion).title, fontsize=10)
        axis.set_xlabel("ε")
        axis.set_ylabel("δ (one row each)")
    assert image is not None
    figure.colorbar(image, ax=axes, label=f"least {cost}")
    figure.suptitle(title, fontsize=10)
    return figure


def _baselines(table: pd.DataFrame, title: str, cost: str) -> Figure | None:
    points, rivals = _points(table), _points(table, "baseline")
    if rivals["epsilon"].nunique() < 2:
        return None
    notions, deltas = _notions(rivals), _few(rivals["delta"].tolist(), 4)
    figure, axes = panels(len(deltas), len(notions), width=3.6, height=3.2)
    for axis, (notion, delta) in zip(axes, ((n, d) for n in notions for d in deltas), strict=True):
        at = points[(points["notion"] == notion) & (points["delta"] == delta)].sort_values("epsilon")
        axis.plot(at["epsilon"], at["objective"], color=COLOURS[0], linewidth=2, label="optimal modulo noise")
        _open_band(axis, "epsilon", at, COLOURS[0])
        others = {name: name for name in rivals["mechanism"].unique() if name not in _BASELINES}
        for k, (name, label) in enumerate((_BASELINES | others).items(), 1):
            here = rivals[
                (rivals["mechanism"] == name) & (rivals["notion"] == notion) & (rivals["delta"] == delta)
            ].sort_values("epsilon")
            if len(here):
                dash = ("--", "-.", ":", (0, (5, 1, 1, 1)))[(k - 1) % 4]
                axis.plot(
                    here["epsilon"], here["objective"], color=COLOURS[k % len(COLOURS)], linestyle=dash, label=label
                )
        axis.set_title(f"{named(notion).title}, δ = {delta:g}", fontsize=10)
        axis.set_ylim(bottom=0)
        axis.set_xlabel("ε")
        axis.set_ylabel(cost)
    remark = " (they protect both sides of a pair)" if "directed differences" in title else ""
    figure.suptitle(f"Optimal noise beside published mechanisms at the same budget{remark}\n{title}", fontsize=10)
    legend_below(figure, axes, columns=3)
    return figure
