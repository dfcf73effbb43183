"""Why no channel meets a request: the constraints and neighbours that conflict, and the least ε and δ that would do."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from models.channel import ChannelModel
from solvers.backend import Options, backend
from solvers.errors import SolverError
from solvers.solution import Start, Termination
from workbench.families.infeasible import SECONDS, conflict_words, least, least_words, rows_named
from workbench.families.labels.request import LARGEST, LabelRequest

__all__ = ["explanation"]


def explanation(model: ChannelModel, request: LabelRequest, epsilons: Sequence[float], options: Options) -> str:
    """Sentences that follow "No channel meets ..."; empty where nothing could be found in time.

    epsilons: of the model's groups of pairs.
    """
    options = replace(options, time_limit=options.time_limit or SECONDS)
    program, delta = model.program, float(request.delta)
    privacy = f"{request.notion} at epsilon = {float(request.epsilon):g}" + (f" and delta = {delta:g}" if delta else "")
    wishes = {block.name: privacy for block in program.rows[1:]}  # the first says that rows are distributions
    wishes |= {name: name for name in request.constraints}
    try:
        data = program.data(model.values(epsilons, delta))
        named = rows_named(program, wishes)
        _, said = conflict_words(data, named, request.solver, options, program.scale, " on these outputs")
        with backend(request.solver).open(program, options) as session:

            def feasible(factor: float, share: float) -> bool | None:
                found = session.solve(model.values([factor * e for e in epsilons], share), start=Start.COLD)
                if found.x is not None:
                    return True
                return False if found.termination is Termination.INFEASIBLE else None

            most = float(LARGEST / request.epsilon)
            factor = least(lambda factor: feasible(factor, delta), 1.0, most)
            value = factor and factor * float(request.epsilon)
            said += least_words("epsilon", value, f"No epsilon up to {LARGEST} would do")
            if model.approximate:
                value = least(lambda share: feasible(1.0, share), delta, 1.0)
                said += least_words("delta", value, "No delta would do")
        return said
    except SolverError:  # a solver that gives up explains nothing
        return ""
