"""Test exact designs whose masses are too small for a solver, which rounds them to 0.

`exact_program._lift_basis` guesses the constraints that determine these masses. If the guess is
right, the exact program needs no further call of a solver.
"""

from __future__ import annotations

import numpy as np
import pytest

import workbench as wb
from workbench.families.modulo import exact_program
from workbench.solvers.exact import rational_refinement


def _design(**question: object) -> wb.Design:
    """Design noise modulo 201 with the squared loss at ε = 1 and δ = 0."""
    return wb.design(
        wb.ModuloNoise(n=200, **question), notion="pdp", delta=0, loss="squared", epsilon=1
    )


@pytest.mark.parametrize("question", [{"max_shift": 2}, {"max_shift": 2, "directed": True}])
def test_lifted_basis_of_small_masses_needs_no_solver(
    question: dict[str, object], monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as without_guess:
        without_guess.setattr(exact_program, "_lift_basis", lambda *_: None)
        refined_by_solver = _design(**question)

    def fail(*_: object) -> None:
        raise AssertionError("a solver was started")

    monkeypatch.setattr(rational_refinement._Refinement, "_solve_correction", fail)
    design = _design(**question)
    assert design.certificate is not None
    assert design.details["loss"] - design.details["bound"] <= design.details["loss"] / 2**49
    masses = np.array(design.mechanism.pmf)
    assert (masses < 1e-15).sum() > 20
    assert np.allclose(masses, refined_by_solver.mechanism.pmf, rtol=1e-12, atol=0)
