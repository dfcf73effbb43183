"""Rational functions of e^ε, affine in δ, written as a person would: in words, LaTeX and Python.

Common factors stand in front, and whichever of these is shortest: (a + δ b)/d; 1 - (a + δ b)/d; c (1 - δ) a/d.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from math import gcd

from workbench.solvers.exact.polynomials import Affine, Poly

_INNER = re.compile(r"\([^()]*(?:\([^()]*\)[^()]*)*\)")  # what stands in brackets


@dataclass(frozen=True)
class Style:
    """How powers, products and quotients are written. power: of e^ε with its exponent as text, "" for 1."""

    power: Callable[[Fraction], str]
    delta: str
    product: str
    quotient: Callable[[str, str], str]
    brackets: tuple[str, str] = ("(", ")")

    def bracket_sum(self, text: str) -> str:
        """In brackets where it is a sum."""
        return f"{self.brackets[0]}{text}{self.brackets[1]}" if " " in text else text


_VAREPSILON = r"\varepsilon"


def _write_exponent(exponent: Fraction, letter: str) -> str:
    """A multiple of ε."""
    top, below = exponent.numerator, exponent.denominator
    return f"{'' if top == 1 else top}{letter}{'' if below == 1 else f'/{below}'}"


def _write_slash_quotient(top: str, below: str) -> str:
    """In one line: a sum in brackets, and a divisor of several factors."""
    plain = below.isdigit() or below == "e^ε" or _INNER.fullmatch(below)
    outside = _INNER.sub("", top)
    return f"{f'({top})' if ' + ' in outside or ' - ' in outside else top} / {below if plain else f'({below})'}"


PLAIN = Style(
    lambda power: "e^ε" if power == 1 else f"e^({_write_exponent(power, 'ε')})",
    "δ",
    "",
    _write_slash_quotient,
)
LATEX = Style(
    lambda power: f"e^{{{_write_exponent(power, _VAREPSILON)}}}", r"\delta", r"\,",
    lambda top, below: rf"\frac{{{top}}}{{{below}}}", (r"\left(", r"\right)"),
)  # fmt: skip
PYTHON = Style(
    lambda power: "x" if power == 1 else f"x**{power if power.denominator == 1 else f'({power})'}", "delta", " * ",
    lambda top, below: f"({top}) / ({below})",
)  # fmt: skip


def write_affine(value: Affine, style: Style = PLAIN, steps: int = 1) -> str:
    """A formula; its variable is x = e^(ε/steps)."""
    whole = _write_quotient(value.constant, value.slope, value.denominator, style, steps)
    rest = value.denominator - value.constant
    shorter = 0 < _count_terms(rest) < _count_terms(value.constant) and min(rest.coeffs()) >= 0
    if (value.denominator.degree() > 0 and shorter) or (
        value.slope and value.constant == value.denominator
    ):
        return f"1 - {_write_quotient(rest, -value.slope, value.denominator, style, steps)}"
    return whole


def _count_terms(polynomial: Poly) -> int:
    return sum(1 for value in polynomial.coeffs() if value)


def _write_quotient(constant: Poly, slope: Poly, over: Poly, style: Style, steps: int) -> str:
    """(constant + δ slope) / over."""
    top = _write_numerator(constant, slope, style, steps)
    if over.degree() == 0 and over[0] == 1:
        return top
    return style.quotient(top, _write_factored(over, style, steps))


def _write_numerator(constant: Poly, slope: Poly, style: Style, steps: int) -> str:
    if not slope:
        return _write_factored(constant, style, steps)
    if not constant:
        factor = style.bracket_sum(_write_factored(slope, style, steps))
        return style.delta if factor == "1" else f"{factor}{style.product or ' '}{style.delta}"
    if constant == -slope:
        less = f"{style.brackets[0]}1 - {style.delta}{style.brackets[1]}"
        factor = style.bracket_sum(_write_factored(constant, style, steps))
        return less if factor == "1" else f"{factor}{style.product}{less}"
    first, minus = _write_factored(constant, style, steps), slope.leading_coefficient() < 0
    second = _write_numerator(0 * constant, -slope if minus else slope, style, steps)
    return f"{first} {'-' if minus else '+'} {second}"


def _write_factored(polynomial: Poly, style: Style, steps: int) -> str:
    """A polynomial with its content and its power of x in front, where that is shorter."""
    plain = _write_polynomial_sum(polynomial, style, steps)
    values = [int(v) for v in polynomial.coeffs()]
    content, lowest = gcd(*values), next((k for k, v in enumerate(values) if v), 0)
    if sum(1 for v in values if v) < 2 or (content == 1 and not lowest):
        return plain
    inner = _write_polynomial_sum(polynomial.right_shift(lowest) // content, style, steps)
    front = [str(content)] if content != 1 else []
    front += [style.power(Fraction(lowest, steps))] if lowest else []
    factored = style.product.join([*front, f"{style.brackets[0]}{inner}{style.brackets[1]}"])
    return factored if len(factored) < len(plain) else plain


def _write_polynomial_sum(polynomial: Poly, style: Style, steps: int) -> str:
    """By falling powers."""
    text = ""
    for k in range(polynomial.degree(), -1, -1):
        value = int(polynomial[k])
        if not value:
            continue
        size = str(abs(value)) if abs(value) != 1 or k == 0 else ""
        term = style.product.join(
            filter(None, (size, style.power(Fraction(k, steps)) if k else ""))
        )
        if text:
            text += f" {'-' if value < 0 else '+'} {term}"
        else:
            text = f"-{term}" if value < 0 else term
    return text or "0"
