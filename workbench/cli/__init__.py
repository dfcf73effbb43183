"""The `workbench` command. Its parts are loaded when it runs."""

from __future__ import annotations

import atexit
import gc
import sys

# Garbage is collected after this many new objects. Modules are objects that stay, and checking them
# takes time.
_OBJECTS_PER_COLLECTION = 250_000


def main(arguments: list[str] | None = None) -> None:
    """Run a command line and exit: 0, 1, 2 for an error of the user, 3 for a bug.

    Args:
        arguments: The command line. None: the command line of the process.
    """
    from workbench.errors import NotInstalled
    from workbench.io.extras import explaining_missing_modules

    gc.set_threshold(_OBJECTS_PER_COLLECTION)
    # Objects disappear with the process. Collecting them takes a fifth of a short command.
    atexit.register(gc.freeze)
    command_line = sys.argv[1:] if arguments is None else arguments
    try:
        with explaining_missing_modules("The command line"):
            from workbench.cli.commands import main as run
    except NotInstalled as error:
        if command_line[:1] == ["doctor"]:
            # This command reports what is missing.
            from workbench.cli.doctor import doctor

            sys.exit(doctor("--json" in command_line))
        print(f"NotInstalled: {error}", file=sys.stderr)
        sys.exit(2)
    run(arguments)
