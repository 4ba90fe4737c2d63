"""Mutated files of every format, read in processes that may crash: `python lab/benchmarks/fuzz.py` runs many more.

``PSGNN_FUZZ_CASES`` says how many are read here.
"""

from __future__ import annotations

import json
import os
import signal
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from psgnn_lab import fuzz
from psgnn_lab.fuzz_targets import NAMES

CASES = int(os.environ.get("PSGNN_FUZZ_CASES", "20000"))
FIELDS = st.one_of(
    st.sampled_from(
        [*NAMES, "", "0", "1", "-1", "#tag", "%", '"', '""', "nan", "1e400", "0,5", "source", "\u202e"]
    ),
    st.integers(-(2**70), 2**70).map(str),
    st.text(max_size=6),
)


@pytest.fixture(scope="module")
def pool() -> Iterator[fuzz.Pool]:
    pool = fuzz.Pool(1)
    yield pool
    pool.close()


@pytest.fixture(scope="module")
def reader(pool: fuzz.Pool) -> fuzz.Reader:
    return pool.readers[0]


@pytest.mark.slow
def test_valid_files_are_read(reader: fuzz.Reader) -> None:
    fuzz.load_targets()
    for target in fuzz.TARGETS.values():
        answer = reader.read(target.name, *target.parts())
        assert answer["outcome"] == "read", (target.name, answer)


@pytest.mark.slow
def test_mutated_files_are_read_or_refused(pool: fuzz.Pool) -> None:
    found = fuzz.fuzz(CASES, pool=pool, seed=1).document()
    rows = found["rows"]
    assert found["failures"] == []
    assert sum(row["cases"] for row in rows) >= 0.99 * CASES
    assert {row["target"] for row in rows} == set(fuzz.TARGETS)
    assert all(row["refused"] for row in rows if row["cases"] > 50)
    assert sum(row["read"] for row in rows) > CASES / 20


def test_a_record_is_gone_on_with(pool: fuzz.Pool, tmp_path: Path) -> None:
    record, targets = tmp_path / "fuzz.json", ["pairs", "labels"]
    fuzz.fuzz(20, pool=pool, targets=targets, record=record)
    before = json.loads(record.read_text())
    before["rows"][0]["failed"] += 1
    before["failures"] = [{"target": "labels", "case": 10, "detail": "a defect that is gone"}]
    record.write_text(json.dumps(before))
    fuzz.fuzz(50, pool=pool, seed=7, targets=targets, record=record)
    after = json.loads(record.read_text())
    assert after["repaired"] == before["failures"]
    assert after["failures"] == []
    assert [row["cases"] for row in after["rows"]] == [25, 25]
    assert after["seed"] == 0  # of the record


@given(
    records=st.lists(st.lists(FIELDS, min_size=1, max_size=5), min_size=1, max_size=12),
    separator=st.sampled_from([",", ";", "\t", " ", ", "]),
    quote=st.sampled_from(["", '"']),
    end=st.sampled_from(["\n", "\r\n", "\n\n", "\n#\n"]),
)
@settings(max_examples=300)
def test_any_table_is_read_or_refused(
    reader: fuzz.Reader, records: list[list[str]], separator: str, quote: str, end: str
) -> None:
    text = end.join(separator.join(f"{quote}{field}{quote}" for field in record) for record in records)
    content = text.encode(errors="surrogatepass")
    for name in ("CSV of names", "text", "pairs", "labels", "names of nodes"):
        answer = reader.read(name, content)
        assert answer["outcome"] in ("read", "refused"), answer["detail"]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("target", "seed", "case"),
    [
        ("NPZ, edge_index", 24, 345),
        ("interrupted paper, tensors", 24, 15),
        ("interrupted psgnn, tensors", 0, 12),
        ("interrupted psgnn, tensors", 24, 305),
        ("kinds: graphs by a column", 0, 1050),
        ("labels", 24, 2595),
        ("negative links, npy", 24, 13),
        ("negative links, npz", 24, 1614),
        ("report of a run", 0, 19),
        ("run of a directed graph, tensors", 5, 127),
        ("run of a directed graph, tensors", 5, 911),
        ("sets of nodes", 24, 6321),
        ("table of nodes, two types", 5, 120),
    ],
)
def test_cases_that_once_failed(reader: fuzz.Reader, target: str, seed: int, case: int) -> None:
    answer = reader.ask(target, seed=seed, case=case)
    assert answer["outcome"] in ("read", "refused"), answer["detail"]


def test_a_case_can_be_made_again() -> None:
    fuzz.load_targets()
    target = fuzz.TARGETS["MATLAB, sparse"]
    cases = [fuzz.case_of(target, 0, case) for case in range(20)]
    assert cases == [fuzz.case_of(target, 0, case) for case in range(20)]
    assert len({case[0] for case in cases}) > 10


# What ends a process is found: targets of these tests stand in for a reader with a defect.


@pytest.mark.skipif(not hasattr(signal, "SIGALRM"), reason="needs signals")
@pytest.mark.parametrize(
    ("body", "detail"),
    [
        ("os.kill(os.getpid(), 11)", "SIGSEGV"),
        ("raise KeyError('x')", "KeyError"),
        ("bytearray(8 * 2**30)", "MemoryError"),
        ("time.sleep(60)", "took more than"),
    ],
)
def test_defects_are_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, body: str, detail: str) -> None:
    (tmp_path / "sitecustomize.py").write_text(
        "import os, time\n"
        "from psgnn.errors import PsgnnError\n"
        "from psgnn_lab import fuzz\n"
        "fuzz.SECONDS = 2\n"
        "def read(path):\n"
        "    if path.read_bytes() != b'valid':\n"
        f"        {body}\n"
        "fuzz.file_target('defect', 'x', lambda: b'valid', read)\n"
    )
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(tmp_path), *sys.path]))
    reader = fuzz.Reader()
    try:
        answer = reader.read("defect", b"other")
        assert answer["outcome"] == "failed"
        assert detail in answer["detail"]
        assert reader.read("defect", b"valid")["outcome"] == "read"  # in a new process, if need be
    finally:
        reader.close()
