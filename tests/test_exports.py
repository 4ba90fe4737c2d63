"""Embeddings and pairs on disk, read back by those who will read them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import torch

from psgnn.errors import InputError
from psgnn.graph._exports import write_embeddings, write_pairs, write_table

ONE = [["anna", "Ĳda, the first", '#5" "quoted"', "007"]]
TWO = [["a", "b"], ["a", "c", "d"]]


def embeddings(names: list[list[str]], d: int = 3) -> torch.Tensor:
    count = sum(map(len, names))
    return torch.randn(count, d, generator=torch.Generator().manual_seed(0))


def test_parquet_has_one_vector_column(tmp_path: Path) -> None:
    h = embeddings(ONE)
    write_embeddings(tmp_path / "h.parquet", ONE, h)
    frame = pl.read_parquet(tmp_path / "h.parquet")
    assert dict(frame.schema) == {"node": pl.String, "embedding": pl.Array(pl.Float32, 3)}
    assert frame["node"].to_list() == ONE[0]
    assert (frame["embedding"].to_numpy() == h.numpy()).all()


def test_pandas_and_arrow_read_the_vectors(tmp_path: Path) -> None:
    h = embeddings(ONE)
    write_embeddings(tmp_path / "h.parquet", ONE, h)
    kind = pq.read_schema(tmp_path / "h.parquet").field("embedding").type
    assert pa.types.is_fixed_size_list(kind)  # what vector indexes take for a vector
    assert (kind.list_size, kind.value_type) == (3, pa.float32())
    frame = pd.read_parquet(tmp_path / "h.parquet")
    assert (np.stack(frame["embedding"]) == h.numpy()).all()
    assert frame["node"].tolist() == ONE[0]


@pytest.mark.parametrize("suffix", [".csv", ".tsv"])
def test_text_has_a_column_a_number(tmp_path: Path, suffix: str) -> None:
    h = embeddings(ONE)
    write_embeddings(tmp_path / f"h{suffix}", ONE, h)
    frame = pl.read_csv(
        tmp_path / f"h{suffix}",
        separator="," if suffix == ".csv" else "\t",
        schema_overrides={"node": pl.String, **{f"d{i}": pl.Float32 for i in range(3)}},
    )
    assert frame.columns == ["node", "d0", "d1", "d2"]
    assert frame["node"].to_list() == ONE[0]
    assert (frame.drop("node").to_numpy() == h.numpy()).all()


def test_npz_needs_no_pickle_and_is_contiguous(tmp_path: Path) -> None:
    h = embeddings(ONE).double().T.contiguous().T  # neither float32 nor contiguous
    write_embeddings(tmp_path / "h.npz", ONE, h)
    with np.load(tmp_path / "h.npz", allow_pickle=False) as arrays:
        assert set(arrays.files) == {"names", "embeddings"}
        assert arrays["names"].tolist() == ONE[0]
        assert arrays["names"].dtype.kind == "U"
        found = arrays["embeddings"]
    assert found.dtype == np.float32
    assert found.flags.c_contiguous
    assert (found == h.float().numpy()).all()


def test_a_name_too_long_for_npz_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("psgnn.graph._exports.MOST_NAME_BYTES", 4000)
    names = [["x" * 2000, "y"]]
    with pytest.raises(InputError, match=r"2000 letters.*use \.parquet"):
        write_embeddings(tmp_path / "h.npz", names, embeddings(names))
    assert not list(tmp_path.iterdir())
    write_embeddings(tmp_path / "h.parquet", names, embeddings(names))
    assert pl.read_parquet(tmp_path / "h.parquet")["node"].to_list() == names[0]


def test_several_graphs_have_a_column_for_the_graph(tmp_path: Path) -> None:
    h = embeddings(TWO)
    for suffix in (".csv", ".parquet", ".npz"):
        write_embeddings(tmp_path / f"h{suffix}", TWO, h)
    for frame in (pl.read_csv(tmp_path / "h.csv"), pl.read_parquet(tmp_path / "h.parquet")):
        assert frame.columns[:2] == ["node", "graph"]
        assert frame["node"].to_list() == ["a", "b", "a", "c", "d"]
        assert frame["graph"].to_list() == [0, 0, 1, 1, 1]
    with np.load(tmp_path / "h.npz") as arrays:
        assert arrays["graph"].tolist() == [0, 0, 1, 1, 1]


PAIRS = pl.DataFrame(
    {"source": ["a", "a", "d"], "target": ["b", "c", "a"], "graph": [0, 1, 1], "score": [0.0, 100.0, -2.0]}
)


@pytest.mark.parametrize("suffix", [".csv", ".tsv", ".parquet", ".npz"])
def test_pairs_are_written_as_they_are(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"p{suffix}"
    write_pairs(path, PAIRS)
    if suffix == ".npz":
        with np.load(path) as arrays:
            frame = pl.DataFrame({key: arrays[key] for key in arrays.files})
    elif suffix == ".parquet":
        frame = pl.read_parquet(path)
    else:
        frame = pl.read_csv(path, separator="," if suffix == ".csv" else "\t")
    assert frame.to_dict(as_series=False) == PAIRS.to_dict(as_series=False)


def test_no_pairs_are_a_table_with_its_columns(tmp_path: Path) -> None:
    write_pairs(tmp_path / "p.parquet", PAIRS.clear())
    frame = pl.read_parquet(tmp_path / "p.parquet")
    assert frame.columns == PAIRS.columns
    assert frame["source"].dtype == pl.String


def test_nothing_is_replaced_without_force(tmp_path: Path) -> None:
    path = tmp_path / "h.csv"
    path.write_text("old")
    with pytest.raises(InputError, match="--force"):
        write_embeddings(path, ONE, embeddings(ONE))
    with pytest.raises(InputError, match="--force"):
        write_pairs(path, PAIRS)
    assert path.read_text() == "old"
    write_pairs(path, PAIRS, force=True)
    assert path.read_text().startswith("source,")


def test_embeddings_of_other_nodes_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"4 nodes need embeddings \[4, d\], found \[3, 2\]"):
        write_embeddings(tmp_path / "h.csv", ONE, torch.zeros(3, 2))
    with pytest.raises(InputError, match=r"\.docx"):
        write_embeddings(tmp_path / "h.docx", ONE, embeddings(ONE))


@pytest.mark.parametrize("suffix", [".csv", ".tsv"])
def test_names_that_a_spreadsheet_would_run_are_pointed_out_or_quoted(
    tmp_path: Path, suffix: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO", logger="psgnn")
    names = ["=1+1", "+a", "@b", "-c", "plain", "\t=2"]
    table = {"node": names, "to_x": [1, -2, 3, 4, 5, 6]}
    write_table(tmp_path / f"a{suffix}", table)
    assert "5 names" in caplog.text
    assert "--spreadsheet" in caplog.text
    caplog.clear()
    write_table(tmp_path / f"b{suffix}", table, spreadsheet=True)
    assert not caplog.text
    separator = "," if suffix == ".csv" else "\t"
    plain, quoted = (pl.read_csv(tmp_path / f"{name}{suffix}", separator=separator) for name in "ab")
    assert plain["node"].to_list() == names
    assert quoted["node"].to_list() == ["'=1+1", "'+a", "'@b", "'-c", "plain", "'\t=2"]
    assert quoted["to_x"].to_list() == plain["to_x"].to_list() == table["to_x"]
