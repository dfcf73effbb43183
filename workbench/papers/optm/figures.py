"""Fig. 2 (an output law of ERM), Fig. 3 (MAE against x), and a new one: the price of bits."""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from workbench.errors import Infeasible
from workbench.exact.numbers import exact
from workbench.families.quantizer.law_question import LawQuestion
from workbench.families.quantizer.mvu import mvu
from workbench.families.quantizer.optm import optm_thinner
from workbench.families.quantizer.published import best_rqm
from workbench.families.quantizer.search import searched_bins
from workbench.io.figures import COLOURS, MARKERS, legend_below, panels
from workbench.mechanisms.baselines.two_bin import equal_bins, erm, randomized_response
from workbench.mechanisms.density import uniform
from workbench.mechanisms.piecewise_affine import Quantizer
from workbench.mechanisms.shown_mechanism import draw_law
from workbench.papers.artifact import Artifact, InParts
from workbench.papers.optm.common import EPSILONS, STYLE, best_exact, certified, exact_at, limit, parameters, published
from workbench.privacy.quantizer import audit_quantizer

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["draw_limit", "fig2", "fig3", "price_of_bits"]

_ERM = ("1.6", "1.5")  # outer bin and γ of Fig. 2, chosen by us


def draw_limit(axis: Axes, epsilon: str, *, x: tuple[float, float] = (-1.0, 1.0)) -> None:
    """The limit for any number of outputs as a horizontal line."""
    axis.hlines(limit(epsilon).upper, *x, colors="black", linestyles=(0, (5, 2)), linewidth=1.2, label="limit (mean)")


def fig2(full: bool) -> Artifact:
    """p(x, 3) and p(x, 6) of ERM with 8 bins."""
    quantizer = erm(equal_bins(8, _ERM[0]), _ERM[1])
    rows = []
    for k in range(len(quantizer.pieces)):
        for side, at in ((0, quantizer.knots[k]), (1, quantizer.knots[k + 1])):
            law = quantizer.matrix[2 * k + side]
            rows.append({"x": float(at), "side": "+" if side == 0 else "-", "p(x, 3)": law[2], "p(x, 6)": law[5]})

    def draw(table: pd.DataFrame) -> Figure:
        figure, (axis,) = panels(width=6.4)
        draw_law(axis, quantizer, [2, 5])
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

    caption = (
        f"ERM with 8 equal bins in [-{_ERM[0]}, {_ERM[0]}] and γ = {_ERM[1]} (the paper gives no parameters). The law "
        "is affine between bins and jumps at them: maxima are the one-sided limits at the output's own bin, minima "
        "limits at bins or at ±c. The two curves are mirror images."
    )
    return Artifact("fig2", "Fig. 2: output law of ERM, m = 8", pd.DataFrame(rows), draw, caption)


def fig3(full: bool) -> Artifact:
    """Expected error against x, at every ε of Table 1."""
    even = np.linspace(-1, 1, 401)
    frames = []
    for epsilon in EPSILONS:
        bins = parameters()[{"0.5": "table3", "1": "table4", "1.5": "table5"}[epsilon]]["OPTM"]["bins"]
        mechanisms = published(epsilon) | {"exact quantizer, OPTM's bins": exact_at(bins, epsilon),
                                     "exact quantizer, 4 optimised bins": best_exact(4, epsilon)}  # fmt: skip
        for name, quantizer in mechanisms.items():
            x = np.unique(
                np.concatenate(
                    [even, inside := quantizer.outputs[np.abs(quantizer.outputs) < 1], np.nextafter(inside, -1)]
                )
            )  # both limits where the law jumps
            frames.append(pd.DataFrame({"epsilon": epsilon, "mechanism": name, "x": x, "error": quantizer.error_at(x)}))
    data = pd.concat(frames, ignore_index=True)

    def draw(table: pd.DataFrame) -> Figure:
        figure, axes = panels(3, width=4.6, height=4.2)
        for axis, epsilon in zip(axes, EPSILONS, strict=True):
            for name, part in table[table["epsilon"] == epsilon].groupby("mechanism", sort=False):
                colour, style = STYLE[str(name)]
                axis.plot(part["x"], part["error"], style, color=COLOURS[colour], label=name, linewidth=1.5)
            draw_limit(axis, epsilon)
            axis.set_title(f"ε = {epsilon}", fontsize=10)
            axis.set_xlabel("input x")
        axes[0].set_ylabel("expected error E|M(x) - x|")
        legend_below(figure, axes[1:], columns=4)
        return figure

    caption = (
        "Expected absolute error of every mechanism at the printed parameters, exact at every x; the exact quantizer "
        "at OPTM's bins and with 4 optimised bins. Dashed: the least mean error of any unbiased ε-private mechanism "
        "with unlimited outputs (a bound on the average of a curve, not on the curve). At ε = 0.5 there is no RQM and "
        "no ERM."
    )
    return Artifact("fig3", "Fig. 3: error against x", data, draw, caption, digits={"error": 4})


def _optm(levels: int, epsilon: str) -> Quantizer | None:
    if levels == 2:
        return randomized_response(epsilon)
    law, budget = uniform(), exact(epsilon, "epsilon")
    try:
        bins = searched_bins(levels, LawQuestion(budget, Fraction(1), law), every=2 if levels <= 6 else 4)
    except Infeasible:
        return None
    thinned = optm_thinner(bins, budget, Fraction(1), law)
    return None if thinned is None else certified(thinned.quantizer, epsilon)


_BITS_EPSILONS = ("0.5", "1", "1.5", "2")


def _bits(epsilon: str, full: bool) -> list[dict[str, Any]]:
    """The rows of one ε: every mechanism at every number of outputs, and the limits."""
    rows: list[dict[str, Any]] = []
    best: dict[str, float] = {}
    for m in range(2, 17):
        mechanisms: dict[str, Quantizer | None] = {"exact quantizer": best_exact(m, epsilon)}
        if full or m in (2, 3, 4, 5, 6, 8, 12, 16):
            searched = mvu(epsilon, levels=m, starts=5, bound=False).quantizer
            mechanisms |= {
                "MVU": certified(searched, epsilon),
                "RQM": best_rqm(m, epsilon),
                "OPTM": _optm(m, epsilon),
            }
        for name, quantizer in mechanisms.items():
            if quantizer is None:
                continue
            best[name] = min(best.get(name, math.inf), quantizer.mae())
            rows.append({"epsilon": epsilon, "outputs": m, "mechanism": name, "mae": quantizer.mae(),
                         "mae, at most so many outputs": best[name], "mse": quantizer.mse(),
                         "largest output": quantizer.outputs[-1],
                         "exact epsilon": audit_quantizer(quantizer).epsilon})  # fmt: skip
    free, capped = limit(epsilon), limit(epsilon, capped=True)
    for name, value in (("limit, proven", free.lower), ("limit, reached", free.upper),
                        ("limit within the reach, reached", capped.upper)):  # fmt: skip
        rows.append({"epsilon": epsilon, "outputs": math.inf, "mechanism": name, "mae": value})
    return rows


def _price_of_bits(parts: Sequence[list[dict[str, Any]]], full: bool) -> Artifact:
    """Best MAE against the number of outputs."""
    rows = [row for part in parts for row in part]

    def draw(table: pd.DataFrame) -> Figure:
        figure, axes = panels(2, 2, width=5.0, height=3.6)
        for axis, epsilon in zip(axes, _BITS_EPSILONS, strict=True):
            here = table[table["epsilon"] == epsilon]
            for k, name in enumerate(("exact quantizer", "OPTM", "MVU", "RQM")):
                part = here[here["mechanism"] == name]
                axis.plot(part["outputs"], part["mae, at most so many outputs"], color=COLOURS[STYLE[name][0]],
                          marker=MARKERS[k], markersize=4, label=name, linewidth=1.3)  # fmt: skip
            value = {str(r["mechanism"]): float(r["mae"]) for _, r in here[np.isinf(here["outputs"])].iterrows()}
            low, high = value["limit, proven"], value["limit, reached"]
            axis.axhspan(low, high, color="black", alpha=0.35, linewidth=0, label="limit, any outputs")
            axis.axhline(value["limit within the reach, reached"], color="black", linestyle=(0, (5, 2)), linewidth=1,
                         label="limit, outputs within 2x least reach")  # fmt: skip
            axis.set_title(f"ε = {epsilon}", fontsize=10)
            axis.set_xlabel("outputs, at most m")
            axis.set_ylabel("least MAE found")
            axis.set_xticks(range(2, 17, 2))
        legend_below(figure, axes[:1], columns=3)
        return figure

    caption = (
        "New: least exact MAE (uniform inputs) found with at most m outputs, every mechanism exactly ε-private by "
        "audit. Exact quantizer with optimised bins and 41 knots, outputs within twice the least feasible reach "
        "2(e^ε+1)/(e^ε-1); OPTM on a coarse grid of bins, equally spaced inside; MVU with as many input points as "
        "outputs, its alphabet optimised for its squared error; RQM with the best of a few outer bins and its largest "
        "private q. OPTM and RQM are searched coarsely and MVU minimises the squared error, so what one finds with m "
        "outputs may be worse than with fewer: the table has both, the figure the best so far. OPTM, MVU and RQM at "
        "every m only in the full run. With two outputs all are two-point randomized response. The band is the "
        "interval of the limit for unlimited outputs (its lower edge proven)."
    )
    return Artifact("price-of-bits", "The price of bits", pd.DataFrame(rows), draw, caption,
                    digits={"mae": 6, "mae, at most so many outputs": 6, "mse": 4, "largest output": 3,
                            "exact epsilon": 7})  # fmt: skip


price_of_bits = InParts(_BITS_EPSILONS, _bits, _price_of_bits)
