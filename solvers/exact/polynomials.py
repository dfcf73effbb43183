"""Rational functions of one variable x, their signs and their real roots, in exact arithmetic.

    Affine              a rational function of x that is also affine in a second variable δ
    Root                a real algebraic number, such as the square root of 2
    find_sign_interval  the interval around a point in which polynomials keep their signs

A root is stored as an irreducible polynomial and an interval with rational ends that contains
exactly one zero of it. FLINT finds these intervals. Most polynomials have no root in the interval
of interest. This is decided by Descartes' rule: a Möbius transformation maps the interval to
(0, ∞), and if the coefficients then have no change of sign, there is no root (Vincent; Collins and
Akritas).
"""

from __future__ import annotations

import copyreg
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import cmp_to_key
from itertools import pairwise, product
from typing import TypeAlias

from flint import fmpq, fmpq_poly, fmpz_poly

Poly: TypeAlias = fmpz_poly
Interval = tuple[Fraction, Fraction]  # The lower and the upper end.

ZERO = fmpz_poly([])
ONE = fmpz_poly([1])
_FLOAT_WIDTH = Fraction(1, 1 << 60)  # A root is converted to float from an interval this wide.


def _reduce_polynomial(polynomial: Poly) -> tuple[type[Poly], tuple[list[int]]]:
    """Return a polynomial as its coefficients, for pickling. FLINT's own type refuses it."""
    return fmpz_poly, ([int(coefficient) for coefficient in polynomial.coeffs()],)


copyreg.pickle(fmpz_poly, _reduce_polynomial)


@dataclass(frozen=True)
class Affine:
    """A rational function of x, affine in δ: (constant + δ slope) / denominator.

    It is in lowest terms, and the denominator is positive for large x.

    Attributes:
        constant: polynomial.
        slope: polynomial.
        denominator: polynomial.
    """

    constant: Poly
    slope: Poly
    denominator: Poly

    @classmethod
    def from_ratio(cls, constant: Poly, slope: Poly, over: Poly) -> Affine:
        """Return (constant + δ slope) / over in lowest terms.

        Args:
            constant: polynomial.
            slope: polynomial.
            over: polynomial, not 0.
        """
        if not constant and not slope:
            return cls(ZERO, ZERO, ONE)
        is_unit = over.degree() == 0 and abs(over[0]) == 1
        common = over if is_unit else constant.gcd(slope).gcd(over)
        if over.leading_coefficient() < 0 < common.leading_coefficient():
            common = -common  # The new denominator is then positive for large x.
        return cls(constant // common, slope // common, over // common)

    @classmethod
    def from_number(cls, value: Fraction | int) -> Affine:
        """Return a constant function.

        Args:
            value: the value of the function everywhere.
        """
        return cls(fmpz_poly([value.numerator]), ZERO, fmpz_poly([value.denominator]))

    def __add__(self, other: Affine) -> Affine:
        if self.denominator == other.denominator:
            return Affine.from_ratio(
                self.constant + other.constant, self.slope + other.slope, self.denominator
            )
        common = self.denominator.gcd(other.denominator)
        self_factor = other.denominator // common
        other_factor = self.denominator // common
        return Affine.from_ratio(
            self.constant * self_factor + other.constant * other_factor,
            self.slope * self_factor + other.slope * other_factor,
            self.denominator * self_factor,
        )

    def __sub__(self, other: Affine) -> Affine:
        return self + other.multiply(-ONE)

    def multiply(self, factor: Poly, over: Poly = ONE) -> Affine:
        """Multiply by factor / over.

        Args:
            factor: polynomial.
            over: polynomial, not 0.
        """
        return Affine.from_ratio(
            self.constant * factor, self.slope * factor, self.denominator * over
        )

    def with_delta(self, delta: Fraction) -> Affine:
        """Substitute a number for δ.

        Args:
            delta: value of δ.
        """
        return self.substitute_delta(fmpz_poly([delta.numerator]), fmpz_poly([delta.denominator]))

    def substitute_delta(self, numerator: Poly, denominator: Poly) -> Affine:
        """Substitute a ratio of polynomials for δ.

        Args:
            numerator: polynomial.
            denominator: polynomial, not 0.
        """
        if not self.slope:
            return self
        return Affine.from_ratio(
            self.constant * denominator + self.slope * numerator,
            ZERO,
            self.denominator * denominator,
        )

    def __call__(self, x: Fraction, delta: Fraction = Fraction(0)) -> Fraction:
        """Return the value at x and δ. Raises ZeroDivisionError at a pole."""
        constant = evaluate_polynomial(self.constant, x)
        slope = evaluate_polynomial(self.slope, x)
        return (constant + delta * slope) / evaluate_polynomial(self.denominator, x)

    def derivative(self, steps: int = 1) -> Affine:
        """Return the derivative with respect to ε, where x = e^(ε/steps).

        It is x/steps times the derivative with respect to x.

        Args:
            steps: integer >= 1.
        """
        denominator = self.denominator
        constant = (
            self.constant.derivative() * denominator - self.constant * denominator.derivative()
        )
        slope = self.slope.derivative() * denominator - self.slope * denominator.derivative()
        x = fmpz_poly([0, 1])
        return Affine.from_ratio(constant * x, slope * x, denominator * denominator * steps)

    def delta_derivative(self) -> Affine:
        """Return the derivative with respect to δ."""
        return Affine.from_ratio(self.slope, ZERO, self.denominator)

    def enclose(self, low: Fraction, high: Fraction, delta: Fraction) -> Interval | None:
        """Return an interval that contains all values for x in an interval.

        Args:
            low: lower end of the interval of x, positive.
            high: upper end of the interval of x.
            delta: value of δ.

        Returns:
            The interval, or None if there may be a pole.
        """
        function = self.with_delta(delta)
        numerator_ends = _enclose_polynomial(function.constant, low, high)
        denominator_ends = _enclose_polynomial(function.denominator, low, high)
        if denominator_ends[0] <= 0 <= denominator_ends[1]:
            return None
        ratios = [
            numerator / denominator
            for numerator, denominator in product(numerator_ends, denominator_ends)
        ]
        return min(ratios), max(ratios)

    @property
    def sign_polynomial(self) -> Poly:
        """Return a polynomial that has the sign of the function wherever there is no pole.

        The function must not depend on δ (slope = 0).
        """
        if self.denominator.degree() == 0:
            return self.constant
        return self.constant * self.denominator


def _enclose_polynomial(polynomial: Poly, low: Fraction, high: Fraction) -> Interval:
    """Return an interval that contains all values for x in an interval of positive numbers.

    Increasing and decreasing terms are bounded separately.
    """
    coefficients = polynomial.coeffs()
    increasing = fmpz_poly([value if value > 0 else 0 for value in coefficients])
    decreasing = fmpz_poly([0 if value > 0 else value for value in coefficients])
    return (
        evaluate_polynomial(increasing, low) + evaluate_polynomial(decreasing, high),
        evaluate_polynomial(increasing, high) + evaluate_polynomial(decreasing, low),
    )


def evaluate_polynomial(polynomial: Poly, x: Fraction) -> Fraction:
    """Return the value of a polynomial at a rational.

    Args:
        polynomial: polynomial with integer coefficients.
        x: the rational at which it is evaluated.
    """
    return to_fraction(polynomial(to_flint(x)))


def to_flint(x: Fraction) -> fmpq:
    """Convert a rational to FLINT's type.

    Args:
        x: the rational to convert.
    """
    return fmpq(x.numerator, x.denominator)


def to_fraction(x: fmpq) -> Fraction:
    """Convert a rational of FLINT to Python's type.

    Args:
        x: the rational to convert.
    """
    return Fraction(int(x.p), int(x.q))


def sign_at(polynomial: Poly, x: Fraction) -> int:
    """Return the sign of a polynomial at a rational: -1, 0 or 1.

    Args:
        polynomial: polynomial with integer coefficients.
        x: the rational at which it is evaluated.
    """
    value = polynomial(to_flint(x))
    return int(value > 0) - int(value < 0)


@dataclass(frozen=True, eq=False)
class Root:
    """The one zero of an irreducible polynomial in the open interval (low, high), or a rational.

    For example, the square root of 2 is Root(x² - 2, 1, 2).

    Attributes:
        polynomial: irreducible polynomial with integer coefficients.
        low, high: ends of the interval. They are equal for a rational.
    """

    polynomial: Poly
    low: Fraction
    high: Fraction

    @classmethod
    def from_rational(cls, x: Fraction) -> Root:
        """Return a rational number as a root.

        Args:
            x: the rational to convert.
        """
        return cls(fmpz_poly([-x.numerator, x.denominator]), x, x)

    def halve(self) -> Root:
        """Return the same root in half the interval."""
        if self.low == self.high:
            return self
        middle = (self.low + self.high) / 2
        middle_sign = sign_at(self.polynomial, middle)
        if not middle_sign:
            return Root.from_rational(middle)
        if middle_sign == sign_at(self.polynomial, self.high):
            return Root(self.polynomial, self.low, middle)
        return Root(self.polynomial, middle, self.high)

    def refine_to(self, width: Fraction) -> Root:
        """Return the same root in a small interval.

        Args:
            width: largest width of the interval, positive.
        """
        root = self
        while root.high - root.low > width:
            root = root.halve()
        return root

    def compare(self, other: Root) -> int:
        """Return -1, 0 or 1: this root is less than, equal to or greater than another one.

        Args:
            other: another root.
        """
        left = self
        right = other
        if left.low == left.high == right.low == right.high:
            return 0
        # Halve both intervals until they are disjoint, or share a zero.
        while left.high > right.low and right.high > left.low:
            if left.polynomial == right.polynomial:
                low = max(left.low, right.low)
                high = min(left.high, right.high)
                if sign_at(left.polynomial, low) != sign_at(left.polynomial, high):
                    return 0
            left = left.halve()
            right = right.halve()
        return -1 if left.high <= right.low else 1

    def is_above(self, x: Fraction) -> bool:
        """Return whether the root is greater than a rational.

        Args:
            x: the rational to compare with.
        """
        return self.compare(Root.from_rational(x)) > 0

    def is_below(self, x: Fraction) -> bool:
        """Return whether the root is less than a rational.

        Args:
            x: the rational to compare with.
        """
        return self.compare(Root.from_rational(x)) < 0

    def __float__(self) -> float:
        root = self.refine_to(_FLOAT_WIDTH)
        return float((root.low + root.high) / 2)


def count_sign_changes(polynomial: Poly, low: Fraction, high: Fraction | None) -> int:
    """Return an upper bound on the number of roots in an open interval, by Descartes' rule.

    The interval is mapped to (0, ∞). The bound is the number of sign changes in the coefficients of
    the transformed polynomial. If it is 0, there is no root.

    Args:
        polynomial: polynomial with integer coefficients.
        low: lower end.
        high: upper end, or None for infinity.
    """
    length = Fraction(1) if high is None else high - low
    # The polynomial at low + t length, for t > 0.
    transformed = fmpq_poly(polynomial)(fmpq_poly([to_flint(low), to_flint(length)])).numer()
    if high is not None:  # The interval (0, 1) of t is mapped to the positive numbers.
        coefficients = transformed.coeffs()
        padding = [0] * (polynomial.degree() + 1 - len(coefficients))
        transformed = fmpz_poly(padding + coefficients[::-1])(fmpz_poly([1, 1]))
    signs = [value > 0 for value in transformed.coeffs() if value]
    return sum(first != second for first, second in pairwise(signs))


def _iterate_sign_changes(polynomial: Poly) -> Iterator[Root]:
    """Yield the real numbers where a polynomial changes its sign, that is, zeros of odd order."""
    for factor, multiplicity in polynomial.factor()[1]:
        if multiplicity % 2 == 0:
            continue
        if factor.degree() == 1:
            yield Root.from_rational(Fraction(-int(factor[0]), int(factor[1])))
            continue
        for zero, _ in factor.complex_roots():
            if zero.imag == 0:
                middle = to_fraction(zero.real.mid().fmpq())
                radius = to_fraction(zero.real.rad().fmpq())
                yield Root(factor, middle - radius, middle + radius)


def find_sign_interval(
    polynomials: Iterable[Poly], x: Fraction, low: Root, high: Root | None
) -> tuple[Root, Root | None]:
    """Return the largest part of [low, high] around x in which no polynomial changes its sign.

    Args:
        polynomials: none of them is 0 at x.
        x: a rational in the interval.
        low: lower end.
        high: upper end, or None for infinity.
    """
    for polynomial in polynomials:
        top = None if high is None else high.high
        has_roots = count_sign_changes(polynomial, low.low, x) or count_sign_changes(
            polynomial, x, top
        )
        if not has_roots:
            continue
        for root in _iterate_sign_changes(polynomial):
            if root.is_below(x):
                low = max(low, root, key=root_sort_key)
            elif high is None or root.compare(high) < 0:
                high = root
    return low, high


root_sort_key = cmp_to_key(Root.compare)  # A key for `sorted`, `min` and `max` of roots.
