"""Provide sample certificates of every kind, and functions that change their files for tests."""

from __future__ import annotations

import json
from fractions import Fraction

import workbench as wb
from workbench.privacy.certificate import Certificate
from workbench.privacy.objective import Objective, round_loss_up

__all__ = [
    "CERTIFICATES",
    "certify_channel",
    "certify_quantizer",
    "claim_holds",
    "iter_digit_texts",
    "metric",
    "metric_quantizer",
    "noise",
    "quantizer",
    "replace_entry",
    "vector",
]


def certify_channel(rows, pairs=None, *, directed=False, **options) -> Certificate:
    """Certify a channel.

    Args:
        rows: Rows of the channel.
        pairs: Pairs of neighbouring rows. "all" or None for all pairs.
        directed: Whether pairs are compared in the given order only.
        **options: Options of `wb.certify`.
    """
    channel = wb.Channel.from_pairs(rows, None if pairs == "all" else pairs, directed=directed)
    return wb.certify(channel, **options)


def certify_quantizer(knots, outputs, ends, *, unbiased=True, **options) -> Certificate:
    """Certify a quantizer.

    Args:
        knots: Inputs at which the laws are given. Between them the law is a mixture.
        outputs: Outputs of the quantizer.
        ends: Law of the output at each knot.
        unbiased: Whether the certificate states that the quantizer is unbiased.
        **options: Further options of `wb.certify`.
    """
    mechanism = wb.PiecewiseAffine.from_laws(knots, outputs, ends)
    return wb.certify(mechanism, unbiased=unbiased, **options)


def noise() -> Certificate:
    """Certify noise under PDP whose δ is exactly 1/10: a mass of 10 of 100 exceeds the ratio e."""
    question = wb.ModuloNoise(n=4, shifts=[1], directed=True)
    mechanism = wb.AdditiveNoise(question, [54, 24, 10, 0, 12])
    objective = Objective("error-rate", Fraction(46, 100))
    return Certificate(
        mechanism, "pdp", epsilon=Fraction(1), delta=Fraction("0.1"), objective=objective
    )


def metric() -> Certificate:
    """Certify a channel under metric privacy, whose outputs have known means."""
    return certify_channel(
        [[0.6, 0.4], [0.5, 0.5], [0.4, 0.6]],
        notion="metric",
        epsilon={(0, 1): "0.3", (0, 2): "0.6", (1, 2): "0.3"},
        outputs=[-1, 3],
        unbiased_for=[0.6, 1, 1.4],
        allow_bias=True,
    )


def quantizer() -> Certificate:
    """Certify a quantizer of [-1, 1] to ±3 under DP. Its ratio of masses is 2 < e^0.7."""
    third = Fraction(1, 3)
    ends = [[2 * third, third], [third, 2 * third]]
    return certify_quantizer([-1, 1], [-3, 3], ends, epsilon="0.7")


def metric_quantizer() -> Certificate:
    """Certify the same quantizer under metric privacy."""
    third = Fraction(1, 3)
    ends = [[2 * third, third], [third, 2 * third]]
    return certify_quantizer([-1, 1], [-3, 3], ends, notion="metric", epsilon="0.7")


def vector() -> Certificate:
    """Certify noise on pairs of integers modulo (2, 3), with a budget for each difference."""
    question = wb.ModuloNoise(sizes=(2, 3), shifts=[(0, 1), (1, 0)])
    losses = tuple(map(Fraction, (0, 2, 2, 1, 3, 3)))
    mechanism = wb.AdditiveNoise(question, [6, 4, 4, 5, 4, 4])
    exact_loss = Objective("squared", Fraction(0), losses).exact_loss_of(mechanism)
    objective = Objective("squared", round_loss_up(exact_loss), losses)
    budgets = {(0, 1): Fraction(1, 2), (1, 0): Fraction("0.2")}
    return Certificate(
        mechanism, "dp", epsilon=budgets, delta=Fraction("0.01"), objective=objective
    )


CERTIFICATES = {
    "noise": noise,
    "metric": metric,
    "quantizer": quantizer,
    "metric quantizer": metric_quantizer,
    "vector": vector,
}


def claim_holds(data: dict) -> bool:
    """Decide the PDP claim of `noise` from the definition, in 60-digit decimals.

    Args:
        data: Data of a certificate file of noise with one directed shift.
    """
    from decimal import Decimal, localcontext

    mechanism = data["mechanism"]
    assert mechanism["directed"]
    (size,) = mechanism["sizes"]
    ((shift,),) = mechanism["shifts"]
    weights = [int(text, 16) for text in mechanism["weights"]]
    with localcontext() as context:
        context.prec = 60
        masses = [Decimal(weight) / sum(weights) for weight in weights]
        max_ratio = Decimal(data["claim"]["epsilon"]).exp()
        pdp_delta = Decimal(0)
        for index, mass in enumerate(masses):
            if mass > max_ratio * masses[(index + shift) % size]:
                pdp_delta += mass
        return pdp_delta <= Decimal(data["claim"]["delta"])


def iter_digit_texts(value, path=()):
    """Yield (path of keys, text) of every string of digits in a JSON value."""
    if isinstance(value, dict):
        for key, item in value.items():
            yield from iter_digit_texts(item, (*path, key))
    elif isinstance(value, list):
        for k, item in enumerate(value):
            yield from iter_digit_texts(item, (*path, k))
    elif isinstance(value, str) and (value.startswith("0x") or value.replace(".", "").isdigit()):
        yield path, value


def replace_entry(data: dict, path: tuple, value: object) -> dict:
    """Return a copy of a JSON value in which the entry at a path of keys is another value."""
    copy = json.loads(json.dumps(data))
    parent = copy
    for key in path[:-1]:
        parent = parent[key]
    parent[path[-1]] = value
    return copy
