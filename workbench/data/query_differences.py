"""List the differences of a query's answers that one person can cause, from a table of values.

This is the set of differences of equation (6) of Kadam et al. 2024: μ = Q(X) - Q(X'), where X and
X' are datasets that differ in the value of one person. The table lists the values that a person may
have, in one column. Every dataset of such values is considered, so the differences do not depend on
the values of real people. The table must therefore be public, or made up.

The query is the sum of the values, counted in steps:

    sum(over=load)            Q = Σ x
    sum(over=load, step=0.5)  Q = floor(Σ x / 0.5), the number of whole steps in the sum

If one value changes from x to x', the sum changes by d = x - x'. The number of whole steps then
changes by floor(d / step) or ceil(d / step), depending on the other values. Both are listed.

>>> sorted(_list_step_differences([Fraction(0), Fraction(1), Fraction(5)], Fraction(2)))
[1, 2, 3]
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable
from fractions import Fraction
from pathlib import Path
from typing import Any

from workbench.data.input_weights import count_column
from workbench.errors import InvalidRequest, must
from workbench.exact.distribution import to_common_denominator
from workbench.exact.numbers import ONE, read_positive
from workbench.io.files import check_may_read

# sum(over=COLUMN) or sum(over=COLUMN, step=NUMBER), with spaces anywhere.
_QUERY_TEXT = re.compile(
    r"\s*sum\s*\(\s*over\s*=\s*([^,)]+?)\s*(?:,\s*step\s*=\s*([^,)]+?)\s*)?\)\s*"
)
_MAX_VALUES = 3000  # A table with more different values is refused: its pairs take seconds.


def list_query_differences(path: Any, query: Any) -> list[int]:
    """List the positive differences of the answers to a query that one person can cause.

    Args:
        path: Path of a CSV file. One column lists the values that a person may have.
        query: The query, as in the module header.

    Returns:
        Differences > 0 in increasing order. Their negatives occur as well.

    Raises:
        InvalidRequest: The query has another form, the column cannot be read or has a single
            value, or differences are no integers because the query has no step.
        CorruptFile: The file is too large, or no CSV.
    """
    match = _QUERY_TEXT.fullmatch(query) if isinstance(query, str) else None
    if match is None:
        must("query", 'a text such as "sum(over=load)" or "sum(over=load, step=0.5)"', repr(query))
    if not isinstance(path, (str, Path)):
        must("data", "the name of a CSV file", repr(path))
    check_may_read(path, "data")
    if not Path(path).is_file():
        kind = "a folder" if Path(path).is_dir() else "no file"
        must("data", "a CSV file with the values that a person may have", f"{path}, {kind}")
    column, step_text = match.groups()
    step = ONE if step_text is None else read_positive(step_text, "query's step")
    # The table is public. A column that is given by its name has a header.
    header = None if column.isdecimal() else True
    values = sorted(count_column(path, column, header=header))
    if not 2 <= len(values) <= _MAX_VALUES:
        must("data", f"2 to {_MAX_VALUES} different values in the column {column}", len(values))
    if step_text is None and any(value.denominator != 1 for value in values):
        fractional = next(value for value in values if value.denominator != 1)
        raise InvalidRequest(
            f"data must be integers where the query has no step. Got {float(fractional):g} in the "
            f'column {column}. State a step, for example "sum(over={column}, step=0.5)".'
        )
    return sorted(_list_step_differences(values, step))


def _list_step_differences(values: Iterable[Fraction], step: Fraction) -> set[int]:
    """List floor(d / step) and ceil(d / step) for all differences d >= 0 of values, without 0."""
    # The denominators are made equal first, because a Fraction of each pair takes seconds.
    integers, scale = to_common_denominator([value / step for value in values])
    differences = set()
    for a, b in itertools.combinations(integers, 2):
        floor, remainder = divmod(abs(a - b), scale)
        differences.add(floor)
        if remainder:
            differences.add(floor + 1)
    return differences - {0}
