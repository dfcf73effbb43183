"""How `make docs` builds the site: Sphinx with furo and myst-nb, nothing fetched from anywhere when
it is read.
"""

import logging
import os
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE / "_ext"), str(HERE.parent)]

import workbench  # noqa: E402

# Kernels on loopback, without a word about it for every notebook.
PROFILE = HERE / "_build" / "ipython"
(PROFILE / "profile_default").mkdir(parents=True, exist_ok=True)
(PROFILE / "profile_default" / "ipython_kernel_config.py").write_text(
    "c.IPKernelApp.log_level = 40\n", "utf-8"
)
os.environ["IPYTHONDIR"] = str(PROFILE)
logging.getLogger("traitlets").setLevel(logging.WARNING)

project = "dp-workbench"
author = "The dp-workbench authors"
release = version = workbench.__version__
html_title = f"dp-workbench {release}"
extensions = ["myst_nb", "sphinx.ext.autodoc", "mathml", "docstrings", "records"]
exclude_patterns = ["_build", "paper", "figures"]

html_theme = "furo"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_show_copyright = html_copy_source = html_show_sourcelink = False
html_math_renderer = "mathml"  # no script, no font from elsewhere

myst_enable_extensions = ["deflist", "dollarmath"]
myst_heading_anchors = 3
myst_url_schemes = {
    "http": None,
    "https": None,
    "gallery": "gallery.html",
}  # gallery: the page of all results
nb_execution_mode = "cache"
nb_execution_cache_path = str(HERE / "_build" / "notebooks")
nb_execution_timeout = 120
nb_execution_raise_on_error = True
nb_ipywidgets_js: dict[str, dict[str, str]] = {}  # the default fetches them

autodoc_default_options = {"members": True, "member-order": "bysource"}
autodoc_preserve_defaults = True
autodoc_typehints = "none"  # signatures stay readable; docstrings say units and shapes
