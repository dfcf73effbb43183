import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from oracle_truth import both_ways, dp_delta, dp_error, dp_law, hop_law, judge, run

from workbench.models.convex.requirements import HOCKEY_STICK as DP
from workbench.models.convex.requirements import MASS_ABOVE_RATIO as PDP


@pytest.mark.parametrize("seed", range(12))
def test_the_hockey_stick_law_is_the_linear_program(seed):
    rng = np.random.default_rng(seed)
    sizes = [(5,), (6,), (8,), (9,), (11,), (3, 3), (2, 5), (2, 2, 3), (4, 4), (7,), (12,), (3, 4)][
        seed
    ]
    shifts = {tuple(int(rng.integers(n)) for n in sizes) for _ in range(4)} - {(0,) * len(sizes)}
    one = float(rng.uniform(0.1, 2.0))
    budgets = {shift: one if seed % 2 else float(rng.uniform(0.1, 2.0)) for shift in sorted(shifts)}
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
def test_the_law_is_private_and_falls_in_delta(size, shifts, epsilon, delta):
    budgets = {(shift % size,): epsilon for shift in shifts if shift % size}
    law = dp_law((size,), list(budgets), epsilon, delta)
    assert law.pmf.sum() == pytest.approx(1.0, abs=1e-12)
    if budgets:
        assert dp_delta(law.pmf, (size,), budgets) <= delta + 1e-12
    assert law.value <= hop_law((size,), list(budgets), epsilon).value + 1e-15
    assert dp_law((size,), list(budgets), epsilon, min(1.0, delta + 0.01)).value <= law.value


def test_dp_against_pdp_where_the_spec_compares_them():
    assert judge((9,), run(3), True, 1.5, 0.2, DP).value == pytest.approx(0.3654464, abs=5e-8)
    assert judge((9,), run(3), True, 1.5, 0.2, PDP).value == pytest.approx(0.4346976, abs=5e-8)


def test_the_whole_mass_may_leak_at_delta_one():
    law = dp_law((9,), both_ways((9,), run(3)), 1.5, 1.0)
    assert law.value == 0.0
    assert law.pmf[0] == 1.0
    assert not law.pmf.flags.writeable


def test_delta_zero_is_the_hop_law():
    assert dp_law((9,), run(3), 1.5, 0.0).value == hop_law((9,), run(3), 1.5).value
    assert math.isclose(
        dp_law((9,), run(3), 1.5, 0.25).value,
        0.75 * hop_law((9,), run(3), 1.5).value,
        rel_tol=1e-14,
    )
