"""Compute the curves, maps and tables of results/frontier with `workbench.frontier`.

These are not figures of a paper. They combine the models and baselines of all papers.
declared/frontier.toml has the runs of `wb.frontier` and, for each artifact, its run and the plot of
the run. Artifacts of the same run share its computation. Seconds are not written, so a table is the
same every time.
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
_PROBABILITY_DIGITS = 5  # Probabilities are rounded to these digits, which solvers determine.
_LOSS_DIGITS = 5  # Losses of recommended classes are rounded to this many digits.
_DP_DELTA_DIGITS = 6  # The column dp_delta is rounded to this many digits.

# The statuses of budgets that no parameter or no code meets. They are answers, not failures.
_EXPECTED_STATUSES = ("not applicable", "infeasible", "unreachable")


def _require_complete(result: Result) -> pd.DataFrame:
    """Return the table of a result. Raises KeyboardInterrupt if it was interrupted."""
    if result.is_interrupted:
        raise KeyboardInterrupt
    return result.to_frame()


def _resolve_places(arguments: Values) -> Record:
    """Return arguments with the path of the file of places, which is in this package."""
    resolved_arguments = {**arguments}
    if "places" in resolved_arguments:
        resolved_arguments["places"] = str(DATA / resolved_arguments["places"])
    return resolved_arguments


@lru_cache
def _compute_frontier(kind: str, full: bool) -> tuple[Result, pd.DataFrame]:
    """Return a frontier and its table. Raises WorkbenchError if a budget failed."""
    declaration = read_declaration("frontier")["frontiers"][kind]
    arguments = _resolve_places(select_arguments(declaration, full))
    result = frontier(declaration.get("family", kind), **arguments)
    table = _require_complete(result)
    has_failed = table["objective"].isna() & table["failure"].notna()
    failed_rows = table[has_failed & ~table["status"].isin(_EXPECTED_STATUSES)]
    if len(failed_rows):
        message = failed_rows["failure"].iloc[0]
        raise WorkbenchError(f"The {kind} frontier has a row that failed: {message}")
    table = table.drop(columns=["seconds", *declaration.get("dropped_columns", [])])
    if kind == "labels":
        # Several laws may be optimal, and they may use different numbers of outputs.
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
    """Make an artifact of a frontier."""
    declaration = read_declaration("frontier")[name]
    result, rows = _compute_frontier(declaration["frontier"], full)
    selected_rows = rows[rows["curve"].isin(declaration["curves"])]
    table = selected_rows.dropna(axis="columns", how="all").reset_index(drop=True)

    def draw(_: pd.DataFrame) -> Figure:
        figure = result.draw(rows)[declaration["plot"]]()
        assert figure
        return figure

    laws = ""
    if "oracle_agrees" in table:
        verdicts = table["oracle_agrees"].dropna()
        if len(verdicts):
            agreeing = int(verdicts.sum())
            laws = f" Closed forms agree with {agreeing} of {len(verdicts)} solver runs."
    return make_artifact("frontier", name, table, draw=draw, laws=laws)


def _make_city_map(full: bool) -> Artifact:
    """Make the maps of the outputs of the optimal channel: of all people, and of one place."""
    declaration = read_declaration("frontier")["city_map"]
    city_design = design("channel", **_resolve_places(select_arguments(declaration, full)))
    question = city_design.question
    channel = city_design.mechanism.matrix
    prior = np.array([float(probability) for probability in question.prior])
    likeliest = int(prior.argmax())
    places = [[float(coordinate) for coordinate in place] for place in question.inputs]
    columns = {
        "prior": prior,
        "published": prior @ channel,
        "from_the_likeliest": channel[likeliest],
    }
    table = pd.DataFrame(places, columns=["x", "y"])
    for column, probabilities in columns.items():
        table[column] = [
            round_to_digits(float(value), _PROBABILITY_DIGITS) for value in probabilities
        ]

    def draw(_: pd.DataFrame) -> Figure:
        titles = ("prior", "published", "published from the cross")
        return draw_place_maps(places, [*columns.values()], titles, places[likeliest])

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
