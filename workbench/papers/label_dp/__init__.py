"""Reproduce Ghazi et al., Regression with Label Differential Privacy: figures, tables, errata.

| file            | content                                                               |
|-----------------|-----------------------------------------------------------------------|
| data            | loaders of the real files, and stand-ins if they are missing          |
| lattice         | integer noise on the labels                                           |
| learning        | regressors trained on privatised labels                               |
| curves          | the rows of the tables in declared/label_dp.toml                      |
| figures         | Figs. 2 and 5, and the comparisons of Tables 1 and 2                  |
| errata_checks   | the checks of the errata                                              |
"""

from __future__ import annotations

from workbench.papers.artifact import build_declared_paper
from workbench.papers.label_dp import curves, data, errata_checks, figures

PAPER = build_declared_paper("label_dp", *map(vars, (curves, data, figures, errata_checks)))
