"""Data that the page draws: laws of mechanisms, privacy, rows of designs; floats are for pictures.

Whoever hands a figure to the page makes it strict JSON (`workbench.exact.numbers.jsonable`). Its kinds are those of
`workbench.io.plain_figures`, and

    map          regions of a plane (`workbench.explorer.formula_map`)
    picture      an SVG of the family's own
    table        heads, rows
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from fractions import Fraction
from itertools import islice
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


AXIS_LABELS = {  # of axes: a word and its symbol
    "epsilon": "privacy budget ε", "delta": "δ", "rho": "privacy budget ρ", "mu": "privacy budget μ",
    "alpha": "order α", "runs": "runs T", "max_loss": "largest loss allowed", "bits": "mean bits",
}  # fmt: skip
_BARS, _CELLS, _OUTPUTS = 2000, 20_000, 24  # drawn at most
_EXACT_POINTS = 2000  # Of a larger profile, times its different pairs, the drawn points are saved.
_ORDERS = 60  # Orders of a chart of Rényi divergences.
_DRAWN = 500  # cells of a density
_MASSES = 400_000  # of all comparisons of a profile: a second or two
_TALL, _FLAT = (
    1e4,
    100,
)  # times the least value, or the one in the middle, from where an axis is logarithmic
_NEAR = 1.05  # times the loss of a design, up to which a closed form that is an upper bound is drawn beside it
_OPEN = 1e-6  # a gap between objective and bound from here on is drawn


def _make_table_figure(
    title: str, heads: Sequence[str], rows: Iterable[Sequence[Any]]
) -> FigureData:
    return {"kind": "table", "title": title, "heads": [*heads], "rows": [*rows], "note": ""}


# The mechanism.


def make_law_figures(design: Design, *, is_whole: bool = True) -> list[FigureData]:
    """Describe the mechanism: bars, a heat map or lines from its law, else the family's own picture, else its tables.

    A picture may leave out what nobody would see; whoever saves its numbers gets the whole law, in exact numbers.

    Args:
        design: with its mechanism; without one there are no figures.
        is_whole: whether the whole law comes with the picture. Without it the numbers of the law cannot be saved.
    """
    mechanism = design.mechanism
    if mechanism is None:
        return []
    figure = make_law_figure(mechanism)
    if figure:
        return [add_law_table(figure, mechanism) if is_whole else {**figure, "law": True}]
    if not design.family.draws:
        return [_make_table_figure(*parts) for parts in design.family.list_tables(design)]
    drawn = {
        "kind": "picture",
        "title": "The mechanism",
        "svg": render_picture(design.plot),
        "law": True,
    }
    return [add_law_table(drawn, mechanism) if is_whole else drawn]


def make_law_figure(mechanism: Any) -> FigureData | None:
    """A mechanism's law as bars, a heat map or lines; None where it is none of those, or too large."""
    drawing = getattr(mechanism, "drawing", None)
    if (
        drawing is None or np.ndim(getattr(mechanism, "outputs", ())) > 1
    ):  # places are a map of the family's own
        return None
    figure = drawing()
    if figure["kind"] == "lines":
        return figure if len(figure["series"]) <= _OUTPUTS else None
    return (
        figure
        if np.size(figure["values"]) <= (_BARS if figure["kind"] == "bars" else _CELLS)
        else None
    )


def add_law_table(figure: FigureData, mechanism: Any) -> FigureData:
    """Add the whole law to the picture of a mechanism, as the table that `workbench audit` reads."""
    law = build_law_table(mechanism)
    if law is None:
        return figure
    heads, rows = law
    about = (
        [float(read_cell_number(row[1])) for row in rows] if len(heads) == 2 else None
    )  # beside the exact ones on a screen
    return {**figure, "law": True, "table": {"heads": heads, "rows": rows, "about": about}}


def make_published_outlines(design: Design) -> list[FigureData]:
    """Laws of published noise at the same budget, as outlines over the design's own."""
    laws = design.family.comparison_laws(design).items()
    cuts = {name: max(1, -(-len(y) // _DRAWN)) if len(x) > len(y) else 1 for name, (x, y) in laws}
    return [
        {"name": name, "x": x[:: cuts[name]], "y": y[:: cuts[name]]}
        for name, (x, y) in laws
        if len(y) < _BARS
    ]


# Its privacy.


def make_profile_figures(mechanism: Any, claim: Claim | None) -> list[FigureData]:
    """Describe δ(ε) for every notion that has one, the trade-off curve of errors, and what was asked beside them.

    Args:
        mechanism: any with exact laws.
        claim: what was asked for; None where nothing was. Under Rényi DP and zCDP, which ask for no point of these two
            charts, a chart of the Rényi divergence is the first.

    Raises:
        WorkbenchError: where the mechanism has no exact laws, or too many comparisons to draw while one waits.
    """
    from workbench.notions import get_delta_notion
    from workbench.privacy.curve import list_profiles, make_profile_figure

    subject = as_mechanism(mechanism)
    most = _MASSES // max(1, len(subject.outputs))
    if len(list(islice(subject.comparisons(), most + 1))) > most:
        raise WorkbenchError(
            f"A profile is drawn for up to {most} comparisons of neighbours; there are more."
        )
    curves = list_profiles(subject)
    points = _list_requested_points(claim)
    profile = make_profile_figure(curves, points)
    if sum(len(curve.breakpoints) * len(curve.curves) for curve in curves) <= _EXACT_POINTS:
        named = [(get_delta_notion(curve.notion).title, curve) for curve in curves]
        rows = [
            [f"{title} δ", at, curve.delta(at)]
            for title, curve in named
            for at in curve.breakpoints.tolist()
        ]
        heads = ["series", "ε where a formula changes, rounded up", "δ there, rounded up"]
        profile["table"] = {"heads": heads, "rows": rows}
    mu = None if claim is None else claim.values.get("mu")
    if isinstance(mu, Fraction):
        x = profile["series"][0]["x"]
        profile["series"].append(
            make_series("asked", "dashed", 6, x, [_compute_gaussian_delta(float(mu), e) for e in x])
        )
    shown = [profile]
    dp = next((curve for curve in curves if curve.notion == "dp"), None)
    if dp and not subject.is_one_sided:
        shown.append(_make_tradeoff_figure(dp, points, claim))
    divergence = _make_divergence_figure(subject, claim)
    return [divergence, *shown] if divergence else shown


def _list_requested_points(claim: Claim | None) -> list[tuple[float, float]]:
    """List the budgets (ε, δ) that a claim asks for; none of a claim that asks for other things."""
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
    """Compute δ(ε) of N(0, 1) against N(μ, 1)."""
    if mu == 0:
        return 0.0
    upper, lower = epsilon / mu - mu / 2, epsilon / mu + mu / 2
    return max(
        0.0,
        _compute_normal_tail(upper) - math.exp(min(epsilon, 700.0)) * _compute_normal_tail(lower),
    )


def _compute_normal_tail(z: float) -> float:
    return math.erfc(z / math.sqrt(2)) / 2


def _make_tradeoff_figure(
    profile: Any, points: Sequence[tuple[float, float]], claim: Claim | None
) -> FigureData:
    """Type II error against type I error of telling neighbours apart: the best that the DP profile allows.

    profile: of a symmetric relation; as δ is affine in e^ε between its ends, the maximum is at an end.
    """
    from workbench.privacy.curve import thin_breakpoints
    from workbench.privacy.risk import compute_granted_errors

    ends = thin_breakpoints(profile.breakpoints, 400)
    alpha = np.unique(np.concatenate([np.linspace(0, 1, 101), np.geomspace(1e-4, 1, 60)]))
    drawn = [
        make_series(
            "this mechanism",
            "line",
            0,
            alpha,
            compute_granted_errors(alpha, ends, profile.float_deltas(ends)),
        )
    ]
    values = {} if claim is None else claim.values
    if "tradeoff" in values:
        x, y = (
            [float(error) for error in errors] for errors in zip(*values["tradeoff"], strict=True)
        )
        drawn.append(make_series("asked", "dashed", 6, x, y))
    elif isinstance(values.get("mu"), Fraction):
        normal = NormalDist()
        inside = alpha[(alpha > 0) & (alpha < 1)].tolist()
        limits = [normal.cdf(normal.inv_cdf(1 - at) - float(values["mu"])) for at in inside]
        drawn.append(make_series("asked", "dashed", 6, [0, *inside, 1], [1, *limits, 0]))
    elif points:
        drawn.append(
            make_series(
                "asked",
                "dashed",
                6,
                alpha,
                compute_granted_errors(alpha, *zip(*points, strict=True)),
            )
        )
    drawn.append(make_series("guessing", "dashed", 7, [0, 1], [1, 0]))
    return make_line_figure(
        "Trade-off curve: telling two neighbours apart", "type I error α", "type II error β", drawn
    )


def _make_divergence_figure(mechanism: Any, claim: Claim | None) -> FigureData | None:
    """Describe the largest Rényi divergence between neighbours against its order, for a claim about it."""
    values = {} if claim is None else claim.values
    rho, order, epsilon = (values.get(name) for name in ("rho", "alpha", "epsilon"))
    if rho is None and order is None:
        return None
    orders = np.geomspace(1.05, 64, _ORDERS)
    if order is not None:
        orders = np.unique(np.append(orders, float(order)))
    largest = np.zeros(orders.size)
    for comparison in mechanism.comparisons():
        p, q = comparison.p.floats, comparison.q.floats
        if np.any(q[p > 0] == 0):
            largest[:] = np.inf
            break
        losses = np.log(p[p > 0]) - np.log(q[p > 0])
        exponents = np.log(p[p > 0])[None, :] + (orders[:, None] - 1) * losses[None, :]
        top = exponents.max(axis=1)
        moments = top + np.log(np.exp(exponents - top[:, None]).sum(axis=1))
        largest = np.maximum(largest, moments / (orders - 1))
    known = [float(value) if np.isfinite(value) else None for value in largest]
    drawn = [make_series("this mechanism", "line", 0, orders, known)]
    if order is not None and isinstance(epsilon, (int, Fraction)):
        drawn.append(make_series("asked", "filled", 6, [float(order)], [float(epsilon)]))
    elif isinstance(rho, (int, Fraction)):
        drawn.append(make_series("asked", "dashed", 6, orders, orders * float(rho)))
    note = "" if np.isfinite(largest).all() else "The divergence of this mechanism is infinite."
    title = "Rényi divergence between neighbours"
    return make_line_figure(title, "order α", "largest divergence", drawn, log=True, note=note)


# Rows of designs, and of a frontier at one budget (`workbench.pipeline.frontier_plan`).


def _keep_solved(rows: Iterable[Values]) -> list[Values]:
    return [row for row in rows if isinstance(row.get("objective"), (int, float))]


def _is_informative(row: Values) -> bool:
    """Whether a closed form says something beside the design: a bound far above it, as near δ = 1, does not."""
    return row["oracle_kind"] != "upper bound" or bool(
        row["oracle_value"] <= _NEAR * row["objective"]
    )


def make_curve_figure(
    name: str, label: str, rows: Sequence[Values], *, scale: str, steps: bool
) -> FigureData:
    """The objective against a number of the budget. rows: those of designs, each with its value under its name; scale:
    of its slider; steps: whether the objective may jump."""
    solved = _keep_solved(rows)
    x, y = [row[name] for row in solved], [row["objective"] for row in solved]
    drawn = []
    for colour, kind in ((2, "optimum"), (1, "upper bound"), (4, "lower bound")):
        law = [
            row["oracle_value"] if row.get("oracle_kind") == kind and _is_informative(row) else None
            for row in solved
        ]
        if any(value is not None for value in law):
            drawn.append(make_series(f"closed form ({kind})", "halo", colour, x, law))
    low = [row["objective"] if row.get("bound") is None else row["bound"] for row in solved]
    if any(high - bound > _OPEN * max(1.0, abs(high)) for high, bound in zip(y, low, strict=True)):
        drawn.append(make_series("proven interval", "band", 0, x, y, low=low, steps=steps))
    drawn.append(make_series("designs", "hollow", 0, x, y, steps=steps))
    failed = [str(row.get("failure") or row.get("status")) for row in rows if row not in solved]
    between = (
        "keep the last value, as the least error jumps" if steps else "only join them for the eye"
    )
    note = f"Marks are computed; the thin lines {between}." if len(solved) > 1 else ""
    note += (
        f" {len(failed)} of {len(rows)} values have no design there: {failed[0]}" if failed else ""
    )
    what = label.removeprefix("least ")
    title = f"{what[:1].upper() if what.isascii() else what[:1]}{what[1:]} against {AXIS_LABELS.get(name, name)}"
    more = {"along": name, "note": note, "zero": scale == "share"}
    figure = make_line_figure(
        title, AXIS_LABELS.get(name, name), label, drawn, log=scale != "count", **more
    )
    figure["y"]["log"] = bool(
        y and min(y) > 0 and max(y) > min(_TALL * min(y), _FLAT * np.median(y))
    )
    return figure


def _make_piece_series(
    name: str, look: str, colour: int, rows: Sequence[Values]
) -> list[FigureData]:
    """Exact pieces of a frontier along δ as a series; none of no rows."""
    x, y = (
        [row[end] for row in rows for end in (at, f"{at}_high")] for at in ("delta", "objective")
    )
    return [make_series(name, look, colour, x, y)] if rows else []


def make_rival_figures(rows: Sequence[Values]) -> FigureData:
    """From rows of the family's frontier: exact pieces along δ as a series, and published mechanisms as a table."""
    pieces = [
        row for row in rows if row.get("curve") == "piece" and row.get("objective") is not None
    ]
    proven = [row for row in pieces if row.get("status") == "optimal"]
    drawn = _make_piece_series("exact frontier, proven", "segments", 1, proven)
    drawn += _make_piece_series(
        "frontier, not proven in time",
        "dashed-segments",
        1,
        [row for row in pieces if row not in proven],
    )
    listed = [
        [row.get("mechanism"), row.get("objective"), row.get("bound"), _describe_proof(row)]
        for row in sorted(
            rows, key=lambda row: (row.get("objective") is None, row.get("objective") or 0.0)
        )
        if row.get("curve") in ("baseline", "limit")
    ]
    table = _make_table_figure(
        "Other mechanisms at the same budget",
        ["mechanism", "error", "no less than", "proof"],
        listed,
    )
    table["note"] = "" if listed else "None is published for this budget."
    return {"overlays": {"delta": drawn} if drawn else {}, "table": table}


def _describe_proof(row: Values) -> str:
    """Whether a published mechanism is proven at the budget, or why it has no number."""
    if row.get("objective") is None:
        return str(row.get("failure") or row.get("status"))
    return (
        "certified"
        if row.get("certified")
        else "exact audit"
        if row.get("private")
        else "a closed form"
    )
