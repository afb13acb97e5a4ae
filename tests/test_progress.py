"""What a new user meets while it runs: bars, logs that are not silent, tqdm, and signatures that can be read."""

import inspect
import io
import logging
import pydoc
import sys
import types

import numpy as np
import pytest
from rich.console import Console

import meltpoint as mp
from meltpoint import progress as module
from meltpoint.progress import COMPILING, Lines, shown_progress

QUICK = {"base": "uniform", "steps": 20, "chains": 2, "ais_chains": 10}


@pytest.fixture
def rbm():
    rng = np.random.default_rng(0)
    return mp.RBM(rng.normal(size=(9, 4)), rng.normal(size=9), rng.normal(size=4))


@pytest.fixture
def test_set():
    return np.random.default_rng(1).integers(0, 2, (6, 9))


class Bars:
    """Works like tqdm, and remembers."""

    made = ()

    def __init__(self, total=None, desc=None):
        type(self).made += (self,)
        self.total, self.desc, self.n, self.closed = total, desc, 0, False

    def update(self, n=1):
        self.n += n

    def refresh(self):
        assert not self.closed

    def close(self):
        self.closed = True


def test_a_class_of_bars_gets_one_for_every_task(rbm, test_set):
    class Own(Bars):
        made = ()

    mp.evaluate(rbm, test_set, **QUICK, progress=Own)
    assert "AIS and RAISE" in [bar.desc for bar in Own.made]
    assert all(bar.closed for bar in Own.made)
    whole = next(bar for bar in Own.made if bar.desc == "AIS and RAISE")
    assert whole.n == whole.total == 20 * (6 * 2 + 10)


def test_a_bar_of_the_callers_own_stays_open(rbm):
    bar = Bars()
    mp.ais_log_z(rbm, steps=20, chains=10, progress=bar)
    assert (bar.n, bar.total, bar.closed) == (200, 200, False)


def test_tqdm_itself(rbm, test_set, capsys):
    tqdm = pytest.importorskip("tqdm", reason="needs tqdm (it is among the dev extras)")
    mp.evaluate(rbm, test_set, **QUICK, progress=tqdm.tqdm)
    assert "AIS and RAISE: 100%" in capsys.readouterr().err


def test_bars_are_closed_after_an_error():
    def fail():
        with shown_progress(Bars) as tell:
            tell("AIS", 1, 2)
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()
    assert Bars.made[-1].closed


@pytest.mark.parametrize("given", [None, False])
def test_nothing_is_shown_by_itself(rbm, capsys, given):
    mp.ais_log_z(rbm, steps=20, chains=10, progress=given)
    assert tuple(capsys.readouterr()) == ("", "")


def test_a_log_is_not_silent_and_gets_a_line_a_minute(monkeypatch, capsys):
    now = 1000.0
    monkeypatch.setattr(module.time, "monotonic", lambda: now)
    with shown_progress(True) as tell:
        assert isinstance(tell, Lines)
        for second in range(8 * 3600):
            now = 1000.0 + second
            tell("AIS and RAISE", second, 8 * 3600)
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == 8 * 60 - 1
    assert lines[0] == "AIS and RAISE: 0%, 7 h 59 min remain"
    assert lines[239] == "AIS and RAISE: 50%, 4 h 0 min remain"


def test_how_long_kernels_were_compiled_is_written_in_a_log_and_on_a_terminal(monkeypatch):
    now, log, seen = 1000.0, [], io.StringIO()
    monkeypatch.setattr(module.time, "monotonic", lambda: now)
    console = Console(file=seen, force_terminal=True, width=80)
    with module.terminal_bars(console) as bars:
        for tell in (Lines(log.append), bars):
            tell(COMPILING, 0.0, 1.0)
            if tell is bars:
                bars._bar.refresh()
            now += 32.0
            tell(COMPILING, 1.0, 1.0)
            tell(COMPILING, 0.0, 1.0)
            tell(COMPILING, 1.0, 1.0)  # of nothing that takes a while
    assert log == ["compiling kernels, once per machine: took 32 s"]
    assert seen.getvalue().count(log[0]) == 1
    assert "compiling kernels, once per machine  " in seen.getvalue()  # not cut off at 80 columns


def test_a_terminal_gets_a_bar_that_is_gone_in_the_end(monkeypatch):
    import rich.console

    seen, real = io.StringIO(), rich.console.Console
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.setattr(rich.console, "Console", lambda **_: real(file=seen, force_terminal=True, width=80))
    with shown_progress(True) as tell:
        tell("AIS [bold]\x07", 1, 2)
        tell._bar.refresh()
    assert "AIS [bold]\\x07" in seen.getvalue()
    assert seen.getvalue().rstrip().endswith(("\x1b[2K", "\x1b[?25h"))


def kernel(monkeypatch, **names):
    """A Jupyter kernel with these names in IPython.display; gives what it calls after a cell."""
    after = []
    shell = type("ZMQInteractiveShell", (), {})()
    shell.events = types.SimpleNamespace(
        register=lambda event, call: after.append(call), unregister=lambda event, call: after.remove(call)
    )
    monkeypatch.setitem(sys.modules, "IPython", types.SimpleNamespace(get_ipython=lambda: shell))
    monkeypatch.setitem(sys.modules, "IPython.display", types.SimpleNamespace(**names))
    return after


def test_a_notebook_shows_a_figure_once_with_a_semicolon_or_without(rbm, test_set, monkeypatch):
    shown = []
    report = mp.evaluate(rbm, test_set, **QUICK)
    after = kernel(monkeypatch, display=shown.append)
    figure = report.plot()
    (show,) = after
    show()  # the cell has ended, and nothing has asked for the picture
    assert (shown, after) == ([figure], [])
    report.plot()._repr_png_()  # as the result of a cell
    after[0]()
    assert (len(shown), after) == (1, [])


def test_a_notebook_shows_no_frames_of_an_input_error(rbm):
    with pytest.raises(mp.InputError) as caught:
        mp.evaluate(rbm, [[0, 1]])
    where, sentence = caught.value._render_traceback_()
    assert where.endswith("mp.evaluate(rbm, [[0, 1]])")
    assert sentence == f"InputError: {caught.value}"


def test_a_notebook_gets_a_bar(monkeypatch):
    shown = []
    handle = types.SimpleNamespace(update=shown.append)
    display = types.SimpleNamespace(HTML=lambda text: text, display=lambda _text, display_id: handle)
    shell = type("ZMQInteractiveShell", (), {})()
    monkeypatch.setitem(sys.modules, "IPython", types.SimpleNamespace(get_ipython=lambda: shell))
    monkeypatch.setitem(sys.modules, "IPython.display", display)
    with shown_progress(True) as tell:
        tell("<b>AIS</b>", 1, 4)
        tell("<b>AIS</b>", 4, 4)
    assert shown == [
        '<div><progress value="1" max="4" aria-label="progress"></progress> &lt;b&gt;AIS&lt;/b&gt; 25%</div>',
        "",
    ]


def test_every_function_with_progress_takes_true_and_classes(rbm, test_set):
    takes = [
        name
        for name in mp.__all__
        if inspect.isfunction(f := getattr(mp, name)) and "progress" in inspect.signature(f).parameters
    ]
    assert {"evaluate", "ais_log_z", "raise_log_prob", "sample", "train_rbm", "exact_log_z"} <= set(takes)
    for name in takes:
        annotation = inspect.signature(getattr(mp, name)).parameters["progress"].annotation
        assert "bool" in annotation, name
        assert hasattr(getattr(mp, name), "__wrapped__"), name


def test_logging_tells_of_the_start_the_stages_and_the_end(rbm, test_set, caplog):
    with caplog.at_level(logging.INFO, logger="meltpoint"):
        mp.evaluate(rbm, test_set, base="uniform", gap=0.5, budget="20s")
    lines = [record.getMessage() for record in caplog.records if record.name == "meltpoint"]
    assert lines[0] == "evaluating RBM 9-4 on 6 test examples, seed 0"
    assert lines[1].startswith("stage: ")
    assert "RAISE" in lines[1]
    assert lines[-1].startswith("Report(RBM 9-4: ")


def test_signatures_can_be_read():
    help_text = pydoc.plain(pydoc.render_doc(mp.evaluate))
    assert "numpy._typing" not in help_text
    assert len(str(inspect.signature(mp.evaluate))) < 900
    functions = [f for name in mp.__all__ if inspect.isfunction(f := getattr(mp, name)) and name != "save"]
    assert max(len(str(inspect.signature(function))) for function in functions) < 900
    assert all("numpy._typing" not in str(inspect.signature(function)) for function in functions)
