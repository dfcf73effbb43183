"""The instances that solvers are compared on: programs of every model, each with a judge of the mechanism in a point.

A family has some when its `Family.programs` names a module with `instances() -> list[Instance]`. Instances are part of
a suite's version: changing, adding or removing one is a new version, so that tables of one version can be laid side by
side.
"""

from __future__ import annotations

import fnmatch
import importlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from workbench.errors import InvalidRequest, NotCertified, must
from workbench.exact.objects import Values
from workbench.pipeline.registry import list_builtin_families, list_families
from workbench.solvers.arrays import Vector
from workbench.solvers.program import Program

# suite -> (version, what it takes of the instances)
SUITES: dict[str, tuple[int, Callable[[Instance], bool]]] = {
    "default": (1, lambda instance: instance.suite != "library"),
    "small": (1, lambda instance: instance.suite == "small"),
    "library": (1, lambda instance: True),
}


BuiltProgram = tuple[Any, Values]  # a program, and the values of its parameters


@dataclass(frozen=True)
class Judged:
    """The mechanism in a solver's point, in exact arithmetic.

    claimed: what the program's answer stands for, (epsilon, delta) or, where δ is minimised, the objective as δ;
    exact: the same of the mechanism as returned; private: whether it keeps the claim exactly; certified: whether a
    repaired mechanism does, and what that one costs (None: no certificate).
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
    """One program at fixed numbers.

    name: unique, family first; model: in words; build: the Program and its parameter values; judge: from the point
    (columns,) and its objective; suite: "small" (also of the default suite), "default" or "library".
    parameters: what it was made of, in words; known: (bound, value) of the optimum, from elsewhere.
    """

    name: str
    model: str
    build: Callable[[], BuiltProgram]
    judge: Callable[[Vector, float], Judged] | None
    suite: str = "default"
    parameters: str = ""
    known_optimum: tuple[float | None, float | None] = (None, None)

    def program_at_values(self) -> Program:
        """The program at its parameter values, without parameters."""
        program, values = self.build()
        return Program(
            program.name,
            program.data(values),
            program.sense,
            program.variables,
            scale=program.scale,
        )


def select_instances(suite: str, pattern: str | None = None) -> list[Instance]:
    """The instances of a suite whose names match one of some comma-separated patterns ("noise-*,mvu-4").

    Those of other packages, which are no part of a version of the suite, are taken where a pattern matches their names.
    Raises InvalidRequest for an unknown suite, or when nothing matches.
    """
    InvalidRequest.check_choice(SUITES, "suite", suite)
    _, takes = SUITES[suite]
    listed = [
        instance
        for kind in (list_builtin_families() if pattern is None else list_families())
        if kind.programs is not None
        for instance in importlib.import_module(kind.programs).instances()
        if takes(instance)
    ]
    if pattern is None:
        return listed
    instances = [instance for instance in listed if matches_pattern(instance.name, pattern)]
    if not instances:
        must(
            "instances",
            f"patterns that match some of {', '.join(i.name for i in listed)}",
            repr(pattern),
        )
    return instances


def matches_pattern(name: str, pattern: str | None) -> bool:
    """Whether a name matches one of some comma-separated patterns; None matches every name."""
    return pattern is None or any(
        fnmatch.fnmatch(name, part.strip()) for part in pattern.split(",")
    )


def try_certify(
    certify: Callable[[], Any], loss: Callable[[Any], float | None]
) -> tuple[bool, float | None]:
    """(whether `certify` succeeded, the loss of what it made)."""
    try:
        return True, loss(certify())
    except NotCertified:
        return False, None
