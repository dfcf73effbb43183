"""Make the exact table of the losses of inputs and outputs from a name, matrix or function.

For example, the loss "absolute" of the inputs 0, 1 and the outputs 0, 1/2 has the values
[[0, 1], [2, 1]] with the unit 2: the loss of output 1/2 at input 0 is 1/2.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from workbench.data.losses import (
    align_loss_matrix,
    read_loss_file,
    read_loss_matrix,
    tabulate_loss,
)
from workbench.errors import InvalidRequest, must
from workbench.exact.distribution import to_common_denominator
from workbench.exact.numbers import read_number
from workbench.io.files import names_file
from workbench.models.losses import Loss, parse_loss
from workbench.pipeline.outcome import translate_errors
from workbench.privacy.objective import build_integer_loss
from workbench.questions.finite_query import FiniteQuery
from workbench.questions.places import Plane
from workbench.solvers.arrays import Flags, Vector

Integers: TypeAlias = NDArray[np.object_]
LossInput: TypeAlias = "str | tuple[tuple[Fraction, ...], ...] | Callable[[Any, Any], Any]"

# The losses of places that are distances, besides error-rate and squared, with their norms.
PLANE_NORMS = {"euclidean": "L2", "manhattan": "L1"}
# These losses are rational for rational inputs and outputs. The others have logarithms.
_RATIONAL_KINDS = ("squared", "absolute", "error-rate", "pinball", "huber")
# Losses above 2^1000 are refused, because the programs need losses as doubles.
_MAX_LOSS_BITS = 1000
# An infinite loss has this multiple of the largest finite loss as its entry in the table.
_INFINITE_LOSS_FACTOR = 2.0**40
# A common denominator with more bits is refused, because exact arithmetic would be slow.
_MAX_DENOMINATOR_BITS = 4000


@dataclass(frozen=True, eq=False)
class LossTable:
    """The losses ℓ(x, o) = values[x, o] / unit.

    Attributes:
        name: Name of the loss in reports.
        values: Integers >= 0, of shape (inputs, outputs).
        unit: Common denominator.
        named_loss: The loss of that name. None for a user-defined loss, or one of places.
        forbidden: Whether ℓ is infinite, of the same shape. `values` are large there. None: ℓ is
            finite everywhere.
    """

    name: str
    values: Integers
    unit: int
    named_loss: Loss | None = None
    forbidden: Flags | None = None

    @cached_property
    def floats(self) -> Vector:
        """Return ℓ(x, o) as the nearest floats, of shape (inputs, outputs)."""
        unit = self.unit
        if max(int(self.values.max(initial=0)), unit) < 1 << 53:
            # Doubles hold these integers, so that each quotient is rounded once.
            table = self.values.astype(float) / unit
        else:
            rows = [[value / unit for value in row] for row in self.values.tolist()]
            table = np.array(rows, dtype=float)
        if self.forbidden is None:
            return table
        return np.where(self.forbidden, np.inf, table)

    def subtract_from_rows(self, amounts: Integers) -> LossTable:
        """Return the table minus a number for each row.

        Args:
            amounts: Numerators over the unit of the table, of shape (inputs,).
        """
        if not amounts.any():
            return self
        return replace(self, values=self.values - amounts[:, None])

    def scale_to_unit(self, unit: float) -> LossTable:
        """Return the losses divided by a number.

        Args:
            unit: A power of two.
        """
        numerator, denominator = unit.as_integer_ratio()
        values = self.values
        if denominator != 1:
            values = values * denominator
        return replace(self, values=values, unit=self.unit * numerator)


def make_picklable(loss: LossInput, table: LossTable) -> LossInput:
    """Return a loss that can be pickled: its matrix if it is a function, otherwise the loss itself.

    Args:
        loss: The loss, as `read_loss` returns it.
        table: The table of this loss.
    """
    if isinstance(loss, (str, tuple)) or table.forbidden is not None:
        return loss
    unit = table.unit
    return tuple(tuple(Fraction(value, unit) for value in row) for row in table.values.tolist())


def read_loss(value: Any, name: str) -> LossInput:
    """Read the option of a loss.

    Args:
        value: A name, a matrix, a file of a matrix, or a function of answer and output.
        name: Name of the option.

    Returns:
        The canonical name of a loss, its matrix as a tuple of rows, or a function.

    Raises:
        InvalidRequest: The value is none of these.
    """
    if isinstance(value, Loss):
        return value.name
    if isinstance(value, str) and value == "error-rate":
        return "error-rate"
    if isinstance(value, str) and value.strip() in PLANE_NORMS:
        return value.strip()
    if isinstance(value, (str, Path)):
        return _read_loss_text(value, name)
    if callable(value):
        function: Callable[[Any, Any], Any] = value
        return function
    return read_loss_matrix(value, name)


def _read_loss_text(value: str | Path, name: str) -> LossInput:
    """Read the name of a loss or the name of a file. A name of a loss is never read as a file.

    Raises InvalidRequest.
    """
    try:
        return parse_loss(str(value).strip()).name
    except ValueError as error:
        if names_file(value):
            return read_loss_file(value, name)
        raise InvalidRequest(str(error)) from None


def make_loss_table(question: FiniteQuery, loss: LossInput) -> LossTable:
    """Return the losses of the inputs and outputs of a question.

    Args:
        question: The question, such as a `ModuloNoise` or a `FiniteQuery`.
        loss: The loss, as `read_loss` returns it.

    Raises:
        InvalidRequest: A loss is not finite or not >= 0, or a matrix has the wrong shape.
    """
    if callable(loss):
        rows = tabulate_loss(loss, question.inputs, question.outputs)
        return _make_integer_table("own function", rows)
    if isinstance(loss, tuple):
        rows = align_loss_matrix(loss, question.inputs, question.outputs)
        return _make_integer_table("own matrix", rows)
    if question.is_planar and (loss in PLANE_NORMS or loss == "squared"):
        plane = Plane(question.inputs, question.outputs, PLANE_NORMS.get(loss, "L2"))
        if loss == "squared":
            return LossTable(loss, plane.table.astype(object), plane.unit**2)
        values, unit = plane.losses()
        return LossTable(loss, values, unit)
    try:
        named_loss = parse_loss(loss)
    except ValueError as error:
        raise InvalidRequest(str(error)) from None
    if named_loss.kind == "error-rate":
        errors = [[int(x != o) for o in question.outputs] for x in question.inputs]
        return LossTable(
            named_loss.name, np.array(errors, dtype=object), unit=1, named_loss=named_loss
        )
    if question.numbers is None:
        names = "error-rate"
        if question.is_planar:
            names = "error-rate, squared, euclidean, manhattan"
        rule = f"{names}, a matrix or a function for answers that are not numbers"
        must("loss", rule, named_loss.name)
    if named_loss.kind in _RATIONAL_KINDS:
        return _make_rational_table(*question.numbers, named_loss)
    table = make_signed_table(question, named_loss)
    if table.forbidden is not None or table.values.min() < 0:
        must("loss", "one that is finite and >= 0", named_loss.name)
    return table


def make_signed_table(question: FiniteQuery, loss: Loss) -> LossTable:
    """Return the table of a named loss, which may be negative or infinite.

    Args:
        question: A question whose inputs and outputs are numbers.
        loss: The loss. An output with an infinite loss is forbidden at this input.
    """
    if loss.kind == "error-rate" or loss.kind in _RATIONAL_KINDS:
        return make_loss_table(question, loss.name)
    inputs, outputs = question.coordinates
    with translate_errors():
        floats = loss.matrix(outputs, inputs)
    forbidden = np.isposinf(floats)
    largest_finite = float(np.abs(floats[~forbidden]).max(initial=0.0)) or 1.0
    finite_floats = np.where(forbidden, _INFINITE_LOSS_FACTOR * largest_finite, floats)
    # The logarithms of these losses are rounded to doubles, which are then exact entries.
    rows = [[*map(Fraction, row)] for row in finite_floats.tolist()]
    table = _make_integer_table(loss.name, rows)
    return replace(table, named_loss=loss, forbidden=forbidden if forbidden.any() else None)


def _make_integer_table(name: str, rows: list[list[Fraction]]) -> LossTable:
    """Make the table of rational losses, given as one row for each input. Raises InvalidRequest."""
    values, unit = to_common_denominator([value for row in rows for value in row])
    if unit.bit_length() > _MAX_DENOMINATOR_BITS:
        rule = f"numbers whose common denominator has at most {_MAX_DENOMINATOR_BITS} bits"
        must("loss", rule, f"{unit.bit_length()} bits")
    return LossTable(name, np.array(values, dtype=object).reshape(len(rows), -1), unit)


def _make_rational_table(
    inputs: Sequence[Fraction], outputs: Sequence[Fraction], loss: Loss
) -> LossTable:
    """Make the table of a rational loss of numbers. Raises InvalidRequest."""
    parameter = read_number(loss.parameter or 0, "the parameter of a loss")
    compute_loss, scale, unit = build_integer_loss(loss.kind, parameter, (*inputs, *outputs))
    x = np.array([int(value * scale) for value in inputs], dtype=object)
    o = np.array([int(value * scale) for value in outputs], dtype=object)
    values = compute_loss(o - x[:, None])
    if values.max() > unit << _MAX_LOSS_BITS:
        got = "answers and outputs that lie too far apart"
        must("loss", f"at most 2^{_MAX_LOSS_BITS} everywhere", got)
    return LossTable(loss.name, values, unit, named_loss=loss)
