"""Tests of the optimal noise for the error rate under (ε, δ)-DP, against linear programs."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from oracle_truth import (
    add_opposite_shifts,
    dp_delta,
    dp_error,
    dp_law,
    hop_law,
    one_sided_shifts,
    strongest_form,
)

from workbench.models.convex.requirements import HOCKEY_STICK as DP
from workbench.models.convex.requirements import MASS_ABOVE_RATIO as PDP


@pytest.mark.parametrize("seed", range(12))
def test_the_law_has_the_optimum_of_the_linear_program(seed):
    rng = np.random.default_rng(seed)
    sizes = [(5,), (6,), (8,), (9,), (11,), (3, 3), (2, 5), (2, 2, 3), (4, 4), (7,), (12,), (3, 4)][
        seed
    ]
    shifts = {tuple(int(rng.integers(n)) for n in sizes) for _ in range(4)} - {(0,) * len(sizes)}
    shared_epsilon = float(rng.uniform(0.1, 2.0))
    budgets = {}
    for shift in sorted(shifts):
        budgets[shift] = shared_epsilon if seed % 2 else float(rng.uniform(0.1, 2.0))
    delta = float(rng.uniform(0.0, 0.8))
    law = dp_law(sizes, list(budgets), budgets, delta)
    assert law.kind == "optimum"
    assert law.value == pytest.approx(dp_error(sizes, budgets, delta), abs=1e-8)


@given(
    st.integers(2, 12),
    st.sets(st.integers(1, 11), min_size=1, max_size=4),
    st.floats(0.02, 3.0),
    st.floats(0.0, 1.0),
)
@settings(max_examples=150, deadline=None)
def test_the_law_is_private_and_its_error_rate_falls_in_delta(size, shifts, epsilon, delta):
    budgets = {(shift % size,): epsilon for shift in shifts if shift % size}
    law = dp_law((size,), list(budgets), epsilon, delta)
    assert law.pmf.sum() == pytest.approx(1.0, abs=1e-12)
    if budgets:
        assert dp_delta(law.pmf, sizes=(size,), budgets=budgets) <= delta + 1e-12
    assert law.value <= hop_law((size,), list(budgets), epsilon).value + 1e-15
    assert dp_law((size,), list(budgets), epsilon, min(1.0, delta + 0.01)).value <= law.value


def test_dp_has_a_smaller_error_rate_than_pdp():
    """The values are computed by linear and mixed-integer programs (test_modulo.py)."""
    for notion, error_rate in ((DP, 0.3654464), (PDP, 0.4346976)):
        form = strongest_form(
            (9,), one_sided_shifts(3), is_directed=True, epsilon=1.5, delta=0.2, requires=notion
        )
        assert form.value == pytest.approx(error_rate, abs=5e-8)


def test_delta_one_allows_noise_that_is_always_zero():
    law = dp_law((9,), add_opposite_shifts((9,), one_sided_shifts(3)), epsilon=1.5, delta=1.0)
    assert law.value == 0.0
    assert law.pmf[0] == 1.0
    assert not law.pmf.flags.writeable


def test_the_error_rate_is_that_of_delta_zero_times_one_minus_delta():
    shifts = one_sided_shifts(3)
    error_rate = hop_law((9,), shifts, 1.5).value
    assert dp_law((9,), shifts, epsilon=1.5, delta=0.0).value == error_rate
    error_rate_at_delta = dp_law((9,), shifts, epsilon=1.5, delta=0.25).value
    assert math.isclose(error_rate_at_delta, 0.75 * error_rate, rel_tol=1e-14)
