"""Compute the tables behind the figures of Cai et al. 2024, and the distance from the limit.

Each public function that returns rows makes a table. declared/optm.toml names the function and its
arguments. OPTM, MVU, RQM and ERM are the mechanisms that the paper compares, and M is one of them.
The error is the mean absolute error (MAE). "51 points" is its mean on a grid of 51 inputs, as in
the paper's Table 1. The limit is the smallest MAE with any number of outputs, and the reach is the
largest output.
"""

from __future__ import annotations

import itertools
import math
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pandas as pd

from workbench.data.intervals import read_bins
from workbench.exact.numbers import ONE, read_number
from workbench.exact.objects import Record
from workbench.families.quantizer.product import solve_product_optimum
from workbench.families.quantizer.search import find_largest_q_rqm
from workbench.io.result import Row
from workbench.mechanisms.baselines.two_bin import equal_bins, erm, rqm
from workbench.mechanisms.piecewise_affine import Quantizer
from workbench.papers.artifact import Comparison, read_declaration
from workbench.papers.optm.authors import design_authors_gaussian_optm
from workbench.papers.optm.common import (
    EPSILONS,
    SAMPLE_SIZE,
    TABLES,
    compute_limit,
    design_mvu,
    design_quantizer,
    get_printed_numbers,
    list_published_mechanisms,
    make_authors_optm,
    make_law_question,
    make_printed_mechanism,
    repair,
)
from workbench.privacy.audit import audit_extremes
from workbench.questions.density import Density, normal_density, uniform_density

# The optimised quantizer that is compared with the limit has this many outputs.
MAX_OUTPUTS = 16

HALF_UNIT = 0.0005  # Half a unit of the last printed digit.
# A printed average of 1000 inputs may differ from ours by this many standard errors.
ALLOWED_STANDARD_ERRORS = 3
# Half a unit of the last printed digit of a bin, and of the parameters q and γ.
_HALF_BIN_UNIT = Fraction(1, 200)
_HALF_PARAMETER_UNIT = Fraction(1, 2000)
# The number of nodes of the search for OPTM's best selections, for uniform and for other inputs.
_UNIFORM_NODES = 400
_GAUSSIAN_NODES = 200
_CURVE_POINTS = 401  # An error curve is drawn through this many inputs.
_EXACT_KNOTS = 41  # The law of the exact quantizer at given bins is optimised at this many inputs.

# The grids of `find_best_rqm` and `find_erms`: factors of the smallest feasible reach, inner bins,
# and values of ERM's parameter γ.
_RQM_FACTORS = (1.0001, 1.001, 1.01, 1.03, 1.1, 1.3)
_ERM_OUTER_BINS = np.linspace(4.1, 16, 18)
_ERM_INNER_BINS = (0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.99)
_ERM_GAMMAS = (0.0, 0.01, 0.03, 0.1, 0.3, 1.0)
_ERM_FACTORS = (0.9, 0.95, 0.98, 1.0, 1.0002, 1.01)
_ERM_LARGE_GAMMAS = (0, 1, 5, 15, 40)


def make_gaussian_density(sigma: float) -> Density:
    """Return the density of the inputs of Table 2: N(0.5, σ²) clipped to [-1, 1].

    Args:
        sigma: The standard deviation σ > 0 before clipping.
    """
    return normal_density(get_printed_numbers()["table2"]["mu"], sigma)


def _make_input_density(sigma: float | None) -> Density | None:
    """Return the density of the inputs of Table 2, or None for uniform inputs (without σ)."""
    return None if sigma is None else make_gaussian_density(sigma)


def make_authors_gaussian_optm(sigma: float) -> Quantizer:
    """Return OPTM of Table 2 as the authors' public program computes it, without repair.

    Args:
        sigma: The σ of the inputs.
    """
    return design_authors_gaussian_optm(get_printed_numbers()["table2"]["mu"], sigma, ONE)


def _construct_mechanism(construction: str, epsilon: str, sigma: float | None) -> Quantizer:
    """Return the mechanism of a row, for uniform inputs or (with σ) the inputs of Table 2.

    construction: an entry `construction` of [mechanisms] in declared/optm.toml, one of the cases
    below or a name of `common.NAMES`.
    """
    table = TABLES[epsilon] if sigma is None else "table6"
    density = _make_input_density(sigma)
    bins = get_printed_numbers()[table]["OPTM"]["bins"]
    quantizer: Quantizer | None
    match construction:
        case "authors":
            if sigma is None:
                quantizer = make_authors_optm(epsilon)
            else:
                quantizer = make_authors_gaussian_optm(sigma)
        case "RQM without q":
            quantizer = find_best_rqm(epsilon)
        case "ERM beyond ±1":
            _, quantizer = find_erms(epsilon)
        case "product":
            nodes = _UNIFORM_NODES if sigma is None else _GAUSSIAN_NODES
            question = make_law_question(epsilon, density)
            optimum = solve_product_optimum(read_bins(bins), question, nodes=nodes)
            assert optimum
            quantizer = optimum.quantizer
        case "exact":
            quantizer = design_quantizer(bins, epsilon, density, knots=_EXACT_KNOTS)
        case "optimised":
            quantizer = design_quantizer(4, epsilon, density)
        case _:
            quantizer = make_printed_mechanism(construction, table, epsilon, density)
    assert quantizer
    return repair(quantizer, epsilon)


def _measure(quantizer: Quantizer, density: Density | None = None) -> Record:
    """Return the errors, the exact ε and the bias of a quantizer. Default: uniform inputs."""
    density = density or uniform_density()
    return {
        "mae (51 points)": quantizer.mae_51,
        "mae": quantizer.mae(density),
        "mse": quantizer.mse(density),
        "exact epsilon": audit_extremes(quantizer, 0).pure_epsilon,
        "bias": float(quantizer.bias),
    }


def compare_mechanism(mechanism: str, epsilon: float = 1, sigma: float | None = None) -> list[Row]:
    """Return a row of Table 1 (uniform inputs) or of Table 2 (with σ).

    The row has the printed value, the exact errors, the audit, and the limit. declared/optm.toml
    has the construction of each mechanism and the row that prints it. Outputs of a search have the
    digits to which it converges.

    Args:
        mechanism: A key of [mechanisms] in declared/optm.toml.
        epsilon: The ε of pure DP, 0.5, 1 or 1.5.
        sigma: The σ of the inputs of Table 2. None: uniform inputs, Table 1.

    Returns:
        One row: errors (mae, mse, "mae (51 points)"), "exact epsilon", bias, outputs, certified,
        the limits (Table 1) or the standard error of 1000 inputs (Table 2), and printed if the
        paper prints the error.
    """
    declaration = read_declaration("optm")["mechanisms"][mechanism]
    budget = f"{epsilon:g}"
    quantizer = _construct_mechanism(declaration["construction"], budget, sigma)
    row = _measure(quantizer, _make_input_density(sigma))
    spec = ".3g" if declaration["construction"] == "optimised" else "g"
    row["outputs"] = " ".join(f"{output:{spec}}" for output in quantizer.outputs)
    row["certified"] = audit_extremes(quantizer, 0).meets("pure", budget) and not row["bias"]
    if sigma is None:
        bounds = compute_limit(budget)
        printed_table = get_printed_numbers()["table1"]
        k = EPSILONS.index(budget)
        row |= {"limit, proven": bounds.lower, "limit, reached": bounds.upper}
    else:
        printed_table = get_printed_numbers()["table2"]
        k = printed_table["sigma"].index(sigma)
        row["standard error of 1000 inputs"] = compute_standard_error(
            quantizer, make_gaussian_density(sigma)
        )
    if "printed_row" in declaration:
        row["printed"] = printed_table[declaration["printed_row"]][k]
    return [row]


def evaluate_printed_parameters(
    mechanism: str, table: str, sigma: float | None = None
) -> list[Row]:
    """Return a row of Tables 3-9: printed parameters, exact ε, bias, errors for uniform inputs.

    Args:
        mechanism: One of `common.NAMES`.
        table: The key of a table of printed parameters, such as "table3".
        sigma: The σ of the inputs for which OPTM is computed. Default: uniform inputs.

    Returns:
        One row: the printed parameters by name, "requested epsilon", errors, "exact epsilon", bias.
    """
    printed_table = get_printed_numbers()[table]
    epsilon = printed_table.get("epsilon", "1")
    density = _make_input_density(sigma)
    quantizer = make_printed_mechanism(mechanism, table, epsilon, density)
    assert quantizer
    parameters = printed_table[mechanism]
    return [{**parameters, "requested epsilon": float(epsilon), **_measure(quantizer)}]


def compute_error_curve(mechanism: str, epsilon: str) -> pd.DataFrame:
    """Return the expected error of a mechanism of Table 1 against the input x.

    Where the law jumps, the rows contain the input and the next float below it.

    Args:
        mechanism: A key of [mechanisms] in declared/optm.toml.
        epsilon: The ε of pure DP as text, such as "0.5".

    Returns:
        The columns x and error, E|M(x) - x|.
    """
    construction = read_declaration("optm")["mechanisms"][mechanism]["construction"]
    quantizer = _construct_mechanism(construction, epsilon, None)
    jumps = quantizer.outputs[np.abs(quantizer.outputs) < 1]
    grid = np.linspace(-1, 1, _CURVE_POINTS)
    x = np.unique(np.concatenate([grid, jumps, np.nextafter(jumps, -1)]))
    return pd.DataFrame({"x": x, "error": quantizer.error_at(x)})


def _vary_printed_parameters(name: str, epsilon: str) -> tuple[list[Quantizer], str]:
    """Return mechanisms whose parameters round to the printed ones, and a text about the digits.

    Each parameter is moved up and down by half a unit of its last printed digit: bins by 1/200, q
    and γ by 1/2000.
    """
    parameters = get_printed_numbers()[TABLES[epsilon]][name]
    bins = read_bins(parameters["bins"])
    signs = (-1, 1)
    *_, printed_inner, printed_outer = bins
    if name == "MVU":
        mechanisms = []
        for inner, outer in itertools.product(signs, repeat=2):
            inner_bin = printed_inner + inner * _HALF_BIN_UNIT
            outer_bin = printed_outer + outer * _HALF_BIN_UNIT
            alphabet = (-outer_bin, -inner_bin, inner_bin, outer_bin)
            mechanisms.append(design_mvu(",".join(map(str, alphabet)), epsilon))
        return mechanisms, "alphabet printed to 0.01"
    if name == "RQM":
        q = read_number(parameters["q"], "q")
        mechanisms = []
        for bin_sign, q_sign in itertools.product(signs, repeat=2):
            moved_bins = equal_bins(4, printed_outer + bin_sign * _HALF_BIN_UNIT)
            mechanisms.append(rqm(moved_bins, q + q_sign * _HALF_PARAMETER_UNIT))
        return mechanisms, "outer bin printed to 0.01, q to 0.001, bins equally spaced"
    gamma = read_number(parameters["gamma"], "gamma")
    mechanisms = [erm(bins, gamma + sign * _HALF_PARAMETER_UNIT) for sign in signs]
    return mechanisms, "gamma printed to 0.001"


def _compare_cell(name: str, epsilon: str, printed_error: float, ours: float) -> Comparison:
    """Return the comparison of a cell of Table 1.

    The tolerance covers all parameters that round to the printed ones. OPTM is determined by its
    bins, which are exact, so its tolerance is half a unit.
    """
    quantity = f"MAE of {name}, ε = {epsilon}"
    if abs(ours - printed_error) <= HALF_UNIT or name == "OPTM":
        return Comparison(
            quantity, place="Table 1", printed=printed_error, ours=ours, tolerance=HALF_UNIT
        )

    mechanisms, reason = _vary_printed_parameters(name, epsilon)
    values = [ours, *(quantizer.mae_51 for quantizer in mechanisms)]
    low = min(values)
    high = max(values)
    remark = f"{reason}: the missing digits move the value between {low:.4f} and {high:.4f}"
    tolerance = HALF_UNIT + max(ours - low, high - ours)
    return Comparison(
        quantity,
        place="Table 1",
        printed=printed_error,
        ours=ours,
        tolerance=tolerance,
        remark=remark,
    )


def compare_table1_cells(table: pd.DataFrame) -> Record:
    """Return the comparisons of the 12 printed cells of Table 1.

    Args:
        table: The table of the artifact.
    """
    # Cells that print "N/A" are dropped.
    printed_errors = pd.to_numeric(table["printed"], errors="coerce")
    printed_rows = table.assign(printed=printed_errors).dropna(subset="printed")
    comparisons = []
    for row in printed_rows.to_dict("records"):
        name, _, variant = row["mechanism"].partition(", ")
        comparison = _compare_cell(
            name, f"{row['epsilon']:g}", row["printed"], row["mae (51 points)"]
        )
        if variant:
            comparison = replace(comparison, what=f"{comparison.what}, {variant}")
        comparisons.append(comparison)
    return {"comparisons": comparisons}


def compare_table2_cells(table: pd.DataFrame) -> Record:
    """Return the comparisons of Table 2, whose inputs are N(0.5, σ²) clipped to [-1, 1].

    Args:
        table: The table of the artifact.
    """
    comparisons = []
    for row in table.dropna(subset="printed").to_dict("records"):
        name = row["mechanism"]
        mae = row["mae"]
        standard_error = row["standard error of 1000 inputs"]
        deviation = (row["printed"] - mae) / standard_error
        remark = f"{deviation:+.1f} standard errors of 1000 inputs, {standard_error:.4f}"
        if name == "MVU":
            remark += "; see the errata"
        elif "OPTM" in name:
            remark += f"; bins {row['outputs']}"
        comparison = Comparison(
            f"MAE of {name}, σ = {row['sigma']:g}",
            place="Table 2",
            printed=row["printed"],
            ours=mae,
            tolerance=HALF_UNIT + ALLOWED_STANDARD_ERRORS * standard_error,
            expected=name != "MVU",
            remark=remark,
        )
        comparisons.append(comparison)
    return {"comparisons": comparisons}


def compute_standard_error(quantizer: Quantizer, density: Density) -> float:
    """Return the standard error of the average of E|M(x) - x| over 1000 independent inputs x.

    E is the expectation over the outputs. It is exact, only the inputs are random.

    Args:
        quantizer: The quantizer M.
        density: The density of the inputs.
    """
    breaks = [*map(float, quantizer.end_inputs), *quantizer.outputs]
    x, weights = density.quadrature(breaks)
    errors = quantizer.error_at(x)
    variance = float(weights @ (errors - float(weights @ errors)) ** 2)
    return math.sqrt(max(0.0, variance) / SAMPLE_SIZE)


def _compute_least_reach(epsilon: str) -> float:
    """Return the smallest reach of an unbiased ε-private quantizer, coth(ε/2)."""
    return 1 / math.tanh(float(epsilon) / 2)


def find_best_rqm(epsilon: str) -> Quantizer | None:
    """Search for the RQM with 4 bins and the smallest MAE at an ε at which the paper has none.

    The outer bins are tried on a grid, and q has four digits.

    Args:
        epsilon: The ε of pure DP as text, such as "0.5".

    Returns:
        The mechanism. None if no RQM of the grid is ε-private.
    """
    least_reach = _compute_least_reach(epsilon)
    mechanisms = []
    for factor in _RQM_FACTORS:
        outer = Fraction(round(least_reach * factor * 10**6), 10**6)
        quantizer = find_largest_q_rqm(equal_bins(4, outer), epsilon, digits=4)
        if quantizer:
            mechanisms.append(quantizer)
    return min(mechanisms, key=lambda quantizer: quantizer.mae_51, default=None)


def find_erms(epsilon: str) -> tuple[int, Quantizer]:
    """Search grids of parameters for ε-private ERMs, at an ε at which the paper has none.

    The grid has outer bins 4.1 .. 16, inner bins 0.05 .. 0.99, and γ 0 .. 1. ERMs with inner bins
    beyond ±1, near the smallest reach, and a large γ are almost two-point randomized response. For
    these the outer bins are 1.5 times the inner ones.

    Args:
        epsilon: The ε of pure DP as text, such as "0.5".

    Returns:
        (The number of ε-private ERMs of the grid, the best ERM with inner bins beyond ±1.)
    """

    def is_private(quantizer: Quantizer) -> bool:
        """Return whether the exact audit finds a quantizer ε-private."""
        return audit_extremes(quantizer, 0).meets("pure", epsilon)

    private_count = 0
    for outer, inner, gamma in itertools.product(_ERM_OUTER_BINS, _ERM_INNER_BINS, _ERM_GAMMAS):
        bins = [str(round(position, 3)) for position in (-outer, -inner, inner, outer)]
        private_count += is_private(erm(bins, str(gamma)))

    least_reach = _compute_least_reach(epsilon)
    mechanisms = []
    for factor, gamma in itertools.product(_ERM_FACTORS, _ERM_LARGE_GAMMAS):
        inner_bin = Fraction(round(least_reach * factor * 10**4), 10**4)
        outer_bin = Fraction(3, 2) * inner_bin
        quantizer = erm([-outer_bin, -inner_bin, inner_bin, outer_bin], gamma)
        if is_private(quantizer):
            mechanisms.append(quantizer)
    return private_count, min(mechanisms, key=lambda quantizer: quantizer.mae_51)


def measure_distance_to_limit(epsilon: str) -> list[Row]:
    """Return the distance of published mechanisms and of the exact quantizer from two limits.

    Args:
        epsilon: The ε of pure DP as text, such as "0.5".

    Returns:
        One row for each mechanism: epsilon, mechanism, mae, "largest output", and for both limits
        its interval as text and the excess of mae over its upper end in percent. The first limit
        allows any outputs, the second one outputs up to twice the smallest feasible reach.
    """
    mechanisms = list_published_mechanisms(epsilon)
    for count in (4, MAX_OUTPUTS):
        name = f"exact quantizer, {count} optimised bins"
        mechanisms[name] = design_quantizer(count, epsilon)
    limits = (
        ("limit, any outputs (proven, reached)", "above it, %", compute_limit(epsilon)),
        (
            "limit, twice the least reach (proven, reached)",
            "above that, %",
            compute_limit(epsilon, has_capped_outputs=True),
        ),
    )
    rows = []
    for name, quantizer in mechanisms.items():
        mae = quantizer.mae()
        row: Row = {
            "epsilon": epsilon,
            "mechanism": name,
            "mae": mae,
            "largest output": float(quantizer.outputs[-1]),
        }
        for interval_column, excess_column, bounds in limits:
            row[interval_column] = f"{bounds.lower:.4f} .. {bounds.upper:.4f}"
            row[excess_column] = 100 * (mae / bounds.upper - 1)
        rows.append(row)
    return rows
