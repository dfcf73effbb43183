"""Read a user-defined law: probabilities of noise values, or a matrix of probabilities.

    accepted                                  read as
    {noise value: probability}, Series        masses of integer noise values
    CSV of two columns                        the same: noise value and probability
    rows of numbers, array, table, CSV        a matrix: rows for inputs, columns for outputs
    CSV with a header such as "input,0,1"     a matrix: its header names the outputs, and its first
                                              column names the inputs

A CSV file of two columns is a matrix if every row adds up to 1, unless its header begins with
"noise". Probabilities are exact and >= 0. Each law adds up to 1 within 1e-6.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from workbench.data.labels import Axis, align_table, get_column_labels, get_row_labels, is_frame
from workbench.data.number_tables import MAX_SUM_ERROR
from workbench.data.plain import is_integer, read_list
from workbench.errors import InvalidRequest, must
from workbench.exact.numbers import ZERO, read_number

Masses = dict[int, Fraction]  # Probabilities by noise value.

_MAX_NOISE = 100_000  # Noise values whose absolute value is larger are refused.


@dataclass(frozen=True)
class LawTable:
    """A matrix of probabilities, perhaps with labels.

    Attributes:
        rows: Probability of each output for each input. Shape (k, m). Every row adds up to 1.
        inputs: Labels of the rows. None without labels.
        outputs: Labels of the columns. None without labels.
    """

    rows: list[list[Fraction]]
    inputs: list[Any] | None = None
    outputs: list[Any] | None = None

    def align(
        self, inputs: Sequence[Any], outputs: Sequence[Any], inputs_name: str
    ) -> list[list[Fraction]]:
        """Put the rows into the order of the inputs, and their entries into that of the outputs.

        Args:
            inputs: Inputs of the question.
            outputs: Outputs of the question.
            inputs_name: Name of the inputs in errors.

        Raises:
            InvalidRequest: The labels are not the inputs and outputs of the question.
        """
        row_axis = Axis(self.inputs, inputs, inputs_name)
        column_axis = Axis(self.outputs, outputs, "outputs")
        return align_table(self.rows, row_axis, column_axis, "baseline")


def read_law(value: Any, name: str, constraint: str) -> Masses | LawTable:
    """Read a law from a mapping or a container.

    Args:
        value: A mapping or a container of the module header.
        name: Name of the law in errors.
        constraint: What the law must be, in errors.

    Returns:
        Probabilities by noise value for a mapping or Series. Otherwise a matrix.

    Raises:
        InvalidRequest: The value is no law, or its probabilities do not add up to 1.
    """
    if hasattr(value, "items") and hasattr(value, "index") and not is_frame(value):
        value = dict(value.items())  # The noise values are the index of a Series.
    if isinstance(value, Mapping):
        return _read_masses(value, name)
    try:
        entries = read_list(value, name, constraint, column=True)
        lists = [read_list(row, name, constraint) for row in entries]
        rows = [[read_number(cell, "an entry of the matrix") for cell in row] for row in lists]
    except TypeError:
        rows = []
    if not rows or not rows[0] or len({len(row) for row in rows}) != 1:
        must(name, constraint, repr(value)[:80])
    checked_rows = [_check_probabilities(row, name) for row in rows]
    return LawTable(checked_rows, get_row_labels(value), get_column_labels(value))


def read_law_rows(
    rows: Sequence[Sequence[str]],
    file: str,
    name: str,
    constraint: str,
) -> Masses | LawTable:
    """Read a law from the cells of a CSV file.

    Args:
        rows: Cells of all lines, including the header if there is one.
        file: Name of the file in errors.
        name: Name of the law in errors.
        constraint: What the law must be, in errors.

    Returns:
        Probabilities by noise value, or a matrix, as the module header says.

    Raises:
        InvalidRequest: The file has no form of the module header.
    """
    body = [*rows]
    header: Sequence[str] = []
    if body and not _is_numeric(body[0]):
        header = body.pop(0)
    if not body:
        must(name, f"{file} with numbers below its header", "none")
    cells = [[read_number(cell, f"a cell of {file}") for cell in row] for row in body]
    says_noise = header[:1] == ["noise"]
    if len(cells) > 1 and all(sum(row) == 1 for row in cells) and not says_noise:
        return read_law(cells, name, constraint)
    if len(header) > 2 and _is_numeric(header[1:]) and {*map(len, body)} == {len(header)}:
        outputs = [read_number(cell, f"an output of {file}") for cell in header[1:]]
        inputs = [row[0] for row in cells]
        return LawTable([_check_probabilities(row[1:], name) for row in cells], inputs, outputs)
    if not all(len(row) == 2 and row[0].denominator == 1 for row in cells):
        return read_law(cells, name, constraint)
    masses = {int(noise): mass for noise, mass in cells}
    if len(masses) < len(cells):
        must(name, "a PMF with every noise value once", file)
    return read_law(masses, name, constraint)


def _read_masses(masses: Mapping[Any, Any], name: str) -> Masses:
    """Read a mapping from noise values to probabilities. Raises InvalidRequest."""
    if not masses or not all(
        is_integer(noise) and abs(int(noise)) <= _MAX_NOISE for noise in masses
    ):
        constraint = f"a PMF of integer noise values, at most {_MAX_NOISE} in size"
        must(name, constraint, repr(masses)[:80])
    probabilities = [read_number(mass, "a probability of the PMF") for mass in masses.values()]
    return dict(zip(map(int, masses), _check_probabilities(probabilities, name), strict=True))


def _is_numeric(row: Sequence[str]) -> bool:
    """Return whether every cell of a row is a number."""
    try:
        return bool([read_number(cell, "a cell") for cell in row])
    except InvalidRequest:
        return False


def _check_probabilities(masses: list[Fraction], name: str) -> list[Fraction]:
    """Return the probabilities. Raises InvalidRequest unless they are >= 0 and add up to 1."""
    total = sum(masses, ZERO)
    if min(masses) < 0 or abs(total - 1) > MAX_SUM_ERROR:
        must(name, "made of probabilities >= 0 that add up to 1", f"a total of {float(total):.9g}")
    return masses
