"""Read the specification of a sweep: a TOML file of grids, checked before anything runs.

    name = "noise"                       # optional
    [[grid]]                             # one or more
    model = "modulo"                     # the name of a family
    n = 8                                # every other key is an option of the family
    max_shift = [1, 2, 3]                # a list: an axis of the grid with 3 values
    epsilon = "0.1:4:40"                 # a text FIRST:LAST:COUNT: an axis with COUNT values, see
                                         # `workbench.data.parameter_grid`

A grid is the product of its axes, here with 3 * 40 points. A solver can change the hot options of a
family (ε, δ) without building its program again. For each combination of the other options, the
points form a path, on which the hot options run back and forth in small steps. A path is divided
into tasks (`Chunk`). Every error names the line of the wrong value.
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

SCHEMA = 1  # The version of requests and answers, which is part of every key.
MAX_POINTS = 5_000_000  # A specification may have at most this many points.
# On average one of this many points is also solved from a cold start, besides corners of the grid.
_POINTS_PER_RECHECK = 100

# The message of tomllib about a wrong file: group 1 is the reason, group 2 the line.
_TOML_ERROR = re.compile(r"(.*) \(at (?:line (\d+), column \d+|end of document)\)", re.DOTALL)


@dataclass(frozen=True)
class Chunk(Task):
    """A task with the requests of its points, in the order in which they are solved.

    Attributes:
        requests: The canonical JSON of the request of each point.
        keys: The sha256 of each request.
    """

    requests: tuple[str, ...]
    keys: tuple[str, ...]

    def without_keys(self, known_keys: set[str]) -> Chunk:
        """Return the chunk without the points whose keys are known.

        Args:
            known_keys: The keys of points that are solved already.
        """
        indices = [index for index, key in enumerate(self.keys) if key not in known_keys]
        recheck = [position for position, index in enumerate(indices) if index in self.recheck]
        return replace(
            self,
            points=tuple(self.points[index] for index in indices),
            requests=tuple(self.requests[index] for index in indices),
            keys=tuple(self.keys[index] for index in indices),
            recheck=tuple(recheck),
        )


@dataclass(frozen=True)
class Spec:
    """A checked specification.

    Attributes:
        name: Its name. Default: the name of its file.
        text: Its text.
        chunks: Its tasks in order.
    """

    name: str
    text: str
    chunks: tuple[Chunk, ...]

    @property
    def keys(self) -> list[str]:
        """Return the keys of all points."""
        return [key for chunk in self.chunks for key in chunk.keys]

    def __len__(self) -> int:
        return sum(len(chunk.keys) for chunk in self.chunks)


def read_spec(source: Path | str | Values) -> Spec:
    """Read and check a specification.

    Args:
        source: A TOML file, or a mapping with the same content (whose errors name no line).

    Raises:
        InvalidRequest: The file is not TOML, a key is unknown, or a value has a wrong type or is
            impossible. The message names the line.
    """
    if isinstance(source, Mapping):
        grids = source.get("grid")
        tables = [grids] if isinstance(grids, Mapping) else grids
        table = {**source, "grid": tables}
        lines = KeyLines("the specification", top={}, grids=[{}] * _count_grids(tables))
        return _make_spec(table, canonical_json(_to_json_values(table)), "sweep", lines)
    path = read_file_path(source, "specification")
    text = read_text(path, name="specification")
    try:
        table = tomllib.loads(text, parse_float=Decimal)
    except tomllib.TOMLDecodeError as error:
        message = str(error)
        line = None
        if place := _TOML_ERROR.fullmatch(message):
            # An error at the end of the document has no line. It is reported for the last line.
            message, line = place.groups()
        raise InvalidRequest(
            f"line {line or len(text.splitlines())} of {path.name}: {message}."
        ) from None
    except (ValueError, ArithmeticError) as error:
        # Python cannot represent a number or a date of the file.
        raise InvalidRequest(f"{path.name}: {error}.") from None
    if isinstance(table.get("grid"), dict):
        table["grid"] = [table["grid"]]
    lines = find_key_lines(text, path.name, _count_grids(table.get("grid")))
    return _make_spec(table, text, path.stem, lines)


def _count_grids(grids: Any) -> int:
    """Return the number of grids. It is 0 if the value is not a list."""
    return len(grids) if isinstance(grids, list) else 0


def _to_json_values(value: Any) -> Any:
    """Return JSON-ready values; numbers that are not integers become their decimal texts."""
    if isinstance(value, Mapping):
        return {str(key): _to_json_values(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_to_json_values(item) for item in value]
    if value is None or isinstance(value, (bool, int, str)):
        return value
    return str(value)


def _make_spec(table: Values, text: str, default_name: str, lines: KeyLines) -> Spec:
    """Check the table of a specification and divide its grids into tasks.

    Args:
        table: the content of the file.
        text: the text of the file.
        default_name: name of the specification if the file gives none.
        lines: lines of the keys, for errors.
    """
    for key in table:
        if key not in ("name", "grid"):
            raise lines.make_error(
                f"the key must be name or grid in a specification. Got {key!r}.", key
            )
    name = table.get("name", default_name)
    if not isinstance(name, str) or not name.strip():
        raise lines.make_error(f"name must be a string. Got {name!r}.", "name")
    grids = table.get("grid")
    if (
        not isinstance(grids, list)
        or not grids
        or not all(isinstance(grid, Mapping) for grid in grids)
    ):
        raise lines.make_error("a specification must have at least one [[grid]].", "grid")
    chunks = []
    seen_keys: set[str] = set()
    point_count = 0
    for index, grid in enumerate(grids):
        family, axes = _read_grid(grid, index, lines)
        point_count += math.prod(map(len, axes.values()))
        if point_count > MAX_POINTS:
            raise lines.make_error(
                f"a specification must have at most {MAX_POINTS} points. Got {point_count}.",
                "",
                index,
            )
        for chunk in _make_chunks(family, axes, index, lines):
            # Two grids may have the same points.
            new_chunk = chunk.without_keys(seen_keys)
            seen_keys.update(chunk.keys)
            if new_chunk.keys:
                chunks.append(new_chunk)
    return Spec(name, text, tuple(chunks))


def _read_grid(grid: Values, index: int, lines: KeyLines) -> tuple[Family, dict[str, list[Any]]]:
    """Return the family of a grid and the exact values of every axis. Raises InvalidRequest."""
    model = grid.get("model")
    if not isinstance(model, str) or model not in list_family_names():
        value_text = "none" if model is None else repr(model)
        names = ", ".join(list_family_names())
        raise lines.make_error(f"model must be one of {names}. Got {value_text}.", "model", index)
    family = get_family(model)
    options = {option.name: option for option in family.options_for("sweep")}
    for key in grid:
        if key != "model" and key not in options:
            raise lines.make_error(
                f"the key must be one of {', '.join(options)} for the model {model}. Got {key!r}.",
                key,
                index,
            )
    axes = {}
    for key, option in options.items():
        if key in grid:
            try:
                values = [option.read(value, key) for value in _read_axis(grid[key], key)]
            except WorkbenchError as error:
                raise lines.make_error(str(error), key, index) from None
            distinct = {canonical_json(to_json_value(value)): value for value in values}
            axes[key] = list(distinct.values())
        elif option.required:
            raise lines.make_error(f"{key} must be given for the model {model}.", "", index)
        else:
            axes[key] = [option.default]
    return family, axes


def _read_axis(value: Any, key: str) -> list[Any]:
    """Return the values of one key: a list, a range, or one value."""
    if isinstance(value, list):
        if not value:
            must(key, "a value or a list of values", "an empty list")
        values: list[Any] = []
        for item in value:
            values += _read_axis(item, key) if has_range(item) else [item]
        return values
    if has_range(value):
        return [format_fraction(number) for number in read_grid_in_order(value, key, MAX_POINTS)]
    return [value]


def _make_chunks(
    family: Family, axes: Mapping[str, list[Any]], grid_index: int, lines: KeyLines
) -> Iterator[Chunk]:
    """Yield the tasks of one grid. Raises InvalidRequest.

    `axes` has the list of values of every option, and `grid_index` is the number of the grid in the
    specification.
    """
    hot = family.hot_option_names
    fixed_keys = [key for key in axes if key not in hot]
    path = list(_order_points([axes[key] for key in hot]))
    ends = [(axes[key][0], axes[key][-1]) for key in hot]
    is_corner = [_is_at_ends(point, ends) for point in path]
    for values in itertools.product(*(axes[key] for key in fixed_keys)):
        fixed_values = dict(zip(fixed_keys, values, strict=True))
        points = [
            family.complete_point(fixed_values, dict(zip(hot, point, strict=True)))
            for point in path
        ]
        solver = family.solver_label(fixed_values)
        try:
            content = family.sweep_key(fixed_values)
            solver_options = [
                key
                for key in fixed_keys
                if family.get_option(key).solver and fixed_values[key] is not None
            ]
            _check_options(solver, solver_options)
            _check_values(family, fixed_values, points[0], {key: axes[key] for key in hot})
        except WorkbenchError as error:
            raise lines.make_error_about(str(error), grid_index) from None
        requests = _make_requests(family, solver, content, points)
        keys = [hash_texts(request) for request in requests]
        # A key is a hash, so its digits choose points at random, but the same ones in every run.
        is_rechecked = [
            corner or int(key[:8], 16) % _POINTS_PER_RECHECK == 0
            for corner, key in zip(is_corner, keys, strict=True)
        ]
        size = family.points_per_task(fixed_values)
        for start in range(0, len(path), size):
            part = slice(start, start + size)
            recheck = [index for index, is_wanted in enumerate(is_rechecked[part]) if is_wanted]
            yield Chunk(
                model=family.name,
                fixed=fixed_values,
                points=tuple(points[part]),
                recheck=tuple(recheck),
                backend=solver,
                versions=list_versions(solver),
                requests=tuple(requests[part]),
                keys=tuple(keys[part]),
            )


def _is_at_ends(point: tuple[Any, ...], ends: list[tuple[Any, Any]]) -> bool:
    """Return whether every value of a point is the first or the last one of its axis."""
    return all(value in pair for value, pair in zip(point, ends, strict=True))


def _order_points(axes: list[list[Any]]) -> Iterator[tuple[Any, ...]]:
    """Yield all points of a grid. The last axis changes fastest, forwards and backwards in turn.

    Example: the axes [1, 2] and [3, 4] give (1, 3), (1, 4), (2, 4), (2, 3).
    """
    if not axes:
        yield ()
        return
    values = axes[-1]
    for point in _order_points(axes[:-1]):
        for value in values:
            yield (*point, value)
        values = values[::-1]


def _check_values(
    family: Family, fixed_values: Values, first: Values, axes: Mapping[str, list[Any]]
) -> None:
    """Check every value of the hot options once, with the first values of the other hot options.

    This is enough, because whether a value is refused does not depend on the other hot options.
    Raises InvalidRequest.
    """
    request = family.make_request_from_values({**fixed_values, **first})
    for key, values in axes.items():
        for value in values:
            request.at_point(family.complete_point(fixed_values, {**first, key: value}))


def _check_options(solver: str | None, options: Iterable[str]) -> None:
    """Raise InvalidRequest if a solver does not support one of the options."""
    if solver is None:
        return
    from workbench.solvers.backend import get_backend

    supported_names = get_backend(solver).supported_options
    for option in options:
        if option not in supported_names:
            raise InvalidRequest(
                f"{option} must be left out with {solver}, which does not support it."
            )


def _make_requests(
    family: Family, solver: str | None, content: Values, points: Iterable[Values]
) -> list[str]:
    """Return the canonical JSON of the request of every point.

    Args:
        family: the family.
        solver: name of the solver. None if no solver is used.
        content: the JSON values of the fixed options.
        points: the values of the hot options of each point.
    """
    option_names = {option.name for option in family.options if option.solver} & set(content)
    shared_values = {
        "backend": solver,
        "model": family.name,
        "options": {key: content[key] for key in option_names},
        "schema": SCHEMA,
        "versions": list_versions(solver),
    }
    fixed_values = {key: value for key, value in content.items() if key not in option_names}
    requests = []
    for point in points:
        moved_values = {key: to_json_value(point[key]) for key in family.hot_option_names}
        requests.append(canonical_json(shared_values | {"parameters": fixed_values | moved_values}))
    return requests
