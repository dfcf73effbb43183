"""Make the map of the formulas of a question: where in the (ε, δ) plane each formula holds.

If δ has no slider, the map shows the optimum against ε instead. The map is a dictionary:

    {"kind": "map", "title", "x", "y", "note", "moved",
     "regions": [{"name", "colour", "x", "low", "high",
                  "numerator", "numerator_delta", "denominator", "steps"}]}

    moved         whether δ has a slider
    x             of the map: its label; of a region: values of ε
    low, high     the ends of a region in δ for every x; without a slider of δ both are the optimum
    numerator ... the formula of a region, see `Formula.to_dict`
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from workbench.errors import InvalidRequest
from workbench.exact.numbers import ONE, ZERO
from workbench.exact.objects import Record
from workbench.explorer.given import View
from workbench.explorer.page_request import PageRequest, list_notion_parameters
from workbench.formulas.certificate import FormulaQuestion
from workbench.formulas.formula import solve_formula
from workbench.formulas.pieces import Piece
from workbench.formulas.plot import choose_epsilon_range, number_formulas, sample_values
from workbench.pipeline.formula_program import check_formula_notion

_EPSILON_LIMITS = Fraction(1, 100), Fraction(4)  # The interval of ε that a map covers.
_TIME_LIMIT_SECONDS = 6.0  # Regions that are not proven by then stay blank.
_MAX_PROGRAM_SIZE = 600  # A program with more rows or columns has no map.
_POINTS_PER_REGION = 40  # The ends of a region are sampled at this many values of ε.


def make_formula_map(request: PageRequest) -> View:
    """Make the map, as far as it is proven within some seconds.

    Args:
        request: The request of the page.

    Raises:
        WorkbenchError: The question has no formula.
    """
    family_request = request.make_request("audit")
    notion = family_request.claim.notion.name
    check_formula_notion(notion)
    parameters = list_notion_parameters(notion) or ()
    moves_delta = "delta" in request.slider_values and "delta" in parameters
    # A map states no options, so `dict` returns none.
    question = FormulaQuestion(
        request.family, make_request=family_request.at_point, read_values=dict, notion=notion
    )
    deltas = None
    y_label = "optimum"
    if moves_delta:
        deltas = (ZERO, ONE)  # The whole interval of δ.
        y_label = "δ"
    statement, *_ = question.state_program(deltas)
    size = max(statement.program.program.shape)
    if size > _MAX_PROGRAM_SIZE:
        raise InvalidRequest(
            f"A map is drawn for programs of at most {_MAX_PROGRAM_SIZE} rows and columns. Got "
            f"{size}."
        )
    formula = solve_formula(question, _EPSILON_LIMITS, deltas, _TIME_LIMIT_SECONDS)
    low, high = choose_epsilon_range(formula.pieces)
    numbers = number_formulas(formula.pieces)
    regions = []
    for piece in formula.pieces:
        start, _ = piece.epsilon
        if start < high:
            regions.append(_make_map_region(piece, numbers[piece.to_text()], low, high))
    note = ""
    if formula.unproven:
        note = "Blank: not proven within some seconds. workbench formula continues."
    return {
        "kind": "map",
        "title": "Which formula holds where",
        "x": {"label": "privacy budget ε"},
        "y": {"label": y_label},
        "regions": regions,
        "note": note,
        "moved": moves_delta,
    }


def _make_map_region(piece: Piece, number: int, low: float, high: float) -> Record:
    """Return the region of a piece of the formula, for ε in low..high. Formulas count from 1."""
    start, end = piece.epsilon
    epsilons = np.linspace(max(start, low), min(end, high), _POINTS_PER_REGION)
    if piece.has_delta_interval or piece.value is None:
        lower, upper = piece.delta
    else:
        lower = upper = piece.value
    formula = {
        name: value
        for name, value in piece.to_dict().items()
        if name.startswith(("numerator", "denominator"))
    }
    return {
        "name": f"{number}: {piece.to_text()}",
        "colour": number - 1,
        "steps": piece.steps,
        "x": epsilons,
        "low": sample_values(lower, epsilons, piece.steps),
        "high": sample_values(upper, epsilons, piece.steps),
        **formula,
    }
