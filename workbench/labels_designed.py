"""A designed label randomizer and everything that is known about it."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from workbench.designing import Design
from workbench.mechanisms.randomized_response import RandomizedResponse

__all__ = ["LabelDesign"]

_USED = 1e-9  # an output of less mass than this, for every label, is not in use


@dataclass(frozen=True)
class LabelDesign(Design):
    """A designed label randomizer: a `Design` whose mechanism is a RandomizedResponse or a LabelChannel.

    solution is None for the methods bins and printed, which need no solver.
    """

    @property
    def status(self) -> str:
        """How the search stopped."""
        return "optimal" if self.solution is None else str(self.solution.termination)

    @property
    def proof(self) -> str:
        """Whether there is a certificate, and where its masses come from."""
        if self.certificate is None:
            return "not certified; the audit is exact" if self.private else "not certified: MISSES the request"
        return f"certified ({self.route})"

    @property
    def bins(self) -> list[dict[str, float]] | None:
        """lower, upper (first and last label) and value of every bin; None when the mechanism has no bins."""
        return self.mechanism.bins() if isinstance(self.mechanism, RandomizedResponse) else None

    @property
    def d(self) -> int:
        """How many outputs are in use."""
        if isinstance(self.mechanism, RandomizedResponse):
            return int(self.mechanism.outputs.size)
        return int((self.mechanism.matrix.max(axis=0) > _USED).sum())

    def to_dict(self) -> dict[str, Any]:
        """JSON-ready: the keys of `workbench design labels --json`."""
        r = self.request
        made: dict[str, Any] = {
            "objective": self.objective, "bound": self.bound, "gap": self.gap, "status": self.status,
            "method": r["method"], "loss": r["loss"], "epsilon": float(r["asked"]), "delta": float(r["delta"]),
            "notion": r["notion"], "neighbours": r["neighbours"], "labels": self.question.k, "d": self.d,
            "bins": self.bins,
            "exact": {"epsilon": _finite(self.privacy.pure_epsilon)}, "private": self.private,
            "certified": self.certificate is not None, "oracle": self.oracle.to_dict(), "words": list(self.words),
        }  # fmt: skip
        if self.privacy.epsilon is not None and r["notion"] == "dp":
            made["exact"]["delta"] = self.privacy.dp_delta.upper
        if self.solution is not None:
            made |= {"solver": self.solution.solver, "version": self.solution.version}
            made["outputs"] = self.mechanism.outputs.tolist()
            made["channel"] = self.mechanism.matrix.tolist()
        return made

    def __str__(self) -> str:
        r, law = self.to_dict(), self.oracle
        judged = law.proof if law.value is None else f"{law.name} {law.value:.9g} ({law.kind}), agrees: {law.agrees}"
        lines = [
            f"{self.question!r}: least {r['loss']} loss {self.objective:.9g}, bound {r['bound']:.9g}, by {r['method']}",
            f"  asked    {r['notion']}, epsilon = {r['epsilon']:g}, delta = {r['delta']:g}, {r['neighbours']} pairs",
            f"  exact    pure epsilon {r['exact']['epsilon']}",
            f"  proof    {self.proof}",
            f"  outputs  {self.d} in use",
            f"  oracle   {judged}",
        ]
        return "\n".join(lines + [f"  note     {sentence}" for sentence in self.words])


def _finite(value: float) -> float | str:
    return "inf" if math.isinf(value) else value
