"""Kadam et al. 2024, Optimum Noise Mechanism for Differentially Private Queries in Discrete Finite Sets.

| file              | what                                                                    |
|-------------------|-------------------------------------------------------------------------|
| curves            | the rows of the tables that declared/modulo_noise.toml states           |
| figures           | printed numbers beside them; fig5, table1 and eq59, which need more     |
| formula_checks    | formulas (what is right as printed)                                     |
| errata_checks     | what is not, each with its check                                        |
"""

from __future__ import annotations

from functools import partial

from workbench.papers.artifact import Artifact, Paper, artifact, declared, tabled
from workbench.papers.modulo_noise.curves import SOURCES
from workbench.papers.modulo_noise.errata_checks import errata
from workbench.papers.modulo_noise.figures import COMPARED, eq59, fig5, table1
from workbench.papers.modulo_noise.formula_checks import formulas


def _stated(name: str, full: bool) -> Artifact:
    table = tabled("modulo_noise", name, SOURCES, full)
    compared = COMPARED.get(name)
    return artifact("modulo_noise", name, table, compared(table) if compared else ())


_OWN = {"fig5": fig5, "table1": table1, "eq59": eq59, "formulas": formulas}

PAPER = Paper(
    name="modulo-noise",
    title="Optimal modulo noise",
    citation=(
        "S. Kadam, A. Scaglione, N. Ravi, S. Peisert, B. Lunghino, A. Shumavon: *Optimum Noise Mechanism for "
        "Differentially Private Queries in Discrete Finite Sets*, "
        "[arXiv:2111.11661v3](https://arxiv.org/abs/2111.11661)"
    ),
    artifacts={
        name: _OWN.get(name, partial(_stated, name))
        for name in declared("modulo_noise")
        if name not in ("styles", "errata")
    },
    errata=errata,
    remarks=(
        "Every figure is drawn from our own computations: markers are solver runs (LP (14), MILP (13), (15), by "
        "HiGHS), lines and bars are closed forms; printed values appear as labelled crosses and in the tables below "
        "the figures.",
        "The paper's differences M are one-sided and its δ is PDP; the figures follow it and say so. Where it matters "
        "the symmetric relation of real neighbours stands beside it (Figs 5, 7, 8, Table 1, DP against PDP).",
        "Theorem 3 is not optimal, and its PMFs are not always private: Figs 3, 4, 10, 12 and Table 1 show it beside "
        "the true optimum (column-cut law, confirmed by the MILP).",
        "The discrete count mechanism [10] is missing: the paper does not specify it, so its curve is not reproducible "
        "from the text.",
        "Fig. 14's AMI database is not public; only the differences printed in its caption enter.",
    ),
)
