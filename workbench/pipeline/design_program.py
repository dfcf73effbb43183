"""Export the last program that a solver answered for a design, so that other tools can solve it.

If rows are added only when they are violated (cuts), the program has the rows that were added. Its
optimum is the optimum of the whole request, because the answer satisfies all other rows.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from workbench.errors import InvalidRequest, must
from workbench.io.files import write_atomically
from workbench.solvers.data import Data
from workbench.solvers.solution import Solution

# Beginning of the comment line that states `Program.scale`, the factor of the continuous columns.
SCALE_PREFIX = "scale "


@dataclass(frozen=True, repr=False)
class DesignProgram:
    """The program of a design.

    Attributes:
        question_text: The question as text.
        solution: The solver's answer.
    """

    question_text: str
    solution: Solution

    @classmethod
    def from_design(cls, design: Any) -> DesignProgram:
        """Return the program of a design.

        Args:
            design: The `Design`, with its request and mechanism.

        Raises:
            InvalidRequest: The design has no program, or its program is not linear.
        """
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
        """Return costs, rows and columns as numbers, for a minimisation."""
        data = self.solution.data
        shift = self.solution.program.shift
        if shift:
            return replace(data, offset=data.offset + shift)
        return data

    @property
    def mps(self) -> str:
        """Return the text of a free MPS file, with the column names of the model."""
        from workbench.solvers.mps import format_mps

        solution = self.solution
        program = solution.program
        head = [*self.question_text.splitlines(), str(self), f"{SCALE_PREFIX}{program.scale!r}"]
        if program.sense < 0:
            head.append("maximised in the model: costs have the other sign")
        if solution.objective is not None:
            solver = f"{solution.solver} {solution.version}"
            head.append(f"{solver}: {solution.termination}, {solution.objective!r}")
        return format_mps(program.name, self.data, program.variables, head)

    def save(self, path: str | Path) -> None:
        """Write `mps`.

        Args:
            path: File to write.

        Raises:
            InvalidRequest: The file is not named .mps.
        """
        target = Path(path)
        if target.suffix.lower() != ".mps":
            must("program file", "named .mps", target.name)
        write_atomically(target, self.mps.encode())

    def __str__(self) -> str:
        rows, columns = self.solution.program.shape
        integer_count = int(self.data.integrality.sum())
        size = f"{rows} rows, {columns} columns ({integer_count} integer)"
        return f"{size}, {self.data.A.nnz} non-zeros"

    def __repr__(self) -> str:
        return f"DesignProgram({self.solution.program.name}: {self})"
