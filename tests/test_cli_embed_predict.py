"""``psgnn embed``, ``predict`` and ``bench``, and runs that someone else has made."""

from __future__ import annotations

import json
import os
import pickle
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import networkx as nx
import numpy as np
import polars as pl
import pytest
import torch
from safetensors.torch import load_file, save_file

import psgnn
from conftest import Command


def barbell() -> nx.Graph:
    return nx.barbell_graph(8, 2)


def train(folder: Path, graphs: Any, model: str = "psgnn", **options: Any) -> Path:
    task = psgnn.LinkPrediction(graphs, seed=0)
    psgnn.fit(psgnn.build_model(model, task, **options), task, epochs=5, out=folder)
    return folder


@pytest.fixture(scope="session")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run on a graph of the nodes n0..n17; tests copy it."""
    graph = nx.relabel_nodes(barbell(), lambda v: f"n{v}")
    return train(tmp_path_factory.mktemp("run") / "run", [psgnn.read_graph(graph)], anchors=4, hidden=8)


@pytest.fixture
def my_run(finished: Path, tmp_path: Path) -> Path:
    shutil.copytree(finished, tmp_path / "run")
    return tmp_path / "run"


def check_failure(result: tuple[int, str, str], message: str) -> None:
    code, out, err = result
    assert code == 2, err
    assert out == ""
    assert err.startswith("psgnn: error: ")
    assert len(err.splitlines()) == 1, err
    assert re.search(message, err), err


# --- embed


def test_embed_writes_every_node_by_name(run: Command, my_run: Path, tmp_path: Path) -> None:
    h = psgnn.load(my_run).embed()
    code, out, err = run("embed", "run", "-o", "h.parquet")
    assert (code, err) == (0, "")
    assert out == f"18 nodes, {h.shape[1]} numbers each, are in h.parquet\n"
    frame = pl.read_parquet("h.parquet")
    assert set(frame["node"]) == {f"n{v}" for v in range(18)}
    assert frame["node"].to_list() == psgnn.load(my_run).node_names[0]
    assert (frame["embedding"].to_numpy() == h).all()
    code, out, err = run("embed", "run", "--out", "h.npz", "--json")
    document = {"run": "run", "graph": None, "out": "h.npz", "graphs": 1, "nodes": 18}
    assert json.loads(out) == document | {"dimensions": h.shape[1]}
    assert err == ""
    with np.load("h.npz", allow_pickle=False) as arrays:
        assert (arrays["embeddings"] == h).all()


def test_embed_takes_another_graph(run: Command, my_run: Path, tmp_path: Path) -> None:
    (tmp_path / "other.csv").write_text("".join(f"x{u},x{v}\n" for u, v in nx.cycle_graph(11).edges))
    code, out, err = run("embed", "run", "--graph", "other.csv", "-o", "h.csv")
    assert code == 0
    assert "11 nodes, 11 edges" in err
    frame = pl.read_csv("h.csv")
    assert set(frame["node"]) == {f"x{v}" for v in range(11)}
    expected = psgnn.load(my_run).on([psgnn.read_graph("other.csv")]).embed()
    assert frame.drop("node").to_numpy() == pytest.approx(expected, rel=1e-5)


def test_graphs_keep_their_numbers_where_some_were_left_out(run: Command, tmp_path: Path) -> None:
    """The first graph has too few links to be split, so nothing is known of it."""
    graphs = [psgnn.read_graph(graph) for graph in (nx.path_graph(2), barbell(), nx.path_graph(3), barbell())]
    train(tmp_path / "run", graphs, anchors=2, hidden=8)
    result = psgnn.load(tmp_path / "run")
    assert result.numbers == (1, 3)
    assert [len(names) for names in result.names_by_number] == [0, 18, 0, 18]
    assert run("embed", "run", "-o", "e.parquet")[0] == 0
    assert pl.read_parquet("e.parquet")["graph"].to_list() == [1] * 18 + [3] * 18
    Path("pairs.csv").write_text("3:0,3:9\n1:2,1:11\n")
    assert run("predict", "run", "--pairs", "pairs.csv", "-o", "p.csv")[0] == 0
    assert pl.read_csv("p.csv")["graph"].to_list() == [3, 1]
    Path("pairs.csv").write_text("0:0,0:1\n")
    check_failure(run("predict", "run", "--pairs", "pairs.csv"), "no node '0:0'")
    assert result.on(graphs[1:2]).names_by_number == [[str(v) for v in range(18)]]
    record = json.loads((tmp_path / "run" / "record.json").read_text())
    (tmp_path / "run" / "record.json").write_text(json.dumps({**record, "graph_numbers": [3, 1]}))
    check_failure(run("embed", "run", "-o", "x.csv"), "the record has no numbers of the graphs")


def test_embed_of_several_graphs_says_which(run: Command, tmp_path: Path) -> None:
    graphs = [psgnn.read_graph(nx.relabel_nodes(barbell(), str)) for _ in range(2)]
    train(tmp_path / "two", graphs, "gcn")
    code, out, err = run("embed", "two", "-o", "h.csv")
    assert code == 0
    assert pl.read_csv("h.csv")["graph"].to_list() == [0] * 18 + [1] * 18
    code, out, err = run("predict", "two", "--top", 500, "--json")
    assert {pair["graph"] for pair in json.loads(out)["pairs"]} == {0, 1}
    (tmp_path / "pairs.csv").write_text("source,target\n0:3,0:17\n1:3,1:17\n")
    code, out, err = run("predict", "two", "--pairs", "pairs.csv", "--json")
    assert [pair["graph"] for pair in json.loads(out)["pairs"]] == [0, 1]
    assert [pair["source"] for pair in json.loads(out)["pairs"]] == ["3", "3"]
    (tmp_path / "across.csv").write_text("source,target\n0:3,0:17\n1:3,0:17\n")
    check_failure(run("predict", "two", "--pairs", "across.csv"), "line 3.*two graphs")
    check_failure(run("predict", "two", "--pairs", "run.csv"), "run.csv")


# --- predict


def test_predict_scores_the_pairs_of_a_file_in_its_order(run: Command, my_run: Path, tmp_path: Path) -> None:
    (tmp_path / "pairs.tsv").write_text("target\tsource\nn3\tn12\n# a comment\nn1\tn2\nn9\tn8\n")
    code, out, err = run("predict", "run", "--pairs", "pairs.tsv", "-o", "scores.parquet")
    assert (code, out) == (0, "3 pairs are in scores.parquet\n")
    assert err == "psgnn: 2 pairs are linked already (n2 and n1), so no link is missing there\n"
    frame = pl.read_parquet("scores.parquet")
    assert frame.columns == ["source", "target", "score", "probability", "expected_precision"]
    assert frame.select("source", "target").rows() == [("n12", "n3"), ("n2", "n1"), ("n8", "n9")]
    result = psgnn.load(my_run)
    place = {name: v for v, name in enumerate(result.node_names[0])}
    pairs = np.array([[place[u], place[v]] for u, v in frame.select("source", "target").rows()]).T
    assert frame["score"].to_list() == pytest.approx(result.score(pairs).tolist())
    assert frame["probability"].null_count() == 3  # too few links to tell
    code, out, err = run("predict", "run", "--pairs", "scores.parquet", "--json")  # and reads what it wrote
    assert [pair["score"] for pair in json.loads(out)["pairs"]] == pytest.approx(frame["score"].to_list())


def test_predict_finds_missing_links(run: Command, my_run: Path) -> None:
    code, out, err = run("predict", "run", "--top", 40, "--json")
    assert (code, err) == (0, "")
    found = json.loads(out)["pairs"]
    linked = {frozenset(map("n{}".format, edge)) for edge in barbell().edges}
    pairs = [frozenset((pair["source"], pair["target"])) for pair in found]
    assert len(set(pairs)) == 40
    assert not linked & set(pairs)
    scores = [pair["score"] for pair in found]
    assert scores == sorted(scores, reverse=True)
    code, out, err = run("predict", "run", "--top", 40)
    assert "the first 20 of 40; --out FILE writes them all" in out
    assert found[0]["source"] in out
    assert out.count("n") > 40


def test_predict_on_another_graph_predicts_its_links(run: Command, my_run: Path, tmp_path: Path) -> None:
    (tmp_path / "other.csv").write_text("".join(f"x{u},x{v}\n" for u, v in nx.cycle_graph(11).edges))
    code, out, err = run("predict", "run", "--graph", "other.csv", "--top", 100, "--json")
    assert code == 0
    assert json.loads(out)["count"] == 11 * 10 // 2 - 11


BAD_PAIRS = {
    "unknown node": ("source,target\nn1,n2\nn1,m17\n", r"line 3 \('n1,m17'\): .*no node 'm17'; did you mean 'n17'"),
    "far from all": ("source,target\nn1,somewhere\n", "line 2.*it has 18 others"),
    "itself": ("source,target\nn1,n2\nn5,n5\n", "line 3.*itself"),
    "one field": ("n1,n2\nn3\n", "line 2"),
    "empty": ("", "empty"),
}  # fmt: skip


@pytest.mark.parametrize("case", BAD_PAIRS)
def test_bad_pairs_get_one_line(run: Command, my_run: Path, tmp_path: Path, case: str) -> None:
    text, message = BAD_PAIRS[case]
    (tmp_path / "pairs.csv").write_text(text)
    check_failure(run("predict", "run", "--pairs", "pairs.csv", "-o", "out.csv"), message)
    assert not (tmp_path / "out.csv").exists()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("predict", "run"), "pass one of --pairs FILE, --top N, or --for NODE"),
        (("predict", "run", "--top", "0"), "--top"),
        (("predict", "run", "--top", "3", "-o", "run/record.json"), "the format is one of"),
        (("predict", "run", "--top", "3", "-o", "old.csv"), "old.csv exists; pass --force"),
        (
            ("predict", "nothing", "--top", "3"),
            "nothing is not the folder of a run, a graph file or a dataset; psgnn train",
        ),
        (("predict", "old.csv", "--top", "3"), "expected two fields"),
        (("predict", "empty", "--top", "3"), "empty is not a finished run"),
        (("embed", "run", "-o", "old.csv"), "old.csv exists; pass --force"),
        (("embed", "run", "-o", "x.docx"), "x.docx"),
        (("embed", "run"), "Missing option '--out'"),
        (("embed", "run", "-o", "x.csv", "--set", "size=3"), "--set goes with --graph"),
        (("embed", "run", "-o", "x.csv", "--graph", "comunities"), "did you mean 'communities'"),
        (
            ("embed", "run", "-o", "x.csv", "--graph", "bio-modules"),
            "trained on 1 features, the graphs have 2",
        ),
    ],
)
def test_bad_options_get_one_line(
    run: Command, my_run: Path, tmp_path: Path, arguments: tuple[str, ...], message: str
) -> None:
    (tmp_path / "old.csv").write_text("old")
    (tmp_path / "empty").mkdir()
    before = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    check_failure(run(*arguments), message)
    assert {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()} == before


def test_force_replaces_what_is_there(run: Command, my_run: Path, tmp_path: Path) -> None:
    (tmp_path / "old.csv").write_text("old")
    assert run("predict", "run", "--top", 3, "-o", "old.csv", "--force")[0] == 0
    assert (
        (tmp_path / "old.csv").read_text().startswith("source,target,score,probability,expected_precision\n")
    )


def test_interrupted_predictions_leave_nothing(
    run: Command, my_run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(*args: object, **kwargs: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("psgnn.graph._exports._write_csv", interrupted)
    assert run("predict", "run", "--top", 3, "-o", "p.csv") == (130, "", "psgnn: error: interrupted\n")
    assert {path.name for path in tmp_path.iterdir()} == {"run"}


# --- pair tasks with labels from a file


def test_labels_come_from_a_file_and_may_be_missing(run: Command, tmp_path: Path) -> None:
    graph = nx.connected_caveman_graph(6, 8)
    (tmp_path / "edges.csv").write_text("".join(f"n{u},n{v}\n" for u, v in graph.edges))
    labels = "".join(f"n{v},{('red', 'green', 'blue')[v // 8 % 3]}\n" for v in range(40))  # eight are unknown
    (tmp_path / "nodes.csv").write_text("node,label\n" + labels)
    arguments = ("train", "edges.csv", "--task", "pair", "--labels", "nodes.csv", "--epochs", 5)
    code, out, err = run(*arguments, "--out", "run", "--json")
    assert code == 0, err
    assert json.loads(out)["config"]["task"] == "pair"
    code, out, err = run("predict", "run", "--top", 5, "--json")
    assert len(json.loads(out)["pairs"]) == 5
    (tmp_path / "nodes.csv").write_text("node,label\nn1,red\nn99,green\n")
    check_failure(run(*arguments, "--out", "again"), r"line 3 \('n99,green'\): .*no node 'n99'; did you mean")
    assert not (tmp_path / "again").exists()


# --- bench


def test_bench_measures_and_compares(run: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    import psgnn_lab.bench as bench

    measure = bench.quick_benchmark
    monkeypatch.setattr(bench, "quick_benchmark", lambda **options: measure(scale=0.1, **options))
    monkeypatch.setattr(bench, "EPOCHS", 2)
    code, out, err = run("bench", "--json")
    assert (code, err) == (0, "")
    document = json.loads(out)
    assert document["machine"]["cores"] == os.cpu_count()
    assert {row["peer"] for row in document["rows"]} == {
        "scipy breadth_first_order", "scipy dijkstra", "the same, dense", "an epoch of gcn"
    }  # fmt: skip
    for row in document["rows"]:
        assert row["seconds"] > 0
        assert row["ratio"] == pytest.approx(row["peer_seconds"] / row["seconds"])
    code, out, err = run("bench", "-q")
    assert all(row["peer"] in out for row in document["rows"])


def test_bench_does_not_trust_its_peers(run: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    import psgnn_lab.bench as bench

    monkeypatch.setattr(bench, "scipy_dijkstra", lambda graph: lambda sources: np.zeros((9, sources.size)))
    with pytest.raises(RuntimeError, match="scipy dijkstra disagrees"):
        bench._distances("grid", bench.grid(3, 3))


# --- on a terminal and in a pipe


def shell(command: str, folder: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    program = f'psgnn() {{ {sys.executable} -m psgnn "$@"; }}; set -o pipefail; {command}'
    return subprocess.run(
        ["bash", "-c", program], cwd=folder, capture_output=True, text=True, check=False,
        env={**os.environ, **environment},
    )  # fmt: skip


def test_a_pipe_that_is_closed_early_is_no_error_to_talk_about(my_run: Path, tmp_path: Path) -> None:
    for command in ("psgnn datasets | true", "psgnn predict run --top 60 --json | head -1"):
        assert shell(command, tmp_path).stderr == ""


def test_nothing_is_coloured_in_a_pipe_or_if_not_wanted(my_run: Path, tmp_path: Path) -> None:
    assert "\x1b" not in shell("psgnn predict run --top 3", tmp_path).stdout
    # `script` makes a terminal.
    if shutil.which("script") is None:
        pytest.skip("there is no `script` to make a terminal")
    words = f"{sys.executable} -m psgnn predict run --top 3"
    done = shell(
        f"script -qec '{words}' /dev/null < /dev/null", tmp_path, NO_COLOR="1", TERM="xterm-256color"
    )
    assert "n" in done.stdout
    assert not re.search(r"\x1b\[[0-9;]*(3[0-7]|4[0-7]|9[0-7])m", done.stdout)


def test_completion_knows_the_commands(tmp_path: Path) -> None:
    done = shell(
        "psgnn", tmp_path, _PSGNN_COMPLETE="complete_bash", COMP_WORDS="psgnn pre", COMP_CWORD="1"
    )  # fmt: skip
    assert done.stdout.split() == ["predict"]
    assert "--install-completion" in shell("psgnn --help", tmp_path).stdout


@pytest.mark.parametrize(
    "command",
    [
        "psgnn embed",
        "psgnn predict",
        "psgnn-lab bench",
        "psgnn-lab biomodules",
        "psgnn-lab pretrain",
        "psgnn-lab reproduce",
    ],
)
def test_every_command_has_an_example_that_names_it(run: Command, command: str) -> None:
    code, out, err = run(command.split()[1], "--help")
    assert code == 0
    assert f"Example: {command}" in " ".join(out.split())


def test_ctrl_c_is_one_line(my_run: Path, tmp_path: Path) -> None:
    code = (
        "import os, signal, sys\n"
        "import psgnn.scoring._answers\n"
        "psgnn.scoring._answers.top_links = lambda *a, **k: os.kill(os.getpid(), signal.SIGINT)\n"
        "sys.argv = ['psgnn', 'predict', 'run', '--top', '3', '-o', 'p.csv']\n"
        "from psgnn import cli; cli.main()"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "psgnn: error: interrupted\n")
    assert signal.getsignal(signal.SIGINT) is not None
    assert not (tmp_path / "p.csv").exists()


def test_names_cannot_write_to_the_terminal(run: Command, tmp_path: Path) -> None:
    graph = nx.relabel_nodes(barbell(), lambda v: f"\x1b[31m{v}\x07")
    train(tmp_path / "red", [psgnn.read_graph(graph)], "gcn")
    code, out, err = run("predict", "red", "--top", 3)
    assert code == 0
    assert "\x1b" not in out
    assert "\x07" not in out
    assert r"\x1b[31m" in out


# --- runs that someone else has made: one line, and no code of theirs runs


class Bomb:
    def __reduce__(self) -> tuple[Any, ...]:
        return (Path.touch, (Path("exploded"),))


def edit_tensors(path: Path, change: Callable[[dict[str, torch.Tensor]], None]) -> None:
    """Change the tensors of a file and leave the rest of it as it is."""
    content = path.read_bytes()
    metadata = json.loads(content[8 : 8 + int.from_bytes(content[:8], "little")])["__metadata__"]
    tensors = load_file(path)
    change(tensors)
    save_file(tensors, path, metadata)


def edit_header(path: Path, change: Callable[[dict[str, Any]], None]) -> None:
    content = path.read_bytes()
    length = int.from_bytes(content[:8], "little")
    header = json.loads(content[8 : 8 + length])
    change(header)
    text = json.dumps(header).encode()
    path.write_bytes(len(text).to_bytes(8, "little") + text + content[8 + length :])


def edit_names(path: Path, change: Callable[[list[list[Any]]], None]) -> None:
    def edit(header: dict[str, Any]) -> None:
        document = json.loads(header["__metadata__"]["psgnn"])
        change(document["node_names"])
        header["__metadata__"]["psgnn"] = json.dumps(document)

    edit_header(path, edit)


def replace(path: Path, old: str, new: str) -> None:
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new))


def setting(name: str, value: int) -> Callable[[Path], None]:
    def change(folder: Path) -> None:
        path = folder / "config.toml"
        path.write_text(re.sub(rf"(?m)^{name} = .*$", f"{name} = {value}", path.read_text()))

    return change


def tensor(file: str, name: str, change: Callable[[torch.Tensor], torch.Tensor]) -> Callable[[Path], None]:
    def edit(tensors: dict[str, torch.Tensor]) -> None:
        tensors[name] = change(tensors[name]).contiguous()

    return lambda folder: edit_tensors(folder / f"{file}.safetensors", edit)


def shape(name: str, value: list[int]) -> Callable[[Path], None]:
    return lambda folder: edit_header(
        folder / "graph.safetensors", lambda header: header[name].update(shape=value)
    )


def swapped(values: torch.Tensor) -> torch.Tensor:
    values = values.clone()
    values[[0, 1]] = values[[1, 0]]
    return values


def put(place: int, value: float) -> Callable[[torch.Tensor], torch.Tensor]:
    def change(values: torch.Tensor) -> torch.Tensor:
        values = values.clone()
        values.view(-1)[place] = value
        return values

    return change


def linked_away(name: str, target: str) -> Callable[[Path], None]:
    def change(folder: Path) -> None:
        shutil.copy(folder / name, folder.parent / "elsewhere")
        (folder / name).unlink()
        (folder / name).symlink_to(target)

    return change


def pipe(folder: Path) -> None:
    (folder / "record.json").unlink()
    os.mkfifo(folder / "record.json")


def names(change: Callable[[list[list[Any]]], None]) -> Callable[[Path], None]:
    return lambda folder: edit_names(folder / "graph.safetensors", change)


def pickled(name: str) -> Callable[[Path], None]:
    return lambda folder: (folder / name).write_bytes(pickle.dumps(Bomb())) and None


def torch_file(folder: Path) -> None:
    torch.save({"model": Bomb()}, folder / "weights.safetensors")


HOSTILE: dict[str, tuple[Callable[[Path], None], str]] = {
    "pickled weights": (pickled("weights.safetensors"), "weights.safetensors is damaged or not of psgnn"),
    "weights of torch.save": (torch_file, "weights.safetensors is damaged or not of psgnn"),
    "pickled graph": (pickled("graph.safetensors"), "graph.safetensors is damaged or not of psgnn"),
    "pickled record": (pickled("record.json"), "record.json is damaged"),
    "pickled settings": (pickled("config.toml"), "config.toml is damaged"),
    "deep record": (
        lambda folder: (folder / "record.json").write_text("[" * 100_000) and None,
        "record.json is damaged",
    ),
    "record that is a list": (
        lambda folder: (folder / "record.json").write_text("[1]") and None,
        "record.json is of format None",
    ),
    "record without metrics": (
        lambda folder: replace(folder / "record.json", '"val"', '"vale"'),
        "val has no metrics",
    ),
    "huge header": (
        lambda folder: (folder / "weights.safetensors").write_bytes(b"\xff" * 64) and None,
        "weights.safetensors is damaged",
    ),
    "huge shape": (shape("x", [2**40, 2**20]), "graph.safetensors is damaged"),
    "negative shape": (shape("x", [-18, -1]), "graph.safetensors is damaged"),
    "overflowing shape": (shape("x", [2**63, 2]), "graph.safetensors is damaged"),
    "huge settings": (setting("hidden", 10**9), "do not fit the settings"),
    "endless layers": (setting("members", 10**12), "do not fit the settings"),
    "endless scorer": (setting("scorer_layers", 10**12), "do not fit the settings"),
    "no such seed": (setting("seed", 10**40), "do not fit the settings"),
    "other features": (setting("in_channels", 3), "do not fit the settings"),
    "weights of another type": (
        tensor("weights", "model.decoder.mean", torch.Tensor.double),
        "do not fit the settings .*float64",
    ),
    "weights that are not numbers": (
        tensor("weights", "model.decoder.mean", put(0, float("nan"))),
        "not numbers",
    ),
    "anchors outside": (tensor("weights", "choice.nodes", put(0, 10**9)), "not anchors of the graph"),
    "anchors below": (tensor("weights", "choice.nodes", put(0, -2)), "not anchors of the graph"),
    "gap in the anchors": (tensor("weights", "choice.nodes", put(0, -1)), "not anchors of the graph"),
    "anchors that are fractions": (
        tensor("weights", "choice.nodes", torch.Tensor.double),
        "not anchors of the graph",
    ),
    "too many anchors": (
        lambda folder: edit_tensors(
            folder / "weights.safetensors",
            lambda tensors: tensors.update(
                {
                    "choice.nodes": torch.zeros(1, 10**5, dtype=torch.long),
                    "choice.weight": torch.ones(1, 10**5),
                }
            ),
        ),
        "not anchors of the graph",
    ),
    "edges outside": (tensor("graph", "indices", put(0, 2**31 - 1)), "does not hold a graph"),
    "edges below": (tensor("graph", "indices", put(0, -5)), "does not hold a graph"),
    "edges in one direction": (tensor("graph", "indices", put(0, 17)), "does not hold a graph"),
    "unsorted edges": (tensor("graph", "indices", swapped), "does not hold a graph"),
    "edges of another type": (tensor("graph", "indices", torch.Tensor.long), "does not hold a graph"),
    "rows that start late": (tensor("graph", "indptr", put(0, 1)), "does not hold a graph"),
    "rows that go back": (tensor("graph", "indptr", put(3, 10**6)), "does not hold a graph"),
    "rows without end": (tensor("graph", "indptr", put(-1, 2**62)), "does not hold a graph"),
    "graphs below": (tensor("graph", "ptr", put(0, -7)), "does not hold a graph"),
    "links outside": (tensor("graph", "hidden", put(0, 99)), "does not hold a graph"),
    "features that are not numbers": (tensor("graph", "x", put(0, float("inf"))), "does not hold a graph"),
    "features of another type": (tensor("graph", "x", torch.Tensor.int), "does not hold a graph"),
    "a name too few": (names(lambda parts: parts[0].pop() and None), "does not hold a graph"),
    "names that are numbers": (names(lambda parts: parts[0].__setitem__(0, 5)), "does not hold a graph"),
    "names twice": (names(lambda parts: parts[0].__setitem__(0, parts[0][1])), "does not hold a graph"),
    "names that are not text": (names(lambda parts: parts[0].__setitem__(0, "\ud800")), "does not hold a graph"),
    "a link out of the run": (linked_away("record.json", "../elsewhere"), "not a file in the folder"),
    "an endless device": (linked_away("weights.safetensors", "/dev/zero"), "not a file in the folder"),
    "a pipe": (pipe, "not a file in the folder"),
}  # fmt: skip


@pytest.mark.parametrize("case", HOSTILE)
def test_hostile_runs_get_one_line(run: Command, my_run: Path, tmp_path: Path, case: str) -> None:
    change, message = HOSTILE[case]
    change(my_run)
    check_failure(run("embed", "run", "-o", "h.csv"), message)
    check_failure(run("predict", "run", "--top", 3, "-o", "p.csv"), message)
    assert {path.name for path in tmp_path.iterdir()} <= {"run", "elsewhere"}


def test_an_edge_between_two_graphs_is_refused(run: Command, tmp_path: Path) -> None:
    graphs = [psgnn.read_graph(nx.relabel_nodes(barbell(), str)) for _ in range(2)]
    folder = train(tmp_path / "two", graphs, "gcn")
    edit_tensors(folder / "graph.safetensors", lambda tensors: tensors["ptr"].__setitem__(1, 17))
    edit_names(folder / "graph.safetensors", lambda parts: parts[1].insert(0, parts[0].pop() + "x"))
    check_failure(run("embed", "two", "-o", "h.csv"), "does not hold a graph")


@pytest.mark.parametrize(
    "place", [("choice.nodes", 0, 99), ("choice.starts", 1, 10**6), ("choice.starts", 1, -1)]
)
def test_hostile_sets_of_anchors_are_refused(
    run: Command, tmp_path: Path, place: tuple[str, int, int]
) -> None:
    folder = train(tmp_path / "sets", [psgnn.read_graph(barbell())], "pgnn")
    name, entry, value = place
    tensor("weights", name, put(entry, value))(folder)
    check_failure(run("embed", "sets", "-o", "h.csv"), "not anchors of the graph")


def test_what_else_lies_in_a_run_is_never_opened(run: Command, my_run: Path, tmp_path: Path) -> None:
    for name in ("model.pkl", "model.pt", "graph.pkl", "state.safetensors", "conftest.py", "psgnn.py"):
        (my_run / name).write_bytes(pickle.dumps(Bomb()))
    assert run("embed", "run", "-o", "h.csv")[0] == 0
    assert {path.name for path in tmp_path.iterdir()} == {"run", "h.csv"}


def test_paths_in_the_record_and_in_names_lead_nowhere(run: Command, my_run: Path, tmp_path: Path) -> None:
    def rename(parts: list[list[Any]]) -> None:
        parts[0][0] = "../../escaped"

    edit_names(my_run / "graph.safetensors", rename)
    record = json.loads((my_run / "record.json").read_text())
    for field in ("out", "graph", "weights", "config_file"):
        record[field] = "../../escaped"
    (my_run / "record.json").write_text(json.dumps(record))
    assert run("embed", "run", "-o", "h.csv")[0] == 0
    assert run("predict", "run", "--top", 3, "-o", "p.csv")[0] == 0
    assert "../../escaped" in (tmp_path / "h.csv").read_text()
    assert {path.name for path in tmp_path.iterdir()} == {"run", "h.csv", "p.csv"}
    assert not list(tmp_path.parent.glob("escaped*"))


# --- compare


def test_compare_writes_its_table(run: Command, tmp_path: Path) -> None:
    (tmp_path / "edges.csv").write_text("".join(f"n{u},n{v}\n" for u, v in barbell().edges))
    arguments = ("compare", "edges.csv", "--models", "none", "--seeds", 1, "-o", "table.csv")
    code, out, err = run(*arguments, "--json")
    assert code == 0
    frame = pl.read_csv("table.csv")
    rows = json.loads(out)["rows"]
    assert frame["name"].to_list() == [row["name"] for row in rows]
    assert frame["auc_mean"].to_list() == pytest.approx([row["auc_mean"] for row in rows])
    check_failure(run(*arguments), "table.csv exists; pass --force")
