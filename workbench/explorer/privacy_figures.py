"""Privacy profiles and trade-off curves as figures."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from itertools import islice
from typing import Any

import numpy as np

from workbench.errors import WorkbenchError
from workbench.explorer.figures import Figure, lines, series
from workbench.mechanisms.mechanism import as_mechanism, on_real_inputs
from workbench.privacy.notions import known, notion
from workbench.privacy.notions.dp import DeltaNotion

__all__ = ["profile_figures"]

_MASSES = 400_000  # of all comparisons of a profile: a second or two


def profile_figures(mechanism: Any, point: Mapping[str, Any]) -> list[Figure]:
    """δ(ε) for every notion that has one, and the trade-off curve of errors.

    point: epsilon and delta (0 where there is none of that name), marked unless one of them is None.

    Raises WorkbenchError where the mechanism has no exact laws, or too many comparisons to draw while one waits.
    """
    from workbench.privacy.curve import profile

    subject = as_mechanism(mechanism)
    most = _MASSES // max(1, len(subject.outputs))
    if len(list(islice(subject.comparisons(), most + 1))) > most:
        raise WorkbenchError(f"A profile is drawn for up to {most} comparisons of neighbours; there are more.")
    real = on_real_inputs(subject)
    named = [each for name in known() if isinstance(each := notion(name), DeltaNotion)]
    curves = {measure: profile(subject, measure.name) for measure in named if measure.convex or not real}
    numbers = [point.get("epsilon"), point.get("delta", 0)]
    known_both = all(isinstance(number, (int, float, Fraction)) for number in numbers)
    budget = (float(numbers[0]), float(numbers[1])) if known_both else None
    ends = next(iter(curves.values())).ends
    last = max(1e-3, 1.15 * float(ends[-1]), 1.5 * budget[0] if budget else 0.0)
    near = ends if ends.size <= 300 else np.linspace(0, float(ends[-1]), 300)
    grid = np.unique(np.concatenate([np.linspace(0, last, 150), near]))
    drawn = []
    for k, (measure, curve) in enumerate(curves.items()):
        x, y = grid, curve.heights(grid)
        if all(not piece.q for pieces in curve.curves for piece in pieces):  # a staircase
            x, y = np.repeat(grid, 2)[1:], np.repeat(y, 2)[:-1]
        drawn.append(series(f"{measure.title} δ", "line", k, x, y))
    if budget is not None:
        drawn.append(series("asked", "filled", 6, *([part] for part in budget)))
    shown = [lines("Privacy profile: the δ that holds at every ε", "ε", "δ(ε)", drawn)]
    dp = next((curve for measure, curve in curves.items() if measure.name == "dp"), None)
    if dp is not None and not subject.one_sided:
        shown.append(_tradeoff(dp, budget))
    return shown


def _tradeoff(profile: Any, budget: tuple[float, float] | None) -> Figure:
    """Type II error against type I error of telling neighbours apart: the best that the DP profile allows.

        f(α) = max over ε >= 0 of max(0, 1 - δ(ε) - e^ε α, e^-ε (1 - δ(ε) - α))     Dong, Roth and Su 2022, Sec. 2

    profile: of a symmetric relation; as δ is affine in e^ε between its ends, the maximum is at an end.
    """
    ends = profile.ends if profile.ends.size <= 400 else np.linspace(0, float(profile.ends[-1]), 400)
    alpha = np.unique(np.concatenate([np.linspace(0, 1, 101), np.geomspace(1e-4, 1, 60)]))

    def curve(epsilons: Any, deltas: Any) -> Any:
        e, d = np.asarray(epsilons)[:, None], np.asarray(deltas)[:, None]
        return np.maximum(0.0, np.maximum(1 - d - np.exp(e) * alpha, np.exp(-e) * (1 - d - alpha))).max(axis=0)

    drawn = [series("this mechanism", "line", 0, alpha, curve(ends, profile.heights(ends)))]
    if budget is not None:
        drawn.append(series("asked (ε, δ)", "dashed", 6, alpha, curve(*([part] for part in budget))))
    drawn.append(series("guessing", "dashed", 7, [0, 1], [1, 0]))
    return lines("Trade-off curve: telling two neighbours apart", "type I error α", "type II error β", drawn)
