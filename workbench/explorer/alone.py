"""Compute what the explorer's page shows besides a design: recommendations and frontier rows.

Each function answers one request of the page alone, without the design that the page shows.
"""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from workbench.errors import InvalidRequest, WorkbenchError, must
from workbench.exact.objects import Values
from workbench.explorer import figures
from workbench.explorer.given import View
from workbench.explorer.page_request import PageRequest, ProgressFunction, ignore_progress
from workbench.frontiers.run import get_frontier, make_frontier_plan, run_frontier_plan
from workbench.io.files import forbid_file_access
from workbench.io.plain_figures import FigureData
from workbench.pipeline.option import read_options
from workbench.pipeline.published import compute_references, published_for

if TYPE_CHECKING:
    from workbench.recommendation.recommend import Recommendation

_CLASS_CURVE_EPSILONS = (0.05, 10.0)  # The smallest and the largest ε of the chart of a class.
_PUBLISHED_GRID_SIZE = 13  # Curves of published mechanisms have this many values.
_MAX_QUOTED_LENGTH = 80  # An error quotes at most this many characters of a wrong value.


def compute_recommendation(
    request: Values, report_progress: ProgressFunction, **fixed: str
) -> Recommendation:
    """Compare the mechanism classes for a query (`workbench.recommend`).

    Args:
        request: The JSON object of the page. Its "query" has the options of `recommend` as texts,
            such as {"answers": "0..10", "epsilon": "1"}.
        report_progress: Called with (number of finished classes, number of classes).
        fixed: Options that replace those of the query.

    Returns:
        The comparison.

    Raises:
        InvalidRequest: The query is not a mapping of options to texts, or an option is wrong.
    """
    from workbench.recommendation.recommend import recommend

    query = request.get("query") or {}
    if not isinstance(query, Mapping) or not all(isinstance(text, str) for text in query.values()):
        must("query", "options with their texts", repr(query)[:_MAX_QUOTED_LENGTH])
    options: dict[str, Any] = {str(name): text for name, text in query.items()} | fixed
    for name in options:
        if name == "progress" or not name.isidentifier():
            must("query", "options of recommend", repr(name)[:_MAX_QUOTED_LENGTH])

    def report(done_count: int, total: int, _: str) -> None:
        """Pass the progress on without its text."""
        report_progress(done_count, total)

    with forbid_file_access():
        return recommend(**options, progress=report)


def compute_frontier_rows(request: PageRequest) -> list[View]:
    """Return the rows of the family's frontier at one budget.

    Args:
        request: A request of a family that has a frontier, with its budget.

    Returns:
        The rows of `workbench.frontier` for this budget.

    Raises:
        InvalidRequest: The frontier has no such question, or a number of the budget is missing.
    """
    family = request.family
    options = {option.name: option for option in get_frontier(family).options}

    # A frontier reads the question as exact values, and its other options as texts.
    values: dict[str, Any] = {}
    for name, text in request.texts.items():
        if name in options:
            values[name] = text
            if options[name].question:
                values[name] = request.values[name]
        elif family.get_option(name).question:
            raise InvalidRequest(
                f"The trade-offs of {family.name} are not computed for a question with {name}."
            )

    # A hot option is a number of the budget. A frontier takes a list of values for it.
    budget_lists = {
        name: [value]
        for name, value in request.hot_values().items()
        if value is not None and name in options
    }
    missing_names = [
        name
        for name in family.hot_option_names
        if name in options and options[name].required and name not in budget_lists
    ]
    if missing_names:
        names = " and ".join(missing_names)
        raise InvalidRequest(
            f"The trade-offs need a value of {names}, which this request does not give."
        )
    values |= budget_lists
    if "certify" in options:
        values["certify"] = False
    with forbid_file_access():
        plan = make_frontier_plan(
            family, question=None, values=read_options([*options.values()], values)
        )

    def report(done_count: int, total: int, _: str) -> None:
        """Pass the progress on without its text."""
        request.report_progress(done_count, total)

    return list(run_frontier_plan(plan, report).rows)


def compute_published_curves(request: PageRequest) -> View:
    """Return the losses of published mechanisms along every number of the budget.

    Args:
        request: A request whose objective is a loss.

    Returns:
        Number of the budget -> series (`figures.make_published_curves`). Numbers without published
        mechanisms are left out.
    """
    curves: View = {}
    for name in request.slider_values:
        values = request.slider_grid(name, _PUBLISHED_GRID_SIZE)
        losses = [_compute_published_losses(request.with_value(name, value)) for value in values]
        series = figures.make_published_curves(values, losses)
        if series:
            curves[name] = series
    return curves


def _compute_published_losses(request: PageRequest) -> dict[str, float]:
    """Return the losses of the published mechanisms that are private at a budget, by name."""
    try:
        family_request = request.make_request("audit")
        references = compute_references(published_for(family_request), family_request)
    except WorkbenchError:
        # The number has no such value in this request, such as δ = 1.
        return {}
    return {
        name: reference.objective
        for name, reference in references.items()
        if reference.is_certified or reference.mechanism is None
    }


def compute_class_curve(
    request: Values, result: Recommendation, class_name: str
) -> FigureData | None:
    """Return the error of a published mechanism against ε.

    Args:
        request: The JSON object of the page, with the "query".
        result: A comparison that contains the class.
        class_name: The name of the class.

    Returns:
        The chart. None if the class is designed by a solver, or if the budget has no ε.
    """
    row = next(row for row in result if row["class"] == class_name)
    assert result.query is not None
    epsilon = result.query.claim.epsilon
    if "published (" not in row["notes"] or not isinstance(epsilon, (int, Fraction)):
        return None
    low, high = _CLASS_CURVE_EPSILONS
    ratio = (high / low) ** (1 / (_PUBLISHED_GRID_SIZE - 1))
    epsilons = [Fraction(f"{low * ratio**k:.3g}") for k in range(_PUBLISHED_GRID_SIZE)]
    losses: list[dict[str, float]] = []
    values = sorted({*epsilons, Fraction(epsilon)})
    for value in values:
        moved = compute_recommendation(
            request, ignore_progress, only=class_name, epsilon=str(value)
        )
        loss = moved.rows[0]["objective"]
        losses.append({} if loss is None else {class_name: loss})
    series = figures.make_published_curves(values, losses)
    return figures.make_published_curve_figure(series, str(result.query.aim.loss))


def order_coarse_first(grid: list[Fraction], current: Any) -> list[Fraction]:
    """Return the values of a grid in an order in which the first few span its range.

    For example, 0, 1, 2, 3, 4 with the current value 3 become 3, 0, 4, 2, 1.

    Args:
        grid: The values in increasing order.
        current: The current value, which comes first if it is in the grid.

    Returns:
        The same values in another order.
    """
    order = [grid.index(current)] if current in grid else []
    for halvings in range(len(grid).bit_length(), -1, -1):
        stride = 1 << halvings
        order += [*range(0, len(grid), stride), len(grid) - 1]
    # Indices that occur again are dropped.
    return [grid[k] for k in dict.fromkeys(order)]
