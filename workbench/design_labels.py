"""Designing label randomizers: the best bins, the channel LP and the unbiased randomizer, each judged and audited.

| method   | what is optimised                                                    | how                            |
|----------|----------------------------------------------------------------------|--------------------------------|
| bins     | every ε-DP randomizer with real outputs (Theorem 5)                  | `models.oracles.bins`, exact   |
| printed  | the same, Algorithm 2 as printed, O(k³)                              | `models.oracles.bins`          |
| lp       | every channel onto given outputs; neighbours, δ, metric, constraints | `models.channel`, any solver   |
| unbiased | every unbiased ε-DP randomizer with real outputs, squared loss       | `models.unbiased`, columns     |
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from workbench import rooms

# isort: split
from models import unbiased
from models.channel import ChannelModel, consecutive
from models.losses import Loss, loss_named
from models.oracles.bins import BIN_LOSSES, Bins, optimal_bins, printed_bins
from solvers.backend import Options, backend, solve
from solvers.solution import Solution, Termination
from workbench.designing import Design, OracleVerdict
from workbench.errors import Infeasible, InvalidRequest, NotCertified, NotProven
from workbench.mechanisms.channel import Channel
from workbench.mechanisms.label_channel import LabelChannel, extreme_pairs
from workbench.mechanisms.labels import Labels
from workbench.mechanisms.randomized_response import RandomizedResponse, odds_below, on_bins, with_prior
from workbench.numbers import Real, positive, probability
from workbench.privacy.audit import Privacy, audit_channel
from workbench.privacy.certificate import Certificate
from workbench.privacy.certify import certify_channel
from workbench.privacy.relation import ChannelPairs
from workbench.unbiased_vertex import mixture

__all__ = ["METHODS", "LabelDesign", "best_bins", "design", "validate"]

METHODS = ("bins", "printed", "lp", "unbiased")
NOTIONS = ("pure", "dp", "metric")
_LARGE = 10_000  # cells from which HiGHS is faster by interior point with crossover than by simplex
_JUDGED = 128  # labels up to which the printed algorithm judges the fast one
_USED = 1e-9  # an output of less mass than this, for every label, is not in use
_GAP = 1e-8  # of the column generation
_CERTIFIED = 10_000  # pairs of masses up to which an LP's channel is repaired exactly and certified (seconds)


@dataclass(frozen=True)
class LabelDesign(Design):
    """A designed label randomizer: a `Design` whose mechanism is a RandomizedResponse or a LabelChannel.

    solution is None for the methods bins and printed, which need no solver.
    """

    @property
    def status(self) -> str:
        """How the search stopped."""
        return "optimal" if self.solution is None else str(self.solution.termination)

    @property
    def bins(self) -> list[dict[str, float]] | None:
        """lower, upper (first and last label) and value of every bin; None when the mechanism has no bins."""
        return self.mechanism.bins() if isinstance(self.mechanism, RandomizedResponse) else None

    @property
    def d(self) -> int:
        """How many outputs are in use."""
        if isinstance(self.mechanism, RandomizedResponse):
            return int(self.mechanism.outputs.size)
        return int((self.mechanism.matrix.max(axis=0) > _USED).sum())

    def to_dict(self) -> dict[str, Any]:
        """JSON-ready: the keys of `workbench design labels --json`."""
        r = self.request
        made: dict[str, Any] = {
            "objective": self.objective, "bound": self.bound, "gap": self.gap, "status": self.status,
            "method": r["method"], "loss": r["loss"], "epsilon": float(r["asked"]), "delta": float(r["delta"]),
            "notion": r["notion"], "neighbours": r["neighbours"], "labels": self.question.k, "d": self.d,
            "bins": self.bins,
            "exact": {"epsilon": _finite(self.privacy.pure_epsilon)}, "private": self.private,
            "certified": self.certificate is not None, "oracle": self.oracle.to_dict(), "words": list(self.words),
        }  # fmt: skip
        if self.privacy.epsilon is not None and r["notion"] == "dp":
            made["exact"]["delta"] = self.privacy.dp_delta.upper
        if self.solution is not None:
            made |= {"solver": self.solution.solver, "version": self.solution.version}
            made["outputs"] = self.mechanism.outputs.tolist()
            made["channel"] = self.mechanism.matrix.tolist()
        return made

    def __str__(self) -> str:
        r, law = self.to_dict(), self.oracle
        judged = law.proof if law.value is None else f"{law.name} {law.value:.9g} ({law.kind}), agrees: {law.agrees}"
        lines = [
            f"{self.question!r}: least {r['loss']} loss {self.objective:.9g}, bound {r['bound']:.9g}, by {r['method']}",
            f"  asked    {r['notion']}, epsilon = {r['epsilon']:g}, delta = {r['delta']:g}, {r['neighbours']} pairs",
            f"  exact    pure epsilon {r['exact']['epsilon']}",
            f"  outputs  {self.d} in use",
            f"  oracle   {judged}",
        ]
        return "\n".join(lines + [f"  note     {sentence}" for sentence in self.words])


def _finite(value: float) -> float | str:
    return "inf" if math.isinf(value) else value


def best_bins(labels: Labels, epsilon: Real, loss: str | Loss = "squared") -> RandomizedResponse:
    """The best RR-on-Bins for labels with their prior, exact. Raises InvalidRequest."""
    with rooms.speaking_our_errors():
        bins = optimal_bins(labels.values, labels.prior, float(positive(epsilon, "epsilon")), loss)
    return on_bins(labels, bins.starts, bins.values, epsilon)


def design(
    question: Labels,
    *,
    epsilon: Real,
    loss: str | Loss = "squared",
    method: str = "bins",
    outputs: ArrayLike | None = None,
    neighbours: str | Iterable[tuple[int, int]] = "all",
    notion: str = "pure",
    delta: Real = 0,
    constraints: Sequence[str] = (),
    solver: str = "highs",
    time_limit: float | None = None,
    options: Options | None = None,
) -> LabelDesign:
    """The least-loss private label randomizer.

    Args:
        question: labels and prior.
        epsilon: in (0, 30]; with notion "metric" the budget per unit of |y - y'|.
        loss: a name of `models.losses.LOSSES`.
        method: see the module; the options below are for "lp" only (solver and options also for "unbiased").
        outputs: (m,) increasing published values; the labels by default.
        neighbours: "all" pairs of labels, "consecutive" ones (counts), or pairs of label positions.
        notion: "pure", "dp" with delta, or "metric".
        constraints: names of `models.channel.CONSTRAINTS`.
        solver: of `workbench solvers`; HiGHS by default takes the interior point for large programs.
        time_limit: seconds of one solve; options: every solver option at once instead.

    Raises:
        InvalidRequest, Infeasible, SolverUnavailable, LicenceLimit, NotProven: see `workbench.errors`.
    """
    named, request, options = validate(
        question, epsilon=epsilon, loss=loss, method=method, outputs=outputs, neighbours=neighbours, notion=notion,
        delta=delta, constraints=constraints, solver=solver, time_limit=time_limit, options=options,
    )  # fmt: skip
    if method in ("bins", "printed"):
        return _by_bins(question, named, request)
    if method == "unbiased":
        return _unbiased(question, named, request, options)
    return _by_lp(question, named, request, outputs, neighbours, tuple(constraints), options)


def validate(
    question: Labels,
    *,
    epsilon: Real,
    loss: str | Loss = "squared",
    method: str = "bins",
    outputs: ArrayLike | None = None,
    neighbours: str | Iterable[tuple[int, int]] = "all",
    notion: str = "pure",
    delta: Real = 0,
    constraints: Sequence[str] = (),
    solver: str = "highs",
    time_limit: float | None = None,
    options: Options | None = None,
) -> tuple[Loss, dict[str, Any], Options | None]:
    """Refuse a request that makes no sense, without solving anything; arguments as `design`.

    Returns the loss, the request in exact numbers and the solver's options. Raises InvalidRequest.
    """
    if not isinstance(question, Labels):
        InvalidRequest.must("question", "a Labels", repr(question))
    if method not in METHODS:
        InvalidRequest.must("method", f"one of {', '.join(METHODS)}", repr(method))
    if notion not in NOTIONS:
        InvalidRequest.must("notion", f"one of {', '.join(NOTIONS)}", repr(notion))
    budget, spent = positive(epsilon, "epsilon"), probability(delta, "delta")
    if budget > 30:
        InvalidRequest.must("epsilon", "at most 30 (e^epsilon is a coefficient of the program)", epsilon)
    if spent and notion != "dp":
        InvalidRequest.must("delta", f"0 when notion is {notion}", delta)
    with rooms.speaking_our_errors():
        named = loss_named(loss)
        named(1.0, question.values[:1])
        backend(solver)
    if time_limit is not None and not (isinstance(time_limit, (int, float)) and 0 < time_limit < math.inf):
        InvalidRequest.must("time_limit", "a finite number of seconds > 0", time_limit)
    if time_limit is not None and options is not None:
        raise InvalidRequest("options must be given alone, without time_limit.")
    if time_limit is not None:
        options = Options(time_limit=time_limit)
    plain = outputs is None and isinstance(neighbours, str) and neighbours == "all" and not constraints
    if method != "lp" and not (plain and notion == "pure"):
        InvalidRequest.must("method", "lp for other outputs, neighbours, notions and constraints", repr(method))
    if method == "printed" and question.k > 4000:
        InvalidRequest.must("method", "bins for more than 4000 labels (printed takes O(k³))", "'printed'")
    if method == "unbiased" and named.kind != "squared":
        InvalidRequest.must("loss", "squared for the unbiased randomizer", repr(named.name))
    if method == "unbiased" and question.k < 2:
        InvalidRequest.must("labels", "at least two for the unbiased randomizer", question.k)
    if method == "lp" and notion == "metric":
        largest = max(_groups(question, _pairs(neighbours, notion, question.k), notion, budget)[1], default=0.0)
        if largest > 30:
            InvalidRequest.must("epsilon", "at most 30 for every pair of neighbours", largest)
    request: dict[str, Any] = {
        "asked": budget, "epsilon": budget, "delta": spent, "notion": notion, "loss": named.name, "method": method,
        "neighbours": neighbours if isinstance(neighbours, str) else "listed", "solver": solver,
    }  # fmt: skip
    return named, request, options


# RR-on-Bins.


def _by_bins(question: Labels, loss: Loss, request: dict[str, Any]) -> LabelDesign:
    epsilon = request["asked"]
    search = optimal_bins if request["method"] == "bins" else printed_bins
    with rooms.speaking_our_errors():
        found = search(question.values, question.prior, float(epsilon), loss)
    mechanism = on_bins(question, found.starts, found.values, epsilon)
    verdict = OracleVerdict.none(f"the printed algorithm judges up to {_JUDGED} labels only.")
    if question.k <= _JUDGED:
        other: Bins = printed_bins(question.values, question.prior, float(epsilon), loss)
        proof = "Algorithm 2 as printed: every partition into intervals, by dynamic programming; Theorem 5."
        verdict = OracleVerdict.judge(found.objective, "Algorithm 2", other.objective, "optimum", proof)
    privacy = _audit(mechanism.audit_rows, request, None)
    words = _missed(privacy, request)
    return LabelDesign(question, request, mechanism, found.objective, found.bound, privacy, verdict, None, words)  # type: ignore[arg-type]


# The channel LP.


def _by_lp(
    question: Labels,
    loss: Loss,
    request: dict[str, Any],
    outputs: ArrayLike | None,
    neighbours: str | Iterable[tuple[int, int]],
    constraints: tuple[str, ...],
    options: Options | None,
) -> LabelDesign:
    epsilon, notion, k = request["asked"], request["notion"], question.k
    grid = question.values if outputs is None else Labels(outputs).values
    pairs = _pairs(neighbours, notion, k)
    groups, epsilons = _groups(question, pairs, notion, epsilon)
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
        _refuse(solution, constraints)
    matrix = np.maximum(solution["M"], 0.0)
    mechanism = LabelChannel(question, grid, Channel.from_rows(matrix))
    budgets = None if notion != "metric" else _exact_budgets(question, epsilon)
    claimed = solution.objective
    assert claimed is not None
    raw, objective = mechanism, claimed
    certificate = _certified(mechanism, request, pairs, budgets, unbiased="unbiased" in constraints)
    if certificate is not None:
        assert isinstance(certificate.mechanism, ChannelPairs)
        mechanism = LabelChannel(question, grid, certificate.mechanism.channel)
        objective = mechanism.loss(loss)
    privacy = _audit(mechanism.channel, request, pairs, budgets)
    verdict = _judge_lp(question, loss, request, outputs, constraints, claimed)
    words = _missed(privacy, request)
    if certificate is not None and constraints and not set(constraints) <= {"unbiased"}:
        words += ("Repair keeps these constraints to rounding only: " + ", ".join(constraints) + ".",)
    made = LabelDesign(
        question, request | {"epsilon": budgets or epsilon}, mechanism, objective, solution.bound, privacy, verdict,
        solution, words, certificate, raw if certificate is not None else None, "repair",
    )  # fmt: skip
    return _proven(made)


def _pairs(neighbours: str | Iterable[tuple[int, int]], notion: str, k: int) -> tuple[tuple[int, int], ...] | None:
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


def _groups(
    question: Labels, pairs: tuple[tuple[int, int], ...] | None, notion: str, epsilon: Fraction
) -> tuple[tuple[int, ...], list[float]]:
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


# The unbiased randomizer.


def _unbiased(question: Labels, loss: Loss, request: dict[str, Any], options: Options | None) -> LabelDesign:
    y, p, epsilon = question.values, question.prior, request["asked"]
    odds, _ = odds_below(epsilon)
    q = float(odds) - 1
    # A zero prior would leave the least outputs of those labels open; a speck of mass settles them.
    p = np.maximum(p, 1e-12)
    p = p / p.sum()
    rays, bound = unbiased.start(y, q), -math.inf
    unit = max(optimal_bins(y, p, float(epsilon)).objective, 1e-9 * float(np.ptp(y)) ** 2)
    solution: Solution | None = None
    objective = math.inf
    for _ in range(40 + 12 * question.k):
        with rooms.speaking_our_errors():
            solution = solve(unbiased.master(y, p, q, rays, unit), solver=request["solver"], options=options)
        if solution.x is None or solution.row_dual is None or solution.objective is None:
            _refuse(solution, ("unbiased",))
        assert solution.x is not None and solution.row_dual is not None and solution.objective is not None  # noqa: PT018
        objective = solution.objective * unit
        v, u = unbiased.dual_values(y, solution.row_dual, unit)
        more, missing = unbiased.price(y, p, q, v, u)
        bound = max(bound, float(v.sum()) - missing)
        if objective - bound <= _GAP * max(objective, 1e-300):
            break
        reduced = solution.reduced_cost if solution.reduced_cost is not None else np.zeros(solution.x.size)
        order = np.lexsort((reduced, -solution.x))  # keep what is used, then what was nearly used
        rays = rays.keep(order[: 12 * question.k]).plus(more)
    assert solution is not None and solution.x is not None  # noqa: PT018
    channel, exact = mixture(y, odds, rays, solution.x)
    mechanism = LabelChannel(question, *channel)
    privacy = _audit(mechanism.channel, request, None)
    words = list(_missed(privacy, request))
    bias = float(np.abs(mechanism.means() - y).max())
    words.append(
        "Every mass is an exact rational, with E[o|y] = y exactly."
        if exact
        else f"The masses are the solver's floats; the largest bias |E[o|y] - y| is {bias:.2g}."
    )
    reason = "no closed form is known; the bound is the column generation's own (pricing over all real outputs)."
    reached = mechanism.loss(loss)
    made = LabelDesign(
        question, request, mechanism, reached, min(bound, reached), privacy, OracleVerdict.none(reason), solution,
        tuple(words),
    )  # fmt: skip
    if objective - bound > 1e-6 * max(objective, 1e-300):
        raise NotProven(
            f"The column generation stopped with the optimum between {bound:.9g} and {reached:.9g}.",
            incumbent=reached, bound=bound, design=made,
        )  # fmt: skip
    return made


# What all methods share.


def _certified(
    mechanism: LabelChannel,
    request: dict[str, Any],
    pairs: tuple[tuple[int, int], ...] | None,
    budgets: dict[tuple[int, int], Fraction] | None,
    *,
    unbiased: bool,
) -> Certificate | None:
    """The channel repaired and certified; None where that is too large for an exact repair or cannot be done."""
    count = len(pairs) if pairs is not None else mechanism.labels.k * (mechanism.labels.k - 1) // 2
    if not count or count * mechanism.outputs.size > _CERTIFIED:
        return None
    exact_values = [Fraction(value) for value in mechanism.outputs.tolist()]
    exact_labels = [Fraction(value) for value in mechanism.labels.values.tolist()]
    try:
        return certify_channel(
            mechanism.channel, pairs or "all", notion=request["notion"], epsilon=budgets or request["asked"],
            delta=request["delta"], outputs=exact_values if unbiased else None,
            unbiased_for=exact_labels if unbiased else None,
        )  # fmt: skip
    except NotCertified:
        return None


def _audit(
    channel: Channel,
    request: dict[str, Any],
    pairs: tuple[tuple[int, int], ...] | None,
    budgets: dict[tuple[int, int], Fraction] | None = None,
) -> Privacy:
    """The exact audit of the mechanism as returned; for all pairs and pure ε the extreme pairs of rows suffice."""
    if len(channel.rows) == 1:
        channel = Channel((channel.rows[0], channel.rows[0]))
        pairs = ((0, 1),)
    return audit_channel(channel, pairs or extreme_pairs(channel), budgets or request["asked"])


def _missed(privacy: Privacy, request: dict[str, Any]) -> tuple[str, ...]:
    budgets = privacy.budgets if request["notion"] == "metric" else request["asked"]
    if privacy.meets(request["notion"], budgets, request["delta"]):
        return ()
    return (privacy.verdict(request["notion"], budgets, request["delta"], subject="The solver's channel"),)


def _refuse(solution: Solution, constraints: tuple[str, ...]) -> None:
    said = f"{solution.solver} says {solution.raw_status!r}"
    if solution.termination is Termination.INFEASIBLE:
        what = f"the constraints {', '.join(constraints)} on these outputs" if constraints else "this request"
        raise Infeasible(f"No channel meets {what} ({said}).")
    raise NotProven(f"{said} and returned no channel.", bound=solution.bound)


def _proven(made: LabelDesign) -> LabelDesign:
    solution = made.solution
    if solution.termination in (Termination.OPTIMAL, Termination.GAP_LIMIT):
        return made
    bound = "unknown" if made.bound is None else f"{made.bound:.9g}"
    raise NotProven(
        f"{solution.solver} stopped with {solution.raw_status!r} before proving an optimum: incumbent "
        f"{made.objective:.9g}, bound {bound}.",
        incumbent=made.objective, bound=made.bound, design=made,
    )  # fmt: skip
