"""Formulas of the documentation as MathML, which browsers show by themselves: no script, no network, no TeX."""

import re

from docutils.nodes import SkipNode
from docutils.utils.math.latex2mathml import tex2mathml

# docutils puts the index of a letter with an accent, as in \hat B_s, below the letter.
_INDEX_BELOW = re.compile(
    r"<munderover>\s*(<mi[^>]*>[^<]*</mi>)\s*((?:(?!<munderover>).)*?)\s*(<mo[^>]*>ˆ</mo>)\s*</munderover>", re.DOTALL
)


def mathml(tex: str, *, as_block: bool) -> str:
    """A formula, with indices beside their letters."""
    return _INDEX_BELOW.sub(r"<msub><mover>\1\3</mover>\2</msub>", tex2mathml(tex, as_block=as_block))


def _inline(writer, node):
    writer.body.append(mathml(node.astext(), as_block=False))
    raise SkipNode


def _displayed(writer, node):
    writer.body.append(f'<div class="formula">{mathml(node.astext(), as_block=True)}</div>')
    raise SkipNode


def setup(app):
    """Add a renderer of formulas."""
    app.add_html_math_renderer("mathml", (_inline, None), (_displayed, None))
    return {"parallel_read_safe": True, "parallel_write_safe": True}
