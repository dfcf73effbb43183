"""Compute the column-cut law and the chain bound for noise modulo n + 1 with differences 1..μ̄.

`best_column_cut` answers: under (ε, δ)-PDP with the shifts 𝓜 = {1..μ̄}, what is the largest f(0) of
a cut mechanism (the law), and what is an upper bound on f(0) for every mechanism (the chain bound)?

Notation. f is the PMF of the noise, a = e^-ε, and Z_{n+1} the group. A constraint
f(η) <= e^ε f(η + μ) is broken (a break) if it does not hold; for each shift μ, PDP allows the
elements of broken constraints at most mass δ. The noise values 1..n are written in rows of μ̄
columns (`cut_vectors`). A cut vector c makes the rows from c_j on in column j holes, whose masses
are smaller. T_c is the total weight of the support that is left (relative to f(0)), S_c the weight
of the broken constraints, T₀ the weight of the uncut law (`cuts`). "j cut" means that column j has
a hole. φ₀ is 1/T₀.

Law (achievable, any ε and n):

    f(0)  = max{ δ, 1/T₀, max over c of min(1/T_c, δ/S_c) }

Chain bound (on every mechanism, any ε and n):

    f(0) <= max{ δ, 1/T₀, max over c of min(1/T_c, δ/Σ_{j cut} a^{c_j-1}) }

Proof of the bound. If 0 breaks e^ε to some j in 1..μ̄ then f(0) <= δ. Otherwise follow each column,
0 -> j -> j + μ̄ -> ..., to the first break of the shift μ̄, say into row c_j. The rows before it
weigh at least a^row f(0), so that T_c f(0) <= 1. The last of them counts against δ for μ = μ̄, and
all columns together give Σ a^{c_j - 1} f(0) <= δ. ∎

Where law and bound agree, the law is proven without a mixed-integer program. They agree
  * for every δ when n <= 2μ̄: only the last row can be cut, at the end of the range, and then S_c
    is its chain weight;
  * for every δ when μ̄ | n and ε >= ln 2: c may be sorted non-increasing, and since
    a + a² + ... <= 1, any shift breaks constraints of weight at most a^{c_j - 1} in column j, so
    S_c is the chain weight;
  * for δ <= φ₀ a^{⌈n/μ̄⌉ - 1} at every ε and n: no cut is affordable yet, and the δ = 0 law holds;
  * and at most other (δ, ε), as a comparison of the two numbers shows.

For ε < ln 2 breaks inside the support can be better: for n = 8, μ̄ = 2, ε = 0.5, δ = 0.2 the law
has f(0) = .315263, and the optimum is .329744.

Search of the best cut. Let s_j = a^{c_j - 1}. The chain weight is Σ_{j cut} s_j. The weight of
column j that is left is a + ... + a^{c_j - 1} = A (1 - s_j), with A = a/(1 - a). For a fixed number
of tall and short columns that are cut (a split), T falls and the chain weight rises with the one
number σ = Σ s_j. The best σ is the achievable sum of powers of a nearest to the crossing of 1/T and
δ/(chain weight). If the cut vectors are too many to list, `PowerSums` finds it by meeting in the
middle. It lists every multiset of the first half of the powers, and of the second half, with their
sizes and sums. For each size of the first part it looks the complement up in the sorted sums of the
second part. This is exact up to rounding, and far shorter than a list of all C(K + p, p) multisets
of at most K of p powers.

| paper (Kadam et al. 2024) | here                                         |
|---------------------------|----------------------------------------------|
| μ̄                         | `mu_bar`                                     |
| φ₀^k                      | f(0) of a flat region (in δ), 1 / T_c        |
| ψ₀^k(δ)                   | f(0) of a linear region, δ / S_c             |
| k_i                       | number of columns cut at row i + 1: `counts` |
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

# The search visits at most this many splits. If the law is optimal, the first few suffice.
MAX_SPLITS = 100
# Questions with a larger n·μ̄ are refused, since every truncation is stored as a cut vector.
MAX_TRUNCATION_SIZE = 20_000_000
# If a list of half-multisets would be longer, the splits are not searched.
MAX_MULTISETS = 2_000_000
# For a larger μ̄ only the truncations and the lists of `grouped_cuts` are compared, and the search
# gives no chain bound.
MAX_SEARCHED_MU_BAR = 128
_MASS_ROUNDING = 1e-15  # A bound that exceeds the mass by at most this share has been reached.


class ColumnCut(NamedTuple):
    """The best cut, and the chain bound on f(0) of every mechanism.

    Attributes:
        mass: largest mass f(0) of a cut mechanism.
        vector: cut vector (c_1..c_μ̄), all 1 for "everything but 0 is a hole". None for the uncut
            law.
        broken_weight: weight S_c of the broken constraints of the cut.
        bound: chain bound on f(0), or None if it is not computed.
    """

    mass: float
    vector: Integers | None
    broken_weight: float
    bound: float | None


class _Split(NamedTuple):
    """The numbers of columns that are cut, for a group of cut vectors.

    b is the number of full rows; tall columns have the row b + 1 as well.

    Attributes:
        deep: number of columns j with c_j <= b, which are cut before row b + 1.
        tall_deep: number of tall columns among the deep columns.
        edge: number of tall columns with c_j = b + 1, of which only the last row is a hole.
        bound: largest f(0) that a real-valued σ could give.
        target: value of σ at which this largest f(0) is reached.
    """

    deep: int
    tall_deep: int
    edge: int
    bound: float
    target: float


class _Multisets(NamedTuple):
    """All multisets of some size of the powers of a list, in order of their sums.

    A multiset is stored as its last power and the multiset of its other powers. For the powers
    [p0, p1] and the size 2, they are {p0, p0}, {p0, p1} and {p1, p1}, with the last powers 0, 1, 1.

    Attributes:
        sums: sum of each multiset, shape (multisets,).
        last: index of the last power of each, shape (multisets,).
        smaller: number of the multiset of its other powers, among those of one size less, shape
            (multisets,).
    """

    sums: Vector
    last: NDArray[np.int32]
    smaller: NDArray[np.int32]


class _NearestSum(NamedTuple):
    """The sum of a multiset that is nearest to the target on one side.

    Attributes:
        distance: the sum, or minus the sum below the target, so that a smaller number is nearer.
        head_size: number of its powers from the first half.
        head_index: number of the multiset of these powers.
        tail_index: number of the multiset of the powers from the second half.
    """

    distance: float
    head_size: int
    head_index: int
    tail_index: int


def _list_multisets(powers: Vector, max_size: int) -> list[_Multisets]:
    """Return the multisets of powers, one object for each size 0..max_size.

    Every multiset of k powers is a multiset of k - 1 powers with one more power that is not before
    its last one. Only the number of the smaller multiset is stored.
    """
    zero = np.zeros(1, dtype=np.int32)
    multisets_by_size = [_Multisets(np.zeros(1), zero, zero)]
    for _ in range(max_size):
        previous = multisets_by_size[-1]
        extension_counts = len(powers) - previous.last
        previous_numbers = np.arange(len(extension_counts), dtype=np.int32)
        smaller = np.repeat(previous_numbers, extension_counts)
        first_numbers = np.repeat(np.cumsum(extension_counts) - extension_counts, extension_counts)
        last = np.arange(len(smaller), dtype=np.int32) - first_numbers + previous.last[smaller]
        sums = previous.sums[smaller] + powers[last]
        order = np.argsort(sums, kind="stable")
        sorted_last = last[order].astype(np.int32)
        multisets_by_size.append(_Multisets(sums[order], sorted_last, smaller[order]))
    return multisets_by_size


def _count_powers(
    multisets_by_size: list[_Multisets],
    size: int,
    index: int,
    power_count: int,
) -> Integers:
    """Count how often each power occurs in a multiset of some size, shape (power_count,)."""
    counts = np.zeros(power_count, dtype=np.int64)
    for multisets in multisets_by_size[size:0:-1]:
        counts[multisets.last[index]] += 1
        index = int(multisets.smaller[index])
    return counts


class PowerSums:
    """All sums of at most `max_size` of the powers a^1..a^p, with repetitions.

    Args:
        a: base in (0, 1).
        p: number of powers.
        max_size: largest number of summands.

    Raises:
        OutsideDomain: the lists would be too long.
    """

    def __init__(
        self,
        a: float,
        p: int,
        max_size: int,
    ) -> None:
        split = p // 2
        list_length = math.comb(max_size + p - split, max_size)
        if list_length > MAX_MULTISETS:
            raise OutsideDomain(
                f"the chain search needs lists of at most {MAX_MULTISETS} entries. "
                f"Got {list_length}."
            )
        powers = np.power(a, np.arange(1, p + 1))
        self._part_sizes = split, p - split
        self._head = _list_multisets(powers[:split], max_size)
        self._tail = _list_multisets(powers[split:], max_size)

    def find_nearest(self, size: int, target: float) -> list[Integers]:
        """Return the multisets whose sums are next to a target, from below and from above.

        Args:
            size: number of summands.
            target: number that the sums should be close to.

        Returns:
            For the largest sum <= target and the smallest sum > target, if they exist, how often
            each power occurs, shape (p,). For a = 1/2, p = 3, size = 2 and the target 3/4 they are
            [1, 1, 0] (the sum 1/2 + 1/4) and [2, 0, 0] (1/2 + 1/2).
        """
        nearest: dict[int, _NearestSum] = {}  # The keys are -1 (from below) and 1 (from above).
        for head_size in range(size + 1):
            heads = self._head[head_size].sums
            tails = self._tail[size - head_size].sums
            upper_index = np.searchsorted(tails, target - heads, side="right")
            for side, tail_indices in ((-1, upper_index - 1), (1, upper_index)):
                usable = np.flatnonzero((tail_indices >= 0) & (tail_indices < len(tails)))
                sums = side * (heads[usable] + tails[tail_indices[usable]])
                if usable.size and (side not in nearest or sums.min() < nearest[side].distance):
                    i = int(usable[sums.argmin()])
                    nearest[side] = _NearestSum(
                        float(sums.min()), head_size, i, int(tail_indices[i])
                    )
        head_powers, tail_powers = self._part_sizes
        counts = []
        for _, head_size, head_index, tail_index in nearest.values():
            head_counts = _count_powers(self._head, head_size, head_index, head_powers)
            tail_counts = _count_powers(self._tail, size - head_size, tail_index, tail_powers)
            counts.append(np.concatenate([head_counts, tail_counts]))
        return counts


def truncation_cuts(grid: Grid) -> Cuts:
    """Return the truncations: cuts that make all noise values beyond one end >= μ̄ holes.

    The shift μ leads from the support into a hole from the elements end - μ < η <= min(end, n - μ).
    The weights fall with η, so the weight of these elements is largest for μ = μ̄.

    Args:
        grid: table of rows and columns for n, μ̄ and ε.
    """
    ends = np.arange(grid.mu_bar, grid.n)
    leaving_weights = grid.weights.copy()
    leaving_weights[grid.n - grid.mu_bar + 1 :] = 0.0
    # Windows are summed one by one, so that no digits cancel.
    windows = sliding_window_view(leaving_weights, grid.mu_bar)
    broken_weights = windows[ends - grid.mu_bar + 1].sum(axis=1)
    columns = np.arange(1, grid.mu_bar + 1)
    # The last element of column j up to `end` is in row (end - j) // μ̄ + 1, so the next row is the
    # first hole.
    first_holes = (ends[:, None] - columns) // grid.mu_bar + 2
    totals = np.cumsum(grid.weights)[ends]
    return Cuts(np.minimum(first_holes, grid.heights + 1), totals, broken_weights, broken_weights)


def _simple_cuts(grid: Grid) -> Cuts:
    """Return the cut of everything but 0, and the truncations."""
    if grid.n * grid.mu_bar > MAX_TRUNCATION_SIZE:
        raise OutsideDomain(
            f"n * mu_bar must be at most {MAX_TRUNCATION_SIZE}. Got {grid.n} * {grid.mu_bar}."
        )
    # T, S and the chain weight of the cut of everything but 0 are 1, the weight of 0.
    weight = np.ones(1)
    everything = Cuts(np.ones((1, grid.mu_bar), dtype=np.int64), weight, weight, weight)
    return Cuts.join([everything, truncation_cuts(grid)])


_cached_power_sums = lru_cache(maxsize=2)(PowerSums)


def _iterate_splits(grid: Grid, delta: float) -> Iterator[_Split]:
    """Yield all splits, those with the largest bound on f(0) first.

    The bound is the largest min(1/T, δ/(chain weight)) over all real σ in the range of the split.
    """
    a = grid.ratio
    rows = grid.rows
    tall_count = grid.tall_columns
    mu_bar = grid.mu_bar
    sigma_weight = a / -math.expm1(-grid.epsilon)
    shape = (tall_count + 1, mu_bar + 1 if rows > 1 else 1, tall_count + 1)
    edge, deep_count, tall_deep = np.indices(shape).reshape(3, -1)
    fits_tall = (edge + tall_deep <= tall_count) & (tall_deep <= deep_count)
    fits = fits_tall & (deep_count - tall_deep <= mu_bar - tall_count)
    edge = edge[fits]
    deep_count = deep_count[fits]
    tall_deep = tall_deep[fits]
    whole_short_sum = (edge + mu_bar - tall_count - deep_count + tall_deep) * a**rows
    whole_tall_sum = (tall_count - tall_deep - edge) * a ** (rows + 1)
    total_at_zero = 1.0 + sigma_weight * (mu_bar - (whole_short_sum + whole_tall_sum))
    target = (delta * total_at_zero - edge * a**rows) / (1.0 + delta * sigma_weight)
    sigma = np.clip(target, deep_count * a ** (rows - 1), deep_count * a)
    bound = cut_values(total_at_zero - sigma_weight * sigma, sigma + edge * a**rows, delta)
    for k in np.argsort(-bound, kind="stable"):
        yield _Split(
            int(deep_count[k]),
            int(tall_deep[k]),
            edge=int(edge[k]),
            bound=float(bound[k]),
            target=float(target[k]),
        )


def _split_vectors(grid: Grid, split: _Split) -> Integers:
    """Return grouped cut vectors of a split with σ next to its target, shape (vectors, μ̄).

    The tall columns take the cuts at the largest rows.
    """
    rows = grid.rows
    tall_count = grid.tall_columns
    counts = [np.zeros(0, dtype=np.int64)]
    if split.deep:
        power_sums = _cached_power_sums(grid.ratio, rows - 1, grid.mu_bar)
        counts = power_sums.find_nearest(split.deep, split.target)
    whole_tall = np.full(tall_count - split.tall_deep - split.edge, rows + 2)
    whole_short = np.full(grid.mu_bar - tall_count - split.deep + split.tall_deep, rows + 1)
    edge = np.full(split.edge, rows + 1)
    vectors = []
    for count in counts:
        # The power a^i = a^(c - 1) belongs to the cut c = i + 1. The largest rows come first.
        cuts = np.repeat(np.arange(2, 2 + len(count)), count)[::-1]
        tall_cuts = cuts[: split.tall_deep]
        short_cuts = cuts[split.tall_deep :]
        vectors.append(np.concatenate([whole_tall, edge, tall_cuts, whole_short, short_cuts]))
    return np.array(vectors, dtype=np.int64)


def _search_cuts(grid: Grid, delta: float) -> tuple[Cuts, float | None]:
    """Return cuts worth comparing when there are too many to list, and the chain bound on f(0).

    The splits come in the order of their bounds, the largest first. So the bound of the first split
    that is left out holds for all others as well. The chain bound is None if μ̄ is above
    MAX_SEARCHED_MU_BAR, where no bound is computed.
    """
    simple_cuts = _simple_cuts(grid)
    candidates = [simple_cuts]
    _, mass = best_cut(simple_cuts.totals, simple_cuts.broken_weights, grid.total, delta)
    bound = mass
    unvisited_bound = mass
    if grid.mu_bar > MAX_SEARCHED_MU_BAR:
        return simple_cuts, None
    with suppress(OutsideDomain):
        for visited, split in enumerate(_iterate_splits(grid, delta)):
            unvisited_bound = split.bound
            if unvisited_bound <= mass * (1.0 + _MASS_ROUNDING) or visited == MAX_SPLITS:
                break
            cuts = evaluate_cuts(grid, _split_vectors(grid, split))
            has_cut = np.any(cuts.vectors <= grid.heights, axis=1)
            cuts = cuts.select(has_cut)
            if len(cuts.totals):
                candidates.append(cuts)
                mass = max(mass, float(cut_values(cuts.totals, cuts.broken_weights, delta).max()))
                chain_values = cut_values(cuts.totals, cuts.chain_weights, delta)
                bound = max(bound, float(chain_values.max()))
        else:
            # All splits were visited, so no bound of an unvisited one counts.
            unvisited_bound = bound
    return Cuts.join(candidates), max(bound, unvisited_bound)


@lru_cache(maxsize=8)
def list_cuts(grid: Grid) -> Cuts | None:
    """Return all cuts that the law and the chain bound need, for every δ.

    When n <= 2μ̄ the truncations are all cuts up to order.

    Args:
        grid: table of rows and columns for n, μ̄ and ε.

    Returns:
        The cuts, or None if they are too many to list.
    """
    if grid.n <= 2 * grid.mu_bar:
        return _simple_cuts(grid)
    grouped = grouped_cuts(grid)
    return None if grouped is None else Cuts.join([_simple_cuts(grid), grouped])


def best_column_cut(
    n: int,
    mu_bar: int,
    epsilon: float,
    delta: float,
) -> ColumnCut:
    """Find the cut vector with the largest f(0), and the chain bound.

    Args:
        n: largest answer; the answers are 0..n.
        mu_bar: largest difference μ̄ of neighbouring answers.
        epsilon: budget ε > 0.
        delta: budget δ in [0, 1].

    Raises:
        OutsideDomain: n and mu_bar are too large.
    """
    grid = Grid(n, mu_bar, epsilon)
    cuts = list_cuts(grid)
    bound: float | None
    if cuts is not None:
        _, bound = best_cut(cuts.totals, cuts.chain_weights, grid.total, delta)
    else:
        cuts, bound = _search_cuts(grid, delta)
    index, mass = best_cut(cuts.totals, cuts.broken_weights, grid.total, delta)
    if index is None:
        return ColumnCut(mass, vector=None, broken_weight=0.0, bound=bound)
    return ColumnCut(mass, cuts.vectors[index], float(cuts.broken_weights[index]), bound)
