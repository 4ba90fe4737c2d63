"""The goals of learned anchors: what the records of an experiment say about each of them."""

from __future__ import annotations

from pathlib import Path

import pytest

from psgnn.errors import InputError
from psgnn_lab.manifest import Manifest, load_manifest
from psgnn_lab.plan import plan
from psgnn_lab.records import write_record
from psgnn_lab.tables import markdown

METHODS = """
title = "Learned anchors of a test"
page = "page.md"
first_seed = 100

[methods.learned]
kind = "model"
of = "psgnn"
preset = "learned"
title = "learned"
seeds = 4

[methods.otherwise]
pickers = ["degree", "random-search"]
seeds = 4

[methods.sets]
kind = "model"
of = "pgnn"
seeds = 4

[methods.some]
pickers = ["boosted", "degree"]
anchors = [2, 16]
seeds = 4

[[rows]]
name = "caves"
title = "Caves"
dataset = "communities"
dataset_options = {communities = 4, size = 5}
task = "pair"

[[rows]]
name = "squares"
title = "Squares"
dataset = "grid"
dataset_options = {rows = 5, cols = 5}
task = "link"
"""
CHOICE = """
[[sections]]
name = "choice"
title = "Choice"
layout = "matrix"
rows = ["caves", "squares"]
methods = ["learned", "otherwise", "sets"]

[[sections]]
name = "numbers"
title = "Numbers"
layout = "numbers"
rows = ["caves"]
methods = ["learned", "otherwise", "some"]

[goals]
main = "learned"
section = "choice"
rules = ["otherwise"]
sets = ["sets"]
tables = ["told"]
published = ["sets"]
numbers = "numbers"
"""
TOLD = """
[[sections]]
name = "told"
title = "Told"
layout = "matrix"
rows = ["caves", "squares"]
methods = ["learned", "sets"]

[sections.published]
sets = [0.85, 0.9]
"""


def filled(folder: Path, values: dict[tuple[str, str], list[float]]) -> Manifest:
    """A manifest with records of these AUCs by row and method, one a seed; a run takes 3 s, 2 of them to choose."""
    (folder / "small.toml").write_text(METHODS + CHOICE)
    (folder / "told.toml").write_text(METHODS + TOLD)
    manifest = load_manifest("small", folder)
    for (row, method), aucs in values.items():
        of_method = [run for run in plan(manifest, only=[row]) if run.method.name == method]
        for run, auc in zip(of_method, aucs, strict=True):
            measured = {"test": {"auc": auc}, "val": None, "seconds": 3.0, "picking_seconds": 2.0}
            write_record(manifest.records, run, measured)
    return manifest


@pytest.fixture
def page(tmp_path: Path) -> str:
    values = {
        ("caves", "learned"): [0.9, 0.91, 0.9, 0.91],
        ("caves", "learned-degree"): [0.8, 0.8, 0.81, 0.81],
        ("caves", "learned-random-search"): [0.7, 0.7, 0.7, 0.71],
        ("caves", "sets"): [0.6, 0.6, 0.6, 0.6],
        ("squares", "learned"): [0.8, 0.81, 0.8, 0.8],
        ("squares", "learned-degree"): [0.81, 0.81, 0.82, 0.8],
        ("squares", "sets"): [0.9, 0.9, 0.9, 0.9],
        ("caves", "learned-boosted-2"): [0.7, 0.7, 0.7, 0.7],
        ("caves", "learned-degree-16"): [0.9, 0.9, 0.9, 0.9],
    }
    return markdown(filled(tmp_path, values))


def test_every_goal_says_which_rows_reach_it(page: str) -> None:
    rules, sets, told, numbers, cost = page.partition("## Goals\n\n")[2].strip().splitlines()
    assert "on 1 of 2 rows, not on Squares (degree, -0.0075" in rules
    assert "significantly above (p < 0.05) on 1: Caves (degree, +0.1000" in rules
    assert "significantly below on 0." in rules
    assert "on 1 of 2 rows, not on Squares (sets, -0.0975" in sets
    assert "in 1 of 2 cells" in told
    assert "Squares (0.802, published 0.900)" in told
    assert "Caves 1 of 2" in numbers  # 2 against log N is worse, log N against 16 is better
    assert "on 0 of the 2 rows" in cost
    assert "Caves (2.00 s, the rest 1.00 s)" in cost


def test_numbers_stand_beside_one_another(page: str) -> None:
    assert "| anchors | 2 | log N | 16 |" in page
    line = next(line for line in page.splitlines() if line.startswith("| degree | - | [0.8050"))
    assert line.endswith("learned-degree-16.json) |")


def test_without_records_the_goals_are_open(tmp_path: Path) -> None:
    page = markdown(filled(tmp_path, {}))
    assert "on 0 of 0 rows" in page
    assert "2 cells were not run" in page
    assert "nothing yet" in page


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('section = "choice"', 'section = "choise"', "unknown section of the goals 'choise'"),
        ('sets = ["sets"]', 'sets = ["sats"]', "unknown method of the goals 'sats'"),
    ],
)
def test_goals_of_unknown_names_get_one_line(tmp_path: Path, old: str, new: str, message: str) -> None:
    (tmp_path / "small.toml").write_text(METHODS + CHOICE.replace(old, new))
    with pytest.raises(InputError, match=message):
        load_manifest("small", tmp_path)
