"""Instances of the linear program of noise on the integers, in one piece (`models.additive_lp`), for the library."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from models.additive_lp import LineProgram
from workbench.exact.numbers import exact, exp_bounds
from workbench.families.programs import Instance

__all__ = ["instances"]

_BITS = 64


@dataclass(frozen=True)
class _Case:
    """Noise up to ±reach: its law ends there (upper), or the mass beyond is moved to the ends (a relaxation)."""

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

    def build(self) -> tuple[Any, Mapping[str, Any]]:
        """The program, without parameters."""
        ratio = Fraction(exp_bounds(exact(self.epsilon, "epsilon"), _BITS)[1], 1 << _BITS)
        line = LineProgram(
            self.sensitivity,
            ratio,
            exact(self.delta, "delta"),
            self.reach,
            self.reach if self.upper else self.reach - self.sensitivity,
            [Fraction(eta**self.power) for eta in range(self.reach + 1)],
        )
        return line.stated, {}


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
        Instance(name, "noise on the integers", case.build, None, library=True, parameters=case.words)
        for name, case in _CASES.items()
    ]
