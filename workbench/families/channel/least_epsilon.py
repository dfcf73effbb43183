"""The least ε at which some channel costs no more than a budget: by bisection and chords over exact intervals.

At every ε tried, a certified channel (cost <= budget: ε is enough) or an exact lower bound (> budget: it is not)
decides; what neither decides ends the search. The least error falls with ε, so what is below an ε that is not enough is
not enough either.
"""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np

from workbench.errors import Infeasible, InvalidRequest, NotProven
from workbench.exact.numbers import round_down
from workbench.families.channel.repair import cheapest, loss_of
from workbench.families.channel.request import LEAST, ChannelRequest
from workbench.families.design import Design, OracleVerdict

if TYPE_CHECKING:
    from workbench.families.channel.session import ChannelSession

__all__ = ["least_epsilon"]

_CLOSE = 1e-10  # relative, of the ends
_TURNS = 80


def least_epsilon(session: ChannelSession, request: ChannelRequest) -> Design:
    """The design at the least ε found, with ε as its objective and the largest ε excluded as its bound.

    Raises Infeasible where the limit of ε is not enough, NotProven.
    """
    budget = request.budget
    limit = request.epsilon
    assert budget is not None
    assert limit is not None

    cheapest_rows = np.zeros((request.question.k, request.question.m), dtype=object)
    cheapest_rows[:, cheapest(request.losses, request.question.prior)] = 1
    constant = loss_of(cheapest_rows, request.losses, request.question.prior)
    if constant <= budget:
        need = f"less than {float(constant):.9g}, what one output for every input costs (any epsilon is enough)"
        InvalidRequest.must("budget", need, f"{float(budget):g}")

    def at(epsilon: Fraction) -> tuple[Design, Fraction, Fraction | None]:
        design = session.solved(_least_error_at(request, epsilon))
        return design, design.details["loss"], design.details["bound"]

    best, cost, bound = at(limit)
    if cost > budget:
        if bound is not None and bound > budget:
            raise Infeasible(
                f"Loss {request.losses.name} at most {float(budget):g} needs epsilon > {float(limit):g}: there the "
                f"least is {float(bound):.9g}."
            )
        raise NotProven(f"Whether a loss of {float(budget):g} is in reach at epsilon = {float(limit):g} is undecided.")
    low, high = Fraction(0), limit
    ends = [math.inf, float(cost - budget)]  # excess of the budget at low and high
    stuck = 0
    for _ in range(_TURNS):
        if high - low <= Fraction(_CLOSE) * high or high <= LEAST:
            break
        epsilon = max(LEAST, _next(low, high, ends, stuck))
        design, cost, bound = at(epsilon)
        if cost <= budget:
            stuck = stuck + 1 if stuck >= 0 else 0
            high, best, ends[1] = epsilon, design, float(cost - budget)
        elif bound is not None and bound > budget:
            stuck = stuck - 1 if stuck <= 0 else 0
            low, ends[0] = epsilon, float(bound - budget)
        else:
            break
    asked = replace(best.request)
    for name in ("minimise", "budget", "losses"):
        object.__setattr__(asked, name, getattr(request, name))
    object.__setattr__(asked, "family", request.family)
    none = OracleVerdict.none("no closed form is known for the least epsilon.")
    more = () if high - low <= Fraction(10 * _CLOSE) * high else (
        f"The search ended with the least epsilon between {float(low):.12g} and {float(high):.12g}.",)  # fmt: skip
    return replace(
        best, request=asked, objective=float(high), bound=round_down(low), oracle=none, words=(*best.words, *more)
    )


def _least_error_at(request: ChannelRequest, epsilon: Fraction) -> ChannelRequest:
    """The least error at an ε."""
    asked = request.at({})
    for name, value in (("minimise", "error"), ("budget", None)):
        object.__setattr__(asked, name, value)
    moved = asked.at({"epsilon": epsilon})
    assert isinstance(moved, ChannelRequest)
    return moved


def _next(low: Fraction, high: Fraction, ends: list[float], stuck: int) -> Fraction:
    """The chord through both ends where it helps, the middle where one end has not moved for long; 15 digits."""
    middle = (low + high) / 2 if low else high / 4
    chosen = float(middle)
    if math.isfinite(ends[0]) and abs(stuck) < 3 and ends[0] > 0 > ends[1]:
        share = ends[0] / (ends[0] - ends[1])
        share = min(max(share, 1e-6), 1 - 1e-6)
        chosen = float(low) + share * float(high - low)
    elif math.isfinite(ends[0]) and abs(stuck) < 6 and ends[0] > 0 > ends[1]:
        # the last chord's side is right: step over the root by a little
        share = min(max(ends[0] / (ends[0] - ends[1]) * (1 + (1e-3 if stuck < 0 else -1e-3)), 1e-9), 1 - 1e-9)
        chosen = float(low) + share * float(high - low)
    tried = Fraction(f"{chosen:.15g}")
    return tried if low < tried < high else middle
