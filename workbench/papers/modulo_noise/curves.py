"""The rows of the tables in declared/modulo_noise.toml.

They are errors by solver and closed form, PMFs, exact breakpoints, and baselines.

The PDP δ of a baseline,

    δ(ε) = max over neighbouring answers q, q' = q ± 1 of
           Σ_k Pr[k|q] over {k : Pr[k|q] > e^ε Pr[k|q']}                                   (2), (3)

is a staircase in ε whose steps are the privacy losses ln Pr[k|q]/Pr[k|q']
(`workbench.privacy.curve`). Grids are texts or lists (`workbench.data.parameter_grid`). Questions
are the arguments of `ModuloNoise`, one-sided by default.

The paper does not state the neighbours of Figs. 5-8. Ours are answers that differ by one: M = {1},
since the paper's M is one-sided, and M = {±1} for curves called symmetric. The paper does not
specify the discrete count mechanism [10].

| loss             | meaning                                                               |
|------------------|-----------------------------------------------------------------------|
| paper's MSE      | Σ η² f(η), (11): noise that wraps past n counts as the jump η         |
| true MSE         | E(published - true)² over uniform answers, with wrapping:             |
|                  | Σ η (N - η) f(η)                                                      |
| baselines' MSE   | E(published - true)² of the clamped output over uniform answers       |
"""

from __future__ import annotations

import itertools
import math
from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np
import pandas as pd

from workbench.data.parameter_grid import Grid, read_grid_in_order
from workbench.errors import WorkbenchError
from workbench.exact.integer_law import IntegerLaw
from workbench.exact.numbers import read_number
from workbench.exact.objects import Values
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
from workbench.models.oracles.printed_theorem3 import printed_pmf, staircases
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

_MAX_EPSILON = 3.0  # The largest ε of a drawn staircase.
_SAME_POINT = 1e-12  # Pieces whose ends differ by less than this meet.
_LOSS_DECIMALS = 11  # Privacy losses that differ by rounding errors are equal to these decimals.
_STEP_OFFSET = 1e-10  # δ is evaluated at this distance after a step.
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
    """Return the solver's minimal error at every (ε, δ).

    Args:
        epsilon: Values of ε.
        delta: Values of δ.
        notion: The notion of δ.
        loss: The loss.
        question: The question.
    """
    budgets = list(itertools.product(_read_grid(epsilon), _read_grid(delta)))
    errors = solve_each(make_question(**question), budgets, notion=notion, loss=loss)
    return pd.DataFrame(budgets, columns=["epsilon", "delta"]).assign(solver=errors)


def solve_least_delta(
    epsilon: Grid, max_loss: float, *, loss: str = "error-rate", **question: Any
) -> pd.DataFrame:
    """Return the solver's minimal δ at every ε for a maximal loss.

    Args:
        epsilon: Values of ε.
        max_loss: The maximal loss.
        loss: The loss.
        question: The question.
    """
    limits = [(value, max_loss) for value in _read_grid(epsilon)]
    deltas = solve_each(make_question(**question), limits, "max_loss", loss=loss)
    return pd.DataFrame(limits, columns=["epsilon", "max_loss"]).assign(delta=deltas)


def evaluate_law_error(
    epsilon: Grid, delta: Grid = 0, *, notion: str = "pdp", **question: Any
) -> pd.DataFrame:
    """Return the error rate of the closed form at every (ε, δ), with its name and kind.

    Args:
        epsilon: Values of ε.
        delta: Values of δ.
        notion: The notion of δ.
        question: The question.
    """
    rows = []
    for budget in itertools.product(_read_grid(epsilon), _read_grid(delta)):
        closed_form = compute_closed_form(make_question(**question), *budget, notion)
        rows.append((*budget, closed_form.value, closed_form.name, closed_form.kind))
    return pd.DataFrame(rows, columns=["epsilon", "delta", "law", "law_name", "law_kind"])


def compare_errors(**arguments: Any) -> pd.DataFrame:
    """Return the columns of `solve_least_error` and of `evaluate_law_error`.

    Args:
        arguments: Their arguments.
    """
    return solve_least_error(**arguments).merge(evaluate_law_error(**arguments))


def compute_pmf(epsilon: Grid, **question: Any) -> pd.DataFrame:
    """Return the optimal PMF at δ = 0, by the closed form and by LP (14).

    There is one row for every noise value of every ε.

    Args:
        epsilon: Values of ε.
        question: The question.
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


def compute_joint_pmf(line: Values, scalar_epsilon: float, **arguments: Any) -> pd.DataFrame:
    """Return `compute_pmf` of two dimensions, and the product of scalar optima.

    Args:
        line: The question of one dimension.
        scalar_epsilon: The ε of the scalar optimum.
        arguments: The arguments of `compute_pmf`.
    """
    scalar = compute_closed_form(make_question(**line), scalar_epsilon).pmf
    assert scalar is not None
    return compute_pmf(**arguments).assign(product=np.outer(scalar, scalar).ravel())


def compute_pmf_at_deltas(epsilon: float, delta: Grid, **question: Any) -> pd.DataFrame:
    """Return the PMF of the closed form at every δ, and f(0) of the solver.

    For differences 1..μ̄ the closed form is the column-cut law.

    Args:
        epsilon: The ε.
        delta: Values of δ.
        question: The question.
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
    """Return the ends of the flat regions of Theorem 2 (19), and solver runs between them.

    The solver runs are in the middle of every region.

    Args:
        n: The largest answer.
        shift: The difference.
        epsilon: The ε.
    """
    question = make_question(n=n, shifts=[shift])
    ratio = Fraction(math.exp(epsilon))
    printed_ends = [float(end(ratio)) for end, _ in rational_forms.theorem2(n + 1)]
    ends = [0.0, *printed_ends, 1.0]
    names = []
    for k in range(n + 1):
        names += [f"δ{_LOW_BAR}{_SUBSCRIPTS[k]}", f"δ{_HIGH_BAR}{_SUBSCRIPTS[k]}"]
    flat_ends = pd.DataFrame(
        {"kind": "flat", "k": np.arange(len(ends)) // 2, "delta": ends, "name": names}
    )
    middles = [(low + high) / 2 for low, high in itertools.pairwise(ends[:-1])]
    errors = solve_each(question, [(epsilon, delta) for delta in middles])
    solver = pd.DataFrame(
        {"kind": "solver", "k": -1, "name": "", "delta": middles, "solver": errors}
    )
    table = pd.concat([flat_ends, solver])
    error_rates = [compute_closed_form(question, epsilon, delta).value for delta in table["delta"]]
    return table.assign(error_rate=error_rates)


def compare_theorem3_pmf(n: int, max_shift: int, epsilon: float, delta: float) -> pd.DataFrame:
    """Return the PMFs of the column-cut law and of Theorem 3, and the δ that each needs.

    Args:
        n: The largest answer.
        max_shift: The maximal difference.
        epsilon: The ε.
        delta: The δ.
    """
    question = make_question(n=n, max_shift=max_shift)
    table = compute_pmf_at_deltas(epsilon, delta, n=n, max_shift=max_shift)
    table["theorem3"] = printed_pmf(n, max_shift, epsilon, delta)
    needed_columns = {}
    for name in ("law", "theorem3"):
        needed_delta = compute_needed_delta(table[name], question, epsilon)
        needed_columns[f"{name}_delta"] = round_solver_value(needed_delta)
    return table.assign(**needed_columns)


# Curves with their exact breakpoints: δ and f(0), which straight lines join.


def trace_exact_curve(epsilon: float, **question: Any) -> pd.DataFrame:
    """Return the curve of the optimum, every piece of which is proven.

    Args:
        epsilon: The ε.
        question: The question.

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
    # The end of a piece that is the start of the next one is kept once.
    is_new = np.abs(np.diff(ends, axis=0, prepend=-1)).sum(axis=1) > _SAME_POINT
    return pd.DataFrame({"delta": ends[is_new, 0], "f0": 1 - ends[is_new, 1]})


def compute_printed_curve(n: int, max_shift: int, epsilon: float) -> pd.DataFrame:
    """Return the curve of Theorem 3 as printed, which is wrong (see `errata_checks`).

    Args:
        n: The largest answer.
        max_shift: The maximal difference.
        epsilon: The ε.
    """
    points = []
    for stairs in staircases(n, max_shift, epsilon):
        points += [(stairs.lower, stairs.mass), (stairs.upper, stairs.mass)]
    return pd.DataFrame([*points, (1.0, 1.0)], columns=["delta", "f0"])


def compute_level_curve(
    epsilon: Grid, order: int, error_rate: float, *, symmetric: bool = False
) -> pd.DataFrame:
    """Return the minimal δ for an error rate at every ε: Corollary 1 or its symmetric form.

    Args:
        epsilon: Values of ε.
        order: The number of noise values.
        error_rate: The error rate.
        symmetric: Whether differences are symmetric.
    """
    rows = [
        (value, level_curve(order, value, error_rate, both_ways=symmetric))
        for value in _read_grid(epsilon)
    ]
    return pd.DataFrame(rows, columns=["epsilon", "delta"])


# Baselines.


def list_delta_steps(mechanism: Any, parameter: float) -> pd.DataFrame:
    """Return the steps of the exact staircase δ(ε) of a mechanism: ε where a step starts, and δ.

    Args:
        mechanism: The mechanism.
        parameter: The value of the column "parameter".
    """
    curve = profile(mechanism, "pdp")
    starts = np.unique(np.round(curve.breakpoints, _LOSS_DECIMALS))
    table = pd.DataFrame({"epsilon": starts[starts <= _MAX_EPSILON], "parameter": parameter})
    deltas = curve.deltas((table["epsilon"] + _STEP_OFFSET).tolist())
    return table.assign(delta=deltas).drop_duplicates("delta")


def list_fitted_steps(family: str, n: int, **target: float) -> pd.DataFrame:
    """Return the steps of δ(ε) of the baseline with an MSE or an error rate.

    Args:
        family: The family of the baseline.
        n: The largest answer.
        target: The MSE or the error rate.
    """
    parameter = fit_baseline(family, n, **target)
    baseline = BASELINE_FAMILIES[family].build(n, parameter)
    return list_delta_steps(Channel.from_pairs(baseline, pairs_within(n, 1)), parameter)


def _make_noise_law(
    variance: float, alpha: float | None, is_gaussian: bool
) -> tuple[float, IntegerLaw]:
    """Return the parameter and the law of geometric or Gaussian noise.

    Geometric noise has the parameter α, or the variance if α is None.
    """
    if is_gaussian:
        radius, law = discrete_gaussian(read_number(variance, "variance"))
        return variance, IntegerLaw(-radius, law)
    ratio = geometric_alpha(variance) if alpha is None else alpha
    return ratio, IntegerLaw(0, [1], 1, Fraction(ratio))


def make_clamped_noise(n: int | None, law: IntegerLaw) -> AdditiveIntegerNoise:
    """Return noise for neighbours ±1, clamped into 0..n.

    Args:
        n: The largest answer, or None to keep the noise unclamped.
        law: The law of the noise.
    """
    return AdditiveIntegerNoise(IntegerNoise(1, None if n is None else (0, n)), law)


def list_noise_steps(
    variance: float, alpha: float | None = None, n: int | None = None, *, gaussian: bool = False
) -> pd.DataFrame:
    """Return the steps of δ(ε) of noise, clamped into 0..n if n is given.

    Args:
        variance: The variance.
        alpha: The α of geometric noise. Default: that with the variance.
        n: The largest answer.
        gaussian: Whether the noise is Gaussian.
    """
    parameter, law = _make_noise_law(variance, alpha, gaussian)
    return list_delta_steps(make_clamped_noise(n, law), parameter)


def compute_noise_pmf(
    n: int, variance: float, alpha: float | None = None, *, gaussian: bool = False
) -> pd.DataFrame:
    """Return the masses of noise on -n..n.

    Args:
        n: The largest noise value.
        variance: The variance.
        alpha: The α of geometric noise. Default: that with the variance.
        gaussian: Whether the noise is Gaussian.
    """
    parameter, law = _make_noise_law(variance, alpha, gaussian)
    etas = np.arange(-n, n + 1.0)
    return pd.DataFrame({"parameter": parameter, "eta": etas, "mass": compute_masses(law, -n, n)})


def fit_least_baseline(family: str, n: int, epsilon: Grid, delta: float) -> pd.DataFrame:
    """Return a baseline with the smallest parameter that is (ε, δ)-PDP, at every ε.

    Args:
        family: The name of the published mechanism.
        n: The largest answer.
        epsilon: Values of ε.
        delta: The δ.
    """
    published_mechanism = index_by_name(FAMILY.published_mechanisms())[family]
    question = ModuloNoise(n=n, shifts=[1])
    rows = []
    for value in _read_grid(epsilon):
        make_request = partial(
            FAMILY.make_request, question, epsilon=value, delta=delta, notion="pdp"
        )
        squared_reference = published_mechanism.make_reference(make_request(loss="squared"))
        error_rate = published_mechanism.make_reference(make_request(loss="error-rate"))
        rows.append((value, error_rate.value, squared_reference.objective, error_rate.objective))
    return pd.DataFrame(rows, columns=["epsilon", "parameter", "mse", "error_rate"])


def list_independent_steps(n: int, error_rate: float) -> pd.DataFrame:
    """Return the steps of δ(ε) of data-independent noise.

    Args:
        n: The largest answer.
        error_rate: The error rate.
    """
    noise = data_independent(make_question(n=n, shifts=[1]), error_rate)
    return list_delta_steps(noise, error_rate)
