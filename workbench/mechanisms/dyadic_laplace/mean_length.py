"""Compute the mean number of bits that DQL sends, and the two bounds of Theorem 8 on it.

DQL is the dyadic quantized Laplace mechanism; the modules `dyadic_laplace` and `dyadic_law` name
the paper and define the symbols. T is the level, δ_t its step, U the shared uniform number, M the
integer that is sent, and x a scalar of the data. The means are sums, not samples. Given T = t, M is
the integer nearest to (εx + N)/δ_t with N ~ f_t, because U is uniform. The length of a codeword of
M depends on

    k = 2|M - 1/4| + 1/2

through its class n = ⌊log2 k⌋ alone. Let L_n be the length in class n. For j >= 1, k >= 2^j holds
exactly when |M| >= 2^(j-1). So

    E[length] = L_0 + Σ_t P(T = t) Σ_(j>=1) (L_j - L_(j-1)) P(|M| >= 2^(j-1) | T = t)

    P(|M| >= h | x, t) = Pr[N/δ_t > h - 1/2 - μ] + Pr[N/δ_t > h - 1/2 + μ],   μ = εx/δ_t

The tails are closed forms, so the sum is exact up to rounding (some 1e-13 bits for |εx| < 1e6). For
x uniform on an interval the tails' mean is a closed form too.

    paper                               code
    x, its density                      DataLaw
    expected description length         mean_bits
    L(z) of Theorem 8                   elias_delta_bound
    the two bounds of Theorem 8         theorem8_bounds
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from workbench.data.plain import read_finite_floats, read_floats, read_integer
from workbench.errors import must
from workbench.exact.arrays import Vector
from workbench.exact.numbers import read_number
from workbench.mechanisms.dyadic_laplace.dyadic_law import Levels, tail_mean
from workbench.mechanisms.dyadic_laplace.elias import Code, check_code, class_length
from workbench.questions.density import Density

_MIN_LEVEL_MASS = 2.0**-66  # Levels of less mass carry less than 1e-17 bits and are left out.
_MAX_BATCH_ELEMENTS = 400_000  # A temporary array has at most this many elements.
_MAX_NOISE = 800.0  # |N| exceeds this with a probability of about e^-800, which is 0 in doubles.


@dataclass(frozen=True)
class DataLaw:
    """The law of one scalar x: masses that are spread evenly over intervals, or lie at points.

    A point is an interval of width 0.

    Build it with `point`, `uniform` or `density`.

    Attributes:
        lows: The lower ends of the intervals, length I.
        highs: The upper ends, length I.
        masses: The masses of the intervals, length I.
        text: The name of the law in tables.
    """

    lows: tuple[float, ...]
    highs: tuple[float, ...]
    masses: tuple[float, ...]
    text: str

    @classmethod
    def point(cls, x: float) -> DataLaw:
        """Return the law of a constant.

        Args:
            x: The constant, a finite number.

        Raises:
            InvalidRequest: If x is not one finite number.
        """
        number = read_finite_floats(x, "x", "a finite number")
        if number.ndim:
            must("x", "a finite number", x)
        place = float(number)
        return cls((place,), (place,), (1.0,), f"x = {place:g}")

    @classmethod
    def uniform(cls, low: float, high: float) -> DataLaw:
        """Return the law x ~ Unif(low, high).

        Args:
            low: The lower end of the interval, finite.
            high: The upper end of the interval, finite, > low.

        Raises:
            InvalidRequest: If the ends are not finite, or low >= high.
        """
        constraint = "low and high", "finite numbers with low < high"
        ends = read_floats([low, high], *constraint)
        if ends.shape != (2,) or not -math.inf < ends[0] < ends[1] < math.inf:
            must(*constraint, f"{low} and {high}")
        return cls(
            (float(low),), (float(high),), (1.0,), f"x ~ Unif({float(low):g}, {float(high):g})"
        )

    @classmethod
    def density(
        cls, density: Callable[[Vector], Vector], low: float, high: float, panels: int = 64
    ) -> DataLaw:
        """Return the law with a density on [low, high].

        It consists of the weighted points of a composite Gauss-Legendre rule
        (`Density.quadrature`).

        Args:
            density: x -> density, vectorised, >= 0; its integral must be 1 within 1e-6 (it is
                divided out).
            low: The lower end of the interval, finite.
            high: The upper end of the interval, finite, > low.
            panels: The number of intervals of the rule. Doubling it shows the accuracy.

        Returns:
            The law.

        Raises:
            InvalidRequest: If density is no function of an array or no density on [low, high], if
                the ends are not finite numbers with low < high, or if panels is not from 1 to
                100,000.
        """
        if not callable(density):
            must("density", "a function of an array", repr(density))
        count = read_integer(panels, "panels", 1, 100_000)
        low, high = (
            float(read_number(end, "low, high", "finite with low < high")) for end in (low, high)
        )
        if not low < high:
            must("low, high", "finite with low < high", (low, high))
        half_width = (high - low) / 2
        middle = (high + low) / 2

        def scale_density(x: Vector) -> Vector:
            """Return the density on [-1, 1], scaled from [low, high]."""
            try:
                return np.asarray(
                    half_width * np.asarray(density(half_width * x + middle), dtype=float)
                )
            # A user-defined function may raise anything.
            except Exception as error:
                return must("density", "a function of an array", f"{type(error).__name__}: {error}")

        law = Density(f"a density on [{low:g}, {high:g}]", half_width, scale_density)
        law.validate()
        x, masses = law.quadrature(np.linspace(-half_width, half_width, count + 1))
        points = tuple((x + middle).tolist())
        return cls(points, points, tuple((masses / masses.sum()).tolist()), law.name)

    @property
    def mean_size(self) -> float:
        """Return E|x|, which replaces ‖x‖₁/n of Theorem 8."""
        return math.fsum(
            mass * _mean_size_on(low, high)
            for low, high, mass in zip(self.lows, self.highs, self.masses, strict=True)
        )

    @property
    def max_size(self) -> float:
        """Return the largest |x|."""
        return max(abs(x) for x in (*self.lows, *self.highs))


def _mean_size_on(low: float, high: float) -> float:
    """Return E|x| for x uniform on [low, high], or constant if the ends are equal."""
    if low == high:
        return abs(low)
    return (high * abs(high) - low * abs(low)) / (2 * (high - low))


UNIFORM_DATA = DataLaw.uniform(-1.0, 1.0)  # The data of the paper's Fig. 3.


def mean_bits(epsilon: float, law: Levels, code: Code, data: DataLaw = UNIFORM_DATA) -> float:
    """Compute E[bits of M] for one scalar x ~ data at scale ε, T ~ law.

    Args:
        epsilon: The budget ε > 0.
        law: The law of the level T.
        code: The Elias code, "gamma" or "delta".
        data: The law of the scalar x.

    Returns:
        The mean length.

    Raises:
        InvalidRequest: If code is neither gamma nor delta.
    """
    return float(
        mean_bits_at(
            epsilon, np.array([law.ell]), law.deltas[None, :], law.pmf[None, :], code, data
        )[0]
    )


def mean_bits_at(
    epsilon: float, ell: Vector, deltas: Vector, pmf: Vector, code: Code, data: DataLaw
) -> Vector:
    """Compute `mean_bits` for many ℓ at once. Shape (n,).

    Args:
        epsilon: The budget ε > 0.
        ell: The ratios ℓ of the decoder's ε to the database's, shape (n,).
        deltas: The steps δ_t of the levels, shape (n, rows).
        pmf: The probabilities P(T = t), shape (n, rows).
        code: The Elias code, "gamma" or "delta".
        data: The law of the scalar x.

    Returns:
        The mean lengths.

    Raises:
        InvalidRequest: If code is neither gamma nor delta.
    """
    check_code(code)
    # Larger |M| have no mass in doubles.
    largest_message = epsilon * data.max_size / deltas.min() + _MAX_NOISE / deltas.min()
    largest_exponent = math.ceil(math.log2(largest_message))
    # For |M| <= 2^c, k <= 2^(c+1) + 1 is in one of the classes 0, ..., c + 1. One more is spare.
    classes = np.arange(largest_exponent + 3)
    sizes = class_length(classes, code).astype(np.float64)
    gains = np.diff(sizes)
    half_integers = np.ldexp(1.0, classes[1:] - 1) - 0.5
    has_mass = pmf.max(axis=0) > _MIN_LEVEL_MASS
    deltas = deltas[:, has_mass]
    pmf = pmf[:, has_mass]
    # The axes are (n, rows, parts of the data, classes).
    delta = deltas[..., None, None]
    ratios = np.broadcast_to(ell[:, None, None, None], delta.shape)
    batch_size = max(1, _MAX_BATCH_ELEMENTS // (deltas.size * gains.size))
    bits = np.full(ell.shape, sizes[0])
    for start in range(0, len(data.masses), batch_size):
        batch = slice(start, start + batch_size)
        low, high = (
            epsilon * np.array(ends[batch])[:, None] / delta for ends in (data.lows, data.highs)
        )
        chance = tail_mean(half_integers - high, half_integers - low, delta, ratios)
        if np.array_equal(low, -high):
            # On intervals around 0, M and -M have the same law, so both tails are equal.
            chance += chance
        else:
            chance += tail_mean(half_integers + low, half_integers + high, delta, ratios)
        bits += np.einsum("nt,ntpj,p,j->n", pmf, chance, data.masses[batch], gains)
    return bits


def elias_delta_bound(z: float) -> float:
    """Compute L(z) = z log2 e + 2 log2(z log2 e + 1) + 1 of Theorem 8, a bound on the bits of k.

    Args:
        z: The logarithm ln k of the sent integer k, >= 0.
    """
    bits = z * math.log2(math.e)
    return bits + 2 * math.log2(bits + 1) + 1


def theorem8_bounds(epsilon: float, law: Levels, mean_size: float) -> tuple[float, float]:
    """Compute Theorem 8's two bounds on the mean signed Elias delta length of one scalar.

    Args:
        epsilon: The budget ε > 0.
        law: The law of the level T.
        mean_size: ‖x‖₁/n (or E|x|), >= 0.

    Returns:
        (sharper, printed): the first holds by proof; the second replaces E[-ln δ_T] by ln(e/(ℓ-1) +
        1) - 1/2, which the paper reads off a plot.

    Raises:
        InvalidRequest: If mean_size is negative.
    """
    if not (math.isfinite(mean_size) and mean_size >= 0):
        must("mean_size", "a finite number >= 0", mean_size)
    excess = law.ell - 1
    # With Jensen's inequality, E ln k <= ln E[δ_T k] + E[-ln δ_T]. The first mean is bounded by
    # E[δ_T k] <= 2ε E|x| + 2 E|N| + 9/8 δ₀, because M = (εx + N)/δ_T - U for the Laplace noise N of
    # the decoded number. Here E|N| = 1 and 2 E|U + 1/4| + 1/2 = 9/8. δ₀ is at most ln(2ℓ ln ℓ + 1).
    largest_step_bound = math.log1p(2 * law.ell * math.log1p(excess))
    size = math.log(2 * epsilon * mean_size + 9 / 8 * largest_step_bound + 2)
    printed_log = math.log1p(math.e / excess) - 0.5
    return elias_delta_bound(size + law.mean_neg_log_delta), elias_delta_bound(size + printed_log)
