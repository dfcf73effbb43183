"""Bound the smallest error rate of noise modulo n + 1 if neighbours differ by 1, 2, ..., or μ̄.

The privacy notion is (ε, δ)-PDP, and the set of shifts 𝓜 is {1..μ̄}. `column_cut_law` computes an
error rate that is attained and may be proven optimal, `chain_bound` a lower bound. Kadam et al.
2024 call this case bounded difference (BD). Lemma, theorem and equation numbers are those of that
paper.

Notation. A shift μ is a difference of neighbouring answers, μ̄ the largest one, and u the unit of
shifts u, 2u, .., μ̄u. Answers are 0..n. f is the PMF of the noise, so that the error rate is
1 - f(0), and a = e^-ε. The column-cut law and its chain bound, with rows, columns, cut vectors c_j
and breaks, are explained in `column_cut`.

Lemma 4 (δ = 0) is correct. Theorem 3 and Corollary 2 (δ > 0) are not, see `printed_theorem3`. The
column-cut law replaces them. It is the error rate of a private mechanism. The chain bound is a
lower bound on the error rate of every mechanism. If both are equal, the law is called an optimum,
otherwise an upper bound.

| paper (Kadam et al. 2024) | here                                           |
|---------------------------|------------------------------------------------|
| μ̄, n                      | `mu_bar`, `n`                                  |
| φ_i, φ₀                   | `column_cut_law(...).pmf` at δ = 0, (28), (29) |
"""

import math
from collections.abc import Container, Iterator
from contextlib import suppress
from dataclasses import replace
from functools import lru_cache

import numpy as np

from workbench.models.convex.requirements import MASS_ABOVE_RATIO
from workbench.models.oracles.column_cut import best_column_cut
from workbench.models.oracles.cut_vectors import Grid
from workbench.models.oracles.cuts import cut_pmf
from workbench.models.oracles.hops import shift_multiples, shift_order
from workbench.models.oracles.question import (
    ClosedForm,
    OutsideDomain,
    Question,
    Shift,
    is_close,
)
from workbench.solvers.arrays import Ints

# At most this many shifts are tried as the unit u of a set of shifts {u, 2u, ..., μ̄u}.
MAX_UNIT_CANDIDATES = 256


def _explain_law(
    n: int,
    mu_bar: int,
    epsilon: float,
    is_proven: bool,
) -> str:
    """Return the proof of a column-cut law, or the reason why it is only an upper bound.

    `is_proven` says whether the chain bound equals the law.
    """
    if is_proven and n <= 2 * mu_bar:
        return (
            "n <= 2μ̄, every ε and δ: noise values can only be cut off at the end, and the chain "
            "bound equals the law."
        )
    if is_proven and n % mu_bar == 0 and epsilon >= math.log(2):
        return (
            "μ̄ divides n and ε >= ln 2, every δ: the law breaks only constraints that the chain "
            "bound counts, so both are equal."
        )
    if is_proven:
        return (
            "The chain bound, valid for every mechanism at every ε and n, equals the law at this ε "
            "and δ."
        )
    if epsilon >= math.log(2):
        return (
            "Feasible. Not proven optimal: the chain bound allows a larger f(0) here. No better "
            "noise was found in 5,422 cases with ε >= ln 2 over all cut vectors, but only the "
            "grouped cut vectors are compared."
        )
    return (
        "Feasible. Not proven optimal: the chain bound allows a larger f(0) here, and for ε < ln 2 "
        "noise that breaks constraints inside its support can have a smaller error rate."
    )


def column_cut_law(
    n: int,
    mu_bar: int,
    epsilon: float,
    delta: float,
) -> ClosedForm:
    """Compute the column-cut law for the shifts {1..mu_bar} under (ε, δ)-PDP.

    At δ = 0, or where no cut helps, it is Lemma 4 of Kadam et al. 2024.

    Args:
        n: largest answer; the answers are 0..n.
        mu_bar: largest difference μ̄ of neighbouring answers.
        epsilon: budget ε > 0.
        delta: budget δ in [0, 1].

    Returns:
        The error rate and the PMF that attains it. The kind is "optimum" if it is proven, else
        "upper bound".

    Raises:
        OutsideDomain: n and mu_bar are too large.
    """
    cut = best_column_cut(n, mu_bar, epsilon, delta)
    grid = Grid(n, mu_bar, epsilon)
    holes = np.zeros(n + 1, dtype=bool)
    if cut.vector is not None:
        holes = grid.holes(cut.vector)
    error, pmf = cut_pmf(grid.weights, holes, cut.broken_weight, delta)
    is_proven = cut.bound is not None and is_close(cut.mass, cut.bound)
    return ClosedForm(
        name="column-cut law",
        value=error,
        pmf=pmf,
        kind="optimum" if is_proven else "upper bound",
        proof=_explain_law(n, mu_bar, epsilon, is_proven),
    )


def chain_bound(
    n: int,
    mu_bar: int,
    epsilon: float,
    delta: float,
) -> ClosedForm:
    """Compute a lower bound on the error rate of every PDP mechanism if 1..mu_bar are shifts.

    Args:
        n: largest answer; the answers are 0..n.
        mu_bar: largest difference μ̄ of neighbouring answers.
        epsilon: budget ε > 0.
        delta: budget δ in [0, 1].

    Raises:
        OutsideDomain: n and mu_bar are too large to search.
    """
    bound = best_column_cut(n, mu_bar, epsilon, delta).bound
    if bound is None:
        raise OutsideDomain(
            f"n and mu_bar must be small enough to search their cut vectors. Got {n} and {mu_bar}."
        )
    return ClosedForm(
        name="chain bound",
        value=1.0 - bound,
        pmf=None,
        kind="lower bound",
        proof=(
            "𝓜 ⊇ {1..μ̄}, every ε, δ, n: the first break of the shift μ̄ in each column weighs >= "
            "a^{c_j-1} f(0)."
        ),
    )


def _run_length(sizes: Ints, shifts: Container[Shift], unit: Shift) -> int:
    """Return the largest m such that u, 2u, ..., mu are all shifts; u is `unit`."""
    length = 0
    for times in range(1, shift_order(sizes, unit)):
        multiple = tuple(times * step % size for step, size in zip(unit, sizes, strict=True))
        if multiple not in shifts:
            break
        length = times
    return length


@lru_cache(maxsize=64)
def _longest_run(sizes: Ints, shifts: tuple[Shift, ...]) -> tuple[Shift, int]:
    """Return the shift u and the number m of the longest run u, 2u, ..., mu among the shifts.

    For example, the shifts 2, 4, 6 and 5 modulo 9 have the longest run 2, 4, 6: u = 2, m = 3.
    """
    unit = shifts[0]
    max_length = 0
    shift_set = frozenset(shifts)
    for candidate in shifts[:MAX_UNIT_CANDIDATES]:
        length = _run_length(sizes, shift_set, candidate)
        if length > max_length:
            unit = candidate
            max_length = length
        if max_length == len(shifts):
            break
    return unit, max_length


def state_bounded_difference(question: Question) -> Iterator[ClosedForm]:
    """Yield the law if the shifts are u, 2u, ..., μ̄u, and a bound if they contain such a run.

    Only PDP questions with δ > 0, one ε and at least two consecutive multiples of some u get
    statements. The N_u multiples of u form a copy of the group Z_{N_u} in which u is 1, and no mass
    is needed elsewhere. So shifts {u, 2u, ..., μ̄u} are a bounded difference for any u: {2, 4, 6}
    modulo 9 is {1, 2, 3} in the unit 2.

    Args:
        question: question about the error rate, of any notion and with any shifts.
    """
    epsilon = question.epsilon
    shifts = question.shifts
    is_pdp = question.requires == MASS_ABOVE_RATIO
    if not is_pdp or epsilon is None or len(shifts) < 2 or question.delta == 0.0:
        return
    unit, run_length = _longest_run(question.sizes, shifts)
    if run_length < 2:
        return
    n = shift_order(question.sizes, unit) - 1
    with suppress(OutsideDomain):
        if run_length == len(shifts):
            law = column_cut_law(n, run_length, epsilon, question.delta)
            assert law.pmf is not None
            pmf = np.zeros(math.prod(question.sizes))
            pmf[shift_multiples(question.sizes, unit)] = law.pmf
            yield replace(law, pmf=pmf)
        yield chain_bound(n, run_length, epsilon, question.delta)
