"""Test that the test of layers finds forbidden dependencies (see `import_dependencies`).

The tests add a dependency of every kind to small packages. It must be reported.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from import_dependencies import (
    ROOT_PACKAGE,
    Dependencies,
    Layers,
    Packages,
    find_cycle,
    find_dependencies_between,
    find_modules,
    find_upward_dependencies,
)

# The source of every module of the small packages. They have no forbidden dependency.
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
# Source that makes a module depend on {target}, which is the module {name} of {package}.
SOURCE_BY_KIND = {
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
WITHOUT_LINKS = "solvers", "models"
WITH_LINKS = "workbench.solvers", "workbench.models"


def write_packages(root: Path, names: tuple[str, str]) -> Packages:
    """Write the packages of `SOURCES` and return their folders by import name.

    Args:
        root: Folder of the packages.
        names: Import names of solvers and models: `WITHOUT_LINKS`, or `WITH_LINKS` for links in
            workbench.
    """
    solvers, models = names
    for place, text in SOURCES.items():
        path = root / place
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text.format(solvers=solvers, models=models))
    if names == WITH_LINKS:
        (root / "workbench" / "solvers").symlink_to("../solvers", target_is_directory=True)
        (root / "workbench" / "models").symlink_to("../models", target_is_directory=True)
    return {solvers: root / "solvers", models: root / "models", ROOT_PACKAGE: root / "workbench"}


def list_layers(packages: Packages) -> Layers:
    """Return the layers of the packages, lowest first."""
    solvers, models, _ = packages
    return (solvers, models, "workbench.privacy", "workbench.families")


def append_source(root: Path, place: str, text: str) -> None:
    """Append text to the source of a module."""
    path = root / place
    path.write_text(f"{path.read_text()}\n{text}")


@pytest.fixture(params=[WITHOUT_LINKS, WITH_LINKS], ids=["side by side", "linked"])
def packages(request: pytest.FixtureRequest, tmp_path: Path) -> Packages:
    """Return the folders of the packages, without and with links in workbench."""
    return write_packages(tmp_path, request.param)


def test_packages_without_forbidden_dependencies_pass(packages: Packages) -> None:
    dependencies = Dependencies(packages)
    solvers, models, _ = packages
    assert len(dependencies.modules) == len(SOURCES)  # Every file has one name.
    assert dependencies.graph[f"{models}.program"] == {f"{solvers}.backends.first"}
    assert dependencies.graph["workbench.families.api"] == {
        f"{models}.program",
        "workbench.privacy.audit",
    }
    assert not dependencies.graph["workbench.privacy.audit"]
    assert not find_upward_dependencies(dependencies, list_layers(packages))
    assert not find_dependencies_between(
        dependencies, sources=["workbench.privacy"], targets=[solvers, models]
    )
    assert not find_cycle(dependencies)


@pytest.mark.parametrize("kind", SOURCE_BY_KIND)
def test_solvers_that_import_models_are_reported(
    packages: Packages, tmp_path: Path, kind: str
) -> None:
    solvers, models, _ = packages
    text = SOURCE_BY_KIND[kind].format(target=f"{models}.program", package=models, name="program")
    append_source(tmp_path, "solvers/backends/first.py", text)
    dependencies = Dependencies(packages)
    assert find_upward_dependencies(dependencies, list_layers(packages)) == [
        f"{solvers}.backends.first -> {models}.program"
    ]
    assert {f"{solvers}.backends.first", f"{models}.program"} == {*find_cycle(dependencies)}


@pytest.mark.parametrize("kind", SOURCE_BY_KIND)
def test_privacy_that_imports_models_is_reported(
    packages: Packages, tmp_path: Path, kind: str
) -> None:
    _, models, _ = packages
    text = SOURCE_BY_KIND[kind].format(target=f"{models}.program", package=models, name="program")
    append_source(tmp_path, "workbench/privacy/audit.py", text)
    reported = find_dependencies_between(
        Dependencies(packages), sources=["workbench.privacy"], targets=[models]
    )
    assert reported == [f"workbench.privacy.audit -> {models}.program"]


@pytest.mark.parametrize("kind", SOURCE_BY_KIND)
def test_privacy_that_imports_families_is_reported(
    packages: Packages, tmp_path: Path, kind: str
) -> None:
    text = SOURCE_BY_KIND[kind].format(
        target="workbench.families.api", package="workbench.families", name="api"
    )
    append_source(tmp_path, "workbench/privacy/audit.py", text)
    expected = ["workbench.privacy.audit -> workbench.families.api"]
    assert find_upward_dependencies(Dependencies(packages), list_layers(packages)) == expected


@pytest.mark.parametrize(
    "text",
    [
        "from workbench import design\n",
        "import workbench\n\n\ndef use():\n    return workbench.design\n",
        "def use():\n    import workbench as wb\n\n    return wb.design(1)\n",
    ],
)
def test_a_use_of_a_public_name_is_a_dependency_on_its_module(
    packages: Packages, tmp_path: Path, text: str
) -> None:
    append_source(tmp_path, "workbench/privacy/audit.py", text)
    expected = ["workbench.privacy.audit -> workbench.families.api"]
    assert find_upward_dependencies(Dependencies(packages), list_layers(packages)) == expected


def test_a_name_without_a_dot_is_a_dependency_if_it_is_imported(
    packages: Packages, tmp_path: Path
) -> None:
    solvers, models, _ = packages
    append_source(
        tmp_path, "solvers/lowest.py", f'import importlib\n\nimportlib.import_module("{models}")\n'
    )
    expected = [f"{solvers}.lowest -> {models}"]
    assert find_upward_dependencies(Dependencies(packages), list_layers(packages)) == expected


def test_a_name_in_a_toml_file_is_a_dependency_of_the_module_that_reads_it(
    packages: Packages, tmp_path: Path
) -> None:
    solvers, models, _ = packages
    (tmp_path / "solvers" / "table.toml").write_text(
        f'[first]\nclasses = ["{models}.program:Thing"]\n'
    )
    assert not find_upward_dependencies(Dependencies(packages), list_layers(packages))
    append_source(tmp_path, "solvers/lowest.py", 'TABLE = "table.toml"\n')
    assert find_upward_dependencies(Dependencies(packages), list_layers(packages)) == [
        f"{solvers}.lowest -> {models}.program"
    ]


def test_a_link_to_a_folder_that_is_no_package_is_refused(tmp_path: Path) -> None:
    packages = write_packages(tmp_path, WITH_LINKS)
    without_models = {name: folder for name, folder in packages.items() if folder.name != "models"}
    with pytest.raises(LookupError, match="models"):
        find_modules(without_models)
