"""What a closed form says about a designed mechanism's objective."""

from __future__ import annotations

from dataclasses import dataclass, replace

from workbench.exact.objects import Record
from workbench.io.shown import OneLine
from workbench.pipeline.loss_scale import NO_LOSS, LossScale


@dataclass(frozen=True)
class OracleVerdict(OneLine):
    """What a closed form says about an objective.

    Attributes:
        name: of the law.
        value: of the law, in the units of the objective; None when no closed form applies.
        kind: "optimum", or "upper bound" / "lower bound" on the optimum where the law is not proven to be one.
        valid: whether `value` is proven to be the optimum of this very request.
        agrees: whether the objective is consistent with it, within `tolerance`, relative to the value minus the floor
            of the `scale`; None without a value, and where a solve stopped before it could tell (`stopped`).
        difference: objective - value.
        proof: in one sentence, why and where the law holds (or why there is none).
    """

    name: str | None
    value: float | None
    kind: str | None
    proof: str
    agrees: bool | None
    difference: float | None
    tolerance: float = 1e-6
    scale: LossScale = NO_LOSS

    @property
    def valid(self) -> bool:
        """Whether the value is a proven optimum."""
        return self.value is not None and self.kind == "optimum"

    @classmethod
    def judge(
        cls,
        objective: float | None,
        name: str,
        value: float,
        kind: str,
        proof: str,
        tolerance: float = 1e-6,
        scale: LossScale | None = None,
    ) -> OracleVerdict:
        """Compare an objective with a law: equal to an optimum, not above an upper bound, not below a lower one."""
        scale = scale or NO_LOSS
        if objective is None:
            return cls(name, value, kind, proof, None, None, tolerance, scale)
        above, below = scale.proves(value, objective, tolerance), scale.settles(objective, value, tolerance)
        consistent = {"optimum": above and below, "upper bound": below, "lower bound": above}[kind]
        return cls(name, value, kind, proof, consistent, objective - value, tolerance, scale)

    def stopped(self, bound: float | None) -> OracleVerdict:
        """The verdict on an objective that was not proven to be an optimum: it decides nothing that the objective is
        above the law, which may lie between the bound and the objective."""
        law, above = self.value or 0.0, self.agrees is False and (self.difference or 0.0) > 0
        below = self.kind == "optimum" and bound is not None and not self.scale.proves(bound, law, self.tolerance)
        return replace(self, agrees=None) if above and not below else self

    @classmethod
    def none(cls, reason: str) -> OracleVerdict:
        """No closed form applies."""
        return cls(None, None, None, reason, None, None)

    def __str__(self) -> str:
        if self.value is None:
            return f"none: {self.proof}"
        undecided = "no verdict" if self.difference is None else "not decided: stopped"
        verdict = "agrees" if self.agrees else undecided if self.agrees is None else "DISAGREES"
        return f"{self.name} {self.value:.9g} ({self.kind}), {verdict}. {self.proof}"

    def to_dict(self) -> Record:
        """JSON-ready."""
        shown = ("name", "value", "kind", "valid", "agrees", "difference", "proof")
        return {name: getattr(self, name) for name in shown}
