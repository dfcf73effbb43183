"""Audit noise slowly by the definitions of δ, in decimals of 800 digits, to test the fast audit."""

from __future__ import annotations

from decimal import Decimal, localcontext
from fractions import Fraction
from itertools import product

from hypothesis import strategies as st

from workbench.mechanisms.additive import AdditiveNoise
from workbench.questions.modulo_noise import ModuloNoise

__all__ = ["DIGITS", "PairAudit", "decimal", "mechanisms", "slow_audit"]

DIGITS = 800


def decimal(value: Fraction) -> Decimal:
    """Convert a rational to a decimal of the current precision."""
    return Decimal(value.numerator) / value.denominator


class PairAudit:
    """The audit of one pair of laws by the definitions.

    Args:
        p: Masses of P.
        q: Masses of Q on the same outcomes.
        epsilon: ε.

    Attributes:
        dp: DP δ, in decimals.
        pdp: PDP δ, exact.
        ratio: Largest ratio P/Q, exact. None: it is infinite.
    """

    def __init__(self, p: list[Fraction], q: list[Fraction], epsilon: Fraction) -> None:
        excesses = []
        with localcontext() as context:
            context.prec = DIGITS
            growth = decimal(epsilon).exp()
            for a, b in zip(p, q, strict=True):
                # At ε = 0 the difference is exact, so that equal masses have no excess.
                difference = decimal(a) - growth * decimal(b) if epsilon else decimal(a - b)
                excesses.append(difference)
            self.dp = sum((excess for excess in excesses if excess > 0), Decimal(0))
        self.pdp = sum(
            (a for a, excess in zip(p, excesses, strict=True) if excess > 0), Fraction(0)
        )
        ratios = [a / b if b else None for a, b in zip(p, q, strict=True) if a]
        self.ratio = None if None in ratios else max(r for r in ratios if r is not None)


def slow_audit(noise: AdditiveNoise, budgets: dict[tuple[int, ...], Fraction]) -> list[PairAudit]:
    """Audit noise on a group, one pair of laws for every shift.

    Args:
        noise: The noise.
        budgets: shift -> its ε. The audits have the same order.
    """
    sizes = noise.question.sizes
    masses = noise.exact_pmf
    points = list(product(*map(range, sizes)))
    index_by_point = {point: i for i, point in enumerate(points)}
    audits = []
    for shift, epsilon in budgets.items():
        shifted_masses = []
        for point in points:
            shifted = tuple((a + b) % s for a, b, s in zip(point, shift, sizes, strict=True))
            shifted_masses.append(masses[index_by_point[shifted]])
        audits.append(PairAudit(masses, shifted_masses, epsilon))
    return audits


@st.composite
def mechanisms(draw: st.DrawFn) -> AdditiveNoise:
    """Draw noise on a small group. Some masses are 0, and some are very large."""
    sizes = draw(st.sampled_from([(2,), (3,), (7,), (9,), (2, 3), (3, 3), (2, 2, 2)]))
    points = [p for p in product(*map(range, sizes)) if any(p)]
    shifts = draw(st.lists(st.sampled_from(points), min_size=1, max_size=3))
    question = ModuloNoise(sizes=sizes, shifts=shifts, directed=draw(st.booleans()))
    order = question.order
    weight = st.integers(0, 6) | st.just(0) | st.integers(0, 2**70)
    return AdditiveNoise(
        question, draw(st.lists(weight, min_size=order, max_size=order).filter(any))
    )
