"""Build instances of the quantizer models for the program library and the suites.

The models are linear programs (LP): the exact quantizer and its form for privacy by distance
(`workbench.families.quantizer.laws`), MVU's program for its matrix P (Chaudhuri et al. 2022), and
the program of Theorem 5 of Cai et al. 2024 (OPTM). The file programs.toml beside this one lists the
instances; an instance is added there.
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

_REACH_FACTOR = 1.5  # Instances reach this multiple of the least reach of ε-DP.
_SLICE_HALF_WIDTH = 0.01  # Bounded vectors of OPTM's instances are in slices of twice this width.


def _judge_quantizer(
    epsilon: str,
    metric: str | None,
    read_mechanism: Callable[[Vector], Quantizer],
    compute_objective: Callable[[Quantizer], float | None],
    x: Vector,
    objective: float,
) -> Judged:
    """Audit and certify the mechanism of a solver's point.

    Args:
        epsilon: the budget ε > 0 as a decimal or a fraction.
        metric: None for ε-DP, or "absolute" for privacy by the distance |x - x'|.
        read_mechanism: returns the mechanism of a point.
        compute_objective: returns the objective of the certified mechanism, or None if there is
            none to compare.
        x: the point (columns,).
        objective: the objective that the solver claims. It is not used, as ε is no variable.
    """
    quantizer = read_mechanism(x)
    budget = Fraction(epsilon)
    privacy, claim = audit_quantizer(quantizer, budget, metric)

    def certify_mechanism() -> Quantizer:
        """Return the repaired quantizer. Raises NotCertified."""
        repaired_quantizer, _, _ = certify_quantizer(quantizer, budget, metric)
        return repaired_quantizer

    is_certified, certified_objective = try_certify(certify_mechanism, compute_objective)
    return Judged(
        claimed_epsilon=float(budget),
        claimed_delta=0.0,
        exact_epsilon=find_least_epsilon(privacy, metric, budget),
        exact_delta=None,
        private=not quantizer.bias and privacy.holds(claim),
        certified=is_certified,
        certified_objective=certified_objective,
    )


def _make_law_instance(
    name: str,
    suite: str,
    outputs: int,
    epsilon: str,
    knots: int,
    loss: str,
    metric: str | None = None,
) -> Instance:
    """Make an instance of laws at knots or on MVU's grid, over equally spaced outputs.

    Args:
        name: the name of the instance; one that begins with "mvu" has laws on MVU's grid.
        suite: the suite of the instance.
        outputs: the number of outputs.
        epsilon: the budget ε > 0 as a decimal or a fraction.
        knots: the number of equally spaced knots, or of points of MVU's grid.
        loss: "absolute" or "squared".
        metric: None for ε-DP, or "absolute" for privacy by the distance |x - x'|.
    """
    reach = Fraction(round(_REACH_FACTOR * smallest_reach(float(epsilon)), 3))
    # This is the decimal of three digits that the float stands for.
    reach = reach.limit_denominator(1000)
    bins = [-reach + 2 * reach * Fraction(k, outputs - 1) for k in range(outputs)]
    inputs = [Fraction(2 * k, knots - 1) - 1 for k in range(knots)]
    is_mvu = name.startswith("mvu")

    @cache
    def make_problem() -> LawProblem:
        """Make the problem of the laws, once for all functions of the instance."""
        points = np.array(inputs, dtype=float)
        if is_mvu:
            return make_grid_problem(points, outputs, loss)
        question = LawQuestion(Fraction(epsilon), loss=loss, metric=metric)
        return make_exact_problem(points, outputs, question, symmetric=True)

    def build() -> BuiltProgram:
        """Return the program and the values of its parameters."""
        problem = make_problem()
        values = problem.parameter_values(float(epsilon), np.array(bins, dtype=float))
        return problem.model.program, values

    def read_mechanism(x: Vector) -> Quantizer:
        """Return the quantizer of a solver's point, whose negative masses are set to 0."""
        problem = make_problem()
        laws = np.maximum(problem.unfold_laws(problem.model.laws(x)), 0.0)
        return Quantizer.from_ends("laws", bins, inputs, laws)

    def compute_objective(quantizer: Quantizer) -> float:
        """Return the loss that the program minimises, computed from the quantizer."""
        if not is_mvu:
            return float(quantizer.expected_loss(loss, uniform_density()))
        # MVU's objective is the mean over its grid.
        problem = make_problem()
        losses, _ = problem.compute_losses(quantizer.outputs)
        return float((losses * quantizer.probabilities(problem.points)).sum())

    model = "exact quantizer LP"
    if is_mvu:
        model = "MVU LP in P"
    elif metric:
        model += ", |x - x'| metric"
    inputs_text = "MVU's grid" if is_mvu else f"{knots} knots"
    metric_text = ""
    if metric:
        metric_text = f", by {metric} distance"
    parameters = (
        f"{outputs} outputs in ±{bins[-1]}, {inputs_text}, epsilon = {epsilon}{metric_text}, {loss}"
    )
    judge = partial(_judge_quantizer, epsilon, metric, read_mechanism, compute_objective)
    return Instance(name, model, build, judge, suite=suite, parameters=parameters)


def _make_two_bin_instance(
    name: str, bins: list[str], epsilon: str, centres: Mapping[str, list[float]]
) -> Instance:
    """Make an instance of Theorem 5 with every bounded vector in a slice around a point.

    Args:
        name: the name of the instance.
        bins: the outputs as decimals, in increasing order.
        epsilon: the budget ε > 0 as a decimal or a fraction.
        centres: length of a bounded vector -> the centres of the slices of its entries.
    """
    outputs = [Fraction(b) for b in bins]
    centres_by_size = {int(size): tuple(centre) for size, centre in centres.items()}
    make_shape = cache(partial(make_two_bin_shape, outputs, uniform_density()))

    def build() -> BuiltProgram:
        """Return the program with its slices; it has no parameters."""
        shape = make_shape()
        bounds = {}
        for side, length in shape.bounded_vectors:
            centre = np.array(centres_by_size[length])
            low = np.maximum(centre - _SLICE_HALF_WIDTH, 0.0)
            high = np.minimum(centre + _SLICE_HALF_WIDTH, 1.0)
            bounds[side, length] = (low, high)
        lp = shape.theorem5(float(epsilon), bounds)
        return lp.to_program(f"OPTM, Theorem 5, {len(bins)} bins"), {}

    def read_mechanism(x: Vector) -> Quantizer:
        """Return the two-bin mechanism of a solver's point."""
        return two_bin(outputs, *make_shape().read_selections(x), name="OPTM")

    parameters = (
        f"bins {', '.join(bins)}, epsilon = {epsilon}, slices of 0.02 around {centres_by_size}"
    )
    # The objective is a proxy, so there is no error to compare.
    judge = partial(_judge_quantizer, epsilon, None, read_mechanism, lambda quantizer: None)
    return Instance(name, "OPTM LP, Theorem 5", build, judge, parameters=parameters)


def instances() -> list[Instance]:
    """List the quantizer instances of the suites."""
    tables = tomllib.loads(Path(__file__).with_suffix(".toml").read_text("utf-8"))
    # The entries of a row are the arguments of the function, in their order.
    laws = [_make_law_instance(*row) for row in tables["laws"]]
    two_bins = [_make_two_bin_instance(*row) for row in tables["two_bins"]]
    library = [_make_law_instance(*row) for row in tables["library"]]
    return [*laws, *two_bins, *library]
