"""Read the exact numbers of a request, and compare rational numbers with e^ε exactly.

A budget is a rational number. A comparison "a > b e^ε" between rationals is decided by enclosing
e^ε more and more tightly until the answer is certain. For rational ε != 0 the number e^ε is
transcendental (Lindemann), so a != b e^ε unless a = b = 0, and the refinement always ends. ε = 0 is
compared exactly.

    meaning                                  name
    the value of a request                   read_number, read_number_where, read_positive,
                                             read_probability
    the number in a cell, of any size        parse_rational
    ⌊2^p e^ε⌋ and ⌈2^p e^ε⌉                  exp_bounds
    sign of a - b e^ε                        sign_exp
    the number a - b e^ε itself              ExpNumber
    a float on the safe side of a rational   round_up, round_down
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from fractions import Fraction
from functools import lru_cache, total_ordering
from typing import Any, TypeAlias

from workbench.errors import NotProven, must
from workbench.exact.objects import Pair

Real: TypeAlias = "str | int | float | Decimal | Fraction"
RationalPair = tuple[Fraction, Fraction]
Interval = RationalPair  # The lower and the upper end.
Rationals = tuple[Fraction, ...]

ZERO = Fraction(0)
ONE = Fraction(1)

# A number with more decimal digits before or after the point is refused as a mistake or attack.
_MAX_DECIMAL_DIGITS = 5000
_MAX_DOUBLE = Fraction(sys.float_info.max)
# The smallest positive double, as Python prints it. A smaller number is refused, because models in
# floating point would take it for 0.
_MIN_POSITIVE_DOUBLE = Fraction(5, 10**324)

# Precision in bits of the first enclosure of e^ε; it is doubled until the comparison is decided.
_FIRST_SIGN_BITS = 64
_FIRST_ENCLOSURE_BITS = 128


def read_number(value: Any, name: str, constraint: str = "a finite number") -> Fraction:
    """Return the rational number that a value of a request means.

    An int, Decimal or Fraction is itself. A string is the decimal or the ratio that it spells
    ("0.1", "1e-6", "1/3"). A float (or NumPy float) is the decimal that its repr shows, so 0.1
    means 1/10 and not 3602879701896397/2^55.

    Args:
        value: str | int | float | Decimal | Fraction, or a NumPy scalar.
        name: Name of the value in errors, usually the option.
        constraint: What the value must be, in errors, such as "a number > 0".

    Returns:
        The exact number.

    Raises:
        InvalidRequest: For NaN, infinities, booleans and other types; also for numbers whose double
            would be infinite or, unless the value is a Fraction, 0, because models and pictures are
            computed in doubles.
    """
    number = parse_rational(value)
    if number is None:
        must(name, constraint, value)
    is_too_large = abs(number) > _MAX_DOUBLE
    is_too_small = number != 0 and abs(number) < _MIN_POSITIVE_DOUBLE
    if is_too_large or (is_too_small and not isinstance(value, Fraction)):
        must(name, "0, or of a size from 5e-324 to 1.79e308", value)
    return number


def read_number_where(
    value: Any, name: str, constraint: str, is_allowed: Callable[[Fraction], bool]
) -> Fraction:
    """Read a number as `read_number` does, and check a condition.

    Args:
        value: The value of a request, as for `read_number`.
        name: Name of the value in errors, usually the option.
        constraint: The condition in words, for the error message.
        is_allowed: The condition on the exact number.

    Returns:
        The exact number.

    Raises:
        InvalidRequest: If the value is no number or the condition does not hold.
    """
    number = read_number(value, name, constraint)
    if not is_allowed(number):
        must(name, constraint, value)
    return number


def read_positive(value: Any, name: str, *, or_zero: bool = False) -> Fraction:
    """Read a number > 0, such as a budget ε.

    Args:
        value: The value of a request, as for `read_number`.
        name: Name of the value in errors, usually the option.
        or_zero: Whether 0 is accepted too.

    Returns:
        The exact number.

    Raises:
        InvalidRequest: If the value is no number, is negative, or is 0 without `or_zero`.
    """
    relation = ">=" if or_zero else ">"
    return read_number_where(
        value,
        name,
        f"a finite number {relation} 0",
        lambda number: number > 0 or (or_zero and not number),
    )


def read_probability(value: Any, name: str) -> Fraction:
    """Read a number in [0, 1], such as a budget δ.

    Args:
        value: The value of a request, as for `read_number`.
        name: Name of the value in errors, usually the option.

    Raises:
        InvalidRequest: If the value is no number, or outside [0, 1].
    """
    return read_number_where(value, name, "a number in [0, 1]", lambda number: 0 <= number <= 1)


def parse_rational(value: Any) -> Fraction | None:
    """Return the number that `read_number` reads, of any size within 5000 decimal digits.

    Returns None for everything that is not a finite number.

    Args:
        value: Anything.
    """
    if type(value) is Fraction:
        return value
    if (
        type(value).__module__ == "numpy"
        and hasattr(value, "item")
        and getattr(value, "ndim", None) == 0
    ):
        # A time span is refused: it would become a count of its unit.
        if value.dtype.kind not in "iuf":
            return None
        # float32(0.1) means 0.1 too: its shortest decimal is read, not the one after widening to a
        # double.
        if value.dtype.kind == "f":
            value = str(value)
        else:
            value = value.item()
    if isinstance(value, bool):
        return None
    if isinstance(value, (int, Fraction)):
        return Fraction(value)
    if isinstance(value, str):
        return _parse_decimal_or_ratio(value.strip())
    if isinstance(value, float):
        # NumPy's float64 is a float with another repr.
        return _parse_decimal(float.__repr__(value))
    return _parse_decimal(value)


def _parse_decimal_or_ratio(text: str) -> Fraction | None:
    """Return the number that a decimal or a ratio spells, or None."""
    # Python's Decimal would accept "1_0" and full-width digits.
    if len(text) > 2 * _MAX_DECIMAL_DIGITS or not text.isascii() or "_" in text:
        return None
    if "/" not in text:
        return _parse_decimal(text)
    parts = [parse_rational(part) for part in text.split("/")]
    if len(parts) != 2:
        return None
    numerator, denominator = parts
    if numerator is None or not denominator:
        return None
    return numerator / denominator


def _parse_decimal(value: Any) -> Fraction | None:
    """Return the number of a Decimal or of a text that spells one.

    Returns None for anything else, for NaN and infinities, and for more than 5000 digits.
    """
    try:
        decimal = Decimal(value) if isinstance(value, str) else value
    except InvalidOperation:
        return None
    if not isinstance(decimal, Decimal) or not decimal.is_finite():
        return None
    if decimal and abs(decimal.adjusted()) > _MAX_DECIMAL_DIGITS:
        return None
    return Fraction(decimal)


def count_bits(number: Fraction) -> int:
    """Count the bits of the numerator and the denominator together."""
    return number.numerator.bit_length() + number.denominator.bit_length()


def nearest_float(value: Fraction) -> float:
    """Return the float nearest to a rational; infinite above the largest float."""
    try:
        return float(value)
    except OverflowError:
        return math.inf if value > 0 else -math.inf


def round_up(value: Fraction) -> float:
    """Return the smallest float >= value; inf above the largest float."""
    try:
        quotient = value.numerator / value.denominator
    except OverflowError:
        return math.inf if value > 0 else -sys.float_info.max
    if Fraction(quotient) >= value:
        return quotient
    return math.nextafter(quotient, math.inf)


def round_down(value: Fraction) -> float:
    """Return the largest float <= value; -inf below the most negative float."""
    return -round_up(-value) if value else 0.0


def exp_bounds(epsilon: Fraction, bits: int) -> Pair:
    """Return integers (low, high) with low <= 2^bits e^ε <= high.

    For ε = 0 both are 2^bits, else high - low is 1 or 2.
    """
    # The cache is keyed by two integers because a Fraction is slow to hash.
    return exp_bounds_of_ratio(epsilon.numerator, epsilon.denominator, bits)


def exp_interval(epsilon: Fraction, bits: int) -> Interval:
    """Return rationals (low, high) around e^ε that are multiples of 2^-bits."""
    low, high = exp_bounds(epsilon, bits)
    return Fraction(low, 1 << bits), Fraction(high, 1 << bits)


@lru_cache(maxsize=4096)
def exp_bounds_of_ratio(numerator: int, denominator: int, bits: int) -> tuple[int, int]:
    """Return `exp_bounds` of ε = numerator/denominator, a fraction in lowest terms.

    Let r = |ε| / 2^h < 1/8, where h is the number of halvings. The series of e^r is summed in
    integers that count units u = 2^-places. Its value is then squared h times, which gives e^|ε|.

    Rounding: every term is rounded down, from a previous term and an r that were rounded down. It
    is therefore at most 2u too small (2u/8 + u/8 + u). The terms after the first term that is 0 add
    up to less than u.

    Args:
        numerator: The numerator of ε.
        denominator: The denominator of ε, positive.
        bits: The precision of the bounds.

    Returns:
        Integers (low, high) with low <= 2^bits e^ε <= high.
    """
    size = abs(numerator)
    unit = 1 << bits
    if not size:
        return unit, unit
    # More halvings need fewer terms of the series. If ε > 0, e^ε has up to 3 ε / 2 bits before the
    # point. The 32 further places absorb the rounding errors of the terms and of the squarings.
    halvings = (size // denominator).bit_length() + 8 + bits // 64
    places = bits + 3 * max(0, numerator) // (2 * denominator) + halvings + 32
    r = (size << places - halvings) // denominator
    term = 1 << places
    low = term
    count = 0
    while term:
        count += 1
        term = (term * r >> places) // count
        low += term
    high = low + 2 * count + 1
    for _ in range(halvings):
        low = low * low >> places
        high = -(-high * high >> places)  # The two signs make the shift round up.
    if numerator < 0:
        low, high = (1 << 2 * places) // high, -(-(1 << 2 * places) // low)
    low >>= places - bits
    high = -(-high >> places - bits)
    # e^ε > 1 exactly when ε > 0. With this bound equal masses are decided at once, however small
    # the budget.
    if numerator > 0:
        return max(low, unit), high
    return low, min(high, unit)


def make_ball(value: Fraction) -> Any:
    """Return a small interval around a rational, as an `arb` of python-flint.

    An `arb` (a "ball") consists of a centre and a radius. Its width depends on flint's current
    working precision.
    """
    from flint import arb, fmpq

    return arb(fmpq(value.numerator, value.denominator))


def ball_ends(ball: Any) -> Interval:
    """Return the two ends of an interval of python-flint as exact rationals.

    Args:
        ball: An `arb`, see `make_ball`.

    Raises:
        NotProven: If the ball is not finite.
    """
    if not ball.is_finite():
        raise NotProven("A number is beyond what can be enclosed.")
    exact_centre = ball.mid().fmpq()
    exact_radius = ball.rad().fmpq()
    centre = Fraction(int(exact_centre.p), int(exact_centre.q))
    radius = Fraction(int(exact_radius.p), int(exact_radius.q))
    return centre - radius, centre + radius


def log_upper_bound(ratio: Fraction) -> float:
    """Return the smallest float >= ln(ratio), decided exactly; 0 for ratio = 1.

    Args:
        ratio: The rational whose logarithm is bounded, > 0.
    """
    bound = _approximate_log(ratio)
    while sign_exp(ratio, ONE, Fraction(bound)) > 0:
        bound = math.nextafter(bound, math.inf)
    while True:
        next_lower_float = math.nextafter(bound, -math.inf)
        if sign_exp(ratio, ONE, Fraction(next_lower_float)) > 0:
            return bound
        bound = next_lower_float


def _approximate_log(ratio: Fraction) -> float:
    """Return ln(ratio), accurate to a few units in the last place."""
    if ratio < 1:
        return -_approximate_log(1 / ratio)
    try:
        return math.log1p(ratio - 1)
    except OverflowError:
        return math.log(ratio.numerator) - math.log(ratio.denominator)


def sign_exp(a: Fraction, b: Fraction, epsilon: Fraction) -> int:
    """Return the sign (-1, 0 or 1) of a - b e^ε, decided exactly for all rationals.

    Args:
        a: Any rational.
        b: Coefficient of e^ε, any rational.
        epsilon: Exponent ε, any rational.

    Returns:
        1 if a > b e^ε, 0 if they are equal, -1 if a < b e^ε.
    """
    # In these cases a - b has the same sign, because e^ε is positive, and 1 for ε = 0.
    if b == 0 or epsilon == 0 or (a > 0) != (b > 0) or a == 0:
        gap = a - b
        return (gap > 0) - (gap < 0)
    sign = 1 if a > 0 else -1
    # left / right = |a| / |b|.
    left = abs(a.numerator) * b.denominator
    right = abs(b.numerator) * a.denominator
    # Then e^|ε| > 2^|ε| exceeds both left / right and right / left.
    if abs(epsilon) > left.bit_length() + right.bit_length():
        return -sign if epsilon > 0 else sign
    bits = _FIRST_SIGN_BITS
    while True:
        low, high = exp_bounds(epsilon, bits)
        if left << bits < right * low:
            return -sign
        if left << bits > right * high:
            return sign
        bits *= 2


@total_ordering
@dataclass(frozen=True, eq=False)
class ExpNumber:
    """The number a - b e^ε with rational a, b, ε, such as the value of a hockey stick.

    Build it with `ExpNumber.from_terms`, which sets b and ε to 0 if the number is rational. So the
    number is irrational exactly if b != 0.

    Attributes:
        a: Rational part.
        b: Coefficient of -e^ε.
        epsilon: Exponent ε.
    """

    a: Fraction
    b: Fraction
    epsilon: Fraction

    @classmethod
    def from_terms(cls, a: Fraction, b: Fraction, epsilon: Fraction) -> ExpNumber:
        """Build a - b e^ε in canonical form.

        Args:
            a: The rational part.
            b: The coefficient of -e^ε.
            epsilon: The exponent ε, a rational.

        Returns:
            The number; its b and ε are 0 if the number is rational.
        """
        if not b:
            return cls(a, ZERO, ZERO)
        if not epsilon:
            return cls(a - b, ZERO, ZERO)
        return cls(a, b, epsilon)

    def enclosure(self, bits: int) -> Interval:
        """Return rationals (low, high) around the number.

        Args:
            bits: e^ε is enclosed in multiples of 2^-bits.
        """
        low, high = sorted(self.a - self.b * end for end in exp_interval(self.epsilon, bits))
        return low, high

    def tight_enclosure(self) -> Interval:
        """Return rationals (low, high) around the number, with high - low <= 2^-60 |high|."""
        bits = _FIRST_ENCLOSURE_BITS
        while True:
            low, high = self.enclosure(bits)
            if (high - low) * 2**60 <= abs(high):
                return low, high
            bits *= 2

    @property
    def lower(self) -> float:
        """Return a float <= the number."""
        low, _ = self.tight_enclosure()
        return round_down(low)

    @property
    def upper(self) -> float:
        """Return a float >= the number, as it is reported."""
        _, high = self.tight_enclosure()
        return round_up(high)

    def compare(self, other: object) -> int:
        """Return the sign of self - other, decided exactly.

        For different exponents 1, e^ε, e^ε' are linearly independent over the rationals
        (Lindemann-Weierstrass), so the two numbers differ and their enclosures separate.

        Args:
            other: An ExpNumber, int, Fraction or float; a float is the rational that it is.

        Raises:
            TypeError: If other is of another type, or NaN.
        """
        if isinstance(other, float) and math.isinf(other):
            return -1 if other > 0 else 1
        number = _to_exp_number(other)
        if number is None:
            raise TypeError(f"an exact number cannot be compared with {other!r}")
        if not self.b and not number.b:
            return (self.a > number.a) - (self.a < number.a)
        has_one_exponent = self.b == 0 or number.b == 0 or self.epsilon == number.epsilon
        if has_one_exponent:
            # A rational number has the exponent 0, which is not the exponent of the difference.
            epsilon = self.epsilon if self.b else number.epsilon
            return sign_exp(self.a - number.a, self.b - number.b, epsilon)
        bits = _FIRST_ENCLOSURE_BITS
        while True:
            low, high = self.enclosure(bits)
            other_low, other_high = number.enclosure(bits)
            if high < other_low:
                return -1
            if low > other_high:
                return 1
            bits *= 2

    def __float__(self) -> float:
        """Return the nearest float, or one of the two nearest."""
        low, high = self.tight_enclosure()
        return float((low + high) / 2)

    def __lt__(self, other: Any) -> bool:
        return self.compare(other) < 0

    def __eq__(self, other: object) -> bool:
        number = _to_exp_number(other)
        if number is None:
            return NotImplemented
        return (self.a, self.b, self.epsilon) == (number.a, number.b, number.epsilon)

    def __hash__(self) -> int:
        if self.b == 0:
            return hash(self.a)
        return hash((self.a, self.b, self.epsilon))

    def __str__(self) -> str:
        if self.b == 0:
            return str(self.a)
        return f"{self.a} - {self.b}*exp({self.epsilon})"


def _to_exp_number(value: Any) -> ExpNumber | None:
    """Convert a finite int, float or Fraction to an ExpNumber. Return None for anything else."""
    if isinstance(value, ExpNumber):
        return value
    is_finite_float = isinstance(value, float) and math.isfinite(value)
    if not isinstance(value, (int, Fraction)) and not is_finite_float:
        return None
    return ExpNumber(Fraction(value), ZERO, ZERO)


def max_exp_number(numbers: Iterable[ExpNumber]) -> ExpNumber:
    """Return the largest of several numbers a - b e^ε, decided exactly.

    Args:
        numbers: The numbers to compare, at least one.

    Raises:
        ValueError: If there are no numbers.
    """
    # Many numbers are equal. Comparing numbers is slow, so duplicates are removed first.
    return max(dict.fromkeys(numbers))


def to_jsonable(value: Any, *, nan_as_null: bool = False) -> Any:
    """Convert a value to objects of strict JSON.

    Rationals and NumPy numbers become floats, and infinities become "inf" and "-inf". A key that is
    a tuple, such as the shift (1, 0), becomes the text "1,0".

    Args:
        value: Nested lists, tuples and mappings of numbers and texts.
        nan_as_null: Write NaN as null, for tables and pictures. Otherwise NaN stays, and a writer
            of strict JSON refuses it.
    """
    if hasattr(value, "tolist"):
        value = value.tolist()
    if isinstance(value, Mapping):
        record = {}
        for key, entry in value.items():
            text = ",".join(map(str, key)) if isinstance(key, tuple) else str(key)
            record[text] = to_jsonable(entry, nan_as_null=nan_as_null)
        return record
    if isinstance(value, (list, tuple)):
        return [to_jsonable(entry, nan_as_null=nan_as_null) for entry in value]
    if isinstance(value, Fraction):
        return float(value)
    if isinstance(value, float) and math.isinf(value):
        return "inf" if value > 0 else "-inf"
    is_nan = value != value  # Only NaN differs from itself. This also accepts texts.
    if nan_as_null and is_nan:
        return None
    return value
