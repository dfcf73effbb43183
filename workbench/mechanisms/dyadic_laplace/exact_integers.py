"""Draw the integers of dyadic quantized Laplace noise exactly, and prove their guarantee.

The encoder of `dyadic_laplace` computes with doubles. This module defines a law with rational
probabilities, draws from it in integers, and proves what a decoder learns from the integer M. The
level T and the shared number U may be known: the proof holds for each of their values.

    y = ε x / δ_T - U,  n = ⌊y⌋,  θ = y - n
    M = n + K + 1 with probability θ, else n + K                   equal to Algorithm 1, (2)
    Pr[K = k] ∝ a_k:  a_k = s q^(|k|/2) for even k,  q^((|k|-1)/2) for odd k        step 9

where s = 1 + δ_T ℓ exactly, and q is a rational number slightly above e^(-2 δ_T), at least 1/s².
Then Pr[M = m | x] is proportional to θ a_(m-n-1) + (1 - θ) a_(m-n), the linear interpolation of the
sequence a between integers, at m - y. Its sum over m is Σ a_k for every x. On a piece between two
integers the slope is a_(k+1) - a_k, and the value is at least the smaller of the two. So the slope
of ln Pr[M = m | x] in y is at most ρ = max a_j / a_i - 1 over neighbours i and j, and y changes by
ε / δ_T per unit of x:

    Pr[M = m | x] <= e^(E |x - x'|) Pr[M = m | x']  for all real x, x'  if  ε ρ <= E δ_T     Lemma 5

The ratios of neighbours are s, 1/s, s q and 1/(s q). For E = ℓε the condition is an equality in
exact arithmetic for the ratio s. Guarantees of several numbers add up.

Not proven: that the noise of the decoded number is Laplace noise, which gives the database its
smaller guarantee ε. The weights of the mixture of all levels are irrational, and T and U come from
a key that the decoder knows too.

The geometric part of K is drawn digit by digit. For G with Pr[G = g] ∝ q^g the binary digits are
independent, and digit i is 1 with probability r / (1 + r), r = q^(2^i).
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from workbench.errors import CorruptFile, InvalidRequest, NotCertified, must
from workbench.exact.arrays import Flags, Integers
from workbench.exact.distribution import Distribution
from workbench.exact.numbers import ONE, exp_interval, round_up
from workbench.exact.objects import Pair, Record
from workbench.exact.random_source import Source
from workbench.exact.sampler import Sampler
from workbench.io.files import write_atomically
from workbench.io.records import RATIO, RecordForm, make_list_entry, make_object_entry
from workbench.mechanisms.dyadic_laplace.dyadic_laplace import DyadicLaplace
from workbench.mechanisms.dyadic_laplace.piecewise_linear import read_real_array
from workbench.mechanisms.dyadic_laplace.randomness import (
    SharedStream,
    check_streams,
    symmetric_uniform,
)

DYADIC_FORMAT = "dp-workbench dyadic law"
_VERSION = 1
_RATIO_BITS = 160  # q is a multiple of 2^-160.
_MAX_LEVELS = 200  # A file with more levels is refused.
_WORD_BITS = 64  # Random bits of a decision at first. More are drawn if they do not decide.
# K = M₀ + Z G for a geometric G (step 9). The four pairs (M₀, Z) belong to the even K >= 0, the
# even K < 0, the odd K > 0 and the odd K < 0. They have the probabilities ∝ s, s q, 1 and 1, which
# are the weights a_k at G = 0 (k = M₀).
_STARTS = np.array([0, -2, 1, -1])  # The values of M₀.
_STRIDES = np.array([2, -2, 2, -2])  # The values of Z.

# A function bits -> integers (low, high) with low <= 2^bits p <= high, for a probability p.
_Probability = Callable[[int], Pair]


@dataclass(frozen=True)
class DyadicLevel:
    """The law of K at one level.

    Attributes:
        step: δ, the distance of neighbouring outputs in units of 1/ε, > 0.
        first_ratio: s = a_0 / a_1, > 0.
        period_ratio: q = a_(k+2) / a_k for k >= 0, in (0, 1).
    """

    step: Fraction
    first_ratio: Fraction
    period_ratio: Fraction

    def __post_init__(self) -> None:
        if not (self.step > 0 and self.first_ratio > 0 and 0 < self.period_ratio < 1):
            must("levels", "steps and ratios > 0, and period ratios below 1", self.to_dict())

    @property
    def largest_rise(self) -> Fraction:
        """Return the largest a_j / a_i - 1 of neighbours i and j."""
        ratios = (self.first_ratio, self.first_ratio * self.period_ratio)
        return max(max(ratio, 1 / ratio) for ratio in ratios) - 1

    def to_dict(self) -> Record:
        """Return a JSON-ready record."""
        return _LEVEL_FORM.write(self)

    def draw(self, count: int, source: Source) -> Integers:
        """Draw independent K, exactly distributed. Shape (count,).

        Args:
            count: The number of draws.
            source: The source of randomness.
        """
        s = self.first_ratio
        cases = Sampler(Distribution([s, s * self.period_ratio, ONE, ONE]), source).draw(count)
        return _STARTS[cases] + _STRIDES[cases] * draw_geometric(self.period_ratio, count, source)


_LEVEL_FORM = RecordForm("A level", step=RATIO, first_ratio=RATIO, period_ratio=RATIO)


@dataclass(frozen=True, repr=False)
class DyadicIntegers:
    """The exact laws of M at every level, with the proven guarantee of M, T and U together.

    Args:
        epsilon: ε, the reciprocal of the scale of the noise.
        decoder_epsilon: E, the guarantee per unit of |x - x'|.
        levels: The laws of the levels T = 0, 1, ...

    Raises:
        NotCertified: The laws have no guarantee E.
        InvalidRequest: A number is not positive, or there are no levels or too many.
    """

    epsilon: Fraction
    decoder_epsilon: Fraction
    levels: tuple[DyadicLevel, ...]

    def __post_init__(self) -> None:
        if not (self.epsilon > 0 and self.decoder_epsilon > 0):
            must("epsilon and decoder_epsilon", "numbers > 0", self.epsilon)
        if not 1 <= len(self.levels) <= _MAX_LEVELS:
            must("levels", f"1 to {_MAX_LEVELS} levels", len(self.levels))
        for t, level in enumerate(self.levels):
            needed = self.epsilon * level.largest_rise / level.step
            if needed > self.decoder_epsilon:
                raise NotCertified(
                    f"Level {t} needs {round_up(needed)!r} per unit of |x - x'|, more than "
                    f"{round_up(self.decoder_epsilon)!r}."
                )

    @classmethod
    def from_mechanism(cls, mechanism: DyadicLaplace) -> DyadicIntegers:
        """Return rational laws for the levels of a mechanism, with the guarantee ℓε.

        Args:
            mechanism: The mechanism. Its doubles ε, ℓ and δ₀ count as exact numbers.
        """
        ell = Fraction(mechanism.ell)
        unit = 1 << _RATIO_BITS
        levels = []
        for t in range(mechanism.max_level + 1):
            step = Fraction(mechanism.delta0) / 2**t
            s = 1 + step * ell
            _, exp_upper_bound = exp_interval(-2 * step, _RATIO_BITS)
            least_ratio = max(exp_upper_bound, 1 / s**2)
            period_ratio = Fraction(math.ceil(least_ratio * unit), unit)
            levels.append(DyadicLevel(step, first_ratio=s, period_ratio=period_ratio))
        epsilon = Fraction(mechanism.epsilon)
        return cls(epsilon, ell * epsilon, tuple(levels))

    @property
    def sentences(self) -> tuple[str, ...]:
        """Return what is proven, in one sentence."""
        return (
            f"Integers of dyadic quantized Laplace noise, {len(self.levels)} levels: metric at "
            f"epsilon = {round_up(self.decoder_epsilon)!r} per unit of |x - x'| for all real x and "
            "x', whatever the level and the shared number are.",
        )

    def __repr__(self) -> str:
        bound = round_up(self.decoder_epsilon)
        return f"DyadicIntegers({len(self.levels)} levels, decoder_epsilon <= {bound!r})"

    def to_dict(self) -> Record:
        """Return a JSON-ready record, which `read_dyadic_integers` reads."""
        return _LAW_FORM.write(self)

    def save(self, path: Path | str) -> None:
        """Write the file, which `workbench.check` and tools/check_certificate.py prove.

        Args:
            path: Path of the file.
        """
        write_atomically(path, f"{json.dumps(self.to_dict())}\n".encode())


_LAW_FORM = RecordForm(
    "The law",
    {"format": DYADIC_FORMAT, "version": _VERSION},
    epsilon=RATIO,
    decoder_epsilon=RATIO,
    levels=make_list_entry(make_object_entry(lambda data: DyadicLevel(**_LEVEL_FORM.read(data)))),
)


def read_dyadic_integers(data: Any) -> DyadicIntegers:
    """Build the laws that `DyadicIntegers.to_dict` wrote, and prove their guarantee again.

    Args:
        data: Data of the JSON file.

    Raises:
        CorruptFile: The data are malformed or do not prove the guarantee. The cause is NotCertified
            if it is false.
    """
    try:
        return DyadicIntegers(**_LAW_FORM.read(data))
    except NotCertified as error:
        raise CorruptFile(f"The file does not prove its claim. {error}") from error
    except InvalidRequest as error:
        raise CorruptFile(f"The file is not consistent: {error}") from None


def encode_exactly(
    mechanism: DyadicLaplace, x: npt.ArrayLike, shared: SharedStream, source: Source | None = None
) -> Integers:
    """Encode numbers as the integers M, in exact arithmetic. `DyadicLaplace.decode` decodes them.

    Args:
        mechanism: The mechanism.
        x: Real numbers with |εx| <= reach, shape (n,). Doubles count as exact numbers.
        shared: The stream that the decoder knows; it advances by n scalars.
        source: The source of the encoder's own randomness. Default: the operating system.

    Returns:
        The integers M, shape (n,).

    Raises:
        InvalidRequest: If a number is not finite or too large, or shared is no SharedStream.
    """
    check_streams(shared)
    limit = mechanism.reach / mechanism.epsilon
    values = read_real_array(x, limit, "reach / epsilon, a public bound").reshape(-1)
    own_source = Source() if source is None else source
    law = DyadicIntegers.from_mechanism(mechanism)
    # The first word of a scalar is for T, the second for U.
    shared_words = shared.take(values.size)
    levels = mechanism.choose_levels(shared_words[:, 0])
    m = np.zeros(values.size, dtype=np.int64)
    for t in np.unique(levels).tolist():
        places = np.flatnonzero(levels == t)
        m[places] = law.levels[t].draw(places.size, own_source)
    for i, (value, u) in enumerate(
        zip(values.tolist(), symmetric_uniform(shared_words[:, 1]).tolist(), strict=True)
    ):
        quotient = law.epsilon * Fraction(value) / law.levels[levels[i]].step - Fraction(u)
        m[i] += _round_at_random(quotient, own_source)
    return m


def _round_at_random(y: Fraction, source: Source) -> int:
    """Round y up with probability y - ⌊y⌋, else down."""
    floor, remainder = divmod(y.numerator, y.denominator)
    word = int(source.draw_uint64(1)[0])
    return floor + source.is_uniform_below(word, _WORD_BITS, remainder, y.denominator)


def draw_geometric(ratio: Fraction, count: int, source: Source) -> Integers:
    """Draw independent g >= 0 with Pr[g] ∝ ratio^g, exactly distributed. Shape (count,).

    The lowest binary digits of g are drawn one by one. The rest of g, a multiple of 2^digit, is
    counted by trials.

    Args:
        ratio: The ratio, in (0, 1).
        count: The number of draws.
        source: The source of randomness.
    """
    draws = np.zeros(count, dtype=np.int64)
    digit = 0
    # Digits are drawn until ratio^(2^digit), with which the trials go on, is at most 1/2.
    while _enclose_power(ratio, digit, _WORD_BITS)[1] > 1 << (_WORD_BITS - 1):
        flags = _draw_flags(partial(_enclose_digit, ratio, digit), count, source)
        draws += flags.astype(np.int64) << digit
        digit += 1
    running = np.arange(count)
    while running.size:
        goes_on = _draw_flags(partial(_enclose_power, ratio, digit), running.size, source)
        running = running[goes_on]
        draws[running] += 1 << digit
    return draws


def _draw_flags(probability: _Probability, count: int, source: Source) -> Flags:
    """Draw booleans that are true with a probability known by enclosures. Shape (count,)."""
    low, high = probability(_WORD_BITS)
    # Words below `low` give true and words above `high` false. The others are left to `_decide`.
    # low and high may be 2^64, which is no uint64: hence `low - 1` and the minimum below.
    random_words = source.draw_uint64(count)
    flags = np.zeros(count, dtype=bool)
    if low:
        flags = random_words <= np.uint64(low - 1)
    for i in np.flatnonzero(~flags & (random_words <= np.uint64(min(high, (1 << _WORD_BITS) - 1)))):
        flags[i] = _decide(int(random_words[i]), probability, source)
    return flags


def _decide(value: int, probability: _Probability, source: Source) -> bool:
    """Decide whether a uniform number is below a probability, from its first 64 bits on."""
    bits = _WORD_BITS
    while True:
        low, high = probability(bits)
        if value + 1 <= low:
            return True
        if value >= high:
            return False
        value = value << _WORD_BITS | int(source.draw_uint64(1)[0])
        bits += _WORD_BITS


def _enclose_power(ratio: Fraction, digit: int, bits: int) -> Pair:
    """Return integers (low, high) with low <= 2^bits ratio^(2^digit) <= high."""
    places = bits + digit + 2  # Each squaring at most doubles the error, and adds two roundings.
    low = (ratio.numerator << places) // ratio.denominator
    high = low + 1
    for _ in range(digit):
        low = low * low >> places
        high = -(-high * high >> places)  # The two signs make the shift round up.
    return low >> (places - bits), -(-high >> (places - bits))


def _enclose_digit(ratio: Fraction, digit: int, bits: int) -> Pair:
    """Return integers (low, high) with low <= 2^bits r/(1 + r) <= high, r = ratio^(2^digit)."""
    unit = 1 << bits
    low, high = _enclose_power(ratio, digit, bits)
    return low * unit // (unit + low), -(-high * unit // (unit + high))
