"""Test that modules only depend on lower layers, and that there is no cycle.

Dependencies are read from the source. `import_dependencies` lists their kinds, for example imports
and names of modules in strings.
"""

from __future__ import annotations

import ast
from pathlib import Path

from import_dependencies import (
    ROOT_PACKAGE,
    Dependencies,
    Packages,
    find_cycle,
    find_dependencies_between,
    find_upward_dependencies,
    layer_of,
    list_nodes,
)

ROOT = Path(__file__).parents[2]
# `workbench/solvers` and `workbench/models` are links to the folders, which have these import
# names.
SOLVERS = "workbench.solvers"
MODELS = "workbench.models"
PACKAGES: Packages = {
    SOLVERS: ROOT / "solvers",
    MODELS: ROOT / "models",
    ROOT_PACKAGE: ROOT / "workbench",
}

# Packages and modules by layer, the lowest layer first. A module may depend on its own layer and on
# lower ones. It belongs to the layer with the longest name that contains it.
LAYERS = (
    SOLVERS,
    MODELS,
    "workbench.errors",
    ("workbench.exact", "workbench.data", "workbench.io"),
    "workbench.notions",
    ("workbench.questions", "workbench.mechanisms"),
    "workbench.privacy",
    "workbench.pipeline",
    "workbench.families",
    (
        "workbench.formulas",
        "workbench.frontiers",
        "workbench.recommendation",
        "workbench.comparison",
        "workbench.sweeps",
        "workbench.explorer",
        "workbench.publishing",
    ),
    "workbench.papers",
    "workbench.cli",
)
# The only modules of the folder workbench itself.
TOP_LEVEL_FILES = {"__init__.py", "__main__.py", "errors.py"}
# Packages that import neither models nor solvers.
LIGHT_PACKAGES = (
    "workbench.exact",
    "workbench.data",
    "workbench.io",
    "workbench.notions",
    "workbench.questions",
    "workbench.mechanisms",
    "workbench.privacy",
)

DEPENDENCIES = Dependencies(PACKAGES)
MODULES = DEPENDENCIES.modules


def test_every_module_has_a_layer() -> None:
    modules_without_layer = {module for module in MODULES if layer_of(module, LAYERS) is None}
    assert modules_without_layer == {ROOT_PACKAGE, f"{ROOT_PACKAGE}.__main__"}


def test_every_name_of_a_layer_is_a_module() -> None:
    names: set[str] = set()
    for layer in LAYERS:
        names |= {layer} if isinstance(layer, str) else {*layer}
    assert names <= {*MODULES}


def test_no_module_depends_on_a_higher_layer() -> None:
    assert not find_upward_dependencies(DEPENDENCIES, LAYERS)


def test_there_is_no_cycle() -> None:
    assert not find_cycle(DEPENDENCIES)


def test_mechanisms_and_privacy_need_neither_models_nor_solvers() -> None:
    assert not find_dependencies_between(DEPENDENCIES, LIGHT_PACKAGES, (MODELS, SOLVERS))


# Only workbench.data reads texts, files and containers. These other modules use its readers, for
# the reasons that are given.
DATA = "workbench.data"
READERS = (f"{DATA}.containers", f"{DATA}.csv_column", f"{DATA}.csv_rows", f"{DATA}.tables")
USERS_OF_READERS = {
    "workbench.cli.console": "aligns numbers to the right",
    "workbench.cli.laplace": "publishes a column of a file",
    "workbench.cli.privatise": "publishes columns of a file",
    "workbench.cli.privatise_labels": "publishes a column of a file",
    "workbench.cli.privatise_names": "publishes a column of a file",
    "workbench.cli.privatise_places": "publishes two columns of a file",
    "workbench.cli.sample": "prints draws",
    "workbench.pipeline.user_baselines": "tells a law table from other files",
    "workbench.privacy.column_release": "publishes columns of a file",
}
FILE_LIBRARIES = {"csv", "openpyxl", "polars", "pyarrow"}
USERS_OF_FILE_LIBRARIES = {
    "workbench.papers.claims": "reads the stored results",
    "workbench.papers.gallery": "reads the stored results",
    "workbench.papers.label_dp.data": "reads the data sets of a paper",
    "workbench.sweeps.export": "writes files",
}


def test_texts_files_and_containers_are_read_at_the_edge() -> None:
    sources = [module for module in MODULES if not f"{module}.".startswith(f"{DATA}.")]
    dependencies = find_dependencies_between(DEPENDENCIES, sources=(ROOT_PACKAGE,), targets=READERS)
    users = {text.partition(" -> ")[0] for text in dependencies}
    assert users & {*sources} == USERS_OF_READERS.keys()
    readers_of_files = {name for name in sources if reads_files(MODULES[name])}
    assert readers_of_files == USERS_OF_FILE_LIBRARIES.keys()


def reads_files(path: Path) -> bool:
    """Return whether a module imports a library of files, or calls a reader of pandas."""
    for node in list_nodes(path):
        names = []
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and not node.level:
            names = [node.module or ""]
        if {name.partition(".")[0] for name in names} & FILE_LIBRARIES:
            return True
        if (
            isinstance(node, ast.Attribute)
            and isinstance(node.value, ast.Name)
            and node.value.id in ("pd", "pandas")
            and node.attr.startswith("read_")
        ):
            return True
    return False


def test_the_folder_workbench_has_only_three_modules_of_its_own() -> None:
    assert {path.name for path in (ROOT / "workbench").glob("*.py")} <= TOP_LEVEL_FILES


SOURCES = [
    path
    for folder in ("solvers", "models", "workbench", "tools", "bench")
    for path in sorted((ROOT / folder).rglob("*.py"))
]


COMMAND = "typer reads the options of a command from its parameters"
# The functions with more than eight parameters, and the reasons.
MANY_PARAMETERS = {
    "workbench/cli/laplace.py: encode": COMMAND,
    "workbench/cli/privatise_labels.py: privatise_labels": COMMAND,
    "workbench/privacy/certificate.py: __init__": "it is public: its keywords are promised",
    "workbench/privacy/certify.py: certify": "it is public: its keywords are promised",
}


def test_no_function_takes_more_than_eight_parameters() -> None:
    many = {
        f"{path.relative_to(ROOT).as_posix()}: {node.name}"
        for path in SOURCES
        for node in list_nodes(path)
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))
        and len([*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs]) > 8
    }
    assert many == set(MANY_PARAMETERS)


def test_no_folder_is_named_like_a_public_function() -> None:
    import workbench

    folders = {path.name for path in (ROOT / "workbench").iterdir() if path.is_dir()}
    assert not folders & set(workbench.__all__)


NOTION_NAMES = {"pure", "dp", "pdp", "metric", "renyi", "zcdp", "gdp", "curve", "tradeoff"}


def test_bounds_and_proofs_never_depend_on_the_name_of_a_notion() -> None:
    """A few modules compare the name to decide what they draw or offer."""
    allowed_modules = {
        "workbench.explorer.figures",
        "workbench.families.noise.frontier",
        "workbench.recommendation.recommend",  # It offers mechanisms of two notions.
        "workbench.families.labels.family",  # It replaces DP with δ = 0 by pure DP.
    }
    comparing_modules = set()
    for module, path in MODULES.items():
        if not module.startswith("workbench.notions"):
            for node in list_nodes(path):
                if isinstance(node, ast.Compare) and "notion" in ast.unparse(node.left):
                    texts = {
                        text.value for text in ast.walk(node) if isinstance(text, ast.Constant)
                    }
                    if texts & NOTION_NAMES:
                        comparing_modules.add(module)
    assert comparing_modules <= allowed_modules
