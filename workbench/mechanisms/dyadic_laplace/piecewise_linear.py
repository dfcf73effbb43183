"""The quantized piecewise-linear mechanism: noise of piecewise-linear density, sent as an integer.

This is Sec. 4, with Lemma 5, of the paper Communication-Efficient Laplace Mechanism for
Differential Privacy via Random Quantization; the numbers in parentheses are its own.

For a step δ > 0 and weights a_k >= 0 with Σ a_k = 1, the noise X̂ - x has the density (1),
f(x) = (1/δ) Σ_k a_k tri(x/δ - k), tri(y) = max(1 - |y|, 0), whatever x is. With U ~ Unif(-1/2, 1/2)
shared and K ~ a, W ~ Unif(-1/2, 1/2) local, the encoder sends M = round(x/δ + K + W - U) (2) and
the decoder returns X̂ = δ (M + U).

The decoder sees (U, M), whose density is δ f(δ(m + u) - x): it is ε |x - x'|-private with Lemma 5's
exact ε = max over |i - j| = 1 of (a_j / a_i - 1) / δ, the Lipschitz constant of ln f. The database,
which sees X̂, has the same ε. A finite support has ε = ∞ (at its end a positive weight meets a
zero), so sequences here may end in geometric tails.

    paper       code                                paper       code
    δ           step                                a_k         weight(k)
    f           density                             U, u        SharedStream (its second word)
    ε           epsilon                             K, W        LocalStream (two words a scalar for
                                                                K, and one for W)

The guarantees are those of real arithmetic with ideal random numbers. Floating-point attacks on
noisy numbers (Mironov 2012) are outside the paper, and no guarantee is claimed against them here.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from workbench.data.plain import read_integer, read_plain_array
from workbench.errors import must
from workbench.exact.arrays import Integers, Vector, Words
from workbench.exact.numbers import read_positive
from workbench.mechanisms.dyadic_laplace.randomness import (
    LocalStream,
    SharedStream,
    check_streams,
    symmetric_uniform,
)

MAX_QUOTIENT = 2.0**61  # A larger |x/δ| plus noise would not fit into a 64-bit integer.
_MAX_EXPONENT = 500  # Squares and reciprocals of 2^±500 are still doubles.
_SCALARS_PER_CHUNK = 16384  # The temporary arrays of a chunk stay in the processor's cache.


def dithered_round(quotient: Vector, noise: Vector, w: Vector, u: Vector) -> Integers:
    """Compute M = round(quotient + noise + w - u), (2).

    The term w - u is not lost if the quotient is beyond 2^53.

    The integer part of the quotient is split off exactly and added as a 64-bit integer.

    Args:
        quotient: x/δ, |x/δ| <= 2^61.
        noise: Integers, |noise| <= 2^53.
        w: The local uniform number W, in (-1/2, 1/2).
        u: The shared uniform number U, in (-1/2, 1/2).

    Returns:
        M; all arrays have one shape.
    """
    integer_part = np.floor(quotient)
    small_part = np.rint(quotient - integer_part + w - u) + noise
    return np.asarray(integer_part.astype(np.int64) + small_part.astype(np.int64))


def read_real_array(x: npt.ArrayLike, max_size: float, bound_text: str) -> Vector:
    """Read x as doubles. Shape of x.

    Args:
        x: The real numbers to encode, any shape.
        max_size: The largest size, which is public.
        bound_text: Name of the largest size in errors.

    Returns:
        The doubles.

    Raises:
        InvalidRequest: If a number is not finite or is larger. The message names the first one.
    """
    values = read_plain_array(x, "x", "finite numbers", column=True)
    if values.dtype.kind not in "fiu":
        must("x", "a real number or an array of real numbers", f"dtype {values.dtype}")
    reals = values.astype(np.float64)
    max_size = min(max_size, sys.float_info.max)
    is_invalid = ~(np.abs(reals) <= max_size)
    if is_invalid.any():
        index = tuple(int(i) for i in np.argwhere(is_invalid)[0])
        name = f"x[{', '.join(map(str, index))}]" if index else "x"
        must(name, f"a finite number, at most {max_size:g} in size ({bound_text})", reals[index])
    return reals


def read_integer_array(m: npt.ArrayLike) -> Integers:
    """Read m as 64-bit integers.

    Shape of m.

    Args:
        m: The integers M, any shape.

    Raises:
        InvalidRequest: If an entry is no integer, or is 2^63 or larger.
    """
    values = read_plain_array(m, "m", "integers", column=True)
    if values.size and (values.dtype.kind not in "iu" or values.max() >= 2**63):
        must("m", "an integer or an array of integers below 2^63 in size", f"dtype {values.dtype}")
    return values.astype(np.int64)


def read_positive_float(value: Any, name: str) -> float:
    """Read a number > 0 as a double whose square and reciprocal are doubles.

    Args:
        value: The value of a request, as for `read_number`.
        name: Name of the value in errors.

    Raises:
        InvalidRequest: If the value is no number, or outside [2^-500, 2^500].
    """
    number = read_positive(value, name)
    value_as_float = float(number) if number < 2**1000 else math.inf
    if not 2.0**-_MAX_EXPONENT <= value_as_float <= 2.0**_MAX_EXPONENT:
        must(name, f"a number from 2^-{_MAX_EXPONENT} to 2^{_MAX_EXPONENT}", value)
    return value_as_float


def encode_in_chunks(
    x: npt.ArrayLike,
    max_size: float,
    bound_text: str,
    shared_stream: SharedStream,
    local_stream: LocalStream | None,
    encode_chunk: Callable[[Vector, Words, Words], Integers],
) -> Any:
    """Encode x in chunks as M: one integer per scalar, with the shape of x (an int for a scalar).

    Args:
        x: The real numbers to encode, any shape.
        max_size: The largest accepted |x|.
        bound_text: Name of the largest size in errors.
        shared_stream: Advances by x.size scalars.
        local_stream: A fresh local stream if None.
        encode_chunk: Numbers, their shared words (n, 2) and local words (n, 3) -> M.

    Returns:
        The integers M.

    Raises:
        InvalidRequest: If a number is not finite or too large, or a stream is of the other party's
            type.
    """
    check_streams(shared_stream, local_stream)
    own_stream = LocalStream() if local_stream is None else local_stream
    values = read_real_array(x, max_size, bound_text)
    return _in_chunks(
        values,
        np.int64,
        convert=lambda part: encode_chunk(
            part, shared_stream.take(part.size), own_stream.take(part.size, 3)
        ),
    )


def decode_in_chunks(
    m: npt.ArrayLike, shared_stream: SharedStream, decode_chunk: Callable[[Integers, Words], Vector]
) -> Any:
    """Decode X̂ in chunks, with the shape of m (a float for a scalar).

    Args:
        m: The integers M, any shape.
        shared_stream: Advances by m.size scalars.
        decode_chunk: Integers and their shared words (n, 2) -> numbers.

    Returns:
        The numbers X̂.

    Raises:
        InvalidRequest: If m has an entry that is no 64-bit integer, or shared_stream is no
            SharedStream.
    """
    check_streams(shared_stream)
    return _in_chunks(
        read_integer_array(m),
        np.float64,
        convert=lambda part: decode_chunk(part, shared_stream.take(part.size)),
    )


def _in_chunks(values: Any, dtype: npt.DTypeLike, convert: Callable[[Any], Any]) -> Any:
    """Apply a function to chunks of scalars. Shape of values (a Python number for a scalar)."""
    scalars = values.reshape(-1)
    results = np.empty(values.size, dtype)
    for start in range(0, scalars.size, _SCALARS_PER_CHUNK):
        results[start : start + _SCALARS_PER_CHUNK] = convert(
            scalars[start : start + _SCALARS_PER_CHUNK]
        )
    if values.ndim:
        return results.reshape(values.shape)
    return results[0].item()


@dataclass(frozen=True)
class QuantizedPiecewiseLinear:
    """The mechanism of Section 4 for one step δ and one step sequence a.

    Args:
        step: The step δ > 0 between outputs.
        core: Weights a_first, a_(first+1), ... >= 0, which are divided by their sum.
        first: The index of the first weight.
        left: The ratio of the tail before the core, a_k = left a_(k+period), in [0, 1); 0 means no
            tail.
        right: The ratio of the tail after the core, a_k = right a_(k-period), in [0, 1).
        period: 1 for geometric tails, 2 if even and odd k differ; at most len(core).

    Raises:
        InvalidRequest: If step is not in [2^-500, 2^500], if a weight is negative or not finite, if
            a ratio is outside [0, 1), or if period is not in 1..len(core).
    """

    step: float
    core: tuple[float, ...]
    first: int = 0
    left: float = 0.0
    right: float = 0.0
    period: int = 1
    _cdf: Vector = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        step = read_positive_float(self.step, "step")
        weights = np.asarray(self.core, dtype=np.float64)
        if (
            weights.ndim != 1
            or not weights.size
            or not np.isfinite(weights).all()
            or (weights < 0).any()
        ):
            must("core", "a non-empty sequence of finite weights >= 0", self.core)
        for name in ("left", "right"):
            ratio = getattr(self, name)
            if not (isinstance(ratio, int | float) and 0 <= ratio < 1):
                must(name, "a ratio in [0, 1)", ratio)
        read_integer(self.period, "period", 1, weights.size)
        # There is one block for each residue of the left tail, then the core, then one block for
        # each residue of the right tail.
        blocks = np.concatenate(
            [
                weights[: self.period] * (self.left / (1 - self.left)),
                weights,
                weights[-self.period :] * (self.right / (1 - self.right)),
            ]
        )
        total = math.fsum(blocks)
        if not 0 < total < math.inf:
            must("core", "weights with a positive, finite sum", total)
        cdf = np.cumsum(blocks / total)
        # The class is frozen, so its attributes are set in `__dict__`.
        self.__dict__.update(step=step, core=tuple((weights / total).tolist()), _cdf=cdf / cdf[-1])

    def weight(self, k: npt.ArrayLike) -> Vector:
        """Compute a_k.

        Args:
            k: Integers, any shape.
        """
        offset = np.asarray(k, dtype=np.int64) - self.first
        size = len(self.core)
        period = self.period
        core = np.asarray(self.core)
        periods_after = np.maximum(0, (offset - size) // period + 1)
        periods_before = np.maximum(0, (-offset - 1) // period + 1)
        core_index = np.clip(offset - period * periods_after + period * periods_before, 0, size - 1)
        return np.asarray(
            core[core_index]
            * np.power(self.right, periods_after)
            * np.power(self.left, periods_before)
        )

    def density(self, x: npt.ArrayLike) -> Vector:
        """Compute f(x) of (1): the linear interpolation of the points (kδ, a_k/δ).

        Args:
            x: Numbers, any shape.
        """
        y = np.asarray(x, dtype=np.float64) / self.step
        k = np.floor(y)
        part = y - k
        return ((1 - part) * self.weight(k) + part * self.weight(k + 1)) / self.step

    @property
    def epsilon(self) -> float:
        """Return Lemma 5's exact ε of the decoder and of the database, per unit of |x - x'|.

        It is inf for a finite support. The maximum runs over the core and one period of each tail;
        beyond, the same ratios repeat. In floating point its relative error is about 2^-52 / (δ ε).
        """
        margin = self.period + 1
        a = self.weight(np.arange(self.first - margin, self.first + len(self.core) + margin))
        smaller_weight = np.minimum(a[1:], a[:-1])
        larger_weight = np.maximum(a[1:], a[:-1])
        if (larger_weight[smaller_weight == 0] > 0).any():
            return math.inf
        is_used = smaller_weight > 0
        return (
            float(
                ((larger_weight[is_used] - smaller_weight[is_used]) / smaller_weight[is_used]).max(
                    initial=0.0
                )
            )
            / self.step
        )

    def encode(
        self, x: npt.ArrayLike, shared: SharedStream, local: LocalStream | None = None
    ) -> Any:
        """Encode x as M of (2), one integer for each scalar.

        The result has the shape of x (a Python int for a scalar).

        Args:
            x: Real numbers with |x/δ| <= 2^61.
            shared: The stream that the decoder knows; it advances by x.size scalars.
            local: A fresh LocalStream if None.

        Returns:
            The integers M.

        Raises:
            InvalidRequest: If a number is NaN or infinite, if |x/δ| > 2^61, if shared is no
                SharedStream, or if local is no LocalStream.
        """

        def chunk(part: Vector, shared_words: Words, local_words: Words) -> Integers:
            """Encode a chunk of x, shape (n,). Shared words are (n, 2), local words (n, 3)."""
            noise = self._sample(local_words[:, 0], local_words[:, 1])
            u = symmetric_uniform(shared_words[:, 1])
            return dithered_round(part / self.step, noise, symmetric_uniform(local_words[:, 2]), u)

        return encode_in_chunks(
            x,
            MAX_QUOTIENT * self.step,
            bound_text="2^61 steps",
            shared_stream=shared,
            local_stream=local,
            encode_chunk=chunk,
        )

    def decode(self, m: npt.ArrayLike, shared: SharedStream) -> Any:
        """Decode X̂ = δ (M + U) in the shape of m (a float for a scalar).

        Args:
            m: The integers M, any shape.
            shared: The encoder's stream; it advances by m.size.

        Raises:
            InvalidRequest: If m has an entry that is no 64-bit integer, or shared is no
                SharedStream.
        """
        return decode_in_chunks(
            m,
            shared,
            decode_chunk=lambda part, shared_words: (
                (part + symmetric_uniform(shared_words[:, 1])) * self.step
            ),
        )

    def _sample(self, choice: Words, repeat: Words) -> Vector:
        """Draw K ~ a.

        The inverse CDF gives a block. In a tail, a geometric number of periods >= 1 follows.
        """
        block = np.searchsorted(self._cdf, symmetric_uniform(choice) + 0.5, side="left").astype(
            np.int64
        )
        period = self.period
        size = len(self.core)
        offset = block - period
        exponential = -np.log(symmetric_uniform(repeat) + 0.5)
        for ratio, mask, sign in ((self.left, offset < 0, -1), (self.right, offset >= size, 1)):
            # The exponential gives the number of further periods.
            if ratio > 0 and mask.any():
                offset[mask] += (
                    sign * period * np.floor(exponential[mask] / -math.log(ratio)).astype(np.int64)
                )
        return (offset + self.first).astype(np.float64)
