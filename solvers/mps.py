"""Programs as MPS files, the format that every solver reads; numbers survive the way there and back to the last bit.

Written: free format, minimisation, explicit bounds of integer columns (readers differ on what is left out); the
constant of the objective is minus the right-hand side of its row, as is customary. Rows without any bound are left out,
and a row with two bounds whose difference is no double becomes two rows. Read: the same, OBJSENSE, RANGES and comments;
names must not contain blanks.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import scipy.sparse as sp

from .arrays import Flags, Vector
from .data import Data
from .errors import InvalidProgram
from .program import Block

__all__ = ["Mps", "mps_text", "read_mps"]

INF = float("inf")
_SECTIONS = ("NAME", "OBJSENSE", "ROWS", "COLUMNS", "RHS", "RANGES", "BOUNDS", "ENDATA")


@dataclass(frozen=True)
class Mps:
    """A program from a file. sense: -1 when the file maximises (the data minimise all the same); comments: lines of
    the file's head, without their star."""

    name: str
    data: Data
    sense: int = 1
    columns: Sequence[str] = ()
    rows: Sequence[str] = ()
    comments: Sequence[str] = field(default_factory=tuple)


def mps_text(name: str, data: Data, blocks: Sequence[Block] = (), comments: Sequence[str] = ()) -> str:
    """A program as the text of a free MPS file. blocks: of columns, which name them "f_3"; comments: its head."""
    names = _names(blocks, data.c.size)
    A = sp.csr_array(data.A)
    rows: list[tuple[str, str, float, float | None]] = []  # name, type, right-hand side, range
    parts: list[int] = []  # row of A
    for i, (low, high) in enumerate(zip(data.row_lower.tolist(), data.row_upper.tolist(), strict=True)):
        if low == high:
            rows.append((f"r{i}", "E", low, None))
        elif low == -INF:
            if high == INF:
                continue
            rows.append((f"r{i}", "L", high, None))
        elif high == INF:
            rows.append((f"r{i}", "G", low, None))
        elif low + (high - low) == high:
            rows.append((f"r{i}", "G", low, high - low))
        else:
            rows += [(f"r{i}low", "G", low, None), (f"r{i}high", "L", high, None)]
            parts.append(i)
        parts.append(i)
    lines = [
        *(f"* {line}" for line in comments),
        f"NAME {re.sub(r'[^!-~]', '_', name) or 'program'}",
        "ROWS",
        " N cost",
    ]
    lines += [f" {kind} {row}" for row, kind, *_ in rows]
    taken = sp.csc_array(A[parts]) if parts else sp.csc_array((0, data.c.size))
    lines += ["COLUMNS", *_columns(data, taken, names, [row for row, *_ in rows]), "RHS"]
    lines += [f" RHS cost {-data.offset!r}"] if data.offset else []
    lines += [f" RHS {row} {right!r}" for row, _, right, _ in rows if right]
    ranges = [f" RNG {row} {width!r}" for row, _, _, width in rows if width is not None]
    lines += ["RANGES", *ranges] if ranges else []
    lines += ["BOUNDS", *_bounds(data, names), "ENDATA", ""]
    return "\n".join(lines)


def _names(blocks: Sequence[Block], count: int) -> list[str]:
    names = [f"x{j}" for j in range(count)]
    for block in blocks:
        stem = re.sub(r"\W", "_", block.name, flags=re.ASCII)
        for k in range(block.size):
            names[block.start + k] = f"{stem}_{k}" if block.shape else stem
    return names if len(set(names)) == count else [f"x{j}" for j in range(count)]


def _columns(data: Data, A: sp.csc_array, names: Sequence[str], rows: Sequence[str]) -> Iterator[str]:
    whole = False
    starts, indices, entries = A.indptr.tolist(), A.indices.tolist(), A.data.tolist()
    for j, (name, cost) in enumerate(zip(names, data.c.tolist(), strict=True)):
        if bool(data.integrality[j]) is not whole:
            whole = not whole
            yield " M 'MARKER' 'INTORG'" if whole else " M 'MARKER' 'INTEND'"
        here = [
            (rows[i], v)
            for i, v in zip(indices[starts[j] : starts[j + 1]], entries[starts[j] : starts[j + 1]], strict=True)
            if v
        ]
        if cost or not here:
            yield f" {name} cost {cost!r}"
        for row, value in here:
            yield f" {name} {row} {value!r}"
    if whole:
        yield " M 'MARKER' 'INTEND'"


def _bounds(data: Data, names: Sequence[str]) -> Iterator[str]:
    for j, (name, low, high) in enumerate(zip(names, data.lower.tolist(), data.upper.tolist(), strict=True)):
        whole = bool(data.integrality[j])
        if low == high:
            yield f" FX BND {name} {low!r}"
        elif low == -INF and high == INF:
            yield f" FR BND {name}"
        else:
            if low == -INF:
                yield f" MI BND {name}"
            elif low or whole or high < 0:
                yield f" LO BND {name} {low!r}"
            if high < INF:
                yield f" UP BND {name} {high!r}"
            elif whole:
                yield f" PL BND {name}"


def read_mps(text: str) -> Mps:
    """The program in the text of an MPS file. Raises InvalidProgram, naming the line."""
    return _Reader(text).read()


class _Reader:
    """One pass over the lines."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.name, self.sense, self.objective = "program", 1, ""
        self.kinds: list[str] = []
        self.row_at: dict[str, int] = {}
        self.free: set[str] = set()  # rows of type N beyond the objective
        self.column_at: dict[str, int] = {}
        self.cost: list[float] = []
        self.integer: list[bool] = []
        self.entries: dict[tuple[int, int], float] = {}
        self.offset = 0.0
        self.right: dict[int, float] = {}
        self.range: dict[int, float] = {}
        self.low: dict[int, float] = {}
        self.high: dict[int, float] = {}

    def read(self) -> Mps:
        comments, section, whole, number = [], "", False, 0
        for number, line in enumerate(self.text.splitlines(), 1):
            if line.startswith("*"):
                if not section:
                    comments.append(line[1:].strip())
                continue
            words = line.split()
            if not words:
                continue
            try:
                if not line[0].isspace():
                    section = words[0].upper()
                    if section not in _SECTIONS:
                        raise InvalidProgram(f"a section must be one of {', '.join(_SECTIONS)}. Got {words[0][:40]}.")
                    if section == "NAME" and len(words) > 1:
                        self.name = words[1]
                    if section == "OBJSENSE" and len(words) > 1:
                        self._objsense(words[1])
                    if section == "ENDATA":
                        return self._made(comments)
                elif section == "COLUMNS" and "'MARKER'" in words:
                    whole = "'INTORG'" in words
                elif section == "COLUMNS":
                    self._column(words, whole)
                elif section == "OBJSENSE":
                    self._objsense(words[0])
                else:
                    {"ROWS": self._row, "RHS": self._rhs, "RANGES": self._ranges, "BOUNDS": self._bound}[section](words)
            except InvalidProgram as error:
                raise InvalidProgram(f"line {number}: {error}") from None
            except (KeyError, ValueError, IndexError) as error:
                what = f"{type(error).__name__} {error}"[:80]
                raise InvalidProgram(f"line {number} must be one of section {section or 'NAME'}. Got {what}.") from None
        raise InvalidProgram(f"an MPS file must end with ENDATA. Got {number} lines without.")

    def _objsense(self, word: str) -> None:
        self.sense = -1 if word.upper().startswith("MAX") else 1

    def _row(self, words: Sequence[str]) -> None:
        kind, name = words[0].upper(), words[1]
        if name in self.row_at or name in self.free or name == self.objective:
            raise InvalidProgram(f"every row must be named once. Got {name} twice.")
        if kind == "N":
            if self.objective:
                self.free.add(name)
            self.objective = self.objective or name
        elif kind in "ELG":
            self.row_at[name] = len(self.kinds)
            self.kinds.append(kind)
        else:
            raise InvalidProgram(f"a row must be N, E, L or G. Got {kind}.")

    def _pairs(self, words: Sequence[str]) -> Iterator[tuple[str, float]]:
        """Row and number, one or two of them, after a name that RHS and RANGES may leave out."""
        rest = words[1:] if len(words) % 2 else words
        for k in range(0, len(rest), 2):
            yield rest[k], float(rest[k + 1])

    def _column(self, words: Sequence[str], whole: bool) -> None:
        if len(words) % 2 == 0:
            raise ValueError("an even number of words")
        at = self.column_at.setdefault(words[0], len(self.cost))
        if at == len(self.cost):
            self.cost.append(0.0)
            self.integer.append(whole)
        for row, value in self._pairs(words):
            if row == self.objective:
                self.cost[at] = value
            elif row not in self.free:
                key = (self.row_at[row], at)
                if key in self.entries:
                    raise InvalidProgram(f"every entry must be given once. Got {words[0]} in {row} twice.")
                self.entries[key] = value

    def _rhs(self, words: Sequence[str]) -> None:
        for row, value in self._pairs(words):
            if row == self.objective:
                self.offset = -value
            elif row not in self.free:
                self.right[self.row_at[row]] = value

    def _ranges(self, words: Sequence[str]) -> None:
        for row, value in self._pairs(words):
            self.range[self.row_at[row]] = value

    def _bound(self, words: Sequence[str]) -> None:
        kind = words[0].upper()
        bare = kind in ("FR", "MI", "PL", "BV")
        at = self.column_at[words[-1] if bare and words[-1] in self.column_at else words[-1 if bare else -2]]
        value = 0.0 if bare else float(words[-1])
        if kind in ("LO", "LI", "FX"):
            self.low[at] = value
        if kind in ("UP", "UI", "FX"):
            self.high[at] = value
            if value < 0 and kind != "FX" and at not in self.low:
                self.low[at] = -INF
        if kind in ("FR", "MI"):
            self.low[at] = -INF
        if kind in ("FR", "PL"):
            self.high[at] = INF
        if kind == "BV":
            self.low[at], self.high[at] = 0.0, 1.0
        if kind in ("BV", "LI", "UI"):
            self.integer[at] = True
        elif kind not in ("LO", "UP", "FX", "FR", "MI", "PL"):
            raise InvalidProgram(f"a bound must be LO, UP, FX, FR, MI, PL, BV, LI or UI. Got {kind}.")

    def _made(self, comments: Sequence[str]) -> Mps:
        if not self.objective:
            raise InvalidProgram("an objective must be given (a row of type N). Got none.")
        m, n = len(self.kinds), len(self.cost)
        low, high = np.full(m, -INF), np.full(m, INF)
        for i, kind in enumerate(self.kinds):
            right, width = self.right.get(i, 0.0), self.range.get(i)
            low[i], high[i] = {"E": (right, right), "L": (-INF, right), "G": (right, INF)}[kind]
            if width is not None:
                size = abs(width)
                ends = {
                    "E": (right, right + width) if width >= 0 else (right + width, right),
                    "L": (right - size, right),
                    "G": (right, right + size),
                }
                low[i], high[i] = ends[kind]
        whole: Flags = np.array(self.integer, dtype=bool)
        lower, upper = np.zeros(n), np.where(whole, 1.0, INF)
        upper[[at for at in self.low if whole[at]]] = INF  # without any bound an integer column is binary
        _set(lower, self.low)
        _set(upper, self.high)
        keys = np.array(list(self.entries), dtype=np.int64).reshape(-1, 2)
        A = sp.csc_array((np.array(list(self.entries.values()), dtype=float), (keys[:, 0], keys[:, 1])), shape=(m, n))
        A.sort_indices()
        cost = np.array(self.cost, dtype=float)
        data = Data(self.sense * cost, self.sense * self.offset, A, low, high, lower, upper, whole)
        data.check()
        return Mps(self.name, data, self.sense, list(self.column_at), list(self.row_at), tuple(comments))


def _set(vector: Vector, values: Mapping[int, float]) -> None:
    for at, value in values.items():
        vector[at] = value
