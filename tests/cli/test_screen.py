import io
import re

import pytest
import rich.console

from meltpoint import progress
from meltpoint.cli import screen


class Clock:
    """A clock that the test turns."""

    def __init__(self, monkeypatch):
        self.now = 1000.0
        monkeypatch.setattr(progress.time, "monotonic", lambda: self.now)


@pytest.fixture
def terminal(monkeypatch):
    """What would be seen on a terminal of 80 columns."""
    seen = io.StringIO()
    real = rich.console.Console
    monkeypatch.setattr(
        rich.console, "Console", lambda **options: real(file=seen, force_terminal=True, width=80)
    )
    return seen


def test_talk_goes_to_stderr(capsys):
    screen.echo_err("hello")
    assert tuple(capsys.readouterr()) == ("", "hello\n")


def test_what_comes_from_files_is_escaped_on_both_streams(capsys):
    screen.echo("a\x1b[2J\nb")
    screen.echo_err("c\x07\u202e")
    assert tuple(capsys.readouterr()) == ("a\\x1b[2J\nb\n", "c\\x07\\u202e\n")


def test_in_the_background_it_says_that_ctrl_c_does_nothing(capsys, monkeypatch):
    monkeypatch.setattr(screen, "interrupts_are_ignored", lambda: True)
    with screen.progress_bar():
        pass
    assert "started in the background, where Ctrl-C does nothing" in capsys.readouterr().err


def test_a_bar_shows_the_task_the_share_and_the_time_that_remains(terminal, monkeypatch):
    with screen.progress_bar() as tell:
        tell("preparing", 1, 1)
        tell("AIS and RAISE", 0, 400)
        tell("AIS and RAISE", 100, 400)
        tell._bar.refresh()
        shown = re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", terminal.getvalue()).split("\r")[-1]
        assert "AIS and RAISE" in shown
        assert " 25% " in shown
        assert "preparing" not in shown
        assert max(map(len, shown.splitlines())) <= 80


def test_the_bar_leaves_nothing_behind(terminal):
    with screen.progress_bar() as tell:
        tell("AIS", 1, 2)
    assert terminal.getvalue().rstrip().endswith(("\x1b[2K", "\x1b[?25h"))


def test_a_log_gets_a_line_a_minute(capsys, monkeypatch):
    clock = Clock(monkeypatch)
    with screen.progress_bar() as tell:
        for second in range(200):
            clock.now = 1000.0 + second
            tell("AIS", second, 200)
    lines = capsys.readouterr().err.splitlines()
    assert lines == ["AIS: 30%, 2 min 20 s remain", "AIS: 60%, 80 s remain", "AIS: 90%, 20 s remain"]


def test_a_task_that_has_just_begun_makes_no_promises(capsys, monkeypatch):
    clock = Clock(monkeypatch)
    with screen.progress_bar() as tell:
        tell("preparing", 0, 1)
        clock.now += 60
        tell("preparing", 1, 1)
        tell("AIS", 1, 1000)
        clock.now += 1
        tell("AIS", 11, 1000)
        assert capsys.readouterr().err == ""
        clock.now += 9
        tell("AIS", 101, 1000)
    assert capsys.readouterr().err == "AIS: 10%, 90 s remain\n"


def test_short_work_is_silent(capsys, monkeypatch):
    Clock(monkeypatch)
    with screen.progress_bar() as tell:
        for done in range(11):
            tell("AIS", done, 10)
    assert tuple(capsys.readouterr()) == ("", "")


@pytest.mark.parametrize("columns", [60, 80, 100, 160])
@pytest.mark.parametrize("colour", [True, False])
def test_lines_and_bars_do_not_collide(tmp_path, columns, colour):
    """The command's screen in a terminal of so many columns, as a person would read it in the end."""
    screen_text, raw = in_terminal(tmp_path, columns, colour)
    lines = [line for line in screen_text if line.strip()]
    shown = " ".join(" ".join(lines).split())
    assert shown == "hello 601 steps RAISE -87.12 AIS -86.20 within ± 0.37 effective 70 of 128 chains bye"
    assert max(map(len, lines)) <= columns
    bars = re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", raw)
    assert "stage 2, 3,000 steps" in bars
    assert all(len(part) <= columns for line in bars.split("\n") for part in line.split("\r"))
    assert ("\x1b[3" in raw) == colour


SCRIPT = """
from meltpoint.cli.screen import echo_err, echo_parts, progress_bar
with progress_bar() as progress:
    progress("stage 1, 601 steps", 1, 4)
    progress._bar.refresh()
    echo_err("hello")
    echo_parts("      601 steps", "RAISE -87.12", "AIS -86.20", "within ± 0.37", "effective 70 of 128 chains")
    progress("stage 2, 3,000 steps, RAISE -87.12, AIS -86.20, effective 70 of 128", 1, 4)
    progress._bar.refresh()
    echo_err("bye")
    progress._bar.refresh()
"""


def in_terminal(folder, columns, colour):
    """What a script leaves on a terminal, line by line, and all that it wrote."""
    import fcntl
    import os
    import pty
    import struct
    import subprocess
    import sys
    import termios

    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 30, columns, 0, 0))
    environment = {**os.environ, "TERM": "xterm-256color", "PYTHONIOENCODING": "utf-8"}
    for name in ("COLUMNS", "LINES", "NO_COLOR", "FORCE_COLOR"):
        environment.pop(name, None)
    if not colour:
        environment["NO_COLOR"] = "1"
    script = folder / "script.py"
    script.write_text(SCRIPT)
    process = subprocess.Popen(
        [sys.executable, script], stdin=theirs, stdout=theirs, stderr=theirs, env=environment
    )
    os.close(theirs)
    raw = b""
    while True:
        try:
            part = os.read(ours, 4096)
        except OSError:  # the other end is closed
            break
        if not part:
            break
        raw += part
    os.close(ours)
    assert process.wait(timeout=60) == 0
    text = raw.decode()
    return emulated(text, columns), text


def emulated(text, columns):
    """The lines of a terminal after a text: printing, new lines, and the few sequences that bars use."""
    rows, row, column = [[" "] * columns], 0, 0
    for sequence, number, final, character in re.findall(r"(\x1b\[\??([0-9;]*)([A-Za-z]))|([\s\S])", text):
        if sequence:
            count = int(number) if number.isdigit() else 1
            if final == "A":
                row = max(0, row - count)
            elif final == "K":
                rows[row] = [" "] * columns
            else:
                assert final in "mhl", sequence
        elif character == "\n":
            row, column = row + 1, 0
        elif character == "\r":
            column = 0
        else:
            if column == columns:
                row, column = row + 1, 0
            while row >= len(rows):
                rows.append([" "] * columns)
            rows[row][column] = character
            column += 1
        while row >= len(rows):
            rows.append([" "] * columns)
    return ["".join(cells).rstrip() for cells in rows]
