"""The exact number that a request means, whichever way it is spelled."""

from __future__ import annotations

from decimal import Decimal, InvalidOperation
from fractions import Fraction
from typing import Any, TypeAlias

from workbench.errors import InvalidRequest

__all__ = ["Real", "exact", "positive", "probability"]

Real: TypeAlias = "str | int | float | Decimal | Fraction"

_MAX_EXPONENT = 5000  # decimal digits of a request, before or after the point; more is a mistake or an attack


def exact(value: Any, name: str, constraint: str = "a finite number") -> Fraction:
    """The rational number a request means.

    An int, Decimal or Fraction is itself; a string is the decimal or the ratio it spells ("0.1", "1e-6", "1/3"); a
    float (or NumPy float) is the decimal its repr shows, so 0.1 means 1/10 and not 3602879701896397/2^55.

    value: str | int | float | Decimal | Fraction or a NumPy scalar; name: what the error message calls it.
    Raises InvalidRequest for NaN, infinities, booleans, other types, and beyond 5000 decimal digits.
    """
    number = _read(value)
    if number is None:
        InvalidRequest.must(name, constraint, value)
    return number


def positive(value: Any, name: str, *, or_zero: bool = False) -> Fraction:
    """`exact(value)`, required > 0 (or >= 0): the budgets ε. Raises InvalidRequest."""
    constraint = "a finite number >= 0" if or_zero else "a finite number > 0"
    number = exact(value, name, constraint)
    if number < 0 or (number == 0 and not or_zero):
        InvalidRequest.must(name, constraint, value)
    return number


def probability(value: Any, name: str) -> Fraction:
    """`exact(value)`, required in [0, 1]: the budgets δ. Raises InvalidRequest."""
    constraint = "a number in [0, 1]"
    number = exact(value, name, constraint)
    if not 0 <= number <= 1:
        InvalidRequest.must(name, constraint, value)
    return number


def _read(value: Any) -> Fraction | None:
    if type(value) is Fraction:
        return value
    if type(value).__module__ == "numpy" and hasattr(value, "item") and getattr(value, "ndim", None) == 0:
        # float32(0.1) means 0.1 as well: its own shortest decimal, not that of its widening to a double
        if value.dtype.kind not in "iuf":  # a time span would become a count of its unit
            return None
        value = str(value) if value.dtype.kind == "f" else value.item()
    if isinstance(value, bool):
        return None
    if isinstance(value, Fraction):
        return value
    if isinstance(value, int):
        return Fraction(value)
    text = float.__repr__(value) if isinstance(value, float) else value
    if isinstance(text, str):
        text = text.strip()
        if len(text) > 2 * _MAX_EXPONENT or not text.isascii() or "_" in text:  # "1_0" and full-width digits
            return None
        if "/" in text:
            parts = [_read(part) for part in text.split("/")]
            if len(parts) != 2 or parts[0] is None or not parts[1]:
                return None
            return parts[0] / parts[1]
        try:
            text = Decimal(text)
        except InvalidOperation:
            return None
    if not isinstance(text, Decimal) or not text.is_finite():
        return None
    if text and abs(text.adjusted()) > _MAX_EXPONENT:
        return None
    return Fraction(text)
