"""The grid that label randomizers are verified on: losses and priors whose optimum a closed form knows.

method     judged by
bins       Algorithm 2 as printed, a dynamic program over every partition into intervals
lp         RR-on-Bins (Theorem 5): its optimum for absolute and pinball losses, a lower bound for the others;
           RRWithPrior for the error-rate loss
"""

from __future__ import annotations

import itertools

from workbench.families.verification import Group
from workbench.mechanisms.label_randomizers.labels import Labels

__all__ = ["groups"]

LOSSES = ("squared", "absolute", "pinball:0.3", "error-rate")


def groups(small: bool) -> list[Group]:
    """Priors x methods x losses, each at every ε."""
    epsilons = (0.5, 2.0) if small else (0.2, 0.5, 1.0, 2.0, 4.0)
    questions = [Labels.uniform(0, 5), Labels([0, 1, 2, 5, 9], [5, 1, 3, 2, 4])]
    if not small:
        questions += [Labels.uniform(-3, 12), Labels(range(12), [2.0**-k for k in range(12)])]
    return [
        Group(question, {"method": method, "loss": loss}, [{"epsilon": epsilon} for epsilon in epsilons])
        for question, method, loss in itertools.product(questions, ("bins", "lp"), LOSSES)
        if method == "lp" or loss != "error-rate"
    ]
