"""Find the module that recomputes the tables and figures of a paper.

    load_paper("dql").artifacts["fig2"](full=False)      # the recomputed Fig. 2, an `Artifact`

A new paper is a module with a `Paper` named PAPER, an entry in `PAPERS`, and a file
declared/<paper>.toml (see `workbench.papers.artifact`). If its printed numbers are compared with
ours, they are in a file printed/<paper>.toml.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

from workbench.errors import InvalidRequest

if TYPE_CHECKING:
    from workbench.papers.artifact import Paper


# Name of a paper -> the module that defines it as PAPER, or "module:NAME" for another variable.
PAPERS = {
    "modulo-noise": "workbench.papers.modulo_noise",
    "dql": "workbench.papers.dql.artifacts",
    "optm": "workbench.papers.optm",
    "label-dp": "workbench.papers.label_dp",
    "dro": "workbench.papers.dro.artifacts",
    "claims": "workbench.papers.claims",
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
    module, _, variable = PAPERS[name].partition(":")
    paper: Paper = getattr(importlib.import_module(module), variable or "PAPER")
    return paper
