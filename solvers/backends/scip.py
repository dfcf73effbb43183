"""Backend "scip": SCIP through PySCIPOpt, an optional second opinion on MILPs and LPs.

A new model is read from an MPS file for every solve, so that no answer depends on earlier solves.

This file works around these properties:

* SCIP's own handling of Ctrl-C prints to stdout. `Interruption` replaces it.
* SCIP's status "unbounded" may come without a feasible point. The program may then be infeasible.
* SCIP tightens bounds and rows, and its multipliers belong to the tightened program. Dual values of
  LPs are therefore not read. SCIP's own bound on the optimum is used instead.
"""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from workbench.solvers.contract import Backend
from workbench.solvers.interruption import Interruption
from workbench.solvers.mps import format_mps
from workbench.solvers.program import Data, Program
from workbench.solvers.session import DEFAULT_RELATIVE_GAP, Options, Raw, Session
from workbench.solvers.solution import PointStatus, Start, Termination


class _ScipSession(Session):
    """A session that gives the program to a new SCIP model for every solve."""

    def __init__(self, owner: Backend, program: Program, options: Options) -> None:
        super().__init__(owner, program, options)
        import pyscipopt

        self._scip = pyscipopt
        settings = {"limits/gap": DEFAULT_RELATIVE_GAP, "misc/catchctrlc": False}
        self._settings = settings | owner.translate_options(options)
        parameters = pyscipopt.Model().getParams()
        for key, value in self._settings.items():
            # This is checked beforehand, because SCIP writes to stderr when it refuses a parameter.
            if key not in parameters or isinstance(parameters[key], str) != isinstance(value, str):
                raise self.build_option_error(key, value)
        self._make_model()

    def _make_model(self) -> Any:
        """Make an empty model with the settings."""
        model = self._scip.Model()
        model.hideOutput()
        for key, value in self._settings.items():
            try:
                model.setParam(key, value)
            except (KeyError, ValueError, TypeError, LookupError) as error:
                raise self.build_option_error(key, value, f": {error}") from None
        return model

    def _build(self, data: Data) -> None:
        """Load the data into a new SCIP model, through an MPS file."""
        self._model = self._make_model()
        with TemporaryDirectory() as folder:
            path = Path(folder) / "program.mps"
            path.write_text(format_mps("program", data))
            self._model.readProblem(str(path))
        variables = {variable.name: variable for variable in self._model.getVars()}
        self._variables = [variables[f"x{j}"] for j in range(data.c.size)]

    def _run(self, start: Start, basis: Any) -> Raw:
        """Solve the model and return the result. SCIP always starts cold."""
        model = self._model
        time_limit = self._deadline.solver_time_limit
        if time_limit is not None and "limits/time" not in self.options.native:
            model.setParam("limits/time", time_limit)
        with Interruption(model.interruptSolve) as interruption:
            model.optimizeNogil()
        status = model.getStatus()
        raw = Raw(self.owner.read_termination(status), status)
        raw.is_interrupted = interruption.is_pressed
        if model.getNSols() > 0:
            point = model.getBestSol()
            raw.x = np.array([model.getSolVal(point, v) for v in self._variables])
            raw.point = PointStatus.FEASIBLE
        elif raw.termination is Termination.UNBOUNDED:
            raw.termination = Termination.INFEASIBLE_OR_UNBOUNDED
        raw.nodes = int(model.getNTotalNodes())
        raw.iterations = int(model.getNLPIterations())
        raw.record_bound(model.getDualbound(), model.getObjVal() if raw.x is not None else 0.0)
        return raw

    def _close(self) -> None:
        """Drop the model, which releases it."""
        self._model = None


class Scip(Backend):
    """SCIP: branch and cut."""

    name = "scip"
    session = _ScipSession
