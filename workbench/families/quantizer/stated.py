"""State the linear program of the exact quantizer with polynomials of e^ε as entries, for formulas.

`state_exact_program` gives the program whose optimum is the smallest loss as a function of ε, at
given outputs and knots. A knot is an input at which the law of the output is a variable, and a
piece is the interval between two knots. The law is affine on a piece [a, b] of width w = b - a: at
the input x it is (b - x)/w times the law at a, plus (x - a)/w times the law at b. So one unit of
mass at the output B in the law at a adds the loss ∫ (b - x)/w · error(B - x) dx/2 over the piece;
dx/2 is the uniform density on [-1, 1]. With D = B - a these integrals are

    error       unit of mass in the law at a     unit of mass in the law at b
    absolute    w/2 |D/2 - w/6|                  w/2 |D/2 - w/3|
    squared     w/2 (D²/2 - D w/3 + w²/12)       w/2 (D²/2 - 2 D w/3 + w²/4)

The absolute values may be outside the integrals, because no output lies inside a piece.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from itertools import pairwise

from flint import fmpz_poly

from workbench.errors import must
from workbench.exact.numbers import ZERO, RationalPair
from workbench.families.quantizer.laws import list_knots
from workbench.io.files import format_fraction
from workbench.models.quantizer.program import LawModel
from workbench.pipeline.formula_program import FormulaProgram, check_size
from workbench.pipeline.loss_scale import LossScale
from workbench.questions.quantization import Quantization
from workbench.solvers.exact.parametric import ParametricProgram


def state_exact_program(
    question: Quantization, loss: str | Fraction, extra_knots: int
) -> FormulaProgram:
    """State the exact quantizer LP for given outputs.

    Args:
        question: the question, with outputs and a uniform density.
        loss: "absolute", "squared", or λ for λ|e| + (1 - λ) e².
        extra_knots: the number of equally spaced extra knots from -1 to 1; 0 for none.

    Returns:
        The program in polynomials of e^ε, with names of its columns and a title.

    Raises:
        InvalidRequest: the density is not uniform, or the program is too large.
    """
    c = question.c
    if question.density.name != "uniform":
        must("density", "uniform, for which losses are rational", question.density.name)
    outputs = [*(question.centred_bins or ())]
    knots = list_knots(tuple(outputs), extra_knots)
    share = Fraction(loss == "absolute") if isinstance(loss, str) else loss
    losses = _tabulate_losses(knots, outputs, (c * share, c**2 * (1 - share)))
    points: list[Fraction] = []
    for a, b in pairwise(knots):
        points += [a, b]
    n = len(points)
    m = len(outputs)
    check_size(n * m)
    numbers = {"bins": outputs, "at": points, "loss": _list_by_output(losses)}
    # Losses are divided by `unit`, so that the program's numbers are near 1.
    unit = LossScale(ZERO, float(max(map(max, losses)))).unit
    scaled_program = replace(LawModel(n, m).program, cost=1 / unit)
    odds = fmpz_poly([-1, 1])  # e^ε - 1, by rising powers of e^ε.
    program = ParametricProgram(scaled_program, {"odds": [odds]}, numbers=numbers)
    loss_name = loss
    if not isinstance(loss, str):
        loss_name = f"{format_fraction(share)} absolute, {format_fraction(1 - share)} squared"
    title = f"best unbiased law affine between {len(knots)} knots, {loss_name} loss"
    return FormulaProgram(program, _name_masses(question, points), title)


def _tabulate_losses(
    knots: Sequence[Fraction], outputs: Sequence[Fraction], shares: RationalPair
) -> list[list[Fraction]]:
    """Tabulate the losses of the end laws of all pieces, one row for each end law.

    Args:
        knots: the knots from -1 to 1 in increasing order.
        outputs: the outputs in increasing order, in the units of the knots.
        shares: the coefficients of the absolute and of the squared error.
    """
    rows: list[list[Fraction]] = []
    for a, b in pairwise(knots):
        end_losses = [_compute_end_losses(a, b, output, shares) for output in outputs]
        rows.append([low for low, _ in end_losses])
        rows.append([high for _, high in end_losses])
    return rows


def _list_by_output(losses: Sequence[Sequence[Fraction]]) -> list[Fraction]:
    """List the losses of all end laws for the first output, then for the next one."""
    listed_losses: list[Fraction] = []
    for column in zip(*losses, strict=True):
        listed_losses += column
    return listed_losses


def _name_masses(question: Quantization, points: Sequence[Fraction]) -> dict[str, tuple[int, int]]:
    """Map the names of the masses, such as P(0.5|-1), to their two columns in the program.

    P(0.5|0-) is the mass at the output 0.5 in the left limit of the law at the input 0, and
    P(0.5|0+) is the mass in the right limit.
    """
    bins = question.bins or ()
    n = len(points)
    m = len(bins)
    masses = {}
    for index, x in enumerate(points):
        # The points are the left end, then the right end of each piece.
        is_right_end = index % 2 == 1
        side = ""
        if is_right_end and x < 1:
            side = "-"
        elif not is_right_end and index > 0:
            side = "+"
        name = f"{format_fraction(question.middle + x * question.c)}{side}"
        for i in range(m):
            # A mass is its excess s over the least mass of the output, plus that least mass. The
            # columns are the n m excesses, output by output, and then the m least masses.
            masses[f"P({format_fraction(bins[i])}|{name})"] = (index + i * n, n * m + i)
    return masses


def _compute_end_losses(
    a: Fraction, b: Fraction, output: Fraction, shares: RationalPair
) -> RationalPair:
    """Compute the loss of a unit of mass at an output, in the law at a and in the law at b.

    Args:
        a: the left end of the piece.
        b: the right end of the piece.
        output: the output B, not inside the piece.
        shares: the coefficients of the absolute and of the squared error.
    """
    w = b - a
    D = output - a
    low_absolute = abs(D / 2 - w / 6)
    high_absolute = abs(D / 2 - w / 3)
    low_squared = D**2 / 2 - D * w / 3 + w**2 / 12
    high_squared = D**2 / 2 - 2 * D * w / 3 + w**2 / 4
    absolute_share, squared_share = shares
    low = w / 2 * (absolute_share * low_absolute + squared_share * low_squared)
    high = w / 2 * (absolute_share * high_absolute + squared_share * high_squared)
    return low, high
