"""Compare the PDP δ of laws that are affine between knots with brute force over many inputs."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import workbench as wb
from workbench.exact.numbers import ExpNumber


def measure_pdp_delta(law: wb.PiecewiseAffine, epsilon: str) -> ExpNumber:
    """Return the smallest δ of PDP by the exact audit."""
    delta: ExpNumber = wb.audit(law, epsilon).worst_result("pdp").measurement
    return delta


def search_pdp_delta(law: wb.PiecewiseAffine, epsilon: float, steps: int = 120) -> float:
    """Return the largest mass with P > e^ε Q over two grids of inputs, one in each of two pieces.

    The inputs lie inside the pieces, because laws may jump at knots.
    """
    shares = np.linspace(1e-7, 1 - 1e-7, steps)[:, None]
    largest_mass = 0.0
    ends = law.matrix.reshape(-1, 2, law.matrix.shape[1])
    laws = [(1 - shares) * left + shares * right for left, right in ends]
    for p in laws:
        for q in laws:
            exceeds = p[:, None, :] > math.exp(epsilon) * q[None, :, :] * (1 + 1e-12)
            masses = (exceeds * p[:, None, :]).sum(axis=2)
            largest_mass = max(largest_mass, float(masses.max()))
    return largest_mass


# Weights of three outputs at the four ends of two pieces.
ENDS = st.lists(
    st.lists(st.integers(0, 12), min_size=3, max_size=3).filter(any), min_size=4, max_size=4
)


@settings(max_examples=60, deadline=None)
@given(ENDS, st.sampled_from(["0", "0.2", "0.7", "1.5"]))
def test_the_pdp_delta_is_a_tight_bound_over_all_inputs(ends, epsilon):
    law = wb.PiecewiseAffine.from_laws([0, 1, 2], [0, 1, 2], ends)
    exact = measure_pdp_delta(law, epsilon)
    searched = search_pdp_delta(law, float(epsilon))
    assert searched <= exact.upper + 1e-6
    # The grid comes near the supremum, because masses move by at most 1/120 a step.
    assert exact.lower - searched < 0.08


def test_end_laws_alone_understate_the_pdp_delta():
    """Two end laws violate ε = 0.3 on a mass of 2/3 at most, two inputs inside pieces on 0.914."""
    law = wb.PiecewiseAffine.from_laws(
        [0, 1, 2], [0, 1, 2], [[1, 7, 3], [1, 3, 8], [9, 7, 9], [4, 9, 8]]
    )
    end_laws = wb.Channel.from_pairs(law.ends, [(i, j) for i in range(4) for j in range(i)])
    assert wb.audit(end_laws, "0.3").pdp_delta == Fraction(2, 3)
    exact = measure_pdp_delta(law, "0.3").upper
    # Value of the current program, pinned. The search on a grid confirms three digits.
    assert exact == pytest.approx(0.9141576379, abs=1e-9)
    assert search_pdp_delta(law, epsilon=0.3, steps=1500) == pytest.approx(exact, abs=2e-3)


# The law at 0 is (0.6, 0.4) and the law at 1 is (0.4, 0.6), so its pure ε is ln 1.5 = 0.405...
RESPONSE = wb.PiecewiseAffine.from_laws([0, 1], [0, 1], [[0.6, 0.4], [0.4, 0.6]])


def test_the_measured_pdp_delta_is_certified(tmp_path):
    delta = measure_pdp_delta(RESPONSE, "0.2").upper
    proof = wb.certify(RESPONSE, "pdp", epsilon="0.2", delta=Fraction(delta))
    wb.save(proof, tmp_path / "c.json")
    assert wb.check(tmp_path / "c.json") == proof
    assert "PDP delta" in str(proof)


def test_a_delta_below_the_measured_one_is_not_certified():
    delta = Fraction(measure_pdp_delta(RESPONSE, "0.2").upper)
    with pytest.raises(wb.NotCertified, match="PDP"):
        wb.Certificate(RESPONSE, "pdp", epsilon="0.2", delta=delta - Fraction(1, 10**6))


def test_certify_repairs_the_law_for_a_smaller_delta():
    repaired = wb.certify(RESPONSE, "pdp", epsilon="0.2", delta="0.01")
    assert measure_pdp_delta(repaired.mechanism, "0.2").compare(Fraction(1, 100)) <= 0


def test_pdp_at_delta_0_is_certified_by_the_pure_epsilon():
    assert wb.certify(RESPONSE, "pdp", epsilon="0.5", delta=0).privacy.pure_epsilon < 0.5
