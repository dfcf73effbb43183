"""Clauses about Ctrl-C during a long solve. Each runs in a child process (`interrupted`)."""

from __future__ import annotations

import inspect
import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Mapping
from typing import Any

from workbench.solvers.conformance.clauses import Contract, clause, require, require_equal

_WAIT_SECONDS = 0.4  # Ctrl-C is pressed this long after the solver has begun.
_HANG_SECONDS = 120.0  # Only a solver that ignores Ctrl-C takes longer to answer.
_CHILD_SECONDS = 300.0  # The child process is killed after this time.


class InterruptClauses(Contract):
    """Clauses about Ctrl-C. `Contract` says how a test class chooses the long solve."""

    @clause("interrupts", "lp")
    def test_interrupt_lp(self) -> None:
        """Answer INTERRUPTED at once when a linear program is interrupted, and stay usable."""
        first, second = self._interrupt("lp", self.endless_lp, self.endless_options)
        require_equal("termination", first["termination"], "interrupted")
        has_no_infeasible_point = first["objective"] is None or first["residual"] < 1e-6
        require(has_no_infeasible_point, f"a point must be feasible. Got {first}.")
        # Some solvers continue the interrupted solve in the second one, and may end as optimal.
        is_answer = second["termination"] in ("interrupted", "optimal")
        require(is_answer, f"the second solve must end as interrupted or optimal. Got {second}.")

    @clause("interrupts", "milp")
    def test_interrupt_milp(self) -> None:
        """Answer INTERRUPTED at once, with an incumbent, when an integer program is interrupted."""
        for answer in self._interrupt("milp", size=30, native={}):
            require_equal("termination", answer["termination"], "interrupted")
            is_incumbent = answer["bound"] < answer["objective"] < 0 and answer["residual"] < 1e-6
            require(
                is_incumbent, f"an incumbent with a bound below it must be returned. Got {answer}."
            )

    def _interrupt(self, kind: str, size: int, native: Mapping[str, Any]) -> list[dict[str, Any]]:
        """Press Ctrl-C in two solves of one session.

        Args:
            kind: "lp" or "milp".
            size: "lp": number of rows, and of columns (`make_slow_lp`). "milp": number of rows,
                with four columns for each (`make_packing`).
            native: options in the solver's own names.

        Returns:
            For each solve the dict of `interrupted.describe_solve`, with the key "latency" added:
            the seconds from Ctrl-C to the answer.
        """
        solver = self.solver()
        task = {
            "module": type(solver).__module__,
            "file": inspect.getfile(type(solver)),
            "class": type(solver).__qualname__,
            "variant": solver.variant,
            "has_interruption": self.has_interruption,
            "kind": kind,
            "size": size,
            "native": dict(native),
        }
        command = [sys.executable, "-m", f"{__package__}.interrupted", json.dumps(task)]
        environment = os.environ | {
            "PYTHONPATH": os.pathsep.join(folder or os.getcwd() for folder in sys.path)
        }
        answers = []
        sent = time.perf_counter()
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment) as child:
            guard = threading.Timer(_CHILD_SECONDS, child.kill)
            guard.start()
            try:
                assert child.stdout is not None
                for line in child.stdout:
                    if line == "ready\n":
                        time.sleep(_WAIT_SECONDS)
                        child.send_signal(signal.SIGINT)
                        sent = time.perf_counter()
                    elif line.startswith("{"):
                        answers.append(json.loads(line) | {"latency": time.perf_counter() - sent})
                require_equal("the exit code of the child process", child.wait(_CHILD_SECONDS), 0)
            finally:
                guard.cancel()
                child.kill()
        require_equal("the number of answers", len(answers), 2)
        for answer in answers:
            require(
                answer["latency"] < _HANG_SECONDS, f"the answer must come at once. Got {answer}."
            )
        return answers
