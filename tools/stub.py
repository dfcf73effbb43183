"""The stub that editors read, `workbench/__init__.pyi`: public names, and one overload of `design` for each family.

python tools/stub.py        # writes it again; a test says when that is due
"""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Mapping
from pathlib import Path

import workbench
from workbench.pipeline.family import Family
from workbench.pipeline.option import to_json_value
from workbench.pipeline.registry import list_builtin_families

STUB = Path(workbench.__file__).with_suffix(".pyi")

_TYPES = {
    bool: "bool",
    int: "int",
    float: "Real",
}  # of what a command line takes as these; the rest has many spellings


def stub(homes: Mapping[str, str], docstring: str) -> str:
    """The text of the stub. homes: public name -> module; docstring: of the package."""
    names, questions = (
        sorted([*homes, "__version__"]),
        [kind.question_class for kind in list_builtin_families()],
    )
    lines = [
        "# Made by `python tools/stub.py` from the tables of options; not edited by hand.",
        f'"""{docstring.splitlines()[0]}"""',
        "",
        "from typing import Any, overload",
        "",
        "from workbench.exact.numbers import Real",
        *sorted(
            f"from {home} import {name} as {name}"
            for name, home in homes.items()
            if name != "design"
        ),
        *sorted(
            {
                f"from {each.__module__} import {each.__name__}"
                for each in questions
                if each.__name__ not in homes
            }
        ),
        "",
        "__version__: str",
        f"__all__ = {names!r}",
    ]
    for kind in list_builtin_families():
        lines += ["", "@overload", *_overload(kind)]
    anything = "def design(question: Any, **options: Any) -> Design:"
    lines += ["", "@overload", anything, '    """A question of a family of another package."""']
    return "\n".join(lines) + "\n"


def _overload(kind: Family) -> Iterator[str]:
    yield "def design("
    yield f"    question: {kind.question_class.__name__},"
    yield "    *,"
    for option in kind.design_arguments:
        annotation, default = (
            _TYPES.get(option.kind, "Any"),
            "" if option.required else f" = {to_json_value(option.default)!r}",
        )
        if annotation != "Any" and option.default is None and not option.required:
            annotation += " | None"
        yield f"    {option.name}: {annotation}{default},"
    yield ") -> Design:"
    yield f'    """Design {kind.title}.'
    yield ""
    yield textwrap.indent("\n".join(str(kind).splitlines()[1:]), "    ", lambda line: True).replace(
        "\\", "\\\\"
    )
    yield '    """'


if __name__ == "__main__":
    face = vars(workbench)
    STUB.write_text(stub(face["_HOMES"], face["__doc__"]), "utf-8")
