"""Closed forms as rational functions of x = e^ε, so that a formula equals one identically and not only at points.

a = 1/x below. Additive noise modulo n + 1 (Kadam et al. 2024), error rates:

    `hop_law`       1 - 1/Σ_η a^d(η), d the least number of shifts from 0 to η; (1 - δ) times that under (ε, δ)-DP
    `lemma3`        1 - (1 - a)/(1 - a^N)                                  (17), (18): one distance, a cycle of N
    `lemma4`        1 - 1/(1 + μ̄ Σ_{i<=b} a^i + r a^(b+1)), n = b μ̄ + r       (28), (29): differences 1..μ̄
    `theorem2`      PDP, one distance: flat 1 - x^m/(1 + .. + x^m), then 1 - δ x^(m-1), m = N - 1, N - 2, ..   (19)-(21)
    `staircase`     1 - 1/Σ_i ℓ_i a^i                                      (34): a flat region of the printed Theorem 3

Channels on answers y with a prior p and a loss ℓ:

    `geometric_post_processing`   Σ_z min_o Σ_y p_y G[y,z] ℓ(y,o)           (Ghosh et al. 2009; `finite_channel`)
    `bins`                        Σ_o (F(o) + (x - 1) Σ_{y in bin of o} p_y ℓ(y,o)) / (d + x - 1), F(o) = Σ_y p_y ℓ(y,o)
                                  (RR-on-Bins, Ghazi et al. 2022; each answer a bin of its own: randomized response)
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from itertools import combinations
from math import lcm

from flint import fmpz_poly

from workbench.models.oracles.hops import hop_distances
from workbench.models.oracles.question import Shift
from workbench.solvers.arrays import Ints
from workbench.solvers.exact.polynomials import ONE, ZERO, Affine, Poly, evaluate_polynomial

Table = Sequence[Sequence[Fraction]]  # (answers, outputs)


def _power(k: int) -> Poly:
    return fmpz_poly([0] * k + [1])


def _sum_to(m: int) -> Poly:
    """1 + x + .. + x^m."""
    return fmpz_poly([1] * (m + 1))


def _rest(top: Poly, over: Poly) -> Affine:
    """1 - top/over."""
    return Affine.from_ratio(over - top, ZERO, over)


def hop_law(sizes: Ints, shifts: tuple[Shift, ...]) -> Affine:
    """The least error rate under (ε, δ)-DP, affine in δ."""
    distances = [d for d in hop_distances(sizes, shifts).tolist() if d >= 0]
    most = max(distances)
    total = sum((_power(most - d) for d in distances), ZERO)
    wrong = total - _power(most)
    return Affine.from_ratio(wrong, -wrong, total)


def lemma3(length: int) -> Affine:
    """The least error rate of one distance whose multiples are a cycle of some length, pure."""
    return _rest(_power(length) - _power(length - 1), _power(length) - ONE)


def lemma4(n: int, mu_bar: int) -> Affine:
    """The least error rate of the differences 1..μ̄, pure."""
    b, r = divmod(n, mu_bar)
    return staircase_error_rate([1, *[mu_bar] * b, r])


def staircase_error_rate(lengths: Sequence[int]) -> Affine:
    """The error rate of noise with so many masses a^i f(0), i = 0, 1, ..."""
    most = len(lengths) - 1
    return _rest(
        _power(most), sum((length * _power(most - i) for i, length in enumerate(lengths)), ZERO)
    )


def theorem2(length: int) -> list[tuple[Affine, Affine]]:
    """(the δ up to which it holds, the least error rate) for one distance of a cycle under PDP, by rising δ."""
    parts = []
    for m in range(length - 1, 0, -1):
        parts.append(
            (Affine.from_ratio(_power(1), ZERO, _sum_to(m)), _rest(_power(m), _sum_to(m)))
        )  # flat to δ̄
        parts.append(
            (
                Affine.from_ratio(ONE, ZERO, _sum_to(m - 1)),
                Affine.from_ratio(ONE, -_power(m - 1), ONE),
            )
        )  # to δ̲
    return parts


def _geometric(k: int) -> list[list[Poly]]:
    """(x + 1) x^k times geometric noise, clamped to 0..k-1."""
    inner, end = fmpz_poly([-1, 1]), fmpz_poly([0, 1])
    return [
        [_power(k - abs(y - z)) * (end if z in (0, k - 1) else inner) for z in range(k)]
        for y in range(k)
    ]


def _integers(weights: Table) -> tuple[list[list[int]], int]:
    """A table over one denominator."""
    common = lcm(*(value.denominator for row in weights for value in row))
    return [[int(value * common) for value in row] for row in weights], common


def geometric_post_processing(weights: Table, x: Fraction) -> Affine:
    """The loss of the post-processing of geometric noise that is best at x. weights: p_y ℓ(y,o), answers in a row."""
    table, common = _integers(weights)
    noise = _geometric(len(table))
    total = ZERO
    for z in range(len(table)):
        losses = [
            sum((row[z] * table[y][o] for y, row in enumerate(noise)), ZERO)
            for o in range(len(table[0]))
        ]
        total += min(losses, key=lambda loss: evaluate_polynomial(loss, x))
    return Affine.from_ratio(total, ZERO, fmpz_poly([1, 1]) * _power(len(table)) * common)


def bins_loss(weights: Table, x: Fraction) -> Affine:
    """The loss of RR-on-Bins onto the outputs that are best at x. weights: p_y ℓ(y,o)."""
    table, common = _integers(weights)
    best = None
    for d in range(1, len(table[0]) + 1):
        for outputs in combinations(range(len(table[0])), d):
            everywhere = sum(row[o] for row in table for o in outputs)
            inside = sum(min(row[o] for o in outputs) for row in table)
            loss = Affine.from_ratio(
                fmpz_poly([everywhere - inside, inside]),
                ZERO,
                fmpz_poly([common * (d - 1), common]),
            )
            if best is None or loss(x) < best(x):
                best = loss
    assert best is not None
    return best
