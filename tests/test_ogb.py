"""ogbl-collab, ogbl-ppa and ogbl-citation2: small files of the form that OGB publishes."""

from __future__ import annotations

import gzip
import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from psgnn.datasets import load_dataset
from psgnn.errors import DataError
from psgnn.models import build_model
from psgnn.tasks import OfficialLinks, link_task
from psgnn.training import fit

Parts = dict[str, dict[str, Any]]

PPA: Parts = {
    "train": {"edge": np.array([[0, 1], [1, 2], [2, 3], [3, 0], [4, 5]])},
    "valid": {"edge": np.array([[0, 2]]), "edge_neg": np.array([[0, 5], [1, 5]])},
    "test": {"edge": np.array([[4, 3]]), "edge_neg": np.array([[2, 5], [5, 3]])},
}
COLLAB: Parts = {
    "train": {
        "edge": np.array([[0, 1], [1, 0], [2, 3], [3, 3]]),
        "weight": np.array([1, 2, 1, 1]),
        "year": np.array([2001, 2005, 2010, 2011]),
    },
    "valid": {"edge": np.array([[0, 1], [1, 2]]), "weight": np.array([1, 1]), "edge_neg": np.array([[0, 5]])},
    "test": {"edge": np.array([[2, 1], [3, 4], [4, 3]]), "edge_neg": np.array([[1, 5]])},
}
CITATION: Parts = {
    "train": {"source_node": np.array([0, 1, 2, 3]), "target_node": np.array([1, 0, 3, 4])},
    "valid": {
        "source_node": np.array([0]),
        "target_node": np.array([2]),
        "target_node_neg": np.array([[3, 4, 5]]),
    },
    "test": {
        "source_node": np.array([5, 4]),
        "target_node": np.array([0, 1]),
        "target_node_neg": np.array([[1, 2, 3], [0, 2, 5]]),
    },
}


def write(root: Path, name: str, split: str, parts: Parts, *, old: bool = False) -> None:
    folder = root / f"ogbl-{name}"
    (folder / "split" / split).mkdir(parents=True, exist_ok=True)
    (folder / "raw").mkdir(exist_ok=True)
    (folder / "raw" / "num-node-list.csv.gz").write_bytes(gzip.compress(b"6\n"))
    for part, arrays in parts.items():
        torch.save(arrays, folder / "split" / split / f"{part}.pt", _use_new_zipfile_serialization=not old)


def pairs(found: np.ndarray) -> list[tuple[int, ...]]:
    return [tuple(pair) for pair in found.T.tolist()]


@pytest.mark.parametrize("old", [True, False])  # both forms of files that torch has written
def test_ppa_is_what_its_files_say(old: bool, tmp_path: Path) -> None:
    write(tmp_path, "ppa", "throughput", PPA, old=old)
    [graph] = load_dataset("ogbl-ppa", tmp_path)
    assert graph.num_nodes == 6
    assert set(pairs(graph.edges)) == {(0, 1), (1, 2), (2, 3), (0, 3), (4, 5)}
    task = link_task(graph, headline="hits@100")
    assert isinstance(task, OfficialLinks)
    assert pairs(task.test.pairs) == [(3, 4), (2, 5), (3, 5)]
    run = fit(build_model("psgnn", task, members=1, hidden=4), task, epochs=2)
    assert 0 <= run.test["hits@100"] <= 1


def test_collab_has_weights_and_years_and_asks_for_new_links_alone(tmp_path: Path) -> None:
    write(tmp_path, "collab", "time", COLLAB)
    features = np.arange(6 * 128).reshape(6, 128)
    (tmp_path / "ogbl-collab/raw/node-feat.csv.gz").write_bytes(
        gzip.compress("\n".join(",".join(map(str, line)) for line in features.tolist()).encode())
    )
    [graph] = load_dataset("ogbl-collab", tmp_path)
    assert pairs(graph.edges) == [(0, 1), (2, 3)]
    assert graph.strengths is not None
    assert graph.times is not None
    assert graph.last_times is not None
    assert graph.x is not None
    assert graph.strengths.tolist() == [3, 1]
    assert (graph.times.tolist(), graph.last_times.tolist()) == ([2001, 2010], [2005, 2010])
    assert np.array_equal(graph.x, features)
    assert pairs(graph.split["valid_edge"]) == [(1, 2)]  # 0-1 is a training link
    assert pairs(graph.split["test_edge"]) == [(3, 4)]  # 2-1 validates, 4-3 is there twice
    assert link_task(graph, headline="hits@50").test.labels.sum() == 1


def test_citations_are_directed_and_have_negatives_of_their_own(tmp_path: Path) -> None:
    write(tmp_path, "citation2", "time", CITATION)
    [graph] = load_dataset("ogbl-citation2", tmp_path)
    assert graph.directed
    assert pairs(graph.edges) == [(0, 1), (1, 0), (2, 3), (3, 4)]
    task = link_task(graph)
    assert (task.headline, task.test.own_negatives) == ("mrr", 3)
    assert pairs(task.test.pairs[:, task.test.labels == 1]) == [(4, 1), (5, 0)]
    assert pairs(task.test.pairs[:, 2:5]) == [(4, 0), (4, 2), (4, 5)]


class Touch:
    """A pickle that writes a file where it is loaded as pickles are."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> Any:
        return os.mkdir, (str(self.path),)


@pytest.mark.parametrize("old", [True, False])
def test_nothing_in_a_file_is_run(old: bool, tmp_path: Path) -> None:
    write(tmp_path, "ppa", "throughput", {**PPA, "valid": {"edge": Touch(tmp_path / "made")}}, old=old)
    with pytest.raises(
        DataError, match=r"the valid part of ogbl-ppa is not a file .* which is not an array of NumPy"
    ):
        load_dataset("ogbl-ppa", tmp_path)
    assert not (tmp_path / "made").exists()


def test_files_that_are_not_of_this_form_are_refused(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="it is not downloaded, since no checksum of it is known here"):
        load_dataset("ogbl-ppa", tmp_path)
    edge = PPA["valid"]["edge"]
    for wrong, reason in (
        ({"edge": torch.ones(2, 2)}, "a tensor of torch|not an array of NumPy"),
        ({"edge": edge + 9, "edge_neg": edge}, "edge of ogbl-ppa names node 11"),
        ({"edge": edge}, "edge_neg of ogbl-ppa is missing"),
        ({"edge": edge.astype(float), "edge_neg": edge}, "edge of ogbl-ppa is missing, or has float64"),
        ({"edge": [1, 2]}, "a dict of arrays expected"),
    ):
        write(tmp_path, "ppa", "throughput", {**PPA, "valid": wrong})
        with pytest.raises(DataError, match=reason):
            load_dataset("ogbl-ppa", tmp_path)
    (tmp_path / "ogbl-ppa/split/throughput/valid.pt").write_bytes(b"something else")
    with pytest.raises(DataError, match="the valid part of ogbl-ppa is not a file of this benchmark"):
        load_dataset("ogbl-ppa", tmp_path)
