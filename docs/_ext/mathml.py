"""Write the formulas of the documentation as MathML, which browsers draw without a script."""

from __future__ import annotations

from typing import Any

from docutils import nodes
from latex2mathml.converter import convert
from sphinx.application import Sphinx


def write_inline_formula(translator: Any, node: nodes.math) -> None:
    """Write a formula within a line of text. `translator` collects the HTML of a page."""
    translator.body.append(convert(node.astext()))
    # The node is written, so Sphinx must not write it again.
    raise nodes.SkipNode


def write_formula_block(translator: Any, node: nodes.math_block) -> None:
    """Write a formula between paragraphs. `translator` collects the HTML of a page."""
    translator.body.append(f'<div class="formula">{convert(node.astext(), display="block")}</div>')
    raise nodes.SkipNode


def setup(app: Sphinx) -> dict[str, bool]:
    """Register the renderer "mathml", which docs/conf.py selects. Sphinx calls this function."""
    # The second function of each pair would be called after the node, but nothing is left to do.
    app.add_html_math_renderer(
        "mathml",
        inline_renderers=(write_inline_formula, None),
        block_renderers=(write_formula_block, None),
    )
    return {"parallel_read_safe": True, "parallel_write_safe": True}
