"""A sweep's specification: a TOML file of grids, read, checked to the last value and laid out before anything runs.

    name = "noise"                       # optional
    [[grid]]                             # one or more
    model = "modulo"                      # the name of a family
    n = 8                                # every other key is an option of the family:
    max_shift = [1, 2, 3]                # a list is an axis of the grid,
    epsilon = "0.1:4:40"                 # and a text with FIRST:LAST:COUNT the grid of `workbench.data.parameter_grid`

The grid is the product of its axes. Parameters that a live solver can follow (ε, δ) make up a path, walked to and fro
so that each step is a small one; a piece of a path is a task (`Chunk`). Whatever is wrong is refused with its line.
"""

from __future__ import annotations

import itertools
import math
import re
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from decimal import Decimal
from pathlib import Path
from typing import Any

from workbench.data.parameter_grid import has_range, read_grid_in_order
from workbench.errors import InvalidRequest, WorkbenchError, must
from workbench.exact.objects import Values
from workbench.io.files import format_fraction, read_file_path, read_text
from workbench.pipeline.family import Family
from workbench.pipeline.option import to_json_value
from workbench.pipeline.registry import get_family, list_family_names
from workbench.sweeps.ledger import canonical_json, hash_texts
from workbench.sweeps.toml_lines import KeyLines, find_key_lines
from workbench.sweeps.workers import Task, list_versions

SCHEMA = 1  # of requests and answers; part of every key
MAX_POINTS = 5_000_000  # points of one specification
_TOML_ERROR = re.compile(r"(.*) \(at (?:line (\d+), column \d+|end of document)\)", re.DOTALL)


@dataclass(frozen=True)
class Chunk(Task):
    """A task: neighbouring points of one path, in the order they are solved.

    requests: the canonical JSON of each point's request, whose sha256 is its key in `keys`.
    """

    requests: tuple[str, ...]
    keys: tuple[str, ...]

    def without_keys(self, known: set[str]) -> Chunk:
        """What is left to do."""
        left = [k for k, key in enumerate(self.keys) if key not in known]
        recheck = tuple(at for at, k in enumerate(left) if k in self.recheck)
        points = tuple(self.points[k] for k in left)
        requests, keys = (tuple(texts[k] for k in left) for texts in (self.requests, self.keys))
        return replace(self, points=points, requests=requests, keys=keys, recheck=recheck)


@dataclass(frozen=True)
class Spec:
    """A checked specification: its name, its text, its tasks in order."""

    name: str
    text: str
    chunks: tuple[Chunk, ...]

    @property
    def keys(self) -> list[str]:
        """The keys of all points."""
        return [key for chunk in self.chunks for key in chunk.keys]

    def __len__(self) -> int:
        return sum(len(chunk.keys) for chunk in self.chunks)


def read_spec(source: Path | str | Values) -> Spec:
    """Read and check a specification: a TOML file, or the same as a mapping (whose errors name no line).

    Raises InvalidRequest, naming the line, for a file that is not TOML, an unknown key, a wrong type or an impossible
    value.
    """
    if isinstance(source, Mapping):
        grid_tables = source.get("grid")
        tables = [grid_tables] if isinstance(grid_tables, Mapping) else grid_tables
        plain = {**source, "grid": tables}
        return _make_spec(
            plain,
            canonical_json(_to_json_values(plain)),
            "sweep",
            KeyLines("the specification", {}, [{}] * _count_grids(tables)),
        )
    path = read_file_path(source, "specification")
    text = read_text(path, name="specification")
    try:
        table = tomllib.loads(text, parse_float=Decimal)
    except tomllib.TOMLDecodeError as error:
        place = _TOML_ERROR.fullmatch(str(error))
        words, line = place.groups() if place else (str(error), None)
        raise InvalidRequest(
            f"line {line or len(text.splitlines())} of {path.name}: {words}."
        ) from None
    except (ValueError, ArithmeticError) as error:  # a number or date that Python cannot hold
        raise InvalidRequest(f"{path.name}: {error}.") from None
    if isinstance(table.get("grid"), dict):
        table["grid"] = [table["grid"]]
    return _make_spec(
        table, text, path.stem, find_key_lines(text, path.name, _count_grids(table.get("grid")))
    )


def _count_grids(grids: Any) -> int:
    return len(grids) if isinstance(grids, list) else 0


def _to_json_values(value: Any) -> Any:
    """JSON-ready, numbers that are not integers as the decimals they show."""
    if isinstance(value, Mapping):
        return {str(key): _to_json_values(v) for key, v in value.items()}
    if isinstance(value, (list, tuple)):
        return [_to_json_values(v) for v in value]
    return value if value is None or isinstance(value, (bool, int, str)) else str(value)


def _make_spec(table: Values, text: str, stem: str, lines: KeyLines) -> Spec:
    for key in table:
        if key not in ("name", "grid"):
            raise lines.make_error(
                f"the key {key!r} is not known; a specification has name and [[grid]].", key
            )
    name = table.get("name", stem)
    if not isinstance(name, str) or not name.strip():
        raise lines.make_error(f"name must be a string. Got {name!r}.", "name")
    tables = table.get("grid")
    if (
        not isinstance(tables, list)
        or not tables
        or not all(isinstance(grid, Mapping) for grid in tables)
    ):
        raise lines.make_error("a specification must have at least one [[grid]].", "grid")
    chunks = []
    seen: set[str] = set()
    total = 0
    for at, grid in enumerate(tables):
        values = _read_grid(grid, at, lines)
        total += math.prod(map(len, values[1].values()))
        if total > MAX_POINTS:
            raise lines.make_error(
                f"a specification may have at most {MAX_POINTS} points. Got {total}.", "", at
            )
        for chunk in _make_chunks(*values, at, lines):
            fresh = chunk.without_keys(seen)  # two grids may share points
            seen.update(chunk.keys)
            if fresh.keys:
                chunks.append(fresh)
    return Spec(name, text, tuple(chunks))


def _read_grid(grid: Values, at: int, lines: KeyLines) -> tuple[Family, dict[str, list[Any]]]:
    """The family and the exact values of every axis."""
    name = grid.get("model")
    if not isinstance(name, str) or name not in list_family_names():
        got = "none" if name is None else repr(name)
        raise lines.make_error(
            f"model must be one of {', '.join(list_family_names())}. Got {got}.", "model", at
        )
    kind = get_family(name)
    options = {option.name: option for option in kind.options_for("sweep")}
    if foreign := next((key for key in grid if key != "model" and key not in options), None):
        raise lines.make_error(
            f"the key {foreign!r} is not known; the model {name} has {', '.join(options)}.",
            foreign,
            at,
        )
    axes = {}
    for key, option in options.items():
        if key in grid:
            try:
                values = [option.read(value, key) for value in _read_axis(grid[key], key)]
            except WorkbenchError as error:
                raise lines.make_error(str(error), key, at) from None
            axes[key] = list(
                {canonical_json(to_json_value(value)): value for value in values}.values()
            )
        elif option.required:
            raise lines.make_error(f"{key} must be given for the model {name}.", "", at)
        else:
            axes[key] = [option.default]
    return kind, axes


def _read_axis(value: Any, key: str) -> list[Any]:
    """The values of one key: a list, a range, or the one value."""
    if isinstance(value, list):
        if not value:
            must(key, "a value or a list of values", "an empty list")
        return [
            part
            for item in value
            for part in (_read_axis(item, key) if has_range(item) else [item])
        ]
    return (
        [format_fraction(number) for number in read_grid_in_order(value, key, MAX_POINTS)]
        if has_range(value)
        else [value]
    )


def _make_chunks(
    kind: Family, axes: Mapping[str, list[Any]], at: int, lines: KeyLines
) -> Iterator[Chunk]:
    hot = kind.hot_option_names
    still = [key for key in axes if key not in hot]
    walk = list(_order_points([axes[key] for key in hot]))
    ends = [(axes[key][0], axes[key][-1]) for key in hot]
    corner = [all(value in both for value, both in zip(point, ends, strict=True)) for point in walk]
    for values in itertools.product(*(axes[key] for key in still)):
        fixed = dict(zip(still, values, strict=True))
        points = [kind.complete_point(fixed, dict(zip(hot, point, strict=True))) for point in walk]
        backend = kind.solver_label(fixed)
        try:
            content = kind.sweep_key(fixed)
            _check_options(
                backend,
                [key for key in still if kind.get_option(key).solver and fixed[key] is not None],
            )
            _check_values(kind, fixed, points[0], {key: axes[key] for key in hot})
        except WorkbenchError as error:
            raise lines.make_error_about(str(error), at) from None
        requests = _make_requests(kind, backend, content, points)
        keys = [hash_texts(request) for request in requests]
        again = [
            at_end or int(key[:8], 16) % 100 == 0 for at_end, key in zip(corner, keys, strict=True)
        ]
        size = kind.points_per_task(fixed)
        for k in range(0, len(walk), size):
            part = slice(k, k + size)
            recheck = tuple(j for j, wanted in enumerate(again[part]) if wanted)
            yield Chunk(
                kind.name,
                fixed,
                tuple(points[part]),
                recheck,
                backend,
                list_versions(backend),
                tuple(requests[part]),
                tuple(keys[part]),
            )


def _order_points(axes: list[list[Any]]) -> Iterator[tuple[Any, ...]]:
    """All points of a grid, the last axis fastest and every other time backwards."""
    if not axes:
        yield ()
        return
    steps = axes[-1]
    for point in _order_points(axes[:-1]):
        yield from ((*point, value) for value in steps)
        steps = steps[::-1]


def _check_values(
    kind: Family, fixed: Values, first: Values, axes: Mapping[str, list[Any]]
) -> None:
    """Check every hot value once, the others at their first: whether one is refused does not depend on them."""
    request = kind.make_request_from_values({**fixed, **first})
    for key, values in axes.items():
        for value in values:
            request.at_point(kind.complete_point(fixed, {**first, key: value}))


def _check_options(label: str | None, options: Iterable[str]) -> None:
    """Refuse options that a solver has no word for."""
    if label is None:
        return
    from workbench.solvers.backend import get_backend

    for option in options:
        if option not in get_backend(label).supported_options:
            raise InvalidRequest(f"{label} cannot honour the option {option}; leave it out.")


def _make_requests(
    kind: Family, backend: str | None, content: Values, points: Iterable[Values]
) -> list[str]:
    """The canonical JSON of the request of every point. content: the fixed options, spelled."""
    options = {option.name for option in kind.options if option.solver} & set(content)
    shared = {
        "backend": backend,
        "model": kind.name,
        "options": {key: content[key] for key in options},
        "schema": SCHEMA,
        "versions": list_versions(backend),
    }
    fixed = {key: value for key, value in content.items() if key not in options}
    moved = ({key: to_json_value(point[key]) for key in kind.hot_option_names} for point in points)
    return [canonical_json(shared | {"parameters": fixed | point}) for point in moved]
