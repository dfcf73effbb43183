"""Additive noise on the reals: a real answer x is published as x + η.

The density of η is constant on each cell [(j - ½)β, (j + ½)β), which has the mass q_j. The width of
a cell is β = Δ/k, where Δ is the sensitivity and k the number of cells in one sensitivity. The
value η = 0 may have a point mass a besides (the atom).

k integer shifts prove privacy for every real shift. For s = (i + t)β, 0 <= t < 1, every cell is cut
into a share 1 - t that faces cell j + i and a share t that faces j + i + 1. So for any f-divergence
D, and for the mass above a ratio,

    D(s) = D_atom + (1 - t) D_i + t D_{i+1} <= the maximum over integer shifts,

where D_i is the part of the cells at the shift i, and D_atom that of the atom. The atom counts in
full at every s != 0, since the other law has no mass at its place.

A draw is exact. Integer weights select the cell, and further random bits, as many as are needed,
select the place within it. The answer (a float is an exact dyadic rational) is added exactly, and
the sum is rounded to the published grid. Rounding the exact sum is post-processing, so no attack on
floating-point noise (Mironov 2012) applies. Δ must bound the differences of the answers as they are
computed.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from workbench.data.intervals import format_range
from workbench.data.plain import read_exact_number, read_floats_and_entries, read_integer
from workbench.errors import InvalidRequest, must
from workbench.exact.arrays import Vector
from workbench.exact.integer_law import IntegerLaw
from workbench.exact.numbers import ONE, ZERO, read_number, read_positive, round_up
from workbench.exact.objects import Record
from workbench.exact.random_source import Source
from workbench.io.files import format_fraction
from workbench.io.plain_figures import (
    MAX_TOTAL_ERROR,
    MIN_VISIBLE_SHARE,
    FigureData,
    describe_drawn_part,
    make_line_figure,
    make_series,
)
from workbench.io.records import INTEGER, RATIO, RATIOS
from workbench.io.shown import Facts
from workbench.mechanisms.cut_noise import CutNoise
from workbench.mechanisms.integer_noise import LineNoise
from workbench.mechanisms.mechanism import ColumnInputs
from workbench.questions.unbounded_noise import RealNoise

MAX_STEPS = 1 << 14  # Noise with more cells in one sensitivity is refused.
_MAX_COLUMN_NUMBER = 1e300  # A larger number of a column could overflow when noise is added.
_MAX_DRAWN_CELLS = 500  # A picture of a density has at most this many cells.
_MAX_TAIL_CELLS = 200_000  # A picture shows at most this many cells of a geometric tail.
ALL_SHIFTS_NOTE = (
    "Between two integer shifts every divergence is at most a mean of theirs, "
    "so the integer shifts prove all real shifts."
)


def best_gamma(epsilon: float, loss: str) -> float:
    """Return γ of the optimal staircase on the reals, unclipped (Geng and Viswanath 2014).

    γ is the share of Δ up to which its density is largest.

    Args:
        epsilon: The budget ε > 0.
        loss: The loss, "squared" or "absolute".

    Returns:
        γ in (0, 1).
    """
    if loss == "absolute":
        return 1.0 / (1.0 + math.exp(epsilon / 2))
    c = math.exp(-epsilon)
    # This is 1 - c, without cancellation.
    fall = -math.expm1(-epsilon)
    # The polynomial c - 2c² + 2c⁴ - c⁵ is c (1-c)³ (1+c).
    return -c / fall + math.pow(c * (1 + c) / 2, 1 / 3) / fall


@dataclass(frozen=True, repr=False)
class AdditiveRealNoise(LineNoise):
    """The mechanism x -> x + η.

    η has a density that is constant on cells, and a point mass at 0.

    Attributes:
        question: The query, with its sensitivity, its grid and the range of clamped outputs.
        steps: The number k of cells in one sensitivity.
        cells: Weights of the cells j. Weights and atom are divided by their sum.
        atom: The weight of the point mass at 0.

    Raises:
        InvalidRequest: If question is no RealNoise, cells is no IntegerLaw, steps is not a positive
            integer in its range, the atom is negative, or there is an atom but no cell 0.
    """

    question: RealNoise
    steps: int
    cells: IntegerLaw
    atom: Fraction = ZERO

    kind = "real-noise"
    proof_notes = (ALL_SHIFTS_NOTE,)
    is_rounded = True  # Outputs are rounded, and PDP is not preserved by rounding.

    def __post_init__(self) -> None:
        if not isinstance(self.question, RealNoise) or not isinstance(self.cells, IntegerLaw):
            must("mechanism", "a RealNoise and an IntegerLaw", type(self.cells).__name__)
        steps = read_integer(self.steps, "steps", 1, MAX_STEPS)
        atom = read_positive(self.atom, "atom", or_zero=True)
        # The class is frozen, so its attributes are set in `__dict__`.
        self.__dict__.update(steps=steps, atom=atom)
        if self.atom and not self.cells.first <= 0 <= self.cells.last:
            must("cells", "around 0, where the atom is", f"{self.cells.first}..{self.cells.last}")

    @property
    def width(self) -> Fraction:
        """Return β, the width of a cell."""
        width: Fraction = self.question.sensitivity / self.steps
        return width

    @property
    def outputs(self) -> Vector:
        """Return the middles of the cells behind the positions of `law`. Shape (m,)."""
        return np.arange(self.cells.first - 1, self.cells.last + 2, dtype=np.float64) * float(
            self.width
        )

    def read_answer(self, x: Any) -> Fraction:
        """Read an answer.

        Args:
            x: A number, as a user gives it.

        Raises:
            InvalidRequest: If x is no finite number.
        """
        return read_number(x, "answer")

    @property
    def reach(self) -> int:
        """Return the number of cells of one sensitivity."""
        return self.steps

    # Publishing.

    def draw(self, x: Any, count: int, source: Source) -> Vector:
        """Draw x + η (η itself without an x) on the grid.

        Args:
            x: An answer of the query. None for the noise η itself.
            count: The number of draws.
            source: The source of randomness.

        Returns:
            Shape (count,).

        Raises:
            InvalidRequest: If x is no number.
        """
        answer = ZERO if x is None else self.read_answer(x)
        return self._publish_all([answer] * int(count), source)

    def publish(self, answers: NDArray[Any], *, insecure_seed: int | None = None) -> Vector:
        """Draw once for each of many true answers. Shape (n,).

        Args:
            answers: Finite numbers, exact at any size; a float is the decimal that it shows,
                because rounded neighbours could lie further apart, shape (n,).
            insecure_seed: A seed >= 0 that makes the draws repeatable, for experiments only.
                Default: the randomness of the operating system.

        Raises:
            InvalidRequest: If an answer is no finite number, if answers is not 1-D, or if
                insecure_seed is negative.
        """
        floats, entries = read_floats_and_entries(answers, "answers", "a column of finite numbers")
        if floats.ndim != 1:
            must("answers", "a column of finite numbers", answers)
        return self._publish_all([*map(read_exact_number, entries)], Source(insecure_seed))

    def _publish_all(self, answers: list[Fraction], source: Source) -> Vector:
        """Draw once for each answer: add exact noise, round to the grid, and clamp. Shape (n,)."""
        count = len(answers)
        grid = self.question.grid
        width = self.width
        is_at_atom = source.draw_bernoulli(
            self.atom.numerator * self.total.denominator,
            self.atom.denominator * self.total.numerator,
            count,
        )
        cells = self.cells.draw(count, source)
        random_words = source.draw_uint64(count)
        values = np.empty(count)
        scale = width / grid
        for k, (answer, is_atom, j, random_word) in enumerate(
            zip(answers, is_at_atom, cells.tolist(), random_words.tolist(), strict=True)
        ):
            # In units of the grid, rounding to the nearest multiple is ⌊x + 1/2⌋.
            start = answer / grid + Fraction(1, 2)
            if is_atom:
                multiple = math.floor(start)
            else:
                cell_start = scale * (j - Fraction(1, 2))
                multiple = _floor(start + cell_start, scale, random_word, source)
            values[k] = float(multiple * grid)
        clamp = self.question.clamp
        if clamp is None:
            return values
        low, high = map(float, clamp)
        return np.clip(values, low, high)

    @property
    def column_inputs(self) -> ColumnInputs:
        """Return all finite numbers, except the largest."""
        constraint = "a number of size at most 1e300"
        return ColumnInputs(
            "noise",
            low=-_MAX_COLUMN_NUMBER,
            high=_MAX_COLUMN_NUMBER,
            constraint=constraint,
            is_whole=False,
            is_bounded=False,
            is_exact=True,
        )

    def with_max_distance(self, distance: float) -> AdditiveRealNoise:
        """Return the same noise under another sensitivity, in whole cells.

        Args:
            distance: The new sensitivity, rounded up to whole cells.
        """
        steps = math.ceil(Fraction(distance) / self.width)
        return replace(
            self, question=replace(self.question, sensitivity=steps * self.width), steps=steps
        )

    def published_error(self) -> dict[str, float] | None:
        """Return the errors of a number plus noise by name.

        For clamped noise the inputs are spread evenly over the range.
        """
        if self.question.clamp is None:
            return super().published_error()
        name = (
            f"mean absolute error of inputs spread evenly over {format_range(self.question.clamp)}"
        )
        return {name: round_up(self.clamped_loss("absolute"))}

    def loss(self, name: str) -> Fraction:
        """Compute the exact mean of |η| ("absolute") or η² ("squared").

        Rounding to the grid is not included.

        Args:
            name: The loss, "absolute" or "squared".

        Raises:
            InvalidRequest: If name is neither absolute nor squared.
        """
        power = _power(name)
        # In units of the width, η is uniform on [j - 1/2, j + 1/2) in the cell j. There the mean of
        # |η| is |j|, or 1/4 in the cell 0, and the mean of η² is j² + 1/12. The last argument has
        # the coefficients of 1, |j|, j² in the tails.
        quarter = Fraction(1, 4)
        if power == 1:
            mean = self.cells.mean(lambda j: abs(j) or quarter, (ZERO, ONE))
        else:
            mean = self.cells.mean(lambda j: j * j, (ZERO, ZERO, ONE)) + Fraction(1, 12)
        return mean * self.width**power * self.cells.total / self.total

    def clamped_loss(self, name: str, weights: Sequence[Fraction] | None = (ONE,)) -> Fraction:
        """Compute the exact expected loss if the sum is clamped into [low, high].

        On a range of many sensitivities, the result is a close upper bound
        (`workbench.mechanisms.cut_noise`).

        The answer is uniform on each of several equal parts of the range, whose width is R. Let c
        be the loss and g(u) = E c(min(|η|, u)). If η is even, the mean loss of an answer at a
        distance u below the upper end is (g(u) + g(R - u))/2. So R times the mean over the range is
        G(R) = ∫_0^R g, and the mean on a part of the range follows from differences of G.

        Args:
            name: The loss, "absolute" or "squared".
            weights: Prior weights of equal parts of the range. None: an upper bound on the expected
                loss of the worst answer is returned.

        Raises:
            InvalidRequest: If name is neither absolute nor squared, or if the noise is not even and
                the answer is not uniform on the whole range.
            NotCertified: If the exact loss needs numbers of too many bits.
        """
        low, high = self.question.clamp
        width: Fraction = high - low
        cut = CutNoise(self, _power(name), width)
        if weights is not None and len(weights) == 1:
            return cut.integral(width) / width
        if not cut.is_even:
            raise InvalidRequest("prior must be left out where the noise is not even.")
        if weights is None:
            return cut.max_loss(width)
        part = width / len(weights)
        # ∫ g over each part.
        areas = [cut.integral((i + 1) * part) - cut.integral(i * part) for i in range(len(weights))]
        total = ZERO
        for weight, area, mirror_area in zip(weights, areas, reversed(areas), strict=True):
            total += weight * (area + mirror_area)
        return total / (2 * part * sum(weights))

    # Repair, files, words.

    @property
    def noise(self) -> IntegerLaw:
        """Return the cells, with the atom spread over the cell at 0."""
        if not self.atom:
            return self.cells
        weights = [Fraction(w) for w in self.cells.weights]
        weights[-self.cells.first] += self.atom  # This is the position of the cell 0.
        return IntegerLaw(self.cells.first, weights, self.cells.period, self.cells.ratio)

    @classmethod
    def from_masses(
        cls, question: RealNoise, steps: int, first: int, weights: Sequence[Any], atom: Any = 0
    ) -> AdditiveRealNoise:
        """Build the mechanism from exact masses, in one unit.

        Args:
            question: The query, with its sensitivity, its grid and the range of clamped outputs.
            steps: The number k of cells in one sensitivity.
            first: The number j of the first cell.
            weights: The masses q_j of the cells first, first + 1, ...; exact, not all 0.
            atom: The point mass a at 0, in the unit of the weights.

        Returns:
            The mechanism.

        Raises:
            InvalidRequest: If a mass is negative, if all are 0, if steps is not a positive integer
                in its range, or if there is an atom but no cell 0.
        """
        cells = IntegerLaw(first, weights)
        # An IntegerLaw scales its weights to integers, so the atom is scaled by the same factor.
        position = next(i for i, w in enumerate(cells.weights) if w)
        factor = cells.weights[position] / Fraction(weights[position])
        return cls(question, steps, cells, Fraction(atom) * factor)

    def with_noise(self, cells: IntegerLaw) -> AdditiveRealNoise:
        """Return the same question answered with other cells and no atom.

        Args:
            cells: The new masses of the cells.
        """
        return AdditiveRealNoise(self.question, self.steps, cells)

    def density(self) -> tuple[Vector, Vector]:
        """Return (edges, values) of the density, with the visible part of its tails.

        The atom is not part of it.

        Shapes (m + 1,), (m,).
        """
        first, masses = self.cells.floats_with_tails(MIN_VISIBLE_SHARE, _MAX_TAIL_CELLS)
        edges: Vector = (np.arange(first, first + masses.size + 1, dtype=np.float64) - 0.5) * float(
            self.width
        )
        return edges, masses * float(self.cells.total / self.total / self.width)

    def describe(self) -> str:
        """Describe the question, the cells and the atom in one line."""
        atom = f", an atom of {float(self.atom / self.total):.4g} at 0" if self.atom else ""
        return f"{self.question}, {self.steps} cells a sensitivity{atom}"

    def facts(self) -> Facts:
        """Return (name, text) pairs: the mechanism, its outputs, and why all shifts are private."""
        outputs = f"the answer plus noise, rounded to multiples of {float(self.question.grid):g}"
        if self.question.clamp is not None:
            outputs += f", clamped into {format_range(self.question.clamp)}"
        return [
            ("mechanism", self.describe()),
            ("publishes", outputs),
            ("shifts", ALL_SHIFTS_NOTE),
        ]

    def drawing(self) -> FigureData:
        """Return the density as a picture of at most `_MAX_DRAWN_CELLS` cells.

        Its note states the atom and what is not drawn.
        """
        edges, values = self.density()
        visible = np.flatnonzero(values > MIN_VISIBLE_SHARE * values.max())
        edges = edges[visible[0] : visible[-1] + 2]
        values = values[visible[0] : visible[-1] + 1]
        share = float(values.sum() * self.width)
        atom = float(self.atom / self.total)
        notes = []
        if share + atom < 1 - MAX_TOTAL_ERROR:
            notes.append(describe_drawn_part(f"{edges[0]:.6g}", f"{edges[-1]:.6g}", share))
        cells_per_step = math.ceil(values.size / _MAX_DRAWN_CELLS)
        if cells_per_step > 1:
            starts = range(0, values.size, cells_per_step)
            values = np.array([values[k : k + cells_per_step].mean() for k in starts])
            edges = np.append(edges[:-1:cells_per_step], edges[-1])
            notes.append(f"each step is the mean of {cells_per_step} cells")
        law = make_series(
            "this design", "area", colour=0, x=edges, y=np.append(values, values[-1]), steps=True
        )
        if self.atom:
            notes.append(f"an atom of {atom:.4g} at 0 is not drawn")
        return make_line_figure(
            "Density of the noise", "noise η", "density", series=[law], note="; ".join(notes)
        )

    def to_dict(self) -> Record:
        """Return a JSON-ready record, which `from_dict` reads."""
        return super().to_dict() | {"steps": self.steps, "atom": format_fraction(self.atom)}

    @classmethod
    def from_dict(cls, data: Any) -> AdditiveRealNoise:
        """Return the mechanism written by `to_dict`, which claims no privacy.

        Args:
            data: The record, as parsed from JSON.

        Raises:
            CorruptFile: If the record has another form.
            InvalidRequest: If the numbers make no mechanism, for example a negative atom or steps
                outside their range.
        """
        # Only the record of clamped noise has an entry "clamp".
        clamp_form = {"clamp": RATIOS} if isinstance(data, dict) and "clamp" in data else {}
        (steps, atom, sensitivity, grid, *clamp), cells = cls.read_record(
            data, steps=INTEGER, atom=RATIO, sensitivity=RATIO, grid=RATIO, **clamp_form
        )
        return cls(RealNoise(sensitivity, grid, *clamp), steps, cells, atom)

    def __repr__(self) -> str:
        parameters = f"{self.steps} steps, {len(self.cells.weights)} cells"
        return f"AdditiveRealNoise({self.question!r}, {parameters})"


def _power(name: str) -> int:
    """Return p of the loss |η|^p: 1 for "absolute", 2 for "squared".

    Raises:
        InvalidRequest: If name is neither absolute nor squared.
    """
    if name not in ("absolute", "squared"):
        must("objective", "absolute or squared for noise on the reals", name)
    if name == "absolute":
        return 1
    return 2


def _floor(start: Fraction, scale: Fraction, first_word: int, source: Source) -> int:
    """Compute ⌊start + scale U⌋ for U uniform in [0, 1), exactly.

    Args:
        start: An exact number.
        scale: An exact number > 0.
        first_word: The first 64 bits of U.
        source: Further bits of U are drawn from it if the first ones do not decide the result.
    """
    bits = 64
    known_bits = first_word
    while True:
        # U is in [known_bits, known_bits + 1) / 2^bits.
        unit = Fraction(1, 1 << bits)
        low = start + scale * known_bits * unit
        high = start + scale * (known_bits + 1) * unit
        floor = math.floor(low)
        if high <= floor + 1:
            return floor
        known_bits = known_bits << 64 | int(source.draw_uint64(1)[0])
        bits += 64
