"""Additive noise on a finite abelian group: an answer q is published as q + η modulo the group.

Example: with answers modulo 10, the answer 8 and η = 3 give the output 1.

Notation: the group is Z_{s_1} x ... x Z_{s_k} and has N elements; M is the set of differences of
neighbouring answers; f is the law of the noise η. The masses of f are exact (`Distribution`), so
the mechanism that is audited is also the one that is saved and sampled.

The built-in losses are sums over the k parts of η. A part η of a factor of size s has the loss

squared            η (s - η)
eta-squared        η²
circular-squared   min(η, s - η)²

A further built-in loss is an entry of `PART_LOSSES` here and of the table of the same name in
tools/check_certificate.py, which verifies certificates independently.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from workbench.data.labels import align_array
from workbench.data.plain import (
    read_finite_table,
    read_integer,
    read_integer_column,
    read_plain_array,
)
from workbench.errors import InvalidRequest, must
from workbench.exact.arrays import Integers, Positions, Vector
from workbench.exact.distribution import Distribution
from workbench.exact.numbers import Rationals
from workbench.exact.objects import Record
from workbench.exact.random_source import Source
from workbench.exact.sampler import Sampler
from workbench.io.plain_figures import (
    MARGINALS_TITLE,
    NOISE_TITLE,
    FigureData,
    make_bar_figure,
    make_heat_figure,
    make_line_figure,
    make_series,
)
from workbench.io.records import FLAG, INTEGERS, RecordForm, make_list_entry, write_law_record
from workbench.mechanisms.mechanism import (
    AuditSize,
    Budget,
    Budgets,
    ColumnInputs,
    Comparison,
    Distances,
)
from workbench.mechanisms.shown_mechanism import ShownMechanism
from workbench.questions.modulo_noise import ModuloNoise

PART_LOSSES: dict[str, Callable[[int, int], int]] = {
    "squared": lambda part, size: part * (size - part),
    "eta-squared": lambda part, size: part**2,
    "circular-squared": lambda part, size: min(part, size - part) ** 2,
}

_MARGINAL_DECIMALS = 12  # Marginals that agree to this many decimals are drawn as one.

_FORM = RecordForm(
    "The noise", {"kind": "noise"}, sizes=INTEGERS, shifts=make_list_entry(INTEGERS), directed=FLAG
)


def named_losses(name: str, sizes: Sequence[int]) -> Rationals | None:
    """Return the built-in loss of every element of a group.

    Args:
        name: The name of the loss, such as squared (see the module header).
        sizes: The sizes s_1, ..., s_k of the group's factors.

    Returns:
        The exact losses of η in row-major order, shape (N,). None if the name is not in
        PART_LOSSES.
    """
    if name not in PART_LOSSES:
        return None
    parts = [[PART_LOSSES[name](part, size) for part in range(size)] for size in sizes]
    return tuple(Fraction(sum(point)) for point in product(*parts))


@dataclass(frozen=True, init=False, repr=False)
class AdditiveNoise(ShownMechanism):
    """The mechanism q -> q + η on the group of a question, Pr[η] = weights[η] / Σ weights.

    Frozen and hashable; two mechanisms with proportional weights are equal.

    Args:
        question: The query, with its group and its neighbouring answers.
        weights: N non-negative ints or Fractions in row-major order, not all zero; or a
            Distribution.

    Attributes:
        question: The query, with its group and its neighbouring answers.
        masses: The exact law f of η, in row-major order.

    Raises:
        InvalidRequest: If question is no ModuloNoise, if there are not N weights, or if a weight is
            negative or all are 0.
    """

    question: ModuloNoise
    masses: Distribution

    segments = ()
    repaired_by = "masses"

    def __init__(self, question: ModuloNoise, weights: Iterable[Any] | Distribution) -> None:
        masses = weights if isinstance(weights, Distribution) else Distribution(weights)
        if len(masses) != _question(question).order:
            must("weights", f"a list of {question.order} masses", f"{len(masses)}")
        # The class is frozen, so its attributes are set in `__dict__`.
        self.__dict__.update(question=question, masses=masses)

    @classmethod
    def from_pmf(cls, question: ModuloNoise, pmf: ArrayLike) -> AdditiveNoise:
        """Build the mechanism that a float PMF describes.

        Every float is read as the exact rational that it is, and divided by the exact sum of all
        floats. For the PMF of a solver this sum is 1 up to rounding.

        Args:
            question: The query, with its group and its neighbouring answers.
            pmf: Masses >= 0 of η, shape (N,) in row-major order, or shape (s_1, ..., s_k).

        Returns:
            The mechanism.

        Raises:
            InvalidRequest: If question is no ModuloNoise, if a mass is negative, infinite or NaN,
                if the shape is another one, or if all masses are 0.
        """
        order = _question(question).order
        sizes = question.sizes
        array = read_plain_array(pmf, "pmf", f"an array of {order} masses", column=True)
        if array.ndim == 1:
            array = align_array(
                pmf,
                array,
                answers=lambda: question.elements,
                name="pmf",
                points_name="noise values",
            )
        if array.shape not in {(order,), sizes}:
            must("pmf", f"an array of {order} masses", f"shape {array.shape}")
        return cls(question, Distribution.from_floats(array.reshape(-1)))

    # Members of `Mechanism`.

    def law(self, x: Any = None) -> Distribution:
        """Return the exact law of x + η on row-major positions.

        Args:
            x: An answer: an integer, or a tuple for a vector query. None for the law of η itself.

        Raises:
            InvalidRequest: If x is no answer of the question.
        """
        if x is None:
            return self.masses
        origin = self.question.read_answer(x)
        if any(origin):
            return self.masses.reorder(
                self.question.shifted_positions(self.question.negate_shift(origin))
            )
        return self.masses

    @property
    def inputs(self) -> Any:
        """Return the true answers: 0..n of a scalar query, else N tuples."""
        if self.question.is_scalar:
            return self.outputs
        return [*map(tuple, self.outputs.tolist())]

    @property
    def outputs(self) -> Integers:
        """Return the answers by row-major position.

        Shape (N,) for a scalar query, else (N, factors).
        """
        positions = np.arange(self.question.order)
        if self.question.is_scalar:
            return positions
        return np.stack(np.unravel_index(positions, self.question.sizes), axis=-1)

    @property
    def is_one_sided(self) -> bool:
        """Return whether M contains some difference without its negative."""
        differences = self.question.differences
        return not {*map(self.question.negate_shift, differences)} <= {*differences}

    def budgets(self, epsilon: Budget) -> Budgets:
        """Return the budget of every difference; 0 is allowed.

        Args:
            epsilon: One number >= 0 for all differences, or a mapping shift -> number.

        Returns:
            The exact budget of every difference of M.

        Raises:
            InvalidRequest: If a budget is negative or no number, if a mapping leaves out a
                difference or names another one, or if it has two budgets for μ and -μ although the
                question is not directed.
        """
        return self.question.budgets(epsilon, or_zero=True)

    def comparisons(self) -> Iterator[Comparison]:
        """Yield the comparison of f with f moved by μ, for every difference μ in M.

        These are (7) and (8) of Kadam et al. 2024.
        """
        question = self.question
        for shift in question.differences:
            index = question.shifted_positions(shift)

            def describe(k: int, index: Positions = index) -> tuple[str, str]:
                """Name the two probabilities of noise value k for a report."""
                return (
                    f"f({question.format_shift(question.element_at(k))})",
                    f"f({question.format_shift(question.element_at(int(index[k])))})",
                )

            yield Comparison(shift, self.masses, self.masses.reorder(index), describe)

    @property
    def audit_size(self) -> AuditSize:
        """Return the size of an audit: one law, against itself moved by every difference."""
        return AuditSize.from_laws((self.masses,), len(self.question.differences))

    def draw(self, x: Any, count: int, source: Source) -> Integers:
        """Draw independent values of x + η in the group.

        Args:
            x: An answer: an integer, or a tuple for a vector query. None to draw η itself.
            count: The number of draws, >= 0.
            source: The source of randomness.

        Returns:
            The drawn elements, shape (count,); shape (count, k) on a group of k > 1 factors.

        Raises:
            InvalidRequest: If x is no answer of the question, or count is negative.
        """
        sizes = self.question.sizes
        answer = (0,) * len(sizes) if x is None else self.question.read_answer(x)
        positions = Sampler(self.masses, source).draw(count)
        noise = np.stack(np.unravel_index(positions, sizes), axis=-1)
        sums = (noise + np.array(answer)) % np.array(sizes)
        if self.question.is_scalar:
            sums = sums[:, 0]
        return np.asarray(sums, dtype=np.int64)

    def publish(self, answers: Any, *, insecure_seed: int | None = None) -> Integers:
        """Publish each of many true answers of a scalar query independently.

        Args:
            answers: True answers, integers in 0..N-1, shape (n,).
            insecure_seed: A seed >= 0 that makes the draws repeatable, for experiments only.
                Default: the randomness of the operating system.

        Returns:
            The published answers in 0..N-1, shape (n,).

        Raises:
            InvalidRequest: If the question is a vector query, if an answer is no integer in 0..N-1,
                or if insecure_seed is negative.
        """
        if not self.question.is_scalar:
            must("mechanism", "noise on scalar answers", self.describe())
        last = self.question.order - 1
        constraint = f"a column of integers in 0..{last}"
        column = read_integer_column(answers, "answers", low=0, high=last, constraint=constraint)
        return (
            column + self.draw(x=None, count=column.size, source=Source(insecure_seed))
        ) % self.question.order

    @property
    def column_inputs(self) -> ColumnInputs | None:
        """Return the answers of a scalar query; None for a vector query."""
        n = self.question.order - 1
        if self.question.is_scalar:
            return ColumnInputs(
                "noise", low=0.0, high=float(n), constraint=f"an integer in 0..{n}", is_whole=True
            )
        return None

    def with_neighbours_over(self, low: Fraction, high: Fraction) -> AdditiveNoise:
        """Return the same noise where every two answers of an interval are neighbours.

        Args:
            low: The lower end of the interval.
            high: The upper end of the interval.

        Returns:
            The mechanism with the larger set M; this mechanism if M is large enough already.
        """
        max_shift = math.floor(high) - math.ceil(low)
        order = self.question.order
        differences = set()
        for shift in range(1, max_shift + 1):
            differences |= {(shift % order,), (-shift % order,)}
        if differences <= {*self.question.differences}:
            return self
        return AdditiveNoise(ModuloNoise(n=order - 1, max_shift=max_shift), self.masses)

    @property
    def column_cautions(self) -> tuple[str, ...]:
        """Return a caution: answers with other differences are no neighbours."""
        if len(self.question.differences) == self.question.order - 1:
            return ()
        return (
            "The budget holds between numbers that differ by one of the mechanism's differences, "
            "modulo n + 1; numbers further apart are protected less, or not at all.",
        )

    def published_error(self) -> dict[str, float]:
        """Return the errors of a published answer by name.

        They are the probability of a wrong answer, the mean distance around the circle of N
        answers, and the errors of the answer as a number. If η < N - x, the published answer is η
        above x. Otherwise it wraps around, and is N - η below x.
        """
        n = self.question.order
        steps = np.arange(n)
        f = self.pmf
        # Entry x of both arrays belongs to the answer x. The mean errors above x come from
        # η < N - x, those below x from η >= N - x. So the sums over η are read in reverse order.
        # For x = 0 no η is that large, so the error below is 0.
        error_above = np.cumsum(f * steps)[::-1]
        error_below = np.append(0.0, np.cumsum((f * (n - steps))[::-1])[:-1])
        absolute_error = error_above + error_below
        shift = error_above - error_below
        return {
            "probability of a wrong answer": self.error_rate,
            "mean distance modulo n + 1": self.expected_loss(np.minimum(steps, n - steps)),
            "mean absolute error of answers spread evenly": float(absolute_error.mean()),
            "largest mean absolute error of any answer": float(absolute_error.max()),
            "largest shift of the mean of any answer": float(np.abs(shift).max()),
        }

    def describe(self) -> str:
        """Describe the question in one line."""
        return str(self.question)

    def drawing(self) -> FigureData:
        """Return the PMF as bars, as a heat map for two factors, or the marginals of more."""
        sizes = self.question.sizes
        if len(sizes) > 2:
            series = self._list_marginal_series()
            x_label = "noise of a coordinate"
            if len(series) == 1:
                # A figure with one series has no legend.
                x_label = "noise of each coordinate, equal for all coordinates"
            return make_line_figure(MARGINALS_TITLE, x_label, "probability", series)
        if len(sizes) == 2:
            return make_heat_figure(
                NOISE_TITLE,
                "noise η₁",
                rows=range(sizes[0]),
                column_label="noise η₂",
                columns=range(sizes[1]),
                cells=self.pmf.reshape(sizes),
            )
        return make_bar_figure(
            NOISE_TITLE,
            "noise η, added to the true answer",
            labels=range(self.pmf.size),
            values=self.pmf,
            min_visible_share=-1.0,  # Masses of 0 are drawn too.
        )

    def _list_marginal_series(self) -> list[FigureData]:
        """Return a series for each marginal. Equal marginals hide each other and are one series."""
        axes_by_marginal: dict[tuple[float, ...], list[int]] = {}
        for axis in range(len(self.question.sizes)):
            marginal = tuple(self.marginal(axis).round(_MARGINAL_DECIMALS).tolist())
            axes_by_marginal.setdefault(marginal, []).append(axis)
        series = []
        for colour, axes in enumerate(axes_by_marginal.values()):
            noun = "coordinate" if len(axes) == 1 else "coordinates"
            name = f"{noun} {', '.join(str(axis + 1) for axis in axes)}"
            masses = self.marginal(axes[0])
            series.append(make_series(name, "filled", colour, range(masses.size), masses))
        return series

    # Numbers.

    @property
    def pmf(self) -> Vector:
        """Return f as floats, each the nearest to its exact value.

        Shape (N,), row-major, read-only.
        """
        return self.masses.floats

    def marginal(self, coordinate: int) -> Vector:
        """Return the PMF of one coordinate of the noise, whatever the other coordinates are.

        Args:
            coordinate: Number of the coordinate, from 0.

        Returns:
            Probabilities of 0, 1, ..., as floats. Shape (sizes[coordinate],).

        >>> AdditiveNoise(ModuloNoise(sizes="2x2", max_shift="1 L1"), [3, 1, 1, 1]).marginal(0)
        array([0.66666667, 0.33333333])
        """
        sizes = self.question.sizes
        index = read_integer(coordinate, "coordinate", 0, len(sizes) - 1)
        other_axes = tuple(axis for axis in range(len(sizes)) if axis != index)
        return np.asarray(self.pmf.reshape(sizes).sum(axis=other_axes))

    @property
    def exact_pmf(self) -> list[Fraction]:
        """Return f as N exact rationals, row-major."""
        return [*self.masses]

    @property
    def error_rate(self) -> float:
        """Return ER = Pr[η != 0] = 1 - f(0), the float nearest to the exact value."""
        return float(1 - self.masses[0])

    def exact_loss(self, name: str, losses: Rationals | None) -> Fraction:
        """Compute the expected loss Σ f(η) loss(η) exactly.

        Args:
            name: The name of the loss: error-rate, a built-in loss, or a user-defined name.
            losses: The exact losses of η in row-major order, shape (N,). None for error-rate. Under
                the name of a built-in loss they must be its losses.

        Returns:
            The exact expected loss.

        Raises:
            InvalidRequest: If losses are given for error-rate or missing for another name, if there
                are not N losses, if they differ from the losses of a built-in name, or if the name
                is worst-squared.
        """
        if (losses is None) != (name == "error-rate"):
            raise InvalidRequest(
                "losses must be left out for error-rate, and given for every other objective."
            )
        if name == "worst-squared":
            raise InvalidRequest(
                "objective must be left out for worst-squared, "
                "which has no one loss for each noise."
            )
        if losses is None:
            return 1 - self.masses[0]
        if len(losses) != len(self.masses):
            must("losses", f"{len(self.masses)} numbers", len(losses))
        if named_losses(name, self.question.sizes) not in (None, losses):
            raise InvalidRequest(f"losses must be those of {name}, or have a name of their own.")
        return self.masses.mean(losses)

    @property
    def distances(self) -> Distances:
        """Return the distances of the answers as integers, not modulo anything."""
        ends = tuple((0, size - 1) for size in self.question.sizes)
        return Distances(
            "whole" if self.question.is_scalar else "vector",
            ends,
            max_distance=sum(top for _, top in ends),
        )

    def with_max_distance(self, distance: int) -> AdditiveNoise:
        """Return the same noise under the neighbour relation "at most a distance apart", both ways.

        Args:
            distance: The largest distance of neighbours, a positive integer. The distance of x and
                x' is |x - x'|; for a vector query it is Σ |x_i - x'_i|.
        """
        sizes = self.question.sizes
        if self.question.is_scalar:
            return AdditiveNoise(ModuloNoise(sizes=sizes, max_shift=distance), self.masses)
        moves = product(*(range(1 - size, size) for size in sizes))
        shifts = [move for move in moves if 0 < sum(map(abs, move)) <= distance]
        return AdditiveNoise(ModuloNoise(sizes=sizes, shifts=shifts), self.masses)

    def expected_loss(self, loss: ArrayLike) -> float:
        """Compute the expected loss Σ f(η) loss(η) in floats, correct to a few ulps.

        Args:
            loss: Finite losses of η, shape (N,) in row-major order, or shape (s_1, ..., s_k).

        Returns:
            The expected loss.

        Raises:
            InvalidRequest: If loss has another shape, or an entry that is no finite number.
        """
        table = read_finite_table(loss, "loss", (self.question.order,), self.question.sizes)
        return math.fsum(self.pmf * table.reshape(-1))

    def to_dict(self) -> Record:
        """Return a JSON-ready record, which `from_dict` reads.

        It has the sizes, the shifts, directed, and the weights as hexadecimal integers.
        """
        return {"kind": "noise", **self.question.to_dict(), **write_law_record(self.masses)}

    @classmethod
    def from_dict(cls, data: Any) -> AdditiveNoise:
        """Return the mechanism written by `to_dict`.

        A record claims no privacy, so the mechanism must be audited.

        Args:
            data: The record, as parsed from JSON.

        Raises:
            CorruptFile: If the record has another form.
            InvalidRequest: If the sizes, shifts and weights make no mechanism, for example if the
                number of weights is not N.
        """
        question, law = _FORM.read_beside_law(data)
        return cls(ModuloNoise(**question), law)

    def __repr__(self) -> str:
        return f"AdditiveNoise({self.question!r}, error_rate={self.error_rate:.6g})"


def _question(question: Any) -> ModuloNoise:
    """Return the argument if it is a ModuloNoise, else raise InvalidRequest."""
    if isinstance(question, ModuloNoise):
        return question
    return must("question", "a ModuloNoise", question)
