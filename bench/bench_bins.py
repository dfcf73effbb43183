"""Algorithm 2 as printed against the fast exact algorithm, in one run: CPU seconds, ratio, growth exponents.

Both are asked for the same optimum (checked at every size both reach); the printed one stops at k = 3000, where its
table has 9 million entries. The exponent is fitted to the three largest sizes of each. CPU seconds of one thread, the
least of three turns, compiled beforehand.
"""

from __future__ import annotations

import pandas as pd

from bench import TURNS
from workbench.papers.label_dp.curves import fit_growth_exponent, time_algorithm

TITLE = "Best bins: Algorithm 2 as printed against the fast exact algorithm (CPU seconds)"

PRINTED = (100, 200, 500, 1000, 2000, 3000)
FAST = (*PRINTED, 10_000, 100_000, 1_000_000)


def run() -> pd.DataFrame:
    """One row for each loss and size: seconds of both, their ratio, the exponents of k."""
    for loss in ("squared", "absolute", "poisson-deviance"):
        time_algorithm(
            "fast", 200, loss, 1
        )  # compiles before the clock runs, as small k alone would not
    rows = []
    for loss in ("squared", "absolute", "poisson-deviance"):
        sizes = PRINTED if loss == "squared" else PRINTED[:3]
        slow, fast = {}, {}
        for k in FAST:
            fast[k], optimum = time_algorithm("fast", k, loss, TURNS)
            if k in sizes:
                slow[k], printed = time_algorithm("printed", k, loss, TURNS)
                assert abs(optimum.objective - printed.objective) <= 1e-9 * printed.objective
        slopes = [
            fit_growth_exponent(list(part)[-3:], list(part.values())[-3:]) for part in (slow, fast)
        ]
        rows += [
            (loss, k, slow.get(k), fast[k], slow[k] / fast[k] if k in slow else None, *slopes)
            for k in FAST
        ]
    columns = [
        "loss",
        "labels",
        "printed_s",
        "fast_s",
        "ratio",
        "printed_exponent",
        "fast_exponent",
    ]
    return pd.DataFrame(rows, columns=columns)
