"""Draws per second from exact integer weights with OS entropy, beside numpy's Generator.choice from floats."""

from __future__ import annotations

import time

import numpy as np
import pandas as pd

from workbench.exact.distribution import Distribution
from workbench.exact.random_source import Source
from workbench.exact.sampler import Sampler

TITLE = "Exact sampling, one core"


def _rate(draw: object, count: int, repeats: int = 3) -> float:
    best = float("inf")
    for _ in range(repeats):
        begin = time.perf_counter()
        draw(count)  # type: ignore[operator]
        best = min(best, time.perf_counter() - begin)
    return count / best


def run() -> pd.DataFrame:
    """Millions of draws a second, and their ratio to numpy, whose floats are not exact."""
    rows = []
    for size, count in ((9, 10**7), (41, 10**7), (1001, 10**7), (100_001, 10**6)):
        eta = np.arange(size)
        masses = Distribution.from_floats(np.exp(-np.minimum(eta, size - eta) * 8.0 / size))
        p = masses.floats / masses.floats.sum()
        generator = np.random.default_rng(1)
        exact = _rate(Sampler(masses).draw, count)
        seeded = _rate(Sampler(masses, Source(insecure_seed=1)).draw, count)
        numpy = _rate(lambda k, p=p, g=generator: g.choice(p.size, size=k, p=p), count)
        rows.append(
            {
                "outcomes": size,
                "exact, OS entropy (10^6/s)": exact / 1e6,
                "exact, seeded (10^6/s)": seeded / 1e6,
                "numpy choice (10^6/s)": numpy / 1e6,
                "ratio to numpy": exact / numpy,
            }
        )
    return pd.DataFrame(rows)
