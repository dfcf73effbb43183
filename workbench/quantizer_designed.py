"""A designed quantizer and everything that is known about it."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from workbench.designing import Design
from workbench.mechanisms.quantizer import Quantizer

__all__ = ["QuantizerDesign"]


@dataclass(frozen=True)
class QuantizerDesign(Design):
    """A designed quantizer: a `Design` whose mechanism is a `Quantizer` and whose privacy a `QuantizerPrivacy`."""

    @property
    def proof(self) -> str:
        """Whether there is a certificate, and what was changed for it."""
        if self.certificate is None:
            return "not certified" if self.private else "not certified: the mechanism MISSES the request"
        return f"certified: exactly unbiased and private ({self.route})"

    def to_dict(self) -> dict[str, Any]:
        """JSON-ready: the keys of `workbench design quantizer --json`."""
        quantizer: Quantizer = self.mechanism
        density, reached = self.question.density, self.privacy.epsilon
        return {
            "method": self.request["method"],
            "bins": quantizer.outputs.tolist(),
            "epsilon": float(self.request["epsilon"]),
            "metric": self.request["metric"],
            "density": density.name,
            "cost": self.request["cost"],
            "knots": self.request["knots"],
            "mae": quantizer.mae(density),
            "mae_51": quantizer.mae_51,
            "mse": quantizer.mse(density),
            "exact": {"epsilon": reached if math.isfinite(reached) else "inf", "bias": float(self.privacy.bias)},
            "private": self.private,
            "certified": self.certificate is not None,
            "objective": self.objective,
            "bound": self.bound,
            "gap": self.gap,
            "status": self.status,
            "solver": self.solution.solver,
            "version": self.solution.version,
            "smallest_epsilon": self.request["smallest_epsilon"],
            "oracle": self.oracle.to_dict(),
            "seconds": self.solution.seconds.total,
            "words": list(self.words),
        }

    def __str__(self) -> str:
        r = self.to_dict()
        bins = ", ".join(f"{b:.6g}" for b in r["bins"])
        bound = "none proven" if self.bound is None else f"{self.bound:.9g}"
        lines = [
            f"{self.question!r} by {r['method']}: MAE {r['mae']:.9g}",
            f"  bins     {bins}",
            f"  errors   MAE {r['mae']:.9g} (51 points {r['mae_51']:.6g}), mean squared error {r['mse']:.9g}",
            f"  exact    epsilon {r['exact']['epsilon']!r}, bias {r['exact']['bias']:.2g}",
            f"  proof    {self.proof}",
            f"  bound    {bound} on the objective {self.objective:.9g}",
            f"  solver   {r['solver']} {r['version']}, {r['status']}, {r['seconds']:.3f} s",
        ]
        return "\n".join(lines + [f"  note     {sentence}" for sentence in self.words])
