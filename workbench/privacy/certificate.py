"""Define certificates: a mechanism in exact numbers, with a privacy claim that the numbers prove.

Parts of a certificate:

    mechanism    its law in exact numbers. For example, noise has sizes, shifts and weights
    claim        a notion and its parameters, such as epsilon (one, or one for each pair) and delta
    objective    a loss with its value (`workbench.privacy.objective`)
    bias         max |E[output | input] - input| of a mechanism of numbers
    composed     the privacy of many adaptive runs, for a design for many runs
    record       facts that are not proven: the solver, versions, and the bound of the solver

Whenever a certificate is built or read, the notion decides the claim in an exact audit, and the
objective, the bias and the composition are recomputed. Verdicts in a file are ignored.
`workbench.privacy.certificate_file` describes the file.

To add a part, add a field and an argument to `Certificate`, entries to `_PART_TYPES` and
`CERTIFICATE_FORM`, its place to `__reduce__`, its sentence to `sentences`, and its work to
`check_certificate_work`. `tools/check_certificate.py` must check it as well.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cached_property
from pathlib import Path
from types import MappingProxyType, NoneType
from typing import TYPE_CHECKING, Any

from workbench.data.plain import read_list
from workbench.data.points import read_points
from workbench.errors import CorruptFile, InvalidRequest, NotCertified, must
from workbench.exact.numbers import Rationals, round_up
from workbench.exact.objects import Record, Values
from workbench.io.files import MAX_FILE_BYTES, write_atomically
from workbench.io.plugins import find_foreign_package
from workbench.io.records import (
    OBJECT,
    RATIO,
    RATIOS,
    UNCHANGED,
    RecordForm,
    make_object_entry,
    make_optional_entry,
)
from workbench.io.shown import Facts, Shown
from workbench.mechanisms.mechanism import Bias, Mechanism, can_publish_reals
from workbench.notions import Notion
from workbench.privacy.audit import Privacy, audit, audit_for_claim
from workbench.privacy.audit_work import check_work_units, count_work_units
from workbench.privacy.claim import Claim
from workbench.privacy.composition import ComposedClaim
from workbench.privacy.joint_bound import bound_release, is_bounded_on_grid
from workbench.privacy.objective import ExpectedLoss, Objective, is_rounded_up, read_objective

if TYPE_CHECKING:
    from matplotlib.figure import Figure


CERTIFICATE_FORMAT = "dp-workbench certificate"
CERTIFICATE_VERSION = 1
_BIAS_FORM = RecordForm("The bias", outputs=RATIOS, inputs=RATIOS, worst=RATIO)
CERTIFICATE_FORM = RecordForm(
    "A certificate",
    {"format": CERTIFICATE_FORMAT, "version": CERTIFICATE_VERSION},
    mechanism=UNCHANGED,
    claim=make_object_entry(Claim.read),
    composed=make_optional_entry(make_object_entry(ComposedClaim.read)),
    objective=make_optional_entry(make_object_entry(read_objective)),
    bias=make_optional_entry(_BIAS_FORM.as_entry_of(Bias)),
    record=OBJECT,
)

# Parts of a certificate by argument, with the types that they may have.
_PART_TYPES = {
    "objective": (Objective, ExpectedLoss, NoneType),
    "bias": (Bias, NoneType),
    "record": (Mapping,),
    "parameters": (Mapping,),
    "audited": (Privacy, NoneType),
    "composed": (ComposedClaim, NoneType),
}


@dataclass(frozen=True, repr=False, init=False)
class Certificate(Shown):
    """A mechanism together with a privacy claim that has been proven.

    The constructor proves the claim and everything else that the certificate states. It raises an
    error if the proof fails, so a certificate with a false claim does not exist.

    Args:
        mechanism: The mechanism, with exact masses.
        notion: Name of a notion, a notion, or a complete claim.
        epsilon: ε, or a mapping shift (or ordered pair of rows) -> ε. Decimals are exact: 0.1
            means 1/10.
        delta: δ in [0, 1]. None for the default of the notion.
        objective: A loss with its value. None if no loss is stated.
        bias: The largest bias of the mechanism. None if no bias is stated.
        record: Facts that are written down and not proven.
        parameters: Further parameters of the notion by name.
        audited: An exact audit of this mechanism object, which is not repeated
            (see `workbench.privacy.audit.audit_for_claim`).
        composed: A claim about many runs together.

    Raises:
        NotCertified: The exact audit refutes the claim, or another stated number is wrong.
        NotProven: The claim stays undecided.
        InvalidRequest: The parts do not fit together.
    """

    mechanism: Mechanism
    claim: Claim
    objective: Objective | ExpectedLoss | None
    bias: Bias | None
    record: Values = field(compare=False)
    composed: ComposedClaim | None

    def __init__(
        self,
        mechanism: Mechanism,
        notion: str | Notion | Claim,
        epsilon: Any = None,
        delta: Any = None,
        objective: Objective | ExpectedLoss | None = None,
        bias: Bias | None = None,
        record: Values = MappingProxyType({}),
        parameters: Values = MappingProxyType({}),
        audited: Privacy | None = None,
        composed: ComposedClaim | None = None,
    ) -> None:
        _check_part_types(
            objective=objective,
            bias=bias,
            record=record,
            parameters=parameters,
            audited=audited,
            composed=composed,
        )
        if not hasattr(mechanism, "comparisons"):
            must("mechanism", "a mechanism", repr(mechanism)[:80])
        if isinstance(notion, Claim):
            claim = Claim.for_mechanism(notion.notion, mechanism, notion.values)
        else:
            values = {"epsilon": epsilon, "delta": delta, **parameters}
            claim = Claim.for_mechanism(notion, mechanism, values)
        _check_notion(mechanism, claim)
        # The class is frozen, so its attributes are set in `__dict__`.
        self.__dict__.update(
            mechanism=mechanism,
            claim=claim,
            objective=objective,
            bias=bias,
            composed=composed,
            record=MappingProxyType(dict(record)),
        )
        if getattr(mechanism, "can_publish_reals", False) and claim.notion.is_per_distance:
            must("notion", "one without distances for a channel of a range", claim.notion.name)
        if audited is not None:
            self._use_audit(audited)
        if not self.holds():
            raise NotCertified(self.deciding_audit.describe_verdict(claim))
        if composed is not None:
            composed.check(mechanism)
        if objective is not None:
            loss = objective.exact_loss_of(mechanism)
            if not is_rounded_up(objective.value, loss):
                raise NotCertified(
                    f"The {objective.name} is {round_up(loss)!r}, "
                    f"not {round_up(objective.value)!r}."
                )
        if bias is not None:
            actual_bias = Bias.measure(mechanism, bias.outputs, bias.inputs)
            if actual_bias != bias:
                raise NotCertified(
                    f"The bias is {round_up(actual_bias.worst)!r}, not {round_up(bias.worst)!r}."
                )
        self._label_rows()

    def _use_audit(self, audited: Privacy) -> None:
        """Use a finished audit as the deciding audit, if it covers all comparisons that decide."""
        if audited.mechanism is not self.mechanism:
            must("audited", "an audit of the mechanism itself", audited.mechanism)
        audited = audited.audit_at(self.claim.values.get("epsilon", 0))
        if self.claim.is_decided_by_ratio or audited.is_complete:
            self.__dict__["deciding_audit"] = audited

    def _label_rows(self) -> None:
        """Label the rows and columns of a bare channel with its inputs and published values.

        The labels are those of the bias, or those of the record (for texts). Without usable labels
        the channel stays as it is.
        """
        mechanism: Any = self.mechanism
        if getattr(mechanism, "axis_labels", ()) is not None:
            return  # The mechanism has labels already, or has no rows.
        try:
            if self.bias is not None:
                labels: Any = self.bias.inputs, self.bias.outputs
            else:
                labels = self._read_recorded_labels("inputs"), self._read_recorded_labels("outputs")
            inputs, _ = labels
            # With two equal inputs, a label would not tell which row is meant.
            if len({*inputs}) == len(inputs):
                self.__dict__["mechanism"] = replace(mechanism, axis_labels=labels)
        except InvalidRequest:
            pass  # The record has no list of labels, or not one label for every row.

    def _read_recorded_labels(self, name: str) -> tuple[Any, ...]:
        """Read the labels under a name of the record. Raises InvalidRequest."""
        return read_points(read_list(self.record.get(name), name, "a list"), name)

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle the arguments of the constructor, in its order.

        A copy, or a message to another process, is therefore proven again.
        """
        arguments = {
            "mechanism": self.mechanism,
            "notion": self.claim,
            "epsilon": None,
            "delta": None,
            "objective": self.objective,
            "bias": self.bias,
            "record": dict(self.record),
            "parameters": {},
            "audited": None,
            "composed": self.composed,
        }
        return Certificate, tuple(arguments.values())

    @property
    def notion(self) -> str:
        """Return the name of the notion."""
        return self.claim.notion.name

    @property
    def epsilon(self) -> Any:
        """Return ε as a Fraction. If neighbours have different ε, it is a mapping label -> ε.

        It is None for a notion without ε.
        """
        value = self.claim.epsilon
        if isinstance(value, Mapping):
            return MappingProxyType(value)
        return value

    @property
    def delta(self) -> Fraction | None:
        """Return δ, or None for a notion without δ."""
        return self.claim.values.get("delta")

    @cached_property
    def privacy(self) -> Privacy:
        """Return the exact audit of all comparisons at the claimed ε (at 0 without an ε)."""
        deciding_audit = self.deciding_audit
        if deciding_audit.is_complete:
            return deciding_audit
        return audit(self.mechanism, self.claim.values.get("epsilon", 0))

    @cached_property
    def deciding_audit(self) -> Privacy:
        """Return an audit that decides the claim at the claimed ε.

        It may audit fewer comparisons than `privacy`, which takes less time.
        """
        claim = self.claim
        if is_bounded_on_grid(self.mechanism, claim):
            return bound_release(self)
        return audit_for_claim(self.mechanism, claim)

    def holds(self) -> bool:
        """Return whether the exact audit confirms the claim."""
        return self.deciding_audit.holds(self.claim)

    def _describe_recorded_loss(self) -> str:
        """Return a sentence about the loss in the record, which no objective proves."""
        for name in ("expected_loss", "largest_loss"):
            value = self.record.get(name)
            if isinstance(value, float):
                loss_name = name.replace("_", " ")
                return f"Its record has the {loss_name} {value!r}, which this check does not prove."
        return "It proves no loss."

    @property
    def sentences(self) -> tuple[str, ...]:
        """Return what this certificate proves, one sentence each."""
        deciding_audit = self.deciding_audit
        sentences = [f"{self.mechanism.describe()}.", deciding_audit.describe_verdict(self.claim)]
        sentences += getattr(self.mechanism, "proof_notes", ())
        # A result without a label covers all real inputs at once, so there is no audit by pairs.
        first_result, *_ = deciding_audit.measure_comparisons(self.claim)
        has_pairs = bool(first_result.label)
        if "epsilon" in self.claim.values and has_pairs:
            deltas = f"exact DP delta {deciding_audit.dp_delta.upper!r}"
            numbers = f"{deltas}, pure epsilon {deciding_audit.pure_epsilon!r}"
            is_pdp = self.claim.notion.quantity == "pdp_delta"
            if is_pdp and not can_publish_reals(deciding_audit.mechanism):
                numbers = f"exact PDP delta {round_up(deciding_audit.pdp_delta)!r}, {numbers}"
            sentences.append(f"At that budget: {numbers} (each rounded up).")
        if self.composed is not None:
            sentences.append(f"{self.composed.description}.")
        if self.mechanism.is_one_sided:
            sentences.append(
                "Only one side of each pair of neighbours is protected (directed differences)."
            )
        if self.objective is None:
            sentences.append(self._describe_recorded_loss())
        else:
            sentences.append(self.objective.sentence)
        if self.bias is not None:
            largest_bias = self.bias.worst
            if largest_bias:
                sentences.append(f"Its largest bias is {round_up(largest_bias)!r}.")
            else:
                sentences.append("It is exactly unbiased.")
        for part_name, package in self.foreign_packages.items():
            sentences.append(f"The {part_name} is code of {package}. This proof relies on it.")
        return tuple(sentences)

    @property
    def foreign_packages(self) -> dict[str, str]:
        """Return the other packages whose code states the laws or decides the claim.

        The keys are "mechanism of kind K" and "notion N".
        """
        kind = getattr(self.mechanism, "kind", type(self.mechanism).__name__)
        parts = {
            f"mechanism of kind {kind}": self.mechanism,
            f"notion {self.notion}": self.claim.notion,
        }
        packages = {}
        for part_name, part in parts.items():
            package = find_foreign_package(part)
            if package is not None:
                packages[part_name] = package
        return packages

    def to_dict(self, *, columns: bool = False) -> Record:
        """Return the certificate as self-contained data for JSON.

        `workbench.privacy.certificate_file` reads these data.

        Args:
            columns: Whether to write a channel column by column if its rows are all neighbours.
                This is shorter.
        """
        write_short_record = getattr(self.mechanism, "short_record", lambda: None)
        short_record = None
        if columns:
            short_record = write_short_record()
        foreign_packages = self.foreign_packages
        checked_by = {}
        if foreign_packages:
            checked_by = {"checked_by": foreign_packages}
        return CERTIFICATE_FORM.write(
            self,
            mechanism=short_record or self.mechanism.to_dict(),
            record={**self.record, **checked_by},
        )

    def content(self) -> bytes:
        """Return the content of the certificate file.

        Raises NotCertified if the file would be too large to be proven again.
        """
        try:
            check_certificate_work(
                self.mechanism, self.claim, self.objective, self.bias, self.composed
            )
        except CorruptFile as error:
            raise NotCertified(
                f"The certificate could not be proven again from its file. {error}"
            ) from None
        content = b""
        # A text with more digits than the limit of bytes cannot fit, so it is not built.
        if getattr(self.mechanism, "record_digits", 0) <= MAX_FILE_BYTES:
            content = self._content()
        if not content or len(content) > MAX_FILE_BYTES:
            content = self._content(columns=True)
        if len(content) > MAX_FILE_BYTES:
            raise NotCertified(
                f"The certificate would have {len(content)} bytes. "
                f"At most {MAX_FILE_BYTES} are allowed."
            )
        return content

    def save(self, path: Path | str) -> None:
        """Write the certificate file. An interrupted write leaves no partial file.

        Args:
            path: Path of the file.

        Raises:
            NotCertified: The file would be too large to be proven again.
        """
        write_atomically(path, self.content())

    def _content(self, *, columns: bool = False) -> bytes:
        """Return the JSON text of `to_dict` in UTF-8, of any size."""
        text = json.dumps(self.to_dict(columns=columns), indent=1, allow_nan=False)
        return (text + "\n").encode()

    def facts(self) -> Facts:
        """Return what is proven as rows (label, sentence) of a report."""
        return [("proven", sentence) for sentence in self.sentences]

    @property
    def drawable(self) -> bool:
        """Return whether the mechanism can be drawn within a second or so."""
        return bool(getattr(self.mechanism, "drawable", False))

    def figure(self) -> Figure:
        """Draw the law of the mechanism."""
        mechanism: Any = self.mechanism
        figure: Figure = mechanism.figure()
        return figure

    def __repr__(self) -> str:
        return f"Certificate({self.notion}, {self.mechanism!r})"

    def __str__(self) -> str:
        return "\n".join(self.sentences)


def _check_part_types(**parts: Any) -> None:
    """Raise InvalidRequest if a part of a certificate has a wrong type."""
    for name, part in parts.items():
        if not isinstance(part, _PART_TYPES[name]):
            must(name, "of a type that the documentation of Certificate names", repr(part)[:80])


def _check_notion(mechanism: Mechanism, claim: Claim) -> None:
    """Raise InvalidRequest if randomized rounding of the answers could break the notion."""
    is_rounded = getattr(mechanism, "is_rounded", False)
    if is_rounded and not claim.notion.is_convex and claim.values.get("delta") != 0:
        must(
            "notion",
            "one that rounding preserves, because the mechanism publishes rounded answers",
            claim.notion.name,
        )


def check_certificate_work(
    mechanism: Mechanism,
    claim: Claim,
    objective: Objective | ExpectedLoss | None,
    bias: Bias | None,
    composed: ComposedClaim | None = None,
) -> None:
    """Check that everything a certificate states can be proven within the work limit.

    Args:
        mechanism: Mechanism with exact masses and a neighbour relation.
        claim: Notion of privacy with the exact values of its parameters.
        objective: The stated loss. None without one.
        bias: The stated bias. None without one.
        composed: The claim about many runs. None without one.

    Raises:
        CorruptFile: The proof needs more work than allowed.
    """
    if is_bounded_on_grid(mechanism, claim):
        return  # The proof counts its work itself.
    numbers: Rationals = ()
    if objective is not None:
        numbers = objective.numbers
    if bias is not None:
        numbers = (*numbers, *bias.outputs, *bias.inputs, bias.worst)
    label_count = 0
    if isinstance(objective, ExpectedLoss):
        label_count = len(objective.labels)
    units = count_work_units(
        mechanism,
        claim.notion,
        claim.values,
        numbers=numbers,
        labels=label_count,
        is_composed=composed is not None,
    )
    check_work_units(units)
