"""Test the mean number of bits of the dyadic quantized Laplace mechanism (DQL), and the smallest ℓ.

DQL sends a number x as an integer M in an Elias code (gamma or delta). The database has the privacy
ε. The decoder, who sees M, has the weaker guarantee ℓε with ℓ > 1. The mechanism is a mixture of
levels T = 0, 1, 2, ... with the step sizes δ_T, and δ₀ grows with ℓ. The mean length is the mean
number of bits of M. `find_least_ell` finds the smallest ℓ whose mean length is within a budget of
bits, by a search over log2 δ₀. An octave is a factor of 2 in δ₀.

The reference lengths are sums over all integers, and the lengths of real streams. Values that are
"pinned" are values of the current program without another source.
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


@pytest.mark.parametrize(
    ("data", "code", "pinned_bits"),
    [
        (DataLaw.point(0.5), "gamma", 4.4598316722),
        (DataLaw.point(0.5), "delta", 4.8191868149),
        (UNIFORM_DATA, "gamma", 4.5055363687),
        (UNIFORM_DATA, "delta", 4.8574344842),
    ],
)
def test_mean_lengths_have_the_pinned_values(
    data: DataLaw, code: elias.Code, pinned_bits: float
) -> None:
    bits = mean_bits(1.0, compute_levels(2.0), code, data)
    assert bits == pytest.approx(pinned_bits, abs=6e-11)


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
    x = np.random.default_rng(1).uniform(low=-1, high=1, size=400_000)
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
        """Compute the mean length of the gamma code for one law of x, in bits."""
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
            # The mean size of a law is the mean of |x|, which is |x| for a point.
            exact_bits = mean_bits(epsilon, law, "delta", DataLaw.point(x))
            sharper_bound, printed_bound = theorem8_bounds(epsilon, law, abs(x))
            assert exact_bits <= sharper_bound <= printed_bound


def test_theorem_8_bounds_have_the_pinned_values() -> None:
    bounds = theorem8_bounds(epsilon=1.0, law=compute_levels(2.0), mean_size=0.5)
    # The sharper bound and the printed bound: values of the current program, pinned.
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
def test_ell_for_five_bits_of_gamma_has_the_pinned_value(epsilon: float, ell: float) -> None:
    design = find_least_ell(epsilon, bits=5)
    assert design.ell == pytest.approx(ell, abs=5e-9)
    assert design.decoder_epsilon == pytest.approx(ell * epsilon, abs=3e-8)


@pytest.mark.parametrize("epsilon", [0.5, 1.0, 4.0])
def test_the_mean_length_at_the_smallest_ell_uses_up_the_budget(epsilon: float) -> None:
    design = find_least_ell(epsilon, bits=5)
    assert design.mean_bits <= 5
    assert design.mean_bits == pytest.approx(5, abs=1e-9)
    slightly_smaller_ell = design.ell * (1 - 1e-9)
    assert mean_bits(epsilon, compute_levels(slightly_smaller_ell), "gamma") > 5


def test_five_bits_are_within_reach_at_epsilon_10_473() -> None:
    assert find_least_ell(epsilon=10.473, bits=5).mean_bits <= 5


def test_five_bits_are_out_of_reach_at_epsilon_10_474() -> None:
    design = find_least_ell(epsilon=10.474, bits=5)
    assert design.ell is None
    assert design.decoder_epsilon is None
    assert design.mean_bits is None
    assert 5 < design.least_bits < 5.001


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
def test_no_smaller_ell_of_a_fine_grid_fits_a_length_that_is_not_monotone(
    bits: float, far_lengths: tuple[np.ndarray, np.ndarray]
) -> None:
    """For x = 20 the length has local minima in ℓ. The budgets lie above, between and below them."""
    delta0, lengths = far_lengths
    is_monotone = (np.diff(lengths) <= 0.001).all()
    assert not is_monotone
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
    """The scan has 64 points per octave, and the budget of 5 bits is met at the dip alone."""

    class DippingLength(search._LengthFunction):
        """An artificial mean length with a narrow dip to 4.9995 bits at `centre`."""

        def __init__(self) -> None:
            self.least_bits = math.inf

        def compute_at(self, log_delta: np.ndarray) -> np.ndarray:
            """Compute the artificial length in bits at many log2 δ₀ (n,). Shape (n,)."""
            distances = np.abs(log_delta - centre)
            dip = 4.9995 + 0.01 * distances + np.minimum(15 * distances, 0.1)
            return np.where(log_delta < -2, 20.0, dip)

    crossing = search._find_first_crossing(DippingLength(), 5.0)
    # The length is below 5 within 0.0005 / 15.01 < 1e-4 of the centre.
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
    quick_design = find_least_ell(epsilon, bits, code)
    # No length is infinitely far above the budget, so nothing is skipped.
    monkeypatch.setattr(search, "_RISE_SAFETY", math.inf)
    assert find_least_ell(epsilon, bits, code).ell == quick_design.ell


def test_the_search_computes_few_lengths(monkeypatch: pytest.MonkeyPatch) -> None:
    counts = []
    compute_without_cache = search._compute_lengths.__wrapped__

    def count_lengths(*arguments: object) -> object:
        """Compute lengths without the cache, and note how many."""
        lengths = compute_without_cache(*arguments)
        counts.append(lengths.size)
        return lengths

    monkeypatch.setattr(search, "_compute_lengths", count_lengths)
    find_least_ell(epsilon=1.02, bits=5)
    # Without skipping, the search would compute one length for each of 59 octaves, and 64 lengths
    # for each of the 3 octaves that it scans: 59 + 3 * 64 = 251.
    assert sum(counts) < 150


def test_one_bit_is_out_of_reach() -> None:
    assert find_least_ell(epsilon=1.0, bits=1.0).ell is None


def test_ell_for_90_bits_is_nearly_1() -> None:
    design = find_least_ell(epsilon=1.0, bits=90)
    assert 1 < design.ell < 1 + 1e-12
    assert design.mean_bits <= 90


def test_ell_for_500_bits_is_the_smallest_of_the_search() -> None:
    """The search begins where ℓ - 1 is about 2^-51."""
    assert find_least_ell(epsilon=1.0, bits=500).ell <= 1 + 2.0**-50


def test_ell_for_five_bits_of_delta_has_the_pinned_value() -> None:
    design = find_least_ell(epsilon=1.0, bits=5, code="delta")
    # The value of the current program, pinned.
    assert design.ell == pytest.approx(1.90494955, abs=1e-8)


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


def compute_lengths_at(epsilon: float, delta0: np.ndarray) -> np.ndarray:
    """Compute the mean length of the gamma code for uniform x at many δ₀ (n,), in bits. Shape (n,).

    The batches of about 25 points save memory.
    """
    lengths_of_batches = [
        mean_bits_at(epsilon, *compute_levels_at(batch), "gamma", UNIFORM_DATA)
        for batch in np.array_split(delta0, 41)
    ]
    return np.concatenate(lengths_of_batches)


# Lengths repeat in each octave above δ₀ = 80, so this octave shows the lengths of all larger ℓ.
LAST_OCTAVE = 2.0 ** (np.log2(80.0) + np.arange(1025) / 1024)


def test_a_dip_below_five_bits_in_the_last_octave_is_found_at_epsilon_10_4735() -> None:
    lowest = compute_lengths_at(10.4735, LAST_OCTAVE).argmin()
    fine_grid = np.linspace(LAST_OCTAVE[lowest - 1], LAST_OCTAVE[lowest + 1], num=41)
    assert compute_lengths_at(10.4735, fine_grid).min() < 5 - 1e-7
    assert find_least_ell(epsilon=10.4735, bits=5).ell is not None


def test_no_ell_is_found_if_the_last_octave_is_above_five_bits_at_epsilon_10_4736() -> None:
    assert compute_lengths_at(10.4736, LAST_OCTAVE).min() > 5
    assert find_least_ell(epsilon=10.4736, bits=5).ell is None
