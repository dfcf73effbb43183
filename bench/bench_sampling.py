"""Compare the speed of exact sampling with the samplers of SciPy and numpy, which use floats.

The exact sampler draws from integer weights. It runs once with the entropy of the operating system
and once with a seeded generator. SciPy draws by the alias method (`DiscreteAliasUrn`), and numpy by
`Generator.choice`. All tables are made beforehand, and do not count.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np
import pandas as pd
from scipy.stats.sampling import DiscreteAliasUrn

from bench import median_ratios, time_turns
from workbench.exact.distribution import Distribution
from workbench.exact.random_source import Source
from workbench.exact.sampler import Sampler

TITLE = "Exact sampling, one core"
TURNS = 7
# Number of outcomes, and number of draws.
CASES = ((9, 10**7), (41, 10**7), (1001, 10**7), (100_001, 10**6))


def run_sampling_benchmark() -> pd.DataFrame:
    """Return one row for each number of outcomes.

    Rates are millions of draws in a second of CPU time, in the fastest turn. The ratios are (time
    of SciPy or numpy) / (time of the exact sampler), medians over turns.
    """
    rows = []
    for size, count in CASES:
        # Geometric noise modulo `size`. Its masses fall by the factor e^4 in all.
        eta = np.arange(size)
        law = Distribution.from_floats(np.exp(-np.minimum(eta, size - eta) * 8.0 / size))
        p = law.floats / law.floats.sum()
        generator = np.random.default_rng(1)
        alias = DiscreteAliasUrn(p, random_state=np.random.default_rng(1))
        exact_sampler = Sampler(law)
        seeded_sampler = Sampler(law, Source(insecure_seed=1))
        calls: dict[str, Callable[[], object]] = {
            "exact, OS entropy": partial(exact_sampler.draw, count),
            "exact, seeded": partial(seeded_sampler.draw, count),
            "SciPy alias": partial(alias.rvs, count),
            "numpy choice": partial(generator.choice, p.size, size=count, p=p),
        }
        times, _ = time_turns(calls, TURNS)
        ratios = median_ratios(times, "exact, OS entropy")
        row: dict[str, float] = {"outcomes": size}
        for name, seconds in times.items():
            row[f"{name} (10^6/s)"] = count / min(seconds) / 1e6
        row["ratio to alias"] = ratios["SciPy alias"]
        row["ratio to numpy"] = ratios["numpy choice"]
        rows.append(row)
    return pd.DataFrame(rows)
