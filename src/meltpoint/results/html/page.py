"""The page: the verdict and the answer first, then what they rest on, and how to cite and to repeat it."""

from importlib.resources import files
from string import Template

from meltpoint.results.html.elements import Html, element, escaped, join
from meltpoint.results.html.sections import (
    answer_section,
    evidence_section,
    examples_section,
    paper_section,
    path_section,
    repeat_section,
    samples_section,
    stages_section,
    weights_section,
)
from meltpoint.results.html.words import answer_text, subject, with_short_texts
from meltpoint.results.report import Report
from meltpoint.results.text import misreading
from meltpoint.version import __version__

_SECTIONS = (
    answer_section,
    stages_section,
    evidence_section,
    weights_section,
    examples_section,
    path_section,
    samples_section,
    paper_section,
    repeat_section,
)


def render_page(report: Report) -> str:
    """The report as a page. What a report lacks, such as stages, is left out."""
    report = with_short_texts(report)
    made = [section for make in _SECTIONS if (section := make(report)) is not None]
    folder = files("meltpoint.results.html")
    template = Template((folder / "template.html").read_text("utf-8"))
    links = [element("li", element("a", section.title, href=f"#{section.name}")) for section in made]
    return template.substitute(
        version=escaped(__version__),
        title=escaped(f"{subject(report)}: {answer_text(report)}"),
        style=(folder / "style.css").read_text("utf-8"),
        header=join(
            element(
                "header",
                element("p", "Likelihood report of a Markov random field", class_="eyebrow"),
                element("h1", subject(report)),
                _verdict(report),
                element("nav", element("ul", *links), aria_label="Sections"),
            )
        ),
        main="\n".join(section.html for section in made),
    )


def _verdict(report: Report) -> Html:
    misread = misreading(report)
    trusted = report.verdict.trusted and not report.interrupted and misread is None
    badge = "✓ This answer can be trusted" if trusted else "✗ Not to be trusted as it is"
    if report.interrupted:
        badge += ": interrupted, made from what was finished by then"
    return element(
        "div",
        element("p", badge, class_="badge"),
        element("p", answer_text(report), class_="answer"),
        element("p", str(report.verdict)),
        element("p", misread) if misread else None,
        class_=f"verdict {'yes' if trusted else 'no'}",
        role="group",
        aria_label="Verdict",
    )
