"""The contract of a backend: what each solver says of itself, checks and opens.

A backend is one file. It says what it can do without importing its native library or touching a licence, and opens
sessions: a live solver object for one Program, re-solved hot as the parameters move. `workbench.solvers.backend` finds
backends by their names.
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

# Name of a backend -> what it is, can do and calls our options.
TABLES: Mapping[str, Mapping[str, Any]] = tomllib.loads(
    (Path(__file__).parent / "backends" / "backends.toml").read_text("utf-8")
)


@dataclass(frozen=True)
class Capabilities:
    """What a backend (with its variant) can do."""

    lp: bool = True
    milp: bool = False
    duals: bool = False
    hot_start: bool = False
    infeasibility_certificate: bool = False
    exact_vertex: bool = False
    integer_only: bool = False
    second_order_cones: bool = False

    def describe(self) -> str:
        """The capabilities as a short list."""
        return ", ".join(f.name.replace("_", " ") for f in fields(self) if getattr(self, f.name))


@dataclass(frozen=True)
class Licence:
    """Licence state: `kind` in words; the largest program it admits (None: no limit)."""

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
    """Of an installed distribution; reading it from disk takes longer than a small program, and it cannot change."""
    from importlib.metadata import PackageNotFoundError, version  # slow to import

    try:
        return version(distribution)
    except PackageNotFoundError:
        return None


class Backend:
    """A solver behind the one contract. `variant` picks an algorithm or engine ("glop" in "ortools:glop").

    session: what `open` makes after all checks. What `backends.toml` says of a backend need not be said in its class:
    distribution (of the native library on PyPI), module (its import name), variants, supported_options, capabilities.
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
            choices = f"one of {', '.join(self.variants)}" if self.variants else "left out"
            raise BackendUnavailable(
                f"the variant of {self.name} must be {choices}. Got {variant!r}."
            )
        self.variant = variant
        self.table: Mapping[str, Any] = {
            **table,
            **table.get(variant or table.get("default", ""), {}),
        }
        if table:
            self.distribution, self.module = self.table["distribution"], self.table["module"]
            self.supported_options = frozenset(self.table["options"])

    @property
    def label(self) -> str:
        """The name as a user writes it: "highs", "ortools:glop"."""
        return self.name if self.variant is None else f"{self.name}:{self.variant}"

    def capabilities(self) -> Capabilities:
        """What this backend and variant can do; needs no import of the native library."""
        return Capabilities(**{"lp": False, **dict.fromkeys(self.table.get("can", ()), True)})

    def translate_options(self, options: Options) -> dict[str, Any]:
        """Options in the solver's own names, `native` included. Raises UnsupportedOption."""
        settings = {}
        for option, value in options.list_set_options().items():
            word = self.table["options"][option]
            if word == "one":
                if value != 1:
                    raise UnsupportedOption(
                        f"{self.label} runs on one thread; threads cannot be {value}."
                    )
            elif isinstance(word, Mapping):
                choices = {key: number for key, number in word.items() if key != "name"}
                chosen = ("off", "on")[value] if isinstance(value, bool) else value
                if chosen not in choices:
                    raise UnsupportedOption(
                        f"{option} must be one of {', '.join(choices)}. Got {value!r}."
                    )
                settings[word["name"]] = choices[chosen]
            else:
                settings |= dict.fromkeys(word, value)
        return settings | dict(options.native)

    def read_termination(self, word: str) -> Termination:
        """Why the solver stopped, by its own word."""
        return Termination(self.table["ends"].get(word, Termination.ERROR))

    def is_installed(self) -> bool:
        """Whether the native library is installed; takes no licence and imports nothing."""
        return is_importable(self.module)

    def version(self) -> str | None:
        """Version of the native library, or None when it is not installed."""
        return _distribution_version(self.distribution)

    def licence(self) -> Licence:
        """The licence state; may probe the native library."""
        return Licence("open source")

    def open(self, program: Program, options: Options | None = None) -> Session:
        """A live session for one program.

        Raises:
            BackendUnavailable: not installed, or the program is of a kind it cannot solve.
            LicenceExceeded: the program is larger than the licence admits (known before anything is built).
            UnsupportedOption: an option it cannot honour.
        """
        options = options or Options()
        chosen = self._resolve(program)
        if chosen is not self:
            return chosen.open(program, options)
        if not self.is_installed():
            raise BackendUnavailable(
                f"{self.label} is not installed (pip install {self.distribution})."
            )
        capabilities = self.capabilities()
        kind, able = (
            ("mixed-integer", capabilities.milp) if program.is_mip else ("linear", capabilities.lp)
        )
        if not able:
            raise BackendUnavailable(
                f"{self.label} cannot solve {kind} programs, and {program.name} is one."
            )
        if capabilities.integer_only and not program.template.integrality.all():
            raise BackendUnavailable(
                f"{self.label} solves programs in integers only, and {program.name} is not one."
            )
        if program.cones is not None and not capabilities.second_order_cones:
            others = ", ".join(_list_cone_solvers())
            raise BackendUnavailable(
                f"{self.label} knows no second-order cones, and {program.name} has some. Use {others}."
            )
        for option in options.list_set_options():
            if option not in self.supported_options:
                raise UnsupportedOption(
                    f"{self.label} cannot honour the option {option}; leave it out."
                )
        self.check_size(program)
        return self._open(program, options)

    def _resolve(self, program: Program) -> Backend:
        """The variant that stands in when none was named."""
        return self

    def check_size(self, program: Program) -> None:
        """Refuse programs larger than the licence admits, by raising LicenceExceeded."""

    def _open(self, program: Program, options: Options) -> Session:
        """The session itself, after all checks."""
        return self.session(self, program, options)


def is_importable(module: str) -> bool:
    """Whether an installed library could be imported, without importing it."""
    try:
        return importlib.util.find_spec(module) is not None
    except (ImportError, ValueError):
        return False


def _list_cone_solvers() -> list[str]:
    """Return the labels of this package's backends and variants that know second-order cones."""
    labels = []
    for name, table in TABLES.items():
        for variant in table.get("variants", [None]):
            known = {**table, **table.get(variant or table.get("default", ""), {})}
            if "second_order_cones" in known.get("can", ()):
                labels.append(name if variant is None else f"{name}:{variant}")
    return labels
