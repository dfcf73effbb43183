"""The best channel from labels to given outputs: the linear program of `models.channel`, judged by RR-on-Bins."""

from __future__ import annotations

from collections.abc import Iterable
from fractions import Fraction
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from workbench import rooms

# isort: split
from models.channel import ChannelModel, consecutive
from models.losses import Loss
from models.oracles.bins import BIN_LOSSES, optimal_bins
from solvers.backend import Options, solve
from workbench.designing import OracleVerdict
from workbench.errors import InvalidRequest
from workbench.labels_certified import audited, certified, check_size, missed, proven, refuse, rows_of
from workbench.labels_designed import LabelDesign
from workbench.mechanisms.channel import Channel
from workbench.mechanisms.label_channel import LabelChannel
from workbench.mechanisms.labels import Labels
from workbench.mechanisms.randomized_response import with_prior

__all__ = ["best_channel", "groups_of", "pairs_of"]

_LARGE = 10_000  # cells from which HiGHS is faster by interior point with crossover than by simplex
_MOST = 2_000_000  # cells of a program that memory and patience hold


def best_channel(
    question: Labels,
    loss: Loss,
    request: dict[str, Any],
    outputs: ArrayLike | None,
    neighbours: str | Iterable[tuple[int, int]],
    constraints: tuple[str, ...],
    options: Options | None,
) -> LabelDesign:
    """The least-loss channel of a request; the arguments are those of `workbench.design_labels.design`, validated.

    Raises InvalidRequest, Infeasible, NotProven, NotCertified.
    """
    epsilon, notion, k = request["asked"], request["notion"], question.k
    grid = question.values if outputs is None else Labels(outputs).values
    pairs = pairs_of(neighbours, notion, k)
    cells = grid.size * max(k, len(pairs or ()))
    if cells > _MOST:
        said = f"{k} labels, {grid.size} outputs and {len(pairs or ())} listed pairs"
        InvalidRequest.must("the channel", f"of at most {_MOST} masses or compared pairs of them", said)
    groups, epsilons = groups_of(question, pairs, notion, epsilon)
    if request["certify"]:
        check_size(k, grid.size, pairs)
    with rooms.speaking_our_errors():
        cost = loss.matrix(grid, question.values)
        model = ChannelModel(
            question.values, grid, question.prior, cost, pairs, groups, notion == "dp", tuple(constraints)
        )
        chosen = options or Options()
        if request["solver"] == "highs" and chosen.algorithm is None and cost.size >= _LARGE:
            chosen = Options(**{**chosen.given(), "algorithm": "interior-point", "native": chosen.native})
        solution = solve(model.program, model.values(epsilons, float(request["delta"])), request["solver"], chosen)
    if solution.x is None:
        refuse(solution, constraints)
    matrix = np.maximum(solution["M"], 0.0)
    mechanism = LabelChannel(question, grid, Channel.from_rows(matrix))
    budgets = None if notion != "metric" else _exact_budgets(question, epsilon)
    claimed = solution.objective
    assert claimed is not None
    raw, objective = mechanism, claimed
    certificate = certified(mechanism, request, pairs, budgets, unbiased="unbiased" in constraints)
    if certificate is not None:
        mechanism = LabelChannel(question, grid, rows_of(certificate))
        objective = mechanism.loss(loss)
    privacy = audited(mechanism.channel, request, pairs, budgets)
    verdict = _judge_lp(question, loss, request, outputs, constraints, claimed)
    words = missed(privacy, request)
    if certificate is not None and constraints and not set(constraints) <= {"unbiased"}:
        words += ("Repair keeps these constraints to rounding only: " + ", ".join(constraints) + ".",)
    stated = request | {"epsilon": budgets or epsilon, "pairs": pairs}
    made = LabelDesign(
        question, stated, mechanism, objective, solution.bound, privacy, verdict,
        solution, words, certificate, raw if certificate is not None else None, "repair",
    )  # fmt: skip
    return proven(made)


def pairs_of(neighbours: str | Iterable[tuple[int, int]], notion: str, k: int) -> tuple[tuple[int, int], ...] | None:
    """Unordered neighbouring positions, or None for the compact all-pairs rows."""
    if notion == "metric":
        if not isinstance(neighbours, str):
            InvalidRequest.must("neighbours", "left out when notion is metric (every pair has its budget)", "pairs")
        return consecutive(k)  # their budgets add up along the line
    if isinstance(neighbours, str):
        if neighbours not in ("all", "consecutive"):
            InvalidRequest.must("neighbours", "all, consecutive or pairs of label positions", repr(neighbours))
        if neighbours == "consecutive":
            return consecutive(k)
        return None if notion == "pure" else tuple(combinations(range(k), 2))
    found = {tuple(sorted(map(int, pair))) for pair in neighbours}
    wrong = [pair for pair in found if len(pair) != 2 or pair[0] == pair[1] or not 0 <= pair[0] <= pair[1] < k]
    if wrong or not found:
        InvalidRequest.must("neighbours", f"pairs of different positions in 0..{k - 1}", wrong[0] if wrong else "none")
    return tuple(sorted((i, j) for i, j in found))


def groups_of(
    question: Labels, pairs: tuple[tuple[int, int], ...] | None, notion: str, epsilon: Fraction
) -> tuple[tuple[int, ...], list[float]]:
    """(the group of every pair, the ε of every group): one for all, or one for each distance of neighbouring labels."""
    if notion != "metric" or pairs is None:
        return (0,) * len(pairs or ()), [float(epsilon)]
    gaps = np.diff(question.values)
    levels = sorted(set(gaps.tolist()))
    return tuple(levels.index(gap) for gap in gaps.tolist()), [float(epsilon) * level for level in levels]


def _exact_budgets(question: Labels, epsilon: Fraction) -> dict[tuple[int, int], Fraction]:
    """ε |y - y'| of consecutive labels, exactly."""
    y = [Fraction(value) for value in question.values.tolist()]
    return {(i, i + 1): epsilon * (y[i + 1] - y[i]) for i in range(question.k - 1)}


def _judge_lp(
    question: Labels,
    loss: Loss,
    request: dict[str, Any],
    outputs: ArrayLike | None,
    constraints: tuple[str, ...],
    objective: float,
) -> OracleVerdict:
    if request["neighbours"] != "all" or request["notion"] != "pure":
        return OracleVerdict.none("no closed form is known for this relation.")
    epsilon = float(request["asked"])
    if loss.kind == "zero-one" and outputs is None and not constraints:
        value = with_prior(question, request["asked"]).loss(loss)
        proof = "RRTop-k with the best k is optimal for the zero-one loss (Ghazi et al. 2021a, Theorem 3)."
        return OracleVerdict.judge(objective, "RRWithPrior", value, "optimum", proof)
    if loss.kind not in BIN_LOSSES:
        return OracleVerdict.none(f"no closed form is known for the loss {loss.name}.")
    value = optimal_bins(question.values, question.prior, epsilon, loss).objective
    exact = loss.kind in ("absolute", "pinball") and outputs is None and not constraints
    reason = "its values are labels, so the grid loses nothing." if exact else "fewer outputs or more constraints."
    proof = f"Theorem 5: RR-on-Bins is optimal over all outputs; {reason}"
    return OracleVerdict.judge(objective, "RR-on-Bins", value, "optimum" if exact else "lower bound", proof)
