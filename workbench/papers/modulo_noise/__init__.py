"""Reproduce Kadam et al. 2024, Optimum Noise Mechanism for Differentially Private Queries.

| file              | content                                                                 |
|-------------------|-------------------------------------------------------------------------|
| common            | questions, closed forms, solver runs and audits                         |
| curves            | the rows of the tables in declared/modulo_noise.toml                    |
| figures           | comparisons of numbers that are no columns of these tables; Table 1     |
| errata_checks     | the checks of the errata                                                |
| meters            | a synthetic meter table, and the noise for queries of it (Fig. 14)      |
| claim_checks      | the numbers by which claims in words are judged                         |
"""

from __future__ import annotations

from workbench.papers.artifact import build_declared_paper
from workbench.papers.modulo_noise import claim_checks, curves, errata_checks, figures, meters

PAPER = build_declared_paper(
    "modulo_noise", *map(vars, (curves, figures, meters, errata_checks, claim_checks))
)
