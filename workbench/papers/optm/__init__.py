"""Cai, Zhang and Khalili 2024: unbiased private quantization by linear programming; every table and figure."""

from __future__ import annotations

from workbench.papers.artifact import Paper
from workbench.papers.optm.errata import all_errata
from workbench.papers.optm.figures import fig2, fig3, price_of_bits
from workbench.papers.optm.sgd import fig4c, fig4d
from workbench.papers.optm.tables import above, parameter_table, table1, table2
from workbench.papers.optm.vectors import fig4a, fig4b

PAPER = Paper(
    name="optm",
    title="Privacy-Aware Randomized Quantization via Linear Programming",
    citation="Z. Cai, X. Zhang, M. M. Khalili, UAI 2024.",
    artifacts={
        "table1": table1,
        "table2": table2,
        **{name: parameter_table(name) for name in (f"table{number}" for number in range(3, 10))},
        "fig2": fig2,
        "fig3": fig3,
        "fig4a": fig4a,
        "fig4b": fig4b,
        "fig4c": fig4c,
        "fig4d": fig4d,
        "price-of-bits": price_of_bits,
        "above": above,
    },
    needs=dict.fromkeys(("fig4c", "fig4d"), "learning"),
    seconds={
        "table1": 15,
        "table2": 28,
        "fig3": 10,
        "fig4a": 26,
        "fig4b": 38,
        "fig4c": 16,
        "fig4d": 16,
        "above": 2,
        "price-of-bits": 170,
        "errata": 5,
    },
    together=[("above", "price-of-bits")],
    errata=all_errata,
    remarks=(
        "Exact values are integrals over all real inputs; the printed ones are averages over 51 points.",
        "Exact epsilon is the audit of p(x, i) at both one-sided limits of every bin and at ±c, in rationals.",
    ),
)
