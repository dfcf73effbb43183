"""What is installed: each requirement of this version beside what is there, and the combinations known to be bad.

Standard library only, so that `workbench doctor` runs where nothing else does.
"""

from __future__ import annotations

import importlib.metadata
import importlib.resources as resources
import operator
import os
import platform
import re
import shutil
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import workbench
from workbench.io.extras import EXTRAS, is_importable
from workbench.io.files import check_folder_writable

DISTRIBUTION = "dp-workbench"
_LIGHT = ("numpy", "python-flint")
_DEVELOPERS = ("all", "dev")
_CHROMIUM = (
    "chromium",
    "chromium-browser",
    "google-chrome",
    "google-chrome-stable",
    "chrome",
    "headless_shell",
)

Row = dict[str, Any]

_COMPARED = {
    "==": operator.eq,
    "!=": operator.ne,
    ">=": operator.ge,
    "<=": operator.le,
    "<": operator.lt,
    ">": operator.gt,
}


@dataclass(frozen=True)
class Clash:
    """Versions that do not work together: distribution -> specifier; all must hold. why: one sentence."""

    versions: Mapping[str, str]
    reason: str


KNOWN_CLASHES = (
    Clash({"highspy": ">=1.15,<1.16", "ortools": ">=9.14,<9.16"},
          "highspy 1.15 and OR-Tools 9.14 or 9.15 ship two shared libraries under one name: whichever is imported "
          "second fails"),
    Clash({"highspy": "==1.14.0"}, "highspy 1.14.0 returns wrong optima of mixed-integer programs"),
    Clash({"cvxpy": ">=1.9.2", "highspy": "<1.14"}, "cvxpy >= 1.9.2 demands highspy >= 1.14"),
)  # fmt: skip


def _parse_version(version: str) -> tuple[int, ...]:
    match = re.match(r"\d+(\.\d+)*", version)
    parts = [int(part) for part in match.group().split(".")] if match else []
    while parts and parts[-1] == 0:  # 1.14 is 1.14.0
        parts.pop()
    return tuple(parts)


def meets_specifier(version: str, specifier: str) -> bool:
    """Whether a version meets a specifier such as ">=2.4,!=2.4.1,<2.5".

    Known are ==, !=, >=, <=, < and >; == and != also with a final ".*". Raises ValueError for others.
    """
    have = _parse_version(version)
    for part in filter(None, specifier.split(",")):
        match = re.fullmatch(r"\s*(==|!=|>=|<=|<|>)\s*([\w.]+?)(\.\*)?\s*", part)
        if match is None or (match.group(3) and match.group(1) not in ("==", "!=")):
            raise ValueError(f"the specifier {part!r} is of no known form")
        limit = (
            tuple(map(int, re.findall(r"\d+", match.group(2))))
            if match.group(3)
            else _parse_version(match.group(2))
        )
        compared = (*have, *[0] * len(limit))[: len(limit)] if match.group(3) else have
        if not _COMPARED[match.group(1)](compared, limit):
            return False
    return True


def _find_version(distribution: str) -> str | None:
    try:
        return importlib.metadata.version(distribution)
    except importlib.metadata.PackageNotFoundError:
        return None


def read_tested_versions() -> dict[str, str]:
    """Read which version of each package the numbers of this release were computed with.

    Only packages that can change a number are listed; names are in lower case.
    """
    lines = (
        resources.files("workbench.io")
        .joinpath("tested_versions.txt")
        .read_text("utf-8")
        .splitlines()
    )
    pins = (line.partition("#")[0].strip().partition("==") for line in lines)
    return {name.lower(): version for name, _, version in pins if name}


def compare_version(installed: str | None, tested: str | None, accepted: str) -> str:
    """Compare an installed version with the tested one and the accepted range.

    Args:
        installed: the version found, or None.
        tested: the version that numbers were computed with, or None for a package that changes none.
        accepted: a specifier such as ">=2.4,<2.5".

    Returns:
        "missing", "outside the range", "other version" or "tested".
    """
    if installed is None:
        return "missing"
    if not meets_specifier(installed, accepted):
        return "outside the range"
    if tested is not None and _parse_version(installed) != _parse_version(tested):
        return "other version"
    return "tested"


def list_packages() -> list[Row]:
    """List the requirements, one row each: package, wanted (the accepted range), tested (the version that
    numbers were computed with, or None), installed, status (`version_status`), extra."""
    pins = read_tested_versions()
    try:
        required = importlib.metadata.requires(DISTRIBUTION) or []
    except importlib.metadata.PackageNotFoundError:
        required = []
    rows = []
    for line in required:
        text, _, marker = line.partition(";")
        extra = re.search(r"extra\s*==\s*['\"]([\w-]+)['\"]", marker)
        name = re.match(r"[\w.-]+", text.strip())
        if name is None or (extra and extra.group(1) in _DEVELOPERS):
            continue
        wanted, have = text.strip()[name.end() :].strip(), _find_version(name.group())
        tested = pins.get(name.group().lower())
        rows.append(
            {
                "package": name.group(),
                "wanted": wanted,
                "tested": tested,
                "installed": have,
                "status": compare_version(have, tested, wanted),
                "extra": extra and extra.group(1),
            }
        )
    return rows


def find_clashes(versions: Mapping[str, str | None]) -> list[str]:
    """Why installed versions (distribution -> version) are known to be bad together; empty where nothing is known."""
    return [
        clash.reason
        for clash in KNOWN_CLASHES
        if all(
            (have := versions.get(name)) and meets_specifier(have, spec)
            for name, spec in clash.versions.items()
        )
    ]


def _judge_installation(rows: list[Row], bad: list[str]) -> tuple[str, str]:
    """A word, and the sentence that explains it."""
    core = [row for row in rows if row["extra"] is None]
    missing = [row["package"] for row in core if row["status"] == "missing"]
    if bad:
        return "known bad", "; ".join(bad) + "."
    if not rows:
        return (
            "not tested",
            f"{DISTRIBUTION} is not installed as a package, so its requirements are not known.",
        )
    if missing:
        if set(_LIGHT) & set(missing):
            return "incomplete", f"Nothing works without {' and '.join(_LIGHT)}."
        return "light core", (
            f"Mechanisms can be loaded, audited, certified, verified and sampled; designing needs "
            f"{', '.join(missing)} as well."
        )
    differing = [
        f"{row['package']} {row['installed']} (tested: {row['tested'] or row['wanted']})"
        for row in rows
        if row["status"] in ("other version", "outside the range")
    ]
    if differing:
        return "not tested", f"These versions differ from the tested ones: {', '.join(differing)}."
    return "known good", "Every package that can change a number has the tested version."


def _is_writable(folder: Path) -> bool:
    try:
        check_folder_writable(folder)
    except OSError:
        return False
    return True


def describe_installation() -> Row:
    """Everything about this installation that decides what works, as plain data for tables and JSON."""
    rows = list_packages()
    bad = find_clashes(
        {name: _find_version(name) for clash in KNOWN_CLASHES for name in clash.versions}
    )
    verdict, why = _judge_installation(rows, bad)
    folders = {"results": Path.cwd(), "temporary files": Path(tempfile.gettempdir())}
    return {
        "workbench": workbench.__version__,
        "python": platform.python_version(),
        "platform": f"{platform.system()} {platform.machine()}, {os.cpu_count()} processors",
        "verdict": verdict,
        "why": why,
        "clashes": bad,
        "packages": rows,
        "extras": {extra: is_importable(module) for extra, module in EXTRAS.items()},
        "chromium": next(filter(None, map(shutil.which, _CHROMIUM)), None),
        "folders": [
            {"purpose": purpose, "folder": str(folder), "writable": _is_writable(folder)}
            for purpose, folder in folders.items()
        ],
    }
