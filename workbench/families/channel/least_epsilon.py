"""The least ε of a channel within a budget of its loss (`workbench.families.least_epsilon`)."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np

from workbench.errors import InvalidRequest
from workbench.families.channel.repair import cheapest, loss_of
from workbench.families.channel.request import LEAST, ChannelRequest
from workbench.families.design import Design
from workbench.families.least_epsilon import Tried
from workbench.families.least_epsilon import least_epsilon as search

if TYPE_CHECKING:
    from workbench.families.channel.session import ChannelSession

__all__ = ["least_epsilon"]


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

    def at(epsilon: Fraction) -> Tried:
        design = session.solved(_least_error_at(request, epsilon))
        return design, design.details["loss"], design.details["bound"]

    optimum = search(at, budget, f"Loss {request.losses.name}", limit, LEAST)
    restated = replace(optimum.request)
    for name in ("minimise", "budget", "losses"):
        object.__setattr__(restated, name, getattr(request, name))
    object.__setattr__(restated, "family", request.family)
    return replace(optimum, request=restated)


def _least_error_at(request: ChannelRequest, epsilon: Fraction) -> ChannelRequest:
    """The least error at an ε."""
    least_error = request.at({})
    for name, value in (("minimise", "error"), ("budget", None)):
        object.__setattr__(least_error, name, value)
    moved = least_error.at({"epsilon": epsilon})
    assert isinstance(moved, ChannelRequest)
    return moved
