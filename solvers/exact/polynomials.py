"""Rational functions of one variable x, their signs and their real roots, decided in exact arithmetic.

A root is held as the one zero of an irreducible polynomial between two rationals; FLINT isolates them in balls. Most
polynomials have none in the interval asked for: that is decided by Descartes' rule after a Möbius transformation of the
interval (Vincent, Collins and Akritas), no sign changes, no root.
"""

from __future__ import annotations

import copyreg
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import cmp_to_key
from itertools import pairwise
from typing import TypeAlias

from flint import fmpq, fmpq_poly, fmpz_poly

Poly: TypeAlias = fmpz_poly
Interval = tuple[Fraction, Fraction]  # its two ends

ZERO, ONE = fmpz_poly([]), fmpz_poly([1])


def _reduce_polynomial(polynomial: Poly) -> tuple[type[Poly], tuple[list[int]]]:
    """How a polynomial is pickled, which FLINT's own type refuses: by its coefficients."""
    return fmpz_poly, ([int(coefficient) for coefficient in polynomial.coeffs()],)


copyreg.pickle(fmpz_poly, _reduce_polynomial)


@dataclass(frozen=True)
class Affine:
    """(constant + δ slope) / over: a rational function of x, affine in δ, in lowest terms with over > 0 far out."""

    constant: Poly
    slope: Poly
    denominator: Poly

    @classmethod
    def from_ratio(cls, constant: Poly, slope: Poly, over: Poly) -> Affine:
        """In lowest terms."""
        common = constant.gcd(slope).gcd(over) if over.degree() or abs(over[0]) != 1 else over
        if not constant and not slope:
            return cls(ZERO, ZERO, ONE)
        if over.leading_coefficient() < 0:
            common = -common if common.leading_coefficient() > 0 else common
        return cls(constant // common, slope // common, over // common)

    @classmethod
    def from_number(cls, value: Fraction | int) -> Affine:
        """A constant."""
        return cls(fmpz_poly([value.numerator]), ZERO, fmpz_poly([value.denominator]))

    def __add__(self, other: Affine) -> Affine:
        if self.denominator == other.denominator:
            return Affine.from_ratio(
                self.constant + other.constant, self.slope + other.slope, self.denominator
            )
        common = self.denominator.gcd(other.denominator)
        mine, its = other.denominator // common, self.denominator // common
        return Affine.from_ratio(
            self.constant * mine + other.constant * its,
            self.slope * mine + other.slope * its,
            self.denominator * mine,
        )

    def __sub__(self, other: Affine) -> Affine:
        return self + other.multiply(-ONE)

    def multiply(self, factor: Poly, over: Poly = ONE) -> Affine:
        """Multiplied by factor / over."""
        return Affine.from_ratio(
            self.constant * factor, self.slope * factor, self.denominator * over
        )

    def with_delta(self, delta: Fraction) -> Affine:
        """With δ a number."""
        return self.substitute_delta(fmpz_poly([delta.numerator]), fmpz_poly([delta.denominator]))

    def substitute_delta(self, numerator: Poly, denominator: Poly) -> Affine:
        """With δ a ratio of polynomials."""
        if not self.slope:
            return self
        return Affine.from_ratio(
            self.constant * denominator + self.slope * numerator,
            ZERO,
            self.denominator * denominator,
        )

    def __call__(self, x: Fraction, delta: Fraction = Fraction(0)) -> Fraction:
        """Its value. Raises ZeroDivisionError at a pole."""
        return (
            evaluate_polynomial(self.constant, x) + delta * evaluate_polynomial(self.slope, x)
        ) / evaluate_polynomial(self.denominator, x)

    def derivative(self, steps: int = 1) -> Affine:
        """d/dε where x = e^(ε/steps): x/steps times that by x."""
        constant = (
            self.constant.derivative() * self.denominator
            - self.constant * self.denominator.derivative()
        )
        slope = (
            self.slope.derivative() * self.denominator - self.slope * self.denominator.derivative()
        )
        x = fmpz_poly([0, 1])
        return Affine.from_ratio(
            constant * x, slope * x, self.denominator * self.denominator * steps
        )

    def delta_derivative(self) -> Affine:
        """d/dδ."""
        return Affine.from_ratio(self.slope, ZERO, self.denominator)

    def enclose(self, low: Fraction, high: Fraction, delta: Fraction) -> Interval | None:
        """Between what it lies for x in an interval of positive numbers; None where that may hold a pole."""
        at = self.with_delta(delta)
        (a, b), (c, d) = (
            _enclose_polynomial(part, low, high) for part in (at.constant, at.denominator)
        )
        if c <= 0 <= d:
            return None
        ends = [first / second for first in (a, b) for second in (c, d)]
        return min(ends), max(ends)

    @property
    def sign_polynomial(self) -> Poly:
        """A polynomial of the same sign wherever there is no pole. Only without δ."""
        return self.constant if self.denominator.degree() == 0 else self.constant * self.denominator


def _enclose_polynomial(polynomial: Poly, low: Fraction, high: Fraction) -> Interval:
    """Between what a polynomial lies in an interval of positive numbers: rising terms and falling ones apart."""
    coefficients = polynomial.coeffs()
    up, down = (
        fmpz_poly([value if (value > 0) == rises else 0 for value in coefficients])
        for rises in (True, False)
    )
    return evaluate_polynomial(up, low) + evaluate_polynomial(down, high), evaluate_polynomial(
        up, high
    ) + evaluate_polynomial(down, low)


def evaluate_polynomial(polynomial: Poly, x: Fraction) -> Fraction:
    """Its value at a rational."""
    return to_fraction(polynomial(to_flint(x)))


def to_flint(x: Fraction) -> fmpq:
    """As FLINT has it."""
    return fmpq(x.numerator, x.denominator)


def to_fraction(x: fmpq) -> Fraction:
    """As Python has it."""
    return Fraction(int(x.p), int(x.q))


def sign_at(polynomial: Poly, x: Fraction) -> int:
    """-1, 0 or 1."""
    value = polynomial(to_flint(x))
    return int(value > 0) - int(value < 0)


@dataclass(frozen=True, eq=False)
class Root:
    """The one zero of an irreducible polynomial in the open interval (low, high); a rational is low = high."""

    polynomial: Poly
    low: Fraction
    high: Fraction

    @classmethod
    def from_rational(cls, x: Fraction) -> Root:
        """A rational number."""
        return cls(fmpz_poly([-x.numerator, x.denominator]), x, x)

    def halve(self) -> Root:
        """The same in half the interval."""
        if self.low == self.high:
            return self
        middle = (self.low + self.high) / 2
        here = sign_at(self.polynomial, middle)
        if not here:
            return Root.from_rational(middle)
        below = here == sign_at(self.polynomial, self.high)
        return Root(self.polynomial, self.low if below else middle, middle if below else self.high)

    def refine_to(self, width: Fraction) -> Root:
        """The same in an interval of at most this width."""
        root = self
        while root.high - root.low > width:
            root = root.halve()
        return root

    def compare(self, other: Root) -> int:
        """-1, 0 or 1: whether it is less than, equal to or more than another."""
        left, right = self, other
        if left.low == left.high == right.low == right.high:
            return 0
        while left.high > right.low and right.high > left.low:
            low, high = max(left.low, right.low), min(left.high, right.high)
            if left.polynomial == right.polynomial and sign_at(left.polynomial, low) != sign_at(
                left.polynomial, high
            ):
                return 0
            left, right = left.halve(), right.halve()
        return -1 if left.high <= right.low else 1

    def is_above(self, x: Fraction) -> bool:
        """Whether it is more than a rational."""
        return self.compare(Root.from_rational(x)) > 0

    def is_below(self, x: Fraction) -> bool:
        """Whether it is less than a rational."""
        return self.compare(Root.from_rational(x)) < 0

    def __float__(self) -> float:
        root = self.refine_to(Fraction(1, 1 << 60))
        return float((root.low + root.high) / 2)


def count_sign_changes(polynomial: Poly, low: Fraction, high: Fraction | None) -> int:
    """Those of Descartes' rule for the open interval; high None: without end."""
    length = Fraction(1) if high is None else high - low
    moved = fmpq_poly(polynomial)(
        fmpq_poly([to_flint(low), to_flint(length)])
    ).numer()  # at low + t length, t > 0
    if high is not None:  # t in (0, 1)
        at = moved.coeffs()
        moved = fmpz_poly([0] * (polynomial.degree() + 1 - len(at)) + at[::-1])(fmpz_poly([1, 1]))
    signs = [value > 0 for value in moved.coeffs() if value]
    return sum(first != second for first, second in pairwise(signs))


def _iterate_sign_changes(polynomial: Poly) -> Iterator[Root]:
    """The real numbers where a polynomial changes its sign."""
    for factor, multiplicity in polynomial.factor()[1]:
        if multiplicity % 2 and factor.degree() == 1:
            yield Root.from_rational(Fraction(-int(factor[0]), int(factor[1])))
        elif multiplicity % 2:
            for zero, _ in factor.complex_roots():
                if zero.imag == 0:
                    middle, radius = (
                        to_fraction(part.fmpq()) for part in (zero.real.mid(), zero.real.rad())
                    )
                    yield Root(factor, middle - radius, middle + radius)


def find_sign_interval(
    polynomials: Iterable[Poly], x: Fraction, low: Root, high: Root | None
) -> tuple[Root, Root | None]:
    """The largest part of [low, high] around x in which no polynomial changes its sign; none is 0 at x."""
    for polynomial in polynomials:
        top = None if high is None else high.high
        inside = count_sign_changes(polynomial, low.low, x) or count_sign_changes(
            polynomial, x, top
        )
        for root in _iterate_sign_changes(polynomial) if inside else ():
            if root.is_below(x):
                low = max(low, root, key=_root_sort_key)
            elif high is None or root.compare(high) < 0:
                high = root
    return low, high


_root_sort_key = cmp_to_key(Root.compare)
