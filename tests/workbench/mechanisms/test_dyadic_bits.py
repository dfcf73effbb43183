"""Mean lengths of DQL agree with sums over all integers and with real streams."""

from __future__ import annotations

import math

import numpy as np
import pytest

from workbench.errors import InvalidRequest
from workbench.families.laplace import least_ell as search
from workbench.families.laplace.least_ell import find_least_ell
from workbench.mechanisms.dyadic_laplace import elias
from workbench.mechanisms.dyadic_laplace.dyadic_laplace import DyadicLaplace
from workbench.mechanisms.dyadic_laplace.dyadic_law import (
    component,
    compute_levels,
    compute_levels_at,
)
from workbench.mechanisms.dyadic_laplace.mean_length import (
    UNIFORM_DATA,
    DataLaw,
    elias_delta_bound,
    mean_bits,
    mean_bits_at,
    theorem8_bounds,
)
from workbench.mechanisms.dyadic_laplace.randomness import InsecureLocalStream, SharedStream

POINT = DataLaw.point(0.5)
FAR = DataLaw.point(20.0)


def test_mean_lengths_have_the_pinned_values() -> None:
    law = compute_levels(2.0)
    assert mean_bits(1, law, "gamma", POINT) == pytest.approx(4.4598316722, abs=6e-11)
    assert mean_bits(1, law, "delta", POINT) == pytest.approx(4.8191868149, abs=6e-11)
    assert mean_bits(1, law, "gamma") == pytest.approx(4.5055363687, abs=6e-11)
    assert mean_bits(1, law, "delta") == pytest.approx(4.8574344842, abs=6e-11)


def _length(m: np.ndarray, code: str) -> np.ndarray:
    """Return the bits of every codeword, where n = ⌊log2 k⌋ and k = 2|m - 1/4| + 1/2.

    They are 2n + 1 for gamma, and n + 2⌊log2(n + 1)⌋ + 1 for delta.
    """
    folded = np.where(m > 0, 2 * m, 1 - 2 * m)
    n = np.floor(np.log2(folded)).astype(int)
    return 2 * n + 1 if code == "gamma" else n + 2 * np.floor(np.log2(n + 1)).astype(int) + 1


@pytest.mark.parametrize("code", elias.CODES)
@pytest.mark.parametrize(
    ("epsilon", "ell", "x"), [(1.0, 2.0, 0.5), (3.0, 1.3, -2.0), (0.1, 20.0, 100.0)]
)
def test_mean_is_the_sum_over_every_integer(
    code: elias.Code, epsilon: float, ell: float, x: float
) -> None:
    """The reference is Σ_m length(m) P(M = m | T = t), with exact integrals of f_t, for T <= 9."""
    law = compute_levels(ell, 9)
    total = 0.0
    for t in range(10):
        f = component(ell, t)
        middle = round(epsilon * x / f.step)
        m = np.arange(middle - math.ceil(45 / f.step) - 3, middle + math.ceil(45 / f.step) + 4)
        mu = epsilon * x / f.step
        knots = np.sort(
            np.concatenate([m - 0.5 - mu, np.floor(m - 0.5 - mu) + 1.0])
        )  # f is linear in between
        heights = f.density(knots * f.step) * f.step
        area = np.concatenate([[0.0], np.cumsum((heights[1:] + heights[:-1]) / 2 * np.diff(knots))])
        chance = np.diff(np.interp(m - 0.5 - mu, knots, area))
        assert chance.sum() == pytest.approx(1, abs=1e-12)
        total += law.pmf[t] * float((chance * _length(m[:-1], code)).sum())
    assert mean_bits(epsilon, law, code, DataLaw.point(x)) == pytest.approx(total, abs=1e-11)


@pytest.mark.parametrize("code", elias.CODES)
def test_the_mean_is_the_mean_length_of_real_streams(code: elias.Code) -> None:
    mechanism = DyadicLaplace(1.0, 1.5)
    x = np.random.default_rng(1).uniform(-1, 1, 400_000)
    m = mechanism.encode(x, SharedStream(bytes(16), bytes(16)), InsecureLocalStream(1))
    taken = 8 * len(elias.encode(m, code)) / x.size
    spread = _length(m, code).std() / math.sqrt(x.size)
    assert abs(taken - mechanism.mean_bits(code)) < 4 * spread + 8 / x.size


@pytest.mark.parametrize("epsilon", [1e-6, 0.3, 5.0])
def test_data_laws_agree_with_each_other(epsilon: float) -> None:
    law = compute_levels(1.4)
    uniform = mean_bits(epsilon, law, "gamma", DataLaw.uniform(-1, 3))
    parts = [
        (DataLaw.uniform(low, high), (high - low) / 4)
        for low, high in ((-1, -0.2), (-0.2, 0.7), (0.7, 3))
    ]
    split = sum(share * mean_bits(epsilon, law, "gamma", part) for part, share in parts)
    assert split == pytest.approx(uniform, abs=3e-13)
    smooth = DataLaw.density(lambda x: np.full_like(x, 0.25), -1, 3, panels=128)
    assert mean_bits(epsilon, law, "gamma", smooth) == pytest.approx(uniform, abs=1e-8)
    mirrored = DataLaw.uniform(-3, 1)
    assert mean_bits(epsilon, law, "gamma", mirrored) == pytest.approx(uniform, abs=3e-13)
    narrow = DataLaw.uniform(2.0, 2.0 + 1e-9)
    assert mean_bits(epsilon, law, "delta", narrow) == pytest.approx(
        mean_bits(epsilon, law, "delta", DataLaw.point(2.0)), abs=1e-8
    )


def test_the_mean_size_of_data_laws_is_exact() -> None:
    assert UNIFORM_DATA.mean_size == 0.5
    assert DataLaw.uniform(-1, 3).mean_size == pytest.approx(1.25)
    assert DataLaw.point(-3).mean_size == 3
    assert DataLaw.density(lambda x: 2 * x, 0, 1).mean_size == pytest.approx(2 / 3)


def test_theorem_8_bounds_hold_and_are_in_order() -> None:
    for ell in (1.0001, 1.05, 1.3, 2.0, 7.0, 50.0, 1e4):
        law = compute_levels(ell)
        for epsilon, x in ((1.0, 0.0), (1.0, 0.5), (0.01, 3.0), (20.0, 1.0), (1.0, 1e6)):
            exact = mean_bits(epsilon, law, "delta", DataLaw.point(x))
            sharp, printed = theorem8_bounds(epsilon, law, abs(x))
            assert exact <= sharp <= printed
    assert theorem8_bounds(1.0, compute_levels(2.0), 0.5) == pytest.approx(
        (8.344396234918424, 8.577392047750852)
    )


def test_elias_delta_bound_bounds_every_length() -> None:
    n = np.arange(0, 63)
    for k in (2.0**n, 2.0 ** (n + 1) - 1):
        bounds = [elias_delta_bound(math.log(v)) for v in k.tolist()]
        assert (elias.class_length(n, "delta") <= np.array(bounds) + 1e-12).all()
    assert elias_delta_bound(0) == 1


@pytest.mark.parametrize(
    ("epsilon", "ell"), [(0.5, 1.62901525), (1.0, 1.73297685), (4.0, 3.19753194)]
)
def test_ell_for_five_bits_of_gamma(epsilon: float, ell: float) -> None:
    design = find_least_ell(epsilon, 5)
    assert design.ell == pytest.approx(ell, abs=5e-9)
    assert design.decoder_epsilon == pytest.approx(ell * epsilon, abs=3e-8)
    assert design.mean_bits <= 5
    assert design.mean_bits == pytest.approx(5, abs=1e-9)
    assert mean_bits(epsilon, compute_levels(design.ell * (1 - 1e-9)), "gamma") > 5


def test_five_bits_are_out_of_reach_just_above_10_473() -> None:
    inside, outside = find_least_ell(10.473, 5), find_least_ell(10.474, 5)
    assert inside.mean_bits <= 5
    assert outside.ell is outside.decoder_epsilon is outside.mean_bits is None
    assert 5 < outside.least_bits < 5.001


@pytest.fixture(scope="module")
def far_lengths() -> tuple[np.ndarray, np.ndarray]:
    """Points of a fine grid of Δ₀ and the mean length of x = 20 there."""
    delta0 = np.geomspace(0.05, 160, 3000)
    batches = [
        mean_bits_at(1.0, *compute_levels_at(part), "gamma", FAR)
        for part in np.array_split(delta0, 30)
    ]
    return delta0, np.concatenate(batches)


@pytest.mark.parametrize("bits", [12.0, 10.6, 9.05, 8.6, 8.415, 8.2])
def test_smallest_ell_where_the_length_is_not_monotone(
    bits: float, far_lengths: tuple[np.ndarray, np.ndarray]
) -> None:
    """For x = 20 the length has local minima in ℓ; no smaller ℓ on a fine grid meets the budget."""
    delta0, lengths = far_lengths
    assert (np.diff(lengths) > 0.001).any()
    design = find_least_ell(1.0, bits, "gamma", FAR)
    assert (design.ell is not None) == (lengths.min() <= bits)
    before = lengths if design.delta0 is None else lengths[delta0 < design.delta0 * (1 - 1e-9)]
    assert (before > bits).all()
    if design.mean_bits is not None:
        assert bits - 1e-6 <= design.mean_bits <= bits


@pytest.mark.parametrize("centre", [1 / 256, 0.3, 1 - 1 / 200])
def test_a_dip_between_two_points_of_the_scan_is_found(centre: float) -> None:
    """A dip whose lowest scanned point ends an octave is found too (for an artificial length)."""

    class Made(search._LengthFunction):
        def __init__(self) -> None:
            self.least_bits = math.inf

        def compute_at(self, log_delta: np.ndarray) -> np.ndarray:
            away = np.abs(log_delta - centre)
            return np.where(
                log_delta < -2, 20.0, 5.1 + 0.01 * away + np.minimum(15 * away, 0.1) - 0.1005
            )

    found = search._find_first_crossing(Made(), 5.0)
    assert found == pytest.approx(centre, abs=1e-4)
    assert Made()(found) <= 5.0


def test_lengths_repeat_each_octave_far_out_so_the_search_may_end() -> None:
    for delta0 in (80.0, 97.0, 120.0, 150.0):
        values = mean_bits_at(
            3.0, *compute_levels_at(np.array([delta0, 2 * delta0])), "gamma", UNIFORM_DATA
        )
        assert values[0] == pytest.approx(values[1], abs=1e-13)


def test_extreme_budgets_of_bits_are_decided() -> None:
    assert find_least_ell(1.0, 1.0).ell is None
    tight = find_least_ell(1.0, 90)
    assert 1 < tight.ell < 1 + 1e-12
    assert tight.mean_bits <= 90
    assert find_least_ell(1.0, 500).ell <= 1 + 2.0**-50
    assert find_least_ell(1.0, 5, "delta").ell == pytest.approx(1.90494955, abs=1e-8)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: find_least_ell(0, 5), r"epsilon must be a finite number > 0\. Got 0\."),
        (lambda: find_least_ell(1, -5), "bits must be a finite number > 0"),
        (lambda: find_least_ell(1, math.nan), "bits must be a finite number > 0"),
        (lambda: find_least_ell(1, 5, "zip"), "code must be gamma or delta"),
        (lambda: find_least_ell(1e10, 5, "gamma", DataLaw.point(1e10)), "must be at most 2"),
        (lambda: DataLaw.point(math.nan), "x must be a finite number"),
        (lambda: DataLaw.uniform(1, 1), "low and high must be finite numbers"),
        (lambda: DataLaw.density(lambda x: x, 0, 1), "density must be"),
        (lambda: DataLaw.density(lambda x: x, 1, 0), "low, high must be"),
        (lambda: theorem8_bounds(1, compute_levels(2.0), -1), "mean_size must be"),
        (lambda: mean_bits(1, compute_levels(2.0), "zip"), "code must be"),
    ],
)
def test_invalid_budgets_codes_and_data_are_refused(call: object, message: str) -> None:
    with pytest.raises(InvalidRequest, match=message):
        call()


def test_the_boundary_of_five_bits_is_decided_where_lengths_repeat():
    """For ε = 10.4735 an octave of very large ℓ dips below 5 bits, for ε = 10.4736 it does not."""
    octave = 2.0 ** (np.log2(80.0) + np.arange(1025) / 1024)
    lengths = {
        epsilon: np.concatenate(
            [
                mean_bits_at(epsilon, *compute_levels_at(part), "gamma", UNIFORM_DATA)
                for part in np.array_split(octave, 41)
            ]
        )
        for epsilon in (10.4735, 10.4736)
    }
    near = lengths[10.4735].argmin()
    fine = np.linspace(octave[near - 1], octave[near + 1], 41)
    assert mean_bits_at(10.4735, *compute_levels_at(fine), "gamma", UNIFORM_DATA).min() < 5 - 1e-7
    assert lengths[10.4736].min() > 5
    assert find_least_ell(10.4735, 5).ell is not None
    assert find_least_ell(10.4736, 5).ell is None
