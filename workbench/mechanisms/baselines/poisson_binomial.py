"""The Poisson binomial mechanism, and the base class of quantizers whose law is not affine.

Notation: inputs x are in [-c, c]; the mechanism has m outputs; θ is its parameter, in (0, 1/2).

    Poisson binomial (Chen et al. 2022), one input, pure ε:
        Z ~ Binomial(n, 1/2 + θ x/c),  published as B_Z = c (2 Z/n - 1)/(2 θ),
        m = n + 1 outputs, unbiased;
        ε = n ln((1 + 2θ)/(1 - 2θ)), reached by the two outermost outputs at x = ±c

Errors are integrated by 24-point Gauss-Legendre rules on short intervals and have 12 correct digits
or more. The value of ε is exact.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from workbench.data.intervals import read_half_width, read_inputs, read_real_input
from workbench.data.plain import read_integer
from workbench.errors import InvalidRequest, must
from workbench.exact.arrays import Vector
from workbench.exact.distribution import Distribution
from workbench.exact.numbers import Rationals, Real, log_upper_bound, read_number, read_positive
from workbench.exact.objects import Record
from workbench.exact.random_source import Source
from workbench.io.plain_figures import FigureData
from workbench.io.records import INTEGER, RATIO, RecordForm, raise_corrupt_entry
from workbench.mechanisms.affine_sampler import AffineSampler
from workbench.mechanisms.mechanism import (
    Budget,
    Budgets,
    Comparison,
    assign_budgets,
    compare_pairs,
)
from workbench.mechanisms.quantization_error import RealErrors
from workbench.mechanisms.shown_mechanism import ShownMechanism, affine_figure
from workbench.questions.density import Density
from workbench.questions.density import parse_density as density_of

_QUADRATURE_POINTS = 17  # The quadrature of a loss has these many even points, and the outputs.
_BIAS_POINTS = 4001  # The bias is the largest one over this many inputs, and beside every output.
_LEFT_OF_JUMP = 1e-12  # An input this far below an output lies before the jump there.
_DRAWN_POINTS = 201  # A law is drawn at this many inputs.
_MAX_FILE_OUTPUTS = 10_000  # A file with a mechanism of more outputs is refused.
_FORM = RecordForm(
    "The mechanism", {"kind": "poisson-binomial"}, outputs=INTEGER, theta=RATIO, c=RATIO
)


@dataclass(frozen=True, eq=False)
class NonAffine(RealErrors):
    """Base class of mechanisms for inputs x in [-c, c] whose p(x, i) is not affine in x.

    p(x, i) is the probability of output i at the input x.

    These are `PoissonBinomial` and `two_bin.BiasedQuantizer`.

    Attributes:
        bins: The outputs, exact, increasing.
        c: Half the width of the inputs, which are in [-c, c].
    """

    bins: Rationals
    c: Fraction

    name = "non-affine"

    @abstractmethod
    def _probabilities(self, x: Vector) -> Vector:
        """Compute p(x, i) for inputs x in [-c, c], shape (n,). Returns shape (n, m)."""

    @property
    @abstractmethod
    def epsilon(self) -> float:
        """Return the exact ε of pure privacy, rounded up."""

    def probabilities(self, x: ArrayLike, *, clip: bool = False) -> Vector:
        """Compute p(x, i). Shape x.shape + (m,).

        Args:
            x: The inputs, any shape.
            clip: Move inputs outside [-c, c] to its ends.

        Raises:
            InvalidRequest: If an input is outside the range and `clip` is not set.
        """
        values = read_inputs(x, -float(self.c), float(self.c), clip=clip)
        return self._probabilities(values.ravel()).reshape((*values.shape, self.m))

    def expected_loss(self, loss: Any = "absolute", density: Density | None = None) -> float:
        """Compute the expected error under a density.

        Args:
            loss: "absolute", "squared", or a number λ in [0, 1] for λ|e| + (1 - λ) e².
            density: The density of the inputs, default: uniform.
        """
        half_width = float(self.c)
        law = density_of("uniform" if density is None else density, half_width)
        # A uniform density has no `shape`, and then the quadrature uses three nodes an interval.
        # They are not enough for a curved law. A constant shape makes it use 24 nodes.
        law = replace(law, shape=law.shape or (lambda x: np.full(x.shape, 0.5)))
        x, w = law.quadrature(
            np.concatenate([self.outputs, np.linspace(-half_width, half_width, _QUADRATURE_POINTS)])
        )
        return math.fsum(w * self.error_at(np.clip(x, -half_width, half_width), loss))

    @property
    def bias(self) -> float:
        """Return the largest |E M(x) - x| over 4001 inputs x and both sides of every output."""
        half_width = float(self.c)
        # The law of a `BiasedQuantizer` may jump at an output.
        bin_sides = np.clip(
            np.concatenate([self.outputs - _LEFT_OF_JUMP, self.outputs]), -half_width, half_width
        )
        x = np.concatenate([np.linspace(-half_width, half_width, _BIAS_POINTS), bin_sides])
        return float(np.abs(self.probabilities(x) @ self.outputs - x).max())

    def drawing(self) -> FigureData:
        """Return p(x, i) against x at 201 inputs, as plain data."""
        half_width = float(self.c)
        x = np.linspace(-half_width, half_width, _DRAWN_POINTS)
        # `affine_figure` takes the laws at both ends of each segment between two inputs.
        return affine_figure(self.outputs, x, np.repeat(self.probabilities(x), 2, axis=0)[1:-1])


@dataclass(frozen=True, eq=False)
class PoissonBinomial(NonAffine, ShownMechanism):
    """The Poisson binomial mechanism. Build it with `poisson_binomial`.

    Attributes:
        theta: The parameter θ, in (0, 1/2).
    """

    theta: Fraction

    name = "PBM"
    not_certifiable = (
        "The Poisson binomial law is a polynomial in the input, and a certificate holds laws that "
        "are affine between knots; its audit is exact all the same."
    )
    segments = None  # The law is a polynomial in the input.

    # Members of `Mechanism`.

    def law(self, x: Any) -> Distribution:
        """Return the exact law at a rational x in [-c, c].

        Args:
            x: A number; a float is the rational that it is.

        Raises:
            InvalidRequest: If x is no number, or outside [-c, c].
        """
        n = self.m - 1
        p = Fraction(1, 2) + self.theta * read_real_input(x, -self.c, self.c) / self.c
        return Distribution([math.comb(n, k) * p**k * (1 - p) ** (n - k) for k in range(n + 1)])

    def budgets(self, epsilon: Budget) -> Budgets:
        """Return one budget for both orders of the two outermost inputs.

        Args:
            epsilon: One number >= 0, or a mapping (0, 1) or (1, 0) -> number.

        Raises:
            InvalidRequest: If a budget is negative or no number, or if a mapping names another pair
                or leaves one out.
        """
        return assign_budgets(((0, 1), (1, 0)), epsilon)

    def comparisons(self) -> Iterator[Comparison]:
        """Yield the comparisons of the laws at -c and c, both ways.

        They decide every ratio and hockey stick: binomial laws have a monotone likelihood ratio in
        p, so their worst set is {Z >= k} or {Z <= k}, whose mass is monotone in p.
        """
        return compare_pairs(
            (self.law(-self.c), self.law(self.c)),
            pairs=((0, 1), (1, 0)),
            name=lambda end: f"x={'-+'[end]}c",  # Law 0 is that of -c, and law 1 that of c.
        )

    def sample(self, x: ArrayLike, *, clip: bool = False, insecure_seed: int | None = None) -> Any:
        """Publish every number of x independently and exactly.

        The position Z of the output is the sum of m - 1 Bernoulli draws of probability 1/2 + θ x/c.

        Args:
            x: The inputs, any shape.
            clip: Move inputs outside [-c, c] to its ends.
            insecure_seed: A seed >= 0 that makes the draws repeatable, for experiments only.
                Default: the randomness of the operating system.

        Returns:
            A float for a scalar, else an array of x's shape.

        Raises:
            InvalidRequest: If x has an entry that is no finite number, or one outside [-c, c]
                without `clip`, or if insecure_seed is negative.
        """
        values = read_inputs(x, -float(self.c), float(self.c), clip=clip)
        # The probability of heads is 1/2 - θ at -c and 1/2 + θ at c.
        half = Fraction(1, 2)
        ends = tuple(Distribution([half - p, half + p]) for p in (-self.theta, self.theta))
        coin = AffineSampler((-self.c, self.c), ends, Source(insecure_seed))
        heads = np.sum([coin.positions(values.reshape(-1)) for _ in range(self.m - 1)], axis=0)
        published_values = self.outputs[heads].reshape(values.shape)
        if published_values.ndim == 0:
            return float(published_values)
        return published_values

    publish = sample

    def describe(self) -> str:
        """Describe the mechanism in one line."""
        domain = f"[-{float(self.c):g}, {float(self.c):g}]"
        return f"The Poisson binomial mechanism on {domain} with {self.m} outputs"

    def to_dict(self) -> Record:
        """Return a JSON-ready record, which `from_dict` reads."""
        return _FORM.write(self, outputs=self.m)

    @classmethod
    def from_dict(cls, data: Any) -> PoissonBinomial:
        """Return the mechanism written by `to_dict`, which claims no privacy: audit it.

        Args:
            data: The record, as parsed from JSON.

        Raises:
            CorruptFile: If the record has another form, or more than 10,000 outputs.
            InvalidRequest: If the record has fewer than 2 outputs, θ outside (0, 1/2), or c outside
                [1e-100, 1e100].
        """
        fields = _FORM.read(data)
        if fields["outputs"] > _MAX_FILE_OUTPUTS:
            raise_corrupt_entry("outputs", f"at most {_MAX_FILE_OUTPUTS}")
        return poisson_binomial(fields.pop("outputs"), **fields)

    # Numbers.

    def _probabilities(self, x: Vector) -> Vector:
        """Return Pr[j|x] in floats. x has shape (k,), the result (k, m)."""
        n = self.m - 1
        p = 0.5 + float(self.theta) * x[:, None] / float(self.c)
        k = np.arange(n + 1)
        binomials = np.array([math.comb(n, i) for i in range(n + 1)], dtype=float)
        return binomials * p**k * (1 - p) ** (n - k)

    @property
    def ratio(self) -> Fraction:
        """Return e^ε = ((1 + 2θ)/(1 - 2θ))^n, exact."""
        return Fraction((1 + 2 * self.theta) / (1 - 2 * self.theta)) ** (self.m - 1)

    @property
    def epsilon(self) -> float:
        """Return n ln((1 + 2θ)/(1 - 2θ)), rounded up."""
        return log_upper_bound(self.ratio)


def poisson_binomial(
    m: int, *, theta: Real | None = None, epsilon: Real | None = None, c: Real = 1
) -> PoissonBinomial:
    """Build the Poisson binomial mechanism with m outputs.

    Args:
        m: The number of outputs, >= 2.
        theta: θ in (0, 1/2); give this or epsilon.
        epsilon: Use the largest ε-private θ, ½ tanh(ε/(2(m-1))), rounded down.
        c: Half the width of the inputs, which are in [-c, c].

    Returns:
        The mechanism.

    Raises:
        InvalidRequest: If m is below 2, if both or neither of theta and epsilon are given, if theta
            is outside (0, 1/2), if epsilon is not > 0, or if c is not in [1e-100, 1e100].
    """
    read_integer(m, "m", 2)
    if (theta is None) == (epsilon is None):
        raise InvalidRequest("theta or epsilon must be given, and not both.")
    half_width = read_half_width(c)
    if theta is not None:
        exact_theta = read_number(theta, "theta", "a number in (0, 1/2)")
    else:
        budget = float(read_positive(epsilon, "epsilon"))
        # The last factor exceeds the rounding errors, so θ is rounded down.
        exact_theta = Fraction(math.tanh(budget / (2 * (m - 1))) / 2 * (1 - 2.0**-50))
    if not 0 < exact_theta < Fraction(1, 2):
        must("theta", "a number in (0, 1/2)", theta)
    shares = [Fraction(2 * i, m - 1) - 1 for i in range(m)]
    outputs = tuple(half_width * share / (2 * exact_theta) for share in shares)
    return PoissonBinomial(outputs, half_width, exact_theta)
