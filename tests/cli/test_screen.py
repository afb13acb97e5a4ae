import io
import re

import pytest
import rich.console

from meltpoint.cli import screen


class Clock:
    """A clock that the test turns."""

    def __init__(self, monkeypatch):
        self.now = 1000.0
        monkeypatch.setattr(screen.time, "monotonic", lambda: self.now)


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
    with screen.progress_bar() as progress:
        progress("preparing", 1, 1)
        progress("AIS and RAISE", 0, 400)
        progress("AIS and RAISE", 100, 400)
        progress._bar.refresh()
        shown = re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", terminal.getvalue()).split("\r")[-1]
        assert "AIS and RAISE" in shown
        assert " 25% " in shown
        assert "preparing" not in shown
        assert max(map(len, shown.splitlines())) <= 80


def test_the_bar_leaves_nothing_behind(terminal):
    with screen.progress_bar() as progress:
        progress("AIS", 1, 2)
    assert terminal.getvalue().rstrip().endswith(("\x1b[2K", "\x1b[?25h"))


def test_a_log_gets_a_line_every_half_minute(capsys, monkeypatch):
    clock = Clock(monkeypatch)
    with screen.progress_bar() as progress:
        for second in range(100):
            clock.now = 1000.0 + second
            progress("AIS", second, 100)
    lines = capsys.readouterr().err.splitlines()
    assert lines == ["AIS: 30%, 70 s remain", "AIS: 60%, 40 s remain", "AIS: 90%, 10 s remain"]


def test_a_task_that_has_just_begun_makes_no_promises(capsys, monkeypatch):
    clock = Clock(monkeypatch)
    with screen.progress_bar() as progress:
        progress("preparing", 0, 1)
        clock.now += 60
        progress("preparing", 1, 1)
        progress("AIS", 1, 1000)
        clock.now += 1
        progress("AIS", 11, 1000)
        assert capsys.readouterr().err == ""
        clock.now += 9
        progress("AIS", 101, 1000)
    assert capsys.readouterr().err == "AIS: 10%, 90 s remain\n"


def test_short_work_is_silent(capsys, monkeypatch):
    Clock(monkeypatch)
    with screen.progress_bar() as progress:
        for done in range(11):
            progress("AIS", done, 10)
    assert tuple(capsys.readouterr()) == ("", "")
