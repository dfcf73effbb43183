"""Why no channel meets a request: the constraints and neighbours that conflict, and the least ε and δ that would do."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import NoReturn

from models.channel import ChannelModel
from solvers.backend import Options, backend
from solvers.errors import SolverError
from solvers.solution import Solution, Start, Termination
from workbench.errors import NotProven
from workbench.families.infeasible import (
    SECONDS,
    conflict_words,
    least,
    least_words,
    refuse_infeasible,
    rows_named,
)

__all__ = ["ChannelBudget", "explanation", "no_channel"]


@dataclass(frozen=True)
class ChannelBudget:
    """What was asked of a channel. epsilon: as it was given; epsilons: of the model's groups of pairs; largest: ε that
    is tried; loss: the budget of it, where δ is minimised."""

    notion: str
    epsilon: float
    epsilons: Sequence[float]
    delta: float
    largest: float
    loss: float = 0.0


def no_channel(
    solution: Solution,
    wishes: str | None,
    why: Callable[[], str] = str,
    trivial: str = "a channel that ignores its input is private",
) -> NoReturn:
    """Raise what an answer without a point means: Infeasible or NotProven.

    wishes: that a channel may fail to meet, None where one meets them, as `trivial` says; why: explains.
    """
    if solution.termination is Termination.INTERRUPTED:
        raise KeyboardInterrupt  # Ctrl-C while the solver ran: there is no incumbent to keep
    status = f"{solution.solver} says {solution.raw_status!r}"
    if solution.termination is Termination.INFEASIBLE:
        what = None if wishes is None else f"channel meets {wishes}"
        refuse_infeasible(solution, status, what, trivial, why)
    raise NotProven(f"{status} and returned no channel.", bound=solution.bound)


def explanation(model: ChannelModel, budget: ChannelBudget, solver: str, options: Options) -> str:
    """Sentences that follow "No channel meets ..."; empty where nothing could be found in time."""
    epsilon, delta = budget.epsilon, budget.delta
    options = replace(options, time_limit=options.time_limit or SECONDS)
    program, free = model.program, model.minimise == "delta"
    privacy = f"{budget.notion} at epsilon = {epsilon:g}" + (f" and delta = {delta:g}" if delta and not free else "")
    # the first block says that rows are distributions; constraints by name and the user's own are called by their label
    wishes = {block.name: privacy if _states_privacy(block.name) else block.name for block in program.rows[1:]}
    if free:
        wishes["losses"] = f"a loss of at most {budget.loss:g}"
    try:
        data = program.data(model.values(budget.epsilons, delta, budget.loss))
        named = rows_named(program, wishes)
        _, words = conflict_words(data, named, solver, options, program.scale, " on these outputs")
        with backend(solver).open(program, options) as session:

            def feasible(factor: float, share: float) -> bool | None:
                solution = session.solve(
                    model.values([factor * e for e in budget.epsilons], share, budget.loss), start=Start.COLD
                )
                if solution.x is not None:
                    return True
                return False if solution.termination is Termination.INFEASIBLE else None

            most = budget.largest / epsilon
            factor = least(lambda factor: feasible(factor, delta), 1.0, most)
            value = factor and factor * epsilon
            words += least_words("epsilon", value, f"No epsilon up to {budget.largest:g} would do")
            if model.approximate and not free:
                value = least(lambda share: feasible(1.0, share), delta, 1.0)
                words += least_words("delta", value, "No delta would do")
        return words
    except SolverError:  # a solver that gives up explains nothing
        return ""


def _states_privacy(name: str) -> bool:
    """Whether the model's privacy rows have this name; those that add up to δ have no label."""
    return name in ("least", "most") or name.startswith(("ratio_", "constraint["))
