"""Quantizers with an output law that is affine between knots, held exactly: what the exact LP, OPTM, RQM, ERM, MVU are.

An input x in [-c, c] is published as one of B_1 < ... < B_m. Knots -c = k_0 < ... < k_K = c cut the domain; between
neighbouring knots a < b the law is the mixture

    p(x, i) = (b - x)/(b - a) p(a+, i) + (x - a)/(b - a) p(b-, i)

of its two one-sided end laws, and at a knot it may jump (p(x, .) is the right limit there, at c the left one). Every
p(., i) takes its extremes at end laws, and Σ_i p(x, i) B_i - x is affine, so privacy and bias are read off the end
laws alone, in exact arithmetic.

    paper                    code
    B_1 .. B_m, c            bins, c (exact rationals)
    p(x, i), eq. (4)         law(x), end laws `pieces`
    E|M(X) - X|, eq. (5)     mae(density): exact integral; mae_51: the paper's average over 51 points
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from workbench.errors import CorruptFile, InvalidRequest
from workbench.mechanisms.density import Density, uniform
from workbench.mechanisms.masses import Masses
from workbench.numbers import exact

__all__ = ["Quantizer", "cost_weights", "error_function", "grid_51", "read_bins", "read_inputs"]

Vector = NDArray[np.float64]


def read_bins(bins: Any, c: Fraction | int = 1, *, cover: bool = True) -> tuple[Fraction, ...]:
    """The bins a request means: at least 2, finite, strictly increasing, with B_1 <= -c and B_m >= c.

    bins: numbers, or one string such as "-3,-0.5,0.5,3". Raises InvalidRequest.
    """
    if isinstance(bins, str):
        parts: list[Any] = bins.split(",") if bins.strip() else []
        if any(not part.strip() for part in parts):
            InvalidRequest.must("bins", 'numbers between commas such as "-3,-0.5,0.5,3"', repr(bins))
    else:
        parts = list(bins)
    found = tuple(exact(part, "a bin") for part in parts)
    shown = ", ".join(f"{float(b):g}" for b in found)
    if len(found) < 2:
        InvalidRequest.must("bins", "at least 2 numbers", shown or "none")
    if any(a >= b for a, b in pairwise(found)):
        InvalidRequest.must("bins", "strictly increasing", shown)
    if cover and (found[0] > -c or found[-1] < c):
        half = float(c)
        InvalidRequest.must("bins", f"numbers that cover the inputs, [-c, c] = [{-half:g}, {half:g}]", shown)
    return found


def read_inputs(x: ArrayLike, c: float, *, clip: bool) -> Vector:
    """Inputs as floats in [-c, c]; those outside are an error, or clipped when asked. Raises InvalidRequest."""
    try:
        values = np.asarray(x, dtype=np.float64)
    except (TypeError, ValueError):
        InvalidRequest.must("x", "finite numbers", x)
    if not np.isfinite(values).all():
        InvalidRequest.must("x", "finite numbers", values[~np.isfinite(values)].flat[0])
    outside = np.abs(values) > c
    if not outside.any():
        return values
    if not clip:
        got = values[outside].flat[0] if values.ndim else values
        raise InvalidRequest(f"x must be in [-{c:g}, {c:g}] (or ask for clipping). Got {got}.")
    return np.asarray(np.clip(values, -c, c))


def grid_51(c: float = 1.0) -> Vector:
    """The 51 points -c, -0.96 c, ..., c of the paper's Table 1."""
    return np.linspace(-c, c, 51)


def error_function(cost: Any) -> tuple[float, float]:
    """(a, b) of the error a |e| + b e²: cost "mae", "mse", or a number λ in [0, 1] for λ|e| + (1 - λ) e²."""
    if cost in ("mae", "mse"):
        return (1.0, 0.0) if cost == "mae" else (0.0, 1.0)
    share = exact(cost, "cost", "mae, mse, or a share of mae in [0, 1]")
    if not 0 <= share <= 1:
        InvalidRequest.must("cost", "mae, mse, or a share of mae in [0, 1]", cost)
    return float(share), float(1 - share)


def cost_weights(knots: ArrayLike, bins: ArrayLike, density: Density, cost: Any = "mae") -> Vector:
    """W with E error = Σ W * end laws: the exact integral of p(x, i) e(B_i - x) f(x). Shape (pieces, 2, m).

    knots: (K + 1,) from -c to c; bins: (m,); cost: as `error_function`.
    """
    cuts, outputs = np.asarray(knots, dtype=float), np.asarray(bins, dtype=float)
    a, b = error_function(cost)
    x, w = density.grid(np.concatenate([cuts, outputs]))
    piece = np.clip(np.searchsorted(cuts, x, side="right") - 1, 0, cuts.size - 2)
    t = (x - cuts[piece]) / np.diff(cuts)[piece]
    gap = np.abs(outputs[None, :] - x[:, None])
    error = (a * gap + b * gap**2) * w[:, None]
    found = np.zeros((cuts.size - 1, 2, outputs.size))
    np.add.at(found[:, 0], piece, (1 - t)[:, None] * error)
    np.add.at(found[:, 1], piece, t[:, None] * error)
    return found


@dataclass(frozen=True, eq=False)
class Quantizer:
    """A quantizer whose law is affine between knots. Build it with `from_ends`, or by `two_bin`, `rqm`, `erm`, `mvu`.

    Attributes:
        name: what it is called in tables.
        bins: B_1 < ... < B_m, exact.
        knots: -c = k_0 < ... < k_K = c, exact.
        pieces: for every piece the laws at its left end (right limit) and right end (left limit), exact.
    """

    name: str
    bins: tuple[Fraction, ...]
    knots: tuple[Fraction, ...]
    pieces: tuple[tuple[Masses, Masses], ...]

    def __post_init__(self) -> None:
        sizes = {len(law) for piece in self.pieces for law in piece}
        if len(self.pieces) != len(self.knots) - 1 or sizes != {len(self.bins)}:
            InvalidRequest.must("pieces", "two laws over the bins for every two neighbouring knots", len(self.pieces))
        if any(a >= b for a, b in pairwise(self.knots)) or self.knots[0] != -self.knots[-1]:
            InvalidRequest.must("knots", "strictly increasing from -c to c", [float(k) for k in self.knots])

    @classmethod
    def from_ends(cls, name: str, bins: Any, knots: Sequence[Any], ends: ArrayLike | Sequence[Any]) -> Quantizer:
        """The quantizer with these end laws, each normalised by its exact sum.

        ends: shape (pieces, 2, m): floats (read as the exact rationals they are, negative rounding errors as 0), or
        Fractions. Raises InvalidRequest.
        """
        cuts = tuple(exact(k, "a knot") for k in knots)
        outputs = read_bins(bins, cuts[-1], cover=False)
        pieces = tuple((_law(piece[0]), _law(piece[1])) for piece in ends)  # type: ignore[index, union-attr]
        return cls(name, outputs, cuts, pieces)

    # Numbers as floats.

    @property
    def m(self) -> int:
        """The number of bins."""
        return len(self.bins)

    @property
    def c(self) -> Fraction:
        """Half the width of the input domain."""
        return self.knots[-1]

    @cached_property
    def outputs(self) -> Vector:
        """The bins as floats. Shape (m,)."""
        return np.array([float(b) for b in self.bins])

    @cached_property
    def ends(self) -> Vector:
        """The end laws as floats. Shape (pieces, 2, m)."""
        return np.array([[law.floats for law in piece] for piece in self.pieces])

    @cached_property
    def _cuts(self) -> Vector:
        return np.array([float(k) for k in self.knots])

    def _place(self, x: Vector) -> tuple[NDArray[np.intp], Vector]:
        piece = np.clip(np.searchsorted(self._cuts, x, side="right") - 1, 0, len(self.pieces) - 1)
        return piece, (x - self._cuts[piece]) / np.diff(self._cuts)[piece]

    # What it does.

    def law(self, x: ArrayLike, *, clip: bool = False) -> Vector:
        """p(x, i) as floats. Shape x.shape + (m,). Raises InvalidRequest for x outside [-c, c] unless clip."""
        values = read_inputs(x, float(self.c), clip=clip)
        piece, t = self._place(values)
        ends = self.ends[piece]
        return np.asarray((1 - t)[..., None] * ends[..., 0, :] + t[..., None] * ends[..., 1, :])

    def exact_law(self, x: Any) -> list[Fraction]:
        """p(x, i) as exact rationals, for a rational x in [-c, c]. Raises InvalidRequest."""
        at = exact(x, "x")
        if abs(at) > self.c:
            InvalidRequest.must("x", f"in [-{float(self.c):g}, {float(self.c):g}]", x)
        k = next((k for k in range(len(self.pieces)) if at < self.knots[k + 1]), len(self.pieces) - 1)
        a, b = self.knots[k], self.knots[k + 1]
        t = (at - a) / (b - a)
        left, right = self.pieces[k]
        return [(1 - t) * left[i] + t * right[i] for i in range(self.m)]

    @cached_property
    def _cumulative(self) -> tuple[Vector, Vector]:
        sums = np.cumsum(self.ends, axis=2)[:, :, :-1]
        return np.ascontiguousarray(sums[:, 0].T), np.ascontiguousarray((sums[:, 1] - sums[:, 0]).T)

    def sample(self, x: ArrayLike, rng: np.random.Generator | int | None = None, *, clip: bool = False) -> Any:
        """Publish every coordinate of x independently: a float for a scalar, else an array of x's shape.

        rng: a NumPy generator or a seed. (Floating-point sampling for experiments: it is not hardened against attacks
        on the generator.) Raises InvalidRequest for x outside [-c, c] unless clip.
        """
        values = read_inputs(x, float(self.c), clip=clip)
        generator = np.random.default_rng(rng)
        piece, t = self._place(values)
        u = generator.random(values.shape)
        index = np.zeros(values.shape, dtype=np.intp)
        start, step = self._cumulative
        for i in range(self.m - 1):
            index += u >= start[i][piece] + t * step[i][piece]
        found = self.outputs[index]
        return float(found) if found.ndim == 0 else found

    # How well it does it.

    def expected(self, cost: Any = "mae", density: Density | None = None) -> float:
        """E error under a density (uniform by default), by exact integration. cost: as `error_function`."""
        law = density or uniform(float(self.c))
        return float(np.sum(cost_weights(self._cuts, self.outputs, law, cost) * self.ends))

    def mae(self, density: Density | None = None) -> float:
        """E|M(X) - X|."""
        return self.expected("mae", density)

    def mse(self, density: Density | None = None) -> float:
        """E(M(X) - X)²."""
        return self.expected("mse", density)

    def error_at(self, x: ArrayLike, cost: Any = "mae") -> Vector:
        """The expected error at given inputs (Fig. 3). Shape of x."""
        values = np.asarray(x, dtype=float)
        a, b = error_function(cost)
        gap = np.abs(self.outputs - values[..., None])
        return np.asarray((self.law(values) * (a * gap + b * gap**2)).sum(axis=-1))

    @property
    def mae_51(self) -> float:
        """The paper's convention: the mean error over the 51 points of `grid_51`."""
        return float(self.error_at(grid_51(float(self.c))).mean())

    @cached_property
    def bias(self) -> Fraction:
        """max_x |E M(x) - x|, exact."""
        worst = Fraction(0)
        for piece, (a, b) in zip(self.pieces, pairwise(self.knots), strict=True):
            for law, x in zip(piece, (a, b), strict=True):
                mean = sum((k * bin_ for k, bin_ in zip(law.integers, self.bins, strict=True)), Fraction(0)) / law.total
                worst = max(worst, abs(mean - x))
        return worst

    def spread(self) -> list[tuple[Fraction, Fraction]]:
        """(min, max) over x of p(x, i), exact, for every bin i."""
        laws = [law for piece in self.pieces for law in piece]
        return [(min(column), max(column)) for column in zip(*([law[i] for i in range(self.m)] for law in laws))]  # noqa: B905

    # Files.

    def to_dict(self) -> dict[str, Any]:
        """A JSON-ready description, read back by `from_dict`: rationals as strings, weights as hexadecimal integers."""
        return {
            "name": self.name,
            "bins": [str(b) for b in self.bins],
            "knots": [str(k) for k in self.knots],
            "pieces": [[[hex(k) for k in law.integers] for law in piece] for piece in self.pieces],
        }

    @classmethod
    def from_dict(cls, data: Any) -> Quantizer:
        """The quantizer written by `to_dict`, which claims no privacy: audit it. Raises CorruptFile."""
        if not isinstance(data, Mapping) or set(data) != {"name", "bins", "knots", "pieces"}:
            raise CorruptFile("A quantizer must have exactly the entries name, bins, knots and pieces.")
        try:
            knots = tuple(exact(k, "a knot") for k in data["knots"])
            bins = read_bins(data["bins"], knots[-1], cover=False)
            pieces = tuple(
                (Masses([int(k, 16) for k in left], "a law"), Masses([int(k, 16) for k in right], "a law"))
                for left, right in data["pieces"]
            )
            return cls(str(data["name"]), bins, knots, pieces)
        except (TypeError, ValueError, IndexError) as error:
            raise CorruptFile(f"The quantizer in the file is not valid: {error}") from error

    def __repr__(self) -> str:
        bins = ", ".join(f"{b:g}" for b in self.outputs) if self.m <= 8 else f"{self.m} outputs"
        return f"Quantizer({self.name}: {bins}; {len(self.pieces)} pieces)"


def _law(weights: Any) -> Masses:
    values = list(weights)
    if all(isinstance(value, (Fraction, int)) for value in values):
        return Masses(values, "an end law")
    array = np.asarray(values, dtype=float)
    if (array < -1e-6).any():
        InvalidRequest.must("an end law", "probabilities >= 0", array.min())
    return Masses.from_floats(np.maximum(array, 0.0), "an end law")
