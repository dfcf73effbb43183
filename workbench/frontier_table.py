"""Which mechanism for which budget: every mechanism of the workbench that fits a task, with its error at (ε, δ, bits).

Only rows of one `group` may be compared: the same task, the same guarantee, the same measure of error. `best` marks the
least error of a group at a budget among those that fit its bits. `bound` is of the whole group at a budget: what no
mechanism of it goes below, whatever its outputs; empty where that is not proven (a bound of one family is left out).
`gap` is the distance to it.

    task      question                                            groups
    count     publish a count 0..n, neighbours differ by at most  "(ε, δ)-DP" and "(ε, δ)-PDP", probability of a wrong
              max_shift                                           answer, uniform answers
    value     publish x in [-1, 1] without bias, private against  "unbiased, ε-LDP": mean absolute error, uniform x;
              whoever sees the message, for every two inputs      δ is not used
    labels    publish a label 0..20, every two labels neighbours  "(ε, δ)-DP": squared loss, uniform prior; "unbiased"

Bits are log2 of the number of outputs in use, for DQL the exact mean length of its variable-length code. DQL is private
in proportion to |x - x'|, at most 2: its ε per unit is half the budget, and it is the decoder's that counts.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from fractions import Fraction
from typing import Any

from workbench import rooms

# isort: split
from models.losses import loss_named
from models.quantizer import smallest_reach
from workbench.design_labels import design as design_labels
from workbench.design_noise import NoiseDesigner, validate
from workbench.design_quantizer import design as design_quantizer
from workbench.errors import InvalidRequest
from workbench.frontier import Plan, Row, Task, design_row
from workbench.frontier_baselines import SCANNED, Scan, data_independent_error
from workbench.frontier_labels import baseline_loss, rivals
from workbench.mechanisms.curved import poisson_binomial
from workbench.mechanisms.dyadic_bits import UNIFORM, mean_bits
from workbench.mechanisms.dyadic_law import levels as dql_levels
from workbench.mechanisms.labels import Labels
from workbench.mechanisms.modulo import ModuloNoise
from workbench.mechanisms.quantization import Quantization
from workbench.quantizer_limit import mae_limit
from workbench.quantizer_published import best_rqm

__all__ = ["TASKS", "budget_table", "plan"]

MOST_LEVELS = 16  # outputs of a designed quantizer; more bits than 4 are left unused
REACH = 20  # of a designed quantizer's outputs, in least reaches: the MAE falls slowly as they go to infinity
_LABELS = (0, 20)

Budget = tuple[Fraction, Fraction]


def plan(
    epsilons: Sequence[Fraction],
    deltas: Sequence[Fraction],
    bits: Sequence[Fraction],
    *,
    tasks: Sequence[str] = ("count", "value", "labels"),
    n: int = 8,
    max_shift: int = 1,
) -> Plan:
    """The plan of the table; n and max_shift are of the count. Raises InvalidRequest."""
    question = ModuloNoise(n=n, max_shift=max_shift)
    if n > 60:
        InvalidRequest.must("n", "at most 60", n)
    for epsilon in epsilons:
        for delta in deltas:
            validate(question, epsilon=epsilon, delta=delta, notion="dp")
    for size in bits:
        if not 1 <= size <= 64:
            InvalidRequest.must("bits", "in 1..64", f"{float(size):g}")
    made: list[Task] = []
    for name in tasks:
        if name not in TASKS:
            InvalidRequest.must("task", f"one of {', '.join(TASKS)}", repr(name))
        if name == "value":
            made += [_task(value_rows, epsilon, bits) for epsilon in epsilons]
        elif name == "labels":
            made += [_task(label_rows, epsilon, delta) for epsilon in epsilons for delta in deltas]
        else:
            made += [_task(count_rows, question, epsilon, delta) for epsilon in epsilons for delta in deltas]
    return Plan("table", "Which mechanism for which budget", made, lambda table: {})


def _task(rows: Callable[..., Iterable[Row]], *arguments: Any) -> Task:
    return lambda: list(rows(*arguments))


def _row(
    task: str, group: str, mechanism: str, epsilon: Fraction, delta: Fraction, needs: float | None, **more: Any
) -> Row:
    return {"curve": "budget", "task": task, "group": group, "mechanism": mechanism, "epsilon": float(epsilon),
            "delta": float(delta), "needs_bits": needs, "note": "", **more}  # fmt: skip


# Counts.


def count_rows(question: ModuloNoise, epsilon: Fraction, delta: Fraction) -> Iterable[Row]:
    """Noise modulo n + 1, clamped laws, and the best channel of all, at one (ε, δ)."""
    n, size = question.order - 1, math.log2(question.order)
    distances = [shift[0] for shift in question.shifts]
    for notion in ("dp", "pdp"):
        group = f"(ε, δ)-{notion.upper()}, error rate"

        def known(mechanism: str, note: str = "", group: str = group) -> Row:
            return _row("count", group, mechanism, epsilon, delta, size, cost="error-rate", note=note)

        with NoiseDesigner(question, notion=notion, certify=True) as designer:
            row = design_row(
                lambda d=designer: d.design(epsilon, delta),  # type: ignore[misc]
                **known("optimal modulo noise", "also protects answers that wrap around, which counts do not need"),
            )
            yield row | {"bound": None}  # what it proves holds for noise modulo n + 1
        for family in SCANNED:
            scan = Scan(family, n, distances)
            parameter = scan.least(epsilon, delta, notion)
            if parameter is not None:
                error = scan.family.build(n, parameter).error_rate
                yield known({"geometric": "clamped geometric", "gaussian": "clamped discrete Gaussian",
                             "exponential": "exponential mechanism"}[family]) | {"objective": error}  # fmt: skip
        rho = float(data_independent_error(question.order, epsilon, delta, notion))
        yield known("data-independent noise") | {"objective": rho}
        if notion == "dp":
            pairs = [(q, q + s) for s in distances for q in range(n + 1 - s)]
            yield design_row(
                lambda pairs=pairs: design_labels(  # type: ignore[misc]
                    Labels.uniform(0, n), epsilon=epsilon, loss="zero-one", method="lp", neighbours=pairs,
                    notion="dp" if delta else "pure", delta=delta,
                ),
                **known("channel LP", "the optimum over every mechanism with these answers and neighbours"),
            )  # fmt: skip


# Real values.


def value_rows(epsilon: Fraction, bits: Sequence[Fraction]) -> Iterable[Row]:
    """Unbiased mechanisms for x in [-1, 1] at one ε, for every number of bits."""
    group = "unbiased, ε-LDP, mean absolute error"
    zero = Fraction(0)
    with rooms.speaking_our_errors():
        bound = mae_limit(float(epsilon)).lower
    for size in bits:
        outputs = min(MOST_LEVELS, math.floor(2 ** float(size) + 1e-9))

        def known(mechanism: str, needs: float | None, note: str = "", size: Fraction = size) -> Row:
            return _row("value", group, mechanism, epsilon, zero, needs, bits=float(size), cost="mae", note=note)

        for method, name in (("exact", "exact quantizer"), ("mvu", "MVU")):
            note = f"{outputs} outputs within {REACH}x the least reach"
            yield _quantizer(method, outputs, epsilon, known(name, math.log2(outputs), note), bound)
        found = best_rqm(min(outputs, 8), epsilon)
        if found is not None:
            yield known("RQM", math.log2(found.m), f"{found.m} outputs") | {"objective": found.mae(), "bound": bound}
        pbm = poisson_binomial(outputs, epsilon=epsilon)
        note = f"{outputs} outputs; made for sums of many"
        yield known("PBM", math.log2(outputs), note) | {"objective": pbm.mae(), "bound": bound}
        dql = _best_dql(epsilon, size)
        if dql is not None:
            scale, ell, length = dql
            note = f"database ε {2 * scale:.4g}, ℓ = {ell:.4g}; needs shared randomness, bits are a mean"
            yield known("DQL", length, note) | {"objective": 1 / scale, "bound": bound}
        yield known("Laplace", None, "a real number, no bit budget holds it") | {
            "objective": 2 / float(epsilon), "bound": bound,
        }  # fmt: skip


def _quantizer(method: str, outputs: int, epsilon: Fraction, known: Row, bound: float) -> Row:
    made: list[Any] = []

    def make() -> Any:
        question = Quantization(levels=outputs)
        reach = REACH * smallest_reach(float(epsilon), 1.0)
        made.append(design_quantizer(question, epsilon=epsilon, method=method, cost="mae", starts=2, reach=reach))
        return made[0]

    row = design_row(make, **known)
    return row | ({"objective": made[0].mechanism.mae(), "bound": bound} if made else {})


def _best_dql(epsilon: Fraction, bits: Fraction) -> tuple[float, float, float] | None:
    """(database ε per unit, ℓ, mean bits) of the DQL with the least error whose decoder has ε/2 per unit.

    On the curve ℓ ε_db = ε/2 a larger ε_db errs less and takes more bits: a scan, refined by bisection.
    """
    budget, room = float(epsilon) / 2 * (1 - 1e-12), float(bits)

    def length(share: float) -> float:
        return mean_bits(budget * share, dql_levels(1 / share), "gamma", UNIFORM)

    shares = [k / 64 for k in range(1, 64)]
    fits = [share for share in shares if length(share) <= room]
    if not fits:
        return None
    low, high = max(fits), min(max(fits) + 1 / 64, 1 - 1e-9)
    for _ in range(30):
        middle = (low + high) / 2
        low, high = (middle, high) if length(middle) <= room else (low, middle)
    return budget * low, 1 / low, length(low)


# Labels.


def label_rows(epsilon: Fraction, delta: Fraction) -> Iterable[Row]:
    """Label randomizers at one (ε, δ); what is pure also meets every δ."""
    labels, loss = Labels.uniform(*_LABELS), loss_named("squared")
    wanted = [("bins", "RR-on-Bins"), ("unbiased", "unbiased randomizer")] + ([("lp", "channel LP")] if delta else [])
    for method, name in wanted:
        group = "unbiased" if method == "unbiased" else "(ε, δ)-DP"
        used: list[int] = []

        def make(method: str = method, used: list[int] = used) -> Any:
            notion, spent = ("dp", delta) if method == "lp" else ("pure", Fraction(0))
            made = design_labels(labels, epsilon=epsilon, method=method, notion=notion, delta=spent)
            used.append(made.d)
            return made

        note = {"bins": "optimal over all outputs for δ = 0", "lp": "the optimum with labels as outputs"}.get(
            method, ""
        )
        row = design_row(make, **_row("labels", f"{group}, squared loss", name, epsilon, delta, None, cost="squared",
                                      note=note))  # fmt: skip
        if delta:
            row["bound"] = None  # what is proven holds for δ = 0, or for outputs among the labels
        yield row | ({"needs_bits": math.log2(used[0])} if used else {})
    sizes = {"laplace": None, "staircase": None, "exponential": None}
    names = {"laplace": "clipped Laplace", "staircase": "clipped staircase", "exponential": "exponential mechanism"}
    for name in rivals(labels, loss):
        error = baseline_loss(labels, name, epsilon, loss)
        needs = sizes[name] if name in sizes else math.log2(labels.k)
        yield _row("labels", "(ε, δ)-DP, squared loss", names.get(name, name), epsilon, delta, needs, cost="squared",
                   objective=error)  # fmt: skip


TASKS = {"count": count_rows, "value": value_rows, "labels": label_rows}


def budget_table(rows: Iterable[Row], bits: Sequence[Fraction]) -> Any:
    """The rows as a table, one for every number of bits, with `fits`, `gap` and the `best` of every group."""
    import pandas as pd

    spread = [
        row | {"bits": size}
        for row in rows
        for size in ([row["bits"]] if "bits" in row else [float(b) for b in bits])
    ]  # fmt: skip
    keys = ["task", "group", "epsilon", "delta", "bits"]
    columns = [*keys, "mechanism", "objective", "bound", "needs_bits", "note", "error"]
    table = pd.DataFrame(spread).reindex(columns=columns)
    needs = table["needs_bits"].astype(float).fillna(math.inf)
    table["fits"] = needs <= table["bits"] + 1e-9
    table["bound"] = table.groupby(keys)["bound"].transform("max").clip(lower=0.0)  # no error is negative
    table["gap"] = table["objective"] - table["bound"]
    least = table[table["fits"]].groupby(keys)["objective"].transform("min")
    table["best"] = (table["objective"] <= least.reindex(table.index) * (1 + 1e-9)) & table["fits"]
    return table.sort_values([*keys, "objective"], kind="stable").reset_index(drop=True)
