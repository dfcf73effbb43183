"""Formulas of one question for many n: a table, and what their coefficients seem to be as functions of n.

>>> import workbench as wb
>>> table = wb.formula("modulo", n=range(3, 21), max_shift=1, notion="pure")
>>> print(table.pattern()[0])  # doctest: +ELLIPSIS
conjecture for the last piece, holds exactly for n = 3..20 (fitted on 8 of them, verified on the 10 others)
n = 0 mod 2: (Σ_(j=0..n/2 - 1) 2 e^(jε)) / (Σ_(j=0..n/2) c_j e^(jε), c_j = 2, but 1 at j = n/2)
n = 1 mod 2: ...

A conjecture is what exact polynomials in n, and in n and the position j of a power, through the coefficients of some n
give for all others: verified case by case, never proven.
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
from workbench.io.result import Result, limit_message_rate
from workbench.solvers.exact.polynomials import to_fraction

if TYPE_CHECKING:
    import pandas as pd

    from workbench.formulas.pieces import Piece
    from workbench.solvers.exact.polynomials import Poly

_INTEGER_RANGE = re.compile(r"(\d+)\.\.(\d+)")
_LIST_RANGE = re.compile(r"(-?\d+)\.\.(-?\d+)\.\.\1\.\.(-?\d+)")
_PERIODS = (1, 2, 3, 4)  # of a quasi-polynomial in n
_FITTED_PER_CLASS = (
    4  # n of each class that are fitted, for degree 3 in n; of two variables degree 2
)
_MIN_VERIFIED_COUNT = 5  # n on which a conjecture is verified at least
_MAX_EDGE_TERMS = 2  # powers at either end whose coefficients may be functions of n of their own


@dataclass(frozen=True)
class Conjecture:
    """piece: 1 for the last one, 2 for that before it, ..; cases: the n that were tried, all right; fitted: how many of
    them; words: for each class of n."""

    piece: int
    cases: tuple[int, ...]
    fitted_count: int
    class_formulas: Strings

    def __str__(self) -> str:
        name = "last piece" if self.piece == 1 else f"piece {self.piece} from the last"
        others = len(self.cases) - self.fitted_count
        first = (
            f"conjecture for the {name}, holds exactly for n = {self.cases[0]}..{self.cases[-1]} "
        )
        first += f"(fitted on {self.fitted_count} of them, verified on the {others} others)"
        return "\n".join([first, *self.class_formulas])


@dataclass(frozen=True, repr=False)
class FormulaSeries:
    """Formulas by the value of an option. name: the option; formulas: by its values, integers that rise."""

    name: str
    formulas: Mapping[int, Formula]

    def __getitem__(self, value: int) -> Formula:
        return self.formulas[value]

    def __repr__(self) -> str:
        return f"FormulaSeries({self.name} = {min(self.formulas)}..{max(self.formulas)})"

    def __str__(self) -> str:
        return "\n".join(f"{self.name} = {value}: {each}" for value, each in self.formulas.items())

    @property
    def result(self) -> Result:
        """The rows of every formula, after the value of the option."""
        rows = [{self.name: n, **row} for n, each in self.formulas.items() for row in each.rows]
        return Result(f"formulas by {self.name}", rows, name="formulas")

    def to_frame(self) -> pd.DataFrame:
        """The rows of every formula, after the value of the option."""
        return self.result.to_frame()

    def save(self, path: str | Path) -> list[Path]:
        """Write them as .csv, .tex or .json. Raises InvalidRequest, OSError."""
        return self.result.save(path)

    def to_dict(self) -> Record:
        """JSON-ready."""
        return {
            "name": self.name,
            "formulas": {str(value): each.to_dict() for value, each in self.formulas.items()},
        }

    def pattern(self) -> list[Conjecture]:
        """What the pieces seem to be as functions of n, from the last one on; none where nothing fits five others."""
        pieces = {
            n: [piece for piece in each.pieces if not piece.has_delta_interval]
            for n, each in self.formulas.items()
        }
        of_all = range(1, min(map(len, pieces.values()), default=0) + 1)
        every = (_find_conjecture(k, {n: parts[-k] for n, parts in pieces.items()}) for k in of_all)
        return [each for each in every if each is not None]


def read_ranged_option(counts: Collection[str], given: Values) -> tuple[str, dict[int, Any]] | None:
    """The option that is given a range, and what it is given for each n; None where none is.

    counts: options that are integers, with "3..20" or a range; of others "0..3..0..12". Raises InvalidRequest.
    """
    for name, value in given.items():
        text = value.replace(" ", "") if isinstance(value, str) else ""
        numbers = _INTEGER_RANGE.fullmatch(text) if name in counts else None
        lists = _LIST_RANGE.fullmatch(text)
        if numbers or (name in counts and isinstance(value, range)):
            wanted = range(int(numbers[1]), int(numbers[2]) + 1) if numbers else value
            known = {n: n for n in wanted}
        elif lists:
            known = {n: f"{lists[1]}..{n}" for n in range(int(lists[2]), int(lists[3]) + 1)}
        else:
            continue
        if not known:
            must(name, "a range that rises, such as 3..20", "an empty one")
        return name, known
    return None


def solve_series(
    name: str,
    values: Iterable[int],
    solve: Callable[[int], Formula],
    progress: Progress | None = None,
) -> FormulaSeries:
    """The formulas of several values of an option; after Ctrl-C those that are proven.

    solve: the formula of a value; progress: told every few seconds.
    """
    known, told = dict[int, Formula](), limit_message_rate(progress or str)
    try:
        for value in values:
            known[value] = solve(value)
            told(f"{name} = {value} is proven.")
    except KeyboardInterrupt:
        if not known:
            raise
    return FormulaSeries(name, known)


# Conjectures.


def _find_conjecture(k: int, pieces: Mapping[int, Piece]) -> Conjecture | None:
    """Of pieces by n: quasi-polynomials of the shortest period that fit all of them."""
    for period in _PERIODS:
        words, fitted = [], 0
        for rest in range(period):
            own = {n: piece for n, piece in pieces.items() if n % period == rest}
            text = _fit_class(own)
            if text is None:
                break
            words.append(text if period == 1 else f"n = {rest} mod {period}: {text}")
            fitted += min(_FITTED_PER_CLASS, len(own))
        else:
            if len(pieces) - fitted >= _MIN_VERIFIED_COUNT:
                return Conjecture(k, tuple(sorted(pieces)), fitted, tuple(words))
    return None


def _fit_class(pieces: Mapping[int, Piece]) -> str | None:
    """The formula of a class of n, None where none fits."""
    if len(pieces) <= _FITTED_PER_CLASS or any(piece.value_at is None for piece in pieces.values()):
        return None
    top, below = (
        _fit_polynomials({n: getattr(piece.value_at, name) for n, piece in pieces.items()})
        for name in ("constant", "over")
    )
    if top is None or below is None:
        return None
    return top if below == "1" else f"({top}) / ({below})"


def _fit_polynomials(given: Mapping[int, Poly]) -> str | None:
    """Polynomials by n as one text: lowest powers, highest powers, and those between by n and j."""
    lowest = {n: next(k for k, v in enumerate(poly.coeffs()) if v) for n, poly in given.items()}
    degree = {n: poly.degree() for n, poly in given.items()}
    first, last = _fit_in_n(lowest), _fit_in_n(degree)
    if first is None or last is None:
        return None
    for edge in range(_MAX_EDGE_TERMS + 1):
        ends = [  # the coefficients of the first powers from an end, each a polynomial in n
            [
                _fit_in_n({n: int(poly[at[n] + sign * k]) for n, poly in given.items()})
                for k in range(edge)
            ]
            for at, sign in ((lowest, 1), (degree, -1))
        ]
        inner = {
            (n, j): int(poly[j])
            for n, poly in given.items()
            for j in range(lowest[n] + edge, degree[n] - edge + 1)
        }
        middle = _fit_monomials(inner, _TWO_VARIABLES) if inner else ()
        if middle is not None and not any(None in rows for rows in ends):
            return _write_sum(first, last, edge, ends, middle)
    return None


MonomialWeights = tuple[Fraction, ...]  # coefficients of the monomials that were fitted

_ONE_VARIABLE = [(d, 0) for d in range(4)]
_TWO_VARIABLES = [(0, 0), (1, 0), (0, 1), (2, 0), (1, 1), (0, 2)]


def _fit_in_n(values: Mapping[int, int]) -> MonomialWeights | None:
    """The polynomial in n through the first values that is right for all, None where there is none."""
    return _fit_monomials({(n, 0): v for n, v in values.items()}, _ONE_VARIABLE)


def _fit_monomials(values: Mapping[Pair, int], monomials: Sequence[Pair]) -> MonomialWeights | None:
    """The combination of monomials that is right for all values, from those of the first n; the simplest one."""
    first = sorted({n for n, _ in values})[:_FITTED_PER_CLASS]
    for count in range(1, len(monomials) + 1):
        used = monomials[:count]
        rows = [
            [fmpq(n**a * j**b) for a, b in used] + [fmpq(value)]
            for (n, j), value in values.items()
            if n in first
        ]
        reduced, rank = fmpq_mat(rows).rref()
        weights = tuple(to_fraction(reduced[k, count]) for k in range(min(count, rank)))
        one_solution = rank == count and all(reduced[k, k] == 1 for k in range(count))
        if one_solution and all(
            sum(w * n**a * j**b for w, (a, b) in zip(weights, used, strict=True)) == value
            for (n, j), value in values.items()
        ):
            return weights
    return None


def _write_sum(
    first: MonomialWeights,
    last: MonomialWeights,
    edge: int,
    ends: Sequence[Any],
    middle: MonomialWeights,
) -> str:
    """A sum of powers of e^ε whose coefficients are functions of n and j."""
    low, high = _write_polynomial(first, _ONE_VARIABLE), _write_polynomial(last, _ONE_VARIABLE)
    if low == high:
        coefficient = _write_polynomial(
            (ends[0] or [None])[0] or middle, _ONE_VARIABLE if ends[0] else _TWO_VARIABLES
        )
        return (
            coefficient if low == "0" else f"{_parenthesise(coefficient)} e^({_parenthesise(low)}ε)"
        )
    inner = _write_polynomial(middle, _TWO_VARIABLES) if middle else "0"
    text = f"Σ_(j={low}..{high}) {_parenthesise(inner) if not edge else 'c_j'} e^(jε){f', c_j = {inner}' if edge else ''}"
    others = []
    for end, sign, rows in ((low, "+", ends[0]), (high, "-", ends[1])):
        for k, row in enumerate(rows):
            at = end if not k else f"{end} {sign} {k}"
            if _write_polynomial(row, _ONE_VARIABLE) != inner:
                others.append(f"{_write_polynomial(row, _ONE_VARIABLE)} at j = {at}")
    return text + (f", but {', '.join(others)}" if others else "")


def _parenthesise(text: str) -> str:
    return f"({text})" if " " in text else text


def _write_polynomial(weights: MonomialWeights, monomials: Sequence[Pair]) -> str:
    """A polynomial in n and j."""
    text = ""
    for weight, (a, b) in reversed([*zip(weights, monomials, strict=False)]):
        if not weight:
            continue
        letters, size = _write_power("n", a) + _write_power("j", b), abs(weight)
        top = f"{size.numerator if size.numerator != 1 or not letters else ''}{letters}"
        term = top if size.denominator == 1 else f"{top}/{size.denominator}"
        text = (
            f"{text} {'-' if weight < 0 else '+'} {term}"
            if text
            else f"{'-' if weight < 0 else ''}{term}"
        )
    return text or "0"


def _write_power(letter: str, power: int) -> str:
    return letter if power == 1 else f"{letter}^{power}" if power else ""
