"""Optional packages: which extra brings them, and one sentence where they are missing."""

from __future__ import annotations

import importlib.util
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from workbench.errors import NotInstalled

# extra of pyproject.toml -> the module that it brings
EXTRAS = {
    "accounting": "dp_accounting",
    "cluster": "distributed",
    "learning": "sklearn",
    "opendp": "opendp",
    "parquet": "pyarrow",
    "scip": "pyscipopt",
}


def install_command(*extras: str) -> str:
    """Write the command that installs this project with extras in a clone: no registry has the package."""
    wanted = f"[{','.join(extras)}]" if extras else ""
    return f"pip install '.{wanted}' in a clone of the repository"


def is_importable(module: str) -> bool:
    """Whether a package could be imported; imports nothing."""
    try:
        return importlib.util.find_spec(module) is not None
    except (ImportError, ValueError):
        return False


def require_extra(extra: str, subject: str) -> None:
    """Raise NotInstalled unless an extra is installed. what: "Composition", the subject of the sentence."""
    if not is_importable(EXTRAS[extra]):
        raise NotInstalled(f"{subject} needs the extra {extra!r}: {install_command(extra)}.")


def missing_links() -> list[str]:
    """List the linked folders of this package that a clone without symbolic links holds as plain files."""
    package = Path(__file__).resolve().parents[1]
    return [f"workbench/{name}" for name in ("models", "solvers") if (package / name).is_file()]


def explain_missing_module(
    subject: str, error: ModuleNotFoundError
) -> NotInstalled | ModuleNotFoundError:
    """Return the error to raise where the import of a module failed.

    A missing module of the workbench is a bug and stays an ImportError, unless the clone was made
    without symbolic links, so that `workbench/models` and `workbench/solvers` are files that hold a
    path.

    Args:
        what: The subject of the sentence, such as "Designing".
        error: The error that the import raised.

    Returns:
        NotInstalled, which names the missing package or the missing links; `error` itself for a bug.
    """
    package = (error.name or "").partition(".")[0]
    if package == "workbench" and (missing := missing_links()):
        return NotInstalled(
            f"This clone has no symbolic links: {' and '.join(missing)} must be links to the folders "
            f"beside workbench. See docs/installing.md, section Windows."
        )
    if package in ("", "workbench"):
        return error
    return NotInstalled(
        f"{subject} needs {package}, which is not installed. {install_command()} brings all it needs. "
        f"(With numpy and python-flint alone mechanisms can be loaded, audited, certified, verified "
        f"and sampled.)"
    )


@contextmanager
def explaining_missing_modules(subject: str) -> Iterator[None]:
    """Raise the error of `explain_missing_module` where an import inside fails."""
    try:
        yield
    except ModuleNotFoundError as error:
        explained = explain_missing_module(subject, error)
        if explained is error:
            raise
        raise explained from error
