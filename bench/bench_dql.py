"""Encode and decode of the dyadic quantized Laplace mechanism against numpy's own Laplace sampler, in one run.

All rows run in one thread on one core, in turns, and the best of several turns counts for each. The ratio, the median
over turns, is to `numpy.random.Generator.laplace`, which draws the same noise in one process and sends nothing.
"""

from __future__ import annotations

import operator
import statistics
from collections.abc import Callable

import numpy as np
import pandas as pd

from bench import turns_of
from workbench.mechanisms.dyadic_laplace import elias
from workbench.mechanisms.dyadic_laplace.dyadic_laplace import DyadicLaplace
from workbench.mechanisms.dyadic_laplace.randomness import LocalStream, SharedStream
from workbench.mechanisms.dyadic_laplace.stream import read_stream, write_stream

TITLE = "Dyadic quantized Laplace: scalars a second on one core"

COUNT = 2_000_000
TURNS = 5
NUMPY = "numpy Generator.laplace + x"
KEY, NONCE = bytes(range(32)), bytes(16)


def run() -> pd.DataFrame:
    """One row a task: name, scalars, best seconds, million scalars a second, ratio to numpy's sampler."""
    rng = np.random.default_rng(1)
    x = rng.uniform(-1, 1, COUNT)
    few = x[: COUNT // 8]
    local = LocalStream()
    tasks: dict[str, tuple[int, Callable[[], object]]] = {
        NUMPY: (COUNT, lambda: rng.laplace(size=COUNT) + x)
    }
    for ell in (1.1, 2.0, 10.0):
        mechanism = DyadicLaplace(1.0, ell)
        m = mechanism.encode(x, SharedStream(KEY, NONCE), local)
        tasks[f"encode, ell = {ell:g}"] = (
            COUNT,
            lambda mechanism=mechanism: mechanism.encode(x, SharedStream(KEY, NONCE), local),  # type: ignore[misc]
        )
        tasks[f"decode, ell = {ell:g}"] = (
            COUNT,
            lambda mechanism=mechanism, m=m: mechanism.decode(m, SharedStream(KEY, NONCE)),  # type: ignore[misc]
        )
    mechanism = DyadicLaplace(1.0, 2.0)
    description = mechanism.encode(few, SharedStream(KEY, NONCE), local)
    for code in elias.CODES:
        data = elias.encode(description, code)
        tasks[f"Elias {code} to bytes"] = (
            few.size,
            lambda code=code: elias.encode(description, code),  # type: ignore[misc]
        )
        tasks[f"Elias {code} from bytes"] = (
            few.size,
            lambda code=code, data=data: elias.decode(data, few.size, code),  # type: ignore[misc]
        )
    stream = write_stream(few, mechanism, KEY)
    tasks["file: write_stream"] = (few.size, lambda: write_stream(few, mechanism, KEY))
    tasks["file: read_stream"] = (few.size, lambda: read_stream(stream, KEY))
    times, _ = turns_of({name: task for name, (_, task) in tasks.items()}, TURNS)
    rates = {
        name: [count / seconds / 1e6 for seconds in times[name]]
        for name, (count, _) in tasks.items()
    }
    ratios = {
        name: statistics.median(map(operator.truediv, several, rates[NUMPY]))
        for name, several in rates.items()
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


if __name__ == "__main__":
    print(run().to_string(index=False, float_format="%.4g"))
