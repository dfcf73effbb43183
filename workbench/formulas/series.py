"""Compute the formulas of one question for many sizes n, and conjecture a formula for every n.

The conjecture describes the coefficients of the formulas as functions of n.

>>> import workbench as wb
>>> table = wb.formula("modulo", n=range(3, 21), max_shift=1, notion="pure")
>>> print(table.pattern()[0])  # doctest: +ELLIPSIS
conjecture for the last piece, holds exactly for n = 3..20 (fitted on 8 of them, ...
n = 0 mod 2: (Σ_(j=0..n/2 - 1) 2 e^(jε)) / (Σ_(j=0..n/2) c_j e^(jε), c_j = 2, but 1 at j = n/2)
n = 1 mod 2: ...

The numerator and the denominator of a formula are polynomials in e^ε, with a coefficient for each
power j. A conjecture states each coefficient as a polynomial in n, or in n and j. It is fitted to
the coefficients at some n and verified exactly at all other n. It is not proven.

Terms. A class of n has one remainder modulo the period: with period 2, the even n are one class and
the odd n the other. Each class has its own polynomials. Near both ends of a formula the
coefficients may follow other polynomials than between (`_MAX_EDGE_TERMS`).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any

from flint import fmpq, fmpq_mat

from workbench.errors import must
from workbench.exact.objects import Pair, Progress, Record, Strings, Values
from workbench.formulas.formula_object import Formula
from workbench.formulas.text import PLAIN, join_signed_terms, write_multiple
from workbench.io.result import Result, limit_message_rate
from workbench.solvers.exact.polynomials import to_fraction

if TYPE_CHECKING:
    import pandas as pd

    from workbench.formulas.pieces import Piece
    from workbench.solvers.exact.polynomials import Poly

# The factors of monomials such as 1, n, n², in their order.
MonomialWeights = tuple[Fraction, ...]

_INTEGER_RANGE = re.compile(r"(\d+)\.\.(\d+)")  # For example 3..20.
# For example 0..3..0..12: the lists 0..3, 0..4, ..., 0..12.
_LIST_RANGE = re.compile(r"(-?\d+)\.\.(-?\d+)\.\.\1\.\.(-?\d+)")
# The periods of a quasi-polynomial in n, in the order in which they are tried.
_PERIODS = (1, 2, 3, 4)
# Each class of n is fitted on this many n. They determine degree 3 in n, or degree 2 in n and j.
_FITTED_PER_CLASS = 4
_MIN_VERIFIED_COUNT = 5  # A conjecture is verified on at least this many other n.
# At most this many of the lowest and of the highest powers have separate polynomials in n.
_MAX_EDGE_TERMS = 2
# The exponents (of n, of j) of the monomials, in the order in which they are added.
_ONE_VARIABLE = ((0, 0), (1, 0), (2, 0), (3, 0))
_TWO_VARIABLES = ((0, 0), (1, 0), (0, 1), (2, 0), (1, 1), (0, 2))


@dataclass(frozen=True)
class Conjecture:
    """A conjecture about one piece of the formulas of a series.

    Attributes:
        piece: The position of the piece from the end: 1 for the last piece.
        cases: The rising n for which the conjecture holds exactly.
        fitted_count: The number of n to which it was fitted.
        class_formulas: For each class of n modulo the period, the text of its formula.
    """

    piece: int
    cases: tuple[int, ...]
    fitted_count: int
    class_formulas: Strings

    def __str__(self) -> str:
        name = "last piece" if self.piece == 1 else f"piece {self.piece} from the last"
        verified_count = len(self.cases) - self.fitted_count
        head = (
            f"conjecture for the {name}, holds exactly for n = {self.cases[0]}..{self.cases[-1]} "
            f"(fitted on {self.fitted_count} of them, verified on the {verified_count} others)"
        )
        return "\n".join([head, *self.class_formulas])


@dataclass(frozen=True, repr=False)
class FormulaSeries:
    """The formulas of one question for several values of an option.

    Attributes:
        name: The name of the option.
        formulas: The formula of each value. The values are rising integers.
    """

    name: str
    formulas: Mapping[int, Formula]

    def __getitem__(self, value: int) -> Formula:
        return self.formulas[value]

    def __repr__(self) -> str:
        return f"FormulaSeries({self.name} = {min(self.formulas)}..{max(self.formulas)})"

    def __str__(self) -> str:
        lines = [f"{self.name} = {value}: {formula}" for value, formula in self.formulas.items()]
        return "\n".join(lines)

    @property
    def result(self) -> Result:
        """Return the rows of all formulas, with the value of the option in front."""
        rows = []
        for value, formula in self.formulas.items():
            rows += [{self.name: value, **row} for row in formula.rows]
        return Result(f"formulas by {self.name}", rows, name="formulas")

    def to_frame(self) -> pd.DataFrame:
        """Return the rows of all formulas, with the value of the option in front."""
        return self.result.to_frame()

    def save(self, path: str | Path) -> list[Path]:
        """Write the rows to a file and return the files that were written.

        Args:
            path: The file: .csv, .tex or .json.

        Raises:
            InvalidRequest: The suffix is not supported.
            OSError: The file cannot be written.
        """
        return self.result.save(path)

    def to_dict(self) -> Record:
        """Return the formulas as JSON-ready values."""
        formulas = {str(value): formula.to_dict() for value, formula in self.formulas.items()}
        return {"name": self.name, "formulas": formulas}

    def pattern(self) -> list[Conjecture]:
        """Return conjectures about the pieces as functions of n, the last piece first.

        A piece has no conjecture if no formula that is fitted to some n holds for all other n, at
        least five.
        """
        pieces = {}
        for value, formula in self.formulas.items():
            pieces[value] = [piece for piece in formula.pieces if not piece.has_delta_interval]
        piece_count = min(map(len, pieces.values()), default=0)
        conjectures = []
        for position in range(1, piece_count + 1):
            counted_cases = {value: parts[-position] for value, parts in pieces.items()}
            conjecture = _find_conjecture(position, counted_cases)
            if conjecture is not None:
                conjectures.append(conjecture)
        return conjectures


def read_ranged_option(
    counts: Collection[str], values: Values
) -> tuple[str, dict[int, Any]] | None:
    """Find the first option that has a range of values.

    Args:
        counts: The names of the options that are integers. Their ranges are "3..20" or a `range`;
            those of other options are "0..3..0..12".
        values: The values of the options.

    Returns:
        The name of the option and its value for each n; None if no option has a range.

    Raises:
        InvalidRequest: The range is empty.
    """
    for name, value in values.items():
        by_n = _expand_range(value, is_count=name in counts)
        if by_n is None:
            continue
        if not by_n:
            must(name, "a range that rises, such as 3..20", "an empty one")
        return name, by_n
    return None


def _expand_range(value: Any, *, is_count: bool) -> dict[int, Any] | None:
    """Return the value of an option for each n of its range; None if it has no range.

    For "0..3..0..12", n is the end of the list, and the value the text "0..n".
    """
    if is_count and isinstance(value, range):
        return {n: n for n in value}
    text = value.replace(" ", "") if isinstance(value, str) else ""
    if is_count and (numbers := _INTEGER_RANGE.fullmatch(text)):
        return {n: n for n in range(int(numbers[1]), int(numbers[2]) + 1)}
    if lists := _LIST_RANGE.fullmatch(text):
        lengths = range(int(lists[2]), int(lists[3]) + 1)
        return {n: f"{lists[1]}..{n}" for n in lengths}
    return None


def solve_series(
    name: str,
    values: Iterable[int],
    solve: Callable[[int], Formula],
    progress: Progress | None = None,
) -> FormulaSeries:
    """Compute the formulas of several values of an option.

    After Ctrl-C the series has the formulas that are proven.

    Args:
        name: The name of the option that has several values, such as n.
        values: Its values, rising integers.
        solve: Function from a value to its formula.
        progress: Called every few seconds with a sentence about what is proven.

    Raises:
        KeyboardInterrupt: Ctrl-C was pressed before the first formula was proven.
    """
    formulas: dict[int, Formula] = {}
    report = limit_message_rate(progress)
    try:
        for value in values:
            formulas[value] = solve(value)
            report(f"{name} = {value} is proven.")
    except KeyboardInterrupt:
        if not formulas:
            raise
    return FormulaSeries(name, formulas)


# Conjectures.


def _find_conjecture(position: int, pieces: Mapping[int, Piece]) -> Conjecture | None:
    """Return the conjecture of the shortest period that fits the pieces of all n.

    position: the position of the pieces from the end.
    """
    for period in _PERIODS:
        class_formulas = _fit_classes(pieces, period)
        if class_formulas is None:
            continue
        class_sizes = [sum(n % period == remainder for n in pieces) for remainder in range(period)]
        # Every class is fitted on its first n.
        fitted_count = sum(min(_FITTED_PER_CLASS, size) for size in class_sizes)
        if len(pieces) - fitted_count >= _MIN_VERIFIED_COUNT:
            return Conjecture(position, tuple(sorted(pieces)), fitted_count, class_formulas)
    return None


def _fit_classes(pieces: Mapping[int, Piece], period: int) -> Strings | None:
    """Return the formula of each class of n modulo a period; None if one class has none."""
    texts = []
    for remainder in range(period):
        members = {n: piece for n, piece in pieces.items() if n % period == remainder}
        text = _fit_class(members)
        if text is None:
            return None
        texts.append(text if period == 1 else f"n = {remainder} mod {period}: {text}")
    return tuple(texts)


def _fit_class(pieces: Mapping[int, Piece]) -> str | None:
    """Return the formula of a class of n; None if no formula fits."""
    if len(pieces) <= _FITTED_PER_CLASS:
        return None
    numerators = {}
    denominators = {}
    for n, piece in pieces.items():
        if piece.value is None:
            return None
        numerators[n] = piece.value.constant
        denominators[n] = piece.value.denominator
    numerator = _fit_polynomials(numerators)
    denominator = _fit_polynomials(denominators)
    if numerator is None or denominator is None:
        return None
    return numerator if denominator == "1" else f"({numerator}) / ({denominator})"


def _fit_polynomials(polynomials: Mapping[int, Poly]) -> str | None:
    """Return one text for the polynomials of all n; None if no text fits all of them.

    The lowest and the highest power, and the coefficients at the edges, are polynomials in n. The
    coefficients between are polynomials in n and j. As few edge coefficients as possible are used.
    """
    lowest_degrees = {n: _lowest_power(polynomial) for n, polynomial in polynomials.items()}
    degrees = {n: polynomial.degree() for n, polynomial in polynomials.items()}
    first = _fit_in_n(lowest_degrees)
    last = _fit_in_n(degrees)
    if first is None or last is None:
        return None
    for edge in range(_MAX_EDGE_TERMS + 1):
        first_coefficients = []
        last_coefficients = []
        for offset in range(edge):
            low_values = {}
            high_values = {}
            for n, polynomial in polynomials.items():
                low_values[n] = int(polynomial[lowest_degrees[n] + offset])
                high_values[n] = int(polynomial[degrees[n] - offset])
            first_coefficients.append(_fit_in_n(low_values))
            last_coefficients.append(_fit_in_n(high_values))
        inner_values = {}
        for n, polynomial in polynomials.items():
            for j in range(lowest_degrees[n] + edge, degrees[n] - edge + 1):
                inner_values[n, j] = int(polynomial[j])
        middle = _fit_monomials(inner_values, _TWO_VARIABLES) if inner_values else ()
        has_edges = None not in first_coefficients and None not in last_coefficients
        if middle is not None and has_edges:
            ends = (first_coefficients, last_coefficients)
            return _write_sum(first, last, ends, middle)
    return None


def _lowest_power(polynomial: Poly) -> int:
    """Return the lowest power with a coefficient that is not 0."""
    return next(power for power, value in enumerate(polynomial.coeffs()) if value)


def _fit_in_n(values: Mapping[int, int]) -> MonomialWeights | None:
    """Return the simplest polynomial in n that holds for the values of all n; None without one."""
    return _fit_monomials({(n, 0): value for n, value in values.items()}, _ONE_VARIABLE)


def _fit_monomials(values: Mapping[Pair, int], monomials: Sequence[Pair]) -> MonomialWeights | None:
    """Return the weights of the fewest first monomials whose sum holds for all values.

    They are fitted to the values of the first _FITTED_PER_CLASS n. values: by (n, j); monomials:
    exponents of n and of j. The result is None if no combination holds for all values.
    """
    fitted_n = sorted({n for n, _ in values})[:_FITTED_PER_CLASS]
    for count in range(1, len(monomials) + 1):
        used = monomials[:count]
        rows = []
        for (n, j), value in values.items():
            if n in fitted_n:
                rows.append([fmpq(n**a * j**b) for a, b in used] + [fmpq(value)])
        # The equations have one solution if their reduced form is the identity, with the solution
        # in the last column.
        reduced_rows, rank = fmpq_mat(rows).rref()
        if rank != count or any(reduced_rows[k, k] != 1 for k in range(count)):
            continue
        weights = tuple(to_fraction(reduced_rows[k, count]) for k in range(count))
        if all(_evaluate(weights, used, n, j) == value for (n, j), value in values.items()):
            return weights
    return None


def _evaluate(weights: MonomialWeights, monomials: Sequence[Pair], n: int, j: int) -> Fraction:
    """Return the value of a combination of monomials at n and j."""
    terms = zip(weights, monomials, strict=True)
    return sum((weight * n**a * j**b for weight, (a, b) in terms), Fraction(0))


def _write_sum(
    first: MonomialWeights,
    last: MonomialWeights,
    ends: tuple[Sequence[Any], Sequence[Any]],
    middle: MonomialWeights,
) -> str:
    """Write a sum of powers of e^ε whose coefficients are polynomials in n and j.

    first, last: the lowest and the highest power; ends: the separate coefficients of the lowest and
    of the highest powers, from the end inwards; middle: the coefficients between, () for none.
    """
    low = _write_polynomial(first, _ONE_VARIABLE)
    high = _write_polynomial(last, _ONE_VARIABLE)
    first_coefficients, last_coefficients = ends
    if low == high:
        # There is one power only.
        if first_coefficients:
            coefficient = _write_polynomial(first_coefficients[0], _ONE_VARIABLE)
        else:
            coefficient = _write_polynomial(middle, _TWO_VARIABLES)
        if low == "0":
            return coefficient
        return f"{PLAIN.bracket_sum(coefficient)} e^({PLAIN.bracket_sum(low)}ε)"
    inner = _write_polynomial(middle, _TWO_VARIABLES) if middle else "0"
    if first_coefficients:
        text = f"Σ_(j={low}..{high}) c_j e^(jε), c_j = {inner}"
    else:
        text = f"Σ_(j={low}..{high}) {PLAIN.bracket_sum(inner)} e^(jε)"
    exceptions = []
    for end, sign, coefficients in (
        (low, "+", first_coefficients),
        (high, "-", last_coefficients),
    ):
        for offset, weights in enumerate(coefficients):
            coefficient = _write_polynomial(weights, _ONE_VARIABLE)
            if coefficient != inner:
                power = end
                if offset:
                    power += f" {sign} {offset}"
                exceptions.append(f"{coefficient} at j = {power}")
    if exceptions:
        text += f", but {', '.join(exceptions)}"
    return text


def _write_polynomial(weights: MonomialWeights, monomials: Sequence[Pair]) -> str:
    """Write a polynomial in n and j."""
    terms = []
    # The weights belong to the first monomials. Terms of higher degree are written first.
    for weight, (a, b) in reversed([*zip(weights, monomials, strict=False)]):
        if not weight:
            continue
        letters = _write_power("n", a) + _write_power("j", b)
        terms.append((weight < 0, write_multiple(abs(weight), letters)))
    return join_signed_terms(terms)


def _write_power(letter: str, power: int) -> str:
    """Write a power of a letter; "" for power 0."""
    if power == 0:
        return ""
    if power == 1:
        return letter
    return f"{letter}^{power}"
