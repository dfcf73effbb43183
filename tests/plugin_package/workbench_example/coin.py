"""A mechanism as a plug-in: randomized response on the answers 0 and 1 (Warner 1965).

Pr[x | x] = 1 - flip,  Pr[1 - x | x] = flip

It implements the methods of `workbench.mechanisms.mechanism.Mechanism` without deriving from it.
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from workbench.errors import InvalidRequest
from workbench.exact.distribution import Distribution
from workbench.exact.random_source import Source
from workbench.exact.sampler import Sampler
from workbench.mechanisms.mechanism import ColumnInputs, Comparison, assign_budgets


class Coin:
    """A coin that publishes the wrong answer with the rational probability `flip`."""

    kind = "coin"
    inputs = (0, 1)
    outputs = (0, 1)
    # The two laws are all laws: there are no real inputs between them.
    segments = ()
    # Both orders of the two neighbours are compared.
    is_one_sided = False
    # `workbench privatise noise` publishes columns of these numbers.
    column_inputs = ColumnInputs("noise", 0.0, 1.0, "0 or 1", is_whole=True)
    # Sentences that the report of a published column contains.
    column_cautions = ("One coin for every row.",)

    def __init__(self, flip):
        """Make a coin. flip: the probability of the wrong answer, a number or a text like "1/4"."""
        self.flip = Fraction(flip)

    def law(self, x):
        """Return the law of the output at the answer x."""
        if x not in self.inputs:
            InvalidRequest.must("answer", "0 or 1", x)
        if x == 0:
            return Distribution([1 - self.flip, self.flip])
        return Distribution([self.flip, 1 - self.flip])

    def comparisons(self):
        """Yield the two laws in both orders, as an audit compares them."""
        for i, j in ((0, 1), (1, 0)):
            yield Comparison(
                (i, j),
                self.law(i),
                self.law(j),
                lambda k, i=i, j=j: (f"Pr[{k}|{i}]", f"Pr[{k}|{j}]"),
            )

    # Either comparison may have the largest ratio, so neither is left out.
    extremes = comparisons

    def budgets(self, epsilon):
        """Return ε for each of the two comparisons."""
        return assign_budgets([(0, 1), (1, 0)], epsilon)

    def draw(self, x, count, source):
        """Draw `count` outputs at the answer x. Shape (count,)."""
        return Sampler(self.law(x), source).draw(count)

    def published_error(self):
        """Return the error that the report of a published column shows."""
        return {"probability of a wrong answer": float(self.flip)}

    def publish(self, answers, *, insecure_seed=None):
        """Draw one output for each answer (n,), 0 or 1. Shape (n,)."""
        # An output of the input 0 is 1 exactly if the coin flips the answer.
        flips = Sampler(self.law(0), Source(insecure_seed)).draw(answers.size)
        return np.asarray(answers) ^ flips

    def with_max_distance(self, distance):
        """Return the same mechanism: the answers 0 and 1 have only one distance."""
        return self

    def describe(self):
        """Describe the mechanism in one sentence."""
        return f"A coin that flips an answer with probability {self.flip}"

    def to_dict(self):
        """Return the mechanism as an entry of a certificate file."""
        return {"kind": self.kind, "flip": str(self.flip)}

    @classmethod
    def from_dict(cls, data):
        """Read the mechanism from such an entry."""
        return cls(data["flip"])
