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
from workbench.explorer.page_request import PageRequest, parameters
from workbench.formulas.certificate import Question
from workbench.formulas.formula import formula_of
from workbench.formulas.pieces import Piece
from workbench.formulas.plot import numbered, sampled, shown
from workbench.pipeline.stated import refuse_notion

_LIMITS = Fraction(1, 100), Fraction(4)  # of ε
_SECONDS = 6.0
_LARGEST = 600  # rows and columns of a program
_STEPS = 40  # of ε in a region


def formula_map(request: PageRequest) -> View:
    """The figure, as far as some seconds go. Raises WorkbenchError for a question that has no formula."""
    own = request.request("audit")
    notion = own.claim.notion.name
    refuse_notion(notion)
    moved = "delta" in request.numbers and "delta" in (parameters(notion) or ())
    question = Question(request.kind, own.at, dict, notion)
    deltas = (ZERO, ONE) if moved else None
    size = max(question.stated(deltas)[0].program.program.shape)
    if size > _LARGEST:
        raise InvalidRequest(
            f"A map is drawn for programs of at most {_LARGEST} rows and columns. Got {size}."
        )
    formula = formula_of(question, _LIMITS, deltas, _SECONDS)
    low, high = shown(formula.pieces)
    numbers = numbered(formula.pieces)
    drawn = [
        _region(piece, numbers[piece.text()], low, high)
        for piece in formula.pieces
        if piece.epsilon[0] < high
    ]
    note = (
        "" if not formula.open else "Blank: not proven in some seconds; workbench formula goes on."
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


def _region(piece: Piece, number: int, low: float, high: float) -> Record:
    epsilons = np.linspace(max(piece.epsilon[0], low), min(piece.epsilon[1], high), _STEPS)
    ends = piece.delta if piece.free or piece.value is None else (piece.value, piece.value)
    below, above = (sampled(end, epsilons, piece.steps) for end in ends)
    known = {
        name: value
        for name, value in piece.to_dict().items()
        if name.startswith(("numerator", "denominator"))
    }
    lines = {"x": epsilons, "low": below, "high": above}
    return {
        "name": f"{number}: {piece.text()}",
        "colour": number - 1,
        "steps": piece.steps,
        **lines,
        **known,
    }
