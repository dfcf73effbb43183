"""400 random noise designs, repaired and certified: how many end certified, and at what loss.

n in 5..40, four kinds of shift sets (one, all up to a bound, a few, the two axes of a grid), both costs, every notion
(PDP three times out of five), δ from 0 down to 1e-9, HiGHS and Gurobi (skipped without a licence) on the same requests.
Loss is relative: to the exact optimum of the pattern (proven by exact duality), and to what the solver claims, which
may be out of reach (its tolerances let it break tiny δ's). Solvers run at the integrality tolerance of `wb.design`.
"""

from __future__ import annotations

import random
import time
from fractions import Fraction
from pathlib import Path
from typing import Any

import pandas as pd

from workbench.errors import NotCertified, WorkbenchError
from workbench.families.modulo.family import FAMILY
from workbench.families.modulo.problem import ModuloProblem
from workbench.families.modulo.repair import certify_noise
from workbench.families.modulo.request import ModuloRequest
from workbench.mechanisms.additive import AdditiveNoise
from workbench.pipeline.routes import Programs
from workbench.privacy.audit import audit
from workbench.questions.modulo_noise import ModuloNoise
from workbench.solvers.backend import Options, get_backend

TITLE = "400 random noise designs, certified"
KINDS = ("one shift", "all up to a bound", "a few shifts", "two axes")
EPSILONS = ("0.3", "0.5", "1", "1.5", "2", "3")
DELTAS = ("0", "1e-9", "1e-8", "1e-6", "1e-4", "0.01", "0.1", "0.3")
NOTIONS = ("pdp", "pdp", "pdp", "dp", "pure")


def question(kind: str, rng: random.Random) -> ModuloNoise:
    """A random question of a kind."""
    n, directed = rng.randint(5, 40), rng.random() < 0.5
    if kind == "two axes":
        sizes = (rng.randint(2, 5), rng.randint(3, 8))
        return ModuloNoise(sizes=sizes, shifts=[(1, 0), (0, 1)], directed=directed)
    if kind == "one shift":
        return ModuloNoise(n=n, shifts=[rng.randint(1, min(n, 6))], directed=directed)
    if kind == "all up to a bound":
        return ModuloNoise(n=n, max_shift=rng.randint(1, 4), directed=directed)
    shifts = rng.sample(range(1, n // 2 + 2), min(n // 2 + 1, rng.randint(2, 3)))
    return ModuloNoise(n=n, shifts=shifts, directed=directed)


def study(count: int = 400, seed: int = 20261120, time_limit: float = 10.0) -> pd.DataFrame:
    """One row per design: alternately by HiGHS and Gurobi where both are usable."""
    solvers = [
        name
        for name in ("highs", "gurobi")
        if get_backend(name).is_installed() and get_backend(name).licence().usable
    ]
    rng = random.Random(seed)
    rows: list[dict[str, Any]] = []
    for number in range(count):
        kind = KINDS[number % len(KINDS)]
        drawn = question(kind, rng)
        notion, loss = rng.choice(NOTIONS), rng.choice(("error-rate", "squared"))
        epsilon = rng.choice(EPSILONS)
        delta = "0" if notion == "pure" else rng.choice(DELTAS)
        solver = solvers[(number // len(KINDS)) % len(solvers)]
        row: dict[str, Any] = {
            "question": repr(drawn),
            "kind": kind,
            "notion": notion,
            "loss": loss,
            "epsilon": epsilon,
            "delta": delta,
            "solver": solver,
        }
        rows.append(row | design(drawn, notion, loss, epsilon, delta, solver, time_limit))
    return pd.DataFrame(rows)


def design(
    question: ModuloNoise,
    notion: str,
    loss: str,
    epsilon: str,
    delta: str,
    solver: str,
    time_limit: float,
) -> dict[str, Any]:
    """Solve, certify, audit once more; what came of it."""
    row: dict[str, Any] = dict.fromkeys(
        ("raw_private", "origin", "loss_optimum", "loss_claim", "seconds")
    )
    options = Options(time_limit=time_limit)
    try:
        request = FAMILY.make_request(
            question,
            notion=notion,
            loss=loss,
            epsilon=epsilon,
            delta=delta,
            solver=solver,
            options=options,
        )
        assert isinstance(request, ModuloRequest)
        solution = ModuloProblem(request).solve_program(Programs(solver))
    except WorkbenchError as error:
        return {"outcome": f"unsolved ({type(error).__name__})"} | row
    if solution.x is None or solution.objective is None:
        return {"outcome": f"unsolved ({solution.termination})"} | row
    budgets, allowed = question.budgets(epsilon), Fraction(delta)
    raw = AdditiveNoise.from_pmf(question, solution["f"].clip(min=0.0))
    row["raw_private"] = audit(raw, budgets).meets(notion, budgets, allowed)
    begin = time.process_time()
    try:
        certified = certify_noise(request, solution)
    except NotCertified:
        return {"outcome": "refused"} | row
    row |= {"seconds": time.process_time() - begin, "origin": certified.origin}
    private = audit(certified.mechanism, budgets).meets(notion, budgets, allowed)
    if certified.lower_bound:
        row["loss_optimum"] = float(
            (certified.objective - certified.lower_bound) / certified.lower_bound
        )
    claim = Fraction(solution.objective)
    row["loss_claim"] = (
        float((certified.objective - claim) / claim) if claim else float(certified.objective)
    )
    return {"outcome": "certified" if private else "NOT PRIVATE"} | row


def run() -> pd.DataFrame:
    """The study, summarised per solver and notion; every design goes to results/certification/."""
    frame = study()
    folder = Path("results/certification")
    folder.mkdir(parents=True, exist_ok=True)
    digits = frame.drop(columns="seconds")  # times do not repeat
    digits.to_csv(folder / "designs.csv", index=False, float_format="%.3g", lineterminator="\n")
    rows = []
    for (solver, notion), part in frame.groupby(["solver", "notion"]):
        done = part[part.outcome == "certified"]
        rows.append(
            {
                "solver": solver,
                "notion": notion,
                "designs": len(part),
                "unsolved": int(part.outcome.str.startswith("unsolved").sum()),
                "raw private": int((part.raw_private == True).sum()),  # noqa: E712
                "certified": len(done),
                "refused": int((part.outcome == "refused").sum()),
                "not private": int((part.outcome == "NOT PRIVATE").sum()),
                "exact optimum": int(done.origin.str.startswith("exact").sum()),
                "worst loss to the exact optimum": float(done.loss_optimum.max()),
                "worst loss to the claim": float(done.loss_claim.max()),
                "claims out of reach by 1e-12": int((done.loss_claim > 1e-12).sum()),
                "ms a repair (mean)": float(1e3 * done.seconds.mean()),
            }
        )
    table = pd.DataFrame(rows)
    stored = table.drop(columns="ms a repair (mean)")
    stored.to_csv(folder / "summary.csv", index=False, float_format="%.3g", lineterminator="\n")
    return table
