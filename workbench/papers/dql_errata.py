"""Errata of the DQL paper, each with the computation that shows it."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from workbench.families.laplace.design import design_laplace
from workbench.mechanisms.dyadic_laplace.dyadic_laplace import DyadicLaplace
from workbench.mechanisms.dyadic_laplace.dyadic_law import component, levels
from workbench.mechanisms.dyadic_laplace.mean_length import mean_bits, theorem8_bounds
from workbench.mechanisms.dyadic_laplace.randomness import InsecureLocalStream, SharedStream
from workbench.papers.artifact import Erratum

__all__ = ["errata"]


def errata() -> Sequence[Erratum]:
    """Every erratum, its check run now."""
    return (_areas(), _scale(), _reference(), _codes(), _cancellation())


def _areas() -> Erratum:
    law = levels(2.0)
    area = float(law.cdf[1])
    return Erratum(
        place="caption of Fig. 2",
        printed="p_T(1) f_1 is the (red) area below F_T(1) g_(δ_1), p_T(2) f_2 the area from there to F_T(2) g_(δ_2)",
        right="T starts at 0: the first area, below F_T(0) g_(δ_0), is p_T(0) f_0; p_T(1) f_1 is the second",
        evidence=(
            f"ℓ = 2: the area below F_T(1) g_(δ_1) is F_T(1) = {area:.6f}, p_T(1) = {law.pmf[1]:.6f}, "
            f"F_T(0) = p_T(0) = {law.pmf[0]:.6f} > 0"
        ),
        holds=bool(law.pmf[0] > 0.3 and area - law.pmf[1] > 0.3 and abs(law.cdf[0] - law.pmf[0]) < 1e-15),
    )


def _scale() -> Erratum:
    x = np.linspace(-8, 8, 801)
    law = levels(2.0)
    mixture = sum(law.pmf[t] * component(2.0, t).density(x) for t in range(48))
    gap = float(np.abs(mixture - np.exp(-np.abs(x)) / 2).max())
    return Erratum(
        place="caption of Fig. 2 (b = 1) and Appendix 9 (assume b = 1)",
        printed="b, which the definition of the mechanism does not have",
        right="b is the scale 1/ε of the noise; b = 1 means ε = 1",
        evidence=f"with ε = 1 the mixture is Laplace(0, 1) within {gap:.1g}",
        holds=gap < 1e-12,
    )


def _reference() -> Erratum:
    f, n, x = component(2.0, 1), 200_000, 0.3
    key, nonce = bytes(range(32)), bytes(16)
    m = np.asarray(f.encode(np.full(n, x), SharedStream(key, nonce), InsecureLocalStream(1)))
    u = f.decode(m, SharedStream(key, nonce)) / f.step - m
    centre = (u > -0.05) & (u < 0.05)
    seen = float((m[centre] == 0).mean())
    law = float(f.step * f.density(f.step * u[centre] - x).mean())
    return Erratum(
        place="proof of Lemma 5, step (a)",
        printed="the probability of M = m given U = u follows from (1)",
        right="it follows from the encoder (2); (1) is the density f, used in step (c)",
        evidence=f"encoder (2), P(M = 0 | U near 0): {seen:.3f} in {int(centre.sum())} runs, δ f(δu - x) = {law:.3f}",
        holds=bool(abs(seen - law) < 5 * (0.25 / centre.sum()) ** 0.5),
    )


def _codes() -> Erratum:
    gamma, delta = design_laplace(1.0, 5.0, "gamma"), design_laplace(1.0, 5.0, "delta")
    law = levels(2.0)
    sharp, _ = theorem8_bounds(1.0, law, 0.5)
    return Erratum(
        place="footnote 3 and Theorem 8",
        printed="Elias gamma code in the experiment, a bound for the Elias delta code in the theorem",
        right="Theorem 8 does not speak of the code of Fig. 3; which code is used changes ℓ",
        evidence=(
            f"ε = 1, 5 bits: ℓ = {gamma.ell:.6f} with gamma, {delta.ell:.6f} with delta; ℓ = 2: exact lengths "
            f"{mean_bits(1.0, law, 'gamma'):.4f} and {mean_bits(1.0, law, 'delta'):.4f}, bound {sharp:.4f}"
        ),
        holds=gamma.ell is not None and delta.ell is not None and delta.ell - gamma.ell > 0.1,
    )


def _cancellation() -> Erratum:
    ell, t = 2.0, 26
    mechanism = DyadicLaplace(1.0, ell)
    delta = mechanism.delta0 * 2.0**-t
    line, power = delta * ell + 1, np.exp(-delta)
    factor = (4 - 4 * line * power) / ((1 + power) ** 2 * (2 / (1 + power**2) - line))
    law = levels(ell)
    right = float(law.pmf[t] / law.cdf[t])
    error = abs((1 - factor) / right - 1)
    return Erratum(
        place="equation (4), as a formula to compute with",
        printed="1 - factor gives P(T = t) / F_T(t)",
        right=(
            "true, but in doubles its digits cancel as δ -> 0; use "
            "1 - factor = τ²(2 + δℓ + tanh δ)/(δℓ - tanh δ), τ = tanh(δ/2)"
        ),
        evidence=f"ℓ = 2, t = {t}: (4) in doubles {1 - factor:.6g}, right {right:.6g}, relative error {error:.1g}",
        holds=bool(error > 1e-3),
    )
