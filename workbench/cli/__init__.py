"""The `workbench` command; its parts are loaded when it runs."""

from __future__ import annotations

from typing import Any

__all__ = ["app", "main"]


def main(arguments: list[str] | None = None) -> None:
    """Run a command line (the process's own by default) and exit: 0, 1, 2 for an error of the user's, 3 for ours."""
    from workbench.cli.commands import main as run

    run(arguments)


def __getattr__(name: str) -> Any:
    if name == "app":
        from workbench.cli.commands import app

        return app
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
