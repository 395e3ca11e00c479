"""The built site: every link leads somewhere, every public name is there, and a browser shows and searches it.

`.ci/run` builds the site and gives its folder by ``--site``. The browser is Debian's Chromium.
"""

from __future__ import annotations

import functools
import http.server
import re
import runpy
import shutil
import threading
from collections import defaultdict
from collections.abc import Iterator
from html.parser import HTMLParser
from importlib.util import find_spec
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urldefrag, urlsplit

import pytest

ROOT = Path(__file__).parents[2]
NAMES: dict[str, Any] = runpy.run_path(str(ROOT / "docs" / "_extensions" / "public_names.py"))
PAGES = (
    "docs/index",
    "docs/reference/hashmap",
    "docs/reference/relational",
    "docs/designs/lock_free_chaining",
    "docs/designs/quotient_cuckoo",
    "docs/notebooks/tables",
    "docs/rates",
    "docs/fidelity",
    "docs/start/frames",
    "ARCHITECTURE",
)
"""One of each kind, and those with the widest tables and drawings."""

READABLE = 4.5
"""Least contrast of text, by WCAG 2.2, success criterion 1.4.3."""


class Links(HTMLParser):
    """What a page leads to or loads, and the places in it that links can name."""

    def __init__(self) -> None:
        super().__init__()
        self.targets: list[str] = []
        self.loaded: list[str] = []
        self.places: set[str] = set()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        self.places |= {given[name] or "" for name in ("id", "name") if name in given}
        if tag == "a" and given.get("href"):
            self.targets.append(given["href"] or "")
        is_style = tag == "link" and given.get("rel") in ("stylesheet", "preload", "icon")
        source = given.get("href") if is_style else given.get("src") if tag in ("script", "img", "source") else None
        if source:
            self.loaded.append(source)


def read(page: Path) -> Links:
    links = Links()
    links.feed(page.read_text(encoding="utf-8"))
    return links


@pytest.fixture(scope="module")
def site(pytestconfig: pytest.Config) -> Path:
    folder = pytestconfig.getoption("--site")
    if folder is None:
        pytest.skip("no --site FOLDER was given, in which the site was built")
    return Path(folder).resolve()


@pytest.fixture(scope="module")
def pages(site: Path) -> dict[Path, Links]:
    return {page: read(page) for page in sorted(site.rglob("*.html")) if "_static" not in page.parts}


def broken(pages: dict[Path, Links]) -> list[tuple[str, str]]:
    """Links and files that lead nowhere, each with its page."""
    wrong = []
    for page, links in pages.items():
        for target in links.targets + links.loaded:
            path, place = urldefrag(target)
            if urlsplit(target).scheme in ("http", "https", "mailto", "data"):
                continue
            file = page if not path else (page.parent / unquote(path.partition("?")[0])).resolve()
            known = pages.get(file)
            if not file.is_file() or (place and known is not None and unquote(place) not in known.places):
                wrong.append((page.name, target))
    return wrong


def test_no_link_is_broken(pages: dict[Path, Links]) -> None:
    assert len(pages) > 70 and sum(len(links.targets) for links in pages.values()) > 4_000
    assert broken(pages) == []


def test_a_broken_link_is_noticed(tmp_path: Path) -> None:
    texts = {"a.html": '<a id="x" href="b.html#y">', "b.html": '<a href="a.html#x"><img src="c.png"><a href="#z">'}
    for name, text in texts.items():
        (tmp_path / name).write_text(text)
    found = broken({tmp_path / name: read(tmp_path / name) for name in texts})
    assert found == [("a.html", "b.html#y"), ("b.html", "#z"), ("b.html", "c.png")]


def test_pages_load_nothing_from_elsewhere(pages: dict[Path, Links]) -> None:
    assert [source for links in pages.values() for source in links.loaded if urlsplit(source).netloc] == []


def test_all_public_names_are_in_the_reference(pages: dict[Path, Links], site: Path) -> None:
    places = set().union(*(links.places for page, links in pages.items() if "reference" in page.parts))
    names = [each.name for each in NAMES["public_names"]()]
    assert len(names) > 200 and [name for name in names if name not in places] == []


def test_the_site_shows_the_text_of_help(site: Path) -> None:
    """First lines of docstrings, with the marks of names taken away."""
    shown = " ".join(
        re.sub(r"\s+", " ", re.sub(r"<[^>]+>", "", page.read_text(encoding="utf-8")))
        for page in sorted((site / "docs" / "reference").glob("*.html"))
    )
    silent = []
    for each in NAMES["public_names"]():
        line = re.sub(r"\s+", " ", each.doc.partition("\n\n")[0])
        words = [word for word in re.split(r"[^\w ,.]+", line) if len(word) > 12]
        if not all(word.strip() in shown for word in words):
            silent.append(each.name)
    assert silent == []


def test_two_clicks_lead_to_a_notebook_that_ran(pages: dict[Path, Links], site: Path) -> None:
    start = site / "docs" / "index.html"
    assert 'url=docs/index.html"' in (site / "index.html").read_text(encoding="utf-8")
    for name in ("frames", "training", "graphs", "tables"):
        notebook = f"notebooks/{name}.html"
        assert notebook in pages[start].targets
        has_run = name != "training" or find_spec("torch") is not None
        assert ("cell_output" in (site / "docs" / notebook).read_text(encoding="utf-8")) == has_run


# ---- in a browser
@pytest.fixture(scope="module")
def address(site: Path) -> Iterator[str]:
    """The site, served on this machine alone."""

    class Quiet(http.server.SimpleHTTPRequestHandler):
        def log_message(self, format: str, *args: Any) -> None: ...

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Quiet, directory=str(site))) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    playwright = pytest.importorskip("playwright.sync_api", reason="pip install '.[browser]' brings playwright")
    found = shutil.which("chromium")
    if found is None:
        pytest.skip("there is no chromium: apt-get install chromium")
    with playwright.sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=found, args=["--no-sandbox"])
        yield browser
        browser.close()


@pytest.fixture
def complaints() -> dict[str, list[str]]:
    return defaultdict(list)


def opened(browser: Any, complaints: dict[str, list[str]], width: int, scheme: str) -> Any:
    """A page that notes errors, and requests to other machines."""
    page = browser.new_page(viewport={"width": width, "height": 900}, color_scheme=scheme)
    page.on("console", lambda said: complaints[page.url].append(said.text) if said.type == "error" else None)
    page.on("pageerror", lambda error: complaints[page.url].append(str(error)))
    page.on(
        "request",
        lambda request: (
            complaints[page.url].append(request.url)
            if urlsplit(request.url).hostname not in ("127.0.0.1", None)
            else None
        ),
    )
    return page


LOOKS = """() => {
  const channels = text => text.match(/[\\d.]+/g).map(Number);
  const linear = c => c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4;
  const light = color => color.slice(0, 3).map(c => linear(c / 255))
      .reduce((sum, c, i) => sum + c * [0.2126, 0.7152, 0.0722][i], 0);
  const behind = node => {
    for (; node; node = node.parentElement) {
      const found = channels(getComputedStyle(node).backgroundColor);
      if (found.length === 3 || found[3] > 0.9) return found;
    }
    return [255, 255, 255];
  };
  const saysSomething = node => [...node.childNodes].some(child => child.nodeType === 3 && child.data.trim());
  const texts = [...document.querySelectorAll("article p, article li, article td, article th, article h1, article h2, "
      + "article a, article code, article pre span, article dt, nav a")]
      .filter(node => node.checkVisibility() && saysSomething(node));
  const contrasts = texts.map(node => {
    const [one, other] = [channels(getComputedStyle(node).color), behind(node)].map(light).sort((a, b) => b - a);
    return [(one + 0.05) / (other + 0.05), node.tagName + " " + node.textContent.trim().slice(0, 40)];
  });
  return {
    wide: document.documentElement.scrollWidth - innerWidth,
    cut: texts.filter(node => /^(P|H1|H2|LI|DT)$/.test(node.tagName) && node.scrollWidth > node.clientWidth + 1)
        .map(node => node.textContent.trim().slice(0, 40)),
    pictures: [...document.images].filter(image => !image.complete || !image.naturalWidth).map(image => image.src),
    small: texts.filter(node => parseFloat(getComputedStyle(node).fontSize) < 10).length,
    texts: texts.length,
    pale: contrasts.filter(([contrast]) => contrast < READABLE).map(([c, text]) => c.toFixed(2) + " " + text),
    background: light(behind(document.querySelector("article"))),
  };
}""".replace("READABLE", str(READABLE))


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [400, 1200])
def test_pages_are_readable(
    browser: Any, address: str, complaints: dict[str, list[str]], width: int, scheme: str, pytestconfig: pytest.Config
) -> None:
    page = opened(browser, complaints, width, scheme)
    pictures = pytestconfig.getoption("--pictures")
    wrong = {}
    for name in PAGES:
        page.goto(f"{address}/{name}.html")
        page.evaluate("document.querySelectorAll('img').forEach(image => image.loading = 'eager')")
        page.wait_for_function("[...document.images].every(image => image.complete)")
        seen = page.evaluate(LOOKS)
        assert seen["texts"] > 10, name
        assert (seen["background"] < 0.1) == (scheme == "dark"), name
        if seen["wide"] > 0 or any(seen[fault] for fault in ("cut", "pictures", "small", "pale")):
            wrong[name] = seen
        if pictures is not None:
            page.screenshot(path=f"{pictures}/{name.replace('/', '-')}-{width}-{scheme}.png")
    page.close()
    assert wrong == {} and not complaints


def test_search_finds_join(browser: Any, address: str, complaints: dict[str, list[str]]) -> None:
    page = opened(browser, complaints, 1200, "light")
    page.goto(f"{address}/index.html")
    page.wait_for_url("**/docs/index.html")
    page.keyboard.press("Control+k")
    page.keyboard.type("join")
    page.keyboard.press("Enter")
    page.wait_for_selector("#search-results li a")
    page.wait_for_function(
        "!document.querySelector('#search-results h2, #search-progress')?.textContent.includes('Searching')"
    )
    found = page.eval_on_selector_all("#search-results li a", "links => links.map(link => link.href)")
    assert any(link.endswith("docs/reference/relational.html#warphash.join") for link in found), found[:20]
    page.goto(next(link for link in found if link.endswith("#warphash.join")))
    assert "Find the pairs of rows" in page.text_content("dl:has(> dt[id='warphash.join'])")
    page.close()
    assert not complaints


def test_a_pale_text_and_a_lost_picture_are_noticed(browser: Any) -> None:
    page = browser.new_page(viewport={"width": 400, "height": 900})
    page.set_content(
        "<article style='background: #fff'><p style='color: #ccc'>pale</p><p style='font-size: 6px'>small</p>"
        "<p style='width: 900px'>wide</p><h1 style='width: 50px'>quotient_cuckoo</h1><img src='lost.png'></article>"
    )
    page.wait_for_function("[...document.images].every(image => image.complete)")
    seen = page.evaluate(LOOKS)
    page.close()
    assert seen["wide"] > 0 and len(seen["pictures"]) == 1 and seen["small"] == 1 and len(seen["pale"]) == 1
    assert seen["cut"] == ["quotient_cuckoo"]
