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
from workbench.io.figures import place_plot
from workbench.io.result import Result
from workbench.papers.artifact import (
    DIGITS,
    Artifact,
    artifact,
    declared,
    given,
    paper_stated,
    rounded,
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


def _finished(result: Result) -> pd.DataFrame:
    if result.interrupted:
        raise KeyboardInterrupt
    return result.to_frame()


def _with_files(values: Values) -> Record:
    """Places are a file of this package."""
    return {
        name: str(DATA / value) if name == "places" else value for name, value in values.items()
    }


@lru_cache
def _computed(kind: str, full: bool) -> tuple[Result, pd.DataFrame]:
    """A frontier and its table. Raises WorkbenchError when a request failed."""
    stated = declared("frontier")["frontiers"][kind]
    result = frontier(stated.get("family", kind), **_with_files(given(stated, full)))
    table = _finished(result)
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
        digits = min(stated.get("digits", DIGITS), 6 if column == "dp_delta" else DIGITS)
        table[column] = [rounded(v, digits) if isinstance(v, float) else v for v in table[column]]
    return result, table


def _drawn(name: str, full: bool) -> Artifact:
    stated = declared("frontier")[name]
    result, rows = _computed(stated["of"], full)
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
    return artifact("frontier", name, table, draw=draw, laws=laws)


def _city_map(full: bool) -> Artifact:
    """What the best channel publishes in all, and from the most likely place."""
    best = design("channel", **_with_files(given(declared("frontier")["city_map"], full)))
    q, law = best.question, best.mechanism.matrix
    prior = np.array([float(p) for p in q.prior])
    own = int(prior.argmax())
    places = [[float(c) for c in place] for place in q.inputs]
    columns = {"prior": prior, "published": prior @ law, "from_the_likeliest": law[own]}
    table = pd.DataFrame(places, columns=["x", "y"]).assign(
        **{
            name: [rounded(float(mass), _MAP_DIGITS) for mass in masses]
            for name, masses in columns.items()
        }
    )

    def draw(_: pd.DataFrame) -> Figure:
        return place_plot(
            places,
            [*columns.values()],
            ("prior", "published", "published from the cross"),
            places[own],
        )

    loss, bound = (f"{value:.7g}" for value in (best.objective, best.bound or 0.0))
    return artifact("frontier", "city_map", table, draw=draw, loss=loss, bound=bound)


def _budgets(full: bool) -> Artifact:
    """Every class that serves a declared query, at every budget."""
    stated = declared("frontier")["budgets"]
    tables = []
    for query, epsilon, delta in product(
        stated["queries"], *(given(stated, full)[name] for name in _BUDGET)
    ):
        words = ", ".join(f"{name} {value}" for name, value in query.items())
        classes = _finished(recommend(**query, epsilon=epsilon, delta=delta, time_limit=_SECONDS))
        classes = classes[classes["objective"].notna()].assign(
            query=words, epsilon=epsilon, delta=delta
        )
        classes["objective"] = [rounded(value, 5) for value in classes["objective"]]
        tables.append(classes.sort_values(["objective", "class"]))  # ties by name
    return artifact(
        "frontier",
        "budgets",
        pd.concat(tables, ignore_index=True)[["query", *_BUDGET, *_OF_A_CLASS]],
    )


_OWN = {name: partial(_drawn, name) for name, own in declared("frontier").items() if "of" in own}
PAPER = paper_stated("frontier", _OWN, {"budgets": _budgets, "city_map": _city_map})
