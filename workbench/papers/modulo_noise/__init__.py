"""Kadam et al. 2024, Optimum Noise Mechanism for Differentially Private Queries in Discrete Finite Sets.

| file              | what                                                                    |
|-------------------|-------------------------------------------------------------------------|
| curves            | the rows of the tables that declared/modulo_noise.toml states           |
| figures           | printed numbers that are no column of them, fig5 and table1             |
| errata_checks     | what is wrong as printed, each with its check                           |
"""

from __future__ import annotations

from workbench.papers.artifact import paper_stated
from workbench.papers.modulo_noise.curves import SOURCES
from workbench.papers.modulo_noise.errata_checks import COMPUTED
from workbench.papers.modulo_noise.figures import MORE, table1

PAPER = paper_stated("modulo_noise", {"table1": table1}, SOURCES, COMPUTED, MORE)
