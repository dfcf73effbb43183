"""`workbench doctor`: what is installed, whether that set is known to work, and what is missing. Plain text on purpose:
it runs where the packages of the other commands are missing."""

from __future__ import annotations

import json as json_text
from typing import Any, TextIO

from workbench.errors import WorkbenchError
from workbench.io.extras import says_what_is_missing
from workbench.io.installation import installation

__all__ = ["EXAMPLES", "doctor"]

EXAMPLES = "Examples:\n\n  workbench doctor\n\n  workbench doctor --json   (for a report of a problem)"


def _solvers() -> tuple[list[dict[str, Any]], str | None]:
    """The solvers with their licence states; or why they cannot be listed."""
    try:
        with says_what_is_missing("Solving"):
            from workbench.families import check_packages

            check_packages()
            from solvers.backend import listing

            return listing(probe=True), None
    except WorkbenchError as error:
        return [], str(error)


def doctor(json: bool = False, stream: TextIO | None = None) -> int:
    """Print the state of the installation on a stream (stdout); the exit code: 0, or 1 where it is known to be
    bad or incomplete."""
    report = installation()
    report["solvers"], report["solvers_error"] = _solvers()
    if json:
        print(json_text.dumps(report, ensure_ascii=False), file=stream)
    else:
        print("\n".join(_lines(report)), file=stream)
    return 1 if report["verdict"] in ("known bad", "incomplete") else 0


def _lines(report: dict[str, Any]) -> list[str]:
    lines = [
        f"workbench {report['workbench']}, Python {report['python']}, {report['platform']}",
        f"installed set: {report['verdict']}. {report['why']}",
        "",
        *_columns(
            [("package", "installed", "tested with", "status", "extra")]
            + [
                (row["package"], row["installed"] or "-", row["wanted"], row["status"], row["extra"] or "")
                for row in report["packages"]
            ]
        ),
        "",
    ]
    if report["solvers"]:
        heads = [("solver", "version", "can", "licence")]
        lines += _columns(
            heads
            + [
                (row["name"], row["version"] or "not installed", row["capabilities"], row["licence"] or "-")
                for row in report["solvers"]
            ]
        )
    else:
        lines.append(f"solvers: {report['solvers_error']}")
    missing = [extra for extra, there in report["extras"].items() if not there]
    lines += ["", f"extras missing: {', '.join(missing) or 'none'}"]
    lines += [f"    pip install 'dp-workbench[{','.join(missing)}]'"] if missing else []
    lines.append(f"Chromium: {report['chromium'] or 'not found (only the tests of pictures in a browser use it)'}")
    lines += [
        f"{row['purpose']}: {row['folder']} {'can' if row['writable'] else 'CANNOT'} be written into"
        for row in report["folders"]
    ]
    return lines


def _columns(rows: list[tuple[str, ...]]) -> list[str]:
    widths = [max(len(row[k]) for row in rows) for k in range(len(rows[0]))]
    return ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows]
