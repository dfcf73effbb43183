"""Pictures of formulas: the (ε, δ) plane with a region for each of them, or, at one δ, the optimum over ε."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np

from workbench.exact.objects import FloatPair, Record
from workbench.formulas.text import LATEX
from workbench.io.figures import COLOURS, apply_style_sheet, make_panels
from workbench.solvers.arrays import Vector

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from workbench.formulas.pieces import Piece
    from workbench.solvers.exact.polynomials import Affine

_STEPS = 120  # of ε in a piece
_HATCHES = ("", "///", "...", "\\\\\\", "xxx", "+++")  # from one round of colours to the next
_NAMED = 40  # breakpoints that are named
_TICKS = (0, 0.001, 0.01, 0.05, 0.1, 0.2, 0.3, 0.5, 0.7, 1)  # of δ, shown by its square root
_LEAST, _MOST, _BEYOND = (
    3.0,
    20.0,
    1.4,
)  # ε shown: of a formula without an end, and beyond its last breakpoint
_LEGEND = 0.045  # inches of a sign
_WIDE = 0.025  # of a region that takes its number, as a part of the axis
_BELOW = 24  # formulas of a legend's column


@apply_style_sheet
def draw_formulas(what: str, pieces: Sequence[Piece], epsilon: float | None = None) -> Figure:
    """The map where δ is free, else the curve; the curve over δ at a given ε."""
    if epsilon is not None:
        return _draw_over_delta(what, pieces, epsilon)
    free = any(piece.has_delta_interval for piece in pieces)
    drawn, axis, numbers = _make_axes(pieces)
    low, high = choose_epsilon_range(pieces)
    axis.set_xlim(low, high)
    for piece in pieces:
        start, end = max(piece.epsilon[0], low), min(piece.epsilon[1], high)
        if start < end:
            (_draw_region if free else _draw_curve)(
                axis, piece, np.linspace(start, end, _STEPS), numbers
            )
    _draw_breakpoints(axis, pieces, high)
    axis.set(xlabel="ε", ylabel="δ" if free else "optimum", xlim=(low, high))
    if free:
        last = max(
            float(piece.delta[1](Fraction(2)))
            for piece in pieces
            if not piece.delta[1].denominator.degree()
        )
        axis.set_yscale("function", functions=(lambda y: np.sqrt(np.maximum(y, 0)), np.square))
        axis.set(ylim=(0, last), yticks=[tick for tick in _TICKS if tick <= last])
        axis.set_yticklabels([f"{tick:g}" for tick in axis.get_yticks()])
    axis.set_title(what, pad=42)
    _draw_legend(axis, numbers)
    return drawn


def _draw_over_delta(what: str, pieces: Sequence[Piece], epsilon: float) -> Figure:
    """The optimum over δ at one ε."""
    drawn, axis, numbers = _make_axes(pieces)
    for piece in pieces:
        assert piece.value_at is not None
        number, deltas = numbers[piece.to_text()], piece.delta_limits_at(Fraction(epsilon))
        x = Fraction(math.exp(epsilon / piece.steps))
        values = [float(piece.value_at(x, Fraction(delta))) for delta in deltas]
        axis.plot(
            deltas,
            values,
            label=_legend_label(piece, number),
            color=_region_style(number)["color"],
            linewidth=2.2,
        )
    axis.set(xlabel="δ", ylabel="optimum")
    axis.set_title(what)
    _draw_legend(axis, numbers)
    return drawn


def _make_axes(pieces: Sequence[Piece]) -> tuple[Figure, Axes, dict[str, int]]:
    """A figure with room for the legend, its axis, and the number of every formula."""
    numbers = number_formulas(pieces)
    wide = _LEGEND * _count_legend_columns(numbers) * max(len(text) for text in numbers)
    drawn, (axis,) = make_panels(
        width=6.4 + wide, height=max(4.6, 0.42 * min(len(numbers), _BELOW))
    )
    return drawn, axis, numbers


def number_formulas(pieces: Sequence[Piece]) -> dict[str, int]:
    """The number of every formula, by where it holds first."""
    return {text: k for k, text in enumerate(dict.fromkeys(piece.to_text() for piece in pieces), 1)}


def _count_legend_columns(numbers: Mapping[str, int]) -> int:
    """Of the legend."""
    return math.ceil(len(numbers) / _BELOW)


def choose_epsilon_range(pieces: Sequence[Piece]) -> FloatPair:
    """The interval of ε of a picture."""
    ends = sorted({end for piece in pieces for end in piece.epsilon if math.isfinite(end)})
    last = max(piece.epsilon[1] for piece in pieces)
    return ends[0], last if math.isfinite(last) else min(_MOST, max(_LEAST, _BEYOND * ends[-1]))


def _region_style(number: int) -> Record:
    colours = COLOURS[:6] + COLOURS[7:]
    return {
        "color": colours[(number - 1) % len(colours)],
        "hatch": _HATCHES[(number - 1) // len(colours) % len(_HATCHES)],
    }


def _legend_label(piece: Piece, number: int) -> str:
    text = (
        r"\mathrm{infeasible}"
        if piece.value_at is None
        else piece.to_text(LATEX).replace(r"\frac", r"\dfrac")
    )
    return rf"$\mathbf{{{number}}}:\ {text}$"


def sample_values(value: Affine, epsilons: Vector, steps: int) -> Vector:
    """A function of x without δ at some ε."""
    return np.array([float(value(Fraction(math.exp(epsilon / steps)))) for epsilon in epsilons])


def _draw_region(axis: Axes, piece: Piece, epsilons: Vector, numbers: Mapping[str, int]) -> None:
    """A region of the plane, with the number of its formula where it is widest."""
    below, above = (sample_values(end, epsilons, piece.steps) for end in piece.delta)
    number = numbers[piece.to_text()]
    style = _region_style(number)
    axis.fill_between(
        epsilons, below, above, facecolor=style["color"], hatch=style["hatch"], edgecolor="white", linewidth=0.6,
        alpha=0.75, label=_legend_label(piece, number),
    )  # fmt: skip
    heights, edge = (
        np.sqrt(np.maximum(above, 0)) - np.sqrt(np.maximum(below, 0)),
        len(epsilons) // 5,
    )
    at = min(max(int(np.argmax(heights)), edge), len(epsilons) - 1 - edge)
    if (
        epsilons[-1] - epsilons[0] > _WIDE * (axis.get_xlim()[1] - axis.get_xlim()[0])
        and heights[at] > _WIDE
    ):
        middle = (math.sqrt(max(below[at], 0)) + heights[at] / 2) ** 2
        axis.text(
            epsilons[at], middle, f"{number}", ha="center", va="center", weight="bold",
            bbox={"facecolor": "white", "alpha": 0.7, "linewidth": 0, "pad": 1},
        )  # fmt: skip


def _draw_curve(axis: Axes, piece: Piece, epsilons: Vector, numbers: Mapping[str, int]) -> None:
    """The optimum in an interval of ε; a band where there is no mechanism."""
    number = numbers[piece.to_text()]
    if piece.value_at is None:
        axis.axvspan(epsilons[0], epsilons[-1], color="#DDDDDD", label=_legend_label(piece, number))
        return
    optima, colour = (
        sample_values(piece.value_at, epsilons, piece.steps),
        _region_style(number)["color"],
    )
    axis.plot(epsilons, optima, label=_legend_label(piece, number), color=colour, linewidth=2.2)


def _draw_breakpoints(axis: Axes, pieces: Sequence[Piece], high: float) -> None:
    """Where formulas change, in numbers above the picture."""
    ends = sorted({piece.epsilon[1] for piece in pieces if piece.epsilon[1] < high})
    for end in ends:
        axis.axvline(end, color="black", linestyle=":", linewidth=0.8, alpha=0.6)
    apart, last = (high - axis.get_xlim()[0]) / _NAMED, -math.inf
    for end in ends:
        last = max(end, last + apart)  # where there is room for the number, led to by a line
        if last <= high:
            place = ("data", "axes fraction")
            axis.annotate(
                f"{end:.5f}", (end, 1), (last, 1.03), place, place, {"arrowstyle": "-", "linewidth": 0.5, "shrinkA": 0},
                rotation=90, ha="center", va="bottom", fontsize=8,
            )  # fmt: skip


def _draw_legend(axis: Axes, numbers: Mapping[str, int]) -> None:
    """Each formula once, in the order of their numbers, beside the picture."""
    handles, labels = axis.get_legend_handles_labels()
    entries = dict(zip(labels, handles, strict=True))
    axis.legend(
        [*entries.values()], [*entries], loc="center left", bbox_to_anchor=(1.01, 0.5), frameon=False, fontsize=8,
        ncols=_count_legend_columns(numbers),
    )  # fmt: skip
