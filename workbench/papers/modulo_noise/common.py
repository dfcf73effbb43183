"""Make the questions of Kadam et al. 2024, solve and audit them, and compare printed numbers.

Notation: answers are 0..n, and noise η with the law f is added modulo n + 1. M is the set of
differences of neighbouring answers. SD: single distance, M = {μ̂}. BD: bounded
difference, M = {1, ..., μ̄}. ρ* is the minimal error rate 1 - f(0), and f* the noise that has it.
The paper's program (13) minimises the error, and (15) minimises δ. PDP is probabilistic DP.

| paper          | here                                                       |
|----------------|------------------------------------------------------------|
| SD, μ̂          | `make_question(n=n, shifts=[μ̂])`                           |
| BD, μ̄          | `make_question(n=n, max_shift=μ̄)`                          |
| ρ*(δ, ε), f*   | `compute_closed_form(question, epsilon, delta)`            |
| (13), (15)     | `solve_each(question, budgets)`, by HiGHS                  |
| one-sided M    | `directed=True`, here the default (elsewhere False)        |
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from fractions import Fraction
from functools import cache
from typing import Any

from numpy.typing import ArrayLike

from workbench.exact.numbers import ZERO, Real, exp_interval, read_number
from workbench.exact.objects import Record
from workbench.mechanisms.additive import AdditiveNoise
from workbench.models import oracles
from workbench.models.oracles import ClosedForm
from workbench.papers.artifact import Comparison, read_printed_numbers
from workbench.pipeline.api import design
from workbench.pipeline.requirements import get_ratio_kind
from workbench.privacy.audit import audit
from workbench.questions.modulo_noise import ModuloNoise

_SOLVER_DIGITS = 10  # Values of solvers are equal on all machines up to this many digits.
_SOLVER_NOISE = 1e-12  # Solver values of smaller absolute value become 0.
_RATIO_BITS = 200  # e^-ε is rounded up to a multiple of 2^-200.

# The ε of an audit of floats is increased by this, so that rounded ratios of exactly e^ε do not
# count as violations.
_FLOAT_AUDIT_SLACK = Fraction("1e-9")


@cache
def get_printed_numbers() -> Record:
    """Return the numbers that the paper prints, by name (printed/modulo_noise.toml)."""
    return read_printed_numbers("modulo_noise")


def make_question(*, directed: bool = True, **question: Any) -> ModuloNoise:
    """Return a question about modulo noise with one-sided differences by default.

    Args:
        directed: Whether M contains only the given differences, and not their negatives.
        question: Further arguments of `ModuloNoise`, such as n and shifts or max_shift.
    """
    return ModuloNoise(directed=directed, **question)


def round_solver_value(value: float) -> float:
    """Return a number of a solver without the digits that differ between machines.

    Args:
        value: A mass, an objective or a δ in floats.
    """
    return float(f"{value:.{_SOLVER_DIGITS}g}") if abs(value) >= _SOLVER_NOISE else 0.0


def solve_each(
    question: ModuloNoise,
    budgets: Iterable[tuple[Real, Real]],
    second: str = "delta",
    **options: Any,
) -> list[float]:
    """Return the proven optimum at each budget.

    Args:
        question: The query with its neighbouring answers.
        budgets: (ε, δ), for the minimal error (13); or (ε, maximal loss), for the minimal δ (15).
        second: What the second number is: "delta" or "max_loss".
        options: Further options of `workbench.design`, such as notion (default: "pdp") and loss.

    Returns:
        The optimum for each budget in turn: the minimal loss, or the minimal δ.

    Raises:
        NotProven: An optimum is not proven.
    """
    settings: Record = {"notion": "pdp", "certify": False, **options}
    if second == "max_loss":
        settings["minimise"] = "delta"
    optima = []
    for epsilon, limit in budgets:
        solved_design = design(question, epsilon=epsilon, **{second: limit}, **settings)
        optima.append(round_solver_value(solved_design.objective))
    return optima


def compute_closed_form(
    question: ModuloNoise, epsilon: float, delta: float = 0.0, notion: str = "pdp"
) -> ClosedForm:
    """Return the minimal error rate from a closed form or an exact search.

    Args:
        question: The query with its neighbouring answers.
        epsilon: The ε of the budget, > 0.
        delta: The δ of the budget, in [0, 1].
        notion: The notion of privacy: "pdp" or "dp".

    Returns:
        The closed form. Its `kind` is "optimum", "upper bound" or "lower bound".
    """
    bounds = oracles.error_rate_bounds(
        question.sizes,
        question.differences,
        question.directed,
        epsilon,
        delta,
        get_ratio_kind(notion),
    )
    assert bounds.strongest
    return bounds.strongest


def make_staircase(question: ModuloNoise, levels: Sequence[int], epsilon: Real) -> AdditiveNoise:
    """Return the exact noise with masses proportional to a^level for a = e^-ε, rounded up.

    For example, the levels 0, 1, 1 give masses proportional to 1, a, a. Because a is rounded up,
    f(η) <= e^ε f(η') holds if the levels differ by one. An audit therefore counts no rounding error
    as a violation.

    Args:
        question: The query with its neighbouring answers.
        levels: One exponent for each noise value 0..n. A negative number means mass zero.
        epsilon: The ε in a = e^-ε, > 0.
    """
    _, ratio = exp_interval(-read_number(epsilon, "epsilon"), _RATIO_BITS)
    return AdditiveNoise(question, [ratio**level if level >= 0 else ZERO for level in levels])


def compute_needed_delta(
    pmf: ArrayLike | AdditiveNoise, question: ModuloNoise, epsilon: Real
) -> float:
    """Return the PDP δ that a PMF needs, by the exact audit.

    Args:
        pmf: The noise, or its masses as floats, shape (n + 1,). The ε of floats is increased by
            1e-9 (`_FLOAT_AUDIT_SLACK`).
        question: The query with its neighbouring answers, which replace those of the noise.
        epsilon: The ε of the audit, > 0.

    Returns:
        The smallest δ for which the noise is (ε, δ)-PDP.
    """
    if isinstance(pmf, AdditiveNoise):
        noise = AdditiveNoise(question, pmf.masses)
        slack = ZERO
    else:
        noise = AdditiveNoise.from_pmf(question, pmf)
        slack = _FLOAT_AUDIT_SLACK
    return float(audit(noise, read_number(epsilon, "epsilon") + slack).pdp_delta)


def compare_printed(
    quantity: str,
    place: str,
    printed_value: float,
    ours: float,
    decimals: int,
    *,
    erratum: str = "",
) -> Comparison:
    """Compare a printed number with ours, which should agree when rounded to its decimals.

    Args:
        quantity: What the number is, such as "f(0)".
        place: Where the paper prints it, such as "Table 1".
        printed_value: The printed number.
        ours: The same number, computed here.
        decimals: The number of printed decimals. Half a unit of the last one is the tolerance.
        erratum: Why the printed number is wrong. Empty if it is expected to agree.
    """
    tolerance = 0.5 * 10.0**-decimals
    return Comparison(
        quantity,
        place=place,
        printed=printed_value,
        ours=ours,
        tolerance=tolerance,
        expected=not erratum,
        remark=erratum,
    )
