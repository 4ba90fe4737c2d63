"""Hops by Spark equal those of our kernels, whatever happens on the way."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import networkx as nx
import numpy as np
import polars as pl
import pytest

from conftest import Command
from psgnn.distances._engine import hop_columns as hop_kernels
from psgnn.errors import InputError
from psgnn.graph._graph import Adjacency

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [
    pytest.mark.slow,
    pytest.mark.filterwarnings("ignore"),  # Spark's own
    pytest.mark.xdist_group("spark"),
]
SETTINGS = {
    "spark.sql.shuffle.partitions": "2",
    "spark.ui.enabled": "false",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.memory": "1g",
}


def check_spark() -> None:
    """Without Java or pyspark the tests are skipped, but not where they are asked for."""
    reason = None
    if shutil.which("java") is None:
        reason = "no java, which Spark needs"
    try:
        import pyspark  # noqa: F401
    except ImportError:
        reason = "pyspark is not installed"
    if reason is not None:
        if os.environ.get("PSGNN_REQUIRE_SPARK"):
            pytest.fail(reason)
        pytest.skip(reason)


@pytest.fixture(scope="module")
def spark() -> Iterator[SparkSession]:
    check_spark()
    from psgnn.distances.spark import session

    found = session("local[2]", SETTINGS)
    yield found
    found.stop()


def write(path: Path, edges: np.ndarray, names: list[str] | None = None) -> str:
    ends = edges if names is None else np.array(names)[edges]
    pl.DataFrame({"day": np.arange(edges.shape[1]), "source": ends[0], "target": ends[1]}).write_parquet(path)
    return str(path)


def read(path: Path) -> tuple[list[Any], np.ndarray, list[str]]:
    table = pl.read_parquet(path / "*.parquet").sort("node")
    return table["node"].to_list(), table.drop("node").to_numpy(), table.columns[1:]


@pytest.mark.parametrize(
    ("graph", "count", "cutoff"),
    [
        (nx.gnp_random_graph(120, 0.03, seed=1), 70, None),  # two words of bits, several components
        (nx.path_graph(9), 3, None),
        (nx.star_graph(20), 20, 1),
    ],
)
def test_hops_are_those_of_the_kernels(
    spark: SparkSession, tmp_path: Path, graph: nx.Graph, count: int, cutoff: int | None
) -> None:
    from psgnn.distances.spark import hop_columns, read_links

    edges = np.array(graph.edges).T
    loops = np.array([[0], [0]])
    links = read_links(
        spark, write(tmp_path / "e.parquet", np.concatenate([edges, edges[::-1, :5], loops], axis=1))
    )
    nodes = np.unique(edges)
    anchors = nodes[np.linspace(0, nodes.size - 1, count).astype(int)].tolist()
    hop_columns(spark, links, anchors, str(tmp_path / "out"), cutoff=cutoff)
    found, hops, columns = read(tmp_path / "out")
    assert found == nodes.tolist()
    assert columns == [f"to_{anchor}" for anchor in anchors]
    adjacency = Adjacency.from_edges(edges[0], edges[1], graph.number_of_nodes())
    assert np.array_equal(hops, hop_kernels(adjacency, np.array(anchors), cutoff=cutoff)[nodes])
    assert not (tmp_path / "out.levels").exists()


def test_names_and_rules(spark: SparkSession, tmp_path: Path) -> None:
    from psgnn.distances.spark import hop_columns, pick_anchors, read_links

    edges = np.array(nx.karate_club_graph().edges).T
    names = [f"person {v}" for v in range(34)]
    links = read_links(spark, write(tmp_path / "e.parquet", edges, names))
    assert pick_anchors(links, "degree", 3) == ["person 33", "person 0", "person 32"]
    random = pick_anchors(links, "random", 5, seed=1)
    assert random == pick_anchors(links, "random", 5, seed=1) != pick_anchors(links, "random", 5, seed=2)
    hop_columns(spark, links, ["person 33"], str(tmp_path / "out"))
    found, hops, _ = read(tmp_path / "out")
    lengths = nx.single_source_shortest_path_length(nx.karate_club_graph(), 33)
    assert dict(zip(found, hops[:, 0].tolist(), strict=True)) == {
        f"person {v}": d for v, d in lengths.items()
    }
    with pytest.raises(InputError, match="by degree or random"):
        pick_anchors(links, "load", 3)


def test_names_may_have_dots_and_differ_in_capitals_alone(spark: SparkSession, tmp_path: Path) -> None:
    from psgnn.distances.spark import hop_columns, read_links

    names = ["anna.b@mail.org", "Anna.b@mail.org", "c`d", "alone", "too"]
    links = read_links(spark, write(tmp_path / "e.parquet", np.array([[0, 1, 3], [1, 2, 4]]), names))
    hop_columns(spark, links, names[:3], str(tmp_path / "out"))
    found, hops, columns = read(tmp_path / "out")
    assert columns == [f"to_{name}" for name in names[:3]]
    told = dict(zip(found, hops.tolist(), strict=True))
    assert [told[name] for name in names] == [[0, 1, 2], [1, 0, 1], [2, 1, 0], [-1, -1, -1], [-1, -1, -1]]


def test_a_job_that_is_killed_at_the_end_goes_on_there(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from psgnn.distances import spark as engine

    links = engine.read_links(spark, write(tmp_path / "e.parquet", np.array(nx.path_graph(5).edges).T))
    out, seen = str(tmp_path / "below" / "out"), []

    def note(level: int, reached: int) -> None:
        seen.append(level)

    with monkeypatch.context() as patch:
        patch.setattr(engine, "_move", lambda *_: (_ for _ in ()).throw(KeyboardInterrupt))
        with pytest.raises(KeyboardInterrupt):
            engine.hop_columns(spark, links, [0], out, progress=note)
    assert not Path(out).exists()
    assert seen == [1, 2, 3, 4, 5]
    assert engine.hop_columns(spark, links, [0], out, progress=note) == 5
    assert seen == [1, 2, 3, 4, 5]  # the last level says that there is nothing more to reach
    assert read(Path(out))[1][:, 0].tolist() == [0, 1, 2, 3, 4]
    levels = tmp_path / "below" / "out.levels"
    (levels / "0123456789ab-None" / "0").mkdir(
        parents=True
    )  # as a job leaves it that is killed just before its end
    with pytest.raises(InputError, match="exists; pass --force"):
        engine.hop_columns(spark, links, [0], out)
    assert not levels.exists()
    with monkeypatch.context() as patch:
        patch.setattr(engine, "_move", lambda *_: (_ for _ in ()).throw(KeyboardInterrupt))
        with pytest.raises(KeyboardInterrupt):
            engine.hop_columns(spark, links, [4], out, force=True)
    assert read(Path(out))[2] == ["to_0"]  # what was to be replaced is still whole


def test_links_without_an_end_are_refused(spark: SparkSession, tmp_path: Path) -> None:
    from psgnn.distances.spark import read_links

    pl.DataFrame({"source": [0, None, 2], "target": [1, 2, 3]}).write_parquet(tmp_path / "e.parquet")
    with pytest.raises(InputError, match="has rows without a source or target; leave them out"):
        read_links(spark, str(tmp_path / "e.parquet"))


def test_an_interrupted_job_goes_on(spark: SparkSession, tmp_path: Path) -> None:
    from psgnn.distances.spark import hop_columns, read_links

    edges = np.array(nx.path_graph(7).edges).T
    links = read_links(spark, write(tmp_path / "e.parquet", edges))
    out, seen = str(tmp_path / "out"), []

    def interrupt(level: int, reached: int) -> None:
        seen.append(level)
        if len(seen) == 3:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        hop_columns(spark, links, [0], out, progress=interrupt)
    assert not Path(out).exists()
    # A level that was not written to its end does not count.
    (last,) = (tmp_path / "out.levels").glob("*/3/_SUCCESS")
    last.unlink()
    hop_columns(spark, links, [0], out, progress=interrupt)
    assert seen == [1, 2, 3, 3, 4, 5, 6, 7]
    assert read(tmp_path / "out")[1][:, 0].tolist() == [0, 1, 2, 3, 4, 5, 6]
    with pytest.raises(InputError, match="exists; pass --force"):
        hop_columns(spark, links, [1], out)
    hop_columns(spark, links, [1], out, force=True)
    assert read(tmp_path / "out")[2] == ["to_1"]


def test_levels_of_another_graph_are_not_gone_on_with(spark: SparkSession, tmp_path: Path) -> None:
    from psgnn.distances.spark import hop_columns, read_links

    def interrupt(level: int, reached: int) -> None:
        if level == 3:
            raise KeyboardInterrupt

    out, star = str(tmp_path / "out"), np.array([[0] * 6, range(1, 7)])
    path = read_links(spark, write(tmp_path / "path.parquet", np.array(nx.path_graph(7).edges).T))
    with pytest.raises(KeyboardInterrupt):
        hop_columns(spark, path, [0], out, progress=interrupt)
    hop_columns(spark, read_links(spark, write(tmp_path / "star.parquet", star)), [0], out)
    assert read(tmp_path / "out")[1][:, 0].tolist() == [0, 1, 1, 1, 1, 1, 1]
    with pytest.raises(KeyboardInterrupt):
        hop_columns(spark, path, [0], out, progress=interrupt, force=True)
    seen: list[int] = []
    hop_columns(spark, path, [0], out, progress=lambda level, _: seen.append(level), force=True)
    assert seen == [1, 2, 3, 4, 5, 6, 7]  # what is to be replaced is not gone on with either


def test_force_replaces_only_what_psgnn_wrote(spark: SparkSession, tmp_path: Path) -> None:
    from psgnn.distances.spark import hop_columns, read_links

    links = read_links(spark, write(tmp_path / "e.parquet", np.array([[0, 1], [1, 2]])))
    mine, table = tmp_path / "mine", tmp_path / "table"
    mine.mkdir()
    (mine / "thesis.txt").write_text("mine")
    spark.createDataFrame([(1, 2)], "a int, b int").write.parquet(str(table))
    (tmp_path / "file").write_text("mine")
    (tmp_path / "new.levels").mkdir()
    (tmp_path / "new.levels" / "photo.jpg").write_text("mine")
    before = sorted(path for path in tmp_path.rglob("*") if path.is_file())
    for name, message in (
        ("mine", "holds 'thesis.txt', which psgnn did not write"),
        ("file", "holds a file, which psgnn did not write"),
        ("table", "holds a table that psgnn did not write"),
        ("new", "new.levels holds 'photo.jpg', which psgnn did not write"),
    ):
        with pytest.raises(InputError, match=message):
            hop_columns(spark, links, [0], str(tmp_path / name), force=True)
    assert sorted(path for path in tmp_path.rglob("*") if path.is_file()) == before
    (tmp_path / "empty").mkdir()
    hop_columns(spark, links, [0], str(tmp_path / "empty"), force=True)
    (tmp_path / "empty" / "note.txt").write_text("mine, beside the table")
    with pytest.raises(InputError, match=r"holds 'note\.txt'"):
        hop_columns(spark, links, [1], str(tmp_path / "empty"), force=True)


def test_what_cannot_be_asked(spark: SparkSession, tmp_path: Path) -> None:
    from psgnn.distances.spark import hop_columns, read_links

    path = write(tmp_path / "e.parquet", np.array([[0, 1], [1, 2]]))
    with pytest.raises(InputError, match=r"cannot read .* as Parquet"):
        read_links(spark, str(tmp_path / "nothing.parquet"))
    with pytest.raises(InputError, match="name two of them with --source and --target"):
        read_links(spark, path, ("source", "to"))
    links = read_links(spark, path, ("target", "source"))
    for anchors in ([], [1, 1], list(range(5000))):
        with pytest.raises(InputError, match="1 to 4096 different anchors"):
            hop_columns(spark, links, anchors, str(tmp_path / "out"))
    with pytest.raises(InputError, match="no node '7'"):
        hop_columns(spark, links, [0, 7], str(tmp_path / "out"))


def test_a_killed_prediction_goes_on_and_ends_as_on_one_machine(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import psgnn
    from psgnn.spark import predict
    from psgnn.spark._mail import Post

    graph = nx.karate_club_graph()
    names = [f"person {v}" for v in range(34)]
    table = spark.read.parquet(write(tmp_path / "e.parquet", np.array(graph.edges).T, names))
    anchors = ["person 0", "person 33", "person 16", "person 9"]
    asked: dict[str, Any] = {"top": 20, "anchors": anchors, "work": str(tmp_path / "work")}
    step, made = Post.step, []

    def killed(self: Post, name: str, *rest: Any) -> Any:
        made.append(name)
        if name.endswith("step 5") and len(made) < 20:
            raise KeyboardInterrupt
        return step(self, name, *rest)

    with monkeypatch.context() as patch:
        patch.setattr(Post, "step", killed)
        with pytest.raises(KeyboardInterrupt):
            predict(spark, table, **asked)
    kept = {path: path.stat().st_mtime_ns for path in (tmp_path / "work").glob("*/*/_SUCCESS")}
    assert len(kept) > 10
    with monkeypatch.context() as patch:
        patch.setattr(Post, "clear", lambda _: None)
        found = predict(spark, table, **asked).toPandas()
    assert all(path.stat().st_mtime_ns == before for path, before in kept.items())  # nothing was made again
    plain = psgnn.read_graph(nx.relabel_nodes(graph, dict(enumerate(names))))
    scorer = psgnn.pretrained().on([plain], anchors=anchors)
    expected = scorer.predict(top=20)
    pairs = [frozenset(pair) for pair in zip(found["source"], found["target"], strict=True)]
    common = set(pairs) & {frozenset(row[:2]) for row in expected.rows()}
    assert len(common) >= 19
    assert np.allclose(found["score"], scorer.score([tuple(pair) for pair in pairs]), atol=1e-3)
    assert found["probability"].isna().all()  # too few links to rehearse with
    # Another question is no part of this one.
    with pytest.raises(InputError, match="has no node 'anna'"):
        predict(spark, table, pairs=[("anna", "person 1")], anchors=anchors, work=str(tmp_path / "work"))


def test_vectors_and_partners_of_all_nodes_are_written_by_the_workers(
    spark: SparkSession, tmp_path: Path
) -> None:
    import psgnn
    from psgnn.distances.spark import read_links
    from psgnn.spark._mail import Post
    from psgnn.spark._predict import prepare, write_embeddings, write_partners

    graph = nx.karate_club_graph()
    links = read_links(spark, write(tmp_path / "e.parquet", np.array(graph.edges).T))
    scorer = prepare(Post(spark, str(tmp_path / "work"), 2), links, anchors=[0, 33, 16, 9])
    (tmp_path / "taken").mkdir()
    (tmp_path / "taken" / "thesis.txt").write_text("mine")
    with pytest.raises(InputError, match=r"holds 'thesis\.txt'"):
        write_embeddings(scorer, str(tmp_path / "taken"), force=True)
    write_embeddings(scorer, str(tmp_path / "vectors"))
    here = psgnn.pretrained().on([psgnn.read_graph(graph)], anchors=[0, 33, 16, 9])
    vectors = pl.read_parquet(tmp_path / "vectors" / "*.parquet").sort("node")
    assert vectors["node"].to_list() == list(range(34))
    assert np.allclose(np.stack(vectors["embedding"].to_list()), here.embed(), atol=1e-3)
    count = write_partners(scorer, str(tmp_path / "partners"), top=2, missing=None)
    found = pl.read_parquet(tmp_path / "partners" / "*.parquet").cast(
        {"source": pl.String, "target": pl.String}
    )
    expected = here.predict(of="all", top=2)
    assert count == found.height == expected.height
    both = found.join(expected, on=["source", "target"])
    assert both.height >= 0.95 * count
    assert np.allclose(both["score"], both["score_right"], atol=1e-3)
    assert found["probability"].null_count() == count  # too few links to rehearse with
    with pytest.raises(InputError, match="exists; pass --force"):
        write_partners(scorer, str(tmp_path / "partners"), top=2, missing=None)


def test_what_predictions_by_spark_do_not_take(run: Command, tmp_path: Path) -> None:
    write(tmp_path / "e.parquet", np.array(nx.path_graph(5).edges).T)
    spark = ("predict", "e.parquet", "--engine", "spark")
    for options, message in (
        (("--top", "5", "--directed"), "--directed goes with --engine numba"),
        (("--top", "5", "--why"), "--why goes with --engine numba"),
        (("--for", "all"), "--for all by Spark needs --out FOLDER"),
    ):
        code, out, err = run(*spark, *options)
        assert (code, out) == (2, "")
        assert message in err
    code, _, err = run("predict", "e.parquet", "--top", "5", "--work", "folder")
    assert code == 2
    assert "--work goes with --engine spark" in err


def test_both_engines_of_the_command_agree(run: Command, spark: SparkSession, tmp_path: Path) -> None:
    edges = np.array(nx.connected_caveman_graph(5, 6).edges).T
    write(tmp_path / "e.parquet", edges)
    Path("anchors.txt").write_text("0\n7\n29\n")
    base = ("distances", "e.parquet", "--anchor-file", "anchors.txt", "--json")
    code, out, err = run(*base, "--out", "here.parquet")
    assert code == 0, err
    assert json.loads(out) == {
        "graph": "e.parquet", "out": "here.parquet", "engine": "numba", "nodes": 30, "anchors": 3,
    }  # fmt: skip
    code, out, err = run(*base, "--out", "there", "--engine", "spark", "--master", "local[2]")
    assert code == 0, err
    assert json.loads(out)["levels"] >= 3
    Path("strange.txt").write_text("0\nanna\n")
    strange = ("distances", "e.parquet", "--anchor-file", "strange.txt", "--out", "x", "--engine", "spark")
    code, out, err = run(*strange, "--master", "local[2]")
    assert (code, out) == (2, "")
    assert "the graph has no node 'anna'" in err
    Path("asked.csv").write_text("a,b\n0,12\n29,3\n")
    answers = []
    for engine in (("--engine", "spark", "--master", "local[2]"), ()):
        question = ("predict", "e.parquet", "--pairs", "asked.csv", "--json")
        code, out, err = run(*question, *engine)
        assert code == 0, err
        answers.append(json.loads(out)["pairs"])
    assert [(row["source"], row["target"]) for row in answers[0]] == [("0", "12"), ("29", "3")]
    assert len(answers[1]) == 2
    here = pl.read_parquet("here.parquet").with_columns(pl.col("node").cast(pl.Int64)).sort("node")
    there = pl.read_parquet("there/*.parquet").sort("node")
    assert there.cast(dict(here.schema)).equals(here)
