"""Compare the runtime of two algorithms for optimal bins of k labels: "printed" and "fast".

"printed" is Algorithm 2 of Ghazi et al., Regression with Label Differential Privacy, as the paper
prints it. "fast" is the exact algorithm of the workbench.

Both must find the same optimum, which is checked at every size that both solve. The printed
algorithm stops at k = 3000, where its table has 9 million entries. The growth exponent p in
(runtime) ∝ k^p is fitted to the three largest sizes of each algorithm. Times are CPU seconds of one
thread in the fastest of three turns, without compilation.
"""

from __future__ import annotations

import pandas as pd

from bench import TURNS
from workbench.papers.label_dp.curves import fit_growth_exponent, time_algorithm

TITLE = "Optimal bins: Algorithm 2 as printed against the fast exact algorithm (CPU seconds)"

LOSSES = ("squared", "absolute", "poisson-deviance")
PRINTED_SIZES = (100, 200, 500, 1000, 2000, 3000)  # Numbers of labels.
FAST_SIZES = (*PRINTED_SIZES, 10_000, 100_000, 1_000_000)
COLUMNS = ("loss", "labels", "printed_s", "fast_s", "ratio", "printed_exponent", "fast_exponent")


def run_bins_benchmark() -> pd.DataFrame:
    """Return one row for each loss and size, with COLUMNS."""
    for loss in LOSSES:
        # The first call compiles the fast algorithm. The printed one is not compiled.
        time_algorithm("fast", k=200, loss=loss, repeats=1)
    rows = []
    for loss in LOSSES:
        # The printed algorithm takes long for large sizes, so only one loss has them.
        printed_sizes = PRINTED_SIZES if loss == "squared" else PRINTED_SIZES[:3]
        printed_times = {}
        fast_times = {}
        for k in FAST_SIZES:
            fast_times[k], optimum = time_algorithm("fast", k, loss, TURNS)
            if k in printed_sizes:
                printed_times[k], printed = time_algorithm("printed", k, loss, TURNS)
                assert abs(optimum.objective - printed.objective) <= 1e-9 * printed.objective
        exponents = [
            fit_growth_exponent(list(times)[-3:], list(times.values())[-3:])
            for times in (printed_times, fast_times)
        ]
        for k in FAST_SIZES:
            printed_time = printed_times.get(k)
            ratio = None if printed_time is None else printed_time / fast_times[k]
            rows.append((loss, k, printed_time, fast_times[k], ratio, *exponents))
    return pd.DataFrame(rows, columns=[*COLUMNS])
