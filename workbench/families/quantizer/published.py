"""Published randomizers of one value in a range, of which every two are neighbours: closed forms of the mean loss.

The value x is uniform on [-1, 1] (the range, moved and divided by half its width), a = e^(ε/2), e = e^ε.

    Duchi           ±B, B = (e+1)/(e-1), mean x             E|o-x| = B - 1/3B          E(o-x)² = B² - 1/3
    piecewise       on [-C, C], C = (a+1)/(a-1): density p  q (C²+1/3) + (p-q) (C-1)²/3    1/3(a-1) + (a+3)/3(a-1)²
                    on [l, l+C-1], l = ((C+1)x - C+1)/2,
                    else q = p/e; p = a(a-1)/2(a+1); mean x
    hybrid          piecewise with probability 1 - 1/a      the same share of both losses
                    where ε > ε* = .61, else Duchi
    optimal         x in [0, 1]: density a on an interval   (1/a)/3 + (a-1/a) (D² + 2D³/3)   (1/a)/6 + (a-1/a)
    piecewise       of length 2D around x inside [0, 1],                                     (2D³/3 + 4D⁴/3)
                    else 1/a; D = 1/2(a+1); biased

Densities of two values differ by e^ε at most, everywhere: pure. Sources: Duchi, Jordan and Wainwright 2018; Wang et al.
2019 (piecewise, hybrid); Zheng, Mishra and Hu 2025 (the closed form of their published code, best for E|o-x|).
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

_ROOT = 405 * math.sqrt(241)
_HYBRID_MIN_EPSILON = math.log(
    (-5 + 2 * (6353 - _ROOT) ** (1 / 3) + 2 * (6353 + _ROOT) ** (1 / 3)) / 27
)  # ε*
Losses = tuple[float, float]  # absolute, squared


def _duchi_losses(epsilon: float) -> Losses:
    b = 1 / math.tanh(epsilon / 2)
    return b - 1 / (3 * b), b * b - 1 / 3


def _piecewise_losses(epsilon: float) -> Losses:
    a, more = math.exp(epsilon / 2), math.expm1(epsilon / 2)
    c, p = (a + 1) / more, a * more / (2 * (a + 1))
    q = p / math.exp(epsilon)
    return q * (c * c + 1 / 3) + (p - q) * (2 / more) ** 2 / 3, 1 / (3 * more) + (a + 3) / (
        3 * more**2
    )


def _hybrid_losses(epsilon: float) -> Losses:
    share = -math.expm1(-epsilon / 2) if epsilon > _HYBRID_MIN_EPSILON else 0.0
    pieces, ends = _piecewise_losses(epsilon), _duchi_losses(epsilon)
    return share * pieces[0] + (1 - share) * ends[0], share * pieces[1] + (1 - share) * ends[1]


def _optimal_losses(epsilon: float) -> Losses:
    """Compute the losses of the optimal piecewise mechanism in units of half the range."""
    a = math.exp(epsilon / 2)
    d = 1 / (2 * (a + 1))
    absolute = 1 / (3 * a) + (a - 1 / a) * (d**2 + 2 * d**3 / 3)
    return 2 * absolute, 4 * (1 / (6 * a) + (a - 1 / a) * (2 * d**3 / 3 + 4 * d**4 / 3))


def _scale_to_range(losses: Callable[[float], Losses], query: Any) -> Reference:
    """Scale the losses at ε, a function for values in [-1, 1], to the range of a query."""
    half = float(query.question.high - query.question.low) / 2
    power = 1 if query.aim.loss == "absolute" else 2
    return Reference(losses(float(query.claim.epsilon))[power - 1] * half**power)


# Of quantizers with so many outputs, x in [-1, 1].


def _cost_rqm(request: QuantizerRequest) -> Reference:
    best = find_best_rqm(
        request.question.levels, request.claim.epsilon, request.aim.loss, request.question.density
    )
    if best is None:
        raise NotApplicable("no parameter of the search meets the budget", "infeasible")
    return _make_reference(request, best, audit_extremes(best, 0).pure_epsilon, "searched")


def _cost_pbm(request: QuantizerRequest) -> Reference:
    mechanism = poisson_binomial(request.question.levels, epsilon=request.claim.epsilon)
    return _make_reference(request, mechanism, mechanism.epsilon)


def _make_reference(
    request: QuantizerRequest, mechanism: Any, private: float, status: str = "closed form"
) -> Reference:
    (a, b), density = error_coefficients(request.aim.loss), request.question.density
    mae, mse = mechanism.mae(density), mechanism.mse(density)
    more = {"pure_epsilon": private, "mae": mae, "mse": mse, "reach": float(mechanism.outputs[-1])}
    return Reference(a * mae + b * mse, status=status, extra_columns=more)


def _cost_laplace(request: QuantizerRequest) -> Reference:
    """Compute the errors of noise of scale b = 2/ε: MAE b, mean squared error 2b²."""
    (a, b), scale = error_coefficients(request.aim.loss), 2 / float(request.claim.epsilon)
    errors = {"pure_epsilon": float(request.claim.epsilon), "mae": scale, "mse": 2 * scale**2}
    return Reference(a * scale + b * 2 * scale**2, extra_columns=errors)


def _is_for_quantizers(request: Any) -> bool:
    """Whether the question of a request is about quantizers, not about a range."""
    return isinstance(request.question, Quantization)


def _has_few_levels(request: Any) -> bool:
    """Whether the parameters of RQM are searched for a request."""
    return _is_for_quantizers(request) and request.question.levels <= _MAX_RQM_LEVELS


def _is_for_local_ranges(query: Any) -> bool:
    """Whether every two values of the range of a query are neighbours."""
    return isinstance(query.question, RangeQuery) and query.question.has_all_neighbours


PUBLISHED = (
    *(
        Published(
            name,
            source,
            partial(_scale_to_range, losses),
            _is_for_local_ranges,
            is_unbiased=is_unbiased,
        )
        for name, source, losses, is_unbiased in (
            ("Duchi et al.", "Duchi, Jordan and Wainwright 2018", _duchi_losses, True),
            ("piecewise", "Wang et al. 2019", _piecewise_losses, True),
            ("hybrid", "Wang et al. 2019", _hybrid_losses, True),
            ("optimal piecewise", "Zheng, Mishra and Hu 2025", _optimal_losses, False),
        )
    ),
    Published("rqm", "Youn et al. 2023", _cost_rqm, _has_few_levels, any_budget=True),
    Published("pbm", "Chen et al. 2022", _cost_pbm, _is_for_quantizers, any_budget=True),
    Published(
        "laplace",
        "Dwork et al. 2006",
        _cost_laplace,
        _is_for_quantizers,
        any_budget=True,
        fixed={"levels": None},
    ),
)
