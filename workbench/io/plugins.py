"""Load plug-ins: families, notions, backends, baselines and mechanisms from other code.

Plug-ins come from three places:

    entry points   of the groups workbench.families, .notions, .backends, .baselines and
                   .mechanisms: the object itself
    Python         wb.register(extension)
    one file       workbench --plugin FILE.py ..., which calls wb.register

Entry points are read at the first unknown name or the first listing. A plug-in never replaces a
built-in object or an earlier plug-in: a duplicate name is an error, which names both packages. A
package that fails causes one warning, and the others are still loaded.
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
# The members of these groups are instances. A class is called to make its only instance.
_INSTANCE_GROUPS = ("families", "notions")
# This environment variable lists the files that worker processes load as well.
PLUGIN_FILES_VARIABLE = "WORKBENCH_PLUGINS"


class PluginWarning(UserWarning):
    """A plug-in of another package cannot be used."""


@dataclass(frozen=True)
class Plugin:
    """An object that a plug-in has added to one of the groups.

    Attributes:
        extension: The object.
        package: The package that it comes from, with its version.
    """

    extension: Any
    package: str


_plugins: dict[str, dict[str, Plugin]] = {group: {} for group in PLUGIN_GROUPS}
_read: set[str] = set()  # Groups whose entry points were read, and paths of files that were run.
_loading: list[str] = []  # Files that are being loaded.


def list_extensions(group: str) -> Record:
    """Return every object that plug-ins have added to a group, by name.

    Args:
        group: One of `PLUGIN_GROUPS`.
    """
    return {name: plugin.extension for name, plugin in load_plugins(group).items()}


def load_plugins(group: str) -> dict[str, Plugin]:
    """Load the plug-ins of a group at the first call, and return them by name.

    Args:
        group: One of `PLUGIN_GROUPS`.
    """
    if group not in _read:
        from importlib.metadata import entry_points  # This import is slow.

        # The group is marked first, because loading a package may ask for names.
        _read.add(group)
        for file in _list_plugin_files():
            load_plugin_file(file)
        for entry in sorted(entry_points(group=f"workbench.{group}"), key=lambda e: e.name):
            if entry.dist is None:
                package = entry.value.partition(":")[0]
            else:
                package = f"{entry.dist.name} {entry.dist.version}"
            try:
                _add_plugin(entry.load(), package, group)
            except KeyboardInterrupt:
                raise
            except BaseException as error:  # The module of a plug-in may raise anything.
                warnings.warn(
                    f"{entry.name} of {package} is left out of workbench.{group}. "
                    f"{_format_error(error)}",
                    PluginWarning,
                    stacklevel=2,
                )
    return _plugins[group]


def _list_plugin_files() -> list[str]:
    """List the files that the environment variable names."""
    return [*filter(None, os.environ.get(PLUGIN_FILES_VARIABLE, "").split(os.pathsep))]


def register(thing: Any) -> Any:
    """Register a Family, Notion, Backend class, Baseline or mechanism class under its name.

    A mechanism class has `kind` and `from_dict`. The function also works as a class decorator.

    Args:
        thing: The object to register.

    Returns:
        The object itself.

    Raises:
        InvalidRequest: The object is none of these, or its name is taken.
    """
    package = _loading[-1] if _loading else _class_of(thing).__module__.partition(".")[0]
    _add_plugin(thing, package)
    return thing


def load_plugin_file(path: Path | str) -> None:
    """Run a Python file that calls `register`. A file is only run once.

    Args:
        path: Path of the file.

    Raises:
        InvalidRequest: The file does not exist or raises an error.
    """
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
        message = _format_error(error)
        raise InvalidRequest(f"plugin {file.name} cannot be loaded. {message}") from error
    finally:
        _loading.pop()
    files = [*_list_plugin_files(), str(file)]
    os.environ[PLUGIN_FILES_VARIABLE] = os.pathsep.join(dict.fromkeys(files))


def _format_error(error: BaseException) -> str:
    """Format the error of a plug-in on one line."""
    text = str(error) if isinstance(error, WorkbenchError) else f"{type(error).__name__}: {error}"
    return " ".join(text.split())


def find_foreign_package(extension: Any) -> str | None:
    """Return the package of a mechanism or notion that is not part of the workbench.

    Args:
        extension: A mechanism or a notion.

    Returns:
        A text such as "my-package 1.2", or without the version if it is not known. None for
        built-in mechanisms and notions.
    """
    kind = _class_of(extension)
    module = kind.__module__.partition(".")[0]
    if module == "workbench":
        return None
    for group in ("mechanisms", "notions"):
        for plugin in load_plugins(group).values():
            if _class_of(plugin.extension) is kind:
                return plugin.package
    return module


def _add_plugin(extension: Any, package: str, expected_group: str | None = None) -> None:
    """Add an object to its group. Raises InvalidRequest."""
    group = _find_group(extension)
    if group is None or (expected_group is not None and group != expected_group):
        constraint = f"one for workbench.{expected_group}"
        if expected_group is None:
            constraint = (
                "a Family, a Notion, a Backend class, a Baseline or a mechanism class with kind "
                "and from_dict"
            )
        must("plugin", constraint, repr(extension))
    if group in _INSTANCE_GROUPS and isinstance(extension, type):
        extension = extension()
    name = extension.kind if group == "mechanisms" else extension.name
    if not isinstance(name, str) or not name:
        must("the name of a plugin", "a string", repr(name))
    earlier = _plugins[group].get(name)
    if earlier is not None and earlier.package == package and earlier.extension == extension:
        return
    if earlier is not None or name in _list_built_in_names(group):
        owner = "dp-workbench"
        if earlier is not None:
            owner = earlier.package
        raise InvalidRequest(
            f"The name {name!r} of {package} is taken by {owner} in workbench.{group}."
        )
    _plugins[group][name] = Plugin(extension, package)


def _find_group(extension: Any) -> str | None:
    """Return the group of an object by its base class, or None if it belongs to no group."""
    bases = _class_of(extension).__mro__
    class_names = {f"{base.__module__}:{base.__qualname__}" for base in bases}
    group = None
    for candidate, base_name in get_places("plugin bases").items():
        if base_name in class_names:
            group = candidate
            break
    # Backends are registered as classes.
    if group == "backends" and not isinstance(extension, type):
        return None
    is_mechanism = hasattr(extension, "kind") and hasattr(extension, "from_dict")
    if group is None and isinstance(extension, type) and is_mechanism:
        return "mechanisms"
    return group


def _list_built_in_names(group: str) -> Any:
    """Return the names of the built-in objects of a group."""
    if group in get_places("plugin names"):
        return load_provided("plugin names", group)
    return ()


def _class_of(extension: Any) -> type:
    """Return the class of an object, or the object itself if it is a class."""
    if isinstance(extension, type):
        return extension
    return type(extension)
