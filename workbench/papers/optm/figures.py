"""Fig. 2 (an output law of ERM), Fig. 3 (MAE against x), and a new one: the price of bits."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from workbench.families.quantizer.optm import optm_thinner
from workbench.families.quantizer.search import best_rqm, searched_bins
from workbench.io.figures import panels
from workbench.mechanisms.baselines.two_bin import equal_bins, erm, randomized_response
from workbench.mechanisms.piecewise_affine import Quantizer
from workbench.mechanisms.shown_mechanism import draw_law
from workbench.papers.artifact import Artifact, InParts, artifact, tabled
from workbench.papers.optm.common import EPSILONS, best_exact, certified, law_question, limit, mvu_at
from workbench.papers.optm.tables import SOURCES
from workbench.privacy.audit import audit_extremes

if TYPE_CHECKING:
    from matplotlib.figure import Figure


_ERM = ("1.6", "1.5")  # outer bin and γ of Fig. 2, chosen by us


def fig2(full: bool) -> Artifact:
    """p(x, 3) and p(x, 6) of ERM with 8 bins."""
    quantizer = erm(equal_bins(8, _ERM[0]), _ERM[1])
    x, law = [float(at) for at in quantizer.places], quantizer.matrix
    rows = {"x": x, "side": ["+", "-"] * len(quantizer.pieces), "p(x, 3)": law[:, 2], "p(x, 6)": law[:, 5]}

    def draw(table: pd.DataFrame) -> Figure:
        figure, (axis,) = panels(width=6.4)
        draw_law(axis, quantizer.outputs[[2, 5]], np.array([float(k) for k in quantizer.knots]), law[:, [2, 5]])
        for line, name in zip(axis.get_lines(), ("p(x, 3)", "p(x, 6)"), strict=True):
            line.set_label(name)
        for i, b in enumerate(quantizer.outputs, 1):
            if -1 < b < 1:
                axis.axvline(b, color="grey", linewidth=0.6, linestyle=":")
                axis.annotate(
                    f"B{i}", (b, 1.0), xycoords=("data", "axes fraction"), ha="center", va="bottom", fontsize=8
                )
        axis.legend(frameon=False)
        return figure

    return artifact("optm", "fig2", pd.DataFrame(rows), draw=draw, ERM=_ERM[0], ERM_2=_ERM[1])


def fig3(full: bool) -> Artifact:
    """Expected error against x, at every ε of Table 1."""
    limits = pd.DataFrame({"epsilon": EPSILONS, "upper": [limit(epsilon).upper for epsilon in EPSILONS]})
    return artifact("optm", "fig3", tabled("optm", "fig3", SOURCES), further={"limits": limits})


def _optm(levels: int, epsilon: str) -> Quantizer | None:
    if levels == 2:
        return randomized_response(epsilon)
    law = law_question(epsilon)
    thinned = optm_thinner(searched_bins(levels, law, every=2 if levels <= 6 else 4), law.epsilon)
    return None if thinned is None else certified(thinned.quantizer, epsilon)


_BITS_EPSILONS = ("0.5", "1", "1.5", "2")


def _bits(epsilon: str, full: bool) -> list[dict[str, Any]]:
    """The rows of one ε: every mechanism at every number of outputs, and the limits."""
    rows: list[dict[str, Any]] = []
    best: dict[str, float] = {}
    for m in range(2, 17):
        mechanisms: dict[str, Quantizer | None] = {"exact quantizer": best_exact(m, epsilon)}
        if full or m in (2, 3, 4, 5, 6, 8, 12, 16):
            mechanisms |= {"MVU": mvu_at(m, epsilon), "RQM": best_rqm(m, epsilon), "OPTM": _optm(m, epsilon)}
        for name, quantizer in mechanisms.items():
            if quantizer is None:
                continue
            best[name] = min(best.get(name, math.inf), quantizer.mae())
            rows.append(
                {
                    "epsilon": epsilon,
                    "outputs": m,
                    "mechanism": name,
                    "mae": quantizer.mae(),
                    "mae, at most so many outputs": best[name],
                    "mse": quantizer.mse(),
                    "largest output": quantizer.outputs[-1],
                    "exact epsilon": audit_extremes(quantizer, 0).pure_epsilon,
                }
            )
    free, capped = limit(epsilon), limit(epsilon, capped=True)
    for name, value in (
        ("limit, proven", free.lower),
        ("limit, reached", free.upper),
        ("limit within the reach, reached", capped.upper),
    ):
        rows.append({"epsilon": epsilon, "outputs": math.inf, "mechanism": name, "mae": value})
    return rows


def _price_of_bits(parts: Sequence[list[dict[str, Any]]], full: bool) -> Artifact:
    """Best MAE against the number of outputs."""
    return artifact("optm", "price-of-bits", pd.DataFrame([row for part in parts for row in part]))


price_of_bits = InParts(_BITS_EPSILONS, _bits, _price_of_bits)
