"""The file of a certificate: strict JSON, self-contained, versioned; reading one proves it again from nothing else.

    {"format": "dp-workbench certificate", "version": 1,
     "mechanism": {"kind": "noise", "sizes": [9], "shifts": [[1]], "directed": false, "total": "0x..", "weights": [..]},
     "claim": {"notion": "pdp", "epsilon": "1.5", "delta": "0.1"},        epsilon may be [[[1], "0.5"], [[2], "1"]]
     "objective": null | {"name": .., "value": "..", "costs": null | [..]},
     "bias": null | {"outputs": [..], "inputs": [..], "worst": ".."},
     "record": {...}}                                                      what was known when it was written

Weights and totals are hexadecimal integers (read in linear time), other numbers exact decimals or ratios in strings.
A reader allocates no more than the file holds: sizes, weights and pairs are counted before anything is built, and
an audit that would take longer than about a minute is refused (`workbench.privacy.audit_cost`).
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from fractions import Fraction
from pathlib import Path
from typing import Any, NoReturn

from workbench.errors import CorruptFile, InvalidRequest, NotCertified
from workbench.files import LIMIT, parse_json, ratio, read_text, spelled, whole, write_whole
from workbench.mechanisms.additive import AdditiveNoise
from workbench.mechanisms.channel import Channel
from workbench.mechanisms.masses import Masses
from workbench.mechanisms.modulo import ModuloNoise
from workbench.mechanisms.piecewise import PiecewiseAffine
from workbench.privacy.audit_cost import affordable
from workbench.privacy.certificate import Bias, Certificate, Mechanism, Objective
from workbench.privacy.relation import ChannelPairs

__all__ = ["FORMAT", "MECHANISM", "VERSION", "from_dict", "load_certificate", "mechanism_dict", "mechanism_of",
           "save_certificate", "save_mechanism", "to_dict", "verify_certificate"]  # fmt: skip

FORMAT, MECHANISM, VERSION = "dp-workbench certificate", "dp-workbench mechanism", 1
_EPSILON = 10**6


def save_certificate(certificate: Certificate, path: Path | str) -> None:
    """Write a certificate, whole or not at all. Raises NotCertified when it would be too large to be proven again."""
    try:
        affordable(certificate.mechanism, certificate.notion)
    except CorruptFile as error:
        raise NotCertified(f"The certificate could not be proven again from its file. {error}") from None
    content = (json.dumps(to_dict(certificate), indent=1, allow_nan=False) + "\n").encode()
    if len(content) > LIMIT:
        raise NotCertified(f"The certificate would take {len(content)} bytes; {LIMIT} are allowed.")
    write_whole(Path(path), content)


def save_mechanism(mechanism: Mechanism, path: Path | str) -> None:
    """Write a mechanism that claims nothing, whole or not at all; `workbench.privacy.loading` reads it back."""
    data = {"format": MECHANISM, "version": VERSION, "mechanism": mechanism_dict(mechanism)}
    write_whole(Path(path), (json.dumps(data, indent=1) + "\n").encode())


def load_certificate(path: Path | str) -> Certificate:
    """Read and prove a certificate file. Raises CorruptFile with the reason when it is malformed or proves nothing."""
    return from_dict(parse_json(read_text(path)))


verify_certificate = load_certificate


def to_dict(certificate: Certificate) -> dict[str, Any]:
    """JSON-ready, read back by `from_dict`."""
    epsilon = certificate.epsilon
    return {
        "format": FORMAT,
        "version": VERSION,
        "mechanism": mechanism_dict(certificate.mechanism),
        "claim": {
            "notion": certificate.notion,
            "epsilon": [[list(label), spelled(value)] for label, value in sorted(epsilon.items())]
            if isinstance(epsilon, Mapping)
            else spelled(epsilon),
            "delta": spelled(certificate.delta),
        },
        "objective": None
        if certificate.objective is None
        else {
            "name": certificate.objective.name,
            "value": spelled(certificate.objective.value),
            "costs": None if certificate.objective.costs is None else [*map(spelled, certificate.objective.costs)],
        },
        "bias": None
        if certificate.bias is None
        else {
            "outputs": [*map(spelled, certificate.bias.outputs)],
            "inputs": [*map(spelled, certificate.bias.inputs)],
            "worst": spelled(certificate.bias.worst),
        },
        "record": dict(certificate.record),
    }


def from_dict(data: Any) -> Certificate:
    """The certificate `to_dict` wrote, proven again. Raises CorruptFile."""
    fields = _fields(data, "A certificate", {"format", "version", "mechanism", "claim", "objective", "bias", "record"})
    if fields["format"] != FORMAT:
        raise CorruptFile(f"The format must be {FORMAT!r}.")
    if type(fields["version"]) is not int or fields["version"] != VERSION:
        raise CorruptFile(f"This reader knows version {VERSION} of the certificate.")
    if not isinstance(fields["record"], dict):
        _bad("The record", "an object")
    try:
        mechanism = mechanism_of(fields["mechanism"])
        claim = _fields(fields["claim"], "The claim", {"notion", "epsilon", "delta"})
        epsilon = _epsilon(claim["epsilon"])
        affordable(mechanism, claim["notion"])
        proven = Certificate(
            mechanism,
            _text(claim["notion"], "The notion"),
            epsilon,
            ratio(claim["delta"], "delta"),
            _objective(fields["objective"]),
            _bias(fields["bias"]),
            fields["record"],
        )
    except NotCertified as error:
        raise CorruptFile(f"The certificate does not prove its claim. {error}") from None
    except InvalidRequest as error:
        raise CorruptFile(f"The certificate makes no sense: {error}") from None
    if isinstance(epsilon, dict) and epsilon != proven.epsilon:
        _bad("epsilon", "one number for every difference or ordered pair, and for nothing else")
    return proven


def mechanism_dict(mechanism: Mechanism) -> dict[str, Any]:
    """A mechanism and its neighbour relation, JSON-ready."""
    if isinstance(mechanism, AdditiveNoise):
        q = mechanism.question
        return {"kind": "noise", **q.to_dict(), **_row(mechanism.masses)}
    if isinstance(mechanism, PiecewiseAffine):
        return {
            "kind": "quantizer",
            "knots": [*map(spelled, mechanism.knots)],
            "outputs": [*map(spelled, mechanism.outputs)],
            "ends": [*map(_row, mechanism.ends)],
        }
    pairs = [*map(list, mechanism.pairs)]
    return {"kind": "channel", "rows": [*map(_row, mechanism.channel.rows)], "pairs": pairs}


def mechanism_of(data: Any) -> Mechanism:
    """The mechanism `mechanism_dict` wrote, which claims nothing. Raises CorruptFile and InvalidRequest."""
    kind = data.get("kind") if isinstance(data, dict) else None
    if kind == "noise":
        fields = _fields(data, "The noise", {"kind", "sizes", "shifts", "directed", "total", "weights"})
        sizes, shifts = _list(fields["sizes"], "sizes"), _list(fields["shifts"], "shifts")
        if not all(type(size) is int and 0 < size < 1 << 40 for size in sizes):
            _bad("sizes", "positive integers")
        if not all(isinstance(shift, list) and all(type(part) is int for part in shift) for shift in shifts):
            _bad("shifts", "lists of integers")
        weights = _list(fields["weights"], "weights")
        if math.prod(sizes) != len(weights):
            raise CorruptFile(f"{len(weights)} weights do not fill a group of sizes {sizes[:8]}.")
        question = ModuloNoise(sizes=sizes, shifts=shifts, directed=fields["directed"])
        noise = AdditiveNoise(question, _masses({"total": fields["total"], "weights": weights}, "The noise"))
        affordable(noise)
        return noise
    if kind == "channel":
        fields = _fields(data, "The channel", {"kind", "rows", "pairs"})
        rows = tuple(_masses(row, "A row") for row in _list(fields["rows"], "rows"))
        pairs = _list(fields["pairs"], "pairs")
        if not all(isinstance(pair, list) and len(pair) == 2 and all(type(k) is int for k in pair) for pair in pairs):
            _bad("pairs", "pairs of row numbers")
        channel = ChannelPairs.of(Channel(rows), pairs, directed=True)
        affordable(channel)
        return channel
    if kind == "quantizer":
        fields = _fields(data, "The quantizer", {"kind", "knots", "outputs", "ends"})
        knots, outputs = _numbers(fields["knots"], "knots"), _numbers(fields["outputs"], "outputs")
        ends = tuple(_masses(row, "An end law") for row in _list(fields["ends"], "ends"))
        quantizer = PiecewiseAffine(knots, outputs, ends)
        affordable(quantizer)
        return quantizer
    raise CorruptFile("The mechanism must be of kind noise, channel or quantizer.")


def _row(masses: Masses) -> dict[str, Any]:
    return {"total": hex(masses.total), "weights": [hex(k) for k in masses.integers]}


def _masses(data: Any, what: str) -> Masses:
    """Weights that add up to the total beside them."""
    fields = _fields(data, what, {"total", "weights"})
    weights = [whole(k, "A weight") for k in _list(fields["weights"], "weights")]
    total = whole(fields["total"], "The total")
    if sum(weights) != total or not total:
        raise CorruptFile(f"{what}: the weights do not add up to the total.")
    found = Masses(weights)
    if found.total != total:
        raise CorruptFile(f"{what}: the weights have a common factor.")
    return found


def _epsilon(data: Any) -> Fraction | dict[tuple[int, ...], Fraction]:
    def one(text: Any) -> Fraction:
        value = ratio(text, "epsilon")
        if not 0 <= value <= _EPSILON:
            _bad("epsilon", f"a number in [0, {_EPSILON}]")
        return value

    if isinstance(data, str):
        return one(data)
    found: dict[tuple[int, ...], Fraction] = {}
    for item in _list(data, "epsilon"):
        if not isinstance(item, list) or len(item) != 2 or not isinstance(item[0], list):
            _bad("epsilon", "a number, or a list of [shift, number]")
        if not all(type(part) is int for part in item[0]) or tuple(item[0]) in found:
            _bad("epsilon", "one number for each shift, given once")
        found[tuple(item[0])] = one(item[1])
    return found


def _objective(data: Any) -> Objective | None:
    if data is None:
        return None
    fields = _fields(data, "The objective", {"name", "value", "costs"})
    costs = None if fields["costs"] is None else _numbers(fields["costs"], "costs")
    return Objective(_text(fields["name"], "The name"), ratio(fields["value"], "The value"), costs)


def _bias(data: Any) -> Bias | None:
    if data is None:
        return None
    fields = _fields(data, "The bias", {"outputs", "inputs", "worst"})
    outputs, inputs = _numbers(fields["outputs"], "outputs"), _numbers(fields["inputs"], "inputs")
    return Bias(outputs, inputs, ratio(fields["worst"], "The worst bias", 1 << 20))


def _fields(data: Any, what: str, names: set[str]) -> dict[str, Any]:
    if not isinstance(data, dict) or set(data) != names:
        raise CorruptFile(f"{what} must have exactly the entries {', '.join(sorted(names))}.")
    return data


def _list(data: Any, what: str) -> list[Any]:
    if not isinstance(data, list):
        _bad(what, "a list")
    return data


def _numbers(data: Any, what: str) -> tuple[Fraction, ...]:
    return tuple(ratio(item, f"An entry of {what}") for item in _list(data, what))


def _text(data: Any, what: str) -> str:
    if not isinstance(data, str) or len(data) > 100:
        _bad(what, "a short string")
    return data


def _bad(what: str, constraint: str) -> NoReturn:
    raise CorruptFile(f"{what} must be {constraint}.")
