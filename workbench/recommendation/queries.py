"""A prior that is counted from a column of data."""

from __future__ import annotations

from workbench.data.input_weights import align_counts, count_column
from workbench.data.points import format_point, read_points
from workbench.exact.objects import Record, Values


def count_prior(given: Values) -> tuple[Record, list[str]]:
    """The same query without `column`: its prior is how often every answer stands in it; and a sentence on what that
    means. Raises InvalidRequest."""
    values = {name: value for name, value in given.items() if name != "column"}
    if given.get("column") is None:
        return values, []
    column = str(given["column"])
    counts = count_column(values.get("prior"), column)
    if values.get("answers") is None:
        values["answers"] = [*map(format_point, sorted(counts))]
        if values.get("max_shift") is None and values.get("neighbours") is None:
            values["neighbours"] = "all"
    values["prior"] = align_counts(counts, read_points(values["answers"], "answers"))
    return values, [
        f"The prior was counted from {sum(counts.values())} values of the column {column}: where these are private, so "
        "is the table. A prior of public or earlier data is none of the budget."
    ]
