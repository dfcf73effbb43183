"""Draws per CPU second from exact integer weights with OS entropy, tables made, beside those from floats: SciPy's alias
method and numpy's Generator.choice."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np
import pandas as pd
from scipy.stats.sampling import DiscreteAliasUrn

from bench import beside, turns_of
from workbench.exact.distribution import Distribution
from workbench.exact.random_source import Source
from workbench.exact.sampler import Sampler

TITLE = "Exact sampling, one core"
TURNS = 7


def run() -> pd.DataFrame:
    """Millions of draws a second of the best turn, and the medians over turns of their ratios to SciPy and numpy, whose
    floats are not exact."""
    rows = []
    for size, count in ((9, 10**7), (41, 10**7), (1001, 10**7), (100_001, 10**6)):
        eta = np.arange(size)
        masses = Distribution.from_floats(np.exp(-np.minimum(eta, size - eta) * 8.0 / size))
        p = masses.floats / masses.floats.sum()
        generator = np.random.default_rng(1)
        alias = DiscreteAliasUrn(p, random_state=np.random.default_rng(1))
        exact, seeded = Sampler(masses), Sampler(masses, Source(insecure_seed=1))
        calls: dict[str, Callable[[], object]] = {
            "exact, OS entropy": partial(exact.draw, count),
            "exact, seeded": partial(seeded.draw, count),
            "SciPy alias": partial(alias.rvs, count),
            "numpy choice": partial(generator.choice, p.size, size=count, p=p),
        }
        times, _ = turns_of(calls, TURNS)
        rates = {name: count / min(several) / 1e6 for name, several in times.items()}
        ratios = beside(times, "exact, OS entropy")
        rows.append(
            {"outcomes": size}
            | {f"{name} (10^6/s)": rate for name, rate in rates.items()}
            | {"ratio to alias": ratios["SciPy alias"], "ratio to numpy": ratios["numpy choice"]}
        )
    return pd.DataFrame(rows)
