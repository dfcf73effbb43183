"""What a mechanism gets wrong: its expected loss on every input, in exact arithmetic; the mean of it, and the worst.

    inputs         expected loss at x                     its mean, its largest value
    finitely many  Σ_o Pr[o | x] ℓ(o, x)                  over every input; any loss of `workbench.privacy.objective`
    all numbers    E ℓ(η, 0) of additive noise              the same everywhere
    real           Σ_i p_i(x) |B_i - x| or (B_i - x)²     over a quadratic in x on every piece

Between neighbouring knots and outputs p_i(x) = u_i + v_i x with Σ_i v_i = 0, so both losses are quadratics there (of
the squared one the cubic term is Σ_i v_i x³ = 0), and three values say which.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise
from typing import Any

import numpy as np

from workbench.data.input_weights import align_input_weights, read_data_file, read_input_weights
from workbench.data.intervals import format_range, read_rationals, read_real_input
from workbench.data.points import format_point
from workbench.errors import must
from workbench.exact.distribution import Distribution
from workbench.exact.numbers import ONE, ZERO, RationalPair, Rationals, nearest_float, round_up
from workbench.exact.objects import Record
from workbench.io.shown import Facts
from workbench.mechanisms.mechanism import Mechanism, as_mechanism, can_publish_reals
from workbench.privacy.objective import compute_expected_losses
from workbench.questions.density import Density
from workbench.questions.density import parse_density as density_named
from workbench.questions.labels import Labels

_REAL = ("absolute", "squared")
_CELLS = 4_000_000  # one loss each, in integers: some seconds


@dataclass(frozen=True)
class ExpectedError:
    """The expected loss of a mechanism.

    loss, data: in words; mean: over the data, a Fraction where it is exact, a float (12 digits) where the data's law
    is integrated numerically; worst: the largest over all inputs, an upper end of it exactly; worst_input: where, on
    real inputs the point that it is approached at. Both are None where the law gives no finite way to decide them.
    """

    loss: str
    data: str
    mean_error: Fraction | float
    worst_error: Fraction | None
    worst_input: Any

    def to_dict(self) -> Record:
        """loss, data, mean_error and worst_error rounded up, exact (whether the mean is), worst_input."""
        return {
            "loss": self.loss,
            "data": self.data,
            "mean_error": self.mean_error
            if isinstance(self.mean_error, float)
            else round_up(self.mean_error),
            "exact": not isinstance(self.mean_error, float),
            "worst_error": None if self.worst_error is None else round_up(self.worst_error),
            "worst_input": self.worst_input,
        }

    def facts(self) -> Facts:
        """The loss in words."""
        values = self.to_dict()
        rows = [("data", self.data), (f"mean {self.loss} loss", repr(values["mean_error"]))]
        if self.worst_error is not None:
            where = "" if self.worst_input is None else f" at {self.worst_input}"
            rows.append(("of the worst input", f"{values['worst_error']!r}{where}"))
        return rows


def compute_expected_error(
    mechanism: Any, loss: str = "absolute", data: Any = None
) -> ExpectedError:
    """The exact expected loss of a mechanism, a Design or a Certificate on given data, and on its worst input.

    loss: absolute, squared, error-rate, pinball:τ or huber:h; on real inputs absolute or squared.
    data: None (inputs equally likely; of a label randomizer its own prior), a column of inputs, a CSV file of
    one, a mapping of inputs to weights, or `Labels`; on real inputs also "uniform", "normal:MU,SIGMA" or a
    Density.
    Raises InvalidRequest.
    """
    subject: Any = as_mechanism(mechanism)
    subject, question = getattr(subject, "real_law", subject), getattr(mechanism, "question", None)
    if data is None and isinstance(question, Labels):
        data = question
    data = read_data_file(data)
    if (
        subject.inputs is None and subject.segments is not None and not subject.segments
    ):  # noise on all numbers
        if data is not None:
            must(
                "data",
                "left out: noise on all numbers is off by the same law everywhere",
                repr(data),
            )
        clamp = getattr(subject.question, "clamp", None)
        if clamp is not None:
            mean, worst = subject.clamped_loss(loss), subject.clamped_loss(loss, None)
            return ExpectedError(loss, f"uniform on {format_range(clamp)}", mean, worst, None)
        of_noise: Fraction = subject.loss(loss)
        return ExpectedError(loss, "every input alike", of_noise, of_noise, None)
    return (
        _error_on_real_inputs(subject, loss, data)
        if can_publish_reals(subject)
        else _error_on_finite_inputs(subject, loss, data)
    )


def _error_on_finite_inputs(mechanism: Mechanism, loss: str, data: Any) -> ExpectedError:
    labelled = getattr(mechanism, "axis_labels", None)  # rows with exact labels
    published = mechanism.outputs if labelled is None else labelled[1]
    inputs, outputs = ([*map(_to_python_point, values)] for values in (mechanism.inputs, published))
    if len(inputs) * len(outputs) > _CELLS:
        must(
            "inputs times outputs",
            f"at most {_CELLS} for expected losses",
            len(inputs) * len(outputs),
        )
    laws = [mechanism.law(x) for x in inputs]
    if not all(isinstance(value, (int, float, Fraction)) for value in (*inputs, *outputs)):
        if loss != "error-rate":  # a vector or a text: right in every part, or wrong
            what = (
                "a vector query" if labelled is None else "inputs and outputs that are no numbers"
            )
            must("loss", f"error-rate for {what}", repr(loss))
        places = {output: k for k, output in enumerate(outputs)}
        losses = [
            1 - (law[places[x]] if x in places else ZERO)
            for x, law in zip(inputs, laws, strict=True)
        ]
    else:
        labels, values = read_rationals(inputs, "inputs"), read_rationals(outputs, "outputs")
        losses = compute_expected_losses(loss, labels, laws, values)
    weights, words = _weigh_inputs_of(mechanism, inputs, data)
    at = max(range(len(losses)), key=losses.__getitem__)
    mean = Distribution(weights).mean(losses)
    return ExpectedError(
        loss, words, mean, losses[at], inputs[at] if labelled is None else format_point(inputs[at])
    )


def _to_python_point(point: Any) -> Any:
    """An input or a published value as Python has it; of a vector, a tuple."""
    value = point.tolist() if isinstance(point, (np.generic, np.ndarray)) else point
    return tuple(value) if isinstance(value, list) else value


def _weigh_inputs_of(
    mechanism: Mechanism, inputs: list[Any], data: Any
) -> tuple[list[Fraction], str]:
    """The weight of every input, and the law of the data in words. Raises InvalidRequest for what is no input."""
    if data is None:
        data = getattr(mechanism, "labels", None)
    if data is None:
        return [ONE] * len(inputs), f"{len(inputs)} inputs, equally likely"
    if isinstance(data, Labels):
        given = dict(zip(data.values.tolist(), map(Fraction, data.prior.tolist()), strict=True))
        words = repr(data)
    else:
        given, words = read_input_weights(data)
    is_labelled = getattr(mechanism, "axis_labels", None) is not None
    shown_inputs = [*map(format_point, inputs)] if is_labelled else inputs
    return align_input_weights(given, inputs, shown_inputs), words


class _Piece:
    """The quadratic on [low, high] with these values at the two ends and in the middle."""

    def __init__(
        self, low: Fraction, high: Fraction, left: Fraction, middle: Fraction, right: Fraction
    ) -> None:
        self.low, self.high, self.left = low, high, left
        # left + slope t + bend t², t the way from low to high
        self.bend = 2 * (left + right - 2 * middle)
        self.slope = right - left - self.bend
        self.integral = (
            (high - low) / 6 * (left + 4 * middle + right)
        )  # by Simpson's rule, which is exact

    def __call__(self, x: Fraction) -> Fraction:
        t = (x - self.low) / (self.high - self.low)
        return self.left + t * (self.slope + t * self.bend)

    @property
    def maximum(self) -> RationalPair:
        """(value, place) of the maximum."""
        places = [self.low, self.high]
        if self.bend < 0 < self.slope < -2 * self.bend:
            places.append(self.low - self.slope / (2 * self.bend) * (self.high - self.low))
        return max((self(x), x) for x in places)


def _list_exact_outputs(mechanism: Any) -> Rationals:
    """The exact numbers that a mechanism holds; where it holds none, those of its doubles."""
    held = (getattr(mechanism, name, None) for name in ("published_values", "bins", "outputs"))
    return read_rationals(next(each for each in held if each is not None), "outputs")


def _list_error_pieces(mechanism: Any, loss: str) -> Iterator[_Piece]:
    """The expected loss as a function of x, from left to right: a quadratic on a segment, where the law is a mixture of
    its ends' and outputs are not inside it or the loss is squared, else between them too."""
    outputs = _list_exact_outputs(mechanism)
    knots = sorted(outputs) if loss == "absolute" else []
    for segment in mechanism.segments:
        a, b = segment.low, segment.high
        ends = [*pairwise([a, *(o for o in knots if a < o < b), b])]
        places = [x for low, high in ends for x in (low, (low + high) / 2, high)]
        of_laws = (
            compute_expected_losses(loss, places, [law] * len(places), outputs)
            for law in (segment.left, segment.right)
        )
        mixed = [
            ((b - x) * p + (x - a) * q) / (b - a) for x, p, q in zip(places, *of_laws, strict=True)
        ]
        for at, (low, high) in enumerate(ends):
            yield _Piece(low, high, *mixed[3 * at : 3 * at + 3])


def _error_on_real_inputs(mechanism: Any, loss: str, data: Any) -> ExpectedError:
    if loss not in _REAL:
        must("loss", " or ".join(_REAL) + " on real inputs", repr(loss))
    pieces = [*_list_error_pieces(mechanism, loss)] if mechanism.segments else []
    worst, place = max((piece.maximum for piece in pieces), default=(None, None))
    stated = getattr(mechanism, "errors", None)
    if stated is not None:
        uniform, worst, place = stated(loss)
        if data is None or data == "uniform":
            return ExpectedError(
                loss, _describe_uniform(*mechanism.ends), uniform, worst, nearest_float(place)
            )
    where = None if place is None else nearest_float(place)
    if data is None or isinstance(data, (str, Density)):
        return ExpectedError(loss, *_integrate_error(mechanism, loss, data, pieces), worst, where)
    given, words = read_input_weights(data)
    mean = Distribution(given.values()).mean(
        [_error_at_input(mechanism, loss, pieces, x) for x in given]
    )
    return ExpectedError(loss, words, mean, worst, where)


def _integrate_error(
    mechanism: Any, loss: str, data: Any, pieces: list[_Piece]
) -> tuple[str, Fraction | float]:
    """The law in words, and the mean: exact for the uniform law, else integrated as the mechanism integrates."""
    low, high = (pieces[0].low, pieces[-1].high) if pieces else (-mechanism.c, mechanism.c)
    if data is None or (isinstance(data, str) and data.strip() == "uniform"):
        words = _describe_uniform(low, high)
        if pieces:
            return words, sum((piece.integral for piece in pieces), ZERO) / (high - low)
        law = density_named("uniform", float(high))
    else:
        if low != -high:
            must("data", "a column, or uniform, for inputs that are not in [-c, c]", repr(data))
        law = density_named(data, float(high))
        words = law.name
    return words, float(mechanism.mae(law) if loss == "absolute" else mechanism.mse(law))


def _describe_uniform(low: Fraction, high: Fraction) -> str:
    return f"uniform on [{nearest_float(low):g}, {nearest_float(high):g}]"


def _error_at_input(mechanism: Any, loss: str, pieces: list[_Piece], x: Any) -> Fraction:
    """The expected loss at one input; a float is the rational it is, or the knot it is nearest to."""
    if not pieces:
        return compute_expected_losses(
            loss, read_rationals([x], "data"), [mechanism.law(x)], _list_exact_outputs(mechanism)
        )[0]
    ends = [piece.low for piece in pieces] + [pieces[-1].high]
    at = read_real_input(x, ends[0], ends[-1], ends, "data")
    return pieces[min(bisect_right(ends, at), len(pieces)) - 1](at)
