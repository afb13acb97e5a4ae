"""The readable form of a result, built once: sections of facts, notes, tables, charts and pictures.

The text of a terminal, a notebook and a page are three ways to show one document. Its first section is the result
itself: text shows its tables, a notebook all of it. Of the other sections text shows the facts, a page everything.
"""

from __future__ import annotations

import math
import os
from abc import ABC, abstractmethod
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

from meltpoint.records import Record
from meltpoint.statistics.estimate import Estimate

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from numpy.typing import NDArray

    from meltpoint.results.charts import Chart

WIDTH = 79
"""Columns of the text where the terminal is not narrower."""


@dataclass(frozen=True)
class Fact:
    """A sentence with a label, which texts and pages show, and notebooks in the first section; empty without a text."""

    label: str
    text: str

    def __bool__(self) -> bool:
        return bool(self.text)


@dataclass(frozen=True)
class Note:
    """A paragraph that explains the blocks around it; only pages show it."""

    text: str


@dataclass(frozen=True)
class Code:
    """Lines to copy, such as a command, with a heading."""

    heading: str
    text: str


@dataclass(frozen=True)
class Estimates:
    """Estimates below each other, aligned and with the same decimals."""

    rows: Sequence[tuple[str, Estimate]]
    digits: int
    caption: str = "± one standard error"

    def cells(self) -> list[tuple[str, str, str, str]]:
        """Label, value, error, and what the error covers, of each row."""
        found = []
        for label, each in self.rows:
            value = each.value_text(self.digits) if math.isfinite(each.value) else "unknown"
            found.append((label, value, each.error_text(self.digits), each.covers))
        return found


@dataclass(frozen=True)
class Table:
    """Cells in rows; columns of `words` are aligned left, others hold numbers.

    `narrow` is shown instead where this is too wide for the text.
    """

    head: Sequence[str]
    rows: Sequence[Sequence[str]]
    caption: str
    words: Collection[int] = (0,)
    narrow: Table | None = None


@dataclass(frozen=True, eq=False)
class Picture:
    """States (example, visible unit): squares side by side if the units make squares, otherwise a text for each."""

    states: NDArray[Any]
    description: str
    caption: str


@dataclass(frozen=True)
class Gallery:
    """Small pictures under a heading."""

    heading: str
    pictures: Sequence[Picture]

    def __bool__(self) -> bool:
        return bool(self.pictures)


Block: TypeAlias = "Fact | Note | Code | Estimates | Table | Chart | Picture | Gallery"


@dataclass(frozen=True)
class Section:
    """Blocks under a title; `name` is the anchor."""

    name: str
    title: str
    blocks: Sequence[Block]

    @classmethod
    def of(cls, name: str, title: str, *blocks: Block | None) -> Section:
        """The section without None and blocks that are empty."""
        return cls(name, title, [block for block in blocks if block])


@dataclass(frozen=True)
class Document:
    """A result to read: what it is about, the answer in a line, whether to trust it and why, and the sections.

    One that is `undecided` has no defect, but no answer either.
    """

    title: str
    trusted: bool
    verdict: str
    sections: Sequence[Section]
    answer: str = ""
    interrupted: bool = False
    undecided: bool = False

    @property
    def badge(self) -> str:
        if self.trusted:
            return "✓ This answer can be trusted"
        if self.interrupted:
            return "✗ Not to be trusted as it is: interrupted, made of what was finished by then"
        return "✗ No answer yet" if self.undecided else "✗ Not to be trusted as it is"

    @property
    def facts(self) -> list[Fact]:
        return [block for section in self.sections for block in section.blocks if isinstance(block, Fact)]


class Readable(Record, ABC):
    """A result to read: everything that shows it renders its document."""

    @abstractmethod
    def document(self) -> Document:
        """The contents, for `str()`, notebooks and pages."""

    def __str__(self) -> str:
        from meltpoint.results.text import render_text

        return render_text(self.document())

    def _repr_html_(self) -> str:
        from meltpoint.results.html import render_notebook

        return render_notebook(self.document(), str(id(self)))

    def plot(self) -> Figure:
        """The charts of the result as a Matplotlib figure, which a notebook shows by itself; save it with savefig."""
        from meltpoint.results.charts import Chart
        from meltpoint.results.figures import draw

        return draw([block for block in self.document().sections[0].blocks if isinstance(block, Chart)])

    def to_html(self, path: str | os.PathLike[str] | None = None) -> str:
        """One HTML page with everything, which needs no network and runs no script; written to `path` if given.

        Parameters
        ----------
        path
            A file to write, such as "report.html"; without it the page is returned and not written.
        """
        from meltpoint.formats.atomic import atomic_write
        from meltpoint.results.html import render_page

        page = render_page(self.document())
        if path is not None:
            with atomic_write(path) as file:
                file.write(page.encode())
        return page
