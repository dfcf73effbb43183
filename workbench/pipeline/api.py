"""`workbench.design`: every family through one function, whose help is the options.

>>> import workbench as wb
>>> d = wb.design(wb.ModuloNoise(n=8, shifts=[1, 2, 3], directed=True), epsilon=1.5, delta=0.1212, notion="pdp")
>>> round(d.objective, 9), d.oracle.agrees
(0.450172331, True)
>>> round(wb.design("channel", answers="0..100", max_shift=1, epsilon=1, delta="1e-5").objective, 8)
1.79167543

An editor that does not run the code sees neither names that are loaded when they are used nor a signature made at run
time. So `workbench/__init__.pyi` spells both out, one overload of `design` for each family of this package
(`tools/stub.py`).
"""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from itertools import chain
from typing import Any

from workbench.io.extras import explain_missing_module
from workbench.pipeline.design import Design
from workbench.pipeline.family import Family
from workbench.pipeline.option import Option, to_json_value
from workbench.pipeline.registry import (
    find_builtin_family,
    find_family,
    get_family,
    list_builtin_families,
)


class _ByFamily:
    """The default of an option for which families have different ones."""

    def __repr__(self) -> str:
        return "<by family>"


def _design_signature(kinds: Sequence[Family]) -> inspect.Signature:
    """The options of some families as keywords of `design`: what a notebook completes."""
    options: dict[str, list[Option]] = {}
    for option in chain.from_iterable(kind.design_arguments for kind in kinds):
        options.setdefault(option.name, []).append(option)
    first = inspect.Parameter("question", inspect.Parameter.POSITIONAL_OR_KEYWORD, annotation=Any)
    keywords = []
    for name, same in options.items():
        shown, *others = (to_json_value(option.default) for option in same)
        if any(other != shown for other in others):
            shown = _ByFamily()
        if len(same) == len(kinds) and all(option.required for option in same):
            shown = inspect.Parameter.empty
        keywords.append(
            inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, annotation=Any, default=shown)
        )
    return inspect.Signature([first, *keywords], return_annotation=Design)


def _design_help(kinds: Sequence[Family]) -> str:
    """The help of `design`."""
    lines = [
        "Design the best mechanism for a question, certified unless certify=False.",
        "",
        "The class of the question says of which family it is, and so which options there are. The name of a family",
        'instead of a question takes the question\'s own options by name: design("modulo", n=8, max_shift=3, ...).',
        *(line for kind in kinds for line in ("", str(kind))),
        "",
        "Returns a Design. Raises InvalidRequest, Infeasible, SolverUnavailable, LicenceLimit, NotProven or",
        "NotCertified (see `workbench.errors`).",
    ]
    return "\n".join(lines)


def design(question: Any, **request: Any) -> Design:
    """Design the best mechanism for a question. (The full help is made of the tables of options, below.)"""
    if isinstance(question, str):
        kind = get_family(question)
        given = kind.make_request_from_options(**request)
    else:
        kind = find_builtin_family(question.__class__) or find_family(question)
        given = kind.make_request(question, **request)
    try:
        return kind.design_request(given)
    except ModuleNotFoundError as error:
        explained = explain_missing_module("Designing", error)
        if explained is error:
            raise
        raise explained from error


design.__doc__ = _design_help(list_builtin_families())  # which every installation has
design.__signature__ = _design_signature(list_builtin_families())  # type: ignore[attr-defined]
