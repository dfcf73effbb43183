"""A slow audit from the definitions, in decimals of 800 digits, with example mechanisms."""

from __future__ import annotations

from decimal import Decimal, localcontext
from fractions import Fraction
from itertools import product

from hypothesis import strategies as st

from workbench.mechanisms.additive import AdditiveNoise
from workbench.questions.modulo_noise import ModuloNoise

__all__ = ["DIGITS", "Slow", "decimal", "mechanisms", "slow_audit"]

DIGITS = 800


def decimal(value: Fraction) -> Decimal:
    return Decimal(value.numerator) / value.denominator


class Slow:
    """PDP δ (exact), DP δ (decimal) and the pure ratio of P against Q, from the definitions."""

    def __init__(self, p: list[Fraction], q: list[Fraction], epsilon: Fraction) -> None:
        with localcontext() as context:
            context.prec = DIGITS
            e = decimal(epsilon).exp()
            gaps = [(Fraction(a), Fraction(b)) for a, b in zip(p, q, strict=True)]
            over = [decimal(a) - e * decimal(b) if epsilon else decimal(a - b) for a, b in gaps]
            self.dp = sum((x for x in over if x > 0), Decimal(0))
        self.pdp = sum((a for a, x in zip(p, over, strict=True) if x > 0), Fraction(0))
        ratios = [a / b if b else None for a, b in zip(p, q, strict=True) if a]
        self.ratio = None if None in ratios else max(r for r in ratios if r is not None)


def slow_audit(noise: AdditiveNoise, budgets: dict[tuple[int, ...], Fraction]) -> list[Slow]:
    q, f = noise.question, noise.exact_pmf
    points = list(product(*map(range, q.sizes)))
    where = {point: i for i, point in enumerate(points)}
    moved = {
        shift: [
            f[where[tuple((a + b) % s for a, b, s in zip(p, shift, q.sizes, strict=True))]]
            for p in points
        ]
        for shift in budgets
    }
    return [Slow(f, moved[shift], epsilon) for shift, epsilon in budgets.items()]


@st.composite
def mechanisms(draw: st.DrawFn) -> AdditiveNoise:
    sizes = draw(st.sampled_from([(2,), (3,), (7,), (9,), (2, 3), (3, 3), (2, 2, 2)]))
    points = [p for p in product(*map(range, sizes)) if any(p)]
    shifts = draw(st.lists(st.sampled_from(points), min_size=1, max_size=3))
    question = ModuloNoise(sizes=sizes, shifts=shifts, directed=draw(st.booleans()))
    order = question.order
    weight = st.integers(0, 6) | st.just(0) | st.integers(0, 2**70)
    return AdditiveNoise(
        question, draw(st.lists(weight, min_size=order, max_size=order).filter(any))
    )
