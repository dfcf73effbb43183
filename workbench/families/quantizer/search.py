"""Bins for OPTM and for the product optimum when only their number is given (the outer loop of Algorithm 2).

m bins are -B, then m - 2 equally spaced from -b to b, then B. B and b run over a grid; for four bins that is the
paper's search. What is minimised is the exact MAE, and a mechanism whose exact ε exceeds the request does not count.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from fractions import Fraction

import numpy as np

from models.optm import Bounds
from models.quantizer import smallest_reach, usual_reach
from workbench.errors import NotProven
from workbench.exact.numbers import exact
from workbench.families.quantizer.law_question import LawQuestion
from workbench.families.quantizer.optm import Live, optm, widths_for
from workbench.families.quantizer.product import product_optimum
from workbench.mechanisms.density import Density
from workbench.privacy.quantizer import audit_quantizer

__all__ = ["bin_grid", "family", "searched_bins"]

Progress = Callable[[str], None]


def family(m: int, outer: Fraction, inner: Fraction, centre: Fraction = Fraction(0)) -> tuple[Fraction, ...]:
    """-B, m - 2 bins equally spaced from centre - b to centre + b (one: at the centre), B."""
    if m == 2:
        return -outer, outer
    if m == 3:
        return -outer, centre, outer
    steps = [centre - inner + 2 * inner * k / (m - 3) for k in range(m - 2)]
    return (-outer, *steps, outer)


def searched_bins(
    m: int,
    question: LawQuestion,
    method: str = "optm",
    *,
    reach: float | None = None,
    every: int = 1,
    progress: Progress = lambda line: None,
) -> tuple[Fraction, ...]:
    """The best bins of the family for method "optm" or "product". Raises NotProven when the search ends with none.

    reach: the largest output allowed, by default twice the least feasible one; every: a part of the grid, the every-th
    outer and inner bin.
    """
    epsilon, c, density = question.epsilon, question.c, question.density
    half, eps = float(c), float(epsilon)
    top = usual_reach(eps, half) if reach is None else reach
    grid = bin_grid(m, epsilon, c, density, top, every=every)
    best = None
    widths = widths_for(epsilon)
    for width in widths if m <= 5 else dict.fromkeys((widths[0], None)):
        best = best or _best_of(grid, question, width, progress)
    if best is None:
        raise NotProven(f"The search over {m} bins ended without a private mechanism at epsilon = {eps:g}.")
    return best if method == "optm" else _refined(m, best, question, top, progress)


def _parts(
    m: int, least: float, top: float, c: Fraction, density: Density, every: int
) -> tuple[list[Fraction], list[Fraction], list[Fraction]]:
    """Outer bins, inner bins and centres of the grid."""
    step = max(every, 2 if m > 5 else 1)
    # bins are of use to about 2c beyond the least reach, however far that is: inner bins get at most about ε/2 each
    span = min(least, 5 * float(c))
    far = top if span == least else min(top, least + span)
    outers = [_near(o) for o in np.linspace(least + 0.02 * span, far, 11)[::step]]
    inners = [Fraction(0)] if m <= 3 else [c * Fraction(k, 10) for k in range(1, 11, step)]
    centres = [Fraction(0)]
    if not density.symmetric:
        x, w = density.grid([0.0])
        mean = math.fsum(x * w)
        centres = [_near(s * mean) for s in (0.0, 0.5, 1.0)]
    return outers, inners, centres


def bin_grid(
    m: int, epsilon: Fraction, c: Fraction, density: Density, top: float, *, every: int = 1
) -> list[tuple[Fraction, ...]]:
    """The bins that the search of Algorithm 2 looks at."""
    parts = _parts(m, smallest_reach(float(epsilon), float(c)), top, c, density, every)
    grid = [family(m, *part) for part in itertools.product(*parts)]
    return [bins for bins in grid if all(a < b for a, b in itertools.pairwise(bins))]


def _best_of(
    grid: Sequence[tuple[Fraction, ...]], question: LawQuestion, width: float | None, progress: Progress
) -> tuple[Fraction, ...] | None:
    """The bins of the grid whose OPTM has the least exact error and is private, up to rounding; None without one."""
    epsilon, c, density = question.epsilon, question.c, question.density
    live = Live(epsilon=float(epsilon))
    best: tuple[float, tuple[Fraction, ...]] | None = None
    hint: Bounds | None = None
    outer = None
    for at, bins in enumerate(grid):
        if bins[-1] != outer:
            outer = bins[-1]
            progress(f"outer bin {float(outer):g} ({at + 1} of {len(grid)} choices of bins), {live.solves} LPs")
        design = optm(bins, epsilon, c, density, width=width, hint=hint, live=live)
        if design is None:
            continue
        hint = design.bounds
        value = design.quantizer.expected(question.loss, density)
        if (best is None or value < best[0]) and audit_quantizer(design.quantizer).meets(
            "pure", epsilon + Fraction(1, 10**9)
        ):
            best = value, bins
    live.close()
    return None if best is None else best[1]


def _refined(
    m: int, bins: tuple[Fraction, ...], question: LawQuestion, top: float, progress: Progress
) -> tuple[Fraction, ...]:
    """The bins moved one after the other while the product optimum improves (symmetric pairs together)."""
    c, even = question.c, question.density.symmetric
    nodes = 40 if m <= 6 else 4
    best = product_optimum(bins, question, nodes=nodes)
    value = np.inf if best is None else best.value
    step = Fraction(1, 5)
    while step > Fraction(1, 100):
        moved = False
        for i in range(m // 2, m) if even else range(m):
            for sign in (1, -1):
                trial = list(bins)
                trial[i] += sign * step
                if even:
                    trial[m - 1 - i] = -trial[i]
                rising = all(a < b for a, b in itertools.pairwise(trial))
                if not rising or trial[-1] > top or trial[0] < -top or trial[-1] < c or trial[0] > -c:
                    continue
                product = product_optimum(trial, question, nodes=nodes)
                if product is not None and product.value < value - 1e-6:
                    bins, value, moved = tuple(trial), product.value, True
                    break
        if not moved:
            step /= 2
        progress(f"bins moved in steps of {float(step):g}: {value:.6f}")
    return bins


def _near(value: float) -> Fraction:
    """A bin in hundredths."""
    return exact(f"{value:.2f}", "a bin")
