"""Systems of interior-point methods by Cholesky factors, where floats may not have them positive.

Rows and columns are scaled to a diagonal of ones; where the factors do not exist, shifts of the diagonal are tried in
turn. Solutions are refined against the system without its shift.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial

import numpy as np
from numpy.linalg import LinAlgError

from workbench.solvers.arrays import Vector


class ScaledCholesky:
    """Factors of a symmetric system (n, n). shifts: of the scaled one; turns: of the refinement; band: how far from the
    diagonal the system is not 0, None where that is everywhere. Raises LinAlgError."""

    def __init__(
        self, system: Vector, shifts: Iterable[float], turns: int, band: int | None = None
    ) -> None:
        self._band = band
        if not (np.diag(system) > 0).all():
            raise LinAlgError("the system is not positive definite")
        self._size, self._turns, self._shifts = np.sqrt(np.diag(system)), turns, [*shifts]
        self._system = system / (self._size[:, None] * self._size)
        if not np.isfinite(self._system).all():
            raise LinAlgError("the system overflowed")
        self.stiffer()

    def stiffer(self) -> None:
        """The next shift that makes the system positive. Raises LinAlgError where there is none."""
        while self._shifts:
            shift = self._shifts.pop(0)
            try:
                self._factor(shift)
            except LinAlgError:
                continue
            return
        raise LinAlgError("the system is not positive definite")

    def _factor(self, shift: float) -> None:
        # slow to import, and programs that are small need none
        from scipy.linalg import cho_factor, cho_solve, cho_solve_banded, cholesky_banded

        if self._band is None:
            shifted = self._system + shift * np.eye(self._size.size) if shift else self._system
            self._solve = partial(
                cho_solve, cho_factor(shifted, lower=True, check_finite=False), check_finite=False
            )
            return
        lower = np.zeros((self._band + 1, self._size.size))
        for below in range(self._band + 1):
            lower[below, : self._size.size - below] = np.diagonal(self._system, -below)
        lower[0] += shift
        factors = cholesky_banded(lower, overwrite_ab=True, lower=True, check_finite=False), True
        self._solve = partial(cho_solve_banded, factors, check_finite=False)

    def solve(self, right: Vector) -> Vector:
        """The solution (n,)."""
        right = right / self._size
        x = self._solve(right)
        for _ in range(self._turns):
            x += self._solve(right - self._system @ x)
        return x / self._size
