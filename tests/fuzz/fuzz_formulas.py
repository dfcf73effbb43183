"""Compare formulas of random questions with designs, and prove their files again.

python tests/fuzz/fuzz_formulas.py [COUNT OF EACH FAMILY] [SEED]
"""

from __future__ import annotations

import random
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
from formula_questions import FAMILIES, POINTS, compared

LIMIT = 1e-9  # of a difference, relative to max(1, loss)


def main() -> int:
    """A line for each family; 1 where a formula and a design differ."""
    count, seed = ([int(word) for word in sys.argv[1:]] + [50, 1][len(sys.argv) - 1 :])[:2]
    wrong = 0
    for family in FAMILIES:
        begin, pieces, worst = time.process_time(), 0, 0.0
        for k in range(count):
            result = compared(family, random.Random(f"{family.__name__} {seed} {k}"))
            pieces, worst = pieces + int(result["pieces"]), max(worst, result["difference"])
            if result["difference"] > LIMIT:
                wrong += 1
                print(f"{family.__name__} {seed} {k}: differs by {result['difference']:.3g}")
        seconds = time.process_time() - begin
        line = f"{family.__name__}: {count} questions at {POINTS} points, {pieces} pieces"
        print(f"{line}, largest difference {worst:.2g}, {seconds:.0f} s", flush=True)
    return int(wrong > 0)


if __name__ == "__main__":
    sys.exit(main())
