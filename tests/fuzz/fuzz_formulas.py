"""Compare formulas of random questions with designs, and verify their files.

    python tests/fuzz/fuzz_formulas.py [COUNT] [SEED]

COUNT is the number of questions of each kind. Default: 50 questions with seed 1.
"""

from __future__ import annotations

import random
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
from formula_questions import POINT_COUNT, QUESTION_KINDS, compare_formula


def compare_formulas(count: int = 50, seed: int = 1) -> int:
    """Print one line for each kind of question, and return the number of wrong formulas."""
    failure_count = 0
    for kind, draw_question in QUESTION_KINDS.items():
        begin = time.process_time()
        piece_count = 0
        max_difference = 0.0
        for k in range(count):
            comparison = compare_formula(draw_question, random.Random(f"{kind} {seed} {k}"))
            piece_count += comparison.piece_count
            max_difference = max(max_difference, comparison.max_difference)
            if not comparison.agrees:
                failure_count += 1
                print(f"{kind} {seed} {k}: differs by {comparison.max_difference:.3g}")
        seconds = time.process_time() - begin
        print(
            f"{kind}: {count} questions at {POINT_COUNT} points, {piece_count} pieces, "
            f"largest difference {max_difference:.2g}, {seconds:.0f} s",
            flush=True,
        )
    return failure_count


if __name__ == "__main__":
    sys.exit(compare_formulas(*map(int, sys.argv[1:3])) > 0)
