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
from typing import Any

import numpy as np
import pandas as pd

from workbench.families.laplace.least_ell import least_ell
from workbench.families.quantizer.mvu import mvu_curve
from workbench.mechanisms.dyadic_laplace.dyadic_laplace import DyadicLaplace
from workbench.mechanisms.dyadic_laplace.dyadic_law import component, levels
from workbench.mechanisms.dyadic_laplace.elias import check_code
from workbench.mechanisms.dyadic_laplace.mean_length import DataLaw, mean_bits, theorem8_bounds
from workbench.mechanisms.dyadic_laplace.randomness import InsecureLocalStream, SharedStream
from workbench.papers.artifact import Artifact, Comparison, Erratum, Paper, artifact, erratum, printed, rounded
from workbench.privacy.audit import audit_extremes

_DRAWN = 5  # levels in fig2
_POINTS = 33  # of fig3 up to ε = 10, by default
_LIMIT = 10.473  # ε up to which 5 bits of Elias gamma are reachable for x ~ Unif(-1, 1)
_MVU_POINTS = 11  # of MVU's curve, by default


def _fig2(full: bool) -> Artifact:
    claims = printed("dql")["fig2"]
    ell, x, wide = float(claims["parameters"]["ell"]), np.linspace(-5, 5, 2001), np.linspace(-60, 60, 60_001)
    law = levels(ell)

    def parts(at: np.ndarray) -> np.ndarray:
        return np.array([law.pmf[t] * component(ell, t).density(at) for t in range(48)])

    drawn = parts(x)
    below = np.cumsum(drawn, axis=0)
    frame = pd.DataFrame(
        {
            "x": x,
            "laplace": np.exp(-np.abs(x)) / 2,
            **{f"F_T({t}) g_{t}": below[t] for t in range(_DRAWN)},
            **{f"p_T({t}) f_{t}": drawn[t] for t in range(_DRAWN)},
        }
    )
    constants = [component(ell, t).epsilon for t in range(20)]
    lipschitz = claims["lipschitz"]
    mass = float(np.trapezoid(parts(wide).sum(axis=0), wide))
    comparisons = [Comparison("area under all parts", claims["place"], claims["mass"], mass, 1e-6)]
    for end, constant in (("largest", max(constants)), ("smallest", min(constants))):
        what = f"{end} Lipschitz constant of ln f_t, t < 20"
        comparisons.append(Comparison(what, lipschitz["place"], lipschitz["value"], constant, 1e-9))
    return artifact("dql", "fig2", frame, comparisons, gap=float(np.abs(below[-1] - frame["laplace"]).max()))


def _spaced(low: float, high: float, count: int) -> list[float]:
    """So many points of equal ratios, to the digits that are written: the same numbers on every machine."""
    return [rounded(x) for x in np.geomspace(low, high, count).tolist()]


def _fig3(full: bool) -> Artifact:
    claims = printed("dql")["fig3"]
    code = check_code(claims["parameters"]["code"])
    data = DataLaw.uniform(claims["parameters"]["low"], claims["parameters"]["high"])
    rows = []
    for epsilon in [*_spaced(0.1, 10.0, 81 if full else _POINTS), 10.2, 10.4, _LIMIT]:
        least = least_ell(epsilon, float(claims["parameters"]["bits"]), code, data)
        private = (None, None) if least.ell is None else (2 / epsilon**2, epsilon)
        rows.append([epsilon, private[0], least.ell, least.delta0, private[1], least.decoder_epsilon, least.mean_bits])
    columns = ["epsilon", "mse", "ell", "delta0", "database_epsilon", "decoder_epsilon", "mean_bits"]
    frame = pd.DataFrame(rows, columns=columns, dtype=float)
    size = 2 ** int(claims["parameters"]["bits"])
    other = mvu_curve(_spaced(0.1, 10.0, 41 if full else _MVU_POINTS), bits=size.bit_length() - 1)
    # the outputs of an MVU end a search: its error and ε to the digits that this converges to
    mvu = pd.DataFrame(
        [
            ["MVU", epsilon, rounded(mse, 4), rounded(audit_extremes(searched, 0).metric_epsilon, 6), searched.m]
            for epsilon, mse, searched in other
        ],
        columns=["mechanism", "epsilon", "mse", "database_epsilon", "outputs"],
    )
    mvu["decoder_epsilon"] = mvu["database_epsilon"]
    frame.insert(0, "mechanism", "DQL")
    table = pd.concat([frame, mvu], ignore_index=True)
    place = claims["place"]
    return artifact(
        "dql",
        "fig3",
        table,
        (
            Comparison(
                "mean length, longest of the curve", place, claims["mean_bits"], float(frame["mean_bits"].max()), 1e-9
            ),
            Comparison(
                "mean length, shortest of the curve", place, claims["mean_bits"], float(frame["mean_bits"].min()), 1e-6
            ),
        ),
        LIMIT=_LIMIT,
        ell=frame["ell"].iloc[-1],
        size=size,
        crossing=_crossing(frame, mvu),
    )


def _crossing(dql: pd.DataFrame, mvu: pd.DataFrame) -> str:
    """Where DQL's database guarantee becomes better than MVU's, in words."""
    at = mvu["mse"].to_numpy()
    # DQL's database guarantee with mean squared error v is sqrt(2/v)
    gain = np.log(mvu["database_epsilon"].to_numpy()) - np.log(2 / at) / 2
    order = np.argsort(at)
    better = gain[order] > 0
    if better.all() or not better.any():
        word = "better" if better.all() else "worse"
        return f"DQL's database guarantee is {word} than MVU's wherever both are drawn."
    last = int(np.flatnonzero(better).max())
    return (
        "Of the points drawn, DQL's database guarantee is better than MVU's up to a mean squared error of "
        f"{at[order][last]:.3g}, MVU's from {at[order][last + 1]:.3g} on (its outputs are bounded, and so are its "
        "inputs)."
    )


def _theorem8(full: bool) -> Artifact:
    claims = printed("dql")["theorem8"]
    excess = np.array(_spaced(1e-6, 1e6, 241))
    exact = np.array([levels(1 + e).mean_neg_log_delta for e in excess.tolist()])
    bound = np.log1p(math.e / excess) - 0.5
    frame = pd.DataFrame({"ell_minus_1": excess, "mean_neg_log_delta": exact, "bound": bound, "slack": bound - exact})
    tight = int(np.argmin(bound - exact))
    u = np.linspace(-0.5, 0.5, 1_000_001)
    constant = 2 * float(np.trapezoid(np.abs(u + 0.25), u)) + 0.5
    return artifact(
        "dql",
        "theorem8",
        frame,
        (Comparison("2 E|U + 1/4| + 1/2", claims["place"], claims["nine_eighths"], constant, 1e-9),),
        bound="The bound holds" if (bound > exact).all() else "The bound FAILS somewhere",
        size=excess.size,
        bound_2=bound[tight] - exact[tight],
        excess=1 + excess[tight],
    )


_EPSILONS = (0.1, 1.0, 4.0, 20.0)


def _bits(full: bool) -> Artifact:
    excess = _spaced(1e-2, 1e2, 161 if full else 65)
    data = DataLaw.uniform(-1, 1)
    rows = []
    for epsilon in _EPSILONS:
        for e in excess:
            law = levels(1 + e)
            gamma, delta = mean_bits(epsilon, law, "gamma", data), mean_bits(epsilon, law, "delta", data)
            rows.append([epsilon, 1 + e, gamma, delta, *theorem8_bounds(epsilon, law, data.mean_size)])
    frame = pd.DataFrame(rows, columns=["epsilon", "ell", "gamma_bits", "delta_bits", "theorem8", "theorem8_printed"])
    ratio = frame["theorem8"] / frame["delta_bits"]
    return artifact("dql", "bits", frame, least_ratio=ratio.min(), most_ratio=ratio.max())


# Errata.


def errata() -> Sequence[Erratum]:
    """Every erratum, its check run now: numbers, on which declared/dql.toml states the condition."""
    checks = {
        "areas": _areas,
        "scale": _scale,
        "reference": _reference,
        "codes": _codes,
        "cancellation": _cancellation,
    }
    return [erratum("dql", name, None, **numbers()) for name, numbers in checks.items()]


def _areas() -> dict[str, Any]:
    law = levels(2.0)
    return {"area": float(law.cdf[1]), "pmf": law.pmf[1], "pmf_2": law.pmf[0], "first": law.cdf[0]}


def _scale() -> dict[str, Any]:
    x = np.linspace(-8, 8, 801)
    law = levels(2.0)
    mixture = sum(law.pmf[t] * component(2.0, t).density(x) for t in range(48))
    return {"gap": float(np.abs(mixture - np.exp(-np.abs(x)) / 2).max())}


def _reference() -> dict[str, Any]:
    f, n, x = component(2.0, 1), 200_000, 0.3
    key, nonce = bytes(range(32)), bytes(16)
    m = np.asarray(f.encode(np.full(n, x), SharedStream(key, nonce), InsecureLocalStream(1)))
    u = f.decode(m, SharedStream(key, nonce)) / f.step - m
    centre = (u > -0.05) & (u < 0.05)
    law = float(f.step * f.density(f.step * u[centre] - x).mean())
    return {"seen": float((m[centre] == 0).mean()), "centre": int(centre.sum()), "law": law}


def _codes() -> dict[str, Any]:
    law = levels(2.0)
    return {
        "ell": least_ell(1.0, 5.0, "gamma").ell,
        "ell_2": least_ell(1.0, 5.0, "delta").ell,
        "mean_bits": mean_bits(1.0, law, "gamma"),
        "mean_bits_2": mean_bits(1.0, law, "delta"),
        "sharp": theorem8_bounds(1.0, law, 0.5)[0],
    }


def _cancellation() -> dict[str, Any]:
    ell, t = 2.0, 26
    mechanism = DyadicLaplace(1.0, ell)
    delta = mechanism.delta0 * 2.0**-t
    line, power = delta * ell + 1, np.exp(-delta)
    factor = (4 - 4 * line * power) / ((1 + power) ** 2 * (2 / (1 + power**2) - line))
    law = levels(ell)
    return {"t": t, "factor": 1 - factor, "right": float(law.pmf[t] / law.cdf[t])}


PAPER = Paper(
    name="dql",
    title="Dyadic quantized Laplace",
    citation=(
        "Communication-Efficient Laplace Mechanism for Differential Privacy via Random Quantization "
        "(the dyadic quantized Laplace mechanism)."
    ),
    artifacts={"fig2": _fig2, "fig3": _fig3, "theorem8": _theorem8, "bits": _bits},
    seconds={"fig3": 17},
    errata=errata,
    remarks=(
        "The guarantees are those of real arithmetic with ideal random numbers; floating-point attacks on the Laplace "
        "mechanism (Mironov 2012) are outside the paper.",
        "Every length is a sum of closed-form tail probabilities, not a sample mean.",
    ),
)
