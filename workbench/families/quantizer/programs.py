"""Instances of the quantizer models: the exact quantizer LP, its metric form, MVU's LP in P, OPTM's Theorem 5."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from models.quantizer import smallest_reach
from workbench.exact.numbers import Real, exact
from workbench.families.programs import Instance, Judged, certified_or_not
from workbench.families.quantizer.certify import certified_quantizer
from workbench.families.quantizer.laws import LawProblem, exact_problem, grid_problem
from workbench.families.quantizer.optm import shape_of
from workbench.mechanisms.baselines.two_bin import two_bin
from workbench.mechanisms.density import uniform
from workbench.mechanisms.piecewise_affine import Quantizer
from workbench.privacy.quantizer import audit_quantizer

__all__ = ["instances"]


Vector = NDArray[np.float64]


def _judged(
    quantizer: Quantizer,
    epsilon: Fraction,
    price: Callable[[Quantizer], float] | None,
    metric: str | None = None,
) -> Judged:
    """The quantizer's exact ε (or metric slope), and its certified neighbour."""
    privacy = audit_quantizer(quantizer, metric)
    private = not privacy.bias and privacy.meets("pure" if metric is None else "metric", epsilon)
    certified, value = certified_or_not(
        lambda: certified_quantizer(quantizer, epsilon, metric)[0], price or (lambda certified_mechanism: None)
    )
    return Judged(float(epsilon), 0.0, privacy.epsilon, None, private, certified, value)


@dataclass(frozen=True, eq=False)
class _Laws:
    """The laws at knots (metric or not) over equally spaced outputs in ±reach, or on MVU's grid."""

    outputs: int
    epsilon: Real
    knots: int
    loss: str = "absolute"
    metric: str | None = None
    grid: bool = False

    @property
    def words(self) -> str:
        """The parameters."""
        kind = "MVU's grid" if self.grid else f"{self.knots} knots"
        by = f", by {self.metric} distance" if self.metric else ""
        return f"{self.outputs} outputs in ±{self.bins[-1]}, {kind}, epsilon = {self.epsilon}{by}, {self.loss}"

    @property
    def bins(self) -> list[Fraction]:
        """Equally spaced, so that 1.5 times the least reach of ε-DP is their end."""
        reach = Fraction(round(1.5 * smallest_reach(float(exact(self.epsilon, "epsilon"))), 3)).limit_denominator(1000)
        return [-reach + 2 * reach * Fraction(k, self.outputs - 1) for k in range(self.outputs)]

    @property
    def cuts(self) -> list[Fraction]:
        return [Fraction(2 * k, self.knots - 1) - 1 for k in range(self.knots)]

    @lru_cache  # noqa: B019  (instances live as long as the process)
    def problem(self) -> LawProblem:
        points = np.array([float(cut) for cut in self.cuts])
        if self.grid:
            return grid_problem(points, self.outputs, self.loss)
        return exact_problem(points, self.outputs, uniform(), self.loss, symmetric=True, metric=self.metric)

    def build(self) -> tuple[Any, Mapping[str, Any]]:
        problem, outputs = self.problem(), np.array([float(b) for b in self.bins])
        return problem.model.program, problem.values(float(exact(self.epsilon, "epsilon")), outputs)

    def judge(self, x: Vector, objective: float) -> Judged:
        problem = self.problem()
        laws = np.maximum(problem.unfold(problem.model.laws(x)), 0.0)
        if self.grid or self.metric is not None:  # continuous between the points
            ends = np.stack([laws[:-1], laws[1:]], axis=1)
        else:
            ends = laws.reshape(-1, 2, self.outputs)
        mechanism = Quantizer.from_ends("laws", self.bins, self.cuts, ends)

        def price(quantizer: Quantizer) -> float:
            if not self.grid:
                return float(quantizer.expected(self.loss, uniform()))
            losses, _ = problem.losses(quantizer.outputs)  # MVU's own: the mean over its grid
            return float((losses * quantizer.probabilities(problem.points)).sum())

        return _judged(mechanism, exact(self.epsilon, "epsilon"), price, self.metric)


@dataclass(frozen=True, eq=False)
class _TwoBin:
    """One of OPTM's linear programs: Theorem 5 with every bounded vector in a slice of 0.02 around a point."""

    bins: tuple[str, ...]
    epsilon: Real
    around: Mapping[int, tuple[float, ...]]  # length of a bounded vector -> the middle of its slices

    @property
    def words(self) -> str:
        """The parameters."""
        return f"bins {', '.join(self.bins)}, epsilon = {self.epsilon}, slices of 0.02 around {dict(self.around)}"

    @lru_cache  # noqa: B019  (instances live as long as the process)
    def shape(self) -> Any:
        return shape_of([Fraction(b) for b in self.bins], Fraction(1), uniform())

    def build(self) -> tuple[Any, Mapping[str, Any]]:
        middle = {key: np.array(self.around[key[1]]) for key in self.shape().bounded}
        bounds = {key: (np.maximum(q - 0.01, 0.0), np.minimum(q + 0.01, 1.0)) for key, q in middle.items()}
        lp = self.shape().theorem5(float(exact(self.epsilon, "epsilon")), bounds)
        return lp.program(f"OPTM, Theorem 5, {len(self.bins)} bins"), {}

    def judge(self, x: Vector, objective: float) -> Judged:
        left, right = self.shape().selection(x)
        mechanism = two_bin([Fraction(b) for b in self.bins], left, right, name="OPTM")
        return _judged(mechanism, exact(self.epsilon, "epsilon"), None)  # its objective is a proxy, not an error


def instances() -> list[Instance]:
    """The quantizer instances of the suites."""
    laws = [
        ("quantizer-m4", "exact quantizer LP", _Laws(4, 1, 41), True),
        ("quantizer-m8", "exact quantizer LP", _Laws(8, 2, 81), False),
        ("quantizer-m16-mse", "exact quantizer LP", _Laws(16, 1, 41, "squared"), False),
        ("quantizer-metric-m6", "exact quantizer LP, |x - x'| metric", _Laws(6, 1, 41, metric="absolute"), False),
        ("mvu-m4", "MVU LP in P", _Laws(4, 1, 4, "squared", grid=True), True),
        ("mvu-m16", "MVU LP in P", _Laws(16, 2, 16, "squared", grid=True), False),
    ]
    two_bins = [
        ("optm-m4", _TwoBin(("-3", "-1/2", "1/2", "3"), 1, {2: (0.675, 0.325)})),
        ("optm-m4-near", _TwoBin(("-2", "-1/2", "1/2", "2"), "1.5", {2: (0.615, 0.385)})),
        ("optm-m6", _TwoBin(("-3", "-3/4", "-1/4", "1/4", "3/4", "3"), "1.5",
                            {2: (0.61, 0.39), 3: (0.443, 0.247, 0.31)})),
    ]  # fmt: skip
    library = [
        *(
            (f"quantizer-m{m}-k{knots}-{loss}", "exact quantizer LP", _Laws(m, epsilon, knots, loss))
            for m, epsilon, knots, loss in (
                (2, 1, 5, "absolute"),
                (3, "0.5", 21, "absolute"),
                (4, "0.1", 41, "squared"),
                (6, 3, 61, "squared"),
                (12, 1, 201, "absolute"),
                (32, 2, 401, "squared"),
            )
        ),
        *(
            (f"quantizer-metric-m{m}", "exact quantizer LP, |x - x'| metric", _Laws(m, 1, 21, metric="absolute"))
            for m in (3, 10)
        ),
        *(
            (f"mvu-m{m}", "MVU LP in P", _Laws(m, epsilon, m, "squared", grid=True))
            for m, epsilon in ((2, 1), (8, "0.5"), (32, 3), (64, 2))
        ),
    ]
    return [
        *(Instance(name, model, case.build, case.judge, small, False, case.words) for name, model, case, small in laws),
        *(
            Instance(name, "OPTM LP, Theorem 5", case.build, case.judge, False, False, case.words)
            for name, case in two_bins
        ),
        *(Instance(name, model, case.build, case.judge, False, True, case.words) for name, model, case in library),
    ]
