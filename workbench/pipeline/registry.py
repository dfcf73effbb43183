"""Find families by their name or by the class of a question.

>>> import workbench as wb
>>> find_family(wb.ModuloNoise(n=8, shifts=[1, 2, 3])) is get_family("modulo")
True
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any

from workbench.errors import must
from workbench.io.plugins import list_extensions
from workbench.io.providers import get_places, load_provided

if TYPE_CHECKING:
    from workbench.pipeline.family import Family


BUILTIN_FAMILIES = get_places("families")  # Name of a family -> place of its object `FAMILY`.


def list_family_names() -> list[str]:
    """Return the names of all families. Families of other packages come last."""
    return [*BUILTIN_FAMILIES, *list_extensions("families")]


def get_family(name: str) -> Family:
    """Return a family.

    Args:
        name: Name of the family.

    Raises:
        InvalidRequest: There is no such family.
    """
    family = None
    if isinstance(name, str):
        if name in BUILTIN_FAMILIES:
            return _load_builtin_family(name)
        plugins: dict[str, Family] = list_extensions("families")
        family = plugins.get(name)
    if family is None:
        must("family", f"one of {', '.join(list_family_names())}", repr(name))
    return family


@cache
def _load_builtin_family(name: str) -> Family:
    """Load a family of this package."""
    family: Family = load_provided("families", name)
    return family


def list_builtin_families() -> list[Family]:
    """Return the families of this package."""
    return [_load_builtin_family(name) for name in BUILTIN_FAMILIES]


def list_families(name: str | None = None) -> list[Family]:
    """Return all families.

    Args:
        name: Return only the family of this name, if there is one. None: all.
    """
    if name is not None and name in BUILTIN_FAMILIES:
        return [_load_builtin_family(name)]
    names = list_family_names()
    if name is not None:
        names = [name] if name in names else []
    return [get_family(family_name) for family_name in names]


@cache
def find_builtin_family(kind: type) -> Family | None:
    """Return the family of this package for a class of questions, None if there is none.

    Args:
        kind: The class.
    """
    for family in list_builtin_families():
        if issubclass(kind, family.question_class):
            return family
    return None


def find_family(question: Any) -> Family:
    """Return the family of a question.

    Args:
        question: The question, such as a `ModuloNoise` or a `FiniteQuery`.

    Raises:
        InvalidRequest: No family has such questions.
    """
    builtin = find_builtin_family(question.__class__)
    if builtin is not None:
        return builtin
    # Plug-ins are loaded only if no family of this package fits.
    plugins: dict[str, Family] = list_extensions("families")
    for family in plugins.values():
        if isinstance(question, family.question_class):
            return family
    classes = ", ".join(family.question_class.__name__ for family in list_families())
    return must("question", f"one of {classes}", repr(question))
