"""A certificate: a mechanism in integers and a claim about it, proven from nothing else.

    mechanism    noise: sizes, shifts, weights · channel: rows of weights, pairs · quantizer: knots, outputs, end laws
    claim        a notion and its parameters: epsilon (one, or one for each shift or pair) and delta, or others
    objective    a loss and what the mechanism costs, recomputed where one is stated (`workbench.privacy.objective`)
    bias         max |E[output | input] - input|, where the mechanism is one of numbers, recomputed
    composed     of a design for many runs: what so many adaptive runs are together, composed again
    record       solver, versions, its claim and bound: written down, not proven here

The claim is decided by its notion, in an exact audit, every time a certificate is made or read; what a file says counts
for nothing.
See `workbench.privacy.certificate_file` for the file.
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
from workbench.exact.numbers import round_up
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
from workbench.privacy.objective import ExpectedLoss, Objective, is_rounded_up, read_objective

if TYPE_CHECKING:
    from matplotlib.figure import Figure


CERTIFICATE_FORMAT, CERTIFICATE_VERSION = "dp-workbench certificate", 1
CERTIFICATE_FORM = RecordForm(
    "A certificate", {"format": CERTIFICATE_FORMAT, "version": CERTIFICATE_VERSION}, mechanism=UNCHANGED, claim=make_object_entry(Claim.read),
    composed=make_optional_entry(make_object_entry(ComposedClaim.read)), objective=make_optional_entry(make_object_entry(read_objective)),
    bias=make_optional_entry(RecordForm("The bias", outputs=RATIOS, inputs=RATIOS, worst=RATIO).as_entry_of(Bias)), record=OBJECT,
)  # fmt: skip


@dataclass(frozen=True, repr=False, init=False)
class Certificate(Shown):
    """A mechanism that meets a notion's budget: nothing else can be built.

    notion: its name (or the notion itself, or a whole claim); epsilon: one for all, or a mapping shift (or ordered pair
    of rows) -> ε; parameters: of a notion that has others than epsilon and delta. Decimals are meant: 0.1 is 1/10.
    record: what is known beyond the proof.
    audited: an exact audit of this very mechanism, which is then not repeated (`workbench.privacy.audit.audit_for`).
    composed: what many runs together are, claimed beside what one is.
    Raises NotCertified when the exact audit refuses the claim, InvalidRequest when it makes no sense.
    """

    mechanism: Mechanism
    claim: Claim
    objective: Objective | ExpectedLoss | None
    bias: Bias | None
    record: Values = field(compare=False)
    composed: ComposedClaim | None

    def __init__(
        self, mechanism: Mechanism, notion: str | Notion | Claim, epsilon: Any = None, delta: Any = None,
        objective: Objective | ExpectedLoss | None = None, bias: Bias | None = None,
        record: Values = MappingProxyType({}), parameters: Values = MappingProxyType({}),
        audited: Privacy | None = None, composed: ComposedClaim | None = None,
    ) -> None:  # fmt: skip
        for name, part, kinds in (
            ("objective", objective, (Objective, ExpectedLoss, NoneType)),
            ("bias", bias, (Bias, NoneType)),
            ("record", record, Mapping),
            ("parameters", parameters, Mapping),
            ("audited", audited, (Privacy, NoneType)),
            ("composed", composed, (ComposedClaim, NoneType)),
        ):
            if not isinstance(part, kinds):
                must(
                    name,
                    "what a certificate holds under this name (see its documentation)",
                    repr(part)[:80],
                )
        if not hasattr(mechanism, "comparisons"):
            must("mechanism", "a mechanism", repr(mechanism)[:80])
        if isinstance(notion, Claim):
            claim = Claim.for_mechanism(notion.notion, mechanism, notion.values)
        else:
            claim = Claim.for_mechanism(
                notion, mechanism, {"epsilon": epsilon, "delta": delta, **parameters}
            )
        if (
            getattr(mechanism, "is_rounded", False)
            and not claim.notion.is_convex
            and claim.values.get("delta") != 0
        ):
            must(
                "notion",
                "one that rounding preserves, as what is published is rounded",
                claim.notion.name,
            )
        self.__dict__.update(
            mechanism=mechanism, claim=claim, objective=objective, bias=bias, composed=composed,
            record=MappingProxyType(dict(record)),
        )  # fmt: skip
        if getattr(mechanism, "can_publish_reals", False) and claim.notion.is_per_distance:
            must("notion", "one without distances for a channel of a range", claim.notion.name)
        if audited is not None:
            if audited.mechanism is not mechanism:
                must("audited", "an audit of the mechanism itself", audited.mechanism)
            audited = audited.audit_at(claim.values.get("epsilon", 0))
            if claim.is_decided_by_ratio or audited.is_complete:
                self.__dict__["deciding"] = audited
        if not self.holds():
            raise NotCertified(self.deciding_audit.describe_verdict(claim))
        if composed is not None:
            composed.check(mechanism)
        if objective is not None and not is_rounded_up(
            objective.value, cost := objective.exact_loss_of(mechanism)
        ):
            raise NotCertified(
                f"The {objective.name} is {round_up(cost)!r}, not {round_up(objective.value)!r}."
            )
        if bias is not None:
            actual = Bias.measure(mechanism, bias.outputs, bias.inputs)
            if actual != bias:
                raise NotCertified(
                    f"The bias is {round_up(actual.worst)!r}, not {round_up(bias.worst)!r}."
                )
        self._label_rows()

    def _label_rows(self) -> None:
        """Bare rows of a channel get the inputs they stand for and the values they publish, where those are known:
        from the bias, or of texts from the record."""
        mechanism: Any = self.mechanism
        if getattr(mechanism, "axis_labels", ()) is not None:  # they have them, or are no rows
            return
        try:
            if self.bias is not None:
                labelled: Any = self.bias.inputs, self.bias.outputs
            else:
                labelled = tuple(
                    read_points(read_list(self.record.get(k), k, "a list"), k)
                    for k in ("inputs", "outputs")
                )
            if len({*labelled[0]}) == len(labelled[0]):
                self.__dict__["mechanism"] = replace(mechanism, axis_labels=labelled)
        except InvalidRequest:  # not one for every row, or no list of them
            pass

    def __reduce__(self) -> tuple[Any, ...]:
        """Copies and messages between processes are proven again."""
        parts = (
            self.mechanism,
            self.claim,
            None,
            None,
            self.objective,
            self.bias,
            dict(self.record),
        )
        return Certificate, (*parts, {}, None, self.composed)

    @property
    def notion(self) -> str:
        """The name of the notion."""
        return self.claim.notion.name

    @property
    def epsilon(self) -> Any:
        """ε, a mapping where neighbours have their own; None of a notion without one."""
        value = self.claim.epsilon
        return MappingProxyType(value) if isinstance(value, Mapping) else value

    @property
    def delta(self) -> Fraction | None:
        """δ; None of a notion without one."""
        return self.claim.values.get("delta")

    @cached_property
    def privacy(self) -> Privacy:
        """The exact audit at the claimed ε; at ε = 0 for a notion that has none."""
        known = self.deciding_audit
        return (
            known
            if known.is_complete
            else audit(self.mechanism, self.claim.values.get("epsilon", 0))
        )

    @cached_property
    def deciding_audit(self) -> Privacy:
        """An audit that decides the claim, at the claimed ε: `privacy`, or what says the same with less work."""
        return audit_for_claim(self.mechanism, self.claim)

    def holds(self) -> bool:
        """Whether the exact audit meets the claim."""
        return self.deciding_audit.holds(self.claim)

    def _recorded_loss(self) -> str:
        """Say which loss the record has where no objective proves one."""
        for name in ("expected_loss", "largest_loss"):
            value = self.record.get(name)
            if isinstance(value, float):
                return f"Its record has the {name.replace('_', ' ')} {value!r}, which this check does not prove."
        return "It proves no loss."

    @property
    def sentences(self) -> tuple[str, ...]:
        """What this certificate proves, one sentence each."""
        sentences = [
            f"{self.mechanism.describe()}.",
            self.deciding_audit.describe_verdict(self.claim),
        ]
        sentences += getattr(self.mechanism, "proof_notes", ())
        whole = not self.deciding_audit.measure_comparisons(self.claim)[
            0
        ].label  # measured over all real inputs: not pair by pair
        if "epsilon" in self.claim.values and not whole:
            p = self.deciding_audit
            more = f"exact DP delta {p.dp_delta.upper!r}, pure epsilon {p.pure_epsilon!r}"
            if not can_publish_reals(p.mechanism):
                more = f"exact PDP delta {round_up(p.pdp_delta)!r}, {more}"
            sentences.append(f"At that budget: {more} (each rounded up).")
        sentences += [] if self.composed is None else [f"{self.composed.description}."]
        if self.mechanism.is_one_sided:
            sentences.append(
                "Only one side of each pair of neighbours is protected (directed differences)."
            )
        sentences.append(
            self._recorded_loss() if self.objective is None else self.objective.sentence
        )
        if self.bias is not None:
            worst = self.bias.worst
            sentences.append(
                "It is exactly unbiased."
                if not worst
                else f"Its largest bias is {round_up(worst)!r}."
            )
        for what, package in self.foreign_packages.items():
            sentences.append(f"The {what} is code of {package}, which this proof relies on.")
        return tuple(sentences)

    @property
    def foreign_packages(self) -> dict[str, str]:
        """The packages other than this one whose code states the laws or decides the claim: "mechanism of kind K",
        "notion N" -> package."""
        kind = getattr(self.mechanism, "kind", type(self.mechanism).__name__)
        parts = {
            f"mechanism of kind {kind}": self.mechanism,
            f"notion {self.notion}": self.claim.notion,
        }
        return {
            what: package
            for what, part in parts.items()
            if (package := find_foreign_package(part)) is not None
        }

    def to_dict(self, *, columns: bool = False) -> Record:
        """JSON-ready, and self-contained: see `workbench.privacy.certificate_file`, which reads it.

        columns: a channel whose rows are all neighbours by its columns.
        """
        short = getattr(self.mechanism, "short_record", lambda: None)
        mechanism = (short() if columns else None) or self.mechanism.to_dict()
        checked = {"checked_by": self.foreign_packages} if self.foreign_packages else {}
        return CERTIFICATE_FORM.write(self, mechanism=mechanism, record={**self.record, **checked})

    def content(self) -> bytes:
        """What its file holds. Raises NotCertified when it would be too large to be proven again."""
        try:
            check_certificate_work(
                self.mechanism, self.claim, self.objective, self.bias, self.composed
            )
        except CorruptFile as error:
            raise NotCertified(
                f"The certificate could not be proven again from its file. {error}"
            ) from None
        content = (
            b"" if getattr(self.mechanism, "record_digits", 0) > MAX_FILE_BYTES else self._content()
        )
        if not content or len(content) > MAX_FILE_BYTES:
            content = self._content(columns=True)
        if len(content) > MAX_FILE_BYTES:
            raise NotCertified(
                f"The certificate would take {len(content)} bytes; {MAX_FILE_BYTES} are allowed."
            )
        return content

    def save(self, path: Path | str) -> None:
        """Write the file, whole or not at all. Raises NotCertified when it would be too large to be proven again."""
        write_atomically(path, self.content())

    def _content(self, *, columns: bool = False) -> bytes:
        return (
            json.dumps(self.to_dict(columns=columns), indent=1, allow_nan=False) + "\n"
        ).encode()

    def facts(self) -> Facts:
        """What is proven."""
        return [("proven", sentence) for sentence in self.sentences]

    @property
    def drawable(self) -> bool:
        """Whether its mechanism is."""
        return bool(getattr(self.mechanism, "drawable", False))

    def figure(self) -> Figure:
        """The law of its mechanism."""
        mechanism: Any = self.mechanism
        figure: Figure = mechanism.figure()
        return figure

    def __repr__(self) -> str:
        return f"Certificate({self.notion}, {self.mechanism!r})"

    def __str__(self) -> str:
        return "\n".join(self.sentences)


def check_certificate_work(
    mechanism: Mechanism,
    claim: Claim,
    objective: Objective | ExpectedLoss | None,
    bias: Bias | None,
    composed: ComposedClaim | None = None,
) -> None:
    """Raise CorruptFile where proving all that a certificate states would be beyond the limit."""
    numbers = () if objective is None else objective.numbers
    if bias is not None:
        numbers = (*numbers, *bias.outputs, *bias.inputs, bias.worst)
    labels = len(objective.labels) if isinstance(objective, ExpectedLoss) else 0
    check_work_units(
        count_work_units(
            mechanism, claim.notion, claim.values, numbers, labels, is_composed=composed is not None
        )
    )
