"""`workbench.design` and `workbench.list_families`: every family through one function, whose help is the options.

>>> import workbench as wb
>>> d = wb.design(wb.ModuloNoise(n=8, shifts=[1, 2, 3], directed=True), epsilon=1.5, delta=0.1212)
>>> round(d.objective, 9), d.oracle.agrees
(0.450172331, True)
>>> round(wb.design("channel", answers="0..100", max_shift=1, epsilon=1, delta="1e-5").objective, 8)
1.79167543
>>> wb.list_families()[0]
noise: additive noise modulo a finite group (question: ModuloNoise)
"""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from typing import Any

from workbench.families.base import Family
from workbench.families.design import Design
from workbench.families.option import Option, spell
from workbench.families.registry import families, family, family_of, our_families

__all__ = ["design", "list_families"]


def design(question: Any, **request: Any) -> Design:
    """Design the best mechanism for a question. (The full help is written below, from the tables of options.)"""
    if isinstance(question, str):
        kind = family(question)
        asked = kind.spelled(**request)
    else:
        kind = family_of(question)
        asked = kind.request(question, **request)
    with kind.open(asked) as session:
        return session.design()


def list_families() -> list[Family]:
    """All kinds of questions; `print` one to see its options."""
    return families()


class _ByFamily:
    """The default of an option for which families have different ones."""

    def __repr__(self) -> str:
        return "<by family>"


def _signature() -> inspect.Signature:
    """The options of all families as keywords: what an editor or a notebook completes."""
    kinds = our_families()  # which every installation has; `list_families` shows all
    options: dict[str, list[Option]] = {}
    for kind in kinds:
        for option in kind.arguments:
            options.setdefault(option.name, []).append(option)
    first = inspect.Parameter("question", inspect.Parameter.POSITIONAL_OR_KEYWORD, annotation=Any)
    keywords = []
    for name, same in options.items():
        defaults = [spell(option.default) for option in same]
        shown = defaults[0] if all(default == defaults[0] for default in defaults) else _ByFamily()
        if len(same) == len(kinds) and all(option.required for option in same):
            shown = inspect.Parameter.empty
        keywords.append(inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, annotation=Any, default=shown))
    return inspect.Signature([first, *keywords], return_annotation=Design)


def _help() -> Iterator[str]:
    yield "Design the best mechanism for a question, certified unless certify=False."
    yield ""
    yield "The class of the question says of which family it is, and so which options there are. The name of a family"
    yield 'instead of a question takes the question\'s own options by name: design("noise", n=8, max_shift=3, ...).'
    for kind in our_families():
        yield ""
        yield str(kind)
    yield ""
    yield "Returns a Design. Raises InvalidRequest, Infeasible, SolverUnavailable, LicenceLimit, NotProven or"
    yield "NotCertified (see `workbench.errors`)."


design.__doc__ = "\n".join(_help())
design.__signature__ = _signature()  # type: ignore[attr-defined]
