"""Vector queries: matrix (59), which shows that optimal joint noise is no product, and Fig. 13.

Both are the hop law on Z_N x Z_N (`models.oracles.hops`), solved as LP (14) as well.
"""

from __future__ import annotations

from itertools import product

import numpy as np
import pandas as pd

from workbench.mechanisms.additive import ModuloNoise
from workbench.papers.artifact import Artifact, artifact
from workbench.papers.modulo_noise.common import Floats, compare, law, numbers, snap, solve

__all__ = ["eq59", "fig13", "plane"]


def plane(n: int, first: list[int], second: list[int]) -> ModuloNoise:
    """Answers {0..n}² with differences first x second, (0, 0) left out."""
    shifts = [pair for pair in product(first, second) if any(pair)]
    return ModuloNoise(sizes=(n + 1, n + 1), shifts=shifts, directed=True)


def _both(question: ModuloNoise, epsilon: float) -> tuple[Floats, Floats]:
    """The PMF by the hop law and by LP (14), each in the shape of the group."""
    closed = law(question, epsilon).pmf
    assert closed is not None
    solved = np.array([snap(mass) for mass in solve(question, epsilon).mechanism.pmf])
    return closed.reshape(question.sizes), solved.reshape(question.sizes)


def eq59(full: bool = False) -> Artifact:
    """Matrix (59): the optimal joint noise of a two-dimensional query against the product of the scalar optima."""
    printed = numbers()["eq59"]
    given, place = printed["parameters"], printed["place"]
    n, differences = given["n"], given["differences"]
    joint, solved = _both(plane(n, differences, differences), given["epsilon"])
    line = ModuloNoise(n=n, shifts=[d for d in differences if d], directed=True)
    scalar = [law(line, given[name]).pmf for name in ("epsilon_1", "epsilon_2")]
    assert scalar[0] is not None
    assert scalar[1] is not None
    apart = np.outer(scalar[0], scalar[1])
    rows = [
        (i, j, joint[i, j], solved[i, j], apart[i, j], printed["joint"][i][j])
        for i, j in product(range(n + 1), repeat=2)
    ]
    comparisons = [
        compare(f"f*({i}, {j})", "(59)", printed["joint"][i][j], float(joint[i, j]), 4)
        for i, j in product(range(n + 1), repeat=2)
    ]
    for what, key, ours in (
        ("f₁*({})", "scalar", scalar[0]),
        ("marginal of (59) at {}", "marginal", joint.sum(axis=1)),
    ):
        comparisons += [
            compare(what.format(eta), place, printed[key][eta], float(ours[eta]), 4) for eta in range(n + 1)
        ]

    columns = ["eta1", "eta2", "law", "solver", "product", "printed"]
    return artifact(
        "modulo_noise",
        "eq59",
        pd.DataFrame(rows, columns=columns),
        comparisons,
        joint=1 - joint[0, 0],
        apart=1 - apart[0, 0],
    )


def fig13(full: bool = False) -> Artifact:
    """Joint noise for two-dimensional queries, bounded and arbitrary differences."""
    printed = numbers()["fig13"]
    a, b = printed["parameters"]["a"], printed["parameters"]["b"]
    bound = list(range(a["mu_bar"] + 1))
    cases = (
        ("a", a, plane(a["n"], bound, bound), "{0, 1, 2} × {0, 1, 2}"),
        ("b", b, plane(b["n"], b["shifts_1"], b["shifts_2"]), "{1, 3} × {2, 5}"),
    )
    rows, laws = [], {}
    for panel, given, question, relation in cases:
        laws[panel], solved = _both(question, given["epsilon"])
        for i, j in product(range(given["n"] + 1), repeat=2):
            rows.append((panel, given["n"], relation, given["epsilon"], i, j, laws[panel][i, j], solved[i, j]))
    grid, peaks = laws["b"], printed["second_peaks"]
    second = np.unique(np.round(grid, 12))[-2]
    places = sorted([int(i), int(j)] for i, j in np.argwhere(np.isclose(grid, second, rtol=1e-9)))
    comparisons = [
        compare(
            f"second largest peak no. {k + 1}, as the number 10 η₁ + η₂",
            peaks["place"],
            10 * p[0] + p[1],
            10 * ours[0] + ours[1],
            0,
        )
        for k, (p, ours) in enumerate(zip(sorted(peaks["eta"]), places, strict=True))
    ]

    columns = ["panel", "n", "differences", "epsilon", "eta1", "eta2", "law", "solver"]
    return artifact(
        "modulo_noise", "fig13", pd.DataFrame(rows, columns=columns), comparisons, a=laws["a"][0, 0], grid=grid[0, 0]
    )
