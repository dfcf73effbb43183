"""Recompute the figures, bounds and errata of the paper on dyadic quantized Laplace noise (DQL).

The paper is Communication-Efficient Laplace Mechanism for Differential Privacy via Random
Quantization. `workbench.mechanisms.dyadic_laplace.dyadic_law` defines its symbols: T is the level,
f_t and p_T(t) are the density and the probability of a level, F_T is the distribution function of
T, g_δ the density of the mixture up to the step δ, and ℓ the ratio of the decoder's ε to the
database's. The decoder knows T, the readers of the decoded values do not. E is the expectation over
T.

    artifact    content
    fig2        the mixture: F_T(t) g_δt, p_T(t) f_t, and the latter on a log scale
    fig3        ε of the database and of the decoder against the mean squared error at 5 bits
    theorem8    E[-ln δ_T] and the bound that the paper reads off a plot
    bits        mean length against ℓ at several ε, with Theorem 8's two bounds (not in the paper)

The curve of the MVU mechanism in fig3 comes from workbench.families.quantizer.mvu.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import pandas as pd

from workbench.exact.objects import Record
from workbench.families.laplace import least_ell
from workbench.families.quantizer import mvu
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
from workbench.papers.dql import claim_checks
from workbench.privacy.audit import audit_extremes
from workbench.solvers.arrays import Vector

_DRAWN_LEVELS = 5  # The number of levels in fig2.
_PART_COUNT = 48  # The sum of this many parts is the Laplace density, up to rounding.
_LIPSCHITZ_LEVELS = 20  # Lipschitz constants of this many levels are compared with the paper's.
_INTEGRATION_END = 60  # The area is integrated over ±60, beyond which the mass is e^-60.

# The encoder is simulated this often. Draws are central if |u| is smaller than the width.
_DRAW_COUNT = 200_000
_CENTRAL_WIDTH = 0.05

_DENSITY_X = np.linspace(-5, 5, 2001)  # Fig. 2 shows the densities at these points.
_INTEGRATION_POINTS = 60_001  # The area under all parts is integrated over this many points.
_GAP_X = np.linspace(-8, 8, 801)  # The sum of the parts is compared with the Laplace density here.
_EPSILON_RANGE = (0.1, 10.0)  # The smallest and the largest ε of Fig. 3.
_U_POINTS = 1_000_001  # The mean over U in Theorem 8's proof is integrated over this many points.
_EXAMPLE_ELL = 2.0  # The ratio ℓ at which errata are checked.


def _compute_parts(ell: float, points: Vector) -> Vector:
    """Return the densities p_T(t) f_t at points, one row for each t = 0, 1, ..."""
    law = compute_levels(ell)
    return np.array([law.pmf[t] * component(ell, t).density(points) for t in range(_PART_COUNT)])


def _laplace_density(points: Vector) -> Vector:
    """Return the density of Laplace(0, 1) at points."""
    return np.exp(-np.abs(points)) / 2


def make_mixture_figure(full: bool, *, ell: float) -> Artifact:
    """Make Fig. 2: the parts of the Laplace law, and the constants printed with them.

    Args:
        full: Not used: the figure takes a second. Every function of a figure takes this argument.
        ell: The ratio ℓ > 1 of the decoder's ε to the database's.
    """
    claims = read_printed_numbers("dql")["fig2"]

    x = _DENSITY_X
    parts = _compute_parts(ell, x)
    sums = np.cumsum(parts, axis=0)
    columns = {"x": x, "laplace": _laplace_density(x)}
    columns |= {f"F_T({t}) g_{t}": sums[t] for t in range(_DRAWN_LEVELS)}
    columns |= {f"p_T({t}) f_{t}": parts[t] for t in range(_DRAWN_LEVELS)}

    grid = np.linspace(-_INTEGRATION_END, _INTEGRATION_END, _INTEGRATION_POINTS)
    area = float(np.trapezoid(_compute_parts(ell, grid).sum(axis=0), grid))
    comparisons = [
        Comparison(
            "area under all parts",
            place=claims["place"],
            printed=claims["mass"],
            ours=area,
            tolerance=1e-6,
        )
    ]

    constants = [component(ell, t).epsilon for t in range(_LIPSCHITZ_LEVELS)]
    lipschitz = claims["lipschitz"]
    for end, constant in (("largest", max(constants)), ("smallest", min(constants))):
        quantity = f"{end} Lipschitz constant of ln f_t, t < {_LIPSCHITZ_LEVELS}"
        comparisons.append(
            Comparison(
                quantity,
                place=lipschitz["place"],
                printed=lipschitz["value"],
                ours=constant,
                tolerance=1e-9,
            )
        )

    gap = np.abs(sums[-1] - _laplace_density(x)).max()
    return make_artifact("dql", "fig2", pd.DataFrame(columns), comparisons, gap=gap, ell=ell)


def _geometric_grid(low: float, high: float, count: int) -> list[float]:
    """Return points of equal ratios, rounded so that they are the same on every machine."""
    return [round_to_digits(point) for point in np.geomspace(low, high, count).tolist()]


def find_smallest_ell(points: int, further: Sequence[float], bits: int) -> pd.DataFrame:
    """Return the smallest ℓ whose mean length is at most `bits`, at many ε.

    Args:
        points: The number of ε in 0.1..10, at equal ratios.
        further: Further values of ε.
        bits: The largest mean length in bits.

    Returns:
        One row for each ε, with the columns epsilon, ell, delta0 (the largest step),
        decoder_epsilon, mean_bits, mse (2/ε²) and database_epsilon (ε). The columns after epsilon
        are NaN if the mean length exceeds `bits` for every ℓ.
    """
    claims = read_printed_numbers("dql")["fig3"]["parameters"]
    code = check_code(claims["code"])
    data = DataLaw.uniform(claims["low"], claims["high"])
    rows = []
    for epsilon in [*_geometric_grid(*_EPSILON_RANGE, points), *further]:
        smallest = least_ell.find_least_ell(epsilon, float(bits), code, data)
        row = {
            "epsilon": epsilon,
            "ell": smallest.ell,
            "delta0": smallest.delta0,
            "decoder_epsilon": smallest.decoder_epsilon,
            "mean_bits": smallest.mean_bits,
        }
        if smallest.ell is not None:
            row |= {"mse": 2 / epsilon**2, "database_epsilon": epsilon}
        rows.append(row)
    return pd.DataFrame(rows, dtype=float)


def audit_mvu_curve(points: int, bits: int) -> pd.DataFrame:
    """Return the mean squared error and the ε of the MVU mechanism.

    A local search finds the outputs. The numbers are rounded to the digits to which it converges.

    Args:
        points: The number of ε in 0.1..10, at equal ratios.
        bits: The number of bits of an output.

    Returns:
        One row for each ε, with the columns epsilon, mse, database_epsilon, outputs (their number)
        and decoder_epsilon.
    """
    epsilons = _geometric_grid(*_EPSILON_RANGE, points)
    rows = []
    for epsilon, mse, mechanism in mvu.compute_mvu_curve(epsilons, bits=bits):
        audited_epsilon = round_to_digits(audit_extremes(mechanism, 0).metric_epsilon, 6)
        row = {
            "epsilon": epsilon,
            "mse": round_to_digits(mse, 4),
            "database_epsilon": audited_epsilon,
            "outputs": mechanism.m,
            "decoder_epsilon": audited_epsilon,
        }
        rows.append(row)
    return pd.DataFrame(rows)


def describe_crossing(table: pd.DataFrame) -> Record:
    """Return a sentence about where DQL's database guarantee is better than MVU's.

    The guarantee is an ε, so the smaller one is better. At the mean squared error v, DQL's is
    sqrt(2/v).

    Args:
        table: The table of fig3. `declared/dql.toml` joins it from the tables of
            `find_smallest_ell` and `audit_mvu_curve`, and adds the column mechanism.

    Returns:
        "crossing": the sentence, a value of the caption's template.
    """
    curve = table[table["mechanism"] == "MVU"].sort_values("mse")
    errors = curve["mse"].to_numpy()
    # DQL's guarantee is better where MVU's ε exceeds sqrt(2/v).
    is_better = np.log(curve["database_epsilon"].to_numpy()) - np.log(2 / errors) / 2 > 0
    if is_better.all() or not is_better.any():
        comparison_word = "better" if is_better.all() else "worse"
        sentence = (
            f"DQL's database guarantee is {comparison_word} than MVU's wherever both are drawn."
        )
    elif is_better[-1]:
        last_worse = int(np.flatnonzero(~is_better).max())
        sentence = (
            "Of the points drawn, DQL's database guarantee is better than MVU's from a mean "
            f"squared error of {errors[last_worse + 1]:.3g} on. MVU's is better at "
            f"{errors[last_worse]:.3g}."
        )
    else:
        last = int(np.flatnonzero(is_better).max())
        sentence = (
            "Of the points drawn, DQL's database guarantee is better than MVU's up to a mean "
            f"squared error of {errors[last]:.3g}. MVU's is better from {errors[last + 1]:.3g} on, "
            "because its outputs and its inputs are bounded."
        )
    return {"crossing": sentence}


def compute_theorem8_bound() -> pd.DataFrame:
    """Compute E[-ln δ_T] and its printed bound for many ℓ.

    Returns:
        The columns ell_minus_1, mean_neg_log_delta, bound and slack (bound - mean).
    """
    table = pd.DataFrame({"ell_minus_1": _geometric_grid(low=1e-6, high=1e6, count=241)})
    excesses = table["ell_minus_1"].tolist()
    table["mean_neg_log_delta"] = [
        compute_levels(1 + excess).mean_neg_log_delta for excess in excesses
    ]
    bound = np.log1p(math.e / table["ell_minus_1"]) - 0.5
    return table.assign(bound=bound, slack=bound - table["mean_neg_log_delta"])


def check_theorem8_bound(table: pd.DataFrame) -> Record:
    """Return whether the bound holds, and the comparison of the constant 9/8 of its proof.

    The proof needs 2 E|U + 1/4| + 1/2 = 9/8 for U uniform on [-1/2, 1/2].

    Args:
        table: The table of theorem8.

    Returns:
        comparisons. bound: the start of a sentence in the caption.
    """
    claims = read_printed_numbers("dql")["theorem8"]
    u = np.linspace(-0.5, 0.5, _U_POINTS)
    constant = 2 * float(np.trapezoid(np.abs(u + 0.25), u)) + 0.5
    comparison = Comparison(
        "2 E|U + 1/4| + 1/2", claims["place"], claims["nine_eighths"], constant, tolerance=1e-9
    )
    holds = (table["slack"] > 0).all()
    sentence = "The bound holds" if holds else "The bound FAILS somewhere"
    return {"comparisons": [comparison], "bound": sentence}


def compute_mean_lengths(epsilon: float, points: int) -> pd.DataFrame:
    """Return exact mean lengths and the two bounds of Theorem 8 for many ℓ.

    Args:
        epsilon: The ε of the database, > 0.
        points: The number of ℓ - 1 in 0.01..100, at equal ratios.

    Returns:
        The columns ell, gamma_bits, delta_bits (mean lengths), theorem8 (the bound that its proof
        gives) and theorem8_printed (the printed bound).
    """
    data = DataLaw.uniform(-1, 1)
    rows = []
    for excess in _geometric_grid(low=1e-2, high=1e2, count=points):
        law = compute_levels(1 + excess)
        sharp_bound, printed_bound = theorem8_bounds(epsilon, law, data.mean_size)
        row = {
            "ell": 1 + excess,
            "gamma_bits": mean_bits(epsilon, law, "gamma", data),
            "delta_bits": mean_bits(epsilon, law, "delta", data),
            "theorem8": sharp_bound,
            "theorem8_printed": printed_bound,
        }
        rows.append(row)
    return pd.DataFrame(rows)


# The numbers that prove the errata. declared/dql.toml has the conditions that they must satisfy.


def compute_first_areas() -> Record:
    """Compute the first areas of Fig. 2 at ℓ = 2.

    The caption counts the areas from T = 1, but T starts at 0.

    Returns:
        two_parts_area: P(T <= 1). one_part_area: P(T <= 0). first_mass, second_mass: P(T = 0) and
        P(T = 1).
    """
    law = compute_levels(_EXAMPLE_ELL)
    first_mass, second_mass, *_ = law.pmf
    one_part_area, two_parts_area, *_ = law.cdf
    return {
        "two_parts_area": float(two_parts_area),
        "second_mass": second_mass,
        "first_mass": first_mass,
        "one_part_area": one_part_area,
    }


def measure_mixture_gap() -> Record:
    """Compare the sum of the parts at ℓ = 2 with the Laplace density of scale 1, on -8..8.

    Returns:
        gap: the largest absolute difference of both densities.
    """
    sums = _compute_parts(_EXAMPLE_ELL, _GAP_X).sum(axis=0)
    return {"gap": float(np.abs(sums - _laplace_density(_GAP_X)).max())}


def simulate_encoder() -> Record:
    """Simulate the encoder of level 1 at ℓ = 2, for the input x = 0.3 and random offsets u.

    Encoder and decoder share u. The probability of sending 0 depends on it, so only draws with u
    near 0 are counted.

    Returns:
        zero_frequency: how often 0 is sent in these draws. central_count: their number.
        zero_probability: the probability of 0 by the density of the noise.
    """
    law = component(_EXAMPLE_ELL, 1)
    x = 0.3
    key = bytes(range(32))
    nonce = bytes(16)
    inputs = np.full(_DRAW_COUNT, x)
    sent_integers = np.asarray(law.encode(inputs, SharedStream(key, nonce), InsecureLocalStream(1)))
    # A decoded value is (sent integer + u) times the step.
    u = law.decode(sent_integers, SharedStream(key, nonce)) / law.step - sent_integers
    is_central = np.abs(u) < _CENTRAL_WIDTH
    zero_probability = float(law.step * law.density(law.step * u[is_central] - x).mean())
    return {
        "zero_frequency": float((sent_integers[is_central] == 0).mean()),
        "central_count": int(is_central.sum()),
        "zero_probability": zero_probability,
    }


def compare_codes() -> Record:
    """Compare the Elias gamma and delta codes at ε = 1.

    Returns:
        gamma_ell, delta_ell: the smallest ℓ at a mean length of 5 bits. gamma_bits, delta_bits: the
        mean lengths at ℓ = 2. delta_bound: the bound of Theorem 8 on delta_bits.
    """
    law = compute_levels(_EXAMPLE_ELL)
    # Inputs uniform in [-1, 1] have the mean size 1/2.
    delta_bound, _ = theorem8_bounds(1.0, law, mean_size=0.5)
    return {
        "gamma_ell": least_ell.find_least_ell(1.0, 5.0, "gamma").ell,
        "delta_ell": least_ell.find_least_ell(1.0, 5.0, "delta").ell,
        "gamma_bits": mean_bits(1.0, law, "gamma"),
        "delta_bits": mean_bits(1.0, law, "delta"),
        "delta_bound": delta_bound,
    }


def measure_cancellation() -> Record:
    """Compare p_T(t)/F_T(t) at t = 26 in doubles with its true value, to show cancellation.

    The paper's (4) is 1 - p_T(t)/F_T(t) = (4 - 4 s q)/((1 + q)² (2/(1 + q²) - s)), with
    s = δ_t ℓ + 1 and q = e^(-δ_t).

    Returns:
        t: the level. printed_ratio: one minus the quotient (4), computed in doubles. true_ratio:
        the true p_T(t)/F_T(t).
    """
    ell = _EXAMPLE_ELL
    t = 26
    delta = DyadicLaplace(1.0, ell).delta0 * 2.0**-t
    s = delta * ell + 1
    q = np.exp(-delta)
    quotient = (4 - 4 * s * q) / ((1 + q) ** 2 * (2 / (1 + q**2) - s))
    law = compute_levels(ell)
    return {"t": t, "printed_ratio": 1 - quotient, "true_ratio": float(law.pmf[t] / law.cdf[t])}


# declared/dql.toml names the functions above. Every table of it with a title is an artifact.
PAPER = build_declared_paper("dql", globals(), vars(claim_checks))
