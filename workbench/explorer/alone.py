"""Tasks of a page that need no design: recommendations, and the rows of a family's frontier."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from typing import Any

from workbench.errors import InvalidRequest, must
from workbench.exact.objects import Values
from workbench.explorer.given import View
from workbench.explorer.page_request import PageRequest, ProgressFunction
from workbench.frontiers.run import get_frontier, make_frontier_plan, run_frontier_plan
from workbench.io.files import forbid_file_access
from workbench.pipeline.option import read_options


def compute_recommendation(request: Values, tell: ProgressFunction) -> View:
    """Classes of mechanisms for a query, whose options are texts (`workbench.recommend`)."""
    from workbench.recommendation.recommend import recommend as compared

    query = request.get("query") or {}
    if not isinstance(query, Mapping) or not all(isinstance(text, str) for text in query.values()):
        must("query", "options with their texts", repr(query)[:80])
    options = {str(name): text for name, text in query.items()}
    if wrong := [name for name in options if name == "progress" or not name.isidentifier()]:
        must("query", "options of recommend", repr(wrong[0])[:80])
    with forbid_file_access():
        result = compared(**options, progress=lambda done, total, what: tell(done, total))
    return result.to_dict()


def compute_frontier_rows(request: PageRequest) -> list[View]:
    """The rows of the family's frontier at one budget."""
    kind, values = request.family, request.values
    offered = {option.name: option for option in get_frontier(kind).options}
    taken = {}
    for name, text in request.texts.items():
        if name in offered:
            taken[name] = values[name] if offered[name].question else text
        elif kind.get_option(name).question:
            raise InvalidRequest(
                f"The trade-offs of {kind.name} are not computed for a question with {name}."
            )
    hot = {
        name: [value]
        for name, value in request.hot_values().items()
        if value is not None and name in offered
    }
    if missing := [
        name
        for name in kind.hot_option_names
        if name in offered and offered[name].required and name not in hot
    ]:
        raise InvalidRequest(
            f"They are compared at one {' and '.join(missing)}, which this request does not give."
        )
    raw = {"certify": False} if "certify" in offered else {}
    with forbid_file_access():
        plan = make_frontier_plan(kind, None, read_options([*offered.values()], taken | hot | raw))
    return list(
        run_frontier_plan(plan, lambda done, total, what: request.report_progress(done, total)).rows
    )


def order_coarse_first(grid: list[Fraction], now: Any) -> list[Fraction]:
    """The same values, so ordered that the first few already span the range; the present one first."""
    order = [grid.index(now)] if now in grid else []
    for halvings in range(len(grid).bit_length(), -1, -1):
        order += [*range(0, len(grid), 1 << halvings), len(grid) - 1]
    return [grid[k] for k in dict.fromkeys(order)]
