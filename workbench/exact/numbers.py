"""Exact numbers: what a request means, and comparisons with e^ε that are decided, never guessed.

A budget is a rational number. A comparison "a > b e^ε" between rationals is decided by refining a ball around e^ε
until the answer is certain; for rational ε != 0 the number e^ε is transcendental (Lindemann), so a != b e^ε unless
a = b = 0 and the refinement always ends. ε = 0 is compared exactly.

    meaning                                  name
    the value a request asks for             exact, number_where, positive, probability
    the number a cell spells, of any size    rational
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
Interval = RationalPair  # its two ends
Rationals = tuple[Fraction, ...]

ZERO, ONE = Fraction(0), Fraction(1)
_MAX_EXPONENT = (
    5000  # decimal digits of a number, before or after the point; more is a mistake or an attack
)
_LARGEST, _LEAST = (
    Fraction(sys.float_info.max),
    Fraction(5, 10**324),
)  # of a double, as it is written


def read_number(value: Any, name: str, constraint: str = "a finite number") -> Fraction:
    """The rational number a request means.

    An int, Decimal or Fraction is itself; a string is the decimal or the ratio it spells ("0.1", "1e-6", "1/3"); a
    float (or NumPy float) is the decimal its repr shows, so 0.1 means 1/10 and not 3602879701896397/2^55.

    value: str | int | float | Decimal | Fraction or a NumPy scalar; name: what the error message calls it.
    Raises InvalidRequest for NaN, infinities, booleans, other types, and what floating point would take for infinite
    or, unless it is a Fraction already, for 0: models and pictures are made of doubles.
    """
    number = parse_rational(value)
    if number is None:
        must(name, constraint, value)
    if abs(number) > _LARGEST or (
        number and abs(number) < _LEAST and not isinstance(value, Fraction)
    ):
        must(name, "0, or of a size from 5e-324 to 1.79e308", value)
    return number


def read_number_where(
    value: Any, name: str, constraint: str, is_allowed: Callable[[Fraction], bool]
) -> Fraction:
    """`exact(value)`, required to be allowed. constraint: the same in words. Raises InvalidRequest."""
    number = read_number(value, name, constraint)
    return number if is_allowed(number) else must(name, constraint, value)


def read_positive(value: Any, name: str, *, or_zero: bool = False) -> Fraction:
    """`exact(value)`, required > 0 (or >= 0): the budgets ε. Raises InvalidRequest."""
    words = f"a finite number {'>=' if or_zero else '>'} 0"
    return read_number_where(
        value, name, words, lambda number: number > 0 or (or_zero and not number)
    )


def read_probability(value: Any, name: str) -> Fraction:
    """`exact(value)`, required in [0, 1]: the budgets δ. Raises InvalidRequest."""
    return read_number_where(value, name, "a number in [0, 1]", lambda number: 0 <= number <= 1)


def parse_rational(value: Any) -> Fraction | None:
    """The number that `exact` reads, of any size within 5000 decimal digits; None for what is no finite number."""
    if type(value) is Fraction:
        return value
    if (
        type(value).__module__ == "numpy"
        and hasattr(value, "item")
        and getattr(value, "ndim", None) == 0
    ):
        # float32(0.1) means 0.1 as well: its own shortest decimal, not that of its widening to a double
        if value.dtype.kind not in "iuf":  # a time span would become a count of its unit
            return None
        value = str(value) if value.dtype.kind == "f" else value.item()
    if isinstance(value, (int, Fraction)):
        return None if isinstance(value, bool) else Fraction(value)
    if isinstance(value, str):
        return _parse_decimal_or_ratio(value.strip())
    return _parse_decimal(float.__repr__(value) if isinstance(value, float) else value)


def _parse_decimal_or_ratio(text: str) -> Fraction | None:
    """The decimal or the ratio that a text spells."""
    if (
        len(text) > 2 * _MAX_EXPONENT or not text.isascii() or "_" in text
    ):  # "1_0" and full-width digits
        return None
    if "/" not in text:
        return _parse_decimal(text)
    parts = [parse_rational(part) for part in text.split("/")]
    return parts[0] / parts[1] if len(parts) == 2 and parts[0] is not None and parts[1] else None


def _parse_decimal(value: Any) -> Fraction | None:
    """A decimal, or a text that spells one; None for anything else, for no finite one, and beyond 5000 digits."""
    try:
        number = Decimal(value) if isinstance(value, str) else value
    except InvalidOperation:
        return None
    if (
        not isinstance(number, Decimal)
        or not number.is_finite()
        or (number and abs(number.adjusted()) > _MAX_EXPONENT)
    ):
        return None
    return Fraction(number)


def count_bits(number: Fraction) -> int:
    """Of numerator and denominator."""
    return number.numerator.bit_length() + number.denominator.bit_length()


def nearest_float(value: Fraction) -> float:
    """The float nearest to a rational; infinite beyond the largest."""
    try:
        return float(value)
    except OverflowError:
        return math.inf if value > 0 else -math.inf


def round_up(value: Fraction) -> float:
    """The smallest float >= value (inf above the largest float)."""
    try:
        near = value.numerator / value.denominator
    except OverflowError:
        return math.inf if value > 0 else -sys.float_info.max
    return near if Fraction(near) >= value else math.nextafter(near, math.inf)


def round_down(value: Fraction) -> float:
    """The largest float <= value (-inf below the most negative float)."""
    return -round_up(-value) if value else 0.0


def exp_bounds(epsilon: Fraction, bits: int) -> Pair:
    """Integers (lo, hi) with lo <= 2^bits e^ε <= hi; lo = hi = 2^bits when ε = 0, else hi - lo is 1 or 2."""
    return exp_bounds_of_ratio(
        epsilon.numerator, epsilon.denominator, bits
    )  # a Fraction is slow to hash


def exp_interval(epsilon: Fraction, bits: int) -> Interval:
    """Rationals (lo, hi) around e^ε, multiples of 2^-bits."""
    low, high = exp_bounds(epsilon, bits)
    return Fraction(low, 1 << bits), Fraction(high, 1 << bits)


@lru_cache(maxsize=4096)
def exp_bounds_of_ratio(numerator: int, denominator: int, bits: int) -> tuple[int, int]:
    """`exp_bounds` of a rational in lowest terms.

    The series of r = |ε| / 2^k < 1/8 in units u, squared k times. Every term that is rounded down, from a term and an r
    that were, is at most 2u too small (2u/8 + u/8 + u); the terms after the first of 0 are less than u together.
    """
    size, unit = abs(numerator), 1 << bits
    if not size:
        return unit, unit
    halvings = (size // denominator).bit_length() + 8 + bits // 64
    places = bits + 3 * max(0, numerator) // (2 * denominator) + halvings + 32
    r = (size << places - halvings) // denominator
    low = term = 1 << places
    count = 0
    while term:
        count += 1
        term = (term * r >> places) // count
        low += term
    high = low + 2 * count + 1
    for _ in range(halvings):
        low, high = low * low >> places, -(-high * high >> places)
    if numerator < 0:
        low, high = (1 << 2 * places) // high, -(-(1 << 2 * places) // low)
    low, high = low >> places - bits, -(-high >> places - bits)
    # e^ε > 1 exactly when ε > 0: with that, equal masses are decided at once however small the budget
    return (max(low, unit), high) if numerator > 0 else (low, min(high, unit))


def make_ball(value: Fraction) -> Any:
    """A flint ball around a rational, of the precision there is."""
    from flint import arb, fmpq

    return arb(fmpq(value.numerator, value.denominator))


def ball_ends(enclosed: Any) -> Interval:
    """The two ends of a flint ball, as exact rationals. Raises NotProven for a ball without ends."""
    if not enclosed.is_finite():
        raise NotProven("A number is beyond what can be enclosed.")
    centre, radius = (
        Fraction(int(end.p), int(end.q)) for end in (enclosed.mid().fmpq(), enclosed.rad().fmpq())
    )
    return centre - radius, centre + radius


def log_upper_bound(ratio: Fraction) -> float:
    """The smallest float >= ln(ratio), decided exactly; 0 for ratio = 1. ratio > 0."""
    near = _approximate_log(ratio)
    while sign_exp(ratio, ONE, Fraction(near)) > 0:
        near = math.nextafter(near, math.inf)
    while sign_exp(ratio, ONE, Fraction(below := math.nextafter(near, -math.inf))) <= 0:
        near = below
    return near


def _approximate_log(ratio: Fraction) -> float:
    """ln(ratio), to some units in the last place."""
    if ratio < 1:
        return -_approximate_log(1 / ratio)
    try:
        return math.log1p(ratio - 1)
    except OverflowError:
        return math.log(ratio.numerator) - math.log(ratio.denominator)


def sign_exp(a: Fraction, b: Fraction, epsilon: Fraction) -> int:
    """The sign (-1, 0, 1) of a - b e^ε, decided exactly for all rationals a, b, ε."""
    if b == 0 or epsilon == 0 or (a > 0) != (b > 0) or a == 0:
        gap = a - b
        return (gap > 0) - (gap < 0)
    flip = 1 if a > 0 else -1
    left, right = (
        abs(a.numerator) * b.denominator,
        abs(b.numerator) * a.denominator,
    )  # left : right = a : b
    if (
        abs(epsilon) > left.bit_length() + right.bit_length()
    ):  # then 2^|ε| alone outweighs any ratio of the two
        return -flip if epsilon > 0 else flip
    bits = 64
    while True:
        low, high = exp_bounds(epsilon, bits)
        if left << bits < right * low:
            return -flip
        if left << bits > right * high:
            return flip
        bits *= 2


@total_ordering
@dataclass(frozen=True, eq=False)
class ExpNumber:
    """The number a - b e^ε with rational a, b, ε: what a hockey stick sums to. Build it with `ExpNumber.of`.

    b != 0 only if ε != 0, so the number is irrational exactly when b != 0.
    """

    a: Fraction
    b: Fraction
    epsilon: Fraction

    @classmethod
    def from_terms(cls, a: Fraction, b: Fraction, epsilon: Fraction) -> ExpNumber:
        """a - b e^ε in canonical form."""
        if not b or not epsilon:
            return cls(a - b if b else a, ZERO, ZERO)
        return cls(a, b, epsilon)

    def enclosure(self, bits: int) -> Interval:
        """Rationals (lo, hi) with lo <= a - b e^ε <= hi, from 2^-bits enclosures of e^ε."""
        low, high = sorted(self.a - self.b * end for end in exp_interval(self.epsilon, bits))
        return low, high

    def tight_enclosure(self) -> Interval:
        """Rationals (lo, hi) around the number, at most 2^-60 of it apart."""
        bits = 128
        while True:
            low, high = self.enclosure(bits)
            if (high - low) * 2**60 <= abs(high):
                return low, high
            bits *= 2

    @property
    def lower(self) -> float:
        """A float <= the number."""
        return round_down(self.tight_enclosure()[0])

    @property
    def upper(self) -> float:
        """A float >= the number: the one to report."""
        return round_up(self.tight_enclosure()[1])

    def compare(self, other: object) -> int:
        """The sign of self - other, decided exactly; a float is the rational it is. Raises TypeError for no number.

        For different exponents 1, e^ε, e^ε' are linearly independent over the rationals (Lindemann-Weierstrass), so
        the two numbers differ and their enclosures separate.
        """
        if isinstance(other, float) and math.isinf(other):
            return -1 if other > 0 else 1
        that = _to_exp_number(other)
        if that is None:
            raise TypeError(f"an exact number cannot be compared with {other!r}")
        if not self.b and not that.b:
            return (self.a > that.a) - (self.a < that.a)
        if self.b == 0 or that.b == 0 or self.epsilon == that.epsilon:
            return sign_exp(
                self.a - that.a, self.b - that.b, self.epsilon if self.b else that.epsilon
            )
        bits = 128
        while True:
            (low, high), (low2, high2) = self.enclosure(bits), that.enclosure(bits)
            if high < low2:
                return -1
            if low > high2:
                return 1
            bits *= 2

    def __float__(self) -> float:
        """The nearest float, or one of the two nearest."""
        low, high = self.tight_enclosure()
        return float((low + high) / 2)

    def __lt__(self, other: Any) -> bool:
        return self.compare(other) < 0

    def __eq__(self, other: object) -> bool:
        that = _to_exp_number(other)
        return (
            NotImplemented
            if that is None
            else (self.a, self.b, self.epsilon) == (that.a, that.b, that.epsilon)
        )

    def __hash__(self) -> int:
        return hash(self.a) if self.b == 0 else hash((self.a, self.b, self.epsilon))

    def __str__(self) -> str:
        if self.b == 0:
            return str(self.a)
        return f"{self.a} - {self.b}*exp({self.epsilon})"


def _to_exp_number(value: Any) -> ExpNumber | None:
    """A finite int, float or Fraction as the rational it is; None for what is no number."""
    if isinstance(value, ExpNumber):
        return value
    finite = isinstance(value, (int, Fraction)) or (
        isinstance(value, float) and math.isfinite(value)
    )
    return ExpNumber(Fraction(value), ZERO, ZERO) if finite else None


def max_exp_number(numbers: Iterable[ExpNumber]) -> ExpNumber:
    """The largest of some numbers a - b e^ε, decided exactly. Raises ValueError when there is none."""
    return max(dict.fromkeys(numbers))


def to_jsonable(value: Any, *, nan_as_null: bool = False) -> Any:
    """Strict JSON: rationals and NumPy's numbers as floats, infinities as "inf", shifts as strings.

    gaps: NaN as null, for tables and pictures; otherwise it stays, and whoever writes strict JSON refuses it.
    """
    if hasattr(value, "tolist"):
        value = value.tolist()
    if isinstance(value, Mapping):
        names = (
            ",".join(map(str, name)) if isinstance(name, tuple) else str(name) for name in value
        )
        return {
            name: to_jsonable(part, nan_as_null=nan_as_null)
            for name, part in zip(names, value.values(), strict=True)
        }
    if isinstance(value, (list, tuple)):
        return [to_jsonable(part, nan_as_null=nan_as_null) for part in value]
    if isinstance(value, Fraction):
        return float(value)
    if isinstance(value, float) and math.isinf(value):
        return "inf" if value > 0 else "-inf"
    return None if nan_as_null and value != value else value
