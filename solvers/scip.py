"""SCIP through PySCIPOpt: an optional second opinion on MILPs and LPs.

A fresh model is built for every solve, so that no answer depends on history. SCIP's own handling of Ctrl-C prints to
stdout; `Interruption` replaces it. Its "unbounded" is believed only together with a feasible point. Duals of LPs are
not read: SCIP tightens bounds and rows as it goes, and its multipliers are of what they have become. Its bound is.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from .backend import Backend, Options
from .errors import UnsupportedOption
from .interrupt import Interruption
from .program import Data, Program
from .search import Deadline
from .session import Raw, Session
from .solution import PointStatus, Start, Termination

__all__ = ["Scip"]

_TIME = "limits/time"
_ROWS = 1000  # stated between two looks at the clock; about 0.05 s


class Scip(Backend):
    """SCIP: branch and cut."""

    name = "scip"

    def _open(self, program: Program, options: Options) -> Session:
        return _ScipSession(self, program, options)


class _ScipSession(Session):
    def __init__(self, owner: Backend, program: Program, options: Options) -> None:
        super().__init__(owner, program, options)
        import pyscipopt

        self._scip = pyscipopt
        self._settings = {"limits/gap": 1e-9, "misc/catchctrlc": False} | owner.in_words(options)
        known = pyscipopt.Model().getParams()
        for key, value in self._settings.items():
            # asked beforehand, because SCIP writes to stderr when it refuses
            if key not in known or isinstance(known[key], str) != isinstance(value, str):
                raise UnsupportedOption(f"scip cannot honour the option {key} = {value!r}; leave it out or change it.")
        self._new()

    def _new(self) -> Any:
        model = self._scip.Model()
        model.hideOutput()
        for key, value in self._settings.items():
            try:
                model.setParam(key, value)
            except (KeyError, ValueError, TypeError, LookupError) as error:
                raise UnsupportedOption(f"scip cannot honour the option {key} = {value!r}: {error}.") from None
        return model

    def _build(self, data: Data) -> None:
        model = self._model = self._new()
        self._variables = [
            model.addVar(lb=low, ub=high, obj=cost, vtype="I" if whole else "C")
            for low, high, cost, whole in zip(
                data.lower.tolist(), data.upper.tolist(), data.c.tolist(), data.integrality.tolist(), strict=True
            )
        ]
        model.addObjoffset(data.offset)
        matrix = data.A.tocsr()
        nothing = model.addVar(lb=0.0, ub=0.0)  # stands in rows without entries
        for i, (low, high) in enumerate(zip(data.row_lower.tolist(), data.row_upper.tolist(), strict=True)):
            if i % _ROWS == 0 and self._deadline.passed:
                self._model = None  # a part of the program is not solved
                return
            if np.isinf(low) and np.isinf(high):
                continue
            run = slice(matrix.indptr[i], matrix.indptr[i + 1])
            terms = zip(matrix.data[run].tolist(), matrix.indices[run].tolist(), strict=True)
            row = self._scip.quicksum(value * self._variables[j] for value, j in terms) + 1.0 * nothing
            if low == high:
                model.addCons(row == low)
            elif np.isinf(low):
                model.addCons(row <= high)
            elif np.isinf(high):
                model.addCons(row >= low)
            else:
                model.addCons((low <= row) <= high)

    def _run(self, start: Start, basis: Any) -> Raw:
        model, left = self._model, self._deadline.limit
        if model is None:
            self._sent = None  # to be stated by the next solve
            return Raw(Termination.TIME_LIMIT, "the time limit was reached while the program was stated")
        if left is not None and _TIME not in self.options.native:
            model.setParam(_TIME, left)
        clock = Deadline()
        with Interruption(model.interruptSolve) as interruption:
            model.optimizeNogil()
        seconds = clock.elapsed
        status = model.getStatus()
        raw = Raw(self.owner.ended(status), status, solve_seconds=seconds)
        raw.interrupted = interruption.seen
        if model.getNSols() > 0:
            best = model.getBestSol()
            raw.x = np.array([model.getSolVal(best, variable) for variable in self._variables])
            raw.point = PointStatus.FEASIBLE
        elif raw.termination is Termination.UNBOUNDED:
            raw.termination = Termination.INFEASIBLE_OR_UNBOUNDED
        raw.nodes, raw.iterations = int(model.getNTotalNodes()), int(model.getNLPIterations())
        raw.bounded(model.getDualbound(), model.getObjVal() if raw.x is not None else 0.0)
        return raw

    def _close(self) -> None:
        self._model = None
