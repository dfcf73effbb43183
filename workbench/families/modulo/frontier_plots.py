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
from workbench.families.modulo.delta_frontier import first_delta
from workbench.families.notion_points import notion_plots
from workbench.io.figures import COLOURS, MARKERS, SOLVER, legend_below, panels
from workbench.privacy.notions import notion as named

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


SERIES = {
    "optimal": Series("optimal modulo noise", 0), "geometric": Series("clamped geometric", 1, "--"),
    "gaussian": Series("clamped discrete Gaussian", 2, "-."), "exponential": Series("exponential mechanism", 3, ":"),
    "data-independent": Series("data-independent", 4, (0, (5, 1, 1, 1))),
}  # fmt: skip
_BREAKPOINT: dict[str, Any] = {"marker": "|", "markersize": 9, "linestyle": "none"}
Look = dict[str, Any]
Line = Callable[["Axes", str, float, Look], "pd.DataFrame"]  # (axis, notion, value, look) -> its points


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


def _by_notion(
    rows: pd.DataFrame, values: Sequence[float], x: str, line: Line, words: str, up: str, entries: Iterable[Look]
) -> tuple[Figure, list[Axes]]:
    """A panel for every notion and in it a line with markers for every value; the proven interval where it is open.

    entries: of the legend, for what lines, markers and steps mean.
    """
    notions = list(dict.fromkeys(rows["notion"]))
    figure, axes = panels(len(notions), width=5.4, height=4.4)
    every = max(1, rows[x].nunique() // 14)
    low, high = float(rows["objective"].min()), float(rows["objective"].max())
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
        axis.set(title=named(notion).title, xlabel={"epsilon": "ε", "delta": "δ"}[x], ylabel=up)
        axis.title.set_fontsize(10)
        start = 0.0 if low < 0.6 * high else low - 0.35 * (high - low)  # from 0 up, unless that would press the curves
        axis.set_ylim(start, high + 0.06 * (high - min(low, 0.6 * high)) if high else None)
    for look in entries:
        axes[0].plot([], [], color="black", **look)
    if is_open(rows):
        axes[0].fill_between([], [], [], color="black", alpha=0.25, linewidth=0, label="band: [bound, objective]")
    figure.suptitle(words, fontsize=10)
    legend_below(figure, axes, columns=4)
    return figure, axes


def _marker(words: str) -> Look:
    return {"marker": "o", "label": f"marker: {words}", **SOLVER}


def _steps(points: pd.DataFrame) -> list[Look]:
    """What is drawn between computed optima that may jump."""
    look = {"drawstyle": "steps-post", "label": "steps (PDP): the last value, which still holds"}
    return [look] if drawstyle(points) != "default" else []


def _exact_lines(pieces: pd.DataFrame, words: str, dashed: str) -> list[Look]:
    """What lines by exact pieces mean."""
    proven = pieces["status"].eq("optimal").all()
    return [{"label": f"line: exact frontier{words}"}] + ([] if proven else [{"linestyle": "--", "label": dashed}])


def _part(rows: pd.DataFrame, x: str, **values: Any) -> pd.DataFrame:
    """The rows with some values, in the order of a column."""
    for name, value in values.items():
        rows = rows[rows[name] == value]
    return rows.sort_values(x)


def _error_epsilon(points: pd.DataFrame, title: str, loss: str) -> Figure | None:
    if points["epsilon"].nunique() < 2:
        return None

    def line(axis: Axes, notion: str, delta: float, look: Look) -> pd.DataFrame:
        here = _part(points, "epsilon", notion=notion, delta=delta)
        law = here[here["oracle_value"].notna()]  # curves that coincide show as one inside the other
        dash = "--" if len(law) and (law["oracle_kind"] != "optimum").any() else "-"
        shown, column = (law, "oracle_value") if len(law) else (here, "objective")
        label = f"δ = {delta:g}"
        axis.plot(shown["epsilon"], shown[column], drawstyle=drawstyle(here), linestyle=dash, label=label, **look)
        return here

    entries = [_marker("solver, certified" if points["certified"].eq(True).all() else "solver"), *_steps(points)]
    if points["oracle_value"].notna().any():
        entries.insert(0, {"label": "line: closed form"})
    if (points["oracle_kind"] == "upper bound").any():
        entries.append({"linestyle": "--", "label": "dashed: upper bound, partly"})
    deltas, words = few(points["delta"].tolist(), 6), f"Least {loss} against ε\n{title}"
    return _by_notion(points, deltas, "epsilon", line, words, f"least {loss}", entries)[0]


def _error_delta(points: pd.DataFrame, pieces: pd.DataFrame, title: str, loss: str) -> Figure | None:
    shown = points[[named(notion).has_delta for notion in points["notion"]]]
    if shown.empty or (pieces.empty and points["delta"].nunique() < 2):
        return None
    traced = points[points["epsilon"].isin(pieces["epsilon"])]
    reach = min(1.0, max(0.3, 1.5 * float(points["delta"].max())))

    def line(axis: Axes, notion: str, epsilon: float, look: Look) -> pd.DataFrame:
        exact, dots = (_part(rows, "delta", notion=notion, epsilon=epsilon) for rows in (pieces, shown))
        style: Look = {"color": look["color"], "label": f"ε = {epsilon:.4g}"}
        for _, piece in exact.iterrows():
            ends = [piece["delta"], piece["delta_high"]], [piece["objective"], piece["objective_high"]]
            axis.plot(*ends, linestyle="-" if piece["status"] == "optimal" else "--", **style)
        inner = exact[(exact["delta"] > 0) & (exact["delta"] < reach)]
        axis.plot(inner["delta"], inner["objective"], color=look["color"], **_BREAKPOINT)
        if exact.empty:
            axis.plot(dots["delta"], dots["objective"], drawstyle=drawstyle(dots), linewidth=0.8, **style)
        return dots

    lines = [*_exact_lines(pieces, "", "dashed: not proven in time"), {**_BREAKPOINT, "label": "its breakpoints"}]
    entries = [*(_steps(points) if pieces.empty else lines), _marker("solver")]
    epsilons, words = few((traced if len(traced) else points)["epsilon"].tolist()), f"Least {loss} against δ\n{title}"
    figure, axes = _by_notion(shown, epsilons, "delta", line, words, f"least {loss}", entries)
    for axis in axes:
        axis.set_xlim(-0.01 * reach, reach)
    return figure


def _inverse(pieces: pd.DataFrame, most: float) -> float:
    """The least δ whose exact frontier is within a loss."""
    ordered = pieces.sort_values("delta")
    deltas, losses = (ordered[[x, f"{x}_high"]].astype(float).to_numpy().tolist() for x in ("delta", "objective"))
    least = first_delta(deltas, losses, most)
    return float("nan") if least is None else least


def _level_curves(levels: pd.DataFrame, pieces: pd.DataFrame, title: str, loss: str) -> Figure | None:
    if levels["epsilon"].nunique() < 2:
        return None

    def line(axis: Axes, notion: str, level: float, look: Look) -> pd.DataFrame:
        exact, here = pieces[pieces["notion"] == notion], _part(levels, "epsilon", notion=notion, max_loss=level)
        style: Look = {"color": look["color"], "label": f"{loss} = {level:g}"}
        if exact["epsilon"].nunique() >= here["epsilon"].nunique():
            curve = [(float(str(e)), _inverse(part, level)) for e, part in exact.groupby("epsilon")]
            whole = exact["status"].eq("optimal").all()
            axis.plot(*zip(*curve, strict=True), linestyle="-" if whole else "--", drawstyle=drawstyle(exact), **style)
        else:
            axis.plot(here["epsilon"], here["objective"], drawstyle=drawstyle(here), linewidth=0.8, **style)
        return here

    exact = _exact_lines(pieces, ", inverted", "dashed: not all of it proven in time") if len(pieces) else []
    entries = [*exact, _marker("minimum-δ solver run"), *_steps(levels)]
    errors, words = few(levels["max_loss"].tolist(), 6), f"Least δ against ε at fixed {loss}\n{title}"
    figure, axes = _by_notion(levels, errors, "epsilon", line, words, "least δ", entries)
    for axis in axes:
        axis.set_ylim(bottom=0)
    return figure
