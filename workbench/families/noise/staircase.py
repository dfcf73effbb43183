"""Make the staircase on the reals, which is optimal at δ = 0 (Geng and Viswanath 2014).

The density of the staircase falls by the factor e^-ε every sensitivity Δ. Its centre step reaches
γ Δ to each side of 0. The density is stated on k cells of width Δ/k in every interval of length Δ.
The cells are centred at multiples of Δ/k. A centre step of 2 inner - 1 cells therefore reaches
inner - 1/2 cells to each side of 0, and γ is (inner - 1/2)/k.
"""

from __future__ import annotations

import math
from fractions import Fraction

from workbench.mechanisms.real_noise import MAX_STEPS, AdditiveRealNoise, best_gamma
from workbench.privacy.repair import bound_inverse_exponential, build_staircase_law
from workbench.questions.unbounded_noise import RealNoise

_CELLS_PER_SENSITIVITY = 64  # The grids with 1..64 cells in a sensitivity are compared.
_FINE_CELLS_PER_SENSITIVITY = 512  # For a narrow centre step, grids up to this size are compared.
_NARROW_GAMMA = 0.125  # The centre step is narrow if the optimal γ is below this.


def make_staircase_on_reals(
    question: RealNoise, epsilon: Fraction, loss_name: str, cell_count: int | None = None
) -> AdditiveRealNoise:
    """Make the staircase on a grid of cells whose centre step is closest to the optimal one.

    Args:
        question: the requested noise on the reals, with its sensitivity.
        epsilon: the pure ε > 0.
        loss_name: "absolute" or "squared", on which the optimal γ depends.
        cell_count: the number k of cells of a sensitivity. Default: the number that fits best.

    Returns:
        Noise that is exactly ε-private.
    """
    gamma = best_gamma(float(epsilon), loss_name)
    if cell_count:
        candidates = [cell_count]
    else:
        max_cell_count = _CELLS_PER_SENSITIVITY
        if gamma < _NARROW_GAMMA:
            max_cell_count = _FINE_CELLS_PER_SENSITIVITY
        # The narrowest centre step reaches half a cell to each side.
        max_cell_count = min(max(max_cell_count, math.ceil(0.5 / gamma)), MAX_STEPS)
        candidates = [*range(1, max_cell_count + 1)]

    def compute_gamma_error(choice: tuple[int, int]) -> float:
        """Return the distance of the γ of a choice (k, inner) from the optimal γ."""
        k, inner = choice
        return abs((inner - 0.5) / k - gamma)

    choices = [(k, max(1, min(k, round(gamma * k + 0.5)))) for k in candidates]
    k, inner = min(choices, key=compute_gamma_error)
    law = build_staircase_law(bound_inverse_exponential(epsilon), k, inner)
    return AdditiveRealNoise(question, steps=k, cells=law)
