"""Bounded difference (BD): 𝓜 = {1..μ̄}, or {±1..±μ̄}, on Z_{n+1}.

Lemma 4 (δ = 0) is right. Theorem 3 and Corollary 2 of Kadam et al. 2024 (δ > 0) are not, see `printed_theorem3`; the
column-cut law replaces them. A law is called an optimum only where the chain bound, which holds for every mechanism,
equals it (`column_cut`); elsewhere it is an upper bound on the optimal error rate and the chain bound a lower one.

| paper      | here                                                          |
|------------|---------------------------------------------------------------|
| μ̄, n       | `mu_bar`, `n`                                                 |
| φ_i, φ₀    | `column_cut_law(...).pmf` at δ = 0, (28), (29)                |
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
from workbench.models.oracles.question import ClosedForm, OutsideDomain, Question, Shift, is_close
from workbench.solvers.arrays import Ints

MAX_UNIT_CANDIDATES = 256
"""How many shifts are tried as the unit u of a relation {u, 2u, ..., μ̄u}."""


def _proof(n: int, mu_bar: int, epsilon: float, proven: bool) -> str:
    if proven and n <= 2 * mu_bar:
        return "n <= 2μ̄, every ε and δ: only the last row can be cut and the chain bound equals the law."
    if proven and n % mu_bar == 0 and epsilon >= math.log(2):
        return "μ̄ divides n and ε >= ln 2, every δ: sorted cuts lose only their chain loss, so the chain bound is met."
    if proven:
        return "The chain bound, valid for every mechanism at every ε and n, equals the law at this ε and δ."
    if epsilon >= math.log(2):
        return (
            "Feasible; the chain bound is larger here. The law over all cut vectors has no counterexample in 5,422 "
            "cases for ε >= ln 2, but is unproven, and only the grouped cut vectors are compared."
        )
    return "Feasible; the chain bound is larger here, and for ε < ln 2 breaks inside the support can do better."


def column_cut_law(n: int, mu_bar: int, epsilon: float, delta: float) -> ClosedForm:
    """Column-cut law of 𝓜 = {1..mu_bar} under (ε, δ)-PDP: error rate, PMF, and whether it is proven optimal.

    At δ = 0, or where no cut pays, it is Lemma 4. Raises OutsideDomain where n and mu_bar are too large.
    """
    cut, grid = best_column_cut(n, mu_bar, epsilon, delta), Grid(n, mu_bar, epsilon)
    holes = np.zeros(n + 1, dtype=bool) if cut.vector is None else grid.holes(cut.vector)
    error, pmf = cut_pmf(grid.weights, holes, cut.loss, delta)
    proven = cut.bound is not None and is_close(cut.mass, cut.bound)
    return ClosedForm(
        name="column-cut law",
        value=error,
        pmf=pmf,
        kind="optimum" if proven else "upper bound",
        proof=_proof(n, mu_bar, epsilon, proven),
    )


def chain_bound(n: int, mu_bar: int, epsilon: float, delta: float) -> ClosedForm:
    """Rigorous lower bound on the error rate of every mechanism for 𝓜 ⊇ {1..mu_bar} under (ε, δ)-PDP.

    Raises OutsideDomain when n and mu_bar are too large to search.
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
        proof="𝓜 ⊇ {1..μ̄}, every ε, δ, n: the first break of the shift μ̄ in each column weighs >= a^{c_j-1} f(0).",
    )


def _run(sizes: Ints, shifts: Container[Shift], unit: Shift) -> int:
    """The largest m such that u, 2u, ..., mu are all shifts."""
    length = 0
    for times in range(1, shift_order(sizes, unit)):
        if tuple(times * step % size for step, size in zip(unit, sizes, strict=True)) not in shifts:
            break
        length = times
    return length


@lru_cache(maxsize=64)
def _longest_run(sizes: Ints, shifts: tuple[Shift, ...]) -> tuple[Shift, int]:
    """(u, m) with the most of u, 2u, ..., mu among the shifts."""
    unit, longest, among = shifts[0], 0, frozenset(shifts)
    for candidate in shifts[:MAX_UNIT_CANDIDATES]:
        run = _run(sizes, among, candidate)
        if run > longest:
            unit, longest = candidate, run
        if longest == len(shifts):
            break
    return unit, longest


def state_bounded_difference(question: Question) -> Iterator[ClosedForm]:
    """Answer PDP questions whose shifts are {u, 2u, ..., μ̄u}; bound from below those that contain such a run.

    The multiples of u form a copy of Z_{N_u}, u standing for 1, and no mass is needed elsewhere. Such a relation of
    several shifts is BD whatever u is: {2, 4, 6} mod 9 is {1, 2, 3} seen through the unit 2.
    """
    epsilon, shifts = question.epsilon, question.shifts
    if (
        question.requires != MASS_ABOVE_RATIO
        or epsilon is None
        or len(shifts) < 2
        or question.delta == 0.0
    ):
        return
    unit, longest = _longest_run(question.sizes, shifts)
    if longest < 2:
        return
    n = shift_order(question.sizes, unit) - 1
    with suppress(OutsideDomain):
        if longest == len(shifts):
            law = column_cut_law(n, longest, epsilon, question.delta)
            assert law.pmf is not None
            pmf = np.zeros(math.prod(question.sizes))
            pmf[shift_multiples(question.sizes, unit)] = law.pmf
            yield replace(law, pmf=pmf)
        yield chain_bound(n, longest, epsilon, question.delta)
