"""A prior that is counted from a column of data."""

from __future__ import annotations

from collections import Counter
from fractions import Fraction
from pathlib import Path

from workbench.data.csv_column import CsvColumn
from workbench.data.points import points, shown
from workbench.data.tolerance import PointIndex
from workbench.errors import must
from workbench.exact.objects import Record, Values


def counted(given: Values) -> tuple[Record, list[str]]:
    """The same query without `column`: its prior is how often every answer stands in it; and a sentence on what that
    means. Raises InvalidRequest."""
    values = {name: value for name, value in given.items() if name != "column"}
    if given.get("column") is None:
        return values, []
    prior, column = values.get("prior"), str(given["column"])
    if not isinstance(prior, (str, Path)) or not Path(prior).is_file():
        must("prior", "a CSV file that has the column", repr(prior))
    counts = Counter(map(Fraction, CsvColumn.read(prior, column).exact_numbers()))
    if values.get("answers") is None:
        values["answers"] = [*map(shown, sorted(counts))]
        if values.get("max_shift") is None and values.get("neighbours") is None:
            values["neighbours"] = "all"
    answers = points(values["answers"], "answers")
    index = PointIndex(answers)
    weights = [0] * len(answers)
    for value, times in counts.items():
        position = index.find(value)
        if position is None:
            must("the column", f"made of the {len(answers)} answers", shown(value))
        weights[position] += times
    values["prior"] = weights
    return values, [
        f"The prior was counted from {sum(counts.values())} values of the column {column}: where these are private, so "
        "is the table. A prior of public or earlier data is none of the budget."
    ]
