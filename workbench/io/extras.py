"""Check for optional packages, and name the extra that installs a missing one."""

from __future__ import annotations

import importlib.util
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from workbench.errors import NotInstalled

# Module that each extra of pyproject.toml installs.
EXTRAS = {
    "accounting": "dp_accounting",
    "cluster": "distributed",
    "learning": "sklearn",
    "opendp": "opendp",
    "parquet": "pyarrow",
    "scip": "pyscipopt",
}


def install_command(*extras: str) -> str:
    """Return the command that installs this project with extras in a clone.

    No package registry has this project.

    Args:
        *extras: Names of extras.
    """
    suffix = ""
    if extras:
        suffix = f"[{','.join(extras)}]"
    return f"pip install '.{suffix}' in a clone of the repository"


def is_importable(module: str) -> bool:
    """Return whether a module could be imported, without importing it.

    Args:
        module: Name of the module.
    """
    try:
        return importlib.util.find_spec(module) is not None
    except (ImportError, ValueError):
        return False


def require_extra(extra: str, subject: str) -> None:
    """Raise NotInstalled unless an extra is installed.

    Args:
        extra: Name of the extra.
        subject: Subject of the error, such as "Exporting".
    """
    if not is_importable(EXTRAS[extra]):
        raise NotInstalled(f"{subject} needs the extra {extra!r}: {install_command(extra)}.")


def missing_links() -> list[str]:
    """List the linked folders of this package that are plain files in a clone without links."""
    package = Path(__file__).resolve().parents[1]
    return [f"workbench/{name}" for name in ("models", "solvers") if (package / name).is_file()]


def explain_missing_module(
    subject: str, error: ModuleNotFoundError
) -> NotInstalled | ModuleNotFoundError:
    """Return the error to raise after the import of a module failed.

    A missing module of the workbench is a bug and stays an ImportError, unless the clone was made
    without symbolic links, so that `workbench/models` and `workbench/solvers` are files that hold a
    path.

    Args:
        subject: Subject of the error, such as "Designing".
        error: The error that the import raised.

    Returns:
        NotInstalled, which names the missing package or the missing links. For a bug, `error`.
    """
    package = (error.name or "").partition(".")[0]
    missing = []
    if package == "workbench":
        missing = missing_links()
    if missing:
        return NotInstalled(
            f"This clone has no symbolic links: {' and '.join(missing)} must be links to the "
            "folders beside workbench. See docs/installing.md, section Windows."
        )
    if package in ("", "workbench"):
        return error
    return NotInstalled(
        f"{subject} needs {package}, which is not installed. {install_command()} brings all it "
        "needs. (With numpy and python-flint alone mechanisms can be loaded, audited, certified, "
        "verified and sampled.)"
    )


@contextmanager
def explaining_missing_modules(subject: str) -> Iterator[None]:
    """Raise the error of `explain_missing_module` if an import inside fails.

    Args:
        subject: Subject of the error, such as "Designing".
    """
    try:
        yield
    except ModuleNotFoundError as error:
        explained = explain_missing_module(subject, error)
        if explained is error:
            raise
        raise explained from error
