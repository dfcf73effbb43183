"""Find the optimal ε-DP noise on the integers for any loss and prior, with a proven lower bound.

A linear program gives the masses of the noise on a window of values, and geometric tails continue
them. The loss may be any function of the noise, for example the mean over a prior of clamped
answers (`NoiseRequest.line_losses`).

Notation. f is the PMF of the noise η, c(η) the loss of the noise value η, D the sensitivity, and
L the end of the window |η| <= L. All mass right of the window is merged into one mass B₊, and all
mass left of it into one mass B₋. c₊ and c₋ are lower bounds on the mean loss of these two masses.
The program (`workbench.models.noise.program`) is

    min Σ_{|η| <= L} c(η) f(η) + c₊ B₊ + c₋ B₋    s.t.    f(η) <= e^ε f(η + s),  0 < |s| <= D

and the same inequality for the merged outcomes η > L and η < -L.

Lower bound: no pure noise has a smaller loss than the optimum of this program.
1. Merging is post-processing, so the merged law of any pure noise is feasible.
2. Pure noise satisfies Pr[η > a + D] >= e^-ε Pr[η > a] for every a. At least the share e^-ε of the
   mass beyond L is therefore more than D farther out, at least the share e^-2ε is more than 2 D
   farther out, and so on. The loss does not fall beyond L, so the mean loss of the mass beyond L is
   at least that of a tail that falls by e^-ε every D. This is c₊ (on the left c₋), from
   `workbench.models.noise.losses.LineLoss.bound_tail_losses`.

Upper bound: the law of the window is raised to the smallest law above it with
f(η) <= e^ε f(η + s) everywhere. This law is exactly pure, and its tails fall by e^-ε every D. B₊
and B₋ may be larger than these tails; the difference is called the excess. If the loss is constant
beyond L, as for clamped noise, the excess becomes a mass far out, from which the law falls by e^-ε
every D. The loss then equals the lower bound up to rounding. Otherwise the excess becomes a tail
that falls more slowly.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import NamedTuple

import numpy as np

from workbench.errors import must
from workbench.exact.integer_law import IntegerLaw, raise_law_to_ratio
from workbench.exact.numbers import ZERO, exp_interval
from workbench.families.noise.bracket import (
    TARGET_GAP_DIVISOR,
    BracketResult,
    EvaluatedNoise,
    LineNoise,
    LineProgramSolver,
    NoiseClaimBounds,
    NoiseLoss,
)
from workbench.mechanisms.integer_noise import AdditiveIntegerNoise
from workbench.models.noise.program import LineAnswer, LineProgram
from workbench.privacy.claim import Claim
from workbench.privacy.repair import bound_inverse_exponential
from workbench.questions.unbounded_noise import IntegerNoise
from workbench.solvers.arrays import Vector


@dataclass(frozen=True)
class PureLimits:
    """Limits and tolerances of the search for pure noise.

    Attributes:
        ratio_bits: bits of the lower bound on e^-ε.
        mass_bits: bits to which the masses of a law are rounded.
        max_windows: windows that are tried.
        window_growth: factor by which the next window is larger.
        max_columns: the largest number of noise values in a program that is solved.
        first_rising_size: the largest number of noise values on each side of the first window, if
            the loss keeps rising.
        max_rising_size: the same for the last window.
        cutoffs: masses up to a cutoff are set to 0, as rounding errors of the solver. A candidate
            is made for each cutoff.
        negligible_mass: an excess up to this mass is ignored.
        max_tail_blocks: the largest number of sensitivities over which an excess is spread as a
            slowly falling tail.
        max_far_values: the largest number of noise values from the window to a mass far out.
        max_listed_ratio: a tail of a larger ratio is spread over as few values as one of this
            ratio, so that their number is finite.
    """

    ratio_bits: int = 64
    mass_bits: int = 128
    max_windows: int = 6
    window_growth: float = 1.5
    max_columns: int = 12_000
    first_rising_size: int = 250
    max_rising_size: int = 400
    cutoffs: tuple[float, ...] = (0.0, 1e-15, 1e-12, 1e-9)
    negligible_mass: float = 1e-15
    max_tail_blocks: int = 400
    max_far_values: int = 50_000
    max_listed_ratio: float = 1 - 1e-9


_LIMITS = PureLimits()


def bracket_pure_noise(solver: LineProgramSolver, loss: NoiseLoss) -> BracketResult:
    """Find the best pure noise for the ε of a request, and a lower bound for all pure noise.

    Args:
        solver: solves the programs of the request.
        loss: computes the exact expected loss of a mechanism.

    Returns:
        The noise of smallest exact loss that was found, which is exactly ε-DP, and the lower bound.
        They agree up to a tenth of the target gap, unless a limit or the deadline ended the search.

    Raises:
        InvalidRequest: the programs are too large.
        SolverError: the solver failed.
    """
    request = solver.request
    question = request.question
    assert isinstance(question, IntegerNoise)
    epsilon = request.claim.epsilon
    d = question.sensitivity
    losses = request.line_losses
    pure_bounds = NoiseClaimBounds(Claim(request.claim.notion, epsilon, ZERO))
    ratio_below, _ = exp_interval(-epsilon, _LIMITS.ratio_bits)
    unit = solver.compute_loss_unit(pure_bounds, d)
    is_even = all(line_loss.is_even for line_loss in losses)
    is_rising = any(any(line_loss.slopes) for line_loss in losses)
    size = d + max(line_loss.span for line_loss in losses)
    if is_rising:
        window_size = pure_bounds.compute_window_size(d, is_on_reals=False)
        size = max(size, min(_LIMITS.first_rising_size, window_size))
    target_gap = request.target_gap / TARGET_GAP_DIVISOR
    bound = ZERO
    best: EvaluatedNoise | None = None
    for _ in range(_LIMITS.max_windows):
        column_count = 2 * (size + d)
        if column_count > _LIMITS.max_columns and best is None:
            rule = f"at most {_LIMITS.max_columns} noise values in a program"
            must("the question", rule, f"{column_count}, for answers and sensitivity")
        line = LineProgram(
            sensitivity=d,
            reach=size,
            losses=[line_loss.value_at for line_loss in losses],
            bounds=pure_bounds.bounds,
            is_folded=is_even,
            tail_losses=[
                line_loss.bound_tail_losses(size + d, d, ratio_below) for line_loss in losses
            ],
            loss_unit=unit,
        )
        answer = solver.solve_without_guess(line)
        bound = max(bound, answer.bound)
        for mechanism in _make_pure_candidates(answer, question, epsilon):
            expected_loss = loss(mechanism)
            if best is None or expected_loss < best.loss:
                best = EvaluatedNoise(mechanism, expected_loss)
        size = math.ceil(_LIMITS.window_growth * size)
        if best is None or request.loss_scale.proves(best.loss, bound, target_gap):
            break
        if solver.deadline.has_passed or 2 * (size + d) > _LIMITS.max_columns:
            break
        if is_rising and size > _LIMITS.max_rising_size:
            break
    assert best is not None
    return BracketResult(best.mechanism, bound, solver.solver_details)


def mix_with_point_mass(mechanism: LineNoise, delta: Fraction, eta: int) -> AdditiveIntegerNoise:
    """Mix pure noise with a point mass of probability δ.

    The mixture is (ε, δ)-private and nearly optimal for a small δ.

    Args:
        mechanism: pure noise on the integers.
        delta: the weight δ of the point mass, 0 <= δ < 1. The pure noise has the weight 1 - δ.
        eta: the noise value of the point mass.

    Returns:
        The mixture, in exact numbers, for the same question.
    """
    assert isinstance(mechanism, AdditiveIntegerNoise)
    law = mechanism.noise.cover(eta, eta)
    weights = [*map(Fraction, law.weights)]
    # The added weight is the share δ of the new total.
    weights[eta - law.first] += delta / (1 - delta) * law.total
    return mechanism.with_noise(IntegerLaw(law.first, weights, period=law.period, ratio=law.ratio))


class _Window(NamedTuple):
    """The masses of noise on a window, and the masses beyond it.

    Attributes:
        masses: the masses on -last..last. Shape (2 last + 1,).
        right_mass: the mass of all larger noise values.
        left_mass: the mass of all smaller noise values.
        last: the largest noise value of the window.
    """

    masses: Vector
    right_mass: float
    left_mass: float
    last: int


def _make_pure_candidates(
    answer: LineAnswer, question: IntegerNoise, epsilon: Fraction
) -> list[AdditiveIntegerNoise]:
    """Make exactly pure noise from the solution of a program with tails, once for every cutoff."""
    masses = answer.masses
    d = answer.program.sensitivity
    last = answer.program.last
    right_mass, left_mass = answer.tail_masses
    ratio = bound_inverse_exponential(epsilon)
    is_constant = question.clamp is not None
    windows = [_Window(masses, right_mass, left_mass, last)]
    if is_constant:
        # The loss is constant near the ends of the window, so a second candidate moves the last D
        # masses of each side far out as well.
        right_moved = right_mass + masses[-d:].sum()
        left_moved = left_mass + masses[:d].sum()
        windows.append(_Window(masses[d:-d], right_moved, left_moved, last - d))
    laws = []
    for window in windows:
        right_tail = _spread_mass_beyond(
            window.masses, window.right_mass, d, ratio=float(ratio), is_constant=is_constant
        )
        left_tail = _spread_mass_beyond(
            window.masses[::-1], window.left_mass, d, ratio=float(ratio), is_constant=is_constant
        )
        all_masses = np.concatenate([left_tail[::-1], window.masses, right_tail])
        for cutoff in _LIMITS.cutoffs:
            if (all_masses > cutoff).any():
                weights = _round_masses(all_masses, cutoff)
                law = raise_law_to_ratio(-window.last - left_tail.size, weights, d, ratio)
                laws.append(AdditiveIntegerNoise(question, law))
    return laws


def _round_masses(masses: Vector, cutoff: float) -> list[int]:
    """Round masses to integer weights; masses up to the cutoff become 0."""
    unit = 2.0**_LIMITS.mass_bits
    return [round(mass * unit) if mass > cutoff else 0 for mass in masses.tolist()]


def _spread_mass_beyond(
    masses: Vector, mass_beyond: float, d: int, ratio: float, is_constant: bool
) -> Vector:
    """Spread the mass beyond a window over the noise values after it.

    Args:
        masses: the masses of the window (k,), the last of them next to the tail.
        mass_beyond: the mass beyond the window, on this side.
        d: the sensitivity.
        ratio: e^-ε.
        is_constant: whether the loss is constant beyond the window, so that a mass may lie far
            out.

    Returns:
        The masses after the window, outwards. Empty if a tail that falls by e^-ε every D holds the
        whole mass beyond.
    """
    block = masses[-d:]
    end = float(block.sum())
    # A tail that falls by `ratio` every D after the last D masses has the sum
    # end * (ratio + ratio² + ...).
    excess = mass_beyond - ratio / (1 - ratio) * end
    negligible_mass = _LIMITS.negligible_mass
    if excess <= negligible_mass:
        return np.zeros(0)
    if is_constant:
        # So far out that the tail of the window has fallen to negligible_mass of its size.
        distance = math.ceil(-math.log(negligible_mass) / -math.log(ratio)) * d
        far_masses = np.zeros(min(_LIMITS.max_far_values, distance))
        # `raise_law_to_ratio` adds D masses of `ratio` times this mass on each side of it, then D
        # masses of ratio² times it, and so on. All of them together have the sum `excess`.
        far_masses[-1] = excess / (1 + 2 * d * ratio / (1 - ratio))
        return far_masses
    # The ratio q of a tail with end * (q + q² + ...) = mass_beyond.
    tail_ratio = mass_beyond / (end + mass_beyond)
    listed_ratio = min(tail_ratio, _LIMITS.max_listed_ratio)
    blocks = math.ceil(math.log(negligible_mass) / math.log(listed_ratio))
    blocks = min(_LIMITS.max_tail_blocks, blocks)
    return np.concatenate([block * tail_ratio**k for k in range(1, blocks + 1)])
