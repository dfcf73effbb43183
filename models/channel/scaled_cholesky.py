"""Solve the linear systems of interior-point methods by Cholesky factors, despite rounding.

Rounding may make the matrix of such a system indefinite, so that it has no Cholesky factors.

Rows and columns are scaled to a diagonal of ones. If the factors do not exist, shifts of the
diagonal are tried in turn. Solutions are refined against the system without its shift.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial

import numpy as np
from numpy.linalg import LinAlgError

from workbench.solvers.arrays import Vector


class ScaledCholesky:
    """The factors of a symmetric positive definite system.

    Args:
        system: the matrix, shape (n, n).
        shifts: shifts of the diagonal of the scaled system, in the order in which they are tried.
        turns: number of refinement steps of every solution.
        band: bandwidth of the system; None for a full matrix.

    Raises:
        LinAlgError: the system has no factors at any shift, or has infinite entries.
    """

    def __init__(
        self,
        system: Vector,
        shifts: Iterable[float],
        turns: int,
        band: int | None = None,
    ) -> None:
        self._band = band
        diagonal = np.diag(system)
        if not (diagonal > 0).all():
            raise LinAlgError("the system is not positive definite")
        self._scale = np.sqrt(diagonal)
        self._turns = turns
        self._shifts = [*shifts]
        self._system = system / (self._scale[:, None] * self._scale)
        if not np.isfinite(self._system).all():
            raise LinAlgError("the system overflowed")
        self.increase_shift()  # This is the first factorization.

    def increase_shift(self) -> None:
        """Factor with the next shift at which the system has Cholesky factors.

        Raises:
            LinAlgError: no shift is left at which the system has factors.
        """
        while self._shifts:
            shift = self._shifts.pop(0)
            try:
                self._factor(shift)
            except LinAlgError:
                continue
            return
        raise LinAlgError("the system is not positive definite")

    def _factor(self, shift: float) -> None:
        """Factor the scaled system with a shift of its diagonal."""
        # This import is slow, and small programs do not need it.
        from scipy.linalg import cho_factor, cho_solve, cho_solve_banded, cholesky_banded

        n = len(self._scale)
        if self._band is None:
            system = self._system
            if shift:
                system = system + shift * np.eye(n)
            factors = cho_factor(system, lower=True, check_finite=False)
            self._solve = partial(cho_solve, factors, check_finite=False)
            return
        diagonals = np.zeros((self._band + 1, n))
        for offset in range(self._band + 1):
            diagonals[offset, : n - offset] = np.diagonal(self._system, -offset)
        diagonals[0] += shift
        lower = cholesky_banded(diagonals, overwrite_ab=True, lower=True, check_finite=False)
        self._solve = partial(cho_solve_banded, (lower, True), check_finite=False)

    def solve(self, right: Vector) -> Vector:
        """Solve the system.

        Args:
            right: right-hand side, shape (n,).

        Returns:
            The solution, shape (n,).
        """
        right = right / self._scale
        x = self._solve(right)
        for _ in range(self._turns):
            x += self._solve(right - self._system @ x)
        return x / self._scale
