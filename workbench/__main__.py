"""`python -m workbench`, whose path, like that of `workbench`, has no current folder: a numpy.py there must not run."""

import os
import sys

_here = os.path.realpath(os.getcwd())
_ours = os.path.dirname(os.path.dirname(os.path.realpath(__file__)))
if not sys.flags.safe_path and os.path.realpath(sys.path[0]) == _here != _ours:
    del sys.path[0]

from workbench.cli import main  # noqa: E402

main()
