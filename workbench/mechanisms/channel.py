"""A finite channel: Pr[k | q] for answers q = 0..n and outputs k, every row held exactly.

MSE = 1/(n+1) Σ_q Σ_k Pr[k|q] (k - q)²        ER = 1 - 1/(n+1) Σ_q Pr[q|q]        (answers uniform)
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from workbench.errors import InvalidRequest
from workbench.mechanisms.additive import AdditiveNoise
from workbench.mechanisms.masses import Masses

__all__ = ["Channel", "within"]


@dataclass(frozen=True)
class Channel:
    """rows[q]: the exact distribution of the output on answer q. Build it with `from_rows` or `from_noise`."""

    rows: tuple[Masses, ...]

    def __post_init__(self) -> None:
        if not self.rows or len({len(row) for row in self.rows}) != 1:
            InvalidRequest.must("rows", "at least one row, all of one length", [len(row) for row in self.rows])

    @classmethod
    def from_rows(cls, rows: Sequence[Any] | np.ndarray[Any, Any]) -> Channel:
        """The channel with these rows, each normalised by its exact sum.

        rows: shape (answers, outputs); floats are read as the exact rationals they are, else ints and Fractions.
        Raises InvalidRequest for NaN, infinities, negative numbers, rows of zeros and rows of different lengths.
        """
        found = []
        for row in rows:
            if isinstance(row, Masses):
                found.append(row)
            elif isinstance(row, np.ndarray) or any(isinstance(value, float) for value in row):
                found.append(Masses.from_floats(row, "a row of the channel"))
            else:
                found.append(Masses(row, "a row of the channel"))
        return cls(tuple(found))

    @classmethod
    def from_noise(cls, noise: AdditiveNoise) -> Channel:
        """Additive noise as a channel between row-major positions: Pr[k|q] = f(k - q) in the group. N x N masses."""
        question = noise.question
        rows = []
        for q in range(question.order):
            point = question.point(q)
            back = question.index(question.negative(point)) if any(point) else np.arange(question.order)
            rows.append(noise.masses.take(back))
        return cls(tuple(rows))

    @cached_property
    def matrix(self) -> NDArray[np.float64]:
        """Pr[k|q] as floats. Shape (answers, outputs)."""
        return np.array([row.floats for row in self.rows])

    def expected(self, cost: ArrayLike) -> float:
        """1/(n+1) Σ_q Σ_k Pr[k|q] cost[q, k], correct to a few ulps. cost: shape (answers, outputs)."""
        table = np.asarray(cost, dtype=np.float64)
        if table.shape != self.matrix.shape:
            InvalidRequest.must("cost", f"an array of shape {self.matrix.shape}", f"shape {table.shape}")
        return math.fsum((self.matrix * table).reshape(-1)) / len(self.rows)

    @property
    def mse(self) -> float:
        """The mean squared error of the published answer, answers uniform on 0..n."""
        return self.expected(self._gap() ** 2)

    @property
    def error_rate(self) -> float:
        """The probability that the published answer is wrong, answers uniform on 0..n."""
        return self.expected(self._gap() != 0)

    def _gap(self) -> NDArray[np.int64]:
        answers, outputs = self.matrix.shape
        return np.arange(outputs)[None, :] - np.arange(answers)[:, None]


def within(n: int, max_shift: int) -> list[tuple[int, int]]:
    """The neighbouring answers {q, q'} of 0..n with 0 < |q - q'| <= max_shift, each once. Raises InvalidRequest."""
    if not 1 <= max_shift <= n:
        InvalidRequest.must("max_shift", f"an integer in 1..{n}", max_shift)
    return [(q, q + shift) for q in range(n + 1) for shift in range(1, max_shift + 1) if q + shift <= n]
