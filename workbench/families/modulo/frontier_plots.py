"""The plots of a noise frontier, each from its table alone, so that an interrupted run is drawn as far as it went.

Lines are closed forms and exact pieces, hollow markers solver runs, bands the proven interval [bound, objective] where
it is not closed. Under PDP the least error jumps with ε and δ, and the least δ with ε: between two computed budgets the
line keeps the value of the smaller one, which holds at both.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from workbench.families.frontier_plan import LEAST_EPSILON
from workbench.families.frontier_plots import (
    Quantity,
    Series,
    all_series,
    band,
    by_panel,
    drawstyle,
    few,
    heat,
    is_open,
)
from workbench.families.notion_points import notion_plots
from workbench.io.figures import COLOURS, MARKERS, SOLVER, legend_below, panels
from workbench.privacy.notions import notion as named

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["draw"]

SERIES = {
    "optimal": Series("optimal modulo noise", 0), "geometric": Series("clamped geometric", 1, "--"),
    "gaussian": Series("clamped discrete Gaussian", 2, "-."), "exponential": Series("exponential mechanism", 3, ":"),
    "data-independent": Series("data-independent", 4, (0, (5, 1, 1, 1))),
}  # fmt: skip
Line = Callable[["Axes", str, float, dict[str, Any]], "pd.DataFrame"]  # (axis, notion, value, look) -> its points


def draw(table: pd.DataFrame, title: str, loss: str) -> dict[str, Callable[[], Figure | None]]:
    """Every plot by name; it is drawn when called, None where the rows do not allow it."""
    loss = {"squared": "squared error"}.get(loss, loss.replace("-", " "))
    least = table["mechanism"].eq(LEAST_EPSILON)
    rows = table[~least & table["objective"].notna()]
    points, pieces, levels, rivals = (rows[rows["curve"] == name] for name in ("point", "piece", "level", "baseline"))
    epsilon, error = Quantity("epsilon", "ε"), Quantity("objective", f"least {loss}")
    remark = " (they protect both sides of a pair)" if "directed differences" in title else ""
    beside = f"Optimal noise beside published mechanisms at the same budget{remark}\n{title}"
    return {
        "error_epsilon": partial(_error_epsilon, points, title, loss),
        "error_delta": partial(_error_delta, points, pieces, title, loss),
        "level_curves": partial(_level_curves, levels, pieces, title, loss),
        "heat_map": partial(heat, points, epsilon, Quantity("delta", "δ (one row each)"), error, title, "notion"),
        "baselines": partial(
            by_panel,
            _named_panels(rows[rows["curve"].isin(("point", "baseline"))]) if len(rivals) else rivals,
            Quantity("panel", "{}"),
            epsilon,
            Quantity("objective", loss),
            all_series(SERIES, rivals),
            beside,
        ),
        "epsilon_budget": notion_plots(table[least], {}, title, loss)["epsilon_budget"],
    }


def _named_panels(rows: pd.DataFrame) -> pd.DataFrame:
    """With a column that names notion and δ, at a few δ."""
    rows = rows[rows["delta"].isin(few(rows["delta"].tolist(), 4))]
    names = [f"{named(n).title}, δ = {d:g}" for n, d in zip(rows["notion"], rows["delta"], strict=True)]
    return rows.assign(panel=names)


def _by_notion(points: pd.DataFrame, values: Sequence[float], x: str, line: Line) -> tuple[Figure, list[Axes]]:
    """A panel for every notion and in it a line with markers for every value; the proven interval where it is open."""
    notions = list(dict.fromkeys(points["notion"]))
    figure, axes = panels(len(notions), width=5.4, height=4.4)
    every = max(1, points[x].nunique() // 14)
    for axis, notion in zip(axes, notions, strict=True):
        for k, value in enumerate(values):
            colour = COLOURS[k % len(COLOURS)]
            here = line(axis, notion, value, {"color": colour, "linewidth": 1.2 * (len(values) - k)}).sort_values(x)
            if is_open(here):  # without any bound, down to 0
                band(axis, here.assign(bound=here["bound"].astype(float).fillna(0.0)), x, "objective", color=colour)
            axis.plot(
                here[x],
                here["objective"],
                color=colour,
                marker=MARKERS[k % len(MARKERS)],
                markevery=(k * every // 4, every),
                **SOLVER,
            )
        axis.set_title(named(notion).title, fontsize=10)
        axis.set_xlabel({"epsilon": "ε", "delta": "δ"}[x])
    return figure, axes


def _finished(
    figure: Figure, axes: list[Axes], points: pd.DataFrame, words: str, up: str, entries: Iterable[dict[str, Any]]
) -> Figure:
    """With labels, and legend entries for what lines, markers, steps and bands mean."""
    for look in entries:
        axes[0].plot([], [], color="black", **look)
    if is_open(points):
        axes[0].fill_between([], [], [], color="black", alpha=0.25, linewidth=0, label="band: [bound, objective]")
    low, high = float(points["objective"].min()), float(points["objective"].max())
    for axis in axes:  # from 0 up, unless that would press the curves against the top
        start = 0.0 if low < 0.6 * high else low - 0.35 * (high - low)
        axis.set_ylim(start, high + 0.06 * (high - min(low, 0.6 * high)) if high else None)
        axis.set_ylabel(up)
    figure.suptitle(words, fontsize=10)
    legend_below(figure, axes, columns=4)
    return figure


def _marker(words: str) -> dict[str, Any]:
    return {"marker": "o", "label": f"marker: {words}", **SOLVER}


def _steps(points: pd.DataFrame) -> list[dict[str, Any]]:
    """What is drawn between computed optima that may jump."""
    look = {"drawstyle": "steps-post", "label": "steps (PDP): the last value, which still holds"}
    return [look] if drawstyle(points) != "default" else []


def _exact_lines(pieces: pd.DataFrame, words: str, dashed: str) -> list[dict[str, Any]]:
    """What lines by exact pieces mean."""
    proven = pieces["status"].eq("optimal").all()
    return [{"label": f"line: exact frontier{words}"}] + ([] if proven else [{"linestyle": "--", "label": dashed}])


def _error_epsilon(points: pd.DataFrame, title: str, loss: str) -> Figure | None:
    if points["epsilon"].nunique() < 2:
        return None

    def line(axis: Axes, notion: str, delta: float, look: dict[str, Any]) -> pd.DataFrame:
        here = points[(points["notion"] == notion) & (points["delta"] == delta)].sort_values("epsilon")
        proven = here[here["oracle_value"].notna()]  # curves that coincide show as one inside the other
        column = "oracle_value" if len(proven) else "objective"
        if len(proven) and (proven["oracle_kind"] != "optimum").any():
            look = look | {"linestyle": "--"}
        shown = proven if len(proven) else here
        axis.plot(shown["epsilon"], shown[column], drawstyle=drawstyle(here), label=f"δ = {delta:g}", **look)
        return here

    figure, axes = _by_notion(points, few(points["delta"].tolist(), 6), "epsilon", line)
    entries = [_marker("solver, certified" if points["certified"].eq(True).all() else "solver"), *_steps(points)]
    if points["oracle_value"].notna().any():
        entries.insert(0, {"label": "line: closed form"})
    if (points["oracle_kind"] == "upper bound").any():
        entries.append({"linestyle": "--", "label": "dashed: upper bound, partly"})
    return _finished(figure, axes, points, f"Least {loss} against ε\n{title}", f"least {loss}", entries)


def _error_delta(points: pd.DataFrame, pieces: pd.DataFrame, title: str, loss: str) -> Figure | None:
    shown = points[[named(notion).has_delta for notion in points["notion"]]]
    if shown.empty or (pieces.empty and points["delta"].nunique() < 2):
        return None
    traced = points[points["epsilon"].isin(pieces["epsilon"])]
    reach = min(1.0, max(0.3, 1.5 * float(points["delta"].max())))

    def line(axis: Axes, notion: str, epsilon: float, look: dict[str, Any]) -> pd.DataFrame:
        here = pieces[(pieces["notion"] == notion) & (pieces["epsilon"] == epsilon)].sort_values("delta")
        dots = shown[(shown["notion"] == notion) & (shown["epsilon"] == epsilon)].sort_values("delta")
        colour, label = look["color"], f"ε = {epsilon:.4g}"
        for _, piece in here.iterrows():
            axis.plot(
                [piece["delta"], piece["delta_high"]],
                [piece["objective"], piece["objective_high"]],
                color=colour,
                linestyle="-" if piece["status"] == "optimal" else "--",
                label=label,
            )
        inner = here[(here["delta"] > 0) & (here["delta"] < reach)]
        axis.plot(inner["delta"], inner["objective"], color=colour, marker="|", markersize=9, linestyle="none")
        if here.empty:
            axis.plot(
                dots["delta"], dots["objective"], color=colour, drawstyle=drawstyle(dots), linewidth=0.8, label=label
            )
        return dots

    figure, axes = _by_notion(shown, few((traced if len(traced) else points)["epsilon"].tolist()), "delta", line)
    for axis in axes:
        axis.set_xlim(-0.01 * reach, reach)
    breakpoints = {"marker": "|", "markersize": 9, "linestyle": "none", "label": "its breakpoints"}
    exact = [*_exact_lines(pieces, "", "dashed: not proven in time"), breakpoints]
    entries = [*(_steps(points) if pieces.empty else exact), _marker("solver")]
    return _finished(figure, axes, points, f"Least {loss} against δ\n{title}", f"least {loss}", entries)


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


def _level_curves(levels: pd.DataFrame, pieces: pd.DataFrame, title: str, loss: str) -> Figure | None:
    if levels["epsilon"].nunique() < 2:
        return None

    def line(axis: Axes, notion: str, level: float, look: dict[str, Any]) -> pd.DataFrame:
        exact = pieces[pieces["notion"] == notion]
        here = levels[(levels["notion"] == notion) & (levels["max_loss"] == level)].sort_values("epsilon")
        style: dict[str, Any] = {"color": look["color"], "label": f"{loss} = {level:g}"}
        if exact["epsilon"].nunique() >= here["epsilon"].nunique():
            curve = [(float(str(e)), _inverse(part, level)) for e, part in exact.groupby("epsilon")]
            whole = exact["status"].eq("optimal").all()
            axis.plot(*zip(*curve, strict=True), linestyle="-" if whole else "--", drawstyle=drawstyle(exact), **style)
        else:
            axis.plot(here["epsilon"], here["objective"], drawstyle=drawstyle(here), linewidth=0.8, **style)
        return here

    figure, axes = _by_notion(levels, few(levels["max_loss"].tolist(), 6), "epsilon", line)
    late = "dashed: not all of it proven in time"
    entries = [
        *(_exact_lines(pieces, ", inverted", late) if len(pieces) else []),
        _marker("minimum-δ solver run"),
        *_steps(levels),
    ]
    figure = _finished(figure, axes, levels, f"Least δ against ε at fixed {loss}\n{title}", "least δ", entries)
    for axis in axes:
        axis.set_ylim(bottom=0)
    return figure
