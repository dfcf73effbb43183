"""The privacy loss of many runs, by convolution in integers, every rounding to one side.

Of a pair of laws (P, Q), the loss ln P/Q under P decides H_E = Σ max(0, P - E Q) for every E, and the loss of a product
of pairs is the sum of the losses. Losses are put on a grid i h and masses on multiples of 2^-bits, so that

    upper   every atom (p, q) of loss L in [i h, (i+1) h) is cut into two of losses i h and (i+1) h, of the same p and q
            in all: merging the two is post-processing, so the cut pair dominates (it is the "connect the dots" of
            Doroshenko et al. 2022), and costs only O(h²). Masses round up; a tail of mass < 2^-cut is taken to loss ∞,
            or up to the lowest loss that is kept
    lower   masses round down and tails are dropped, which makes H smaller. With few runs, L goes down to i h, and H
            with it. With many, atoms are cut as above and ε is shifted: a cut moves a loss by Z in an interval of
            length h with E e^-Z = 1, hence E Z <= h²/8, and T of them by more than s with probability at most
            η = exp(-2 (s - T h²/8)² / (T h²)) (Hoeffding's lemma, twice): δ(ε - s) >= δ of the cut pair at ε, less η

The convolutions themselves are exact (FLINT). So δ and ε of an upper law are proven upper bounds, of a lower law proven
lower bounds, for adaptive runs as well when (P, Q) dominates each of them (Zhu, Dong and Wang 2022).
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


@dataclass(frozen=True)
class LossLaw:
    """Masses of the losses (first + k) step, and of the loss ∞, in units of 2^-bits.

    masses: fmpz_poly, the k-th coefficient belonging to the k-th loss; upper: to which side everything is rounded;
    moved: in how many runs atoms of a lower law were cut.
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
    ) -> LossLaw:
        """The loss of one run. p, q: exact laws on the same outcomes; step: h > 0; floor: move the atoms of a lower law
        down, do not cut them."""
        from flint import fmpz_poly

        atoms: dict[int, int] = {}
        infinite = 0
        for a, b in zip(p, q, strict=True):
            if a and not b:
                infinite += _round_mass(a, bits, up=is_upper)
            elif a:
                for index, mass in _place_on_grid(
                    a, b, step, bits, upper=is_upper, floor=moves_down
                ):
                    atoms[index] = atoms.get(index, 0) + mass
        first = min(atoms, default=0)
        listed = [0] * (max(atoms, default=0) - first + 1)
        for index, mass in atoms.items():
            listed[index - first] = mass
        return cls(
            step,
            first,
            fmpz_poly(listed),
            infinite,
            bits,
            is_upper,
            int(not is_upper and not moves_down),
        )

    def __mul__(self, other: LossLaw) -> LossLaw:
        """The loss of both runs."""
        from flint import fmpz_poly

        total, others = (int(law.masses(1)) for law in (self, other))
        infinite = self._divide_by_unit(
            self.infinite * (other.infinite + others) + total * other.infinite
        )
        masses, unit = self.masses * other.masses, 1 << self.bits
        if self.is_upper:
            masses += fmpz_poly(
                [unit - 1] * len(masses)
            )  # masses are >= 0: // rounds them down, and so up
        return self._trim(
            self.first + other.first, masses // unit, infinite, self.cut_runs + other.cut_runs
        )

    def power(self, times: int) -> LossLaw:
        """The loss of as many runs, times >= 1."""
        result, square = None, self
        while True:
            if times & 1:
                result = square if result is None else result * square
            times >>= 1
            if not times:
                assert result is not None
                return result
            square = square * square

    def _divide_by_unit(self, value: int) -> int:
        return -(-value >> self.bits) if self.is_upper else value >> self.bits

    def _trim(self, first: int, masses: Any, infinite: int, moved: int) -> LossLaw:
        from flint import fmpz_poly

        listed = [int(mass) for mass in masses.coeffs()]
        low, below = _count_light_masses(listed)
        high, above = _count_light_masses(listed[: low - 1 if low else None : -1])
        kept = masses.truncate(len(listed) - high).right_shift(low)
        if self.is_upper:
            kept += fmpz_poly([below])
            infinite += above
        return replace(self, first=first + low, masses=kept, infinite=infinite, cut_runs=moved)

    def _bound_cut_shift(self, share: Fraction) -> RationalPair:
        """(s, η) of the module's rule, with η at most `share`."""
        from flint import ctx

        if not self.cut_runs:
            return ZERO, ZERO
        with ctx.workprec(64):
            tail = (-make_ball(share).log() * self.cut_runs / 2).sqrt()
        return self.step * ball_ends(tail)[1] + self.cut_runs * self.step**2 / 8, share

    def delta(self, epsilon: Fraction) -> Fraction:
        """A bound on δ at ε >= 0, to the side of the law; in [0, 1]."""
        first = self._unshifted_delta(epsilon)
        if not first or not self.cut_runs or not self.masses(1):
            return first
        shift, lost = self._bound_cut_shift(first * max(1 - first, Fraction(1, 10**12)) / 1000)
        return max(ZERO, self._unshifted_delta(epsilon + shift) - lost)

    def epsilon(self, delta: Fraction) -> Fraction | None:
        """A bound on the least ε >= 0 that holds at δ in (0, 1), to the side of the law; None: there is none."""
        shift, lost = self._bound_cut_shift(delta / 1000)
        least = self._unshifted_epsilon(min(ONE, delta + lost))
        return None if least is None else max(ZERO, least - shift)

    def _iter_falling_losses(self) -> Iterator[tuple[int, int, Any]]:
        """(k, the masses of the losses beyond k, a ball around Σ of these times e^(k step - loss)) from the largest
        loss down to 0."""
        from flint import arb

        masses, factor = self.masses.coeffs(), (-make_ball(self.step)).exp()
        above, tilted, largest = self.infinite, arb(0), self.first + len(masses) - 1
        for k in range(largest, min(largest, 0) - 1, -1):
            yield k, above, tilted
            mass = masses[k - self.first] if k >= self.first else 0
            above, tilted = above + mass, (tilted + mass) * factor

    def _unshifted_delta(self, epsilon: Fraction) -> Fraction:
        from flint import arb, ctx

        at = math.floor(epsilon / self.step)
        with ctx.workprec(self.bits + 64):
            k, above, tilted = next(each for each in self._iter_falling_losses() if each[0] <= at)
            low, high = ball_ends(arb(above) - tilted * make_ball(epsilon - k * self.step).exp())
        return min(ONE, max(ZERO, (high if self.is_upper else low) / (1 << self.bits)))

    def _unshifted_epsilon(self, delta: Fraction) -> Fraction | None:
        from flint import arb, ctx

        most = delta * (1 << self.bits)
        if self.infinite > most:
            return None
        with ctx.workprec(self.bits + 64):
            allowed, surely = make_ball(most), math.floor(most)
            for k, above, tilted in self._iter_falling_losses():
                if above > surely and not arb(above) - tilted <= allowed:
                    low, high = ball_ends(((arb(above) - allowed) / tilted).log())
                    return max(ZERO, k * self.step + (high if self.is_upper else low))
        return ZERO


def _place_on_grid(
    p: Fraction, q: Fraction, step: Fraction, bits: int, *, upper: bool, floor: bool
) -> list[Pair]:
    """One atom on the grid: (index, mass)."""
    from flint import ctx

    if p == q:
        return [(0, _round_mass(p, bits, up=upper))]
    precision = bits + 64 + max(p.denominator.bit_length(), q.denominator.bit_length())
    while True:  # ln p/q is no multiple of a rational h (Lindemann): some precision tells between which it lies
        with ctx.workprec(precision):
            h = make_ball(step)
            index, above = (
                math.floor(end) for end in ball_ends((make_ball(p) / make_ball(q)).log() / h)
            )
            if index == above:
                break
        precision *= 2
    if floor:
        return [(index, _round_mass(p, bits, up=False))]
    with ctx.workprec(precision):
        left, right = (-index * h).exp(), (-(index + 1) * h).exp()
        low, high = ball_ends(
            (make_ball(q) - make_ball(p) * right) / (left - right)
        )  # of p, at the lower loss
    if not upper:
        low, high = high, low
    shares = (min(p, max(ZERO, share)) for share in (high, p - low))
    return [(index + k, _round_mass(share, bits, up=upper)) for k, share in enumerate(shares)]


def _count_light_masses(masses: Sequence[int]) -> Pair:
    """How many of the first masses are together at most 2^40 units, so light that they are not carried along, and their
    sum."""
    sums = [*accumulate(masses)]
    count = bisect_right(sums, 1 << 40)
    return count, sums[count - 1] if count else 0


def _round_mass(mass: Fraction, bits: int, *, up: bool) -> int:
    scaled = mass.numerator << bits
    return -(-scaled // mass.denominator) if up else scaled // mass.denominator
