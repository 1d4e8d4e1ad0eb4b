"""The documentation site: `make docs` builds it. docs/README-for-authors.md says how pages are written."""

import os
import shutil
import sys
from hashlib import sha256
from importlib.metadata import files as files_of
from importlib.metadata import version as version_of
from pathlib import Path

DOCS = Path(__file__).resolve().parent
ROOT = DOCS.parent
CACHE = ROOT / "build" / "docs-cache"
sys.path[:0] = [str(ROOT / "src"), str(DOCS / "_ext")]

from execution import prepare_execution  # noqa: E402
from sphinx_gallery.sorting import ExplicitOrder  # noqa: E402

project = "rankad"
author = "The rankad developers"
copyright = "The rankad developers, BSD-3-Clause"
release = version_of("rankad")
version = release

extensions = [
    "myst_nb",
    "numpydoc",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.mathjax",
    "sphinx.ext.viewcode",
    "sphinx_copybutton",
    "sphinx_design",
    "sphinx_gallery.gen_gallery",
    # Ours, in docs/_ext.
    "cells",
    "commands",
    "llms_txt",
    "repository_links",
]
exclude_patterns = ["README-for-authors.md", "gallery", "examples/**.ipynb"]
templates_path = ["_templates"]
nitpicky = False
suppress_warnings = ["config.cache"]  # sphinx-gallery's settings hold functions

# ------------------------------------------------------------------ pages

myst_enable_extensions = ["amsmath", "attrs_block", "attrs_inline", "colon_fence", "deflist", "dollarmath"]
myst_heading_anchors = 4
myst_dmath_double_inline = True

# ------------------------------------------- code that runs when the site is built

# What is kept from one build to the next is thrown away when rankad has changed.
_sources = sorted([*(ROOT / "src").rglob("*.py"), DOCS / "_ext" / "execution.py"])
SOURCES = sha256(b"".join(path.read_bytes() for path in _sources)).hexdigest()[:16]
prepare_execution(ROOT, CACHE, SOURCES, generated=[DOCS / "examples"])

nb_execution_mode = "cache"
nb_execution_cache_path = str(CACHE / f"pages-{SOURCES}")
nb_execution_in_temp = True
nb_execution_timeout = 180
# A cell that raises is a warning with its traceback, and `make docs` takes warnings for errors. To raise here
# would say nothing about the cell where pages are read in parallel.
nb_execution_raise_on_error = False
nb_execution_show_tb = True
nb_merge_streams = True
nb_execution_excludepatterns = []

# First what a newcomer wants to see, then the promise, tables, many rows and change, and measurements last.
_teaching_order = [
    "alarms_at_every_rate",
    "level_lines",
    "level_sets",
    "ranks_to_p_values",
    "certificate",
    "few_rows",
    "explain",
    "broken_relation",
    "mixed_table",
    "digits",
    "dirty_table",
    "trim",
    "false_discoveries",
    "online_alarms",
    "drift",
    "covariate_shift",
    "windows",
    "mass_volume",
    "speed",
]

sphinx_gallery_conf = {
    "examples_dirs": "gallery",
    "gallery_dirs": "examples",
    "filename_pattern": r"/plot_",
    "within_subsection_order": ExplicitOrder([f"plot_{name}.py" for name in _teaching_order]),
    "abort_on_example_error": True,
    "parallel": int(os.environ.get("RANKAD_DOCS_JOBS", 1)),
    "download_all_examples": False,
    "min_reported_time": 30,
    "write_computation_times": False,
    "show_memory": False,
    "remove_config_comments": True,
    "doc_module": ("rankad",),
    "backreferences_dir": "reference/backreferences",
    "image_srcset": ["2x"],
    "matplotlib_animations": False,
    "reset_modules": ("matplotlib", "seaborn"),
    "inspect_global_variables": False,
}

# -------------------------------------------------------------- reference

autosummary_generate = True
# `alpha` in a docstring: a link where that is a name, and code in any case.
default_role = "py:obj"
autodoc_typehints = "none"
autodoc_member_order = "groupwise"
numpydoc_show_class_members = False
numpydoc_show_inherited_class_members = False
numpydoc_class_members_toctree = False

# ------------------------------------------------------------------- look

html_theme = "pydata_sphinx_theme"
html_title = "rankad"
html_favicon = "_static/rankad.svg"
html_static_path = ["_static"]
html_css_files = ["rankad.css"]
html_show_sourcelink = False
toc_object_entries_show_parents = "hide"
html_copy_source = False
html_theme_options = {
    "logo": {"text": "rankad", "image_light": "_static/rankad.svg", "image_dark": "_static/rankad.svg"},
    "header_links_before_dropdown": 6,
    "navbar_align": "left",
    "navbar_end": ["theme-switcher"],
    "secondary_sidebar_items": ["page-toc"],
    "footer_start": ["copyright"],
    "footer_end": [],
    "show_prev_next": True,
    "pygments_light_style": "a11y-high-contrast-light",
    "pygments_dark_style": "a11y-high-contrast-dark",
}
html_context = {"default_mode": "auto"}
html_sidebars = {"index": []}

# Only the prompt's lines are copied, and without the prompt.
copybutton_prompt_text = r">>> |\.\.\. |\$ "
copybutton_prompt_is_regexp = True
copybutton_only_copy_prompt_lines = True

# Formulas without a network: one file of MathJax, from a package, beside the pages.
mathjax_path = "mathjax/tex-svg.js"


def _copy_mathjax(app, exception):
    if exception is None and app.builder.format == "html":
        [script] = [f for f in files_of("sphinx-mathjax-offline") if f.match("static/mathjax/tex-svg.js")]
        (app.outdir / "_static" / "mathjax").mkdir(parents=True, exist_ok=True)
        shutil.copyfile(script.locate(), app.outdir / "_static" / mathjax_path)


def setup(app):
    """Connect what is done here alone."""
    app.connect("build-finished", _copy_mathjax)
