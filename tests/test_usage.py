"""Slips on the command line get a line that is about the slip."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

import psgnn
from conftest import Command
from psgnn.errors import InputError


def test_the_bare_command_shows_its_help_as_lines(run: Command) -> None:
    code, _, err = run()
    assert code == 2
    assert err.startswith("Usage: psgnn")
    assert len(err.splitlines()) > 10
    assert "error" not in err.splitlines()[0]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("train", "communities", "--option", "picker"), "--option takes KEY=VALUE, found 'picker'"),
        (("train", "communities", "--set", "size"), "--set takes KEY=VALUE, found 'size'"),
        (("train", "communities", "--model", "gnc"), "did you mean 'gcn'?"),
        (("train", "communities", "--model", "sgea"), "did you mean 'sage'?"),
        (("predict", "nosuch.csv", "--top", "3"), "nosuch.csv does not exist; check the path"),
        (("predict", "nosuch", "--top", "3"), "nosuch is not the folder of a run, a graph file or a dataset"),
    ],
)
def test_a_slip_is_named(run: Command, arguments: tuple[str, ...], message: str) -> None:
    code, out, err = run(*arguments)
    assert (code, out) == (2, "")
    assert message in err
    assert len(err.splitlines()) == 1


@pytest.mark.parametrize("threads", ["0", "-3", "two", ""])
def test_no_threads_for_numba_is_one_line(
    run: Command, monkeypatch: pytest.MonkeyPatch, threads: str
) -> None:
    monkeypatch.setenv("NUMBA_NUM_THREADS", threads)
    code, _, err = run("anchors", "communities")
    assert code == 2
    assert err.startswith(f"psgnn: error: NUMBA_NUM_THREADS={threads} is not a number of threads")


@pytest.mark.parametrize("top", [0, -1, 2.5, "many"])
def test_the_number_of_answers_is_one_or_more(top: Any) -> None:
    scorer = psgnn.pretrained().on(psgnn.load_dataset("grid", rows=5, cols=5))
    for ask in (lambda: scorer.predict(top=top), lambda: scorer.similar(0, top)):
        with pytest.raises(InputError, match=f"top={top!r} is not an integer of 1 or more"):
            ask()


@pytest.mark.parametrize("anchors", [np.array(1), np.zeros((2, 2), int), 3, [[0, 1]], [0.5]])
def test_anchors_of_another_shape_are_refused(anchors: Any) -> None:
    (grid,) = psgnn.load_dataset("grid", rows=5, cols=5)
    with pytest.raises(
        InputError, match=r"nodes go in a list of names or ids|is neither a name nor an id of a node"
    ):
        psgnn.pretrained().on(grid, anchors=anchors)


def test_a_name_of_several_lines_leaves_a_message_in_one(tmp_path: Path) -> None:
    (tmp_path / "g.csv").write_text('source,target,part\na,b,one\nc,c,"two\nlines"\n')
    with pytest.raises(InputError) as caught:
        psgnn.read_graph(tmp_path / "g.csv", graph_id="part")
    assert "graph two lines has no edges between different nodes" in str(caught.value)


@pytest.mark.parametrize("wrong", [[b"1", b"2"], [[1], [2]], [{"x": 1}, {"x": 2}]])
@pytest.mark.parametrize("column", ["source", "n"])
def test_columns_of_bytes_or_lists_are_refused(column: str, wrong: list[Any]) -> None:
    frame = pl.DataFrame({"source": ["a", "b"], "target": ["b", "c"], "n": [1, 2]} | {column: wrong})
    with pytest.raises(InputError, match=rf"the column '{column}' holds \w+"):
        psgnn.read_graph(frame, weight="n", weight_is="strength")


def test_names_without_an_order_are_refused() -> None:
    with pytest.raises(InputError, match="node_names is a set; give a list with a name for every node"):
        psgnn.Graph.from_edges(np.array([[0, 1], [1, 2]]), names={"a", "b", "c"})


def test_a_function_is_no_name_of_a_rule() -> None:
    rule: Any = max
    with pytest.raises(InputError, match="the method is the name of a rule, such as 'degree', found builtin"):
        psgnn.select_anchors(psgnn.load_dataset("grid")[0], rule, 4)


@pytest.mark.parametrize(
    "arguments",
    [
        ("anchors", "communities"),
        ("distances", "communities", "--out", "d.csv"),
        ("train", "communities"),
        ("compare", "communities", "--models", "none"),
        ("embed", "communities", "--out", "e.csv"),
        ("predict", "communities", "--top", "3"),
        ("similar", "communities", "0"),
        ("explain", "communities", "0", "1"),
        ("evaluate", "communities", "--links", "links.csv"),
        ("report", "run", "--out", "r.html"),
    ],
)
def test_every_command_that_reads_a_graph_takes_a_memory_cap(
    run: Command, tmp_path: Path, arguments: tuple[str, ...]
) -> None:
    (tmp_path / "links.csv").write_text("0,399\n")
    code, out, err = run(*arguments, "--memory", "5M")
    assert (code, out) == (2, "")
    assert "a memory cap of 5 MiB is too low" in err


@pytest.mark.skipif(sys.platform != "linux", reason="needs a limit of the address space")
@pytest.mark.parametrize("gigabytes", [0.6, 1.5])
@pytest.mark.parametrize("command", [("predict", "g.csv", "--top", "3"), ("train", "g.csv", "--out", "run")])
def test_too_little_address_space_is_one_line(
    tmp_path: Path, command: tuple[str, ...], gigabytes: float
) -> None:
    """Libraries would end the process with no word of ours, or hang."""
    (tmp_path / "g.csv").write_text("source,target\na,b\nb,c\nc,d\n")
    limited = f'ulimit -v {int(gigabytes * 2**20)}; exec "$0" -m psgnn "$@"'
    done = subprocess.run(
        ["/bin/bash", "-c", limited, sys.executable, *command],
        cwd=tmp_path, capture_output=True, text=True, timeout=100, check=False,
    )  # fmt: skip
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("psgnn: error: the address space is limited to ")
    assert len(done.stderr.splitlines()) == 1
    assert not (tmp_path / "run").exists()
