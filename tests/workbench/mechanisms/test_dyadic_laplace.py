"""The noise of DQL is Laplace, and the mechanism has its exact privacy."""

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
    m = mechanism.encode(x, SharedStream(KEY, NONCE), InsecureLocalStream(seed))
    return m, mechanism.decode(m, SharedStream(KEY, NONCE))


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
    _, noisy = exchange(DyadicLaplace(1.0, 2.0), x, seed=3)
    noise = noisy - x
    edges = stats.laplace.ppf(np.linspace(0, 1, 41))
    table = np.array([np.histogram(noise[x == value], bins=edges)[0] for value in np.unique(x)])
    assert stats.chi2_contingency(table).pvalue > 1e-3
    # Neighbouring entries of a vector are independent too.
    assert abs(np.corrcoef(noise[1:], noise[:-1])[0, 1]) < 4 / math.sqrt(noise.size)
    assert abs(np.corrcoef(np.abs(noise[1:]), np.abs(noise[:-1]))[0, 1]) < 4 / math.sqrt(noise.size)


@pytest.mark.parametrize(("ell", "x"), [(2.0, 0.3), (1.2, -5.0), (30.0, 0.0)])
def test_the_joint_law_of_m_u_t_is_the_law_in_the_paper(ell: float, x: float) -> None:
    n = 600_000
    levels = 4
    cells = 6
    mechanism = DyadicLaplace(1.0, ell)
    m, _ = exchange(mechanism, np.full(n, x), seed=4)
    t, u = mechanism._level_and_dither(SharedStream(KEY, NONCE).take(n))
    edges = np.linspace(-0.5, 0.5, cells + 1)

    def pvalue(law: float) -> float:
        observed = []
        expected = []
        for level in range(levels):
            here = t == level
            values = np.arange(m[here].min() - 1, m[here].max() + 2)
            for low, high in pairwise(edges):
                chosen = m[here & (u > low) & (u <= high)]
                observed.append(np.bincount(chosen - values[0], minlength=values.size))
                expected.append(
                    n * oracle.pmf(law, level) * oracle.cell(law, level, values, low, high, x)
                )
        seen, wanted = np.concatenate(observed), np.concatenate(expected)
        used = wanted > 10
        return float(
            stats.chisquare(
                np.append(seen[used], n - seen[used].sum()),
                np.append(wanted[used], n - wanted[used].sum()),
                sum_check=False,
            ).pvalue
        )

    assert pvalue(ell) > 1e-3
    assert pvalue(1 + 1.15 * (ell - 1)) < 1e-9  # A wrong ℓ fails the test.


def test_rare_levels_follow_their_law() -> None:
    mechanism = DyadicLaplace(1.0, 2.0)
    t, _ = mechanism._level_and_dither(SharedStream(KEY, NONCE).take(4_000_000))
    wanted = np.array([oracle.pmf(2.0, level) for level in range(14)])
    seen = np.bincount(t, minlength=40)
    observed, expected = (
        np.append(seen[:14], seen[14:].sum()),
        np.append(wanted, 1 - wanted.sum()) * t.size,
    )
    assert stats.chisquare(observed, expected, sum_check=False).pvalue > 1e-3
    assert t.max() <= mechanism.max_level


def test_encode_and_the_component_mechanism_agree_in_law() -> None:
    mechanism, n, x = DyadicLaplace(1.0, 2.0), 300_000, 0.8
    m, _ = exchange(mechanism, np.full(n, x), seed=5)
    t, _ = mechanism._level_and_dither(SharedStream(KEY, NONCE).take(n))
    for level in (0, 1, 2):
        mine = m[t == level]
        other = component(mechanism.ell, level).encode(
            np.full(mine.size, x), SharedStream(KEY, b"another nonce..."), InsecureLocalStream(6)
        )
        low, high = min(mine.min(), other.min()), max(mine.max(), other.max())
        table = np.array([np.bincount(v - low, minlength=high - low + 1) for v in (mine, other)])
        table = table[:, table.sum(axis=0) > 20]
        assert stats.chi2_contingency(table).pvalue > 1e-3


def test_decoder_density_ratio_is_bounded_by_ell_epsilon() -> None:
    """Given T, the density of (M, U) grows at most by e^(ℓε|x - x'|), and nearly attains it."""
    ell = 2.0
    mechanism = DyadicLaplace(1.0, ell)
    z, gap = np.linspace(-8, 8, 4001), 0.01
    worst = 0.0
    for t in range(8):
        f = component(mechanism.ell, t)
        ratio = np.abs(np.log(f.density(z - gap) / f.density(z))).max() / gap
        assert ratio <= ell * (1 + 1e-9)
        worst = max(worst, ratio)
    assert worst > 0.97 * ell


def test_reported_epsilons_are_those_of_the_density() -> None:
    mechanism = DyadicLaplace(0.1, 1.7)
    assert mechanism.decoder_epsilon >= 0.17
    assert mechanism.decoder_epsilon == pytest.approx(0.17, rel=1e-15)
    assert mechanism.database_epsilon == 0.1
    step = mechanism.delta0 * 2.0**-mechanism.max_level
    assert 0.1 <= mechanism.database_epsilon_as_run <= 0.1 * (1 + step)
    assert mechanism.mse == pytest.approx(200)
    assert DyadicLaplace(1.0, 2.0).delta0 == pytest.approx(1.2564312086262, abs=5e-14)


def test_capped_mixture_is_the_piecewise_linear_laplace() -> None:
    """Σ_(t<=s) P(T=t | T<=s) f_t = g_(δ_s), whose exact ε is (e^δ - 1)/δ."""
    mechanism = DyadicLaplace(1.0, 2.0, reach=2.0**57)
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
    """Key, nonce and seed fix every number, on every machine and for every version of numpy."""
    m, noisy = exchange(DyadicLaplace(1.0, 2.0), np.array([0.0, 0.5, -3.25, 1e6, 12.0]))
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
    mechanism = DyadicLaplace(1.0, 2.0)
    whole, noisy = exchange(mechanism, x, seed=9)
    shared, local = SharedStream(KEY, NONCE), InsecureLocalStream(9)
    parts = [
        mechanism.encode(part, shared, local) for part in np.array_split(x, [1, 20_000, 20_003])
    ]
    assert np.array_equal(np.concatenate(parts), whole)
    late = SharedStream(KEY, NONCE, position=39_000)
    assert np.array_equal(mechanism.decode(whole[39_000:], late), noisy[39_000:])


def test_integers_and_numbers_have_the_shape_of_the_data() -> None:
    mechanism = DyadicLaplace(1.0, 2.0)
    m, noisy = exchange(mechanism, np.zeros((2, 3, 4)))
    assert m.shape == noisy.shape == (2, 3, 4)
    scalar = mechanism.encode(0, SharedStream(KEY, NONCE), InsecureLocalStream(1))
    assert (type(scalar), scalar) == (int, m[0, 0, 0])
    back = mechanism.decode(scalar, SharedStream(KEY, NONCE))
    assert (type(back), back) == (float, noisy[0, 0, 0])
    assert mechanism.encode(np.zeros((0, 2)), SharedStream(KEY, NONCE)).shape == (0, 2)
    fortran = np.asfortranarray(np.arange(6.0).reshape(2, 3))
    assert np.array_equal(
        exchange(mechanism, fortran)[0], exchange(mechanism, fortran.copy(order="C"))[0]
    )
    x = np.zeros(5)
    exchange(mechanism, x)
    assert not x.any()  # The input is not changed.


def test_local_randomness_is_fresh_by_default() -> None:
    mechanism, x = DyadicLaplace(1.0, 2.0), np.zeros(200)
    one, two = (mechanism.encode(x, SharedStream(KEY, NONCE)) for _ in range(2))
    assert not np.array_equal(one, two)


def test_generators_cannot_be_swapped() -> None:
    mechanism, shared, local = DyadicLaplace(1.0, 2.0), SharedStream(KEY, NONCE), LocalStream()
    with pytest.raises(InvalidRequest, match=r"shared must be a SharedStream\. Got LocalStream\."):
        mechanism.encode(0.0, local, shared)
    with pytest.raises(InvalidRequest, match=r"local must be a LocalStream, .*Got SharedStream\."):
        mechanism.encode(0.0, shared, shared)
    with pytest.raises(InvalidRequest, match="shared must be a SharedStream"):
        mechanism.decode(0, local)
    assert shared.position == 0


def test_reach_is_a_public_bound() -> None:
    mechanism = DyadicLaplace(0.5, 2.0)
    edge = 2.0**25
    m, noisy = exchange(mechanism, np.array([edge, -edge] * 1000))
    assert np.abs(noisy - np.array([edge, -edge] * 1000)).max() < 60
    assert np.abs(m).max() < 2**62
    with pytest.raises(
        InvalidRequest, match=r"x\[1\] must be a finite number, at most 3\.35544e\+07 in size"
    ):
        mechanism.encode([0.0, edge * (1 + 1e-15)], SharedStream(KEY, NONCE))
    wide = DyadicLaplace(0.5, 2.0, reach=2.0**50)
    assert wide.max_level == 11
    assert abs(exchange(wide, np.array([2.0**50]))[1][0] - 2.0**50) < 120


@pytest.mark.parametrize(
    "x", [math.nan, math.inf, -math.inf, [[0.0, 1.0], [2.0, math.nan]], "1", True]
)
def test_data_that_are_no_finite_numbers_are_refused(x: object) -> None:
    with pytest.raises(InvalidRequest, match=r"^x.* must be a .*Got"):
        DyadicLaplace(1.0, 2.0).encode(x, SharedStream(KEY, NONCE))


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


def test_extreme_parameters_work() -> None:
    for epsilon, ell in ((1e-6, 1.0000001), (1e6, 1e100), (1e-150, 2.0), (1.0, 2.0**500)):
        x = np.full(2000, 3 / epsilon)
        _, noisy = exchange(DyadicLaplace(epsilon, ell), x)
        assert stats.kstest((noisy - x) * epsilon, "laplace").pvalue > 1e-4
