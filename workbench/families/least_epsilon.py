"""The least ε, or δ, at which some mechanism costs no more than a budget: by bisection and chords over exact intervals.

At every ε tried, a certified mechanism (loss <= budget: ε is enough) or a proven lower bound (> budget: it is not)
decides; what neither decides ends the search. The least error falls with ε, so what is below an ε that is not enough is
not enough either. The same holds of δ at a fixed ε.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction

from workbench.errors import Infeasible, NotProven
from workbench.exact.numbers import round_down
from workbench.families.design import Design, OracleVerdict

_CLOSE = 1e-10  # relative, of the ends
_STEP = 4e-7  # relative, from where a loss and its bound lie on both sides of the budget
_TURNS = 80

Tried = tuple[Design, Fraction, Fraction | None]  # the design at an ε, its loss, the bound on every loss there


def least_epsilon(
    at: Callable[[Fraction], Tried],
    budget: Fraction,
    loss: str,
    limit: Fraction,
    least: Fraction,
    name: str = "epsilon",
) -> Design:
    """The design at the least ε found, with ε as its objective and the largest ε excluded as its bound.

    at: the least error at an ε; budget: of the loss, named `loss`; limit: of ε; least: of those tried; name: epsilon,
    or delta where that is what is tried. The request of the design is that of its ε, which the caller replaces.
    Raises Infeasible where the limit of ε is not enough, NotProven.
    """
    best, reached, bound = at(limit)
    if reached > budget:
        if bound is not None and bound > budget:
            raise Infeasible(
                f"{loss} at most {float(budget):g} needs {name} > {float(limit):g}: there the least is "
                f"{float(bound):.9g}."
            )
        raise NotProven(f"Whether {loss} of {float(budget):g} is in reach at {name} = {float(limit):g} is undecided.")
    low, high = Fraction(0), limit
    above, below = math.inf, float(reached - budget)  # excess of the budget at low and high, or a share of it
    kept = ""  # the end that stayed last
    aside: list[Fraction] | None = None  # once costs are as near the budget as they are known: a little to either side
    for _ in range(_TURNS):
        if high - low <= Fraction(_CLOSE) * high or high <= least or aside == []:
            break
        epsilon = max(least, _between(low, high, above, below)) if aside is None else aside.pop()
        if not low < epsilon < high:
            continue
        try:
            design, reached, bound = at(epsilon)
        except NotProven:
            break
        if reached <= budget:
            above /= 2 if kept == "low" else 1  # Illinois: a chord that the same end keeps is pulled towards it
            high, best, below, kept = epsilon, design, float(reached - budget), "low"
        elif bound is not None and bound > budget:
            below /= 2 if kept == "high" else 1
            low, above, kept = epsilon, float(bound - budget), "high"
        elif aside is None:
            aside = [Fraction(f"{float(epsilon) * (1 + step):.15g}") for step in (-_STEP, _STEP)]
        else:
            break
    none = OracleVerdict.none(f"no closed form is known for the least {name}.")
    more = (
        ()
        if high - low <= Fraction(10 * _CLOSE) * high
        else (f"The search ended with the least {name} between {float(low):.12g} and {float(high):.12g}.",)
    )
    return replace(best, objective=float(high), bound=round_down(low), oracle=none, words=(*best.words, *more))


def _between(low: Fraction, high: Fraction, above: float, below: float) -> Fraction:
    """Where the chord through both ends meets the budget, the middle where one excess is not known; 15 digits."""
    middle = (low + high) / 2 if low else high / 4
    if not math.isfinite(above) or not above > 0 > below:
        return Fraction(f"{float(middle):.15g}")
    share = min(max(above / (above - below), 1e-6), 1 - 1e-6)
    rounded = Fraction(f"{float(low) + share * float(high - low):.15g}")
    return rounded if low < rounded < high else middle
