"""Every family of results in every view: text, page, notebook, figure, JSON."""

import html.parser
import io
import json
from dataclasses import replace

import pytest

from meltpoint.results.charts import Axis, Chart
from meltpoint.results.document import Document, Fact, Gallery, Section, Table
from meltpoint.results.html import render_page
from meltpoint.results.text import render_text
from meltpoint.results.verdict import Verdict
from results.made import FAMILIES, bracket, full, three

VOID = {"meta", "img", "br"}
MAKERS = pytest.mark.parametrize("make", FAMILIES.values(), ids=FAMILIES)


class Outline(html.parser.HTMLParser):
    """Checks that elements nest, and keeps what a reader and a browser would see."""

    def __init__(self, page):
        super().__init__()
        self.open, self.ids, self.tags, self.attributes, self.text = [], [], [], [], []
        self.feed(page)
        assert not self.open
        assert len(self.ids) == len(set(self.ids))

    def handle_starttag(self, tag, attributes):
        self.tags.append(tag)
        self.attributes += attributes
        self.ids += [value for name, value in attributes if name == "id"]
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.text.append(data)


@MAKERS
@pytest.mark.parametrize("width", [60, 79, 120])
def test_text_fits_the_terminal_and_says_the_same_at_any_width(make, width):
    found = make()
    lines = render_text(found.document(), width).splitlines()
    assert max(map(len, lines)) <= width
    assert not any(line != line.rstrip() for line in lines)
    facts = " ".join(" ".join(lines).split())
    for fact in found.document().facts:
        assert " ".join(f"{fact.label} {fact.text}".split()) in facts


@MAKERS
def test_the_page_needs_nothing_and_runs_nothing(make):
    page = make().to_html()
    outline = Outline(page)
    assert not {"script", "link", "b"} & set(outline.tags)
    addresses = [value for name, value in outline.attributes if name in ("src", "href", "xlink:href")]
    assert all(address.startswith(("data:image/png;base64,", "#")) for address in addresses)
    assert not any(name.startswith("on") for name, _ in outline.attributes)
    assert page.index('class="badge"') < page.index("<h2")
    assert len(page.encode()) < 200_000


@MAKERS
def test_every_fact_stands_in_the_text_and_on_the_page(make):
    found = make()
    page = "".join(Outline(found.to_html()).text).replace("\N{MINUS SIGN}", "-").replace("\xa0", " ")
    for fact in found.document().facts:
        assert fact.text.replace("\xa0", " ") in page


@MAKERS
def test_a_notebook_shows_the_verdict_and_the_first_section(make):
    found = make()
    shown = found._repr_html_()
    text = "".join(Outline(shown).text)
    assert found.document().verdict.replace("-", "\N{MINUS SIGN}") in text.replace("-", "\N{MINUS SIGN}")
    assert "<b>" not in shown
    assert len(shown) < 16_000


@MAKERS
def test_every_result_is_a_figure(make):
    found = make()
    figure = found.plot()
    assert all(axes.get_title(loc="left") for axes in figure.axes)
    figure.savefig(io.BytesIO(), format="png")


@MAKERS
def test_json_has_no_nan(make):
    found = make()
    content = json.loads(json.dumps(found.to_dict(), allow_nan=False))
    assert content["interrupted"] is False
    assert content["verdict"]


@pytest.mark.parametrize(
    ("found", "badge"),
    [
        (full(), "✓ This answer can be trusted"),
        (full(verdict=Verdict("gap", False, "Gap too large."), exact=None), "✗ Not to be trusted as it is"),
        (
            full(interrupted=True),
            "✗ Not to be trusted as it is: interrupted, made of what was finished by then",
        ),
        (
            bracket(interrupted=True),
            "✗ Not to be trusted as it is: interrupted, made of what was finished by then",
        ),
        (three(), "✗ No answer yet"),
    ],
)
def test_the_badge_says_whether_to_trust_it(found, badge):
    assert f'<p class="badge">{badge}</p>' in found.to_html()


def test_names_are_shown_as_they_are_and_numbers_with_minus_signs():
    page = full(names={"model": "some/model (-1).npz", "test": "mnist"}, exact=None).to_html()
    assert "<h1>RBM 784-500 (model (-1).npz) on 10,000 test examples of mnist, nats per example</h1>" in page
    assert ">some/model (-1).npz</td>" in page
    assert "−86.47 ± 0.03" in page


def test_values_are_shown_where_the_pointer_is():
    page = full().to_html()
    assert "<title>\N{MINUS SIGN}86.473 ± 0.06</title></circle>" in page


def test_differences_that_would_be_printed_as_zero_are_not_listed():
    report = full()
    assert "Largest differences" in report.to_html()
    per = report.per_example
    equal = replace(per, log_prob=per.log_f - report.log_z.value)
    page = replace(report, per_example=equal).to_html()
    assert "argest differences" not in page


def test_keywords_are_code_on_pages():
    page = full(verdict=Verdict("gap", False, "Raise `ais_chains`."), exact=None).to_html()
    assert "<p>Raise <code>ais_chains</code>.</p>" in page


def test_a_page_is_written_where_it_is_asked_for(tmp_path):
    page = full().to_html(tmp_path / "page.html")
    assert (tmp_path / "page.html").read_text() == page


def test_a_table_that_does_not_fit_has_a_narrow_one_and_then_cuts_its_words():
    narrow = Table(("name", "value"), [["model-" * 9, "1.0"]], "")
    wide = Table(("name", "value"), [["model-" * 9, "1.000"]], "", narrow=narrow)
    document = Document("title", True, "verdict", [Section("a", "A", [wide, Fact("label", "text")])])
    assert "1.000" in render_text(document, 61)
    assert "1.000" not in render_text(document, 60)
    lines = render_text(document, 40).splitlines()
    assert max(map(len, lines)) == 40
    assert any("…" in line for line in lines)


def test_a_section_leaves_out_empty_blocks():
    chart = Chart("c", "title", Axis("x", 0, 1), Axis("y", 0, 1), [], "nothing to draw")
    fact = Fact("label", "text")
    section = Section.of("a", "A", None, Fact("label", ""), chart, fact, Gallery("heading", []))
    assert section.blocks == [fact]


def test_texts_from_files_are_safe_to_print():
    document = Document("title\x1b[2J", True, "verdict\u202e", [Section("a", "A", [])])
    assert not {"\x1b", "\u202e"} & set(render_text(document) + render_page(document))
