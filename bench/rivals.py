"""Publish statistics with OpenDP and diffprivlib, for `bench/bench_rivals.py`.

    python bench/rivals.py TABLE.csv EPSILON DRAWS

This program imports nothing of the workbench. It may run in another environment, as the packages
need other versions of their dependencies. It prints one JSON object for each release:

    package, version, statistic, neighbours   what was published, and by what
    scale                                     scale b of its Laplace noise, discrete or not
    is_discrete                               whether its noise is on the integers
    errors                                    errors of independent releases

A package that is not installed prints nothing.
"""

from __future__ import annotations

import csv
import json
import sys
import warnings
from collections.abc import Iterator
from typing import Any

LOW, HIGH = 18, 95  # The range of ages.
REGIONS = ["north", "south", "coast", "other"]


def run_opendp(rows: list[dict[str, str]], epsilon: float, draws: int) -> Iterator[dict[str, Any]]:
    """Publish with OpenDP, at the least scale for which its map proves ε."""
    import opendp.prelude as opendp

    dp: Any = opendp

    dp.enable_features("contrib", "idealized-numerics")
    ages = [int(row["age"]) for row in rows]
    metric = dp.symmetric_distance()
    integers = dp.vector_domain(dp.atom_domain(T=int))
    sized_integers = dp.vector_domain(dp.atom_domain(T=int), size=len(rows))
    sized_floats = dp.vector_domain(dp.atom_domain(T=float, nan=False), size=len(rows))
    texts = dp.vector_domain(dp.atom_domain(T=str))
    smokers = [age for age, row in zip(ages, rows, strict=True) if row["smoker"] == "yes"]
    regions = [row["region"] for row in rows]
    counts = [regions.count(region) for region in REGIONS]
    by_region = dp.t.then_count_by_categories(categories=REGIONS, null_category=False)
    # Replacing a row is a symmetric distance of 2.
    releases: list[tuple[Any, ...]] = [
        ("count", "add-remove", 1, (integers, metric) >> dp.t.then_count(), smokers, len(smokers)),
        (
            "sum",
            "add-remove",
            1,
            (integers, metric) >> dp.t.then_clamp((LOW, HIGH)) >> dp.t.then_sum(),
            ages,
            sum(ages),
        ),
        (
            "sum",
            "replace",
            2,
            (sized_integers, metric) >> dp.t.then_clamp((LOW, HIGH)) >> dp.t.then_sum(),
            ages,
            sum(ages),
        ),
        (
            "mean",
            "replace",
            2,
            (sized_floats, metric)
            >> dp.t.then_clamp((float(LOW), float(HIGH)))
            >> dp.t.then_mean(),
            [float(age) for age in ages],
            sum(ages) / len(ages),
        ),
        ("histogram", "add-remove", 1, (texts, metric) >> by_region, regions, counts),
        ("histogram", "replace", 2, (texts, metric) >> by_region, regions, counts),
    ]
    for statistic, neighbours, distance, query, data, answer in releases:

        def make_release(scale: float, query: Any = query) -> Any:
            return query >> dp.m.then_laplace(scale)

        scale = dp.binary_search_param(make_release, d_in=distance, d_out=epsilon, T=float)
        release = make_release(scale)
        errors = []
        for _ in range(draws):
            errors += subtract(release(data), answer)
        yield {
            "package": "OpenDP",
            "version": read_version("opendp"),
            "statistic": statistic,
            "neighbours": neighbours,
            "scale": scale,
            "is_discrete": statistic != "mean",
            "errors": errors,
        }


def run_diffprivlib(
    rows: list[dict[str, str]], epsilon: float, draws: int
) -> Iterator[dict[str, Any]]:
    """Publish with the tools of diffprivlib.

    Its sum and mean take the number of rows as public, so their neighbours are replaced rows. Its
    histogram protects rows that are added or removed. Its count is a sum of zeros and ones, whose
    sensitivity of 1 covers both.
    """
    import numpy as np
    from diffprivlib import tools  # type: ignore[import-not-found]

    ages = np.array([int(row["age"]) for row in rows])
    is_smoker = np.array([row["smoker"] == "yes" for row in rows])
    codes = np.array([REGIONS.index(row["region"]) for row in rows])
    width = HIGH - LOW
    options = {"epsilon": epsilon, "bounds": (LOW, HIGH)}
    releases: list[tuple[Any, ...]] = [
        (
            "count",
            "add-remove",
            1,
            lambda: tools.count_nonzero(is_smoker, epsilon=epsilon),
            int(is_smoker.sum()),
        ),
        ("sum", "replace", width, lambda: tools.sum(ages, dtype=int, **options), int(ages.sum())),
        (
            "mean",
            "replace",
            width / len(ages),
            lambda: tools.mean(ages.astype(float), **options),
            float(ages.mean()),
        ),
        (
            "histogram",
            "add-remove",
            1,
            lambda: tools.histogram(codes, epsilon=epsilon, bins=4, range=(-0.5, 3.5))[0],
            [int((codes == k).sum()) for k in range(len(REGIONS))],
        ),
    ]
    for statistic, neighbours, sensitivity, publish, answer in releases:
        errors = []
        for _ in range(draws):
            errors += subtract(publish(), answer)
        yield {
            "package": "diffprivlib",
            "version": read_version("diffprivlib"),
            "statistic": statistic,
            "neighbours": neighbours,
            "scale": sensitivity / epsilon,
            "is_discrete": statistic != "mean",
            "errors": errors,
        }


def subtract(published: Any, answer: Any) -> list[float]:
    """Return the errors of a published number or list as a list of floats."""
    if isinstance(answer, list):
        return [float(a - b) for a, b in zip(published, answer, strict=True)]
    return [float(published - answer)]


def read_version(package: str) -> str:
    """Return the installed version of a package."""
    from importlib.metadata import version

    return version(package)


def main(path: str, epsilon: str, draws: str) -> None:
    """Print the releases of all installed packages, one JSON object a line."""
    warnings.simplefilter("ignore")
    with open(path, newline="") as file:
        rows = list(csv.DictReader(file))
    for run in (run_opendp, run_diffprivlib):
        try:
            for release in run(rows, float(epsilon), int(draws)):
                print(json.dumps(release), flush=True)
        except ImportError:
            continue


if __name__ == "__main__":
    main(*sys.argv[1:])
