"""List the programs on which solvers are compared. They come from every model.

An *instance* is one program with fixed numbers. Most instances can also *judge* a solver's point:
convert it to a mechanism and measure its privacy in exact arithmetic. A *suite* is a named list of
instances with a version number. If an instance is changed, added or removed, the version is raised,
so that tables of one version are comparable.

A family has instances if its `Family.programs` names a module with `instances() -> list[Instance]`.
"""

from __future__ import annotations

import fnmatch
import importlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

from workbench.errors import InvalidRequest, NotCertified, must
from workbench.exact.objects import Values
from workbench.pipeline.registry import list_builtin_families, list_families
from workbench.solvers.arrays import Vector
from workbench.solvers.program import Program


class Suite(NamedTuple):
    """A named set of instances.

    Attributes:
        version: Number that is raised if an instance is changed, added or removed.
        has_instance: Function that returns whether an instance is in the suite.
    """

    version: int
    has_instance: Callable[[Instance], bool]


SUITES: dict[str, Suite] = {
    "default": Suite(version=1, has_instance=lambda instance: instance.suite != "library"),
    "small": Suite(version=1, has_instance=lambda instance: instance.suite == "small"),
    "library": Suite(version=1, has_instance=lambda instance: True),
}

BuiltProgram = tuple[Any, Values]  # A program, and the values of its parameters.


@dataclass(frozen=True)
class Judged:
    """The mechanism of a solver's point, measured in exact arithmetic.

    Attributes:
        claimed_epsilon: ε that the program requires.
        claimed_delta: δ that the program requires, or the objective if δ is minimised.
        exact_epsilon: ε of the mechanism as returned.
        exact_delta: δ of the mechanism as returned. None if the program requires δ = 0 and the
            family does not report it.
        private: Whether the mechanism as returned satisfies the claim.
        certified: Whether a repaired mechanism satisfies it.
        certified_objective: Expected loss of the repaired mechanism, or its δ if δ is minimised.
            None without a certificate, if the loss exceeds the limit of the program, or if there is
            no objective to compare.
    """

    claimed_epsilon: float
    claimed_delta: float
    exact_epsilon: float
    exact_delta: float | None
    private: bool
    certified: bool
    certified_objective: float | None


@dataclass(frozen=True)
class Instance:
    """One program with fixed parameter values.

    Attributes:
        name: Unique name, which begins with the family.
        model: Description of the model.
        build: Function that returns the program and its parameter values.
        judge: Function of a point, of shape (columns,), and of its objective that measures the
            mechanism. None if the program has no mechanism.
        suite: "small" (also part of the default suite), "default" or "library".
        parameters: Description of the parameters.
        known_optimum: (bound, value) of the optimum, from another source.
    """

    name: str
    model: str
    build: Callable[[], BuiltProgram]
    judge: Callable[[Vector, float], Judged] | None
    suite: str = "default"
    parameters: str = ""
    known_optimum: tuple[float | None, float | None] = (None, None)

    def program_at_values(self) -> Program:
        """Return the program in which numbers replace the parameters."""
        program, values = self.build()
        return Program(
            program.name,
            program.data(values),
            program.sense,
            program.variables,
            scale=program.scale,
        )


def select_instances(suite: str, pattern: str | None = None) -> list[Instance]:
    """Return the instances of a suite.

    Args:
        suite: Name of the suite.
        pattern: Comma-separated patterns of names, such as "noise-*,mvu-4". Instances of other
            packages, which belong to no version of the suite, are included if a pattern matches
            them. None: all instances of this package.

    Raises:
        InvalidRequest: The suite is unknown, or no name matches.
    """
    InvalidRequest.check_choice(SUITES, "suite", suite)
    is_in_suite = SUITES[suite].has_instance
    families = list_builtin_families() if pattern is None else list_families()
    instances: list[Instance] = []
    for family in families:
        if family.programs is not None:
            all_instances = importlib.import_module(family.programs).instances()
            instances += [instance for instance in all_instances if is_in_suite(instance)]
    if pattern is None:
        return instances
    matching = [instance for instance in instances if matches_pattern(instance.name, pattern)]
    if not matching:
        names = ", ".join(instance.name for instance in instances)
        must("instances", f"patterns that match some of {names}", repr(pattern))
    return matching


def matches_pattern(name: str, pattern: str | None) -> bool:
    """Return whether a name matches one of some patterns.

    Args:
        name: The name.
        pattern: Comma-separated patterns. None matches every name.
    """
    if pattern is None:
        return True
    return any(fnmatch.fnmatch(name, part.strip()) for part in pattern.split(","))


def try_certify(
    certify: Callable[[], Any], loss: Callable[[Any], float | None]
) -> tuple[bool, float | None]:
    """Return whether a mechanism was certified, and its objective (None without a certificate).

    Args:
        certify: Function that returns the certificate or the certified mechanism, or raises
            NotCertified.
        loss: Function from that object to the objective, or to None.
    """
    try:
        return True, loss(certify())
    except NotCertified:
        return False, None
