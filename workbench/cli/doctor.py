"""`workbench doctor`: what is installed, whether that set is known to work, and what is missing. Plain text on purpose:
it runs where the packages of the other commands are missing."""

from __future__ import annotations

import json as json_text
from collections.abc import Iterable
from typing import TextIO

from workbench.errors import WorkbenchError
from workbench.exact.objects import Record
from workbench.io.extras import explaining_missing_modules, install_command, missing_links

_PACKAGES = {
    "package": "package",
    "installed": "installed",
    "tested": "tested",
    "accepted": "wanted",
    "status": "status",
    "extra": "extra",
}
_SOLVERS = {
    "solver": "name",
    "version": "version",
    "can": "capabilities",
    "licence": "licence",
}  # head -> key


def _solvers() -> tuple[list[Record], str | None]:
    """The solvers with their licence states; or why they cannot be listed."""
    try:
        with explaining_missing_modules("Solving"):
            import workbench.pipeline  # noqa: F401  (makes the solvers of plug-ins known)
            from workbench.solvers.backend import describe_backends

            return describe_backends(probe=True), None
    except WorkbenchError as error:
        return [], str(error)


def doctor(json: bool = False, stream: TextIO | None = None) -> int:
    """Print the state of the installation on a stream (stdout); the exit code: 0, or 1 where it is known to be
    bad or incomplete, or a clone without symbolic links."""
    from workbench.io.installation import describe_installation

    report = describe_installation()
    report["solvers"], report["solvers_error"] = _solvers()
    print(
        json_text.dumps(report, ensure_ascii=False) if json else "\n".join(_lines(report)),
        file=stream,
    )
    is_bad = report["verdict"] in ("known bad", "incomplete")
    return 1 if is_bad or missing_links() else 0


def _lines(report: Record) -> list[str]:
    solvers = [row | {"version": row["version"] or "not installed"} for row in report["solvers"]]
    missing = [extra for extra, there in report["extras"].items() if not there]
    return [
        f"workbench {report['workbench']}, Python {report['python']}, {report['platform']}",
        f"installed set: {report['verdict']}. {report['why']}",
        "",
        *_columns(_PACKAGES, [row | {"extra": row["extra"] or " "} for row in report["packages"]]),
        "",
        *(_columns(_SOLVERS, solvers) if solvers else [f"solvers: {report['solvers_error']}"]),
        "",
        f"extras missing: {', '.join(missing) or 'none'}",
        *([f"    {install_command(*missing)}"] if missing else []),
        f"Chromium: {report['chromium'] or 'not found (only the tests of pictures in a browser use it)'}",
        *(
            f"{row['purpose']}: {row['folder']} {'can' if row['writable'] else 'CANNOT'} be written into"
            for row in report["folders"]
        ),
    ]


def _columns(heads: dict[str, str], rows: Iterable[Record]) -> list[str]:
    """Rows under heads (head -> key), a dash for what is empty, in columns."""
    cells = [[*heads], *([str(row[key] or "-") for key in heads.values()] for row in rows)]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    return ["  ".join(map(str.ljust, row, widths)).rstrip() for row in cells]
