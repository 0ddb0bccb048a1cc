"""The page in a real browser: Chromium, driven by Playwright, with axe-core's rules for accessibility.

`.ci/run` installs all three; without them the tests are skipped.
"""

import shutil
import sqlite3
import threading
import time
from pathlib import Path

import pytest

import augtree as at
from augtree.report import LivePage
from support.reports import HOSTILE

api = pytest.importorskip("playwright.sync_api", reason="Playwright is not installed (pip install playwright)")
CHROMIUM = next((path for path in ("/usr/bin/chromium", "/usr/bin/chromium-browser") if Path(path).exists()), None)
AXE = Path(__file__).parents[2] / ".browser" / "axe.min.js"
QUIET = (
    *("--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking"),
    *("--disable-component-update", "--disable-sync"),
)
pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="Chromium is not installed (apt-get install chromium)")
NODES = ".explorer.policy [data-panel]"


@pytest.fixture(scope="module")
def browser():
    with api.sync_playwright() as driver:
        running = driver.chromium.launch(executable_path=CHROMIUM, args=QUIET)
        yield running
        running.close()


class Looked:
    """A page in a tab, with all that it asked for and complained about."""

    def __init__(self, browser, address, width=1200, theme="light"):
        look = {"viewport": {"width": width, "height": 900}, "color_scheme": theme, "reduced_motion": "reduce"}
        self.tab = browser.new_page(**look, has_touch=width < 500)
        self.asked, self.complaints = [], []
        self.tab.on("request", lambda request: self.asked.append(request.url))
        self.tab.on("console", lambda said: self.complaints.append(said.text))
        self.tab.on("pageerror", lambda error: self.complaints.append(str(error)))
        self.tab.goto(address)

    @property
    def requests(self):
        """What was asked for beside the page itself and what is in it."""
        return [url for url in self.asked[1:] if not url.startswith("data:")]


@pytest.fixture(scope="module")
def addresses(made, tmp_path_factory):
    """Pages by name."""
    folder, written = tmp_path_factory.mktemp("pages"), {}

    def address(name):
        if name not in written:
            path = at.write_report(made(name), folder / f"{name}.html", data=made.data(name))
            written[name] = path.as_uri()
        return written[name]

    return address


@pytest.fixture(scope="module")
def forest(browser, addresses):
    """The page of a forest whose classes and groups have hostile names, at 1,200 pixels."""
    return Looked(browser, addresses("forest"))


def shown_panel(tab):
    return tab.locator(".explorer.policy .panel:not([hidden])").first


def are_drawn(panel):
    """Whether all pictures of a panel are there."""
    script = "panel => [...panel.querySelectorAll('img')].map(image => image.complete && image.naturalWidth > 0)"
    drawn = panel.evaluate(script)
    return len(drawn) > 0 and all(drawn)


def test_the_page_asks_for_nothing_and_complains_of_nothing(forest):
    assert are_drawn(shown_panel(forest.tab))
    assert (forest.requests, forest.complaints) == ([], [])


def test_hostile_names_stay_text(forest):
    assert forest.tab.evaluate("window.hacked") is None
    assert forest.tab.locator("img[src='x']").count() == 0
    for name in HOSTILE[:2]:
        assert forest.tab.get_by_text(name).count() > 0


def test_a_node_that_is_tapped_shows_its_pictures(browser, addresses):
    looked = Looked(browser, addresses("fit"), width=400)
    node = looked.tab.locator(NODES, has_text="Cutout").first
    node.tap()
    panel = shown_panel(looked.tab)
    assert panel.locator("h4").inner_text() == "Cutout(0.4)"
    assert node.get_attribute("aria-pressed") == "true"
    assert are_drawn(panel)
    assert panel.locator("img").first.is_visible()
    originals = panel.locator(".strip-row figure:first-child img").evaluate_all("all => all.map(one => one.src)")
    after = panel.locator(".strip-row figure:last-child img").evaluate_all("all => all.map(one => one.src)")
    assert all(one != other for one, other in zip(originals, after, strict=True))
    looked.tab.close()


def test_the_mouse_shows_a_node_without_a_click(forest):
    node = forest.tab.locator(NODES, has_text="Posterize").first
    node.hover()
    forest.tab.wait_for_function("node => node.getAttribute('aria-pressed') === 'true'", arg=node.element_handle())
    assert shown_panel(forest.tab).locator("h4").inner_text() == "Posterize(0.2)"


def test_the_keyboard_walks_through_a_figure(forest):
    tab = forest.tab
    nodes = tab.locator(".explorer.policy").first.locator("[data-panel]")
    nodes.first.click()
    tab.locator("#policy-title").evaluate("title => { title.tabIndex = -1; title.focus(); }")
    tab.keyboard.press("Tab")
    assert focused(tab) == nodes.nth(0).get_attribute("data-panel")
    tab.keyboard.press("ArrowRight")
    assert focused(tab) == nodes.nth(1).get_attribute("data-panel")
    assert tab.locator(".explorer.policy .panel:not([hidden])").first.get_attribute("data-name") == focused(tab)
    tab.keyboard.press("End")
    assert focused(tab) == nodes.last.get_attribute("data-panel")
    tab.keyboard.press("Home")
    tab.keyboard.press("ArrowLeft")
    assert focused(tab) == nodes.first.get_attribute("data-panel")
    twigs = tab.locator(".wide .twig")
    twigs.last.focus()
    tab.keyboard.press("ArrowUp")
    assert focused(tab) == twigs.nth(twigs.count() - 2).get_attribute("data-panel")


def focused(tab):
    return tab.evaluate("document.activeElement.dataset.panel || null")


@pytest.mark.parametrize("name", ["forest", "compare", "graphs"])
def test_a_narrow_screen_does_not_scroll_sideways(name, browser, addresses):
    looked = Looked(browser, addresses(name), width=400)
    assert looked.tab.evaluate("document.documentElement.scrollWidth") == 400
    assert looked.complaints == []
    looked.tab.close()


@pytest.mark.skipif(not AXE.exists(), reason="axe-core is not there (.ci/run fetches it)")
@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("name", ["forest", "compare"])
def test_axe_finds_nothing_serious(name, theme, browser, addresses):
    looked = Looked(browser, addresses(name), theme=theme)
    looked.tab.evaluate(AXE.read_text())
    found = looked.tab.evaluate("axe.run().then(found => found.violations)")
    serious = [(each["id"], each["nodes"][0]["html"]) for each in found if each["impact"] in ("serious", "critical")]
    assert serious == []
    looked.tab.close()


def test_the_colours_can_be_chosen_and_are_kept(forest):
    button, root = forest.tab.locator("#theme"), "document.documentElement.dataset.theme"
    assert forest.tab.evaluate(root) == "light"
    button.click()
    button.click()
    assert (button.inner_text().split()[-1], forest.tab.evaluate(root)) == ("dark", "dark")
    forest.tab.reload()
    assert forest.tab.evaluate(root) == "dark"


def test_sixteen_groups_open_within_a_second(browser, addresses):
    begun = time.perf_counter()
    looked = Looked(browser, addresses("sixteen"))
    loaded = looked.tab.evaluate("performance.getEntriesByType('navigation')[0].loadEventEnd")
    assert 0 < loaded < 1000
    assert time.perf_counter() - begun < 20
    assert looked.tab.locator(".policy-figure").count() == 16
    looked.tab.close()


def test_a_live_page_shows_a_new_node_without_a_reload(browser, made, tmp_path):
    """The run grows while the page is open; then it ends, and the server with it."""
    folder = tmp_path / "run"
    shutil.copytree(made("search"), folder)
    hidden = {name: (folder / name).read_bytes() for name in ("tree.json", "result.json", "model.safetensors")}
    for name in hidden:
        (folder / name).unlink()
    shutil.copy(folder / "run.sqlite", tmp_path / "whole.sqlite")
    with sqlite3.connect(folder / "run.sqlite") as store:
        store.execute("DELETE FROM units WHERE key LIKE 'cool/%' OR key LIKE 'measures%'")
        store.execute("DELETE FROM facts WHERE key IN ('status', 'tree', 'mixtures')")
    with LivePage(folder) as page:
        thread = threading.Thread(target=page.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        looked = Looked(browser, page.address)
        looked.tab.wait_for_selector("#live-state.on")
        assert looked.tab.locator(NODES).count() == 0
        looked.tab.evaluate("window.still = true")
        shutil.copy(tmp_path / "whole.sqlite", folder / "run.sqlite")
        for name, content in hidden.items():
            (folder / name).write_bytes(content)
        looked.tab.wait_for_selector(NODES)
        assert are_drawn(shown_panel(looked.tab))
        looked.tab.wait_for_function("document.getElementById('live-state').textContent === 'finished'")
        assert looked.tab.evaluate("window.still")
        assert looked.complaints == []
        looked.tab.reload()
        assert looked.tab.locator(NODES).count() > 0
        page.shutdown()
        thread.join()
    looked.tab.wait_for_selector("#live-state.off", timeout=15_000)
    assert looked.tab.locator(NODES).count() > 0
    looked.tab.close()
