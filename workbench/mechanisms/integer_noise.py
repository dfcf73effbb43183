"""Additive noise on all integers: an answer q is published as q + η, optionally clamped.

Example: with noise clamped to 0..10, the answer 9 and η = 3 give the output 10.

Notation: f is the law of η on the integers, and neighbouring answers differ by 1..D in either
direction (D is the sensitivity). The law of q + η is f moved by q. It is therefore enough to
compare f with f(· + s) for the shifts s = ±1..±D; the answer q does not matter. Noise that is
clamped to low..high is a finite channel and is compared row by row. Clamping is post-processing,
which preserves every notion but PDP.

The base class `LineNoise` also serves noise on the reals (`workbench.mechanisms.real_noise`). Its
cells are then intervals, a sensitivity contains `reach` of them, and there may be a point mass (the
atom) besides the cells.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from workbench.data.plain import read_integer, read_integer_column
from workbench.errors import InvalidRequest, must
from workbench.exact.arrays import Integers
from workbench.exact.distribution import Distribution
from workbench.exact.integer_law import IntegerLaw
from workbench.exact.numbers import ONE, ZERO, Rationals, count_bits
from workbench.exact.objects import Pairs, Record
from workbench.exact.random_source import Source
from workbench.io.files import format_fraction
from workbench.io.plain_figures import FigureData, make_noise_figure
from workbench.io.records import (
    INTEGER,
    INTEGERS,
    RATIO,
    UNCHANGED,
    Entry,
    RecordForm,
    make_optional_entry,
    write_law_record,
)
from workbench.mechanisms.additive import PART_LOSSES
from workbench.mechanisms.channel import Channel
from workbench.mechanisms.mechanism import (
    AuditSize,
    Budget,
    Budgets,
    ColumnInputs,
    Comparison,
    assign_budgets,
)
from workbench.mechanisms.shown_mechanism import ShownMechanism
from workbench.questions.unbounded_noise import IntegerNoise

_MAX_FLOAT_INTEGER = 2.0**53  # Doubles hold all integers up to this size.
_MAX_ANSWER_SIZE = (1 << 62) - 1  # The sum of a larger answer and noise could overflow.
USER_LOSSES_REFUSED = (
    "losses must have a name that no built-in loss has, "
    "and must be left out for absolute, squared and noise on the reals."
)


class LineNoise(ShownMechanism):
    """Base class of noise on the integers and of noise on the reals.

    Answers that differ by at most `sensitivity` are neighbours.

    Attributes:
        question: The query, with its sensitivity.
        cells: The weights of the cells, as an IntegerLaw.
        atom: A point mass at noise 0 besides the cells, in the unit of the weights; 0 for none.
            No cell and no atom of the shifted law has mass at this point.
    """

    question: Any
    cells: Any
    atom: Any

    segments = ()  # Shifts decide every notion.
    is_one_sided = False
    repaired_by = "line"
    kind: ClassVar[str]

    @property
    @abstractmethod
    def reach(self) -> int:
        """Return the largest shift that is compared, in cells."""

    @abstractmethod
    def read_answer(self, x: Any) -> Any:
        """Read an answer of the query as an exact number.

        Args:
            x: A number, as a user gives it.

        Raises:
            InvalidRequest: If x is no answer of the query.
        """

    @abstractmethod
    def loss(self, name: str) -> Fraction:
        """Compute the exact mean of |η| ("absolute") or η² ("squared").

        Args:
            name: The loss, "absolute" or "squared".

        Raises:
            InvalidRequest: If name is neither absolute nor squared.
        """

    @property
    def inputs(self) -> Any:
        """Return None: there is no largest answer."""
        return None

    @property
    def total(self) -> Fraction:
        """Return the sum of all weights, the atom included."""
        total: Fraction = self.cells.total + self.atom
        return total

    def law(self, x: Any = None) -> Distribution:
        """Return the law of the cell of η, the same for every answer.

        The first and the last position stand for all cells beyond the weights.

        Args:
            x: An answer of the query. None for the noise η itself.

        Raises:
            InvalidRequest: If x is no answer of the query.
        """
        if x is not None:
            self.read_answer(x)
        cells = self.cells
        # A tail has the mass (ratio + ratio² + ...) = ratio / (1 - ratio) of the period beside it.
        lower_tail, upper_tail = (cells.ratio / (1 - cells.ratio) * end for end in cells.end_sums)
        weights = [lower_tail, *cells.weights, upper_tail]
        if self.atom:
            weights[1 - cells.first] += self.atom  # Position 0 is a tail, so cell 0 is one later.
        return Distribution(weights)

    def comparisons(self) -> Iterator[Comparison]:
        """Yield the comparisons of the shifts s = ±1..±reach."""
        return map(self.compare_with_shift, sorted(self._shifts, key=lambda s: (abs(s), s < 0)))

    def extremes(self) -> Iterable[Comparison]:
        """Return all comparisons; if f is even and never rises with |η|, only the largest shift.

        The largest shift is enough then, because f(η + s) >= f(|η| + reach).
        """
        if self.cells.is_even_and_falling:
            return [self.compare_with_shift(self.reach)]
        return self.comparisons()

    def compare_with_shift(self, shift: int) -> Comparison:
        """Compare cells and atom with themselves, moved by a shift.

        Args:
            shift: The shift s != 0, in cells.
        """
        cells = self.cells
        p, q, first = cells.compare_with_shift(shift)  # Position k is the cell first + k.
        if self.atom:
            p = [*p, self.atom, ZERO]
            q = [*q, ZERO, self.atom]

        def describe(k: int) -> tuple[str, str]:
            """Name the two probabilities of outcome k for a report."""
            # The first outcomes are single cells: the weights, and a shift to either side.
            if k < 2 * abs(shift) + len(cells.weights):
                return f"f({first + k})", f"f({first + k + shift})"
            return "f beyond the weights, or at the atom", "f there, moved"

        # Without tails and atom all weights are integers.
        if not cells.ratio and not self.atom:
            p_law = Distribution.from_integers(p)
            q_law = Distribution.from_integers(q)
        else:
            p_law = Distribution(p)
            q_law = Distribution(q)
        return Comparison((shift,), p_law, q_law, describe)

    @property
    def _shifts(self) -> list[int]:
        """Return the shifts -reach..reach without 0."""
        return [s for s in range(-self.reach, self.reach + 1) if s]

    def budgets(self, epsilon: Budget) -> Budgets:
        """Return the budget of every shift ±1..±reach.

        Args:
            epsilon: One number, or a mapping by s or (s,), which counts for both signs.

        Raises:
            InvalidRequest: If a budget is negative or no number, or if a mapping leaves out a shift
                or names a shift outside ±1..±reach.
        """
        return assign_budgets(
            ((s,) for s in self._shifts),
            epsilon,
            "difference",
            read_key=lambda key: key if isinstance(key, tuple) else (key,),
            mirror=lambda label: (-label[0],),
            format_label=lambda label: abs(label[0]),
        )

    @property
    def audit_size(self) -> AuditSize:
        """Return the size of an audit, counted without listing its comparisons."""
        law = self.cells
        reach = self.reach
        atom = self.atom
        outcomes = len(law.weights) + 2 * reach
        bits = self.weight_bits(reach, extra_powers=3)  # See `workbench.privacy.audit_work`.
        if law.ratio:
            outcomes += 2 * law.period
        if atom:
            outcomes += 2
            bits += count_bits(atom)
        extremes = 1 if law.is_even_and_falling else None
        return AuditSize(2 * reach, outcomes, laws=1, bits=bits, extremes=extremes)

    def weight_bits(self, span: int, extra_powers: int) -> int:
        """Count the bits of the weights' total and, with tails, of the powers of the ratio.

        Args:
            span: The number of cells over which the powers reach.
            extra_powers: The number of powers of the ratio that are counted besides.
        """
        law = self.cells
        powers = 0
        if law.ratio:
            powers = -(-span // law.period) + extra_powers  # The quotient is rounded up.
        return int(law.weight_law.total.bit_length() + powers * count_bits(law.ratio))

    def exact_loss(self, name: str, losses: Rationals | None) -> Fraction:
        """Compute the exact expected loss of a built-in loss (`loss`).

        Args:
            name: The loss, "absolute" or "squared".
            losses: None, since user-defined losses are not supported.

        Raises:
            InvalidRequest: If losses are given, or name is neither absolute nor squared.
        """
        if losses is not None:
            raise InvalidRequest(USER_LOSSES_REFUSED)
        return self.loss(name)

    @abstractmethod
    def with_max_distance(self, distance: Any) -> LineNoise:
        """Return the same noise where answers that differ by at most a distance are neighbours.

        Args:
            distance: The new sensitivity.
        """

    def with_neighbours_over(self, low: Fraction, high: Fraction) -> LineNoise:
        """Return the same noise where every two answers of an interval are neighbours.

        If they are neighbours already, this mechanism itself is returned.

        Args:
            low: The lower end of the interval.
            high: The upper end of the interval.
        """
        width = high - low
        if width <= self.question.sensitivity:
            return self
        return self.with_max_distance(width)

    @property
    def column_cautions(self) -> tuple[str, ...]:
        """Return a caution: numbers further apart than the sensitivity are no neighbours."""
        return (
            "The budget holds between numbers that differ by at most "
            f"{float(self.question.sensitivity):g}; "
            "those further apart are protected less, or not at all.",
        )

    def published_error(self) -> dict[str, float] | None:
        """Return the errors of a number plus noise; None if the error depends on the answer."""
        mean_square = float(self.loss("squared"))
        return {
            "mean absolute error": float(self.loss("absolute")),
            "root mean squared error": mean_square**0.5,
        }

    def to_dict(self) -> Record:
        """Return a JSON-ready record, which `from_dict` reads."""
        law = self.cells
        tails = {"first": law.first, "period": law.period, "ratio": format_fraction(law.ratio)}
        return {
            "kind": self.kind,
            **self.question.to_dict(),
            **tails,
            **write_law_record(law.weight_law),
        }

    @staticmethod
    def read_record(data: Any, **entries: Entry) -> tuple[list[Any], IntegerLaw]:
        """Read the entries of a record that belong to the class, and the law.

        Args:
            data: The record, as parsed from JSON.
            entries: Name -> entry, of the class.

        Raises:
            CorruptFile: If the record has another form.
            InvalidRequest: If the period or the ratio of the tails is outside its range.
        """
        form = RecordForm(
            "The noise", kind=UNCHANGED, first=INTEGER, period=INTEGER, ratio=RATIO, **entries
        )
        fields, law = form.read_beside_law(data)
        _, first, period, ratio, *class_entries = fields.values()
        return class_entries, IntegerLaw(first, law, period, ratio)


@dataclass(frozen=True, repr=False)
class AdditiveIntegerNoise(LineNoise):
    """The mechanism q -> q + η of a question, clamped where the question says so.

    Attributes:
        question: The query, with its sensitivity and the range of clamped answers.
        noise: The law of η.

    Raises:
        InvalidRequest: If question is no IntegerNoise, or noise is no IntegerLaw.
    """

    question: IntegerNoise
    noise: IntegerLaw

    kind = "integer-noise"
    atom = ZERO

    def __post_init__(self) -> None:
        if not isinstance(self.question, IntegerNoise) or not isinstance(self.noise, IntegerLaw):
            must("mechanism", "an IntegerNoise and an IntegerLaw", type(self.noise).__name__)

    @property
    def cells(self) -> IntegerLaw:
        """Return the law of η: the cells are the integers."""
        return self.noise

    @property
    def reach(self) -> int:
        """Return the sensitivity: neighbouring answers differ by at most this integer."""
        return self.question.sensitivity

    @property
    def rows(self) -> tuple[Distribution, ...]:
        """Return the law of the published value for every answer. The noise must be clamped.

        Raises:
            InvalidRequest: If the noise is not clamped.
        """
        if self.question.clamp is None:
            raise InvalidRequest(
                "rows are those of clamped noise: unclamped it has infinitely many."
            )
        return self._channel.rows

    @cached_property
    def _channel(self) -> Channel:
        """Return clamped noise as a finite channel."""
        assert self.question.clamp is not None
        low, high = self.question.clamp
        count = high - low + 1
        pairs = []
        for i in range(count):
            neighbours = range(max(0, i - self.reach), min(count, i + self.reach + 1))
            pairs += [(i, j) for j in neighbours if j != i]
        rows = tuple(self.noise.clamp(low - q, high - q) for q in range(low, high + 1))
        return Channel(rows, tuple(pairs))

    def law(self, x: Any = None) -> Distribution:
        """Return the law of the published answer for x if noise is clamped, else the law of η.

        Args:
            x: An answer of the query.

        Raises:
            InvalidRequest: If x is no answer of the query.
        """
        clamp = self.question.clamp
        if clamp is None:
            return super().law(x)
        return self.rows[self.read_answer(x) - clamp[0]]

    @property
    def outputs(self) -> Integers:
        """Return the answers if noise is clamped, else the noise value of each position."""
        # Without clamping, the first and the last position of `law` stand for the tails.
        low, high = self.question.clamp or (self.noise.first - 1, self.noise.last + 1)
        return np.arange(low, high + 1)

    @property
    def inputs(self) -> Any:
        """Return the answers if noise is clamped. None: all integers are answers."""
        if self.question.clamp is None:
            return None
        return self.outputs

    def read_answer(self, x: Any) -> int:
        """Read an answer.

        Args:
            x: An integer.

        Raises:
            InvalidRequest: If x is no integer, is outside the clamped answers, or is 2^62 or larger
                in size.
        """
        if self.question.clamp is not None:
            return read_integer(x, "answer", *self.question.clamp)
        return read_integer(x, "answer", -_MAX_ANSWER_SIZE, _MAX_ANSWER_SIZE, "an integer")

    # Comparisons.

    @property
    def pairs(self) -> Pairs:
        """Return the ordered pairs of rows whose answers are neighbours, if noise is clamped."""
        return self._channel.pairs

    def comparisons(self) -> Iterator[Comparison]:
        """Yield f against f(· + s) for s = ±1..±D; if noise is clamped, its rows instead."""
        if self.question.clamp is None:
            return super().comparisons()
        return self._channel.comparisons()

    def extremes(self) -> Iterable[Comparison]:
        """Return comparisons that suffice to decide pure ε, of rows if noise is clamped."""
        if self.question.clamp is None:
            return super().extremes()
        return self._channel.extremes()

    def budgets(self, epsilon: Budget) -> Budgets:
        """Return the budget of every comparison.

        Args:
            epsilon: One number, or a mapping with a number for each distance 1..D. For clamped
                noise its keys are pairs of rows instead.

        Raises:
            InvalidRequest: If a budget is negative or no number, or if a mapping leaves out a
                comparison or names one that does not exist.
        """
        if self.question.clamp is None:
            return super().budgets(epsilon)
        return self._channel.budgets(epsilon)

    @property
    def audit_size(self) -> AuditSize:
        """Return the size of an audit, counted without listing its comparisons."""
        if self.question.clamp is None:
            return super().audit_size
        low, high = self.question.clamp
        count = high - low + 1
        # There are count - s ordered pairs at the distance s, in each of the two orders.
        return AuditSize(
            comparisons=self.reach * (2 * count - self.reach - 1),
            outcomes=count,
            laws=count,
            bits=self.weight_bits(count, extra_powers=2),
        )

    # Publishing.

    def draw(self, x: Any, count: int, source: Source) -> Integers:
        """Draw x + η (η itself without an x), clamped where the question says so. Shape (count,).

        Args:
            x: An answer of the query. None for the noise η itself.
            count: The number of draws.
            source: The source of randomness.

        Returns:
            The published integers.

        Raises:
            InvalidRequest: If x is no answer.
        """
        answer = 0
        if x is not None or self.question.clamp is not None:
            answer = self.read_answer(x)
        return self._add_noise(answer, self.noise.draw(count, source))

    def publish(self, answers: NDArray[Any], *, insecure_seed: int | None = None) -> Integers:
        """Draw once for each of many true answers. Shape (n,).

        Args:
            answers: Integers, shape (n,).
            insecure_seed: A seed >= 0 that makes the draws repeatable, for experiments only.
                Default: the randomness of the operating system.

        Raises:
            InvalidRequest: If an answer is no integer, is outside the clamped answers, or is 2^62
                or larger in size, or if insecure_seed is negative.
        """
        clamp = self.question.clamp
        if clamp is None:
            low = -_MAX_ANSWER_SIZE
            high = _MAX_ANSWER_SIZE
            constraint = "a column of integers"
        else:
            low, high = clamp
            constraint = f"integers in {low}..{high}"
        column = read_integer_column(answers, "answers", low, high, constraint)
        return self._add_noise(column, self.noise.draw(column.size, Source(insecure_seed)))

    def _add_noise(self, answers: Integers | int, noise: Integers) -> Integers:
        """Add noise to answers, and clamp the sums where the question says so."""
        if self.question.clamp is None:
            return answers + noise
        return np.clip(answers + noise, *self.question.clamp)

    @property
    def column_inputs(self) -> ColumnInputs:
        """Return the answers if noise is clamped, else the integers that are exact floats."""
        clamp = self.question.clamp
        if clamp is None:
            return ColumnInputs(
                "noise",
                -_MAX_FLOAT_INTEGER,
                high=_MAX_FLOAT_INTEGER,
                constraint="an integer of size at most 2^53",
                is_whole=True,
                is_bounded=False,
            )
        return ColumnInputs(
            "noise",
            float(clamp[0]),
            high=float(clamp[1]),
            constraint=f"an integer in {clamp[0]}..{clamp[1]}",
            is_whole=True,
        )

    def with_max_distance(self, distance: int) -> AdditiveIntegerNoise:
        """Return the same noise where answers that differ by at most a distance are neighbours.

        Args:
            distance: The new sensitivity, an integer.
        """
        return AdditiveIntegerNoise(IntegerNoise(int(distance), self.question.clamp), self.noise)

    def published_error(self) -> dict[str, float] | None:
        """Return the errors of unclamped noise by name.

        The result is None for clamped noise, whose error depends on the answer.
        """
        if self.question.clamp is not None:
            return None
        return super().published_error()

    def loss(self, name: str) -> Fraction:
        """Compute the exact mean of |η| ("absolute") or η² ("squared") of unclamped noise.

        Args:
            name: The loss, "absolute" or "squared".

        Raises:
            InvalidRequest: For any other, and for clamped noise.
        """
        power = {"absolute": 1, "squared": 2}.get(name)
        if power is None or self.question.clamp is not None:
            raise InvalidRequest(
                "objective must be absolute or squared for unclamped noise, "
                "an expected loss for clamped noise."
            )
        tail_terms = (ZERO,) * power + (ONE,)  # The coefficients of |η|^power.
        return self.noise.mean(lambda eta: Fraction(abs(eta) ** power), tail_terms)

    def exact_loss(self, name: str, losses: Rationals | None) -> Fraction:
        """Return `loss`, or Σ f(η) loss(η) of user-defined losses.

        Args:
            name: The name of the loss.
            losses: The losses of the weights' noise values, one for each. None for absolute and
                squared.

        Raises:
            InvalidRequest: If losses are given under the name of a built-in loss, for clamped
                noise, for noise with tails, or not one for each weight; also if name is unknown and
                losses is None.
        """
        if losses is None or name in ("absolute", "error-rate", *PART_LOSSES):
            return super().exact_loss(name, losses)
        if (
            self.noise.ratio
            or self.question.clamp is not None
            or len(losses) != len(self.noise.weights)
        ):
            raise InvalidRequest(
                "losses must be one for each weight of unclamped noise without tails."
            )
        return self.noise.weight_law.mean(losses)

    # Repair, files, words.

    def with_noise(self, noise: IntegerLaw) -> AdditiveIntegerNoise:
        """Return the same question answered with another law.

        Args:
            noise: The new law of η.
        """
        return AdditiveIntegerNoise(self.question, noise)

    def describe(self) -> str:
        """Describe the question in one line."""
        return str(self.question)

    def drawing(self) -> FigureData:
        """Return the PMF as bars, with the visible part of the tails."""
        return make_noise_figure(self.noise)

    @classmethod
    def from_dict(cls, data: Any) -> AdditiveIntegerNoise:
        """Return the mechanism written by `to_dict`, which claims no privacy.

        Args:
            data: The record, as parsed from JSON.

        Raises:
            CorruptFile: If the record has another form.
            InvalidRequest: If the sensitivity, the clamped answers, or the period or ratio of the
                tails is outside its range.
        """
        (sensitivity, clamp), law = cls.read_record(
            data, sensitivity=INTEGER, clamp=make_optional_entry(INTEGERS)
        )
        return cls(IntegerNoise(sensitivity, clamp), law)

    def __repr__(self) -> str:
        weights = f"{len(self.noise.weights)} weights from {self.noise.first}"
        return f"AdditiveIntegerNoise({self.question!r}, {weights})"
