"""Compute the tables behind the figures of Kadam et al. 2024, "the paper".

Each function returns one table (a DataFrame); its docstring names the columns.
declared/modulo_noise.toml names the function and the arguments of each table, and what is drawn
from it. A new table is a function here and an entry there. Equation, theorem, table and figure
numbers are the paper's.

Words: a law is a probability distribution, and PDP is probabilistic DP. A closed form gives the
optimum without a solver. In column names, "law" stands for the closed form. A baseline is a
published mechanism that is compared with the optimum.

Notation: answers are 0..n, and noise is added modulo N = n + 1. f is the law of the noise η. M is
the set of differences between neighbouring answers: one difference μ, or 1..μ̄. The error rate is
1 - f(0), the probability of a wrong answer. The PDP δ of a baseline is

    δ(ε) = max over neighbouring answers q, q' = q ± 1 of
           Σ_k Pr[k|q] over {k : Pr[k|q] > e^ε Pr[k|q']}                                   (2), (3)

It is a staircase in ε whose steps are the privacy losses ln Pr[k|q]/Pr[k|q']
(`workbench.privacy.curve`). An argument of type `Grid` is a number, a list of numbers, or a text
such as "0.1:4:40" (`workbench.data.parameter_grid`). `**question` stands for the arguments of
`ModuloNoise`. Differences are one-sided (μ without -μ) unless directed=False is among them.

The paper does not state M for Figs. 5-8. We use M = {1}, because the paper's M is one-sided, and
M = {-1, 1} for the curves that the paper calls symmetric. The paper compares with a "discrete count
mechanism", its reference [10] (arXiv:2007.09374). The paper does not define it, and of [10] only
the abstract was accessible, so it is omitted here.

| mean squared error (MSE) | meaning                                                       |
|------------------|-----------------------------------------------------------------------|
| paper's MSE      | Σ η² f(η), (11): noise that wraps past n counts as the jump η         |
| true MSE         | E(published - true)² over uniform answers, with wrapping:             |
|                  | Σ η (N - η) f(η)                                                      |
| baselines' MSE   | E(published - true)² of the clamped output over uniform answers       |
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np
import pandas as pd

from workbench.data.parameter_grid import Grid, read_grid_in_order
from workbench.errors import WorkbenchError
from workbench.exact.integer_law import IntegerLaw
from workbench.exact.numbers import read_number
from workbench.families.modulo.family import FAMILY
from workbench.mechanisms.baselines.count_queries import (
    BASELINE_FAMILIES,
    data_independent,
    discrete_gaussian,
    fit_baseline,
    geometric_alpha,
)
from workbench.mechanisms.channel import Channel, pairs_within
from workbench.mechanisms.integer_noise import AdditiveIntegerNoise
from workbench.models.modulo.frontier import compute_delta_frontier
from workbench.models.oracles import rational_forms
from workbench.models.oracles.bounded_difference import column_cut_law
from workbench.models.oracles.limit_law import limit_law
from workbench.models.oracles.printed_theorem3 import printed_limit, printed_pmf, staircases
from workbench.models.oracles.single_distance import level_curve
from workbench.papers.modulo_noise.common import (
    compute_closed_form,
    compute_needed_delta,
    make_question,
    round_solver_value,
    solve_each,
)
from workbench.pipeline.api import design
from workbench.pipeline.integer_laws import compute_masses
from workbench.pipeline.published import index_by_name
from workbench.privacy.curve import profile
from workbench.questions.modulo_noise import ModuloNoise
from workbench.questions.unbounded_noise import IntegerNoise

_MAX_EPSILON = 3.0  # Steps of a staircase that start above this ε are omitted.
_SAME_POINT = 1e-12  # Pieces whose ends differ by less than this meet.
_LOSS_DECIMALS = 11  # Privacy losses with the same decimals up to here are one step.
_STEP_OFFSET = 1e-10  # The δ of a step is evaluated at its ε plus this, after the jump.

# Symbols of the ends of flat regions: δ with a bar below (start) or above (end), and an index.
_SUBSCRIPTS = "₀₁₂₃₄₅₆₇₈₉"
_LOW_BAR = "\u0332"
_HIGH_BAR = "\u0304"


def _read_grid(grid: Grid) -> list[float]:
    """Return the numbers of a grid in its order."""
    return [float(number) for number in read_grid_in_order(grid, "grid")]


# Optimal noise, by the solver and by closed forms.


def solve_least_error(
    epsilon: Grid,
    delta: Grid = 0,
    *,
    notion: str = "pdp",
    loss: str = "error-rate",
    **question: Any,
) -> pd.DataFrame:
    """Return the minimal loss that the solver finds at every (ε, δ).

    Args:
        epsilon: The values of ε, > 0.
        delta: The values of δ, in [0, 1].
        notion: The notion of privacy: "pdp" or "dp".
        loss: The name of the loss, such as "error-rate" or "squared".
        question: Arguments of `ModuloNoise`, such as n and shifts or max_shift.

    Returns:
        The columns epsilon, delta and solver (the proven minimal loss).

    Raises:
        NotProven: An optimum is not proven.
    """
    budgets = list(itertools.product(_read_grid(epsilon), _read_grid(delta)))
    errors = solve_each(make_question(**question), budgets, notion=notion, loss=loss)
    return pd.DataFrame(budgets, columns=["epsilon", "delta"]).assign(solver=errors)


def solve_least_delta(
    epsilon: Grid, max_loss: float, *, loss: str = "error-rate", **question: Any
) -> pd.DataFrame:
    """Return the minimal PDP δ that the solver finds at every ε for a maximal loss.

    Args:
        epsilon: The values of ε, > 0.
        max_loss: The largest loss that is allowed, in the units of the loss.
        loss: The name of the loss, such as "error-rate" or "squared".
        question: Arguments of `ModuloNoise`, such as n and shifts or max_shift.

    Returns:
        The columns epsilon, max_loss and delta.

    Raises:
        NotProven: An optimum is not proven.
    """
    limits = [(value, max_loss) for value in _read_grid(epsilon)]
    deltas = solve_each(make_question(**question), limits, "max_loss", loss=loss)
    return pd.DataFrame(limits, columns=["epsilon", "max_loss"]).assign(delta=deltas)


def evaluate_law_error(
    epsilon: Grid, delta: Grid = 0, *, notion: str = "pdp", **question: Any
) -> pd.DataFrame:
    """Return the minimal error rate by a closed form at every (ε, δ).

    Args:
        epsilon: The values of ε, > 0.
        delta: The values of δ, in [0, 1].
        notion: The notion of privacy: "pdp" or "dp".
        question: Arguments of `ModuloNoise`, such as n and shifts or max_shift.

    Returns:
        The columns epsilon, delta, law (the error rate), law_name (the closed form) and law_kind
        ("optimum", "upper bound" or "lower bound").
    """
    rows = []
    for budget in itertools.product(_read_grid(epsilon), _read_grid(delta)):
        closed_form = compute_closed_form(make_question(**question), *budget, notion)
        rows.append((*budget, closed_form.value, closed_form.name, closed_form.kind))
    return pd.DataFrame(rows, columns=["epsilon", "delta", "law", "law_name", "law_kind"])


def compare_errors(**arguments: Any) -> pd.DataFrame:
    """Return the minimal error rates by the solver and by the closed form in one table.

    Args:
        arguments: Arguments that `solve_least_error` and `evaluate_law_error` share: epsilon,
            delta, notion, and the arguments of `ModuloNoise`.

    Returns:
        The columns epsilon, delta, solver, law, law_name and law_kind.
    """
    return solve_least_error(**arguments).merge(evaluate_law_error(**arguments))


def compute_pmf(epsilon: Grid, **question: Any) -> pd.DataFrame:
    """Return the optimal PMF at δ = 0, by the closed form and by the linear program (14).

    Args:
        epsilon: The values of ε, > 0.
        question: Arguments of `ModuloNoise`, such as n and shifts or max_shift.

    Returns:
        One row for every noise value of every ε, with the columns epsilon, eta (eta1 and eta2 in
        two dimensions), law (the mass by the closed form), solver (the mass by the solver),
        solver_f0 (the solver's f(0)) and error_rate (of the closed form).
    """
    relation = make_question(**question)
    dimension = len(relation.sizes)
    coordinates = np.indices(relation.sizes).reshape(dimension, -1)
    names = ("eta",) if dimension == 1 else ("eta1", "eta2")
    etas = dict(zip(names, coordinates, strict=True))
    tables = []
    for value in _read_grid(epsilon):
        closed_form = compute_closed_form(relation, value)
        solution = design(relation, epsilon=value, notion="pdp", certify=False)
        solver = [round_solver_value(mass) for mass in solution.mechanism.pmf]
        columns = {
            "epsilon": value,
            **etas,
            "law": closed_form.pmf,
            "solver": solver,
            "solver_f0": solver[0],
            "error_rate": closed_form.value,
        }
        tables.append(pd.DataFrame(columns))
    return pd.concat(tables)


def compute_hop_pmf(n: int, shift: int, epsilon: float) -> pd.DataFrame:
    """Return the optimal PMF of one difference at δ = 0, and the hops to every noise value.

    Args:
        n: The largest answer; noise is modulo n + 1.
        shift: The only difference μ of neighbouring answers, in 1..n.
        epsilon: The ε of the budget, > 0.

    Returns:
        The columns of `compute_pmf`, and hops: how often μ is added to reach the noise value from
        0, or -1 if it is not reached.
    """
    hops = np.full(n + 1, -1)
    for count in range(n, -1, -1):
        # A noise value that is reached more than once keeps its smallest number of hops.
        hops[count * shift % (n + 1)] = count
    return compute_pmf(n=n, shifts=[shift], epsilon=epsilon).assign(hops=hops)


def compute_vector_pmf(
    n: int, first_shifts: Sequence[int], second_shifts: Sequence[int], epsilon: float
) -> pd.DataFrame:
    """Return the optimal PMF at δ = 0 of a query of two parts that change independently.

    Args:
        n: The largest answer of each part; noise is modulo n + 1.
        first_shifts: The differences of the first part of neighbouring answers.
        second_shifts: The differences of the second part. (0, 0) is no difference.
        epsilon: The ε of the budget, > 0.

    Returns:
        The columns of `compute_pmf`.
    """
    pairs = itertools.product(first_shifts, second_shifts)
    shifts = [pair for pair in pairs if any(pair)]
    return compute_pmf(epsilon, sizes=[n + 1, n + 1], shifts=shifts)


def compute_joint_pmf(n: int, shifts: Sequence[int], epsilon: float) -> pd.DataFrame:
    """Return the optimal PMF of a query of two parts, and the product of two scalar optima.

    Args:
        n: The largest answer of each part; noise is modulo n + 1.
        shifts: The differences of each part of neighbouring answers, 0 among them.
        epsilon: The ε of both parts together. Independent noise of one part has ε/2.

    Returns:
        The columns of `compute_pmf`, and product: the mass if both parts get independent optimal
        noise.
    """
    line = make_question(n=n, shifts=[shift for shift in shifts if shift])
    scalar = compute_closed_form(line, epsilon / 2).pmf
    assert scalar is not None
    table = compute_vector_pmf(n, shifts, shifts, epsilon)
    return table.assign(product=np.outer(scalar, scalar).ravel())


def compute_pmf_at_deltas(epsilon: float, delta: Grid, **question: Any) -> pd.DataFrame:
    """Return the PMF of the closed form at every δ, and f(0) of the solver.

    For differences 1..μ̄ the closed form is the column-cut law
    (`workbench.models.oracles.bounded_difference`).

    Args:
        epsilon: The ε of the budget, > 0.
        delta: The values of δ, in [0, 1].
        question: Arguments of `ModuloNoise`, such as n and shifts or max_shift.

    Returns:
        One row for every noise value of every δ, with the columns eta, delta, law (the mass by the
        closed form) and solver_f0.
    """
    solution = solve_least_error(epsilon, delta, **question)
    tables = []
    for value, error in zip(solution["delta"], solution["solver"], strict=True):
        law = None
        if "max_shift" in question:
            law = column_cut_law(question["n"], question["max_shift"], epsilon, value)
        closed_form = law or compute_closed_form(make_question(**question), epsilon, value)
        f0 = round_solver_value(1 - error)
        rows = pd.DataFrame({"delta": value, "law": closed_form.pmf, "solver_f0": f0})
        tables.append(rows.rename_axis("eta").reset_index())
    return pd.concat(tables)


def compute_theorem2_curve(n: int, shift: int, epsilon: float) -> pd.DataFrame:
    """Return points of the curve of the minimal error rate against δ by Theorem 2, (19).

    The error rate is constant on flat regions of δ and affine between them. The points are the ends
    of the flat regions, and the middles of the intervals between two ends. At the middles the
    solver runs too.

    Args:
        n: The largest answer; noise is modulo n + 1.
        shift: The only difference μ of neighbouring answers, in 1..n.
        epsilon: The ε of the budget, > 0.

    Returns:
        The columns kind ("flat": an end of a flat region; "solver": a middle), k (the number of the
        flat region, -1 at a middle), name (the symbol of the end, "" at a middle), delta,
        error_rate (of the closed form) and solver (the solver's error rate, NaN at ends).
    """
    question = make_question(n=n, shifts=[shift])
    ratio = Fraction(math.exp(epsilon))
    # Each interval is given by its end, a function of e^ε, and its error rate.
    printed_ends = [float(end(ratio)) for end, _ in rational_forms.theorem2(n + 1)]
    ends = [0.0, *printed_ends, 1.0]

    # Theorem 2 prints 2 n ends; with 0 and 1 there are 2 (n + 1) ends, two for each k = 0..n.
    names = []
    for k in range(n + 1):
        index = "".join(_SUBSCRIPTS[int(digit)] for digit in str(k))
        names += [f"δ{_LOW_BAR}{index}", f"δ{_HIGH_BAR}{index}"]
    flat_ends = pd.DataFrame(
        {"kind": "flat", "k": np.arange(len(ends)) // 2, "delta": ends, "name": names}
    )

    # The last flat region is only δ = 1, so it has no middle.
    middles = [(low + high) / 2 for low, high in itertools.pairwise(ends[:-1])]
    errors = solve_each(question, [(epsilon, delta) for delta in middles])
    solver_points = pd.DataFrame(
        {"kind": "solver", "k": -1, "name": "", "delta": middles, "solver": errors}
    )

    table = pd.concat([flat_ends, solver_points])
    error_rates = [compute_closed_form(question, epsilon, delta).value for delta in table["delta"]]
    return table.assign(error_rate=error_rates)


def compare_theorem3_pmf(n: int, max_shift: int, epsilon: float, delta: float) -> pd.DataFrame:
    """Return the PMFs of the column-cut law and of Theorem 3, and the δ that each needs.

    Args:
        n: The largest answer; noise is modulo n + 1.
        max_shift: The largest difference μ̄ of neighbouring answers, in 1..n.
        epsilon: The ε of the budget, > 0.
        delta: The δ of the budget, in [0, 1].

    Returns:
        One row for every noise value, with the columns eta, delta, law (the mass of the column-cut
        law), solver_f0, theorem3 (the mass as printed), law_delta and theorem3_delta (the PDP δ
        that each PMF needs), and region ("flat" or "linear", by Theorem 3).
    """
    question = make_question(n=n, max_shift=max_shift)
    regions = staircases(n, max_shift, epsilon)
    is_flat = any(stairs.lower <= delta <= stairs.upper for stairs in regions)
    table = compute_pmf_at_deltas(epsilon, delta, n=n, max_shift=max_shift)
    table["theorem3"] = printed_pmf(n, max_shift, epsilon, delta)
    needed_columns = {}
    for name in ("law", "theorem3"):
        needed_delta = compute_needed_delta(table[name], question, epsilon)
        needed_columns[f"{name}_delta"] = round_solver_value(needed_delta)
    return table.assign(**needed_columns, region="flat" if is_flat else "linear")


# Curves with their exact breakpoints: δ and f(0), which straight lines join.


def trace_exact_curve(epsilon: float, **question: Any) -> pd.DataFrame:
    """Return the ends of the affine pieces of the largest f(0) as a function of δ.

    Straight lines join consecutive points. Every piece is proven.

    Args:
        epsilon: The ε of the budget, > 0.
        question: Arguments of `ModuloNoise`, such as n and shifts or max_shift.

    Returns:
        The columns delta and f0, with increasing δ.

    Raises:
        WorkbenchError: A piece is not proven.
    """
    relation = make_question(**question)
    pieces = compute_delta_frontier(relation.sizes, relation.differences, epsilon)
    points: list[tuple[float, float]] = []
    for piece in pieces:
        if not piece.is_proven:
            raise WorkbenchError(
                f"A piece of the exact frontier of {relation} is not proven at epsilon = "
                f"{epsilon:g}."
            )
        points += [(piece.delta_low, piece.value_low), (piece.delta_high, piece.value_high)]
    ends = np.array(points)
    # The end of a piece is the start of the next one, so the second of two equal points is dropped.
    # The first point is compared with (-1, -1), so it is kept.
    is_new = np.abs(np.diff(ends, axis=0, prepend=-1)).sum(axis=1) > _SAME_POINT
    delta, error_rate = ends[is_new].T
    return pd.DataFrame({"delta": delta, "f0": 1 - error_rate})


def trace_exact_regions(epsilon: float, **question: Any) -> pd.DataFrame:
    """Return the flat and the linear regions of the largest f(0) as a function of δ.

    Every piece is proven.

    Args:
        epsilon: The ε of the budget, > 0.
        question: Arguments of `ModuloNoise`, such as n and shifts or max_shift.

    Returns:
        Two rows for each region, its ends, with the columns delta, f0, piece (its number) and
        region ("flat" or "linear").

    Raises:
        WorkbenchError: A piece is not proven.
    """
    ends = trace_exact_curve(epsilon, **question)
    tables = []
    for piece in range(len(ends) - 1):
        rows = ends.iloc[piece : piece + 2]
        is_flat = rows["f0"].max() - rows["f0"].min() < _SAME_POINT
        tables.append(rows.assign(piece=piece, region="flat" if is_flat else "linear"))
    return pd.concat(tables)


def compute_printed_curve(n: int, max_shift: int, epsilon: float) -> pd.DataFrame:
    """Return the curve of Theorem 3 as printed, which is wrong (see `errata_checks`).

    Args:
        n: The largest answer; noise is modulo n + 1.
        max_shift: The largest difference μ̄ of neighbouring answers, in 1..n.
        epsilon: The ε of the budget, > 0.

    Returns:
        The columns delta, f0, region ("start" or "end" of a flat region), h and j (the segment and
        the number of the region in it, as printed). Two points for each flat region, and the point
        (1, 1).
    """
    points: list[tuple[Any, ...]] = []
    for stairs in staircases(n, max_shift, epsilon):
        place = (stairs.h, stairs.j)
        points.append((stairs.lower, stairs.mass, "start", *place))
        points.append((stairs.upper, stairs.mass, "end", *place))
    points.append((1.0, 1.0, "", np.nan, np.nan))
    return pd.DataFrame(points, columns=["delta", "f0", "region", "h", "j"])


def compute_limit_curve(mu_bar: int, epsilon: float, delta: Grid) -> pd.DataFrame:
    """Return the largest f(0) in the limit n -> ∞ at every δ.

    Args:
        mu_bar: The largest difference μ̄ of neighbouring answers, >= 1.
        epsilon: The ε of the budget, >= ln 2, so that the limit is proven.
        delta: The values of δ, in [0, 1].

    Returns:
        The columns delta and f0.
    """
    deltas = _read_grid(delta)
    limits = [limit_law(mu_bar, epsilon, value) for value in deltas]
    assert all(limit.kind == "optimum" for limit in limits)
    return pd.DataFrame({"delta": deltas, "f0": [1 - limit.value for limit in limits]})


def compute_printed_limits(mu_bar: int, epsilon: float, c: int, j_count: int) -> pd.DataFrame:
    """Return the limits of the printed flat regions (c, 1), (c, 2), ..., and those of (34).

    Args:
        mu_bar: The largest difference μ̄ of neighbouring answers, >= 1.
        epsilon: The ε of the budget, > 0.
        c: The number c = b - h of whole groups, >= 1.
        j_count: The number of regions.

    Returns:
        Two rows for each curve and region, at the ends of its claimed δ interval by (37): the
        columns curve, j, delta, f0 and beta. The curve "printed" has (54) and (55), "corrected"
        the limits of (36) and (34).
    """
    rows = []
    for j in range(1, j_count + 1):
        limit = printed_limit(mu_bar, epsilon, c, j)
        for delta in (limit.lower, limit.upper):
            rows.append(("printed", j, delta, limit.printed_mass, limit.printed_beta))
            rows.append(("corrected", j, delta, limit.mass, limit.beta))
    return pd.DataFrame(rows, columns=["curve", "j", "delta", "f0", "beta"])


def compute_level_curve(
    epsilon: Grid, n: int, error_rate: float, *, symmetric: bool = False
) -> pd.DataFrame:
    """Return the minimal δ at which an error rate is possible, for every ε, by Corollary 1, (24).

    Args:
        epsilon: The values of ε, > 0.
        n: The largest answer; noise is modulo n + 1.
        error_rate: The largest probability of a wrong answer, in [0, 1].
        symmetric: Whether M is {-μ, μ} instead of {μ}. Corollary 1 is extended to this case here.

    Returns:
        The columns epsilon and delta.
    """
    rows = [
        (value, level_curve(n + 1, value, error_rate, both_ways=symmetric))
        for value in _read_grid(epsilon)
    ]
    return pd.DataFrame(rows, columns=["epsilon", "delta"])


# Baselines.


def list_delta_steps(mechanism: Any, parameter: float) -> pd.DataFrame:
    """Return the steps of the exact staircase δ(ε) of a mechanism under PDP.

    Args:
        mechanism: A mechanism with exact laws, as `workbench.privacy.curve.profile` takes it.
        parameter: The parameter of the mechanism. It is only copied into a column.

    Returns:
        One row for each step, with the columns epsilon (where the step starts), parameter and
        delta (the δ on the step).
    """
    curve = profile(mechanism, "pdp")
    # Privacy losses that are equal except for rounding would give steps without width.
    starts = np.unique(np.round(curve.breakpoints, _LOSS_DECIMALS))
    table = pd.DataFrame({"epsilon": starts[starts <= _MAX_EPSILON], "parameter": parameter})
    deltas = curve.deltas((table["epsilon"] + _STEP_OFFSET).tolist())
    return table.assign(delta=deltas).drop_duplicates("delta")


def list_fitted_steps(family: str, n: int, **target: float) -> pd.DataFrame:
    """Return the steps of δ(ε) of a baseline whose parameter is chosen for an error.

    Args:
        family: A key of `BASELINE_FAMILIES`.
        n: The largest answer.
        target: The error that the baseline must have: either mse or error_rate.

    Returns:
        The columns of `list_delta_steps`.
    """
    parameter = fit_baseline(family, n, **target)
    baseline = BASELINE_FAMILIES[family].build(n, parameter)
    return list_delta_steps(Channel.from_pairs(baseline, pairs_within(n, 1)), parameter)


def _make_noise_law(
    variance: float, alpha: float | None, is_gaussian: bool
) -> tuple[float, IntegerLaw]:
    """Return the parameter and the law of geometric or discrete Gaussian noise.

    The parameter of geometric noise is α. If `alpha` is None, α is computed from the variance. The
    parameter of Gaussian noise is the variance.
    """
    if is_gaussian:
        radius, law = discrete_gaussian(read_number(variance, "variance"))
        return variance, IntegerLaw(-radius, law)
    ratio = geometric_alpha(variance) if alpha is None else alpha
    return ratio, IntegerLaw(first=0, weights=[1], ratio=Fraction(ratio))


def make_clamped_noise(n: int | None, law: IntegerLaw) -> AdditiveIntegerNoise:
    """Return noise for neighbours ±1, clamped into 0..n.

    Args:
        n: The largest answer. Sums are clamped into 0..n. None: sums are not clamped.
        law: The law of the noise η on the integers.

    Returns:
        The mechanism, for neighbours that differ by 1.
    """
    clamp = None if n is None else (0, n)
    return AdditiveIntegerNoise(IntegerNoise(sensitivity=1, clamp=clamp), law)


def list_noise_steps(
    variance: float, alpha: float | None = None, n: int | None = None, *, gaussian: bool = False
) -> pd.DataFrame:
    """Return the steps of δ(ε) of geometric or Gaussian noise for neighbours that differ by 1.

    Args:
        variance: The variance of the noise, > 0.
        alpha: α in (0, 1) of geometric noise, whose masses are proportional to α^|η|. Default: the
            α that gives the variance.
        n: The largest answer. Sums are clamped into 0..n. None: sums are not clamped.
        gaussian: Whether the noise is discrete Gaussian instead of geometric.

    Returns:
        The columns of `list_delta_steps`. The parameter is α of geometric noise, or the variance of
        Gaussian noise.
    """
    parameter, law = _make_noise_law(variance, alpha, gaussian)
    return list_delta_steps(make_clamped_noise(n, law), parameter)


def compute_noise_pmf(
    n: int, variance: float, alpha: float | None = None, *, gaussian: bool = False
) -> pd.DataFrame:
    """Return the masses of geometric or Gaussian noise at the values -n..n.

    Args:
        n: The largest noise value.
        variance: The variance of the noise, > 0.
        alpha: α in (0, 1) of geometric noise, whose masses are proportional to α^|η|. Default: the
            α that gives the variance.
        gaussian: Whether the noise is discrete Gaussian instead of geometric.

    Returns:
        The columns parameter (α or the variance), eta and mass.
    """
    parameter, law = _make_noise_law(variance, alpha, gaussian)
    etas = np.arange(-n, n + 1.0)
    return pd.DataFrame({"parameter": parameter, "eta": etas, "mass": compute_masses(law, -n, n)})


def fit_least_baseline(family: str, n: int, epsilon: Grid, delta: float) -> pd.DataFrame:
    """Return the errors of a baseline at its smallest (ε, δ)-PDP parameter, for every ε.

    Args:
        family: The name of a published mechanism for questions `ModuloNoise`, such as "geometric".
        n: The largest answer. Neighbouring answers differ by 1.
        epsilon: The values of ε, > 0.
        delta: The δ of the budget, in [0, 1].

    Returns:
        The columns epsilon, parameter, mse and error_rate.
    """
    published_mechanism = index_by_name(FAMILY.published_mechanisms())[family]
    question = ModuloNoise(n=n, shifts=[1])
    rows = []
    for value in _read_grid(epsilon):
        make_request = partial(
            FAMILY.make_request, question, epsilon=value, delta=delta, notion="pdp"
        )
        squared_fit = published_mechanism.make_reference(make_request(loss="squared"))
        error_rate_fit = published_mechanism.make_reference(make_request(loss="error-rate"))
        parameter = error_rate_fit.value
        rows.append((value, parameter, squared_fit.objective, error_rate_fit.objective))
    return pd.DataFrame(rows, columns=["epsilon", "parameter", "mse", "error_rate"])


def list_independent_steps(n: int, error_rate: float) -> pd.DataFrame:
    """Return the steps of δ(ε) of data-independent noise (`data_independent`).

    Args:
        n: The largest answer; noise is modulo n + 1.
        error_rate: The probability of a wrong answer, in [0, 1].

    Returns:
        The columns of `list_delta_steps`. The parameter is the error rate.
    """
    noise = data_independent(make_question(n=n, shifts=[1]), error_rate)
    return list_delta_steps(noise, error_rate)
