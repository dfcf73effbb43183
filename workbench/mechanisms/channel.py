"""A finite channel: a matrix of exact probabilities Pr[k | q], and the pairs of rows to protect.

Row q is the law of the output k if the true answer is q = 0..n. The mean squared error and the
error rate are averages over uniform answers, with the row and output numbers as values:

MSE = 1/(n+1) Σ_q Σ_k Pr[k|q] (k - q)²        ER = 1 - 1/(n+1) Σ_q Pr[q|q]
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

_MIN_USED_MASS = 1e-9  # Outputs with smaller masses count as unused: solvers round that much.
_MASS_BITS = 256  # Masses of a privacy loss distribution are multiples of 2^-256.
_MAX_SHOWN_CHARACTERS = 80  # Error messages show this much of a wrong value.
Rows: TypeAlias = "Channel | Sequence[Any] | np.ndarray[Any, Any]"


@dataclass(frozen=True, repr=False)
class Channel(ShownMechanism):
    """A finite channel. Build it with `from_pairs`, `from_rows` or `from_noise`.

    Example: `Channel.from_rows([[3, 1], [1, 3]])` has the laws (3/4, 1/4) and (1/4, 3/4).

    Attributes:
        rows: rows[q] is the exact distribution of the output on answer q.
        neighbours: The ordered pairs of row numbers that are compared, sorted. None: every two rows
            are neighbours, as in label privacy.
        axis_labels: The inputs of the rows and the published values of the outputs, as two tuples
            of numbers or texts. None: row and output numbers stand for themselves. Channels that
            differ only in these labels are equal.
    """

    rows: tuple[Distribution, ...]
    neighbours: Pairs | None = None
    axis_labels: tuple[tuple[Point, ...], tuple[Point, ...]] | None = field(
        default=None, compare=False
    )

    segments = ()
    repaired_by = "rows"

    def __post_init__(self) -> None:
        # Lists are accepted, but a frozen channel must be hashable, so it stores tuples. Attributes
        # of a frozen class are set in `__dict__`.
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
            isinstance(labels, (tuple, list)) for labels in self.axis_labels
        ):
            must(
                "axis_labels",
                "two tuples, of the inputs and of the outputs",
                repr(self.axis_labels)[:_MAX_SHOWN_CHARACTERS],
            )
        if not self.rows or len({len(row.integers) for row in self.rows}) != 1:
            must("rows", "at least one row, all of one length", [len(row) for row in self.rows])
        if self.axis_labels is not None and [*map(len, self.axis_labels)] != [
            len(self.rows),
            len(self.rows[0]),
        ]:
            counts = f"{len(self.rows)} inputs and {len(self.rows[0])} outputs"
            must("axis_labels", counts, [*map(len, self.axis_labels)])
        # A list of all pairs means the same as None, so equal channels compare as equal.
        count = len(self.rows)
        if self.neighbours is not None and len(self.neighbours) == count * (count - 1):
            self.__dict__["neighbours"] = None

    @classmethod
    def from_pairs(
        cls, rows: Rows, pairs: Iterable[Any] | None = None, *, directed: bool = False
    ) -> Channel:
        """Build a channel from rows and neighbouring row numbers.

        Args:
            rows: A Channel, a float matrix of shape (answers, outputs), or rows of exact numbers.
            pairs: Pairs (i, j) of numbers of different rows. Default: every two rows.
            directed: Whether a pair (i, j) protects row i against row j only. Default: a pair in
                one order stands for both orders.

        Returns:
            The channel.

        Raises:
            InvalidRequest: If a row number is outside the channel, if a pair has two equal numbers,
                or if the rows are no laws (see `from_rows`).
        """
        if not isinstance(directed, bool):
            must("directed", "True or False", repr(directed))
        channel = rows if isinstance(rows, Channel) else cls.from_rows(rows)
        neighbours = None
        if pairs is not None:
            neighbours = read_row_pairs(pairs, len(channel.rows) - 1, is_directed=directed)
        return cls(channel.rows, neighbours, channel.axis_labels)

    @classmethod
    def from_rows(cls, rows: Sequence[Any] | np.ndarray[Any, Any]) -> Channel:
        """Build the channel of some rows, every two of which are neighbours.

        Each row is divided by its exact sum.

        Args:
            rows: Weights >= 0 of shape (answers, outputs): ints, Fractions, or floats, which are
                read as the exact rationals that they are.

        Raises:
            InvalidRequest: If a number is negative, infinite or NaN, if a row has only zeros, or if
                the rows have different lengths.
        """
        row_list = read_list(rows, "rows", "a list of rows of numbers")
        return cls(Distribution.read_rows(row_list, "a row of the channel"))

    @classmethod
    def from_noise(cls, noise: AdditiveNoise) -> Channel:
        """Convert additive noise on a group to a channel: Pr[k|q] = f(k - q).

        Rows and columns are row-major positions of the group.

        Args:
            noise: The noise on a group of N elements. The channel has N x N masses.

        Raises:
            InvalidRequest: If noise is no AdditiveNoise.
        """
        if not isinstance(noise, AdditiveNoise):
            must("noise", "additive noise on a group", type(noise).__name__)
        return cls(tuple(map(noise.law, noise.inputs)))

    @classmethod
    def from_privacy_loss(cls, losses: Any) -> Channel:
        """Convert a PrivacyLossDistribution of dp_accounting to a channel.

        Rows 0 and 1 are the two laws of the first direction. If the distribution has a second
        direction, rows 2 and 3 are its laws. At every ε >= 0 the δ of these rows is at most the δ
        of the (pessimistic) distribution. Its masses are taken as exact doubles.

        A privacy loss L of mass p becomes an output with the probabilities p, rounded up, and
        p e^-L, rounded down. If the probabilities of a law sum to less than 1, an output that only
        this law has takes the rest. If the p sum to more than 1, the excess is subtracted from the
        outputs of the smallest privacy losses. If the p e^-L do, they are divided by their sum.

        Args:
            losses: A pessimistic PrivacyLossDistribution.

        Raises:
            InvalidRequest: If losses is no PrivacyLossDistribution, if it is an optimistic
                estimate, or if its infinite privacy loss has a probability above 1.
        """
        # The attributes with underscores are the only access to the masses in dp_accounting.
        if not hasattr(losses, "_pmf_remove"):
            must("losses", "a PrivacyLossDistribution of dp_accounting", repr(losses))
        laws = [*_convert_privacy_loss(losses._pmf_remove)]
        if not losses._symmetric:
            laws += _convert_privacy_loss(losses._pmf_add)
        length = max(map(len, laws))
        rows = tuple(Distribution([*law, *[0] * (length - len(law))]) for law in laws)
        return cls(rows, tuple((k, k + 1) for k in range(0, len(rows), 2)))

    # Members of `Mechanism`.

    def law(self, x: Any) -> Distribution:
        """Return the law of an input.

        Args:
            x: An input label. Without `axis_labels`, a row number.

        Raises:
            InvalidRequest: If x is no input of the channel.
        """
        return self.rows[self.find_row(x)]

    def find_row(self, x: Any) -> int:
        """Find the row number of an input.

        Args:
            x: An input label. Without `axis_labels`, a row number.

        Raises:
            InvalidRequest: If x is no input of the channel.
        """
        if self.axis_labels is None:
            last = len(self.rows) - 1
            return read_integer(
                x, "answer", 0, last, f"a row of the channel, an integer in 0..{last}"
            )
        row = None
        if x is not None:
            row = self._row_index.find(read_point(x, "answer"), x)
        if row is None:
            inputs, _ = self.axis_labels
            numbers = rationals_or_none(inputs)
            if numbers is None:
                example = f"one of the {len(inputs)} inputs, such as {format_point(inputs[0])!r}"
                must("answer", example, repr(x))
            label_range = f"from {float(min(numbers)):g} to {float(max(numbers)):g}"
            must("answer", f"one of the {len(inputs)} labels {label_range}", x)
        return row

    @cached_property
    def _row_index(self) -> PointIndex:
        """Return the index that maps an input label to its row number."""
        assert self.axis_labels is not None
        return PointIndex(self.axis_labels[0])

    @property
    def inputs(self) -> Any:
        """Return the inputs of the rows: 0..n, or their labels."""
        if self.axis_labels is None:
            return np.arange(len(self.rows))
        return self.axis_labels[0]

    @property
    def outputs(self) -> NDArray[Any]:
        """Return the published values: 0..m-1, or the labels of the outputs, numbers as floats.

        Shape (m,).
        """
        if self.axis_labels is None:
            return np.arange(len(self.rows[0]))
        return self._output_labels

    @cached_property
    def _output_labels(self) -> NDArray[Any]:
        """Return the published values of the outputs: floats, or texts."""
        assert self.axis_labels is not None
        _, labels = self.axis_labels
        numbers = rationals_or_none(labels)
        if numbers is not None:
            return np.array([float(value) for value in numbers])
        values = np.empty(len(labels), dtype=object)
        values[:] = [format_point(label) for label in labels]
        return values

    @property
    def pairs(self) -> Pairs:
        """Return every ordered pair of neighbouring rows, sorted.

        A channel of one row compares this row with itself, because an audit needs a comparison.
        """
        if self.neighbours is not None:
            return self.neighbours
        if len(self.rows) > 1:
            return tuple(permutations(range(len(self.rows)), 2))
        return ((0, 0),)

    @property
    def is_one_sided(self) -> bool:
        """Return whether a pair is listed in one order only."""
        if self.neighbours is None:
            return False
        return not {(j, i) for i, j in self.neighbours} <= {*self.neighbours}

    def budgets(self, epsilon: Budget) -> Budgets:
        """Return the budget of every ordered pair.

        Args:
            epsilon: One number >= 0 for all pairs, or a mapping (i, j) -> number. An entry for
                (i, j) also counts for (j, i) if that pair has no entry.

        Returns:
            The exact budget of every ordered pair of neighbours.

        Raises:
            InvalidRequest: If a budget is negative or no number, or if a mapping leaves out a pair
                or names rows that are no neighbours.
        """
        return assign_budgets(self.pairs, epsilon)

    def comparisons(self) -> Iterator[Comparison]:
        """Yield every ordered pair of neighbouring rows."""
        return compare_pairs(self.rows, self.pairs)

    def extremes(self) -> Iterator[Comparison]:
        """Yield the pairs that decide pure ε.

        If every two rows are neighbours, their number is linear in the size of the channel.
        """
        return compare_pairs(
            self.rows, find_extreme_pairs(self.rows) if self.neighbours is None else self.neighbours
        )

    @property
    def audit_size(self) -> AuditSize:
        """Return the size of an audit of every row and every pair."""
        extremes = None
        if self.neighbours is None:
            # `find_extreme_pairs` finds at most one pair for each output.
            extremes = min(len(self.pairs), len(self.rows[0]))
        return AuditSize.from_laws(self.rows, len(self.pairs), extremes=extremes)

    def sample(self, values: ArrayLike, source: Source | None = None) -> NDArray[Any]:
        """Draw one output for each of many inputs, independently.

        Args:
            values: Inputs of the channel, shape (n,).
            source: The source of randomness. Default: the operating system.

        Returns:
            The published values, shape (n,).

        Raises:
            InvalidRequest: If a value is no input of the channel.
        """
        _, exact_entries = read_floats_and_entries(values, "inputs")
        entries = exact_entries.reshape(-1)
        if not entries.size:
            return self.outputs[[]]
        if entries.dtype.kind == "O":
            # Exact numbers and texts are arrays of objects.
            number_by_input = {x: number for number, x in enumerate(sorted({*entries}))}
            law_numbers = np.array([number_by_input[x] for x in entries], dtype=np.int64)
            laws = [self.law(x) for x in number_by_input]
        else:
            unique_inputs, law_numbers = np.unique(entries, return_inverse=True)
            laws = [self.law(x) for x in unique_inputs.tolist()]
        return self.outputs[Sampler(laws, source).draw_from(law_numbers)]

    @property
    def distances(self) -> Distances:
        """Return the distances of the inputs.

        Consecutive integers have the distance |x - x'|. The distance of other inputs is the number
        of steps from neighbour to neighbour.
        """
        last = len(self.rows) - 1
        numbers: Sequence[Fraction] | None = [*map(Fraction, range(last + 1))]
        if self.axis_labels is not None:
            numbers = rationals_or_none(self.axis_labels[0])
        if numbers is not None and _are_consecutive(numbers):
            return Distances("whole", ((int(numbers[0]), int(numbers[-1])),), max_distance=last)
        max_distance = 1 if self.neighbours is None else last
        return Distances("listed", inputs=[*self.inputs], max_distance=max_distance)

    def with_max_distance(self, distance: int) -> Channel:
        """Return the same rows under the neighbour relation "at most a distance apart", both ways.

        Args:
            distance: The largest distance of neighbours, >= 1. For consecutive integers it is
                |x - x'|, otherwise the number of steps from neighbour to neighbour.
        """
        count = len(self.rows)
        if self.distances.kind == "whole":
            return Channel.from_pairs(self, pairs_within(count - 1, distance))
        is_neighbour = np.eye(count, dtype=bool)
        is_neighbour[tuple(np.array(self.pairs).T)] = True
        is_neighbour = is_neighbour | is_neighbour.T
        # The diagonal is True, so a product of k of these matrices marks the rows within k steps.
        is_reachable = is_neighbour
        for _ in range(distance - 1):
            is_reachable = is_reachable @ is_neighbour
        return Channel.from_pairs(self, np.argwhere(np.triu(is_reachable, 1)).tolist())

    def losses(self, loss: Callable[[Any, Any], Vector]) -> Vector:
        """Compute the expected loss E ℓ(o, x) for every input x of a channel on numbers.

        Outputs of mass 0 are left out, so their losses may be infinite.

        Args:
            loss: A function (outputs, inputs) -> losses that broadcasts.

        Returns:
            The expected losses, shape (k,).
        """
        inputs = np.array([float(x) for x in self.inputs])
        table = loss(self.outputs[None, :], inputs[:, None])
        return np.asarray((self.matrix * np.where(self.matrix > 0, table, 0.0)).sum(axis=1))

    def describe(self) -> str:
        """Describe the size and the neighbour relation in one line."""
        size = f"A channel of {len(self.rows)} inputs and {len(self.rows[0])} outputs"
        relation = f"{len(self.pairs)} ordered pairs of neighbours"
        if self.is_one_sided:
            relation += ", in one order only"
        if self.part_count > 1:
            relation += f", in {self.part_count} separate parts"
        return f"{size}, {relation}"

    @cached_property
    def part_count(self) -> int:
        """Return the number of connected parts of the neighbour relation."""
        if self.neighbours is None:
            return 1
        return len(np.unique(label_connected_parts(len(self.rows), self.neighbours)))

    def to_dict(self) -> Record:
        """Return a JSON-ready record of rows and ordered pairs, which `from_dict` reads."""
        return {
            "kind": "channel",
            "rows": [*map(write_law_record, self.rows)],
            "pairs": [*map(list, self.pairs)],
        }

    @property
    def record_digits(self) -> int:
        """Return a lower bound on the digits of `to_dict`; 0 if there is no `short_record`."""
        if self.neighbours is not None:
            return 0
        # A hexadecimal digit holds 4 bits, and every weight has the prefix 0x besides.
        return sum(sum(k.bit_length() for k in row.integers) // 4 + len(row) for row in self.rows)

    def short_record(self) -> Record | None:
        """Return a JSON-ready record by columns, which is short if columns repeat their weights.

        None if some two rows are no neighbours. `from_dict` reads this record too.
        """
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
        """Return the channel written by `to_dict` or `short_record`.

        A record claims no privacy, so the channel must be audited.

        Args:
            data: The record, as parsed from JSON.

        Raises:
            CorruptFile: If the record has another form.
            InvalidRequest: If the rows have different lengths, or a pair names a row that the
                channel does not have.
        """
        if isinstance(data, dict) and "columns" in data:
            entries = take_entries(data, "The channel", {"kind", "rows", "columns", "pairs"})
            if entries["pairs"] != "all":
                raise_corrupt_entry("pairs", "all, where columns are given")
            return cls(read_law_columns(entries["columns"], entries["rows"]))
        entries = take_entries(data, "The channel", {"kind", "rows", "pairs"})
        rows = tuple(read_law_record(row, "A row") for row in require_list(entries["rows"], "rows"))
        pairs = require_list(entries["pairs"], "pairs")
        for pair in pairs:
            is_pair = isinstance(pair, list) and len(pair) == 2
            if not is_pair or not all(type(k) is int for k in pair):
                raise_corrupt_entry("pairs", "pairs of row numbers")
        return cls.from_pairs(cls(rows), pairs, directed=True)

    def measure_bias(self, outputs: Sequence[Fraction], inputs: Sequence[Fraction]) -> Bias:
        """Measure the largest difference between the mean of a row and its input.

        Args:
            outputs: The published values, exact, shape (m,).
            inputs: The mean that each row should have, exact, shape (rows,).

        Returns:
            The largest deviation, with the values it belongs to.

        Raises:
            InvalidRequest: If there are not m outputs, or not as many inputs as rows.
        """
        if len(outputs) != len(self.rows[0]) or len(inputs) != len(self.rows):
            raise InvalidRequest(
                f"A {len(self.rows)} x {len(self.rows[0])} channel needs "
                "as many inputs and outputs."
            )
        integers, scale = to_common_denominator(outputs)
        check_time_limit()
        max_bias = max(
            abs(row.mean_of_integers(integers, scale) - y)
            for row, y in zip(self.rows, inputs, strict=True)
        )
        return Bias(tuple(outputs), tuple(inputs), max_bias)

    @property
    def unbiased_means(self) -> tuple[Rationals, Rationals] | None:
        """Return (published values, inputs); an unbiased channel has these inputs as means.

        None if the channel has no labels, or if a label is no number.
        """
        if self.axis_labels is None:
            return None
        inputs, outputs = map(rationals_or_none, self.axis_labels)
        if inputs is None or outputs is None:
            return None
        return (outputs, inputs)

    def with_rows(self, rows: Sequence[Distribution]) -> Channel:
        """Return a channel with other laws, but the same neighbours and labels.

        Args:
            rows: The new laws, one for each row.
        """
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
        """Return Pr[k|q] as floats. Shape (answers, outputs)."""
        return np.array([row.floats for row in self.rows])

    @property
    def used_outputs(self) -> Positions:
        """Return the positions of the outputs that some answer gives more than a rounding error."""
        return np.flatnonzero(self.matrix.max(axis=0) > _MIN_USED_MASS)

    def expected_loss(self, loss: ArrayLike) -> float:
        """Compute the mean loss 1/(n+1) Σ_q Σ_k Pr[k|q] loss[q, k], correct to a few ulps.

        Args:
            loss: Finite losses, shape (answers, outputs).
        """
        table = read_finite_table(loss, "loss", self.matrix.shape)
        return math.fsum((self.matrix * table).reshape(-1)) / len(self.rows)

    @property
    def mse(self) -> float:
        """Return the mean squared error of the output number, for answers uniform on 0..n."""
        return self.expected_loss(self._gap() ** 2)

    @property
    def error_rate(self) -> float:
        """Return the probability that the output number is not q, for answers uniform on 0..n."""
        return self.expected_loss(self._gap() != 0)

    def _gap(self) -> Integers:
        """Return k - q for every answer q and output k, shape (answers, outputs)."""
        answers, outputs = self.matrix.shape
        return np.arange(outputs)[None, :] - np.arange(answers)[:, None]


def _are_consecutive(numbers: Sequence[Fraction]) -> bool:
    """Return whether the numbers are integers that rise by 1."""
    if int(numbers[0]) != numbers[0]:
        return False
    return all(b - a == 1 for a, b in pairwise(numbers))


def _convert_privacy_loss(pmf: Any) -> tuple[list[int], list[int]]:
    """Convert one direction of a privacy loss distribution to the weights of its two laws P and Q.

    Returns:
        The weights of P and of Q in units of 2^-_MASS_BITS. There is one output for each finite
        privacy loss, then an output that only P has, then one that only Q has.
    """
    if not pmf._pessimistic_estimate:
        must("losses", "a pessimistic estimate", "an optimistic one")
    dense = pmf.to_dense_pmf()
    step = Fraction(pmf._discretization)
    unit = 1 << _MASS_BITS
    p = [math.ceil(Fraction(max(0.0, float(mass))) * unit) for mass in dense._probs]
    infinite = math.ceil(Fraction(float(pmf._infinity_mass)) * unit)
    excess = max(0, sum(p) + infinite - unit)
    for k, mass in enumerate(p):
        subtracted_mass = min(mass, excess)
        p[k] = mass - subtracted_mass
        excess -= subtracted_mass
    q = []
    for k, mass in enumerate(p):
        exp_lower_bound, _ = exp_bounds(-step * (dense._lower_loss + k), _MASS_BITS)
        q.append(mass * exp_lower_bound >> _MASS_BITS)
    if excess:
        must("losses", "of two laws", "an infinite loss of a probability above 1")
    total = sum(q)
    # Doubles round the small masses of large negative losses.
    if total > unit:
        q = [mass * unit // total for mass in q]
    return [*p, unit - sum(p), 0], [*q, 0, unit - sum(q)]


def pairs_within(n: int, max_shift: int) -> list[Pair]:
    """List the neighbouring answers {q, q'} of 0..n with 0 < |q - q'| <= max_shift, each once.

    Args:
        n: The largest answer.
        max_shift: The largest difference of neighbours, an integer in 1..n.

    Raises:
        InvalidRequest: If max_shift is no integer from 1 to n.
    """
    reach = read_integer(max_shift, "max_shift", 1, n)
    pairs = []
    for q in range(n + 1):
        pairs += [(q, neighbour) for neighbour in range(q + 1, min(n, q + reach) + 1)]
    return pairs
