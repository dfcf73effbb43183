"""Report the state of the installation: required and installed versions, and known clashes.

Only the standard library is used, so that `workbench doctor` runs even if nothing else does.
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
_CORE_PACKAGES = ("numpy", "python-flint")  # Without one of these packages nothing works.
_DEVELOPER_EXTRAS = ("all", "dev")  # The packages of these extras are not listed.
_BROWSERS = (
    "chromium",
    "chromium-browser",
    "google-chrome",
    "google-chrome-stable",
    "chrome",
    "headless_shell",
)

Row = dict[str, Any]

# One condition of a specifier, such as >=2.4 or ==2.4.*.
_SPECIFIER = re.compile(
    r"\s*(?P<relation>==|!=|>=|<=|<|>)\s*(?P<limit>[\w.]+?)(?P<any_end>\.\*)?\s*"
)
_COMPARISONS = {
    "==": operator.eq,
    "!=": operator.ne,
    ">=": operator.ge,
    "<=": operator.le,
    "<": operator.lt,
    ">": operator.gt,
}


@dataclass(frozen=True)
class Clash:
    """Versions that do not work together.

    Attributes:
        versions: Specifier of each distribution. The versions clash if all of them hold.
        reason: One sentence without a full stop.
    """

    versions: Mapping[str, str]
    reason: str


KNOWN_CLASHES = (
    Clash(
        {"highspy": ">=1.15,<1.16", "ortools": ">=9.14,<9.16"},
        "highspy 1.15 and OR-Tools 9.14 or 9.15 ship two shared libraries under one name: "
        "whichever is imported second fails",
    ),
    Clash(
        {"highspy": "==1.14.0"},
        "highspy 1.14.0 returns wrong optima of mixed-integer programs",
    ),
    Clash(
        {"cvxpy": ">=1.9.2", "highspy": "<1.14"},
        "cvxpy >= 1.9.2 demands highspy >= 1.14",
    ),
)


def _parse_version(version: str) -> tuple[int, ...]:
    """Return the numbers of a version without final zeros, because 1.14 equals 1.14.0."""
    match = re.match(r"\d+(\.\d+)*", version)
    parts = []
    if match:
        parts = [int(part) for part in match.group().split(".")]
    while parts and parts[-1] == 0:
        parts.pop()
    return tuple(parts)


def meets_specifier(version: str, specifier: str) -> bool:
    """Return whether a version meets a specifier such as ">=2.4,!=2.4.1,<2.5".

    The operators ==, !=, >=, <=, < and > are known. == and != also accept a final ".*".

    Args:
        version: Installed version, such as "2.4.1".
        specifier: Conditions separated by commas.

    Raises:
        ValueError: The specifier has an unknown form.
    """
    numbers = _parse_version(version)
    for part in filter(None, specifier.split(",")):
        match = _SPECIFIER.fullmatch(part)
        if match is None or (match["any_end"] and match["relation"] not in ("==", "!=")):
            raise ValueError(f"the specifier {part!r} has no known form")
        if match["any_end"]:
            # Only the parts of the limit are compared. A missing part of the version is 0.
            limit = tuple(map(int, re.findall(r"\d+", match["limit"])))
            padding = [0] * len(limit)
            compared = (*numbers, *padding)[: len(limit)]
        else:
            limit = _parse_version(match["limit"])
            compared = numbers
        if not _COMPARISONS[match["relation"]](compared, limit):
            return False
    return True


def _find_version(distribution: str) -> str | None:
    """Return the installed version of a distribution, or None if it is not installed."""
    try:
        return importlib.metadata.version(distribution)
    except importlib.metadata.PackageNotFoundError:
        return None


def read_tested_versions() -> dict[str, str]:
    """Read the version of each package with which the numbers of this release were computed.

    Only packages that can change a number are listed. Their names are in lower case.
    """
    file = resources.files("workbench.io").joinpath("tested_versions.txt")
    versions = {}
    for line in file.read_text("utf-8").splitlines():
        name, _, version = line.partition("#")[0].strip().partition("==")
        if name:
            versions[name.lower()] = version
    return versions


def compare_version(installed: str | None, tested: str | None, accepted: str) -> str:
    """Compare an installed version with the tested one and the accepted range.

    Args:
        installed: The installed version. None if the package is not installed.
        tested: The version with which numbers were computed. None for a package that changes none.
        accepted: A specifier such as ">=2.4,<2.5".

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
    """List the requirements, one row each.

    The columns are package, wanted (the accepted range), tested (the version with which numbers
    were computed, or None), installed, status (`compare_version`) and extra.
    """
    tested_versions = read_tested_versions()
    try:
        requirements = importlib.metadata.requires(DISTRIBUTION) or []
    except importlib.metadata.PackageNotFoundError:
        requirements = []
    rows = []
    for line in requirements:
        text, _, marker = line.partition(";")
        extra = re.search(r"extra\s*==\s*['\"]([\w-]+)['\"]", marker)
        name = re.match(r"[\w.-]+", text.strip())
        if name is None or (extra and extra.group(1) in _DEVELOPER_EXTRAS):
            continue
        accepted = text.strip()[name.end() :].strip()
        installed = _find_version(name.group())
        tested = tested_versions.get(name.group().lower())
        rows.append(
            {
                "package": name.group(),
                "wanted": accepted,
                "tested": tested,
                "installed": installed,
                "status": compare_version(installed, tested, accepted),
                "extra": extra and extra.group(1),
            }
        )
    return rows


def find_clashes(versions: Mapping[str, str | None]) -> list[str]:
    """Find the known reasons why installed versions do not work together.

    Args:
        versions: Installed version of each distribution. None if it is not installed.
    """
    reasons = []
    for clash in KNOWN_CLASHES:
        holds = True
        for name, specifier in clash.versions.items():
            version = versions.get(name)
            holds = holds and bool(version) and meets_specifier(str(version), specifier)
        if holds:
            reasons.append(clash.reason)
    return reasons


def _judge_installation(rows: list[Row], clashes: list[str]) -> tuple[str, str]:
    """Return a verdict, and the sentence that explains it."""
    if clashes:
        return "known bad", "; ".join(clashes) + "."
    if not rows:
        return (
            "not tested",
            f"{DISTRIBUTION} is not installed as a package, so its requirements are not known.",
        )
    core_rows = [row for row in rows if row["extra"] is None]
    missing = [row["package"] for row in core_rows if row["status"] == "missing"]
    if missing:
        if set(_CORE_PACKAGES) & set(missing):
            return "incomplete", f"Nothing works without {' and '.join(_CORE_PACKAGES)}."
        return "light core", (
            "Mechanisms can be loaded, audited, certified, verified and sampled; designing needs "
            f"{', '.join(missing)} as well."
        )
    differing = []
    for row in rows:
        if row["status"] in ("other version", "outside the range"):
            expected = row["tested"] or row["wanted"]
            differing.append(f"{row['package']} {row['installed']} (tested: {expected})")
    if differing:
        return "not tested", f"These versions differ from the tested ones: {', '.join(differing)}."
    return "known good", "Every package that can change a number has the tested version."


def _is_writable(folder: Path) -> bool:
    """Return whether a file can be written into a folder."""
    try:
        check_folder_writable(folder)
    except OSError:
        return False
    return True


def describe_installation() -> Row:
    """Return the state of this installation as plain data, for `workbench doctor`.

    Returns:
        workbench, python, platform: versions and the machine. verdict, why: whether the
        installation works, and the reason. clashes: `find_clashes`. packages: rows of
        `list_packages`. extras: whether each extra is installed. chromium: path of a browser, or
        None. folders: rows of purpose, folder and writable.
    """
    rows = list_packages()
    versions = {}
    for clash in KNOWN_CLASHES:
        versions.update({name: _find_version(name) for name in clash.versions})
    clashes = find_clashes(versions)
    verdict, reason = _judge_installation(rows, clashes)
    folders = []
    for purpose, folder in (
        ("results", Path.cwd()),
        ("temporary files", Path(tempfile.gettempdir())),
    ):
        is_writable = _is_writable(folder)
        folders.append({"purpose": purpose, "folder": str(folder), "writable": is_writable})
    return {
        "workbench": workbench.__version__,
        "python": platform.python_version(),
        "platform": f"{platform.system()} {platform.machine()}, {os.cpu_count()} processors",
        "verdict": verdict,
        "why": reason,
        "clashes": clashes,
        "packages": rows,
        "extras": {extra: is_importable(module) for extra, module in EXTRAS.items()},
        "chromium": next(filter(None, map(shutil.which, _BROWSERS)), None),
        "folders": folders,
    }
