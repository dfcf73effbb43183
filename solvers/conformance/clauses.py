"""The decorator `clause` of the backends' contract, and the comparisons that clauses use.

    @clause("bounds", "lp", option="gap")
    def test_bound(self) -> None:
        \"\"\"Return a bound that is at most the optimum.\"\"\"
        require_close("bound", self.solve(program).bound, 3.0, self.accuracy)

A clause that does not apply raises `unittest.SkipTest`. pytest also understands this error, so this
package needs no test runner.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, ClassVar, TypeVar
from unittest import SkipTest

import numpy as np

from workbench.solvers.backend import Options, get_backend
from workbench.solvers.conformance import instances
from workbench.solvers.contract import Backend, Capabilities, Licence
from workbench.solvers.program import Program
from workbench.solvers.solution import PointStatus, Solution, Termination

_C = TypeVar("_C", bound="Contract")

# Label -> state of the licence. Finding it out may take seconds.
_licences: dict[str, Licence] = {}


class ContractBroken(AssertionError):
    """A backend breaks a clause.

    The message names the clause, its rule and what the backend did.
    """


class Contract:
    """A backend under test, and what the clauses need to know about it.

    A test of a backend is a subclass of `BackendContract` that sets these attributes.

    Attributes:
        label: the backend as a user writes it: "highs", "ortools:glop".
        backend_class: its class. Default: the class that is registered under the label.
        accuracy: largest accepted absolute error of objective, point and dual values. The default
            suits solvers that return vertices.
        excluded: name of a clause's method -> the reason why the backend cannot pass it.
        integer_reach: largest absolute value of an integer column that the backend searches. If the
            column's bounds admit a larger value, the backend returns NUMERICAL.
        ample_seconds: a time limit that no solve of a small program reaches.
        has_interruption: whether Ctrl-C reaches the solver through
            `workbench.solvers.interruption.Interruption`.
        endless_lp: size of a dense LP that keeps the solver busy for many seconds.
        endless_options: native options with which the solver needs this time.
    """

    label: ClassVar[str]
    backend_class: ClassVar[type[Backend] | None] = None
    accuracy: ClassVar[float] = 1e-7
    excluded: ClassVar[Mapping[str, str]] = {}
    integer_reach: ClassVar[float] = np.inf
    ample_seconds: ClassVar[float] = 1.0
    has_interruption: ClassVar[bool] = False
    endless_lp: ClassVar[int] = 1500
    endless_options: ClassVar[Mapping[str, Any]] = {}

    def __init_subclass__(cls, **arguments: Any) -> None:
        """Refuse exclusions of clauses that do not exist, and exclusions without a reason."""
        super().__init_subclass__(**arguments)
        for name, reason in cls.excluded.items():
            if not hasattr(cls, name) or not reason:
                raise TypeError(
                    "excluded must be names of tests of the contract with reasons."
                    f" Got {name}: {reason!r}."
                )

    def solver(self) -> Backend:
        """Return the backend under test."""
        if self.backend_class is None:
            return get_backend(self.label)
        # The text after the colon selects a solver of the library, such as glop in ortools:glop.
        solver_name = self.label.partition(":")[2]
        return self.backend_class(solver_name or None)

    def capabilities(self) -> Capabilities:
        """Return what the backend claims."""
        return self.solver().capabilities()

    def solve(self, program: Program, **options: Any) -> Solution:
        """Solve a program once, in a session of its own.

        Args:
            program: the program. It has no parameters.
            options: fields of `Options`.
        """
        with self.solver().open(program, Options(**options)) as session:
            return session.solve()

    def solve_by_highs(self, program: Program) -> Solution:
        """Solve a program by HiGHS, to compare with.

        Args:
            program: the program. It has no parameters.
        """
        with get_backend("highs").open(program) as session:
            return session.solve()

    def easy_program(self) -> Program:
        """Return a program with a known optimum, of a kind that the backend solves."""
        return instances.make_triangle() if self.capabilities().lp else instances.make_knapsack()

    def skip_unless(self, method: str, needs: tuple[str, ...], option: str | None) -> None:
        """Skip a clause that does not apply to the backend.

        Args:
            method: name of the clause's method.
            needs: capabilities, all of which the backend must claim.
            option: a field of `Options` that it must support. None for no option.

        Raises:
            SkipTest: the clause does not apply. The message is the reason.
        """
        solver = self.solver()
        if not solver.is_installed():
            raise SkipTest(f"{self.label} is not installed")
        if self.label not in _licences:
            _licences[self.label] = solver.licence()
        if not _licences[self.label].usable:
            raise SkipTest(_licences[self.label].kind)
        if method in self.excluded:
            raise SkipTest(self.excluded[method])
        for need in needs:
            if not getattr(self.capabilities(), need):
                raise SkipTest(f"{self.label} does not claim the capability {need}")
        if option is not None and option not in solver.supported_options:
            raise SkipTest(f"{self.label} does not support the option {option}")


def clause(
    area: str, *needs: str, option: str | None = None
) -> Callable[[Callable[[_C], None]], Callable[[_C], None]]:
    """Make a method a clause of the contract.

    The first line of the method's docstring is the rule.

    Args:
        area: what the clause is about; an area of the table in the package's docstring.
        needs: names of `Capabilities`. The clause is skipped if the backend lacks one of them.
        option: a field of `Options`. The clause is skipped if the backend does not support it.
    """

    def decorate(check: Callable[[_C], None]) -> Callable[[_C], None]:
        """Wrap a check of one rule as a clause that raises ContractBroken with the rule."""
        rule = (check.__doc__ or "").partition("\n")[0]

        @functools.wraps(check)
        def run(self: _C) -> None:
            """Run the check on one backend, or skip it."""
            self.skip_unless(check.__name__, needs, option)
            try:
                check(self)
            except SkipTest:
                raise
            except Exception as error:
                cause = str(error)
                if not isinstance(error, AssertionError):
                    cause = f"{type(error).__name__}: {error}"
                raise ContractBroken(
                    f"{self.label} breaks the clause {area!r}, {check.__name__}: {rule} {cause}"
                ) from error

        vars(run)["area"] = area
        return run

    return decorate


def require(condition: object, rule: str) -> None:
    """Raise AssertionError with the rule if the condition is false.

    Args:
        condition: the condition, of any type.
        rule: sentences that state the rule and the value got.
    """
    if not condition:
        raise AssertionError(rule)


def require_equal(name: str, value: object, expected: object) -> None:
    """Require a value to equal another one.

    Args:
        name: what the value is, for the message.
        value: the value that the backend returned.
        expected: what it must equal.
    """
    require(
        value == expected, f"{name} must be {_format_value(expected)}. Got {_format_value(value)}."
    )


def require_close(name: str, value: Any, expected: Any, tolerance: float) -> None:
    """Require a number or an array to be within a tolerance of another one.

    Args:
        name: what the value is, for the message.
        value: the number or array. None fails.
        expected: a number, or an array of the same shape.
        tolerance: the largest admitted absolute difference.
    """
    rule = f"{name} must be within {tolerance:.3g} of {expected}. Got {value}."
    require(value is not None and np.shape(value) == np.shape(expected), rule)
    difference = np.abs(np.asarray(value, dtype=float) - np.asarray(expected, dtype=float))
    require((difference <= tolerance).all(), rule)


def require_optimal(solution: Solution) -> None:
    """Require that the solver claims an optimum.

    Args:
        solution: what the backend returned.
    """
    require_equal("termination", solution.termination, Termination.OPTIMAL)


def require_infeasible(solution: Solution) -> None:
    """Require that the solver claims that there is no point, and returns none.

    Args:
        solution: what the backend returned.
    """
    require_equal("termination", solution.termination, Termination.INFEASIBLE)
    require_no_point(solution)


def require_no_point(solution: Solution) -> None:
    """Require a solution without a point.

    Args:
        solution: what the backend returned.
    """
    require(solution.x is None, f"x must be None. Got {solution.x}.")
    require_equal("point", solution.point, PointStatus.NONE)
    require_equal("objective", solution.objective, None)


@contextmanager
def require_refusal(error: type[Exception], pattern: str) -> Iterator[None]:
    """Require the body of the `with` statement to raise an error.

    Args:
        error: the class of the error.
        pattern: a regular expression that must match in the message.
    """
    try:
        yield
    except error as refusal:
        require(
            re.search(pattern, str(refusal)),
            f"the message must match {pattern!r}. Got {str(refusal)!r}.",
        )
    else:
        raise AssertionError(
            f"{error.__name__} with a message that matches {pattern!r} must be raised."
            " Got no error."
        )


def _format_value(value: object) -> str:
    """Format a value for a message: a status by its name, other values by their repr."""
    return str(value) if isinstance(value, (Termination, PointStatus)) else repr(value)
