"""The least ε of a range for the largest loss, by the search of `recommend`."""

from __future__ import annotations

from dataclasses import replace

from workbench.errors import Infeasible, NotApplicable, NotProven
from workbench.families.channel.request import ChannelRequest
from workbench.pipeline.design import Design
from workbench.pipeline.recommendation import RANGE_CHANNEL, Query, TimeShares, least_epsilon
from workbench.pipeline.request import Aim
from workbench.questions.range_query import RangeQuery


def least(request: ChannelRequest) -> Design:
    """The channel at the least ε found for the largest loss, as `recommend` seeks it. Raises Infeasible."""
    question, seconds = request.question, request.how.options.time_limit
    assert isinstance(question, RangeQuery)
    request.check_max_loss()
    aim = Aim(loss=str(request.aim.loss), minimise="epsilon", max_loss=request.aim.max_loss)
    time = None if seconds is None else TimeShares(seconds)
    query = Query(question=question, claim=request.claim, aim=aim, time=time)
    try:
        value = least_epsilon(query, RANGE_CHANNEL)
    except NotApplicable as error:
        raise Infeasible(f"Loss {request.loss_name} at most {float(query.aim.max_loss or 0):g}: {error}.") from None
    assert value.design is not None  # certified
    reached = value.design()
    chosen = reached.request.with_values(minimise="epsilon", max_loss=request.aim.max_loss, options=request.how.options)
    reported = replace(reached, request=chosen, objective=value.objective, bound=value.bound)
    if value.stopped:
        words = f"The search stopped at its time limit: least epsilon {value.objective:.9g} so far."
        raise NotProven(words, incumbent=value.objective, bound=value.bound, design=reported)
    return reported
