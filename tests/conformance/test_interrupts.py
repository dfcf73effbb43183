"""Ctrl-C in the middle of a long solve: the answer is "interrupted", with what there is, at once, and twice over."""

from __future__ import annotations

import json
import os
import pathlib
import signal
import subprocess
import sys
import time

import pytest

HERE = pathlib.Path(__file__).parent
needs = pytest.mark.needs

# label -> size of the LP, and seconds until the solver itself is at work; gigantic for none, minutes for all
LP = {"ortools:gscip": (500, 0.4), "scip": (400, 0.4), "cvxpy:scs": (700, 1.2)}


def interrupted(label, kind, size, wait):
    """What the child says of its first and second solve, and the seconds from Ctrl-C to each answer."""
    command = [sys.executable, str(HERE / "interrupted.py"), label, kind, str(size)]
    answers = []
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, text=True, env=os.environ | {"PYTHONPATH": str(HERE.parents[1])}
    ) as child:
        try:
            assert child.stdout is not None
            for line in child.stdout:
                if line == "ready\n":
                    time.sleep(wait)
                    child.send_signal(signal.SIGINT)
                    sent = time.perf_counter()
                elif line.startswith("{"):
                    answers.append(json.loads(line) | {"latency": time.perf_counter() - sent})
            assert child.wait(10) == 0
        finally:
            child.kill()
    return answers


@needs("lp")
def test_interrupt_lp(label):
    size, wait = LP.get(label, (1000, 0.4))
    first, second = interrupted(label, "lp", size, wait)
    assert first["termination"] == "interrupted"
    assert first["objective"] is None or first["residual"] < 1e-6
    assert second["termination"] in ("interrupted", "optimal", "KeyboardInterrupt")  # some go on where they were
    assert max(first["latency"], second["latency"]) < 3


@needs("milp")
def test_interrupt_milp(label):
    for answer in interrupted(label, "milp", 30, 0.4):
        assert answer["termination"] == "interrupted"
        assert answer["objective"] < 0
        assert answer["residual"] < 1e-6
        assert answer["bound"] < answer["objective"]
        assert answer["latency"] < 3
