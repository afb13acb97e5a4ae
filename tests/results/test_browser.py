"""The page in a real browser: accessible, readable at any width, printable, and nothing in it runs.

axe.min.js is axe-core 4.14.0 (Deque Systems, Mozilla Public License 2.0), unchanged, for this test only.
"""

import json
import re
from pathlib import Path

import pytest

from meltpoint.formats.atomic import atomic_write
from results.browser import browser
from results.made import FAMILIES, full
from results.test_html import HOSTILE

AXE = Path(__file__).with_name("axe.min.js")
WIDTHS = (400, 800, 1400)


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    with browser(tmp_path_factory.mktemp("browser")) as opened:
        yield opened


def write(text, path):
    with atomic_write(path) as file:
        file.write(text.encode())
    return path


def without_policy(text):
    """The page without its security policy, so that the test's scripts, or a hostile one, may run."""
    changed = re.sub(r"<meta http-equiv=\"Content-Security-Policy\"[^>]*>", "", text)
    assert changed != text
    return changed


@pytest.mark.slow
@pytest.mark.parametrize("make", FAMILIES.values(), ids=FAMILIES)
def test_no_rule_of_accessibility_is_violated(page, tmp_path, make):
    page.open(write(without_policy(make().to_html()), tmp_path / "page.html"))
    page.evaluate(AXE.read_text() + "; 0")
    for width, dark in ((400, False), (1400, False), (1400, True)):
        page.look(width, dark)
        found = json.loads(page.evaluate("axe.run().then(found => JSON.stringify(found.violations))"))
        assert [(rule["id"], [node["html"] for node in rule["nodes"]][:3]) for rule in found] == []


@pytest.mark.slow
def test_the_check_finds_what_is_wrong(page, tmp_path):
    text = without_policy(full().to_html())
    page.open(write(re.sub(r' alt="[^"]*"', "", text), tmp_path / "page.html"))
    page.evaluate(AXE.read_text() + "; 0")
    found = json.loads(page.evaluate("axe.run().then(found => JSON.stringify(found.violations))"))
    assert "image-alt" in {rule["id"] for rule in found}


@pytest.mark.slow
def test_it_fits_at_any_width_in_both_colours_and_on_paper(page, tmp_path):
    page.open(write(full().to_html(), tmp_path / "page.html"))
    pages = set()
    for width in WIDTHS:
        for dark in (False, True):
            page.look(width, dark)
            assert page.evaluate("document.documentElement.scrollWidth") <= width
            pages.add(page.evaluate("getComputedStyle(document.body).backgroundColor"))
    assert len(pages) == 2
    page.print(tmp_path / "page.pdf")
    assert (tmp_path / "page.pdf").read_bytes().startswith(b"%PDF")
    requests = [
        e["params"]["request"]["url"] for e in page.events if e.get("method") == "Network.requestWillBeSent"
    ]
    assert all(url.startswith(("file:", "data:")) for url in requests)


@pytest.mark.slow
@pytest.mark.parametrize("policy", [True, False])
def test_hostile_names_do_not_run(page, tmp_path, policy):
    names = {HOSTILE: HOSTILE, "model": HOSTILE, "test": HOSTILE}
    text = full(model=HOSTILE, names=names, versions={HOSTILE: HOSTILE}).to_html()
    page.open(write(text if policy else without_policy(text), tmp_path / "page.html"))
    assert page.evaluate("window.ran === undefined")
    assert page.evaluate("document.querySelectorAll('script, [onerror]').length") == 0
    assert "<script>window.ran = 1</script>" in page.evaluate("document.querySelector('h1').textContent")


@pytest.mark.slow
def test_a_name_that_is_not_escaped_would_run(page, tmp_path):
    text = without_policy(full().to_html()).replace("<h1>", f"<h1>{HOSTILE}")
    page.open(write(text, tmp_path / "page.html"))
    assert page.evaluate("window.ran === 1")
    page.open(write(full().to_html().replace("<h1>", f"<h1>{HOSTILE}"), tmp_path / "page.html"))
    assert page.evaluate("window.ran === undefined")  # the policy stops it even then
