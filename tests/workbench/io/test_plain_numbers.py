"""Test that every function that accepts numbers refuses masks, NaN, units and malformed texts."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

import workbench as wb
from workbench.data.intervals import read_bins, read_rationals
from workbench.exact.distribution import Distribution
from workbench.exact.integer_law import IntegerLaw
from workbench.mechanisms.additive import AdditiveNoise
from workbench.mechanisms.baselines.poisson_binomial import poisson_binomial
from workbench.mechanisms.channel import Channel
from workbench.mechanisms.dyadic_laplace.elias import encode as elias
from workbench.mechanisms.dyadic_laplace.randomness import LocalStream, SharedStream
from workbench.mechanisms.dyadic_laplace.stream import write_stream
from workbench.mechanisms.integer_noise import AdditiveIntegerNoise
from workbench.mechanisms.label_randomizers.label_randomizer import (
    LabelRandomizer,
    estimate_private_prior,
    project_counts,
)
from workbench.mechanisms.label_randomizers.randomized_response import rr_k_ary
from workbench.mechanisms.mechanism import sample
from workbench.mechanisms.piecewise_affine import PiecewiseAffine
from workbench.mechanisms.real_noise import AdditiveRealNoise

QUESTION = wb.ModuloNoise(n=1, max_shift=1)
NOISE = AdditiveNoise(QUESTION, [2, 1])
INTEGERS = AdditiveIntegerNoise(wb.IntegerNoise(1), IntegerLaw(first=-1, weights=[1, 2, 1]))
CLAMPED = AdditiveIntegerNoise(
    wb.IntegerNoise(1, clamp=(0, 4)), IntegerLaw(first=-1, weights=[1, 2, 1])
)
REALS = AdditiveRealNoise(wb.RealNoise(1), 1, IntegerLaw(first=-1, weights=[1, 2, 1]))
BINOMIAL = poisson_binomial(3, epsilon=1)
QUANTIZER = PiecewiseAffine.from_laws([-2, 2], [-3, 3], [[3, 1], [1, 3]])
LAPLACE = wb.DyadicLaplace(epsilon=1, ell=2)
SHARED = SharedStream(bytes(32), bytes(16))


class Lengths(np.ndarray):
    """A subclass of NumPy's arrays with a unit. NumPy would take its numbers and drop the unit."""

    unit = "m"


class Quantity:
    """A number or array with a unit, of a class that is not derived from NumPy's arrays."""

    units = "m"

    def __init__(self, numbers: object):
        self.numbers = numbers

    def __array__(self, dtype: object = None, copy: object = None) -> np.ndarray:
        return np.asarray(self.numbers, dtype=dtype)

    def __float__(self) -> float:
        return float(self.numbers)


# Containers that are no plain numbers, by description.
BAD = {
    "unit": np.array([0, 1]).view(Lengths),
    "units": Quantity([0, 1]),
    "list with units": [Quantity(0), Quantity(1)],
    "time span among numbers": np.array([1, np.timedelta64(1, "s")], dtype=object),
    "mask": np.ma.masked_array([1.0, 2.0], [False, True]),
    "mask of integers": np.ma.masked_array([0, 1], [False, True]),
    "list with a mask": [np.ma.masked_array([1.0], [True]), 1.0],
    "masked": [np.ma.masked, 1.0],
    "NaN": [1.0, np.nan],
    "time spans": np.array([1, 2], "timedelta64[s]"),
    "time span": [np.timedelta64(1, "s"), np.timedelta64(2, "s")],
    "dates": np.array(["2020-01-01", "2020-01-02"], "datetime64[D]"),
    "text with an underscore": ["1_0", "2"],
    "text of a full-width digit": ["\uff11", "2"],
    "complex": [1j, 2],
    "object": [object(), 1],
}

# Functions that read numbers, by the meaning of the numbers. Each is called with an entry of BAD.
READERS = {
    "labels": lambda bad: wb.Labels(bad),
    "prior": lambda bad: wb.Labels([1, 2], bad),
    "label set": lambda bad: LabelRandomizer(bad, epsilon=1, optimise=lambda labels, epsilon: None),
    "counts": lambda bad: estimate_private_prior(bad, Fraction(1)),
    "noisy counts": project_counts,
    "nearest prior": lambda bad: project_counts(bad, "simplex"),
    "inputs": QUANTIZER.sample,
    "inputs of a law": lambda bad: QUANTIZER.probabilities(bad, clip=True),
    "inputs of an error": QUANTIZER.error_at,
    "bins": lambda bad: read_bins(bad, Fraction(1), cover=False),
    "knots": lambda bad: read_rationals(bad, "knots"),
    "PMF": lambda bad: AdditiveNoise.from_pmf(QUESTION, bad),
    "weights": lambda bad: AdditiveNoise(QUESTION, bad),
    "masses": Distribution,
    "masses in floats": Distribution.from_floats,
    "rows": lambda bad: Channel.from_rows([bad, bad]),
    "loss of noise": lambda bad: NOISE.expected_loss(bad),
    "loss of a channel": lambda bad: Channel.from_rows([[1, 1]]).expected_loss([bad]),
    "answers": lambda bad: NOISE.publish(bad),
    "answers on the integers": lambda bad: INTEGERS.publish(bad),
    "clamped answers": lambda bad: CLAMPED.publish(bad),
    "answers on the reals": lambda bad: REALS.publish(bad),
    "answers of a Poisson binomial": lambda bad: BINOMIAL.publish(bad),
    "labels to publish": lambda bad: rr_k_ary(wb.Labels([1, 2]), 1).sample(bad),
    "file of a stream": lambda bad: write_stream(bad, LAPLACE, bytes(32)),
    "answer": lambda bad: sample(NOISE, 1, answer=bad),
    "shifts": lambda bad: wb.ModuloNoise(n=100, shifts=bad),
    "sizes": lambda bad: wb.ModuloNoise(sizes=bad, shifts=[(1, 1)]),
    "prior of a design": lambda bad: wb.design(
        QUESTION, epsilon=1, loss="prior-squared", prior=bad
    ),
    "stream": lambda bad: LAPLACE.encode(bad, SHARED, LocalStream()),
    "messages": lambda bad: LAPLACE.decode(bad, SHARED),
    "codewords": lambda bad: elias(bad, "gamma"),
}


@pytest.mark.parametrize("reader", READERS)
@pytest.mark.parametrize("bad", BAD)
def test_values_that_are_no_plain_numbers_are_refused(reader: str, bad: str):
    with pytest.raises(wb.InvalidRequest):
        READERS[reader](BAD[bad])


def test_lists_and_arrays_of_plain_numbers_are_accepted():
    """The test above would also pass if the functions refused every list or array."""
    assert project_counts([3, 1]).tolist() == [0.75, 0.25]
    assert estimate_private_prior(np.array([500, 1500]), Fraction(10)).sum() == pytest.approx(1)
    assert NOISE.expected_loss([0, 3]) == 1
    noise = AdditiveNoise.from_pmf(QUESTION, [Fraction(1, 3), Fraction(2, 3)])
    assert noise.exact_pmf[0] == Fraction(1, 3)
    assert NOISE.publish(np.array([0, 1, 1])).shape == (3,)
