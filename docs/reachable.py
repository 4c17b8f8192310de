"""Pages that are quick to build and easy to reach: short navigation, levels of headings, scrolling by the keyboard."""

import re

# Code, tables and formulas that are wider than the page scroll on their own, so that the keyboard has to reach them.
_SCROLLING = re.compile(r'<(pre|div class="(?:formula|table-wrapper)[^"]*")(?=[ >])(?![^>]*tabindex)')


def own_branch(app, pagename, templatename, context, doctree):
    """Open only the branch of the page in its navigation: all of 400 pages on each of 400 took most of the time."""
    if "toctree" in context:
        whole = context["toctree"]
        context["toctree"] = lambda **options: whole(**(options | {"collapse": True}))


def reachable(app, pagename, templatename, context, doctree):
    """Change the HTML of a page and of its navigation."""
    if "body" in context:
        context["body"] = _SCROLLING.sub(r'<\1 tabindex="0"', context["body"])
    for name in ("toctree", "furo_navigation_tree"):
        if isinstance(context.get(name), str):
            context[name] = context[name].replace('role="heading"', 'role="heading" aria-level="2"')


def setup(app):
    """Run before and after the theme builds its navigation."""
    app.connect("html-page-context", own_branch, priority=100)
    app.connect("html-page-context", reachable, priority=900)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
