"""Build instances of the linear program of noise on the integers for the program library.

The program is that of `workbench.models.noise.program`, with all its rows from the start: no
tangents are added later. An instance is added as a line of `_CASES`.
"""

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
class _LineCase:
    """One program for noise values up to ±reach.

    Attributes:
        sensitivity: the largest difference of neighbouring answers.
        epsilon: the budget ε > 0 as a decimal or a fraction.
        delta: the budget δ in [0, 1] as a decimal or a fraction.
        power: 1 or 2; the loss is |noise|^power.
        reach: the largest noise value that has a column of its own.
        upper: whether the noise ends at the reach, so that the optimum is an upper bound. Otherwise
            it continues beyond, which is a relaxation with a lower bound as its optimum.
    """

    sensitivity: int
    epsilon: str
    delta: str
    power: int
    reach: int
    upper: bool = True

    @property
    def parameter_text(self) -> str:
        """Return the parameters as text, for tables of instances."""
        side = "support ends" if self.upper else "relaxation"
        budget = f"epsilon = {self.epsilon}, delta = {self.delta}"
        noise = f"loss |noise|^{self.power}, noise up to {self.reach}"
        return f"sensitivity {self.sensitivity}, {budget}, {noise}, {side}"

    def build(self) -> tuple[Program, Values]:
        """Build the program. Returns it with no parameter values, as it has no parameters."""
        stick = HockeyStick(read_number(self.epsilon, "epsilon"), read_number(self.delta, "delta"))
        reach = self.reach if self.upper else self.reach - self.sensitivity
        line = LineProgram(
            self.sensitivity,
            reach,
            losses=[LineLoss("power", self.power).value_at],
            bounds=[to_model_bound(stick)],
            is_open=not self.upper,
        )
        return line.program, {}


_CASES = {
    "additive-d1-squared": _LineCase(1, "1", "1/100000", power=2, reach=12),
    "additive-d1-squared-bound": _LineCase(1, "1", "1/100000", power=2, reach=12, upper=False),
    "additive-d1-absolute": _LineCase(1, "1/2", "1/100", power=1, reach=20),
    "additive-d2-absolute": _LineCase(2, "1", "1/100", power=1, reach=30),
    "additive-d4-squared": _LineCase(4, "1", "1/10", power=2, reach=40),
    "additive-d4-squared-bound": _LineCase(4, "1", "1/10", power=2, reach=40, upper=False),
    "additive-d8-absolute": _LineCase(8, "2", "1/20", power=1, reach=60),
    "additive-d16-absolute": _LineCase(16, "1", "1/5", power=1, reach=100),
}


def instances() -> list[Instance]:
    """List the instances in the order of tables."""
    program_instances = []
    for name, case in _CASES.items():
        model = "noise on the integers"
        program_instances.append(
            Instance(
                name, model, case.build, judge=None, suite="library", parameters=case.parameter_text
            )
        )
    return program_instances
