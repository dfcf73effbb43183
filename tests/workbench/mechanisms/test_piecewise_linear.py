"""Test `QuantizedPiecewiseLinear`: the density of its noise, its ε, and its integers.

The density is linear between multiples k of the step, and proportional to a weight at each k. The
weights w(k) are `core` from k = first on. Outside, w(k) = left w(k + period) below the core, and
w(k) = right w(k - period) above it.
"""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from workbench.errors import InvalidRequest
from workbench.mechanisms.dyadic_laplace.piecewise_linear import (
    QuantizedPiecewiseLinear,
    dithered_round,
)
from workbench.mechanisms.dyadic_laplace.randomness import (
    InsecureLocalStream,
    LocalStream,
    SharedStream,
)

KEY = bytes(range(32))
NONCE = bytes(16)
LOPSIDED = QuantizedPiecewiseLinear(
    step=0.7, core=(1.0, 3.0, 2.0, 0.5), first=-1, left=0.25, right=0.4, period=2
)
CASES = (
    QuantizedPiecewiseLinear(step=1.0, core=(1.0,)),
    QuantizedPiecewiseLinear(step=0.5, core=(1.0, 0.0, 2.0), first=4),
    QuantizedPiecewiseLinear(step=2.0, core=(1.0,), left=0.5, right=0.5),
    LOPSIDED,
)


@pytest.mark.parametrize("mechanism", CASES)
def test_weights_are_the_core_and_its_tails(mechanism: QuantizedPiecewiseLinear) -> None:
    assert mechanism.weight(np.arange(-400, 401)).sum() == pytest.approx(1, abs=1e-13)
    last = mechanism.first + len(mechanism.core) - 1
    for k in range(mechanism.first - 6, last + 7):
        if k > last:
            expected = mechanism.right * mechanism.weight(k - mechanism.period)
        elif k < mechanism.first:
            expected = mechanism.left * mechanism.weight(k + mechanism.period)
        else:
            expected = mechanism.core[k - mechanism.first]
        assert mechanism.weight(k) == pytest.approx(expected, abs=1e-15)


@pytest.mark.parametrize("mechanism", CASES)
def test_density_interpolates_and_integrates_to_one(mechanism: QuantizedPiecewiseLinear) -> None:
    k = np.arange(-200, 201)
    assert mechanism.density(k * mechanism.step) == pytest.approx(
        mechanism.weight(k) / mechanism.step, abs=1e-12
    )
    x = np.linspace(-60, 60, 960_001)
    assert np.trapezoid(mechanism.density(x), x) == pytest.approx(1, abs=1e-7)


def test_epsilon_is_the_lipschitz_constant_of_the_log_density() -> None:
    """For 30 random densities, ε is compared with the largest slope on a fine grid."""
    rng = np.random.default_rng(3)
    for _ in range(30):
        period = int(rng.integers(1, 4))
        core = tuple(rng.uniform(0.2, 3, size=period + int(rng.integers(0, 4))).tolist())
        left, right = rng.uniform(0.05, 0.9, size=2).tolist()
        mechanism = QuantizedPiecewiseLinear(
            float(rng.uniform(0.1, 3)), core, first=-2, left=left, right=right, period=period
        )
        x = np.linspace(-12, 12, 48_001) * mechanism.step
        slopes = np.abs(np.diff(np.log(mechanism.density(x)))) / np.diff(x)
        epsilon = mechanism.epsilon
        grid_step = 24 / 48_000 * mechanism.step
        assert slopes.max() <= epsilon * (1 + 1e-9)
        # Within one step of the grid the density changes at most by the factor e^(ε grid_step).
        assert slopes.max() >= epsilon * (1 - epsilon * grid_step)


def test_epsilon_of_two_sided_geometric_weights_has_its_closed_form() -> None:
    delta = 0.25
    geometric = QuantizedPiecewiseLinear(
        delta, (1.0,), left=math.exp(-delta), right=math.exp(-delta)
    )
    assert geometric.epsilon == pytest.approx(math.expm1(delta) / delta, rel=1e-13)


def test_epsilon_is_infinite_if_a_weight_is_0() -> None:
    finite_support = QuantizedPiecewiseLinear(step=1.0, core=(1.0, 1.0))
    assert finite_support.epsilon == math.inf
    with_gap = QuantizedPiecewiseLinear(
        step=1.0, core=(1.0, 0.0, 1.0), left=0.5, right=0.5, period=3
    )
    assert with_gap.epsilon == math.inf


@pytest.mark.parametrize("x", [0.0, -3.21])
def test_m_and_u_follow_their_joint_law(x: float) -> None:
    """P(M = m, U in a cell) = ∫ δ f(δ(m + u) - x) du, (c) in the proof of Lemma 5 of the DQL paper.

    M is the integer that is sent, U the dither, δ the step and f the density of the noise. A
    chi-square test compares the draws with the integrals. It fails if the cells are shifted by one integer.
    """
    n = 400_000
    cells = 8
    shared = SharedStream(KEY, NONCE)
    m = LOPSIDED.encode(np.full(n, x), shared, InsecureLocalStream(11))
    # `decode` returns (M + U) δ.
    u = (LOPSIDED.decode(m, SharedStream(KEY, NONCE)) / LOPSIDED.step) - m
    edges = np.linspace(-0.5, 0.5, cells + 1)
    integers = np.arange(m.min() - 2, m.max() + 3)
    bin_edges = [np.append(integers, integers[-1] + 1) - 0.5, edges]
    counts, _, _ = np.histogram2d(m, u, bins=bin_edges)
    points = np.linspace(0, 1, 801)
    grid = edges[:-1, None] + points / cells
    places = LOPSIDED.step * (integers[:, None, None] + grid) - x
    heights = LOPSIDED.step * LOPSIDED.density(places)
    expected_counts = n * np.trapezoid(heights, dx=1 / cells / 800, axis=2)
    is_used = expected_counts > 20
    observed = counts[is_used]
    expected = expected_counts[is_used]
    # An integer has `cells` cells, so this shifts them by one integer.
    shifted = np.roll(expected, cells)
    # One more cell has all other draws.
    observed = np.append(observed, n - observed.sum())
    expected = np.append(expected, n - expected.sum())
    shifted = np.append(shifted, n - shifted.sum())
    assert stats.chisquare(observed, expected, sum_check=False).pvalue > 1e-3
    assert stats.chisquare(observed, shifted, sum_check=False).pvalue < 1e-9


def test_integers_and_numbers_have_the_shape_of_the_data() -> None:
    m = LOPSIDED.encode(np.zeros((3, 4)), SharedStream(KEY, NONCE), InsecureLocalStream(1))
    assert m.shape == (3, 4)
    assert m.dtype == np.int64
    assert LOPSIDED.encode([], SharedStream(KEY, NONCE)).shape == (0,)
    scalar = LOPSIDED.encode(0, SharedStream(KEY, NONCE), InsecureLocalStream(1))
    assert type(scalar) is int
    assert scalar == m[0, 0]
    assert type(LOPSIDED.decode(scalar, SharedStream(KEY, NONCE))) is float


def test_shared_and_local_streams_cannot_be_swapped() -> None:
    shared = SharedStream(KEY, NONCE)
    with pytest.raises(
        InvalidRequest, match=r"shared must be a SharedStream\. Got InsecureLocalStream\."
    ):
        LOPSIDED.encode(0.0, InsecureLocalStream(1), shared)
    with pytest.raises(InvalidRequest, match="local must be a LocalStream"):
        LOPSIDED.encode(0.0, shared, shared)
    with pytest.raises(InvalidRequest, match="shared must be a SharedStream"):
        LOPSIDED.decode(0, LocalStream())
    assert shared.position == 0


@pytest.mark.parametrize(
    "x", [math.nan, math.inf, -math.inf, 2.0**61, [0.0, math.nan], "a", 1j, True, None]
)
def test_inputs_that_are_not_finite_numbers_are_refused(x: object) -> None:
    with pytest.raises(InvalidRequest, match=r"^x.* must be .*Got"):
        LOPSIDED.encode(x, SharedStream(KEY, NONCE))


@pytest.mark.parametrize("m", [0.5, math.nan, "a", 2**63, None])
def test_only_integers_are_decoded(m: object) -> None:
    with pytest.raises(InvalidRequest, match="m must be"):
        LOPSIDED.decode(m, SharedStream(KEY, NONCE))


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("step", {"step": 0.0}),
        ("step", {"step": math.nan}),
        ("step", {"step": 1e-320}),
        ("core", {"core": ()}),
        ("core", {"core": (1.0, -1.0)}),
        ("core", {"core": (0.0, 0.0)}),
        ("left", {"left": 1.0}),
        ("right", {"right": -0.1}),
        ("period", {"period": 2}),
        ("period", {"period": 0}),
    ],
)
def test_parameters_outside_their_range_are_refused(
    name: str, arguments: dict[str, object]
) -> None:
    with pytest.raises(InvalidRequest, match=f"{name} must be"):
        QuantizedPiecewiseLinear(**{"step": 1.0, "core": (1.0,), **arguments})


@pytest.mark.parametrize("whole", [0.0, 2.0**53 + 2, -(2.0**60), 2.0**61])
def test_dithered_round_keeps_the_dither_beyond_2_to_the_53(whole: float) -> None:
    """It rounds whole + 0.3 - u, although a double of this size has no fraction."""
    u = np.linspace(-0.49, 0.49, 99)
    m = dithered_round(quotient=np.full(99, whole), noise=np.zeros(99), w=np.full(99, 0.3), u=u)
    assert (m - int(whole)).tolist() == np.rint(0.3 - u).astype(int).tolist()
