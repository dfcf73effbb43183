"""Tests of noise on the integers and the reals: stored optima, closed forms and SciPy.

`LineProgram` is the linear program of noise η on -reach..reach for answers that differ by at most
the sensitivity. It is folded if it has one column for η and -η. It is open if masses may continue
beyond its reach. A "stored" value is a value of the current program, pinned.
"""

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
    ("epsilon", "delta", "stored_loss"),
    [
        ("1", "1e-3", 1.7739),
        ("0.5", "1e-3", 7.2816),
        ("0.25", "1e-3", 27.9509),
        ("1", "1e-5", 1.8396),
    ],
)
def test_integer_noise_has_the_stored_optimum(epsilon: str, delta: str, stored_loss: float):
    design = wb.design(wb.IntegerNoise(1), epsilon=epsilon, delta=delta)
    assert design.objective == pytest.approx(stored_loss, abs=5e-5)
    assert design.bound <= design.objective <= design.bound * (1 + 1e-9)


def test_sensitivity_32_at_a_small_delta_has_a_tight_bound():
    design = wb.design(wb.IntegerNoise(32), epsilon="1", delta="1e-5")
    assert design.bound <= design.objective <= design.bound * (1 + 1e-8)
    # The value of the current program, pinned.
    assert design.objective == pytest.approx(1962.284931, abs=1e-5)
    assert wb.audit(design, 1).dp_delta <= Fraction(1, 100_000)


def test_a_start_at_the_optimum_saves_rounds():
    """A round solves the program and adds the tangents that its point violates."""
    line = LineProgram(
        sensitivity=5, reach=30, losses=[abs], bounds=[hockey_stick(0.7, 0.05)], is_open=False
    )
    answer = line.solve()
    assert line.solve(answer.x).rounds < answer.rounds


def test_a_start_at_the_optimum_of_a_coarser_grid_saves_rounds():
    coarse, fine = (
        LineProgram(
            sensitivity=5 * factor,
            reach=30 * factor,
            losses=[abs],
            bounds=[hockey_stick(0.7, 0.05)],
            is_open=False,
        )
        for factor in (1, 2)
    )
    start = fine.columns_of_law(coarse.solve().masses, 2.0)
    assert fine.solve(start).rounds < fine.solve().rounds


def test_losses_below_the_tolerances_of_a_solver_have_a_bound():
    """The losses of both answers are 2e-9 at ε = 20. A solver may give their rows no multiplier."""
    losses = [lambda j: Fraction(j > 0), lambda j: Fraction(j < 0)]
    line = LineProgram(
        sensitivity=1, reach=2, losses=losses, bounds=[hockey_stick(20.0, 0.0)], is_folded=False
    )
    answer = line.solve(precision=1e-12)
    for loss_weights in ([0.0, 0.0], [1.0, 0.0]):
        assert prove_lower_bound(line, [], loss_weights) == 0 <= answer.value


def test_a_recommendation_with_a_loss_of_2e_minus_9_has_its_closed_form():
    """For two answers and δ = 0 the error rate of randomized response is 1 / (e^ε + 1)."""
    table = wb.recommend(
        answers="-1,-2", loss="error-rate", max_shift=1, prior="worst", epsilon=20, delta="1e-5"
    )
    assert table[0]["objective"] == pytest.approx(1 / (math.exp(20) + 1), rel=1e-6)


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
    reach = 12
    epsilon = 0.8
    delta = 0.05
    eta = np.arange(-reach, reach + 1)
    n = eta.size
    shifts = [-2, -1, 1, 2]
    column_count = n * (1 + len(shifts))
    rows = []
    right_sides = []
    for k, shift in enumerate(shifts):
        first_excess_column = n * (k + 1)
        excess_sum_row = np.zeros(column_count)
        for i in range(n):
            # f(η) - e^ε f(η + s) - excess <= 0
            row = np.zeros(column_count)
            row[i] = 1
            if 0 <= i + shift < n:
                row[i + shift] = -math.exp(epsilon)
            row[first_excess_column + i] = -1
            rows.append(row)
            right_sides.append(0.0)
            excess_sum_row[first_excess_column + i] = 1
        rows.append(excess_sum_row)
        right_sides.append(delta)
    mass_row = np.concatenate([np.ones(n), np.zeros(column_count - n)])
    loss = np.concatenate([np.abs(eta), np.zeros(column_count - n)])
    reference = linprog(loss, np.array(rows), right_sides, mass_row[None], [1.0])
    folded, unfolded = (
        LineProgram(
            sensitivity=2,
            reach=reach,
            losses=[abs],
            bounds=[hockey_stick(epsilon, delta)],
            is_folded=is_folded,
            is_open=False,
        )
        for is_folded in (True, False)
    )
    assert folded.solve().value == pytest.approx(reference.fun, rel=1e-8)
    assert unfolded.solve().value == pytest.approx(reference.fun, rel=1e-7)


def test_clamped_noise_has_its_stored_loss_and_a_tight_bound():
    question = wb.IntegerNoise(4, clamp=(0, 4))
    design = wb.design(question, epsilon=1, delta="0.1")
    # The value of the current program, pinned.
    assert design.objective == pytest.approx(3.0569, abs=1e-4)
    assert design.objective <= design.bound * (1 + 1e-8)


def test_the_loss_of_clamped_answers_with_an_uneven_prior_is_not_even():
    """If the answer is 0, negative noise is clamped away and positive noise is not."""
    loss = LineLoss.of_clamped_answers(
        "absolute",
        answers=3,
        loss=lambda q, o: Fraction(abs(o - q)),
        prior=[Fraction(q == 0) for q in range(3)],
    )
    assert not loss.is_even


def test_clamped_noise_with_an_uneven_prior_has_a_tight_bound():
    design = wb.design(
        wb.IntegerNoise(1, clamp=(0, 2)), epsilon=1, delta="0.1", loss="absolute", prior=[1, 0, 0]
    )
    assert design.objective == pytest.approx(design.bound)


def test_losses_that_fall_with_the_distance_are_refused():
    with pytest.raises(ValueError, match="not fall"):
        LineLoss.from_values([Fraction(0), Fraction(2), Fraction(1)])


@pytest.mark.parametrize("by_difference", [True, False])
def test_the_loss_of_clamped_noise_is_the_mean_over_the_answers(by_difference):
    n = 5
    prior = [Fraction(k * k + (k == 0), 7) for k in range(6)]

    def loss(q: int, o: int) -> Fraction:
        """Compute a loss of the answer q and the output o. It may depend on o - q alone."""
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
    # Values of the current program, pinned.
    assert float(design.mechanism.atom / design.mechanism.total) == pytest.approx(0.6, abs=0.02)
    assert design.objective == pytest.approx(0.1661, abs=5e-4)


def test_at_a_small_epsilon_the_absolute_loss_is_near_that_of_epsilon_zero():
    """The optimal noise at ε = 0 (Geng et al. 2019) is uniform on [-w, w] with 1/(2w) = δ."""
    delta = 0.25
    design = design_real_noise("0.005", str(delta), "absolute", "1e-3")
    w = 1 / (2 * delta)
    loss_at_zero = w / 2
    assert design.objective < loss_at_zero < 1.01 * design.objective


def test_at_a_small_epsilon_the_squared_loss_is_near_that_of_epsilon_zero():
    """For a large δ the noise at ε = 0 is 0 with probability 1 - p, else uniform on [-w, w].

    1 - p + p/(2w) = δ. For the squared loss p w²/3, p = 3 (1 - δ) is optimal.
    """
    delta = 0.75
    design = design_real_noise("0.01", str(delta), "squared", "1e-2")
    p = 3 * (1 - delta)
    w = p / (2 * (delta - 1 + p))
    loss_at_zero = p * w**2 / 3
    assert design.bound < loss_at_zero < 1.05 * design.objective


# The ratio of the masses of two neighbouring steps of a staircase, e^-ε.
STEP_RATIO = Fraction(2, 5)


@pytest.mark.parametrize("loss", ["absolute", "squared"])
@pytest.mark.parametrize("sensitivity", [1, 3, 6])
def test_the_loss_of_an_integer_staircase_is_the_loss_of_its_law(loss: str, sensitivity: int):
    """The first step has the noise values below r, and each other step has `sensitivity` values."""
    value, r = line_noise.staircase_integers(STEP_RATIO, sensitivity, loss)
    distances = np.abs(np.arange(-400, 401))
    steps = np.maximum(0, np.ceil((distances - r + 1) / sensitivity))
    weights = float(STEP_RATIO) ** steps
    mean_loss = (weights * distances ** line_noise.POWERS[loss]).sum() / weights.sum()
    assert float(value) == pytest.approx(mean_loss, rel=1e-10)


@pytest.mark.parametrize("loss", ["absolute", "squared"])
@pytest.mark.parametrize("sensitivity", [1, 3])
def test_no_pure_noise_has_a_smaller_loss_than_the_integer_staircase(loss: str, sensitivity: int):
    """The program has one column for η and -η, η >= 0. It relaxes the program of all pure noise.

    It states the ratios of pairs that are at most `sensitivity` apart, and has no tail.
    """
    reach = 14 * sensitivity
    distances = np.arange(reach + sensitivity + 1)
    rows = []
    for i in range(reach + 1):
        for j in range(max(0, i - sensitivity), i + sensitivity + 1):
            if i != j:
                row = np.zeros(distances.size)
                row[i] = 1
                row[j] = -1 / float(STEP_RATIO)
                rows.append(row)
    counts = np.where(distances == 0, 1.0, 2.0)  # Noise values at a distance.
    answer = linprog(
        counts * distances ** line_noise.POWERS[loss],
        np.array(rows),
        np.zeros(len(rows)),
        counts[None],
        [1.0],
    )
    value, _ = line_noise.staircase_integers(STEP_RATIO, sensitivity, loss)
    assert answer.fun == pytest.approx(float(value), rel=1e-3)


@pytest.mark.parametrize("loss", ["absolute", "squared"])
def test_integer_staircases_on_a_fine_grid_have_nearly_the_loss_of_real_staircases(loss: str):
    points_per_sensitivity = 400
    value, _ = line_noise.staircase_integers(Fraction(math.exp(-1)), points_per_sensitivity, loss)
    fine_loss = float(value) / points_per_sensitivity ** line_noise.POWERS[loss]
    real_loss = line_noise.staircase_reals(1.0, 1.0, loss)
    assert fine_loss == pytest.approx(real_loss, rel=1e-3)


def test_the_printed_lower_bound_of_geng_equals_its_formula_with_two_terms():
    """a = (δ + (e^ε - 1)/2) e^-ε is 0.39 and a + a e^-ε is 0.53 >= 1/2, so the sum is 2 a e^-ε."""
    a = (0.2 + (math.exp(1) - 1) / 2) * math.exp(-1)
    bound = line_noise.geng_formula(1.0, 0.2, sensitivity=1)
    assert bound == pytest.approx(2 * a * math.exp(-1))


def test_the_printed_lower_bound_of_geng_exceeds_the_loss_of_a_design():
    """With one term omitted it is a lower bound."""
    design = design_real_noise("0.05", "0.05", "absolute", "1e-3")
    bound_with_omission = line_noise.geng_formula(0.05, 0.05, sensitivity=1, omitted_terms=1)
    assert bound_with_omission < design.bound
    assert design.objective < line_noise.geng_formula(0.05, 0.05, sensitivity=1) - 0.05


def compute_optimum_by_scipy(
    sensitivity: int, epsilon: float, delta: float, losses: list[float]
) -> float:
    """Return the smallest loss of integer noise on -reach..reach, by SciPy.

    The columns are the masses, then the excesses of each shift, as in the plain statement above.

    Args:
        sensitivity: the largest difference of two neighbouring answers.
        epsilon: ε of the guarantee.
        delta: δ of the guarantee.
        losses: the losses of -reach..reach, so that there are 2 reach + 1 of them.
    """
    from scipy import sparse

    size = len(losses)
    shifts = [sign * d for d in range(1, sensitivity + 1) for sign in (1, -1)]
    identity = sparse.identity(size)
    zeros = sparse.csr_matrix((size, size))
    excess_rows = []
    for shift in shifts:
        mass_block = identity - math.exp(epsilon) * sparse.eye(size, k=shift)
        excess_blocks = [-identity if other == shift else zeros for other in shifts]
        excess_rows.append(sparse.hstack([mass_block, *excess_blocks]))
    no_masses = sparse.csr_matrix((len(shifts), size))
    sums_of_excesses = sparse.kron(sparse.identity(len(shifts)), np.ones(size))
    sum_rows = sparse.hstack([no_masses, sums_of_excesses])
    right_sides = np.r_[np.zeros(size * len(shifts)), np.full(len(shifts), delta)]
    mass_row = np.r_[np.ones(size), np.zeros(size * len(shifts))][None, :]
    answer = linprog(
        np.r_[losses, np.zeros(size * len(shifts))],
        A_ub=sparse.vstack([*excess_rows, sum_rows]),
        b_ub=right_sides,
        A_eq=mass_row,
        b_eq=[1.0],
        method="highs",
        options={"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10},
    )
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
    reference = compute_optimum_by_scipy(
        sensitivity=3,
        epsilon=0.5,
        delta=0.05,
        losses=[float(loss.value_at(eta)) for eta in range(-reach, reach + 1)],
    )
    assert design.objective == pytest.approx(reference, rel=1e-8)
