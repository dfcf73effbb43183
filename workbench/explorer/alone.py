"""Tasks of a page that need no design: recommendations, and the rows of a family's frontier."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from typing import Any

from workbench.errors import InvalidRequest, must
from workbench.exact.objects import Values
from workbench.explorer.given import View
from workbench.explorer.page_request import PageRequest, Tell
from workbench.frontiers.run import frontier_of, plan_of, run
from workbench.io.files import no_files
from workbench.pipeline.option import read


def recommend(request: Values, tell: Tell) -> View:
    """Classes of mechanisms for a query, whose options are texts (`workbench.recommend`)."""
    from workbench.recommendation.recommend import recommend as compared

    query = request.get("query") or {}
    if not isinstance(query, Mapping) or not all(isinstance(text, str) for text in query.values()):
        must("query", "options with their texts", repr(query)[:80])
    options = {str(name): text for name, text in query.items()}
    if wrong := [name for name in options if name == "progress" or not name.isidentifier()]:
        must("query", "options of recommend", repr(wrong[0])[:80])
    with no_files():
        result = compared(**options, progress=lambda done, total, what: tell(done, total))
    return result.to_dict()


def frontier(request: PageRequest) -> list[View]:
    """The rows of the family's frontier at one budget."""
    kind, values = request.kind, request.values
    offered = {option.name: option for option in frontier_of(kind).options}
    taken = {}
    for name, text in request.given.items():
        if name in offered:
            taken[name] = values[name] if offered[name].question else text
        elif kind.option(name).question:
            raise InvalidRequest(
                f"The trade-offs of {kind.name} are not computed for a question with {name}."
            )
    hot = {
        name: [value]
        for name, value in request.point().items()
        if value is not None and name in offered
    }
    if missing := [
        name for name in kind.hot if name in offered and offered[name].required and name not in hot
    ]:
        raise InvalidRequest(
            f"They are compared at one {' and '.join(missing)}, which this request does not give."
        )
    raw = {"certify": False} if "certify" in offered else {}
    with no_files():
        plan = plan_of(kind, None, read([*offered.values()], taken | hot | raw))
    return list(run(plan, lambda done, total, what: request.tell(done, total)).rows)


def coarse_first(grid: list[Fraction], now: Any) -> list[Fraction]:
    """The same values, so ordered that the first few already span the range; the present one first."""
    order = [grid.index(now)] if now in grid else []
    for halvings in range(len(grid).bit_length(), -1, -1):
        order += [*range(0, len(grid), 1 << halvings), len(grid) - 1]
    return [grid[k] for k in dict.fromkeys(order)]
