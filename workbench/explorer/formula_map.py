"""The map of the formulas of a question for the page: where in the (ε, δ) plane each holds; where δ is not moved, the
optimum over ε.

    {"kind": "map", "title", "x", "y", "note",
     "regions": [{"name", "colour", "x", "low", "high",                      ends of δ at some ε
                  "numerator", "numerator_delta", "denominator", "steps"}]}  see `Formula.to_dict`
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from workbench.errors import InvalidRequest
from workbench.exact.numbers import ONE, ZERO
from workbench.exact.objects import Record
from workbench.explorer.given import View
from workbench.explorer.page_request import PageRequest, notion_parameters
from workbench.formulas.certificate import FormulaQuestion
from workbench.formulas.formula import solve_formula
from workbench.formulas.pieces import Piece
from workbench.formulas.plot import choose_epsilon_range, number_formulas, sample_values
from workbench.pipeline.stated import check_formula_notion

_EPSILON_LIMITS = Fraction(1, 100), Fraction(4)  # of ε
_TIME_LIMIT_SECONDS = 6.0
_MAX_PROGRAM_SIZE = 600  # rows and columns of a program
_POINTS_PER_REGION = 40  # of ε in a region


def make_formula_map(request: PageRequest) -> View:
    """The figure, as far as some seconds go. Raises WorkbenchError for a question that has no formula."""
    own = request.make_request("audit")
    notion = own.claim.notion.name
    check_formula_notion(notion)
    moved = "delta" in request.slider_values and "delta" in (notion_parameters(notion) or ())
    question = FormulaQuestion(request.family, own.at_point, dict, notion)
    deltas = (ZERO, ONE) if moved else None
    size = max(question.state_program(deltas)[0].program.program.shape)
    if size > _MAX_PROGRAM_SIZE:
        raise InvalidRequest(
            f"A map is drawn for programs of at most {_MAX_PROGRAM_SIZE} rows and columns. Got {size}."
        )
    formula = solve_formula(question, _EPSILON_LIMITS, deltas, _TIME_LIMIT_SECONDS)
    low, high = choose_epsilon_range(formula.pieces)
    numbers = number_formulas(formula.pieces)
    drawn = [
        _make_map_region(piece, numbers[piece.to_text()], low, high)
        for piece in formula.pieces
        if piece.epsilon[0] < high
    ]
    note = (
        ""
        if not formula.unproven
        else "Blank: not proven in some seconds; workbench formula goes on."
    )
    axes = {"x": {"label": "privacy budget ε"}, "y": {"label": "δ" if moved else "optimum"}}
    return {
        "kind": "map",
        "title": "Which formula holds where",
        **axes,
        "regions": drawn,
        "note": note,
        "moved": moved,
    }


def _make_map_region(piece: Piece, number: int, low: float, high: float) -> Record:
    epsilons = np.linspace(
        max(piece.epsilon[0], low), min(piece.epsilon[1], high), _POINTS_PER_REGION
    )
    ends = (
        piece.delta
        if piece.has_delta_interval or piece.value is None
        else (piece.value, piece.value)
    )
    below, above = (sample_values(end, epsilons, piece.steps) for end in ends)
    known = {
        name: value
        for name, value in piece.to_dict().items()
        if name.startswith(("numerator", "denominator"))
    }
    lines = {"x": epsilons, "low": below, "high": above}
    return {
        "name": f"{number}: {piece.to_text()}",
        "colour": number - 1,
        "steps": piece.steps,
        **lines,
        **known,
    }
