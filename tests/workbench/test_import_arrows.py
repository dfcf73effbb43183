"""Test that the test of layers finds forbidden dependencies ("arrows", see `import_arrows`).

Arrows of every kind are planted in a small tree of packages, and must be reported.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from import_arrows import (
    FACE,
    Arrows,
    Layers,
    Packages,
    arrows_between,
    find_cycle,
    find_modules,
    upward_arrows,
)

SOURCES = {
    "solvers/__init__.py": "",
    "solvers/lowest.py": "",
    "solvers/backends/__init__.py": "",
    "solvers/backends/first.py": "from {solvers}.lowest import anything\n",
    "models/__init__.py": "",
    "models/program.py": "from {solvers}.backends import first\n",
    "workbench/__init__.py": '_MODULE_BY_NAME = {{"design": "workbench.families.api", "audit": "workbench.privacy.audit"}}\n',
    "workbench/privacy/__init__.py": "",
    "workbench/privacy/audit.py": '__doc__ = "workbench.privacy"\n',
    "workbench/families/__init__.py": "",
    "workbench/families/api.py": "from {models} import program\nfrom workbench import audit\n",
}
PLANTED = {
    "import": "import {target}\n",
    "from": "from {package} import {name}\n",
    "in a function": "def load():\n    from {package} import {name}\n",
    "under TYPE_CHECKING": "from typing import TYPE_CHECKING\n\nif TYPE_CHECKING:\n    from {target} import Thing\n",
    "string": 'NAMES = {{"thing": "{target}"}}\n',
    "string with an attribute": 'NAMES = ["{target}:Thing"]\n',
    "dotted string": 'WHERE = "{target}.Thing"\n',
    "f-string": 'import importlib\n\n\ndef load(name):\n    return importlib.import_module(f"{package}.{{name}}")\n',
    "sum of strings": 'import importlib\n\n\ndef load(name):\n    importlib.import_module("{package}." + name)\n',
}
SIDE_BY_SIDE = "solvers", "models"
LINKED = "workbench.solvers", "workbench.models"


def _write_tree(root: Path, names: tuple[str, str]) -> Packages:
    """Write the clean tree, with links in workbench where the names of the packages say so."""
    solvers, models = names
    for place, text in SOURCES.items():
        path = root / place
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text.format(solvers=solvers, models=models))
    if names == LINKED:
        (root / "workbench" / "solvers").symlink_to("../solvers", target_is_directory=True)
        (root / "workbench" / "models").symlink_to("../models", target_is_directory=True)
    return {solvers: root / "solvers", models: root / "models", FACE: root / "workbench"}


def _layers(packages: Packages) -> Layers:
    solvers, models, _ = packages
    return (solvers, models, "workbench.privacy", "workbench.families")


def _plant(root: Path, place: str, text: str) -> None:
    path = root / place
    path.write_text(f"{path.read_text()}\n{text}")


@pytest.fixture(params=[SIDE_BY_SIDE, LINKED], ids=["side by side", "linked"])
def packages(request: pytest.FixtureRequest, tmp_path: Path) -> Packages:
    return _write_tree(tmp_path, request.param)


def test_a_clean_tree_has_no_upward_arrow_and_no_cycle(packages: Packages) -> None:
    arrows = Arrows(packages)
    solvers, models, _ = packages
    assert len(arrows.modules) == len(SOURCES)  # every file once, under one name
    assert arrows.graph[f"{models}.program"] == {f"{solvers}.backends.first"}
    assert arrows.graph["workbench.families.api"] == {
        f"{models}.program",
        "workbench.privacy.audit",
    }
    assert not arrows.graph["workbench.privacy.audit"]
    assert not upward_arrows(arrows, _layers(packages))
    assert not arrows_between(arrows, ["workbench.privacy"], [solvers, models])
    assert not find_cycle(arrows)


@pytest.mark.parametrize("kind", PLANTED)
def test_solvers_that_import_models_are_reported(
    packages: Packages, tmp_path: Path, kind: str
) -> None:
    solvers, models, _ = packages
    text = PLANTED[kind].format(target=f"{models}.program", package=models, name="program")
    _plant(tmp_path, "solvers/backends/first.py", text)
    arrows = Arrows(packages)
    assert upward_arrows(arrows, _layers(packages)) == [
        f"{solvers}.backends.first -> {models}.program"
    ]
    assert {f"{solvers}.backends.first", f"{models}.program"} == {*find_cycle(arrows)}


@pytest.mark.parametrize("kind", PLANTED)
def test_privacy_that_imports_models_is_reported(
    packages: Packages, tmp_path: Path, kind: str
) -> None:
    _, models, _ = packages
    text = PLANTED[kind].format(target=f"{models}.program", package=models, name="program")
    _plant(tmp_path, "workbench/privacy/audit.py", text)
    reported = arrows_between(Arrows(packages), ["workbench.privacy"], [models])
    assert reported == [f"workbench.privacy.audit -> {models}.program"]


@pytest.mark.parametrize("kind", PLANTED)
def test_a_planted_import_of_families_is_reported(
    packages: Packages, tmp_path: Path, kind: str
) -> None:
    text = PLANTED[kind].format(
        target="workbench.families.api", package="workbench.families", name="api"
    )
    _plant(tmp_path, "workbench/privacy/audit.py", text)
    expected = ["workbench.privacy.audit -> workbench.families.api"]
    assert upward_arrows(Arrows(packages), _layers(packages)) == expected


@pytest.mark.parametrize(
    "text",
    [
        "from workbench import design\n",
        "import workbench\n\n\ndef use():\n    return workbench.design\n",
        "def use():\n    import workbench as wb\n\n    return wb.design(1)\n",
    ],
)
def test_a_name_of_the_face_is_an_arrow_to_its_home(
    packages: Packages, tmp_path: Path, text: str
) -> None:
    _plant(tmp_path, "workbench/privacy/audit.py", text)
    expected = ["workbench.privacy.audit -> workbench.families.api"]
    assert upward_arrows(Arrows(packages), _layers(packages)) == expected


def test_a_name_without_a_dot_is_an_arrow_where_it_is_imported(
    packages: Packages, tmp_path: Path
) -> None:
    solvers, models, _ = packages
    _plant(
        tmp_path, "solvers/lowest.py", f'import importlib\n\nimportlib.import_module("{models}")\n'
    )
    expected = [f"{solvers}.lowest -> {models}"]
    assert upward_arrows(Arrows(packages), _layers(packages)) == expected


def test_a_name_in_a_table_is_an_arrow_of_the_module_that_reads_it(
    packages: Packages, tmp_path: Path
) -> None:
    solvers, models, _ = packages
    (tmp_path / "solvers" / "table.toml").write_text(
        f'[first]\nclasses = ["{models}.program:Thing"]\n'
    )
    assert not upward_arrows(Arrows(packages), _layers(packages))
    _plant(tmp_path, "solvers/lowest.py", 'TABLE = "table.toml"\n')
    assert upward_arrows(Arrows(packages), _layers(packages)) == [
        f"{solvers}.lowest -> {models}.program"
    ]


def test_a_link_that_no_package_names_is_refused(tmp_path: Path) -> None:
    packages = _write_tree(tmp_path, LINKED)
    without_models = {name: folder for name, folder in packages.items() if folder.name != "models"}
    with pytest.raises(LookupError, match="models"):
        find_modules(without_models)
