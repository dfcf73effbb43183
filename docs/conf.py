"""Configure Sphinx, which builds the site of the documentation (`make docs`).

The theme is furo, and myst-nb reads the pages and runs the notebooks. A reader's browser fetches
nothing from other sites.
"""

import logging
import os
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE / "_ext"), str(HERE.parent)]

import workbench  # noqa: E402

# Without this profile every notebook would print that its kernel listens on loopback.
PROFILE = HERE / "_build" / "ipython"
(PROFILE / "profile_default").mkdir(parents=True, exist_ok=True)
(PROFILE / "profile_default" / "ipython_kernel_config.py").write_text(
    "c.IPKernelApp.log_level = 40  # errors only\n", "utf-8"
)
os.environ["IPYTHONDIR"] = str(PROFILE)
logging.getLogger("traitlets").setLevel(logging.WARNING)

project = "dp-workbench"
author = "The dp-workbench authors"
release = version = workbench.__version__
html_title = f"dp-workbench {release}"
extensions = [
    "myst_nb",
    "sphinx.ext.autodoc",
    "sphinx_copybutton",
    "mathml",
    "docstrings",
    "records",
]
# `make notebooks` writes the .ipynb files beside the pages, which are the sources of the site.
exclude_patterns = ["_build", "paper", "figures", "notebooks/*.ipynb"]

html_theme = "furo"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_show_copyright = False
html_copy_source = False
html_show_sourcelink = False
copybutton_exclude = ".linenos, .gp, .go"  # A copy has neither prompts nor printed output.
html_math_renderer = "mathml"  # MathML needs neither a script nor a font from another site.

myst_enable_extensions = ["deflist", "dollarmath"]
myst_heading_anchors = 3
# docs/_ext/records.py writes the targets of links "gallery:" (the page of all results) and
# "notebook:" (an .ipynb file beside the page).
myst_url_schemes = {
    "http": None,
    "https": None,
    "gallery": "gallery.html",
    "notebook": "{{path}}",
}
nb_execution_mode = "cache"
nb_execution_cache_path = str(HERE / "_build" / "notebooks")
nb_execution_timeout = 120  # Seconds for each cell.
nb_execution_raise_on_error = True
nb_ipywidgets_js: dict[str, dict[str, str]] = {}  # The default scripts come from another site.

autodoc_default_options = {"members": True, "member-order": "bysource"}
autodoc_preserve_defaults = True
autodoc_typehints = "none"  # Docstrings state units and shapes, and signatures stay short.
