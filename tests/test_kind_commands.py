"""Graphs of every kind on the command line: trained, kept, asked about, and read again the same way."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

import psgnn
from conftest import Command
from psgnn.errors import InputError
from psgnn.models._view import pack
from psgnn.training._runs import read_tensors

HOW = ("--sides", "--time", "day", "--weight", "amount", "--weight-is", "strength")
SHORT = ("--epochs", "2", "--quiet")


def shop(path: Path, customers: int = 30) -> Path:
    """Purchases of customers in four groups, whose ids are those of products too."""
    rng = random.Random(1)
    rows = []
    for customer in range(customers):
        for _ in range(8):
            group = customer % 4 if rng.random() < 0.8 else rng.randrange(4)
            day = f"2024-{rng.randint(1, 12):02}-{rng.randint(1, 28):02}"
            rows.append(f"{customer},{group * 5 + rng.randrange(5)},{day},{rng.randint(1, 5)}")
    path.write_text("\n".join(["customer,product,day,amount", *rows, ""]))
    return path


@pytest.fixture
def trained(run: Command, tmp_path: Path) -> Path:
    shop(tmp_path / "shop.csv")
    assert run("train", "shop.csv", *HOW, *SHORT, "--out", "kept")[0] == 0
    return tmp_path / "kept"


def test_a_run_keeps_what_edges_carry(trained: Path) -> None:
    graph = psgnn.read_graph("shop.csv", sides=True, time="day", weight="amount", weight_is="strength")
    result = psgnn.load(trained)
    kinds, seen = result.batch.kinds, result.view.union.kinds
    assert kinds is not None
    assert seen is not None
    assert np.array_equal(kinds.edges, graph.edges)
    for name in ("strengths", "times", "last_times"):
        assert np.array_equal(getattr(kinds, name), getattr(graph, name))
    assert np.array_equal(kinds.sides, graph.sides)
    assert kinds.side_names == ("customer", "product")
    assert seen.times.max() < kinds.times.max()
    assert np.isin(result.hidden.T @ [1000, 1], kinds.edges.T @ [1000, 1]).all()


def test_another_version_is_read_as_the_run_was(trained: Path, run: Command) -> None:
    record = json.loads((trained / "record.json").read_text())
    assert record["read"] == {
        "weight": "amount", "weight_is": "strength", "time": "day", "sides": True
    }  # fmt: skip
    shop(Path("later.csv"), customers=34)
    code, out, err = run(
        "predict", "kept", "--graph", "later.csv", "--pairs", write("p.csv", "1,2\n33,1\n"), "--json"
    )
    assert code == 0, err
    found = {(pair["source"], pair["target"]) for pair in json.loads(out)["pairs"]}
    assert found == {("customer:1", "product:2"), ("customer:33", "product:1")} or found == {
        ("customer:1", "product:2"), ("33", "product:1")
    }  # fmt: skip


@pytest.mark.parametrize(
    "read",
    [
        {"query": "drop table sales"},
        {"until": "2024"},
        {"weight": 5},
        {"sides": "yes"},
        {"between": ["a"]},
        {"encoding": [{"column": "age", "mean": 1.0, "sd": 0.0}]},
        ["weight"],
    ],
)
def test_what_a_record_says_about_reading_is_checked(trained: Path, read: Any) -> None:
    record = json.loads((trained / "record.json").read_text())
    (trained / "record.json").write_text(json.dumps({**record, "read": read}))
    with pytest.raises(InputError, match=r"record.json is damaged"):
        psgnn.load(trained)


def test_a_run_reads_no_further_than_the_graph_that_is_given(run: Command, tmp_path: Path) -> None:
    """A date belongs to one version of a graph, and datasets are read as they are."""
    shop(tmp_path / "shop.csv")
    assert run("train", "shop.csv", *HOW, "--until", "2024-09", *SHORT, "--out", "kept")[0] == 0
    run("predict", "kept", "--graph", "shop.csv", "--for", "customer:3")
    assert "until" not in json.loads(Path("kept/record.json").read_text())["read"]
    code, _, err = run("predict", "kept", "--graph", "grid", "--set", "rows=4", "--top", "1")
    assert (code, err.count("\n")) == (2, 1)
    assert "was trained on graphs with sides, strengths, times, found a plain one" in err


def test_nodes_of_two_sides_are_asked_about_as_such(trained: Path, run: Command) -> None:
    code, out, _ = run("predict", "kept", "--for", "customer:3", "--json")
    assert code == 0
    assert all(is_product(pair["target"]) for pair in json.loads(out)["pairs"])
    for arguments in (
        ("predict", "kept", "--pairs", write("p.csv", "customer:1,customer:2\n")),
        ("explain", "kept", "product:1", "product:2"),
        ("evaluate", "kept", "--links", write("l.csv", "customer:1,customer:2\n")),
    ):
        code, out, err = run(*arguments)
        assert (code, out, err.count("\n")) == (2, "", 1)
        assert "is not a pair of the two sides" in err
    code, _, err = run("predict", "kept", "--for", "3")
    assert (code, "did you mean 'customer:3' or 'product:3'?" in err) == (2, True)


def test_explain_says_which_way_links_go(run: Command) -> None:
    """A way around, in which every third link goes against the others."""
    ends = [(v, v + 1) if v % 3 else (v + 1, v) for v in range(19)]
    write("way.csv", "source,target\n" + "".join(f"n{u},n{v}\n" for u, v in ends))
    code, out, err = run("explain", "way.csv", "n1", "n5", "--directed")
    assert code == 0
    assert "n1 -> n5: score" in out + err
    assert "path: n1 -> n2 -> n3 <- n4 -> n5\n" in out + err
    code, out, err = run("explain", "way.csv", "n1", "n0", "--directed")
    assert "n1 -> n0: score" in out + err
    assert "they are linked\n" in out + err
    code, out, err = run("explain", "way.csv", "n0", "n1", "--directed")
    assert "linked the other way\n" in out + err


@pytest.mark.parametrize(
    "damage",
    [
        {"whole.edges": np.array([[0, 0], [1, 1]])},
        {"whole.edges": np.array([[0], [10**6]])},
        {"seen.edges": np.array([[0], [40]])},
        {"seen.strengths": np.array([-1.0])},
        {"whole.sides": np.full(7, 5, np.int8)},
        {"whole.times": np.array([np.nan])},
    ],
)
def test_what_a_run_says_about_edges_is_checked(trained: Path, damage: dict[str, Any]) -> None:
    import torch

    tensors, about = read_tensors(trained / "graph.safetensors")
    tensors |= {name: torch.tensor(array) for name, array in damage.items()}
    (trained / "graph.safetensors").write_bytes(pack(tensors, about))
    with pytest.raises(InputError, match="does not hold a graph of psgnn"):
        psgnn.load(trained)


def test_a_split_of_your_own(run: Command, tmp_path: Path) -> None:
    lines = shop(tmp_path / "shop.csv").read_text().splitlines()
    pairs = list(dict.fromkeys(tuple(line.split(",")[:2]) for line in lines[1:]))
    for name, part in (("graph.csv", pairs[20:]), ("test.csv", pairs[:10]), ("val.csv", pairs[10:20])):
        (tmp_path / name).write_text("\n".join(["customer,product", *map(",".join, part), ""]))
    nodes = [f"customer:{i}" for i in range(20)] + [str(i) for i in range(20, 30)]
    write("nodes.csv", "\n".join(["name", *nodes, *(f"product:{i}" for i in range(20)), ""]))
    own = ("--val-links", "val.csv", "--test-links", "test.csv")
    asked = ("graph.csv", "--sides", "--nodes", "nodes.csv", *own)
    code, out, err = run("train", *asked, *SHORT, "--folds", "4", "--out", "kept", "--json")
    assert code == 0, err
    code, out, err = run("compare", *asked, "--models", "none", "--seeds", "1", "--json")
    assert code == 0, err
    assert all(0 <= row["auc_mean"] <= 1 for row in json.loads(out)["rows"])
    write("seen.csv", "customer,product\n" + ",".join(pairs[25]) + "\n")
    code, out, err = run("train", "graph.csv", "--sides", "--test-links", "seen.csv", *SHORT)
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert "is in test_links and the training edges" in err
    code, out, err = run("train", "graph.csv", "--sides", "--val-links", "val.csv", *SHORT)
    assert (code, "val_links goes with test_links" in err) == (2, True)
    code, out, err = run("train", "graph.csv", "--task", "pair", "--folds", "3")
    assert (code, "--folds goes with --task link" in err) == (2, True)


def test_several_files_are_several_graphs(run: Command, tmp_path: Path) -> None:
    for name, seed in (("a.csv", 1), ("b.csv", 2)):
        rng = random.Random(seed)
        rows = {(u, v) for u in range(20) for v in range(u) if rng.random() < 0.3}
        write(name, "\n".join(["u,v", *(f"n{u},n{v}" for u, v in sorted(rows)), ""]))
    code, out, err = run("train", "a.csv", "b.csv", *SHORT, "--out", "kept", "--json")
    assert code == 0, err
    assert json.loads(out)["graph"] == "a.csv b.csv"
    assert psgnn.load("kept").batch.num_graphs == 2
    code, out, err = run("predict", "a.csv", "b.csv", "--top", "5", "--json")
    assert code == 0, err
    assert {pair["graph"] for pair in json.loads(out)["pairs"]} <= {0, 1}
    code, _, err = run("predict", "kept", "a.csv", "--top", "5")
    assert (code, "give one run, or several graphs" in err) == (2, True)


def test_a_directed_graph_is_asked_from_source_to_target(run: Command, tmp_path: Path) -> None:
    rng = random.Random(5)
    rows = {(u, (u + step) % 40) for u in range(40) for step in (1, 2, 3) if rng.random() < 0.9}
    write("follows.csv", "\n".join(["who,whom", *(f"n{u:02},n{v:02}" for u, v in sorted(rows)), ""]))
    assert run("train", "follows.csv", "--directed", *SHORT, "--out", "kept")[0] == 0
    result = psgnn.load("kept")
    names = result.node_names[0]
    assert {(names[u], names[v]) for u, v in result.batch.kinds.edges.T.tolist()} == {
        (f"n{u:02}", f"n{v:02}") for u, v in rows
    }
    code, out, err = run("predict", "kept", "--for", "n05", "--top", "39", "--json")
    assert code == 0, err
    partners = {pair["target"] for pair in json.loads(out)["pairs"]}
    known = {f"n{v:02}" for u, v in rows if u == 5}
    assert partners == {f"n{v:02}" for v in range(40) if v != 5} - known


def test_passwords_are_shown_nowhere(run: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    frame = pl.read_csv(shop(tmp_path / "shop.csv"))
    monkeypatch.setattr(pl, "read_database_uri", lambda *_, **__: frame)
    address = "postgresql://ann:secret@host/shop"
    asked = (address, "--query", "select 1", "--sides")
    for arguments in (("anchors", *asked, "--json"), ("train", *asked, *SHORT, "--out", "kept", "--json")):
        code, out, err = run(*arguments)
        assert code == 0, err
        assert "postgresql://host/shop" in out
        assert "secret" not in out + err
    assert "secret" not in Path("kept/record.json").read_text()


def write(name: str, text: str) -> str:
    Path(name).write_text(text)
    return name


def is_product(name: str) -> bool:
    return name.startswith("product:")
