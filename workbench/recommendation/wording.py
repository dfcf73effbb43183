"""Write the sentences of a recommendation: which class to use, why, and how other classes compare.

A class is a kind of mechanism, such as "modulo noise"; its row in the table has the columns of
`recommend`. `describe_finite_query` and `describe_range_query` decide which sentences appear and in
which order. Each sentence has its own function.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from fractions import Fraction
from typing import Any

import numpy as np

from workbench.data.points import format_point
from workbench.exact.objects import Values
from workbench.families.channel.query_channels import compute_float_laws
from workbench.io.files import format_fraction
from workbench.io.result import Row
from workbench.mechanisms.range_mechanism import RangeMechanism
from workbench.pipeline.recommendation import Candidate, Query
from workbench.privacy.exposure import compute_exposure, find_float_exposure

# The note of a row that shows a mechanism of another class contains this.
BORROWED_NOTE = "best so far:"
# The note of a class that reached the time limit contains this.
STOPPED_NOTE = "stopped"
# The note of an unbiased class begins with this.
UNBIASED_NOTE = "unbiased"
_NO_CLASS_SENTENCE = "No class serves this query with a certificate."
# The likeliest outputs are shown for this true answer. Without it, the middle answer is shown.
_EXAMPLE_ANSWER = Fraction(42)
# The sentence on the likeliest outputs names this many.
_MAX_SHOWN_OUTPUTS = 3
# The exposure is computed for mechanisms with at most this many masses (answers times outputs).
_MAX_LAW_MASSES = 1_000_000
# If ε differs between pairs, the exposure is computed at this ε, the largest that a channel may
# have.
_MAX_EPSILON = Fraction(20)
# A constant output must be better by more than this share to be mentioned.
_CONSTANT_MARGIN = 1e-9
# The worst-case loss of another class must be smaller by more than this share to be mentioned.
_WORST_LOSS_MARGIN = 1e-6


def format_loss(loss: float) -> str:
    """Format a loss (or an ε) with nine significant digits.

    Args:
        loss: expected loss or ε, the quantity by which the table is sorted.
    """
    return f"{loss:.9g}"


def select_certified(rows: Sequence[Row]) -> list[Row]:
    """Select the rows whose mechanism is proven private.

    Args:
        rows: rows of the table.
    """
    return [row for row in rows if row["objective"] is not None and row["certified"]]


def choose_row(rows: Sequence[Row], candidates: Sequence[Candidate]) -> Row | None:
    """Choose the row to use: the simplest one among those with the smallest loss.

    Args:
        rows: rows of the table, the smallest loss first.
        candidates: the compared classes. A class with a smaller `complexity` is simpler.

    Returns:
        The row of the class to use. None if no class is certified.
    """
    certified_rows = select_certified(rows)
    complexities = {candidate.name: candidate.complexity for candidate in candidates}
    # If every row with the smallest loss shows a mechanism of another class, the first row is used.
    best_rows = _select_tied(certified_rows) or certified_rows[:1]
    return min(best_rows, key=lambda row: complexities[row["class"]], default=None)


def _select_tied(certified_rows: Sequence[Row]) -> list[Row]:
    """Return the rows with the smallest loss, as it is printed, that have their own mechanism."""
    tied_rows = []
    for row in certified_rows:
        is_smallest = _format_objective(row) == _format_objective(certified_rows[0])
        if is_smallest and BORROWED_NOTE not in row["notes"]:
            tied_rows.append(row)
    return tied_rows


def _format_objective(row: Row) -> str:
    """Format the loss, or the ε, of a row."""
    return format_loss(row["objective"])


# Sentences on finite queries.


def describe_finite_query(
    query: Query, rows: list[Row], candidates: Sequence[Candidate], mechanisms: Values
) -> Iterator[str]:
    """Yield the sentences on a finite query.

    Args:
        query: the query.
        rows: rows of the table, the smallest loss first.
        candidates: the compared classes.
        mechanisms: name of a class -> its mechanism, for classes that have one.
    """
    best = choose_row(rows, candidates)
    if best is None:
        yield _NO_CLASS_SENTENCE
        return
    certified_rows = select_certified(rows)
    mechanism = mechanisms.get(best["class"])
    if query.aim.max_loss is not None:
        yield _recommend_least_epsilon(query, best)
        yield from _describe_stopped(query, rows)
        yield from _describe_exposure(query, mechanism)
        return
    lowest_loss = None
    if len(candidates) > 1:
        lowest_loss = _find_lowest_bound(query, rows)
    loss_kind = _name_loss(query.question.prior is None)
    yield _recommend_class(best, loss_kind, lowest_loss=lowest_loss)
    yield from _describe_stopped(query, rows)
    yield from _describe_constant_output(query, best)
    yield from _describe_exposure(query, mechanism)
    yield from _describe_uncertified(rows, best)
    tied_classes = [row["class"] for row in _select_tied(certified_rows) if row is not best]
    if tied_classes:
        yield f"Classes with the same loss that are less simple: {'; '.join(tied_classes)}."
    classes_in_best = next(item.contains for item in candidates if item.name == best["class"])
    contained_classes = [row["class"] for row in certified_rows if row["class"] in classes_in_best]
    if contained_classes and best["bound"] is not None:
        yield (
            f"These classes are special cases of it, so its optimum is at least as good: "
            f"{'; '.join(contained_classes)}."
        )
    if best.get("worst") is not None and query.question.prior is not None:
        yield _describe_wrong_prior(best, certified_rows)
    if mechanism is not None and BORROWED_NOTE not in best["notes"]:
        yield _describe_outputs(query, mechanism)
    if query.user_baselines or query.compared_names:
        # The import is slow.
        from workbench.recommendation.published import describe_baseline_distances

        yield from describe_baseline_distances(query)


def _name_loss(is_worst_case: bool) -> str:
    """Return the name of the loss that is minimised."""
    return "worst-case loss" if is_worst_case else "expected loss"


def _recommend_class(
    best: Row, loss_kind: str, purpose: str = "", lowest_loss: float | None = None
) -> str:
    """Return the sentences that recommend a class, with its loss and the proven bound.

    Args:
        best: row of the class.
        loss_kind: name of the loss, from `_name_loss`.
        purpose: clause that says what the class is for. Empty: it is the class to use.
        lowest_loss: lower bound of all classes, which is stated if the class has no bound.
    """
    loss = format_loss(best["objective"])
    recommendation = f"Use the {best['class']}{purpose}: {loss_kind} {loss}."
    bound = best["bound"]
    subject = "its class"
    if bound is None:
        bound = lowest_loss
        subject = "all compared classes"
    # A bound of at most 0 says nothing, unless the loss is 0 too.
    if bound is None or (bound <= 0 and best["objective"]):
        return recommendation
    if format_loss(bound) != loss:
        return f"{recommendation} The proven lower bound for {subject} is {format_loss(bound)}."
    if best["bound"] is None:
        return f"{recommendation} No compared class has a smaller loss."
    return f"{recommendation} It is optimal in its class."


def _recommend_least_epsilon(query: Query, best: Row, purpose: str = "") -> str:
    """Return the sentences that recommend a class for a largest loss, with its ε and the bound."""
    max_loss = float(query.aim.max_loss or 0)
    epsilon = format_loss(best["objective"])
    sentence = (
        f"For a loss of at most {max_loss:g} use the {best['class']}{purpose}: epsilon = {epsilon}."
    )
    if best["bound"] is None:
        return sentence
    bound = format_loss(best["bound"])
    return f"{sentence} The proven lower bound on the epsilon of its class is {bound}."


def _find_lowest_bound(query: Query, rows: Sequence[Row]) -> float | None:
    """Return a lower bound for all classes of the table.

    None for several runs with δ > 0, because designs for them have no bound.
    """
    if query.aim.runs > 1 and query.claim.delta:
        return None
    lower_bounds = []
    for row in rows:
        if row["bound"] is not None or STOPPED_NOTE in row["notes"]:
            # A stopped class without a bound has the trivial bound 0.
            lower_bounds.append(row["bound"] or 0.0)
        elif row["objective"] is not None:
            # The parameters of this mechanism are given. Its class has no other one, so its loss is
            # the bound of its class.
            lower_bounds.append(row["objective"])
    return min(lower_bounds)


def _describe_stopped(query: Query, rows: Sequence[Row]) -> Iterator[str]:
    """Yield a sentence on the classes that reached the time limit without a result."""
    stopped_classes = []
    for row in rows:
        has_result = row["objective"] is not None and BORROWED_NOTE not in row["notes"]
        if STOPPED_NOTE in row["notes"] and not has_result:
            stopped_classes.append(row["class"])
    if stopped_classes and query.time is not None:
        improvement = "a smaller loss" if query.aim.max_loss is None else "a smaller epsilon"
        yield (
            f"The time limit of {query.time.seconds:g} seconds was reached before these classes "
            f"had a result: {'; '.join(stopped_classes)}. Each may have {improvement}. "
            "Increase --time-limit."
        )


def _describe_constant_output(query: Query, best: Row) -> Iterator[str]:
    """Yield a sentence on the best constant output, if its loss is smaller."""
    losses = query.losses.floats
    prior = query.question.prior
    if prior is None:
        output_losses = losses.max(axis=0)
    else:
        output_losses = np.array([float(p) for p in prior]) @ losses
    output = int(output_losses.argmin())
    loss = output_losses[output]
    if best["objective"] > loss * (1 + _CONSTANT_MARGIN):
        point = _format_briefly(query.question.outputs[output])
        yield (
            f"Publishing {point} for every answer has the smaller loss {loss:.9g}, and is private "
            "at any budget."
        )


def _describe_exposure(query: Query, mechanism: Any) -> Iterator[str]:
    """Yield a sentence on δ: the probability of outputs that a neighbour practically never
    produces.

    See `privacy.exposure`.
    """
    if not query.claim.delta or mechanism is None:
        return
    exposure = _compute_query_exposure(query, mechanism)
    if exposure:
        yield (
            f"With probability up to {exposure:.3g} it publishes an output that a neighbour cannot "
            "produce, or produces 10,000 times more rarely than epsilon allows."
        )


def _compute_query_exposure(query: Query, mechanism: Any) -> float:
    """Return the exposure of a mechanism, a probability.

    If it is not computed, the result is δ, an upper bound; for real answers it is 0, so that no
    sentence speaks of it.
    """
    epsilon = query.claim.epsilon
    if epsilon is None or query.is_per_distance:
        epsilon = _MAX_EPSILON
    upper_bound = float(query.claim.delta or 0)
    if query.has_real_answers:
        if not isinstance(mechanism, RangeMechanism):
            # For real answers the exposure is computed for channels of a range only.
            return 0.0
        exact_exposure = compute_exposure(mechanism, epsilon)
        return upper_bound if exact_exposure is None else float(exact_exposure)
    question = query.question
    if question.k * question.m > _MAX_LAW_MASSES:
        return upper_bound
    rows, _ = compute_float_laws(query, mechanism)
    result = find_float_exposure(
        rows, question.neighbour_pairs, epsilon, is_directed=question.directed
    )
    if result is None:
        return upper_bound
    exposure, _ = result
    return exposure


def _describe_uncertified(rows: Sequence[Row], best: Row) -> Iterator[str]:
    """Yield a sentence on mechanisms with a smaller loss that are not proven private."""
    better_rows = []
    for row in rows:
        loss = row["objective"]
        if not row["certified"] and loss is not None and loss < best["objective"]:
            better_rows.append(row)
    smaller_losses = [f"{row['class']} ({_format_objective(row)})" for row in better_rows]
    if smaller_losses:
        loss = format_loss(best["objective"])
        yield f"Not certified, with a smaller loss than {loss}: {'; '.join(smaller_losses)}."


def _describe_wrong_prior(best: Row, certified_rows: Sequence[Row]) -> str:
    """Return a sentence on the loss of the worst answer, which counts if the prior is wrong."""
    known_rows = [row for row in certified_rows if row.get("worst") is not None]
    safest = min(known_rows, key=lambda row: row["worst"])
    sentence = (
        f"If the prior is wrong, its expected loss for one answer can be up to {best['worst']:.6g}"
    )
    if safest["worst"] < best["worst"] * (1 - _WORST_LOSS_MARGIN):
        sentence += f"; for the {safest['class']} it is at most {safest['worst']:.6g}"
    return f"{sentence}."


def _describe_outputs(query: Query, mechanism: Any) -> str:
    """Return a sentence on the likeliest outputs for one answer: 42, or the middle one."""
    inputs = query.question.inputs
    if _EXAMPLE_ANSWER in inputs:
        position = inputs.index(_EXAMPLE_ANSWER)
    else:
        order = [*range(len(inputs))]
        if query.grid is not None:
            # The middle answer is the median of the numbers, in whatever order they are listed.
            order.sort(key=query.grid.places.__getitem__)
        position = order[len(inputs) // 2]
    rows, outputs = compute_float_laws(query, mechanism)
    masses = zip(rows[position].tolist(), outputs, strict=True)
    likeliest = sorted(masses, key=lambda pair: -pair[0])[:_MAX_SHOWN_OUTPUTS]
    parts = [f"{_format_briefly(output)} ({mass:.3g})" for mass, output in likeliest if mass > 0]
    answer = _format_briefly(inputs[position])
    return f"For example, the likeliest outputs for the true answer {answer}: {', '.join(parts)}."


def _format_briefly(value: Any) -> str:
    """Format an output; a number with six digits."""
    point = format_point(value)
    return f"{point:.6g}" if isinstance(point, float) else str(point)


# Sentences on several runs, and on ranges.


def describe_runs(query: Query, candidates: Sequence[Candidate]) -> Iterator[str]:
    """Yield the sentences on the budget of several runs, or answers.

    Args:
        query: the query.
        candidates: the classes.
    """
    runs = query.aim.runs
    if runs == 1:
        return
    has_delta = bool(query.claim.delta)
    names = ("epsilon", "delta") if has_delta else ("epsilon",)
    whole_budget = ", ".join(
        f"{name} = {format_fraction(query.claim.values[name])}" for name in names
    )
    run_budget = ", ".join(
        f"{name} = {format_fraction(query.claim.values[name] / runs)}" for name in names
    )
    sentences = (
        f"The budget is for {runs} runs. It also covers any number of such answers if one person "
        f"changes at most {runs} of them. Each run has {run_budget}, which adds up to "
        f"{whole_budget}. The losses are those of one run."
    )
    joint_classes = [
        candidate.name
        for candidate in candidates
        if candidate.supports_runs and candidate.solve is not None
    ]
    if joint_classes and has_delta:
        sentences += (
            f" Exceptions: {'; '.join(joint_classes)} are designed for all {runs} runs together, "
            "and the whole budget is proven."
        )
    if has_delta:
        sentences += (
            f" No bound is proven for designs for {runs} runs, so no class is proven optimal."
        )
    yield sentences


def describe_range_query(
    query: Query, rows: list[Row], candidates: Sequence[Candidate], mechanisms: Values
) -> Iterator[str]:
    """Yield the sentences on a query with real answers: one answer alone, and averages of many.

    Args:
        query: the query.
        rows: rows of the table, the smallest loss first.
        candidates: the compared classes.
        mechanisms: name of a class -> its mechanism, for classes that have one.
    """
    certified_rows = select_certified(rows)
    if not certified_rows:
        yield _NO_CLASS_SENTENCE
        yield from _describe_stopped(query, rows)
        return
    best = certified_rows[0]
    unbiased_rows = [row for row in certified_rows if row["notes"].startswith(UNBIASED_NOTE)]
    if query.aim.max_loss is not None:
        yield _recommend_least_epsilon(query, best)
        yield from _describe_stopped(query, rows)
        yield from _describe_exposure(query, mechanisms.get(best["class"]))
        if unbiased_rows and best not in unbiased_rows:
            purpose = " if many answers are averaged (unbiased)"
            yield _recommend_least_epsilon(query, unbiased_rows[0], purpose)
        return
    if best not in unbiased_rows:
        yield _recommend_biased_class(query, best)
        yield from _describe_exposure(query, mechanisms.get(best["class"]))
    yield from _recommend_for_averages(query, unbiased_rows, len(candidates))
    yield from _describe_stopped(query, rows)
    yield from _describe_uncertified(rows, best)
    output, constant_loss = map(float, query.range_query.best_constant(str(query.aim.loss)))
    if best["objective"] > constant_loss:
        yield (
            f"Publishing {output:g} for every answer has the loss {constant_loss:.9g}, which is "
            "smaller than every loss of the table."
        )


def _recommend_biased_class(query: Query, best: Row) -> str:
    """Return the sentences that recommend a biased class for one answer alone."""
    loss_kind = _name_loss(query.range_query.weights is None)
    loss = format_loss(best["objective"])
    sentences = f"Use the {best['class']} for one answer alone (biased): {loss_kind} {loss}."
    if best["bound"]:
        sentences += (
            f" The proven lower bound for all channels of the range is "
            f"{format_loss(best['bound'])}."
        )
    else:
        sentences += " Other channels may have a smaller loss."
    if best["bias"]:
        sentences += f" Its bias of up to {best['bias']:.6g} stays in every average."
    return sentences


def _recommend_for_averages(
    query: Query, unbiased_rows: Sequence[Row], class_count: int
) -> Iterator[str]:
    """Yield the sentences that recommend the unbiased class of smallest variance."""
    known_rows = [row for row in unbiased_rows if row["rmse"] is not None]
    if not known_rows:
        return
    # Among equal errors, a class with its own mechanism comes first.
    best = min(known_rows, key=lambda row: (row["rmse"], BORROWED_NOTE in row["notes"]))
    loss_kind = _name_loss(query.range_query.weights is None)
    purpose = " if many answers are averaged (unbiased)"
    sentences = _recommend_class(best, loss_kind, purpose)
    # With the squared loss, the loss above is the variance. One class is compared with no other.
    if class_count != 1 and query.aim.loss != "squared":
        sentences += (
            f" Its variance, {best['rmse'] ** 2:.6g}, is the smallest of the certified unbiased "
            "classes."
        )
    yield sentences
