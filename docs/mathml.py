"""Formulas of the documentation as MathML, which browsers show by themselves: no script, no network, no TeX."""

from docutils.nodes import SkipNode
from docutils.utils.math.latex2mathml import tex2mathml


def _inline(writer, node):
    writer.body.append(tex2mathml(node.astext(), as_block=False))
    raise SkipNode


def _displayed(writer, node):
    writer.body.append(f'<div class="formula">{tex2mathml(node.astext(), as_block=True)}</div>')
    raise SkipNode


def setup(app):
    """Add a renderer of formulas."""
    app.add_html_math_renderer("mathml", (_inline, None), (_displayed, None))
    return {"parallel_read_safe": True}
