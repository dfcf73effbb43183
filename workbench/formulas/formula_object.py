"""A formula as an object: what it says at a point, how it is written, drawn and saved."""

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
from workbench.formulas.pieces import Piece, to_epsilon_interval
from workbench.formulas.plot import draw_formulas
from workbench.formulas.text import LATEX, PLAIN, PYTHON, write_affine
from workbench.io.figures import Width, save_figure
from workbench.io.files import write_atomically
from workbench.io.result import Result

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

_BITS, _WIDTH = 200, Fraction(1, 1 << 100)  # of an enclosure


def _raise_proof_error(error: WorkbenchError) -> Record:
    """The proof of a formula for which no file can hold one."""
    raise error


@dataclass(frozen=True, repr=False)
class Formula:
    """The optimum of a question for an interval of ε and of δ.

    what: the class of mechanisms and the loss; pieces: by rising ε, and within one interval by rising δ; open:
    intervals of ε that are not proven, as after a time limit or Ctrl-C; seconds: it took; proof: what a certificate
    holds beside the pieces, or a function that raises why there is none; at: the one ε at which formulas of patterns
    (PDP) are proven; then open holds intervals of δ.
    """

    what: str
    pieces: tuple[Piece, ...]
    steps: int = 1
    unproven: tuple[FloatPair, ...] = ()
    seconds: float = 0.0
    proof: Callable[[], Record] = dict
    proven_epsilon: Fraction | None = None

    def __getstate__(self) -> Record:
        """What is pickled: its proof as it is written, as that of an object holds functions."""
        try:
            proof: Any = partial(dict, self.proof())
        except WorkbenchError as error:
            proof = partial(_raise_proof_error, error)
        return {**self.__dict__, "proof": proof}

    def __call__(self, epsilon: Any, delta: Any = None) -> RationalPair:
        """A proven enclosure of the optimum, about 1e-50 wide. delta: needed where it is free.

        Raises InvalidRequest outside the intervals of the formula; Infeasible where no mechanism meets the request.
        """
        power, share = (
            read_number(epsilon, "epsilon"),
            None if delta is None else read_number(delta, "delta"),
        )
        if self.proven_epsilon is not None and power != self.proven_epsilon:
            must(
                "epsilon",
                f"{float(self.proven_epsilon):g}, where the patterns are proven to be optimal",
                epsilon,
            )
        for bits in (_BITS, 4 * _BITS, 16 * _BITS):
            x = exp_interval(power / self.steps, bits)
            piece = self._find_piece(x, share, epsilon)
            if piece.value_at is None:
                raise Infeasible(f"No mechanism meets the request at epsilon = {epsilon}.")
            ends = piece.value_at.enclose(
                *x, piece.delta[0](Fraction(2)) if share is None else share
            )
            if ends is not None and ends[1] - ends[0] <= _WIDTH:
                return ends
        raise NotProven(f"The formula is near a pole at epsilon = {epsilon}.")

    def _find_piece(self, x: RationalPair, delta: Fraction | None, epsilon: Any) -> Piece:
        """The piece that holds at an ε; of two that meet there either."""
        here = [
            piece
            for piece in self.pieces
            if not piece.low.is_above(x[1])
            and (piece.high is None or not piece.high.is_below(x[0]))
        ]
        if not here:
            ends = ", ".join(
                sorted(
                    {
                        f"{piece.epsilon[0]:.6g} < ε < {piece.epsilon[1]:.6g}"
                        for piece in self.pieces
                    }
                )
            )
            must("epsilon", f"where the formula holds ({ends})", epsilon)
        if delta is None:
            if any(piece.has_delta_interval for piece in here):
                must("delta", "given, as the formula is for an interval of it", "none")
            return here[0]
        for piece in here:
            low, high = (end.enclose(*x, ZERO) or (delta, delta) for end in piece.delta)
            if low[0] <= delta <= high[1]:
                return piece
        return must("delta", "where the formula holds", delta)

    @property
    def mechanism(self) -> list[Record]:
        """The probabilities of mechanisms that attain the optimum, by name, as formulas, with where each holds."""
        rows = []
        for piece in self.pieces:
            for part in piece.parts:
                low, high = to_epsilon_interval((part.low, part.high), self.steps)
                row: Record = {"from_epsilon": low, "to_epsilon": high}
                if piece.has_delta_interval:
                    row["from_delta"], row["to_delta"] = piece.delta_limit_texts()
                rows.append(
                    row
                    | {
                        name: write_affine(mass, PLAIN, self.steps)
                        for name, mass in part.masses.items()
                    }
                )
        return rows

    # Shown.

    def __str__(self) -> str:
        name = "ε" if self.proven_epsilon is None else "δ"
        gaps = (f"open, not proven: {low:.9g} < {name} < {high:.9g}" for low, high in self.unproven)
        return "\n".join(
            [
                self.what,
                *(f"{self.describe_interval(piece)}: {piece.to_text()}" for piece in self.pieces),
                *gaps,
            ]
        )

    @property
    def words(self) -> Strings:
        """What is proven, in sentences."""
        first, *rest = str(self).splitlines()
        count = f"{len(self.pieces)} formula{'' if len(self.pieces) == 1 else 's'}"
        gaps = "" if self.unproven else "gap or "
        return (f"{first}: {count}, without {gaps}overlap, proven without a solver.", *rest)

    def describe_interval(self, piece: Piece) -> str:
        """The interval of ε, and of δ where that is free, in words; of δ in numbers, where ε is given."""
        if self.proven_epsilon is not None:
            return "{:.6g} ≤ δ ≤ {:.6g}".format(*piece.delta_limits_at(self.proven_epsilon))
        low, high = piece.epsilon
        above = "" if math.isinf(high) else f" < {high:.9g}"
        words = f"{low:.9g} < ε{above}" if low or above else "0 < ε"
        return words + (
            ", {} ≤ δ ≤ {}".format(*piece.delta_limit_texts()) if piece.has_delta_interval else ""
        )

    def __repr__(self) -> str:
        return f"Formula({self.what!r}, {len(self.pieces)} piece{'' if len(self.pieces) == 1 else 's'})"

    def to_dict(self) -> Record:
        """JSON-ready."""
        return {
            "what": self.what,
            "variable": f"x = exp(epsilon{'' if self.steps == 1 else f'/{self.steps}'})",
            "pieces": [piece.to_dict() for piece in self.pieces],
            "open": [[low, None if math.isinf(high) else high] for low, high in self.unproven],
            **(
                {}
                if self.proven_epsilon is None
                else {"proven_at": {"epsilon": float(self.proven_epsilon)}}
            ),
        }

    @cached_property
    def _result(self) -> Result:
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
        """Those of `to_frame`."""
        return [*self._result.rows]

    def to_frame(self) -> pd.DataFrame:
        """From ε, to ε, formula; the ends of δ where it is free."""
        return self._result.to_frame()

    def latex(self, *, table: bool = False) -> str:
        """The cases of the optimum in LaTeX, or a table for the package booktabs."""
        rows = []
        for piece in self.pieces:
            low, high = piece.epsilon
            where = rf"{low:.6g} < \varepsilon" + ("" if math.isinf(high) else f" < {high:.6g}")
            where = where if self.proven_epsilon is None else rf"\varepsilon = {low:.6g}"
            if piece.has_delta_interval:
                where += r",\ {} \le \delta \le {}".format(*piece.delta_limit_texts(LATEX))
            rows.append(
                (
                    piece.to_text(LATEX) if piece.value_at is not None else r"\text{infeasible}",
                    where,
                )
            )
        if not table:
            body = " \\\\\n".join(f"  {text} & {where}" for text, where in rows)
            return f"\\begin{{cases}}\n{body}\n\\end{{cases}}"
        lines = "".join(f"${where}$ & ${text}$ \\\\\n" for text, where in rows)
        head = "\\begin{tabular}{ll}\n\\toprule\nwhere & optimum \\\\\n\\midrule\n"
        return f"{head}{lines}\\bottomrule\n\\end{{tabular}}"

    def python(self, name: str = "optimum") -> str:
        """The source of a plain function of ε and δ, in floats."""
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
            test = f"{low!r} <= epsilon" + ("" if math.isinf(high) else f" <= {high!r}")
            if piece.has_delta_interval:
                test += " and {} <= delta <= {}".format(*piece.delta_limit_texts(PYTHON))
            value = "math.nan" if piece.value_at is None else piece.to_text(PYTHON)
            lines += [f"    if {test}:", f"        return {value}"]
        return "\n".join([*lines, '    raise ValueError("the formula does not hold there")', ""])

    def sympy(self) -> Any:
        """A sympy.Piecewise in the symbols epsilon and delta. Raises NotInstalled without sympy."""
        try:
            sympy = importlib.import_module("sympy")
        except ModuleNotFoundError:
            raise NotInstalled(
                "A formula in sympy needs sympy, which is not installed: pip install sympy."
            ) from None
        epsilon, delta = sympy.symbols("epsilon delta", positive=True)
        known = {"x": sympy.exp(epsilon), "delta": delta}
        cases = []
        for piece in self.pieces:
            low, high = piece.epsilon
            where = sympy.And(epsilon >= low, epsilon <= (sympy.oo if math.isinf(high) else high))
            if piece.has_delta_interval:
                first, last = (
                    sympy.sympify(text, known) for text in piece.delta_limit_texts(PYTHON)
                )
                where = sympy.And(where, delta >= first, delta <= last)
            cases.append(
                (
                    sympy.nan
                    if piece.value_at is None
                    else sympy.sympify(piece.to_text(PYTHON), known),
                    where,
                )
            )
        return sympy.Piecewise(*cases)

    def save(self, path: str | Path) -> list[Path]:
        """Write a .json (certificate), .csv, .tex (table) or .py (function) file. Raises InvalidRequest, OSError."""
        target = Path(path)
        texts: dict[str, Callable[[], str]] = {
            ".json": lambda: json.dumps(self.to_dict() | self.proof(), ensure_ascii=False) + "\n",
            ".tex": lambda: self.latex(table=True) + "\n",
            ".py": self.python,
        }
        text = texts.get(target.suffix.lower())
        if text is None:
            return self._result.save(path)
        write_atomically(target, text().encode())
        return [target]

    def plot(self, path: str | Path | None = None, *, width: Width = None) -> Figure:
        """The (ε, δ) plane with the region of each formula, or the optimum over ε where δ is given.

        path: also write it (.png, .svg or .pdf). width: see `Result.plot`. Raises InvalidRequest, OSError.
        """
        drawn = draw_formulas(
            self.what,
            self.pieces,
            None if self.proven_epsilon is None else float(self.proven_epsilon),
        )
        if path is not None:
            save_figure(drawn, Path(path), width)
        return drawn

    def _repr_html_(self) -> str:
        return self._result._repr_html_()

    def _repr_latex_(self) -> str:
        return f"$$V(\\varepsilon) = {self.latex()}$$"
