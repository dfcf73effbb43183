"""Random questions of every family that has formulas, small enough for hundreds of designs."""

from __future__ import annotations

import json
import math
import random
import tempfile
from fractions import Fraction
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Any

import workbench as wb

Question = tuple[Any, dict[str, Any]]
POINTS = 20  # (ε, δ) of one question


def channel(draw: random.Random) -> Question:
    """Any prior and neighbours, named losses and matrices of one's own."""
    k, m = draw.randint(2, 4), draw.randint(2, 4)
    inputs = sorted(draw.sample(range(8), k))
    prior = draw.choice(["uniform", "worst", [draw.randint(0, 3) + (i == 0) for i in range(k)]])
    near = draw.choice([{"neighbours": "all"}, {"neighbours": "consecutive"}])
    query = wb.FiniteQuery(inputs, inputs if draw.random() < 0.5 else range(m), prior=prior, **near)
    own = [
        [Fraction(draw.randint(0, 9), draw.randint(1, 7)) for _ in range(query.m)] for _ in range(k)
    ]
    return query, {"loss": draw.choice(["absolute", "squared", own, own])}


def constrained(draw: random.Random) -> Question:
    """Draw a question with named constraints. Where no channel meets them, a piece is infeasible."""
    k = draw.randint(2, 4)
    query = wb.FiniteQuery(
        range(k), prior=draw.choice(["uniform", "worst", [1, *range(1, k)]]), max_shift=1
    )
    names = ["unbiased", "row-monotone", "column-monotone", "symmetric", "honest"]
    return query, {
        "loss": draw.choice(["absolute", "error-rate"]),
        "constraints": draw.sample(names, draw.randint(1, 3)),
    }


def metric(draw: random.Random) -> Question:
    """A budget for each distance."""
    inputs = sorted(draw.sample(range(6), draw.randint(2, 4)))
    return wb.FiniteQuery(inputs, neighbours="all"), {
        "notion": "metric",
        "loss": draw.choice(["absolute", "squared"]),
    }


def modulo(draw: random.Random) -> Question:
    """Directed and symmetric differences, named losses and numbers of one's own."""
    n = draw.randint(2, 9)
    shifts = draw.sample(range(1, n + 1), draw.randint(1, 2))
    noise = wb.ModuloNoise(n=n, shifts=shifts, directed=draw.random() < 0.4)
    own = [Fraction(draw.randint(0, 9), draw.randint(1, 3)) for _ in range(n + 1)]
    return noise, {
        "loss": draw.choice(["error-rate", "circular-squared", "squared", "worst-squared", own])
    }


def vectors(draw: random.Random) -> Question:
    """Noise on two coordinates."""
    sizes = [draw.randint(2, 4), draw.randint(2, 3)]
    shifts = draw.choice([[(0, 1), (1, 0)], [(1, 1)], [(0, 1)]])
    return wb.ModuloNoise(sizes=sizes, shifts=shifts), {
        "loss": draw.choice(["error-rate", "squared"])
    }


def labels(draw: random.Random) -> Question:
    """A channel onto given outputs."""
    values = sorted(draw.sample(range(7), draw.randint(2, 4)))
    question = wb.Labels(values, [draw.randint(1, 4) for _ in values])
    outputs = tuple(sorted(draw.sample(range(7), draw.randint(2, 3))))
    return question, {
        "method": "lp",
        "outputs": outputs,
        "loss": draw.choice(["absolute", "squared"]),
    }


def quantizer(draw: random.Random) -> Question:
    """Given outputs and knots, pure."""
    far = Fraction(draw.randint(4, 8), 2)
    near = Fraction(draw.randint(1, 3), 4)
    question = wb.Quantization([-far, -near, near, far])
    return question, {"loss": draw.choice(["absolute", "squared"]), "knots": draw.randint(4, 6)}


def budgets(draw: random.Random) -> Question:
    """Noise with a budget for each difference."""
    n = draw.randint(3, 6)
    shares = {shift: Fraction(draw.randint(1, 4), 2) for shift in (1, 2)}
    loss = draw.choice(["error-rate", "circular-squared"])
    return wb.ModuloNoise(n=n, shifts=[1, 2], directed=draw.random() < 0.5), {
        "loss": loss,
        "epsilon": shares,
    }


FAMILIES = (channel, constrained, metric, modulo, budgets, vectors, labels, quantizer)
_FILE = Path(__file__).resolve().parents[2] / "tools" / "check_formula.py"
_SPEC = spec_from_file_location("check_formula", _FILE)
assert _SPEC is not None
assert _SPEC.loader is not None
CHECKER = module_from_spec(_SPEC)
_SPEC.loader.exec_module(CHECKER)


def compared(family: Any, draw: random.Random, points: int = POINTS) -> dict[str, float]:
    """Compare the formula of one question with designs at random (ε, δ).

    Its file is proven again without a solver: no ε is left out, and neighbours agree where they
    meet. The independent checker must prove it as well.
    """
    question, options = family(draw)
    has_delta = family not in (metric, quantizer)
    is_delta_free = has_delta and family is not constrained and draw.random() < 0.5
    fixed_delta = None
    if has_delta and not is_delta_free and draw.random() < 0.7:
        fixed_delta = round(draw.random() ** 3, 3)
    delta_option: dict[str, Any] = {}
    if is_delta_free:
        delta_option = {"delta": "0..1"}
    elif fixed_delta is not None:
        delta_option = {"delta": fixed_delta}
    formula = wb.formula(question, **options, **delta_option)
    with tempfile.TemporaryDirectory() as folder:
        (path,) = formula.save(Path(folder) / "f.json")
        loaded_formula = wb.check(path)
        assert loaded_formula.unproven == formula.unproven == ()
        assert loaded_formula.to_dict() == formula.to_dict()
        assert CHECKER.prove_statement(json.loads(path.read_text())).endswith("without gap.")
    max_difference = 0.0
    for _ in range(points):
        epsilon = round(draw.uniform(0.06, 4.9), 3)
        delta = fixed_delta
        if is_delta_free:
            delta = round(draw.uniform(0.001, 0.9), 3)
        point: dict[str, float] = {}
        if delta is not None:
            point = {"delta": delta}
        try:
            value = float(sum(formula(epsilon, *point.values())) / 2)
        except wb.Infeasible:
            value = math.inf
        shares = options.get("epsilon")
        budget: Any = epsilon
        if shares is not None:
            budget = {shift: epsilon * share for shift, share in shares.items()}
        try:
            optimum = wb.design(question, **{**options, "epsilon": budget}, **point).objective
        except (wb.Infeasible, wb.InvalidRequest):
            optimum = math.inf
        if value != optimum:
            difference = abs(value - optimum) / max(1.0, abs(optimum))
            max_difference = max(max_difference, difference)
    return {"pieces": len(formula.pieces), "difference": max_difference}
