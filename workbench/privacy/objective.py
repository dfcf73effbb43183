"""What a certified mechanism costs, recomputed from its exact law; a loss with a known name has its known formula.

    mechanism   objective       exact loss                                       the file holds
    noise       Objective       Σ f(η) loss(η)                                   the losses, one for each η
    on Z, on R  Objective       E|η| (absolute), E η² (squared), Σ f(η) loss(η)  nothing; the losses of the weights
    channel, clamped noise
                ExpectedLoss    Σ_y p(y) Σ_o Pr[o|y] ℓ(o, y) / Σ_y p(y)          labels y, prior p, outputs o

| loss of noise      | in every factor of size s   |      | loss        | ℓ(o, y), with r = o - y           |
|--------------------|-----------------------------|------|-------------|-----------------------------------|
| error-rate         | 1 unless every part is 0    |      | squared     | r²                                |
| squared            | η (s - η)                   |      | absolute    | abs(r)                            |
| eta-squared        | η²                          |      | error-rate    | 1 unless r = 0                    |
| circular-squared   | min(η, s - η)²              |      | pinball:τ   | -τ r if r < 0 else (1 - τ) r      |
|                    |                             |      | huber:h     | r²/2 if abs(r) <= h,              |
|                    |                             |      |             | else h (abs(r) - h/2)             |

Losses of noise with any other name are numbers that the file states, and are worded so. Losses with a logarithm
(poisson) are not rational: no certificate states them. worst-squared has no one loss for each η, so none is stated
either.
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

_PLAIN = ("squared", "absolute", "error-rate")
_STATED = RecordForm("The objective", name=TEXT, value=RATIO, losses=make_optional_entry(RATIOS))
_EXPECTED = RecordForm(
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
    """What additive noise costs: Σ f(η) loss(η).

    name: of the loss; value: a number the exact loss does not exceed, and at most 1e-15 (relative) above it.
    losses: (N,), rationals; None for "error-rate", which needs none.
    """

    name: str
    value: Fraction
    losses: Rationals | None = None

    def __post_init__(self) -> None:
        # it is printed among what is proven, where a file must not write sentences of its own
        if not re.fullmatch(r"[a-z][a-z0-9-]{0,39}", self.name):
            must("the name of an objective", "a word such as squared", repr(self.name))

    @property
    def numbers(self) -> Rationals:
        """Every number it holds."""
        return (self.value, *(self.losses or ()))

    def to_dict(self) -> Record:
        """JSON-ready."""
        return _STATED.write(self)

    def exact_loss_of(self, mechanism: object) -> Fraction:
        """Of a mechanism, exactly. Raises InvalidRequest when these losses do not fit it or are not its name's."""
        exact: Callable[[str, Rationals | None], Fraction] | None = getattr(
            mechanism, "exact_loss", None
        )
        if exact is None:
            raise InvalidRequest(
                "objective must be an expected loss for a channel, and left out for a quantizer."
            )
        return exact(self.name, self.losses)

    @property
    def sentence(self) -> str:
        """The loss in one sentence, for an objective that holds."""
        if self.losses is None or self.name in PART_LOSSES:
            return f"Its {self.name} loss is {round_up(self.value)!r}, recomputed."
        return f"Its loss is {round_up(self.value)!r} by numbers that this file states, under the name {self.name!r}."


@dataclass(frozen=True)
class ExpectedLoss:
    """What a channel costs under a prior: Σ_y p(y) Σ_o Pr[o|y] ℓ(o, y) / Σ_y p(y).

    name: a loss of the module's table, its parameter an exact decimal; value: as in `Objective`.
    labels, prior: (k,) values y and weights p(y) >= 0, not all 0; outputs: (m,) values o;
    rows: (k,) the row of the channel that is the law of each label.
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
            must("prior", "a list of weights >= 0, not all 0", "another")

    @property
    def numbers(self) -> Rationals:
        """Every number it holds."""
        return (self.value, *self.labels, *self.prior, *self.outputs)

    def to_dict(self) -> Record:
        """JSON-ready."""
        return _EXPECTED.write(self)

    def exact_loss_of(self, mechanism: Any) -> Fraction:
        """The exact expected loss of a channel. Raises InvalidRequest when labels, outputs and rows do not fit it."""
        laws = getattr(mechanism, "rows", ())
        if not laws or has_real_inputs(mechanism):
            raise InvalidRequest(
                "An expected loss must be left out of the certificate of anything but a channel."
            )
        if len(self.outputs) != len(laws[0]) or not all(0 <= row < len(laws) for row in self.rows):
            raise InvalidRequest(
                f"outputs and rows must be those of a {len(laws)} x {len(laws[0])} channel."
            )
        losses = compute_expected_losses(
            self.name, self.labels, [laws[row] for row in self.rows], self.outputs
        )
        return Distribution(self.prior).mean(losses)

    def with_value_of(self, mechanism: Any) -> ExpectedLoss:
        """The same question with the `value` that the mechanism has. Raises InvalidRequest."""
        return replace(self, value=round_loss_up(self.exact_loss_of(mechanism)))

    @property
    def sentence(self) -> str:
        """The loss in one sentence, for an objective that holds."""
        return (
            f"Its expected {self.name} loss is {round_up(self.value)!r}, recomputed for the labels, prior and outputs "
            "in the file."
        )


def read_objective(data: Any) -> Objective | ExpectedLoss:
    """What `to_dict` of either wrote. Raises CorruptFile and InvalidRequest."""
    if not isinstance(data, dict) or "losses" in data:
        return Objective(**_STATED.read(data))
    return ExpectedLoss(**_EXPECTED.read(data))


def compute_expected_losses(
    name: str, labels: Sequence[Fraction], laws: Sequence[Distribution], outputs: Sequence[Fraction]
) -> list[Fraction]:
    """Σ_o Pr[o|y] ℓ(o, y) for every label y, exact. name: of a loss; laws: one for each label; outputs: (m,).

    Raises InvalidRequest for a loss that is not one of the table.
    """
    loss, scale, unit = build_integer_loss(*_parse_loss_name(name), (*labels, *outputs))
    values = np.array([int(o * scale) for o in outputs], dtype=object)
    return [
        Fraction(int(law.array @ loss(values - int(y * scale))), law.total * unit)
        for y, law in zip(labels, laws, strict=True)
    ]


def is_exact_loss(name: str) -> bool:
    """Whether a loss is one of the table, so that a certificate can state it."""
    try:
        _parse_loss_name(name)
    except InvalidRequest:
        return False
    return True


def round_loss_up(value: Fraction) -> Fraction:
    """An exact loss, rounded up to a decimal of 17 significant digits or more."""
    if value <= 0:
        return value
    places = max(0, 17 - math.floor(math.log10(value.numerator) - math.log10(value.denominator)))
    return Fraction(math.ceil(value * 10**places), 10**places)


def is_rounded_up(value: Fraction, exact: Fraction) -> bool:
    """Whether a value is what a mechanism costs exactly, rounded up by at most 1e-15 of it."""
    return exact <= value <= exact + max(abs(exact), Fraction(1, 10**300)) / 10**15


def _parse_loss_name(name: str) -> tuple[str, Fraction]:
    """(kind, parameter); the parameter of a plain loss is 1."""
    kind, colon, text = str(name).partition(":")  # a caller of Python may give anything
    if kind in _PLAIN and not colon:
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
    """(loss, scale, unit) of a kind of the module's table: ℓ(r) = loss(r scale) / unit, with the differences r of these
    numbers times the scale in integers. loss: of arrays of Python's integers, of any shape."""
    scale = math.lcm(parameter.denominator, *{number.denominator for number in numbers})
    h = int(parameter * scale)
    losses: dict[str, tuple[Callable[[NDArray[Any]], NDArray[Any]], int]] = {
        "squared": (lambda r: r * r, scale**2),
        "absolute": (np.abs, scale),
        "error-rate": (lambda r: np.where(r == 0, 0, 1).astype(object), 1),
        "pinball": (lambda r: np.where(r < 0, -h * r, (scale - h) * r), scale**2),
        "huber": (lambda r: np.where(np.abs(r) <= h, r * r, h * (2 * np.abs(r) - h)), 2 * scale**2),
    }
    loss, unit = losses[kind]
    return loss, scale, unit
