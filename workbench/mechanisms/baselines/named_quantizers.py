"""Build published quantizers from their names and parameters, and compute their published bounds.

| name                | mechanism                                                          |
|---------------------|--------------------------------------------------------------------|
| rqm                 | randomized quantization (Youn et al. 2023)                         |
| erm                 | exponential randomized mechanism (Cai et al. 2024)                 |
| pbm                 | Poisson binomial mechanism (Chen et al. 2022)                      |
| randomized-response | two-point randomized response                                      |
| biased              | biased quantization (Cai et al. 2024, Sec. 5)                      |

A further mechanism needs an entry in `QUANTIZER_PARAMETERS` and one in `_BUILD`.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from itertools import pairwise
from typing import Any

from workbench.data.intervals import read_bins, read_half_width
from workbench.errors import InvalidRequest
from workbench.exact.numbers import Real, read_number
from workbench.exact.objects import Record
from workbench.mechanisms.baselines.poisson_binomial import NonAffine, poisson_binomial
from workbench.mechanisms.baselines.two_bin import (
    BiasedQuantizer,
    erm,
    erm_epsilon_bound,
    erm_error_bound,
    erm_proven_epsilon_bound,
    randomized_response,
    rqm,
    rqm_epsilon_bound,
    rqm_selection,
)
from workbench.mechanisms.piecewise_affine import Quantizer

# Bins count as equally spaced if their distances differ by at most this share.
_MAX_SPACING_DIFFERENCE = Fraction(1, 100)

# The parameters of every mechanism, besides c.
QUANTIZER_PARAMETERS = {
    "rqm": ("bins", "q"),
    "erm": ("bins", "gamma"),
    "pbm": ("levels", "theta or epsilon"),
    "randomized-response": ("epsilon",),
    "biased": ("bins", "q", "beta"),
}


def _build_biased(bins: Any, q: Real, beta: Real, *, c: Real) -> BiasedQuantizer:
    """Build biased quantization: RQM's selection with q, then the exponential mechanism with β."""
    outputs = read_bins(bins, read_half_width(c))
    return BiasedQuantizer.from_selection(outputs, rqm_selection(len(outputs), q), beta, c=c)


def _build_poisson_binomial(
    levels: int, *, theta: Real | None = None, epsilon: Real | None = None, c: Real
) -> NonAffine:
    """Build the Poisson binomial mechanism with `levels` outputs, from θ or from ε."""
    return poisson_binomial(levels, theta=theta, epsilon=epsilon, c=c)


# Name -> function that takes the parameters by name, and c.
_BUILD: dict[str, Callable[..., Quantizer | NonAffine]] = {
    "rqm": rqm,
    "erm": erm,
    "pbm": _build_poisson_binomial,
    "randomized-response": randomized_response,
    "biased": _build_biased,
}


def build_named_quantizer(
    mechanism: str, *, c: Real = 1, **parameters: Any
) -> Quantizer | NonAffine:
    """Build the mechanism of a name from all its parameters (`QUANTIZER_PARAMETERS`).

    Args:
        mechanism: The name of the mechanism, a key of `QUANTIZER_PARAMETERS`.
        c: Half the width of the inputs, which are in [-c, c].
        parameters: The parameters by name; one that is None counts as missing.
            bins: Increasing outputs.
            q: Parameter in [0, 1) of the selection of RQM.
            gamma: Parameter γ >= 0 of ERM.
            beta: Parameter β >= 0 of biased quantization.
            levels: Number of outputs, >= 2.
            theta: Parameter θ in (0, 1/2) of the Poisson binomial mechanism.
            epsilon: Budget ε > 0.

    Returns:
        The mechanism.

    Raises:
        InvalidRequest: If a parameter is missing, or belongs to another mechanism.
    """
    InvalidRequest.check_choice(QUANTIZER_PARAMETERS, "mechanism", mechanism)
    needs = {
        names_text: {*names_text.split(" or ")} for names_text in QUANTIZER_PARAMETERS[mechanism]
    }
    parameters = {name: value for name, value in parameters.items() if value is not None}
    for name, value in parameters.items():
        if name not in set().union(*needs.values()):
            raise InvalidRequest(f"{name} must be left out for {mechanism}. Got {value}.")
    for names_text, names in needs.items():
        if not parameters.keys() & names:
            raise InvalidRequest(f"{names_text} must be given for {mechanism}. Got none.")
    return _BUILD[mechanism](**parameters, c=c)


def published_bounds(
    mechanism: str, quantizer: Quantizer | NonAffine, parameters: Record
) -> dict[str, float]:
    """Compute the bounds of Theorems 1 and 2 of Cai et al. 2024, and of Youn et al. 2023.

    The theorems assume equally spaced bins. Theorem 1 is false for small margins of the outermost
    bins, so a proven bound is beside it.

    Args:
        mechanism: The name of the mechanism, a key of `QUANTIZER_PARAMETERS`.
        quantizer: The mechanism of this name and these parameters.
        parameters: The parameters of the mechanism by name.

    Returns:
        "published_epsilon" -> printed bound on ε, and for erm "proven_epsilon" -> bound on ε that
        holds, and "published_error" -> bound on E|M(x) - x|. Empty for other mechanisms, for bins
        that are not equally spaced, and for rqm without a bin beyond c.
    """
    gaps = [b - a for a, b in pairwise(quantizer.bins)]
    margin = quantizer.bins[-1] - quantizer.c
    if max(gaps) - min(gaps) > max(gaps) * _MAX_SPACING_DIFFERENCE:
        return {}
    if mechanism == "rqm" and margin:
        bound = rqm_epsilon_bound(quantizer.m, parameters["q"], margin, quantizer.c)
        return {"published_epsilon": bound}
    if mechanism != "erm":
        return {}
    gamma = read_number(parameters["gamma"], "gamma")
    arguments = quantizer.m, gamma, margin, quantizer.c
    bounds = {"published_epsilon": erm_epsilon_bound(*arguments)}
    if gamma >= 0:
        bounds["proven_epsilon"] = erm_proven_epsilon_bound(*arguments)
    if gamma > 0:
        bounds["published_error"] = erm_error_bound(*arguments)
    return bounds
