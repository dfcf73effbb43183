"""What is printed and wrong: the numbers of each check, on which declared/optm.toml states the condition."""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction

import numpy as np

from workbench.data.intervals import read_bins
from workbench.exact.numbers import ONE
from workbench.exact.objects import Record
from workbench.families.quantizer.laws import LawQuestion, solve_exact_quantizer
from workbench.families.quantizer.optm import ProgramSolver, make_two_bin_shape
from workbench.mechanisms.baselines.two_bin import equal_bins, rqm, two_bin
from workbench.papers.optm.common import (
    EPSILONS,
    authors_optm_at,
    listed,
    mvu_at,
    parameters,
    published,
)
from workbench.papers.optm.tables import authors_at, gaussian, no_erm, no_rqm, standard_error
from workbench.papers.optm.vectors import metric_floor
from workbench.privacy.audit import audit_extremes
from workbench.questions.density import uniform_density
from workbench.solvers.search import bisect


def ends() -> Record:
    """ε of RQM at the ends of its inputs, and of all inputs."""
    quantizer = rqm(equal_bins(5, "1.8"), "0.4")
    at_c = float(np.abs(np.log(quantizer.matrix[0] / quantizer.matrix[-1])).max())
    return {"at_c": at_c, "true": audit_extremes(quantizer, 0).pure_epsilon}


def table1_optm() -> Record:
    """By how much the authors' program misses its ε and the printed cells, and Theorem 5 misses these at least."""
    cells = np.array(parameters()["table1"]["OPTM"])
    authors = [authors_optm_at(epsilon) for epsilon in EPSILONS]
    theirs = np.array([quantizer.mae_51 for quantizer in authors])
    all_pairs = np.array([published(epsilon)["OPTM"].mae_51 for epsilon in EPSILONS])
    return {
        "mae_51": listed(theirs),
        "listed": listed(all_pairs),
        "excess": max(
            audit_extremes(q, 0).pure_epsilon - float(e)
            for q, e in zip(authors, EPSILONS, strict=True)
        ),
        "off": np.abs(theirs - cells).max(),
        "apart": np.abs(all_pairs - cells).min(),
    }


def table2_mvu() -> Record:
    """Two of the printed MVU values exceed its error at the worst input. gap: of a printed value to the other reading's
    mean, at most, in standard errors."""
    printed = parameters()["table2"]
    quantizer = mvu_at(parameters()["table6"]["MVU"]["bins"], "1")
    y = (quantizer.outputs + 1) / 2  # the alphabet of inputs in [0, 1]
    means, read, gap = [], [], 0.0
    for sigma, cell in zip(printed["sigma"], printed["MVU"], strict=True):
        density = gaussian(sigma)
        means.append(quantizer.mae(density))
        x, weights = density.quadrature(
            np.concatenate([[float(k) for k in quantizer.knots], y[np.abs(y) < 1]])
        )
        gaps = 2 * np.abs(x[:, None] - y)
        law = weights[:, None] * quantizer.probabilities(x)
        mean = float((law * gaps).sum())
        error = math.sqrt((float((law * gaps**2).sum()) - mean * mean) / 1000)
        read.append(f"{mean:.3f} ± {error:.3f}")
        gap = max(gap, abs(cell - mean) / error)
    return {
        "MVU": listed(printed["MVU"], ".3f"),
        "listed": listed(means, ".3f"),
        "least": min(printed["MVU"][:2]),
        "top": float(quantizer.error_at(np.linspace(-1, 1, 4001)).max()),
        "shown": ", ".join(read),
        "gap": gap,
    }


def table6_bins() -> Record:
    """Table 6 has one line of bins for OPTM; the program chooses others at σ = 0.3.

    gap: by how much a printed error is farther from the program's than rounding and three standard errors, at most.
    """
    printed, bins = parameters()["table2"], read_bins(parameters()["table6"]["OPTM"]["bins"])
    gap, same, shown = -math.inf, [], {}
    for sigma, cell in zip(printed["sigma"], printed["OPTM"], strict=True):
        quantizer, density = authors_at(sigma), gaussian(sigma)
        mae, error = quantizer.mae(density), standard_error(quantizer, density)
        gap = max(gap, abs(mae - cell) - 0.0005 - 3 * error)
        if np.array_equal(quantizer.outputs, [float(b) for b in bins]):
            same.append(sigma)
        shown = {
            "listed_2": listed(quantizer.outputs, "g"),
            "value": mae,
            "error": error,
            "OPTM": cell,
        }
    return {**shown, "listed": listed(same, "g"), "gap": gap}


def not_available() -> Record:
    """The best RQM and ERM at an ε where the paper has none."""
    best, (count, beyond) = no_rqm("0.5"), no_erm("0.5")
    shown = "none" if best is None else f"{best.mae():.4f} (51 points {best.mae_51:.4f})"
    return {
        "shown": shown,
        "mae": beyond.mae(),
        "epsilon": audit_extremes(beyond, 0).pure_epsilon,
        "count": count,
    }


def _least_metric_epsilon(points: int) -> float:
    """The least ε at which squared-distance metric privacy on a grid is feasible, by bisection to 1e-3."""
    bins = tuple(Fraction(b) for b in (-3, -1, 1, 3))
    law = LawQuestion(Fraction(1), loss="squared", metric="squared")

    def feasible(epsilon: float) -> bool:
        return (
            solve_exact_quantizer(bins, replace(law, epsilon=Fraction(epsilon)), knots=points)
            is not None
        )

    return bisect(feasible, 0.0, 8.0, tolerance=1e-3)[1]


def metric() -> Record:
    """The least ε on grids, and by how much it is above its floor at least."""
    least = {n: _least_metric_epsilon(n) for n in (2, 3, 5, 9, 17)}
    floors = {n: metric_floor(n, 3.0) for n in least}
    shown = ", ".join(
        f"{n} points {value:.3f} (floor {floors[n]:.3f})" for n, value in least.items()
    )
    return {
        "shown": shown,
        "above": min(least[n] - floors[n] for n in least),
        "coarse": least[3],
        "fine": least[17],
    }


def objective() -> Record:
    """The MAE of stochastic rounding, and (8)'s constant."""
    # stochastic rounding to the two nearest bins: every ζ is 0, what is left is (8)'s constant
    bins = read_bins("-2.7,-0.9,0.9,2.7")
    mae, shape = (
        two_bin(bins, [[1], [0, 1], [0, 0, 1]]).mae(),
        make_two_bin_shape(bins, uniform_density()),
    )
    return {
        "mae": mae,
        "proxy_2": float(sum(shape.losses[columns[-1]] for columns in shape.columns.values())),
    }


def theorem6() -> Record:
    """What the constraint asks of q_2(1) at the printed bins, and whether a slice has a solution."""
    # k = 2, r = 4: q_2(1) (B_4 - B_2) >= q_1(1) (B_4 - B_3), and q_2(1) <= q_2(2) = 1 - q_2(1)
    least = {}
    for number in (3, 4, 6):
        bins = read_bins(parameters()[f"table{number}"]["OPTM"]["bins"])
        least[number] = float((bins[3] - bins[2]) / (bins[3] - bins[1]))
    shape, live = (
        make_two_bin_shape(read_bins("-3,-0.5,0.5,3"), uniform_density()),
        ProgramSolver(LawQuestion(ONE)),
    )
    solved = [
        live.solve(shape.theorem6(20.0, 1.0, float(q), 0.0)) is not None
        for q in np.arange(0.05, 1, 0.1)
    ]
    live.close()
    shown = ", ".join(f"Table {number}: q_2(1) >= {value:.3f}" for number, value in least.items())
    return {"listed": shown, "least": min(least.values()), "solved": sum(solved)}
