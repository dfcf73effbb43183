"""Programs as MPS files, the format that every solver reads; numbers survive the way there and back to the last bit.

(HiGHS writes fifteen digits and OR-Tools six; both read files with misprints as other programs, and say nothing.)

Written: free format, minimisation, explicit bounds of integer columns (readers differ on what is left out); the
constant of the objective is minus the right-hand side of its row, as is customary. Rows without any bound are left out,
and a row with two bounds whose difference is no double becomes two rows. Read: the same, OBJSENSE, RANGES and comments;
names must not contain blanks.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby

import numpy as np
import scipy.sparse as sp

from .data import Data
from .errors import InvalidProgram
from .program import Block

INF = float("inf")
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


def mps_text(name: str, data: Data, blocks: Sequence[Block] = (), comments: Sequence[str] = ()) -> str:
    """A program as the text of a free MPS file. blocks: of columns, which name them "f_3"; comments: its head."""
    names = _names(blocks, data.c.size)
    sides = enumerate(zip(data.row_lower.tolist(), data.row_upper.tolist(), strict=True))
    # row of A, name, type, right-hand side, range
    rows = [
        (i, f"r{i}{end}", kind, right, width)
        for i, (low, high) in sides
        for end, kind, right, width in _written_row(low, high)
    ]
    A = sp.csc_array(sp.csr_array(data.A)[np.array([i for i, *_ in rows], dtype=np.intp)])
    ranges = [f" RNG {row} {width!r}" for _, row, _, _, width in rows if width is not None]
    lines = [
        *(f"* {line}" for line in comments),
        f"NAME {re.sub(r'[^!-~]', '_', name) or 'program'}",
        *("ROWS", " N cost", *(f" {kind} {row}" for _, row, kind, *_ in rows)),
        *("COLUMNS", *_columns(data, A, names, [row for _, row, *_ in rows])),
        *("RHS", *([f" RHS cost {-data.offset!r}"] if data.offset else [])),
        *(f" RHS {row} {right!r}" for _, row, _, right, _ in rows if right),
        *(("RANGES", *ranges) if ranges else ()),
        *("BOUNDS", *_bounds(data, names), "ENDATA", ""),
    ]
    return "\n".join(lines)


def _names(blocks: Sequence[Block], count: int) -> list[str]:
    plain = [f"x{j}" for j in range(count)]
    names = plain.copy()
    for block in blocks:
        stem = re.sub(r"\W", "_", block.name, flags=re.ASCII)
        names[block.start : block.start + block.size] = (
            [f"{stem}_{k}" for k in range(block.size)] if block.shape else [stem]
        )
    return names if len(set(names)) == count else plain


def _written_row(low: float, high: float) -> list[tuple[str, str, float, float | None]]:
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


def _columns(data: Data, A: sp.csc_array, names: Sequence[str], rows: Sequence[str]) -> Iterator[str]:
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


def _bounds(data: Data, names: Sequence[str]) -> Iterator[str]:
    ends = zip(names, data.lower.tolist(), data.upper.tolist(), data.integrality.tolist(), strict=True)
    for name, low, high, whole in ends:
        if low == high:
            yield f" FX BND {name} {low!r}"
        elif (low, high) != (0.0, INF) or whole:
            yield f" MI BND {name}" if low == -INF else f" LO BND {name} {low!r}"
            yield f" PL BND {name}" if high == INF else f" UP BND {name} {high!r}"


def read_mps(text: str) -> Mps:
    """The program in the text of an MPS file. Raises InvalidProgram, naming the line."""
    return _Reader().read(text)


class _Reader:
    """One pass over the lines; everything by the names of rows and columns."""

    def __init__(self) -> None:
        self.name, self.sense, self.whole = "program", 1, False
        self.rows: dict[str, str] = {}  # -> N, E, L or G; the first N is the objective
        self.columns: dict[str, bool] = {}  # -> whether it is integer
        self.entries: dict[tuple[str, str], float] = {}
        self.right: dict[str, float] = {}
        self.range: dict[str, float] = {}
        self.low: dict[str, float] = {}
        self.high: dict[str, float] = {}

    def read(self, text: str) -> Mps:
        """The program."""
        comments, section, number = [], "", 0
        for number, line in enumerate(text.splitlines(), 1):
            words = line.split()
            if line.startswith("*"):
                comments += [] if section else [line[1:].strip()]
                continue
            try:
                if words and not line[0].isspace():
                    section = words.pop(0).upper()
                    if section not in _SECTIONS:
                        raise InvalidProgram(f"a section must be one of {', '.join(_SECTIONS)}. Got {section[:40]}.")
                    if section == "ENDATA":
                        return self._made(comments)
                if words:
                    self._line(section, words)
            except InvalidProgram as error:
                raise InvalidProgram(f"line {number}: {error}") from None
            except (KeyError, ValueError, IndexError) as error:
                what = f"{type(error).__name__} {error}"[:80]
                raise InvalidProgram(f"line {number} must be one of section {section or 'NAME'}. Got {what}.") from None
        raise InvalidProgram(f"an MPS file must end with ENDATA. Got {number} lines without.")

    def _line(self, section: str, words: Sequence[str]) -> None:
        match section:
            case "NAME":
                self.name = words[0]
            case "OBJSENSE":
                self.sense = -1 if words[0].upper().startswith("MAX") else 1
            case "ROWS":
                kind, name = words[0].upper(), words[1]
                if name in self.rows:
                    raise InvalidProgram(f"every row must be named once. Got {name} twice.")
                if kind not in ("N", "E", "L", "G"):
                    raise InvalidProgram(f"a row must be N, E, L or G. Got {kind}.")
                self.rows[name] = kind
            case "COLUMNS" if "'MARKER'" in words:
                self.whole = "'INTORG'" in words
            case "COLUMNS":
                if len(words) % 2 == 0:
                    raise ValueError("an even number of words")
                self.columns.setdefault(words[0], self.whole)
                for row, value in self._pairs(words):
                    if (row, words[0]) in self.entries:
                        raise InvalidProgram(f"every entry must be given once. Got {words[0]} in {row} twice.")
                    self.entries[row, words[0]] = value
            case "RHS":
                self.right.update(self._pairs(words))
            case "RANGES":
                self.range.update(self._pairs(words))
            case "BOUNDS":
                self._bound(words)
            case _:
                raise ValueError("a line before any section")

    def _pairs(self, words: Sequence[str]) -> Iterator[tuple[str, float]]:
        """Row and number, one or two of them, after a name that RHS and RANGES may leave out."""
        rest = words[1:] if len(words) % 2 else words
        for row, value in zip(rest[::2], rest[1::2], strict=True):
            if row not in self.rows:
                raise KeyError(row)
            yield row, float(value)

    def _bound(self, words: Sequence[str]) -> None:
        kind = words[0].upper()
        bare = kind in ("FR", "MI", "PL", "BV")
        name = words[-1] if bare and words[-1] in self.columns else words[-1 if bare else -2]
        if name not in self.columns:
            raise KeyError(name)
        value = {"BV": 1.0}.get(kind, INF) if bare else float(words[-1])
        if kind not in ("LO", "UP", "FX", "FR", "MI", "PL", "BV", "LI", "UI"):
            raise InvalidProgram(f"a bound must be LO, UP, FX, FR, MI, PL, BV, LI or UI. Got {kind}.")
        if kind in ("UP", "UI") and value < 0:
            self.low.setdefault(name, -INF)
        if kind in ("LO", "LI", "FX", "FR", "MI", "BV"):
            self.low[name] = {"FR": -INF, "MI": -INF, "BV": 0.0}.get(kind, value)
        if kind in ("UP", "UI", "FX", "FR", "PL", "BV"):
            self.high[name] = value
        self.columns[name] |= kind in ("BV", "LI", "UI")

    def _made(self, comments: Sequence[str]) -> Mps:
        objective = next((row for row, kind in self.rows.items() if kind == "N"), None)
        if objective is None:
            raise InvalidProgram("an objective must be given (a row of type N). Got none.")
        rows = {row: i for i, row in enumerate(row for row, kind in self.rows.items() if kind != "N")}
        columns = {column: j for j, column in enumerate(self.columns)}
        sides = [_sides(self.rows[row], self.right.get(row, 0.0), self.range.get(row)) for row in rows]
        low, high = np.array(sides, dtype=float).reshape(-1, 2).T
        # without any bound an integer column is binary
        most = [1.0 if whole and column not in self.low else INF for column, whole in self.columns.items()]
        entries = [(rows[row], columns[column], v) for (row, column), v in self.entries.items() if row in rows]
        i, j, value = np.array(entries, dtype=float).reshape(-1, 3).T
        A = sp.csc_array((value, (i.astype(np.intp), j.astype(np.intp))), shape=(len(rows), len(columns)))
        A.sort_indices()
        data = Data(
            self.sense * np.array([self.entries.get((objective, column), 0.0) for column in columns]),
            -self.sense * self.right.get(objective, 0.0),
            A,
            low,
            high,
            np.array([self.low.get(column, 0.0) for column in columns]),
            np.array([self.high.get(column, end) for column, end in zip(columns, most, strict=True)]),
            np.array(list(self.columns.values()), dtype=bool),
        )
        data.check()
        return Mps(self.name, data, self.sense, list(columns), list(rows), tuple(comments))


def _sides(kind: str, right: float, width: float | None) -> tuple[float, float]:
    """The bounds of a row by its type, right-hand side and range."""
    if width is None:
        return -INF if kind == "L" else right, INF if kind == "G" else right
    if kind == "E":
        return right + min(width, 0.0), right + max(width, 0.0)
    return (right - abs(width), right) if kind == "L" else (right, right + abs(width))
