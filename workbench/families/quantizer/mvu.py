"""MVU, the minimum variance unbiased mechanism (Chaudhuri et al. 2022): an LP in P inside a search over the alphabet.

Inputs are dithered to n_in equally spaced points of [-c, c] (x between two points goes to one of them, unbiasedly); a
row-stochastic matrix P (n_in, m) then draws one of the outputs a_1..a_m. Dithering mixes neighbouring rows, so the
whole mechanism is a quantizer whose law is affine between the points and continuous: `Quantizer`.

    minimise    (1/n_in) Σ_x Σ_i P(x, i) (a_i - x)²   over P and a
    subject to  Σ_i P(x, i) a_i = x,   P(x, i) <= e^ε P(x', i)       (metric: e^{ε d(x, x')})

For fixed a it is an LP; over a it is not convex, and the best alphabet need not be symmetric. The search starts from
several alphabets, symmetric and asymmetric, with exact slopes from the LP's duals, and keeps the best; the lower bound
then shown holds for every alphabet of every size (`alphabet_bound`; of two outputs: of that size), so it also says how
much more outputs could bring. At a given alphabet the bound is that of its LP.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from models.quantizer import odds_of, smallest_reach
from workbench.errors import Infeasible, InvalidRequest, NotCertified, NotProven
from workbench.exact.numbers import Real, positive
from workbench.families.quantizer.certify import repaired
from workbench.families.quantizer.law_program import QuantizerAnswer
from workbench.families.quantizer.laws import LawProblem, exact_problem, grid_problem
from workbench.families.quantizer.limit import proven_limit, two_outputs, unlimited
from workbench.families.quantizer.outputs import Descents, LocalOptimum, best_outputs, mirrored, oriented, spread_starts
from workbench.mechanisms.density import uniform
from workbench.mechanisms.piecewise_affine import Quantizer
from workbench.mechanisms.quantization_error import error_function
from workbench.mechanisms.real_inputs import half_width, read_bins

__all__ = ["alphabet_bound", "alphabets", "merged", "mvu", "mvu_curve"]

Vector = NDArray[np.float64]


def merged(outputs: Vector, laws: Vector, least: float = 1e-6) -> tuple[Vector, Vector]:
    """Outputs closer than `least` as one, their masses added, and unused ones left out: a search may end so.

    outputs: (m,); laws: (..., m). Returns both with fewer outputs.
    """
    used = laws.reshape(-1, laws.shape[-1]).max(axis=0) > 1e-10  # what is left of a mass that should be 0
    outputs, laws = outputs[used], laws[..., used]
    group = np.concatenate([[0], np.cumsum(np.diff(outputs) > least)])
    count = int(group[-1]) + 1
    sizes = np.bincount(group)
    centre = np.bincount(group, weights=outputs) / sizes
    onto = (group[:, None] == np.arange(count)).astype(float)
    centre = np.where(np.abs(centre) < least, 0.0, centre)
    return centre, laws @ onto


@dataclass(frozen=True)
class InputGrid:
    """The inputs that others are dithered to, and what their laws must do.

    Args:
        inputs: n_in >= 2; as many as outputs by default.
        c: half the width of the input domain.
        loss: "squared" (MVU's), "absolute", or λ for λ|e| + (1 - λ) e², over the grid points.
        metric: None; "absolute" for p(x) <= e^{ε|x-x'|} p(x') for all real inputs; "squared" for e^{ε|x-x'|²} between
            the points that inputs are dithered to.
        solver: a label of `workbench doctor`.
    """

    inputs: int | None = None
    c: Real = 1
    loss: Any = "squared"
    metric: str | None = None
    solver: str = "highs"


def mvu(
    epsilon: Real,
    *,
    levels: int | None = None,
    alphabet: Any = None,
    grid: InputGrid = InputGrid(),
    reach: float | None = None,
    starts: int = 5,
    bound: bool = True,
    progress: Callable[[str], None] = lambda line: None,
) -> QuantizerAnswer:
    """The MVU mechanism with a given alphabet, or with `levels` optimised outputs.

    objective: the mean error over the grid; bound: of the LP at a given alphabet, else for every one, None where the
    relation has none; quantizer: the dithered one.

    Args:
        epsilon: > 0.
        levels: m >= 2, when no alphabet is given.
        alphabet: outputs a_1 < ... < a_m.
        grid: of the inputs.
        reach: the largest output allowed in size when the alphabet is optimised; 40 times the least feasible reach by
            default.
        starts: of the alphabet search.
        bound: also compute the lower bound over alphabets.
        progress: told a line for every start.

    Raises:
        InvalidRequest, Infeasible.
    """
    budget, half = positive(epsilon, "epsilon"), half_width(grid.c)
    inputs, loss, metric, solver = grid.inputs, grid.loss, grid.metric, grid.solver
    if (levels is None) == (alphabet is None):
        raise InvalidRequest("levels or alphabet must be given, and not both.")
    given_outputs = None if alphabet is None else read_bins(alphabet, half)
    m = len(given_outputs) if given_outputs is not None else levels
    if not isinstance(m, int) or isinstance(m, bool) or m < 2:
        InvalidRequest.must("levels", "an integer >= 2", levels)
    n = m if inputs is None else inputs
    if not isinstance(n, int) or isinstance(n, bool) or n < 2:
        InvalidRequest.must("inputs", "an integer >= 2", inputs)
    knots = [-half + 2 * half * Fraction(k, n - 1) for k in range(n)]
    points = np.array([float(k) for k in knots])
    reached: tuple[float, ...] = ()
    if given_outputs is None:
        problem = grid_problem(points, m, loss, metric=metric, solver=solver)
        try:
            begin = alphabets(m, float(budget), float(half), n, starts, reach)
            best = best_outputs(problem, float(budget), float(half), begin, limit=reach, progress=progress)
            if metric is None:
                problem, best = _asymmetric(problem, best, float(budget), float(half), 2 * starts, reach)
        except ValueError:
            raise Infeasible(f"No unbiased private alphabet was found at epsilon = {float(budget):g}.") from None
        there = problem.answer(float(budget), best.outputs, start="cold")
        problem.close()
        assert there is not None  # it was solved a moment ago
        outputs, reached = merged(best.outputs, there.laws)[0], best.starts
        # the least reach itself leaves a proof no room: a millionth of its excess beyond it
        least = float(half) + (1 + 1e-6) * problem.excess(float(budget), float(half))
        outputs[[0, -1]] = min(outputs[0], -least), max(outputs[-1], least)
        exact_outputs: Sequence[Any] = outputs.tolist()
    else:
        outputs, exact_outputs = np.array([float(a) for a in given_outputs]), given_outputs
    even = np.array_equal(outputs, -outputs[::-1])
    problem = grid_problem(points, outputs.size, loss, symmetric=even, metric=metric, solver=solver)
    answer = problem.answer(float(budget), outputs, start="cold")
    problem.close()
    if answer is None:
        raise Infeasible(f"No unbiased matrix with these outputs is private at epsilon = {float(budget):g}.")
    laws = answer.laws
    quantizer = Quantizer.from_ends("MVU", exact_outputs, knots, np.stack([laws[:-1], laws[1:]], axis=1))
    lower = answer.solution.bound if given_outputs is not None else None
    if bound and given_outputs is None and metric is None:
        lower = alphabet_bound(points, float(budget), loss, math.inf if reach is None else reach, m)
    return QuantizerAnswer(answer.value, lower, quantizer, answer.solution, reached)


def alphabet_bound(
    points: Vector, epsilon: float, loss: Any, reach: float = math.inf, levels: int | None = None
) -> float:
    """A lower bound on the mean error over the points for every alphabet within the reach, of any size or of `levels`.

    Of two: their least error. Else the larger of two: the linear program over all real outputs
    (workbench.families.quantizer.limit), and what telling two points apart costs, near the truth at large ε. Means Δ
    apart under laws whose ratios are in [1/t, t], t = e^ε: Var_x >= Δ²/χ² >= Δ² t/(t - 1)² (Hammersley, Chapman and
    Robbins), and E_x|e| + E_y|e| >= 2Δ/(1 + t) (Le Cam).
    """
    a, b = error_function(loss)
    odds, n = odds_of(epsilon), points.size
    farthest = np.maximum(points[-1] - points, points - points[0])
    squared = float((farthest**2).mean()) * (1 + odds) / odds**2
    half = n // 2
    absolute = 2 * float((points[n - half :] - points[:half]).sum()) / n / (2 + odds)
    bounds = [(a * absolute + b * squared) * (1 - 1e-9)]
    if levels == 2:
        reach = smallest_reach(epsilon, float(points[-1]))
        return two_outputs(reach, loss, float((points**2).mean())) * (1 - 1e-9)
    with contextlib.suppress(NotProven):
        bounds.append(proven_limit(unlimited(points, epsilon, loss, reach=reach), epsilon, loss))
    return max(bounds)


def alphabets(m: int, epsilon: float, c: float, inputs: int, starts: int, reach: float | None) -> list[Vector]:
    """Symmetric alphabets that a search starts from: spread ones, even ones, and nearly the inputs where those fit."""
    least = smallest_reach(epsilon, c)
    begin = [*spread_starts(m, epsilon, c, starts), least * np.linspace(-1.001, 1.001, m)]
    if m >= inputs and (m - inputs) % 2 == 0:
        grid = np.linspace(-c, c, inputs)
        grid[[0, -1]] = -2 * least + c, 2 * least - c  # as far beyond the least reach as that is beyond c
        extra = (m - inputs) // 2
        begin.append(np.concatenate([np.full(extra, grid[0]), grid, np.full(extra, grid[-1])]))
    return begin if reach is None else [np.clip(start, -reach, reach) for start in begin]


def _asymmetric(
    problem: LawProblem, best: LocalOptimum, epsilon: float, c: float, starts: int, reach: float | None
) -> tuple[LawProblem, LocalOptimum]:
    """The problem and the outputs again, or better ones that are not symmetric: from the best, perturbed."""
    m, rng, least = problem.outputs, np.random.default_rng(0), 1.02 * smallest_reach(epsilon, c)
    free = LawProblem(problem.points, m, problem.losses, symmetric=False, solver=problem.solver)
    begin = [best.outputs]
    for _ in range(starts):
        start = np.sort(best.outputs * (1 + rng.uniform(-0.5, 0.5, m)) + c * rng.uniform(-0.35, 0.35, m))
        begin.append(np.concatenate([[min(start[0], -least)], start[1:-1], [max(start[-1], least)]]))
    for _ in range(starts):
        far = least + (least if reach is None else max(0.0, reach - least)) * rng.random(2) ** 3
        begin.append(np.concatenate([[-far[0]], np.sort(least * rng.uniform(-1, 1, m - 2)), [far[1]]]))
    try:
        general = best_outputs(free, epsilon, c, begin, symmetric=False, limit=reach)
    except ValueError:
        general = best
    if general.value < best.value * (1 - 1e-6):
        problem.close()
        tried, solves = best.starts + general.starts, best.solves + general.solves
        return free, LocalOptimum(oriented(general.outputs), general.value, tried, solves)
    free.close()
    return problem, best


def mvu_curve(
    epsilons: Sequence[Real],
    *,
    bits: int = 5,
    metric: str | None = "absolute",
    c: float = 1.0,
    iterations: int = 20,
    progress: Callable[[str], None] = lambda line: None,
) -> list[tuple[float, float, Quantizer]]:
    """MVU with 2^bits outputs and as many dithering points at several ε: (ε, exact MSE for uniform x, quantizer).

    The MSE that is minimised and reported is that of the whole mechanism, dithering included. metric "absolute" is
    ε·d-privacy with d = |x - x'| for all real inputs (what the DQL paper compares); outputs are moved from one ε to
    the next, the largest first. Every quantizer is exactly unbiased and exactly private. The outputs are a local
    optimum: less error may be possible. Raises NotCertified.
    """
    size = 2**bits
    knots = np.linspace(-c, c, size)
    rows: list[tuple[float, float, Quantizer]] = []
    spread = np.arange(0.5, size // 2) / (size // 2)
    last: Vector | None = None  # the outputs found at the ε before, in units of c + 1/ε
    for epsilon in sorted((positive(e, "epsilon") for e in epsilons), reverse=True):
        unit = c + 1 / float(epsilon)
        problem = exact_problem(knots, size, uniform(c), "squared", symmetric=True, metric=metric)
        half = (c + 2 / float(epsilon)) * spread if last is None else unit * last
        starts = [mirrored(half, size)]
        best = best_outputs(problem, float(epsilon), c, starts, descents=Descents(rounds=1, iterations=iterations))
        last = best.outputs[size // 2 :] / unit
        quantizer = _private_at(problem, best.outputs, epsilon, metric)
        problem.close()
        rows.append((float(epsilon), quantizer.mse(), quantizer))
        progress(f"epsilon {float(epsilon):g}: mean squared error {rows[-1][1]:.6g}")
    return rows[::-1]


def _private_at(problem: LawProblem, bins: Vector, epsilon: Fraction, metric: str | None) -> Quantizer:
    """The laws on these outputs, solved at a slightly smaller ε with slightly wider outputs when only that is provably
    ε-private: outputs at the least reach itself leave a proof no room.
    """
    knots = np.unique(problem.points)
    for less in (0.0, 1e-9, 1e-7, 1e-6, 1e-5, 1e-4):
        wide = bins * (1 + 2 * less)
        answer = problem.answer(float(epsilon) * (1 - less), wide, start="cold")
        if answer is None:
            break
        outputs, laws = merged(wide, answer.laws)
        ends = np.stack([laws[:-1], laws[1:]], 1) if metric is not None else laws.reshape(-1, 2, outputs.size)
        quantizer = Quantizer.from_ends("MVU", outputs.tolist(), knots.tolist(), ends)
        try:
            return repaired(quantizer, epsilon, metric)[0]
        except NotCertified:
            continue
    raise NotCertified(f"No law on these outputs could be proven private at epsilon = {float(epsilon):g}.")
