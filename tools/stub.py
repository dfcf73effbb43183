"""Write the stub `workbench/__init__.pyi` for editors.

    python tools/stub.py

The stub has the public names of the workbench, and one overload of `design` for each family. A test
fails if it is out of date.
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

# Type of an option on the command line -> its annotation. Other options accept several types.
_ANNOTATIONS = {bool: "bool", int: "int", float: "Real"}


def make_stub(homes: Mapping[str, str], docstring: str) -> str:
    """Return the text of the stub.

    Args:
        homes: public name -> module.
        docstring: docstring of the package.
    """
    names = sorted([*homes, "__version__"])
    questions = [family.question_class for family in list_builtin_families()]
    public_imports = [
        f"from {home} import {name} as {name}" for name, home in homes.items() if name != "design"
    ]
    question_imports = {
        f"from {question.__module__} import {question.__name__}"
        for question in questions
        if question.__name__ not in homes
    }
    lines = [
        "# Made by `python tools/stub.py` from the tables of options; not edited by hand.",
        f'"""{docstring.splitlines()[0]}"""',
        "",
        "from typing import Any, overload",
        "",
        "from workbench.exact.numbers import Real",
        *sorted(public_imports),
        *sorted(question_imports),
        "",
        "__version__: str",
        f"__all__ = {names!r}",
    ]
    for family in list_builtin_families():
        lines += ["", "@overload", *_list_overload_lines(family)]
    signature = "def design(question: Any, **options: Any) -> Design:"
    lines += ["", "@overload", signature, '    """A question of a family of another package."""']
    return "\n".join(lines) + "\n"


def _list_overload_lines(family: Family) -> Iterator[str]:
    """Yield the lines of the overload of `design` for one family."""
    yield "def design("
    yield f"    question: {family.question_class.__name__},"
    yield "    *,"
    for option in family.design_arguments:
        annotation = _ANNOTATIONS.get(option.kind, "Any")
        default = "" if option.required else f" = {to_json_value(option.default)!r}"
        if annotation != "Any" and option.default is None and not option.required:
            annotation += " | None"
        yield f"    {option.name}: {annotation}{default},"
    yield ") -> Design:"
    yield f'    """Design {family.title}.'
    yield ""
    description = "\n".join(str(family).splitlines()[1:])
    yield textwrap.indent(description, "    ", lambda line: True).replace("\\", "\\\\")
    yield '    """'


if __name__ == "__main__":
    package = vars(workbench)
    STUB.write_text(make_stub(package["_MODULE_BY_NAME"], package["__doc__"]), "utf-8")
