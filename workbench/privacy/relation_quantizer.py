"""A piecewise affine mechanism as something auditable: every real input neighbours every other.

The largest ratio and the largest hockey stick between the laws at any two real inputs are attained at end laws
(`workbench.mechanisms.piecewise`), so comparing every two of those is exact. The PDP δ is not convex in the laws
and its supremum may lie inside a piece: `workbench.privacy.pdp_quantizer`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

from workbench.errors import InvalidRequest
from workbench.mechanisms.piecewise import PiecewiseAffine
from workbench.numbers import positive
from workbench.privacy.relation import Budget, Comparison

__all__ = ["AllInputs"]


@dataclass(frozen=True)
class AllInputs:
    """A piecewise affine mechanism under the strongest relation: every two inputs of its range are neighbours."""

    mechanism: PiecewiseAffine
    pairs_decide_pdp: ClassVar[bool] = False

    @property
    def one_sided(self) -> bool:
        """Never: both orders are compared."""
        return False

    def _different(self) -> list[int]:
        """Positions of the end laws without repetitions (a continuous law repeats at every knot)."""
        first: dict[object, int] = {}
        for k, law in enumerate(self.mechanism.ends):
            first.setdefault(law, k)
        kept = sorted(first.values())
        return kept if len(kept) > 1 else [0, 1]

    def budgets(self, epsilon: Budget) -> dict[tuple[int, int], Fraction]:
        """One budget for every ordered pair of end laws. Raises InvalidRequest for a mapping."""
        if isinstance(epsilon, Mapping):
            found = set(epsilon.values())
            if len(found) != 1:
                raise InvalidRequest("epsilon must be one number for a mechanism on real inputs.")
            epsilon = next(iter(found))
        value = positive(epsilon, "epsilon", or_zero=True)
        kept = self._different()
        return {(i, j): value for i in kept for j in kept if i != j}

    def comparisons(self, epsilon: Budget) -> Iterator[Comparison]:
        """Every ordered pair of end laws."""
        ends, places = self.mechanism.ends, self.mechanism.places
        for (i, j), budget in self.budgets(epsilon).items():

            def describe(k: int, i: int = i, j: int = j) -> tuple[str, str]:
                return f"Pr[{k}|{_at(i)}]", f"Pr[{k}|{_at(j)}]"

            def _at(end: int) -> str:
                return f"x={float(places[end]):g}{'-' if end % 2 else '+'}"

            yield Comparison((i, j), ends[i], ends[j], budget, describe)
