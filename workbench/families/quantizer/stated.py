"""The exact quantizer LP at given outputs and knots with polynomials of e^ε as entries, for formulas.

With inputs uniform on [-1, 1] the losses are rational. In a piece [a, b] of width w, with D = B - a, a law at a (at b)
that is published as B costs

    absolute    w/2 |D/2 - w/6|            (w/2 |D/2 - w/3|)                  no output lies inside a piece
    squared     w/2 (D²/2 - D w/3 + w²/12)   (w/2 (D²/2 - 2 D w/3 + w²/4))
"""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from itertools import pairwise

from flint import fmpz_poly

from workbench.errors import must
from workbench.exact.numbers import ZERO, RationalPair
from workbench.families.quantizer.laws import list_knots
from workbench.io.files import format_fraction
from workbench.models.quantizer.program import LawModel
from workbench.pipeline.loss_scale import LossScale
from workbench.pipeline.stated import FormulaProgram, check_size
from workbench.questions.quantization import Quantization
from workbench.solvers.exact.parametric import ParametricProgram


def state_exact_program(
    question: Quantization, loss: str | Fraction, extra_knots: int
) -> FormulaProgram:
    """The program for given bins. Raises InvalidRequest for a question without one."""
    c = question.c
    if question.density.name != "uniform":
        must("density", "uniform, for which losses are rational", question.density.name)
    bins, outputs = question.bins or (), [*(question.centred_bins or ())]
    knots = list_knots(tuple(outputs), extra_knots)
    share = Fraction(loss == "absolute") if isinstance(loss, str) else loss
    units = c * share, c**2 * (1 - share)
    losses = [
        row
        for a, b in pairwise(knots)
        for row in zip(*(_ends(a, b, B, units) for B in outputs), strict=True)
    ]
    points = [x for a, b in pairwise(knots) for x in (a, b)]
    n, m = len(points), len(outputs)
    check_size(n * m)
    model = LawModel(n, m)
    numbers = {
        "bins": outputs,
        "at": points,
        "loss": [losses[e][i] for i in range(m) for e in range(n)],
    }
    unit = LossScale(ZERO, float(max(map(max, losses)))).unit
    in_scale = replace(model.program, cost=1 / unit)
    program = ParametricProgram(in_scale, {"odds": [fmpz_poly([-1, 1])]}, numbers=numbers)
    sides = [
        f"{format_fraction(question.middle + x * c)}{'-' if e % 2 and x < 1 else '+' if e and e % 2 == 0 else ''}"
        for e, x in enumerate(points)
    ]
    masses = {
        f"P({format_fraction(bins[i])}|{side})": (e + i * n, n * m + i)
        for e, side in enumerate(sides)
        for i in range(m)
    }
    named = (
        loss
        if isinstance(loss, str)
        else f"{format_fraction(share)} absolute, {format_fraction(1 - share)} squared"
    )
    return FormulaProgram(
        program, masses, f"best unbiased law affine between {len(knots)} knots, {named} loss"
    )


def _ends(a: Fraction, b: Fraction, output: Fraction, units: RationalPair) -> RationalPair:
    """What the laws at both ends of a piece cost. units: of the absolute and of the squared error."""
    w, D = b - a, output - a
    absolute = abs(D / 2 - w / 6), abs(D / 2 - w / 3)
    squared = D**2 / 2 - D * w / 3 + w**2 / 12, D**2 / 2 - 2 * D * w / 3 + w**2 / 4
    low, high = (
        w / 2 * (units[0] * p + units[1] * q) for p, q in zip(absolute, squared, strict=True)
    )
    return low, high
