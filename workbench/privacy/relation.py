"""What is compared with what: the neighbouring distributions of a mechanism, each with its budget.

    mechanism                               comparisons
    additive noise f on a group             f against f(· + μ), for every difference μ of its question   (7), (8)
    finite channel Pr[k|q]                  row q against row q', for every ordered neighbouring pair     (3)

An audit needs nothing else of a mechanism, so anything with a `comparisons` method can be audited.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, Protocol, TypeAlias

import numpy as np

from workbench.errors import InvalidRequest
from workbench.mechanisms.additive import AdditiveNoise
from workbench.mechanisms.masses import Masses
from workbench.numbers import Real, positive

__all__ = ["Auditable", "Budget", "Channel", "Comparison", "Noise", "channel"]

Budget: TypeAlias = "Real | Mapping[Any, Real]"


@dataclass(frozen=True)
class Comparison:
    """P against Q under budget ε; label: the difference μ, or the ordered pair of rows (q, q')."""

    label: tuple[int, ...]
    p: Masses
    q: Masses
    epsilon: Fraction
    describe: Callable[[int], tuple[str, str]] = field(compare=False)  # outcome -> names of its mass in P and in Q


class Auditable(Protocol):
    """Anything that says which of its distributions neighbour each other."""

    def comparisons(self, epsilon: Budget) -> Iterable[Comparison]:
        """Every ordered neighbouring pair with its budget."""
        ...


@dataclass(frozen=True)
class Channel:
    """A finite channel: rows[q] is the output's distribution on answer q; pairs: the neighbouring rows, ordered."""

    rows: tuple[Masses, ...]
    pairs: tuple[tuple[int, int], ...]

    def budgets(self, epsilon: Budget) -> dict[tuple[int, int], Fraction]:
        """The budget of every ordered pair; a mapping may give (i, j) for both orders. Raises InvalidRequest."""
        if not isinstance(epsilon, Mapping):
            return dict.fromkeys(self.pairs, positive(epsilon, "epsilon", or_zero=True))
        found = {}
        for i, j in self.pairs:
            amount = epsilon.get((i, j), epsilon.get((j, i)))
            if amount is None:
                raise InvalidRequest(f"epsilon has no budget for the pair {(i, j)}.")
            found[i, j] = positive(amount, f"epsilon of pair {(i, j)}", or_zero=True)
        return found

    def comparisons(self, epsilon: Budget) -> Iterator[Comparison]:
        """Every ordered pair of rows with its budget."""
        for (i, j), budget in self.budgets(epsilon).items():

            def describe(k: int, i: int = i, j: int = j) -> tuple[str, str]:
                return f"Pr[{k}|{i}]", f"Pr[{k}|{j}]"

            yield Comparison((i, j), self.rows[i], self.rows[j], budget, describe)


@dataclass(frozen=True)
class Noise:
    """Additive noise as something auditable."""

    mechanism: AdditiveNoise

    def comparisons(self, epsilon: Budget) -> Iterator[Comparison]:
        """f against f moved by every difference."""
        question, f = self.mechanism.question, self.mechanism.masses
        for shift, budget in question.budgets(epsilon, or_zero=True).items():

            def describe(k: int, shift: tuple[int, ...] = shift) -> tuple[str, str]:
                ends = question.point(k), question.point(int(question.index(shift)[k]))
                return f"f({question.show(ends[0])})", f"f({question.show(ends[1])})"

            yield Comparison(shift, f, f.take(question.index(shift)), budget, describe)


def channel(rows: Sequence[Any] | np.ndarray[Any, Any], pairs: Iterable[Any], *, directed: bool = False) -> Channel:
    """A channel from a float matrix or rows of exact numbers, each normalised by its exact sum.

    rows: shape (inputs, outputs); pairs: neighbouring row indices (i, j), both orders unless directed.
    Raises InvalidRequest.
    """
    masses = []
    for row in rows:
        if isinstance(row, Masses):
            masses.append(row)
        elif isinstance(row, np.ndarray) or any(isinstance(value, float) for value in row):
            masses.append(Masses.from_floats(row, "a row of the channel"))
        else:
            masses.append(Masses(row, "a row of the channel"))
    if not masses or len({len(row) for row in masses}) != 1:
        InvalidRequest.must("rows", "rows of one length", [len(row) for row in masses])
    ordered: dict[tuple[int, int], None] = {}
    for pair in pairs:
        i, j = (int(end) for end in pair)
        if not (0 <= i < len(masses) and 0 <= j < len(masses)) or i == j:
            InvalidRequest.must("a pair", f"two different rows in 0..{len(masses) - 1}", pair)
        ordered[i, j] = None
        if not directed:
            ordered[j, i] = None
    if not ordered:
        InvalidRequest.must("pairs", "a list of at least one pair of neighbouring rows", "none")
    return Channel(tuple(masses), tuple(sorted(ordered)))
