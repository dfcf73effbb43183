"""The mechanisms of the paper at its printed parameters, and ours beside them; each computed once."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import replace
from functools import lru_cache

import numpy as np

from models.quantizer import usual_reach
from solvers.arrays import Vector
from workbench.exact.numbers import exact
from workbench.exact.objects import Record
from workbench.families.quantizer.certify import repaired
from workbench.families.quantizer.laws import LawQuestion, exact_quantizer
from workbench.families.quantizer.limit import Limit, mae_limit
from workbench.families.quantizer.mvu import mvu
from workbench.families.quantizer.optm import optm_thinner
from workbench.families.quantizer.output_search import optimised_bins
from workbench.families.quantizer.search import largest_q
from workbench.mechanisms.baselines.two_bin import erm, rqm
from workbench.mechanisms.density import Density, uniform
from workbench.mechanisms.piecewise_affine import Quantizer
from workbench.mechanisms.quantization import read_bins
from workbench.papers.artifact import printed
from workbench.papers.optm.authors import authors_optm

EPSILONS = ("0.5", "1", "1.5")
NAMES = ("OPTM", "MVU", "RQM", "ERM")
TABLES = {"0.5": "table3", "1": "table4", "1.5": "table5"}


@lru_cache
def parameters() -> Record:
    """The printed numbers and parameters."""
    return printed("optm")


def listed(values: Iterable[float], form: str = ".4f") -> str:
    """Numbers in a sentence."""
    return ", ".join(f"{value:{form}}" for value in values)


def simulated(quantizer: Quantizer, x: Vector, rng: np.random.Generator) -> Vector:
    """Every coordinate of x, clipped to [-c, c], through the quantizer, in floats from a seeded generator: for
    experiments, which publish nothing. Shape of x."""
    sums = np.cumsum(quantizer.probabilities(x, clip=True), axis=-1)[..., :-1]
    return np.asarray(quantizer.outputs[(rng.random(x.shape)[..., None] >= sums).sum(axis=-1)])


def optm_at(bins: str, epsilon: str, density: Density | None = None) -> Quantizer:
    """OPTM at given bins: the best of its slices by its own objective; thinner slices when 0.01 leaves no solution."""
    answer = optm_thinner(read_bins(bins), exact(epsilon, "epsilon"), density or uniform())
    assert answer
    return certified(answer.quantizer, epsilon)


def authors_optm_at(epsilon: str) -> Quantizer:
    """OPTM of Tables 3-5 as the authors' public program computes it, before any repair."""
    return authors_optm(read_bins(parameters()[TABLES[epsilon]]["OPTM"]["bins"]), exact(epsilon, "epsilon"))


def mvu_at(outputs: str | int, epsilon: str) -> Quantizer:
    """MVU's LP at a printed alphabet, or with so many searched outputs."""
    bins = read_bins(outputs) if isinstance(outputs, str) else outputs
    return certified(mvu(law_question(epsilon, loss="squared"), bins).quantizer, epsilon)


@lru_cache(maxsize=256)
def printed_at(name: str, table: str, epsilon: str, density: Density | None = None) -> Quantizer | None:
    """A mechanism at the parameters of a table: MVU with 4 searched outputs where no alphabet is printed, RQM with the
    largest private q where none is, None when there is none."""
    given = parameters()[table].get(name, {})
    if name == "OPTM":
        return optm_at(given["bins"], epsilon, density)
    if name == "MVU":
        return mvu_at(given.get("bins", 4), epsilon)
    if name == "ERM":
        return erm(given["bins"], given["gamma"])
    return rqm(given["bins"], given["q"]) if "q" in given else largest_q(given["bins"], epsilon)


def published(epsilon: str, table: str | None = None) -> dict[str, Quantizer]:
    """The mechanisms of a table at one ε, by default of that ε's; at ε = 0.5 the paper has no RQM and ERM."""
    table = table or TABLES[epsilon]
    names = [name for name in NAMES if name == "MVU" or name in parameters()[table]]
    return {name: quantizer for name in names if (quantizer := printed_at(name, table, epsilon))}


@lru_cache(maxsize=256)
def law_question(epsilon: str, density: Density | None = None, loss: str = "absolute") -> LawQuestion:
    """On [-1, 1], inputs uniform where no density is given."""
    return LawQuestion(exact(epsilon, "epsilon"), density or uniform(), loss)


def exact_at(bins: str, epsilon: str, density: Density | None) -> Quantizer:
    """The exact quantizer at given bins, on 41 knots."""
    design = exact_quantizer(read_bins(bins), law_question(epsilon, density), knots=41)
    assert design
    return certified(design.quantizer, epsilon)


@lru_cache(maxsize=256)
def best_exact(
    levels: int, epsilon: str, density: Density | None = None, *, loss: str = "absolute", starts: int = 4
) -> Quantizer:
    """The exact quantizer with optimised bins, within twice the least feasible reach."""
    design = optimised_bins(levels, law_question(epsilon, density, loss), starts=starts)
    assert design
    return certified(design.quantizer, epsilon)


def certified(quantizer: Quantizer, epsilon: str) -> Quantizer:
    """The quantizer, repaired where its solver's rounding misses ε or unbiasedness (which moves errors by 1e-13)."""
    return repaired(quantizer, exact(epsilon, "epsilon"))[0]


@lru_cache
def limit(epsilon: str, *, capped: bool = False) -> Limit:
    """The limit for unlimited outputs, or for outputs within twice the least feasible reach; outward to 4 decimals."""
    eps = float(exact(epsilon, "epsilon"))
    bounds = mae_limit(eps, reach=usual_reach(eps)) if capped else mae_limit(eps)
    return replace(bounds, lower=math.floor(1e4 * bounds.lower) / 1e4, upper=math.ceil(1e4 * bounds.upper) / 1e4)
