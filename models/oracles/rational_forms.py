"""Return closed forms of optimal losses as exact rational functions of x = e^ε.

With them a caller can check that a formula equals a closed form for every ε, not only at some
points. The result of each function is an `Affine`: a function of x and δ that is affine in δ, with
polynomials in x as numerator and denominator.

Notation. x = e^ε, a = 1/x, f is the PMF of the noise η, and equation numbers are those of Kadam et
al. 2024. "One distance" means that neighbouring answers differ by one shift μ, whose multiples form
a cycle of N elements. μ̄ is the largest difference of neighbouring answers, n the largest answer.
Error rates of additive noise modulo n + 1:

    `hop_law`      1 - 1/Σ_η a^d(η), d the least number of shifts from 0 to η; (1 - δ) times that
                   under (ε, δ)-DP
    `lemma3`       1 - (1 - a)/(1 - a^N)      (17), (18): one distance, a cycle of N
    `lemma4`       1 - 1/(1 + μ̄ Σ_{i=1..b} a^i + r a^(b+1)), n = b μ̄ + r
                                              (28), (29): differences 1..μ̄
    `theorem2`     PDP, one distance: constant 1 - x^m/(1 + .. + x^m), then linear 1 - δ x^(m-1),
                   for m = N - 1, N - 2, ..   (19)-(21)
    `staircase_error_rate`
                   1 - 1/Σ_i ℓ_i a^i          (34): a flat region of the printed Theorem 3

Channels on answers y with a prior p and a loss ℓ(y,o) of the output o. G is clamped geometric
noise, z a noisy answer, and d the number of bins:

    `geometric_post_processing`
                   Σ_z min_o Σ_y p_y G[y,z] ℓ(y,o)      (Ghosh et al. 2009; `finite_channel`)
    `bins_loss`    Σ_o (F(o) + (x - 1) Σ_{y in bin of o} p_y ℓ(y,o)) / (d + x - 1),
                   F(o) = Σ_y p_y ℓ(y,o)
                   (RR-on-Bins, Ghazi et al. 2022; with each answer a bin: randomized response)
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

Table = Sequence[Sequence[Fraction]]  # A table has the shape (answers, outputs).


def _monomial(k: int) -> Poly:
    """Return the polynomial x^k, for k >= 0."""
    return fmpz_poly([0] * k + [1])


def _power_sum(m: int) -> Poly:
    """Return 1 + x + .. + x^m."""
    return fmpz_poly([1] * (m + 1))


def _one_minus_ratio(numerator: Poly, denominator: Poly) -> Affine:
    """Return 1 - numerator/denominator."""
    return Affine.from_ratio(denominator - numerator, ZERO, denominator)


def hop_law(sizes: Ints, shifts: tuple[Shift, ...]) -> Affine:
    """Return the least error rate under (ε, δ)-DP, affine in δ.

    Args:
        sizes: orders of the cyclic factors of the group.
        shifts: differences of neighbouring answers, one integer per cyclic factor.
    """
    # Elements that no shifts reach have the distance -1 and the mass 0.
    distances = [d for d in hop_distances(sizes, shifts).tolist() if d >= 0]
    max_distance = max(distances)
    total = sum((_monomial(max_distance - d) for d in distances), ZERO)
    error = total - _monomial(max_distance)
    return Affine.from_ratio(error, -error, total)


def lemma3(length: int) -> Affine:
    """Return the least error rate of one distance for δ = 0.

    Args:
        length: number N of elements of the cycle that the shift generates.
    """
    numerator = _monomial(length) - _monomial(length - 1)
    return _one_minus_ratio(numerator, _monomial(length) - ONE)


def lemma4(n: int, mu_bar: int) -> Affine:
    """Return the least error rate of the differences 1..μ̄ for δ = 0.

    Args:
        n: largest answer; the answers are 0..n.
        mu_bar: largest difference μ̄ of neighbouring answers.
    """
    b, r = divmod(n, mu_bar)
    return staircase_error_rate([1, *[mu_bar] * b, r])


def staircase_error_rate(lengths: Sequence[int]) -> Affine:
    """Return the error rate 1 - f(0) of noise with `lengths[i]` masses a^i f(0), i = 0, 1, ...

    Args:
        lengths: number of masses a^i f(0) for each i; the first is 1.
    """
    last = len(lengths) - 1
    terms = (length * _monomial(last - i) for i, length in enumerate(lengths))
    return _one_minus_ratio(_monomial(last), sum(terms, ZERO))


def theorem2(length: int) -> list[tuple[Affine, Affine]]:
    """Return the least error rates of one distance under PDP, by rising δ.

    Args:
        length: number N of elements of the cycle that the shift generates.

    Returns:
        For each interval of δ, its largest δ as a function of x, and the error rate in it.
    """
    pieces = []
    for m in range(length - 1, 0, -1):
        flat_end = Affine.from_ratio(_monomial(1), ZERO, _power_sum(m))
        pieces.append((flat_end, _one_minus_ratio(_monomial(m), _power_sum(m))))
        linear_end = Affine.from_ratio(ONE, ZERO, _power_sum(m - 1))
        pieces.append((linear_end, Affine.from_ratio(ONE, -_monomial(m - 1), ONE)))
    return pieces


def _geometric_table(k: int) -> list[list[Poly]]:
    """Return (x + 1) x^k times geometric noise, clamped to 0..k-1."""
    inner_factor = fmpz_poly([-1, 1])
    end_factor = fmpz_poly([0, 1])
    factors = [end_factor if z in (0, k - 1) else inner_factor for z in range(k)]
    return [[_monomial(k - abs(y - z)) * factors[z] for z in range(k)] for y in range(k)]


def _to_integer_table(weights: Table) -> tuple[list[list[int]], int]:
    """Return a table in integers, and their common denominator."""
    common = lcm(*(value.denominator for row in weights for value in row))
    return [[int(value * common) for value in row] for row in weights], common


def geometric_post_processing(weights: Table, x: Fraction) -> Affine:
    """Return the loss of geometric noise followed by the post-processing that is best at x.

    The post-processing is fixed, so the result is a loss at every ε, but optimal only near x.

    Args:
        weights: weighted losses p_y ℓ(y,o), shape (answers, outputs). Consecutive answers are
            neighbours.
        x: ratio e^ε > 1 at which the outputs are chosen.
    """
    table, common = _to_integer_table(weights)
    noise = _geometric_table(len(table))
    total = ZERO
    for z in range(len(table)):
        losses = []
        for o in range(len(table[0])):
            terms = (row[z] * table[y][o] for y, row in enumerate(noise))
            losses.append(sum(terms, ZERO))
        total += min(losses, key=lambda loss: evaluate_polynomial(loss, x))
    denominator = fmpz_poly([1, 1]) * _monomial(len(table)) * common
    return Affine.from_ratio(total, ZERO, denominator)


def bins_loss(weights: Table, x: Fraction) -> Affine:
    """Return the loss of RR-on-Bins with the set of outputs that is best at x.

    Every answer belongs to the bin of its best output. All sets of outputs are compared, so the
    table must be small.

    Args:
        weights: weighted losses p_y ℓ(y,o), shape (answers, outputs).
        x: ratio e^ε > 1 at which the outputs are chosen.
    """
    table, common = _to_integer_table(weights)
    min_loss = None
    for d in range(1, len(table[0]) + 1):
        for outputs in combinations(range(len(table[0])), d):
            total_loss = sum(row[o] for row in table for o in outputs)
            bin_loss = sum(min(row[o] for o in outputs) for row in table)
            numerator = fmpz_poly([total_loss - bin_loss, bin_loss])
            denominator = fmpz_poly([common * (d - 1), common])
            loss = Affine.from_ratio(numerator, ZERO, denominator)
            if min_loss is None or loss(x) < min_loss(x):
                min_loss = loss
    assert min_loss is not None
    return min_loss
