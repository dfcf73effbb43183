"""Additive noise on the reals: a real answer x is published as x + η, η of piecewise constant density, and one atom.

    η ~ density constant on the cells [(j - ½)β, (j + ½)β) with masses q_j, β = Δ/k;  Pr[η = 0] gains an atom a

Why k integer shifts prove privacy for every real one: for s = (i + t)β, 0 <= t < 1, every cell is cut into a share 1 -
t that faces cell j + i and a share t that faces j + i + 1, so for any f-divergence D, and for the mass above a ratio,

    D(s) = a-part + (1 - t) D_i + t D_{i+1} <= max over integer shifts,

where the atom counts in full at every s != 0, since the other law has no mass at its place.

A draw is exact: the cell by integer weights, the place within it by as many fresh bits as it takes, added to the answer
(a float is an exact dyadic rational) and rounded to the published grid. Rounding the exact sum is post-processing, so
no attack on floating-point noise (Mironov 2012) applies. Δ must bound the differences of the answers as computed.
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

MAX_STEPS = 1 << 14
_DRAWN = 500  # cells of a density in a picture
_MAX_TAIL_CELLS = 200_000  # Cells of a geometric tail that a picture takes means of.
ALL_SHIFTS_NOTE = "Between two integer shifts every divergence is a mean of theirs, so these prove all real shifts."


def best_gamma(epsilon: float, loss: str) -> float:
    """γ of the best staircase on the reals for the loss "squared" or "absolute", unclipped: the share of Δ up to which
    its density is largest (Geng and Viswanath 2014)."""
    if loss == "absolute":
        return 1.0 / (1.0 + math.exp(epsilon / 2))
    c = math.exp(-epsilon)
    fall = -math.expm1(-epsilon)  # 1 - c, without cancellation
    # c - 2c² + 2c⁴ - c⁵ = c (1-c)³ (1+c)
    return -c / fall + math.pow(c * (1 + c) / 2, 1 / 3) / fall


@dataclass(frozen=True, repr=False)
class AdditiveRealNoise(LineNoise):
    """The mechanism x -> x + η. steps: k, the cells of one sensitivity; cells: their masses by j, up to a factor;
    atom: the point mass at 0, in the same units. Raises InvalidRequest."""

    question: RealNoise
    steps: int
    cells: IntegerLaw
    atom: Fraction = ZERO

    kind = "real-noise"
    proof_notes = (ALL_SHIFTS_NOTE,)
    is_rounded = True  # what is published, which PDP does not survive

    def __post_init__(self) -> None:
        if not isinstance(self.question, RealNoise) or not isinstance(self.cells, IntegerLaw):
            must("mechanism", "a RealNoise and an IntegerLaw", type(self.cells).__name__)
        steps = read_integer(self.steps, "steps", 1, MAX_STEPS)
        atom = read_positive(self.atom, "atom", or_zero=True)
        self.__dict__.update(steps=steps, atom=atom)
        if self.atom and not self.cells.first <= 0 <= self.cells.last:
            must("cells", "around 0, where the atom is", f"{self.cells.first}..{self.cells.last}")

    @property
    def width(self) -> Fraction:
        """β, of a cell."""
        width: Fraction = self.question.sensitivity / self.steps
        return width

    @property
    def outputs(self) -> Vector:
        """The middles of the cells behind the positions of `law`."""
        return np.arange(self.cells.first - 1, self.cells.last + 2, dtype=np.float64) * float(
            self.width
        )

    def read_answer(self, x: Any) -> Fraction:
        """A number. Raises InvalidRequest."""
        return read_number(x, "answer")

    @property
    def reach(self) -> int:
        """The cells of one sensitivity."""
        return self.steps

    # What is published.

    def draw(self, x: Any, count: int, source: Source) -> Vector:
        """x + η (η itself without an x) on the grid. Shape (count,)."""
        answer = ZERO if x is None else self.read_answer(x)
        return self._published([answer] * int(count), source)

    def publish(self, answers: NDArray[Any], *, insecure_seed: int | None = None) -> Vector:
        """One draw for each of many true answers. answers: (n,) finite numbers, exact at any size, a float being the
        decimal it shows: rounded, neighbours could lie further apart. Raises InvalidRequest."""
        floats, given = read_floats_and_entries(answers, "answers", "a column of finite numbers")
        if floats.ndim != 1:
            must("answers", "a column of finite numbers", answers)
        return self._published([*map(read_exact_number, given)], Source(insecure_seed))

    def _published(self, answers: list[Fraction], source: Source) -> Vector:
        count = len(answers)
        grid = self.question.grid
        width = self.width
        at_zero = source.draw_bernoulli(
            self.atom.numerator * self.total.denominator,
            self.atom.denominator * self.total.numerator,
            count,
        )
        cells = self.cells.draw(count, source)
        words = source.draw_uint64(count)
        published = np.empty(count)
        scale = width / grid
        for k, (answer, zero, j, word) in enumerate(
            zip(answers, at_zero, cells.tolist(), words.tolist(), strict=True)
        ):
            start = answer / grid + Fraction(1, 2)
            if not zero:
                start += scale * (j - Fraction(1, 2))
            multiple = math.floor(start) if zero else _floor(start, scale, word, source)
            published[k] = float(multiple * grid)
        ends = self.question.clamp
        if ends is None:
            return published
        return np.clip(published, float(ends[0]), float(ends[1]))

    @property
    def column_inputs(self) -> ColumnInputs:
        """All finite numbers, but for the largest."""
        words = "a number of size at most 1e300"
        return ColumnInputs("noise", -1e300, 1e300, words, False, is_bounded=False, is_exact=True)

    def with_max_distance(self, distance: float) -> AdditiveRealNoise:
        """The same noise on answers at most so far apart, in whole cells."""
        steps = math.ceil(Fraction(distance) / self.width)
        return replace(
            self, question=replace(self.question, sensitivity=steps * self.width), steps=steps
        )

    def published_error(self) -> dict[str, float] | None:
        """Of clamped noise that of inputs spread evenly over the range."""
        if self.question.clamp is None:
            return super().published_error()
        words = (
            f"mean absolute error of inputs spread evenly over {format_range(self.question.clamp)}"
        )
        return {words: round_up(self.clamped_loss("absolute"))}

    def loss(self, name: str) -> Fraction:
        """The exact mean of |η| ("absolute") or η² ("squared"), before rounding to the grid."""
        power = _power(name)
        quarter = Fraction(1, 4)
        if power == 1:
            mean = self.cells.mean(lambda j: abs(j) or quarter, (ZERO, ONE))
        else:
            mean = self.cells.mean(lambda j: j * j, (ZERO, ZERO, ONE)) + Fraction(1, 12)
        return mean * self.width**power * self.cells.total / self.total

    def clamped_loss(self, name: str, weights: Sequence[Fraction] | None = (ONE,)) -> Fraction:
        """E c of published minus true answer where the sum is clamped into [low, high], the answer uniform on each of
        so many equal parts of the range, with these weights; exact. None: the worst answer's, or a little more.

        An even η costs an answer u below the upper end (g(u) + g(R - u))/2 in the mean, g(u) = E c(min(|η|, u)), so
        that R times the mean over the range is G(R) = ∫_0^R g, and on a part of it differences of G tell the mean.
        Raises InvalidRequest.
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
        rises = [cut.integral((i + 1) * part) - cut.integral(i * part) for i in range(len(weights))]
        sums = (
            w * (near + far) for w, near, far in zip(weights, rises, reversed(rises), strict=True)
        )
        return sum(sums, ZERO) / (2 * part * sum(weights))

    # Repair, files, words.

    @property
    def noise(self) -> IntegerLaw:
        """The cells, the atom spread over the one at 0."""
        if not self.atom:
            return self.cells
        weights = [Fraction(w) for w in self.cells.weights]
        weights[-self.cells.first] += self.atom
        return IntegerLaw(self.cells.first, weights, self.cells.period, self.cells.ratio)

    @classmethod
    def from_masses(
        cls, question: RealNoise, steps: int, first: int, weights: Sequence[Any], atom: Any = 0
    ) -> AdditiveRealNoise:
        """From exact masses of the cells first, first + 1, ... and of the atom, in one unit. Raises InvalidRequest."""
        cells = IntegerLaw(first, weights)
        at = next(i for i, w in enumerate(cells.weights) if w)
        return cls(
            question, steps, cells, Fraction(atom) * cells.weights[at] / Fraction(weights[at])
        )

    def with_noise(self, cells: IntegerLaw) -> AdditiveRealNoise:
        """The same question answered with other cells and no atom."""
        return AdditiveRealNoise(self.question, self.steps, cells)

    def density(self) -> tuple[Vector, Vector]:
        """(edges, values) of the density without the atom, its tails as far as they can be seen.

        Shapes (m + 1,), (m,)."""
        first, masses = self.cells.floats_with_tails(MIN_VISIBLE_SHARE, _MAX_TAIL_CELLS)
        edges: Vector = (np.arange(first, first + masses.size + 1, dtype=np.float64) - 0.5) * float(
            self.width
        )
        return edges, masses * float(self.cells.total / self.total / self.width)

    def describe(self) -> str:
        """One line."""
        atom = f", an atom of {float(self.atom / self.total):.4g} at 0" if self.atom else ""
        return f"{self.question}, {self.steps} cells a sensitivity{atom}"

    def facts(self) -> Facts:
        """What it is, what it publishes, and why it is private for all shifts."""
        grid = f"the answer plus noise, rounded to multiples of {float(self.question.grid):g}"
        ends = self.question.clamp
        grid += "" if ends is None else f", clamped into {format_range(ends)}"
        return [("mechanism", self.describe()), ("publishes", grid), ("shifts", ALL_SHIFTS_NOTE)]

    def drawing(self) -> FigureData:
        """The density, in at most `_DRAWN` cells, and its atom and what is not drawn in words."""
        edges, values = self.density()
        seen = np.flatnonzero(values > MIN_VISIBLE_SHARE * values.max())
        edges = edges[seen[0] : seen[-1] + 2]
        values = values[seen[0] : seen[-1] + 1]
        share = float(values.sum() * self.width)
        atom = float(self.atom / self.total)
        notes = []
        if share + atom < 1 - MAX_TOTAL_ERROR:
            notes.append(describe_drawn_part(f"{edges[0]:.6g}", f"{edges[-1]:.6g}", share))
        share_size = -(-values.size // _DRAWN)
        if share_size > 1:
            cells = [values[k : k + share_size].mean() for k in range(0, values.size, share_size)]
            edges = np.append(edges[:-1:share_size], edges[-1])
            values = np.array(cells)
            notes.append(f"each step is the mean of {share_size} cells")
        law = make_series(
            "this design", "area", 0, edges, np.append(values, values[-1]), steps=True
        )
        if self.atom:
            notes.append(f"an atom of {atom:.4g} at 0 is not drawn")
        return make_line_figure(
            "Density of the noise", "noise η", "density", [law], note="; ".join(notes)
        )

    def to_dict(self) -> Record:
        """JSON-ready, read back by `from_dict`."""
        return super().to_dict() | {"steps": self.steps, "atom": format_fraction(self.atom)}

    @classmethod
    def from_dict(cls, data: Any) -> AdditiveRealNoise:
        """The mechanism written by `to_dict`, which claims no privacy. Raises CorruptFile, InvalidRequest."""
        ends = {"clamp": RATIOS} if isinstance(data, dict) and "clamp" in data else {}
        (steps, atom, *question), cells = cls.read_record(
            data, steps=INTEGER, atom=RATIO, sensitivity=RATIO, grid=RATIO, **ends
        )
        return cls(RealNoise(*question), steps, cells, atom)

    def __repr__(self) -> str:
        return f"AdditiveRealNoise({self.question!r}, {self.steps} steps, {len(self.cells.weights)} cells)"


def _power(name: str) -> int:
    """Of |η|. Raises InvalidRequest."""
    if name not in ("absolute", "squared"):
        must("objective", "absolute or squared for noise on the reals", name)
    if name == "absolute":
        return 1
    return 2


def _floor(start: Fraction, scale: Fraction, word: int, source: Source) -> int:
    """⌊start + scale U⌋, U uniform in [0, 1) with these first 64 bits, and fresh ones where they do not settle it."""
    bits = 64
    while True:
        unit = Fraction(1, 1 << bits)
        low = start + scale * word * unit
        high = start + scale * (word + 1) * unit
        below = math.floor(low)
        if high <= below + 1:
            return below
        word = word << 64 | int(source.draw_uint64(1)[0])
        bits = bits + 64
