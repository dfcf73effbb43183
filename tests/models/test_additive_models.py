"""Noise on the integers and the reals: both sides of the optimum against known values, closed forms and another LP."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from scipy.optimize import linprog

from models.additive_cuts import by_cuts
from models.additive_lp import LineProgram, refined
from models.integer_noise import Budget, LineLoss, ProgramTooLarge, bracket
from models.oracles import line_noise
from models.real_noise import real_bracket
from solvers.backend import backend
from solvers.search import Deadline
from workbench.exact.numbers import exp_bounds


def exp_up(epsilon: str) -> Fraction:
    return Fraction(exp_bounds(Fraction(epsilon), 64)[1], 1 << 64)


def max_loss(epsilon: str, delta: str) -> Budget:
    return Budget(float(epsilon), exp_up(epsilon), Fraction(delta))


def integers(epsilon: str, delta: str, loss: LineLoss, sensitivity: int = 1):
    return bracket(sensitivity, [max_loss(epsilon, delta)], loss)


@pytest.mark.parametrize(
    ("epsilon", "delta", "value"),
    [("1", "1e-3", 1.7739), ("0.5", "1e-3", 7.2816), ("0.25", "1e-3", 27.9509), ("1", "1e-5", 1.8396)],
)
def test_integers_from_both_sides(epsilon: str, delta: str, value: float):
    found = integers(epsilon, delta, LineLoss.named("squared"))
    assert found.upper.value == pytest.approx(value, abs=5e-5)
    assert abs(found.gap) < 1e-9
    assert float(found.lower.bound) <= found.upper.value * (1 + 1e-12)


def test_cuts_of_an_answer_save_rounds():
    line = LineProgram(5, exp_up("0.7"), Fraction("0.05"), 30, 30, [Fraction(j) for j in range(31)])
    first = line.solve()
    assert line.solve(first.cuts).rounds < first.rounds


def test_cutting_planes_agree_with_one_program(monkeypatch: pytest.MonkeyPatch):
    line = LineProgram(5, exp_up("0.7"), Fraction("0.05"), 30, 30, [Fraction(j) for j in range(31)])
    whole, fine = line.solve(), {"precision": 1e-10, "stall": 0.0, "deadline": Deadline()}
    cuts = by_cuts(line, (), **fine)
    assert whole.value == pytest.approx(cuts.value, rel=1e-9)
    assert float(whole.bound) == pytest.approx(float(cuts.bound), rel=1e-7)
    assert cuts.excess <= 1e-9
    assert by_cuts(line, cuts.cuts, **fine).rounds < cuts.rounds
    monkeypatch.setattr("models.additive_cuts._ROUNDS", cuts.rounds - 2)
    assert 0 < float(by_cuts(line, (), **fine).bound) <= whole.value * (1 + 1e-9)


def test_excesses_that_are_stated_as_they_are_needed_find_the_optimum_of_all():
    random = np.random.default_rng(22)
    for _ in range(12):
        d, delta, e = int(random.integers(1, 8)), random.uniform(0.01, 0.3), exp_up(repr(random.uniform(0.8, 4)))
        size = 6 * d + int(random.integers(0, 9))
        atom = Fraction(0) if random.random() < 0.3 else None
        rising = np.cumsum(random.integers(0, 5, size + 1)).tolist()
        line = LineProgram(d, e, Fraction(delta), size, size, [Fraction(c) for c in rising], atom=atom)
        whole = backend("highs").open(line.stated).solve()
        few = line.solve(precision=1e-12)
        assert few.value == pytest.approx(whole.objective, rel=1e-8, abs=1e-9)
        assert float(few.bound) <= few.value * (1 + 1e-9) + 1e-12
        assert float(few.bound) == pytest.approx(few.value, rel=1e-7, abs=1e-9)
        assert few.excess <= 1e-8


def test_another_statement_and_solver_agree():
    """All y spelled out, both signs of s, no symmetry, scipy's own interface."""
    d, size, e, delta = 2, 12, math.exp(0.8), 0.05
    eta = np.arange(-size, size + 1)
    n, shifts = eta.size, [-2, -1, 1, 2]
    columns = n * (1 + len(shifts))
    rows, right = [], []
    for k, s in enumerate(shifts):
        total = np.zeros(columns)
        for i in range(n):
            row = np.zeros(columns)
            row[i] = 1
            if 0 <= i + s < n:
                row[i + s] = -e
            row[n * (k + 1) + i] = -1
            rows.append(row)
            right.append(0.0)
            total[n * (k + 1) + i] = 1
        rows.append(total)
        right.append(delta)
    one = np.concatenate([np.ones(n), np.zeros(columns - n)])
    loss = np.concatenate([np.abs(eta), np.zeros(columns - n)])
    answer = linprog(loss, np.array(rows), right, one[None], [1.0])
    line = LineProgram(d, exp_up("0.8"), Fraction("0.05"), size, size, [Fraction(j) for j in range(size + 1)])
    assert line.solve().value == pytest.approx(answer.fun, rel=1e-8)
    whole = [Fraction(abs(int(j))) for j in eta]
    plain = LineProgram(d, exp_up("0.8"), Fraction("0.05"), size, size, whole, folded=False)
    assert plain.solve().value == pytest.approx(answer.fun, rel=1e-7)


def test_clamped_losses():
    found = integers("1", "0.1", LineLoss.clamped("squared", 5, lambda r: Fraction(r * r)), 4)
    assert found.upper.value == pytest.approx(3.0569, abs=1e-4)
    assert abs(found.gap) < 1e-8
    uneven = LineLoss.clamped("absolute", 3, lambda r: Fraction(abs(r)), [Fraction(1), Fraction(0), Fraction(0)])
    assert not uneven.even
    assert integers("1", "0.1", uneven).upper.value == pytest.approx(float(integers("1", "0.1", uneven).lower.bound))
    with pytest.raises(ValueError, match="not fall"):
        LineLoss.own([Fraction(0), Fraction(2), Fraction(1)])


def test_too_large_is_refused_before_it_is_stated():
    with pytest.raises(ProgramTooLarge, match=r"sensitivity \d+ would fit"):
        integers("1", "1e-5", LineLoss.named("absolute"), 5000)


@pytest.mark.parametrize(
    ("epsilon", "delta", "low", "high", "gap"),
    [("1", "0.2", 0.558576, 0.558765, 1e-4), ("0.2", "0.05", 2.354075, 2.354225, 3e-4), ("2", "0.3", 0.0, 1.0, 2e-3)],
)
def test_reals_from_both_sides(epsilon: str, delta: str, low: float, high: float, gap: float):
    found = real_bracket([max_loss(epsilon, delta)], "absolute", gap=gap)
    assert 0 <= found.gap <= gap
    assert found.upper.value >= low
    assert float(found.bound) <= high
    assert found.upper.value <= line_noise.truncated_laplace(float(epsilon), float(delta), 1, "absolute")


def test_large_delta_needs_the_atom():
    found = real_bracket([max_loss("1", "0.75")], "absolute", gap=2e-3)
    assert found.upper.x[-1] == pytest.approx(0.6, abs=0.02)
    assert found.upper.value == pytest.approx(0.1661, abs=5e-4)


def test_small_budgets_come_near_the_uniform_bernoulli_product():
    found = real_bracket([max_loss("0.005", "0.25")], "absolute", gap=1e-3)
    assert found.upper.value < line_noise.zero_epsilon(0.25, 1, "absolute") < 1.01 * found.upper.value
    squared = real_bracket([max_loss("0.01", "0.75")], "squared", gap=1e-2)
    assert float(squared.bound) < line_noise.zero_epsilon(0.75, 1, "squared") < 1.05 * squared.upper.value


@pytest.mark.parametrize("loss", ["absolute", "squared"])
def test_staircases(loss: str):
    power = line_noise.POWERS[loss]
    for d in (1, 3, 6):
        b = Fraction(2, 5)
        value, r = line_noise.staircase_integers(b, d, loss)
        eta = np.arange(-400, 401)
        law = float(b) ** np.maximum(0, np.ceil((abs(eta) - r + 1) / d))
        assert float(value) == pytest.approx((law * abs(eta) ** power).sum() / law.sum(), rel=1e-10)
        size = 14 * d  # a relaxation of all pure noise: pairs at most d apart, nothing stated beyond
        columns, rows = np.arange(size + d + 1), []
        for i in range(size + 1):
            for j in range(max(0, i - d), i + d + 1):
                if i != j:
                    row = np.zeros(columns.size)
                    row[i], row[j] = 1, -1 / float(b)
                    rows.append(row)
        weights = np.where(columns == 0, 1.0, 2.0)
        if d > 3:
            continue
        answer = linprog(weights * columns**power, np.array(rows), np.zeros(len(rows)), weights[None], [1.0])
        assert answer.fun == pytest.approx(float(value), rel=1e-3)
    fine = line_noise.staircase_integers(Fraction(math.exp(-1)), 400, loss)[0] / 400**power
    assert float(fine) == pytest.approx(line_noise.staircase_reals(1.0, 1.0, loss), rel=1e-3)


def test_what_is_printed_as_a_lower_bound_is_not_one_everywhere():
    assert line_noise.geng_formula(1.0, 0.2, 1) == pytest.approx(0.2867, abs=5e-5)
    found = real_bracket([max_loss("0.05", "0.05")], "absolute", gap=1e-3)
    assert line_noise.geng_formula(0.05, 0.05, 1, 1) < float(found.bound)
    assert found.upper.value < line_noise.geng_formula(0.05, 0.05, 1) - 0.05


def test_refined_cuts_stay_cuts():
    inside = np.array([False, True, True])
    ((shift, fine, _),) = refined([(1, inside, 0)], 2)
    assert shift == 2
    assert fine.tolist() == [False, True, True, True, True]


def _by_scipy(sensitivity: int, epsilon: float, delta: float, losses: list[float]) -> float:
    """The best noise of finite support by a statement of its own: costs of η = -reach..reach."""
    from scipy import sparse

    size, shifts = len(losses), [s for d in range(1, sensitivity + 1) for s in (d, -d)]
    eye = sparse.identity(size)
    rows = [
        sparse.hstack(
            [
                eye - math.exp(epsilon) * sparse.eye(size, k=s),
                *(-eye if other == s else sparse.csr_matrix((size, size)) for other in shifts),
            ]
        )
        for s in shifts
    ]
    sums = sparse.hstack(
        [sparse.csr_matrix((len(shifts), size)), sparse.kron(sparse.identity(len(shifts)), np.ones(size))]
    )
    limits = np.r_[np.zeros(size * len(shifts)), np.full(len(shifts), delta)]
    total = np.r_[np.ones(size), np.zeros(size * len(shifts))][None, :]
    objective = np.r_[losses, np.zeros(size * len(shifts))]
    fine = {"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10}
    matrix = sparse.vstack([*rows, sums])
    return float(linprog(objective, matrix, limits, total, [1.0], method="highs", options=fine).fun)


def test_losses_that_end_early_are_proven_although_duals_have_few_digits():
    """Seven clamped answers: the loss is flat beyond 6 and the best noise long; wider supports do not mend duals."""
    loss = LineLoss.clamped("squared", 7, lambda r: Fraction(r * r))
    max_loss = Budget(0.5, Fraction(math.exp(0.5)) + Fraction(1, 10**14), Fraction(1, 20))
    known = bracket(3, [max_loss], loss)
    assert known.gap <= 1e-9
    assert known.upper.program.reach < 600
    reach = 130
    own = _by_scipy(3, 0.5, 0.05, [float(loss.at(eta)) for eta in range(-reach, reach + 1)])
    assert known.upper.value == pytest.approx(own, rel=1e-8)
    assert float(known.lower.bound) <= known.upper.value * (1 + 1e-12)
