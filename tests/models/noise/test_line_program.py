"""Tests of noise on the integers and the reals: stored optima, closed forms and SciPy."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from scipy.optimize import linprog

import workbench as wb
from workbench.models.convex.requirements import HOCKEY_STICK, Bound
from workbench.models.noise.losses import LineLoss
from workbench.models.noise.program import LineProgram, prove_lower_bound
from workbench.models.oracles import line_noise
from workbench.solvers.backend import get_backend


def hockey_stick(epsilon: float, delta: float) -> Bound:
    """Return the bound of (ε, δ)-DP, with e^ε rounded up."""
    return Bound(HOCKEY_STICK, math.nextafter(math.exp(epsilon), math.inf), delta)


def design_real_noise(epsilon: str, delta: str, loss: str, gap: str) -> wb.Design:
    """Design noise on the reals with sensitivity 1."""
    return wb.design(wb.RealNoise(1), epsilon=epsilon, delta=delta, loss=loss, gap=gap)


@pytest.mark.parametrize(
    ("epsilon", "delta", "value"),
    [
        ("1", "1e-3", 1.7739),
        ("0.5", "1e-3", 7.2816),
        ("0.25", "1e-3", 27.9509),
        ("1", "1e-5", 1.8396),
    ],
)
def test_integer_noise_has_the_stored_optimum(epsilon: str, delta: str, value: float):
    design = wb.design(wb.IntegerNoise(1), epsilon=epsilon, delta=delta)
    assert design.objective == pytest.approx(value, abs=5e-5)
    assert design.bound <= design.objective <= design.bound * (1 + 1e-9)


def test_sensitivity_32_at_a_small_delta_has_a_tight_bound():
    design = wb.design(wb.IntegerNoise(32), epsilon="1", delta="1e-5")
    assert design.bound <= design.objective <= design.bound * (1 + 1e-8)
    assert design.objective == pytest.approx(1962.284931, abs=1e-5)
    assert wb.audit(design, 1).dp_delta <= Fraction(1, 100_000)


def test_a_start_near_the_optimum_saves_rounds():
    line = LineProgram(
        sensitivity=5, reach=30, losses=[abs], bounds=[hockey_stick(0.7, 0.05)], is_open=False
    )
    first = line.solve()
    assert line.solve(first.x).rounds < first.rounds
    finer = LineProgram(
        sensitivity=10, reach=60, losses=[abs], bounds=[hockey_stick(0.7, 0.05)], is_open=False
    )
    assert finer.solve(finer.columns_of_law(first.masses, 2.0)).rounds < finer.solve().rounds


def test_losses_below_the_tolerances_of_a_solver_have_a_bound():
    """The losses of both answers are 2e-9 at ε = 20. A solver may give their rows no multiplier."""
    losses = [lambda j: Fraction(j > 0), lambda j: Fraction(j < 0)]
    line = LineProgram(
        sensitivity=1, reach=2, losses=losses, bounds=[hockey_stick(20.0, 0.0)], is_folded=False
    )
    answer = line.solve(precision=1e-12)
    for weights in ([0.0, 0.0], [1.0, 0.0]):
        assert prove_lower_bound(line, [], weights) == 0 <= answer.value
    table = wb.recommend(
        answers="-1,-2", loss="error-rate", max_shift=1, prior="worst", epsilon=20, delta="1e-5"
    )
    assert table[0]["objective"] == pytest.approx(2.0611330066540216e-09, rel=1e-6)


def test_tangents_that_are_added_as_needed_find_the_optimum_of_all_tangents():
    random = np.random.default_rng(22)
    for _ in range(12):
        sensitivity = int(random.integers(1, 8))
        delta = random.uniform(0.01, 0.3)
        epsilon = random.uniform(0.8, 4)
        size = 6 * sensitivity + int(random.integers(0, 9))
        atom_loss = Fraction(0) if random.random() < 0.3 else None
        increments = random.integers(0, 5, size + sensitivity + 2)
        loss_by_distance = [Fraction(c) for c in np.cumsum(increments).tolist()]
        is_open = not random.random() < 0.7
        line = LineProgram(
            sensitivity,
            size,
            losses=[lambda j, losses=loss_by_distance: losses[abs(j)]],
            bounds=[hockey_stick(epsilon, delta)],
            is_open=is_open,
            atom_loss=atom_loss,
        )
        solution = get_backend("highs").open(line.program).solve()
        answer = line.solve(precision=1e-12)
        assert answer.value == pytest.approx(solution.objective, rel=1e-8, abs=1e-9)
        assert float(answer.bound) <= answer.value * (1 + 1e-9) + 1e-12
        assert float(answer.bound) == pytest.approx(answer.value, rel=1e-7, abs=1e-9)
        assert answer.excess <= 1e-8


def test_a_plain_statement_for_scipy_has_the_same_optimum():
    """The columns are the masses f, then the excesses max(0, f(η) - e^ε f(η + s)) of each shift s."""
    d = 2
    size = 12
    e = math.exp(0.8)
    delta = 0.05
    eta = np.arange(-size, size + 1)
    n = eta.size
    shifts = [-2, -1, 1, 2]
    columns = n * (1 + len(shifts))
    rows = []
    right = []
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
    mass_row = np.concatenate([np.ones(n), np.zeros(columns - n)])
    loss = np.concatenate([np.abs(eta), np.zeros(columns - n)])
    answer = linprog(loss, np.array(rows), right, mass_row[None], [1.0])
    line = LineProgram(d, size, losses=[abs], bounds=[hockey_stick(0.8, delta)], is_open=False)
    assert line.solve().value == pytest.approx(answer.fun, rel=1e-8)
    unfolded = LineProgram(
        d, size, losses=[abs], bounds=[hockey_stick(0.8, delta)], is_folded=False, is_open=False
    )
    assert unfolded.solve().value == pytest.approx(answer.fun, rel=1e-7)


def test_clamped_noise_has_a_smaller_loss_and_a_tight_bound():
    question = wb.IntegerNoise(4, clamp=(0, 4))
    design = wb.design(question, epsilon=1, delta="0.1")
    assert design.objective == pytest.approx(3.0569, abs=1e-4)
    assert design.objective <= design.bound * (1 + 1e-8)
    uneven = LineLoss.of_clamped_answers(
        "absolute",
        answers=3,
        loss=lambda q, o: Fraction(abs(o - q)),
        prior=[Fraction(q == 0) for q in range(3)],
    )
    assert not uneven.is_even
    point_prior_design = wb.design(
        wb.IntegerNoise(1, clamp=(0, 2)), epsilon=1, delta="0.1", loss="absolute", prior=[1, 0, 0]
    )
    assert point_prior_design.objective == pytest.approx(point_prior_design.bound)


def test_losses_that_fall_with_the_distance_are_refused():
    with pytest.raises(ValueError, match="not fall"):
        LineLoss.from_values([Fraction(0), Fraction(2), Fraction(1)])


@pytest.mark.parametrize("by_difference", [True, False])
def test_the_loss_of_clamped_noise_is_the_mean_over_the_answers(by_difference):
    n = 5
    prior = [Fraction(k * k + (k == 0), 7) for k in range(6)]

    def loss(q: int, o: int) -> Fraction:
        return Fraction(3 * abs(o - q) + (o > q) + (0 if by_difference else q * o), 2)

    table = LineLoss.of_clamped_answers("own", n + 1, loss, prior, by_difference).table
    for eta, mean in zip(range(-n, n + 1), table, strict=True):
        weighted_losses = [p * loss(q, min(n, max(0, q + eta))) for q, p in enumerate(prior)]
        assert mean == sum(weighted_losses) / sum(prior)


def test_if_the_program_is_too_large_the_answer_is_the_optimum_without_delta():
    design = wb.design(wb.IntegerNoise(5000), epsilon=1, delta="1e-5", loss="absolute")
    pure = wb.design(wb.IntegerNoise(5000), epsilon=1, loss="absolute")
    assert design.certificate is not None
    assert design.objective == pytest.approx(pure.objective, rel=1e-12)
    assert 0 < design.bound < design.objective


@pytest.mark.parametrize(
    ("epsilon", "delta", "low", "high", "gap"),
    [
        ("1", "0.2", 0.558576, 0.558765, "1e-4"),
        ("0.2", "0.05", 2.354075, 2.354225, "3e-4"),
        ("2", "0.3", 0.0, 1.0, "2e-3"),
    ],
)
def test_real_noise_has_a_loss_in_the_stored_interval(
    epsilon: str, delta: str, low: float, high: float, gap: str
):
    design = design_real_noise(epsilon, delta, "absolute", gap)
    assert design.bound <= design.objective <= design.bound * (1 + 1.01 * float(gap))
    assert design.objective >= low
    assert design.bound <= high
    assert design.objective <= line_noise.truncated_laplace(
        float(epsilon), float(delta), 1, "absolute"
    )


def test_at_a_large_delta_real_noise_has_a_point_mass_at_zero():
    design = design_real_noise("1", "0.75", "absolute", "2e-3")
    assert float(design.mechanism.atom / design.mechanism.total) == pytest.approx(0.6, abs=0.02)
    assert design.objective == pytest.approx(0.1661, abs=5e-4)


def test_at_a_small_epsilon_the_loss_is_near_that_of_epsilon_zero():
    """The optimal noise at ε = 0 (Geng et al. 2019) is 0 with probability 1 - p, else uniform.

    It is uniform on [-w, w], with 1 - p + p/(2w) = δ.
    """
    design = design_real_noise("0.005", "0.25", "absolute", "1e-3")
    loss_at_zero = 1 / (2 * 0.25) / 2  # Absolute loss.
    assert design.objective < loss_at_zero < 1.01 * design.objective
    squared = design_real_noise("0.01", "0.75", "squared", "1e-2")
    p = 3 * 0.25
    loss_at_zero = p * (p / (2 * (0.75 - 1 + p))) ** 2 / 3
    assert squared.bound < loss_at_zero < 1.05 * squared.objective


@pytest.mark.parametrize("loss", ["absolute", "squared"])
def test_staircases_have_the_loss_of_their_law_and_of_the_optimum(loss: str):
    power = line_noise.POWERS[loss]
    for d in (1, 3, 6):
        b = Fraction(2, 5)
        value, r = line_noise.staircase_integers(b, d, loss)
        eta = np.arange(-400, 401)
        law = float(b) ** np.maximum(0, np.ceil((abs(eta) - r + 1) / d))
        assert float(value) == pytest.approx((law * abs(eta) ** power).sum() / law.sum(), rel=1e-10)
        size = 14 * d  # This relaxes all pure noise: it states pairs at most d apart, and no tail.
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
        answer = linprog(
            weights * columns**power, np.array(rows), np.zeros(len(rows)), weights[None], [1.0]
        )
        assert answer.fun == pytest.approx(float(value), rel=1e-3)
    fine = line_noise.staircase_integers(Fraction(math.exp(-1)), 400, loss)[0] / 400**power
    assert float(fine) == pytest.approx(line_noise.staircase_reals(1.0, 1.0, loss), rel=1e-3)


def test_a_printed_lower_bound_exceeds_the_loss_of_a_design():
    assert line_noise.geng_formula(1.0, 0.2, 1) == pytest.approx(0.2867, abs=5e-5)
    design = design_real_noise("0.05", "0.05", "absolute", "1e-3")
    assert line_noise.geng_formula(0.05, 0.05, 1, 1) < design.bound
    assert design.objective < line_noise.geng_formula(0.05, 0.05, 1) - 0.05


def _by_scipy(sensitivity: int, epsilon: float, delta: float, losses: list[float]) -> float:
    """Return the smallest loss of integer noise on -reach..reach, by SciPy.

    losses: the losses of -reach..reach, so that there are 2 reach + 1 of them.
    """
    from scipy import sparse

    size = len(losses)
    shifts = [s for d in range(1, sensitivity + 1) for s in (d, -d)]
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
        [
            sparse.csr_matrix((len(shifts), size)),
            sparse.kron(sparse.identity(len(shifts)), np.ones(size)),
        ]
    )
    limits = np.r_[np.zeros(size * len(shifts)), np.full(len(shifts), delta)]
    total = np.r_[np.ones(size), np.zeros(size * len(shifts))][None, :]
    objective = np.r_[losses, np.zeros(size * len(shifts))]
    tight_options = {"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10}
    matrix = sparse.vstack([*rows, sums])
    answer = linprog(objective, matrix, limits, total, [1.0], method="highs", options=tight_options)
    return float(answer.fun)


def test_a_loss_that_is_flat_far_out_has_a_tight_bound():
    """Seven clamped answers have a flat loss beyond 6, so the optimal noise is long.

    Wider supports do not improve the duals.
    """
    loss = LineLoss.of_clamped_answers(
        "squared", answers=7, loss=lambda q, o: Fraction((o - q) ** 2)
    )
    design = wb.design(wb.IntegerNoise(3, clamp=(0, 6)), epsilon="0.5", delta="0.05")
    assert design.objective <= design.bound * (1 + 1e-9)
    reach = 130
    reference = _by_scipy(
        sensitivity=3,
        epsilon=0.5,
        delta=0.05,
        losses=[float(loss.value_at(eta)) for eta in range(-reach, reach + 1)],
    )
    assert design.objective == pytest.approx(reference, rel=1e-8)
