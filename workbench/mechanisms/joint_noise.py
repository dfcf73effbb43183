"""Joint releases: independent noise of one law on every coordinate of a vector of integers.

For example, every bin of a histogram gets its own noise. A person may have rows in several bins, so
the release is less private than one bin of it.

Notation: f is the law of the noise of one coordinate. If a person's rows change, the vector of true
answers moves by a shift vector v (`workbench.questions.joint_query`). The laws of the release are
then the products

    P = f(η1) f(η2) ...,    Q = f(η1 + v1) f(η2 + v2) ...

and the privacy loss ln P/Q is the sum of the privacy losses of the coordinates. Its law is their
convolution. Outcomes with the same ratio P/Q may be merged, because every notion depends only on
the law of the ratio. The convolution is exact: an atom is a ratio k/l in lowest terms with a
multiplicity g, and has the masses g k under P and g l under Q. The product of the atoms (k, l, g)
and (k', l', g') is (k k', l l', g g'), reduced to lowest terms.

Geometric noise f(η) ∝ a^|η| at the shift s has the ratios a^-s, a^(2-s), ..., a^s. The largest
ratio of a shift vector is therefore a^-|v|_1, and the largest L1 norm decides pure ε (`extremes`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from math import gcd
from typing import Any

import numpy as np

from workbench.data.plain import MAX_FILE_INTEGER, read_integer, read_list
from workbench.errors import InvalidRequest, NotCertified, must
from workbench.exact.arrays import Integers
from workbench.exact.distribution import Distribution, to_common_denominator
from workbench.exact.integer_law import IntegerLaw
from workbench.exact.numbers import ONE, ZERO, count_bits, read_positive
from workbench.exact.objects import Pair, Record
from workbench.exact.random_source import Source
from workbench.exact.time_limit import ITEMS_PER_CLOCK_CHECK, check_time_limit
from workbench.io.files import format_fraction
from workbench.io.plain_figures import FigureData, make_noise_figure
from workbench.io.records import (
    INTEGER,
    INTEGERS,
    RATIO,
    UNCHANGED,
    RecordForm,
    make_list_entry,
    make_optional_entry,
    write_law_record,
)
from workbench.mechanisms.mechanism import AuditSize, Budget, Budgets, Comparison
from workbench.mechanisms.shown_mechanism import ShownMechanism
from workbench.questions.joint_query import JointQuery, ShiftVector

Atoms = dict[Pair, int]
"""Maps a ratio (k, l) in lowest terms to its multiplicity g: the masses are g k and g l."""

# Convolutions of more work, in units of about 10^-7 s, are refused. δ is then bounded on a grid.
MAX_CONVOLUTION_UNITS = 4_000_000
# The limit for geometric noise, for which a grid is seldom needed.
MAX_GEOMETRIC_UNITS = 60_000_000
# δ > 0 is bounded on a grid if an exact audit needs more work than this, in the same units.
MAX_AUDIT_UNITS = 95_000_000
# A product of two atoms counts as this many units, and more if its numbers are long.
_PRODUCT_UNITS = 20


class ConvolutionTooLarge(InvalidRequest):
    """The exact convolution of the privacy losses has too many different losses."""


class LossConvolutions:
    """The merged outcomes of every shift vector, each computed once.

    Args:
        noise: The law f of one coordinate.
    """

    def __init__(self, noise: IntegerLaw) -> None:
        self._noise = noise
        self._is_even = noise.first == -noise.last and noise.weights == noise.weights[::-1]
        self._atoms_by_shift: dict[int, Atoms] = {}
        # Without a shift P = Q, so the only ratio is 1/1.
        self._atoms_by_vector: dict[ShiftVector, Atoms] = {(): {(1, 1): 1}}
        self.max_units = MAX_CONVOLUTION_UNITS
        if is_geometric(noise):
            self.max_units = MAX_GEOMETRIC_UNITS
        self._used_units = 0

    def atoms_of(self, vector: ShiftVector) -> Atoms:
        """Return the merged outcomes of a shift vector.

        Args:
            vector: A shift vector.

        Raises:
            ConvolutionTooLarge: The convolutions of all shift vectors so far need too much work.
        """
        key = self.key_of(vector)
        if key not in self._atoms_by_vector:
            left = self.atoms_of(key[:-1])
            if key[-1] not in self._atoms_by_shift:
                outcomes = len(self._noise.weights) + 2 * abs(key[-1])
                self._use_units(outcomes, self._noise.weight_law.total.bit_length())
            right = self.atoms_at_shift(key[-1])
            self._atoms_by_vector[key] = self._multiply(left, right)
        return self._atoms_by_vector[key]

    def key_of(self, vector: ShiftVector) -> ShiftVector:
        """Return the sorted shifts of a vector. Vectors with the same result have the same losses.

        Args:
            vector: A shift vector.
        """
        parts = [part for part in vector if part]
        if self._is_even:
            # An even law has the same ratios, with the same masses, at s and at -s.
            parts = [abs(part) for part in parts]
        return tuple(sorted(parts))

    def atoms_at_shift(self, shift: int) -> Atoms:
        """Return the merged outcomes of one coordinate.

        Args:
            shift: The shift s != 0.
        """
        if shift not in self._atoms_by_shift:
            p, q, _ = self._noise.compare_with_shift(shift)
            integers, _ = to_common_denominator([*p, *q])
            atoms: Counter[Pair] = Counter()
            for k, l in zip(integers[: len(p)], integers[len(p) :], strict=True):
                multiplicity = gcd(k, l)
                if multiplicity:
                    atoms[k // multiplicity, l // multiplicity] += multiplicity
            self._atoms_by_shift[shift] = atoms
        return self._atoms_by_shift[shift]

    def _multiply(self, left: Atoms, right: Atoms) -> Atoms:
        """Return the merged products of two sets of outcomes."""
        bits = sum(max(count_key_bits(key) for key in atoms) for atoms in (left, right))
        left_bits = max(left.values()).bit_length()
        right_bits = max(right.values()).bit_length()
        multiplicity_units = (left_bits // 256) * (right_bits // 256)
        self._use_units(len(left) * len(right), bits, multiplicity_units)
        atoms: Counter[Pair] = Counter()
        for position, ((k, l), count) in enumerate(left.items()):
            if position % ITEMS_PER_CLOCK_CHECK == 0:
                check_time_limit()
            for (other_k, other_l), other_count in right.items():
                p = k * other_k
                q = l * other_l
                divisor = gcd(p, q)
                if divisor:  # Otherwise neither law has the outcome.
                    atoms[p // divisor, q // divisor] += count * other_count * divisor
        return atoms

    def _use_units(self, products: int, bits: int, multiplicity_units: int = 0) -> None:
        """Count the work of products of atoms before they are computed."""
        self._used_units += products * (_PRODUCT_UNITS + (bits // 256) ** 2 + multiplicity_units)
        if self._used_units > self.max_units:
            remedy = "Use fewer rows or a coarser grid."
            if not is_geometric(self._noise):
                remedy = (
                    "Use fewer rows, a coarser grid, or geometric noise. dp with delta > 0 needs "
                    "no exact convolution: `check`, and `audit` without --delta, --risk and "
                    "--plot, bound its delta on a grid."
                )
            raise ConvolutionTooLarge(
                "The noise must have few different privacy losses for an exact convolution of all "
                f"shift vectors. More than {self.max_units} units of work are refused as "
                f"too large. {remedy}"
            )


def is_geometric(noise: IntegerLaw) -> bool:
    """Return whether f(η) ∝ a^|η|, stated as one weight with tails.

    Args:
        noise: The law f.
    """
    return noise.first == 0 and len(noise.weights) == 1 and noise.ratio > 0


def count_key_bits(key: Pair) -> int:
    """Count the bits of a ratio in lowest terms.

    Args:
        key: Numerator and denominator.
    """
    numerator, denominator = key
    return numerator.bit_length() + denominator.bit_length()


@dataclass(frozen=True, repr=False)
class JointNoise(ShownMechanism):
    """The mechanism that adds noise of one law to every coordinate of a vector.

    Attributes:
        question: The relation of neighbours, with its shift vectors.
        noise: The law f of the noise of one coordinate.

    Raises:
        InvalidRequest: If question is no JointQuery, or noise is no IntegerLaw.
    """

    question: JointQuery
    noise: IntegerLaw

    kind = "joint"
    segments = ()  # The shift vectors decide every notion.
    is_one_sided = False
    column_inputs = None  # The release is no column of single numbers.
    inputs = None  # Every vector of integers is an input.

    def __post_init__(self) -> None:
        if not isinstance(self.question, JointQuery) or not isinstance(self.noise, IntegerLaw):
            must("mechanism", "a JointQuery and an IntegerLaw", type(self.noise).__name__)

    # Laws.

    def law(self, x: Any = None) -> Distribution:
        """Return the law of the noise of one coordinate.

        The first and the last position stand for all noise beyond the weights.

        Args:
            x: A vector of true answers, whose noise has the same law. None for the noise itself.

        Raises:
            InvalidRequest: If x is no vector of integers, or has another length than 2 for a pair.
        """
        if x is not None:
            self.read_answer(x)
        noise = self.noise
        # A tail has the mass (ratio + ratio² + ...) = ratio / (1 - ratio) of the period beside it.
        lower_tail, upper_tail = (noise.ratio / (1 - noise.ratio) * end for end in noise.end_sums)
        return Distribution([lower_tail, *noise.weights, upper_tail])

    @property
    def outputs(self) -> Integers:
        """Return the noise value of every position of `law`."""
        return np.arange(self.noise.first - 1, self.noise.last + 2)

    def read_answer(self, x: Any) -> list[int]:
        """Read a vector of true answers.

        Args:
            x: Integers, one for every coordinate.

        Raises:
            InvalidRequest: If x is no list of integers, is empty, or has another length than 2 for
                a pair of sums.
        """
        entries = read_list(x, "answer", "a list of integers")
        dimension = self.question.dimension
        if not entries or len(entries) != (dimension or len(entries)):
            length = "at least 1" if dimension is None else str(dimension)
            must("answer", f"a list of {length} integers", len(entries))
        constraint = "a list of integers"
        return [
            read_integer(entry, "answer", -MAX_FILE_INTEGER, MAX_FILE_INTEGER, constraint)
            for entry in entries
        ]

    # Comparisons.

    @cached_property
    def _convolutions(self) -> LossConvolutions:
        """Return the object that convolves privacy losses of the noise, made at its first use."""
        return LossConvolutions(self.noise)

    @cached_property
    def _laws_by_key(self) -> dict[ShiftVector, tuple[Distribution, Distribution]]:
        """Keep the laws of merged outcomes, as many vectors share them."""
        return {}

    def convolution_key(self, vector: ShiftVector) -> ShiftVector:
        """Return the sorted shifts of a vector. Vectors with the same result have the same losses.

        Args:
            vector: A shift vector.
        """
        return self._convolutions.key_of(vector)

    def atoms_at_shift(self, shift: int) -> Atoms:
        """Return the merged outcomes of one coordinate.

        Args:
            shift: The shift s != 0.
        """
        return self._convolutions.atoms_at_shift(shift)

    @cached_property
    def needs_grid(self) -> bool:
        """Return whether the privacy losses are too many, or too long, for an exact audit.

        δ is then bounded on a grid of privacy losses (`workbench.privacy.joint_bound`).
        """
        try:
            size = self.audit_size
        except ConvolutionTooLarge:
            return True
        if self.is_geometric:
            return False
        # This is the work of an audit by the rule of `workbench.privacy.audit_work`.
        units = size.comparisons * (size.outcomes * (4 + (size.bits // 256) ** 2) + 1000)
        units += (size.comparisons + 8) * (size.bits // 64) ** 2
        return units > MAX_AUDIT_UNITS

    @cached_property
    def is_geometric(self) -> bool:
        """Return whether f(η) ∝ a^|η|, stated as one weight with tails."""
        return is_geometric(self.noise)

    def comparisons(self) -> Iterator[Comparison]:
        """Yield the comparison of every shift vector, with merged outcomes."""
        return map(self.compare_with_shift, self.question.shifts)

    def compare_with_shift(self, vector: ShiftVector) -> Comparison:
        """Compare the release with itself, moved by a shift vector.

        Args:
            vector: The shift vector.

        Raises:
            ConvolutionTooLarge: The convolutions need too much work.
        """
        key = self.convolution_key(vector)
        if key not in self._laws_by_key:
            atoms = self._convolutions.atoms_of(vector)
            p = Distribution.from_integers([k * count for (k, _), count in atoms.items()])
            q = Distribution.from_integers([l * count for (_, l), count in atoms.items()])
            self._laws_by_key[key] = p, q
        p, q = self._laws_by_key[key]
        names = ("the mass of a privacy loss", "its mass after the shift")
        return Comparison(vector, p, q, lambda _: names)

    def extremes(self) -> Iterable[Comparison]:
        """Return all comparisons, or one that has the largest ratio of geometric noise.

        The largest ratio of geometric noise is a^-N, where N is the largest L1 norm of a shift
        vector. In one coordinate with the shift N, all η >= 0 have this ratio. Their mass is
        1/(1 + a) under P and a^N/(1 + a) under Q. All other outcomes are merged, which cannot make
        a ratio larger.
        """
        if not self.is_geometric:
            return self.comparisons()
        ratio = self.noise.ratio
        power = ratio**self.question.max_norm
        p = Distribution([ONE, ratio])
        q = Distribution([power, 1 + ratio - power])
        names = ("the mass of the largest privacy loss", "its mass after the shift")
        return [Comparison((), p, q, lambda _: names)]

    def budgets(self, epsilon: Budget) -> Budgets:
        """Return the budget of every shift vector.

        Args:
            epsilon: One number >= 0 for all.

        Raises:
            InvalidRequest: If epsilon is a mapping or no such number.
        """
        if isinstance(epsilon, Mapping):
            must("epsilon", "one number for a joint release", "a mapping")
        value = read_positive(epsilon, "epsilon", or_zero=True)
        return dict.fromkeys(self.question.shifts, value)

    @cached_property
    def audit_size(self) -> AuditSize:
        """Return the size of an audit.

        The merged outcomes are counted by computing them, except for geometric noise: at a shift
        vector with the L1 norm N, it has N + 1 different ratios.

        Raises:
            ConvolutionTooLarge: The convolutions need too much work.
        """
        noise = self.noise
        shifts = self.question.shifts
        if self.is_geometric:
            norm = self.question.max_norm
            return AuditSize(
                comparisons=len(shifts),
                outcomes=norm + 1,
                laws=1,
                bits=(norm + 2) * count_bits(noise.ratio),
                extremes=1,
                extreme_outcomes=2,
            )
        outcomes = 0
        bits = 0
        for vector in shifts:
            atoms = self._convolutions.atoms_of(vector)
            outcomes = max(outcomes, len(atoms))
            total = sum(k * count for (k, _), count in atoms.items())
            bits = max(bits, total.bit_length())
        return AuditSize(comparisons=len(shifts), outcomes=outcomes, laws=1, bits=bits)

    # Publishing.

    def draw(self, x: Any, count: int, source: Source) -> Integers:
        """Draw independent releases of a vector, or the noise of one coordinate.

        Args:
            x: The true vector of d integers. None for the noise of one coordinate.
            count: The number of draws.
            source: The source of randomness.

        Returns:
            The published vectors, shape (count, d), or the noise, shape (count,).

        Raises:
            InvalidRequest: If x is no vector of integers.
        """
        if x is None:
            return self.noise.draw(count, source)
        answers = np.array(self.read_answer(x), dtype=np.int64)
        noise = self.noise.draw(count * answers.size, source)
        return answers + noise.reshape(count, answers.size)

    def publish(self, answers: Sequence[int], *, insecure_seed: int | None = None) -> Integers:
        """Publish a vector once, with independent noise on every coordinate. Shape (d,).

        Args:
            answers: The true vector, shape (d,).
            insecure_seed: A seed >= 0 that makes the draws repeatable, for experiments only.
                Default: the randomness of the operating system.

        Raises:
            InvalidRequest: If answers is no vector of integers, or insecure_seed is negative.
        """
        release: Integers = self.draw(answers, 1, Source(insecure_seed))[0]
        return release

    def loss(self, name: str) -> Fraction:
        """Compute the exact mean of |η| ("absolute") or η² ("squared") of one coordinate.

        Args:
            name: The loss, "absolute" or "squared".

        Raises:
            InvalidRequest: For any other loss.
        """
        power = {"absolute": 1, "squared": 2}.get(name)
        if power is None:
            must("loss", "absolute or squared", name)
        tail_terms = (ZERO,) * power + (ONE,)  # The coefficients of |η|^power.
        return self.noise.mean(lambda eta: Fraction(abs(eta) ** power), tail_terms)

    # Files and words.

    def describe(self) -> str:
        """Describe the release and its neighbours in one line."""
        return f"{self.question}, {len(self.question.shifts)} shift vectors"

    def drawing(self) -> FigureData:
        """Return the PMF of the noise of one coordinate as bars, with a part of the tails."""
        return make_noise_figure(self.noise)

    def to_dict(self) -> Record:
        """Return a JSON-ready record, which `from_dict` reads."""
        noise = self.noise
        return {
            "kind": self.kind,
            **self.question.to_dict(),
            "first": noise.first,
            "period": noise.period,
            "ratio": format_fraction(noise.ratio),
            **write_law_record(noise.weight_law),
        }

    @classmethod
    def from_dict(cls, data: Any) -> JointNoise:
        """Return the mechanism written by `to_dict`, which claims no privacy.

        The shift vectors are derived from the relation and compared with those of the record.

        Args:
            data: The record, as parsed from JSON.

        Raises:
            CorruptFile: If the record has another form.
            InvalidRequest: If the relation, the period or the ratio of the tails is outside its
                range.
            NotCertified: If the shift vectors are not those of the relation.
        """
        form = RecordForm(
            "The joint noise",
            kind=UNCHANGED,
            release=UNCHANGED,
            neighbours=UNCHANGED,
            rows=INTEGER,
            span=make_optional_entry(INTEGER),
            shifts=make_list_entry(INTEGERS),
            first=INTEGER,
            period=INTEGER,
            ratio=RATIO,
        )
        fields, law = form.read_beside_law(data)
        question = JointQuery(
            fields["release"], fields["neighbours"], fields["rows"], fields["span"]
        )
        if tuple(map(tuple, fields["shifts"])) != question.shifts:
            raise NotCertified(
                f"The shift vectors must be all {len(question.shifts)} of the relation, in order. "
                "The file has others."
            )
        noise = IntegerLaw(fields["first"], law, fields["period"], fields["ratio"])
        return cls(question, noise)

    def __repr__(self) -> str:
        weights = f"{len(self.noise.weights)} weights from {self.noise.first}"
        return f"JointNoise({self.question!r}, {weights})"
