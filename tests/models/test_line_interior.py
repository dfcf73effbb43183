"""Noise under hockey sticks by the interior method: against the simplex method's optimum, and an exact bound."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest

import models.line_program
from models.line_interior import interior_point
from models.line_program import LineProgram
from models.requirements import HOCKEY_STICK, Bound
from solvers.backend import backend
from solvers.errors import SolverError
from solvers.search import Deadline


def stick(epsilon: float, delta: float) -> Bound:
    return Bound(HOCKEY_STICK, math.nextafter(math.exp(epsilon), math.inf), delta)


def excess(line: LineProgram, x: np.ndarray) -> float:
    """Over the worst limit, relative, written out."""
    worst, masses = 0.0, line.masses(x)
    atom = 0.0 if line.atom is None else float(x[-1])
    for bound in line.bounds:
        for shift in line.shifts.tolist():
            moved = np.zeros_like(masses)
            kept = slice(max(0, -shift), masses.size - max(0, shift))
            moved[kept] = masses[max(0, shift) : masses.size + min(0, shift)]
            worst = max(worst, (np.maximum(masses - bound.level * moved, 0).sum() + atom) / bound.limit - 1)
    return worst


@pytest.mark.parametrize("case", range(12))
def test_the_optimum_of_the_simplex_method_and_a_bound_that_is_about_it(case: int, monkeypatch):
    random = np.random.default_rng([23, case])
    d, epsilon = int(random.integers(1, 9)), random.uniform(0.5, 3)
    size = 5 * d + int(random.integers(0, 9))
    bounds = [stick(epsilon, random.uniform(0.02, 0.3))]
    bounds += [stick(epsilon + 1, bounds[0].limit / 3)] if case % 3 == 0 else []
    up, down = (np.cumsum(random.integers(0, 5, size + d + 2)).tolist() for _ in range(2))
    folded, ended = case % 2 == 0, case % 4 < 2
    atom = Fraction(0) if ended and case % 3 == 1 else None

    def loss(eta: int) -> Fraction:
        return Fraction(up[eta] if eta >= 0 or folded else down[-eta]) if folded or eta else Fraction(0)

    def even(eta: int) -> Fraction:
        return Fraction(up[abs(eta)])

    line = LineProgram(d, size, [even if folded else loss], bounds, folded=folded, open=not ended, atom=atom)
    optimum = backend("highs").open(line.program).solve().objective
    monkeypatch.setattr(models.line_program, "_DENSE", 1)
    found = line.solve(np.ones(line.base.shape[1]))
    assert found.version == ""  # no simplex method
    assert found.value == pytest.approx(optimum, rel=1e-7, abs=1e-7)
    assert float(found.bound) <= optimum + 1e-9 * (1 + optimum)
    assert float(found.bound) == pytest.approx(optimum, rel=1e-6, abs=1e-6)
    assert found.x.min() >= 0
    assert line.weights @ found.x == pytest.approx(1, abs=1e-9)
    if ended:
        assert excess(line, found.x) <= 1e-8


def test_a_curve_that_goes_on_is_left_to_tangents(monkeypatch):
    line = LineProgram(3, 20, [lambda eta: Fraction(abs(eta))], [stick(1, 0.1)], open=False)
    monkeypatch.setattr(models.line_program, "_DENSE", 1)
    near, further = line.solve().x, [stick(2, 0.01)]

    def more(p, q):
        excess = np.maximum(p - further[0].level * q, 0).sum()
        return further if excess > further[0].limit * (1 + 1e-9) else []

    found = line.solve(near, more=more)
    both = LineProgram(3, 20, line.losses, [*line.bounds, *further], open=False).solve()
    assert found.version != ""
    assert found.value == pytest.approx(both.value, rel=1e-8)


def test_stopped_at_once_there_is_no_point_and_tangents_go_on():
    line = LineProgram(2, 10, [lambda eta: Fraction(abs(eta))], [stick(1, 0.1)], open=False)
    costs, mass = line.base.template.c, line.weights.astype(float)
    with pytest.raises(SolverError, match="no point"):
        interior_point(costs, mass, line.compared, line.bounds, 1e-9, Deadline(0))
