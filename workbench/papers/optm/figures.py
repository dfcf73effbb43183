"""Fig. 2 (an output law of ERM), Fig. 3 (MAE against x), and a new one: the price of bits."""

from __future__ import annotations

import math

import pandas as pd

from workbench.exact.objects import Record
from workbench.families.quantizer.optm import solve_optm_with_thinner_slices
from workbench.families.quantizer.search import find_best_rqm, search_bins
from workbench.io.result import Row
from workbench.mechanisms.baselines.two_bin import equal_bins, erm, randomized_response
from workbench.mechanisms.piecewise_affine import Quantizer
from workbench.papers.artifact import Artifact, make_artifact
from workbench.papers.optm.common import EPSILONS, certified, designed, law_question, limit, mvu_at
from workbench.privacy.audit import audit_extremes

_ERM = ("1.6", "1.5")  # outer bin and γ of Fig. 2, chosen by us


def fig2(full: bool) -> Artifact:
    """p(x, 3) and p(x, 6) of ERM with 8 bins."""
    quantizer = erm(equal_bins(8, _ERM[0]), _ERM[1])
    x, law = [float(at) for at in quantizer.end_inputs], quantizer.matrix
    table = pd.DataFrame(
        {
            "x": x,
            "side": ["+", "-"] * len(quantizer.pieces),
            "p(x, 3)": law[:, 2],
            "p(x, 6)": law[:, 5],
        }
    )
    bins = pd.DataFrame({"bin": quantizer.outputs, "number": range(1, 9)}).query("-1 < bin < 1")
    further = {"pieces": table.assign(piece=table.index // 2), "bins": bins}
    return make_artifact("optm", "fig2", table, further=further, ERM=_ERM[0], ERM_2=_ERM[1])


def limits(table: pd.DataFrame) -> Record:
    """The limits beside the errors of Fig. 3, at every ε of Table 1."""
    limits = pd.DataFrame(
        {"epsilon": EPSILONS, "upper": [limit(epsilon).upper for epsilon in EPSILONS]}
    )
    return {"further": {"limits": limits}}


def _optm(levels: int, epsilon: str) -> Quantizer | None:
    if levels == 2:
        return randomized_response(epsilon)
    law = law_question(epsilon)
    thinned = solve_optm_with_thinner_slices(
        search_bins(levels, law, stride=2 if levels <= 6 else 4), law
    )
    return certified(thinned.quantizer, epsilon) if thinned else None


def bits(epsilon: str, *, full: bool = False) -> list[Row]:
    """Best MAE against the number of outputs at one ε: every mechanism at every number, and the limits."""
    rows: list[Row] = []
    for m in range(2, 17):
        mechanisms: dict[str, Quantizer | None] = {"exact quantizer": designed(m, epsilon)}
        if full or m in (2, 3, 4, 5, 6, 8, 12, 16):
            mechanisms |= {
                "MVU": mvu_at(m, epsilon),
                "RQM": find_best_rqm(m, epsilon),
                "OPTM": _optm(m, epsilon),
            }
        for name, quantizer in mechanisms.items():
            if quantizer is None:
                continue
            mae = quantizer.mae()
            rows.append(
                {
                    "epsilon": epsilon,
                    "outputs": m,
                    "mechanism": name,
                    "mae": mae,
                    "mae, at most so many outputs": min(
                        [mae, *(r["mae"] for r in rows if r["mechanism"] == name)]
                    ),
                    "mse": quantizer.mse(),
                    "largest output": quantizer.outputs[-1],
                    "exact epsilon": audit_extremes(quantizer, 0).pure_epsilon,
                }
            )
    free, capped = limit(epsilon), limit(epsilon, capped=True)
    limits = {"limit, proven": free.lower, "limit, reached": free.upper}
    limits["limit within the reach, reached"] = capped.upper
    ends = (
        {"epsilon": epsilon, "outputs": math.inf, "mechanism": n, "mae": value}
        for n, value in limits.items()
    )
    return [*rows, *ends]
