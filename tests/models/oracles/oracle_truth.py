"""Slow, independent computations with which the tests compare the oracles.

They state the programs of Kadam et al. 2024 (numbers such as (13c) are its equations) for SciPy,
and compute the privacy of a PMF from its definition. At the end are short ways to call the oracles.

Notation. A group is given by `sizes`, the orders of its cyclic factors: (9,) is Z_9, (3, 4) is
Z_3 x Z_4. A shift is a tuple of the same length. `budgets` maps each shift to its ε.
"""

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


def one_sided_shifts(mu_bar: int) -> list[tuple[int, ...]]:
    """Return the shifts 1, ..., μ̄ of a cyclic group, e.g. 2 -> [(1,), (2,)]."""
    return [(mu,) for mu in range(1, mu_bar + 1)]


def add_opposite_shifts(sizes: tuple[int, ...], shifts: Shifts) -> list[tuple[int, ...]]:
    """Return the shifts and their negatives, each once: in Z_9 [(1,)] -> [(1,), (8,)]."""
    mirrored = [tuple(-s % n for s, n in zip(shift, sizes, strict=True)) for shift in shifts]
    return list(dict.fromkeys([*shifts, *mirrored]))


def shifted_positions(sizes: tuple[int, ...], shift: tuple[int, ...]) -> list[int]:
    """Return the row-major position of η + μ for every element η, for the shift μ."""
    elements = list(itertools.product(*map(range, sizes)))
    positions = {element: k for k, element in enumerate(elements)}
    return [
        positions[tuple((x + s) % n for x, s, n in zip(element, shift, sizes, strict=True))]
        for element in elements
    ]


def pdp_delta(
    pmf: np.ndarray, sizes: tuple[int, ...], shifts: Shifts, epsilon: float, slack: float = 1e-11
) -> float:
    """Return the smallest δ at which a PMF is (ε, δ)-PDP.

    A ratio of masses that exceeds e^ε by a share of at most `slack` counts as kept.
    """
    largest_mass = 0.0
    for shift in shifts:
        shifted_pmf = pmf[shifted_positions(sizes, shift)]
        is_broken = pmf > math.exp(epsilon) * shifted_pmf * (1 + slack)
        largest_mass = max(largest_mass, float(pmf[is_broken].sum()))
    return largest_mass


def dp_delta(
    pmf: np.ndarray, sizes: tuple[int, ...], budgets: Mapping[tuple[int, ...], float]
) -> float:
    """Return the smallest δ at which a PMF is (ε_μ, δ)-DP for every shift μ."""
    deltas = []
    for shift, epsilon in budgets.items():
        excess = pmf - math.exp(epsilon) * pmf[shifted_positions(sizes, shift)]
        deltas.append(float(np.maximum(excess, 0.0).sum()))
    return max(deltas)


def pdp_error(sizes: tuple[int, ...], shifts: Shifts, epsilon: float, delta: float) -> float:
    """Return the smallest 1 - f(0) under (ε, δ)-PDP, by the mixed-integer program (13a)-(13h).

    Its columns are f, then u and y of each shift.
    """
    size = math.prod(sizes)
    exp_epsilon = math.exp(epsilon)
    columns = size * (1 + 2 * len(shifts))
    rows: list[dict[int, float]] = []
    limits: list[float] = []

    def add_row(limit: float, row: dict[int, float]) -> None:
        """Add Σ value x[column] <= limit, for `row` = {column: value}."""
        rows.append(row)
        limits.append(limit)

    for block, shift in enumerate(shifts):
        u = size * (1 + 2 * block)  # The first column of u; the next line has that of y.
        y = size * (2 + 2 * block)
        target = shifted_positions(sizes, shift)
        add_row(delta, {y + k: 1.0 for k in range(size)})  # (13c)
        for k in range(size):
            add_row(1.0, {u + k: 1.0, k: 1.0, y + k: -1.0})  # (13d)
            add_row(1.0, {u + k: 1.0, k: -1.0, y + k: 1.0})  # (13e)
            add_row(0.0, {k: 1.0, target[k]: -exp_epsilon, u + k: -1.0})  # (13f)
            add_row(exp_epsilon, {target[k]: exp_epsilon, k: -1.0, u + k: exp_epsilon})  # (13g)
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
    lower_sides = np.append(np.full(len(rows), -np.inf), 1.0)
    constraint = LinearConstraint(matrix.tocsr(), lower_sides, np.append(limits, 1.0))
    answer = milp(
        loss,
        integrality=integrality,
        bounds=(0, 1),
        constraints=constraint,
        options={"mip_rel_gap": 0.0},
    )
    assert answer.status == 0, answer.message
    return 1.0 + float(answer.fun)


def dp_error(
    sizes: tuple[int, ...], budgets: Mapping[tuple[int, ...], float], delta: float
) -> float:
    """Return the smallest 1 - f(0) under (ε_μ, δ)-DP, by a linear program.

    Its columns are f, then the excess max(0, f(η) - e^ε f(η + μ)) of every η, for each shift μ.
    """
    size = math.prod(sizes)
    columns = size * (1 + len(budgets))
    matrix = lil_matrix((size * len(budgets) + len(budgets), columns))
    limits = np.zeros(matrix.shape[0])
    for block, (shift, epsilon) in enumerate(budgets.items()):
        for k, target in enumerate(shifted_positions(sizes, shift)):
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


# The oracles.


def strongest_form(*question, **options):
    """Return the strongest statement that any oracle makes about a question.

    The arguments are those of `error_rate_bounds`.
    """
    return error_rate_bounds(*question, **options).strongest


def directed_question(sizes, shifts, epsilon, delta=0.0, requires=MASS_ABOVE_RATIO):
    """Return a question of directed neighbours, under PDP by default."""
    return build_question(
        sizes, shifts, is_directed=True, epsilon=epsilon, delta=delta, requires=requires
    )


def dp_law(sizes, shifts, epsilon, delta):
    """Return the optimal noise under (ε, δ)-DP."""
    return hops.dp_law(directed_question(sizes, shifts, epsilon, delta))


def hop_law(sizes, shifts, epsilon):
    """Return the optimal noise at δ = 0. epsilon: one number, or a budget for each shift."""
    return dp_law(sizes, shifts, epsilon=epsilon, delta=0.0)


def level_cut_law(sizes, shifts, epsilon, delta):
    """Return the noise of the best level cut under (ε, δ)-PDP."""
    return next(cuts.state_level_cut(directed_question(sizes, shifts, epsilon, delta)))


def hop_distances(sizes, shifts):
    """Return the smallest number of shifts from 0 to every element, -1 if there is no path."""
    return hops.hop_distances(sizes, directed_question(sizes, shifts, epsilon=1.0).shifts)
