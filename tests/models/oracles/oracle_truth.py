"""Independent judges of the oracles: the paper's literal programs and the privacy of a PMF."""

import itertools
import math
from collections.abc import Mapping, Sequence

import numpy as np
from scipy.optimize import LinearConstraint, linprog, milp
from scipy.sparse import lil_matrix

from workbench.models.convex.requirements import MASS_ABOVE_RATIO
from workbench.models.oracles import cuts, error_rate_bounds, hops
from workbench.models.oracles.question import build_question

Shifts = Sequence[tuple[int, ...]]


def run(mu_bar: int) -> list[tuple[int, ...]]:
    """{1..μ̄}."""
    return [(mu,) for mu in range(1, mu_bar + 1)]


def both_ways(sizes: tuple[int, ...], shifts: Shifts) -> list[tuple[int, ...]]:
    """𝓜 ∪ -𝓜."""
    mirrored = [tuple(-s % n for s, n in zip(shift, sizes, strict=True)) for shift in shifts]
    return list(dict.fromkeys([*shifts, *mirrored]))


def ahead(sizes: tuple[int, ...], shift: tuple[int, ...]) -> list[int]:
    """Row-major position of η + μ for every η, by plain arithmetic."""
    answers = list(itertools.product(*map(range, sizes)))
    place = {answer: k for k, answer in enumerate(answers)}
    return [
        place[tuple((x + s) % n for x, s, n in zip(answer, shift, sizes, strict=True))]
        for answer in answers
    ]


def pdp_delta(
    pmf: np.ndarray, sizes: tuple[int, ...], shifts: Shifts, epsilon: float, slack: float = 1e-11
) -> float:
    """PDP δ of a PMF; a ratio within `slack` of e^ε counts as kept."""
    worst = 0.0
    for shift in shifts:
        moved = pmf[ahead(sizes, shift)]
        worst = max(worst, float(pmf[pmf > math.exp(epsilon) * moved * (1 + slack)].sum()))
    return worst


def dp_delta(
    pmf: np.ndarray, sizes: tuple[int, ...], budgets: Mapping[tuple[int, ...], float]
) -> float:
    """Hockey-stick δ of a PMF, one ε per shift."""
    return max(
        float(np.maximum(pmf - math.exp(epsilon) * pmf[ahead(sizes, shift)], 0.0).sum())
        for shift, epsilon in budgets.items()
    )


def pdp_error(sizes: tuple[int, ...], shifts: Shifts, epsilon: float, delta: float) -> float:
    """(13a)-(13h), literally: least 1 - f(0) under (ε, δ)-PDP, one (u, y) block per shift."""
    size, growth = math.prod(sizes), math.exp(epsilon)
    columns = size * (1 + 2 * len(shifts))
    rows: list[dict[int, float]] = []
    limits: list[float] = []

    def at_most(limit: float, row: dict[int, float]) -> None:
        rows.append(row)
        limits.append(limit)

    for block, shift in enumerate(shifts):
        u, y, moved = size * (1 + 2 * block), size * (2 + 2 * block), ahead(sizes, shift)
        at_most(delta, {y + k: 1.0 for k in range(size)})  # (13c)
        for k in range(size):
            at_most(1.0, {u + k: 1.0, k: 1.0, y + k: -1.0})  # (13d)
            at_most(1.0, {u + k: 1.0, k: -1.0, y + k: 1.0})  # (13e)
            at_most(0.0, {k: 1.0, moved[k]: -growth, u + k: -1.0})  # (13f)
            at_most(growth, {moved[k]: growth, k: -1.0, u + k: growth})  # (13g)
    matrix = lil_matrix((len(rows) + 1, columns))
    for i, row in enumerate(rows):
        for k, value in row.items():
            matrix[i, k] = value
    matrix[len(rows), :size] = 1.0  # (13b)
    loss = np.zeros(columns)
    loss[0] = -1.0
    integrality = np.zeros(columns)
    for block in range(len(shifts)):
        integrality[size * (1 + 2 * block) : size * (2 + 2 * block)] = 1
    answer = milp(
        loss,
        integrality=integrality,
        bounds=(0, 1),
        constraints=LinearConstraint(
            matrix.tocsr(), np.append(np.full(len(rows), -np.inf), 1.0), np.append(limits, 1.0)
        ),
        options={"mip_rel_gap": 0.0},
    )
    assert answer.status == 0, answer.message
    return 1.0 + float(answer.fun)


def dp_error(
    sizes: tuple[int, ...], budgets: Mapping[tuple[int, ...], float], delta: float
) -> float:
    """Least 1 - f(0) under (ε_μ, δ)-DP, the linear program over f and one excess per constraint."""
    size = math.prod(sizes)
    columns = size * (1 + len(budgets))
    matrix = lil_matrix((size * len(budgets) + len(budgets), columns))
    limits = np.zeros(matrix.shape[0])
    for block, (shift, epsilon) in enumerate(budgets.items()):
        for k, target in enumerate(ahead(sizes, shift)):
            row = block * size + k
            matrix[row, k] += 1.0
            matrix[row, target] -= math.exp(epsilon)
            matrix[row, size * (1 + block) + k] = -1.0
        total = size * len(budgets) + block
        matrix[total, size * (1 + block) : size * (2 + block)] = 1.0
        limits[total] = delta
    loss = np.zeros(columns)
    loss[0] = -1.0
    sums = np.zeros((1, columns))
    sums[0, :size] = 1.0
    answer = linprog(
        loss, A_ub=matrix.tocsr(), b_ub=limits, A_eq=sums, b_eq=[1.0], bounds=(0, None)
    )
    assert answer.status == 0, answer.message
    return 1.0 + float(answer.fun)


def judge(*question, **more):
    """The strongest statement about a question."""
    return error_rate_bounds(*question, **more).strongest


def question(sizes, shifts, epsilon, delta=0.0, requires=MASS_ABOVE_RATIO):
    return build_question(sizes, shifts, True, epsilon, delta, requires)


def dp_law(sizes, shifts, epsilon, delta):
    return hops.dp_law(question(sizes, shifts, epsilon, delta))


def hop_law(sizes, shifts, epsilon):
    return dp_law(sizes, shifts, epsilon, 0.0)


def level_cut_law(sizes, shifts, epsilon, delta):
    return next(cuts.state_level_cut(question(sizes, shifts, epsilon, delta)))


def hop_distances(sizes, shifts):
    return hops.hop_distances(sizes, question(sizes, shifts, 1.0).shifts)
