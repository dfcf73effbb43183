"""Kinds of questions, one folder each: what is asked, which model answers it, which closed form judges the answer.

Entering this package makes sure that `models` and `solvers` are this project's own. A saved mechanism may be audited
inside somebody else's training code, whose own folder may well be called `models`; that never comes here. Designing
does, and says in one sentence when those names are taken.
"""

from __future__ import annotations

import importlib
from functools import partial

from workbench.errors import WorkbenchError
from workbench.io.plugins import added


def check_packages() -> None:
    """Raise WorkbenchError unless `models` and `solvers` are the packages installed with this workbench."""
    for name in ("models", "solvers"):
        try:
            package = importlib.import_module(name)
        except Exception as error:  # a foreign package of that name may raise anything
            cause = " ".join(f"{type(error).__name__}: {error}".split())
            raise WorkbenchError(
                f"Designing needs the workbench's own package {name!r}, which cannot be imported from here ({cause}); "
                f"run from another folder. (Loading, auditing and sampling work here.)"
            ) from error
        if not getattr(package, "__workbench_package__", False):
            where = getattr(package, "__file__", None) or next(iter(getattr(package, "__path__", [])), "elsewhere")
            raise WorkbenchError(
                f"Designing needs the workbench's own package {name!r}, but that name is taken by {where}; "
                f"run from another folder or rename it. (Loading, auditing and sampling work here.)"
            )


check_packages()

from solvers.backend import extend  # noqa: E402  (only now is it known to be ours)

extend(partial(added, "backends"))
