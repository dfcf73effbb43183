"""A question as a linear program whose entries are polynomials in x = e^(ε/steps): what formulas are made of."""

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

MAX_PROGRAM_ROWS = (
    4_000  # of a program whose bases are solved symbolically: a minute or two a basis
)
MAX_POWER = 200  # of x, in the entries of a program
MAX_FORMULA_EPSILON = 20  # Beyond it masses are below what doubles hold.

_SIMPLE = 10**6  # of a denominator


@dataclass(frozen=True)
class FormulaProgram:
    """program: in x and δ; masses: of the mechanism, each by name the columns whose sum it is; what: the class and the
    loss."""

    program: ParametricProgram
    masses: Mapping[str, Ints]
    title: str
    steps: int = 1


def make_formula_program(
    program: Program,
    levels: Sequence[Fraction],
    masses: Mapping[str, Ints],
    what: str,
    exact: Mapping[str, Mapping[int, Fraction]],
) -> FormulaProgram:
    """A compiled program with parameters "exp_epsilon" (and "delta") as one in x.

    levels: the budget of every entry of "exp_epsilon" at ε = 1; exact: position in a section of the data -> rational.
    Raises InvalidRequest for a program that is too large.
    """
    from workbench.solvers.exact.parametric import ParametricProgram

    if max(program.shape) > MAX_PROGRAM_ROWS:
        size = "{} rows and {} columns".format(*program.shape)
        must("the program of a formula", f"of at most {MAX_PROGRAM_ROWS} rows and columns", size)
    steps = lcm(*(level.denominator for level in levels))
    powers = [int(level * steps) for level in levels]
    if max(powers) > MAX_POWER:
        wanted = f"multiples of a common unit, the largest of at most {MAX_POWER} of it"
        must("the budgets of a formula", wanted, f"{max(powers)} units")
    delta = "delta" if "delta" in program.parameters else None
    return FormulaProgram(
        ParametricProgram(program, {"exp_epsilon": powers}, delta, exact=exact), masses, what, steps
    )


def check_size(masses: int) -> None:
    """Raise InvalidRequest for a mechanism of too many masses, before its program is compiled."""
    if masses > MAX_PROGRAM_ROWS:
        must("the mechanism of a formula", f"of at most {MAX_PROGRAM_ROWS} probabilities", masses)


def list_linear_notions() -> list[str]:
    """The notions whose programs are linear, with e^ε in their coefficients."""
    return [name for name in list_ratio_notions() if get_ratio_kind(name) == HOCKEY_STICK]


def check_formula_request(request: Any, *, allow_patterns: bool = False) -> None:
    """Raise InvalidRequest for what has no formula: another objective than the loss of one run, a notion whose programs
    are not linear in masses with polynomials of e^ε. patterns: whether those are given that a notion with binaries
    breaks."""
    if request.aim.minimise != "loss" or request.aim.runs > 1:
        raise InvalidRequest(
            "A formula is that of the least loss of one run: leave minimise and runs out."
        )
    if not allow_patterns:
        check_formula_notion(request.claim.notion.name)


def check_formula_notion(notion: str) -> None:
    """Raise InvalidRequest for a notion whose programs are not linear in masses with polynomials of e^ε."""
    if notion not in list_linear_notions():
        kinds = ", ".join(list_linear_notions())
        why = (
            "asks for binaries"
            if notion in list_ratio_notions()
            else "is no linear constraint in powers of e^epsilon"
        )
        raise InvalidRequest(f"A formula needs one of the notions {kinds}; {notion} {why}.")


def simplify_shares(values: Sequence[Fraction]) -> list[Fraction]:
    """Shares of a whole that are known as floats: the simplest rationals that are these floats, if they add up to 1."""
    shares = [value.limit_denominator(_SIMPLE) for value in values]
    same = sum(shares) == 1 and all(
        float(a) == float(b) for a, b in zip(shares, values, strict=True)
    )
    return shares if same else [*values]


def locate_rationals(
    values: Sequence[float], known: Mapping[float, Fraction]
) -> dict[int, Fraction]:
    """The positions of floats that stand for rationals that are not they."""
    return {k: known[value] for k, value in enumerate(values) if value in known}
