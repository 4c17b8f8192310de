"""How the documentation is built: `make docs`, without a network.

Formulas are Unicode text or MathML, which browsers show by themselves, so that pages need no script from elsewhere.
"""

import os
import re
import sys
from pathlib import Path

from docutils import nodes

import meanmap

# Figures are the same on every machine, with or without an accelerator.
os.environ.setdefault("JAX_PLATFORMS", "cpu")

project = "meanmap"
author = "The meanmap developers"
copyright = author
version = release = meanmap.__version__

sys.path.append(str(Path(__file__).parent))
extensions = [
    "mathml",
    "reachable",
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.napoleon",
    "sphinx_copybutton",
    "sphinx_gallery.gen_gallery",
]
# The gallery's sources reach readers as gallery pages.
exclude_patterns = ["_build", "_templates", "examples", "benchmarks/[!i]*.rst", "reproductions/verdicts.rst"]
templates_path = ["_templates"]
default_role = "literal"
# `fit` in a docstring is nearly always the one next to it; and full paths in a list of names are meant.
suppress_warnings = ["ref.python", "autosummary.import_cycle"]

html_theme = "furo"
html_math_renderer = "mathml"
html_title = f"meanmap {version}"
html_static_path = ["_static"]
html_css_files = ["meanmap.css"]
html_copy_source = False
# Each release is built into a folder of its own name; every page leads to its sisters in the others.
releases = Path(__file__).with_name("versions.txt").read_text(encoding="utf-8").split()
html_context = {"releases": [name for name in releases if name != version]}
html_sidebars = {
    "**": [
        "sidebar/brand.html",
        "sidebar/search.html",
        "sidebar/scroll-start.html",
        "sidebar/navigation.html",
        "versions.html",
        "sidebar/scroll-end.html",
    ]
}
# What is copied can be pasted: without prompts and without what was printed.
copybutton_prompt_text = r">>> |\.\.\. |\$ "
copybutton_prompt_is_regexp = True

autosummary_generate = True
autosummary_imported_members = True
autosummary_ignore_module_all = False


folders = [meanmap.errors]
folders += [getattr(meanmap, name) for name in meanmap.__all__ if not callable(getattr(meanmap, name))]
folders += [meanmap.ep.models, meanmap.ep.learned]


def home(name, value):
    """The package on whose page a name is documented: that of its module, or the first one that offers it."""
    module = ".".join(getattr(value, "__module__", "").split(".")[:2])
    offering = [folder for folder in folders if name in folder.__all__ and getattr(folder, name) is value]
    ordered = sorted(offering, key=lambda folder: folder.__name__ != module)
    return ordered[0].__name__ if ordered else module


def homes(package):
    """Where names that a package lends from another one are documented: meanmap.Table on the page of meanmap.core."""
    found = {}
    for name in package.__all__:
        value = getattr(package, name)
        where = home(name, value)
        if callable(value) and where.startswith("meanmap.") and where != package.__name__:
            found[name] = f"{where}.{name}"
    return found


autosummary_context = {"lent": {folder.__name__: homes(folder) for folder in [*folders, meanmap.core]}}
autodoc_member_order = "bysource"
autodoc_typehints = "none"
napoleon_google_docstring = False
napoleon_use_rtype = False
# Attributes are listed in the class, and described once more where they are properties.
napoleon_use_ivar = True
napoleon_preprocess_types = False

myst_heading_anchors = 3

sphinx_gallery_conf = {
    "examples_dirs": "examples",
    "gallery_dirs": "gallery",
    "filename_pattern": r"/plot_",
    "within_subsection_order": "FileNameSortKey",
    "abort_on_example_error": True,
    "download_all_examples": False,
    "show_memory": False,
    "min_reported_time": 1e9,
    "plot_gallery": True,
    # Examples are most of the work, and run in two processes.
    "parallel": 2,
    "remove_config_comments": True,
    "ignore_repr_types": r"matplotlib[.]",
    "write_computation_times": False,
}


_properties = {}


def keep_property(app, what, name, obj, options, lines):
    """Napoleon reads `How it ends: with a value.` of a property as a type: hide such docstrings from it."""
    if what == "property" and not any(line.startswith("---") for line in lines):
        _properties[name] = list(lines)


def plain_docstring(app, what, name, obj, options, lines):
    """Docstrings are written to be read in a terminal: keep norms and products from being taken for markup."""
    lines[:] = _properties.pop(name, lines)
    in_code = False
    for i, line in enumerate(lines):
        stripped = line.strip()
        if stripped.startswith(">>>"):
            in_code = True
        elif not stripped:
            in_code = False
        if in_code:
            continue
        pieces = re.split(r"(``.*?``|`[^`]*`)", line)
        lines[i] = "".join(linked(piece) if piece.startswith("`") else escaped(piece) for piece in pieces)


# Words such as `embed` are links too; `fit`, `test` and the like mostly are methods or arguments.
spoken = {name for folder in folders for name in folder.__all__ if re.search("[A-Z_]", name)}
spoken |= {"condition", "embed", "infer", "pc", "plan"}


def linked(code):
    """`two_sample_test` and `KernelGraph.fit` in a docstring lead to their pages, wherever they are written."""
    *path, last = code.strip("`").removeprefix("mm.").removeprefix("meanmap.").split(".")
    known = last in spoken or (path and path[-1] in spoken and last.isidentifier())
    full = code.strip("`").replace("mm.", "meanmap.") if code.startswith("`mm.") else code.strip("`")
    return f":py:obj:`{full}`" if known and not code.startswith("``") else code


def escaped(text):
    """`|x|` is a norm and not a substitution; `x_` is a name and not a link."""
    text = text.replace("|", r"\|")
    return re.sub(r"(?<=\w)_(?!\w)", r"\\_", text)


def lent_by_others(app, what, name, obj, skip, options):
    """Members that scikit-learn's base classes bring are documented there."""
    owner = getattr(obj, "__module__", None) or getattr(getattr(obj, "fget", None), "__module__", None) or ""
    return True if owner.startswith("sklearn") or name.endswith("_request") else None


def breakable_heads(app, doctree, docname):
    """Names such as `two_sample_test` and `KernelGraph` in the heads of tables may break between their words."""
    for text in [text for head in doctree.findall(nodes.thead) for text in head.findall(nodes.Text)]:
        text.parent.replace(text, nodes.Text(re.sub("(?<=[a-z])(?=[A-Z])|(?<=_)", "\u200b", text)))


def setup(app):
    # Napoleon runs between the two, at the default priority of 500.
    app.connect("autodoc-process-docstring", keep_property, priority=400)
    app.connect("autodoc-process-docstring", plain_docstring, priority=600)
    app.connect("autodoc-skip-member", lent_by_others)
    app.connect("doctree-resolved", breakable_heads)
