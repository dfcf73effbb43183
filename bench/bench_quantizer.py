"""Quantizers: the exact LP cold and hot, the paper's m = 4 search pruned and in full, 16 bins optimised, MVU's alphabet
by the slopes of its LP against SciPy's trust-constr on outputs and matrix together.

Every ratio is of two times measured in this run (of MVU's alphabets: of the processor). "result" says what both sides
found, so that a wrong answer shows.
"""

from __future__ import annotations

import itertools
import math
import time
import warnings
from collections.abc import Callable
from contextlib import closing
from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.optimize import Bounds, LinearConstraint, NonlinearConstraint, minimize

from bench import in_turns, seconds_of
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
LAW = LawQuestion(Fraction(1))
BINS = np.array([-3.0, -0.5, 0.5, 3.0])


def run() -> pd.DataFrame:
    """One row per task: seconds, the target, what it is compared with and the ratio."""
    rows = [*_exact_lp(), *_search(), *_optimised(), *_alphabets(1.5), *_alphabets(0.5)]
    return pd.DataFrame(
        rows,
        columns=["task", "seconds", "target", "compared with", "its seconds", "ratio", "result"],
    )


@ignore_float_warnings
def stated(model: LawModel) -> Any:
    """The model in CVXPY."""
    import cvxpy as cp

    n, m, m_low = (
        model.points,
        model.outputs,
        (model.outputs + 1) // 2 if model.symmetric else model.outputs,
    )
    s = cp.Variable((n, m), name="s", bounds=[0, None])
    odds = cp.Parameter(model.parameters["odds"], name="odds", nonneg=True)
    bins, at = cp.Parameter(m, name="bins"), cp.Parameter(n, name="at")
    loss = cp.Parameter((n, m), name="loss")
    if model.relation == "chain":
        up = cp.multiply(
            np.ones((n - 1, m)), cp.reshape(odds, (n - 1, 1), order="F") @ np.ones((1, m))
        )
        rows = [
            cp.sum(s, axis=1) == 1,
            s @ bins == at,
            s[1:] - s[:-1] <= cp.multiply(up, s[:-1]),
            s[:-1] - s[1:] <= cp.multiply(up, s[1:]),
        ]
        return cp.Problem(cp.Minimize(cp.sum(cp.multiply(loss, s))), rows)
    each = np.arange(m)
    low = cp.Variable(m_low, name="low", bounds=[0, None])[
        np.minimum(each, m - 1 - each) if model.symmetric else each
    ]
    rows = [
        cp.sum(s, axis=1) + cp.sum(low) == 1,
        s @ bins + bins @ low == at,
        *[s[e] <= odds * low for e in range(n)],
    ]
    return cp.Problem(cp.Minimize(cp.sum(cp.multiply(loss, s)) + cp.sum(loss @ low)), rows)


def _row(
    task: str, seconds: float, target: float, other: str, its: float, result: str
) -> list[Any]:
    return [task, seconds, target, other, its, its / seconds, result]


def _exact_lp() -> list[list[Any]]:
    knots = np.linspace(-1, 1, 41)

    def cold() -> float | None:
        problem = make_exact_problem(knots, 4, LAW, symmetric=True)
        answer = problem.solve(1.0, BINS, start="cold")
        problem.close()
        return answer.objective

    def through_cvxpy() -> float | None:
        points = np.repeat(knots, 2)[1:-1]
        model = LawModel(points.size, 4)
        loss = ErrorIntegrals(knots, BINS, uniform_density()).weights().reshape(-1, 4)
        program = compile_program(stated(model), "exact quantizer in CVXPY")
        return solve(program, model.values(np.expm1(1.0), BINS, points, loss)).objective

    seconds, value = seconds_of(cold, 5)
    slow, same = seconds_of(through_cvxpy)
    problem = make_exact_problem(knots, 4, LAW, symmetric=True)
    problem.solve(1.0, BINS)
    moves = iter(np.linspace(0.9, 1.1, 60))
    hot_epsilon, _ = _median(lambda: problem.solve(float(next(moves)), BINS).objective, 50)
    shifts = iter(np.linspace(0.4, 0.6, 60))
    hot_bin, _ = _median(
        lambda: problem.solve(1.0, np.array([-3, -(b := float(next(shifts))), b, 3])).objective, 50
    )
    problem.close()
    values = f"{value:.7f} and {same:.7f}"
    return [
        _row("exact LP, m = 4, 41 knots, cold", seconds, 0.05, "through CVXPY", slow, values),
        _row("exact LP, hot, ε moved", hot_epsilon, 0.015, "cold", seconds, "of 50"),
        _row("exact LP, hot, a bin moved", hot_bin, 0.015, "cold", seconds, "of 50"),
    ]


def _median(f: Callable[[], Any], repeat: int) -> tuple[float, Any]:
    times, value = [], None
    for _ in range(repeat):
        begin = time.process_time()
        value = f()
        times.append(time.process_time() - begin)
    return float(np.median(times)), value


def every_slice(bins: list[Fraction], epsilon: Fraction, live: ProgramSolver) -> float:
    """The least objective of the 99 programs of Theorem 5 for four symmetric bins; inf when none has a solution."""
    shape = make_two_bin_shape(bins, uniform_density())
    slices = [
        (np.array([k, 99 - k]) / 100, np.array([k + 1, 100 - k]) / 100) for k in range(1, 100)
    ]
    points = [live.solve(shape.theorem5(float(epsilon), {("l", 2): pair})) for pair in slices]
    return min((point.objective for point in points if point is not None), default=math.inf)


def _optima(every: list[list[Fraction]], epsilon: Fraction, live: ProgramSolver) -> list[Any]:
    return [solve_optm(bins, LawQuestion(epsilon), solver=live) for bins in every]


def _full(every: list[list[Fraction]], epsilon: Fraction, live: ProgramSolver) -> list[float]:
    return [every_slice(bins, epsilon, live) for bins in every]


def _search() -> list[list[Any]]:
    outer, inner = (
        [1 + Fraction(k, 2) for k in range(2, 13)],
        [Fraction(k, 10) for k in range(1, 11)],
    )
    rows = []
    for epsilon in (Fraction(1, 2), Fraction(1), Fraction(3, 2)):
        every = [[-big, -small, small, big] for big, small in itertools.product(outer, inner)]
        with closing(ProgramSolver(LAW)) as live:
            quick, pruned = _median(partial(_optima, every, epsilon, live), 1)
            few = live.solve_count
        with closing(ProgramSolver(LAW)) as live:
            slow, full = _median(partial(_full, every, epsilon, live), 1)
            many = live.solve_count
        reached = [math.inf if answer is None else answer.objective for answer in pruned]
        verdict = (
            "same winners" if np.allclose(reached, full, rtol=0, atol=1e-9) else "DIFFERENT WINNERS"
        )
        mae = min(a.quantizer.mae() for a in pruned if a is not None)
        rows.append(
            _row(
                f"OPTM m = 4, ε = {float(epsilon):g}, pruned ({few} LPs)",
                quick,
                3.0,
                f"all {many} LPs",
                slow,
                f"{verdict}, MAE {mae:.6f}",
            )
        )
    return rows


def _optimised() -> list[list[Any]]:
    rows = []
    small, four = seconds_of(lambda: optimise_bins(4, LawQuestion(Fraction(1))))
    seconds, sixteen = seconds_of(lambda: optimise_bins(16, LawQuestion(Fraction(1))))
    rows.append(
        _row(
            "exact LP, 16 optimised bins, 41 knots",
            seconds,
            60.0,
            "4 bins",
            small,
            f"MAE {sixteen.objective:.6f} and {four.objective:.6f}",
        )
    )
    seconds, answer = seconds_of(
        lambda: solve_mvu(LawQuestion(Fraction(1), uniform_density(), "squared"), 16, starts=2)
    )
    rows.append(
        _row(
            "MVU, 16 outputs, with its bound",
            seconds,
            60.0,
            "4 bins",
            small,
            f"squared error {answer.objective:.6f} >= {answer.bound:.6f}",
        )
    )
    return rows


def _alphabets(epsilon: float) -> list[list[Any]]:
    """MVU with 4 inputs and 4 outputs from the same asymmetric alphabets."""
    points = np.linspace(-1, 1, 4)
    rng, least = np.random.default_rng(1), smallest_reach(epsilon)
    starts = []
    for _ in range(4):
        far = least * (1.02 + rng.random(2) / 2)
        starts.append(np.concatenate([[-far[0]], np.sort(rng.uniform(-1, 1, 2)), [far[1]]]))

    def ours() -> LocalOptimum:
        problem = LawProblem(
            points, 4, make_grid_problem(points, 4).compute_losses, symmetric=False
        )
        answer = search_best_outputs(problem, epsilon, starts, symmetric=False)
        problem.close()
        assert answer is not None
        return answer

    calls = {
        "ours": ours,
        "its": lambda: [_trust_constr(points, start, epsilon) for start in starts],
    }
    times, answers = in_turns(calls)
    seconds, its, optimum, values = times["ours"], times["its"], answers["ours"], answers["its"]
    errors = f"{optimum.value:.6f} and {min(values):.6f} (of {', '.join(f'{value:.4f}' for value in values)})"
    return [
        _row(
            f"MVU's alphabet, 4 inputs, ε = {epsilon:g}, 4 starts",
            seconds,
            1.0,
            "SciPy trust-constr",
            its,
            errors,
        )
    ]


def _trust_constr(points: Vector, outputs: Vector, epsilon: float) -> float:
    """The mean squared error of SciPy's answer over (a, P), as it comes: feasible to its tolerance."""
    n, m, ratio = points.size, outputs.size, float(np.exp(epsilon))
    high = (points - outputs[0]) / (outputs[-1] - outputs[0])
    law = np.zeros((n, m))
    law[:, 0], law[:, -1] = 1 - high, high  # unbiased and private

    def parts(z: Vector) -> tuple[Vector, Vector, Vector]:
        a, P = z[:m], z[m:].reshape(n, m)
        return a, P, a[None, :] - points[:, None]

    def error(z: Vector) -> tuple[float, Vector]:
        _, P, gap = parts(z)
        return float((P * gap**2).sum() / n), np.concatenate(
            [(2 * P * gap).sum(axis=0), (gap**2).ravel()]
        ) / n

    def mean_slope(z: Vector) -> Vector:
        a, P, _ = parts(z)
        return np.hstack([P, np.kron(np.eye(n), a)])

    sums = np.hstack([np.zeros((n, m)), np.kron(np.eye(n), np.ones(m))])
    pairs = []
    for i in range(m):
        for x in range(n):
            for y in range(n):
                if x != y:
                    row = np.zeros(m + n * m)
                    row[m + x * m + i], row[m + y * m + i] = 1.0, -ratio
                    pairs.append(row)
    constraints: list[Any] = [
        LinearConstraint(sums, 1, 1), LinearConstraint(np.array(pairs), -np.inf, 0),
        NonlinearConstraint(lambda z: (z[m:].reshape(n, m) * z[:m]).sum(axis=1), points, points, jac=mean_slope),
    ]  # fmt: skip
    bounds = Bounds(np.concatenate([np.full(m, -np.inf), np.zeros(n * m)]), np.inf)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        answer = minimize(
            error,
            np.concatenate([outputs, law.ravel()]),
            jac=True,
            method="trust-constr",
            bounds=bounds,
            constraints=constraints,
            options={"maxiter": 1000},
        )
    return float(answer.fun)
