"""The contract of a backend, and the registry of those this workbench knows.

A backend is one file. It says what it can do without importing its native library or touching a licence, and opens
sessions: a live solver object for one Program, re-solved hot as the parameters move.

    session = backend("highs").open(program, Options(gap=1e-9))
    first = session.solve({"delta": 0.1})
    second = session.solve({"delta": 0.2})         # moves the entries that changed and runs hot
    again = session.solve({"delta": 0.2}, start="cold")

To add a backend, write one file with a `Backend` subclass and its table in `backends.toml`. Those of other packages
come from the function given to `extend`, which is asked at the first unknown name and for every listing.
"""

from __future__ import annotations

import importlib
import importlib.util
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from functools import lru_cache
from pathlib import Path
from typing import Any, ClassVar

from numpy.typing import ArrayLike

from .errors import BackendUnavailable, UnsupportedOption
from .program import Program
from .session import Options as Options
from .session import Session as Session
from .solution import Solution, Start, Termination

REGISTRY: Mapping[str, Mapping[str, Any]] = tomllib.loads(Path(__file__).with_name("backends.toml").read_text("utf-8"))


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

    def words(self) -> str:
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
def _version(distribution: str) -> str | None:
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
        table = REGISTRY.get(self.name, {})
        self.variants = (*self.variants, *table.get("variants", ()))
        if variant is not None and variant not in self.variants:
            choices = f"one of {', '.join(self.variants)}" if self.variants else "left out"
            raise BackendUnavailable(f"the variant of {self.name} must be {choices}. Got {variant!r}.")
        self.variant = variant
        self.table: Mapping[str, Any] = {**table, **table.get(variant or table.get("default", ""), {})}
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

    def in_words(self, options: Options) -> dict[str, Any]:
        """Options in the solver's own names, `native` included. Raises UnsupportedOption."""
        settings = {}
        for option, value in options.given().items():
            word = self.table["options"][option]
            if word == "one":
                if value != 1:
                    raise UnsupportedOption(f"{self.label} runs on one thread; threads cannot be {value}.")
            elif isinstance(word, Mapping):
                choices = {key: number for key, number in word.items() if key != "name"}
                chosen = ("off", "on")[value] if isinstance(value, bool) else value
                if chosen not in choices:
                    raise UnsupportedOption(f"{option} must be one of {', '.join(choices)}. Got {value!r}.")
                settings[word["name"]] = choices[chosen]
            else:
                settings |= dict.fromkeys(word, value)
        return settings | dict(options.native)

    def ended(self, word: str) -> Termination:
        """Why the solver stopped, by its own word."""
        return Termination(self.table["ends"].get(word, Termination.ERROR))

    def installed(self) -> bool:
        """Whether the native library is installed; takes no licence and imports nothing."""
        return importable(self.module)

    def version(self) -> str | None:
        """Version of the native library, or None when it is not installed."""
        return _version(self.distribution)

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
        if not self.installed():
            raise BackendUnavailable(f"{self.label} is not installed (pip install {self.distribution}).")
        capabilities = self.capabilities()
        kind, able = ("mixed-integer", capabilities.milp) if program.is_mip else ("linear", capabilities.lp)
        if not able:
            raise BackendUnavailable(f"{self.label} cannot solve {kind} programs, and {program.name} is one.")
        if capabilities.integer_only and not program.template.integrality.all():
            raise BackendUnavailable(f"{self.label} solves programs in integers only, and {program.name} is not one.")
        if program.cones is not None and not capabilities.second_order_cones:
            others = ", ".join(name for name in names() if backend(name).capabilities().second_order_cones)
            raise BackendUnavailable(
                f"{self.label} knows no second-order cones, and {program.name} has some. Use {others}."
            )
        for option in options.given():
            if option not in self.supported_options:
                raise UnsupportedOption(f"{self.label} cannot honour the option {option}; leave it out.")
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


def importable(module: str) -> bool:
    """Whether an installed library could be imported, without importing it."""
    try:
        return importlib.util.find_spec(module) is not None
    except (ImportError, ValueError):
        return False


def names() -> list[str]:
    """Every backend and variant this workbench knows, as a user writes them."""
    listed = []
    for name in [*REGISTRY, *_more()]:
        variants = REGISTRY[name].get("variants") if name in REGISTRY else _class(name).variants
        listed += [f"{name}:{variant}" for variant in variants] if variants else [name]
    return listed


def backend(label: str) -> Backend:
    """The backend of a label such as "highs" or "ortools:glop".

    Raises:
        BackendUnavailable: for an unknown backend or variant.
    """
    name, _, variant = label.partition(":")
    if name not in REGISTRY and name not in _more():
        raise BackendUnavailable(f"solver must be one of {', '.join(names())}. Got {label!r}.")
    return _class(name)(variant or None)


def listing(*, probe: bool = False) -> list[dict[str, Any]]:
    """One row per backend and variant, for a table: name, installed, version, capabilities, licence, default.

    Args:
        probe: ask the native libraries for their licence states (imports them, and may take a licence for a moment);
            otherwise `licence` is None.
    """
    rows = []
    for label in names():
        solver = backend(label)
        installed = solver.installed()
        rows.append(
            {
                "name": label,
                "installed": installed,
                "version": solver.version() if installed else None,
                "capabilities": solver.capabilities().words(),
                "licence": str(solver.licence()) if probe and installed else None,
                "default": label == "highs",
            }
        )
    return rows


_more: Callable[[], Mapping[str, type[Backend]]] = dict


def extend(more: Callable[[], Mapping[str, type[Backend]]]) -> None:
    """Where backends of other packages come from: a function that gives their classes by name."""
    global _more
    _more = more


def _class(name: str) -> type[Backend]:
    if name not in REGISTRY:
        return _more()[name]
    module, _, attribute = REGISTRY[name]["class"].partition(":")
    loaded: type[Backend] = getattr(importlib.import_module(module), attribute)
    return loaded


def solve(
    program: Program,
    values: Mapping[str, ArrayLike] | None = None,
    solver: str = "highs",
    options: Options | None = None,
) -> Solution:
    """Solve once, cold.

    Raises:
        KeyboardInterrupt: when Ctrl-C ended the solve; a session keeps what was found until then.
    """
    with backend(solver).open(program, options) as session:
        solution = session.solve(values, start=Start.COLD)
    if solution.termination is Termination.INTERRUPTED:
        raise KeyboardInterrupt
    return solution
