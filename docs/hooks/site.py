"""What the site needs beyond MkDocs: formulas without a script from elsewhere, and links that leave docs/."""

import re

from latex2mathml.converter import convert

FORMULA = re.compile(r'<(span|div) class="arithmatex">\\(?P<open>[(\[])(?P<tex>.*?)\\[)\]]</\1>', re.DOTALL)
ENTITIES = {"&lt;": "<", "&gt;": ">", "&amp;": "&"}


def on_page_markdown(markdown, page, config, files):
    """Point links to benchmarks/, which work in a checkout, at their copies on the site."""
    return re.sub(r"\]\((\.\./)+benchmarks/", lambda m: m[0].replace("../", "", 1), markdown)


def on_page_content(html, page, config, files):
    """Turn TeX into MathML, which browsers show by themselves."""

    def mathml(match):
        tex = match["tex"]
        for entity, character in ENTITIES.items():
            tex = tex.replace(entity, character)
        return convert(tex, display="block" if match["open"] == "[" else "inline")

    return FORMULA.sub(mathml, html)
