"""Tests of the oracles for one-sided neighbours at distance up to μ̄ (bounded differences), PDP.

Their noise lives on a grid: the noise values 1..n are in rows of μ̄ (`mu_bar`) columns. A noise
value in row i has the weight e^(-iε). A cut vector removes the lower part of every column (see the
header of `cut_vectors`). T is the total weight that a cut leaves, S the largest weight that it
exposes to one shift. A cut allows the mass f(0) = min(1/T, δ/S). The chain weight is the weight
exposed to the shift μ̄ alone; in place of S it gives an upper bound on f(0). The column-cut law is
the noise of the best cut. Its `kind` says whether its error rate 1 - f(0) is the optimum or only an
upper bound on it.
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
    broken_weights = []
    for mu in range(1, mu_bar + 1):
        targets = shifted_positions(sizes=(n + 1,), shift=(mu,))
        exposed = [k for k in range(n + 1) if is_cut[targets[k]] and not is_cut[k]]
        broken_weights.append(sum(weight[k] for k in exposed))
    total = sum(weight[k] for k in range(n + 1) if not is_cut[k])
    return total, max(broken_weights), broken_weights[-1]


def list_cut_vectors(n: int, mu_bar: int) -> np.ndarray:
    """Return all cut vectors, one in each row: the first row that is cut of every column."""
    heights = Grid(n, mu_bar, epsilon=1.0).heights
    return np.array(list(itertools.product(*(range(2, height + 2) for height in heights))))


def law_over_all_vectors(n: int, mu_bar: int, epsilon: float, delta: float) -> tuple[float, float]:
    """Return f(0) of the best cut vector, and its upper bound by chains, by trying all vectors.

    f(0) is at least 1 / (total weight), without a cut, and at least δ, because δ may be broken.
    """
    grid = Grid(n, mu_bar, epsilon)
    cuts = evaluate_cuts(grid, list_cut_vectors(n, mu_bar))
    mass_without_cut = max(delta, 1.0 / grid.total)
    real_cuts = cuts.select((cuts.vectors <= grid.heights).any(axis=1))
    if len(real_cuts.totals) == 0:
        return mass_without_cut, mass_without_cut
    mass = np.minimum(1.0 / real_cuts.totals, delta / real_cuts.broken_weights).max()
    bound = np.minimum(1.0 / real_cuts.totals, delta / real_cuts.chain_weights).max()
    return max(mass_without_cut, float(mass)), max(mass_without_cut, float(bound))


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
    without_cut = (n + 2,) * mu_bar
    total, _, _ = count_by_element(n, mu_bar, grid.epsilon, without_cut)
    assert grid.total == pytest.approx(total, rel=1e-13)


@pytest.mark.parametrize("seed", range(40))
def test_truncation_cuts_have_the_weights_of_a_count_by_element(seed):
    rng = np.random.default_rng(seed)
    mu_bar = int(rng.integers(1, 7))
    n = int(rng.integers(mu_bar, 24))
    grid = Grid(n, mu_bar, float(rng.uniform(0.1, 2.0)))
    cuts = truncation_cuts(grid)
    for vector, total, broken_weight in zip(
        cuts.vectors, cuts.totals, cuts.broken_weights, strict=True
    ):
        expected = count_by_element(n, mu_bar, grid.epsilon, tuple(vector))
        np.testing.assert_allclose((total, broken_weight), expected[:2], rtol=1e-12)


@pytest.mark.parametrize(
    ("n", "mu_bar"), [(5, 2), (6, 2), (9, 2), (7, 3), (8, 3), (9, 3), (13, 3), (11, 4), (13, 5)]
)
def test_the_best_cut_is_the_best_of_all_vectors_on_small_sizes(n, mu_bar):
    rng = np.random.default_rng(n * 10 + mu_bar)
    for epsilon in (0.1, 0.5, LN2, 1.0, 1.5):
        for delta in rng.uniform(low=0.0, high=1.0, size=12) ** 2:
            cut = best_column_cut(n, mu_bar, epsilon, float(delta))
            mass, bound = law_over_all_vectors(n, mu_bar, epsilon, float(delta))
            assert cut.mass == pytest.approx(mass, rel=1e-12)
            assert cut.bound == pytest.approx(bound, rel=1e-12)


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
    """A split is the set of all cut vectors with the same three counts.

    They count the columns that are cut in a full row (deep), the tall ones among them, and the tall
    columns that are cut in their last row only (edge).
    """
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
        masses = cut_values(cuts.totals, cuts.chain_weights, delta)
        reached_keys = set()
        for k, mass in enumerate(masses):
            deep_count = int(deep[k].sum())
            key = (deep_count, int(deep[k, : grid.tall_columns].sum()), int(edge[k].sum()))
            reached_keys.add(key)
            assert mass <= splits[key].bound * (1 + 1e-13)
            if deep_count == 0:  # The split has one cut vector only.
                assert mass == pytest.approx(splits[key].bound, rel=1e-12)
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


def test_the_optimum_at_the_printed_delta_0_1212_needs_only_delta_0_0547():
    """Two masses 0.027374 are broken, so δ = 0.054749 is enough (results/README.md, errata)."""
    staircase = column_cut_law(n=8, mu_bar=3, epsilon=1.5, delta=0.1212)
    needed_delta = pdp_delta(staircase.pmf, (9,), one_sided_shifts(3), 1.5)
    assert needed_delta == pytest.approx(2 * 0.027374, abs=2e-6)
    law_at_needed_delta = column_cut_law(n=8, mu_bar=3, epsilon=1.5, delta=0.054749)
    assert law_at_needed_delta.value == pytest.approx(staircase.value, rel=1e-12)
    law_below = column_cut_law(n=8, mu_bar=3, epsilon=1.5, delta=0.0547)
    assert law_below.value > staircase.value


def test_the_error_rates_of_figure_11_left():
    """The rates for μ̄ = 1..9 at ε = 1, those of the solver in results/modulo-noise/fig11.csv."""
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
    lower_bound = chain_bound(n=8, mu_bar=2, epsilon=0.5, delta=0.2)
    assert law.kind == "upper bound"
    # Values of the current program, pinned.
    assert 1.0 - law.value == pytest.approx(0.315263443, abs=5e-9)
    assert 1.0 - lower_bound.value == pytest.approx(0.329744254, abs=5e-10)


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


# Any n, a seed of μ̄ (μ̄ = 1 + seed modulo n), ε and δ.
given_any_sizes_and_budget = given(
    st.integers(1, 20), st.integers(1, 20), st.floats(0.05, 3.0), st.floats(0.0, 1.0)
)


@given_any_sizes_and_budget
@settings(max_examples=200, deadline=None)
def test_the_law_is_a_pmf_within_its_budget(n, mu_bar_seed, epsilon, delta):
    mu_bar = 1 + mu_bar_seed % n
    law = column_cut_law(n, mu_bar, epsilon, delta)
    assert law.pmf.sum() == pytest.approx(1.0, abs=1e-11)
    assert law.pmf.min() >= 0.0
    assert law.value == pytest.approx(1.0 - law.pmf[0], abs=1e-12)
    needed_delta = pdp_delta(law.pmf, (n + 1,), one_sided_shifts(mu_bar), epsilon)
    assert needed_delta <= delta * (1 + 1e-11) + 1e-15


@given_any_sizes_and_budget
@settings(max_examples=200, deadline=None)
def test_the_error_rate_of_the_law_falls_with_delta_and_is_between_its_bounds(
    n, mu_bar_seed, epsilon, delta
):
    """The upper bound is the optimum at δ = 0."""
    mu_bar = 1 + mu_bar_seed % n
    law = column_cut_law(n, mu_bar, epsilon, delta)
    law_at_larger_delta = column_cut_law(n, mu_bar, epsilon, min(1.0, delta * 1.05))
    assert law_at_larger_delta.value <= law.value + 1e-13
    assert chain_bound(n, mu_bar, epsilon, delta).value <= law.value + 1e-12
    assert law.value <= hop_law((n + 1,), one_sided_shifts(mu_bar), epsilon).value + 1e-15


@given(st.integers(1, 12), st.integers(1, 40), st.floats(LN2, 3.0), st.floats(0.0, 1.0))
@settings(max_examples=80, deadline=None)
def test_the_law_is_proven_when_mu_bar_divides_n_and_epsilon_is_at_least_ln_2(
    mu_bar, rows, epsilon, delta
):
    n = mu_bar * min(rows, 48 // mu_bar)
    assert column_cut_law(n, mu_bar, epsilon, delta).kind == "optimum"


@given(st.integers(1, 60), st.integers(0, 60), st.floats(0.01, 3.0), st.floats(0.0, 1.0))
@settings(max_examples=80, deadline=None)
def test_the_law_is_proven_when_n_is_at_most_twice_mu_bar(mu_bar, more, epsilon, delta):
    assert column_cut_law(mu_bar + min(more, mu_bar), mu_bar, epsilon, delta).kind == "optimum"


@given(st.integers(2, 30), st.integers(1, 10), st.floats(0.05, 3.0), st.floats(0.0, 1.0))
@settings(max_examples=80, deadline=None)
def test_below_the_first_boundary_the_law_is_that_of_delta_zero(n, mu_bar, epsilon, share):
    mu_bar = min(mu_bar, n)
    grid = Grid(n, mu_bar, epsilon)
    first_boundary = math.exp(-epsilon * (math.ceil(n / mu_bar) - 1)) / grid.total
    law = column_cut_law(n, mu_bar, epsilon, share * first_boundary * (1 - 1e-12))
    assert law.kind == "optimum"
    error_rate_at_delta_0 = hop_law((n + 1,), one_sided_shifts(mu_bar), epsilon).value
    assert law.value == pytest.approx(error_rate_at_delta_0, rel=1e-11)
    if n > mu_bar and first_boundary > 1e-12:
        assert column_cut_law(n, mu_bar, epsilon, first_boundary * 1.01).value < law.value


def test_large_sizes_are_proven_without_listing_cuts():
    for n, mu_bar, epsilon, delta in (
        (256, 16, 1.0, 0.01),
        (256, 64, LN2, 0.02),
        (256, 4, 0.7, 0.003),
    ):
        law = column_cut_law(n, mu_bar, epsilon, delta)
        assert law.kind == "optimum"
        needed_delta = pdp_delta(law.pmf, (n + 1,), one_sided_shifts(mu_bar), epsilon)
        assert needed_delta <= delta * (1 + 1e-10)


def test_a_large_size_has_two_bounds_if_mu_bar_does_not_divide_n_and_epsilon_is_below_ln_2():
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
