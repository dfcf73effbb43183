"""What other packages and files add to the workbench: families, notions, backends, baselines, mechanisms, by name.

    entry points   of the groups workbench.families, .notions, .backends, .baselines and .mechanisms: the thing itself
    Python         wb.register(thing)
    one file       workbench --plugin FILE.py ..., which calls wb.register

Entry points are read at the first unknown name or the first listing. What is added never replaces ours, nor what was
added before: a duplicate is refused, naming both packages. A package that fails is one warning, and the rest goes on.
"""

from __future__ import annotations

import importlib.util
import os
import sys
import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from workbench.errors import InvalidRequest, WorkbenchError, must
from workbench.exact.objects import Record
from workbench.io.providers import get_places, load_provided

PLUGIN_GROUPS = ("families", "notions", "backends", "baselines", "mechanisms")
_SINGLE = (
    "families",
    "notions",
)  # groups whose things are instances; a class is called for its only one
PLUGIN_FILES_VARIABLE = "WORKBENCH_PLUGINS"  # environment variable: files that the processes of a sweep or a comparison load as well


class PluginWarning(UserWarning):
    """Something that another package adds cannot be used."""


@dataclass(frozen=True)
class Plugin:
    """A thing that was added, and the package it comes from, with its version."""

    extension: Any
    package: str


_plugins: dict[str, dict[str, Plugin]] = {group: {} for group in PLUGIN_GROUPS}
_read: set[str] = set()  # groups whose entry points have been read, and files
_loading: list[str] = []  # the files that are being loaded


def list_extensions(group: str) -> Record:
    """Everything that others have added to a group, by name."""
    return {name: plugin.extension for name, plugin in load_plugins(group).items()}


def load_plugins(group: str) -> dict[str, Plugin]:
    """The same, with the packages it comes from."""
    if group not in _read:
        from importlib.metadata import entry_points  # slow to import

        _read.add(group)  # first of all: loading a package may ask for names
        for file in filter(None, os.environ.get(PLUGIN_FILES_VARIABLE, "").split(os.pathsep)):
            load_plugin_file(file)
        for entry in sorted(entry_points(group=f"workbench.{group}"), key=lambda e: e.name):
            package = (
                entry.value.partition(":")[0]
                if entry.dist is None
                else f"{entry.dist.name} {entry.dist.version}"
            )
            try:
                _add_plugin(entry.load(), package, group)
            except KeyboardInterrupt:
                raise
            except BaseException as error:  # whatever somebody's module raises
                warnings.warn(
                    f"{entry.name} of {package} is left out of workbench.{group}. {_format_error(error)}",
                    PluginWarning,
                    stacklevel=2,
                )
    return _plugins[group]


def register(thing: Any) -> Any:
    """Make a Family, Notion, Backend class, Baseline or mechanism class (`kind`, `from_dict`) known by its name.

    Returns it, so that it also serves as a decorator of classes. Raises InvalidRequest for anything else, and for a
    name that is taken.
    """
    _add_plugin(thing, _loading[-1] if _loading else _class_of(thing).__module__.partition(".")[0])
    return thing


def load_plugin_file(path: Path | str) -> None:
    """Run a Python file that calls `register`. Raises InvalidRequest with what it raises."""
    file = Path(path).resolve()
    spec = importlib.util.spec_from_file_location(f"workbench_plugin_{file.stem}", file)
    if not file.is_file() or spec is None or spec.loader is None:
        must("plugin", "a Python file", path)
    if str(file) in _read:
        return
    _read.add(str(file))
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    _loading.append(file.name)
    try:
        spec.loader.exec_module(module)
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        raise InvalidRequest(
            f"plugin {file.name} cannot be loaded. {_format_error(error)}"
        ) from error
    finally:
        _loading.pop()
    given = [*filter(None, os.environ.get(PLUGIN_FILES_VARIABLE, "").split(os.pathsep))]
    os.environ[PLUGIN_FILES_VARIABLE] = os.pathsep.join(dict.fromkeys([*given, str(file)]))


def _format_error(error: BaseException) -> str:
    """What somebody's module raises, on one line."""
    text = str(error) if isinstance(error, WorkbenchError) else f"{type(error).__name__}: {error}"
    return " ".join(text.split())


def find_foreign_package(thing: Any) -> str | None:
    """The package whose code a mechanism or a notion is, with its version where it is known; None for ours."""
    kind = _class_of(thing)
    module = kind.__module__.partition(".")[0]
    if module == "workbench":
        return None
    every = (
        plugin for group in ("mechanisms", "notions") for plugin in load_plugins(group).values()
    )
    return next((plugin.package for plugin in every if _class_of(plugin.extension) is kind), module)


def _add_plugin(thing: Any, package: str, wanted: str | None = None) -> None:
    group = _find_group(thing)
    if group is None or (wanted is not None and group != wanted):
        what = "a Family, a Notion, a Backend class, a Baseline or a mechanism class with kind and from_dict"
        must("plugin", what if wanted is None else f"one for workbench.{wanted}", repr(thing))
    if group in _SINGLE and isinstance(thing, type):
        thing = thing()
    name = thing.kind if group == "mechanisms" else thing.name
    if not isinstance(name, str) or not name:
        must("the name of a plugin", "a string", repr(name))
    before = _plugins[group].get(name)
    if before is not None and before.package == package and before.extension == thing:
        return
    if before is not None or name in _list_built_in_names(group):
        owner = "dp-workbench" if before is None else before.package
        raise InvalidRequest(
            f"The name {name!r} of {package} is taken by {owner} in workbench.{group}."
        )
    _plugins[group][name] = Plugin(thing, package)


def _find_group(thing: Any) -> str | None:
    bases = {f"{base.__module__}:{base.__qualname__}" for base in _class_of(thing).__mro__}
    kind = next(
        (group for group, base in get_places("plugin bases").items() if base in bases), None
    )
    if kind == "backends" and not isinstance(thing, type):
        return None
    if (
        kind is None
        and isinstance(thing, type)
        and hasattr(thing, "kind")
        and hasattr(thing, "from_dict")
    ):
        return "mechanisms"
    return kind


def _list_built_in_names(group: str) -> Any:
    return load_provided("plugin names", group) if group in get_places("plugin names") else ()


def _class_of(thing: Any) -> type:
    return thing if isinstance(thing, type) else type(thing)
