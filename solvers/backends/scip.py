"""SCIP through PySCIPOpt: an optional second opinion on MILPs and LPs.

A fresh model is read from an MPS file for every solve, so that no answer depends on history. SCIP's own handling of
Ctrl-C prints to stdout; `Interruption` replaces it. Its "unbounded" is believed only together with a feasible point.
Duals of LPs are not read: SCIP tightens bounds and rows as it goes, and its multipliers are of what they have become.
Its bound is.
"""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from workbench.solvers.contract import Backend
from workbench.solvers.mps import format_mps
from workbench.solvers.program import Data, Program
from workbench.solvers.session import Interruption, Options, Raw, Session
from workbench.solvers.solution import PointStatus, Start, Termination


class _ScipSession(Session):
    def __init__(self, owner: Backend, program: Program, options: Options) -> None:
        super().__init__(owner, program, options)
        import pyscipopt

        self._scip = pyscipopt
        self._settings = {"limits/gap": 1e-9, "misc/catchctrlc": False} | owner.translate_options(
            options
        )
        known = pyscipopt.Model().getParams()
        for key, value in self._settings.items():
            # asked beforehand, because SCIP writes to stderr when it refuses
            if key not in known or isinstance(known[key], str) != isinstance(value, str):
                raise self.build_option_error(key, value)
        self._new()

    def _new(self) -> Any:
        model = self._scip.Model()
        model.hideOutput()
        for key, value in self._settings.items():
            try:
                model.setParam(key, value)
            except (KeyError, ValueError, TypeError, LookupError) as error:
                raise self.build_option_error(key, value, f": {error}") from None
        return model

    def _build(self, data: Data) -> None:
        model = self._model = self._new()
        with TemporaryDirectory() as folder:
            path = Path(folder) / "program.mps"
            path.write_text(format_mps("program", data))
            model.readProblem(str(path))
        by_name = {variable.name: variable for variable in model.getVars()}
        self._variables = [by_name[f"x{j}"] for j in range(data.c.size)]

    def _run(self, start: Start, basis: Any) -> Raw:
        model, left = self._model, self._deadline.solver_time_limit
        if left is not None and "limits/time" not in self.options.native:
            model.setParam("limits/time", left)
        with Interruption(model.interruptSolve) as interruption:
            model.optimizeNogil()
        status = model.getStatus()
        raw = Raw(self.owner.ended(status), status)
        raw.is_interrupted = interruption.is_pressed
        if model.getNSols() > 0:
            best = model.getBestSol()
            raw.x = np.array([model.getSolVal(best, variable) for variable in self._variables])
            raw.point = PointStatus.FEASIBLE
        elif raw.termination is Termination.UNBOUNDED:
            raw.termination = Termination.INFEASIBLE_OR_UNBOUNDED
        raw.nodes, raw.iterations = int(model.getNTotalNodes()), int(model.getNLPIterations())
        raw.record_bound(model.getDualbound(), model.getObjVal() if raw.x is not None else 0.0)
        return raw

    def _close(self) -> None:
        self._model = None


class Scip(Backend):
    """SCIP: branch and cut."""

    name = "scip"
    session = _ScipSession
