"""What the site needs beyond MkDocs: formulas without a script from elsewhere, and links that leave docs/."""

import re
from xml.etree import ElementTree

from latex2mathml.converter import convert

FORMULA = re.compile(r'<(span|div) class="arithmatex">\\(?P<open>[(\[])(?P<tex>.*?)\\[)\]]</\1>', re.DOTALL)
MATHML = "http://www.w3.org/1998/Math/MathML"
ElementTree.register_namespace("", MATHML)
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
        if match["open"] == "(":
            return convert(tex, display="inline")
        formula = ElementTree.fromstring(convert(tex, display="block"))
        for sub in formula.iter(f"{{{MATHML}}}msub"):
            if sub[0].text in ("min", "max") or sub[0].get(
                "movablelimits"
            ):  # as TeX has it: below, not beside
                sub.tag = f"{{{MATHML}}}munder"
        return ElementTree.tostring(formula, encoding="unicode")

    return FORMULA.sub(mathml, html)
