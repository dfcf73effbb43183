"""One module per paper: its tables and figures, recomputed and shown beside what was printed."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

from workbench.errors import InvalidRequest

if TYPE_CHECKING:
    from workbench.papers.artifact import Paper


# paper -> module with `PAPER`, or module:NAME; one line per paper
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
    """The Paper of a name. Raises InvalidRequest."""
    InvalidRequest.check_choice(PAPERS, "paper", name)
    module, _, attribute = PAPERS[name].partition(":")
    paper: Paper = getattr(importlib.import_module(module), attribute or "PAPER")
    return paper
