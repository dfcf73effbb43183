"""Kadam et al. 2024, Optimum Noise Mechanism for Differentially Private Queries in Discrete Finite Sets.

| file              | what                                                                    |
|-------------------|-------------------------------------------------------------------------|
| curves            | the rows of the tables that declared/modulo_noise.toml states           |
| figures           | printed numbers that are no column of them, fig5 and table1             |
| errata_checks     | what is wrong as printed, each with its check                           |
"""

from __future__ import annotations

from workbench.papers.artifact import build_declared_paper
from workbench.papers.modulo_noise import curves, errata_checks, figures

PAPER = build_declared_paper("modulo_noise", *map(vars, (curves, figures, errata_checks)))
