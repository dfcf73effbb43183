"""Closed-form quantizers given by their parameters: exact ε, bias and errors, beside the published bounds."""

from __future__ import annotations

import math
from itertools import pairwise
from typing import Any

from workbench.errors import InvalidRequest
from workbench.mechanisms.curved import Biased, Curved, poisson_binomial
from workbench.mechanisms.density import spelled
from workbench.mechanisms.quantizer import Quantizer, read_bins
from workbench.mechanisms.two_bin import (
    erm,
    erm_epsilon_bound,
    erm_error_bound,
    randomized_response,
    rqm,
    rqm_epsilon_bound,
    rqm_selection,
)
from workbench.numbers import Real, exact, positive
from workbench.privacy.quantizer import audit_quantizer

__all__ = ["MECHANISMS", "built", "evaluate"]

# mechanism -> the parameters it takes besides c
MECHANISMS = {
    "rqm": ("bins", "q"),
    "erm": ("bins", "gamma"),
    "pbm": ("levels", "theta or epsilon"),
    "randomized-response": ("epsilon",),
    "biased": ("bins", "q", "beta"),
}


def built(
    mechanism: str,
    *,
    bins: Any = None,
    q: Real | None = None,
    gamma: Real | None = None,
    beta: Real | None = None,
    theta: Real | None = None,
    levels: int | None = None,
    epsilon: Real | None = None,
    c: Real = 1,
) -> Quantizer | Curved:
    """The mechanism of a name and its parameters; all it needs and nothing else. Raises InvalidRequest."""
    if mechanism not in MECHANISMS:
        InvalidRequest.must("mechanism", f"one of {', '.join(MECHANISMS)}", repr(mechanism))
    given = {"bins": bins, "q": q, "gamma": gamma, "beta": beta, "theta": theta, "levels": levels, "epsilon": epsilon}
    takes = {part for name in MECHANISMS[mechanism] for part in name.split(" or ")}
    for name, value in given.items():
        if value is not None and name not in takes:
            raise InvalidRequest(f"{name} must be left out for {mechanism}. Got {value}.")
    for name in MECHANISMS[mechanism]:
        if all(given[part] is None for part in name.split(" or ")):
            raise InvalidRequest(f"{name} must be given for {mechanism}. Got none.")
    if mechanism == "rqm":
        return rqm(bins, q or 0, c=c)
    if mechanism == "erm":
        return erm(bins, gamma or 0, c=c)
    if mechanism == "pbm":
        return poisson_binomial(levels or 0, theta=theta, epsilon=epsilon, c=c)
    if mechanism == "biased":
        outputs = read_bins(bins, positive(c, "c"))
        return Biased.of(outputs, rqm_selection(len(outputs), q or 0), beta or 0, c=c)
    return randomized_response(epsilon or 0, c=c)


def evaluate(mechanism: str, *, density: Any = "uniform", **parameters: Any) -> dict[str, Any]:
    """Exact ε and bias, errors under a density, and the published bounds where they apply. JSON-ready.

    mechanism, parameters: as `built`. Keys: mechanism, bins, mae, mae_51, mse, exact {epsilon, bias}, bounds.
    Raises InvalidRequest.
    """
    made = built(mechanism, **parameters)
    law = spelled(density, float(made.c))
    if isinstance(made, Quantizer):
        found = audit_quantizer(made)
        epsilon, bias = found.epsilon, float(found.bias)
    else:
        epsilon, bias = made.epsilon, made.bias
    return {
        "mechanism": mechanism,
        "bins": made.outputs.tolist(),
        "density": law.name,
        "mae": made.mae(law),
        "mae_51": made.mae_51,
        "mse": made.mse(law),
        "exact": {"epsilon": epsilon if math.isfinite(epsilon) else "inf", "bias": bias},
        "bounds": _bounds(mechanism, made, parameters),
    }


def _bounds(mechanism: str, made: Quantizer | Curved, parameters: dict[str, Any]) -> dict[str, float] | None:
    """Theorems 1 and 2 of Cai et al. 2024 and the bound of Youn et al. 2023: for equally spaced bins only."""
    gaps = [b - a for a, b in pairwise(made.bins)]
    if mechanism not in ("erm", "rqm") or max(gaps) - min(gaps) > max(gaps) / 100:
        return None
    extra = made.bins[-1] - made.c
    if mechanism == "rqm":
        if not extra:
            return None
        return {"epsilon": rqm_epsilon_bound(made.m, parameters["q"], extra, made.c)}
    gamma = exact(parameters["gamma"], "gamma")
    bounds = {"epsilon": erm_epsilon_bound(made.m, gamma, extra, made.c)}
    return bounds | ({"error": erm_error_bound(made.m, gamma, extra, made.c)} if gamma > 0 else {})
