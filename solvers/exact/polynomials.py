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


def _pickled(polynomial: Poly) -> tuple[type[Poly], tuple[list[int]]]:
    """How a polynomial is pickled, which FLINT's own type refuses: by its coefficients."""
    return fmpz_poly, ([int(coefficient) for coefficient in polynomial.coeffs()],)


copyreg.pickle(fmpz_poly, _pickled)


@dataclass(frozen=True)
class Affine:
    """(constant + δ slope) / over: a rational function of x, affine in δ, in lowest terms with over > 0 far out."""

    constant: Poly
    slope: Poly
    over: Poly

    @classmethod
    def reduced(cls, constant: Poly, slope: Poly, over: Poly) -> Affine:
        """In lowest terms."""
        common = constant.gcd(slope).gcd(over) if over.degree() or abs(over[0]) != 1 else over
        if not constant and not slope:
            return cls(ZERO, ZERO, ONE)
        if over.leading_coefficient() < 0:
            common = -common if common.leading_coefficient() > 0 else common
        return cls(constant // common, slope // common, over // common)

    @classmethod
    def number(cls, value: Fraction | int) -> Affine:
        """A constant."""
        return cls(fmpz_poly([value.numerator]), ZERO, fmpz_poly([value.denominator]))

    def __add__(self, other: Affine) -> Affine:
        if self.over == other.over:
            return Affine.reduced(
                self.constant + other.constant, self.slope + other.slope, self.over
            )
        common = self.over.gcd(other.over)
        mine, its = other.over // common, self.over // common
        return Affine.reduced(
            self.constant * mine + other.constant * its,
            self.slope * mine + other.slope * its,
            self.over * mine,
        )

    def __sub__(self, other: Affine) -> Affine:
        return self + other.times(-ONE)

    def times(self, factor: Poly, over: Poly = ONE) -> Affine:
        """Multiplied by factor / over."""
        return Affine.reduced(self.constant * factor, self.slope * factor, self.over * over)

    def at(self, delta: Fraction) -> Affine:
        """With δ a number."""
        return self.where(fmpz_poly([delta.numerator]), fmpz_poly([delta.denominator]))

    def where(self, numerator: Poly, denominator: Poly) -> Affine:
        """With δ a ratio of polynomials."""
        if not self.slope:
            return self
        return Affine.reduced(
            self.constant * denominator + self.slope * numerator, ZERO, self.over * denominator
        )

    def __call__(self, x: Fraction, delta: Fraction = Fraction(0)) -> Fraction:
        """Its value. Raises ZeroDivisionError at a pole."""
        return (value_at(self.constant, x) + delta * value_at(self.slope, x)) / value_at(
            self.over, x
        )

    def derivative(self, steps: int = 1) -> Affine:
        """d/dε where x = e^(ε/steps): x/steps times that by x."""
        constant = self.constant.derivative() * self.over - self.constant * self.over.derivative()
        slope = self.slope.derivative() * self.over - self.slope * self.over.derivative()
        x = fmpz_poly([0, 1])
        return Affine.reduced(constant * x, slope * x, self.over * self.over * steps)

    def slope_alone(self) -> Affine:
        """d/dδ."""
        return Affine.reduced(self.slope, ZERO, self.over)

    def enclosed(self, low: Fraction, high: Fraction, delta: Fraction) -> Interval | None:
        """Between what it lies for x in an interval of positive numbers; None where that may hold a pole."""
        at = self.at(delta)
        (a, b), (c, d) = (_range(part, low, high) for part in (at.constant, at.over))
        if c <= 0 <= d:
            return None
        ends = [first / second for first in (a, b) for second in (c, d)]
        return min(ends), max(ends)

    @property
    def sign_of(self) -> Poly:
        """A polynomial of the same sign wherever there is no pole. Only without δ."""
        return self.constant if self.over.degree() == 0 else self.constant * self.over


def _range(polynomial: Poly, low: Fraction, high: Fraction) -> Interval:
    """Between what a polynomial lies in an interval of positive numbers: rising terms and falling ones apart."""
    coefficients = polynomial.coeffs()
    up, down = (
        fmpz_poly([value if (value > 0) == rises else 0 for value in coefficients])
        for rises in (True, False)
    )
    return value_at(up, low) + value_at(down, high), value_at(up, high) + value_at(down, low)


def value_at(polynomial: Poly, x: Fraction) -> Fraction:
    """Its value at a rational."""
    return fraction(polynomial(rational(x)))


def rational(x: Fraction) -> fmpq:
    """As FLINT has it."""
    return fmpq(x.numerator, x.denominator)


def fraction(x: fmpq) -> Fraction:
    """As Python has it."""
    return Fraction(int(x.p), int(x.q))


def sign_at(polynomial: Poly, x: Fraction) -> int:
    """-1, 0 or 1."""
    value = polynomial(rational(x))
    return int(value > 0) - int(value < 0)


@dataclass(frozen=True, eq=False)
class Root:
    """The one zero of an irreducible polynomial in the open interval (low, high); a rational is low = high."""

    polynomial: Poly
    low: Fraction
    high: Fraction

    @classmethod
    def rational(cls, x: Fraction) -> Root:
        """A rational number."""
        return cls(fmpz_poly([-x.numerator, x.denominator]), x, x)

    def refined(self) -> Root:
        """The same in half the interval."""
        if self.low == self.high:
            return self
        middle = (self.low + self.high) / 2
        here = sign_at(self.polynomial, middle)
        if not here:
            return Root.rational(middle)
        below = here == sign_at(self.polynomial, self.high)
        return Root(self.polynomial, self.low if below else middle, middle if below else self.high)

    def within(self, width: Fraction) -> Root:
        """The same in an interval of at most this width."""
        root = self
        while root.high - root.low > width:
            root = root.refined()
        return root

    def against(self, other: Root) -> int:
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
            left, right = left.refined(), right.refined()
        return -1 if left.high <= right.low else 1

    def above(self, x: Fraction) -> bool:
        """Whether it is more than a rational."""
        return self.against(Root.rational(x)) > 0

    def below(self, x: Fraction) -> bool:
        """Whether it is less than a rational."""
        return self.against(Root.rational(x)) < 0

    def __float__(self) -> float:
        root = self.within(Fraction(1, 1 << 60))
        return float((root.low + root.high) / 2)


def sign_changes(polynomial: Poly, low: Fraction, high: Fraction | None) -> int:
    """Those of Descartes' rule for the open interval; high None: without end."""
    length = Fraction(1) if high is None else high - low
    moved = fmpq_poly(polynomial)(
        fmpq_poly([rational(low), rational(length)])
    ).numer()  # at low + t length, t > 0
    if high is not None:  # t in (0, 1)
        at = moved.coeffs()
        moved = fmpz_poly([0] * (polynomial.degree() + 1 - len(at)) + at[::-1])(fmpz_poly([1, 1]))
    signs = [value > 0 for value in moved.coeffs() if value]
    return sum(first != second for first, second in pairwise(signs))


def _turns(polynomial: Poly) -> Iterator[Root]:
    """The real numbers where a polynomial changes its sign."""
    for factor, multiplicity in polynomial.factor()[1]:
        if multiplicity % 2 and factor.degree() == 1:
            yield Root.rational(Fraction(-int(factor[0]), int(factor[1])))
        elif multiplicity % 2:
            for zero, _ in factor.complex_roots():
                if zero.imag == 0:
                    middle, radius = (
                        fraction(part.fmpq()) for part in (zero.real.mid(), zero.real.rad())
                    )
                    yield Root(factor, middle - radius, middle + radius)


def interval_around(
    polynomials: Iterable[Poly], x: Fraction, low: Root, high: Root | None
) -> tuple[Root, Root | None]:
    """The largest part of [low, high] around x in which no polynomial changes its sign; none is 0 at x."""
    for polynomial in polynomials:
        top = None if high is None else high.high
        inside = sign_changes(polynomial, low.low, x) or sign_changes(polynomial, x, top)
        for root in _turns(polynomial) if inside else ():
            if root.below(x):
                low = max(low, root, key=_order)
            elif high is None or root.against(high) < 0:
                high = root
    return low, high


_order = cmp_to_key(Root.against)
