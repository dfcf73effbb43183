"""The layers of the project, read from its source: no arrow between modules goes up, and none in a
circle.

`import_arrows` says what an arrow is: imports anywhere, under TYPE_CHECKING too, and names of
modules in strings.
"""

from __future__ import annotations

import ast
from functools import cache
from pathlib import Path

from import_arrows import (
    FACE,
    Arrows,
    Packages,
    arrows_between,
    find_cycle,
    layer_of,
    parse,
    upward_arrows,
)

ROOT = Path(__file__).parents[2]
# The names under which the folders are imported: `workbench/solvers` and `workbench/models` are
# links.
SOLVERS = "workbench.solvers"
MODELS = "workbench.models"
PACKAGES: Packages = {SOLVERS: ROOT / "solvers", MODELS: ROOT / "models", FACE: ROOT / "workbench"}

# Lowest first. A module may have arrows into its own layer and into lower ones. The longest name
# counts.
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
    ),
    "workbench.papers",
    "workbench.cli",
)
FACE_FILES = {"__init__.py", "__main__.py", "errors.py"}
# These import neither models nor solvers.
LIGHT = (
    "workbench.exact",
    "workbench.data",
    "workbench.io",
    "workbench.notions",
    "workbench.questions",
    "workbench.mechanisms",
    "workbench.privacy",
)

ARROWS = Arrows(PACKAGES)
MODULES = ARROWS.modules


@cache  # Three tests read every file.
def _tree(path: Path) -> ast.Module:
    return parse(path)


def test_every_module_has_a_layer() -> None:
    without = {module for module in MODULES if layer_of(module, LAYERS) is None}
    assert without == {FACE, f"{FACE}.__main__"}
    named = {name for layer in LAYERS for name in ((layer,) if isinstance(layer, str) else layer)}
    assert named <= {*MODULES}


def test_no_arrow_goes_up() -> None:
    assert not upward_arrows(ARROWS, LAYERS)


def test_there_is_no_cycle() -> None:
    assert not find_cycle(ARROWS)


def test_mechanisms_and_privacy_need_neither_models_nor_solvers() -> None:
    assert not arrows_between(ARROWS, LIGHT, (MODELS, SOLVERS))


# Texts, files and containers are read in workbench.data alone. Outside of it these modules use its
# readers:
DATA = "workbench.data"
READERS = (f"{DATA}.containers", f"{DATA}.csv_column", f"{DATA}.csv_rows", f"{DATA}.tables")
USERS_OF_READERS = {
    "workbench.cli.certificate": "shows values that it samples",
    "workbench.cli.console": "aligns numbers to the right",
    "workbench.cli.laplace": "publishes a column of a file",
    "workbench.cli.privatise": "publishes columns of a file",
    "workbench.cli.privatise_labels": "publishes a column of a file",
    "workbench.cli.privatise_places": "publishes two columns of a file",
    "workbench.pipeline.user_baselines": "tells a law table from other files",
    "workbench.privacy.column_release": "publishes columns of a file",
}
FILE_LIBRARIES = {"csv", "openpyxl", "polars", "pyarrow"}
USERS_OF_FILE_LIBRARIES = {
    "workbench.papers.gallery": "reads the stored results",
    "workbench.papers.label_dp.data": "reads the data sets of a paper",
    "workbench.sweeps.export": "writes files",
}


def test_texts_files_and_containers_are_read_at_the_edge() -> None:
    sources = [module for module in MODULES if not f"{module}.".startswith(f"{DATA}.")]
    arrows = arrows_between(ARROWS, (FACE,), READERS)
    users = {arrow.partition(" -> ")[0] for arrow in arrows}
    assert users & {*sources} == USERS_OF_READERS.keys()
    assert {
        name for name in sources if _reads_files(MODULES[name])
    } == USERS_OF_FILE_LIBRARIES.keys()


def _reads_files(path: Path) -> bool:
    """Whether a module imports a library of files, or calls a reader of pandas."""
    for node in ast.walk(_tree(path)):
        names = []
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and not node.level:
            names = [node.module or ""]
        if {name.partition(".")[0] for name in names} & FILE_LIBRARIES:
            return True
        if isinstance(node, ast.Attribute) and ast.unparse(node).startswith(
            ("pd.read_", "pandas.read_")
        ):
            return True
    return False


def test_only_the_face_and_the_errors_lie_in_workbench() -> None:
    assert {path.name for path in (ROOT / "workbench").glob("*.py")} <= FACE_FILES


SOURCES = [
    path
    for folder in ("solvers", "models", "workbench", "tools", "bench")
    for path in sorted((ROOT / folder).rglob("*.py"))
]


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
    """Elsewhere a comparison with a name decides what is drawn or read, never what is bounded or
    proven.
    """
    drawn = {
        "workbench.explorer.figures",
        "workbench.families.noise.frontier",
        "workbench.recommendation.recommend",  # offers two
        "workbench.families.labels.family",  # dp without δ is pure, decided output by output
    }
    asking = set()
    for module, path in MODULES.items():
        if not module.startswith("workbench.notions"):
            for node in ast.walk(_tree(path)):
                if isinstance(node, ast.Compare) and "notion" in ast.unparse(node.left):
                    texts = {
                        text.value for text in ast.walk(node) if isinstance(text, ast.Constant)
                    }
                    if texts & NOTION_NAMES:
                        asking.add(module)
    assert asking <= drawn
