"""The file of a certificate: strict JSON, self-contained, versioned; reading one proves it again from nothing else.

    {"format": "dp-workbench certificate", "version": 1,
     "mechanism": {"kind": "noise", "sizes": [9], "shifts": [[1]], "directed": false, "total": "0x..", "weights": [..]},
     "claim": {"notion": "pdp", "epsilon": "1.5", "delta": "0.1"},        see `workbench.privacy.claim`
     "objective": null | {"name": .., "value": "..", "costs": null | [..]}           of noise
                       | {"name": .., "value": "..", "labels": [..], "prior": [..], "outputs": [..], "rows": [..]},
     "bias": null | {"outputs": [..], "inputs": [..], "worst": ".."},
     "record": {...}}                                                      what was known when it was written

Weights and totals are hexadecimal integers (read in linear time), other numbers exact decimals or ratios in strings.
The second objective is that of a channel and came with version 2. Version 3 brought another form of a channel whose
rows are all neighbours, by its columns, each a list of runs downwards (so many rows of this weight):

    {"kind": "channel", "rows": 3, "columns": [[1, "0x3", 2, "0x1"], ..], "pairs": "all"}

A file is written in the oldest version that can hold it: what has no such objective still is version 1, byte for byte,
and columns are written where rows would exceed the largest file.

A reader allocates no more than the file holds: sizes, weights and pairs are counted before anything is built, and
what would take longer than about a minute is refused before it starts (`workbench.privacy.audit_cost`).
"""

from __future__ import annotations

import importlib
import json
from pathlib import Path
from typing import Any

from workbench.errors import CorruptFile, InvalidRequest, NotCertified, NotProven
from workbench.io.files import named, parse_json, ratio, read_text, write_whole
from workbench.io.plugins import plugins
from workbench.io.records import listed, numbers, refuse, short_text, take
from workbench.mechanisms.additive import AdditiveNoise
from workbench.mechanisms.channel import Channel
from workbench.mechanisms.integer_noise import AdditiveIntegerNoise
from workbench.mechanisms.mechanism import Mechanism as AnyMechanism
from workbench.mechanisms.mechanism import as_mechanism
from workbench.mechanisms.piecewise_affine import PiecewiseAffine
from workbench.mechanisms.real_noise import AdditiveRealNoise
from workbench.mechanisms.shown_mechanism import MECHANISM
from workbench.mechanisms.shown_mechanism import VERSION as MECHANISM_VERSION
from workbench.privacy.audit_cost import affordable
from workbench.privacy.certificate import (
    COLUMNS,
    EXPECTED_LOSS,
    FORMAT,
    VERSION,
    Bias,
    Certificate,
    ExpectedLoss,
    Mechanism,
    Objective,
    check_cost,
)
from workbench.privacy.claim import Claim

__all__ = ["FORMAT", "MECHANISM", "VERSION", "any_mechanism", "from_dict", "load_certificate", "mechanism_of",
           "save", "save_certificate", "save_mechanism", "verify_certificate"]  # fmt: skip

# kind of a record -> its class; these are what a certificate can hold
KINDS: dict[str, Any] = {
    "noise": AdditiveNoise, "channel": Channel, "quantizer": PiecewiseAffine, "integer-noise": AdditiveIntegerNoise,
    "real-noise": AdditiveRealNoise,
}  # fmt: skip

# and these have files of their own, which claim nothing
OTHERS = {
    "label-channel": "workbench.mechanisms.label_randomizers.label_channel:LabelChannel",
    "label-noise": "workbench.mechanisms.label_randomizers.label_lattice:LatticeNoise",
    "poisson-binomial": "workbench.mechanisms.baselines.poisson_binomial:PoissonBinomial",
    "randomized-response": "workbench.mechanisms.label_randomizers.randomized_response:RandomizedResponse",
}
OURS = (*KINDS, *OTHERS)


def save(given: Any, path: Path | str) -> None:
    """Write a mechanism or its proof, whole or not at all; `workbench.load` reads it back.

    given: a Certificate, a Design (its certificate, where it has one), or a mechanism, which claims nothing.
    Raises InvalidRequest, NotCertified when a certificate would be too large to be proven again.
    """
    proof = getattr(given, "certificate", given)
    if isinstance(proof, Certificate):
        save_certificate(proof, path)
    else:
        save_mechanism(as_mechanism(given), path)


def save_certificate(certificate: Certificate, path: Path | str) -> None:
    """`Certificate.save`."""
    certificate.save(path)


def save_mechanism(mechanism: Any, path: Path | str) -> None:
    """`save` of a mechanism. Raises InvalidRequest."""
    subject: Any = as_mechanism(mechanism)
    if hasattr(subject, "save"):
        subject.save(path)
        return
    data = {"format": MECHANISM, "version": MECHANISM_VERSION, "mechanism": subject.to_dict()}
    write_whole(Path(path), (json.dumps(data, indent=1) + "\n").encode())


def load_certificate(path: Path | str) -> Certificate:
    """Read and prove a certificate file. Raises CorruptFile with the reason when it is malformed or proves nothing,
    InvalidRequest for a file that cannot be read."""
    text = read_text(path)
    with named(path):
        return from_dict(parse_json(text))


verify_certificate = load_certificate


def from_dict(data: Any) -> Certificate:
    """The certificate `to_dict` wrote, proven again. Raises CorruptFile."""
    fields = take(data, "A certificate", {"format", "version", "mechanism", "claim", "objective", "bias", "record"})
    if fields["format"] != FORMAT:
        raise CorruptFile(f"The format must be {FORMAT!r}.")
    version = fields["version"]
    if type(version) is not int or version < VERSION:
        refuse("The version", f"{VERSION} to {COLUMNS}")
    if version > COLUMNS:
        raise CorruptFile(
            f"The certificate is of version {version}, newer than this reader, which knows versions up to {COLUMNS}."
        )
    if not isinstance(fields["record"], dict):
        refuse("The record", "an object")
    if version < COLUMNS and isinstance(fields["mechanism"], dict) and "columns" in fields["mechanism"]:
        raise CorruptFile(f"A channel has columns from version {COLUMNS} on.")
    try:
        mechanism = _built(fields["mechanism"])
        measuring, values = Claim.read(fields["claim"])
        objective, bias = _objective(fields["objective"], version), _bias(fields["bias"])
        check_cost(mechanism, measuring, values, objective, bias)
        others = {name: value for name, value in values.items() if name not in {"epsilon", "delta"}}
        proven = Certificate(
            mechanism,
            measuring.name,
            values.get("epsilon"),
            values.get("delta"),
            objective,
            bias,
            fields["record"],
            others,
        )
    except (NotCertified, NotProven) as error:
        raise CorruptFile(f"The certificate does not prove its claim. {error}") from None
    except InvalidRequest as error:
        raise CorruptFile(f"The certificate makes no sense: {error}") from None
    if any(isinstance(value, dict) and value != proven.claim.values[name] for name, value in values.items()):
        refuse("epsilon", "one number for every difference or ordered pair, and for nothing else")
    return proven


def any_mechanism(data: Any) -> AnyMechanism:
    """The mechanism of any kind that its `to_dict` wrote, which claims nothing. Raises CorruptFile, InvalidRequest."""
    kind = data.get("kind") if isinstance(data, dict) else None
    if not isinstance(kind, str) or kind not in OTHERS:
        return mechanism_of(data)
    module, name = OTHERS[kind].split(":")
    read: AnyMechanism = getattr(importlib.import_module(module), name).from_dict(data)
    return read


def mechanism_of(data: Any) -> Mechanism:
    """The mechanism its `to_dict` wrote, which claims nothing. Raises CorruptFile and InvalidRequest."""
    mechanism = _built(data)
    affordable(mechanism)
    return mechanism


def _built(data: Any) -> Mechanism:
    """As `mechanism_of`, before it is known what a proof about it costs."""
    kind = data.get("kind") if isinstance(data, dict) else None
    mechanism: Mechanism = KINDS[kind].from_dict(data) if isinstance(kind, str) and kind in KINDS else _foreign(data)
    return mechanism


def _foreign(data: Any) -> Any:
    """The mechanism of a kind that another package has added."""
    kind, known = data.get("kind") if isinstance(data, dict) else None, plugins("mechanisms")
    if not isinstance(kind, str) or kind not in known:
        *first, last = *KINDS, *known
        raise CorruptFile(f"The mechanism must be of kind {', '.join(first)} or {last}.")
    try:
        return known[kind].thing.from_dict(data)
    except (CorruptFile, InvalidRequest):
        raise
    except Exception as error:  # of code that is not ours
        raise CorruptFile(f"{known[kind].package} cannot read it: {type(error).__name__}: {error}.") from error


def _objective(data: Any, version: int) -> Objective | ExpectedLoss | None:
    if data is None:
        return None
    if version < EXPECTED_LOSS or not isinstance(data, dict) or "costs" in data:
        fields = take(data, "The objective", {"name", "value", "costs"})
        costs = None if fields["costs"] is None else numbers(fields["costs"], "costs")
        return Objective(short_text(fields["name"], "The name"), ratio(fields["value"], "The value"), costs)
    fields = take(data, "The objective", {"name", "value", "labels", "prior", "outputs", "rows"})
    rows = listed(fields["rows"], "rows")
    if not all(type(row) is int for row in rows):
        refuse("rows", "row numbers")
    labels, prior, outputs = (numbers(fields[name], name) for name in ("labels", "prior", "outputs"))
    value = ratio(fields["value"], "The value")
    return ExpectedLoss(short_text(fields["name"], "The name"), value, labels, prior, outputs, tuple(rows))


def _bias(data: Any) -> Bias | None:
    if data is None:
        return None
    fields = take(data, "The bias", {"outputs", "inputs", "worst"})
    outputs, inputs = numbers(fields["outputs"], "outputs"), numbers(fields["inputs"], "inputs")
    return Bias(outputs, inputs, ratio(fields["worst"], "The worst bias", 1 << 20))
