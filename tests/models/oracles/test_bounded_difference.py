"""Tests of the oracles for one-sided neighbours at distance up to μ̄ (bounded differences), PDP.

Their noise lives on a grid: the noise values 1..n are in rows of μ̄ columns. A cut vector removes
the lower part of every column (see the header of `cut_vectors`). T is the total weight that a cut
leaves, S the largest weight that it exposes to one shift.
"""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from oracle_truth import (
    hop_law,
    one_sided_shifts,
    pdp_delta,
    pdp_error,
    shifted_positions,
    strongest_form,
)

from workbench.models.convex.requirements import MASS_ABOVE_RATIO as PDP
from workbench.models.oracles import OutsideDomain, column_cut
from workbench.models.oracles.bounded_difference import chain_bound, column_cut_law
from workbench.models.oracles.column_cut import (
    PowerSums,
    _search_cuts,
    best_column_cut,
    truncation_cuts,
)
from workbench.models.oracles.cut_vectors import Grid, evaluate_cuts
from workbench.models.oracles.cuts import best_cut, cut_values

LN2 = math.log(2.0)


def count_by_element(
    n: int, mu_bar: int, epsilon: float, cut: tuple[int, ...]
) -> tuple[float, float, float]:
    """Return T, S and the chain weight of one cut vector, by a loop over the elements."""
    weight = [math.exp(-epsilon * math.ceil(k / mu_bar)) for k in range(n + 1)]
    is_cut = [k > 0 and math.ceil(k / mu_bar) >= cut[(k - 1) % mu_bar] for k in range(n + 1)]
    broken_weights = [
        sum(
            weight[k]
            for k, target in enumerate(shifted_positions(sizes=(n + 1,), shift=(mu,)))
            if is_cut[target] and not is_cut[k]
        )
        for mu in range(1, mu_bar + 1)
    ]
    return (
        sum(w for w, is_empty in zip(weight, is_cut, strict=True) if not is_empty),
        max(broken_weights),
        broken_weights[-1],
    )


def list_cut_vectors(n: int, mu_bar: int) -> np.ndarray:
    """Return all cut vectors, one in each row: the first row that is cut of every column."""
    heights = Grid(n, mu_bar, epsilon=1.0).heights
    return np.array(list(itertools.product(*(range(2, height + 2) for height in heights))))


def law_over_all_vectors(n: int, mu_bar: int, epsilon: float, delta: float) -> tuple[float, float]:
    """Return f(0) of the best cut vector, and its upper bound by chains, by trying all vectors."""
    grid = Grid(n, mu_bar, epsilon)
    cuts = evaluate_cuts(grid, list_cut_vectors(n, mu_bar))
    floor = max(delta, 1.0 / grid.total)
    cut = cuts.select((cuts.vectors <= grid.heights).any(axis=1))
    if len(cut.totals) == 0:
        return floor, floor
    law = np.minimum(1.0 / cut.totals, delta / cut.broken_weights).max()
    chain = np.minimum(1.0 / cut.totals, delta / cut.chain_weights).max()
    return max(floor, float(law)), max(floor, float(chain))


@pytest.mark.parametrize("seed", range(40))
def test_totals_and_broken_weights_of_cuts_equal_a_count_by_element(seed):
    rng = np.random.default_rng(seed)
    mu_bar = int(rng.integers(1, 7))
    n = int(rng.integers(mu_bar, 24))
    grid = Grid(n, mu_bar, float(rng.uniform(0.1, 2.0)))
    cut = tuple(int(rng.integers(2, height + 2)) for height in grid.heights)
    cuts = evaluate_cuts(grid, np.array([cut]))
    np.testing.assert_allclose(
        (cuts.totals[0], cuts.broken_weights[0], cuts.chain_weights[0]),
        count_by_element(n, mu_bar, grid.epsilon, cut),
        rtol=1e-12,
    )
    for vector, total, broken_weight in zip(
        *(getattr(truncation_cuts(grid), x) for x in ("vectors", "totals", "broken_weights")),
        strict=True,
    ):
        np.testing.assert_allclose(
            (total, broken_weight),
            count_by_element(n, mu_bar, grid.epsilon, tuple(vector))[:2],
            rtol=1e-12,
        )
    assert grid.total == pytest.approx(
        count_by_element(n, mu_bar, grid.epsilon, (n + 2,) * mu_bar)[0], rel=1e-13
    )


@pytest.mark.parametrize(
    ("n", "mu_bar"), [(5, 2), (6, 2), (9, 2), (7, 3), (8, 3), (9, 3), (13, 3), (11, 4), (13, 5)]
)
def test_the_best_cut_is_the_best_of_all_vectors_on_small_sizes(n, mu_bar):
    rng = np.random.default_rng(n * 10 + mu_bar)
    for epsilon in (0.1, 0.5, LN2, 1.0, 1.5):
        for delta in rng.uniform(0.0, 1.0, 12) ** 2:
            cut = best_column_cut(n, mu_bar, epsilon, float(delta))
            law, chain = law_over_all_vectors(n, mu_bar, epsilon, float(delta))
            assert cut.mass == pytest.approx(law, rel=1e-12)
            assert cut.bound == pytest.approx(chain, rel=1e-12)


def test_the_search_finds_nearly_all_cuts_that_the_list_finds():
    rng = np.random.default_rng(5)
    missed_count = 0
    for _ in range(200):
        mu_bar = int(rng.integers(1, 7))
        n = int(rng.integers(2 * mu_bar + 1, 26))
        epsilon = float(rng.choice([0.3, LN2, 1.0, 2.0]))
        delta = float(rng.uniform() ** 2)
        grid = Grid(n, mu_bar, epsilon)
        listed = best_column_cut(n, mu_bar, epsilon, delta)
        cuts, bound = _search_cuts(grid, delta)
        _, mass = best_cut(cuts.totals, cuts.broken_weights, grid.total, delta)
        assert bound == pytest.approx(listed.bound, rel=1e-12)
        assert mass <= listed.mass * (1 + 1e-12)
        missed_count += mass < listed.mass * (1 - 1e-12)
        if n % mu_bar == 0 and epsilon >= LN2:
            assert mass == pytest.approx(listed.mass, rel=1e-12)
    assert missed_count <= 2  # The search compares a few cut vectors; the list has all.


def test_a_stopped_search_has_a_valid_chain_bound(monkeypatch):
    rng = np.random.default_rng(6)
    monkeypatch.setattr(column_cut, "MAX_SPLITS", 1)
    for _ in range(60):
        mu_bar = int(rng.integers(2, 7))
        n = int(rng.integers(2 * mu_bar + 1, 26))
        epsilon, delta = float(rng.choice([0.3, LN2, 1.0])), float(rng.uniform(0.01, 0.3))
        exact = best_column_cut(n, mu_bar, epsilon, delta).bound
        assert _search_cuts(Grid(n, mu_bar, epsilon), delta)[1] >= exact * (1 - 1e-13)


def test_a_split_bounds_every_cut_vector_in_it():
    for n, mu_bar, epsilon, delta in (
        (13, 4, 0.8, 0.05),
        (11, 3, 0.4, 0.2),
        (14, 5, 1.2, 0.02),
        (9, 3, 0.7, 0.1),
    ):
        grid = Grid(n, mu_bar, epsilon)
        splits = {
            (split.deep, split.tall_deep, split.edge): split
            for split in column_cut._iterate_splits(grid, delta)
        }
        cuts = evaluate_cuts(grid, list_cut_vectors(n, mu_bar))
        deep = cuts.vectors <= grid.rows
        edge = (cuts.vectors == grid.rows + 1) & (np.arange(mu_bar) < grid.tall_columns)
        values = cut_values(cuts.totals, cuts.chain_weights, delta)
        reached_keys = set()
        for k, value in enumerate(values):
            key = (int(deep[k].sum()), int(deep[k, : grid.tall_columns].sum()), int(edge[k].sum()))
            reached_keys.add(key)
            assert value <= splits[key].bound * (1 + 1e-13)
            has_no_choice = key[0] == 0
            if has_no_choice:
                assert value == pytest.approx(splits[key].bound, rel=1e-12)
        assert reached_keys == set(splits)


def test_power_sums_are_the_nearest_below_and_above_a_target():
    # The sums of two powers of 1/2 next to 3/4 are 1/2 + 1/4, which is not above it, and 1/2 + 1/2.
    counts = PowerSums(a=0.5, p=3, max_size=2).find_nearest(size=2, target=0.75)
    assert [count.tolist() for count in counts] == [[1, 1, 0], [2, 0, 0]]
    for a, p, size in ((0.4, 5, 4), (0.5, 4, 6), (0.9, 3, 3)):
        powers = a ** np.arange(1, p + 1)
        sums = np.array(
            [sum(pick) for pick in itertools.combinations_with_replacement(powers, size)]
        )
        finder = PowerSums(a, p, size)
        for target in np.linspace(sums.min() - 0.01, sums.max() + 0.01, 57):
            nearest_counts = finder.find_nearest(size, float(target))
            nearest_sums = sorted(float(count @ powers) for count in nearest_counts)
            largest_below = sums[sums <= target].max(initial=-np.inf)
            smallest_above = sums[sums > target].min(initial=np.inf)
            neighbours = (float(largest_below), float(smallest_above))
            expected = [neighbour for neighbour in neighbours if math.isfinite(neighbour)]
            assert nearest_sums == pytest.approx(expected, rel=1e-12)
            assert all(int(count.sum()) == size for count in nearest_counts)


def test_the_corrected_table_1():
    """Values are Table 1 of Kadam et al. 2024, corrected: δ and the largest f(0)."""
    sizes = (9,)
    shifts = one_sided_shifts(3)
    for delta, mass in (
        (0.0, 0.543191999),
        (0.1212, 0.549827669),
        (0.1238, 0.554833107),
        (0.1522, 0.558290369),
    ):
        form = strongest_form(
            sizes, shifts, is_directed=True, epsilon=1.5, delta=delta, requires=PDP
        )
        assert form.kind == "optimum"
        assert 1.0 - form.value == pytest.approx(mass, abs=5e-10)
        assert form.pmf[0] == pytest.approx(mass, abs=5e-10)
    staircase = column_cut_law(n=8, mu_bar=3, epsilon=1.5, delta=0.1212)
    np.testing.assert_allclose(
        staircase.pmf, [0.549828, *[0.122683] * 3, *[0.027374] * 3, 0.0, 0.0], atol=5e-7
    )
    assert pdp_delta(staircase.pmf, sizes, shifts, 1.5) == pytest.approx(0.054749, abs=5e-7)
    assert column_cut_law(n=8, mu_bar=3, epsilon=1.5, delta=0.054749).value == pytest.approx(
        staircase.value, rel=1e-12
    )
    assert column_cut_law(n=8, mu_bar=3, epsilon=1.5, delta=0.0547).value > staircase.value


def test_the_error_rates_of_figure_11_left():
    expected = [
        0.334759,
        0.4843226,
        0.5957772,
        0.652479,
        0.6918719,
        0.7124741,
        0.7281718,
        0.7463883,
        0.7680307,
    ]
    forms = [
        strongest_form(
            (10,), one_sided_shifts(mu_bar), is_directed=True, epsilon=1.0, delta=0.2, requires=PDP
        )
        for mu_bar in range(1, 10)
    ]
    assert [form.value for form in forms] == pytest.approx(expected, abs=5e-8)
    assert {form.kind for form in forms} == {"optimum"}


def test_below_ln_2_the_law_is_only_an_upper_bound():
    law = column_cut_law(n=8, mu_bar=2, epsilon=0.5, delta=0.2)
    assert law.kind == "upper bound"
    assert 1.0 - law.value == pytest.approx(0.315263443, abs=5e-9)
    assert 1.0 - chain_bound(n=8, mu_bar=2, epsilon=0.5, delta=0.2).value == pytest.approx(
        0.329744254, abs=5e-10
    )


@pytest.mark.parametrize("seed", range(14))
def test_law_and_chain_bound_enclose_the_optimum_of_the_milp(seed):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(2, 8))
    mu_bar = int(rng.integers(1, n + 1))
    epsilon = float(rng.uniform(0.3, LN2)) if seed % 2 else float(rng.uniform(LN2, 1.6))
    delta = float(rng.uniform(0.02, 0.4))
    error = pdp_error((n + 1,), one_sided_shifts(mu_bar), epsilon, delta)
    law, bound = column_cut_law(n, mu_bar, epsilon, delta), chain_bound(n, mu_bar, epsilon, delta)
    assert bound.value - 2e-5 <= error <= law.value + 2e-5
    if law.kind == "optimum":
        assert law.value == pytest.approx(error, abs=2e-5)


@given(st.integers(1, 20), st.integers(1, 20), st.floats(0.05, 3.0), st.floats(0.0, 1.0))
@settings(max_examples=200, deadline=None)
def test_the_law_is_feasible_monotone_and_above_the_chain_bound(n, mu_bar, epsilon, delta):
    mu_bar = 1 + mu_bar % n
    law = column_cut_law(n, mu_bar, epsilon, delta)
    assert law.pmf.sum() == pytest.approx(1.0, abs=1e-11)
    assert law.pmf.min() >= 0.0
    assert law.value == pytest.approx(1.0 - law.pmf[0], abs=1e-12)
    assert (
        pdp_delta(law.pmf, (n + 1,), one_sided_shifts(mu_bar), epsilon)
        <= delta * (1 + 1e-11) + 1e-15
    )
    assert chain_bound(n, mu_bar, epsilon, delta).value <= law.value + 1e-12
    assert column_cut_law(n, mu_bar, epsilon, min(1.0, delta * 1.05)).value <= law.value + 1e-13
    assert law.value <= hop_law((n + 1,), one_sided_shifts(mu_bar), epsilon).value + 1e-15


@given(st.integers(1, 12), st.integers(1, 40), st.floats(LN2, 3.0), st.floats(0.0, 1.0))
@settings(max_examples=80, deadline=None)
def test_the_law_is_proven_when_mu_bar_divides_n_and_epsilon_is_at_least_ln_2(
    mu_bar, rows, epsilon, delta
):
    assert (
        column_cut_law(mu_bar * min(rows, 48 // mu_bar), mu_bar, epsilon, delta).kind == "optimum"
    )


@given(st.integers(1, 60), st.integers(0, 60), st.floats(0.01, 3.0), st.floats(0.0, 1.0))
@settings(max_examples=80, deadline=None)
def test_the_law_is_proven_when_n_is_at_most_twice_mu_bar(mu_bar, more, epsilon, delta):
    assert column_cut_law(mu_bar + min(more, mu_bar), mu_bar, epsilon, delta).kind == "optimum"


@given(st.integers(2, 30), st.integers(1, 10), st.floats(0.05, 3.0), st.floats(0.0, 1.0))
@settings(max_examples=80, deadline=None)
def test_below_the_first_boundary_the_law_is_that_of_delta_zero(n, mu_bar, epsilon, share):
    mu_bar = min(mu_bar, n)
    first = math.exp(-epsilon * (math.ceil(n / mu_bar) - 1)) / Grid(n, mu_bar, epsilon).total
    law = column_cut_law(n, mu_bar, epsilon, share * first * (1 - 1e-12))
    assert law.kind == "optimum"
    assert law.value == pytest.approx(
        hop_law((n + 1,), one_sided_shifts(mu_bar), epsilon).value, rel=1e-11
    )
    if n > mu_bar and first > 1e-12:
        assert column_cut_law(n, mu_bar, epsilon, first * 1.01).value < law.value


def test_large_sizes_are_proven_without_listing_cuts():
    for n, mu_bar, epsilon, delta in (
        (256, 16, 1.0, 0.01),
        (256, 64, LN2, 0.02),
        (256, 4, 0.7, 0.003),
    ):
        law = column_cut_law(n, mu_bar, epsilon, delta)
        assert law.kind == "optimum"
        assert pdp_delta(law.pmf, (n + 1,), one_sided_shifts(mu_bar), epsilon) <= delta * (
            1 + 1e-10
        )
    # Here μ̄ does not divide n and ε < ln 2.
    law = column_cut_law(n=255, mu_bar=16, epsilon=0.3, delta=0.01)
    assert law.kind == "upper bound"
    assert chain_bound(n=255, mu_bar=16, epsilon=0.3, delta=0.01).value < law.value


def test_sizes_that_are_too_large_are_refused():
    with pytest.raises(
        OutsideDomain, match=r"^n \* mu_bar must be at most 20000000\. Got 1000000 \* 1000\.$"
    ):
        column_cut_law(n=1_000_000, mu_bar=1000, epsilon=1.0, delta=0.1)
    with pytest.raises(OutsideDomain, match="small enough to search their cut vectors"):
        chain_bound(n=700, mu_bar=300, epsilon=1.0, delta=0.01)
