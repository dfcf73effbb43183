"""State a question as a linear program in x = e^(ε/steps), from which formulas are made.

The entries of the program are polynomials in x. `steps` is the smallest integer for which the
budget of every pair of neighbours is a multiple of ε/steps. For example, the budgets ε and ε/2 give
steps = 2: the coefficients e^ε and e^(ε/2) are x² and x.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import lcm
from typing import TYPE_CHECKING, Any

from workbench.errors import InvalidRequest, must
from workbench.pipeline.requirements import HOCKEY_STICK, get_ratio_kind, list_ratio_notions
from workbench.solvers.arrays import Ints

if TYPE_CHECKING:
    from workbench.solvers.exact.parametric import ParametricProgram
    from workbench.solvers.program import Program

Interval = tuple[Fraction, Fraction]

# Larger programs are refused. A basis of this size takes a minute or two to solve symbolically.
MAX_PROGRAM_ROWS = 4_000
# The entries of a program have at most this power of x.
MAX_POWER = 200
# Above this ε, masses are smaller than the smallest double.
MAX_FORMULA_EPSILON = 20
# A share that is known as a float is replaced by a rational with at most this denominator.
_MAX_SHARE_DENOMINATOR = 10**6


@dataclass(frozen=True)
class FormulaProgram:
    """A program whose optimum is a formula.

    Attributes:
        program: The program in x and δ.
        masses: The columns whose sum is a mass of the mechanism, by the name of the mass.
        title: The class of mechanisms and the loss, as text.
        steps: The number of powers of x in e^ε.
    """

    program: ParametricProgram
    masses: Mapping[str, Ints]
    title: str
    steps: int = 1


def make_formula_program(
    program: Program,
    levels: Sequence[Fraction],
    masses: Mapping[str, Ints],
    title: str,
    exact: Mapping[str, Mapping[int, Fraction]],
) -> FormulaProgram:
    """Convert a compiled program with the parameters "exp_epsilon" and perhaps "delta".

    Args:
        program: The compiled program.
        levels: For every entry of "exp_epsilon" the rational r such that the entry is e^(r ε).
        masses: Columns whose sum is a mass of the mechanism, by the name of the mass.
        title: The class of mechanisms and the loss, as text.
        exact: Exact values of entries that are floats in the program: section of `Data` ->
            position -> rational. For example {"c": {0: Fraction(1, 3)}}: the first cost is 1/3.

    Raises:
        InvalidRequest: The program is too large, or a power of x is too high.
    """
    from workbench.solvers.exact.parametric import ParametricProgram

    if max(program.shape) > MAX_PROGRAM_ROWS:
        size = "{} rows and {} columns".format(*program.shape)
        must("the program of a formula", f"of at most {MAX_PROGRAM_ROWS} rows and columns", size)
    steps = lcm(*(level.denominator for level in levels))
    powers = [int(level * steps) for level in levels]
    if max(powers) > MAX_POWER:
        rule = f"multiples of a common unit, the largest of at most {MAX_POWER} of it"
        must("the budgets of a formula", rule, f"{max(powers)} units")
    delta = "delta" if "delta" in program.parameters else None
    parametric = ParametricProgram(program, {"exp_epsilon": powers}, delta, exact=exact)
    return FormulaProgram(parametric, masses, title, steps)


def check_size(masses: int) -> None:
    """Raise InvalidRequest for too many masses, before the program is compiled.

    Args:
        masses: Number of masses of the mechanism.
    """
    if masses > MAX_PROGRAM_ROWS:
        must("the mechanism of a formula", f"of at most {MAX_PROGRAM_ROWS} probabilities", masses)


def list_linear_notions() -> list[str]:
    """Return the notions whose programs are linear, with powers of e^ε as coefficients."""
    return [name for name in list_ratio_notions() if get_ratio_kind(name) == HOCKEY_STICK]


def check_formula_request(request: Any, *, allow_patterns: bool = False) -> None:
    """Raise InvalidRequest for a request without a formula.

    Args:
        request: The request: its question, claim, aim and how.
        allow_patterns: Whether the caller fixes the pattern of a notion with binary variables.
    """
    if request.aim.minimise != "loss" or request.aim.runs > 1:
        raise InvalidRequest(
            "A formula minimises the expected loss of one run: leave minimise and runs out."
        )
    if not allow_patterns:
        check_formula_notion(request.claim.notion.name)


def check_formula_notion(notion: str) -> None:
    """Raise InvalidRequest for a notion whose programs are not linear in powers of e^ε.

    Args:
        notion: Name of the notion.
    """
    if notion in list_linear_notions():
        return
    names = ", ".join(list_linear_notions())
    reason = "is no linear constraint in powers of e^epsilon"
    if notion in list_ratio_notions():
        reason = "needs binary variables"
    raise InvalidRequest(f"A formula needs one of the notions {names}; {notion} {reason}.")


def simplify_shares(values: Sequence[Fraction]) -> list[Fraction]:
    """Return simple rationals that have the same floats as some shares of 1.

    >>> simplify_shares([Fraction(1/3), Fraction(2/3)])
    [Fraction(1, 3), Fraction(2, 3)]

    The shares are returned unchanged if no simple rationals with these floats sum to 1.
    """
    shares = [value.limit_denominator(_MAX_SHARE_DENOMINATOR) for value in values]
    pairs = zip(shares, values, strict=True)
    if sum(shares) == 1 and all(float(a) == float(b) for a, b in pairs):
        return shares
    return [*values]


def locate_rationals(
    values: Sequence[float], rationals: Mapping[float, Fraction]
) -> dict[int, Fraction]:
    """Return the rational of each float that has one, by the position of the float.

    Args:
        values: The floats.
        rationals: Rational number by its float.
    """
    return {k: rationals[value] for k, value in enumerate(values) if value in rationals}
