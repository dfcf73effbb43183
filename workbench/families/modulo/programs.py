"""Build instances of the models of modulo noise for the program library and the suites.

The models are those of Kadam et al. 2024: the linear program (14) of pure DP; the mixed-integer
program (MILP, 13) of PDP, as printed ("literal") and with one binary variable for each inequality
that may be violated ("by patterns"); its form (15) that minimises δ; and the linear program of
(ε, δ)-DP. The file programs.toml beside this one lists the instances; an instance is added there.
"""

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

_DELTA_TOLERANCE = 1e-9  # A claimed δ is raised by this, which solvers' tolerances may hide.
_LOSS_TOLERANCE = Fraction(1, 10**9)  # A loss may exceed max_loss by this share.


@dataclass(frozen=True, eq=False)
class _ModuloCase:
    """One request with its program.

    Attributes:
        options: the options of the request.
        by_patterns: whether the program is the MILP by patterns instead of the literal one.
    """

    options: Values
    by_patterns: bool = False

    @lru_cache  # noqa: B019  (cases live as long as the process)
    def make_request(self) -> Any:
        """Make the request; for the least δ if the options have a max_loss."""
        aim = {"minimise": "delta"} if "max_loss" in self.options else {}
        return FAMILY.make_request_from_options(**self.options, **aim)

    @property
    def parameter_text(self) -> str:
        """Return the question and the options of the request in one line, for tables."""
        request = self.make_request()
        notion = request.claim.notion.name
        loss = request.aim.loss
        if request.aim.max_loss is None:
            limit = f"delta = {self.options.get('delta', '0')}"
        else:
            limit = f"{loss} <= {float(request.aim.max_loss):g}"
        epsilon = self.options["epsilon"]
        return f"{request.question!r}, {notion}, epsilon = {epsilon}, {limit}, loss {loss}"

    @lru_cache  # noqa: B019
    def build(self) -> BuiltProgram:
        """Build the program with the values of its parameters."""
        request = self.make_request()
        if not self.by_patterns:
            return request.model().program, request.parameters()
        question = request.question
        ratios = np.exp([float(epsilon) for epsilon in request.budgets.values()])
        delta = float(request.claim.delta)
        noise = NoiseProblem(question.sizes, tuple(request.budgets), ratios, request.losses, delta)
        return build_milp(noise, f"noise MILP by patterns on {question.order}"), {}

    def judge(self, x: Vector, objective: float) -> Judged:
        """Audit and certify the noise of a solver's point.

        Args:
            x: the point (columns,).
            objective: the objective that the solver claims: the expected loss, or δ if it is
                minimised.

        Returns:
            The required ε (the largest of all shifts) and δ, the exact ε and δ of the solver's
            noise, whether it has the required privacy, whether the repaired noise is certified, and
            the objective of the certified noise.
        """
        request = self.make_request()
        program, _ = self.build()
        budgets = request.budgets
        notion = request.claim.notion.name
        max_loss = request.aim.max_loss
        pmf = np.maximum(program.block("f").read(x), 0.0)
        mechanism = AdditiveNoise.from_pmf(request.question, pmf)
        delta = request.claim.delta
        if max_loss is not None:
            delta = min(1.0, max(0.0, objective) + _DELTA_TOLERANCE)
        privacy = audit(mechanism, budgets)

        def compute_objective(certificate: Any) -> float | None:
            """Return the objective of the certified noise; None if it cannot be compared."""
            loss = compute_exact_loss(certificate.mechanism, request.losses)
            if max_loss is None:
                return float(loss)
            if loss > max_loss * (1 + _LOSS_TOLERANCE):
                return None  # The noise is private, but its δ belongs to a larger loss.
            return float(
                audit(certificate.mechanism, budgets).worst_result(notion).measurement.upper
            )

        is_certified, certified_objective = try_certify(
            lambda: certify(mechanism, notion, request.claim.epsilon, delta), compute_objective
        )
        return Judged(
            claimed_epsilon=float(max(budgets.values())),
            claimed_delta=float(delta),
            exact_epsilon=privacy.pure_epsilon,
            exact_delta=float(privacy.worst_result(notion).measurement.upper),
            private=privacy.meets(notion, budgets, delta),
            certified=is_certified,
            certified_objective=certified_objective,
        )


def instances() -> list[Instance]:
    """List the noise instances of the suites, which programs.toml beside this file describes."""
    tables = tomllib.loads(Path(__file__).with_suffix(".toml").read_text("utf-8"))["case"]
    return [_make_instance(**table) for table in tables]


def _make_instance(
    name: str, suite: str, model: str, given: Values, *, by_patterns: bool = False
) -> Instance:
    """Make an instance from a table of programs.toml, whose keys are the parameters.

    Args:
        name: the name of the instance, without "noise-".
        suite: the suite of the instance.
        model: the name of the model in tables.
        given: the options of the request.
        by_patterns: whether the program is the MILP by patterns.
    """
    case = _ModuloCase(given, by_patterns=by_patterns)
    return Instance(f"noise-{name}", model, case.build, case.judge, suite, case.parameter_text)
