"""Count how many of 400 random noise designs can be repaired and certified, and at which loss.

The designs have n in 5..40 and four kinds of shift sets (one shift, all up to a bound, a few, the
two axes of a grid). They use two losses, three notions (PDP three times out of five), and δ = 0 or
1e-9 to 0.3. HiGHS and Gurobi (skipped without a licence) take turns, at the integrality tolerance
of `wb.design`.

The table shows by which share the loss of a certified design exceeds two numbers. One is the exact
optimum of its pattern, which exact duality proves. The other is the loss that the solver reported
("the claim"). Possibly no private noise reaches it, because solvers violate a tiny δ by their
tolerances.
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
LOSSES = ("error-rate", "squared")
# A claim is out of reach if the loss of the certified design is larger by more than this share.
_OUT_OF_REACH_LOSS = 1e-12
_RUNTIME_COLUMN = "ms a repair (mean)"  # Runtimes are not stored, because they do not repeat.


def draw_question(kind: str, rng: random.Random) -> ModuloNoise:
    """Draw a random question.

    Args:
        kind: one of KINDS.
        rng: source of randomness.
    """
    n = rng.randint(5, 40)
    directed = rng.random() < 0.5
    if kind == "two axes":
        sizes = (rng.randint(2, 5), rng.randint(3, 8))
        return ModuloNoise(sizes=sizes, shifts=[(1, 0), (0, 1)], directed=directed)
    if kind == "one shift":
        return ModuloNoise(n=n, shifts=[rng.randint(1, min(n, 6))], directed=directed)
    if kind == "all up to a bound":
        return ModuloNoise(n=n, max_shift=rng.randint(1, 4), directed=directed)
    shifts = rng.sample(range(1, n // 2 + 2), min(n // 2 + 1, rng.randint(2, 3)))
    return ModuloNoise(n=n, shifts=shifts, directed=directed)


def run_study(count: int = 400, seed: int = 20261120, time_limit: float = 10.0) -> pd.DataFrame:
    """Solve and certify random designs, in turns by HiGHS and Gurobi if both are usable.

    Args:
        count: number of designs.
        seed: seed of the random designs.
        time_limit: seconds of a solve.

    Returns:
        One row for each design: question, kind, the options, and the columns of `certify_design`.
    """
    solvers = [
        name
        for name in ("highs", "gurobi")
        if get_backend(name).is_installed() and get_backend(name).licence().usable
    ]
    rng = random.Random(seed)
    rows: list[dict[str, Any]] = []
    for number in range(count):
        kind = KINDS[number % len(KINDS)]
        question = draw_question(kind, rng)
        notion = rng.choice(NOTIONS)
        options = {
            "notion": notion,
            "loss": rng.choice(LOSSES),
            "epsilon": rng.choice(EPSILONS),
            "delta": "0" if notion == "pure" else rng.choice(DELTAS),
            "solver": solvers[(number // len(KINDS)) % len(solvers)],
        }
        row: dict[str, Any] = {"question": repr(question), "kind": kind, **options}
        rows.append(row | certify_design(question, options, time_limit))
    return pd.DataFrame(rows)


def certify_design(
    question: ModuloNoise, options: dict[str, str], time_limit: float
) -> dict[str, Any]:
    """Solve a request, certify its design and audit it once more.

    Args:
        question: the question that is designed for.
        options: notion, loss, epsilon, delta and solver.
        time_limit: seconds of the solve.

    Returns:
        outcome: "certified", "refused", "NOT PRIVATE", or "unsolved" with the reason.
        raw_private: whether the noise of the solver is private without repair.
        origin: how the certified noise was computed.
        loss_optimum, loss_claim: relative difference of its loss from the exact optimum of its
            pattern, and from the loss that the solver reported.
        seconds: CPU seconds of repair and proof.
        Columns that do not exist for an outcome are None.
    """
    row: dict[str, Any] = dict.fromkeys(
        ("raw_private", "origin", "loss_optimum", "loss_claim", "seconds")
    )
    try:
        request = FAMILY.make_request(question, **options, options=Options(time_limit=time_limit))
        assert isinstance(request, ModuloRequest)
        solution = ModuloProblem(request).solve_program(Programs(options["solver"]))
    except WorkbenchError as error:
        return {"outcome": f"unsolved ({type(error).__name__})"} | row
    if solution.x is None or solution.objective is None:
        return {"outcome": f"unsolved ({solution.termination})"} | row
    notion = options["notion"]
    budgets = question.budgets(options["epsilon"])
    delta = Fraction(options["delta"])
    raw_noise = AdditiveNoise.from_pmf(question, solution["f"].clip(min=0.0))
    row["raw_private"] = audit(raw_noise, budgets).meets(notion, budgets, delta)
    begin = time.process_time()
    try:
        certified_noise = certify_noise(request, solution)
    except NotCertified:
        return {"outcome": "refused"} | row
    row["seconds"] = time.process_time() - begin
    row["origin"] = certified_noise.origin
    is_private = audit(certified_noise.mechanism, budgets).meets(notion, budgets, delta)
    loss = certified_noise.objective
    lower_bound = certified_noise.lower_bound
    if lower_bound:
        row["loss_optimum"] = float((loss - lower_bound) / lower_bound)
    claim = Fraction(solution.objective)
    row["loss_claim"] = float((loss - claim) / claim) if claim else float(loss)
    return {"outcome": "certified" if is_private else "NOT PRIVATE"} | row


def run_certify_benchmark() -> pd.DataFrame:
    """Run the study, store every design in results/certification/, and return the summary."""
    designs = run_study()
    folder = Path("results/certification")
    folder.mkdir(parents=True, exist_ok=True)
    _store_table(designs.drop(columns="seconds"), folder / "designs.csv")
    rows = []
    for (solver, notion), part in designs.groupby(["solver", "notion"]):
        rows.append({"solver": solver, "notion": notion} | _summarise_designs(part))
    summary = pd.DataFrame(rows)
    _store_table(summary.drop(columns=_RUNTIME_COLUMN), folder / "summary.csv")
    return summary


def _store_table(table: pd.DataFrame, path: Path) -> None:
    """Write a table as CSV with numbers of three digits."""
    table.to_csv(path, index=False, float_format="%.3g", lineterminator="\n")


def _summarise_designs(designs: pd.DataFrame) -> dict[str, Any]:
    """Return a row about the designs of one solver and notion."""
    certified_designs = designs[designs.outcome == "certified"]
    claim_losses = certified_designs.loss_claim
    # `raw_private` is None for an unsolved design, which `== True` does not count.
    return {
        "designs": len(designs),
        "unsolved": int(designs.outcome.str.startswith("unsolved").sum()),
        "raw private": int((designs.raw_private == True).sum()),  # noqa: E712
        "certified": len(certified_designs),
        "refused": int((designs.outcome == "refused").sum()),
        "not private": int((designs.outcome == "NOT PRIVATE").sum()),
        "exact optimum": int(certified_designs.origin.str.startswith("exact").sum()),
        "worst loss to the exact optimum": float(certified_designs.loss_optimum.max()),
        "worst loss to the claim": float(claim_losses.max()),
        "claims out of reach by 1e-12": int((claim_losses > _OUT_OF_REACH_LOSS).sum()),
        _RUNTIME_COLUMN: float(1e3 * certified_designs.seconds.mean()),
    }
