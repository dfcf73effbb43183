"""Cai, Zhang and Khalili 2024: unbiased private quantization by linear programming; every table and figure."""

from __future__ import annotations

from workbench.papers.artifact import Compute, More, paper_stated
from workbench.papers.optm.errata import COMPUTED
from workbench.papers.optm.figures import fig2, limits, price_of_bits
from workbench.papers.optm.sgd import fig4c, fig4d
from workbench.papers.optm.tables import SOURCES, above, table1, table2
from workbench.papers.optm.vectors import vectors, words

_OWN: dict[str, Compute] = {
    "fig2": fig2, "fig4c": fig4c, "fig4d": fig4d, "price-of-bits": price_of_bits, "above": above,
}  # fmt: skip
_MORE: dict[str, More] = {"table1": table1, "table2": table2, "fig3": limits, "fig4a": words, "fig4b": words}
PAPER = paper_stated("optm", _OWN, {**SOURCES, "vectors": vectors}, COMPUTED, _MORE)
