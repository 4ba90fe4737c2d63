from __future__ import annotations

import inspect
import json
import re
import subprocess
import sys
from pathlib import Path

import networkx as nx
import numpy as np
import pytest

import psgnn
from conftest import Command
from psgnn.cli.train import train_command

VILLAGE = Path(__file__).parent.parent / "examples" / "village.csv"


@pytest.fixture
def edges(tmp_path: Path) -> Path:
    """A small graph of named nodes: two cliques and a bridge."""
    path = tmp_path / "edges.csv"
    graph = nx.barbell_graph(8, 2)
    path.write_text("source,target\n" + "".join(f"n{u},n{v}\n" for u, v in graph.edges))
    return path


# --- what a person does


@pytest.mark.parametrize(
    ("command", "answer"),
    [
        ("--help", "compare"),
        ("predict nowhere.csv --top 5", "does not exist"),
        ("train x.csv --model psgn", "psgn"),
    ],
)
def test_help_and_slips_need_no_numpy(command: str, answer: str) -> None:
    code = (
        f"import sys; sys.argv = ['psgnn', *{command.split()!r}]\n"
        "from psgnn import cli\n"
        "try: cli.main()\n"
        "except SystemExit: pass\n"
        "heavy = {'torch', 'numba', 'torch_geometric', 'scipy', 'polars', 'matplotlib', 'numpy'} & set(sys.modules)\n"
        "sys.exit(f'imported {heavy}' if heavy else 0)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert answer in done.stdout + done.stderr


def test_a_prediction_from_kept_kernels_needs_no_compiler_and_no_other_command() -> None:
    code = (
        f"import sys; sys.argv = ['psgnn', 'predict', {str(VILLAGE)!r}, '--top', '3', '--quiet']\n"
        "from psgnn import cli\n"
        "try: cli.main()\n"
        "except SystemExit as end: assert not end.code\n"
        "heavy = {'torch', 'numba.np.arraymath', 'scipy.linalg', 'sklearn', 'urllib.request', 'sqlite3', 'xml'}\n"
        "heavy |= {'psgnn.cli.train', 'psgnn.cli.distances', 'psgnn.cli.graphs', 'psgnn.cli.report'}\n"
        "heavy &= set(sys.modules)\n"
        "sys.exit(f'imported {heavy}' if heavy else 0)"
    )
    for attempt in range(2):  # the first may have to compile
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
        if attempt:
            assert done.returncode == 0, done.stderr


def test_the_command_and_the_function_train_on_the_same_device() -> None:
    asked, taken = (
        inspect.signature(each).parameters["device"].default for each in (train_command, psgnn.fit)
    )
    assert asked == taken == "auto"


def test_the_collection_of_garbage_is_as_usual_after_the_imports() -> None:
    code = (
        "import gc, sys; usual = gc.get_threshold()[:2]\n"
        "from psgnn import cli\n"
        "sys.argv = ['psgnn', 'datasets']\n"
        "try: cli.main()\n"
        "except SystemExit as end: assert not end.code\n"
        "assert gc.isenabled() and gc.get_threshold()[0] < 10**6\n"
        "gc.collect()\n"
        "assert gc.get_threshold()[:2] == usual"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("command", ["datasets", "anchors", "train", "compare", "report"])
def test_every_command_has_an_example_that_names_it(run: Command, command: str) -> None:
    code, out, err = run(command, "--help")
    assert code == 0
    assert f"Example: psgnn {command}" in " ".join(out.split())


def test_version(run: Command) -> None:
    import psgnn

    assert run("--version") == (0, f"psgnn {psgnn.__version__}\n", "")


def test_datasets_lists_every_dataset(run: Command) -> None:
    from psgnn.datasets import dataset_names

    code, out, err = run("datasets", "--json")
    assert code == 0
    assert [row["name"] for row in json.loads(out)] == dataset_names()
    code, table, err = run("datasets")
    assert code == 0
    assert all(name in table for name in dataset_names())


def test_anchors_of_an_own_graph_keep_the_names_of_nodes(run: Command, edges: Path, tmp_path: Path) -> None:
    code, out, err = run("anchors", edges, "--anchors", 3, "--method", "betweenness", "-o", "anchors.csv")
    assert code == 0
    assert "18 nodes, 59 edges" in err
    lines = (tmp_path / "anchors.csv").read_text().splitlines()
    assert lines[0] == "rule,graph,rank,node"
    assert [line.split(",")[0] for line in lines[1:]] == ["betweenness"] * 3
    assert {line.split(",")[3] for line in lines[1:]} <= {"n7", "n8", "n9", "n10"}  # the bridge


def test_anchors_print_one_json_document(run: Command, edges: Path) -> None:
    code, out, err = run("anchors", edges, "--method", "all", "--json")
    assert code == 0
    assert err == ""
    document = json.loads(out)
    from psgnn.anchors import RULES

    assert [row["rule"] for row in document["rules"]] == list(RULES)
    assert all(0 <= row["coverage"] <= 1 and len(row["anchors"][0]) == 4 for row in document["rules"])


def test_anchors_are_drawn(run: Command, tmp_path: Path) -> None:
    code, out, err = run("anchors", "grid", "--set", "rows=5", "--set", "cols=6", "--plot", "picture.png")
    assert code == 0
    assert (tmp_path / "picture.png").read_bytes().startswith(b"\x89PNG")


def test_compare_prints_every_rule_with_its_spread(run: Command) -> None:
    from psgnn.scoring import HEURISTICS

    arguments = ("compare", "communities", "--set", "communities=6", "--set", "size=6", "--task", "pair")
    code, out, err = run(*arguments, "--models", "none", "--seeds", 2)
    assert code == 0
    assert all(name in out for name in HEURISTICS)
    assert "±" in out
    code, out, err = run(*arguments, "--models", "none", "--seeds", 2, "--json")
    document = json.loads(out)
    assert err == ""
    assert {row["name"] for row in document["rows"]} == set(HEURISTICS)
    best = document["rows"][0]
    assert best["auc_mean"] == max(row["auc_mean"] for row in document["rows"])
    assert best["auc_mean"] == pytest.approx(sum(best["auc"]) / 2)
    assert len(best["ap"]) == 2


def test_compare_takes_labels_from_a_file(run: Command, edges: Path, tmp_path: Path) -> None:
    labels = tmp_path / "labels.csv"
    labels.write_text("node,label\n" + "".join(f"n{v},{'left' if v < 9 else 'right'}\n" for v in range(18)))
    code, out, err = run("compare", edges, "--task", "pair", "--labels", labels, "--models", "none", "--json")
    assert code == 0
    rows = {row["name"]: row["auc_mean"] for row in json.loads(out)["rows"]}
    assert rows["spectral-cosine"] > 0.9


def test_compare_puts_models_and_rules_in_one_table(run: Command, edges: Path) -> None:
    from psgnn.models import MODELS
    from psgnn.scoring import HEURISTICS

    code, out, err = run("compare", edges, "--seeds", 1, "--epochs", 2, "--json")
    assert code == 0
    kinds = {row["name"]: row["kind"] for row in json.loads(out)["rows"]}
    assert kinds == dict.fromkeys(MODELS, "model") | dict.fromkeys(HEURISTICS, "rule")


def test_compare_takes_peers_negatives_and_a_first_seed(run: Command, edges: Path) -> None:
    arguments = ("compare", edges, "--models", "none", "--peers", "boosting", "--negatives", "degree")
    code, out, err = run(*arguments, "--seeds", 1, "--first-seed", 7, "--json")
    assert code == 0, err
    document = json.loads(out)
    assert document["seeds"] == [7]
    assert document["negatives"] == "degree"
    assert {row["name"] for row in document["rows"] if row["kind"] == "peer"} == {"boosting"}
    code, uniform, err = run("compare", edges, "--models", "none", "--seeds", 1, "--first-seed", 7, "--json")
    assert code == 0
    scores = [{row["name"]: row["auc"] for row in json.loads(text)["rows"]} for text in (out, uniform)]
    assert scores[0]["preferential-attachment"] != scores[1]["preferential-attachment"]
    code, out, err = run("compare", edges, "--models", "none", "--seeds", 1)
    assert all(column in out for column in ("AUC", "average precision", "MRR", "Hits@20"))


def test_compare_ablates(run: Command, edges: Path) -> None:
    from psgnn.models._presets import ABLATIONS

    code, out, err = run("compare", edges, "--ablate", "--seeds", 1, "--epochs", 2, "--json")
    assert code == 0, err
    assert {row["name"] for row in json.loads(out)["rows"]} == {"psgnn", *ABLATIONS}


@pytest.mark.parametrize("decoder", ["set", "dot", "distance"])
def test_train_takes_a_decoder(run: Command, edges: Path, decoder: str) -> None:
    arguments = ("train", edges, "--epochs", 2, "--decoder", decoder, "--negatives", "distance")
    code, out, err = run(*arguments, "--json")
    assert code == 0, err
    assert json.loads(out)["config"]["decoder"] == decoder
    code, out, err = run(*arguments)
    assert all(column in out for column in ("AUC", "MRR", "Hits@20"))


EXPERIMENT = """
title = "A small experiment"
[methods.pagerank]
kind = "rule"
seeds = 2
[methods.gcn]
kind = "model"
seeds = 1
options = {epochs = 2}
[[rows]]
name = "grid-link"
title = "Grid, link"
dataset = "grid"
dataset_options = {rows = 5, cols = 6}
task = "link"
[[rows]]
name = "grid-pair"
title = "Grid, pair"
dataset = "grid"
task = "pair"
[[sections]]
name = "all"
title = "All"
rows = ["grid-link", "grid-pair"]
methods = ["pagerank", "gcn"]
"""


@pytest.fixture
def experiments(tmp_path: Path) -> Path:
    folder = tmp_path / "experiments"
    folder.mkdir()
    (folder / "small.toml").write_text(EXPERIMENT)
    return folder


def test_reproduce_makes_what_is_missing_and_its_tables(run: Command, experiments: Path) -> None:
    code, out, err = run("reproduce", "--list")
    assert code == 0
    assert "A small experiment" in out
    code, out, err = run("reproduce", "small", "--dry-run", "--json")
    assert code == 0
    assert (json.loads(out)["runs"], json.loads(out)["recorded"]) == (6, 0)
    assert not (experiments / "records").exists()

    # The grid has no classes, so one row fails; the other is made all the same.
    code, out, err = run("reproduce", "small", "--jobs", 1, "--json")
    assert code == 1
    failed = json.loads(out)["failed"]
    assert [problem["run"].split(",")[0] for problem in failed] == ["grid-pair"] * 3
    assert all("no node classes" in problem["error"] for problem in failed)
    assert len(err.splitlines()) == 3
    values = json.loads(out)["sections"][0]["rows"][0]["methods"][0]["values"]
    assert sorted(values) == ["100", "101"]

    code, out, err = run("reproduce", "small", "--dry-run")
    assert code == 0
    assert "6 runs, 3 recorded, 3 missing" in out
    assert "what is recorded took" in out
    taken = json.loads(run("reproduce", "small", "--dry-run", "--json")[1])["taken"]
    lines = [json.loads(path.read_text()) for path in experiments.glob("records/*/*.json")]
    assert taken == pytest.approx(sum(record["seconds"] for cell in lines for record in cell))
    code, first, err = run("reproduce", "small", "--only", "grid-link")
    assert (code, err) == (0, "")
    code, out, err = run("reproduce", "all", "--from-records")
    assert code == 0
    assert out == first
    assert "[pagerank](records/grid-link/pagerank.json)" in out


def test_train_writes_a_run_that_loads(run: Command, edges: Path, tmp_path: Path) -> None:
    import psgnn

    arguments = ("train", edges, "--epochs", 20, "--anchors", 3, "--option", "hidden=16", "--out", "my-run")
    code, out, err = run(*arguments)
    assert code == 0
    assert "validation" in out
    assert "18 nodes, 59 edges" in err
    result = psgnn.load(tmp_path / "my-run")
    assert result.model.config.hidden == 16
    assert len(result.anchors[0]) == 3
    assert result.node_names[0][0] == "n0"
    check_failure(run(*arguments), tmp_path, {"edges.csv", "my-run"}, "holds a finished run.*--force")
    code, out, err = run(*arguments, "--force", "--json")
    assert code == 0
    assert json.loads(out)["test"] == result.test
    assert err == ""


def test_train_looks_at_the_folder_before_the_graph(run: Command, edges: Path, tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "precious.txt").write_text("mine")
    assert run("train", edges, "--model", "gcn", "--epochs", 2, "--out", "my-run")[0] == 0
    there = {"edges.csv", "my-run", "mine"}
    missing = ("train", "missing.csv", "--out")
    check_failure(run(*missing, "my-run"), tmp_path, there, "my-run holds a finished run.*--force")
    check_failure(run(*missing, "mine"), tmp_path, there, "mine is not empty and holds no run of psgnn")
    check_failure(run(*missing, "mine", "--force"), tmp_path, there, "mine is not empty and holds no run")
    check_failure(
        run(*missing, "edges.csv"), tmp_path, there, "edges.csv is a file, and a run needs a folder"
    )
    check_failure(run(*missing, "my-run", "--force"), tmp_path, there, "missing.csv")


def test_the_square_of_the_logarithm_is_an_option(run: Command, edges: Path, tmp_path: Path) -> None:
    import psgnn

    code, out, _ = run("anchors", edges, "--anchors", "log^2", "--json")
    assert code == 0
    assert len(json.loads(out)["rules"][0]["anchors"][0]) == 17  # log2 18 = 4.17
    arguments = (
        "train",
        edges,
        "--epochs",
        2,
        "--option",
        "hidden=8",
        "--anchors",
        "log^2",
        "--out",
        "my-run",
    )
    assert run(*arguments)[0] == 0
    assert 'anchors = "log^2"' in (tmp_path / "my-run" / "config.toml").read_text()
    embeddings = psgnn.load("my-run").embed()
    # A run of the time when it was written log2.
    config = (tmp_path / "my-run" / "config.toml").read_text()
    (tmp_path / "my-run" / "config.toml").write_text(config.replace("log^2", "log2"))
    assert psgnn.load("my-run").model.config.anchors == "log^2"
    assert np.array_equal(psgnn.load("my-run").embed(), embeddings)


def test_an_interrupted_training_says_how_to_go_on(
    run: Command, edges: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import psgnn.training._fit as training

    epoch = training._Trainer._epoch

    def interrupt(self: training._Trainer, number: int) -> float:
        if number == 7:
            raise KeyboardInterrupt
        return epoch(self, number)

    arguments = ("train", edges, "--epochs", 10, "--out", "my-run")
    monkeypatch.setattr(training._Trainer, "_epoch", interrupt)
    code, out, err = run(*arguments)
    assert code == 130
    assert err == "psgnn: error: interrupted; the run in my-run is kept, and the same command resumes it\n"
    monkeypatch.setattr(training._Trainer, "_epoch", epoch)
    code, out, err = run(*arguments, "--json")
    assert code == 0
    assert json.loads(out)["epochs_run"] == 10


# --- what a person with bad luck gets: one line, exit code 2, nothing written


def write(path: Path, text: str) -> Path:
    path.write_text(text)
    return path


BAD_FILES: dict[str, tuple[str, str, str]] = {
    "empty": ("e.csv", "", "no edges|empty"),
    "comments only": ("e.csv", "# nothing\n", "no lines other than comments"),
    "not an edge": ("e.csv", "1,2\n2,3\nlonely\n", "line 3"),
    "negative id": ("e.csv", "1,2\n2,-3\n", "line 2"),
    "fractional id": ("e.csv", "1,2\n2,3.5\n", "line 2"),
    "NaN weight": ("e.csv", "u,v,weight\n1,2,0.5\n2,3,nan\n", "line 3"),
    "isolated nodes only": ("e.csv", "1,1\n2,2\n", "no edges between different nodes"),
    "too small to split": ("e.csv", "1,2\n2,3\n", "cannot be split"),
    "damaged gzip": ("e.csv.gz", "not a gzip", "e.csv.gz"),
    "damaged parquet": ("e.parquet", "not parquet", "e.parquet"),
}


@pytest.mark.parametrize("case", BAD_FILES)
def test_bad_files_get_one_line(run: Command, tmp_path: Path, case: str) -> None:
    name, text, message = BAD_FILES[case]
    write(tmp_path / name, text)
    check_failure(run("compare", name), tmp_path, {name}, message)


def check_failure(result: tuple[int, str, str], folder: Path, files: set[str], message: str) -> None:
    code, out, err = result
    assert code == 2
    assert out == ""
    assert err.startswith("psgnn: error: ")
    assert len(err.splitlines()) == 1, err
    assert re.search(message, err), err
    assert {path.name for path in folder.iterdir()} == files


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("compare", "missing.csv"), "missing.csv"),
        (("compare", "comunities"), "unknown dataset .*'comunities'; did you mean 'communities'"),
        (("compare", "edges.csv", "--task", "lnk"), "unknown task 'lnk'; did you mean 'link'"),
        (("compare", "edges.csv", "--models", "gpt"), "unknown model 'gpt'; did you mean 'gat'"),
        (("compare", "edges.csv", "--sees", "3"), "No such option.*--sees.*--seeds"),
        (("compare", "edges.csv", "--seeds", "0"), "--seeds"),
        (("compare", "edges.csv", "--task", "pair"), "no node classes"),
        (("compare", "communities", "--set", "sizee=3"), "did you mean 'size'"),
        (("compare", "communities", "--set", "size"), "KEY=VALUE"),
        (("compare", "communities", "--labels", "edges.csv"), "--labels goes with a graph file"),
        (("compare", "edges.csv", "--set", "size=3"), "--set goes with a dataset"),
        (("compare", "communities", "--set", "root=x"), "goes with --data"),
        (("compare", "edges.csv", "--peers", "node3vec"), "unknown peer 'node3vec'; did you mean 'node2vec'"),
        (("compare", "edges.csv", "--negatives", "degre"), "'degre'; did you mean 'degree'"),
        (
            ("compare", "communities", "--task", "pair", "--negatives", "degree"),
            "unknown negatives of the pair task 'degree'",
        ),
        (("train", "edges.csv", "--decoder", "dott"), "unknown decoder 'dott'; did you mean 'dot'"),
        (("train", "edges.csv", "--negatives", "degre"), "'degre'; did you mean 'degree'"),
        (("compare", "x" * 300), "unknown dataset|File name too long"),
        (("compare", "edges.csv", "--source", "²", "--target", "1"), "has no column"),
        (("reproduce",), "name an experiment: accuracy"),
        (("reproduce", "acuracy"), "unknown experiment 'acuracy'; did you mean 'accuracy'"),
        (("reproduce", "accuracy", "--from-records", "--seeds", 3), "leave out --seeds"),
        (("reproduce", "accuracy", "--from-records", "--shard", "1/2"), "leave out --shard"),
        (("reproduce", "all", "--only", "grid"), "unknown row 'grid'; did you mean 'grid-"),
        (("reproduce", "accuracy", "--only", "grid"), "unknown row 'grid'; did you mean 'grid-link'"),
        (("reproduce", "accuracy", "--methods", "psgn"), "unknown method 'psgn'; did you mean 'psgnn'"),
        (("reproduce", "accuracy", "--shard", "3/2"), "--shard takes i/n"),
        (("reproduce", "accuracy", "--folder", "nowhere"), "no manifests .*in nowhere"),
        (("train", "edges.csv", "--model", "psgn"), "unknown model 'psgn'; did you mean 'psgnn'"),
        (("train", "edges.csv", "--epochs", "2", "--out", "edges.csv"), "edges.csv is a file"),
        (("train", "edges.csv", "--epochs", "2", "--out", "edges.csv", "--force"), "edges.csv is a file"),
        (("train", "edges.csv", "--epochs", "2", "--out", "edges.csv/run"), "edges.csv is a file"),
        (("train", "edges.csv", "--preset", "bst"), "unknown preset 'bst'; did you mean 'best'"),
        (("train", "edges.csv", "--option", "hiden=3"), "unknown option 'hiden'; did you mean 'hidden'"),
        (("train", "edges.csv", "--option", "tolerance=inf"), "option tolerance=inf .* finite number"),
        (("train", "edges.csv", "--option", "lr=nan"), "option lr=nan .* finite number"),
        (
            ("train", "edges.csv", "--preset", "paper", "--option", "picker=none"),
            "model psgnn needs anchors, found picker=none; choose .*degree",
        ),
        (
            ("train", "edges.csv", "--model", "gcn", "--option", "picker=degree"),
            "model gcn has no anchors, found picker=degree; .*psgnn or agnn",
        ),
        (("train", "edges.csv", "--anchors", "99"), "99 anchors were asked of a graph of 18 nodes"),
        (("anchors", "edges.csv", "--anchors", "99"), "99 anchors were asked of a graph of 18 nodes"),
        (("anchors", "edges.csv", "--anchors", "many"), r"must be log, log\^2 or an integer"),
        (("anchors", "edges.csv", "--method", "degre"), "did you mean 'degree'"),
        (("anchors", "edges.csv", "-o", "edges.csv"), "edges.csv exists.*--force"),
        (("anchors", "edges.csv", "-o", "no/such/folder.csv"), "no/such"),
        (("anchors", "edges.csv", "-o", "anchors.docx"), "anchors.docx"),
        (("anchors", "edges.csv", "--plot", "picture.xyz"), "picture.xyz"),
        (("anchors",), "Missing argument"),
        (("ancors", "edges.csv"), "No such command 'ancors'"),
    ],
)
def test_bad_options_get_one_line(
    run: Command, edges: Path, tmp_path: Path, arguments: tuple[str, ...], message: str
) -> None:
    before = edges.read_bytes()
    check_failure(run(*arguments), tmp_path, {"edges.csv"}, message)
    assert edges.read_bytes() == before


def test_one_class_only_gets_one_line(run: Command, edges: Path, tmp_path: Path) -> None:
    write(tmp_path / "labels.csv", "node,label\n" + "".join(f"n{v},same\n" for v in range(18)))
    result = run("compare", edges, "--task", "pair", "--labels", "labels.csv")
    check_failure(result, tmp_path, {"edges.csv", "labels.csv"}, "label a second class")


def test_a_complete_graph_gets_one_line(run: Command, tmp_path: Path) -> None:
    write(tmp_path / "full.csv", "".join(f"{u},{v}\n" for u, v in nx.complete_graph(6).edges))
    check_failure(run("compare", "full.csv"), tmp_path, {"full.csv"}, "0 unlinked pairs")


def test_force_replaces_an_output(run: Command, edges: Path, tmp_path: Path) -> None:
    write(tmp_path / "anchors.csv", "old")
    code, _, _ = run("anchors", edges, "-o", "anchors.csv", "--force")
    assert code == 0
    assert (tmp_path / "anchors.csv").read_text().startswith("rule,")


def test_ctrl_c_is_one_line_and_leaves_nothing(
    run: Command, edges: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(*args: object, **kwargs: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("psgnn.anchors._diagnostics.select_anchors", interrupted)
    code, out, err = run("anchors", edges, "-o", "anchors.csv")
    assert code == 130
    assert err.splitlines()[-1] == "psgnn: error: interrupted"
    assert {path.name for path in tmp_path.iterdir()} == {"edges.csv"}


@pytest.mark.skipif(sys.platform == "win32", reason="Windows cannot limit the size of files")
def test_a_full_disk_is_one_line_and_leaves_nothing(edges: Path, tmp_path: Path) -> None:
    # A limit on the size of files is the full disk that needs no root: writing fails half-way.
    code = (
        "import resource, signal, sys\n"
        "sys.dont_write_bytecode = True\n"
        "from psgnn import cli\n"
        "def run(*options):\n"
        f"    sys.argv = ['psgnn', 'anchors', {str(edges)!r}, '-q', *options]\n"
        "    try: cli.main()\n"
        "    except SystemExit as error: return error.code\n"
        "run('--plot', 'warm-up.png')\n"  # compiled kernels and fonts are cached on disk
        "signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (512, 512))\n"
        "sys.exit(run('--plot', 'picture.png'))"
    )
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    (tmp_path / "warm-up.png").unlink()
    assert done.returncode == 2, done.stderr
    assert "Traceback" not in done.stderr
    assert done.stderr.splitlines()[-1].startswith("psgnn: error: ")
    assert {path.name for path in tmp_path.iterdir()} == {"edges.csv"}
