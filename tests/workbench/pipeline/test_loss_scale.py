"""Test gaps and statuses where the floor of the losses matters: the loss without privacy.

`workbench.pipeline.loss_scale` defines the floor and the width of the losses. A gap is relative to
the objective minus the floor.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import pytest

import workbench as wb
from workbench.pipeline.loss_scale import LossScale


def test_a_far_answer_of_tiny_weight_does_not_spoil_the_scale() -> None:
    """The answer 10^9 has the weight 1e-12 and no neighbour."""
    pairs = [(i, i + 1) for i in range(4)]
    near_query = wb.FiniteQuery(range(5), neighbours=pairs, prior=[1] * 5)
    far_query = wb.FiniteQuery(
        [*range(5), 10**9], neighbours=pairs, prior=[*[1] * 5, Fraction(5, 10**12)]
    )
    options = {"loss": "squared", "epsilon": 1, "delta": "1e-3"}
    near_design = wb.design(near_query, **options)
    far_design = wb.design(far_query, **options)
    assert far_design.objective == pytest.approx(near_design.objective, rel=1e-9)
    assert far_design.status == "optimal"


@pytest.mark.parametrize(
    ("options", "method"),
    [
        ({"epsilon": 1}, "block"),
        ({"epsilon": 1}, "program"),
        ({"epsilon": 1, "delta": "0.01"}, "block"),
        ({"epsilon": 1, "delta": "0.01"}, "program"),
        # Blocks need a notion with one bound on ratios.
        ({"notion": "zcdp", "rho": "0.1"}, "auto"),
        ({"notion": "zcdp", "rho": "0.1"}, "program"),
    ],
)
def test_a_prior_of_one_mass_is_proven_without_a_program(
    options: dict[str, Any], method: str
) -> None:
    question = wb.FiniteQuery(range(11), max_shift=1, prior=[0, 0, 1] + [0] * 8)
    design = wb.design(question, loss="squared", method=method, **options)
    assert (design.objective, design.bound, design.status, design.gap) == (0, 0, "optimal", 0)
    assert design.certificate is not None


def test_separate_parts_with_one_likely_answer_each_have_no_loss() -> None:
    """Answers in different parts need not be hidden: each part publishes its likely answer."""
    question = wb.FiniteQuery([0, 1, 100, 101], max_shift=1, prior=[1, 0, 0, 1])
    design = wb.design(question, loss="absolute", epsilon=1, method="block")
    assert (design.objective, design.bound, design.status) == (0, 0, "optimal")


def test_an_optimum_of_zero_is_proven_optimal() -> None:
    """Three steps with δ = 1/2 lead from answer 0 to 3, so both can be published as they are."""
    question = wb.FiniteQuery(range(4), max_shift=1, prior=[1, 0, 0, 1])
    for method in ("block", "program"):
        design = wb.design(question, loss="absolute", epsilon=1, delta="0.5", method=method)
        assert design.status == "optimal"
        assert design.objective == pytest.approx(0, abs=1e-9)


def test_a_status_is_judged_relative_to_the_loss() -> None:
    """A loss that is 1 % above the bound is not optimal, in any unit."""
    for unit in (1e-9, 1.0, 1e9):
        scale = LossScale(floor=Fraction(0), width=2.0 * unit)
        assert not scale.settles(1.01e-6 * unit, 1e-6 * unit)
        assert scale.settles(1.0000001e-6 * unit, 1e-6 * unit)
        assert scale.gap(1.01e-6 * unit, 1e-6 * unit) == pytest.approx(0.01 / 1.01, rel=1e-2)


def test_a_gap_is_relative_to_the_loss_above_the_floor() -> None:
    offset = LossScale(floor=Fraction(10**6), width=2.0)
    assert not offset.settles(10**6 + 0.51, 10**6 + 0.5)
    assert offset.gap(10**6 + 0.5, 10**6 + 0.25) == pytest.approx(0.5)


def test_a_loss_equal_to_the_loss_without_privacy_has_no_gap_from_rounding() -> None:
    """A difference in the last digit of a double is no gap. A larger difference is a gap."""
    scale = LossScale(floor=Fraction(1, 10), width=0.2)
    assert scale.gap(0.1, math.nextafter(0.1, 0)) == 0
    # The gap is relative to the loss above the floor, which is nearly 0 here.
    assert scale.gap(0.1, 0.1 - 1e-12) > 1


def test_a_design_with_the_loss_without_privacy_has_no_gap() -> None:
    question = wb.FiniteQuery("a,b,c", neighbours="consecutive", prior="worst")
    design = wb.design(question, loss=[[0, 1, 0.3], [0.1] * 3, [1, 0, 0.3]], epsilon=12)
    assert design.objective == pytest.approx(0.1)
    assert design.gap == 0
