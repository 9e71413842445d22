"""How Sphinx builds the site: `scripts/docs` calls it. Nothing in the pages may need a network."""

from __future__ import annotations

import ast
import os
import re
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
ROOT = HERE.parent
sys.path[:0] = [str(HERE / "_extensions"), str(ROOT), str(ROOT / "problems")]

from esgroup.version import __version__  # noqa: E402

os.environ["DASK_LOGGING__DISTRIBUTED"] = "warning"  # the example with a cluster would fill the terminal

# examples that take longer than the whole rest of the site: shown with pictures that are committed beside them
LONG_EXAMPLES: set[str] = set()

project = "esgroup"
author = "the esgroup developers"
copyright = author
release = __version__
version = ".".join(release.split(".")[:2])

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.napoleon",
    "sphinx_gallery.gen_gallery",
    "sphinx_copybutton",
    "sphinx_design",
    # our own, in _extensions
    "command_help",
    "docstrings",
    "mathml",
    "repository_links",
    "zoo",
]
exclude_patterns = ["_build", "_extensions", "**/GALLERY_HEADER.rst", "tutorials/*.ipynb", "tutorials/*.py"]
templates_path = ["_templates"]

# ---- text -------------------------------------------------------------------------------------------------------

myst_enable_extensions = ["amsmath", "attrs_block", "attrs_inline", "colon_fence", "deflist", "dollarmath", "fieldlist"]
myst_heading_anchors = 4  # headings can be linked to by the names that code hosts give them
html_math_renderer = "mathml"
default_role = "py:obj"  # `name` in a docstring: a link where there is such a name, else code

# ---- reference --------------------------------------------------------------------------------------------------

autodoc_default_options = {"members": True, "member-order": "bysource"}
autodoc_typehints = "signature"
autodoc_typehints_format = "short"
autodoc_type_aliases = {"Array": "Array", "Path": "Path"}
autodoc_preserve_defaults = True
autodoc_mock_imports = [name for name in ("torch",) if find_spec(name) is None]
napoleon_google_docstring = False
napoleon_use_ivar = True
napoleon_use_rtype = False
napoleon_preprocess_types = False
python_maximum_signature_line_length = 88
python_display_short_literal_types = True
add_module_names = False
toc_object_entries_show_parents = "hide"

# ---- tutorials --------------------------------------------------------------------------------------------------


def missing_library(example: Path) -> str | None:
    """A library that an example imports and that is not installed; None if there is none."""
    imported = set()
    for node in ast.walk(ast.parse(example.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            imported |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            imported |= {node.module, *(f"{node.module}.{alias.name}" for alias in node.names)}
    # esgroup.torch needs torch, esgroup.optuna needs optuna
    needed = {name.removeprefix("esgroup.").partition(".")[0] for name in imported if name.startswith("esgroup.")}
    needed &= {"torch", "optuna"}
    needed |= {name.partition(".")[0] for name in imported}
    return next((name for name in sorted(needed) if find_spec(name) is None), None)


def executed() -> str:
    """A pattern of the paths of the examples that are executed; all of them are shown."""
    names = [path.name for path in sorted((ROOT / "examples").glob("*.py"))]
    names = [name for name in names if name not in LONG_EXAMPLES and not missing_library(ROOT / "examples" / name)]
    return rf"[\\/](?:{'|'.join(map(re.escape, names)) or '(?!)'})$"


sphinx_gallery_conf = {
    "examples_dirs": "../examples",
    "gallery_dirs": "tutorials",
    "filename_pattern": executed(),
    "within_subsection_order": "tutorial_order.Place",
    "download_all_examples": False,
    "write_computation_times": False,
    "show_memory": False,
    "show_signature": False,
    "remove_config_comments": True,
    "min_reported_time": 1e9,  # how long an example took on the machine that built the site is nobody's interest
    "matplotlib_animations": False,
    "plot_gallery": "True",
    "parallel": os.cpu_count() or 1,  # examples at a time
    "only_warn_on_example_error": False,
}

# ---- appearance -------------------------------------------------------------------------------------------------

html_theme = "furo"
html_title = f"esgroup {release}"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_logo = "_static/logo.svg"
html_favicon = "_static/favicon.svg"
html_copy_source = False
html_show_sourcelink = False
html_domain_indices = False  # the general index has the modules, too
html_theme_options: dict[str, Any] = {
    "sidebar_hide_name": True,
    "light_css_variables": {"color-brand-primary": "#1f5fa8", "color-brand-content": "#1f5fa8"},
    "dark_css_variables": {"color-brand-primary": "#7db7f5", "color-brand-content": "#7db7f5"},
}
pygments_style = "a11y-high-contrast-light"
pygments_dark_style = "a11y-high-contrast-dark"
copybutton_prompt_text = r">>> |\.\.\. |\$ "
copybutton_prompt_is_regexp = True
copybutton_exclude = ".linenos, .gp, .go"
