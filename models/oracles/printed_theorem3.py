"""Evaluate the printed Theorem 3, Corollary 2 and Table 1 of Kadam et al. 2024, which are WRONG.

The functions return the PMFs and the curves that the paper claims to be optimal. They only serve to
draw the curves of the paper; no other computation uses this module. `bounded_difference` has the
correct laws.

Notation. The equations (30)-(45) are read as printed, for noise modulo n + 1 with the shifts
𝓜 = {1..μ̄} under (ε, δ)-PDP, and n = b μ̄ + r with 0 <= r < μ̄. f is the PMF of the noise. A printed
staircase is a PMF whose masses fall by e^-ε from one group of ℓ_i equal masses to the next. With
the lengths (1, 3, 2) the masses are f(0) times 1, a, a, a, a², a², where a = e^-ε. The paper claims
that a staircase is optimal on an interval of δ, a flat region. Between two flat regions f(0) is
linear in δ. (h, j) numbers the flat regions.

The errors. From h = 2 or 3 on (it depends on n, μ̄ and ε), the printed PMFs need a larger δ than the
paper claims. For n = 24, μ̄ = 6 and ε = 1.5, δ = .083636 is claimed and .087800 is needed. They are
not optimal either (Table 1, δ = .1212: printed f(0) .5432, optimum .549828). The reason is that
"groups shorter than μ̄ never split" is false.

Misprints, and how they are read here:

* (38) omits the group b + 1 if j < h. Its length must be μ̄ - 1, so that all lengths sum to n + 1.
* (41) swaps the two indices of ψ, the mass of the group of one element (the singleton).
* (34) is 1/Σ ℓ_i e^{-iε}. (35)-(36) differ from it if j = h; `phi_35_36` exists only to show that.
* (54) and (55), the limits of (36) and (34) as n -> ∞, contradict (31), (34) and (36).
  `PrintedLimit` has both. The limit of the true optimum is in
  `workbench.models.oracles.limit_law`.
* The theorem assumes b + r < μ̄. For other n, Appendix 10 says in prose that a last group that
  reaches μ̄ splits as well, which Table 1 (b + r = 4, μ̄ = 3) uses. So `staircases` continues while
  the next group has μ̄ masses.

| paper      | here                                                         |
|------------|--------------------------------------------------------------|
| h, j       | `Staircase.h`, `Staircase.j`; both 0 for Lemma 4             |
| k          | position in `staircases(...)`                                |
| ℓ_i        | `Staircase.lengths`, (31)                                    |
| φ₀^k       | `Staircase.mass`, (34)                                       |
| δ̲_{h,j}    | `Staircase.lower`, (37c); 0 for Lemma 4                      |
| δ̄_{h,j}    | `Staircase.upper`, (37a), (37b)                              |
| ξ_j        | `_xi(ε, j)`                                                  |
| c = b - h  | number of whole groups of a region as n -> ∞: `c`            |
"""

import math
from dataclasses import dataclass

import numpy as np

from workbench.models.oracles.cut_vectors import Grid
from workbench.models.oracles.cuts import geometric_sum
from workbench.solvers.arrays import Ints, Vector


@dataclass(frozen=True)
class Staircase:
    """One printed flat region.

    Attributes:
        h: the index h of the region, as printed; 0 for Lemma 4.
        j: the index j of the region, as printed; 0 for Lemma 4.
        lengths: group lengths ℓ_0..ℓ_last.
        mass: mass f(0) of the noise value 0.
        lower: lower end of the claimed δ interval.
        upper: upper end of the claimed δ interval.
    """

    h: int
    j: int
    lengths: Ints
    mass: float
    lower: float
    upper: float


def _xi(epsilon: float, terms: int) -> float:
    """Compute ξ_m = 1 + e^-ε + ... + e^{-(m-1)ε} for m terms."""
    return float(geometric_sum(epsilon, terms)) * math.exp(epsilon)


def _group_lengths(grid: Grid) -> list[tuple[int, int, Ints]]:
    """Return (h, j, ℓ) of Lemma 4 and of every flat region, (31), in the order of the segments.

    Segment h moves one mass from group b - h + 1 to the next group (j = 1). If that group then
    holds μ̄ masses, it loses one in its turn (j = 2), and so on.
    """
    b = grid.rows
    r = grid.tall_columns
    mu_bar = grid.mu_bar
    lengths = [1] + [mu_bar] * b
    if r:  # The last group has the r masses that are left.
        lengths.append(r)
    groups = [(0, 0, tuple(lengths))]
    for h in range(1, b):
        group = b - h + 1
        j = 0
        while group < len(lengths) and lengths[group] == mu_bar:
            j += 1
            lengths[group] -= 1
            if group + 1 == len(lengths):
                lengths.append(0)
            lengths[group + 1] += 1
            groups.append((h, j, tuple(lengths)))
            group += 1
    return groups


def staircases(n: int, mu_bar: int, epsilon: float) -> list[Staircase]:
    """Return the printed flat regions k = 0 (Lemma 4), 1, 2, ... by rising δ.

    Args:
        n: largest answer; the answers are 0..n.
        mu_bar: largest difference μ̄ of neighbouring answers.
        epsilon: budget ε > 0.
    """
    grid = Grid(n, mu_bar, epsilon)
    b = grid.rows
    regions = _group_lengths(grid)
    stairs = []
    next_segments = [*(next_h for next_h, *_ in regions[1:]), None]
    for (h, j, lengths), next_h in zip(regions, next_segments, strict=True):
        # This is the first equality of (34).
        mass = 1.0 / math.fsum(length * math.exp(-i * epsilon) for i, length in enumerate(lengths))
        is_last_of_segment = next_h != h
        decay = math.exp(-(b - h) * epsilon)
        lower = mass * decay * _xi(epsilon, j) if h else 0.0
        # The factor is (37b) at the end of a segment, else (37a).
        factor = math.exp(epsilon) if is_last_of_segment else _xi(epsilon, j + 1)
        stairs.append(Staircase(h, j, lengths, mass, lower, upper=mass * decay * factor))
    return stairs


def staircase_pmf(stairs: Staircase, epsilon: float) -> Vector:
    """Compute the printed PMF (30) of a flat region, shape (n + 1,).

    Args:
        stairs: the flat region.
        epsilon: budget ε > 0.
    """
    powers = np.exp(-epsilon * np.arange(len(stairs.lengths)))
    return stairs.mass * np.repeat(powers, stairs.lengths)


def _linear_pmf(
    grid: Grid,
    left: Staircase,
    right: Staircase,
    delta: float,
) -> Vector:
    """Compute the printed PMF (38), (41) at a δ between two flat regions, shape (n + 1,).

    `left` and `right` are the flat regions before and after this δ. One element of a group, the
    singleton, has a mass of its own. It stands behind this group.
    """
    epsilon = grid.epsilon
    group = grid.rows - right.h + right.j
    mass = delta * math.exp((grid.rows - right.h) * epsilon) / _xi(epsilon, right.j)
    lengths = list(left.lengths)
    lengths[group] -= 1
    group_masses = mass * np.exp(-epsilon * np.arange(len(lengths)))
    singleton_mass = 1.0 - float(np.dot(lengths, group_masses))
    masses = np.insert(group_masses, group + 1, singleton_mass)
    return np.repeat(masses, np.insert(lengths, group + 1, 1))


def printed_pmf(
    n: int,
    mu_bar: int,
    epsilon: float,
    delta: float,
) -> Vector:
    """Compute the PMF that Theorem 3 prints for δ, in its parts (a), (b) or (c), shape (n + 1,).

    It is not (ε, δ)-PDP in general.

    Args:
        n: largest answer; the answers are 0..n.
        mu_bar: largest difference μ̄ of neighbouring answers.
        epsilon: budget ε > 0.
        delta: budget δ in [0, 1].
    """
    regions = staircases(n, mu_bar, epsilon)
    for k, stairs in enumerate(regions):
        if delta < stairs.lower:
            return _linear_pmf(Grid(n, mu_bar, epsilon), regions[k - 1], stairs, delta)
        if delta <= stairs.upper:
            return staircase_pmf(stairs, epsilon)
    pmf = np.full(n + 1, (1.0 - delta) / n)  # (42), (43)
    pmf[0] = delta
    return pmf


def printed_level_curve(
    n: int,
    mu_bar: int,
    epsilon: float,
    error_rate: float,
) -> float:
    """Compute the smallest δ for an error rate as Corollary 2, (44) and (45), prints it.

    Args:
        n: largest answer; the answers are 0..n.
        mu_bar: largest difference μ̄ of neighbouring answers.
        epsilon: budget ε > 0.
        error_rate: error rate 1 - f(0) in [0, 1].
    """
    mass = 1.0 - error_rate
    for stairs in staircases(n, mu_bar, epsilon):
        if stairs.mass >= mass:
            # Before a flat region, f(0) is proportional to δ.
            return stairs.lower / stairs.mass * mass
    return mass


def phi_35_36(
    n: int,
    mu_bar: int,
    epsilon: float,
    h: int,
    j: int,
) -> float:
    """Compute φ₀^k by (35)-(36), the second equality of (34), which differs when j = h.

    Args:
        n: largest answer; the answers are 0..n.
        mu_bar: largest difference μ̄ of neighbouring answers.
        epsilon: budget ε > 0.
        h: the index h of the region, as printed; 0 for Lemma 4.
        j: the index j of the region, as printed; 0 for Lemma 4.
    """
    grid = Grid(n, mu_bar, epsilon)
    b = grid.rows
    r = grid.tall_columns
    a = grid.ratio
    u = int(j != h)
    alpha = a * _xi(epsilon, b) - (1 - u) * a ** (b - h + j + 1)
    middle = a ** (b - h + 1) * (a**j - _xi(epsilon, h))
    beta = 1.0 + middle + (r + h - u) * a ** (b + 1)
    return 1.0 / (mu_bar * alpha + beta)


@dataclass(frozen=True)
class PrintedLimit:
    """The limit of a printed flat region as n -> ∞, with c = b - h whole groups, and j.

    By (31) the groups c + 1, c + 2, ... have μ̄ - 1 masses, except the group c + j + 1, which has μ̄.

    Attributes:
        printed_beta: limit of β as (54) prints it.
        beta: limit of β by (36): 1 + a^{c+1} (a^j - 1/(1-a)).
        printed_mass: f(0) as (55) prints it.
        mass: f(0) by (34), with this β and the limit α = a/(1-a).
        lower: lower end of the claimed δ interval by (37c), with `mass`.
        upper: upper end of the claimed δ interval by (37a), with `mass`.
    """

    printed_beta: float
    beta: float
    printed_mass: float
    mass: float
    lower: float
    upper: float


def printed_limit(mu_bar: int, epsilon: float, c: int, j: int) -> PrintedLimit:
    """Compute the limit of a printed flat region as n -> ∞, as printed and by (31), (34), (36).

    Args:
        mu_bar: largest difference μ̄ of neighbouring answers.
        epsilon: budget ε > 0.
        c: number c = b - h of whole groups, >= 1.
        j: the index j of the region, >= 1.
    """
    a = math.exp(-epsilon)
    alpha = a / (1.0 - a)
    beta = 1.0 + a ** (c + 1) * (a**j - 1.0 / (1.0 - a))
    mass = 1.0 / (mu_bar * alpha + beta)
    return PrintedLimit(
        printed_beta=1.0 - a ** (c + j + 1) / (1.0 - a),
        beta=beta,
        printed_mass=(1.0 - a) / (mu_bar * a + 1.0 - a * (1.0 + a ** (c + j))),
        mass=mass,
        lower=mass * a**c * _xi(epsilon, j),
        upper=mass * a**c * _xi(epsilon, j + 1),
    )
