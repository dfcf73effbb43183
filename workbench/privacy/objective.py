"""Recompute the expected loss that a certificate states, exactly from the law of the mechanism.

Notation: f(η) is the mass of the noise value η, loss(η) its loss, and s the size of a cyclic factor
of the group on which the noise lives. For a channel, y is a label (the true answer), o an output,
p(y) the prior weight of y, and ℓ(o, y) the loss.

    mechanism   objective       exact loss                              content of the file
    noise       Objective       Σ f(η) loss(η)                          a loss for each η
    on Z, on R  Objective       mean of |η| (absolute), η² (squared)    no losses
                                Σ f(η) loss(η)                          losses of the weights
    channel, clamped noise
                ExpectedLoss    Σ_y p(y) Σ_o Pr[o|y] ℓ(o, y) / Σ_y p(y) labels y, prior p, outputs o

| loss of noise    | in every factor of size s |   | loss       | ℓ(o, y), with r = o - y      |
|------------------|---------------------------|---|------------|------------------------------|
| error-rate       | 1 unless every part is 0  |   | squared    | r²                           |
| squared          | η (s - η)                 |   | absolute   | abs(r)                       |
| eta-squared      | η²                        |   | error-rate | 1 unless r = 0               |
| circular-squared | min(η, s - η)²            |   | pinball:τ  | -τ r if r < 0 else (1 - τ) r |
|                  |                           |   | huber:h    | r²/2 if abs(r) <= h,         |
|                  |                           |   |            | else h (abs(r) - h/2)        |

Losses of noise with any other name are numbers that the file states, and the report says so. Losses
with a logarithm (poisson) are not rational, so no certificate states them. worst-squared is not one
loss for each η, so it is not stated either.

To add a loss of channels, add its parameter range to `_parse_loss_name`, and its formula to
`build_integer_loss` and to `tools/check_certificate.py`.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from workbench.errors import CorruptFile, InvalidRequest, must
from workbench.exact.distribution import Distribution
from workbench.exact.numbers import ONE, ZERO, Rationals, round_up
from workbench.exact.objects import Record
from workbench.io.files import parse_ratio
from workbench.io.records import INTEGERS, RATIO, RATIOS, TEXT, RecordForm, make_optional_entry
from workbench.mechanisms.additive import PART_LOSSES
from workbench.mechanisms.mechanism import has_real_inputs

# A stated loss exceeds the exact loss by at most this share of it.
_MAX_ROUNDING_ERROR = Fraction(1, 10**15)
# A smaller loss counts as this one when its rounding error is bounded.
_MIN_RELATIVE_LOSS = Fraction(1, 10**300)
_MIN_LOSS_DIGITS = 17  # A loss is rounded up to at least this many significant digits.
_PARAMETER_FREE_LOSSES = ("squared", "absolute", "error-rate")
_NOISE_FORM = RecordForm(
    "The objective", name=TEXT, value=RATIO, losses=make_optional_entry(RATIOS)
)
_CHANNEL_FORM = RecordForm(
    "The objective",
    name=TEXT,
    value=RATIO,
    labels=RATIOS,
    prior=RATIOS,
    outputs=RATIOS,
    rows=INTEGERS,
)


@dataclass(frozen=True)
class Objective:
    """The expected loss of additive noise, Σ f(η) loss(η).

    Attributes:
        name: Name of the loss.
        value: The exact expected loss, rounded up by at most a relative error of 1e-15.
        losses: Loss of each of the N noise values η, rational. Shape (N,). None for
            "error-rate", which has a formula.
    """

    name: str
    value: Fraction
    losses: Rationals | None = None

    def __post_init__(self) -> None:
        # The name is printed among proven facts, so a file must not put a sentence there.
        if not re.fullmatch(r"[a-z][a-z0-9-]{0,39}", self.name):
            must("the name of an objective", "a word such as squared", repr(self.name))

    @property
    def numbers(self) -> Rationals:
        """Return every number of the objective, for counting the work of a proof."""
        return (self.value, *(self.losses or ()))

    def to_dict(self) -> Record:
        """Return the objective as data for JSON."""
        return _NOISE_FORM.write(self)

    def exact_loss_of(self, mechanism: object) -> Fraction:
        """Compute the expected loss of a mechanism exactly.

        Args:
            mechanism: Additive noise.

        Raises:
            InvalidRequest: The losses do not fit the mechanism or the name.
        """
        compute_loss: Callable[[str, Rationals | None], Fraction] | None = getattr(
            mechanism, "exact_loss", None
        )
        if compute_loss is None:
            raise InvalidRequest(
                "objective must be an expected loss for a channel, and left out for a quantizer."
            )
        return compute_loss(self.name, self.losses)

    @property
    def sentence(self) -> str:
        """Return the loss in one sentence, for an objective that was verified."""
        if self.losses is None or self.name in PART_LOSSES:
            return f"Its {self.name} loss is {round_up(self.value)!r}, recomputed."
        return (
            f"Its loss is {round_up(self.value)!r} by numbers that this file states, "
            f"under the name {self.name!r}."
        )


@dataclass(frozen=True)
class ExpectedLoss:
    """The expected loss of a channel under a prior, Σ_y p(y) Σ_o Pr[o|y] ℓ(o, y) / Σ_y p(y).

    Attributes:
        name: Name of a loss of the module header. Its parameter is an exact decimal.
        value: The exact expected loss, rounded up by at most a relative error of 1e-15.
        labels: Values y. Shape (k,).
        prior: Weights p(y) >= 0, not all 0. Shape (k,).
        outputs: Values o. Shape (m,).
        rows: Row of the channel that is the law of each label. Shape (k,).
    """

    name: str
    value: Fraction
    labels: Rationals
    prior: Rationals
    outputs: Rationals
    rows: tuple[int, ...]

    def __post_init__(self) -> None:
        _parse_loss_name(self.name)
        if not len(self.labels) == len(self.prior) == len(self.rows):
            raise InvalidRequest(
                "labels, prior and rows of an expected loss must be lists of one length."
            )
        if min(self.prior, default=ZERO) < 0 or not any(self.prior):
            got = "only zeros" if self.prior else "an empty list"
            if min(self.prior, default=ZERO) < 0:
                got = "a negative weight"
            must("prior", "a list of weights >= 0, not all 0", got)

    @property
    def numbers(self) -> Rationals:
        """Return every number of the objective, for counting the work of a proof."""
        return (self.value, *self.labels, *self.prior, *self.outputs)

    def to_dict(self) -> Record:
        """Return the objective as data for JSON."""
        return _CHANNEL_FORM.write(self)

    def exact_loss_of(self, mechanism: Any) -> Fraction:
        """Compute the expected loss of a mechanism exactly.

        Args:
            mechanism: A channel.

        Raises:
            InvalidRequest: Labels, outputs or rows do not fit the mechanism.
        """
        laws = getattr(mechanism, "rows", ())
        if not laws or has_real_inputs(mechanism):
            raise InvalidRequest(
                "An expected loss is only possible in the certificate of a channel. Leave it out."
            )
        if len(self.outputs) != len(laws[0]) or not all(0 <= row < len(laws) for row in self.rows):
            raise InvalidRequest(
                f"outputs and rows must be those of a {len(laws)} x {len(laws[0])} channel."
            )
        label_laws = [laws[row] for row in self.rows]
        losses = compute_expected_losses(self.name, self.labels, label_laws, self.outputs)
        return Distribution(self.prior).mean(losses)

    def with_value_of(self, mechanism: Any) -> ExpectedLoss:
        """Return the same objective with the value that a mechanism has.

        Args:
            mechanism: A channel.

        Raises:
            InvalidRequest: Labels, outputs or rows do not fit the mechanism.
        """
        return replace(self, value=round_loss_up(self.exact_loss_of(mechanism)))

    @property
    def sentence(self) -> str:
        """Return the loss in one sentence, for an objective that was verified."""
        return (
            f"Its expected {self.name} loss is {round_up(self.value)!r}, "
            "recomputed for the labels, prior and outputs in the file."
        )


def read_objective(data: Any) -> Objective | ExpectedLoss:
    """Read the data that `to_dict` of either class returned.

    Args:
        data: Data of a JSON file.

    Raises:
        CorruptFile: The data are malformed.
        InvalidRequest: The loss or the prior is wrong.
    """
    if not isinstance(data, dict) or "losses" in data:
        return Objective(**_NOISE_FORM.read(data))
    return ExpectedLoss(**_CHANNEL_FORM.read(data))


def compute_expected_losses(
    name: str, labels: Sequence[Fraction], laws: Sequence[Distribution], outputs: Sequence[Fraction]
) -> list[Fraction]:
    """Compute Σ_o Pr[o|y] ℓ(o, y) for every label y, exactly.

    Args:
        name: Name of a loss of the module header.
        labels: Values y. Shape (k,).
        laws: Law of the output for each label. Length k.
        outputs: Values o. Shape (m,).

    Raises:
        InvalidRequest: The loss is not in the table of the module header.
    """
    loss, scale, unit = build_integer_loss(*_parse_loss_name(name), (*labels, *outputs))
    scaled_outputs = np.array([int(o * scale) for o in outputs], dtype=object)
    expected_losses = []
    for label, law in zip(labels, laws, strict=True):
        integer_losses = loss(scaled_outputs - int(label * scale))
        expected_losses.append(Fraction(int(law.array @ integer_losses), law.total * unit))
    return expected_losses


def is_exact_loss(name: str) -> bool:
    """Return whether a loss is in the table, so that a certificate can state it.

    Args:
        name: Name of the loss.
    """
    try:
        _parse_loss_name(name)
    except InvalidRequest:
        return False
    return True


def round_loss_up(value: Fraction) -> Fraction:
    """Round an exact loss up to a decimal of 17 significant digits or more.

    Args:
        value: The loss. Values <= 0 are returned unchanged.
    """
    if value <= 0:
        return value
    magnitude = math.floor(math.log10(value.numerator) - math.log10(value.denominator))
    places = max(0, _MIN_LOSS_DIGITS - magnitude)
    return Fraction(math.ceil(value * 10**places), 10**places)


def is_rounded_up(value: Fraction, exact: Fraction) -> bool:
    """Return whether a stated loss is the exact loss, rounded up by at most 1e-15 of it.

    Args:
        value: Loss that a certificate states.
        exact: The exact loss of the mechanism.
    """
    max_excess = max(abs(exact), _MIN_RELATIVE_LOSS) * _MAX_ROUNDING_ERROR
    return exact <= value <= exact + max_excess


def _parse_loss_name(name: str) -> tuple[str, Fraction]:
    """Return (kind, parameter) of a loss; the parameter is 1 by default. Raises InvalidRequest."""
    kind, colon, text = str(name).partition(":")  # A caller in Python may pass anything.
    if kind in _PARAMETER_FREE_LOSSES and not colon:
        return kind, ONE
    if re.fullmatch(r"[0-9]{1,40}(\.[0-9]{1,40})?(e-?[0-9]{1,3})?", text):
        try:
            parameter = parse_ratio(text, "the parameter of a loss")
        except CorruptFile:
            parameter = ZERO
        if (kind == "pinball" and 0 < parameter < 1) or (kind == "huber" and parameter > 0):
            return kind, parameter
    return must(
        "a loss", "squared, absolute, error-rate, pinball:τ (τ in (0, 1)) or huber:h", repr(name)
    )


def build_integer_loss(
    kind: str, parameter: Fraction, numbers: Iterable[Fraction]
) -> tuple[Callable[[NDArray[Any]], NDArray[Any]], int, int]:
    """Build a loss in integers, so that ℓ(r) = loss(r scale) / unit.

    Args:
        kind: Kind of a loss of the module header.
        parameter: Its parameter, or 1.
        numbers: Labels and outputs. The scale makes all of them integers.

    Returns:
        (loss, scale, unit). `loss` maps arrays of Python integers, of any shape, to such arrays.
        For example, the squared loss of r = 1/2 with scale 2 is loss(1) / unit = 1/4.
    """
    scale = math.lcm(parameter.denominator, *{number.denominator for number in numbers})
    h = int(parameter * scale)  # r and the parameter are scaled, so their products have scale².
    losses: dict[str, tuple[Callable[[NDArray[Any]], NDArray[Any]], int]] = {
        "squared": (lambda r: r * r, scale**2),
        "absolute": (np.abs, scale),
        "error-rate": (lambda r: np.where(r == 0, 0, 1).astype(object), 1),
        "pinball": (lambda r: np.where(r < 0, -h * r, (scale - h) * r), scale**2),
        "huber": (lambda r: np.where(np.abs(r) <= h, r * r, h * (2 * np.abs(r) - h)), 2 * scale**2),
    }
    loss, unit = losses[kind]
    return loss, scale, unit
