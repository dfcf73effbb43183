"""What the artifacts of this paper share: its questions, laws, audits and printed numbers.

| paper          | here                                                       |
|----------------|------------------------------------------------------------|
| SD, μ̂          | `question_of(n=n, shifts=[μ̂])`                             |
| BD, μ̄          | `question_of(n=n, max_shift=μ̄)`                            |
| ρ*(δ, ε), f*   | `law(question, epsilon, delta)`, closed form               |
| (13), (15)     | `solve_each(question, requests)`, by HiGHS                 |
| one-sided M    | `directed=True`, the default here and nowhere else         |
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from fractions import Fraction
from functools import cache
from typing import Any

from numpy.typing import ArrayLike

from workbench.exact.numbers import ZERO, Real, exp_interval, read_number
from workbench.exact.objects import Record
from workbench.mechanisms.additive import AdditiveNoise
from workbench.models import oracles
from workbench.models.oracles import ClosedForm
from workbench.papers.artifact import Comparison, read_printed_numbers
from workbench.pipeline.api import design
from workbench.pipeline.requirements import get_ratio_kind
from workbench.privacy.audit import audit
from workbench.questions.modulo_noise import ModuloNoise


@cache
def numbers() -> Record:
    """The printed numbers of this paper."""
    return read_printed_numbers("modulo_noise")


def question_of(*, directed: bool = True, **question: Any) -> ModuloNoise:
    """The keywords of `ModuloNoise`, one-sided unless said otherwise."""
    return ModuloNoise(directed=directed, **question)


def snap(value: float) -> float:
    """A solver's number to 10 significant digits, and 0 below 1e-12: what the last digits hide is not reproducible."""
    return float(f"{value:.10g}") if abs(value) >= 1e-12 else 0.0


def solve_each(
    question: ModuloNoise,
    requests: Iterable[tuple[Real, Real]],
    second: str = "delta",
    **options: Any,
) -> list[float]:
    """The proven optimum at each request: the least error at (epsilon, delta), (13), or, where the second is max_loss,
    the least delta, (15). options: notion (pdp) and loss. Raises NotProven."""
    given = {"notion": "pdp", "certify": False, **options}
    given |= {"minimise": "delta"} if second == "max_loss" else {}
    return [
        snap(design(question, epsilon=e, **{second: value}, **given).objective)
        for e, value in requests
    ]


def law(
    question: ModuloNoise, epsilon: float, delta: float = 0.0, notion: str = "pdp"
) -> ClosedForm:
    """The oracle of the least error rate, a closed form or an exact search; `kind` says whether it is proven."""
    verdict = oracles.error_rate_bounds(
        question.sizes,
        question.differences,
        question.directed,
        epsilon,
        delta,
        get_ratio_kind(notion),
    ).strongest
    assert verdict
    return verdict


def staircase(question: ModuloNoise, levels: Sequence[int], epsilon: Real) -> AdditiveNoise:
    """The exact noise with masses proportional to a^level, a = e^-epsilon rounded up at 2^-200.

    levels: one per noise value, -1 for a zero mass. Rounding a up keeps f(η) <= e^ε f(η') where the levels differ by
    one, so that an audit counts no rounding accident as a violation.
    """
    ratio = exp_interval(-read_number(epsilon, "epsilon"), 200)[1]
    return AdditiveNoise(question, [ratio**level if level >= 0 else ZERO for level in levels])


def needed(pmf: ArrayLike | AdditiveNoise, question: ModuloNoise, epsilon: Real) -> float:
    """The PDP delta a PMF really needs, by the exact audit.

    A float PMF is audited at epsilon + 1e-9, so that ratios of exactly e^epsilon, rounded to floats, do not count.
    """
    if isinstance(pmf, AdditiveNoise):
        noise, beyond = AdditiveNoise(question, pmf.masses), ZERO
    else:
        noise, beyond = AdditiveNoise.from_pmf(question, pmf), Fraction("1e-9")
    return float(audit(noise, read_number(epsilon, "epsilon") + beyond).pdp_delta)


def compare(
    what: str, place: str, theirs: float, ours: float, digits: int, *, erratum: str = ""
) -> Comparison:
    """A printed number with this many decimals beside ours; erratum: why it is wrong, where it is."""
    return Comparison(
        what, place, theirs, ours, 0.5 * 10.0**-digits, expected=not erratum, remark=erratum
    )
