"""Compare the two programs of random channels: the method "block" and the program in CVXPY.

    python tests/fuzz/fuzz_channels.py [COUNT] [FIRST_SEED]

Default: 200 channels from seed 1000 on.
"""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from tests.workbench.families.channel.test_block_method import assert_methods_agree


def compare_channels(count: int = 200, first_seed: int = 1000) -> int:
    """Print each channel whose programs differ, and return their number."""
    failure_count = 0
    for seed in range(first_seed, first_seed + count):
        try:
            assert_methods_agree(seed)
        except Exception as error:  # Any error of a request is a failure.
            failure_count += 1
            print(f"seed {seed}: {type(error).__name__}: {error}", flush=True)
    print(f"{failure_count} of {count} differ")
    return failure_count


if __name__ == "__main__":
    sys.exit(compare_channels(*map(int, sys.argv[1:3])) > 0)
