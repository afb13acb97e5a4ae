"""What to write in a paper: a sentence, a line of LaTeX, and references in BibTeX; and the call that repeats it."""

import math
import re
import shlex
from importlib.resources import files
from string import Template

from meltpoint.defaults import DEFAULTS
from meltpoint.errors import printable
from meltpoint.results.report import Report
from meltpoint.results.words import between_text, count, percent, starts_text
from meltpoint.statistics.estimate import decimals

_LATEX = str.maketrans(
    {
        "\\": r"\textbackslash{}",
        "~": r"\textasciitilde{}",
        "^": r"\textasciicircum{}",
        **{character: f"\\{character}" for character in "{}#$%&_"},
    }
)
_SIZES = ("steps", "chains", "examples", "ais_chains")


def subject(report: Report) -> str:
    """What was evaluated on what: the model, and the names of files without their folders."""
    model, data = (re.split(r"[/\\]", report.names.get(what, ""))[-1] for what in ("model", "test"))
    named = f"{report.model} ({model})" if model else report.model
    return f"{named} on {count(report.test_examples, 'test example')}" + (f" of {data}" if data else "")


def interval_digits(report: Report) -> int:
    """Decimals worth printing of an interval's ends: two, or as many as its half width needs (at most four)."""
    low, high = report.between
    half = (high - low) / 2
    return min(4, max(2, 1 - math.floor(math.log10(half)))) if 0 < half < math.inf else 2


def answer_text(report: Report) -> str:
    """The exact value or the interval in one line."""
    if report.known is not None:
        return f"{report.known.value_text(report.known.digits)} nats per example, exact"
    sure = f"nats per example, {percent(report.settings.confidence)} confidence"
    return between_text(known_ends(report), interval_digits(report), sure, "no interval is known", "to")


def known_ends(report: Report) -> tuple[float, float]:
    """The interval; an upper end follows from the model alone, so a lower one without it means nothing is known."""
    return report.between if math.isfinite(report.between[1]) else (-math.inf, math.inf)


def paper_sentence(report: Report) -> str:
    """One sentence with the exact value, or the interval, its confidence and its condition, or why there is none."""
    if report.known is not None:
        return (
            f"The mean test log-probability of the model ({report.model}, {report.test_examples:,} test examples) is "
            f"{report.known.value_text(report.known.digits)} nats: log Z was computed exactly by meltpoint "
            f"{report.versions.get('meltpoint', '')}.{_doubt(report)}"
        )
    low, high = (decimals(end, interval_digits(report)) for end in report.between)
    s = report.settings
    if not all(map(math.isfinite, report.between)):
        return "No interval is known: there is nothing to be written yet."
    starts = f" ({starts_text(report.evidence)})" if report.evidence else ""
    return (
        f"The mean test log-probability of the model ({report.model}, {report.test_examples:,} test examples) lies "
        f"between {low} and {high} nats with {percent(s.confidence)} confidence, provided that no mode was "
        f"missed{starts}. It was bracketed between RAISE ({report.conservative}, N = {report.particles:,}) and AIS "
        f"({report.optimistic}) with {s.steps:,} annealing steps and {s.ais_chains:,} AIS chains "
        f"by meltpoint {report.versions.get('meltpoint', '')}.{_doubt(report)}"
    )


def _doubt(report: Report) -> str:
    return "" if report.trusted else f" The tool does not trust this result: {' '.join(report.doubts)}"


def latex_line(report: Report) -> str:
    """A row of a table: the model, the two sides, and the exact value or the interval."""
    low, high = (_latex_number(end, interval_digits(report)) for end in report.between)
    name = _latex_escaped(report.names.get("model", report.model))
    sides = " & ".join(
        f"${_latex_number(e.value, e.digits)}"
        + (rf" \pm {decimals(e.stderr, e.digits)}$" if math.isfinite(e.stderr) and e.stderr > 0 else "$")
        for e in (report.conservative, report.optimistic)
    )
    answer = rf"$[{low},\, {high}]$"
    if report.known is not None:
        answer = f"${_latex_number(report.known.value, report.known.digits)}$"
    return rf"{name} & {sides} & {answer} \\"


def _latex_escaped(text: str) -> str:
    return printable(text).translate(_LATEX)


def _latex_number(value: float, digits: int) -> str:
    return decimals(value, digits) if math.isfinite(value) else r"\infty" if value > 0 else r"-\infty"


def bibtex(report: Report) -> str:
    """Entries for the method's paper and for meltpoint."""
    entries = Template((files("meltpoint.results") / "references.bib").read_text("utf-8"))
    return entries.substitute(version=report.versions.get("meltpoint", "")).rstrip()


def python_call(report: Report) -> str:
    """The call that repeats the evaluation."""
    model = report.names.get("model")
    load = f"mp.load({model!r})" if model else "…  # the model with the fingerprint below"
    train = ", train" if _has_train(report) else ""
    given = {name: repr(value) for name, value in _given(report).items()}
    # The reader's own base and betas are objects: a base has a fingerprint.
    given |= {"base": "base"} if "base" in report.fingerprints else {}
    given |= {"steps": "betas"} if report.settings.schedule == "given" and "steps" in given else {}
    options = "".join(f", {name}={text}" for name, text in given.items())
    return f"import meltpoint as mp\n\nmodel = {load}\nreport = mp.evaluate(model, test{train}{options})"


def command_line(report: Report) -> str:
    """The command that repeats the evaluation, with MODEL, DATA and TRAIN for files that have no name."""
    words = [report.names.get("model", "MODEL"), report.names.get("test", "DATA")]
    train = report.names.get("train", "TRAIN" if _has_train(report) else "")
    if train and train != words[1]:
        words += ["--train", train]
    for name, value in _given(report).items():
        option = f"--{name.replace('_', '-')}"
        if isinstance(value, bool):
            words.append(option if value else f"--no-{name}")
        else:
            words += [option, f"{value:g}s" if name == "budget" else f"{value}"]
    return " ".join(["meltpoint evaluate", *(shlex.quote(printable(word)) for word in words)])


def _has_train(report: Report) -> bool:
    return "training set" in report.fingerprints


def _given(report: Report) -> dict[str, object]:
    """Settings of which the call must speak: sizes, unless stages have chosen them, and what is not the default."""
    settings, usual = vars(report.settings), vars(DEFAULTS)
    in_stages = settings["budget"] is not None
    names = ["base", *(("gap", "budget") if in_stages else _SIZES)]
    if settings["schedule"] != "given":
        names.append("schedule")
    names += ["particles", "precision", "tolerance", "confidence", "evidence", "exact"]
    always = {*_SIZES, "base"}
    given = {
        n: settings[n] for n in names if settings[n] is not None and (n in always or settings[n] != usual[n])
    }
    if report.other_base is not None:
        given["base"] = "auto"  # the reported one was chosen on the way, with random numbers of its own
    if settings["tolerance"] == settings["gap"]:
        given.pop("tolerance", None)
    return given | {"seed": settings["seed"]}
