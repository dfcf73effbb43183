"""Find the dependencies between modules from their source, without importing them.

`test_layers.py` uses this module. It says *arrow* for a dependency, and *face* for the package
`workbench` itself, whose public names are loaded on first use. A module has an arrow to each module
of the project that it

    imports                  at its head, in a function, or under TYPE_CHECKING
    uses through the face    `from workbench import design`, `workbench.design`, `wb.design`: the
                             module that `_MODULE_BY_NAME` names
    names in a string        "workbench.io.files", "workbench.io.files:read_text"
    names in a TOML file     if the module names the file and both are in one folder
    names in an f-string     that is an argument of import_module: every module of the folder with
                             which the text begins

A string that names a package around the module is no arrow, because Python imports these packages
first anyway. A name without a dot is an arrow only as an argument of import_module or find_spec.
The face has the arrows of `_MODULE_BY_NAME` and `_PLACES_BY_KIND`, and belongs to no layer.
"""

from __future__ import annotations

import ast
import os
import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

Packages = Mapping[str, Path]  # import name -> folder
Layers = Sequence[str | tuple[str, ...]]  # lowest first; names of packages or modules

FACE = "workbench"
_LOADERS = {"import_module", "find_spec", "__import__"}
_PLACE = re.compile(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)+(:[A-Za-z_]\w*)?")


def parse(path: Path) -> ast.Module:
    """Return the syntax tree of a file."""
    return ast.parse(path.read_text("utf-8"))


def find_modules(packages: Packages) -> dict[str, Path]:
    """Return the file of every module of some packages, by import name.

    Symbolic links inside a package are not followed, so that every file has one name.

    Raises:
        LookupError: A link leads to a folder that is none of the packages. Its modules would be
            missing.
    """
    modules: dict[str, Path] = {}
    folders = {folder.resolve() for folder in packages.values()}
    for package, folder in packages.items():
        for place, inner, names in os.walk(folder):
            links = [Path(place, name) for name in inner if Path(place, name).is_symlink()]
            for link in links:
                if link.resolve() not in folders:
                    raise LookupError(
                        f"{link} is a link to a folder that is no package of the test."
                    )
            for name in names:
                if name.endswith(".py"):
                    path = Path(place, name)
                    parts = (package, *path.relative_to(folder).with_suffix("").parts)
                    modules[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return dict(sorted(modules.items()))


def strings_in(value: object) -> Iterator[str]:
    """Yield the strings in the values of a parsed TOML file."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for inner in value.values():
            yield from strings_in(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from strings_in(inner)


def _head_of(text: ast.expr) -> str:
    """Return the constant text that an f-string or a sum begins with."""
    while isinstance(text, ast.BinOp):
        text = text.left
    if isinstance(text, ast.JoinedStr) and text.values:
        text = text.values[0]
    return text.value if isinstance(text, ast.Constant) and isinstance(text.value, str) else ""


@dataclass(frozen=True)
class Arrows:
    """The arrows between the modules of some packages."""

    packages: Packages

    @cached_property
    def modules(self) -> dict[str, Path]:
        """Import name -> file."""
        return find_modules(self.packages)

    @cached_property
    def homes(self) -> dict[str, str]:
        """Public name of the face -> module that defines it."""
        if FACE not in self.modules:
            return {}
        for node in parse(self.modules[FACE]).body:
            if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "_MODULE_BY_NAME":
                homes: dict[str, str] = ast.literal_eval(node.value)
                return homes
        return {}

    @cached_property
    def graph(self) -> dict[str, set[str]]:
        """Module -> the modules that it has arrows to."""
        return {module: set(self._arrows(module)) - {module} for module in self.modules}

    def _arrows(self, module: str) -> Iterator[str]:
        path = self.modules[module]
        package = module if path.name == "__init__.py" else module.rpartition(".")[0]
        tree = parse(path)
        faces = {
            alias.asname or alias.name.partition(".")[0]
            for node in ast.walk(tree)
            if isinstance(node, ast.Import)
            for alias in node.names
            if alias.name == FACE or (alias.name.startswith(f"{FACE}.") and alias.asname is None)
        }
        for node in ast.walk(tree):
            if isinstance(node, ast.Import):
                for alias in node.names:
                    yield from self._module_of(alias.name)
            elif isinstance(node, ast.ImportFrom):
                for name in self._imported_names(node, package):
                    yield from self._module_of(name)
            elif (
                isinstance(node, ast.Attribute)
                and isinstance(node.value, ast.Name)
                and node.value.id in faces
            ):
                yield from self._module_of(f"{FACE}.{node.attr}")
            elif isinstance(node, ast.Constant) and isinstance(node.value, str):
                yield from self._named(node.value, module)
                if node.value.endswith(".toml") and path.with_name(node.value).is_file():
                    table = tomllib.loads(path.with_name(node.value).read_text("utf-8"))
                    for text in strings_in(table):
                        yield from self._named(text, module)
            elif isinstance(node, ast.Call):
                yield from self._loaded(node, module)

    def _imported_names(self, node: ast.ImportFrom, package: str) -> Iterator[str]:
        """Yield the absolute dotted name of every name of a "from ... import" statement."""
        parts = package.split(".")
        base = parts[: len(parts) - node.level + 1] if node.level else []
        source = ".".join([*base, *filter(None, [node.module])])
        for alias in node.names:
            yield f"{source}.{alias.name}"

    def _module_of(self, name: str) -> Iterator[str]:
        """Yield the module of a dotted name. For a public name of the face: where it is defined."""
        head, _, public = name.rpartition(".")
        if head == FACE and name not in self.modules:
            name = self.homes.get(public, FACE)
        while name and name not in self.modules:
            name = name.rpartition(".")[0]
        if name:
            yield name

    def _named(self, text: str, module: str) -> Iterator[str]:
        """Yield the module that a string in the source of another module names, if there is one."""
        if not _PLACE.fullmatch(text):
            return
        name = text.partition(":")[0]
        for known in (name, name.rpartition(".")[0]):
            if "." in known and known in self.modules:
                if not f"{module}.".startswith(f"{known}."):
                    yield known
                return

    def _loaded(self, call: ast.Call, module: str) -> Iterator[str]:
        """Yield the modules that a call of import_module or find_spec may import."""
        loader = (
            call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")
        )
        if loader not in _LOADERS or not call.args:
            return
        given = call.args[0]
        if isinstance(given, ast.Constant) and given.value in self.modules:
            yield given.value
        elif not isinstance(given, ast.Constant):
            folder, dot, _ = _head_of(given).rpartition(".")
            if dot:
                yield from (name for name in self.modules if name.rpartition(".")[0] == folder)


def layer_of(module: str, layers: Layers) -> int | None:
    """Return the position of the layer that names the module, or the nearest package around it.

    None if no layer does.
    """
    longest_name = ""
    position = None
    for k, layer in enumerate(layers):
        names = (layer,) if isinstance(layer, str) else layer
        for name in names:
            if f"{module}.".startswith(f"{name}.") and len(name) > len(longest_name):
                longest_name = name
                position = k
    return position


def upward_arrows(arrows: Arrows, layers: Layers) -> list[str]:
    """Return "module -> module" for every arrow that goes to a higher layer."""
    upward = []
    for module, targets in arrows.graph.items():
        layer = layer_of(module, layers)
        for target in sorted(targets):
            target_layer = layer_of(target, layers)
            if layer is not None and target_layer is not None and target_layer > layer:
                upward.append(f"{module} -> {target}")
    return upward


def arrows_between(arrows: Arrows, sources: Sequence[str], targets: Sequence[str]) -> list[str]:
    """Return "module -> module" for every arrow from some packages or modules into others."""

    def lies_in(module: str, names: Sequence[str]) -> bool:
        return any(f"{module}.".startswith(f"{name}.") for name in names)

    return [
        f"{module} -> {target}"
        for module in arrows.graph
        if lies_in(module, sources)
        for target in sorted(arrows.graph[module])
        if lies_in(target, targets)
    ]


def find_cycle(arrows: Arrows) -> list[str]:
    """Return the modules of one cycle in order, with the first one repeated at the end.

    The list is empty if there is no cycle. The face is left out: it provides names of all layers,
    and modules import it to read its version.
    """
    graph = {
        module: sorted(targets - {FACE})
        for module, targets in arrows.graph.items()
        if module != FACE
    }
    finished: set[str] = set()

    def visit(module: str, path: list[str]) -> list[str]:
        if module in path:
            return [*path[path.index(module) :], module]
        if module not in finished:
            for target in graph[module]:
                cycle = visit(target, [*path, module])
                if cycle:
                    return cycle
            finished.add(module)
        return []

    return next(filter(None, (visit(module, []) for module in graph)), [])
