"""Who answers: the versions that stand in a key, and the options that a solver has a word for."""

from __future__ import annotations

from collections.abc import Iterable

import workbench
from workbench.errors import InvalidRequest


def versions(label: str | None) -> dict[str, str | None]:
    """This workbench and the solver's library, with their versions.

    The workbench's version is part of every key, and must stay there: the bytes of old keys are frozen.
    """
    known: dict[str, str | None] = {"workbench": workbench.__version__}
    if label is not None:
        from solvers.backend import backend

        answering = backend(label)
        known[answering.distribution] = answering.version()
    return known


def check_options(label: str | None, options: Iterable[str]) -> None:
    """Refuse options that a solver has no word for."""
    if label is None:
        return
    from solvers.backend import backend

    for option in options:
        if option not in backend(label).supported_options:
            raise InvalidRequest(f"{label} cannot honour the option {option}; leave it out.")
