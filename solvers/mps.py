"""Write and read programs as MPS files, the format that every solver reads.

For example, min x - 2y with x + y <= 10 and x, y >= 0 is the file

    NAME small
    ROWS
     N cost
     L r0
    COLUMNS
     x0 cost 1.0
     x0 r0 1.0
     x1 cost -2.0
     x1 r0 1.0
    RHS
     RHS r0 10.0
    BOUNDS
    ENDATA

Numbers are exact to the last bit. (The writer of HiGHS keeps fifteen digits, the writer of OR-Tools
six. Both read a file with errors as another program, without a message.)

Files are written in free format, as minimisation, with explicit bounds of integer columns (readers
differ on the defaults). The constant of the objective is minus the right-hand side of its row, as
is customary. A row without bounds is left out. A row with two bounds becomes two rows if the
difference of the bounds is no double.

Free and fixed format are read as HiGHS reads them. A file is first read as free format. If this
fails, it is read as fixed format, whose names may contain blanks. Rules of the reader:

    OBJSENSE            MAX or MIN, on the line of the section or below
    several vectors     in RHS, RANGES or BOUNDS: the first is used. A file is refused if a later
                        vector has a number that the first does not have, as readers differ on it
    RANGES              of an E row with right-hand side r: R > 0 is [r, r + R], R < 0 is [r + R, r]
    UP, UI              below 0 without a lower bound: refused, as some readers take -infinity and
                        others 0
    integer columns     without any bound are binary
    numbers             4.D0 is 4.0; bounds and sides of 1e20 and beyond are infinite
    comments            lines that begin with *, and $ at the beginning of a field that names a row
                        or column
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
_INFINITY = 1e20  # Bounds and sides of this size and beyond are infinite, as in HiGHS.
# The fields of the fixed format as slices of a line: (start, end), counted from 0.
_FIELDS = ((1, 3), (4, 12), (14, 22), (24, 36), (39, 47), (49, 61))
_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eEdD][+-]?\d+)?", re.ASCII)
_SENSES = {"MAX": -1, "MAXIMIZE": -1, "MAXIMISE": -1, "MIN": 1, "MINIMIZE": 1, "MINIMISE": 1}
_BOUND_TYPES = ("LO", "UP", "FX", "FR", "MI", "PL", "BV", "LI", "UI")
_BOUND_TYPES_WITHOUT_NUMBER = ("FR", "MI", "PL", "BV")
_LOWER_BOUND_TYPES = ("LO", "LI", "FX", "FR", "MI", "BV")
_UPPER_BOUND_TYPES = ("UP", "UI", "FX", "FR", "PL", "BV")
_INTEGER_BOUND_TYPES = ("BV", "LI", "UI")
_SECTIONS = ("NAME", "OBJSENSE", "ROWS", "COLUMNS", "RHS", "RANGES", "BOUNDS", "ENDATA")
_MAX_QUOTED_LENGTH = 40  # Messages quote at most this many characters of a line.
_MAX_REASON_LENGTH = 80  # Messages state a reason in at most this many characters.


@dataclass(frozen=True)
class Mps:
    """A program from a file.

    Attributes:
        name: name of the program.
        data: its numbers, which always minimise.
        sense: -1 if the file maximises, else 1.
        columns: names of the columns.
        rows: names of the rows.
        comments: lines at the head of the file, without their star.
    """

    name: str
    data: Data
    sense: int
    columns: Sequence[str]
    rows: Sequence[str]
    comments: Sequence[str]


@dataclass(frozen=True)
class _WrittenRow:
    """A row of the file.

    Attributes:
        index: position of the row in the program.
        name: name of the row in the file.
        kind: E, L or G.
        side: right-hand side.
        width: length of the range, or None.
    """

    index: int
    name: str
    kind: str
    side: float
    width: float | None


def format_mps(
    name: str, data: Data, blocks: Sequence[Block] = (), comments: Sequence[str] = ()
) -> str:
    """Return a program as the text of a free MPS file.

    Args:
        name: name of the program.
        data: its numbers.
        blocks: blocks of columns; their names become names of columns, such as "f_3".
        comments: lines at the head of the file.
    """
    column_names = _mps_column_names(blocks, data.c.size)
    rows: list[_WrittenRow] = []
    sides = zip(data.row_lower.tolist(), data.row_upper.tolist(), strict=True)
    for index, (low, high) in enumerate(sides):
        rows += _split_row(index, low, high)
    row_index = np.array([row.index for row in rows], dtype=np.intp)
    A = sp.csc_array(sp.csr_array(data.A)[row_index])
    lines = [f"* {line}" for line in comments]
    lines += [f"NAME {re.sub(r'[^!-~]', '_', name) or 'program'}", "ROWS", " N cost"]
    lines += [f" {row.kind} {row.name}" for row in rows]
    lines += ["COLUMNS", *_format_columns(data, A, column_names, [row.name for row in rows])]
    lines.append("RHS")
    if data.offset:
        lines.append(f" RHS cost {-data.offset!r}")
    lines += [f" RHS {row.name} {row.side!r}" for row in rows if row.side]
    ranges = [f" RNG {row.name} {row.width!r}" for row in rows if row.width is not None]
    if ranges:
        lines += ["RANGES", *ranges]
    lines += ["BOUNDS", *_format_bounds(data, column_names), "ENDATA", ""]
    return "\n".join(lines)


def _mps_column_names(blocks: Sequence[Block], count: int) -> list[str]:
    """Return a name of each column: its block's name and an index, or x0, x1, ... if not unique."""
    default_names = [f"x{j}" for j in range(count)]
    names = default_names.copy()
    for block in blocks:
        stem = re.sub(r"\W", "_", block.name, flags=re.ASCII)
        block_names = [f"{stem}_{k}" for k in range(block.size)] if block.shape else [stem]
        names[block.start : block.start + block.size] = block_names
    if len(set(names)) == count:
        return names
    return default_names


def _split_row(index: int, low: float, high: float) -> list[_WrittenRow]:
    """Return the rows of the file that state the two bounds of a row."""
    name = f"r{index}"
    if low == high:
        return [_WrittenRow(index, name, kind="E", side=low, width=None)]
    if low == -INF:
        if high == INF:
            return []
        return [_WrittenRow(index, name, kind="L", side=high, width=None)]
    if high == INF:
        return [_WrittenRow(index, name, kind="G", side=low, width=None)]
    if low + (high - low) == high:
        return [_WrittenRow(index, name, kind="G", side=low, width=high - low)]
    return [
        _WrittenRow(index, f"{name}low", kind="G", side=low, width=None),
        _WrittenRow(index, f"{name}high", kind="L", side=high, width=None),
    ]


def _format_columns(
    data: Data, A: sp.csc_array, column_names: Sequence[str], row_names: Sequence[str]
) -> Iterator[str]:
    """Yield the lines of section COLUMNS, with markers around integer columns.

    Args:
        data: numbers of the program. Its matrix is not read.
        A: coefficients of the rows of the file.
        column_names: names of the columns.
        row_names: names of the rows of `A`.
    """
    costs = data.c.tolist()
    columns = range(len(column_names))
    for is_integer, run in groupby(columns, lambda j: bool(data.integrality[j])):
        if is_integer:
            yield " M 'MARKER' 'INTORG'"
        for j in run:
            part = slice(A.indptr[j], A.indptr[j + 1])
            rows = ["cost", *(row_names[i] for i in A.indices[part].tolist())]
            entries = [*zip(rows, [costs[j], *A.data[part].tolist()], strict=True)]
            nonzero_entries = [(row, value) for row, value in entries if value]
            # A column without a number has one line, which says that it exists.
            for row, value in nonzero_entries or entries[:1]:
                yield f" {column_names[j]} {row} {value!r}"
        if is_integer:
            yield " M 'MARKER' 'INTEND'"


def _format_bounds(data: Data, column_names: Sequence[str]) -> Iterator[str]:
    """Yield the lines of section BOUNDS."""
    columns = zip(
        column_names,
        data.lower.tolist(),
        data.upper.tolist(),
        data.integrality.tolist(),
        strict=True,
    )
    for name, low, high, is_integer in columns:
        if low == high:
            yield f" FX BND {name} {low!r}"
        elif (low, high) != (0.0, INF) or is_integer:
            yield f" MI BND {name}" if low == -INF else f" LO BND {name} {low!r}"
            yield f" PL BND {name}" if high == INF else f" UP BND {name} {high!r}"


def read_mps(text: str) -> Mps:
    """Read a program.

    Args:
        text: text of an MPS file, in free or fixed format.

    Raises:
        InvalidProgram: the text is a program in neither format. The message names the line.
    """
    lines = re.split(r"\r\n|\r|\n", text.removeprefix("\ufeff"))
    try:
        return _Reader(_split_free_fields).read(lines)
    except InvalidProgram as free_error:
        try:
            return _Reader(_split_fixed_fields).read(lines)
        except InvalidProgram:
            raise free_error from None


def _split_free_fields(line: str) -> list[str]:
    """Split a line at blanks and tabs."""
    return [field for field in re.split(r"[ \t]+", line) if field]


def _split_fixed_fields(line: str) -> list[str]:
    """Split a line in the fixed format. Raises InvalidProgram for text between two fields."""
    fields = []
    end = 0
    for start, stop in _FIELDS:
        if line[end:start].strip():
            raise InvalidProgram("the fixed format has blanks between its fields.")
        fields.append(line[start:stop].strip())
        end = stop
    if "\t" in line:
        raise InvalidProgram("the fixed format has no tabs.")
    return [field for field in fields if field]


def _parse_mps_number(text: str) -> float:
    """Parse a finite number, which may have an exponent of Fortran as in 4.D0.

    Raises ValueError.
    """
    if not _NUMBER.fullmatch(text):
        raise ValueError(f"{text[:_MAX_QUOTED_LENGTH]!r} is no number")
    return float(text.upper().replace("D", "E"))


def _parse_extended_number(text: str) -> float:
    """Parse a number that may be infinite. Raises ValueError."""
    is_infinite = text.lower().lstrip("+-") in ("inf", "infinity")
    value = float(text) if is_infinite else _parse_mps_number(text)
    if abs(value) < _INFINITY:
        return value
    return math.copysign(INF, value)


def _quote(fields: Sequence[str]) -> str:
    """Return the beginning of a line for a message."""
    return " ".join(fields)[:_MAX_QUOTED_LENGTH]


class _Reader:
    """One pass over the lines of a file.

    `is_integer`, `lower` and `upper` are keyed by names of columns, `sides` and `ranges` by names
    of rows, and `entries` by (row, column).
    """

    def __init__(self, split_fields: Callable[[str], list[str]]) -> None:
        self.split_fields = split_fields
        self.name = "program"
        self.sense = 1
        self.is_in_integer_marker = False
        self.row_kinds: dict[str, str] = {}  # N, E, L or G. The first N is the objective.
        self.is_integer: dict[str, bool] = {}
        self.entries: dict[tuple[str, str], float] = {}
        self.sides: dict[str, float] = {}
        self.ranges: dict[str, float] = {}
        self.lower: dict[str, float] = {}
        self.upper: dict[str, float] = {}
        self.first_vectors: dict[str, str] = {}  # Section -> name of its first vector.
        self.line_number = 0
        self.negative_upper_lines: dict[str, int] = {}  # Column -> line of an upper bound < 0.

    def read(self, lines: Sequence[str]) -> Mps:
        """Read the program. Raises InvalidProgram."""
        comments: list[str] = []
        section = ""
        for self.line_number, line in enumerate(lines, 1):
            if line.startswith("*"):
                if not section:
                    comments.append(line[1:].strip())
                continue
            try:
                fields = _split_free_fields(line)
                if fields and not line[0].isspace():
                    section = self._read_section_name(fields.pop(0))
                    if section == "ENDATA":
                        return self._make_program(comments)
                elif fields:
                    fields = self.split_fields(line)
                if fields:
                    self._read_line(section, fields)
            except InvalidProgram as error:
                raise InvalidProgram(f"line {self.line_number}: {error}") from None
            except (KeyError, ValueError, IndexError) as error:
                raise self._describe_error(section, error) from None
        raise InvalidProgram(
            f"an MPS file must end with ENDATA. Got {self.line_number} lines without."
        )

    @staticmethod
    def _read_section_name(field: str) -> str:
        """Return the section of a line that begins in its first column. Raises InvalidProgram."""
        section = field.upper()
        if section not in _SECTIONS:
            raise InvalidProgram(
                f"a section must be one of {', '.join(_SECTIONS)}. "
                f"Got {section[:_MAX_QUOTED_LENGTH]}."
            )
        return section

    def _describe_error(self, section: str, error: Exception) -> InvalidProgram:
        """Return the error for a line that does not have the form of its section."""
        reason = str(error)[:_MAX_REASON_LENGTH]
        if isinstance(error, KeyError):
            reason = f"no row or column is called {reason}"
        elif isinstance(error, IndexError):
            reason = "too few fields"
        return InvalidProgram(
            f"line {self.line_number} must be one of section {section or 'NAME'}. Got {reason}."
        )

    def _read_line(self, section: str, fields: list[str]) -> None:
        """Read one line of a section into the fields of this reader.

        Args:
            section: the section of the line. "" before the first section.
            fields: the fields of the line, at least one.

        Raises:
            InvalidProgram, KeyError, ValueError, IndexError: the line lacks the form of its
                section.
        """
        if section not in ("NAME", "OBJSENSE"):
            # New names may begin with $: the second field of ROWS, the first of COLUMNS.
            fields = self._strip_comment(fields, 2 if section == "ROWS" else 1)
        if section == "NAME":
            self.name = " ".join(fields)
        elif section == "OBJSENSE":
            self._read_sense(fields)
        elif section == "ROWS":
            self._read_row(fields)
        elif section == "COLUMNS" and fields[1:2] == ["'MARKER'"]:
            self._read_marker(fields)
        elif section == "COLUMNS":
            self._read_column(fields)
        elif section == "RHS":
            self._read_vector(section, fields, self.sides)
        elif section == "RANGES":
            self._read_vector(section, fields, self.ranges)
        elif section == "BOUNDS":
            self._read_bound(fields)
        else:
            raise ValueError("a line before any section")

    def _strip_comment(self, fields: list[str], min_fields: int) -> list[str]:
        """Return the fields before one that begins with $ and is no name of a row or column.

        The first `min_fields` fields are never a comment.
        """
        for k, field in enumerate(fields):
            is_name = field in self.row_kinds or field in self.is_integer
            if k >= min_fields and field.startswith("$") and not is_name:
                return fields[:k]
        return fields

    def _read_sense(self, fields: Sequence[str]) -> None:
        """Read a line of OBJSENSE."""
        sense = _SENSES.get(fields[0].upper()) if len(fields) == 1 else None
        if sense is None:
            raise InvalidProgram(f"the sense must be MAX or MIN. Got {_quote(fields)}.")
        self.sense = sense

    def _read_row(self, fields: Sequence[str]) -> None:
        """Read a line of ROWS: the kind of a row and its name."""
        kind = fields[0].upper()
        name = fields[1]
        if len(fields) > 2:
            raise InvalidProgram(f"a row must be a type and a name. Got {_quote(fields)}.")
        if name in self.row_kinds:
            raise InvalidProgram(f"every row must be named once. Got {name} twice.")
        if kind not in ("N", "E", "L", "G"):
            raise InvalidProgram(f"a row must be N, E, L or G. Got {kind}.")
        self.row_kinds[name] = kind

    def _read_marker(self, fields: Sequence[str]) -> None:
        """Read a marker, which says whether the columns after it are integer."""
        if fields[2:] not in (["'INTORG'"], ["'INTEND'"]):
            raise InvalidProgram(
                f"a marker must be 'INTORG' or 'INTEND'. Got {_quote(fields[2:])}."
            )
        self.is_in_integer_marker = fields[2] == "'INTORG'"

    def _read_column(self, fields: Sequence[str]) -> None:
        """Read a line of COLUMNS: a column, and pairs of a row and a coefficient."""
        if len(fields) % 2 == 0 or len(fields) < 3:
            raise ValueError("no pairs of rows and numbers")
        column = fields[0]
        self.is_integer.setdefault(column, self.is_in_integer_marker)
        for row, value in self._read_pairs(fields[1:], _parse_mps_number):
            if (row, column) in self.entries:
                raise InvalidProgram(
                    f"every entry must be given once. Got {column} in {row} twice."
                )
            self.entries[row, column] = value

    def _read_pairs(
        self, fields: Sequence[str], parse: Callable[[str], float]
    ) -> Iterator[tuple[str, float]]:
        """Yield (row, number) pairs."""
        for row, text in zip(fields[::2], fields[1::2], strict=True):
            if row not in self.row_kinds:
                raise KeyError(row)
            yield row, parse(text)

    def _is_first_vector(self, section: str, vector: str, name: str, *, has_value: bool) -> bool:
        """Return whether a line belongs to the first vector of its section, and so counts.

        Args:
            section: RHS, RANGES or BOUNDS.
            vector: name of the vector of the line.
            name: name of the row or column of the line.
            has_value: whether the first vector has a value for this name.

        Raises:
            InvalidProgram: only a later vector names the row or column.
        """
        first_vector = self.first_vectors.setdefault(section, vector)
        if first_vector != vector and not has_value:
            raise InvalidProgram(
                f"{section} has several vectors, and {name} must be in the first, "
                f"{first_vector or 'without a name'}. "
                f"Got it in {vector or 'another without a name'} alone."
            )
        return first_vector == vector

    def _find_objective(self) -> str | None:
        """Return the name of the first row of type N, or None if there is none."""
        return next((row for row, kind in self.row_kinds.items() if kind == "N"), None)

    def _read_vector(self, section: str, fields: list[str], values: dict[str, float]) -> None:
        """Read a line of RHS or RANGES, whose vector may have no name."""
        vector = ""
        if len(fields) % 2:
            vector = fields.pop(0)
        if not fields:
            raise ValueError("no pairs of rows and numbers")
        objective = self._find_objective()
        # The list makes a mistake in any pair be reported before a repeated row.
        for row, value in [*self._read_pairs(fields, _parse_extended_number)]:
            if not self._is_first_vector(section, vector, row, has_value=row in values):
                continue
            if row in values:
                raise InvalidProgram(
                    f"every row must have one number of {section}. Got {row} twice."
                )
            is_objective_side = section == "RHS" and self.row_kinds[row] == "N"
            if is_objective_side and (row != objective or math.isinf(value)):
                raise InvalidProgram(
                    f"of rows of type N the objective alone may have a finite constant. Got {row}."
                )
            values[row] = value

    def _read_bound(self, fields: list[str]) -> None:
        """Read a line of BOUNDS: a type, perhaps a vector, a column, and perhaps a number."""
        kind = fields[0].upper()
        if kind not in _BOUND_TYPES:
            raise InvalidProgram(
                f"a bound must be {', '.join(_BOUND_TYPES[:-1])} or {_BOUND_TYPES[-1]}. Got {kind}."
            )
        vector, name, value = self._split_bound_fields(kind, fields[1:])
        if name not in self.is_integer:
            raise KeyError(name)
        ends = []
        if kind in _LOWER_BOUND_TYPES:
            ends.append((self.lower, {"FR": -INF, "MI": -INF, "BV": 0.0}.get(kind, value)))
        if kind in _UPPER_BOUND_TYPES:
            ends.append((self.upper, {"FR": INF, "PL": INF, "BV": 1.0}.get(kind, value)))
        has_value = all(name in bounds for bounds, _ in ends)
        if not self._is_first_vector("BOUNDS", vector, name, has_value=has_value):
            return
        for bounds, end in ends:
            if bounds.setdefault(name, end) != end:
                raise InvalidProgram(
                    f"a bound must be given once. Got {kind} of {name}, which has another."
                )
            # No number is above a lower bound of infinity, or below an upper bound of -infinity.
            excluded_end = INF if bounds is self.lower else -INF
            if end == excluded_end:
                raise InvalidProgram(
                    f"a bound must leave a finite value. Got {kind} of {name}, {value}."
                )
        if kind in ("UP", "UI") and value < 0:
            self.negative_upper_lines[name] = self.line_number
        self.is_integer[name] |= kind in _INTEGER_BOUND_TYPES

    def _split_bound_fields(self, kind: str, fields: Sequence[str]) -> tuple[str, str, float]:
        """Return (vector, column, value) of a bound.

        Args:
            kind: type of the bound, such as UP.
            fields: [vector] column value; for a type without a value [vector] column [value].
                Fields in brackets may be absent. The vector is then "", and the value 0.
        """
        if kind not in _BOUND_TYPES_WITHOUT_NUMBER:
            if len(fields) not in (2, 3):
                raise ValueError("no column and number")
            vector = "" if len(fields) == 2 else fields[0]
            return vector, fields[-2], _parse_extended_number(fields[-1])
        # Two fields are (vector, column), or (column, value) if the first names a column and is not
        # the name of the vector.
        has_column_first = len(fields) == 2 and fields[0] in self.is_integer
        if has_column_first and self.first_vectors.get("BOUNDS") != fields[0]:
            if fields[1] in self.is_integer:
                raise InvalidProgram(
                    f"a bound must name one column. Got {fields[0]} and {fields[1]}."
                )
            fields = ("", *fields)
        if len(fields) == 3:
            _parse_extended_number(fields[2])  # The number has no meaning, but must be one.
        if len(fields) not in (1, 2, 3):
            raise ValueError("no column")
        if len(fields) == 1:
            return "", fields[0], 0.0
        return fields[0], fields[1], 0.0

    def _make_program(self, comments: Sequence[str]) -> Mps:
        """Make the program from all lines. Raises InvalidProgram."""
        objective = self._find_objective()
        if objective is None:
            raise InvalidProgram("an objective must be given (a row of type N). Got none.")
        self._require_lower_bounds()
        columns = [*self.is_integer]
        rows = [row for row, kind in self.row_kinds.items() if kind != "N"]
        sides = [
            _row_sides(self.row_kinds[row], self.sides.get(row, 0.0), self.ranges.get(row))
            for row in rows
        ]
        # The shape (rows, 2) is stated because there may be no rows.
        row_lower, row_upper = np.array(sides, dtype=float).reshape(-1, 2).T
        costs = np.array([self.entries.get((objective, column), 0.0) for column in columns])
        data = Data(
            self.sense * costs,
            -self.sense * self.sides.get(objective, 0.0),
            A=self._make_matrix(rows, columns),
            row_lower=row_lower,
            row_upper=row_upper,
            lower=np.array([self.lower.get(column, 0.0) for column in columns]),
            upper=np.array(
                [self.upper.get(column, self._default_upper(column)) for column in columns]
            ),
            integrality=np.array(list(self.is_integer.values()), dtype=bool),
        )
        data.check()
        return Mps(self.name, data, self.sense, columns, rows, comments=tuple(comments))

    def _require_lower_bounds(self) -> None:
        """Raise InvalidProgram if a column has a negative upper and no lower bound."""
        for name, line_number in self.negative_upper_lines.items():
            if name not in self.lower:
                self.line_number = line_number
                raise InvalidProgram(
                    "an upper bound below 0 must come with a lower bound, or MI for none. "
                    f"Got {name} without."
                )

    def _default_upper(self, column: str) -> float:
        """Return the upper bound of a column that has none: integers without bounds are binary."""
        is_binary = self.is_integer[column] and column not in self.lower
        if is_binary:
            return 1.0
        return INF

    def _make_matrix(self, rows: Sequence[str], columns: Sequence[str]) -> sp.csc_array:
        """Return the coefficients (rows, columns)."""
        row_index = {row: i for i, row in enumerate(rows)}
        column_index = {column: j for j, column in enumerate(columns)}
        entries = [
            (row_index[row], column_index[column], value)
            for (row, column), value in self.entries.items()
            if row in row_index
        ]
        i, j, values = np.array(entries, dtype=float).reshape(-1, 3).T
        coordinates = (i.astype(np.intp), j.astype(np.intp))
        A = sp.csc_array((values, coordinates), shape=(len(rows), len(columns)))
        A.sort_indices()
        return A


def _row_sides(kind: str, side: float, width: float | None) -> tuple[float, float]:
    """Return the bounds of a row by its type, right-hand side and range.

    Raises InvalidProgram for a wrong infinite side.
    """
    if math.isinf(side):
        # A row L with the side infinity, or G with -infinity, has no bounds.
        if width in (None, INF, -INF) and side == {"L": INF, "G": -INF}.get(kind):
            return -INF, INF
        raise InvalidProgram(
            f"the right-hand side of a row of type {kind} must be finite. Got {side}."
        )
    if width is None:
        low = -INF if kind == "L" else side
        high = INF if kind == "G" else side
        return low, high
    if kind == "E":
        return side + min(width, 0.0), side + max(width, 0.0)
    if kind == "L":
        return (side - abs(width), side)
    return (side, side + abs(width))
