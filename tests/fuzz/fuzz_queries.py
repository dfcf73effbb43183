"""Check and time `wb.recommend` at random queries.

    python tests/fuzz/fuzz_queries.py [COUNT] [SEED]

Default: 60 queries with seed 24. `tests/fuzz/queries.py` describes the checks.
"""

from __future__ import annotations

import statistics
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from tests.fuzz.queries import draw_queries, inspect_recommendation


def check_queries(count: int = 60, seed: int = 24) -> int:
    """Print each query with its problems, and return the number of queries with problems."""
    failure_count = 0
    cpu_seconds = []
    for number, query in enumerate(draw_queries(count, seed)):
        inspection = inspect_recommendation(query)
        cpu_seconds.append(inspection.cpu_seconds)
        failure_count += bool(inspection.problems)
        title = f"{number:3} {inspection.cpu_seconds:6.2f} s  {query}"
        print(title, *inspection.problems, sep="\n      ", flush=True)
    median = statistics.median(cpu_seconds)
    print(f"{failure_count} of {count} wrong; median {median:.2f} s, max {max(cpu_seconds):.2f} s")
    return failure_count


if __name__ == "__main__":
    sys.exit(check_queries(*map(int, sys.argv[1:3])) > 0)
