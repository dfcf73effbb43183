"""Which families there are, found by name or by the class of a question; and `workbench.design`.

>>> import workbench as wb
>>> d = wb.design(wb.ModuloNoise(n=8, shifts=[1, 2, 3], directed=True), epsilon=1.5, delta=0.1212, notion="pdp")
>>> round(d.objective, 9), d.oracle.agrees
(0.450172331, True)
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any

from workbench.errors import must
from workbench.io.plugins import list_extensions
from workbench.io.providers import get_places, load_provided

if TYPE_CHECKING:
    from workbench.pipeline.family import Family


BUILTIN_FAMILIES = get_places("families")  # name -> where its `FAMILY` is


def list_family_names() -> list[str]:
    """The names of all families, those of other packages last."""
    return [*BUILTIN_FAMILIES, *list_extensions("families")]


def get_family(name: str) -> Family:
    """The family of a name. Raises InvalidRequest."""
    known = name if isinstance(name, str) else ""
    if known in BUILTIN_FAMILIES:
        return _load_builtin_family(known)
    foreign: dict[str, Family] = list_extensions("families")
    return foreign.get(known) or must(
        "family", f"one of {', '.join(list_family_names())}", repr(name)
    )


@cache
def _load_builtin_family(name: str) -> Family:
    loaded: Family = load_provided("families", name)
    return loaded


def list_builtin_families() -> list[Family]:
    """The families of this package."""
    return [_load_builtin_family(name) for name in BUILTIN_FAMILIES]


def list_families(name: str | None = None) -> list[Family]:
    """All families; those of a name alone, of which there is one or none."""
    if name is not None and name in BUILTIN_FAMILIES:
        return [_load_builtin_family(name)]
    return [get_family(known) for known in list_family_names() if name in (None, known)]


@cache
def find_builtin_family(kind: type) -> Family | None:
    """Find the family of this package whose questions are of a class; None where there is none."""
    return next(
        (ours for ours in list_builtin_families() if issubclass(kind, ours.question_class)), None
    )


def find_family(question: Any) -> Family:
    """The family of a question. Raises InvalidRequest."""
    ours = find_builtin_family(question.__class__)
    if ours is not None:
        return ours
    foreign: dict[str, Family] = list_extensions(
        "families"
    )  # They are looked for where no family of this package fits.
    for candidate in foreign.values():
        if isinstance(question, candidate.question_class):
            return candidate
    kinds = ", ".join(candidate.question_class.__name__ for candidate in list_families())
    return must("question", f"one of {kinds}", repr(question))
