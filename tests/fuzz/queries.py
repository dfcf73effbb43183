"""Random queries for `wb.recommend`, and checks of the table that it returns.

A query is a dict of keywords of `wb.recommend`, for example {"answers": [0, 1, 2], "loss":
"squared", "max_shift": "1", "epsilon": "1", "delta": "0"}. The checks are:

* The first row has no larger loss than the channel of a linear program that is stated here with
  SciPy. If answers or outputs are real, the program has a grid of them.
* Every class that can serve the query has a row with a mechanism, and no other class has.
* The row of a class stays the same if the class is designed alone.
* No number changes if the answers are listed in another order, or if all are shifted.
"""

from __future__ import annotations

import math
import random
import time
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise
from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.optimize import linprog

import workbench as wb

TIGHT_TOLERANCES = {"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10}
# Name of a loss -> its value at a difference output - answer.
LOSSES = {
    "squared": lambda r: r * r,
    "absolute": abs,
    "error-rate": lambda r: (r != 0) * 1.0,
    "pinball:0.8": lambda r: max(-0.8 * r, 0.2 * r),
    "huber:2": lambda r: r * r / 2 if abs(r) <= 2 else 2 * (abs(r) - 1),
}
BIN_LOSSES = ("squared", "absolute", "pinball:0.8")  # Losses for which RR-on-Bins is designed.
EPSILONS = ("0.01", "0.1", "0.5", "1", "3", "8", "20")
DELTAS = ("0", "0", "1e-9", "1e-5", "0.01", "0.3")
# Number of outputs on the grid of the linear program if a design may publish any number.
GRID_OUTPUTS = 60
TIME_LIMIT = 120  # Seconds of one query. So few classes are stopped, also on a busy machine.
SHIFT = 7  # All answers and outputs are moved by this number in one of the checks.
Query = dict[str, Any]
Rows = dict[str, Any]  # Name of a class -> its row of the table.


def draw_queries(count: int, seed: int = 24) -> Iterator[Query]:
    """Yield random queries.

    One in six has answers in a range. Of these a third has a uniform prior, a third has the prior
    "worst" and a third has the prior "1,3". Of the queries with a list of answers, one in five is
    directed.

    Args:
        count: number of queries.
        seed: seed of the random generator.
    """
    rng = random.Random(seed)
    for number in range(count):
        budget = {"epsilon": rng.choice(EPSILONS), "delta": rng.choice(DELTAS)}
        if number % 6 == 5:
            prior = (None, "worst", "1,3")[number // 6 % 3]
            query = _draw_range_query(rng, prior)
        else:
            query = _draw_list_query(rng)
            if number % 5 == 3:
                query["directed"] = True
        yield query | budget


def _draw_range_query(rng: random.Random, prior: str | None) -> Query:
    """Draw a query whose answers are the real numbers of a range, without its budget."""
    low = rng.choice([0, -3, 100])
    width = rng.choice([1, 8, 50])
    query: Query = {
        "range": f"{low}..{low + width}",
        "loss": rng.choice(["absolute", "squared"]),
    }
    if rng.random() < 0.4:
        query["sensitivity"] = str(Fraction(width, rng.choice([2, 4])))
    if prior is not None:
        query["prior"] = prior
    return query


def _draw_list_query(rng: random.Random) -> Query:
    """Draw a query with two to six answers, without its budget."""
    k = rng.randint(2, 6)
    step = rng.choice([1, 2, 5, Fraction(1, 2)])
    places = [*range(k)] if rng.random() < 0.7 else sorted(rng.sample(range(2 * k), k))
    low = rng.randint(-6, 6)
    answers = [step * (low + place) for place in places]
    rng.shuffle(answers)
    query: Query = {"answers": answers, "loss": rng.choice([*LOSSES])}
    if rng.random() < 0.4:
        query["neighbours"] = "all"
    else:
        max_gap = max(b - a for a, b in pairwise(sorted(answers)))
        query["max_shift"] = str(max(max_gap, step * rng.randint(1, k)))
    prior_share = rng.random()
    if prior_share < 0.5:
        query["prior"] = [rng.choice([1, 1, 2, 5, 9]) for _ in answers]
    elif prior_share < 0.65:
        query["prior"] = "worst"
    if rng.random() < 0.35:
        query["outputs"] = sorted(rng.sample(answers, rng.randint(2, k)))
    return query


@dataclass(frozen=True)
class GridOptimum:
    """The optimum of the linear program with which a table is compared.

    Attributes:
        loss: smallest expected loss of a channel on the grid.
        tolerance: a design may have a loss that is larger by this share of it.
        max_loss: largest loss of an answer and output on the grid.
    """

    loss: float
    tolerance: float
    max_loss: float


def solve_on_grid(query: Query) -> GridOptimum:
    """Solve the linear program of a query, on a grid of outputs and, for a range, of answers."""
    if "range" in query:
        return _solve_range(query)
    return _solve_list(query)


def _solve_list(query: Query) -> GridOptimum:
    """Solve the program of a query with a list of answers."""
    x = np.array([float(v) for v in query["answers"]])
    outputs = np.array([float(v) for v in query.get("outputs", query["answers"])])
    has_fixed_outputs = "outputs" in query or query["loss"] == "error-rate"
    if not has_fixed_outputs:
        grid = np.linspace(x.min(), x.max(), GRID_OUTPUTS)
        outputs = np.unique(np.concatenate([outputs, grid]))
    table = np.array([[float(LOSSES[query["loss"]](o - a)) for o in outputs] for a in x])
    max_shift = math.inf
    if "max_shift" in query:
        max_shift = float(Fraction(query["max_shift"])) + 1e-9
    is_neighbour = np.abs(x[:, None] - x) <= max_shift
    if query.get("directed"):  # Only the pairs (larger answer, smaller answer) are protected.
        is_neighbour &= x[:, None] > x
    prior = query.get("prior", "uniform")
    if prior == "worst":
        weights = None
    elif prior == "uniform":
        weights = np.ones(x.size)
    else:
        weights = np.array(prior, dtype=float)
    loss = least_loss(table, weights, is_neighbour, query)
    return GridOptimum(loss, 1e-6 if has_fixed_outputs else 0.01, float(table.max()))


def _solve_range(query: Query) -> GridOptimum:
    """Solve the program of a query with a range, which is divided into cells of width h."""
    low, high = (float(v) for v in query["range"].split(".."))
    cell_count = 12 if float(query["delta"]) else 32
    h = (high - low) / cell_count
    x = low + h * (np.arange(cell_count) + 0.5)  # Centres of the cells.
    outputs = np.linspace(low, high, 2 * cell_count + 1)
    distance = np.abs(outputs - x[:, None])
    is_squared = query["loss"] == "squared"
    prior = query.get("prior", "1")
    if prior == "worst":  # The loss of a cell is the loss of its farther end.
        table = (distance + h / 2) ** (2 if is_squared else 1)
        weights = None
    else:  # The loss of a cell is the mean of the losses of its answers.
        table = distance**2 + h**2 / 12
        if not is_squared:
            table = np.where(2 * distance >= h, distance, h / 4 + distance**2 / h)
        part_weights = np.array([float(weight) for weight in prior.split(",")])
        weights = np.repeat(part_weights, cell_count // part_weights.size)
    sensitivity = high - low
    if "sensitivity" in query:
        sensitivity = float(Fraction(query["sensitivity"]))
    # Two cells are neighbours if any of their answers are, up to rounding.
    max_distance = math.ceil(sensitivity / h - 1e-9) * h + 1e-9 * h
    is_neighbour = np.abs(x[:, None] - x) <= max_distance
    loss = least_loss(table, weights, is_neighbour, query)
    return GridOptimum(loss, tolerance=0.01, max_loss=float(table.max()))


def least_loss(
    table: np.ndarray, weights: np.ndarray | None, near: np.ndarray, query: Query
) -> float:
    """Return the smallest expected loss Σ p(x) M(o|x) ℓ(x, o) of an (ε, δ)-DP channel M.

    The columns of the program are the k m entries of M, row by row; then, if δ > 0, an excess
    u >= M(o|x) - e^ε M(o|y) for each pair (x, y) of neighbours and output o; and then, without a
    prior, the loss of the worst answer.

    Args:
        table: (k, m) losses ℓ of answers and outputs.
        weights: (k,) the prior p is proportional to them. None for the loss of the worst answer.
        near: (k, k) whether the pair (x, y) is protected.
        query: the query, whose "epsilon" and "delta" are used.
    """
    k, m = table.shape
    epsilon = float(query["epsilon"])
    delta = float(query["delta"])
    pairs = [(i, j) for i in range(k) for j in range(k) if i != j and near[i, j]]
    excess_count = len(pairs) * m if delta else 0
    has_worst_column = weights is None
    column_count = k * m + excess_count + has_worst_column

    # Rows e^(-ε/2) (M(o|x) - u) - e^(ε/2) M(o|y) <= 0. With these factors the coefficients have
    # similar sizes.
    row = np.arange(len(pairs) * m)
    output = np.tile(np.arange(m), len(pairs))
    first_column = np.repeat([i for i, _ in pairs], m) * m + output
    second_column = np.repeat([j for _, j in pairs], m) * m + output
    ones = np.ones(row.size)
    factor = math.exp(-epsilon / 2)
    entries = [(row, first_column, factor * ones), (row, second_column, -ones / factor)]
    right_sides = [np.zeros(row.size)]
    row_count = row.size
    if delta:  # The excesses of each pair add up to at most δ.
        excess_column = k * m + row
        entries += [
            (row, excess_column, -factor * ones),
            (row_count + row // m, excess_column, ones),
        ]
        right_sides.append(np.full(len(pairs), delta))
        row_count += len(pairs)
    if has_worst_column:  # The loss of every answer is at most that of the worst one.
        channel_column = np.arange(k * m)
        entries += [
            (row_count + channel_column // m, channel_column, table.ravel()),
            (row_count + np.arange(k), np.full(k, column_count - 1), -np.ones(k)),
        ]
        right_sides.append(np.zeros(k))
        row_count += k
    i, j, values = (np.concatenate(part) for part in zip(*entries, strict=True))
    inequalities = sp.csr_array((values, (i, j)), shape=(row_count, column_count))
    sum_entries = (np.ones(k * m), (np.arange(k * m) // m, np.arange(k * m)))
    row_sums = sp.csr_array(sum_entries, shape=(k, column_count))

    prior = np.zeros(k) if weights is None else weights / weights.sum()
    channel_costs = (prior[:, None] * table).ravel()
    costs = np.concatenate([channel_costs, np.zeros(excess_count), np.ones(int(has_worst_column))])
    result = linprog(
        costs,
        A_ub=inequalities,
        b_ub=np.concatenate(right_sides),
        A_eq=row_sums,
        b_eq=np.ones(k),
        method="highs",
        options=TIGHT_TOLERANCES,
    )
    assert result.status == 0, result.message
    return float(result.fun)


def list_applicable_classes(query: Query) -> dict[str, bool]:
    """Return name -> whether the class can serve a query with a list, by its definition."""
    answers = sorted(query["answers"])
    outputs = {*query.get("outputs", answers)}
    has_answers_as_outputs = outputs == {*answers}
    has_worst_prior = query.get("prior") == "worst"
    max_shift = math.inf if "neighbours" in query else Fraction(query["max_shift"])
    are_all_neighbours = answers[-1] - answers[0] <= max_shift
    are_equally_spaced = len({b - a for a, b in pairwise(answers)}) == 1
    return {
        "best channel": True,
        "integer noise, clamped": True,
        "clamped geometric": True,
        "clamped truncated geometric": float(query["delta"]) > 0,
        "modulo noise": are_equally_spaced and has_answers_as_outputs and not has_worst_prior,
        "exponential": has_answers_as_outputs,
        "randomized response": {*answers} <= outputs,
        "RR-on-Bins": not query.get("directed")
        and are_all_neighbours
        and not has_worst_prior
        and query["loss"] in BIN_LOSSES,
    }


@dataclass(frozen=True)
class Inspection:
    """The result of checking one query.

    Attributes:
        problems: one sentence for each wrong number or row.
        cpu_seconds: CPU time of the recommendation, without the checks.
    """

    problems: list[str]
    cpu_seconds: float


def inspect_recommendation(query: Query, *, design_alone: bool = True) -> Inspection:
    """Recommend a mechanism for a query and check the table.

    Args:
        query: keywords of `wb.recommend`.
        design_alone: whether to design every class alone as well, which takes long.
    """
    begin = time.process_time()
    table = wb.recommend(**query, time_limit=TIME_LIMIT)
    cpu_seconds = time.process_time() - begin
    rows = {row["class"]: row for row in table}
    problems = _check_losses_and_bounds(query, table, rows)
    if "range" not in query:
        problems += _check_classes(query, rows)
        problems += _check_moved_answers(query, rows)
    if design_alone:
        for row in table:
            problems += _check_class_alone(query, row)
    return Inspection(problems, cpu_seconds)


def _check_losses_and_bounds(query: Query, table: Any, rows: Rows) -> list[str]:
    """Compare the first row and the bound of all channels with the linear program on a grid."""
    problems = []
    grid = solve_on_grid(query)
    rounding_error = 1e-8 * grid.max_loss
    first_loss = table[0]["objective"]
    if first_loss > grid.loss * (1 + grid.tolerance) + rounding_error:
        problems.append(f"{table[0]['class']} has loss {first_loss}, a channel has {grid.loss}")
    channel_bound = rows["channel on a grid" if "range" in query else "best channel"]["bound"]
    if (channel_bound or 0.0) > grid.loss * (1 + 1e-6) + rounding_error:
        problems.append(f"the bound {channel_bound} of all channels is above {grid.loss}")
    for row in table:
        loss = row["objective"]
        bound = row["bound"]
        if loss is not None and bound is not None and bound > loss * (1 + 1e-9) + 1e-15:
            problems.append(f"{row['class']}: the bound {bound} is above the loss {loss}")
    return problems


def _check_classes(query: Query, rows: Rows) -> list[str]:
    """Compare the classes that have a mechanism with those that can serve the query."""
    problems = []
    for name, is_applicable in list_applicable_classes(query).items():
        notes = rows[name]["notes"]
        has_mechanism = rows[name]["objective"] is not None
        is_too_long = "too long" in notes or "would" in notes
        if has_mechanism and not is_applicable:
            problems.append(f"{name} has a mechanism although it does not apply: {notes}")
        if is_applicable and not has_mechanism and not is_too_long:
            problems.append(f"{name} has no mechanism although it applies: {notes}")
    return problems


def _check_moved_answers(query: Query, rows: Rows) -> Iterator[str]:
    """List the answers in reverse order, shifted by SHIFT, and compare the losses."""
    moved_query = {**query, "answers": [answer + SHIFT for answer in query["answers"][::-1]]}
    if isinstance(query.get("prior"), list):
        moved_query["prior"] = query["prior"][::-1]
    if "outputs" in query:
        moved_query["outputs"] = [output + SHIFT for output in query["outputs"]]
    moved_table = wb.recommend(**moved_query, time_limit=TIME_LIMIT)
    moved_rows = {row["class"]: row for row in moved_table}
    for name, row in rows.items():
        loss = row["objective"]
        moved_loss = moved_rows[name]["objective"]
        has_same_loss = loss is None and moved_loss is None
        if loss is not None and moved_loss is not None:
            has_same_loss = _have_same_optimum(row, moved_rows[name])
        if not has_same_loss:
            yield f"{name}: loss {loss}, and {moved_loss} after moving the answers"


def _have_same_optimum(first_row: Any, second_row: Any) -> bool:
    """Return whether the losses of two rows agree to 1e-6, or both may have the same optimum.

    The second holds if their difference is at most the distance of the larger loss from the smaller
    proven bound.
    """
    first_loss = first_row["objective"]
    second_loss = second_row["objective"]
    difference = abs(first_loss - second_loss)
    if difference <= 1e-6 * abs(first_loss) + 1e-12:
        return True
    bounds = []
    for row in (first_row, second_row):
        is_stopped = "stopped" in row["notes"]
        has_bound = is_stopped or row["bound"] is not None
        bounds.append((row["bound"] or 0.0) if has_bound else row["objective"])
    min_bound = min(bounds)
    max_difference = abs(max(first_loss, second_loss) - min_bound) * (1 + 1e-9)
    return min_bound <= first_loss * (1 + 1e-9) and difference <= max_difference


def _check_class_alone(query: Query, row: Any) -> Iterator[str]:
    """Design the class of a row alone, and compare its loss with the row.

    A class that was stopped at its share of the time has more time alone.
    """
    loss = row["objective"]
    if loss is None:
        return
    is_stopped = "stopped" in row["notes"]
    (single_row,) = wb.recommend(**query, time_limit=TIME_LIMIT, only=row["class"])[:1]
    single_loss = single_row["objective"]
    tolerance = 1e-9 * abs(loss) + 1e-15
    if is_stopped:
        if single_loss is None:  # The class was stopped again, before it had a mechanism.
            return
        bound = row["bound"] or 0.0
        # "Best so far" may be a mechanism of another class, which this class need not reach.
        max_loss = math.inf if "best so far" in row["notes"] else loss
        is_right = bound - tolerance <= single_loss <= max_loss + tolerance
    else:
        is_right = single_loss is not None and abs(single_loss - loss) <= tolerance
    if not is_right:
        yield f"{row['class']}: loss {loss} with bound {row['bound']}, alone {single_loss}"
