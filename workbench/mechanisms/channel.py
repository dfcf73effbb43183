"""A finite channel: Pr[k | q] for answers q = 0..n and outputs k, every row held exactly, and its neighbouring rows.

MSE = 1/(n+1) Σ_q Σ_k Pr[k|q] (k - q)²        ER = 1 - 1/(n+1) Σ_q Pr[q|q]        (answers uniform)
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cached_property
from itertools import pairwise, permutations
from types import NoneType
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from workbench.data.neighbours import read_row_pairs
from workbench.data.plain import read_finite_table, read_floats_and_entries, read_integer, read_list
from workbench.data.points import Point, format_point, rationals_or_none, read_point
from workbench.data.tolerance import PointIndex
from workbench.errors import InvalidRequest, must
from workbench.exact.arrays import Integers, Positions, Vector
from workbench.exact.distribution import Distribution, to_common_denominator
from workbench.exact.numbers import Rationals, exp_bounds
from workbench.exact.objects import Pair, Pairs, Record
from workbench.exact.random_source import Source
from workbench.exact.sampler import Sampler
from workbench.exact.time_limit import check_time_limit
from workbench.io.records import (
    raise_corrupt_entry,
    read_law_columns,
    read_law_record,
    require_list,
    take_entries,
    write_law_columns,
    write_law_record,
)
from workbench.mechanisms.additive import AdditiveNoise
from workbench.mechanisms.mechanism import (
    AuditSize,
    Bias,
    Budget,
    Budgets,
    Comparison,
    Distances,
    assign_budgets,
    compare_pairs,
    find_extreme_pairs,
)
from workbench.mechanisms.shown_mechanism import ShownMechanism
from workbench.questions.neighbour_parts import label_connected_parts

_USED = 1e-9
_UNITS = 256  # bits of masses of others
Rows: TypeAlias = "Channel | Sequence[Any] | np.ndarray[Any, Any]"


@dataclass(frozen=True, repr=False)
class Channel(ShownMechanism):
    """rows[q]: the exact distribution of the output on answer q. Build it with `of`, `from_rows` or `from_noise`.

    neighbours: ordered pairs of row numbers, sorted; None: every two rows (label privacy).
    labelled: (the input of every row, what every output publishes), numbers or texts; None: the numbers of the rows and
    of the outputs stand for themselves. They are no part of the law: channels that differ in them alone are equal.
    """

    rows: tuple[Distribution, ...]
    neighbours: Pairs | None = None
    axis_labels: tuple[tuple[Point, ...], tuple[Point, ...]] | None = field(
        default=None, compare=False
    )

    segments = ()
    repaired_by = "rows"

    def __post_init__(self) -> None:
        for name in ("rows", "neighbours", "axis_labels"):
            if isinstance(getattr(self, name), list):
                self.__dict__[name] = tuple(getattr(self, name))
        if not isinstance(self.rows, tuple) or not all(
            isinstance(row, Distribution) for row in self.rows
        ):
            must(
                "rows",
                "a tuple of Distributions (Channel.from_pairs reads others)",
                type(self.rows).__name__,
            )
        for name in ("neighbours", "axis_labels"):
            if not isinstance(getattr(self, name), (tuple, NoneType)):
                must(name, "a tuple, or None", type(getattr(self, name)).__name__)
        if self.axis_labels is not None and not all(
            isinstance(part, (tuple, list)) for part in self.axis_labels
        ):
            must(
                "axis_labels",
                "two tuples, of the inputs and of the outputs",
                repr(self.axis_labels)[:80],
            )
        if not self.rows or len({len(row.integers) for row in self.rows}) != 1:
            must("rows", "at least one row, all of one length", [len(row) for row in self.rows])
        if self.axis_labels is not None and [*map(len, self.axis_labels)] != [
            len(self.rows),
            len(self.rows[0]),
        ]:
            counts = f"{len(self.rows)} inputs and {len(self.rows[0])} outputs"
            must("axis_labels", counts, [*map(len, self.axis_labels)])
        count = len(self.rows)
        if self.neighbours is not None and len(self.neighbours) == count * (count - 1):
            self.__dict__["neighbours"] = None

    @classmethod
    def from_pairs(
        cls, rows: Rows, pairs: Iterable[Any] | None = None, *, directed: bool = False
    ) -> Channel:
        """Rows (a Channel, a float matrix, or rows of exact numbers) with neighbouring row numbers.

        pairs: (i, j) of different rows, both orders unless directed; None: every two. Raises InvalidRequest.
        """
        if not isinstance(directed, bool):
            must("directed", "True or False", repr(directed))
        channel = rows if isinstance(rows, Channel) else cls.from_rows(rows)
        related = (
            None
            if pairs is None
            else read_row_pairs(pairs, len(channel.rows) - 1, is_directed=directed)
        )
        return cls(channel.rows, related, channel.axis_labels)

    @classmethod
    def from_rows(cls, rows: Sequence[Any] | np.ndarray[Any, Any]) -> Channel:
        """The channel with these rows, each normalised by its exact sum, every two of them neighbours.

        rows: shape (answers, outputs); floats are read as the exact rationals they are, else ints and Fractions.
        Raises InvalidRequest for NaN, infinities, negative numbers, rows of zeros and rows of different lengths.
        """
        listed = read_list(rows, "rows", "a list of rows of numbers")
        return cls(Distribution.read_rows(listed, "a row of the channel"))

    @classmethod
    def from_noise(cls, noise: AdditiveNoise) -> Channel:
        """Additive noise as a channel between row-major positions: Pr[k|q] = f(k - q) in the group. N x N masses."""
        if not isinstance(noise, AdditiveNoise):
            must("noise", "additive noise on a group", type(noise).__name__)
        return cls(tuple(map(noise.law, noise.inputs)))

    @classmethod
    def from_privacy_loss(cls, losses: Any) -> Channel:
        """Two laws for every direction that dp_accounting's PrivacyLossDistribution has, row 0 against 1 (and 2 against
        3): no less private at any ε >= 0 than a pessimistic one says, whose masses are read as the doubles they are.

        A loss L of mass p is an outcome of mass p against p e^-L, rounded down; what is missing of either law is an
        outcome the other has not; what is beyond 1 is taken off those of the least losses, or p e^-L is divided by it.
        Raises InvalidRequest.
        """
        if not hasattr(losses, "_pmf_remove"):
            must("losses", "a PrivacyLossDistribution of dp_accounting", repr(losses))
        sides = [losses._pmf_remove] if losses._symmetric else [losses._pmf_remove, losses._pmf_add]
        laws = [law for side in map(_convert_privacy_loss, sides) for law in side]
        longest = max(map(len, laws))
        rows = tuple(Distribution([*law, *[0] * (longest - len(law))]) for law in laws)
        return cls(rows, tuple((k, k + 1) for k in range(0, len(rows), 2)))

    # What a mechanism is.

    def law(self, x: Any) -> Distribution:
        """The law of an input: of row x where the rows are not labelled. Raises InvalidRequest."""
        return self.rows[self.find_row(x)]

    def find_row(self, x: Any) -> int:
        """The row of an input. Raises InvalidRequest."""
        if self.axis_labels is None:
            top = len(self.rows) - 1
            return read_integer(
                x, "answer", 0, top, f"a row of the channel, an integer in 0..{top}"
            )
        answer = None if x is None else read_point(x, "answer")
        place = None if answer is None else self._index.find(answer, x)
        if place is None:
            inputs = self.axis_labels[0]
            numbers = rationals_or_none(inputs)
            if numbers is None:
                must(
                    "answer",
                    f"one of the {len(inputs)} inputs, such as {format_point(inputs[0])!r}",
                    repr(x),
                )
            must(
                "answer",
                f"one of the {len(inputs)} labels from {float(min(numbers)):g} to {float(max(numbers)):g}",
                x,
            )
        return place

    @cached_property
    def _index(self) -> PointIndex:
        assert self.axis_labels is not None
        return PointIndex(self.axis_labels[0])

    @property
    def inputs(self) -> Any:
        """What the rows stand for: 0..n, or their labels."""
        if self.axis_labels is None:
            return np.arange(len(self.rows))
        return self.axis_labels[0]

    @property
    def outputs(self) -> NDArray[Any]:
        """What is published: 0..m-1, or the labels of the outputs, numbers as floats. Shape (m,)."""
        if self.axis_labels is None:
            return np.arange(len(self.rows[0]))
        return self._published

    @cached_property
    def _published(self) -> NDArray[Any]:
        assert self.axis_labels is not None
        numbers = rationals_or_none(self.axis_labels[1])
        if numbers is not None:
            return np.array([float(value) for value in numbers])
        values = np.empty(len(self.axis_labels[1]), dtype=object)
        values[:] = [format_point(value) for value in self.axis_labels[1]]
        return values

    @property
    def pairs(self) -> Pairs:
        """Every ordered pair of neighbouring rows, sorted; of a single row, itself."""
        if self.neighbours is not None:
            return self.neighbours
        if len(self.rows) > 1:
            return tuple(permutations(range(len(self.rows)), 2))
        return ((0, 0),)

    @property
    def is_one_sided(self) -> bool:
        """Whether a pair is listed in one order only."""
        return self.neighbours is not None and not {(j, i) for i, j in self.neighbours} <= {
            *self.neighbours
        }

    def budgets(self, epsilon: Budget) -> Budgets:
        """The budget of every ordered pair; a mapping may give (i, j) for both orders. Raises InvalidRequest."""
        return assign_budgets(self.pairs, epsilon)

    def comparisons(self) -> Iterator[Comparison]:
        """Every ordered pair of neighbouring rows."""
        return compare_pairs(self.rows, self.pairs)

    def extremes(self) -> Iterator[Comparison]:
        """The pairs that decide pure ε: linear in the channel where every two rows are neighbours."""
        return compare_pairs(
            self.rows, find_extreme_pairs(self.rows) if self.neighbours is None else self.neighbours
        )

    @property
    def audit_size(self) -> AuditSize:
        """Every row, every pair."""
        extremes = min(len(self.pairs), len(self.rows[0])) if self.neighbours is None else None
        return AuditSize.from_laws(self.rows, len(self.pairs), extremes=extremes)

    def sample(self, values: ArrayLike, source: Source | None = None) -> NDArray[Any]:
        """One draw for each of many inputs, numbers, independently. Raises InvalidRequest for what is no input."""
        kept = read_floats_and_entries(values, "inputs")[1].reshape(-1)
        if kept.dtype.kind == "O":
            rows = {x: row for row, x in enumerate(sorted({*kept}))}
            which = np.array([rows[x] for x in kept], dtype=np.int64)
            laws = [self.law(x) for x in rows]
        else:
            present, which = np.unique(kept, return_inverse=True)
            laws = [self.law(x) for x in present.tolist()]
        return self.outputs[Sampler(laws, source).draw_from(which) if laws else []]

    @property
    def distances(self) -> Distances:
        """Of integers in a row as numbers, of other inputs in steps."""
        top = len(self.rows) - 1
        numbers = (
            [*map(Fraction, range(top + 1))]
            if self.axis_labels is None
            else rationals_or_none(self.axis_labels[0])
        )
        if (
            numbers is not None
            and int(numbers[0]) == numbers[0]
            and all(b - a == 1 for a, b in pairwise(numbers))
        ):
            return Distances("whole", ((int(numbers[0]), int(numbers[-1])),), max_distance=top)
        return Distances(
            "listed", inputs=[*self.inputs], max_distance=1 if self.neighbours is None else top
        )

    def with_max_distance(self, distance: int) -> Channel:
        """The same rows, those of inputs at most so far apart being neighbours, both ways."""
        count = len(self.rows)
        if self.distances.kind == "whole":
            return Channel.from_pairs(self, pairs_within(count - 1, distance))
        step = np.eye(count, dtype=bool)
        step[tuple(np.array(self.pairs).T)] = True
        near = step = step | step.T
        for _ in range(distance - 1):
            near = near @ step
        return Channel.from_pairs(self, np.argwhere(np.triu(near, 1)).tolist())

    def losses(self, loss: Callable[[Any, Any], Vector]) -> Vector:
        """E ℓ(o, x) of every input x, numbers; outputs of mass 0 left out. loss: (outputs, inputs) -> ℓ. Shape (k,)."""
        inputs = np.array([float(x) for x in self.inputs])
        table = loss(self.outputs[None, :], inputs[:, None])
        return np.asarray((self.matrix * np.where(self.matrix > 0, table, 0.0)).sum(axis=1))

    def describe(self) -> str:
        """One line."""
        return (
            f"A channel of {len(self.rows)} inputs and {len(self.rows[0])} outputs, "
            f"{len(self.pairs)} ordered pairs of neighbours{', one side of each alone' if self.is_one_sided else ''}"
            f"{f', in {self.part_count} separate parts' if self.part_count > 1 else ''}"
        )

    @cached_property
    def part_count(self) -> int:
        """Number of connected parts of the neighbour relation."""
        if self.neighbours is None:
            return 1
        return len(np.unique(label_connected_parts(len(self.rows), self.neighbours)))

    def to_dict(self) -> Record:
        """JSON-ready, read back by `from_dict`: rows and ordered pairs."""
        return {
            "kind": "channel",
            "rows": [*map(write_law_record, self.rows)],
            "pairs": [*map(list, self.pairs)],
        }

    @property
    def record_digits(self) -> int:
        """How many digits `to_dict` takes at least where `short_record` may take fewer, else 0."""
        if self.neighbours is not None:
            return 0
        return sum(sum(k.bit_length() for k in row.integers) // 4 + len(row) for row in self.rows)

    def short_record(self) -> Record | None:
        """The same of a channel whose rows are all neighbours, short where columns repeat their weights; None of any
        other."""
        if self.neighbours is not None:
            return None
        return {
            "kind": "channel",
            "rows": len(self.rows),
            "columns": write_law_columns(self.rows),
            "pairs": "all",
        }

    @classmethod
    def from_dict(cls, data: Any) -> Channel:
        """The channel written by `to_dict` or `short_record`, which claims no privacy: audit it.

        Raises CorruptFile, InvalidRequest.
        """
        if isinstance(data, dict) and "columns" in data:
            entries = take_entries(data, "The channel", {"kind", "rows", "columns", "pairs"})
            if entries["pairs"] != "all":
                raise_corrupt_entry("pairs", "all, where columns are given")
            return cls(read_law_columns(entries["columns"], entries["rows"]))
        entries = take_entries(data, "The channel", {"kind", "rows", "pairs"})
        rows = tuple(read_law_record(row, "A row") for row in require_list(entries["rows"], "rows"))
        pairs = require_list(entries["pairs"], "pairs")
        if not all(
            isinstance(pair, list) and len(pair) == 2 and all(type(k) is int for k in pair)
            for pair in pairs
        ):
            raise_corrupt_entry("pairs", "pairs of row numbers")
        return cls.from_pairs(cls(rows), pairs, directed=True)

    def measure_bias(self, outputs: Sequence[Fraction], inputs: Sequence[Fraction]) -> Bias:
        """How far the mean of a row is from what it should be. outputs: (m,); inputs: one for each row.

        Raises InvalidRequest.
        """
        if len(outputs) != len(self.rows[0]) or len(inputs) != len(self.rows):
            raise InvalidRequest(
                f"A {len(self.rows)} x {len(self.rows[0])} channel needs as many inputs and outputs."
            )
        whole, scale = to_common_denominator(outputs)
        check_time_limit()
        worst = max(
            abs(row.mean_of_integers(whole, scale) - y)
            for row, y in zip(self.rows, inputs, strict=True)
        )
        return Bias(tuple(outputs), tuple(inputs), worst)

    @property
    def unbiased_means(self) -> tuple[Rationals, Rationals] | None:
        """(what is published, the inputs), which the mean is where the channel is unbiased; of numbers alone."""
        if self.axis_labels is None:
            return None
        inputs, outputs = map(rationals_or_none, self.axis_labels)
        if inputs is None or outputs is None:
            return None
        return (outputs, inputs)

    def with_rows(self, rows: Sequence[Distribution]) -> Channel:
        """Other laws under the same relation."""
        return replace(self, rows=tuple(rows))

    def __repr__(self) -> str:
        relation = (
            "every two neighbours"
            if self.neighbours is None
            else f"{len(self.pairs)} pairs of neighbours"
        )
        return f"Channel({len(self.rows)} x {len(self.rows[0])}, {relation})"

    # Numbers.

    @cached_property
    def matrix(self) -> Vector:
        """Pr[k|q] as floats. Shape (answers, outputs)."""
        return np.array([row.floats for row in self.rows])

    @property
    def used_outputs(self) -> Positions:
        """The outputs that are more likely than rounding makes them, for some answer."""
        return np.flatnonzero(self.matrix.max(axis=0) > _USED)

    def expected_loss(self, loss: ArrayLike) -> float:
        """1/(n+1) Σ_q Σ_k Pr[k|q] loss[q, k], correct to a few ulps. loss: shape (answers, outputs)."""
        table = read_finite_table(loss, "loss", self.matrix.shape)
        return math.fsum((self.matrix * table).reshape(-1)) / len(self.rows)

    @property
    def mse(self) -> float:
        """The mean squared error of the published answer, answers uniform on 0..n."""
        return self.expected_loss(self._gap() ** 2)

    @property
    def error_rate(self) -> float:
        """The probability that the published answer is wrong, answers uniform on 0..n."""
        return self.expected_loss(self._gap() != 0)

    def _gap(self) -> Integers:
        answers, outputs = self.matrix.shape
        return np.arange(outputs)[None, :] - np.arange(answers)[:, None]


def _convert_privacy_loss(pmf: Any) -> tuple[list[int], list[int]]:
    """One direction of `from_privacy_loss`: weights of both laws in units of 2^-_UNITS."""
    if not pmf._pessimistic_estimate:
        must("losses", "a pessimistic estimate", "an optimistic one")
    dense = pmf.to_dense_pmf()
    step = Fraction(pmf._discretization)
    unit = 1 << _UNITS
    p = [math.ceil(Fraction(max(0.0, float(mass))) * unit) for mass in dense._probs]
    infinite = math.ceil(Fraction(float(pmf._infinity_mass)) * unit)
    excess = max(0, sum(p) + infinite - unit)
    for k, mass in enumerate(p):
        taken = min(mass, excess)
        p[k] = mass - taken
        excess = excess - taken
    q = [
        mass * exp_bounds(-step * (dense._lower_loss + k), _UNITS)[0] >> _UNITS
        for k, mass in enumerate(p)
    ]
    if excess:
        must("losses", "of two laws", "an infinite loss of a probability above 1")
    if (total := sum(q)) > unit:  # small masses of large negative losses, as doubles
        q = [mass * unit // total for mass in q]
    return [*p, unit - sum(p), 0], [*q, 0, unit - sum(q)]


def pairs_within(n: int, max_shift: int) -> list[Pair]:
    """The neighbouring answers {q, q'} of 0..n with 0 < |q - q'| <= max_shift, each once. Raises InvalidRequest."""
    reach = read_integer(max_shift, "max_shift", 1, n)
    return [(q, other) for q in range(n + 1) for other in range(q + 1, min(n, q + reach) + 1)]
