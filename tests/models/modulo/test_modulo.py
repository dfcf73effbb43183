"""The noise models: every variant against a closed form, a slow enumeration, or another model."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from workbench.models.convex.requirements import HOCKEY_STICK as DP
from workbench.models.convex.requirements import MASS_ABOVE_RATIO as PDP
from workbench.models.modulo.constraints import NoiseEquations
from workbench.models.modulo.program import LOSSES, ModuloModel, loss_vector, shift_positions
from workbench.solvers.backend import solve

BD3 = ((1,), (2,), (3,))
SYMMETRIC = (*BD3, (8,), (7,), (6,))
ERROR = loss_vector("error-rate", (9,))


def run(
    model: ModuloModel,
    epsilon: float | list[float] = 1.5,
    delta: float | None = None,
    max_loss: float | None = None,
):
    levels = epsilon if isinstance(epsilon, list) else [epsilon]
    solution = solve(model.program, model.values(levels, delta, max_loss))
    assert solution.is_optimal, solution
    return solution


def test_size_of_the_literal_milp_is_one_block_per_difference():
    for shifts in (BD3[:1], BD3[:2], BD3):
        program = ModuloModel((9,), shifts, PDP, ERROR).program
        assert program.shape[1] == (1 + 2 * len(shifts)) * 9
        assert int(program.template.integrality.sum()) == 9 * len(shifts)


@pytest.mark.parametrize(
    ("delta", "zero_mass"),
    [(0.1212, 0.549827669), (0.1238, 0.554833107), (0.1522, 0.558290369), (1e-8, 0.543191999)],
)
def test_corrected_table_1(delta: float, zero_mass: float):
    assert run(ModuloModel((9,), BD3, PDP, ERROR), delta=delta)["f"][0] == pytest.approx(
        zero_mass, abs=1e-9
    )


def test_a_symmetric_relation_has_a_larger_loss_than_the_directed_one():
    for shifts, min_delta in ((SYMMETRIC, 0.589887461), (BD3, 0.456808001)):
        solution = run(ModuloModel((9,), shifts, DP, ERROR, has_delta=False))
        assert solution.objective == pytest.approx(min_delta, abs=1e-9)


def test_dp_has_a_smaller_loss_than_pdp():
    assert run(ModuloModel((9,), BD3, PDP, ERROR), delta=0.2).objective == pytest.approx(
        0.4346976, abs=1e-7
    )
    assert run(ModuloModel((9,), BD3, DP, ERROR), delta=0.2).objective == pytest.approx(
        0.3654464, abs=1e-7
    )


def test_minimum_delta_and_least_error_are_inverse():
    model = ModuloModel((9,), BD3, PDP, ERROR, minimise="delta")
    min_delta = run(model, max_loss=0.4425).objective
    assert min_delta == pytest.approx(0.124395064, abs=1e-9)
    back = run(ModuloModel((9,), BD3, PDP, ERROR), delta=min_delta * (1 + 1e-9)).objective
    assert back <= 0.4425 + 1e-8
    short = run(ModuloModel((9,), BD3, PDP, ERROR), delta=min_delta * (1 - 1e-4)).objective
    assert short > 0.4425 + 1e-6


def test_zero_delta_milp_equals_the_lp():
    milp = run(ModuloModel((7,), ((1,), (2,)), PDP, loss_vector("error-rate", (7,))), delta=0.0)
    lp = run(ModuloModel((7,), ((1,), (2,)), PDP, loss_vector("error-rate", (7,)), has_delta=False))
    assert milp.objective == pytest.approx(lp.objective, abs=1e-9)


def test_milp_equals_enumeration_of_violation_sets():
    # Brute force solves the LP of every choice of broken pairs and returns the best value.
    from scipy.optimize import linprog

    N, e, delta = 4, np.exp(1.0), 0.15
    shifts = ((1,), (2,))
    f_next = [shift_positions((N,), mu) for mu in shifts]
    best = np.inf
    for pattern in itertools.product([0, 1], repeat=N * len(shifts)):
        broken = np.array(pattern, dtype=bool).reshape(len(shifts), N)
        rows, right = [], []
        for k in range(len(shifts)):
            for eta in range(N):
                if not broken[k, eta]:
                    row = np.zeros(N)
                    row[eta] += 1
                    row[f_next[k][eta]] -= e
                    rows.append(row)
                    right.append(0.0)
            rows.append(broken[k].astype(float))
            right.append(delta)
        answer = linprog(
            loss_vector("error-rate", (N,)), rows, right, np.ones((1, N)), [1.0], bounds=(0, 1)
        )
        if answer.status == 0:
            best = min(best, answer.fun)
    model = ModuloModel((N,), shifts, PDP, loss_vector("error-rate", (N,)))
    assert run(model, 1.0, delta).objective == pytest.approx(best, abs=1e-8)


def test_vector_query_of_example_59():
    shifts = tuple(s for s in itertools.product(range(3), repeat=2) if s != (0, 0))
    f = run(
        ModuloModel((5, 5), shifts, DP, loss_vector("error-rate", (5, 5)), has_delta=False),
        3.0,
    )["f"]
    assert f[0] == pytest.approx(0.6954312896, abs=1e-9)


def test_budgets_per_difference():
    model = ModuloModel(
        (6,), ((1,), (2,)), DP, loss_vector("error-rate", (6,)), groups=(0, 1), has_delta=False
    )
    f = run(model, [0.4, 1.1])["f"]
    assert np.all(f <= np.exp(0.4) * f[shift_positions((6,), (1,))] + 1e-9)
    assert np.all(f <= np.exp(1.1) * f[shift_positions((6,), (2,))] + 1e-9)
    loose = run(
        ModuloModel((6,), ((1,), (2,)), DP, loss_vector("error-rate", (6,)), has_delta=False),
        1.1,
    ).objective
    tight = run(
        ModuloModel((6,), ((1,), (2,)), DP, loss_vector("error-rate", (6,)), has_delta=False),
        0.4,
    ).objective
    assert loose < 1 - f[0] < tight


def test_extra_constraints_hold():
    model = ModuloModel((9,), BD3, DP, ERROR, constraints=NoiseEquations((9,)), has_delta=False)
    f = run(model)["f"]
    signed = np.array([0, 1, 2, 3, 4, -4, -3, -2, -1])
    assert signed @ f == pytest.approx(0, abs=1e-9)
    model = ModuloModel(
        (9,),
        BD3,
        DP,
        ERROR,
        constraints=NoiseEquations(equal_mass_groups=((1, 8), (2, 7))),
        has_delta=False,
    )
    f = run(model)["f"]
    assert f[1] == pytest.approx(f[8], abs=1e-9)
    assert f[2] == pytest.approx(f[7], abs=1e-9)


@pytest.mark.parametrize("sizes", [(5,), (6,), (3, 4)])
def test_losses_against_their_definitions(sizes: tuple[int, ...]):
    elements = list(itertools.product(*map(range, sizes)))
    rng = np.random.default_rng(1)
    prior = rng.dirichlet(np.ones(len(elements)))

    def error(answer: tuple[int, ...], noise: tuple[int, ...]) -> int:
        return sum(((a + e) % n - a) ** 2 for a, e, n in zip(answer, noise, sizes, strict=True))

    matrix = np.array([[error(q, e) for e in elements] for q in elements], dtype=float)
    assert np.allclose(loss_vector("squared", sizes), matrix.mean(axis=0))
    assert np.allclose(loss_vector("prior-squared", sizes, prior), prior @ matrix)
    assert np.array_equal(loss_vector("worst-squared", sizes), matrix)
    assert np.array_equal(
        loss_vector("eta-squared", sizes), [sum(k * k for k in e) for e in elements]
    )
    circular = [sum(min(k, n - k) ** 2 for k, n in zip(e, sizes, strict=True)) for e in elements]
    assert np.array_equal(loss_vector("circular-squared", sizes), circular)
    assert set(LOSSES) >= {"squared", "worst-squared"}


def test_worst_case_loss_is_the_epigraph_of_all_answers():
    matrix = loss_vector("worst-squared", (7,))
    shifts = ((1,), (6,))
    solution = run(ModuloModel((7,), shifts, DP, matrix, has_delta=False), 1.0)
    assert solution.objective == pytest.approx((matrix @ solution["f"]).max(), abs=1e-8)
    average = run(ModuloModel((7,), shifts, DP, loss_vector("squared", (7,)), has_delta=False), 1.0)
    assert solution.objective >= average.objective - 1e-9


def test_misleading_loss_of_the_paper():
    honest = run(ModuloModel((9,), SYMMETRIC, DP, loss_vector("squared", (9,)), has_delta=False))
    paper = run(ModuloModel((9,), SYMMETRIC, DP, loss_vector("eta-squared", (9,)), has_delta=False))
    assert 1 - paper["f"][0] == pytest.approx(0.8045, abs=5e-5)
    assert loss_vector("squared", (9,)) @ paper["f"] == pytest.approx(11.31, abs=5e-3)
    assert honest.objective == pytest.approx(8.14, abs=5e-3)


@pytest.mark.parametrize(
    ("loss", "prior", "message"),
    [
        ("mse", None, "loss must be one of"),
        ("prior-squared", None, "prior must be given"),
        ("squared", np.ones(5) / 5, "prior must be given"),
        ("prior-squared", np.ones(4) / 4, "prior must be 5 probabilities"),
        ("prior-squared", np.ones(5), "prior must be 5 probabilities"),
    ],
)
def test_invalid_losses_are_refused(loss: str, prior: np.ndarray | None, message: str):
    with pytest.raises(ValueError, match=message):
        loss_vector(loss, (5,), prior)
