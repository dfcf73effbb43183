"""The protocol that every mechanism implements: exact laws, neighbouring inputs, and draws.

    M : x -> Pr[. | x]      law(x), a distribution on positions 0..m-1; outputs[i] is what position
                            i publishes
    x ~ x'                  comparisons(): every ordered neighbouring pair of laws,
                            P = Pr[. | x], Q = Pr[. | x']
    ε, or ε of a distance   budgets(ε): the budget of every comparison, by its label

The mechanism lists the comparisons, a request gives their budgets, and a notion of privacy measures
one comparison.

    mechanism                    label                comparisons
    additive noise f on a group  the difference μ     f against f(· + μ), for every difference of
                                                      its question
    finite channel               rows (q, q')         row q against row q', all or the neighbouring
                                                      ones
    piecewise affine law         end laws (i, j)      every two end laws; between them the law is
                                                      affine (`segments`)
    randomized response          labels (y, y')       one pair of labels for every kind of pair

A mechanism may have further members, which the docstring of `Mechanism` lists.

On real inputs finitely many laws decide a measure that is largest at ends of pieces, such as a
ratio or a hockey stick. Other measures (the PDP δ, the slope of metric privacy) are computed on
`segments`.

A new class of mechanisms that can be saved also needs the "kind" of its records in
`workbench.privacy.certificate_file`, and in tools/check_certificate.py if it can be certified.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import partial
from typing import Any, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from workbench.data.plain import MAX_FILE_INTEGER, read_integer
from workbench.errors import InvalidRequest, must
from workbench.exact.arrays import Positions
from workbench.exact.distribution import LOG2_TOLERANCE, Distribution
from workbench.exact.integer_law import IntegerLaw
from workbench.exact.numbers import Rationals, Real, read_positive
from workbench.exact.objects import Pair, Record
from workbench.exact.random_source import Source
from workbench.exact.sampler import Sampler

Label: TypeAlias = tuple[int, ...]
Budgets: TypeAlias = dict[Label, Fraction]
Budget: TypeAlias = "Real | Mapping[Any, Real]"

_MAX_DRAWS = 1_000_000_000  # More draws at once are refused; they would not fit into memory.


@dataclass(frozen=True)
class Comparison:
    """The laws P and Q of two neighbouring inputs, on the same outcomes.

    Attributes:
        label: The difference μ of the inputs, or the ordered pair (i, j) of numbers of laws.
        p: The law P of the one input.
        q: The law Q of its neighbour.
        describe: Function outcome -> the names of its mass in P and in Q.
    """

    label: Label
    p: Distribution
    q: Distribution
    describe: Callable[[int], tuple[str, str]] = field(compare=False)


@dataclass(frozen=True)
class Segment:
    """Inputs x in [low, high] with an affine law.

    The law of x is (high - x)/(high - low) left + (x - low)/(high - low) right, where left and
    right are the laws at the two ends.
    """

    low: Fraction
    high: Fraction
    left: Distribution
    right: Distribution


@dataclass(frozen=True)
class AuditSize:
    """The size of an audit, counted without listing its comparisons.

    The comparisons of a mechanism without an `audit_size` are listed.

    Attributes:
        comparisons: The number of comparisons.
        outcomes: The number of outcomes of each comparison.
        laws: The number of laws that are stored.
        bits: The number of bits of the largest total (common denominator) of a law.
        numbers: Further exact numbers of the proof. Long ones make it slower.
        extremes: The number of comparisons that decide the largest ratio, if these are fewer.
        extreme_outcomes: The number of outcomes of each of them, if these are fewer.
    """

    comparisons: int
    outcomes: int
    laws: int
    bits: int
    numbers: Rationals = ()
    extremes: int | None = None
    extreme_outcomes: int | None = None

    @classmethod
    def from_laws(
        cls,
        laws: Sequence[Distribution],
        comparisons: int,
        numbers: Rationals = (),
        extremes: int | None = None,
    ) -> AuditSize:
        """Count the size of an audit from the laws themselves.

        Args:
            laws: The stored laws, all of one length.
            comparisons: The number of comparisons.
            numbers: Further numbers that the proof computes with.
            extremes: The number of comparisons that decide the largest ratio, if these are fewer.

        Returns:
            The size of the audit.
        """
        return cls(
            comparisons=comparisons,
            outcomes=len(laws[0]),
            laws=len(laws),
            bits=max(law.total.bit_length() for law in laws),
            numbers=numbers,
            extremes=extremes,
        )


@dataclass(frozen=True)
class Bias:
    """The mean of the output on every input, compared with the mean that it should have.

    Attributes:
        outputs: The published values, shape (m,).
        inputs: The mean that every row should have, shape (rows,).
        worst: The exact max |E[o|y] - y|.
    """

    outputs: Rationals
    inputs: Rationals
    worst: Fraction

    @classmethod
    def measure(
        cls, mechanism: Any, outputs: Sequence[Fraction], inputs: Sequence[Fraction]
    ) -> Bias:
        """Measure the exact bias of a mechanism.

        Args:
            mechanism: One with a method `measure_bias`.
            outputs: The published values, shape (m,).
            inputs: The mean that every row should have, shape (rows,).

        Returns:
            The bias.

        Raises:
            InvalidRequest: If the mechanism has no bias, such as additive noise.
        """
        if not hasattr(mechanism, "measure_bias"):
            raise InvalidRequest("bias must be left out of the certificate of additive noise.")
        bias: Bias = mechanism.measure_bias(outputs, inputs)
        return bias


@dataclass(frozen=True)
class Distances:
    """The distances of inputs.

    Attributes:
        kind: "whole" for |x - x'| of integers, "real" for |x - x'| of real numbers, "vector" for
            Σ |x_i - x'_i|, "listed" for the number of steps from neighbour to neighbour.
        coordinate_ranges: The smallest and the largest number of each coordinate; empty for kind
            "listed".
        inputs: The inputs of kind "listed".
        max_distance: The largest distance.
    """

    kind: str
    coordinate_ranges: tuple[tuple[float, float], ...] = ()
    inputs: Sequence[Any] = ()
    max_distance: float = math.inf

    @classmethod
    def from_mechanism(cls, mechanism: Any) -> Distances:
        """Return the distances that a mechanism states, or the distances of its column numbers.

        Args:
            mechanism: Any mechanism.

        Raises:
            InvalidRequest: If it has no law for a given distance of neighbours.
        """
        if hasattr(mechanism, "distances"):
            return cls(**vars(mechanism.distances))
        if not hasattr(mechanism, "with_max_distance"):
            constraint = "one with a law for any distance of neighbours (`with_max_distance`)"
            must("mechanism", constraint, mechanism)
        column = mechanism.column_inputs
        max_distance = math.inf
        if column.is_bounded:
            max_distance = column.high - column.low
        kind = "whole" if column.is_whole else "real"
        return cls(kind, ((column.low, column.high),), max_distance=max_distance)

    def nearest_input(self, x: Any) -> Any:
        """Return the input nearest to a value: every coordinate is clipped into its range.

        Clipping moves no two values further apart.

        Args:
            x: A number, a vector, or an input of kind "listed", which is returned as it is.
        """
        if self.kind == "listed":
            return x
        coordinates = np.atleast_1d(x).tolist()
        clipped = []
        for coordinate, (low, high) in zip(coordinates, self.coordinate_ranges, strict=True):
            clipped.append(min(max(coordinate, low), high))
        if self.kind == "real":
            return clipped[0]
        if self.kind == "whole":
            return int(clipped[0])
        return tuple(clipped)


@dataclass(frozen=True)
class ColumnInputs:
    """The numbers of a column that a mechanism publishes.

    Attributes:
        command: The subcommand of `workbench privatise`, such as noise.
        low: The smallest accepted number.
        high: The largest accepted number.
        constraint: The condition on a number, in words.
        is_whole: Whether only integers are allowed.
        is_bounded: Whether other numbers may be moved to the nearest input. False if only the
            number format sets an end.
        is_exact: Whether decimals count as they are written, not as the nearest doubles.
    """

    command: str
    low: float
    high: float
    constraint: str
    is_whole: bool
    is_bounded: bool = True
    is_exact: bool = False


# A (name, text) pair of reports on mechanisms with `is_one_sided`. Real neighbours have no order.
ONE_SIDED_NOTE = (
    "note",
    "one-sided neighbours: some pairs were compared in one order only. Nothing is stated about the "
    "privacy of the other order",
)


class Mechanism(Protocol):
    """A mechanism with exact laws and a neighbour relation, which most functions here take.

    It may have further members. If it lacks one of them, a request that needs it is refused, or the
    feature is left out:

        can_publish_reals, real_law,   whether it publishes real inputs although it has finitely
        errors                         many laws; their piecewise affine law; the mean and the
                                       largest expected loss, and an answer with the largest one
        audit_size                     the size of an audit, where listing the comparisons is too
                                       slow
        not_exact, not_certifiable     why it has no exact laws; why no certificate can hold it
        certified_form()               the mechanism that a certificate holds instead of it
        repaired_by                    how it is repaired: "rows" (`rows`, `with_rows`), "line"
                                       (`noise`, `reach`, `with_noise`), "masses" (noise on a
                                       group); without it, it is certified as it is
        rows                           the laws of finitely many inputs, over which a certificate
                                       states an expected loss
        unbiased_means                 (published values, the mean that every row should have)
        measure_bias(outputs, inputs)  the `Bias` of its means
        exact_loss(name, losses)       the exact expected loss of an objective of that name
        proof_notes                    sentences that a proof about it needs
        axis_labels                    (inputs of the rows, published values of the outputs), two
                                       tuples; None if row and output numbers stand for themselves
        record_digits, short_record()  the size of `to_dict` where it may be large, and a shorter
                                       form
        with_max_distance(distance)    the same law, with all inputs that differ by at most the
                                       distance as neighbours (OpenDP)
        distances                      the `Distances` of its inputs; without it, their differences
        column_inputs, ...             the members of `ColumnPublisher`, to publish columns
    """

    def law(self, x: Any) -> Distribution:
        """Return the exact law of the position of the output in `outputs`, for one input.

        Args:
            x: An input.

        Raises:
            InvalidRequest: If x is no input of the mechanism.
        """

    @property
    def inputs(self) -> Any:
        """Return every input, a sequence; None on real inputs."""

    @property
    def outputs(self) -> Any:
        """Return the published value of every position. Length m."""

    def comparisons(self) -> Iterable[Comparison]:
        """Yield every ordered neighbouring pair of laws, one for each label of `budgets`."""

    def extremes(self) -> Iterable[Comparison]:
        """Yield comparisons among which the largest of all ratios P/Q is.

        They decide pure ε under one common budget.
        """

    def budgets(self, epsilon: Budget) -> Budgets:
        """Return the budget of every comparison, by label.

        Args:
            epsilon: A number >= 0, or a mapping label -> number.

        Raises:
            InvalidRequest: If a budget is negative or no number, or if a mapping leaves out a label
                or names one that does not exist.
        """

    @property
    def is_one_sided(self) -> bool:
        """Return whether some pair of inputs is compared in one order only."""

    @property
    def segments(self) -> Sequence[Segment] | None:
        """Return the pieces of a law on real inputs.

        None if the law has no affine pieces; empty if the comparisons decide every notion.
        """

    def draw(self, x: Any, count: int, source: Source) -> NDArray[Any]:
        """Draw independent published values for an input, from the exact law.

        Args:
            x: An input.
            count: The number of draws.
            source: The source of randomness.

        Returns:
            The published values, shape (count,) or (count, k).

        Raises:
            InvalidRequest: If x is no input of the mechanism.
        """

    def describe(self) -> str:
        """Describe in one line the mechanism, its inputs, and which inputs are neighbours.

        No full stop.
        """

    def to_dict(self) -> Record:
        """Return a JSON-ready record, which `from_dict` of its class reads.

        Its entry "kind" names the class.
        """


class ColumnPublisher(Mechanism, Protocol):
    """A mechanism that publishes columns of numbers."""

    @property
    def column_inputs(self) -> ColumnInputs | None:
        """Return the numbers that it publishes; None if it takes none, such as noise on vectors."""

    @property
    def column_cautions(self) -> tuple[str, ...]:
        """Return sentences on the numbers between which the budget does not hold."""

    def with_neighbours_over(self, low: Fraction, high: Fraction) -> Any:
        """Return the mechanism where every two numbers from low to high are neighbours.

        If they are neighbours already, this mechanism itself is returned.

        Args:
            low: The lower end of the interval.
            high: The upper end of the interval.
        """

    def published_error(self) -> dict[str, float] | None:
        """Return the errors of a published number by name.

        The result is None if the expected loss states them.
        """

    def publish(self, answers: NDArray[Any], *, insecure_seed: int | None = None) -> NDArray[Any]:
        """Draw once for each of many inputs, independently. Shape (n,).

        Args:
            answers: Inputs, shape (n,).
            insecure_seed: A seed >= 0 that makes the draws repeatable, for experiments only.
                Default: the randomness of the operating system.

        Raises:
            InvalidRequest: If an entry of answers is no input, or insecure_seed is negative.
        """


def as_mechanism(subject: Any) -> Mechanism:
    """Return the mechanism of a mechanism, a Design or a Certificate (anything with `.mechanism`).

    Args:
        subject: A mechanism, a Design or a Certificate.

    Raises:
        InvalidRequest: If subject is nothing of this kind, or its mechanism has no exact laws. The
            message gives the reason (`not_exact`).
    """
    mechanism: Mechanism = getattr(subject, "mechanism", subject)
    reason = getattr(mechanism, "not_exact", None)
    if reason is not None:
        raise InvalidRequest(f"mechanism must have exact laws. {reason}")
    if not all(hasattr(mechanism, name) for name in ("law", "comparisons", "budgets")):
        constraint = "a mechanism, a Design or a Certificate"
        if isinstance(subject, str):
            constraint += " (wb.load reads a file)"
        must("mechanism", constraint, type(subject).__name__)
    return mechanism


def sample(
    mechanism: Any, count: int, *, answer: Any = None, insecure_seed: int | None = None
) -> NDArray[Any]:
    """Draw independent published values of a mechanism.

    Args:
        mechanism: Any mechanism, or a Design or Certificate of one, or bare noise: a Distribution
            or an IntegerLaw.
        count: The number of draws.
        answer: The true input. For noise an integer, or a tuple for a vector query; the noise is
            added to it in the group. None: the noise η itself. For a mechanism on real inputs a
            number. For a label randomizer an input. For a channel an input, or a row number if the
            channel has no `axis_labels`.
        insecure_seed: Draw from a seeded generator instead, for experiments only.

    Returns:
        The published values, shape (count,); (count, k) for noise on a group of k > 1 factors.

    Raises:
        InvalidRequest: If count is negative or above 10^9, if answer is no input of the mechanism,
            if insecure_seed is negative, or if the mechanism has no exact laws.
    """
    count = read_integer(count, "count", 0, _MAX_DRAWS)
    source = Source(insecure_seed)
    if isinstance(mechanism, Distribution):
        return Sampler(mechanism, source).draw(count)
    if isinstance(mechanism, IntegerLaw):
        noise: NDArray[Any] = mechanism.draw(count, source)
        if answer is None:
            return noise
        return noise + read_integer(answer, "answer", -MAX_FILE_INTEGER, MAX_FILE_INTEGER)
    return as_mechanism(mechanism).draw(answer, count, source)


def has_real_inputs(mechanism: Mechanism) -> bool:
    """Return whether the comparisons stand for infinitely many inputs.

    Then they only decide measures that are largest at ends.

    Args:
        mechanism: Any mechanism.
    """
    return mechanism.segments is None or len(mechanism.segments) > 0


def can_publish_reals(mechanism: Any) -> bool:
    """Return whether a mechanism publishes real inputs, even if it has finitely many laws.

    Args:
        mechanism: Any mechanism.
    """
    return getattr(mechanism, "can_publish_reals", False) or has_real_inputs(mechanism)


def assign_budgets(
    labels: Iterable[Label],
    epsilon: Budget,
    kind: str = "pair",
    *,
    read_key: Callable[[Any], Any] = lambda key: key,
    mirror: Callable[[Any], Any] = lambda label: label[::-1],
    format_label: Callable[[Any], object] = str,
    or_zero: bool = True,
) -> Budgets:
    """Assign a budget to every label.

    Args:
        labels: The labels of the comparisons.
        epsilon: One number for all, or a mapping that may give one number for a label and its
            mirror image.
        kind: What a label is called in error messages.
        read_key: Key of the mapping -> label.
        mirror: label -> its mirror image.
        format_label: label -> how error messages write it.
        or_zero: Whether 0 is accepted too.

    Returns:
        label -> budget.

    Raises:
        InvalidRequest: If a budget is negative or no number, or if a mapping leaves out a label,
            names an unknown one, or has two budgets for one label.
    """
    all_labels = tuple(labels)
    if not isinstance(epsilon, Mapping):
        return dict.fromkeys(all_labels, read_positive(epsilon, "epsilon", or_zero=or_zero))
    user_budgets: dict[Any, Real] = {}
    allowed_labels = {*all_labels, *map(mirror, all_labels)}
    for key, amount in epsilon.items():
        label = read_key(key)
        if label not in allowed_labels:
            raise InvalidRequest(
                f"epsilon has a budget for {format_label(label)}, which is not one of the {kind}s."
            )
        if user_budgets.setdefault(label, amount) != amount:
            raise InvalidRequest(
                f"epsilon has two different budgets for {kind} {format_label(label)}."
            )
    budgets = {}
    for label in all_labels:
        value = user_budgets.get(label, user_budgets.get(mirror(label)))
        if value is None:
            raise InvalidRequest(f"epsilon has no budget for {kind} {format_label(label)}.")
        budgets[label] = read_positive(
            value, f"epsilon of {kind} {format_label(label)}", or_zero=or_zero
        )
    return budgets


def find_extreme_pairs(laws: Sequence[Distribution]) -> list[Pair]:
    """Find for each output the laws with its largest and its smallest mass, exactly.

    The largest ratio of two masses of an output is among these pairs, so at most m ordered pairs
    decide the pure ε of all k (k - 1).

    Args:
        laws: k laws on m outputs.

    Returns:
        The pairs (law with the largest mass, law with the smallest mass), sorted, without pairs of
        one law. If no pair is left, the result is a pair of equal laws.
    """
    # Floats select the few laws whose masses are compared exactly.
    logs = np.array([law.logs - math.log2(law.total) for law in laws])
    pairs = set()
    for j, column in enumerate(logs.T):
        high = np.flatnonzero(column >= column.max() - LOG2_TOLERANCE)
        low = np.flatnonzero(column <= column.min() + LOG2_TOLERANCE)
        largest_law = _find_extreme_law(laws, j, high, largest=True)
        smallest_law = _find_extreme_law(laws, j, low, largest=False)
        pairs.add((largest_law, smallest_law))
    unequal_pairs = {pair for pair in pairs if pair[0] != pair[1]}
    return sorted(unequal_pairs) or [(0, min(1, len(laws) - 1))]


def _find_extreme_law(
    laws: Sequence[Distribution], output: int, candidates: Positions, *, largest: bool
) -> int:
    """Find the first of some laws that gives an output the largest, or the smallest, mass."""
    # Many laws may have equal masses, so each mass is only compared once.
    first_laws: dict[Pair, int] = {}
    for i in candidates.tolist():
        first_laws.setdefault((laws[i].integers[output], laws[i].total), i)
    choose = max if largest else min
    return first_laws[choose(first_laws, key=lambda mass: Fraction(*mass))]


def compare_pairs(
    laws: Mapping[int, Distribution] | Sequence[Distribution],
    pairs: Iterable[Pair],
    name: Callable[[int], str] = str,
) -> Iterator[Comparison]:
    """Yield the comparisons of numbered laws.

    Args:
        laws: The laws by number.
        pairs: Ordered pairs of numbers of laws.
        name: Number of a law -> the input in the text Pr[output|input] of reports.

    Returns:
        One comparison for each pair.
    """

    def describe(pair: Pair, k: int) -> tuple[str, str]:
        """Name the two probabilities of output k at a pair for a report."""
        high, low = (f"Pr[{k}|{name(i)}]" for i in pair)
        return high, low

    for i, j in pairs:
        yield Comparison((i, j), laws[i], laws[j], partial(describe, (i, j)))
