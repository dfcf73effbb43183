"""Cai, Zhang and Khalili 2024: unbiased private quantization by linear programming; every table and figure."""

from __future__ import annotations

from workbench.papers.artifact import paper_stated
from workbench.papers.optm import errata, figures, sgd, tables, vectors

PAPER = paper_stated("optm", *map(vars, (tables, figures, vectors, sgd, errata)))
