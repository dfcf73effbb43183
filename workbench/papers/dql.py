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
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from workbench.families.laplace.design import design_laplace
from workbench.families.quantizer.mvu import mvu_curve
from workbench.io.figures import COLOURS, panels
from workbench.mechanisms.dyadic_laplace.dyadic_law import component, levels
from workbench.mechanisms.dyadic_laplace.elias import check_code
from workbench.mechanisms.dyadic_laplace.mean_length import DataLaw, mean_bits, theorem8_bounds
from workbench.papers.artifact import Artifact, Comparison, Paper, printed, rounded
from workbench.papers.dql_errata import errata
from workbench.privacy.quantizer import audit_quantizer

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["PAPER"]

_DRAWN = 5  # levels in fig2
_POINTS = 33  # of fig3 up to ε = 10, by default
_LIMIT = 10.473  # ε up to which 5 bits of Elias gamma are reachable for x ~ Unif(-1, 1)
_MVU_POINTS = 11  # of MVU's curve, by default


def _fig2(full: bool) -> Artifact:
    claims = printed("dql")["fig2"]
    ell = float(claims["parameters"]["ell"])
    law = levels(ell)
    x = np.linspace(-5, 5, 2001)
    parts = {t: law.pmf[t] * component(ell, t).density(x) for t in range(48)}
    below = np.cumsum(np.array(list(parts.values())), axis=0)
    frame = pd.DataFrame({"x": x, "laplace": np.exp(-np.abs(x)) / 2})
    for t in range(_DRAWN):
        frame[f"F_T({t}) g_{t}"] = below[t]
    for t in range(_DRAWN):
        frame[f"p_T({t}) f_{t}"] = parts[t]
    wide = np.linspace(-60, 60, 60_001)
    constants = [component(ell, t).epsilon for t in range(20)]
    mixture = sum(law.pmf[t] * component(ell, t).density(wide) for t in range(48))
    lipschitz = claims["lipschitz"]
    gap = float(np.abs(below[-1] - frame["laplace"]).max())
    return Artifact(
        name="fig2",
        title="Fig. 2: the Laplace law as a mixture of piecewise-linear laws (ℓ = 2)",
        table=frame,
        draw=_draw_fig2,
        caption=(
            "Left: F_T(t) g_δt for t = 0, 1, ..., the area between neighbours filled. Middle: the parts p_T(t) f_t. "
            "Right: the same on a log scale. The range of x and the number of levels are ours. The paper's caption "
            "counts the areas from 1; T starts at 0 (erratum). The first 48 parts add up to the Laplace density "
            f"within {gap:.1g} on the range drawn."
        ),
        comparisons=(
            Comparison(
                "area under all parts", claims["place"], claims["mass"], float(np.trapezoid(mixture, wide)), 1e-6
            ),
            Comparison(
                "largest Lipschitz constant of ln f_t, t < 20",
                lipschitz["place"],
                lipschitz["value"],
                max(constants),
                1e-9,
            ),
            Comparison(
                "smallest Lipschitz constant of ln f_t, t < 20",
                lipschitz["place"],
                lipschitz["value"],
                min(constants),
                1e-9,
            ),
        ),
    )


def _draw_fig2(table: pd.DataFrame) -> Figure:
    figure, axes = panels(3, width=4.8, height=4.0)
    x = table["x"].to_numpy()
    laplace = table["laplace"].to_numpy()
    previous = np.zeros_like(x)
    for t in range(_DRAWN):
        colour = COLOURS[t]
        heights, part = table[f"F_T({t}) g_{t}"].to_numpy(), table[f"p_T({t}) f_{t}"].to_numpy()
        axes[0].fill_between(x, previous, heights, color=colour, alpha=0.35, linewidth=0)
        axes[0].plot(x, heights, color=colour, linewidth=1.2, label=f"t = {t}")
        axes[1].plot(x, part, color=colour, linewidth=1.2, label=f"t = {t}")
        axes[2].semilogy(x, part, color=colour, linewidth=1.2, label=f"t = {t}")
        previous = heights
    for axis in axes:
        axis.plot(x, laplace, color="black", linewidth=1, linestyle=":", label="Laplace(0, 1)")
        axis.set_xlabel("x")
    axes[0].set_ylabel(r"$F_T(t)\,g_{\delta_t}(x)$")
    axes[1].set_ylabel(r"$p_T(t)\,f_t(x)$")
    axes[2].set_ylabel(r"$p_T(t)\,f_t(x)$, log scale")
    axes[0].legend(frameon=False, fontsize=8)
    return figure


def _spaced(low: float, high: float, count: int) -> list[float]:
    """So many points of equal ratios, to the digits that are written: the same numbers on every machine."""
    return [rounded(x) for x in np.geomspace(low, high, count).tolist()]


def _fig3(full: bool) -> Artifact:
    claims = printed("dql")["fig3"]
    code = check_code(claims["parameters"]["code"])
    data = DataLaw.uniform(claims["parameters"]["low"], claims["parameters"]["high"])
    rows = []
    for epsilon in [*_spaced(0.1, 10.0, 81 if full else _POINTS), 10.2, 10.4, _LIMIT]:
        design = design_laplace(epsilon, float(claims["parameters"]["bits"]), code, data)
        rows.append(
            [
                epsilon,
                design.mse,
                design.ell,
                design.delta0,
                design.database_epsilon,
                design.decoder_epsilon,
                design.mean_bits,
            ]
        )
    columns = ["epsilon", "mse", "ell", "delta0", "database_epsilon", "decoder_epsilon", "mean_bits"]
    frame = pd.DataFrame(rows, columns=columns, dtype=float)
    size = 2 ** int(claims["parameters"]["bits"])
    other = mvu_curve(_spaced(0.1, 10.0, 41 if full else _MVU_POINTS), bits=size.bit_length() - 1)
    # the outputs of an MVU end a search: its error and ε to the digits that this converges to
    mvu = pd.DataFrame(
        [
            ["MVU", epsilon, rounded(mse, 4), rounded(audit_quantizer(searched, "absolute").epsilon, 6), searched.m]
            for epsilon, mse, searched in other
        ],
        columns=["mechanism", "epsilon", "mse", "database_epsilon", "outputs"],
    )
    mvu["decoder_epsilon"] = mvu["database_epsilon"]
    frame.insert(0, "mechanism", "DQL")
    table = pd.concat([frame, mvu], ignore_index=True)
    place = claims["place"]
    return Artifact(
        name="fig3",
        title="Fig. 3: privacy of database and decoder against the mean squared error, 5 bits a scalar",
        table=table,
        draw=_draw_fig3,
        caption=(
            "x ~ Unif(-1, 1), signed Elias gamma code, for each ε the smallest ℓ whose exact mean length is 5 bits. "
            f"Database: ε with MSE 2/ε²; decoder: ℓε. The range of ε is ours. It ends at ε = {_LIMIT}, just beyond "
            "which no ℓ brings the mean length down to 5 bits; towards it the decoder's guarantee becomes void (ℓ = "
            f"{frame['ell'].iloc[-1]:.2g} at the last point, cut off in the figure). MVU: at most {size} outputs (5 "
            "bits), as many dithering points (our choice), ε·d-private for all real inputs in [-1, 1] by exact audit; "
            "its outputs minimise the exact mean squared error, dithering included, by a local search, so a better "
            "MVU may exist. Its decoder sees what the database publishes: one ε for both. "
            f"{_crossing(frame, mvu)}"
        ),
        comparisons=(
            Comparison(
                "mean length, longest of the curve", place, claims["mean_bits"], float(frame["mean_bits"].max()), 1e-9
            ),
            Comparison(
                "mean length, shortest of the curve", place, claims["mean_bits"], float(frame["mean_bits"].min()), 1e-6
            ),
        ),
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


def _draw_fig3(table: pd.DataFrame) -> Figure:
    figure, (axis,) = panels(width=6.4, height=4.6)
    mvu = table[table["mechanism"] == "MVU"]
    table = table[table["mechanism"] == "DQL"]
    size = np.log(table["mse"])
    axis.plot(size, np.log(table["decoder_epsilon"]), color=COLOURS[1], linestyle="--", label="DQL, decoder (ℓε)")
    axis.plot(size, np.log(table["database_epsilon"]), color=COLOURS[0], label="DQL, database (ε)")
    axis.plot(np.log(mvu["mse"]), np.log(mvu["database_epsilon"]), color=COLOURS[2], marker="o", markersize=3.5,
              label="MVU, at most 32 outputs (database and decoder)")  # fmt: skip
    edge = float(size.min())
    axis.axvline(edge, color=COLOURS[7], linewidth=1, linestyle=":")
    axis.text(edge + 0.1, 0.9, f"no ℓ gives 5 bits\njust above ε = {_LIMIT}", fontsize=8, va="top")
    axis.set_ylim(-2.6, 5.0)
    axis.set_xlabel("ln E[(X̂ − x)²]")
    axis.set_ylabel("ln of the ε for ε·d-privacy")
    axis.legend(frameon=False, loc="lower left")
    return figure


def _theorem8(full: bool) -> Artifact:
    claims = printed("dql")["theorem8"]
    excess = np.array(_spaced(1e-6, 1e6, 241))
    exact = np.array([levels(1 + e).mean_neg_log_delta for e in excess.tolist()])
    bound = np.log1p(math.e / excess) - 0.5
    frame = pd.DataFrame({"ell_minus_1": excess, "mean_neg_log_delta": exact, "bound": bound, "slack": bound - exact})
    tight = int(np.argmin(bound - exact))
    u = np.linspace(-0.5, 0.5, 1_000_001)
    constant = 2 * float(np.trapezoid(np.abs(u + 0.25), u)) + 0.5
    return Artifact(
        name="theorem8",
        title="Theorem 8: E[-ln δ_T] and the bound the paper reads off a plot",
        table=frame,
        draw=_draw_theorem8,
        caption=(
            "E[-ln δ_T] by summation against ln(e/(ℓ-1) + 1) - 1/2. "
            + ("The bound holds" if (bound > exact).all() else "The bound FAILS somewhere")
            + f" on the {excess.size} points drawn, 1 + 10^-6 <= ℓ <= 1 + 10^6; least slack "
            f"{bound[tight] - exact[tight]:.4f} at ℓ = {1 + excess[tight]:.7g}. A check on a grid, as in the paper, "
            "not a proof."
        ),
        comparisons=(Comparison("2 E|U + 1/4| + 1/2", claims["place"], claims["nine_eighths"], constant, 1e-9),),
    )


def _draw_theorem8(table: pd.DataFrame) -> Figure:
    figure, axes = panels(2, width=5.0)
    excess = table["ell_minus_1"]
    axes[0].semilogx(excess, table["bound"], color=COLOURS[1], linestyle="--", label="ln(e/(ℓ − 1) + 1) − 1/2")
    axes[0].semilogx(excess, table["mean_neg_log_delta"], color=COLOURS[0], label="E[−ln δ_T], exact")
    axes[0].set_ylabel("nats")
    axes[0].legend(frameon=False)
    axes[1].semilogx(excess, table["slack"], color=COLOURS[0])
    axes[1].axhline(0, color="black", linewidth=0.8)
    axes[1].set_ylabel("bound − exact")
    for axis in axes:
        axis.set_xlabel("ℓ − 1")
    return figure


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
    return Artifact(
        name="bits",
        title="Mean description length against ℓ, with Theorem 8's bounds (not in the paper)",
        table=frame,
        draw=_draw_bits,
        caption=(
            "x ~ Unif(-1, 1), one panel for each ε. Exact mean lengths of signed Elias delta and gamma; for delta, "
            "Theorem 8's bound with E[-ln δ_T] and with its numeric replacement, at ‖x‖₁/n = E|x| = 1/2. The former "
            f"is {ratio.min():.2f} to {ratio.max():.2f} times the exact length of delta here, so ℓ is chosen by the "
            "exact one."
        ),
    )


def _draw_bits(table: pd.DataFrame) -> Figure:
    figure, axes = panels(2, 2, width=5.0, height=3.4)
    lines = (
        ("theorem8_printed", "Theorem 8, numeric (delta)", COLOURS[2], ":"),
        ("theorem8", "Theorem 8 (delta)", COLOURS[1], "--"),
        ("delta_bits", "delta, exact", COLOURS[0], "-"),
        ("gamma_bits", "gamma, exact", COLOURS[3], "-."),
    )
    for axis, (epsilon, rows) in zip(axes, table.groupby("epsilon"), strict=True):
        for column, label, colour, style in lines:
            axis.semilogx(rows["ell"] - 1, rows[column], color=colour, linestyle=style, linewidth=1.5, label=label)
        axis.set_title(f"ε = {epsilon:g}", fontsize=10)
        axis.set_xlabel("ℓ − 1")
        axis.set_ylabel("mean bits a scalar")
        axis.set_ylim(0, 1.08 * table[[column for column, *_ in lines]].to_numpy().max())
    axes[0].legend(frameon=False, fontsize=8)
    return figure


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
