"""Evaluate, write, draw and save the result of `workbench.formula`: the optimal loss as a formula.

A `Formula` is a list of pieces. Each piece has an expression of the optimum in x = e^(ε/steps) and
δ, and an interval of ε (and of δ) where it is proven.
"""

from __future__ import annotations

import importlib
import json
import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from workbench.errors import Infeasible, NotInstalled, NotProven, WorkbenchError, must
from workbench.exact.numbers import ZERO, RationalPair, exp_interval, read_number
from workbench.exact.objects import FloatPair, Record, Strings
from workbench.formulas.pieces import Piece, finite_or_none, to_epsilon_interval
from workbench.formulas.plot import draw_formulas
from workbench.formulas.text import LATEX, PLAIN, PYTHON, write_affine, write_multiple
from workbench.io.figures import Width, save_figure
from workbench.io.files import write_atomically
from workbench.io.result import Result

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

# e^ε is enclosed to these numbers of bits in turn, until the bounds of the optimum are close.
_EXP_BITS = (200, 800, 3200)
_MAX_WIDTH = Fraction(1, 1 << 100)  # The bounds of an optimum differ by at most this.


def _raise_proof_error(error: WorkbenchError) -> Record:
    """Raise the error of a formula whose proof cannot be written to a file."""
    raise error


@dataclass(frozen=True, repr=False)
class Formula:
    """The optimum of a question for an interval of ε and of δ.

    Attributes:
        what: The class of mechanisms and the loss in words, such as "best channel, absolute loss".
        pieces: The pieces by rising ε, and within one interval of ε by rising δ.
        steps: The number of steps into which ε is divided: x = e^(ε/steps).
        unproven: The intervals of ε for which no formula is proven, after a time limit or Ctrl-C.
            If proven_epsilon is given, these are intervals of δ.
        seconds: The runtime in seconds.
        proof: Returns the entries of a certificate file that prove the formula, or raises an error
            that explains why there are none.
        proven_epsilon: For PDP, the one ε at which the formulas are proven. None for other
            notions.
    """

    what: str
    pieces: tuple[Piece, ...]
    steps: int = 1
    unproven: tuple[FloatPair, ...] = ()
    seconds: float = 0.0
    proof: Callable[[], Record] = dict
    proven_epsilon: Fraction | None = None

    def __getstate__(self) -> Record:
        """Return the state to pickle, in which the proof is computed.

        The function `proof` may be a closure, which cannot be pickled.
        """
        proof: Any
        try:
            proof = partial(dict, self.proof())
        except WorkbenchError as error:
            proof = partial(_raise_proof_error, error)
        return {**self.__dict__, "proof": proof}

    def __call__(self, epsilon: Any, delta: Any = None) -> RationalPair:
        """Return proven lower and upper bounds on the optimum, which differ by less than 1e-30.

        Args:
            epsilon: The value of ε, as a number or a decimal text.
            delta: The value of δ. It is required if the formula has an interval of δ.

        Raises:
            InvalidRequest: The point is outside the intervals of the formula.
            Infeasible: No mechanism satisfies the request there.
            NotProven: The formula has a pole near ε.
        """
        exact_epsilon = read_number(epsilon, "epsilon")
        exact_delta = None if delta is None else read_number(delta, "delta")
        if self.proven_epsilon is not None and exact_epsilon != self.proven_epsilon:
            must(
                "epsilon",
                f"{float(self.proven_epsilon):g}, where the patterns are proven to be optimal",
                epsilon,
            )
        for bits in _EXP_BITS:
            x = exp_interval(exact_epsilon / self.steps, bits)
            piece = self._find_piece(x, exact_delta, epsilon)
            if piece.value is None:
                raise Infeasible(f"No mechanism satisfies the request at epsilon = {epsilon}.")
            piece_delta = exact_delta
            if piece_delta is None:
                # Without an interval of δ the end is a constant, so any x gives its value.
                delta_low, _ = piece.delta
                piece_delta = delta_low(Fraction(2))
            bounds = piece.value.enclose(*x, piece_delta)
            if bounds is not None:
                lower, upper = bounds
                if upper - lower <= _MAX_WIDTH:
                    return lower, upper
        raise NotProven(f"The formula has a pole near epsilon = {epsilon}.")

    def _find_piece(self, x: RationalPair, delta: Fraction | None, epsilon: Any) -> Piece:
        """Return a piece that holds at a point. Raises InvalidRequest.

        x: bounds on e^(ε/steps); delta: None to accept only pieces at one δ; epsilon: the ε that
        the user gave, for the error message.
        """
        candidates = [piece for piece in self.pieces if _may_contain(piece, x)]
        if not candidates:
            intervals = {"{:.6g} < ε < {:.6g}".format(*piece.epsilon) for piece in self.pieces}
            must("epsilon", f"where the formula holds ({', '.join(sorted(intervals))})", epsilon)
        if delta is None:
            if any(piece.has_delta_interval for piece in candidates):
                must("delta", "given, because the formula has an interval of delta", "none")
            return candidates[0]
        for piece in candidates:
            # The ends do not depend on δ, so 0 stands for it. An end near a pole has no bounds, and
            # then excludes no δ.
            low_bounds, high_bounds = (
                end.enclose(*x, ZERO) or (delta, delta) for end in piece.delta
            )
            lower, _ = low_bounds
            _, upper = high_bounds
            if lower <= delta <= upper:
                return piece
        return must("delta", "where the formula holds", delta)

    @property
    def mechanism(self) -> list[Record]:
        """Return the probabilities of optimal mechanisms as formulas.

        There is one row for each part of a piece, an interval of ε in which every probability has
        one formula. The row has the ends of the interval and the text of each probability.
        """
        rows = []
        for piece in self.pieces:
            for part in piece.parts:
                low, high = to_epsilon_interval((part.low, part.high), self.steps)
                row: Record = {"from_epsilon": low, "to_epsilon": high}
                if piece.has_delta_interval:
                    row["from_delta"], row["to_delta"] = piece.delta_limit_texts()
                for name, mass in part.masses.items():
                    row[name] = write_affine(mass, PLAIN, self.steps)
                rows.append(row)
        return rows

    # Texts.

    def __str__(self) -> str:
        lines = [self.what]
        lines += [f"{self.describe_interval(piece)}: {piece.to_text()}" for piece in self.pieces]
        variable = "ε" if self.proven_epsilon is None else "δ"
        for low, high in self.unproven:
            lines.append(f"open, not proven: {low:.9g} < {variable} < {high:.9g}")
        return "\n".join(lines)

    @property
    def sentences(self) -> Strings:
        """Return the statements that are proven: a summary, then the line of each piece."""
        first, *other_lines = str(self).splitlines()
        count = _count_noun(len(self.pieces), "formula")
        gaps = "" if self.unproven else "gap or "
        return (f"{first}: {count}, without {gaps}overlap, proven without a solver.", *other_lines)

    def describe_interval(self, piece: Piece) -> str:
        """Describe where a piece holds: its interval of ε, and its interval of δ if it has one.

        Args:
            piece: A piece of the formula.
        """
        if self.proven_epsilon is not None:
            return "{:.6g} ≤ δ ≤ {:.6g}".format(*piece.delta_limits_at(self.proven_epsilon))
        low, high = piece.epsilon
        text = f"{low:.9g} < ε"
        if not math.isinf(high):
            text += f" < {high:.9g}"
        if piece.has_delta_interval:
            text += ", {} ≤ δ ≤ {}".format(*piece.delta_limit_texts())
        return text

    def __repr__(self) -> str:
        return f"Formula({self.what!r}, {_count_noun(len(self.pieces), 'piece')})"

    def to_dict(self) -> Record:
        """Return the formula as JSON-ready values."""
        exponent = write_multiple(Fraction(1, self.steps), "epsilon")
        record: Record = {
            "what": self.what,
            "variable": f"x = exp({exponent})",
            "pieces": [piece.to_dict() for piece in self.pieces],
            "open": [[low, finite_or_none(high)] for low, high in self.unproven],
        }
        if self.proven_epsilon is not None:
            record["proven_at"] = {"epsilon": float(self.proven_epsilon)}
        return record

    @cached_property
    def _result(self) -> Result:
        """Return the pieces as a table."""
        rows = []
        for piece in self.pieces:
            low, high = piece.epsilon
            row = {"from_epsilon": low, "to_epsilon": high, "formula": piece.to_text()}
            if piece.has_delta_interval:
                row["from_delta"], row["to_delta"] = piece.delta_limit_texts()
            if self.proven_epsilon is not None:
                row["delta_low"], row["delta_high"] = piece.delta_limits_at(self.proven_epsilon)
                row["broken"] = piece.pattern
            rows.append(row)
        return Result(self.what, rows, name="formula")

    @property
    def rows(self) -> list[Record]:
        """Return the rows of `to_frame`."""
        return [*self._result.rows]

    def to_frame(self) -> pd.DataFrame:
        """Return a table of the pieces.

        Its columns are from_epsilon, to_epsilon, formula and, with an interval of δ, from_delta and
        to_delta.
        """
        return self._result.to_frame()

    def latex(self, *, table: bool = False) -> str:
        """Write the formula in LaTeX.

        Args:
            table: Whether to write a table for the package booktabs. Default: cases.
        """
        rows = []
        for piece in self.pieces:
            text = piece.to_text(LATEX) if piece.value is not None else r"\text{infeasible}"
            rows.append((text, self._latex_condition(piece)))
        if not table:
            body = " \\\\\n".join(f"  {text} & {condition}" for text, condition in rows)
            return f"\\begin{{cases}}\n{body}\n\\end{{cases}}"
        lines = "".join(f"${condition}$ & ${text}$ \\\\\n" for text, condition in rows)
        head = "\\begin{tabular}{ll}\n\\toprule\nwhere & optimum \\\\\n\\midrule\n"
        return f"{head}{lines}\\bottomrule\n\\end{{tabular}}"

    def _latex_condition(self, piece: Piece) -> str:
        """Write where a piece holds in LaTeX."""
        low, high = piece.epsilon
        if self.proven_epsilon is not None:
            condition = rf"\varepsilon = {low:.6g}"
        else:
            condition = rf"{low:.6g} < \varepsilon"
            if not math.isinf(high):
                condition += f" < {high:.6g}"
        if piece.has_delta_interval:
            condition += r",\ {} \le \delta \le {}".format(*piece.delta_limit_texts(LATEX))
        return condition

    def python(self, name: str = "optimum") -> str:
        """Write the source of a Python function of ε and δ, in floats.

        Args:
            name: The name of the function.
        """
        # `to_text` writes powers of e^ε, whatever `steps` is.
        lines = [
            "import math",
            "",
            "",
            f"def {name}(epsilon, delta=0.0):",
            f'    """{self.what}."""',
            "    x = math.exp(epsilon)",
        ]
        for piece in self.pieces:
            low, high = piece.epsilon
            condition = f"{low!r} <= epsilon"
            if not math.isinf(high):
                condition += f" <= {high!r}"
            if piece.has_delta_interval:
                condition += " and {} <= delta <= {}".format(*piece.delta_limit_texts(PYTHON))
            value = "math.nan" if piece.value is None else piece.to_text(PYTHON)
            lines += [f"    if {condition}:", f"        return {value}"]
        lines += ['    raise ValueError("the formula does not hold there")', ""]
        return "\n".join(lines)

    def sympy(self) -> Any:
        """Return a sympy.Piecewise in the symbols epsilon and delta.

        Raises NotInstalled if sympy is not installed.
        """
        try:
            sympy = importlib.import_module("sympy")
        except ModuleNotFoundError:
            raise NotInstalled(
                "A formula in sympy needs sympy, which is not installed: pip install sympy."
            ) from None
        epsilon, delta = sympy.symbols("epsilon delta", positive=True)
        names = {"x": sympy.exp(epsilon), "delta": delta}
        cases = []
        for piece in self.pieces:
            low, high = piece.epsilon
            upper = sympy.oo if math.isinf(high) else high
            condition = sympy.And(epsilon >= low, epsilon <= upper)
            if piece.has_delta_interval:
                first, last = piece.delta_limit_texts(PYTHON)
                delta_low = sympy.sympify(first, names)
                delta_high = sympy.sympify(last, names)
                condition = sympy.And(condition, delta >= delta_low, delta <= delta_high)
            value = sympy.nan
            if piece.value is not None:
                value = sympy.sympify(piece.to_text(PYTHON), names)
            cases.append((value, condition))
        return sympy.Piecewise(*cases)

    def save(self, path: str | Path) -> list[Path]:
        """Write the formula to a file and return the files that were written.

        Args:
            path: The file: .json (certificate), .csv, .tex (table) or .py (function).

        Raises:
            InvalidRequest: The suffix is not supported, or no certificate can be written.
            OSError: The file cannot be written.
        """
        target = Path(path)
        match target.suffix.lower():
            case ".json":
                text = json.dumps(self.to_dict() | self.proof(), ensure_ascii=False) + "\n"
            case ".tex":
                text = self.latex(table=True) + "\n"
            case ".py":
                text = self.python()
            case _:
                return self._result.save(path)
        write_atomically(target, text.encode())
        return [target]

    def plot(
        self, path: str | Path | None = None, *, width: Width = None, title: str | None = None
    ) -> Figure:
        """Draw the formula.

        The figure is the (ε, δ) plane with one region for each formula, or the optimum against ε
        if δ is one number.

        Args:
            path: A file to write the figure to (.png, .svg or .pdf). Default: none.
            width: The width of the figure, see `Result.plot`.
            title: The title of the figure. Default: the class of mechanisms and the loss.

        Raises:
            InvalidRequest: The suffix or the width is not supported.
            OSError: The file cannot be written.
        """
        epsilon = None if self.proven_epsilon is None else float(self.proven_epsilon)
        figure = draw_formulas(title or self.what, self.pieces, epsilon)
        if path is not None:
            save_figure(figure, Path(path), width)
        return figure

    def _repr_html_(self) -> str:
        return self._result._repr_html_()

    def _repr_latex_(self) -> str:
        return f"$$V(\\varepsilon) = {self.latex()}$$"


def _may_contain(piece: Piece, x: RationalPair) -> bool:
    """Return whether the interval of a piece may contain the number between two bounds."""
    low, high = x
    if piece.low.is_above(high):
        return False
    return piece.high is None or not piece.high.is_below(low)


def _count_noun(count: int, noun: str) -> str:
    """Write a number with its noun in the singular or the plural."""
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"
