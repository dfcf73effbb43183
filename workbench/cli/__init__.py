"""The `workbench` command; its parts are loaded when it runs."""

from __future__ import annotations

import atexit
import gc
import sys

_OBJECTS = 250_000  # between two collections of garbage: modules are objects that stay, and looking at them takes time


def main(arguments: list[str] | None = None) -> None:
    """Run a command line (the process's own by default) and exit: 0, 1, 2 for an error of the user's, 3 for ours."""
    from workbench.errors import NotInstalled
    from workbench.io.extras import explaining_missing_modules

    gc.set_threshold(_OBJECTS)
    atexit.register(
        gc.freeze
    )  # what is left goes with the process: collecting it takes a fifth of a short command
    given = sys.argv[1:] if arguments is None else arguments
    try:
        with explaining_missing_modules("The command line"):
            from workbench.cli.commands import main as run
    except NotInstalled as error:
        if given[:1] == ["doctor"]:  # which is asked what is missing
            from workbench.cli.doctor import doctor

            sys.exit(doctor("--json" in given))
        print(f"NotInstalled: {error}", file=sys.stderr)
        sys.exit(2)
    run(arguments)
