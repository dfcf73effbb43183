"""What is asked of an unbiased private law on real inputs, all but its outputs: shared by every search for outputs."""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction

from solvers.backend import Options
from workbench.mechanisms.density import Density

__all__ = ["LawQuestion"]


@dataclass(frozen=True)
class LawQuestion:
    """The least expected error of inputs in [-c, c] under a budget.

    Args:
        epsilon: > 0.
        c: half the width of the input domain, > 0.
        density: of the inputs.
        loss: "absolute", "squared", or λ for λ|e| + (1 - λ) e².
        metric: None for ε-DP; else a metric of `workbench.families.quantizer.laws.exact_problem`.
        solver, options: a label of `workbench doctor`, and what it is told; options do not tell questions apart.
    """

    epsilon: Fraction
    c: Fraction
    density: Density
    loss: object = "absolute"
    metric: str | None = None
    solver: str = "highs"
    options: Options = field(default_factory=Options, compare=False)
