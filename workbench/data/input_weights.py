"""Read how often each input of a mechanism occurs. `audit` weighs the expected losses with it.

    accepted                          read as
    mapping {input: weight}           weights >= 0, not all 0
    Series of `value_counts()`        the same: its index contains the inputs
    list, array, Series, one column   the weight of a number is its count: [0, 3, 3] is {0: 1, 3: 2}
    array or table of columns         the inputs are the rows, and their weights are counts
    CSV of one column                 the weight of a number is its count

Data are matched to the inputs of the mechanism by value, within the rounding of floats
(`workbench.data.tolerance`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np

from workbench.data.csv_column import CsvColumn, read_column
from workbench.data.labels import get_row_labels
from workbench.data.plain import read_floats
from workbench.data.points import Point, format_point, read_point
from workbench.data.tolerance import PointIndex
from workbench.errors import must
from workbench.exact.numbers import ZERO, read_positive
from workbench.io.files import check_may_read

Weights = dict[Any, Fraction]  # Weights by input. The inputs are objects as the user gave them.


def read_data_file(data: Any) -> Any:
    """Read the only column of a CSV file. Other values are returned unchanged.

    Args:
        data: The name of a CSV file, or any data.

    Raises:
        InvalidRequest: The file cannot be read, or has several columns.
        CorruptFile: The file is too large, or no CSV.
    """
    is_file = isinstance(data, Path) or (isinstance(data, str) and data.lower().endswith(".csv"))
    if is_file:
        return read_column(Path(data))
    return data


def read_input_weights(data: Any) -> tuple[Weights, str]:
    """Read the weight of every input, and describe the data.

    Args:
        data: A form of the module header.

    Returns:
        Weights by input, and a description such as "a column of 4 inputs".

    Raises:
        InvalidRequest: The data have no form of the module header.
    """
    if isinstance(data, Mapping):
        weights = {x: read_positive(weight, "a weight", or_zero=True) for x, weight in data.items()}
        if not any(weights.values()):
            must("data", "at least one input of positive weight", "none")
        return weights, f"weights of {len(weights)} inputs"
    if isinstance(data, str):
        must("data", "a column of inputs, or their weights", repr(data))
    labels = get_row_labels(data)
    if labels is not None and getattr(data, "name", None) in ("count", "proportion"):
        return read_input_weights(dict(zip(labels, data, strict=True)))
    column = read_floats(data, "data", "a column of numbers", column=True)
    if not column.size or column.ndim > 2 or not np.isfinite(column).all():
        must("data", "a column of finite numbers, at least one", f"shape {column.shape}")
    if column.ndim:
        rows = column.reshape(len(column), -1).tolist()
    else:
        rows = [[float(column)]]
    counts = Counter(row[0] if len(row) == 1 else tuple(row) for row in rows)
    weights = {x: Fraction(count) for x, count in counts.items()}
    return weights, f"a column of {len(rows)} inputs"


def align_input_weights(
    weights: Weights,
    inputs: Sequence[Any],
    shown_inputs: Sequence[Any],
) -> list[Fraction]:
    """Put weights into the order of the inputs. Inputs without a weight have the weight 0.

    Args:
        weights: Weight of each input that occurs.
        inputs: Inputs of the mechanism. Length k.
        shown_inputs: The same inputs as errors show them. Length k.

    Raises:
        InvalidRequest: A weight belongs to no input of the mechanism.
    """
    index = PointIndex([read_point(x, "an input") for x in inputs])
    ordered_weights = [ZERO] * len(inputs)
    for x, weight in weights.items():
        position = index.find(read_point(x, "an entry of the data"), x)
        if position is None:
            ends = f"from {shown_inputs[0]} to {shown_inputs[-1]}"
            must("data", f"inputs of the mechanism, {ends}", x)
        ordered_weights[position] += weight
    return ordered_weights


def count_column(path: Any, column: str, *, header: bool | None = None) -> dict[Fraction, int]:
    """Count how often every number occurs in a column of a CSV file.

    Args:
        path: Path of the file.
        column: Name or number of the column.
        header: Whether the first row has the names of the columns, which an error may then show.
            None: decided from the file.

    Raises:
        InvalidRequest: The file or the column cannot be read.
        CorruptFile: The file is too large, or no CSV.
    """
    if isinstance(path, (str, Path)):
        check_may_read(path, "prior")
    if not isinstance(path, (str, Path)) or not Path(path).is_file():
        must("prior", "a CSV file that has the column", repr(path))
    return Counter(map(Fraction, CsvColumn.read(path, column, header=header).exact_numbers()))


def align_counts(counts: Mapping[Fraction, int], answers: Sequence[Point]) -> list[int]:
    """Put the counts of `count_column` into the order of the answers.

    Args:
        counts: How often each number occurs.
        answers: Answers of the question. Length k. An answer that does not occur has the count 0.

    Raises:
        InvalidRequest: A number of the data is not among the answers.
    """
    index = PointIndex(answers)
    ordered_counts = [0] * len(answers)
    for value, count in counts.items():
        position = index.find(value)
        if position is None:
            must("the column", f"made of the {len(answers)} answers", format_point(value))
        ordered_counts[position] += count
    return ordered_counts
