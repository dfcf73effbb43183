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

from workbench.families.frontier_plan import NotApplicable
from workbench.families.published import Published, Reference
from workbench.families.quantizer.request import QuantizerRequest
from workbench.families.quantizer.search import best_rqm
from workbench.families.recommendation import Query
from workbench.mechanisms.baselines.poisson_binomial import poisson_binomial
from workbench.mechanisms.quantization_error import error_function
from workbench.privacy.audit import audit_extremes

_RQM = 8  # outputs up to which RQM's parameters are searched

_ROOT = 405 * math.sqrt(241)
_SWITCH = math.log((-5 + 2 * (6353 - _ROOT) ** (1 / 3) + 2 * (6353 + _ROOT) ** (1 / 3)) / 27)  # ε*
Losses = tuple[float, float]  # absolute, squared


def _duchi(epsilon: float) -> Losses:
    b = 1 / math.tanh(epsilon / 2)
    return b - 1 / (3 * b), b * b - 1 / 3


def _piecewise(epsilon: float) -> Losses:
    a, more = math.exp(epsilon / 2), math.expm1(epsilon / 2)
    c, p = (a + 1) / more, a * more / (2 * (a + 1))
    q = p / math.exp(epsilon)
    return q * (c * c + 1 / 3) + (p - q) * (2 / more) ** 2 / 3, 1 / (3 * more) + (a + 3) / (3 * more**2)


def _hybrid(epsilon: float) -> Losses:
    share = -math.expm1(-epsilon / 2) if epsilon > _SWITCH else 0.0
    pieces, ends = _piecewise(epsilon), _duchi(epsilon)
    return share * pieces[0] + (1 - share) * ends[0], share * pieces[1] + (1 - share) * ends[1]


def _optimal(epsilon: float) -> Losses:
    """In units of half the range."""
    a = math.exp(epsilon / 2)
    d = 1 / (2 * (a + 1))
    absolute = 1 / (3 * a) + (a - 1 / a) * (d**2 + 2 * d**3 / 3)
    return 2 * absolute, 4 * (1 / (6 * a) + (a - 1 / a) * (2 * d**3 / 3 + 4 * d**4 / 3))


def _of_range(losses: Callable[[float], Losses], query: Query) -> Reference:
    """losses: of ε, on [-1, 1]."""
    half, power = float(query.range.high - query.range.low) / 2, 1 if query.loss == "absolute" else 2
    return Reference(losses(float(query.epsilon))[power - 1] * half**power)


# Of quantizers with so many outputs, x in [-1, 1].


def _rqm(request: QuantizerRequest) -> Reference:
    best = best_rqm(request.question.levels, request.epsilon, request.loss, request.question.density)
    if best is None:
        raise NotApplicable("no parameter of the search meets the budget", "infeasible")
    return _errors(request, best, audit_extremes(best, 0).pure_epsilon, "searched")


def _pbm(request: QuantizerRequest) -> Reference:
    mechanism = poisson_binomial(request.question.levels, epsilon=request.epsilon)
    return _errors(request, mechanism, mechanism.epsilon)


def _errors(request: QuantizerRequest, mechanism: Any, private: float, status: str = "closed form") -> Reference:
    (a, b), density = error_function(request.loss), request.question.density
    mae, mse = mechanism.mae(density), mechanism.mse(density)
    more = {"pure_epsilon": private, "mae": mae, "mse": mse, "reach": float(mechanism.outputs[-1])}
    return Reference(a * mae + b * mse, status=status, more=more)


def _laplace(request: QuantizerRequest) -> Reference:
    """Noise of scale b = 2/ε: MAE b, mean squared error 2b²."""
    (a, b), scale = error_function(request.loss), 2 / float(request.epsilon)
    errors = {"pure_epsilon": float(request.epsilon), "mae": scale, "mse": 2 * scale**2}
    return Reference(a * scale + b * 2 * scale**2, more=errors)


def _quantized(request: Any) -> bool:
    return not isinstance(request, Query)


def _few(request: Any) -> bool:
    return _quantized(request) and request.question.levels <= _RQM


PUBLISHED = (
    *(
        Published(
            name,
            source,
            partial(_of_range, losses),
            lambda query: not _quantized(query) and query.range.local,
        )
        for name, source, losses in (
            ("Duchi et al.", "Duchi, Jordan and Wainwright 2018", _duchi),
            ("piecewise", "Wang et al. 2019", _piecewise),
            ("hybrid", "Wang et al. 2019", _hybrid),
            ("optimal piecewise", "Zheng, Mishra and Hu 2025", _optimal),
        )
    ),
    Published("rqm", "Youn et al. 2023", _rqm, _few, any_budget=True),
    Published("pbm", "Chen et al. 2022", _pbm, _quantized, any_budget=True),
    Published(
        "laplace",
        "Dwork et al. 2006",
        _laplace,
        _quantized,
        any_budget=True,
        fixed={"levels": None},
    ),
)
UNBIASED = ("Duchi et al.", "piecewise", "hybrid")
