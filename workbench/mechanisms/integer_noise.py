"""Additive noise on all integers: answer q is published as q + η, η ~ f on Z, or clamped into the answers there are.

Neighbouring answers differ by 1..D in either direction. The law of q + η is that of η moved, so f against f(· + s) for
s = ±1..±D is all there is to compare, whatever q is. Clamped to low..high the mechanism is a finite channel and is
compared as one, row by row: clamping is post-processing, which every notion but PDP survives, and costs privacy nothing
that this does not show.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from workbench.errors import CorruptFile, InvalidRequest
from workbench.exact.distribution import Distribution
from workbench.exact.integer_law import IntegerLaw
from workbench.exact.numbers import positive
from workbench.exact.plain import is_whole, whole_column
from workbench.exact.random_source import Source
from workbench.exact.sampler import Sampler
from workbench.io.files import ratio as read_ratio
from workbench.io.files import spelled
from workbench.io.records import law_record, listed, read_law, refuse, take
from workbench.mechanisms.mechanism import (
    AuditSize,
    Budget,
    ColumnInputs,
    Comparison,
    Label,
    Segment,
    compare_pairs,
    extreme_pairs,
    pair_budgets,
)
from workbench.mechanisms.noise_losses import PART_LOSSES
from workbench.mechanisms.shown_mechanism import ShownMechanism

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = [
    "LAW",
    "OWN_LOSSES",
    "AdditiveIntegerNoise",
    "IntegerNoise",
    "LineNoise",
    "UnboundedNoise",
    "law_entries",
    "line_comparisons",
    "line_size",
    "ratio_bits",
    "read_entries",
    "shift_budgets",
]

MAX_SENSITIVITY = 10_000
MAX_ANSWERS = 10_001
OWN_LOSSES = "losses must have a name of their own, and be left out for absolute, squared and noise on the reals."
LAW = {"first", "period", "ratio", "total", "weights"}  # the entries of a law's record


class UnboundedNoise:
    """A query whose answers have no largest one: IntegerNoise or RealNoise."""

    sensitivity: Any


@dataclass(frozen=True)
class IntegerNoise(UnboundedNoise):
    """A query with integer answers, and its neighbours: answers that differ by at most `sensitivity`.

    clamp: (low, high) where only these answers exist and what is published is clamped into them; None: all integers.
    Raises InvalidRequest.
    """

    sensitivity: int = 1
    clamp: tuple[int, int] | None = None

    def __post_init__(self) -> None:
        if not is_whole(self.sensitivity) or not 1 <= self.sensitivity <= MAX_SENSITIVITY:
            InvalidRequest.must("sensitivity", f"an integer in 1..{MAX_SENSITIVITY}", self.sensitivity)
        object.__setattr__(self, "sensitivity", int(self.sensitivity))
        if self.clamp is None:
            return
        ends = tuple(self.clamp)
        if len(ends) != 2 or not all(is_whole(end) for end in ends) or not 0 < ends[1] - ends[0] < MAX_ANSWERS:
            InvalidRequest.must("clamp", f"two integers low < high, at most {MAX_ANSWERS} answers", self.clamp)
        object.__setattr__(self, "clamp", (int(ends[0]), int(ends[1])))
        if self.sensitivity > ends[1] - ends[0]:
            InvalidRequest.must("sensitivity", f"at most {ends[1] - ends[0]}, as answers are clamped", self.sensitivity)

    def to_dict(self) -> dict[str, Any]:
        """JSON-ready."""
        return {"sensitivity": self.sensitivity, "clamp": None if self.clamp is None else [*self.clamp]}


class LineNoise(ShownMechanism):
    """What noise on the integers and on the reals share: neighbours are answers at most `sensitivity` apart."""

    question: Any

    segments: ClassVar[tuple[Segment, ...]] = ()  # shifts decide every notion
    one_sided: ClassVar[bool] = False
    repaired_by: ClassVar[str] = "line"

    @abstractmethod
    def loss(self, name: str) -> Fraction:
        """The exact mean of |η| ("absolute") or η² ("squared"). Raises InvalidRequest."""

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
        return {"mean absolute error": float(self.loss("absolute")), "root mean squared error": squared**0.5}


@dataclass(frozen=True, repr=False)
class AdditiveIntegerNoise(LineNoise):
    """The mechanism q -> q + η of a question, η ~ noise, clamped where the question says so. Raises InvalidRequest."""

    question: IntegerNoise
    noise: IntegerLaw

    kind: ClassVar[str] = "integer-noise"

    def __post_init__(self) -> None:
        if not isinstance(self.question, IntegerNoise) or not isinstance(self.noise, IntegerLaw):
            InvalidRequest.must("mechanism", "an IntegerNoise and an IntegerLaw", type(self.noise).__name__)

    @cached_property
    def rows(self) -> tuple[Distribution, ...]:
        """The law of what is published on every answer, of clamped noise."""
        if self.question.clamp is None:
            raise InvalidRequest("rows are those of clamped noise: unclamped it has infinitely many.")
        low, high = self.question.clamp
        return tuple(self.noise.clamped(low - q, high - q) for q in range(low, high + 1))

    def law(self, x: Any = None) -> Distribution:
        """Of clamped noise the law of the answer published on x; else that of η, the same for every x: its first and
        last position stand for all beyond the weights. Raises InvalidRequest."""
        if self.question.clamp is not None:
            return self.rows[self._answer(x) - self.question.clamp[0]]
        if x is not None:
            self._answer(x)
        noise = self.noise
        tails = [noise.ratio / (1 - noise.ratio) * end for end in noise.ends]
        return Distribution([tails[0], *noise.weights, tails[1]])

    @property
    def outputs(self) -> NDArray[np.int64]:
        """Of clamped noise the answers; else the noise values behind the positions of `law`."""
        if self.question.clamp is not None:
            return np.arange(self.question.clamp[0], self.question.clamp[1] + 1)
        return np.arange(self.noise.first - 1, self.noise.last + 2)

    def _answer(self, x: Any) -> int:
        clamp = self.question.clamp
        if not is_whole(x) or abs(int(x)) >= 1 << 62 or (clamp is not None and not clamp[0] <= int(x) <= clamp[1]):
            InvalidRequest.must("answer", "an integer" if clamp is None else f"an integer in {clamp[0]}..{clamp[1]}", x)
        return int(x)

    # What is compared.

    @property
    def pairs(self) -> tuple[tuple[int, int], ...]:
        """Of clamped noise, the ordered pairs of rows whose answers are neighbours."""
        count, reach = len(self.rows), self.question.sensitivity
        near = ((i, j) for i in range(count) for j in range(max(0, i - reach), min(count, i + reach + 1)))
        return tuple(pair for pair in near if pair[0] != pair[1])

    def comparisons(self) -> Iterator[Comparison]:
        """f against f(· + s), s = ±1..±D; of clamped noise its rows."""
        if self.question.clamp is not None:
            return compare_pairs(self.rows, self.pairs)
        return line_comparisons(self.noise, self.question.sensitivity)

    def extremes(self) -> Iterator[Comparison]:
        """All shifts; of clamped noise the pairs that reach the extremes of every output, where all are neighbours."""
        clamp = self.question.clamp
        if clamp is not None and self.question.sensitivity == clamp[1] - clamp[0]:
            return compare_pairs(self.rows, extreme_pairs(self.rows))
        return self.comparisons()

    def budgets(self, epsilon: Budget) -> dict[Label, Fraction]:
        """The budget of every comparison; a mapping gives one for each distance (of clamped noise, pair of rows)."""
        if self.question.clamp is not None:
            return pair_budgets(self.pairs, epsilon)
        return shift_budgets(self.question.sensitivity, epsilon)

    # What is published.

    def draws(self, x: Any, count: int, source: Source) -> NDArray[np.int64]:
        """x + η (η itself without an x), clamped where the question says so. Shape (count,)."""
        if self.question.clamp is not None:
            return Sampler(self.law(x), source).draw(count) + self.question.clamp[0]
        return self.noise.draw(count, source) + (0 if x is None else self._answer(x))

    def publish(self, answers: NDArray[Any], *, insecure_seed: int | None = None) -> NDArray[np.int64]:
        """One draw for each of many true answers. answers: (n,) integers. Raises InvalidRequest."""
        clamp = self.question.clamp
        low, high = (-(1 << 62), 1 << 62) if clamp is None else clamp
        constraint = "a column of integers" if clamp is None else f"integers in {low}..{high}"
        given = whole_column(answers, "answers", low, high, constraint)
        noise = self.noise.draw(given.size, Source(insecure_seed))
        published: NDArray[np.int64] = np.clip(given + noise, low, high)
        return published

    @property
    def column_inputs(self) -> ColumnInputs:
        """The answers of clamped noise; else the integers that floats hold."""
        clamp = self.question.clamp
        if clamp is None:
            return ColumnInputs("noise", -(2.0**53), 2.0**53, "an integer of size at most 2^53", True, bounded=False)
        return ColumnInputs("noise", float(clamp[0]), float(clamp[1]), f"an integer in {clamp[0]}..{clamp[1]}", True)

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
        return self.noise.mean(lambda eta: Fraction(abs(eta) ** power), (Fraction(0),) * power + (Fraction(1),))

    def exact_loss(self, name: str, losses: tuple[Fraction, ...] | None) -> Fraction:
        """`loss`, or Σ f(η) loss(η) of losses of one's own, one for each weight. Raises InvalidRequest."""
        if losses is None:
            return self.loss(name)
        if name in ("absolute", "error-rate", *PART_LOSSES):
            raise InvalidRequest(OWN_LOSSES)
        if self.noise.ratio or self.question.clamp is not None or len(losses) != len(self.noise.weights):
            raise InvalidRequest("losses must be one for each weight of unclamped noise without tails.")
        return sum((c * w for c, w in zip(losses, self.noise.weights, strict=True)), Fraction(0)) / self.noise.total

    # Repair, files, words.

    @property
    def inputs(self) -> Any:
        """The answers there are, of clamped noise; else None, all integers."""
        return None if self.question.clamp is None else self.outputs

    @property
    def audit_size(self) -> AuditSize:
        """Of the comparisons, counted without listing them."""
        noise, reach, clamp = self.noise, self.question.sensitivity, self.question.clamp
        if clamp is None:
            return line_size(noise, reach)
        count = clamp[1] - clamp[0] + 1
        powers = -(-count // noise.period) + 2 if noise.ratio else 0
        bits = noise.held.total.bit_length() + powers * ratio_bits(noise)
        return AuditSize(reach * (2 * count - reach - 1), count, count, bits)

    def with_noise(self, noise: IntegerLaw) -> AdditiveIntegerNoise:
        """The same question answered with another law."""
        return AdditiveIntegerNoise(self.question, noise)

    @property
    def reach(self) -> int:
        """The largest shift that is compared."""
        return self.question.sensitivity

    def describe(self) -> str:
        """One line."""
        d, clamp = self.question.sensitivity, self.question.clamp
        where = "on all integers" if clamp is None else f"clamped to {clamp[0]}..{clamp[1]}"
        return f"Additive noise {where}, neighbouring answers differ by at most {d}"

    def figure(self) -> Figure:
        """The PMF as bars."""
        from workbench.io.figures import noise_plot

        values, masses = self.noise.first + np.arange(len(self.noise.weights)), self.noise.floats
        return noise_plot(values, masses, self.describe())

    def to_dict(self) -> dict[str, Any]:
        """JSON-ready, read back by `from_dict`."""
        return {"kind": self.kind, **self.question.to_dict(), **law_entries(self.noise)}

    @classmethod
    def from_dict(cls, data: Any) -> AdditiveIntegerNoise:
        """The mechanism written by `to_dict`, which claims no privacy. Raises CorruptFile, InvalidRequest."""
        fields = take(data, "The noise", {"kind", "sensitivity", "clamp", *LAW})
        clamp = fields["clamp"]
        if clamp is not None:
            ends = listed(clamp, "clamp")
            if len(ends) != 2 or not all(type(end) is int and abs(end) < 1 << 40 for end in ends):
                refuse("clamp", "null or two integers")
        if type(fields["sensitivity"]) is not int:
            refuse("sensitivity", "an integer")
        question = IntegerNoise(fields["sensitivity"], None if clamp is None else tuple(clamp))
        return cls(question, read_entries(fields))

    def __repr__(self) -> str:
        return f"AdditiveIntegerNoise({self.question!r}, {len(self.noise.weights)} weights from {self.noise.first})"


# What noise on the integers and on the reals share.


def line_comparisons(law: IntegerLaw, reach: int, atom: Fraction = Fraction(0)) -> Iterator[Comparison]:
    """f against f(· + s) for s = ±1..±reach; atom: a point mass beside the weights, which meets no mass when moved."""
    for shift in sorted(range(-reach, reach + 1), key=lambda s: (abs(s), s < 0)):
        if not shift:
            continue
        p, q, low = law.compared(shift)
        count = 2 * abs(shift) + len(law.weights)
        if atom:
            p, q = [*p, atom, Fraction(0)], [*q, Fraction(0), atom]

        def describe(k: int, low: int = low, shift: int = shift, count: int = count) -> tuple[str, str]:
            if k < count:
                return f"f({low + k})", f"f({low + k + shift})"
            return "f beyond the weights, or at the atom", "f there, moved"

        yield Comparison((shift,), Distribution(p), Distribution(q), describe)


def line_size(law: IntegerLaw, reach: int, atom: Fraction = Fraction(0)) -> AuditSize:
    """What `line_comparisons` amounts to, as `audit_size`."""
    outcomes = len(law.weights) + 2 * reach + (2 * law.period if law.ratio else 0) + (2 if atom else 0)
    powers = -(-reach // law.period) + 3 if law.ratio else 0
    bits = law.held.total.bit_length() + atom.numerator.bit_length() + powers * ratio_bits(law)
    return AuditSize(2 * reach, outcomes, 1, bits + (atom.denominator.bit_length() if atom else 0))


def ratio_bits(law: IntegerLaw) -> int:
    """Of numerator and denominator of the ratio."""
    return law.ratio.numerator.bit_length() + law.ratio.denominator.bit_length()


def shift_budgets(reach: int, epsilon: Budget) -> dict[Label, Fraction]:
    """The budget of every shift ±1..±reach; a mapping may be by s or (s,), for both signs. Raises InvalidRequest."""
    shifts = [s for s in range(-reach, reach + 1) if s]
    if not isinstance(epsilon, Mapping):
        common = positive(epsilon, "epsilon", or_zero=True)
        return {(s,): common for s in shifts}
    given = {(key[0] if isinstance(key, tuple) and len(key) == 1 else key): value for key, value in epsilon.items()}
    for key in given:
        if key not in shifts:
            raise InvalidRequest(f"epsilon has a budget for {key}, which is no difference in 1..{reach}.")
    budgets: dict[Label, Fraction] = {}
    for s in shifts:
        amount = given.get(s, given.get(-s))
        if amount is None:
            raise InvalidRequest(f"epsilon has no budget for the difference {abs(s)}.")
        budgets[s,] = positive(amount, f"epsilon of difference {abs(s)}", or_zero=True)
    return budgets


def law_entries(law: IntegerLaw) -> dict[str, Any]:
    """A law as a record."""
    return {"first": law.first, "period": law.period, "ratio": spelled(law.ratio), **law_record(law.held)}


def read_entries(fields: Mapping[str, Any]) -> IntegerLaw:
    """The law that `law_entries` wrote. Raises CorruptFile, InvalidRequest."""
    for name in ("first", "period"):
        if type(fields[name]) is not int or abs(fields[name]) >= 1 << 40:
            refuse(name, "an integer")
    weights = read_law({name: fields[name] for name in ("total", "weights")}, "The noise")
    ratio = read_ratio(fields["ratio"], "The ratio")
    if not 0 <= ratio < 1:
        raise CorruptFile("The ratio must be a number in [0, 1).")
    return IntegerLaw(fields["first"], weights, fields["period"], ratio)
