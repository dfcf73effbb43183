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
from workbench.io.plugins import added
from workbench.io.providers import load_provided, places_of

if TYPE_CHECKING:
    from workbench.pipeline.family import Family


OURS = places_of("families")  # name -> where its `FAMILY` is


def names() -> list[str]:
    """The names of all families, those of other packages last."""
    return [*OURS, *added("families")]


def family(name: str) -> Family:
    """The family of a name. Raises InvalidRequest."""
    known = name if isinstance(name, str) else ""
    if known in OURS:
        return _ours(known)
    foreign: dict[str, Family] = added("families")
    return foreign.get(known) or must("family", f"one of {', '.join(names())}", repr(name))


@cache
def _ours(name: str) -> Family:
    loaded: Family = load_provided("families", name)
    return loaded


def our_families() -> list[Family]:
    """The families of this package."""
    return [_ours(name) for name in OURS]


def families(name: str | None = None) -> list[Family]:
    """All families; those of a name alone, of which there is one or none."""
    if name is not None and name in OURS:
        return [_ours(name)]
    return [family(known) for known in names() if name in (None, known)]


@cache
def find_our_family(kind: type) -> Family | None:
    """Find the family of this package whose questions are of a class; None where there is none."""
    return next((ours for ours in our_families() if issubclass(kind, ours.question)), None)


def family_of(question: Any) -> Family:
    """The family of a question. Raises InvalidRequest."""
    ours = find_our_family(question.__class__)
    if ours is not None:
        return ours
    foreign: dict[str, Family] = added(
        "families"
    )  # They are looked for where no family of this package fits.
    for candidate in foreign.values():
        if isinstance(question, candidate.question):
            return candidate
    kinds = ", ".join(candidate.question.__name__ for candidate in families())
    return must("question", f"one of {kinds}", repr(question))
