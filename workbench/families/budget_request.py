"""What requests under any notion of privacy have in common: the notion and its budget, what is minimised, the runs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from typing import Any

from solvers.session import Options
from workbench.errors import InvalidRequest
from workbench.families.base import Request
from workbench.families.requirements import ratio_notions


@dataclass(frozen=True, kw_only=True, eq=False)
class BudgetRequest(Request):
    """The least loss within the budget of a notion, or the least δ or ε within max_loss.

    epsilon, delta, and of the notions that have them alpha, rho, mu, curve, tradeoff: the budget; where ε or δ is
    minimised an upper limit. minimise: "loss", "delta" or "epsilon"; max_loss: of the loss, where it is not minimised.
    runs: that the budget is for in all.
    """

    epsilon: Any = None
    delta: Fraction | None = None
    alpha: Fraction | None = None
    rho: Fraction | None = None
    mu: Fraction | None = None
    curve: Any = None
    tradeoff: Any = None
    notion: str = "dp"
    minimise: str = "loss"
    max_loss: Fraction | None = None
    runs: int = 1
    solver: str = "highs"
    options: Options = field(default_factory=Options)

    @cached_property
    def cut(self) -> bool:
        """Whether the notion states several convex bounds, or more than can be listed, and not one on a ratio."""
        return self.notion not in ratio_notions()

    def check_runs(self) -> None:
        """Refuse what cannot be asked for more than one run. Raises InvalidRequest."""
        if self.runs == 1:
            return
        if self.notion != "dp" or self.minimise != "loss" or isinstance(self.epsilon, Mapping):
            InvalidRequest.must("runs", "1 but for notion dp, one epsilon, and minimise error", self.runs)
        if not self.certified and self.check != "audit":
            InvalidRequest.must("runs", f"1 where check is {self.check}", self.runs)
