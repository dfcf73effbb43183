"""Rows of designs and of frontiers (`workbench.families.frontier_plan`) as figures: error against every budget."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from workbench.explorer.figures import Figure, lines, plain, series, table
from workbench.families.frontier_plots import few, jumps

__all__ = ["along", "rivals", "tradeoffs"]

_TALL = 1e4  # times the least value from where an axis is logarithmic
_OPEN = 1e-6  # a gap between objective and bound from here on is drawn


def along(name: str, label: str, rows: Sequence[Mapping[str, Any]], *, log: bool, steps: bool) -> Figure:
    """The objective against a hot option. rows: those of designs, each with the option's value under its name; steps:
    whether it may jump."""
    solved = [row for row in rows if isinstance(row.get("objective"), (int, float))]
    x, y = [row[name] for row in solved], [row["objective"] for row in solved]
    drawn = []
    for colour, kind in ((2, "optimum"), (1, "upper bound"), (4, "lower bound")):
        law = [row["oracle_value"] if row.get("oracle_kind") == kind else None for row in solved]
        if any(value is not None for value in law):
            drawn.append(series(f"closed form ({kind})", "halo", colour, x, law))
    low = [row["objective"] if row.get("bound") is None else row["bound"] for row in solved]
    if any(high - bound > _OPEN * max(1.0, abs(high)) for high, bound in zip(y, low, strict=True)):
        drawn.append(series("proven interval", "band", 0, x, y, low=plain(low), steps=steps))
    drawn.append(series("designs, not certified", "hollow", 0, x, y, steps=steps))
    failed = [str(row.get("failure") or row.get("status")) for row in rows if row not in solved]
    between = "keep the last value, as the least error jumps" if steps else "only join them for the eye"
    note = f"Marks are computed; the thin lines {between}." if len(solved) > 1 else ""
    if failed:
        note += f" {len(failed)} of {len(rows)} values have no design there: {failed[0]}"
    figure = lines(f"{label} against {name}", name, label, drawn, log_x=log, along=name, note=note)
    figure["y"]["log"] = bool(y) and min(y) > 0 and max(y) > _TALL * min(y)
    return figure


def rivals(rows: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """From rows of the family's frontier: exact pieces along δ as a series, and published mechanisms as a table."""
    pieces = [row for row in rows if row.get("curve") == "piece" and row.get("objective") is not None]
    proven = [row for row in pieces if row.get("status") == "optimal"]
    drawn = [
        series(
            name,
            look,
            1,
            [row[at] for row in part for at in ("delta", "delta_high")],
            [row[at] for row in part for at in ("objective", "objective_high")],
        )
        for name, look, part in (
            ("exact frontier, proven", "segments", proven),
            ("frontier, not proven in time", "dashed-segments", [row for row in pieces if row not in proven]),
        )
        if part
    ]
    listed = [
        [
            row.get("mechanism"),
            row.get("notion"),
            row.get("epsilon"),
            row.get("delta"),
            row.get("objective"),
            row.get("bound"),
            row.get("certified"),
            row.get("failure") or row.get("status"),
        ]
        for row in sorted(rows, key=_rank)
        if row.get("curve") in ("point", "baseline", "limit")
    ]
    heads = ["mechanism", "notion", "ε", "δ", "error", "no less than", "certified", "status"]
    return {
        "overlays": {"delta": drawn} if drawn else {},
        "table": table("Other mechanisms at the same budget", heads, listed),
    }


def _rank(row: Mapping[str, Any]) -> tuple[bool, float]:
    value = row.get("objective")
    return (value is None, 0.0 if value is None else float(value))


def tradeoffs(rows: Sequence[Mapping[str, Any]]) -> list[Figure]:
    """The rows of a frontier (`workbench.families.frontier_plan`): error against ε, and against δ by exact pieces."""
    solved = [row for row in rows if isinstance(row.get("objective"), (int, float))]
    figures = []
    for notion_name in dict.fromkeys(row.get("notion") for row in solved):
        mine = [row for row in solved if row.get("notion") == notion_name]
        title = f" ({notion_name})" if notion_name else ""
        if drawn := _by_epsilon([row for row in mine if row.get("curve") in ("point", "baseline")]):
            figures.append(lines(f"Error against ε{title}", "ε", "error", drawn))
        pieces = [row for row in mine if row.get("curve") == "piece"]
        drawn = [
            series(
                f"ε = {epsilon:g}",
                "segments",
                k,
                [row[at] for row in part for at in ("delta", "delta_high")],
                [row[at] for row in part for at in ("objective", "objective_high")],
            )
            for k, epsilon in enumerate(few({row["epsilon"] for row in pieces}))
            for part in [[row for row in pieces if row["epsilon"] == epsilon]]
        ]
        if drawn:
            figures.append(lines(f"Error against δ: exact pieces{title}", "δ", "error", drawn))
    return figures


def _by_epsilon(rows: Sequence[Mapping[str, Any]]) -> list[Figure]:
    """One series for every mechanism at every other coordinate (δ, outputs, bits), at a few values of each.

    Baselines are drawn where nothing but ε varies: at several budgets nobody can tell so many lines apart.
    """
    names = [name for name in ("delta", "levels", "bits", "ell") if any(row.get(name) is not None for row in rows)]
    others = {name: few({row[name] for row in rows if row.get(name) is not None}) for name in names}
    told = [name for name in names if len({row.get(name) for row in rows}) > 1]
    groups: dict[tuple[Any, ...], list[Mapping[str, Any]]] = {}
    for row in rows:
        if told and row.get("curve") == "baseline":
            continue
        if all(row.get(name) is None or row[name] in values for name, values in others.items()):
            where = [(name, row[name]) for name in told if row.get(name) is not None]
            groups.setdefault((row.get("curve"), row.get("mechanism"), *where), []).append(row)
    drawn = []
    for k, ((curve, mechanism, *where), part) in enumerate(groups.items()):
        part.sort(key=lambda row: float(row["epsilon"]))
        sure = all(row.get("certified") is True for row in part)
        name = ", ".join([str(mechanism), *(f"{word} {value:g}" for word, value in where)])
        look = "dashed" if curve == "baseline" else "line" if sure else "hollow"
        x, y = [row["epsilon"] for row in part], [row["objective"] for row in part]
        steps = jumps(part)
        drawn.append(series(name, look if len(part) > 1 else "filled" if sure else "hollow", k, x, y, steps=steps))
    return drawn
