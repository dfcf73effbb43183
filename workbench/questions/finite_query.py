"""The question behind a finite channel: which inputs and outputs there are, who neighbours whom, and what is expected.

x in inputs, o in outputs        inputs (k,), outputs (m,): numbers held exactly, texts, or tuples of these
x ~ x'                           pairs of positions i < j, None for every two, in both orders; directed: (i, j) alone
d(x, x')                         distances of the pairs, for metric privacy
p(x)                             prior (k,), sums to 1; None: the worst input counts
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import combinations, pairwise, product
from pathlib import Path
from typing import Any

import numpy as np

from workbench.data.labels import Axis, align_table, aligned, column_labels, label_point, row_labels
from workbench.data.places import read_places, relation
from workbench.data.plain import plain_list
from workbench.data.points import (
    Point,
    entries_of,
    is_zero,
    point,
    points,
    points_of,
    rationals_of,
    shown,
)
from workbench.data.tables import is_number, read_table
from workbench.data.tolerance import PointIndex, threshold_tolerance
from workbench.errors import InvalidRequest, must
from workbench.exact.arrays import Vector
from workbench.exact.numbers import Rationals, exact, positive, rational
from workbench.exact.objects import Pair, Pairs, Record
from workbench.io.files import names_file, spelled
from workbench.io.shown import OneLine
from workbench.questions.neighbour_parts import part_of_each, separation_words
from workbench.questions.places import metric_pairs, near_pairs, planar

FREE = "free"
_PAIRS = 2_000_000  # that are listed one by one


@dataclass(frozen=True, init=False, repr=False)
class FiniteQuery(OneLine):
    """A finite question for any channel.

    inputs: numbers (read as the decimals they show), texts or tuples, all different; outputs: the same, by default the
    inputs, "free" for any real numbers, which a design chooses. Both may be a text "0..100", "0..5:0.5"
    (LOW..HIGH:STEP), "a,b,c", or a CSV file of one column.
    max_shift: numbers at most so far apart are neighbours; else neighbours: "all", "consecutive" in the order given,
    {"max_distance": D}, a list of pairs of inputs, a CSV of pairs (a third column: their distance), or a symmetric
    matrix of distances (k, k), inf between inputs that are no neighbours, also as a CSV. Neighbours are symmetric: a
    pair in one order stands for both, unless directed: then of every pair only Pr[o | x] <= e^ε Pr[o | x'] + δ is asked
    for, x being the larger number (of other inputs the later one), or the first of a pair that is listed. prior: None
    or "uniform", "worst", weights >= 0, or a CSV file of them (or of inputs and weights).

    Inputs may be places of the plane, pairs of numbers or a CSV file of x, y[, weight], whose weights are the prior
    where none is given. Their neighbours may be "within R NORM" and "all NORM", NORM L1, L2 or Linf, which is the
    distance of metric privacy too (L2 where none is named).

    Raises InvalidRequest.

    >>> FiniteQuery("0..3", max_shift=1).pairs
    ((0, 1), (1, 2), (2, 3))
    >>> FiniteQuery("0..3", max_shift=1, directed=True).pairs
    ((1, 0), (2, 1), (3, 2))
    """

    inputs: tuple[Point, ...]
    outputs: tuple[Point, ...]
    pairs: Pairs | None
    distances: Rationals | None
    prior: Rationals | None
    free: bool
    norm: str
    directed: bool

    def __init__(
        self,
        inputs: Any,
        outputs: Any = None,
        *,
        neighbours: Any = None,
        max_shift: Any = None,
        prior: Any = None,
        directed: bool = False,
    ) -> None:
        read = read_places(inputs, "inputs") if names_file(inputs) else None
        entries = entries_of(inputs if read is None else read[0], "inputs")
        values = points_of(entries, "inputs")
        prior = prior if read is None or prior is not None else read[1]
        free = isinstance(outputs, str) and outputs == FREE
        read = read_places(outputs, "outputs") if names_file(outputs) else None
        listed = values if outputs is None or free else points(outputs if read is None else read[0], "outputs")
        self.__dict__.update(inputs=values, outputs=listed, free=free, norm="L2", directed=directed)
        if not isinstance(directed, bool):
            must("directed", "True or False", directed)
        if len(values) < 2:
            must("inputs", "at least two for a neighbour relation", len(values))
        if (neighbours is None) == (max_shift is None):
            raise InvalidRequest("A neighbour relation must be given by exactly one of max_shift and neighbours.")
        relation = neighbours if max_shift is None else {"max_distance": max_shift}
        pairs, distances = self._relation(relation, entries)
        if directed and distances is not None:
            must("directed", "left out where neighbours have distances", directed)
        if not directed and pairs is not None and len(pairs) == self.k * (self.k - 1) // 2 and distances is None:
            pairs = None
        self.__dict__.update(pairs=pairs, distances=distances, prior=self._prior(prior))

    @property
    def k(self) -> int:
        """Number of inputs."""
        return len(self.inputs)

    @property
    def m(self) -> int:
        """Number of outputs."""
        return len(self.outputs)

    @cached_property
    def numbers(self) -> tuple[Rationals, Rationals] | None:
        """Inputs and outputs, where all of them are numbers."""
        inputs, outputs = rationals_of(self.inputs), rationals_of(self.outputs)
        return None if inputs is None or outputs is None else (inputs, outputs)

    @cached_property
    def planar(self) -> bool:
        """Whether inputs and outputs are places of the plane."""
        return self.numbers is None and planar(self.inputs) and planar(self.outputs)

    @property
    def places(self) -> tuple[Vector, Vector]:
        """Inputs (k,) and outputs (m,) as floats; their positions where some are no numbers."""
        inputs, outputs = self.numbers or (range(self.k), range(self.m))
        return np.array([float(x) for x in inputs]), np.array([float(o) for o in outputs])

    @cached_property
    def listed(self) -> Pairs:
        """Every pair of neighbours, one by one."""
        return tuple(combinations(range(self.k), 2)) if self.pairs is None else self.pairs

    @property
    def ordered(self) -> Pairs:
        """Every ordered pair (i, j) of which Pr[o | x_i] <= e^ε Pr[o | x_j] + δ is asked for."""
        return self.listed if self.directed else tuple(pair for i, j in self.listed for pair in ((i, j), (j, i)))

    @cached_property
    def line(self) -> bool:
        """Whether the neighbours are exactly the inputs that follow each other in their order, in both orders."""
        return not self.directed and self.listed == tuple((i, i + 1) for i in range(self.k - 1))

    @cached_property
    def components(self) -> list[list[int]]:
        """The connected parts of the relation: between two of them nothing is hidden."""
        if self.pairs is None or self.line:
            return [[*range(self.k)]]
        part = part_of_each(self.k, self.pairs)
        return [np.flatnonzero(part == number).tolist() for number in np.unique(part)]

    @property
    def separation(self) -> str | None:
        """Say that the relation falls into parts; None where it does not."""
        parts = len(self.components)
        return separation_words(parts) if parts > 1 else None

    def placed(self, outputs: tuple[Point, ...]) -> FiniteQuery:
        """The same question with these outputs."""
        other = object.__new__(FiniteQuery)
        other.__dict__.update({name: getattr(self, name) for name in self.__dataclass_fields__}, outputs=outputs)
        return other

    def freed(self) -> FiniteQuery:
        """The same question with real outputs, which a design chooses."""
        other = self.placed(self.inputs)
        other.__dict__["free"] = True
        return other

    def metric_pairs(self) -> tuple[Pairs, Rationals]:
        """Pairs with their distances for metric privacy: those given, or |x - x'|, where the neighbours in increasing
        order suffice if all are (their budgets add up). Raises InvalidRequest."""
        if self.distances is not None:
            assert self.pairs is not None
            return self.pairs, self.distances
        if self.planar:
            return self._planar_pairs
        x = rationals_of(self.inputs)
        if x is None:
            must("neighbours", "a matrix or list of distances for metric privacy of inputs that are no numbers", "none")
        pairs = self.pairs
        if pairs is None:
            order = sorted(range(self.k), key=x.__getitem__)
            pairs = tuple(sorted((min(i, j), max(i, j)) for i, j in pairwise(order)))
        return pairs, tuple(abs(x[j] - x[i]) for i, j in pairs)

    @cached_property
    def _planar_pairs(self) -> tuple[Pairs, Rationals]:
        return metric_pairs(self.inputs, self.pairs, self.norm)

    def to_dict(self) -> Record:
        """JSON-ready."""
        return {
            "inputs": [*map(shown, self.inputs)],
            "outputs": [*map(shown, self.outputs)],
            "neighbours": "all" if self.pairs is None else [list(pair) for pair in self.pairs],
            "distances": None if self.distances is None else [*map(spelled, self.distances)],
            "prior": "worst" if self.prior is None else [*map(spelled, self.prior)],
            **({"free": True} if self.free else {}),
            **({"directed": True} if self.directed else {}),
            **({"norm": self.norm} if self.planar else {}),
        }

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self})"

    def __str__(self) -> str:
        first, last = shown(self.inputs[0]), shown(self.inputs[-1])
        if self.pairs is None:
            relation = f"every two neighbours ({self.k * (self.k - 1) // 2} pairs)"
        else:
            relation = f"{len(self.pairs)} pairs of neighbours"
        relation += ", directed" if self.directed else ""
        outputs = "real outputs" if self.free else f"{self.m} outputs"
        return f"{self.k} inputs {first}..{last}, {outputs}, {relation}"

    # Reading.

    def _relation(self, given: Any, entries: Sequence[Any]) -> tuple[Pairs | None, Rationals | None]:
        """Read the pairs of neighbours, and their distances. entries: what the inputs were read from."""
        if isinstance(given, Mapping):
            if set(given) != {"max_distance"}:
                must("neighbours", '{"max_distance": D}', dict(given))
            return self._turned(self._within(given["max_distance"], entries)), None
        if isinstance(given, str) and given in ("all", "consecutive"):
            return self._turned(None if given == "all" else tuple((i, i + 1) for i in range(self.k - 1))), None
        if isinstance(given, str) and (near := relation(given)) is not None:
            if not self.planar:
                must("neighbours", "without a norm for inputs that are no places of the plane", repr(given))
            self.__dict__["norm"] = near[1]
            radius, norm = near
            return self._turned(None if radius is None else near_pairs(self.inputs, radius, norm, entries)), None
        if isinstance(given, (str, Path)):
            if not names_file(given):
                must("neighbours", "all, consecutive, or a CSV file of pairs", repr(str(given)))
            rows = read_table(given, "neighbours", header=True)
            table = self._matrix_of_file(rows)
            if table is not None:
                return self._matrix(table)
            if rows and not self._known(rows[0]) and any(self._known(row) for row in rows[1:]):
                rows = rows[1:]  # a header
            return self._listed(rows)
        labels, columns = row_labels(given), column_labels(given)
        wanted = "all, consecutive, {'max_distance': D}, pairs of inputs or a matrix"
        rows = plain_list(given, "neighbours", wanted, column=True)
        if self._names_inputs(columns) or (self._names_inputs(labels) and {*map(_length, rows)} == {self.k}):
            down, across = (Axis(names, self.inputs, "inputs") for names in (labels, columns))
            table = align_table(rows, down, across, "a matrix of distances")
            if len(table) != self.k or {*map(len, table)} != {self.k}:
                must("a matrix of distances", f"of {self.k} rows and columns", f"{len(table)} rows")
            return self._matrix(table)
        square = len(rows) == self.k and all(_length(row) == self.k for row in rows)
        # three pairs with distances are square as well; none of them has the distance 0
        if square and (isinstance(given, np.ndarray) or self.k > 3 or (self.k == 3 and is_zero(rows[2][2]))):
            return self._matrix(rows)
        return self._listed(rows)

    def _turned(self, pairs: Pairs | None) -> Pairs | None:
        """Pairs i < j; where they are directed, each from the larger number, or the later input, to the other."""
        if not self.directed:
            return pairs
        if pairs is None and self.k * (self.k - 1) > 2 * _PAIRS:
            must("directed", f"left out for more than {_PAIRS} pairs of neighbours", self.directed)
        rank = rationals_of(self.inputs) or range(self.k)
        either = combinations(range(self.k), 2) if pairs is None else pairs
        return tuple(sorted((i, j) if rank[i] > rank[j] else (j, i) for i, j in either))

    def _within(self, max_shift: Any, entries: Sequence[Any]) -> Pairs:
        """List the pairs of numbers at most so far apart, up to the rounding of floats."""
        most = exact(max_shift, "max_shift")
        if most <= 0:
            must("max_shift", "a number > 0", spelled(most))
        x = rationals_of(self.inputs)
        if x is None:
            must("max_shift", "left out for inputs that are no numbers", spelled(most))
        order = sorted(range(self.k), key=x.__getitem__)
        reach = most + threshold_tolerance(most, x, [*entries, max_shift], "inputs")
        beyond = [bisect_right(order, x[i] + reach, key=x.__getitem__) for i in order]
        if sum(beyond) - self.k * (self.k + 1) // 2 > _PAIRS:
            must("max_shift", f"one that leaves at most {_PAIRS} pairs of neighbours", spelled(most))
        near = ((i, j) for at, i in enumerate(order) for j in order[at + 1 : beyond[at]])
        pairs = tuple(sorted((min(pair), max(pair)) for pair in near))
        return pairs or must("max_shift", "at least the least distance of two inputs", spelled(most))

    def _names_inputs(self, labels: Sequence[Any] | None) -> bool:
        """Whether some labels of a table are inputs, so that it is a matrix and no list of pairs."""
        return labels is not None and any(self._index.find(label_point(label), label) is not None for label in labels)

    def _known(self, row: Any) -> bool:
        try:
            return all(self._index.find(point(cell, "an input"), cell) is not None for cell in list(row)[:2])
        except (InvalidRequest, TypeError):
            return False

    @cached_property
    def _index(self) -> PointIndex:
        return PointIndex(self.inputs)

    def _listed(self, entries: Sequence[Any]) -> tuple[Pairs, Rationals | None]:
        measured: dict[Pair, Fraction | None] = {}
        for entry in entries:
            row = plain_list(entry, "a pair of neighbours", "two inputs")
            if len(row) not in (2, 3):
                must("a pair of neighbours", "two inputs, and perhaps their distance", row)
            ends = []
            for cell in row[:2]:
                end = point(cell, "a neighbour")
                position = self._index.find(end, cell)
                if position is None:
                    must("neighbours", "pairs of inputs", f"{shown(end)}, which is no input")
                ends.append(position)
            if ends[0] == ends[1]:
                must("neighbours", "pairs of different inputs", f"{shown(self.inputs[ends[0]])} twice")
            pair = (ends[0], ends[1]) if self.directed else (min(ends), max(ends))
            distance = None
            if len(row) == 3:
                distance = positive(row[2], f"the distance of {' and '.join(str(shown(self.inputs[i])) for i in pair)}")
            if pair in measured and measured[pair] != distance:
                must("neighbours", "pairs with one distance each", f"two for {row[:2]}")
            measured[pair] = distance
        if not measured:
            must("neighbours", "at least one pair of inputs", "none")
        if len({distance is None for distance in measured.values()}) > 1:
            raise InvalidRequest("Distances must be given for every pair of neighbours, or for none.")
        pairs = tuple(sorted(measured))
        distances = tuple(d for pair in pairs if (d := measured[pair]) is not None)
        return pairs, distances or None

    def _matrix_of_file(self, rows: Sequence[Sequence[Any]]) -> list[list[Any]] | None:
        """Put the matrix of distances of a file into the order of the inputs; None where the file lists pairs.

        A file has labels where it has a row or a column more than there are inputs. Raises InvalidRequest.
        """
        widths = {*map(len, rows)}
        if len(rows) not in (self.k, self.k + 1) or widths not in ({self.k}, {self.k + 1}):
            return None
        has_columns, has_labels = len(rows) == self.k + 1, widths == {self.k + 1}
        if widths == {3} and self.k == 3 and not is_zero(rows[-1][2]):  # Three pairs with their distances.
            return None
        if self.k == 2 and not (has_columns and has_labels and self._names_inputs(rows[0][1:])):
            return None
        body = [list(row) for row in rows]
        columns = body.pop(0) if has_columns else None
        labels = [row.pop(0) for row in body] if has_labels else None
        if columns is not None and has_labels:
            columns = columns[1:]
        axes = Axis(labels, self.inputs, "inputs"), Axis(columns, self.inputs, "inputs")
        table = align_table(body, *axes, "a matrix of distances")
        return [[number if (number := rational(cell)) is not None else cell for cell in row] for row in table]

    def _matrix(self, rows: Sequence[Any]) -> tuple[Pairs, Rationals | None]:
        table = [list(row) for row in rows]
        entries = []
        for i, j in product(range(self.k), repeat=2):
            distance = table[i][j]
            if i == j:
                if not is_zero(distance):
                    must("a matrix of distances", "0 on its diagonal", distance)
            elif distance != table[j][i]:
                must("a matrix of distances", "symmetric", f"{distance} and {table[j][i]} for {(i, j)}")
            elif i < j and not (is_number(distance) and float(distance) == math.inf):
                entries.append((self.inputs[i], self.inputs[j], distance))
        if not entries:
            must("a matrix of distances", "finite for some pair", "none")
        return self._listed(entries)

    def _prior(self, given: Any) -> Rationals | None:
        if given is None or (isinstance(given, str) and given == "uniform"):
            return (Fraction(1, self.k),) * self.k
        if isinstance(given, str) and given == "worst":
            return None
        if isinstance(given, str) and "," in given and not names_file(given):
            given = given.split(",")
        elif isinstance(given, (str, Path)) and not names_file(given):
            must("prior", "uniform, worst, weights or a CSV file of them", repr(str(given)))
        if isinstance(given, (str, Path)):
            rows: Sequence[Any] = read_table(given, "prior")
        else:
            rows = plain_list(given, "prior", "a list", column=True)
        if any(isinstance(row, list) for row in rows):
            if not all(isinstance(row, list) and row for row in rows):
                must("prior", "weights, or rows of an input and its weight", repr(rows)[:80])
            rows = self._paired(rows)
        else:
            rows = aligned(given, rows, lambda: self.inputs, "prior")
        weights = [exact(weight, "every weight of the prior") for weight in rows]
        if len(weights) != self.k:
            must("prior", f"uniform, worst, or {self.k} weights, one for every input", len(weights))
        if min(weights) < 0 or not any(weights):
            must("prior", "weights >= 0, not all 0", spelled(min(weights)))
        total = sum(weights)
        return tuple(weight / total for weight in weights)

    def _paired(self, rows: Sequence[Any]) -> list[Any]:
        """The weights of a table of one column, or of inputs and weights: those of inputs it leaves out are 0."""
        if all(len(row) == 1 for row in rows):
            return [row[0] for row in rows]
        weights = [0] * self.k
        seen = set()
        for row in rows:
            at = self._index.find(point(row[0], "an input of the prior"), row[0]) if len(row) == 2 else None
            if at is None or at in seen:
                must("prior", "a CSV of inputs, each once, and their weights", ",".join(map(str, row)))
            seen.add(at)
            weights[at] = row[1]
        return weights


def _length(row: Any) -> int:
    return -1 if isinstance(row, (str, bytes)) or not hasattr(row, "__len__") else len(row)
