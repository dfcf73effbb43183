"""The program behind a design, as other tools read it: the last one that a solver answered, at the numbers asked for.

Where rows are added only as they are missed (cuts), it holds those that were: its optimum is that of the whole request,
as the answer keeps all others.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from workbench.errors import InvalidRequest, must
from workbench.io.files import write_atomically
from workbench.solvers.data import Data
from workbench.solvers.solution import Solution

SCALE_PREFIX = "scale "  # in the head of a file: what its continuous columns are multiplied by on the way to a solver


@dataclass(frozen=True, repr=False)
class DesignProgram:
    """data: costs, matrix and bounds, of what is minimised; what: of which question; solution: the solver's answer."""

    question_text: str
    solution: Solution

    @classmethod
    def from_design(cls, design: Any) -> DesignProgram:
        """That of a design. Raises InvalidRequest where there is none, or none that is linear."""
        solution = design.solution
        if solution is None:
            raise InvalidRequest(
                "This design has no program: a closed form or a search without one answered it."
            )
        if solution.program.cones is not None:
            raise InvalidRequest(
                "This design has no linear program: its constraints are second-order cones."
            )
        return cls(design.heading, solution)

    @property
    def data(self) -> Data:
        """Costs, rows and columns in numbers."""
        data, shift = self.solution.data, self.solution.program.shift
        return replace(data, offset=data.offset + shift) if shift else data

    @property
    def mps(self) -> str:
        """The text of a free MPS file; names of columns are those of the model."""
        program, solution = self.solution.program, self.solution
        head = [*self.question_text.splitlines(), str(self), f"{SCALE_PREFIX}{program.scale!r}"]
        if program.sense < 0:
            head.append("maximised in the model: costs have the other sign")
        if solution.objective is not None:
            head.append(
                f"{solution.solver} {solution.version}: {solution.termination}, {solution.objective!r}"
            )
        from workbench.solvers.mps import format_mps

        return format_mps(program.name, self.data, program.variables, head)

    def save(self, path: str | Path) -> None:
        """Write `mps`. Raises InvalidRequest for a file that is not named .mps."""
        target = Path(path)
        if target.suffix.lower() != ".mps":
            must("program file", "named .mps", target.name)
        write_atomically(target, self.mps.encode())

    def __str__(self) -> str:
        rows, columns = self.solution.program.shape
        whole = int(self.data.integrality.sum())
        return f"{rows} rows, {columns} columns ({whole} integer), {self.data.A.nnz} non-zeros"

    def __repr__(self) -> str:
        return f"DesignProgram({self.solution.program.name}: {self})"
