"""Compute the shadow prices of a design, and which neighbours and constraints restrict it.

A shadow price is the change of the optimal loss for one more unit of ε, of δ, or of the side of a
constraint.

    V(ε, δ)          the optimal loss of the class over which the family designs
    dV/dε, dV/dδ     the prices: the derivatives from below and from above, which differ where two
                     formulas of V meet (V falls in both variables and is convex in δ)

Where the optimum has a formula (`workbench.formula`), the prices are its derivatives. They are
proven: enclosed between rationals and rounded to doubles. A comparison of two neighbours restricts
the design if it would violate a budget that is smaller by a billionth. A constraint of the request
restricts the design if the solver's multipliers of its rows are not 0. The price is then the
largest multiplier, |dV/db| for the side b of a row.
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
from workbench.pipeline.formula_program import check_formula_notion, list_linear_notions
from workbench.privacy.audit import measure_mechanism
from workbench.privacy.claim import Claim
from workbench.solvers.arrays import Ints
from workbench.solvers.optimal_face import has_unique_value

# The derivatives from below and from above. At δ = 0 there is none from below (None).
OneSidedPrices = tuple[float | None, float]
# (number of rows that restrict the design, number of rows, the largest multiplier).
RowPrices = tuple[int, int, float]

# Prices and binding comparisons are found at budgets that are moved by this share of their value.
_RELATIVE_STEP = Fraction(1, 10**9)
_EXP_BITS = 128  # e^ε is enclosed to this many bits.
_MAX_COMPARISONS = 2_000  # If a mechanism has more comparisons, none are listed.
_MAX_LISTED_NAMES = 8  # The text of prices names at most this many comparisons.
# A multiplier up to this share of the largest loss counts as 0.
_ZERO_MULTIPLIER = 1e-7


@dataclass(frozen=True)
class ShadowPrices:
    """The change of the optimal loss for one unit of ε and of δ, and what restricts the design.

    Attributes:
        epsilon: dV/dε from below and from above; None if no formula gives it.
        delta: dV/dδ from below and from above; None if no formula gives it.
        binding: The labels of the comparisons that use up the budget: pairs of row numbers, or
            differences.
        comparison_count: The number of comparisons of the mechanism; 0 if they are not measured.
        note: The reason why prices or comparisons are missing; "" if none are.
        comparison_names: The descriptions of the comparisons that use up the budget.
        constraints: Constraint of the request -> (number of its rows that restrict the design,
            number of its rows, the largest multiplier).
    """

    epsilon: OneSidedPrices | None
    delta: OneSidedPrices | None
    binding: tuple[Ints, ...]
    comparison_count: int
    note: str = ""
    comparison_names: Strings = ()
    constraints: Mapping[str, RowPrices] = field(default_factory=dict)

    def __str__(self) -> str:
        parts = []
        for name, prices in (("epsilon", self.epsilon), ("delta", self.delta)):
            if prices is not None:
                parts.append(f"one unit of {name} changes the optimum by {_write_prices(*prices)}")
        count = len(self.comparison_names)
        if count:
            names = list(self.comparison_names[:_MAX_LISTED_NAMES])
            if count > _MAX_LISTED_NAMES:
                names.append(f"and {count - _MAX_LISTED_NAMES} more")
            parts.append(
                f"{count} of {self.comparison_count} comparisons use up the budget to a "
                f"billionth: {', '.join(names)}"
            )
        for name, prices_of_rows in self.constraints.items():
            parts.append(f"the constraint {name} {_describe_constraint(*prices_of_rows)}")
        if self.note:
            parts.append(self.note)
        return "; ".join(parts) + "."

    def _repr_html_(self) -> str:
        """Return the facts of `str(self)` as an HTML document for notebooks."""
        facts = [("", part) for part in str(self).split("; ")]
        return render_document("Shadow prices", render_facts(facts))

    def to_dict(self) -> Record:
        """Return the prices as JSON-ready values."""
        constraints = {}
        for name, (binding, rows, price) in self.constraints.items():
            constraints[name] = {"binding": binding, "rows": rows, "price": price}
        return {
            "epsilon": self.epsilon and [*self.epsilon],
            "delta": self.delta and [*self.delta],
            "binding": [[*label] for label in self.binding],
            "names": [*self.comparison_names],
            "comparisons": self.comparison_count,
            "constraints": constraints,
            "words": self.note,
        }


def _write_prices(price_below: float | None, price_above: float) -> str:
    """Write the prices from below and from above, or one number if they are equal."""
    if price_below is None:
        return f"{price_above:.9g} (upwards)"
    if price_below == price_above:
        return f"{price_above:.9g}"
    return f"{price_below:.9g} from below, {price_above:.9g} from above"


def _describe_constraint(binding: int, rows: int, price: float) -> str:
    """Describe whether a constraint restricts the design, and the value of one unit."""
    if not binding:
        return "does not restrict the design"
    if rows == 1:
        return f"restricts the design, one unit changes the optimum by {price:.6g}"
    place = f"{binding} of {rows} rows"
    return f"restricts the design in {place}, one unit changes the optimum by up to {price:.6g}"


def compute_shadow_prices(design: Any) -> ShadowPrices:
    """Compute the shadow prices of a design.

    Args:
        design: A `Design`.

    Returns:
        The prices. If the optimum has no formula, epsilon and delta are None, and the note has the
        reason.
    """
    epsilon = None
    delta = None
    note = ""
    try:
        epsilon, delta = _price_budgets(design.request)
    except WorkbenchError as error:
        note = str(error).rstrip(".")
    constraints = _price_constraints(design)
    # A mechanism on real inputs may have no comparisons to list.
    has_comparisons = hasattr(design.mechanism, "comparisons")
    smaller_claim = _shrink_budget(design.claim) if has_comparisons else None
    if smaller_claim is None:
        return ShadowPrices(
            epsilon,
            delta,
            binding=(),
            comparison_count=0,
            note=note,
            comparison_names=(),
            constraints=constraints,
        )
    measured = measure_mechanism(design.mechanism, smaller_claim, design.mechanism.comparisons())
    # One more than the limit shows that there are too many.
    comparisons = list(itertools.islice(measured, _MAX_COMPARISONS + 1))
    binding: tuple[Ints, ...] = ()
    if len(comparisons) > _MAX_COMPARISONS:
        note = f"{note} more than {_MAX_COMPARISONS} comparisons are not listed".lstrip()
    else:
        binding = tuple(
            comparison.label
            for comparison in comparisons
            if not smaller_claim.is_met_by(comparison)
        )
    names = tuple(_comparison_name(label, design) for label in binding)
    return ShadowPrices(
        epsilon,
        delta,
        binding,
        comparison_count=len(comparisons),
        note=note,
        comparison_names=names,
        constraints=constraints,
    )


def _comparison_name(label: Ints, design: Any) -> str:
    """Describe a comparison: two inputs by their values if they are known, or a difference."""
    axis_labels = getattr(design.mechanism, "axis_labels", None)
    inputs = axis_labels[0] if axis_labels else getattr(design.question, "values", None)
    if inputs is not None and len(label) == 2:
        return " to ".join(_write_input(inputs[index]) for index in label)
    return str(label[0]) if len(label) == 1 else str(label)


def _write_input(value: Any) -> str:
    """Write an input of a mechanism."""
    if isinstance(value, (Fraction, float)):
        return f"{float(value):g}"
    return str(value)


def _price_constraints(design: Any) -> dict[str, RowPrices]:
    """Return the prices of the constraints of the request, by their labels in the program."""
    solution = design.solution
    if solution is None or solution.row_dual is None:
        return {}
    max_zero = _ZERO_MULTIPLIER * float(np.abs(solution.data.c).max())
    prices_by_name: dict[str, RowPrices] = {}
    for block in solution.program.rows:
        if block.is_user_constraint:
            prices = np.abs(solution.row_dual[block.start : block.start + block.size])
            binding, rows, price = prices_by_name.get(block.name, (0, 0, 0.0))
            binding += int((prices > max_zero).sum())
            rows += block.size
            prices_by_name[block.name] = (binding, rows, max(price, float(prices.max())))
    return prices_by_name


def is_only_optimum(design: Any) -> bool | None:
    """Return whether the design is the only optimum (`Design.unique`).

    Args:
        design: A `Design`.

    Returns:
        True or False. None if it is unknown: the design has no proven bound or no solution of a
        linear program, or it does not minimise the loss of one run.
    """
    request = design.request
    solution = design.solution
    minimises_loss = request.aim.runs == 1 and request.aim.minimise == "loss"
    is_linear = request.claim.notion.name in list_linear_notions()
    if solution is None or not minimises_loss or design.bound is None or not is_linear:
        return None
    return has_unique_value(solution, solution.program.variables[0].name)


def _shrink_budget(claim: Claim) -> Claim | None:
    """Return a claim whose budget is smaller by a billionth; None if the budget is no number.

    Its δ is smaller if it has one, else the first parameter of its notion.
    """
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
    """Return (dV/dε, dV/dδ) of the formula at a request. Raises WorkbenchError."""
    claim = request.claim
    notion = claim.notion.name
    check_formula_notion(notion)
    # The values of options are only needed to save a formula, which is not done here.
    question = FormulaQuestion(
        request.family, make_request=request.at_point, read_values=dict, notion=notion
    )
    epsilon = claim.epsilon
    if not isinstance(epsilon, Fraction) or request.aim.minimise != "loss":
        raise WorkbenchError("Prices exist only for designs that minimise the loss at one epsilon")
    delta = claim.delta or ZERO

    def derivatives_near(index: int, *intervals: Any) -> FloatPair:
        """Return a price of the first and of the last piece near the request.

        These are the derivatives from below and from above. index: 0 for dV/dε, 1 for dV/dδ;
        intervals: a small interval of ε around the request, or its ε and an interval of δ.
        """
        formula = solve_formula(question, *intervals)
        piece_prices = (piece.shadow_prices for piece in formula.pieces)
        prices = [pair[index] for pair in piece_prices if pair is not None]
        x = exp_interval(epsilon / formula.steps, _EXP_BITS)
        bounds: list[Any] = [price.enclose(*x, delta) for price in (prices[0], prices[-1])]
        if None in bounds:
            raise WorkbenchError("The formula is near a pole")
        low, high = (float(sum(pair) / 2) for pair in bounds)
        return low, high

    epsilon_interval = (epsilon * (1 - _RELATIVE_STEP), epsilon * (1 + _RELATIVE_STEP))
    epsilon_prices = derivatives_near(0, epsilon_interval)
    if claim.delta is None or not claim.notion.has_delta:
        return epsilon_prices, None
    # δ is moved by the step itself and not by a share of it, because it may be 0.
    delta_interval = (max(ZERO, delta - _RELATIVE_STEP), delta + _RELATIVE_STEP)
    first, last = derivatives_near(1, epsilon, delta_interval)
    return epsilon_prices, (first if delta else None, last)
