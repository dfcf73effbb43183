"""Additive noise on a finite abelian group: answer q is published as q + η modulo the group, η ~ f.

f is held exactly (`Masses`), so that what is audited, saved and sampled is one and the same mechanism.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from workbench.errors import CorruptFile, InvalidRequest
from workbench.mechanisms.masses import Masses
from workbench.mechanisms.modulo import ModuloNoise

__all__ = ["AdditiveNoise", "ModuloNoise"]


@dataclass(frozen=True, init=False, repr=False)
class AdditiveNoise:
    """The mechanism q -> q + η on the group of a question, Pr[η] = weights[η] / Σ weights.

    question: the ModuloNoise it answers; weights: N non-negative ints or Fractions in row-major order, not all zero.
    Frozen and hashable; two mechanisms with proportional weights are equal. Raises InvalidRequest.
    """

    question: ModuloNoise
    masses: Masses

    def __init__(self, question: ModuloNoise, weights: Iterable[Any] | Masses) -> None:
        self._set(question, weights if isinstance(weights, Masses) else Masses(weights))

    @classmethod
    def from_pmf(cls, question: ModuloNoise, pmf: ArrayLike) -> AdditiveNoise:
        """The mechanism a float PMF describes.

        Every float is read as the exact rational it is, and the exact sum of them (1 up to rounding, for a solver's
        answer) is divided out. pmf: shape (N,) row-major, or the sizes of the group.
        Raises InvalidRequest for NaN, infinities, negative masses, a wrong shape and a zero sum.
        """
        array = np.asarray(pmf)
        if array.shape not in {(question.order,), question.sizes}:
            InvalidRequest.must("pmf", f"an array of {question.order} masses", f"shape {array.shape}")
        self = cls.__new__(cls)
        self._set(question, Masses.from_floats(array.reshape(-1)))
        return self

    def _set(self, question: ModuloNoise, masses: Masses) -> None:
        if not isinstance(question, ModuloNoise):
            InvalidRequest.must("question", "a ModuloNoise", question)
        if len(masses) != question.order:
            InvalidRequest.must("weights", f"a list of {question.order} masses", f"{len(masses)}")
        object.__setattr__(self, "question", question)
        object.__setattr__(self, "masses", masses)

    @property
    def pmf(self) -> NDArray[np.float64]:
        """f as floats, each the nearest to its exact value. Shape (N,), row-major, read-only."""
        return self.masses.floats

    @property
    def exact_pmf(self) -> list[Fraction]:
        """f as exact rationals. N of them, row-major."""
        return [self.masses[i] for i in range(len(self.masses))]

    @property
    def error_rate(self) -> float:
        """ER = Pr[η != 0] = 1 - f(0), the float nearest to the exact value."""
        return float(1 - self.masses[0])

    def expected(self, cost: ArrayLike) -> float:
        """Σ f(η) cost(η), correct to a few ulps. cost: shape (N,) row-major, or the sizes of the group; finite."""
        array = np.asarray(cost, dtype=np.float64)
        if array.shape not in {(self.question.order,), self.question.sizes}:
            InvalidRequest.must("cost", f"an array of {self.question.order} numbers", f"shape {array.shape}")
        if not np.isfinite(array).all():
            InvalidRequest.must("cost", "an array of finite numbers", array)
        return math.fsum(self.pmf * array.reshape(-1))

    def to_dict(self) -> dict[str, Any]:
        """A JSON-ready description, read back by `from_dict`: the question and the weights as hexadecimal integers."""
        return {"question": self.question.to_dict(), "weights": [hex(k) for k in self.masses.integers]}

    @classmethod
    def from_dict(cls, data: Any) -> AdditiveNoise:
        """The mechanism written by `to_dict`, which claims no privacy: audit it. Raises CorruptFile."""
        if not isinstance(data, Mapping) or set(data) != {"question", "weights"}:
            raise CorruptFile("Additive noise must have exactly the entries question and weights.")
        question = ModuloNoise.from_dict(data["question"])
        try:
            return cls(question, [int(k, 16) for k in data["weights"]])
        except (TypeError, ValueError) as error:
            raise CorruptFile(f"The weights in the file are not valid: {error}") from error

    def __repr__(self) -> str:
        return f"AdditiveNoise({self.question!r}, error_rate={self.error_rate:.6g})"
