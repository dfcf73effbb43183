"""What is proven of a designed channel: a lower bound, its certificate, and the closed form's verdict.

A certificate has the claim, the loss where a file can state it, and what the repair left over. The file holds the loss
where it is a rational one of numbers under a prior (`workbench.privacy.objective`), and the means of numbers. A loss of
one's own and a worst case are recomputed exactly here and written down in the record.

Lower bounds on the loss of every private channel are proven in integers, from multipliers that nobody has to trust.

Every u >= 0 proves, for channels with Σ_o max(0, M[y,o] - E M[y',o]) <= δ along ordered pairs p = (y, y'),

    Σ_y π_y Σ_o M[y,o] ℓ(y,o)
      >=  Σ_y min_o ( π_y ℓ(y,o) + Σ_{p from y} u[p,o] - E Σ_{p to y} u[p,o] ) - δ Σ_p max_o u[p,o]

(Lagrangian duality: Σ_o u[p,o] (M[y,o] - E M[y',o]) <= max_o u[p,o] δ, and a row of M is a distribution.) E is e^ε
rounded up. π is the prior, or any distribution where the worst input counts. All pairs with pure ε have a column t_o
with t <= M <= E t instead, and multipliers a, b >= 0 with Σ_y a >= E Σ_y b: min_o ( π_y ℓ - a + b ). Linear rows
A M <= b of one's own (or = b) with multipliers q <= 0 (or any) add q b, and take A'q from π ℓ.

Along a line no multipliers are needed for pure ε, only λ_y, the share of every input in the bound: what
w = π_y ℓ - λ_y leaves over can be handed from label to label, one unit of it being worth 1/E next door, and one unit
that is missing costs E there. λ proves Σ λ where every output's column ends with nothing missing (`line_bound`).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from fractions import Fraction
from functools import partial
from operator import mul

import numpy as np

from workbench import __version__
from workbench.data.points import format_point
from workbench.errors import NotCertified, NotProven
from workbench.exact.numbers import ZERO, exp_bounds, round_up
from workbench.exact.objects import Record
from workbench.families.channel.extra_rows import ExtraRows
from workbench.families.channel.repair import Edges, Prior, compute_channel_loss
from workbench.families.channel.request import ChannelRequest, ScaledLosses
from workbench.mechanisms.channel import Channel
from workbench.models.oracles.bins import BIN_LOSSES, optimal_bins
from workbench.models.oracles.finite_channel import (
    MAX_EXTREMAL_INPUTS,
    extremal_value,
    has_growing_losses,
    minimax_value,
    post_process_geometric,
    randomized_response_error,
)
from workbench.pipeline.design import OracleVerdict
from workbench.pipeline.loss_tables import Integers, LossTable
from workbench.pipeline.problem import make_certificate
from workbench.pipeline.user_constraints import CONSTRAINTS_NOTE, find_max_violation
from workbench.privacy.audit import audit, provably_satisfies_claim
from workbench.privacy.certificate import Certificate
from workbench.privacy.claim import Claim
from workbench.privacy.repair_channel import repair_rows
from workbench.solvers.arrays import Vector
from workbench.solvers.data import floor_to_bits
from workbench.solvers.solution import Solution, Termination

MULTIPLIER_BITS = 96  # of a multiplier
_RATIO_BITS = 112  # of E
_GAIN_BITS = 160  # Binary digits of e^ε in `gain_of_delta`.
_DELTA_DECIMALS = 30  # of a least δ
_MAX_STOPPED_EXCESS = Fraction(
    1, 10**6
)  # A stopped search that misses a constraint by more has no channel yet.


def round_weights(prior: Prior, weights: Vector) -> list[int]:
    """The prior over 2^BITS, rounded down, or, with None, weights >= 0 as a distribution over it."""
    if prior is not None:
        return [(w.numerator << MULTIPLIER_BITS) // w.denominator for w in prior]
    weights = np.maximum(weights, 0.0)
    shares: list[int] = floor_to_bits(
        weights / max(float(weights.sum()), 1e-300), MULTIPLIER_BITS
    ).tolist()
    shares[int(np.argmax(weights))] -= sum(shares) - (1 << MULTIPLIER_BITS)
    return shares


def weigh_losses(losses: LossTable, shares: Sequence[int]) -> Integers:
    """π ℓ over 2^BITS, rounded down. Shape (k, m)."""
    return np.asarray((losses.values * np.array(shares, dtype=object)[:, None]) // losses.unit)


def _sum_reduced_rows(
    rows: Integers, multipliers: Mapping[str, Vector], edges: Edges
) -> tuple[int, list[int]]:
    """(Σ_y min_o of the rows with the multipliers' terms, max_o u[p,o] of every pair), over 2^BITS."""
    if "ratio" in multipliers:
        rows, u = rows.copy(), floor_to_bits(multipliers["ratio"], MULTIPLIER_BITS)
        above = {epsilon: _round_ratio_up(epsilon) for epsilon in set(edges.epsilons)}
        for (i, j), epsilon, each in zip(edges.pairs or (), edges.epsilons, u, strict=True):
            rows[i] += each
            rows[j] -= -((-each * above[epsilon]) >> _RATIO_BITS)
        return int(rows.min(axis=1).sum()), u.max(axis=1).tolist()
    a, b = (
        floor_to_bits(multipliers["least"], MULTIPLIER_BITS),
        floor_to_bits(multipliers["most"], MULTIPLIER_BITS),
    )
    least, most = a.sum(axis=0) << _RATIO_BITS, b.sum(axis=0) * _round_ratio_up(edges.epsilons[0])
    b = np.where(most > least, b * least // np.maximum(most, 1), b)
    return int((rows - a + b).min(axis=1).sum()), []


def _round_ratio_up(epsilon: Fraction) -> int:
    return exp_bounds(epsilon, _RATIO_BITS)[1]


def bound_least_loss(
    losses: LossTable,
    prior: Prior,
    edges: Edges,
    delta: Fraction | Sequence[Fraction],
    multipliers: Mapping[str, Vector],
    extra: ExtraRows | None = None,
) -> Fraction:
    """A number that the (expected, or with prior None the largest) loss of no private channel is below.

    delta: of every ordered pair of the edges, which may be there under several ε, or one for all. multipliers: as
    `workbench.models.channel.program.ChannelModel.multipliers` has them, and "extra" of such rows; any are right, bad
    ones prove little.
    """
    weights = multipliers["losses"] if prior is None else np.zeros(0)
    rows, added = weigh_losses(losses, round_weights(prior, weights)), 0
    if extra is not None:
        rows, added = extra.apply_multipliers(rows, multipliers["extra"], MULTIPLIER_BITS)
    value, largest = _sum_reduced_rows(rows, multipliers, edges)
    each = delta if isinstance(delta, Sequence) else [delta] * len(largest)
    return Fraction(value + added - sum(map(mul, each, largest)), 1 << MULTIPLIER_BITS)


def bound_gain_of_delta(epsilon: Fraction, delta: Fraction, inputs: int) -> Fraction:
    """Return by how much δ lowers the least loss at most, as a share of the difference of any two losses.

    Raise every mass of an (ε, δ)-channel to max over y' of M[y',o] e^(-ε d(y,y')), d counting steps between
    neighbours. It is (d ε, δ (e^(d ε) - 1)/(e^ε - 1))-private d steps apart, so a row gains at most
    A = (k - 1) δ/(e^ε - 1). What rows lack of S = 1 + A e^ε/(e^ε - 1) goes to one output, after which all ratios hold
    (`repair`): a pure channel that costs at most (S - 1) times the spread of the losses more. Outputs may be any.

    Args:
        epsilon: ε > 0 of neighbours.
        delta: δ of neighbours.
        inputs: k, the number of inputs.

    Returns:
        S - 1, rounded up.
    """
    ratio = exp_bounds(epsilon, _GAIN_BITS)[0]
    below = Fraction(ratio, 1 << _GAIN_BITS)
    return (inputs - 1) * delta * below / (below - 1) ** 2


def bound_least_delta(
    losses: LossTable,
    prior: Prior,
    edges: Edges,
    max_loss: Fraction,
    multipliers: Mapping[str, Vector],
) -> Fraction:
    """A number that δ of no channel is below whose loss is at most max_loss: the same sum with τ ℓ for ℓ and the
    max_loss handed back, over Σ_p max_o u[p,o] where that is more than 1."""
    tau = floor_to_bits(np.maximum(multipliers["losses"], 0.0), MULTIPLIER_BITS).tolist()
    shares = tau if prior is None else [(p.numerator * tau[0]) // p.denominator for p in prior]
    value, largest = _sum_reduced_rows(weigh_losses(losses, shares), multipliers, edges)
    return max(
        ZERO, Fraction(value - max_loss * sum(tau)) / max(1 << MULTIPLIER_BITS, sum(largest))
    )


def bound_loss_on_line(
    losses: LossTable, prior: Sequence[Fraction], epsilon: Fraction, share: Vector
) -> Fraction:
    """Σ λ less what is missing, for pure ε along a line. share: λ (k,) in floats, any.

    What a column needs from outside is gathered where its loss is least, from both ends; an input hands over most of
    what it needs from its outer neighbours. Where something is missing, λ of that input is lowered by it.
    """
    rows, e = weigh_losses(losses, round_weights(prior, share)), _round_ratio_up(epsilon)
    lam = floor_to_bits(np.asarray(share, dtype=float), MULTIPLIER_BITS)
    rows = rows - lam[:, None]
    k, m = rows.shape

    def passed(value: int) -> int:
        return (value << _RATIO_BITS) // e if value >= 0 else -((-value * e) >> _RATIO_BITS) - 1

    pass_on = np.frompyfunc(passed, 1, 1)
    own = losses.values.argmin(axis=0)
    here = rows[own, np.arange(m)]
    for steps in (range(k), range(k - 1, -1, -1)):
        left = np.zeros(m, dtype=object)
        for y in steps:
            inside = own > y if steps.step > 0 else own < y
            here = np.where(own == y, here + left, here)
            left = np.where(inside, pass_on(rows[y] + left), left)
    missing: dict[int, int] = {}
    for o, y in enumerate(own.tolist()):
        missing[y] = max(missing.get(y, 0), -int(here[o]))
    return Fraction(
        int(lam.sum()) - sum(max(0, value) for value in missing.values()), 1 << MULTIPLIER_BITS
    )


def make_channel_certificate(
    request: ChannelRequest, channel: Channel, solution: Solution | None, origin: str
) -> tuple[Certificate, list[str]]:
    """The certificate of a channel, mixed with another where the audit refuses it and its repair is no other, or where
    its means are to be kept; and words. Where δ is minimised it is what the channel has, rounded up.

    Raises NotCertified; NotProven for a solver that was stopped before its channel met the constraints.
    """
    claim, q = request.audited_claim, request.question
    if request.aim.minimise == "delta":
        reached = audit(channel, claim.epsilon).dp_delta
        high = reached.enclosure(160)[1] if reached.b else reached.a
        delta = max(ZERO, Fraction(math.ceil(high * 10**_DELTA_DECIMALS), 10**_DELTA_DECIMALS))
        claim = Claim(claim.notion, claim.epsilon, delta)
    private = partial(provably_satisfies_claim, claim=claim.adapt_to(channel))
    kept = q.numbers if "unbiased" in request.aim.constraints else None
    if request.has_several_bounds or kept is not None:
        channel, _ = repair_rows(channel, private, kept and (kept[1], kept[0]), allow_bias=True)
    elif not private(channel):
        raise NotCertified("The exact audit refuses the repaired channel.")
    record: Record = {
        **request.CERTIFICATE_RECORD,
        "workbench": __version__,
        "loss": request.losses.name,
        "minimise": request.aim.minimise,
        "route": origin,
        "inputs": [*map(format_point, q.inputs)],
        "outputs": [*map(format_point, q.outputs)],
    }
    if q.is_planar:
        record["norm"] = q.norm
        record["expected_loss" if q.prior is not None else "largest_loss"] = round_up(
            compute_channel_loss(channel, request.losses, q.prior)
        )
    if solution is not None:
        record |= {"solver": solution.solver, "solver_version": solution.version}
        claimed = solution.objective
        if claimed is not None and math.isfinite(
            claimed
        ):  # It is infinite while the sums of rows are not 1.
            record["claimed"] = claimed
    loss = None if request.losses.named_loss is None else request.losses.name
    certificate = make_certificate(channel, claim, loss, q.numbers, q.prior, record)
    excess = _compute_extra_violation(request, channel)
    if excess and solution is not None:
        _check_stopped_excess(request, solution, excess)
    words = []
    if excess is None:
        words.append(CONSTRAINTS_NOTE)
    elif excess:
        words.append(
            f"The certified channel misses the extra constraints by {round_up(excess):.3g}, exactly."
        )
    return certificate, words


def _check_stopped_excess(request: ChannelRequest, solution: Solution, excess: Fraction) -> None:
    """Refuse a channel that misses the extra constraints because the solver was stopped before it met them.

    Args:
        request: whose constraints are missed.
        solution: the solver's answer.
        excess: the largest violation of a constraint.

    Raises:
        NotProven: the violation, relative to the largest coefficient, is more than the tolerance of a solver.
    """
    assert request.extra_program is not None
    largest_coefficient = Fraction(float(abs(request.extra_program.template.A).max()))
    is_stopped = solution.termination not in (Termination.OPTIMAL, Termination.GAP_LIMIT)
    if is_stopped and excess > _MAX_STOPPED_EXCESS * largest_coefficient:
        raise NotProven(
            f"{solution.solver} stopped with {solution.raw_status!r} before it had a channel that meets the "
            f"constraints, which it misses by {round_up(excess):.3g}. Give it more time (--time-limit).",
            interrupted=solution.termination is Termination.INTERRUPTED,
        )


def _compute_extra_violation(request: ChannelRequest, channel: Channel) -> Fraction | None:
    """The largest violation of the extra constraints, exact; None where they are not linear in the channel alone."""
    if not request.has_extra_constraints:
        return ZERO
    q = request.question  # columns first, as CVXPY has them
    masses = [channel.rows[j % q.k][j // q.k] for j in range(q.k * q.m)]
    return (
        None if request.extra_program is None else find_max_violation(request.extra_program, masses)
    )


_ClosedForm = tuple[str, float, str, str]  # name, value, kind, proof

_MAX_EXTREMAL_EPSILON = (
    20  # ε up to which the program of the extremal columns is in reach of floats
)
_MAX_MINIMAX_MASSES = 2_500  # inputs times outputs of the minimax program


def judge_by_closed_form(request: ChannelRequest, objective: float) -> OracleVerdict:
    """What is known in closed form about the least error."""
    law = _find_closed_form(request)
    if isinstance(law, str):
        return OracleVerdict.without_formula(law)
    name, value, kind, proof = law
    if request.has_extra_constraints and kind == "upper bound":
        return OracleVerdict.without_formula("the extra constraints leave no closed form.")
    if request.has_extra_constraints:
        kind, proof = (
            "lower bound",
            f"{proof} The extra constraints can only raise the loss above it.",
        )
    return OracleVerdict.judge(
        objective, name, value, kind, proof, scale=request.scaled_losses.scale
    )


def _find_closed_form(request: ChannelRequest) -> _ClosedForm | str:
    q, prior = request.question, request.prior_weights
    if request.aim.minimise != "loss":
        return f"no closed form is known for the least {request.aim.minimise}."
    if request.is_per_distance:
        return f"no closed form is known for {request.claim.notion.name} privacy."
    along = _find_line_form(request)
    if along is not None:
        return along
    if q.pairs is not None:
        return "no closed form is known for this relation."
    if prior is None:
        return "no closed form is known for the worst input when all are neighbours."
    if request.claim.delta:
        return "no closed form is known for delta > 0 when all are neighbours."
    return (
        _find_all_pairs_form(request, prior)
        or "no closed form is known for so many inputs with this loss."
    )


def _find_line_form(request: ChannelRequest) -> _ClosedForm | None:
    """Geometric noise and the best post-processing, where consecutive answers are neighbours."""
    scaled, prior, (epsilon, delta) = (
        request.scaled_losses,
        request.prior_weights,
        _get_float_budget(request),
    )
    losses = scaled.table.floats
    if not request.question.is_line or request.losses.forbidden is not None:
        return None
    rising = has_growing_losses(losses, losses.argmin(axis=1))
    kind = "optimum" if rising and not delta else "upper bound"
    if prior is not None:
        proof = "Geometric noise with the best post-processing (Ghosh, Roughgarden, Sundararajan 2009, Theorem 3.2)"
        least = _unscale_loss(scaled, post_process_geometric(losses, prior, epsilon).value)
        return "geometric, post-processed", least, kind, f"{proof}{_explain_kind(kind, delta)}."
    if losses.size > _MAX_MINIMAX_MASSES:
        return None
    proof = "Geometric noise with the best post-processing for the worst input (Gupte, Sundararajan 2010)"
    least = _unscale_loss(scaled, minimax_value(losses, epsilon))
    return "geometric, minimax", least, kind, f"{proof}{_explain_kind(kind, delta)}."


def _find_all_pairs_form(request: ChannelRequest, prior: Vector) -> _ClosedForm | None:
    """What is known where every two answers are neighbours, without a δ."""
    q, named, (epsilon, _) = request.question, request.losses.named_loss, _get_float_budget(request)
    if named is not None and named.kind == "error-rate" and {*q.inputs} <= {*q.outputs}:
        proof = "Randomized response among the likeliest inputs is right most often (Ghazi et al. 2021a, Theorem 3)."
        return "randomized response", randomized_response_error(prior, epsilon), "optimum", proof
    if (
        q.k <= MAX_EXTREMAL_INPUTS
        and epsilon <= _MAX_EXTREMAL_EPSILON
        and request.losses.forbidden is None
    ):
        proof = "The linear program over the 2^k staircase columns, of which every column is a mixture (Kairouz et al.)."
        least = _unscale_loss(
            request.scaled_losses,
            extremal_value(request.scaled_losses.table.floats, prior, epsilon),
        )
        return "extremal channels", least, "optimum", proof
    x, _ = q.coordinates
    if (
        named is not None
        and named.kind in BIN_LOSSES
        and q.numbers is not None
        and (np.diff(x) > 0).all()
    ):
        exact = named.kind in ("absolute", "pinball") and q.inputs == q.outputs
        reason = (
            "its values are inputs, so the outputs lose nothing"
            if exact
            else "real outputs can only do better"
        )
        proof = f"Theorem 5 of Ghazi et al. 2022: RR-on-Bins is optimal over all real outputs; {reason}."
        value = optimal_bins(x, prior, epsilon, named).objective
        return "RR-on-Bins", value, "optimum" if exact else "lower bound", proof
    return None


def _unscale_loss(scaled: ScaledLosses, at_unit: float) -> float:
    """A value at the scaled losses as one of the losses that were given."""
    return float(scaled.unscale_loss(Fraction(at_unit)))


def _get_float_budget(request: ChannelRequest) -> tuple[float, float]:
    return float(request.claim.epsilon or 0), float(request.claim.delta or 0)


def _explain_kind(kind: str, delta: float) -> str:
    if kind == "optimum":
        return " is optimal, as no loss falls with the distance"
    return ", a private channel" + (
        ": pure, so one with delta > 0 can only be better" if delta else ""
    )
