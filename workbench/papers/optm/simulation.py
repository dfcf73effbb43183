"""Quantizers run on synthetic data, in floats from a seeded generator: for experiments, which publish nothing."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from workbench.mechanisms.piecewise_affine import Quantizer

__all__ = ["simulated"]


def simulated(quantizer: Quantizer, x: NDArray[np.float64], rng: np.random.Generator) -> NDArray[np.float64]:
    """Every coordinate of x, clipped to [-c, c], through the quantizer. Shape of x."""
    values = np.clip(x, -float(quantizer.c), float(quantizer.c))
    cuts = np.array([float(k) for k in quantizer.knots])
    piece = np.clip(np.searchsorted(cuts, values, side="right") - 1, 0, cuts.size - 2)
    t = (values - cuts[piece]) / np.diff(cuts)[piece]
    sums = np.cumsum(quantizer.matrix.reshape(-1, 2, quantizer.m), axis=2)[:, :, :-1]
    starts, steps = np.ascontiguousarray(sums[:, 0].T), np.ascontiguousarray((sums[:, 1] - sums[:, 0]).T)
    u = rng.random(values.shape)
    index = np.zeros(values.shape, dtype=np.intp)
    for start, step in zip(starts, steps, strict=True):
        index += u >= start[piece] + t * step[piece]
    return np.asarray(quantizer.outputs[index])
