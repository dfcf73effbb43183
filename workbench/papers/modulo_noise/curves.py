"""The rows that declared/modulo_noise.toml asks for: errors by solver and oracle, PMFs, exact breakpoints, baselines.

    f(0) = max{ 1/T₀, max over cuts of min(1/T, δ/S) }    rises from flat level to flat level (`models.oracles.cuts`)

A flat level 1/T is reached at δ = S/T and left at δ = S'/T, where the next cut (of loss S') begins to pay. The PDP δ
of a baseline,

    δ(ε) = max over neighbouring answers q, q' = q ± 1 of  Σ_k Pr[k|q] over {k : Pr[k|q] > e^ε Pr[k|q']}       (2), (3)

is a staircase in ε whose steps are the privacy losses ln Pr[k|q]/Pr[k|q']. Grids are texts or lists
(`workbench.io.parameter_grid`); questions are the keywords of `ModuloNoise`, one-sided where they do not say otherwise.

The neighbours of Figs 5-8 are not given in the paper: ours are answers that differ by one, M = {1} as the paper's M is
one-sided, M = {±1} where we say symmetric. The discrete count mechanism [10] is not specified in the paper.

| loss here        | what it is                                                                                  |
|------------------|---------------------------------------------------------------------------------------------|
| paper's MSE      | Σ η² f(η), (11): noise that wraps past n counts as the jump η                                |
| true MSE         | E(published - true)² over uniform answers, wrapping included: Σ η (N - η) f(η)              |
| baselines' MSE   | E(published - true)² of the clamped output over uniform answers                             |
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from functools import lru_cache
from itertools import pairwise, product
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from models.oracles.bounded_difference import column_cut_law
from models.oracles.column_cut import every_cut
from models.oracles.cut_vectors import Grid
from models.oracles.cuts import level_cuts
from models.oracles.printed_theorem3 import printed_pmf, staircases
from models.oracles.single_distance import breakpoints, level_curve
from workbench.errors import WorkbenchError
from workbench.exact.numbers import exact
from workbench.families.modulo.baselines import Scan
from workbench.io.parameter_grid import Grid as Numbers
from workbench.io.parameter_grid import in_order
from workbench.mechanisms.baselines.count_queries import (
    FAMILIES,
    clamped_gaussian,
    clamped_geometric,
    data_independent,
    fit,
    geometric_alpha,
)
from workbench.mechanisms.channel import Channel
from workbench.papers.modulo_noise.common import (
    Floats,
    law,
    least_deltas,
    needed,
    question_of,
    single,
    snap,
    solve,
    solve_each,
)

Points = list[tuple[float, float]]

_TIE = 1e-11  # two losses this close are one
_MOST = 3.0  # the largest ε shown of a staircase


def _numbers(grid: Numbers) -> list[float]:
    return [float(number) for number in in_order(grid, "grid")]


# Optimal noise, by the solver and by the oracles.


def least_error(
    epsilon: Numbers, delta: Numbers = 0, *, notion: str = "pdp", loss: str = "error-rate", **question: Any
) -> pd.DataFrame:
    """The solver's least error at every (ε, δ)."""
    requests = list(product(_numbers(epsilon), _numbers(delta)))
    errors = solve_each(question_of(**question), requests, notion=notion, loss=loss)
    return pd.DataFrame(requests, columns=["epsilon", "delta"]).assign(solver=errors)


def least_deltas_at(epsilon: Numbers, max_loss: float, *, loss: str = "error-rate", **question: Any) -> pd.DataFrame:
    """The solver's least δ at every ε within a largest loss."""
    grid = _numbers(epsilon)
    deltas = least_deltas(question_of(**question), [(e, max_loss) for e in grid], loss=loss)
    return pd.DataFrame({"epsilon": grid, "delta": deltas})


def law_error(epsilon: Numbers, delta: Numbers = 0, *, notion: str = "pdp", **question: Any) -> pd.DataFrame:
    """The oracle's error rate at every (ε, δ), with its name and kind."""
    laws = [(e, d, law(question_of(**question), e, d, notion)) for e, d in product(_numbers(epsilon), _numbers(delta))]
    rows = [(e, d, closed.value, closed.name, closed.kind) for e, d, closed in laws]
    return pd.DataFrame(rows, columns=["epsilon", "delta", "law", "law_name", "law_kind"])


def both_errors(**request: Any) -> pd.DataFrame:
    """`least_error` and `law_error` side by side."""
    return least_error(**request).merge(law_error(**request))


def pmf(epsilon: Numbers, **question: Any) -> pd.DataFrame:
    """The optimal PMF at δ = 0, by the oracle and by LP (14), one row for every noise value of every ε."""
    relation = question_of(**question)
    places = np.indices(relation.sizes).reshape(len(relation.sizes), -1)
    etas = {"eta": places[0]} if len(places) == 1 else {"eta1": places[0], "eta2": places[1]}
    parts = []
    for e in _numbers(epsilon):
        closed, solved = law(relation, e), solve(relation, e)
        masses = np.array([snap(mass) for mass in solved.mechanism.pmf])
        parts.append(
            pd.DataFrame(
                {
                    "epsilon": e,
                    **etas,
                    "law": closed.pmf,
                    "solver": masses,
                    "solver_f0": masses[0],
                    "error_rate": closed.value,
                }
            )
        )
    return pd.concat(parts)


def pmf_at(epsilon: float, delta: Numbers, **question: Any) -> pd.DataFrame:
    """The oracle's PMF at every δ (the column-cut law's for differences 1..μ̄), and the solver's f(0)."""
    solved = least_error(epsilon, delta, **question)
    parts = []
    for d, error in zip(solved["delta"], solved["solver"], strict=True):
        cut = column_cut_law(question["n"], question["max_shift"], epsilon, d) if "max_shift" in question else None
        closed = cut or law(question_of(**question), epsilon, d)
        masses = pd.DataFrame({"delta": d, "law": closed.pmf, "solver_f0": snap(1 - error)})
        parts.append(masses.rename_axis("eta").reset_index())
    return pd.concat(parts)


def theorem2(n: int, shift: int, epsilon: float) -> pd.DataFrame:
    """The ends of the flat regions of Theorem 2, (19), and the solver in the middle of every region."""
    question = single(n, shift)
    ends = np.column_stack(breakpoints(n + 1, epsilon)).ravel()
    flat = pd.DataFrame({"kind": "flat", "k": np.arange(ends.size) // 2, "delta": ends})
    flat["name"] = [f"δ{bar}{'₀₁₂₃₄₅₆₇₈₉'[k]}" for k in range(n + 1) for bar in ("\u0332", "\u0304")]
    middles = [(a + b) / 2 for a, b in pairwise(ends[:-1].tolist())]
    solved = solve_each(question, [(epsilon, delta) for delta in middles])
    table = pd.concat([flat, pd.DataFrame({"kind": "solver", "k": -1, "name": "", "delta": middles, "solver": solved})])
    return table.assign(error_rate=[law(question, epsilon, delta).value for delta in table["delta"]])


def theorem3(n: int, max_shift: int, epsilon: float, delta: float) -> pd.DataFrame:
    """The PMF of the column-cut law and the one that Theorem 3 prints, and the δ that each needs."""
    question = question_of(n=n, max_shift=max_shift)
    table = pmf_at(epsilon, delta, n=n, max_shift=max_shift)
    paper = printed_pmf(n, max_shift, epsilon, delta)
    uses = [snap(needed(masses, question, epsilon)) for masses in (table["law"].to_numpy(), paper)]
    return table.assign(theorem3=paper, law_delta=uses[0], theorem3_delta=uses[1])


# Curves with their exact breakpoints, as the points to join by straight lines.


def _cut_curve(totals: Floats, losses: Floats, total: float) -> Points:
    """(δ, f(0)) at every breakpoint of the upper envelope of cuts, from δ = 0 to δ = 1.

    totals, losses: T and S of the cuts, shape (cuts,), the cut of everything but 0 (T = S = 1) included; total: T₀.
    """
    points, level = [(0.0, 1.0 / total)], 1.0 / total
    for index in np.lexsort((totals, losses)):  # cheapest first; at one price the highest level
        reached, loss = 1.0 / float(totals[index]), float(losses[index])
        if reached > level * (1 + 1e-12):
            points += [(level * loss, level), (reached * loss, reached)]
            level = reached
    return points


def column_cut_curve(n: int, max_shift: int, epsilon: float) -> Points:
    """(δ, f(0)) of the column-cut law at its breakpoints."""
    grid = Grid(n, max_shift, epsilon)
    cuts = every_cut(grid)
    if cuts is None:
        raise WorkbenchError(f"Too many cut vectors to list for n = {n}, mu_bar = {max_shift}.")
    return _cut_curve(np.append(cuts.totals, 1.0), np.append(cuts.losses, 1.0), grid.total)


def single_curve(order: int, epsilon: float) -> Points:
    """(δ, f(0)) of Theorem 2 at its breakpoints; order: N_μ."""
    cuts = level_cuts((order,), ((1,),), epsilon)
    return _cut_curve(cuts.totals, cuts.losses, cuts.total)


def printed_curve(n: int, max_shift: int, epsilon: float) -> Points:
    """(δ, f(0)) of Theorem 3 as printed, at its printed boundaries; wrong, see `errata_checks`."""
    ends = [(end, stairs.mass) for stairs in staircases(n, max_shift, epsilon) for end in (stairs.lower, stairs.upper)]
    return [*ends, (1.0, 1.0)]


def _joined(curve: Callable[..., Points]) -> Callable[..., pd.DataFrame]:
    def rows(**request: Any) -> pd.DataFrame:
        return pd.DataFrame(curve(**request), columns=["delta", "f0"])

    return rows


def level(epsilon: Numbers, order: int, error_rate: float, *, symmetric: bool = False) -> pd.DataFrame:
    """The least δ for an error rate at every ε: Corollary 1 and its symmetric form."""
    grid = _numbers(epsilon)
    return pd.DataFrame(
        {"epsilon": grid, "delta": [level_curve(order, e, error_rate, both_ways=symmetric) for e in grid]}
    )


# Baselines.


def adjacent_pairs(table: Floats) -> tuple[Floats, Floats]:
    """Rows q and rows q ± 1 of a channel, aligned. Shapes (2n, outputs)."""
    return np.concatenate([table[:-1], table[1:]]), np.concatenate([table[1:], table[:-1]])


def two_sided(weights: Callable[[Floats], Floats], reach: int) -> tuple[Floats, Floats]:
    """The law proportional to weights(η) on -reach..reach, and the same law moved by one: noise without clamping."""
    masses = weights(np.arange(-reach, reach + 1, dtype=float))
    masses = masses / masses.sum()
    return masses[None, :-1], masses[None, 1:]


def pdp_steps(p: Floats, q: Floats, most: float = _MOST) -> Points:
    """(ε from which on, δ) of the staircase δ(ε) on [0, most], of all pairs of rows p[i], q[i]."""
    with np.errstate(divide="ignore", invalid="ignore"):
        losses = np.where(p > 0, np.log(p / q), -np.inf)
    starts = np.unique(np.round(losses[(losses > _TIE) & (losses <= most)], 11))
    points: Points = []
    for start in (0.0, *starts.tolist()):
        delta = float(np.where(losses > start + _TIE, p, 0.0).sum(axis=1).max())
        if not points or delta < points[-1][1] - 1e-15:
            points.append((float(start), delta))
    return points


def _stepped(p: Floats, q: Floats, parameter: float) -> pd.DataFrame:
    return pd.DataFrame(pdp_steps(p, q), columns=["epsilon", "delta"]).assign(parameter=parameter)


def fitted_steps(family: str, n: int, **target: float) -> pd.DataFrame:
    """δ(ε) of the baseline that has an MSE or an error rate."""
    x = fit(family, n, **target)
    return _stepped(*adjacent_pairs(FAMILIES[family].build(n, x).matrix), x)


class _Noise(NamedTuple):
    """Noise on the integers. weights: η -> f(η) but for a factor, next to nothing beyond `reach`; clamped: (n,
    parameter) -> the channel on 0..n."""

    parameter: float
    weights: Callable[[Floats], Floats]
    reach: int
    clamped: Callable[[int, float], Channel]


def _noise(variance: float, alpha: float | None, *, gaussian: bool) -> _Noise:
    """Geometric noise of this α, or of the α with this variance; or Gaussian noise."""
    if gaussian:
        return _Noise(variance, lambda eta: np.exp(-(eta**2) / (2 * variance)), 60, clamped_gaussian)
    ratio = geometric_alpha(variance) if alpha is None else alpha
    return _Noise(ratio, lambda eta: np.asarray(ratio ** np.abs(eta)), 400, clamped_geometric)


def noise_steps(
    variance: float, alpha: float | None = None, n: int | None = None, *, gaussian: bool = False
) -> pd.DataFrame:
    """δ(ε) of noise clamped into 0..n, or (without n) not."""
    noise = _noise(variance, alpha, gaussian=gaussian)
    free = two_sided(noise.weights, noise.reach)
    pair = free if n is None else adjacent_pairs(noise.clamped(n, noise.parameter).matrix)
    return _stepped(*pair, noise.parameter)


def noise_pmf(n: int, variance: float, alpha: float | None = None, *, gaussian: bool = False) -> pd.DataFrame:
    """The masses of noise on -n..n."""
    noise, eta = _noise(variance, alpha, gaussian=gaussian), np.arange(-n, n + 1.0)
    total = noise.weights(np.arange(-noise.reach, noise.reach + 1.0)).sum()
    return pd.DataFrame({"parameter": noise.parameter, "eta": eta, "mass": noise.weights(eta) / total})


@lru_cache
def _scan(family: str, n: int, steps: int) -> Scan:
    return Scan(family, n, [1], steps)


def least_parameter(family: str, n: int, epsilon: float, delta: float, steps: int = 401) -> float:
    """The smallest parameter of a family whose clamped mechanism on 0..n is (epsilon, delta)-PDP for neighbours ± 1,
    by a scan of so many steps."""
    best = _scan(family, n, steps).audited(exact(epsilon, "epsilon"), exact(delta, "delta"), "pdp")
    if best is None:
        raise WorkbenchError(f"No {family} mechanism reaches delta = {delta:g} at epsilon = {epsilon:g}.")
    return best[0]


def least_baseline(family: str, n: int, epsilon: Numbers, delta: float, steps: int = 401) -> pd.DataFrame:
    """A baseline with the smallest parameter that meets (ε, δ), at every ε."""
    rows = []
    for e in _numbers(epsilon):
        x = least_parameter(family, n, e, delta, steps)
        channel = FAMILIES[family].build(n, x)
        rows.append((e, x, channel.mse, channel.error_rate))
    return pd.DataFrame(rows, columns=["epsilon", "parameter", "mse", "error_rate"])


def independent(n: int, epsilon: Numbers, delta: float) -> pd.DataFrame:
    """The error rate of data-independent noise at every ε; it is its parameter."""
    table = pd.DataFrame({"epsilon": _numbers(epsilon)})
    table["parameter"] = (n / (n + np.exp(table["epsilon"])) + 1e-12).clip(upper=1 - delta)
    for epsilon_, rho in zip(table["epsilon"], table["parameter"], strict=True):
        assert needed(data_independent(single(n, 1), rho), single(n, 1), epsilon_) <= delta
    return table


def independent_steps(n: int, error_rate: float) -> pd.DataFrame:
    """δ(ε) of data-independent noise: from where f(0) <= e^ε f(η) on there is no violation at all."""
    private = math.log((1 - error_rate) * n / error_rate)
    return pd.DataFrame({"epsilon": [0.0, private], "delta": [1 - error_rate, 0.0], "parameter": error_rate})


SOURCES: Mapping[str, Callable[..., pd.DataFrame]] = {
    "least error": least_error, "least delta": least_deltas_at, "law": law_error, "both": both_errors,
    "pmf": pmf, "pmf at": pmf_at, "theorem 2": theorem2, "theorem 3": theorem3,
    "column cut": _joined(column_cut_curve), "single": _joined(single_curve), "printed": _joined(printed_curve),
    "level": level, "baseline": least_baseline, "independent": independent, "independent steps": independent_steps,
    "fitted steps": fitted_steps, "noise steps": noise_steps, "noise": noise_pmf,
}  # fmt: skip
