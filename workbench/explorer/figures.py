"""Designs, profiles and rows of trade-offs as plain data that the page draws; floats here are for pictures.

    figure       what it holds
    lines        x and y axes {label, log}, series {name, look, colour, x, y (, low)}, marks of budgets
    bars         labels, values
    heat         rows, columns, values [row][column]
    picture      an SVG of the family's own
    table        heads, rows

look: line, dashed, hollow (a solver's word), filled (proven), halo (around other marks), segments (pairs of points),
dashed-segments, band (low..y). None in x or y is a gap.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from fractions import Fraction
from io import StringIO
from itertools import islice
from typing import TYPE_CHECKING, Any

import numpy as np

from workbench.errors import WorkbenchError
from workbench.mechanisms.mechanism import as_mechanism, on_real_inputs
from workbench.privacy.notions import known, notion
from workbench.privacy.notions.delta_notion import DeltaNotion

if TYPE_CHECKING:
    from workbench.families.design import Design

__all__ = ["along", "law_figure", "law_figures", "plain", "profile_figures", "rivals", "svg_text", "table", "tradeoffs"]

Figure = dict[str, Any]
_BARS, _CELLS, _OUTPUTS = 2000, 20_000, 24  # drawn at most
_MASSES = 400_000  # of all comparisons of a profile: a second or two
_TALL = 1e4  # times the least value from where an axis is logarithmic
_OPEN = 1e-6  # a gap between objective and bound from here on is drawn


def plain(value: Any) -> Any:
    """A value as strict JSON: rationals and NumPy numbers as floats, infinities as "inf", NaN as null."""
    if isinstance(value, Mapping):
        return {key if isinstance(key, str) else ",".join(map(str, key)): plain(part) for key, part in value.items()}
    if isinstance(value, (list, tuple, np.ndarray)):
        return [plain(part) for part in value]
    if value is None or isinstance(value, (bool, int, str)):
        return value
    if isinstance(value, np.generic):
        return plain(value.item())
    try:
        number = float(value)
    except (TypeError, ValueError):
        return str(value)
    return number if math.isfinite(number) else None if math.isnan(number) else "inf" if number > 0 else "-inf"


def lines(title: str, x: str, y: str, series: Sequence[Figure], *, log_x: bool = False, **more: Any) -> Figure:
    """A figure of lines and points."""
    return {"kind": "lines", "title": title, "x": {"label": x, "log": log_x}, "y": {"label": y, "log": False},
            "series": list(series), **more}  # fmt: skip


def series(name: str, look: str, colour: int, x: Iterable[Any], y: Iterable[Any], **more: Any) -> Figure:
    """One series of a figure of lines."""
    return {"name": name, "look": look, "colour": colour, "x": plain(list(x)), "y": plain(list(y)), **more}


def table(title: str, heads: Sequence[str], rows: Iterable[Sequence[Any]], note: str = "") -> Figure:
    """A table."""
    return {"kind": "table", "title": title, "heads": list(heads), "rows": plain(list(rows)), "note": note}


# The mechanism.


def law_figures(design: Design) -> list[Figure]:
    """The mechanism: bars, a heat map or lines from its law, else the family's own picture, else its tables."""
    mechanism = design.mechanism
    found = None if mechanism is None else law_figure(mechanism)
    if found is None and mechanism is not None and design.family.draws:
        found = {"kind": "picture", "title": "The mechanism", "svg": svg_text(design.plot())}
    tables = [table(title, heads, rows) for title, heads, rows in design.family.tables(design)] if mechanism else []
    return [found, *([] if found["kind"] != "picture" else tables)] if found is not None else tables


def law_figure(mechanism: Any) -> Figure | None:
    """A mechanism's law as bars, a heat map or lines; None where it is none of those, or too large."""
    sizes = getattr(getattr(mechanism, "question", None), "sizes", None)
    if sizes is not None and hasattr(mechanism, "pmf"):
        return _noise(np.asarray(mechanism.pmf, dtype=float).reshape(-1), sizes)
    if getattr(mechanism, "segments", ()):
        return _affine(mechanism)
    matrix, outputs = getattr(mechanism, "matrix", None), getattr(mechanism, "outputs", None)
    if matrix is None or outputs is None or np.ndim(matrix) != 2 or np.ndim(outputs) != 1:
        return None
    cells = np.asarray(matrix, dtype=float)
    labels = getattr(mechanism, "label_values", range(cells.shape[0]))
    used = np.flatnonzero(cells.max(axis=0) > 0)
    if cells.shape[0] * used.size > _CELLS or len(labels) != cells.shape[0]:
        return None
    return {
        "kind": "heat", "title": "Probability of every output, input by input", "x": "published value", "y": "input",
        "rows": _names(labels), "columns": _names(np.asarray(outputs)[used]), "values": plain(cells[:, used]),
    }  # fmt: skip


def _noise(masses: Any, sizes: tuple[int, ...]) -> Figure | None:
    if len(sizes) == 2 and masses.size <= _CELLS:
        return {
            "kind": "heat", "title": "Probability of every noise value", "x": "noise η₂", "y": "noise η₁",
            "rows": _names(range(sizes[0])), "columns": _names(range(sizes[1])), "values": plain(masses.reshape(sizes)),
        }  # fmt: skip
    if masses.size > _BARS:
        return None
    return {"kind": "bars", "title": "Probability of every noise value", "x": "noise η, added to the true answer",
            "y": "probability", "labels": _names(range(masses.size)), "values": plain(masses)}  # fmt: skip


def _affine(mechanism: Any) -> Figure | None:
    """Pr[output | x] of the outputs of a piecewise affine law: a line each, with gaps at jumps."""
    segments, outputs = mechanism.segments, np.asarray(mechanism.outputs, dtype=float)
    if outputs.size > _OUTPUTS or len(segments) * outputs.size > _CELLS:
        return None
    ends = [(float(one.low), float(one.high), one.left, one.right) for one in segments]
    drawn = []
    for i, output in enumerate(outputs):
        x: list[float | None] = []
        y: list[float | None] = []
        for low, high, left, right in ends:
            a, b = float(left[i]), float(right[i])
            if not y or y[-1] is None or abs(y[-1] - a) > 1e-9:
                x += [None, low] if x else [low]
                y += [None, a] if y else [a]
            x.append(high)
            y.append(b)
        drawn.append(series(f"output {output:.4g}", "line", i, x, y))
    return lines("Probability of every output, against the input", "input x", "probability", drawn)


def _names(values: Iterable[Any]) -> list[str]:
    return [f"{value:g}" if isinstance(value, (int, float, np.generic)) else str(value) for value in values]


def svg_text(figure: Any) -> str:
    """A matplotlib figure as SVG; it is closed."""
    from matplotlib.pyplot import close

    buffer = StringIO()
    figure.savefig(buffer, format="svg", metadata={"Date": None})
    close(figure)
    return buffer.getvalue()


# Its privacy.


def profile_figures(mechanism: Any, asked: Mapping[str, Any]) -> list[Figure]:
    """δ(ε) for every notion that has one, and the trade-off curve of errors.

    asked: epsilon and delta (0 where there is none of that name), marked unless one of them is None.

    Raises WorkbenchError where the mechanism has no exact laws, or too many comparisons to draw while one waits.
    """
    from workbench.privacy.curve import profile

    subject = as_mechanism(mechanism)
    most = _MASSES // max(1, len(subject.outputs))
    if len(list(islice(subject.comparisons(), most + 1))) > most:
        raise WorkbenchError(f"A profile is drawn for up to {most} comparisons of neighbours; there are more.")
    real = on_real_inputs(subject)
    named = [found for name in known() if isinstance(found := notion(name), DeltaNotion)]
    curves = {one: profile(subject, one.name) for one in named if one.convex or not real}
    numbers = [asked.get("epsilon"), asked.get("delta", 0)]
    known_both = all(isinstance(number, (int, float, Fraction)) for number in numbers)
    budget = (float(numbers[0]), float(numbers[1])) if known_both else None
    ends = next(iter(curves.values())).ends
    last = max(1e-3, 1.15 * float(ends[-1]), 1.5 * budget[0] if budget else 0.0)
    near = ends if ends.size <= 300 else np.linspace(0, float(ends[-1]), 300)
    grid = np.unique(np.concatenate([np.linspace(0, last, 150), near]))
    drawn = []
    for k, (one, curve) in enumerate(curves.items()):
        x, y = grid, curve.heights(grid)
        if all(not piece.q for pieces in curve.curves for piece in pieces):  # a staircase
            x, y = np.repeat(grid, 2)[1:], np.repeat(y, 2)[:-1]
        drawn.append(series(f"{one.title} δ", "line", k, x, y))
    if budget is not None:
        drawn.append(series("asked", "filled", 6, *([part] for part in budget)))
    shown = [lines("Privacy profile: the δ that holds at every ε", "ε", "δ(ε)", drawn)]
    dp = next((curve for one, curve in curves.items() if one.name == "dp"), None)
    if dp is not None and not subject.one_sided:
        shown.append(_tradeoff(dp, budget))
    return shown


def _tradeoff(profile: Any, budget: tuple[float, float] | None) -> Figure:
    """Type II error against type I error of telling neighbours apart: the best that the DP profile allows.

        f(α) = max over ε >= 0 of max(0, 1 - δ(ε) - e^ε α, e^-ε (1 - δ(ε) - α))     Dong, Roth and Su 2022, Sec. 2

    profile: of a symmetric relation; as δ is affine in e^ε between its ends, the maximum is at an end.
    """
    ends = profile.ends if profile.ends.size <= 400 else np.linspace(0, float(profile.ends[-1]), 400)
    alpha = np.unique(np.concatenate([np.linspace(0, 1, 101), np.geomspace(1e-4, 1, 60)]))

    def curve(epsilons: Any, deltas: Any) -> Any:
        e, d = np.asarray(epsilons)[:, None], np.asarray(deltas)[:, None]
        return np.maximum(0.0, np.maximum(1 - d - np.exp(e) * alpha, np.exp(-e) * (1 - d - alpha))).max(axis=0)

    drawn = [series("this mechanism", "line", 0, alpha, curve(ends, profile.heights(ends)))]
    if budget is not None:
        drawn.append(series("asked (ε, δ)", "dashed", 6, alpha, curve(*([part] for part in budget))))
    drawn.append(series("guessing", "dashed", 7, [0, 1], [1, 0]))
    return lines("Trade-off curve: telling two neighbours apart", "type I error α", "type II error β", drawn)


# Its cost.


def along(name: str, label: str, rows: Sequence[Mapping[str, Any]], *, log: bool) -> Figure:
    """The objective against a hot option. rows: those of designs, each with the option's value under its name."""
    solved = [row for row in rows if isinstance(row.get("objective"), (int, float))]
    x, y = [row[name] for row in solved], [row["objective"] for row in solved]
    drawn = []
    for colour, kind in ((2, "optimum"), (1, "upper bound"), (4, "lower bound")):
        law = [row["oracle_value"] if row.get("oracle_kind") == kind else None for row in solved]
        if any(value is not None for value in law):
            drawn.append(series(f"closed form ({kind})", "halo", colour, x, law))
    low = [row["objective"] if row.get("bound") is None else row["bound"] for row in solved]
    if any(high - bound > _OPEN * max(1.0, abs(high)) for high, bound in zip(y, low, strict=True)):
        drawn.append(series("proven interval", "band", 0, x, y, low=plain(low)))
    drawn.append(series("designs, not certified", "hollow", 0, x, y))
    failed = [str(row.get("error") or row.get("status")) for row in rows if row not in solved]
    note = "Marks are computed; the thin lines only join them for the eye." if len(solved) > 1 else ""
    if failed:
        note += f" {len(failed)} of {len(rows)} values have no design there: {failed[0]}"
    found = lines(f"{label} against {name}", name, label, drawn, log_x=log, along=name, note=note)
    found["y"]["log"] = bool(y) and min(y) > 0 and max(y) > _TALL * min(y)
    return found


def rivals(rows: Sequence[Mapping[str, Any]], asked: Mapping[str, Any]) -> dict[str, Any]:
    """From rows of the family's frontier: exact pieces along δ as a series, and published mechanisms as a table.

    asked: ε, δ; baselines are listed at those alone.
    """
    pieces = [row for row in rows if row.get("curve") == "piece" and row.get("objective") is not None]
    proven = [row for row in pieces if row.get("status") == "optimal"]
    drawn = [
        series(name, look, 1, [row[at] for row in part for at in ("delta", "delta_high")],
               [row[at] for row in part for at in ("objective", "objective_high")])
        for name, look, part in (("exact frontier, proven", "segments", proven),
                                 ("frontier, not proven in time", "dashed-segments",
                                  [row for row in pieces if row not in proven])) if part
    ]  # fmt: skip
    listed = [
        [row.get("mechanism"), row.get("notion"), row.get("epsilon"), row.get("delta"), row.get("objective"),
         row.get("bound"), row.get("certified"), row.get("error") or row.get("status")]
        for row in sorted(rows, key=_rank) if row.get("curve") in ("point", "baseline", "limit")
    ]  # fmt: skip
    heads = ["mechanism", "notion", "ε", "δ", "error", "no less than", "certified", "status"]
    return {"overlays": {"delta": drawn} if drawn else {},
            "table": table("Other mechanisms at the same budget", heads, listed)}  # fmt: skip


def _rank(row: Mapping[str, Any]) -> tuple[bool, float]:
    value = row.get("objective")
    return (value is None, 0.0 if value is None else float(value))


def tradeoffs(rows: Sequence[Mapping[str, Any]]) -> list[Figure]:
    """The rows of a frontier (`workbench.families.frontier_plan`): error against ε, and against δ by exact pieces."""
    solved = [row for row in rows if isinstance(row.get("objective"), (int, float))]
    found = []
    for notion_name in dict.fromkeys(row.get("notion") for row in solved):
        mine = [row for row in solved if row.get("notion") == notion_name]
        title = f" ({notion_name})" if notion_name else ""
        if drawn := _by_epsilon([row for row in mine if row.get("curve") in ("point", "baseline")]):
            found.append(lines(f"Error against ε{title}", "ε", "error", drawn))
        pieces = [row for row in mine if row.get("curve") == "piece"]
        drawn = [
            series(f"ε = {epsilon:g}", "segments", k, [row[at] for row in part for at in ("delta", "delta_high")],
                   [row[at] for row in part for at in ("objective", "objective_high")])
            for k, epsilon in enumerate(_few({row["epsilon"] for row in pieces}))
            for part in [[row for row in pieces if row["epsilon"] == epsilon]]
        ]  # fmt: skip
        if drawn:
            found.append(lines(f"Error against δ: exact pieces{title}", "δ", "error", drawn))
    return found


def _by_epsilon(rows: Sequence[Mapping[str, Any]]) -> list[Figure]:
    """One series for every mechanism at every other coordinate (δ, outputs, bits), at a few values of each.

    Baselines are drawn where nothing but ε varies: at several budgets nobody can tell so many lines apart.
    """
    names = [name for name in ("delta", "levels", "bits", "ell") if any(row.get(name) is not None for row in rows)]
    others = {name: _few({row[name] for row in rows if row.get(name) is not None}) for name in names}
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
        drawn.append(series(name, look if len(part) > 1 else "filled" if sure else "hollow", k, x, y))
    return drawn


def _few(values: Iterable[Any], most: int = 5) -> list[Any]:
    """At most so many of the values, spread over their order."""
    ordered = sorted(values)
    if len(ordered) <= most:
        return ordered
    places = np.unique(np.linspace(0, len(ordered) - 1, most).round().astype(int))
    return [ordered[k] for k in places]
