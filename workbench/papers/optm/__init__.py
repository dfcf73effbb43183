"""Reproduce Cai, Zhang and Khalili 2024: unbiased private quantization by linear programs.

| file     | content                                                          |
|----------|------------------------------------------------------------------|
| common   | the mechanisms at their printed parameters, and ours             |
| authors  | the mechanism OPTM as the authors' public code computes it       |
| tables   | Tables 1 to 9, Fig. 3, and the distance from the limit           |
| figures  | Fig. 2, and the smallest error for each number of outputs        |
| vectors  | Figs. 4a and 4b                                                  |
| sgd      | Figs. 4c and 4d                                                  |
| errata   | the checks of the errata                                         |
| claim_checks | the numbers by which claims in words are judged              |
"""

from __future__ import annotations

from workbench.papers.artifact import build_declared_paper
from workbench.papers.optm import claim_checks, errata, figures, sgd, tables, vectors

PAPER = build_declared_paper(
    "optm", *map(vars, (tables, figures, vectors, sgd, errata, claim_checks))
)
