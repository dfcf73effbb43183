"""Systems of interior-point methods by Cholesky factors, where floats may not have them positive.

Rows and columns are scaled to a diagonal of ones; where the factors do not exist, shifts of the diagonal are tried in
turn. Solutions are refined against the system without its shift.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from numpy.linalg import LinAlgError

from solvers.arrays import Vector


class ScaledCholesky:
    """Factors of a symmetric system (n, n). shifts: of the scaled one; turns: of the refinement. Raises LinAlgError."""

    def __init__(self, system: Vector, shifts: Iterable[float], turns: int) -> None:
        self._size, self._turns, self._shifts = np.sqrt(np.diag(system)), turns, [*shifts]
        self._system = system / (self._size[:, None] * self._size)
        if not np.isfinite(self._system).all():
            raise LinAlgError("the system overflowed")
        self.stiffer()

    def stiffer(self) -> None:
        """The next shift that makes the system positive. Raises LinAlgError where there is none."""
        from scipy.linalg import cho_factor  # slow to import, and programs that are small need none

        while self._shifts:
            shift = self._shifts.pop(0)
            shifted = self._system + shift * np.eye(self._size.size) if shift else self._system
            try:
                self._factors = cho_factor(shifted, lower=True, check_finite=False)
            except LinAlgError:
                continue
            return
        raise LinAlgError("the system is not positive definite")

    def solve(self, right: Vector) -> Vector:
        """The solution (n,)."""
        from scipy.linalg import cho_solve

        right = right / self._size
        x = cho_solve(self._factors, right, check_finite=False)
        for _ in range(self._turns):
            x += cho_solve(self._factors, right - self._system @ x, check_finite=False)
        return x / self._size
