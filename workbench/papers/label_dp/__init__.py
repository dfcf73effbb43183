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

from functools import partial

from workbench.papers.artifact import Artifact, Compute, artifact, declared, given, paper_stated, tabled
from workbench.papers.label_dp.curves import SOURCES, growth
from workbench.papers.label_dp.data import DATA
from workbench.papers.label_dp.errata_checks import COMPUTED
from workbench.papers.label_dp.figures import fig2, fig5, table1, table2


def _stated(name: str, full: bool) -> Artifact:
    """An artifact of the file alone; words: of its data set, and how fast the work of each line grows at its end."""
    stated = declared("label_dp")[name]
    words = given(stated["rows"][0], full)
    table = tabled("label_dp", name, SOURCES, full)
    if "data" in stated:
        data = DATA[stated["data"]]()
        words |= {"words": data.words, "stand_in": data.stand_in}
    if effort := stated.get("growth"):
        lines = [line.tail(3) for _, line in table.groupby(["algorithm", "loss"], sort=False)]
        words["growth"] = [growth(line["labels"].tolist(), line[effort].tolist()) for line in lines]
    return artifact("label_dp", name, table, **words)


_OWN: dict[str, Compute] = {"fig2": fig2, "fig5": fig5, "table2": table2}
_OWN |= {name: partial(_stated, name) for name, own in declared("label_dp").items() if {"data", "growth"} & own.keys()}

PAPER = paper_stated("label_dp", _OWN, SOURCES, COMPUTED, {"table1": table1})
