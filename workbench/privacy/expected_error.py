"""Compute the exact expected loss of a mechanism: its mean over data, and its maximum.

Notation: ℓ(o, x) is the loss of the output o for the input x, η is the value of additive noise, and
p_i(x) is the probability of the i-th output B_i of a mechanism on real inputs.

    inputs         expected loss at x                     mean and largest value
    finitely many  Σ_o Pr[o | x] ℓ(o, x)                  over all inputs; any loss of
                                                          `workbench.privacy.objective`
    all numbers    mean of ℓ(η, 0) over additive noise    the same at every input
    in a range     Σ_i p_i(x) |B_i - x| or (B_i - x)²     over a quadratic in x on every piece

A piece lies between two consecutive knots or outputs. There p_i(x) = u_i + v_i x, with Σ_i v_i = 0
because probabilities add up to 1. So both losses are quadratics on a piece: the cubic term
Σ_i v_i x³ of the squared loss is 0. Three values determine a quadratic.
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
from workbench.questions.density import Density, parse_density
from workbench.questions.labels import Labels

_REAL_LOSSES = ("absolute", "squared")
_MAX_CELLS = 4_000_000  # More pairs of input and output are refused; this many take some seconds.


@dataclass(frozen=True)
class ExpectedError:
    """The expected loss of a mechanism.

    Attributes:
        loss: Name of the loss, such as "absolute" or "huber:2".
        data: Description of the data.
        mean_error: Mean over the data: a Fraction if it is exact, a float (12 digits) if the law of
            the data is integrated numerically.
        worst_error: Exact upper bound on the largest expected loss of any input. None if no finite
            computation decides it for this law.
        worst_input: Input with this loss. On real inputs, the point at which it is approached.
    """

    loss: str
    data: str
    mean_error: Fraction | float
    worst_error: Fraction | None
    worst_input: Any

    def to_dict(self) -> Record:
        """Return the errors as data for JSON, rounded up.

        Returns:
            loss, data, mean_error, exact (whether the mean is exact up to this rounding),
            worst_error (None if unknown) and worst_input.
        """
        mean_error = self.mean_error
        return {
            "loss": self.loss,
            "data": self.data,
            "mean_error": mean_error if isinstance(mean_error, float) else round_up(mean_error),
            "exact": not isinstance(mean_error, float),
            "worst_error": None if self.worst_error is None else round_up(self.worst_error),
            "worst_input": self.worst_input,
        }

    def facts(self) -> Facts:
        """Return the errors as rows (label, text) of a report."""
        values = self.to_dict()
        rows = [("data", self.data), (f"mean {self.loss} loss", repr(values["mean_error"]))]
        if self.worst_error is not None:
            place = ""
            if self.worst_input is not None:
                place = f" at {self.worst_input}"
            rows.append((f"largest {self.loss} loss", f"{values['worst_error']!r}{place}"))
        return rows


def compute_expected_error(
    mechanism: Any, loss: str = "absolute", data: Any = None
) -> ExpectedError:
    """Compute the exact expected loss of a mechanism on data, and on its worst input.

    Args:
        mechanism: A mechanism, or a Design or Certificate of one.
        loss: absolute, squared, error-rate, pinball:τ or huber:h. On real inputs only absolute and
            squared.
        data: A column of inputs, a CSV file with one column, a mapping input -> weight, or
            `Labels`. On real inputs also "uniform", "normal:MU,SIGMA" or a Density. Default: the
            prior of a label randomizer, otherwise equally likely inputs.

    Raises:
        InvalidRequest: The loss or the data do not fit the mechanism.
    """
    subject: Any = as_mechanism(mechanism)
    subject = getattr(subject, "real_law", subject)
    question = getattr(mechanism, "question", None)
    if data is None and isinstance(question, Labels):
        data = question
    data = read_data_file(data)
    # Noise on all integers or reals has neither a list of inputs nor pieces of a range of inputs.
    has_pieces = subject.segments is None or len(subject.segments) > 0
    if subject.inputs is None and not has_pieces:
        return _error_of_line_noise(subject, loss, data)
    if can_publish_reals(subject):
        return _error_on_real_inputs(subject, loss, data)
    return _error_on_finite_inputs(subject, loss, data)


def _error_of_line_noise(noise: Any, loss: str, data: Any) -> ExpectedError:
    """Compute the expected loss of noise on all integers or all reals."""
    if data is not None:
        must(
            "data",
            "left out, because noise on all numbers has the same expected loss at every input",
            repr(data),
        )
    clamp = getattr(noise.question, "clamp", None)
    if clamp is not None:
        mean_error = noise.clamped_loss(loss)
        worst_error = noise.clamped_loss(loss, weights=None)
        range_text = f"uniform on {format_range(clamp)}"
        return ExpectedError(
            loss,
            data=range_text,
            mean_error=mean_error,
            worst_error=worst_error,
            worst_input=None,
        )
    error: Fraction = noise.loss(loss)
    return ExpectedError(
        loss,
        data="the same for every input",
        mean_error=error,
        worst_error=error,
        worst_input=None,
    )


def _error_on_finite_inputs(mechanism: Mechanism, loss: str, data: Any) -> ExpectedError:
    """Compute the expected loss of a mechanism with finitely many inputs."""
    labels = getattr(mechanism, "axis_labels", None)  # Exact labels of the rows and columns.
    published_values = mechanism.outputs if labels is None else labels[1]
    inputs = [*map(_to_python_point, mechanism.inputs)]
    outputs = [*map(_to_python_point, published_values)]
    cell_count = len(inputs) * len(outputs)
    if cell_count > _MAX_CELLS:
        must("inputs times outputs", f"at most {_MAX_CELLS} for expected losses", cell_count)
    laws = [mechanism.law(x) for x in inputs]
    if all(isinstance(value, (int, float, Fraction)) for value in (*inputs, *outputs)):
        exact_inputs = read_rationals(inputs, "inputs")
        exact_outputs = read_rationals(outputs, "outputs")
        losses = compute_expected_losses(loss, exact_inputs, laws, exact_outputs)
    else:
        if loss != "error-rate":
            # A vector or a text is either right in every part, or wrong.
            subject = "inputs and outputs that are no numbers"
            if labels is None:
                subject = "a vector query"
            must("loss", f"error-rate for {subject}", repr(loss))
        positions = {output: position for position, output in enumerate(outputs)}
        losses = []
        for x, law in zip(inputs, laws, strict=True):
            losses.append(1 - (law[positions[x]] if x in positions else ZERO))
    weights, data_text = _weigh_inputs_of(mechanism, inputs, data)
    worst_index = max(range(len(losses)), key=losses.__getitem__)
    mean_error = Distribution(weights).mean(losses)
    worst_input = inputs[worst_index]
    if labels is not None:
        worst_input = format_point(worst_input)
    return ExpectedError(
        loss, data_text, mean_error, worst_error=losses[worst_index], worst_input=worst_input
    )


def _to_python_point(point: Any) -> Any:
    """Convert an input or a published value of NumPy to Python. A vector becomes a tuple."""
    value = point
    if isinstance(point, (np.generic, np.ndarray)):
        value = point.tolist()
    if isinstance(value, list):
        return tuple(value)
    return value


def _weigh_inputs_of(
    mechanism: Mechanism, inputs: list[Any], data: Any
) -> tuple[list[Fraction], str]:
    """Return the weight of every input, and a description of the data. Raises InvalidRequest."""
    if data is None:
        data = getattr(mechanism, "labels", None)
    if data is None:
        return [ONE] * len(inputs), f"{len(inputs)} inputs, equally likely"
    if isinstance(data, Labels):
        prior = map(Fraction, data.prior.tolist())
        weights = dict(zip(data.values.tolist(), prior, strict=True))
        description = repr(data)
    else:
        weights, description = read_input_weights(data)
    has_labels = getattr(mechanism, "axis_labels", None) is not None
    shown_inputs = inputs
    if has_labels:
        shown_inputs = [*map(format_point, inputs)]
    return align_input_weights(weights, inputs, shown_inputs), description


class _Piece:
    """The expected loss as a function of the input x in an interval. It is a quadratic in x.

    It is left + slope t + bend t², with t = (x - low) / (high - low) in [0, 1].

    Args:
        low: Left end of the interval.
        high: Right end of the interval.
        left: The expected loss at the left end.
        middle: The expected loss in the middle.
        right: The expected loss at the right end.

    Attributes:
        integral: Integral of the expected loss over the interval.
    """

    def __init__(
        self, low: Fraction, high: Fraction, left: Fraction, middle: Fraction, right: Fraction
    ) -> None:
        self.low = low
        self.high = high
        self.left = left
        self.bend = 2 * (left + right - 2 * middle)
        self.slope = right - left - self.bend
        # Simpson's rule is exact for a quadratic.
        self.integral = (high - low) / 6 * (left + 4 * middle + right)

    def __call__(self, x: Fraction) -> Fraction:
        t = (x - self.low) / (self.high - self.low)
        return self.left + t * (self.slope + t * self.bend)

    @property
    def maximum(self) -> RationalPair:
        """Return (largest expected loss, input at which it is reached)."""
        places = [self.low, self.high]
        # A concave quadratic with its vertex inside the interval, at t = -slope / (2 bend).
        if self.bend < 0 < self.slope < -2 * self.bend:
            places.append(self.low - self.slope / (2 * self.bend) * (self.high - self.low))
        return max((self(x), x) for x in places)


def _list_exact_outputs(mechanism: Any) -> Rationals:
    """List the outputs of a mechanism as exact numbers. Floats count as their binary values."""
    for name in ("published_values", "bins", "outputs"):
        outputs = getattr(mechanism, name, None)
        if outputs is not None:
            return read_rationals(outputs, "outputs")
    raise AssertionError("A mechanism has outputs.")


def _list_error_pieces(mechanism: Any, loss: str) -> Iterator[_Piece]:
    """Yield the pieces of the expected loss, from left to right.

    Between two knots the law is a mixture of two end laws. The absolute loss also changes its
    formula at outputs, so pieces end there as well.
    """
    outputs = _list_exact_outputs(mechanism)
    break_points = []
    if loss == "absolute":
        break_points = sorted(outputs)
    for segment in mechanism.segments:
        a = segment.low
        b = segment.high
        inner_points = [point for point in break_points if a < point < b]
        intervals = [*pairwise([a, *inner_points, b])]
        places = []
        for low, high in intervals:
            places += [low, (low + high) / 2, high]
        left_losses = compute_expected_losses(loss, places, [segment.left] * len(places), outputs)
        right_losses = compute_expected_losses(loss, places, [segment.right] * len(places), outputs)
        values = []
        for x, left, right in zip(places, left_losses, right_losses, strict=True):
            values.append(((b - x) * left + (x - a) * right) / (b - a))
        for position, (low, high) in enumerate(intervals):
            yield _Piece(low, high, *values[3 * position : 3 * position + 3])


def _error_on_real_inputs(mechanism: Any, loss: str, data: Any) -> ExpectedError:
    """Compute the expected loss of a mechanism on real inputs."""
    if loss not in _REAL_LOSSES:
        must("loss", " or ".join(_REAL_LOSSES) + " on real inputs", repr(loss))
    pieces = []
    if mechanism.segments:
        pieces = [*_list_error_pieces(mechanism, loss)]
    worst_error, place = max((piece.maximum for piece in pieces), default=(None, None))
    compute_errors = getattr(mechanism, "errors", None)
    if compute_errors is not None:
        uniform_error, worst_error, place = compute_errors(loss)
        if data is None or data == "uniform":
            range_text = _describe_uniform(*mechanism.ends)
            return ExpectedError(
                loss,
                data=range_text,
                mean_error=uniform_error,
                worst_error=worst_error,
                worst_input=nearest_float(place),
            )
    worst_input = None
    if place is not None:
        worst_input = nearest_float(place)
    if data is None or isinstance(data, (str, Density)):
        description, mean_error = _integrate_error(mechanism, loss, data, pieces)
        return ExpectedError(
            loss,
            data=description,
            mean_error=mean_error,
            worst_error=worst_error,
            worst_input=worst_input,
        )
    weights, description = read_input_weights(data)
    losses = [_error_at_input(mechanism, loss, pieces, x) for x in weights]
    exact_mean = Distribution(weights.values()).mean(losses)
    return ExpectedError(
        loss,
        data=description,
        mean_error=exact_mean,
        worst_error=worst_error,
        worst_input=worst_input,
    )


def _integrate_error(
    mechanism: Any, loss: str, data: Any, pieces: list[_Piece]
) -> tuple[str, Fraction | float]:
    """Return a description of the law of the data, and the mean error.

    The mean is exact for the uniform law. For other laws the mechanism integrates numerically.
    """
    if pieces:
        low = pieces[0].low
        high = pieces[-1].high
    else:
        low = -mechanism.c
        high = mechanism.c
    if data is None or (isinstance(data, str) and data.strip() == "uniform"):
        description = _describe_uniform(low, high)
        if pieces:
            integral = sum((piece.integral for piece in pieces), ZERO)
            return description, integral / (high - low)
        law = parse_density("uniform", float(high))
    else:
        if low != -high:
            must("data", "a column, or uniform, for inputs that are not in [-c, c]", repr(data))
        law = parse_density(data, float(high))
        description = law.name
    mean_error = mechanism.mae(law) if loss == "absolute" else mechanism.mse(law)
    return description, float(mean_error)


def _describe_uniform(low: Fraction, high: Fraction) -> str:
    """Describe inputs that are uniform on an interval."""
    return f"uniform on [{nearest_float(low):g}, {nearest_float(high):g}]"


def _error_at_input(mechanism: Any, loss: str, pieces: list[_Piece], x: Any) -> Fraction:
    """Return the expected loss at one input.

    A float counts as its exact binary value, or as the knot whose nearest float it is.
    """
    if not pieces:
        inputs = read_rationals([x], "data")
        outputs = _list_exact_outputs(mechanism)
        laws = [mechanism.law(x)]
        (expected_loss,) = compute_expected_losses(loss, inputs, laws, outputs)
        return expected_loss
    ends = [piece.low for piece in pieces] + [pieces[-1].high]
    exact_input = read_real_input(x, ends[0], high=ends[-1], knots=ends, name="data")
    position = min(bisect_right(ends, exact_input), len(pieces)) - 1
    return pieces[position](exact_input)
