"""Data that the page draws: laws of mechanisms, privacy, rows of designs and of frontiers; floats are for pictures.

Whoever hands a figure to the page makes it strict JSON (`workbench.exact.numbers.jsonable`).

    figure       what it holds
    lines        x and y axes {label, log}, series {name, look, colour, x, y (, low)}; zero: 0 apart on a log axis
    bars         labels, values
    dots         rows {name, value, low, certified, notes}: what each costs, and what is proven of its class
    heat         rows, columns, values [row][column]
    map          regions of a plane (`workbench.explorer.formula_map`)
    picture      an SVG of the family's own
    table        heads, rows

look: line, dashed, hollow (a solver's word), filled (proven), halo (around other marks), segments (pairs of points),
dashed-segments, band (low..y), area (down to 0). None in x or y is a gap. steps: whether a value is kept until the next
point.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from fractions import Fraction
from itertools import islice
from typing import TYPE_CHECKING, Any

import numpy as np

from workbench.errors import WorkbenchError
from workbench.exact.objects import Values
from workbench.families.frontier_plots import few, jumps
from workbench.io.shown import picture
from workbench.mechanisms.mechanism import as_mechanism, on_real_inputs
from workbench.privacy.notions import known, notion
from workbench.privacy.notions.dp import DeltaNotion

if TYPE_CHECKING:
    from workbench.families.design import Design


Figure = dict[str, Any]
NAMES = {  # of axes: a word and its symbol
    "epsilon": "privacy budget ε", "delta": "δ", "rho": "privacy budget ρ", "mu": "privacy budget μ",
    "alpha": "order α", "runs": "runs T", "max_loss": "largest loss allowed", "bits": "mean bits",
}  # fmt: skip
_BARS, _CELLS, _OUTPUTS = 2000, 20_000, 24  # drawn at most
NOISE = "Probability of every noise value"
_SEEN, _PROFILE = 1e-4, 1e-3  # of the largest mass, of the largest δ: less is nothing to see
_DRAWN = 500  # cells of a density
_MASSES = 400_000  # of all comparisons of a profile: a second or two
_ENDS = 300  # of the pieces of a profile
_TALL = 1e4  # times the least value from where an axis is logarithmic
_OPEN = 1e-6  # a gap between objective and bound from here on is drawn
_JUMP = 1e-9  # of a law between two segments


def _lines(title: str, x: str, y: str, drawn: Sequence[Figure], *, log: bool = False, **more: Any) -> Figure:
    """A figure of lines and points; log: whether x is logarithmic."""
    return {
        "kind": "lines",
        "title": title,
        "x": {"label": x, "log": log},
        "y": {"label": y, "log": False},
        "series": list(drawn),
        **more,
    }


def _series(name: str, look: str, colour: int, x: Iterable[Any], y: Iterable[Any], **more: Any) -> Figure:
    """One series of a figure of lines."""
    return {"name": name, "look": look, "colour": colour, "x": [*x], "y": [*y], **more}


def _table(title: str, heads: Sequence[str], rows: Iterable[Sequence[Any]]) -> Figure:
    return {"kind": "table", "title": title, "heads": [*heads], "rows": [*rows], "note": ""}


# The mechanism.


def law_figures(design: Design) -> list[Figure]:
    """The mechanism: bars, a heat map or lines from its law, else the family's own picture, else its tables."""
    mechanism = design.mechanism
    if mechanism is None:
        return []
    figure = law_figure(mechanism)
    if figure is not None:
        return [figure]
    tables = [_table(*parts) for parts in design.family.tables(design)]
    if design.family.draws:
        return [{"kind": "picture", "title": "The mechanism", "svg": picture(design.plot)}, *tables]
    return tables


def law_figure(mechanism: Any) -> Figure | None:
    """A mechanism's law as bars, a heat map or lines; None where it is none of those, or too large."""
    sizes = getattr(getattr(mechanism, "question", None), "sizes", None)
    if sizes is not None and hasattr(mechanism, "pmf"):
        return _noise(np.asarray(mechanism.pmf, dtype=float).reshape(-1), sizes)
    if getattr(mechanism, "segments", ()):
        return _affine(mechanism)
    if hasattr(mechanism, "density"):
        return _density(mechanism)
    if hasattr(getattr(mechanism, "noise", None), "weights"):
        return _integers(mechanism.noise)
    if hasattr(getattr(mechanism, "law", None), "deltas"):
        return _random_steps(mechanism)
    matrix, outputs = getattr(mechanism, "matrix", None), getattr(mechanism, "outputs", None)
    if matrix is None or outputs is None or np.ndim(matrix) != 2 or np.ndim(outputs) != 1:
        return None
    cells = np.asarray(matrix, dtype=float)
    labels = getattr(mechanism, "inputs", range(cells.shape[0]))
    used = np.flatnonzero(cells.max(axis=0) > 0)
    if cells.shape[0] * used.size > _CELLS or len(labels) != cells.shape[0]:
        return None
    title = "Probability of every output, input by input"
    return _heat(title, "input", labels, "published value", np.asarray(outputs)[used], cells[:, used])


def _heat(title: str, down: str, rows: Iterable[Any], across: str, columns: Iterable[Any], cells: Any) -> Figure:
    return {
        "kind": "heat",
        "title": title,
        "x": across,
        "y": down,
        "rows": names(rows),
        "columns": names(columns),
        "values": cells,
    }


def _noise(masses: Any, sizes: tuple[int, ...]) -> Figure | None:
    if len(sizes) == 2 and masses.size <= _CELLS:
        return _heat(NOISE, "noise η₁", range(sizes[0]), "noise η₂", range(sizes[1]), masses.reshape(sizes))
    if masses.size > _BARS:
        return None
    return _bars(NOISE, "noise η, added to the true answer", range(masses.size), masses)


def _bars(title: str, x: str, labels: Iterable[Any], values: Any) -> Figure:
    return {"kind": "bars", "title": title, "x": x, "y": "probability", "labels": names(labels), "values": values}


def _integers(law: Any) -> Figure:
    """The PMF of noise on the integers, as far as a bar can be seen."""
    masses = np.asarray(law.floats, dtype=float)
    seen = np.flatnonzero(masses > _SEEN * masses.max())
    first, last = int(seen[0]), int(seen[-1])
    if last - first >= _BARS:
        first = last - _BARS + 1
    return _bars(NOISE, "noise η", range(law.first + first, law.first + last + 1), masses[first : last + 1])


def _density(mechanism: Any) -> Figure:
    """The density of noise on the reals, and its atom in words."""
    edges, values = mechanism.density()
    seen = np.flatnonzero(values > _SEEN * values.max())
    edges, values = edges[seen[0] : seen[-1] + 2], values[seen[0] : seen[-1] + 1]
    share = -(-values.size // _DRAWN)
    if share > 1:  # means of neighbouring cells
        cells = [values[k : k + share].mean() for k in range(0, values.size, share)]
        edges, values = np.append(edges[:-1:share], edges[-1]), np.array(cells)
    drawn = [_series("this design", "area", 0, edges, np.append(values, values[-1]), steps=True)]
    atom = float(mechanism.atom / mechanism.total)
    note = f"An atom of {atom:.4g} at 0 is not drawn." if atom else ""
    return _lines("Density of the noise", "noise η", "density", drawn, note=note)


def _random_steps(mechanism: Any) -> Figure:
    """How often each step between outputs is taken, of Laplace noise by random steps."""
    masses = np.asarray(mechanism.law.pmf, dtype=float)
    seen = np.flatnonzero(masses > _SEEN * masses.max())
    steps = np.asarray(mechanism.law.deltas, dtype=float)[seen] / float(mechanism.epsilon)
    return _bars(
        "Probability of every step between outputs",
        "step between outputs",
        [f"{step:.3g}" for step in steps[::-1]],
        masses[seen][::-1],
    )


def other_laws(design: Design) -> list[Figure]:
    """Laws of published noise at the same budget, as outlines over the design's own."""
    laws = design.family.beside(design).items()
    cuts = {name: max(1, -(-len(y) // _DRAWN)) if len(x) > len(y) else 1 for name, (x, y) in laws}
    return [{"name": name, "x": x[:: cuts[name]], "y": y[:: cuts[name]]} for name, (x, y) in laws if len(y) < _BARS]


def dots(rows: Iterable[Values], loss: str) -> Figure:
    """What the classes of a recommendation cost, and the proven bounds below."""
    keys = {"name": "class", "value": "objective", "low": "bound", "certified": "certified", "notes": "notes"}
    drawn = [{key: row[name] for key, name in keys.items()} for row in rows if row["objective"] is not None]
    return {"kind": "dots", "title": "What each class costs, and what is proven of it", "x": loss, "rows": drawn}


def _affine(mechanism: Any) -> Figure | None:
    """Pr[output | x] of the outputs of a piecewise affine law: a line each, with gaps at jumps."""
    segments, outputs = mechanism.segments, np.asarray(mechanism.outputs, dtype=float)
    if outputs.size > _OUTPUTS or len(segments) * outputs.size > _CELLS:
        return None
    drawn = []
    for i, output in enumerate(outputs):
        points: list[tuple[float | None, float | None]] = []
        for segment in segments:
            left, right = float(segment.left[i]), float(segment.right[i])
            before = points[-1][1] if points else None
            if before is None or abs(before - left) > _JUMP:
                points += [(None, None)] if points else []
                points.append((float(segment.low), left))
            points.append((float(segment.high), right))
        drawn.append(_series(f"output {output:.4g}", "line", i, *zip(*points, strict=True)))
    return _lines("Probability of every output, against the input", "input x", "probability", drawn)


def names(values: Iterable[Any]) -> list[str]:
    """Inputs or outputs in words."""
    numbers = (int, float, Fraction, np.generic)
    return [f"{float(value):g}" if isinstance(value, numbers) else str(value) for value in values]


# Its privacy.


def profile_figures(mechanism: Any, point: Values) -> list[Figure]:
    """δ(ε) for every notion that has one, and the trade-off curve of errors.

    point: epsilon and delta (0 where there is none of that name), marked unless one of them is None.

    Raises WorkbenchError where the mechanism has no exact laws, or too many comparisons to draw while one waits.
    """
    from workbench.privacy.curve import profile

    subject = as_mechanism(mechanism)
    most = _MASSES // max(1, len(subject.outputs))
    if len(list(islice(subject.comparisons(), most + 1))) > most:
        raise WorkbenchError(f"A profile is drawn for up to {most} comparisons of neighbours; there are more.")
    real = on_real_inputs(subject)
    named = [each for name in known() if isinstance(each := notion(name), DeltaNotion)]
    curves = {measure: profile(subject, measure.name) for measure in named if measure.convex or not real}
    numbers = [point.get("epsilon"), point.get("delta", 0)]
    marked = all(isinstance(number, (int, float, Fraction)) for number in numbers)
    budget = [[float(number)] for number in numbers] if marked else []
    ends = next(iter(curves.values())).ends
    reached = [
        curve.ends[curve.heights(curve.ends) > _PROFILE * curve.heights(np.zeros(1))] for curve in curves.values()
    ]
    last = max(1e-3, 1.5 * budget[0][0] if budget else 0.0, *(1.15 * float(each[-1]) for each in reached if each.size))
    grid = np.unique(np.concatenate([np.linspace(0, last, 150), _thinned(ends[ends <= last], _ENDS)]))
    drawn = []
    for k, (measure, curve) in enumerate(curves.items()):
        x, y = grid, curve.heights(grid)
        if all(not piece.q for pieces in curve.curves for piece in pieces):  # a staircase
            x, y = np.repeat(grid, 2)[1:], np.repeat(y, 2)[:-1]
        drawn.append(_series(f"{measure.title} δ", "line", k, x, y))
    drawn += [_series("asked", "filled", 6, *budget)] if budget else []
    shown = [_lines("Privacy profile: the δ that holds at every ε", "ε", "δ(ε)", drawn)]
    dp = next((curve for measure, curve in curves.items() if measure.name == "dp"), None)
    return [*shown, _tradeoff(dp, budget)] if dp is not None and not subject.one_sided else shown


def _thinned(ends: Any, most: int) -> Any:
    return ends if ends.size <= most else np.linspace(0, float(ends[-1]), most)


def _tradeoff(profile: Any, budget: Sequence[Any]) -> Figure:
    """Type II error against type I error of telling neighbours apart: the best that the DP profile allows.

    profile: of a symmetric relation; as δ is affine in e^ε between its ends, the maximum is at an end.
    """
    from workbench.privacy.risk import errors_granted

    ends = _thinned(profile.ends, 400)
    alpha = np.unique(np.concatenate([np.linspace(0, 1, 101), np.geomspace(1e-4, 1, 60)]))
    drawn = [_series("this mechanism", "line", 0, alpha, errors_granted(alpha, ends, profile.heights(ends)))]
    drawn += [_series("asked (ε, δ)", "dashed", 6, alpha, errors_granted(alpha, *budget))] if budget else []
    drawn.append(_series("guessing", "dashed", 7, [0, 1], [1, 0]))
    return _lines("Trade-off curve: telling two neighbours apart", "type I error α", "type II error β", drawn)


# Rows of designs and of frontiers (`workbench.families.frontier_plan`): error against every budget.


def _solved(rows: Iterable[Values]) -> list[Values]:
    return [row for row in rows if isinstance(row.get("objective"), (int, float))]


def along(name: str, label: str, rows: Sequence[Values], *, scale: str, steps: bool) -> Figure:
    """The objective against a number of the budget. rows: those of designs, each with its value under its name; scale:
    of its slider; steps: whether the objective may jump."""
    solved = _solved(rows)
    x, y = [row[name] for row in solved], [row["objective"] for row in solved]
    drawn = []
    for colour, kind in ((2, "optimum"), (1, "upper bound"), (4, "lower bound")):
        law = [row["oracle_value"] if row.get("oracle_kind") == kind else None for row in solved]
        if any(value is not None for value in law):
            drawn.append(_series(f"closed form ({kind})", "halo", colour, x, law))
    low = [row["objective"] if row.get("bound") is None else row["bound"] for row in solved]
    if any(high - bound > _OPEN * max(1.0, abs(high)) for high, bound in zip(y, low, strict=True)):
        drawn.append(_series("proven interval", "band", 0, x, y, low=low, steps=steps))
    drawn.append(_series("designs", "hollow", 0, x, y, steps=steps))
    failed = [str(row.get("failure") or row.get("status")) for row in rows if row not in solved]
    between = "keep the last value, as the least error jumps" if steps else "only join them for the eye"
    note = f"Marks are computed; the thin lines {between}." if len(solved) > 1 else ""
    note += f" {len(failed)} of {len(rows)} values have no design there: {failed[0]}" if failed else ""
    what = label.removeprefix("least ")
    title = f"{what[:1].upper() if what.isascii() else what[:1]}{what[1:]} against {NAMES.get(name, name)}"
    more = {"along": name, "note": note, "zero": scale == "share"}
    figure = _lines(title, NAMES.get(name, name), label, drawn, log=scale != "count", **more)
    figure["y"]["log"] = bool(y) and min(y) > 0 and max(y) > _TALL * min(y)
    return figure


def _pieces(name: str, look: str, colour: int, rows: Sequence[Values]) -> list[Figure]:
    """Exact pieces of a frontier along δ as a series; none of no rows."""
    x, y = ([row[end] for row in rows for end in (at, f"{at}_high")] for at in ("delta", "objective"))
    return [_series(name, look, colour, x, y)] if rows else []


def rivals(rows: Sequence[Values]) -> Figure:
    """From rows of the family's frontier: exact pieces along δ as a series, and published mechanisms as a table."""
    pieces = [row for row in rows if row.get("curve") == "piece" and row.get("objective") is not None]
    proven = [row for row in pieces if row.get("status") == "optimal"]
    drawn = _pieces("exact frontier, proven", "segments", 1, proven)
    rest = [row for row in pieces if row not in proven]
    drawn += _pieces("frontier, not proven in time", "dashed-segments", 1, rest)
    listed = [
        [row.get("mechanism"), row.get("objective"), row.get("bound"), _standing(row)]
        for row in sorted(rows, key=lambda row: (row.get("objective") is None, row.get("objective") or 0.0))
        if row.get("curve") in ("baseline", "limit")
    ]
    heads = ["mechanism", "error", "no less than", "proof"]
    table = _table("Other mechanisms at the same budget", heads, listed)
    table["note"] = "" if listed else "None is published for this budget."
    return {"overlays": {"delta": drawn} if drawn else {}, "table": table}


def _standing(row: Values) -> str:
    """Whether a published mechanism is proven at the budget, or why it has no number."""
    if row.get("objective") is None:
        return str(row.get("failure") or row.get("status"))
    return "certified" if row.get("certified") else "exact audit" if row.get("private") else "a closed form"


def tradeoffs(rows: Sequence[Values]) -> list[Figure]:
    """The rows of a frontier: error against ε (ρ, μ, a scale), and against δ by exact pieces."""
    solved, figures = _solved(rows), []
    for name in dict.fromkeys(row.get("notion") for row in solved):
        mine = [row for row in solved if row.get("notion") == name]
        title = f" ({name})" if name else ""
        for budget, label in (("epsilon", "ε"), ("rho", "ρ"), ("mu", "μ"), ("scale", "scale of the budget")):
            known = [row for row in mine if row.get(budget) is not None]
            if drawn := _by_budget(budget, [row for row in known if row.get("curve") in ("point", "baseline")]):
                figures.append(_lines(f"Error against {label}{title}", label, "error", drawn))
        pieces = [row for row in mine if row.get("curve") == "piece"]
        drawn = []
        for k, epsilon in enumerate(few({row["epsilon"] for row in pieces})):
            part = [row for row in pieces if row["epsilon"] == epsilon]
            drawn += _pieces(f"ε = {epsilon:g}", "segments", k, part)
        if drawn:
            figures.append(_lines(f"Error against δ: exact pieces{title}", "δ", "error", drawn))
    return figures


def _by_budget(budget: str, rows: Sequence[Values]) -> list[Figure]:
    """One series for every mechanism at every other coordinate (δ, α, runs, outputs, bits), at a few values of each.

    Baselines are drawn where nothing but the budget varies: at several nobody can tell so many lines apart.
    """
    others_of = ("delta", "alpha", "runs", "levels", "bits", "ell")
    names = [name for name in others_of if any(row.get(name) is not None for row in rows)]
    others = {name: few({row[name] for row in rows if row.get(name) is not None}) for name in names}
    told = [name for name in names if len({row.get(name) for row in rows}) > 1]
    groups: dict[tuple[Any, ...], list[Values]] = {}
    for row in rows:
        near = all(row.get(name) is None or row[name] in values for name, values in others.items())
        if near and not (told and row.get("curve") == "baseline"):
            where = [(name, row[name]) for name in told if row.get(name) is not None]
            groups.setdefault((row.get("curve"), row.get("mechanism"), *where), []).append(row)
    return _curves(budget, groups)


def _curves(budget: str, groups: Mapping[tuple[Any, ...], list[Values]]) -> list[Figure]:
    """A series for the rows of every (curve, mechanism, *coordinates)."""
    drawn = []
    for k, ((curve, mechanism, *where), part) in enumerate(groups.items()):
        part.sort(key=lambda row: float(row[budget]))
        sure = all(row.get("certified") is True for row in part)
        name = ", ".join([str(mechanism), *(f"{word} {value:g}" for word, value in where)])
        look = "dashed" if curve == "baseline" else "line" if sure else "hollow"
        look = look if len(part) > 1 else "filled" if sure else "hollow"
        x, y = ([row[at] for row in part] for at in (budget, "objective"))
        drawn.append(_series(name, look, k, x, y, steps=jumps(part)))
    return drawn
