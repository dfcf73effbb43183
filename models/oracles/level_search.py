"""Level search: the exact optimum under (ε, δ)-PDP for any shifts and one ε, without a solver.

Level theorem. Give every element a level ℓ(η) in {0, 1, 2, ..., ∞} with ℓ(0) = 0, and let
    T = Σ a^{ℓ(η)},    S = max over μ of Σ { a^{ℓ(η)} : ℓ(η + μ) > ℓ(η) + 1 }.
Then the largest f(0) of any (ε, δ)-PDP mechanism is max{ 1/T₀, max over ℓ of min(1/T, δ/S) }, T₀ that of the hop law.

Proof. (<=) Let f be feasible and ℓ(η) the least number of unbroken constraints that lead from 0 to η, where (η, μ) is
broken when f(η) > e^ε f(η + μ). Then f(η) >= a^{ℓ(η)} f(0), so T f(0) <= 1; a constraint with ℓ(η + μ) > ℓ(η) + 1 must
be broken, so S f(0) <= δ. (>=) Raise any ℓ to the shortest-path lengths over the constraints that it keeps: T and S can
only fall, and ℓ is now at least the hop distance, so a^ℓ <= w, the hop weights. The mechanism proportional to
max(a^ℓ, θw) breaks only constraints that S counts, at elements of mass a^ℓ; as θ runs from 0 to 1 its total runs from
T to T₀, so f(0) = min(1/T, δ/S) is reached whenever it is at least 1/T₀. ∎

So only shortest-path lengths are searched: settle level k, then let every unsettled η + μ with η on
level k either join level k + 1 or be delayed, which charges a^k to each shift that leads to it from level k. A branch
ends when, for some shift, what its chains must still weigh is too much: along a chain η, η + μ, ... of n unsettled
elements either the mass a^{k+1} + ... + a^{k+n} appears or a charge of s buys off at most A(1 - a^n)·s of it,
A = a/(1 - a).

| paper      | here                                                           |
|------------|----------------------------------------------------------------|
| (13)       | `improve`: its optimal error rate and PMF                      |
| u(η) = 1   | a charged constraint                                           |
"""

import math
from dataclasses import replace

import numpy as np

from models.oracles.hops import UNREACHABLE, hop_distances, remembered, values_ahead
from models.oracles.question import ROUNDING, ClosedForm, OutsideDomain, Question, Shift
from models.requirements import MASS_ABOVE_RATIO
from solvers.arrays import Integers, Ints, Vector

NODES = 100_000
"""Default number of decisions before the search gives up: about a second."""

ELEMENTS = 300
"""The largest group searched; the recursion is at most twice as deep."""

PROOF = "Any shifts, one ε: the level theorem, with every level function searched or excluded by a bound."


class _GaveUp(Exception):
    """The node limit was reached; what was found so far is feasible but not proven best."""


@remembered
def _ahead(sizes: Ints, shifts: tuple[Shift, ...]) -> tuple[Ints, ...]:
    """η + μ of every element η, for every shift μ."""
    index = np.arange(math.prod(sizes)).reshape(sizes)
    return tuple(tuple(values_ahead(index, shift).reshape(-1).tolist()) for shift in shifts)


class _Search:
    """Depth-first search over level functions with T below `total_cap` and S below `charge_cap`, which follow the best
    f(0) = min(1/T, δ/S) found, at first that of `known`."""

    def __init__(self, question: Question, epsilon: float, known: ClosedForm, nodes: int) -> None:
        self.ahead = _ahead(question.sizes, question.shifts)
        self.a = math.exp(-epsilon)
        self.gain = self.a / -math.expm1(-epsilon)
        self.level = [-1] * math.prod(question.sizes)
        self.level[0] = 0
        self.charge = [0.0] * len(question.shifts)
        self.nodes = nodes
        self.delta = question.delta
        self.incumbent: tuple[Integers, float] | None = None
        self._aim(1.0 - known.value)

    def _aim(self, mass: float) -> None:
        """Look for f(0) above `mass`."""
        self.total_cap, self.charge_cap = (1.0 - ROUNDING) / mass, (1.0 - ROUNDING) * self.delta / mass

    def run(self) -> bool:
        """Search; True when the search was complete."""
        try:
            self._settle(0, [0], 1.0)
        except _GaveUp:
            return False
        return True

    def _count(self) -> None:
        self.nodes -= 1
        if self.nodes < 0:
            raise _GaveUp

    def _missing(self, k: int, members: list[int]) -> float:
        """A lower bound on the mass of the elements beyond level k, by the chains of the most demanding shift."""
        level, a, worst = self.level, self.a, 0.0
        for mu, ahead in enumerate(self.ahead):
            mass, longest = 0.0, 0
            for member in members:
                element, length = ahead[member], 0
                while level[element] < 0:
                    length += 1
                    element = ahead[element]
                mass += 1.0 - a**length
                longest = max(longest, length)
            bought = (1.0 - a**longest) * (self.charge_cap - self.charge[mu])
            worst = max(worst, self.gain * (a**k * mass - bought))
        return worst

    def _settle(self, k: int, members: list[int], total: float) -> None:
        """Level k is `members`, all levels up to k weigh `total`: choose level k + 1."""
        self._count()
        if total + self._missing(k, members) >= self.total_cap:
            return
        reached: dict[int, list[int]] = {}
        for member in members:
            for mu, ahead in enumerate(self.ahead):
                if self.level[ahead[member]] < 0:
                    reached.setdefault(ahead[member], []).append(mu)
        if not reached:
            self._keep(total)
            return
        choices = sorted(reached.items(), key=lambda choice: -len(choice[1]))
        left = [[0] * len(self.ahead)]  # left[i][mu]: how many of choices[i:] the shift mu leads to
        for _, mus in reversed(choices):
            left.append([count + (mu in mus) for mu, count in enumerate(left[-1])])
        left.reverse()
        self._choose(0, k, choices, left, [], total)

    def _choose(
        self,
        i: int,
        k: int,
        choices: list[tuple[int, list[int]]],
        left: list[list[int]],
        joined: list[int],
        total: float,
    ) -> None:
        """Delay or admit choices[i:] to level k + 1."""
        self._count()
        fee, charge, must_join = self.a**k, self.charge, 0
        for mu, count in enumerate(left[i]):
            free = self.charge_cap - charge[mu]
            if charge[mu] > 0.0 and free <= 0.0:
                return
            must_join = max(must_join, count - int(free / fee) if free < count * fee else 0)
        if total + must_join * self.a * fee >= self.total_cap:
            return
        if i == len(choices):
            for element in joined:
                self.level[element] = k + 1
            self._settle(k + 1, list(joined), total)
            for element in joined:
                self.level[element] = -1
            return
        element, mus = choices[i]
        before = [charge[mu] for mu in mus]
        for mu in mus:
            charge[mu] += fee
        self._choose(i + 1, k, choices, left, joined, total)
        for mu, old in zip(mus, before, strict=True):
            charge[mu] = old
        joined.append(element)
        self._choose(i + 1, k, choices, left, joined, total + self.a * fee)
        joined.pop()

    def _keep(self, total: float) -> None:
        """A complete level function within the caps: remember it and tighten the caps."""
        charge = max(self.charge, default=0.0)
        self.incumbent = np.array(self.level), charge
        mass = 1.0 / total if self.delta * total >= charge else self.delta / charge
        self._aim(max(mass, 1.0 / self.total_cap))


def _pmf(levels: Integers, hops: Integers, a: float, charge: float, delta: float) -> tuple[float, Vector]:
    """Error rate and PMF of the mechanism proportional to max(a^ℓ, θw), the best θ."""
    weights = np.where(hops == UNREACHABLE, 0.0, a ** np.maximum(hops, 0))
    ratios = np.where(levels < 0, 0.0, a ** np.maximum(levels - hops, 0))  # a^ℓ / w
    elsewhere = float((ratios * weights)[1:].sum())
    if delta * (1.0 + elsewhere) >= charge:
        return elsewhere / (1.0 + elsewhere), ratios * weights / (1.0 + elsewhere)
    wanted = charge / delta
    ladder = np.unique(ratios)
    totals = np.array([float((weights * np.maximum(ratios, rung)).sum()) for rung in ladder])
    rung = int(np.clip(np.searchsorted(totals, wanted) - 1, 0, len(ladder) - 2))
    share = (wanted - totals[rung]) / (totals[rung + 1] - totals[rung])
    theta = min(max(ladder[rung] + share * (ladder[rung + 1] - ladder[rung]), 0.0), 1.0)
    return 1.0 - delta / charge, weights * np.maximum(ratios, theta) * (delta / charge)


def improve(question: Question, known: ClosedForm, nodes: int = NODES) -> ClosedForm:
    """Prove a feasible PDP answer optimal, or replace it by a better one; `kind` tells whether the search finished.

    Raises OutsideDomain unless a mass above a ratio is bounded, the shifts share one ε and the group is small enough.
    """
    if question.requires != MASS_ABOVE_RATIO or question.epsilon is None:
        raise OutsideDomain("the level search needs a bounded mass above a ratio and one epsilon for all shifts.")
    if math.prod(question.sizes) > ELEMENTS:
        raise OutsideDomain(f"sizes must have a product of at most {ELEMENTS}. Got {question.sizes}.")
    search = _Search(question, question.epsilon, known, nodes)
    finished = search.run()
    if search.incumbent is None:
        if finished:
            return replace(known, kind="optimum", proof=PROOF)
        return replace(known, proof=f"{known.proof} The level search stopped after {nodes} nodes without a better one.")
    hops = hop_distances(question.sizes, question.shifts)
    levels, charge = search.incumbent
    error, pmf = _pmf(levels, hops, search.a, charge, question.delta)
    if finished:
        return ClosedForm("level search", error, pmf, "optimum", PROOF)
    proof = f"Feasible by the level theorem; the search stopped after {nodes} nodes, so it may not be the best."
    return ClosedForm("level search", error, pmf, "upper bound", proof)
