"""Documents as HTML that needs no network and runs no script: a page, and a short form for notebooks."""

import base64
from collections.abc import Iterable, Sequence
from importlib.resources import files
from itertools import groupby
from string import Template

from meltpoint.data.picture import to_png
from meltpoint.results.charts import Chart
from meltpoint.results.document import Block, Code, Document, Estimates, Fact, Gallery, Note, Picture, Table
from meltpoint.results.elements import Html, element, escaped, join, typeset
from meltpoint.results.shown import as_text, image_side, tiled
from meltpoint.results.svg import chart_svg
from meltpoint.version import __version__


def render_page(document: Document) -> str:
    """The document as a page of its own."""
    links = [element("li", element("a", s.title, href=f"#{s.name}")) for s in document.sections]
    header = element(
        "header",
        element("p", "A report by meltpoint", class_="eyebrow"),
        element("h1", document.title),
        _verdict(document),
        element("nav", element("ul", *links), aria_label="Sections") if len(links) > 1 else None,
    )
    folder = files("meltpoint.results")
    return Template((folder / "page.html").read_text("utf-8")).substitute(
        version=escaped(__version__),
        title=escaped(f"{document.title}: {document.answer or document.verdict}"),
        style=(folder / "page.css").read_text("utf-8"),
        header=header,
        main="\n".join(
            element(
                "section",
                element("h2", section.title, id=f"{section.name}-heading"),
                *_blocks(section.blocks),
                id=section.name,
                aria_labelledby=f"{section.name}-heading",
            )
            for section in document.sections
        ),
    )


def render_notebook(document: Document, prefix: str) -> str:
    """Title, answer, verdict and the first section; `prefix` keeps ids unique among the outputs of a notebook."""
    return element(
        "div",
        element("style", Html((files("meltpoint.results") / "notebook.css").read_text("utf-8"))),
        element("p", document.title),
        _verdict(document, badge=False),
        *_blocks(document.sections[0].blocks, f"n{prefix}-"),
        class_="meltpoint",
    )


def _verdict(document: Document, badge: bool = True) -> Html:
    return element(
        "div",
        element("p", document.badge, class_="badge") if badge else None,
        element("p", typeset(document.answer), class_="answer") if document.answer else None,
        element("p", typeset(document.verdict)),
        class_=f"verdict {'yes' if document.trusted else 'no'}",
        role="group",
        aria_label="Verdict",
    )


def _blocks(blocks: Iterable[Block], prefix: str = "") -> list[Html]:
    """Blocks below each other, but charts and pictures that follow each other side by side, and facts as a list."""
    shown = []
    for kind, group in groupby(blocks, _kind):
        made = [_block(block, prefix) for block in group]
        if kind == "drawn":
            shown.append(element("div", *made, class_="columns"))
        else:
            shown.append(element("dl", *made) if kind == "fact" else join(*made))
    return shown


def _kind(block: Block) -> str:
    return "fact" if isinstance(block, Fact) else "drawn" if isinstance(block, Chart | Picture) else "other"


def _block(block: Block, prefix: str) -> Html:
    match block:
        case Fact():
            return element("div", element("dt", block.label), element("dd", typeset(block.text)))
        case Note():
            return element("p", typeset(block.text))
        case Code():
            return join(element("h3", block.heading), element("pre", block.text))
        case Estimates():
            rows = [[label, f"{value} {error}", covers] for label, value, error, covers in block.cells()]
            return _table(Table(["", "value", "the error covers"], rows, block.caption, words=(0, 2)))
        case Table():
            return _table(block)
        case Chart():
            return _figure(chart_svg(block, prefix), block.caption)
        case Picture():
            return _figure(_picture(block), block.caption)
        case Gallery():
            items = [element("li", _figure(_picture(each), each.caption)) for each in block.pictures]
            square = all(image_side(each.states.shape[1]) for each in block.pictures)
            listed = element("ul", *items, class_="gallery" if square else "gallery sequences")
            return join(element("h3", block.heading), listed)


def _figure(drawn: Html, caption: str) -> Html:
    return element("figure", drawn, element("figcaption", typeset(caption)) if caption else None)


def _picture(picture: Picture) -> Html:
    states = picture.states
    if image_side(states.shape[1]) is None:
        texts = [element("code", Html(as_text(state)), class_="states") for state in states]
        items = [element("li", text) for text in texts]
        return texts[0] if len(texts) == 1 else element("ul", *items, class_="gallery sequences")
    pixels = tiled(states)
    height, width = pixels.shape
    address = "data:image/png;base64," + base64.b64encode(to_png(pixels)).decode()
    class_ = "mosaic" if len(states) > 1 else None
    return element(
        "img", src=Html(address), alt=picture.description, width=width, height=height, class_=class_
    )


def _table(table: Table) -> Html:
    """A table with its caption; the first cell of each row is its head."""
    kinds = ["text" if k in table.words else None for k in range(len(table.head))]

    def cells(row: Sequence[str]) -> list[Html]:
        # Names in columns of words stay as they are, for copying.
        shown = [cell if kind else typeset(cell) for cell, kind in zip(row, kinds, strict=True)]
        others = zip(shown[1:], kinds[1:], strict=True)
        first = element("th", shown[0], scope="row", class_=kinds[0])
        return [first, *(element("td", cell, class_=kind) for cell, kind in others)]

    head = [
        element("th", cell, scope="col", class_=kind) if cell else element("td")
        for cell, kind in zip(table.head, kinds, strict=True)
    ]
    made = element(
        "table",
        element("caption", table.caption),
        element("thead", element("tr", *head)) if any(table.head) else None,
        element("tbody", *(element("tr", *cells(row)) for row in table.rows)),
        class_="texts" if None not in kinds else None,
    )
    # What scrolls must be reached by keyboard.
    return element("div", made, class_="scroll", tabindex="0", role="region", aria_label=table.caption)
