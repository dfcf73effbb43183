"""Designing quantizers: the request, its method, the exact audit of what comes out, and the words a reader needs.

method    what is solved                                                        objective         bound
exact     the exact quantizer LP (models.quantizer); with levels, bins on top    exact error       LP dual; limit
optm      OPTM's LPs, searched over bounds (and bins)                            proxy (8)         none
product   the best two-bin mechanism, by branch and bound (models.product)       exact error       proven
mvu       MVU's LP in P (and its alphabet)                                       error on its grid limit on the grid
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

from workbench import rooms

# isort: split
from models.quantizer import smallest_epsilon, smallest_reach
from solvers.backend import Options
from workbench.designing import OracleVerdict
from workbench.errors import Infeasible, InvalidRequest, WorkbenchError
from workbench.mechanisms.quantization import Quantization
from workbench.mechanisms.quantizer import Quantizer, error_function
from workbench.numbers import Real, positive
from workbench.privacy.certificate import Certificate
from workbench.privacy.quantizer import METRICS, audit_quantizer
from workbench.quantizer_certified import SMALL, certified_quantizer
from workbench.quantizer_designed import QuantizerDesign
from workbench.quantizer_methods import Made, NoLaw, run, why_none
from workbench.quantizer_units import Units
from workbench.solver_options import settled

__all__ = ["METHODS", "QuantizerDesign", "design", "validate"]

METHODS = ("exact", "optm", "product", "mvu")
Progress = Callable[[str], None]


def design(
    question: Quantization,
    *,
    epsilon: Real,
    method: str = "exact",
    knots: int | None = None,
    cost: Any = None,
    metric: str | None = None,
    reach: Real | None = None,
    inputs: int | None = None,
    starts: int = 4,
    solver: str = "highs",
    time_limit: float | None = None,
    options: Options | None = None,
    certify: bool = True,
    progress: Progress = lambda line: None,
) -> QuantizerDesign:
    """The best unbiased ε-private quantizer for a question, audited exactly.

    Args:
        question: bins or levels, c, density.
        epsilon: > 0; decimals are meant.
        method: "exact", "optm", "product" or "mvu".
        knots: extra equally spaced knots of the exact LP (0 with given bins, 41 when bins are optimised).
        cost: "mae", "mse", or λ in [0, 1] for λ|e| + (1 - λ) e²; "mae" by default, for mvu "mse", which is its own.
            (OPTM minimises its own proxy of the MAE.)
        metric: None for ε-DP; "absolute": p(x) <= e^{ε|x-x'|} p(x') for all real inputs (methods exact); "squared":
            e^{ε|x-x'|²} between the points inputs are dithered to (knots for exact, the grid for mvu).
        reach: the largest output allowed when bins are optimised.
        inputs: n_in of MVU.
        starts: of the searches over outputs.
        solver: a label of `workbench solvers`; time_limit: seconds of one LP; options: all solver options instead.
        certify: return a mechanism proven unbiased and private in exact arithmetic, with its certificate; False: the
            solver's own.
        progress: told a line now and then.

    Raises:
        InvalidRequest, Infeasible (with the smallest feasible ε), SolverUnavailable, LicenceLimit, NotProven,
        NotCertified.
    """
    budget, cost, limit, options = validate(
        question, epsilon=epsilon, method=method, knots=knots, cost=cost, metric=metric, reach=reach, inputs=inputs,
        time_limit=time_limit, options=options,
    )  # fmt: skip
    units = Units(question.c)
    unit_cost, scale = units.cost(cost)
    least = _least(question, budget, metric)
    extra = knots if knots is not None else (41 if question.bins is None else 0)
    try:
        with rooms.speaking_our_errors():
            made = run(
                units.question(question), units.epsilon(budget, metric), method, extra, unit_cost, metric,
                None if limit is None else limit / float(question.c), inputs, starts, solver, options, progress,
            )  # fmt: skip
    except KeyboardInterrupt:
        raise WorkbenchError("Interrupted; nothing was written.") from None
    except NoLaw:
        raise Infeasible(why_none(question, budget, metric, extra, method, inputs)) from None
    made = made.back(units, scale)
    quantizer, words, certificate, route = _finished(made.quantizer, budget, metric, certify)
    if metric == "squared":
        words = (*words, f"By |x - x'|² the guarantee is between the {len(quantizer.knots)} points that inputs are "
                         "dithered to; between all real inputs it would force a constant law.")  # fmt: skip
    notion = "pure" if metric is None else "metric"
    request = {
        "epsilon": budget, "delta": 0, "notion": notion, "method": method, "cost": cost, "metric": metric,
        "knots": extra if method == "exact" else 0, "solver": solver, "smallest_epsilon": least, "minimise": "error",
        "budget": None,
    }  # fmt: skip
    verdict = _judge(question, quantizer, made, cost, metric)
    privacy = audit_quantizer(quantizer, metric)
    objective = quantizer.expected(cost, question.density) if method in ("exact", "product") else made.objective
    return QuantizerDesign(
        question, request, quantizer, objective, made.bound, privacy, verdict, made.solution, (*made.words, *words),
        certificate, made.quantizer if certify else None, route,
    )  # fmt: skip


def validate(
    question: Quantization,
    *,
    epsilon: Real,
    method: str = "exact",
    knots: int | None = None,
    cost: Any = None,
    metric: str | None = None,
    reach: Real | None = None,
    inputs: int | None = None,
    time_limit: float | None = None,
    options: Options | None = None,
) -> tuple[Fraction, Any, float | None, Options]:
    """Refuse a request that makes no sense, without solving anything; arguments as `design`.

    Returns ε, the cost, the largest output allowed and the solver's options. Raises InvalidRequest.
    """
    budget = positive(epsilon, "epsilon")
    if not isinstance(question, Quantization):
        InvalidRequest.must("question", "a Quantization", repr(question))
    if method not in METHODS:
        InvalidRequest.must("method", f"one of {', '.join(METHODS)}", repr(method))
    cost = ("mse" if method == "mvu" else "mae") if cost is None else cost
    error_function(cost)
    if knots is not None and (not isinstance(knots, int) or isinstance(knots, bool) or not 0 <= knots <= 2001):
        InvalidRequest.must("knots", "an integer in 0..2001", knots)
    if knots == 1:
        InvalidRequest.must("knots", "0, or at least 2: they are equally spaced from -c to c", knots)
    if knots is not None and method != "exact":
        raise InvalidRequest(f"knots must be left out unless method is exact. Got {knots} for {method}.")
    if metric is not None and metric not in METRICS:
        InvalidRequest.must("metric", f"one of {', '.join(METRICS)}", repr(metric))
    if metric is not None and method not in ("exact", "mvu"):
        raise InvalidRequest(f"metric must be left out with method {method}, whose laws jump at bins. Got {metric}.")
    if method == "optm" and cost != "mae":
        raise InvalidRequest(f"cost must be mae with method optm, whose LP bounds it. Got {cost}.")
    if inputs is not None and method != "mvu":
        raise InvalidRequest(f"inputs must be left out unless method is mvu. Got {inputs} for {method}.")
    if reach is not None and question.bins is not None:
        raise InvalidRequest(f"reach must be left out with bins, which say it. Got {reach}.")
    Units(question.c).epsilon(budget, metric)
    options = settled(options, time_limit)
    limit = None if reach is None else float(positive(reach, "reach"))
    if limit is not None and metric is None and limit < smallest_reach(float(budget), float(question.c)) * (1 + 1e-9):
        need = smallest_reach(float(budget), float(question.c))
        InvalidRequest.must("reach", f"above {need:.6g}, the least at this epsilon", reach)
    return budget, cost, limit, options


def _least(question: Quantization, budget: Fraction, metric: str | None) -> float | None:
    """The smallest feasible ε for given bins (None: bins are free). Raises Infeasible below it."""
    if question.bins is None:
        return None
    c, low, high = float(question.c), float(question.bins[0]), float(question.bins[-1])
    least = smallest_epsilon(low, high, c)
    if metric == "absolute":
        least /= 2 * c  # p may change by e^{ε |x - x'|}, and |x - x'| <= 2c
    if metric == "squared":
        return None
    if math.isinf(least):
        raise Infeasible(
            f"bins must reach beyond [-{c:g}, {c:g}] on both sides: with an outermost output at ±c its input would "
            f"have to be published as it is. Got {low:g} to {high:g}."
        )
    if float(budget) < least * (1 - 1e-12):
        raise Infeasible(
            f"epsilon must be at least {least:.9g} for outputs in [{low:g}, {high:g}] (the smallest at which an "
            f"unbiased private quantizer on [-{c:g}, {c:g}] exists). Got {float(budget):g}."
        )
    return least


def _finished(
    quantizer: Quantizer, epsilon: Fraction, metric: str | None, certify: bool
) -> tuple[Quantizer, tuple[str, ...], Certificate | None, str | None]:
    """The one place where what a solver's rounding left is repaired: what comes back is what is published."""
    if certify:
        made, certificate, share = certified_quantizer(quantizer, epsilon, metric)
        route = "as the solver returned it" if not share else f"{float(share):.2g} of a strictly private law mixed in"
        changed = f"The proof took {float(share):.2g} of another law mixed into the solver's; errors are those of both."
        return made, (changed,) if share > SMALL else (), certificate, route
    found = audit_quantizer(quantizer, metric)
    words = []
    if not found.meets("pure" if metric is None else "metric", epsilon):
        words.append(f"The solver's law {found.verdict(epsilon, quantizer.bins)}.")
    if found.bias:
        words.append(f"Its exact bias is {float(found.bias):.2g} (rounding of the solver's answer), not 0.")
    return quantizer, tuple(words), None, None


def _judge(question: Quantization, quantizer: Quantizer, made: Made, cost: Any, metric: str | None) -> OracleVerdict:
    """The closed forms: two outputs ±B have MAE (B² - c²/3)/B; no mechanism beats the limit."""
    bins, c = quantizer.bins, float(question.c)
    if len(bins) == 2 and bins[0] == -bins[1] and cost == "mae" and question.density.shape is None:
        reach = float(bins[1])
        value = (reach * reach - c * c / 3) / reach
        proof = "Two outputs ±B leave one unbiased law, Pr[B] = (B + x)/(2B); its error is (B² - x²)/B."
        return OracleVerdict.judge(quantizer.mae(), "two outputs", value, "optimum", proof)
    if made.bound is not None and question.bins is None and made.quantizer.name == "exact quantizer":
        proof = "The limit for unlimited outputs within the same reach, proven by duality."
        reached = quantizer.expected(cost, question.density)
        return OracleVerdict.judge(reached, "limit", made.bound, "lower bound", proof)
    return OracleVerdict.none("no closed form is known for more than two outputs.")
