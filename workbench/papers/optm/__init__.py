"""Cai, Zhang and Khalili 2024: unbiased private quantization by linear programming."""

from __future__ import annotations

from workbench.papers.artifact import build_declared_paper
from workbench.papers.optm import errata, figures, sgd, tables, vectors

PAPER = build_declared_paper("optm", *map(vars, (tables, figures, vectors, sgd, errata)))
