"""A prior that is counted from a column of data."""

from __future__ import annotations

from collections import Counter
from fractions import Fraction
from pathlib import Path

from workbench.errors import must
from workbench.exact.objects import Record, Values
from workbench.io.csv_column import read_column
from workbench.mechanisms.points import points, shown


def counted(given: Values) -> tuple[Record, list[str]]:
    """The same query without `column`: its prior is how often every answer stands in it; and a sentence on what that
    means. Raises InvalidRequest."""
    values = {name: value for name, value in given.items() if name != "column"}
    if given.get("column") is None:
        return values, []
    prior, column = values.get("prior"), str(given["column"])
    if not isinstance(prior, (str, Path)) or not Path(prior).is_file():
        must("prior", "a CSV file that has the column", repr(prior))
    counts = Counter(Fraction(value) for value in read_column(Path(prior), column).tolist())
    if values.get("answers") is None:
        values["answers"] = [*map(shown, sorted(counts))]
        if values.get("max_shift") is None and values.get("neighbours") is None:
            values["neighbours"] = "all"
    answers = points(values["answers"], "answers")
    if missing := next((x for x in counts if x not in answers), None):
        must("the column", f"made of the {len(answers)} answers", shown(missing))
    values["prior"] = [counts[answer] for answer in answers]  # type: ignore[index]
    return values, [
        f"The prior was counted from {sum(counts.values())} values of the column {column}: where these are private, so "
        "is the table. A prior of public or earlier data is none of the budget."
    ]
