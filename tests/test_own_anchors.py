"""Anchors that a person names: in models, runs and ready-made weights."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import networkx as nx
import numpy as np
import polars as pl
import pytest

import psgnn
import psgnn.training._fit as training
from conftest import Command
from psgnn.errors import InputError
from psgnn.graph import Graph
from psgnn.models import build_model
from psgnn.models._config import make_config
from psgnn.report import summarise
from psgnn.tasks import LinkPrediction
from psgnn.training import Run, fit, load

# Names that a file of settings has to escape, and one beyond the first 65,536 signs.
NAMES = ["ada", 'say "hi"', "back\\slash", "tab\tand\x7f", "\N{GRINNING FACE}", *(f"n{v}" for v in range(31))]
OWN = NAMES[:5]


def village() -> Graph:
    edges = np.array(list(nx.connected_caveman_graph(6, 6).edges)).T
    return Graph.from_edges(edges, names=NAMES)


def train(anchors: list[Any], out: Path | None = None, name: str = "psgnn", **options: Any) -> Run:
    task = LinkPrediction(village())
    return fit(build_model(name, task, anchors=anchors, **options), task, epochs=4, out=out)


@pytest.mark.parametrize(("name", "preset"), [("psgnn", "best"), ("psgnn", "paper"), ("agnn", "best")])
def test_a_run_has_the_anchors_that_were_named(name: str, preset: str, tmp_path: Path) -> None:
    result = train(OWN, tmp_path / "run", name, preset=preset)
    assert result.anchors == [[0, 1, 2, 3, 4]]
    loaded = load(tmp_path / "run")
    assert loaded.anchors == result.anchors
    assert loaded.model.config.anchors == OWN
    assert np.array_equal(loaded.embed(), result.embed())
    record = json.loads((tmp_path / "run" / "record.json").read_text())
    assert (record["anchors"], record["config"]["anchors"]) == ([[0, 1, 2, 3, 4]], OWN)


def test_anchors_are_found_by_name_in_another_graph(tmp_path: Path) -> None:
    train(["n3", "ada"], tmp_path / "run")
    turned = Graph.from_edges(35 - village().edges, names=NAMES[::-1])
    there = load(tmp_path / "run").on([turned])
    assert there.anchors == [[NAMES[::-1].index("n3"), 35]]
    assert np.allclose(there.embed()[::-1], load(tmp_path / "run").on([village()]).embed(), atol=1e-4)
    with pytest.raises(InputError, match="the graph has no node 'n3'"):
        load(tmp_path / "run").on([Graph.from_edges(village().edges, names=[f"x{v}" for v in range(36)])])


def test_a_report_says_how_to_train_with_named_anchors(tmp_path: Path) -> None:
    train(["n3", "ada"], tmp_path / "run")
    command = summarise([tmp_path / "run"])["runs"][0]["command"]["text"]
    assert "--anchor-file ANCHORS" in command
    assert "--option" not in command


def test_ids_name_anchors_too() -> None:
    assert train([7, "ada"]).model.config.anchors == [NAMES[7], "ada"]


def test_an_interrupted_run_resumes_with_its_anchors(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    epoch = training._Trainer._epoch

    def interrupt(self: Any, number: int) -> float:
        if number == 2:
            raise KeyboardInterrupt
        return epoch(self, number)

    with monkeypatch.context() as patch:
        patch.setattr(training._Trainer, "_epoch", interrupt)
        with pytest.raises(KeyboardInterrupt):
            train(OWN, tmp_path / "run")
    with pytest.raises(InputError, match="interrupted run of anchors"):
        train(OWN[:3], tmp_path / "run")
    resumed = train(OWN, tmp_path / "run")
    assert np.array_equal(resumed.embed(), train(OWN).embed())


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"anchors": ["adda"]}, "the graph has no node 'adda'; did you mean 'ada'?"),
        ({"anchors": ["ada", "n1", "ada"]}, "the list of anchors names 'ada' twice"),
        ({"anchors": []}, "the list of anchors has no nodes"),
        ({"anchors": [36]}, "there is no node 36"),
        ({"anchors": ["ada"], "picker": "degree"}, "anchors are named or chosen by picker=degree"),
        ({"anchors": ["ada"], "name": "gcn"}, "model gcn has no anchors"),
        ({"picker": "named"}, "picker=named goes with the names of anchors"),
        ({"picker": "named", "anchors": 3}, "picker=named goes with the names of anchors"),
    ],
)
def test_anchors_that_are_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message.replace("?", r"\?")):
        build_model(options.pop("name", "psgnn"), LinkPrediction(village()), **options)


def test_names_go_with_one_graph() -> None:
    with pytest.raises(InputError, match="anchors by name go with one graph, found 2"):
        build_model("psgnn", LinkPrediction([village(), village()]), anchors=["ada"])
    with pytest.raises(InputError, match="anchors by name go with one graph, found 2"):
        psgnn.pretrained().on([village(), village()], anchors=["ada"])
    with pytest.raises(InputError, match="option anchors"):
        make_config("psgnn", "link", 1, anchors=[3])


def test_ready_made_weights_are_seen_from_named_anchors() -> None:
    graph, weights = village(), psgnn.pretrained()
    scorer = weights.on(graph, anchors=OWN)
    assert scorer.anchors == [[0, 1, 2, 3, 4]]
    assert np.array_equal(scorer.embed(), weights.on(graph, anchors=range(5)).embed())
    pairs = np.array([[0, 3, 9], [20, 30, 12]])
    assert not np.allclose(scorer.score(pairs), weights.on(graph, anchors=["n9"]).score(pairs))
    assert not np.allclose(scorer.score(pairs), weights.on(graph).score(pairs))
    rest, _ = next(weights.on(nx_graph(), anchors=["3", "5"]).rehearsals())
    assert rest.anchors == [[3, 5]]


def nx_graph() -> Graph:
    return psgnn.read_graph(nx.barabasi_albert_graph(120, 4, seed=0))


def test_the_commands_take_a_file_of_anchors(run: Command) -> None:
    nx.write_edgelist(nx.connected_caveman_graph(6, 6), "g.txt", data=False)
    Path("own.txt").write_text("anchor\n7\n30\n12\n")
    train_words = ("train", "g.txt", "--anchor-file", "own.txt", "--epochs", "4", "--out", "run", "--json")
    code, out, _ = run(*train_words)
    assert code == 0
    assert json.loads(out)["anchors"] == [[7, 30, 12]]
    assert load("run").model.config.anchors == ["7", "30", "12"]
    assert run("embed", "g.txt", "--anchor-file", "own.txt", "--out", "h.parquet")[0] == 0
    expected = psgnn.pretrained().on(psgnn.read_graph("g.txt"), anchors=["7", "30", "12"]).embed()
    assert np.array_equal(pl.read_parquet("h.parquet")["embedding"].to_numpy(), expected)
    for words, message in (
        (
            ("embed", "run", "--anchor-file", "own.txt", "--out", "x.csv"),
            "the run in run has anchors of its own",
        ),
        (("embed", "g.txt", "--anchor-file", "none.txt", "--out", "x.csv"), "none.txt does not exist"),
        (
            ("train", "g.txt", "--anchor-file", "own.txt", "--anchors", "3"),
            "either --anchors or --anchor-file",
        ),
        (("train", "bio-modules", "--anchor-file", "own.txt"), "--anchor-file goes with one graph"),
    ):
        code, out, err = run(*words)
        assert (code, out) == (2, "")
        assert message in err
        assert not Path("x.csv").exists()
