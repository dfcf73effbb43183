"""Certificate files: strict, self-contained, versioned JSON. Reading a file proves its claim again.

    {"format": "dp-workbench certificate", "version": 1,
     "mechanism": {"kind": "noise", "sizes": [9], "shifts": [[1]], "directed": false,
                   "total": "0x..", "weights": [..]},
     "claim": {"notion": "pdp", "epsilon": "1.5", "delta": "0.1"},    see `workbench.privacy.claim`
     "objective": null | {"name": .., "value": "..", "losses": null | [..]}          of noise
                       | {"name": .., "value": "..", "labels": [..], "prior": [..],
                          "outputs": [..], "rows": [..]},
     "bias": null | {"outputs": [..], "inputs": [..], "worst": ".."},
     "composed": null | {"runs": 4, "epsilon": "1", "delta": "1e-6", "step": ".."},  of many runs
     "record": {...}}                                                 facts that are not proven

"step" is the step of the grid of privacy losses on which the claim for many runs is proven. Weights
and totals are hexadecimal integers, which are read in linear time. Other numbers are exact decimals
or ratios in strings. The second form of the objective belongs to channels. If all rows of
a channel are neighbours and its file would be too large, it is written by columns. A column lists
runs of equal weights downwards, each as its length and the weight:

    {"kind": "channel", "rows": 3, "columns": [[1, "0x3", 2, "0x1"], ..], "pairs": "all"}

A channel for real answers in a range also contains the ends of its cells and the sensitivity.
"at_ends" states whether an answer is rounded at random to an end of its cell:

    {"kind": "range", "ends": ["0", "1/3", ..], "sensitivity": "1", "at_ends": false,
     "outputs": [..], "channel": {..}}

A channel that gives the nearest outputs of each answer a higher probability is stored by these
entries alone, whatever its number of outputs. "own" is the number of these nearest outputs, which
is 1 for RR-on-Bins, and "odds" is the factor by which they are more probable:

    {"kind": "nearest-outputs", "ends": ["0", "1"], "outputs": ["1/8", ..], "own": 1, "odds": ".."}

A joint release, such as a histogram, states the relation of a person's rows and all shift vectors
that follow from it (`workbench.questions.joint_query`). A reader derives the vectors itself. A file
with other vectors is false:

    {"kind": "joint", "release": "rows-anywhere", "neighbours": "add-remove", "rows": 2,
     "span": null, "shifts": [[-2], [-1], [-1, -1], [1], [1, 1], [2]],
     "first": 0, "period": 1, "ratio": "1/2", "total": "0x1", "weights": ["0x1"]}

"first" is the noise value of the first weight. Outside the listed weights the weight falls by the
factor "ratio" every "period" steps (`workbench.exact.integer_law`).

A reader allocates no more memory than the file has bytes, up to a factor: sizes, weights and pairs
are counted before anything is built. A proof that would take longer than about ten seconds is
refused before it starts (`workbench.privacy.audit_work`).

To add a kind of mechanism, add its class to `CERTIFIABLE_KINDS` and a reader to
`tools/check_certificate.py`.
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

# The class of each kind of mechanism that a certificate can hold.
CERTIFIABLE_KINDS = {
    "noise": "workbench.mechanisms.additive:AdditiveNoise",
    "channel": "workbench.mechanisms.channel:Channel",
    "range": "workbench.mechanisms.range_mechanism:RangeMechanism",
    "nearest-outputs": "workbench.mechanisms.nearest_outputs:NearestOutputs",
    "quantizer": "workbench.mechanisms.piecewise_affine:PiecewiseAffine",
    "integer-noise": "workbench.mechanisms.integer_noise:AdditiveIntegerNoise",
    "real-noise": "workbench.mechanisms.real_noise:AdditiveRealNoise",
    "joint": "workbench.mechanisms.joint_noise:JointNoise",
}

_LABEL_RANDOMIZERS = "workbench.mechanisms.label_randomizers"

# The class of each kind of mechanism whose file claims nothing.
UNCERTIFIABLE_KINDS = {
    "poisson-binomial": "workbench.mechanisms.baselines.poisson_binomial:PoissonBinomial",
    "randomized-response": f"{_LABEL_RANDOMIZERS}.randomized_response:RandomizedResponse",
}

# The kinds of this package, which plug-ins cannot redefine.
BUILT_IN_KINDS = (*CERTIFIABLE_KINDS, *UNCERTIFIABLE_KINDS)


def save(given: Any, path: Path | str) -> None:
    """Write a mechanism or its certificate to a file, which `workbench.load` reads back.

    An interrupted write leaves no partial file.

    Args:
        given: A Certificate, a Design (its certificate is saved, otherwise its mechanism), or a
            mechanism, whose file claims nothing.
        path: Path of the file.

    Raises:
        InvalidRequest: The object is no mechanism, design or certificate, or the file cannot be
            written.
        NotCertified: The file of a certificate would be too large to be proven again.
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
    """Read a certificate file or a formula file, and prove it again.

    Args:
        path: Path of the file.

    Returns:
        The Certificate, or the Formula for the file of a formula.

    Raises:
        CorruptFile: The file is malformed or does not prove its claim. The cause is NotCertified if
            the claim is false.
        InvalidRequest: The file cannot be read.
    """
    text = read_text(path)
    with prefix_errors_with_file(path):
        data = parse_json(text)
        format_name = None
        if isinstance(data, dict):
            format_name = data.get("format")
        # Formulas and dyadic laws are other proofs, and their formats have readers of their own.
        if isinstance(format_name, str) and format_name in get_places("proof readers"):
            return load_provided("proof readers", format_name)(data)
        return certificate_from_dict(data)


def read_checker_source(kind: str) -> bytes:
    """Return the source code of an independent checker.

    Args:
        kind: Kind of the files that it checks, "certificate" or "formula".
    """
    return Path(__file__).with_name("checkers").joinpath(f"check_{kind}.txt").read_bytes()


def certificate_from_dict(data: Any) -> Certificate:
    """Build the certificate that `Certificate.to_dict` wrote, and prove it again.

    Args:
        data: Data of the JSON file.

    Raises:
        CorruptFile: The data are malformed or do not prove the claim. The cause is NotCertified if
            the claim is false, and NotProven if it stays undecided.
    """
    try:
        fields = CERTIFICATE_FORM.read(_upgrade_record(data))
        mechanism = _build_mechanism(fields.pop("mechanism"))
        claim = fields.pop("claim")
        proven_fields = {name: value for name, value in fields.items() if name != "record"}
        check_certificate_work(mechanism, claim, **proven_fields)
        with limit_work(MAX_WORK_UNITS):
            certificate = Certificate(mechanism, claim, **fields)
    except (NotCertified, NotProven) as error:
        raise CorruptFile(f"The certificate does not prove its claim. {error}") from error
    except InvalidRequest as error:
        raise CorruptFile(f"The certificate is not consistent: {error}") from None
    # The certificate keeps only the budgets of its own neighbours. A file must state exactly these.
    for name, value in claim.values.items():
        if isinstance(value, dict) and value != certificate.claim.values[name]:
            raise_corrupt_entry(
                "epsilon", "one number for every difference or ordered pair, and for nothing else"
            )
    return certificate


def _upgrade_record(data: Any) -> Any:
    """Return the data of an older certificate with the entries of the present version.

    Early certificates have no entry "composed", and call the losses of an objective "costs".
    """
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
    """Build the mechanism of any kind that its `to_dict` wrote. It claims nothing.

    Args:
        data: Data of the JSON file.

    Raises:
        CorruptFile: The data are malformed, or an audit would take too long.
        InvalidRequest: The entries do not fit together.
    """
    # The kinds are listed, because a malformed kind may not be hashable.
    if isinstance(data, dict) and data.get("kind") in [*UNCERTIFIABLE_KINDS]:
        return _build_mechanism(data, UNCERTIFIABLE_KINDS)
    mechanism = _build_mechanism(data)
    check_work_units(count_work_units(mechanism))
    return mechanism


def _build_mechanism(data: Any, kinds: Mapping[str, str] = CERTIFIABLE_KINDS) -> Any:
    """Build a mechanism of one of these kinds or of a plug-in, without checking the work limit.

    Raises CorruptFile, InvalidRequest.
    """
    kind = None
    if isinstance(data, dict):
        kind = data.get("kind")
    if isinstance(kind, str) and kind in kinds:
        module, name = kinds[kind].split(":")
        return getattr(importlib.import_module(module), name).from_dict(data)
    added_kinds = load_plugins("mechanisms")
    if not isinstance(kind, str) or kind not in added_kinds:
        *first_kinds, last_kind = *CERTIFIABLE_KINDS, *added_kinds
        raise CorruptFile(f"The mechanism must be of kind {', '.join(first_kinds)} or {last_kind}.")
    plugin = added_kinds[kind]
    try:
        return plugin.extension.from_dict(data)
    except (CorruptFile, InvalidRequest):
        raise
    except Exception as error:  # The code of a plug-in may raise anything.
        raise CorruptFile(
            f"{plugin.package} cannot read it: {type(error).__name__}: {error}."
        ) from error
