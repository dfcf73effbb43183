"""Read a user-defined loss of a channel: a matrix, a file or a function.

    accepted                  read as
    list, array               rows for inputs, columns for outputs, in the order of the question
    table of pandas, ...      the same, aligned by the labels of its rows and columns
    CSV                       the same; one more row or column than the question has are labels
    function                  its value at (output, input) for every output and every input

Every entry is exact: a float means the decimal that Python prints for it. Entries are finite and
>= 0.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any

from workbench.data.labels import (
    Axis,
    LabelledTuple,
    align_table,
    get_column_labels,
    get_row_labels,
)
from workbench.data.plain import read_list
from workbench.data.points import Point, format_point, read_number_matrix
from workbench.data.tables import Cell, read_table
from workbench.errors import must
from workbench.exact.numbers import parse_rational, read_number

# Errors say with these texts which values are accepted.
_LOSS_CONSTRAINT = "a name, a matrix, a function or a CSV file of a matrix"
_ENTRY_CONSTRAINT = "a finite number >= 0"
# A number inside a title, such as 5 in "answer 5".
_NUMBER_PATTERN = re.compile(r"-?\d+(?:\.\d+)?")


def read_loss_file(path: str | Path, name: str) -> LabelledTuple:
    """Read all cells of a CSV file, whose first row and first column may contain labels.

    Args:
        path: Path of the CSV file.
        name: Name of the option in errors.

    Returns:
        Rows of numbers, and of texts in the first row and column, for `align_loss_matrix`.

    Raises:
        InvalidRequest: A cell outside the first row and column is no number.
    """
    rows = []
    for line, cells in enumerate(read_table(path, name, keep_header=True)):
        row = []
        for column, cell in enumerate(cells):
            row.append(_read_cell(cell, name, may_be_label=line == 0 or column == 0))
        rows.append(tuple(row))
    table = LabelledTuple(rows)
    table.of_file = True
    return table


def read_loss_matrix(value: Any, name: str) -> LabelledTuple:
    """Read a matrix from a list, an array or a table, together with its labels.

    Args:
        value: Rows of numbers. A LabelledTuple is returned unchanged.
        name: Name of the option in errors.

    Raises:
        InvalidRequest: The value is no matrix of finite numbers.
    """
    if isinstance(value, LabelledTuple):
        return value
    try:
        rows = read_list(value, name, _LOSS_CONSTRAINT, column=True)
        return LabelledTuple.with_labels_of(value, (_read_row(row, name) for row in rows))
    except TypeError:
        return must(name, _LOSS_CONSTRAINT, repr(value))


def align_loss_matrix(
    matrix: tuple[Any, ...], inputs: Sequence[Point], outputs: Sequence[Point]
) -> list[list[Fraction]]:
    """Put a matrix into the order of the inputs and outputs that label its rows and columns.

    Args:
        matrix: Rows that `read_loss_file` or `read_loss_matrix` returned.
        inputs: Inputs of the question, k of them.
        outputs: Outputs of the question, m of them.

    Returns:
        Numbers >= 0. Shape (k, m).

    Raises:
        InvalidRequest: Labels differ from the inputs or outputs, or the shape is not (k, m).
    """
    rows = [list(row) for row in matrix]
    labels: Sequence[Any] | None = get_row_labels(matrix)
    columns: Sequence[Any] | None = get_column_labels(matrix)
    if isinstance(matrix, LabelledTuple) and matrix.of_file:
        if len(rows) == len(inputs) + 1:
            columns = rows.pop(0)
        if rows and all(len(row) == len(outputs) + 1 for row in rows):
            labels = [row.pop(0) for row in rows]
            if columns is not None and len(columns) == len(outputs) + 1:
                columns = columns[1:]
        if labels is not None:
            labels = _drop_titles(labels, inputs)
        if columns is not None:
            columns = _drop_titles(columns, outputs)
    row_axis = Axis(labels, inputs, "inputs")
    column_axis = Axis(columns, outputs, "outputs")
    table = align_table(rows, row_axis, column_axis, "loss")
    return read_number_matrix(table, "loss", (len(inputs), len(outputs)))


def tabulate_loss(
    function: Callable[[Any, Any], Any], inputs: Sequence[Point], outputs: Sequence[Point]
) -> list[list[Fraction]]:
    """Call a loss function at every (output, input).

    Args:
        function: A function of an output and an input.
        inputs: Inputs of the question, k of them.
        outputs: Outputs of the question, m of them.

    Returns:
        Losses. Shape (k, m).

    Raises:
        InvalidRequest: The function fails, or a value is no finite number >= 0.
    """
    arguments = "an output and an answer"
    return [[call_loss(function, arguments, o, x) for o in outputs] for x in inputs]


def call_loss(function: Callable[..., Any], arguments_name: str, *arguments: Any) -> Fraction:
    """Call a user's loss and read its value exactly.

    Args:
        function: A function of the points that returns a number >= 0.
        arguments_name: Names of the arguments in errors, such as "an output and an input".
        *arguments: Points. Whole numbers are handed over as int, others as float.

    Raises:
        InvalidRequest: The function fails, or its value is no finite number >= 0.
    """
    call = f"loss({', '.join(str(format_point(argument)) for argument in arguments)})"
    try:
        value = function(*map(_plain_point, arguments))
    except Exception as error:
        must("loss", f"a function of {arguments_name}", f"{type(error).__name__}: {error}")
    number = read_number(value, call, _ENTRY_CONSTRAINT)
    if number < 0:
        must(call, _ENTRY_CONSTRAINT, value)
    return number


def _read_row(row: Any, name: str) -> tuple[Fraction, ...]:
    """Read one row of a matrix. Raises InvalidRequest."""
    cells = read_list(row, name, _LOSS_CONSTRAINT, column=True)
    return tuple(read_number(cell, f"every entry of {name}") for cell in cells)


def _read_cell(cell: Cell, name: str, *, may_be_label: bool) -> Fraction | str:
    """Read a number, or the text of a label. Raises InvalidRequest."""
    if may_be_label and parse_rational(cell) is None:
        return cell
    return read_number(cell, f"every entry of {name}")


def _drop_titles(cells: Sequence[Any], points: Sequence[Point]) -> Sequence[Any] | None:
    """Return the labels of a header, or None if the header contains titles.

    Cells are titles if all are texts although the points are numbers, such as "answer 5" for 5.
    Raises InvalidRequest if the numbers in the titles are the points in another order.
    """
    are_texts = all(isinstance(cell, str) for cell in cells)
    if not (are_texts and all(isinstance(point, Fraction) for point in points)):
        return cells
    numbers = []
    for cell in cells:
        matches = _NUMBER_PATTERN.findall(cell)
        numbers.append(parse_rational(matches[0]) if len(matches) == 1 else None)
    if numbers != [*points] and {*numbers} == {*points}:
        constraint = "labelled by numbers alone, or by titles in their order"
        must("loss", constraint, ", ".join(cells))
    return None


def _plain_point(point: Any) -> Any:
    """Return a point as a user's function expects it: whole numbers as int, others as float."""
    if isinstance(point, tuple):
        return tuple(map(_plain_point, point))
    return format_point(point)
