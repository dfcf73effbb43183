"""Run every benchmark (or the named ones): `python -m bench [name ...] [--full]`; tables go to the screen and to
results/bench/. With --full, benchmarks that have a larger suite run it (bench_fast_milp: an hour).

Times depend on the machine and its neighbours; what counts are the ratios, whose two sides are measured in one run.
"""

from __future__ import annotations

import importlib
import inspect
import math
import pkgutil
import sys
from collections.abc import Iterator
from pathlib import Path

import pandas as pd
from rich.console import Console

import bench
from workbench.cli.console import err, make_table

out = Console(width=None if sys.stdout.isatty() else 200)  # benchmarks have many columns


def main(names: list[str]) -> int:
    """Run and store; returns the exit code."""
    full, names = "--full" in names, [name for name in names if name != "--full"]
    modules = [module.name for module in pkgutil.iter_modules(bench.__path__)]
    known = sorted(name.removeprefix("bench_") for name in modules if name.startswith("bench_"))
    unknown = [name for name in names if name not in known]
    if unknown:
        print(
            f"benchmark must be one of {', '.join(known)}. Got {', '.join(unknown)}.",
            file=sys.stderr,
        )
        return 2
    folder = Path("results/bench")
    folder.mkdir(parents=True, exist_ok=True)
    for name in names or known:
        module = importlib.import_module(f"bench.bench_{name}")
        err.print(f"{name} ...", highlight=False)
        larger = full and "full" in inspect.signature(module.run).parameters
        rows, frame = module.run(full=True) if larger else module.run(), pd.DataFrame()
        for frame in rows if isinstance(rows, Iterator) else [rows]:  # of a long one, as rows come
            frame.to_csv(
                folder / f"{name}.csv", index=False, float_format="%.4g", lineterminator="\n"
            )
        cells = [[_short(cell) for cell in row] for row in frame.astype(object).to_numpy().tolist()]
        out.print(make_table(module.TITLE, list(frame.columns), cells))
    return 0


def _short(cell: object) -> object:
    if not isinstance(cell, float):
        return cell
    return "-" if math.isnan(cell) else f"{cell:.4g}"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
