"""List published randomizers of one value in a range and of quantizers, with their expected losses.

`PUBLISHED` is the table that the rest of the package reads. A randomizer of a value is added as a
line of `_RANGE_MECHANISMS` with a function that computes its two losses.

Every two values of the range are neighbours. The losses are closed forms for the true value x,
uniform on [-1, 1] (the range, moved and divided by half its width). o is the published value. In
the table a = e^(ε/2) and r = e^ε.

    Duchi           ±B, B = (r+1)/(r-1), mean x
                    E|o-x| = B - 1/3B,  E(o-x)² = B² - 1/3
    piecewise       on [-C, C], C = (a+1)/(a-1): density p on [l, l+C-1], l = ((C+1)x - C+1)/2,
                    otherwise q = p/r; p = a(a-1)/2(a+1); mean x
                    E|o-x| = q (C²+1/3) + (p-q) (C-1)²/3,  E(o-x)² = 1/3(a-1) + (a+3)/3(a-1)²
    hybrid          piecewise with probability 1 - 1/a if ε > ε* = .61, otherwise Duchi
                    the same share of both losses
    optimal         x in [0, 1]: density a on an interval of length 2D around x inside [0, 1],
    piecewise       otherwise 1/a; D = 1/2(a+1); biased
                    E|o-x| = (1/a)/3 + (a-1/a) (D² + 2D³/3),
                    E(o-x)² = (1/a)/6 + (a-1/a) (2D³/3 + 4D⁴/3)

Densities of two values differ by a factor of at most e^ε everywhere: pure. Sources: Duchi, Jordan
and Wainwright 2018; Wang et al. 2019 (piecewise, hybrid); Zheng, Mishra and Hu 2025 (the closed
form of their published code, best for E|o-x|).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import Any

from workbench.errors import NotApplicable
from workbench.families.quantizer.request import QuantizerRequest
from workbench.families.quantizer.search import find_best_rqm
from workbench.mechanisms.baselines.poisson_binomial import poisson_binomial
from workbench.mechanisms.quantization_error import error_coefficients
from workbench.pipeline.published import Published, Reference
from workbench.privacy.audit import audit_extremes
from workbench.questions.quantization import Quantization
from workbench.questions.range_query import RangeQuery

_MAX_RQM_LEVELS = 8  # The parameters of RQM are not searched for more outputs.
_HYBRID_ROOT = 405 * math.sqrt(241)  # A root in the closed form of ε*.
# ε*, from which on the hybrid mechanism uses the piecewise mechanism.
_HYBRID_MIN_EPSILON = math.log(
    (-5 + 2 * (6353 - _HYBRID_ROOT) ** (1 / 3) + 2 * (6353 + _HYBRID_ROOT) ** (1 / 3)) / 27
)

# The expected absolute and squared error.
ErrorPair = tuple[float, float]


# Randomizers of a value in a range.


def _compute_duchi_losses(epsilon: float) -> ErrorPair:
    """Compute the losses of the mechanism of Duchi et al. on [-1, 1]."""
    b = 1 / math.tanh(epsilon / 2)
    return b - 1 / (3 * b), b * b - 1 / 3


def _compute_piecewise_losses(epsilon: float) -> ErrorPair:
    """Compute the losses of the piecewise mechanism on [-1, 1]."""
    a = math.exp(epsilon / 2)
    a_minus_1 = math.expm1(epsilon / 2)
    c = (a + 1) / a_minus_1
    p = a * a_minus_1 / (2 * (a + 1))
    q = p / math.exp(epsilon)
    absolute = q * (c * c + 1 / 3) + (p - q) * (2 / a_minus_1) ** 2 / 3
    squared = 1 / (3 * a_minus_1) + (a + 3) / (3 * a_minus_1**2)
    return absolute, squared


def _compute_hybrid_losses(epsilon: float) -> ErrorPair:
    """Compute the losses of the hybrid mechanism on [-1, 1]."""
    share = 0.0
    if epsilon > _HYBRID_MIN_EPSILON:
        share = -math.expm1(-epsilon / 2)
    piecewise_absolute, piecewise_squared = _compute_piecewise_losses(epsilon)
    duchi_absolute, duchi_squared = _compute_duchi_losses(epsilon)
    absolute = share * piecewise_absolute + (1 - share) * duchi_absolute
    squared = share * piecewise_squared + (1 - share) * duchi_squared
    return absolute, squared


def _compute_optimal_losses(epsilon: float) -> ErrorPair:
    """Compute the losses of the optimal piecewise mechanism in units of half the range."""
    a = math.exp(epsilon / 2)
    d = 1 / (2 * (a + 1))
    absolute = 1 / (3 * a) + (a - 1 / a) * (d**2 + 2 * d**3 / 3)
    squared = 1 / (6 * a) + (a - 1 / a) * (2 * d**3 / 3 + 4 * d**4 / 3)
    # These losses are in units of the whole range, as in the table.
    return 2 * absolute, 4 * squared


def _compute_range_reference(compute_losses: Callable[[float], ErrorPair], query: Any) -> Reference:
    """Scale losses for values in [-1, 1] to the range of a query."""
    half_width = float(query.question.high - query.question.low) / 2
    absolute, squared = compute_losses(float(query.claim.epsilon))
    if query.aim.loss == "absolute":
        return Reference(absolute * half_width)
    return Reference(squared * half_width**2)


# Quantizers of x in [-1, 1].


def _compute_rqm_reference(request: QuantizerRequest) -> Reference:
    """Compute the loss of the best RQM."""
    question = request.question
    best = find_best_rqm(question.levels, request.claim.epsilon, request.aim.loss, question.density)
    if best is None:
        raise NotApplicable("no parameter of the search meets the budget", "infeasible")
    return _make_reference(request, best, audit_extremes(best, 0).pure_epsilon, "searched")


def _compute_pbm_reference(request: QuantizerRequest) -> Reference:
    """Compute the loss of the Poisson binomial mechanism."""
    mechanism = poisson_binomial(request.question.levels, epsilon=request.claim.epsilon)
    return _make_reference(request, mechanism, mechanism.epsilon)


def _make_reference(
    request: QuantizerRequest, mechanism: Any, pure_epsilon: float, status: str = "closed form"
) -> Reference:
    """Make the reference of a mechanism with its exact errors."""
    a, b = error_coefficients(request.aim.loss)
    density = request.question.density
    mae = mechanism.mae(density)
    mse = mechanism.mse(density)
    columns = {
        "pure_epsilon": pure_epsilon,
        "mae": mae,
        "mse": mse,
        "reach": float(mechanism.outputs[-1]),
    }
    return Reference(a * mae + b * mse, status=status, extra_columns=columns)


def _compute_laplace_reference(request: QuantizerRequest) -> Reference:
    """Compute the errors of noise of scale b = 2/ε: MAE b, mean squared error 2b²."""
    a, b = error_coefficients(request.aim.loss)
    epsilon = float(request.claim.epsilon)
    scale = 2 / epsilon
    columns = {"pure_epsilon": epsilon, "mae": scale, "mse": 2 * scale**2}
    return Reference(a * scale + b * 2 * scale**2, extra_columns=columns)


def _is_for_quantizers(request: Any) -> bool:
    """Check whether the question of a request is about quantizers, not about a range."""
    return isinstance(request.question, Quantization)


def _has_few_levels(request: Any) -> bool:
    """Check whether the parameters of RQM are searched for a request."""
    return _is_for_quantizers(request) and request.question.levels <= _MAX_RQM_LEVELS


def _has_neighbouring_range(query: Any) -> bool:
    """Check whether every two values of the range of a query are neighbours."""
    return isinstance(query.question, RangeQuery) and query.question.has_all_neighbours


# Name, source, losses, and whether the mechanism is unbiased.
_RANGE_MECHANISMS = (
    ("Duchi et al.", "Duchi, Jordan and Wainwright 2018", _compute_duchi_losses, True),
    ("piecewise", "Wang et al. 2019", _compute_piecewise_losses, True),
    ("hybrid", "Wang et al. 2019", _compute_hybrid_losses, True),
    ("optimal piecewise", "Zheng, Mishra and Hu 2025", _compute_optimal_losses, False),
)

PUBLISHED = (
    *(
        Published(
            name,
            source,
            make_reference=partial(_compute_range_reference, compute_losses),
            serves=_has_neighbouring_range,
            is_unbiased=is_unbiased,
        )
        for name, source, compute_losses, is_unbiased in _RANGE_MECHANISMS
    ),
    Published(
        "rqm",
        "Youn et al. 2023",
        make_reference=_compute_rqm_reference,
        serves=_has_few_levels,
        any_budget=True,
    ),
    Published(
        "pbm",
        "Chen et al. 2022",
        make_reference=_compute_pbm_reference,
        serves=_is_for_quantizers,
        any_budget=True,
    ),
    Published(
        "laplace",
        "Dwork et al. 2006",
        make_reference=_compute_laplace_reference,
        serves=_is_for_quantizers,
        any_budget=True,
        fixed={"levels": None},  # Any real number may be its output.
    ),
)
