"""Store the smallest total weight T of a level function for every bound on its broken weight S.

T as a function of the bound is a staircase. `workbench.models.modulo.levels` searches it, and the
smallest error rate rho*(delta) of PDP noise is computed from it for every delta.

Notation. A level function gives every noise value eta a level l(eta), and so a weight a^l(eta) with
a = e^-eps. T is the sum of all weights. S is the weight of the noise values whose privacy
inequality the weights break, for the shift mu where this weight is largest
(`workbench.models.modulo.levels` has the theorem). Noise with these weights has
f(0) = min(1/T, delta/S), and the error rate is 1 - f(0).
"""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass

ERROR_RATE_TOLERANCE = 0.9e-9  # The staircase is proven up to this error of the error rate.
_SAME_T_TOLERANCE = 1e-13  # A T must be lower by more than this share to become a new stair.


@dataclass
class Stairs:
    """An upper bound on the smallest T for every bound on S.

    Attributes:
        s: bounds on S, rising; t[i] holds for s[i] <= S < s[i + 1].
        t: values of T, falling.
        proven_from: the staircase is proven from this S on.
    """

    s: list[float]
    t: list[float]
    proven_from: float = 1.0

    def insert(self, T: float, S: float) -> None:
        """Add a level function, unless it has no lower T than the stairs at its S.

        Args:
            T: total weight of the level function.
            S: weight of its broken pairs.
        """
        s = self.s
        t = self.t
        i = bisect_right(s, S) - 1
        if t[i] <= T * (1.0 + _SAME_T_TOLERANCE):
            return
        first = i if s[i] == S else i + 1
        last = first
        while last < len(s) and t[last] >= T:
            last += 1
        s[first:last] = [S]
        t[first:last] = [T]

    def corners(self) -> list[tuple[float, float]]:
        """Return the points (delta, rho*) at which rho* bends, from delta = 0 to 1.

        Between consecutive points rho* is linear: by turns it is constant and falls as 1 - delta/S.
        """
        points = [(0.0, 1.0 - 1.0 / self.t[0])]
        for last_T, S, T in zip(self.t, self.s[1:], self.t[1:], strict=False):
            points += [(S / last_T, 1.0 - 1.0 / last_T), (S / T, 1.0 - 1.0 / T)]
        return points

    @property
    def proven_delta(self) -> float:
        """Return the delta from which on rho* is proven.

        It is S/T of the stair that holds at `proven_from`. A level function of smaller S has no
        smaller T, so at this and every larger delta its f(0) is at most that of the proven stairs.
        """
        i = bisect_right(self.s, self.proven_from) - 1
        return self.s[i] / self.t[i]
