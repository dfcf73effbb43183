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
        self.flip = Fraction(flip)

    def law(self, x):
        if x not in self.inputs:
            InvalidRequest.must("answer", "0 or 1", x)
        if x == 0:
            return Distribution([1 - self.flip, self.flip])
        return Distribution([self.flip, 1 - self.flip])

    def comparisons(self):
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
        return assign_budgets([(0, 1), (1, 0)], epsilon)

    def draw(self, x, count, source):
        return Sampler(self.law(x), source).draw(count)

    def published_error(self):
        return {"probability of a wrong answer": float(self.flip)}

    def publish(self, answers, *, insecure_seed=None):
        # An output of the input 0 is 1 exactly if the coin flips the answer.
        flips = Sampler(self.law(0), Source(insecure_seed)).draw(answers.size)
        return np.asarray(answers) ^ flips

    def with_max_distance(self, distance):
        return self

    def describe(self):
        return f"A coin that flips an answer with probability {self.flip}"

    def to_dict(self):
        return {"kind": self.kind, "flip": str(self.flip)}

    @classmethod
    def from_dict(cls, data):
        return cls(data["flip"])
