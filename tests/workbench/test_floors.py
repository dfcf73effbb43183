"""The floors of the house, read from the imports: nothing imports upwards, nothing in a circle, nothing lies loose.

An import inside a function counts as well, and one for type checkers only.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
# lowest first; a module may import from its own floor and those before it
FLOORS = (
    "solvers",
    "models",
    "workbench.errors",
    ("workbench.exact", "workbench.data"),
    "workbench.io",
    "workbench.mechanisms",
    "workbench.privacy",
    "workbench.families",
    ("workbench.sweeps", "workbench.frontiers", "workbench.comparison", "workbench.explorer"),
    "workbench.papers",
    "workbench.cli",
)
FACE = {"__init__.py", "__main__.py", "errors.py"}
# without models and solvers
LIGHT = ("workbench.exact", "workbench.data", "workbench.io", "workbench.mechanisms", "workbench.privacy")


def _modules() -> dict[str, Path]:
    found = {}
    for package in ("solvers", "models", "workbench"):
        for path in sorted((ROOT / package).rglob("*.py")):
            parts = path.relative_to(ROOT).with_suffix("").parts
            found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return found


MODULES = _modules()


@cache  # four tests read every module
def _tree(path: Path) -> ast.Module:
    return ast.parse(path.read_text("utf-8"))


def _imports(tree: ast.AST, package: str) -> Iterator[str]:
    """The names that a tree of a package imports."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level <= 1, "an import names its own folder or the whole module"
            module = ".".join(filter(None, [package if node.level else "", node.module]))
            yield from (f"{module}.{alias.name}" for alias in node.names)
        else:
            yield from _imports(node, package)


@cache
def _imported(module: str) -> set[str]:
    """Our modules that a module imports."""
    found = set()
    package = module if MODULES[module].name == "__init__.py" else module.rpartition(".")[0]
    for name in _imports(_tree(MODULES[module]), package):
        while name and name not in MODULES:
            name = name.rpartition(".")[0]
        if name and name != module:
            found.add(name)
    return found


def _floor(module: str) -> int | None:
    for k, floor in enumerate(FLOORS):
        for name in (floor,) if isinstance(floor, str) else floor:
            if module == name or module.startswith(f"{name}."):
                return k
    return None  # the face, which loads names when they are used


def test_every_module_has_a_floor() -> None:
    loose = [module for module in MODULES if _floor(module) is None]
    assert set(loose) <= {"workbench", "workbench.__main__"}


@pytest.mark.parametrize("module", sorted(MODULES))
def test_no_import_runs_upwards(module: str) -> None:
    here = _floor(module)
    if here is None:
        return
    for name in _imported(module):
        there = _floor(name)
        assert there is None or there <= here, f"{module} imports {name}, which stands above it"


@pytest.mark.parametrize("module", [m for m in sorted(MODULES) if m.startswith(LIGHT)])
def test_a_mechanism_needs_neither_models_nor_solvers(module: str) -> None:
    assert not [name for name in _imported(module) if name.startswith(("models", "solvers"))]


def test_no_circles() -> None:
    graph = {module: _imported(module) for module in MODULES}
    done: set[str] = set()

    def visit(module: str, path: tuple[str, ...]) -> None:
        assert module not in path, " -> ".join((*path[path.index(module) :], module))
        if module not in done:
            for name in sorted(graph[module]):
                visit(name, (*path, module))
            done.add(module)

    for module in sorted(graph):
        visit(module, ())


def test_only_the_face_and_the_errors_lie_in_workbench() -> None:
    assert {path.name for path in (ROOT / "workbench").glob("*.py")} <= FACE


# what names must not be: they say nothing to a reader from the field ("columns" of a table, "masses" of a law and the
# "grids" of a sweep do)
RIDDLES = frozenset(
    (
        "admit",
        "asked",
        "curved",
        "designing",
        "door",
        "doubt",
        "found",
        "honour",
        "house",
        "judged",
        "made",
        "missed",
        "one",
        "room",
        "rooms",
        "said",
        "settled",
        "sheet",
        "spend",
        "spent",
        "sweeping",
    )
)
RIDDLES_OF_MODULES = RIDDLES | {"columns", "draws", "grids", "masses"}
SOURCES = [
    path
    for folder in ("solvers", "models", "workbench", "tools", "bench")
    for path in sorted((ROOT / folder).rglob("*.py"))
]


def _bound(tree: ast.AST) -> Iterator[str]:
    """The names that a tree binds: of functions and classes, arguments, locals, attributes of objects, imports."""
    for node in ast.walk(tree):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            yield node.name
        elif isinstance(node, ast.arg):
            yield node.arg
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.id
        elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
            yield node.attr
        elif isinstance(node, ast.alias):
            yield node.asname or node.name
        elif isinstance(node, ast.ExceptHandler) and node.name:
            yield node.name


@pytest.mark.parametrize("module", sorted(MODULES))
def test_modules_say_what_they_hold(module: str) -> None:
    assert not {*module.rpartition(".")[2].split("_")} & RIDDLES_OF_MODULES, module


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: str(path.relative_to(ROOT)))
def test_names_say_what_things_are(path: Path) -> None:
    names = {*_bound(_tree(path))}
    assert not names & RIDDLES, sorted(names & RIDDLES)


COMMAND = "typer reads a command's options from its parameters"
MANY_PARAMETERS = {  # which functions take more than eight, and why
    "workbench/cli/laplace.py: encode": COMMAND,
    "workbench/cli/privatise_labels.py: privatise_labels": COMMAND,
    "workbench/privacy/certificate.py: __init__": "it is public: its keywords are promised",
    "workbench/privacy/certify.py: certify": "it is public: its keywords are promised",
}


def test_no_function_takes_more_than_eight_parameters() -> None:
    many = {
        f"{path.relative_to(ROOT).as_posix()}: {node.name}"
        for path in SOURCES
        for node in ast.walk(_tree(path))
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))
        and len([*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs]) > 8
    }
    assert many == set(MANY_PARAMETERS)


def test_no_folder_is_named_like_a_public_function() -> None:
    import workbench

    folders = {path.name for path in (ROOT / "workbench").iterdir() if path.is_dir()}
    assert not folders & set(workbench.__all__)


NOTION_NAMES = {"pure", "dp", "pdp", "metric", "renyi", "zcdp", "gdp", "curve", "tradeoff"}


def test_only_notions_ask_for_the_name_of_a_notion() -> None:
    """Elsewhere a comparison with a name decides what is drawn or read, never what is bounded or proven."""
    drawn = {
        "workbench.explorer.figures",
        "workbench.families.noise.frontier",
        "workbench.comparison.recommend",  # offers two
        "workbench.families.labels.family",  # dp without δ is pure, decided output by output
    }
    asking = set()
    for module, path in MODULES.items():
        if not module.startswith("workbench.privacy.notions"):
            for node in ast.walk(_tree(path)):
                if isinstance(node, ast.Compare) and "notion" in ast.unparse(node.left):
                    texts = {text.value for text in ast.walk(node) if isinstance(text, ast.Constant)}
                    if texts & NOTION_NAMES:
                        asking.add(module)
    assert asking <= drawn
