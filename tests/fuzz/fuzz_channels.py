"""Compare two ways to state 200 random channels: output by output, and in CVXPY."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from tests.workbench.families.channel.test_block_method import agree


def run(count: int = 200, first: int = 1000) -> int:
    """How many differ; each is printed as it is found."""
    wrong = 0
    for seed in range(first, first + count):
        try:
            agree(seed)
        except Exception as error:  # whatever happens to a request is what is looked for
            wrong += 1
            print(f"seed {seed}: {type(error).__name__}: {error}", flush=True)
    print(f"{wrong} of {count} differ")
    return wrong


if __name__ == "__main__":
    sys.exit(run(*map(int, sys.argv[1:3])) > 0)
