"""Examples of docstrings, which are doctests without a heading, shown as code in the reference."""

import re

import griffe

EXAMPLE = re.compile(r"^(?P<indent> *)>>> .*?(?=\n\s*\n|\Z)", re.MULTILINE | re.DOTALL)


class Examples(griffe.Extension):
    """Fence every doctest as an interactive session."""

    def on_instance(self, *, obj, **kwargs):
        """Called by griffe for every module, class, function and attribute that it has read."""
        if obj.docstring:
            obj.docstring.value = EXAMPLE.sub(
                lambda m: f"{m['indent']}```pycon\n{m[0]}\n{m['indent']}```", obj.docstring.value
            )
