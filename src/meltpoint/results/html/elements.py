"""Elements of HTML and SVG. Whatever is put into one is escaped, unless it is an element itself."""

import html
from collections.abc import Collection, Sequence

from meltpoint.errors import printable


class Html(str):
    """A text that is HTML already."""

    __slots__ = ()


def escaped(text: object) -> Html:
    """A text as it is to be read, control characters shown as escapes.

    >>> escaped("<script>")
    '&lt;script&gt;'
    """
    return text if isinstance(text, Html) else Html(html.escape(printable(str(text), keep="\n"), quote=True))


def element(name: str, *children: object, **attributes: object) -> Html:
    """An element with its children; attributes that are None are left out, `class_` is class and `_` becomes -.

    >>> element("p", "a < b", class_="note", aria_label='"x"')
    '<p class="note" aria-label="&quot;x&quot;">a &lt; b</p>'
    """
    given = "".join(
        f' {key.rstrip("_").replace("_", "-")}="{escaped(value)}"'
        for key, value in attributes.items()
        if value is not None
    )
    return Html(f"<{name}{given}>{join(*children)}</{name}>")


def void(name: str, **attributes: object) -> Html:
    """An element without an end, such as img."""
    return Html(element(name, **attributes).removesuffix(f"</{name}>"))


def join(*children: object) -> Html:
    """Children one after the other; None is nothing."""
    return Html("".join(escaped(child) for child in children if child is not None))


def table(
    caption: str,
    head: Sequence[str],
    rows: Sequence[Sequence[object]],
    texts: Collection[int] = (),
    class_: str | None = None,
) -> Html:
    """A table with a caption; the first cell of each row is its head, the columns `texts` are no numbers."""

    def kind(k: int) -> str | None:
        return "text" if k in texts else None

    header = [
        element("th", cell, scope="col", class_=kind(k)) if cell else element("td")
        for k, cell in enumerate(head)
    ]
    body = [
        element(
            "tr",
            element("th", row[0], scope="row"),
            *(element("td", cell, class_=kind(k)) for k, cell in enumerate(row[1:], 1)),
        )
        for row in rows
    ]
    made = element(
        "table",
        element("caption", caption),
        element("thead", element("tr", *header)) if any(head) else None,
        element("tbody", *body),
        class_=class_,
    )
    # What scrolls must be reached by keyboard.
    return element("div", made, class_="scroll", tabindex="0", role="region", aria_label=caption)
