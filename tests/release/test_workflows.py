"""Workflows and hooks call make targets only, and issue forms ask for `workbench doctor`."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
yaml = pytest.importorskip("yaml")
TARGETS = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text("utf-8"), re.MULTILINE))
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))


@pytest.mark.parametrize("file", WORKFLOWS, ids=lambda file: file.stem)
def test_a_workflow_only_calls_make_targets(file: Path) -> None:
    stated = yaml.safe_load(file.read_text("utf-8"))
    steps = [step for job in stated["jobs"].values() for step in job["steps"]]
    commands = [step["run"] for step in steps if "run" in step]
    assert commands
    assert [
        c for c in commands if not re.fullmatch(r"make [a-z-]+", c) or c.split()[1] not in TARGETS
    ] == []
    assert stated["permissions"] == {"contents": "read"}
    assert all("timeout-minutes" in job for job in stated["jobs"].values())


def test_every_kind_of_check_has_a_workflow() -> None:
    called = {
        target
        for file in WORKFLOWS
        for target in re.findall(r"run: make ([a-z-]+)", file.read_text("utf-8"))
    }
    assert called == {"test", "test-unpinned", "docs", "check-release", "fuzz", "full"}


def test_hooks_before_a_commit_call_make_targets() -> None:
    stated = yaml.safe_load((ROOT / ".pre-commit-config.yaml").read_text("utf-8"))
    entries = [hook["entry"] for repo in stated["repos"] for hook in repo["hooks"]]
    assert entries == ["make lint", "make types"]
    assert {entry.split()[1] for entry in entries} <= TARGETS


def test_reports_of_a_problem_ask_for_the_state_of_the_installation() -> None:
    files = sorted((ROOT / ".github" / "ISSUE_TEMPLATE").glob("*.yml"))
    assert files
    for file in files:
        fields = yaml.safe_load(file.read_text("utf-8"))["body"]
        (doctor,) = [field for field in fields if field.get("id") == "doctor"]
        assert "workbench doctor" in doctor["attributes"]["label"]
        assert doctor["validations"]["required"] is True
