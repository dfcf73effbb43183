"""Test that the exact basis of masses that a solver rounds to 0 is found without a solver."""

from __future__ import annotations

import numpy as np
import pytest

import workbench as wb
from workbench.families.modulo import exact_program
from workbench.solvers.exact import rational_refinement


def _design(**question: object) -> wb.Design:
    return wb.design(
        wb.ModuloNoise(n=200, **question), notion="pdp", delta=0, loss="squared", epsilon=1
    )


@pytest.mark.parametrize("question", [{"max_shift": 2}, {"max_shift": 2, "directed": True}])
def test_lifted_basis_of_small_masses_needs_no_solver(
    question: dict[str, object], monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as without:
        without.setattr(exact_program, "_lift_basis", lambda *_: None)
        corrected = _design(**question)

    def none(*_: object) -> None:
        raise AssertionError("a solver was started")

    monkeypatch.setattr(rational_refinement._Refinement, "_solve_correction", none)
    design = _design(**question)
    assert design.certificate is not None
    assert design.details["loss"] - design.details["bound"] <= design.details["loss"] / 2**49
    small = np.array(design.mechanism.pmf) < 1e-15
    assert small.sum() > 20
    assert np.allclose(design.mechanism.pmf, corrected.mechanism.pmf, rtol=1e-12, atol=0)
