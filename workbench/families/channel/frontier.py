"""Plan the frontier of finite channels: the smallest loss for many ε (and δ, if the notion has it),
beside published mechanisms.

The table explains the column `curve` of the result, and names the series of `SERIES` in plots.

curve       meaning of a row                                                     series
point       the channel of smallest loss, certified unless certification is      "channel"
            turned off
baseline    a published mechanism at the budget, with its smallest private       its name
            parameter; audited
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from workbench.exact.objects import Values
from workbench.families.channel.family import FAMILY
from workbench.pipeline.frontier_plan import Plan
from workbench.pipeline.frontier_plots import Series
from workbench.pipeline.notion_points import list_notion_requests, make_notion_plan
from workbench.pipeline.requirements import list_ratio_notions

_DASH_DOT_DOT = (0, (5, 1, 1, 1, 1, 1))

# The colour and the line of every series of a plot.
SERIES = {
    "channel": Series("best channel", 2),
    "clamped geometric": Series("clamped geometric", colour=7, dash="-", width=3.0),
    "randomized response": Series("randomized response", colour=5, dash="--"),
    "clamped truncated geometric": Series(
        "clamped truncated geometric", colour=4, dash=_DASH_DOT_DOT
    ),
    "clamped discrete Gaussian": Series("clamped discrete Gaussian", colour=1, dash="--"),
    "clamped staircase": Series("clamped staircase", colour=0, dash=":"),
    "exponential": Series("exponential", colour=3, dash="-."),
    "planar Laplace, remapped": Series("planar Laplace, remapped", colour=7, dash=":"),
    "planar exponential": Series("planar exponential", colour=3, dash="-."),
    "permute-and-flip": Series("permute-and-flip", colour=6, dash="-."),
}


def plan_channel_frontier(question: Any, values: Values) -> Plan:
    """Make the plan of a frontier of channels.

    Args:
        question: question of the frontier. None: the options define it.
        values: option -> value.

    Raises:
        InvalidRequest: a point of the frontier cannot be requested.
    """
    points = list(list_notion_requests(FAMILY, question, values))
    plan = make_notion_plan(points, "channel", SERIES, list_ratio_notions(), title="Best channel, ")
    # A neighbour relation that falls into separate parts has a note. Each note is printed once.
    notes = dict.fromkeys(request.question.separation for _, request in points)
    return replace(plan, sentences=tuple(note for note in notes if note))
