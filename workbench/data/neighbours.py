"""Read which of finitely many inputs, or rows, are neighbours, and how far apart they are.

    accepted                          read as
    "all"                             every two inputs
    "consecutive"                     each input and the next one of the list
    {"max_distance": D}               the numbers at most D apart, up to the rounding of floats
    "within 2 L1", "all L2"           a radius and a norm; the question lists the pairs of places
    pairs: list, array, table, CSV    two inputs in each row, and perhaps their distance
    matrix: list, array, table, CSV   symmetric distances (k, k) of the k inputs, inf for pairs that
                                      are not neighbours

Example: for the inputs 10, 20 and 30, the pairs [(10, 20), (20, 30)] are read as the positions
(0, 1) and (1, 2).

Inputs in pairs are found by value, within the rounding of floats (`workbench.data.tolerance`). A
matrix with labels is put into the order of the inputs (`workbench.data.labels`). If the matrix of a
CSV file has one row or one column more than there are inputs, its first row or column has labels.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations, product
from pathlib import Path
from typing import Any

import numpy as np

from workbench.data.labels import (
    Axis,
    align_table,
    get_column_labels,
    get_row_labels,
    read_label_point,
)
from workbench.data.places import read_plane_relation
from workbench.data.plain import is_integer, read_list
from workbench.data.points import Point, format_point, is_zero_cell, rationals_or_none, read_point
from workbench.data.tables import is_number, read_table
from workbench.data.tolerance import PointIndex, compute_threshold_tolerance
from workbench.errors import InvalidRequest, must
from workbench.exact.numbers import Rationals, parse_rational, read_number, read_positive
from workbench.exact.objects import Pair, Pairs
from workbench.io.files import format_fraction, names_file

_MAX_PAIRS = 2_000_000  # A relation with more pairs is refused, except "all", which lists none.
_RELATION_CONSTRAINT = "all, consecutive, {'max_distance': D}, pairs of inputs or a matrix"
_MATRIX_NAME = "a matrix of distances"


@dataclass(frozen=True)
class Neighbours:
    """A neighbour relation of k inputs, as positions in 0..k-1.

    Attributes:
        pairs: Positions (i, j) of neighbours, sorted. None for every two inputs, and for a relation
            that names a norm.
        distances: Distance of each pair. None without distances.
        norm: Norm by which the question computes distances of places. None for other relations.
        radius: Largest distance of neighbours in this norm. None if every two inputs are
            neighbours, or if there is no norm.
    """

    pairs: Pairs | None
    distances: Rationals | None = None
    norm: str | None = None
    radius: Fraction | None = None


def read_neighbours(
    value: Any,
    inputs: Sequence[Point],
    entries: Sequence[Any],
    *,
    is_directed: bool,
) -> Neighbours:
    """Read a neighbour relation of inputs.

    Args:
        value: A form of the module header.
        inputs: Different points, as `workbench.data.points` reads them.
        entries: The objects from which the inputs were read, in their order. If they are of type
            float32, distances have a larger tolerance.
        is_directed: Whether the order of a pair has a meaning. Otherwise i < j in every pair.

    Raises:
        InvalidRequest: The relation has no form of the module header, or names an unknown input.
    """
    if isinstance(value, Mapping):
        if set(value) != {"max_distance"}:
            must("neighbours", '{"max_distance": D}', dict(value))
        close_pairs = _list_near_numbers(value["max_distance"], inputs, entries)
        return Neighbours(direct_pairs(close_pairs, inputs) if is_directed else close_pairs)
    if isinstance(value, str) and value in ("all", "consecutive"):
        pairs = None
        if value != "all":
            pairs = tuple((i, i + 1) for i in range(len(inputs) - 1))
        return Neighbours(direct_pairs(pairs, inputs) if is_directed else pairs)
    if isinstance(value, str):
        relation = read_plane_relation(value)
        if relation is not None:
            radius, norm = relation
            return Neighbours(pairs=None, norm=norm, radius=radius)
    if isinstance(value, (str, Path)):
        return _read_file(value, inputs, is_directed)
    return _read_container(value, inputs, is_directed)


def direct_pairs(pairs: Pairs | None, inputs: Sequence[Point]) -> Pairs:
    """Put the position of the larger input first in every pair.

    Args:
        pairs: Pairs of positions in any order. None for every two inputs.
        inputs: Points. The larger one of two numbers has the larger value. If not all inputs are
            numbers, the larger one has the larger position.

    Raises:
        InvalidRequest: Every two inputs are too many pairs.
    """
    count = len(inputs)
    # There are count (count - 1)/2 pairs of inputs.
    if pairs is None and count * (count - 1) > 2 * _MAX_PAIRS:
        must("directed", f"left out for more than {_MAX_PAIRS} pairs of neighbours", True)
    rank = rationals_or_none(inputs) or range(count)
    if pairs is None:
        pairs = tuple(combinations(range(count), 2))
    directed_pairs = []
    for i, j in pairs:
        directed_pairs.append((i, j) if rank[i] > rank[j] else (j, i))
    return tuple(sorted(directed_pairs))


def read_row_pairs(pairs: Any, last_row: int, *, is_directed: bool) -> Pairs:
    """Read pairs of the rows of a channel.

    Args:
        pairs: Pairs of different integers in 0..last_row, in any container.
        last_row: Number of the last row, counted from 0.
        is_directed: Whether pairs keep their order. Otherwise both orders are returned.

    Returns:
        Ordered pairs, sorted, each once.

    Raises:
        InvalidRequest: A pair does not consist of two different rows, or there is no pair.
    """
    constraint = f"two rows in 0..{last_row}"
    row_pairs: set[Pair] = set()
    for pair in read_list(pairs, "pairs", "a list of pairs of rows", column=True):
        # Most pairs are plain tuples of ints, which are read without the slow general reader.
        is_plain = type(pair) is tuple and len(pair) == 2 and type(pair[0]) is type(pair[1]) is int
        ends = pair
        if not is_plain:
            ends = read_list(pair, "a pair", constraint)
        if not is_plain and (len(ends) != 2 or not all(map(is_integer, ends))):
            must("a pair", constraint, pair)
        i, j = int(ends[0]), int(ends[1])
        if not (0 <= i <= last_row and 0 <= j <= last_row):
            must("a pair", constraint, pair)
        if i == j:
            must("a pair", "two different rows", pair)
        row_pairs.add((i, j))
        if not is_directed:
            row_pairs.add((j, i))
    if not row_pairs:
        must("pairs", "a list of at least one pair of neighbouring rows", "none")
    return tuple(sorted(row_pairs))


def _list_near_numbers(max_shift: Any, inputs: Sequence[Point], entries: Sequence[Any]) -> Pairs:
    """List the pairs of numbers within a distance, up to the rounding of floats."""
    limit = read_number(max_shift, "max_shift")
    if limit <= 0:
        must("max_shift", "a number > 0", format_fraction(limit))
    x = rationals_or_none(inputs)
    if x is None:
        must("max_shift", "left out for inputs that are no numbers", format_fraction(limit))
    count = len(inputs)
    order = sorted(range(count), key=x.__getitem__)
    reach = limit + compute_threshold_tolerance(limit, x, [*entries, max_shift], "inputs")
    ends = [bisect_right(order, x[i] + reach, key=x.__getitem__) for i in order]
    # The input of rank r is the smaller one of ends[r] - r - 1 pairs.
    if sum(ends) - count * (count + 1) // 2 > _MAX_PAIRS:
        constraint = f"one that leaves at most {_MAX_PAIRS} pairs of neighbours"
        must("max_shift", constraint, format_fraction(limit))
    pairs = []
    for rank, i in enumerate(order):
        pairs += [(min(i, j), max(i, j)) for j in order[rank + 1 : ends[rank]]]
    if not pairs:
        must("max_shift", "at least the smallest distance of two inputs", format_fraction(limit))
    return tuple(sorted(pairs))


def _read_file(path: str | Path, inputs: Sequence[Point], is_directed: bool) -> Neighbours:
    """Read a CSV file of pairs or of a matrix."""
    if not names_file(path):
        must("neighbours", "all, consecutive, or a CSV file of pairs", repr(str(path)))
    rows = read_table(path, "neighbours", keep_header=True)
    index = PointIndex(inputs)
    table = _align_file_matrix(rows, inputs, index)
    if table is not None:
        return _read_matrix(table, inputs, index, is_directed)
    has_header = (
        bool(rows)
        and not _begins_with_inputs(rows[0], index)
        and any(_begins_with_inputs(row, index) for row in rows[1:])
    )
    return _read_pairs(rows[1:] if has_header else rows, inputs, index, is_directed)


def _read_container(value: Any, inputs: Sequence[Point], is_directed: bool) -> Neighbours:
    """Read pairs or a matrix from a list, an array or a table."""
    count = len(inputs)
    labels = get_row_labels(value)
    columns = get_column_labels(value)
    rows = read_list(value, "neighbours", _RELATION_CONSTRAINT, column=True)
    index = PointIndex(inputs)
    lengths = {*map(_length_of, rows)}
    if _names_inputs(columns, index) or (lengths == {count} and _names_inputs(labels, index)):
        row_axis = Axis(labels, inputs, "inputs")
        column_axis = Axis(columns, inputs, "inputs")
        table = align_table(rows, row_axis, column_axis, _MATRIX_NAME)
        if len(table) != count or {*map(len, table)} != {count}:
            must(_MATRIX_NAME, f"of {count} rows and columns", f"{len(table)} rows")
        return _read_matrix(table, inputs, index, is_directed)
    is_square = len(rows) == count and all(_length_of(row) == count for row in rows)
    # Rows of more than three cells are no pairs. Three pairs with distances are square as well, but
    # none of them has the distance 0.
    is_surely_matrix = count > 3 or (count == 3 and is_square and is_zero_cell(rows[2][2]))
    if is_square and (isinstance(value, np.ndarray) or is_surely_matrix):
        return _read_matrix(rows, inputs, index, is_directed)
    return _read_pairs(rows, inputs, index, is_directed)


def _names_inputs(labels: Sequence[Any] | None, index: PointIndex) -> bool:
    """Return whether some labels are inputs. The table is then a matrix, not a list of pairs."""
    if labels is None:
        return False
    return any(index.find(read_label_point(label), label) is not None for label in labels)


def _begins_with_inputs(row: Sequence[Any], index: PointIndex) -> bool:
    """Return whether the first two cells of a row are inputs. The row is then no header."""
    try:
        return all(index.find(read_point(cell, "an input"), cell) is not None for cell in row[:2])
    except InvalidRequest:
        return False


def _read_pairs(
    entries: Sequence[Any],
    inputs: Sequence[Point],
    index: PointIndex,
    is_directed: bool,
) -> Neighbours:
    """Read rows of two inputs, or of two inputs and their distance.

    Args:
        entries: The rows.
        inputs: The inputs of the question, for errors.
        index: Finds the position of an input by its value or label.
        is_directed: Whether (a, b) and (b, a) are different pairs.

    Raises:
        InvalidRequest: A row is wrong, or only some rows have a distance.
    """
    distances_by_pair: dict[Pair, Fraction | None] = {}
    for entry in entries:
        row = read_list(entry, "a pair of neighbours", "two inputs")
        if len(row) not in (2, 3):
            must("a pair of neighbours", "two inputs, and perhaps their distance", row)
        i, j = (_find_input(cell, index) for cell in row[:2])
        if i == j:
            must("neighbours", "pairs of different inputs", f"{format_point(inputs[i])} twice")
        pair = (i, j) if is_directed else (min(i, j), max(i, j))
        distance = None
        if len(row) == 3:
            names = " and ".join(str(format_point(inputs[position])) for position in pair)
            distance = read_positive(row[2], f"the distance of {names}")
        if pair in distances_by_pair and distances_by_pair[pair] != distance:
            must("neighbours", "pairs with one distance each", f"two for {row[:2]}")
        distances_by_pair[pair] = distance
    if not distances_by_pair:
        must("neighbours", "at least one pair of inputs", "none")
    if len({distance is None for distance in distances_by_pair.values()}) > 1:
        message = "Distances must be given for every pair of neighbours, or for none."
        raise InvalidRequest(message)
    pairs = tuple(sorted(distances_by_pair))
    distances = tuple(d for pair in pairs if (d := distances_by_pair[pair]) is not None)
    return Neighbours(pairs, distances or None)


def _find_input(cell: Any, index: PointIndex) -> int:
    """Find the position of the input that a cell names."""
    value = read_point(cell, "a neighbour")
    position = index.find(value, cell)
    if position is None:
        must("neighbours", "pairs of inputs", f"{format_point(value)}, which is no input")
    return position


def _align_file_matrix(
    rows: Sequence[Sequence[Any]], inputs: Sequence[Point], index: PointIndex
) -> list[list[Any]] | None:
    """Return the matrix of a file in the order of the inputs, or None if the file lists pairs."""
    count = len(inputs)
    widths = {*map(len, rows)}
    if len(rows) not in (count, count + 1) or widths not in ({count}, {count + 1}):
        return None
    has_columns = len(rows) == count + 1
    has_labels = widths == {count + 1}
    if widths == {3} and count == 3 and not is_zero_cell(rows[-1][2]):
        return None  # These are three pairs with their distances.
    # Two rows of two cells are two pairs, unless labels show that they are a matrix.
    if count == 2 and not (has_columns and has_labels and _names_inputs(rows[0][1:], index)):
        return None
    body = [list(row) for row in rows]
    columns = None
    if has_columns:
        columns = body.pop(0)
    labels = None
    if has_labels:
        labels = [row.pop(0) for row in body]
    if columns is not None and has_labels:
        columns = columns[1:]
    row_axis = Axis(labels, inputs, "inputs")
    column_axis = Axis(columns, inputs, "inputs")
    table = align_table(body, row_axis, column_axis, _MATRIX_NAME)
    return [[_number_or_text(cell) for cell in row] for row in table]


def _number_or_text(cell: Any) -> Any:
    """Read the number of a cell, or return another text unchanged."""
    number = parse_rational(cell)
    if number is None:
        return cell
    return number


def _read_matrix(
    rows: Sequence[Any],
    inputs: Sequence[Point],
    index: PointIndex,
    is_directed: bool,
) -> Neighbours:
    """Read a symmetric matrix of distances of all inputs as the pairs whose distance is finite.

    Args:
        rows: The matrix, one row for each input.
        inputs: The inputs of the question.
        index: As in `_read_pairs`.
        is_directed: As in `_read_pairs`.

    Raises:
        InvalidRequest: The matrix is not symmetric, or its diagonal is not 0.
    """
    table = [list(row) for row in rows]
    entries = []
    for i, j in product(range(len(inputs)), repeat=2):
        distance = table[i][j]
        if i == j:
            if not is_zero_cell(distance):
                must(_MATRIX_NAME, "0 on its diagonal", distance)
        elif distance != table[j][i]:
            must(_MATRIX_NAME, "symmetric", f"{distance} and {table[j][i]} for {(i, j)}")
        elif i < j and not (is_number(distance) and float(distance) == math.inf):
            entries.append((inputs[i], inputs[j], distance))
    if not entries:
        must(_MATRIX_NAME, "finite for some pair", "none")
    return _read_pairs(entries, inputs, index, is_directed)


def _length_of(row: Any) -> int:
    """Return the length of a row, or -1 for a text and for an object without a length."""
    if isinstance(row, (str, bytes)) or not hasattr(row, "__len__"):
        return -1
    return len(row)
