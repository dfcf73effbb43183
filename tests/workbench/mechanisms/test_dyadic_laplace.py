"""Test the dyadic quantized Laplace mechanism (DQL): its noise, laws, privacy and parameters.

The encoder sends an integer M for a number x. Encoder and decoder share the level T and the dither
U. δ_T is the step of level T and ℓ the ratio of the two guarantees: ε for the database, and ℓε for
the decoder, who sees M. Numbers up to the reach can be encoded.

Statistical tests have fixed seeds, so they do not fail at random. `dql_oracle` computes the printed
formulas.
"""

from __future__ import annotations

import math
from itertools import pairwise

import dql_oracle as oracle
import numpy as np
import pytest
from scipy import stats

from workbench.errors import InvalidRequest
from workbench.mechanisms.dyadic_laplace.dyadic_laplace import DyadicLaplace
from workbench.mechanisms.dyadic_laplace.dyadic_law import component
from workbench.mechanisms.dyadic_laplace.randomness import (
    InsecureLocalStream,
    LocalStream,
    SharedStream,
)

KEY = bytes(range(32))
NONCE = bytes(16)


def exchange(
    mechanism: DyadicLaplace, x: np.ndarray, seed: int = 1
) -> tuple[np.ndarray, np.ndarray]:
    """Encode and decode numbers.

    Args:
        mechanism: the mechanism of encoder and decoder.
        x: the numbers, any shape.
        seed: the seed of the encoder's own randomness.

    Returns:
        The integers M that are sent and the decoded numbers, each of the shape of x.
    """
    m = mechanism.encode(x, SharedStream(KEY, NONCE), InsecureLocalStream(seed))
    return m, mechanism.decode(m, SharedStream(KEY, NONCE))


def draw_levels_and_dithers(mechanism: DyadicLaplace, count: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the levels T and dithers U that `exchange` uses for `count` numbers."""
    return mechanism._level_and_dither(SharedStream(KEY, NONCE).take(count))


@pytest.mark.parametrize(
    ("epsilon", "ell", "x"),
    [(1.0, 2.0, 0.37), (0.25, 1.05, -1234.5), (3.0, 20.0, 1e6), (1.0, 1 + 2.0**-20, 0.0)],
)
def test_noise_is_laplace_at_a_million_samples(epsilon: float, ell: float, x: float) -> None:
    _, noisy = exchange(DyadicLaplace(epsilon, ell), np.full(10**6, x), seed=2)
    assert stats.kstest((noisy - x) * epsilon, "laplace").pvalue > 1e-3
    assert ((noisy - x) ** 2).mean() == pytest.approx(2 / epsilon**2, rel=0.01)


def test_noise_is_independent_of_the_data() -> None:
    rng = np.random.default_rng(8)
    x = rng.choice([-3.0, 0.0, 0.1, 7.0], size=800_000)
    _, noisy = exchange(DyadicLaplace(epsilon=1.0, ell=2.0), x, seed=3)
    noise = noisy - x
    edges = stats.laplace.ppf(np.linspace(0, 1, 41))
    counts = [np.histogram(noise[x == number], bins=edges)[0] for number in np.unique(x)]
    assert stats.chi2_contingency(np.array(counts)).pvalue > 1e-3


def test_noise_of_consecutive_numbers_is_uncorrelated() -> None:
    _, noise = exchange(DyadicLaplace(epsilon=1.0, ell=2.0), np.zeros(800_000), seed=3)
    max_correlation = 4 / math.sqrt(noise.size)
    sizes = np.abs(noise)
    assert abs(np.corrcoef(noise[1:], noise[:-1])[0, 1]) < max_correlation
    assert abs(np.corrcoef(sizes[1:], sizes[:-1])[0, 1]) < max_correlation


@pytest.mark.parametrize(("ell", "x"), [(2.0, 0.3), (1.2, -5.0), (30.0, 0.0)])
def test_the_joint_law_of_m_u_t_is_the_law_in_the_paper(ell: float, x: float) -> None:
    """A chi-square test over M, 4 levels of T and 6 intervals of U; a wrong ℓ fails it."""
    n = 600_000
    mechanism = DyadicLaplace(1.0, ell)
    m, _ = exchange(mechanism, np.full(n, x), seed=4)
    t, u = draw_levels_and_dithers(mechanism, n)

    def compute_pvalue(assumed_ell: float) -> float:
        """Compute the p-value of the draws under the law for a ratio ℓ."""
        counts = []
        expected_counts = []
        for level in range(4):
            is_level = t == level
            integers = np.arange(m[is_level].min() - 1, m[is_level].max() + 2)
            for low, high in pairwise(np.linspace(-0.5, 0.5, 7)):
                draws = m[is_level & (u > low) & (u <= high)]
                counts.append(np.bincount(draws - integers[0], minlength=integers.size))
                cell_masses = oracle.cell(assumed_ell, level, integers, low, high, x)
                expected_counts.append(n * oracle.pmf(assumed_ell, level) * cell_masses)
        return compute_chi_square_pvalue(
            np.concatenate(counts), np.concatenate(expected_counts), n, min_expected=10
        )

    wrong_ell = 1 + 1.15 * (ell - 1)
    assert compute_pvalue(ell) > 1e-3
    assert compute_pvalue(wrong_ell) < 1e-9


def compute_chi_square_pvalue(
    counts: np.ndarray, expected_counts: np.ndarray, draw_count: int, min_expected: float
) -> float:
    """Compute the p-value of a chi-square test.

    Cells with an expected count up to `min_expected`, and all draws outside the cells, are merged.

    Args:
        counts: the draws in each cell. Shape (cells,).
        expected_counts: their expected number. Shape (cells,).
        draw_count: the number of all draws.
        min_expected: the smallest expected count of a cell that is not merged.
    """
    is_used = expected_counts > min_expected
    observed = counts[is_used]
    expected = expected_counts[is_used]
    observed = np.append(observed, draw_count - observed.sum())
    expected = np.append(expected, draw_count - expected.sum())
    return float(stats.chisquare(observed, expected, sum_check=False).pvalue)


def test_rare_levels_follow_their_law() -> None:
    mechanism = DyadicLaplace(epsilon=1.0, ell=2.0)
    t, _ = draw_levels_and_dithers(mechanism, 4_000_000)
    masses = np.array([oracle.pmf(2.0, level) for level in range(14)])
    counts = np.bincount(t, minlength=40)[:14]
    assert compute_chi_square_pvalue(counts, masses * t.size, t.size, min_expected=0) > 1e-3
    assert t.max() <= mechanism.max_level


def test_encode_and_the_component_mechanism_agree_in_law() -> None:
    """The integers at level t have the same law as those of the mechanism `component(ell, t)`."""
    n = 300_000
    x = 0.8
    mechanism = DyadicLaplace(epsilon=1.0, ell=2.0)
    m, _ = exchange(mechanism, np.full(n, x), seed=5)
    t, _ = draw_levels_and_dithers(mechanism, n)
    for level in (0, 1, 2):
        draws = m[t == level]
        component_draws = component(mechanism.ell, level).encode(
            np.full(draws.size, x), SharedStream(KEY, b"another nonce..."), InsecureLocalStream(6)
        )
        low = min(draws.min(), component_draws.min())
        high = max(draws.max(), component_draws.max())
        counts = np.array(
            [
                np.bincount(integers - low, minlength=high - low + 1)
                for integers in (draws, component_draws)
            ]
        )
        counts = counts[:, counts.sum(axis=0) > 20]  # Rare integers are left out.
        assert stats.chi2_contingency(counts).pvalue > 1e-3


def test_decoder_density_ratio_is_bounded_by_ell_epsilon() -> None:
    """Given T, the density of (M, U) grows at most by e^(ℓε|x - x'|), and nearly attains it."""
    ell = 2.0
    mechanism = DyadicLaplace(1.0, ell)
    noise = np.linspace(-8, 8, 4001)
    distance = 0.01  # |x - x'|
    largest_slope = 0.0
    for t in range(8):
        f = component(mechanism.ell, t)
        privacy_losses = np.log(f.density(noise - distance) / f.density(noise))
        slope = np.abs(privacy_losses).max() / distance
        assert slope <= ell * (1 + 1e-9)
        largest_slope = max(largest_slope, slope)
    assert largest_slope > 0.97 * ell


def test_reported_guarantees_and_error_follow_from_epsilon_and_ell() -> None:
    """ℓε is rounded up, and the mean squared error is 2/ε²."""
    mechanism = DyadicLaplace(epsilon=0.1, ell=1.7)
    assert mechanism.decoder_epsilon >= 0.17
    assert mechanism.decoder_epsilon == pytest.approx(0.17, rel=1e-15)
    assert mechanism.database_epsilon == 0.1
    assert mechanism.mse == pytest.approx(2 / 0.1**2)


def test_the_guarantee_as_run_exceeds_epsilon_by_less_than_the_smallest_step() -> None:
    """Levels above `max_level` do not occur, so the noise is not exactly Laplace noise."""
    mechanism = DyadicLaplace(epsilon=0.1, ell=1.7)
    smallest_step = mechanism.delta0 * 2.0**-mechanism.max_level
    assert 0.1 <= mechanism.database_epsilon_as_run <= 0.1 * (1 + smallest_step)


def test_delta0_solves_its_equation() -> None:
    """ℓ = (e^δ₀ - 1)/δ₀."""
    delta0 = DyadicLaplace(epsilon=1.0, ell=2.0).delta0
    assert math.expm1(delta0) / delta0 == pytest.approx(2.0, rel=1e-14)


def test_capped_mixture_is_the_piecewise_linear_laplace() -> None:
    """Σ_(t<=s) P(T=t | T<=s) f_t = g_(δ_s), whose exact ε is (e^δ - 1)/δ."""
    mechanism = DyadicLaplace(epsilon=1.0, ell=2.0, reach=2.0**57)
    assert mechanism.max_level == 4
    law = mechanism.law
    x = np.linspace(-9, 9, 3001)
    mixture = sum(law.pmf[t] * component(mechanism.ell, t).density(x) for t in range(5))
    assert mixture == pytest.approx(oracle.g(law.deltas[-1], x), abs=1e-14)
    slope = np.abs(np.diff(np.log(oracle.g(law.deltas[-1], x)))).max() / (x[1] - x[0])
    assert slope <= mechanism.database_epsilon_as_run
    assert slope == pytest.approx(mechanism.database_epsilon_as_run, rel=2e-2)
    assert mechanism.database_epsilon_as_run == pytest.approx(
        math.expm1(law.deltas[-1]) / law.deltas[-1], rel=3e-15
    )


def test_a_pinned_exchange_gives_the_same_integers_and_numbers() -> None:
    """Key, nonce and seed fix every number, on every machine and for every version of NumPy.

    The numbers are values of the current program, pinned.
    """
    m, noisy = exchange(DyadicLaplace(epsilon=1.0, ell=2.0), np.array([0.0, 0.5, -3.25, 1e6, 12.0]))
    assert m.tolist() == [-3, 3, -3, 1591816, 17]
    assert noisy == pytest.approx(
        [
            -1.7948771378110415,
            0.7897690856432822,
            -2.0270191121851897,
            1000003.589580317,
            10.952354335887549,
        ],
        rel=1e-15,
        abs=0,
    )


def test_batch_sizes_do_not_change_the_integers() -> None:
    x = np.linspace(-4, 4, 40_001)
    mechanism = DyadicLaplace(epsilon=1.0, ell=2.0)
    m, noisy = exchange(mechanism, x, seed=9)
    shared = SharedStream(KEY, NONCE)
    local = InsecureLocalStream(9)
    batches = np.array_split(x, [1, 20_000, 20_003])
    encoded_batches = [mechanism.encode(batch, shared, local) for batch in batches]
    assert np.array_equal(np.concatenate(encoded_batches), m)
    later_stream = SharedStream(KEY, NONCE, position=39_000)
    assert np.array_equal(mechanism.decode(m[39_000:], later_stream), noisy[39_000:])


def test_integers_and_numbers_have_the_shape_of_the_data() -> None:
    mechanism = DyadicLaplace(epsilon=1.0, ell=2.0)
    m, noisy = exchange(mechanism, np.zeros((2, 3, 4)))
    assert m.shape == noisy.shape == (2, 3, 4)
    assert mechanism.encode(np.zeros((0, 2)), SharedStream(KEY, NONCE)).shape == (0, 2)


def test_a_scalar_is_encoded_as_an_int_and_decoded_as_a_float() -> None:
    mechanism = DyadicLaplace(epsilon=1.0, ell=2.0)
    m, noisy = exchange(mechanism, np.zeros(1))
    scalar = mechanism.encode(0, SharedStream(KEY, NONCE), InsecureLocalStream(1))
    assert type(scalar) is int
    assert scalar == m[0]
    decoded = mechanism.decode(scalar, SharedStream(KEY, NONCE))
    assert type(decoded) is float
    assert decoded == noisy[0]


def test_integers_do_not_depend_on_the_memory_order() -> None:
    mechanism = DyadicLaplace(epsilon=1.0, ell=2.0)
    x = np.arange(6.0).reshape(2, 3)
    m, _ = exchange(mechanism, x)
    assert np.array_equal(exchange(mechanism, np.asfortranarray(x))[0], m)


def test_encoding_does_not_change_its_input() -> None:
    x = np.zeros(5)
    exchange(DyadicLaplace(epsilon=1.0, ell=2.0), x)
    assert not x.any()


def test_local_randomness_is_fresh_by_default() -> None:
    mechanism = DyadicLaplace(epsilon=1.0, ell=2.0)
    first = mechanism.encode(np.zeros(200), SharedStream(KEY, NONCE))
    second = mechanism.encode(np.zeros(200), SharedStream(KEY, NONCE))
    assert not np.array_equal(first, second)


def test_shared_and_local_streams_cannot_be_swapped() -> None:
    mechanism = DyadicLaplace(epsilon=1.0, ell=2.0)
    shared = SharedStream(KEY, NONCE)
    local = LocalStream()
    with pytest.raises(InvalidRequest, match=r"shared must be a SharedStream\. Got LocalStream\."):
        mechanism.encode(0.0, local, shared)
    with pytest.raises(InvalidRequest, match=r"local must be a LocalStream, .*Got SharedStream\."):
        mechanism.encode(0.0, shared, shared)
    with pytest.raises(InvalidRequest, match="shared must be a SharedStream"):
        mechanism.decode(0, local)
    assert shared.position == 0


def test_numbers_up_to_the_reach_are_encoded_and_larger_ones_refused() -> None:
    """The default reach is |εx| <= 2^24, so |x| <= 2^25 for ε = 1/2."""
    mechanism = DyadicLaplace(epsilon=0.5, ell=2.0)
    x = np.array([2.0**25, -(2.0**25)] * 1000)
    m, noisy = exchange(mechanism, x)
    assert np.abs(noisy - x).max() < 60
    assert np.abs(m).max() < 2**62
    with pytest.raises(
        InvalidRequest, match=r"x\[1\] must be a finite number, at most 3\.35544e\+07 in size"
    ):
        mechanism.encode([0.0, 2.0**25 * (1 + 1e-15)], SharedStream(KEY, NONCE))


def test_a_larger_reach_leaves_fewer_levels() -> None:
    mechanism = DyadicLaplace(epsilon=0.5, ell=2.0, reach=2.0**50)
    assert mechanism.max_level == 11
    _, noisy = exchange(mechanism, np.array([2.0**50]))
    assert abs(noisy[0] - 2.0**50) < 120


@pytest.mark.parametrize(
    "x", [math.nan, math.inf, -math.inf, [[0.0, 1.0], [2.0, math.nan]], "1", True]
)
def test_data_that_are_not_finite_numbers_are_refused(x: object) -> None:
    with pytest.raises(InvalidRequest, match=r"^x.* must be a .*Got"):
        DyadicLaplace(epsilon=1.0, ell=2.0).encode(x, SharedStream(KEY, NONCE))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((0.0, 2.0), r"epsilon must be a finite number > 0\. Got 0\.0\."),
        ((-1, 2.0), r"epsilon must be a finite number > 0\. Got -1\."),
        ((math.nan, 2.0), "epsilon must be a finite number > 0"),
        ((math.inf, 2.0), "epsilon must be a finite number > 0"),
        ((1e-200, 2.0), r"epsilon must be a number from 2\^-500 to 2\^500"),
        (("x", 2.0), "epsilon must be a finite number > 0"),
        ((1.0, 1.0), "ell must be a finite number > 1"),
        ((1.0, 0.0), "ell must be a finite number > 0"),
        ((1.0, math.nan), "ell must be"),
        ((1.0, 2.0, 0.0), "reach must be a finite number > 0"),
        ((1.0, 2.0, 2.0**62), r"ell must be larger, so that delta0 >= 2 for reach"),
        ((1.0, 1 + 2.0**-52), "ell must be larger"),
    ],
)
def test_parameters_outside_their_range_are_refused(
    arguments: tuple[float, ...], message: str
) -> None:
    with pytest.raises(InvalidRequest, match=message):
        DyadicLaplace(*arguments)


@pytest.mark.parametrize(
    ("epsilon", "ell"), [(1e-6, 1.0000001), (1e6, 1e100), (1e-150, 2.0), (1.0, 2.0**500)]
)
def test_noise_of_extreme_parameters_is_laplace(epsilon: float, ell: float) -> None:
    x = np.full(2000, 3 / epsilon)
    _, noisy = exchange(DyadicLaplace(epsilon, ell), x)
    assert stats.kstest((noisy - x) * epsilon, "laplace").pvalue > 1e-4
