"""Measure the runtime of quantizer designs: exact LP, published search, optimised bins, MVU.

* The exact LP is solved from a cold start, from a hot start, and through CVXPY.
* The paper's search for m = 4 outputs ("OPTM") is run with pruning and in full.
* 16 outputs ("bins") are optimised.
* The outputs of MVU (minimum variance unbiased), its "alphabet", are optimised by two methods. The
  workbench follows the slopes of an LP. SciPy's trust-constr optimises outputs and matrix together.

Each row has a task and a reference. Both are measured in CPU seconds in this run, and the ratio is
(seconds of the reference) / (seconds of the task). "result" shows the results of both, so that a
wrong answer is visible.
"""

from __future__ import annotations

import itertools
import math
import warnings
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.optimize import Bounds, LinearConstraint, NonlinearConstraint, minimize

from bench import time_best_turn, time_call, time_turns
from workbench.families.quantizer.laws import (
    LawProblem,
    LawQuestion,
    make_exact_problem,
    make_grid_problem,
)
from workbench.families.quantizer.mvu import solve_mvu
from workbench.families.quantizer.optm import ProgramSolver, make_two_bin_shape, solve_optm
from workbench.families.quantizer.output_search import optimise_bins
from workbench.families.quantizer.outputs import LocalOptimum, search_best_outputs
from workbench.mechanisms.quantization_error import ErrorIntegrals
from workbench.models.quantizer.program import LawModel, smallest_reach
from workbench.questions.density import uniform_density
from workbench.solvers.backend import solve
from workbench.solvers.canonical import compile_program
from workbench.solvers.program import ignore_float_warnings

TITLE = "Quantizers: exact LP, the paper's search, optimised bins, MVU's alphabet"
Vector = NDArray[np.float64]
LAW = LawQuestion(Fraction(1))  # ε = 1, uniform inputs and absolute error.
BINS = np.array([-3.0, -0.5, 0.5, 3.0])  # The outputs of the exact LP.
KNOT_COUNT = 41  # Between the knots of the exact LP, the masses are affine in the input.
HOT_TURNS = 50  # Hot solves of which the median is taken.
COLUMNS = ("task", "seconds", "target", "compared with", "its seconds", "ratio", "result")


@dataclass(frozen=True)
class Comparison:
    """A row of the table.

    Attributes:
        task: the task that is timed.
        seconds: CPU seconds of the task.
        target: longest acceptable seconds of the task.
        reference: the computation with which it is compared.
        reference_seconds: CPU seconds of the reference.
        result: results of both, as text.
    """

    task: str
    seconds: float
    target: float
    reference: str
    reference_seconds: float
    result: str

    def to_row(self) -> list[Any]:
        """Return the cells of the row."""
        ratio = self.reference_seconds / self.seconds
        return [
            self.task,
            self.seconds,
            self.target,
            self.reference,
            self.reference_seconds,
            ratio,
            self.result,
        ]


def run_quantizer_benchmark() -> pd.DataFrame:
    """Return one row for each task: seconds, target, reference, its seconds, ratio and results."""
    comparisons = [
        *_compare_exact_lp(),
        *_compare_searches(),
        *_compare_optimised_bins(),
        _compare_alphabets(epsilon=1.5),
        _compare_alphabets(epsilon=0.5),
    ]
    rows = [comparison.to_row() for comparison in comparisons]
    return pd.DataFrame(rows, columns=[*COLUMNS])


@ignore_float_warnings
def state_law_program(model: LawModel) -> Any:
    """State the exact linear program in CVXPY, as a user without the workbench would.

    Args:
        model: the model of the program: its numbers of points and outputs, and the form of its
            privacy constraints.

    Returns:
        A `cvxpy.Problem` with the same parameters as the model.
    """
    import cvxpy as cp

    n = model.points
    m = model.outputs
    s = cp.Variable((n, m), name="s", bounds=[0, None])
    odds = cp.Parameter(model.parameters["odds"], name="odds", nonneg=True)
    bins = cp.Parameter(m, name="bins")
    points = cp.Parameter(n, name="at")
    loss = cp.Parameter((n, m), name="loss")
    if model.relation == "chain":
        odds_matrix = cp.reshape(odds, (n - 1, 1), order="F") @ np.ones((1, m))
        factor = cp.multiply(np.ones((n - 1, m)), odds_matrix)
        rows = [
            cp.sum(s, axis=1) == 1,
            s @ bins == points,
            s[1:] - s[:-1] <= cp.multiply(factor, s[:-1]),
            s[:-1] - s[1:] <= cp.multiply(factor, s[1:]),
        ]
        return cp.Problem(cp.Minimize(cp.sum(cp.multiply(loss, s))), rows)
    outputs = np.arange(m)
    low_size = m
    if model.symmetric:
        low_size = (m + 1) // 2
        outputs = np.minimum(outputs, m - 1 - outputs)
    low = cp.Variable(low_size, name="low", bounds=[0, None])[outputs]
    rows = [cp.sum(s, axis=1) + cp.sum(low) == 1, s @ bins + bins @ low == points]
    rows += [s[e] <= odds * low for e in range(n)]
    objective = cp.sum(cp.multiply(loss, s)) + cp.sum(loss @ low)
    return cp.Problem(cp.Minimize(objective), rows)


def _compare_exact_lp() -> list[Comparison]:
    """Compare the exact LP with CVXPY, and hot starts with a cold start.

    A hot start follows a small change of ε or of one output.
    """
    knots = np.linspace(-1, 1, KNOT_COUNT)

    def solve_cold() -> float | None:
        """Build and solve the exact LP, and return its objective."""
        problem = make_exact_problem(knots, outputs=4, question=LAW, symmetric=True)
        answer = problem.solve(1.0, BINS, start="cold")
        problem.close()
        return answer.objective

    def solve_through_cvxpy() -> float | None:
        """State the same LP in CVXPY, compile and solve it, and return its objective."""
        points = np.repeat(knots, 2)[1:-1]
        model = LawModel(points.size, 4)
        loss = ErrorIntegrals(knots, BINS, uniform_density()).weights().reshape(-1, 4)
        program = compile_program(state_law_program(model), "exact quantizer in CVXPY")
        return solve(program, model.values(np.expm1(1.0), BINS, points, loss)).objective

    cold_seconds, value = time_call(solve_cold, 5)
    cvxpy_seconds, cvxpy_value = time_call(solve_through_cvxpy)
    problem = make_exact_problem(knots, outputs=4, question=LAW, symmetric=True)
    problem.solve(1.0, BINS)
    # Both lists have more values than there are turns. No value is solved twice.
    epsilons = iter(np.linspace(0.9, 1.1, 60))
    epsilon_seconds, _ = _time_median(
        lambda: problem.solve(float(next(epsilons)), BINS).objective, HOT_TURNS
    )
    inner_bins = iter(np.linspace(0.4, 0.6, 60))

    def move_bin() -> float | None:
        """Solve again with other inner outputs, and return the objective."""
        inner_bin = float(next(inner_bins))
        return problem.solve(1.0, np.array([-3, -inner_bin, inner_bin, 3])).objective

    bin_seconds, _ = _time_median(move_bin, HOT_TURNS)
    problem.close()
    values = f"{value:.7f} and {cvxpy_value:.7f}"
    return [
        Comparison(
            task="exact LP, m = 4, 41 knots, cold",
            seconds=cold_seconds,
            target=0.05,
            reference="through CVXPY",
            reference_seconds=cvxpy_seconds,
            result=values,
        ),
        Comparison(
            task="exact LP, hot, ε moved",
            seconds=epsilon_seconds,
            target=0.015,
            reference="cold",
            reference_seconds=cold_seconds,
            result=f"of {HOT_TURNS}",
        ),
        Comparison(
            task="exact LP, hot, a bin moved",
            seconds=bin_seconds,
            target=0.015,
            reference="cold",
            reference_seconds=cold_seconds,
            result=f"of {HOT_TURNS}",
        ),
    ]


def _time_median(call: Callable[[], Any], repeats: int) -> tuple[float, Any]:
    """Return the median CPU seconds of a call, and its last result."""
    times, results = time_turns({"": call}, repeats, warm=False)
    return float(np.median(times[""])), results[""]


def solve_all_slices(bins: list[Fraction], epsilon: Fraction, solver: ProgramSolver) -> float:
    """Return the smallest objective of the 99 programs of Theorem 5 for four symmetric bins.

    Args:
        bins: outputs.
        epsilon: budget.
        solver: solves the programs.

    Returns:
        The objective, or inf if no program has a solution.
    """
    shape = make_two_bin_shape(bins, uniform_density())
    slices = [
        (np.array([k, 99 - k]) / 100, np.array([k + 1, 100 - k]) / 100) for k in range(1, 100)
    ]
    points = [solver.solve(shape.theorem5(float(epsilon), {("l", 2): pair})) for pair in slices]
    return min((point.objective for point in points if point is not None), default=math.inf)


def _search_with_pruning(
    all_bins: list[list[Fraction]], epsilon: Fraction, solver: ProgramSolver
) -> list[Any]:
    """Return the best quantizer for each list of outputs, or None. Bounds skip most programs."""
    return [solve_optm(bins, LawQuestion(epsilon), solver=solver) for bins in all_bins]


def _search_in_full(
    all_bins: list[list[Fraction]], epsilon: Fraction, solver: ProgramSolver
) -> list[float]:
    """Return the smallest objective for each list of outputs, from all of its programs."""
    return [solve_all_slices(bins, epsilon, solver) for bins in all_bins]


def _compare_searches() -> list[Comparison]:
    """Compare the paper's search with pruning and in full."""
    outer_bins = [1 + Fraction(k, 2) for k in range(2, 13)]
    inner_bins = [Fraction(k, 10) for k in range(1, 11)]
    all_bins = [
        [-outer, -inner, inner, outer] for outer, inner in itertools.product(outer_bins, inner_bins)
    ]
    comparisons = []
    for epsilon in (Fraction(1, 2), Fraction(1), Fraction(3, 2)):
        with closing(ProgramSolver(LAW)) as solver:
            search = partial(_search_with_pruning, all_bins, epsilon, solver)
            pruned_seconds, answers = _time_median(search, 1)
            pruned_count = solver.solve_count
        with closing(ProgramSolver(LAW)) as solver:
            full_search = partial(_search_in_full, all_bins, epsilon, solver)
            full_seconds, full_objectives = _time_median(full_search, 1)
            full_count = solver.solve_count
        objectives = [math.inf if answer is None else answer.objective for answer in answers]
        is_same = np.allclose(objectives, full_objectives, rtol=0, atol=1e-9)
        verdict = "same winners" if is_same else "DIFFERENT WINNERS"
        mae = min(answer.quantizer.mae() for answer in answers if answer is not None)
        comparisons.append(
            Comparison(
                task=f"OPTM m = 4, ε = {float(epsilon):g}, pruned ({pruned_count} LPs)",
                seconds=pruned_seconds,
                target=3.0,
                reference=f"all {full_count} LPs",
                reference_seconds=full_seconds,
                result=f"{verdict}, MAE {mae:.6f}",
            )
        )
    return comparisons


def _compare_optimised_bins() -> list[Comparison]:
    """Compare 16 optimised outputs with 4 optimised outputs."""
    small_seconds, small_answer = time_call(lambda: optimise_bins(4, LawQuestion(Fraction(1))))
    seconds, answer = time_call(lambda: optimise_bins(16, LawQuestion(Fraction(1))))
    squared_question = LawQuestion(Fraction(1), uniform_density(), "squared")
    mvu_seconds, mvu_answer = time_call(lambda: solve_mvu(squared_question, 16, starts=2))
    return [
        Comparison(
            task="exact LP, 16 optimised bins, 41 knots",
            seconds=seconds,
            target=60.0,
            reference="4 bins",
            reference_seconds=small_seconds,
            result=f"MAE {answer.objective:.6f} and {small_answer.objective:.6f}",
        ),
        Comparison(
            task="MVU, 16 outputs, with its bound",
            seconds=mvu_seconds,
            target=60.0,
            reference="4 bins",
            reference_seconds=small_seconds,
            result=f"squared error {mvu_answer.objective:.6f} >= {mvu_answer.bound:.6f}",
        ),
    ]


def _compare_alphabets(epsilon: float) -> Comparison:
    """Compare both methods for MVU's alphabet, for 4 inputs and 4 outputs.

    Both methods start from the same four random alphabets.
    """
    points = np.linspace(-1, 1, 4)
    rng = np.random.default_rng(1)
    min_reach = smallest_reach(epsilon)
    starts = []
    for _ in range(4):
        # Unbiased private laws exist only if the outer outputs are at least `min_reach`.
        left_reach, right_reach = min_reach * (1.02 + rng.random(2) / 2)
        inner_outputs = np.sort(rng.uniform(low=-1, high=1, size=2))
        starts.append(np.concatenate([[-left_reach], inner_outputs, [right_reach]]))

    def search_by_slopes() -> LocalOptimum:
        """Return the best alphabet that the workbench finds from the starts."""
        compute_losses = make_grid_problem(points, 4).compute_losses
        problem = LawProblem(points, outputs=4, losses=compute_losses, symmetric=False)
        answer = search_best_outputs(problem, epsilon, starts, symmetric=False)
        problem.close()
        assert answer is not None
        return answer

    calls = {
        "workbench": search_by_slopes,
        "SciPy": lambda: [_minimise_by_trust_constr(points, start, epsilon) for start in starts],
    }
    times, results = time_best_turn(calls)
    optimum = results["workbench"]
    values = results["SciPy"]
    all_values = ", ".join(f"{value:.4f}" for value in values)
    return Comparison(
        task=f"MVU's alphabet, 4 inputs, ε = {epsilon:g}, 4 starts",
        seconds=times["workbench"],
        target=1.0,
        reference="SciPy trust-constr",
        reference_seconds=times["SciPy"],
        result=f"{optimum.value:.6f} and {min(values):.6f} (of {all_values})",
    )


def _minimise_by_trust_constr(points: Vector, outputs: Vector, epsilon: float) -> float:
    """Return the mean squared error of the alphabet and matrix that SciPy finds.

    The variables are the outputs a (m,) and the matrix P (n, m) of P(i | x), in one vector z. The
    answer is feasible only to SciPy's tolerance.

    Args:
        points: (n,) inputs x.
        outputs: (m,) outputs at which the search starts.
        epsilon: budget.
    """
    n = points.size
    m = outputs.size

    def split_variables(z: Vector) -> tuple[Vector, Vector, Vector]:
        """Return a, P and the errors a - x."""
        a = z[:m]
        return a, z[m:].reshape(n, m), a[None, :] - points[:, None]

    def compute_error(z: Vector) -> tuple[float, Vector]:
        """Compute the mean squared error and its gradient."""
        _, P, errors = split_variables(z)
        value = float((P * errors**2).sum() / n)
        gradient = np.concatenate([(2 * P * errors).sum(axis=0), (errors**2).ravel()])
        return value, gradient / n

    def compute_means(z: Vector) -> Vector:
        """Compute the mean output at each input (n,), which an unbiased law has equal to x."""
        a, P, _ = split_variables(z)
        return np.asarray((P * a).sum(axis=1))

    def compute_mean_jacobian(z: Vector) -> Vector:
        """Compute the derivatives of the means in (a, P). Shape (n, m + n m)."""
        a, P, _ = split_variables(z)
        return np.hstack([P, np.kron(np.eye(n), a)])

    row_sums = np.hstack([np.zeros((n, m)), np.kron(np.eye(n), np.ones(m))])
    ratio_rows = _list_ratio_rows(n, m, float(np.exp(epsilon)))
    constraints: list[Any] = [
        LinearConstraint(row_sums, 1, 1),
        LinearConstraint(ratio_rows, -np.inf, 0),
        NonlinearConstraint(compute_means, points, points, jac=compute_mean_jacobian),
    ]
    lower = np.concatenate([np.full(m, -np.inf), np.zeros(n * m)])
    # The start publishes only the two outer outputs. It is unbiased and private.
    high_mass = (points - outputs[0]) / (outputs[-1] - outputs[0])
    P = np.zeros((n, m))
    P[:, 0] = 1 - high_mass
    P[:, -1] = high_mass
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        answer = minimize(
            compute_error,
            np.concatenate([outputs, P.ravel()]),
            jac=True,
            method="trust-constr",
            bounds=Bounds(lower, np.inf),
            constraints=constraints,
            options={"maxiter": 1000},
        )
    return float(answer.fun)


def _list_ratio_rows(n: int, m: int, ratio: float) -> Vector:
    """Return the rows P(i | x) - ratio P(i | y) over the variables (a, P)."""
    rows = []
    for i, (x, y) in itertools.product(range(m), itertools.permutations(range(n), 2)):
        row = np.zeros(m + n * m)
        row[m + x * m + i] = 1.0
        row[m + y * m + i] = -ratio
        rows.append(row)
    return np.array(rows)
