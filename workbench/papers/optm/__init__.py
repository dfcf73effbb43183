"""Cai, Zhang and Khalili 2024: unbiased private quantization by linear programming; every table and figure."""

from __future__ import annotations

from workbench.papers.artifact import Compute, paper_stated
from workbench.papers.optm.errata import COMPUTED
from workbench.papers.optm.figures import fig2, fig3, price_of_bits
from workbench.papers.optm.sgd import fig4c, fig4d
from workbench.papers.optm.tables import SOURCES, above, table1, table2
from workbench.papers.optm.vectors import fig4a, fig4b

_OWN: dict[str, Compute] = {
    "table1": table1, "table2": table2, "fig2": fig2, "fig3": fig3, "fig4a": fig4a, "fig4b": fig4b, "fig4c": fig4c,
    "fig4d": fig4d, "price-of-bits": price_of_bits, "above": above,
}  # fmt: skip
PAPER = paper_stated("optm", _OWN, SOURCES, COMPUTED)
