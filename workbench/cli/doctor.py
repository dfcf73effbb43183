"""The command `doctor`: what is installed, whether it is known to work, and what is missing.

It prints plain text, because it must run if the packages of the other commands are missing.
"""

from __future__ import annotations

import json as json_text
from collections.abc import Iterable
from typing import TextIO

from workbench.errors import WorkbenchError
from workbench.exact.objects import Record
from workbench.io.extras import explaining_missing_modules, install_command, missing_links

# Keys of the table of packages, by head.
_PACKAGE_KEYS = {
    "package": "package",
    "installed": "installed",
    "tested": "tested",
    "accepted": "wanted",
    "status": "status",
    "extra": "extra",
}
# Keys of the table of solvers, by head.
_SOLVER_KEYS = {
    "solver": "name",
    "version": "version",
    "capabilities": "capabilities",
    "licence": "licence",
}


def _list_solvers() -> tuple[list[Record], str | None]:
    """Return the solvers with their licence states, and why they cannot be listed or None."""
    try:
        with explaining_missing_modules("Solving"):
            # The import registers the solvers of plug-ins.
            import workbench.pipeline  # noqa: F401
            from workbench.solvers.backend import describe_backends

            return describe_backends(probe=True), None
    except WorkbenchError as error:
        return [], str(error)


def doctor(json: bool = False, stream: TextIO | None = None) -> int:
    """Print the state of the installation, and return the exit code.

    Args:
        json: Whether to print a JSON object.
        stream: Where to print. None: stdout.

    Returns:
        1 if the installation is known to be bad or incomplete, or if a clone has no symbolic links;
        0 otherwise.
    """
    from workbench.io.installation import describe_installation

    report = describe_installation()
    report["solvers"], report["solvers_error"] = _list_solvers()
    if json:
        print(json_text.dumps(report, ensure_ascii=False), file=stream)
    else:
        print("\n".join(_list_lines(report)), file=stream)
    if report["verdict"] in ("known bad", "incomplete") or missing_links():
        return 1
    return 0


def _list_lines(report: Record) -> list[str]:
    """Return the lines of the report."""
    packages = [row | {"extra": row["extra"] or " "} for row in report["packages"]]
    solvers = [row | {"version": row["version"] or "not installed"} for row in report["solvers"]]
    missing_extras = [name for name, is_present in report["extras"].items() if not is_present]
    lines = [
        f"workbench {report['workbench']}, Python {report['python']}, {report['platform']}",
        f"installed set: {report['verdict']}. {report['why']}",
        "",
        *_align_columns(_PACKAGE_KEYS, packages),
        "",
    ]
    if solvers:
        lines += _align_columns(_SOLVER_KEYS, solvers)
    else:
        lines.append(f"solvers: {report['solvers_error']}")
    lines += ["", f"extras missing: {', '.join(missing_extras) or 'none'}"]
    if missing_extras:
        lines.append(f"    {install_command(*missing_extras)}")
    chromium = report["chromium"] or "not found (only tests of pictures in a browser need it)"
    lines.append(f"Chromium: {chromium}")
    for row in report["folders"]:
        ability = "can" if row["writable"] else "CANNOT"
        lines.append(f"{row['purpose']}: {row['folder']} {ability} be written into")
    return lines


def _align_columns(keys: dict[str, str], rows: Iterable[Record]) -> list[str]:
    """Format rows as an aligned text table, with "-" for empty cells. keys: row key by head."""
    cells = [[*keys]]
    cells += [[str(row[key] or "-") for key in keys.values()] for row in rows]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    return ["  ".join(map(str.ljust, row, widths)).rstrip() for row in cells]
