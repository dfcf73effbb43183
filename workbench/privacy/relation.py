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
from typing import Any, ClassVar, Protocol, TypeAlias

import numpy as np

from workbench.errors import InvalidRequest
from workbench.mechanisms.additive import AdditiveNoise
from workbench.mechanisms.channel import Channel
from workbench.mechanisms.masses import Masses
from workbench.numbers import Real, positive

__all__ = ["Auditable", "Budget", "ChannelPairs", "Comparison", "Noise", "Rows"]

Budget: TypeAlias = "Real | Mapping[Any, Real]"
Rows: TypeAlias = "Channel | Sequence[Any] | np.ndarray[Any, Any]"


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

    def budgets(self, epsilon: Budget) -> dict[Any, Fraction]:
        """The budget of every comparison, by label."""
        ...

    def comparisons(self, epsilon: Budget) -> Iterable[Comparison]:
        """Every ordered neighbouring pair with its budget."""
        ...

    @property
    def one_sided(self) -> bool:
        """Whether some pair is compared in one order only, which real neighbours never are."""
        ...

    @property
    def pairs_decide_pdp(self) -> bool:
        """Whether the largest PDP δ is that of one of the comparisons."""
        ...


@dataclass(frozen=True)
class ChannelPairs:
    """A finite channel and its neighbouring answers: pairs holds ordered row indices. Build it with `of`."""

    channel: Channel
    pairs: tuple[tuple[int, int], ...]
    pairs_decide_pdp: ClassVar[bool] = True

    @classmethod
    def of(cls, rows: Rows, pairs: Iterable[Any], *, directed: bool = False) -> ChannelPairs:
        """Rows (a Channel, a float matrix, or rows of exact numbers) with neighbouring row indices.

        pairs: (i, j) of different rows; both orders count unless directed. Raises InvalidRequest.
        """
        channel = rows if isinstance(rows, Channel) else Channel.from_rows(rows)
        top = len(channel.rows) - 1
        ordered: set[tuple[int, int]] = set()
        for pair in pairs:
            ends = tuple(pair)
            if len(ends) != 2 or not all(isinstance(end, (int, np.integer)) and 0 <= end <= top for end in ends):
                InvalidRequest.must("a pair", f"two rows in 0..{top}", pair)
            i, j = int(ends[0]), int(ends[1])
            if i == j:
                InvalidRequest.must("a pair", "two different rows", pair)
            ordered |= {(i, j)} if directed else {(i, j), (j, i)}
        if not ordered:
            InvalidRequest.must("pairs", "a list of at least one pair of neighbouring rows", "none")
        return cls(channel, tuple(sorted(ordered)))

    @property
    def one_sided(self) -> bool:
        """Whether a pair is listed in one order only."""
        return not {(j, i) for i, j in self.pairs} <= {*self.pairs}

    def budgets(self, epsilon: Budget) -> dict[tuple[int, int], Fraction]:
        """The budget of every ordered pair; a mapping may give (i, j) for both orders. Raises InvalidRequest."""
        if not isinstance(epsilon, Mapping):
            return dict.fromkeys(self.pairs, positive(epsilon, "epsilon", or_zero=True))
        found = {}
        known = {*self.pairs, *((j, i) for i, j in self.pairs)}
        for label in epsilon:
            if label not in known:
                raise InvalidRequest(f"epsilon has a budget for {label}, which is not one of the pairs.")
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

            yield Comparison((i, j), self.channel.rows[i], self.channel.rows[j], budget, describe)


@dataclass(frozen=True)
class Noise:
    """Additive noise as something auditable."""

    mechanism: AdditiveNoise
    pairs_decide_pdp: ClassVar[bool] = True

    @property
    def one_sided(self) -> bool:
        """Whether a difference is in M without its negative."""
        question = self.mechanism.question
        return not {*map(question.negative, question.differences)} <= {*question.differences}

    def budgets(self, epsilon: Budget) -> dict[tuple[int, ...], Fraction]:
        """The budget of every difference; 0 is allowed here. Raises InvalidRequest."""
        return self.mechanism.question.budgets(epsilon, or_zero=True)

    def comparisons(self, epsilon: Budget) -> Iterator[Comparison]:
        """f against f moved by every difference."""
        question, f = self.mechanism.question, self.mechanism.masses
        for shift, budget in self.budgets(epsilon).items():

            def describe(k: int, shift: tuple[int, ...] = shift) -> tuple[str, str]:
                ends = question.point(k), question.point(int(question.index(shift)[k]))
                return f"f({question.show(ends[0])})", f"f({question.show(ends[1])})"

            yield Comparison(shift, f, f.take(question.index(shift)), budget, describe)
