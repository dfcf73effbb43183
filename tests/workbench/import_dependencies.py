"""Find the dependencies between modules from their source, without importing them.

`test_layers.py` uses this module. The root package is `workbench` itself, whose public names are
loaded on first use. A module depends on each module of the project that it

    imports                  at its head, in a function, or under TYPE_CHECKING
    uses by a public name    `from workbench import design`, `workbench.design`, `wb.design`: the
                             module that `_MODULE_BY_NAME` of the root package names
    names in a string        "workbench.io.files", "workbench.io.files:read_text"
    names in a TOML file     if the module names the file and both are in one folder
    names in an f-string     that is an argument of import_module: every module of the folder with
                             which the text begins

A string that names a package around the module does not count, because Python imports these
packages first anyway. A name without a dot only counts as an argument of import_module or
find_spec. The root package depends on the modules that `_MODULE_BY_NAME` and `_PLACES_BY_KIND`
name, and belongs to no layer.
"""

from __future__ import annotations

import ast
import os
import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path

Packages = Mapping[str, Path]  # import name -> folder
Layers = Sequence[str | tuple[str, ...]]  # lowest first; names of packages or modules

ROOT_PACKAGE = "workbench"
_IMPORT_FUNCTIONS = {"import_module", "find_spec", "__import__"}
_DOTTED_NAME = re.compile(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)+(:[A-Za-z_]\w*)?")


@cache
def _parse_text(text: str) -> ast.Module:
    """Return the syntax tree of a text. It is kept, because several tests read every file."""
    return ast.parse(text)


def parse(path: Path) -> ast.Module:
    """Return the syntax tree of a file."""
    return _parse_text(path.read_text("utf-8"))


@cache
def _list_nodes_of_text(text: str) -> list[ast.AST]:
    """Return all nodes of the syntax tree of a text. They are kept, as the tree is."""
    return [*ast.walk(_parse_text(text))]


def list_nodes(path: Path) -> list[ast.AST]:
    """Return all nodes of the syntax tree of a file."""
    return _list_nodes_of_text(path.read_text("utf-8"))


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


def iter_strings(value: object) -> Iterator[str]:
    """Yield the strings in the values of a parsed TOML file."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for inner in value.values():
            yield from iter_strings(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from iter_strings(inner)


def _get_first_text(text: ast.expr) -> str:
    """Return the constant text with which an f-string or a sum of texts begins.

    It is empty if they begin with a variable.
    """
    while isinstance(text, ast.BinOp):
        text = text.left
    if isinstance(text, ast.JoinedStr) and text.values:
        text = text.values[0]
    return text.value if isinstance(text, ast.Constant) and isinstance(text.value, str) else ""


@dataclass(frozen=True)
class Dependencies:
    """The dependencies between the modules of some packages.

    Attributes:
        packages: Folder of each package, by import name.
    """

    packages: Packages

    @cached_property
    def modules(self) -> dict[str, Path]:
        """Return the file of every module, by import name."""
        return find_modules(self.packages)

    @cached_property
    def module_by_public_name(self) -> dict[str, str]:
        """Return the module that defines each public name of the root package."""
        if ROOT_PACKAGE not in self.modules:
            return {}
        for node in parse(self.modules[ROOT_PACKAGE]).body:
            if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "_MODULE_BY_NAME":
                module_by_name: dict[str, str] = ast.literal_eval(node.value)
                return module_by_name
        return {}

    @cached_property
    def graph(self) -> dict[str, set[str]]:
        """Return the other modules on which each module depends."""
        return {module: set(self._find_targets(module)) - {module} for module in self.modules}

    def _find_targets(self, module: str) -> Iterator[str]:
        """Yield the modules on which a module depends. They may repeat and include the module."""
        path = self.modules[module]
        package = module if path.name == "__init__.py" else module.rpartition(".")[0]
        nodes = list_nodes(path)
        # The names under which the module imports the root package, such as "wb".
        root_names = {
            alias.asname or alias.name.partition(".")[0]
            for node in nodes
            if isinstance(node, ast.Import)
            for alias in node.names
            if alias.name == ROOT_PACKAGE
            or (alias.name.startswith(f"{ROOT_PACKAGE}.") and alias.asname is None)
        }
        for node in nodes:
            if isinstance(node, ast.Import):
                for alias in node.names:
                    yield from self._find_module(alias.name)
            elif isinstance(node, ast.ImportFrom):
                for name in self._list_imported_names(node, package):
                    yield from self._find_module(name)
            elif (
                isinstance(node, ast.Attribute)
                and isinstance(node.value, ast.Name)
                and node.value.id in root_names
            ):
                yield from self._find_module(f"{ROOT_PACKAGE}.{node.attr}")
            elif isinstance(node, ast.Constant) and isinstance(node.value, str):
                yield from self._find_named_module(node.value, module)
                if node.value.endswith(".toml") and path.with_name(node.value).is_file():
                    table = tomllib.loads(path.with_name(node.value).read_text("utf-8"))
                    for text in iter_strings(table):
                        yield from self._find_named_module(text, module)
            elif isinstance(node, ast.Call):
                yield from self._find_loaded_modules(node, module)

    def _list_imported_names(self, node: ast.ImportFrom, package: str) -> Iterator[str]:
        """Yield the absolute dotted name of every name of a "from ... import" statement."""
        parts = package.split(".")
        base = parts[: len(parts) - node.level + 1] if node.level else []
        source = ".".join([*base, *filter(None, [node.module])])
        for alias in node.names:
            yield f"{source}.{alias.name}"

    def _find_module(self, name: str) -> Iterator[str]:
        """Yield the module of a dotted name. For a public name it is the module that defines it."""
        head, _, public = name.rpartition(".")
        if head == ROOT_PACKAGE and name not in self.modules:
            name = self.module_by_public_name.get(public, ROOT_PACKAGE)
        while name and name not in self.modules:
            name = name.rpartition(".")[0]
        if name:
            yield name

    def _find_named_module(self, text: str, module: str) -> Iterator[str]:
        """Yield the module that a string in the source of another module names, if there is one."""
        if not _DOTTED_NAME.fullmatch(text):
            return
        name = text.partition(":")[0]
        # The text names a module, or an attribute of a module.
        for candidate in (name, name.rpartition(".")[0]):
            if "." in candidate and candidate in self.modules:
                if not f"{module}.".startswith(f"{candidate}."):
                    yield candidate
                return

    def _find_loaded_modules(self, call: ast.Call, module: str) -> Iterator[str]:
        """Yield the modules that a call of import_module or find_spec may import."""
        loader = (
            call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")
        )
        if loader not in _IMPORT_FUNCTIONS or not call.args:
            return
        argument = call.args[0]
        if isinstance(argument, ast.Constant) and argument.value in self.modules:
            yield argument.value
        elif not isinstance(argument, ast.Constant):
            folder, dot, _ = _get_first_text(argument).rpartition(".")
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


def find_upward_dependencies(dependencies: Dependencies, layers: Layers) -> list[str]:
    """Return "module -> module" for every dependency on a higher layer."""
    upward = []
    for module, targets in dependencies.graph.items():
        layer = layer_of(module, layers)
        for target in sorted(targets):
            target_layer = layer_of(target, layers)
            if layer is not None and target_layer is not None and target_layer > layer:
                upward.append(f"{module} -> {target}")
    return upward


def find_dependencies_between(
    dependencies: Dependencies, sources: Sequence[str], targets: Sequence[str]
) -> list[str]:
    """Return "module -> module" for every dependency of some packages or modules on others."""

    def is_inside(module: str, names: Sequence[str]) -> bool:
        """Return whether a module is one of some packages or modules, or inside one of them."""
        return any(f"{module}.".startswith(f"{name}.") for name in names)

    return [
        f"{module} -> {target}"
        for module in dependencies.graph
        if is_inside(module, sources)
        for target in sorted(dependencies.graph[module])
        if is_inside(target, targets)
    ]


def find_cycle(dependencies: Dependencies) -> list[str]:
    """Return the modules of one cycle in order, with the first one repeated at the end.

    The list is empty if there is no cycle. The root package is left out: it provides names of all
    layers, and modules import it to read its version.
    """
    graph = {
        module: sorted(targets - {ROOT_PACKAGE})
        for module, targets in dependencies.graph.items()
        if module != ROOT_PACKAGE
    }
    finished: set[str] = set()

    def visit(module: str, path: list[str]) -> list[str]:
        """Return a cycle that can be reached from a module after a path, or an empty list."""
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
