"""Find the optimal ε-DP noise on the integers for any loss and prior, with a proven lower bound.

It solves a linear program on a window |η| <= L of noise values; geometric tails continue the law
beyond it. f is the PMF of the noise η, c its loss, D the sensitivity.

The loss and the prior are arbitrary. All masses beyond the window are merged into two:

    min Σ_{|η| <= L} c(η) f(η) + c₊ B₊ + c₋ B₋    s.t.    f(η) <= e^ε f(η + s),  0 < |s| <= D

Lower side. Merging is post-processing, and Pr[η > a] <= e^ε Pr[η > a + D]. Therefore the loss of
the mass beyond L is at least the loss of a tail that falls by e^-ε every D
(`workbench.models.noise.losses.LineLoss.least_beyond`), and no pure noise has a smaller loss.

Upper side. The law of the window is raised to the least law above it with f(η) <= e^ε f(η + s)
everywhere. It is exactly pure, and its tails fall by e^-ε every D. The masses beyond may weigh more
than these tails. If the loss is constant beyond L, as for clamped noise, the excess becomes a mass
far out, from which the law falls by e^-ε every D, and both sides agree up to rounding. Otherwise
the excess becomes a tail that falls more slowly.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from workbench.errors import must
from workbench.exact.integer_law import IntegerLaw, raise_law_to_ratio
from workbench.exact.numbers import ZERO, exp_interval
from workbench.families.noise.bracket import (
    BracketResult,
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
        max_columns: noise values of a program that is solved.
        first_rising_size: noise values on each side of a first window if the loss keeps rising.
        max_rising_size: the same for the last window.
        cutoffs: masses below are treated as rounding errors of the solver; each is tried.
        negligible_mass: an excess of the mass beyond is ignored below this.
        max_tail_blocks: sensitivities over which an excess is spread as a slowly falling tail.
        max_far_values: noise values between the window and a mass far out.
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


_LIMITS = PureLimits()


def bracket_pure_noise(solver: LineProgramSolver, loss: NoiseLoss) -> BracketResult:
    """Find the best pure noise for the ε of a request, and a lower bound for all pure noise.

    Args:
        solver: solves the programs of the request.
        loss: computes the exact expected loss of a mechanism.

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
    ratio_below = exp_interval(-epsilon, _LIMITS.ratio_bits)[0]
    unit = solver.compute_loss_unit(pure_bounds, d)
    is_even = all(line_loss.is_even for line_loss in losses)
    is_rising = any(any(line_loss.slopes) for line_loss in losses)
    size = d + max(line_loss.span for line_loss in losses)
    if is_rising:
        window_size = pure_bounds.compute_window_size(d, is_on_reals=False)
        size = max(size, min(_LIMITS.first_rising_size, window_size))
    bound = ZERO
    best: tuple[Fraction, AdditiveIntegerNoise] | None = None
    for _ in range(_LIMITS.max_windows):
        column_count = 2 * (size + d)
        if column_count > _LIMITS.max_columns and best is None:
            rule = f"at most {_LIMITS.max_columns} noise values in a program"
            must("the question", rule, f"{column_count}, for answers and sensitivity")
        line = LineProgram(
            d,
            size,
            [line_loss.value_at for line_loss in losses],
            pure_bounds.bounds,
            is_even,
            tail_losses=[
                line_loss.min_tail_losses(size + d, d, ratio_below) for line_loss in losses
            ],
            loss_unit=unit,
        )
        answer = solver.solve_without_guess(line)
        bound = max(bound, answer.bound)
        for mechanism in _make_pure_candidates(answer, question, epsilon):
            value = loss(mechanism)
            if best is None or value < best[0]:
                best = value, mechanism
        size = math.ceil(_LIMITS.window_growth * size)
        if best is None or request.loss_scale.proves(best[0], bound, request.target_gap / 10):
            break
        if solver.deadline.has_passed or 2 * (size + d) > _LIMITS.max_columns:
            break
        if is_rising and size > _LIMITS.max_rising_size:
            break
    assert best is not None
    return BracketResult(best[1], bound, solver.solver_details)


def mix_with_point_mass(mechanism: LineNoise, delta: Fraction, eta: int) -> AdditiveIntegerNoise:
    """Mix pure noise with a point mass of probability δ.

    The mixture is (ε, δ)-private and nearly optimal for a small δ.

    Args:
        mechanism: pure noise on the integers.
        delta: the weight of the point mass, 0 <= δ < 1.
        eta: the noise value of the point mass.
    """
    assert isinstance(mechanism, AdditiveIntegerNoise)
    law = mechanism.noise.cover(eta, eta)
    weights = [*map(Fraction, law.weights)]
    weights[eta - law.first] += delta / (1 - delta) * law.total
    return mechanism.with_noise(IntegerLaw(law.first, weights, law.period, law.ratio))


def _make_pure_candidates(
    answer: LineAnswer, question: IntegerNoise, epsilon: Fraction
) -> list[AdditiveIntegerNoise]:
    """Make exactly pure noise from the solution of an open program, once for every cutoff."""
    masses = answer.masses
    d = answer.program.sensitivity
    last = answer.program.last
    right_mass, left_mass = answer.tail_masses
    ratio = bound_inverse_exponential(epsilon)
    is_constant = question.clamp is not None
    windows = [(masses, right_mass, left_mass, last)]
    if is_constant:
        # The loss is constant beyond the reach, so the last D masses may move far out as well.
        right_moved = right_mass + masses[-d:].sum()
        left_moved = left_mass + masses[:d].sum()
        windows.append((masses[d:-d], right_moved, left_moved, last - d))
    laws = []
    for inner, right, left, end in windows:
        right_tail = _spread_mass_beyond(inner, right, d, float(ratio), is_constant)
        left_tail = _spread_mass_beyond(inner[::-1], left, d, float(ratio), is_constant)
        all_masses = np.concatenate([left_tail[::-1], inner, right_tail])
        for cutoff in _LIMITS.cutoffs:
            if (all_masses > cutoff).any():
                weights = _round_masses(all_masses, cutoff)
                law = raise_law_to_ratio(-end - left_tail.size, weights, d, ratio)
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
        beyond: the mass beyond.
        d: the sensitivity.
        ratio: e^-ε.
        is_constant: whether the loss is constant beyond, so that a mass may lie far out.

    Returns:
        The masses after the window, outwards; empty if a tail of ratio e^-ε holds all of it.
    """
    block = masses[-d:]
    end = float(block.sum())
    excess = mass_beyond - ratio / (1 - ratio) * end
    negligible_mass = _LIMITS.negligible_mass
    if excess <= negligible_mass:
        return np.zeros(0)
    if is_constant:
        distance = math.ceil(-math.log(negligible_mass) / -math.log(ratio)) * d
        far_masses = np.zeros(min(_LIMITS.max_far_values, distance))
        far_masses[-1] = excess / (1 + 2 * d * ratio / (1 - ratio))
        return far_masses
    tail_ratio = mass_beyond / (end + mass_beyond)
    blocks = math.ceil(math.log(negligible_mass) / math.log(min(tail_ratio, 1 - 1e-9)))
    blocks = min(_LIMITS.max_tail_blocks, blocks)
    return np.concatenate([block * tail_ratio**k for k in range(1, blocks + 1)])
