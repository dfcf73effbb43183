"""Make the mechanisms of Cai et al. 2024 at their printed parameters, and ours for comparison.

Inputs are real numbers in [-1, 1]; a quantizer publishes one of m outputs, its bins. OPTM, MVU, RQM
and ERM are the mechanisms that the paper compares. MAE is the mean absolute error, and the reach is
the largest output. An alphabet is a list of outputs. ε is passed as text, such as "0.5", so that it
is exact. Results are cached.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import replace
from functools import lru_cache, partial
from typing import Any, cast

import numpy as np

from workbench.data.intervals import read_bins
from workbench.exact.numbers import read_number
from workbench.exact.objects import Record
from workbench.families.quantizer import limit
from workbench.families.quantizer.certify import repair_quantizer
from workbench.families.quantizer.family import FAMILY
from workbench.families.quantizer.laws import LawQuestion
from workbench.families.quantizer.limit import Limit
from workbench.families.quantizer.problem import QuantizerProblem
from workbench.families.quantizer.request import QuantizerRequest
from workbench.families.quantizer.search import find_largest_q_rqm
from workbench.mechanisms.baselines.two_bin import erm, rqm
from workbench.mechanisms.piecewise_affine import Quantizer
from workbench.mechanisms.quantization_error import locate_inputs
from workbench.models.quantizer.program import default_reach
from workbench.papers.artifact import read_printed_numbers
from workbench.papers.optm.authors import design_authors_optm
from workbench.pipeline.api import design
from workbench.questions.density import Density, uniform_density
from workbench.questions.quantization import Quantization
from workbench.solvers.arrays import Vector

EPSILONS = ("0.5", "1", "1.5")
NAMES = ("OPTM", "MVU", "RQM", "ERM")
SAMPLE_SIZE = 1000  # The printed values of Table 2 are averages over this many inputs.

# ε -> the key of the table in printed/optm.toml with the parameters of the mechanisms.
TABLES = {"0.5": "table3", "1": "table4", "1.5": "table5"}

_MVU_STARTS = 5  # The search for MVU's outputs starts this often.
_LIMIT_UNITS = 1e4  # Limits are rounded outward to multiples of 1/_LIMIT_UNITS.


@lru_cache
def get_printed_numbers() -> Record:
    """Return the numbers and parameters that the paper prints, by table (printed/optm.toml)."""
    return read_printed_numbers("optm")


def format_values(values: Iterable[float], spec: str = ".4f") -> str:
    """Return numbers as text.

    Args:
        values: Finite numbers.
        spec: The format specification of each number.

    Returns:
        The numbers, separated by commas.
    """
    return ", ".join(f"{value:{spec}}" for value in values)


def simulate_quantizer(quantizer: Quantizer, x: Vector, rng: np.random.Generator) -> Vector:
    """Quantize every coordinate of x, clipped to [-c, c], in floats.

    Its randomness is not secure, so it is only for experiments, which publish nothing.

    Args:
        quantizer: A quantizer of inputs in [-c, c].
        x: The inputs, any shape.
        rng: The source of randomness, which is not cryptographic.

    Returns:
        The outputs. Shape of x.
    """
    knots = np.array([float(knot) for knot in quantizer.knots])
    pieces, shares = locate_inputs(knots, np.clip(x, knots[0], knots[-1]))
    uniforms = rng.random(x.shape)
    # Between knots probabilities are affine, and so are their sums over the first outputs. So each
    # sum at x is interpolated between those of the two end laws of its piece.
    cumulative_laws = np.cumsum(quantizer.matrix, axis=1)
    output_indices = np.zeros(x.shape, dtype=np.intp)
    # The last sum is 1, which no uniform number reaches.
    for sums in cumulative_laws.T[:-1]:
        # The end laws of every piece are listed in turn, first the left and then the right one.
        starts = sums[::2]
        rises = sums[1::2] - starts
        output_indices += uniforms >= starts[pieces] + shares * rises[pieces]
    return np.asarray(quantizer.outputs[output_indices])


@lru_cache(maxsize=256)
def design_quantizer(
    outputs: str | int, epsilon: str, density: Density | None = None, **options: Any
) -> Quantizer:
    """Design a quantizer.

    Args:
        outputs: The outputs as text, such as "-3,-1,1,3". An integer is the number of outputs,
            which are then optimised. They are limited to twice the smallest feasible reach, except
            with the option method="mvu".
        epsilon: The ε of pure DP as text, such as "0.5".
        density: The density of the inputs. Default: uniform on [-1, 1].
        options: Options of `workbench design quantizer`.
    """
    parameters: Record = {"levels": outputs} if isinstance(outputs, int) else {"bins": outputs}
    question = Quantization(**parameters, density=density or uniform_density())
    quantizer: Quantizer
    if isinstance(outputs, str) or "method" in options:
        quantizer = design(question, epsilon=epsilon, **options).mechanism
        return quantizer
    # `design` would find the same quantizer, and also compute a lower bound for all outputs, which
    # no table shows. The repair makes the quantizer exactly private, or raises NotCertified.
    request = FAMILY.make_request(question, epsilon=epsilon, **options)
    problem = QuantizerProblem(cast(QuantizerRequest, request))
    answer = problem.answer_by(partial(problem.search_outputs, has_bound=False))
    quantizer, *_ = problem.repair(answer)
    return quantizer


def make_authors_optm(epsilon: str) -> Quantizer:
    """Return OPTM of Tables 3-5 as the authors' public program computes it, without repair.

    Args:
        epsilon: The ε of pure DP as text, such as "0.5".
    """
    bins = read_bins(get_printed_numbers()[TABLES[epsilon]]["OPTM"]["bins"])
    return design_authors_optm(bins, read_number(epsilon, "epsilon"))


def design_mvu(outputs: str | int, epsilon: str) -> Quantizer:
    """Return the MVU mechanism at a printed alphabet, or with searched outputs.

    Args:
        outputs: The outputs as text, such as "-3,-1,1,3". Or their number, and they are searched.
        epsilon: The ε of pure DP as text, such as "0.5".
    """
    return design_quantizer(outputs, epsilon, method="mvu", starts=_MVU_STARTS)


@lru_cache(maxsize=256)
def make_printed_mechanism(
    name: str, table: str, epsilon: str, density: Density | None = None
) -> Quantizer | None:
    """Return a mechanism at the printed parameters of a table.

    MVU has 4 searched outputs if no alphabet is printed. RQM has the largest private q if no q is
    printed.

    Args:
        name: One of NAMES.
        table: The key of a table of printed parameters, such as "table3".
        epsilon: The ε of pure DP as text, such as "0.5".
        density: The density of the inputs of OPTM. Default: uniform on [-1, 1].

    Returns:
        The mechanism. None if no RQM with the printed bins is ε-private.
    """
    parameters = get_printed_numbers()[table].get(name, {})
    if name == "OPTM":
        return design_quantizer(parameters["bins"], epsilon, density, method="optm")
    if name == "MVU":
        return design_mvu(parameters.get("bins", 4), epsilon)
    if name == "ERM":
        return erm(parameters["bins"], parameters["gamma"])
    if "q" in parameters:
        return rqm(parameters["bins"], parameters["q"])
    return find_largest_q_rqm(parameters["bins"], epsilon)


def list_published_mechanisms(epsilon: str, table: str | None = None) -> dict[str, Quantizer]:
    """Return the mechanisms of a table at one ε by name.

    At ε = 0.5 the paper has no RQM and no ERM.

    Args:
        epsilon: The ε of pure DP as text, such as "0.5".
        table: The key of a table of printed parameters. Default: the table for ε in TABLES.
    """
    table = table or TABLES[epsilon]
    mechanisms = {}
    for name in NAMES:
        if name == "MVU" or name in get_printed_numbers()[table]:
            quantizer = make_printed_mechanism(name, table, epsilon)
            if quantizer:
                mechanisms[name] = quantizer
    return mechanisms


def make_law_question(epsilon: str, density: Density | None = None) -> LawQuestion:
    """Return the question for laws on [-1, 1].

    Args:
        epsilon: The ε of pure DP as text, such as "0.5".
        density: The density of the inputs. Default: uniform.
    """
    return LawQuestion(read_number(epsilon, "epsilon"), density or uniform_density())


def repair(quantizer: Quantizer, epsilon: str) -> Quantizer:
    """Return the quantizer with a small change that makes it exactly ε-private and unbiased.

    The change moves errors by about 1e-13.

    Args:
        quantizer: A quantizer that is nearly ε-private and unbiased.
        epsilon: The ε of pure DP as text, such as "0.5".
    """
    repaired_quantizer, *_ = repair_quantizer(quantizer, read_number(epsilon, "epsilon"))
    return repaired_quantizer


@lru_cache
def compute_limit(epsilon: str, *, has_capped_outputs: bool = False) -> Limit:
    """Bound the smallest MAE with any number of outputs, rounded outward to 4 decimals.

    Args:
        epsilon: The ε of pure DP as text, such as "0.5".
        has_capped_outputs: Whether outputs are within twice the smallest feasible reach.

    Returns:
        The proven lower bound (`lower`), and an upper bound that a mechanism reaches (`upper`).
    """
    value = float(read_number(epsilon, "epsilon"))
    if has_capped_outputs:
        bounds = limit.compute_mae_limit(value, reach=default_reach(value))
    else:
        bounds = limit.compute_mae_limit(value)
    return replace(
        bounds,
        lower=math.floor(_LIMIT_UNITS * bounds.lower) / _LIMIT_UNITS,
        upper=math.ceil(_LIMIT_UNITS * bounds.upper) / _LIMIT_UNITS,
    )
