"""``psgnn distances`` on one machine."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest

from conftest import Command


def test_hops_to_anchors_by_name(run: Command) -> None:
    Path("g.csv").write_text("a,b\nb,c\nd,e\n")
    Path("anchors.txt").write_text("a\ne\n")
    assert run("distances", "g.csv", "--anchor-file", "anchors.txt", "--out", "hops.csv")[0] == 0
    table = pl.read_csv("hops.csv")
    assert table.rows() == [("a", 0, -1), ("b", 1, -1), ("c", 2, -1), ("d", -1, 1), ("e", -1, 0)]
    assert table.columns == ["node", "to_a", "to_e"]
    code, out, _ = run("distances", "g.csv", "--anchors", "2", "--cutoff", "1", "--out", "near.parquet")
    assert (code, out) == (0, "hops of 5 nodes to 2 anchors are in near.parquet\n")
    assert pl.read_parquet("near.parquet").drop("node").max_horizontal().max() == 1


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--engine", "dask"), "unknown engine 'dask'"),
        (("--master", "local[2]"), "--master goes with --engine spark"),
        (("--anchor-file", "none.txt"), "none.txt does not exist"),
        (("--anchor-file", "empty.txt"), "empty.txt names no node; write one per line"),
        (("--anchor-file", "strange.txt"), "no node 'z'"),
        (("--anchor-file", "twice.txt"), "names 'a' twice; name each node once"),
        (("--method", "degre"), "did you mean 'degree'"),
        (("--engine", "spark", "--set", "x=1"), "Spark reads a Parquet edge list"),
        (("--engine", "spark", "--spark", "memory"), "--spark takes KEY=VALUE"),
    ],
)
def test_what_is_refused(run: Command, arguments: tuple[str, ...], message: str) -> None:
    Path("g.csv").write_text("a,b\nb,c\n")
    Path("empty.txt").write_text("\n")
    Path("strange.txt").write_text("a\nz\n")
    Path("twice.txt").write_text("\ufeffa\na\nb\n", encoding="utf-8")
    code, out, err = run("distances", "g.csv", "--out", "hops.csv", *arguments)
    assert (code, out) == (2, "")
    assert message in err
    assert not Path("hops.csv").exists()
