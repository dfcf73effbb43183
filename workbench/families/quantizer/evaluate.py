"""Closed-form quantizers given by their parameters: exact ε, bias and errors, beside the published bounds."""

from __future__ import annotations

import math
from itertools import pairwise
from typing import Any

from workbench.errors import InvalidRequest
from workbench.exact.numbers import Real, exact
from workbench.mechanisms.baselines.poisson_binomial import Biased, NonAffine, poisson_binomial
from workbench.mechanisms.baselines.two_bin import (
    erm,
    erm_epsilon_bound,
    erm_error_bound,
    randomized_response,
    rqm,
    rqm_epsilon_bound,
    rqm_selection,
)
from workbench.mechanisms.density import spelled
from workbench.mechanisms.piecewise_affine import Quantizer
from workbench.mechanisms.real_inputs import half_width, read_bins
from workbench.privacy.quantizer import audit_quantizer

__all__ = ["MECHANISMS", "built", "evaluation"]

# mechanism -> the parameters it takes besides c
MECHANISMS = {
    "rqm": ("bins", "q"),
    "erm": ("bins", "gamma"),
    "pbm": ("levels", "theta or epsilon"),
    "randomized-response": ("epsilon",),
    "biased": ("bins", "q", "beta"),
}


def built(mechanism: str, *, c: Real = 1, **given: Any) -> Quantizer | NonAffine:
    """The mechanism of a name and its parameters (`MECHANISMS`); all it needs and nothing else. Raises InvalidRequest.

    bins: increasing; q: in [0, 1); gamma, beta: >= 0; theta: in (0, 1/2); levels: >= 2; epsilon: > 0.
    """
    if mechanism not in MECHANISMS:
        InvalidRequest.must("mechanism", f"one of {', '.join(MECHANISMS)}", repr(mechanism))
    takes = {part for name in MECHANISMS[mechanism] for part in name.split(" or ")}
    for name, value in given.items():
        if value is not None and name not in takes:
            raise InvalidRequest(f"{name} must be left out for {mechanism}. Got {value}.")
    for name in MECHANISMS[mechanism]:
        if all(given.get(part) is None for part in name.split(" or ")):
            raise InvalidRequest(f"{name} must be given for {mechanism}. Got none.")
    bins, q, epsilon = (given.get(name) for name in ("bins", "q", "epsilon"))
    if mechanism == "rqm":
        return rqm(bins, q or 0, c=c)
    if mechanism == "erm":
        return erm(bins, given["gamma"] or 0, c=c)
    if mechanism == "pbm":
        return poisson_binomial(given["levels"] or 0, theta=given.get("theta"), epsilon=epsilon, c=c)
    if mechanism == "biased":
        outputs = read_bins(bins, half_width(c))
        return Biased.of(outputs, rqm_selection(len(outputs), q or 0), given["beta"] or 0, c=c)
    return randomized_response(epsilon or 0, c=c)


def evaluation(mechanism: str, *, density: Any = "uniform", **parameters: Any) -> dict[str, Any]:
    """Exact ε and bias, errors under a density, and the published bounds where they apply. JSON-ready.

    mechanism, parameters: as `built`. Keys: mechanism, bins, mae, mae_51, mse, exact {epsilon, bias}, bounds.
    Raises InvalidRequest.
    """
    quantizer = built(mechanism, **parameters)
    law = spelled(density, float(quantizer.c))
    if isinstance(quantizer, Quantizer):
        privacy = audit_quantizer(quantizer)
        epsilon, bias = privacy.epsilon, float(privacy.bias)
    else:
        epsilon, bias = quantizer.epsilon, quantizer.bias
    return {
        "mechanism": mechanism,
        "bins": quantizer.outputs.tolist(),
        "density": law.name,
        "mae": quantizer.mae(law),
        "mae_51": quantizer.mae_51,
        "mse": quantizer.mse(law),
        "exact": {"epsilon": epsilon if math.isfinite(epsilon) else "inf", "bias": bias},
        "bounds": _bounds(mechanism, quantizer, parameters),
    }


def _bounds(mechanism: str, quantizer: Quantizer | NonAffine, parameters: dict[str, Any]) -> dict[str, float] | None:
    """Theorems 1 and 2 of Cai et al. 2024 and the bound of Youn et al. 2023: for equally spaced bins only."""
    gaps = [b - a for a, b in pairwise(quantizer.bins)]
    if mechanism not in ("erm", "rqm") or max(gaps) - min(gaps) > max(gaps) / 100:
        return None
    extra = quantizer.bins[-1] - quantizer.c
    if mechanism == "rqm":
        if not extra:
            return None
        return {"epsilon": rqm_epsilon_bound(quantizer.m, parameters["q"], extra, quantizer.c)}
    gamma = exact(parameters["gamma"], "gamma")
    bounds = {"epsilon": erm_epsilon_bound(quantizer.m, gamma, extra, quantizer.c)}
    return bounds | ({"error": erm_error_bound(quantizer.m, gamma, extra, quantizer.c)} if gamma > 0 else {})
