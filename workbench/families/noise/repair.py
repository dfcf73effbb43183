"""The repair of noise on the integers and the reals: a solver's law, mixed with about the least share of a private law
with which the exact audit accepts it.

δ > 0    the private law is truncated staircase noise within half of every δ
others   a solver's law of a tighter budget
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from fractions import Fraction
from functools import partial

import numpy as np
from numpy.typing import NDArray

from models.integer_noise import Budget, shared_budget
from workbench.errors import Infeasible, NotCertified, NotProven
from workbench.exact.distribution import Distribution
from workbench.exact.integer_law import IntegerLaw
from workbench.families.noise.notion_programs import BITS, LineNoise, NotionPrograms
from workbench.mechanisms.integer_noise import AdditiveIntegerNoise
from workbench.mechanisms.real_noise import AdditiveRealNoise
from workbench.privacy.audit import holds
from workbench.privacy.claim import Claim

__all__ = ["accepted", "repaired_by_notion", "repaired_by_staircase"]

Vector = NDArray[np.float64]

_LESS = (0, Fraction(1, 50_000), Fraction(1, 1000), Fraction(1, 50))  # of a budget, without which a law is tried
_SHARES = (*(Fraction(1, 1 << power) for power in range(40, -1, -3)), Fraction(1))
_HALVINGS = 4
_BLOCKS = 1 << 14


def accepted(mechanism: LineNoise, claim: Claim) -> bool:
    """Whether the exact audit proves the claim, of clamped noise before it is clamped: then it holds after, as every
    notion of this family survives post-processing. Rows of clamped noise may meet a budget that the noise itself misses
    by its last digit."""
    if isinstance(mechanism, AdditiveIntegerNoise) and mechanism.question.clamp is not None:
        mechanism = AdditiveIntegerNoise(replace(mechanism.question, clamp=None), mechanism.noise)
    try:
        return holds(mechanism, claim)
    except NotProven:  # as good as refused: a law a little further away can be proven
        return False


def _least_share(
    mixture: Callable[[Fraction], LineNoise], claim: Claim, shares: Iterable[Fraction], halvings: int = 0
) -> LineNoise:
    """The mixture with the first of several rising shares that the exact audit accepts, or with a smaller share.
    Raises NotCertified."""
    for share in shares:
        best, high = mixture(share), share
        if accepted(best, claim):
            break
    else:
        raise NotCertified("The solver's law could not be repaired.")
    low = high / 8
    for _ in range(halvings):
        middle = (low + high) / 2
        candidate = mixture(middle)
        if accepted(candidate, claim):
            best, high = candidate, middle
        else:
            low = middle
    return best


def repaired_by_staircase(mechanism: LineNoise, claim: Claim, budgets: Sequence[Budget], excess: float) -> LineNoise:
    """A law without tails, mixed with staircase noise; at steep budgets, where a solver's zeros are far off in ratio,
    that noise alone. budgets: with half of every δ; excess: of the hockey sticks over δ, relative. Raises
    NotCertified."""
    if accepted(mechanism, claim):
        return mechanism
    epsilon, delta = map(Fraction, shared_budget(budgets))
    private = _truncated(epsilon, delta, mechanism.reach)
    least = Fraction(2 * max(excess, 0.0) + 1e-12)
    return _least_share(partial(_with_staircase, mechanism, private), claim, _growing(least))


def _growing(share: Fraction) -> Iterator[Fraction]:
    while share < 1:
        yield share
        share *= 4
    yield Fraction(1)


def _with_staircase(mechanism: LineNoise, other: IntegerLaw, share: Fraction) -> LineNoise:
    """(1 - share) of a mechanism without tails and share of another law; the atom is kept apart."""
    if isinstance(mechanism, AdditiveIntegerNoise):
        return mechanism.with_noise(mechanism.noise.mixed(other, share))
    cells = mechanism.cells
    low, high = min(cells.first, other.first), max(cells.last, other.last)
    weights = [
        (1 - share) * a / mechanism.total + share * b / other.total
        for a, b in zip(cells.window(low, high), other.window(low, high), strict=True)
    ]
    atom = (1 - share) * mechanism.atom / mechanism.total
    return AdditiveRealNoise.of(mechanism.question, mechanism.steps, low, weights, atom)


def _truncated(epsilon: Fraction, delta: Fraction, reach: int) -> IntegerLaw:
    """Staircase noise cut off where the last `reach` values of one side weigh at most δ: what a shift takes beyond the
    end is all that breaks e^ε, but for rounding, which the mixture is audited for."""
    blocks = 1
    while True:
        weights = np.exp(-float(epsilon) * -(-np.abs(np.arange(-blocks * reach, blocks * reach + 1)) // reach))
        if weights[-reach:].sum() <= float(delta) * weights.sum() or blocks > _BLOCKS:
            return IntegerLaw(-blocks * reach, Distribution.from_floats(weights))
        blocks += max(1, blocks // 8)


def repaired_by_notion(programs: NotionPrograms, claim: Claim, size: int, ratio: Fraction, units: Vector) -> LineNoise:
    """The solver's law with tails, mixed with one of a tighter budget where the exact audit does not accept it. Raises
    NotCertified."""
    make, raw = programs.line.make, None
    for less in _LESS:
        try:
            law = programs.law(_tighter(claim, less) if less else claim, size, ratio, units)
        except (NotProven, Infeasible):  # out of digits
            continue
        if not programs.request.certified or accepted(make(law), claim):
            if raw is None:
                return make(law)
            return _least_share(partial(_with_law, make, raw, law), claim, _SHARES, _HALVINGS)
        raw = raw or law
    raise NotCertified("The solver's law could not be repaired.")


def _with_law(
    make: Callable[[IntegerLaw], LineNoise], law: IntegerLaw, other: IntegerLaw, share: Fraction
) -> LineNoise:
    """(1 - share) of one law and share of another of the same shape."""
    if share == 1:
        return make(other)
    first, second = (1 - share) / law.total, share / other.total
    weights = [a * first + b * second for a, b in zip(law.weights, other.weights, strict=True)]
    short = [max(1, round(weight * (1 << BITS))) for weight in weights]
    return make(IntegerLaw(law.first, short, law.period, law.ratio))


def _tighter(claim: Claim, less: Fraction | int) -> Claim:
    """The claim without a share of its budget: of hockey sticks, of every δ, and a little of ε where δ is 0."""
    sticks = [(stick.epsilon, stick.delta) for stick in claim.requirements(())]
    if sticks:
        return Claim("curve", curve=tuple((e if d else e * (1 - less / 50), d * (1 - less)) for e, d in sticks))
    first = claim.notion.parameters[0]
    return Claim(claim.notion, **{**claim.values, first: claim.values[first] * (1 - less)})
