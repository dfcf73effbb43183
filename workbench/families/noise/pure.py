"""The best pure noise on the integers, for any loss and prior: a program on a window, its tails geometric.

    min Σ_{|η| <= L} c(η) f(η) + c₊ B₊ + c₋ B₋    s.t.    f(η) <= e^ε f(η + s),  0 < |s| <= D,  the masses beyond merged

Lower side. Merging is post-processing, and Pr[η > a] <= e^ε Pr[η > a + D] makes whatever is beyond L cost at least as
much as if it fell by e^-ε every D (`workbench.models.noise.losses.LineLoss.least_beyond`): so no pure noise costs less.

Upper side. The law of the window is raised to the least law above it with f(η) <= e^ε f(η + s) everywhere: exactly
pure, with tails of e^-ε every D. What the masses beyond weigh more than these tails is a mass far out, where the loss
is constant, from which the law falls by e^-ε every D; elsewhere it is a tail that falls more slowly. Where the loss is
constant beyond L, as that of clamped noise is, both sides are the same but for digits.
"""

from __future__ import annotations

import math
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

_BITS = 64
_WINDOWS, _GROWN = 6, 1.5
_SMALLEST = (
    0.0,
    1e-15,
    1e-12,
    1e-9,
)  # masses below are the solver's digits: the least law above the others is tried
_LEFT, _BLOCKS = (
    1e-15,
    400,
)  # of a mass beyond, when it has been written out; blocks that are written
_FARTHEST, _WEIGHT = 50_000, 128  # noise values to a mass far out; bits of a law
_FIRST = 250  # noise values a side of a first window where the loss goes on rising
_COLUMNS = 12_000
_UNENDED = 400  # of a side where the loss goes on rising


def bracket_pure_noise(programs: LineProgramSolver, loss: NoiseLoss) -> BracketResult:
    """The best pure noise found for the ε of a request, and a bound on all pure noise. Raises InvalidRequest,
    SolverError."""
    request = programs.request
    question, losses, epsilon = request.question, request.line_losses, request.claim.epsilon
    assert isinstance(question, IntegerNoise)
    d, within = question.sensitivity, NoiseClaimBounds(Claim(request.claim.notion, epsilon, ZERO))
    less = exp_interval(-epsilon, _BITS)[0]
    folded, gap, proves = (
        all(each.is_even for each in losses),
        request.target_gap / 10,
        request.scale.proves,
    )
    unit = programs.compute_loss_unit(within, d)
    size, bound = d + max(each.span for each in losses), ZERO
    best = None
    sloped = any(any(each.slopes) for each in losses)
    if sloped:
        size = max(size, min(_FIRST, within.compute_window_size(d, is_on_reals=False)))
    for _ in range(_WINDOWS):
        if 2 * (size + d) > _COLUMNS and best is None:
            fewer = f"at most {_COLUMNS} noise values in a program"
            must("the question", fewer, f"{2 * (size + d)}, for answers and sensitivity")
        beyond = [each.min_tail_losses(size + d, d, less) for each in losses]
        line = LineProgram(
            d,
            size,
            [each.value_at for each in losses],
            within.bounds,
            folded,
            tail_losses=beyond,
            loss_unit=unit,
        )
        answer = programs.solve_without_guess(line)
        bound = max(bound, answer.bound)
        for mechanism in laws_of(answer, question, epsilon):
            value = loss(mechanism)
            if best is None or value < best[0]:
                best = value, mechanism
        size = math.ceil(_GROWN * size)
        if (
            best is None
            or proves(best[0], bound, gap)
            or programs.deadline.has_passed
            or 2 * (size + d) > _COLUMNS
        ):
            break
        if sloped and size > _UNENDED:
            break
    assert best is not None
    return BracketResult(best[1], bound, programs.solver_details)


def mix_with_point_mass(mechanism: LineNoise, delta: Fraction, eta: int) -> AdditiveIntegerNoise:
    """(1 - δ) of pure noise and δ of a point mass at η: (ε, δ)-private, and for a small δ about the best."""
    assert isinstance(mechanism, AdditiveIntegerNoise)
    law = mechanism.noise.cover(eta, eta)
    weights = [*map(Fraction, law.weights)]
    weights[eta - law.first] += delta / (1 - delta) * law.total
    return mechanism.with_noise(IntegerLaw(law.first, weights, law.period, law.ratio))


def laws_of(
    answer: LineAnswer, question: IntegerNoise, epsilon: Fraction
) -> list[AdditiveIntegerNoise]:
    """Pure noise near the answer of an open program."""
    masses, d, ratio = answer.masses, answer.program.sensitivity, bound_inverse_exponential(epsilon)
    (right, left), last = answer.tail_masses, answer.program.last
    constant, laws = question.clamp is not None, []
    ends = [(masses, right, left, last)]
    if (
        constant
    ):  # what is beyond the reach costs the same wherever: all of it as far out as the rest
        ends.append((masses[d:-d], right + masses[-d:].sum(), left + masses[:d].sum(), last - d))
    for inside, above, below, end in ends:
        after = _written(inside, above, d, float(ratio), constant)
        before = _written(inside[::-1], below, d, float(ratio), constant)
        whole = np.concatenate([before[::-1], inside, after])
        for least in _SMALLEST:
            if (whole > least).any():
                weights = [
                    round(mass * 2.0**_WEIGHT) if mass > least else 0 for mass in whole.tolist()
                ]
                laws.append(
                    AdditiveIntegerNoise(
                        question, raise_law_to_ratio(-end - before.size, weights, d, ratio)
                    )
                )
    return laws


def _written(masses: Vector, beyond: float, d: int, ratio: float, constant: bool) -> Vector:
    """What is written of the mass beyond the last of some masses: nothing where it is that of tails."""
    block = masses[-d:]
    end = float(block.sum())
    more = beyond - ratio / (1 - ratio) * end
    if more <= _LEFT:
        return np.zeros(0)
    if constant:
        far = np.zeros(min(_FARTHEST, math.ceil(-math.log(_LEFT) / -math.log(ratio)) * d))
        far[-1] = more / (1 + 2 * d * ratio / (1 - ratio))
        return far
    falls = beyond / (end + beyond)
    blocks = min(_BLOCKS, math.ceil(math.log(_LEFT) / math.log(min(falls, 1 - 1e-9))))
    return np.concatenate([block * falls**k for k in range(1, blocks + 1)])
