"""Compute the curves, maps and tables of results/frontier with `workbench.frontier`.

These are not figures of a paper. They combine the models and baselines of all papers. A frontier is
the optimum as a function of the budget. declared/frontier.toml has the arguments of each run of
`wb.frontier`. For each artifact it has the name of its run, its curves, and one of the plots that
the run can draw. Artifacts of the same run share its computation. Seconds are not written, so a
table is the same every time.
"""

from __future__ import annotations

import itertools
from functools import lru_cache, partial
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from workbench.errors import WorkbenchError
from workbench.exact.objects import Record, Values
from workbench.frontiers.run import frontier
from workbench.io.figures import draw_place_maps
from workbench.io.result import Result
from workbench.papers.artifact import (
    SIGNIFICANT_DIGITS,
    Artifact,
    build_declared_paper,
    make_artifact,
    read_declaration,
    round_to_digits,
    select_arguments,
)
from workbench.pipeline.api import design
from workbench.recommendation.recommend import recommend

if TYPE_CHECKING:
    from matplotlib.figure import Figure


DATA = Path(__file__).with_name("data")

_TIME_LIMIT_SECONDS = 600  # No class takes this long, so the table is the same every time.

# Results are rounded to these significant digits, which are the same with every solver and machine.
_PROBABILITY_DIGITS = 5  # Probabilities of the outputs of the city map.
_LOSS_DIGITS = 5  # Losses of recommended classes.
_DP_DELTA_DIGITS = 6  # The column dp_delta.

# Statuses of budgets for which a mechanism does not exist or is not defined. They are answers, not
# failures.
_EXPECTED_STATUSES = ("not applicable", "infeasible", "unreachable")


def _require_complete(result: Result) -> pd.DataFrame:
    """Return the table of a result. Raises KeyboardInterrupt if it was interrupted."""
    if result.is_interrupted:
        raise KeyboardInterrupt
    return result.to_frame()


def _resolve_places(arguments: Values) -> Record:
    """Return arguments with the full path of the file of `places`, which is in `DATA`."""
    resolved_arguments = {**arguments}
    if "places" in resolved_arguments:
        resolved_arguments["places"] = str(DATA / resolved_arguments["places"])
    return resolved_arguments


@lru_cache
def _compute_frontier(run_name: str, full: bool) -> tuple[Result, pd.DataFrame]:
    """Return a declared frontier and its rounded table. Raises WorkbenchError if a budget failed.

    run_name: a key of [frontiers] in declared/frontier.toml. Without an entry `family`, it is the
    name of the family.
    """
    declaration = read_declaration("frontier")["frontiers"][run_name]
    arguments = _resolve_places(select_arguments(declaration, full))
    result = frontier(declaration.get("family", run_name), **arguments)
    table = _require_complete(result)

    has_failed = table["objective"].isna() & table["failure"].notna()
    failed_rows = table[has_failed & ~table["status"].isin(_EXPECTED_STATUSES)]
    if len(failed_rows):
        message = failed_rows["failure"].iloc[0]
        raise WorkbenchError(f"The {run_name} frontier has a row that failed: {message}")

    table = table.drop(columns=["seconds", *declaration.get("dropped_columns", [])])
    if run_name == "labels":
        # Several mechanisms may be optimal, and they may use different numbers of outputs.
        table.loc[table["mechanism"] == "unbiased", "outputs_used"] = None
    for column in table.columns.difference(["epsilon", "delta"]):
        digits = min(declaration.get("digits", SIGNIFICANT_DIGITS), SIGNIFICANT_DIGITS)
        if column == "dp_delta":
            digits = min(digits, _DP_DELTA_DIGITS)
        table[column] = [
            round_to_digits(value, digits) if isinstance(value, float) else value
            for value in table[column]
        ]
    return result, table


def _make_frontier_artifact(name: str, full: bool) -> Artifact:
    """Make an artifact of a frontier: some of its curves as a table, and one of its plots."""
    declaration = read_declaration("frontier")[name]
    result, rows = _compute_frontier(declaration["frontier"], full)
    selected_rows = rows[rows["curve"].isin(declaration["curves"])]
    table = selected_rows.dropna(axis="columns", how="all").reset_index(drop=True)

    def draw(_: pd.DataFrame) -> Figure:
        """Draw the declared plot from all rows; the table has only some of them."""
        figure = result.draw(rows)[declaration["plot"]]()
        assert figure
        return figure

    # The caption ends with this sentence, if closed forms exist.
    agreement = ""
    if "oracle_agrees" in table:
        verdicts = table["oracle_agrees"].dropna()
        if len(verdicts):
            agreeing = int(verdicts.sum())
            agreement = f" Closed forms agree with {agreeing} of {len(verdicts)} solver runs."
    return make_artifact("frontier", name, table, draw=draw, laws=agreement)


def _make_city_map(full: bool) -> Artifact:
    """Make maps of a city: the prior, and the published places of all people and of one place.

    The channel is optimal for the places and the prior of the declaration. The "one place" is the
    place with the largest prior.
    """
    declaration = read_declaration("frontier")["city_map"]
    city_design = design("channel", **_resolve_places(select_arguments(declaration, full)))
    question = city_design.question
    channel = city_design.mechanism.matrix
    prior = np.array([float(probability) for probability in question.prior])
    likeliest_index = int(prior.argmax())

    places = [[float(coordinate) for coordinate in place] for place in question.inputs]
    probabilities_by_column = {
        "prior": prior,
        "published": prior @ channel,
        "from_the_likeliest": channel[likeliest_index],
    }
    table = pd.DataFrame(places, columns=["x", "y"])
    for column, probabilities in probabilities_by_column.items():
        table[column] = [
            round_to_digits(float(value), _PROBABILITY_DIGITS) for value in probabilities
        ]

    def draw(_: pd.DataFrame) -> Figure:
        """Draw the three maps of the city."""
        titles = ("prior", "published", "published from the cross")
        maps = [*probabilities_by_column.values()]
        return draw_place_maps(places, maps, titles, places[likeliest_index])

    return make_artifact(
        "frontier",
        "city_map",
        table,
        draw=draw,
        loss=f"{city_design.objective:.7g}",
        bound=f"{city_design.bound or 0.0:.7g}",
    )


def _make_budgets(full: bool) -> Artifact:
    """Make the table of the mechanism classes of the declared queries at every budget."""
    declaration = read_declaration("frontier")["budgets"]
    grid = select_arguments(declaration, full)
    tables = []
    for query, epsilon, delta in itertools.product(
        declaration["queries"], grid["epsilon"], grid["delta"]
    ):
        recommendation = recommend(
            **query, epsilon=epsilon, delta=delta, time_limit=_TIME_LIMIT_SECONDS
        )
        classes = _require_complete(recommendation)

        description = ", ".join(f"{name} {value}" for name, value in query.items())
        classes = classes[classes["objective"].notna()].assign(
            query=description, epsilon=epsilon, delta=delta
        )
        classes["objective"] = [
            round_to_digits(value, _LOSS_DIGITS) for value in classes["objective"]
        ]
        # Classes with the same loss are sorted by name.
        tables.append(classes.sort_values(["objective", "class"]))
    columns = ["query", "epsilon", "delta", "class", "objective", "bound", "bits"]
    return make_artifact("frontier", "budgets", pd.concat(tables, ignore_index=True)[columns])


_FRONTIER_ARTIFACTS = {
    name: partial(_make_frontier_artifact, name)
    for name, entry in read_declaration("frontier").items()
    if "frontier" in entry
}
PAPER = build_declared_paper(
    "frontier", _FRONTIER_ARTIFACTS, {"budgets": _make_budgets, "city_map": _make_city_map}
)
