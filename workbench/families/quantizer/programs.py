"""Instances of the quantizer models: the exact quantizer LP, its metric form, MVU's LP in P, OPTM's Theorem 5.

Which there are says programs.toml beside this file.
"""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Mapping
from fractions import Fraction
from functools import cache, partial
from pathlib import Path

import numpy as np

from workbench.families.quantizer.certify import (
    audit_quantizer,
    certify_quantizer,
    find_least_epsilon,
)
from workbench.families.quantizer.laws import (
    LawProblem,
    LawQuestion,
    make_exact_problem,
    make_grid_problem,
)
from workbench.families.quantizer.optm import make_two_bin_shape
from workbench.mechanisms.baselines.two_bin import two_bin
from workbench.mechanisms.piecewise_affine import Quantizer
from workbench.models.quantizer.program import smallest_reach
from workbench.pipeline.programs import BuiltProgram, Instance, Judged, try_certify
from workbench.questions.density import uniform_density
from workbench.solvers.arrays import Vector


def _judge(
    epsilon: str,
    metric: str | None,
    mechanism: Callable[[Vector], Quantizer],
    price: Callable[[Quantizer], float | None],
    x: Vector,
    objective: float,
) -> Judged:
    """The exact ε (or metric slope) of the mechanism in a point, and its certified neighbour."""
    quantizer, budget = mechanism(x), Fraction(epsilon)
    privacy, claim = audit_quantizer(quantizer, budget, metric)
    private = not quantizer.bias and privacy.holds(claim)
    certified, value = try_certify(lambda: certify_quantizer(quantizer, budget, metric)[0], price)
    return Judged(
        float(budget),
        0.0,
        find_least_epsilon(privacy, metric, budget),
        None,
        private,
        certified,
        value,
    )


def _law_instance(
    name: str,
    suite: str,
    outputs: int,
    epsilon: str,
    knots: int,
    loss: str,
    metric: str | None = None,
) -> Instance:
    """The laws at knots, by a metric where one is named, over equally spaced outputs in ±reach, or on MVU's grid."""
    # 1.5 times the least reach of ε-DP is their end
    reach = Fraction(round(1.5 * smallest_reach(float(epsilon)), 3)).limit_denominator(1000)
    bins = [-reach + 2 * reach * Fraction(k, outputs - 1) for k in range(outputs)]
    cuts, grid = [Fraction(2 * k, knots - 1) - 1 for k in range(knots)], name.startswith("mvu")

    @cache
    def problem() -> LawProblem:
        points = np.array(cuts, dtype=float)
        if grid:
            return make_grid_problem(points, outputs, loss)
        question = LawQuestion(Fraction(epsilon), loss=loss, metric=metric)
        return make_exact_problem(points, outputs, question, symmetric=True)

    def build() -> BuiltProgram:
        return problem().model.program, problem().parameter_values(
            float(epsilon), np.array(bins, dtype=float)
        )

    def mechanism(x: Vector) -> Quantizer:
        laws = np.maximum(problem().unfold_laws(problem().model.laws(x)), 0.0)
        return Quantizer.from_ends("laws", bins, cuts, laws)

    def price(quantizer: Quantizer) -> float:
        if not grid:
            return float(quantizer.expected_loss(loss, uniform_density()))
        losses, _ = problem().compute_losses(quantizer.outputs)  # MVU's own: the mean over its grid
        return float((losses * quantizer.probabilities(problem().points)).sum())

    model = (
        "MVU LP in P" if grid else "exact quantizer LP" + (", |x - x'| metric" if metric else "")
    )
    where = "MVU's grid" if grid else f"{knots} knots"
    by = f", by {metric} distance" if metric else ""
    words = f"{outputs} outputs in ±{bins[-1]}, {where}, epsilon = {epsilon}{by}, {loss}"
    judge = partial(_judge, epsilon, metric, mechanism, price)
    return Instance(name, model, build, judge, suite, words)


def _two_bin_instance(
    name: str, bins: list[str], epsilon: str, around: Mapping[str, list[float]]
) -> Instance:
    """One of OPTM's linear programs: Theorem 5 with every bounded vector in a slice of 0.02 around a point."""
    outputs = [Fraction(b) for b in bins]
    middles = {int(size): tuple(middle) for size, middle in around.items()}
    shape = cache(partial(make_two_bin_shape, outputs, uniform_density()))

    def build() -> BuiltProgram:
        q = {key: np.array(middles[key[1]]) for key in shape().bounded_vectors}
        bounds = {
            key: (np.maximum(p - 0.01, 0.0), np.minimum(p + 0.01, 1.0)) for key, p in q.items()
        }
        lp = shape().theorem5(float(epsilon), bounds)
        return lp.to_program(f"OPTM, Theorem 5, {len(bins)} bins"), {}

    def mechanism(x: Vector) -> Quantizer:
        return two_bin(outputs, *shape().read_selections(x), name="OPTM")

    words = f"bins {', '.join(bins)}, epsilon = {epsilon}, slices of 0.02 around {middles}"
    judge = partial(
        _judge, epsilon, None, mechanism, lambda quantizer: None
    )  # its objective is a proxy, not an error
    return Instance(name, "OPTM LP, Theorem 5", build, judge, parameters=words)


def instances() -> list[Instance]:
    """The quantizer instances of the suites."""
    listed = tomllib.loads(Path(__file__).with_suffix(".toml").read_text("utf-8"))
    laws, library = (
        [_law_instance(*row) for row in listed[suite]] for suite in ("laws", "library")
    )
    return [*laws, *(_two_bin_instance(*row) for row in listed["two_bins"]), *library]
