"""Random queries for `wb.recommend`, and what must be true of each answer.

An answer has no larger loss than a plain linear program, which is stated here on a finer grid where
outputs or answers are real. Every class that applies is in the table, and a class alone makes its
row. Neither order nor shift of the answers changes a number.
"""

from __future__ import annotations

import math
import random
import time
from collections.abc import Iterator
from fractions import Fraction
from itertools import pairwise
from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.optimize import linprog

import workbench as wb

TIGHT = {"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10}
LOSSES = {
    "squared": lambda r: r * r,
    "absolute": abs,
    "error-rate": lambda r: (r != 0) * 1.0,
    "pinball:0.8": lambda r: max(-0.8 * r, 0.2 * r),
    "huber:2": lambda r: r * r / 2 if abs(r) <= 2 else 2 * (abs(r) - 1),
}
BIN_LOSSES = ("squared", "absolute", "pinball:0.8")
EPSILONS, DELTAS = (
    ("0.01", "0.1", "0.5", "1", "3", "8", "20"),
    ("0", "0", "1e-9", "1e-5", "0.01", "0.3"),
)
BETWEEN = 60  # outputs of the plain program between the ends, where a design may publish any number
LIMIT = 120  # seconds: a busy machine changes few numbers
Query = dict[str, Any]


def generated(count: int, seed: int = 24) -> Iterator[Query]:
    """Queries as keywords of `wb.recommend`; one in six has answers in a range, a third of them
    uniform, a third with a prior, and for a third the worst answer counts; of the lists one in five
    is directed.
    """
    draw = random.Random(seed)
    for number in range(count):
        budget = {"epsilon": draw.choice(EPSILONS), "delta": draw.choice(DELTAS)}
        if number % 6 == 5:
            low, width = draw.choice([0, -3, 100]), draw.choice([1, 8, 50])
            query: Query = {
                "range": f"{low}..{low + width}",
                "loss": draw.choice(["absolute", "squared"]),
            }
            if draw.random() < 0.4:
                query["sensitivity"] = str(Fraction(width, draw.choice([2, 4])))
            if prior := (None, "worst", "1,3")[number // 6 % 3]:
                query["prior"] = prior
            yield query | budget
            continue
        yield _list(draw) | ({"directed": True} if number % 5 == 3 else {}) | budget


def _list(draw: random.Random) -> Query:
    k, step = draw.randint(2, 6), draw.choice([1, 2, 5, Fraction(1, 2)])
    places = [*range(k)] if draw.random() < 0.7 else sorted(draw.sample(range(2 * k), k))
    low = draw.randint(-6, 6)
    answers = [step * (low + place) for place in places]
    draw.shuffle(answers)
    query: Query = {"answers": answers, "loss": draw.choice([*LOSSES])}
    if draw.random() < 0.4:
        query["neighbours"] = "all"
    else:
        gap = max(b - a for a, b in pairwise(sorted(answers)))
        query["max_shift"] = str(max(gap, step * draw.randint(1, k)))
    kind = draw.random()
    if kind < 0.5:
        query["prior"] = [draw.choice([1, 1, 2, 5, 9]) for _ in answers]
    elif kind < 0.65:
        query["prior"] = "worst"
    if draw.random() < 0.35:
        query["outputs"] = sorted(draw.sample(answers, draw.randint(2, k)))
    return query


# The plain programs.


def plain(query: Query) -> tuple[float, float, float]:
    """Return the minimal loss of channels on a grid, its tolerance, and the size of losses."""
    return _plain_range(query) if "range" in query else _plain_list(query)


def _plain_list(query: Query) -> tuple[float, float, float]:
    x = np.array([float(v) for v in query["answers"]])
    given = "outputs" in query or query["loss"] == "error-rate"
    o = np.array([float(v) for v in query.get("outputs", query["answers"])])
    o = o if given else np.unique(np.concatenate([o, np.linspace(x.min(), x.max(), BETWEEN)]))
    table = np.array([[float(LOSSES[query["loss"]](b - a)) for b in o] for a in x])
    reach = math.inf if "neighbours" in query else float(Fraction(query["max_shift"])) + 1e-9
    near = np.abs(x[:, None] - x) <= reach
    if query.get("directed"):  # the larger answer against the other alone
        near &= x[:, None] > x
    prior = query.get("prior", "uniform")
    weights = (
        None
        if prior == "worst"
        else np.ones(x.size)
        if prior == "uniform"
        else np.array(prior, dtype=float)
    )
    return least_loss(table, weights, near, query), 1e-6 if given else 0.01, float(table.max())


def _plain_range(query: Query) -> tuple[float, float, float]:
    low, high = (float(v) for v in query["range"].split(".."))
    count = 12 if float(query["delta"]) else 32
    h = (high - low) / count
    x, o = low + h * (np.arange(count) + 0.5), np.linspace(low, high, 2 * count + 1)
    r = np.abs(o - x[:, None])
    squared, prior = query["loss"] == "squared", query.get("prior", "1")
    table = r**2 + h**2 / 12 if squared else np.where(2 * r >= h, r, h / 4 + r**2 / h)
    if prior == "worst":  # at the farther end of a cell, for every output
        table = (r + h / 2) ** (2 if squared else 1)
    parts = np.array([float(w) for w in prior.split(",")]) if prior != "worst" else np.ones(1)
    apart = float(Fraction(query["sensitivity"])) if "sensitivity" in query else high - low
    near = np.abs(x[:, None] - x) <= math.ceil(apart / h - 1e-9) * h + 1e-9 * h
    weights = None if prior == "worst" else np.repeat(parts, count // parts.size)
    return least_loss(table, weights, near, query), 0.01, float(table.max())


def least_loss(
    table: np.ndarray, weights: np.ndarray | None, near: np.ndarray, query: Query
) -> float:
    """Minimise Σ p(x) M(o|x) ℓ(x, o), or with weights None the largest loss of any x."""
    (k, m), (epsilon, delta) = table.shape, (float(query["epsilon"]), float(query["delta"]))
    pairs = [(i, j) for i in range(k) for j in range(k) if i != j and near[i, j]]
    slack, worst = len(pairs) * m if delta else 0, weights is None
    columns = k * m + slack + worst
    at, o = np.arange(len(pairs) * m), np.tile(np.arange(m), len(pairs))
    first, second = (np.repeat([pair[side] for pair in pairs], m) * m + o for side in (0, 1))
    ones = np.ones(at.size)
    share = math.exp(-epsilon / 2)  # of a row, so that its coefficients are near 1
    entries = [(at, first, share * ones), (at, second, -ones / share)]
    high = [np.zeros(at.size)]
    if delta:
        entries += [(at, k * m + at, -share * ones), (at.size + at // m, k * m + at, ones)]
        high.append(np.full(len(pairs), delta))
    rows = at.size + (len(pairs) if delta else 0)
    if worst:
        each = np.arange(k * m)
        entries += [
            (rows + each // m, each, table.ravel()),
            (rows + np.arange(k), np.full(k, columns - 1), -np.ones(k)),
        ]
        high.append(np.zeros(k))
        rows += k
    i, j, v = (np.concatenate(part) for part in zip(*entries, strict=True))
    upper = sp.csr_array((v, (i, j)), shape=(rows, columns))
    equal = sp.csr_array(
        (np.ones(k * m), (np.arange(k * m) // m, np.arange(k * m))), shape=(k, columns)
    )
    shares = np.zeros(k) if weights is None else weights / weights.sum()
    cost = np.concatenate([(shares[:, None] * table).ravel(), np.zeros(slack), np.ones(int(worst))])
    found = linprog(
        cost, upper, np.concatenate(high), equal, np.ones(k), method="highs", options=TIGHT
    )
    assert found.status == 0, found.message
    return float(found.fun)


# What must be true.


def applies(query: Query) -> dict[str, bool]:
    """Whether a class can serve a list, by its definition."""
    answers = sorted(query["answers"])
    outputs, delta = {*query.get("outputs", answers)}, float(query["delta"])
    same, prior = outputs == {*answers}, query.get("prior")
    reach = math.inf if "neighbours" in query else Fraction(query["max_shift"])
    everyone = answers[-1] - answers[0] <= reach
    even = len({b - a for a, b in pairwise(answers)}) == 1
    return {
        "best channel": True,
        "integer noise, clamped": True,
        "clamped geometric": True,
        "clamped truncated geometric": delta > 0,
        "modulo noise": even and same and prior != "worst",
        "exponential": same,
        "randomized response": {*answers} <= outputs,
        "RR-on-Bins": not query.get("directed")
        and everyone
        and prior != "worst"
        and query["loss"] in BIN_LOSSES,
    }


def problems(query: Query, *, alone: bool = True) -> tuple[list[str], float]:
    """What is wrong with the answer to a query, and the seconds of the processor that it took."""
    begin = time.process_time()
    table = wb.recommend(**query, time_limit=LIMIT)
    seconds, wrong = time.process_time() - begin, []
    rows = {row["class"]: row for row in table}
    least, slack, size = plain(query)
    tiny = 1e-8 * size
    if table[0]["objective"] > least * (1 + slack) + tiny:
        wrong.append(f"{table[0]['class']} costs {table[0]['objective']}, a plain program {least}")
    best = rows["channel on a grid" if "range" in query else "best channel"]
    if (best["bound"] or 0.0) > least * (1 + 1e-6) + tiny:
        wrong.append(f"bound {best['bound']} of all channels above {least}")
    for row in table:
        served, bound = row["objective"], row["bound"]
        if served is not None and bound is not None and bound > served * (1 + 1e-9) + 1e-15:
            wrong.append(f"{row['class']}: bound {bound} above {served}")
    if "range" not in query:
        for name, expected in applies(query).items():
            too_long = "too long" in rows[name]["notes"] or "would" in rows[name]["notes"]
            if (rows[name]["objective"] is not None) != expected and not (expected and too_long):
                wrong.append(f"{name}: {'missing' if expected else 'there'}: {rows[name]['notes']}")
        wrong += _moved(query, rows)
    for row in rows.values() if alone else ():
        wrong += _alone(query, row)
    return wrong, seconds


def _moved(query: Query, rows: dict[str, Any]) -> Iterator[str]:
    """The same query with its answers in another order, and seven steps further."""
    order, prior = [*range(len(query["answers"]))][::-1], query.get("prior")
    moved = {**query, "answers": [query["answers"][i] + 7 for i in order]}
    if isinstance(prior, list):
        moved["prior"] = [prior[i] for i in order]
    if "outputs" in query:
        moved["outputs"] = [o + 7 for o in query["outputs"]]
    other = {row["class"]: row for row in wb.recommend(**moved, time_limit=LIMIT)}
    for name, row in rows.items():
        here, there = row["objective"], other[name]["objective"]
        if (here is None) != (there is None) or (
            here is not None and not _near(here, there, 1e-6, row, other[name])
        ):
            yield f"{name}: {here}, moved {there}"


def _near(here: float, there: float, within: float, *rows: Any) -> bool:
    """Within so much, or what lies between the bounds that are proven."""
    lowest = min((row["bound"] or 0.0) if "stopped" in row["notes"] or row["bound"] is not None else row["objective"]
                 for row in rows)  # fmt: skip
    return abs(here - there) <= within * abs(here) + 1e-12 or (
        lowest <= here * (1 + 1e-9)
        and abs(here - there) <= abs(max(here, there) - lowest) * (1 + 1e-9)
    )


def _alone(query: Query, row: Any) -> Iterator[str]:
    """Design the class of a row alone. The class of a row that was stopped may end later."""
    here = row["objective"]
    if here is None:
        return
    stopped = "stopped" in row["notes"]
    again = wb.recommend(**query, time_limit=LIMIT, only=row["class"])[0]["objective"]
    if stopped and again is None:  # before it had a mechanism
        return
    most = 1e-9 * abs(here) + 1e-15
    if stopped:  # no worse than it was, unless that was another class's
        low, high = row["bound"] or 0.0, math.inf if "best so far" in row["notes"] else here
        right = low - most <= again <= high + most
    else:
        right = again is not None and abs(again - here) <= most
    if not right:
        yield f"{row['class']} alone costs {again}, the row {here} from {row['bound']} on"
