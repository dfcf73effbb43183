"""Sweeps over additive noise: one live solver per model, moved along ε (fastest) and δ.

check     what is done beyond solving                                         status of an optimum
none      the objective recomputed at the solver's point; no bound, no audit  claimed (the solver's word)
bound     the bound recomputed from the duals, and the residual               optimal
audit     the exact audit of the solver's own PMF, and the closed form        optimal
certify   every mechanism repaired and proven private                         optimal
"""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from fractions import Fraction
from typing import Any, ClassVar

from workbench import rooms

# isort: split
from models.noise import COSTS, zero_mean
from models.noise_fast import METHODS
from solvers.backend import Options
from solvers.solution import Solution, Termination
from workbench.design_noise import NOTIONS, NoiseDesigner
from workbench.errors import Infeasible, InvalidRequest
from workbench.mechanisms.modulo import ModuloNoise
from workbench.numbers import exact, positive
from workbench.sweep_models import (
    SECONDS,
    Answer,
    Parameter,
    Path,
    SweepModel,
    chosen,
    count,
    designed,
    flag,
    listed,
    one,
    optional,
    share,
    solver,
)

__all__ = ["MODEL"]

CHECKS = ("none", "bound", "audit", "certify")


def _sizes(value: Any, name: str) -> list[int]:
    """ "5x5" or [5, 5]."""
    return list(listed(_whole, "x")(value, name))


def _shifts(value: Any, name: str) -> list[Any]:
    """ "1,2,3", for vectors "0,1;1,0"; or lists of the same."""
    if isinstance(value, str) and ";" in value:
        return [listed(_whole)(part, name) for part in value.split(";") if part.strip()]
    return list(
        listed(lambda part, _: listed(_whole)(part, name) if isinstance(part, list) else _whole(part, name))(
            value, name
        )
    )


def _whole(value: Any, name: str) -> int:
    try:
        if isinstance(value, (str, int)) and not isinstance(value, bool):
            return int(value)
    except ValueError:
        pass
    return InvalidRequest.must(name, "integers", repr(value))


class _Noise(SweepModel):
    parameters: ClassVar[Mapping[str, Parameter]] = {
        "n": Parameter(count(1, 10**7)),
        "sizes": Parameter(_sizes),
        "shifts": Parameter(_shifts),
        "max_shift": Parameter(count(1, 10**6)),
        "directed": Parameter(flag, False),
        "notion": Parameter(chosen(*NOTIONS), "pdp"),
        "cost": Parameter(chosen(*COSTS), "error-rate"),
        "prior": Parameter(listed(share)),
        "zero_mean": Parameter(flag, False),
        "minimise": Parameter(chosen("error", "delta"), "error"),
        "method": Parameter(chosen(*METHODS), "fast"),
        "check": Parameter(chosen(*CHECKS), "audit"),
        "solver": Parameter(solver, "highs"),
        "time_limit": SECONDS,
        "gap": Parameter(one(lambda v, n: positive(v, n, or_zero=True)), option=True),
        "seed": Parameter(count(0, 2**31 - 1), option=True),
        "budget": Parameter(one(exact), hot=True),
        "delta": Parameter(share, hot=True),
        "epsilon": Parameter(one(positive), required=True, hot=True),
    }

    def content(self, fixed: Mapping[str, Any]) -> dict[str, Any]:
        """n and max_shift spelled out as sizes and shifts, one of each pair mu, -mu unless directed."""
        rest = {name: value for name, value in fixed.items() if name not in ("n", "sizes", "shifts", "max_shift")}
        question = _question(fixed)
        pairs = ({shift} if question.directed else {shift, question.negative(shift)} for shift in question.shifts)
        return rest | question.to_dict() | {"shifts": [list(shift) for shift in sorted({min(pair) for pair in pairs})]}

    def complete(self, fixed: Mapping[str, Any], point: Mapping[str, Any]) -> Mapping[str, Any]:
        """δ is 0 unless it is minimised, when leaving it out means no limit."""
        return point if point["delta"] is not None or fixed["minimise"] == "delta" else {**point, "delta": "0"}

    def size(self, fixed: Mapping[str, Any]) -> int:
        """Bare linear programs take less than a millisecond; audits and branch and bound much longer."""
        return 500 if fixed["check"] in ("none", "bound") and fixed["notion"] != "pdp" else 20

    def open(self, fixed: Mapping[str, Any]) -> Path:
        return _NoisePath(fixed)


def _question(fixed: Mapping[str, Any]) -> ModuloNoise:
    shifts = fixed["shifts"]
    return ModuloNoise(
        n=fixed["n"], sizes=fixed["sizes"], max_shift=fixed["max_shift"], directed=fixed["directed"],
        shifts=None if shifts is None else [tuple(s) if isinstance(s, list) else s for s in shifts],
    )  # fmt: skip


class _NoisePath(Path):
    def __init__(self, fixed: Mapping[str, Any]) -> None:
        question = _question(fixed)
        self._check = fixed["check"]
        self._numbers: dict[str, Fraction] = {}
        self._designer = NoiseDesigner(
            question, notion=fixed["notion"], cost=fixed["cost"], minimise=fixed["minimise"], solver=fixed["solver"],
            prior=None if fixed["prior"] is None else [float(Fraction(p)) for p in fixed["prior"]],
            constraints=zero_mean(question.sizes) if fixed["zero_mean"] else None,
            options=Options(
                time_limit=optional(fixed["time_limit"], _float), gap=optional(fixed["gap"], _float), seed=fixed["seed"]
            ),
            certify=fixed["check"] == "certify", method=fixed["method"],
        )  # fmt: skip

    def _number(self, text: str | None) -> Fraction | None:
        """The exact number a hot value spells; a path meets each of them again and again."""
        if text is None:
            return None
        if text not in self._numbers:
            self._numbers[text] = Fraction(text)
        return self._numbers[text]

    def admit(self, point: Mapping[str, Any]) -> None:
        with contextlib.suppress(Infeasible):  # not a mistake but an answer
            self._designer.request(point["epsilon"], point["delta"], point["budget"])

    def solve(self, point: Mapping[str, Any], *, cold: bool) -> Answer:
        start = "cold" if cold else "hot"
        epsilon, delta, budget = (self._number(point[name]) for name in ("epsilon", "delta", "budget"))
        assert epsilon is not None
        if self._check in ("audit", "certify"):
            made = self._designer.design(epsilon, delta, budget=budget, start=start)
            return designed(made)
        solution = self._designer.solve(epsilon, delta, budget=budget, start=start)
        return self._answer(solution, delta, budget)

    def _answer(self, solution: Solution, delta: Fraction | None, budget: Fraction | None) -> Answer:
        if solution.termination is Termination.INTERRUPTED:
            raise KeyboardInterrupt
        if solution.x is None:
            self._designer.refuse(solution, budget)
        self._designer.limited(solution, delta, budget)
        if self._check == "none" and solution.termination is Termination.OPTIMAL:
            return {
                "status": "claimed", "reason": None, "objective": solution.objective, "bound": None,
                "start": str(solution.start), "audited": False,
            }  # fmt: skip
        doubt = self._designer.doubt(solution)
        proven = doubt is None or solution.termination is Termination.GAP_LIMIT
        assert solution.residuals is not None
        return {
            "status": str(solution.termination) if proven else "not_proven", "reason": None if proven else doubt,
            "objective": solution.objective, "bound": solution.bound, "gap": solution.gap,
            "residual": solution.residuals.worst, "start": str(solution.start), "audited": False,
        }  # fmt: skip

    def close(self) -> None:
        self._designer.close()


def _float(value: str) -> float:
    return float(Fraction(value))


rooms.check()
MODEL = _Noise()
