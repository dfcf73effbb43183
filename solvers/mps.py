"""Programs as MPS files, the format that every solver reads; numbers survive the way there and back to the last bit.

(HiGHS writes fifteen digits and OR-Tools six; both read files with misprints as other programs, and say nothing.)

Written: free format, minimisation, explicit bounds of integer columns (readers differ on what is left out); the
constant of the objective is minus the right-hand side of its row, as is customary. Rows without any bound are left out,
and a row with two bounds whose difference is no double becomes two rows.

Read: free and fixed format, as HiGHS reads them. A file is read as free format; where that fails and every line keeps
to the columns of the fixed format, names may contain blanks.

    OBJSENSE            MAX or MIN, on the line of the section or below
    several vectors     of RHS, RANGES and BOUNDS the first counts; readers differ on a row or a side of a column that
                        only a later one names, and such a file is refused
    RANGES              of an E row with right-hand side r: R > 0 is [r, r + R], R < 0 is [r + R, r]
    UP, UI              below 0 without a lower bound: refused, as some readers take -infinity and others 0
    integer columns     without any bound are binary
    numbers             4.D0 is 4.0; bounds and sides of 1e20 and beyond are infinite
    comments            lines that begin with *, and $ at the beginning of a field that names a row or column
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby

import numpy as np
import scipy.sparse as sp

from workbench.solvers.data import Data
from workbench.solvers.errors import InvalidProgram
from workbench.solvers.program import Block

INF = float("inf")
_INFINITE = 1e20  # Bounds and sides of this size and beyond are infinite, as in HiGHS.
_FIELDS = (
    (1, 3),
    (4, 12),
    (14, 22),
    (24, 36),
    (39, 47),
    (49, 61),
)  # first and last columns of the fixed format
_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eEdD][+-]?\d+)?", re.ASCII)
_SENSES = {"MAX": -1, "MAXIMIZE": -1, "MAXIMISE": -1, "MIN": 1, "MINIMIZE": 1, "MINIMISE": 1}
_BOUNDS = ("LO", "UP", "FX", "FR", "MI", "PL", "BV", "LI", "UI")
_BARE = ("FR", "MI", "PL", "BV")  # bounds that need no number
_SECTIONS = ("NAME", "OBJSENSE", "ROWS", "COLUMNS", "RHS", "RANGES", "BOUNDS", "ENDATA")


@dataclass(frozen=True)
class Mps:
    """A program from a file. sense: -1 when the file maximises (the data minimise all the same); comments: lines of
    the file's head, without their star."""

    name: str
    data: Data
    sense: int
    columns: Sequence[str]
    rows: Sequence[str]
    comments: Sequence[str]


def format_mps(
    name: str, data: Data, blocks: Sequence[Block] = (), comments: Sequence[str] = ()
) -> str:
    """A program as the text of a free MPS file. blocks: of columns, which name them "f_3"; comments: its head."""
    names = _mps_column_names(blocks, data.c.size)
    sides = enumerate(zip(data.row_lower.tolist(), data.row_upper.tolist(), strict=True))
    # row of A, name, type, right-hand side, range
    rows = [
        (i, f"r{i}{end}", kind, right, width)
        for i, (low, high) in sides
        for end, kind, right, width in _split_row(low, high)
    ]
    A = sp.csc_array(sp.csr_array(data.A)[np.array([i for i, *_ in rows], dtype=np.intp)])
    ranges = [f" RNG {row} {width!r}" for _, row, _, _, width in rows if width is not None]
    lines = [
        *(f"* {line}" for line in comments),
        f"NAME {re.sub(r'[^!-~]', '_', name) or 'program'}",
        *("ROWS", " N cost", *(f" {kind} {row}" for _, row, kind, *_ in rows)),
        *("COLUMNS", *_format_columns(data, A, names, [row for _, row, *_ in rows])),
        *("RHS", *([f" RHS cost {-data.offset!r}"] if data.offset else [])),
        *(f" RHS {row} {right!r}" for _, row, _, right, _ in rows if right),
        *(("RANGES", *ranges) if ranges else ()),
        *("BOUNDS", *_format_bounds(data, names), "ENDATA", ""),
    ]
    return "\n".join(lines)


def _mps_column_names(blocks: Sequence[Block], count: int) -> list[str]:
    plain = [f"x{j}" for j in range(count)]
    names = plain.copy()
    for block in blocks:
        stem = re.sub(r"\W", "_", block.name, flags=re.ASCII)
        names[block.start : block.start + block.size] = (
            [f"{stem}_{k}" for k in range(block.size)] if block.shape else [stem]
        )
    return names if len(set(names)) == count else plain


def _split_row(low: float, high: float) -> list[tuple[str, str, float, float | None]]:
    """(end of the name, type, right-hand side, range) of what states the bounds of one row."""
    if low == high:
        return [("", "E", low, None)]
    if low == -INF:
        return [] if high == INF else [("", "L", high, None)]
    if high == INF:
        return [("", "G", low, None)]
    if low + (high - low) == high:
        return [("", "G", low, high - low)]
    return [("low", "G", low, None), ("high", "L", high, None)]


def _format_columns(
    data: Data, A: sp.csc_array, names: Sequence[str], rows: Sequence[str]
) -> Iterator[str]:
    cost = data.c.tolist()
    for whole, run in groupby(range(len(names)), lambda j: bool(data.integrality[j])):
        yield from [" M 'MARKER' 'INTORG'"] if whole else []
        for j in run:
            part = slice(A.indptr[j], A.indptr[j + 1])
            places = ["cost", *(rows[i] for i in A.indices[part].tolist())]
            entries = [*zip(places, [cost[j], *A.data[part].tolist()], strict=True)]
            for row, value in [entry for entry in entries if entry[1]] or entries[:1]:
                yield f" {names[j]} {row} {value!r}"
        yield from [" M 'MARKER' 'INTEND'"] if whole else []


def _format_bounds(data: Data, names: Sequence[str]) -> Iterator[str]:
    ends = zip(
        names, data.lower.tolist(), data.upper.tolist(), data.integrality.tolist(), strict=True
    )
    for name, low, high, whole in ends:
        if low == high:
            yield f" FX BND {name} {low!r}"
        elif (low, high) != (0.0, INF) or whole:
            yield f" MI BND {name}" if low == -INF else f" LO BND {name} {low!r}"
            yield f" PL BND {name}" if high == INF else f" UP BND {name} {high!r}"


def read_mps(text: str) -> Mps:
    """Read the program in the text of an MPS file.

    Raises:
        InvalidProgram: for what is no program in either format, naming the line.
    """
    lines = re.split(r"\r\n|\r|\n", text.removeprefix("\ufeff"))
    try:
        return _Reader(_free_fields).read(lines)
    except InvalidProgram as refused:
        try:
            return _Reader(_fixed_fields).read(lines)
        except InvalidProgram:
            raise refused from None


def _free_fields(line: str) -> list[str]:
    """The words of a line."""
    return [word for word in re.split(r"[ \t]+", line) if word]


def _fixed_fields(line: str) -> list[str]:
    """The fields of a line in the fixed format. Raises InvalidProgram where text stands between two of them."""
    fields, end = [], 0
    for start, stop in _FIELDS:
        if line[end:start].strip():
            raise InvalidProgram("the fixed format has blanks between its fields.")
        fields.append(line[start:stop].strip())
        end = stop
    if "\t" in line:
        raise InvalidProgram("the fixed format has no tabs.")
    return [field for field in fields if field]


def _parse_mps_number(word: str) -> float:
    """A number, Fortran's exponents included. Raises ValueError."""
    if not _NUMBER.fullmatch(word):
        raise ValueError(f"{word[:40]!r} is no number")
    return float(word.upper().replace("D", "E"))


def _parse_extended_number(word: str) -> float:
    """A number that may be infinite."""
    unsigned = word.lower().lstrip("+-")
    value = float(word) if unsigned in ("inf", "infinity") else _parse_mps_number(word)
    return value if abs(value) < _INFINITE else math.copysign(INF, value)


class _Reader:
    """One pass over the lines; everything by the names of rows and columns. fields: of a line of data."""

    def __init__(self, fields: Callable[[str], list[str]]) -> None:
        self.fields = fields
        self.name, self.sense, self.whole = "program", 1, False
        self.rows: dict[str, str] = {}  # -> N, E, L or G; the first N is the objective
        self.columns: dict[str, bool] = {}  # -> whether it is integer
        self.entries: dict[tuple[str, str], float] = {}
        self.right: dict[str, float] = {}
        self.range: dict[str, float] = {}
        self.low: dict[str, float] = {}
        self.high: dict[str, float] = {}
        self.vectors: dict[str, str] = {}  # section -> the name of its first vector
        self.number = 0  # of the line
        self.negative: dict[str, int] = {}  # column whose upper bound is below 0 -> its line

    def read(self, lines: Sequence[str]) -> Mps:
        """The program."""
        comments, section = [], ""
        for self.number, line in enumerate(lines, 1):
            if line.startswith("*"):
                comments += [] if section else [line[1:].strip()]
                continue
            try:
                words = _free_fields(line)
                if words and not line[0].isspace():
                    section = words.pop(0).upper()
                    if section not in _SECTIONS:
                        raise InvalidProgram(
                            f"a section must be one of {', '.join(_SECTIONS)}. Got {section[:40]}."
                        )
                    if section == "ENDATA":
                        return self._made(comments)
                elif words:
                    words = self.fields(line)
                if words:
                    self._line(section, words)
            except InvalidProgram as error:
                raise InvalidProgram(f"line {self.number}: {error}") from None
            except (KeyError, ValueError, IndexError) as error:
                what = str(error)[:80]
                if isinstance(error, KeyError):
                    what = f"no row or column is called {what}"
                elif isinstance(error, IndexError):
                    what = "too few fields"
                where = f"line {self.number} must be one of section {section or 'NAME'}"
                raise InvalidProgram(f"{where}. Got {what}.") from None
        raise InvalidProgram(f"an MPS file must end with ENDATA. Got {self.number} lines without.")

    def _line(self, section: str, words: list[str]) -> None:
        if section not in ("NAME", "OBJSENSE"):
            words = self._uncommented(words, 2 if section == "ROWS" else 1)
        match section:
            case "NAME":
                self.name = " ".join(words)
            case "OBJSENSE":
                self._objective_sense(words)
            case "ROWS":
                kind, name = words[0].upper(), words[1]
                if len(words) > 2:
                    raise InvalidProgram(
                        f"a row must be a type and a name. Got {' '.join(words)[:40]}."
                    )
                if name in self.rows:
                    raise InvalidProgram(f"every row must be named once. Got {name} twice.")
                if kind not in ("N", "E", "L", "G"):
                    raise InvalidProgram(f"a row must be N, E, L or G. Got {kind}.")
                self.rows[name] = kind
            case "COLUMNS" if "'MARKER'" in words[1:2]:
                if words[2:] not in (["'INTORG'"], ["'INTEND'"]):
                    raise InvalidProgram(
                        f"a marker must be 'INTORG' or 'INTEND'. Got {' '.join(words[2:])[:40]}."
                    )
                self.whole = words[2] == "'INTORG'"
            case "COLUMNS":
                if len(words) % 2 == 0 or len(words) < 3:
                    raise ValueError("no pairs of rows and numbers")
                self.columns.setdefault(words[0], self.whole)
                for row, value in self._pairs(words[1:], _parse_mps_number):
                    if (row, words[0]) in self.entries:
                        raise InvalidProgram(
                            f"every entry must be given once. Got {words[0]} in {row} twice."
                        )
                    self.entries[row, words[0]] = value
            case "RHS" | "RANGES":
                self._vector(section, words, self.right if section == "RHS" else self.range)
            case "BOUNDS":
                self._bound(words)
            case _:
                raise ValueError("a line before any section")

    def _uncommented(self, words: list[str], first: int) -> list[str]:
        """The words before a field that begins with $ and is no name; the first fields are never a comment."""
        for k, word in enumerate(words):
            if (
                k >= first
                and word.startswith("$")
                and word not in self.rows
                and word not in self.columns
            ):
                return words[:k]
        return words

    def _objective_sense(self, words: Sequence[str]) -> None:
        sense = _SENSES.get(words[0].upper()) if len(words) == 1 else None
        if sense is None:
            raise InvalidProgram(f"the sense must be MAX or MIN. Got {' '.join(words)[:40]}.")
        self.sense = sense

    def _pairs(
        self, words: Sequence[str], read: Callable[[str], float]
    ) -> Iterator[tuple[str, float]]:
        """Rows and their numbers, one or two."""
        for row, value in zip(words[::2], words[1::2], strict=True):
            if row not in self.rows:
                raise KeyError(row)
            yield row, read(value)

    def _counts(self, section: str, vector: str, name: str, *, known: bool) -> bool:
        """Whether a line counts: one of the first vector. known: whether that vector has the same. Raises
        InvalidProgram where only a later vector names a row or column."""
        first = self.vectors.setdefault(section, vector)
        if first != vector and not known:
            words = f"{section} has several vectors, and {name} must be in the first, {first or 'without a name'}"
            raise InvalidProgram(f"{words}. Got it in {vector or 'another without a name'} alone.")
        return first == vector

    def _vector(self, section: str, words: list[str], values: dict[str, float]) -> None:
        """A line of RHS or RANGES, whose vector may have no name."""
        vector = words.pop(0) if len(words) % 2 else ""
        if not words:
            raise ValueError("no pairs of rows and numbers")
        objective = next((row for row, kind in self.rows.items() if kind == "N"), None)
        for row, value in [*self._pairs(words, _parse_extended_number)]:
            if not self._counts(section, vector, row, known=row in values):
                continue
            if row in values:
                raise InvalidProgram(
                    f"every row must have one number of {section}. Got {row} twice."
                )
            if (
                section == "RHS"
                and self.rows[row] == "N"
                and (row != objective or math.isinf(value))
            ):
                raise InvalidProgram(
                    f"of rows of type N the objective alone may have a finite constant. Got {row}."
                )
            values[row] = value

    def _bound(self, words: list[str]) -> None:
        kind, *rest = words[0].upper(), *words[1:]
        if kind not in _BOUNDS:
            raise InvalidProgram(
                f"a bound must be {', '.join(_BOUNDS[:-1])} or {_BOUNDS[-1]}. Got {kind}."
            )
        vector, name, value = self._bound_fields(kind, rest)
        if name not in self.columns:
            raise KeyError(name)
        ends = []
        if kind in ("LO", "LI", "FX", "FR", "MI", "BV"):
            ends.append((self.low, {"FR": -INF, "MI": -INF, "BV": 0.0}.get(kind, value)))
        if kind in ("UP", "UI", "FX", "FR", "PL", "BV"):
            ends.append((self.high, {"FR": INF, "PL": INF, "BV": 1.0}.get(kind, value)))
        if not self._counts("BOUNDS", vector, name, known=all(name in side for side, _ in ends)):
            return
        for side, end in ends:
            if side.setdefault(name, end) != end:
                raise InvalidProgram(
                    f"a bound must be given once. Got {kind} of {name}, which has another."
                )
            if end == (INF if side is self.low else -INF):
                raise InvalidProgram(
                    f"a bound must leave a finite value. Got {kind} of {name}, {value}."
                )
        if kind in ("UP", "UI") and value < 0:
            self.negative[name] = self.number
        self.columns[name] |= kind in ("BV", "LI", "UI")

    def _bound_fields(self, kind: str, words: Sequence[str]) -> tuple[str, str, float]:
        """(vector, column, value) of a bound; the vector may have no name, and some kinds no value."""
        if kind not in _BARE:
            if len(words) not in (2, 3):
                raise ValueError("no column and number")
            return "" if len(words) == 2 else words[0], words[-2], _parse_extended_number(words[-1])
        if len(words) == 2 and words[0] in self.columns and self.vectors.get("BOUNDS") != words[0]:
            if words[1] in self.columns:
                raise InvalidProgram(
                    f"a bound must name one column. Got {words[0]} and {words[1]}."
                )
            words = ("", *words)
        if len(words) == 3:
            _parse_extended_number(words[2])  # a number without a meaning
        if len(words) not in (1, 2, 3):
            raise ValueError("no column")
        return ("", words[0], 0.0) if len(words) == 1 else (words[0], words[1], 0.0)

    def _made(self, comments: Sequence[str]) -> Mps:
        objective = next((row for row, kind in self.rows.items() if kind == "N"), None)
        if objective is None:
            raise InvalidProgram("an objective must be given (a row of type N). Got none.")
        if open_below := next((name for name in self.negative if name not in self.low), None):
            self.number = self.negative[open_below]
            raise InvalidProgram(
                f"an upper bound below 0 must come with a lower bound, or MI for none. Got {open_below} without."
            )
        rows = {
            row: i for i, row in enumerate(row for row, kind in self.rows.items() if kind != "N")
        }
        columns = {column: j for j, column in enumerate(self.columns)}
        sides = [
            _row_sides(self.rows[row], self.right.get(row, 0.0), self.range.get(row))
            for row in rows
        ]
        low, high = np.array(sides, dtype=float).reshape(-1, 2).T
        # without any bound an integer column is binary
        most = [
            1.0 if whole and column not in self.low else INF
            for column, whole in self.columns.items()
        ]
        entries = [
            (rows[row], columns[column], v)
            for (row, column), v in self.entries.items()
            if row in rows
        ]
        i, j, value = np.array(entries, dtype=float).reshape(-1, 3).T
        A = sp.csc_array(
            (value, (i.astype(np.intp), j.astype(np.intp))), shape=(len(rows), len(columns))
        )
        A.sort_indices()
        data = Data(
            self.sense
            * np.array([self.entries.get((objective, column), 0.0) for column in columns]),
            -self.sense * self.right.get(objective, 0.0),
            A,
            low,
            high,
            np.array([self.low.get(column, 0.0) for column in columns]),
            np.array(
                [self.high.get(column, end) for column, end in zip(columns, most, strict=True)]
            ),
            np.array(list(self.columns.values()), dtype=bool),
        )
        data.check()
        return Mps(self.name, data, self.sense, list(columns), list(rows), tuple(comments))


def _row_sides(kind: str, right: float, width: float | None) -> tuple[float, float]:
    """The bounds of a row by its type, right-hand side and range. Raises InvalidProgram for an infinite side that is
    none."""
    if math.isinf(right):
        if width in (None, INF, -INF) and right == {"L": INF, "G": -INF}.get(kind):
            return -INF, INF
        raise InvalidProgram(
            f"the right-hand side of a row of type {kind} must be finite. Got {right}."
        )
    if width is None:
        return -INF if kind == "L" else right, INF if kind == "G" else right
    if kind == "E":
        return right + min(width, 0.0), right + max(width, 0.0)
    return (right - abs(width), right) if kind == "L" else (right, right + abs(width))
