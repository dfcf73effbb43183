"""Instances of the noise models: LP (14), the DP-LP, the literal MILP (13), the same by patterns, minimum δ (15)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from models.noise import NoiseModel, cost_vector
from models.noise_holes import facts, hole_search, weights
from models.noise_patterns import Facts, Noise, milp
from workbench.exact.numbers import Real
from workbench.families.programs import Instance, Judged, as_delta, certified_or_not
from workbench.families.requirements import ratio_kind
from workbench.mechanisms.additive import AdditiveNoise
from workbench.mechanisms.modulo import ModuloNoise
from workbench.privacy.audit import audit
from workbench.privacy.certify import certify

__all__ = ["instances"]


Vector = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class _Case:
    """One request; `patterns` states the MILP by patterns (models.noise_patterns) instead of the literal one."""

    question: ModuloNoise
    notion: str
    epsilon: Real | Mapping[Any, Real]
    delta: Real = 0
    cost: str = "error-rate"
    budget: float | None = None
    patterns: bool = False

    @property
    def words(self) -> str:
        """The parameters."""
        epsilon = self.epsilon if not isinstance(self.epsilon, Mapping) else dict(self.epsilon)
        limit = f", {self.cost} <= {self.budget:g}" if self.budget is not None else f", delta = {self.delta}"
        return f"{self.question!r}, {self.notion}, epsilon = {epsilon}{limit}, cost {self.cost}"

    @property
    def levels(self) -> Sequence[float]:
        return sorted({float(value) for value in self.question.budgets(self.epsilon).values()})

    @lru_cache  # noqa: B019  (cases live as long as the process)
    def build(self) -> tuple[Any, Mapping[str, Any]]:
        q, budgets = self.question, self.question.budgets(self.epsilon)
        costs = cost_vector(self.cost, q.sizes)
        if self.patterns:
            odds = np.exp([float(value) for value in budgets.values()])
            noise = Noise(q.sizes, tuple(budgets), odds, costs, float(self.delta))
            known = Facts.none(noise)
            if noise.error_rate:
                w = weights(noise)
                holes = hole_search(noise, w)
                known = facts(noise, w, holes.zero, holes.delta, known.kept)
            return milp(noise, known, f"noise MILP by patterns on {q.order}"), {}
        groups = tuple(self.levels.index(float(value)) for value in budgets.values())
        minimise = "error" if self.budget is None else "delta"
        positive = bool(self.delta) or self.budget is not None
        model = NoiseModel(q.sizes, tuple(budgets), ratio_kind(self.notion), costs, minimise, positive, groups)
        return model.program, model.values(self.levels, float(self.delta), self.budget)

    def judge(self, x: Vector, objective: float) -> Judged:
        program, _ = self.build()
        masses = np.maximum(program.block("f").read(x), 0.0)
        mechanism = AdditiveNoise.from_pmf(self.question, masses)
        budgets = self.question.budgets(self.epsilon)
        claimed = self.delta if self.budget is None else as_delta(objective)
        privacy = audit(mechanism, budgets)
        costs = cost_vector(self.cost, self.question.sizes)

        def price(certificate: Any) -> float | None:
            cost = float(np.max(costs @ certificate.mechanism.pmf))  # for the worst answer, a row for every answer
            if self.budget is None:
                return cost
            if cost > self.budget * (1 + 1e-9):
                return None  # private, but its δ is that of a larger budget
            reached = audit(certificate.mechanism, budgets)
            return float(reached.worst(self.notion).measured.upper)

        certified, value = certified_or_not(lambda: certify(mechanism, self.notion, self.epsilon, claimed), price)
        exact = float(privacy.worst(self.notion).measured.upper)
        return Judged(
            max(self.levels), float(claimed), privacy.pure_epsilon, exact,
            privacy.meets(self.notion, budgets, claimed), certified, value,
        )  # fmt: skip


def _instance(name: str, model: str, case: _Case, small: bool = False, library: bool = False) -> Instance:
    return Instance(f"noise-{name}", model, case.build, case.judge, small, library, case.words)


def _bounded(n: int, max_shift: int, *, directed: bool = False) -> ModuloNoise:
    return ModuloNoise(n=n, max_shift=max_shift, directed=directed)


_SET = ModuloNoise(n=16, shifts=[1, 3, 5, 6], directed=True)
_GRID = ModuloNoise(sizes=[5, 5], shifts=[(0, 1), (1, 0), (1, 1)])
_BLOCK = ModuloNoise(sizes=[3, 3], shifts=[(0, 1), (1, 0)])
_METRIC = {shift: 0.25 * shift for shift in (1, 2, 3, 4)}


def instances() -> list[Instance]:
    """The noise instances of the suites."""
    make: Callable[..., Instance] = _instance
    return [
        make("lp-n8", "LP (14)", _Case(_bounded(8, 3), "pdp", 1), small=True),
        make("lp-n64", "LP (14)", _Case(_bounded(64, 3), "pdp", 1)),
        make("lp-n200", "LP (14)", _Case(_bounded(200, 4), "pdp", "0.5", cost="squared")),
        make("lp-metric-n24", "LP (14), one ε per difference", _Case(_bounded(24, 4), "pdp", _METRIC)),
        make("lp-vector-5x5", "LP (14), vector query", _Case(_GRID, "pdp", 1)),
        make("dp-n8", "DP-LP", _Case(_bounded(8, 3), "dp", "1.5", "0.1"), small=True),
        make("dp-n64", "DP-LP", _Case(_bounded(64, 3), "dp", 1, "0.01", "squared")),
        make("dp-tiny-delta-n159", "DP-LP, δ = 1e-8", _Case(_bounded(159, 1), "dp", 2, "1e-8")),
        make("dp-vector-5x5", "DP-LP, vector query", _Case(_GRID, "dp", 1, "0.05")),
        make("min-delta-dp-n16", "minimum δ by DP-LP", _Case(_bounded(16, 3), "dp", 1, budget=0.6)),
        make("milp-n8", "MILP (13)", _Case(_bounded(8, 3), "pdp", "1.5", "0.1"), small=True),
        make("milp-directed-n8", "MILP (13)", _Case(_bounded(8, 3, directed=True), "pdp", "1.5", "0.1212")),
        make("milp-n12", "MILP (13)", _Case(_bounded(12, 3), "pdp", 1, "0.05")),
        make("milp-set-n16", "MILP (13)", _Case(_SET, "pdp", 1, "0.1")),
        make("milp-tiny-delta-n12", "MILP (13), δ = 1e-6", _Case(_bounded(12, 2), "pdp", "1.5", "1e-6")),
        make("milp-squared-n10", "MILP (13)", _Case(_bounded(10, 2), "pdp", 1, "0.05", "squared")),
        make("milp-vector-3x3", "MILP (13), vector query", _Case(_BLOCK, "pdp", 1, "0.1")),
        make("min-delta-milp-n8", "minimum δ by MILP (15)", _Case(_bounded(8, 3), "pdp", "1.5", budget=0.5)),
        make("patterns-n16", "MILP by patterns", _Case(_bounded(16, 3), "pdp", 1, "0.1", patterns=True)),
        make("patterns-set-n24", "MILP by patterns",
             _Case(ModuloNoise(n=24, shifts=[1, 3, 5, 6]), "pdp", 1, "0.05", patterns=True)),
        *_library(),
    ]  # fmt: skip


def _library() -> list[Instance]:
    """Those of the library alone: other sizes, costs and relations, up to 10^5 non-zeros."""
    lp, dp, milp = "LP (14)", "DP-LP", "MILP (13)"
    cases: list[tuple[str, str, _Case]] = [
        *((f"lp-n{n}-m{m}", lp, _Case(_bounded(n, m), "pdp", 1)) for n, m in
          ((2, 1), (4, 1), (16, 2), (32, 5), (100, 8), (500, 6), (1000, 12), (3000, 8))),
        *((f"lp-n20-{cost}", lp, _Case(_bounded(20, 3), "pdp", "0.8", cost=cost)) for cost in
          ("eta-squared", "squared", "circular-squared", "worst-squared")),
        *((f"lp-n30-eps{epsilon}", lp, _Case(_bounded(30, 2), "pdp", epsilon)) for epsilon in
          ("0.01", "0.1", "4", "10")),
        ("lp-directed-n50", lp, _Case(_bounded(50, 4, directed=True), "pdp", 1, cost="eta-squared")),
        ("lp-vector-3x3x3", f"{lp}, vector query",
         _Case(ModuloNoise(sizes=[3, 3, 3], shifts=[(0, 0, 1), (0, 1, 0), (1, 0, 0)]), "pdp", 1)),
        ("lp-vector-16x16", f"{lp}, vector query",
         _Case(ModuloNoise(sizes=[16, 16], shifts=[(0, 1), (1, 0), (1, 1)]), "pdp", "0.5", cost="squared")),
        *((f"dp-n{n}-m{m}", dp, _Case(_bounded(n, m), "dp", 1, delta, "squared")) for n, m, delta in
          ((4, 1, "0.1"), (16, 2, "0.001"), (32, 4, "0.05"), (128, 4, "0.01"), (400, 3, "0.001"), (1000, 4, "0.001"))),
        ("dp-vector-6x6", f"{dp}, vector query",
         _Case(ModuloNoise(sizes=[6, 6], shifts=[(0, 1), (1, 0)]), "dp", 1, "0.02", "squared")),
        *((f"min-delta-dp-n{n}", "minimum δ by DP-LP", _Case(_bounded(n, 2), "dp", 1, budget=budget)) for n, budget in
          ((8, 0.4), (64, 0.5))),
        *((f"milp-n{n}-m{m}", milp, _Case(_bounded(n, m), "pdp", 1, delta)) for n, m, delta in
          ((4, 1, "0.1"), (6, 2, "0.05"), (9, 2, "0.02"), (14, 1, "0.05"))),
        ("milp-circular-n9", milp, _Case(_bounded(9, 2), "pdp", 1, "0.05", "circular-squared")),
        ("milp-vector-2x4", f"{milp}, vector query",
         _Case(ModuloNoise(sizes=[2, 4], shifts=[(0, 1), (1, 0)]), "pdp", 1, "0.05")),
        *((f"patterns-n{n}-m{m}", "MILP by patterns", _Case(_bounded(n, m), "pdp", 1, "0.05", patterns=True))
          for n, m in ((12, 2), (32, 3))),
    ]  # fmt: skip
    return [_instance(name, model, case, library=True) for name, model, case in cases]
