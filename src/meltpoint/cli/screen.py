"""Output of the commands: results on stdout, progress with remaining time and messages on stderr."""

import os
import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from meltpoint.cli.signals import interrupts_are_ignored
from meltpoint.errors import Progress, SystemFailure, printable
from meltpoint.progress import Lines, terminal_bars

if TYPE_CHECKING:
    from rich.console import Console

    from meltpoint.results.document import Document, Readable

PLOT_FORMATS = ".png", ".pdf", ".svg"

_KEYWORD = re.compile(r"`(\w+)`")
_APART = "   "
_INDENT = 8
_terminal: "list[Console]" = []  # the terminal that shows a bar now, if any


def echo(text: object) -> None:
    """Write a result to stdout; texts that come from files are made safe to print."""
    try:
        _write(f"{printable(str(text), keep=chr(10))}\n")
    except OSError as problem:
        raise SystemFailure(
            found=f"an output that cannot be written ({problem.strerror})",
            expected="a disk with free space, or a program that reads the output",
            remedy="send it elsewhere; with --run FOLDER the report is kept there too",
        ) from problem


def _write(text: str) -> None:
    """Write all of a text to stdout: an unbuffered one (python -u) may take a part of it without an error."""
    sys.stdout.flush()
    left = text.encode(sys.stdout.encoding or "utf-8", "backslashreplace")
    while left:
        left = left[sys.stdout.buffer.write(left) :]
    sys.stdout.buffer.flush()


def echo_document(document: "Document") -> None:
    """Write what there is to read to stdout as text, no wider than the terminal if that is one."""
    from meltpoint.results.document import WIDTH
    from meltpoint.results.text import render_text

    # Results speak of keywords; those of commands are options, as long as these.
    columns = (os.get_terminal_size(sys.stdout.fileno()).columns if sys.stdout.isatty() else 0) or WIDTH
    echo(_KEYWORD.sub(_option, render_text(document, min(WIDTH, columns))))


def _option(keyword: "re.Match[str]") -> str:
    return f"--{keyword[1].replace('_', '-')}"


def echo_err(text: str) -> None:
    """Write a message to stderr, above the bar if there is one. A message that cannot be written costs no result."""
    safe = _KEYWORD.sub(_option, printable(text, keep="\n"))
    with suppress(OSError):
        if _terminal:
            _terminal[-1].print(safe, markup=False, highlight=False, soft_wrap=True)
        else:
            typer.echo(safe, err=True)


def echo_parts(*parts: str) -> None:
    """Write a message in one line or, where the terminal is too narrow, in several that end between parts."""
    width = _terminal[-1].width if _terminal else 0
    lines = [""]
    for part in parts:
        longer = f"{lines[-1]}{_APART}{part}" if lines[-1].strip() else f"{lines[-1]}{part}"
        if width and len(longer) > width and lines[-1].strip():
            lines.append(" " * _INDENT + part.lstrip())
        else:
            lines[-1] = longer
    echo_err("\n".join(lines))


def write_result(found: "Readable", json: bool, plot: Path | None, html: Path | None = None) -> "Document":
    """Write a result to stdout, as JSON or as text, and its figure and page to files, if they are named."""
    document = found.document()
    if json:
        echo(as_json(found.to_dict()))
    else:
        echo_document(document)
    if plot is not None:
        from meltpoint.results.figures import save_figure

        save_figure(found.plot(), plot)
        echo_err(f"figure: {plot}")
    if html is not None:
        found.to_html(html)
        echo_err(f"report: {html}")
    return document


def as_json(content: object) -> str:
    """Plain values as JSON, in lines that people can read."""
    from json import dumps

    return dumps(content, indent=2, allow_nan=False)


@contextmanager
def progress_bar() -> Iterator[Progress]:
    """A progress callback: a bar with the remaining time on a terminal, a line a minute elsewhere."""
    from rich.console import Console

    if interrupts_are_ignored():
        echo_err(
            "meltpoint: started in the background, where Ctrl-C does nothing; to stop it cleanly, use kill -TERM"
        )
    console = Console(stderr=True)
    if not console.is_terminal or console.is_dumb_terminal:
        yield Lines(echo_err)
        return
    with terminal_bars(console) as bars:
        _terminal.append(console)
        try:
            yield bars
        finally:
            _terminal.pop()
