"""Plain data that the page draws, and the laws of mechanisms as such; floats here are for pictures.

    figure       what it holds
    lines        x and y axes {label, log}, series {name, look, colour, x, y (, low)}, marks of budgets
    bars         labels, values
    heat         rows, columns, values [row][column]
    picture      an SVG of the family's own
    table        heads, rows

look: line, dashed, hollow (a solver's word), filled (proven), halo (around other marks), segments (pairs of points),
dashed-segments, band (low..y). None in x or y is a gap. steps: whether a value is kept until the next point.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np

from workbench.io.html import picture

if TYPE_CHECKING:
    from workbench.families.design import Design

__all__ = ["Figure", "law_figure", "law_figures", "lines", "plain", "series", "table"]

Figure = dict[str, Any]
_BARS, _CELLS, _OUTPUTS = 2000, 20_000, 24  # drawn at most


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
    return {
        "kind": "lines",
        "title": title,
        "x": {"label": x, "log": log_x},
        "y": {"label": y, "log": False},
        "series": list(series),
        **more,
    }


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
    figure = None if mechanism is None else law_figure(mechanism)
    if figure is None and mechanism is not None and design.family.draws:
        figure = {"kind": "picture", "title": "The mechanism", "svg": picture(design.plot)}
    tables = [table(title, heads, rows) for title, heads, rows in design.family.tables(design)] if mechanism else []
    return [figure, *([] if figure["kind"] != "picture" else tables)] if figure is not None else tables


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
    labels = getattr(mechanism, "inputs", range(cells.shape[0]))
    used = np.flatnonzero(cells.max(axis=0) > 0)
    if cells.shape[0] * used.size > _CELLS or len(labels) != cells.shape[0]:
        return None
    return {
        "kind": "heat",
        "title": "Probability of every output, input by input",
        "x": "published value",
        "y": "input",
        "rows": _names(labels),
        "columns": _names(np.asarray(outputs)[used]),
        "values": plain(cells[:, used]),
    }


def _noise(masses: Any, sizes: tuple[int, ...]) -> Figure | None:
    if len(sizes) == 2 and masses.size <= _CELLS:
        return {
            "kind": "heat",
            "title": "Probability of every noise value",
            "x": "noise η₂",
            "y": "noise η₁",
            "rows": _names(range(sizes[0])),
            "columns": _names(range(sizes[1])),
            "values": plain(masses.reshape(sizes)),
        }
    if masses.size > _BARS:
        return None
    return {
        "kind": "bars",
        "title": "Probability of every noise value",
        "x": "noise η, added to the true answer",
        "y": "probability",
        "labels": _names(range(masses.size)),
        "values": plain(masses),
    }


def _affine(mechanism: Any) -> Figure | None:
    """Pr[output | x] of the outputs of a piecewise affine law: a line each, with gaps at jumps."""
    segments, outputs = mechanism.segments, np.asarray(mechanism.outputs, dtype=float)
    if outputs.size > _OUTPUTS or len(segments) * outputs.size > _CELLS:
        return None
    ends = [(float(segment.low), float(segment.high), segment.left, segment.right) for segment in segments]
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
    numbers = (int, float, Fraction, np.generic)
    return [f"{float(value):g}" if isinstance(value, numbers) else str(value) for value in values]
