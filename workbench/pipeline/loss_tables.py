"""The loss of every output at every input, exactly: of a named loss, a matrix or a user-defined function."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
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

PLANE_NORMS = {
    "euclidean": "L2",
    "manhattan": "L1",
}  # losses of places beside error-rate and squared: their distances
_RATIONAL = ("squared", "absolute", "error-rate", "pinball", "huber")  # the others have logarithms
_LOSS_BITS = 1000  # of a loss that is still a float
_LARGE = 2.0**40  # what stands for infinite losses, relative to the largest finite one


@dataclass(frozen=True, eq=False)
class LossTable:
    """ℓ(x, o) = values[x, o] / unit, values >= 0 integers of shape (k, m). name: in reports; named: the loss of that
    name, None for one of one's own; forbidden: where ℓ is infinite, and values large. Shape (k, m)."""

    name: str
    values: Integers
    unit: int
    named_loss: Loss | None = None
    forbidden: Flags | None = None

    @cached_property
    def floats(self) -> Vector:
        """ℓ(x, o), each the nearest float. Shape (k, m)."""
        unit = self.unit
        if (
            max(int(self.values.max(initial=0)), unit) < 1 << 53
        ):  # whole numbers that floats hold: one rounding
            table = self.values.astype(float) / unit
        else:
            table = np.array(
                [[value / unit for value in row] for row in self.values.tolist()], dtype=float
            )
        return table if self.forbidden is None else np.where(self.forbidden, np.inf, table)

    def subtract_from_rows(self, amounts: Integers) -> LossTable:
        """The table with `amounts` (k,), over its unit, subtracted from its rows."""
        if not amounts.any():
            return self
        return LossTable(
            self.name, self.values - amounts[:, None], self.unit, self.named_loss, self.forbidden
        )

    def scale_to_unit(self, unit: float) -> LossTable:
        """The table in units of `unit`, a power of two."""
        top, bottom = unit.as_integer_ratio()
        values = self.values if bottom == 1 else self.values * bottom
        return LossTable(self.name, values, self.unit * top, self.named_loss, self.forbidden)


def make_picklable(loss: LossInput, table: LossTable) -> LossInput:
    """A loss that can be pickled: its matrix in place of a function."""
    if isinstance(loss, (str, tuple)) or table.forbidden is not None:
        return loss
    return tuple(
        tuple(Fraction(value, table.unit) for value in row) for row in table.values.tolist()
    )


def read_loss(value: Any, name: str) -> LossInput:
    """Reader of an option: the canonical name of a loss, its matrix as a tuple of rows, or a function."""
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
    """Read the name of a loss or the name of a file; a known name of a loss is never that of a file.

    Raises InvalidRequest.
    """
    try:
        return parse_loss(str(value).strip()).name
    except ValueError as error:
        if names_file(value):
            return read_loss_file(value, name)
        raise InvalidRequest(str(error)) from None


def make_loss_table(question: FiniteQuery, loss: LossInput) -> LossTable:
    """The losses of a question's inputs and outputs. Raises InvalidRequest, naming what is not finite, not >= 0 or of
    the wrong shape."""
    if callable(loss):
        return _make_integer_table(
            "own function", tabulate_loss(loss, question.inputs, question.outputs)
        )
    if isinstance(loss, tuple):
        return _make_integer_table(
            "own matrix", align_loss_matrix(loss, question.inputs, question.outputs)
        )
    if question.is_planar and (loss in PLANE_NORMS or loss == "squared"):
        plane = Plane(question.inputs, question.outputs, PLANE_NORMS.get(loss, "L2"))
        values, unit = (
            (plane.table.astype(object), plane.unit**2) if loss == "squared" else plane.losses()
        )
        return LossTable(loss, values, unit)
    try:
        named = parse_loss(loss)
    except ValueError as error:
        raise InvalidRequest(str(error)) from None
    if named.kind == "error-rate":
        table = np.array(
            [[int(x != o) for o in question.outputs] for x in question.inputs], dtype=object
        )
        return LossTable(named.name, table, 1, named)
    if question.numbers is None:
        more = "error-rate, squared, euclidean, manhattan" if question.is_planar else "error-rate"
        must("loss", f"{more}, a matrix or a function for inputs that are no numbers", named.name)
    if named.kind in _RATIONAL:
        return _make_rational_table(*question.numbers, named)
    entries = make_signed_table(question, named)
    if entries.forbidden is not None or entries.values.min() < 0:
        must("loss", "one that is finite and >= 0", named.name)
    return entries


def make_signed_table(question: FiniteQuery, named: Loss) -> LossTable:
    """The losses of numbers by a loss that may be negative, or infinite, which forbids an output."""
    if named.kind == "error-rate" or named.kind in _RATIONAL:
        return make_loss_table(question, named.name)
    inputs, outputs = question.coordinates
    with translate_errors():
        floats = named.matrix(outputs, inputs)
    forbidden = np.isposinf(floats)
    large = _LARGE * (float(np.abs(floats[~forbidden]).max(initial=0.0)) or 1.0)
    rows = [[*map(Fraction, row)] for row in np.where(forbidden, large, floats).tolist()]
    entries = _make_integer_table(named.name, rows)
    return LossTable(
        named.name, entries.values, entries.unit, named, forbidden if forbidden.any() else None
    )


def _make_integer_table(name: str, rows: list[list[Fraction]]) -> LossTable:
    values, unit = to_common_denominator([value for row in rows for value in row])
    if unit.bit_length() > 4000:
        must("loss", "numbers of moderately many digits", f"{unit.bit_length()} bits")
    return LossTable(name, np.array(values, dtype=object).reshape(len(rows), -1), unit)


def _make_rational_table(
    inputs: Sequence[Fraction], outputs: Sequence[Fraction], named: Loss
) -> LossTable:
    parameter = read_number(named.parameter or 0, "the parameter of a loss")
    loss, scale, unit = build_integer_loss(named.kind, parameter, (*inputs, *outputs))
    x, o = (
        np.array([int(value * scale) for value in values], dtype=object)
        for values in (inputs, outputs)
    )
    values = loss(o - x[:, None])
    if values.max() > unit << _LOSS_BITS:
        must(
            "loss",
            f"at most 2^{_LOSS_BITS} everywhere",
            "answers and outputs that lie too far apart",
        )
    return LossTable(named.name, values, unit, named)
