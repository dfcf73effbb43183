"""What a mechanism is: an exact law for every input, and the inputs that neighbour each other.

    M : x -> Pr[. | x]          law(x), a distribution on positions 0..m-1; outputs[i] is what position i publishes
    x ~ x'                      comparisons(): every ordered neighbouring pair of laws, P = Pr[. | x], Q = Pr[. | x']
    ε, or ε of a distance       budgets(ε): the budget of every comparison, by its label

The mechanism says who is compared with whom; a request gives the budgets; a notion of privacy measures one comparison.

    mechanism                    label                   comparisons
    additive noise f on a group  the difference μ        f against f(· + μ), for every difference of its question
    finite channel               rows (q, q')            row q against row q', all or the neighbouring ones
    piecewise affine law         end laws (i, j)         every two end laws; between them the law is affine (`segments`)
    randomized response          labels (y, y')          one pair of labels for every kind of pair

Beside what the protocol lists, a mechanism may have these; what it has not is refused in one sentence, or not needed:

    for_reals, on_reals, errors    whether it publishes real inputs though its laws are finitely many; their
                                   piecewise affine law; what they cost, (mean, largest, where) of a loss
    audit_size                     what an audit works through, where listing the comparisons is too slow
    not_exact, not_certifiable     why it has no exact laws; why no certificate can hold it
    certified_form()               the mechanism that a certificate holds instead of it
    repaired_by                    how it is repaired: "rows" (`rows`, `with_rows`), "line" (`noise`, `reach`,
                                   `with_noise`), "masses" (noise on a group); without one it is certified as it is
    rows                           the laws of finitely many inputs, over which a certificate states an expected loss
    unbiased_means                 (published values, the mean of them that every row should have)
    bias_of(outputs, inputs)       the `Bias` of its means
    exact_loss(name, costs)        what an objective of that name costs, exactly
    proof_words                    sentences that a proof about it needs
    labelled                       (the input of every row, what every output publishes), of rows that stand for them
    record_digits, short_record()  the size of `to_dict` where it may be large, and a shorter form of it
    within(distance), distances    the same law under the relation "inputs at most so far apart" (OpenDP); the
                                   `Distances`, where inputs are no numbers of columns
    column_inputs, ...             what `ColumnPublisher` lists, to publish columns

On real inputs finitely many laws suffice where the measure is a maximum at ends: ratios and hockey sticks are. What is
no such maximum (the PDP δ, the slope of a metric) is measured on `segments`.
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

_MOST_DRAWS = 1_000_000_000  # More draws at once would not fit into memory.


@dataclass(frozen=True)
class Comparison:
    """P against Q on the same outcomes; label: the difference μ, or the ordered pair (i, j) of laws.

    describe: outcome -> the names of its mass in P and in Q.
    """

    label: Label
    p: Distribution
    q: Distribution
    describe: Callable[[int], tuple[str, str]] = field(compare=False)


@dataclass(frozen=True)
class Segment:
    """Inputs x in [low, high] with the law (high - x)/(high - low) left + (x - low)/(high - low) right."""

    low: Fraction
    high: Fraction
    left: Distribution
    right: Distribution


@dataclass(frozen=True)
class AuditSize:
    """What an audit works through, counted without listing it. comparisons: how many there are; outcomes: of each;
    laws: that are held; bits: of the largest total; numbers: others that the proof computes with; extremes: how many
    comparisons decide the largest ratio, where fewer do. A mechanism without one (`audit_size`) has its comparisons
    listed."""

    comparisons: int
    outcomes: int
    laws: int
    bits: int
    numbers: Rationals = ()
    extremes: int | None = None

    @classmethod
    def from_laws(
        cls,
        laws: Sequence[Distribution],
        comparisons: int,
        numbers: Rationals = (),
        extremes: int | None = None,
    ) -> AuditSize:
        """Of laws that are held."""
        return cls(
            comparisons,
            len(laws[0]),
            len(laws),
            max(law.total.bit_length() for law in laws),
            numbers,
            extremes,
        )


@dataclass(frozen=True)
class Bias:
    """The mean of the output on every input, compared with what it should be.

    outputs: (m,) values published; inputs: one for every row (a quantizer has its own); worst: max |E[o|y] - y|, exact.
    """

    outputs: Rationals
    inputs: Rationals
    worst: Fraction

    @classmethod
    def measure(
        cls, mechanism: Any, outputs: Sequence[Fraction], inputs: Sequence[Fraction]
    ) -> Bias:
        """The exact bias of a mechanism that states one (`bias_of`). Raises InvalidRequest."""
        if not hasattr(mechanism, "measure_bias"):
            raise InvalidRequest("bias must be left out of the certificate of additive noise.")
        stated: Bias = mechanism.measure_bias(outputs, inputs)
        return stated


@dataclass(frozen=True)
class Distances:
    """How far inputs are apart. kind: "whole" or "real", |x - x'|; "vector", Σ |x_i - x'_i|; "listed", 1 where every
    two are neighbours, else steps between neighbours.

    ends: the least and the largest number, of each coordinate; listed: the inputs; farthest: the largest distance.
    """

    kind: str
    coordinate_ranges: tuple[tuple[float, float], ...] = ()
    inputs: Sequence[Any] = ()
    max_distance: float = math.inf

    @classmethod
    def from_mechanism(cls, mechanism: Any) -> Distances:
        """Those of a mechanism: its own, or of the numbers of its columns. Raises InvalidRequest."""
        if hasattr(mechanism, "distances"):
            return cls(**vars(mechanism.distances))
        if not hasattr(mechanism, "with_max_distance"):
            must(
                "mechanism",
                "one that says its law for any distance of neighbours (`with_max_distance`)",
                mechanism,
            )
        column = mechanism.column_inputs
        farthest = column.high - column.low if column.is_bounded else math.inf
        return cls(
            "whole" if column.is_whole else "real",
            ((column.low, column.high),),
            max_distance=farthest,
        )

    def nearest_input(self, x: Any) -> Any:
        """The input that is used for a value, which moves no two values apart."""
        if self.kind == "listed":
            return x
        near = [
            min(max(part, low), high)
            for part, (low, high) in zip(
                np.atleast_1d(x).tolist(), self.coordinate_ranges, strict=True
            )
        ]
        return (
            near[0]
            if self.kind == "real"
            else int(near[0])
            if self.kind == "whole"
            else tuple(near)
        )


@dataclass(frozen=True)
class ColumnInputs:
    """The numbers of a column that a mechanism publishes. command: of `workbench privatise`, such as noise; low,
    high: the least and the largest; constraint: what a number must be, in words; whole: whether only integers;
    bounded: whether other numbers may be moved to the nearest input, not so where only the format sets an end; exact:
    whether decimals count as they are written, not as the doubles they are nearest to."""

    command: str
    low: float
    high: float
    constraint: str
    is_whole: bool
    is_bounded: bool = True
    is_exact: bool = False


ONE_SIDED_NOTE = (
    "note",
    "one-sided neighbours: real ones go both ways, and the other way was not compared",
)


class Mechanism(Protocol):
    """A mechanism with exact laws and a neighbour relation; every verb of the workbench takes one."""

    def law(self, x: Any) -> Distribution:
        """The exact law of the output's position on input x. Raises InvalidRequest when x is no input."""

    @property
    def inputs(self) -> Any:
        """Every input, a sequence; None on real inputs."""

    @property
    def outputs(self) -> Any:
        """What is published for every position. Length m."""

    def comparisons(self) -> Iterable[Comparison]:
        """Every ordered neighbouring pair of laws, one for each label of `budgets`."""

    def extremes(self) -> Iterable[Comparison]:
        """Comparisons among which the largest ratio P/Q of all is: they decide pure ε under one common budget."""

    def budgets(self, epsilon: Budget) -> Budgets:
        """The budget of every comparison, by label. epsilon: >= 0, or a mapping label -> number.

        Raises InvalidRequest.
        """

    @property
    def is_one_sided(self) -> bool:
        """Whether some pair is compared in one order only, which real neighbours never are."""

    @property
    def segments(self) -> Sequence[Segment] | None:
        """The pieces of a law on real inputs, None where it has no affine ones; empty where the inputs are finitely
        many."""

    def draw(self, x: Any, count: int, source: Source) -> NDArray[Any]:
        """What is published on input x, independently `count` times, from the exact law. Raises InvalidRequest."""

    def describe(self) -> str:
        """One line: what it is, on what, and which inputs are neighbours. No full stop."""

    def to_dict(self) -> Record:
        """JSON-ready, with the entry "kind"; read back by `from_dict` of its class."""


class ColumnPublisher(Mechanism, Protocol):
    """A mechanism that publishes columns of numbers."""

    @property
    def column_inputs(self) -> ColumnInputs | None:
        """Which numbers; None for a mechanism of this kind that takes none, such as noise on vectors."""

    @property
    def column_cautions(self) -> tuple[str, ...]:
        """Sentences on the numbers between which the budget does not hold."""

    def with_neighbours_over(self, low: Fraction, high: Fraction) -> Any:
        """The mechanism where every two numbers from low to high are neighbours; itself where they are already."""

    def published_error(self) -> dict[str, float] | None:
        """What a published number is off by, in words; None where the expected loss on every input says it."""

    def publish(self, answers: NDArray[Any], *, insecure_seed: int | None = None) -> NDArray[Any]:
        """One draw for each of many inputs, independently. answers: (n,). Raises InvalidRequest."""


def as_mechanism(given: Any) -> Mechanism:
    """The mechanism of a mechanism, a Design or a Certificate (anything with `.mechanism`).

    Raises InvalidRequest, with the reason where a mechanism has no exact laws (its attribute `not_exact`).
    """
    mechanism: Mechanism = getattr(given, "mechanism", given)
    reason = getattr(mechanism, "not_exact", None)
    if reason is not None:
        raise InvalidRequest(f"mechanism must have exact laws. {reason}")
    if not all(hasattr(mechanism, name) for name in ("law", "comparisons", "budgets")):
        file = " (wb.load reads a file)" if isinstance(given, str) else ""
        must("mechanism", f"a mechanism, a Design or a Certificate{file}", type(given).__name__)
    return mechanism


def sample(
    mechanism: Any, count: int, *, answer: Any = None, insecure_seed: int | None = None
) -> NDArray[Any]:
    """What a mechanism publishes, independently `count` times.

    Args:
        mechanism: any, or a Design or Certificate of one, or bare noise: a Distribution or an IntegerLaw.
        count: of draws.
        answer: the true input. Of noise an integer, or a tuple for a vector query, to which it is added in the group
            (without one: η itself); of a mechanism on real inputs a number; of a label randomizer and of a channel an
            input, which is a row number where the channel is bare rows.
        insecure_seed: draw from a seeded generator instead, for experiments only.

    Returns:
        Shape (count,) of published values; (count, k) for noise on a group of k > 1 factors.

    Raises:
        InvalidRequest.
    """
    count = read_integer(count, "count", 0, _MOST_DRAWS)
    source = Source(insecure_seed)
    if isinstance(mechanism, Distribution):
        return Sampler(mechanism, source).draw(count)
    if isinstance(mechanism, IntegerLaw):
        noise: NDArray[Any] = mechanism.draw(count, source)
        return (
            noise
            if answer is None
            else noise + read_integer(answer, "answer", -MAX_FILE_INTEGER, MAX_FILE_INTEGER)
        )
    return as_mechanism(mechanism).draw(answer, count, source)


def has_real_inputs(mechanism: Mechanism) -> bool:
    """Whether the comparisons stand for infinitely many: then they decide what is largest at ends, and nothing else."""
    return mechanism.segments is None or len(mechanism.segments) > 0


def can_publish_reals(mechanism: Any) -> bool:
    """Whether it publishes real inputs, be its comparisons those of finitely many laws."""
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
    """The budget of every label; a mapping may give one for a label and its mirror.

    kind, shown: of a label in words; read: a key of the mapping as a label. Raises InvalidRequest.
    """
    ordered = tuple(labels)
    if not isinstance(epsilon, Mapping):
        return dict.fromkeys(ordered, read_positive(epsilon, "epsilon", or_zero=or_zero))
    given: dict[Any, Real] = {}
    known = {*ordered, *map(mirror, ordered)}
    for key, amount in epsilon.items():
        label = read_key(key)
        if label not in known:
            raise InvalidRequest(
                f"epsilon has a budget for {format_label(label)}, which is not one of the {kind}s."
            )
        if given.setdefault(label, amount) != amount:
            raise InvalidRequest(
                f"epsilon has two different budgets for {kind} {format_label(label)}."
            )
    budgets = {}
    for label in ordered:
        value = given.get(label, given.get(mirror(label)))
        if value is None:
            raise InvalidRequest(f"epsilon has no budget for {kind} {format_label(label)}.")
        budgets[label] = read_positive(
            value, f"epsilon of {kind} {format_label(label)}", or_zero=or_zero
        )
    return budgets


def find_extreme_pairs(laws: Sequence[Distribution]) -> list[Pair]:
    """For each output the laws that give it most and least, decided exactly: max_{y,y',o} M[y,o]/M[y',o] is among them.

    So m ordered pairs decide the pure ε of all k (k - 1). A pair of equal laws is left out, unless all are equal.
    Logarithms in floats leave few laws for integers to decide.
    """
    logs = np.array([law.logs - math.log2(law.total) for law in laws])
    pairs = set()
    for j, column in enumerate(logs.T):
        high = np.flatnonzero(column >= column.max() - LOG2_TOLERANCE)
        low = np.flatnonzero(column <= column.min() + LOG2_TOLERANCE)
        pairs.add((_extreme(laws, j, high, most=True), _extreme(laws, j, low, most=False)))
    different = {pair for pair in pairs if pair[0] != pair[1]}
    return sorted(different) or [(0, min(1, len(laws) - 1))]


def _extreme(laws: Sequence[Distribution], output: int, among: Positions, *, most: bool) -> int:
    """The first of some laws that gives an output most, or least."""
    first: dict[Pair, int] = {}  # of equal masses, which may be those of all laws
    for i in among.tolist():
        first.setdefault((laws[i].integers[output], laws[i].total), i)
    return first[(max if most else min)(first, key=lambda mass: Fraction(*mass))]


def compare_pairs(
    laws: Mapping[int, Distribution] | Sequence[Distribution],
    pairs: Iterable[Pair],
    name: Callable[[int], str] = str,
) -> Iterator[Comparison]:
    """The comparisons of numbered laws; name: what stands behind the bar of Pr[output | input]."""

    def describe(pair: Pair, k: int) -> tuple[str, str]:
        high, low = (f"Pr[{k}|{name(i)}]" for i in pair)
        return high, low

    for i, j in pairs:
        yield Comparison((i, j), laws[i], laws[j], partial(describe, (i, j)))
