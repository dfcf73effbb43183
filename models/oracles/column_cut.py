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
powers nearest to the crossing of 1/T and δ/loss: `DigitSums` finds it where the cut vectors are too many to list, by
meeting in the middle: every multiset of the first half of the powers and every multiset of the second half are listed
with their sizes and sums; for each size of the first part its complement is looked up in the sorted sums of the second
part. Exact up to rounding, and far below the C(K + p, p) multisets of the whole.

| paper   | here                                              |
|---------|---------------------------------------------------|
| μ̄       | `mu_bar`                                          |
| φ₀^k    | f(0) of a flat region, 1 / T_c                    |
| ψ₀^k(δ) | f(0) of a linear region, δ / S_c                  |
| k_i     | how many columns are cut at row i + 1: `counts`   |
"""

import math
from collections.abc import Iterator
from contextlib import suppress
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import NDArray

from workbench.models.oracles.cut_vectors import Cuts, Grid, evaluate_cuts, grouped_cuts
from workbench.models.oracles.cuts import best_cut, cut_values
from workbench.models.oracles.question import OutsideDomain
from workbench.solvers.arrays import Integers, Vector

MAX_SPLITS = 100
"""How many splits the search visits at most; where the law is proven the first few decide."""

MAX_TRUNCATION_SIZE = 20_000_000
"""The largest n·μ̄: every truncation is kept as a cut vector."""

MAX_MULTISETS = 2_000_000
"""The largest list of half-multisets that is built."""

MAX_SEARCHED_MU_BAR = 128
"""The largest μ̄ whose cut vectors are searched beyond the truncations and beyond the lists of `grouped_cuts`."""


class ColumnCut(NamedTuple):
    """The best cut found, and the chain bound on every mechanism.

    `mass` is f(0) and `loss` is S_c. `vector` is the cut vector (c_1..c_μ̄), all 1 for "everything but 0 is a hole",
    None for the uncut law. `bound` is the chain bound on f(0), None where it is not computed.
    """

    mass: float
    vector: Integers | None
    loss: float
    bound: float | None


class _Split(NamedTuple):
    """How many columns are cut: `deep` above row b + 1 (`tall_deep` of them tall), `edge` tall ones at row b + 1."""

    deep: int
    tall_deep: int
    edge: int
    bound: float
    target: float


class _Multisets(NamedTuple):
    """Multisets of some powers of one size, in order of their sums.

    last, rest: the last power of each, and where the others stand among those of one size less.
    """

    sums: Vector
    last: NDArray[np.int32]
    rest: NDArray[np.int32]


def _multisets(powers: Vector, most: int) -> list[_Multisets]:
    """By size. Every multiset of k powers is one of k - 1 with a power that is not before its last; none is copied."""
    none = np.zeros(1, dtype=np.int32)
    half = [_Multisets(np.zeros(1), none, none)]
    for _ in range(most):
        before = half[-1]
        free = len(powers) - before.last
        rest = np.repeat(np.arange(len(free), dtype=np.int32), free)
        last = (
            np.arange(len(rest), dtype=np.int32)
            - np.repeat(np.cumsum(free) - free, free)
            + before.last[rest]
        )
        sums = before.sums[rest] + powers[last]
        order = np.argsort(sums, kind="stable")
        half.append(_Multisets(sums[order], last[order].astype(np.int32), rest[order]))
    return half


def _counts(half: list[_Multisets], size: int, at: int, powers: int) -> Integers:
    """How often each power is in one of them."""
    counts = np.zeros(powers, dtype=np.int64)
    for multisets in half[size:0:-1]:
        counts[multisets.last[at]] += 1
        at = int(multisets.rest[at])
    return counts


class DigitSums:
    """All sums of at most `most` of the powers a^1..a^p; raises OutsideDomain when the lists would be too long."""

    def __init__(self, a: float, p: int, most: int) -> None:
        split = p // 2
        longest = math.comb(most + p - split, most)
        if longest > MAX_MULTISETS:
            raise OutsideDomain(
                f"the chain search needs lists of at most {MAX_MULTISETS} entries. Got {longest}."
            )
        powers = np.power(a, np.arange(1, p + 1))
        self._parts = split, p - split
        self._head, self._tail = _multisets(powers[:split], most), _multisets(powers[split:], most)

    def nearest(self, size: int, target: float) -> list[Integers]:
        """Counts, shape (p,), of the largest sum <= target and of the least sum > target among multisets of `size`."""
        best: dict[
            int, tuple[float, int, int, int]
        ] = {}  # side -> distance, size of the head, place in head and tail
        for head_size in range(size + 1):
            heads, tails = self._head[head_size].sums, self._tail[size - head_size].sums
            above = np.searchsorted(tails, target - heads, side="right")
            for side, at in ((-1, above - 1), (1, above)):
                usable = np.flatnonzero((at >= 0) & (at < len(tails)))
                sums = side * (heads[usable] + tails[at[usable]])
                if usable.size and (side not in best or sums.min() < best[side][0]):
                    i = int(usable[sums.argmin()])
                    best[side] = float(sums.min()), head_size, i, int(at[i])
        first, second = self._parts
        return [
            np.concatenate(
                [_counts(self._head, head, i, first), _counts(self._tail, size - head, k, second)]
            )
            for _, head, i, k in best.values()
        ]


def truncation_cuts(grid: Grid) -> Cuts:
    """Empty everything beyond one end >= μ̄. Any ε, any n.

    The shift μ leaves the support from the elements end - μ < η <= min(end, n - μ); w falls, so μ = μ̄ loses the most.
    """
    ends = np.arange(grid.mu_bar, grid.n)
    leaving = grid.weights
    leaving[grid.n - grid.mu_bar + 1 :] = 0.0
    losses = sliding_window_view(leaving, grid.mu_bar)[ends - grid.mu_bar + 1].sum(
        axis=1
    )  # no cancellation
    first_holes = (ends[:, None] - np.arange(1, grid.mu_bar + 1)) // grid.mu_bar + 2
    return Cuts(
        np.minimum(first_holes, grid.heights + 1), np.cumsum(grid.weights)[ends], losses, losses
    )


def _plain(grid: Grid) -> Cuts:
    """Everything but 0, and the truncations."""
    if grid.n * grid.mu_bar > MAX_TRUNCATION_SIZE:
        raise OutsideDomain(
            f"n * mu_bar must be at most {MAX_TRUNCATION_SIZE}. Got {grid.n} * {grid.mu_bar}."
        )
    everything = Cuts(np.ones((1, grid.mu_bar), dtype=np.int64), np.ones(1), np.ones(1), np.ones(1))
    return Cuts.join([everything, truncation_cuts(grid)])


_sums = lru_cache(maxsize=2)(DigitSums)


def _splits(grid: Grid, delta: float) -> Iterator[_Split]:
    """All splits with the largest min(1/T, δ/loss) that a real-valued σ could give them, best first."""
    a, rows, tall, mu_bar = grid.ratio, grid.rows, grid.tall, grid.mu_bar
    slope = a / -math.expm1(-grid.epsilon)
    edge, deep, tall_deep = np.indices((tall + 1, mu_bar + 1 if rows > 1 else 1, tall + 1)).reshape(
        3, -1
    )
    fits = (edge + tall_deep <= tall) & (tall_deep <= deep) & (deep - tall_deep <= mu_bar - tall)
    edge, deep, tall_deep = edge[fits], deep[fits], tall_deep[fits]
    kept = (edge + mu_bar - tall - deep + tall_deep) * a**rows + (tall - tall_deep - edge) * a ** (
        rows + 1
    )
    level = 1.0 + slope * (mu_bar - kept)
    target = (delta * level - edge * a**rows) / (1.0 + delta * slope)
    sigma = np.clip(target, deep * a ** (rows - 1), deep * a)
    bound = cut_values(level - slope * sigma, sigma + edge * a**rows, delta)
    for k in np.argsort(-bound, kind="stable"):
        yield _Split(
            int(deep[k]), int(tall_deep[k]), int(edge[k]), float(bound[k]), float(target[k])
        )


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


def _search_cuts(grid: Grid, delta: float) -> tuple[Cuts, float | None]:
    """Cut vectors worth comparing when there are too many to list, and the chain bound on f(0).

    Splits come best bound first, so leaving the rest out keeps the bound rigorous; None where not even that is done.
    """
    candidates = [_plain(grid)]
    _, mass = best_cut(candidates[0].totals, candidates[0].losses, grid.total, delta)
    bound = left = mass
    if grid.mu_bar > MAX_SEARCHED_MU_BAR:
        return candidates[0], None
    with suppress(OutsideDomain):
        for visited, split in enumerate(_splits(grid, delta)):
            left = split.bound
            if left <= mass * (1.0 + 1e-15) or visited == MAX_SPLITS:
                break
            cuts = evaluate_cuts(grid, _vectors(grid, split))
            cuts = cuts.select(np.any(cuts.vectors <= grid.heights, axis=1))
            if len(cuts.totals):
                candidates.append(cuts)
                mass = max(mass, float(cut_values(cuts.totals, cuts.losses, delta).max()))
                bound = max(bound, float(cut_values(cuts.totals, cuts.chain_losses, delta).max()))
        else:
            left = bound
    return Cuts.join(candidates), max(bound, left)


@lru_cache(maxsize=8)
def list_cuts(grid: Grid) -> Cuts | None:
    """All cuts the law and the chain bound need, or None when they are too many to list; it does not depend on δ.

    When n <= 2μ̄ the truncations are all there is up to order.
    """
    if grid.n <= 2 * grid.mu_bar:
        return _plain(grid)
    listed = grouped_cuts(grid)
    return None if listed is None else Cuts.join([_plain(grid), listed])


def best_column_cut(n: int, mu_bar: int, epsilon: float, delta: float) -> ColumnCut:
    """The cut vector with the largest f(0), and the chain bound. Raises OutsideDomain for n and mu_bar too large."""
    grid = Grid(n, mu_bar, epsilon)
    cuts, bound = list_cuts(grid), None
    if cuts is not None:
        _, bound = best_cut(cuts.totals, cuts.chain_losses, grid.total, delta)
    else:
        cuts, bound = _search_cuts(grid, delta)
    index, mass = best_cut(cuts.totals, cuts.losses, grid.total, delta)
    if index is None:
        return ColumnCut(mass, None, 0.0, bound)
    return ColumnCut(mass, cuts.vectors[index], float(cuts.losses[index]), bound)
