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


def pdp_delta(law: wb.PiecewiseAffine, epsilon: str) -> ExpNumber:
    found: ExpNumber = wb.audit(law, epsilon).worst_result("pdp").measurement
    return found


def brute(law: wb.PiecewiseAffine, epsilon: float, steps: int = 120) -> float:
    """The largest violating mass over a grid of inputs of every two pieces, from inside each
    piece.
    """
    s = np.linspace(1e-7, 1 - 1e-7, steps)[:, None]
    e, best = math.exp(epsilon), 0.0
    ends = law.matrix.reshape(-1, 2, law.matrix.shape[1])
    laws = [(1 - s) * one + s * two for one, two in ends]
    for p in laws:
        for q in laws:
            broken = p[:, None, :] > e * q[None, :, :] * (1 + 1e-12)
            best = max(best, float((broken * p[:, None, :]).sum(axis=2).max()))
    return best


ENDS = st.lists(
    st.lists(st.integers(0, 12), min_size=3, max_size=3).filter(any), min_size=4, max_size=4
)


@settings(max_examples=60, deadline=None)
@given(ENDS, st.sampled_from(["0", "0.2", "0.7", "1.5"]))
def test_the_pdp_delta_is_a_tight_bound_over_all_inputs(ends, epsilon):
    law = wb.PiecewiseAffine.from_laws([0, 1, 2], [0, 1, 2], ends)
    exact = pdp_delta(law, epsilon)
    found = brute(law, float(epsilon))
    assert found <= exact.upper + 1e-6
    assert (
        exact.lower - found < 0.08
    )  # the grid comes near the supremum: masses move by at most 1/120 a step


def test_end_laws_alone_understate_the_pdp_delta():
    # no two end laws break ε = 0.3 on more than 2/3, two inputs inside the pieces do on 0.914
    law = wb.PiecewiseAffine.from_laws(
        [0, 1, 2], [0, 1, 2], [[1, 7, 3], [1, 3, 8], [9, 7, 9], [4, 9, 8]]
    )
    at_ends = wb.audit(
        wb.Channel.from_pairs(law.ends, [(i, j) for i in range(4) for j in range(i)]), "0.3"
    ).pdp_delta
    assert at_ends == Fraction(2, 3)
    assert pdp_delta(law, "0.3").upper == pytest.approx(0.9141576379, abs=1e-9)
    assert brute(law, epsilon=0.3, steps=1500) == pytest.approx(0.9141576379, abs=2e-3)


def test_a_certificate_of_the_pdp_delta(tmp_path):
    law = wb.PiecewiseAffine.from_laws([0, 1], [0, 1], [[0.6, 0.4], [0.4, 0.6]])
    delta = pdp_delta(law, "0.2").upper
    proof = wb.certify(law, "pdp", "0.2", Fraction(delta))
    wb.save(proof, tmp_path / "c.json")
    assert wb.check(tmp_path / "c.json") == proof
    assert "PDP delta" in str(proof)
    with pytest.raises(wb.NotCertified, match="PDP"):
        wb.Certificate(law, "pdp", "0.2", Fraction(delta) - Fraction(1, 10**6))
    repaired = wb.certify(law, "pdp", "0.2", "0.01")
    assert pdp_delta(repaired.mechanism, "0.2").compare(Fraction(1, 100)) <= 0
    assert wb.certify(law, "pdp", "0.5", 0).privacy.pure_epsilon < 0.5
