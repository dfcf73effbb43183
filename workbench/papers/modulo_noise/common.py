"""What the artifacts of this paper share: its questions, laws, audits, rounding and comparisons.

| paper          | here                                                       |
|----------------|------------------------------------------------------------|
| SD, μ̂          | `single(n, shift)`                                         |
| BD, μ̄          | `bounded(n, mu_bar)`                                       |
| ρ*(δ, ε), f*   | `law(question, epsilon, delta)`, closed form               |
| (13), (14)     | `solve(question, epsilon, delta)`, by HiGHS                |
| one-sided M    | `directed=True`, the default here and nowhere else         |
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from fractions import Fraction
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from models import oracles
from models.oracles import ClosedForm
from workbench.errors import WorkbenchError
from workbench.exact.numbers import Real, exact, exp_bounds
from workbench.families.api import design
from workbench.families.base import Request
from workbench.families.design import Design
from workbench.families.modulo.family import FAMILY
from workbench.families.requirements import ratio_kind
from workbench.mechanisms.additive import AdditiveNoise, ModuloNoise
from workbench.papers.artifact import Comparison, printed
from workbench.privacy.audit import audit

Floats = NDArray[np.float64]


@cache
def numbers() -> dict[str, Any]:
    """The printed numbers of this paper."""
    return printed("modulo_noise")


def question_of(*, directed: bool = True, **question: Any) -> ModuloNoise:
    """The keywords of `ModuloNoise`, one-sided unless said otherwise."""
    return ModuloNoise(directed=directed, **question)


def bounded(n: int, mu_bar: int, *, directed: bool = True) -> ModuloNoise:
    """Bounded difference (BD), Definition 6: M = {1..mu_bar}."""
    return ModuloNoise(n=n, max_shift=mu_bar, directed=directed)


def single(n: int, shift: int, *, directed: bool = True) -> ModuloNoise:
    """Single distance (SD), Definition 5: M = {shift}."""
    return ModuloNoise(n=n, shifts=[shift], directed=directed)


def snap(value: float) -> float:
    """A solver's number to 10 significant digits, and 0 below 1e-12: what the last digits hide is not reproducible."""
    return float(f"{value:.10g}") if abs(value) >= 1e-12 else 0.0


def solve_each(
    question: ModuloNoise, requests: Iterable[tuple[Real, Real]], *, notion: str = "pdp", loss: str = "error-rate"
) -> list[float]:
    """The proven least error at each (epsilon, delta), one live solver for all. Raises WorkbenchError unless proven."""
    points = [{"epsilon": epsilon, "delta": delta} for epsilon, delta in requests]
    return _each(FAMILY.request(question, epsilon=1, notion=notion, loss=loss), points)


def least_deltas(
    question: ModuloNoise, requests: Iterable[tuple[Real, Real]], *, notion: str = "pdp", loss: str = "error-rate"
) -> list[float]:
    """The proven least delta at each (epsilon, budget), (15), one live solver for all. Raises unless proven."""
    points = [{"epsilon": epsilon, "max_loss": budget} for epsilon, budget in requests]
    least = FAMILY.request(question, epsilon=1, notion=notion, loss=loss, minimise="delta", max_loss=1)
    return _each(least, points)


def _each(request: Request, points: Iterable[dict[str, Real]]) -> list[float]:
    """The proven objectives at points of a request."""
    values = []
    with FAMILY.open(request.at({"check": "bound"})) as session:
        for point in points:
            row = session.row({name: FAMILY.option(name).of(value) for name, value in point.items()})
            if row["status"] != "optimal":
                raise WorkbenchError(f"The solver stopped with {row['status']!r} before proving an optimum.")
            values.append(snap(float(row["objective"])))
    return values


def solve(question: ModuloNoise, epsilon: Real, delta: Real = 0, *, notion: str = "pdp") -> Design:
    """The proven optimum for the error rate, judged and audited."""
    return design(question, epsilon=epsilon, delta=delta, notion=notion, certify=False)


def law(question: ModuloNoise, epsilon: float, delta: float = 0.0, notion: str = "pdp") -> ClosedForm:
    """The oracle of the least error rate, a closed form or an exact search; `kind` says whether it is proven.

    Raises WorkbenchError.
    """
    kind = ratio_kind(notion)
    verdict = oracles.bounds(question.sizes, question.differences, question.directed, epsilon, delta, kind).strongest
    if verdict is None:
        raise WorkbenchError(f"No closed form is known for {question!r}.")
    return verdict


def staircase(question: ModuloNoise, levels: Sequence[int], epsilon: Real) -> AdditiveNoise:
    """The exact noise with masses proportional to a^level, a = e^-epsilon rounded up at 2^-200.

    levels: one per noise value, -1 for a zero mass. Rounding a up keeps f(η) <= e^ε f(η') where the levels differ by
    one, so that an audit counts no rounding accident as a violation.
    """
    scale = 200
    ratio = Fraction(exp_bounds(-exact(epsilon, "epsilon"), scale)[1], 1 << scale)
    return AdditiveNoise(question, [ratio**level if level >= 0 else Fraction(0) for level in levels])


def needed(pmf: ArrayLike | AdditiveNoise, question: ModuloNoise, epsilon: Real, *, slack: str = "1e-9") -> float:
    """The PDP delta a PMF really needs, by the exact audit.

    A float PMF is audited at epsilon + slack, so that ratios of exactly e^epsilon, rounded to floats, do not count.
    """
    if isinstance(pmf, AdditiveNoise):
        noise, budget = AdditiveNoise(question, pmf.masses), exact(epsilon, "epsilon")
    else:
        noise, budget = AdditiveNoise.from_pmf(question, pmf), exact(epsilon, "epsilon") + Fraction(slack)
    return float(audit(noise, budget).pdp_delta)


def compare(
    what: str, place: str, printed_value: float, ours: float, digits: int, *, expected: bool = True, remark: str = ""
) -> Comparison:
    """A printed number with this many decimals beside ours."""
    return Comparison(what, place, printed_value, ours, 0.5 * 10.0**-digits, expected, remark)
