"""Write rational functions of e^ε, affine in δ, in plain text, LaTeX and Python.

For example, `write_affine` writes (2 x - δ)/(x + 1) with x = e^ε as "(2e^ε - δ) / (e^ε + 1)".

Common factors are written in front. With polynomials a, b and d in e^ε, a function has one of the
forms (a + δ b)/d, 1 - (a + δ b)/d and (1 - δ) a/d.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from fractions import Fraction
from math import gcd

from workbench.solvers.exact.polynomials import Affine, Poly

# A pair of parentheses with its content, which may contain one further level of parentheses.
_PARENTHESES = re.compile(r"\([^()]*(?:\([^()]*\)[^()]*)*\)")
_VAREPSILON = r"\varepsilon"


@dataclass(frozen=True)
class Style:
    """The way in which powers, products and quotients are written.

    Attributes:
        power: Writes e^(exponent ε) for an exponent.
        delta: The text of δ.
        product: The text between two factors.
        quotient: Writes a quotient from its numerator and its denominator.
        brackets: The opening and the closing bracket.
    """

    power: Callable[[Fraction], str]
    delta: str
    product: str
    quotient: Callable[[str, str], str]
    brackets: tuple[str, str] = ("(", ")")

    def bracket_sum(self, text: str) -> str:
        """Put a text in brackets if it is a sum.

        Args:
            text: A sum or a product. Only sums contain spaces.
        """
        return self.bracket(text) if " " in text else text

    def bracket(self, text: str) -> str:
        """Put a text in brackets.

        Args:
            text: Any text.
        """
        opening, closing = self.brackets
        return f"{opening}{text}{closing}"


def write_multiple(factor: Fraction, letters: str) -> str:
    """Write a positive multiple of letters: 2n/3 for 2/3 and "n".

    Args:
        factor: A positive rational.
        letters: The letters, such as "n" or "nj"; "" to write the factor alone.
    """
    text = letters
    if factor.numerator != 1 or not letters:
        text = f"{factor.numerator}{letters}"
    if factor.denominator != 1:
        text += f"/{factor.denominator}"
    return text


def join_signed_terms(terms: Iterable[tuple[bool, str]]) -> str:
    """Write a sum: "a - b" for the terms (False, "a") and (True, "b").

    Args:
        terms: For each term, whether it is negative, and its text without sign.

    Returns:
        The sum; "0" for no terms.
    """
    text = ""
    for is_negative, term in terms:
        if text and is_negative:
            text += f" - {term}"
        elif text:
            text += f" + {term}"
        elif is_negative:
            text = f"-{term}"
        else:
            text = term
    return text or "0"


def _write_slash_quotient(numerator: str, denominator: str) -> str:
    """Write a quotient on one line, with the parentheses that it needs."""
    is_single = denominator.isdigit() or denominator == "e^ε"
    if not is_single and not _PARENTHESES.fullmatch(denominator):
        denominator = f"({denominator})"
    outer_text = _PARENTHESES.sub("", numerator)
    if " + " in outer_text or " - " in outer_text:
        numerator = f"({numerator})"
    return f"{numerator} / {denominator}"


def _write_plain_power(power: Fraction) -> str:
    """Write a power of e^ε in plain text."""
    if power == 1:
        return "e^ε"
    return f"e^({write_multiple(power, 'ε')})"


def _write_latex_power(power: Fraction) -> str:
    """Write a power of e^ε in LaTeX."""
    return f"e^{{{write_multiple(power, _VAREPSILON)}}}"


def _write_latex_quotient(numerator: str, denominator: str) -> str:
    """Write a quotient in LaTeX."""
    return rf"\frac{{{numerator}}}{{{denominator}}}"


def _write_python_power(power: Fraction) -> str:
    """Write a power of x in Python."""
    if power == 1:
        return "x"
    if power.denominator == 1:
        return f"x**{power}"
    return f"x**({power})"


def _write_python_quotient(numerator: str, denominator: str) -> str:
    """Write a quotient in Python."""
    return f"({numerator}) / ({denominator})"


PLAIN = Style(_write_plain_power, delta="δ", product="", quotient=_write_slash_quotient)
LATEX = Style(
    _write_latex_power,
    delta=r"\delta",
    product=r"\,",
    quotient=_write_latex_quotient,
    brackets=(r"\left(", r"\right)"),
)
PYTHON = Style(_write_python_power, delta="delta", product=" * ", quotient=_write_python_quotient)


def write_affine(value: Affine, style: Style = PLAIN, steps: int = 1) -> str:
    """Write a rational function of e^ε that is affine in δ.

    Args:
        value: The function of x and δ.
        style: PLAIN, LATEX or PYTHON.
        steps: The number of steps into which ε is divided: x = e^(ε/steps).
    """
    # At δ = 0 the function is constant/denominator = 1 - remainder/denominator.
    remainder = value.denominator - value.constant
    has_fewer_terms = 0 < _count_terms(remainder) < _count_terms(value.constant)
    is_shorter = has_fewer_terms and min(remainder.coeffs()) >= 0
    is_one_minus_delta = value.slope and value.constant == value.denominator
    if (value.denominator.degree() > 0 and is_shorter) or is_one_minus_delta:
        return f"1 - {_write_quotient(remainder, -value.slope, value.denominator, style, steps)}"
    return _write_quotient(value.constant, value.slope, value.denominator, style, steps)


def _count_terms(polynomial: Poly) -> int:
    """Return the number of coefficients that are not 0."""
    return sum(1 for value in polynomial.coeffs() if value)


def _write_quotient(
    constant: Poly, slope: Poly, denominator: Poly, style: Style, steps: int
) -> str:
    """Write (constant + δ slope) / denominator."""
    numerator = _write_numerator(constant, slope, style, steps)
    if denominator.degree() == 0 and denominator[0] == 1:
        return numerator
    return style.quotient(numerator, _write_factored(denominator, style, steps))


def _write_numerator(constant: Poly, slope: Poly, style: Style, steps: int) -> str:
    """Write constant + δ slope."""
    if not slope:
        return _write_factored(constant, style, steps)
    if not constant:
        factor = style.bracket_sum(_write_factored(slope, style, steps))
        if factor == "1":
            return style.delta
        return f"{factor}{style.product or ' '}{style.delta}"
    if constant == -slope:
        one_minus_delta = style.bracket(f"1 - {style.delta}")
        factor = style.bracket_sum(_write_factored(constant, style, steps))
        return one_minus_delta if factor == "1" else f"{factor}{style.product}{one_minus_delta}"
    first = _write_factored(constant, style, steps)
    # The term of δ is written alone, with the constant part 0 * constant, the polynomial 0.
    if slope.leading_coefficient() < 0:
        return f"{first} - {_write_numerator(0 * constant, -slope, style, steps)}"
    return f"{first} + {_write_numerator(0 * constant, slope, style, steps)}"


def _write_factored(polynomial: Poly, style: Style, steps: int) -> str:
    """Write a polynomial, with a common number and power of x in front if that is shorter."""
    expanded_text = _write_polynomial_sum(polynomial, style, steps)
    coefficients = [int(value) for value in polynomial.coeffs()]
    common_divisor = gcd(*coefficients)
    lowest_power = next((power for power, value in enumerate(coefficients) if value), 0)
    has_factor = common_divisor != 1 or lowest_power > 0
    if _count_terms(polynomial) < 2 or not has_factor:
        return expanded_text
    reduced_polynomial = polynomial.right_shift(lowest_power) // common_divisor
    inner = _write_polynomial_sum(reduced_polynomial, style, steps)
    factors = []
    if common_divisor != 1:
        factors.append(str(common_divisor))
    if lowest_power:
        factors.append(style.power(Fraction(lowest_power, steps)))
    factored_text = style.product.join([*factors, style.bracket(inner)])
    return min(expanded_text, factored_text, key=len)


def _write_polynomial_sum(polynomial: Poly, style: Style, steps: int) -> str:
    """Write a polynomial by falling powers."""
    terms = []
    for power in range(polynomial.degree(), -1, -1):
        value = int(polynomial[power])
        if not value:
            continue
        factors = []
        if abs(value) != 1 or power == 0:
            factors.append(str(abs(value)))
        if power:
            factors.append(style.power(Fraction(power, steps)))
        terms.append((value < 0, style.product.join(factors)))
    return join_signed_terms(terms)
