"""Bound δ or ε of many runs from the distribution of their privacy loss, with proven rounding.

For a pair of laws (P, Q), the privacy loss is L = ln P/Q. In this module, "loss" means privacy
loss. Its distribution under P determines the hockey stick H(t) = Σ max(0, P - t Q) for every ratio
t = e^ε. The loss of a product of pairs is the sum of their losses, so the distribution for many
runs is a convolution. Losses are placed on a grid with the points i h (h is the step), and masses
on multiples of 2^-bits. An upper law gives upper bounds on δ and ε, a lower law gives lower bounds:

    upper   Every atom (p, q) of loss L in [i h, (i+1) h) is cut into two atoms of losses i h and
            (i+1) h, with the same p and q in total. Merging the two is post-processing, so the cut
            pair dominates (this is the "connect the dots" method of Doroshenko et al. 2022), and
            the bound increases only by O(h²). Masses are rounded up. An upper tail of at most
            `_MAX_LIGHT_UNITS` units of 2^-bits is moved to loss ∞, and such a lower tail is moved
            up to the lowest remaining loss.
    lower   Masses are rounded down and tails are dropped, which decreases H. With few runs, L moves
            down to i h, which decreases H as well. With many runs, atoms are cut as above and ε is
            shifted. A cut moves the loss of one run by a random Z in an interval of length h, and
            preserves the Q-mass p e^-L, so 𝔼[e^-Z] = 1 for its expectation 𝔼. Hoeffding's lemma
            then gives 𝔼[Z] <= h²/8. By Hoeffding's inequality, the sum of Z over T runs exceeds s
            with probability at most η = exp(-2 (s - T h²/8)² / (T h²)). Hence δ(ε - s) is at least
            δ of the cut pair at ε, minus η.

The convolutions themselves are exact (FLINT). So δ and ε of an upper law are proven upper bounds,
and those of a lower law proven lower bounds. They also hold for adaptive runs if (P, Q) dominates
each run (Zhu, Dong and Wang 2022).
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import accumulate
from typing import Any

from workbench.exact.numbers import ONE, ZERO, RationalPair, ball_ends, make_ball
from workbench.exact.objects import Pair

_MAX_LIGHT_UNITS = 1 << 40  # Tails of at most this many units of 2^-bits are removed from a law.


@dataclass(frozen=True)
class PrivacyLossLaw:
    """The distribution of a privacy loss on a grid.

    Attributes:
        step: Step h of the grid.
        first: The lowest loss is `first * step`.
        masses: Polynomial (fmpz_poly). The k-th coefficient is the mass of the loss
            (first + k) step, in units of 2^-bits.
        infinite: Mass of the loss ∞, in the same units.
        bits: Binary digits of the masses.
        is_upper: Whether everything is rounded so that bounds are upper bounds.
        cut_runs: Number of runs whose atoms were cut, for a lower law.
    """

    step: Fraction
    first: int
    masses: Any
    infinite: int
    bits: int
    is_upper: bool
    cut_runs: int = 0

    @classmethod
    def from_laws(
        cls,
        p: Iterable[Fraction],
        q: Iterable[Fraction],
        step: Fraction,
        *,
        is_upper: bool,
        moves_down: bool = False,
        bits: int = 160,
    ) -> PrivacyLossLaw:
        """Build the loss of one run.

        Args:
            p: Masses of the law P, exact. Length m.
            q: Masses of the law Q on the same outcomes, exact. Length m.
            step: Step h > 0 of the grid.
            is_upper: Whether to round for upper bounds.
            moves_down: Whether the atoms of a lower law are moved down to the grid instead of cut.
            bits: Binary digits of the masses: their unit is 2^-bits.
        """
        from flint import fmpz_poly

        atoms: dict[int, int] = {}
        infinite = 0
        for mass_p, mass_q in zip(p, q, strict=True):
            if mass_p and not mass_q:
                infinite += _round_mass(mass_p, bits, rounds_up=is_upper)
            elif mass_p:
                parts = _place_on_grid(
                    mass_p, mass_q, step, bits, is_upper=is_upper, moves_down=moves_down
                )
                for index, mass in parts:
                    atoms[index] = atoms.get(index, 0) + mass
        first = min(atoms, default=0)
        coefficients = [0] * (max(atoms, default=0) - first + 1)
        for index, mass in atoms.items():
            coefficients[index - first] = mass
        cut_runs = int(not is_upper and not moves_down)
        return cls(
            step=step,
            first=first,
            masses=fmpz_poly(coefficients),
            infinite=infinite,
            bits=bits,
            is_upper=is_upper,
            cut_runs=cut_runs,
        )

    def __mul__(self, law: PrivacyLossLaw) -> PrivacyLossLaw:
        """Return the distribution of the sum of both losses, on the same grid."""
        from flint import fmpz_poly

        finite_total = int(self.masses(1))
        law_total = int(law.masses(1))
        infinite = self._divide_by_unit(
            self.infinite * (law.infinite + law_total) + finite_total * law.infinite
        )
        masses = self.masses * law.masses
        unit = 1 << self.bits
        if self.is_upper:
            # The masses are >= 0, so // rounds down. Adding unit - 1 first rounds them up.
            masses += fmpz_poly([unit - 1] * len(masses))
        cut_runs = self.cut_runs + law.cut_runs
        return self._trim(self.first + law.first, masses // unit, infinite, cut_runs)

    def power(self, times: int) -> PrivacyLossLaw:
        """Return the distribution of the loss of several runs.

        Args:
            times: Number of runs, >= 1.
        """
        # Squares are multiplied by the binary digits of `times`.
        product = None
        square = self
        while True:
            if times & 1:
                product = square if product is None else product * square
            times >>= 1
            if not times:
                assert product is not None
                return product
            square = square * square

    def _divide_by_unit(self, value: int) -> int:
        """Divide by 2^bits and round to the side of the law."""
        if self.is_upper:
            return -(-value >> self.bits)
        return value >> self.bits

    def _trim(self, first: int, masses: Any, infinite: int, cut_runs: int) -> PrivacyLossLaw:
        """Return a law with these masses but without light tails.

        `first` is the index of the first mass, `masses` a polynomial whose coefficients are the
        masses, and `infinite` the mass at ∞. `cut_runs` is stored in the law.

        An upper law moves the lower tail up to the lowest remaining loss, and the upper tail to ∞.
        """
        from flint import fmpz_poly

        coefficients = [int(mass) for mass in masses.coeffs()]
        low_count, low_mass = _count_light_masses(coefficients)
        falling = coefficients[low_count:][::-1]
        high_count, high_mass = _count_light_masses(falling)
        remaining = masses.truncate(len(coefficients) - high_count).right_shift(low_count)
        if self.is_upper:
            remaining += fmpz_poly([low_mass])
            infinite += high_mass
        return replace(
            self,
            first=first + low_count,
            masses=remaining,
            infinite=infinite,
            cut_runs=cut_runs,
        )

    def _bound_cut_shift(self, lost_mass: Fraction) -> RationalPair:
        """Return the shift s of ε and the mass η of the rule for cut atoms in the module header.

        Args:
            lost_mass: The chosen η in (0, 1).

        Returns:
            (s, η), or (0, 0) if no atoms were cut.
        """
        from flint import ctx

        if not self.cut_runs:
            return ZERO, ZERO
        with ctx.workprec(64):
            # For T cut runs, s - T h²/8 is h √(-T ln(η) / 2).
            tail = (-make_ball(lost_mass).log() * self.cut_runs / 2).sqrt()
        _, high = ball_ends(tail)
        return self.step * high + self.cut_runs * self.step**2 / 8, lost_mass

    def delta(self, epsilon: Fraction) -> Fraction:
        """Return an upper or lower bound on δ, depending on the side of the law, in [0, 1].

        Args:
            epsilon: ε >= 0.
        """
        unshifted = self._unshifted_delta(epsilon)
        if not unshifted or not self.cut_runs or not self.masses(1):
            return unshifted
        # η is at most a thousandth of δ and of 1 - δ (or 10^-12, if 1 - δ is smaller), so that
        # subtracting it hardly weakens the bound.
        max_lost_mass = unshifted * max(1 - unshifted, Fraction(1, 10**12)) / 1000
        shift, lost_mass = self._bound_cut_shift(max_lost_mass)
        return max(ZERO, self._unshifted_delta(epsilon + shift) - lost_mass)

    def epsilon(self, delta: Fraction) -> Fraction | None:
        """Return an upper or lower bound on the smallest ε >= 0, or None if there is no such ε.

        Args:
            delta: δ in (0, 1).
        """
        shift, lost_mass = self._bound_cut_shift(delta / 1000)
        unshifted = self._unshifted_epsilon(min(ONE, delta + lost_mass))
        if unshifted is None:
            return None
        return max(ZERO, unshifted - shift)

    def _iter_falling_losses(self) -> Iterator[tuple[int, int, Any]]:
        """Yield two sums over the losses above k h, for k from the largest index down to 0.

        If the largest index is negative, it is the only k.

        Yields:
            (k, mass of all losses > k h, ball around Σ mass e^(k h - loss) over these losses). The
            mass includes the loss ∞. Both are in units of 2^-bits.
        """
        from flint import arb

        masses = self.masses.coeffs()
        factor = (-make_ball(self.step)).exp()
        mass_beyond = self.infinite
        tilted_mass = arb(0)
        largest = self.first + len(masses) - 1
        for k in range(largest, min(largest, 0) - 1, -1):
            yield k, mass_beyond, tilted_mass
            mass = 0
            if k >= self.first:
                mass = masses[k - self.first]
            mass_beyond += mass
            tilted_mass = (tilted_mass + mass) * factor

    def _unshifted_delta(self, epsilon: Fraction) -> Fraction:
        """Return the bound on δ before the correction for cut atoms of a lower law."""
        from flint import arb, ctx

        last_index = math.floor(epsilon / self.step)
        with ctx.workprec(self.bits + 64):
            k, mass_beyond, tilted_mass = next(
                sums for sums in self._iter_falling_losses() if sums[0] <= last_index
            )
            excess = arb(mass_beyond) - tilted_mass * make_ball(epsilon - k * self.step).exp()
            low, high = ball_ends(excess)
        bound = low
        if self.is_upper:
            bound = high
        return min(ONE, max(ZERO, bound / (1 << self.bits)))

    def _unshifted_epsilon(self, delta: Fraction) -> Fraction | None:
        """Return the bound on ε before the correction for cut atoms of a lower law.

        None if no ε is sufficient for δ.
        """
        from flint import arb, ctx

        allowed_units = delta * (1 << self.bits)
        if self.infinite > allowed_units:
            return None
        with ctx.workprec(self.bits + 64):
            allowed = make_ball(allowed_units)
            allowed_floor = math.floor(allowed_units)
            for k, mass_beyond, tilted_mass in self._iter_falling_losses():
                # A comparison of balls is true only if it is certain.
                if mass_beyond > allowed_floor and not arb(mass_beyond) - tilted_mass <= allowed:
                    offset = ((arb(mass_beyond) - allowed) / tilted_mass).log()
                    low, high = ball_ends(offset)
                    return max(ZERO, k * self.step + (high if self.is_upper else low))
        return ZERO


def _place_on_grid(
    p: Fraction, q: Fraction, step: Fraction, bits: int, *, is_upper: bool, moves_down: bool
) -> list[Pair]:
    """Place one atom, the outcome with the masses p and q, on the grid of privacy losses.

    Returns one or two pairs (index k of the grid point k * step, mass under P in units of 2^-bits).
    The atom is split between its two neighbouring points unless `moves_down`. `is_upper` rounds
    masses up.
    """
    from flint import ctx

    if p == q:
        return [(0, _round_mass(p, bits, rounds_up=is_upper))]
    # 64 bits beyond those of the masses and of p, q usually decide the position at once.
    precision = bits + 64 + max(p.denominator.bit_length(), q.denominator.bit_length())
    # ln p/q is no multiple of a rational h (Lindemann), so some precision separates it from the
    # points of the grid.
    while True:
        with ctx.workprec(precision):
            h = make_ball(step)
            quotient_ends = ball_ends((make_ball(p) / make_ball(q)).log() / h)
            index, upper_index = (math.floor(end) for end in quotient_ends)
            if index == upper_index:
                break
        precision *= 2
    if moves_down:
        return [(index, _round_mass(p, bits, rounds_up=False))]
    with ctx.workprec(precision):
        left = (-index * h).exp()
        right = (-(index + 1) * h).exp()
        # This is the part of p at the lower of the two losses.
        low, high = ball_ends((make_ball(q) - make_ball(p) * right) / (left - right))
    lower_share, upper_share = (high, p - low) if is_upper else (low, p - high)
    parts = []
    for offset, share in enumerate((lower_share, upper_share)):
        clamped_share = min(p, max(ZERO, share))
        parts.append((index + offset, _round_mass(clamped_share, bits, rounds_up=is_upper)))
    return parts


def _count_light_masses(masses: Sequence[int]) -> Pair:
    """Return how many of the first masses are light enough to be removed, and their sum."""
    sums = [*accumulate(masses)]
    count = bisect_right(sums, _MAX_LIGHT_UNITS)
    return count, sums[count - 1] if count else 0


def _round_mass(mass: Fraction, bits: int, *, rounds_up: bool) -> int:
    """Round a mass up or down to an integer number of units of 2^-bits."""
    scaled = mass.numerator << bits
    if rounds_up:
        return -(-scaled // mass.denominator)
    return scaled // mass.denominator
