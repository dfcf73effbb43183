"""What is printed and wrong, each with the computation that shows it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction

import numpy as np

from solvers.search import bisect
from workbench.families.quantizer.law_program import exact_quantizer
from workbench.families.quantizer.laws import LawQuestion
from workbench.families.quantizer.optm import Live, shape_of
from workbench.mechanisms.baselines.two_bin import equal_bins, rqm, two_bin
from workbench.mechanisms.density import uniform
from workbench.mechanisms.quantization import read_bins
from workbench.papers.artifact import Erratum, erratum
from workbench.papers.optm.common import EPSILONS, authors_optm_at, listed, parameters, published
from workbench.papers.optm.table2 import table2_mvu, table6_bins
from workbench.papers.optm.tables import no_erm, no_rqm
from workbench.papers.optm.vectors import metric_floor
from workbench.privacy.audit import audit_extremes

__all__ = ["all_errata"]


def all_errata() -> Sequence[Erratum]:
    """Every erratum, checked now."""
    rows = [_ends(), _table1_optm(), table2_mvu(), table6_bins(), _not_available(), _metric()]
    return [*rows, _objective(), _theorem6()]


def _ends() -> Erratum:
    quantizer = rqm(equal_bins(5, "1.8"), "0.4")
    at_c, true = (
        float(np.abs(np.log(quantizer.matrix[0] / quantizer.matrix[-1])).max()),
        audit_extremes(quantizer, 0).pure_epsilon,
    )
    return erratum("optm", "ends", true > at_c + 1e-3, at_c=at_c, true=true)


def _table1_optm() -> Erratum:
    printed = parameters()["table1"]["OPTM"]
    authors = [authors_optm_at(epsilon) for epsilon in EPSILONS]
    all_pairs = [published(epsilon)["OPTM"].mae_51 for epsilon in EPSILONS]
    excess = max(
        audit_extremes(quantizer, 0).pure_epsilon - float(e) for quantizer, e in zip(authors, EPSILONS, strict=True)
    )
    theirs, cells = [quantizer.mae_51 for quantizer in authors], np.array(printed)
    agree = excess <= 1e-7 and np.abs(theirs - cells).max() <= 5e-4 < np.abs(all_pairs - cells).min()
    return erratum("optm", "table1_optm", bool(agree), mae_51=listed(theirs), listed=listed(all_pairs))


def _not_available() -> Erratum:
    best, (count, beyond) = no_rqm("0.5"), no_erm("0.5")
    shown = "none" if best is None else f"{best.mae():.4f} (51 points {best.mae_51:.4f})"
    epsilon, none = audit_extremes(beyond, 0).pure_epsilon, best is not None and count == 0
    return erratum("optm", "not_available", none, shown=shown, mae=beyond.mae(), epsilon=epsilon, count=count)


def _least_metric_epsilon(points: int) -> float:
    """The least ε at which squared-distance metric privacy on a grid is feasible, by bisection to 1e-3."""
    bins = tuple(Fraction(b) for b in (-3, -1, 1, 3))
    law = LawQuestion(Fraction(1), Fraction(1), uniform(), "squared", "squared")

    def feasible(epsilon: float) -> bool:
        return exact_quantizer(bins, replace(law, epsilon=Fraction(epsilon)), knots=points) is not None

    return bisect(feasible, 0.0, 8.0, tolerance=1e-3)[1]


def _metric() -> Erratum:
    least = {n: _least_metric_epsilon(n) for n in (2, 3, 5, 9, 17)}
    floors = {n: metric_floor(n, 3.0) for n in least}
    shown = ", ".join(f"{n} points {value:.3f} (floor {floors[n]:.3f})" for n, value in least.items())
    return erratum(
        "optm", "metric", all(least[n] >= floors[n] - 2e-3 for n in least) and least[17] > 4 * least[3], shown=shown
    )


def _objective() -> Erratum:
    # stochastic rounding to the two nearest bins: every ζ is 0, what is left is (8)'s constant
    bins = read_bins("-2.7,-0.9,0.9,2.7")
    mae, shape = two_bin(bins, [[1], [0, 1], [0, 0, 1]]).mae(), shape_of(bins, Fraction(1), uniform())
    bound = float(sum(shape.losses[columns[-1]] for columns in shape.columns.values()))
    return erratum("optm", "objective", 0 < mae <= bound, proxy=0.0, mae=mae, proxy_2=bound)


def _theorem6() -> Erratum:
    # k = 2, r = 4: q_2(1) (B_4 - B_2) >= q_1(1) (B_4 - B_3), and q_2(1) <= q_2(2) = 1 - q_2(1)
    shown, none = [], True
    for number in (3, 4, 6):
        bins = read_bins(parameters()[f"table{number}"]["OPTM"]["bins"])
        least = (bins[3] - bins[2]) / (bins[3] - bins[1])
        shown.append(f"Table {number}: q_2(1) >= {float(least):.3f}")
        none = none and least > Fraction(1, 2)
    shape = shape_of(read_bins("-3,-0.5,0.5,3"), Fraction(1), uniform())
    live = Live()
    for before in np.arange(0.05, 1, 0.1):
        none = none and not live.solve(shape.theorem6(20.0, 1.0, float(before), 0.0))
    live.close()
    return erratum("optm", "theorem6", none, listed=", ".join(shown))
