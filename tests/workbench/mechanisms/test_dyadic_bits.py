"""Test the mean number of bits of the dyadic quantized Laplace mechanism (DQL), and the smallest ℓ.

The reference lengths are sums over all integers, and the lengths of real streams. ℓ is the ratio of
the two guarantees. `find_least_ell` finds the smallest ℓ whose mean length is within a limit.
"""

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

FAR_POINT = DataLaw.point(20.0)


def test_mean_lengths_have_the_pinned_values() -> None:
    """The values at ε = 1 and ℓ = 2, for x = 1/2 and for uniform x, as computed once."""
    law = compute_levels(2.0)
    point = DataLaw.point(0.5)
    assert mean_bits(1, law, "gamma", point) == pytest.approx(4.4598316722, abs=6e-11)
    assert mean_bits(1, law, "delta", point) == pytest.approx(4.8191868149, abs=6e-11)
    assert mean_bits(1, law, "gamma") == pytest.approx(4.5055363687, abs=6e-11)
    assert mean_bits(1, law, "delta") == pytest.approx(4.8574344842, abs=6e-11)


def compute_lengths(m: np.ndarray, code: str) -> np.ndarray:
    """Compute the number of bits of the codeword of each integer. Shape of m.

    Let k be 2 m if m > 0 and 1 - 2 m otherwise, and n = ⌊log2 k⌋. The length is 2 n + 1 for gamma,
    and n + 2⌊log2(n + 1)⌋ + 1 for delta.
    """
    k = np.where(m > 0, 2 * m, 1 - 2 * m)
    n = np.floor(np.log2(k)).astype(int)
    if code == "gamma":
        return 2 * n + 1
    return n + 2 * np.floor(np.log2(n + 1)).astype(int) + 1


@pytest.mark.parametrize("code", elias.CODES)
@pytest.mark.parametrize(
    ("epsilon", "ell", "x"), [(1.0, 2.0, 0.5), (3.0, 1.3, -2.0), (0.1, 20.0, 100.0)]
)
def test_mean_is_the_sum_over_every_integer(
    code: elias.Code, epsilon: float, ell: float, x: float
) -> None:
    """The reference is Σ_m length(m) P(M = m | T = t), with exact integrals of f_t, for T <= 9."""
    law = compute_levels(ell, max_level=9)
    mean_length = 0.0
    for t in range(10):
        f = component(ell, t)
        middle = epsilon * x / f.step  # x in steps
        reach = math.ceil(45 / f.step) + 3  # Noise beyond 45 has practically no mass.
        m = np.arange(round(middle) - reach, round(middle) + reach + 1)
        # M is m if the noise, in steps, is in an interval of length 1.
        lower_ends = m - 0.5 - middle
        # The density is linear between these ends and the whole numbers.
        knots = np.sort(np.concatenate([lower_ends, np.floor(lower_ends) + 1.0]))
        heights = f.density(knots * f.step) * f.step
        areas = (heights[1:] + heights[:-1]) / 2 * np.diff(knots)
        cdf = np.concatenate([[0.0], np.cumsum(areas)])
        masses = np.diff(np.interp(lower_ends, knots, cdf))
        assert masses.sum() == pytest.approx(1, abs=1e-12)
        mean_length += law.pmf[t] * float((masses * compute_lengths(m[:-1], code)).sum())
    assert mean_bits(epsilon, law, code, DataLaw.point(x)) == pytest.approx(mean_length, abs=1e-11)


@pytest.mark.parametrize("code", elias.CODES)
def test_the_mean_is_the_mean_length_of_real_streams(code: elias.Code) -> None:
    mechanism = DyadicLaplace(epsilon=1.0, ell=1.5)
    x = np.random.default_rng(1).uniform(-1, 1, 400_000)
    m = mechanism.encode(x, SharedStream(bytes(16), bytes(16)), InsecureLocalStream(1))
    bits_per_number = 8 * len(elias.encode(m, code)) / x.size
    standard_error = compute_lengths(m, code).std() / math.sqrt(x.size)
    filling_bits = 8 / x.size
    difference = abs(bits_per_number - mechanism.mean_bits(code))
    assert difference < 4 * standard_error + filling_bits


@pytest.mark.parametrize("epsilon", [1e-6, 0.3, 5.0])
def test_data_laws_agree_with_each_other(epsilon: float) -> None:
    """A uniform law equals a mixture of its parts, a constant density, and its mirror image."""
    law = compute_levels(1.4)

    def compute_bits(data: DataLaw) -> float:
        return mean_bits(epsilon, law, "gamma", data)

    uniform_bits = compute_bits(DataLaw.uniform(-1, 3))
    mixture_bits = 0.0
    for low, high in ((-1, -0.2), (-0.2, 0.7), (0.7, 3)):
        mixture_bits += (high - low) / 4 * compute_bits(DataLaw.uniform(low, high))
    assert mixture_bits == pytest.approx(uniform_bits, abs=3e-13)
    constant_density = DataLaw.density(lambda x: np.full_like(x, 0.25), -1, 3, panels=128)
    assert compute_bits(constant_density) == pytest.approx(uniform_bits, abs=1e-8)
    assert compute_bits(DataLaw.uniform(-3, 1)) == pytest.approx(uniform_bits, abs=3e-13)


@pytest.mark.parametrize("epsilon", [1e-6, 0.3, 5.0])
def test_a_narrow_uniform_law_equals_a_point(epsilon: float) -> None:
    law = compute_levels(1.4)
    narrow_bits = mean_bits(epsilon, law, "delta", DataLaw.uniform(2.0, 2.0 + 1e-9))
    point_bits = mean_bits(epsilon, law, "delta", DataLaw.point(2.0))
    assert narrow_bits == pytest.approx(point_bits, abs=1e-8)


def test_the_mean_size_of_data_laws_is_exact() -> None:
    assert UNIFORM_DATA.mean_size == 0.5
    assert DataLaw.uniform(-1, 3).mean_size == pytest.approx(1.25)
    assert DataLaw.point(-3).mean_size == 3
    assert DataLaw.density(lambda x: 2 * x, 0, 1).mean_size == pytest.approx(2 / 3)


def test_theorem_8_bounds_hold_and_are_in_order() -> None:
    for ell in (1.0001, 1.05, 1.3, 2.0, 7.0, 50.0, 1e4):
        law = compute_levels(ell)
        for epsilon, x in ((1.0, 0.0), (1.0, 0.5), (0.01, 3.0), (20.0, 1.0), (1.0, 1e6)):
            exact_bits = mean_bits(epsilon, law, "delta", DataLaw.point(x))
            sharper_bound, printed_bound = theorem8_bounds(epsilon, law, abs(x))
            assert exact_bits <= sharper_bound <= printed_bound


def test_theorem_8_bounds_have_the_pinned_values() -> None:
    bounds = theorem8_bounds(epsilon=1.0, law=compute_levels(2.0), mean_size=0.5)
    assert bounds == pytest.approx((8.344396234918424, 8.577392047750852))


def test_elias_delta_bound_bounds_every_length() -> None:
    """It is checked for the smallest and the largest k of every length."""
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
    inside, outside = find_least_ell(epsilon=10.473, bits=5), find_least_ell(epsilon=10.474, bits=5)
    assert inside.mean_bits <= 5
    assert outside.ell is outside.decoder_epsilon is outside.mean_bits is None
    assert 5 < outside.least_bits < 5.001


@pytest.fixture(scope="module")
def far_lengths() -> tuple[np.ndarray, np.ndarray]:
    """Return a fine grid of δ₀ (3000,) and the mean length for x = 20 at each δ₀ (3000,)."""
    delta0 = np.geomspace(0.05, 160, 3000)
    batches = [
        mean_bits_at(1.0, *compute_levels_at(batch), "gamma", FAR_POINT)
        for batch in np.array_split(delta0, 30)
    ]
    return delta0, np.concatenate(batches)


@pytest.mark.parametrize("bits", [12.0, 10.6, 9.05, 8.6, 8.415, 8.2])
def test_smallest_ell_where_the_length_is_not_monotone(
    bits: float, far_lengths: tuple[np.ndarray, np.ndarray]
) -> None:
    """For x = 20 the length has local minima in ℓ; no smaller ℓ on a fine grid meets the budget."""
    delta0, lengths = far_lengths
    assert (np.diff(lengths) > 0.001).any()
    design = find_least_ell(1.0, bits, "gamma", FAR_POINT)
    assert (design.ell is not None) == (lengths.min() <= bits)
    if design.delta0 is None:
        assert (lengths > bits).all()
    else:
        # δ₀ grows with ℓ.
        assert (lengths[delta0 < design.delta0 * (1 - 1e-9)] > bits).all()
        assert bits - 1e-6 <= design.mean_bits <= bits


@pytest.mark.parametrize("centre", [1 / 256, 0.3, 1 - 1 / 200])
def test_a_dip_between_two_points_of_the_scan_is_found(centre: float) -> None:
    """An artificial length function of log2 δ₀ has a narrow dip to 4.9995 at `centre`."""

    class DippingLength(search._LengthFunction):
        def __init__(self) -> None:
            self.least_bits = math.inf

        def compute_at(self, log_delta: np.ndarray) -> np.ndarray:
            distances = np.abs(log_delta - centre)
            dip = 4.9995 + 0.01 * distances + np.minimum(15 * distances, 0.1)
            return np.where(log_delta < -2, 20.0, dip)

    crossing = search._find_first_crossing(DippingLength(), 5.0)
    assert crossing == pytest.approx(centre, abs=1e-4)
    assert DippingLength()(crossing) <= 5.0


@pytest.mark.parametrize("delta0", [80.0, 97.0, 120.0, 150.0])
def test_lengths_are_equal_at_a_large_delta0_and_its_double(delta0: float) -> None:
    """Lengths repeat each octave of δ₀, so the search may end there."""
    levels = compute_levels_at(np.array([delta0, 2 * delta0]))
    lengths = mean_bits_at(3.0, *levels, "gamma", UNIFORM_DATA)
    assert lengths[0] == pytest.approx(lengths[1], abs=1e-13)


@pytest.mark.parametrize(
    ("epsilon", "bits", "code"),
    [(1.02, 5.0, "gamma"), (7.0, 4.2, "delta"), (10.4736, 5.0, "gamma")],
)
def test_skipped_points_do_not_change_the_least_ell(
    epsilon: float, bits: float, code: elias.Code, monkeypatch: pytest.MonkeyPatch
) -> None:
    quick = find_least_ell(epsilon, bits, code)
    # No length is infinitely far above the budget, so nothing is skipped.
    monkeypatch.setattr(search, "_RISE_SAFETY", math.inf)
    assert find_least_ell(epsilon, bits, code).ell == quick.ell


def test_the_search_computes_few_lengths(monkeypatch: pytest.MonkeyPatch) -> None:
    counts = []
    compute_lengths = search._compute_lengths.__wrapped__

    def count_lengths(*arguments: object) -> object:
        lengths = compute_lengths(*arguments)
        counts.append(lengths.size)
        return lengths

    monkeypatch.setattr(search, "_compute_lengths", count_lengths)
    find_least_ell(epsilon=1.02, bits=5)
    # All points of the octaves and of three octaves of the scan are 59 + 3 * 64.
    assert sum(counts) < 150


def test_one_bit_is_out_of_reach() -> None:
    assert find_least_ell(epsilon=1.0, bits=1.0).ell is None


def test_ell_for_many_bits_is_nearly_1() -> None:
    design = find_least_ell(epsilon=1.0, bits=90)
    assert 1 < design.ell < 1 + 1e-12
    assert design.mean_bits <= 90
    assert find_least_ell(epsilon=1.0, bits=500).ell <= 1 + 2.0**-50


def test_ell_for_five_bits_of_delta() -> None:
    assert find_least_ell(epsilon=1.0, bits=5, code="delta").ell == pytest.approx(
        1.90494955, abs=1e-8
    )


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda: find_least_ell(epsilon=0, bits=5),
            r"epsilon must be a finite number > 0\. Got 0\.",
        ),
        (lambda: find_least_ell(epsilon=1, bits=-5), "bits must be a finite number > 0"),
        (lambda: find_least_ell(1, math.nan), "bits must be a finite number > 0"),
        (lambda: find_least_ell(epsilon=1, bits=5, code="zip"), "code must be gamma or delta"),
        (
            lambda: find_least_ell(epsilon=1e10, bits=5, code="gamma", data=DataLaw.point(1e10)),
            "must be at most 2",
        ),
        (lambda: DataLaw.point(math.nan), "x must be a finite number"),
        (lambda: DataLaw.uniform(1, 1), "low and high must be finite numbers"),
        (lambda: DataLaw.density(lambda x: x, 0, 1), "density must be"),
        (lambda: DataLaw.density(lambda x: x, 1, 0), "low, high must be"),
        (
            lambda: theorem8_bounds(epsilon=1, law=compute_levels(2.0), mean_size=-1),
            "mean_size must be",
        ),
        (lambda: mean_bits(1, compute_levels(2.0), "zip"), "code must be"),
    ],
)
def test_invalid_budgets_codes_and_data_are_refused(call: object, message: str) -> None:
    with pytest.raises(InvalidRequest, match=message):
        call()


def test_the_boundary_of_five_bits_is_decided_where_lengths_repeat():
    """For ε = 10.4735 an octave of very large ℓ dips below 5 bits, for ε = 10.4736 it does not."""
    octave = 2.0 ** (np.log2(80.0) + np.arange(1025) / 1024)

    def compute_lengths_at(epsilon: float, delta0: np.ndarray) -> np.ndarray:
        batches = [
            mean_bits_at(epsilon, *compute_levels_at(batch), "gamma", UNIFORM_DATA)
            for batch in np.array_split(delta0, 41)
        ]
        return np.concatenate(batches)

    lowest = compute_lengths_at(10.4735, octave).argmin()
    fine_grid = np.linspace(octave[lowest - 1], octave[lowest + 1], 41)
    assert compute_lengths_at(10.4735, fine_grid).min() < 5 - 1e-7
    assert find_least_ell(epsilon=10.4735, bits=5).ell is not None
    assert compute_lengths_at(10.4736, octave).min() > 5
    assert find_least_ell(epsilon=10.4736, bits=5).ell is None
