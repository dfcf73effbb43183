"""The loss of every output at every input, exactly: of a named loss, a matrix or a user-defined function."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from workbench.data.labels import Axis, LabelledTuple, align_table, column_labels, row_labels
from workbench.data.plain import plain_list
from workbench.data.points import number_table, shown
from workbench.data.tables import read_table
from workbench.errors import must
from workbench.exact.distribution import over_common
from workbench.exact.numbers import exact, rational
from workbench.io.files import names_file
from workbench.models.losses import Loss, loss_named
from workbench.pipeline.outcome import translated_errors
from workbench.privacy.objective import integer_loss
from workbench.questions.finite_query import FiniteQuery
from workbench.questions.places import Plane
from workbench.solvers.arrays import Flags, Vector

_WANTED = "a name, a matrix, a function or a CSV file of a matrix"

Integers: TypeAlias = NDArray[np.object_]
OwnLoss: TypeAlias = "str | tuple[tuple[Fraction, ...], ...] | Callable[[Any, Any], Any]"

PLANE = {"euclidean": "L2", "manhattan": "L1"}  # losses of places beside error-rate and squared: their distances
_RATIONAL = ("squared", "absolute", "error-rate", "pinball", "huber")  # the others have logarithms
_NUMBER = re.compile(r"-?\d+(?:\.\d+)?")
_LOSS_BITS = 1000  # of a loss that is still a float
_LARGE = 2.0**40  # what stands for infinite losses, relative to the largest finite one


@dataclass(frozen=True, eq=False)
class LossTable:
    """ℓ(x, o) = values[x, o] / unit, values >= 0 integers of shape (k, m). name: in reports; named: the loss of that
    name, None for one of one's own; forbidden: where ℓ is infinite, and values large. Shape (k, m)."""

    name: str
    values: Integers
    unit: int
    named: Loss | None = None
    forbidden: Flags | None = None

    @cached_property
    def floats(self) -> Vector:
        """ℓ(x, o), each the nearest float. Shape (k, m)."""
        unit = self.unit
        if max(int(self.values.max(initial=0)), unit) < 1 << 53:  # whole numbers that floats hold: one rounding
            table = self.values.astype(float) / unit
        else:
            table = np.array([[value / unit for value in row] for row in self.values.tolist()], dtype=float)
        return table if self.forbidden is None else np.where(self.forbidden, np.inf, table)

    def less(self, amounts: Integers) -> LossTable:
        """The table with `amounts` (k,), over its unit, subtracted from its rows."""
        if not amounts.any():
            return self
        return LossTable(self.name, self.values - amounts[:, None], self.unit, self.named, self.forbidden)

    def over(self, unit: float) -> LossTable:
        """The table in units of `unit`, a power of two."""
        top, bottom = unit.as_integer_ratio()
        values = self.values if bottom == 1 else self.values * bottom
        return LossTable(self.name, values, self.unit * top, self.named, self.forbidden)


def picklable(loss: OwnLoss, table: LossTable) -> OwnLoss:
    """A loss that can be pickled: its matrix in place of a function."""
    if isinstance(loss, (str, tuple)) or table.forbidden is not None:
        return loss
    return tuple(tuple(Fraction(value, table.unit) for value in row) for row in table.values.tolist())


def read_loss(value: Any, name: str) -> OwnLoss:
    """Reader of an option: the canonical name of a loss, its matrix as a tuple of rows, or a function."""
    if isinstance(value, Loss):
        return value.name
    if isinstance(value, str) and value == "error-rate":
        return "error-rate"
    if names_file(value):
        return _table_of_file(value, name)
    if isinstance(value, str) and value.strip() in PLANE:
        return value.strip()
    if isinstance(value, str):
        with translated_errors():
            return loss_named(value.strip()).name
    if callable(value):
        function: Callable[[Any, Any], Any] = value
        return function
    if isinstance(value, LabelledTuple):
        return value
    try:
        rows = plain_list(value, name, _WANTED, column=True)
        return LabelledTuple.under(value, (_exact_row(row, name) for row in rows))
    except TypeError:
        return must(name, _WANTED, repr(value))


def _exact_row(row: Any, name: str) -> tuple[Fraction, ...]:
    """One row of a matrix. Raises InvalidRequest."""
    return tuple(exact(cell, f"every entry of {name}") for cell in plain_list(row, name, _WANTED, column=True))


def _table_of_file(path: Any, name: str) -> LabelledTuple:
    """All cells of a CSV file: numbers, but texts in the first row and column, which may be labels. Raises
    InvalidRequest."""
    rows = []
    for line, cells in enumerate(read_table(path, name, header=True)):
        rows.append(tuple(_cell(cell, name, may_be_label=not line or not at) for at, cell in enumerate(cells)))
    table = LabelledTuple(rows)
    table.of_file = True
    return table


def _cell(cell: str, name: str, *, may_be_label: bool) -> Fraction | str:
    """A number, or the text of a label. Raises InvalidRequest."""
    if may_be_label and rational(cell) is None:
        return cell
    return exact(cell, f"every entry of {name}")


def _labels_of_file(cells: Sequence[Any], points: Sequence[Any]) -> Sequence[Any] | None:
    """The cells of a header, None where they are titles: texts, of numbers.

    Raises InvalidRequest where the numbers in the titles are the points in another order.
    """
    if not (all(isinstance(cell, str) for cell in cells) and all(isinstance(x, Fraction) for x in points)):
        return cells
    spelled_numbers = [_NUMBER.findall(cell) for cell in cells]
    numbers = [rational(spelled[0]) if len(spelled) == 1 else None for spelled in spelled_numbers]
    if numbers != [*points] and {*numbers} == {*points}:
        must("loss", "labelled by numbers alone, or by titles in their order", ", ".join(cells))
    return None


def _aligned(loss: tuple[Any, ...], question: FiniteQuery) -> list[list[Any]]:
    """Put a matrix into the order of the inputs and outputs that label its rows and columns.

    A file has labels where it has a row or a column more than there are inputs or outputs. Raises InvalidRequest.
    """
    rows = [list(row) for row in loss]
    labels: Sequence[Any] | None = row_labels(loss)
    columns: Sequence[Any] | None = column_labels(loss)
    if isinstance(loss, LabelledTuple) and loss.of_file:
        if len(rows) == question.k + 1:
            columns = rows.pop(0)
        if rows and all(len(row) == question.m + 1 for row in rows):
            labels = [row.pop(0) for row in rows]
            if columns is not None and len(columns) == question.m + 1:
                columns = columns[1:]
        labels = None if labels is None else _labels_of_file(labels, question.inputs)
        columns = None if columns is None else _labels_of_file(columns, question.outputs)
    down = Axis(labels, question.inputs, "inputs")
    return align_table(rows, down, Axis(columns, question.outputs, "outputs"), "loss")


def loss_table(question: FiniteQuery, loss: OwnLoss) -> LossTable:
    """The losses of a question's inputs and outputs. Raises InvalidRequest, naming what is not finite, not >= 0 or of
    the wrong shape."""
    if callable(loss):
        rows = [[called(loss, "an output and an answer", o, x) for o in question.outputs] for x in question.inputs]
        return _integers("own function", rows)
    if isinstance(loss, tuple):
        return _integers("own matrix", number_table(_aligned(loss, question), "loss", (question.k, question.m)))
    if question.planar and (loss in PLANE or loss == "squared"):
        plane = Plane(question.inputs, question.outputs, PLANE.get(loss, "L2"))
        values, unit = (plane.table.astype(object), plane.unit**2) if loss == "squared" else plane.losses()
        return LossTable(loss, values, unit)
    with translated_errors():
        named = loss_named(loss)
    if named.kind == "error-rate":
        table = np.array([[int(x != o) for o in question.outputs] for x in question.inputs], dtype=object)
        return LossTable(named.name, table, 1, named)
    if question.numbers is None:
        more = "error-rate, squared, euclidean, manhattan" if question.planar else "error-rate"
        must("loss", f"{more}, a matrix or a function for inputs that are no numbers", named.name)
    if named.kind in _RATIONAL:
        return _rational(*question.numbers, named)
    entries = signed_table(question, named)
    if entries.forbidden is not None or entries.values.min() < 0:
        must("loss", "one that is finite and >= 0", named.name)
    return entries


def signed_table(question: FiniteQuery, named: Loss) -> LossTable:
    """The losses of numbers by a loss that may be negative, or infinite, which forbids an output."""
    if named.kind == "error-rate" or named.kind in _RATIONAL:
        return loss_table(question, named.name)
    inputs, outputs = question.places
    with translated_errors():
        floats = named.matrix(outputs, inputs)
    forbidden = np.isposinf(floats)
    large = _LARGE * (float(np.abs(floats[~forbidden]).max(initial=0.0)) or 1.0)
    rows = [[*map(Fraction, row)] for row in np.where(forbidden, large, floats).tolist()]
    entries = _integers(named.name, rows)
    return LossTable(named.name, entries.values, entries.unit, named, forbidden if forbidden.any() else None)


def called(loss: Callable[..., Any], what: str, *points: Any) -> Fraction:
    """The loss of points, exact; what: they are. Raises InvalidRequest."""
    words = f"loss({', '.join(str(shown(point)) for point in points)})"
    try:
        value = loss(*map(_plain, points))
    except Exception as error:
        must("loss", f"a function of {what}", f"{type(error).__name__}: {error}")
    number = exact(value, words, "a finite number >= 0")
    return number if number >= 0 else must(words, "a finite number >= 0", value)


def _plain(point: Any) -> Any:
    """A point as a user's function expects it: whole numbers as int, others as float."""
    return tuple(map(_plain, point)) if isinstance(point, tuple) else shown(point)


def _integers(name: str, rows: list[list[Fraction]]) -> LossTable:
    values, unit = over_common([value for row in rows for value in row])
    if unit.bit_length() > 4000:
        must("loss", "numbers of moderately many digits", f"{unit.bit_length()} bits")
    return LossTable(name, np.array(values, dtype=object).reshape(len(rows), -1), unit)


def _rational(inputs: Sequence[Fraction], outputs: Sequence[Fraction], named: Loss) -> LossTable:
    parameter = exact(named.parameter or 0, "the parameter of a loss")
    loss, scale, unit = integer_loss(named.kind, parameter, (*inputs, *outputs))
    x, o = (np.array([int(value * scale) for value in values], dtype=object) for values in (inputs, outputs))
    values = loss(o - x[:, None])
    if values.max() > unit << _LOSS_BITS:
        must("loss", f"at most 2^{_LOSS_BITS} everywhere", "answers and outputs that lie too far apart")
    return LossTable(named.name, values, unit, named)
