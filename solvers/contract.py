"""Contract of a solver backend: what it declares, what is checked, and how it opens sessions.

A backend is one file. It declares its capabilities without importing its native library or taking a
licence. It opens sessions: a session is a live solver object for one Program, which is solved again
with a hot start when the parameters change. `workbench.solvers.backend` finds backends by name.
"""

from __future__ import annotations

import importlib.util
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, fields
from functools import lru_cache
from pathlib import Path
from typing import Any, ClassVar

from workbench.solvers.errors import BackendUnavailable, UnsupportedOption
from workbench.solvers.program import Program
from workbench.solvers.session import Options, Session
from workbench.solvers.solution import Termination

# Name of a backend -> its table in backends.toml, which has comments on the entries.
TABLES: Mapping[str, Mapping[str, Any]] = tomllib.loads(
    (Path(__file__).parent / "backends" / "backends.toml").read_text("utf-8")
)


@dataclass(frozen=True)
class Capabilities:
    """Capabilities of a backend and variant.

    Attributes:
        lp: solves linear programs.
        milp: solves mixed-integer linear programs.
        duals: returns dual values of linear programs.
        hot_start: starts from the state of the last solve.
        infeasibility_certificate: returns a ray that proves infeasibility.
        exact_vertex: returns vertices, with a basis.
        integer_only: solves only programs whose columns are all integer.
        second_order_cones: accepts second-order cones.
    """

    # The tables list "lp" like the other capabilities, so `Backend.capabilities` sets it to False
    # first. A backend that makes its own `Capabilities` need not state it.
    lp: bool = True
    milp: bool = False
    duals: bool = False
    hot_start: bool = False
    infeasibility_certificate: bool = False
    exact_vertex: bool = False
    integer_only: bool = False
    second_order_cones: bool = False

    def describe(self) -> str:
        """Return the names of the capabilities, separated by commas."""
        return ", ".join(f.name.replace("_", " ") for f in fields(self) if getattr(self, f.name))


@dataclass(frozen=True)
class Licence:
    """State of a licence.

    Attributes:
        kind: description, such as "open source" or "size-limited".
        max_columns: largest number of columns that the licence admits. None for no limit.
        max_rows: largest number of rows that the licence admits. None for no limit.
        usable: whether the solver can be used at all.
    """

    kind: str
    max_columns: int | None = None
    max_rows: int | None = None
    usable: bool = True

    def __str__(self) -> str:
        if self.max_columns is None:
            return self.kind
        return f"{self.kind}: at most {self.max_columns} columns and {self.max_rows} rows"


@lru_cache
def _distribution_version(distribution: str) -> str | None:
    """Return the version of an installed distribution, or None.

    Reading it from disk takes longer than a small program, so the result is cached.
    """
    from importlib.metadata import PackageNotFoundError, version  # This import is slow.

    try:
        return version(distribution)
    except PackageNotFoundError:
        return None


class Backend:
    """A solver with the interface that all backends share.

    Class attributes `distribution`, `module`, `variants` and `supported_options`, and the result of
    `capabilities`, may come from `backends.toml` instead of the class.

    Attributes:
        name: name of the backend, such as "ortools".
        variant: algorithm or engine, such as "glop" of "ortools:glop". None for no variant.
        distribution: name of the native library on PyPI.
        module: import name of the native library.
        session: class of the sessions that `open` returns.
        variants: names of the variants.
        supported_options: names of the fields of `Options` that the backend supports.
        table: table of `backends.toml` for this backend and variant.
    """

    name: ClassVar[str]
    distribution: str
    module: str
    session: type[Session]
    variants: tuple[str, ...] = ()
    supported_options: frozenset[str] = frozenset()

    def __init__(self, variant: str | None = None) -> None:
        table = TABLES.get(self.name, {})
        self.variants = (*self.variants, *table.get("variants", ()))
        if variant is not None and variant not in self.variants:
            rule = "left out"  # A backend without variants.
            if self.variants:
                rule = f"one of {', '.join(self.variants)}"
            raise BackendUnavailable(f"the variant of {self.name} must be {rule}. Got {variant!r}.")
        self.variant = variant
        self.table: Mapping[str, Any] = _select_variant(table, variant)
        if table:
            self.distribution = self.table["distribution"]
            self.module = self.table["module"]
            self.supported_options = frozenset(self.table["options"])

    @property
    def label(self) -> str:
        """Return the name as a user writes it: "highs", "ortools:glop"."""
        if self.variant is None:
            return self.name
        return f"{self.name}:{self.variant}"

    def capabilities(self) -> Capabilities:
        """Return the capabilities of this backend and variant, without importing its library."""
        names = self.table.get("capabilities", ())
        return Capabilities(**{"lp": False, **dict.fromkeys(names, True)})

    def translate_options(self, options: Options) -> dict[str, Any]:
        """Translate options to the solver's own names and values.

        In `backends.toml`, the entry of an option has one of three forms:

            "one"                                the value must be 1, and is not passed on
            ["TimeLimit"]                        the value is passed on under these names
            {name = "Presolve", on = -1, off = 0}
                                                 "on" is passed on as Presolve = -1

        Args:
            options: the options. Those in `native` are copied.

        Raises:
            UnsupportedOption: an option has a value that the solver does not support.
        """
        settings = {}
        for option, value in options.list_set_options().items():
            entry = self.table["options"][option]
            if entry == "one":
                if value != 1:
                    raise UnsupportedOption(f"{option} must be 1 with {self.label}. Got {value}.")
            elif isinstance(entry, Mapping):
                native_values = {key: native for key, native in entry.items() if key != "name"}
                choice = value
                if isinstance(value, bool):
                    choice = "on" if value else "off"
                if choice not in native_values:
                    raise UnsupportedOption(
                        f"{option} must be one of {', '.join(native_values)}. Got {value!r}."
                    )
                settings[entry["name"]] = native_values[choice]
            else:
                settings |= dict.fromkeys(entry, value)
        return settings | dict(options.native)

    def read_termination(self, status: str) -> Termination:
        """Return the termination that a status of the solver means.

        Args:
            status: status in the solver's own words.
        """
        return Termination(self.table["statuses"].get(status, Termination.ERROR))

    def is_installed(self) -> bool:
        """Decide whether the native library is installed, without importing it."""
        return is_importable(self.module)

    def version(self) -> str | None:
        """Return the version of the native library, or None if it is not installed."""
        return _distribution_version(self.distribution)

    def licence(self) -> Licence:
        """Return the state of the licence. This may import the native library."""
        return Licence("open source")

    def open(self, program: Program, options: Options | None = None) -> Session:
        """Open a live session for one program.

        Args:
            program: the `Program` to solve.
            options: options of every solve, such as gap and time limit. Default: `Options()`.

        Raises:
            BackendUnavailable: not installed, or the program is of a kind it cannot solve.
            LicenceExceeded: the program is larger than the licence admits. This is known before the
                program is loaded.
            UnsupportedOption: the solver does not have an option.
        """
        options = options or Options()
        resolved = self._resolve(program)
        if resolved is not self:
            return resolved.open(program, options)
        if not self.is_installed():
            raise BackendUnavailable(
                f"{self.label} is not installed (pip install {self.distribution})."
            )
        self._require_capabilities(program)
        for option in options.list_set_options():
            if option not in self.supported_options:
                raise UnsupportedOption(
                    f"{self.label} cannot honour the option {option}; leave it out."
                )
        self.check_size(program)
        return self._open(program, options)

    def _require_capabilities(self, program: Program) -> None:
        """Raise BackendUnavailable if the program is of a kind that the backend cannot solve."""
        capabilities = self.capabilities()
        if program.is_mip:
            kind = "mixed-integer"
            can_solve_kind = capabilities.milp
        else:
            kind = "linear"
            can_solve_kind = capabilities.lp
        if not can_solve_kind:
            raise BackendUnavailable(
                f"{self.label} cannot solve {kind} programs, and {program.name} is one."
            )
        if capabilities.integer_only and not program.template.integrality.all():
            raise BackendUnavailable(
                f"{self.label} solves programs in integers only, and {program.name} is not one."
            )
        if program.cones is not None and not capabilities.second_order_cones:
            labels = ", ".join(_list_cone_solvers())
            raise BackendUnavailable(
                f"{self.label} cannot solve programs with second-order cones, "
                f"and {program.name} has some. Use {labels}."
            )

    def _resolve(self, program: Program) -> Backend:
        """Return the backend that solves the program.

        A subclass returns another variant if the user named none, depending on the program.
        """
        return self

    def check_size(self, program: Program) -> None:
        """Raise LicenceExceeded if the program is larger than the licence admits.

        Args:
            program: the `Program` to solve.
        """

    def _open(self, program: Program, options: Options) -> Session:
        """Make the session, after all checks."""
        return self.session(self, program, options)


def _select_variant(table: Mapping[str, Any], variant: str | None) -> dict[str, Any]:
    """Return the table of a backend with the entries of a variant, or of its default variant."""
    return {**table, **table.get(variant or table.get("default", ""), {})}


def is_importable(module: str) -> bool:
    """Decide whether an installed library could be imported, without importing it.

    Args:
        module: import name of the library.
    """
    try:
        return importlib.util.find_spec(module) is not None
    except (ImportError, ValueError):
        return False


def _list_cone_solvers() -> list[str]:
    """Return the labels of this package's backends and variants that solve second-order cones."""
    labels = []
    for name, table in TABLES.items():
        for variant in table.get("variants", [None]):
            capabilities = _select_variant(table, variant).get("capabilities", ())
            if "second_order_cones" in capabilities:
                labels.append(name if variant is None else f"{name}:{variant}")
    return labels
