"""Instances of the linear program of noise on the integers, in one piece (`workbench.models.noise.program`), for the
library."""

from __future__ import annotations

from dataclasses import dataclass

from workbench.exact.numbers import read_number
from workbench.exact.objects import Values
from workbench.models.noise.losses import LineLoss
from workbench.models.noise.program import LineProgram
from workbench.notions import HockeyStick
from workbench.pipeline.programs import Instance
from workbench.pipeline.requirements import to_model_bound
from workbench.solvers.program import Program


@dataclass(frozen=True)
class _Case:
    """Noise up to ±reach: its law ends there (upper), or goes on beyond (a relaxation)."""

    sensitivity: int
    epsilon: str
    delta: str
    power: int
    reach: int
    upper: bool = True

    @property
    def words(self) -> str:
        """The parameters."""
        side = "support ends" if self.upper else "relaxation"
        who = f"sensitivity {self.sensitivity}, epsilon = {self.epsilon}, delta = {self.delta}"
        return f"{who}, loss |noise|^{self.power}, noise up to {self.reach}, {side}"

    def build(self) -> tuple[Program, Values]:
        """The program, without parameters."""
        stick = HockeyStick(read_number(self.epsilon, "epsilon"), read_number(self.delta, "delta"))
        reach = self.reach if self.upper else self.reach - self.sensitivity
        loss = LineLoss("power", self.power).value_at
        line = LineProgram(
            self.sensitivity, reach, [loss], [to_model_bound(stick)], is_open=not self.upper
        )
        return line.program, {}


_CASES = {
    "additive-d1-squared": _Case(1, "1", "1/100000", 2, 12),
    "additive-d1-squared-bound": _Case(1, "1", "1/100000", 2, 12, upper=False),
    "additive-d1-absolute": _Case(1, "1/2", "1/100", 1, 20),
    "additive-d2-absolute": _Case(2, "1", "1/100", 1, 30),
    "additive-d4-squared": _Case(4, "1", "1/10", 2, 40),
    "additive-d4-squared-bound": _Case(4, "1", "1/10", 2, 40, upper=False),
    "additive-d8-absolute": _Case(8, "2", "1/20", 1, 60),
    "additive-d16-absolute": _Case(16, "1", "1/5", 1, 100),
}


def instances() -> list[Instance]:
    """In the order of tables."""
    return [
        Instance(name, "noise on the integers", case.build, None, "library", parameters=case.words)
        for name, case in _CASES.items()
    ]
