"""Communication-Efficient Laplace Mechanism for Differential Privacy via Random Quantization: figures, bounds, errata.

    artifact    what
    fig2        the mixture: F_T(t) g_δt, p_T(t) f_t, and the latter on a log scale
    fig3        ε of the database and of the decoder against the mean squared error at 5 bits
    theorem8    E[-ln δ_T] against the bound "read off a plot"
    bits        mean length against ℓ at several ε, with Theorem 8's two bounds (a figure of ours)

In fig3 the curve of the MVU mechanism comes from the quantization models (workbench.families.quantizer.mvu).
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import pandas as pd

from workbench.exact.objects import Record
from workbench.families.laplace.least_ell import find_least_ell
from workbench.families.quantizer.mvu import compute_mvu_curve
from workbench.mechanisms.dyadic_laplace.dyadic_laplace import DyadicLaplace
from workbench.mechanisms.dyadic_laplace.dyadic_law import component, compute_levels
from workbench.mechanisms.dyadic_laplace.elias import check_code
from workbench.mechanisms.dyadic_laplace.mean_length import DataLaw, mean_bits, theorem8_bounds
from workbench.mechanisms.dyadic_laplace.randomness import InsecureLocalStream, SharedStream
from workbench.papers.artifact import (
    Artifact,
    Comparison,
    build_declared_paper,
    make_artifact,
    read_printed_numbers,
    round_to_digits,
)
from workbench.privacy.audit import audit_extremes
from workbench.solvers.arrays import Vector

_DRAWN = 5  # levels in fig2
_PARTS = 48  # that add up to the Laplace density


def _parts(ell: float, at: Vector) -> Vector:
    """p_T(t) f_t for t = 0, 1, ... Shape (parts, places)."""
    law = compute_levels(ell)
    return np.array([law.pmf[t] * component(ell, t).density(at) for t in range(_PARTS)])


def _laplace(at: Vector) -> Vector:
    return np.exp(-np.abs(at)) / 2


def fig2(full: bool) -> Artifact:
    """The parts of the Laplace law as a mixture, and the constants printed beside them."""
    claims = read_printed_numbers("dql")["fig2"]
    ell, x, wide = (
        float(claims["parameters"]["ell"]),
        np.linspace(-5, 5, 2001),
        np.linspace(-60, 60, 60_001),
    )
    drawn = _parts(ell, x)
    below = np.cumsum(drawn, axis=0)
    curves = {f"F_T({t}) g_{t}": below[t] for t in range(_DRAWN)} | {
        f"p_T({t}) f_{t}": drawn[t] for t in range(_DRAWN)
    }
    constants = [component(ell, t).epsilon for t in range(20)]
    lipschitz = claims["lipschitz"]
    mass = float(np.trapezoid(_parts(ell, wide).sum(axis=0), wide))
    comparisons = [Comparison("area under all parts", claims["place"], claims["mass"], mass, 1e-6)]
    for end, constant in (("largest", max(constants)), ("smallest", min(constants))):
        what = f"{end} Lipschitz constant of ln f_t, t < 20"
        comparisons.append(Comparison(what, lipschitz["place"], lipschitz["value"], constant, 1e-9))
    frame, gap = (
        pd.DataFrame({"x": x, "laplace": _laplace(x), **curves}),
        np.abs(below[-1] - _laplace(x)).max(),
    )
    return make_artifact("dql", "fig2", frame, comparisons, gap=gap)


def _spaced(low: float, high: float, count: int) -> list[float]:
    """So many points of equal ratios, to the digits that are written: the same numbers on every machine."""
    return [round_to_digits(x) for x in np.geomspace(low, high, count).tolist()]


def at_bits(points: int, further: Sequence[float], bits: int) -> pd.DataFrame:
    """The smallest ℓ with this mean length at so many ε in 0.1..10 and some further ones."""
    claims = read_printed_numbers("dql")["fig3"]["parameters"]
    code, data = check_code(claims["code"]), DataLaw.uniform(claims["low"], claims["high"])
    rows = []
    for epsilon in [*_spaced(0.1, 10.0, points), *further]:
        least = find_least_ell(epsilon, float(bits), code, data)
        private = (None, None) if least.ell is None else (2 / epsilon**2, epsilon)
        rows.append(
            [
                epsilon,
                private[0],
                least.ell,
                least.delta0,
                private[1],
                least.decoder_epsilon,
                least.mean_bits,
            ]
        )
    columns = [
        "epsilon",
        "mse",
        "ell",
        "delta0",
        "database_epsilon",
        "decoder_epsilon",
        "mean_bits",
    ]
    return pd.DataFrame(rows, columns=columns, dtype=float)


def mvu(points: int, bits: int) -> pd.DataFrame:
    """MVU's curve; its outputs end a search: its error and ε to the digits that this converges to."""
    rows = [
        (
            epsilon,
            round_to_digits(mse, 4),
            round_to_digits(audit_extremes(searched, 0).metric_epsilon, 6),
            searched.m,
        )
        for epsilon, mse, searched in compute_mvu_curve(_spaced(0.1, 10.0, points), bits=bits)
    ]
    table = pd.DataFrame(rows, columns=["epsilon", "mse", "database_epsilon", "outputs"])
    return table.assign(decoder_epsilon=table["database_epsilon"])


def crossing(table: pd.DataFrame) -> Record:
    """Where DQL's database guarantee, sqrt(2/v) at a mean squared error v, becomes better than MVU's, in words."""
    mvu = table[table["mechanism"] == "MVU"].sort_values("mse")
    at = mvu["mse"].to_numpy()
    better = np.log(mvu["database_epsilon"].to_numpy()) - np.log(2 / at) / 2 > 0
    if better.all() or not better.any():
        word = "better" if better.all() else "worse"
        return {
            "crossing": f"DQL's database guarantee is {word} than MVU's wherever both are drawn."
        }
    last = int(np.flatnonzero(better).max())
    return {
        "crossing": "Of the points drawn, DQL's database guarantee is better than MVU's up to a mean squared error of "
        f"{at[last]:.3g}, MVU's from {at[last + 1]:.3g} on (its outputs are bounded, and so are its inputs)."
    }


def theorem8() -> pd.DataFrame:
    """E[-ln δ_T] and its bound at many ℓ."""
    frame = pd.DataFrame({"ell_minus_1": _spaced(1e-6, 1e6, 241)})
    frame["mean_neg_log_delta"] = [
        compute_levels(1 + e).mean_neg_log_delta for e in frame["ell_minus_1"].tolist()
    ]
    bound = np.log1p(math.e / frame["ell_minus_1"]) - 0.5
    return frame.assign(bound=bound, slack=bound - frame["mean_neg_log_delta"])


def slack(table: pd.DataFrame) -> Record:
    """Whether the bound holds, and the constant 9/8 of its proof."""
    claims = read_printed_numbers("dql")["theorem8"]
    u = np.linspace(-0.5, 0.5, 1_000_001)
    constant = 2 * float(np.trapezoid(np.abs(u + 0.25), u)) + 0.5
    compared = [
        Comparison("2 E|U + 1/4| + 1/2", claims["place"], claims["nine_eighths"], constant, 1e-9)
    ]
    holds = "The bound holds" if (table["slack"] > 0).all() else "The bound FAILS somewhere"
    return {"comparisons": compared, "bound": holds}


def lengths(epsilon: float, points: int) -> pd.DataFrame:
    """Exact mean lengths and the two bounds of Theorem 8 at so many ℓ."""
    data = DataLaw.uniform(-1, 1)
    rows = []
    for e in _spaced(1e-2, 1e2, points):
        law = compute_levels(1 + e)
        gamma, delta = (
            mean_bits(epsilon, law, "gamma", data),
            mean_bits(epsilon, law, "delta", data),
        )
        rows.append([1 + e, gamma, delta, *theorem8_bounds(epsilon, law, data.mean_size)])
    return pd.DataFrame(
        rows, columns=["ell", "gamma_bits", "delta_bits", "theorem8", "theorem8_printed"]
    )


# The numbers of errata, on which declared/dql.toml states the conditions.


def areas() -> Record:
    """The first areas of Fig. 2, counted from 0 and from 1."""
    law = compute_levels(2.0)
    return {"area": float(law.cdf[1]), "pmf": law.pmf[1], "pmf_2": law.pmf[0], "first": law.cdf[0]}


def scale() -> Record:
    """By how much the parts at ℓ = 2 miss the Laplace density."""
    x = np.linspace(-8, 8, 801)
    return {"gap": float(np.abs(_parts(2.0, x).sum(axis=0) - _laplace(x)).max())}


def reference() -> Record:
    """How often 0 is sent with u in the middle of a cell, and what the law says."""
    f, n, x = component(2.0, 1), 200_000, 0.3
    key, nonce = bytes(range(32)), bytes(16)
    m = np.asarray(f.encode(np.full(n, x), SharedStream(key, nonce), InsecureLocalStream(1)))
    u = f.decode(m, SharedStream(key, nonce)) / f.step - m
    centre = (u > -0.05) & (u < 0.05)
    law = float(f.step * f.density(f.step * u[centre] - x).mean())
    return {"seen": float((m[centre] == 0).mean()), "centre": int(centre.sum()), "law": law}


def codes() -> Record:
    """The least ℓ at 5 bits and the mean lengths of both codes."""
    law = compute_levels(2.0)
    return {
        "ell": find_least_ell(1.0, 5.0, "gamma").ell,
        "ell_2": find_least_ell(1.0, 5.0, "delta").ell,
        "mean_bits": mean_bits(1.0, law, "gamma"),
        "mean_bits_2": mean_bits(1.0, law, "delta"),
        "sharp": theorem8_bounds(1.0, law, 0.5)[0],
    }


def cancellation() -> Record:
    """p_T/F_T at T = 26: one minus the printed quotient in doubles, and the law's own."""
    ell, t = 2.0, 26
    delta = DyadicLaplace(1.0, ell).delta0 * 2.0**-t
    line, power = delta * ell + 1, np.exp(-delta)
    factor = (4 - 4 * line * power) / ((1 + power) ** 2 * (2 / (1 + power**2) - line))
    law = compute_levels(ell)
    return {"t": t, "factor": 1 - factor, "right": float(law.pmf[t] / law.cdf[t])}


PAPER = build_declared_paper("dql", globals())
