"""Data that the page draws: laws of mechanisms, privacy, rows of designs; floats are for pictures.

Whoever hands a figure to the page makes it strict JSON (`workbench.exact.numbers.jsonable`). Its kinds are those of
`workbench.io.plain_figures`, and

    map          regions of a plane (`workbench.explorer.formula_map`)
    picture      an SVG of the family's own
    table        heads, rows
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from fractions import Fraction
from itertools import islice
from typing import TYPE_CHECKING, Any

import numpy as np

from workbench.errors import WorkbenchError
from workbench.exact.objects import Values
from workbench.io.plain_figures import Figure, lines, series
from workbench.io.shown import picture
from workbench.mechanisms.mechanism import as_mechanism
from workbench.privacy.law_table import law_table, number

if TYPE_CHECKING:
    from workbench.families.design import Design


NAMES = {  # of axes: a word and its symbol
    "epsilon": "privacy budget ε", "delta": "δ", "rho": "privacy budget ρ", "mu": "privacy budget μ",
    "alpha": "order α", "runs": "runs T", "max_loss": "largest loss allowed", "bits": "mean bits",
}  # fmt: skip
_BARS, _CELLS, _OUTPUTS = 2000, 20_000, 24  # drawn at most
_DRAWN = 500  # cells of a density
_MASSES = 400_000  # of all comparisons of a profile: a second or two
_TALL, _FLAT = 1e4, 100  # times the least value, or the one in the middle, from where an axis is logarithmic
_NEAR = 1.05  # times the loss of a design, up to which a closed form that is an upper bound is drawn beside it
_OPEN = 1e-6  # a gap between objective and bound from here on is drawn


def _table(title: str, heads: Sequence[str], rows: Iterable[Sequence[Any]]) -> Figure:
    return {"kind": "table", "title": title, "heads": [*heads], "rows": [*rows], "note": ""}


# The mechanism.


def law_figures(design: Design, *, is_whole: bool = True) -> list[Figure]:
    """Describe the mechanism: bars, a heat map or lines from its law, else the family's own picture, else its tables.

    A picture may leave out what nobody would see; whoever saves its numbers gets the whole law, in exact numbers.

    Args:
        design: with its mechanism; without one there are no figures.
        is_whole: whether the whole law comes with the picture. Without it the numbers of the law cannot be saved.
    """
    mechanism = design.mechanism
    if mechanism is None:
        return []
    figure = law_figure(mechanism)
    if figure:
        return [with_law(figure, mechanism) if is_whole else {**figure, "law": True}]
    if not design.family.draws:
        return [_table(*parts) for parts in design.family.tables(design)]
    drawn = {"kind": "picture", "title": "The mechanism", "svg": picture(design.plot), "law": True}
    return [with_law(drawn, mechanism) if is_whole else drawn]


def law_figure(mechanism: Any) -> Figure | None:
    """A mechanism's law as bars, a heat map or lines; None where it is none of those, or too large."""
    drawing = getattr(mechanism, "drawing", None)
    if drawing is None or np.ndim(getattr(mechanism, "outputs", ())) > 1:  # places are a map of the family's own
        return None
    figure = drawing()
    if figure["kind"] == "lines":
        return figure if len(figure["series"]) <= _OUTPUTS else None
    return figure if np.size(figure["values"]) <= (_BARS if figure["kind"] == "bars" else _CELLS) else None


def with_law(figure: Figure, mechanism: Any) -> Figure:
    """Add the whole law to the picture of a mechanism, as the table that `workbench audit` reads."""
    law = law_table(mechanism)
    if law is None:
        return figure
    heads, rows = law
    about = [float(number(row[1])) for row in rows] if len(heads) == 2 else None  # beside the exact ones on a screen
    return {**figure, "law": True, "table": {"heads": heads, "rows": rows, "about": about}}


def other_laws(design: Design) -> list[Figure]:
    """Laws of published noise at the same budget, as outlines over the design's own."""
    laws = design.family.beside(design).items()
    cuts = {name: max(1, -(-len(y) // _DRAWN)) if len(x) > len(y) else 1 for name, (x, y) in laws}
    return [{"name": name, "x": x[:: cuts[name]], "y": y[:: cuts[name]]} for name, (x, y) in laws if len(y) < _BARS]


# Its privacy.


def profile_figures(mechanism: Any, point: Values) -> list[Figure]:
    """δ(ε) for every notion that has one, and the trade-off curve of errors.

    point: epsilon and delta (0 where there is none of that name), marked unless one of them is None.

    Raises WorkbenchError where the mechanism has no exact laws, or too many comparisons to draw while one waits.
    """
    from workbench.privacy.curve import curves_figure, profiles

    subject = as_mechanism(mechanism)
    most = _MASSES // max(1, len(subject.outputs))
    if len(list(islice(subject.comparisons(), most + 1))) > most:
        raise WorkbenchError(f"A profile is drawn for up to {most} comparisons of neighbours; there are more.")
    curves, numbers = profiles(subject), [point.get("epsilon"), point.get("delta", 0)]
    marked = all(isinstance(number, (int, float, Fraction)) for number in numbers)
    budget = [[float(number)] for number in numbers] if marked else []
    shown = [curves_figure(curves, list(zip(*budget, strict=True)))]
    dp = next((curve for curve in curves if curve.notion == "dp"), None)
    return [*shown, _tradeoff(dp, budget)] if dp and not subject.one_sided else shown


def _tradeoff(profile: Any, budget: Sequence[Any]) -> Figure:
    """Type II error against type I error of telling neighbours apart: the best that the DP profile allows.

    profile: of a symmetric relation; as δ is affine in e^ε between its ends, the maximum is at an end.
    """
    from workbench.privacy.curve import thinned
    from workbench.privacy.risk import errors_granted

    ends = thinned(profile.ends, 400)
    alpha = np.unique(np.concatenate([np.linspace(0, 1, 101), np.geomspace(1e-4, 1, 60)]))
    drawn = [series("this mechanism", "line", 0, alpha, errors_granted(alpha, ends, profile.heights(ends)))]
    drawn += [series("asked (ε, δ)", "dashed", 6, alpha, errors_granted(alpha, *budget))] if budget else []
    drawn.append(series("guessing", "dashed", 7, [0, 1], [1, 0]))
    return lines("Trade-off curve: telling two neighbours apart", "type I error α", "type II error β", drawn)


# Rows of designs, and of a frontier at one budget (`workbench.families.frontier_plan`).


def _solved(rows: Iterable[Values]) -> list[Values]:
    return [row for row in rows if isinstance(row.get("objective"), (int, float))]


def _tells(row: Values) -> bool:
    """Whether a closed form says something beside the design: a bound far above it, as near δ = 1, does not."""
    return row["oracle_kind"] != "upper bound" or bool(row["oracle_value"] <= _NEAR * row["objective"])


def along(name: str, label: str, rows: Sequence[Values], *, scale: str, steps: bool) -> Figure:
    """The objective against a number of the budget. rows: those of designs, each with its value under its name; scale:
    of its slider; steps: whether the objective may jump."""
    solved = _solved(rows)
    x, y = [row[name] for row in solved], [row["objective"] for row in solved]
    drawn = []
    for colour, kind in ((2, "optimum"), (1, "upper bound"), (4, "lower bound")):
        law = [row["oracle_value"] if row.get("oracle_kind") == kind and _tells(row) else None for row in solved]
        if any(value is not None for value in law):
            drawn.append(series(f"closed form ({kind})", "halo", colour, x, law))
    low = [row["objective"] if row.get("bound") is None else row["bound"] for row in solved]
    if any(high - bound > _OPEN * max(1.0, abs(high)) for high, bound in zip(y, low, strict=True)):
        drawn.append(series("proven interval", "band", 0, x, y, low=low, steps=steps))
    drawn.append(series("designs", "hollow", 0, x, y, steps=steps))
    failed = [str(row.get("failure") or row.get("status")) for row in rows if row not in solved]
    between = "keep the last value, as the least error jumps" if steps else "only join them for the eye"
    note = f"Marks are computed; the thin lines {between}." if len(solved) > 1 else ""
    note += f" {len(failed)} of {len(rows)} values have no design there: {failed[0]}" if failed else ""
    what = label.removeprefix("least ")
    title = f"{what[:1].upper() if what.isascii() else what[:1]}{what[1:]} against {NAMES.get(name, name)}"
    more = {"along": name, "note": note, "zero": scale == "share"}
    figure = lines(title, NAMES.get(name, name), label, drawn, log=scale != "count", **more)
    figure["y"]["log"] = bool(y and min(y) > 0 and max(y) > min(_TALL * min(y), _FLAT * np.median(y)))
    return figure


def _pieces(name: str, look: str, colour: int, rows: Sequence[Values]) -> list[Figure]:
    """Exact pieces of a frontier along δ as a series; none of no rows."""
    x, y = ([row[end] for row in rows for end in (at, f"{at}_high")] for at in ("delta", "objective"))
    return [series(name, look, colour, x, y)] if rows else []


def rivals(rows: Sequence[Values]) -> Figure:
    """From rows of the family's frontier: exact pieces along δ as a series, and published mechanisms as a table."""
    pieces = [row for row in rows if row.get("curve") == "piece" and row.get("objective") is not None]
    proven = [row for row in pieces if row.get("status") == "optimal"]
    drawn = _pieces("exact frontier, proven", "segments", 1, proven)
    drawn += _pieces("frontier, not proven in time", "dashed-segments", 1, [row for row in pieces if row not in proven])
    listed = [
        [row.get("mechanism"), row.get("objective"), row.get("bound"), _standing(row)]
        for row in sorted(rows, key=lambda row: (row.get("objective") is None, row.get("objective") or 0.0))
        if row.get("curve") in ("baseline", "limit")
    ]
    table = _table("Other mechanisms at the same budget", ["mechanism", "error", "no less than", "proof"], listed)
    table["note"] = "" if listed else "None is published for this budget."
    return {"overlays": {"delta": drawn} if drawn else {}, "table": table}


def _standing(row: Values) -> str:
    """Whether a published mechanism is proven at the budget, or why it has no number."""
    if row.get("objective") is None:
        return str(row.get("failure") or row.get("status"))
    return "certified" if row.get("certified") else "exact audit" if row.get("private") else "a closed form"
