"""Store the smallest total weight T of a level function for every bound on its broken weight S.

T as a function of the bound is a staircase. `workbench.models.modulo.levels` defines T and S and
searches the staircase; the frontier of the error rate is computed from it.
"""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass

ERROR_RATE_TOLERANCE = 0.9e-9  # The staircase is proven to this tolerance of the error rate.
_SAME_T_TOLERANCE = 1e-13  # A T that is not lower by this relative amount does not count.


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
        """Add the sums of a level function.

        Args:
            T: its T.
            S: its S.
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

        Between them rho* is constant, then falls as 1 - delta/S, in turn.
        """
        points = [(0.0, 1.0 - 1.0 / self.t[0])]
        for last_T, S, T in zip(self.t, self.s[1:], self.t[1:], strict=False):
            points += [(S / last_T, 1.0 - 1.0 / last_T), (S / T, 1.0 - 1.0 / T)]
        return points

    @property
    def proven_delta(self) -> float:
        """Return the delta from which on rho* is proven.

        A smaller S gives no more than the step of the staircase at `proven_from`.
        """
        i = bisect_right(self.s, self.proven_from) - 1
        return self.s[i] / self.t[i]
