"""`workbench.design` and `workbench.list_families`: every family through one function, whose help is the options.

>>> import workbench as wb
>>> d = wb.design(wb.ModuloNoise(n=8, shifts=[1, 2, 3], directed=True), epsilon=1.5, delta=0.1212, notion="pdp")
>>> round(d.objective, 9), d.oracle.agrees
(0.450172331, True)
>>> round(wb.design("channel", answers="0..100", max_shift=1, epsilon=1, delta="1e-5").objective, 8)
1.79167543
>>> wb.list_families()[0]
modulo: additive noise modulo a finite group (question: ModuloNoise)
"""

from __future__ import annotations

from typing import Any

from workbench.families.base import Family
from workbench.families.design import Design
from workbench.families.registry import families, family, family_of, our_families
from workbench.families.signatures import help_text, signature
from workbench.io.extras import says_what_is_missing

__all__ = ["design", "list_families"]


def design(question: Any, **request: Any) -> Design:
    """Design the best mechanism for a question. (The full help is made of the tables of options, below.)"""
    kind = family(question) if isinstance(question, str) else family_of(question)
    given = kind.spelled(**request) if isinstance(question, str) else kind.request(question, **request)
    with says_what_is_missing("Designing"), kind.open(given) as session:
        return session.design()


def list_families() -> list[Family]:
    """All kinds of questions; `print` one to see its options."""
    return families()


design.__doc__ = help_text(our_families())  # which every installation has; `list_families` shows all
design.__signature__ = signature(our_families())  # type: ignore[attr-defined]
