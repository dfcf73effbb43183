"""A child process of test_interrupts: announces a long solve on stdout, then says what came of it.

Usage: interrupted.py label kind size native-options
"""

from __future__ import annotations

import contextlib
import json
import sys
import time

import conformance_instances as instances

from solvers.backend import Options, backend
from solvers.interrupt import Interruption

# which catch Ctrl-C by an `Interruption`; others do so themselves
_GUARDED = ("highs", "ortools:cp-sat", "ortools:glop", "ortools:pdlp", "scip")

if __name__ == "__main__":
    label, kind, size, native = sys.argv[1], sys.argv[2], int(sys.argv[3]), json.loads(sys.argv[4])
    program = instances.slow_lp(size) if kind == "lp" else instances.packing(size, 4 * size)
    with backend(label).open(program, Options(native=native)) as session:
        if label in _GUARDED:
            enter = Interruption.__enter__

            def entered(self):
                enter(self)
                print("ready", flush=True)  # only now: Ctrl-C before it would be Python's own
                return self

            Interruption.__enter__ = entered
        else:
            run = session._run

            def announced(*args):
                print("ready", flush=True)
                return run(*args)

            session._run = announced
        for _ in range(2):  # a session must survive its own interruption
            begin = time.perf_counter()
            try:
                solution = session.solve()
                said = {
                    "termination": solution.termination,
                    "objective": solution.objective,
                    "bound": solution.bound,
                    "residual": None if solution.x is None else solution.residuals.worst,
                }
            except KeyboardInterrupt:
                said = {"termination": "KeyboardInterrupt"}
            if said["termination"] not in ("interrupted", "KeyboardInterrupt"):
                with contextlib.suppress(KeyboardInterrupt):  # too fast for the parent: its signal is still to come
                    time.sleep(60)
            print(json.dumps(said | {"seconds": time.perf_counter() - begin}), flush=True)
