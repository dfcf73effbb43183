"""The papers: one module for each, which recomputes its tables and figures and compares them.

A new paper is a module with a `Paper` named PAPER, an entry in `PAPERS`, a file
declared/<paper>.toml (`artifact`), and one in printed/ if numbers are compared.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

from workbench.errors import InvalidRequest

if TYPE_CHECKING:
    from workbench.papers.artifact import Paper


# The name of a paper -> its module, whose `PAPER` it is, or module:NAME.
PAPERS = {
    "modulo-noise": "workbench.papers.modulo_noise",
    "dql": "workbench.papers.dql.artifacts",
    "optm": "workbench.papers.optm",
    "label-dp": "workbench.papers.label_dp",
    "dro": "workbench.papers.dro.artifacts",
    "formulas": "workbench.papers.formulas",
    "frontier": "workbench.papers.frontier",
    "published": "workbench.papers.published",
    "solver_comparison": "workbench.papers.solver_comparison",
    "program_library": "workbench.papers.solver_comparison:LIBRARY",
}


def load_paper(name: str) -> Paper:
    """Import the module of a paper and return the paper.

    Args:
        name: The name of the paper, a key of PAPERS.

    Raises:
        InvalidRequest: The name is unknown.
    """
    InvalidRequest.check_choice(PAPERS, "paper", name)
    module, _, attribute = PAPERS[name].partition(":")
    paper: Paper = getattr(importlib.import_module(module), attribute or "PAPER")
    return paper
