"""Instances of the noise models: LP (14), the DP-LP, the literal MILP (13), the same by patterns, minimum δ (15)."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from workbench.exact.objects import Values
from workbench.families.modulo.family import FAMILY
from workbench.mechanisms.additive import AdditiveNoise
from workbench.models.modulo.patterns import NoiseProblem, build_milp
from workbench.pipeline.programs import BuiltProgram, Instance, Judged, try_certify
from workbench.privacy.audit import audit
from workbench.privacy.certify import certify
from workbench.privacy.repair import compute_exact_loss
from workbench.solvers.arrays import Vector


@dataclass(frozen=True, eq=False)
class _Case:
    """One request as it is spelled. patterns: states the MILP by patterns (workbench.models.modulo.patterns) instead
    of the literal one."""

    given: Values
    patterns: bool = False

    @lru_cache  # noqa: B019  (cases live as long as the process)
    def request(self) -> Any:
        least = {"minimise": "delta"} if "max_loss" in self.given else {}
        return FAMILY.make_request_from_options(**self.given, **least)

    @property
    def words(self) -> str:
        """The parameters."""
        request, given = self.request(), self.given
        most = request.aim.max_loss
        limit = (
            f"delta = {given.get('delta', '0')}"
            if most is None
            else f"{request.aim.loss} <= {float(most):g}"
        )
        epsilon = given["epsilon"]
        return f"{request.question!r}, {request.claim.notion.name}, epsilon = {epsilon}, {limit}, loss {request.aim.loss}"

    @lru_cache  # noqa: B019
    def build(self) -> BuiltProgram:
        request = self.request()
        if not self.patterns:
            return request.model().program, request.parameters()
        odds, q = np.exp([float(value) for value in request.budgets.values()]), request.question
        noise = NoiseProblem(
            q.sizes, tuple(request.budgets), odds, request.losses, float(request.claim.delta)
        )
        return build_milp(noise, f"noise MILP by patterns on {q.order}"), {}

    def judge(self, x: Vector, objective: float) -> Judged:
        request, (program, _) = self.request(), self.build()
        budgets, notion, most = request.budgets, request.claim.notion.name, request.aim.max_loss
        mechanism = AdditiveNoise.from_pmf(
            request.question, np.maximum(program.block("f").read(x), 0.0)
        )
        # a δ has the billionth that solvers' tolerances may hide
        claimed = request.claim.delta if most is None else min(1.0, max(0.0, objective) + 1e-9)
        privacy = audit(mechanism, budgets)

        def price(certificate: Any) -> float | None:
            loss = compute_exact_loss(certificate.mechanism, request.losses)
            if most is None:
                return float(loss)
            if loss > most * (1 + Fraction(1, 10**9)):
                return None  # private, but its δ is that of a larger budget
            return float(
                audit(certificate.mechanism, budgets).worst_result(notion).measurement.upper
            )

        certified, value = try_certify(
            lambda: certify(mechanism, notion, request.claim.epsilon, claimed), price
        )
        exact, private = (
            float(privacy.worst_result(notion).measurement.upper),
            privacy.meets(notion, budgets, claimed),
        )
        largest = float(max(budgets.values()))
        return Judged(
            largest, float(claimed), privacy.pure_epsilon, exact, private, certified, value
        )


def instances() -> list[Instance]:
    """The noise instances of the suites."""
    tables = tomllib.loads(Path(__file__).with_suffix(".toml").read_text("utf-8"))["case"]
    return [_instance(**table) for table in tables]


def _instance(name: str, suite: str, model: str, given: Values) -> Instance:
    case = _Case(given, "patterns" in model)
    return Instance(f"noise-{name}", model, case.build, case.judge, suite, case.words)
