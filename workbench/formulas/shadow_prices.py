"""What one unit of a budget is worth at a design, and which neighbours and constraints decide.

    V(ε, δ)          the optimum of the class the family designs for
    dV/dε, dV/dδ     from below and from above; they differ where two formulas of V meet (V falls in both, convex in δ)

Where the optimum has a formula (`workbench.formula`) both sides are its derivatives there, proven: enclosed between
rationals and rounded to doubles. A neighbour decides where its comparison would miss a budget less by a billionth. A
constraint of the request decides where the solver's multipliers of its rows are not 0: |dV/db| of its sides b.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

import numpy as np

from workbench.errors import WorkbenchError
from workbench.exact.numbers import ZERO, exp_interval
from workbench.exact.objects import FloatPair, Record, Strings
from workbench.formulas.certificate import FormulaQuestion
from workbench.formulas.formula import solve_formula
from workbench.io.shown import render_document, render_facts
from workbench.pipeline.stated import check_formula_notion, list_linear_notions
from workbench.privacy.audit import measure_mechanism
from workbench.privacy.claim import Claim
from workbench.solvers.arrays import Ints
from workbench.solvers.optimal_face import has_unique_value

_RELATIVE_STEP = Fraction(1, 10**9)  # of a budget
_EXP_BITS = 128
_MAX_COMPARISONS = 2_000  # comparisons that are measured
_MAX_LISTED_NAMES = 8
_ZERO_MULTIPLIER = 1e-7  # of a multiplier, as a share of the largest loss

OneSidedPrices = tuple[float | None, float]  # from below (None: there is nothing below), from above


RowPrices = tuple[int, int, float]  # rows that decide, all rows, the largest multiplier


@dataclass(frozen=True)
class ShadowPrices:
    """epsilon, delta: (dV/dε, dV/dδ) from below and from above, None where no formula gives them; binding: the labels
    of the comparisons that decide, and names: what they compare; of: how many comparisons there are; constraints: of
    the request, by name: how many rows decide, of how many, and the largest multiplier; words: why something is
    missing."""

    epsilon: OneSidedPrices | None
    delta: OneSidedPrices | None
    binding: tuple[Ints, ...]
    comparison_count: int
    note: str = ""
    comparison_names: Strings = ()
    constraints: Mapping[str, RowPrices] = field(default_factory=dict)

    def __str__(self) -> str:
        lines = [
            f"one unit of {name} changes the optimum by {_write_prices(*sides)}"
            for name, sides in (("epsilon", self.epsilon), ("delta", self.delta))
            if sides is not None
        ]
        if count := len(self.comparison_names):
            shown = [
                *self.comparison_names[:_MAX_LISTED_NAMES],
                *([f"and {count - _MAX_LISTED_NAMES} more"] if count > _MAX_LISTED_NAMES else []),
            ]
            lines.append(
                f"{count} of {self.comparison_count} comparisons use up the budget to a billionth: {', '.join(shown)}"
            )
        for name, (binding, rows, price) in self.constraints.items():
            where, most = ("", "") if rows == 1 else (f" in {binding} of {rows} rows", "up to ")
            decides = (
                f"decides{where}, a unit is worth {most}{price:.6g}"
                if binding
                else "does not decide"
            )
            lines.append(f"the constraint {name} {decides}")
        return "; ".join([*lines, *filter(None, [self.note])]) + "."

    def _repr_html_(self) -> str:
        return render_document(
            "Shadow prices", render_facts([("", part) for part in str(self).split("; ")])
        )

    def to_dict(self) -> Record:
        """JSON-ready."""
        parts = "binding", "rows", "price"
        return {
            "epsilon": self.epsilon and [*self.epsilon],
            "delta": self.delta and [*self.delta],
            "binding": [[*label] for label in self.binding],
            "names": [*self.comparison_names],
            "comparisons": self.comparison_count,
            "constraints": {
                name: dict(zip(parts, each, strict=True)) for name, each in self.constraints.items()
            },
            "words": self.note,
        }


def _write_prices(below: float | None, above: float) -> str:
    if below is None or below == above:
        return f"{above:.9g}" + (" (upwards)" if below is None else "")
    return f"{below:.9g} from below, {above:.9g} from above"


def compute_shadow_prices(design: Any) -> ShadowPrices:
    """Those of a design. What has no formula has binding comparisons alone, and a sentence that says why."""
    epsilon, delta, words = None, None, ""
    try:
        epsilon, delta = _price_budgets(design.request)
    except WorkbenchError as error:
        words = str(error).rstrip(".")
    constraints = _price_constraints(design)
    compares = hasattr(
        design.mechanism, "comparisons"
    )  # a mechanism of real inputs may have none to list
    if not compares or (less := _shrink_budget(design.claim)) is None:
        return ShadowPrices(epsilon, delta, (), 0, words, (), constraints)
    every = list(
        itertools.islice(
            measure_mechanism(design.mechanism, less, design.mechanism.comparisons()),
            _MAX_COMPARISONS + 1,
        )
    )
    binding: tuple[Ints, ...] = ()
    if len(every) > _MAX_COMPARISONS:
        words = f"{words} more than {_MAX_COMPARISONS} comparisons are not listed".lstrip()
    else:
        binding = tuple(result.label for result in every if not less.is_met_by(result))
    names = tuple(_comparison_name(label, design) for label in binding)
    return ShadowPrices(epsilon, delta, binding, len(every), words, names, constraints)


def _comparison_name(label: Ints, design: Any) -> str:
    """What a comparison compares: two inputs, by what they are where they are known, or a difference."""
    own = getattr(design.mechanism, "axis_labels", None)
    inputs = own[0] if own else getattr(design.question, "values", None)
    if inputs is not None and len(label) == 2:
        each = (inputs[at] for at in label)
        return " to ".join(
            f"{float(x):g}" if isinstance(x, (Fraction, float)) else str(x) for x in each
        )
    return str(label[0]) if len(label) == 1 else str(label)


def _price_constraints(design: Any) -> dict[str, RowPrices]:
    """Those of the request, by the labels of their rows in the program that was solved."""
    solution = design.solution
    if solution is None or solution.row_dual is None:
        return {}
    zero = _ZERO_MULTIPLIER * float(np.abs(solution.data.c).max())
    known: dict[str, RowPrices] = {}
    for block in solution.program.rows:
        if block.is_user_constraint:
            prices = np.abs(solution.row_dual[block.start : block.start + block.size])
            binding, rows, price = known.get(block.name, (0, 0, 0.0))
            known[block.name] = (
                binding + int((prices > zero).sum()),
                rows + block.size,
                max(price, float(prices.max())),
            )
    return known


def is_only_optimum(design: Any) -> bool | None:
    """See `Design.unique`."""
    request, solution = design.request, design.solution
    plain = request.aim.runs == 1 and request.aim.minimise == "loss" and design.bound is not None
    if solution is None or not plain or request.claim.notion.name not in list_linear_notions():
        return None
    return has_unique_value(solution, solution.program.variables[0].name)


def _shrink_budget(claim: Claim) -> Claim | None:
    """A budget that is less by a billionth: of its δ where there is one, else of its first parameter; None of one that
    is no number."""
    name = "delta" if claim.values.get("delta") else claim.notion.parameters[0]
    value = claim.values[name]
    if isinstance(value, Mapping):
        value = {label: number * (1 - _RELATIVE_STEP) for label, number in value.items()}
    elif isinstance(value, Fraction):
        value *= 1 - _RELATIVE_STEP
    else:
        return None
    return Claim(claim.notion, **{**claim.values, name: value})


def _price_budgets(request: Any) -> tuple[OneSidedPrices, OneSidedPrices | None]:
    """(dV/dε, dV/dδ) of the formula at a request. Raises WorkbenchError."""
    named = request.claim.notion.name
    check_formula_notion(named)
    question = FormulaQuestion(request.family, request.at_point, dict, named)
    at, delta = request.claim.epsilon, request.claim.delta
    if not isinstance(at, Fraction) or request.aim.minimise != "loss":
        raise WorkbenchError("Prices are of designs that minimise the loss at one epsilon")
    share = delta or ZERO

    def sides(which: int, *near: Any) -> FloatPair:
        """dV/dε (0) or dV/dδ (1) of the first and of the last piece near the request."""
        formula = solve_formula(question, *near)
        known = [
            prices[which] for piece in formula.pieces if (prices := piece.shadow_prices) is not None
        ]
        x = exp_interval(at / formula.steps, _EXP_BITS)
        ends: list[Any] = [price.enclose(*x, share) for price in (known[0], known[-1])]
        if None in ends:
            raise WorkbenchError("The formula is near a pole")
        low, high = (float(sum(end) / 2) for end in ends)
        return low, high

    by_epsilon = sides(0, (at * (1 - _RELATIVE_STEP), at * (1 + _RELATIVE_STEP)))
    if delta is None or named == "pure":
        return by_epsilon, None
    first, last = sides(1, at, (max(ZERO, share - _RELATIVE_STEP), share + _RELATIVE_STEP))
    return by_epsilon, (first if share else None, last)
