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

from workbench.papers.artifact import Artifact, Paper, artifact, declared, given, tabled
from workbench.papers.label_dp.curves import SOURCES, growth
from workbench.papers.label_dp.data import DATA
from workbench.papers.label_dp.errata_checks import errata
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


_OWN = {"fig2": fig2, "fig5": fig5, "table1": table1, "table2": table2}

PAPER = Paper(
    name="label-dp",
    title="Label randomizers for regression",
    citation=(
        "B. Ghazi, P. Kamath, R. Kumar, E. Leeman, P. Manurangsi, A. V. Varadarajan, C. Zhang: *Regression with Label "
        "Differential Privacy*"
    ),
    artifacts={
        name: _OWN.get(name, partial(_stated, name))
        for name in declared("label_dp")
        if name not in ("styles", "errata")
    },
    errata=errata,
    needs=dict.fromkeys(("table1", "fig3", "fig4", "fig6", "table2"), "learning"),
    only_full=("channel_lp_large", "runtime"),
    seconds={"work": 15, "fig2": 4, "table1": 4, "fig4": 3, "channel_lp": 4, "channel_lp_large": 100, "errata": 4},
    timed=("runtime",),
    remarks=(
        "Stand-ins: the Criteo log and the 1940 census cannot be bundled. Their label distributions here were fitted "
        "to the Mechanism blocks of Tables 1 and 2, so agreement with those blocks is a check of consistency, not "
        "evidence. Put the real files in a folder and name it in WORKBENCH_DATA to use them.",
        "Generalization: the paper trains networks on Criteo, the census and a proprietary data set. Ours runs the "
        "same experiment on scikit-learn's bundled diabetes data and on two synthetic sets, so its numbers are not "
        "compared.",
        "Mechanism losses are exact expectations (closed forms and finite sums), not averages over runs.",
        "Squared loss is (o - y)²: the paper defines ½(o - y)², its tables are plain MSE.",
    ),
)
