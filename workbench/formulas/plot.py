"""Draw a formula: the (ε, δ) plane with a region for each piece, or the optimum against ε or δ.

A formula has pieces, each with an expression of the optimum that holds in a region of (ε, δ).
Pieces with the same expression have one number, one colour and one entry in the legend. x is
e^(ε/steps), the variable of the expressions.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np

from workbench.exact.objects import FloatPair, Record
from workbench.formulas.text import LATEX
from workbench.io.figures import COLOURS, PAGE_INCHES, apply_style_sheet, make_panels
from workbench.solvers.arrays import Vector

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from workbench.formulas.pieces import Piece
    from workbench.solvers.exact.polynomials import Affine

_POINTS_PER_PIECE = 120  # A piece is sampled at this many values of ε.
# The first formulas have no hatch. When all colours are used, the colours repeat with the next one.
_HATCHES = ("", "///", "...", "\\\\\\", "xxx", "+++")
_MAX_BREAKPOINT_LABELS = 40  # There is space for this many labels of breakpoints.
_BREAKPOINT_LABEL_HEIGHT = 1.03  # The height of these labels as a share of the height of the axis.
_BREAKPOINT_LABEL_POINTS = 8  # The size of their letters.
_TITLE_PAD_POINTS = 42  # The distance of the title from the plot, which has space for the labels.
_BLACK_INDEX = 6  # The position of black in the list of colours.
_INFEASIBLE_COLOUR = "#DDDDDD"  # The grey of an interval without a mechanism.
# The ticks of δ, whose axis has a square-root scale.
_DELTA_TICKS = (0, 0.001, 0.01, 0.05, 0.1, 0.2, 0.3, 0.5, 0.7, 1)
# If the last piece has no upper end, the axis of ε ends at a multiple of the last breakpoint
# between these limits.
_MIN_EPSILON_END = 3.0
_MAX_EPSILON_END = 20.0
_EPSILON_END_FACTOR = 1.4
_LEGEND_POINTS = 7  # The size of the letters of the legend.
_LEGEND_CHARACTER_INCHES = 0.04  # The width of a character of the legend.
_LEGEND_HANDLE_INCHES = 0.7  # The width of the colour and the number of a formula in the legend.
_LEGEND_LINE_INCHES = 0.31  # The height of one formula in the legend.
_PLOT_INCHES = 4.2  # The height of a figure without its legend.
# The number of a region whose width or height is below this share of the axis stands beside it.
_MIN_LABELLED_SHARE = 0.025
_LABEL_OFFSET_POINTS = 26  # The number beside a narrow region has this distance from it.
_LINE_WIDTH = 2.2  # The width of a curve in points.


@apply_style_sheet
def draw_formulas(
    description: str, pieces: Sequence[Piece], epsilon: float | None = None
) -> Figure:
    """Draw the pieces of a formula.

    The figure is a map of the (ε, δ) plane if δ has an interval, else the optimum against ε.

    Args:
        description: The title of the figure.
        pieces: The pieces of the formula.
        epsilon: The only ε of the formula; the figure is then the optimum against δ. Default: none.
    """
    if epsilon is not None:
        return _draw_over_delta(description, pieces, epsilon)
    is_map = any(piece.has_delta_interval for piece in pieces)
    figure, axis, numbers = _make_axes(pieces)
    low, high = choose_epsilon_range(pieces)
    axis.set_xlim(low, high)
    draw_piece = _draw_region if is_map else _draw_curve
    for piece in pieces:
        piece_low, piece_high = piece.epsilon
        start = max(piece_low, low)
        end = min(piece_high, high)
        if start < end:
            draw_piece(axis, piece, np.linspace(start, end, _POINTS_PER_PIECE), numbers)
    _draw_breakpoints(axis, pieces, high)
    axis.set(xlabel="ε", ylabel="δ" if is_map else "optimum", xlim=(low, high))
    if is_map:
        _scale_delta_axis(axis, pieces)
    axis.set_title(description, pad=_TITLE_PAD_POINTS)
    _draw_legend(axis, numbers)
    return figure


def _scale_delta_axis(axis: Axes, pieces: Sequence[Piece]) -> None:
    """Give the axis of δ a square-root scale up to the largest constant end of a piece."""
    # Ends with a constant denominator count as constants. They are evaluated at x = 2.
    upper_ends = [high for _, high in (piece.delta for piece in pieces)]
    constant_ends = [float(end(Fraction(2))) for end in upper_ends if not end.denominator.degree()]
    last = max(constant_ends)
    axis.set_yscale("function", functions=(lambda y: np.sqrt(np.maximum(y, 0)), np.square))
    axis.set(ylim=(0, last), yticks=[tick for tick in _DELTA_TICKS if tick <= last])
    axis.set_yticklabels([f"{tick:g}" for tick in axis.get_yticks()])


def _draw_over_delta(description: str, pieces: Sequence[Piece], epsilon: float) -> Figure:
    """Draw the optimum against δ at one ε."""
    figure, axis, numbers = _make_axes(pieces)
    for piece in pieces:
        assert piece.value is not None
        number = numbers[piece.to_text()]
        deltas = piece.delta_limits_at(Fraction(epsilon))
        x = Fraction(math.exp(epsilon / piece.steps))
        values = [float(piece.value(x, Fraction(delta))) for delta in deltas]
        axis.plot(
            deltas,
            values,
            label=_legend_label(piece, number),
            color=_region_style(number)["color"],
            linewidth=_LINE_WIDTH,
        )
    axis.set(xlabel="δ", ylabel="optimum")
    axis.set_title(description)
    _draw_legend(axis, numbers)
    return figure


def _make_axes(pieces: Sequence[Piece]) -> tuple[Figure, Axes, dict[str, int]]:
    """Return a figure with space for the legend below, its axis, and the formulas' numbers."""
    numbers = number_formulas(pieces)
    row_count = math.ceil(len(numbers) / _count_legend_columns(numbers))
    height = _PLOT_INCHES + _LEGEND_LINE_INCHES * row_count
    figure, (axis,) = make_panels(width=PAGE_INCHES, height=height)
    return figure, axis, numbers


def number_formulas(pieces: Sequence[Piece]) -> dict[str, int]:
    """Number the different expressions of the pieces from 1, in the order of the pieces.

    Args:
        pieces: The pieces of a formula.

    Returns:
        The number of each expression, by its text.
    """
    texts = dict.fromkeys(piece.to_text() for piece in pieces)
    return {text: number for number, text in enumerate(texts, 1)}


def _count_legend_columns(numbers: Mapping[str, int]) -> int:
    """Return the number of columns of the legend that fit into the width of a page."""
    longest_label = max(len(text) for text in numbers)
    width = _LEGEND_CHARACTER_INCHES * longest_label + _LEGEND_HANDLE_INCHES
    return min(len(numbers), max(1, int(PAGE_INCHES / width)))


def choose_epsilon_range(pieces: Sequence[Piece]) -> FloatPair:
    """Choose the interval of ε that a figure shows.

    Args:
        pieces: The pieces of a formula.
    """
    ends = sorted({end for piece in pieces for end in piece.epsilon if math.isfinite(end)})
    last = max(high for _, high in (piece.epsilon for piece in pieces))
    if math.isfinite(last):
        return ends[0], last
    extended_end = max(_MIN_EPSILON_END, _EPSILON_END_FACTOR * ends[-1])
    return ends[0], min(_MAX_EPSILON_END, extended_end)


def _region_style(number: int) -> Record:
    """Return the colour and the hatch of a formula with this number."""
    colours = COLOURS[:_BLACK_INDEX] + COLOURS[_BLACK_INDEX + 1 :]  # Black is left out.
    round_number, colour_index = divmod(number - 1, len(colours))
    return {"color": colours[colour_index], "hatch": _HATCHES[round_number % len(_HATCHES)]}


def _legend_label(piece: Piece, number: int) -> str:
    """Return the number and the formula of a piece for the legend."""
    text = r"\mathrm{infeasible}"
    if piece.value is not None:
        text = piece.to_text(LATEX).replace(r"\frac", r"\dfrac")
    return rf"$\mathbf{{{number}}}:\ {text}$"


def sample_values(value: Affine, epsilons: Vector, steps: int) -> Vector:
    """Evaluate a function of x and δ at δ = 0.

    Args:
        value: The function.
        epsilons: The values of ε. Shape (points,).
        steps: The number of steps into which ε is divided: x = e^(ε/steps).

    Returns:
        The values. Shape (points,).
    """
    return np.array([float(value(Fraction(math.exp(epsilon / steps)))) for epsilon in epsilons])


def _draw_region(axis: Axes, piece: Piece, epsilons: Vector, numbers: Mapping[str, int]) -> None:
    """Draw a region of the plane, with the number of its formula where the region is highest.

    The number of a narrow region stands beside it, with a line to the region.

    Args:
        axis: axes of Matplotlib, on which it is drawn.
        piece: the region and its formula.
        epsilons: values of ε at which the ends are drawn, shape (n,).
        numbers: the number of each formula by its text.
    """
    lower, upper = (sample_values(end, epsilons, piece.steps) for end in piece.delta)
    number = numbers[piece.to_text()]
    style = _region_style(number)
    axis.fill_between(
        epsilons,
        lower,
        upper,
        facecolor=style["color"],
        hatch=style["hatch"],
        edgecolor="white",
        linewidth=0.6,
        alpha=0.75,
        label=_legend_label(piece, number),
    )
    # The heights are those on the square-root scale of δ.
    heights = np.sqrt(np.maximum(upper, 0)) - np.sqrt(np.maximum(lower, 0))
    margin = len(epsilons) // 5  # The number keeps off the ends of the region.
    index = min(max(int(np.argmax(heights)), margin), len(epsilons) - 1 - margin)
    axis_start, axis_end = axis.get_xlim()
    axis_width = axis_end - axis_start
    is_wide = epsilons[-1] - epsilons[0] > _MIN_LABELLED_SHARE * axis_width
    is_labelled_inside = is_wide and heights[index] > _MIN_LABELLED_SHARE
    middle = (math.sqrt(max(lower[index], 0)) + heights[index] / 2) ** 2
    offset = (0.0, 0.0)
    arrow = None
    if not is_labelled_inside:
        # Narrow regions lie side by side, so the numbers beside them have different heights.
        offset = (_LABEL_OFFSET_POINTS, (number % 3 - 1) * _LABEL_OFFSET_POINTS / 2)
        arrow = {"arrowstyle": "-", "linewidth": 0.7}
    axis.annotate(
        f"{number}",
        (epsilons[index], middle),
        offset,
        textcoords="offset points",
        arrowprops=arrow,
        ha="center",
        va="center",
        weight="bold",
        bbox={"facecolor": "white", "alpha": 0.7, "linewidth": 0, "pad": 1},
    )


def _draw_curve(axis: Axes, piece: Piece, epsilons: Vector, numbers: Mapping[str, int]) -> None:
    """Draw the optimum in an interval of ε, or a grey band if there is no mechanism."""
    number = numbers[piece.to_text()]
    label = _legend_label(piece, number)
    if piece.value is None:
        axis.axvspan(epsilons[0], epsilons[-1], color=_INFEASIBLE_COLOUR, label=label)
        return
    optima = sample_values(piece.value, epsilons, piece.steps)
    colour = _region_style(number)["color"]
    axis.plot(epsilons, optima, label=label, color=colour, linewidth=_LINE_WIDTH)


def _draw_breakpoints(axis: Axes, pieces: Sequence[Piece], high: float) -> None:
    """Draw a line at every ε where the formula changes, with its number above the plot."""
    piece_ends = {piece_high for _, piece_high in (piece.epsilon for piece in pieces)}
    ends = sorted(end for end in piece_ends if end < high)
    for end in ends:
        axis.axvline(end, color="black", linestyle=":", linewidth=0.8, alpha=0.6)
    axis_start, _ = axis.get_xlim()
    label_distance = (high - axis_start) / _MAX_BREAKPOINT_LABELS
    label_x = -math.inf
    for end in ends:
        # Labels are moved to the right until they do not touch; a line leads to the breakpoint.
        label_x = max(end, label_x + label_distance)
        if label_x <= high:
            axis.annotate(
                f"{end:.5f}",
                (end, 1),
                xytext=(label_x, _BREAKPOINT_LABEL_HEIGHT),
                xycoords=("data", "axes fraction"),
                textcoords=("data", "axes fraction"),
                arrowprops={"arrowstyle": "-", "linewidth": 0.5, "shrinkA": 0},
                rotation=90,
                ha="center",
                va="bottom",
                fontsize=_BREAKPOINT_LABEL_POINTS,
            )


def _draw_legend(axis: Axes, numbers: Mapping[str, int]) -> None:
    """Draw a legend below with each formula once, in the order of their numbers."""
    handles, labels = axis.get_legend_handles_labels()
    entries = dict(zip(labels, handles, strict=True))
    figure = axis.get_figure(root=True)
    assert figure is not None
    figure.legend(
        [*entries.values()],
        [*entries],
        loc="outside lower center",
        frameon=False,
        fontsize=_LEGEND_POINTS,
        ncols=_count_legend_columns(numbers),
    )
