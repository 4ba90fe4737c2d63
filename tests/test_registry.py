"""Rules of other packages: found, checked, and never in the way of those of the package."""

from __future__ import annotations

import json
import logging
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import networkx as nx
import numpy as np
import pytest

import psgnn.registry
from conftest import Command, adjacency_of, data_of
from psgnn import LinkPrediction, build_model, fit, load, select_anchors
from psgnn.anchors import RULES
from psgnn.errors import InputError
from psgnn.graph import GraphBatch
from psgnn.models._config import PICKERS, make_config
from psgnn.models.transforms import AddAnchorDistances
from psgnn.scoring import HEURISTICS, score_pairs
from psgnn.training._compare import compare

ROOT = Path(__file__).resolve().parent.parent
EXAMPLE = ROOT / "examples" / "psgnn-extra-rules"
Install = Callable[..., None]

SOURCE = """
import numpy as np

def last(adjacency, k, rng):
    return list(range(adjacency.num_nodes - k, adjacency.num_nodes))

def few(adjacency, k, rng): return np.arange(k - 1)
def twice(adjacency, k, rng): return np.zeros(k, int)
def outside(adjacency, k, rng): return np.arange(k) + adjacency.num_nodes
def negative(adjacency, k, rng): return -1 - np.arange(k)
def real(adjacency, k, rng): return np.arange(k) / 2
def ragged(adjacency, k, rng): return [[1], [2, 3]]
def nothing(adjacency, k, rng): return None
def crash(adjacency, k, rng): return 1 // 0

def near(union, pairs, seed): return [-int(x) for x in abs(pairs[0] - pairs[1])]
def short(union, pairs, seed): return np.zeros(pairs.shape[1] - 1)
def nan(union, pairs, seed): return np.where(np.arange(pairs.shape[1]) == 1, np.nan, 0.5)
def words(union, pairs, seed): return ["high"] * pairs.shape[1]
def break_pairs(union, pairs, seed): raise RuntimeError("two\\nlines")

number = 3
"""


@pytest.fixture
def install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Install]:
    """Install a package of one module into a folder that Python looks into."""
    folder = tmp_path / "installed"
    folder.mkdir()
    monkeypatch.syspath_prepend(folder)

    def put(package: str, source: str = SOURCE, *, anchors: str = "", pairs: str = "") -> None:
        module = package.replace("-", "_")
        (folder / f"{module}.py").write_text(source)
        about = folder / f"{module}-1.5.dist-info"
        about.mkdir()
        (about / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {package}\nVersion: 1.5\n")
        lines = []
        for group, rules in (("psgnn.anchor_rules", anchors), ("psgnn.pair_rules", pairs)):
            lines.append(f"[{group}]")
            for rule in rules.split():  # "few" or, under another name, "degree=few"
                name, _, function = rule.partition("=")
                lines.append(f"{name} = {module}:{function or name}")
        (about / "entry_points.txt").write_text("\n".join(lines) + "\n")
        RULES.refresh()
        HEURISTICS.refresh()

    yield put
    monkeypatch.undo()
    for module in [name for name in sys.modules if name.startswith("rules_")]:
        del sys.modules[module]
    RULES.refresh()
    HEURISTICS.refresh()


@pytest.fixture
def ring() -> nx.Graph:
    return nx.cycle_graph(12)


def test_a_rule_of_another_package_is_used_by_its_name(
    install: Install, ring: nx.Graph, run: Command
) -> None:
    install("rules-good", anchors="last", pairs="near")
    assert select_anchors(data_of(ring), "last", 3).tolist() == [9, 10, 11]
    assert AddAnchorDistances(3, method="last")(data_of(ring)).x.shape == (12, 3)
    assert "last" in RULES
    assert "last" in PICKERS
    assert [*RULES.builtin, "last"] == list(RULES)
    assert len(PICKERS) == len(list(PICKERS))
    scores = score_pairs("near", GraphBatch.of([data_of(ring)]), [[0, 1], [5, 3]])
    assert scores.tolist() == [-5.0, -2.0]
    assert scores.dtype == np.float64
    code, out, err = run("anchors", "grid", "--set", "rows=4", "--set", "cols=5", "--method", "all", "--json")
    assert code == 0, err
    assert [row["rule"] for row in json.loads(out)["rules"]] == [*RULES.builtin, "last"]


def test_a_model_trains_with_the_anchors_of_another_package(
    install: Install, run: Command, tmp_path: Path
) -> None:
    install("rules-good", anchors="last")
    arguments = ("train", "grid", "--set", "rows=5", "--set", "cols=5", "--epochs", 2, "--out", "run")
    code, out, err = run(*arguments, "--option", "picker=last", "--option", "anchors=4", "--json")
    assert code == 0, err
    result = load(tmp_path / "run")
    assert result.model.config.picker == "last"
    assert result.choice is not None
    assert result.choice.nodes.tolist() == [[21, 22, 23, 24]]


def test_a_comparison_has_the_rules_of_other_packages(install: Install, ring: nx.Graph) -> None:
    install("rules-good", pairs="near")
    names = {row["name"] for row in compare([data_of(ring)], "link", seeds=1)}
    assert names == {*HEURISTICS.builtin, "near"}


def test_a_rule_that_breaks_does_not_stop_those_that_work(
    install: Install, ring: nx.Graph, run: Command, caplog: pytest.LogCaptureFixture
) -> None:
    install("rules-broken", "import no_such_module", anchors="last", pairs="near")
    assert "last" in list(RULES)
    assert select_anchors(data_of(ring), "degree", 3).size == 3
    with caplog.at_level(logging.WARNING, "psgnn"):
        names = {row["name"] for row in compare([data_of(ring)], "link", seeds=1)}
        compare([data_of(ring)], "link", seeds=1)
    assert names == set(HEURISTICS.builtin)
    [note] = [record.getMessage() for record in caplog.records if "near" in record.getMessage()]
    assert "rules-broken 1.5" in note
    code, out, err = run("anchors", "grid", "--set", "rows=4", "--set", "cols=5", "--method", "all")
    assert code == 0
    assert "anchor rule 'last' of rules-broken 1.5 cannot be imported" in err


def test_a_rule_that_breaks_is_one_line_when_it_is_asked_for(
    install: Install, ring: nx.Graph, run: Command, tmp_path: Path
) -> None:
    install("rules-broken", "import no_such_module", anchors="last", pairs="near")
    reason = r"cannot be imported \(ModuleNotFoundError: No module named 'no_such_module'\)"
    with pytest.raises(InputError, match=rf"^anchor rule 'last' of rules-broken 1\.5 {reason}"):
        select_anchors(data_of(ring), "last", 3)
    with pytest.raises(InputError, match=rf"^pair rule 'near' of rules-broken 1\.5 {reason}"):
        score_pairs("near", GraphBatch.of([data_of(ring)]), [[0], [5]])
    task = LinkPrediction(data_of(ring), seed=0)
    with pytest.raises(InputError, match=reason):
        build_model("psgnn", task, picker="last")
    code, out, err = run("train", "grid", "--option", "picker=last", "--out", "run")
    assert code == 2
    assert err.startswith("psgnn: error: anchor rule 'last' of rules-broken 1.5 cannot be imported")
    assert err.count("\n") == 1
    assert not (tmp_path / "run").exists()


def test_a_name_that_is_not_there_and_one_that_is_no_function(install: Install, ring: nx.Graph) -> None:
    install("rules-wrong", anchors="missing number")
    with pytest.raises(InputError, match=r"'missing' of rules-wrong 1\.5 cannot be imported \(Attr"):
        select_anchors(data_of(ring), "missing", 3)
    with pytest.raises(InputError, match=r"'number' of rules-wrong 1.5 is not a function: .* of type int"):
        select_anchors(data_of(ring), "number", 3)


def test_a_taken_name_is_ignored_with_a_warning(
    install: Install, ring: nx.Graph, caplog: pytest.LogCaptureFixture
) -> None:
    install("rules-clash", anchors="degree=few score=few all=few", pairs="pagerank=short")
    with caplog.at_level(logging.WARNING, "psgnn"):
        assert list(RULES) == list(RULES.builtin)
        assert list(HEURISTICS) == list(HEURISTICS.builtin)
        list(RULES)
    notes = [record.getMessage() for record in caplog.records]
    assert len(notes) == 4
    assert notes[0].startswith(
        "anchor rule 'degree' of rules-clash 1.5 is ignored: the name is taken by psgnn"
    )
    assert select_anchors(data_of(ring), "degree", 3).size == 3


def test_of_two_packages_with_one_name_the_first_is_used(
    install: Install, ring: nx.Graph, caplog: pytest.LogCaptureFixture
) -> None:
    install("rules-one", anchors="last")
    install("rules-two", anchors="last")
    with caplog.at_level(logging.WARNING, "psgnn"):
        assert select_anchors(data_of(ring), "last", 2).tolist() == [10, 11]
    [note] = [record.getMessage() for record in caplog.records]
    assert "rules-one 1.5" in note
    assert "rules-two 1.5" in note


@pytest.mark.parametrize(
    ("rule", "found"),
    [
        ("few", "found 2 nodes"),
        ("twice", "found only 1 distinct nodes"),
        ("outside", r"found nodes 12\.\.14 of a graph of 12"),
        ("negative", r"found nodes -3\.\.-1 of a graph of 12"),
        ("real", r"found an array of float64 of shape \[3\]"),
        ("nothing", r"found an array of object of shape \[\]"),
        ("ragged", r"failed \(ValueError: "),
        ("crash", r"failed \(ZeroDivisionError: "),
    ],
)
def test_wrong_anchors_are_one_line_that_names_the_rule(
    install: Install, ring: nx.Graph, rule: str, found: str
) -> None:
    install("rules-wrong", anchors=rule)
    with pytest.raises(InputError, match=rf"^anchor rule '{rule}' of rules-wrong 1\.5 .*{found}") as error:
        select_anchors(data_of(ring), rule, 3)
    assert "\n" not in str(error.value)
    task = LinkPrediction(data_of(ring), seed=0)
    model = build_model("psgnn", task, picker=rule, anchors=3)
    with pytest.raises(InputError, match=f"anchor rule '{rule}'"):
        fit(model, task, epochs=1)


@pytest.mark.parametrize(
    ("rule", "found"),
    [
        ("short", r"must return 3 finite numbers.* found an array of float64 of shape \[2\]"),
        ("nan", r"found nan for pair 1 \(nodes 1 and 3\)"),
        ("words", r"found an array of <U4 of shape \[3\]"),
        ("break_pairs", r"failed \(RuntimeError: two lines\)"),
    ],
)
def test_wrong_scores_are_one_line_that_names_the_rule(
    install: Install, ring: nx.Graph, rule: str, found: str
) -> None:
    install("rules-wrong", pairs=rule)
    with pytest.raises(InputError, match=rf"^pair rule '{rule}' of rules-wrong 1\.5 .*{found}"):
        score_pairs(rule, GraphBatch.of([data_of(ring)]), [[0, 1, 2], [5, 3, 4]])


def test_built_in_rules_need_no_metadata(ring: nx.Graph, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(**options: str) -> None:
        raise AssertionError("entry points were read")

    monkeypatch.setattr(psgnn.registry, "entry_points", refuse)
    RULES.refresh()
    HEURISTICS.refresh()
    for name in RULES.builtin:
        select_anchors(data_of(ring), name, 3)
    score_pairs("pagerank", GraphBatch.of([data_of(ring)]), [[0], [5]])
    for picker in ("mixed", "score", "random-search"):
        make_config("psgnn", "link", 1, picker=picker, preset="paper")
    with pytest.raises(AssertionError, match="were read"):
        list(RULES)


def test_an_unknown_name_gets_the_nearest_one(install: Install, ring: nx.Graph) -> None:
    install("rules-good", anchors="last")
    with pytest.raises(InputError, match=r"^unknown anchor rule 'lasst'; did you mean 'last'\?"):
        select_anchors(data_of(ring), "lasst", 3)


def test_every_other_picker_is_a_reserved_name() -> None:
    assert {*PICKERS.names, "all"} == set(RULES.reserved)


@pytest.fixture(scope="module")
def example(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The example package, built and installed without a network into a folder of its own."""
    folder = tmp_path_factory.mktemp("example")
    # From a copy, because setuptools builds beside the sources.
    source = shutil.copytree(EXAMPLE, folder / "source")
    options = ("--no-deps", "--no-build-isolation", "--no-index", "--disable-pip-version-check", "-q")
    command = [
        sys.executable,
        "-m",
        "pip",
        "install",
        *options,
        "--target",
        str(folder / "site"),
        str(source),
    ]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return folder / "site"


def psgnn_with(site: Path, *arguments: str) -> str:
    paths = [str(site), str(ROOT / "src"), *filter(None, [os.environ.get("PYTHONPATH")])]
    done = subprocess.run(
        [sys.executable, "-m", "psgnn", *arguments],
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(paths)},
        cwd=site,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_the_example_package_adds_its_rules_to_the_command_line(example: Path) -> None:
    graph = ("communities", "--set", "communities=4", "--set", "size=8")
    document = json.loads(psgnn_with(example, "anchors", *graph, "--method", "core", "--json"))
    assert [row["rule"] for row in document["rules"]] == ["core"]
    shown = psgnn_with(example, "compare", *graph, "--models", "none", "--seeds", "1")
    assert "sorensen" in shown
    options = ("--option", "picker=core", "--epochs", "1", "--json")
    assert "auc" in psgnn_with(example, "train", *graph, *options)


def test_the_rules_of_the_example_are_those_of_networkx(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(EXAMPLE)
    import psgnn_extra_rules as extra

    graph = nx.convert_node_labels_to_integers(nx.karate_club_graph())
    adjacency = adjacency_of(graph)
    expected = nx.core_number(graph)
    assert dict(enumerate(extra.core_numbers(adjacency).tolist())) == expected
    picked = extra.core(adjacency, 5, np.random.default_rng(0))
    ranks = sorted(((expected[v], graph.degree(v)) for v in graph), reverse=True)
    assert [(expected[v], graph.degree(v)) for v in picked.tolist()] == ranks[:5]
    pairs = np.array([[0, 4, 9], [33, 5, 20]])
    shared = [len(set(graph[u]) & set(graph[v])) / (graph.degree(u) + graph.degree(v)) for u, v in pairs.T]
    assert extra.sorensen(GraphBatch.of([data_of(graph)]), pairs, 0) == pytest.approx(shared)
