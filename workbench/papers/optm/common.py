"""The mechanisms of the paper at its printed parameters, and ours beside them; each computed once."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import replace
from functools import lru_cache
from typing import Any

import numpy as np

from workbench.data.intervals import read_bins
from workbench.exact.numbers import read_number
from workbench.exact.objects import Record
from workbench.families.quantizer.certify import repair_quantizer
from workbench.families.quantizer.laws import LawQuestion
from workbench.families.quantizer.limit import Limit, compute_mae_limit
from workbench.families.quantizer.search import find_largest_q_rqm
from workbench.mechanisms.baselines.two_bin import erm, rqm
from workbench.mechanisms.piecewise_affine import Quantizer
from workbench.models.quantizer.program import default_reach
from workbench.papers.artifact import read_printed_numbers
from workbench.papers.optm.authors import authors_optm
from workbench.pipeline.api import design
from workbench.questions.density import Density, uniform_density
from workbench.questions.quantization import Quantization
from workbench.solvers.arrays import Vector

EPSILONS = ("0.5", "1", "1.5")
NAMES = ("OPTM", "MVU", "RQM", "ERM")
TABLES = {"0.5": "table3", "1": "table4", "1.5": "table5"}


@lru_cache
def parameters() -> Record:
    """The printed numbers and parameters."""
    return read_printed_numbers("optm")


def listed(values: Iterable[float], form: str = ".4f") -> str:
    """Numbers in a sentence."""
    return ", ".join(f"{value:{form}}" for value in values)


def simulated(quantizer: Quantizer, x: Vector, rng: np.random.Generator) -> Vector:
    """Every coordinate of x, clipped to [-c, c], through the quantizer, in floats from a seeded generator: for
    experiments, which publish nothing. Shape of x."""
    sums = np.cumsum(quantizer.probabilities(x, clip=True), axis=-1)[..., :-1]
    return np.asarray(quantizer.outputs[(rng.random(x.shape)[..., None] >= sums).sum(axis=-1)])


@lru_cache(maxsize=256)
def designed(
    outputs: str | int, epsilon: str, density: Density | None = None, **options: Any
) -> Quantizer:
    """The quantizer at given outputs, or at so many optimised ones within twice the least feasible reach (those of MVU
    anywhere). options: of `workbench design quantizer`."""
    given: Record = {"levels": outputs} if isinstance(outputs, int) else {"bins": outputs}
    quantizer: Quantizer = design(
        Quantization(**given, density=density or uniform_density()), epsilon=epsilon, **options
    ).mechanism
    return quantizer


def authors_optm_at(epsilon: str) -> Quantizer:
    """OPTM of Tables 3-5 as the authors' public program computes it, before any repair."""
    return authors_optm(
        read_bins(parameters()[TABLES[epsilon]]["OPTM"]["bins"]), read_number(epsilon, "epsilon")
    )


def mvu_at(outputs: str | int, epsilon: str) -> Quantizer:
    """MVU's LP at a printed alphabet, or with so many searched outputs."""
    return designed(outputs, epsilon, method="mvu", starts=5)


@lru_cache(maxsize=256)
def printed_at(
    name: str, table: str, epsilon: str, density: Density | None = None
) -> Quantizer | None:
    """A mechanism at the parameters of a table: MVU with 4 searched outputs where no alphabet is printed, RQM with the
    largest private q where none is, None when there is none."""
    given = parameters()[table].get(name, {})
    if name == "OPTM":
        return designed(given["bins"], epsilon, density, method="optm")
    if name == "MVU":
        return mvu_at(given.get("bins", 4), epsilon)
    if name == "ERM":
        return erm(given["bins"], given["gamma"])
    return (
        rqm(given["bins"], given["q"])
        if "q" in given
        else find_largest_q_rqm(given["bins"], epsilon)
    )


def published(epsilon: str, table: str | None = None) -> dict[str, Quantizer]:
    """The mechanisms of a table at one ε, by default of that ε's; at ε = 0.5 the paper has no RQM and ERM."""
    table = table or TABLES[epsilon]
    names = [name for name in NAMES if name == "MVU" or name in parameters()[table]]
    return {name: quantizer for name in names if (quantizer := printed_at(name, table, epsilon))}


def law_question(epsilon: str, density: Density | None = None) -> LawQuestion:
    """On [-1, 1], inputs uniform where no density is given."""
    return LawQuestion(read_number(epsilon, "epsilon"), density or uniform_density())


def certified(quantizer: Quantizer, epsilon: str) -> Quantizer:
    """The quantizer, repaired where its solver's rounding misses ε or unbiasedness (which moves errors by 1e-13)."""
    return repair_quantizer(quantizer, read_number(epsilon, "epsilon"))[0]


@lru_cache
def limit(epsilon: str, *, capped: bool = False) -> Limit:
    """The limit for unlimited outputs, or for outputs within twice the least feasible reach; outward to 4 decimals."""
    eps = float(read_number(epsilon, "epsilon"))
    bounds = compute_mae_limit(eps, reach=default_reach(eps)) if capped else compute_mae_limit(eps)
    return replace(
        bounds,
        lower=math.floor(1e4 * bounds.lower) / 1e4,
        upper=math.ceil(1e4 * bounds.upper) / 1e4,
    )
