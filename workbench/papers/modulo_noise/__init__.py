"""Kadam et al. 2024, Optimum Noise Mechanism for Differentially Private Queries in Discrete Finite Sets.

| file              | artifacts                                              |
|-------------------|--------------------------------------------------------|
| structure         | fig1, fig2, fig3, fig4                                 |
| comparisons       | fig5, fig6, fig8                                       |
| tradeoffs         | fig7                                                   |
| pmfs              | fig9, fig10, fig14, table1                             |
| vectors           | eq59, fig13                                            |
| curves            | fig11, fig12, dp_vs_pdp (not in the paper)             |
| formula_checks    | formulas (what is right as printed)                    |
| errata_*          | what is not, each with its check                       |
"""

from __future__ import annotations

from workbench.papers.artifact import Paper
from workbench.papers.modulo_noise.comparisons import NOT_REPRODUCIBLE, fig5, fig6, fig8
from workbench.papers.modulo_noise.curves import dp_vs_pdp, fig11, fig12
from workbench.papers.modulo_noise.errata_checks import errata
from workbench.papers.modulo_noise.formula_checks import formulas
from workbench.papers.modulo_noise.pmfs import fig9, fig10, fig14, table1
from workbench.papers.modulo_noise.structure import fig1, fig2, fig3, fig4
from workbench.papers.modulo_noise.tradeoffs import fig7
from workbench.papers.modulo_noise.vectors import eq59, fig13

__all__ = ["PAPER"]

PAPER = Paper(
    name="modulo-noise",
    title="Optimal modulo noise",
    citation=(
        "S. Kadam, A. Scaglione, N. Ravi, S. Peisert, B. Lunghino, A. Shumavon: *Optimum Noise Mechanism for "
        "Differentially Private Queries in Discrete Finite Sets*, "
        "[arXiv:2111.11661v3](https://arxiv.org/abs/2111.11661)"
    ),
    artifacts={
        "fig1": fig1,
        "fig2": fig2,
        "fig3": fig3,
        "fig4": fig4,
        "fig5": fig5,
        "fig6": fig6,
        "fig7": fig7,
        "fig8": fig8,
        "fig9": fig9,
        "fig10": fig10,
        "table1": table1,
        "eq59": eq59,
        "fig11": fig11,
        "fig12": fig12,
        "fig13": fig13,
        "fig14": fig14,
        "dp_vs_pdp": dp_vs_pdp,
        "formulas": formulas,
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
        NOT_REPRODUCIBLE,
        "Fig. 14's AMI database is not public; only the differences printed in its caption enter.",
    ),
)
