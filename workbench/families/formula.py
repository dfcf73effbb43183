"""The optimum of a question as a formula: rational functions of e^ε, affine in δ, each with where it holds, proven.

>>> import workbench as wb
>>> f = wb.formula(wb.FiniteQuery("0..3", max_shift=1), loss="absolute")
>>> print(f)
best channel, absolute loss
0 < ε < 0.609377863: (e^ε + 1) / (2e^ε)
0.609377863 < ε: (3e^(2ε) + 2e^ε + 1) / (2e^(3ε) + 2e^(2ε))
>>> low, high = f(1)
>>> round(float(low), 12), high - low < 1e-30
(0.565044172306, True)

A family states its program with polynomials in x = e^(ε/q) as entries (`Stated`); `solvers.regions` finds and proves
the pieces. A formula is of the class the family optimises over ("best channel", "best noise modulo 9"), and holds for
all ε and δ of its piece: no sampling, no rounding.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from solvers.polynomials import Affine, Poly, Root
from solvers.regions import region_around, regions
from solvers.search import Deadline
from workbench.errors import Infeasible, InvalidRequest
from workbench.exact.numbers import exact, exp_bounds
from workbench.families.formula_text import LATEX, PYTHON, WORDS, Style, written
from workbench.families.outcome import translated_errors
from workbench.families.registry import family, family_of
from workbench.families.requirements import ratio_notions
from workbench.families.stated import Stated, refuse_curved
from workbench.io.extras import need
from workbench.io.files import write_whole
from workbench.io.result import Result

if TYPE_CHECKING:
    import pandas as pd

    from workbench.families.base import Family

_BITS = 200  # of an enclosure
_LARGEST = 20  # ε: beyond it masses are below what doubles hold
_EPSILON = "a number, or two in order such as 0.1..4"
_DELTA = "a number, or two in order such as 0..0.2"
_NOWHERE = (Affine.number(0), Affine.number(0))


@dataclass(frozen=True)
class Piece:
    """One formula and where it holds: ε between logarithms of algebraic numbers, δ between two functions of ε.

    low, high: of x = e^(ε/steps), None without an end; delta: its ends; value: the optimum, None where there is no
    mechanism; masses: those of a mechanism that attains it, by name.
    """

    low: Root
    high: Root | None
    delta: tuple[Affine, Affine]
    value: Affine | None
    masses: Mapping[str, Affine]
    steps: int = 1

    @property
    def epsilon(self) -> tuple[float, float]:
        """The interval of ε, in floats."""
        ends = [math.inf if end is None else self.steps * math.log(float(end)) for end in (self.low, self.high)]
        return ends[0], ends[1]

    @property
    def free(self) -> bool:
        """Whether δ lies between two different ends."""
        return self.delta[0] != self.delta[1]

    @property
    def shadow_prices(self) -> tuple[Affine, Affine] | None:
        """(dV/dε, dV/dδ): what one unit of a budget changes; None where there is no mechanism."""
        if self.value is None:
            return None
        return self.value.derivative(self.steps), self.value.slope_alone()

    def text(self, style: Style = WORDS) -> str:
        """The formula in words, LaTeX or Python."""
        return "infeasible" if self.value is None else written(self.value, style, self.steps)

    def delta_text(self, style: Style = WORDS) -> tuple[str, str]:
        """The ends of δ."""
        low, high = (written(end, style, self.steps) for end in self.delta)
        return low, high

    def to_dict(self) -> dict[str, Any]:
        """Polynomials as integers by rising power of x."""
        low, high = self.epsilon
        known: dict[str, Any] = {"epsilon": [low, None if math.isinf(high) else high]}
        if self.value is not None:
            known |= {"numerator": _integers(self.value.constant), "denominator": _integers(self.value.over)}
            if self.value.slope:
                known["numerator_delta"] = _integers(self.value.slope)
        known["delta"] = [_end(value) for value in self.delta]
        if self.high is not None:
            root = self.high.within(Fraction(1, 1 << 64))
            known["breakpoint"] = {
                "polynomial": _integers(root.polynomial),
                "value": [float(root.low), float(root.high)],
            }
        return known | {"formula": self.text(), "proven": True}


@dataclass(frozen=True, repr=False)
class Formula:
    """The optimum of a question for an interval of ε and of δ.

    what: the class of mechanisms and the loss; pieces: by rising ε, and within one interval by rising δ; open:
    intervals of ε that a time limit left; seconds: that it took.
    """

    what: str
    pieces: tuple[Piece, ...]
    steps: int = 1
    open: tuple[tuple[float, float], ...] = ()
    seconds: float = 0.0

    def __call__(self, epsilon: Any, delta: Any = None) -> tuple[Fraction, Fraction]:
        """A proven enclosure of the optimum, about 1e-50 wide. delta: needed where it is free.

        Raises InvalidRequest outside the intervals of the formula; Infeasible where no mechanism meets the request.
        """
        x = self._x(exact(epsilon, "epsilon"))
        piece = self._piece(x, None if delta is None else exact(delta, "delta"), epsilon)
        if piece.value is None:
            raise Infeasible(f"No mechanism meets the request at epsilon = {epsilon}.")
        at = piece.delta[0](Fraction(2)) if delta is None else exact(delta, "delta")
        return piece.value.enclosed(*x, at)

    def _x(self, epsilon: Fraction) -> tuple[Fraction, Fraction]:
        low, high = exp_bounds(epsilon / self.steps, _BITS)
        return Fraction(low, 1 << _BITS), Fraction(high, 1 << _BITS)

    def _piece(self, x: tuple[Fraction, Fraction], delta: Fraction | None, epsilon: Any) -> Piece:
        """The piece that holds at an ε; of two that meet there either."""
        here = [
            piece for piece in self.pieces if piece.low.low <= x[1] and (piece.high is None or x[0] <= piece.high.high)
        ]
        here = [
            piece for piece in here if not piece.low.above(x[1]) and (piece.high is None or not piece.high.below(x[0]))
        ]
        if not here:
            ends = ", ".join(sorted({f"{piece.epsilon[0]:.6g} < ε < {piece.epsilon[1]:.6g}" for piece in self.pieces}))
            InvalidRequest.must("epsilon", f"where the formula holds ({ends})", epsilon)
        if delta is None:
            if any(piece.free for piece in here):
                InvalidRequest.must("delta", "given, as the formula is for an interval of it", "none")
            return here[0]
        for piece in here:
            low, high = (end.enclosed(*x, Fraction(0)) for end in piece.delta)
            if low[0] <= delta <= high[1]:
                return piece
        return InvalidRequest.must("delta", "where the formula holds", delta)

    @property
    def mechanism(self) -> list[dict[str, str]]:
        """Of every piece the probabilities of a mechanism that attains the optimum, by name, as formulas."""
        return [
            {name: written(mass, WORDS, self.steps) for name, mass in piece.masses.items()} for piece in self.pieces
        ]

    # Shown.

    def __str__(self) -> str:
        lines = [self.what, *(f"{self.where(piece)}: {piece.text()}" for piece in self.pieces)]
        lines += [f"open, for want of time: {low:.9g} < ε < {high:.9g}" for low, high in self.open]
        return "\n".join(lines)

    def where(self, piece: Piece) -> str:
        """The interval of ε, and of δ where that is free, in words."""
        low, high = piece.epsilon
        above = "" if math.isinf(high) else f" < {high:.9g}"
        words = f"{low:.9g} < ε{above}" if low or above else "0 < ε"
        if not piece.free:
            return words
        first, last = piece.delta_text()
        return f"{words}, {first} ≤ δ ≤ {last}"

    def __repr__(self) -> str:
        return f"Formula({self.what!r}, {len(self.pieces)} piece{'' if len(self.pieces) == 1 else 's'})"

    def to_dict(self) -> dict[str, Any]:
        """JSON-ready."""
        variable = "x = exp(epsilon)" if self.steps == 1 else f"x = exp(epsilon/{self.steps})"
        return {
            "what": self.what,
            "variable": variable,
            "pieces": [piece.to_dict() for piece in self.pieces],
            "open": [list(ends) for ends in self.open],
        }

    @cached_property
    def _result(self) -> Result:
        rows = []
        for piece in self.pieces:
            low, high = piece.epsilon
            row = {"from_epsilon": low, "to_epsilon": high, "formula": piece.text()}
            if piece.free:
                row["from_delta"], row["to_delta"] = piece.delta_text()
            rows.append(row)
        return Result(self.what, rows, name="formula")

    def to_frame(self) -> pd.DataFrame:
        """From ε, to ε, formula; the ends of δ where it is free."""
        return self._result.to_frame()

    def latex(self, *, table: bool = False) -> str:
        """The cases of the optimum in LaTeX, or a table for the package booktabs."""
        rows = []
        for piece in self.pieces:
            low, high = piece.epsilon
            where = rf"{low:.6g} < \varepsilon" + ("" if math.isinf(high) else f" < {high:.6g}")
            if piece.free:
                first, last = piece.delta_text(LATEX)
                where += rf",\ {first} \le \delta \le {last}"
            rows.append((piece.text(LATEX) if piece.value is not None else r"\text{infeasible}", where))
        if not table:
            body = " \\\\\n".join(f"  {text} & {where}" for text, where in rows)
            return f"\\begin{{cases}}\n{body}\n\\end{{cases}}"
        lines = "".join(f"${where}$ & ${text}$ \\\\\n" for text, where in rows)
        head = "\\begin{tabular}{ll}\n\\toprule\nwhere & optimum \\\\\n\\midrule\n"
        return f"{head}{lines}\\bottomrule\n\\end{{tabular}}"

    def python(self, name: str = "optimum") -> str:
        """The source of a plain function of ε and δ, in floats."""
        power = "epsilon" if self.steps == 1 else f"epsilon / {self.steps}"
        lines = [
            "import math",
            "",
            "",
            f"def {name}(epsilon, delta=0.0):",
            f'    """{self.what}."""',
            f"    x = math.exp({power})",
        ]
        for piece in self.pieces:
            low, high = piece.epsilon
            tests = [f"{low!r} <= epsilon" + ("" if math.isinf(high) else f" <= {high!r}")]
            if piece.free:
                first, last = piece.delta_text(PYTHON)
                tests.append(f"{first} <= delta <= {last}")
            value = "math.nan" if piece.value is None else piece.text(PYTHON)
            lines += [f"    if {' and '.join(tests)}:", f"        return {value}"]
        lines += ['    raise ValueError("the formula does not hold there")', ""]
        return "\n".join(lines)

    def sympy(self) -> Any:
        """A sympy.Piecewise in the symbols epsilon and delta. Raises NotInstalled without sympy."""
        sympy = need("sympy", "sympy")
        epsilon, delta = sympy.symbols("epsilon delta", positive=True)
        x = sympy.exp(epsilon / self.steps)

        def polynomial(values: Poly) -> Any:
            return sum((int(v) * x**k for k, v in enumerate(values.coeffs())), sympy.Integer(0))

        def value(ratio: Affine) -> Any:
            return (polynomial(ratio.constant) + delta * polynomial(ratio.slope)) / polynomial(ratio.over)

        cases = []
        for piece in self.pieces:
            low, high = piece.epsilon
            where = sympy.And(epsilon >= low, epsilon <= (sympy.oo if math.isinf(high) else high))
            if piece.free:
                where = sympy.And(where, delta >= value(piece.delta[0]), delta <= value(piece.delta[1]))
            cases.append((sympy.nan if piece.value is None else value(piece.value), where))
        return sympy.Piecewise(*cases)

    def save(self, path: str | Path) -> list[Path]:
        """Write a .json, .csv, .tex (table) or .py (function) file. Raises InvalidRequest, OSError."""
        target = Path(path)
        texts = {
            ".json": lambda: json.dumps(self.to_dict(), ensure_ascii=False, indent=1) + "\n",
            ".tex": lambda: self.latex(table=True) + "\n",
            ".py": self.python,
        }
        ending = target.suffix.lower()
        if ending not in texts:
            return self._result.save(path)
        write_whole(target, texts[ending]().encode())
        return [target]

    def _repr_latex_(self) -> str:
        return f"$$V(\\varepsilon) = {self.latex()}$$"


def formula(
    question: Any, *, epsilon: Any = None, delta: Any = None, time_limit: Any = None, **options: Any
) -> Formula:
    """The optimum of a question as a formula in ε, and in δ where an interval of it is given.

    question, options: as `workbench.design` takes them. epsilon: a number (the piece that holds there), two numbers or
    "0.1..4", all ε > 0 by default; delta: a number, two numbers or "0..0.2"; as in `design` by default. time_limit:
    seconds; what is found until then stands, and what is open is said.

    Raises InvalidRequest: also for questions that have no formula, in one sentence that says why.
    """
    kind = family(question) if isinstance(question, str) else family_of(question)

    def request(point: Mapping[str, Any]) -> Any:
        given = {**options, **point}
        return kind.spelled(**given) if isinstance(question, str) else kind.request(question, **given)

    return formula_of(kind, request, options.get("notion"), epsilon, delta, time_limit)


def formula_of(
    kind: Family, request: Callable[[Mapping[str, Any]], Any], notion: Any, epsilon: Any, delta: Any, time_limit: Any
) -> Formula:
    """The formula of a family's requests. request: that at some ε and δ; notion: the one that is asked for, or None."""
    epsilons, deltas = _ends(epsilon, "epsilon", _EPSILON), _ends(delta, "delta", _DELTA)
    if notion is not None and notion not in ratio_notions():
        refuse_curved(str(notion))
    given = request({"epsilon": Fraction(1)} | ({} if deltas is None else {"delta": (deltas[0] + deltas[1]) / 2}))
    stated = kind.stated(given)
    if deltas is None:
        least = getattr(given, "delta", None) or Fraction(0)
        deltas = least, least
    return _found(stated, epsilons, deltas, Deadline(None if time_limit is None else float(time_limit)))


def _ends(given: Any, name: str, wanted: str) -> tuple[Fraction, Fraction] | None:
    """Two ends, equal for one number; None for none. Raises InvalidRequest."""
    if given is None:
        return None
    parts = (
        given.split("..") if isinstance(given, str) else list(given) if isinstance(given, (tuple, list)) else [given]
    )
    if len(parts) not in (1, 2):
        InvalidRequest.must(name, wanted, repr(given))
    low, high = (exact(part, name, wanted) for part in (parts[0], parts[-1]))
    least, most = (Fraction(0), Fraction(1)) if name == "delta" else (Fraction(0), Fraction(_LARGEST))
    if not least <= low <= high <= most or (name == "epsilon" and not high):
        InvalidRequest.must(name, f"{wanted}, between {least} and {most}", repr(given))
    return low, high


def _found(
    stated: Stated, epsilons: tuple[Fraction, Fraction] | None, deltas: tuple[Fraction, Fraction], deadline: Deadline
) -> Formula:
    """The pieces of an interval; of one ε that of the whole region around it."""
    steps = stated.steps
    with translated_errors():
        try:
            if epsilons is not None and epsilons[0] == epsilons[1]:
                low, high = _x_bounds(epsilons[0], steps)
                found, left = [region_around(stated.program, (low + high) / 2, deltas)], []
            else:
                low, high = (
                    (Fraction(1), None)
                    if epsilons is None
                    else (
                        _x_bounds(epsilons[0], steps)[0],
                        _x_bounds(epsilons[1], steps)[1],
                    )
                )
                found, left = regions(stated.program, low, high, deltas, deadline)
        finally:
            stated.program.close()
    pieces: list[Piece] = []
    for region in found:
        for part in region.formulas:
            masses = {} if part.value is None else {name: part.vertex.point[j] for name, j in stated.masses.items()}
            if part.low == part.high:
                masses = {name: mass.where(part.low.constant, part.low.over) for name, mass in masses.items()}
            pieces.append(Piece(region.low, region.high, (part.low, part.high), part.value, masses, steps))
    ends = [(Piece(*gap, _NOWHERE, None, {}, steps).epsilon) for gap in left]
    return Formula(stated.what, tuple(_merged(pieces)), steps, tuple(ends), deadline.elapsed)


def _x_bounds(epsilon: Fraction, steps: int) -> tuple[Fraction, Fraction]:
    low, high = exp_bounds(epsilon / steps, 64)
    return Fraction(low, 1 << 64), Fraction(high, 1 << 64)


def _merged(pieces: Sequence[Piece]) -> list[Piece]:
    """Neighbouring intervals of one formula, and of the same ends of δ, as one."""
    kept: list[Piece] = []
    for piece in pieces:
        for k, before in enumerate(kept):
            same = before.value == piece.value and before.delta == piece.delta
            if same and before.high is not None and before.high.against(piece.low) >= 0:
                kept[k] = replace(before, high=piece.high)
                break
        else:
            kept.append(piece)
    return kept


def _integers(polynomial: Poly) -> list[int]:
    return [int(value) for value in polynomial.coeffs()] or [0]


def _end(value: Affine) -> Any:
    """A number, or numerator and denominator."""
    if value.constant.degree() <= 0 and value.over.degree() == 0:
        return float(Fraction(int(value.constant[0]), int(value.over[0])))
    return {"numerator": _integers(value.constant), "denominator": _integers(value.over)}
