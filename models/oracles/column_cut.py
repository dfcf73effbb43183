"""The column-cut law for BD, 𝓜 = {1..μ̄}, under (ε, δ)-PDP, and the chain bound that judges it.

Law (achievable, any ε and n):              f(0)  = max{ δ, 1/T₀, max over c of min(1/T_c, δ/S_c) }.
Chain bound (on every mechanism, any ε, n): f(0) <= max{ δ, 1/T₀, max over c of min(1/T_c, δ/Σ_{j cut} a^{c_j-1}) }.

Proof of the bound. If 0 breaks e^ε to some j in 1..μ̄ then f(0) <= δ. Otherwise follow each column, 0 -> j -> j + μ̄ ->
..., to the first break of the shift μ̄, say into row c_j. The rows before it weigh at least a^row f(0), which makes
T_c f(0) <= 1, and the last of them counts against δ for μ = μ̄, all columns together: Σ a^{c_j - 1} f(0) <= δ. ∎

Where law and bound agree the law is proven, without a MILP. They agree
  * for every δ when n <= 2μ̄: only the last row can be cut, at the end of the range, and then S_c is its chain loss;
  * for every δ when μ̄ | n and ε >= ln 2: c may be sorted non-increasing, and a + a² + ... <= 1 makes every column
    lose at most a^{c_j - 1} to any shift, so S_c is the chain loss;
  * for δ <= φ₀ a^{⌈n/μ̄⌉ - 1} at every ε and n: no cut is affordable yet and the δ = 0 law stands;
  * and at most other (δ, ε), which is found out by comparing the two numbers.
For ε < ln 2 breaks inside the support can pay: n = 8, μ̄ = 2, ε = 0.5, δ = 0.2 has law .315263, optimum .329744.

With s_j = a^{c_j - 1}, a + ... + a^{c_j - 1} = A (1 - s_j), A = a/(1 - a): once it is fixed how many tall and short
columns are cut, T falls and the chain loss rises with the one number σ = Σ s_j. The best σ is the achievable sum of
powers nearest to the crossing of 1/T and δ/loss: `DigitSums` finds it where the cut vectors are too many to list.

| paper   | here                                              |
|---------|---------------------------------------------------|
| μ̄       | `mu_bar`                                          |
| φ₀^k    | f(0) of a flat region, 1 / T_c                    |
| ψ₀^k(δ) | f(0) of a linear region, δ / S_c                  |
"""

import math
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

from models.oracles.closed_form import OutsideDomain, check_delta
from models.oracles.cut_vectors import Cuts, Grid, evaluate, grouped_cuts
from models.oracles.cuts import best_cut, cut_values
from models.oracles.digit_sums import DigitSums
from solvers.arrays import Integers

QUERIES = 100
"""How many splits the search visits at most; where the law is proven the first few decide."""

LARGEST = 20_000_000
"""The largest n·μ̄: every truncation is kept as a cut vector."""

WIDEST = 128
"""The largest μ̄ whose cut vectors are searched beyond the truncations and beyond the lists of `grouped_cuts`."""


@dataclass(frozen=True, eq=False)
class ColumnCut:
    """The best cut found, and the chain bound on every mechanism.

    `mass` is f(0) and `loss` is S_c. `vector` is the cut vector (c_1..c_μ̄), all 1 for "everything but 0 is a hole",
    None for the uncut law. `bound` is the chain bound on f(0), None where it is not computed.
    """

    mass: float
    vector: Integers | None
    loss: float
    bound: float | None


@dataclass(frozen=True)
class _Split:
    """How many columns are cut: `deep` above row b + 1 (`tall_deep` of them tall), `edge` tall ones at row b + 1."""

    deep: int
    tall_deep: int
    edge: int
    bound: float
    target: float


def truncations(grid: Grid) -> Cuts:
    """Empty everything beyond one end >= μ̄. Any ε, any n.

    The shift μ leaves the support from the elements end - μ < η <= min(end, n - μ); w falls, so μ = μ̄ loses the most.
    """
    ends = np.arange(grid.mu_bar, grid.n)
    leaving = grid.weights
    leaving[grid.n - grid.mu_bar + 1 :] = 0.0
    losses = sliding_window_view(leaving, grid.mu_bar)[ends - grid.mu_bar + 1].sum(axis=1)  # no cancellation
    first_holes = (ends[:, None] - np.arange(1, grid.mu_bar + 1)) // grid.mu_bar + 2
    return Cuts(np.minimum(first_holes, grid.heights + 1), np.cumsum(grid.weights)[ends], losses, losses)


def _plain(grid: Grid) -> Cuts:
    """Everything but 0, and the truncations."""
    if grid.n * grid.mu_bar > LARGEST:
        raise OutsideDomain(f"n * mu_bar must be at most {LARGEST}. Got {grid.n} * {grid.mu_bar}.")
    everything = Cuts(np.ones((1, grid.mu_bar), dtype=np.int64), np.ones(1), np.ones(1), np.ones(1))
    return Cuts.join(grid.mu_bar, [everything, truncations(grid)])


@lru_cache(maxsize=2)
def _sums(a: float, p: int, most: int) -> DigitSums:
    return DigitSums(a, p, most)


def _splits(grid: Grid, delta: float) -> Iterator[_Split]:
    """All splits with the largest min(1/T, δ/loss) that a real-valued σ could give them, best first."""
    a, rows, tall, mu_bar = grid.ratio, grid.rows, grid.tall, grid.mu_bar
    slope = a / -math.expm1(-grid.epsilon)
    edge, deep, tall_deep = np.indices((tall + 1, mu_bar + 1 if rows > 1 else 1, tall + 1)).reshape(3, -1)
    fits = (edge + tall_deep <= tall) & (tall_deep <= deep) & (deep - tall_deep <= mu_bar - tall)
    edge, deep, tall_deep = edge[fits], deep[fits], tall_deep[fits]
    kept = (edge + mu_bar - tall - deep + tall_deep) * a**rows + (tall - tall_deep - edge) * a ** (rows + 1)
    level = 1.0 + slope * (mu_bar - kept)
    target = (delta * level - edge * a**rows) / (1.0 + delta * slope)
    sigma = np.clip(target, deep * a ** (rows - 1), deep * a)
    bound = cut_values(level - slope * sigma, sigma + edge * a**rows, delta)
    for k in np.argsort(-bound, kind="stable"):
        yield _Split(int(deep[k]), int(tall_deep[k]), int(edge[k]), float(bound[k]), float(target[k]))


def _vectors(grid: Grid, split: _Split) -> Integers:
    """Grouped cut vectors of a split with σ next to its target; the tall columns take the shallow cuts."""
    rows, tall = grid.rows, grid.tall
    counts = [np.zeros(0, dtype=np.int64)]
    if split.deep:
        counts = _sums(grid.ratio, rows - 1, grid.mu_bar).nearest(split.deep, split.target)
    whole_tall = np.full(tall - split.tall_deep - split.edge, rows + 2)
    whole_short = np.full(grid.mu_bar - tall - split.deep + split.tall_deep, rows + 1)
    edge = np.full(split.edge, rows + 1)
    vectors = []
    for count in counts:
        cuts = np.repeat(np.arange(2, 2 + len(count)), count)[::-1]
        on_tall, on_short = cuts[: split.tall_deep], cuts[split.tall_deep :]
        vectors.append(np.concatenate([whole_tall, edge, on_tall, whole_short, on_short]))
    return np.array(vectors, dtype=np.int64)


def _search(grid: Grid, delta: float) -> tuple[Cuts, float | None]:
    """Cut vectors worth comparing when there are too many to list, and the chain bound on f(0).

    Splits come best bound first, so leaving the rest out keeps the bound rigorous; None where not even that is done.
    """
    candidates = [_plain(grid)]
    _, mass = best_cut(candidates[0].totals, candidates[0].losses, grid.total, delta)
    bound = left = mass
    if grid.mu_bar > WIDEST:
        return candidates[0], None
    with suppress(OutsideDomain):
        for visited, split in enumerate(_splits(grid, delta)):
            left = split.bound
            if left <= mass * (1.0 + 1e-15) or visited == QUERIES:
                break
            cuts = evaluate(grid, _vectors(grid, split))
            cuts = cuts.only(np.any(cuts.vectors <= grid.heights, axis=1))
            if len(cuts.totals):
                candidates.append(cuts)
                mass = max(mass, float(cut_values(cuts.totals, cuts.losses, delta).max()))
                bound = max(bound, float(cut_values(cuts.totals, cuts.chain_losses, delta).max()))
        else:
            left = bound
    return Cuts.join(grid.mu_bar, candidates), max(bound, left)


@lru_cache(maxsize=8)
def every_cut(grid: Grid) -> Cuts | None:
    """All cuts the law and the chain bound need, or None when they are too many to list; it does not depend on δ.

    When n <= 2μ̄ the truncations are all there is up to order.
    """
    if grid.n <= 2 * grid.mu_bar:
        return _plain(grid)
    listed = grouped_cuts(grid)
    return None if listed is None else Cuts.join(grid.mu_bar, [_plain(grid), listed])


def best_column_cut(n: int, mu_bar: int, epsilon: float, delta: float) -> ColumnCut:
    """The cut vector with the largest f(0), and the chain bound. Raises OutsideDomain on a bad value."""
    grid = Grid(n, mu_bar, epsilon)
    check_delta(delta)
    cuts, bound = every_cut(grid), None
    if cuts is not None:
        _, bound = best_cut(cuts.totals, cuts.chain_losses, grid.total, delta)
    else:
        cuts, bound = _search(grid, delta)
    index, mass = best_cut(cuts.totals, cuts.losses, grid.total, delta)
    if index is None:
        return ColumnCut(mass, None, 0.0, bound)
    return ColumnCut(mass, cuts.vectors[index], float(cuts.losses[index]), bound)
