"""The citation file names the version that the package has."""

from __future__ import annotations

from pathlib import Path

import psgnn

ROOT = Path(__file__).parent.parent


def test_the_citation_is_of_this_version() -> None:
    lines = (ROOT / "CITATION.cff").read_text().splitlines()
    assert f"version: {psgnn.__version__}" in lines
