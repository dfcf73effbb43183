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
    with_delta = family not in (metric, quantizer)
    free = with_delta and family is not constrained and draw.random() < 0.5
    fixed = (
        round(draw.random() ** 3, 3) if with_delta and not free and draw.random() < 0.7 else None
    )
    found = wb.formula(
        question,
        **options,
        **({"delta": "0..1"} if free else {} if fixed is None else {"delta": fixed}),
    )
    with tempfile.TemporaryDirectory() as folder:
        (path,) = found.save(Path(folder) / "f.json")
        again = wb.check(path)
        assert again.open == found.open == ()
        assert again.to_dict() == found.to_dict()
        assert CHECKER.prove_statement(json.loads(path.read_text())).endswith("without gap.")
    worst = 0.0
    for _ in range(points):
        epsilon = round(draw.uniform(0.06, 4.9), 3)
        delta = round(draw.uniform(0.001, 0.9), 3) if free else fixed
        given = {} if delta is None else {"delta": delta}
        try:
            value = float(sum(found(epsilon, *given.values())) / 2)
        except wb.Infeasible:
            value = math.inf
        try:
            unit = options.get("epsilon")
            here = (
                epsilon
                if unit is None
                else {shift: epsilon * share for shift, share in unit.items()}
            )
            best = wb.design(question, **{**options, "epsilon": here}, **given).objective
        except (wb.Infeasible, wb.InvalidRequest):
            best = math.inf
        if value != best:
            worst = max(worst, abs(value - best) / max(1.0, abs(best)))
    return {"pieces": len(found.pieces), "difference": worst}
