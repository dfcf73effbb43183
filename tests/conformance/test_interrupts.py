"""Ctrl-C in the middle of a long solve: the answer is "interrupted", with what there is, at once, and twice over."""

from __future__ import annotations

import json
import os
import pathlib
import signal
import subprocess
import sys
import threading
import time

import pytest

HERE = pathlib.Path(__file__).parent
needs = pytest.mark.needs
HANG = 120.0  # seconds that only a hang exceeds

# label -> size of an LP that takes many seconds, and options. First-order methods get a small one and a tolerance they
# never reach; the others a large dense one.
ENDLESS = {
    "ortools:pdlp": (
        200,
        {
            "termination_criteria.simple_optimality_criteria.eps_optimal_absolute": 0.0,
            "termination_criteria.simple_optimality_criteria.eps_optimal_relative": 0.0,
        },
    ),
    "cvxpy:scs": (200, {"eps_abs": 1e-30, "eps_rel": 0.0, "max_iters": 2_000_000_000}),
    "ortools:gscip": (1000, {}),
}


def interrupted(label, kind, size, native, wait):
    """What the child says of its first and second solve, and the seconds from Ctrl-C to each answer."""
    command = [sys.executable, str(HERE / "interrupted.py"), label, kind, str(size), json.dumps(native)]
    answers = []
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, text=True, env=os.environ | {"PYTHONPATH": str(HERE.parents[1])}
    ) as child:
        guard = threading.Timer(300, child.kill)
        guard.start()
        try:
            assert child.stdout is not None
            for line in child.stdout:
                if line == "ready\n":
                    time.sleep(wait)
                    child.send_signal(signal.SIGINT)
                    sent = time.perf_counter()
                elif line.startswith("{"):
                    answers.append(json.loads(line) | {"latency": time.perf_counter() - sent})
            assert child.wait(300) == 0
        finally:
            guard.cancel()
            child.kill()
    return answers


@needs("lp")
def test_interrupt_lp(label):
    size, native = ENDLESS.get(label, (1500, {}))
    first, second = interrupted(label, "lp", size, native, 0.4)
    assert first["termination"] == "interrupted"
    assert first["objective"] is None or first["residual"] < 1e-6
    assert second["termination"] in ("interrupted", "optimal")  # some go on where they were
    assert max(first["latency"], second["latency"]) < HANG


@needs("milp")
def test_interrupt_milp(label):
    for answer in interrupted(label, "milp", 30, {}, 0.4):
        assert answer["termination"] == "interrupted"
        assert answer["objective"] < 0
        assert answer["residual"] < 1e-6
        assert answer["bound"] < answer["objective"]
        assert answer["latency"] < HANG
