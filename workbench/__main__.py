"""Run `python -m workbench` with the same module path as `workbench`.

The current folder is removed from the path, so that a file numpy.py in it is not run.
"""

import os
import sys

_current_folder = os.path.realpath(os.getcwd())
_project_folder = os.path.dirname(os.path.dirname(os.path.realpath(__file__)))
_first_folder = os.path.realpath(sys.path[0])
if not sys.flags.safe_path and _first_folder == _current_folder != _project_folder:
    del sys.path[0]

from workbench.cli import main  # noqa: E402

main()
