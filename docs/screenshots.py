"""Take the pictures of the report that the README shows, from a run that is trained for them.

python docs/screenshots.py      # needs Chromium (PSGNN_BROWSER names another one) and playwright
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

from PIL import Image
from playwright.sync_api import sync_playwright

ROOT = Path(__file__).resolve().parent.parent
IMAGES = ROOT / "docs" / "images"
MOST_BYTES = 200_000
# What is on each picture: the first and the last element, and what is pressed before.
PICTURES = {
    "report-graph.png": ("#graph-title", "#graph .split", {"#colour": "anchor"}),
    "report-curves.png": ("#training-title", "#rules-caption", {}),
}


def psgnn(*words: str) -> None:
    """Run a command of psgnn."""
    subprocess.run([sys.executable, "-m", "psgnn", *words], check=True, stdout=subprocess.DEVNULL)


def make_report(folder: Path) -> Path:
    """A report of a model with few anchors, which can be seen, on the graph of the guide."""
    words = ("--anchors", "8", "--epochs", "200", "--option", "eval_every=5")
    psgnn("train", str(ROOT / "examples" / "village.csv"), *words, "--out", str(folder / "run"), "--quiet")
    psgnn("report", str(folder / "run"), "--out", str(folder / "report.html"), "--quiet")
    return folder / "report.html"


def take(report: Path) -> None:
    """The pictures, in light mode."""
    browser_path = os.environ.get("PSGNN_BROWSER") or shutil.which("chromium")
    if browser_path is None:
        raise SystemExit("no chromium was found; install it or set PSGNN_BROWSER")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=browser_path, args=["--no-sandbox"])
        page = browser.new_page(viewport={"width": 1100, "height": 900}, color_scheme="light")
        page.goto(report.as_uri())
        page.wait_for_selector("html[data-ready]", timeout=120_000)
        page.add_style_tag(content="nav { position: static !important; }")
        for name, (first, last, choices) in PICTURES.items():
            for selector, value in choices.items():
                page.select_option(selector, value)
            page.fill("#find", "Lale")
            page.press("#find", "Enter")
            page.wait_for_timeout(1000)
            top = page.locator(first).bounding_box()
            bottom = page.locator(last).bounding_box()
            if top is None or bottom is None:
                raise SystemExit(f"{first} or {last} is not on the page")
            scrolled = page.evaluate("window.scrollY")
            height = bottom["y"] + bottom["height"] - top["y"] + 24
            area = {"x": 0.0, "y": top["y"] + scrolled - 12, "width": 1100.0, "height": height}
            page.screenshot(path=IMAGES / name, full_page=True, clip=area)
            shrink(IMAGES / name)
        browser.close()


def shrink(path: Path) -> None:
    """200 colours that lie far apart are enough for text and charts, and rare ones are among them."""
    with Image.open(path) as image:
        few = image.convert("RGB").quantize(200, Image.Quantize.MAXCOVERAGE, dither=Image.Dither.NONE)
    few.save(path, optimize=True)
    if path.stat().st_size > MOST_BYTES:
        raise SystemExit(f"{path} has {path.stat().st_size} bytes, above {MOST_BYTES}")


if __name__ == "__main__":
    with TemporaryDirectory() as folder:
        take(make_report(Path(folder)))
