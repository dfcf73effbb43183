"""Ghazi et al., Regression with Label Differential Privacy: its figures, tables and errata.

| file            | what                                                                  |
|-----------------|-----------------------------------------------------------------------|
| data            | loaders of the real files, stand-ins when they are absent             |
| lattice         | integer noise on the labels                                           |
| learning        | regressors on privatised labels                                       |
| curves          | the rows of the tables that declared/label_dp.toml states             |
| figures         | fig2, fig5 and Tables 1 and 2, beside what is printed                 |
| errata_checks   | what is wrong as printed, each with its check                         |
"""

from __future__ import annotations

from workbench.papers.artifact import build_declared_paper
from workbench.papers.label_dp import curves, data, errata_checks, figures

PAPER = build_declared_paper("label_dp", *map(vars, (curves, data, figures, errata_checks)))
