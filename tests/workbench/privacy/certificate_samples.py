"""Provide sample certificates of every kind, and functions that change their files for tests."""

from __future__ import annotations

import json
from fractions import Fraction

import workbench as wb
from workbench.privacy.certificate import Certificate
from workbench.privacy.objective import Objective, round_loss_up

__all__ = [
    "ALL",
    "certify_channel",
    "certify_quantizer",
    "changed",
    "holds",
    "metric",
    "metric_quantizer",
    "noise",
    "quantizer",
    "spots",
    "vector",
]


def certify_channel(rows, pairs=None, *, directed=False, **options) -> Certificate:
    """Certify a channel. pairs: neighbouring rows, "all" or None for all. options: of certify."""
    return wb.certify(
        wb.Channel.from_pairs(rows, None if pairs == "all" else pairs, directed=directed), **options
    )


def certify_quantizer(knots, outputs, ends, *, unbiased=True, **options) -> Certificate:
    """Certify a quantizer with one law (ends) at each knot. options: of certify."""
    return wb.certify(
        wb.PiecewiseAffine.from_laws(knots, outputs, ends), unbiased=unbiased, **options
    )


def noise() -> Certificate:
    """Certify noise under PDP whose δ is exactly 1/10: a mass of 10 of 100 exceeds the ratio e."""
    made = wb.AdditiveNoise(wb.ModuloNoise(n=4, shifts=[1], directed=True), [54, 24, 10, 0, 12])
    return Certificate(
        made, "pdp", Fraction(1), Fraction("0.1"), Objective("error-rate", Fraction(46, 100))
    )


def metric() -> Certificate:
    return certify_channel(
        [[0.6, 0.4], [0.5, 0.5], [0.4, 0.6]],
        notion="metric",
        epsilon={(0, 1): "0.3", (0, 2): "0.6", (1, 2): "0.3"},
        outputs=[-1, 3],
        unbiased_for=[0.6, 1, 1.4],
        allow_bias=True,
    )


def quantizer() -> Certificate:
    third = Fraction(1, 3)
    return certify_quantizer(
        [-1, 1], [-3, 3], [[2 * third, third], [third, 2 * third]], epsilon="0.7"
    )


def metric_quantizer() -> Certificate:
    third = Fraction(1, 3)
    ends = [[2 * third, third], [third, 2 * third]]
    return certify_quantizer([-1, 1], [-3, 3], ends, notion="metric", epsilon="0.7")


def vector() -> Certificate:
    question = wb.ModuloNoise(sizes=(2, 3), shifts=[(0, 1), (1, 0)])
    losses = tuple(map(Fraction, (0, 2, 2, 1, 3, 3)))
    made = wb.AdditiveNoise(question, [6, 4, 4, 5, 4, 4])
    loss = round_loss_up(Objective("squared", Fraction(0), losses).exact_loss_of(made))
    value = Objective("squared", loss, losses)
    return Certificate(
        made, "dp", {(0, 1): Fraction(1, 2), (1, 0): Fraction("0.2")}, Fraction("0.01"), value
    )


ALL = {
    "noise": noise,
    "metric": metric,
    "quantizer": quantizer,
    "metric quantizer": metric_quantizer,
    "vector": vector,
}


def holds(data: dict) -> bool:
    """Decide the claim of a certificate from the definitions, in 60-digit decimals."""
    from decimal import Decimal, localcontext

    with localcontext() as context:
        context.prec = 60
        m, claim = data["mechanism"], data["claim"]
        k = [int(w, 16) for w in m["weights"]]
        f = [Decimal(x) / sum(k) for x in k]
        epsilon, delta = Decimal(claim["epsilon"]), Decimal(claim["delta"])
        (size,), ((shift,),) = m["sizes"], m["shifts"]
        assert m["directed"]
        e = epsilon.exp()
        lost = sum((f[i] for i in range(size) if f[i] > e * f[(i + shift) % size]), Decimal(0))
        return lost <= delta


def spots(value, path=()):
    """Yield (path of keys, text) of every string of digits in a JSON value."""
    if isinstance(value, dict):
        for key, item in value.items():
            yield from spots(item, (*path, key))
    elif isinstance(value, list):
        for k, item in enumerate(value):
            yield from spots(item, (*path, k))
    elif isinstance(value, str) and (value.startswith("0x") or value.replace(".", "").isdigit()):
        yield path, value


def changed(data: dict, path: tuple, text: str) -> dict:
    """Return a copy of a JSON value in which the entry at a path of keys is replaced by a text."""
    copy = json.loads(json.dumps(data))
    parent = copy
    for key in path[:-1]:
        parent = parent[key]
    parent[path[-1]] = text
    return copy
