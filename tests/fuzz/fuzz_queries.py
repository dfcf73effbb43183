"""Check and time the answers of `wb.recommend` to sixty random queries (`queries`)."""

from __future__ import annotations

import statistics
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from tests.fuzz.queries import generated, problems


def run(count: int = 60, seed: int = 24) -> int:
    """How many queries have a wrong answer; each is printed as it is found."""
    wrong, seconds = 0, []
    for number, query in enumerate(generated(count, seed)):
        wrong_here, each = problems(query)
        seconds.append(each)
        wrong += bool(wrong_here)
        print(f"{number:3} {each:6.2f} s  {query}", *wrong_here, sep="\n      ", flush=True)
    print(
        f"{wrong} of {count} wrong; median {statistics.median(seconds):.2f} s, longest {max(seconds):.2f} s"
    )
    return wrong


if __name__ == "__main__":
    sys.exit(run(*map(int, sys.argv[1:3])) > 0)
