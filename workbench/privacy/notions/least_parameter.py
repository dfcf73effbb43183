"""Notions with one number as their budget, whose measurement is the least number that a pair of laws has."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

from workbench.exact.numbers import positive
from workbench.privacy.notions.laws import Laws
from workbench.privacy.notions.notion import Names, Notion, Result, Values

__all__ = ["LeastParameter"]


class LeastParameter(Notion):
    """A notion whose `parameters` are one number >= 0."""

    convex = True

    @abstractmethod
    def least(self, measured: Any) -> float:
        """The least budget that holds, rounded up; inf where none does."""

    @abstractmethod
    def least_words(self, measured: Any) -> str:
        """The same in words, with what is known of it."""

    def parse(self, parameter: str, value: Any) -> Fraction:
        """A number >= 0."""
        return positive(value, parameter, or_zero=True)

    def worst(self, results: Sequence[Result]) -> Result:
        """The one that needs the largest budget."""
        return max(results, key=lambda result: self.least(result.measured))

    def most_broken(self, results: Sequence[Result]) -> Result:
        """The one that needs most beyond its own budget."""
        (name,) = self.parameters
        return max(results, key=lambda result: self.least(result.measured) - float(result.values[name]))

    def finding(self, worst: Any, values: Values, budget: str) -> str:
        """The least budget beside the one asked."""
        text = "unbounded" if worst.unbounded else self.least_words(worst)
        return f"the least {self.title} {self.parameters[0]} is {text}, asked {budget}"

    def witness(self, laws: Laws, result: Result, names: Names) -> str | None:
        """The pair of laws: what breaks the budget is no single outcome."""
        high, low = names(0)
        return f"between the laws of {high} and {low}"
