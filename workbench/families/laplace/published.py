"""List the mechanisms that Fig. 1 of the DQL paper compares with: their bits, error and privacy.

`workbench.mechanisms.dyadic_laplace.plain_baselines` defines and computes them. `PUBLISHED` is the
table that frontiers read. The numbers x are uniform on [-1, 1].
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from workbench.mechanisms.dyadic_laplace.mean_length import UNIFORM_DATA
from workbench.mechanisms.dyadic_laplace.plain_baselines import (
    PlainMechanism,
    describe_dithering,
    describe_laplace,
    describe_quantized_laplace,
)
from workbench.pipeline.published import Published, Reference

_MIN_BITS = 1  # Quantized Laplace noise is not listed for a limit of at most this many bits.


def _describe_laplace(request: Any) -> PlainMechanism:
    """Describe Laplace noise for a request."""
    return describe_laplace(float(request.claim.epsilon))


def _describe_quantized_laplace(request: Any) -> PlainMechanism:
    """Describe quantized Laplace noise within the bits of a request."""
    aim = request.aim
    return describe_quantized_laplace(float(request.claim.epsilon), float(aim.bits), aim.code)


def _describe_dithering(request: Any) -> PlainMechanism:
    """Describe dithering without local noise for a request."""
    return describe_dithering(float(request.claim.epsilon), request.aim.code)


def _make_reference(describe: Callable[[Any], PlainMechanism], request: Any) -> Reference:
    """Make the reference of a mechanism at the ε of a request."""
    mechanism = describe(request)
    columns = {
        "mean_bits": mechanism.mean_bits,
        "decoder_epsilon": mechanism.decoder_epsilon,
        "step": mechanism.step,
    }
    return Reference(mechanism.mse, extra_columns=columns)


def _has_uniform_data(request: Any) -> bool:
    """Check whether the numbers of a request are uniform on [-1, 1]."""
    return bool(request.question == UNIFORM_DATA)


def _has_usable_bits(request: Any) -> bool:
    """Check whether quantized Laplace noise can have the bits of a request."""
    return _has_uniform_data(request) and request.aim.bits > _MIN_BITS


# Each of these mechanisms is listed at every budget. With `fixed={"bits": None}` it does not depend
# on the limit of bits, so its row is the same at every limit of a frontier.
PUBLISHED = (
    Published(
        "Laplace",
        "Dwork et al. 2006",
        partial(_make_reference, _describe_laplace),
        _has_uniform_data,
        any_budget=True,
        fixed={"bits": None},
    ),
    Published(
        "quantized Laplace",
        "Fig. 1 of the DQL paper",
        partial(_make_reference, _describe_quantized_laplace),
        _has_usable_bits,
        any_budget=True,
    ),
    Published(
        "dithering without local noise",
        "Fig. 1 of the DQL paper",
        partial(_make_reference, _describe_dithering),
        _has_uniform_data,
        any_budget=True,
        fixed={"bits": None},
    ),
)
