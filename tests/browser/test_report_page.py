"""The report in a real browser, with the network off: what a person presses works, and no name runs a script.

Chromium is looked for where ``PSGNN_BROWSER`` says or under its usual names. Without one these tests skip, unless
``PSGNN_REQUIRE_BROWSER`` is set, as in CI.
"""

from __future__ import annotations

import json
import os
import re
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import psgnn
from psgnn.report import summarise, write_page
from psgnn.report._page import shown_name
from report_runs import HOSTILE_NAMES, follows, hostile_graph, large_summary, train, watched

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
# As root there is no sandbox; the others keep Chromium from calling home and let it draw WebGL without a graphics card.
FLAGS = [
    "--no-sandbox", "--disable-quic", "--no-first-run", "--disable-background-networking",
    "--disable-component-update", "--disable-sync", "--use-angle=swiftshader", "--enable-unsafe-swiftshader",
]  # fmt: skip
WAIT = 60_000  # milliseconds; the machine may have other things to do

Open = Callable[..., Any]


def missing(reason: str) -> None:
    if os.environ.get("PSGNN_REQUIRE_BROWSER"):
        pytest.fail(f"PSGNN_REQUIRE_BROWSER is set, but {reason}")
    pytest.skip(reason)


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    try:
        from playwright.sync_api import sync_playwright
    except ImportError:
        missing("playwright is not installed: pip install 'psgnn[dev]'")
    path = os.environ.get("PSGNN_BROWSER") or next(filter(None, map(shutil.which, NAMES)), None)
    if path is None:
        missing(f"no browser was found ({', '.join(NAMES)}); install Chromium or set PSGNN_BROWSER")
    with sync_playwright() as playwright:
        found = playwright.chromium.launch(executable_path=path, args=FLAGS)
        yield found
        found.close()


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """A run with fixed anchors, one whose anchors move, one without; the folder of the last has a hostile name."""
    root = tmp_path_factory.mktemp("runs")
    fixed = train(hostile_graph(), root / "fixed")
    moving = root / "moving"
    moving.mkdir()
    for file in fixed.iterdir():
        (moving / file.name).write_bytes(file.read_bytes())
    record = json.loads((moving / "record.json").read_text())
    for entry in record["history"]:
        entry["anchors"] = [entry["epoch"], 20 + entry["epoch"], 40]
    (moving / "record.json").write_text(json.dumps(record))
    bare = train(hostile_graph(), root / "<img src=x onerror=alert(8)>", name="gcn")
    return [fixed, moving, bare]


@pytest.fixture(scope="module")
def summary(folders: list[Path]) -> dict[str, Any]:
    return summarise(folders, top=40)


@pytest.fixture(scope="module")
def page_file(summary: dict[str, Any], tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("page") / "report.html"
    write_page(summary, path)
    return path


@pytest.fixture
def show(browser: Any) -> Iterator[Open]:
    """Open a page with the network off; at the end, nothing may have gone wrong in it."""
    contexts: list[Any] = []
    wrong: list[str] = []

    def note(kind: str, told: str) -> None:
        # The driver that stands in for a graphics card tells how fast it is.
        if kind in ("error", "warning") and "GL Driver Message (OpenGL, Performance" not in told:
            wrong.append(told)

    def open_page(path: Path, **options: Any) -> Any:
        context = browser.new_context(offline=True, viewport={"width": 1200, "height": 900}, **options)
        contexts.append(context)
        page = context.new_page()
        page.set_default_timeout(WAIT)
        page.on("console", lambda message: note(message.type, message.text))
        page.on("pageerror", lambda error: wrong.append(str(error)))
        page.on("dialog", lambda dialog: (wrong.append(f"dialog: {dialog.message}"), dialog.dismiss()))
        page.on(
            "request",
            lambda request: None if request.url == path.as_uri() else wrong.append(request.url[:100]),
        )
        page.goto(path.as_uri())
        page.wait_for_selector("html[data-ready]")
        return page

    yield open_page
    for context in contexts:
        context.close()
    assert wrong == []


def text(page: Any, selector: str) -> str:
    return str(page.inner_text(selector))


def wait_until(page: Any, script: str, arg: Any = None) -> None:
    """Wait for a script to be true; `wait_for_function` evaluates text in the page, which its policy forbids."""
    for _ in range(100):
        if page.evaluate(script, arg):
            return
        page.wait_for_timeout(200)
    raise AssertionError(f"still not true after 20 s: {script}")


def stars(page: Any) -> list[int]:
    """The nodes that are drawn as anchors."""
    script = "document.getElementById('graph-plot').data.find((t) => t.marker && t.marker.symbol === 'star').customdata"
    return sorted(page.evaluate(f"Array.from({script})"))


def colours(page: Any) -> Any:
    """Colours of the nodes, or the numbers that stand for them."""
    script = "document.getElementById('graph-plot').data.find((t) => t.mode === 'markers').marker.color"
    return page.evaluate(f"Array.from({script})")


def point_at(page: Any, node: int, plot: str = "graph-plot") -> None:
    """Move the mouse to where a node is drawn."""
    page.locator(f"#{plot}").scroll_into_view_if_needed()
    x, y = page.evaluate(
        """([plot, node]) => {
          const gd = document.getElementById(plot), box = gd.getBoundingClientRect(), full = gd._fullLayout;
          const trace = gd.data.find((t) => t.mode === "markers");
          return [box.x + full.xaxis._offset + full.xaxis.l2p(trace.x[node]),
                  box.y + full.yaxis._offset + full.yaxis.l2p(trace.y[node])];
        }""",
        [plot, node],
    )
    page.mouse.move(x + 30, y + 30)
    page.mouse.move(x, y, steps=4)


def test_the_slider_shows_fixed_anchors_one_after_another(
    show: Open, page_file: Path, summary: dict[str, Any]
) -> None:
    page = show(page_file)
    count = summary["runs"][0]["anchors"]["count"]
    hops = summary["runs"][0]["drawn"][0]["hops"]
    order = [int((row == 0).argmax()) for row in hops]
    assert stars(page) == sorted(order)
    slider = page.locator("#step")
    slider.focus()
    page.keyboard.press("Home")
    assert stars(page) == order[:1]
    assert text(page, "#step-text").startswith(f"1 of {count} anchors, the latest: ")
    page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowRight")
    assert stars(page) == sorted(order[:3])
    nearest = np.where(hops < 0, 99, hops)[:3].min(axis=0)
    assert colours(page) == [0 if near == 99 else near for near in nearest.tolist()]
    assert "training does not move them" in text(page, "#graph-note")
    page.click("#play")
    assert text(page, "#play") == "Pause"
    wait_until(page, "() => Number(document.getElementById('step').value) >= 4")
    assert len(stars(page)) >= 5
    page.click("#play")
    assert text(page, "#play") == "Play"


def test_the_slider_moves_through_training(show: Open, page_file: Path, summary: dict[str, Any]) -> None:
    page = show(page_file)
    page.select_option("#run", "1")
    assert summary["runs"][1]["anchors"]["moves"]
    page.locator("#step").focus()
    page.keyboard.press("Home")
    assert stars(page) == [1, 21, 40]
    page.keyboard.press("End")
    assert stars(page) == [4, 24, 40]
    assert text(page, "#step-text").startswith("epoch 4")
    assert "2 new since the step before" in text(page, "#step-text")
    assert "where the slider stands: epoch 4" in text(page, "#training-caption")
    shapes = page.evaluate("document.getElementById('training-plot').layout.shapes.map((s) => s.x0)")
    assert shapes == [4]


def test_pointing_at_a_node_shows_its_name_and_distances(
    show: Open, page_file: Path, summary: dict[str, Any]
) -> None:
    page = show(page_file)
    drawn = summary["runs"][0]["drawn"][0]
    for plot in ("graph-plot", "map-plot"):
        for node in (0, 1):
            page.mouse.move(0, 0)
            point_at(page, node, plot)
            page.wait_for_selector("#tooltip", state="visible")
            seen = re.sub(r"\s+", " ", text(page, "#tooltip"))
            names = [re.sub(r"\s+", " ", name) for name in drawn["names"]]
            # Nodes may lie over one another on the map; whichever is met, it is told whole.
            (met,) = [v for v, name in enumerate(names) if seen.startswith(f"{name} links: ")]
            if plot == "graph-plot":
                assert met == node
            nearest = int(drawn["nearest"][met])
            assert f": {nearest} hop" in seen
            assert drawn["names"][met] in text(page, "#node-details")


def test_finding_a_node_by_name_needs_no_mouse(show: Open, page_file: Path) -> None:
    page = show(page_file)
    page.focus("#find")
    page.keyboard.type("node 33")
    page.keyboard.press("Enter")
    assert text(page, "#node-details").startswith("node 33")
    ring = "document.getElementById('graph-plot').data.at(-1).customdata"
    assert page.evaluate(f"Array.from({ring})") == [33]
    page.fill("#find", "nobody")
    page.press("#find", "Enter")
    assert "No drawn node" in text(page, "#node-details")


def test_the_table_is_searched_and_sorted(show: Open, page_file: Path, summary: dict[str, Any]) -> None:
    page = show(page_file)
    rows = summary["runs"][0]["predictions"]
    wanted = rows[0]["source"].lower()
    expected = sum(wanted in row["source"].lower() or wanted in row["target"].lower() for row in rows)
    visible = page.locator("#predictions-table tbody tr:visible")
    assert visible.count() == len(rows)
    page.fill("#search", wanted)
    assert 0 < visible.count() == expected < len(rows)
    assert text(page, "#search-count") == f"{expected} of {len(rows)} pairs"
    page.fill("#search", "no such node")
    assert visible.count() == 0
    page.fill("#search", "")
    header = page.locator("#predictions-table th", has_text="common neighbours")
    column = [row["common"] for row in rows]
    for direction, reverse in (("ascending", False), ("descending", True)):
        header.locator("button").click()
        assert header.get_attribute("aria-sort") == direction
        place = page.evaluate("(cell) => cell.cellIndex", header.element_handle())
        cells = page.locator(f"#predictions-table tbody td:nth-child({place + 1})").all_inner_texts()
        assert list(map(int, cells)) == sorted(column, reverse=reverse)
    page.locator("#predictions-table tbody button").first.click()
    drawn = "document.getElementById('graph-plot').data.filter((t) => t.line && t.line.dash === 'dash')"
    assert page.evaluate(f"{drawn}.map((t) => t.x.length)") == [2]


def test_colours_by_anchor_class_community_and_links(
    show: Open, page_file: Path, summary: dict[str, Any]
) -> None:
    page = show(page_file)
    drawn = summary["runs"][0]["drawn"][0]
    assert colours(page) == [max(0, hops) for hops in drawn["nearest"].tolist()]
    page.select_option("#anchor", "2")
    assert page.input_value("#colour") == "anchor"
    assert colours(page) == [max(0, hops) for hops in drawn["hops"][2].tolist()]
    page.select_option("#colour", "degree")
    assert colours(page) == drawn["degree"].tolist()
    for way in ("class", "community"):
        page.select_option("#colour", way)
        groups = drawn[way].tolist()
        shown = colours(page)
        assert len({(shown[v], groups[v]) for v in range(48)}) == len(set(groups)) == len(set(shown))
        assert page.locator("#legend li").count() == len(set(groups)) + 1
        assert f"{way} 0 (" in text(page, "#legend")
    page.uncheck("#show-links")
    assert (
        page.evaluate("document.getElementById('graph-plot').data.filter((t) => t.mode === 'lines').length")
        == 0
    )


# Texts whose contrast to what is behind them is below what WCAG asks for.
FAINT = """() => {
      const rgb = (text) => text.match(/[\\d.]+/g).slice(0, 3).map((v) => v / 255)
        .map((v) => (v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4));
      const light = (text) => { const [r, g, b] = rgb(text); return 0.2126 * r + 0.7152 * g + 0.0722 * b; };
      const ground = (element) => {
        const colour = getComputedStyle(element).backgroundColor;
        return /, 0\\)$/.test(colour) && element.parentElement ? ground(element.parentElement) : colour;
      };
      return [...document.querySelectorAll("p, td, th, dt, dd, figcaption, label, nav a, button")]
        .filter((each) => each.textContent.trim() && each.offsetParent && !each.closest(".plot") && !each.disabled)
        .map((each) => {
          const [a, b] = [light(getComputedStyle(each).color), light(ground(each))];
          return [(Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05), each.outerHTML.slice(0, 80)];
        }).filter(([ratio]) => ratio < 4.5);
    }"""


def test_dark_and_light_by_the_system_and_by_hand(show: Open, page_file: Path) -> None:
    background = "getComputedStyle(document.body).backgroundColor"
    ink = "document.getElementById('rules-plot').layout.font.color"
    light = show(page_file, color_scheme="light")
    assert light.evaluate(background) == "rgb(255, 255, 255)"
    dark = show(page_file, color_scheme="dark")
    dark_ground, light_ink = dark.evaluate(background), light.evaluate(ink)
    assert light.evaluate(FAINT) == dark.evaluate(FAINT) == []
    assert dark_ground != "rgb(255, 255, 255)"
    light.click("#theme")
    assert light.get_attribute("#theme", "aria-pressed") == "true"
    assert light.evaluate(background) == dark_ground
    assert light.evaluate(ink) != light_ink
    light.click("#theme")
    assert light.evaluate(background) == "rgb(255, 255, 255)"
    assert light.evaluate(ink) == light_ink


def test_runs_are_switched_and_compared(show: Open, page_file: Path, summary: dict[str, Any]) -> None:
    page = show(page_file)
    assert page.locator("#runs-table tbody tr").count() == 3
    assert "on the same pairs" in text(page, "#runs-note")
    assert shown_name("<img src=x onerror=alert(8)>") in text(page, "#runs-table")
    page.select_option("#run", "2")
    assert "This model has no anchors" in text(page, "#graph-note")
    assert not page.is_visible("#step-controls")
    assert page.locator("#colour option").count() == 3
    assert f"{summary['runs'][2]['test']['auc']:.4f}" in text(page, "#cards")
    assert "<img src=x onerror=alert(8)>" in text(page, "#cards")
    assert "--model gcn" in text(page, "#command")
    assert f"Made by psgnn {psgnn.__version__}" in text(page, "footer")


def test_hostile_names_are_shown_and_nothing_else(show: Open, page_file: Path) -> None:
    page = show(page_file)
    for run in ("0", "1", "2"):
        page.select_option("#run", run)
        for name in HOSTILE_NAMES[:5]:
            page.fill("#find", name)
            page.press("#find", "Enter")
            assert text(page, "#node-details").startswith(name)
        if run != "2":
            page.select_option("#colour", "anchor")
    bad = "img, iframe, object, embed, svg[onload], a[href^=javascript]"
    assert page.evaluate("(bad) => document.querySelectorAll(bad).length", bad) == 0
    assert page.evaluate("document.scripts.length") == 3
    assert page.evaluate("document.documentElement.scrollWidth <= window.innerWidth + 1")


def test_every_control_is_reached_by_the_keyboard_and_has_a_name(show: Open, page_file: Path) -> None:
    page = show(page_file)
    unnamed = page.evaluate(
        """[...document.querySelectorAll("select, input, button")].filter((each) => !each.closest(".plot") &&
             !(each.labels && each.labels.length) && !each.textContent.trim()).map((each) => each.outerHTML)"""
    )
    assert unnamed == []
    seen = []
    for _ in range(40):
        page.keyboard.press("Tab")
        seen.append(page.evaluate("document.activeElement.id"))
        if seen[-1]:
            assert page.evaluate("getComputedStyle(document.activeElement).outlineStyle") == "solid"
        if seen[-1] == "step":
            break
    wanted = ["run", "theme", "colour", "anchor", "find", "show-links", "play", "step"]
    assert [each for each in seen if each in wanted] == wanted
    images = page.evaluate(
        "[...document.querySelectorAll('.plot')].map((each) => each.getAttribute('aria-label'))"
    )
    assert all(images)


def test_the_policy_stops_scripts_and_connections(browser: Any, page_file: Path) -> None:
    context = browser.new_context()
    page = context.new_page()
    page.goto(page_file.as_uri())
    page.wait_for_selector("html[data-ready]", timeout=WAIT)
    stopped = page.evaluate(
        """async () => {
          const found = [];
          document.addEventListener("securitypolicyviolation", (event) => found.push(event.effectiveDirective));
          const script = document.createElement("script");
          script.textContent = "window.broken = true";
          document.body.append(script);
          await fetch("http://127.0.0.1:9/").catch(() => null);
          // Later, since what a test evaluates itself is above the policy.
          setTimeout(() => { try { new Function("window.broken = true")(); } catch { /* as it should be */ } });
          await new Promise((done) => setTimeout(done, 200));
          return [window.broken === undefined, ...new Set(found)].map(String).sort();
        }"""
    )
    context.close()
    assert stopped == ["connect-src", "script-src", "script-src-elem", "true"]


def test_a_graph_of_100_000_nodes_is_drawn_and_answers(
    show: Open, summary: dict[str, Any], tmp_path: Path
) -> None:
    large = large_summary({**summary, "runs": summary["runs"][:1]})
    write_page(large, tmp_path / "large.html")
    page = show(tmp_path / "large.html")
    assert "6,000 of 100,000 nodes" in text(page, "#graph-caption")
    assert page.evaluate("document.getElementById('graph-plot').data[0].type") == "scattergl"
    # What a press costs on the page itself; plotly.js draws at once.
    took = page.evaluate(
        """() => {
          const start = performance.now();
          for (const way of ["class", "degree", "coverage"]) {
            const select = document.getElementById("colour");
            select.value = way;
            select.dispatchEvent(new Event("change"));
          }
          return performance.now() - start;
        }"""
    )
    assert took / 3 < 5000
    point_at(page, 17)
    page.wait_for_selector("#tooltip", state="visible")
    assert "ß" in text(page, "#tooltip")


# Answers


def test_a_node_has_a_page_at_an_address(show: Open, page_file: Path, summary: dict[str, Any]) -> None:
    page = show(page_file)
    drawn = summary["runs"][0]["drawn"][0]
    assert not page.is_visible("#node")
    point_at(page, 20)
    page.wait_for_selector("#tooltip", state="visible")  # a click before it is on no node
    page.mouse.down()
    page.mouse.up()
    wait_until(page, "() => location.hash === '#node=node%2020'")
    assert page.is_visible("#node")
    assert text(page, "#node-name") == "node 20"
    partners = next(each["rows"] for each in drawn["partners"] if each["node"] == 20)
    cells = page.locator("#partners-table tbody tr").all_inner_texts()
    assert [cell.split("\t")[0] for cell in cells] == [drawn["names"][row["place"]] for row in partners]
    assert all(row["because"] in cell for row, cell in zip(partners, cells, strict=True))
    links = np.concatenate([drawn["links"], drawn["held_out"]], axis=1)
    near = {drawn["names"][v] for pair in links.T.tolist() if 20 in pair for v in pair if v != 20}
    assert set(page.locator("#neighbours button").all_inner_texts()) == near
    rows = page.locator("#position-table tbody tr").all_inner_texts()
    counted = {row.split("\t")[0]: row.count(",") + 1 for row in rows}
    assert counted == {
        "not reached" if h < 0 else str(h): int((drawn["hops"][:, 20] == h).sum())
        for h in set(drawn["hops"][:, 20].tolist())
    }
    page.focus("#neighbours button")
    page.keyboard.press("Enter")
    wait_until(page, "() => document.getElementById('node-name').textContent !== 'node 20'")
    assert text(page, "#node-name") in near
    page.go_back()
    wait_until(page, "() => document.getElementById('node-name').textContent === 'node 20'")


def test_addresses_open_nodes_and_predictions(show: Open, page_file: Path, summary: dict[str, Any]) -> None:
    page = show(page_file)
    for name in HOSTILE_NAMES[:8]:
        page.evaluate("(name) => { location.hash = `node=${encodeURIComponent(name)}`; }", shown_name(name))
        wait_until(
            page, "(name) => document.getElementById('node-name').textContent === name", shown_name(name)
        )
    page.evaluate("() => { location.hash = 'node=nobody'; }")
    wait_until(page, "() => document.getElementById('node-details').textContent.includes('No drawn node')")
    page.evaluate("() => { location.hash = 'node=node%2033&run=3'; }")
    wait_until(page, "() => document.getElementById('run').value === '2'")
    assert text(page, "#node-name") == "node 33"
    assert "no anchors" in text(page, "#position-note")
    page.evaluate("() => { location.hash = 'prediction=1'; }")
    page.wait_for_selector("#why", state="visible")
    assert summary["runs"][0]["predictions"][0]["source"] in text(page, "#why-name")


def test_typing_a_name_completes_it(show: Open, page_file: Path) -> None:
    page = show(page_file)
    page.focus("#find")
    page.keyboard.type("ode 3")
    found = page.evaluate("[...document.querySelectorAll('#find-names option')].map((each) => each.value)")
    assert found == [f"node {v}" for v in range(30, 40)]
    page.fill("#find", "<img")
    found = page.evaluate("[...document.querySelectorAll('#find-names option')].map((each) => each.value)")
    assert found == [HOSTILE_NAMES[0]]


def test_why_shows_parts_that_add_up(show: Open, page_file: Path, summary: dict[str, Any]) -> None:
    page = show(page_file)
    found = summary["runs"][0]["explanations"][0]
    page.locator("#predictions-table tbody button", has_text="Why").first.click()
    page.wait_for_selector("#why", state="visible")
    assert page.evaluate("document.activeElement.id") == "why-name"
    for name in [*found["shared"], *found["paths"][0]]:
        assert name in page.evaluate("document.getElementById('why-facts').textContent")
    bars = page.evaluate(
        "['y', 'x'].map((each) => Array.from(document.getElementById('why-plot').data[0][each]))"
    )
    values = dict(zip(*bars, strict=True))
    score = values.pop("score")
    assert sum(values.values()) == pytest.approx(score, abs=1e-3)
    page.select_option("#run", "2")
    assert not page.is_visible("#why")
    page.locator("#predictions-table tbody button", has_text="Why").first.click()
    page.wait_for_selector("#why", state="visible")
    assert "reads all evidence at once" in text(page, "#why-caption")
    assert not page.is_visible("#why-plot")


def test_expected_precision_is_the_mean_of_the_probabilities(
    show: Open, page_file: Path, summary: dict[str, Any]
) -> None:
    page = show(page_file)
    rows = summary["runs"][0]["predictions"]
    likely = np.array([row["probability"] for row in rows])
    drawn = page.evaluate("Array.from(document.getElementById('expected-plot').data[0].y)")
    np.testing.assert_allclose(drawn, np.cumsum(likely) / np.arange(1, len(rows) + 1))
    count = min(50, len(rows))
    assert f"Of the first {count} about {round(likely[:count].sum())} " in text(page, "#expected-caption")
    axes = page.evaluate(
        "['xaxis', 'yaxis'].map((each) => document.getElementById('real-plot').layout[each].type)"
    )
    assert axes == ["log", "log"]


def test_a_run_of_the_pair_task_has_no_probabilities(show: Open, tmp_path: Path) -> None:
    write_page(
        summarise([train(hostile_graph(), tmp_path / "run", task="pair")], top=10), tmp_path / "pair.html"
    )
    page = show(tmp_path / "pair.html")
    assert "predicts shared classes, not links" in text(page, "#expected-caption")
    assert not page.is_visible("#expected-plot")
    assert "probability" not in text(page, "#predictions-table thead")


# Graphs with directions, and with two sides


def cells(page: Any, table: str) -> list[list[str]]:
    """The texts of the rows of a table."""
    rows = "[...document.getElementById(id).tBodies[0].rows]"
    script = f"(id) => {rows}.map((row) => [...row.cells].map((cell) => cell.textContent))"
    return list(page.evaluate(script, table))


def open_node(page: Any, name: str) -> None:
    page.fill("#find", name)
    page.press("#find", "Enter")
    wait_until(page, "(name) => document.getElementById('node-name').textContent === name", name)


def card(page: Any, name: str) -> str:
    term = "[...document.querySelectorAll('#cards dt')].find((each) => each.textContent === name)"
    return str(page.evaluate(f"(name) => {term}.nextSibling.textContent", name))


def test_a_directed_report_says_which_way_every_link_goes(show: Open, tmp_path: Path) -> None:
    graph = follows()
    run = psgnn.load(train(graph, tmp_path / "run"))
    summary = summarise([tmp_path / "run"], top=30)
    write_page(summary, tmp_path / "page.html")
    page = show(tmp_path / "page.html")
    drawn, names = summary["runs"][0]["drawn"][0], np.array(graph.names)
    arcs = set(zip(*names[graph.edges].tolist(), strict=True))
    hidden = set(zip(*names[run.hidden].tolist(), strict=True))
    shown = {(drawn["names"][u], drawn["names"][v]) for u, v in drawn["links"].T.tolist()}
    assert shown == arcs - hidden
    assert len(arcs) > graph.adjacency.num_edges
    assert card(page, "read as") == "directed"
    assert card(page, "visible links") == str(len(shown))
    assert card(page, "test MRR per node") == f"{run.test['mrr_per_node']:.4f}"

    # An arrow ends every line at its target, and is drawn.
    trace = page.evaluate(
        "(({x, y, mode, marker}) => ({x, y, mode, angle: marker.angleref, size: marker.size}))"
        "(document.getElementById('graph-plot').data[0])"
    )
    assert (trace["mode"], trace["angle"]) == ("lines+markers", "previous")
    np.testing.assert_allclose(trace["x"][1::3], drawn["x"][drawn["links"][1]], atol=1e-6)
    np.testing.assert_allclose(trace["y"][0::3], drawn["y"][drawn["links"][0]], atol=1e-6)
    assert all(size > 0 for size in trace["size"][1::3])
    assert not any(trace["size"][0::3])
    assert page.locator("#graph-plot .scatterlayer .trace").first.locator("path.point").count() >= len(shown)
    assert "Arrows go from source to target" in text(page, "#graph-caption")

    # Whom a node will link to, who will link to it, and whom it is linked with.
    node = summary["runs"][0]["predictions"][0]["source"]
    open_node(page, node)
    place = graph.names.index(node)
    others = [v for v in range(graph.num_nodes) if v != place]
    for table, back in (("partners-table", False), ("partners-in-table", True)):
        pairs = [(v, place) if back else (place, v) for v in others]
        pairs = [(u, v) for u, v in pairs if (names[u], names[v]) not in arcs]
        scores = run.score(np.array(pairs).T)
        best = np.argsort(-scores, kind="stable")[:5]
        wanted = [names[pairs[i][0 if back else 1]] for i in best]
        rows = cells(page, table)
        assert [row[0] for row in rows] == wanted
        assert [float(row[2]) for row in rows] == pytest.approx(scores[best], abs=1e-4)
    assert text(page, "#partners-title") == "Whom it will link to"
    assert text(page, "#partners-in-title") == "Who will link to it"
    items = page.locator("#neighbours li").all_inner_texts()
    linked = [("→ " + v) if u == node else ("← " + u) for u, v in arcs if node in (u, v)]
    assert sorted(item.removesuffix(" (held out)") for item in items) == sorted(linked)

    # Predictions are ordered, and every link of a path points where the graph's does.
    assert "from source to target" in text(page, "#predictions-note")
    rows = cells(page, "predictions-table")
    assert not {(row[1], row[2]) for row in rows} & arcs
    for row in rows:
        assert ("linked the other way" in row) == ((row[2], row[1]) in arcs)
    steps = 0
    for place, row in enumerate(rows[:8]):
        page.locator("#predictions-table tbody tr").nth(place).get_by_text("Why").click()
        assert text(page, "#why-name") == f"Why {row[1]} → {row[2]}"
        for line in page.locator("#why-facts li").all_inner_texts():
            if not line.startswith("Shortest path: "):
                continue
            words = line.removeprefix("Shortest path: ").split(" ")
            for u, way, v in zip(words[::2], words[1::2], words[2::2], strict=False):
                assert way == {(1, 0): "→", (0, 1): "←", (1, 1): "↔"}[((u, v) in arcs, (v, u) in arcs)]
                steps += 1
    assert steps


def test_a_two_sided_report_names_and_shows_the_sides(show: Open, tmp_path: Path) -> None:
    graph = watched()
    run = psgnn.load(train(graph, tmp_path / "run"))
    summary = summarise([tmp_path / "run"], top=30)
    write_page(summary, tmp_path / "page.html")
    page = show(tmp_path / "page.html")
    assert card(page, "read as") == "undirected, two-sided: 30 person and 20 film"
    assert card(page, "test MRR per node") == f"{run.test['mrr_per_node']:.4f}"
    wanted = ["square"] * 20 + ["circle"] * 30
    symbols = "document.getElementById('{}').data.find((t) => t.mode === 'markers').marker.symbol"
    for colour in ("coverage", "community", "side"):
        page.select_option("#colour", colour)
        for plot in ("graph-plot", "map-plot"):
            assert page.evaluate(symbols.format(plot)) == wanted
    assert len(set(colours(page)[:20])) == len(set(colours(page)[20:])) == 1
    assert {"person (30 nodes)", "film (20 nodes)"} <= set(page.locator("#legend li span").all_inner_texts())

    heads = page.locator("#predictions-table th").all_inner_texts()
    assert heads[1:3] == ["person", "film"]
    assert "common neighbours" not in heads  # two nodes of two sides have none
    rows = cells(page, "predictions-table")
    assert all(row[1].startswith("person ") and row[2].startswith("film ") for row in rows)
    assert "paths of three links" in rows[0][heads.index("because")]
    for name, other in (("film 3", "person "), ("person 3", "film ")):
        open_node(page, name)
        assert text(page, "#node-note").startswith(f"{name.split()[0]}, ")
        found = cells(page, "partners-table")
        assert found
        assert all(row[0].startswith(other) for row in found)
        assert not page.is_visible("#partners-in")
        near = page.locator("#neighbours li").all_inner_texts()
        assert near
        assert all(each.startswith(other) for each in near)
    page.locator("#predictions-table tbody button", has_text="Why").first.click()
    parts = page.evaluate("Array.from(document.getElementById('why-plot').data[0].y)")
    assert "sides" in parts
    assert "direction" not in parts
