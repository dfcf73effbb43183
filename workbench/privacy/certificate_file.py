"""The file of a certificate: strict JSON, self-contained, versioned; reading one proves it again from nothing else.

    {"format": "dp-workbench certificate", "version": 1,
     "mechanism": {"kind": "noise", "sizes": [9], "shifts": [[1]], "directed": false, "total": "0x..", "weights": [..]},
     "claim": {"notion": "pdp", "epsilon": "1.5", "delta": "0.1"},        see `workbench.privacy.claim`
     "objective": null | {"name": .., "value": "..", "losses": null | [..]}          of noise
                       | {"name": .., "value": "..", "labels": [..], "prior": [..], "outputs": [..], "rows": [..]},
     "bias": null | {"outputs": [..], "inputs": [..], "worst": ".."},
     "composed": null | {"runs": 4, "epsilon": "1", "delta": "1e-6", "step": ".."},                 of many runs
     "record": {...}}                                                      what was known when it was written

Weights and totals are hexadecimal integers (read in linear time), other numbers exact decimals or ratios in strings.
The second objective is that of a channel. A channel whose rows are all neighbours, and would exceed the largest file,
is written by its columns, each a list of runs downwards (so many rows of this weight):

    {"kind": "channel", "rows": 3, "columns": [[1, "0x3", 2, "0x1"], ..], "pairs": "all"}

A channel of the real answers in a range holds the ends of its cells, and which answers are neighbours, as well:

    {"kind": "range", "ends": ["0", "1/3", ..], "sensitivity": "1", "at_ends": false, "outputs": [..], "channel": {..}}

One whose nearest outputs are likelier, RR-on-Bins for own = 1, holds these alone, however many they are:

    {"kind": "nearest-outputs", "ends": ["0", "1"], "outputs": ["1/8", ..], "own": 1, "odds": ".."}

A reader allocates no more than the file holds: sizes, weights and pairs are counted before anything is built, and
what would take longer than about ten seconds is refused before it starts (`workbench.privacy.audit_work`).
"""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from workbench.errors import CorruptFile, InvalidRequest, NotCertified, NotProven
from workbench.io.files import parse_json, prefix_errors_with_file, read_text
from workbench.io.plugins import load_plugins
from workbench.io.providers import get_places, load_provided
from workbench.io.records import raise_corrupt_entry
from workbench.mechanisms.mechanism import as_mechanism
from workbench.mechanisms.shown_mechanism import ShownMechanism
from workbench.notions.notion import limit_work
from workbench.privacy.audit_work import MAX_WORK_UNITS, check_work_units, count_work_units
from workbench.privacy.certificate import CERTIFICATE_FORM, Certificate, check_certificate_work

# kind of a record -> its class; these are what a certificate can hold
CERTIFIABLE_KINDS = {
    "noise": "workbench.mechanisms.additive:AdditiveNoise",
    "channel": "workbench.mechanisms.channel:Channel",
    "range": "workbench.mechanisms.range_mechanism:RangeMechanism",
    "nearest-outputs": "workbench.mechanisms.nearest_outputs:NearestOutputs",
    "quantizer": "workbench.mechanisms.piecewise_affine:PiecewiseAffine",
    "integer-noise": "workbench.mechanisms.integer_noise:AdditiveIntegerNoise",
    "real-noise": "workbench.mechanisms.real_noise:AdditiveRealNoise",
}

# and these have files of their own, which claim nothing
UNCERTIFIABLE_KINDS = {
    "poisson-binomial": "workbench.mechanisms.baselines.poisson_binomial:PoissonBinomial",
    "randomized-response": "workbench.mechanisms.label_randomizers.randomized_response:RandomizedResponse",
}
OURS = (*CERTIFIABLE_KINDS, *UNCERTIFIABLE_KINDS)


def save(given: Any, path: Path | str) -> None:
    """Write a mechanism or its proof, whole or not at all; `workbench.load` reads it back.

    given: a Certificate, a Design (its certificate, where it has one), or a mechanism, which claims nothing.
    Raises InvalidRequest, NotCertified when a certificate would be too large to be proven again.
    """
    proof = getattr(given, "certificate", given)
    if isinstance(proof, Certificate):
        proof.save(path)
        return
    subject: Any = as_mechanism(given)
    if hasattr(subject, "save"):
        subject.save(path)
    else:
        ShownMechanism.save(subject, path)


def check(path: Path | str) -> Any:
    """Read a file that proves something, and prove it again: the Certificate, or the Formula where it is a formula's.

    Raises CorruptFile with the reason when it is malformed or proves nothing (caused by NotCertified where a claim is
    false), InvalidRequest for a file that cannot be read.
    """
    text = read_text(path)
    with prefix_errors_with_file(path):
        data = parse_json(text)
        format_name = data.get("format") if isinstance(data, dict) else None
        if isinstance(format_name, str) and format_name in get_places("proof readers"):
            return load_provided("proof readers", format_name)(data)
        return certificate_from_dict(data)


def read_checker_source(kind: str) -> bytes:
    """The source of the independent checker of a kind of file, "certificate" or "formula"."""
    return Path(__file__).with_name("checkers").joinpath(f"check_{kind}.txt").read_bytes()


def certificate_from_dict(data: Any) -> Certificate:
    """The certificate `to_dict` wrote, proven again. Raises CorruptFile, caused by NotCertified for a claim that is
    false and by NotProven for one that stays undecided."""
    try:
        fields = CERTIFICATE_FORM.read(_upgrade_record(data))
        mechanism, claim = _build_mechanism(fields.pop("mechanism")), fields.pop("claim")
        check_certificate_work(
            mechanism, claim, **{name: fields[name] for name in fields if name != "record"}
        )
        with limit_work(MAX_WORK_UNITS):
            proven = Certificate(mechanism, claim, **fields)
    except (NotCertified, NotProven) as error:
        raise CorruptFile(f"The certificate does not prove its claim. {error}") from error
    except InvalidRequest as error:
        raise CorruptFile(f"The certificate makes no sense: {error}") from None
    if any(
        isinstance(value, dict) and value != proven.claim.values[name]
        for name, value in claim.values.items()
    ):
        raise_corrupt_entry(
            "epsilon", "one number for every difference or ordered pair, and for nothing else"
        )
    return proven


def _upgrade_record(data: Any) -> Any:
    """A certificate of any age with the entries of today: early ones claim nothing of many runs, and call losses
    costs."""
    if not isinstance(data, dict):
        return data
    data = {"composed": None, **data}
    objective = data.get("objective")
    if isinstance(objective, dict) and "costs" in objective and "losses" not in objective:
        data["objective"] = {
            "losses" if name == "costs" else name: value for name, value in objective.items()
        }
    return data


def mechanism_from_dict(data: Any) -> Any:
    """The mechanism of any kind that its `to_dict` wrote, which claims nothing. Raises CorruptFile, InvalidRequest."""
    if isinstance(data, dict) and data.get("kind") in [*UNCERTIFIABLE_KINDS]:
        return _build_mechanism(data, UNCERTIFIABLE_KINDS)
    mechanism = _build_mechanism(data)
    check_work_units(count_work_units(mechanism))
    return mechanism


def _build_mechanism(data: Any, kinds: Mapping[str, str] = CERTIFIABLE_KINDS) -> Any:
    """As `mechanism_of`, before it is known what a proof about it costs; of other kinds those of other packages."""
    kind = data.get("kind") if isinstance(data, dict) else None
    if isinstance(kind, str) and kind in kinds:
        module, name = kinds[kind].split(":")
        return getattr(importlib.import_module(module), name).from_dict(data)
    added = load_plugins("mechanisms")
    if not isinstance(kind, str) or kind not in added:
        *first, last = *CERTIFIABLE_KINDS, *added
        raise CorruptFile(f"The mechanism must be of kind {', '.join(first)} or {last}.")
    try:
        return added[kind].extension.from_dict(data)
    except (CorruptFile, InvalidRequest):
        raise
    except Exception as error:  # of code that is not ours
        raise CorruptFile(
            f"{added[kind].package} cannot read it: {type(error).__name__}: {error}."
        ) from error
