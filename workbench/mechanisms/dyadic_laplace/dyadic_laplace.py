"""The dyadic quantized Laplace mechanism (DQL): exact Laplace noise that is sent in few bits.

This is Sec. 5 and 6, with Theorem 7, of the paper Communication-Efficient Laplace Mechanism for
Differential Privacy via Random Quantization, whose numbers are used below. Encoder and decoder
share the level T and the uniform number U. The encoder draws an integer M̃ and a uniform number W of
its own. It sends one integer for each scalar x, M = round(εx/δ_T + M̃ + W - U) (Algorithm 1), where
δ_T is the step of the level.
The decoder returns X̂ = δ_T (M + U)/ε (6). Then X̂ - x ~ Laplace(0, 1/ε) for every x (Proposition
6). With d(x, x') = ‖x - x'‖₁, a decoder, who sees (T, U, M), learns x under ℓε·d-privacy, and a
reader of X̂ under ε·d-privacy.

    paper               code                        paper               code
    ε                   epsilon, database_epsilon   ℓ                   ell
    ℓε                  decoder_epsilon             δ₀                  delta0
    PRNG 𝒫              SharedStream                "local seed"        LocalStream
    M, X̂                encode(x), decode(m)        f_t                 dyadic_law.component

T is capped. A 64-bit integer holds εx/δ_T only up to some level t_max, chosen from the public bound
`reach` on |εx| (2^24 by default: t_max = 37 for ℓ = 2). T is drawn given T <= t_max, which is an
exact operation of the same family: Σ_(t<=s) P(T=t) f_t = F_T(s) g_(δ_s), so the noise then has the
density g_δ of (3) with δ = δ_(t_max), about 2^-37.
* decoder: still exactly ℓε, because every f_t has it;
* database: exactly ε (e^δ - 1)/δ < ε (1 + δ), `database_epsilon_as_run`; and ln of the density is
  within δ²/6 of Laplace's, so the privacy loss is also at most ε d + δ²/3, less than 10^-22 beyond
  ε d.

The guarantees are those of real arithmetic with ideal random numbers; floating-point attacks on the
Laplace mechanism (Mironov 2012) are outside the paper and no guarantee is claimed against them. X̂
is computed from (T, U, M) alone, so its last bits say no more than those three. But M's own law is
only approximated: W and the two random words of M̃ have 53 to 64 bits, so that an M of probability
below about 2^-53 may not occur at all, and sums are rounded. `exact_integers` draws M
from an exact law instead, and proves the decoder's guarantee.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from workbench.errors import must
from workbench.exact.arrays import Integers, Positions, Vector, Words
from workbench.exact.numbers import round_up
from workbench.io.plain_figures import FigureData as Drawing
from workbench.io.plain_figures import draw_chart, make_bar_figure
from workbench.io.shown import Facts, Shown
from workbench.mechanisms.dyadic_laplace.dyadic_law import (
    Levels,
    compute_levels,
    delta_zero,
    level_thresholds,
)
from workbench.mechanisms.dyadic_laplace.elias import Code
from workbench.mechanisms.dyadic_laplace.mean_length import UNIFORM_DATA, DataLaw, mean_bits
from workbench.mechanisms.dyadic_laplace.piecewise_linear import (
    MAX_QUOTIENT,
    decode_in_chunks,
    dithered_round,
    encode_in_chunks,
    read_positive_float,
)
from workbench.mechanisms.dyadic_laplace.randomness import (
    LocalStream,
    SharedStream,
    symmetric_uniform,
)

if TYPE_CHECKING:
    from matplotlib.figure import Figure


DEFAULT_REACH = 2.0**24  # The default public bound on |εx|.
# The 53 bits of the geometric variable would not resolve its period 2δ for a smaller step.
_MIN_STEP = 2.0**-45
# M̃ = M₀ + Z G for a geometric G (step 9). The four pairs (M₀, Z) belong to the even M̃ >= 0, the
# even M̃ < 0, the odd M̃ > 0 and the odd M̃ < 0.
_STARTS = np.array([0.0, -2.0, 1.0, -1.0])  # The values of M₀.
_STRIDES = np.array([2.0, -2.0, 2.0, -2.0])  # The values of Z.


@dataclass(frozen=True)
class DyadicLaplace(Shown):
    """The dyadic quantized Laplace mechanism, with the parameters ε and ℓ.

    Args:
        epsilon: The database's ε > 0. The scale of the noise is 1/ε.
        ell: The ratio ℓ > 1 of the decoder's ε to the database's.
        reach: A public bound on |εx|, at most 2^60. Larger inputs are refused.

    Raises:
        InvalidRequest: If ε <= 0, ℓ <= 1 or the reach is not in (0, 2^60], or if ℓ - 1 is so small
            that no level covers the reach.
    """

    not_exact = (
        "Dyadic Laplace noise is continuous: its epsilon is proven by its construction "
        "(decoder_epsilon, database_epsilon), and `encode` publishes with it. "
        "`workbench laplace encode --certificate FILE` certifies the encoded integers."
    )

    epsilon: float
    ell: float
    reach: float = DEFAULT_REACH

    def __post_init__(self) -> None:
        # The class is frozen, so its attributes are set in `__dict__`.
        for name in ("epsilon", "ell", "reach"):
            self.__dict__[name] = read_positive_float(getattr(self, name), name)
        if self.max_level < 0:
            min_step = max(_MIN_STEP, self.reach / MAX_QUOTIENT)
            must(
                "ell",
                f"larger, so that delta0 >= {min_step:.3g} for reach {self.reach:g}",
                self.ell,
            )

    @cached_property
    def delta0(self) -> float:
        """Return δ₀, the largest step (times 1/ε): e^(δ₀) = δ₀ℓ + 1."""
        return delta_zero(self.ell)

    @cached_property
    def max_level(self) -> int:
        """Return t_max: the last t with reach/δ_t <= 2^61 and δ_t >= 2^-45; -1 if there is none."""
        return max(
            -1, math.floor(math.log2(self.delta0 / max(_MIN_STEP, self.reach / MAX_QUOTIENT)))
        )

    @cached_property
    def law(self) -> Levels:
        """Return the law of T as it runs, given T <= max_level."""
        return compute_levels(self.ell, self.max_level)

    @property
    def decoder_epsilon(self) -> float:
        """Return ℓε per unit of ‖x - x'‖₁ against a reader of (T, U, M), rounded up (Theorem 7)."""
        return round_up(Fraction(self.ell) * Fraction(self.epsilon))

    @property
    def database_epsilon(self) -> float:
        """Return ε per unit of ‖x - x'‖₁, against a reader of X̂ alone (Theorem 7).

        It belongs to the mechanism without a largest level; see `database_epsilon_as_run`.
        """
        return self.epsilon

    @property
    def database_epsilon_as_run(self) -> float:
        """Return the ε of the database with T capped: ε (e^δ - 1)/δ, δ = δ_(t_max), rounded up.

        By Lemma 5 it is the slope of g_δ. For ℓ = 2 it is 1 part in 2^38 above ε.
        """
        step = float(self.law.deltas[-1])
        # The factor covers four roundings of 2^-53.
        return self.epsilon * math.expm1(step) / step * (1 + 2.0**-50)

    @property
    def mse(self) -> float:
        """Return the mean squared error E[(X̂ - x)²] = 2/ε² of one scalar."""
        return 2 / self.epsilon**2

    def facts(self) -> Facts:
        """Return the parameters, the privacy guarantees and the error as (name, text) pairs."""
        return [
            ("mechanism", "dyadic quantized Laplace"),
            ("epsilon, ell", f"{self.epsilon:g}, {self.ell:g}"),
            ("inputs", f"up to {self.reach / self.epsilon:g}"),
            ("epsilon of the decoder", f"{self.decoder_epsilon:.9g} per unit of |x - x'|"),
            ("epsilon of the database", f"{self.database_epsilon_as_run:.9g} per unit of |x - x'|"),
            ("mean squared error", f"{self.mse:.9g}"),
        ]

    def drawing(self) -> Drawing:
        """Return Pr[T = t] against the step δ_t/ε between outputs, as plain data."""
        steps = [f"{step:.2g}" for step in (self.law.deltas / self.epsilon)[::-1]]
        return make_bar_figure(
            "Probability of every step between outputs",
            "step between outputs",
            steps,
            self.law.pmf[::-1],
        )

    def figure(self) -> Figure:
        """Draw the law of the step between outputs."""
        return draw_chart(
            self.drawing(), f"dyadic quantized Laplace, ε = {self.epsilon:g}, ℓ = {self.ell:g}"
        )

    def mean_bits(self, code: Code = "gamma", data: DataLaw = UNIFORM_DATA) -> float:
        """Compute the exact mean length of the description of one scalar x ~ data, T capped.

        Args:
            code: The Elias code, "gamma" or "delta".
            data: The law of the scalar x.

        Raises:
            InvalidRequest: If code is neither gamma nor delta.
        """
        return mean_bits(self.epsilon, self.law, code, data)

    def encode(
        self, x: npt.ArrayLike, shared: SharedStream, local: LocalStream | None = None
    ) -> Any:
        """Encode x as M, one 64-bit integer a scalar, in the shape of x (an int for a scalar).

        Args:
            x: Real numbers with |εx| <= reach.
            shared: The stream that the decoder knows; it advances by x.size scalars.
            local: A fresh LocalStream if None.

        Returns:
            The integers M.

        Raises:
            InvalidRequest: If a number is NaN or infinite, if |εx| > reach, if shared is no
                SharedStream, or if local is no LocalStream.
        """
        tables = self._tables

        def chunk(part: Vector, shared_words: Words, local_words: Words) -> Integers:
            """Encode a chunk of x, shape (n,). Shared words are (n, 2), local words (n, 3)."""
            level, u = self._level_and_dither(shared_words)
            noise = tables.noise(level, local_words[:, 0], local_words[:, 1])
            return dithered_round(
                part * tables.per_step[level], noise, symmetric_uniform(local_words[:, 2]), u
            )

        return encode_in_chunks(
            x,
            self.reach / self.epsilon,
            bound_text="reach / epsilon, a public bound",
            shared_stream=shared,
            local_stream=local,
            encode_chunk=chunk,
        )

    def decode(self, m: npt.ArrayLike, shared: SharedStream) -> Any:
        """Decode X̂ = δ_T (M + U)/ε (6), in the shape of m (a float for a scalar).

        Args:
            m: The integers M that `encode` returned, any shape.
            shared: A stream of the encoder's key, nonce and position; it advances by m.size.

        Raises:
            InvalidRequest: If m has an entry that is no 64-bit integer, or shared is no
                SharedStream.
        """

        def chunk(part: Integers, shared_words: Words) -> Vector:
            """Decode one chunk of M, shape (n,), by its shared words (n, 2)."""
            level, u = self._level_and_dither(shared_words)
            return (part + u) * self._tables.steps[level]

        return decode_in_chunks(m, shared, chunk)

    @cached_property
    def _tables(self) -> _Tables:
        """Return the numbers of each level, which are computed once."""
        return _Tables(self)

    def choose_levels(self, random_words: Words) -> Positions:
        """Return the levels T that uniform 64-bit words select. Shape of random_words.

        Args:
            random_words: The first words of the shared stream.
        """
        return self._tables.level(random_words)

    def _level_and_dither(self, shared_words: Words) -> tuple[Positions, Vector]:
        """Return the level and the dither u of each scalar, both of shape (n,)."""
        return self.choose_levels(shared_words[:, 0]), symmetric_uniform(shared_words[:, 1])


class _Tables:
    """Numbers that encoding and decoding need for each level t.

    Attributes:
        steps: The steps δ_t/ε between outputs, shape (levels,).
        per_step: Their reciprocals ε/δ_t, shape (levels,).
    """

    def __init__(self, mechanism: DyadicLaplace) -> None:
        law = mechanism.law
        rows = np.arange(law.deltas.size)
        self.steps = np.ldexp(mechanism.delta0 / mechanism.epsilon, -rows)
        self.per_step = np.ldexp(mechanism.epsilon / mechanism.delta0, rows)
        self._thresholds = np.array(
            level_thresholds(mechanism.ell, mechanism.max_level), dtype=np.uint64
        )
        # The four pairs (M₀, Z) of step 9 have the weights s, s q, 1, 1.
        s = 1 + law.deltas * mechanism.ell
        q = np.exp(-2 * law.deltas)
        total = s * (1 + q) + 2
        bounds = np.stack([s / total, s * (1 + q) / total, (s * (1 + q) + 1) / total])
        self._bounds = tuple(
            np.ldexp(row, 64).astype(np.uint64) for row in np.minimum(bounds, 1 - 2.0**-53)
        )
        self._periods = -1 / (2 * law.deltas)

    def level(self, random_words: Words) -> Positions:
        """Return T = #{t : word >= thresholds[t]} from one word a scalar. Shape of random_words."""
        return np.searchsorted(self._thresholds, random_words, side="right")

    def noise(self, level: Positions, choice: Words, repeat: Words) -> Vector:
        """Draw M̃ = M₀ + Z G, where G is geometric on 0, 1, ... with the ratio e^(-2δ).

        These are steps 9 and 10 of Algorithm 1.
        """
        case = np.sum([choice >= bounds[level] for bounds in self._bounds], axis=0)
        repeats = np.floor(np.log(symmetric_uniform(repeat) + 0.5) * self._periods[level])
        return np.asarray(_STARTS[case] + _STRIDES[case] * repeats)
