"""Ghazi et al., Regression with Label Differential Privacy: its figures, tables and errata.

| file            | artifacts                                                             |
|-----------------|-----------------------------------------------------------------------|
| data            | loaders of the real files, stand-ins when they are absent             |
| mechanism_loss  | fig2, table1, table2, fig6's and fig3's mechanism panels              |
| learning        | regressors on privatised labels                                       |
| pictures        | fig3, fig4, fig5, fig6                                                |
| run_time        | work, runtime: steps and seconds of both (not in the paper)           |
| extras          | channel_lp(_large), unbiasedness, splits (not in the paper)           |
| errata_checks   | what is wrong as printed, each with its check                         |
"""

from __future__ import annotations

from workbench.papers.artifact import Paper
from workbench.papers.label_dp.errata_checks import errata
from workbench.papers.label_dp.extras import channel_lp, channel_lp_large, splits, unbiasedness
from workbench.papers.label_dp.mechanism_loss import fig2, table1, table2
from workbench.papers.label_dp.pictures import fig3, fig4, fig5, fig6
from workbench.papers.label_dp.run_time import runtime, work

__all__ = ["PAPER"]

PAPER = Paper(
    name="label-dp",
    title="Label randomizers for regression",
    citation=(
        "B. Ghazi, P. Kamath, R. Kumar, E. Leeman, P. Manurangsi, A. V. Varadarajan, C. Zhang: *Regression with Label "
        "Differential Privacy*"
    ),
    artifacts={
        "fig2": fig2,
        "table1": table1,
        "fig3": fig3,
        "fig4": fig4,
        "fig5": fig5,
        "fig6": fig6,
        "table2": table2,
        "work": work,
        "runtime": runtime,
        "channel_lp": channel_lp,
        "channel_lp_large": channel_lp_large,
        "unbiasedness": unbiasedness,
        "splits": splits,
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
