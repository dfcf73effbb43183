"""What a request for a channel may say, in exact numbers, checked before anything is built."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array
from scipy.sparse.csgraph import dijkstra

from models.channel import CONSTRAINTS, ChannelModel, Pairs, UserRows
from models.noise import MASS_SCALE
from solvers.backend import Options
from workbench.errors import InvalidRequest
from workbench.families.base import Request
from workbench.families.channel.losses import LossTable, OwnLoss, loss_table
from workbench.families.composed import check_runs
from workbench.families.requirements import MASS_ABOVE_RATIO, Bounds, ratio_bounds, ratio_kind
from workbench.io.files import spelled
from workbench.mechanisms.channel import Channel
from workbench.mechanisms.finite_query import FiniteQuery
from workbench.privacy.claim import Claim
from workbench.privacy.notions import notion

__all__ = ["ChannelRequest", "ChannelTooLarge"]

LARGEST, LEAST = 20, Fraction(1, 10**9)  # ε: e^ε is a coefficient of the program
MOST = 1_000_000  # masses that a program compares; a minute or two
MOST_CELLS = 1_100_000  # of a channel that needs no program
MOST_BINARIES = 4_000
_TRUNCATED = 5_000  # masses from which those that δ makes needless are left out at first


class ChannelTooLarge(InvalidRequest):
    """A program too large to be stated; the message says which size would fit."""


@dataclass(frozen=True, kw_only=True, eq=False)
class ChannelRequest(Request):
    """The least-loss channel within (ε, δ), or the least δ or ε within a budget of the loss.

    loss: a name, a matrix (k, m), or a function (input, output) -> number. minimise: "error", "delta" or "epsilon";
    budget: of the loss, where it is not minimised. epsilon: with notion "metric" per unit of distance; an upper limit
    where it is minimised. constraints: names of `models.channel.CONSTRAINTS`; more: a function of the CVXPY variable.
    runs: that the budget is for in all. losses: the table of the loss.
    """

    question: FiniteQuery
    epsilon: Fraction | None = None
    delta: Fraction | None = None
    notion: str = "dp"
    loss: OwnLoss = "squared"
    minimise: str = "error"
    budget: Fraction | None = None
    constraints: tuple[str, ...] = ()
    more: UserRows | None = None
    runs: int = 1
    solver: str = "highs"
    options: Options = field(default_factory=Options)
    losses: LossTable = field(init=False, repr=False)

    def __post_init__(self) -> None:
        for name in ("claim", "bounds"):  # of the request that this one was copied from
            self.__dict__.pop(name, None)
        if "losses" not in self.__dict__:  # they do not move with hot options
            object.__setattr__(self, "losses", loss_table(self.question, self.loss))
            self._check_constraints()
        self._check_budget()
        epsilons = self.bounds.epsilons.values()
        if max(epsilons) > LARGEST or min(epsilons) < LEAST:
            worst = max(epsilons) if max(epsilons) > LARGEST else min(epsilons)
            got = spelled(worst) if worst.denominator < 10**9 else f"{float(worst):g}"
            InvalidRequest.must("epsilon", f"between {float(LEAST):g} and {LARGEST} for every pair of neighbours", got)
        self._check_size()
        if self.runs > 1:
            check_runs(self)

    def _check_budget(self) -> None:
        named = notion(self.notion)
        if self.minimise == "epsilon":
            object.__setattr__(self, "epsilon", self.epsilon or Fraction(LARGEST))
        if self.epsilon is None:
            raise InvalidRequest("epsilon must be given unless it is minimised. Got none.")
        if self.minimise == "delta" and not named.has_delta:
            InvalidRequest.must("minimise", f"error or epsilon when notion is {self.notion}, which has no delta",
                                repr("delta"))  # fmt: skip
        if self.minimise == "delta" and ratio_kind(self.notion) == MASS_ABOVE_RATIO:
            InvalidRequest.must("notion", "dp where delta is minimised", repr(self.notion))
        if (self.budget is None) == (self.minimise != "error"):
            got = "none" if self.budget is None else spelled(self.budget)
            InvalidRequest.must("budget", "given where delta or epsilon is minimised, and only there", got)
        if self.budget is not None and self.budget < 0:
            InvalidRequest.must("budget", "a number >= 0", spelled(self.budget))
        if self.minimise != "delta":
            object.__setattr__(self, "delta", self.delta or Fraction(0))
        if self.delta and not named.has_delta:
            InvalidRequest.must("delta", f"0 when notion is {self.notion}", spelled(self.delta))

    def _check_constraints(self) -> None:
        object.__setattr__(self, "constraints", tuple(dict.fromkeys(self.constraints)))
        numbers = self.question.numbers
        ordered = numbers is not None and all(sorted(values) == [*values] for values in numbers)
        for name in self.constraints:
            if name not in CONSTRAINTS:
                InvalidRequest.must("constraints", f"among {', '.join(CONSTRAINTS)}", repr(name))
            if name != "symmetric" and not ordered:
                InvalidRequest.must(
                    "constraints", "left out for inputs or outputs that are no increasing numbers", name
                )

    def _check_size(self) -> None:
        """Refuse what is too large before anything is stated, with the size that would fit."""
        q = self.question
        masses = q.k * q.m
        if self.by_post_processing:
            self._at_most("channel", "masses", masses, MOST_CELLS, masses)
        else:
            self._at_most("program", "compared masses", self.compared, MOST, masses)
        if self.bounds.mass:
            self._at_most("program", "binaries, one for each ordered pair and output", self.compared, MOST_BINARIES,
                          masses)  # fmt: skip

    def _at_most(self, what: str, unit: str, size: int, most: int, masses: int) -> None:
        if size <= most:
            return
        q = self.question
        if q.inputs == q.outputs:  # neighbours per input stay, unless all are
            power = 3 if q.pairs is None and size > masses * 2 else 2
            fit = f"{int(q.k * (most / size) ** (1 / power))} inputs, which are the outputs,"
        else:
            fit = f"{int(q.k * most / size)} inputs with {q.m} outputs"
        pairs = "" if self.pairs is None else f", {len(self.pairs)} pairs"
        raise ChannelTooLarge(
            f"The {what} must have at most {most} {unit}; {fit} would fit. Got {size} ({q.k} inputs, {q.m} outputs"
            f"{pairs})."
        )

    @property
    def per_distance(self) -> bool:
        """Whether ε is per unit of distance."""
        return notion(self.notion).per_distance

    @property
    def pairs(self) -> Pairs | None:
        """Unordered neighbouring positions; None for all in the compact form, which has one ratio and no δ."""
        if self.per_distance:
            return self.question.metric_pairs()[0]
        compact = self.question.pairs is None and not self.bounds.delta
        return None if compact else self.question.listed

    @property
    def compared(self) -> int:
        """How many masses the program compares: two for every input, or ordered pair, and every output."""
        return self.question.m * 2 * (self.question.k if self.pairs is None else len(self.pairs))

    @property
    def extended(self) -> bool:
        """Whether there are extra constraints."""
        return bool(self.constraints) or self.more is not None

    @property
    def by_post_processing(self) -> bool:
        """Whether geometric noise followed by the best post-processing is the first candidate: pure ratios along a
        line, under a prior."""
        return (
            self.minimise == "error" and not self.bounds.delta and self.question.line and not self.per_distance
            and self.question.prior is not None and not self.extended
        )  # fmt: skip

    @cached_property
    def bounds(self) -> Bounds:
        """What the notion requires of every ordered pair; δ = 1 where it is minimised."""
        assert self.epsilon is not None
        delta = self.delta if self.minimise != "delta" else None
        if not self.per_distance:
            return ratio_bounds(self.notion, {(): self.epsilon}, delta)
        return ratio_bounds(self.notion, self._metric_budgets(), delta)

    def _metric_budgets(self) -> dict[tuple[int, int], Fraction]:
        pairs, distances = self.question.metric_pairs()
        assert self.epsilon is not None
        return {pair: self.epsilon * distance for pair, distance in zip(pairs, distances, strict=True)}

    def levels(self) -> tuple[tuple[int, ...], list[Fraction]]:
        """(the group of every pair, the ε of every group)."""
        epsilons = list(self.bounds.epsilons.values())
        if not self.per_distance:
            return (0,) * len(self.pairs or ()), epsilons
        levels = sorted(set(epsilons))
        return tuple(map(levels.index, epsilons)), levels

    @cached_property
    def claim(self) -> Claim:
        """What a mechanism is audited for."""
        assert self.epsilon is not None
        epsilon: Fraction | Mapping[Any, Fraction] = self.epsilon
        if self.per_distance:
            epsilon = self._metric_budgets()
        return Claim(self.notion, epsilon, self.delta or Fraction(0))

    def channel(self, rows: Any) -> Channel:
        """Rows as a mechanism under the neighbour relation."""
        pairs = self.question.metric_pairs()[0] if self.per_distance else self.question.pairs
        return replace(Channel.of(rows, pairs), labelled=(self.question.inputs, self.question.outputs))

    @cached_property
    def weights(self) -> np.ndarray[Any, np.dtype[np.float64]] | None:
        """The prior in floats; None in the worst case."""
        prior = self.question.prior
        return None if prior is None else np.array([float(p) for p in prior])

    def support(self) -> NDArray[np.bool_] | None:
        """The masses (k, m) worth stating where δ > 0 cuts long tails off: outputs that are the cheapest of an input
        so near that e^(-ε hops) is not far below δ. A guess that decides speed only; None where it saves little."""
        delta, masses = float(self.bounds.delta), self.question.k * self.question.m
        if not delta or self.bounds.mass or self.minimise != "error" or masses < _TRUNCATED or self.extended:
            return None
        pairs, epsilon = np.array(self.pairs), float(min(self.bounds.epsilons.values()))
        ones = np.ones(len(pairs))
        graph = csr_array((ones, (pairs[:, 0], pairs[:, 1])), shape=(self.question.k, self.question.k))
        reach = 1.25 * (math.log(1 / delta) + 4) / epsilon
        near = dijkstra(graph, directed=False, unweighted=True, limit=reach) <= reach
        stated = np.zeros((self.question.k, self.question.m), dtype=bool)
        for y, o in enumerate(self.losses.floats.argmin(axis=1).tolist()):
            stated[:, o] |= near[:, y]
        return stated if stated.sum() < masses // 2 else None

    def model(self, support: NDArray[np.bool_] | None = None) -> ChannelModel:
        """The linear program, in units of 2^-20 of probability. Raises ValueError."""
        q, (groups, _) = self.question, self.levels()
        inputs, outputs = q.places
        positive = bool(self.bounds.delta) or self.minimise == "delta"
        return ChannelModel(
            inputs, outputs, self.weights, self.losses.floats, self.pairs, groups, positive, self.constraints,
            self.more, self.bounds.kind, "delta" if self.minimise == "delta" else "error", MASS_SCALE,
            support,
        )  # fmt: skip
