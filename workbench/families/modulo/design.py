"""`ModuloDesigner`: one model on one solver, asked by hand at many (ε, δ)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeAlias

from solvers.solution import Solution
from workbench.exact.numbers import Real
from workbench.families.design import Design
from workbench.families.modulo.family import FAMILY
from workbench.families.modulo.request import ModuloRequest
from workbench.families.modulo.session import ModuloSession
from workbench.mechanisms.modulo import ModuloNoise

__all__ = ["ModuloDesigner"]

Epsilon: TypeAlias = "Real | Mapping[Any, Real]"


class ModuloDesigner:
    """A session of the family noise that takes ε, δ and a budget as `wb.design` does.

    The live solver object is kept and re-solved hot.

    request: options as `wb.design`, without epsilon, delta and budget; certify is False here, which is what a sweep can
    afford.
    """

    def __init__(self, question: ModuloNoise, **request: Any) -> None:
        self._given = {"certify": False} | request
        least = {"max_loss": 1} if request.get("minimise") == "delta" else {}  # until a point says what it is
        self._session = ModuloSession(self._request(question, epsilon=1, **least))

    def _request(self, question: ModuloNoise, **point: Any) -> ModuloRequest:
        request = FAMILY.request(question, **self._given, **point)
        assert isinstance(request, ModuloRequest)
        return request

    @property
    def question(self) -> ModuloNoise:
        """What is asked about."""
        return self._session.request.question

    def __enter__(self) -> ModuloDesigner:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Give the solvers' resources back."""
        self._session.close()

    def _point(self, epsilon: Epsilon, delta: Real | None, max_loss: Real | None) -> dict[str, Any]:
        given = {"epsilon": epsilon, "delta": delta, "max_loss": max_loss}
        return {name: FAMILY.option(name).of(value) for name, value in given.items()}

    def solve(
        self, epsilon: Epsilon, delta: Real | None = None, *, max_loss: Real | None = None, start: str = "hot"
    ) -> Solution:
        """The solver's answer alone, neither audited nor judged; a point or none."""
        return self._session.answer(self._session.at(self._point(epsilon, delta, max_loss)), start)

    def design(
        self, epsilon: Epsilon, delta: Real | None = None, *, max_loss: Real | None = None, start: str = "hot"
    ) -> Design:
        """Solve, judge and audit. Arguments and errors as `wb.design`."""
        return self._session.design(self._point(epsilon, delta, max_loss), start=start)
