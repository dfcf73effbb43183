"""The least T that every bound on S needs: what `workbench.models.modulo.levels` searches, and the frontier is read
from."""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass

ERROR_RATE_TOLERANCE = 0.9e-9  # of the error rate
_SAME = 1e-13  # relative: T is no lower


@dataclass
class Stairs:
    """What T every bound on S needs at most: T is t[i] for s[i] <= S < s[i + 1], in rising order of s.

    proven: the staircase is proven from this s on.
    """

    s: list[float]
    t: list[float]
    proven_from: float = 1.0

    def insert(self, T: float, S: float) -> None:
        """Enter a level function."""
        s, t = self.s, self.t
        i = bisect_right(s, S) - 1
        if t[i] <= T * (1.0 + _SAME):
            return
        first = i if s[i] == S else i + 1
        last = first
        while last < len(s) and t[last] >= T:
            last += 1
        s[first:last], t[first:last] = [S], [T]

    def corners(self) -> list[tuple[float, float]]:
        """The points (delta, rho*) at which rho* bends, from delta = 0 to 1: level, then falling as 1 - delta/S."""
        points = [(0.0, 1.0 - 1.0 / self.t[0])]
        for before, S, T in zip(self.t, self.s[1:], self.t[1:], strict=False):
            points += [(S / before, 1.0 - 1.0 / before), (S / T, 1.0 - 1.0 / T)]
        return points

    @property
    def proven_delta(self) -> float:
        """rho* is proven from this delta on: less S gives no more than the level that is reached there."""
        i = bisect_right(self.s, self.proven_from) - 1
        return self.s[i] / self.t[i]
