"""The programs of noise on the integers under notions of several convex bounds, and the laws that solvers answer.

hockey sticks only     linear programs with cuts (`models.line_notion_cuts`)
other bounds           cones (`models.line_notions`), whose bound is proven from tangents (`models.line_notion_bound`)
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from models.line_notion_bound import lower_bound
from models.line_notion_cuts import LineCuts
from models.line_notions import LineNotionModel
from models.requirements import POWER_CONE, Bound
from solvers.errors import SolverError
from solvers.program import Program
from solvers.solution import Solution
from workbench.errors import NotProven
from workbench.exact.integer_law import IntegerLaw
from workbench.families.convex_notion import solve_with_cuts
from workbench.families.requirements import in_numbers
from workbench.mechanisms.integer_noise import AdditiveIntegerNoise
from workbench.mechanisms.real_noise import AdditiveRealNoise
from workbench.privacy.claim import Claim
from workbench.privacy.notions import HockeyStick, Requirement

if TYPE_CHECKING:
    from workbench.families.noise.request import NoiseRequest

__all__ = ["BITS", "Line", "LineNoise", "NotionPrograms"]

Vector = NDArray[np.float64]
LineNoise = AdditiveIntegerNoise | AdditiveRealNoise

BITS = 64  # of a mass
_STEEPEST = 4.0  # exponent of a cone over its order, of those that others may stand for


@dataclass(frozen=True)
class Line:
    """A question on the integers: noise values differ by up to `reach`, and loss `loss` (`bounded`: on the lower side,
    less `off`)."""

    reach: int
    loss: Callable[[int], Fraction]
    bounded: Callable[[int], Fraction]
    folded: bool
    off: Fraction
    make: Callable[[IntegerLaw], LineNoise]

    @property
    def labels(self) -> list[tuple[int, ...]]:
        """The shifts that are stated."""
        up = range(1, self.reach + 1)
        return [(s,) for s in up] if self.folded else [(sign * s,) for s in up for sign in (1, -1)]


class NotionPrograms:
    """The programs of one request, and the laws that they answer."""

    def __init__(self, request: NoiseRequest, line: Line) -> None:
        self.request, self.line = request, line
        self.solver, self.version, self.count = "", "", 0
        self.known: dict[str, dict[Any, list[Requirement]]] = {}

    def below(self, size: int, units: Vector) -> tuple[LineNotionModel, Vector, Fraction]:
        """The relaxation, its columns, and the bound they help to prove. units: of |η|."""
        claim, line = self.request.claim, self.line
        if _linear(claim):
            cuts, x = self._by_cuts(
                claim, LineNotionModel(line.reach, size, line.bounded, {}, line.folded, None, units)
            )
            return cuts.model, x, cuts.proven()
        model, x = self._by_cones(claim, size, None, units)
        return model, x, lower_bound(model, x)

    def _by_cuts(self, claim: Claim, model: LineNotionModel) -> tuple[LineCuts, Vector]:
        known = self.known.setdefault(claim.budget_words(), {})

        def broken(shift: int, p: Vector, q: Vector) -> Iterable[Bound]:
            values = claim.at((shift,))
            here = known.setdefault((shift,), [*claim.notion.relaxed(values)])
            here += [bound for bound in claim.notion.cuts(p, q, values) if bound not in here]
            return map(in_numbers, here)

        cuts = LineCuts(model, [shift for (shift,) in self.line.labels], broken)
        start = model.column_units / (model.weights @ model.column_units)
        try:
            x = cuts.run(start)
        except SolverError as error:
            raise NotProven(f"highs found no noise up to {model.reach}: {error}") from None
        self.solver, self.version, self.count = "highs", cuts.version, self.count + cuts.rounds
        return cuts, x

    def _by_cones(
        self, claim: Claim, size: int, ratio: Fraction | None, units: Vector
    ) -> tuple[LineNotionModel, Vector]:
        """The last model and its columns."""
        line, r = self.line, None if ratio is None else float(ratio)
        loss = line.loss if ratio is not None else line.bounded
        stated: list[LineNotionModel] = []

        def state(bounds: Mapping[Any, Sequence[Bound]]) -> Program:
            kept = {label: _without_steep(several) for label, several in bounds.items()}
            stated.append(LineNotionModel(line.reach, size, loss, kept, line.folded, r, units))
            return stated[-1].program

        def laws(solution: Solution, label: tuple[int, ...]) -> tuple[Vector, Vector]:
            x = stated[-1].read(solution)
            p, q = stated[-1].laws(label[0])
            return np.asarray(p @ x), np.asarray(q @ x)

        known = self.known.setdefault(claim.budget_words(), {})
        every, scales = units, (1.0, 0.5, 0.0)
        for power in scales:  # what defeats a solver in one set of units may be easy in the next
            units = every**power
            try:
                solution, _ = solve_with_cuts(
                    claim, line.labels, state, laws, self.request.solver, self.request.options, known=known
                )
                break
            except NotProven:
                if power == scales[-1]:
                    raise
        self.solver, self.version, self.count = solution.solver, solution.version, self.count + len(stated)
        return stated[-1], stated[-1].read(solution)

    def law(self, claim: Claim, size: int, ratio: Fraction, units: Vector) -> IntegerLaw:
        """The solver's law with its tails."""
        line = self.line
        if _linear(claim):
            model = LineNotionModel(line.reach, size, line.loss, {}, line.folded, float(ratio), units)
            _, x = self._by_cuts(claim, model)
        else:
            model, x = self._by_cones(claim, size, ratio, units)
        masses = np.maximum(model.masses(x), 1e-6 * units[np.abs(np.arange(-size, size + 1))])
        weights = [max(1, round(mass * 2.0**BITS)) for mass in masses.tolist()]
        return IntegerLaw(-size, weights, self.line.reach, ratio)


def _without_steep(bounds: Sequence[Bound]) -> Sequence[Bound]:
    """Those that a solver can work with: without the others it solves a relaxation, and its law may miss the claim."""
    kept = [bound for bound in bounds if bound.kind != POWER_CONE or math.log(bound.limit) <= _STEEPEST * bound.level]
    return kept or bounds


def _linear(claim: Claim) -> bool:
    """Whether hockey sticks are all that a claim requires, however many."""
    return all(isinstance(bound, HockeyStick) for bound in claim.notion.relaxed(claim.at(())))
