"""Additive noise on all integers: answer q is published as q + η, η ~ f on Z, or clamped into the answers there are.

Neighbouring answers differ by 1..D in either direction. The law of q + η is that of η moved, so f against f(· + s) for
s = ±1..±D is all there is to compare, whatever q is. Clamped to low..high the mechanism is a finite channel and is
compared as one, row by row: clamping is post-processing, which every notion but PDP survives.

Noise on the reals is the same in cells (`workbench.mechanisms.real_noise`): weights by cell, `reach` cells a
sensitivity, and an atom beside them.
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
from workbench.io.plain_figures import (
    MAX_TAIL_BARS,
    MIN_VISIBLE_SHARE,
    NOISE_TITLE,
    FigureData,
    make_bar_figure,
)
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

_FARTHEST = (1 << 62) - 1  # of an answer
USER_LOSSES_REFUSED = "losses must have a name of their own, and be left out for absolute, squared and noise on the reals."


class LineNoise(ShownMechanism):
    """What noise on the integers and on the reals share: neighbours are answers at most `sensitivity` apart.

    cells: the weights by cell; atom: a point mass beside them, which meets no mass when it is moved.
    """

    question: Any
    cells: Any
    atom: Any

    segments = ()  # shifts decide every notion
    is_one_sided = False
    repaired_by = "line"
    kind: ClassVar[str]

    @property
    @abstractmethod
    def reach(self) -> int:
        """The largest shift that is compared, in cells."""

    @abstractmethod
    def read_answer(self, x: Any) -> Any:
        """An answer of the query as an exact number. Raises InvalidRequest."""

    @abstractmethod
    def loss(self, name: str) -> Fraction:
        """The exact mean of |η| ("absolute") or η² ("squared"). Raises InvalidRequest."""

    @property
    def inputs(self) -> Any:
        """None: there is no largest answer."""
        return None

    @property
    def total(self) -> Fraction:
        """Of all weights."""
        total: Fraction = self.cells.total + self.atom
        return total

    def law(self, x: Any = None) -> Distribution:
        """The law of the cell of η, the same for every x: its first and last position stand for all beyond the weights.
        Raises InvalidRequest."""
        if x is not None:
            self.read_answer(x)
        cells = self.cells
        tails = [cells.ratio / (1 - cells.ratio) * end for end in cells.end_sums]
        weights = [tails[0], *cells.weights, tails[1]]
        if self.atom:
            weights[1 - cells.first] += self.atom
        return Distribution(weights)

    def comparisons(self) -> Iterator[Comparison]:
        """Of s = ±1..±reach."""
        return map(self.compare_with_shift, sorted(self._shifts, key=lambda s: (abs(s), s < 0)))

    def extremes(self) -> Iterable[Comparison]:
        """All shifts; where f is even and never rises with |η| the farthest alone: f(η + s) >= f(|η| + reach)."""
        return (
            [self.compare_with_shift(self.reach)]
            if self.cells.is_even_and_falling
            else self.comparisons()
        )

    def compare_with_shift(self, shift: int) -> Comparison:
        """Cells and atom against themselves moved by s."""
        cells = self.cells
        p, q, low = cells.compare_with_shift(shift)
        if self.atom:
            p, q = [*p, self.atom, ZERO], [*q, ZERO, self.atom]

        def describe(k: int) -> tuple[str, str]:
            if k < 2 * abs(shift) + len(cells.weights):
                return f"f({low + k})", f"f({low + k + shift})"
            return "f beyond the weights, or at the atom", "f there, moved"

        whole = not cells.ratio and not self.atom  # without them all weights are integers
        law = Distribution.from_integers if whole else Distribution
        return Comparison((shift,), law(p), law(q), describe)

    @property
    def _shifts(self) -> list[int]:
        return [s for s in range(-self.reach, self.reach + 1) if s]

    def budgets(self, epsilon: Budget) -> Budgets:
        """The budget of every shift ±1..±reach; a mapping may be by s or (s,), both signs. Raises InvalidRequest."""
        return assign_budgets(
            ((s,) for s in self._shifts), epsilon, "difference",
            read_key=lambda key: key if isinstance(key, tuple) else (key,), mirror=lambda label: (-label[0],),
            format_label=lambda label: abs(label[0]),
        )  # fmt: skip

    @property
    def audit_size(self) -> AuditSize:
        """Of the comparisons, counted without listing them."""
        law, reach, atom = self.cells, self.reach, self.atom
        outcomes = (
            len(law.weights) + 2 * reach + (2 * law.period if law.ratio else 0) + (2 if atom else 0)
        )
        bits = self.weight_bits(reach, 3) + (count_bits(atom) if atom else 0)
        return AuditSize(
            2 * reach, outcomes, 1, bits, extremes=1 if law.is_even_and_falling else None
        )

    def weight_bits(self, span: int, more: int) -> int:
        """Of the weights' total and, with tails, of the powers of the ratio that reach over so many cells."""
        law = self.cells
        powers = -(-span // law.period) + more if law.ratio else 0
        return int(law.weight_law.total.bit_length() + powers * count_bits(law.ratio))

    def exact_loss(self, name: str, losses: Rationals | None) -> Fraction:
        """`loss`; there are none of one's own. Raises InvalidRequest."""
        if losses is not None:
            raise InvalidRequest(USER_LOSSES_REFUSED)
        return self.loss(name)

    @abstractmethod
    def with_max_distance(self, distance: Any) -> LineNoise:
        """The same noise on answers at most so far apart."""

    def with_neighbours_over(self, low: Fraction, high: Fraction) -> LineNoise:
        """The same noise where every two answers from low to high are neighbours; itself where they are."""
        width = high - low
        return self if width <= self.question.sensitivity else self.with_max_distance(width)

    @property
    def column_cautions(self) -> tuple[str, ...]:
        """That numbers further apart than the sensitivity are no neighbours."""
        return (
            f"The budget holds between numbers that differ by at most {float(self.question.sensitivity):g}; those "
            "further apart are protected less, or not at all.",
        )

    def published_error(self) -> dict[str, float] | None:
        """What a number plus noise is off by; None where what is published depends on the answer."""
        squared = float(self.loss("squared"))
        return {
            "mean absolute error": float(self.loss("absolute")),
            "root mean squared error": squared**0.5,
        }

    def to_dict(self) -> Record:
        """JSON-ready, read back by `from_dict`."""
        law = self.cells
        where = {"first": law.first, "period": law.period, "ratio": format_fraction(law.ratio)}
        return {
            "kind": self.kind,
            **self.question.to_dict(),
            **where,
            **write_law_record(law.weight_law),
        }

    @staticmethod
    def read_record(data: Any, **own: Entry) -> tuple[list[Any], IntegerLaw]:
        """Its own entries of a record, and the law. Raises CorruptFile, InvalidRequest."""
        form = RecordForm(
            "The noise", kind=UNCHANGED, first=INTEGER, period=INTEGER, ratio=RATIO, **own
        )
        fields, law = form.read_beside_law(data)
        _, first, period, ratio, *rest = fields.values()
        return rest, IntegerLaw(first, law, period, ratio)


@dataclass(frozen=True, repr=False)
class AdditiveIntegerNoise(LineNoise):
    """The mechanism q -> q + η of a question, η ~ noise, clamped where the question says so. Raises InvalidRequest."""

    question: IntegerNoise
    noise: IntegerLaw

    kind = "integer-noise"
    atom = ZERO

    def __post_init__(self) -> None:
        if not isinstance(self.question, IntegerNoise) or not isinstance(self.noise, IntegerLaw):
            must("mechanism", "an IntegerNoise and an IntegerLaw", type(self.noise).__name__)

    @property
    def cells(self) -> IntegerLaw:
        """The integers."""
        return self.noise

    @property
    def reach(self) -> int:
        """The sensitivity."""
        return self.question.sensitivity

    @property
    def rows(self) -> tuple[Distribution, ...]:
        """The law of what is published on every answer, of clamped noise."""
        if self.question.clamp is None:
            raise InvalidRequest(
                "rows are those of clamped noise: unclamped it has infinitely many."
            )
        return self._channel.rows

    @cached_property
    def _channel(self) -> Channel:
        """Clamped noise as what it is."""
        assert self.question.clamp is not None
        low, high = self.question.clamp
        count = high - low + 1
        near = (
            (i, j)
            for i in range(count)
            for j in range(max(0, i - self.reach), min(count, i + self.reach + 1))
        )
        rows = tuple(self.noise.clamp(low - q, high - q) for q in range(low, high + 1))
        return Channel(rows, tuple(pair for pair in near if pair[0] != pair[1]))

    def law(self, x: Any = None) -> Distribution:
        """Of clamped noise the law of the answer published on x; else that of η. Raises InvalidRequest."""
        clamp = self.question.clamp
        return super().law(x) if clamp is None else self.rows[self.read_answer(x) - clamp[0]]

    @property
    def outputs(self) -> Integers:
        """Of clamped noise the answers; else the noise values behind the positions of `law`."""
        low, high = self.question.clamp or (self.noise.first - 1, self.noise.last + 1)
        return np.arange(low, high + 1)

    @property
    def inputs(self) -> Any:
        """The answers there are, of clamped noise; else None, all integers."""
        return None if self.question.clamp is None else self.outputs

    def read_answer(self, x: Any) -> int:
        """An answer. Raises InvalidRequest."""
        if self.question.clamp is not None:
            return read_integer(x, "answer", *self.question.clamp)
        return read_integer(x, "answer", -_FARTHEST, _FARTHEST, "an integer")

    # What is compared.

    @property
    def pairs(self) -> Pairs:
        """Of clamped noise, the ordered pairs of rows whose answers are neighbours."""
        return self._channel.pairs

    def comparisons(self) -> Iterator[Comparison]:
        """f against f(· + s), s = ±1..±D; of clamped noise its rows."""
        return super().comparisons() if self.question.clamp is None else self._channel.comparisons()

    def extremes(self) -> Iterable[Comparison]:
        """Of clamped noise the pairs that reach the extremes of every output, where all are neighbours."""
        return super().extremes() if self.question.clamp is None else self._channel.extremes()

    def budgets(self, epsilon: Budget) -> Budgets:
        """The budget of every comparison; a mapping gives one for each distance (of clamped noise, pair of rows)."""
        return (
            super().budgets(epsilon)
            if self.question.clamp is None
            else self._channel.budgets(epsilon)
        )

    @property
    def audit_size(self) -> AuditSize:
        """Of the comparisons, counted without listing them."""
        if self.question.clamp is None:
            return super().audit_size
        low, high = self.question.clamp
        count = high - low + 1
        return AuditSize(
            self.reach * (2 * count - self.reach - 1), count, count, self.weight_bits(count, 2)
        )

    # What is published.

    def draw(self, x: Any, count: int, source: Source) -> Integers:
        """x + η (η itself without an x), clamped where the question says so. Shape (count,)."""
        answer = 0 if x is None and self.question.clamp is None else self.read_answer(x)
        return self._published(answer, self.noise.draw(count, source))

    def publish(self, answers: NDArray[Any], *, insecure_seed: int | None = None) -> Integers:
        """One draw for each of many true answers. answers: (n,) integers. Raises InvalidRequest."""
        clamp = self.question.clamp
        constraint = (
            "a column of integers" if clamp is None else f"integers in {clamp[0]}..{clamp[1]}"
        )
        given = read_integer_column(
            answers, "answers", *(clamp or (-_FARTHEST, _FARTHEST)), constraint
        )
        return self._published(given, self.noise.draw(given.size, Source(insecure_seed)))

    def _published(self, answers: Integers | int, noise: Integers) -> Integers:
        return (
            answers + noise
            if self.question.clamp is None
            else np.clip(answers + noise, *self.question.clamp)
        )

    @property
    def column_inputs(self) -> ColumnInputs:
        """The answers of clamped noise; else the integers that floats hold."""
        clamp = self.question.clamp
        if clamp is None:
            return ColumnInputs(
                "noise",
                -(2.0**53),
                2.0**53,
                "an integer of size at most 2^53",
                True,
                is_bounded=False,
            )
        return ColumnInputs(
            "noise", float(clamp[0]), float(clamp[1]), f"an integer in {clamp[0]}..{clamp[1]}", True
        )

    def with_max_distance(self, distance: int) -> AdditiveIntegerNoise:
        """The same noise on answers at most so far apart."""
        return AdditiveIntegerNoise(IntegerNoise(int(distance), self.question.clamp), self.noise)

    def published_error(self) -> dict[str, float] | None:
        """Of unclamped noise; clamped it depends on the answer."""
        return None if self.question.clamp is not None else super().published_error()

    def loss(self, name: str) -> Fraction:
        """The exact mean of |η| ("absolute") or η² ("squared") of unclamped noise."""
        power = {"absolute": 1, "squared": 2}.get(name)
        if power is None or self.question.clamp is not None:
            raise InvalidRequest(
                "objective must be absolute or squared for unclamped noise, an expected loss for clamped."
            )
        return self.noise.mean(lambda eta: Fraction(abs(eta) ** power), (ZERO,) * power + (ONE,))

    def exact_loss(self, name: str, losses: Rationals | None) -> Fraction:
        """`loss`, or Σ f(η) loss(η) of losses of one's own, one for each weight. Raises InvalidRequest."""
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
        """The same question answered with another law."""
        return AdditiveIntegerNoise(self.question, noise)

    def describe(self) -> str:
        """One line."""
        return str(self.question)

    def drawing(self) -> FigureData:
        """The PMF as bars, the tails as far as they can be seen."""
        first, masses = self.noise.floats_with_tails(MIN_VISIBLE_SHARE, MAX_TAIL_BARS)
        return make_bar_figure(NOISE_TITLE, "noise η", range(first, first + len(masses)), masses)

    @classmethod
    def from_dict(cls, data: Any) -> AdditiveIntegerNoise:
        """The mechanism written by `to_dict`, which claims no privacy. Raises CorruptFile, InvalidRequest."""
        question, law = cls.read_record(
            data, sensitivity=INTEGER, clamp=make_optional_entry(INTEGERS)
        )
        return cls(IntegerNoise(*question), law)

    def __repr__(self) -> str:
        return f"AdditiveIntegerNoise({self.question!r}, {len(self.noise.weights)} weights from {self.noise.first})"
