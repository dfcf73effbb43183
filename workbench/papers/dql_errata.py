"""Errata of the DQL paper, each with the computation that shows it."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from workbench.families.laplace.least_ell import least_ell
from workbench.mechanisms.dyadic_laplace.dyadic_laplace import DyadicLaplace
from workbench.mechanisms.dyadic_laplace.dyadic_law import component, levels
from workbench.mechanisms.dyadic_laplace.mean_length import mean_bits, theorem8_bounds
from workbench.mechanisms.dyadic_laplace.randomness import InsecureLocalStream, SharedStream
from workbench.papers.artifact import Erratum, erratum

__all__ = ["errata"]


def errata() -> Sequence[Erratum]:
    """Every erratum, its check run now."""
    return (_areas(), _scale(), _reference(), _codes(), _cancellation())


def _areas() -> Erratum:
    law = levels(2.0)
    area = float(law.cdf[1])
    return erratum(
        "dql",
        "areas",
        bool(law.pmf[0] > 0.3 and area - law.pmf[1] > 0.3 and abs(law.cdf[0] - law.pmf[0]) < 1e-15),
        area=area,
        pmf=law.pmf[1],
        pmf_2=law.pmf[0],
    )


def _scale() -> Erratum:
    x = np.linspace(-8, 8, 801)
    law = levels(2.0)
    mixture = sum(law.pmf[t] * component(2.0, t).density(x) for t in range(48))
    gap = float(np.abs(mixture - np.exp(-np.abs(x)) / 2).max())
    return erratum("dql", "scale", gap < 1e-12, gap=gap)


def _reference() -> Erratum:
    f, n, x = component(2.0, 1), 200_000, 0.3
    key, nonce = bytes(range(32)), bytes(16)
    m = np.asarray(f.encode(np.full(n, x), SharedStream(key, nonce), InsecureLocalStream(1)))
    u = f.decode(m, SharedStream(key, nonce)) / f.step - m
    centre = (u > -0.05) & (u < 0.05)
    seen = float((m[centre] == 0).mean())
    law = float(f.step * f.density(f.step * u[centre] - x).mean())
    return erratum(
        "dql",
        "reference",
        bool(abs(seen - law) < 5 * (0.25 / centre.sum()) ** 0.5),
        seen=seen,
        centre=int(centre.sum()),
        law=law,
    )


def _codes() -> Erratum:
    gamma, delta = least_ell(1.0, 5.0, "gamma"), least_ell(1.0, 5.0, "delta")
    law = levels(2.0)
    sharp, _ = theorem8_bounds(1.0, law, 0.5)
    return erratum(
        "dql",
        "codes",
        gamma.ell is not None and delta.ell is not None and delta.ell - gamma.ell > 0.1,
        ell=gamma.ell,
        ell_2=delta.ell,
        mean_bits=mean_bits(1.0, law, "gamma"),
        mean_bits_2=mean_bits(1.0, law, "delta"),
        sharp=sharp,
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
    return erratum("dql", "cancellation", bool(error > 1e-3), t=t, factor=1 - factor, right=right, error=error)
