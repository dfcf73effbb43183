"""Compare the speed of the dyadic quantized Laplace mechanism (DQL) with numpy's Laplace sampler.

The mechanism publishes a number with Laplace noise as a short message: `encode` turns numbers into
messages, and `decode` turns messages into noisy numbers. The reference, numpy's
`Generator.laplace`, draws the same noise and sends no message.

All tasks run in one thread on one core, in turns. Seconds and rates are those of the fastest turn.
The ratio is the median over turns of (rate of the task) / (rate of the reference).
"""

from __future__ import annotations

import operator
import statistics
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pandas as pd

from bench import time_turns
from workbench.mechanisms.dyadic_laplace import elias
from workbench.mechanisms.dyadic_laplace.dyadic_laplace import DyadicLaplace
from workbench.mechanisms.dyadic_laplace.randomness import LocalStream, SharedStream
from workbench.mechanisms.dyadic_laplace.stream import read_stream, write_stream
from workbench.solvers.arrays import Vector

TITLE = "Dyadic quantized Laplace: scalars a second on one core"

COUNT = 2_000_000  # Scalars of a task.
FILE_COUNT = COUNT // 8  # Scalars of a task on bytes or files.
TURNS = 5
NUMPY_TASK = "numpy Generator.laplace + x"  # The reference.
# Any key and nonce will do. Both sides derive their shared random bits from them.
KEY = bytes(range(32))
NONCE = bytes(16)

Task = tuple[int, Callable[[], object]]  # The number of scalars, and the timed function.


def run_dql_benchmark() -> pd.DataFrame:
    """Return one row for each task: name, scalars, seconds, rate, and ratio to numpy's sampler."""
    rng = np.random.default_rng(1)
    x = rng.uniform(-1, 1, COUNT)
    tasks: dict[str, Task] = {NUMPY_TASK: (COUNT, lambda: rng.laplace(size=COUNT) + x)}
    tasks |= _make_mechanism_tasks(x)
    tasks |= _make_file_tasks(x[:FILE_COUNT])
    times, _ = time_turns({name: task for name, (_, task) in tasks.items()}, TURNS)
    rates = {
        name: [count / seconds / 1e6 for seconds in times[name]]
        for name, (count, _) in tasks.items()
    }
    ratios = {
        name: statistics.median(map(operator.truediv, turn_rates, rates[NUMPY_TASK]))
        for name, turn_rates in rates.items()
    }
    return pd.DataFrame(
        {
            "task": list(tasks),
            "scalars": [count for count, _ in tasks.values()],
            "seconds": [min(times[name]) for name in tasks],
            "million scalars/s": [max(rates[name]) for name in tasks],
            "ratio to numpy": [ratios[name] for name in tasks],
        }
    )


def _encode(mechanism: DyadicLaplace, x: Vector, local: LocalStream) -> Any:
    """Return the messages of x, an integer array (n,)."""
    return mechanism.encode(x, SharedStream(KEY, NONCE), local)


def _decode(mechanism: DyadicLaplace, m: Any) -> Any:
    """Return the noisy numbers of messages, an array (n,)."""
    return mechanism.decode(m, SharedStream(KEY, NONCE))


def _make_mechanism_tasks(x: Vector) -> dict[str, Task]:
    """Return the tasks that encode and decode scalars, for three values of the parameter ℓ."""
    local = LocalStream()
    tasks: dict[str, Task] = {}
    for ell in (1.1, 2.0, 10.0):
        mechanism = DyadicLaplace(1.0, ell)
        m = _encode(mechanism, x, local)
        tasks[f"encode, ell = {ell:g}"] = (x.size, partial(_encode, mechanism, x, local))
        tasks[f"decode, ell = {ell:g}"] = (x.size, partial(_decode, mechanism, m))
    return tasks


def _make_file_tasks(x: Vector) -> dict[str, Task]:
    """Return the tasks that write and read bytes and files."""
    mechanism = DyadicLaplace(1.0, 2.0)
    m = _encode(mechanism, x, LocalStream())
    tasks: dict[str, Task] = {}
    for code in elias.CODES:
        data = elias.encode(m, code)
        tasks[f"Elias {code} to bytes"] = (x.size, partial(elias.encode, m, code))
        tasks[f"Elias {code} from bytes"] = (x.size, partial(elias.decode, data, x.size, code))
    stream = write_stream(x, mechanism, KEY)
    tasks["file: write_stream"] = (x.size, partial(write_stream, x, mechanism, KEY))
    tasks["file: read_stream"] = (x.size, partial(read_stream, stream, KEY))
    return tasks


if __name__ == "__main__":
    print(run_dql_benchmark().to_string(index=False, float_format="%.4g"))
