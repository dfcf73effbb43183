"""Random questions with formulas, and a comparison of a formula with designs.

Each `draw_...` function returns a small question with the options of `wb.formula` and `wb.design`.
The questions are small, so that hundreds of designs can be computed.
"""

from __future__ import annotations

import json
import math
import random
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Any

import workbench as wb

Question = tuple[Any, dict[str, Any]]  # A question and its options.
POINT_COUNT = 20  # A formula is compared at this number of points (ε, δ).
MAX_DIFFERENCE = 1e-9  # Formula and design agree within this, relative to max(1, loss).
# The ε of a point is drawn from this interval. With a factor of 2 for a difference it is below 10.
MIN_EPSILON = 0.06
MAX_EPSILON = 4.9


def draw_channel(rng: random.Random) -> Question:
    """Draw a channel with any prior and neighbours, and a named loss or a matrix of losses."""
    k = rng.randint(2, 4)
    m = rng.randint(2, 4)
    answers = sorted(rng.sample(range(8), k))
    prior = rng.choice(["uniform", "worst", [rng.randint(0, 3) + (i == 0) for i in range(k)]])
    neighbours = rng.choice(["all", "consecutive"])
    outputs = answers if rng.random() < 0.5 else range(m)
    query = wb.FiniteQuery(answers, outputs, prior=prior, neighbours=neighbours)
    losses = [
        [Fraction(rng.randint(0, 9), rng.randint(1, 7)) for _ in range(query.m)] for _ in range(k)
    ]
    return query, {"loss": rng.choice(["absolute", "squared", losses, losses])}


def draw_constrained_channel(rng: random.Random) -> Question:
    """Draw a channel with named constraints, which may be infeasible for some ε."""
    k = rng.randint(2, 4)
    prior = rng.choice(["uniform", "worst", [1, *range(1, k)]])
    query = wb.FiniteQuery(range(k), prior=prior, max_shift=1)
    names = ["unbiased", "row-monotone", "column-monotone", "symmetric", "honest"]
    return query, {
        "loss": rng.choice(["absolute", "error-rate"]),
        "constraints": rng.sample(names, rng.randint(1, 3)),
    }


def draw_metric_channel(rng: random.Random) -> Question:
    """Draw a channel under metric DP, whose budget grows with the distance of the answers."""
    answers = sorted(rng.sample(range(6), rng.randint(2, 4)))
    return wb.FiniteQuery(answers, neighbours="all"), {
        "notion": "metric",
        "loss": rng.choice(["absolute", "squared"]),
    }


def draw_modulo_noise(rng: random.Random) -> Question:
    """Draw noise modulo n + 1 with a named loss or a list of losses."""
    n = rng.randint(2, 9)
    shifts = rng.sample(range(1, n + 1), rng.randint(1, 2))
    noise = wb.ModuloNoise(n=n, shifts=shifts, directed=rng.random() < 0.4)
    losses = [Fraction(rng.randint(0, 9), rng.randint(1, 3)) for _ in range(n + 1)]
    named_losses = ["error-rate", "circular-squared", "squared", "worst-squared"]
    return noise, {"loss": rng.choice([*named_losses, losses])}


def draw_modulo_noise_with_budgets(rng: random.Random) -> Question:
    """Draw noise modulo n + 1 with a different budget for each of two differences."""
    n = rng.randint(3, 6)
    # The budget of a difference is ε times this number.
    epsilon_factors = {shift: Fraction(rng.randint(1, 4), 2) for shift in (1, 2)}
    loss = rng.choice(["error-rate", "circular-squared"])
    noise = wb.ModuloNoise(n=n, shifts=[1, 2], directed=rng.random() < 0.5)
    return noise, {"loss": loss, "epsilon": epsilon_factors}


def draw_vector_noise(rng: random.Random) -> Question:
    """Draw noise on vectors of two coordinates."""
    sizes = [rng.randint(2, 4), rng.randint(2, 3)]
    shifts = rng.choice([[(0, 1), (1, 0)], [(1, 1)], [(0, 1)]])
    loss = rng.choice(["error-rate", "squared"])
    return wb.ModuloNoise(sizes=sizes, shifts=shifts), {"loss": loss}


def draw_labels(rng: random.Random) -> Question:
    """Draw a randomizer of labels onto given outputs."""
    values = sorted(rng.sample(range(7), rng.randint(2, 4)))
    question = wb.Labels(values, [rng.randint(1, 4) for _ in values])
    outputs = tuple(sorted(rng.sample(range(7), rng.randint(2, 3))))
    loss = rng.choice(["absolute", "squared"])
    return question, {"method": "lp", "outputs": outputs, "loss": loss}


def draw_quantizer(rng: random.Random) -> Question:
    """Draw a quantizer onto four given outputs, under pure DP."""
    outer = Fraction(rng.randint(4, 8), 2)
    inner = Fraction(rng.randint(1, 3), 4)
    question = wb.Quantization([-outer, -inner, inner, outer])
    return question, {"loss": rng.choice(["absolute", "squared"]), "knots": rng.randint(4, 6)}


QUESTION_KINDS: dict[str, Callable[[random.Random], Question]] = {
    "channel": draw_channel,
    "constrained": draw_constrained_channel,
    "metric": draw_metric_channel,
    "modulo": draw_modulo_noise,
    "budgets": draw_modulo_noise_with_budgets,
    "vectors": draw_vector_noise,
    "labels": draw_labels,
    "quantizer": draw_quantizer,
}

# The independent checker of formulas is a program and not part of a package.
_CHECKER_PATH = Path(__file__).resolve().parents[2] / "tools" / "check_formula.py"
_SPEC = spec_from_file_location("check_formula", _CHECKER_PATH)
assert _SPEC is not None
assert _SPEC.loader is not None
CHECKER = module_from_spec(_SPEC)
_SPEC.loader.exec_module(CHECKER)


@dataclass(frozen=True)
class Comparison:
    """The comparison of one formula with designs.

    Attributes:
        piece_count: number of pieces of the formula.
        max_difference: largest difference of the losses, relative to max(1, loss).
    """

    piece_count: int
    max_difference: float

    @property
    def agrees(self) -> bool:
        """Return whether formula and designs agree."""
        return self.max_difference <= MAX_DIFFERENCE


def _draw_delta(rng: random.Random, draw_question: Any) -> str | float | None:
    """Draw the δ of a formula: None for 0, a number, or "0..1" for a formula in ε and δ."""
    if draw_question in (draw_metric_channel, draw_quantizer):
        return None
    if draw_question is not draw_constrained_channel and rng.random() < 0.5:
        return "0..1"
    if rng.random() < 0.7:
        return round(rng.random() ** 3, 3)
    return None


def _verify_file(formula: Any) -> None:
    """Save a formula and verify the file, by the workbench and by the independent checker.

    The verification proves without a solver that the formula is optimal for every ε.
    """
    with tempfile.TemporaryDirectory() as folder:
        (path,) = formula.save(Path(folder) / "f.json")
        loaded_formula = wb.check(path)
        assert loaded_formula.unproven == formula.unproven == ()
        assert loaded_formula.to_dict() == formula.to_dict()
        assert CHECKER.prove_statement(json.loads(path.read_text())).endswith("without gap.")


def _design_optimum(
    question: Any, options: dict[str, Any], epsilon: float, delta: float | None
) -> float:
    """Return the loss of a design at (ε, δ), or inf if the request is infeasible."""
    budget: Any = epsilon
    if "epsilon" in options:  # There is a factor of ε for each difference.
        budget = {shift: epsilon * factor for shift, factor in options["epsilon"].items()}
    design_options = options | {"epsilon": budget}
    if delta is not None:
        design_options["delta"] = delta
    try:
        return float(wb.design(question, **design_options).objective)
    except wb.Infeasible:
        return math.inf


def compare_formula(
    draw_question: Callable[[random.Random], Question],
    rng: random.Random,
    point_count: int = POINT_COUNT,
) -> Comparison:
    """Draw a question, verify the file of its formula, and compare the formula with designs.

    Args:
        draw_question: one of QUESTION_KINDS.
        rng: source of the question and of the points (ε, δ).
        point_count: number of points.
    """
    question, options = draw_question(rng)
    formula_delta = _draw_delta(rng, draw_question)
    delta_option = {} if formula_delta is None else {"delta": formula_delta}
    formula = wb.formula(question, **options, **delta_option)
    _verify_file(formula)
    max_difference = 0.0
    for _ in range(point_count):
        epsilon = round(rng.uniform(MIN_EPSILON, MAX_EPSILON), 3)
        delta = formula_delta
        if formula_delta == "0..1":
            delta = round(rng.uniform(0.001, 0.9), 3)
        assert not isinstance(delta, str)
        point = (epsilon,) if delta is None else (epsilon, delta)
        try:
            low, high = formula(*point)
            formula_loss = float((low + high) / 2)
        except wb.Infeasible:
            formula_loss = math.inf
        optimum = _design_optimum(question, options, epsilon, delta)
        if formula_loss != optimum:
            difference = math.inf
            if math.isfinite(formula_loss) and math.isfinite(optimum):
                difference = abs(formula_loss - optimum) / max(1.0, abs(optimum))
            max_difference = max(max_difference, difference)
    return Comparison(len(formula.pieces), max_difference)
