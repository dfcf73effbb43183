"""Run benchmarks, print their tables and write them to results/bench/.

    python -m bench [NAME ...] [--full]

NAME is the name of a file bench/bench_NAME.py, for example "channel". Without names, all benchmarks
run. With --full, benchmarks that have a larger suite run it (fast_milp: an hour). Times depend on
the machine and its load. Compare ratios: both of their times are measured in one run.
"""

from __future__ import annotations

import importlib
import inspect
import math
import pkgutil
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pandas as pd
from rich.console import Console

import bench
from workbench.cli.console import err, make_table

out = Console(width=None if sys.stdout.isatty() else 200)  # The tables have many columns.


def run_benchmarks(arguments: list[str]) -> int:
    """Run benchmarks and store their tables.

    Args:
        arguments: arguments of the command line.

    Returns:
        The exit code: 0, or 2 if a name is unknown.
    """
    is_full = "--full" in arguments
    names = [name for name in arguments if name != "--full"]
    modules = [module.name for module in pkgutil.iter_modules(bench.__path__)]
    all_names = sorted(name.removeprefix("bench_") for name in modules if name.startswith("bench_"))
    unknown_names = [name for name in names if name not in all_names]
    if unknown_names:
        print(
            f"benchmark must be one of {', '.join(all_names)}. Got {', '.join(unknown_names)}.",
            file=sys.stderr,
        )
        return 2
    folder = Path("results/bench")
    folder.mkdir(parents=True, exist_ok=True)
    for name in names or all_names:
        module = importlib.import_module(f"bench.bench_{name}")
        err.print(f"{name} ...", highlight=False)
        table = pd.DataFrame()
        # The file is written again whenever the table grows, so that an interrupted run keeps rows.
        for table in _iterate_tables(getattr(module, f"run_{name}_benchmark"), is_full):
            path = folder / f"{name}.csv"
            table.to_csv(path, index=False, float_format="%.4g", lineterminator="\n")
        rows = table.astype(object).to_numpy().tolist()
        cells = [[_round_cell(cell) for cell in row] for row in rows]
        out.print(make_table(module.TITLE, list(table.columns), cells))
    return 0


def _iterate_tables(run: Callable[..., Any], is_full: bool) -> Iterator[pd.DataFrame]:
    """Run a benchmark and yield its table. A long benchmark yields it again after each new row."""
    has_full_suite = "full" in inspect.signature(run).parameters
    table = run(full=True) if is_full and has_full_suite else run()
    if isinstance(table, Iterator):
        yield from table
    else:
        yield table


def _round_cell(cell: object) -> object:
    """Return a float as a text of four digits ("-" for NaN), and any other cell unchanged."""
    if not isinstance(cell, float):
        return cell
    return "-" if math.isnan(cell) else f"{cell:.4g}"


if __name__ == "__main__":
    sys.exit(run_benchmarks(sys.argv[1:]))
