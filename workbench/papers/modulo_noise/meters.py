"""Make a synthetic table of electricity meters, and the optimal noise for queries of it.

Fig. 14 of Kadam et al. 2024 shows noise for queries of a database of meters that is not public. The
table here is made up: it only has as many houses and circuits. It shows how the differences M of a
table and a query (6) become optimal noise. It cannot confirm the numbers of the paper.

The recipe, with the pseudo-random numbers of `random.Random(14)`, in the order of the rows:

* Each of 12 circuits has a typical load: 1 kW plus a random part of 1.5 kW.
* Each circuit has 118 houses.
* The load of a house at the peak hour is the typical load times exp(0.6 g), where g + 6 is the sum
  of twelve random numbers in [0, 1). It is clipped to 0.1..5 kW and rounded to 0.1 kW.
* One house in five has a car charger, of 1.4 or 7.2 kW with equal probabilities.

`workbench/papers/data/meters.csv` is the file that `write_meter_table` writes.
"""

from __future__ import annotations

import math
import random
from pathlib import Path

import pandas as pd

from workbench.data.parameter_grid import Grid
from workbench.data.query_differences import list_query_differences
from workbench.papers.modulo_noise.common import compute_closed_form, make_question
from workbench.papers.modulo_noise.curves import compute_pmf

METER_FILE = Path(__file__).parents[1] / "data" / "meters.csv"

_SEED = 14  # The seed of the stored table.
_CIRCUITS = 12
_HOUSES_PER_CIRCUIT = 118  # 12 times 118 houses are the 1416 houses of the paper.
_CHARGERS_KW = ("1.4", "7.2")
_CHARGER_SHARE = 0.2  # The probability that a house has a charger.
_MIN_LOAD_KW = 0.1
_MAX_LOAD_KW = 5.0
_LOAD_SPREAD = 0.6  # The standard deviation of the logarithm of a load within a circuit.


def write_meter_table(path: Path, seed: int = _SEED) -> None:
    """Write a synthetic table of meters, by the recipe of the module header.

    The columns are circuit, house, load (kW at the peak hour) and charger (kW of the car charger).

    Args:
        path: The CSV file to write.
        seed: The seed of the pseudo-random numbers.
    """
    generator = random.Random(seed)
    lines = ["circuit,house,load,charger"]
    for circuit in range(1, _CIRCUITS + 1):
        typical_load = 1 + 1.5 * generator.random()
        for house in range(1, _HOUSES_PER_CIRCUIT + 1):
            # The sum of twelve uniform numbers, minus 6, is close to a standard normal number.
            normal = sum(generator.random() for _ in range(12)) - 6
            load = typical_load * math.exp(_LOAD_SPREAD * normal)
            clipped_load = min(max(load, _MIN_LOAD_KW), _MAX_LOAD_KW)
            charger = "0"
            if generator.random() < _CHARGER_SHARE:
                # Only `random` has the same numbers in all versions of Python.
                charger = _CHARGERS_KW[int(2 * generator.random())]
            lines.append(f"{circuit},{house},{clipped_load:.1f},{charger}")
    path.write_bytes(("\n".join(lines) + "\n").encode())


def compute_meter_pmf(column: str, step: float, n: int, epsilon: Grid) -> pd.DataFrame:
    """Return the optimal noise at δ = 0 for the sum of a column of the meter table.

    Neighbours are symmetric, as those that `design modulo --data` derives.

    Args:
        column: The column of kW that is summed: "load" or "charger".
        step: The number of kW of a step of the answer, > 0.
        n: The largest answer; noise is modulo n + 1.
        epsilon: The values of ε, > 0.

    Returns:
        The columns of `compute_pmf`, query, shifts (the differences M), largest_shift (the largest
        of them) and bounded_error_rate (the minimal error rate for all differences 1..max M).
    """
    query = f"sum(over={column}, step={step:g})"
    differences = list_query_differences(METER_FILE, query)
    table = compute_pmf(epsilon, n=n, shifts=differences, directed=False)
    interval = make_question(n=n, max_shift=differences[-1], directed=False)
    bounded_rates = {}
    for value in table["epsilon"].unique():
        bounded_rates[value] = compute_closed_form(interval, value).value
    names = ", ".join(map(str, differences))
    return table.assign(
        query=query,
        shifts=f"{{{names}}}",
        largest_shift=differences[-1],
        bounded_error_rate=table["epsilon"].map(bounded_rates),
    )
