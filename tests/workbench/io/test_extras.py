"""Test that a command names a missing extra before it starts, and keeps existing files.

An extra is a set of optional packages of pyproject.toml, such as "parquet".
"""

from __future__ import annotations

import sys
import tomllib
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

import workbench as wb
from workbench.io import extras
from workbench.papers import gallery, reproduce, steps
from workbench.papers.artifact import Artifact, Paper
from workbench.privacy.opendp import measurement
from workbench.sweeps.export import check_export_path


@pytest.fixture
def without_extras(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make the packages of all extras impossible to import."""
    for name in extras.EXTRAS.values():
        monkeypatch.setitem(sys.modules, name, None)


def _make_artifact(full: bool) -> Artifact:
    """Return an artifact with a table of one number."""
    return Artifact(
        "first", "First", table=pd.DataFrame({"x": [1.0]}), draw=None, caption="a caption"
    )


def _fail(full: bool) -> Artifact:
    """Raise an error in place of an artifact."""
    raise wb.WorkbenchError("No.")


@pytest.fixture
def paper(monkeypatch: pytest.MonkeyPatch) -> None:
    """Replace the papers by one with two artifacts. The second needs an extra, and fails."""
    small_paper = Paper(
        "modulo-noise",
        "A paper",
        "",
        {"first": _make_artifact, "second": _fail},
        required_extras={"second": "learning"},
    )
    for module in (reproduce, steps, gallery):
        monkeypatch.setattr(module, "load_paper", lambda name: small_paper)


def test_every_extra_is_known() -> None:
    text = (Path(__file__).parents[3] / "pyproject.toml").read_text("utf-8")
    declared = set(tomllib.loads(text)["project"]["optional-dependencies"]) - {"all", "dev", "docs"}
    assert declared == set(extras.EXTRAS)
    # `make install` installs all extras.
    assert all(extras.is_importable(package) for package in extras.EXTRAS.values())


@pytest.mark.usefixtures("without_extras")
@pytest.mark.parametrize(
    ("extra", "call"),
    [
        ("opendp", lambda noise, folder: measurement(noise)),
        ("accounting", lambda noise, folder: measurement(noise, "privacy_loss_distribution")),
        ("parquet", lambda noise, folder: check_export_path(folder / "a.parquet")),
        (
            "cluster",
            lambda noise, folder: wb.sweep(
                "examples/sweeps/modulo.toml", folder / "l", cluster="tcp://a:1"
            ),
        ),
        ("learning", lambda noise, folder: wb.reproduce("label-dp", "table1", folder)),
    ],
)
def test_a_missing_extra_is_named_before_anything_is_written(
    extra: str, call: Any, tmp_path: Path
) -> None:
    noise = wb.AdditiveNoise.from_pmf(wb.ModuloNoise(n=2, max_shift=1), [0.5, 0.25, 0.25])
    with pytest.raises(wb.NotInstalled, match=rf"pip install '\.\[{extra}\]' in a clone"):
        call(noise, tmp_path)
    assert not [*tmp_path.iterdir()]


@pytest.mark.usefixtures("without_extras", "paper")
def test_a_reproduction_skips_artifacts_that_need_a_missing_extra(
    tmp_path: Path,
) -> None:
    messages: list[str] = []
    result = wb.reproduce(
        "modulo-noise",
        results=tmp_path,
        jobs=1,
        progress=lambda done, total, line: messages.append(line),
    )
    assert messages[0].startswith("Omitted: modulo-noise second, which need the extra 'learning'")
    assert result.finished == 1
    assert result.total == 1
    assert result.is_interrupted is False
    assert "### First" in (tmp_path / "README.md").read_text("utf-8")


@pytest.mark.usefixtures("paper")
def test_an_artifact_that_fails_leaves_the_gallery_of_the_others(tmp_path: Path) -> None:
    with pytest.raises(wb.WorkbenchError, match=r"^No\.$"):
        wb.reproduce("modulo-noise", results=tmp_path, jobs=1)
    assert "### First" in (tmp_path / "README.md").read_text("utf-8")
