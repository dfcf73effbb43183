"""The trade-off curves of `workbench frontier`, at a moderate size: not a paper's, but made of all of them.

declared/frontier.toml states the runs of `wb.frontier` and, for each artifact, which plot of which run it is. One run
is shared by its artifacts; seconds are left out, so that a table is the same every time.
"""

from __future__ import annotations

from functools import lru_cache, partial
from itertools import product
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
_BUDGET, _OF_A_CLASS = ("epsilon", "delta"), ("class", "objective", "bound", "bits")
_SECONDS = 600  # more than any class takes, so that the table is the same every time
_MAP_DIGITS = 5  # of masses, which a solver's tolerance leaves certain
_EXPECTED = (
    "not applicable",
    "infeasible",
    "unreachable",
)  # what no parameter or no code meets is an answer


def _require_complete(result: Result) -> pd.DataFrame:
    if result.is_interrupted:
        raise KeyboardInterrupt
    return result.to_frame()


def _resolve_places(values: Values) -> Record:
    """Places are a file of this package."""
    return {
        name: str(DATA / value) if name == "places" else value for name, value in values.items()
    }


@lru_cache
def _compute_frontier(kind: str, full: bool) -> tuple[Result, pd.DataFrame]:
    """A frontier and its table. Raises WorkbenchError when a request failed."""
    stated = read_declaration("frontier")["frontiers"][kind]
    result = frontier(stated.get("family", kind), **_resolve_places(select_arguments(stated, full)))
    table = _require_complete(result)
    failed = table[
        table["objective"].isna() & table["failure"].notna() & ~table["status"].isin(_EXPECTED)
    ]
    if len(failed):
        raise WorkbenchError(
            f"The {kind} frontier has a row that failed: {failed['failure'].iloc[0]}"
        )
    table = table.drop(columns=["seconds", *stated.get("without", [])])
    if (
        kind == "labels"
    ):  # how many outputs an LP's optimum uses is not determined where several laws are optimal
        table.loc[table["mechanism"] == "unbiased", "outputs_used"] = None
    for column in table.columns.difference(["epsilon", "delta"]):
        digits = min(
            stated.get("digits", SIGNIFICANT_DIGITS),
            6 if column == "dp_delta" else SIGNIFICANT_DIGITS,
        )
        table[column] = [
            round_to_digits(v, digits) if isinstance(v, float) else v for v in table[column]
        ]
    return result, table


def _make_frontier_artifact(name: str, full: bool) -> Artifact:
    stated = read_declaration("frontier")[name]
    result, rows = _compute_frontier(stated["of"], full)
    table = (
        rows[rows["curve"].isin(stated["curves"])]
        .dropna(axis="columns", how="all")
        .reset_index(drop=True)
    )

    def draw(_: pd.DataFrame) -> Figure:
        figure = result.draw(rows)[stated["plot"]]()
        assert figure  # the rows are complete
        return figure

    verdicts = (
        table["oracle_agrees"].dropna() if "oracle_agrees" in table else pd.Series(dtype=bool)
    )
    laws = (
        f" Closed forms agree with {int(verdicts.sum())} of {len(verdicts)} solver runs."
        if len(verdicts)
        else ""
    )
    return make_artifact("frontier", name, table, draw=draw, laws=laws)


def _make_city_map(full: bool) -> Artifact:
    """What the best channel publishes in all, and from the most likely place."""
    best = design(
        "channel",
        **_resolve_places(select_arguments(read_declaration("frontier")["city_map"], full)),
    )
    q, law = best.question, best.mechanism.matrix
    prior = np.array([float(p) for p in q.prior])
    own = int(prior.argmax())
    places = [[float(c) for c in place] for place in q.inputs]
    columns = {"prior": prior, "published": prior @ law, "from_the_likeliest": law[own]}
    table = pd.DataFrame(places, columns=["x", "y"]).assign(
        **{
            name: [round_to_digits(float(mass), _MAP_DIGITS) for mass in masses]
            for name, masses in columns.items()
        }
    )

    def draw(_: pd.DataFrame) -> Figure:
        return draw_place_maps(
            places,
            [*columns.values()],
            ("prior", "published", "published from the cross"),
            places[own],
        )

    loss, bound = (f"{value:.7g}" for value in (best.objective, best.bound or 0.0))
    return make_artifact("frontier", "city_map", table, draw=draw, loss=loss, bound=bound)


def _make_budgets(full: bool) -> Artifact:
    """Every class that serves a declared query, at every budget."""
    stated = read_declaration("frontier")["budgets"]
    tables = []
    for query, epsilon, delta in product(
        stated["queries"], *(select_arguments(stated, full)[name] for name in _BUDGET)
    ):
        words = ", ".join(f"{name} {value}" for name, value in query.items())
        classes = _require_complete(
            recommend(**query, epsilon=epsilon, delta=delta, time_limit=_SECONDS)
        )
        classes = classes[classes["objective"].notna()].assign(
            query=words, epsilon=epsilon, delta=delta
        )
        classes["objective"] = [round_to_digits(value, 5) for value in classes["objective"]]
        tables.append(classes.sort_values(["objective", "class"]))  # ties by name
    return make_artifact(
        "frontier",
        "budgets",
        pd.concat(tables, ignore_index=True)[["query", *_BUDGET, *_OF_A_CLASS]],
    )


_OWN = {
    name: partial(_make_frontier_artifact, name)
    for name, own in read_declaration("frontier").items()
    if "of" in own
}
PAPER = build_declared_paper(
    "frontier", _OWN, {"budgets": _make_budgets, "city_map": _make_city_map}
)
