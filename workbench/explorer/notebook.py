"""`workbench.explore`: the explorer in a cell of a notebook."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from workbench.errors import InvalidRequest
from workbench.explorer.given import exact_values, named_files, texts_of
from workbench.families.registry import family as named
from workbench.io.extras import need

if TYPE_CHECKING:
    from workbench.explorer.widget import ExplorerWidget


def explore(family: str | None = None, **options: Any) -> ExplorerWidget:
    """The explorer as a Jupyter widget: designs and trade-offs at once, answered by the kernel's own machine.

        >>> import workbench as wb
        >>> widget = wb.explore("modulo", n=8, max_shift=3, epsilon=1.5)
        >>> widget.given
        {'n': '8', 'max_shift': '3', 'epsilon': '1.5'}
        >>> widget.close()

    Args:
        family: the family to begin with (`workbench design --help` lists them); the first one by default.
        options: its options as its command takes them; a text may name a file. An example without any.

    Returns:
        A widget to be shown. `given` is what the reader sees at that moment, `design()` that design, certified.

    Raises:
        NotInstalled: without the extra "notebook".
        InvalidRequest: an unknown family or option, or a wrong value.
    """
    need("notebook", "The explorer in a notebook")
    from workbench.explorer.widget import ExplorerWidget

    if family is None:
        if options:
            raise InvalidRequest("family must be given before its options. Got none.")
        return ExplorerWidget()
    kind = named(family)
    given = texts_of(kind, options)
    files = named_files(kind, given)
    if given:
        exact_values(kind, given, files)
    return ExplorerWidget(kind.name, given, files)
