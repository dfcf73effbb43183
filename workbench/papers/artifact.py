"""Make the parts of a reproduction: artifacts (tables and figures), printed numbers, and errata.

The modules of a paper define functions that compute rows and numbers. papers/declared/<paper>.toml
names these functions and has the titles, the captions, the figures and the texts of the errata.
`build_declared_paper` combines both. `reproduce` writes each artifact as CSV, PNG, SVG and PDF and
assembles results/README.md. The printed numbers are in papers/printed/<paper>.toml. They are only
compared with our numbers and never used to compute them.

    table of a declared file   content
    [paper]                    the fields of `Paper`
    [<artifact>]               title, caption, and either `function` (a function that makes the
                               artifact) or `rows` (parts of its table, see `_compute_part`)
    [<artifact>.figure]        the figure, see `workbench.io.drawing`
    [parameters]               what a reader may change, see `workbench.papers.parameters`
    [errata.<name>]            an erratum, see `check_errata`
    [claims.<name>]            how a sentence of the paper is judged, see `workbench.papers.claims`

For example, this declares an artifact whose table has the rows of two calls of
`solve_least_error(n=8, max_shift=3, epsilon=...)`:

    [fig5]
    title = "Fig. 5: error against δ"
    caption = "Solved by HiGHS for answers 0..{n}."
    [[fig5.rows]]
    function = "solve_least_error"
    arguments = {n = 8, max_shift = 3}
    grid = {epsilon = [1, 2]}
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
from workbench.errors import InvalidRequest, must
from workbench.exact.objects import Record, Values
from workbench.io.drawing import Drawing, read_toml_resource
from workbench.io.figures import WIDTH_INCHES, render_figure
from workbench.io.files import PICTURE_FORMATS
from workbench.io.result import Row, encode_tex_table
from workbench.papers.parameters import (
    Parameter,
    describe_changes,
    fill_parameters,
    format_parameter,
    list_parameters,
)

if TYPE_CHECKING:
    from matplotlib.figure import Figure


# A function that makes an artifact. Its argument `full` selects everything (True) or the default,
# which takes minutes (False).
ArtifactFunction = Callable[..., "Artifact"]

# The formats of an artifact. "tex" and the widths are only written on request.
FORMATS = ("csv", "tex", *PICTURE_FORMATS, *WIDTH_INCHES)

SIGNIFICANT_DIGITS = 9  # Numbers that are exact except for rounding are written with these digits.
_ROUNDING_NOISE = 1e-11  # Smaller numbers are differences between machines and are written as 0.
_DIFFERENCE_DIGITS = 4  # Differences from printed numbers are written with these digits.
_AGREEMENT_SLACK = 1e-9  # Tolerances are widened by this share, because they are floats.


def round_to_digits(
    value: float, digits: int = SIGNIFICANT_DIGITS, noise: float = _ROUNDING_NOISE
) -> float:
    """Round a value so that machines that agree to two more digits give the same result.

    The value is rounded twice. A value that is on a tie except for rounding errors is first moved
    onto the tie.

    Args:
        value: Any float; infinities and NaN are returned unchanged.
        digits: The number of significant digits.
        noise: Values of a smaller size become 0.
    """
    if not math.isfinite(value):
        return value
    if abs(value) < noise:
        return 0.0
    tied = float(f"{value:.{digits + 2}g}")
    return float(f"{tied:.{digits}g}")


@dataclass(frozen=True)
class Comparison:
    """A number that a paper prints, and the same number computed here.

    Attributes:
        what: The quantity that is printed, such as "f(0)".
        place: The place in the paper where the number is printed.
        printed: The printed number.
        ours: Our number.
        tolerance: Half a unit of the last printed digit, or more with the reason in `remark`.
        expected: Whether the numbers should agree. False if the printed number is wrong; `remark`
            then names the erratum.
        remark: A sentence about the tolerance or the difference, shown in the gallery.
        explained: False if a difference is known and no computation of ours explains it.
        apart: The reason if agreement is no evidence, otherwise empty. Such numbers are counted
            separately. The summary puts the text behind "3 of 4 printed numbers", for example
            "beside those of a stand-in fitted to them".
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
        """Return our number rounded to a hundredth of the tolerance."""
        decimals = 2 - math.floor(math.log10(self.tolerance))
        return round_to_digits(round(self.ours, decimals))

    @property
    def difference(self) -> float:
        """Return ours - printed."""
        return self.ours - self.printed

    @property
    def agrees(self) -> bool:
        """Return whether the numbers agree within the tolerance."""
        limit = self.tolerance * (1 + _AGREEMENT_SLACK)
        return math.isfinite(self.ours) and abs(self.difference) <= limit

    @property
    def verdict(self) -> str:
        """Return whether the numbers agree, in words.

        The expected verdicts are "agrees", "differs: erratum" and "differs: not explained", the
        surprising ones "DIFFERS" and "agrees, although it is said to differ".
        """
        if self.agrees:
            return "agrees" if self.expected else "agrees, although it is said to differ"
        if self.expected:
            return "DIFFERS"
        return "differs: erratum" if self.explained else "differs: not explained"

    @property
    def surprising(self) -> bool:
        """Return whether the verdict is not the expected one."""
        return self.agrees != self.expected

    def to_record(self) -> Record:
        """Return the comparison as it is written to a file."""
        record = asdict(self)
        if not self.apart:
            del record["apart"]
        return record | {
            "ours": self.written_value,
            "difference": round_to_digits(self.written_value - self.printed, _DIFFERENCE_DIGITS),
            "tolerance": float(f"{self.tolerance:.6g}"),
            "verdict": self.verdict,
            "surprising": self.surprising,
        }


@dataclass(frozen=True)
class Artifact:
    """A recomputed figure or table of a paper.

    Attributes:
        name: The file name without suffix and the argument of --only: "fig10", "table1".
        title: The title, one line.
        table: The data, one row for each point or cell.
        draw: Draws the table; None for a table without a figure.
        caption: How the artifact was computed and every difference from the paper's.
        comparisons: Printed numbers compared with ours.
        digits: The significant digits of columns that a search or a solver computes: those to
            which it converges on every machine. Default: SIGNIFICANT_DIGITS.
        measured: Whether the table has measurements of one run on one machine (seconds,
            residuals), whose small numbers are not noise.
        changes: The parameters that differ from the defaults, by name. Empty for the paper's
            artifact.
    """

    name: str
    title: str
    table: pd.DataFrame
    draw: Callable[[pd.DataFrame], Figure] | None
    caption: str
    comparisons: Sequence[Comparison] = ()
    digits: Mapping[str, int] = field(default_factory=dict)
    measured: bool = False
    changes: Values = field(default_factory=dict)

    def rounded_table(self) -> pd.DataFrame:
        """Return the table as it is written and drawn, with every float rounded."""
        table = self.table.copy()
        noise = _ROUNDING_NOISE
        if self.measured:
            noise = 0.0
        for column in table.columns:
            digits = self.digits.get(str(column), SIGNIFICANT_DIGITS)
            table[column] = [_round_cell(value, digits, noise) for value in table[column]]
        table.attrs = self.table.attrs
        return table

    def build_files(
        self, formats: Collection[str] = (), dpi: int | None = None
    ) -> dict[str, bytes]:
        """Return the contents of the files of the artifact by name.

        Args:
            formats: Names of FORMATS to write besides CSV, JSON and the pictures.
            dpi: Dots per inch of the PNG file. None: those of the style sheet.

        Returns:
            File name -> content.
        """
        table = self.rounded_table()
        csv_text = table.to_csv(index=False, float_format="%.12g", lineterminator="\n")
        record = {
            "name": self.name,
            "title": self.title,
            "caption": self.caption,
            "figure": self.draw is not None,
            "comparisons": [comparison.to_record() for comparison in self.comparisons],
        }
        if self.changes:
            record["parameters"] = {**self.changes}
        contents = {"csv": csv_text.encode(), "json": encode_json(record)}
        if "tex" in formats:
            contents["tex"] = encode_tex_table(table, self.title)
        if self.draw:
            figure = self.draw(table)
            for suffix in PICTURE_FORMATS:
                contents[suffix] = render_figure(figure, suffix, dpi=dpi)
        files = {f"{self.name}.{suffix}": content for suffix, content in contents.items()}
        for name in formats:
            if name in WIDTH_INCHES and self.draw:
                # A narrow figure without space for its legend is left out.
                with suppress(InvalidRequest):
                    content = render_figure(self.draw(table), "pdf", WIDTH_INCHES[name])
                    files[f"{self.name}_{name}.pdf"] = content
        return files


def _round_cell(value: Any, digits: int, noise: float) -> Any:
    """Return a cell with a float rounded and any other value unchanged."""
    return round_to_digits(value, digits, noise) if isinstance(value, float) else value


def encode_json(content: Any) -> bytes:
    """Return a record as the bytes of a JSON file.

    Args:
        content: A JSON-ready value.
    """
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
    full_values: Values | None = None,
    **values: Any,
) -> Artifact:
    """Make an artifact with the title, caption, digits and figure of its declaration.

    Args:
        paper: The name of the declared file.
        name: The name of the artifact.
        table: Its data, one row for each point or cell.
        comparisons: Comparisons besides the declared ones.
        draw: Draws the table if no figure is declared.
        further: Further tables that the figure draws, by name.
        full_values: The values that --full has instead of the defaults of parameters. They are
            named in the caption, and are no change.
        values: Texts and numbers for the placeholders of title, caption and figure, such as n for
            "{n}". They are added to the declared `values`, and replace those of the same name.
            Parameters of the artifact that differ from their defaults are among them. The artifact
            then has no printed numbers, and its caption has no `findings`.
    """
    declaration = read_declaration(paper)
    entry = declaration[name]
    parameters = list_parameters(declaration, name)
    changes: Record = {}
    template_values: Record = {}
    for key, parameter in parameters.items():
        value = values.get(key, parameter.default)
        if value != parameter.default:
            changes[key] = value
        elif full_values:
            value = full_values.get(key, value)
        template_values[key] = format_parameter(value) if isinstance(value, list) else value
    for key, value in entry.get("values", {}).items():
        template_values[key] = _evaluate_caption_value(value, table)
    template_values |= {key: value for key, value in values.items() if key not in parameters}

    title = entry["title"]
    caption = [entry["caption"], entry.get("findings", "")]
    figure = entry.get("figure")
    if changes:
        title = f"{title}, with other parameters"
        caption = [entry["caption"], _escape_braces(describe_changes(changes, parameters))]
        comparisons = ()
    else:
        comparisons = [*_make_declared_comparisons(paper, name, table), *comparisons]
    if figure is not None:
        if changes:
            figure = _remove_printed_marks(figure)
        draw = Drawing(figure, template_values, declaration.get("styles", {}), further or {})
    return Artifact(
        name=name,
        title=title.format(**template_values),
        table=table,
        draw=draw,
        caption=" ".join(filter(None, caption)).format(**template_values),
        comparisons=comparisons,
        digits=entry.get("digits", {}),
        measured=entry.get("measured", False),
        changes=changes,
    )


def _escape_braces(text: str) -> str:
    """Return a text that `str.format` leaves unchanged."""
    return text.replace("{", "{{").replace("}", "}}")


def _remove_printed_marks(figure: Values) -> Record:
    """Return a declared figure without printed numbers and without the limits of its axes.

    The limits are chosen for the default parameters. A lower end alone (ylim = 0) is kept, and so
    are limits that are expressions.
    """
    unmarked_figure: Record = {}
    for key, value in figure.items():
        if key == "panels":
            unmarked_figure[key] = [_remove_printed_marks(panel) for panel in value]
        elif key == "series":
            unmarked_figure[key] = [series for series in value if not series.get("printed")]
        elif key == "set":
            unmarked_figure[key] = {
                name: limits for name, limits in value.items() if not _is_fixed_limit(name, limits)
            }
        else:
            unmarked_figure[key] = value
    return unmarked_figure


def _is_fixed_limit(name: str, limits: Any) -> bool:
    """Return whether a property of an axis is a pair of numbers that limit it."""
    return (
        name in ("xlim", "ylim")
        and isinstance(limits, list)
        and not any(isinstance(limit, str) for limit in limits)
    )


def select_arguments(part: Values, full: bool, changes: Values | None = None) -> Record:
    """Return the declared arguments of a function.

    Args:
        part: A table of a declared file with `arguments`, and `full_arguments` that replace some of
            them if `full` is true.
        full: Whether everything is recomputed (--full).
        changes: The changed parameters by name. They also apply if `full` is true.

    Returns:
        The keyword arguments by name.
    """
    arguments = {**part.get("arguments", {})}
    if full:
        changed_texts = {f"${name}" for name in changes or ()}
        for key, value in part.get("full_arguments", {}).items():
            if arguments.get(key) not in changed_texts:
                arguments[key] = value
    return arguments


def compute_declared_table(
    paper: str,
    name: str,
    functions: Values,
    full: bool = False,
    partial_file: Path | None = None,
    changes: Values | None = None,
) -> pd.DataFrame:
    """Compute the table of an artifact from its declared parts, one part after the other.

    The entry of the artifact may have `columns` (the columns of the table; default: those of the
    rows) and `printed_columns` (columns of printed numbers, each a place in
    printed/<paper>.toml).

    Args:
        paper: The name of the declared file.
        name: The name of the artifact.
        functions: The functions that the file names, by name.
        full: Whether everything is recomputed (--full).
        partial_file: A file that stores the rows of each part, so that an interrupted computation
            can continue. None: rows are not stored.
        changes: The parameters that differ from the defaults, by name. If there are any, printed
            columns are omitted.

    Returns:
        The rows of all parts, with the columns of the entry.

    Raises:
        InvalidRequest: The changed parameters leave no row.
    """
    entry = read_declaration(paper)[name]
    parameter_values = {**entry.get("parameters", {}), **(changes or {})}
    rows_by_key: Record = {}
    if partial_file is not None and partial_file.exists():
        rows_by_key = dict(_read_partial_rows(partial_file.read_text("utf-8")))

    tables = []
    for declared_part in entry["rows"]:
        arguments = select_arguments(declared_part, full, changes)
        part = fill_parameters({**declared_part, "arguments": arguments}, parameter_values)
        part["constants"] = _fill_constants(part.get("constants", {}), parameter_values)
        grid = part.get("grid", {})
        for values in itertools.product(*grid.values()):
            point = dict(zip(grid, values, strict=True))
            key = json.dumps([part["function"], part["arguments"], point])
            if key not in rows_by_key:
                rows_by_key[key] = _compute_part(part, functions, point).to_dict("records")
                if partial_file is not None:
                    _append_partial_rows(partial_file, key, rows_by_key[key])
            tables.append(pd.DataFrame(rows_by_key[key]))

    table = pd.concat(tables, ignore_index=True).reindex(columns=entry.get("columns"))
    if changes:
        if table.empty:
            texts = [f"{key} = {format_parameter(value)}" for key, value in changes.items()]
            must("set", f"parameters for which {name} has a row", ", ".join(texts))
        return table
    printed_columns = {}
    for column, place in entry.get("printed_columns", {}).items():
        printed_columns[column] = np.ravel(_find_printed_number(paper, place))
    return table.assign(**printed_columns)


def _fill_constants(constants: Values, parameter_values: Values) -> Record:
    """Return the constant columns of a part, whose texts are templates of the parameters."""
    texts = {name: format_parameter(value) for name, value in parameter_values.items()}
    filled: Record = {}
    for column, constant in constants.items():
        filled[column] = constant.format(**texts) if isinstance(constant, str) else constant
    return filled


def _append_partial_rows(file: Path, key: str, rows: list[Row]) -> None:
    """Append the rows of a part to the file of an unfinished artifact, as one line of JSON."""
    file.parent.mkdir(parents=True, exist_ok=True)
    with file.open("a", encoding="utf-8") as stream:
        stream.write(f"{json.dumps([__version__, key, rows])}\n")


def _read_partial_rows(text: str) -> Iterator[tuple[str, list[Row]]]:
    """Yield (key, rows) of the parts that this version stored. Incomplete lines are skipped."""
    for line in text.splitlines():
        with suppress(ValueError):
            version, key, rows = json.loads(line)
            if version == __version__:
                yield key, rows


def _compute_part(part: Values, functions: Values, point: Values) -> pd.DataFrame:
    """Compute the rows of one part of a table at one point of its grid.

    The entries of a part are `function` (the name of the function), `arguments` and
    `full_arguments` (its keyword arguments; the latter are already merged into the former), `grid`
    (further arguments, in all combinations, which become columns too), `derived` (columns that are
    expressions of the others), and `constants` (columns with one value).
    """
    function = functions[part["function"]]
    rows = pd.DataFrame(function(**part["arguments"], **point)).assign(**point)
    derived_columns: Row = {}
    for column, expression in part.get("derived", {}).items():
        derived_columns[column] = rows.eval(expression)
    return rows.assign(**derived_columns, **part.get("constants", {}))


def _find_printed_number(paper: str, place: str) -> Any:
    """Return the entry of printed/<paper>.toml at a place: keys joined by dots ("fig2.mass")."""
    return functools.reduce(operator.getitem, place.split("."), read_printed_numbers(paper))


def _make_declared_comparisons(paper: str, name: str, table: pd.DataFrame) -> Iterator[Comparison]:
    """Yield the declared comparisons of printed numbers with those of a table.

    The entries of a declared comparison are:

    where                 A condition on the rows of the table. Default: all rows.
    ours                  An expression, with one value for each row or one for all rows.
    printed               A column of the table, or a place in printed/<paper>.toml.
    what, remark          Templates with the columns of the row and its number k, from 0.
    place                 The place in the paper. Default: the place of the artifact.
    tolerance, expected   Constants or expressions. Default of `expected`: true.
    """
    for entry in read_declaration(paper)[name].get("comparisons", ()):
        rows: Any = table.query(entry["where"]) if "where" in entry else table
        ours = np.ravel(rows.eval(entry["ours"]))
        printed_name = entry["printed"]
        if printed_name in rows:
            printed = np.ravel(rows[printed_name])
        else:
            printed = np.ravel(_find_printed_number(paper, printed_name))
        tolerances = _evaluate_for_rows(entry["tolerance"], rows, len(ours))
        expected = _evaluate_for_rows(entry.get("expected", True), rows, len(ours))
        place = entry.get("place") or read_printed_numbers(paper)[name]["place"]
        # One value for all rows is described by the first row.
        for k, row in enumerate(rows.head(len(ours)).to_dict("records")):
            values = {**row, "k": k}
            yield Comparison(
                what=entry.get("what", "").format(**values),
                place=place,
                printed=printed[k].item(),
                ours=ours[k].item(),
                tolerance=tolerances[k],
                expected=expected[k],
                remark=entry.get("remark", "").format(**values),
            )


def _evaluate_for_rows(value: Any, rows: Any, count: int) -> list[Any]:
    """Return a constant, or an expression of columns (a text), as one value for each row."""
    constant_or_column = rows.eval(value) if isinstance(value, str) else value
    values: list[Any] = np.broadcast_to(constant_or_column, (count,)).tolist()
    return values


def _evaluate_caption_value(value: Any, table: pd.DataFrame) -> Any:
    """Return a value of a template: a constant, or the value of an expression on the table.

    An expression is a mapping with `value`, and optionally `where`, a condition on the rows:
    {value = "mse.max()", where = "epsilon > 1"}.
    """
    if not isinstance(value, Mapping):
        return value
    rows = table.query(value["where"]) if "where" in value else table
    return rows.eval(value["value"])


def check_errata(paper: str, functions: Values) -> list[Record]:
    """Check every declared erratum, a printed claim that is wrong, in the order of the file.

    The entries of an erratum are `place`, `printed`, `right` and `evidence` (templates), and
    `condition` (an expression that is true if the check shows the error). Templates and condition
    use the following values by name:

    arguments   The keyword arguments of `function`.
    function    Its result, a dictionary of numbers and texts.
    numbers     Constants, expressions of the values before, or tables with `function`, `arguments`
                and `value`: an expression on the rows that this function returns.

    Args:
        paper: The name of the declared file.
        functions: The functions that the file names, by name.

    Returns:
        For each erratum: place, printed, right, evidence (sentences), and holds, whether the check
        shows the error.
    """
    errata = read_declaration(paper)["errata"].values()
    return [_check_erratum(erratum, functions) for erratum in errata]


def _check_erratum(erratum: Values, functions: Values) -> Record:
    """Compute the numbers of one declared erratum and fill its sentences with them."""
    arguments = erratum.get("arguments", {})
    values = {**arguments}
    if "function" in erratum:
        values |= functions[erratum["function"]](**arguments)

    def compute_rows(number: Values) -> pd.DataFrame:
        """Call the function that a declared number names; its result is a table."""
        rows: pd.DataFrame = functions[number["function"]](**number["arguments"])
        return rows

    values = evaluate_numbers(erratum.get("numbers", {}), values, compute_rows)
    keys = ("place", "printed", "right", "evidence")
    sentences: Record = {key: erratum[key].format(**values) for key in keys}
    return sentences | {"holds": bool(evaluate_expression(erratum["condition"], values))}


def evaluate_numbers(
    numbers: Values, values: Values, get_rows: Callable[[Values], pd.DataFrame]
) -> Record:
    """Return values with declared numbers, in the order in which they are declared.

    Args:
        numbers: Constants, expressions of the values before, or tables with `value`, an expression
            on rows, by name.
        values: Known values by name.
        get_rows: Returns the rows of a table.
    """
    all_values: Record = {**values}
    for name, number in numbers.items():
        if isinstance(number, Mapping):
            all_values[name] = get_rows(number).eval(number["value"])
        elif isinstance(number, str):
            all_values[name] = evaluate_expression(number, all_values)
        else:
            all_values[name] = number
    return all_values


def evaluate_expression(expression: str, values: Values) -> Any:
    """Return the value of an expression of named numbers.

    Args:
        expression: The expression.
        values: The numbers by name.
    """
    result: Any = pd.DataFrame([values]).eval(expression)
    return result.item()


@dataclass(frozen=True)
class Paper:
    """A paper with its artifacts and its errata.

    Attributes:
        name: The name of the paper and of its folder of results.
        title: The title of its section.
        citation: The citation, in Markdown.
        artifacts: Artifact name -> the function that makes it. Its argument `full` is False for
            the default, which takes minutes, and True for everything.
        errata: Returns the records of `check_errata`. None if the paper has no known errata.
        remarks: Remarks about all artifacts, in Markdown.
        required_extras: For artifacts (and "errata"), the extra that must be installed.
        only_full: The artifacts that are recomputed with --full only. Without it their stored
            results are kept.
        expected_seconds: The approximate runtime of artifacts (and "errata") that take more than a
            few seconds. With several processes, the longest artifact starts first.
        computed_together: Groups of artifacts that share most of their computation and are made by
            one process.
        timed_alone: Artifacts that measure seconds and are computed while nothing else runs.
        resumable: Artifacts that store their rows in a file and continue after an interruption.
        on_demand: Whether the paper is recomputed only if it is named or with --full, because it
            takes minutes and measures seconds.
        reads_results: Artifacts whose function reads files of other artifacts. They are computed
            last. Their further arguments are the folder of the results and all papers.
        file: The name of its declared file and of its printed file, without suffix.
        functions: The functions that the declared file names, by name.
        parameters: Artifact name -> its parameters by name. `artifacts[name]` takes their values as
            keyword arguments.
    """

    name: str
    title: str
    citation: str
    artifacts: Mapping[str, ArtifactFunction]
    errata: Callable[[], Sequence[Record]] | None = None
    remarks: Sequence[str] = field(default_factory=tuple)
    required_extras: Mapping[str, str] = field(default_factory=dict)
    only_full: Collection[str] = ()
    expected_seconds: Mapping[str, float] = field(default_factory=dict)
    computed_together: Sequence[Collection[str]] = ()
    timed_alone: Collection[str] = ()
    resumable: Collection[str] = ()
    on_demand: bool = False
    reads_results: Collection[str] = ()
    file: str = ""
    functions: Mapping[str, Any] = field(default_factory=dict)
    parameters: Mapping[str, Mapping[str, Parameter]] = field(default_factory=dict)

    @property
    def requires_full(self) -> bool:
        """Return whether all artifacts are recomputed with --full only."""
        return {*self.artifacts} <= {*self.only_full}


def build_declared_paper(file: str, *namespaces: Record) -> Paper:
    """Build a paper from papers/declared/<file>.toml and the functions that it names.

    Every table of the file with a title and a caption is an artifact. If it has `rows`, its table
    is computed from them, and the function named by `details` returns further arguments of
    `make_artifact` (tables, template values). The function named by `compared_by` returns the
    comparisons, and is only called with the default parameters. Otherwise the function named by
    `function` makes the artifact, and its parameters are keyword arguments. Default: the function
    with the name of the artifact.

    Args:
        file: The name of the declared file.
        namespaces: Mappings from function names to functions, such as `globals()`. The first
            mapping that contains a name is used.
    """
    declaration = read_declaration(file)
    functions = ChainMap(*namespaces)
    artifacts: dict[str, ArtifactFunction] = {}
    parameters = {}
    for name, entry in declaration.items():
        if not entry.keys() >= {"title", "caption"}:
            continue
        parameters[name] = list_parameters(declaration, name)
        if "rows" in entry:
            artifacts[name] = _make_artifact_function(file, name, functions)
        else:
            function = functions[entry.get("function", name)]
            artifacts[name] = partial(function, **entry.get("parameters", {}))
    errata = None
    if "errata" in declaration:
        errata = partial(check_errata, file, functions)
    return Paper(
        **declaration["paper"],
        artifacts=artifacts,
        errata=errata,
        file=file,
        functions=functions,
        parameters=parameters,
    )


def _make_artifact_function(file: str, name: str, functions: Values) -> ArtifactFunction:
    """Return the function that makes an artifact with declared rows."""
    entry = read_declaration(file)[name]

    def make(full: bool, partial_file: Path | None = None, **changes: Any) -> Artifact:
        """Make the artifact; `partial_file` stores rows that are reused after a stop."""
        table = compute_declared_table(file, name, functions, full, partial_file, changes)
        details: Record = {}
        if "details" in entry:
            details |= functions[entry["details"]](table)
        if "compared_by" in entry and not changes:
            details |= functions[entry["compared_by"]](table)
        # Captions name arguments of the first part, such as "{repeats}".
        arguments = select_arguments(entry["rows"][0], full, changes)
        known_names = {*entry.get("values", {}), *entry.get("parameters", {})}
        values = {key: value for key, value in arguments.items() if key not in known_names}
        full_values: Record = {}
        if full:
            full_values = _list_full_values(entry["rows"])
        return make_artifact(
            file, name, table, full_values=full_values, **values | details | changes
        )

    return make


def _list_full_values(parts: Sequence[Values]) -> Record:
    """Return the values that --full has instead of the defaults of parameters, by name."""
    full_values = {}
    for part in parts:
        for key, value in part.get("full_arguments", {}).items():
            text = str(part.get("arguments", {}).get(key))
            if text.startswith("$"):
                full_values[text.removeprefix("$")] = value
    return full_values


def read_declaration(paper: str) -> Record:
    """Return the content of papers/declared/<paper>.toml.

    Args:
        paper: The name of the file without suffix.
    """
    return read_toml_resource("workbench.papers", f"declared/{paper}.toml")


def read_printed_numbers(paper: str) -> Record:
    """Return the printed numbers of a paper, the content of papers/printed/<paper>.toml.

    Args:
        paper: The name of the file without suffix.
    """
    return read_toml_resource("workbench.papers", f"printed/{paper}.toml")
