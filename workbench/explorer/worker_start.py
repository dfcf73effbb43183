"""Let the process that starts workers end without a traceback.

`workbench.explorer.processes` preloads this module in the fork server of multiprocessing. If the
explorer is stopped while a worker is being started, the fork server reads the end of a connection
in the middle of a message. This EOFError is no fault, and would be printed after "Stopped.".
"""

from __future__ import annotations

import sys
from types import TracebackType


def print_error(
    kind: type[BaseException], error: BaseException, traceback: TracebackType | None
) -> None:
    """Print an error that ends the process, unless it is an EOFError.

    Args:
        kind: Type of the error, as for `sys.excepthook`.
        error: The error.
        traceback: Its traceback. None if it has none.
    """
    if not issubclass(kind, EOFError):
        sys.__excepthook__(kind, error, traceback)


sys.excepthook = print_error
