"""What a reproduction is made of: artifacts (a table, a figure, printed numbers beside ours) and errata with checks.

A paper's modules define functions that compute rows, words and numbers; papers/declared/<paper>.toml names them, and
states titles, captions, figures and the words of errata, which `paper_stated` fills in. `reproduce` writes each as CSV,
PNG, SVG and PDF, and assembles results/README.md. Printed numbers live in papers/printed/<paper>.toml, are
only ever compared with, and never used to compute ours.
"""

from __future__ import annotations

import functools
import itertools
import json
import math
import operator
from collections import ChainMap
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from workbench import __version__
from workbench.errors import InvalidRequest
from workbench.exact.objects import Record, Values
from workbench.io.drawing import Drawing, read_toml_resource
from workbench.io.figures import WIDTH_INCHES, render_figure
from workbench.io.files import PICTURE_FORMATS
from workbench.io.result import Row, encode_tex_table

if TYPE_CHECKING:
    from matplotlib.figure import Figure


ArtifactFunction = Callable[..., "Artifact"]  # with everything or with the minutes-long default

FORMATS = ("csv", "tex", *PICTURE_FORMATS, *WIDTH_INCHES)  # tex and widths only where asked for
SIGNIFICANT_DIGITS = 9  # significant digits of a number whose computation is exact but for rounding
_ROUNDING_NOISE = 1e-11  # smaller differences between machines are rounding, around 0 as well


def round_to_digits(
    value: float, digits: int = SIGNIFICANT_DIGITS, noise: float = _ROUNDING_NOISE
) -> float:
    """The value to so many significant digits, the same on every machine that agrees to two digits more.

    Rounded twice: a value that sits on a tie but for rounding errors is first put onto it. noise: below it, 0.
    """
    if not math.isfinite(value):
        return value
    return 0.0 if abs(value) < noise else float(f"{float(f'{value:.{digits + 2}g}'):.{digits}g}")


@dataclass(frozen=True)
class Comparison:
    """A printed number beside ours.

    what: the quantity; place: where the paper prints it; printed, ours: the numbers; tolerance: half a unit of the
    last printed digit (or wider, with the reason in `remark`); expected: whether they should agree at all, False where
    the printed number is wrong and `remark` says which erratum shows it; explained: False where a difference is known
    and nothing we computed accounts for it; apart: in words that follow "printed numbers", why agreement says little,
    as beside a stand-in that was fitted to them: such numbers are counted apart.
    """

    what: str
    place: str
    printed: float
    ours: float
    tolerance: float
    expected: bool = True
    remark: str = ""
    explained: bool = True
    apart: str = ""

    @property
    def written_value(self) -> float:
        """`ours` to a hundredth of the tolerance: what is written."""
        return round_to_digits(round(self.ours, 2 - math.floor(math.log10(self.tolerance))))

    @property
    def difference(self) -> float:
        """ours - printed."""
        return self.ours - self.printed

    @property
    def agrees(self) -> bool:
        """Whether they agree within the tolerance."""
        return math.isfinite(self.ours) and abs(self.difference) <= self.tolerance * (1 + 1e-9)

    @property
    def verdict(self) -> str:
        """In words: "agrees", "differs: erratum", "differs: not explained", or the surprising ones."""
        if self.agrees:
            return "agrees" if self.expected else "agrees, although it is said to differ"
        return (
            "DIFFERS"
            if self.expected
            else f"differs: {'erratum' if self.explained else 'not explained'}"
        )

    @property
    def surprising(self) -> bool:
        """Whether the verdict is not the expected one."""
        return self.agrees != self.expected

    def to_record(self) -> Record:
        """What is written of it."""
        return {name: value for name, value in asdict(self).items() if name != "apart" or value} | {
            "ours": self.written_value,
            "difference": round_to_digits(self.written_value - self.printed, 4),
            "tolerance": float(f"{self.tolerance:.6g}"),
            "verdict": self.verdict,
            "surprising": self.surprising,
        }


@dataclass(frozen=True)
class Artifact:
    """One figure or table of a paper, recomputed.

    Attributes:
        name: "fig10", "table1": the file stem and the argument of --only.
        title: one line.
        table: the data behind it, one row per point or cell.
        draw: table -> Figure; None for a table without a figure.
        caption: how it was computed and every way in which it differs from the paper's.
        comparisons: printed numbers beside ours.
        digits: significant digits of columns that a search or a solver stands behind, as many as it converges to on
            every machine; the others have DIGITS.
        measured: whether the table is of one run on one machine (seconds, residuals), whose small numbers are no noise.
    """

    name: str
    title: str
    table: pd.DataFrame
    draw: Callable[[pd.DataFrame], Figure] | None
    caption: str
    comparisons: Sequence[Comparison] = ()
    digits: Mapping[str, int] = field(default_factory=dict)
    measured: bool = False

    def rounded_table(self) -> pd.DataFrame:
        """The table as it is written and drawn: every float rounded to its column's digits."""
        table, noise = self.table.copy(), 0.0 if self.measured else _ROUNDING_NOISE
        for column in table.columns:
            count = self.digits.get(str(column), SIGNIFICANT_DIGITS)
            table[column] = [
                round_to_digits(v, count, noise) if isinstance(v, float) else v
                for v in table[column]
            ]
        table.attrs = self.table.attrs
        return table

    def build_files(self, formats: Collection[str] = ()) -> dict[str, bytes]:
        """Table (CSV), figure (PNG, SVG, PDF) and record, by the names of their files; formats: of FORMATS, besides."""
        shown = self.rounded_table()
        table = shown.to_csv(index=False, float_format="%.12g", lineterminator="\n")
        record = {
            "name": self.name,
            "title": self.title,
            "caption": self.caption,
            "figure": self.draw is not None,
            "comparisons": [c.to_record() for c in self.comparisons],
        }
        contents = {"csv": table.encode(), "json": encode_json(record)}
        if "tex" in formats:
            contents["tex"] = encode_tex_table(shown, self.title)
        if self.draw:
            figure = self.draw(shown)
            contents |= {form: render_figure(figure, form) for form in PICTURE_FORMATS}
        files = {f"{self.name}.{ending}": content for ending, content in contents.items()}
        for name in formats:
            if name in WIDTH_INCHES and self.draw:
                with suppress(InvalidRequest):  # no room for its legend
                    files[f"{self.name}_{name}.pdf"] = render_figure(
                        self.draw(shown), "pdf", WIDTH_INCHES[name]
                    )
        return files


def encode_json(content: Any) -> bytes:
    """A record as it is written."""
    return (json.dumps(content, indent=1, ensure_ascii=False) + "\n").encode()


def make_artifact(
    paper: str,
    name: str,
    table: pd.DataFrame,
    /,
    comparisons: Sequence[Comparison] = (),
    *,
    draw: Callable[[pd.DataFrame], Figure] | None = None,
    further: Mapping[str, pd.DataFrame] | None = None,
    **words: Any,
) -> Artifact:
    """An artifact with the title, caption, digits and figure that papers/declared/<paper>.toml states.

    comparisons: besides those that the file states; draw: in place of a declared figure; further: tables beside this
    one that it draws; words: of the templates.
    """
    paper_states = read_declaration(paper)
    own = paper_states[name]
    words = {
        word: _evaluate_caption_value(what, table) for word, what in own.get("words", {}).items()
    } | words
    if "figure" in own:
        draw = Drawing(own["figure"], words, paper_states.get("styles", {}), further or {})
    title, caption = (own[key].format(**words) for key in ("title", "caption"))
    beside = [*_make_declared_comparisons(paper, name, table), *comparisons]
    return Artifact(
        name, title, table, draw, caption, beside, own.get("digits", {}), own.get("measured", False)
    )


def select_arguments(part: Values, full: bool) -> Record:
    """What a declared request asks for, by default or with `full`."""
    return {**part.get("given", {}), **(part.get("full", {}) if full else {})}


def compute_declared_table(
    paper: str, name: str, functions: Values, full: bool = False, partial_file: Path | None = None
) -> pd.DataFrame:
    """The table that papers/declared/<paper>.toml states: one part after the other, each the rows `of` a function.

    A part: given, full (instead, with `full`): what the function is given; each: further of these, in every
    combination, which are columns as well; let: columns that are expressions of these; add: columns of one value. The
    table: columns, those of the rows where none are named; beside: columns of printed numbers, each a place in
    printed/<paper>.toml. kept: a file for rows as they are had, from which a table that was interrupted goes on.
    """
    own = read_declaration(paper)[name]
    had: Record = (
        {}
        if partial_file is None or not partial_file.exists()
        else dict(_read_partial_rows(partial_file.read_text("utf-8")))
    )
    tables = []
    for part in own["rows"]:
        for values in itertools.product(*part.get("each", {}).values()):
            chosen = dict(zip(part.get("each", {}), values, strict=True))
            key = json.dumps([part["of"], select_arguments(part, full), chosen])
            if key not in had:
                had[key] = _compute_part(part, functions, full, chosen).to_dict("records")
                if partial_file is not None:
                    partial_file.parent.mkdir(parents=True, exist_ok=True)
                    with partial_file.open("a", encoding="utf-8") as file:
                        file.write(f"{json.dumps([__version__, key, had[key]])}\n")
            tables.append(pd.DataFrame(had[key]))
    table = pd.concat(tables, ignore_index=True).reindex(columns=own.get("columns"))
    return table.assign(
        **{
            column: np.ravel(_find_printed_number(paper, at))
            for column, at in own.get("beside", {}).items()
        }
    )


def _read_partial_rows(text: str) -> Iterator[tuple[str, list[Row]]]:
    """The rows that this version kept, by what they are of; a line that was cut short is left out."""
    for line in text.splitlines():
        with suppress(ValueError):
            version, key, rows = json.loads(line)
            if version == __version__:
                yield key, rows


def _compute_part(part: Values, functions: Values, full: bool, chosen: Values) -> pd.DataFrame:
    rows = pd.DataFrame(functions[part["of"]](**select_arguments(part, full), **chosen)).assign(
        **chosen
    )
    new: Row = {column: rows.eval(what) for column, what in part.get("let", {}).items()}
    return rows.assign(**new, **part.get("add", {}))


def _find_printed_number(paper: str, place: str) -> Any:
    """What stands at a place in printed/<paper>.toml, its keys joined by dots."""
    return functools.reduce(operator.getitem, place.split("."), read_printed_numbers(paper))


def _make_declared_comparisons(paper: str, name: str, table: pd.DataFrame) -> Iterator[Comparison]:
    """The printed numbers that papers/declared/<paper>.toml states beside those of the table.

    where: the rows they are beside, all without; ours: an expression of these, for each row or one; printed: such an
    expression, or a place in printed/<paper>.toml; what, remark: templates, of the row and k, its number from 0; place:
    where it is printed, that of the artifact without; tolerance: half a unit of the last printed digit; expected: true
    without. These two are constants or expressions.
    """
    for beside in read_declaration(paper)[name].get("compared", ()):
        rows: Any = table.query(beside["where"]) if "where" in beside else table
        theirs, ours = beside["printed"], np.ravel(rows.eval(beside["ours"]))
        values = np.ravel(rows[theirs] if theirs in rows else _find_printed_number(paper, theirs))
        tolerances, expected = (
            np.broadcast_to(rows.eval(what) if isinstance(what, str) else what, ours.shape).tolist()
            for what in (beside["tolerance"], beside.get("expected", True))
        )
        for k, row in enumerate(rows.head(len(ours)).to_dict("records")):
            what, remark = (
                beside.get(key, "").format(**{**row, "k": k}) for key in ("what", "remark")
            )
            place = beside.get("place") or read_printed_numbers(paper)[name]["place"]
            yield Comparison(
                what, place, values[k].item(), ours[k].item(), tolerances[k], expected[k], remark
            )


def _evaluate_caption_value(what: Any, table: pd.DataFrame) -> Any:
    """A word of the templates: as stated, or the value of an expression on the rows `where` a condition holds."""
    if not isinstance(what, Mapping):
        return what
    return (table.query(what["where"]) if "where" in what else table).eval(what["value"])


def check_errata(paper: str, functions: Values) -> list[Record]:
    """Every erratum that papers/declared/<paper>.toml states, in its order, checked now: a printed claim that is wrong.

    place, printed, right: sentences; evidence: the numbers of the check, in words; holds: whether it showed the error.
    Its words are what is `given`, what the function that it is `of` makes of that, and further `numbers` in turn:
    constants, expressions of those before, or the `value` of an expression on the rows of a function. `holds` states
    the condition on these.
    """
    return [
        _check_erratum(stated, functions) for stated in read_declaration(paper)["errata"].values()
    ]


def _check_erratum(stated: Values, functions: Values) -> Record:
    given = stated.get("given", {})
    words = {**given, **(functions[stated["of"]](**given) if "of" in stated else {})}
    for word, what in stated.get("numbers", {}).items():
        if isinstance(what, Mapping):
            words[word] = functions[what["of"]](**what["given"]).eval(what["value"])
        else:
            words[word] = _evaluate_expression(what, words) if isinstance(what, str) else what
    sentences = {
        key: stated[key].format(**words) for key in ("place", "printed", "right", "evidence")
    }
    return sentences | {"holds": bool(_evaluate_expression(stated["holds"], words))}


def _evaluate_expression(what: str, words: Values) -> Any:
    """The value of an expression of numbers by their names."""
    value: Any = pd.DataFrame([words]).eval(what)
    return value.item()


@dataclass(frozen=True)
class Paper:
    """A paper: its artifacts by name, each a function that computes it, and its errata.

    A function takes `full` (False: the minutes-long default; True: everything) and returns the Artifact.
    needs: artifact -> extra that must be installed for it; "errata" may be among them.
    only_full: names of artifacts that are recomputed with full only; what they left in the results stays otherwise.
    seconds: about how long artifacts take (and "errata"), where it is more than a few; several processes begin with
    the longest. together: artifacts that share most of their computation and stay in one process; timed: that measure
    seconds, computed while nothing else is; kept: that are also given a file, from which they go on once interrupted.
    """

    name: str
    title: str
    citation: str
    artifacts: Mapping[str, ArtifactFunction]
    errata: Callable[[], Sequence[Record]] | None = None
    remarks: Sequence[str] = field(default_factory=tuple)
    needs: Mapping[str, str] = field(default_factory=dict)
    only_full: Collection[str] = ()
    seconds: Mapping[str, float] = field(default_factory=dict)
    together: Sequence[Collection[str]] = ()
    timed: Collection[str] = ()
    kept: Collection[str] = ()
    on_demand: bool = (
        False  # recomputed only when named or with --full: it takes minutes and times machines
    )

    @property
    def requires_full(self) -> bool:
        """Whether nothing of the paper is recomputed without full."""
        return {*self.artifacts} <= {*self.only_full}


def build_declared_paper(file: str, *spaces: Record) -> Paper:
    """The paper that papers/declared/<file>.toml states as `paper`, with what has a caption there, in its order.

    spaces: where the functions that it names are found. An artifact without rows is computed by that of its name; of
    one with rows, `more` names what says more of its table: comparisons, words (besides what its first part is given),
    ...
    """
    own, functions = read_declaration(file), ChainMap(*spaces)
    artifacts = {
        name: _make_artifact_function(file, name, functions)
        if "rows" in stated
        else functions[name.replace("-", "_")]
        for name, stated in own.items()
        if stated.keys() >= {"title", "caption"}
    }
    return Paper(
        **own["paper"],
        artifacts=artifacts,
        errata=partial(check_errata, file, functions) if "errata" in own else None,
    )


def _make_artifact_function(file: str, name: str, functions: Values) -> ArtifactFunction:
    """What computes an artifact with rows."""
    stated = read_declaration(file)[name]

    def compute(full: bool, kept: Path | None = None) -> Artifact:
        table = compute_declared_table(file, name, functions, full, kept)
        more = functions[stated["more"]](table) if "more" in stated else {}
        own, words = stated.get("words", {}), select_arguments(stated["rows"][0], full)
        words = {word: value for word, value in words.items() if word not in own}
        return make_artifact(file, name, table, **words | more)

    return compute


def read_declaration(paper: str) -> Record:
    """What a paper's file declares, papers/declared/<paper>.toml."""
    return read_toml_resource("workbench.papers", f"declared/{paper}.toml")


def read_printed_numbers(paper: str) -> Record:
    """The printed numbers of a paper, from papers/printed/<paper>.toml."""
    return read_toml_resource("workbench.papers", f"printed/{paper}.toml")
