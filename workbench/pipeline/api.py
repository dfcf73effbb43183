"""Define the function `workbench.design`, which designs mechanisms of every family.

>>> import workbench as wb
>>> question = wb.ModuloNoise(n=8, shifts=[1, 2, 3], directed=True)
>>> d = wb.design(question, epsilon=1.5, delta=0.1212, notion="pdp")
>>> round(d.objective, 9), d.oracle.agrees
(0.450172331, True)
>>> d = wb.design("channel", answers="0..100", max_shift=1, epsilon=1, delta="1e-5")
>>> round(d.objective, 8)
1.79167543

Editors read only `workbench/__init__.pyi`, because names of this package are loaded on first use
and the signature of `design` is made at run time. `tools/stub.py` writes this file, with one
overload of `design` for each family of this package.
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
    """The default of an option whose default depends on the family."""

    def __repr__(self) -> str:
        return "<by family>"


def _design_signature(kinds: Sequence[Family]) -> inspect.Signature:
    """Return the signature of `design`, with the options of some families as keywords."""
    options: dict[str, list[Option]] = {}
    for option in chain.from_iterable(kind.design_arguments for kind in kinds):
        options.setdefault(option.name, []).append(option)
    parameters = [
        inspect.Parameter("question", inspect.Parameter.POSITIONAL_OR_KEYWORD, annotation=Any)
    ]
    for name, same_options in options.items():
        default, *others = (to_json_value(option.default) for option in same_options)
        if any(other != default for other in others):
            default = _ByFamily()
        is_required = all(option.required for option in same_options)
        if is_required and len(same_options) == len(kinds):
            default = inspect.Parameter.empty
        parameters.append(
            inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, annotation=Any, default=default)
        )
    return inspect.Signature(parameters, return_annotation=Design)


def _design_help(kinds: Sequence[Family]) -> str:
    """Return the help text of `design`."""
    lines = [
        "Design the best mechanism for a question. It is certified unless certify=False.",
        "",
        "The class of the question selects the family and therefore the options. The question may",
        "also be the name of a family. The options of the question are then given by name:",
        'design("modulo", n=8, max_shift=3, ...).',
    ]
    for kind in kinds:
        lines += ["", str(kind)]
    lines += [
        "",
        "Returns a Design. Raises InvalidRequest, Infeasible, SolverUnavailable, LicenceLimit,",
        "NotProven or NotCertified (see `workbench.errors`).",
    ]
    return "\n".join(lines)


def design(question: Any, **request: Any) -> Design:
    """Design the best mechanism for a question.

    This text is replaced below by one that lists every option.

    Args:
        question: The question, or the name of a family.
        request: Options of the family.
    """
    if isinstance(question, str):
        kind = get_family(question)
        checked_request = kind.make_request_from_options(**request)
    else:
        kind = find_builtin_family(question.__class__) or find_family(question)
        checked_request = kind.make_request(question, **request)
    try:
        return kind.design_request(checked_request)
    except ModuleNotFoundError as error:
        explanation = explain_missing_module("Designing", error)
        if explanation is error:
            raise
        raise explanation from error


# These families are the same in every installation.
design.__doc__ = _design_help(list_builtin_families())
design.__signature__ = _design_signature(list_builtin_families())  # type: ignore[attr-defined]
