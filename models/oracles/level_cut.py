"""Level cut: a feasible mechanism for any single-ε relation under (ε, δ)-PDP, by emptying the hop levels beyond L.

With w = a^{hops} and the holes {hops > L}, a step leads from the support into a hole only from level L, so
    T_L = Σ_{i <= L} n_i a^i,    S_L = a^L · max over μ of the number of level-L elements η with η + μ on level L + 1,
n_i elements on level i (`cuts`). On a single shift, or a pair ±μ, this is the optimum; elsewhere an upper bound.

| here     | meaning                                                            |
|----------|--------------------------------------------------------------------|
| level    | least number of shifts from 0, `hop_distances`                     |
| L = 0    | everything but 0 is a hole: f(0) = δ, the paper's (42)             |
"""

import math
from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from models.oracles.closed_form import (
    ClosedForm,
    Shift,
    check_budgets,
    check_delta,
    check_epsilon,
    check_sizes,
)
from models.oracles.cuts import best_cut, cut_pmf
from models.oracles.hops import SMALL, UNREACHABLE, hop_distances
from models.oracles.question import Question
from models.requirements import MASS_ABOVE_RATIO
from solvers.arrays import Integers, Vector


class _Cuts(NamedTuple):
    """The cuts after level 0, 1, ..., the last of them none at all: what the shifts and ε decide, whatever δ."""

    levels: Integers  # of every element
    weights: Vector  # a^levels
    totals: Vector  # T and S of every cut (`cuts`)
    losses: Vector


def _cuts(shape: tuple[int, ...], shifts: tuple[Shift, ...], epsilon: float) -> _Cuts:
    levels = hop_distances(shape, shifts).reshape(shape)
    last = int(levels.max())
    axes = tuple(range(len(shape)))
    outward = np.zeros(last + 1)
    for shift in shifts:
        ahead = np.roll(levels, tuple(-step for step in shift), axis=axes)  # the level of η + μ
        leaving = levels[(levels >= 0) & (ahead == levels + 1)]
        outward = np.maximum(outward, np.bincount(leaving, minlength=last + 1))
    powers = np.exp(-epsilon * np.arange(last + 1))
    flat = levels.reshape(-1)
    weights = np.where(flat == UNREACHABLE, 0.0, powers[flat])
    counts = np.bincount(flat[flat >= 0], minlength=last + 1)
    totals = 1.0 + np.concatenate([[0.0], np.cumsum((counts * powers)[1:])])
    return _Cuts(flat, weights, totals, outward * powers)


_remembered = lru_cache(maxsize=64)(_cuts)  # δ moves more often than ε


def level_cut_law(sizes: Sequence[int], shifts: Sequence[Sequence[int]], epsilon: float, delta: float) -> ClosedForm:
    """Achievable error rate and PMF under (ε, δ)-PDP, any shifts, any dimension, one ε. Raises OutsideDomain."""
    shape = check_sizes(sizes)
    level = check_epsilon(epsilon)
    steps = tuple(check_budgets(shape, shifts, level))
    cuts = (_remembered if math.prod(shape) <= SMALL else _cuts)(shape, steps, level)
    total = float(cuts.totals[-1])
    cut, _ = best_cut(cuts.totals[:-1], cuts.losses[:-1], total, check_delta(delta))
    if cut is None:
        error, pmf = (total - 1.0) / total, cuts.weights / total
    else:
        error, pmf = cut_pmf(cuts.weights, cuts.levels > cut, float(cuts.losses[cut]), delta)
    return ClosedForm(
        name="level cut",
        value=error,
        pmf=pmf,
        kind="upper bound",
        proof="Any shifts, one ε: cutting the hop levels beyond L breaks e^ε only on level L, within δ; feasible, "
        "not claimed optimal.",
    )


def statements(question: Question) -> Iterator[ClosedForm]:
    """Give every PDP question with one ε an achievable error rate."""
    if question.requires == MASS_ABOVE_RATIO and question.epsilon is not None:
        yield level_cut_law(question.sizes, question.shifts, question.epsilon, question.delta)
