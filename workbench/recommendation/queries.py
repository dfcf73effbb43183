"""Count the prior of a recommendation from a column of a CSV file."""

from __future__ import annotations

from workbench.data.input_weights import align_counts, count_column
from workbench.data.points import format_point, read_points
from workbench.exact.objects import Record, Values


def count_prior(options: Values) -> tuple[Record, list[str]]:
    """Replace the option `column` by the prior that is counted from it.

    Args:
        options: option -> value of a query. `prior` names the file, and `column` its column.

    Returns:
        (options, notes): the options without `column`, and a note on the privacy of the data. If
        `column` is not given, the options are unchanged and there is no note. If no answers are
        given, the answers are the values of the column, and, unless neighbours are given, every
        two are neighbours.

    Raises:
        InvalidRequest: the column cannot be counted.
    """
    values = {name: value for name, value in options.items() if name != "column"}
    if options.get("column") is None:
        return values, []
    column = str(options["column"])
    counts = count_column(values.get("prior"), column)
    if values.get("answers") is None:
        values["answers"] = [*map(format_point, sorted(counts))]
        if values.get("max_shift") is None and values.get("neighbours") is None:
            values["neighbours"] = "all"
    values["prior"] = align_counts(counts, read_points(values["answers"], "answers"))
    note = (
        f"The prior was counted from {sum(counts.values())} values of the column {column}. If "
        "these values are private, the table is private too. A prior from public or earlier data "
        "does not use the budget."
    )
    return values, [note]
