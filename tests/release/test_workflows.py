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
    workflow = yaml.safe_load(file.read_text("utf-8"))
    steps = [step for job in workflow["jobs"].values() for step in job["steps"]]
    commands = [step["run"] for step in steps if "run" in step]
    assert commands
    for command in commands:
        assert re.fullmatch(r"make [a-z-]+", command)
        assert command.split()[1] in TARGETS


@pytest.mark.parametrize("file", WORKFLOWS, ids=lambda file: file.stem)
def test_a_workflow_has_a_time_limit_and_can_only_read(file: Path) -> None:
    workflow = yaml.safe_load(file.read_text("utf-8"))
    assert workflow["permissions"] == {"contents": "read"}
    for job in workflow["jobs"].values():
        assert "timeout-minutes" in job


def test_every_kind_of_check_has_a_workflow() -> None:
    called_targets = set()
    for file in WORKFLOWS:
        called_targets |= set(re.findall(r"run: make ([a-z-]+)", file.read_text("utf-8")))
    checks = {"test", "test-all", "test-unpinned", "docs", "check-release", "fuzz", "full"}
    assert called_targets == checks


def test_hooks_before_a_commit_call_make_targets() -> None:
    configuration = yaml.safe_load((ROOT / ".pre-commit-config.yaml").read_text("utf-8"))
    entries = [hook["entry"] for repo in configuration["repos"] for hook in repo["hooks"]]
    assert entries == ["make lint", "make types"]
    assert {entry.split()[1] for entry in entries} <= TARGETS


def test_issue_forms_require_the_output_of_the_doctor() -> None:
    files = sorted((ROOT / ".github" / "ISSUE_TEMPLATE").glob("*.yml"))
    assert files
    for file in files:
        fields = yaml.safe_load(file.read_text("utf-8"))["body"]
        (doctor,) = [field for field in fields if field.get("id") == "doctor"]
        assert "workbench doctor" in doctor["attributes"]["label"]
        assert doctor["validations"]["required"] is True
