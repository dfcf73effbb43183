"""Make the figures of the explorer's page as plain data, which the page draws in the browser.

The figures are laws of mechanisms, their privacy, and rows of designs. Numbers are floats, since
they are only for pictures. `workbench.exact.numbers.to_jsonable` turns a figure into strict JSON. A
figure is a dictionary with the key "kind". The kinds are those of `workbench.io.plain_figures`, and

    map          regions of a plane (`workbench.explorer.formula_map`)
    picture      an SVG that the family draws
    table        heads, rows

Two further keys may be added. "law" is True if the figure shows the law of the design, over which
the page draws published laws. "table" has the numbers behind the figure, which the page can save.
A look, such as "dashed", is how the page draws a series (`workbench.io.plain_figures`).
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Sequence
from fractions import Fraction
from statistics import NormalDist
from typing import TYPE_CHECKING, Any

import numpy as np

from workbench.errors import WorkbenchError
from workbench.exact.objects import Values
from workbench.io.plain_figures import FigureData, make_line_figure, make_series
from workbench.io.shown import render_picture
from workbench.mechanisms.mechanism import as_mechanism
from workbench.privacy.law_table import build_law_table, read_cell_number

if TYPE_CHECKING:
    from workbench.pipeline.design import Design
    from workbench.privacy.claim import Claim
    from workbench.privacy.curve import Profile


# Option -> the label of its axis: a word and its symbol.
AXIS_LABELS = {
    "epsilon": "privacy budget ε",
    "delta": "δ",
    "rho": "privacy budget ρ",
    "mu": "privacy budget μ",
    "alpha": "order α",
    "runs": "runs T",
    "max_loss": "maximal loss",
    "bits": "mean bits",
}

# Loss -> the name of its mean.
LOSS_NAMES = {
    "squared": "mean squared error",
    "absolute": "mean absolute error",
    "error-rate": "error rate",
}

# The colours of series, as positions in the palette of the page.
_CLOSED_FORM_COLOURS = {"optimum": 2, "upper bound": 1, "lower bound": 4}
_DESIGN_COLOUR = 0
_FRONTIER_COLOUR = 1
_REQUEST_COLOUR = 6
_GUESSING_COLOUR = 7

# Published mechanism -> its name on the page. Others keep their names.
_PUBLISHED_NAMES = {
    "geometric": "geometric (discrete Laplace)",
    "truncated geometric": "truncated geometric (discrete Laplace)",
    "clamped geometric": "geometric (discrete Laplace), clamped",
    "clamped truncated geometric": "truncated geometric (discrete Laplace), clamped",
    "laplace": "Laplace",
    "gaussian": "Gaussian",
}
_MIN_LINE_POINTS = 9  # Fewer points are not joined by a line.
# A published mechanism is not drawn where its loss exceeds this multiple of the smallest one.
_MAX_PUBLISHED_RATIO = 20

_MAX_BARS = 2000  # A law with more values is not drawn as bars.
_MAX_CELLS = 20_000  # A law with more cells is not drawn as a heat map.
_MAX_LINES = 24  # A law with more lines is not drawn as lines.
_MAX_DENSITY_CELLS = 500  # Outlines of densities are thinned to about this many cells.
_MAX_PROFILE_MASSES = 400_000  # A profile of more masses would take longer than two seconds.
_MAX_TRADEOFF_POINTS = 400  # A trade-off curve uses at most this many breakpoints.
# Type I errors at which a trade-off curve is computed, besides its breakpoints.
_EVEN_TYPE_I_ERRORS = np.linspace(0, 1, 101)
_SMALL_TYPE_I_ERRORS = np.geomspace(1e-4, 1, 60)
_DIVERGENCE_ORDER_RANGE = (1.05, 64)  # The smallest and the largest of these orders.
_DIVERGENCE_ORDERS = 60  # The number of orders of a chart of Rényi divergences.
_MAX_EXPONENT = 700.0  # Larger exponents are cut to this, because e^x would overflow.

# Breakpoints are listed in a table if their number times the number of pairs is at most this.
_MAX_EXACT_POINTS = 2000

# An axis of positive values is logarithmic if the largest value exceeds one of these multiples of
# the smallest value and of the median.
_TALL_RATIO = 1e4
_MEDIAN_RATIO = 100

_NEAR_RATIO = 1.05  # An upper bound is drawn if it is at most this multiple of the objective.
_OPEN_GAP = 1e-6  # A relative gap between objective and bound is drawn from this size on.


def _make_table_figure(
    title: str, heads: Sequence[str], rows: Iterable[Sequence[Any]]
) -> FigureData:
    """Return a table as a figure."""
    return {"kind": "table", "title": title, "heads": [*heads], "rows": [*rows], "note": ""}


# Figures of the mechanism.


def make_law_figures(design: Design, *, is_whole: bool = True) -> list[FigureData]:
    """Return figures of the mechanism.

    They are bars, a heat map or lines of its law, or else the family's own picture, or else the
    family's tables. A picture may omit invisible parts. With `is_whole`, the whole law can be
    saved in exact numbers.

    Args:
        design: The design. Without a mechanism there are no figures.
        is_whole: Whether the table of the whole law is included.
    """
    mechanism = design.mechanism
    if mechanism is None:
        return []
    figure = make_law_figure(mechanism)
    if figure is None:
        if not design.family.draws:
            return [_make_table_figure(*parts) for parts in design.family.list_tables(design)]
        picture = render_picture(design.plot)
        figure = {"kind": "picture", "title": "The mechanism", "svg": picture, "law": True}
    return [add_law_table(figure, mechanism) if is_whole else {**figure, "law": True}]


def make_law_figure(mechanism: Any) -> FigureData | None:
    """Return the law of a mechanism as bars, a heat map or lines.

    Args:
        mechanism: Any mechanism. It is drawn if it has a method `drawing`.

    Returns:
        The figure, or None if the law has none of these forms or is too large.
    """
    drawing = getattr(mechanism, "drawing", None)
    # Outputs with several coordinates are drawn as a map by the family itself.
    if drawing is None or np.ndim(getattr(mechanism, "outputs", ())) > 1:
        return None
    figure: FigureData = drawing()
    if figure["kind"] == "lines":
        is_small = len(figure["series"]) <= _MAX_LINES
    else:
        max_count = _MAX_BARS if figure["kind"] == "bars" else _MAX_CELLS
        is_small = np.size(figure["values"]) <= max_count
    return figure if is_small else None


def add_law_table(figure: FigureData, mechanism: Any) -> FigureData:
    """Return a figure of a mechanism with the whole law, as the table that `workbench audit` reads.

    Args:
        figure: A figure of the law of the mechanism.
        mechanism: The mechanism whose law is listed.
    """
    law = build_law_table(mechanism)
    if law is None:
        return figure
    heads, rows = law
    approximations = None
    if len(heads) == 2:
        # The columns are a value and its exact probability. The page also shows the probability as
        # a float.
        approximations = [float(read_cell_number(row[1])) for row in rows]
    table = {"heads": heads, "rows": rows, "about": approximations}
    return {**figure, "law": True, "table": table}


def name_published(name: str) -> str:
    """Return the name of a published mechanism on the page.

    Args:
        name: Its name in tables, or that of its law, such as "geometric, of the answer 4".
    """
    base, comma, suffix = name.partition(",")
    return f"{_PUBLISHED_NAMES.get(base, base)}{comma}{suffix}"


def make_published_curves(
    values: Sequence[Fraction], losses: Sequence[dict[str, float]]
) -> list[FigureData]:
    """Return the losses of published mechanisms against a number of the budget, as series.

    Args:
        values: The values of the number.
        losses: For each value, the losses of the mechanisms that apply there, by name.
    """
    names = list(dict.fromkeys(name for losses_here in losses for name in losses_here))
    series = []
    for position, name in enumerate(names):
        x = []
        y = []
        for value, losses_here in zip(values, losses, strict=True):
            # A mechanism that does not apply has an infinite loss here, and is left out.
            loss = losses_here.get(name, math.inf)
            if loss <= _MAX_PUBLISHED_RATIO * min(losses_here.values(), default=0.0):
                x.append(float(value))
                y.append(loss)
        look = "line" if len(x) >= _MIN_LINE_POINTS else "filled"
        series.append(make_series(name_published(name), look, position + 1, x, y))
    return series


def make_published_curve_figure(series: Sequence[FigureData], loss: str) -> FigureData | None:
    """Return a chart of the losses of published mechanisms against ε, or None without series.

    Args:
        series: The series of `make_published_curves`.
        loss: The name of the loss.
    """
    if not series:
        return None
    label = LOSS_NAMES.get(loss, "expected loss")
    axis_label = AXIS_LABELS["epsilon"]
    title = _make_curve_title(label, axis_label)
    figure = make_line_figure(title, axis_label, label, series, log=True)
    heights = [height for part in series for height in part["y"]]
    # A logarithmic axis needs positive values.
    figure["y"]["log"] = min(heights) > 0
    return figure


def make_published_outlines(design: Design) -> list[FigureData]:
    """Return laws of published noise at the same budget, which are drawn over the design's law.

    Args:
        design: The design, with a mechanism.

    Returns:
        For each law: "name", "x" and "y". A density has one x more than y.
    """
    outlines: list[FigureData] = []
    for name, (x, y) in design.family.comparison_laws(design).items():
        if len(y) >= _MAX_BARS:
            continue
        # A density has one edge more than values. It is drawn with fewer cells.
        is_density = len(x) > len(y)
        stride = max(1, math.ceil(len(y) / _MAX_DENSITY_CELLS)) if is_density else 1
        shown_name = name_published(name)
        outlines.append({"name": shown_name, "x": x[::stride], "y": y[::stride]})
    return outlines


# Figures of its privacy.


def make_profile_figures(mechanism: Any, claim: Claim | None) -> list[FigureData]:
    """Return δ(ε) for every notion that has one, and the trade-off curve of errors.

    The request is drawn too. For Rényi DP and zCDP, which request no point of these charts, the
    first chart is the Rényi divergence.

    Args:
        mechanism: A mechanism with exact laws.
        claim: The privacy that was requested. None: no request is drawn.

    Raises:
        WorkbenchError: The mechanism has no exact laws, or too many comparisons to draw quickly.
    """
    from workbench.notions import get_delta_notion
    from workbench.privacy.curve import list_profiles, make_profile_figure

    subject = as_mechanism(mechanism)
    max_count = _MAX_PROFILE_MASSES // max(1, len(subject.outputs))
    if len(list(itertools.islice(subject.comparisons(), max_count + 1))) > max_count:
        raise WorkbenchError(
            f"A profile is drawn for up to {max_count} comparisons of neighbours; there are more."
        )

    profiles = list_profiles(subject)
    points = _list_requested_points(claim)
    figure = make_profile_figure(profiles, points)
    size = sum(len(profile.breakpoints) * len(profile.curves) for profile in profiles)
    if size <= _MAX_EXACT_POINTS:
        rows = []
        for profile in profiles:
            name = f"{get_delta_notion(profile.notion).title} δ"
            rows += [
                [name, epsilon, profile.delta(epsilon)] for epsilon in profile.breakpoints.tolist()
            ]
        heads = ["series", "ε where a formula changes, rounded up", "δ there, rounded up"]
        figure["table"] = {"heads": heads, "rows": rows}

    mu = _get_claim_values(claim).get("mu")
    if isinstance(mu, Fraction):
        x = figure["series"][0]["x"]
        y = [_compute_gaussian_delta(float(mu), epsilon) for epsilon in x]
        figure["series"].append(_make_request_series(x, y))

    figures = [figure]
    dp = next((profile for profile in profiles if profile.notion == "dp"), None)
    if dp and not subject.is_one_sided:
        figures.append(_make_tradeoff_figure(dp, points, claim))
    divergence = _make_divergence_figure(subject, claim)
    if divergence:
        figures.insert(0, divergence)
    return figures


def _get_claim_values(claim: Claim | None) -> Values:
    """Return the values of a claim, or nothing without one."""
    return {} if claim is None else claim.values


def _make_request_series(x: Any, y: Any, look: str = "dashed") -> FigureData:
    """Return the series of the requested privacy, in the look of the request."""
    return make_series("requested", look, _REQUEST_COLOUR, x, y)


def _list_requested_points(claim: Claim | None) -> list[tuple[float, float]]:
    """Return the budgets (ε, δ) that a claim requests. Other claims have none."""
    if claim is None:
        return []
    values = claim.values
    if "curve" in values:
        return [(float(epsilon), float(delta)) for epsilon, delta in values["curve"]]
    if "tradeoff" in values:
        sticks = claim.notion.sticks(values)  # type: ignore[attr-defined]
        return [(math.log(slope), float(delta)) for slope, delta in sticks]
    is_point = claim.is_epsilon_delta and not claim.notion.is_per_distance
    if not is_point or not isinstance(claim.epsilon, (int, Fraction)):
        return []
    return [(float(claim.epsilon), float(claim.delta))]


def _compute_gaussian_delta(mu: float, epsilon: float) -> float:
    """Return δ(ε) of N(0, 1) against N(μ, 1), the privacy profile of μ-GDP."""
    if mu == 0:
        return 0.0
    upper = _compute_normal_tail(epsilon / mu - mu / 2)
    lower = _compute_normal_tail(epsilon / mu + mu / 2)
    return max(0.0, upper - math.exp(min(epsilon, _MAX_EXPONENT)) * lower)


def _compute_normal_tail(z: float) -> float:
    """Return P(Z > z) for a standard normal Z."""
    return math.erfc(z / math.sqrt(2)) / 2


def _make_tradeoff_figure(
    profile: Profile, points: Sequence[tuple[float, float]], claim: Claim | None
) -> FigureData:
    """Return the type II error against the type I error of telling neighbours apart.

    The privacy at ε implies a lower bound on the errors. The largest bound is at a breakpoint of
    the profile, because δ is affine in e^ε between breakpoints.

    Args:
        profile: δ(ε) under DP, of a symmetric neighbour relation.
        points: The requested (ε, δ).
        claim: The claim of the design. None: nothing is claimed.
    """
    from workbench.privacy.curve import thin_breakpoints
    from workbench.privacy.risk import compute_granted_errors

    ends = thin_breakpoints(profile.breakpoints, _MAX_TRADEOFF_POINTS)
    alpha = np.unique(np.concatenate([_EVEN_TYPE_I_ERRORS, _SMALL_TYPE_I_ERRORS]))
    errors = compute_granted_errors(alpha, ends, profile.float_deltas(ends))
    series = [make_series("this mechanism", "line", _DESIGN_COLOUR, x=alpha, y=errors)]
    values = _get_claim_values(claim)
    if "tradeoff" in values:
        x = [float(error) for error, _ in values["tradeoff"]]
        y = [float(error) for _, error in values["tradeoff"]]
        series.append(_make_request_series(x, y))
    elif isinstance(values.get("mu"), Fraction):
        normal = NormalDist()
        mu = float(values["mu"])
        inner_errors = alpha[(alpha > 0) & (alpha < 1)].tolist()
        limits = [normal.cdf(normal.inv_cdf(1 - error) - mu) for error in inner_errors]
        series.append(_make_request_series([0, *inner_errors, 1], [1, *limits, 0]))
    elif points:
        epsilons, deltas = zip(*points, strict=True)
        granted_errors = compute_granted_errors(alpha, epsilons, deltas)
        series.append(_make_request_series(alpha, granted_errors))
    series.append(make_series("guessing", "dashed", _GUESSING_COLOUR, x=[0, 1], y=[1, 0]))
    title = "Trade-off curve: telling two neighbours apart"
    return make_line_figure(title, "type I error α", "type II error β", series)


def _make_divergence_figure(mechanism: Any, claim: Claim | None) -> FigureData | None:
    """Return the largest Rényi divergence between neighbours against its order α.

    The result is None if the claim has neither an order α (Rényi DP) nor ρ (zCDP).
    """
    values = _get_claim_values(claim)
    rho = values.get("rho")
    order = values.get("alpha")
    epsilon = values.get("epsilon")
    if rho is None and order is None:
        return None
    orders = np.geomspace(*_DIVERGENCE_ORDER_RANGE, _DIVERGENCE_ORDERS)
    if order is not None:
        orders = np.unique(np.append(orders, float(order)))
    divergences = np.zeros(orders.size)
    for comparison in mechanism.comparisons():
        divergences = np.maximum(divergences, _compute_divergences(comparison, orders))
    heights = [float(value) if np.isfinite(value) else None for value in divergences]
    series = [make_series("this mechanism", "line", _DESIGN_COLOUR, x=orders, y=heights)]
    if order is not None and isinstance(epsilon, (int, Fraction)):
        series.append(_make_request_series(x=[float(order)], y=[float(epsilon)], look="filled"))
    elif isinstance(rho, (int, Fraction)):
        series.append(_make_request_series(orders, orders * float(rho)))
    note = ""
    if not np.isfinite(divergences).all():
        note = "The divergence of this mechanism is infinite."
    title = "Rényi divergence between neighbours"
    return make_line_figure(title, "order α", "largest divergence", series, log=True, note=note)


def _compute_divergences(comparison: Any, orders: Any) -> Any:
    """Return the Rényi divergences of two laws (`comparison.p`, `.q`) at orders above 1.

    They are infinite if an output has probability 0 under the second law only.
    """
    p = comparison.p.floats
    q = comparison.q.floats
    is_positive = p > 0
    if np.any(q[is_positive] == 0):
        return np.full(orders.size, np.inf)
    log_p = np.log(p[is_positive])
    privacy_losses = log_p - np.log(q[is_positive])
    exponents = log_p[None, :] + (orders[:, None] - 1) * privacy_losses[None, :]
    # The largest exponent is factored out, so that nothing overflows.
    top = exponents.max(axis=1)
    moments = top + np.log(np.exp(exponents - top[:, None]).sum(axis=1))
    return moments / (orders - 1)


# Rows of designs, and of a frontier at one budget (`workbench.pipeline.frontier_plan`).


def _keep_solved(rows: Iterable[Values]) -> list[Values]:
    """Return the rows of designs that were found: those with a number as objective."""
    return [row for row in rows if isinstance(row.get("objective"), (int, float))]


def _is_informative(row: Values) -> bool:
    """Return whether the closed form of a row is worth drawing.

    An upper bound far above the design is not. Such bounds occur near δ = 1.
    """
    if row["oracle_kind"] != "upper bound":
        return True
    return bool(row["oracle_value"] <= _NEAR_RATIO * row["objective"])


def make_curve_figure(
    name: str, label: str, rows: Sequence[Values], *, scale: str, steps: bool
) -> FigureData:
    """Return the objective against a number of the budget.

    Args:
        name: The name of the number, such as "epsilon".
        label: The name of the objective, such as "expected loss".
        rows: The rows of designs, each with the value of the number under its name.
        scale: The scale of its slider: "count", "share" or "log" (`given.find_slider_range`).
        steps: Whether the objective may jump, so that it is drawn as steps.
    """
    solved_rows = _keep_solved(rows)
    x = [row[name] for row in solved_rows]
    y = [row["objective"] for row in solved_rows]
    series = _make_closed_form_series(x, solved_rows)
    # Without a bound, the interval is drawn as the objective alone.
    bounds = [row["objective"] if row.get("bound") is None else row["bound"] for row in solved_rows]
    has_gap = any(
        high - bound > _OPEN_GAP * max(1.0, abs(high))
        for high, bound in zip(y, bounds, strict=True)
    )
    if has_gap:
        interval = make_series(
            "proven interval", "band", _DESIGN_COLOUR, x, y, low=bounds, steps=steps
        )
        series.append(interval)
    # A line through few points would suggest a shape that nobody has computed.
    look = "hollow" if len(x) >= _MIN_LINE_POINTS else "points"
    series.append(make_series("designs", look, _DESIGN_COLOUR, x, y, steps=steps))
    axis_label = AXIS_LABELS.get(name, name)
    figure = make_line_figure(
        _make_curve_title(label, axis_label),
        axis_label,
        label,
        series,
        log=scale != "count",
        along=name,
        note=_make_curve_note(rows, solved_rows, steps),
        zero=scale == "share",
    )
    # A logarithmic axis needs positive values.
    figure["y"]["log"] = bool(
        y and min(y) > 0 and max(y) > min(_TALL_RATIO * min(y), _MEDIAN_RATIO * np.median(y))
    )
    return figure


def _make_closed_form_series(x: Sequence[Any], rows: Sequence[Values]) -> list[FigureData]:
    """Return the closed forms of rows, one series for each kind."""
    series = []
    for kind, colour in _CLOSED_FORM_COLOURS.items():
        values = []
        for row in rows:
            is_drawn = row.get("oracle_kind") == kind and _is_informative(row)
            values.append(row["oracle_value"] if is_drawn else None)
        if any(value is not None for value in values):
            series.append(make_series(f"closed form ({kind})", "halo", colour, x, y=values))
    return series


def _make_curve_note(rows: Sequence[Values], solved_rows: Sequence[Values], steps: bool) -> str:
    """Return the note below a curve."""
    note = ""
    if len(solved_rows) >= _MIN_LINE_POINTS:
        meaning = "only join them for the eye"
        if steps:
            meaning = "keep the last value, because the minimal error jumps"
        note = f"Markers are computed; the thin lines {meaning}."
    failures = [
        str(row.get("failure") or row.get("status")) for row in rows if row not in solved_rows
    ]
    if failures:
        note += f" {len(failures)} of {len(rows)} values have no design: {failures[0]}"
    return note


def _make_curve_title(label: str, axis_label: str) -> str:
    """Return the title of a curve, such as "Expected loss against δ"."""
    # The title names the quantity itself, for example "ε" if the axis shows the minimal ε.
    subject = label
    for prefix in ("least ", "minimal "):
        subject = subject.removeprefix(prefix)
    if subject.isascii():
        # A Greek letter is not changed to upper case.
        subject = subject[:1].upper() + subject[1:]
    return f"{subject} against {axis_label}"


def _make_piece_series(name: str, look: str, rows: Sequence[Values]) -> list[FigureData]:
    """Return exact pieces of a frontier along δ as a series, or nothing without pieces."""
    if not rows:
        return []
    x = []
    y = []
    for row in rows:
        x += [row["delta"], row["delta_high"]]
        y += [row["objective"], row["objective_high"]]
    return [make_series(name, look, _FRONTIER_COLOUR, x, y)]


def make_rival_figures(rows: Sequence[Values], label: str) -> FigureData:
    """Return exact pieces along δ as series, and published mechanisms as a table.

    Args:
        rows: The rows of the family's frontier. Their column "curve" tells exact pieces ("piece")
            and published mechanisms ("baseline", "limit").
        label: The name of the loss of the published mechanisms.

    Returns:
        "overlays": series by the number of the horizontal axis, which are drawn into its curve.
        "table": the published mechanisms.
    """
    pieces = [
        row for row in rows if row.get("curve") == "piece" and row.get("objective") is not None
    ]
    proven_pieces = [row for row in pieces if row.get("status") == "optimal"]
    unproven_pieces = [row for row in pieces if row.get("status") != "optimal"]
    series = [
        *_make_piece_series("exact frontier, proven", "segments", proven_pieces),
        *_make_piece_series("frontier, not proven in time", "dashed-segments", unproven_pieces),
    ]
    published_rows = [row for row in rows if row.get("curve") in ("baseline", "limit")]
    # Rows without an objective come last.
    published_rows.sort(key=lambda row: (row.get("objective") is None, row.get("objective") or 0.0))
    cells = [
        [
            name_published(row.get("mechanism") or ""),
            row.get("objective"),
            row.get("bound"),
            _describe_proof(row),
        ]
        for row in published_rows
    ]
    heads = ["mechanism", label, "lower bound", "privacy proof"]
    table = _make_table_figure("Other mechanisms at the same budget", heads, cells)
    if not cells:
        table["note"] = "None is published for this budget."
    overlays = {}
    if series:
        overlays["delta"] = series
    return {"overlays": overlays, "table": table}


def _describe_proof(row: Values) -> str:
    """Return how a published mechanism is proven at the budget, or why it has no number."""
    if row.get("objective") is None:
        return str(row.get("failure") or row.get("status"))
    if row.get("certified"):
        return "certified"
    if row.get("private"):
        return "exact audit"
    return "a closed form"
