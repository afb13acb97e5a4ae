import io
import re
import signal
from concurrent.futures import ThreadPoolExecutor

import pytest
import rich.console
import typer

from meltpoint.cli import screen
from meltpoint.errors import InputError


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
    screen.say("hello")
    assert tuple(capsys.readouterr()) == ("", "hello\n")


@pytest.mark.parametrize(
    ("problem", "code", "text"),
    [
        (
            InputError(found="a", expected="b", remedy="c"),
            2,
            "meltpoint: found a, expected b: c\n",
        ),
        (KeyboardInterrupt(), 130, "meltpoint: interrupted: nothing was finished by then\n"),
        (KeyboardInterrupt("AIS was done"), 130, "meltpoint: interrupted: AIS was done\n"),
    ],
)
def test_problems_become_sentences(capsys, problem, code, text):
    with pytest.raises(typer.Exit) as stop, screen.sentences():
        raise problem
    assert stop.value.exit_code == code
    assert tuple(capsys.readouterr()) == ("", text)


def test_termination_counts_as_interruption_and_only_inside(capsys):
    before = signal.getsignal(signal.SIGTERM)
    with pytest.raises(typer.Exit) as stop, screen.sentences():
        signal.raise_signal(signal.SIGTERM)
    assert stop.value.exit_code == 130
    assert signal.getsignal(signal.SIGTERM) is before


def test_a_thread_that_cannot_set_signals_works_all_the_same():
    with ThreadPoolExecutor(1) as pool:
        assert pool.submit(lambda: screen.sentences().__enter__()).result() is None


def test_a_bug_keeps_its_traceback():
    with pytest.raises(ZeroDivisionError), screen.sentences():
        1 / 0  # noqa: B018


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
