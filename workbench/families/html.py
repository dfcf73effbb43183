"""A design as HTML for a notebook: its report as a table, its mechanism as a picture; no script."""

from __future__ import annotations

from typing import TYPE_CHECKING

from workbench.io.html import document, facts, picture

if TYPE_CHECKING:
    from workbench.families.design import Design

__all__ = ["design_html"]


def design_html(design: Design) -> str:
    """The report and the picture of a design; no picture without a mechanism that has one."""
    drawn = design.mechanism is not None and design.family.draws
    return document(design.family.heading(design), facts(design.facts()), drawing=picture(design.plot) if drawn else "")
