"""The rows that declared/modulo_noise.toml asks for: errors by solver and oracle, PMFs, exact breakpoints, baselines.

The PDP δ of a baseline,

    δ(ε) = max over neighbouring answers q, q' = q ± 1 of  Σ_k Pr[k|q] over {k : Pr[k|q] > e^ε Pr[k|q']}       (2), (3)

is a staircase in ε whose steps are the privacy losses ln Pr[k|q]/Pr[k|q'] (`workbench.privacy.curve`). Grids are texts
or lists (`workbench.data.parameter_grid`); questions are the keywords of `ModuloNoise`, one-sided where they do not say
otherwise.

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
from fractions import Fraction
from functools import partial
from itertools import pairwise, product
from typing import Any

import numpy as np
import pandas as pd

from workbench.data.parameter_grid import Grid as Numbers
from workbench.data.parameter_grid import read_grid_in_order
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
from workbench.models.oracles.bounded_difference import column_cut_law
from workbench.models.oracles.printed_theorem3 import printed_pmf, staircases
from workbench.models.oracles.rational_forms import theorem2 as exact_pieces
from workbench.models.oracles.single_distance import level_curve
from workbench.papers.modulo_noise.common import law, needed, question_of, snap, solve_each
from workbench.pipeline.api import design
from workbench.pipeline.integer_laws import compute_masses
from workbench.pipeline.published import index_by_name
from workbench.privacy.curve import profile
from workbench.questions.modulo_noise import ModuloNoise
from workbench.questions.unbounded_noise import IntegerNoise

_MOST = 3.0  # the largest ε shown of a staircase
_SAME = 1e-12  # between the ends of pieces that meet


def _numbers(grid: Numbers) -> list[float]:
    return [float(number) for number in read_grid_in_order(grid, "grid")]


# Optimal noise, by the solver and by the oracles.


def least_error(
    epsilon: Numbers,
    delta: Numbers = 0,
    *,
    notion: str = "pdp",
    loss: str = "error-rate",
    **question: Any,
) -> pd.DataFrame:
    """The solver's least error at every (ε, δ)."""
    requests = list(product(_numbers(epsilon), _numbers(delta)))
    errors = solve_each(question_of(**question), requests, notion=notion, loss=loss)
    return pd.DataFrame(requests, columns=["epsilon", "delta"]).assign(solver=errors)


def least_delta(
    epsilon: Numbers, max_loss: float, *, loss: str = "error-rate", **question: Any
) -> pd.DataFrame:
    """The solver's least δ at every ε within a largest loss."""
    requests = [(e, max_loss) for e in _numbers(epsilon)]
    deltas = solve_each(question_of(**question), requests, "max_loss", loss=loss)
    return pd.DataFrame(requests, columns=["epsilon", "max_loss"]).assign(delta=deltas)


def law_error(
    epsilon: Numbers, delta: Numbers = 0, *, notion: str = "pdp", **question: Any
) -> pd.DataFrame:
    """The oracle's error rate at every (ε, δ), with its name and kind."""
    laws = [
        (e, d, law(question_of(**question), e, d, notion))
        for e, d in product(_numbers(epsilon), _numbers(delta))
    ]
    rows = [(e, d, closed.value, closed.name, closed.kind) for e, d, closed in laws]
    return pd.DataFrame(rows, columns=["epsilon", "delta", "law", "law_name", "law_kind"])


def both_errors(**request: Any) -> pd.DataFrame:
    """`least_error` and `law_error` side by side."""
    return least_error(**request).merge(law_error(**request))


def pmf(epsilon: Numbers, **question: Any) -> pd.DataFrame:
    """The optimal PMF at δ = 0, by the oracle and by LP (14), one row for every noise value of every ε."""
    relation = question_of(**question)
    places = np.indices(relation.sizes).reshape(len(relation.sizes), -1)
    etas = dict(zip(("eta",) if len(places) == 1 else ("eta1", "eta2"), places, strict=True))
    parts = []
    for e in _numbers(epsilon):
        closed, solved = law(relation, e), design(relation, epsilon=e, notion="pdp", certify=False)
        solver = [snap(mass) for mass in solved.mechanism.pmf]
        columns = {
            "law": closed.pmf,
            "solver": solver,
            "solver_f0": solver[0],
            "error_rate": closed.value,
        }
        parts.append(pd.DataFrame({"epsilon": e, **etas, **columns}))
    return pd.concat(parts)


def joint(line: Values, apart: float, **request: Any) -> pd.DataFrame:
    """`pmf` of two dimensions, beside the product of the optimum of one line at the budget `apart` with itself."""
    scalar = law(question_of(**line), apart).pmf
    assert scalar is not None
    return pmf(**request).assign(product=np.outer(scalar, scalar).ravel())


def pmf_at(epsilon: float, delta: Numbers, **question: Any) -> pd.DataFrame:
    """The oracle's PMF at every δ (the column-cut law's for differences 1..μ̄), and the solver's f(0)."""
    solved = least_error(epsilon, delta, **question)
    parts = []
    for d, error in zip(solved["delta"], solved["solver"], strict=True):
        cut = (
            column_cut_law(question["n"], question["max_shift"], epsilon, d)
            if "max_shift" in question
            else None
        )
        closed = cut or law(question_of(**question), epsilon, d)
        rows = pd.DataFrame({"delta": d, "law": closed.pmf, "solver_f0": snap(1 - error)})
        parts.append(rows.rename_axis("eta").reset_index())
    return pd.concat(parts)


def theorem2(n: int, shift: int, epsilon: float) -> pd.DataFrame:
    """The ends of the flat regions of Theorem 2, (19), and the solver in the middle of every region."""
    question = question_of(n=n, shifts=[shift])
    ends = np.array(
        [0.0, *[float(end(Fraction(math.exp(epsilon)))) for end, _ in exact_pieces(n + 1)], 1.0]
    )
    flat = pd.DataFrame({"kind": "flat", "k": np.arange(ends.size) // 2, "delta": ends})
    flat["name"] = [
        f"δ{bar}{'₀₁₂₃₄₅₆₇₈₉'[k]}" for k in range(n + 1) for bar in ("\u0332", "\u0304")
    ]
    middles = [(a + b) / 2 for a, b in pairwise(ends[:-1].tolist())]
    solved = solve_each(question, [(epsilon, delta) for delta in middles])
    table = pd.concat(
        [
            flat,
            pd.DataFrame(
                {"kind": "solver", "k": -1, "name": "", "delta": middles, "solver": solved}
            ),
        ]
    )
    return table.assign(
        error_rate=[law(question, epsilon, delta).value for delta in table["delta"]]
    )


def theorem3(n: int, max_shift: int, epsilon: float, delta: float) -> pd.DataFrame:
    """The PMF of the column-cut law and the one that Theorem 3 prints, and the δ that each needs."""
    question = question_of(n=n, max_shift=max_shift)
    table = pmf_at(epsilon, delta, n=n, max_shift=max_shift)
    table["theorem3"] = printed_pmf(n, max_shift, epsilon, delta)
    uses = {
        f"{name}_delta": snap(needed(table[name], question, epsilon))
        for name in ("law", "theorem3")
    }
    return table.assign(**uses)


# Curves with their exact breakpoints: δ and f(0), to be joined by straight lines.


def exact_curve(epsilon: float, **question: Any) -> pd.DataFrame:
    """That of the optimum, every piece proven (`workbench.models.modulo.frontier`)."""
    relation = question_of(**question)
    pieces = compute_delta_frontier(relation.sizes, relation.differences, epsilon)
    if not all(piece.is_proven for piece in pieces):
        raise WorkbenchError(
            f"A piece of the exact frontier of {relation} is not proven at epsilon = {epsilon:g}."
        )
    ends = np.array(
        [(p.delta_low, p.value_low, p.delta_high, p.value_high) for p in pieces]
    ).reshape(-1, 2)
    new = np.abs(np.diff(ends, axis=0, prepend=-1)).sum(axis=1) > _SAME
    return pd.DataFrame({"delta": ends[new, 0], "f0": 1 - ends[new, 1]})


def printed_curve(n: int, max_shift: int, epsilon: float) -> pd.DataFrame:
    """That of Theorem 3 as printed, at its printed boundaries; wrong, see `errata_checks`."""
    ends = [
        (end, stairs.mass)
        for stairs in staircases(n, max_shift, epsilon)
        for end in (stairs.lower, stairs.upper)
    ]
    return pd.DataFrame([*ends, (1.0, 1.0)], columns=["delta", "f0"])


def level(
    epsilon: Numbers, order: int, error_rate: float, *, symmetric: bool = False
) -> pd.DataFrame:
    """The least δ for an error rate at every ε: Corollary 1 and its symmetric form."""
    deltas = [
        (e, level_curve(order, e, error_rate, both_ways=symmetric)) for e in _numbers(epsilon)
    ]
    return pd.DataFrame(deltas, columns=["epsilon", "delta"])


# Baselines.


def steps(mechanism: Any, parameter: float) -> pd.DataFrame:
    """(ε from which on, δ) of the exact staircase δ(ε) of a mechanism, up to the largest ε shown."""
    curve = profile(mechanism, "pdp")
    ends = np.unique(np.round(curve.breakpoints, 11))  # losses that differ by rounding are one
    shown = pd.DataFrame({"epsilon": ends[ends <= _MOST], "parameter": parameter})
    return shown.assign(delta=curve.deltas((shown["epsilon"] + 1e-10).tolist())).drop_duplicates(
        "delta"
    )


def fitted_steps(family: str, n: int, **target: float) -> pd.DataFrame:
    """δ(ε) of the baseline that has an MSE or an error rate."""
    x = fit_baseline(family, n, **target)
    return steps(Channel.from_pairs(BASELINE_FAMILIES[family].build(n, x), pairs_within(n, 1)), x)


def _noise(variance: float, alpha: float | None, *, gaussian: bool) -> tuple[float, IntegerLaw]:
    """Geometric noise of this α, or of the α with this variance, or Gaussian noise: its parameter and its law."""
    if gaussian:
        radius, law = discrete_gaussian(read_number(variance, "variance"))
        return variance, IntegerLaw(-radius, law)
    ratio = geometric_alpha(variance) if alpha is None else alpha
    return ratio, IntegerLaw(0, [1], 1, Fraction(ratio))


def clamped(n: int | None, law: IntegerLaw) -> AdditiveIntegerNoise:
    """Noise clamped into 0..n, or (without n) not, for neighbours ± 1."""
    return AdditiveIntegerNoise(IntegerNoise(1, None if n is None else (0, n)), law)


def noise_steps(
    variance: float, alpha: float | None = None, n: int | None = None, *, gaussian: bool = False
) -> pd.DataFrame:
    """δ(ε) of noise clamped into 0..n, or (without n) not."""
    parameter, law = _noise(variance, alpha, gaussian=gaussian)
    return steps(clamped(n, law), parameter)


def noise_pmf(
    n: int, variance: float, alpha: float | None = None, *, gaussian: bool = False
) -> pd.DataFrame:
    """The masses of noise on -n..n."""
    parameter, law = _noise(variance, alpha, gaussian=gaussian)
    return pd.DataFrame(
        {"parameter": parameter, "eta": np.arange(-n, n + 1.0), "mass": compute_masses(law, -n, n)}
    )


def least_baseline(family: str, n: int, epsilon: Numbers, delta: float) -> pd.DataFrame:
    """A published mechanism on 0..n with the smallest parameter that is (ε, δ)-PDP for neighbours ± 1, at every ε."""
    entry = index_by_name(FAMILY.published_mechanisms())[family]
    question, rows = ModuloNoise(n=n, shifts=[1]), []
    for e in _numbers(epsilon):
        request = partial(FAMILY.make_request, question, epsilon=e, delta=delta, notion="pdp")
        squared, rate = (
            entry.make_reference(request(loss=loss)) for loss in ("squared", "error-rate")
        )
        rows.append((e, rate.value, squared.objective, rate.objective))
    return pd.DataFrame(rows, columns=["epsilon", "parameter", "mse", "error_rate"])


def independent_steps(n: int, error_rate: float) -> pd.DataFrame:
    """δ(ε) of data-independent noise."""
    return steps(data_independent(question_of(n=n, shifts=[1]), error_rate), error_rate)
