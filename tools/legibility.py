#!/usr/bin/env python3
"""Measure how readable the names, comments and docstrings of a Python tree are.

    python tools/legibility.py [ROOT] [FOLDER ...] [--depth 2] [--worst 60] [--names 40] [--goals]

Without folders, all folders of this project that hold programs are measured. The table has one
line for each folder and a total. `--goals` compares the total with the goals of the project and
exits with 1 if one is missed. Only the standard library is needed. Test folders are skipped.

A name is "bare" if it is a single word that is neither a noun nor a verb, such as `least`, `joined`
or `given`. Columns in per cent:

    fn%            bare names among the names of functions
    par%, loc%     the same for parameters, and for local variables of each function
    cst%           the same for private module constants (`_MOST`)
    tup%           module constants that are defined in a tuple assignment (`A, B = 1, 2`)
    com%           comments that begin like a fragment of a sentence
    doc%           docstrings of functions that begin like a fragment of a sentence
    vrb%           docstrings of functions that begin with a verb (of three words or more)
    par1%          parameters of public functions that the docstring describes
    same%          module-level functions whose name is defined in three files or more
    wide%          lines of more than 100 columns

Other columns:

    files, lines   number of Python files, and of their lines
    tok/l          mean number of tokens in a line of code
    multi          assignments `a, b = x, y` per 1000 lines of code
    ifexp          conditional expressions per 1000 lines of code
"""

from __future__ import annotations

import argparse
import ast
import io
import re
import sys
import tokenize
import tomllib
from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

# The folders that hold programs of this project.
PROGRAM_FOLDERS = ("solvers", "models", "workbench", "bench", "tools")
# Lines with more columns than this are counted as wide.
MAX_COLUMNS = 100
# A function name that is defined in this many files does not identify a function.
SAME_NAME_FILES = 3

_WORD_LISTS = tomllib.loads(Path(__file__).with_name("legibility_words.toml").read_text("utf-8"))
FUNCTION_WORDS = frozenset(_WORD_LISTS["function_words"].split())
ADJECTIVES = frozenset(_WORD_LISTS["adjectives"].split())
VAGUE_NOUNS = frozenset(_WORD_LISTS["vague_nouns"].split())
IRREGULAR_PARTICIPLES = frozenset(_WORD_LISTS["irregular_participles"].split())
NOT_PARTICIPLES = frozenset(_WORD_LISTS["not_participles"].split())
FRAGMENT_STARTS = frozenset(_WORD_LISTS["fragment_starts"].split())
VERBS = frozenset(_WORD_LISTS["verbs"].split())

TEST_PATH = re.compile(
    r"(^|/)(tests?|testing|performance_tests|benchmarks?|third_party)(/|$)"
    r"|(^|/)test_[^/]*$|_test\.py$|conftest\.py$"
)
# Comments that are read by programs are not counted.
MACHINE_COMMENT = re.compile(
    r"(fmt|type|noqa|pragma|pylint|mypy|ruff|isort|copyright|licen[sc]e|-\*-|%%)", re.IGNORECASE
)
# The attributes of a syntax tree that hold statements, or handlers and cases with statements.
STATEMENT_FIELDS = ("body", "orelse", "handlers", "finalbody", "cases")
LAYOUT_TOKENS = (
    tokenize.NL,
    tokenize.NEWLINE,
    tokenize.INDENT,
    tokenize.DEDENT,
    tokenize.ENDMARKER,
)
FunctionNode = ast.FunctionDef | ast.AsyncFunctionDef


@dataclass(frozen=True)
class Share:
    """One column of the table: factor * part / whole.

    Attributes:
        part, whole: keys of `FileMeasure.counts`, such as "comments fragment" and "comments".
        factor: 100 for per cent, 1000 for a number per 1000 lines, 1 for a mean.
        limit: the goal of the project. None for no goal.
        is_floor: whether the share must be above the limit. Otherwise it must be below.
    """

    part: str
    whole: str
    factor: float = 100.0
    limit: float | None = None
    is_floor: bool = False

    def value(self, counts: Counter[str]) -> float | None:
        """Return the share, None if nothing was counted."""
        if not counts[self.whole]:
            return None
        return self.factor * counts[self.part] / counts[self.whole]

    def is_met(self, counts: Counter[str]) -> bool:
        """Return whether the goal is met. A column without a goal or without counts meets it."""
        value = self.value(counts)
        if value is None or self.limit is None:
            return True
        if self.is_floor:
            return value > self.limit
        return value < self.limit


COLUMNS = {
    "fn%": Share("functions bare", "functions", limit=3),
    "par%": Share("parameters bare", "parameters", limit=5),
    "loc%": Share("locals bare", "locals", limit=4),
    "cst%": Share("private constants bare", "private constants", limit=4),
    "tup%": Share("constants in tuples", "constants", limit=4),
    "com%": Share("comments fragment", "comments", limit=15),
    "doc%": Share("docs fragment", "docs", limit=4),
    "vrb%": Share("docs verb", "docs of three", limit=60, is_floor=True),
    "par1%": Share("public parameters described", "public parameters", limit=55, is_floor=True),
    "same%": Share("functions of shared names", "module functions", limit=6),
    "wide%": Share("wide lines", "lines", limit=0.1),
    "tok/l": Share("tokens", "code lines", factor=1.0, limit=9.5),
    "multi": Share("multi", "code lines", factor=1000.0, limit=8),
    "ifexp": Share("ifexp", "code lines", factor=1000.0, limit=16),
}


def is_participle(word: str) -> bool:
    """Return whether a word is a past participle."""
    if word in IRREGULAR_PARTICIPLES:
        return True
    return len(word) > 4 and word.endswith("ed") and word not in NOT_PARTICIPLES


def is_bare(name: str, *, is_constant: bool = False, is_function: bool = False) -> bool:
    """Return whether a name is a single word that is neither a noun nor a verb.

    Args:
        name: an identifier.
        is_constant: superlatives in -est count as bare names of constants.
        is_function: `close`, `open` and `free` are verbs, so they are names of functions.
    """
    word = name.strip("_").lower()
    if "_" in word or not word.isalpha():
        return False
    if is_function and word in ("close", "open", "free"):
        return False
    if word in FUNCTION_WORDS or word in VAGUE_NOUNS or is_participle(word):
        return True
    if word in ADJECTIVES:
        return True
    is_superlative = word.endswith("est") and len(word) > 5
    return is_constant and is_superlative and not word.endswith(("test", "quest"))


def first_word(text: str) -> str:
    """Return the first word of a comment or docstring in lower case, or an empty text."""
    match = re.match(r"[\s\"'`(]*([A-Za-z']+)", text)
    if match is None:
        return ""
    return match[1].lower()


def is_described(name: str, docstring: str) -> bool:
    """Return whether a docstring describes a parameter, as in `name: ...` or `a, name: ...`."""
    pattern = (
        rf"(?<![\w.]){re.escape(name)}(?![\w.])[`*]{{0,2}}"
        r"(?:, ?[\w`*]{1,30}){0,6} ?(?:\([^)]{0,80}\))? ?(?::|-- )"
    )
    return re.search(pattern, docstring) is not None


class FileMeasure:
    """The counts of one file.

    Args:
        path: name of the file in the table.
        text: its source.

    Attributes:
        counts: name of a count -> number. "locals" counts all local names, for example, and "locals
            bare" the bare ones among them. `COLUMNS` has the other names.
        bare_names: how often each bare name occurs. A key is "kind: name", such as "locals: least".
        module_functions: names of the functions at the top level.
    """

    def __init__(self, path: Path, text: str) -> None:
        self.path = path
        self.counts: Counter[str] = Counter()
        self.bare_names: Counter[str] = Counter()
        self.module_functions: list[str] = []
        tree = ast.parse(text)
        lines = text.splitlines()
        self.counts["files"] = 1
        self.counts["lines"] = len(lines)
        self.counts["wide lines"] = sum(len(line) > MAX_COLUMNS for line in lines)
        self._count_tokens(text)
        self._count_constants(tree)
        self._count_definitions(tree, is_public=True, class_docstring="")
        self._count_expressions(tree)
        for node in tree.body:
            if isinstance(node, FunctionNode):
                self.module_functions.append(node.name)

    def _count_name(self, kind: str, name: str) -> None:
        """Count a name of a kind: "functions", "parameters", "locals" or "private constants"."""
        self.counts[kind] += 1
        is_constant = kind == "private constants"
        if is_bare(name, is_constant=is_constant, is_function=kind == "functions"):
            self.counts[f"{kind} bare"] += 1
            self.bare_names[f"{kind}: {name}"] += 1

    def _count_tokens(self, text: str) -> None:
        """Count comments, tokens and lines of code. Docstrings and long texts are no code."""
        code_lines = set()
        for token in tokenize.generate_tokens(io.StringIO(text).readline):
            if token.type == tokenize.COMMENT:
                self._count_comment(token.string.lstrip("#! :"))
            elif token.type not in LAYOUT_TOKENS:
                is_long_string = token.type == tokenize.STRING and token.start[0] != token.end[0]
                if not is_long_string:
                    self.counts["tokens"] += 1
                    code_lines.add(token.start[0])
        self.counts["code lines"] = len(code_lines)

    def _count_comment(self, comment: str) -> None:
        """Count a comment, unless a program reads it or it has no words."""
        if MACHINE_COMMENT.match(comment) or not re.search(r"[A-Za-z]{2}", comment):
            return
        self.counts["comments"] += 1
        self.counts["comments fragment"] += first_word(comment) in FRAGMENT_STARTS

    def _count_constants(self, tree: ast.Module) -> None:
        """Count the constants that the module assigns at its top level."""
        for node in tree.body:
            targets: list[ast.expr] = []
            if isinstance(node, ast.Assign):
                targets = node.targets
            elif isinstance(node, ast.AnnAssign):
                targets = [node.target]
            for target in targets:
                is_tuple = isinstance(target, ast.Tuple)
                names = target.elts if isinstance(target, ast.Tuple) else [target]
                for name in names:
                    if isinstance(name, ast.Name):
                        self._count_constant(name.id, is_tuple)

    def _count_constant(self, name: str, is_tuple: bool) -> None:
        """Count a name that a module assigns, if it is written in capitals.

        Args:
            name: the name.
            is_tuple: whether a tuple assignment defines it.
        """
        if not name.strip("_") or name.upper() != name:
            return
        self.counts["constants"] += 1
        self.counts["constants in tuples"] += is_tuple
        if name.startswith("_"):
            self._count_name("private constants", name)

    def _count_definitions(self, node: ast.AST, is_public: bool, class_docstring: str) -> None:
        """Count all functions inside a node.

        Args:
            node: a module, class, function or statement.
            is_public: whether all classes around it are public, and no function is around it.
            class_docstring: docstring of the class around it; empty without a class.
        """
        for child in inner_statements(node):
            if isinstance(child, ast.ClassDef):
                is_public_class = is_public and not child.name.startswith("_")
                self._count_definitions(child, is_public_class, ast.get_docstring(child) or "")
            elif isinstance(child, FunctionNode):
                self._count_function(child, is_public, class_docstring)
                self._count_definitions(child, is_public=False, class_docstring="")
            else:
                self._count_definitions(child, is_public, class_docstring)

    def _count_function(self, node: FunctionNode, is_public: bool, class_docstring: str) -> None:
        """Count the names and the docstring of a function. Arguments: see `_count_definitions`."""
        if not node.name.startswith("__"):
            self._count_name("functions", node.name)
        signature = node.args
        arguments = (*signature.posonlyargs, *signature.args, *signature.kwonlyargs)
        parameters = [a.arg for a in arguments if a.arg not in ("self", "cls")]
        for parameter in parameters:
            self._count_name("parameters", parameter)
        for name in assigned_names(node) - {*parameters, "_"}:
            self._count_name("locals", name)
        docstring = ast.get_docstring(node) or ""
        if docstring:
            self._count_docstring(docstring)
        is_initializer = node.name == "__init__"
        if is_public and (is_initializer or not node.name.startswith("_")):
            if is_initializer:
                docstring = f"{class_docstring}\n{docstring}"
            self.counts["public parameters"] += len(parameters)
            described = sum(is_described(name, docstring) for name in parameters)
            self.counts["public parameters described"] += described

    def _count_docstring(self, docstring: str) -> None:
        """Count a docstring by its first word."""
        self.counts["docs"] += 1
        self.counts["docs fragment"] += first_word(docstring) in FRAGMENT_STARTS
        if len(docstring.split()) >= 3:
            self.counts["docs of three"] += 1
            self.counts["docs verb"] += first_word(docstring) in VERBS

    def _count_expressions(self, tree: ast.Module) -> None:
        """Count conditional expressions, and assignments of several values to several names."""
        for node in ast.walk(tree):
            if isinstance(node, ast.IfExp):
                self.counts["ifexp"] += 1
            elif isinstance(node, ast.Assign):
                is_pair = isinstance(node.targets[0], ast.Tuple)
                self.counts["multi"] += is_pair and isinstance(node.value, ast.Tuple)


def inner_statements(node: ast.AST) -> Iterator[ast.AST]:
    """Yield the statements, handlers and cases directly inside a node. Expressions contain none."""
    for field in STATEMENT_FIELDS:
        yield from getattr(node, field, ())


def assigned_names(function: FunctionNode) -> set[str]:
    """Return the names that a function assigns, without those of functions inside it."""
    names = set()
    stack = list(ast.iter_child_nodes(function))
    while stack:
        node = stack.pop()
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            names.add(node.id)
        if not isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            stack.extend(ast.iter_child_nodes(node))
    return names


def measure_folders(root: Path, folders: tuple[str, ...] = PROGRAM_FOLDERS) -> list[FileMeasure]:
    """Measure all Python files of some folders except tests.

    Args:
        root: the root of the project.
        folders: folders or files below it.

    Returns:
        One measure for each file. Functions of shared names are counted over all of them.

    Raises:
        SyntaxError: a file is not Python.
    """
    paths = python_files(root, folders)
    measures = [FileMeasure(path.relative_to(root), path.read_text("utf-8")) for path in paths]
    files_by_name: dict[str, set[Path]] = defaultdict(set)
    for measure in measures:
        for name in measure.module_functions:
            files_by_name[name].add(measure.path)
    for measure in measures:
        names = measure.module_functions
        shared = [name for name in names if len(files_by_name[name]) >= SAME_NAME_FILES]
        measure.counts["module functions"] = len(names)
        measure.counts["functions of shared names"] = len(shared)
        for name in shared:
            measure.bare_names[f"shared name: {name}"] += 1
    return measures


def python_files(root: Path, folders: tuple[str, ...]) -> Iterator[Path]:
    """Yield the Python files of some folders below a root, without those of tests."""
    for folder in folders:
        base = root / folder
        paths = [base] if base.is_file() else sorted(base.rglob("*.py"))
        for path in paths:
            if not TEST_PATH.search(path.relative_to(root).as_posix()):
                yield path


def total_counts(measures: list[FileMeasure]) -> Counter[str]:
    """Return the sum of the counts of some files."""
    total: Counter[str] = Counter()
    for measure in measures:
        total.update(measure.counts)
    return total


def missed_goals(counts: Counter[str]) -> list[str]:
    """Return one sentence for each goal of the project that some counts miss."""
    sentences = []
    for name, share in COLUMNS.items():
        if not share.is_met(counts):
            side = "above" if share.is_floor else "below"
            sentences.append(
                f"{name} is {share.value(counts):.2f}. It must be {side} {share.limit}."
            )
    return sentences


def count_points(counts: Counter[str]) -> float:
    """Return the weighted number of places in a file that a rewrite would have to change.

    The weights follow the effort of a rewrite: a name of a function or constant has more uses than
    a local name.
    """
    undescribed = counts["public parameters"] - counts["public parameters described"]
    return (
        2 * counts["functions bare"]
        + 2 * counts["parameters bare"]
        + counts["locals bare"]
        + 3 * counts["private constants bare"]
        + counts["constants in tuples"]
        + counts["comments fragment"]
        + 1.5 * counts["docs fragment"]
        + 0.5 * undescribed
        + 0.3 * counts["multi"]
    )


def table_row(name: str, counts: Counter[str]) -> list[str]:
    """Return the cells of one line of the table."""
    cells = [name, str(counts["files"]), str(counts["lines"])]
    for share in COLUMNS.values():
        value = share.value(counts)
        cells.append("-" if value is None else f"{value:.1f}")
    return cells


def print_table(rows: list[list[str]]) -> None:
    """Print rows of cells as columns: the first one aligned to the left."""
    widths = [max(len(row[k]) for row in rows) for k in range(len(rows[0]))]
    for row in rows:
        cells = [row[0].ljust(widths[0])]
        for cell, width in zip(row[1:], widths[1:], strict=True):
            cells.append(cell.rjust(width))
        print("  ".join(cells).rstrip())


def folder_of(path: Path, depth: int) -> str:
    """Return the first `depth` folders of a path, "." if it has none."""
    folders = path.parts[: min(depth, len(path.parts) - 1)]
    return "/".join(folders) or "."


def parse_options() -> argparse.Namespace:
    """Parse the command line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    default_root = Path(__file__).resolve().parents[1]
    parser.add_argument("root", type=Path, nargs="?", default=default_root)
    parser.add_argument("folders", nargs="*", help="Folders below ROOT. Default: all programs.")
    parser.add_argument("--depth", type=int, default=1, help="Number of folder levels in a line.")
    parser.add_argument("--worst", type=int, default=0, help="Number of worst files to list.")
    parser.add_argument("--names", type=int, default=0, help="Number of bare names to list.")
    parser.add_argument("--goals", action="store_true", help="Compare the total with the goals.")
    return parser.parse_args()


def main() -> int:
    """Print the table. Return 1 if `--goals` was given and a goal is missed, else 0."""
    options = parse_options()
    measures = measure_folders(options.root, tuple(options.folders) or PROGRAM_FOLDERS)
    by_folder: dict[str, list[FileMeasure]] = defaultdict(list)
    for measure in measures:
        by_folder[folder_of(measure.path, options.depth)].append(measure)
    rows = [["folder", "files", "lines", *COLUMNS]]
    for folder, members in sorted(by_folder.items()):
        rows.append(table_row(folder, total_counts(members)))
    total = total_counts(measures)
    rows.append(table_row("total", total))
    print_table(rows)
    if options.worst:
        print("\npoints  lines  file")
        measures.sort(key=lambda measure: -count_points(measure.counts))
        for measure in measures[: options.worst]:
            points = count_points(measure.counts)
            print(f"{points:6.0f}  {measure.counts['lines']:5}  {measure.path}")
    if options.names:
        names: Counter[str] = Counter()
        for measure in measures:
            names.update(measure.bare_names)
        print()
        for name, count in names.most_common(options.names):
            print(f"{count:5}  {name}")
    sentences = missed_goals(total) if options.goals else []
    for sentence in sentences:
        print(sentence, file=sys.stderr)
    return 1 if sentences else 0


if __name__ == "__main__":
    raise SystemExit(main())
