"""A mechanism on real inputs whose exact law is affine between knots.

The optimal quantizers of the workbench and the published ones (OPTM, RQM, ERM, MVU) are mechanisms
of this kind.

Example: the knots are -1 and 1, the outputs -2 and 2. The law at -1 is (3/4, 1/4), at 1 it is (1/4,
3/4), and at 0, halfway between them, it is (1/2, 1/2).

An input x in [k_0, k_K] is published as one of B_1, ..., B_m. Between neighbouring knots a < b the
law is the mixture

    p(x, i) = (b - x)/(b - a) p(a+, i) + (x - a)/(b - a) p(b-, i)

of its two one-sided end laws. At a knot the law may jump: p(x, .) is its right limit there, and at
k_K its left limit. Probabilities p(., i), their ratios, and hockey sticks (which are convex in both
laws) are largest and smallest at end laws, and the bias Σ_i p(x, i) B_i - x is affine on a piece.
The end laws alone therefore decide privacy and bias, in exact arithmetic.

    paper (Cai et al. 2024)  code
    B_1 .. B_m, c            bins, c (exact rationals)
    p(x, i), eq. (4)         law(x) exact, probabilities(x) in floats; end laws `ends`
    E|M(X) - X|, eq. (5)     mae(density): exact integral; mae_51: the paper's average over 51
                             points
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from itertools import pairwise, permutations
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from workbench.data.intervals import read_bins, read_inputs, read_rationals, read_real_input
from workbench.data.plain import read_floats_and_entries, read_list
from workbench.errors import InvalidRequest, must
from workbench.exact.arrays import Vector
from workbench.exact.distribution import Distribution
from workbench.exact.numbers import (
    Rationals,
    nearest_float,
    read_number,
    read_positive,
    round_down,
    round_up,
)
from workbench.exact.objects import Record
from workbench.exact.random_source import Source
from workbench.io.plain_figures import FigureData
from workbench.io.records import LAWS, RATIOS, RecordForm
from workbench.mechanisms.affine_sampler import AffineSampler
from workbench.mechanisms.channel import Channel
from workbench.mechanisms.mechanism import (
    AuditSize,
    Bias,
    Budget,
    Budgets,
    ColumnInputs,
    Comparison,
    Segment,
    compare_pairs,
    find_extreme_pairs,
)
from workbench.mechanisms.quantization_error import ErrorIntegrals, RealErrors, locate_inputs
from workbench.mechanisms.shown_mechanism import ShownMechanism, affine_figure
from workbench.questions.density import Density
from workbench.questions.density import parse_density as density_of

_FORM = RecordForm("The quantizer", {"kind": "quantizer"}, knots=RATIOS, outputs=RATIOS, ends=LAWS)


@dataclass(frozen=True)
class PiecewiseAffine(RealErrors, ShownMechanism):
    """A mechanism on real inputs whose law is affine between knots.

    Build it with `from_laws` or `from_ends`, or by `two_bin`, `rqm`, `erm`.

    Attributes:
        knots: The K + 1 ends of the pieces, increasing rationals.
        bins: The m published values.
        ends: 2K laws. ends[2k] is the law just after knots[k], and ends[2k + 1] the law just before
            knots[k + 1].
        name: The name of the mechanism in tables.

    Raises:
        InvalidRequest: If the knots are not increasing, if there are not two laws for each piece,
            if a law has not one mass for each output, or if an attribute is no tuple.
    """

    knots: Rationals
    bins: Rationals
    ends: tuple[Distribution, ...]
    name: str = field(default="quantizer", compare=False)

    repaired_by = "rows"

    def __post_init__(self) -> None:
        if not isinstance(self.knots, tuple) or not all(
            isinstance(knot, (int, Fraction)) for knot in self.knots
        ):
            must("knots", "a tuple of rationals", type(self.knots).__name__)
        if len(self.knots) < 2 or any(a >= b for a, b in pairwise(self.knots)):
            must("knots", "at least two increasing numbers", [round_up(x) for x in self.knots[:8]])
        if not isinstance(self.bins, tuple) or not all(
            isinstance(value, (int, Fraction)) for value in self.bins
        ):
            must("bins", "a tuple of rationals", type(self.bins).__name__)
        if not isinstance(self.ends, tuple) or not all(
            isinstance(law, Distribution) for law in self.ends
        ):
            must(
                "ends",
                "a tuple of Distributions (PiecewiseAffine.from_laws reads others)",
                type(self.ends).__name__,
            )
        if len(self.ends) != 2 * len(self.knots) - 2:
            must("ends", f"{2 * len(self.knots) - 2} laws, two for each piece", len(self.ends))
        if any(len(law) != len(self.bins) for law in self.ends):
            must("ends", f"laws on {len(self.bins)} outputs", [len(law) for law in self.ends])

    @classmethod
    def from_laws(cls, knots: Sequence[Any], outputs: Sequence[Any], ends: Any) -> PiecewiseAffine:
        """Build the mechanism from its end laws, which are normalised by their exact sums.

        Args:
            knots: Increasing numbers, shape (K+1,).
            outputs: The published values, shape (m,).
            ends: The end laws, shape (2K, m) or (K, 2, m); floats are read as the rationals that
                they are.

        Returns:
            The mechanism.

        Raises:
            InvalidRequest: If the knots are not increasing, if there are not two laws for each
                piece, if a law has not one mass for each output, or if a mass is negative.
        """
        laws = _flatten_laws(ends) if isinstance(ends, np.ndarray) else ends
        return cls(
            read_rationals(knots, "knots"),
            read_rationals(outputs, "outputs"),
            Channel.from_rows(laws).rows,
        )

    @classmethod
    def from_ends(
        cls, name: str, bins: Any, knots: Sequence[Any], ends: ArrayLike | Sequence[Any]
    ) -> PiecewiseAffine:
        """Build the quantizer of a request or a solver.

        Args:
            name: The name of the mechanism in tables.
            bins: The published values, read as the decimals that they show.
            knots: From -c to c, read as the decimals that they show.
            ends: The end laws, shape (2K, m) or (K, 2, m), or the laws at the knots of a continuous
                mechanism, shape (K + 1, m). A solver's negative rounding errors count as 0.

        Returns:
            The mechanism.

        Raises:
            InvalidRequest: If the knots do not increase from -c to c, if the bins are not
                increasing, if there are not two laws for each piece, or if a mass is below -1e-6.
        """
        exact_knots = tuple(read_number(k, "a knot") for k in read_list(knots, "knots"))
        if not exact_knots or exact_knots[0] != -exact_knots[-1]:
            first_knots = [round_up(k) for k in exact_knots[:8]]
            must("knots", "strictly increasing from -c to c", first_knots)
        rows: Any = ends
        if isinstance(ends, np.ndarray):
            rows_2d = _flatten_laws(ends)
            if len(rows_2d) == len(exact_knots):
                # The law of a continuous mechanism ends one piece and begins the next one.
                rows_2d = np.repeat(rows_2d, 2, axis=0)[1:-1]
            rows = rows_2d[:, None]
        laws = tuple(
            Distribution.read_rounded(end, "an end law") for piece in rows for end in piece
        )
        outputs = read_bins(bins, exact_knots[-1], cover=False)
        return cls(exact_knots, outputs, laws, name)

    # Members of `Mechanism`.

    def law(self, x: Any) -> Distribution:
        """Return the exact law at x.

        At an inner knot it is the right limit, at the last knot the last end law.

        Args:
            x: A number in the range; a float is the rational that it is, or the knot to which it is
                nearest; a string is the decimal that it spells.

        Raises:
            InvalidRequest: If x is no number, or outside the knots.
        """
        number = read_real_input(x, self.knots[0], self.knots[-1], self.knots)
        k = min(bisect_right(self.knots, number), len(self.knots) - 1) - 1
        a = self.knots[k]
        b = self.knots[k + 1]
        share = (number - a) / (b - a)
        left = self.ends[2 * k]
        right = self.ends[2 * k + 1]
        return Distribution([(1 - share) * left[i] + share * right[i] for i in range(self.m)])

    @cached_property
    def _distinct_laws(self) -> tuple[int, ...]:
        """Return the positions in `ends` of the first of equal laws, at least two positions.

        A continuous law repeats at every knot. If all laws are equal, the result is (0, 1).
        """
        first_positions: dict[Distribution, int] = {}
        for k, end in enumerate(self.ends):
            first_positions.setdefault(end, k)
        if len(first_positions) > 1:
            return tuple(sorted(first_positions.values()))
        return (0, 1)

    def budgets(self, epsilon: Budget) -> Budgets:
        """Return one budget for every ordered pair of different end laws.

        Args:
            epsilon: One number >= 0, or a mapping whose entries are all this number.

        Raises:
            InvalidRequest: If a mapping has different budgets, or a budget is negative or no
                number.
        """
        if isinstance(epsilon, Mapping):
            budgets = set(epsilon.values())
            if len(budgets) != 1:
                raise InvalidRequest("epsilon must be one number for a mechanism on real inputs.")
            epsilon = next(iter(budgets))
        budget = read_positive(epsilon, "epsilon", or_zero=True)
        return dict.fromkeys(permutations(self._distinct_laws, 2), budget)

    def comparisons(self) -> Iterator[Comparison]:
        """Yield every ordered pair of different end laws."""
        return compare_pairs(self.ends, permutations(self._distinct_laws, 2), self._describe_end)

    def extremes(self) -> Iterator[Comparison]:
        """Yield for each output the end law with the most and the one with the least mass.

        These at most m comparisons decide pure ε.
        """
        return compare_pairs(self.ends, find_extreme_pairs(self.ends), self._describe_end)

    @property
    def segments(self) -> tuple[Segment, ...]:
        """Return the pieces, from left to right."""
        return tuple(
            Segment(a, b, left, right)
            for (a, b), (left, right) in zip(pairwise(self.knots), self.pieces, strict=True)
        )

    def _describe_end(self, end: int) -> str:
        """Describe an end law by its input and its side, such as x=0.5-."""
        return f"x={round_down(self.end_inputs[end]):g}{'-' if end % 2 else '+'}"

    @property
    def audit_size(self) -> AuditSize:
        """Return the size of an audit of every ordered pair of different end laws."""
        # The rule of `workbench.privacy.audit_work` also counts each law with itself.
        comparisons = len({*self.ends}) ** 2
        return AuditSize.from_laws(
            self.ends,
            comparisons,
            numbers=(*self.knots, *self.bins),
            extremes=min(comparisons, self.m),  # One pair for each output decides.
        )

    def sample(self, x: ArrayLike, *, clip: bool = False, insecure_seed: int | None = None) -> Any:
        """Publish every number of x independently, by a draw from its exact law.

        Args:
            x: Numbers in the range; integers and fractions are exact at any size.
            clip: Move numbers outside the range to its ends.
            insecure_seed: A seed >= 0 that makes the draws repeatable, for experiments only.
                Default: the randomness of the operating system.

        Returns:
            A float for a scalar, else an array of x's shape.

        Raises:
            InvalidRequest: If x has an entry that is no finite number, or one outside the knots
                without `clip`, or if insecure_seed is negative.
        """
        values = read_inputs(x, self._float_knots[0], self._float_knots[-1], clip=clip)
        sampler = AffineSampler(self.knots, self.ends, Source(insecure_seed))
        _, entries = read_floats_and_entries(x, "x")
        if entries.dtype.kind == "f":
            published_values = sampler.draw(values, self.outputs)
        else:
            published_values = self.outputs[
                sampler.positions(values.reshape(-1), entries.reshape(-1))
            ].reshape(values.shape)
        if published_values.ndim == 0:
            return float(published_values)
        return published_values

    publish = sample
    column_cautions = ()  # Every two inputs are neighbours.

    def with_neighbours_over(self, low: Fraction, high: Fraction) -> PiecewiseAffine:
        """Return itself: every two inputs are neighbours.

        Args:
            low, high: Not used.
        """
        return self

    @property
    def column_inputs(self) -> ColumnInputs:
        """Return the numbers from the first knot to the last."""
        low = float(self.knots[0])
        high = float(self.knots[-1])
        return ColumnInputs(
            "quantizer",
            low,
            high,
            constraint=f"in [{low:g}, {high:g}]",
            is_whole=False,
            is_exact=True,
        )

    def published_error(self) -> None:
        """Return None: the error depends on the input."""

    def describe(self) -> str:
        """Describe the mechanism in one line."""
        low = round_down(self.knots[0])
        high = round_up(self.knots[-1])
        domain = f"real inputs in [{low:g}, {high:g}]"
        return f"A mechanism on {domain} with {self.m} outputs, any two inputs neighbours"

    def with_rows(self, rows: Sequence[Distribution]) -> PiecewiseAffine:
        """Return other end laws on the same knots and bins.

        Args:
            rows: The 2K new end laws.
        """
        return PiecewiseAffine(self.knots, self.bins, tuple(rows), self.name)

    def drawing(self) -> FigureData:
        """Return p(x, i) against x, with its jumps, as plain data."""
        return affine_figure(self.outputs, self._float_knots, self.matrix)

    # Parts.

    @property
    def c(self) -> Fraction:
        """Return half the width of the inputs."""
        return (self.knots[-1] - self.knots[0]) / 2

    @property
    def middle(self) -> Fraction:
        """Return the middle of the inputs."""
        return (self.knots[-1] + self.knots[0]) / 2

    @property
    def rows(self) -> tuple[Distribution, ...]:
        """Return the end laws, which a repair changes."""
        return self.ends

    @property
    def pieces(self) -> tuple[tuple[Distribution, Distribution], ...]:
        """Return (law at its left end, law at its right end) of each piece, as one-sided limits."""
        return tuple(zip(self.ends[0::2], self.ends[1::2], strict=True))

    @property
    def end_inputs(self) -> Rationals:
        """Return x of every end law. Length 2K."""
        return tuple(x for pair in pairwise(self.knots) for x in pair)

    @cached_property
    def matrix(self) -> Vector:
        """Return the end laws as floats. Shape (2K, m)."""
        return np.array([end.floats for end in self.ends])

    @cached_property
    def _float_knots(self) -> Vector:
        """Return the knots as the nearest floats, shape (K + 1,)."""
        return np.array([nearest_float(k) for k in self.knots])

    def probabilities(self, x: ArrayLike, *, clip: bool = False) -> Vector:
        """Return p(x, i) as floats. Shape x.shape + (m,).

        Args:
            x: The inputs, any shape.
            clip: Move inputs outside the range to its ends.

        Raises:
            InvalidRequest: If an input is outside the range and `clip` is not set.
        """
        values = read_inputs(x, self._float_knots[0], self._float_knots[-1], clip=clip)
        piece, share = locate_inputs(self._float_knots, values)
        t = share[..., None]
        return (1 - t) * self.matrix[2 * piece] + t * self.matrix[2 * piece + 1]

    # Expected loss.

    def expected_loss(self, loss: Any = "absolute", density: Density | None = None) -> float:
        """Compute the expected error under a density by exact integration.

        Args:
            loss: "absolute", "squared", or a number λ in [0, 1] for λ|e| + (1 - λ) e².
            density: The density of x - middle, default: uniform.
        """
        law = density_of("uniform" if density is None else density, float(self.c))
        knots, outputs = (
            np.array([nearest_float(v - self.middle) for v in side])
            for side in (self.knots, self.bins)
        )
        weights = ErrorIntegrals(knots, outputs, law).weights(loss)
        return float(np.sum(weights * self.matrix.reshape(weights.shape)))

    @cached_property
    def bias(self) -> Fraction:
        """Return the exact largest |E M(x) - x| over all x. It is affine on every piece."""
        return max(
            abs(end.mean(self.bins) - x) for end, x in zip(self.ends, self.end_inputs, strict=True)
        )

    @property
    def unbiased_means(self) -> tuple[Rationals, Rationals]:
        """Return (published values, the input of every end law).

        An unbiased mechanism has these inputs as means.
        """
        return self.bins, self.end_inputs

    def measure_bias(self, outputs: Sequence[Fraction], inputs: Sequence[Fraction]) -> Bias:
        """Return the largest bias over all inputs.

        Args:
            outputs, inputs: Not used.
        """
        return Bias(self.bins, self.end_inputs, self.bias)

    def knot_channel(self) -> Channel:
        """Return the channel whose inputs are the knots, every two of which are neighbours.

        It is used for inputs that are first rounded at random to a knot. Under a budget ε|x - x'|²
        only such a channel can be private: on an interval, a path from x to x' in n steps would
        have the budget ε|x - x'|²/n, which tends to 0.
        """
        # The first knot begins the first piece. Every other knot ends a piece.
        return Channel((self.ends[0], *self.ends[1::2]))

    # Files.

    def to_dict(self) -> Record:
        """Return a JSON-ready record, which `from_dict` reads.

        Rationals are strings, weights hexadecimal integers.
        """
        return _FORM.write(self, outputs=self.bins)

    @classmethod
    def from_dict(cls, data: Any) -> PiecewiseAffine:
        """Return the mechanism written by `to_dict`, which claims no privacy: audit it.

        Args:
            data: The record, as parsed from JSON.

        Raises:
            CorruptFile: If the record has another form.
            InvalidRequest: If the knots are not increasing, or there are not two laws for each
                piece.
        """
        return cls(*_FORM.read(data).values())

    def __repr__(self) -> str:
        bins = ", ".join(f"{b:g}" for b in self.outputs) if self.m <= 8 else f"{self.m} outputs"
        return f"PiecewiseAffine({self.name}: {bins}; {len(self.knots) - 1} pieces)"


Quantizer = PiecewiseAffine  # The name in requests for a quantizer.


def _flatten_laws(ends: Vector) -> Vector:
    """Flatten laws of shape (K, 2, m) or (rows, m) to rows.

    Raises:
        InvalidRequest: If the array is empty or 0-dimensional.
    """
    if not ends.size or not ends.ndim:
        must("ends", "laws on at least one output", f"an array of shape {ends.shape}")
    return ends.reshape(-1, ends.shape[-1])
