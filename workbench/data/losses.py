"""Read the loss of a channel where it is no name: a matrix, a file or a function.

    accepted                  read as
    list, array               rows for inputs, columns for outputs, in the order of the question
    table of pandas, ...      the same, aligned by the labels of its rows and columns
    CSV                       the same; a row or a column more than the question are labels
    function                  its value at (output, input) for every output and every input

Every entry is exact: a float means the decimal that it shows. Entries are finite and >= 0.
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

_ACCEPTED = "a name, a matrix, a function or a CSV file of a matrix"
_EACH = "a finite number >= 0"
_NUMBER = re.compile(r"-?\d+(?:\.\d+)?")


def read_loss_file(path: str | Path, name: str) -> LabelledTuple:
    """Read all cells of a CSV file; cells of its first row and column may be labels.

    Args:
        path: CSV file.
        name: Name of the option in errors.

    Raises:
        InvalidRequest: Another cell is no number.
    """
    rows = []
    for line, cells in enumerate(read_table(path, name, header=True)):
        row = []
        for column, cell in enumerate(cells):
            row.append(_read_cell(cell, name, may_be_label=line == 0 or column == 0))
        rows.append(tuple(row))
    table = LabelledTuple(rows)
    table.of_file = True
    return table


def read_loss_matrix(value: Any, name: str) -> LabelledTuple:
    """Read a matrix from a list, an array or a table, with the labels that it has.

    Args:
        value: Rows of numbers. What an earlier call returned is returned as it is.
        name: Name of the option in errors.

    Raises:
        InvalidRequest: It is no matrix of finite numbers.
    """
    if isinstance(value, LabelledTuple):
        return value
    try:
        rows = read_list(value, name, _ACCEPTED, column=True)
        return LabelledTuple.with_labels_of(value, (_read_row(row, name) for row in rows))
    except TypeError:
        return must(name, _ACCEPTED, repr(value))


def align_loss_matrix(
    matrix: tuple[Any, ...], inputs: Sequence[Point], outputs: Sequence[Point]
) -> list[list[Fraction]]:
    """Put a matrix into the order of the inputs and outputs that label its rows and columns.

    Args:
        matrix: What `read_loss_file` or `read_loss_matrix` returned.
        inputs: Inputs of the question, k of them.
        outputs: Outputs of the question, m of them.

    Returns:
        Numbers >= 0. Shape (k, m).

    Raises:
        InvalidRequest: Labels differ from the inputs or outputs, or the shape is another.
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
        labels = None if labels is None else _drop_titles(labels, inputs)
        columns = None if columns is None else _drop_titles(columns, outputs)
    down = Axis(labels, inputs, "inputs")
    across = Axis(columns, outputs, "outputs")
    table = align_table(rows, down, across, "loss")
    return read_number_matrix(table, "loss", (len(inputs), len(outputs)))


def tabulate_loss(
    function: Callable[[Any, Any], Any], inputs: Sequence[Point], outputs: Sequence[Point]
) -> list[list[Fraction]]:
    """Call a function at every (output, input). Returns shape (k, m). Raises InvalidRequest."""
    wanted = "an output and an answer"
    return [[call_loss(function, wanted, o, x) for o in outputs] for x in inputs]


def call_loss(function: Callable[..., Any], arguments_name: str, *arguments: Any) -> Fraction:
    """Call a user's loss and read its value exactly.

    Args:
        function: A function of the points.
        what: What the arguments are, in errors.
        *arguments: Points. Whole numbers are handed over as int, others as float.

    Raises:
        InvalidRequest: The function fails, or its value is no finite number >= 0.
    """
    call = f"loss({', '.join(str(format_point(argument)) for argument in arguments)})"
    try:
        value = function(*map(_plain_point, arguments))
    except Exception as error:
        must("loss", f"a function of {arguments_name}", f"{type(error).__name__}: {error}")
    number = read_number(value, call, _EACH)
    return number if number >= 0 else must(call, _EACH, value)


def _read_row(row: Any, name: str) -> tuple[Fraction, ...]:
    """Read one row of a matrix."""
    cells = read_list(row, name, _ACCEPTED, column=True)
    return tuple(read_number(cell, f"every entry of {name}") for cell in cells)


def _read_cell(cell: Cell, name: str, *, may_be_label: bool) -> Fraction | str:
    """Read a number, or the text of a label."""
    if may_be_label and parse_rational(cell) is None:
        return cell
    return read_number(cell, f"every entry of {name}")


def _drop_titles(cells: Sequence[Any], points: Sequence[Point]) -> Sequence[Any] | None:
    """Return the labels of a header; None where they are titles: texts, of points that are numbers.

    Raises InvalidRequest where the numbers in the titles are the points in another order.
    """
    are_texts = all(isinstance(cell, str) for cell in cells)
    if not (are_texts and all(isinstance(point, Fraction) for point in points)):
        return cells
    spelled_numbers = [_NUMBER.findall(cell) for cell in cells]
    numbers = [
        parse_rational(spelled[0]) if len(spelled) == 1 else None for spelled in spelled_numbers
    ]
    if numbers != [*points] and {*numbers} == {*points}:
        wanted = "labelled by numbers alone, or by titles in their order"
        must("loss", wanted, ", ".join(cells))
    return None


def _plain_point(point: Any) -> Any:
    """Return a point as a user's function expects it: whole numbers as int, others as float."""
    return tuple(map(_plain_point, point)) if isinstance(point, tuple) else format_point(point)
