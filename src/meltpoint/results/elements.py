"""Elements of HTML and SVG. Whatever is put into one is escaped, unless it is an element itself."""

import html
import re

from meltpoint.errors import printable, shortened

_LONGEST = 2000  # characters of a text: those from outside, such as a path, may be longer
_MINUS = re.compile(r"(?<![\w.,-])-(?=\d|inf)")
_NAME = re.compile(r"`(\w+)`")
_WITHOUT_END = ("img",)


class Html(str):
    """A text that is HTML already."""

    __slots__ = ()


def escaped(text: object) -> Html:
    """A text as it is to be read, cut where it is very long, and control characters shown as escapes."""
    if isinstance(text, Html):
        return text
    return Html(html.escape(printable(shortened(str(text), _LONGEST), keep="\n\xa0"), quote=True))


def element(name: str, *children: object, **attributes: object) -> Html:
    """An element with its children; attributes that are None are left out, `class_` is class and `_` becomes -."""
    given = "".join(
        f' {key.rstrip("_").replace("_", "-")}="{escaped(value)}"'
        for key, value in attributes.items()
        if value is not None
    )
    return Html(f"<{name}{given}>" + ("" if name in _WITHOUT_END else f"{join(*children)}</{name}>"))


def join(*children: object) -> Html:
    """Children one after the other; None is nothing."""
    return Html("".join(escaped(child) for child in children if child is not None))


def typeset(text: str) -> Html:
    """A text with proper minus signs and `names` as code: "RBM 784-500, −86.3"."""
    return Html(_NAME.sub(r"<code>\1</code>", escaped(_MINUS.sub("\N{MINUS SIGN}", text))))
